"""The life of one trial: processes started, matched, measured, drained, ended; its outcome is data.

launch -> created -> ready -> start -> publishing -> drain -> stop -> done -> every process gone

Those are the perflab-nodes, of a graph or of conditions. Where the workload is a command, it lives beside them
(perflab.experiment.command): it is launched and ready before the start, and asked to end after the measured part. One
that ends by itself is launched at the start, so that all of its life is under the conditions.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from perflab import tracer
from perflab.condition import Counts, Evidence, NotInEffect, Window
from perflab.errors import BadInput, Interrupted, PerflabError, Unavailable, one_line
from perflab.experiment import command as commands
from perflab.experiment import design, protocol, scheduling
from perflab.experiment.command import CommandRun
from perflab.experiment.design import Treatment
from perflab.experiment.drain import Drain
from perflab.experiment.process import (
    CompanionEnded,
    Ended,
    Event,
    Message,
    NodeProcess,
    ProtocolError,
    Signals,
    Supervisor,
    Tick,
    describe_status,
    log_tail,
)
from perflab.experiment.rundir import TrialDirectory, write_json
from perflab.experiment.settings import Settings
from perflab.experiment.shared_memory import remove_left_over
from perflab.experiment.surroundings import Surroundings, TrialView
from perflab.experiment.variant import Variant
from perflab.native import Native
from perflab.observer import Artifact
from perflab.units import NS_PER_S, format_duration
from perflab.waiting import Wait
from perflab.workload import Graph, file_name
from perflab.workload.command import Command

# From the start line to the start instant: the line must have reached every process by then.
START_LEAD_NS = 400_000_000
START_LEAD_PER_PROCESS_NS = 5_000_000
START_LEAD_DISTURBED_NS = 400_000_000  # more, where something makes the machine busy
UNMATCHED_SHOWN = 3
LEAST_JUDGED_NS = NS_PER_S  # of a condition, in a trial that broke off
HEARD_WITHIN_NS = NS_PER_S // 4  # after it, perflab hears that the last message was published
LOOK_INTERVAL_S = 0.05  # between two looks at what a command prints


class Failed(Exception):
    """The trial cannot go on. `outcome` is "failed" (the workload) or "harness_error" (the laboratory)."""

    def __init__(self, outcome: str, reason: str, *, last: bool = False, error: PerflabError | None = None) -> None:
        super().__init__(reason)
        self.outcome = outcome
        self.reason = one_line(reason)
        self.last = last  # no further trial makes sense
        self.error = error  # what the command ends with, where that is not "a trial failed"


@dataclass(frozen=True)
class TrialPlan:
    """One trial of an experiment. `block` and `order` count from 1; `graph` has what the conditions add."""

    order: int
    block: int
    treatment: Treatment
    graph: Graph
    settings: Settings
    domain: int | None
    native: Native
    monitored: bool = False
    command: Command | None = None  # the workload, where it is no graph

    @property
    def hosted(self) -> Graph:
        """What perflab-node runs of the graph."""
        return self.graph if self.command is None else self.graph.with_nodes

    @property
    def environment_levels(self) -> dict[str, Any]:
        """The variables of a command that factors set, by name."""
        return design.environment_levels(self.treatment.factors)

    @property
    def variant(self) -> Variant:
        return self.treatment.variant

    @property
    def node_program(self) -> Path:
        return self.native.program("perflab-node")


@dataclass(frozen=True)
class LiveProgress:
    """What is known while a trial runs; of the measured part, without warm-up. None: of a command, not known yet."""

    phase: str
    elapsed_ns: int
    sent: int | None
    received: int | None
    lost: int | None
    histograms: tuple[str, ...] = ()
    note: str = ""


Report = Callable[[LiveProgress], None]


@dataclass
class TrialOutcome:
    """How a trial went."""

    outcome: str = "success"
    reason: str | None = None
    last: bool = False
    error: PerflabError | None = None
    start_at_ns: int | None = None
    drain: str | None = None
    pids: dict[str, int] = field(default_factory=dict)
    statuses: dict[str, int | None] = field(default_factory=dict)
    log_tails: dict[str, list[str]] = field(default_factory=dict)
    evidence: dict[str, Evidence] = field(default_factory=dict)
    artifacts: list[Artifact] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    companions: list[dict[str, Any]] = field(default_factory=list)  # as they ended
    measured: Window | None = None  # of a command: the part of its life that counts
    command: dict[str, Any] | None = None  # what became of it


class Listener:
    """Told what is known of the processes of a trial as soon as it is. This one does not listen."""

    def launched(self, pids: Mapping[str, int]) -> None:
        """The processes exist; `pids` by the names of their files."""

    def command_launched(self, name: str, document: Mapping[str, Any]) -> None:
        """The command exists; `document` identifies it, its guard and all that it will start."""

    def created(self, name: str, shared_memory: Sequence[str]) -> None:
        """The endpoints of a process exist; what its middleware made in /dev/shm, where it can tell."""

    def companion(self, document: Mapping[str, Any]) -> None:
        """A program beside the workload was started: its name, command and identity."""


def file_names(plan: TrialPlan) -> dict[str | None, str]:
    """For every process of the graph, a command too (None: all in one), the name of its files, each once."""
    if plan.variant.runtime == "virtual":
        return {None: file_name(plan.graph.name)}
    names: dict[str | None, str] = {}
    for process in plan.graph.processes:
        stem = name = file_name(process)
        number = 2
        while name in names.values():
            name, number = f"{stem}_{number}", number + 1
        names[process] = name
    return names


def node_names(plan: TrialPlan) -> dict[str | None, str]:
    """Likewise for those that perflab-node runs."""
    own = None if plan.command is None else plan.command.name
    return {process: name for process, name in file_names(plan).items() if own is None or process != own}


def node_configuration(plan: TrialPlan, process: str | None, records: Path) -> dict[str, Any]:
    """docs/formats.md, section 2."""
    settings, variant = plan.settings, plan.variant
    seed = settings.seed + plan.block - 1
    graph = plan.hosted
    index = 0 if process is None else graph.processes.index(process)
    middleware = variant.middleware_of(index)
    # What was asked for the workload is not asked for a process of a condition.
    foreign = process in plan.graph.condition_processes
    configuration: dict[str, Any] = {
        "schema": 1,
        "graph": graph.document,
        "process": process,
        "runtime": middleware.runtime,
        "executor": None if foreign or variant.executor is None else variant.executor.kind,
        "executor_threads": None if foreign or variant.executor is None else variant.executor.threads,
        "intra_process": variant.intra_process and not foreign,
        "pass_by": None if foreign else variant.pass_by,
        "service_framing": variant.service_framing if process is None or index in graph.serving else None,
        "name_threads": settings.name_threads,
        "threads": scheduling.of_process(() if foreign else settings.threads, process),
        "lock_memory": None if foreign else settings.lock_memory,
        "middleware": middleware.configuration(plan.domain, settings.network, seed),
        "duration_ns": settings.duration_ns,
        "warmup_ns": settings.warmup_ns,
        "sampling_ns": settings.sampling_ns,
        "checkpoint_ns": settings.checkpoint_ns,
        "discovery_timeout_ns": settings.discovery_timeout_ns,
        "thresholds": {
            "late_percent": settings.thresholds.late_percent,
            "late_ns": settings.thresholds.late_ns,
            "too_late_percent": settings.thresholds.too_late_percent,
            "too_late_ns": settings.thresholds.too_late_ns,
        },
        "measure": list(settings.measure),
        "seed": seed,
        "records": str(records),
    }
    if not foreign:
        for observer in plan.treatment.observers:
            observer.configure(configuration)
        if tracer.is_recorded() and tracer.has_tracepoints(middleware.runtime, plan.native):
            configuration["tracing"] = tracer.node_setting(middleware.runtime, plan.native)
    return configuration


def run_trial(
    plan: TrialPlan,
    directory: TrialDirectory,
    signals: Signals,
    report: Report,
    listener: Listener | None = None,
) -> TrialOutcome:
    """Runs a trial to its end and leaves no process and no shared memory behind. What goes wrong is in the outcome.

    Raises OSError where a file cannot be written before the processes run.
    """
    listener = listener or Listener()
    result = TrialOutcome()
    supervisor = Supervisor(signals)
    life = _Life(plan, directory, supervisor, report, listener, result)
    surroundings = life.surroundings
    problems: list[str] = []
    try:
        with supervisor:
            try:
                life.launch()
                life.run()
            except (Failed, PerflabError, NotInEffect) as error:
                _note(result, life.judged(_failure_of(error)))
                surroundings.note_failure(result.reason or "")
                life.say_farewell()
            finally:
                # The nodes still run: that a condition is taken away is no failure of theirs.
                problems = [*life.end_command(), *surroundings.close()]
    finally:
        # Whoever was killed could not take away what it had made; now nobody is left to use it.
        result.notes += remove_left_over(life.shared_memory).notes
    if problems and result.outcome == "success":
        interrupted = None if signals.seen is None else Interrupted(signals.seen)
        _note(result, Failed("harness_error", problems[0], last=interrupted is not None, error=interrupted))
    result.evidence, result.artifacts = surroundings.evidence, surroundings.artifacts
    result.companions = surroundings.trial.ended
    for name, node in supervisor.nodes.items():
        result.statuses[name] = node.status
        if node.status != 0 and (tail := log_tail(node.log)):
            result.log_tails[name] = tail
    life.tell_of_command()
    return result


def _failure_of(error: Failed | PerflabError | NotInEffect) -> Failed:
    match error:
        case Failed():
            return error
        case NotInEffect():
            return Failed("invalid", str(error))
        case Interrupted() | BadInput() | Unavailable():
            return Failed("harness_error", str(error), last=True, error=error)
        case _:
            return Failed("harness_error", str(error))


def _note(result: TrialOutcome, failure: Failed) -> None:
    result.outcome, result.reason = failure.outcome, failure.reason
    result.last, result.error = failure.last, failure.error


class _Life:
    """The phases of a trial, in order."""

    def __init__(
        self,
        plan: TrialPlan,
        directory: TrialDirectory,
        supervisor: Supervisor,
        report: Report,
        listener: Listener,
        result: TrialOutcome,
    ) -> None:
        self._plan = plan
        self._directory = directory
        self._supervisor = supervisor
        settings = plan.settings
        self._view = TrialView(
            directory.path,
            plan.graph,
            plan.variant.runtime,
            plan.native,
            supervisor,
            self._pass_time,
            plan.variant.middlewares[0].configuration(plan.domain, settings.network, settings.seed + plan.block - 1),
            started=lambda companion: listener.companion(companion.document()),
            monitored=plan.monitored,
        )
        self.surroundings = Surroundings(plan.treatment.conditions, plan.treatment.observers, self._view)
        self._of_conditions = {
            name: label
            for p, name in file_names(plan).items()
            if (label := plan.graph.condition_processes.get(p or ""))
        }
        self._command = None if plan.command is None else _command_run(plan, directory)
        self._report = report
        self._listener = listener
        self._result = result
        self._limits = plan.settings.limits
        self._created: dict[str, protocol.Created] = {}
        self._ready: dict[str, protocol.Ready] = {}
        self._progress: dict[str, protocol.Progress] = {}
        self._done: set[str] = set()
        self._silent_since: dict[str, float] = {}
        self._counts: dict[str, protocol.Progress] = {}
        self._published_until_ns = 0
        self._unmatched = ""  # of which discovery is waited for, in words
        self._ended_ns: int | None = None  # when a command had ended by itself

    @property
    def shared_memory(self) -> list[str]:
        """What the middleware made in /dev/shm, as far as the processes have told; also those that were killed."""
        created = list(self._created.values())
        for message in self._supervisor.unheard:
            with contextlib.suppress(ProtocolError):
                line = protocol.parse(message)
                created += [line] if isinstance(line, protocol.Created) else []
        return [name for line in created for name in line.shared_memory or ()]

    def launch(self) -> None:
        """Writes the configurations and starts the processes, in the conditions that come before them."""
        self._enter("preparing", "what comes before the processes: observers, conditions")
        self.surroundings.prepare()
        launch = self._view.launch
        for process, name in node_names(self._plan).items():
            records = self._directory.records(name).absolute()
            config = self._directory.config(name)
            write_json(config, node_configuration(self._plan, process, records))
            command = [*launch.prefix, str(self._plan.node_program), "--config", str(config.absolute())]
            foreign = name in self._of_conditions
            node = self._supervisor.start(
                name,
                command,
                self._directory.log(name),
                cpus=None if foreign else launch.cpus_of.get(process or "", launch.cpus),
                environment=None if foreign else launch.environment,
            )
            self._result.pids[name] = node.pid
            known = process if process is not None else self._plan.graph.name
            (self._view.condition_processes if foreign else self._view.processes)[known] = node.pid
            group = f"condition/{self._of_conditions[name]}" if foreign else f"workload/{known}"
            self._view.watch(group, node.pid)
        self._listener.launched(self._result.pids)

    def run(self) -> None:
        """Everything from the running processes to their end."""
        command = self._command
        at_start = command is not None and command.command.parameters.ends_itself
        if command is not None and not at_start:
            self._launch_command(command)
        writers = self._await_created()
        self._await_ready()
        if command is not None and not at_start:
            self._await_command(command)
        self._enter("conditions", "observers to record and conditions to be in effect")
        self.surroundings.surround()
        self._start(writers)
        self._supervisor.waiting = None
        if command is not None and at_start:
            self._pass_time(((self._result.start_at_ns or 0) - time.monotonic_ns()) / NS_PER_S)
            self._launch_command(command)
        if command is None:
            self._measure()
        else:
            self._measure_command(command)
        if self._plan.treatment.conditions:
            behind = self._published_until_ns > self._scheduled.end_ns + HEARD_WITHIN_NS
            self._supervisor.waiting = Wait("evidence that the conditions were in effect")
            self.surroundings.verify(self._scheduled, self._published_until_ns if behind else self._scheduled.end_ns)
        if command is not None:
            self._stop_command(command)
        self._finish()

    def _enter(self, phase: str, what: str | Callable[[], str]) -> None:
        """Begins a part of the trial in which nothing is measured; `what` it waits for is said where it takes long."""
        self._report(LiveProgress(phase, 0, 0, 0, 0))
        self._supervisor.waiting = Wait(what)

    def _launch_command(self, command: CommandRun) -> None:
        self._enter("starting", lambda: f"{self._command_words} to be started")
        plan = self._plan
        assert plan.command is not None
        folder, network = self._directory.path, plan.settings.network
        variables = commands.environment(plan.command, plan.environment_levels, plan.domain, network, folder)
        try:
            companion = command.launch(self._view.launch, variables, plan.native.program("perflab-guard"))
        except BadInput as error:
            raise Failed("harness_error", str(error), last=True, error=error) from error
        self._supervisor.watch(companion)
        self._result.pids[command.name] = command.pid
        self._view.processes[plan.command.name] = command.pid
        self._watch_tree(command)
        self._listener.command_launched(command.name, companion.document())

    def _watch_tree(self, command: CommandRun) -> None:
        """Lets the monitor watch the command, and what has left it meanwhile: that is then below the guard."""
        for root in command.new_roots():
            self._view.watch(f"workload/{command.command.name}", root)

    def _await_command(self, command: CommandRun) -> None:
        """Until measuring may begin."""
        ready = command.command.parameters.ready_when
        wait_ns = ready.within if ready.after is None else ready.after + self._limits.silence_ns
        deadline = self._deadline(wait_ns)
        self._supervisor.waiting = Wait(
            lambda: f"{self._command_words} to be ready: {command.not_ready()}", wait_ns / NS_PER_S
        )
        while (missing := command.not_ready()) is not None:
            if time.monotonic() >= deadline:
                waited = format_duration(wait_ns / NS_PER_S)
                raise Failed(
                    "failed", f"{self._command_words} was not ready within {waited}: {missing}{command.last_words()}"
                )
            self._report(LiveProgress("waiting until it is ready", 0, 0, 0, 0))
            self._watch_tree(command)
            self._pass_time(LOOK_INTERVAL_S)

    def _measure_command(self, command: CommandRun) -> None:
        """Until the end of the measured part, or of a command that ends by itself; then what is on its way arrives."""
        planned, itself = self._scheduled, command.command.parameters.ends_itself
        while command.ended_ns is None and (left_ns := planned.end_ns - time.monotonic_ns()) > 0:
            self._look_at_command(command, planned)
            self._pass_time(min(1.0, left_ns / NS_PER_S), until_ended=itself)
        if itself:
            if command.ended_ns is None:
                time_s = format_duration((planned.end_ns - (command.started_ns or 0)) / NS_PER_S)
                raise Failed(
                    "failed", f"{self._command_words} has not ended by itself within {time_s}{command.last_words()}"
                )
            if command.status != 0:
                raise Failed("failed", f"{self._command_words} {command.how_it_ended()}")
            if command.ended_ns <= planned.begin_ns:
                raise Failed("failed", f"{self._command_words} {command.how_it_ended()}: the warm-up was not over")
            self._ended_ns = min(command.ended_ns, planned.end_ns)
        self._published_until_ns = self._scheduled.end_ns
        self._result.measured = self._scheduled
        elapsed_ns = self._scheduled.end_ns - self._scheduled.begin_ns
        self._report(LiveProgress("draining", elapsed_ns, None, None, None))
        self._supervisor.waiting = Wait("messages that are on their way")
        if not itself:
            command.note_libraries()
            self._pass_time(self._limits.drain_quiet_ns / NS_PER_S)
            if self._supervisor.nodes:
                self._drain_nodes()

    def _look_at_command(self, command: CommandRun, planned: Window) -> None:
        now_ns = time.monotonic_ns()
        if command.command.parameters.ends_itself:
            command.note_libraries()  # nobody knows when it will end
        self._watch_tree(command)
        phase = "measuring" if now_ns >= planned.begin_ns else "warming up"
        self._report(LiveProgress(phase, now_ns - planned.begin_ns, None, None, None))

    def _stop_command(self, command: CommandRun) -> None:
        """Asks it to end, as a user would. One that has to be made to is no success."""
        if command.has_ended():
            return
        self._enter("stopping", lambda: f"{self._command_words} to end")
        self._pass_time(0.0)  # one that has ended already was not asked to
        command.ask_to_end()
        stop = command.command.parameters.stop
        deadline = self._deadline(stop.grace)
        while not command.has_ended() and (left_s := deadline - time.monotonic()) > 0:
            self._pass_time(left_s, until_ended=True)
        if not command.has_ended():
            for problem in self.end_command():
                raise Failed("harness_error", problem)
            raise Failed(
                "failed",
                f"{self._command_words} did not end within {format_duration(stop.grace / NS_PER_S)} after "
                f"{stop.signal}; it {command.how_it_ended()}",
            )

    def end_command(self) -> list[str]:
        """Ends whatever is left of the command; what could not be ended, one line. Idempotent."""
        command = self._command
        if command is None or command.companion is None:
            return []
        self._supervisor.forget(command.companion)
        try:
            command.close()
        except (PerflabError, OSError) as error:
            return [f"{self._command_words} could not be ended: {error}"]
        return []

    def tell_of_command(self) -> None:
        """What became of it, into the result; after everything has ended."""
        command = self._command
        if command is None:
            return
        self._result.command = command.document()
        self._result.statuses[command.name] = command.status
        if command.status != 0 and (tail := log_tail(command.log)):
            self._result.log_tails[command.name] = tail
        companion = command.companion
        if companion is not None and companion.killed and command.asked_to_end_ns is not None:
            count = f"{companion.killed} process{'es' if companion.killed > 1 else ''}"
            self._result.notes.append(f"{count} that {self._command_words} had started did not end before SIGKILL")

    @property
    def _command_words(self) -> str:
        assert self._command is not None
        pid = "" if self._command.companion is None else f" (pid {self._command.pid})"
        return f"command {self._command.command.name!r}{pid}"

    def judged(self, failure: Failed) -> Failed:
        """A failure of the workload is one only if its conditions were in effect up to then."""
        conditions, now_ns = self._plan.treatment.conditions, time.monotonic_ns()
        if failure.outcome != "failed" or not conditions or self._result.start_at_ns is None:
            return failure
        window = Window(self._scheduled.begin_ns, min(now_ns, self._scheduled.end_ns))
        if window.end_ns - window.begin_ns < LEAST_JUDGED_NS:
            return failure  # too short to tell
        try:
            self.surroundings.verify(window, window.end_ns)
        except NotInEffect as error:
            return Failed("invalid", f"{error}; besides, {failure.reason}")
        except (PerflabError, Failed) as error:
            self._result.notes.append(f"whether the conditions held up to the failure cannot be told: {error}")
        return failure

    @property
    def _scheduled(self) -> Window:
        """The measured part as it was planned."""
        begin_ns = (self._result.start_at_ns or 0) + self._plan.settings.warmup_ns
        if self._ended_ns is not None:
            return Window(begin_ns, self._ended_ns)
        return Window(begin_ns, begin_ns + self._plan.settings.duration_ns)

    def say_farewell(self) -> None:
        """Lets the processes that still run write their last checkpoint, for a bounded time."""
        self._let_command_end()
        if self._result.start_at_ns is None:
            return  # nothing was measured yet
        self._supervisor.send_all({"type": "stop"})
        deadline = time.monotonic() + self._limits.farewell_ns / NS_PER_S
        self._supervisor.waiting = Wait(
            lambda: f"{self._names(dict.fromkeys(self._done))} to write their last records",
            self._limits.farewell_ns / NS_PER_S,
        )
        try:
            while self._supervisor.running and not isinstance(self._supervisor.poll(deadline), Tick):
                pass
        except (Interrupted, ProtocolError):
            return

    def _let_command_end(self) -> None:
        """Lets a command that still runs write what it has, as long as it may take to end."""
        command = self._command
        if command is None or command.companion is None or command.has_ended():
            return
        if command.asked_to_end_ns is None:
            command.ask_to_end()
        deadline = time.monotonic() + command.command.parameters.stop.grace / NS_PER_S
        self._supervisor.waiting = Wait(lambda: f"{self._command_words} to end")
        with contextlib.suppress(Interrupted, ProtocolError):
            while not command.has_ended() and not isinstance(self._supervisor.poll(deadline), Tick):
                pass

    def _await_created(self) -> list[dict[str, Any]]:
        """The writers of all processes, once all endpoints exist."""
        deadline = self._deadline(self._limits.created_ns)
        self._enter("starting", lambda: f"{self._names(self._created)} to create endpoints")
        while missing := [name for name in self._supervisor.nodes if name not in self._created]:
            self._hear(deadline, missing, "create its endpoints")
        return [writer for name in self._supervisor.nodes for writer in self._created[name].writers]

    def _await_ready(self) -> None:
        timeout_ns = self._plan.settings.discovery_timeout_ns
        deadline = self._deadline(timeout_ns + self._limits.silence_ns)
        self._supervisor.waiting = Wait(
            lambda: f"discovery by {self._names(self._ready)}{self._unmatched}", timeout_ns / NS_PER_S or None
        )
        while missing := [name for name in self._supervisor.nodes if name not in self._ready]:
            self._hear(deadline, missing, "finish discovery")
        if self._plan.settings.discovery_timeout_ns > 0 and not all(line.matched for line in self._ready.values()):
            unmatched = [text for line in self._ready.values() for text in line.unmatched]
            shown = "; ".join(unmatched[:UNMATCHED_SHOWN])
            more = f" and {len(unmatched) - UNMATCHED_SHOWN} more" if len(unmatched) > UNMATCHED_SHOWN else ""
            timeout = format_duration(self._plan.settings.discovery_timeout_ns / NS_PER_S)
            count = "1 endpoint" if len(unmatched) == 1 else f"{len(unmatched)} endpoints"
            raise Failed("harness_error", f"{count} not matched within {timeout}: {shown}{more}")

    def _names(self, heard: Mapping[str, object]) -> str:
        """The processes that have not been heard of yet, for people."""
        missing = [repr(name) for name in self._supervisor.nodes if name not in heard]
        more = f" and {len(missing) - UNMATCHED_SHOWN} more" if len(missing) > UNMATCHED_SHOWN else ""
        return f"{'processes' if len(missing) > 1 else 'process'} {', '.join(missing[:UNMATCHED_SHOWN])}{more}"

    def _hear(self, deadline: float, missing: list[str], what: str) -> None:
        """Takes in one line before the start; a fast process may be a phase ahead of a slow one."""
        event = self._supervisor.poll(deadline)
        if isinstance(event, Tick):
            node = self._node(missing[0])
            tail = log_tail(node.log)
            last_words = f"; its log ends with: {tail[-1]}" if tail else ""
            raise Failed("harness_error", f"process {node.name!r} (pid {node.pid}) did not {what} in time{last_words}")
        name, line = self._interpret(event)
        if isinstance(line, protocol.Created):
            self._created[name] = line
            if line.shared_memory is not None:
                self._listener.created(name, line.shared_memory)
        elif isinstance(line, protocol.Ready):
            self._ready[name] = line
        elif isinstance(line, protocol.Waiting):
            if line.unmatched:
                count = "1 endpoint is" if len(line.unmatched) == 1 else f"{len(line.unmatched)} endpoints are"
                self._unmatched = f": {count} not matched, the first is {line.unmatched[0]}"
            self._report(LiveProgress("discovery", 0, 0, 0, 0, note=f"{len(line.unmatched)} unmatched"))

    def _pass_time(self, seconds: float, *, until_ended: bool = False) -> None:
        """Lets time pass, and sees what happens meanwhile; with `until_ended` until the command has ended."""
        deadline = time.monotonic() + seconds
        while not isinstance(event := self._supervisor.poll(deadline), Tick):
            if self._is_expected_end(event):
                if until_ended:
                    return
                continue
            name, line = self._interpret(event)
            if isinstance(line, protocol.Progress):
                self._take_counts(name, line)
                self._silent_since[name] = time.monotonic()

    def _is_expected_end(self, event: Event) -> bool:
        """Whether it says that the command has ended, which was to end."""
        of = self._command
        if of is None or not isinstance(event, CompanionEnded) or event.companion is not of.companion:
            return False
        return of.command.parameters.ends_itself or of.asked_to_end_ns is not None

    def _take_counts(self, name: str, line: protocol.Progress) -> None:
        """What the processes say of the nodes of conditions, summed up over the processes."""
        if line.conditions is None:
            return
        self._counts[name] = line
        for label in line.conditions:
            parts = [
                (p.at_ns, p.conditions[label]) for p in self._counts.values() if p.conditions and label in p.conditions
            ]
            self._view.latest_counts[label] = Counts(
                at_ns=min(at_ns for at_ns, _ in parts),
                sent=sum(c.sent for _, c in parts),
                not_sent=sum(c.not_sent for _, c in parts),
                deliveries_expected=sum(c.deliveries_expected for _, c in parts),
                received=sum(c.received for _, c in parts),
            )

    def _start(self, writers: list[dict[str, Any]]) -> None:
        lead_ns = START_LEAD_NS + START_LEAD_PER_PROCESS_NS * len(self._supervisor.nodes)
        if self._plan.treatment.conditions:
            lead_ns += START_LEAD_DISTURBED_NS
        if not self._supervisor.nodes:
            lead_ns = 0  # nobody has to hear of it
        at_ns = time.monotonic_ns() + lead_ns
        self._supervisor.send_all({"type": "start", "at_ns": at_ns, "writers": writers})
        self._result.start_at_ns = at_ns
        now = time.monotonic()
        self._silent_since = dict.fromkeys(self._supervisor.nodes, now + lead_ns / NS_PER_S)

    def _new_drain(self) -> Drain:
        # A message that the middleware holds back on purpose, or a callback that works, is no silence.
        held_back_ns = max(m.programmed_delay_ns for m in self._plan.variant.middlewares)
        known_ns = held_back_ns + self._plan.graph.longest_work_ns
        return Drain(
            list(self._supervisor.nodes), self._limits.drain_quiet_ns + known_ns, self._limits.drain_limit_ns + known_ns
        )

    def _drain_nodes(self) -> None:
        """Until the nodes that conditions added beside a command are at rest; their schedule has ended."""
        drain = self._new_drain()
        limit = self._deadline(2 * self._limits.drain_limit_ns)
        while drain.verdict(time.monotonic_ns()) is None and time.monotonic() < limit:
            event = self._supervisor.poll(min(time.monotonic() + LOOK_INTERVAL_S, limit))
            if not isinstance(event, Tick) and not self._is_expected_end(event):
                name, line = self._interpret(event)
                if isinstance(line, protocol.Progress):
                    self._silent_since[name] = time.monotonic()
                    self._take_counts(name, line)
                    drain.update(name, line, time.monotonic_ns())
            self._check_silence()

    def _measure(self) -> None:
        """Until the publishers have ended and the graph is at rest."""
        settings = self._plan.settings
        drain = self._new_drain()
        # Timers catch up by default: a graph that cannot keep up publishes for longer than asked, within reason.
        scheduled_s = (settings.warmup_ns + settings.duration_ns) / NS_PER_S
        overrun = time.monotonic() + 2 * scheduled_s + 30.0
        while True:
            now_ns = time.monotonic_ns()
            verdict = drain.verdict(now_ns)
            if self._plan.variant.runtime == "virtual" and not drain.publishing:
                verdict = "rest"  # it says so when no event is left
            if drain.publishing:
                self._published_until_ns = now_ns
            elif self._supervisor.waiting is None and self._plan.variant.runtime != "virtual":
                self._supervisor.waiting = Wait("messages that are on their way")
            if verdict is not None:
                self._result.drain = verdict
                self._note_overrun()
                return
            if drain.publishing and now_ns > overrun * NS_PER_S:
                late = format_duration(scheduled_s + 30.0)
                raise Failed("failed", f"the graph still publishes {late} after its schedule ended: it cannot keep up")
            event = self._supervisor.poll(min(time.monotonic() + (1.0 if drain.publishing else 0.05), overrun + 1.0))
            if isinstance(event, Tick):
                self._check_silence()
                continue
            name, line = self._interpret(event)
            if isinstance(line, protocol.Progress):
                self._silent_since[name] = time.monotonic()
                drain.update(name, line, time.monotonic_ns())
                self._note_progress(name, line, drain)
            self._check_silence()

    def _note_overrun(self) -> None:
        late_ns = self._published_until_ns - self._scheduled.end_ns
        if self._plan.variant.runtime != "virtual" and late_ns > HEARD_WITHIN_NS:
            late_s = late_ns / NS_PER_S
            self._result.notes.append(
                f"the graph published {format_duration(late_s)} longer than planned: it was behind"
            )

    def _note_progress(self, name: str, line: protocol.Progress, drain: Drain) -> None:
        if line.checkpoint_error:
            raise Failed(
                "harness_error",
                f"process {name!r} cannot write its records: {line.checkpoint_error}",
                last=_is_disk_full(line.checkpoint_error),
            )
        self._progress[name] = line
        self._take_counts(name, line)
        reports = self._progress.values()
        self._report(
            LiveProgress(
                phase="measuring" if drain.publishing else "draining",
                elapsed_ns=max(p.elapsed_ns for p in reports),
                sent=sum(p.deliveries_expected for p in reports),
                received=sum(p.received for p in reports),
                lost=sum(p.lost for p in reports),
                histograms=tuple(p.latency for p in reports if p.latency),
            )
        )

    def _check_silence(self) -> None:
        now = time.monotonic()
        for name, since in self._silent_since.items():
            if now - since > self._limits.silence_ns / NS_PER_S:
                silence = format_duration(self._limits.silence_ns / NS_PER_S)
                raise Failed("failed", f"process {name!r} (pid {self._node(name).pid}) has said nothing for {silence}")

    def _finish(self) -> None:
        """Last checkpoints, last lines, and the end of every process."""
        self._supervisor.send_all({"type": "stop"})
        deadline = self._deadline(self._limits.done_ns)
        self._supervisor.waiting = Wait(
            lambda: f"{self._names(dict.fromkeys(self._done))} to write their records and end"
        )
        while self._supervisor.running:
            event = self._supervisor.poll(deadline)
            if isinstance(event, Tick):
                node = self._supervisor.running[0]
                waited = format_duration(self._limits.done_ns / NS_PER_S)
                raise Failed("failed", f"process {node.name!r} (pid {node.pid}) did not end within {waited} after stop")
            if isinstance(event, Ended) and event.process in self._done and event.status == 0:
                continue
            if self._is_expected_end(event):
                continue
            name, line = self._interpret(event)
            if isinstance(line, protocol.Done):
                self._done.add(name)
            elif isinstance(line, protocol.Progress) and line.checkpoint_error:
                raise Failed("harness_error", f"process {name!r} cannot write its records: {line.checkpoint_error}")

    def _interpret(self, event: Message | Ended | CompanionEnded | Tick) -> tuple[str, protocol.Line]:
        """A message as its type; an early end or an error line ends the trial."""
        assert not isinstance(event, Tick)
        if isinstance(event, CompanionEnded):
            self._fail_companion(event)
        if isinstance(event, Ended):
            self._fail_ended(event)
        line = protocol.parse(event)
        if isinstance(line, protocol.Failure):
            self._fail_told(event.process, line)
        return event.process, line

    def _fail_companion(self, event: CompanionEnded) -> NoReturn:
        companion = event.companion
        if self._command is not None and companion is self._command.companion:
            hint = "" if self._command.status else "; with `ends: itself` (--ends itself) that is no failure"
            raise Failed("failed", f"{self._command_words} {self._command.how_it_ended()}{hint}")
        tail = log_tail(companion.log)
        how = "was ended" if companion.status is None else describe_status(companion.status)
        last_words = f"; its log ends with: {tail[-1]}" if tail else ""
        raise NotInEffect(f"{companion.name}: the program {how} while it should run{last_words}")

    def _fail_told(self, name: str, line: protocol.Failure) -> NoReturn:
        text = one_line(line.text)
        if protocol.STRANGER in text or protocol.NOT_READY in text:
            raise Failed("harness_error", text)
        if line.kind == "failed" and (label := self._of_conditions.get(name)):
            raise NotInEffect(f"{label}: process {name!r}: {text}")
        match line.kind:
            case "bad_input":
                raise Failed("harness_error", text, last=True, error=BadInput(text))
            case "unsupported":
                raise Failed("harness_error", text, last=True, error=Unavailable(text))
            case _:
                raise Failed("failed", f"process {name!r}: {text}", last=_is_disk_full(text))

    def _fail_ended(self, event: Ended) -> NoReturn:
        node = self._node(event.process)
        when = ""
        if self._result.start_at_ns is not None:
            elapsed_ns = time.monotonic_ns() - self._result.start_at_ns
            when = f" {format_duration(max(0, elapsed_ns) / NS_PER_S)} after the start"
        elif event.process in self._done:
            when = " after it was done"
        tail = log_tail(node.log)
        last_words = f"; its log ends with: {tail[-1]}" if tail else "; its log is empty"
        text = f"process {event.process!r} (pid {node.pid}) {describe_status(event.status)}{when}{last_words}"
        if label := self._of_conditions.get(event.process):
            raise NotInEffect(f"{label}: {text}")
        raise Failed("failed", text)

    def _node(self, name: str) -> NodeProcess:
        return self._supervisor.nodes[name]

    @staticmethod
    def _deadline(after_ns: int) -> float:
        return time.monotonic() + after_ns / NS_PER_S


def _command_run(plan: TrialPlan, directory: TrialDirectory) -> CommandRun:
    assert plan.command is not None
    name = file_names(plan)[plan.command.name]
    return CommandRun(plan.command, name, directory.log(name), design.argument_levels(plan.treatment.factors))


def _is_disk_full(text: str) -> bool:
    return os.strerror(errno.ENOSPC).lower() in text.lower()
