"""Trials and results: what one trial measured, and what the trials of one treatment measured together.

Times are in nanoseconds, memory in kilobytes of 1024 bytes, CPU in percent of one CPU unless a name says otherwise.
`sent` is what the subscriptions should have received, each message counted once per subscription, so that sent =
received + lost; `published` counts each message once. A total that depends on complete data is null where one part is
not known. Services are apart from all that: a reply is no message of a topic.
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
EXTRA: Purpose = "extra"  # for an observer that disturbs much; never in statistics

BASELINE = "baseline"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What was asked of trials, but for workload and middleware."""

    executor: str | None = None
    """What replaced every executor of the graph, "multi_threaded:4" with a number of threads; null: as the graph
    says."""
    ipc: str | None = None
    """Whether intra-process delivery was asked for, on or off; null: not recorded."""
    pass_by: str | None = None
    """What replaced the way of every publisher to hand over its messages, shared, unique or loaned; null: as the graph
    says."""
    conditions: tuple[str, ...] = ()
    """Empty for the baseline."""
    treatment: str | None = None
    """Name of the combination of conditions and their levels; baseline has none. Null in runs from before there were
    treatments, and in foreign ones."""
    condition_parameters: Mapping[str, Any] = field(default_factory=dict)
    """Parameters of each condition, by its label."""
    factors: Mapping[str, Level] = field(default_factory=dict)
    """Levels of the factors, by their paths."""
    observers: tuple[str, ...] = ()
    purpose: Purpose | None = None
    """control: a baseline without the observers; extra: never in statistics. Null in foreign runs."""

    def key(self, middleware: str | None) -> str:
        """Equal for treatments, trials and results that belong together within a workload and a variant."""
        asked = (self.executor, self.ipc, self.pass_by, self.treatment, dict(self.factors), self.observers)
        return json.dumps([middleware, *asked, self.purpose], sort_keys=True)


@dataclass(frozen=True, kw_only=True)
class Circumstances(Asked):
    """Under which trials ran; those that have the same ones make one result."""

    workload: str
    middleware: str | None
    """Joined with + where each process of the graph has its own. Null where a foreign run does not say."""
    phase: str | None = None
    """Where in their periods the timers ticked: as_created, aligned, staggered or random, or several as
    "aligned+random"; null: there are none, or none is known."""
    duration_s: float | None = None
    """Measured time asked for, per trial. Null where a foreign run does not say."""

    @property
    def label(self) -> str:
        """That of the treatment; results of older runs have the names of their conditions alone."""
        return self.treatment or " + ".join(self.conditions) or BASELINE

    @property
    def is_disturbed(self) -> bool:
        return bool(self.conditions)

    @property
    def is_regular(self) -> bool:
        """Whether its trials were made to be measured, and are neither controls nor extra ones."""
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
        """Trials of which this is equal belong to one result."""
        asked = (self.conditions, self.treatment, self.observers, self.purpose)
        return (*self.variant, *asked, tuple(sorted(self.factors.items())))

    @property
    def place(self) -> tuple[object, ...]:
        """What a treatment shares with its baseline; results of one place differ in conditions and observers alone."""
        return (*self.variant, tuple(sorted((k, repr(v)) for k, v in level_values(self.outer_factors).items())))

    @property
    def outer_factors(self) -> dict[str, Any]:
        """The levels of the factors that are not parameters of a condition: a baseline has them too.

        A result without a condition may have levels of it all the same: one of them is 0, at which there is nothing
        of it.
        """
        outer, inner = self._outer_names, {*self.conditions, *self.conditions_off}
        names = {path: path.partition(".")[0] for path in self.factors}
        return {p: level for p, level in self.factors.items() if names[p] in outer or names[p] not in inner}

    @property
    def conditions_off(self) -> set[str]:
        """The conditions that levels of factors switch off; what other levels of theirs there are mean nothing."""
        there = {*self._outer_names, *self.conditions}
        off = (path.partition(".")[0] for path, level in self.factors.items() if is_zero(level))
        return {name for name in off if name not in there}

    @property
    def _outer_names(self) -> set[str]:
        return {"workload", "middleware", *(self.middleware or "").split("+")}


