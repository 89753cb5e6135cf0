"""A trial made of numbers: what perflab-monitor would have written, and programs with scripted output."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from perflab import native
from perflab.condition import Counts, Launch
from perflab.formats.monitor import MonitorReader
from perflab.workload import Graph

MS = 1_000_000
S = 1_000_000_000
INTERVAL_NS = 100 * MS


class MadeMonitor:
    """Writes the file of a monitor that looked every 100 ms from `begin_ns` on for `seconds`.

    `cpu(tid, i)` and `delay(tid, i)` are the shares of interval i that a thread ran and waited for a CPU.
    """

    def __init__(self, path: Path, cpus: Sequence[int] = (0, 1), begin_ns: int = 0) -> None:
        self.path = path
        self.cpus = cpus
        self.begin_ns = begin_ns
        self.lines: list[dict[str, Any]] = [
            {"type": "monitor", "schema": 1, "at_ns": begin_ns, "interval_ns": INTERVAL_NS, "pid": 1, "cpus": [*cpus]}
        ]

    def thread(self, group: str, tid: int, *, at: int = 0, **state: Any) -> MadeMonitor:
        """A state of a thread from sample `at` on."""
        usual = {"pid": tid, "name": "t", "policy": "OTHER", "priority": 0, "nice": 0, "cpus": [*self.cpus]}
        self.lines.append(
            {"type": "thread", "at_ns": self.at(at), "group": group, "tid": tid, "start_ticks": 7, **usual, **state}
        )
        return self

    def samples(
        self,
        n: int,
        *,
        cpu: Callable[[int, int], float] = lambda tid, i: 0.0,
        delay: Callable[[int, int], float | None] = lambda tid, i: 0.0,
        idle: float = 0.5,
        rss_kb: Callable[[str, int], int] = lambda group, i: 1000,
        written: Callable[[str, int], int] = lambda group, i: 0,
        on: Callable[[int, int], int] = lambda tid, i: 0,
        missed: Callable[[int], bool] = lambda i: False,
    ) -> MadeMonitor:
        """The n samples; `idle` is the idle share of every CPU, `written` bytes of an interval.

        `on` is the CPU that a thread was on last; samples that were `missed` are not in the file.
        """
        threads = {line["tid"]: line["group"] for line in self.lines if line["type"] == "thread"}
        groups = list(dict.fromkeys(threads.values()))
        used, waited = dict.fromkeys(threads, 0.0), dict.fromkeys(threads, 0.0)
        bytes_written = dict.fromkeys(groups, 0)
        known = True
        for i in range(n):
            for tid in threads if i else ():
                used[tid] += cpu(tid, i) * INTERVAL_NS
                share = delay(tid, i)
                known = share is not None
                waited[tid] += (share or 0.0) * INTERVAL_NS
            for group in groups:
                bytes_written[group] += written(group, i) if i else 0
            figures = {"busy_ns": round((1 - idle) * INTERVAL_NS), "idle_ns": round(idle * INTERVAL_NS), "steal_ns": 0}
            nothing = dict.fromkeys(figures) if i == 0 else figures
            if missed(i):
                continue
            self.lines.append(
                {
                    "type": "sample",
                    "at_ns": self.at(i),
                    "interval_ns": INTERVAL_NS if i else None,
                    "cpus": [{"cpu": number, **nothing} for number in self.cpus],
                    "pressure": None,
                    "threads": [
                        [t, round(used[t]), round(waited[t]) if known else None, 0, 0, on(t, i)] for t in threads
                    ],
                    "groups": {
                        g: {"processes": 1, "rss_kb": rss_kb(g, i), "read_bytes": 0, "write_bytes": bytes_written[g]}
                        for g in groups
                    },
                }
            )
        return self

    def at(self, sample: int) -> int:
        return self.begin_ns + sample * INTERVAL_NS

    def reader(self) -> MonitorReader:
        """Sorted by time: states may have been added in any order."""
        order = {"monitor": 0, "thread": 1, "sample": 2}
        lines = sorted(self.lines, key=lambda line: (line["at_ns"], order[line["type"]]))
        self.path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        reader = MonitorReader(self.path)
        reader.refresh()
        return reader


class MadeCompanion:
    """Says what it was given to say."""

    def __init__(self, name: str, pid: int | None, says: Iterable[dict[str, Any]] = ()) -> None:
        self.name = name
        self.pid = pid
        self.status: int | None = None
        self.log = Path("/dev/null")
        self.said: deque[dict[str, Any]] = deque(says)
        self.stopped = 0

    def send(self, body: Mapping[str, Any]) -> None:
        del body

    def receive(self, timeout_s: float) -> dict[str, Any] | None:
        del timeout_s
        return self.said.popleft() if self.said else None

    def stop(self, grace_s: float = 2.0) -> int | None:
        del grace_s
        self.stopped += 1
        return self.status


class MadeTrial:
    """A `Trial` of perflab.condition with `monitor` as it was made."""

    def __init__(
        self,
        directory: Path,
        monitor: MonitorReader,
        companion: MadeCompanion | None = None,
        graph: Graph | None = None,
        runtime: str = "dds",
    ) -> None:
        self.directory = directory
        self.monitor = monitor
        self.graph = graph or graph_of("a", "b")
        self.runtime = runtime
        self.native = native.find()
        self.middleware_environment: dict[str, str] = {}
        self.middleware_configuration: dict[str, Any] = {"name": "sim", "library": "sim.so", "domain": 3}
        self.launch = Launch()
        self.processes: dict[str, int] = {}
        self.condition_processes: dict[str, int] = {}
        self.companion = companion
        self.commands: list[list[str]] = []

    def start(
        self, name: str, command: Sequence[str | Path], *, control: bool = False, condition: str | None = None
    ) -> MadeCompanion:
        del name, control, condition
        self.commands.append([str(word) for word in command])
        assert self.companion is not None
        return self.companion

    def counts(self, condition: str) -> Counts | None:
        del condition
        return None

    def wait(self, seconds: float) -> None:
        del seconds


def graph_of(*names: str, **process: Any) -> Graph:
    """A resolved graph of processes of these names; `process` adds to each."""
    return Graph(
        {
            "schema": 1,
            "name": "made",
            "processes": [
                {"name": name, "executors": [], "nodes": [{"name": name, "namespace": "/"}], **process}
                for name in names
            ],
        }
    )
