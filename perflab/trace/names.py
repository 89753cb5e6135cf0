"""What the ROS objects of a trace are called: rows of the object tables joined with their node, process and host.

These tables have one row per object, so that what polars has no expression for may be done row by row.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from perflab.units import format_count, format_time

if TYPE_CHECKING:
    from perflab.trace.source import Source

# Topics and services that ROS itself brings: kept, and sorted behind those of the system.
INTERNAL_TOPICS = ("/rosout", "/parameter_events", "ros_discovery_info")
_INTERNAL_SERVICE = (
    r"/(describe_parameters|get_parameters|get_parameter_types|list_parameters|set_parameters"
    r"|set_parameters_atomically|get_type_description|get_logger_levels|set_logger_levels)$"
)

# What perflab's own runtime registers, and what a plain function or method is called by its demangled name.
_OWN_SYMBOL = re.compile(r"perflab::\w+\([^,()]*, (?P<name>[^()]+)\)")
_PLAIN_SYMBOL = re.compile(r"(?:[\w:~]+ )?(?P<name>[A-Za-z_]\w*(?:::~?\w+)*)(?:\([^()]*\))?(?: const)?")

WHERE = ("host", "process", "pid")

NO_SCHEDULER = "the trace has no scheduler events"
NO_PUBLISHER = "the initialisation of the publisher or of its node is not in the trace"
NO_SUBSCRIBER = "the initialisation of the subscription or of its node is not in the trace"
NO_PROCESS_NAME = "no event says the name of the process (context procname)"

# Executors of rclcpp that have no tracepoints.
SILENT_EXECUTORS = "EventsExecutor and StaticSingleThreadedExecutor"


def is_internal(name: pl.Expr) -> pl.Expr:
    """Whether a topic or service of that name is ROS's own; false where it has none."""
    return (name.is_in(list(INTERNAL_TOPICS)) | name.str.contains(_INTERNAL_SERVICE)).fill_null(False)


def processes(trace: Source) -> pl.DataFrame:
    """`process_row`, `host`, `process` (its name), `pid`, and when its events lie."""
    hosts = _rows(trace.table("hosts"), "host").rename({"name": "host_name"})
    return (
        _rows(trace.table("processes"), "process_row")
        .join(hosts, on="host", how="left", maintain_order="left")
        .select(
            "process_row", pl.col("host").alias("host_row"), pl.col("host_name").alias("host"),
            pl.col("name").alias("process"), "pid", "first_ns", "last_ns",
        )
    )  # fmt: skip


def nodes(trace: Source) -> pl.DataFrame:
    """`node_row`, `node` (its name) of every node."""
    return _rows(trace.table("nodes"), "node_row").select("node_row", pl.col("name").alias("node"))


def objects(trace: Source, table: str) -> pl.DataFrame:
    """A table of publishers, subscriptions, services, clients, timers or callbacks: its columns with `row`, its number.

    `node`, `process`, `pid` and `host` are names instead of rows, `handle` is text; `node_row`, `process_row` and
    `host_row` are the rows, `first_ns` and `last_ns` those of the process's events.
    """
    frame = _rows(trace.table(table), "row").rename({"process": "process_row", "node": "node_row"}, strict=False)
    frame = frame.with_columns(hexadecimal(frame["handle"]))
    if "node_row" in frame.columns:
        frame = frame.join(nodes(trace), on="node_row", how="left", maintain_order="left")
    return frame.join(processes(trace), on="process_row", how="left", maintain_order="left")


