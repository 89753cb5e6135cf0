"""cpu_load and how the demand for CPUs is judged, on made monitor data and processes that only sleep."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from made_trial import INTERVAL_NS, MadeCompanion, MadeMonitor, MadeTrial, S, graph_of

from perflab.condition import NotInEffect, Window, stress_ng
from perflab.condition import cpu_demand as demand
from perflab.condition import cpu_load as module
from perflab.condition import evidence as evidence_module
from perflab.condition.cpu_load import KIND, CpuLoad
from perflab.condition.evidence import differing
from perflab.condition.stress_ng import Load
from perflab.errors import BadInput, Interrupted, Unavailable
from perflab.host import Host
from perflab.models import as_json

WINDOW = Window(S, 4 * S)  # parts 1..2, 2..3 and 3..4 s


def judged(tmp_path: Path, share: float = 0.5, **samples: Any) -> tuple[dict[str, Any], str | None]:
    monitor = MadeMonitor(tmp_path / "m.jsonl").thread("load", 11).thread("load", 12).samples(51, **samples)
    use, reason = demand.judge(MadeTrial(tmp_path, monitor.reader()), "load", [11, 12], (0, 1), share, WINDOW)
    return as_json(use), reason


def test_threads_that_run_their_share_are_in_effect(tmp_path: Path) -> None:
    achieved, reason = judged(tmp_path, cpu=lambda tid, i: 0.5)
    assert reason is None
    assert achieved["cpus_used"] == pytest.approx(1.0)
    assert achieved["cpus_used_by_part"] == pytest.approx([1.0, 1.0, 1.0])
    assert achieved["capacity_cpus"] == pytest.approx(1.0 + 0.5 * 2)


def test_threads_that_wait_for_a_cpu_want_it_as_much_as_those_that_run(tmp_path: Path) -> None:
    achieved, reason = judged(tmp_path, cpu=lambda tid, i: 0.1, delay=lambda tid, i: 0.4, idle=0.0)
    assert reason is None
    assert achieved["cpus_used"] == pytest.approx(0.2)
    assert achieved["cpus_wanted"] == pytest.approx(1.0)


def test_full_cpus_do_not_excuse_a_load_that_sleeps(tmp_path: Path) -> None:
    _, reason = judged(tmp_path, cpu=lambda tid, i: 0.1, delay=lambda tid, i: 0.0, idle=0.0)
    assert reason == "thread 11 of it wanted 10% of a CPU instead of 50% in part 1 of 3 of the measured time"


def test_one_sleeping_thread_is_not_hidden_by_the_others(tmp_path: Path) -> None:
    _, reason = judged(tmp_path, cpu=lambda tid, i: 0.9 if tid == 11 else 0.1)
    assert reason is not None
    assert reason.startswith("thread 12 of it wanted 10%")


def test_a_load_that_died_in_the_middle_is_seen(tmp_path: Path) -> None:
    _, reason = judged(tmp_path, cpu=lambda tid, i: 0.5 if i <= 20 or i > 30 else 0.0)
    assert reason is not None
    assert "part 2 of 3" in reason


def test_a_weak_load_is_seen_over_the_whole(tmp_path: Path) -> None:
    _, reason = judged(tmp_path, cpu=lambda tid, i: 0.5 * (1 - demand.TOLERANCE) - 0.02)
    assert reason is not None
    assert "part" not in reason
    _, reason = judged(tmp_path, cpu=lambda tid, i: 0.5 * (1 - demand.TOLERANCE) + 0.02)
    assert reason is None


@pytest.mark.parametrize(("seconds", "enough"), [(0.35, True), (3.0, False)])
def test_one_slice_may_lie_outside_of_a_short_time(tmp_path: Path, seconds: float, enough: bool) -> None:
    """At 10 % and slices of 10 ms, 350 ms have three slices at least, 8.6 %; with one cut short, 7 %."""
    monitor = MadeMonitor(tmp_path / "m.jsonl").thread("load", 11).samples(51, cpu=lambda tid, i: 0.07)
    trial, window = MadeTrial(tmp_path, monitor.reader()), Window(S, S + round(seconds * S))
    _, reason = demand.judge(trial, "load", [11], (0, 1), 0.1, window, slice_s=0.01)
    assert (reason is None) == enough
    assert demand.judge(trial, "load", [11], (0, 1), 0.1, window)[1] is not None


@pytest.mark.parametrize("share", [0.01, 0.02])
@pytest.mark.parametrize("seconds", [0.5, 1.0, 3.0])
def test_a_small_load_that_sleeps_is_seen_in_a_short_time(tmp_path: Path, share: float, seconds: float) -> None:
    monitor = MadeMonitor(tmp_path / "m.jsonl").thread("load", 11).samples(51, cpu=lambda tid, i: 0.0)
    trial, window = MadeTrial(tmp_path, monitor.reader()), Window(S, S + round(seconds * S))
    assert demand.judge(trial, "load", [11], (0, 1), share, window, slice_s=0.01)[1] is not None


@pytest.mark.parametrize(
    ("used", "idle", "reason"),
    [
        (0.5, 0.5, None),
        (0.5, 0.0, None),
        (
            0.1,
            0.0,
            "it used 0.20 CPUs instead of 1.00; whether it wanted more is unknown, since the kernel gives no run "
            "delay and the CPUs were full in part 1 of 3 of the measured time",
        ),
        (0.3, 0.3, "it used 0.60 CPUs, but 1.00 were due"),
        (0.3, 0.1, "it used 0.60 CPUs, but 0.80 were due"),
        (0.0, 0.0, "thread 11 of it used no CPU time in part 1 of 3 of the measured time"),
    ],
)
def test_without_run_delay_cpu_time_is_held_against_what_could_be_had(
    tmp_path: Path, used: float, idle: float, reason: str | None
) -> None:
    achieved, said = judged(tmp_path, cpu=lambda tid, i: used, delay=lambda tid, i: None, idle=idle)
    assert achieved["cpus_wanted"] is None
    assert said == reason


def test_a_thread_that_the_monitor_never_saw_wanted_nothing(tmp_path: Path) -> None:
    monitor = MadeMonitor(tmp_path / "m.jsonl").thread("load", 11).samples(51, cpu=lambda tid, i: 0.5)
    trial = MadeTrial(tmp_path, monitor.reader())
    assert demand.judge(trial, "load", [11, 99], (0, 1), 0.5, WINDOW)[1] is not None
    assert demand.judge(trial, "load", [], (0, 1), 0.5, WINDOW)[1] == "it has no threads"


def test_a_moved_thread_is_named_with_the_time(tmp_path: Path) -> None:
    monitor = MadeMonitor(tmp_path / "m.jsonl").thread("load", 11, cpus=[1]).thread("load", 11, at=25, cpus=[0, 1])
    trial = MadeTrial(tmp_path, monitor.samples(51).reader())
    said = differing(trial, "load", WINDOW, {11: {"cpus": (1,)}}, "stress-ng")
    assert said == "thread 11 of stress-ng had cpus 0,1 instead of 1, 1.5 s into the measured time"
    assert differing(trial, "load", Window(S, 2 * S), {11: {"cpus": (1,)}}, "stress-ng") is None


# -- the condition ---------------------------------------------------------------------------------------------------


@pytest.fixture
def load_program(tmp_path: Path) -> Iterator[Callable[[int], subprocess.Popen[bytes]]]:
    """Starts a program with children that are called as stress-ng's workers are, and only sleep."""
    worker = tmp_path / "stress-ng-cpu"
    shutil.copy(shutil.which("sleep") or "/bin/sleep", worker)
    started: list[subprocess.Popen[bytes]] = []

    def start(workers: int) -> subprocess.Popen[bytes]:
        script = " ".join(f"{worker} 600 &" for _ in range(workers))
        started.append(subprocess.Popen(["sh", "-c", f"{script} wait"], start_new_session=True))
        return started[-1]

    yield start
    for program in started:
        os.killpg(program.pid, 9)
        program.wait()


