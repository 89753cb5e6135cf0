"""Lossless log-linear histograms with HdrHistogram semantics, and their V2 compressed encoding.

Range 1 ns .. 100 s, three significant digits: a value is known to within 1/1000 of itself (exactly below
2048 ns). In addition to the counts, exact values are kept: sum, minimum, maximum and when the maximum happened. Merging
adds counts, so it is exact and its order does not matter.

The format is that of HdrHistogram (http://hdrhistogram.org): a cookie, a length, and a zlib stream that holds a
40-byte header and the counts as ZigZag LEB128, where a negative number -n stands for n zeros.
"""

from __future__ import annotations

import base64
import binascii
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

LOWEST_NS = 1
HIGHEST_NS = 100_000_000_000
SIGNIFICANT_DIGITS = 3

SUB_BUCKET_COUNT = 2048  # the power of two at or above 2 * 10 ** SIGNIFICANT_DIGITS
SUB_BUCKET_HALF_COUNT = SUB_BUCKET_COUNT // 2
SUB_BUCKET_HALF_MAGNITUDE = 10
BUCKET_COUNT = 27  # doublings of 2048 up to HIGHEST_NS
COUNTS_LENGTH = (BUCKET_COUNT + 1) * SUB_BUCKET_HALF_COUNT

_V2_COOKIE = 0x1C849303 | 0x10
_V2_COMPRESSED_COOKIE = 0x1C849304 | 0x10
_OUTER = struct.Struct(">ii")
_HEADER = struct.Struct(">iiiiqqd")
_MAX_INFLATED = _HEADER.size + 9 * COUNTS_LENGTH
_TOO_MANY = "an encoded histogram has more cells than its range"

Int64s = NDArray[np.int64]


_ADDED = ("saturated", "negative", "overflowed")
SIDES = ("count", "sum", "min", "max", "max_at_ns", *_ADDED)  # the exact values of a record, beside its cells


class HistogramError(ValueError):
    """An encoded histogram is damaged, or has another range or precision."""


@dataclass(frozen=True)
class Histogram:
    """Counts of values in nanoseconds: the non-empty cells in order of value, and exact side values."""

    indices: Int64s
    counts: Int64s
    count: int
    sum: int
    min: int | None
    max: int | None
    max_at_ns: int | None
    saturated: int = 0
    negative: int = 0
    overflowed: int = 0  # values in `count` and `sum` whose cell was full (the native recorder counts in 32 bits)


def empty() -> Histogram:
    """A histogram without values."""
    none = np.zeros(0, np.int64)
    return Histogram(none, none, 0, 0, None, None, None)


def index_of(values_ns: Int64s) -> Int64s:
    """The cells of values within 0 .. HIGHEST_NS."""
    # The position of the highest bit; float64 holds every value of the range (< 2**37) exactly.
    bits = np.frexp(np.maximum(values_ns, 1).astype(np.float64))[1].astype(np.int64)
    bucket = np.maximum(bits - (SUB_BUCKET_HALF_MAGNITUDE + 1), 0)
    cell: Int64s = bucket * SUB_BUCKET_HALF_COUNT + (values_ns >> bucket)
    return cell


def lowest_value(indices: Int64s) -> Int64s:
    """The lowest value that each cell stands for."""
    bucket = np.maximum((indices >> SUB_BUCKET_HALF_MAGNITUDE) - 1, 0)
    value: Int64s = (indices - bucket * SUB_BUCKET_HALF_COUNT) << bucket
    return value


def highest_value(indices: Int64s) -> Int64s:
    """The highest value that each cell stands for, HdrHistogram's "highest equivalent value"."""
    bucket = np.maximum((indices >> SUB_BUCKET_HALF_MAGNITUDE) - 1, 0)
    value: Int64s = lowest_value(indices) + (np.int64(1) << bucket) - 1
    return value


def from_values(values_ns: Iterable[int], at_ns: Iterable[int] | None = None) -> Histogram:
    """The histogram of values, and of the instants at which they happened if these are known.

    Values above HIGHEST_NS are counted at HIGHEST_NS and in `saturated`, and the side values keep them as they are;
    negative ones are counted only in `negative`.
    """
    values = np.fromiter(values_ns, np.int64)
    instants = None if at_ns is None else np.fromiter(at_ns, np.int64)[values >= 0]
    negative = int((values < 0).sum())
    values = values[values >= 0]
    if values.size == 0:
        return replace(empty(), negative=negative)
    cells, counts = np.unique(index_of(np.minimum(values, HIGHEST_NS)), return_counts=True)
    return Histogram(
        indices=cells,
        counts=counts.astype(np.int64),
        count=int(values.size),
        sum=sum(values.tolist()),
        min=int(values.min()),
        max=int(values.max()),
        max_at_ns=None if instants is None else int(instants[int(values.argmax())]),
        saturated=int((values > HIGHEST_NS).sum()),
        negative=negative,
    )


