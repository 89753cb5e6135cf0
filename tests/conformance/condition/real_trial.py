"""A trial without a DDS graph: real guard, real monitor, and processes with threads that send each other messages.

Unlike a trial of an experiment it goes on when a program of it ends, so that what a condition says of that is seen.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from perflab import native
from perflab.condition import Counts, Launch
from perflab.experiment.companion import GuardedCompanion
from perflab.formats.monitor import MonitorReader
from perflab.processes import Process, descendants, read_process
from perflab.workload import Graph

WORKLOAD = Path(__file__).with_name("workload.py")
PROCESSES = ("talker", "listener")
INTERVAL_NS = 50_000_000
START_LIMIT_S = 60.0
THREADS_EXPECTED = 6  # of each process of the graph: workload.py and its child have three each
STEP_S = 0.02


def graph(**process: Any) -> Graph:
    """The resolved graph of the workload; `process` adds to the first of its processes."""
    documents: list[dict[str, Any]] = [
        {"name": name, "executors": [], "threads": {}, "nodes": [{"name": name, "namespace": "/"}]}
        for name in PROCESSES
    ]
    documents[0] |= process
    return Graph({"schema": 1, "name": "small", "processes": documents})


class RealTrial:
    """A `Trial` of perflab.condition. Use as a context: on leaving, all its processes are gone."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.graph = graph()
        self.runtime = "dds"
        self.native = native.find()
        self.middleware_configuration: Mapping[str, Any] = {}
        self.middleware_environment: Mapping[str, str] = {}
        self.launch = Launch()
        self.processes: dict[str, int] = {}
        self.condition_processes: dict[str, int] = {}
        self.companions: dict[str, GuardedCompanion] = {}
        self._monitor: GuardedCompanion | None = None
        self._reader: MonitorReader | None = None

    def __enter__(self) -> RealTrial:
        output = self.directory / "monitor.jsonl"
        self._monitor = self._guarded(
            "monitor",
            [native.find().program("perflab-monitor"), "--interval-ns", str(INTERVAL_NS), "--output", output],
            control=True,
        )
        limit_s = time.monotonic() + START_LIMIT_S
        while not (output.exists() and output.stat().st_size):
            assert time.monotonic() < limit_s, "the monitor writes nothing"
            assert self._monitor.status is None, self._monitor.log.read_text(encoding="utf-8")
            self.wait(STEP_S)
        self._reader = MonitorReader(output)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for companion in reversed(self.companions.values()):
            companion.stop(0.5)

    @property
    def monitor(self) -> MonitorReader:
        assert self._reader is not None
        return self._reader

    def start_workload(self, *arguments: str) -> None:
        """As perflab starts the processes of a graph, by what the conditions wrote to `launch`."""
        for name in PROCESSES:
            cpus = self.launch.cpus_of.get(name, self.launch.cpus)
            pinned = ["taskset", "--cpu-list", ",".join(map(str, sorted(cpus)))] if cpus else []
            command: list[str | Path] = [*pinned, *self.launch.prefix, sys.executable, WORKLOAD, *arguments]
            companion = self._guarded(f"workload_{name}", command)
            assert companion.pid is not None
            self.processes[name] = companion.pid
            self._watch(f"workload/{name}", companion.pid)
        limit_s = time.monotonic() + START_LIMIT_S
        while any(self._threads(name) < THREADS_EXPECTED for name in PROCESSES):
            assert time.monotonic() < limit_s, "the workload did not start"
            self.wait(STEP_S)

    def start(
        self, name: str, command: Sequence[str | Path], *, control: bool = False, condition: str | None = None
    ) -> GuardedCompanion:
        del condition
        companion = self._guarded(name, command, control=control)
        assert companion.pid is not None
        self._watch(name, companion.pid)
        return companion

    def counts(self, condition: str) -> Counts | None:
        del condition
        return None

    def wait(self, seconds: float) -> None:
        end_s = time.monotonic() + seconds
        while True:
            for companion in self.companions.values():
                companion.poll()
            left_s = end_s - time.monotonic()
            if left_s <= 0:
                return
            time.sleep(min(STEP_S, left_s))

    def tasks(self, label: str) -> list[Process]:
        """The processes of a companion: the program itself first."""
        root = self.companions[label].pid
        assert root is not None
        first = read_process(root)
        return [*([first] if first else []), *descendants(root)]

    def _threads(self, name: str) -> int:
        window = (0, time.monotonic_ns())
        self.monitor.refresh()
        return len({(s.pid, s.tid) for s in self.monitor.threads(f"workload/{name}", *window)})

    def _watch(self, group: str, root: int) -> None:
        assert self._monitor is not None
        body: Mapping[str, Any] = {"type": "watch", "group": group, "root": root}
        self._monitor.send(body)

    def _guarded(self, name: str, command: Sequence[str | Path], *, control: bool = False) -> GuardedCompanion:
        self.companions[name] = GuardedCompanion(
            name,
            command,
            guard=native.find().program("perflab-guard"),
            log=self.directory / f"{name}.log",
            control=control,
        )
        return self.companions[name]