@pytest.fixture(autouse=True)
def stress_ng_of_a_machine_that_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stress_ng, "find", lambda: Path("/usr/bin/stress-ng"))
    monkeypatch.setattr(stress_ng, "version", lambda: "0.15.06")
    monkeypatch.setattr(module, "cpu_methods", lambda: ("matrixprod", "fft"))


def made(**parameters: Any) -> CpuLoad:
    condition = KIND.make(parameters, "cpu_load")
    assert isinstance(condition, CpuLoad)
    return condition


def running(tmp_path: Path, program: subprocess.Popen[bytes], condition: CpuLoad) -> tuple[MadeTrial, Load]:
    """A trial in which the condition began and its workers were found."""
    trial = MadeTrial(tmp_path, MadeMonitor(tmp_path / "m.jsonl").reader(), MadeCompanion("cpu_load", program.pid))
    workers = condition.begin(trial)
    workers.find_workers()
    return trial, workers


def watched(tmp_path: Path, workers: Load, trial: MadeTrial, **samples: Any) -> None:
    monitor = MadeMonitor(tmp_path / "m.jsonl")
    for tid in workers.threads:
        monitor.thread("cpu_load", tid, cpus=list(workers.asked.bound_to or ()))
    trial.monitor = monitor.samples(51, **samples).reader()
    workers.note_scheduling()


