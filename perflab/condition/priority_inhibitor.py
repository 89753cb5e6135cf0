"""`priority_inhibitor`: a program that burns CPU time with its own policy and priority, ended by a watchdog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from perflab import native
from perflab.condition import Applied, Companion, Condition, Evidence, Shown, Trial, Window
from perflab.condition import cpu_demand as demand
from perflab.condition.cpu_demand import CpuDemand, CpusWanted
from perflab.condition.evidence import (
    allowed_cpus,
    catch_up,
    differing,
    has_ended,
    longest_gap_s,
    ready,
    require_cpus,
    require_processes,
    rounded,
    wait_until_seen,
)
from perflab.errors import Unavailable
from perflab.host import Host
from perflab.parameters import Cpus, DurationNs, Percent
from perflab.real_time import BOUNDLESS, RealTimeUse, real_time_limits
from perflab.registry import Kind
from perflab.units import NS_PER_S, format_duration, is_zero, on_cpus
from perflab.workload import Graph

PROGRAM = "perflab-burn"
READY_LIMIT_S = 20.0
SETTLED_S = 0.5
PERIOD_NS = 10_000_000
LEAST_JUDGED_NS = NS_PER_S // 2  # for a finite amount: until it ended, including before the measured part
DEFAULT_LIMIT: Any = "10min"  # parsed like a user's value


@dataclass(frozen=True, kw_only=True)
class Promised:
    policy: str
    """Scheduling policy."""
    priority: int
    """Real-time priority; 0 with OTHER."""
    nice: int
    """Nice value."""
    cpus: tuple[int, ...]
    """CPUs that it burns, with a thread on each."""
    load_percent: float
    """Share of each of these CPUs."""
    demand_cpus: CpusWanted
    """Demand of all threads, in CPUs."""
    when: str
    """Whether it started before or after the workload's processes."""
    amount_s: float | None = None
    """CPU time that each thread burns before it ends; null: until the trial is over."""


@dataclass(frozen=True, kw_only=True)
class ThreadState:
    tid: int
    policy: str
    priority: int
    nice: int
    cpus: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class BurningThread(CpuDemand):
    tid: int
    cpu: int


@dataclass(frozen=True, kw_only=True)
class Achieved:
    monitor_gap_s: float | None
    """Longest time without a sample of perflab-monitor."""
    states: tuple[ThreadState, ...]
    """The distinct combinations of policy, priority, nice value and CPUs of its threads in the samples."""
    threads: tuple[BurningThread, ...]
    """What each thread used and wanted of its CPU."""
    cpus_wanted: CpusWanted
    """CPU time and run delay of all threads."""
    cpus_used: Annotated[float | None, Shown("CPUs used")]
    """CPU time of all threads."""
    ended_ns: int | None
    """When it had burnt its amount, CLOCK_MONOTONIC; null: it ran until the end."""
    real_time_share: float | None
    """Share of a CPU that real-time threads together may use; 1: they are not throttled; null: unknown."""
    fair_server_share: float | None
    """Share that waiting threads of other policies still get; 0: none; null: unknown."""


@dataclass(frozen=True, kw_only=True)
class InhibitorEvidence(Evidence):
    promised: Promised
    achieved: Achieved
    program: str = PROGRAM
    """What burns."""


class PriorityInhibitor(Condition):
    """Takes CPU time from all threads of a lower priority."""

    name: ClassVar[str] = "priority_inhibitor"
    evidence: ClassVar[type[Evidence]] = InhibitorEvidence

    policy: Literal["OTHER", "FIFO", "RR"] = Field(default="FIFO", description="scheduling policy of its threads")
    priority: int = Field(
        default_factory=lambda given: 50 if given.get("policy") in BOUNDLESS else 0,
        ge=0,
        le=99,
        description="1 to 99 with FIFO and RR (default 50), 0 with OTHER",
    )
    nice: int = Field(default=0, ge=-20, le=19, description="nice value; with OTHER")
    cpus: Cpus = Field(
        default_factory=lambda: allowed_cpus()[-1:],
        description="CPUs to burn, with a thread on each (default: the highest that perflab may use)",
    )
    load: Percent = Field(default=100.0, ge=1, le=100, description="share of each of these CPUs, in percent")
    when: Literal["before", "after"] = Field(
        default="before", description="whether it starts before or after the workload's processes"
    )
    amount: DurationNs | None = Field(
        default=None,
        ge=NS_PER_S,
        description="CPU time that each thread burns before it ends, as a job of that size; default: until the "
        "trial ends",
    )
    limit: DurationNs = Field(
        default=DEFAULT_LIMIT,
        ge=NS_PER_S,
        description="watchdog: it ends itself after this time in any case; must exceed the trial's length",
    )

    @model_validator(mode="after")
    def _priority_of_policy(self) -> PriorityInhibitor:
        if self.policy in BOUNDLESS and self.priority == 0:
            raise ValueError(f"priority of {self.policy} must be 1 to 99, not 0")
        if self.policy not in BOUNDLESS and self.priority:
            raise ValueError(f"priority of {self.policy} must be 0, not {self.priority}; use nice")
        if self.policy in BOUNDLESS and self.nice:
            raise ValueError(f"nice has no effect with {self.policy}; use priority")
        if self.amount is not None and self.amount >= self.limit:
            raise ValueError("amount must be below limit, at which the watchdog ends it; raise limit")
        return self

    @property
    def begins(self) -> str:
        return self.when

    @property
    def due(self) -> float:
        """The share of its CPU that a thread can get: the kernel may limit real-time threads."""
        share = self.load / 100
        return min(share, real_time_limits().at_least) if self.policy in BOUNDLESS else share

    @property
    def real_time(self) -> RealTimeUse | None:
        return RealTimeUse(self.label, self.policy, self.priority, self.cpus) if self.policy in BOUNDLESS else None

    def check(self, host: Host, graph: Graph, runtime: str) -> None:
        require_processes(self.label, runtime)
        require_cpus(self.label, self.cpus)
        native.find().program(PROGRAM)
        if self.policy in BOUNDLESS and not host.may_be_real_time(self.priority):
            raise Unavailable(
                f"{self.label}: this user may not use {self.policy} {self.priority}; run as root, or set `rtprio "
                "98` in /etc/security/limits.d/perflab.conf"
            )

    def begin(self, trial: Trial) -> Burning:
        return Burning(self, trial)


