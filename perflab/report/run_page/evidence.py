"""Whether the conditions held: what each promised beside what it achieved, over all trials."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perflab.columns import AnyTable, Cell, Column, Table, Tone
from perflab.quantity import PLAIN, UNKNOWN
from perflab.report.evidence import by_quantity
from perflab.report.run_page.effects import condition_in_words, numbered, plain
from perflab.report.run_page.runs import ReportRun, of_all
from perflab.units import format_bytes, format_duration, format_time

Json = Mapping[str, Any]
Texts = tuple[
    str, str, str, str
]  # a figure: its name, what was promised, the median and the range of what was achieved

MOST_BLOCKS = 6  # of conditions; of more there is an overview
MOST_NOTES = 2
HELD: dict[bool, tuple[str, Tone]] = {True: ("✔", "good"), False: ("✖", "bad")}


def _in(unit: str) -> Callable[[float], str]:
    return lambda value: f"{plain(value)} {unit}"


# By the end of a key, how its number is written, and whether that end leaves the name. The first one that fits counts.
_FORMS: tuple[tuple[str, Callable[[float], str], bool], ...] = (
    ("megabytes_per_s", _in("MB/s"), True),
    ("_mb_per_s", _in("MB/s"), True),
    ("_bits_per_s", _in("bit/s"), True),
    ("_per_s", _in("/s"), True),
    ("_hz", _in("Hz"), True),
    ("_percent", _in("%"), True),
    ("_cpus", _in("CPUs"), False),
    ("_kb", _in("KiB"), False),
    ("_bytes", format_bytes, True),
    ("_ns", format_time, True),
    ("_s", lambda value: format_duration(value) if value >= 1 else format_time(value * 1e9), True),
    ("share", lambda value: f"{100 * value:.3g} %", False),
)
# Promised under one name, achieved under another.
_ALIKE = {"demand_cpus": "cpus_wanted", "workers": "workers_alive"}


@dataclass(frozen=True)
class Held:
    """A condition in the trials of one result."""

    result: str
    words: str  # what the condition is
    title: str
    judged: str
    sign: str
    tone: Tone
    count: str
    share: float  # of the trials, in which it was in effect
    reasons: Sequence[str]
    notes: Sequence[str]
    figures: Sequence[_Figure]
    everything: AnyTable

    @property
    def first(self) -> _Figure | None:
        return next(iter(self.figures), None)

    @property
    def table(self) -> AnyTable:
        return Table("promised", "Promised and achieved", _FIGURES, self.figures)

    @property
    def folded(self) -> Sequence[str]:
        """What each trial says in other words is for who looks closer."""
        return self.notes if len(self.notes) > MOST_NOTES else ()


@dataclass(frozen=True)
class Evidence:
    """Of a run. Where there are many conditions those that failed come first, and an overview stands above all."""

    run: str  # empty where there is but one
    held: Sequence[Held]
    trials: int

    @property
    def is_long(self) -> bool:
        return len(self.held) > MOST_BLOCKS

    @property
    def failed(self) -> list[Held]:
        return [one for one in self.held if one.share < 1]

    @property
    def overview(self) -> AnyTable:
        return Table("overview", "Promised and achieved", _OVERVIEW, self.held)


def section(runs: Sequence[ReportRun]) -> list[Evidence]:
    found = [_of_run(run, run.name if len(runs) > 1 else "") for run in runs]
    return [evidence for evidence in found if evidence.held]


def _of_run(run: ReportRun, name: str) -> Evidence:
    found: dict[tuple[str, str], list[Json]] = {}
    for label, _, trial in run.trials:
        if not run.is_interrupted(trial):
            for condition, given in trial.evidence.items():
                found.setdefault((label, condition), []).append({**given, "trial": trial.trial})
    parameters = {(label, c): p for _, label, r in of_all([run]) for c, p in r.condition_parameters.items()}
    held = [
        _held(condition, label, entries, parameters.get((label, condition)))
        for (label, condition), entries in sorted(found.items(), key=lambda item: run.labels.index(item[0][0]))
    ]
    return Evidence(name, held, sum(map(len, found.values())))


def _held(condition: str, label: str, entries: Sequence[Json], parameters: object) -> Held:
    n, held = len(entries), sum(bool(e.get("in_effect")) for e in entries)
    count = f"{held} of {n}"
    words = condition_in_words(condition, parameters)
    title = words if label in (condition, words) else f"{words}, in {label}"
    reasons: dict[str, list[int]] = {}
    notes: dict[str, int] = {}
    for entry in entries:
        if not entry.get("in_effect"):
            reasons.setdefault(str(entry.get("reason") or "no reason was recorded"), []).append(entry["trial"])
        for note in [*(entry.get("notes") or ()), *([entry["note"]] if entry.get("note") else [])]:
            notes[str(note)] = notes.get(str(note), 0) + 1
    rows = observed([e.get("promised") or {} for e in entries], [e.get("achieved") or {} for e in entries])
    where = f"{count} trials" if held < n else "its trial" if n == 1 else f"all {n} trials"
    sign, tone = HELD[held == n]
    return Held(
        label,
        words,
        title if title.startswith(condition) else title[:1].upper() + title[1:],
        f"in effect in {where}",
        sign,
        tone,
        count,
        held / n,
        [f"{numbered(trials)}: {reason}" for reason, trials in reasons.items()],
        [f"{note}{f' ({count} of {n} trials)' if n > 1 else ''}" for note, count in notes.items()],
        _figures(condition, entries),
        Table("evidence", "All of the evidence", _EVERYTHING, rows),
    )


# -- what counts of the evidence --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Figure:
    """A number of a condition's evidence over the trials."""

    words: str
    unit: str
    promised: float | None
    achieved: Sequence[float]

    def cell(self, value: float | None) -> Cell:
        return Cell(self.text(value), value)

    def text(self, value: float | None) -> str:
        unit = {"1/s": " /s", "": ""}.get(self.unit, f" {self.unit}")
        return UNKNOWN if value is None else f"{plain(int(value) if value == int(value) else value)}{unit}"

    @property
    def middle(self) -> Cell:
        return self.cell(statistics.median(self.achieved) if self.achieved else None)

    @property
    def range(self) -> str:
        ends = (min(self.achieved), max(self.achieved)) if self.achieved else ()
        return " to ".join(dict.fromkeys(map(self.text, ends)))


