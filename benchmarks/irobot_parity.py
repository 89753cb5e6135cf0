"""perflab compared with irobot_benchmark: one topology on the same rclcpp, RMW and settings, in mean latency, CPU,
memory.

Pairs of runs alternate, with the cells of a block and the two of a pair in random order. For each cell three ratios of
perflab to irobot_benchmark, with 95 % intervals; the limit applies to their upper ends. Both are evaluated by the same
rules: perflab's run is exported in irobot_benchmark's format and its accounting, CPU is the mean of the samples that
lie completely in the measured part, memory the peak of the resident set (VmHWM), and irobot_benchmark gets the
middleware configuration of perflab's own process.

    source install/setup.bash                                                # ROS 2 and irobot_benchmark
    python benchmarks/irobot_parity.py [--pairs 10] [--seconds 5] [--store pairs.jsonl]

With --store each pair is stored when it is measured, and a later call continues from there; --table prints the content.
Without ROS 2 or irobot_benchmark: exit code 3 and one line.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from itertools import product
from pathlib import Path
from typing import Any

from lab import NATIVE, ROOT, finish, load_note

from perflab.experiment import domain
from perflab.results.run import RunData
from perflab.runs.rundata import open_run
from perflab.statistics.comparison import compare
from perflab.statistics.sample import Sample

TOPOLOGIES = ("sierra_nevada", "cedar", "white_mountain")
EXECUTORS = {"single_threaded": "1", "events": "3"}  # with irobot_benchmark's numbers
FIGURES = ("latency", "cpu", "memory")
UNITS = {"latency": "us", "cpu": "% of one CPU", "memory": "MB"}
LIMIT = 1.10
UNAVAILABLE = 3
SAMPLE_S = 1.0  # between two samples of irobot_benchmark

Cell = tuple[str, str, str]  # topology, ipc, executor
Figures = dict[str, float]


def unavailable(text: str) -> SystemExit:
    sys.stderr.write(f"irobot_parity: {text}\n")
    return SystemExit(UNAVAILABLE)


def irobot_program() -> Path:
    """Of the sourced ROS 2 workspace."""
    prefixes = [Path(p) for p in os.environ.get("AMENT_PREFIX_PATH", "").split(":") if p]
    if not prefixes:
        raise unavailable("no ROS 2 is sourced; source the setup.bash of a workspace that has irobot_benchmark")
    for prefix in prefixes:
        if (program := prefix / "lib" / "irobot_benchmark" / "irobot_benchmark").is_file():
            return program
    raise unavailable("no sourced workspace has irobot_benchmark; build it and source its setup.bash")


def topology(name: str) -> Path:
    """Its JSON as shipped with irobot_benchmark."""
    return irobot_program().parent / "topology" / f"{name}.json"


def by_perflab(cell: Cell, rmw: str, seconds: int, folder: Path, options: list[str]) -> tuple[Figures, dict[str, str]]:
    """perflab's figures, and the environment with which its process configured the middleware."""
    name, ipc, executor = cell
    environment = {**os.environ, "PERFLAB_NATIVE": str(NATIVE), "PYTHONPATH": str(ROOT)}
    run = folder / "run"

    def perflab(*words: str) -> None:
        command = [sys.executable, "-m", "perflab", *words]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        if done.returncode == UNAVAILABLE:
            raise unavailable(done.stderr.strip())
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.strip()}")

    perflab("run", str(topology(name)), "--middleware", f"rclcpp/{rmw}", "--ipc", ipc, "--executor", executor,
            "--time", str(seconds), "--sampling", "1s", "--cool-down", "0", "--quiet", "--output", str(run),
            *options)  # fmt: skip
    perflab("export", str(run), "--accounting", "original", "--tracking", "off", "--output", str(folder / "export"))
    records = next(run.glob("trials/*/processes/*.jsonl")).read_text().splitlines()
    process = next(r for r in map(json.loads, records) if r["type"] == "process")
    resources = open_run(run).summary.results[0].resources
    figures = {
        "latency": mean_latency_us(open_run(folder / "export")),
        "cpu": float(resources.cpu_percent_mean or 0),
        "memory": (resources.rss_kb_max or 0) / 1e3,
    }
    effective = process["middleware"]["effective"]["environment"]
    return figures, {key: value for key, value in effective.items() if key.isupper()}


