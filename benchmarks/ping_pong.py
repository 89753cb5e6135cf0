"""1 kB at 1000 Hz between two processes on Cyclone DDS, beside ddsperf's ping and pong with the same settings.

Like beside like: perflab's `inline` executor beside ddsperf's listener mode, `single_threaded` beside its wait-set
mode. The two alternate; each alternation gives one median of half the round trip for either side. Printed are the
medians over all alternations and their ratio, limit 1.10.

    python benchmarks/ping_pong.py [--alternations 10] [--seconds 4]
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess

from lab import BINARIES, NATIVE, ddsperf, finish, load_note, median, spread

from perflab.experiment.domain import hold

LIMIT = 1.10
SIZE = 1000
RATE = 1000


def perflab_half_rtt_us(executor: str, seconds: float) -> float:
    with hold() as domain:
        common = ["--library", str(NATIVE / "middleware" / "cyclonedds.so"), "--domain", str(domain),
                  "--executor", executor]  # fmt: skip
        program = str(BINARIES / "round_trip")
        pong = subprocess.Popen([program, "pong", *common], stdin=subprocess.PIPE, text=True)
        ping = subprocess.Popen(
            [program, "ping", *common, "--rate", str(RATE), "--size", str(SIZE), "--seconds", str(seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert ping.stdout and pong.stdin
            pong.stdin.write(ping.stdout.readline())
            pong.stdin.flush()
            result = json.loads(ping.stdout.readline())
            if result["received"] < 0.5 * result["sent"]:
                raise SystemExit(f"perflab: only {result['received']} of {result['sent']} came back")
            return float(result["half_rtt_us"]["p50"])
        finally:
            for process in (ping, pong):
                if process.stdin:
                    process.stdin.close()
                process.wait(timeout=30)


def ddsperf_half_rtt_us(mode: str, seconds: float) -> float:
    said = ddsperf(["pong", mode], ["ping", f"{RATE}Hz", "size", str(SIZE), mode], seconds)
    # One line a second: "... mean 51.2us min 38.1us 50% 49.8us ...", already half of the round trip (ddsperf halves it
    # itself); the first second holds the discovery.
    medians = [float(value) for value in re.findall(r"mean [\d.]+us min [\d.]+us 50% ([\d.]+)us", said)]
    if len(medians) < 3:
        raise SystemExit(f"ddsperf printed no round trips:\n{said}")
    return median(medians[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--alternations", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=4.0)
    options = parser.parse_args()
    pairs = {"inline": "listener", "single_threaded": "waitset"}
    ours: dict[str, list[float]] = {executor: [] for executor in pairs}
    theirs: dict[str, list[float]] = {executor: [] for executor in pairs}
    for alternation in range(options.alternations):
        for executor, mode in pairs.items():

            def measure_ours(executor: str = executor) -> None:
                ours[executor].append(perflab_half_rtt_us(executor, options.seconds))

            def measure_theirs(executor: str = executor, mode: str = mode) -> None:
                theirs[executor].append(ddsperf_half_rtt_us(mode, options.seconds))

            sides = [measure_ours, measure_theirs]
            # Who goes first changes, so that a drift of the machine favours neither.
            for side in sides if alternation % 2 == 0 else reversed(sides):
                side()
    result: dict[str, object] = {"benchmark": "ping_pong", "n": options.alternations, "limit": LIMIT,
                                 "machine": load_note()}  # fmt: skip
    ok = True
    for executor, mode in pairs.items():
        ratio = median(ours[executor]) / median(theirs[executor])
        ok = ok and ratio <= LIMIT
        result[executor] = {
            "perflab_half_rtt_us": round(median(ours[executor]), 2),
            "perflab_spread_us": spread(ours[executor]),
            f"ddsperf_{mode}_half_rtt_us": round(median(theirs[executor]), 2),
            f"ddsperf_{mode}_spread_us": spread(theirs[executor]),
            "ratio": round(ratio, 3),
        }
    finish(result, ok)


if __name__ == "__main__":
    main()
