"""The files of a run beside summary.json: manifest.json, written first, and trial.json of each trial.

Their schemas are generated from these records: docs/schema/manifest.schema.json, docs/schema/trial.schema.json. What is
unknown, or not known yet, is null. A run of an older version lacks the fields with a default here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

from perflab import models
from perflab.host import Check
from perflab.models import Ordinal
from perflab.results.outcome import HARNESS_ERROR, BrokenOff, Outcome
from perflab.results.source import Source
from perflab.results.trial import MEASURED, Asked, Level, Purpose, TrialEnd, as_today
from perflab.units import format_duration

SCHEMA: Literal[1] = 1
Status = Literal["running", "finished"]
FINISHED: Status = "finished"
ENDED_EARLY = "perflab ended before the trial did"
Ends = tuple[str, str, str]


@dataclass(frozen=True, kw_only=True)
class UsedMiddleware:
    name: str
    """Several are joined with +; for a command RMW_IMPLEMENTATION, or own."""
    version: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    prefix: str | None = None
    """Installation folder requested by NAME@PREFIX; null: the library that the machine finds by default."""
    library: str | None = None
    """The library in it."""
    sha256: str | None = None
    """Digest of that library."""


@dataclass(frozen=True, kw_only=True)
class TrialMiddleware(UsedMiddleware):
    processes: Mapping[str, UsedMiddleware] | None = None
    """By process, if each has its own."""


@dataclass(frozen=True, kw_only=True)
class Identity:
    """A process, of the boot that the manifest or trial names; its id alone may have been reused."""

    pid: int | None = None
    start_ticks: int | None = None
    """When it started, in ticks since boot as in proc(5)."""


@dataclass(frozen=True, kw_only=True)
class Guarded(Identity):
    """A program that runs under perflab-guard."""

    status: int | None = None
    """Exit status, or minus the number of the signal that killed it."""
    guard: Identity | None = None
    mark: str | None = None
    """PERFLAB_COMPANION in the environment of its guard and of all their descendants."""


def utc_now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def instant(text: str | None) -> datetime | None:
    """None if it is not recorded."""
    try:
        return None if text is None else datetime.fromisoformat(text)
    except ValueError:
        return None


def span_of(started_utc: str | None, ended_utc: str | None) -> tuple[datetime, datetime] | None:
    begin, end = instant(started_utc), instant(ended_utc)
    return None if begin is None or end is None else (begin, end)


# -- manifest.json ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class UsedExperiment:
    written: Mapping[str, Any] | None = None
    """The file and the options combined."""
    document: Mapping[str, Any] = field(default_factory=dict)
    """The same with every default (docs/schema/experiment.schema.json); times in nanoseconds."""
    sources: tuple[Source, ...] = ()


@dataclass(frozen=True, kw_only=True)
class UsedThresholds:
    late_percent: float | None = None
    late_ns: int | None = None
    too_late_percent: float | None = None
    too_late_ns: int | None = None


@dataclass(frozen=True, kw_only=True)
class UsedSettings:
    """Settings of every trial."""

    duration_ns: int | None = None
    warmup_ns: int | None = None
    sampling_ns: int | None = None
    checkpoint_ns: int | None = None
    discovery_timeout_ns: int | None = None
    measure: tuple[str, ...] = ()
    threads: tuple[Mapping[str, Any], ...] = ()
    lock_memory: bool | None = None
    name_threads: bool | None = None
    network: str | None = None
    seed: int | None = None
    thresholds: UsedThresholds = UsedThresholds()
    limits: Mapping[str, int] = field(default_factory=dict)
    """How long perflab waits for a node."""
    quiet_limit_ns: int | None = None
    """0: trials do not wait for a quiet machine."""
    quiet_threshold: float | None = None
    """Busy share of all CPUs in percent; null: as measured before the first trial."""


@dataclass(frozen=True, kw_only=True)
class UsedWorkload:
    kind: str = "topology"
    name: str
    sources: tuple[Source, ...] = ()
    command: Mapping[str, Any] | None = None
    """Parameters of a command; null for any other kind."""
    parameters: Mapping[str, Any] | None = None
    """Parameters of a generated graph."""
    graph: Mapping[str, Any] = field(default_factory=dict)
    """The resolved graph (docs/formats.md, section 1)."""
    edges: tuple[Ends, ...] = ()
    """Publisher, topic, subscription."""
    services: tuple[Ends, ...] = ()
    """Client, service, server."""


@dataclass(frozen=True, kw_only=True)
class DesignedVariant:
    middleware: str
    executor: str | None = None
    ipc: str | None = None
    pass_by: str | None = None


@dataclass(frozen=True, kw_only=True)
class DesignedTreatment(Asked):
    middleware: str | None = None


@dataclass(frozen=True, kw_only=True)
class DesignedTrial(DesignedTreatment):
    order: Ordinal | None = None
    block: Ordinal | None = None
    after: str | None = None
    seed: int | None = None


@dataclass(frozen=True, kw_only=True)
class LeftOutLevel:
    """A level of a factor that this machine could not produce."""

    factor: str
    level: Level
    reason: str


@dataclass(frozen=True, kw_only=True)
class LeftOutTreatment:
    """A treatment that was optional, and that this machine could not run."""

    treatment: str
    reason: str

    @property
    def words(self) -> str:
        return f"{self.treatment} is left out: {self.reason}"


@dataclass(frozen=True)
class NotRecorded:
    """What an optional observer could not record on this machine."""

    observer: str
    reason: str
    """What is missing, and the command that provides it."""
    rest: str | None
    """The observer as it recorded the rest; null: it recorded nothing."""

    @property
    def words(self) -> str:
        what = f"{self.observer} is missing" if self.rest is None else f"only {self.rest} is recorded"
        return f"{what}: {self.reason.removeprefix(f'{self.observer}: ')}"


@dataclass(frozen=True, kw_only=True)
class Versions:
    perflab: str | None = None
    python: str | None = None
    executable: str | None = None
    native: str | None = None
    """The folder of the native programs."""
    packages: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Controller(Identity):
    """The perflab that ran it."""

    boot_id: str | None = None
    pid_namespace: str | None = None


@dataclass(frozen=True, kw_only=True)
class Clock:
    """The same instant on CLOCK_MONOTONIC and as the time of day."""

    monotonic_ns: int
    wall_ns: int


Ending = Literal["decided", "time_up", "interrupted"]


@dataclass(frozen=True, kw_only=True)
class StoppingRule:
    """A rule that further blocks run until every comparison is decided, or the time is up."""

    from_start: bool
    """Whether the rule was set before the first trial; else it was added to a run that already had trials."""
    at_most_s: float
    """How long blocks are added in one session; planned trials run in any case."""
    looks: tuple[int, ...] = ()
    """How many trials there were at each look at the results; each look spends a share of alpha."""
    ended: Ending | None = None
    """Why no more blocks were added; null: they still are, or perflab was killed."""

    @property
    def words(self) -> str:
        """The rule under which the results were obtained, as a sentence."""
        when = "was set from the start" if self.from_start else "was added after trials had been seen"
        why = {
            None: "It has not ended.",
            "decided": "It ended because all were decided.",
            "time_up": f"It ended because its time ({format_duration(self.at_most_s)}) was up.",
            "interrupted": "It was interrupted.",
        }[self.ended]
        looks = f" Alpha is divided among all looks at the results ({len(self.looks)} so far)." if self.looks else ""
        return f"Repetitions were added until every comparison is decided; this rule {when}. {why}{looks}"


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The facts known before the first trial."""

    schema: Literal[1] = SCHEMA
    run: str
    """Name of the run directory when it was created."""
    name: str = ""
    run_id: str | None = None
    created_utc: str | None = None
    command_line: tuple[str, ...] = ()
    experiment: UsedExperiment = UsedExperiment()
    settings: UsedSettings
    workload: UsedWorkload
    middlewares: tuple[UsedMiddleware, ...]
    variants: tuple[DesignedVariant, ...] = ()
    treatments: tuple[DesignedTreatment, ...] = ()
    trials: tuple[DesignedTrial, ...]
    """The plan, with the blocks that the rule added; empty for a search."""
    rule: StoppingRule | None = None
    """The rule that adds blocks to the plan; null: none."""
    unavailable_levels: tuple[LeftOutLevel, ...] = ()
    left_out: tuple[LeftOutTreatment, ...] = ()
    not_recorded: tuple[NotRecorded, ...] = ()
    """By optional observers, because rights or programs are missing."""
    versions: Versions = Versions()
    environment: Mapping[str, str] = field(default_factory=dict)
    """Environment variables that affect measurements."""
    host: Mapping[str, Any] = field(default_factory=dict)
    inventory: Mapping[str, Any] = field(default_factory=dict)
    """`perflab inventory --json`."""
    preflight: tuple[Check, ...]
    """What disturbs measurements on this machine."""
    controller: Controller | None = None
    earlier_controllers: tuple[Controller | None, ...] = ()
    """For a run that was resumed."""
    clock: Clock | None = None

    @property
    def rough(self) -> str | None:
        """The warning about a run made with --quick; None for others."""
        if not self.experiment.document.get("quick"):
            return None
        lasting = "" if self.settings.duration_ns is None else f" of {format_duration(self.settings.duration_ns / 1e9)}"
        return f"rough: made with --quick, in trials{lasting}; run it without --quick before you rely on its figures"


