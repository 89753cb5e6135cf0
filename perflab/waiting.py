"""Waits that a signal ends at once, and that report their purpose.

    wait = Wait("root's LTTng lock", limit_s=600)
    while not taken():
        if wait.is_over:
            raise Unavailable(...)
        wait.pause()

After ANNOUNCE_AFTER_S a wait reports its purpose once. Signals that are recorded instead of raised (in a run) end it
within STEP_S: the recorder registers them with `signals_raise`.
"""

from __future__ import annotations

import contextlib
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from perflab.errors import one_line

ANNOUNCE_AFTER_S = 1.0
STEP_S = 0.1

_Result = TypeVar("_Result")


def _to_stderr(text: str) -> None:
    sys.stderr.write(f"perflab: {text}\n")
    sys.stderr.flush()


_checks: list[Callable[[], None]] = []
_tellers: list[Callable[[str], None]] = [_to_stderr]


@contextlib.contextmanager
def signals_raise(check: Callable[[], None]) -> Iterator[None]:
    """Within this context every wait of the main thread calls `check`, which raises if a signal came."""
    _checks.append(check)
    try:
        yield
    finally:
        _checks.remove(check)


@contextlib.contextmanager
def told_to(teller: Callable[[str], None]) -> Iterator[None]:
    """Within this context the purpose of a wait goes to `teller` ("waiting for ..."), and not to stderr."""
    _tellers.append(teller)
    try:
        yield
    finally:
        _tellers.remove(teller)


def tell(text: str) -> None:
    """Reports a slow activity: as a line on stderr, or to the display of a run."""
    _tellers[-1](text)


def raise_if_interrupted() -> None:
    """Raises Interrupted if a signal was recorded. Other threads than the main one are not affected."""
    if _checks and threading.current_thread() is threading.main_thread():
        _checks[-1]()


class Wait:
    """One wait. `what` comes after "waiting for", and is evaluated when it is reported."""

    def __init__(
        self,
        what: str | Callable[[], str],
        limit_s: float | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._what = what
        self._limit_s = limit_s
        self._clock = clock
        self._sleep = sleep
        self._begin_s = clock()
        self._announced = False

    @property
    def passed_s(self) -> float:
        return self._clock() - self._begin_s

    @property
    def is_over(self) -> bool:
        """Whether the limit has passed."""
        return self._limit_s is not None and self.passed_s >= self._limit_s

    @property
    def step_s(self) -> float:
        """How long to wait for an event before the next `look`."""
        left_s = STEP_S if self._limit_s is None else self._limit_s - self.passed_s
        return max(0.0, min(STEP_S, left_s))

    @property
    def silent_for_s(self) -> float:
        """How long until it must report its purpose; infinite if it has."""
        return math.inf if self._announced else max(0.0, ANNOUNCE_AFTER_S - self.passed_s)

    def look(self) -> None:
        """Must be called at least every STEP_S. Raises Interrupted if a signal came."""
        raise_if_interrupted()
        self.say()

    def say(self) -> None:
        """Reports its purpose once, if it is due; for waits that no signal may end."""
        if self.silent_for_s <= 0:
            self._announced = True
            what = self._what if isinstance(self._what, str) else self._what()
            limit = "" if self._limit_s is None else f", for {self._limit_s:.0f} s at most"
            tell(f"waiting for {one_line(what)}{limit}")

    def pause(self, seconds: float = STEP_S) -> None:
        """One step, of STEP_S at most. Raises Interrupted if a signal came."""
        self.look()
        self._sleep(min(seconds, self.step_s))
        raise_if_interrupted()


def work(function: Callable[[], _Result], what: str, *, unwanted: Callable[[_Result], None] | None = None) -> _Result:
    """The result of `function`, which computes for long in native code: during that, a thread runs no signal handlers,
    so it gets its own thread, and a signal ends the wait for it. A result that is no longer awaited is passed to
    `unwanted`.
    """
    if threading.current_thread() is not threading.main_thread():
        return function()
    results: list[_Result] = []
    errors: list[BaseException] = []
    lock, abandoned = threading.Lock(), threading.Event()

    def discard() -> None:
        while results and unwanted is not None:
            unwanted(results.pop())

    def run() -> None:
        try:
            result = function()
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            errors.append(error)
            return
        with lock:
            results.append(result)
            if abandoned.is_set():
                discard()

    worker = threading.Thread(target=run, name="perflab work", daemon=True)
    wait = Wait(what)
    try:
        worker.start()
        while worker.is_alive():
            worker.join(STEP_S)
            wait.look()
    except BaseException:
        with lock:
            abandoned.set()
            discard()
        raise
    if errors:
        raise errors[0]
    return results[0]


def begin(function: Callable[[], _Result]) -> Callable[[], _Result]:
    """Starts a function that waits for another program, in its own thread, beside the caller's next work. The returned
    callable waits for it and returns its result; it raises the function's exceptions, and Interrupted.
    """
    asked = _InThread(function)

    def finish() -> _Result:
        while asked.is_alive():
            asked.join(STEP_S)
            raise_if_interrupted()
        if asked.error is not None:
            raise asked.error
        result: _Result = asked.result
        return result

    return finish


class _InThread(threading.Thread):
    def __init__(self, function: Callable[[], Any]) -> None:
        super().__init__(name="perflab asks", daemon=True)
        self._function = function
        self.result: Any = None
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self.result = self._function()
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            self.error = error
