"""What the ROS objects of a trace are called: rows of the object tables joined with their node, process and host.

These tables have one row per object, so that what polars has no expression for may be done row by row.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from perflab.trace.columns import identity, text
from perflab.trace.source import Source
from perflab.units import format_time

if TYPE_CHECKING:
    import polars as pl
else:
    from perflab.late_modules import polars as pl

HOST = text("host", "the host that was traced")
PROCESS = text("process", "name of the process")
PID = identity("pid", "number of the process")
THREAD = text("thread", "name of the thread")
TID = identity("tid", "number of the thread")
HANDLE = text("handle", "address of the object in its process")

# Topics and services that ROS itself brings: kept, and sorted behind those of the system.
INTERNAL_TOPICS = ("/rosout", "/parameter_events", "ros_discovery_info")
_INTERNAL_SERVICE = (
    r"/(describe_parameters|get_parameters|get_parameter_types|list_parameters|set_parameters"
    r"|set_parameters_atomically|get_type_description|get_logger_levels|set_logger_levels)$"
)

# What perflab's own runtime registers, and what a plain function or method is called by its demangled name.
_OWN_SYMBOL = re.compile(r"perflab::\w+\([^,()]*, (?P<name>[^()]+)\)")
_PLAIN_SYMBOL = re.compile(r"(?:[\w:~]+ )?(?P<name>[A-Za-z_]\w*(?:::~?\w+)*)(?:\([^()]*\))?(?: const)?")

NO_SCHEDULER = "the trace has no scheduler events"
NO_PUBLISHER = "the initialisation of the publisher or of its node is not in the trace"
NO_SUBSCRIBER = "the initialisation of the subscription or of its node is not in the trace"
NO_PROCESS_NAME = "no event says the name of the process (context procname)"

# Executors of rclcpp that have no tracepoints.
SILENT_EXECUTORS = "EventsExecutor and StaticSingleThreadedExecutor"


def place() -> pl.Expr:
    """Whose an object is: its node, or its process."""
    process = pl.coalesce("process", pl.lit("process"))
    return pl.coalesce("node", pl.format("({} {})", process, pl.col("pid").cast(pl.String).fill_null("–")))


def is_internal(name: pl.Expr) -> pl.Expr:
    """Whether a topic or service of that name is ROS's own; false where it has none."""
    return (name.is_in(list(INTERNAL_TOPICS)) | name.str.contains(_INTERNAL_SERVICE)).fill_null(False)


def process_rows(trace: Source) -> list[dict[str, Any]]:
    """`process_row`, `host_row`, `host`, `process` (its name), `pid`, and when its events lie."""
    hosts = trace.rows("hosts")
    return [
        {
            "process_row": i,
            "host_row": row["host"],
            "host": None if row["host"] is None else hosts[row["host"]]["name"],
            "process": row["name"],
            **{name: row[name] for name in ("pid", "first_ns", "last_ns")},
        }
        for i, row in enumerate(trace.rows("processes"))
    ]


def processes(trace: Source) -> pl.DataFrame:
    """The same."""
    numbers, times = ("process_row", "host_row", "pid"), ("first_ns", "last_ns")
    types = dict.fromkeys(numbers, pl.Int32) | dict.fromkeys(times, pl.Int64)
    order = ("process_row", "host_row", "host", "process", "pid", *times)
    schema = {name: types.get(name, pl.String) for name in order}
    return pl.DataFrame(process_rows(trace), schema=schema, orient="row")


def objects(trace: Source, table: str) -> pl.DataFrame:
    """A table of publishers, subscriptions, services, clients, timers or callbacks: its columns with `row`, its number.

    `node`, `process`, `pid` and `host` are names instead of rows, `handle` is text; `node_row`, `process_row` and
    `host_row` are the rows, `first_ns` and `last_ns` those of the process's events.
    """
    frame = _rows(trace.table(table), "row").rename({"process": "process_row", "node": "node_row"}, strict=False)
    frame = frame.with_columns(hexadecimal(frame["handle"]))
    if "node_row" in frame.columns:
        frame = frame.with_columns(node=trace.table("nodes")["name"].gather(frame["node_row"]))
    return frame.join(processes(trace), on="process_row", how="left", maintain_order="left")


