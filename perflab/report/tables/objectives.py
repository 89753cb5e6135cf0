"""Named paths of traced trials, the objectives formed from them, and how much these depend on their weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from perflab.columns import AnyTable, Column, Read, Table
from perflab.quantity import COUNT, FACTOR, NUMBER, PERCENT, PLAIN, TIME
from perflab.report.label import labels
from perflab.report.tables.messages import RUN, Of, result_column
from perflab.results.objective import BETTER, WORSE, ObjectiveResult, PathResult
from perflab.results.trial import Result

TITLE = "Objectives"
_MOST_CHANGES = 3  # changes of a weight that reverse a verdict, in a sentence


@dataclass(frozen=True)
class Named:
    trial: int
    path: PathResult


@dataclass(frozen=True)
class Measured:
    measure: str
    objective: ObjectiveResult


def tables(rows: Sequence[Of[Result]]) -> list[AnyTable]:
    """The paths, and the objectives; none if no trial evaluated any."""
    rows = _among_themselves([row for row in rows if any(trial.paths for trial in row.record.trials_detail)])
    paths = [path for row in rows for path in row.parts(_paths)]
    found = [measured for row in rows for measured in row.parts(_objectives)]
    return [*([_named(paths)] if paths else []), *([_weighed(found)] if found else [])]


def _among_themselves(rows: Sequence[Of[Result]]) -> list[Of[Result]]:
    """Labels show their differences: the title already says that they were traced."""
    found: list[Of[Result]] = []
    for run in dict.fromkeys(row.run for row in rows):
        own = [row for row in rows if row.run == run]
        names = labels([replace(row.record, purpose=None) for row in own]) if len(own) > 1 else [own[0].record.label]
        found += [replace(row, result=name) for row, name in zip(own, names, strict=True)]
    return found


def _paths(result: Result) -> list[Named]:
    return [Named(trial.trial, path) for trial in result.trials_detail for path in trial.paths or ()]


def _objectives(result: Result) -> list[Measured]:
    return [Measured(measure, objective) for measure, objective in result.objectives.items()]


def _named(rows: Sequence[Of[Named]]) -> Table[Of[Named]]:
    several = len({(row.result, row.run, row.record.trial) for row in rows}) > len({(r.result, r.run) for r in rows})
    missing = dict.fromkeys(f"{r.record.path.name}: {r.record.path.reason}" for r in rows if r.record.path.reason)
    ways = {r.record.path.name: r.record.path.route or f"times {r.record.path.times}" for r in rows}
    trial = Column[Of[Named]]("trial", "trial", lambda row: row.record.trial, PLAIN, rank=2)
    return Table(
        "paths",
        "Named paths of traced trials",
        [
            result_column(1),
            RUN,
            *([trial] if several else []),
            Column("path", "path", lambda row: row.record.path.name, rank=0),
            Column("deadline_ns", "deadline", lambda row: row.record.path.deadline_ns, TIME, rank=0),
            Column("weight", "weight", lambda row: row.record.path.weight, NUMBER, rank=3),
            Column("judged", "judged", lambda row: row.record.path.judged, COUNT, rank=4),
            Column("late", "late", lambda row: row.record.path.late, COUNT, rank=5, tone="warn"),
            Column(
                "never_arrived", "never arrived", lambda row: row.record.path.never_arrived, COUNT, rank=5, tone="warn"
            ),
            Column("misses_percent", "misses", lambda row: row.record.path.misses_percent, PERCENT, rank=0, tone="bad"),
            *(
                Column(f"latency_{name}_ns", name, _latency(name), TIME, rank=rank, group="latency")
                for name, rank in (("p50", 1), ("p99", 1), ("max", 2))
            ),
        ],
        rows,
        [*(f"{name}: {way}" for name, way in ways.items() if way), *(f"not measured: {words}" for words in missing)],
    )


def _latency(name: str) -> Callable[[Of[Named]], Read]:
    def read(row: Of[Named]) -> Read:
        found: int | None = getattr(row.record.path, f"latency_{name}_ns")
        return found

    return read


def _weighed(rows: Sequence[Of[Measured]]) -> Table[Of[Measured]]:
    columns: list[Column[Of[Measured]]] = [
        result_column(1),
        RUN,
        Column("measure", "by", lambda row: row.record.objective.what, rank=0, called="measure"),
        Column("total", "total", lambda row: row.record.objective.total, NUMBER, rank=0),
    ]
    if any(row.record.objective.verdict for row in rows):
        columns += [
            Column("baseline_total", "baseline", lambda row: row.record.objective.baseline_total, NUMBER, rank=3),
            Column("ratio", "ratio", lambda row: row.record.objective.ratio, FACTOR, rank=0),
            Column("one_weight", "one weight changed", lambda row: _range(row.record.objective, "low", "high"), rank=2),
            Column("any_weights", "any weights", lambda row: _range(row.record.objective, "least", "most"), rank=1),
            Column("verdict", "verdict", lambda row: verdict(row.record.objective), rank=0),
        ]
    unknown = dict.fromkeys(
        f"{r.record.objective.what}: unknown, because {r.record.objective.reason}"
        for r in rows
        if r.record.objective.reason
    )
    notes = ["Total: sum of weight × score / sum of the weights; smaller is better. Weights: " + _weights(rows) + "."]
    if len(columns) > 4:
        notes.append(
            "Ratio: total / baseline's; one weight changed: its range with the weight of any one path changed by "
            "10 or 50 %, or the path left out; any weights: its range over all weights. None of these include "
            "differences between trials."
        )
    return Table("objectives", TITLE, columns, rows, [*notes, *(f"{words}." for words in unknown)])


def _weights(rows: Sequence[Of[Measured]]) -> str:
    weights = {name: weight for row in rows for name, weight in row.record.objective.weights.items()}
    return ", ".join(f"{name} {weight:g}" for name, weight in weights.items())


def _range(objective: ObjectiveResult, low: str, high: str) -> str | None:
    ends = [getattr(objective, end) for end in (low, high)]
    if ends == [None, None]:
        return None
    return " to ".join("without bound" if end is None else FACTOR.text(end) for end in ends)


def verdict(objective: ObjectiveResult) -> str | None:
    """ "worse, whatever the weights"; "worse; better with planning +50 %"."""
    if objective.verdict is None:
        return None
    if objective.hangs_on_weights is False:
        return f"{objective.verdict}, whatever the weights"
    other = BETTER if objective.verdict == WORSE else WORSE
    if not objective.turned_by:
        return f"{objective.verdict}; {other} only where several weights change"
    shown = ", ".join(objective.turned_by[:_MOST_CHANGES])
    more = len(objective.turned_by) - _MOST_CHANGES
    return f"{objective.verdict}; {other} with {shown}{f' and {more} more' if more > 0 else ''}"
