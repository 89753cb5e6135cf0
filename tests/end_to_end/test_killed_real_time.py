"""Killed at any instant while RR 98 has a CPU: nothing is left, settings are as before, and the machine answers.

The instants are random, from a seed that is written here. A thread of a higher priority on each CPU measures whether
the machine answers: its longest gap is how long nobody else came to run there.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from perflab.condition import kernel_settings as kernel
from perflab.experiment.machine import limits_seen
from perflab.host import Host

from . import traces
from .conftest import TIMEOUT_S, Json, Run, kill, started
from .test_killed import beside, pid_of

CPUS = sorted(os.sched_getaffinity(0))
RUNTIME = "kernel.sched_rt_runtime_us"
# More than a hypervisor takes of a CPU at once, and less than anybody would call an answer.
ANSWERS_WITHIN_S = 3.0
KILLS, MANY = 2, 30

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(not Host().may_be_real_time(99) or len(CPUS) < 2, reason="needs RR 99 and two CPUs"),
    pytest.mark.skipif(not os.access(kernel.path_of(RUNTIME), os.W_OK), reason=f"{RUNTIME} cannot be set here"),
]

PROBE = """
import os, sys, time
cpu = int(sys.argv[1])
os.sched_setaffinity(0, {cpu})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(99))
print("ready", flush=True)
last, longest = time.monotonic(), 0.0
while os.getppid() == int(sys.argv[2]) and not os.path.exists(sys.argv[3]):
    time.sleep(0.01)
    now = time.monotonic()
    longest, last = max(longest, now - last - 0.01), now
print(longest, flush=True)
"""


@contextmanager
def answering(folder: Path) -> Iterator[list[float]]:
    """The longest gap of a thread of the highest priority on each CPU, in seconds; filled at the end."""
    stop = folder / "stop"
    gaps: list[float] = []
    probes = [
        subprocess.Popen(
            [sys.executable, "-c", PROBE, str(cpu), str(os.getpid()), str(stop)], stdout=subprocess.PIPE, text=True
        )
        for cpu in CPUS
    ]
    try:
        for probe in probes:
            assert probe.stdout is not None
            assert probe.stdout.readline() == "ready\n"
        yield gaps
        stop.touch()
        gaps += [float(probe.communicate(timeout=TIMEOUT_S)[0]) for probe in probes]
    finally:
        for probe in probes:
            probe.kill()
            probe.wait()


def named(name: str, *, guard: bool = False) -> Callable[[Json], int | None]:
    def find(trial: Json) -> int | None:
        found = beside(trial, name)
        return pid_of((found or {}).get("guard") if guard else found)

    return find


VICTIMS: dict[str, Callable[[Json], int | None]] = {
    "perflab": lambda _: None,  # its number is that of the program
    "the workload": lambda trial: pid_of(trial["processes"].get("pong")),
    "the inhibitor": named("priority_inhibitor"),
    "the inhibitor's guard": named("priority_inhibitor", guard=True),
    "the keeper": named("realtime_limits"),
    "the watchdog": named("watchdog"),
}


def killed_again_and_again(run: Run, tmp_path: Path, kills: int, seed: int) -> None:
    generator, before = random.Random(seed), limits_seen()
    last = CPUS[-1]
    threads = ("--thread", f"executors=RR:98@{last}", "--thread", f"middleware=OTHER@{last}", "--middleware", "shm")
    condition = f"realtime_limits:throttling=off+priority_inhibitor:policy=RR,priority=97,cpus={last}"
    rest = ("--condition", condition, "--baseline", "off", "--trials", "1", "--cool-down", "0", "-q")
    with answering(tmp_path) as gaps:
        for number in range(kills):
            out = tmp_path / f"run_{number}"
            seen: set[traces.Identity] = set()
            victims = generator.sample(list(VICTIMS), generator.choice((1, 1, 2, 3)))
            with started("run", "pingpong:loops=1500", *threads, *rest, "-o", out) as process:
                traces.wait_for("the settings are held", lambda: limits_seen() != before or None, process)
                time.sleep(generator.uniform(0.0, 2.5))
                seen |= traces.living_below(process.pid)
                found = traces.trials(out)
                pids = [process.pid if name == "perflab" else VICTIMS[name](found[-1]) for name in victims if found]
                for pid in pids:
                    # Who was killed before may have taken it along.
                    with suppress(ProcessLookupError):
                        if pid is not None:
                            kill(pid)
                process.communicate(timeout=TIMEOUT_S)
            traces.nothing_is_left(out, seen)
            cleaned = run("clean", out)
            assert cleaned.returncode == 0, (victims, cleaned.stderr)
            assert limits_seen() == before, victims
            assert not kernel.abandoned(), victims
            for got in (trial["watchdog"] for trial in traces.trials(out) if trial["watchdog"] is not None):
                assert (got["policy"], got["priority"], last in got["cpus"]) == ("RR", 99, False)
            processes = [process for trial in traces.trials(out) for process in trial["processes"].values()]
            names = [name for process in processes for name in process["shared_memory"] or ()]
            assert not [name for name in names if Path("/dev/shm", name).exists()], victims
    assert max(gaps) < ANSWERS_WITHIN_S, gaps
    print(f"{kills} kills under RR 98, longest gap of RR 99 on each CPU: {', '.join(f'{gap:.3f} s' for gap in gaps)}")


def test_whoever_is_killed_under_rr_98_the_machine_answers_and_is_as_before(run: Run, tmp_path: Path) -> None:
    killed_again_and_again(run, tmp_path, KILLS, seed=1)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_many_kills_under_rr_98(run: Run, tmp_path: Path) -> None:
    killed_again_and_again(run, tmp_path, MANY, seed=2)
