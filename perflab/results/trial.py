"""Trials and results: the measurements of one trial, and those of all trials of one treatment.

Times are in nanoseconds, memory in kilobytes of 1024 bytes, CPU in percent of one CPU unless a name says otherwise.
`sent` is what the subscriptions should have received, each message counted once per subscription, so that sent =
received + lost; `published` counts each message once. A total that depends on complete data is null if one part is
unknown. Services are separate: a reply is not a message of a topic.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar

from perflab.models import Count, Ordinal, Share
from perflab.results.figure import Distribution, KeyFigureResult, Median
from perflab.results.machine import Machine
from perflab.results.objective import ObjectiveResult, PathResult
from perflab.results.outcome import INTERRUPTED, SUCCESS, Outcome, Outcomes, OwnOutcome
from perflab.results.phase import ALIGNED
from perflab.units import NS_PER_S, format_duration, is_zero, level_value

Value = TypeVar("Value", int, float)

Drained = Literal["rest", "quiet", "limit"]
Purpose = Literal["measured", "control", "extra"]
Level = bool | int | float | str  # of a factor
MEASURED: Purpose = "measured"

CONTROL: Purpose = "control"  # a baseline without the observers
EXTRA: Purpose = "extra"  # for an observer that disturbs much; excluded from statistics

BASELINE = "baseline"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The settings of trials, without workload and middleware."""

    executor: str | None = None
    """The executor that replaced every executor of the graph, \"multi_threaded:4\" with a number of threads;
    null: as in the graph."""
    ipc: str | None = None
    """Whether intra-process delivery was requested, on or off; null: not recorded."""
    pass_by: str | None = None
    """How every publisher passes its messages, shared, unique or loaned; null: as in the graph."""
    conditions: tuple[str, ...] = ()
    """Empty for the baseline."""
    mitigations: tuple[str, ...] = ()
    """The mitigations among the conditions."""
    treatment: str | None = None
    """Name of the combination of conditions and their levels; baseline has none. Null in runs from before
    treatments existed, and in foreign ones."""
    condition_parameters: Mapping[str, Any] = field(default_factory=dict)
    """Parameters of each condition, by its label."""
    factors: Mapping[str, Level] = field(default_factory=dict)
    """Levels of the factors, by their paths."""
    observers: tuple[str, ...] = ()
    purpose: Purpose | None = None
    """control: a baseline without the observers; extra: excluded from statistics. Null in foreign runs."""

    def key(self, middleware: str | None) -> str:
        """Equal for treatments, trials and results that belong together within a workload and a variant."""
        asked = (self.executor, self.ipc, self.pass_by, self.treatment, dict(self.factors), self.observers)
        return json.dumps([middleware, *asked, self.purpose], sort_keys=True)


@dataclass(frozen=True, kw_only=True)
class Circumstances(Asked):
    """The circumstances of trials; trials with equal circumstances make one result."""

    workload: str
    middleware: str | None
    """Joined with + if each process of the graph has its own. Null if a foreign run lacks it."""
    phase: str | None = None
    """The phase of the timers: as_created, aligned, staggered or random, or several as \"aligned+random\"; null:
    there are no timers, or it is unknown."""
    duration_s: float | None = None
    """Requested measured time per trial. Null if a foreign run lacks it."""

    @property
    def label(self) -> str:
        """The label of the treatment; results of older runs only have the names of their conditions."""
        return self.treatment or " + ".join(self.conditions) or BASELINE

    @property
    def is_disturbed(self) -> bool:
        return bool(self.conditions)

    @property
    def disturbances(self) -> tuple[str, ...]:
        """The conditions that are not mitigations."""
        return tuple(name for name in self.conditions if name not in self.mitigations)

    @property
    def is_regular(self) -> bool:
        """Whether its trials are measured ones, i.e. neither controls nor extra ones."""
        return self.purpose in (None, MEASURED)

    @property
    def is_control(self) -> bool:
        return self.purpose == CONTROL

    @property
    def is_extra(self) -> bool:
        return self.purpose == EXTRA

    @property
    def variant(self) -> tuple[str | None, ...]:
        return self.workload, self.middleware, self.executor, self.ipc, self.pass_by

    @property
    def circumstances(self) -> tuple[object, ...]:
        """Trials with equal keys belong to one result."""
        asked = (self.conditions, self.treatment, self.observers, self.purpose)
        return (*self.variant, *asked, tuple(sorted(self.factors.items())))

    @property
    def place(self) -> tuple[object, ...]:
        """What a treatment shares with its baseline; results of one place differ only in conditions and observers."""
        return (*self.variant, tuple(sorted((k, repr(v)) for k, v in level_values(self.outer_factors).items())))

    @property
    def outer_factors(self) -> dict[str, Any]:
        """The levels of the factors that are not parameters of a condition: a baseline has them too.

        A result without a condition may still have levels of it: one of them is 0, at which it has no effect.
        """
        outer, inner = self._outer_names, {*self.conditions, *self.conditions_off}
        names = {path: path.partition(".")[0] for path in self.factors}
        return {p: level for p, level in self.factors.items() if names[p] in outer or names[p] not in inner}

    @property
    def conditions_off(self) -> set[str]:
        """The conditions that levels of factors disable; their other levels then have no effect."""
        there = {*self._outer_names, *self.conditions}
        off = (path.partition(".")[0] for path, level in self.factors.items() if is_zero(level))
        return {name for name in off if name not in there}

    @property
    def _outer_names(self) -> set[str]:
        return {"workload", "middleware", *(self.middleware or "").split("+")}


