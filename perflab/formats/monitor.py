"""perflab-monitor's records: threads of process trees and CPUs, sample by sample (docs/observers.md).

The file is read while it is written: `refresh` reads new lines, and leaves an incomplete last line for the next time.
Everything is on CLOCK_MONOTONIC and holds for sampled instants: between two samples cumulative figures are interpolated
linearly, outside of them nothing is assumed.

Example:
    reader = MonitorReader(path)
    reader.refresh()
    used = reader.cpu_seconds("cpu_load", begin_ns, end_ns)
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from perflab.errors import DAMAGE
from perflab.formats.records import RecordError
from perflab.kernel import cpu_list
from perflab.units import NS_PER_S

if TYPE_CHECKING:
    import polars as pl

MONITOR_FILE = "monitor.jsonl"  # of a trial
# The kernel reports the start of a thread in ticks of USER_HZ, and perflab-monitor finds a new one a sample later.
_START_SLACK_NS = 20_000_000


@dataclass(frozen=True)
class ThreadSeen:
    """A thread in one state; one that was renamed or rescheduled appears once for each state.

    `cpus` are those it may use, ascending; `priority` is the real-time priority, 0 without one. The instants are those
    of the first and the last sample in this state.
    """

    pid: int
    tid: int
    name: str
    policy: str
    priority: int
    nice: int
    cpus: tuple[int, ...]
    first_seen_ns: int
    last_seen_ns: int


@dataclass(frozen=True)
class Escape:
    """A thread that was permitted to run on wrong CPUs, `cpus`, or ran there; `at_ns` is when that was first seen in
    the window."""

    pid: int
    tid: int
    name: str
    cpus: tuple[int, ...]
    at_ns: int


class _ThreadSample(NamedTuple):
    """The figures are cumulative since the thread began."""

    at_ns: int
    cpu_ns: int
    run_delay_ns: int | None
    voluntary: int | None
    involuntary: int | None
    cpu: int | None


class _GroupSample(NamedTuple):
    """CPU time is that of all threads of the group since the first sample, including ended ones."""

    at_ns: int
    cpu_ns: int
    processes: int
    rss_kb: int
    read_bytes: int | None
    write_bytes: int | None


class _CpuSample(NamedTuple):
    """The activity of one CPU in the interval before it, ns."""

    at_ns: int
    busy_ns: int
    idle_ns: int
    steal_ns: int
    interval_ns: int


_Sample = TypeVar("_Sample", _ThreadSample, _GroupSample, _CpuSample)
_Point = tuple[int, int]  # instant and value
_instant = itemgetter(0)


def _within(samples: Sequence[_Sample], begin_ns: int, end_ns: int) -> range:
    """The indices of the samples within the window, including its ends."""
    return range(bisect_left(samples, begin_ns, key=_instant), bisect_right(samples, end_ns, key=_instant))


def _around(samples: Sequence[_Sample], begin_ns: int, end_ns: int) -> Sequence[_Sample]:
    """Those within the window and some beside it: a long trial is queried second by second."""
    inside = _within(samples, begin_ns, end_ns)
    return samples[max(0, inside.start - 2) : inside.stop + 1]


@dataclass
class _Thread:
    """One thread of one group, with its samples."""

    group: str
    pid: int
    tid: int
    start_ticks: int
    is_new: bool  # whether it began after the sample before its first one
    before_ns: int | None  # time of that sample
    states: list[ThreadSeen] = field(default_factory=list)  # `last_seen_ns` of these is not updated
    last_seen_ns: list[int] = field(default_factory=list)  # of each state
    ended: bool = False
    samples: list[_ThreadSample] = field(default_factory=list)

    def add(self, sample: _ThreadSample) -> int:
        """Adds a sample; the CPU time since the previous one, ns."""
        before = self.samples[-1].cpu_ns if self.samples else 0 if self.is_new else sample.cpu_ns
        self.samples.append(sample)
        return sample.cpu_ns - before

    def between(self, figure: str, begin_ns: int, end_ns: int) -> float | None:
        """The increase of one of its cumulative figures; None if unknown."""
        near = _around(self.samples, begin_ns, end_ns)
        known = [(s.at_ns, value) for s in near if (value := getattr(s, figure)) is not None]
        if not known:
            return None
        if near[0] is self.samples[0] and self.is_new and self.before_ns is not None:
            known.insert(0, (self.before_ns, 0))
        return _at(known, end_ns) - _at(known, begin_ns)

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Columns of the table: figures of the interval before each sample."""
        before: list[int | None] = [0 if self.is_new else None] * 4
        index = 0
        for sample in self.samples:
            while index + 1 < len(self.states) and self.states[index + 1].first_seen_ns <= sample.at_ns:
                index += 1
            state, figures = self.states[index], sample[1:5]
            cpu, run_delay, *switches = map(_difference, figures, before)
            before = [last if now is None else now for now, last in zip(figures, before, strict=True)]
            who = (sample.at_ns, self.group, self.pid, self.tid, state.name)
            scheduled = (sample.cpu, state.policy, state.priority, cpu_list(state.cpus))
            yield (*who, cpu, run_delay, *scheduled, *switches)


