"""root's lock of LTTng: who waits for whom, and says so."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from perflab import waiting
from perflab.errors import Interrupted, Unavailable
from perflab.signals import Signals
from perflab.tracer import lttng

# Holds the lock until its standard input ends.
HOLDER = """
import fcntl, os, sys
handle = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
fcntl.flock(handle, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""
# Says whether it got the lock, or is within the recording that holds it.
INNER = """
import fcntl
from perflab.tracer import lttng
print(lttng.locked(fcntl.LOCK_SH))
"""


@pytest.fixture
def lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lock of the test's own."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path / lttng.LOCK


@pytest.fixture
def holder(lock: Path) -> Iterator[int]:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process.pid
        process.communicate("")


def test_a_signal_ends_the_wait_for_it(lock: Path, holder: int) -> None:
    with Signals():
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(Interrupted):
            lttng.locked(fcntl.LOCK_EX)


def test_who_waits_for_it_says_who_holds_it(lock: Path, holder: int, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(waiting, "ANNOUNCE_AFTER_S", 0.0)
    monkeypatch.setattr(lttng, "LOCK_LIMIT_S", 0.2)
    with waiting.told_to(said.append), pytest.raises(Unavailable, match="another recording"):
        lttng.locked(fcntl.LOCK_EX)
    assert len(said) == 1
    assert said[0].startswith(f"waiting for root's LTTng lock {lock}, which process {holder} (`{sys.executable} -c ")


def test_a_recording_within_the_one_that_holds_it_does_not_wait(lock: Path) -> None:
    with lttng.locked(fcntl.LOCK_EX) or pytest.fail("these tests run within a recording"):
        assert lttng.lock_holders(lock) == [os.getpid()]
        done = subprocess.run(
            ["sh", "-c", '"$0" -c "$1"; true', sys.executable, INNER],  # a grandchild, as under perflab-guard
            capture_output=True, text=True, check=True, timeout=300,
        )  # fmt: skip
        assert (done.stdout, done.stderr) == ("None\n", "")


def test_within_a_recording_whose_daemon_does_not_answer_it_is_refused_at_once(
    lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lttng, "locked", lambda kind: None)
    monkeypatch.setattr(lttng, "answers", lambda variables: False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    daemon = lttng._Daemon(start=lambda *_, **__: pytest.fail("a second daemon of root"), kernel=False)
    with pytest.raises(Unavailable, match="has no LTTng session daemon that answers"):
        daemon.begin()


def test_a_lock_that_cannot_be_opened_is_one_line(lock: Path) -> None:
    lock.symlink_to("/etc/passwd")
    with pytest.raises(Unavailable, match=rf"cannot open root's LTTng lock {lock}: "):
        lttng.locked(fcntl.LOCK_SH)
