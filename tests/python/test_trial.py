"""The life of a trial against a node that behaves, and nodes that do not. The control code is the real one."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support import two_processes

from perflab.design.settings import Limits, Settings
from perflab.design.variant import Variant
from perflab.errors import BadInput, Interrupted, Unavailable
from perflab.experiment.nodes import Nodes
from perflab.experiment.running import Ended, Keeper
from perflab.experiment.trial import run_trial
from perflab.experiment.trial_plan import TrialPlan
from perflab.middleware import Middleware
from perflab.native import Native
from perflab.runs.display import LiveProgress
from perflab.runs.rundir import TrialDirectory
from perflab.signals import Signals
from perflab.workload import Graph

MS = 1_000_000
SHORT = Limits(
    created_ns=20_000 * MS,
    silence_ns=20_000 * MS,
    done_ns=20_000 * MS,
    farewell_ns=5_000 * MS,
    drain_quiet_ns=300 * MS,
    drain_limit_ns=2_000 * MS,
)


def plan(native: Path, fake: str = "", limits: Limits = SHORT, **settings: Any) -> TrialPlan:
    options = {"fake": fake} if fake else {}
    graph = Graph(two_processes())
    middleware = Middleware("cyclonedds", "dds", native / "middleware/cyclonedds.so", "0", options)
    return TrialPlan(
        graph=graph,
        variant=Variant((middleware,)),
        settings=replace(Settings(duration_ns=600 * MS, limits=limits), **settings),
        seed=1,
        domain=7,
        native=Native(native),
    )


def with_options(trial: TrialPlan, options: Mapping[str, str]) -> TrialPlan:
    """The same trial with other options of its middleware."""
    middleware = replace(trial.variant.middlewares[0], options=options)
    return replace(trial, variant=Variant((middleware,)))


def run(trial: TrialPlan, directory: TrialDirectory, signals: Signals) -> Ended:
    outcome = run_trial(trial, directory, signals, lambda progress: None)
    for pid in pids_of(outcome).values():
        assert is_gone(pid), "a process was left behind"
    return outcome


def pids_of(outcome: Ended) -> dict[str, int]:
    return {name: p.pid for name, p in outcome.file.processes.items() if p.pid is not None}


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_trial_that_goes_well(native_folder: Path, directory: TrialDirectory, signals: Signals) -> None:
    reports: list[LiveProgress] = []
    outcome = run_trial(plan(native_folder), directory, signals, reports.append)
    assert (outcome.file.outcome, outcome.file.reason, outcome.file.drain) == ("success", None, "rest")
    assert {name: p.status for name, p in outcome.file.processes.items()} == {"ping": 0, "pong": 0}
    assert {"starting", "measuring"} <= {r.phase for r in reports}
    assert reports[-1].received == reports[-1].sent == 60 * 2 + 30
    assert directory.log("ping").read_text() == "fake node is here\n"


def test_what_never_arrives_ends_the_drain_by_quiet(
    native_folder: Path, directory: TrialDirectory, signals: Signals
) -> None:
    outcome = run(plan(native_folder, "tail"), directory, signals)
    assert (outcome.file.outcome, outcome.file.drain) == ("success", "quiet")


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("die:pong", r"process 'pong' \(pid \d+\) was killed by SIGKILL .* s after the start; its log ends with: fake"),
        (
            "abort:ping",
            r"process 'ping' .* was killed by SIGABRT .* its log ends with: terminate called after throwing",
        ),
        ("exit:ping", r"process 'ping' .* exited with 5"),
        ("failed:pong", r"process 'pong': fake: failed"),
        ("truncated:pong", r"process 'pong' .* SIGKILL"),
    ],
)
def test_a_node_that_fails_is_named(
    native_folder: Path, directory: TrialDirectory, signals: Signals, fault: str, expected: str
) -> None:
    outcome = run(plan(native_folder, fault), directory, signals)
    assert outcome.file.outcome == "failed"
    assert re.search(expected, outcome.file.reason or ""), outcome.file.reason
    broken, (what, _, process) = outcome.file.broken_off, fault.partition(":")
    assert broken is not None
    assert (broken.why, broken.process) == ("failed" if what == "failed" else "ended", process)


def test_the_others_still_write_their_last_checkpoint_when_one_dies(
    native_folder: Path, directory: TrialDirectory, signals: Signals
) -> None:
    outcome = run(plan(native_folder, "die:pong"), directory, signals)
    assert {name: p.status for name, p in outcome.file.processes.items()} == {"ping": 0, "pong": -signal.SIGKILL}
    assert '"final": true' in directory.records("ping").read_text()


@pytest.mark.parametrize(
    ("fault", "limits", "expected"),
    [
        ("hang:pong", replace(SHORT, silence_ns=1_000 * MS), "process 'pong' .* has sent no report for 1 s"),
        ("linger:pong", replace(SHORT, done_ns=1_000 * MS), "process 'pong' .* did not end within 1 s after stop"),
        ("slow_create:pong", replace(SHORT, created_ns=1_500 * MS), "process 'pong' .* did not create its endpoints"),
    ],
)
def test_a_node_that_hangs_is_named_and_killed(
    native_folder: Path, directory: TrialDirectory, signals: Signals, fault: str, limits: Limits, expected: str
) -> None:
    limits = replace(limits, farewell_ns=500 * MS)
    outcome = run(plan(native_folder, fault, limits), directory, signals)
    assert outcome.file.outcome in ("failed", "harness_error")
    assert re.search(expected, outcome.file.reason or ""), outcome.file.reason
    broken, why = outcome.file.broken_off, {"hang": "silent", "linger": "stuck"}
    assert (broken and broken.why) == why.get(fault.removesuffix(":pong"))


def test_the_workload_has_no_name_for_a_process_of_a_condition() -> None:
    nodes = Nodes.__new__(Nodes)
    nodes._of_conditions = {"flood": "message_flood"}
    broken = nodes._broken_off("silent", "flood")
    assert (broken.why, broken.process) == ("silent", None)


def test_discovery_that_never_ends(native_folder: Path, directory: TrialDirectory, signals: Signals) -> None:
    limits = replace(SHORT, silence_ns=1_000 * MS)
    outcome = run(plan(native_folder, "never_ready:ping", limits, discovery_timeout_ns=1), directory, signals)
    assert outcome.file.outcome == "harness_error"
    assert "'ping'" in (outcome.file.reason or "")
    assert "did not finish discovery" in (outcome.file.reason or "")


def test_endpoints_that_find_no_peer_are_named(
    native_folder: Path, directory: TrialDirectory, signals: Signals
) -> None:
    outcome = run(plan(native_folder, "unmatched:pong"), directory, signals)
    assert outcome.file.outcome == "harness_error"
    assert outcome.file.reason == "1 endpoint not matched within 30 s: /lyon subscription /amazon: 0 of 1 writers"
    assert not outcome.last


def test_a_full_disk_is_the_end_of_the_run(native_folder: Path, directory: TrialDirectory, signals: Signals) -> None:
    outcome = run(plan(native_folder, "disk_full:pong"), directory, signals)
    assert outcome.file.outcome == "harness_error"
    assert outcome.file.reason == "process 'pong' cannot write its records: No space left on device"
    assert outcome.last


@pytest.mark.parametrize(("fault", "error"), [("bad_option:pong", BadInput), ("unsupported", Unavailable)])
def test_what_the_node_refuses_becomes_the_exit_code(
    native_folder: Path, directory: TrialDirectory, signals: Signals, fault: str, error: type[Exception]
) -> None:
    outcome = run(plan(native_folder, fault), directory, signals)
    assert isinstance(outcome.error, error)
    assert outcome.last


def test_a_broken_protocol_is_a_harness_error(native_folder: Path, directory: TrialDirectory, signals: Signals) -> None:
    outcome = run(plan(native_folder, "garbage:ping"), directory, signals)
    assert outcome.file.outcome == "harness_error"
    assert "violates the protocol" in (outcome.file.reason or "")


def test_what_a_node_started_ends_with_it(native_folder: Path, directory: TrialDirectory, signals: Signals) -> None:
    outcome = run_trial(plan(native_folder, "child"), directory, signals, lambda progress: None)
    assert outcome.file.outcome == "success"
    for leader in pids_of(outcome).values():
        deadline = time.monotonic() + 20
        while members(leader) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not members(leader)


def left_over() -> set[str]:
    return {p.name for p in Path("/dev/shm").glob("perflab_double_*")}


@pytest.mark.parametrize("fault", ["", "die:pong", "linger"])
def test_no_shared_memory_is_left_behind(
    native_folder: Path, directory: TrialDirectory, signals: Signals, fault: str
) -> None:
    limits = replace(SHORT, done_ns=500 * MS, farewell_ns=500 * MS)
    trial = plan(native_folder, fault, limits)
    (middleware,) = trial.variant.middlewares
    options = {**middleware.options, "segment": "on"}
    trial = with_options(trial, options)
    outcome = run_trial(trial, directory, signals, lambda progress: None)
    names = {name: f"perflab_double_{pid}" for name, pid in pids_of(outcome).items()}
    kept = directory.read()  # written while it ran: of a trial that was killed it is all there is
    assert kept is not None
    assert {n: p.shared_memory for n, p in kept.processes.items()} == {n: (file,) for n, file in names.items()}
    assert not left_over() & set(names.values())
    killed = {"": [], "die:pong": ["pong"], "linger": ["ping", "pong"]}[fault]
    expected = [f"the middleware left shared memory behind, removed: {', '.join(sorted(names[n] for n in killed))}"]
    assert outcome.file.notes == (tuple(expected) if killed else ())


def test_shared_memory_that_nobody_had_heard_of_yet_is_removed(
    native_folder: Path, directory: TrialDirectory, signals: Signals
) -> None:
    """ping breaks off before pong's line about its endpoints is taken in."""
    trial = plan(native_folder, "bad_option:ping")
    (middleware,) = trial.variant.middlewares
    options = {**middleware.options, "segment": "on"}
    trial = with_options(trial, options)

    class Slow(Keeper):
        def write(self) -> None:
            super().write()
            deadline = time.monotonic() + 20
            records = directory.records("pong")
            while not (records.exists() and '"threads"' in records.read_text()):  # written after that line
                assert time.monotonic() < deadline
                time.sleep(0.01)
            assert f"perflab_double_{self.file.processes['pong'].pid}" in left_over()

    outcome = run_trial(trial, directory, signals, lambda progress: None, Slow(directory, trial.begun()))
    assert outcome.file.outcome == "harness_error"
    assert f"perflab_double_{pids_of(outcome)['pong']}" not in left_over()


