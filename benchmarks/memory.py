"""Peak memory of sierra_nevada (10 nodes, 13 publishers, 17 subscriptions, one process), compared with the limit of 10
MB.

The floor is printed with it: the memory of a Cyclone DDS process of the library's own benchmark program, with one
writer.

    python benchmarks/memory.py [--repeats 5] [--seconds 10]
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import time
from pathlib import Path

from lab import CYCLONE, finish, load_note, median, run_perflab

from perflab.experiment.domain import hold

LIMIT_KB = 10_240  # irobot_benchmark's target for this topology


def floor_kb() -> float:
    """The peak of `ddsperf pub`, in kB."""
    with hold() as domain:
        process = subprocess.Popen(
            ["ddsperf", "-i", str(domain), "pub", "10Hz", "size", "100"],
            stdout=subprocess.DEVNULL,
            env={**os.environ, "CYCLONEDDS_URI": CYCLONE},
        )
        try:
            time.sleep(2)
            found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())
            if found is None:
                raise SystemExit("ddsperf: /proc shows no VmHWM")
            return float(found[1])
        finally:
            process.terminate()
            process.wait(timeout=30)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10.0)
    options = parser.parse_args()
    peaks = [
        run_perflab("sierra_nevada", "--time", str(options.seconds))["resources"]["rss_kb_max"]
        for _ in range(options.repeats)
    ]
    peak = median(peaks)
    finish(
        {
            "benchmark": "memory",
            "n": options.repeats,
            "rss_peak_kb": peak,
            "rss_peak_kb_all": peaks,
            "limit_kb": LIMIT_KB,
            "ratio_to_limit": round(peak / LIMIT_KB, 3),
            "floor_kb": floor_kb(),
            "machine": load_note(),
        },
        peak <= LIMIT_KB,
    )


if __name__ == "__main__":
    main()
