"""sierra_nevada on every middleware and executor: CPU time per delivered message and median latency.

The ratios are to Cyclone DDS with `single_threaded`, measured in the same alternation.

    python benchmarks/middlewares.py [--alternations 3] [--seconds 8]
"""

from __future__ import annotations

import argparse

from lab import cpu_us_per_delivery, finish, load_note, lost, median, run_perflab, spread

MIDDLEWARES = ("cyclonedds", "fastdds")
EXECUTORS = ("single_threaded", "inline", "events", "multi_threaded:2")
REFERENCE = ("cyclonedds", "single_threaded")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--alternations", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=8.0)
    options = parser.parse_args()
    kinds = [(middleware, executor) for middleware in MIDDLEWARES for executor in EXECUTORS]
    cpu: dict[tuple[str, str], list[float]] = {kind: [] for kind in kinds}
    latency: dict[tuple[str, str], list[float]] = {kind: [] for kind in kinds}
    memory: dict[tuple[str, str], list[float]] = {kind: [] for kind in kinds}
    missing = 0
    for alternation in range(options.alternations):
        for middleware, executor in kinds if alternation % 2 == 0 else reversed(kinds):
            result = run_perflab(
                "sierra_nevada", "--time", str(options.seconds), "--executor", executor, middleware=middleware
            )
            cpu[middleware, executor].append(cpu_us_per_delivery(result))
            latency[middleware, executor].append(result["totals"]["latency_ns"]["p50"] / 1e3)
            memory[middleware, executor].append(result["resources"]["rss_kb_max"] / 1024)
            missing += lost(result)
    report: dict[str, object] = {
        "benchmark": "middlewares",
        "workload": "sierra_nevada",
        "n": options.alternations,
        "lost": missing,
        "machine": load_note(),
    }
    for kind in kinds:
        ratios = [a / b for a, b in zip(cpu[kind], cpu[REFERENCE], strict=True)]
        report["/".join(kind)] = {
            "cpu_us_per_delivery": round(median(cpu[kind]), 1),
            "ratio_cpu": round(median(ratios), 2),
            "ratio_cpu_spread": spread(ratios),
            "latency_p50_us": round(median(latency[kind]), 1),
            "latency_p50_spread_us": spread(latency[kind]),
            "rss_mb": round(median(memory[kind]), 1),
        }
    finish(report, missing == 0)


if __name__ == "__main__":
    main()