@dataclass
class _Group:
    samples: list[_GroupSample] = field(default_factory=list)
    used_ns: int = 0  # CPU time since the last sample

    def sampled(self, begin_ns: int, end_ns: int) -> tuple[int, int] | None:
        """The part of the window that is covered by samples; None if no sample is in the window."""
        if not _within(self.samples, begin_ns, end_ns):
            return None
        begin_ns, end_ns = max(begin_ns, self.samples[0].at_ns), min(end_ns, self.samples[-1].at_ns)
        return (begin_ns, end_ns) if begin_ns < end_ns else None

    def grown(self, figure: str, begin_ns: int, end_ns: int) -> float | None:
        """The increase within a sampled part; None if a sample there lacks it."""
        points = [(s.at_ns, getattr(s, figure)) for s in _around(self.samples, begin_ns, end_ns)]
        known = [(at_ns, value) for at_ns, value in points if value is not None]
        return _at(known, end_ns) - _at(known, begin_ns) if len(known) == len(points) else None

    def intervals(self, begin_ns: int, end_ns: int) -> list[tuple[_GroupSample, _GroupSample]]:
        """The two ends of each interval that lies within the window."""
        return [(self.samples[i - 1], self.samples[i]) for i in _within(self.samples, begin_ns, end_ns)[1:]]


