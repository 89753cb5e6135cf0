"""The parts of a message add up to its time, whatever happened: on random traces, and on recorded ones."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from made_trace import Kernel, MadeTrace, Process, Thread
from opened import needs_library, opened
from reference_traces import RECORDED, reference_trace
from why_system import assert_conserved

from perflab import models
from perflab.formats.recording import FILE, Cgroup, Frozen, Throttled
from perflab.trace import open_trace
from perflab.trace.quality import quality_of
from perflab.trace.source import NativeTrace
from perflab.trace.why import Selection, considered, why
from perflab.trace.why_path import Messages, Role, as_messages, stretches_of
from perflab.trace.why_threads import FOREVER, NONE, Layer, Threads
from tests.marks import long_but

EVERYTHING = Selection(per_mille=0)
BASE, END = 100_000, 400_000
CPUS = 3


class _Random:
    """Threads that publish, wait, take and call back at random, on CPUs that switch at random: nothing fits together
    but the order of time on each thread, and the events of a message."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.made = MadeTrace(self.rng.choice(("jazzy", "jazzy", "kilted")))
        two_hosts = self.rng.random() < 0.2
        self.talker = self.made.process("talker", pid=10)
        self.listener = self.talker
        if self.rng.random() < 0.8:
            self.listener = self.made.process("listener", pid=20, host="other" if two_hosts else "robot")
        one, other = self.talker.node("talker"), self.listener.node("listener")
        self.publisher = self.talker.publisher(one, "/chatter")
        self.timer = self.talker.timer(one, self.rng.choice((5_000, 50_000)))
        self.within = self.listener is self.talker and self.rng.random() < 0.5
        self.subscription = self.listener.subscription(other, "/chatter", intra_process=self.within, depth=100)
        self.slow = self.listener.subscription(other, "/slow")
        self.talking = [self.talker.thread(10 + i, cpu=i) for i in range(self.rng.randint(1, 2))]
        self.reading = [self.listener.thread(20 + i, cpu=i) for i in range(self.rng.randint(1, 3))]

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def write(self) -> MadeTrace:
        published = sorted(p for thread in self.talking for p in self.publish(thread))
        if self.within:
            published = self.enqueue()
        for thread in self.reading:
            self.read(thread, published)
        if self.chance(0.85):
            for host in ("robot", "other"):
                if host in {"robot", self.listener.host.name}:
                    self.schedule(self.made.kernel(self.rng.choice(("lttng", "perf")), host=host), host)
        if self.chance(0.3):
            self.made.user_space().discard(self.rng.randint(BASE, END), 3, cpu=self.rng.randint(0, 1))
        return self.made

    def publish(self, thread: Thread) -> list[tuple[int, object]]:
        """Sometimes within a callback of the timer, sometimes with the time when it was due."""
        found: list[tuple[int, object]] = []
        if self.within:
            return found
        at = BASE + self.rng.randint(0, 5_000)
        while at < END - 50_000:
            in_timer = self.chance(0.7)
            if in_timer:
                if self.chance(0.6):
                    due = at - self.rng.randint(-50, 9_000)
                    thread.at(at).perflab__timer_due(timer_handle=self.timer.handle, due_ns=due)
                thread.at(at).callback_start(callback=self.timer.callback, is_intra_process=0)
            at += self.rng.randint(1, 3_000)
            rmw = at + self.rng.randint(0, 2_000)
            found.append((rmw, thread.publish(self.publisher, at, rcl_at=at, rmw_at=rmw)))
            at = rmw + self.rng.randint(1, 3_000)
            if in_timer:
                thread.at(at).callback_end(callback=self.timer.callback)
            at += self.rng.randint(1, 12_000)
        return found

    def enqueue(self) -> list[tuple[int, object]]:
        at = BASE
        found: list[tuple[int, object]] = []
        while at < END - 100_000:
            at += self.rng.randint(100, 12_000)
            self.talking[0].intra_publish(self.publisher, [self.subscription], at)
            found.append((at + 1, None))
        return found

    def read(self, thread: Thread, published: list[tuple[int, object]]) -> None:
        """Takes what was published, each message once, among the phases of an executor and other callbacks."""
        at = BASE - self.rng.randint(0, 5_000)
        has_phases, nested = self.chance(0.8), self.chance(0.2)
        if nested:
            thread.at(at).callback_start(callback=self.slow.callback, is_intra_process=0)

        def step() -> int:
            nonlocal at
            at += self.rng.randint(1, 1_500)
            return at

        while published and at < END:
            if has_phases:
                thread.get_next_ready(step())
                if self.chance(0.7):
                    thread.wait_for_work(step())
                    thread.get_next_ready(step())
            if self.chance(0.4):
                begin = step()
                thread.callback(self.slow, begin, step() if self.chance(0.95) else None)
            if published[0][0] < at and self.chance(0.8):
                _, message = published.pop(0)
                if self.within:
                    thread.dequeue(self.subscription, step())
                    ring = self.subscription.ring
                    assert ring is not None
                    thread.callback(ring, step(), step(), intra=True)
                else:
                    if has_phases:
                        thread.execute(step(), self.subscription)
                    thread.take(self.subscription, message, step(), rclcpp_at=step())  # type: ignore[arg-type]
                    thread.callback(self.subscription, step(), step())
        if nested:
            thread.at(step()).callback_end(callback=self.slow.callback)

    def schedule(self, kernel: Kernel, host: str) -> None:
        threads: list[Thread | tuple[int, str]] = [
            t for t in self.talking + self.reading if t.process.host.name == host
        ]
        own: list[Process] = [p for p in (self.talker, self.listener) if p.host.name == host]
        threads += [process.thread(process.pid + 100, "recv") for process in own] + [(99, "hog"), (9, "ksoftirqd/0")]
        running: dict[int, object] = dict.fromkeys(range(CPUS), 0)
        knows_wakings, knows_wake_ups = self.chance(0.7), self.chance(0.85)
        at = BASE - 20_000
        while at < END + 20_000:
            at += self.rng.randint(1, 1_500)
            cpu = self.rng.randrange(CPUS)
            free = [t for t in threads if t not in running.values()]
            if self.chance(0.5) and knows_wake_ups:
                woken = self.rng.choice(free)
                if knows_wakings and self.chance(0.95):
                    kernel.waking(at, cpu, woken, target_cpu=self.rng.randrange(CPUS))
                kernel.wakeup(at, cpu, woken, target_cpu=self.rng.randrange(CPUS))
                continue
            after = self.rng.choice([0, *free])
            if after == running[cpu]:
                continue
            if self.chance(0.97):  # else the switch is missing
                state = self.rng.choice(("sleeping", "running", "sleeping"))
                kernel.switch(at, cpu, running[cpu], after, state)  # type: ignore[arg-type]
            running[cpu] = after
        if self.chance(0.3):
            kernel.discard(self.rng.randint(BASE, END), 5, cpu=self.rng.randrange(CPUS))


