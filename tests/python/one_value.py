"""The record of a histogram that holds one value many times, as perflab-node writes it.

For the double of perflab-node, of which most tests start several: `perflab.statistics.histogram` needs numpy, whose
import takes longer than all else that the double does.
"""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

SUB_BUCKET_BITS = 11  # three significant digits: cells below 2 ** 11 hold one value each
LOWEST_NS, HIGHEST_NS, DIGITS = 1, 100_000_000_000, 3


def record(value_ns: int, count: int, max_at_ns: int | None = None) -> dict[str, Any]:
    """The record of `count` times `value_ns`, of which the first was at `max_at_ns`."""
    one = value_ns if count else None
    return {
        "v2": encode(value_ns, count),
        "count": count,
        "sum": value_ns * count,
        "min": one,
        "max": one,
        "max_at_ns": max_at_ns if count else None,
        "saturated": 0,
        "negative": 0,
        "overflowed": 0,
    }


def encode(value_ns: int, count: int) -> str:
    """Base64 of HdrHistogram's V2 compressed encoding: the stretch of empty cells before the one, and its count."""
    bucket = max(value_ns.bit_length() - SUB_BUCKET_BITS, 0)
    cell = (bucket << (SUB_BUCKET_BITS - 1)) + (value_ns >> bucket)
    payload = _zigzag(-cell) + _zigzag(count) if count else b""
    header = struct.pack(">iiiiqqd", 0x1C849313, len(payload), 0, DIGITS, LOWEST_NS, HIGHEST_NS, 1.0)
    body = zlib.compress(header + payload)
    return base64.b64encode(struct.pack(">ii", 0x1C849314, len(body)) + body).decode("ascii")


def _zigzag(number: int) -> bytes:
    rest = (number << 1) ^ (number >> 63)
    encoded = bytearray()
    while rest > 0x7F:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*encoded, rest])