class MonitorReader:
    """The file of one perflab-monitor, which need not exist yet. Windows are closed: [begin_ns, end_ns]."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offset = 0
        self._line = 0
        self._interval_ns: int | None = None
        self._at_ns: list[int] = []
        self._groups: dict[str, _Group] = {}
        self._threads: list[_Thread] = []
        self._by_group: dict[str, list[_Thread]] = {}
        self._present: dict[int, _Thread] = {}  # by tid: the last thread that had this number
        self._known: set[tuple[int, int]] = set()  # tid and start_ticks
        self._cpus: dict[int, list[_CpuSample]] = {}

    # -- reading -----------------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Reads what was written since the last call. Raises RecordError if a complete line is damaged, OSError."""
        try:
            with self.path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return
        whole = data.rfind(b"\n") + 1
        for line in data[:whole].splitlines():
            self._line += 1
            try:
                self._take(json.loads(line))
            except DAMAGE as error:
                raise RecordError(
                    f"{self.path}:{self._line}: not a record of perflab-monitor; the file was changed or damaged"
                ) from error
            finally:
                self._offset += len(line) + 1

    def _take(self, record: dict[str, Any]) -> None:
        match record["type"]:
            case "monitor":
                self._interval_ns = int(record["interval_ns"])
            case "thread":
                self._take_thread(record)
            case "sample":
                self._take_sample(record)
            case "gone":
                self._take_gone(record)
            case _:
                pass  # readers must ignore unknown records

    def _take_thread(self, record: dict[str, Any]) -> None:
        tid, start_ticks, group = record["tid"], record["start_ticks"], record["group"]
        thread = self._present.get(tid)
        if thread is None or thread.ended or (thread.start_ticks, thread.group) != (start_ticks, group):
            before_ns = self._at_ns[-1] if self._at_ns else None
            started_ns = record.get("started_ns")
            is_new = (
                (tid, start_ticks) not in self._known
                and before_ns is not None
                and started_ns is not None
                and started_ns >= before_ns - (self._interval_ns or 0) - _START_SLACK_NS
            )
            thread = _Thread(group, record["pid"], tid, start_ticks, is_new, before_ns)
            self._threads.append(thread)
            self._by_group.setdefault(group, []).append(thread)
            self._present[tid] = thread
            self._known.add((tid, start_ticks))
        at_ns = int(record["at_ns"])
        scheduled = (record["policy"], int(record["priority"]), int(record["nice"]), tuple(record["cpus"]))
        state = ThreadSeen(thread.pid, tid, record["name"], *scheduled, at_ns, at_ns)
        last = thread.states[-1] if thread.states else None
        # It is repeated after a gap in the file.
        if last is None or replace(last, first_seen_ns=at_ns, last_seen_ns=at_ns) != state:
            thread.states.append(state)
            thread.last_seen_ns.append(at_ns)

    def _take_sample(self, record: dict[str, Any]) -> None:
        at_ns = int(record["at_ns"])
        for tid, cpu_ns, *rest in record["threads"]:
            thread = self._present.get(tid)
            if thread is None or thread.ended:
                continue  # its description was lost from the file; it is repeated with the next sample
            self._use(thread.group, thread.add(_ThreadSample(at_ns, cpu_ns, *rest[:4])))
            thread.last_seen_ns[-1] = at_ns
        for name, figures in record["groups"].items():
            group = self._groups.setdefault(name, _Group())
            cpu_ns = (group.samples[-1].cpu_ns if group.samples else 0) + group.used_ns
            group.used_ns = 0
            sizes = (int(figures["processes"]), int(figures["rss_kb"]), figures["read_bytes"], figures["write_bytes"])
            group.samples.append(_GroupSample(at_ns, cpu_ns, *sizes))
        interval_ns = record["interval_ns"]
        for figures in record["cpus"]:
            samples = self._cpus.setdefault(figures["cpu"], [])
            if interval_ns is not None and figures["busy_ns"] is not None:
                spent = (figures["busy_ns"], figures["idle_ns"], figures["steal_ns"])
                samples.append(_CpuSample(at_ns, *spent, interval_ns))
        self._at_ns.append(at_ns)

    def _take_gone(self, record: dict[str, Any]) -> None:
        thread = self._present.get(record["tid"])
        if thread is None or thread.ended:
            return
        thread.ended = True
        if record["cpu_ns"] is not None:
            last = _ThreadSample(int(record["at_ns"]), record["cpu_ns"], None, None, None, None)
            self._use(thread.group, thread.add(last))

    def _use(self, group: str, used_ns: int) -> None:
        self._groups.setdefault(group, _Group()).used_ns += used_ns

    # -- queries -----------------------------------------------------------------------------------------------------

    @property
    def last_at_ns(self) -> int | None:
        """Time of the last sample."""
        return self._at_ns[-1] if self._at_ns else None

    @property
    def interval_ns(self) -> int | None:
        """The requested interval; None before the first record. Samples may come later on a busy machine."""
        return self._interval_ns

    def groups(self) -> list[str]:
        """All groups ever watched, in order of appearance."""
        return list(self._groups)

    def sampled(self, group: str, begin_ns: int, end_ns: int) -> tuple[int, int] | None:
        """The part of the window between the first and the last sample of the group, which is what figures cover."""
        known = self._groups.get(group)
        return None if known is None else known.sampled(begin_ns, end_ns)

    def cpu_seconds(self, group: str, begin_ns: int, end_ns: int) -> float | None:
        """CPU time of all threads of the group, including ended ones; None if no sample is in the window."""
        sampled = self.sampled(group, begin_ns, end_ns)
        if sampled is None:
            return None
        grown = self._groups[group].grown("cpu_ns", *sampled)
        return None if grown is None else grown / NS_PER_S

    def cpu_by_interval(self, group: str, begin_ns: int, end_ns: int) -> list[tuple[int, float]]:
        """The CPUs that the group used (CPU seconds per second) in each interval that lies within the window.

        The instant is that of the sample that ends the interval.
        """
        found = self._groups.get(group, _Group()).intervals(begin_ns, end_ns)
        return [(b.at_ns, (b.cpu_ns - a.cpu_ns) / (b.at_ns - a.at_ns)) for a, b in found]

    def thread_cpu_seconds(self, group: str, begin_ns: int, end_ns: int) -> dict[int, float]:
        """CPU time of each thread that was seen in the window, by tid; empty if no sample is in the window."""
        figures = self._by_thread(group, begin_ns, end_ns, "cpu_ns")
        return {tid: seconds for tid, seconds in figures.items() if seconds is not None}

    def thread_run_delay_seconds(self, group: str, begin_ns: int, end_ns: int) -> dict[int, float | None]:
        """Likewise the time that each thread was ready and waited for a CPU; None if the kernel does not count it.

        The kernel adds a wait when it ends.
        """
        return self._by_thread(group, begin_ns, end_ns, "run_delay_ns")

    def idle_share(self, cpus: Iterable[int], begin_ns: int, end_ns: int) -> float | None:
        """The share of their time, 0 to 1, for which these CPUs were idle; waiting for I/O is idle.

        None if one of them was not sampled in the window.
        """
        idle = total = 0.0
        for number in cpus:
            samples = self._cpus.get(number, [])
            first = bisect_left(samples, begin_ns, key=_instant)
            if first == len(samples) or samples[first].at_ns > end_ns:
                return None
            for sample in samples[first:]:
                since_ns = sample.at_ns - sample.interval_ns
                part_ns = min(end_ns, sample.at_ns) - max(begin_ns, since_ns)
                if since_ns >= end_ns:
                    break
                share = max(0, part_ns) / sample.interval_ns
                idle += share * sample.idle_ns
                total += share * (sample.busy_ns + sample.idle_ns + sample.steal_ns)
        return idle / total if total > 0 else None

    def threads(self, group: str, begin_ns: int, end_ns: int) -> list[ThreadSeen]:
        """The threads seen in the window, in order of first appearance, once for each state."""
        return [
            replace(state, last_seen_ns=last_ns)
            for thread in self._by_group.get(group, ())
            for state, last_ns in zip(thread.states, thread.last_seen_ns, strict=True)
            if state.first_seen_ns <= end_ns and last_ns >= begin_ns
        ]

    def escaped(self, group: str, allowed: frozenset[int], begin_ns: int, end_ns: int) -> list[Escape]:
        """The threads that in the window were permitted to run on a CPU other than these, by time."""
        escapes = [
            Escape(s.pid, s.tid, s.name, s.cpus, max(begin_ns, s.first_seen_ns))
            for s in self.threads(group, begin_ns, end_ns)
            if not allowed.issuperset(s.cpus)
        ]
        return sorted(escapes, key=lambda escape: escape.at_ns)

    def ran_outside(self, group: str, allowed: frozenset[int], begin_ns: int, end_ns: int) -> list[Escape]:
        """The threads that used CPU time within the window and were last on a CPU other than these, by time.

        One for each thread. Where it ran before it was on the last CPU of an interval is unknown.
        """
        found = []
        for thread in self._by_group.get(group, ()):
            inside = _within(thread.samples, begin_ns, end_ns)
            for i in inside:
                sample = thread.samples[i]
                first = thread.is_new and thread.before_ns is not None and thread.before_ns >= begin_ns
                if i > inside.start:
                    used_ns = sample.cpu_ns - thread.samples[i - 1].cpu_ns
                else:  # the interval began before the window, unless the thread began in it
                    used_ns = sample.cpu_ns if i == 0 and first else 0
                if used_ns > 0 and sample.cpu is not None and sample.cpu not in allowed:
                    name = thread.states[-1].name
                    found.append(Escape(thread.pid, thread.tid, name, (sample.cpu,), sample.at_ns))
                    break
        return sorted(found, key=lambda ran: ran.at_ns)

    def alive(self, group: str, at_ns: int | None = None) -> int:
        """How many of its processes were alive in the last sample (not after `at_ns`); zombies are not."""
        samples = self._groups.get(group, _Group()).samples
        index = (len(samples) if at_ns is None else bisect_right(samples, at_ns, key=_instant)) - 1
        return samples[index].processes if index >= 0 else 0

    def rss_kb(self, group: str, begin_ns: int, end_ns: int) -> list[tuple[int, int]]:
        """Resident memory of all its processes at each sample, KiB; shared pages count once for each process."""
        samples = self._groups.get(group, _Group()).samples
        return [(samples[i].at_ns, samples[i].rss_kb) for i in _within(samples, begin_ns, end_ns)]

    def io_bytes(self, group: str, begin_ns: int, end_ns: int) -> tuple[int | None, int | None]:
        """Bytes that the group read from and wrote to storage in the window; None if unknown."""
        sampled = self.sampled(group, begin_ns, end_ns)
        if sampled is None:
            return None, None
        read, written = (self._groups[group].grown(figure, *sampled) for figure in ("read_bytes", "write_bytes"))
        return None if read is None else round(read), None if written is None else round(written)

    def io_by_interval(self, group: str, begin_ns: int, end_ns: int) -> list[tuple[int, int | None, int | None]]:
        """Likewise in each interval that lies within the window: instant of its end, bytes read, bytes written."""
        return [
            (b.at_ns, _difference(b.read_bytes, a.read_bytes), _difference(b.write_bytes, a.write_bytes))
            for a, b in self._groups.get(group, _Group()).intervals(begin_ns, end_ns)
        ]

    def tables(self, interval_ns: int | None = None) -> dict[str, pl.DataFrame]:
        """`monitor_threads`, a row for each sample of a thread, and `monitor_cpus`, one for each of a CPU.

        Figures are those of the interval before the sample; null if the previous one is unknown. `cpus` is text in the
        kernel's notation ("0-1,4"). With an interval longer than the monitor's own, samples are left out, and the
        figures of their intervals added to those of the next one; for a thread that ended, its last row is kept.
        """
        import polars as pl

        text = dict.fromkeys(("group", "name", "policy", "cpus"), pl.String)
        threads = [row for thread in self._threads for row in thread.rows()]
        cpus = [(sample.at_ns, number, *sample[1:]) for number, samples in self._cpus.items() for sample in samples]
        found = {
            "monitor_threads": pl.DataFrame(
                threads, schema={name: text.get(name, pl.Int64) for name in _THREAD_COLUMNS}, orient="row"
            ).sort("at_ns", "group", "pid", "tid", maintain_order=True),
            "monitor_cpus": pl.DataFrame(cpus, schema=dict.fromkeys(_CPU_COLUMNS, pl.Int64), orient="row").sort(
                "at_ns", "cpu"
            ),
        }
        if interval_ns is None or self._interval_ns is None or interval_ns <= self._interval_ns:
            return found
        kept = self._every(interval_ns, self._interval_ns)
        return {
            "monitor_threads": _thinned(found["monitor_threads"], kept, ("group", "pid", "tid")),
            "monitor_cpus": _thinned(found["monitor_cpus"], kept, ("cpu",)),
        }

    def _every(self, interval_ns: int, own_ns: int) -> list[int]:
        """The samples that a monitor with a longer interval would have taken, and the last one, so that nothing is
        lost."""
        kept: list[int] = []
        for at_ns in self._at_ns:
            if not kept or at_ns >= kept[-1] + interval_ns - own_ns // 2:
                kept.append(at_ns)
        return kept if kept[-1:] == self._at_ns[-1:] else [*kept, self._at_ns[-1]]

    def _by_thread(self, group: str, begin_ns: int, end_ns: int, figure: str) -> dict[int, float | None]:
        sampled = self.sampled(group, begin_ns, end_ns)
        found: dict[int, float | None] = {}
        if sampled is None:
            return found
        begin, end = sampled
        for thread in self._by_group.get(group, ()):
            if not thread.samples or thread.samples[0].at_ns > end or thread.samples[-1].at_ns < begin:
                continue
            grown = thread.between(figure, begin, end)
            before = found.get(thread.tid)
            # A number may belong to several threads, one after the other.
            found[thread.tid] = before if grown is None else (before or 0.0) + grown / NS_PER_S
        return found


