"""Pictures of perflab-monitor's samples: how busy each CPU was over time, and which threads ran where.

One trial of each result is shown, and named. Time is divided into equal steps, and samples are distributed evenly over
them; the course within an interval of the monitor is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from perflab.errors import BadInput
from perflab.formats import monitor
from perflab.formats.records import RecordError
from perflab.kernel import cpu_list, parse_cpu_list
from perflab.report.axes import runs
from perflab.report.captions import workloads
from perflab.report.figures import Cells, Figure, Key, Plot, Span, Spans, Strip, fixed, rows, seconds
from perflab.report.results import Trials, by_level, evenly, folder_of, summary_of
from perflab.results.run import TrialTables
from perflab.statistics.metrics import METRICS
from perflab.statistics.sample import Floats
from perflab.units import NS_PER_S

if TYPE_CHECKING:
    import polars as pl

MAX_RESULTS = 8  # in one picture
MAX_ROWS = 32
MAX_THREAD_ROWS = 24
MAX_STEPS = 120
MAX_LANES = 8  # number of rows: with more CPUs, several share a row
WORKLOAD = "workload"  # prefix of the groups of the workload's processes
MIDDLES = ("latency.p99", "round_trip.p99", "latency.p50", "cpu_percent")

_ROW = 0.44  # half height of a row
_TABLES = ("monitor_threads", "monitor_cpus")

Shares = tuple[float | None, ...]  # in each step, in percent; None if nothing was sampled


@dataclass(frozen=True)
class _Watched:
    """One trial of a result with the monitor's tables; the window is the measured part."""

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
        """The time covered by samples of threads, in seconds from the start of the measured part."""
        at = _floats(samples, "at_ns")
        before = self.ends_ns[np.clip(np.searchsorted(self.ends_ns, at) - 1, 0, None)]
        return (before - self.begin_ns) / NS_PER_S, (at - self.begin_ns) / NS_PER_S


