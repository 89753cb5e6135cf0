"""The processes of a graph, each a perflab-node: those of the workload, or beside a command those of conditions.

launched -> created -> ready -> start -> publishing -> rest -> stop -> done -> every process gone (docs/formats.md,
section 3). `hear` receives all reports of nodes; the phases wait until enough was reported.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NoReturn

from perflab import tracer
from perflab.condition import Counts, Interruption, NotInEffect, Window
from perflab.design import scheduling
from perflab.errors import BadInput, ProtocolError, Unavailable, one_line
from perflab.experiment import protocol
from perflab.experiment.drain import Drain
from perflab.experiment.outside import Outside
from perflab.experiment.running import RunningTrial
from perflab.experiment.starved import starved
from perflab.experiment.supervisor import CompanionEnded, Ended, Event, NodeProcess, Tick
from perflab.experiment.system import LOOK_INTERVAL_S, Failed, System
from perflab.experiment.trial_plan import TrialPlan
from perflab.formats.json_file import write_json
from perflab.middleware import REGISTRY as MIDDLEWARES
from perflab.middleware import Middleware, installation
from perflab.observer import Artifact
from perflab.processes import describe_status, last_words, start_ticks
from perflab.results.outcome import FAILED, HARNESS_ERROR, BrokenOff, Outcome
from perflab.results.trial import added
from perflab.runs.display import LiveProgress
from perflab.units import NS_PER_S, format_duration

# From the start line to the start instant: every process must have received the line by then.
START_LEAD_NS = 400_000_000
START_LEAD_PER_PROCESS_NS = 5_000_000
START_LEAD_DISTURBED_NS = 400_000_000  # more, if the machine is about to become busy
# More, beside real-time threads of a condition: threads that starve behind them get the CPU once in a period of the
# kernel's fair server or throttling.
START_LEAD_STARVED_NS = 1_100_000_000
START_LEAD_PER_WAITING_NS = 50_000_000  # more, for each thread beyond the CPUs that wanted one in the last minute
# And this multiple of the time that the slowest process took from its launch until it had its endpoints, which shows
# the machine's present speed: on an idle one this is less than the above. Up to a limit, for large graphs.
START_LEAD_PER_CREATION = 10
START_LEAD_MOST_NS = 3 * NS_PER_S
END_LEAD_NS = 100_000_000  # from the line that announces the end of the measured part to that instant
UNTIL_STOPPED_NS = 1 << 61  # for a measured part without an end of its own
UNMATCHED_SHOWN = 3
DAEMON_LOOK_S = 0.01
HEARD_WITHIN_NS = NS_PER_S // 4  # the delay after which perflab learns that the last message was published


def program_of(plan: TrialPlan, process: str | None) -> Path:
    """The program of a process of the graph: perflab-node, or the one named in the graph. Raises Unavailable."""
    program = plan.graph.programs.get(process or "", "perflab-node")
    if "/" not in program:
        return plan.native.program(program)
    path = Path(program)
    if not os.access(path, os.X_OK) or not path.is_file():
        raise Unavailable(
            f"{program}, the program of process {process!r}, does not exist; build it (docs/programs.md), or "
            "correct `program` in the graph"
        )
    return path


def node_configuration(
    plan: TrialPlan,
    process: str | None,
    records: Path,
    schedule: int | None = None,
    credentials: Path | None = None,
) -> dict[str, Any]:
    """docs/formats.md, section 2. `schedule` is the descriptor of the memory that several processes share,
    `credentials` the folder for DDS Security."""
    settings, variant = plan.settings, plan.variant
    graph = plan.hosted
    index = 0 if process is None else graph.processes.index(process)
    middleware = variant.middleware_of(index)
    # Requests for the workload do not apply to a process of a condition.
    foreign = process in plan.graph.condition_processes
    configuration: dict[str, Any] = {
        "schema": 1,
        "graph": graph.document,
        "process": process,
        "runtime": middleware.runtime,
        "executor": None if foreign or variant.executor is None else variant.executor.kind,
        "executor_threads": None if foreign or variant.executor is None else variant.executor.threads,
        "executor_period_ns": None if foreign or variant.executor is None else variant.executor.period_ns,
        "intra_process": variant.intra_process and not foreign,
        "pass_by": None if foreign else variant.pass_by,
        "service_framing": variant.service_framing if process is None or index in graph.serving else None,
        "name_threads": settings.name_threads,
        "threads": scheduling.of_process(() if foreign else settings.threads, process),
        "lock_memory": None if foreign else settings.lock_memory,
        "middleware": middleware.configuration(plan.domain, settings.network, plan.seed, index, credentials),
        "duration_ns": None if graph.limit_ns is not None else settings.duration_ns or None,
        "warmup_ns": settings.warmup_ns,
        "sampling_ns": settings.sampling_ns,
        "checkpoint_ns": settings.checkpoint_ns,
        "discovery_timeout_ns": plan.discovery_timeout_ns,
        "thresholds": dict(settings.thresholds),
        "measure": list(settings.measure),
        "seed": plan.seed,
        "schedule_fd": schedule,
        "peers_change": any(condition.changes_peers for condition in plan.conditions),
        "records": str(records),
    }
    if not foreign:
        for observer in plan.observers:
            observer.configure(configuration, plan.native)
        if tracer.is_recorded() and tracer.has_tracepoints(middleware.runtime, plan.native):
            configuration["tracing"] = tracer.node_setting(middleware.runtime, plan.native)
    return configuration


class Nodes(System):
    """Beside a command there may be none; then every phase is over at once."""

    def __init__(self, trial: RunningTrial) -> None:
        self._trial = trial
        self._plan = trial.plan
        self._supervisor = trial.supervisor
        self._limits = trial.plan.settings.limits
        conditions = self._plan.graph.condition_processes
        self._of_conditions = {n: label for p, n in self._plan.node_names.items() if (label := conditions.get(p or ""))}
        self._created: dict[str, protocol.Created] = {}
        self._launched_ns: dict[str, int] = {}
        self._creation_ns = 0  # of the slowest process
        self._ready: dict[str, protocol.Ready] = {}
        self._progress: dict[str, protocol.Progress] = {}
        self._done: set[str] = set()
        self._heard_s: dict[str, float] = {}  # time of a process's last report, from the start on
        self._drain: Drain | None = None  # from the start on
        self._reports = False  # their reports are shown
        self._asked_to_end = False
        self._published_until_ns = 0
        self._ended_ns: int | None = None  # the measured part, if it had no end of its own
        self._ender: str | None = None  # the name of the process whose program ended it
        self._schedule: int | None = None  # the descriptor of the memory that the processes share
        self._gone: set[str] = set()  # names of processes that were killed on purpose
        self._back: dict[str, Interruption] = {}  # names of those that replaced them
        self._unmatched = ""  # processes whose discovery is waited for, in words
        self._outside = Outside(trial)

    @property
    def exist(self) -> bool:
        return bool(self._supervisor.nodes)

    @property
    def scheduled(self) -> Window:
        begin_ns = (self._trial.start_at_ns or 0) + self._plan.settings.warmup_ns
        if self._ended_ns is not None:
            return Window(begin_ns, self._ended_ns)
        return Window(begin_ns, begin_ns + (self._plan.settings.duration_ns or UNTIL_STOPPED_NS))

    @property
    def published_until_ns(self) -> int:
        behind = self._published_until_ns > self.scheduled.end_ns + HEARD_WITHIN_NS
        return self._published_until_ns if behind else self.scheduled.end_ns

    @property
    def shared_memory(self) -> list[str]:
        """Also of processes that were killed."""
        created = list(self._created.values())
        for message in self._supervisor.unheard:
            with contextlib.suppress(ProtocolError):
                line = protocol.parse(message)
                created += [line] if isinstance(line, protocol.Created) else []
        return [name for line in created for name in line.shared_memory or ()]

    # -- the phases ----------------------------------------------------------------------------------------------------

    def launch(self) -> None:
        self._start_daemons()
        self._outside.launch()
        # Memory without a name: the kernel frees it when its processes end, killed or not.
        if len(self._plan.node_names) > 1:
            self._schedule = os.memfd_create("perflab_schedule")
        for process, name in self._plan.node_names.items():
            self._launch(process, name)
        self._trial.keeper.write()

    def _start_daemons(self) -> None:
        """Starts the daemons that the middlewares need; they end after the processes, with the companions."""
        folder = self._trial.directory.absolute()
        for daemon in self._plan.variant.daemons:
            daemon.require_none()
            self._trial.start(daemon.name, daemon.command(self._plan.hosted.document, folder))
            self._trial.waits_for(f"{daemon.name} to be ready")
            self._trial.until(daemon.ready, step_s=DAEMON_LOOK_S)  # its end is reported like that of any companion

    def _launch(self, process: str | None, name: str, **more: Any) -> None:
        """With `more` members of its configuration."""
        trial, launch = self._trial, self._trial.launch
        config = trial.files.config(name)
        records = trial.files.records(name).absolute()
        made = node_configuration(self._plan, process, records, self._schedule, trial.credentials)
        write_json(config, {**made, **more})
        program = program_of(self._plan, process)
        foreign = self._of_conditions.get(name)
        node = self._supervisor.start(
            name,
            [*launch.prefix, str(program), "--config", str(config.absolute())],
            trial.files.log(name),
            cpus=None if foreign else launch.cpus_of.get(process or "", launch.cpus),
            environment={
                **self._middleware_of(process).environment,
                **({} if foreign else launch.environment),
            },
            descriptors=() if self._schedule is None else (self._schedule,),
        )
        trial.keeper.note_process(name, pid=node.pid, start_ticks=start_ticks(node.pid))
        self._launched_ns[name] = time.monotonic_ns()
        known = process if process is not None else self._plan.graph.name
        (trial.condition_processes if foreign else trial.processes)[known] = node.pid
        trial.watch(f"condition/{foreign}" if foreign else f"workload/{known}", node.pid)

    def ready(self) -> None:
        trial, timeout_ns = self._trial, self._plan.discovery_timeout_ns
        trial.enter("starting", lambda: f"{self._names(self._created)} to create endpoints")
        self._await_all(self._created, self._limits.created_ns, "create its endpoints")
        self._check_libraries()
        trial.waits_for(
            lambda: f"discovery by {self._names(self._ready)}{self._unmatched}", timeout_ns / NS_PER_S or None
        )
        self._await_all(self._ready, timeout_ns + self._limits.silence_ns, "finish discovery")
        if timeout_ns > 0 and not all(line.matched for line in self._ready.values()):
            unmatched = [text for line in self._ready.values() for text in line.unmatched]
            shown = "; ".join(unmatched[:UNMATCHED_SHOWN])
            more = f" and {len(unmatched) - UNMATCHED_SHOWN} more" if len(unmatched) > UNMATCHED_SHOWN else ""
            timeout = format_duration(timeout_ns / NS_PER_S)
            count = "1 endpoint" if len(unmatched) == 1 else f"{len(unmatched)} endpoints"
            outcome = FAILED if self._outside.declared else HARNESS_ERROR
            raise self._stuck(outcome, f"{count} not matched within {timeout}: {shown}{more}{self._outside.words()}")

    def _middleware_of(self, process: str | None) -> Middleware:
        index = 0 if process is None else self._plan.hosted.processes.index(process)
        return self._plan.variant.middleware_of(index)

    def _check_libraries(self) -> None:
        """Records the middleware libraries that each process really loaded; they must be those of the build."""
        for process, name in self._plan.node_names.items():
            middleware = self._middleware_of(process)
            kind = MIDDLEWARES.get(middleware.kind)
            if kind is None or not kind.libraries:
                continue
            node = self._supervisor.nodes[name]
            try:
                libraries = [path for path in installation.mapped(node.pid) if installation.is_of(kind, path)]
            except OSError:  # it has ended, which the next phase reports
                continue
            self._trial.keeper.note_process(name, libraries=tuple(map(str, libraries)))
            build = middleware.installation
            complaint = None if build is None else installation.passed_over(kind, build, libraries)
            if complaint is None and middleware.own_library is not None:
                complaint = installation.changed(middleware.own_library, middleware.sha256)
            if complaint is not None:
                text = f"process {name!r} does not use {middleware.name}: {complaint}"
                raise Failed(HARNESS_ERROR, text, last=True, error=Unavailable(text))

    def start(self) -> None:
        nodes = self._supervisor.nodes
        lead_ns = START_LEAD_NS + START_LEAD_PER_PROCESS_NS * len(nodes)
        if self._plan.conditions:
            lead_ns += START_LEAD_DISTURBED_NS
        if any(condition.real_time is not None for condition in self._plan.conditions):
            lead_ns += START_LEAD_STARVED_NS
        lead_ns += round(START_LEAD_PER_WAITING_NS * max(0.0, os.getloadavg()[0] - (os.cpu_count() or 1)))
        lead_ns = max(lead_ns, min(START_LEAD_PER_CREATION * self._creation_ns, START_LEAD_MOST_NS))
        if not nodes:
            lead_ns = 0  # no process needs the message
        at_ns = time.monotonic_ns() + lead_ns
        self._supervisor.send_all(self._start_line(at_ns))
        self._trial.keeper.note(start_at_ns=at_ns)
        self._heard_s = dict.fromkeys(nodes, time.monotonic() + lead_ns / NS_PER_S)
        # A message that the middleware holds back on purpose, or a running callback, is not silence.
        held_back_ns = max(m.programmed_delay_ns for m in self._plan.variant.middlewares)
        known_ns = held_back_ns + self._plan.graph.longest_work_ns + self._plan.graph.longest_action_ns
        limits = self._limits
        # A chain goes through each node at most once.
        chain_ns = held_back_ns * max(1, len(self._plan.graph.nodes()))
        limit_ns = limits.drain_limit_ns + chain_ns + known_ns - held_back_ns
        self._drain = Drain(list(nodes), limits.drain_quiet_ns + known_ns, limit_ns)
        self._supervisor.waiting = None

    def _start_line(self, at_ns: int) -> dict[str, Any]:
        writers = [writer for created in self._created.values() for writer in created.writers]
        return {"type": "start", "at_ns": at_ns, "writers": writers}

    def progress(self) -> None:
        self._reports = True
        settings = self._plan.settings
        if self._plan.graph.limit_ns is not None:
            self._until_ended()
        elif settings.duration_ns:
            self._interrupt()
        else:
            self._trial.until_stopped(self._publish, begin_ns=self.scheduled.begin_ns)
            self.end_at(time.monotonic_ns() + self._end_lead_ns)
        # Timers catch up by default: a graph that cannot keep up may publish for longer than requested, within a limit.
        scheduled_s = (settings.warmup_ns + self.scheduled.end_ns - self.scheduled.begin_ns) / NS_PER_S
        if not self._trial.until(self._has_published, self._deadline(0) + 2 * scheduled_s + 30.0, 1.0):
            late = format_duration(scheduled_s + 30.0)
            raise self._stuck(
                FAILED, f"the graph is still publishing {late} after its schedule ended: it cannot keep up"
            )

    def _until_ended(self) -> None:
        """Until a program ends the measured part."""
        window = self.scheduled
        self._interrupt()
        if not self._trial.until(self._is_over, window.end_ns / NS_PER_S, 1.0):
            limit = format_duration((window.end_ns - window.begin_ns) / NS_PER_S)
            enders = " or ".join(map(repr, self._plan.graph.enders))
            reason = f"process {enders} did not end the measured part within its limit of {limit}"
            raise Failed(FAILED, reason, broken_off=BrokenOff(why="limit", at_ns=time.monotonic_ns()))
        at_ns = time.monotonic_ns() + self._end_lead_ns
        if at_ns <= window.begin_ns:
            raise Failed(FAILED, f"process {self._ender!r} ended the measured part before it began")
        self.end_at(at_ns)

    def _is_over(self) -> bool:
        """Until nothing is published any more, or a program has requested the end."""
        return self._has_published() or self._ender is not None

    def _publish(self) -> None:
        self._interrupt()
        self._trial.until(self._has_published, step_s=1.0)

    @property
    def _end_lead_ns(self) -> int:
        """The time by which every process has certainly received an end."""
        return END_LEAD_NS + START_LEAD_PER_PROCESS_NS * len(self._supervisor.nodes)

    def end_at(self, at_ns: int) -> None:
        """The end of a measured part without an end of its own."""
        self._ended_ns = at_ns
        self._supervisor.send_all({"type": "end", "at_ns": at_ns})
        self._trial.keeper.note(duration_s=(at_ns - self.scheduled.begin_ns) / NS_PER_S)

    def _interrupt(self) -> None:
        """Kills and starts the processes as conditions request, while the others publish."""
        window = self.scheduled
        acts = []
        for crash in self._trial.launch.interruptions:
            due_ns = crash.due_ns(window.begin_ns, window.end_ns)
            acts += [(due_ns, self._kill, crash), (due_ns + crash.back_after_ns, self._bring_back, crash)]
        for due_ns, act, crash in sorted(acts, key=lambda one: one[0]):
            if self._trial.until(self._is_over, due_ns / NS_PER_S, 1.0):
                return  # too late: the condition was not in effect, as its evidence shows
            act(crash)

    def _kill(self, crash: Interruption) -> None:
        name = self._plan.node_names[crash.process]
        node = self._node(name)
        self._gone.add(name)
        self._heard_s.pop(name)
        if self._drain is not None:
            self._drain.leave(name)
        self._supervisor.send(node, {"type": "crash"})
        if not self._trial.until(lambda: node.status is not None, self._deadline(self._limits.farewell_ns)):
            raise Failed(HARNESS_ERROR, f"process {name!r} (pid {node.pid}) did not crash when it should")
        crash.killed_ns = time.monotonic_ns()

    def _bring_back(self, crash: Interruption) -> None:
        name = before = self._plan.node_names[crash.process]
        number = 2
        while name in self._trial.keeper.file.processes:
            name, number = f"{before}_{number}", number + 1
        self._back[name] = crash
        crash.started_ns = time.monotonic_ns()
        self._trial.keeper.note_process(name, process=crash.process, continues=before, started_ns=crash.started_ns)
        self._launch(crash.process, name, rejoins=True)
        self._trial.keeper.write()

    def _let_rejoin(self, name: str, line: protocol.Ready) -> None:
        if not line.matched:
            raise Failed(FAILED, f"process {name!r} found no peers after it came back: {'; '.join(line.unmatched)}")
        self._back[name].ready_ns = time.monotonic_ns()
        self._supervisor.send(self._node(name), self._start_line(self._trial.start_at_ns or 0))
        self._heard_s[name] = time.monotonic()
        if self._drain is not None:
            self._drain.join(name)

    def drain(self) -> None:
        if self._plan.variant.runtime == "virtual":
            self._trial.keeper.note(drain="rest")  # it reports that it has published when no event is left
        else:
            self._trial.waits_for("messages under way")
            self._trial.keeper.note(drain=self.rest())
            late_ns = self._published_until_ns - self.scheduled.end_ns
            if late_ns > HEARD_WITHIN_NS:
                late = format_duration(late_ns / NS_PER_S)
                self._trial.keeper.add_note(f"the graph published {late} longer than planned: it was behind")
        self._reports = False

    def rest(self, limit_s: float = math.inf) -> str | None:
        """Until they are at rest, and how that was detected; None if the limit was reached before."""
        drain = self._drain
        assert drain is not None, "call start first"

        def at_rest() -> bool:
            self._check_silence()
            return drain.verdict(time.monotonic_ns()) is not None

        self._trial.until(at_rest, time.monotonic() + limit_s, LOOK_INTERVAL_S)
        return drain.verdict(time.monotonic_ns())

    def end(self) -> None:
        self._asked_to_end = True
        self._supervisor.send_all({"type": "stop"})
        self._trial.waits_for(lambda: f"{self._names(self._done)} to write their records and end")
        if not self._trial.until(lambda: not self._supervisor.running, self._deadline(self._limits.done_ns)):
            node = self._supervisor.running[0]
            waited = format_duration(self._limits.done_ns / NS_PER_S)
            text = f"process {node.name!r} (pid {node.pid}) did not end within {waited} after stop"
            raise self._stuck(FAILED, text, self._broken_off("stuck", node.name))
        self._outside.end()

    def farewell(self) -> None:
        if self._trial.start_at_ns is None:
            return  # nothing was measured yet
        self._supervisor.send_all({"type": "stop"})
        limit_ns = self._limits.farewell_ns
        self._trial.waits_for(lambda: f"{self._names(self._done)} to write their last records", limit_ns / NS_PER_S)
        self._trial.outlast(lambda: self._supervisor.running, limit_ns / NS_PER_S)

    def close(self) -> list[str]:
        if self._schedule is not None:
            os.close(self._schedule)
            self._schedule = None
        # The nodes end with the supervisor: removing a condition is not a failure of theirs.
        return self._outside.close()

    def records(self, artifacts: Sequence[Artifact]) -> None:
        del artifacts
        self._trial.keeper.add_note(*self._outside.notes)
        for name, node in self._supervisor.nodes.items():
            self._trial.note_end(name, node.status, node.log)

    # -- their reports ------------------------------------------------------------------------------------------------

    def hear(self, event: Event) -> bool:
        if isinstance(event, CompanionEnded | Tick):
            return self._outside.hear(event)
        if isinstance(event, Ended):
            self._hear_end(event)
            return True
        name, line = event.process, protocol.parse(event)
        match line:
            case protocol.Failure():
                self._fail_told(name, line)
            case protocol.Created():
                self._created[name] = line
                self._creation_ns = max(self._creation_ns, time.monotonic_ns() - self._launched_ns[name])
                if line.shared_memory is not None:
                    self._trial.keeper.note_process(name, shared_memory=tuple(line.shared_memory))
                    self._trial.keeper.write()
            case protocol.Waiting():
                if line.unmatched:
                    count = "1 endpoint is" if len(line.unmatched) == 1 else f"{len(line.unmatched)} endpoints are"
                    self._unmatched = f": {count} not matched, the first is {line.unmatched[0]}"
                self._trial.report(LiveProgress("discovery", 0, 0, 0, 0, note=f"{len(line.unmatched)} unmatched"))
            case protocol.Ready():
                self._note_ready(name, line)
            case protocol.Progress():
                self._note_progress(name, line)
            case protocol.PartEnded():
                self._ender = self._ender or name
            case protocol.Done():
                self._done.add(name)
        return True

    def _hear_end(self, event: Ended) -> None:
        crashed = event.process in self._gone and event.status == -signal.SIGKILL
        done = self._asked_to_end and event.process in self._done and event.status == 0
        if not crashed and not done:
            self._fail_ended(event)

    def _note_ready(self, name: str, line: protocol.Ready) -> None:
        self._ready[name] = line
        if name in self._back:
            self._let_rejoin(name, line)

    def _note_progress(self, name: str, line: protocol.Progress) -> None:
        if line.checkpoint_error:
            raise Failed(
                HARNESS_ERROR,
                f"process {name!r} cannot write its records: {line.checkpoint_error}",
                last=_is_disk_full(line.checkpoint_error),
            )
        self._progress[name] = line
        self._heard_s[name] = time.monotonic()
        for label in line.conditions or ():
            self._trial.latest_counts[label] = self._counts(label)
        if self._drain is not None:
            self._drain.update(name, line, time.monotonic_ns())
        if self._reports:
            reports = self._progress.values()
            alive = [p for process, p in self._progress.items() if process not in self._gone]
            everyone = len(alive) == len(self._supervisor.nodes) - len(self._gone)
            self._trial.report(
                LiveProgress(
                    phase="measuring" if self._publishing else "draining",
                    elapsed_ns=max(p.elapsed_ns for p in reports),
                    sent=sum(p.deliveries_expected for p in reports),
                    received=sum(p.received for p in reports),
                    lost=sum(p.lost for p in reports),
                    histograms=tuple(p.latency for p in reports if p.latency),
                    responses=tuple(p.response for p in reports if p.response),
                    received_bytes=added(p.received_bytes for p in reports),
                    published=sum(p.sent for p in reports),
                    complete_ns=min(p.elapsed_ns for p in alive) if everyone else 0,
                )
            )

    def _counts(self, label: str) -> Counts:
        """The processes' counts for the nodes of a condition, summed over the processes."""
        parts = [(p.at_ns, c) for p in self._progress.values() if (c := (p.conditions or {}).get(label)) is not None]
        return Counts(
            at_ns=min(at_ns for at_ns, _ in parts),
            sent=sum(c.sent for _, c in parts),
            not_sent=sum(c.not_sent for _, c in parts),
            deliveries_expected=sum(c.deliveries_expected for _, c in parts),
            received=sum(c.received for _, c in parts),
        )

    @property
    def _publishing(self) -> bool:
        return self._drain is None or self._drain.publishing

    def _has_published(self) -> bool:
        if self._publishing:
            self._published_until_ns = time.monotonic_ns()
        self._check_silence()
        return not self._publishing

    def _check_silence(self) -> None:
        now = time.monotonic()
        for name, heard_s in self._heard_s.items():
            if now - heard_s > self._limits.silence_ns / NS_PER_S:
                silence = format_duration(self._limits.silence_ns / NS_PER_S)
                text = f"process {name!r} (pid {self._node(name).pid}) has sent no report for {silence}"
                raise self._stuck(FAILED, text, self._broken_off("silent", name))

    def _await_all(self, heard: Mapping[str, object], within_ns: int, what: str) -> None:
        """Until all have reported; a fast process may be a phase ahead of a slow one."""
        if self._trial.until(lambda: not self._missing(heard), self._deadline(within_ns)):
            return
        node = self._node(self._missing(heard)[0])
        what = f"did not {what} in time{last_words(node.log)}"
        raise self._stuck(HARNESS_ERROR, f"process {node.name!r} (pid {node.pid}) {what}")

    def _stuck(self, outcome: Outcome, reason: str, broken_off: BrokenOff | None = None) -> Failed:
        """Raises the failure of a workload that makes no progress. If its threads get no CPU, that is the workload's
        outcome, not a perflab error."""
        running = {node.name: node.pid for node in self._supervisor.running}
        found = starved(running)
        if not found:
            return Failed(outcome, reason, broken_off=broken_off)
        self._trial.keeper.note(starved=found)
        more = f" and {len(found) - UNMATCHED_SHOWN} more" if len(found) > UNMATCHED_SHOWN else ""
        reason = f"{reason}; without a CPU: {', '.join(t.words for t in found[:UNMATCHED_SHOWN])}{more}"
        return Failed(FAILED, reason, broken_off=broken_off)

    def _missing(self, heard: Mapping[str, object] | set[str]) -> list[str]:
        return [name for name in self._supervisor.nodes if name not in heard and name not in self._gone]

    def _names(self, heard: Mapping[str, object] | set[str]) -> str:
        """The processes without a report so far, for people."""
        missing = [repr(name) for name in self._missing(heard)]
        more = f" and {len(missing) - UNMATCHED_SHOWN} more" if len(missing) > UNMATCHED_SHOWN else ""
        return f"{'processes' if len(missing) > 1 else 'process'} {', '.join(missing[:UNMATCHED_SHOWN])}{more}"

    # -- failures ------------------------------------------------------------------------------------------------------

    def _fail_told(self, name: str, line: protocol.Failure) -> NoReturn:
        text = one_line(line.text)
        if protocol.STRANGER in text:
            raise Failed(HARNESS_ERROR, text)
        if protocol.NOT_READY in text:
            raise self._stuck(HARNESS_ERROR, text)
        if line.kind == "failed" and (label := self._of_conditions.get(name)):
            raise NotInEffect(f"{label}: process {name!r}: {text}", label)
        match line.kind:
            case "bad_input":
                raise Failed(HARNESS_ERROR, text, last=True, error=BadInput(text))
            case "unsupported":
                raise Failed(HARNESS_ERROR, text, last=True, error=Unavailable(text))
            case _:
                broken_off = self._broken_off("failed", name)
                raise Failed(FAILED, f"process {name!r}: {text}", last=_is_disk_full(text), broken_off=broken_off)

    def _fail_ended(self, event: Ended) -> NoReturn:
        node = self._node(event.process)
        when = ""
        if self._trial.start_at_ns is not None:
            elapsed_ns = time.monotonic_ns() - self._trial.start_at_ns
            when = f" {format_duration(max(0, elapsed_ns) / NS_PER_S)} after the start"
        elif event.process in self._done:
            when = " after it was done"
        how = f"{describe_status(event.status)}{when}{last_words(node.log)}"
        text = f"process {event.process!r} (pid {node.pid}) {how}"
        if label := self._of_conditions.get(event.process):
            raise NotInEffect(f"{label}: {text}", label)
        raise Failed(FAILED, text, broken_off=self._broken_off("ended", event.process))

    def _broken_off(self, why: Literal["ended", "failed", "silent", "stuck"], name: str) -> BrokenOff:
        """By the process with files of this name; a condition's process cannot be named by the workload."""
        if name in self._of_conditions:
            return BrokenOff(why=why, at_ns=time.monotonic_ns())
        of_graph = next((process for process, files in self._plan.node_names.items() if files == name), None)
        known = self._trial.keeper.file.processes.get(name)
        process = of_graph or (None if known is None else known.process)
        return BrokenOff(why=why, process=process, at_ns=time.monotonic_ns())

    def _node(self, name: str) -> NodeProcess:
        return self._supervisor.nodes[name]

    @staticmethod
    def _deadline(after_ns: int) -> float:
        return time.monotonic() + after_ns / NS_PER_S


def _is_disk_full(text: str) -> bool:
    return os.strerror(errno.ENOSPC).lower() in text.lower()