def tables(path: Path) -> dict[str, pl.DataFrame]:
    """The tables of a file. Raises RecordError and OSError."""
    reader = MonitorReader(path)
    reader.refresh()
    return reader.tables()


def write_tables(directory: Path, reader: MonitorReader, interval_ns: int | None = None) -> list[Path]:
    """Writes monitor_threads.parquet and monitor_cpus.parquet, each completely or not at all. Raises OSError.

    `interval_ns` as in MonitorReader.tables().
    """
    from perflab.formats.tables import write_tables as write  # numpy, which conditions do not need

    return [directory / name for name in write(directory, lambda: reader.tables(interval_ns))]


_THREAD_COLUMNS = (
    "at_ns", "group", "pid", "tid", "name", "cpu_interval_ns", "run_delay_interval_ns", "cpu", "policy", "priority",
    "cpus", "voluntary", "involuntary",
)  # fmt: skip
# Columns about the interval before a sample.
_ADDED = (
    "cpu_interval_ns", "run_delay_interval_ns", "voluntary", "involuntary", "busy_ns", "idle_ns", "steal_ns",
    "interval_ns",
)  # fmt: skip
_CPU_COLUMNS = ("at_ns", "cpu", "busy_ns", "idle_ns", "steal_ns", "interval_ns")


