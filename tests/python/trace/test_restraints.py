"""What control groups did to threads, as recording.json beside a trace has it: on events written by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from why_system import ALL, BASE, HOG, System, by_cause, parts

from perflab import models
from perflab.formats.recording import FILE, Cgroup, Frozen, Throttled
from perflab.trace import open_trace
from perflab.trace.why import why

MS = 1_000_000
TALKER, LISTENER = 10, 20


def say(folder: Path, *more: dict[str, Any], **of_group: Any) -> None:
    """Writes recording.json, as the recorder does, with times from BASE."""
    group = Cgroup(path="/sys/fs/cgroup/robot", quota_us=20_000, period_us=100_000, throttled=[], frozen=[], threads=[])
    groups = [models.as_json(replace(group, **of)) for of in (of_group, *more)]
    document = {"schema": 1, "cgroups": groups}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_text(json.dumps(document))


def throttled(before: int, after: int, ns: int, periods: int = 1) -> Throttled:
    return Throttled(before_ns=BASE + before, after_ns=BASE + after, periods=periods, ns=ns)


def preempted_listener(system: System) -> None:
    """From 2 ms to 82 ms the hog has the listener's CPU."""
    system.switch(-500, 1, 0, HOG)
    system.switch(-100, 0, 0, system.talking)
    sent = system.talk()
    system.wake(600, system.listening, by_cpu=0, cpu=1)
    system.switch(800, 0, system.talking, 0)
    system.listening.wait_for_work(BASE - 15_000)
    system.switch(1 * MS, 1, HOG, system.listening, "running")
    system.switch(2 * MS, 1, system.listening, HOG, "running")
    system.switch(82 * MS, 1, HOG, system.listening, "running")
    system.listening.get_next_ready(BASE + 82 * MS + 100)
    system.listening.execute(BASE + 82 * MS + 150, system.subscription)
    system.listen(sent, 82 * MS + 200)


def test_a_wait_while_the_group_was_throttled_is_the_quota_s(tmp_path: Path) -> None:
    """Although another one has the CPU meanwhile."""
    system = System()
    preempted_listener(system)
    say(tmp_path, threads=[LISTENER], throttled=[throttled(75 * MS, 85 * MS, 80 * MS)])
    answer = system.why(tmp_path)
    assert by_cause(answer)["throttled"] == 80 * MS
    assert by_cause(answer)["cpu"] == 1 * MS - 600
    assert answer.section("messages").frame["main"].to_list() == ["listener (pid 20) held back by a CPU quota"]
    sentence = answer.section("why").frame["sentence"][0]
    assert "1 waited while listener (pid 20) was held back by a CPU quota" in sentence


@pytest.mark.parametrize(
    "of_group",
    [
        {"threads": [99], "throttled": [throttled(75 * MS, 85 * MS, 80 * MS)]},  # not its group
        {"threads": [LISTENER], "throttled": [throttled(200 * MS, 210 * MS, 80 * MS)]},  # later
        {"threads": [LISTENER], "throttled": []},
    ],
)
def test_a_wait_that_no_quota_caused_is_of_who_had_the_cpu(tmp_path: Path, of_group: dict[str, Any]) -> None:
    system = System()
    preempted_listener(system)
    say(tmp_path, **of_group)
    causes = by_cause(system.why(tmp_path))
    assert "throttled" not in causes
    assert causes["cpu"] == 81 * MS - 600


def test_a_wait_that_was_over_before_the_group_was_let_go_is_no_quota_s(tmp_path: Path) -> None:
    """Another CPU's threads of the group were held back."""
    system = System()
    preempted_listener(system)
    say(tmp_path, threads=[LISTENER], throttled=[throttled(90 * MS, 110 * MS, 90 * MS)])
    assert "throttled" not in by_cause(system.why(tmp_path))


@pytest.mark.parametrize(("ns", "quota"), [(1 * MS, 1 * MS), (30 * MS, 30 * MS), (500 * MS, 80 * MS)])
def test_a_quota_has_no_more_of_a_wait_than_it_held_the_group(tmp_path: Path, ns: int, quota: int) -> None:
    system = System()
    preempted_listener(system)
    say(tmp_path, threads=[LISTENER], throttled=[throttled(75 * MS, 95 * MS, ns, periods=9)])
    causes = by_cause(system.why(tmp_path))
    assert causes["throttled"] == quota
    assert causes["throttled"] + causes["cpu"] == 81 * MS - 600


def test_the_kernel_sums_over_cpus_and_on_each_it_is_a_period_at_a_time(tmp_path: Path) -> None:
    system = System()
    preempted_listener(system)
    say(tmp_path, period_us=10_000, threads=[LISTENER], throttled=[throttled(75 * MS, 95 * MS, 60 * MS)])
    assert by_cause(system.why(tmp_path))["throttled"] == 10 * MS


def test_groups_within_groups_hold_a_thread_once(tmp_path: Path) -> None:
    """A long and a short one, and the rest of the long one after it."""
    system = System()
    preempted_listener(system)
    long = Frozen(before_ns=BASE, first_ns=BASE + 1, last_ns=BASE + 84 * MS, after_ns=BASE + 85 * MS)
    say(
        tmp_path,
        {"threads": [LISTENER], "throttled": [throttled(75 * MS, 85 * MS, 20 * MS)]},
        {"threads": [LISTENER], "frozen": [long]},
        threads=[LISTENER],
        throttled=[throttled(75 * MS, 85 * MS, 60 * MS)],
    )
    assert by_cause(system.why(tmp_path))["throttled"] == 60 * MS


