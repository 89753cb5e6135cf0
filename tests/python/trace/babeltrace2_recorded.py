"""Figures of tests/data/traces/functions, by babeltrace2 alone: run by the system's Python, whose bindings it needs.

    python3 babeltrace2_recorded.py tests/data/traces/functions > expected.json

Nothing of perflab is used. The two traces are read one after the other, for babeltrace2 does not join their clocks.
"""

from __future__ import annotations

import collections
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bt2  # type: ignore[import-not-found, unused-ignore]

Events = collections.Counter[str]


def events(folder: Path, counted: Events) -> Iterator[tuple[int, Any]]:
    for message in bt2.TraceCollectionMessageIterator(str(folder)):
        if type(message) is bt2._EventMessageConst:
            counted[message.event.name] += 1
            yield message.default_clock_snapshot.value, message.event


def of_functions(folder: Path, counted: Events) -> list[dict[str, Any]]:
    """Each function by its address in the program: calls, callers, durations. One thread calls them all."""
    base = None
    stack: list[tuple[int, int]] = []
    durations: dict[int, list[int]] = collections.defaultdict(list)
    callers: dict[int, set[int]] = collections.defaultdict(set)
    threads = set()
    for time, event in events(folder, counted):
        fields = event.payload_field
        if event.name == "lttng_ust_statedump:bin_info" and str(fields["path"]).endswith("/functions"):
            base = int(fields["baddr"])
        elif event.name.endswith(":func_entry"):
            threads.add(int(event.common_context_field["vtid"]))
            if stack:
                callers[int(fields["addr"])].add(stack[-1][0])
            stack.append((int(fields["addr"]), time))
        elif event.name.endswith(":func_exit"):
            address, start = stack.pop()
            if address != int(fields["addr"]):
                raise SystemExit("an exit of another function than the last that was entered")
            durations[address].append(time - start)
    if base is None or stack or len(threads) != 1:
        raise SystemExit("not the trace that this script is for")
    return [
        {
            "offset": address - base, "count": len(times), "wall_ns": sum(times), "shortest_ns": min(times),
            "longest_ns": max(times), "callers": sorted(caller - base for caller in callers[address]),
        }
        for address, times in sorted(durations.items())
    ]  # fmt: skip


def of_threads(folder: Path, counted: Events) -> dict[str, Any]:
    """Of the threads of the program: how often and how long they ran, and how long they took to run once woken."""
    switched_in: collections.Counter[int] = collections.Counter()
    on_cpu: collections.Counter[int] = collections.Counter()
    names: dict[int, str] = {}
    running: dict[int, tuple[int, int]] = {}  # by CPU: thread, since
    woken: dict[int, int] = {}
    latencies: dict[int, list[int]] = collections.defaultdict(list)
    for time, event in events(folder, counted):
        fields = event.payload_field
        if event.name == "sched:sched_wakeup":
            woken[int(fields["pid"])] = time
            continue
        previous, following = int(fields["prev_pid"]), int(fields["next_pid"])
        names[following] = str(fields["next_comm"])
        cpu = int(event.packet.context_field["cpu_id"])
        if cpu in running and running[cpu][0] == previous:
            on_cpu[previous] += time - running[cpu][1]
        running[cpu] = following, time
        switched_in[following] += 1
        if following in woken:
            latencies[following].append(time - woken.pop(following))
    return {
        str(tid): {
            "name": name, "switches": switched_in[tid], "on_cpu_ns": on_cpu[tid], "wake_ups": len(latencies[tid]),
            "wake_up_p50_ns": sorted(latencies[tid])[(len(latencies[tid]) + 1) // 2 - 1],
            "wake_up_max_ns": max(latencies[tid]),
        }
        for tid, name in sorted(names.items())
        if name.startswith("functions") and latencies[tid]
    }  # fmt: skip


def main() -> None:
    folder = Path(sys.argv[1])
    counted: Events = collections.Counter()
    found = {
        "functions": of_functions(folder / "ust", counted),
        "threads": of_threads(folder / "scheduler", counted),
        "events": dict(sorted(counted.items())),
    }
    print(json.dumps(found, indent=1))


main()