def test_the_program_gets_what_was_asked(
    tmp_path: Path, load_program: Callable[[int], subprocess.Popen[bytes]]
) -> None:
    trial, _ = running(tmp_path, load_program(1), made(workers=1, load="30%", cpus="0", method="fft"))
    words = trial.commands[0]
    assert words[:3] == ["/usr/bin/stress-ng", "--cpu", "1"]
    for option, value in (("--cpu-load", "30"), ("--cpu-method", "fft"), ("--taskset", "0"), ("--timeout", "0")):
        assert words[words.index(option) + 1] == value


def test_evidence_of_a_good_trial(tmp_path: Path, load_program: Callable[[int], subprocess.Popen[bytes]]) -> None:
    trial, workers = running(tmp_path, load_program(2), made(workers=2, load=40))
    watched(tmp_path, workers, trial, cpu=lambda tid, i: 0.4)
    evidence = as_json(workers.verify(WINDOW))
    assert evidence["in_effect"], evidence
    assert evidence["promised"]["demand_cpus"] == pytest.approx(0.8)
    assert evidence["achieved"]["workers_alive"] == 2
    assert evidence["achieved"]["cpus_used_by_part"] == pytest.approx([0.8, 0.8, 0.8])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"policy": "IDLE"}, "policy IDLE instead of OTHER"),
        ({"nice": 19}, "nice 19 instead of 0"),
        ({"policy": "FIFO", "priority": 3}, "policy FIFO instead of OTHER"),
    ],
)
def test_a_worker_that_is_scheduled_otherwise_is_named(
    tmp_path: Path, load_program: Callable[[int], subprocess.Popen[bytes]], change: dict[str, Any], said: str
) -> None:
    trial, workers = running(tmp_path, load_program(1), made(workers=1, load=40))
    watched(tmp_path, workers, trial, cpu=lambda tid, i: 0.4)
    assert as_json(workers.verify(WINDOW))["in_effect"]
    (worker,) = workers.threads
    monitor = MadeMonitor(tmp_path / "m.jsonl").thread("cpu_load", worker, cpus=list(workers.asked.bound_to or ()))
    monitor.thread("cpu_load", worker, at=25, cpus=list(workers.asked.bound_to or ()), **change)
    monitor.thread("cpu_load", worker, at=27, cpus=list(workers.asked.bound_to or ()))
    trial.monitor = monitor.samples(51, cpu=lambda tid, i: 0.4).reader()
    reason = as_json(workers.verify(WINDOW))["reason"]
    assert reason == f"thread {worker} of stress-ng had {said}, 1.5 s into the measured time"
    workers.scheduling.clear()
    reason = as_json(workers.verify(WINDOW))["reason"]
    assert reason == f"the scheduling policy of worker {worker} of stress-ng was not recorded before the measured time"