def from_counts(counts: Mapping[int, int]) -> Histogram:
    """The histogram of values in ns within 0 .. HIGHEST_NS, and how often each was counted."""
    if not counts:
        return empty()
    values, of = np.array(sorted(counts.items()), np.int64).T
    cells, places = np.unique(index_of(values), return_inverse=True)
    held = np.zeros(cells.size, np.int64)
    np.add.at(held, places, of)
    return Histogram(
        indices=cells,
        counts=held,
        count=int(of.sum()),
        sum=sum((values * of).tolist()),
        min=int(values[0]),
        max=int(values[-1]),
        max_at_ns=None,
    )


def merge(histograms: Iterable[Histogram]) -> Histogram:
    """All values of all histograms. Exact."""
    parts = list(histograms)
    if len(parts) == 1:
        return parts[0]
    dense = np.zeros(COUNTS_LENGTH, np.int64)
    for h in parts:
        dense[h.indices] += h.counts  # the cells of one histogram are distinct
    cells = np.flatnonzero(dense)
    minima = [h.min for h in parts if h.min is not None]
    highest = max((h for h in parts if h.max is not None), key=lambda h: h.max or 0, default=None)
    return Histogram(
        indices=cells,
        counts=dense[cells],
        count=sum(h.count for h in parts),
        sum=sum(h.sum for h in parts),
        min=min(minima, default=None),
        max=None if highest is None else highest.max,
        max_at_ns=None if highest is None else highest.max_at_ns,
        **{name: sum(getattr(h, name) for h in parts) for name in _ADDED},
    )


def since(later: Histogram, earlier: Histogram) -> Histogram:
    """The values in `later` that are not in `earlier`, the same histogram at an earlier time; side values as far as the
    cells show them. Raises HistogramError if it is another histogram."""
    dense = np.zeros(COUNTS_LENGTH, np.int64)
    dense[later.indices] = later.counts
    dense[earlier.indices] -= earlier.counts
    if (dense < 0).any():
        raise HistogramError("a histogram has fewer values than before")
    cells = np.flatnonzero(dense)
    return _of_cells(cells, dense[cells])


def value_at_percentile(histogram: Histogram, percentile: float) -> int | None:
    """The value at a percentile within 0 .. 100 by HdrHistogram's rule; None if there are no values.

    The target is floor(percentile * count / 100 + 0.5), at least 1; the answer is the highest value of the
    first cell at which the running count reaches it (at percentile 0 the lowest value of the first cell).
    """
    total = int(histogram.counts.sum())
    if not total:
        return None
    target = max(int(min(percentile, 100.0) * total / 100 + 0.5), 1)
    position = int(np.searchsorted(np.cumsum(histogram.counts), target))
    cell = histogram.indices[position : position + 1]
    return int((highest_value(cell) if percentile else lowest_value(cell))[0])


def mean(histogram: Histogram) -> float | None:
    """The exact mean in nanoseconds (from the sum, not from the cells); None if there are no values."""
    return histogram.sum / histogram.count if histogram.count else None


def encode(histogram: Histogram) -> str:
    """Base64 of the HdrHistogram V2 compressed encoding."""
    # Every non-empty cell is written as its count, every stretch of empty ones before it as minus its length.
    gaps = np.diff(histogram.indices, prepend=-1) - 1
    numbers = np.stack([-gaps, histogram.counts], axis=1).reshape(-1)
    numbers = numbers[numbers != 0]
    # HdrHistogram writes a single zero as 0, not as a stretch of length one.
    numbers = np.where(numbers == -1, 0, numbers)
    payload = _encode_zigzag(numbers)
    header = _HEADER.pack(_V2_COOKIE, len(payload), 0, SIGNIFICANT_DIGITS, LOWEST_NS, HIGHEST_NS, 1.0)
    body = zlib.compress(header + payload)
    return base64.b64encode(_OUTER.pack(_V2_COMPRESSED_COOKIE, len(body)) + body).decode("ascii")


