"""The harness's own cost in time: bring-up, dead time between trials, share of a run spent measuring.

sierra_nevada, baselines and one condition, as people run them. Bring-up is from the command to the first measured
message; dead time is the duration of a trial beyond warm-up and measured part, from the beginning of one trial to that
of the next, without the wait for a quiet machine. Both come from instants recorded by the run itself, and are compared
with acceptable limits.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from lab import NATIVE, finish, load_note, median, spread

BRING_UP_LIMIT_S = 2.0
DEAD_TIME_LIMIT_S = 1.0
LOADED_LIMIT_S = 3.0  # a load must be in effect before a trial begins
REPEATS = 5
TIME_S = 2
TRIALS = 5


def run(folder: Path, *arguments: str) -> tuple[float, list[dict[str, Any]]]:
    """Runs an experiment; the instant before it on CLOCK_MONOTONIC in s, and the documents of its trials."""
    command = [sys.executable, "-m", "perflab", "run", "sierra_nevada", "--time", str(TIME_S), "--quiet", *arguments,
               "--output", str(folder)]  # fmt: skip
    began = time.monotonic()
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "PERFLAB_NATIVE": str(NATIVE)}, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.strip()}")
    return began, [json.loads(p.read_text()) for p in sorted(folder.glob("trials/*/trial.json"))]


def first_message_s(folder: Path, trial: dict[str, Any]) -> float:
    """When the first measured message was due, on CLOCK_MONOTONIC."""
    manifest = json.loads((folder / "manifest.json").read_text())
    periods = [
        timer["period_ns"]
        for process in manifest["workload"]["graph"]["processes"]
        for node in process["nodes"]
        for timer in node["timers"]
    ]
    return float(trial["start_at_ns"] + 1e9 * trial["warmup_s"] + min(periods)) / 1e9


def dead_times_s(trials: list[dict[str, Any]]) -> list[float]:
    """Beyond warm-up, measured part and the wait for quiet, which is due to the machine and not the harness."""
    began = [datetime.fromisoformat(t["started_utc"]).timestamp() for t in trials]
    found = []
    for trial, this, following in zip(trials, began, began[1:], strict=False):
        quiet = (trial["cool_down"] or {}).get("waited_s", 0.0)
        found.append(following - this - trial["duration_s"] - trial["warmup_s"] - quiet)
    return found


def figures(values: list[float], limit: float) -> dict[str, object]:
    middle = median(values)
    return {
        "median_s": round(middle, 3),
        "spread_s": spread(values),
        "n": len(values),
        "limit_s": limit,
        "ratio": round(middle / limit, 3),
    }


def main() -> None:
    bring_up: list[float] = []
    baseline: list[float] = []
    loaded: list[float] = []
    shares: list[float] = []
    for repeat in range(REPEATS):
        with tempfile.TemporaryDirectory() as scratch:
            began, trials = run(Path(scratch) / "one")
            bring_up.append(first_message_s(Path(scratch) / "one", trials[0]) - began)
            began, trials = run(Path(scratch) / "baseline", "--trials", str(TRIALS), "--seed", str(repeat))
            shares.append(sum(t["duration_s"] for t in trials) / (time.monotonic() - began))
            baseline += dead_times_s(trials)
            condition = ["--condition", "cpu_load:workers=1,load=50", "--baseline", "off", "--trials", "3"]
            _, trials = run(Path(scratch) / "load", *condition, "--seed", str(repeat))
            loaded += dead_times_s(trials)
    measured = {
        "bring_up": figures(bring_up, BRING_UP_LIMIT_S),
        "dead_time_baseline": figures(baseline, DEAD_TIME_LIMIT_S),
        "dead_time_cpu_load": figures(loaded, LOADED_LIMIT_S),
        f"share_measuring_{TRIALS}x{TIME_S}s": {"median": round(median(shares), 3), "n": len(shares)},
    }
    met = median(bring_up) <= BRING_UP_LIMIT_S and median(baseline) <= DEAD_TIME_LIMIT_S
    finish({"benchmark": "harness", **measured, "noise": load_note()}, met and median(loaded) <= LOADED_LIMIT_S)


if __name__ == "__main__":
    main()
