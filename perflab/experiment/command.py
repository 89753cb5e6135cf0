"""The command of one trial: started under perflab-guard, waited for, asked to end, ended.

It is a companion like any load is, so that it and all its descendants end with perflab whatever is killed. Unlike a
node it says nothing to perflab: whether it is ready is told by time or by its log. One that ends by itself is launched
at the start, so that all of its life is under the conditions; any other one before, and asked to end after the measured
part. Nodes that conditions added run beside it.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from perflab import models
from perflab.condition import Launch, Window
from perflab.errors import BadInput, PerflabError, Unavailable
from perflab.experiment import command_records
from perflab.experiment.companion import GuardedCompanion
from perflab.experiment.nodes import Nodes
from perflab.experiment.outside import ros_environment
from perflab.experiment.running import RunningTrial
from perflab.experiment.supervisor import CompanionEnded, Event
from perflab.experiment.system import LOOK_INTERVAL_S, Failed, System
from perflab.observer import Artifact
from perflab.processes import describe_status, last_words, on_cpus
from perflab.results.files import Guarded, TrialCommand
from perflab.results.outcome import FAILED, HARNESS_ERROR
from perflab.runs.display import LiveProgress
from perflab.units import NS_PER_S, format_duration
from perflab.workload.command import Command

# What a program that speaks ROS 2 or DDS has loaded, with what carries its messages first.
_LIBRARIES = re.compile(r"/(librmw_\w+_cpp|librmw_zenoh\w*|libddsc|libfastdds|libfastrtps|libnddsc|libzenohc?)\.so")


def environment(command: Command, domain: int | None, network: str, folder: Path) -> dict[str, str]:
    """The variables of a trial, and what the user says."""
    return {**ros_environment(domain, network, folder), **command.parameters.environment}


class CommandRun(GuardedCompanion):
    """One life of the command. `name` is that of its files."""

    def __init__(
        self, command: Command, name: str, log: Path, launch: Launch, variables: Mapping[str, str], guard: Path
    ) -> None:
        """Starts it as conditions and observers want it. Raises BadInput where it cannot be executed."""
        self.parameters = command.parameters
        self.ready_ns: int | None = None
        self.ready_line: str | None = None
        self.asked_to_end_ns: int | None = None
        self.libraries: list[str] | None = None
        self._roots: set[int] = set()
        self._read = 0  # bytes of the log that were searched
        with on_cpus(launch.cpus_of.get(command.name, launch.cpus)):
            try:
                super().__init__(
                    name,
                    [*launch.prefix, *self.parameters.command],
                    guard=guard,
                    log=log,
                    environment={**variables, **launch.environment},
                    directory=self.parameters.folder,
                )
            except Unavailable as error:
                raise BadInput(f"{error}: name a program for this machine, or a script with its interpreter") from error

    def has_ended(self) -> bool:
        """Its first process; what that had started may still run."""
        return self.ended_ns is not None

    def new_roots(self) -> list[int]:
        """The first process, and daemons that have left the tree below it, each once."""
        tops = (*(() if self.pid is None else (self.pid,)), *self.children())
        found = list(dict.fromkeys(pid for pid in tops if pid not in self._roots))
        self._roots.update(found)
        return found

    def not_ready(self) -> str | None:
        """What is still missing until measuring may begin, without waiting; None once it is ready."""
        if self.ready_ns is not None:
            return None
        ready, now_ns = self.parameters.ready_when, time.monotonic_ns()
        if ready.after is not None:
            if now_ns < (self.started_ns or now_ns) + ready.after:
                return f"{format_duration(ready.after / NS_PER_S)} have not passed"
        elif ready.log is not None and (line := self._line_like(ready.log)) is not None:
            self.ready_line = line
        elif ready.log is not None:
            return f"no line of its log matches {ready.log!r}"
        self.ready_ns = now_ns
        return None

    def _line_like(self, pattern: str) -> str | None:
        """The first new line of the log that matches; the last one also while it is being written."""
        with contextlib.suppress(OSError), self.log.open("rb") as file:
            file.seek(self._read)
            data = file.read()
            *whole, rest = data.split(b"\n")
            self._read += len(data) - len(rest)
            for line in (*whole, rest):
                text = line.decode("utf-8", errors="replace")
                if re.search(pattern, text):
                    return text.strip()
        return None

    def ask_to_end(self) -> None:
        stop = self.parameters.stop
        self.asked_to_end_ns = time.monotonic_ns()
        self.signal(stop.number, group=stop.to == "group")

    def note_libraries(self) -> None:
        """What carries its messages, while it runs."""
        self.libraries = loaded_libraries(self.processes())

    def how_it_ended(self) -> str:
        """ "exited with 3 0.52 s after it was started; its log ends with: ..."."""
        how = "was ended" if self.status is None else describe_status(self.status)
        after_s = self._since_start_s(self.ended_ns)
        after = "" if after_s is None else f" {format_duration(after_s)} after it was started"
        return f"{how}{after}{last_words(self.log)}"

    @property
    def told(self) -> TrialCommand:
        """For trial.json."""
        ended_s = self._since_start_s(self.ended_ns)
        return TrialCommand(
            words=tuple(self.parameters.command),
            ready_s=self._since_start_s(self.ready_ns),
            ready_line=self.ready_line,
            stop_signal=None if self.asked_to_end_ns is None else str(self.parameters.stop.signal),
            asked_to_end_s=self._since_start_s(self.asked_to_end_ns),
            ended_s=ended_s,
            run_s=ended_s if self.parameters.ends_itself else None,
            libraries=None if self.libraries is None else tuple(self.libraries),
        )

    def _since_start_s(self, at_ns: int | None) -> float | None:
        return None if at_ns is None or self.started_ns is None else (at_ns - self.started_ns) / NS_PER_S


class CommandSystem(System):
    """A command, and the nodes of conditions beside it."""

    def __init__(self, trial: RunningTrial, command: Command) -> None:
        self._trial = trial
        self._command = command
        self._name = trial.plan.names[command.name]  # of its files
        self._launched: CommandRun | None = None
        self._limits = trial.plan.settings.limits
        self._parameters = command.parameters
        self._beside = Nodes(trial)
        self._ended_ns: int | None = None  # when one had ended that ends by itself
        self._measured: Window | None = None

    @property
    def _run(self) -> CommandRun:
        assert self._launched is not None, "launch comes first"
        return self._launched

    @property
    def scheduled(self) -> Window:
        """Of a command that ended by itself until it did."""
        planned = self._beside.scheduled
        return planned if self._ended_ns is None else Window(planned.begin_ns, self._ended_ns)

    @property
    def published_until_ns(self) -> int:
        return self.scheduled.end_ns

    @property
    def shared_memory(self) -> list[str]:
        return self._beside.shared_memory

    # -- the phases ----------------------------------------------------------------------------------------------------

    def launch(self) -> None:
        self._beside.launch()
        if not self._parameters.ends_itself:
            self._launch()

    def ready(self) -> None:
        self._beside.ready()
        if not self._parameters.ends_itself:
            self._await_ready()

    def start(self) -> None:
        self._beside.start()
        if self._parameters.ends_itself:
            self._trial.wait(((self._trial.start_at_ns or 0) - time.monotonic_ns()) / NS_PER_S)
            self._launch()

    def progress(self) -> None:
        """Until the end of the measured part, or of a command that ends by itself."""
        self._trial.supervisor.waiting = None
        if not (self._trial.plan.settings.duration_ns or self._parameters.ends_itself):
            self._until_stopped()
        planned_s = self.scheduled.end_ns / NS_PER_S
        while not self._is_over() and (now_s := time.monotonic()) < planned_s:
            self._look()
            self._trial.until(self._is_over, min(now_s + 1.0, planned_s))
        if self._parameters.ends_itself:
            self._note_end(self.scheduled)
        self._measured = self.scheduled
        elapsed_ns = self.scheduled.end_ns - self.scheduled.begin_ns
        self._trial.report(LiveProgress("draining", elapsed_ns, None, None, None))

    def _until_stopped(self) -> None:
        def look() -> bool:
            self._look()
            return False

        self._trial.until_stopped(lambda: self._trial.until(look, step_s=1.0), begin_ns=self.scheduled.begin_ns)
        self._beside.end_at(time.monotonic_ns())

    def drain(self) -> None:
        if self._parameters.ends_itself:
            return
        self._trial.waits_for("messages that are on their way")
        self._run.note_libraries()
        self._trial.wait(self._limits.drain_quiet_ns / NS_PER_S)
        if self._beside.exist:
            self._beside.rest(2 * self._limits.drain_limit_ns / NS_PER_S)

    def end(self) -> None:
        """Asks it to end, as a user would. One that has to be made to is no success."""
        if not self._run.has_ended():
            self._stop()
        self._beside.end()

    def farewell(self) -> None:
        """Lets a command that still runs write what it has, as long as it may take to end."""
        run = self._launched
        if run is not None and not run.has_ended():
            if run.asked_to_end_ns is None:
                run.ask_to_end()
            self._trial.waits_for(lambda: f"{self._words} to end")
            self._trial.outlast(lambda: not run.has_ended(), self._parameters.stop.grace / NS_PER_S)
        self._beside.farewell()

    def close(self) -> list[str]:
        if self._launched is None:
            return []
        self._trial.supervisor.forget(self._launched)
        try:
            self._launched.stop()
        except (PerflabError, OSError) as error:
            return [f"{self._words} could not be ended: {error}"]
        return []

    def records(self, artifacts: Sequence[Artifact]) -> None:
        run, keeper = self._launched, self._trial.keeper
        self._beside.records(artifacts)
        self._trial.note_end(self._name, None if run is None else run.status, self._trial.files.log(self._name))
        if run is not None and run.asked_to_end_ns is not None and (killed := run.killed):
            count = f"{killed} process{'es' if killed > 1 else ''}"
            keeper.add_note(f"{count} that {self._words} had started did not end before SIGKILL")
        keeper.note(command=TrialCommand(words=tuple(self._parameters.command)) if run is None else run.told)
        try:
            line = None if run is None else run.ready_line
            messages, notes = command_records.write(self._trial, self._name, line, self._measured, artifacts)
        except OSError as problem:
            keeper.add_note(f"the records of the command could not be written: {problem.strerror}")
            return
        keeper.note(messages=messages)
        keeper.add_note(*notes)

    def hear(self, event: Event) -> bool:
        run = self._launched
        if run is None or not isinstance(event, CompanionEnded) or event.companion is not run:
            return self._beside.hear(event)
        if not self._parameters.ends_itself and run.asked_to_end_ns is None:
            hint = "" if run.status else "; with `ends: itself` (--ends itself) that is no failure"
            raise Failed(FAILED, f"{self._words} {run.how_it_ended()}{hint}")
        return True

    # -- how -----------------------------------------------------------------------------------------------------------

    def _launch(self) -> None:
        trial, plan, command = self._trial, self._trial.plan, self._command
        trial.enter("starting", lambda: f"{self._words} to be started")
        variables = environment(command, plan.domain, plan.settings.network, trial.directory)
        guard = plan.native.program("perflab-guard")
        try:
            run = CommandRun(command, self._name, trial.files.log(self._name), trial.launch, variables, guard)
        except BadInput as error:
            raise Failed(HARNESS_ERROR, str(error), last=True, error=error) from error
        self._launched = run
        trial.supervisor.watch(run)
        told = run.recorded
        assert told.pid is not None, "it was started"
        trial.processes[command.name] = told.pid
        self._watch_tree()
        trial.keeper.note_process(self._name, **models.shared(Guarded, told))
        trial.keeper.write()

    def _watch_tree(self) -> None:
        """Lets the monitor watch the command, and what has left it meanwhile: that is then below the guard."""
        for root in self._run.new_roots():
            self._trial.watch(f"workload/{self._command.name}", root)

    def _await_ready(self) -> None:
        trial, run, when = self._trial, self._run, self._parameters.ready_when
        wait_ns = when.within if when.after is None else when.after + self._limits.silence_ns
        trial.waits_for(lambda: f"{self._words} to be ready: {run.not_ready()}", wait_ns / NS_PER_S)

        def ready() -> bool:
            if run.not_ready() is None:
                return True
            trial.report(LiveProgress("waiting until it is ready", 0, 0, 0, 0))
            self._watch_tree()
            return False

        if not trial.until(ready, time.monotonic() + wait_ns / NS_PER_S, LOOK_INTERVAL_S):
            waited = format_duration(wait_ns / NS_PER_S)
            missing = run.not_ready()
            raise Failed(FAILED, f"{self._words} was not ready within {waited}: {missing}{last_words(run.log)}")

    def _is_over(self) -> bool:
        """Whether it has ended by itself, as it should."""
        return self._parameters.ends_itself and self._run.has_ended()

    def _look(self) -> None:
        """Notes who it is now, and what it has loaded."""
        elapsed_ns = time.monotonic_ns() - self.scheduled.begin_ns
        if self._parameters.ends_itself:
            self._run.note_libraries()  # nobody knows when it will end
        self._watch_tree()
        self._trial.report(LiveProgress("measuring" if elapsed_ns >= 0 else "warming up", elapsed_ns, None, None, None))

    def _note_end(self, planned: Window) -> None:
        """Of a command that had to end by itself."""
        run = self._run
        if run.ended_ns is None:
            limit = format_duration((planned.end_ns - (run.started_ns or 0)) / NS_PER_S)
            raise Failed(FAILED, f"{self._words} has not ended by itself within {limit}{last_words(run.log)}")
        if run.status != 0:
            raise Failed(FAILED, f"{self._words} {run.how_it_ended()}")
        if run.ended_ns <= planned.begin_ns:
            raise Failed(FAILED, f"{self._words} {run.how_it_ended()}: the warm-up was not over")
        self._ended_ns = min(run.ended_ns, planned.end_ns)
        if not self._trial.plan.settings.duration_ns:
            self._beside.end_at(self._ended_ns)

    def _stop(self) -> None:
        trial, run, stop = self._trial, self._run, self._parameters.stop
        trial.enter("stopping", lambda: f"{self._words} to end")
        trial.wait(0.0)  # one that has ended already was not asked to
        run.ask_to_end()
        if trial.until(run.has_ended, time.monotonic() + stop.grace / NS_PER_S):
            return
        for problem in self.close():
            raise Failed(HARNESS_ERROR, problem)
        grace = format_duration(stop.grace / NS_PER_S)
        raise Failed(FAILED, f"{self._words} did not end within {grace} after {stop.signal}; it {run.how_it_ended()}")

    @property
    def _words(self) -> str:
        pid = "" if self._launched is None else f" (pid {self._launched.pid})"
        return f"command {self._command.name!r}{pid}"


def loaded_libraries(pids: Iterable[int]) -> list[str] | None:
    """Names of the middlewares' libraries in these processes; None where none could be looked into."""
    found: set[str] = set()
    known = False
    for pid in pids:
        try:
            maps = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        known = True
        found |= {match[1] for match in _LIBRARIES.finditer(maps)}
    return sorted(found) if known else None
