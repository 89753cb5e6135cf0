"""A lock that is held by a thread without a CPU, planted on this machine and recorded: found with its owner, its
address and the inversion; and none where nobody holds a lock, though threads wait all the same
(tests/native/tracing/lock_holder.cpp)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from opened import needs_library
from test_scheduler_recorder import program, recorder, run, tool

from perflab.trace import open_trace
from perflab.trace.locks import locks

HOG_MS = 20
FEW, ALL = pytest.param(2), pytest.param(20, marks=pytest.mark.long)


def planted(kind: str, cpu: int) -> dict[str, Any]:
    """Runs the program; what it says of itself at its end."""
    done = run(tool("lock_holder"), kind, str(cpu), str(HOG_MS))
    if done.returncode == 3:
        pytest.skip(f"threads cannot be scheduled as the test needs: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said


def test_perf_event_says_that_it_cannot(tmp_path: Path) -> None:
    done = run(program(), "--check", "--source", "perf_event", "--locks")
    assert done.returncode == 3
    assert "perf_event cannot read the owner of a lock" in done.stderr


@pytest.mark.alone
@pytest.mark.parametrize("times", [FEW, ALL])
def test_a_lock_whose_holder_starves_is_found_with_its_owner_and_none_where_nobody_holds_one(
    tmp_path: Path, times: int
) -> None:
    needs_library()
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        pytest.skip("one CPU: the program that starts the threads would starve with them")
    folder = tmp_path / "trace"
    arguments = ("--source", "ebpf", "--locks", "--root", str(os.getpid()), "--buffer-bytes", str(16 << 20))
    runs: dict[str, list[dict[str, Any]]] = {}
    with recorder(folder, *arguments) as recording:
        for _ in range(times):
            for kind in ("normal", "inherit", "none"):
                runs.setdefault(kind, []).append(planted(kind, cpus[-1]))
        assert recording.stop()["lost"] == 0
    with open_trace([folder]) as trace:
        answer = locks(trace, longer_than_ns=0)
        found: dict[int, list[dict[str, Any]]] = {}
        for row in answer.section("lock_waits").frame.to_dicts():
            found.setdefault(row["pid"], []).append(row)
        for kind in ("normal", "inherit"):
            for one in runs[kind]:
                (wait,) = found.pop(one["pid"])
                assert (wait["tid"], wait["owner_tid"], wait["address"]) == (one["waiter"], one["holder"], one["mutex"])
                assert wait["inherits"] == (kind == "inherit")
                assert wait["inversion"] == (kind == "normal")
                assert wait["waited_ns"] <= one["waited_ns"]
                if kind == "normal":
                    assert wait["inversion_ns"] <= wait["could_run_ns"]
                    assert wait["inversion_ns"] >= HOG_MS * 1_000_000
        assert not found.keys() & {one["pid"] for one in runs["none"]}
        waited = set(trace.table("futex_waits")["thread"].unique())
        of_none = trace.table("threads")["tid"].gather(sorted(waited)).to_list()
        assert {one["waiter"] for one in runs["none"]} <= set(of_none)  # at its condition variable