def path_of(trace: NativeTrace) -> tuple[Messages, Threads]:
    threads = Threads(trace)
    messages = considered(trace, EVERYTHING, quality_of(trace)).frame
    return as_messages(trace, messages, threads), threads


def assert_gapless(messages: Messages, threads: Threads) -> None:
    """The stretches of a message follow each other from its begin to its callback, and none is backwards."""
    found = stretches_of(messages, threads)
    order = np.lexsort((found["start"], found["subject"]))
    subject, start, end = found["subject"][order], found["start"][order], found["end"][order]
    assert (end > start).all()
    same = subject[1:] == subject[:-1]
    assert (start[1:][same] == end[:-1][same]).all()
    first = np.r_[True, ~same][: len(subject)]
    last = np.r_[~same, True][: len(subject)]
    assert (subject[first] == np.arange(len(messages))).all()
    assert (start[first] == messages.begin).all()
    assert (end[last] == messages.started).all()
    sender = np.isin(found["role"], (Role.WORK, Role.PUBLISH, Role.TIMER, Role.TIMER_LATE, Role.TIMER_UNKNOWN))
    assert (found["end"][sender] <= messages.sent[found["subject"][sender]]).all()
    assert (found["start"][~sender] >= messages.sent[found["subject"][~sender]]).all()


def write_groups(seed: int, folder: Path) -> None:
    """recording.json with groups that hold random threads at random times, some of them within each other."""
    rng = random.Random(seed)

    def times(n: int) -> list[int]:
        return sorted(rng.randint(BASE - 10_000, END) for _ in range(n))

    groups = []
    for _ in range(rng.randint(1, 3)):
        instants = times(4 * rng.randint(1, 5))
        frozen = [
            Frozen(before_ns=a if rng.random() < 0.9 else None, first_ns=b, last_ns=c,
                   after_ns=d if rng.random() < 0.9 else None)
            for a, b, c, d in zip(*(iter(instants),) * 4, strict=True)
        ]  # fmt: skip
        throttled = [
            Throttled(before_ns=a, after_ns=b, periods=rng.randint(0, 3), ns=rng.randint(1, 60_000))
            for a, b in (times(2) for _ in range(rng.randint(0, 6)))
        ]
        threads = rng.sample([9, 10, 11, 20, 21, 22, 99, 110, 120], k=rng.randint(1, 6))
        groups.append(
            Cgroup(path="", quota_us=1, period_us=rng.choice((None, 20)), threads=threads, throttled=throttled,
                   frozen=frozen)
        )  # fmt: skip
    folder.mkdir(exist_ok=True)
    (folder / FILE).write_text(json.dumps({"cgroups": models.as_json(groups)}))


