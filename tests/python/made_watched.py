"""Runs whose trials perflab-monitor watched, with known shares of known CPUs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from made_run import MS, START_NS, MadeTrial, Stream, arrivals, make_run

from perflab.report.results import Trials, results_of
from perflab.runs.rundata import open_run

STEP_NS = 100 * MS
SAMPLES = 24  # the trial lasts 20 of them, beginning with the second


def records(allowed: str = "0-1", cpus_seen: int = 2) -> list[dict[str, Any]]:
    """CPU 0 is busy for a quarter of each interval, CPU 1 for all of it in the second half.

    Thread 11 uses 10 ms in each interval, first on CPU 0 and from the middle onwards on CPU 1; thread 12 of a condition
    50 ms, always on CPU 1; thread 13 never runs.
    """
    numbers = [0, 1] if allowed == "0-1" else [int(allowed)]
    lines: list[dict[str, Any]] = [
        {"type": "monitor", "schema": 1, "at_ns": 0, "interval_ns": STEP_NS, "pid": 1, "cpus": [0, 1]}
    ]
    for k in range(SAMPLES):
        at_ns = START_NS + (k - 1) * STEP_NS
        if k == 0:
            lines += [
                {
                    "type": "thread", "at_ns": at_ns, "group": group, "pid": tid, "tid": tid, "start_ticks": 1,
                    "started_ns": None, "name": name, "policy": "OTHER", "priority": 0, "nice": 0, "cpus": numbers,
                }
                for tid, name, group in ((11, "talker", "workload/mouth"), (12, "stress", "load"), (13, "idle", "load"))
            ]  # fmt: skip
        later = k - 1 >= 11
        busy = [25 * MS, 100 * MS if later else 0, *([50 * MS] * cpus_seen)][:cpus_seen]
        lines.append(
            {
                "type": "sample", "at_ns": at_ns, "interval_ns": None if k == 0 else STEP_NS,
                "cpus": [
                    {"cpu": i, "busy_ns": b, "idle_ns": STEP_NS - b, "steal_ns": 0} for i, b in enumerate(busy)
                ],
                "threads": [
                    [11, k * 10 * MS, 0, 0, 0, int(later)], [12, k * 50 * MS, 0, 0, 0, 1], [13, 0, 0, 0, 0, 0],
                ],
                "groups": {},
            }
        )  # fmt: skip
    return lines


def watched(path: Path, latencies: dict[str, list[float]], lines: list[dict[str, Any]] | None = None) -> list[Trials]:
    """A run with trials of these latencies (µs) by condition, each watched by the monitor."""
    trials = [
        MadeTrial(
            [Stream("talker", "chat", "listener", 1, 1000, arrivals([us] * 1000, 1))],
            conditions=[condition] if condition else [],
        )
        for condition, own in latencies.items()
        for us in own
    ]
    make_run(path, {"mouth": ["talker"], "ear": ["listener"]}, trials)
    for folder in (path / "trials").iterdir():
        text = "".join(json.dumps(line) + "\n" for line in lines or records())
        (folder / "monitor.jsonl").write_text(text)
    return results_of([open_run(path)])
