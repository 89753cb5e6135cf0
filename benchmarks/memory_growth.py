"""How fast the memory of perflab-node grows in a long run: the slope of its resident memory, compared with a limit.

The slope is that of a least-squares line through the means of whole minutes, from minute 10 on: before that the library
fills its pools, and histograms see most of their values for the first time. Its interval allows for minutes that
resemble their neighbours (Newey and West 1987, lag 3, Student's t). The limit applies to the upper end of the interval.

    python benchmarks/memory_growth.py [--minutes 30] [--middleware cyclonedds] [--workload sierra_nevada]
    python benchmarks/memory_growth.py --run RUN      # of a run that is there already
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from lab import NATIVE, finish, load_note
from numpy.typing import NDArray
from scipy import stats

LIMIT_KIB_PER_MINUTE = 10.0
LAG = 3


def minute_means(records: Path, from_minute: int) -> NDArray[np.float64]:
    """Mean resident memory in KiB of each whole minute of the measured part, from that minute on."""
    minutes: dict[int, list[float]] = {}
    start_ns: int | None = None
    end_ns: int | None = None
    with records.open() as lines:
        for line in lines:
            if line.startswith('{"type":"checkpoint"') or '"type":"progress"' in line:
                continue  # the largest, and one without resources
            record = json.loads(line)
            if record["type"] == "start":
                start_ns, end_ns = record["measured_from_ns"], record["measured_until_ns"]
            elif record["type"] == "resources" and start_ns is not None and end_ns is not None:
                at_ns = record["at_ns"] - start_ns
                if record["rss_kb"] is not None and 0 <= at_ns < end_ns - start_ns:
                    minutes.setdefault(at_ns // 60_000_000_000, []).append(record["rss_kb"])
    if start_ns is None or end_ns is None:
        raise SystemExit(f"{records}: no start: the run has not begun")
    whole = (end_ns - start_ns) // 60_000_000_000
    return np.array([np.mean(minutes[m]) for m in range(from_minute, whole) if m in minutes])


def slope(values: NDArray[np.float64]) -> tuple[float, float, float]:
    """The least-squares slope per step, and the ends of its 95 % interval."""
    n = len(values)
    at = np.arange(n) - (n - 1) / 2
    squares = float(at @ at)
    estimate = float(at @ values) / squares
    score = at * (values - values.mean() - estimate * at)
    variance = float(score @ score)
    for lag in range(1, LAG + 1):
        variance += 2 * (1 - lag / (LAG + 1)) * float(score[lag:] @ score[:-lag])
    half = float(stats.t.ppf(0.975, n - 2)) * np.sqrt(max(variance, 0.0) * n / (n - 2)) / squares
    return estimate, estimate - half, estimate + half


def run(workload: str, middleware: str, minutes: int, folder: Path) -> Path:
    target = folder / "run"
    command = [sys.executable, "-m", "perflab", "run", workload, "--middleware", middleware, "--time", f"{minutes}min",
               "--output", str(target)]  # fmt: skip
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "PERFLAB_NATIVE": str(NATIVE)}, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.strip()}")
    return target


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workload", default="sierra_nevada")
    parser.add_argument("--middleware", default="cyclonedds")
    parser.add_argument("--minutes", type=int, default=30)
    parser.add_argument("--from-minute", type=int, default=10)
    parser.add_argument("--run", type=Path, help="an existing run")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        where = options.run or run(options.workload, options.middleware, options.minutes, Path(folder))
        files = sorted(where.glob("trials/*/processes/*.jsonl"))
        if not files:
            raise SystemExit(f"{where}: no records of processes in it")
        grown = {file.stem: minute_means(file, options.from_minute) for file in files}
    for name, values in grown.items():
        if len(values) < LAG + 5:
            raise SystemExit(
                f"{name}: {len(values)} minutes after minute {options.from_minute}: at least {LAG + 5} are needed"
            )
    slopes = {name: slope(values) for name, values in grown.items()}
    finish(
        {
            "benchmark": "memory_growth",
            "from_minute": options.from_minute,
            "limit_kib_per_minute": LIMIT_KIB_PER_MINUTE,
            "processes": {
                name: {
                    "minutes": len(grown[name]),
                    "rss_kib_first": round(float(grown[name][0])),
                    "rss_kib_last": round(float(grown[name][-1])),
                    "kib_per_minute": round(estimate, 1),
                    "interval": [round(low, 1), round(high, 1)],
                }
                for name, (estimate, low, high) in slopes.items()
            },
            "machine": load_note(),
        },
        all(high < LIMIT_KIB_PER_MINUTE for _, _, high in slopes.values()),
    )


if __name__ == "__main__":
    main()
