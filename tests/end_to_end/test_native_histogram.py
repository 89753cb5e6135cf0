"""What the measuring process writes, read by the PyPI package hdrhistogram and by perflab's own reader."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import pytest
from hdrh.histogram import HdrHistogram

from perflab.statistics import histogram as hg

TOOL = Path(os.environ.get("PERFLAB_TEST_TOOLS", "")) / "histogram_tool"
QUANTILES = [0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 1.0]


@pytest.fixture
def tool() -> Path:
    if not os.access(TOOL, os.X_OK):
        pytest.skip("no histogram_tool in PERFLAB_TEST_TOOLS; build it with `make test`")
    return TOOL


def recorded(tool: Path, values: list[int]) -> tuple[str, list[int]]:
    """The native encoding of the values, and the native quantiles."""
    text = "\n".join(map(str, values))
    lines = subprocess.run([tool], input=text, capture_output=True, text=True, check=True, timeout=60).stdout.split()
    return lines[0], [int(line) for line in lines[1:]]


@pytest.mark.parametrize("seed", range(8))
def test_all_three_agree(tool: Path, seed: int) -> None:
    rng = random.Random(seed)
    values = [min(int(10 ** rng.uniform(0, 11)), hg.HIGHEST_NS) for _ in range(1 + 500 * seed)]
    encoded, quantiles = recorded(tool, values)

    peer = HdrHistogram.decode(encoded)
    reference = HdrHistogram(hg.LOWEST_NS, hg.HIGHEST_NS, hg.SIGNIFICANT_DIGITS)
    for value in values:
        reference.record_value(value)
    assert peer.get_total_count() == len(values)
    percentiles = [100 * quantile for quantile in QUANTILES]
    assert [peer.get_value_at_percentile(p) for p in percentiles] == quantiles
    assert [reference.get_value_at_percentile(p) for p in percentiles] == quantiles

    ours = hg.decode(encoded)
    assert [hg.value_at_percentile(ours, p) for p in percentiles] == quantiles


def test_an_empty_histogram_is_read_too(tool: Path) -> None:
    encoded, quantiles = recorded(tool, [])
    assert quantiles == [-1] * len(QUANTILES)
    assert HdrHistogram.decode(encoded).get_total_count() == 0
