"""No run locks the machine: what is refused beforehand, and perflab-watchdog with the real programs."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import graph, node
from test_real_time import NEW, NO_GROUPS, SERVER, SYSCTL

from perflab import native
from perflab.condition.priority_inhibitor import KIND as INHIBITOR
from perflab.condition.realtime_limits import KIND as LIMITS
from perflab.design import scheduling
from perflab.errors import BadInput, Unavailable
from perflab.experiment import liveness
from perflab.host import Host
from perflab.processes import descendants, read_process
from perflab.real_time import RealTimeUse
from perflab.workload import Graph

GRAPH = Graph(graph({"one": [node("/a", {"/t": 10})], "two": [node("/b", None, ["/t"])]}))
WAIT_S = 60.0
LIMIT_NS = 400_000_000  # a thread that starves runs once a second
CPUS = sorted(os.sched_getaffinity(0))


# -- beforehand ------------------------------------------------------------------------------------------------------


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A machine that can switch its fair server off, and whose user may have real-time priorities."""
    for name, content in {**NEW, **SYSCTL, **NO_GROUPS, **SERVER}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/status").write_text("CapEff:\t000001ffffffffff\n")
    monkeypatch.setattr(liveness, "allowed_cpus", lambda: (0, 1))
    return Host(tmp_path)


OFF = LIMITS.make({"fair_server": "off"}, "realtime_limits")


def checked(host: Host, threads: list[str], *conditions: Any) -> None:
    liveness.check("it", GRAPH, scheduling.parse(threads, GRAPH.processes), conditions, host)


def inhibitor(**given: Any) -> Any:
    return INHIBITOR.make({"policy": "RR", "priority": 90, **given}, "priority_inhibitor")


def test_what_leaves_no_cpu_to_others_is_refused_while_nothing_limits_it(host: Host) -> None:
    checked(host, ["executors=RR:98"], inhibitor(cpus="0-1"))  # the fair server is on
    checked(host, ["executors=RR:98@1", "middleware=OTHER"], OFF, inhibitor(cpus=1))
    checked(host, ["executors=DEADLINE:1ms/10ms/10ms"], OFF)  # ends each of its times by itself
    with pytest.raises(BadInput) as refused:
        checked(host, ["one.executors=RR:98@1", "two.middleware=FIFO:1@0"], OFF)
    assert str(refused.value) == (
        "it: nothing limits real-time threads (throttling and fair server are off), and executors of one (RR 98 on "
        "CPU 1) and middleware of two (FIFO 1 on CPU 0) leave no CPU to anybody else; leave out one CPU: @CPUS of "
        "--thread, cpus= of the condition"
    )
    with pytest.raises(BadInput, match=r"executors of one \(RR 98 on any CPU\)"):
        checked(host, ["executors=RR:98"], OFF)
    with pytest.raises(BadInput, match=r"priority_inhibitor \(RR 90 on CPUs 0-1\)"):
        checked(host, [], OFF, inhibitor(cpus="0-1"))


def test_limits_that_are_off_without_a_condition_count_as_well(host: Host) -> None:
    for path in host.folders("sys/kernel/debug/sched/fair_server", "cpu*"):
        (host.root / path / "runtime").write_text("0")
    with pytest.raises(BadInput, match="leave no CPU"):
        checked(host, [], inhibitor(cpus="0-1"))
    checked(host, [], LIMITS.make({"fair_server": 5}, "realtime_limits"), inhibitor(cpus="0-1"))


def test_a_priority_and_the_right_to_it_are_left_to_the_watchdog(host: Host) -> None:
    with pytest.raises(BadInput, match="leaves no priority above it to the watchdog; use at most 98"):
        checked(host, ["executors=FIFO:99@1"], OFF)
    (host.root / "proc/self/status").write_text("CapEff:\t0000000000000000\n")
    (host.root / "proc/self/limits").write_text("Max realtime priority     98                   98\n")
    with pytest.raises(Unavailable, match="this user may not use RR 99, which the watchdog needs"):
        checked(host, ["executors=RR:98@1"], OFF)


def test_threads_of_the_graph_count_unless_the_command_line_asks_for_others() -> None:
    document = graph({"one": [node("/a", {"/t": 10})]})
    (process,) = document["processes"]
    process["threads"] = {"executors": {"policy": "RR", "priority": 5, "cpus": [1]}, "middleware": None}
    process["executors"][0]["thread"] = {"policy": "FIFO", "priority": 6, "cpus": []}
    found = liveness.uses(Graph(document), (), ())
    assert found == [
        RealTimeUse("executors of one", "RR", 5, (1,)),
        RealTimeUse("executors of one", "FIFO", 6, ()),
    ]
    assert liveness.free_cpus(found, (0, 1)) == ()
    assert liveness.free_cpus(found[:1], (0, 1)) == (0,)
    asked = scheduling.parse(["executors=OTHER"], ["one"])
    assert liveness.uses(Graph(document), asked, ()) == []


