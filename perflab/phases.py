"""Reports on stderr what perflab is doing, if it takes long.

    with phase("reading runs/x"):
        ...

A command reports its activity once that has taken SAY_AFTER_S, so that there is output within two seconds of any
command; `--progress lines` reports everything at once, `--progress off` nothing. A thread reports it, which sleeps when
there is nothing to report: most slow activities are in native code or in an import, where no code checks a clock.
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
QUIET: Final = ("--quiet", "-q")  # writes less than off
HELP = (
    "Progress on stderr: auto (a live display on a terminal, for pubsub a line per second), lines (one per phase "
    "and trial), seconds (and one per second), off."
)

SAY_AFTER_S = 1.0


@dataclass
class _Phase:
    what: str
    since_s: float
    said: bool = False


class Teller:
    """Reports the phases of one command. `clock` in seconds; `after_s`: how long a phase lasts before it is
    reported."""

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
        """Reports the present phase if it is due; returns in how many seconds to check again, None: not before a
        change."""
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
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # they belong to the main thread
        with self._changed:
            while not self._over:
                self._changed.wait(self.look())


_tellers: list[Teller] = []


@contextlib.contextmanager
def told(first: str, words: Sequence[str] = ()) -> Iterator[None]:
    """Within this context, which covers one command, phases are reported; `first` applies if none is named.

    `words` are those of the command line: their --progress applies before they have been parsed properly.
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
    """Names the activity within this context, in words that follow "perflab: "; "" is nothing worth mentioning.

    Outside a command, and in other threads than the main one, it reports nothing.
    """
    if not _tellers or threading.current_thread() is not threading.main_thread():
        yield
        return
    with _tellers[-1].phase(what):
        yield


def check(mode: str, *, from_environment: bool = False) -> None:
    """Raises BadInput for an unknown mode; it names the option, or the variable if the mode came from there."""
    if mode not in MODES:
        *first, last = MODES
        said = f"{ENVIRONMENT}={mode!r} in the environment" if from_environment else f"{OPTION} {mode!r}"
        raise BadInput(f"{said} is not {', '.join(first)} or {last}")


def choose(mode: str) -> None:
    """Sets the value of --progress, one of MODES, for the present command."""
    if _tellers:
        _tellers[-1].mode = mode


def chosen() -> str:
    """The present command's --progress."""
    return _tellers[-1].mode if _tellers else AUTO
