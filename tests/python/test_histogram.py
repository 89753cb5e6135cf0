"""The histogram against the PyPI package hdrhistogram, in both directions."""

from __future__ import annotations

import base64
import random
import struct
import zlib

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram

from perflab.statistics import histogram as hg

PERCENTILES = [0, 1, 5, 25, 50, 75, 90, 95, 99, 99.9, 99.99, 99.999, 100]


def reference(values: list[int]) -> HdrHistogram:
    peer = HdrHistogram(hg.LOWEST_NS, hg.HIGHEST_NS, hg.SIGNIFICANT_DIGITS)
    for value in values:
        assert peer.record_value(value)
    return peer


def samples(seed: int, n: int) -> list[int]:
    rng = random.Random(seed)
    kinds = [
        lambda: rng.randint(0, 3000),
        lambda: int(rng.lognormvariate(11, 1)),
        lambda: int(10 ** rng.uniform(0, 11)),
        lambda: rng.choice([1, 2047, 2048, 2049, 4095, 4096, hg.HIGHEST_NS]),
    ]
    return [min(rng.choice(kinds)(), hg.HIGHEST_NS) for _ in range(n)]


def test_layout_is_that_of_the_peer() -> None:
    peer = HdrHistogram(hg.LOWEST_NS, hg.HIGHEST_NS, hg.SIGNIFICANT_DIGITS)
    assert peer.counts_len == hg.COUNTS_LENGTH
    assert peer.sub_bucket_count == hg.SUB_BUCKET_COUNT
    indices = np.arange(hg.COUNTS_LENGTH)
    assert hg.lowest_value(indices).tolist() == [peer.get_value_from_index(i) for i in range(hg.COUNTS_LENGTH)]
    assert hg.index_of(hg.lowest_value(indices)).tolist() == indices.tolist()
    assert hg.index_of(hg.highest_value(indices)).tolist() == indices.tolist()


@pytest.mark.parametrize("seed", range(12))
def test_percentiles_equal_those_of_the_peer(seed: int) -> None:
    values = samples(seed, 1 + seed * 137)
    ours, peer = hg.from_values(values), reference(values)
    for percentile in PERCENTILES:
        assert hg.value_at_percentile(ours, percentile) == peer.get_value_at_percentile(percentile), percentile


@pytest.mark.parametrize("seed", range(12))
def test_the_peer_reads_what_we_write(seed: int) -> None:
    values = samples(seed, 1 + seed * 211)
    decoded = HdrHistogram.decode(hg.encode(hg.from_values(values)))
    peer = reference(values)
    assert decoded.get_total_count() == len(values)
    for percentile in PERCENTILES:
        assert decoded.get_value_at_percentile(percentile) == peer.get_value_at_percentile(percentile)
    assert [decoded.get_count_at_index(i) for i in range(hg.COUNTS_LENGTH)] == [
        peer.get_count_at_index(i) for i in range(hg.COUNTS_LENGTH)
    ]


@pytest.mark.parametrize("seed", range(12))
def test_we_read_what_the_peer_writes(seed: int) -> None:
    values = samples(seed, 1 + seed * 173)
    ours = hg.decode(reference(values).encode().decode())
    expected = hg.from_values(values)
    assert ours.indices.tolist() == expected.indices.tolist()
    assert ours.counts.tolist() == expected.counts.tolist()


def test_large_counts_cross_every_byte_length() -> None:
    peer = HdrHistogram(hg.LOWEST_NS, hg.HIGHEST_NS, hg.SIGNIFICANT_DIGITS)
    expected = {}
    for power in range(62):
        value = 3 * (power + 1)
        peer.record_value(value, 2**power)
        expected[value] = 2**power
    decoded = hg.decode(peer.encode().decode())
    assert dict(zip(hg.lowest_value(decoded.indices).tolist(), decoded.counts.tolist(), strict=True)) == expected
    assert hg.decode(hg.encode(decoded)).counts.tolist() == decoded.counts.tolist()


