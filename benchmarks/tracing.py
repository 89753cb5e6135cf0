"""The cost of tracing for a running system: untraced, only user space, and the scheduler with each of its recorders.

sierra_nevada on one DDS, one trial per way of tracing and block, in random order within each block. Three figures of
each trial: the median latency, its p99, and the CPU time of the graph's processes per message. The cost is the shift
from the untraced trials of the same blocks, as a ratio, by Hodges and Lehmann with its 95 % interval
(docs/statistics.md). A way that this machine lacks is listed with the reason.

    python benchmarks/tracing.py [--blocks 8] [--time 4] [--middleware cyclonedds]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from lab import NATIVE, ROOT, cpu_us_per_delivery, finish, load_note, median, paired_ratio

UNTRACED = "untraced"
WAYS: dict[str, str | None] = {
    UNTRACED: None,
    "user space": "tracing:trials=all,scheduler=none",
    "user space and perf_event": "tracing:trials=all,scheduler=perf_event",
    "user space and ebpf": "tracing:trials=all,scheduler=ebpf",
    "user space and LTTng kernel": "tracing:trials=all,scheduler=lttng",
    "user space and perf_event of the whole system": "tracing:trials=all,scheduler=perf_event,processes=system",
}
UNAVAILABLE = 3


def trial(way: str, arguments: argparse.Namespace, seed: int) -> dict[str, Any] | str:
    """The result of one trial, or why this machine cannot run it."""
    observer = WAYS[way]
    with tempfile.TemporaryDirectory() as folder:
        command = [
            *(sys.executable, "-m", "perflab", "run", "sierra_nevada", "--middleware", arguments.middleware),
            *("--time", str(arguments.time), "--warmup", "0.5s", "--cool-down", "2", "--seed", str(seed), "--json"),
            *(["--observer", observer] if observer else []),
            *("--output", str(Path(folder) / "run")),
        ]
        environment = {**os.environ, "PERFLAB_NATIVE": str(NATIVE), "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        if done.returncode == UNAVAILABLE:
            return done.stderr.strip()
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.strip()}")
        result: dict[str, Any] = json.loads(done.stdout)["results"][0]
        recordings = [json.loads(p.read_text()) for p in Path(folder).glob("run/trials/*/trace/recording.json")]
    figures: dict[str, Any] = {
        "p50_us": result["totals"]["latency_ns"]["p50"] / 1e3,
        "p99_us": result["totals"]["latency_ns"]["p99"] / 1e3,
        "cpu_us_per_message": cpu_us_per_delivery(result),
    }
    for recording in recordings:
        scheduler = recording["scheduler"]
        figures["scheduler_events"] = None if scheduler is None else scheduler["events"]
        figures["lost"] = recording["user_space"]["discarded_events"] + (scheduler["lost"] if scheduler else 0)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=8)
    parser.add_argument("--time", type=float, default=4.0)
    parser.add_argument("--middleware", default="cyclonedds")
    arguments = parser.parse_args()
    before, generator = load_note(), random.Random(1)
    found: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
    unavailable: dict[str, str] = {}
    for block in range(arguments.blocks):
        order = [way for way in WAYS if way not in unavailable]
        generator.shuffle(order)
        for way in order:
            figures = trial(way, arguments, block + 1)
            if isinstance(figures, str):
                unavailable[way] = figures
            else:
                found[way].append(figures)
    report: dict[str, object] = {}
    for way, trials in found.items():
        if not trials:
            continue
        entry: dict[str, object] = {}
        for figure in ("p50_us", "p99_us", "cpu_us_per_message"):
            values = [t[figure] for t in trials]
            entry[figure] = {"median": round(median(values), 2)}
            if way != UNTRACED:
                entry[figure] |= paired_ratio([t[figure] for t in found[UNTRACED]], values)  # type: ignore[operator]
        if way != UNTRACED:
            entry["lost"] = sum(t["lost"] for t in trials)
            events = [t["scheduler_events"] for t in trials if t["scheduler_events"] is not None]
            entry["scheduler_events"] = round(median(events)) if events else None
        report[way] = entry
    whole = {
        "benchmark": "tracing",
        "blocks": arguments.blocks,
        "time_s": arguments.time,
        "middleware": arguments.middleware,
        "ways": report,
        "unavailable": unavailable,
        "noise": {"before": before, "after": load_note()},
    }
    lossless = all(t.get("lost", 0) == 0 for trials in found.values() for t in trials)
    finish(whole, ok=lossless)


if __name__ == "__main__":
    main()
