"""Pictures of what perflab-monitor saw: how busy each CPU was over time, and which threads ran where.

One trial of each result is shown, and named. Time is cut into equal steps, and what was sampled is put into them
evenly; what it was within an interval of the monitor nobody knows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from perflab.errors import BadInput
from perflab.formats import monitor
from perflab.formats.records import RecordError
from perflab.kernel import cpu_list, parse_cpu_list
from perflab.report.axes import runs
from perflab.report.captions import seconds_axis, workloads
from perflab.report.figures import Cells, Figure, Key, Span, Spans, Strip, rows_axis
from perflab.report.results import Trials, by_level, evenly, summary_of
from perflab.results.run import TrialTables
from perflab.runs import rundir
from perflab.statistics.metrics import METRICS
from perflab.statistics.sample import Floats
from perflab.units import NS_PER_S

if TYPE_CHECKING:
    import polars as pl

MAX_RESULTS = 8  # in one picture
MAX_ROWS = 32
MAX_THREAD_ROWS = 24
MAX_STEPS = 120
MAX_LANES = 8  # of a row: more CPUs than that do not have one each
WORKLOAD = "workload"  # the groups of the workload's processes begin with it
MIDDLES = ("latency.p99", "round_trip.p99", "latency.p50", "cpu_percent")

_ROW = 0.44  # from the middle of a row to its edges


@dataclass(frozen=True)
class _Watched:
    """One trial of a result with the monitor's tables; the window is that of the measured part."""

    result: Trials
    trial: TrialTables
    threads: pl.DataFrame
    cpus: pl.DataFrame
    begin_ns: int
    end_ns: int

    @cached_property
    def ends_ns(self) -> Floats:
        """The instants of the samples, and that of the one before the first."""
        at = self.cpus["at_ns"].unique().sort().to_list()
        first = self.cpus.filter(self.cpus["at_ns"] == at[0])["interval_ns"].max() if at else None
        return np.array([at[0] - int(first or 0), *at] if at else [], dtype=np.float64)  # type: ignore[arg-type]

    def intervals(self, samples: pl.DataFrame) -> tuple[Floats, Floats]:
        """From when to when samples of threads tell something, in seconds from the start of the measured part."""
        at = samples["at_ns"].to_numpy().astype(np.float64)
        before = self.ends_ns[np.clip(np.searchsorted(self.ends_ns, at) - 1, 0, None)]
        return (before - self.begin_ns) / NS_PER_S, (at - self.begin_ns) / NS_PER_S


