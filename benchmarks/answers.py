"""How long people wait for answers: whole processes, from their start to their end, beside a bare start of Python and
the fastest other reader of ROS 2 traces.

Every round runs each command once, in a random order, so that a slow minute of the machine affects all of them; the
first round fills caches and is not counted. Medians of wall and CPU time (user and system, of all processes started);
commands that read a trace run on one CPU. The run is the demo, which is made first (3 minutes) unless --run names one.
The traces are those of ctf_generate, of a ring of 16 ROS 2 nodes in which any thread may continue at any event; no
messages stay within a process, because the peer rejects that.

    python benchmarks/answers.py [--rounds 9] [--run RUN] [--peer PROGRAM]

The peer is Ros2TraceAnalyzer (https://github.com/skoudmar/Ros2TraceAnalyzer, `cargo install --git` it): --peer, or the
variable ROS2_TRACE_ANALYZER, or on the PATH; its message latency is compared with `perflab trace messages`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from lab import BINARIES, NATIVE, ROOT, finish, load_note, median, paired_ratio

FEW, MANY = 50_000, 5_000_000
EVENTS_PER_S = 15e6
PERFLAB = (sys.executable, "-m", "perflab")


@dataclass
class Command:
    """`limit_s` of wall time; `events` if it reads a trace; `peer`: the label of the command to compare with."""

    words: tuple[str, ...]
    limit_s: float | None = None
    events: int | None = None
    peer: str | None = None
    wall_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    peak_rss_mib: float = 0.0


def commands(run: Path, traces: dict[int, Path], out: Path, peer: str | None) -> dict[str, Command]:
    found = {
        "python -c pass": Command((sys.executable, "-c", "pass")),
        "perflab --help": Command((*PERFLAB, "--help"), 0.15),
        "perflab list": Command((*PERFLAB, "list"), 0.3),
        "perflab show": Command((*PERFLAB, "show", str(run)), 1.0),
        "perflab report": Command((*PERFLAB, "report", str(run), "--output", str(out / "report.html")), 1.5),
    }
    one_cpu = ("taskset", "-c", str(max(os.sched_getaffinity(0))))
    for events, trace in traces.items():
        theirs = f"Ros2TraceAnalyzer, message latency, {events:,} events"
        if peer is not None:
            asked = (peer, "--quiet", "analyze", "--message-latency", "--out-dir", str(out), str(trace))
            found[theirs] = Command((*one_cpu, *asked), events=events)
        for verb in ("summary", "callbacks", "messages"):
            limit = 0.3 if events == FEW else events / EVENTS_PER_S
            beside = theirs if peer is not None and verb == "messages" else None
            words = (*one_cpu, *PERFLAB, "trace", verb, str(trace), "--json")
            found[f"perflab trace {verb}, {events:,} events"] = Command(words, limit, events, beside)
    return found


def measure(command: Command, counted: bool) -> None:
    environment = {**os.environ, "PERFLAB_NATIVE": str(NATIVE), "PYTHONPATH": str(ROOT)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # modules would be compiled at each start
    with tempfile.TemporaryFile("w+") as complaint:
        begin = time.monotonic()
        process = subprocess.Popen(command.words, stdout=subprocess.DEVNULL, stderr=complaint, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            complaint.seek(0)
            raise SystemExit(f"{' '.join(command.words)}: exit {process.returncode}: {complaint.read().strip()}")
    if counted:
        command.wall_s.append(seconds)
        command.cpu_s.append(usage.ru_utime + usage.ru_stime)
        command.peak_rss_mib = max(command.peak_rss_mib, usage.ru_maxrss / 1024)


def figures(label: str, every: dict[str, Command], bare: Command) -> dict[str, object]:
    command = every[label]
    wall = median(command.wall_s)
    found: dict[str, object] = {
        "wall_s": round(wall, 3),
        "cpu_s": round(median(command.cpu_s), 3),
        "limit_s": None if command.limit_s is None else round(command.limit_s, 3),
        "of_limit": None if command.limit_s is None else round(wall / command.limit_s, 2),
        "of_bare_python": None if command is bare else round(wall / median(bare.wall_s), 1),
        "peak_rss_mib": round(command.peak_rss_mib),
    }
    if command.events is not None:
        found["million_events_per_s"] = round(command.events / wall / 1e6, 2)
    if command.peer is not None:
        found["of_peer"] = paired_ratio(every[command.peer].wall_s, command.wall_s)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--run", type=Path, help="A run of the demo; default: make one.")
    parser.add_argument("--peer", help="The program Ros2TraceAnalyzer.")
    options = parser.parse_args()
    peer = options.peer or os.environ.get("ROS2_TRACE_ANALYZER") or shutil.which("Ros2TraceAnalyzer")
    before, generator = load_note(), random.Random(1)
    with tempfile.TemporaryDirectory() as scratch:
        run, traces = options.run, {}
        if run is None:
            run = Path(scratch) / "demo"
            making = Command((*PERFLAB, "run", "demo", "--quiet", "--output", str(run)))
            measure(making, counted=False)
        for events in (FEW, MANY):
            traces[events] = Path(scratch) / str(events)
            generate = (BINARIES / "ctf_generate", traces[events], "--events", str(events), "--no-intra-process")
            subprocess.run(generate, stdout=subprocess.DEVNULL, check=True)
        every = commands(run, traces, Path(scratch), peer)
        for number in range(options.rounds + 1):
            for label in generator.sample(list(every), len(every)):
                measure(every[label], counted=number > 0)
        trials = len(json.loads((run / "manifest.json").read_text())["trials"])
    bare = every["python -c pass"]
    told = {label: figures(label, every, bare) for label in every}
    for label, found in told.items():
        limit = "–" if found["limit_s"] is None else f"{found['limit_s']:g}"
        print(
            f"| {label} | {found['wall_s']} | {found['cpu_s']} | {limit} | {found['of_bare_python']} |", file=sys.stderr
        )
    report = {
        "benchmark": "answers",
        "rounds": options.rounds,
        "trials_of_the_run": trials,
        "peer": peer or "not here",
        "commands": told,
        "noise": {"before": before, "after": load_note()},
    }
    finish(report, ok=all(c.limit_s is None or median(c.wall_s) <= c.limit_s for c in every.values()))


if __name__ == "__main__":
    main()
