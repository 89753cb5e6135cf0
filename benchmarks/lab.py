"""Helpers shared by the benchmark scripts: locating programs, a free domain, medians, and printing a result."""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BUILD = Path(os.environ.get("PERFLAB_BUILD", ROOT / "build"))
BINARIES = BUILD / "benchmarks"
NATIVE = BUILD / "lib" / "perflab"


# The settings that perflab's plug-in uses on the loopback interface.
CYCLONE = (
    "<CycloneDDS><Domain id='any'><General><Interfaces><NetworkInterface name='lo'/></Interfaces>"
    "<AllowMulticast>false</AllowMulticast></General><Discovery><ParticipantIndex>auto</ParticipantIndex>"
    "<Peers><Peer address='127.0.0.1'/></Peers></Discovery></Domain></CycloneDDS>"
)


def run_perflab(*arguments: str, middleware: str = "cyclonedds") -> dict[str, Any]:
    """Runs `perflab run` and returns the one result of its summary."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "perflab", "run", *arguments, "--middleware", middleware, "--json",
                   "--output", str(Path(folder) / "run")]  # fmt: skip
        done = subprocess.run(
            command, capture_output=True, text=True, env={**os.environ, "PERFLAB_NATIVE": str(NATIVE)}, check=False
        )
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.strip()}")
    result: dict[str, Any] = json.loads(done.stdout)["results"][0]
    return result


def environment_of_ddsperf() -> dict[str, str]:
    return {**os.environ, "CYCLONEDDS_URI": CYCLONE}


def ddsperf_command(domain: int, seconds: float, *words: str) -> list[str]:
    return ["ddsperf", "-i", str(domain), "-D", str(seconds), *words]


def ddsperf(far: list[str], near: list[str], seconds: float) -> str:
    """The output of ddsperf as `near` in that time, while another one runs as `far`: both in their own domain, with the
    settings of perflab's plug-in."""
    from perflab.experiment.domain import hold

    environment = environment_of_ddsperf()
    with hold() as domain:
        other = subprocess.Popen(ddsperf_command(domain, seconds + 3, *far), stdout=subprocess.DEVNULL, env=environment)
        done = subprocess.run(
            ddsperf_command(domain, seconds + 1, *near), capture_output=True, text=True, env=environment,
            timeout=seconds + 60, check=False,
        )  # fmt: skip
        other.terminate()
        other.wait(timeout=30)
    return done.stdout + done.stderr


def cpu_us_per_delivery(result: dict[str, Any]) -> float:
    """CPU time of all threads of the process, including the sampler, divided by the received messages."""
    cpu_us: float = result["resources"]["cpu_percent_mean"] / 100 * result["duration_s"] * 1e6
    return cpu_us / int(result["totals"]["received"])


def lost(result: dict[str, Any]) -> int:
    return sum(result["totals"]["lost"].values())


def median(values: list[float]) -> float:
    return statistics.median(values)


def spread(values: list[float]) -> str:
    return f"{min(values):.1f}..{max(values):.1f}"


def paired_ratio(before: list[float], after: list[float]) -> dict[str, object]:
    """The ratio of `after`, pair by pair: Hodges and Lehmann's estimate with its 95 % interval."""
    sys.path.insert(0, str(ROOT))
    import numpy as np

    from perflab.statistics.difference import shift
    from perflab.statistics.sample import Block, Design

    # Differences of logarithms are ratios.
    blocks = tuple(Block(np.log([a]), np.log([b])) for a, b in zip(before, after, strict=True))
    ratio = shift(Design(blocks, len(blocks) > 1)).mapped(math.exp)
    interval = None if ratio.interval is None else [round(ratio.interval.low, 3), round(ratio.interval.high, 3)]
    found = {"ratio": None if ratio.value is None else round(ratio.value, 3), "interval": interval}
    return found | ({"reason": ratio.reason} if ratio.reason else {})


def load_note() -> str:
    """The load average and the number of CPUs, so that a reader can judge the noise."""
    return f"load {os.getloadavg()[0]:.2f} on {os.cpu_count()} CPUs"


def finish(result: dict[str, object], ok: bool) -> None:
    """Prints the result as one JSON line and exits 1 if the limit was missed."""
    print(json.dumps(result))
    sys.exit(0 if ok else 1)
