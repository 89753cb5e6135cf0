"""Plans of random motions of the arm, compared with OMPL's own benchmark of the same problem in the same process.

For each motion the mean over several runs of solving and simplifying by each, one attempt, in turn; the ratio is over
the motions, and the limit applies to its estimate: both run the same algorithms with their own random numbers. It also
prints the time of a whole plan with one attempt and with three, and its parts.

    python benchmarks/planning.py [--scene table] [--goals 100] [--repeats 5]
"""

from __future__ import annotations

import argparse
import json
import subprocess

from lab import BINARIES, finish, load_note, median, paired_ratio

LIMIT = 1.25


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scene", default="table")
    parser.add_argument("--goals", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    command = [BINARIES / "planning", options.scene, str(options.goals), str(options.repeats)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=3600)
    found = json.loads(done.stdout)
    ratio = paired_ratio(found["peer_s"], found["ours_s"])
    parts = {
        f"{attempts} attempts": {part: round(median(values) * 1e3, 3) for part, values in times.items()}
        for attempts, times in found["parts_s"].items()
    }
    result: dict[str, object] = {
        "benchmark": "planning", "scene": options.scene, "n": len(found["ours_s"]), "limit": LIMIT,
        "solve and simplify": {"ms": round(median(found["ours_s"]) * 1e3, 3),
                               "ompl_benchmark_ms": round(median(found["peer_s"]) * 1e3, 3), **ratio},
        "median_ms": parts, "outcomes": found["outcomes"], "machine": load_note(),
    }  # fmt: skip
    value = ratio["ratio"]
    finish(result, isinstance(value, float) and value <= LIMIT)


if __name__ == "__main__":
    main()