@dataclass(frozen=True)
class Watch:
    """The trials whose CPUs and threads are shown. `notes` name the results that are shown, if there are more."""

    trials: tuple[_Watched, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Steps:
    """Equal time steps, and the trials that are shown with them. `notes` name these trials."""

    watched: Sequence[_Watched]
    notes: list[str]

    @cached_property
    def count(self) -> int:
        """Never shorter than the monitor's usual interval."""
        intervals = [float(one.cpus["interval_ns"].median() or 0) / NS_PER_S for one in self.watched]  # type: ignore[arg-type]
        return max(1, int(self.length_s / max([self.length_s / MAX_STEPS, *intervals]) + 1e-6))

    @cached_property
    def length_s(self) -> float:
        return max((one.end_ns - one.begin_ns) / NS_PER_S for one in self.watched)

    @property
    def step_s(self) -> float:
        return self.length_s / self.count

    @property
    def which(self) -> str:
        """ "Shown is trial 3 of baseline, trial 5 of cpu_load."; the median one of several."""
        several = any(len(one.result.trials) > 1 for one in self.watched)
        text = ", ".join(
            f"trial {one.trial.number}{f' of {one.result.label}' if len(self.watched) > 1 else ''}"
            for one in self.watched
        )
        return f"Shown is {text}{', in the middle of its result by p99' if several else ''}."

    def called(self, one: _Watched, what: str) -> str:
        """With its result, if there are several."""
        return f"{one.result.label} · {what}" if len(self.watched) > 1 else what

    def plot(self, names: Sequence[str]) -> Plot:
        axis, _ = seconds([self.length_s])
        return Plot(fixed(axis), rows(names), notes=self.notes)

    def subtitle(self, what: str) -> str:
        count = "1 trial" if len(self.watched) == 1 else f"{len(self.watched)} trials, one of each result"
        return f"{workloads([one.result for one in self.watched])}: {what.format(count)}"

    def spread(self, begins: Floats, ends: Floats, amounts: Floats) -> Floats:
        """Distributes amounts in intervals (in seconds from the start of the measured part) evenly over the steps."""
        edges = np.arange(self.count + 1) * self.step_s
        overlap = np.minimum(ends[:, None], edges[None, 1:]) - np.maximum(begins[:, None], edges[None, :-1])
        share = np.clip(overlap, 0, None) / np.maximum(ends - begins, 1e-9)[:, None]
        spread: Floats = (share * amounts[:, None]).sum(axis=0)
        return spread


def _floats(table: pl.DataFrame, name: str) -> Floats:
    found: Floats = table[name].to_numpy().astype(np.float64)
    return found


# -- CPUs --------------------------------------------------------------------------------------------------------------


def cores(watch: Watch) -> Figure | None:
    """The busy share of each CPU over time, and below it the workload's share."""
    if not watch.trials:
        return None
    steps = _Steps(watch.trials, list(watch.notes))
    per_result = max(2, MAX_ROWS // len(steps.watched))
    busy_strips: list[Strip] = []
    own_strips: list[Strip] = []
    names: list[str] = []
    for one in steps.watched:
        found = _of_cpus(one, steps)
        busiest = sorted(found, key=lambda cpu: _mean(found[cpu][0]) or 0.0, reverse=True)[:per_result]
        if len(found) > per_result:
            steps.notes.append(f"{one.result.label}: the {per_result} busiest of {len(found)} CPUs.")
        for cpu in sorted(busiest):
            busy, own = found[cpu]
            row = len(names)
            busy_strips.append(Strip(row - _ROW, row + 0.12, busy))
            own_strips.append(Strip(row + 0.17, row + _ROW, own))
            shares = f"{_percent(_mean(busy))} busy, workload {_percent(_mean(own))}"
            names.append(f"{steps.called(one, f'CPU {cpu}')}: {shares}")
    if not names:
        return None
    steps.notes.insert(0, f"For each CPU, above: how busy it was; below, narrower: by the workload. {steps.which}")
    steps.notes.append(
        "The workload's time is assigned to the CPU on which a thread was last seen at the end of a monitor "
        "interval. Empty: not sampled."
    )
    return steps.plot(names).figure(
        "cores",
        "Each CPU over time",
        steps.subtitle(f"{{}}, steps of {steps.step_s:.3g} s"),
        keys=[Key(f"{share} %", None, shade=share) for share in (0, 50, 100)],
        cells=(
            Cells("CPU busy", 0.0, steps.step_s, tuple(busy_strips)),
            Cells("used by the workload", 0.0, steps.step_s, tuple(own_strips)),
        ),
        lanes=3,
    )


def _of_cpus(one: _Watched, steps: _Steps) -> dict[int, tuple[Shares, Shares]]:
    """For each CPU, the busy share and the workload's."""
    import polars as pl

    own = one.threads.filter(
        one.threads["group"].str.starts_with(WORKLOAD)
        & one.threads["cpu_interval_ns"].is_not_null()
        & one.threads["cpu"].is_not_null()
    )
    used = own.group_by("at_ns", "cpu").agg(pl.col("cpu_interval_ns").sum())
    found = {}
    for cpu in sorted(one.cpus["cpu"].unique().to_list()):
        table, mine = (of.filter(of["cpu"] == cpu) for of in (one.cpus, used))
        ends = (_floats(table, "at_ns") - one.begin_ns) / NS_PER_S
        begins = ends - _floats(table, "interval_ns") / NS_PER_S
        busy, idle, steal = (_floats(table, name) for name in ("busy_ns", "idle_ns", "steal_ns"))
        covered, part, whole = (
            steps.spread(begins, ends, amount) for amount in (ends - begins, busy, busy + idle + steal)
        )
        by_workload = steps.spread(*one.intervals(mine), _floats(mine, "cpu_interval_ns") / NS_PER_S)
        known = covered >= steps.step_s / 2
        found[int(cpu)] = (_shares(part, whole, known & (whole > 0)), _shares(by_workload, covered, known))
    return found


def _shares(parts: Floats, wholes: Floats, known: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Shares:
    found = zip(parts.tolist(), wholes.tolist(), known.tolist(), strict=True)
    return tuple(min(100.0, 100 * part / whole) if ok else None for part, whole, ok in found)


def _mean(values: Shares) -> float | None:
    known = [v for v in values if v is not None]
    return sum(known) / len(known) if known else None


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.0f} %" if value >= 10 else f"{value:.2g} %"


# -- threads -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Thread:
    """The CPU of each step (None: it used no time), and the permitted CPUs, as (begin s, end s, CPUs)."""

    group: str
    name: str
    used_ns: float
    length_ns: int
    steps: tuple[int | None, ...]
    allowed: tuple[tuple[float, float, frozenset[int]], ...]

    @property
    def seen_on(self) -> set[int]:
        return {cpu for cpu in self.steps if cpu is not None}

    @property
    def of_workload(self) -> bool:
        return self.group.startswith(WORKLOAD)

    def label(self, several_processes: bool) -> str:
        place = self.group.removeprefix(f"{WORKLOAD}/")
        named = several_processes or not self.of_workload
        whose = f"{self.name} ({place})" if named and place not in (self.name, WORKLOAD) else self.name
        sets = list(dict.fromkeys(cpu_list(sorted(cpus)) for *_, cpus in self.allowed))
        allowed = " then ".join(sets) if len(sets) <= 2 else f"{len(sets)} sets of CPUs"
        return f"{whose}: {_percent(100 * self.used_ns / max(self.length_ns, 1))}, allowed {allowed}"


def affinity(watch: Watch) -> Figure | None:
    """Which CPUs threads were permitted to use, and on which they were seen after using CPU time."""
    if not watch.trials:
        return None
    steps = _Steps(watch.trials, list(watch.notes))
    per_result = max(3, MAX_THREAD_ROWS // len(steps.watched))
    found = [(one, _threads(one, steps)) for one in steps.watched]
    threads = [thread for _, of in found for thread in of]
    cpus = sorted({cpu for t in threads for cpu in t.seen_on.union(*(allowed for *_, allowed in t.allowed))})
    if not cpus:
        return None
    several_processes = len({thread.group for thread in threads if thread.of_workload}) > 1
    names: list[str] = []
    ground: list[Span] = []
    seen: dict[int, list[Span]] = {}
    for one, of in found:
        most = sorted(of, key=lambda thread: thread.used_ns, reverse=True)[:per_result]
        if len(most) < len(of):
            steps.notes.append(f"{one.result.label}: the {len(most)} of {len(of)} threads that used most CPU time.")
        for thread in (thread for thread in of if thread in most):
            lanes = _lanes(len(names), cpus, thread)
            names.append(steps.called(one, thread.label(several_processes)))
            for begin, end, allowed in thread.allowed:
                of_allowed = dict.fromkeys(lanes[cpu] for cpu in cpus if cpu in allowed and cpu in lanes)
                ground += [Span(begin, end, *lane) for lane in of_allowed]
            for first, last, cpu in runs(thread.steps):
                begin, end = first * steps.step_s, last * steps.step_s
                said = f"{thread.name}<br>seen on CPU {cpu} from {begin:.3g} to {end:.3g} s"
                seen.setdefault(cpu, []).append(Span(begin, end, *lanes[cpu], str(cpu), said))
    lanes_text = " Within a row, each CPU has a lane, the lowest number on top." if 1 < len(cpus) <= MAX_LANES else ""
    steps.notes.insert(
        0,
        f"A step of {steps.step_s:.3g} s shows the CPU on which a thread was seen after it had used CPU time, or "
        f"the one with most of it if there were several; empty if it used none.{lanes_text} {steps.which}",
    )
    shown = [(n, cpu) for n, cpu in enumerate(cpus) if cpu in seen]
    return steps.plot(names).figure(
        "affinity",
        "Where threads ran, and where they were permitted to",
        steps.subtitle(f"{len(names)} threads, {{}}"),
        [(n, f"seen on CPU {cpu}") for n, cpu in shown],
        [Key("allowed", None, sign="ground")],
        spans=(Spans("allowed", None, tuple(ground)), *(Spans(f"CPU {c}", n, tuple(seen[c])) for n, c in shown)),
        lanes=2 + min(len(cpus), MAX_LANES) // 2 if len(cpus) > 1 else 2,
    )


def _threads(one: _Watched, steps: _Steps) -> list[_Thread]:
    """The threads that used CPU time, the workload's first."""
    found = []
    for (group, _, _), table in one.threads.sort("at_ns").group_by("group", "pid", "tid", maintain_order=True):
        used = _floats(table.fill_null(0), "cpu_interval_ns")
        if used.sum() <= 0:
            continue
        begins, ends = one.intervals(table)
        seen = table["cpu"].to_list()
        numbers = sorted({cpu for cpu in seen if cpu is not None})
        most: list[int | None] = [None] * steps.count
        shares = [steps.spread(begins, ends, np.where([c == cpu for c in seen], used, 0.0)) for cpu in numbers]
        for place, of_step in enumerate(zip(*shares, strict=True)):
            most[place] = numbers[int(np.argmax(of_step))] if max(of_step) > 0 else None
        allowed = _allowed(begins, ends, table["cpus"].to_list(), steps.length_s)
        length_ns = one.end_ns - one.begin_ns
        found.append(_Thread(str(group), table["name"][-1], used.sum(), length_ns, tuple(most), allowed))
    return sorted(found, key=lambda thread: (not thread.of_workload, thread.group, -thread.used_ns))


def _allowed(
    begins: Floats, ends: Floats, cpus: Sequence[str | None], length_s: float
) -> tuple[tuple[float, float, frozenset[int]], ...]:
    """The permitted CPUs of a thread, as stretches of equal sets."""
    found: list[tuple[float, float, str]] = []
    for begin, end, text in zip(np.maximum(begins, 0.0), np.minimum(ends, length_s), cpus, strict=True):
        if text is None or begin >= end:
            continue
        if found and found[-1][2] == text:
            begin = found.pop()[0]  # noqa: PLW2901
        found.append((float(begin), float(end), text))
    return tuple((begin, end, frozenset(parse_cpu_list(text))) for begin, end, text in found)


def _lanes(place: int, cpus: Sequence[int], thread: _Thread) -> dict[int, tuple[float, float]]:
    """Top and bottom of each CPU's lane within a row: for all CPUs, or if these are many, for the used ones."""
    having = cpus if len(cpus) <= MAX_LANES else sorted(thread.seen_on)
    if len(having) > MAX_LANES:
        return dict.fromkeys(having, (place - _ROW, place + _ROW))
    height = 2 * _ROW / max(len(having), 1)
    return {cpu: (place - _ROW + i * height, place - _ROW + (i + 0.9) * height) for i, cpu in enumerate(having)}


# -- which trials ------------------------------------------------------------------------------------------------------


def watch(results: Sequence[Trials]) -> Watch:
    """The median trial of each result with monitor tables, read once for both pictures.

    Raises BadInput if a monitor file is damaged or unreadable.
    """
    having = [result for result in results if any(_has_records(result, trial) for trial in result.trials)]
    ordered = by_level(having)
    shown, which = (having[:MAX_RESULTS], "The first") if ordered is None else (evenly(ordered, MAX_RESULTS), "Evenly")
    notes = [f"{which} {len(shown)} of {len(having)} results."] if len(shown) < len(having) else []
    watched = (_open(result, _middle(result)) for result in shown)
    return Watch(tuple(one for one in watched if one is not None), tuple(notes))


def _has_records(result: Trials, trial: TrialTables) -> bool:
    folder = folder_of(result, trial.number)
    names = ("monitor_cpus.parquet", "monitor.jsonl")
    return trial.started_ns is not None and folder is not None and any((folder / name).is_file() for name in names)


def _middle(result: Trials) -> TrialTables:
    """The median trial by the first metric that all have; by order if there is none."""
    trials = [trial for trial in result.trials if _has_records(result, trial)]
    entry = summary_of(result)
    details = {detail.trial: detail for detail in (() if entry is None else entry.trials_detail)}
    for name in MIDDLES:
        values = [METRICS[name].read(details[t.number]).value for t in trials if t.number in details]
        if len(values) == len(trials) and None not in values:
            order = sorted(range(len(trials)), key=lambda i: (values[i], trials[i].number))
            return trials[order[(len(order) - 1) // 2]]
    return trials[(len(trials) - 1) // 2]


def _open(result: Trials, trial: TrialTables) -> _Watched | None:
    """Raises BadInput if the monitor file is damaged or unreadable."""
    import polars as pl

    folder, begin_ns = folder_of(result, trial.number), trial.started_ns
    if folder is None or begin_ns is None:
        return None
    paths = {name: folder / f"{name}.parquet" for name in _TABLES}
    try:
        if all(path.is_file() for path in paths.values()):
            found = {name: pl.read_parquet(path) for name, path in paths.items()}
        else:
            found = monitor.tables(folder / "monitor.jsonl")
    except RecordError as error:
        raise BadInput(str(error)) from error
    except (pl.exceptions.PolarsError, OSError) as error:
        raise BadInput(f"cannot read the monitor's tables in {folder}: {str(error).splitlines()[0]}") from error
    end_ns = begin_ns + round(trial.duration_s * NS_PER_S)
    threads, cpus = (found[name] for name in _TABLES)
    cpus = cpus.filter((cpus["at_ns"] > begin_ns) & (cpus["at_ns"] - cpus["interval_ns"] < end_ns))
    if not cpus.height:
        return None
    last = int(cpus["at_ns"].max())  # type: ignore[arg-type]
    threads = threads.filter((threads["at_ns"] > begin_ns) & (threads["at_ns"] <= last))
    return _Watched(result, trial, threads, cpus, begin_ns, end_ns)