def decode(encoded: str) -> Histogram:
    """The histogram of a V2 compressed encoding in Base64, side values as far as the cells show them.

    Without the exact side values, `sum` uses the middle of each cell and `min` and `max` its bounds, as HdrHistogram
    does; `from_record` sets the exact ones. Raises HistogramError.
    """
    ((indices, counts),) = _decode_cells([encoded])
    return _of_cells(indices, counts)


def _of_cells(indices: Int64s, counts: Int64s) -> Histogram:
    if not indices.size:
        return empty()
    low, high = lowest_value(indices), highest_value(indices)
    middle = low + (high - low + 1) // 2
    return Histogram(
        indices=indices,
        counts=counts,
        count=int(counts.sum()),
        sum=sum((middle * counts).tolist()),
        min=int(low[0]),
        max=int(high[-1]),
        max_at_ns=None,
    )


def from_record(record: Mapping[str, Any]) -> Histogram:
    """The histogram of a record: "v2", the encoding, and SIDES; `overflowed` may be missing.

    In a record written while values were being recorded, one member may be a few values ahead (`check` detects this).
    Raises HistogramError if the record is incomplete or damaged.
    """
    return from_records([record])[0]


def from_records(records: Sequence[Mapping[str, Any]]) -> list[Histogram]:
    """The same for several, which takes a fraction of the time."""
    try:
        cells = _decode_cells([record["v2"] for record in records])
        return [_of_record(record, *of) for record, of in zip(records, cells, strict=True)]
    except (KeyError, TypeError) as error:
        raise HistogramError(f"a histogram record lacks {error}") from error


def from_each(records: Sequence[Mapping[str, Any] | None]) -> list[Histogram | None]:
    """The same, with None for what was not measured."""
    made = iter(from_records([record for record in records if record is not None]))
    return [None if record is None else next(made) for record in records]


def _of_record(record: Mapping[str, Any], indices: Int64s, counts: Int64s) -> Histogram:
    told = {"overflowed": 0, **record}
    whole = {name: int(told[name]) for name in ("count", "sum", *_ADDED)}
    return Histogram(indices, counts, **whole, **{name: told[name] for name in ("min", "max", "max_at_ns")})


def check(histogram: Histogram) -> None:
    """Raises HistogramError if the cells have another number of values than the histogram's count."""
    held = int(histogram.counts.sum())
    if held + histogram.overflowed != histogram.count:
        raise HistogramError(f"a histogram has {held} values but a count of {histogram.count}")


def to_record(histogram: Histogram) -> dict[str, Any]:
    """The record of a histogram, the inverse of `from_record`."""
    return {"v2": encode(histogram), **{name: getattr(histogram, name) for name in SIDES}}


def _encode_zigzag(numbers: Int64s) -> bytes:
    """ZigZag LEB128, seven bits per byte, the ninth byte (if any) whole."""
    rest = ((numbers << 1) ^ (numbers >> 63)).astype(np.uint64)
    columns: list[NDArray[np.uint8]] = []
    used: list[NDArray[np.bool_]] = []
    alive = np.ones(rest.shape, bool)
    for position in range(9):
        last = position == 8
        following = rest >> np.uint64(7) if not last else np.zeros_like(rest)
        low = rest & np.uint64(0xFF if last else 0x7F)
        columns.append((low | np.where(following != 0, np.uint64(0x80), np.uint64(0))).astype(np.uint8))
        used.append(alive)
        rest, alive = following, following != 0
        if not alive.any():
            break
    return np.stack(columns, axis=1)[np.stack(used, axis=1)].tobytes()


def _decode_zigzags(payloads: Sequence[bytes]) -> tuple[Int64s, Int64s]:
    """The numbers of all payloads in a row, and how many each of them has."""
    sizes = np.array([len(payload) for payload in payloads], np.int64)
    data = np.frombuffer(b"".join(payloads), np.uint8)
    if not data.size:
        return np.zeros(0, np.int64), sizes
    ends = np.flatnonzero(data < 0x80)
    bounds = np.cumsum(sizes)
    if (data[bounds[sizes > 0] - 1] < 0x80).all():
        starts = np.zeros_like(ends)
        starts[1:] = ends[:-1] + 1
        lengths = ends - starts + 1
        if lengths.max() <= 8:
            places = np.arange(data.size) - starts.repeat(lengths)
            shifted = (data & np.uint8(0x7F)).astype(np.uint64) << (places * 7).astype(np.uint64)
            held = np.diff(np.searchsorted(ends, bounds), prepend=0)
            return _unzigzag(np.add.reduceat(shifted, starts)), held
    # A number with nine bytes occurs, whose ninth has no continuation bit; or one is cut off.
    each = [_decode_zigzag_bytewise(payload) for payload in payloads]
    return np.concatenate(each), np.array([numbers.size for numbers in each], np.int64)