def by_irobot(
    program: Path, cell: Cell, seconds: int, folder: Path, environment: dict[str, str], prefix: list[str]
) -> Figures:
    name, ipc, executor = cell
    folder.mkdir()
    with domain.hold() as number:
        process = subprocess.Popen(
            [*prefix, str(program), str(topology(name)), "-t", str(seconds), "--ipc", ipc, "-x", EXECUTORS[executor]],
            cwd=folder,
            env={**os.environ, **environment, "ROS_DOMAIN_ID": str(number)},
            stdout=(folder / "output.txt").open("w"),
            stderr=subprocess.STDOUT,
        )
        peak_kb = watch(process)
    if process.returncode != 0:
        raise SystemExit(f"irobot_benchmark: exit {process.returncode}: {(folder / 'output.txt').read_text()[-500:]}")
    data = open_run(folder)
    table = data.trials[0].resources.sort("at_ns")
    end_ns = table["at_ns"].max()
    assert isinstance(end_ns, int)
    # Its nodes run for the last seconds: the samples in which that begins and ends are left out.
    since_end_s = (end_ns - table["at_ns"]) / 1e9
    inside = table.filter((since_end_s >= SAMPLE_S) & (since_end_s <= seconds - SAMPLE_S))
    # It reports its share of all CPUs.
    shares = [share * (os.cpu_count() or 1) for share in inside["cpu_percent_of_machine"].to_list()]
    return {
        "latency": mean_latency_us(data),
        "cpu": sum(shares) / len(shares),
        "memory": peak_kb / 1e3,
    }


def watch(process: subprocess.Popen[Any]) -> int:
    """Waits for the end of a process; returns the peak of its resident set in kB, as last reported by the kernel."""
    peak_kb = 0
    while process.poll() is None:
        try:
            for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    peak_kb = max(peak_kb, int(line.split()[1]))
        except OSError:
            pass
        time.sleep(0.1)
    return peak_kb


def mean_latency_us(data: RunData) -> float:
    latency = data.summary.results[0].totals.latency_ns
    assert latency is not None and latency.mean is not None, "no message was received"
    return latency.mean / 1e3


def measured(options: argparse.Namespace, program: Path, known: list[dict[str, Any]], store: Path | None) -> None:
    """Adds the pairs that are missing in `known`."""
    generator = random.Random(options.seed)
    cells = list(product(options.topologies, options.ipc, options.executors))
    environments: dict[Cell, dict[str, str]] = {}
    done = {(tuple(pair["cell"]), pair["block"]) for pair in known}
    for block in range(1, options.pairs + 1):
        order = [(cell, generator.random() < 0.5) for cell in cells]
        generator.shuffle(order)
        for cell, perflab_first in order:
            if (cell, block) in done:
                continue
            with tempfile.TemporaryDirectory() as scratch:
                folder = Path(scratch)
                figures: dict[str, Figures] = {}
                if cell not in environments:
                    _, environments[cell] = by_perflab(cell, options.rmw, 1, folder / "first", options.option)
                for who in ("perflab", "irobot") if perflab_first else ("irobot", "perflab"):
                    if who == "perflab":
                        figures[who], _ = by_perflab(cell, options.rmw, options.seconds, folder / who, options.option)
                    else:
                        figures[who] = by_irobot(
                            program, cell, options.seconds, folder / who, environments[cell], options.before
                        )
            pair = {"cell": cell, "block": block, "load": round(os.getloadavg()[0], 2), **figures}
            known.append(pair)
            if store is not None:
                with store.open("a") as file:
                    file.write(json.dumps(pair) + "\n")
            words = ", ".join(f"{f} {figures['perflab'][f]:.1f} beside {figures['irobot'][f]:.1f}" for f in FIGURES)
            sys.stderr.write(f"{block}/{options.pairs} {' '.join(cell)}: {words}\n")


