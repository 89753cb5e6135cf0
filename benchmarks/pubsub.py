"""The workload `pubsub` unthrottled, on Cyclone DDS in two processes, compared with ddsperf with the same settings.

Both are reliable, keep everything, and run callbacks where messages arrive (`--executor inline`, ddsperf's listener).
Figures are MB/s of received payload, for ddsperf without its first second; it prints their medians over all
alternations and the ratio with its 95 % interval. The limit is a lower end of 0.95. ddsperf batches small messages, and
so does perflab with `batching=on`, which is used for the comparison.

    python benchmarks/pubsub.py [--alternations 10] [--seconds 4] [--sizes 1024,65536,4194304] [--batching off]
"""

from __future__ import annotations

import argparse
import re
import statistics
from typing import cast

from lab import ddsperf, finish, load_note, median, paired_ratio, run_perflab, spread

LIMIT = 0.95


def perflab_mb_per_s(size: int, seconds: float, batching: str) -> float:
    workload = f"pubsub:message=unbounded_sequence,size={size},rate=0,history=keep_all"
    result = run_perflab(
        workload, "--executor", "inline", "--time", str(seconds), "--cool-down", "0",
        "--middleware-option", f"batching={batching}",
    )  # fmt: skip
    return float(result["totals"]["received_bytes"]) / seconds / 1e6


def ddsperf_mb_per_s(size: int, seconds: float) -> float:
    said = ddsperf(["pub", "size", str(size)], ["sub", "listener"], seconds)
    # "... delta 306098 lost 0 rate 306.10 kS/s 2507.57 Mb/s (...)", a line per second; the first includes discovery.
    rates = [float(value) / 8 for value in re.findall(r"kS/s ([\d.]+) Mb/s \(", said)]
    if len(rates) < 3:
        raise SystemExit(f"ddsperf printed no rates:\n{said}")
    return statistics.mean(rates[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--alternations", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--sizes", default="1024,65536,4194304")
    parser.add_argument("--batching", choices=("on", "off"), default="on")
    options = parser.parse_args()
    sizes = [int(word) for word in options.sizes.split(",")]
    ours: dict[int, list[float]] = {size: [] for size in sizes}
    theirs: dict[int, list[float]] = {size: [] for size in sizes}
    for alternation in range(options.alternations):
        for size in sizes:
            # The order alternates, so that a drift of the machine favours neither.
            for mine in (True, False) if alternation % 2 == 0 else (False, True):
                if mine:
                    ours[size].append(perflab_mb_per_s(size, options.seconds, options.batching))
                else:
                    theirs[size].append(ddsperf_mb_per_s(size, options.seconds))
    result: dict[str, object] = {
        "benchmark": "pubsub",
        "n": options.alternations,
        "limit": LIMIT,
        "batching": options.batching,
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