# -- perflab-watchdog ------------------------------------------------------------------------------------------------

DOUBLE = """
import os, subprocess, sys, time
burn, cpu, what = sys.argv[1:]
children = [subprocess.Popen(["sleep", "600"], stdout=subprocess.DEVNULL)]
if what != "alone":
    command = [burn, "--cpus", cpu, "--policy", "RR", "--priority", "98", "--limit-ns", "60000000000"]
    children.append(subprocess.Popen(command, stdout=subprocess.DEVNULL))
print(*(child.pid for child in children), flush=True)
while what == "spins":
    os.sched_setaffinity(0, {int(cpu)})
time.sleep(600)
"""


class Watched:
    """A double of perflab on the last CPU, with a sleeping child and one that burns, and its watchdog."""

    def __init__(self, what: str) -> None:
        programs = native.find()
        burn = str(programs.program("perflab-burn"))
        command: list[str] = [sys.executable, "-c", DOUBLE, burn, str(CPUS[-1]), what]
        self.double = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.double.stdout is not None
        self.children = [int(word) for word in self.double.stdout.readline().split()]
        while what != "spins" and (double := read_process(self.double.pid)) is not None and double.state != "S":
            time.sleep(0.01)  # it waits for a CPU, as perflab might
        self.known = {process.identity for process in descendants(self.double.pid)}
        self.channel, theirs = socket.socketpair()
        with theirs:
            self.watchdog = subprocess.Popen(
                [
                    *(programs.program("perflab-watchdog"), "--control-fd", str(theirs.fileno())),
                    *("--perflab", str(self.double.pid), "--limit-ns", str(LIMIT_NS), "--cpus", str(CPUS[0])),
                ],
                pass_fds=[theirs.fileno()],
            )
        self.channel.settimeout(WAIT_S)
        self.lines = self.channel.makefile("r", encoding="utf-8")

    def says(self) -> dict[str, Any]:
        return dict(json.loads(self.lines.readline()))

    def close(self) -> None:
        self.lines.close()
        self.channel.close()
        self.watchdog.kill()
        self.watchdog.wait()
        self.double.kill()
        self.double.wait()
        if self.double.stdout is not None:
            self.double.stdout.close()
        for pid, start_ticks in self.known:
            if (process := read_process(pid)) is not None and process.start_ticks == start_ticks:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, 9)


@pytest.fixture
def watched(request: pytest.FixtureRequest) -> Iterator[Watched]:
    if not Host().may_be_real_time(99) or len(CPUS) < 2:
        pytest.skip("needs RR 99 and two CPUs")
    made = Watched(request.param)
    yield made
    made.close()


def gone(pid: int) -> bool:
    limit = time.monotonic() + WAIT_S
    while read_process(pid) is not None and time.monotonic() < limit:
        time.sleep(0.02)
    return read_process(pid) is None


@pytest.mark.native
@pytest.mark.alone
@pytest.mark.parametrize("watched", ["spins"], indirect=True)
def test_who_keeps_perflab_from_running_is_killed_and_nobody_else(watched: Watched) -> None:
    sleeper, burner = watched.children
    ready = watched.says()
    assert (ready["policy"], ready["priority"], ready["cpus"]) == ("RR", 99, [CPUS[0]])
    fired = watched.says()
    assert (fired["type"], fired["state"]) == ("fired", "R")
    assert fired["waited_ns"] >= LIMIT_NS
    assert [(killed["pid"], killed["name"]) for killed in fired["killed"]] == [(burner, "perflab-burn")]
    assert gone(burner)
    assert read_process(sleeper) is not None


@pytest.mark.native
@pytest.mark.alone
@pytest.mark.parametrize("watched", ["sleeps"], indirect=True)
def test_who_waits_for_nothing_is_let_alone_until_perflab_is_gone(watched: Watched) -> None:
    sleeper, burner = watched.children
    assert watched.says()["type"] == "ready"
    time.sleep(3 * LIMIT_NS / 1e9)
    assert read_process(burner) is not None
    watched.double.kill()
    watched.double.wait()
    assert watched.watchdog.wait(WAIT_S) == 0
    assert gone(burner)
    assert read_process(sleeper) is not None
    assert watched.lines.readline() == "", "it has fired on nobody"


@pytest.mark.native
@pytest.mark.parametrize("watched", ["alone"], indirect=True)
def test_it_ends_when_it_is_told(watched: Watched) -> None:
    assert watched.says()["type"] == "ready"
    watched.channel.sendall(b'{"type":"stop"}\n')
    assert watched.watchdog.wait(WAIT_S) == 0
