"""Encoding a message from its struct and decoding it into one, compared with Fast CDR with code like fastddsgen's.

Both take turns within a process; the ratio is that of each process. The limit applies to the upper end of its interval.

    python benchmarks/serialization.py [--repeats 15]
"""

from __future__ import annotations

import argparse
import json
import subprocess

from lab import BINARIES, finish, load_note, median, paired_ratio

LIMIT = 1.1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    runs: list[dict[str, dict[str, float]]] = []
    for _ in range(options.repeats):
        done = subprocess.run([BINARIES / "serialization"], capture_output=True, text=True, check=True, timeout=300)
        runs.append(json.loads(done.stdout))
    result: dict[str, object] = {"benchmark": "serialization", "n": options.repeats, "limit": LIMIT}
    ok = True
    for name in runs[0]:
        found: dict[str, object] = {"bytes": runs[0][name]["bytes"]}
        for what in ("encode", "decode"):
            ours = [run[name][f"{what}_ns"] for run in runs]
            peers = [run[name][f"peer_{what}_ns"] for run in runs]
            ratio = paired_ratio(peers, ours)
            interval = ratio["interval"]
            ok = ok and isinstance(interval, list) and interval[1] <= LIMIT
            found[what] = {"ns": round(median(ours), 1), "fast_cdr_ns": round(median(peers), 1), **ratio}
        result[name] = found
    finish(result | {"machine": load_note()}, ok)


if __name__ == "__main__":
    main()