def as_today(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Upgrades a result or trial of an older version: graphs that were run before phases existed had aligned timers."""
    if "phase" in document or document.get("ipc") is None:
        return document
    return {**document, "phase": ALIGNED}


def level_values(factors: Mapping[str, Any]) -> dict[str, object]:
    """Levels as values, so that equal ones compare equal however they were written: 0 and "0 %"."""
    return {path: level_value(level) for path, level in factors.items()}


@dataclass(frozen=True, kw_only=True)
class Lost:
    pre_match: Count | None = None
    """Before the edge was matched."""
    gap: Count | None = None
    """Missing before or between received messages."""
    tail: Count | None = None
    """Missing after the last received message."""

    @property
    def classes(self) -> tuple[int | None, ...]:
        return self.pre_match, self.gap, self.tail


@dataclass(frozen=True, kw_only=True)
class Counts:
    sent: Count | None = None
    """Messages that subscriptions should have received, or requests that should have been replied to: each counts once
    per subscription of its topic that wants it. sent = received + lost. Null if the last report of a side is missing.
    """
    filtered: Count | None = None
    """Messages rejected by the content filter of a subscription of their topic: neither sent to it nor lost."""
    received: Count | None = None
    """Unique messages, or replies, whose callback began."""
    received_bytes: Count | None = None
    """Their payload, without headers. Null if some of the sizes are unknown."""
    on_time: Count | None = None
    late: Count | None = None
    too_late: Count | None = None
    lost: Lost = Lost()
    reordered: Count | None = None
    """Received after a message with a higher number."""
    duplicate: Count | None = None
    beyond_window: Count | None = None
    """Arrived too late to distinguish a reordered message from a duplicate; not part of received."""
    published: Count | None = None
    """Messages, or requests, written, each counted once."""
    not_sent: Count | None = None
    """Ticks skipped by a timer with overrun `skip`."""
    write_errors: Count | None = None
    publish_delay_ns: Distribution | None = None
    publish_call_ns: Distribution | None = None
    dispatch_ns: Distribution | None = None
    work_ns: Distribution | None = None
    serialize_ns: Distribution | None = None
    """Encoding a message, within publish(); null if messages are encoded once, or by the middleware."""
    deserialize_ns: Distribution | None = None
    """Decoding it, before the callback; likewise."""

    @property
    def times_ns(self) -> Distribution | None:
        """From sending to the callback, of received messages; null if there are only counts."""
        return None

    @property
    def all_lost(self) -> int | None:
        """Null if a class is unknown."""
        return added(self.lost.classes)


@dataclass(frozen=True, kw_only=True)
class Totals(Counts):
    """Over all edges and publishers."""

    latency_ns: Distribution | None = None
    response_ns: Distribution | None = None

    @property
    def times_ns(self) -> Distribution | None:
        return self.latency_ns


@dataclass(frozen=True, kw_only=True)
class EdgeResult(Totals):
    """One publisher, topic and subscription; publish_delay_ns and publish_call_ns are the publisher's."""

    publisher: str | None
    """The node, relative to the root namespace: montreal, robot/montreal. Likewise below. Null if a foreign run
    lacks it."""
    topic: str
    subscription: str
    size_bytes: Count | None
    """Payload without header."""
    frequency_hz: float | None
    """Period of the publishing timer; 0 or null if a reaction publishes."""


@dataclass(frozen=True, kw_only=True)
class ServiceResult(Counts):
    """Requests of one client to one service, and their replies; publish_delay_ns and publish_call_ns are those of the
    requests."""

    client: str
    """The node, relative to the root namespace; likewise the server."""
    service: str
    server: str | None
    """Null if a foreign run lacks it."""
    size_bytes: Count | None = None
    """Payload of a reply without header."""
    frequency_hz: float | None = None
    """Period of the requesting timer."""
    round_trip_ns: Distribution | None = None
    """From the stamp of the request to the callback of its reply; for the result of an action, from the stamp of
    its goal."""
    round_trip_response_ns: Distribution | None = None
    """From the intended time of the request to the callback of its reply."""
    answers: Mapping[str, Count] | None = None
    """For the parts of an action: how often replies had each content (accepted, rejected; succeeded, aborted,
    canceled, unknown). Null for services."""

    @property
    def times_ns(self) -> Distribution | None:
        return self.round_trip_ns


@dataclass(frozen=True, kw_only=True)
class ProcessResources:
    """The resources that one process used in the measured part; null if it was not sampled."""

    process: str
    cpu_percent_mean: float | None = None
    rss_kb_max: Count | None = None
    minor_faults: Count | None = None
    """Page faults without, and major ones with, reading from storage; for several trials, the largest count."""
    major_faults: Count | None = None
    cpu_percent_of_machine: float | None = None
    """CPU use in percent of all CPUs of the machine; only for runs of other programs."""


@dataclass(frozen=True, kw_only=True)
class Resources:
    """CPU time in percent of one CPU, over the measured part; peak resident memory since the process started."""

    cpu_percent_mean: float | None = None
    """Of all processes together."""
    rss_kb_max: Count | None = None
    """Of the largest process."""
    processes: tuple[ProcessResources, ...] = ()
    cpu_percent_of_machine: float | None = None
    """CPU use in percent of all CPUs of the machine; only for runs of other programs."""


@dataclass(frozen=True, kw_only=True)
class ThreadGroup:
    """Threads of one process with the same name and scheduling, as reported by the kernel."""

    process: str
    name: str
    role: str
    """executor, middleware, perflab or tracer."""
    asked: Mapping[str, Any] | None
    """What the graph or the command line requested; null: nothing."""
    policy: str
    """As named by chrt(1): OTHER, FIFO, RR, BATCH, IDLE, DEADLINE."""
    priority: int
    """Real-time priority; 0 for the other policies."""
    cpus: tuple[int, ...]
    """CPUs that they may use."""
    tids: tuple[int, ...]
    runtime_ns: Count | None = None
    """For DEADLINE, like the next two; null for the others."""
    deadline_ns: Count | None = None
    period_ns: Count | None = None

    @property
    def scheduled(self) -> str:
        """ "RR 98", "DEADLINE 2 ms/10 ms/10 ms"."""
        times = (self.runtime_ns, self.deadline_ns, self.period_ns)
        of_deadline = "/".join(format_duration(ns / NS_PER_S) for ns in times if ns is not None)
        return " ".join(filter(None, (self.policy, str(self.priority or ""), of_deadline)))


@dataclass(frozen=True, kw_only=True)
class AllocationSite:
    """Call sites where threads of one name of one process allocated memory in the measured part."""

    process: str
    thread: str | None
    """Null if the thread had ended."""
    role: str
    """executor, middleware or tracer."""
    count: Count
    bytes: Count
    frames: tuple[str, ...]
    """The callers, the innermost first: functions, or object+offset if the object has no name for them."""


@dataclass(frozen=True, kw_only=True)
class Passing:
    """How the messages of one publisher were delivered."""

    node: str
    topic: str
    asked: str | None
    """shared, unique or loaned."""
    intra_process: Count
    """Subscriptions reached without the middleware."""
    copies: Count
    """Copies of each message made for them."""
    middleware: Count
    """Readers reached through the middleware."""
    loaned: bool
    """Written into memory loaned by the middleware."""


@dataclass(frozen=True, kw_only=True)
class Discovery:
    """From the creation of the participant until all others were found and all endpoints matched, in the slowest
    process; null if the middleware does not report it."""

    participants: int | None = None
    endpoints: int | None = None


@dataclass(frozen=True, kw_only=True)
class Recovery:
    """A process that crashed and came back (condition `crash`). Times begin when it was started again."""

    process: str
    """Name of the files of its first life."""
    matched_ns: int | None = None
    """Until all its endpoints were matched."""
    first_message_ns: int | None = None
    """Until the callback of its first message; null: none came."""
    missed: Count | None = None
    """Messages between the last one of the first life and the first one of the second, over its edges."""


@dataclass(frozen=True, kw_only=True)
class Why:
    """Why messages were late, from the trace of a trial."""

    sentence: str
    limit: str
    """The definition of late, in words."""
    messages: Count
    late: Count
    total_ns: int | None
    """Sum over all late messages, from their due time."""
    unknown_ns: int | None = None
    unknown_percent: float | None = None
    causes: tuple[Mapping[str, Any], ...] = ()
    """By cause, like `causes` of `perflab trace why --json`."""
    totals: tuple[Mapping[str, Any], ...] = ()
    """By cause and thread, the first of `totals` there."""
    quality: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A criterion of success, and whether a trial met it."""

    criterion: str
    met: bool | None
    """Null if the metric was not measured: then the trial did not meet the criterion, either."""
    words: str


@dataclass(frozen=True, kw_only=True)
class Cost:
    """CPU time of all processes between the two ends of the measured part, by role of threads (`ended`: threads that
    ended within it), and the processor's counters."""

    cpu_ns: Count
    roles: Mapping[str, int]
    cycles: Count | None = None
    """Null if not counted; `cycles_reason` says why."""
    cycles_reason: str | None = None
    instructions: Count | None = None
    instructions_reason: str | None = None
    cache_misses: Count | None = None
    """Of the last level of caches."""
    cache_misses_reason: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SystemCounts:
    """Counters of the operating system in the measured part, over all processes of the workload including perflab's own
    threads in them; null if it has none, and `reasons` gives the reason by field."""

    minor_faults: Count | None = None
    """Page faults without, and major ones with, reading from storage."""
    major_faults: Count | None = None
    block_inputs: Count | None = None
    """Read from storage, in blocks of 512 bytes; outputs likewise for writes."""
    block_outputs: Count | None = None
    signals: Count | None = None
    voluntary_switches: Count | None = None
    involuntary_switches: Count | None = None
    socket_drops: Count | None = None
    """Datagrams for which sockets of the processes had no room."""
    wire_bytes: Count | None = None
    """Sent over all interfaces of the network namespace, including the loopback, by any program in it."""
    wire_packets: Count | None = None
    tcp_retransmissions: Count | None = None
    """Segments, also of the network namespace."""
    retransmitted_bytes: Count | None = None
    """Messages that the middleware sent again, during the whole life of each process."""
    reasons: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class RoleShare:
    share: Share
    groups: Mapping[str, Share]


@dataclass(frozen=True, kw_only=True)
class Families:
    """Shares of the CPU time (docs/profiling.md), from 0 to 1: `shares` by family, `groups` of families (application,
    executor, rcl, rmw, dds, kernel, other), `by_role` the same for the threads of a role."""

    samples: Count
    titles: Mapping[str, str]
    shares: Mapping[str, Share]
    groups: Mapping[str, Share]
    by_role: Mapping[str, RoleShare]
    warnings: tuple[str, ...] = ()
    trial: int | None = None
    """The treatment that they belong to, in executor_costs."""


@dataclass(frozen=True, kw_only=True)
class PhaseRow:
    function: str
    """thread, spin, get_next_executable, get_next_ready_executable, wait_for_work, execute or dispatch."""
    depth: Count
    count: Count
    wall_ns: Count
    on_cpu_ns: Count | None
    cpu_usage: float | None
    of_thread: float | None
    of_parent: float | None


@dataclass(frozen=True, kw_only=True)
class Phases:
    """What the executor threads did, all of them together; `perflab trace executor` shows each (docs/tracing.md). CPU
    time is null if the scheduler's events are missing or cover too little, and `reason` says so. Shares from 0 to 1, of
    CPU time."""

    threads: Count
    reason: str | None
    rows: tuple[PhaseRow, ...]
    trial: int | None = None
    """The treatment that they belong to, in executor_costs."""


SLOPE_FROM_S = 5  # seconds: over fewer, a slope would be mostly chance


class HasCounts(Protocol):
    """The fields common to a trial and a result: counts on topics and services."""

    @property
    def totals(self) -> Totals: ...
    @property
    def services(self) -> tuple[ServiceResult, ...]: ...
    @property
    def resources(self) -> Resources: ...
    @property
    def edges(self) -> tuple[EdgeResult, ...]: ...


@dataclass(frozen=True, kw_only=True)
class CpuHolder:
    """A thread that had the CPU while another one waited for it."""

    process: str | None
    """Null for a thread of the kernel, or if unknown."""
    pid: Count | None = None
    tid: Count
    name: str
    policy: str | None
    """As named by chrt(1); from a trace alone, its priority as people set it, e.g. RT 90, which is FIFO or RR."""
    priority: Count | None
    """Real-time priority; null without one."""
    cpu: Count | None
    share: Share
    """Share of the other thread's waiting time, from 0 to 1."""

    @property
    def words(self) -> str:
        number = f"tid {self.tid}" if self.pid is None else f"pid {self.pid}"
        place = "" if self.cpu is None else f" on CPU {self.cpu}"
        who = self.process or self.name
        return f"{who} ({', '.join(filter(None, (number, _scheduled(self.policy, self.priority))))}){place}"


def _scheduled(policy: str | None, priority: int | None) -> str:
    """ "RR 90"."""
    return " ".join(str(word) for word in (policy, priority) if word)


@dataclass(frozen=True, kw_only=True)
class LockWaiter:
    """A thread that waits for a lock held by a starved thread of its process."""

    process: str | None
    """Null if no event of a trace has its name."""
    tid: Count
    name: str
    policy: str | None
    priority: Count | None
    address: str
    """Address of the lock in the process's memory."""

    @property
    def words(self) -> str:
        how = ", ".join(filter(None, (f"tid {self.tid}", _scheduled(self.policy, self.priority))))
        return f"thread {self.name} ({how})"


@dataclass(frozen=True, kw_only=True)
class StarvedThread:
    """A thread that was ready to run, and did not get a CPU for most of the observed time, or for long."""

    process: str | None
    """Null for a thread of the kernel, or if unknown."""
    tid: Count
    name: str
    role: str | None = None
    """executor, middleware, perflab or tracer; kernel; null if unknown."""
    policy: str | None
    priority: Count | None
    cpus: tuple[int, ...]
    """CPUs that it may use; from a trace, those that it waited for."""
    waiting_share: Share
    """Share of the observed time, from 0 to 1."""
    longest_ns: Count | None = None
    """Its longest wait; null without a trace."""
    holders: tuple[CpuHolder, ...] = ()
    """The threads that had these CPUs meanwhile, the longest first."""
    lock_waiters: tuple[LockWaiter, ...] | None = None
    """Threads that waited for a lock that it held: at the end of the observation, or in a trace while it
    starved; null if unknown."""

    @property
    def words(self) -> str:
        of_role = self.role if self.role in ("executor", "middleware") else ""
        how = ", ".join(filter(None, (of_role, _scheduled(self.policy, self.priority))))
        place = f" of {self.process}" if self.process else " of the kernel" if self.role == "kernel" else ""
        if self.longest_ns is None:
            waited = f"which waited {100 * self.waiting_share:.0f} % of the time"
        else:
            waited = f"which was ready but did not run for {format_duration(self.longest_ns / NS_PER_S)}"
        behind = f" behind {self.holders[0].words}" if self.holders else ""
        waiters = " and ".join(waiter.words for waiter in self.lock_waiters or ())
        lock = f" and holds a lock that {waiters} waited for" if waiters else ""
        return f"thread {self.name}{f' ({how})' if how else ''}{place}, {waited}{behind}{lock}"


@dataclass(frozen=True, kw_only=True)
class TrialEnd:
    """A trial's place in the plan and how it ended, as in trial.json and the summary."""

    order: Ordinal
    """Its place in the plan."""
    block: Ordinal | None = None
    """Repetition of the whole plan."""
    purpose: Purpose | None = None
    after: str | None = None
    """The disturbing treatment that ran right before this trial."""
    own_outcome: OwnOutcome | None = None
    """Further words from the kind of workload."""
    reason: str | None = None
    interrupted: bool = False
    """A signal ended perflab in this trial, which is not an error; its outcome is harness_error."""
    drain: Drained | None = None
    """How the wait for the last messages ended: everything had arrived, nothing moved for a while, or the limit
    was reached; null if the trial ended before."""
    machine: Machine | None = None
    """The machine's other activity; null if it was not recorded, or time was virtual."""
    starved: tuple[StarvedThread, ...] = ()
    """If the workload failed because it made no progress: its threads, and the kernel's, that got no CPU then."""
    criteria: tuple[Judged, ...] = ()
    evidence: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What each condition promised and achieved, by its label (docs/conditions.md)."""
    messages: Mapping[str, Any] | None = None
    """For a command: `source` of the figures of its messages (trace), or null with the `reason`;
    docs/formats.md, section 6. Null for a graph."""


@dataclass(frozen=True, kw_only=True)
class TrialFacts(TrialEnd):
    """The course of a trial, without its messages."""

    outcome: Outcome
    measured_s: float | None = None
    latency_slope_ns_per_s: float | None = None
    """How the mean latency of a second changed over the measured part; null for fewer than 5 s."""
    rss_slope_kb_per_s: float | None = None
    """Likewise the resident memory of all processes together, in kB of 1024 bytes."""
    """How much of the measured part its records cover."""
    discovery_ns: Discovery = Discovery()
    first_message_ns: int | None = None
    """From when the first message of all, including the warm-up, was due until its callback, on the slowest edge."""
    recoveries: tuple[Recovery, ...] = ()
    """Processes that a condition crashed."""
    allocations: Count | None = None
    """Calls that allocate, in the measured part, of all threads but perflab's own."""
    allocation_sites: tuple[AllocationSite, ...] | None = None
    """The most frequent call sites, from the observer `allocations:call_sites=on`; null without it."""
    why: Why | None = None
    """Null if the trial was not traced, or it is unknown."""
    run_s: float | None = None
    """How long a command that ends by itself ran."""
    cost: Cost | None = None
    """Null if it was not recorded."""
    system: SystemCounts | None = None
    """Null where it was not recorded."""
    ticks_per_s: float | None = None
    """Ticks that the workload's timers had due, if no message was received; else null."""
    families: Families | None = None
    """From a trial with the observer cpu_profile."""
    phases: Phases | None = None
    """From a trial with the observer tracing."""
    paths: tuple[PathResult, ...] | None = None
    """The named paths evaluated in its trace; null if it was not traced, or none were requested."""


@dataclass(frozen=True, kw_only=True)
class Trial(TrialFacts):
    trial: Ordinal
    measured: bool | None = None
    """Whether it ran to its end with everything in effect, and so enters the statistics; a trial that only
    missed a criterion of success does. Null in summaries that record only successes."""
    complete: bool = False
    """Whether every process wrote its final checkpoint."""
    totals: Totals = Totals()
    resources: Resources = Resources()
    services: tuple[ServiceResult, ...] = ()
    observed_ns: Mapping[str, Distribution] = field(default_factory=dict)
    """The times that observers recorded, by metric name."""
    key_figures: Mapping[str, KeyFigureResult] = field(default_factory=dict)
    """Figures that the graph declares, by name (docs/reference_graph.md)."""

    @property
    def edges(self) -> tuple[EdgeResult, ...]:
        """Only a result has single edges."""
        return ()

    @property
    def is_measured(self) -> bool:
        """Whether its figures cover a whole trial, which may have missed a criterion of success."""
        return self.outcome == SUCCESS if self.measured is None else self.measured

    @property
    def ended(self) -> str:
        """Its outcome in words, with the kind of workload's own name if there is one."""
        return INTERRUPTED if self.interrupted else (self.own_outcome or self.outcome).words


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """Which trials the totals, edges and resources of this result cover: its measured trials, or if there is none, all
    with records."""

    trials_merged: Count
    complete: bool


@dataclass(frozen=True, kw_only=True)
class Result(Circumstances):
    """Trials under the same circumstances, and their combined figures."""

    trials: Ordinal
    outcomes: Outcomes
    coverage: Coverage
    totals: Totals
    trials_detail: tuple[Trial, ...]
    intervals: Mapping[str, Median] = field(default_factory=dict)
    """By metric (latency.p99): the median over the trials, with one value each, and its interval."""
    services: tuple[ServiceResult, ...] = ()
    """One per client and service; not part of the totals."""
    edges: tuple[EdgeResult, ...] = ()
    key_figures: Mapping[str, KeyFigureResult] = field(default_factory=dict)
    """Figures that the graph declares, by name (docs/reference_graph.md)."""
    resources: Resources = Resources()
    observed_ns: Mapping[str, Distribution] = field(default_factory=dict)
    """The times that observers recorded, by metric name."""
    threads: tuple[ThreadGroup, ...] | None = None
    """The scheduling of threads, as read back from the kernel in the first merged trial; null if not recorded."""
    passing: tuple[Passing, ...] | None = None
    """How the messages of each publisher were delivered in the first merged trial; null if not recorded."""
    objectives: Mapping[str, ObjectiveResult] = field(default_factory=dict)
    """By measure (median, p99, max, misses), from the named paths of its trials; empty if no trace was evaluated
    for any."""

    @property
    def entering(self) -> list[Trial]:
        """The trials that enter statistics, in the order in which they ran."""
        if self.purpose == EXTRA:
            return []
        return sorted((t for t in self.trials_detail if t.is_measured and t.purpose != EXTRA), key=lambda t: t.order)

    @property
    def merged(self) -> list[Trial]:
        """The trials whose figures this result combines: the measured ones, or if there are none, all with records."""
        return [t for t in self.trials_detail if t.is_measured] or [t for t in self.trials_detail if has_records(t)]


def has_records(trial: Trial) -> bool:
    return bool(trial.services) or any(n is not None for n in (trial.totals.received, trial.totals.published))


# -- counts over topics and services, which no total includes together ------------------------------------------------


def owners(measured: HasCounts) -> list[Counts]:
    """Everything with counts: all topics together, if there are any, and each service."""
    topics = measured.totals.received is not None or measured.edges
    return [*([measured.totals] if topics else []), *measured.services]


def counted(measured: HasCounts, count: Callable[[Counts], int | None]) -> int | None:
    """A count over all topics and services; None if one of them is unknown."""
    return added([count(owner) for owner in owners(measured)])


def received(measured: HasCounts) -> int | None:
    return counted(measured, lambda owner: owner.received)


def expected(measured: HasCounts) -> int | None:
    return counted(measured, lambda owner: owner.sent)


def least_lost(*counts: Counts) -> int | None:
    """All losses of these; if a class is unknown, the known ones as a lower bound, and None rather than 0."""
    classes = [n for owner in counts for n in owner.lost.classes]
    known = [n for n in classes if n is not None]
    return sum(known) if (known and len(known) == len(classes)) or any(known) else None


def added(values: Iterable[Value | None]) -> Value | None:
    """The sum; None if there is no value or one is unknown."""
    total: Value | None = None
    for value in values:
        if value is None:
            return None
        total = value if total is None else total + value
    return total


def largest(values: Sequence[int | None]) -> int | None:
    """The largest; None if there is no value or one is unknown."""
    known = [value for value in values if value is not None]
    return max(known) if known and len(known) == len(values) else None
