"""The command of one trial, or several named ones: started under perflab-guard, waited for, asked to end, ended.

Each is a companion, like a load, so that it and all its descendants end with perflab whatever is killed. Unlike a node,
it does not report to perflab: its readiness is determined by time or from its log. One that ends by itself is launched
at the start, so that its whole life is under the conditions; any other one before, and asked to end after the measured
part. Nodes that conditions added run beside it.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
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

# Libraries that a ROS 2 or DDS program has loaded, the middleware first.
_LIBRARIES = re.compile(r"/(librmw_\w+_cpp|librmw_zenoh\w*|libddsc|libfastdds|libfastrtps|libnddsc|libzenohc?)\.so")


def environment(command: Command, domain: int | None, network: str, folder: Path) -> dict[str, str]:
    """The trial's variables, and the user's."""
    return {**ros_environment(domain, network, folder), **command.parameters.environment}


class CommandRun(GuardedCompanion):
    """One execution of the command. `name` is used for its files."""

    def __init__(
        self, command: Command, name: str, log: Path, launch: Launch, variables: Mapping[str, str], guard: Path
    ) -> None:
        """Starts it in the way that conditions and observers require. Raises BadInput if it cannot be executed."""
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
        """Its first process; what that started may still run."""
        return self.ended_ns is not None

    def new_roots(self) -> list[int]:
        """The first process, and daemons that have left the tree below it, without duplicates."""
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
        """The first new line of the log that matches; also the last one while it is being written."""
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
        """The middleware that it uses, while it runs."""
        self.libraries = loaded_libraries(self.processes())

    def how_it_ended(self) -> str:
        """ "exited with status 3 0.52 s after it was started; its log ends with: ..."."""
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
    """A command, or several named ones, and the nodes of conditions beside them."""

    def __init__(self, trial: RunningTrial, command: Command) -> None:
        self._trial = trial
        self._command = command
        self._runs: dict[str, CommandRun] = {}  # the launched ones, by process name
        self._limits = trial.plan.settings.limits
        self._beside = Nodes(trial)
        self._ended_ns: int | None = None  # when all commands that end by themselves had ended
        self._measured: Window | None = None

    def _file_name(self, member: Command) -> str:
        return self._trial.plan.names[member.name]

    def _members(self, *, ends_itself: bool) -> list[Command]:
        return [member for member in self._command.members if member.parameters.ends_itself is ends_itself]

    @property
    def _some_end(self) -> bool:
        """Whether any ends by itself and so ends the measured part."""
        return bool(self._members(ends_itself=True))

    @property
    def scheduled(self) -> Window:
        """For a command that ended by itself, until it did."""
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
        for member in self._members(ends_itself=False):
            self._launch(member)

    def ready(self) -> None:
        self._beside.ready()
        for member in self._members(ends_itself=False):
            self._await_ready(member)

    def start(self) -> None:
        self._beside.start()
        if self._some_end:
            self._trial.wait(((self._trial.start_at_ns or 0) - time.monotonic_ns()) / NS_PER_S)
        for member in self._members(ends_itself=True):
            self._launch(member)

    def progress(self) -> None:
        """Until the end of the measured part, or until all that end by themselves have ended."""
        self._trial.supervisor.waiting = None
        if not (self._trial.plan.settings.duration_ns or self._some_end):
            self._until_stopped()
        planned_s = self.scheduled.end_ns / NS_PER_S
        while not self._is_over() and (now_s := time.monotonic()) < planned_s:
            self._look()
            self._trial.until(self._is_over, min(now_s + 1.0, planned_s))
        if self._some_end:
            self._note_ends(self.scheduled)
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
        running = [self._runs[member.name] for member in self._members(ends_itself=False)]
        if not running:
            return
        self._trial.waits_for("messages under way")
        for run in running:
            run.note_libraries()
        self._trial.wait(self._limits.drain_quiet_ns / NS_PER_S)
        if self._beside.exist:
            self._beside.rest(2 * self._limits.drain_limit_ns / NS_PER_S)

    def end(self) -> None:
        """Asks each to end, as a user would, the last one first. One that must be killed did not succeed."""
        for member in reversed(self._command.members):
            if not self._runs[member.name].has_ended():
                self._stop(member)
        self._beside.end()

    def farewell(self) -> None:
        """Lets commands that still run write their data, for as long as they may take to end."""
        there = [member for member in self._command.members if member.name in self._runs]
        running = [member for member in there if not self._runs[member.name].has_ended()]
        for member in running:
            if self._runs[member.name].asked_to_end_ns is None:
                self._runs[member.name].ask_to_end()
        if running:
            self._trial.waits_for(lambda: f"{self._words(running[0])} to end")
            longest_ns = max(member.parameters.stop.grace for member in running)
            ended = (self._runs[member.name].has_ended for member in running)
            self._trial.outlast(partial(_any_runs, [*ended]), longest_ns / NS_PER_S)
        self._beside.farewell()

    def close(self) -> list[str]:
        problems = []
        for member in self._command.members:
            if (run := self._runs.get(member.name)) is None:
                continue
            self._trial.supervisor.forget(run)
            try:
                run.stop()
            except (PerflabError, OSError) as error:
                problems.append(f"{self._words(member)} could not be ended: {error}")
        return problems

    def records(self, artifacts: Sequence[Artifact]) -> None:
        keeper = self._trial.keeper
        self._beside.records(artifacts)
        told: dict[str, TrialCommand] = {}
        for member in self._command.members:
            run, name = self._runs.get(member.name), self._file_name(member)
            self._trial.note_end(name, None if run is None else run.status, self._trial.files.log(name))
            if run is not None and run.asked_to_end_ns is not None and (killed := run.killed):
                count = f"{killed} process{'es' if killed > 1 else ''}"
                keeper.add_note(f"{count} started by {self._words(member)} did not end before SIGKILL")
            told[member.name] = TrialCommand(words=tuple(member.parameters.command)) if run is None else run.told
        if self._command.parameters.commands:
            keeper.note(commands=told)
        else:
            keeper.note(command=told[self._command.name])
        try:
            lines = {name: run.ready_line for name, run in self._runs.items()}
            messages, notes = command_records.write(self._trial, lines, self._measured, artifacts)
        except OSError as problem:
            keeper.add_note(f"the records of the command could not be written: {problem.strerror}")
            return
        keeper.note(messages=messages)
        keeper.add_note(*notes)

    def hear(self, event: Event) -> bool:
        ended = event.companion if isinstance(event, CompanionEnded) else None
        member = next((m for m in self._command.members if ended is not None and self._runs.get(m.name) is ended), None)
        if member is None:
            return self._beside.hear(event)
        run = self._runs[member.name]
        # One whose peers have been asked to end may end by itself.
        follows = run.status == 0 and any(other.asked_to_end_ns is not None for other in self._runs.values())
        if not member.parameters.ends_itself and run.asked_to_end_ns is None and not follows:
            hint = "" if run.status else "; use `ends: itself` (--ends itself) if that is intended"
            raise Failed(FAILED, f"{self._words(member)} {run.how_it_ended()}{hint}")
        return True

    # -- how -----------------------------------------------------------------------------------------------------------

    def _launch(self, member: Command) -> None:
        trial, plan, name = self._trial, self._trial.plan, self._file_name(member)
        trial.enter("starting", lambda: f"{self._words(member)} to be started")
        variables = environment(member, plan.domain, plan.settings.network, trial.directory)
        guard = plan.native.program("perflab-guard")
        try:
            run = CommandRun(member, name, trial.files.log(name), trial.launch, variables, guard)
        except BadInput as error:
            raise Failed(HARNESS_ERROR, str(error), last=True, error=error) from error
        self._runs[member.name] = run
        trial.supervisor.watch(run)
        told = run.recorded
        assert told.pid is not None, "it was started"
        trial.processes[member.name] = told.pid
        self._watch_trees()
        trial.keeper.note_process(name, **models.shared(Guarded, told))
        trial.keeper.write()

    def _watch_trees(self) -> None:
        """Lets the monitor watch the commands, and descendants that have left their tree, which are then below the
        guard."""
        for name, run in self._runs.items():
            for root in run.new_roots():
                self._trial.watch(f"workload/{name}", root)

    def _await_ready(self, member: Command) -> None:
        trial, run, when = self._trial, self._runs[member.name], member.parameters.ready_when
        wait_ns = when.within if when.after is None else when.after + self._limits.silence_ns
        trial.waits_for(lambda: f"{self._words(member)} to be ready: {run.not_ready()}", wait_ns / NS_PER_S)

        def ready() -> bool:
            if run.not_ready() is None:
                return True
            trial.report(LiveProgress("waiting until it is ready", 0, 0, 0, 0))
            self._watch_trees()
            return False

        if not trial.until(ready, time.monotonic() + wait_ns / NS_PER_S, LOOK_INTERVAL_S):
            waited = format_duration(wait_ns / NS_PER_S)
            missing = run.not_ready()
            words = self._words(member)
            raise Failed(FAILED, f"{words} was not ready within {waited}: {missing}{last_words(run.log)}")

    def _is_over(self) -> bool:
        """Whether all that should end by themselves have, or one of them failed."""
        runs = [self._runs[member.name] for member in self._members(ends_itself=True)]
        ended = [run for run in runs if run.has_ended()]
        return bool(runs) and (len(ended) == len(runs) or any(run.status != 0 for run in ended))

    def _look(self) -> None:
        """Records their current processes, and the libraries of those that may end at any time."""
        elapsed_ns = time.monotonic_ns() - self.scheduled.begin_ns
        for member in self._members(ends_itself=True):
            if not self._runs[member.name].has_ended():
                self._runs[member.name].note_libraries()
        self._watch_trees()
        self._trial.report(LiveProgress("measuring" if elapsed_ns >= 0 else "warming up", elapsed_ns, None, None, None))

    def _note_ends(self, planned: Window) -> None:
        """For commands that end by themselves; the last of them ends the measured part."""
        runs = [(member, self._runs[member.name]) for member in self._members(ends_itself=True)]
        for member, run in runs:
            if run.ended_ns is not None and run.status != 0:
                raise Failed(FAILED, f"{self._words(member)} {run.how_it_ended()}")
        ended_ns = 0
        for member, run in runs:
            if run.ended_ns is None:
                limit = format_duration((planned.end_ns - (run.started_ns or 0)) / NS_PER_S)
                words = self._words(member)
                raise Failed(FAILED, f"{words} has not ended by itself within {limit}{last_words(run.log)}")
            if run.ended_ns <= planned.begin_ns:
                raise Failed(FAILED, f"{self._words(member)} {run.how_it_ended()}: the warm-up was not over")
            ended_ns = max(ended_ns, run.ended_ns)
        self._ended_ns = min(ended_ns, planned.end_ns)
        if not self._trial.plan.settings.duration_ns:
            self._beside.end_at(self._ended_ns)

    def _stop(self, member: Command) -> None:
        trial, run, stop = self._trial, self._runs[member.name], member.parameters.stop
        trial.enter("stopping", lambda: f"{self._words(member)} to end")
        trial.wait(0.0)  # one that has already ended was not asked to
        run.ask_to_end()
        if trial.until(run.has_ended, time.monotonic() + stop.grace / NS_PER_S):
            return
        words = self._words(member)
        for problem in self.close():
            raise Failed(HARNESS_ERROR, problem)
        grace = format_duration(stop.grace / NS_PER_S)
        raise Failed(FAILED, f"{words} did not end within {grace} after {stop.signal}; it {run.how_it_ended()}")

    def _words(self, member: Command) -> str:
        run = self._runs.get(member.name)
        pid = "" if run is None else f" (pid {run.pid})"
        return f"command {member.name!r}{pid}"


def _any_runs(ended: Sequence[Callable[[], bool]]) -> bool:
    return not all(has_ended() for has_ended in ended)


def loaded_libraries(pids: Iterable[int]) -> list[str] | None:
    """Names of the middleware libraries in these processes; None if none was readable."""
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
