"""10,000 deliveries/s on each executor, compared with the same traffic with `inline`: CPU time and median latency.

One process of 10 nodes, each with 2 publishers at 50 Hz and a subscription to each of the 20 topics: 200 subscriptions.
`inline` has no executor between the middleware and the callback, so the ratio is the cost of an executor. All kinds
alternate, and the order is reversed every other time.

    python benchmarks/executors.py [--alternations 5] [--seconds 8] [--middleware cyclonedds]
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from lab import cpu_us_per_delivery, finish, load_note, lost, median, run_perflab, spread

NODES = 10
EXECUTORS = ("inline", "single_threaded", "events", "multi_threaded:2")


def graph() -> dict[str, object]:
    """Every node publishes two topics and subscribes all of them."""
    topics = [f"topic_{index:02d}" for index in range(2 * NODES)]
    nodes = []
    for index in range(NODES):
        own = topics[2 * index : 2 * index + 2]
        nodes.append(
            {
                "name": f"node_{index:02d}",
                "publishers": [{"topic": topic, "type": "stamped100b", "period": "20ms"} for topic in own],
                "subscriptions": [{"topic": topic, "type": "stamped100b"} for topic in topics],
            }
        )
    return {"name": "executors", "nodes": nodes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--alternations", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--middleware", default="cyclonedds")
    options = parser.parse_args()
    cpu: dict[str, list[float]] = {executor: [] for executor in EXECUTORS}
    latency: dict[str, list[float]] = {executor: [] for executor in EXECUTORS}
    missing = 0
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "executors.json"
        file.write_text(json.dumps(graph()))
        for alternation in range(options.alternations):
            for executor in EXECUTORS if alternation % 2 == 0 else reversed(EXECUTORS):
                result = run_perflab(
                    str(file), "--time", str(options.seconds), "--executor", executor, middleware=options.middleware
                )
                cpu[executor].append(cpu_us_per_delivery(result))
                latency[executor].append(result["totals"]["latency_ns"]["p50"] / 1e3)
                missing += lost(result)
    report: dict[str, object] = {
        "benchmark": "executors",
        "middleware": options.middleware,
        "n": options.alternations,
        "deliveries_per_s": NODES * 2 * NODES * 50,
        "lost": missing,
        "machine": load_note(),
    }
    for executor in EXECUTORS:
        # Consecutive runs are compared with each other, so that a slow minute of the machine affects both.
        ratios = [a / b for a, b in zip(cpu[executor], cpu["inline"], strict=True)]
        report[executor] = {
            "cpu_us_per_delivery": round(median(cpu[executor]), 2),
            "ratio_cpu": round(median(ratios), 2),
            "ratio_cpu_spread": spread(ratios),
            "latency_p50_us": round(median(latency[executor]), 1),
        }
    finish(report, missing == 0)


if __name__ == "__main__":
    main()