def cores(results: Sequence[Trials]) -> Figure | None:
    """The busy share of each CPU over time, and below it the share that the workload used."""
    watched, notes = _watched(results)
    if not watched:
        return None
    step_s, steps = _steps(watched)
    per_result = max(2, MAX_ROWS // len(watched))
    busy_strips: list[Strip] = []
    own_strips: list[Strip] = []
    names: list[str] = []
    for one in watched:
        rows = _cpu_rows(one, steps, step_s)
        if len(rows) > per_result:
            label = one.result.label
            notes.append(f"{label}: the {per_result} busiest of {len(rows)} CPUs.")
            busiest = sorted(rows, key=lambda cpu: _mean(rows[cpu][0]) or 0.0, reverse=True)[:per_result]
            rows = {cpu: rows[cpu] for cpu in sorted(busiest)}
        for cpu, (busy, own) in rows.items():
            row = len(names)
            busy_strips.append(Strip(row - _ROW, row + 0.12, busy))
            own_strips.append(Strip(row + 0.17, row + _ROW, own))
            place = f"{one.result.label} · CPU {cpu}" if len(watched) > 1 else f"CPU {cpu}"
            names.append(f"{place}: {_percent(_mean(busy))} busy, workload {_percent(_mean(own))}")
    if not names:
        return None
    notes.insert(0, f"Of each CPU above: how busy it was; below, narrower: by the workload. {_which(watched)}")
    notes.append(
        "The workload's time is given to the CPU on which a thread was last seen at the end of an interval of the "
        "monitor. Empty: not sampled."
    )
    return Figure(
        name="cores",
        title="Each CPU over time",
        subtitle=f"{workloads([one.result for one in watched])}: {_count(watched)}, steps of {step_s:.3g} s",
        x=seconds_axis(steps * step_s),
        y=rows_axis(names),
        series=(),
        groups=(),
        keys=tuple(Key(f"{share} %", None, shade=share) for share in (0, 50, 100)),
        notes=tuple(notes),
        cells=(
            Cells("CPU busy", 0.0, step_s, tuple(busy_strips)),
            Cells("used by the workload", 0.0, step_s, tuple(own_strips)),
        ),
        lanes=3,
    )


def affinity(results: Sequence[Trials]) -> Figure | None:
    """Which CPUs threads were allowed to use, and on which they were seen when they had used CPU time."""
    watched, notes = _watched(results)
    if not watched:
        return None
    step_s, steps = _steps(watched)
    per_result = max(3, MAX_THREAD_ROWS // len(watched))
    found = {id(one): _threads(one, steps, step_s) for one in watched}
    cpus = sorted({cpu for rows in found.values() for row in rows for cpu in row.seen_on} | _allowed(found))
    if not cpus:
        return None
    several_processes = len({row.group for rows in found.values() for row in rows if row.of_workload}) > 1
    names: list[str] = []
    ground: list[Span] = []
    seen: dict[int, list[Span]] = {}
    for one in watched:
        rows = found[id(one)]
        shown = sorted(rows, key=lambda row: row.used_ns, reverse=True)[:per_result]
        shown = [row for row in rows if row in shown]
        for row in shown:
            place = len(names)
            names.append(row.label(one.result.label if len(watched) > 1 else "", several_processes))
            lanes = _lanes(place, cpus, row.seen_on)
            ground += _ground(row, lanes, place)
            for span, cpu in _seen(row, lanes, step_s):
                seen.setdefault(cpu, []).append(span)
        if len(shown) < len(rows):
            notes.append(f"{one.result.label}: the {len(shown)} of {len(rows)} threads that used most CPU time.")
    if not names:
        return None
    lanes_text = " Within a row each CPU has a lane, the lowest number on top." if 1 < len(cpus) <= MAX_LANES else ""
    notes.insert(
        0,
        f"A step of {step_s:.3g} s shows the CPU on which a thread was seen after it had used CPU time, that with most "
        f"of it where there were several; nothing where it used none.{lanes_text} {_which(watched)}",
    )
    return Figure(
        name="affinity",
        title="Where threads ran, and where they were allowed to",
        subtitle=f"{workloads([one.result for one in watched])}: {len(names)} threads, {_count(watched)}",
        x=seconds_axis(steps * step_s),
        y=rows_axis(names),
        series=(),
        groups=tuple((cpus.index(cpu), f"seen on CPU {cpu}") for cpu in cpus if cpu in seen),
        keys=(Key("allowed", None, sign="ground"),),
        notes=tuple(notes),
        spans=(
            Spans("allowed", None, tuple(ground)),
            *(Spans(f"CPU {cpu}", cpus.index(cpu), tuple(seen[cpu])) for cpu in cpus if cpu in seen),
        ),
        lanes=2 + min(len(cpus), MAX_LANES) // 2 if len(cpus) > 1 else 2,
    )


# -- which trials ------------------------------------------------------------------------------------------------------


def _watched(results: Sequence[Trials]) -> tuple[list[_Watched], list[str]]:
    """The middle trial of each result that the monitor watched, and what to say of those left out."""
    having = [result for result in results if any(map(_has_records(result), result.trials))]
    ordered = by_level(having)
    shown, which = (having[:MAX_RESULTS], "The first") if ordered is None else (evenly(ordered, MAX_RESULTS), "Evenly")
    notes = [f"{which} {len(shown)} of {len(having)} results."] if len(shown) < len(having) else []
    opened = [_open(result, _middle(result)) for result in shown]
    return [one for one in opened if one is not None], notes


def _folder(result: Trials, number: int) -> Path | None:
    return next(iter(sorted((result.run.path / rundir.TRIALS).glob(f"{number:04d}_*"))), None)


def _has_records(result: Trials) -> Callable[[TrialTables], bool]:
    def has(trial: TrialTables) -> bool:
        folder = _folder(result, trial.number)
        names = ("monitor_cpus.parquet", "monitor.jsonl")
        return trial.started_ns is not None and folder is not None and any((folder / name).is_file() for name in names)

    return has


def _middle(result: Trials) -> TrialTables:
    """The trial in the middle by the first metric that all have; by their order where there is none."""
    trials = [trial for trial in result.trials if _has_records(result)(trial)]
    entry = summary_of(result)
    details = {detail.trial: detail for detail in (() if entry is None else entry.trials_detail)}
    for name in MIDDLES:
        values = [METRICS[name].read(details[t.number]).value for t in trials if t.number in details]
        if len(values) == len(trials) and None not in values:
            order = sorted(range(len(trials)), key=lambda i: (values[i], trials[i].number))
            return trials[order[(len(order) - 1) // 2]]
    return trials[(len(trials) - 1) // 2]


def _open(result: Trials, trial: TrialTables) -> _Watched | None:
    """Raises BadInput where the monitor's file is damaged or cannot be read."""
    import polars as pl

    folder = _folder(result, trial.number)
    if folder is None or trial.started_ns is None:
        return None
    paths = {name: folder / f"{name}.parquet" for name in ("monitor_threads", "monitor_cpus")}
    try:
        if all(path.is_file() for path in paths.values()):
            found = {name: pl.read_parquet(path) for name, path in paths.items()}
        else:
            found = monitor.tables(folder / "monitor.jsonl")
    except RecordError as error:
        raise BadInput(str(error)) from error
    except (pl.exceptions.PolarsError, OSError) as error:
        raise BadInput(f"cannot read the monitor's tables in {folder}: {str(error).splitlines()[0]}") from error
    end_ns = trial.started_ns + round(trial.duration_s * NS_PER_S)
    cpus = found["monitor_cpus"]
    cpus = cpus.filter((cpus["at_ns"] > trial.started_ns) & (cpus["at_ns"] - cpus["interval_ns"] < end_ns))
    if not cpus.height:
        return None
    threads = found["monitor_threads"]
    last = int(cpus["at_ns"].max())  # type: ignore[arg-type]
    threads = threads.filter((threads["at_ns"] > trial.started_ns) & (threads["at_ns"] <= last))
    return _Watched(result, trial, threads, cpus, trial.started_ns, end_ns)


def _which(watched: Sequence[_Watched]) -> str:
    """ "Shown is trial 3 of baseline, trial 5 of cpu_load."; where there were several the median one."""
    several = any(len(one.result.trials) > 1 for one in watched)
    if len(watched) == 1:
        text = f"trial {watched[0].trial.number}"
    else:
        text = ", ".join(f"trial {one.trial.number} of {one.result.label}" for one in watched)
    return f"Shown is {text}{', in the middle of its result by p99' if several else ''}."


def _count(watched: Sequence[_Watched]) -> str:
    return "1 trial" if len(watched) == 1 else f"{len(watched)} trials, one of each result"


# -- in steps ----------------------------------------------------------------------------------------------------------


def _steps(watched: Sequence[_Watched]) -> tuple[float, int]:
    """How long a step is, in seconds, and how many there are: never shorter than the monitor's usual interval."""
    length_s = max((one.end_ns - one.begin_ns) / NS_PER_S for one in watched)
    intervals = [float(one.cpus["interval_ns"].median() or 0) / NS_PER_S for one in watched]  # type: ignore[arg-type]
    shortest = max([length_s / MAX_STEPS, *intervals])
    steps = max(1, int(length_s / shortest + 1e-6))
    return length_s / steps, steps


def _spread(begins: Floats, ends: Floats, amounts: Floats, steps: int, step_s: float) -> Floats:
    """Amounts of intervals (in seconds from the start of the measured part), put evenly into steps."""
    edges = np.arange(steps + 1) * step_s
    overlap = np.minimum(ends[:, None], edges[None, 1:]) - np.maximum(begins[:, None], edges[None, :-1])
    share = np.clip(overlap, 0, None) / np.maximum(ends - begins, 1e-9)[:, None]
    spread: Floats = (share * amounts[:, None]).sum(axis=0)
    return spread


def _cpu_rows(
    one: _Watched, steps: int, step_s: float
) -> dict[int, tuple[tuple[float | None, ...], tuple[float | None, ...]]]:
    """Of each CPU the busy share and the workload's, in per cent, in each step; None where it was not sampled."""
    import polars as pl

    own = one.threads.filter(
        one.threads["group"].str.starts_with(WORKLOAD)
        & one.threads["cpu_interval_ns"].is_not_null()
        & one.threads["cpu"].is_not_null()
    )
    used = own.group_by("at_ns", "cpu").agg(pl.col("cpu_interval_ns").sum())
    rows = {}
    for cpu in sorted(one.cpus["cpu"].unique().to_list()):
        table = one.cpus.filter(one.cpus["cpu"] == cpu)
        at = table["at_ns"].to_numpy().astype(np.float64)
        ends = (at - one.begin_ns) / NS_PER_S
        begins = ends - table["interval_ns"].to_numpy().astype(np.float64) / NS_PER_S
        busy, idle, steal = (table[name].to_numpy().astype(np.float64) for name in ("busy_ns", "idle_ns", "steal_ns"))
        covered = _spread(begins, ends, ends - begins, steps, step_s)
        parts = [_spread(begins, ends, amount, steps, step_s) for amount in (busy, busy + idle + steal)]
        mine = used.filter(used["cpu"] == cpu)
        amounts = mine["cpu_interval_ns"].to_numpy().astype(np.float64) / NS_PER_S
        by_workload = _spread(*one.intervals(mine), amounts, steps, step_s)
        known = covered >= step_s / 2
        rows[int(cpu)] = (
            tuple(
                min(100.0, 100 * float(b / t)) if ok and t > 0 else None for ok, b, t in zip(known, *parts, strict=True)
            ),
            tuple(
                min(100.0, 100 * float(w / c)) if ok else None
                for ok, w, c in zip(known, by_workload, covered, strict=True)
            ),
        )
    return rows


# -- threads -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _ThreadRow:
    """A thread: the CPU of each step (None: it used no time), and what it was allowed, as (begin s, end s, CPUs)."""

    group: str
    name: str
    used_ns: int
    length_ns: int
    steps: tuple[int | None, ...]
    allowed: tuple[tuple[float, float, frozenset[int]], ...]

    @property
    def seen_on(self) -> frozenset[int]:
        return frozenset(cpu for cpu in self.steps if cpu is not None)

    @property
    def of_workload(self) -> bool:
        return self.group.startswith(WORKLOAD)

    def label(self, result: str, several_processes: bool) -> str:
        place = self.group.removeprefix(f"{WORKLOAD}/")
        named = several_processes or not self.of_workload
        whose = f"{self.name} ({place})" if named and place not in (self.name, WORKLOAD) else self.name
        sets = list(dict.fromkeys(cpu_list(sorted(cpus)) for *_, cpus in self.allowed))
        allowed = " then ".join(sets) if len(sets) <= 2 else f"{len(sets)} sets of CPUs"
        text = f"{whose}: {_percent(100 * self.used_ns / max(self.length_ns, 1))}, allowed {allowed}"
        return f"{result} · {text}" if result else text


def _threads(one: _Watched, steps: int, step_s: float) -> list[_ThreadRow]:
    """The threads that used CPU time, the workload's first."""
    rows = []
    for (group, _, _), table in one.threads.sort("at_ns").group_by("group", "pid", "tid", maintain_order=True):
        used = table["cpu_interval_ns"].fill_null(0).to_numpy().astype(np.float64)
        if used.sum() <= 0:
            continue
        begins, ends = one.intervals(table)
        seen = table["cpu"].to_list()
        numbers = sorted({cpu for cpu in seen if cpu is not None})
        shares = np.array(
            [_spread(begins, ends, np.where([c == cpu for c in seen], used, 0.0), steps, step_s) for cpu in numbers]
        )
        places = [
            numbers[int(np.argmax(shares[:, i]))] if numbers and shares[:, i].max() > 0 else None for i in range(steps)
        ]
        rows.append(
            _ThreadRow(
                str(group),
                str(table["name"][-1]),
                int(used.sum()),
                one.end_ns - one.begin_ns,
                tuple(places),
                _states(begins, ends, table["cpus"].to_list(), steps * step_s),
            )
        )
    return sorted(rows, key=lambda row: (not row.group.startswith(WORKLOAD), row.group, -row.used_ns))


def _states(
    begins: Floats, ends: Floats, cpus: Sequence[str | None], length_s: float
) -> tuple[tuple[float, float, frozenset[int]], ...]:
    """What a thread was allowed, as stretches of equal sets."""
    found: list[tuple[float, float, str]] = []
    for begin, end, text in zip(begins.tolist(), ends.tolist(), cpus, strict=True):
        begin, end = max(begin, 0.0), min(end, length_s)  # noqa: PLW2901
        if text is None or begin >= end:
            continue
        if found and found[-1][2] == text:
            found[-1] = (found[-1][0], end, text)
        else:
            found.append((begin, end, text))
    return tuple((begin, end, frozenset(parse_cpu_list(text))) for begin, end, text in found)


def _allowed(found: dict[int, list[_ThreadRow]]) -> set[int]:
    return {cpu for rows in found.values() for row in rows for *_, cpus in row.allowed for cpu in cpus}


def _lanes(place: int, cpus: Sequence[int], seen_on: frozenset[int]) -> dict[int, tuple[float, float]]:
    """Top and bottom of the lane of each CPU within a row: of all of them, or where these are many of those used."""
    having = cpus if len(cpus) <= MAX_LANES else sorted(seen_on)
    if len(having) > MAX_LANES:
        return dict.fromkeys(having, (place - _ROW, place + _ROW))
    height = 2 * _ROW / max(len(having), 1)
    return {cpu: (place - _ROW + i * height, place - _ROW + (i + 0.9) * height) for i, cpu in enumerate(having)}


def _ground(row: _ThreadRow, lanes: dict[int, tuple[float, float]], place: int) -> list[Span]:
    return [
        Span(begin, end, *lane)
        for begin, end, allowed in row.allowed
        for lane in dict.fromkeys(lanes[cpu] for cpu in sorted(allowed) if cpu in lanes)
    ]


def _seen(row: _ThreadRow, lanes: dict[int, tuple[float, float]], step_s: float) -> list[tuple[Span, int]]:
    """Neighbouring steps on the same CPU are one span."""
    spans = []
    for first, last, cpu in runs(row.steps):
        begin, end = first * step_s, last * step_s
        hover = f"{row.name}<br>seen on CPU {cpu} from {begin:.3g} to {end:.3g} s"
        spans.append((Span(begin, end, *lanes[cpu], str(cpu), hover), cpu))
    return spans


# -- words -------------------------------------------------------------------------------------------------------------


def _mean(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return sum(known) / len(known) if known else None


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.0f} %" if value >= 10 else f"{value:.2g} %"
