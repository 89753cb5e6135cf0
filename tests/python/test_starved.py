"""Threads that are ready and get no CPU, on a made /proc."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflab.experiment.starved import LOOKS, starved

STEP_NS = 50_000_000


class Machine:
    """One process with one thread; `share` of the time it has its CPU, and it is ready or sleeps."""

    def __init__(self, root: Path, state: str, share: float) -> None:
        self.root, self.state, self.share, self.now_ns = root, state, share, 0
        self.folder = root / "7" / "task" / "7"
        self.folder.mkdir(parents=True)
        (self.folder / "comm").write_text("recv UC\n")
        (self.folder / "status").write_text("Name:\tx\nCpus_allowed_list:\t0-1\n")
        self.write()

    def write(self) -> None:
        rest = ["0"] * 49
        rest[36], rest[37] = "12", "2"  # rt_priority, policy
        (self.folder / "stat").write_text(f"7 (recv UC) {self.state} {' '.join(rest)}\n")
        (self.folder / "schedstat").write_text(f"{round(self.share * self.now_ns)} 0 1\n")

    def wait(self) -> None:
        self.now_ns += STEP_NS
        self.write()


@pytest.mark.parametrize("n", range(5))
@pytest.mark.parametrize(
    ("state", "share", "found"), [("R", 0.0, True), ("R", 0.05, True), ("R", 1.0, False), ("S", 0.0, False)]
)
def test_a_starved_thread_is_named_and_no_other(tmp_path: Path, state: str, share: float, found: bool, n: int) -> None:
    machine = Machine(tmp_path, state, share)
    seen = starved({"ping": 7}, proc=tmp_path, wait=machine.wait, clock=lambda: machine.now_ns)
    assert bool(seen) == found
    if found:
        assert (seen[0].process, seen[0].name, seen[0].policy, seen[0].priority) == ("ping", "recv UC", "RR", 12)
        assert seen[0].cpus == (0, 1)
        assert seen[0].waiting_share == pytest.approx(1 - share, abs=0.01)


def test_a_thread_that_ends_is_left_out(tmp_path: Path) -> None:
    machine, looks = Machine(tmp_path, "R", 0.0), 0

    def wait() -> None:
        nonlocal looks
        looks += 1
        machine.wait()
        if looks == LOOKS // 2:
            (machine.folder / "schedstat").unlink()
            machine.write = lambda: None  # type: ignore[method-assign]

    assert starved({"ping": 7}, proc=tmp_path, wait=wait, clock=lambda: machine.now_ns) == ()


def test_a_thread_of_the_kernel_counts_as_well(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "R", 0.0)
    (only,) = starved({}, [7], proc=tmp_path, wait=machine.wait, clock=lambda: machine.now_ns)
    assert only.words == "thread recv UC (RR 12) of the kernel, which waited 100 % of the time"
