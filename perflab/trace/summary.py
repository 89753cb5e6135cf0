"""What a trace is: what ran, for how long, what was recorded, and how good the data are."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import polars as pl

from perflab.trace import names
from perflab.trace.answer import Answer, Section
from perflab.trace.quality import Quality, quality_of, unmatched_takes
from perflab.trace.scope import EVERYTHING, Scope

if TYPE_CHECKING:
    from perflab.trace.source import Source

Json = dict[str, Any]

_ENDS = ("publishers", "subscriptions", "services", "clients", "timers")


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
            *_quality_sections(trace, quality, scope),
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
    counts = {table: trace.table(table).height for table in ("hosts", "processes", "nodes", *_ENDS, "callbacks")}
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
    text = ("begin_utc", "tracetools", "tracers")
    schema = {name: pl.String if name in text else pl.Int64 for name in row}
    no_scheduler = "the trace has no scheduler events"
    return Section(
        "overview",
        "Trace",
        pl.DataFrame([row], schema=schema, orient="row"),
        reasons={
            "begin_ns": "the trace has no events",
            "end_ns": "the trace has no events",
            "begin_utc": "no clock of the trace says when its zero was",
            "duration_ns": "the trace has no events",
            "scheduler_events": no_scheduler,
            "scheduler_duration_ns": no_scheduler,
            "tracetools": "rcl_init is not in the trace",
            "tracers": "the traces do not say",
        },
        shown=tuple(name for name in row if name not in ("begin_ns", "end_ns")),
        vertical=True,
    )


def _ran(trace: Source, scope: Scope) -> dict[str, int]:
    """What ran and was sent in the scope."""
    ran = scope.within(trace.table("callback_instances"), "start_ns")
    if (chosen := scope.callbacks(trace)) is not None:
        ran = ran.filter(pl.col("callback").is_in(chosen))
    found = {"callback_instances": ran.height}
    for name, table, end, instants in (
        ("publications", "publications", "publisher", ("intra_ns", "rclcpp_ns", "rcl_ns", "rmw_ns", "dds_ns")),
        ("takes", "takes", "subscription", ("rmw_ns", "rcl_ns", "rclcpp_ns")),
        ("intra_process_deliveries", "intra_deliveries", "subscription", ("enqueue_ns",)),
    ):
        frame = trace.table(table)
        if scope.has_names:
            ends = scope.of_topics(scope.of_nodes(names.objects(trace, f"{end}s"), "node"))
            frame = frame.filter(pl.col(end).is_in(ends["row"].to_list()))
        frame = frame.select(pl.min_horizontal(*instants).alias("at_ns"))
        found[name] = scope.within(frame, "at_ns").height
    return found


def _utc(epoch_ns: int) -> str:
    """To the millisecond; the rest is in begin_ns."""
    return datetime.fromtimestamp(epoch_ns // 1_000_000 / 1000, UTC).isoformat(timespec="milliseconds")


def _tracer(trace: Json) -> str | None:
    return " ".join(filter(None, (trace.get("tracer"), trace.get("tracer_version")))) or None


def _processes(trace: Source, scope: Scope) -> Section:
    """One row per process, with how many objects it has; those that only the scheduler knows are left out."""
    processes = names.processes(trace).join(
        trace.table("processes")
        .with_row_index("process_row")
        .select(pl.col("process_row").cast(pl.Int32), "tracetools_version", "events"),
        on="process_row",
    )
    for table in ("threads", "nodes", *_ENDS):
        processes = _counted(processes, trace.table(table), "process", "process_row", table)
    seen = processes.filter(pl.col("events") > 0)
    if scope.has_names:
        seen = seen.filter(pl.col("process_row").is_in(_nodes_of(trace, scope)["process_row"].to_list()))
    frame = seen.sort("host_row", "pid").select(
        "process", "pid", "host", "tracetools_version", "events", "first_ns",
        (pl.col("last_ns") - pl.col("first_ns")).alias("duration_ns"), "threads", "nodes", *_ENDS,
    )  # fmt: skip
    others = processes.filter(pl.col("events") == 0).height
    notes = [f"{names.plural(others, 'more process', 'more processes')} only in scheduler events"] if others else []
    return Section(
        "processes",
        "Processes",
        frame,
        notes=tuple(notes) if frame.height else ("no process emitted an event of user space", *notes),
        reasons={
            "process": "the events have no context procname",
            "host": "the trace does not name its host",
            "tracetools_version": "rcl_init of the process is not in the trace",
        },
        shown=("process", "pid", "tracetools_version", "events", "duration_ns", "threads", "nodes", *_ENDS),
        spare=("tracetools_version", "clients", "services", "duration_ns", "timers"),
    )


def _nodes_of(trace: Source, scope: Scope) -> pl.DataFrame:
    """The nodes of the scope: those that are named, and of a topic those that publish or subscribe to it."""
    nodes = scope.of_nodes(names.objects(trace, "nodes").rename({"name": "node", "row": "node_row"}), "node")
    if scope.topics is None:
        return nodes
    ends = [
        scope.of_topics(trace.table(table).select("topic", "node"))["node"] for table in ("publishers", "subscriptions")
    ]
    return nodes.filter(pl.col("node_row").is_in(pl.concat(ends).drop_nulls().to_list()))


def _nodes(trace: Source, scope: Scope) -> Section:
    nodes = _nodes_of(trace, scope)
    for table in (*_ENDS, "callbacks"):
        nodes = _counted(nodes, trace.table(table), "node", "node_row", table)
    counts = (*_ENDS, "callbacks")
    return Section(
        "nodes",
        "Nodes",
        nodes.sort("node", "process_row", nulls_last=True).select("node", "process", "pid", "host", "handle", *counts),
        notes=() if nodes.height else ("no initialisation of a node is in the trace",),
        reasons={
            "node": "rcl_node_init is not in the trace",
            "process": "the events have no context procname",
            "host": "the trace does not name its host",
        },
        shown=("node", "process", "pid", *counts),
        spare=("process", "clients"),
    )


def _counted(frame: pl.DataFrame, table: pl.DataFrame, reference: str, row: str, name: str) -> pl.DataFrame:
    """`frame` with how many rows of the table refer to each of its rows."""
    counts = table.group_by(reference).agg(pl.len().cast(pl.Int64).alias(name))
    return frame.join(counts, left_on=row, right_on=reference, how="left", maintain_order="left").with_columns(
        pl.col(name).fill_null(0)
    )


def _events(facts: Json) -> Section:
    schema: dict[str, Any] = {"event": pl.String, "n": pl.Int64, "used_as": pl.String, "trace": pl.Int64}
    rows = [(e["name"], e["count"], e["kind"], e["trace"]) for e in facts["events"]]
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    # Processes have traces of their own with buffers per PID; the same event of several is one row.
    frame = (
        frame.group_by("event", "used_as", maintain_order=True)
        .agg(pl.col("n").sum(), traces=pl.col("trace").n_unique())
        .with_columns(share_percent=100.0 * pl.col("n") / pl.col("n").sum())
        .sort("n", "event", descending=[True, False])
        .select("event", "n", "share_percent", "used_as", "traces")
    )
    return Section(
        "events",
        "Events",
        frame,
        notes=() if frame.height else ("no event could be read",),
        reasons={"used_as": "perflab does not use this event"},
        spare=("traces",),
    )


def _traces(facts: Json) -> Section:
    schema: dict[str, Any] = {
        "trace": pl.Int64, "path": pl.String, "host": pl.String, "domain": pl.String, "tracer": pl.String,
        "events": pl.Int64, "begin_ns": pl.Int64, "end_ns": pl.Int64, "duration_ns": pl.Int64, "clock": pl.String,
        "frequency_hz": pl.Int64, "offset_ns": pl.Int64, "shift_ns": pl.Int64,
    }  # fmt: skip
    rows = []
    for i, t in enumerate(facts["traces"]):
        clock = t.get("clock") or {}
        begin, end = t.get("first_ns"), t.get("last_ns")
        length = end - begin if begin is not None and end is not None else None
        rows.append(
            (i, str(t["path"]), t.get("host"), t.get("domain"), _tracer(t), t["events"], begin, end, length,
             clock.get("name"), clock.get("frequency_hz"), clock.get("offset_ns"), t.get("shift_ns"))
        )  # fmt: skip
    return Section(
        "traces",
        "Traces",
        pl.DataFrame(rows, schema=schema, orient="row"),
        reasons={
            "host": "the trace does not say",
            "domain": "the trace does not say",
            "tracer": "the trace does not say",
            "begin_ns": "the trace has no events",
            "end_ns": "the trace has no events",
            "duration_ns": "the trace has no events",
            "clock": "the trace describes no clock",
            "frequency_hz": "the trace describes no clock",
            "offset_ns": "the trace describes no clock",
        },
        shown=("trace", "path", "host", "domain", "tracer", "events", "duration_ns", "clock", "shift_ns"),
        spare=("shift_ns", "clock", "tracer", "host"),
    )


def _streams(facts: Json) -> Section:
    counts = ("packets", "events", "bytes", "discarded_events", "lost_packets")
    schema: dict[str, Any] = {"trace": pl.Int64, "cpu": pl.Int64, "instance": pl.Int64}
    schema |= dict.fromkeys((*counts, "begin_ns", "end_ns"), pl.Int64)
    rows = [
        (i, s.get("cpu"), s.get("instance"), *(s[c] for c in counts), s.get("first_ns"), s.get("last_ns"))
        for i, t in enumerate(facts["traces"])
        for s in t["streams"]
    ]
    frame = pl.DataFrame(rows, schema=schema, orient="row").rename({"bytes": "size_bytes"})
    return Section(
        "streams",
        "Streams",
        frame,
        reasons={
            "cpu": "the stream does not say",
            "instance": "the stream does not say",
            "begin_ns": "the stream has no events",
            "end_ns": "the stream has no events",
        },
        shown=("trace", "cpu", "packets", "events", "size_bytes", "discarded_events", "lost_packets"),
    )


def _quality_sections(trace: Source, quality: Quality, scope: Scope) -> tuple[Section, ...]:
    """The data quality ledger."""
    counters = quality.counters.filter(pl.col("n") > 0)
    return (
        Section(
            "coverage",
            "What the figures rest on",
            quality.coverage_frame(),
            notes=quality.without_coverage(),
            reasons={
                **dict.fromkeys(("known", "of", "known_percent"), "the trace cannot tell (reason)"),
                "reason": "the figure is known",
            },
            shown=("figure", "basis"),
        ),
        Section(
            "ledger",
            "What is missing or damaged",
            quality.ledger,
            notes=() if quality.ledger.height else ("nothing of the trace is missing or damaged",),
            reasons={
                "offset": "not of one place in the file",
                "begin_ns": "not known",
                "end_ns": "not known",
            },
            shown=("message", "kind", "count"),
            spare=("kind",),
        ),
        Section(
            "unmatched",
            "What does not fit together",
            counters,
            notes=() if counters.height else ("every start has its end, every event its object",),
            shown=("meaning", "n"),
        ),
        unmatched_takes(trace, quality, scope),
        Section(
            "initialisation",
            "Missing initialisation",
            quality.initialisation,
            notes=() if quality.initialisation.height else ("every callback has its owner, node and symbol",),
        ),
        Section(
            "clocks",
            "Clocks",
            quality.clocks,
            notes=() if quality.clocks.height else ("nothing about the clocks is odd",),
            shown=("message",),
        ),
        Section(
            "threads_without_scheduler",
            "Threads without scheduler events",
            quality.threads_without_scheduler,
            notes=_thread_notes(trace, quality),
        ),
    )


def _thread_notes(trace: Source, quality: Quality) -> tuple[str, ...]:
    if not trace.facts["scheduler"]:
        return ("the trace has no scheduler events",)
    if quality.threads_without_scheduler.is_empty():
        return ("every thread of user space has scheduler events",)
    return ("they never ran while the scheduler was recorded, or live in a PID name space of their own",)
