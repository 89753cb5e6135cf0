"""A program beside the workload that leaves nothing behind: a load generator, a profiler, a flood.

It runs under perflab-guard (docs/formats.md, "the guard"), which ends it and all its descendants when perflab asks,
closes the channel or dies. This side only handles a killed guard: the kernel then ends the program, and perflab its
descendants, known by the guard's session, by a mark in the environment that every descendant inherits, and by process
ids with their start times that were noted while the guard was alive.

    with GuardedCompanion("cpu_load", ["stress-ng", "--cpu", "2"], guard=native.program("perflab-guard"),
                          log=directory / "cpu_load.log", install="install it with `apt install stress-ng`") as load:
        ...
        load.poll()
        if load.ended_by_itself: ...
"""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import signal
import subprocess
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from perflab import waiting
from perflab.errors import PerflabError, ProtocolError, Unavailable
from perflab.experiment.protocol import Channel
from perflab.processes import (
    Process,
    children_of,
    descendants,
    describe_status,
    kill_all,
    log_tail,
    read_process,
    send,
    start_ticks,
    stat_fields,
    with_descendants,
)
from perflab.results.files import Guarded, Identity, TrialCompanion

# In the environment of the guard, and so of all its descendants.
MARK = "PERFLAB_COMPANION"

START_LIMIT_S = 60.0
GUARD_KILL_LIMIT_S = 10.0  # how long the guard itself tries
ANSWER_LIMIT_S = 20.0  # in addition to grace and GUARD_KILL_LIMIT_S
RECORD_INTERVAL_S = 1.0
EXECUTE_LIMIT_S = 2.0


def left_behind(recorded: Guarded, *, by_mark: bool = True) -> list[Process]:
    """The processes of a companion, or of a command, that still live; the caller compares the boot_id first."""
    identities = {(known.pid, known.start_ticks) for known in (recorded, recorded.guard or Identity())}
    mark = recorded.mark if by_mark else None
    return with_descendants(lambda p: p.identity in identities or (mark is not None and _is_marked(p.pid, mark)))


