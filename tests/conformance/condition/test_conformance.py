"""Every condition, applied for real: it takes effect, says so, leaves nothing, and sees every sabotage.

pytest tests/conformance/condition
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from perflab import native, registry
from perflab.condition import BEFORE, Applied, Condition, Window, temporary
from perflab.condition.kinds import REGISTRY
from perflab.errors import Unavailable
from perflab.host import Host
from perflab.models import as_json
from perflab.processes import Process
from tests.conformance.condition.case import Case
from tests.conformance.condition.cases import CASES, realtime_limits, sysctl
from tests.conformance.condition.real_trial import RealTrial, graph
from tests.marks import long_but

pytestmark = [pytest.mark.native, pytest.mark.alone, pytest.mark.timeout(180)]

WINDOW_S = 2.2
BEFORE_SABOTAGE_S = 0.7
# Of each kind of condition the first case, and of it the first sabotage.
QUICK = list({case.name: case for case in reversed(CASES)}.values())
SABOTAGES = [(case, what) for case in CASES for what in case.sabotages]
KILLED_WITH_PERFLAB = (
    "cpu_load:workers=2,load=10",
    "io_load:bytes=1MiB",
    "memory_pressure:bytes=16MiB,access=hold",
    "network_shaping:rate=10Mbit",
    "priority_inhibitor:policy=FIFO,priority=5,load=10",
    next(case.word for case in CASES if case.name == "sysctl"),
    "realtime_limits:throttling=off",
)
LEFT_LIMIT_S = 30.0


def made(case: Case) -> Condition:
    """Raises a skip where this machine cannot do it."""
    word = f"{case.word},cpus={max(os.sched_getaffinity(0))}" if case.last_cpu else case.word
    name, parameters = registry.split(word, "case")
    condition: Condition = REGISTRY[name].make(parameters, word)
    try:
        for program in ("perflab-guard", "perflab-monitor"):
            native.find().program(program)
        condition.check(Host(), graph(), "dds")
    except Unavailable as error:
        pytest.skip(str(error))
    return condition


@contextmanager
def settled(condition: Condition, directory: Path) -> Iterator[tuple[RealTrial, Applied]]:
    """A trial with the condition in effect, removed on leaving."""
    with RealTrial(directory) as trial:
        applied = condition.begin(trial) if condition.begins == BEFORE else None
        try:
            trial.start_workload()
            applied = applied or condition.begin(trial)
            applied.settle()
            yield trial, applied
        finally:
            if applied is not None:
                applied.remove()


def judged(applied: Applied, trial: RealTrial, act: Callable[[], None] | None = None) -> dict[str, Any]:
    begin_ns = time.monotonic_ns()
    trial.wait(BEFORE_SABOTAGE_S)
    if act is not None:
        act()
    trial.wait(max(0.0, WINDOW_S - (time.monotonic_ns() - begin_ns) / 1e9))
    return dict(as_json(applied.verify(Window(begin_ns, time.monotonic_ns()))))


@pytest.mark.parametrize("case", long_but(QUICK, CASES), ids=lambda case: case.word)
def test_is_in_effect_on_a_good_trial_and_leaves_nothing(case: Case, tmp_path: Path) -> None:
    condition = made(case)
    with settled(condition, tmp_path) as (trial, applied):
        evidence = judged(applied, trial)
        tasks = _tasks(trial, condition.label)
        namespace = _namespace(trial, condition.label)
        assert evidence["in_effect"], json.dumps(evidence)
        assert evidence["reason"] is None
        assert set(case.achieved) <= set(evidence["achieved"]), sorted(evidence["achieved"])
        assert evidence["promised"]
        assert json.loads(json.dumps(evidence, allow_nan=False)) == json.loads(json.dumps(evidence))
        for name in trial.processes:
            trial.companions[f"workload_{name}"].stop(0.0)
        applied.remove()
        applied.remove()
        assert not [t for t in tasks if t.alive]
        left = [p.name for p in tmp_path.rglob("*") if p.suffix not in (".log", ".jsonl")]
        assert not left
        assert sysctl.is_set_back() and realtime_limits.is_set_back()
        if namespace is not None:
            assert namespace not in _all_namespaces()


@pytest.mark.parametrize(
    ("case", "what"),
    long_but([(case, next(iter(case.sabotages))) for case in QUICK if case.sabotages], SABOTAGES),
    ids=lambda value: value.word if isinstance(value, Case) else value,
)
def test_a_sabotage_is_seen(case: Case, what: str, tmp_path: Path) -> None:
    sabotage = case.sabotages[what]
    if len(os.sched_getaffinity(0)) < sabotage.needs_cpus:
        pytest.skip(f"needs {sabotage.needs_cpus} CPUs")
    condition = made(case)
    with settled(condition, tmp_path) as (trial, applied):
        tasks = _tasks(trial, condition.label)
        evidence = judged(applied, trial, lambda: sabotage.act(trial, condition.label))
        assert evidence["in_effect"] is False, json.dumps(evidence)
        assert re.search(sabotage.reason, evidence["reason"]), evidence["reason"]
        assert "\n" not in evidence["reason"]
        applied.remove()
        assert not [t for t in tasks if t.alive]
        assert sysctl.is_set_back() and realtime_limits.is_set_back()


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.word)
def test_serves_a_second_trial(case: Case, tmp_path: Path) -> None:
    condition = made(case)
    for number in (1, 2):
        directory = tmp_path / str(number)
        directory.mkdir()
        with settled(condition, directory) as (trial, applied):
            evidence = judged(applied, trial)
            assert evidence["in_effect"], json.dumps(evidence)


@pytest.mark.parametrize("word", long_but(KILLED_WITH_PERFLAB[:1], KILLED_WITH_PERFLAB))
def test_a_killed_perflab_leaves_nothing_that_cannot_be_found(word: str, tmp_path: Path) -> None:
    made(Case(word, ()))
    source = Path(__file__).resolve().parents[3]
    command: list[str | Path] = [sys.executable, Path(__file__).with_name("hold.py"), word, tmp_path]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=source, env=environment) as holder:
        assert holder.stdout is not None
        line = holder.stdout.readline()
        holder.kill()
    tasks = [Process(pid, start_ticks) for pid, start_ticks in json.loads(line)]
    assert tasks
    limit_s = time.monotonic() + LEFT_LIMIT_S
    while (left := [t for t in tasks if t.alive]) and time.monotonic() < limit_s:
        time.sleep(0.05)
    assert not left
    assert sysctl.is_set_back() and realtime_limits.is_set_back()
    temporary.remove_left_over(tmp_path)
    assert not [p.name for p in tmp_path.rglob("*") if p.suffix not in (".log", ".jsonl")]


def test_a_workload_outside_the_namespace_is_seen(tmp_path: Path) -> None:
    condition = made(Case("network_shaping:rate=10Mbit", ()))
    with RealTrial(tmp_path) as trial:
        applied = condition.begin(trial)
        try:
            trial.launch.prefix = ()
            trial.start_workload()
            applied.settle()
            evidence = judged(applied, trial)
            assert evidence["reason"] == "process 'listener' of the workload is not in the shaped network namespace"
        finally:
            applied.remove()


def test_a_workload_that_was_not_pinned_is_seen(tmp_path: Path) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs 2 CPUs")
    condition = made(Case("cpu_pinning:count=1,processes=listener", ()))
    with RealTrial(tmp_path) as trial:
        applied = condition.begin(trial)
        trial.launch.cpus_of.clear()
        trial.start_workload()
        evidence = judged(applied, trial)
        assert re.search("of process 'listener' could run on CPUs", evidence["reason"])


@pytest.mark.parametrize("busy", long_but([1.0], [0.3, 1.0]))
def test_a_load_that_the_workload_squeezes_is_in_effect(busy: float, tmp_path: Path) -> None:
    """The workload's four busy threads leave it little of its CPU: it wants its share nevertheless."""
    cpu = max(os.sched_getaffinity(0))
    load = made(Case(f"cpu_load:workers=1,load=50,cpus={cpu}", ()))
    pinning = made(Case(f"cpu_pinning:cpus={cpu}", ()))
    with RealTrial(tmp_path) as trial:
        loading = load.begin(trial)
        try:
            pinning.begin(trial)
            trial.start_workload("--busy", str(busy))
            loading.settle()
            evidence = judged(loading, trial)
            assert evidence["in_effect"], json.dumps(evidence)
            assert evidence["achieved"]["cpus_shared_with_workload"] == [cpu]
        finally:
            loading.remove()


def test_every_condition_is_in_the_suite() -> None:
    assert {case.name for case in CASES} == set(REGISTRY) - {"message_flood", "crash", "second_instance"}, (
        "which need a graph"
    )


def _tasks(trial: RealTrial, label: str) -> list[Process]:
    return trial.tasks(label) if label in trial.companions else []


def _namespace(trial: RealTrial, label: str) -> int | None:
    if label != "network_shaping":
        return None
    return Path(f"/proc/{trial.companions[label].pid}/ns/net").stat().st_ino


def _all_namespaces() -> set[int]:
    found: set[int] = set()
    for entry in Path("/proc").glob("[0-9]*/ns/net"):
        try:
            found.add(entry.stat().st_ino)
        except OSError:  # ended meanwhile
            continue
    return found