# -- trial.json ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class TrialProcess(Guarded):
    """A process of the workload or of a condition. `guard` and `mark` are for commands."""

    process: str | None = None
    """As the graph names it; null: all of them."""
    condition: str | None = None
    """Label of the condition that it belongs to."""
    shared_memory: tuple[str, ...] | None = None
    """Files that its middleware created in /dev/shm, if it can tell."""
    libraries: tuple[str, ...] | None = None
    """Libraries of its middleware that it had mapped after creating its endpoints, from /proc/PID/maps; null:
    unreadable, or the middleware has none of its own."""
    log_tail: tuple[str, ...] = ()
    """If its status is not 0."""
    continues: str | None = None
    """File name of the crashed process that it replaces."""
    started_ns: int | None = None
    """For a process that replaces another: when it was started, CLOCK_MONOTONIC."""


@dataclass(frozen=True, kw_only=True)
class TrialCompanion(Guarded):
    """A program beside the workload."""

    name: str
    command: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Watchdog:
    """What the kernel granted it; it ends the trial's real-time processes if perflab cannot run."""

    policy: str
    priority: int
    cpus: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class TrialCommand:
    """The command that is the workload; seconds are from its start."""

    words: tuple[str, ...] = ()
    ready_s: float | None = None
    ready_line: str | None = None
    """The line of its log that reported it."""
    stop_signal: str | None = None
    asked_to_end_s: float | None = None
    ended_s: float | None = None
    run_s: float | None = None
    """How long it ran, if it ends by itself."""
    libraries: tuple[str, ...] | None = None
    """Middleware libraries that it had loaded; null: unreadable."""