@pytest.mark.parametrize(
    ("window", "missed", "reason", "gap_s"),
    [
        (WINDOW, (20, 23), None, 0.4),
        (WINDOW, (20, 29), None, 1.0),
        (WINDOW, (20, 31), "the monitor took no sample of cpu_load for 1.2 s", 1.2),
        (Window(S, 2 * S), (12, 16), None, 0.5),
        (Window(S, 2 * S), (12, 18), "the monitor took no sample of cpu_load for 0.7 s", 0.7),
        (Window(S, S + 6 * INTERVAL_NS), (11, 14), "the monitor took no sample of cpu_load for 0.4 s", 0.4),
    ],
)
def test_what_the_monitor_did_not_look_at_is_not_known(
    tmp_path: Path,
    load_program: Callable[[int], subprocess.Popen[bytes]],
    window: Window,
    missed: tuple[int, int],
    reason: str | None,
    gap_s: float,
) -> None:
    trial, workers = running(tmp_path, load_program(1), made(workers=1, load=40))
    first, behind = missed
    watched(tmp_path, workers, trial, cpu=lambda tid, i: 0.4, missed=lambda i: first <= i < behind)
    evidence = as_json(workers.verify(window))
    assert evidence["reason"] == reason
    assert evidence["achieved"]["monitor_gap_s"] == pytest.approx(gap_s)


@pytest.mark.parametrize(
    ("interval_ms", "window_s", "limit_s"),
    [(10, 10, 1.0), (100, 10, 1.0), (300, 10, 1.5), (5000, 60, 2.0), (100, 1, 0.5), (100, 0.6, 0.3)],
)
def test_how_long_the_monitor_may_look_away(interval_ms: int, window_s: float, limit_s: float) -> None:
    window = Window(0, round(window_s * S))
    assert evidence_module._gap_limit_s(interval_ms * 1_000_000, window) == pytest.approx(limit_s)


def test_a_load_without_a_cpu_in_common_with_the_workload_is_noted(
    tmp_path: Path, load_program: Callable[[int], subprocess.Popen[bytes]]
) -> None:
    trial, workers = running(tmp_path, load_program(1), made(workers=1, load=40, cpus="0"))
    watched(tmp_path, workers, trial, cpu=lambda tid, i: 0.4)
    trial.processes = {"a": 1, "b": 2}
    trial.launch.cpus_of["a"] = trial.launch.cpus_of["b"] = frozenset({1})
    evidence = as_json(workers.verify(WINDOW))
    assert evidence["note"] == "the load and the workload have no CPU in common"
    trial.launch.cpus_of["b"] = frozenset({0, 1})
    evidence = as_json(workers.verify(WINDOW))
    assert (evidence["note"], evidence["achieved"]["cpus_shared_with_workload"]) == (None, [0])


def test_a_worker_that_ended_is_seen_although_its_mean_is_right(
    tmp_path: Path, load_program: Callable[[int], subprocess.Popen[bytes]]
) -> None:
    trial, workers = running(tmp_path, load_program(2), made(workers=2, load=40))
    watched(tmp_path, workers, trial, cpu=lambda tid, i: 0.4)
    victim = workers.threads[0]
    os.kill(victim, 9)
    limit_s = time.monotonic() + 20
    while workers.alive == 2 and time.monotonic() < limit_s:
        time.sleep(0.01)
    evidence = as_json(workers.verify(WINDOW))
    assert evidence["in_effect"] is False
    assert evidence["reason"] == f"worker {victim} of stress-ng ended during the trial"


def test_a_killed_program_is_named(tmp_path: Path, load_program: Callable[[int], subprocess.Popen[bytes]]) -> None:
    trial, workers = running(tmp_path, load_program(1), made(workers=1, load=40))
    watched(tmp_path, workers, trial, cpu=lambda tid, i: 0.4)
    assert trial.companion is not None
    trial.companion.status = -9
    assert as_json(workers.verify(WINDOW))["reason"] == "stress-ng was killed by SIGKILL during the trial"