def _figures(condition: str, entries: Sequence[Json]) -> list[_Figure]:
    return [
        _Figure(
            words,
            unit,
            next((q.promised for q in found if q.promised is not None), None),
            [q.achieved for q in found if q.achieved is not None],
        )
        for (words, unit), found in by_quantity(condition, entries).items()
    ]


_FIGURES: list[Column[_Figure]] = [
    Column("figure", "figure", lambda figure: figure.words),
    Column("promised", "promised", lambda figure: figure.cell(figure.promised), PLAIN),
    Column("achieved", "achieved, median", lambda figure: figure.middle, PLAIN),
    Column("range", "range over trials", lambda figure: figure.range),
]


def _of_first(column: Column[_Figure]) -> Column[Held]:
    """What a column says of the first figure that counts."""

    def read(held: Held) -> Cell | None:
        return None if held.first is None else column.cell(held.first)

    return Column(column.name, column.header, read, column.quantity)


_OVERVIEW: list[Column[Held]] = [
    Column("result", "result", lambda held: held.result),
    Column("condition", "condition", lambda held: held.words),
    Column("in_effect", "in effect", lambda held: Cell(held.count, held.share, held.tone, sign=held.sign), PLAIN),
    *map(_of_first, _FIGURES),
]


# -- everything else in it --------------------------------------------------------------------------------------------

_EVERYTHING: list[Column[Texts]] = [
    Column("figure", "figure", lambda row: row[0]),
    Column("promised", "promised", lambda row: Cell(row[1], _sorted_by(row[1]))),
    Column("achieved", "achieved, median", lambda row: Cell(row[2], _sorted_by(row[2]))),
    Column("range", "range over trials", lambda row: Cell(row[3], _sorted_by(row[3]))),
]


def _sorted_by(text: str) -> str | None:
    return None if text == UNKNOWN else text


def observed(promised: Sequence[Json], achieved: Sequence[Json]) -> list[Texts]:
    """A row per figure: its name, what was promised, the median of what was achieved, and the range over trials.

    Figures of both come first. Lists of numbers (per second, per thread) are taken as their values together.
    """
    wanted = _flat(promised[0]) if promised else {}
    known = [_flat(one) for one in achieved]
    keys = list(dict.fromkeys(key for one in known for key in one))
    rows: list[Texts] = []
    used: set[str] = set()
    for key, promise in wanted.items():
        other = key if key in keys else _ALIKE.get(key, key)
        if other in keys:
            used.add(other)
            rows.append((_name(other), _value(key, promise), *_over_trials(other, known)))
    rows += [
        (_name(k), _value(k, p), "–", "–") for k, p in wanted.items() if k not in used and _ALIKE.get(k) not in used
    ]
    rows += [(_name(key), "–", *_over_trials(key, known)) for key in keys if key not in used]
    return [row for row in rows if row[1:] != ("–", "–", "–")]


def _flat(document: Json, prefix: str = "") -> dict[str, Any]:
    """Members of members as "name: member"; what is a list of objects is left to trial.json."""
    found: dict[str, Any] = {}
    for key, value in document.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{prefix}{key}: ")
        elif not (isinstance(value, list) and any(isinstance(v, Mapping | list) for v in value)):
            found[f"{prefix}{key}"] = value
    return found


def _over_trials(key: str, known: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    values = [one[key] for one in known if one.get(key) is not None]
    numbers: list[float] = []
    for value in values:
        parts = value if isinstance(value, list) else [value]
        if not all(isinstance(v, int | float) and not isinstance(v, bool) for v in parts if v is not None):
            told = dict.fromkeys(_value(key, v) for v in values)
            return "; ".join(told) or "–", "–"
        numbers += [float(v) for v in parts if v is not None]
    if key == "cpus" or key.startswith("cpus_shared"):
        return "; ".join(dict.fromkeys(_value(key, v) for v in values)), "–"
    if not numbers:
        return "–", "–"
    low, high = min(numbers), max(numbers)
    whole = all(n == int(n) for n in numbers)
    form = [_value(key, int(n) if whole and n == int(n) else n) for n in (statistics.median(numbers), low, high)]
    return form[0], form[1] if low == high else f"{form[1]} to {form[2]}"


def _name(key: str) -> str:
    for end, _, leaves in _FORMS:
        if leaves and key.endswith(end):
            return (key.removesuffix(end).rstrip("_") or "data").replace("_", " ")
    return key.replace("_", " ")


def _value(key: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return plain(value)
    return next((write for end, write, _ in _FORMS if key.endswith(end)), plain)(value)