def callbacks(trace: Source) -> pl.DataFrame:
    """`objects` of the callbacks with `period_ns` of timers and `label`, a short name that no other callback has.

    "/talker timer 100 ms", "/listener /chatter"; what is not known of a callback is replaced by its handle and process.
    The same name in several processes gets their numbers: "/listener /chatter (4711)", with several hosts theirs, too;
    several in one process get their symbols: "/talker timer 100 ms on_tick".
    """
    timers = _rows(trace.table("timers"), "owner").select("owner", "period_ns")
    frame = objects(trace, "callbacks")
    is_timer = pl.col("kind") == "timer"
    frame = frame.with_columns(__timer=pl.when(is_timer).then(pl.col("owner"))).join(
        timers, left_on="__timer", right_on="owner", how="left", maintain_order="left"
    )
    labels = [_label(row) for row in frame.iter_rows(named=True)]
    frame = frame.drop("__timer").with_columns(pl.Series("label", labels, dtype=pl.String))
    # The same program several times: which process it is tells more than a handle.
    where = pl.format("({})", pl.col("pid").cast(pl.String).fill_null("–"))
    if trace.table("hosts").height > 1:
        where = pl.format("({}, {})", pl.col("pid").cast(pl.String).fill_null("–"), pl.col("host").fill_null("–"))
    several = pl.when((pl.col("process_row").n_unique() > 1).over("label"))
    frame = frame.with_columns(
        several.then(pl.format("{} {}", "label", where)).otherwise(pl.col("label")).alias("label")
    )
    # Timers of one node and period: what the program calls them.
    symbols = pl.Series("__symbol", [short_symbol(symbol) for symbol in frame["symbol"]], dtype=pl.String)
    frame = frame.with_columns(symbols)
    named = pl.when((pl.col("__symbol").is_unique() & pl.col("__symbol").is_not_null()).all().over("label"))
    frame = frame.with_columns(
        pl.when(pl.col("label").is_duplicated())
        .then(named.then(pl.format("{} {}", "label", "__symbol")).otherwise(pl.col("label")))
        .otherwise(pl.col("label"))
        .alias("label")
    ).drop("__symbol")
    unique = pl.when(pl.col("label").is_duplicated())
    frame = frame.with_columns(
        unique.then(pl.format("{} {}", "label", "handle")).otherwise(pl.col("label")).alias("label")
    )
    unique = pl.when(pl.col("label").is_duplicated())
    return frame.with_columns(
        unique.then(pl.format("{} #{}", "label", "row")).otherwise(pl.col("label")).alias("label")
    )


def threads(trace: Source) -> pl.DataFrame:
    """`thread_row`, `thread` (its name), `tid`, `host`, `process` and `pid`; these two are null for kernel threads."""
    hosts = _rows(trace.table("hosts"), "host_row").rename({"name": "host"})
    owners = processes(trace).select("process_row", "process", "pid")
    frame = _rows(trace.table("threads"), "thread_row")
    frame = frame.rename({"process": "process_row", "name": "thread", "host": "host_row"})
    return frame.join(owners, on="process_row", how="left", maintain_order="left").join(
        hosts, on="host_row", how="left", maintain_order="left"
    )


def hexadecimal(handles: pl.Series) -> pl.Series:
    """Handles as text: "0x55d0c8a1b2f0"."""
    texts = [None if value is None else f"{value:#x}" for value in handles]
    return pl.Series(handles.name, texts, dtype=pl.String)


def short_symbol(symbol: str | None) -> str | None:
    """A callback's symbol as people would say it; None where there is none that tells anything.

    >>> short_symbol("perflab::timer(/montreal, nile)")
    'nile'
    >>> short_symbol("void (Talker::?)()")
    """
    if symbol is None:
        return None
    if own := _OWN_SYMBOL.fullmatch(symbol):
        return own["name"]
    if plain := _PLAIN_SYMBOL.fullmatch(symbol):
        return plain["name"]
    return None


def unknown(what: str, name: str, known: Sequence[str]) -> str:
    """ "no node '/sinc' in the trace; did you mean /sink?"."""
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    if close:
        hint = f"did you mean {' or '.join(close)}?"
    elif known:
        more = f" and {len(known) - 8} more" if len(known) > 8 else ""
        hint = f"there are {', '.join(known[:8])}{more}"
    else:
        hint = "the trace names none"
    return f"no {what} {name!r} is in the trace; {hint}"


def plural(n: int, what: str, whats: str | None = None) -> str:
    """ "1 event", "12 480 events"."""
    return f"{format_count(n)} {what if n == 1 else whats or what + 's'}"


def _label(row: dict[str, object]) -> str:
    name = row["name"]
    if row["kind"] == "timer" and isinstance(row["period_ns"], int):
        name = period(row["period_ns"])
    kind = "" if row["kind"] in ("subscription", "unknown") else f"{row['kind']} "
    place = row["process"] or "process"
    where = f"({place} {row['pid']})"
    if row["node"] is None and name is None:
        return f"{kind}{row['handle']} {where}"
    return f"{row['node'] or where} {kind}{name or row['handle']}"


def period(ns: int) -> str:
    """As it was probably written: "5 ms", "33.3 ms"."""
    value, unit = format_time(ns).split(" ")
    return f"{value.rstrip('0').rstrip('.') if '.' in value else value} {unit}"


def _rows(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    return frame.with_row_index(name).with_columns(pl.col(name).cast(pl.Int32))
