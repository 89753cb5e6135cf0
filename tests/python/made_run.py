"""Run directories with known arrivals, written as perflab and its nodes write them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from irobot_tracker import Arrival
from support import graph, node

from perflab.formats import tables
from perflab.models import as_json
from perflab.results.files import Manifest, UsedSettings, UsedWorkload, read_trial
from perflab.runs.collect import collect, collect_run
from perflab.runs.rundir import RunDirectory, TrialDirectory
from perflab.statistics import histogram as hg

START_NS = 1_000_000_000_000
MS = 1_000_000
US = 1_000

THRESHOLDS = {"late_percent": 20.0, "late_ns": 5 * MS, "too_late_percent": 100.0, "too_late_ns": 50 * MS}


# Of a run of which nothing is known.
MANIFEST = Manifest(
    run="r", settings=UsedSettings(), workload=UsedWorkload(name="w"), middlewares=(), trials=(), preflight=()
)


@dataclass(frozen=True)
class Stream:
    """What one node sends and another receives, message by message; of a service, the client and its replies."""

    sender: str
    subject: str
    receiver: str
    period_ms: int
    sent: int
    arrivals: Sequence[Arrival]
    service: bool = False


def arrivals(latencies_us: Sequence[float], period_ms: int = 10) -> list[Arrival]:
    """Messages 0, 1, 2, ... with these latencies, sent on time."""
    return [
        Arrival(k, round(us * US), START_NS + (k + 1) * period_ms * MS + round(us * US))
        for k, us in enumerate(latencies_us)
    ]


@dataclass
class MadeTrial:
    """One trial: its streams, and what it says of itself."""

    streams: Sequence[Stream]
    middleware: str = "cyclonedds"
    executor: str | None = None
    ipc: str | None = None
    pass_by: str | None = None
    phase: str | None = None
    conditions: Sequence[str] = ()
    outcome: str = "success"
    missed: str | None = None  # the criterion that it missed, which is why it failed
    final: bool = True
    checkpoint: bool = True
    malformed: int = 0  # messages, in each process; likewise below
    forgotten: int = 0
    rss_kb: Sequence[int] = (5000, 6000, 7000, 6500)
    cpu_ms: int | Sequence[int] = 20  # in each interval of 500 ms
    more_events: Sequence[dict[str, Any]] = field(default_factory=list)


def make_run(
    path: Path,
    processes: dict[str, list[str]],
    trials: Sequence[MadeTrial],
    *,
    duration_s: float = 2.0,
    cpus: str | None = "0-3",
    thresholds: dict[str, float] | None = None,
    workload: str = "made",
    with_tables: bool = True,
    with_summary: bool = True,
) -> Path:
    """A run directory of nodes in processes; the trials are as given. Returns its path."""
    first = trials[0]
    nodes = {name: [_node(n, first.streams) for n in members] for name, members in processes.items()}
    edges = [[_full(s.sender), _full(s.subject), _full(s.receiver)] for s in first.streams if not s.service]
    services = [[_full(s.sender), _full(s.subject), _full(s.receiver)] for s in first.streams if s.service]
    manifest = {
        "schema": 1,
        "run": path.name,
        "name": workload,
        "settings": {"thresholds": thresholds or THRESHOLDS, "sampling_ns": 500 * MS, "executor": None},
        "workload": {
            "kind": "topology",
            "name": workload,
            "sources": [{"path": f"/somewhere/{name}.yaml", "sha256": "", "text": ""} for name in processes],
            "graph": graph(nodes, workload),
            "edges": edges,
            "services": services,
        },
        "middlewares": [{"name": t.middleware, "version": "1.0", "options": {}} for t in trials],
        "trials": [{} for _ in trials],
        "preflight": [],
        "host": {"cpus_online": cpus, "cpu_model": "Test CPU", "machine": "x86_64"},
    }
    path.mkdir(parents=True)
    (path / "manifest.json").write_text(json.dumps(manifest))
    for number, trial in enumerate(trials, start=1):
        _write_trial(path, number, trial, processes, duration_s, workload, with_tables)
    if with_summary:
        summary, _ = collect_run(RunDirectory(path, created=False))
        (path / "summary.json").write_text(json.dumps(as_json(summary)))
    return path


def _full(name: str) -> str:
    return f"/{name}"


def _node(name: str, streams: Sequence[Stream]) -> dict[str, Any]:
    return node(
        name,
        {_full(s.subject): s.period_ms for s in streams if s.sender == name and not s.service},
        [_full(s.subject) for s in streams if s.receiver == name and not s.service],
        asks={_full(s.subject): s.period_ms for s in streams if s.sender == name and s.service},
        serves=[_full(s.subject) for s in streams if s.receiver == name and s.service],
    )


def _write_trial(
    path: Path,
    number: int,
    trial: MadeTrial,
    processes: dict[str, list[str]],
    duration_s: float,
    workload: str,
    with_tables: bool,
) -> None:
    directory = TrialDirectory(path / "trials" / f"{number:04d}_baseline")
    directory.processes.mkdir(parents=True)
    document: dict[str, Any] = {
        "schema": 1,
        "trial": number,
        "order": number,
        "status": "finished",
        "outcome": "failed" if trial.missed else trial.outcome,
        "reason": trial.missed or (None if trial.outcome == "success" else "made so"),
        "criteria": [{"criterion": trial.missed, "met": False, "words": trial.missed}] if trial.missed else [],
        "workload": workload,
        "middleware": {"name": trial.middleware, "version": "1.0", "options": {}},
        "executor": trial.executor,
        "ipc": trial.ipc,
        "pass_by": trial.pass_by,
        "phase": trial.phase,
        "conditions": list(trial.conditions),
        "duration_s": duration_s,
        "warmup_s": 0.0,
        "start_at_ns": START_NS,
        "drain": "rest" if trial.outcome == "success" else None,
        "processes": {name: {"process": name, "pid": 1} for name in processes},
    }
    (directory.path / "trial.json").write_text(json.dumps(document))
    for name, members in processes.items():
        lines = _records(name, members, trial, duration_s)
        directory.records(name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    if with_tables:
        collected = collect(directory, read_trial(document), [], [])
        tables.write(directory.path, collected.data.accounts, collected.processes)


def _records(name: str, members: Sequence[str], trial: MadeTrial, duration_s: float) -> list[dict[str, Any]]:
    until_ns = START_NS + round(duration_s * 1e9)
    received = [s for s in trial.streams if not s.service and s.receiver in members]
    asked = [s for s in trial.streams if s.service and s.sender in members]
    published: dict[tuple[str, str], Stream] = {}
    for stream in trial.streams:
        if not stream.service and stream.sender in members:
            published.setdefault((stream.sender, stream.subject), stream)
    late = [e for index, s in enumerate([*received, *asked]) for e in _late_events(index, s)]
    checkpoint = {
        "type": "checkpoint",
        "at_ns": until_ns,
        "final": trial.final,
        "publishers": [{"node": _full(s.sender), "topic": _full(s.subject), **_sending(s)} for s in published.values()],
        "edges": [
            {
                "publisher": _full(s.sender),
                "topic": _full(s.subject),
                "subscription": _full(s.receiver),
                **_receiving(s),
            }
            for s in received
        ],
        "services": [
            {
                "client": _full(s.sender),
                "service": _full(s.subject),
                "server": _full(s.receiver),
                "requests": _sending(s),
                "replies": _receiving(s),
            }
            for s in asked
        ],
        "foreign_messages": 0,
        "malformed_messages": trial.malformed,
        "forgotten_messages": trial.forgotten,
    }
    return [
        {"type": "event", "at_ns": START_NS - 900 * MS, "code": "participant_created", "text": ""},
        {"type": "event", "at_ns": START_NS - 800 * MS, "code": "endpoints_created", "text": ""},
        {"type": "event", "at_ns": START_NS - 710 * MS, "code": "all_participants_found", "text": ""},
        {"type": "event", "at_ns": START_NS - 649 * MS, "code": "all_endpoints_matched", "text": ""},
        {
            "type": "start",
            "at_ns": START_NS,
            "measured_from_ns": START_NS,
            "measured_until_ns": until_ns,
            "matched": True,
        },
        *({"type": "event", "text": "", **event} for event in [*late, *trial.more_events]),
        *_resources(trial),
        *([checkpoint] if trial.checkpoint else []),
    ]


def _late_events(index: int, stream: Stream) -> list[dict[str, Any]]:
    period_ns = stream.period_ms * MS
    late_ns, too_late_ns = min(5 * MS, period_ns // 5), min(50 * MS, period_ns)
    return [
        {
            "at_ns": a.at_ns,
            "code": "too_late" if a.latency_ns > too_late_ns else "late",
            "edge": index,
            "sequence": a.number,
            "latency_ns": a.latency_ns,
            "threshold_ns": too_late_ns if a.latency_ns > too_late_ns else late_ns,
        }
        for a in _unique(stream)
        if a.latency_ns > late_ns
    ]


def _unique(stream: Stream) -> list[Arrival]:
    seen: dict[int, Arrival] = {}
    for arrival in stream.arrivals:
        seen.setdefault(arrival.number, arrival)
    return list(seen.values())


def _sending(stream: Stream) -> dict[str, Any]:
    calls = hg.from_values([2500] * stream.sent)
    return {
        "sent": stream.sent,
        "not_sent": 0,
        "write_errors": 0,
        "warmup_sent": 0,
        "first_sequence": 0 if stream.sent else None,
        "publish_delay": hg.to_record(calls),
        "publish_call": hg.to_record(calls),
    }


def _receiving(stream: Stream) -> dict[str, Any]:
    unique = _unique(stream)
    numbers = sorted(a.number for a in unique)
    reordered, highest = 0, -1
    for arrival in unique:
        reordered += arrival.number < highest
        highest = max(highest, arrival.number)
    late = _late_events(0, stream)
    too_late = sum(event["code"] == "too_late" for event in late)
    latency = hg.to_record(hg.from_values([a.latency_ns for a in unique], [a.at_ns for a in unique]))
    return {
        "size_bytes": 8,
        "frequency_hz": 1000 / stream.period_ms,
        "received": len(unique),
        "first_sequence": numbers[0] if numbers else None,
        "highest_sequence": numbers[-1] if numbers else None,
        "gap": numbers[-1] - numbers[0] + 1 - len(numbers) if numbers else 0,
        "reordered": reordered,
        "duplicate": len(stream.arrivals) - len(unique),
        "beyond_window": 0,
        "warmup_received": 0,
        "on_time": len(unique) - len(late),
        "late": len(late) - too_late,
        "too_late": too_late,
        "latency": latency,
        "response": latency,
        "dispatch": None,
        "work": None,
    }


def _resources(trial: MadeTrial) -> list[dict[str, Any]]:
    """Samples from 1 s before the start on, 500 ms apart; the first one without an interval."""
    lines = []
    used = [trial.cpu_ms] * len(trial.rss_kb) if isinstance(trial.cpu_ms, int) else [0, *trial.cpu_ms]
    used[:1] = [0]
    for k, rss_kb in enumerate(trial.rss_kb):
        lines.append(
            {
                "type": "resources",
                "at_ns": START_NS - 1000 * MS + k * 500 * MS,
                "interval_ns": 500 * MS if k else None,
                "cpu_ns": (3 + sum(used[: k + 1])) * MS,
                "cpu_interval_ns": used[k] * MS if k else None,
                "rss_kb": rss_kb,
                "rss_peak_kb": max(trial.rss_kb[: k + 1]),
                "vsz_kb": 100_000,
                "arena_kb": 264,
                "in_use_kb": 90,
                "mmap_kb": 520,
                "minor_faults": 100 + k,
                "major_faults": 0,
                "block_inputs": 0,
                "block_outputs": 8 * k,
                "voluntary_switches": k,
                "involuntary_switches": 0,
                "user_ns": (2 + sum(used[: k + 1])) * MS,
                "system_ns": 1 * MS,
                "run_delay_ns": 0,
                "threads": [],
            }
        )
    return lines
