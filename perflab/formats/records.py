"""The records of one perflab-node process, from its JSON lines (docs/formats.md, section 4).

The file is append-only and its writer may have been killed at any instant: a last line without an end, or one that is
not JSON, is left out and reported, and everything before it counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NOT_KNOWN_NS = 1 << 62  # the end of a measured part that is not known yet


class RecordError(ValueError):
    """A line in the middle of a record file is damaged; the text names file and line."""


@dataclass(frozen=True)
class Start:
    """The time of the measured part. Instants are CLOCK_MONOTONIC (virtual time with the virtual runtime).

    If it has no end of its own, and the process ended before its end was set, it lasts until the last record.
    """

    at_ns: int
    measured_from_ns: int
    measured_until_ns: int
    matched: bool


@dataclass(frozen=True)
class ProcessRecords:
    """What one process recorded. `checkpoint` is its last complete one, None if it wrote none."""

    name: str
    process: dict[str, Any] | None = None
    start: Start | None = None
    events: list[dict[str, Any]] = field(default_factory=list)
    resources: list[dict[str, Any]] = field(default_factory=list)
    checkpoint: dict[str, Any] | None = None
    truncated: bool = False
    threads: list[dict[str, Any]] = field(default_factory=list)  # readings of the kernel, at the start and at the end
    passing: dict[str, Any] | None = None
    allocation_sites: dict[str, Any] | None = None
    progress: list[dict[str, Any]] = field(default_factory=list)  # of every second, without histograms
    end: dict[str, Any] | None = None
    cost: list[dict[str, Any]] = field(default_factory=list)  # at the start and the end of the measured part
    loops: list[dict[str, Any]] = field(default_factory=list)  # rows of loops, as written
    program: list[dict[str, Any]] = field(default_factory=list)  # reports of its program

    @property
    def thread_states(self) -> dict[int, dict[str, Any]]:
        """The last reading of every thread, by thread id."""
        return {thread["tid"]: thread for reading in self.threads for thread in reading.get("threads", ())}

    @property
    def final(self) -> bool:
        """Whether the last checkpoint was written after the drain."""
        return bool(self.checkpoint and self.checkpoint.get("final"))


# Of these, the last one counts.
LAST = ("process", "process_end", "start", "end", "checkpoint", "passing", "allocation_sites")


def read(path: Path, name: str) -> ProcessRecords:
    """All records of a file; empty if the file does not exist. Raises RecordError and OSError."""
    last: dict[str, dict[str, Any]] = {}  # of LAST
    kept = ("event", "resources", "threads", "cost", "loops", "program")
    all_of: dict[str, list[dict[str, Any]]] = {of_type: [] for of_type in kept}
    progress: list[dict[str, Any]] = []
    truncated = False
    for record in lines(path):
        if record is None:
            truncated = True
            continue
        of_type = str(record.get("type"))
        if of_type == "progress":
            progress.append({key: value for key, value in record.items() if not isinstance(value, str)})
        elif of_type in all_of:
            all_of[of_type].append(record)
        elif of_type in LAST:  # readers must ignore unknown records
            last[of_type] = record
    return ProcessRecords(
        name,
        process=last.get("process"),
        end=last.get("process_end"),
        start=_start(last, [*progress, *all_of["resources"]], path) if "start" in last else None,
        checkpoint=without_conditions(last["checkpoint"]) if "checkpoint" in last else None,
        passing=last.get("passing"),
        allocation_sites=last.get("allocation_sites"),
        truncated=truncated,
        events=all_of["event"],
        resources=all_of["resources"],
        threads=all_of["threads"],
        cost=all_of["cost"],
        loops=all_of["loops"],
        program=all_of["program"],
        progress=progress,
    )


def without_conditions(checkpoint: dict[str, Any]) -> dict[str, Any]:
    """The checkpoint without the publishers, edges and services of nodes that a condition added."""
    own = {
        key: [entry for entry in checkpoint[key] if not entry.get("condition")]
        for key in ("publishers", "edges", "services")
        if isinstance(checkpoint.get(key), list)
    }
    return {**checkpoint, **own}


def lines(path: Path, *types: str) -> Iterator[dict[str, Any] | None]:
    """The objects of a file, and None for a truncated last line.

    Only of these types, if any are given; other types may be included, but most of a file is skipped.
    """
    wanted = re.compile(rb'"type":\s*"(?:%s)"' % b"|".join(of.encode() for of in types)) if types else None
    if not path.exists():
        return
    if not path.is_file():
        raise RecordError(f"{path}: not a regular file")
    with path.open("rb") as file:
        previous_damaged: int | None = None
        for number, line in enumerate(file, start=1):
            if previous_damaged is not None:
                raise RecordError(f"{path}:{previous_damaged}: not a JSON object; the file was changed or damaged")
            if wanted is not None and line.startswith(b"{") and line.endswith(b"}\n") and not wanted.search(line):
                continue
            record = _parse(line)
            if record is None:
                previous_damaged = number
                continue
            yield record
        if previous_damaged is not None:
            yield None


def _parse(line: bytes) -> dict[str, Any] | None:
    if not line.endswith(b"\n"):
        return None  # possibly complete by chance, but its writer had not finished
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def measured_until_ns(record: dict[str, Any]) -> int:
    """From a record with the end of the measured part: of type `start`, or `end` if that has null."""
    until_ns = record["measured_until_ns"]
    return NOT_KNOWN_NS if until_ns is None else int(until_ns)


def _start(last: dict[str, dict[str, Any]], timed: Iterable[dict[str, Any]], path: Path) -> Start:
    """`timed` are records with instants up to which the process ran."""
    try:
        record = last["start"]
        from_ns = int(record["measured_from_ns"])
        until_ns = measured_until_ns(last.get("end", record))
        if until_ns == NOT_KNOWN_NS:
            until_ns = max([from_ns, *(int(of["at_ns"]) for of in timed)])
        return Start(
            at_ns=int(record["at_ns"]),
            measured_from_ns=from_ns,
            measured_until_ns=until_ns,
            matched=bool(record["matched"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise RecordError(f"{path}: the start record lacks {error}") from error