def ratios(pairs: list[dict[str, Any]]) -> dict[Cell, dict[str, dict[str, Any]]]:
    """For each cell and figure: both medians, the ratio and its interval."""
    found: dict[Cell, dict[str, dict[str, Any]]] = {}
    cells: list[Cell] = list(dict.fromkeys((p["cell"][0], p["cell"][1], p["cell"][2]) for p in pairs))
    for cell in sorted(cells):
        mine = [p for p in pairs if tuple(p["cell"]) == cell]
        blocks = [p["block"] for p in mine]
        for figure in FIGURES:
            theirs, ours = (
                Sample.of([p[who][figure] for p in mine], blocks=blocks, name=who) for who in ("irobot", "perflab")
            )
            compared = compare(theirs, ours, metric=figure, ratio=True)
            interval = compared.ratio.interval
            found.setdefault(cell, {})[figure] = {
                "n": len(mine),
                "perflab": compared.treatment.median.value,
                "irobot": compared.baseline.median.value,
                "ratio": compared.ratio.value,
                "low": None if interval is None else interval.low,
                "high": None if interval is None else interval.high,
            }
    return found


def table(found: dict[Cell, dict[str, dict[str, Any]]]) -> str:
    """In the format of docs/irobot_benchmark.md."""
    heads = [f"{figure} ({UNITS[figure]})" for figure in FIGURES]
    lines = ["| topology | ipc | executor | " + " | ".join(heads) + " | n |", "|---" * (len(heads) + 4) + "|"]
    for cell, figures in found.items():
        words = []
        for figure in FIGURES:
            f = figures[figure]
            between = "no interval" if f["high"] is None else f"{f['low']:.2f} to {f['high']:.2f}"
            words.append(f"{f['perflab']:.1f} / {f['irobot']:.1f} = {f['ratio']:.2f} ({between})")
        lines.append(f"| {' | '.join(cell)} | {' | '.join(words)} | {figures[FIGURES[0]]['n']} |")
    return "\n".join(lines)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--seconds", type=int, default=5, help="measured time of each run")
    parser.add_argument("--topologies", nargs="+", default=list(TOPOLOGIES))
    parser.add_argument("--ipc", nargs="+", default=["off", "on"], choices=["off", "on"])
    parser.add_argument("--executors", nargs="+", default=list(EXECUTORS), choices=list(EXECUTORS))
    parser.add_argument("--rmw", default="rmw_cyclonedds_cpp")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--option", action="append", default=[], help="more words for `perflab run`, one each")
    parser.add_argument(
        "--before", action="append", default=[], help="words before irobot_benchmark, such as a profiler"
    )
    parser.add_argument("--store", type=Path, help="file for the pairs")
    parser.add_argument("--table", action="store_true", help="print the content of --store, and measure nothing")
    return parser.parse_args()


def main() -> None:
    options = parsed()
    pairs: list[dict[str, Any]] = []
    if options.store is not None and options.store.is_file():
        pairs = [json.loads(line) for line in options.store.read_text().splitlines()]
    if not options.table:
        measured(options, irobot_program(), pairs, options.store)
    found = ratios(pairs)
    print(table(found))
    above = [
        f"{' '.join(cell)}: {figure} {f['ratio']:.2f}"
        for cell, figures in found.items()
        for figure, f in figures.items()
        if f["high"] is None or f["high"] > LIMIT
    ]
    finish({"benchmark": "irobot_parity", "limit": LIMIT, "above": above, "noise": load_note()}, not above)


if __name__ == "__main__":
    main()
