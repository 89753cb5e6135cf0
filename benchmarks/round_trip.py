"""Round trips with Array1k's size at 1 kHz on Cyclone DDS, in one and in two processes, compared with ddsperf's ping
and pong.

Like is compared with like: perflab's `inline` executor with ddsperf's listener mode, `single_threaded` with its
wait-set mode; in one process ddsperf only has the latter. Each alternation gives for either side one median of half the
round trip, and the CPU time of all its threads per round trip, from the kernel's clocks of the processes. It prints the
medians over all alternations and the ratios with their 95 % intervals. The limit is an upper end of 1.05.

    python benchmarks/round_trip.py [--alternations 10] [--seconds 4] [--processes 1,2]
                                    [--executors inline,single_threaded]
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from typing import cast

from lab import (
    BINARIES,
    NATIVE,
    ddsperf_command,
    environment_of_ddsperf,
    finish,
    load_note,
    median,
    paired_ratio,
    spread,
)

from perflab.experiment.domain import hold

LIMIT = 1.05
SIZE = 1024
RATE = 1000
MODES = {"inline": "listener", "single_threaded": "waitset"}
FIGURES = ("half_round_trip_us", "cpu_us_per_round_trip")
BEGUN_S = 1.5  # seconds until either side is in its steady state

Program = subprocess.Popen[str]
Figures = tuple[float, float]  # as FIGURES


def perflab(executor: str, processes: int, seconds: float) -> Figures:
    with hold() as domain:
        common = ["--library", str(NATIVE / "middleware" / "cyclonedds.so"), "--domain", str(domain),
                  "--executor", executor]  # fmt: skip
        sends = ["--rate", str(RATE), "--size", str(SIZE), "--seconds", str(seconds)]

        def side(role: str, *arguments: str) -> list[str]:
            return [str(BINARIES / "round_trip"), role, *common, *arguments]

        ping = side("ping" if processes == 2 else "both", *sends)
        with running(ping, *[side("pong")] * (processes - 1)) as (near, *others):
            assert near.stdout
            identity = near.stdout.readline()
            for other in others:
                assert other.stdin
                other.stdin.write(identity)
                other.stdin.flush()
            cpus = cpus_used([near, *others], seconds)
            result = json.loads(near.stdout.readline())
    if result["received"] < 0.5 * result["sent"]:
        raise SystemExit(f"perflab: only {result['received']} of {result['sent']} came back")
    return float(result["half_rtt_us"]["p50"]), cpus * 1e6 / (result["received"] / seconds)


def ddsperf(executor: str, processes: int, seconds: float) -> Figures:
    mode = MODES[executor]
    ping, pong = ["ping", f"{RATE}Hz", "size", str(SIZE), mode], ["pong", mode]
    with hold() as domain:
        alone = ddsperf_command(domain, seconds + BEGUN_S, "-L", *ping, *pong)
        apart = [
            ddsperf_command(domain, seconds + BEGUN_S + 1, *pong),
            ddsperf_command(domain, seconds + BEGUN_S, *ping),
        ]
        with running(*(apart if processes == 2 else [alone])) as started:
            cpus = cpus_used(started, seconds)
            said = started[-1].communicate(timeout=60)[0]
    # One line a second: "... mean 51.2us min 38.1us 50% 49.8us ... cnt 960", already half of the round trip (ddsperf
    # halves it itself); the first second holds the discovery.
    found = re.findall(r"([\d.]+) +\S+ size \d+ mean [\d.]+us min [\d.]+us 50% ([\d.]+)us .* cnt (\d+)", said)[1:]
    if len(found) < 2:
        raise SystemExit(f"ddsperf printed no round trips:\n{said}")
    came_back = median([float(count) for _, _, count in found])
    return median([float(half) for _, half, _ in found]), cpus * 1e6 / came_back


@contextmanager
def running(*commands: list[str]) -> Iterator[list[Program]]:
    """Starts these programs; each gets the end of its input afterwards, and is waited for."""
    started = [
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment_of_ddsperf()
        )
        for command in commands
    ]
    try:
        yield started
    finally:
        for program, command in zip(started, commands, strict=True):
            assert program.stdin
            program.stdin.close()  # the end of perflab's
            if command[0] == "ddsperf":
                program.terminate()
            program.wait(timeout=30)


def cpus_used(programs: list[Program], seconds: float) -> float:
    """CPU time of their threads in a second of their steady state."""

    def used() -> tuple[float, float]:
        # The clock of a process's CPU time, with the number computed as in clock_getcpuclockid(3).
        return sum(time.clock_gettime(~p.pid << 3 | 2) for p in programs), time.monotonic()

    time.sleep(BEGUN_S)
    before, began = used()
    time.sleep(seconds - BEGUN_S)
    after, ended = used()
    return (after - before) / (ended - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--alternations", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--processes", default="1,2")
    parser.add_argument("--executors", default=",".join(MODES))
    options = parser.parse_args()
    cases = list(product(options.executors.split(","), [int(word) for word in options.processes.split(",")]))
    measured: dict[tuple[str, int], dict[str, list[Figures]]] = {case: {"perflab": [], "ddsperf": []} for case in cases}
    for alternation in range(options.alternations):
        for case in cases:
            sides = [("perflab", perflab), ("ddsperf", ddsperf)]
            # The order alternates, so that a drift of the machine favours neither.
            for name, measure in sides if alternation % 2 == 0 else reversed(sides):
                measured[case][name].append(measure(*case, options.seconds))
    result: dict[str, object] = {
        "benchmark": "round_trip",
        "n": options.alternations,
        "limit": LIMIT,
        "machine": load_note(),
    }
    ok = True
    for (executor, processes), by_side in measured.items():
        for index, figure in enumerate(FIGURES):
            ours, theirs = ([figures[index] for figures in by_side[name]] for name in ("perflab", "ddsperf"))
            ratio = paired_ratio(theirs, ours)
            interval = cast("list[float] | None", ratio["interval"])
            ok = ok and interval is not None and interval[1] <= LIMIT
            result[f"{executor} beside {MODES[executor]}, processes: {processes}, {figure}"] = {
                "perflab": round(median(ours), 2), "perflab_spread": spread(ours),
                "ddsperf": round(median(theirs), 2), "ddsperf_spread": spread(theirs), **ratio,
            }  # fmt: skip
    finish(result, ok)


if __name__ == "__main__":
    main()
