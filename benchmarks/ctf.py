"""Decoding a trace of 5 million events, compared with babeltrace2.

ctf_generate writes the trace of a ring of 16 ROS 2 nodes, in which any thread may continue at any event. Then, on one
CPU and alternating: ctf_decode (every field of every event) and babeltrace2 (which decodes every field, too) into its
dummy sink. answers.py measures whole processes of `perflab trace`.

    python benchmarks/ctf.py [--alternations 5] [--events 5000000] [--order random]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import BINARIES, NATIVE, ROOT, finish, load_note, median, spread

DECODED_PER_S_LIMIT = 25e6  # at least
PEER_LIMIT = 15.0  # minimum speed-up over babeltrace2
EVENTS = 5_000_000


@dataclass
class Finished:
    seconds: float
    peak_rss_mib: float
    output: str


def run(*command: str | Path, cpu: int | None = None) -> Finished:
    """A whole process, from its start to its end."""
    words = [*(["taskset", "-c", str(cpu)] if cpu is not None else []), *map(str, command)]
    environment = {**os.environ, "PERFLAB_NATIVE": str(NATIVE), "PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        begin = time.monotonic()
        process = subprocess.Popen(words, stdout=out, stderr=err, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if process.returncode != 0:
            raise SystemExit(f"{' '.join(words)}: exit {process.returncode}: {err.read().strip()}")
        return Finished(seconds, usage.ru_maxrss / 1024, out.read())


def decode(folder: Path, cpu: int, events: int) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(run(BINARIES / "ctf_decode", folder, cpu=cpu).output)
    if result["events"] != events or result["losses"]:
        raise SystemExit(f"ctf_decode: {result} of a trace of {events} events")
    return result


def babeltrace2_counts(folder: Path) -> int:
    """How many events babeltrace2 finds, to validate the trace."""
    counted = run("babeltrace2", "convert", folder, "--component", "sink.utils.counter", "--params", "step=+0").output
    line = next(line for line in counted.splitlines() if line.split()[1:] == ["Event", "messages"])
    return int(line.split()[0].replace(",", ""))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--alternations", type=int, default=5)
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--order", choices=["random", "periodic"], default="random")
    options = parser.parse_args()
    cpu = max(os.sched_getaffinity(0))
    own: list[float] = []
    peer: list[float] = []
    rss: list[float] = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "trace"
        generate = (BINARIES / "ctf_generate", folder, "--events", str(options.events), "--order", options.order)
        made = json.loads(run(*generate).output)
        if babeltrace2_counts(folder) != options.events:
            raise SystemExit("babeltrace2 does not find the written events")
        for _ in range(options.alternations):
            mine = decode(folder, cpu, options.events)
            own.append(mine["events_per_s"])
            rss.append(mine["peak_rss_kib"] / 1024)
            theirs = run("babeltrace2", "convert", folder, "--component", "sink.utils.dummy", cpu=cpu)
            peer.append(options.events / theirs.seconds)
    # Consecutive runs are compared with each other, so that a slow minute of the machine affects both.
    ratio = median([a / b for a, b in zip(own, peer, strict=True)])
    report: dict[str, object] = {
        "benchmark": "ctf",
        "events": options.events,
        "order": options.order,
        "bytes_per_event": round(made["bytes"] / options.events, 1),
        "decode": {
            "million_events_per_s": round(median(own) / 1e6, 2),
            "spread": spread([v / 1e6 for v in own]),
            "n": len(own),
            "limit": DECODED_PER_S_LIMIT / 1e6,
            "ratio": round(median(own) / DECODED_PER_S_LIMIT, 3),
            "peak_rss_mib": round(max(rss)),
        },
        "babeltrace2": {
            "million_events_per_s": round(median(peer) / 1e6, 2),
            "spread": spread([v / 1e6 for v in peer]),
            "ratio_to_it": round(ratio, 1),
            "limit": PEER_LIMIT,
        },
        "machine": load_note(),
    }
    finish(report, median(own) >= DECODED_PER_S_LIMIT and ratio >= PEER_LIMIT)


if __name__ == "__main__":
    main()