@dataclass(frozen=True)
class CoolDown:
    """Measurements while the trial waited for a quiet machine; shares of all CPUs in percent (docs/runs.md)."""

    waited_s: float
    busy_percent: float | None
    reached: bool | None
    """Null if /proc/stat cannot be read, false if the limit was reached first."""
    runnable: int | None
    """How many other threads wanted a CPU when it ended."""
    threshold_percent: float


@dataclass(frozen=True, kw_only=True)
class TrialArtifact:
    """Files that an observer left."""

    kind: str
    path: str


@dataclass(frozen=True, kw_only=True)
class ConditionTimes:
    """When a condition was in effect, CLOCK_MONOTONIC."""

    begun_ns: int
    """When it was begun; `evidence` shows when it was in effect."""
    removed_ns: int | None = None
    """Null: it could not be removed, or the trial broke off before."""


@dataclass(frozen=True, kw_only=True)
class TrialFile(Asked, TrialEnd):
    """Written before the trial, whenever a process is started that another perflab may have to end, and at the end."""

    schema: Literal[1] = SCHEMA
    run_id: str | None = None
    purpose: Purpose | None = MEASURED
    trial: Ordinal
    """Number of its directory."""
    status: Status
    outcome: Outcome | None
    own_figures: Mapping[str, float | None] = field(default_factory=dict)
    """The trial's values from the kind of workload, by name."""
    own_times: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Likewise the histograms of times, in the form of records (docs/formats.md, section 5)."""
    reason: str | None
    broken_off: BrokenOff | None = None
    """What ended the trial early; null: it came to its end, or something else was wrong."""
    workload: str
    middleware: TrialMiddleware
    service_framing: str | None = None
    phase: str | None = None
    artifacts: tuple[TrialArtifact, ...] = ()
    condition_times: Mapping[str, ConditionTimes] = field(default_factory=dict)
    """By label; empty in virtual time."""
    duration_s: float
    warmup_s: float = 0.0
    domain: int | None = None
    boot_id: str | None = None
    started_utc: str | None = None
    ended_utc: str | None = None
    start_at_ns: int | None = None
    """The common start of its processes, CLOCK_MONOTONIC."""
    cool_down: CoolDown | None = None
    processes: Mapping[str, TrialProcess]
    """By file name."""
    companions: tuple[TrialCompanion, ...] = ()
    watchdog: Watchdog | None = None
    """Null if the trial had no real-time threads (docs/realtime.md)."""
    command: TrialCommand | None = None
    commands: Mapping[str, TrialCommand] = field(default_factory=dict)
    """For several commands that form the workload, by name; empty for one."""
    notes: tuple[str, ...] = ()
    """What was incomplete."""
    tables: tuple[str, ...] = ()
    """The files with tables."""

    @property
    def finished(self) -> bool:
        return self.status == FINISHED

    @property
    def run_s(self) -> float | None:
        """How long its command ran, or the longest of several, of those that end by themselves."""
        commands = [*([self.command] if self.command else []), *self.commands.values()]
        return max((command.run_s for command in commands if command.run_s is not None), default=None)

    @property
    def span(self) -> tuple[datetime, datetime] | None:
        """From its start, including the wait for a quiet machine, to its end; None if not recorded."""
        return span_of(self.started_utc, self.ended_utc)

    @property
    def ended(self) -> TrialFile:
        """The same; a trial that was not closed becomes an interrupted one, which a resumed run replaces."""
        if self.finished:
            return self
        return replace(
            self,
            status=FINISHED,
            interrupted=self.outcome is None,
            outcome=self.outcome or HARNESS_ERROR,
            reason=self.reason or ENDED_EARLY,
        )


def read_trial(document: Mapping[str, Any]) -> TrialFile:
    """Reads trial.json, also from older versions. Raises models.Damaged."""
    return models.read(TrialFile, as_today(document))


def json_schema(record: type[Manifest | TrialFile]) -> dict[str, Any]:
    """docs/schema/manifest.schema.json, docs/schema/trial.schema.json."""
    name = {Manifest: "manifest.json of a perflab run", TrialFile: "trial.json of a trial of a perflab run"}[record]
    return models.schema(record, name)
