"""The workload `pubsub` as fast as it goes, on Cyclone DDS in two processes, beside ddsperf with the same settings.

Both are reliable, keep everything, and run callbacks where messages arrive (`--executor inline`, ddsperf's listener).
Figures are MB/s of payload that were received, medians of the whole seconds but the first; printed are their medians
over all alternations and the ratio with its 95 % interval. The limit is a lower end of 0.95. ddsperf packs small
messages together before it sends them (batching), which perflab's plug-in does not.

    python benchmarks/pubsub.py [--alternations 10] [--seconds 4] [--sizes 1024,65536,4194304]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import cast

from lab import CYCLONE, NATIVE, finish, load_note, median, paired_ratio, spread

from perflab.experiment.domain import hold

LIMIT = 0.95


def perflab_mb_per_s(size: int, seconds: float) -> float:
    workload = f"pubsub:message=unbounded_sequence,size={size},rate=0,history=keep_all"
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "perflab", "run", workload, "--middleware", "cyclonedds",
                   "--executor", "inline", "--time", str(seconds), "--cool-down", "0", "--progress", "off", "--json",
                   "--output", str(Path(folder) / "run")]  # fmt: skip
        done = subprocess.run(
            command, capture_output=True, text=True, env={**os.environ, "PERFLAB_NATIVE": str(NATIVE)}, check=False
        )
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.strip()}")
        (records,) = Path(folder).glob("run/trials/*/processes/subscriber.jsonl")
        told = [json.loads(line) for line in records.read_text().splitlines() if '"type":"progress"' in line]
    rates = [
        (after["received_bytes"] - before["received_bytes"]) / (after["at_ns"] - before["at_ns"]) * 1e3
        for before, after in pairwise(told)
    ]
    return median(rates)


def ddsperf_mb_per_s(size: int, seconds: float) -> float:
    environment = {**os.environ, "CYCLONEDDS_URI": CYCLONE}
    with hold() as domain:
        pub = subprocess.Popen(
            ["ddsperf", "-i", str(domain), "-D", str(seconds + 2), "pub", "size", str(size)],
            stdout=subprocess.DEVNULL,
            env=environment,
        )
        sub = subprocess.run(
            ["ddsperf", "-i", str(domain), "-D", str(seconds + 1), "sub", "listener"],
            capture_output=True,
            text=True,
            env=environment,
            timeout=seconds + 60,
            check=False,
        )
        pub.terminate()
        pub.wait(timeout=30)
    # "... delta 306098 lost 0 rate 306.10 kS/s 2507.57 Mb/s (...)", a line per second; the first holds discovery.
    rates = [float(value) / 8 for value in re.findall(r"kS/s ([\d.]+) Mb/s \(", sub.stdout)]
    if len(rates) < 3:
        raise SystemExit(f"ddsperf printed no rates:\n{sub.stdout}{sub.stderr}")
    return median(rates[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--alternations", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--sizes", default="1024,65536,4194304")
    options = parser.parse_args()
    sizes = [int(word) for word in options.sizes.split(",")]
    ours: dict[int, list[float]] = {size: [] for size in sizes}
    theirs: dict[int, list[float]] = {size: [] for size in sizes}
    for alternation in range(options.alternations):
        for size in sizes:
            # Who goes first changes, so that a drift of the machine favours neither.
            for mine in (True, False) if alternation % 2 == 0 else (False, True):
                measure, into = (perflab_mb_per_s, ours) if mine else (ddsperf_mb_per_s, theirs)
                into[size].append(measure(size, options.seconds))
    result: dict[str, object] = {
        "benchmark": "pubsub",
        "n": options.alternations,
        "limit": LIMIT,
        "machine": load_note(),
    }
    ok = True
    for size in sizes:
        ratio = paired_ratio(theirs[size], ours[size])
        interval = cast("list[float] | None", ratio["interval"])
        ok = ok and interval is not None and interval[0] >= LIMIT
        result[str(size)] = {
            "perflab_mb_per_s": round(median(ours[size]), 1), "perflab_spread": spread(ours[size]),
            "ddsperf_mb_per_s": round(median(theirs[size]), 1), "ddsperf_spread": spread(theirs[size]), **ratio,
        }  # fmt: skip
    finish(result, ok)


if __name__ == "__main__":
    main()