class Burning(Applied):
    """The burning program of one trial."""

    def __init__(self, asked: PriorityInhibitor, trial: Trial) -> None:
        self.asked = asked
        self.trial = trial
        self.burner: Companion = trial.start(
            asked.label,
            [
                trial.native.program(PROGRAM),
                *("--policy", asked.policy, "--priority", str(asked.priority), "--nice", str(asked.nice)),
                *("--cpus", ",".join(map(str, asked.cpus)), "--load", f"{asked.load:g}"),
                *("--period-ns", str(PERIOD_NS), "--limit-ns", str(asked.limit)),
                *(() if asked.amount is None else ("--amount-ns", str(asked.amount))),
            ],
            control=True,
        )
        self.threads = self._ready()
        self._ended_ns: int | None = None  # when it had burnt its amount
        self._limit_reached = False

    def settle(self) -> None:
        wait_until_seen(self.trial, "it", SETTLED_S, self._gone, lambda window: self._judge(window)[1])

    def verify(self, window: Window) -> Evidence:
        asked = self.asked
        late = catch_up(self.trial, window, [asked.label])
        gone = self._gone()
        achieved, weak = self._judge(window)
        promised = Promised(
            policy=asked.policy,
            priority=asked.priority,
            nice=asked.nice,
            cpus=asked.cpus,
            load_percent=asked.load,
            demand_cpus=asked.load / 100 * len(asked.cpus),
            when=asked.when,
            amount_s=None if asked.amount is None else asked.amount / NS_PER_S,
        )
        return InhibitorEvidence(promised=promised, achieved=achieved, reason=late or gone or weak)

    def remove(self) -> None:
        self.burner.stop()

    def _ready(self) -> list[dict[str, Any]]:
        """The burning threads, as reported by the program."""
        said = ready(self.burner, PROGRAM, READY_LIMIT_S)
        if said["type"] == "error":
            raise Unavailable(f"{self.asked.label}: {said['text']}")
        return list(said["threads"])

    def _gone(self) -> str | None:
        """How the burner ended; None if it runs, or waits after burning its amount."""
        reason = has_ended(self.burner, PROGRAM)
        while (said := self.burner.receive(0.0)) is not None:
            if said.get("type") == "spent":
                self._ended_ns = int(said["at_ns"])
            self._limit_reached |= said.get("type") == "done" and bool(said.get("limit_reached"))
        if reason is not None and self._limit_reached:
            return f"the watchdog ended {PROGRAM} after {format_duration(self.asked.limit / NS_PER_S)}: raise limit"
        return reason

    def _judge(self, window: Window) -> tuple[Achieved, str | None]:
        from perflab.results.trial import added

        label, problem = self.asked.label, None
        ended_ns = self._ended_ns
        if ended_ns is not None and ended_ns < window.end_ns:
            window = Window(min(window.begin_ns, ended_ns - LEAST_JUDGED_NS), ended_ns)
        seen = self.trial.monitor.threads(label, window.begin_ns, window.end_ns)
        states: list[ThreadState] = []
        threads: list[BurningThread] = []
        for tid, cpu in zip((int(thread["tid"]) for thread in self.threads), self.asked.cpus, strict=True):
            of_thread = [
                ThreadState(tid=tid, policy=s.policy, priority=s.priority, nice=s.nice, cpus=tuple(sorted(s.cpus)))
                for s in seen
                if s.tid == tid
            ]
            unseen = None if of_thread else f"the monitor has no sample of thread {tid} of {PROGRAM}"
            asked = {key: getattr(self.asked, key) for key in ("policy", "priority", "nice")} | {"cpus": (cpu,)}
            problem = problem or unseen or differing(self.trial, label, window, {tid: asked}, PROGRAM)
            use, weak = demand.judge(self.trial, label, [tid], [cpu], self.asked.due, window)
            problem = problem or (f"CPU {cpu}: {weak}" if weak else None)
            states += of_thread
            threads.append(BurningThread(tid=tid, cpu=cpu, **vars(use)))
        limits = real_time_limits()
        achieved = Achieved(
            monitor_gap_s=rounded(longest_gap_s(self.trial, [label], window)),
            states=tuple(states),
            threads=tuple(threads),
            cpus_wanted=added(thread.cpus_wanted for thread in threads),
            cpus_used=added(thread.cpus_used for thread in threads),
            ended_ns=ended_ns,
            real_time_share=limits.throttle,
            fair_server_share=limits.fair_server,
        )
        return achieved, problem


def words(given: Mapping[str, Any]) -> str:
    priority = "" if given.get("priority") is None else f" {given['priority']}"
    return f"{given['load']:g} % load of {given['policy']}{priority}{on_cpus(given['cpus'])}"


KIND: Kind[Condition] = Kind(
    "priority_inhibitor",
    "burns CPU time with its own policy and priority",
    PriorityInhibitor,
    words=words,
    is_off=lambda written: is_zero(written.get("load")),
    gently=("load=10",),
)
