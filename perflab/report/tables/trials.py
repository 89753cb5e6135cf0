"""The trials of a run as a table: when each one ran, under which circumstances, how it ended, and what it measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perflab.quantity import COUNT, DURATION, PLAIN, UNKNOWN
from perflab.report.tables.messages import RUN, counted_column, cpu, times
from perflab.report.tables.model import Cell, Column, Table, Tone
from perflab.results.trial import MEASURED, Outcome, Result, Trial, least_lost, owners, received

Json = Mapping[str, Any]

OUTCOMES: dict[Outcome, tuple[str, str, Tone]] = {
    "success": ("✔", "success", "good"),
    "failed": ("✖", "failed", "bad"),
    "invalid": ("!", "invalid", "warn"),
    "harness_error": ("!", "harness error", "warn"),
}


@dataclass(frozen=True)
class TrialOf:
    """A trial, its result, how that is called, and trial.json (empty where there is none)."""

    record: Trial
    of: Result
    result: str
    document: Json
    run: str = ""


def trials(rows: Sequence[TrialOf]) -> Table[TrialOf]:
    latency = times("latency", lambda trial: trial.totals.latency_ns, dict.fromkeys(("p50", "p99", "max")))
    return Table(
        "Trials",
        [
            Column("trial", "trial", lambda row: row.record.trial, PLAIN),
            RUN,
            Column("order", "order", lambda row: row.record.order, PLAIN, help="where it stood in the plan"),
            Column("block", "block", lambda row: row.record.block, PLAIN),
            Column("result", "result", _result),
            Column("after", "after", lambda row: row.record.after, help="the disturbance right before it"),
            Column("outcome", "outcome", _outcome),
            *latency,
            Column("received", "received", lambda row: received(row.record), COUNT),
            Column("lost", "lost", lambda row: least_lost(*owners(row.record)), COUNT, tone="bad"),
            counted_column("late", "late", tone="warn"),
            cpu(lambda row: row.record.resources),
            Column("cool_down", "cool-down", _cooled, DURATION, help="how long it waited for a quiet machine"),
            Column("began", "began", lambda row: _clock(row.document.get("started_utc")), help="time of day, UTC"),
        ],
        rows,
    )


def _result(row: TrialOf) -> Cell:
    purpose = "" if row.record.purpose in (None, MEASURED) else f"{row.record.purpose} trial"
    return Cell(row.result, row.result, below=() if purpose in row.result or purpose == "control trial" else (purpose,))


def _outcome(row: TrialOf) -> Cell:
    sign, words, tone = OUTCOMES[row.record.outcome]
    return Cell(words, words, tone, (row.record.reason or "",), sign)


def _cooled(row: TrialOf) -> float | Cell | None:
    cool_down = row.document.get("cool_down") or {}
    waited = cool_down.get("waited_s")
    text = UNKNOWN if waited is None else DURATION.text(waited) if waited >= 0.0005 else "0 s"
    if cool_down.get("reached") is False:
        return Cell(text, waited, "warn", (_busy(cool_down),), "!")
    return Cell(text, waited)


def _busy(cool_down: Json) -> str:
    busy = cool_down.get("busy_percent")
    return "not quiet" if busy is None else f"not quiet: {busy:.3g} % busy"


def _clock(text: object) -> str | None:
    """The time of day of an instant as trial.json writes it."""
    return str(text)[11:19] if isinstance(text, str) and len(text) >= 19 else None
