"""Threads that are ready and get no CPU, on a made /proc."""

from __future__ import annotations

import json
import os
import platform
import struct
import subprocess
from pathlib import Path

import pytest

from perflab.experiment.lock_waits import _CALLS as CALLS
from perflab.experiment.starved import LOOKS, starved
from perflab.results.trial import StarvedThread

STEP_NS = 50_000_000
ADDRESS = 0x1000


class Machine:
    """Threads of processes; `share` of the time one has its CPU, and it is ready or sleeps."""

    def __init__(self, root: Path) -> None:
        self.root, self.now_ns = root, 0
        self.threads: dict[int, tuple[str, float, str]] = {}
        self.calls: dict[int, str] = {}

    def thread(
        self, tid: int, name: str, state: str, share: float, *, cpus: str = "0-1", cpu: int = 1, policy: str = "12 2",
        kernel: bool = False,
    ) -> Machine:  # fmt: skip
        """One of the process with its number, and scheduled so: its priority, and its policy."""
        folder = self.root / str(tid) / "task" / str(tid)
        folder.mkdir(parents=True)
        (self.root / str(tid) / "comm").write_text(f"{name}-process\n")
        (folder / "comm").write_text(f"{name}\n")
        (folder / "status").write_text(f"Name:\tx\nCpus_allowed_list:\t{cpus}\n")
        rest = ["0"] * 49
        rest[35], (rest[36], rest[37]) = str(cpu), policy.split()
        rest[5] = str(0x00200000 if kernel else 0)
        (folder / "stat").write_text(f"{tid} ({name}) {state} {' '.join(rest)}\n")
        self.threads[tid] = (state, share, str(folder / "schedstat"))
        self.write()
        return self

    def waits_for_lock(self, tid: int, operation: int, *mutex: int) -> Machine:
        """A further thread of process 7 sleeps, at a mutex whose memory is the word, count, owner, users and kind."""
        self.thread(tid, "high", "S", 0.0, policy="80 2")
        folder = self.root / "7" / "task" / str(tid)
        (self.root / str(tid) / "task" / str(tid)).rename(folder)
        self.threads[tid] = ("S", 0.0, str(folder / "schedstat"))
        (folder / "syscall").write_text(
            f"{CALLS[platform.machine()]} {ADDRESS:#x} {operation:#x} 0x2 0x0 0x0 0x0 0x0 0x0\n"
        )
        (self.root / "7" / "mem").write_bytes(b"\0" * ADDRESS + struct.pack("=IIiII", *mutex))
        return self

    def write(self) -> None:
        for _, share, path in self.threads.values():
            Path(path).write_text(f"{round(share * self.now_ns)} 0 1\n")

    def wait(self) -> None:
        self.now_ns += STEP_NS
        self.write()

    def starved(self) -> tuple[StarvedThread, ...]:
        return starved({"ping": 7}, proc=self.root, wait=self.wait, clock=lambda: self.now_ns)


@pytest.mark.parametrize("n", range(5))
@pytest.mark.parametrize(
    ("state", "share", "found"), [("R", 0.0, True), ("R", 0.05, True), ("R", 1.0, False), ("S", 0.0, False)]
)
def test_a_starved_thread_is_named_and_no_other(tmp_path: Path, state: str, share: float, found: bool, n: int) -> None:
    seen = Machine(tmp_path).thread(7, "recv UC", state, share).starved()
    assert bool(seen) == found
    if found:
        assert (seen[0].process, seen[0].name, seen[0].policy, seen[0].priority) == ("ping", "recv UC", "RR", 12)
        assert seen[0].cpus == (0, 1)
        assert seen[0].waiting_share == pytest.approx(1 - share, abs=0.01)


def test_who_ran_on_its_cpus_is_named_and_nobody_else(tmp_path: Path) -> None:
    machine = Machine(tmp_path).thread(7, "recv", "R", 0.04, cpus="1", policy="0 0")
    machine.thread(8, "burn_1", "R", 0.95, policy="90 2").thread(9, "elsewhere", "R", 1.0, cpu=0)
    machine.thread(10, "seldom", "R", 0.01)
    (thread,) = machine.starved()
    (holder,) = thread.holders
    assert (holder.process, holder.pid, holder.name, holder.cpu) == ("burn_1-process", 8, "burn_1", 1)
    assert holder.share == pytest.approx(0.95, abs=0.01)
    assert thread.words == (
        "thread recv (OTHER) of ping, which waited 96 % of the time behind burn_1-process (pid 8, RR 90) on CPU 1"
    )