def test_a_monitor_that_ended_early_is_no_proof(
    tmp_path: Path, load_program: Callable[[int], subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perflab.condition.evidence.MONITOR_LIMIT_S", 0.1)
    trial, workers = running(tmp_path, load_program(1), made(workers=1, load=40))
    watched(tmp_path, workers, trial, cpu=lambda tid, i: 0.4)
    reason = as_json(workers.verify(Window(S, S + 50 * INTERVAL_NS)))["reason"]
    assert reason == "the monitor ended 1.00 s too early: part of the measured time is unknown"


def test_too_few_workers_do_not_settle(
    tmp_path: Path, load_program: Callable[[int], subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stress_ng, "wait_until", lambda trial, problem: _fail(problem()))
    with pytest.raises(NotInEffect, match=r"stress-ng has [01] workers? instead of 3"):
        running(tmp_path, load_program(1), made(workers=3))


def _fail(reason: str | None) -> None:
    if reason is not None:
        raise NotInEffect(reason)


def test_remove_ends_it_once_and_takes_its_folder_away(
    tmp_path: Path, load_program: Callable[[int], subprocess.Popen[bytes]]
) -> None:
    trial, workers = running(tmp_path, load_program(1), made(workers=1))
    assert (tmp_path / "cpu_load" / "temporary").is_dir()
    workers.remove()
    assert trial.companion is not None
    assert trial.companion.stopped == 1
    assert not (tmp_path / "cpu_load").exists()


def test_an_interrupt_while_it_ends_leaves_no_folder(
    tmp_path: Path, load_program: Callable[[int], subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted() -> None:
        raise Interrupted(signal.SIGINT)

    _, workers = running(tmp_path, load_program(1), made(workers=1))
    monkeypatch.setattr(workers.companion, "stop", interrupted)
    with pytest.raises(Interrupted):
        workers.remove()
    assert not (tmp_path / "cpu_load").exists()


def test_a_program_that_cannot_be_started_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> MadeCompanion:
        assert (tmp_path / "cpu_load" / "temporary").is_dir()
        raise Unavailable("stress-ng cannot be executed")

    trial = MadeTrial(tmp_path, MadeMonitor(tmp_path / "m.jsonl").reader())
    monkeypatch.setattr(trial, "start", refuse)
    with pytest.raises(Unavailable, match="cannot be executed"):
        made().begin(trial)
    assert not (tmp_path / "cpu_load").exists()


@pytest.mark.parametrize(
    ("parameters", "line"),
    [
        ({"load": 0}, "cpu_load: load: 0% must be at least 1%"),
        ({"load": 101}, "cpu_load: load: 101% must be at most 100%"),
        ({"workers": 0}, "cpu_load: workers: 0 must be at least 1"),
        ({"worker": 2}, "cpu_load: no parameter 'worker'; did you mean workers?"),
        ({"cpus": "a"}, "cpu_load: cpus: 'a' is not a list of CPUs like 0,2-3"),
    ],
)
def test_bad_parameters_are_one_line(parameters: dict[str, Any], line: str) -> None:
    with pytest.raises(BadInput) as raised:
        made(**parameters)
    assert str(raised.value) == line


def test_what_this_machine_or_stress_ng_does_not_have_is_refused() -> None:
    with pytest.raises(BadInput, match="cpu_load: cpus 4095, but this machine allows CPU"):
        made(cpus="4095").check(Host(), graph_of("a"), "dds")
    with pytest.raises(BadInput, match="method 'nonsense' is not one of stress-ng's: matrixprod, fft"):
        made(method="nonsense").check(Host(), graph_of("a"), "dds")
    with pytest.raises(BadInput, match="the virtual runtime has no processes"):
        made().check(Host(), graph_of("a"), "virtual")
    made().check(Host(), graph_of("a"), "dds")


def test_without_stress_ng_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("PATH", "/nowhere")
    stress_ng.cpu_methods.cache_clear()
    with pytest.raises(Unavailable, match="install it with: apt-get install stress-ng"):
        made().check(Host(), graph_of("a"), "dds")


def test_defaults_are_filled_in() -> None:
    allowed = sorted(os.sched_getaffinity(0))
    assert made().parameters == {"workers": len(allowed), "load": 100.0, "method": "matrixprod", "cpus": allowed}


@pytest.mark.parametrize(
    "refusal",
    [
        "cpu-method must be one of: all fft matrixprod\n",
        "option cpu-method choice 'which' not known, choices are: all fft matrixprod\n",
    ],
    ids=["0.15", "0.19"],
)
def test_methods_are_those_that_the_refusal_of_a_wrong_one_names(refusal: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stress_ng.cpu_methods.cache_clear()
    monkeypatch.setattr(stress_ng, "_said", lambda *arguments: refusal)
    assert stress_ng.cpu_methods() == ("all", "fft", "matrixprod")
    stress_ng.cpu_methods.cache_clear()
