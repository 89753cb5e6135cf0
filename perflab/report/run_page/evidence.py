"""Whether the conditions held: promised and achieved values of each, over all trials."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perflab.columns import Cell, Column, Table, Tone
from perflab.quantity import PLAIN, UNKNOWN
from perflab.report.evidence import Quantity, over_trials
from perflab.report.run_page.blocks import Block, Fold, Group, Heading, Items, Sheet, Text, each, paragraphs
from perflab.report.run_page.effects import condition_in_words, plain
from perflab.report.runs import ReportRun, of_all
from perflab.units import format_bytes, format_duration, format_time, numbered

Json = Mapping[str, Any]
# A figure: its name, the promise, the median and the range of the achieved values.
Texts = tuple[str, str, str, str]

MOST_BLOCKS = 6  # number of conditions; with more there is an overview
MOST_NOTES = 2
HELD: dict[bool, tuple[str, Tone]] = {True: ("✔", "good"), False: ("✖", "bad")}


@dataclass(frozen=True)
class _Held:
    """A condition in the trials of one result: its evidence in each of them, with the number of the trial."""

    condition: str
    result: str
    words: str  # description of the condition
    entries: Sequence[Json]

    @property
    def in_effect(self) -> int:
        return sum(bool(entry.get("in_effect")) for entry in self.entries)

    @property
    def always(self) -> bool:
        return self.in_effect == len(self.entries)

    @property
    def quantities(self) -> list[Quantity]:
        return over_trials(self.condition, self.entries)


def section(runs: Sequence[ReportRun]) -> Iterator[Block]:
    """Every condition of each run. If there are many, those that failed come first, and a table of all."""
    for run, heading in each(runs):
        held = _held(run)
        if not held:
            continue
        yield from heading
        blocks = [block for one in held for block in _condition(one)]
        if len(held) <= MOST_BLOCKS:
            yield from blocks
            continue
        trials = sum(len(one.entries) for one in held)
        failed = [block for one in held if not one.always for block in _condition(one)]
        yield from failed or [Text(f"✔ Yes, in all {trials} trials with a condition.")]
        yield Sheet(Table("overview", "Promised and achieved", _OVERVIEW, held))
        yield Fold("Each of them", blocks, on_paper=False)


def _held(run: ReportRun) -> list[_Held]:
    found: dict[tuple[str, str], list[Json]] = {}
    for label, _, trial in run.trials:
        if not run.is_interrupted(trial):
            for condition, given in trial.evidence.items():
                found.setdefault((label, condition), []).append({**given, "trial": trial.trial})
    parameters = {(label, c): p for _, label, r in of_all([run]) for c, p in r.condition_parameters.items()}
    return [
        _Held(condition, label, condition_in_words(condition, parameters.get((label, condition))), entries)
        for (label, condition), entries in sorted(found.items(), key=lambda item: run.labels.index(item[0][0]))
    ]


def _condition(held: _Held) -> Iterator[Block]:
    n = len(held.entries)
    title = held.words if held.result in (held.condition, held.words) else f"{held.words}, in {held.result}"
    title = title if title.startswith(held.condition) else title[:1].upper() + title[1:]
    where = f"{held.in_effect} of {n} trials" if not held.always else "its trial" if n == 1 else f"all {n} trials"
    reasons: dict[str, list[int]] = {}
    counts: dict[str, int] = {}
    for entry in held.entries:
        if not entry.get("in_effect"):
            reasons.setdefault(str(entry.get("reason") or "no reason was recorded"), []).append(entry["trial"])
        for note in (*(entry.get("notes") or ()), *([entry["note"]] if entry.get("note") else [])):
            counts[str(note)] = counts.get(str(note), 0) + 1
    notes = [f"{note}{f' ({count} of {n} trials)' if n > 1 else ''}" for note, count in counts.items()]
    folded = notes if len(notes) > MOST_NOTES else []  # the wording of single trials is in the details
    rows = observed(*([e.get(side) or {} for e in held.entries] for side in ("promised", "achieved")))
    yield Group(
        "condition",
        [
            Heading(title, 4, f"in effect in {where}", *HELD[held.always]),
            Items([f"{numbered(trials)}: {reason}" for reason, trials in reasons.items()]),
            *paragraphs(notes if not folded else [], "faint"),
            Sheet(
                Table("promised", "Promised and achieved", _QUANTITIES, held.quantities),
                f"{title}: promised and achieved",
            ),
            Fold(
                "All of the evidence",
                [
                    Sheet(Table("evidence", "All of the evidence", _EVERYTHING, rows), f"{title}: all of the evidence"),
                    Items(folded),
                ],
            ),
        ],
    )


# -- the important evidence ------------------------------------------------------------------------------------------


def _cell(quantity: Quantity, value: float | None) -> Cell:
    unit = {"1/s": " /s", "": ""}.get(quantity.unit, f" {quantity.unit}")
    return Cell(UNKNOWN if value is None else f"{plain(int(value) if value == int(value) else value)}{unit}", value)


def _range(quantity: Quantity) -> str:
    return " to ".join(dict.fromkeys(_cell(quantity, end).text for end in quantity.ends))


_QUANTITIES: list[Column[Quantity]] = [
    Column("figure", "figure", lambda quantity: quantity.words),
    Column("promised", "promised", lambda quantity: _cell(quantity, quantity.wanted), PLAIN),
    Column("achieved", "achieved, median", lambda quantity: _cell(quantity, quantity.middle), PLAIN),
    Column("range", "range over trials", _range),
]


def _of_first(column: Column[Quantity]) -> Column[_Held]:
    """The cell of a column for the most important quantity."""
    return Column(
        column.name,
        column.header,
        lambda held: next((column.cell(quantity) for quantity in held.quantities), None),
        column.quantity,
    )


def _in_effect(held: _Held) -> Cell:
    n = len(held.entries)
    sign, tone = HELD[held.always]
    return Cell(f"{held.in_effect} of {n}", held.in_effect / n, tone, sign=sign)


_OVERVIEW: list[Column[_Held]] = [
    Column("result", "result", lambda held: held.result),
    Column("condition", "condition", lambda held: held.words),
    Column("in_effect", "in effect", _in_effect, PLAIN),
    *map(_of_first, _QUANTITIES),
]


# -- all other evidence ----------------------------------------------------------------------------------------------


def _in(unit: str) -> Callable[[float], str]:
    return lambda value: f"{plain(value)} {unit}"


# By the suffix of a key, how its number is written, and whether the suffix is dropped. The first match counts.
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


def _everything(place: int) -> Callable[[Texts], Cell]:
    return lambda row: Cell(row[place], None if row[place] == UNKNOWN else row[place])


_EVERYTHING: list[Column[Texts]] = [
    Column("figure", "figure", lambda row: row[0]),
    Column("promised", "promised", _everything(1)),
    Column("achieved", "achieved, median", _everything(2)),
    Column("range", "range over trials", _everything(3)),
]


def observed(promised: Sequence[Json], achieved: Sequence[Json]) -> list[Texts]:
    """A row per figure: its name, the promise, the median of the achieved values, and their range over trials.

    Figures of both sides come first. Lists of numbers (per second, per thread) are merged.
    """
    wanted = dict(_flat(promised[0])) if promised else {}
    known = [dict(_flat(one)) for one in achieved]
    keys = list(dict.fromkeys(key for one in known for key in one))
    pairs = {key: other for key in wanted if (other := key if key in keys else _ALIKE.get(key, key)) in keys}
    rows: list[Texts] = [
        *((_name(other), _value(key, wanted[key]), *_over_trials(other, known)) for key, other in pairs.items()),
        *(
            (_name(key), _value(key, value), UNKNOWN, UNKNOWN)
            for key, value in wanted.items()
            if key not in pairs and _ALIKE.get(key) not in pairs.values()
        ),
        *((_name(key), UNKNOWN, *_over_trials(key, known)) for key in keys if key not in pairs.values()),
    ]
    return [row for row in rows if row[1:] != (UNKNOWN,) * 3]


def _flat(document: Json, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Nested members as "name: member"; lists of objects are only in trial.json."""
    for key, value in document.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}: ")
        elif not (isinstance(value, list) and any(isinstance(v, Mapping | list) for v in value)):
            yield f"{prefix}{key}", value


def _over_trials(key: str, known: Iterable[Json]) -> tuple[str, str]:
    values = [one[key] for one in known if one.get(key) is not None]
    parts = [v for value in values for v in (value if isinstance(value, list) else [value]) if v is not None]
    if not parts:
        return UNKNOWN, UNKNOWN
    is_number = all(isinstance(v, int | float) and not isinstance(v, bool) for v in parts)
    if not is_number or key == "cpus" or key.startswith("cpus_shared"):
        return "; ".join(dict.fromkeys(_value(key, v) for v in values)), UNKNOWN
    whole = all(n == int(n) for n in parts)
    ends = [statistics.median(parts), min(parts), max(parts)]
    middle, low, high = (_value(key, int(n) if whole and n == int(n) else float(n)) for n in ends)
    return middle, low if ends[1] == ends[2] else f"{low} to {high}"


def _name(key: str) -> str:
    for end, _, leaves in _FORMS:
        if leaves and key.endswith(end):
            return (key.removesuffix(end).rstrip("_") or "data").replace("_", " ")
    return key.replace("_", " ")


def _value(key: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return plain(value)
    return next((write for end, write, _ in _FORMS if key.endswith(end)), plain)(value)