@pytest.mark.parametrize(("cpus", "found"), [("1", True), ("0-1", False)])
def test_a_thread_of_the_kernel_that_serves_its_cpu_is_named_too(tmp_path: Path, cpus: str, found: bool) -> None:
    machine = Machine(tmp_path).thread(7, "main", "S", 0.0, cpus="1").thread(8, "burn_1", "R", 1.0)
    machine.thread(9, "ksoftirqd/1", "R", 0.0, cpus=cpus, policy="0 0", kernel=True)
    seen = machine.starved()
    assert [(t.process, t.name, t.role) for t in seen] == ([(None, "ksoftirqd/1", "kernel")] if found else [])
    assert all(t.words.startswith("thread ksoftirqd/1 (OTHER) of the kernel, which waited 100 %") for t in seen)


def test_a_thread_that_ends_is_left_out(tmp_path: Path) -> None:
    machine, looks = Machine(tmp_path).thread(7, "recv", "R", 0.0), 0

    def wait() -> None:
        nonlocal looks
        looks += 1
        machine.wait()
        if looks == LOOKS // 2:
            (tmp_path / "7" / "task" / "7" / "schedstat").unlink()
            machine.threads.clear()

    assert starved({"ping": 7}, proc=tmp_path, wait=wait, clock=lambda: machine.now_ns) == ()


WAIT, WAIT_BITSET, LOCK_PI = 128, 128 | 9, 128 | 6


@pytest.mark.parametrize(
    ("operation", "mutex", "found"),
    [
        (WAIT, (2, 0, 7, 1, 0), True),
        (LOCK_PI, (0x80000007, 0, 0, 1, 32), True),  # the word has the owner
        (WAIT, (0x80000007, 0, 7, 1, 16), True),  # robust
        (WAIT, (2, 0, 8, 1, 0), False),  # another one holds it
        (WAIT, (2, 0, 4711, 1, 0), False),  # no thread has that number
        (WAIT, (0, 0, 7, 1, 0), False),  # nobody holds it
        (WAIT, (2, 0, 7, 0, 0), False),  # a mutex that is held has a user
        (WAIT, (2, 0, 7, 1, 0x7F00), False),  # no kind of a mutex
        (WAIT_BITSET, (7, 0, 7, 1, 0), False),  # waits for a thread to end
        (128 | 1, (2, 0, 7, 1, 0), False),  # wakes
    ],
)
def test_who_waits_for_a_lock_that_a_starved_thread_holds_is_named(
    tmp_path: Path, operation: int, mutex: tuple[int, ...], found: bool
) -> None:
    machine = Machine(tmp_path).thread(7, "low", "R", 0.0).waits_for_lock(8, operation, *mutex)
    (thread,) = machine.starved()
    waiters = [(w.process, w.tid, w.name, w.priority, w.address) for w in thread.lock_waiters or ()]
    assert waiters == ([("ping", 8, "high", 80, hex(ADDRESS))] if found else [])
    assert ("holds a lock that thread high (tid 8, RR 80) waited for" in thread.words) == found


def test_that_nobody_may_look_is_not_that_nobody_waits(tmp_path: Path) -> None:
    (thread,) = Machine(tmp_path).thread(7, "recv", "R", 0.0).starved()
    assert thread.lock_waiters is None


def tool(name: str) -> Path:
    path = Path(os.environ.get("PERFLAB_TEST_TOOLS", "")) / name
    if not path.is_file():
        pytest.skip(f"no {name} in PERFLAB_TEST_TOOLS; build it with `make test`")
    return path


@pytest.mark.alone
@pytest.mark.parametrize("times", [pytest.param(1), pytest.param(20, marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", ["normal", "none"])
def test_on_this_machine_a_planted_lock_holder_that_starves_is_named_with_who_waits(kind: str, times: int) -> None:
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        pytest.skip("one CPU: the program that starts the threads would starve with them")
    for _ in range(times):
        command = [str(tool("lock_holder")), kind, str(cpus[-1]), "1", "wait"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
            assert program.stdin is not None and program.stdout is not None
            line = program.stdout.readline()
            if not line and program.wait() == 3:
                pytest.skip("threads cannot be scheduled as the test needs")
            said = json.loads(line)
            seen = {thread.tid: thread for thread in starved({"planted": program.pid})}
            program.stdin.write("\n")
            program.stdin.flush()
            assert program.wait() == 0
        holder = seen[said["holder"]]
        if holder.lock_waiters is None:
            pytest.skip("where threads wait cannot be read here")
        waiters = [(waiter.tid, waiter.name, waiter.address) for waiter in holder.lock_waiters]
        assert waiters == ([(said["waiter"], "high", said["mutex"])] if kind == "normal" else [])
