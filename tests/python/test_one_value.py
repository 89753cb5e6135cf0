"""The histograms of the double of perflab-node against those of perflab."""

from __future__ import annotations

import pytest
from one_value import record

from perflab.statistics import histogram as hg


@pytest.mark.parametrize("count", [0, 1, 63, 64, 125, 100_000])
@pytest.mark.parametrize("value_ns", [1000, 2047, 2048, 100_000, 200_000])
def test_one_value_many_times_is_recorded_as_perflab_records_it(value_ns: int, count: int) -> None:
    expected = hg.to_record(hg.from_values([value_ns] * count, range(7, 7 + count)))
    assert record(value_ns, count, 7) == expected
