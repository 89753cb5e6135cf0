"""The trials of a run as a table: when each one ran, under which circumstances, its outcome, and its measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perflab.columns import Cell, Column, Table
from perflab.quantity import COUNT, DURATION, PLAIN, UNKNOWN
from perflab.report.tables.messages import RUN, counted_column, cpu, times
from perflab.results.files import CoolDown, TrialFile
from perflab.results.trial import MEASURED, Result, Trial, least_lost, owners, received
from perflab.statistics.metrics import METRICS, Metric, find, made_by

Json = Mapping[str, Any]


@dataclass(frozen=True)
class TrialOf:
    """A trial, its result, the result's label, and trial.json (None if there is none)."""

    record: Trial
    of: Result
    result: str
    file: TrialFile | None
    run: str = ""


TRIAL: Column[TrialOf] = Column("trial", "trial", lambda row: row.record.trial, PLAIN, help="its number")
ORDER: Column[TrialOf] = Column("order", "order", lambda row: row.record.order, PLAIN, help="place in the plan")
BLOCK: Column[TrialOf] = Column("block", "block", lambda row: row.record.block, PLAIN, help="of which it was a part")


def trials(rows: Sequence[TrialOf]) -> Table[TrialOf]:
    """For people: a trial's measurements at a glance, whatever the number of its messages."""
    latency = times("latency", lambda trial: trial.totals.latency_ns, dict.fromkeys(("p50", "p99", "max")))
    return Table(
        "trials",
        "Trials",
        [
            TRIAL,
            RUN,
            ORDER,
            BLOCK,
            Column("result", "result", _result),
            AFTER,
            OUTCOME,
            *latency,
            Column("received", "received", lambda row: received(row.record), COUNT),
            Column("lost", "lost", lambda row: least_lost(*owners(row.record)), COUNT, tone="bad"),
            counted_column("late", "late", tone="warn"),
            cpu(lambda row: row.record.resources),
            COOL_DOWN,
            BEGAN,
        ],
        rows,
    )


def measurements(rows: Sequence[TrialOf]) -> Table[TrialOf]:
    """For programs: the circumstances of each trial, its outcome, and every metric that any of them measured."""
    factors = dict.fromkeys(path for row in rows for path in row.of.factors)
    figures = dict.fromkeys(
        name for row in rows for f, e in row.record.key_figures.items() for name in made_by({f: e.kind})
    )
    metrics = [metric for name in (*METRICS, *figures) if (metric := find(name)) is not None]
    return Table(
        "measurements",
        "Trials",
        [
            TRIAL,
            ORDER,
            BLOCK,
            *(_asked(name, help_) for name, help_ in _ASKED.items()),
            *(_level(path) for path in factors),
            _asked("purpose", "measured, control (a baseline without the observers), or extra"),
            Column("duration", "duration", lambda row: row.of.duration_s, DURATION, help="requested measured time"),
            Column("measured", "measured", lambda row: row.record.measured_s, DURATION, help="actual measured time"),
            AFTER,
            BEGAN,
            COOL_DOWN,
            OUTCOME,
            *([OWN_OUTCOME] if any(row.record.own_outcome for row in rows) else []),
            Column("reason", "reason", lambda row: row.record.reason, help="why it was not a success"),
            Column(
                "enters", "enters", lambda row: str(row.record in row.of.entering).lower(),
                help="whether it is included in statistics over trials",
            ),
            *map(_metric, metrics),
        ],
        rows,
    )  # fmt: skip


_ASKED = {
    "workload": "what ran",
    "middleware": "joined with + if each process has its own",
    "executor": "executor that replaced those of the graph",
    "ipc": "delivery within a process, on or off",
    "pass_by": "how all publishers pass messages",
    "phase": "phase of the timers within their periods",
    "label": "the combination of conditions and their levels",
    "conditions": "joined with +",
    "observers": "joined with +",
}


def _asked(name: str, help_: str) -> Column[TrialOf]:
    def read(row: TrialOf) -> str | None:
        found = getattr(row.of, name)
        return "+".join(found) if isinstance(found, tuple) else found

    return Column("treatment" if name == "label" else name, name, read, help=help_)


def _level(path: str) -> Column[TrialOf]:
    """Level of a factor, as written in the experiment."""

    def read(row: TrialOf) -> str | None:
        level = row.of.factors.get(path)
        return None if level is None else str(level)

    return Column(path, path, read, help="level of this factor")


def _metric(metric: Metric) -> Column[TrialOf]:
    return Column(
        metric.name, metric.words, lambda row: metric.read(row.record).value, metric.quantity, help=metric.help
    )


def _result(row: TrialOf) -> Cell:
    purpose = "" if row.record.purpose in (None, MEASURED) else f"{row.record.purpose} trial"
    return Cell(row.result, row.result, below=() if purpose in row.result or purpose == "control trial" else (purpose,))


def _outcome(row: TrialOf) -> Cell:
    outcome = row.record.outcome
    return Cell(row.record.ended, outcome, outcome.tone, (row.record.reason or "",), outcome.sign)


def _cooled(row: TrialOf) -> float | Cell | None:
    cool_down = None if row.file is None else row.file.cool_down
    waited = None if cool_down is None else cool_down.waited_s
    text = UNKNOWN if waited is None else DURATION.text(waited) if waited >= 0.0005 else "0 s"
    if cool_down is not None and cool_down.reached is False:
        return Cell(text, waited, "warn", (_busy(cool_down),), "!")
    return Cell(text, waited)


def _busy(cool_down: CoolDown) -> str:
    busy = cool_down.busy_percent
    return "not quiet" if busy is None else f"not quiet: {busy:.3g} % busy"


def _began(row: TrialOf) -> Cell | None:
    """The time of day of the instant in trial.json."""
    instant = None if row.file is None else row.file.started_utc
    return None if instant is None else Cell(instant[11:19], instant)


AFTER: Column[TrialOf] = Column("after", "after", lambda row: row.record.after, help="the disturbance just before it")
OUTCOME: Column[TrialOf] = Column("outcome", "outcome", _outcome, help="how it ended")
OWN_OUTCOME: Column[TrialOf] = Column(
    "own_outcome",
    "own outcome",
    lambda row: own.words if (own := row.record.own_outcome) is not None else None,
    help="what the kind of workload says about it",
)
COOL_DOWN: Column[TrialOf] = Column("cool_down", "cool-down", _cooled, DURATION, help="wait for a quiet machine")
BEGAN: Column[TrialOf] = Column("began", "began", _began, help="UTC")
