"""Starts and controls perflab-scheduler-recorder (docs/recording.md)."""

from __future__ import annotations

import functools
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perflab import programs
from perflab.condition import Companion, Start
from perflab.errors import BadInput, Interrupted, PerflabError, Unavailable, one_line
from perflab.native import Native
from perflab.processes import last_words
from perflab.waiting import Wait

CHECK_LIMIT_S = 60.0
START_LIMIT_S = 60.0
END_LIMIT_S = 120.0  # seconds for writing the buffers, on a busy machine
_TOLD = ("events", "by_event", "lost", "losses", "filtered_out", "bytes")


@functools.cache
def complaint(program: Path, source: str) -> str | None:
    """Why the program cannot record from `source` here; None if it can. Takes a second, once."""
    try:
        check_source(program, source)
    except (PerflabError, OSError) as error:
        if isinstance(error, Interrupted):
            raise
        return str(error)
    return None


@functools.cache
def check_source(
    program: Path,
    source: str,
    buffer_bytes: int | None = None,
    flight_recorder_bytes: int | None = None,
    locks: bool = False,
) -> None:
    """Opens the source as a recording would, and closes it. Raises BadInput, Unavailable, OSError."""
    command = [str(program), "--check", "--source", source]
    if buffer_bytes is not None:
        command += ["--buffer-bytes", str(buffer_bytes)]
    if flight_recorder_bytes is not None:
        command += ["--flight-recorder", str(flight_recorder_bytes)]
    if locks:
        command.append("--locks")
    try:
        run = programs.ask(command, limit_s=CHECK_LIMIT_S)
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"{program.name} did not answer within {CHECK_LIMIT_S:.0f} s") from error
    text = one_line(run.stderr).removeprefix(f"{SchedulerRecorder.PROGRAM}: ")
    if run.returncode == BadInput.exit_code:
        raise BadInput(text)
    if run.returncode != 0:
        raise Unavailable(text or f"{program} --check exited with status {run.returncode}")


@dataclass
class SchedulerRecorder:
    """One recording of scheduler events into `directory`. Without roots everything is kept."""

    PROGRAM = "perflab-scheduler-recorder"

    directory: Path
    source: str
    roots: tuple[int, ...] = ()
    buffer_bytes: int = 4 << 20
    flight_recorder_bytes: int | None = None
    locks: bool = False
    _companion: Companion | None = None
    _told: dict[str, Any] | None = None

    def begin(self, start: Start, native: Native) -> None:
        """Returns when it records. Raises Unavailable if this machine does not allow it."""
        command: list[str | Path] = [
            *(native.program(self.PROGRAM), "--output", self.directory.absolute(), "--source", self.source),
            *("--buffer-bytes", str(self.buffer_bytes)),
        ]
        for pid in self.roots:
            command += ["--root", str(pid)]
        if self.flight_recorder_bytes is not None:
            command += ["--flight-recorder", str(self.flight_recorder_bytes)]
        if self.locks:
            command.append("--locks")
        self._companion = start("scheduler_recorder", command, control=True)
        self._await("recording", START_LIMIT_S)

    def add_root(self, pid: int) -> None:
        if self._companion is not None:
            self._companion.send({"type": "root", "pid": pid})

    def end(self) -> dict[str, Any] | None:
        """What it recorded and lost. Idempotent; None if it never began."""
        if self._companion is None or self._told is not None:
            return self._told
        try:
            self._companion.send({"type": "stop"})
            done = self._await("done", END_LIMIT_S)
        finally:
            self._companion.stop()
        told = {"tracer": self.source, "filter": "process tree" if self.roots else None}
        self._told = {**told, **dict.fromkeys(_TOLD), **done}
        del self._told["type"]
        return self._told

    def _await(self, kind: str, seconds: float) -> dict[str, Any]:
        assert self._companion is not None
        wait = Wait(f"{self.PROGRAM} to say {kind!r}", seconds)
        while not wait.is_over:
            line = self._companion.receive(wait.step_s)
            wait.look()
            if line is not None and line.get("type") == kind:
                return line
            if line is not None and line.get("type") == "error":
                raise self._failure(self._companion, str(line.get("text")))
            if line is None and self._companion.status is not None:
                ended = f"it exited with status {self._companion.status}{last_words(self._companion.log)}"
                raise self._failure(self._companion, ended)
        raise self._failure(self._companion, f"it did not report {kind!r} within {seconds:.0f} s")

    def _failure(self, companion: Companion, text: str) -> PerflabError:
        deadline = time.monotonic() + 5.0
        while companion.status is None and time.monotonic() < deadline:
            companion.receive(0.05)
        if companion.status == Unavailable.exit_code:
            return Unavailable(text)
        return (BadInput if companion.status == BadInput.exit_code else PerflabError)(f"{self.PROGRAM}: {text}")
