"""Threads as data: what is asked for is what the kernel says, per thread."""

from __future__ import annotations

import json
import os
import resource
from pathlib import Path

import pytest

from tests.marks import long_but
from tests.said import finished

from .conftest import Json, Run, command, environment, measuring, started

REAL_TIME = os.geteuid() == 0 or resource.getrlimit(resource.RLIMIT_RTPRIO)[0] >= 20
CPUS = sorted(os.sched_getaffinity(0))
POLICIES = {"OTHER": os.SCHED_OTHER, "FIFO": os.SCHED_FIFO, "RR": os.SCHED_RR}
needs_real_time = pytest.mark.skipif(not REAL_TIME, reason="RLIMIT_RTPRIO allows no real-time priority here")


def threads_of(run: Path) -> list[Json]:
    """The threads of the first trial's processes, as the record of the start has them."""
    found: list[Json] = []
    for file in (run / "trials" / "0001_baseline" / "processes").glob("*.jsonl"):
        records = [json.loads(line) for line in file.read_text().splitlines()]
        (start,) = (r for r in records if r["type"] == "threads" and r["when"] == "start")
        found += start["threads"]
    return found


@needs_real_time
@pytest.mark.parametrize(
    ("middleware", "executors", "others"),
    long_but(
        [("cyclonedds", "FIFO:12", "RR:13"), ("fastdds", "RR:20", "OTHER")],
        [
            (middleware, *policies)
            for middleware in ("cyclonedds", "fastdds")
            for policies in (("RR:20", "OTHER"), ("OTHER", "FIFO:11"), ("FIFO:12", "RR:13"))
        ],
    ),
)
def test_executors_and_middleware_are_scheduled_as_asked(
    run: Run, tmp_path: Path, middleware: str, executors: str, others: str
) -> None:
    cpu = CPUS[-1]
    out = tmp_path / "run"
    done = run(
        "run", "sierra_nevada", "-t", "1", "--middleware", middleware,
        "--thread", f"executors={executors}@{cpu}", "--thread", f"middleware={others}", "-o", out, "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    by_role: dict[str, set[tuple[str, int, tuple[int, ...]]]] = {}
    for thread in threads_of(out):
        key = (thread["policy"], thread["priority"], tuple(thread["cpus"]))
        by_role.setdefault(thread["role"], set()).add(key)

    def expected(text: str, cpus: list[int]) -> set[tuple[str, int, tuple[int, ...]]]:
        policy, _, priority = text.partition(":")
        return {(policy, int(priority or 0), tuple(cpus))}

    assert by_role["executor"] == expected(executors, [cpu])
    assert by_role["middleware"] == expected(others, CPUS)
    assert by_role["perflab"] == {("OTHER", 0, tuple(CPUS))}


@needs_real_time
def test_what_is_recorded_is_what_proc_says_while_it_runs(tmp_path: Path) -> None:
    out = tmp_path / "run"
    scheduling = ["--thread", "executors=RR:15", "--thread", f"middleware=FIFO:14@{CPUS[0]}"]
    with started("run", "sierra_nevada", "-t", "60", *scheduling, "-o", out, "-q") as process:
        (pid,) = measuring(out, process).values()
        recorded = {t["tid"]: t for t in threads_of(out)}
        for tid, thread in recorded.items():
            assert os.sched_getscheduler(tid) == POLICIES[thread["policy"]]
            assert os.sched_getparam(tid).sched_priority == thread["priority"]
            assert sorted(os.sched_getaffinity(tid)) == thread["cpus"]
            assert Path(f"/proc/{pid}/task/{tid}/comm").read_text().strip() == thread["name"]
        assert {int(p.name) for p in Path(f"/proc/{pid}/task").iterdir()} == set(recorded)


def test_threads_are_named_after_their_nodes_unless_that_is_switched_off(run: Run, tmp_path: Path) -> None:
    for option, name in (("on", "montreal+9"), ("off", "executor_0")):
        out = tmp_path / option
        done = run("run", "sierra_nevada", "-t", "1", "--name-threads", option, "-o", out, "-q")
        assert done.returncode == 0, done.stderr
        assert [t["name"] for t in threads_of(out) if t["role"] == "executor"] == [name]


def test_locked_memory_is_locked(run: Run, tmp_path: Path) -> None:
    if os.geteuid() != 0 and resource.getrlimit(resource.RLIMIT_MEMLOCK)[0] != resource.RLIM_INFINITY:
        pytest.skip("RLIMIT_MEMLOCK is limited here")
    out = tmp_path / "run"
    done = run("run", "sierra_nevada", "-t", "1", "--lock-memory", "on", "-o", out, "-q")
    assert done.returncode == 0, done.stderr
    (file,) = (out / "trials" / "0001_baseline" / "processes").glob("*.jsonl")
    starts = [r for r in map(json.loads, file.read_text().splitlines()) if r["type"] == "threads"]
    assert starts[0]["locked_memory_kb"] > 1000


# With 64 KiB locking itself fails, with 8 MiB (the default of Debian) what comes after it.
@pytest.mark.parametrize("locked", [64 << 10, 8 << 20])
@pytest.mark.parametrize(
    ("options", "limit"),
    [
        (["--thread", "executors=RR:20"], "RLIMIT_RTPRIO"),
        (["--thread", "middleware=FIFO:20"], "RLIMIT_RTPRIO"),
        (["--lock-memory", "on"], "RLIMIT_MEMLOCK"),
        (["--thread", "executors=@1000"], "CPUs 1000"),
    ],
)
def test_missing_rights_end_with_exit_3_and_name_the_limit(
    tmp_path: Path, options: list[str], limit: str, locked: int
) -> None:
    # Without capabilities and with the limits of an ordinary user, independent of the user that runs this test.
    unprivileged = ["prlimit", "--rtprio=0:0", f"--memlock={locked}:{locked}", "--"]
    if os.geteuid() == 0:
        unprivileged += ["setpriv", "--bounding-set=-sys_nice,-ipc_lock", "--inh-caps=-all", "--"]
    done = finished(
        [*unprivileged, *command("run", "sierra_nevada", "-t", "1", *options)],
        cwd=tmp_path,
        env=environment(),
    )
    assert done.returncode == 3, done.stderr
    assert limit in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "runs").exists()