def callbacks(trace: Source) -> pl.DataFrame:
    """`objects` of the callbacks with `period_ns` of timers and `label`, a short name that no other callback has.

    "/talker timer 100 ms", "/listener /chatter"; what is not known of a callback is replaced by its handle and process.
    The same name in several processes gets their numbers: "/listener /chatter (4711)", with several hosts theirs, too;
    several in one process get their symbols: "/talker timer 100 ms on_tick".
    """
    frame = objects(trace, "callbacks")
    timer = frame.select(pl.when(pl.col("kind") == "timer").then("owner")).to_series()
    frame = frame.with_columns(trace.table("timers")["period_ns"].gather(timer))
    name = pl.coalesce(written(frame["period_ns"]), "name")
    kind = (
        pl.when(pl.col("kind").is_in(["subscription", "unknown"])).then(pl.lit("")).otherwise(pl.format("{} ", "kind"))
    )
    nameless = pl.format("{}{} {}", kind, "handle", place())
    named = pl.format("{} {}{}", place(), kind, pl.coalesce(name, "handle"))
    label = pl.when(pl.col("node").is_null() & name.is_null()).then(nameless).otherwise(named)
    symbols = pl.Series("__symbol", [short_symbol(symbol) for symbol in frame["symbol"]], dtype=pl.String)
    pid = pl.col("pid").cast(pl.String).fill_null("–")
    where = pid if trace.table("hosts").height < 2 else pl.format("{}, {}", pid, pl.col("host").fill_null("–"))
    symbols_differ = (pl.col("__symbol").is_unique() & pl.col("__symbol").is_not_null()).all()
    return told_apart(
        frame.with_columns(symbols, label=label),
        "label",
        # The same program several times: which process it is tells more than a handle.
        ((pl.col("process_row").n_unique() > 1).over("label"), pl.format("{} ({})", "label", where)),
        # Timers of one node and period: what the program calls them.
        (symbols_differ.over("label"), pl.format("{} {}", "label", "__symbol")),
        (True, pl.format("{} {}", "label", "handle")),
        (True, pl.format("{} #{}", "label", "row")),
    ).drop("__symbol")


def told_apart(
    frame: pl.DataFrame, label: str, *steps: tuple[pl.Expr | bool, pl.Expr], among: Sequence[str] = ()
) -> pl.DataFrame:
    """The frame with labels of which none is there twice (with the same values of the columns `among`), as far as it
    goes: step by step, where some are and the condition holds, they are replaced."""
    for condition, instead in steps:
        several = pl.struct(label, *among).is_duplicated() & condition
        frame = frame.with_columns(pl.when(several).then(instead).otherwise(label).alias(label))
    return frame


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
    """Handles as text."""
    return pl.Series(handles.name, [handle_text(value) for value in handles], dtype=pl.String)


def handle_text(handle: int | None) -> str | None:
    """ "0x55d0c8a1b2f0"."""
    return None if handle is None else f"{handle:#x}"


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


def unknown(
    what: str, name: str, known: Sequence[str], where: str = "is in the trace", none: str = "the trace names none"
) -> str:
    """ "no node '/sinc' is in the trace; did you mean /sink?"; `none`: where nothing is known."""
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    if close:
        hint = f"did you mean {' or '.join(close)}?"
    elif known:
        more = f" and {len(known) - 8} more" if len(known) > 8 else ""
        hint = f"there are {', '.join(known[:8])}{more}"
    else:
        hint = none
    return f"no {what} {name!r} {where}; {hint}"


def written(periods_ns: pl.Series) -> pl.Series:
    """Periods of timers as text; null as they are."""
    return pl.Series(periods_ns.name, [None if ns is None else period(ns) for ns in periods_ns], dtype=pl.String)


def period(ns: int) -> str:
    """As it was probably written: "5 ms", "33.3 ms"."""
    value, unit = format_time(ns).split(" ")
    return f"{value.rstrip('0').rstrip('.') if '.' in value else value} {unit}"


def _rows(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    return frame.with_row_index(name).with_columns(pl.col(name).cast(pl.Int32))
