"""The middleware `shm` compared with its floor: a bare futex between two processes, with the same bytes copied in and
out.

Half of the round trip of a ping-pong; both take turns in the same two processes, each on its own CPU. The ratio is that
of each run, with fresh processes; the limit applies to small messages.

    python benchmarks/shm_floor.py [--repeats 10]
"""

from __future__ import annotations

import argparse
import json
import subprocess

from lab import BINARIES, NATIVE, finish, load_note, median, paired_ratio, spread

from perflab.experiment.domain import hold

LIMIT = 1.3
SMALL = (100, 1000)
LARGE = (65_536,)


def half_rtt_us(size: int) -> tuple[float, float]:
    """For the bare futex, and for the plug-in."""
    with hold() as domain:
        command = [str(BINARIES / "shm_floor"), str(NATIVE / "middleware" / "shm.so"), str(domain), str(size)]
        result = json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout)
    return float(result["floor_us"]), float(result["shm_us"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=10)
    options = parser.parse_args()
    measured: dict[int, list[tuple[float, float]]] = {size: [] for size in (*SMALL, *LARGE)}
    for _ in range(options.repeats):
        for size, runs in measured.items():
            runs.append(half_rtt_us(size))
    result: dict[str, object] = {"benchmark": "shm_floor", "n": options.repeats, "limit": LIMIT, "machine": load_note()}
    ok = True
    for size, runs in measured.items():
        floor, shm = [run[0] for run in runs], [run[1] for run in runs]
        found = paired_ratio(floor, shm)
        ratio = found["ratio"]
        if size in SMALL:
            ok = ok and isinstance(ratio, float) and ratio <= LIMIT
        result[f"{size}_bytes"] = {
            "floor_us": round(median(floor), 2),
            "floor_spread_us": spread(floor),
            "shm_us": round(median(shm), 2),
            "shm_spread_us": spread(shm),
            **found,
        }
    finish(result, ok)


if __name__ == "__main__":
    main()
