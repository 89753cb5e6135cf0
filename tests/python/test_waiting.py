"""Waits: what they say, and that signals which are noted end them."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

import pytest

from perflab import programs, waiting
from perflab.errors import Interrupted
from perflab.experiment.supervisor import Supervisor, Tick
from perflab.signals import Signals
from perflab.waiting import Wait

LIMIT_S = 60.0  # of what ends at once where it works


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.fixture(autouse=True)
def unannounced() -> None:
    """Here waits are announced, as they are."""


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every wait says what it is for when it is looked at first."""
    monkeypatch.setattr(waiting, "ANNOUNCE_AFTER_S", 0.0)


def test_a_wait_says_once_what_it_is_for_after_a_second(said: list[str]) -> None:
    clock = Clock()
    wait = Wait(lambda: "a lock", 600.0, clock=clock, sleep=clock.sleep)
    with waiting.told_to(said.append):
        while wait.passed_s < 0.9:
            wait.pause()
        assert said == []
        assert wait.silent_for_s == pytest.approx(1.0 - wait.passed_s)
        while wait.passed_s < 10:
            wait.pause()
    assert said == ["waiting for a lock, for 600 s at most"]


def test_a_wait_steps_no_further_than_its_limit() -> None:
    clock = Clock()
    wait = Wait("a lock", 0.25, clock=clock, sleep=clock.sleep)
    steps = 0
    while not wait.is_over:
        wait.pause()
        steps += 1
    assert steps == 3
    assert wait.passed_s == pytest.approx(0.25)


def test_without_a_teller_it_is_a_line_on_stderr(at_once: None, capsys: pytest.CaptureFixture[str]) -> None:
    Wait("a lock").look()
    assert capsys.readouterr().err == "perflab: waiting for a lock\n"


def test_a_noted_signal_ends_a_wait() -> None:
    with Signals() as signals:
        wait = Wait("a lock")
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(Interrupted, match="SIGTERM"):
            wait.pause()
        wait.look()  # once: what is done to end in order is not interrupted by the same signal
        assert signals.received is None
        with pytest.raises(Interrupted):
            signals.raise_if_seen()  # but nothing new begins
    Wait("a lock").look()


def test_a_noted_signal_is_not_raised_in_another_thread() -> None:
    raised: list[BaseException] = []

    def look() -> None:
        try:
            Wait("a lock").look()
        except BaseException as error:  # noqa: BLE001 - whatever it is
            raised.append(error)

    with Signals() as signals:
        os.kill(os.getpid(), signal.SIGTERM)
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        assert signals.received == signal.SIGTERM
    assert raised == []


def test_a_signal_ends_the_wait_for_a_program_and_the_program() -> None:
    with Signals():
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(Interrupted):
            programs.ask([sys.executable, "-c", "import time; time.sleep(1000)"], limit_s=LIMIT_S)


def test_a_program_that_takes_long_is_named(at_once: None, said: list[str]) -> None:
    with waiting.told_to(said.append):
        done = programs.ask(["sh", "-c", "sleep 0.3; echo told; echo why >&2; exit 3"], limit_s=LIMIT_S)
    assert (done.returncode, done.stdout, done.stderr) == (3, "told\n", "why\n")
    assert said == ["waiting for `sh -c sleep 0.3; echo told; echo why >&2; exit 3`, for 60 s at most"]


def test_a_signal_ends_the_wait_for_native_work() -> None:
    may_end, ended, unwanted = threading.Event(), threading.Event(), []

    def work() -> int:
        may_end.wait(LIMIT_S)
        return 7

    def discard(result: int) -> None:
        unwanted.append(result)
        ended.set()

    with Signals():
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(Interrupted):
            waiting.work(work, "native code", unwanted=discard)
    may_end.set()
    assert ended.wait(LIMIT_S)
    assert unwanted == [7]


@pytest.mark.parametrize("error", [None, ValueError("wrong")])
def test_work_returns_or_raises_what_it_did(error: Exception | None) -> None:
    def work() -> int:
        if error is not None:
            raise error
        return 7

    if error is None:
        assert waiting.work(work, "native code") == 7
    else:
        with pytest.raises(ValueError, match="wrong"):
            waiting.work(work, "native code")


def test_a_trial_s_wait_is_said_by_who_polls_and_not_while_it_measures(at_once: None, said: list[str]) -> None:
    with waiting.told_to(said.append), Supervisor() as supervisor:
        assert isinstance(supervisor.poll(0.0), Tick)
        assert said == []
        supervisor.waiting = Wait("discovery")
        assert isinstance(supervisor.poll(0.0), Tick)
        assert isinstance(supervisor.poll(0.0), Tick)
    assert said == ["waiting for discovery"]


def test_programs_of_the_administrator_are_found_where_path_lacks_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tc"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr(programs, "ADMINISTRATORS_FOLDERS", (str(tmp_path),))
    assert programs.which("tc") == path
    assert programs.which("no-such-program") is None


def test_a_program_that_is_slow_to_read_is_told_all_of_it_once() -> None:
    slow = "import sys, time; time.sleep(0.35); sys.stdout.write(sys.stdin.read())"
    told = "a graph\n" * 50_000
    assert programs.ask([sys.executable, "-c", slow], limit_s=60, told=told).stdout == told
