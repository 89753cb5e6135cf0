"""The loops of timers whose messages come back (docs/formats.md, section 4), from the records of processes.

A loop is written when it is complete; one that was open at a checkpoint is also written in its state then. The last
record counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from perflab.formats.records import ProcessRecords
from perflab.results.loops import INSTANTS, Life, Loop, Loops

if TYPE_CHECKING:
    import polars as pl


def of(process: str, written: Iterable[Mapping[str, Any]]) -> list[Loops]:
    """The loops of each timer of a process, from its records of type `loops`. Raises KeyError, TypeError,
    ValueError."""
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


def of_table(table: pl.DataFrame) -> list[Loops]:
    """The loops of each timer of a trial, from its table (perflab/formats/tables.py). Loops that did not fit are in no
    table."""
    found = []
    for (process, node, timer), own in table.partition_by(
        "process", "node", "timer", as_dict=True, maintain_order=True
    ).items():
        rows = own.select("loop", *INSTANTS).iter_rows(named=True)
        period_ns = int(own["period_ns"][0])
        found.append(
            Loops(
                process=process, node=node, timer=timer, period_ns=period_ns, beyond=0,
                rows=tuple(Loop(**row) for row in rows),
            )
        )  # fmt: skip
    return found


def life(process: ProcessRecords) -> Life:
    """When a process began, matched, was started and ended. Raises KeyError, TypeError, ValueError."""
    start, end = process.start, process.end
    matched = [int(e["at_ns"]) for e in process.events if e["code"] == "all_endpoints_matched"]
    timed = [*process.events, *process.resources, *process.progress, *process.loops, process.checkpoint or {}]
    return Life(
        process=process.name,
        began_ns=min((int(e["at_ns"]) for e in process.events), default=None),
        matched_ns=max(matched, default=None),
        start_ns=None if start is None else start.at_ns,
        measured_from_ns=None if start is None else start.measured_from_ns,
        measured_until_ns=None if start is None else start.measured_until_ns,
        last_ns=max((int(record["at_ns"]) for record in timed if "at_ns" in record), default=None),
        ended_ns=None if end is None else int(end["at_ns"]),
    )
