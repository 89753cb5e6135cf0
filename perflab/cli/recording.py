"""What `perflab trace record` and `perflab profile` share: a folder, programs that end with it, time, signals."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perflab.errors import BadInput, Interrupted

if TYPE_CHECKING:
    from perflab.experiment.companion import GuardedCompanion

STOP_GRACE_S = 10.0  # from SIGINT to SIGKILL, as after Ctrl-C
LOOK_S = 0.1

Command = Annotated[
    list[str] | None, typer.Argument(metavar="-- COMMAND...", help="The command to run.", show_default=False)
]
Duration = Annotated[
    str | None,
    typer.Option(
        "--duration", metavar="TIME", help="Stop after this time (10s).", show_default="until the command ends"
    ),
]


class Limit:
    """The time left of --duration, counted from the first call. Raises BadInput."""

    def __init__(self, duration: str | None) -> None:
        from perflab.units import NS_PER_S, parse_duration

        self.seconds = None if duration is None else parse_duration(duration, "--duration") / NS_PER_S
        self._deadline: float | None = None

    @property
    def is_over(self) -> bool:
        if self.seconds is None:
            return False
        if self._deadline is None:
            self._deadline = time.monotonic() + self.seconds
        return time.monotonic() >= self._deadline


@contextlib.contextmanager
def signals_interrupt() -> Iterator[None]:
    """SIGTERM and SIGHUP end a recording as Ctrl-C does."""

    def interrupt(signum: int, _: object) -> None:
        raise Interrupted(signum)

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Companions:
    """The programs of a recording, each with a log; all of them end with the recording."""

    def __init__(self, guard: Path, log: Callable[[str], Path]) -> None:
        self._guard = guard
        self._log = log
        self.running: list[GuardedCompanion] = []

    def __enter__(self) -> Companions:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self, name: str, command: Sequence[str | Path], *, control: bool = False) -> GuardedCompanion:
        from perflab.experiment.companion import GuardedCompanion

        log = self._log(name)
        log.parent.mkdir(parents=True, exist_ok=True)
        self.running.append(GuardedCompanion(name, command, guard=self._guard, log=log, control=control))
        return self.running[-1]

    def run(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> GuardedCompanion:
        """Like `start`, but prints to perflab's own output."""
        from perflab.experiment.companion import GuardedCompanion

        null, program = Path(os.devnull), Path(command[0]).name
        self.running.append(
            GuardedCompanion(program, command, guard=self._guard, log=null, pass_output=True, environment=environment)
        )
        return self.running[-1]

    def wait(self, seconds: float) -> None:
        for companion in self.running:
            companion.receive(seconds)

    def close(self) -> None:
        while self.running:
            self.running.pop().stop()


@dataclass(frozen=True)
class Folder:
    """A folder that was created, or was empty. `made` are the folders that were created, outermost first."""

    path: Path
    made: tuple[Path, ...]

    def take_back(self) -> None:
        """Removes the folders that were created, and their content."""
        for path in self.path.iterdir() if self.path.is_dir() else ():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        for path in reversed(self.made):
            with contextlib.suppress(OSError):  # another process uses this name by now
                path.rmdir()


def check(output: Path | None, what: str) -> None:
    """Raises BadInput if `output` exists and is not an empty folder."""
    if output is None:
        return
    try:
        if output.exists() and (not output.is_dir() or any(output.iterdir())):
            raise BadInput(f"--output {output}: exists and is not an empty folder; a {what} needs a folder of its own")
    except OSError as error:
        raise BadInput(f"--output {output}: {error.strerror}") from error


def make(output: Path | None, what: str, parent: str, name: str) -> Folder:
    """`output`, or a unique folder in `parent`: two recordings that begin in the same second get two folders. Raises
    BadInput."""
    check(output, what)
    wanted = output or Path(parent) / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}_{name}"
    missing = [path for path in (wanted, *wanted.parents) if not path.exists()]
    path, number = wanted, 1
    try:
        wanted.parent.mkdir(parents=True, exist_ok=True)
        while True:
            try:
                path.mkdir(exist_ok=output is not None)
                break
            except FileExistsError:
                if output is not None:
                    raise
                number += 1
                path = wanted.with_name(f"{wanted.name}_{number}")
    except OSError as error:
        place = f"--output {output}" if output is not None else f"{wanted.parent}; --output chooses another folder"
        raise BadInput(f"{place}: {error.strerror}") from error
    above = [folder for folder in reversed(missing) if folder != wanted]
    return Folder(path, (*above, *([path] if path != wanted or wanted in missing else [])))
