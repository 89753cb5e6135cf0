"""One process with 1,000 topics, one publisher at 10 Hz and one subscription each, on Cyclone DDS: CPU and latency.

The limit for comparison is `inline`, without an executor between the middleware and the callback; it prints the cost of
`single_threaded` relative to that, in CPU time and in median latency. The two alternate.

    python benchmarks/thousand_topics.py [--alternations 3] [--seconds 10]
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from lab import finish, load_note, median, run_perflab

TOPICS = 1000


def graph() -> dict[str, object]:
    """One node for the publishers and one for the subscriptions, in one process."""
    names = [f"topic_{index:04d}" for index in range(TOPICS)]
    return {
        "name": "thousand_topics",
        "nodes": [
            {
                "name": "talker",
                "publishers": [{"topic": name, "type": "stamped100b", "period": "100ms"} for name in names],
            },
            {"name": "listener", "subscriptions": [{"topic": name, "type": "stamped100b"} for name in names]},
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--alternations", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10.0)
    options = parser.parse_args()
    executors = ["inline", "single_threaded"]
    cpu: dict[str, list[float]] = {executor: [] for executor in executors}
    latency: dict[str, list[float]] = {executor: [] for executor in executors}
    memory: dict[str, list[float]] = {executor: [] for executor in executors}
    lost = 0
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "thousand_topics.json"
        file.write_text(json.dumps(graph()))
        for alternation in range(options.alternations):
            for executor in executors if alternation % 2 == 0 else reversed(executors):
                result = run_perflab(str(file), "--time", str(options.seconds), "--executor", executor)
                cpu[executor].append(result["resources"]["cpu_percent_mean"])
                memory[executor].append(result["resources"]["rss_kb_max"] / 1024)
                totals = result["totals"]
                latency[executor].append(totals["latency_ns"]["p50"] / 1e3)
                lost += sum(totals["lost"].values())
    report: dict[str, object] = {
        "benchmark": "thousand_topics",
        "n": options.alternations,
        "messages_per_s": TOPICS * 10,
        "lost": lost,
        "machine": load_note(),
    }
    for executor in executors:
        report[executor] = {
            "cpu_percent": round(median(cpu[executor]), 2),
            "latency_p50_us": round(median(latency[executor]), 1),
            "rss_mb": round(median(memory[executor]), 1),
        }
    report["ratio_cpu"] = round(median(cpu["single_threaded"]) / median(cpu["inline"]), 2)
    report["ratio_latency_p50"] = round(median(latency["single_threaded"]) / median(latency["inline"]), 2)
    finish(report, lost == 0)


if __name__ == "__main__":
    main()
