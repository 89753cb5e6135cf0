"""What perflab knows of any process that it starts: how it ended, the end of its log, the CPUs that it is given."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator, Set
from pathlib import Path

from perflab.errors import PerflabError, Unavailable

MAX_LINE_BYTES = 64 << 20  # on a control channel
LOG_TAIL_LINES = 5
_LOG_TAIL_BYTES = 8192


class ProtocolError(PerflabError):
    """A node said something that is not in the protocol."""


def describe_status(status: int) -> str:
    """How a process ended, for people: "was killed by SIGKILL", "exited with 3"."""
    if status >= 0:
        return f"exited with {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"was killed by signal {-status}"


def log_tail(log: Path) -> list[str]:
    """The last lines of a log; none where it is empty or cannot be read."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _LOG_TAIL_BYTES))
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return []
    return [line for line in text.splitlines() if line.strip()][-LOG_TAIL_LINES:]


@contextlib.contextmanager
def on_cpus(cpus: Set[int] | None) -> Iterator[None]:
    """A process inherits the CPUs of the thread that makes it: set before, there is no instant without them."""
    if cpus is None:
        yield
        return
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, cpus)
    except OSError as error:
        raise Unavailable(f"CPUs {','.join(map(str, sorted(cpus)))} cannot be had: {error.strerror}") from error
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
