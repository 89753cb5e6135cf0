"""What perflab is doing, said on stderr where it takes long enough to be asked for.

    with phase("reading runs/x"):
        ...

A command says what it does once that has taken SAY_AFTER_S, so that there is something to read within two seconds of
any command; `--progress lines` says everything at once, `--progress off` nothing. A thread says it, which sleeps where
there is nothing to say: what takes long is often in native code or in an import, in which nobody looks at a clock.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from perflab import waiting
from perflab.errors import BadInput

AUTO: Final = "auto"
LINES: Final = "lines"
SECONDS: Final = "seconds"
OFF: Final = "off"
MODES = (AUTO, LINES, SECONDS, OFF)
OPTION: Final = "--progress"
ENVIRONMENT = "PERFLAB_PROGRESS"
QUIET: Final = ("--quiet", "-q")  # says less than off
HELP = (
    "Progress on stderr: auto (on a terminal a display of runs, of pubsub a line per second), lines (one per phase and "
    "trial), seconds (and one per second), off."
)

SAY_AFTER_S = 1.0


@dataclass
class _Phase:
    what: str
    since_s: float
    said: bool = False


class Teller:
    """Says the phases of one command. `clock` in seconds; `after_s`: how long a phase lasts before it is said."""

    def __init__(self, after_s: float | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.mode = AUTO
        self._after_s = SAY_AFTER_S if after_s is None else after_s
        self._clock = clock
        self._phases: list[_Phase] = []
        self._changed = threading.Condition()
        self._over = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._watch, name="perflab phases", daemon=True)
        self._thread.start()

    def end(self) -> None:
        with self._changed:
            self._over = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    @contextlib.contextmanager
    def phase(self, what: str) -> Iterator[None]:
        with self._changed:
            self._phases.append(_Phase(what, self._clock()))
            if self.mode == LINES:
                self._say()
            self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._phases.pop()
                if self._phases:
                    self._phases[-1].since_s = self._clock()
                self._changed.notify()

    def look(self) -> float | None:
        """Says the present phase where it is time to; in how many seconds to look again, None: not before a change."""
        phase = self._phases[-1] if self._phases else None
        if phase is None or phase.said or not phase.what or self.mode == OFF:
            return None
        left_s = phase.since_s + self._after_s - self._clock()
        if left_s > 0:
            return left_s
        self._say()
        return None

    def _say(self) -> None:
        phase = self._phases[-1]
        phase.said = True
        if phase.what:
            waiting.tell(phase.what)

    def _watch(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # they are the main thread's
        with self._changed:
            while not self._over:
                self._changed.wait(self.look())


_tellers: list[Teller] = []


@contextlib.contextmanager
def told(first: str, words: Sequence[str] = ()) -> Iterator[None]:
    """Within this context, which is that of one command, phases are said; `first` is said where none is named.

    `words` are those of the command line: what they say of --progress counts before they have been read properly.
    """
    teller = Teller()
    _tellers.append(teller)
    teller.start()
    try:
        with teller.phase(first):
            teller.mode = _asked(words)
            yield
    finally:
        teller.end()
        _tellers.remove(teller)


def _asked(words: Sequence[str]) -> str:
    said = os.environ.get(ENVIRONMENT, AUTO)
    for option, value in pairwise([*words, ""]):
        if option == "--":
            break
        if option in QUIET:
            said = OFF
        elif option == OPTION:
            said = value
        elif option.startswith(f"{OPTION}="):
            said = option.partition("=")[2]
    return said if said in MODES else AUTO


@contextlib.contextmanager
def phase(what: str) -> Iterator[None]:
    """Names what is done within this context, in words that follow "perflab: "; "" is nothing to speak of.

    Outside a command, and in other threads than the main one, it says nothing.
    """
    if not _tellers or threading.current_thread() is not threading.main_thread():
        yield
        return
    with _tellers[-1].phase(what):
        yield


def check(mode: str, *, from_environment: bool = False) -> None:
    """Raises BadInput where there is no such mode; that names the option, or the variable that says so instead."""
    if mode not in MODES:
        *first, last = MODES
        said = f"{ENVIRONMENT}={mode!r} in the environment" if from_environment else f"{OPTION} {mode!r}"
        raise BadInput(f"{said} is not {', '.join(first)} or {last}")


def choose(mode: str) -> None:
    """What --progress says, one of MODES, for the present command."""
    if _tellers:
        _tellers[-1].mode = mode


def chosen() -> str:
    """The present command's --progress."""
    return _tellers[-1].mode if _tellers else AUTO