def _decode_zigzag_bytewise(payload: bytes) -> Int64s:
    numbers: list[int] = []
    value = shift = 0
    for byte in payload:
        if shift == 56:
            value |= byte << 56
        else:
            value |= (byte & 0x7F) << shift
            if byte & 0x80:
                shift += 7
                continue
        numbers.append(value)
        value = shift = 0
    if shift:
        raise HistogramError("an encoded histogram ends within a number")
    return _unzigzag(np.array(numbers, np.uint64))


def _unzigzag(numbers: NDArray[np.uint64]) -> Int64s:
    halves = (numbers >> np.uint64(1)).astype(np.int64)
    signed: Int64s = halves ^ -(numbers & np.uint64(1)).astype(np.int64)
    return signed


def _decode_cells(encoded: Sequence[str]) -> list[tuple[Int64s, Int64s]]:
    """Indices and counts of the non-empty cells of each. All at once: a single one takes 40 steps of numpy, for a few
    cells each."""
    numbers, held = _decode_zigzags([_payload(one) for one in encoded])
    steps = np.where(numbers < 0, -numbers, 1)
    if numbers.size and int(numbers.min()) < -COUNTS_LENGTH:
        raise HistogramError(_TOO_MANY)
    bounds = np.cumsum(held)
    passed = np.concatenate([np.zeros(1, np.int64), np.cumsum(steps)])
    lengths = np.diff(passed[bounds], prepend=0)
    if lengths.size and int(lengths.max()) > COUNTS_LENGTH:
        raise HistogramError(_TOO_MANY)
    filled = numbers > 0
    indices = (passed[1:] - (np.cumsum(lengths) - lengths).repeat(held) - 1)[filled]
    counts = numbers[filled]
    until = np.concatenate([np.zeros(1, np.int64), np.cumsum(filled)])[bounds].tolist()
    return [(indices[a:b], counts[a:b]) for a, b in pairwise([0, *until])]


def _payload(encoded: str) -> bytes:
    """The counts of an encoding, in written form."""
    try:
        blob = base64.b64decode(encoded, validate=True)
        cookie, length = _OUTER.unpack_from(blob)
        if cookie & ~0xF0 != _V2_COMPRESSED_COOKIE & ~0xF0:
            raise HistogramError(f"not a compressed HdrHistogram V2 encoding (cookie {cookie:#x})")
        body = blob[_OUTER.size :]
        if length != len(body):
            raise HistogramError(f"an encoded histogram has {len(body)} bytes instead of {length}")
        inflater = zlib.decompressobj()
        inflated = inflater.decompress(body, _MAX_INFLATED)
        if not inflater.eof:
            raise HistogramError("an encoded histogram is longer than its range allows")
        inner, size, offset, digits, lowest, highest, ratio = _HEADER.unpack_from(inflated)
    except (binascii.Error, struct.error, zlib.error, TypeError, ValueError) as error:
        if isinstance(error, HistogramError):
            raise
        raise HistogramError(f"an encoded histogram is damaged: {error}") from error
    if inner & ~0xF0 != _V2_COOKIE & ~0xF0:
        raise HistogramError(f"not an HdrHistogram V2 payload (cookie {inner:#x})")
    if (digits, lowest, highest, offset) != (SIGNIFICANT_DIGITS, LOWEST_NS, HIGHEST_NS, 0):
        raise HistogramError(
            f"a histogram of {lowest}..{highest} with {digits} digits; "
            f"this program merges {LOWEST_NS}..{HIGHEST_NS} ns with {SIGNIFICANT_DIGITS}"
        )
    del ratio  # integers only: some libraries write 0 or a denormal here
    payload = inflated[_HEADER.size :]
    if len(payload) != size:
        raise HistogramError(f"an encoded histogram holds {len(payload)} bytes of counts instead of {size}")
    return payload
