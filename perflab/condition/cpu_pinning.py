"""`cpu_pinning`: every thread of the workload may use only some CPUs, all the time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import Field, model_validator

from perflab.condition import Applied, Condition, Evidence, NotInEffect, Shown, Trial, Window
from perflab.condition.evidence import (
    allowed_cpus,
    catch_up,
    cpu_words,
    longest_gap_s,
    require_cpus,
    require_processes,
    rounded,
)
from perflab.errors import BadInput
from perflab.formats.monitor import Escape
from perflab.host import Host
from perflab.kernel import parse_cpu_list
from perflab.parameters import Cpus, Names, Switch
from perflab.processes import descendants, read_process, read_thread, threads_of
from perflab.registry import Kind
from perflab.units import NS_PER_S, on_cpus, plural
from perflab.workload import Graph

GROUP = "workload"  # name of a monitor group: workload/<process>


CpusOfWorkload = Annotated[int, Shown("CPUs of the workload")]
Outside = Annotated[int, Shown("threads seen outside these CPUs")]


@dataclass(frozen=True, kw_only=True)
class Promised:
    cpus: tuple[int, ...]
    """CPUs that every thread may use, and no others."""
    count: CpusOfWorkload
    """Number of these CPUs."""
    threads_outside: Outside = 0
    """Threads that may be seen elsewhere: none."""
    processes: tuple[str, ...]
    """Pinned processes of the workload."""
    asked: Mapping[str, Any]
    """`count` or `cpus` as given."""
    clipped: bool
    """Whether the machine has fewer CPUs than requested."""


@dataclass(frozen=True)
class RanOutside:
    pid: int
    tid: int
    name: str
    cpu: int
    at_ns: int


@dataclass(frozen=True, kw_only=True)
class ProcessSeen:
    threads: int
    samples: int
    threads_at_end: int | None
    affinities: tuple[tuple[int, ...], ...]
    escapes: tuple[Escape, ...]
    ran_outside: tuple[RanOutside, ...]
    never_watched: int | None


@dataclass(frozen=True, kw_only=True)
class Achieved:
    threads: int
    """Threads that perflab-monitor saw in the measured part."""
    samples: int
    """Samples of the process with the fewest."""
    threads_outside: Outside
    """Threads that could run, or ran, on other CPUs, over all samples."""
    interval_s: float | None
    """Time between two samples, during which a thread may have run elsewhere unseen."""
    monitor_gap_s: float | None
    """Longest time without a sample."""
    processes: Mapping[str, ProcessSeen]
    """For each process: the `affinities` seen, `escapes` (could run elsewhere), `ran_outside`, `threads_at_end`
    (from /proc; null: it had ended), `never_watched` (threads at the end that are in no sample)."""


@dataclass(frozen=True, kw_only=True)
class PinningEvidence(Evidence):
    promised: Promised
    achieved: Achieved


class CpuPinning(Condition):
    """Sets the CPUs of the workload's processes before they execute, so that every thread inherits them."""

    name: ClassVar[str] = "cpu_pinning"
    evidence: ClassVar[type[Evidence]] = PinningEvidence

    count: int | None = Field(
        default=None, ge=1, le=4096, description="how many CPUs: the highest-numbered ones that perflab may use"
    )
    cpus: Cpus | None = Field(default=None, description="which CPUs, e.g. 0,2-3; instead of count")
    processes: Names = Field(default=(), description="names of the processes of the workload to pin (default: all)")
    clip: Switch = Field(
        default=False, description="on: use as many of the CPUs as this machine has; off: fail if some are missing"
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> CpuPinning:
        if (self.count is None) == (self.cpus is None):
            raise ValueError("give exactly one of count and cpus")
        return self

    def check(self, host: Host, graph: Graph, runtime: str) -> None:
        require_processes(self.label, runtime)
        chosen = self.choose(allowed_cpus())
        there = (*graph.own_processes, *graph.started_outside)
        for name in self.processes:
            if name not in there:
                known = ", ".join(there)
                raise BadInput(f"{self.label}: the workload has no process {name!r}; choose from {known}")
        for process in graph.document["processes"]:
            if process["name"] in self.pinned(graph):
                for what, cpus in _asked_cpus(process):
                    outside = [cpu for cpu in cpus if cpu not in chosen]
                    if outside:
                        raise BadInput(
                            f"{self.label}: the graph puts {what} of process {process['name']!r} on "
                            f"{cpu_words(cpus)}, but the pinning allows {cpu_words(chosen)}"
                        )

    def pinned(self, graph: Graph) -> tuple[str, ...]:
        """The pinned processes of the workload."""
        return self.processes or (*graph.own_processes, *graph.started_outside)

    def choose(self, allowed: tuple[int, ...]) -> tuple[int, ...]:
        """The CPUs that the workload may use, out of those that perflab may use. Raises BadInput."""
        here = f"this machine allows {plural(len(allowed), 'CPU')}"
        if self.count is not None:
            if self.count > len(allowed) and not self.clip:
                raise BadInput(f"{self.label}: count {self.count}, but {here}; clip=on uses as many as there are")
            return allowed[-self.count :]
        wanted = self.cpus or ()
        if not self.clip:
            require_cpus(self.label, wanted)
            return wanted
        chosen = tuple(cpu for cpu in wanted if cpu in allowed)
        if not chosen:
            raise BadInput(f"{self.label}: none of cpus {','.join(map(str, wanted))} is allowed here")
        return chosen

    def begin(self, trial: Trial) -> Pinned:
        pinned = Pinned(self, trial)
        for name in pinned.processes:
            if name in trial.launch.cpus_of:
                raise NotInEffect(f"another condition has pinned process {name!r} already")
            trial.launch.cpus_of[name] = frozenset(pinned.cpus)
        return pinned


class Pinned(Applied):
    """The workload's pinned processes of one trial; nothing to undo."""

    def __init__(self, asked: CpuPinning, trial: Trial) -> None:
        self.asked = asked
        self.trial = trial
        self.processes = asked.pinned(trial.graph)
        self.cpus = asked.choose(allowed_cpus())

    def verify(self, window: Window) -> Evidence:
        groups = [f"{GROUP}/{name}" for name in self.processes]
        reason = catch_up(self.trial, window, groups)
        interval_ns = self.trial.monitor.interval_ns
        seen: dict[str, ProcessSeen] = {}
        for name in self.processes:
            seen[name], problem = self._judge(name, frozenset(self.cpus), window)
            reason = reason or problem
        asked = {"count": self.asked.count, "cpus": self.asked.cpus}
        promised = Promised(
            cpus=self.cpus,
            count=len(self.cpus),
            processes=tuple(self.processes),
            asked={key: value for key, value in asked.items() if value is not None},
            clipped=(self.asked.count or len(self.asked.cpus or ())) != len(self.cpus),
        )
        achieved = Achieved(
            threads=sum(p.threads for p in seen.values()),
            samples=min((p.samples for p in seen.values()), default=0),
            threads_outside=sum(len(p.escapes) + len(p.ran_outside) for p in seen.values()),
            interval_s=None if interval_ns is None else interval_ns / NS_PER_S,
            monitor_gap_s=rounded(longest_gap_s(self.trial, groups, window)),
            processes=seen,
        )
        return PinningEvidence(promised=promised, achieved=achieved, reason=reason)

    def _judge(self, name: str, allowed: frozenset[int], window: Window) -> tuple[ProcessSeen, str | None]:
        """What was seen of the threads of one process and its descendants, and which of them could run elsewhere."""
        monitor, group = self.trial.monitor, f"{GROUP}/{name}"
        states = monitor.threads(group, window.begin_ns, window.end_ns)
        at_end = list(self._read_now(name))
        escapes = monitor.escaped(group, allowed, window.begin_ns, window.end_ns)
        outside = monitor.ran_outside(group, allowed, window.begin_ns, window.end_ns)
        seen = ProcessSeen(
            threads=len({(s.pid, s.tid) for s in states}),
            samples=len(monitor.rss_kb(group, window.begin_ns, window.end_ns)),
            threads_at_end=len(at_end) or None,
            affinities=tuple(sorted({tuple(sorted(s.cpus)) for s in states})),
            escapes=tuple(escapes),
            ran_outside=tuple(RanOutside(r.pid, r.tid, r.name, r.cpus[0], r.at_ns) for r in outside),
            never_watched=self._never_watched(group, at_end),
        )

        def problem(tid: int, thread: str, did: str, cpus: Iterable[int], when: str) -> str:
            return (
                f"thread {tid} ({thread}) of process {name!r} {did} on {cpu_words(cpus)} {when}, but "
                f"{cpu_words(allowed)} was promised"
            )

        def since(at_ns: int) -> str:
            return f"{max(0, at_ns - window.begin_ns) / NS_PER_S:.1f} s into the measured time"

        if not states:
            return seen, f"the monitor has seen no thread of process {name!r}"
        for e in escapes:
            return seen, problem(e.tid, e.name, "could run", e.cpus, since(e.at_ns))
        for r in outside:
            return seen, problem(r.tid, r.name, "ran", r.cpus, since(r.at_ns))
        if seen.never_watched:
            were = "were" if seen.never_watched > 1 else "was"
            return seen, f"{plural(seen.never_watched, 'thread')} of process {name!r} {were} never sampled"
        for _, tid, thread, cpus in at_end:
            if not cpus <= allowed:
                return seen, problem(tid, thread, "could run", cpus, "at the end")
        return seen, None

    def _never_watched(self, group: str, at_end: list[tuple[int, int, str, frozenset[int]]]) -> int | None:
        """How many of the threads at the end the monitor never saw, though it had the time; None: it saw nothing."""
        last_ns, interval_ns = self.trial.monitor.last_at_ns, self.trial.monitor.interval_ns
        if last_ns is None or interval_ns is None:
            return None
        watched = {seen.tid for seen in self.trial.monitor.threads(group, 0, last_ns)}
        # The next sample finds a new thread, and the one after it a thread that began during a sample.
        old_ns = last_ns - 2 * interval_ns
        unseen = [(pid, tid) for pid, tid, _, _ in at_end if tid not in watched]
        began = (read_thread(pid, tid) for pid, tid in unseen)
        return sum(thread is not None and thread.started_ns < old_ns for thread in began)

    def _read_now(self, name: str) -> Iterator[tuple[int, int, str, frozenset[int]]]:
        """Process, number, name and CPUs of every thread of a process and its descendants, from /proc."""
        root = self.trial.processes.get(name)
        if root is None or (first := read_process(root)) is None:
            return
        tree = [first, *descendants(root)]
        for process in tree:
            for tid, status in threads_of(process.pid):
                if "Cpus_allowed_list" in status:
                    cpus = frozenset(parse_cpu_list(status["Cpus_allowed_list"]))
                    yield process.pid, tid, status.get("Name", "?"), cpus


def _asked_cpus(process: dict[str, Any]) -> Iterator[tuple[str, list[int]]]:
    """The CPUs that a process of a graph requests for some of its threads."""
    for role, settings in (process.get("threads") or {}).items():
        if settings and settings.get("cpus"):
            yield f"the threads of {role}", settings["cpus"]
    for executor in process.get("executors", ()):
        settings = executor.get("thread")
        if settings and settings.get("cpus"):
            yield f"executor {executor['id']}", settings["cpus"]


def words(given: Mapping[str, Any]) -> str:
    if given.get("count") is not None:
        return f"pinning to {plural(given['count'], 'CPU')}"
    return f"pinning{on_cpus(given['cpus'])}"


KIND: Kind[Condition] = Kind(
    "cpu_pinning",
    "every thread of the workload may use only some CPUs, verified for each",
    CpuPinning,
    words=words,
    gently=("count=1",),
)