class GuardedCompanion:
    """One program under its guard; a `Companion` of perflab.condition.

    To watch it in a selector, register `fileno()` and `pidfd` for reading and call `poll()` when one of them is ready.
    Unregister the first when `channel.open` has become False, and both when `finished` has become True and before
    `stop()`, which closes them.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str | os.PathLike[str]],
        *,
        guard: Path,
        log: Path,
        control: bool = False,
        pass_output: bool = False,
        environment: Mapping[str, str] | None = None,
        directory: Path | None = None,
        install: str | None = None,
    ) -> None:
        """Starts the program and waits until it is executed. `install` is the remedy if it is missing.

        `environment` is added to perflab's; `directory` is the working directory, None: perflab's.

        Its output goes to the log; with `pass_output` to perflab's own output. With `control` it receives `--control-fd
        N`. Raises Unavailable if it or the guard cannot be executed, OSError if the log cannot be written.
        """
        self.name = name
        self.command = [os.fspath(word) for word in command]
        self.log = log
        self.pid: int | None = None
        self.start_ticks: int | None = None
        self.status: int | None = None
        self.started_ns: int | None = None  # as reported by the guard; CLOCK_MONOTONIC
        self.ended_ns: int | None = None  # the program itself, without its descendants
        self.ended_by_itself = False  # although it was not stopped
        self.killed: int | None = None  # how many processes did not end by SIGTERM; None: unknown (yet)
        self.failure: str | None = None  # the guard's complaint; it then ends the program
        self.finished = False  # the guard has ended, and no process is left
        self._control = control
        self._pass_output = pass_output
        self._stopping = self._done = self._closed = False
        self._failure_kind: str | None = None
        self._said: deque[dict[str, Any]] = deque()
        self._recorded: set[tuple[int, int]] = set()
        self._next_record_s = 0.0
        self._mark = secrets.token_hex(16)
        self.channel = Channel(f"{name}: perflab-guard")
        with self.channel.theirs as theirs:
            try:
                self._guard = self._start_guard(guard.absolute(), theirs.fileno(), environment or {}, directory)
            except BaseException:
                self.channel.close()
                raise
        self.pidfd = os.pidfd_open(self._guard.pid)
        # Its process id cannot be reused before it is waited for, even if the guard has ended.
        self._guard_ticks = start_ticks(self._guard.pid)
        try:
            self._wait_for_start(install)
        except BaseException:
            self.stop(0.0)
            raise

    def __enter__(self) -> GuardedCompanion:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def fileno(self) -> int:
        """The control channel; -1 after stop()."""
        return self.channel.fileno()

    @property
    def guard_pid(self) -> int:
        return self._guard.pid

    @property
    def recorded(self) -> TrialCompanion:
        """For trial.json: together with the trial's boot_id, it identifies what a crash left (`left_behind`)."""
        return TrialCompanion(
            name=self.name,
            command=tuple(self.command),
            pid=self.pid,
            start_ticks=self.start_ticks,
            status=self.status,
            guard=Identity(pid=self._guard.pid, start_ticks=self._guard_ticks),
            mark=self._mark,
        )

    def poll(self) -> None:
        """Reads the guard's messages, without waiting. Raises ProtocolError, and PerflabError like stop().

        Once a second it also notes which processes exist, in case the guard is killed.
        """
        if self._closed:
            return
        gone = self._guard_has_ended()  # read first: everything sent before its end is then complete
        self.channel.flush()
        for line in self.channel.receive():
            self._note(line)
        if gone:
            self._after_guard()
        elif time.monotonic() >= self._next_record_s:
            self._next_record_s = time.monotonic() + RECORD_INTERVAL_S
            found = {process.identity for process in descendants(self._guard.pid)}
            # If it ended meanwhile, they are no longer its descendants.
            self._recorded = self._recorded | found if self._guard_has_ended() else found

    def send(self, body: Mapping[str, Any]) -> None:
        """Queues a line for the program; it is sent as the guard reads. Has no effect after it has ended."""
        if not self._control:
            raise ValueError(f"companion {self.name!r} was started without a control channel")
        self.channel.send({"type": "send", "body": dict(body)})

    def receive(self, timeout_s: float) -> dict[str, Any] | None:
        """The next line from the program, waiting at most that long; None if none came, or ever will."""
        limit = time.monotonic() + timeout_s
        while True:
            self.poll()
            if self._said:
                return self._said.popleft()
            left = limit - time.monotonic()
            if left <= 0 or self._closed or self.finished:
                return None
            waiting.raise_if_interrupted()
            self._wait(min(left, waiting.STEP_S))

    def children(self) -> list[int]:
        """The process ids directly below the guard: the program, and orphaned descendants."""
        return [pid for pid in children_of(self._guard.pid) if read_process(pid) is not None]

    def processes(self) -> list[int]:
        """The process ids of the program and of all its living descendants."""
        return [process.pid for process in descendants(self._guard.pid)]

    def signal(self, signum: int, *, group: bool = True) -> None:
        """Sends a signal to the program, or to the whole process group that it leads; not to its other descendants.

        Ended processes receive none, nor does any process that reuses their id.
        """
        for process in descendants(self._guard.pid):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if process.pid == self.pid or (group and os.getpgid(process.pid) == self.pid):
                    send(process, signum)

    def stop(self, grace_s: float = 2.0) -> int | None:
        """Ends the program and its descendants with SIGTERM, then SIGKILL; waits until they are gone. Idempotent.

        Returns its status. Raises PerflabError, after everything else was done, if a process cannot be ended.
        """
        if self._closed:
            return self.status
        try:
            self.poll()
            self._stop_in_order(grace_s)
        finally:
            try:
                self._end_guard()
            finally:
                self._closed = True
                self.channel.close()
                os.close(self.pidfd)
        return self.status

    def _start_guard(
        self, guard: Path, control_fd: int, environment: Mapping[str, str], directory: Path | None
    ) -> subprocess.Popen[bytes]:
        options = ["--control-fd", str(control_fd), *(["--give-control"] if self._control else [])]
        with contextlib.nullcontext() if self._pass_output else self.log.open("wb") as output:
            try:
                return subprocess.Popen(
                    [guard, *options, "--", *self.command],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=None if output is None else subprocess.STDOUT,
                    pass_fds=(control_fd,),
                    start_new_session=True,
                    env={**os.environ, **environment, MARK: self._mark},
                    cwd=directory,
                )
            except OSError as error:
                raise Unavailable(f"cannot start {guard}: {error.strerror}; build it again with `make`") from error

    def _wait_for_start(self, install: str | None) -> None:
        wait = waiting.Wait(f"{self.name}: {self.command[0]} to be started", START_LIMIT_S)
        while True:
            self.poll()
            if self.pid is not None:
                return
            if self.failure is not None:
                if self._failure_kind == "unsupported":
                    raise Unavailable("; ".join(filter(None, (self.failure, install))))
                raise PerflabError(f"{self.name}: {self.failure}")
            if self.finished:
                how = "; ".join([describe_status(self._guard.wait()), *log_tail(self.log)])
                raise PerflabError(f"{self.name}: perflab-guard ended before it had started {self.command[0]}: {how}")
            if wait.is_over:
                raise PerflabError(f"{self.name}: {self.command[0]} was not started within {START_LIMIT_S:.0f} s")
            self._wait(wait.step_s)
            wait.look()

    def _stop_in_order(self, grace_s: float) -> None:
        self._stopping = True
        self.channel.send({"type": "stop", "grace_ms": round(grace_s * 1000)})
        wait = waiting.Wait(f"{self.name} to end", grace_s + GUARD_KILL_LIMIT_S + ANSWER_LIMIT_S)
        while not self.finished and not wait.is_over:
            self._wait(wait.step_s)
            self.poll()
            wait.look()

    def _end_guard(self) -> None:
        """If it did not end in order: stopped, stuck, or perflab was interrupted while waiting for it."""
        if self.finished:
            return
        self._recorded |= {process.identity for process in descendants(self._guard.pid)}
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)
        os.waitid(os.P_PIDFD, self.pidfd, os.WEXITED | os.WNOWAIT)
        self._after_guard()

    def _guard_has_ended(self) -> bool:
        """Without waiting for it: as a zombie it keeps its process id, so that its session cannot be reused."""
        return self.finished or (os.waitid(os.P_PIDFD, self.pidfd, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None)

    def _after_guard(self) -> None:
        if self.finished:
            return
        left = [] if self._done else kill_all(self._left)
        self._guard.wait()
        self.finished = True
        if self.pid is not None and self.status is None:
            self.status = -signal.SIGKILL  # by the kernel, when its parent ended
            self.ended_ns = time.monotonic_ns()
            self.ended_by_itself = not self._stopping
        if left:
            pids = ", ".join(str(process.pid) for process in left)
            raise PerflabError(f"{self.name}: processes that SIGKILL does not end: {pids}")

    def _left(self) -> list[Process]:
        return with_descendants(
            lambda p: p.session == self._guard.pid or p.identity in self._recorded or _is_marked(p.pid, self._mark)
        )

    def _wait(self, seconds: float) -> None:
        """Until there is something to poll for, or the time has passed."""
        waiting = select.poll()
        if self.channel.open:
            waiting.register(self.channel, select.POLLIN | (select.POLLOUT if self.channel.has_to_send else 0))
        waiting.register(self.pidfd, select.POLLIN)
        waiting.poll(max(0.0, seconds) * 1000)

    def _note(self, body: Mapping[str, Any]) -> None:
        try:
            match body["type"]:
                case "started":
                    self.pid, self.start_ticks = int(body["pid"]), body["start_ticks"]
                    self.started_ns = int(body["at_ns"])
                case "ended":
                    self.status = -int(body["signal"]) if body["status"] is None else int(body["status"])
                    self.ended_by_itself, self.ended_ns = not body["stopped"], int(body["at_ns"])
                case "said" if isinstance(body["body"], dict):
                    self._said.append(body["body"])
                case "done":
                    self._done, self.killed = True, int(body["killed"])
                case "error":
                    self.failure, self._failure_kind = str(body["text"]), str(body["kind"])
                case other:
                    raise ValueError(other)
        except (ValueError, TypeError, LookupError) as error:
            raise ProtocolError(
                f"{self.name}: perflab-guard sent a line that is not in the protocol: {str(body)[:80]}"
            ) from error


def _is_marked(pid: int, mark: str) -> bool:
    """Whether the environment with which a process was executed has the mark. Some programs overwrite that memory."""
    limit = time.monotonic() + EXECUTE_LIMIT_S
    while True:
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            return False
        if environment or not _is_being_executed(pid) or time.monotonic() >= limit:
            return f"{MARK}={mark}".encode() in environment.split(b"\0")
        time.sleep(0.001)


def _is_being_executed(pid: int) -> bool:
    """Between the old and the new program the environment reads as empty, which is ambiguous."""
    fields = stat_fields(Path(f"/proc/{pid}/stat"))
    if fields is None:
        return False
    size, begin, end = (int(fields[number - 3]) for number in (23, 50, 51))  # vsize, env_start, env_end
    return size > 0 and (end == 0 or begin != end)