@pytest.mark.long
def test_the_parts_of_messages_of_held_threads_add_up(tmp_path: Path) -> None:
    causes: set[str] = set()
    for seed in range(6):
        folder = tmp_path / str(seed)
        write_groups(seed, folder)
        trace = opened(_Random(seed).write(), folder)
        answer = why(trace, EVERYTHING)
        assert_conserved(answer)
        assert_gapless(*path_of(trace))
        assert_conserved(why(trace, Selection(per_mille=0, slow_callbacks=True)))
        causes |= set(answer.section("causes").frame["cause"].to_list())
    assert causes >= {"throttled", "frozen"}


WITH_EVERY_CAUSE = (14, 16, 19, 20, 25)


@pytest.mark.parametrize("seed", long_but([*range(7), *WITH_EVERY_CAUSE], range(60)))
def test_the_parts_of_random_messages_add_up(seed: int, tmp_path: Path) -> None:
    trace = opened(_Random(seed).write(), tmp_path)
    answer = why(trace, EVERYTHING)
    assert_conserved(answer)
    rows = answer.section("messages").frame
    assert (rows["total_ns"] == rows["started_ns"] - rows["begin_ns"]).all()
    joined = answer.section("parts").frame.join(rows.select("message", "begin_ns", "started_ns"), on="message")
    assert joined.filter(~pl.col("first_ns").is_between("begin_ns", "started_ns", closed="left")).is_empty()
    assert_gapless(*path_of(trace))
    assert_conserved(why(trace, Selection(per_mille=0, slow_callbacks=True)))


def test_the_random_traces_have_messages_of_every_cause(tmp_path: Path) -> None:
    """So that the test above is about something."""
    causes: set[str] = set()
    messages = 0
    for seed in WITH_EVERY_CAUSE:
        answer = why(opened(_Random(seed).write(), tmp_path / str(seed)), EVERYTHING)
        causes |= set(answer.section("causes").frame["cause"].to_list())
        messages += answer.section("messages").frame.height
    assert messages > 200
    assert causes == {
        "cpu", "wake_up", "callback_ahead", "own_work", "publish_call", "blocked", "timer_late", "middleware",
        "on_the_way", "transport", "executor", "unknown",
    }  # fmt: skip


@pytest.mark.parametrize("name", RECORDED)
def test_the_parts_of_recorded_messages_add_up(name: str) -> None:
    needs_library()
    trace = open_trace([reference_trace(name)])
    assert_conserved(why(trace, EVERYTHING))
    assert_gapless(*path_of(trace))
    assert_conserved(why(trace, Selection(slowest=200, slow_callbacks=True)))


# Layers ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_a_stretch_is_cut_as_instant_by_instant(seed: int) -> None:
    rng = random.Random(seed)
    rows: list[tuple[int, int, int]] = []
    for thread in range(rng.randint(0, 3)):
        at = rng.randint(0, 5)
        while at < 60:
            end = at + rng.randint(1, 9)
            rows.append((thread, at, end))
            at = end + rng.choice((0, 0, 1, 4))
    rng.shuffle(rows)
    layer = Layer(*(np.array([row[i] for row in rows], dtype=np.int64) for i in range(3)))

    def at_instant(of: int, time: int) -> int:
        return next((i for i, (t, b, e) in enumerate(rows) if t == of and b <= time < e), NONE)

    stretches = [(rng.randint(-1, 4), a, a + rng.randint(0, 40)) for a in (rng.randint(-5, 60) for _ in range(50))]
    columns = [np.array([s[i] for s in stretches], dtype=np.int64) for i in range(3)]
    of, begin, until, row = layer.cut(*columns)
    for number, (which, a, b) in enumerate(stretches):
        mine = of == number
        told = [r for f, u, r in zip(begin[mine], until[mine], row[mine], strict=True) for _ in range(f, u)]
        assert told == [at_instant(which, time) for time in range(a, b)]
        assert int((until[mine] - begin[mine]).sum()) == b - a
    times = np.array([rng.randint(-5, 70) for _ in range(50)], dtype=np.int64)
    threads = np.array([rng.randint(-1, 4) for _ in range(50)], dtype=np.int64)
    asked = list(zip(threads, times, strict=True))
    assert layer.at(threads, times).tolist() == [at_instant(t, x) for t, x in asked]
    starts = [min((b for t, b, _ in rows if t == w and b > x), default=FOREVER) for w, x in asked]
    assert layer.next_start(threads, times).tolist() == starts


def test_of_two_intervals_that_overlap_the_later_one_ends_the_earlier_one() -> None:
    thread, start, end = (np.array(values, dtype=np.int64) for values in ([0, 0], [0, 5], [10, 8]))
    of, begin, until, row = Layer(thread, start, end).cut(*(np.array([v], dtype=np.int64) for v in (0, 0, 12)))
    assert list(zip(of, begin, until, row, strict=True)) == [(0, 0, 5, 0), (0, 5, 8, 1), (0, 8, 12, NONE)]
