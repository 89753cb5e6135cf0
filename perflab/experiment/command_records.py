"""Records of commands after their trial, in the form of nodes' records, so that the rest of perflab reads both alike.

Resources come from perflab-monitor's samples of its processes, messages from its trace. Written once, at the end.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perflab.condition import Window
from perflab.errors import PerflabError
from perflab.experiment.running import RunningTrial
from perflab.formats.monitor import MONITOR_FILE, MonitorReader
from perflab.formats.records import RecordError
from perflab.observer import Artifact
from perflab.statistics.system_counts import USAGE

if TYPE_CHECKING:
    from perflab.experiment.traced_messages import TracedMessages

Json = dict[str, Any]

TRACE = "trace"  # the kind of an artifact, and in records the source of messages
_FOREVER = 2**62


def write(
    trial: RunningTrial, ready_lines: Mapping[str, str | None], window: Window | None, artifacts: Sequence[Artifact]
) -> tuple[Json, list[str]]:
    """Writes the records of a trial's command, or of several. What trial.json records about their messages, and notes.

    `ready_lines` are the log lines that showed readiness, by process name. With several commands, the first one's
    records have all messages: an edge may begin in one and end in another. `window` is the measured part, None if the
    trial did not come so far. Raises OSError if a file cannot be written.
    """
    plan = trial.plan
    assert plan.command is not None
    if window is None:
        return _unmeasured("the trial ended before it was measured"), []
    notes: list[str] = []
    monitor = _monitor(trial.directory / MONITOR_FILE, notes)
    names = [member.name for member in plan.command.members]
    messages, told = _messages(artifacts, window, _pids(monitor, names))
    notes += told if isinstance(messages, str) else messages.notes
    found = None if isinstance(messages, str) else messages
    for name in names:
        first = name == names[0]
        records = _records(trial, name, ready_lines.get(name), window, monitor, found if first else None, found)
        with trial.files.records(plan.names[name]).open("w", encoding="utf-8") as file:
            for record in records:
                file.write(json.dumps(record, separators=(",", ":"), allow_nan=False, ensure_ascii=False) + "\n")
    if isinstance(messages, str):
        return _unmeasured(messages), notes
    return {"source": TRACE, "reason": None, **messages.counts}, notes


def _records(
    trial: RunningTrial,
    name: str,
    ready_line: str | None,
    window: Window,
    monitor: MonitorReader,
    messages: TracedMessages | None,
    of_all: TracedMessages | None,
) -> list[Json]:
    """Records of one command."""
    plan, group = trial.plan, f"workload/{name}"
    started_ns = trial.start_at_ns or window.begin_ns
    records: list[Json] = [
        {"type": "process", "pid": trial.processes.get(name), "process": name,
         "started_ns": window.begin_ns, "executors": [], "intra_process": None, "clock_cost_ns": None,
         "middleware": {"name": plan.variant.middleware_name, "version": None, "effective": {}}},
        {"type": "start", "at_ns": window.begin_ns, "measured_from_ns": window.begin_ns,
         "measured_until_ns": window.end_ns, "matched": True},
        *_events(ready_line, window, started_ns),
        *_resources(monitor, group),
        *(() if messages is None else messages.progress),
        _checkpoint(window, messages, source=None if of_all is None else TRACE),
    ]  # fmt: skip
    return records


def _unmeasured(reason: str) -> Json:
    return {"source": None, "reason": reason}


def _messages(
    artifacts: Sequence[Artifact], window: Window, pids: set[int] | None
) -> tuple[TracedMessages | str, list[str]]:
    """Messages from the trace, or why there are none."""
    trace = next((a.path for a in artifacts if a.kind == TRACE), None)
    if trace is None:
        return "the command was not traced", []
    from perflab.experiment.traced_messages import read
    from perflab.trace import open_trace

    try:
        with open_trace([trace]) as opened:
            found = read(opened, window, pids)
    except PerflabError as error:
        return f"its trace cannot be read: {error}", [f"messages were not measured: its trace cannot be read: {error}"]
    if not found.publishers:
        reason = "its trace has no ros2:* publications in the measured part"
        return (found, []) if opened.facts["events"] and _speaks_ros(opened.facts) else (reason, [reason])
    return found, []


def _speaks_ros(facts: Mapping[str, Any]) -> bool:
    return any(str(event["name"]).startswith("ros2:") for event in facts["events"])


def _monitor(path: Path, notes: list[str]) -> MonitorReader:
    reader = MonitorReader(path)
    try:
        reader.refresh()
    except (RecordError, OSError) as error:
        notes.append(f"resources are incomplete: {error}")
    return reader


def _pids(monitor: MonitorReader, names: Iterable[str]) -> set[int] | None:
    """The commands' processes that the monitor saw; None if it saw none."""
    return {seen.pid for name in names for seen in monitor.threads(f"workload/{name}", 0, _FOREVER)} or None


def _events(ready_line: str | None, window: Window, started_ns: int) -> Iterator[Json]:
    yield {"type": "event", "at_ns": started_ns, "code": "started", "text": "the measured part"}
    if ready_line:
        yield {"type": "event", "at_ns": started_ns, "code": "command_ready", "text": f"ready: {ready_line}"}
    yield {"type": "event", "at_ns": window.end_ns, "code": "publishing_ended", "text": "the end of the measured part"}


def _resources(monitor: MonitorReader, group: str) -> Iterable[Json]:
    """The samples of all its processes together, as one; the first has no interval."""
    peak_kb, cpu_ns = 0, 0
    before_ns: int | None = None
    used = dict(monitor.cpu_by_interval(group, 0, _FOREVER))
    for at_ns, rss_kb in monitor.rss_kb(group, 0, _FOREVER):
        peak_kb = max(peak_kb, rss_kb)
        interval_ns = None if before_ns is None else at_ns - before_ns
        cpus = used.get(at_ns)
        interval_cpu_ns = None if cpus is None or interval_ns is None else round(cpus * interval_ns)
        cpu_ns += interval_cpu_ns or 0
        yield {
            "type": "resources", "at_ns": at_ns, "interval_ns": interval_ns, "cpu_ns": cpu_ns,
            "cpu_interval_ns": interval_cpu_ns, "rss_kb": rss_kb, "rss_peak_kb": peak_kb,
            **dict.fromkeys(("vsz_kb", "arena_kb", "in_use_kb", "mmap_kb", *USAGE, "user_ns", "system_ns",
                             "run_delay_ns", "allocations")),
            "threads": [],
        }  # fmt: skip
        before_ns = at_ns


def _checkpoint(window: Window, messages: TracedMessages | None, source: str | None) -> Json:
    """The last checkpoint; without messages it has no owners, so that everything about them is null."""
    return {
        "type": "checkpoint",
        "at_ns": window.end_ns,
        "final": True,
        "source": source,
        "publishers": [] if messages is None else list(messages.publishers),
        "edges": [] if messages is None else list(messages.edges),
        "services": [],
        "hiccup": None,
        "foreign_messages": 0,
        "malformed_messages": 0,
    }