def members(group: int) -> list[str]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] not in "ZX":
            found.append(stat.parent.name)
    return found


def test_an_interrupt_ends_the_trial_and_keeps_its_last_checkpoints(
    native_folder: Path, directory: TrialDirectory, signals: Signals
) -> None:
    def interrupt(progress: LiveProgress) -> None:
        if progress.phase == "measuring" and progress.received:
            signal.raise_signal(signal.SIGINT)

    outcome = run_trial(plan(native_folder, duration_ns=60_000 * MS), directory, signals, interrupt)
    assert (outcome.file.outcome, outcome.file.reason) == ("harness_error", "interrupted by SIGINT")
    assert isinstance(outcome.error, Interrupted)
    assert outcome.error.exit_code == 130
    assert '"final": true' in directory.records("ping").read_text()
    assert all(is_gone(pid) for pid in pids_of(outcome).values())


def test_a_second_interrupt_does_not_wait(native_folder: Path, directory: TrialDirectory, signals: Signals) -> None:
    limits = replace(SHORT, farewell_ns=600_000 * MS)
    trial = plan(native_folder, "linger", limits, duration_ns=60_000 * MS)
    timers: list[threading.Timer] = []

    def interrupt(progress: LiveProgress) -> None:
        if progress.phase == "measuring" and not timers:
            signal.raise_signal(signal.SIGINT)
            main = threading.main_thread().ident
            assert main is not None
            timers.append(threading.Timer(1.0, signal.pthread_kill, (main, signal.SIGINT)))
            timers[0].start()

    outcome = run_trial(trial, directory, signals, interrupt)
    assert outcome.file.outcome == "harness_error"
    assert all(is_gone(pid) for pid in pids_of(outcome).values())


def test_a_program_that_cannot_be_started_is_unavailable(
    tmp_path: Path, native_folder: Path, directory: TrialDirectory, signals: Signals
) -> None:
    (tmp_path / "perflab-node").write_bytes(b"\x7fELF")
    (tmp_path / "perflab-node").chmod(0o755)
    outcome = run(replace(plan(native_folder), native=Native(tmp_path)), directory, signals)
    assert isinstance(outcome.error, Unavailable)
    assert "cannot start" in str(outcome.error)
    outcome = run(replace(plan(native_folder), native=Native(tmp_path / "none")), directory, signals)
    assert isinstance(outcome.error, Unavailable)
    assert "build it with `make`" in str(outcome.error)
