"""The loops of timers whose messages come back (docs/formats.md, section 4), from the records of processes.

A loop is written once it is complete; one that was open at a checkpoint also as it was then. The last word counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perflab.formats import records

INSTANTS = ("due_ns", "woken_ns", "published_ns", "sent_ns", "answered_ns", "back_ns")


@dataclass(frozen=True, kw_only=True)
class Loop:
    """One loop. None is what had not happened when the process wrote its last records."""

    loop: int
    """From 0."""
    due_ns: int
    woken_ns: int | None
    published_ns: int | None
    sent_ns: int | None
    answered_ns: int | None
    back_ns: int | None


@dataclass(frozen=True, kw_only=True)
class Loops:
    """Those of one timer, in the order of the schedule; `beyond`: how many ticks there was no room for."""

    process: str
    node: str
    timer: str
    period_ns: int
    beyond: int
    rows: tuple[Loop, ...]


def of(process: str, written: Iterable[Mapping[str, Any]]) -> list[Loops]:
    """The loops of each timer of a process, of its records of type `loops`. Raises KeyError, TypeError, ValueError."""
    found: dict[tuple[str, str], tuple[Mapping[str, Any], dict[int, Loop]]] = {}
    for record in written:
        _, rows = found.setdefault((record["node"], record["timer"]), (record, {}))
        found[record["node"], record["timer"]] = (record, rows)
        columns = [record[name] for name in INSTANTS]
        for number, *instants in zip(record["loop"], *columns, strict=True):
            rows[number] = Loop(loop=number, **dict(zip(INSTANTS, instants, strict=True)))
    return [
        Loops(
            process=process,
            node=node,
            timer=timer,
            period_ns=last["period_ns"],
            beyond=last["beyond"],
            rows=tuple(rows[number] for number in sorted(rows)),
        )
        for (node, timer), (last, rows) in found.items()
    ]


def read(processes: Path) -> list[Loops]:
    """Of all processes of a trial, whose records lie in this folder. Raises RecordError, OSError and what `of` does."""
    found: list[Loops] = []
    for path in sorted(processes.glob("*.jsonl")):
        written: Sequence[dict[str, Any] | None] = list(records.lines(path, "loops"))
        found += of(path.stem, [r for r in written if r is not None and r.get("type") == "loops"])
    return found
