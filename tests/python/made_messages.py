"""Single messages of a made run, written as perflab-node writes them (docs/formats.md, section 17)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from perflab.formats import messages

UNKNOWN = np.iinfo(np.int64).min
WARM_UP, COUNTED = 1, 2

TYPE = "made_msgs/msg/Pose"
DEFINITIONS = {
    TYPE: "# Where something is\nPoint position\nstring<=32 frame\n",
    "made_msgs/msg/Point": "float64 x\nfloat64 y\n",
}


def pose(x: float, y: float, frame: str) -> bytes:
    """TYPE in CDR."""
    text = frame.encode() + b"\0"
    return b"\x00\x01\x00\x00" + np.array([x, y], "<f8").tobytes() + np.uint32(len(text)).tobytes() + text


def write_log(
    processes: Path,
    name: str,
    *,
    publishers: Sequence[tuple[str, str]] = (),
    edges: Sequence[tuple[str, str, str]] = (),
    services: Sequence[tuple[str, str, str]] = (),
    counts: dict[str, Any] | None = None,
) -> None:
    """What the numbers in rows stand for; after the records that there are."""
    log = {
        "type": "message_log",
        "publishers": [{"node": n, "topic": t, "type": TYPE} for n, t in publishers],
        "edges": [dict(zip(("publisher", "topic", "subscription"), e, strict=True)) for e in edges],
        "services": [dict(zip(("client", "service", "server"), s, strict=True)) for s in services],
        "definitions": {TYPE: DEFINITIONS},
    }
    with (processes / f"{name}.jsonl").open("a") as file:
        for record in (log, {"type": "message_counts", **(counts or {})}):
            file.write(json.dumps(record) + "\n")


def write_deliveries(processes: Path, name: str, rows: Sequence[tuple[int, ...]]) -> None:
    """Members of each as in messages.DELIVERY."""
    np.array(list(rows), messages.DELIVERY).tofile(processes / f"{name}{messages.DELIVERED}")


def write_publications(processes: Path, name: str, rows: Sequence[tuple[int, ...]], contents: Sequence[bytes]) -> None:
    """Members of each as in messages.PUBLICATION up to `offset`; `contents` are in the order of the rows."""
    array = np.zeros(len(rows), messages.PUBLICATION)
    offset = 0
    for place, (row, data) in enumerate(zip(rows, contents, strict=True)):
        array[place] = (*row, offset, len(data))
        offset += len(data)
    array.tofile(processes / f"{name}{messages.PUBLISHED}")
    (processes / f"{name}{messages.CONTENTS}").write_bytes(b"".join(contents))
