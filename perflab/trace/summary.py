"""What a trace is: what ran, for how long, what was recorded, and how good the data are."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from perflab.trace import names
from perflab.trace import quality as data_quality
from perflab.trace.answer import Answer, Section
from perflab.trace.columns import Table, because, count, identity, percent, rate, size, text, time
from perflab.trace.names import HANDLE, HOST, NO_SCHEDULER, PID, PROCESS
from perflab.trace.quality import INSTANCES, and_reads, quality_of
from perflab.trace.scope import EVERYTHING, Scope
from perflab.trace.source import Count, Source
from perflab.units import plural

Json = dict[str, Any]

_ENDS = ("publishers", "subscriptions", "services", "clients", "timers")
_OF_NODE = tuple(count(end, f"{end} that it has") for end in _ENDS)
_CALLBACKS = count("callbacks", "callbacks that were registered")
_NO_EVENTS = "the trace has no events"
_NO_CLOCK = "the trace describes no clock"
(_HOST,) = because("the trace does not name its host", HOST)
(_PROCESS,) = because("the events have no context procname", PROCESS)

_SPAN = because(
    _NO_EVENTS,
    time("begin", "its first event, on the trace's clock"),
    time("end", "its last event, on the trace's clock"),
    time("duration", "from the first to the last event"),
)

OVERVIEW = Table(
    "overview",
    "Trace",
    (
        count("traces", "traces that were read together"),
        *_SPAN[:2],
        text("begin_utc", "the first event, by the wall clock", "no clock of the trace says when its zero was"),
        _SPAN[2],
        count("events", "events that were read"),
        count("events_unused", "of these, those of kinds that no answer uses"),
        count("hosts", "hosts"),
        count("processes", "processes"),
        count("nodes", "nodes"),
        *(count(end, end) for end in _ENDS),
        _CALLBACKS,
        count("callback_instances", "times that a callback began"),
        count("publications", "messages that were published"),
        count("takes", "times that a subscription took from the middleware"),
        count("intra_process_deliveries", "messages that were put into a ring buffer"),
        *because(
            NO_SCHEDULER,
            count("scheduler_events", "events of the scheduler"),
            time("scheduler_duration", "from the first to the last of them"),
        ),
        text("tracetools", "versions of ROS's tracetools", "rcl_init is not in the trace"),
        text("tracers", "what recorded the traces", "the traces do not say"),
        count("ledger_entries", "entries of the ledger of what is missing or damaged"),
    ),
    vertical=True,
)

PROCESSES = Table(
    "processes",
    "Processes",
    (
        _PROCESS,
        PID,
        _HOST,
        text("tracetools_version", "version of its tracetools", "rcl_init of the process is not in the trace"),
        count("events", "its events of user space"),
        time("first", "its first event, on the trace's clock"),
        time("duration", "from its first to its last event"),
        count("threads", "its threads"),
        count("nodes", "its nodes"),
        *_OF_NODE,
    ),
    shown=("process", "pid", "tracetools_version", "events", "duration_ns", "threads", "nodes", *_ENDS),
    spare=("tracetools_version", "clients", "services", "duration_ns", "timers"),
)

NODES = Table(
    "nodes",
    "Nodes",
    (
        text("node", "name of the node", "rcl_node_init is not in the trace"),
        _PROCESS,
        PID,
        _HOST,
        HANDLE,
        *_OF_NODE,
        _CALLBACKS,
    ),
    shown=("node", "process", "pid", *_ENDS, "callbacks"),
    spare=("process", "clients"),
)

EVENTS = Table(
    "events",
    "Events",
    (
        text("event", "name of the event"),
        count("n", "how many there are"),
        percent("share", "share of all events"),
        text("used_as", "what perflab takes it for", "perflab does not use this event"),
        count("traces", "traces that have it"),
    ),
    spare=("traces",),
)

TRACES = Table(
    "traces",
    "Traces",
    (
        identity("trace", "number of the trace"),
        text("path", "its folder"),
        *because(
            "the trace does not say",
            text("host", "the host that was traced"),
            text("domain", "ust: user space; kernel"),
            text("tracer", "what recorded it"),
        ),
        count("events", "events that were read"),
        *_SPAN,
        *because(
            _NO_CLOCK,
            text("clock", "the clock of its time stamps"),
            rate("frequency", "ticks of that clock in a second", kind="integer"),
            time("offset", "from the clock's zero to 1970"),
        ),
        time("shift", "what was added so that all traces have one clock"),
    ),
    shown=("trace", "path", "host", "domain", "tracer", "events", "duration_ns", "clock", "shift_ns"),
    spare=("shift_ns", "clock", "tracer", "host"),
)

STREAMS = Table(
    "streams",
    "Streams",
    (
        identity("trace", "number of the trace"),
        *because(
            "the stream does not say",
            identity("cpu", "the CPU whose events it has"),
            count("instance", "number of the stream among those of its class"),
        ),
        count("packets", "packets"),
        count("events", "events that were read"),
        size("size", "length of the file"),
        count("discarded_events", "events that the tracer had no room for"),
        count("lost_packets", "packets that are not there"),
        *because("the stream has no events", *_SPAN[:2]),
    ),
    shown=("trace", "cpu", "packets", "events", "size_bytes", "discarded_events", "lost_packets"),
)

TABLES = (OVERVIEW, PROCESSES, NODES, EVENTS, TRACES, STREAMS, *data_quality.TABLES)


READS = and_reads({"publications": ("publisher?",)})


def summary(trace: Source, scope: Scope = EVERYTHING) -> Answer:
    """Processes, nodes, events, streams, and the data quality ledger. The scope is of counts of what ran and was sent,
    and of the nodes and processes that are listed; events, streams and losses are those of the whole trace.
    """
    quality = quality_of(trace)
    return Answer(
        "summary",
        (
            _overview(trace, scope),
            _processes(trace, scope),
            _nodes(trace, scope),
            _events(trace.facts),
            _traces(trace.facts),
            _streams(trace.facts),
            *data_quality.sections(trace, quality, scope),
        ),
        tuple(dict.fromkeys((*trace.facts.get("warnings", ()), *quality.doubts()))),
        quality.warnings(*(c.figure for c in quality.coverage)),
        scope.words,
    )


def _overview(trace: Source, scope: Scope) -> Section:
    facts = trace.facts
    begin, end, offset = facts["begin_ns"], facts["end_ns"], facts["epoch_offset_ns"]
    if scope.has_window:
        begin, end = scope.bounds(trace)
    scheduler = facts["scheduler"]
    counts = {table: len(trace.rows(table)) for table in ("hosts", "processes", "nodes", *_ENDS, "callbacks")}
    row = {
        "traces": len(facts["traces"]),
        "begin_ns": begin,
        "end_ns": end,
        "begin_utc": _utc(begin + offset) if begin is not None and offset is not None else None,
        "duration_ns": end - begin if begin is not None and end is not None else None,
        "events": sum(t["events"] for t in facts["traces"]),
        "events_unused": sum(e["count"] for e in facts["events"] if e["kind"] is None),
        **counts,
        **_ran(trace, scope),
        "scheduler_events": scheduler["events"] if scheduler else None,
        "scheduler_duration_ns": scheduler["end_ns"] - scheduler["begin_ns"] if scheduler else None,
        "tracetools": ", ".join(facts["tracetools_versions"]) or None,
        "tracers": ", ".join(dict.fromkeys(filter(None, map(_tracer, facts["traces"])))) or None,
        "ledger_entries": len(facts["ledger"]),
    }
    return Section(OVERVIEW, OVERVIEW.plain([row]), hidden=("begin_ns", "end_ns"))


def _ran(trace: Source, scope: Scope) -> dict[str, int]:
    """What ran and was sent in the scope."""

    def within(question: Count, *instants: str) -> list[tuple[Any, ...]]:
        if not scope.has_window:
            return trace.count(question)
        return trace.count(replace(question, instants=instants, begin_ns=scope.begin_ns, end_ns=scope.end_ns))

    ran = within(INSTANCES, "start_ns")
    chosen = scope.callbacks(trace)
    found = {"callback_instances": sum(n for callback, n, _ in ran if chosen is None or callback in chosen)}
    for name, table, end, instants in (
        ("publications", "publications", "publisher", ("intra_ns", "rclcpp_ns", "rcl_ns", "rmw_ns", "dds_ns")),
        ("takes", "takes", "subscription", ("rmw_ns", "rcl_ns", "rclcpp_ns")),
        ("intra_process_deliveries", "intra_deliveries", "subscription", ("enqueue_ns",)),
    ):
        if scope.has_names:
            nodes = trace.rows("nodes")
            ends = [
                scope.has_topic(row["topic"])
                and scope.has_node(None if row["node"] is None else nodes[row["node"]]["name"])
                for row in trace.rows(f"{end}s")
            ]
            rows = within(Count(table, by=(end,)), *instants)
            found[name] = sum(n for row, n in rows if row is not None and ends[row])
        else:
            found[name] = sum(n for (n,) in within(Count(table), *instants))
    return found


def _utc(epoch_ns: int) -> str:
    """To the millisecond; the rest is in begin_ns."""
    return datetime.fromtimestamp(epoch_ns // 1_000_000 / 1000, UTC).isoformat(timespec="milliseconds")


def _tracer(trace: Json) -> str | None:
    return " ".join(filter(None, (trace.get("tracer"), trace.get("tracer_version")))) or None


def _processes(trace: Source, scope: Scope) -> Section:
    """One row per process, with how many objects it has; those that only the scheduler knows are left out."""
    tables = {table: _counts(trace, table, "process") for table in ("threads", "nodes", *_ENDS)}
    processes = [
        {
            **process,
            **{name: row[name] for name in ("tracetools_version", "events")},
            "duration_ns": None if row["last_ns"] is None else row["last_ns"] - row["first_ns"],
            **{table: counts[process["process_row"]] for table, counts in tables.items()},
        }
        for process, row in zip(names.process_rows(trace), trace.rows("processes"), strict=True)
    ]
    seen = [process for process in processes if process["events"]]
    if scope.has_names:
        of_nodes = {node["process_row"] for node in _nodes_of(trace, scope)}
        seen = [process for process in seen if process["process_row"] in of_nodes]
    rows = PROCESSES.plain(sorted(seen, key=lambda process: (process["host_row"], process["pid"])))
    others = sum(process["events"] == 0 for process in processes)
    notes = [f"{plural(others, 'more process', 'more processes')} only in scheduler events"] if others else []
    return Section(PROCESSES, rows, tuple(notes) if rows else ("no process emitted an event of user space", *notes))


def _nodes_of(trace: Source, scope: Scope) -> list[dict[str, Any]]:
    """The nodes of the scope: those that are named, and of a topic those that publish or subscribe to it."""
    processes = names.process_rows(trace)
    nodes = [
        {
            **({} if row["process"] is None else processes[row["process"]]),
            "node": row["name"],
            "node_row": number,
            "handle": names.handle_text(row["handle"]),
        }
        for number, row in enumerate(trace.rows("nodes"))
        if scope.has_node(row["name"])
    ]
    if scope.topics is None:
        return nodes
    ends = {
        row["node"]
        for table in ("publishers", "subscriptions")
        for row in trace.rows(table)
        if scope.has_topic(row["topic"])
    }
    return [node for node in nodes if node["node_row"] in ends]


def _nodes(trace: Source, scope: Scope) -> Section:
    tables = {table: _counts(trace, table, "node") for table in (*_ENDS, "callbacks")}
    nodes = [
        {**node, **{table: counts[node["node_row"]] for table, counts in tables.items()}}
        for node in _nodes_of(trace, scope)
    ]
    rows = NODES.plain(sorted(nodes, key=lambda node: (node["node"] is None, node["node"] or "", node["node_row"])))
    return Section(NODES, rows, () if rows else ("no initialisation of a node is in the trace",))


def _counts(trace: Source, table: str, reference: str) -> Counter[int]:
    """How many rows of the table refer to each row of another."""
    return Counter(row[reference] for row in trace.rows(table))


def _events(facts: Json) -> Section:
    # Processes have traces of their own with buffers per PID; the same event of several is one row.
    counts, traces = Counter[tuple[str, str | None]](), dict[tuple[str, str | None], set[int]]()
    for event in facts["events"]:
        kind = (event["name"], event["kind"])
        counts[kind] += event["count"]
        traces.setdefault(kind, set()).add(event["trace"])
    part = 1.0 / (counts.total() or 1)  # times which a share is what it is where polars divides
    rows = [
        (name, n, 100.0 * n * part, used_as, len(traces[name, used_as]))
        for (name, used_as), n in sorted(counts.items(), key=lambda item: (-item[1], item[0][0]))
    ]
    return Section(EVENTS, EVENTS.plain(rows), () if rows else ("no event could be read",))


def _traces(facts: Json) -> Section:
    rows = []
    for i, t in enumerate(facts["traces"]):
        clock = t.get("clock") or {}
        begin, end = t.get("first_ns"), t.get("last_ns")
        length = end - begin if begin is not None and end is not None else None
        rows.append(
            (i, str(t["path"]), t.get("host"), t.get("domain"), _tracer(t), t["events"], begin, end, length,
             clock.get("name"), clock.get("frequency_hz"), clock.get("offset_ns"), t.get("shift_ns"))
        )  # fmt: skip
    return Section(TRACES, TRACES.plain(rows))


def _streams(facts: Json) -> Section:
    counts = ("packets", "events", "bytes", "discarded_events", "lost_packets")
    rows = [
        (i, s.get("cpu"), s.get("instance"), *(s[c] for c in counts), s.get("first_ns"), s.get("last_ns"))
        for i, t in enumerate(facts["traces"])
        for s in t["streams"]
    ]
    return Section(STREAMS, STREAMS.plain(rows))
