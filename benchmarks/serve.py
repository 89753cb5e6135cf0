"""The cost of `perflab report --serve` during a run: CPU time of the server, as a share of one CPU.

A reader requests the state once a second, as a page does. The run is watched and not in turns; the ratio of the medians
of p99 is printed beside the cost, and is meaningful only on a quiet machine.

    python benchmarks/serve.py [--alternations 3] [--seconds 8] [--workload sierra_nevada]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from lab import NATIVE, ROOT, finish, load_note, median, spread

LIMIT_PERCENT = 2.0  # of one CPU
SERVE = "import sys; from perflab.report.serve import serve; serve(sys.argv[1:])"


def state(url: str, known: str, tag: str) -> Any:
    """The state, after requesting the parts of the page as a page does; None if it has not changed."""
    parts, document = (
        urllib.request.Request(f"{url}{path}?known={known}", headers={"If-None-Match": tag})
        for path in ("parts.html", "state.json")
    )
    try:
        with urllib.request.urlopen(parts, timeout=30) as answer:
            answer.read()
        with urllib.request.urlopen(document, timeout=30) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        if error.code != 304:
            raise
        return None


def measured(options: argparse.Namespace, folder: Path, watched: bool) -> tuple[float, dict[str, Any] | None]:
    """p99 in microseconds of a run, and the cost of watching it."""
    environment = {**os.environ, "PERFLAB_NATIVE": str(NATIVE), "PYTHONPATH": str(ROOT)}
    server: subprocess.Popen[str] | None = None
    url = ""
    if watched:
        server = subprocess.Popen(
            [sys.executable, "-c", SERVE, str(folder)], env=environment, stdout=subprocess.PIPE, text=True
        )
        assert server.stdout is not None
        url = server.stdout.readline().split(" at ")[1].split()[0]
    command = [sys.executable, "-m", "perflab", "run", options.workload, "--time", str(options.seconds),
               "--trials", "2", "--output", str(folder), "--quiet"]  # fmt: skip
    cost: dict[str, Any] | None = None
    try:
        run = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
        known = tag = ""
        while run.poll() is None:
            if watched and (found := state(url, known, tag)) is not None:
                known, tag, cost = found["run_version"], f'"{found["version"]}"', found["server"]
            time.sleep(1)
        if run.returncode != 0:
            raise SystemExit(f"{' '.join(command)}: exit {run.returncode}")
    finally:
        if server is not None:
            server.terminate()
            server.communicate()
    totals = json.loads((folder / "summary.json").read_text())["results"][0]["totals"]
    return totals["latency_ns"]["p99"] / 1e3, cost


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--alternations", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--workload", default="sierra_nevada")
    options = parser.parse_args()
    p99: dict[bool, list[float]] = {True: [], False: []}
    percent: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        for alternation in range(options.alternations):
            for watched in (True, False) if alternation % 2 == 0 else (False, True):
                value, cost = measured(options, Path(folder) / f"{alternation}_{watched}", watched)
                p99[watched].append(value)
                if cost is not None:
                    percent.append(cost["cpu_percent"])
    share = median(percent)
    ratio = median(p99[True]) / median(p99[False])
    print(f"serving takes {share:.2f} % of one CPU ({spread(percent)}), limit {LIMIT_PERCENT} %; {load_note()}")
    print(f"p99 watched {median(p99[True]):.1f} µs, unwatched {median(p99[False]):.1f} µs: ratio {ratio:.2f}")
    result: dict[str, object] = {"benchmark": "serve", "cpu_percent": share, "limit": LIMIT_PERCENT, "p99_ratio": ratio}
    finish(result, share <= LIMIT_PERCENT)


if __name__ == "__main__":
    main()