def test_merging_is_exact_and_keeps_the_side_values() -> None:
    parts = [samples(seed, 400) for seed in range(5)]
    merged = hg.merge(hg.from_values(p, range(i * 1000, i * 1000 + 400)) for i, p in enumerate(parts))
    everything = [v for p in parts for v in p]
    whole = hg.from_values(everything)
    assert merged.counts.tolist() == whole.counts.tolist()
    assert (merged.count, merged.sum, merged.min, merged.max) == (
        2000,
        sum(everything),
        min(everything),
        max(everything),
    )
    part = next(i for i, p in enumerate(parts) if max(p) == max(everything))
    assert merged.max_at_ns == part * 1000 + parts[part].index(max(everything))
    assert hg.mean(merged) == sum(everything) / 2000


def test_saturating_and_negative_values_are_counted() -> None:
    h = hg.from_values([hg.HIGHEST_NS + 5, -3, 10])
    assert (h.count, h.saturated, h.negative, h.min, h.max) == (2, 1, 1, 10, hg.HIGHEST_NS + 5)
    assert hg.from_record(hg.to_record(h)).sum == h.sum


def test_an_empty_histogram_has_no_values() -> None:
    h = hg.from_record(hg.to_record(hg.empty()))
    assert (h.count, hg.mean(h), hg.value_at_percentile(h, 50)) == (0, None, None)
    assert HdrHistogram.decode(hg.encode(h)).get_total_count() == 0


def _pack(payload: bytes, *, cookie: int = 0x1C849314, inner: int = 0x1C849313, highest: int = hg.HIGHEST_NS) -> str:
    body = zlib.compress(struct.pack(">iiiiqqd", inner, len(payload), 0, 3, 1, highest, 1.0) + payload)
    return base64.b64encode(struct.pack(">ii", cookie, len(body)) + body).decode()


DAMAGED = [
    "",
    "!!!",
    "AAAA",
    _pack(b"\x02", cookie=1),
    _pack(b"\x02", inner=1),
    _pack(b"\x02", highest=10**6),
    _pack(b"\x80"),
    _pack(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
    _pack(b"\x02" * (hg.COUNTS_LENGTH + 1)),
    _pack(b"\x02" * 10 * hg.COUNTS_LENGTH),
    _pack(b"\x02")[:-8],
]


@pytest.mark.parametrize("encoded", DAMAGED)
def test_damaged_encodings_are_refused(encoded: str) -> None:
    with pytest.raises(hg.HistogramError):
        hg.decode(encoded)


def counts_with_a_number_of_nine_bytes() -> str:
    return _pack(b"\x02" + b"\x82\x80\x80\x80\x80\x80\x80\x80\x10" + b"\x04")


@pytest.mark.parametrize("long", [False, True], ids=["", "nine bytes"])
def test_many_at_once_are_what_each_is_alone(long: bool) -> None:
    of_one = [
        hg.empty(),
        *(hg.from_values(samples(seed, n)) for seed, n in enumerate((1, 3, 500, 1, 2000))),
        hg.empty(),
    ]
    records = [hg.to_record(h) for h in of_one]
    if long:
        records.insert(3, {**records[3], "v2": counts_with_a_number_of_nine_bytes()})
    together = hg.from_records(records)
    for record, found in zip(records, together, strict=True):
        alone = hg.from_record(record)
        assert (found.indices.tolist(), found.counts.tolist()) == (alone.indices.tolist(), alone.counts.tolist())
        assert {name: getattr(found, name) for name in hg.SIDES} == {name: record[name] for name in hg.SIDES}
    assert hg.from_records([]) == []
    measured = hg.from_each([None, records[2], None])
    assert [h if h is None else h.counts.tolist() for h in measured] == [None, of_one[2].counts.tolist(), None]


@pytest.mark.parametrize("encoded", DAMAGED)
def test_one_that_is_damaged_among_many_is_refused(encoded: str) -> None:
    good = hg.to_record(hg.from_values([1, 5_000, 7_000_000]))
    for place in range(3):
        with pytest.raises(hg.HistogramError):
            hg.from_records([{**good, "v2": encoded} if n == place else good for n in range(3)])


def test_a_record_that_contradicts_its_counts_is_refused() -> None:
    record = hg.to_record(hg.from_values([1, 2, 3]))
    with pytest.raises(hg.HistogramError, match="has 3 values but a count of 4"):
        hg.check(hg.from_record({**record, "count": 4}))
    hg.check(hg.from_record({**record, "count": 4, "overflowed": 1}))
    with pytest.raises(hg.HistogramError, match="lacks"):
        hg.from_record({"v2": record["v2"]})
