"""The cost of one event of perflab's own tracepoints, compared with a bare LTTng tracepoint of the same size.

Three states of the same program: a session records both, into overwriting buffers (so that nothing is lost and nothing
is written to disk meanwhile) and with the contexts that perflab requests; no session records (loaded, disabled); and,
in each, the check of the null pointer in an untraced process. ns per event, medians of 301 batches of 5,000.

    python benchmarks/tracepoint_cost.py [--repetitions 3]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lab import BINARIES, NATIVE, finish, load_note, median, spread

RATIO_LIMIT = 1.25  # to the bare tracepoint, while recorded
DISABLED_LIMIT_NS = 5.0
NOT_LOADED_LIMIT_NS = 2.0
EVENTS = ("ros2:*", "perflab:*", "tracepoint_cost:*")
CONTEXTS = ("--type=vpid", "--type=vtid", "--type=procname")
PATIENCE_S = 60


def lttng(environment: dict[str, str], *arguments: str) -> None:
    command = ["lttng", "--no-sessiond", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit {done.returncode}: {(done.stdout + done.stderr).strip()}")


@contextmanager
def daemon() -> Iterator[dict[str, str]]:
    """An environment with its own session daemon."""
    with tempfile.TemporaryDirectory(prefix="perflab-lttng-", dir="/tmp") as home:
        environment = os.environ | {"LTTNG_HOME": home}
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": environment}
        process = subprocess.Popen(["lttng-sessiond", "--no-kernel"], **quiet)  # type: ignore[call-overload]
        try:
            deadline = time.monotonic() + PATIENCE_S
            while subprocess.run(["lttng", "--no-sessiond", "list"], **quiet, check=False).returncode != 0:  # type: ignore[call-overload]
                if time.monotonic() > deadline or process.poll() is not None:
                    raise SystemExit("no session daemon: does another one run?")
                time.sleep(0.1)
            yield environment
        finally:
            process.terminate()
            process.wait()


@contextmanager
def recording(environment: dict[str, str]) -> Iterator[None]:
    name = f"perflab-{uuid.uuid4().hex}"
    channel = ["--userspace", "--session", name, "--channel=all"]
    lttng(environment, "create", name, "--snapshot")
    try:
        lttng(environment, "enable-channel", "--userspace", "--session", name, "--overwrite", "--subbuf-size=1M", "all")
        for events in EVENTS:
            lttng(environment, "enable-event", *channel, events)
        lttng(environment, "add-context", *channel, *CONTEXTS)
        lttng(environment, "start", name)
        yield
    finally:
        lttng(environment, "destroy", name)


def measured(environment: dict[str, str], recorded: bool) -> list[dict[str, Any]]:
    """The kinds of events with the cost of each."""
    command = [BINARIES / "tracepoint_cost", NATIVE / "libperflab_ros2_tracepoints.so"]
    own = environment | {"LTTNG_UST_REGISTER_TIMEOUT": "-1"}
    done = subprocess.run(command, capture_output=True, text=True, env=own, check=False)
    if done.returncode != 0:
        raise SystemExit(f"tracepoint_cost: exit {done.returncode}: {done.stderr.strip()}")
    found = json.loads(done.stdout)
    if found["recorded"] != recorded:
        raise SystemExit(f"tracepoint_cost: events were {'not ' if recorded else ''}recorded")
    kinds: list[dict[str, Any]] = found["kinds"]
    return kinds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=3)
    options = parser.parse_args()
    enabled, disabled = [], []
    with daemon() as environment:
        for _ in range(options.repetitions):
            with recording(environment):
                enabled.append(measured(environment, recorded=True))
            disabled.append(measured(environment, recorded=False))
    events = []
    for kind, first in enumerate(enabled[0]):
        runs, idle = [run[kind] for run in enabled], [run[kind] for run in disabled]
        events.append(
            {
                "event": first["event"],
                "bytes": first["bytes"],
                "recorded_ns": round(median([r["own_ns"] for r in runs]), 1),
                "spread_ns": spread([r["own_ns"] for r in runs]),
                "bare_ns": round(median([r["bare_ns"] for r in runs]), 1),
                "ratio_to_bare": round(median([r["own_ns"] / r["bare_ns"] for r in runs]), 3),
                "disabled_ns": round(median([r["own_ns"] for r in idle]), 2),
                "disabled_bare_ns": round(median([r["bare_ns"] for r in idle]), 2),
                "not_loaded_ns": round(median([r["not_loaded_ns"] for r in (*runs, *idle)]), 2),
            }
        )
    ratio = median([float(event["ratio_to_bare"]) for event in events])
    worst_disabled = max(float(event["disabled_ns"]) for event in events)
    worst_not_loaded = max(float(event["not_loaded_ns"]) for event in events)
    report: dict[str, object] = {
        "benchmark": "tracepoint_cost",
        "events": events,
        "n": options.repetitions,
        "ratio_to_bare": round(ratio, 3),
        "limits": {
            "ratio_to_bare": RATIO_LIMIT,
            "disabled_ns": DISABLED_LIMIT_NS,
            "not_loaded_ns": NOT_LOADED_LIMIT_NS,
        },
        "machine": load_note(),
    }
    met = ratio <= RATIO_LIMIT and worst_disabled <= DISABLED_LIMIT_NS and worst_not_loaded <= NOT_LOADED_LIMIT_NS
    finish(report, met)


if __name__ == "__main__":
    main()
