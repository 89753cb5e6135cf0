"""A session daemon of LTTng for tests that record without perflab."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from perflab.tracer import lttng

LIMIT_S = 120


@contextlib.contextmanager
def session_daemon() -> Iterator[dict[str, str]]:
    """The environment in which it answers: the one that runs, or one of its own, which is ended.

    root can have one daemon only. So nobody else on this machine records as root through perflab meanwhile, and none
    of them ends the daemon that is used here.
    """
    for program in ("lttng", "lttng-sessiond"):
        if shutil.which(program) is None:
            pytest.skip(f"no {program}: install lttng-tools")
    with contextlib.ExitStack() as stack:
        if os.geteuid() == 0:
            lock = lttng.locked(fcntl.LOCK_EX)
            assert lock is not None, "these tests run within a recording"
            stack.enter_context(lock)
        # Sockets have short paths.
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="perflab-lttng-", dir="/tmp")))
        own = {"LTTNG_HOME": str(home)}
        if not lttng.answers(own):
            log = stack.enter_context((home / "daemon.log").open("w"))
            daemon = subprocess.Popen(["lttng-sessiond", "--no-kernel"], env=os.environ | own, stdout=log, stderr=log)
            stack.callback(_end, daemon)
            deadline = time.monotonic() + LIMIT_S
            while not lttng.answers(own):
                assert daemon.poll() is None, (home / "daemon.log").read_text()
                assert time.monotonic() < deadline, "the session daemon does not answer"
                time.sleep(0.1)
        yield os.environ | own


def _end(daemon: subprocess.Popen[bytes]) -> None:
    daemon.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        daemon.wait(LIMIT_S)
    daemon.kill()
    daemon.wait()
