"""The operating system's counters in the measured part of a trial: page faults, storage, context switches, drops of
sockets, network traffic (docs/formats.md, section 4, records `cost`); and retransmissions of the middleware.

A count that one process did not record is None for the trial, with the reason: the others do not form a sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from perflab.results.trial import SystemCounts

Record = Mapping[str, Any]
Told = int | str  # a count, or why there is none

USAGE = (
    "minor_faults", "major_faults", "block_inputs", "block_outputs", "voluntary_switches", "involuntary_switches",
)  # fmt: skip
"""For each process, by name in the records."""
_NETWORK = {"wire_bytes": "sent_bytes", "wire_packets": "sent_packets", "tcp_retransmissions": "tcp_retransmissions"}
"""For each network namespace."""

NOT_RECORDED = "not recorded: the run is from an older version, or a process ended before its measured part did"
NO_SIGNALS = "Linux does not count the signals that a process gets"
SOCKET_CLOSED = "a process closed a socket in the measured part, whose drops are unknown"
NOT_TOLD = "the middleware does not report its retransmissions"


def of_trial(costs: Sequence[Sequence[Record]], described: Sequence[Record | None]) -> SystemCounts | None:
    """`costs` are the records of each process at both ends of the measured part, `described` the final description of
    each process's middleware. None if no process has both ends. Raises KeyError or TypeError for damaged ones.
    """
    ends = [_ends(records) for records in costs]
    known = [pair for pair in ends if pair is not None and "usage" in pair[0] and "usage" in pair[1]]
    if not known:
        return None
    told: dict[str, Told] = {"signals": NO_SIGNALS, "retransmitted_bytes": _sent_again(described)}
    if len(known) < len(ends):
        told |= dict.fromkeys((*USAGE, *_NETWORK, "socket_drops"), NOT_RECORDED)
    else:
        told |= {name: sum(end["usage"][name] - begin["usage"][name] for begin, end in known) for name in USAGE}
        networks = [(begin["network"], end["network"]) for begin, end in known]
        told |= {name: _of_namespaces(networks, key) for name, key in _NETWORK.items()}
        told["socket_drops"] = _dropped(networks)
    return SystemCounts(
        **{name: value for name, value in told.items() if isinstance(value, int)},
        reasons={name: value for name, value in told.items() if isinstance(value, str)},
    )


def of_process(records: Iterable[Record]) -> dict[str, int]:
    """The counts of USAGE of one process; empty if it lacks an end."""
    ends = _ends(records)
    if ends is None or any("usage" not in end for end in ends):
        return {}
    return {name: ends[1]["usage"][name] - ends[0]["usage"][name] for name in USAGE}


def _ends(records: Iterable[Record]) -> tuple[Record, Record] | None:
    by_end = {record["when"]: record for record in records}
    return (by_end["start"], by_end["end"]) if "start" in by_end and "end" in by_end else None


def _of_namespaces(networks: Sequence[tuple[Record, Record]], key: str) -> Told:
    """Over all namespaces, each from the first record of a process in it to the last: they count for all of them."""
    total = 0
    for namespace in {begin["namespace"] for begin, _ in networks}:
        begins = [begin[key] for begin, _ in networks if begin["namespace"] == namespace]
        ends = [end[key] for begin, end in networks if begin["namespace"] == namespace]
        if None in begins or None in ends:
            return "the kernel does not report it"
        total += max(ends) - min(begins)
    return total


def _dropped(networks: Sequence[tuple[Record, Record]]) -> Told:
    """By the sockets of the processes, including those opened in between."""
    total = 0
    for begin, end in networks:
        before = {socket["inode"]: socket["drops"] for socket in begin["sockets"]}
        after = {socket["inode"]: socket["drops"] for socket in end["sockets"]}
        if before.keys() - after.keys():
            return SOCKET_CLOSED
        total += sum(drops - before.get(inode, 0) for inode, drops in after.items())
    return total


def _sent_again(described: Sequence[Record | None]) -> Told:
    """From the beginning of each process to its end: a middleware reports it for its whole life."""
    total = 0
    for said in described:
        effective = (said or {}).get("effective") or {}
        several = effective.get("participants")  # for ROS 2 it is their number
        for one in several if isinstance(several, list) and several else [effective]:
            count = one.get("retransmitted_bytes") if isinstance(one, Mapping) else None
            if count is None:
                return NOT_TOLD
            total += int(count)
    return total