def as_today(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """A result or trial of an older version: graphs that were run before there were phases had aligned timers."""
    if "phase" in document or document.get("ipc") is None:
        return document
    return {**document, "phase": ALIGNED}


def level_values(factors: Mapping[str, Any]) -> dict[str, object]:
    """Levels as values, so that those which say the same are equal however they were written: 0 and "0 %"."""
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
    per subscription of its topic that wants it. sent = received + lost. Null where a side's last word is not known."""
    filtered: Count | None = None
    """Messages that the content filter of a subscription of their topic does not want: neither sent to it nor lost."""
    received: Count | None = None
    """Unique messages, or replies, whose callback began."""
    received_bytes: Count | None = None
    """Their payload, without headers. Null where the size of some of them is not known."""
    on_time: Count | None = None
    late: Count | None = None
    too_late: Count | None = None
    lost: Lost = Lost()
    reordered: Count | None = None
    """Received after a message with a higher number."""
    duplicate: Count | None = None
    beyond_window: Count | None = None
    """Arrived too late to tell a reordered message from a duplicate; not part of received."""
    published: Count | None = None
    """Messages, or requests, written, each counted once."""
    not_sent: Count | None = None
    """Ticks that a timer with overrun `skip` left out."""
    write_errors: Count | None = None
    publish_delay_ns: Distribution | None = None
    publish_call_ns: Distribution | None = None
    dispatch_ns: Distribution | None = None
    work_ns: Distribution | None = None
    serialize_ns: Distribution | None = None
    """Encoding a message, within publish(); null where messages are encoded once, or the middleware does it."""
    deserialize_ns: Distribution | None = None
    """Decoding it, before the callback; likewise."""

    @property
    def times_ns(self) -> Distribution | None:
        """From sending to the callback of what was received; null where there are counts alone."""
        return None

    @property
    def all_lost(self) -> int | None:
        """Null where a class is not known."""
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
    """The node, relative to the root namespace: montreal, robot/montreal. Likewise below. Null where a foreign run does
    not say."""
    topic: str
    subscription: str
    size_bytes: Count | None
    """Payload without header."""
    frequency_hz: float | None
    """Of the publishing timer; 0 or null where a reaction publishes."""


@dataclass(frozen=True, kw_only=True)
class ServiceResult(Counts):
    """Requests of one client to one service, and their replies; publish_delay_ns and publish_call_ns are those of the
    requests."""

    client: str
    """The node, relative to the root namespace; likewise the server."""
    service: str
    server: str | None
    """Null where a foreign run does not say."""
    size_bytes: Count | None = None
    """Payload of a reply without header."""
    frequency_hz: float | None = None
    """Of the timer that asks."""
    round_trip_ns: Distribution | None = None
    """From the stamp of the request to the callback of its reply; of the result of an action from that of its goal."""
    round_trip_response_ns: Distribution | None = None
    """From the intended time of the request to the callback of its reply."""
    answers: Mapping[str, Count] | None = None
    """Of what an action consists of: what the replies said (accepted, rejected; succeeded, aborted, canceled,
    unknown), how often. Null of services."""

    @property
    def times_ns(self) -> Distribution | None:
        return self.round_trip_ns


@dataclass(frozen=True, kw_only=True)
class ProcessResources:
    """What one process used in the measured part; null where it was not sampled."""

    process: str
    cpu_percent_mean: float | None = None
    rss_kb_max: Count | None = None
    minor_faults: Count | None = None
    """Page faults without, and major ones with, reading from storage; of several trials the most of one."""
    major_faults: Count | None = None
    cpu_percent_of_machine: float | None = None
    """CPU use in percent of all CPUs of the machine; of runs of other programs alone."""


@dataclass(frozen=True, kw_only=True)
class Resources:
    """CPU time in percent of one CPU, over the measured part; peak resident memory since the process started."""

    cpu_percent_mean: float | None = None
    """Of all processes together."""
    rss_kb_max: Count | None = None
    """Of the largest process."""
    processes: tuple[ProcessResources, ...] = ()
    cpu_percent_of_machine: float | None = None
    """CPU use in percent of all CPUs of the machine; of runs of other programs alone."""


@dataclass(frozen=True, kw_only=True)
class ThreadGroup:
    """Threads of one process with one name that are scheduled alike, as the kernel says it."""

    process: str
    name: str
    role: str
    """executor, middleware, perflab or tracer."""
    asked: Mapping[str, Any] | None
    """What the graph or the command line asked for; null: nothing."""
    policy: str
    """As chrt(1) names it: OTHER, FIFO, RR, BATCH, IDLE, DEADLINE."""
    priority: int
    """Real-time priority; 0 with the others."""
    cpus: tuple[int, ...]
    """Those it may run on."""
    tids: tuple[int, ...]
    runtime_ns: Count | None = None
    """Of DEADLINE, as the next two; null with the others."""
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
    """From where threads of one name of one process allocated memory in the measured part."""

    process: str
    thread: str | None
    """Null of one that had ended."""
    role: str
    """executor, middleware or tracer."""
    count: Count
    bytes: Count
    frames: tuple[str, ...]
    """The callers, the innermost first: functions, or object+offset where the object does not name them."""


@dataclass(frozen=True, kw_only=True)
class Passing:
    """How the messages of one publisher went."""

    node: str
    topic: str
    asked: str | None
    """shared, unique or loaned."""
    intra_process: Count
    """Subscriptions reached without the middleware."""
    copies: Count
    """Of each message, made for them."""
    middleware: Count
    """Readers reached through the middleware."""
    loaned: bool
    """Written into memory that the middleware lent."""


@dataclass(frozen=True, kw_only=True)
class Discovery:
    """From the creation of the participant until all others were found and all endpoints matched, in the slowest
    process; null where the middleware does not tell."""

    participants: int | None = None
    endpoints: int | None = None


@dataclass(frozen=True, kw_only=True)
class Recovery:
    """A process that crashed and came back (condition `crash`). Times begin when it was started again."""

    process: str
    """As the files of its first life are called."""
    matched_ns: int | None = None
    """Until all its endpoints were matched."""
    first_message_ns: int | None = None
    """Until the callback of its first message; null: none came."""
    missed: Count | None = None
    """Messages between the last one of the first life and the first one of the second, over its edges."""


@dataclass(frozen=True, kw_only=True)
class Why:
    """Why messages were late, as the trace of a trial tells."""

    sentence: str
    limit: str
    """What late means here, in words."""
    messages: Count
    late: Count
    total_ns: int | None
    """Of all late messages, from when they were due."""
    unknown_ns: int | None = None
    unknown_percent: float | None = None
    causes: tuple[Mapping[str, Any], ...] = ()
    """By cause, as `causes` of `perflab trace why --json`."""
    totals: tuple[Mapping[str, Any], ...] = ()
    """By cause and who, the first of `totals` there."""
    quality: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A criterion of success, and whether a trial met it."""

    criterion: str
    met: bool | None
    """Null where the metric was not measured: the trial did not meet it either."""
    words: str


@dataclass(frozen=True, kw_only=True)
class Cost:
    """CPU time of all processes between the two ends of the measured part, by the role of threads (`ended`: threads
    that ended within it), and what the processor counted."""

    cpu_ns: Count
    roles: Mapping[str, int]
    cycles: Count | None = None
    """Null where not counted; `cycles_reason` says why."""
    cycles_reason: str | None = None
    instructions: Count | None = None
    instructions_reason: str | None = None
    cache_misses: Count | None = None
    """Of the last level of caches."""
    cache_misses_reason: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SystemCounts:
    """What the operating system counted in the measured part, over all processes of the workload with perflab's own
    threads in them; null where it does not tell, and `reasons` says why, by field."""

    minor_faults: Count | None = None
    """Page faults without, and major ones with, reading from storage."""
    major_faults: Count | None = None
    block_inputs: Count | None = None
    """Read from storage, in blocks of 512 bytes; outputs likewise written."""
    block_outputs: Count | None = None
    signals: Count | None = None
    voluntary_switches: Count | None = None
    involuntary_switches: Count | None = None
    socket_drops: Count | None = None
    """Datagrams that sockets of the processes had no room for."""
    wire_bytes: Count | None = None
    """Sent over all interfaces of the network namespace, the loopback too, by whatever program is in it."""
    wire_packets: Count | None = None
    tcp_retransmissions: Count | None = None
    """Segments, of the network namespace likewise."""
    retransmitted_bytes: Count | None = None
    """What the middleware sent again, from the beginning of each process to its end."""
    reasons: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class RoleShare:
    share: Share
    groups: Mapping[str, Share]


@dataclass(frozen=True, kw_only=True)
class Families:
    """Shares of the CPU time (docs/profiling.md), from 0 to 1: `shares` of each family, `groups` of several together
    (application, executor, rcl, rmw, dds, kernel, other), `by_role` the same for the threads of a role."""

    samples: Count
    titles: Mapping[str, str]
    shares: Mapping[str, Share]
    groups: Mapping[str, Share]
    by_role: Mapping[str, RoleShare]
    warnings: tuple[str, ...] = ()
    trial: int | None = None
    """Whose they are, where they stand in executor_costs."""


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
    """What executor threads did, all of them together; as `perflab trace executor` tells of each (docs/tracing.md). CPU
    time is null where the scheduler's events are missing or cover too little, and `reason` says so. Shares from 0 to 1,
    of CPU time."""

    threads: Count
    reason: str | None
    rows: tuple[PhaseRow, ...]
    trial: int | None = None
    """Whose they are, where they stand in executor_costs."""


SLOPE_FROM_S = 5  # seconds: of fewer a slope over them would be mostly chance


class HasCounts(Protocol):
    """What a trial and a result share: what was counted on topics and of services."""

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
    """Null of a thread of the kernel, or where it is not known."""
    pid: Count | None = None
    tid: Count
    name: str
    policy: str | None
    """As chrt(1) names it; of a trace alone its priority as people set it, e.g. RT 90, which is FIFO or RR."""
    priority: Count | None
    """Real-time priority; null without one."""
    cpu: Count | None
    share: Share
    """Of the time that the other one waited, from 0 to 1."""

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
    """A thread that waits for a lock which a starved thread of its process holds."""

    process: str | None
    """Null where no event of a trace says its name."""
    tid: Count
    name: str
    policy: str | None
    priority: Count | None
    address: str
    """Of the lock, in the memory of the process."""

    @property
    def words(self) -> str:
        how = ", ".join(filter(None, (f"tid {self.tid}", _scheduled(self.policy, self.priority))))
        return f"thread {self.name} ({how})"


@dataclass(frozen=True, kw_only=True)
class StarvedThread:
    """A thread that was ready to run, and did not get a CPU for most of the time it was looked at, or for long."""

    process: str | None
    """Null of a thread of the kernel, or where it is not known."""
    tid: Count
    name: str
    role: str | None = None
    """executor, middleware, perflab or tracer; kernel; null where it is not known."""
    policy: str | None
    priority: Count | None
    cpus: tuple[int, ...]
    """Those it may use; of a trace those it waited for."""
    waiting_share: Share
    """Of the time it was looked at, from 0 to 1."""
    longest_ns: Count | None = None
    """Its longest wait; null where no trace tells."""
    holders: tuple[CpuHolder, ...] = ()
    """Who had these CPUs meanwhile, the longest first."""
    lock_waiters: tuple[LockWaiter, ...] | None = None
    """Who waited for a lock that it held: at the end of the look, or of a trace while it starved; null where that is
    not known."""

    @property
    def words(self) -> str:
        of_role = self.role if self.role in ("executor", "middleware") else ""
        how = ", ".join(filter(None, (of_role, _scheduled(self.policy, self.priority))))
        place = f" of {self.process}" if self.process else " of the kernel" if self.role == "kernel" else ""
        if self.longest_ns is None:
            waited = f"which waited {100 * self.waiting_share:.0f} % of the time"
        else:
            waited = f"which could run and did not for {format_duration(self.longest_ns / NS_PER_S)}"
        behind = f" behind {self.holders[0].words}" if self.holders else ""
        waiters = " and ".join(waiter.words for waiter in self.lock_waiters or ())
        lock = f" and holds a lock that {waiters} waited for" if waiters else ""
        return f"thread {self.name}{f' ({how})' if how else ''}{place}, {waited}{behind}{lock}"


@dataclass(frozen=True, kw_only=True)
class TrialEnd:
    """Where a trial stood in the plan and how it ended, as trial.json and the summary say."""

    order: Ordinal
    """Where it stood in the plan."""
    block: Ordinal | None = None
    """Repetition of the whole plan."""
    purpose: Purpose | None = None
    after: str | None = None
    """The disturbing treatment that ran right before this trial."""
    own_outcome: OwnOutcome | None = None
    """What the kind of workload says of it beside that."""
    reason: str | None = None
    interrupted: bool = False
    """A signal ended perflab in this trial, which is no fault of anybody; its outcome is harness_error."""
    drain: Drained | None = None
    """How the wait for the last messages ended: everything had arrived, nothing moved for a while, or the bound was
    reached; null if it did not come to that."""
    machine: Machine | None = None
    """What the machine did beside it; null where that was not recorded, or time was virtual."""
    starved: tuple[StarvedThread, ...] = ()
    """Where the workload failed because it did not come on: its threads and the kernel's that got no CPU then."""
    criteria: tuple[Judged, ...] = ()
    evidence: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What each condition promised and achieved, by its label (docs/conditions.md)."""
    messages: Mapping[str, Any] | None = None
    """Of a command: `source` of the figures of its messages (trace), or null with the `reason`; docs/formats.md,
    section 6. Null for a graph."""


@dataclass(frozen=True, kw_only=True)
class TrialFacts(TrialEnd):
    """How a trial went, apart from its messages."""

    outcome: Outcome
    measured_s: float | None = None
    latency_slope_ns_per_s: float | None = None
    """How the mean latency of a second changed over the measured part; null of fewer than 5 s."""
    rss_slope_kb_per_s: float | None = None
    """Likewise the resident memory of all processes together, in kB of 1024 bytes."""
    """How much of the measured part its records cover."""
    discovery_ns: Discovery = Discovery()
    first_message_ns: int | None = None
    """From when the first message of all, of the warm-up too, was due to its callback, on the slowest edge."""
    recoveries: tuple[Recovery, ...] = ()
    """Of processes that a condition let crash."""
    allocations: Count | None = None
    """Calls that allocate, in the measured part, of all threads but the instrument's."""
    allocation_sites: tuple[AllocationSite, ...] | None = None
    """Those that allocated most often, of the observer `allocations:call_sites=on`; null without it."""
    why: Why | None = None
    """Null where the trial was not traced, or it cannot be told."""
    run_s: float | None = None
    """How long a command ran that ends by itself."""
    cost: Cost | None = None
    """Null where it was not recorded."""
    system: SystemCounts | None = None
    """Null where it was not recorded."""
    ticks_per_s: float | None = None
    """Of the workload's timers by their schedule, where no message was received; else null."""
    families: Families | None = None
    """Of a trial with the observer cpu_profile."""
    phases: Phases | None = None
    """Of a trial with the observer tracing."""
    paths: tuple[PathResult, ...] | None = None
    """The named paths that its trace was asked for; null where it was not traced, or asked for none."""


@dataclass(frozen=True, kw_only=True)
class Trial(TrialFacts):
    trial: Ordinal
    measured: bool | None = None
    """Ran to its end with everything in effect, and so enters the statistics; a trial that only missed a criterion of
    success does. Null in summaries that know successes alone."""
    complete: bool = False
    """Every process wrote its final checkpoint."""
    totals: Totals = Totals()
    resources: Resources = Resources()
    services: tuple[ServiceResult, ...] = ()
    observed_ns: Mapping[str, Distribution] = field(default_factory=dict)
    """The times that observers recorded, by the names of their metrics."""
    key_figures: Mapping[str, KeyFigureResult] = field(default_factory=dict)
    """Those that the graph declares, by name (docs/reference_graph.md)."""

    @property
    def edges(self) -> tuple[EdgeResult, ...]:
        """Only a result tells of single edges."""
        return ()

    @property
    def is_measured(self) -> bool:
        """Whether its figures are those of a whole trial, which may have missed a criterion of success."""
        return self.outcome == SUCCESS if self.measured is None else self.measured

    @property
    def ended(self) -> str:
        """Its outcome in words, by the name of the kind of workload where that has one."""
        return INTERRUPTED if self.interrupted else (self.own_outcome or self.outcome).words


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """What the totals, edges and resources of this result cover: its measured trials, or where there is none all that
    recorded anything."""

    trials_merged: Count
    complete: bool


@dataclass(frozen=True, kw_only=True)
class Result(Circumstances):
    """Trials under the same circumstances, and their figures together."""

    trials: Ordinal
    outcomes: Outcomes
    coverage: Coverage
    totals: Totals
    trials_detail: tuple[Trial, ...]
    intervals: Mapping[str, Median] = field(default_factory=dict)
    """By metric (latency.p99): the median over the trials, one value each, with its interval."""
    services: tuple[ServiceResult, ...] = ()
    """One per client and service; not part of the totals."""
    edges: tuple[EdgeResult, ...] = ()
    key_figures: Mapping[str, KeyFigureResult] = field(default_factory=dict)
    """Those that the graph declares, by name (docs/reference_graph.md)."""
    resources: Resources = Resources()
    observed_ns: Mapping[str, Distribution] = field(default_factory=dict)
    """The times that observers recorded, by the names of their metrics."""
    threads: tuple[ThreadGroup, ...] | None = None
    """How threads were scheduled, as read back from the kernel in the first trial merged; null where not recorded."""
    passing: tuple[Passing, ...] | None = None
    """How the messages of each publisher went in the first trial merged; null where not recorded."""
    objectives: Mapping[str, ObjectiveResult] = field(default_factory=dict)
    """By measure (median, p99, max, misses), of the named paths of its trials; empty where none was traced with any."""

    @property
    def entering(self) -> list[Trial]:
        """The trials that enter statistics, in the order in which they ran."""
        if self.purpose == EXTRA:
            return []
        return sorted((t for t in self.trials_detail if t.is_measured and t.purpose != EXTRA), key=lambda t: t.order)

    @property
    def merged(self) -> list[Trial]:
        """The trials whose figures this result holds together: those that were measured, and where there is none, all
        that recorded anything."""
        return [t for t in self.trials_detail if t.is_measured] or [t for t in self.trials_detail if has_records(t)]


def has_records(trial: Trial) -> bool:
    return bool(trial.services) or any(n is not None for n in (trial.totals.received, trial.totals.published))


# -- counts over topics and services, which no total holds together --------------------------------------------------


def owners(measured: HasCounts) -> list[Counts]:
    """What has counts: the topics together, as far as there are any, and each service."""
    topics = measured.totals.received is not None or measured.edges
    return [*([measured.totals] if topics else []), *measured.services]


def counted(measured: HasCounts, count: Callable[[Counts], int | None]) -> int | None:
    """A count over all topics and services; None where one of them is not known."""
    return added([count(owner) for owner in owners(measured)])


def received(measured: HasCounts) -> int | None:
    return counted(measured, lambda owner: owner.received)


def expected(measured: HasCounts) -> int | None:
    return counted(measured, lambda owner: owner.sent)


def least_lost(*counts: Counts) -> int | None:
    """All losses of these; where a class is not known at least so many, and None rather than 0."""
    classes = [n for owner in counts for n in owner.lost.classes]
    known = [n for n in classes if n is not None]
    return sum(known) if (known and len(known) == len(classes)) or any(known) else None


def added(values: Iterable[Value | None]) -> Value | None:
    """The sum; None where there is no value or one is not known."""
    total: Value | None = None
    for value in values:
        if value is None:
            return None
        total = value if total is None else total + value
    return total


def largest(values: Sequence[int | None]) -> int | None:
    """The largest; None where there is no value or one is not known."""
    known = [value for value in values if value is not None]
    return max(known) if known and len(known) == len(values) else None