def test_a_frozen_listener(tmp_path: Path) -> None:
    """Version 2: a sleep like any other, of which the recording knows better. Frozen from 5 to 55 ms."""
    system = System()
    system.switch(-100, 0, 0, system.talking)
    system.listening.wait_for_work(BASE - 15_000)
    system.wake(-50, system.listening, by_cpu=0, cpu=1)
    system.switch(-20, 1, 0, system.listening)
    system.switch(-10, 1, system.listening, 0)
    sent = system.talk()
    system.switch(800, 0, system.talking, 0)
    system.switch(55 * MS - 100, 3, 0, HOG)
    system.wake(55 * MS, system.listening, by_cpu=3, cpu=1)
    system.switch(55 * MS + 50, 1, 0, system.listening)
    system.listening.get_next_ready(BASE + 55 * MS + 100)
    system.listening.execute(BASE + 55 * MS + 150, system.subscription)
    system.listen(sent, 55 * MS + 200)
    frozen = Frozen(before_ns=BASE - 5 * MS, first_ns=BASE + 5 * MS, last_ns=BASE + 50 * MS, after_ns=BASE + 60 * MS)
    say(tmp_path, threads=[LISTENER], frozen=[frozen])
    answer = system.why(tmp_path)
    assert by_cause(answer)["frozen"] > 54 * MS
    assert "on_the_way" not in by_cause(answer)
    assert answer.section("messages").frame["main"].to_list() == ["listener (pid 20) in a frozen cgroup"]


def test_a_frozen_sender_did_not_sleep_past_its_tick(tmp_path: Path) -> None:
    system = System()
    system.wake(-9_500, system.talking, by_cpu=3, cpu=0)
    system.switch(-9_400, 0, 0, system.talking)
    system.switch(-9_300, 0, system.talking, 0)
    system.kernel().switch(BASE - 250, 3, 0, HOG)
    system.wake(-200, system.talking, by_cpu=3, cpu=0)
    system.switch(-100, 0, 0, system.talking)
    sent = system.talk(due=-5_000)
    system.switch(800, 0, system.talking, 0)
    system.listen(sent, 5_200)
    frozen = Frozen(before_ns=BASE - 9_350, first_ns=BASE - 9_000, last_ns=BASE - 300, after_ns=BASE - 150)
    say(tmp_path, threads=[TALKER], frozen=[frozen])
    found = parts(system.why(tmp_path))
    assert ("sender", "frozen", "talker (talker 10)", 5_000 - 200) in found
    assert "timer_late" not in {cause for _, cause, _, _ in found}


def test_a_sleep_that_was_frozen_for_a_while_is_ended_by_the_message(tmp_path: Path) -> None:
    """A freezer of version 1 marks who sleeps where it sleeps, and after the thaw it sleeps on."""
    system = System()
    system.switch(-100, 0, 0, system.talking)
    sent = system.talk()
    system.switch(800, 0, system.talking, 0)
    system.switch(30 * MS - 300, 2, 0, system.receiving)
    system.listening.wait_for_work(BASE - 15_000)
    system.wake(30 * MS, system.listening, by_cpu=2, cpu=1)
    system.switch(30 * MS + 50, 1, 0, system.listening)
    system.switch(30 * MS + 60, 2, system.receiving, 0)
    system.listening.get_next_ready(BASE + 30 * MS + 100)
    system.listening.execute(BASE + 30 * MS + 150, system.subscription)
    system.listen(sent, 30 * MS + 200)
    bare = by_cause(system.why(tmp_path / "bare"))
    frozen = Frozen(before_ns=BASE - 9_000, first_ns=BASE - 8_000, last_ns=BASE - 7_000, after_ns=BASE - 6_000)
    say(tmp_path / "told", threads=[LISTENER], frozen=[frozen])
    assert by_cause(system.why(tmp_path / "told")) == bare
    assert max(bare.values()) > 29 * MS and "blocked" not in bare


def test_a_recording_is_found_from_the_folder_above_it_and_from_a_part_of_it(tmp_path: Path) -> None:
    system = System()
    preempted_listener(system)
    folder = tmp_path / "trial" / "trace"
    trace = system.trace.write(folder)
    say(folder, threads=[LISTENER], throttled=[throttled(75 * MS, 85 * MS, 80 * MS)])
    for path in (tmp_path, tmp_path / "trial", trace):
        with open_trace([path]) as opened_trace:
            assert by_cause(why(opened_trace, ALL))["throttled"] == 80 * MS, path


@pytest.mark.parametrize("offset_ns", [0, 10**18])
def test_a_clock_may_have_any_offset(tmp_path: Path, offset_ns: int) -> None:
    system = System(epoch_offset_ns=offset_ns)
    preempted_listener(system)
    say(tmp_path, threads=[LISTENER], throttled=[throttled(75 * MS, 85 * MS, 80 * MS)])
    assert by_cause(system.why(tmp_path))["throttled"] == 80 * MS


@pytest.mark.parametrize("text", ["", "[]", '{"cgroups": 3}', '{"cgroups": [{"path": 1}]}', '{"schema": 1}'])
def test_a_recording_that_says_nothing_of_groups_changes_nothing(tmp_path: Path, text: str) -> None:
    system = System()
    preempted_listener(system)
    (tmp_path / FILE).write_text(text)
    assert by_cause(system.why(tmp_path))["cpu"] == 81 * MS - 600
