"""Signals are recorded first, and raised at a safe place."""

from __future__ import annotations

import contextlib
import signal
import socket
from types import FrameType
from typing import Any

from perflab import waiting
from perflab.errors import Interrupted


class Signals:
    """Within this context SIGINT, SIGTERM and SIGHUP are recorded instead of raised, and wake `fileno()`."""

    def __init__(self) -> None:
        self.received: int | None = None  # and not raised yet
        self.seen: int | None = None  # the last signal, raised or not
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        self._previous: dict[int, Any] = {}
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Signals:
        self._stack.enter_context(waiting.signals_raise(self.raise_if_received))
        for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(signum) is not signal.SIG_IGN:  # nohup stays in effect
                self._previous[signum] = signal.signal(signum, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for signum, handler in self._previous.items():
            signal.signal(signum, handler)
        self._stack.close()
        self._reader.close()
        self._writer.close()

    def fileno(self) -> int:
        return self._reader.fileno()

    def raise_if_received(self) -> None:
        """Raises Interrupted once for each signal."""
        if self.received is not None:
            signum, self.received = self.received, None
            with contextlib.suppress(BlockingIOError):
                self._reader.recv(4096)
            raise Interrupted(signum)

    def raise_if_seen(self) -> None:
        """Raises Interrupted if a signal came at any time: also if the waiting code took it for a failure."""
        if self.seen is not None:
            raise Interrupted(self.seen)

    def heed(self) -> None:
        """The last raised signal was a request that is handled: it interrupts nothing."""
        self.seen = None

    def _note(self, signum: int, frame: FrameType | None) -> None:
        del frame
        self.received = self.seen = signum
        with contextlib.suppress(OSError):
            self._writer.send(b"!")