def _thinned(table: pl.DataFrame, kept: Sequence[int], of: tuple[str, ...]) -> pl.DataFrame:
    """One row for each interval between two kept instants: figures are added, everything else is from the last
    sample."""
    import polars as pl

    bucket = "bucket"
    numbers = [bisect_left(kept, at_ns) for at_ns in table["at_ns"]]
    added = [name for name in _ADDED if name in table.columns]
    last = [name for name in table.columns if name not in added and name not in of]
    # A sum with an unknown part is unknown.
    sums = [
        pl.when(pl.col(name).is_null().any()).then(None).otherwise(pl.col(name).sum()).alias(name) for name in added
    ]
    return (
        table.with_columns(pl.Series(bucket, numbers, pl.Int64))
        .group_by(bucket, *of, maintain_order=True)
        .agg(*(pl.col(name).last() for name in last), *sums)
        .select(table.columns)
        .sort("at_ns", *of, maintain_order=True)
    )


def _at(points: Sequence[_Point], at_ns: int) -> float:
    """A cumulative figure at an instant, linear between samples; constant before the first and after the last one."""
    index = bisect_left(points, at_ns, key=_instant)
    if index == 0:
        return points[0][1]
    if index == len(points):
        return points[-1][1]
    (begin_ns, begin), (end_ns, end) = points[index - 1 : index + 1]
    return begin + (at_ns - begin_ns) / (end_ns - begin_ns) * (end - begin)


def _difference(later: int | None, earlier: int | None) -> int | None:
    return None if later is None or earlier is None else later - earlier
