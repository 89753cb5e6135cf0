"""Callbacks: how long they ran, how regularly they came, and what kept them from running.

Definitions (docs/tracing.md, Callbacks): the duration is from callback_start to callback_end, wall time; the
inter-arrival time from one start to the next of the same callback, on whatever thread; its jitter is the standard
deviation of that.
"""

from __future__ import annotations

import polars as pl

from perflab.trace import names
from perflab.trace.answer import Answer, Section
from perflab.trace.columns import Table, because, count, distribution, identity, percent, symbol, text, time
from perflab.trace.names import HANDLE, HOST, PID, PROCESS
from perflab.trace.quality import Quality, and_reads, migration_reason, quality_of, scheduler_reason, wake_up_reason
from perflab.trace.quantiles import MAX_AT, REASON_SD, TIMED, columns_of, describe, quantile
from perflab.trace.scope import EVERYTHING, Scope, since_begin
from perflab.trace.source import Source
from perflab.trace.threads import SPLIT_STATES, holders, part_of, split_of
from perflab.units import plural

_INTER_ARRIVAL = ("min", "p50", "p90", "p99", "p99_9", "max", MAX_AT, "mean")
_SHORT = ("p50", "p99", "max")

_UNKNOWN_OWNER = "the initialisation of the callback is not in the trace"
_UNKNOWN_SPLIT = "no instance of the callback has known thread states throughout"
_UNKNOWN_HOLDER = "the CPU was idle, or the thread that had it is unknown"
_NO_TRACING = "threads of programs without tracing, and of the kernel, have no known process"

_IDENTITY = (
    text("callback", "a short name that no other callback has"),
    text("node", "the node that it belongs to", _UNKNOWN_OWNER),
    text("kind", "subscription, timer, service, client, waitable or span"),
    text("name", "topic, service, waitable, span, or nothing", _UNKNOWN_OWNER),
    symbol("symbol", "the function", "rclcpp_callback_register of the callback is not in the trace"),
    PROCESS,
    PID,
    HOST,
    HANDLE,
)

CALLBACKS = Table(
    "callbacks",
    "Callbacks",
    (
        *_IDENTITY,
        count("n", "instances that were seen to start"),
        count("unended", "of these, those that were not seen to end"),
        count("duration_left_out", "of these, those that ended, but within which events of user space are missing"),
        *distribution("duration", "callback_start to callback_end, wall time", TIMED),
        *distribution(
            "inter_arrival", "from one start to the next of the same callback, on whatever thread", _INTER_ARRIVAL
        ),
        time("jitter", "standard deviation of the inter-arrival times", kind="number"),
        time("period", "of timers: what was asked for", "only timers have a period"),
        time(
            "p99",
            "of timers: p99 of |inter-arrival - period|",
            "only timers have a period, and a p99 needs 100 inter-arrival times",
            of="period_error",
        ),
        percent("utilization", "sum of the durations / time from the first to the last event of the process"),
        count("threads", "threads that it ran on"),
        count("nested", "instances that began within another one on the same thread"),
        count("intra_process", "instances that began with a message of a ring buffer"),
        count("inter_arrival_left_out", "inter-arrival times left out, for events are missing there"),
    ),
    shown=(
        "callback", "n", "duration_min_ns", "duration_p50_ns", "duration_p99_ns", "duration_max_ns",
        "duration_max_at_ns", "duration_mean_ns", "inter_arrival_p50_ns", "inter_arrival_p99_ns",
        "inter_arrival_max_ns", "jitter_ns", "utilization_percent", "threads", "symbol",
    ),
    spare=(
        "symbol", "threads", "duration_mean_ns", "duration_min_ns", "inter_arrival_p99_ns", "inter_arrival_max_ns",
        "inter_arrival_p50_ns", "utilization_percent", "jitter_ns", "duration_max_at_ns",
    ),
)  # fmt: skip

_STATE_WORDS = {
    "on_cpu": "ran",
    "preempted": "could have run on, but another thread had the CPU",
    "blocked": "slept",
    "stopped": "was stopped by a signal or a debugger",
    "wake_up": "was woken and did not run yet",
}
SPLIT = Table(
    "split",
    "Where the time of callbacks went",
    (
        *_IDENTITY,
        count("n", "instances that ended"),
        count("n_known", "of these, those whose thread's states are known throughout"),
        *because(
            _UNKNOWN_SPLIT,
            percent("coverage", "share of instances whose thread's states are known throughout"),
            time("known", "sum of their durations"),
            *(time(f"{state}_total", f"time in which the thread {words}") for state, words in _STATE_WORDS.items()),
            *(percent(state, f"share in which the thread {words}") for state, words in _STATE_WORDS.items()),
        ),
        *distribution("on_cpu", "time on a CPU of an instance", _SHORT, _UNKNOWN_SPLIT),
        *distribution("waiting", "preempted, or woken and not yet running, of an instance", _SHORT, _UNKNOWN_SPLIT),
        count("migrations", "times that a thread was moved to another CPU", _UNKNOWN_SPLIT),
    ),
    shown=(
        "callback", "n", "coverage_percent", "known_ns", "on_cpu_percent", "preempted_percent", "blocked_percent",
        "stopped_percent", "wake_up_percent", "on_cpu_p50_ns", "on_cpu_p99_ns", "on_cpu_max_ns", "waiting_p99_ns",
        "waiting_max_ns", "migrations",
    ),
    spare=("on_cpu_p50_ns", "waiting_p99_ns", "on_cpu_max_ns", "known_ns", "migrations", "on_cpu_p99_ns"),
)  # fmt: skip

PREEMPTED_BY = Table(
    "preempted_by",
    "Who ran instead of callbacks",
    (
        *_IDENTITY,
        text("state", "what the callback's thread was: preempted, or woken and not yet running"),
        text("by", "the thread that had the CPU"),
        identity("by_tid", "its number", _UNKNOWN_HOLDER),
        text("by_process", "its process", _NO_TRACING),
        identity("by_pid", "number of that", _NO_TRACING),
        count("instances", "instances of the callback that it kept waiting"),
        time("held", "how long it had the CPU meanwhile"),
        time("longest", "the longest of these times in one instance"),
        percent("share", "share of all such waiting of the callback", "the callback's waiting is not known as a whole"),
    ),
    shown=("callback", "state", "by", "by_tid", "by_process", "instances", "held_ns", "longest_ns", "share_percent"),
    spare=("by_process", "longest_ns", "instances"),
)

TABLES = (CALLBACKS, SPLIT, PREEMPTED_BY)
READS = and_reads({"callback_instances": ("thread", "start_ns", "end_ns", "intra_process", "parent")})


def callbacks(trace: Source, scope: Scope = EVERYTHING) -> Answer:
    """Durations, inter-arrival times and utilization of every callback; where its time went, and to whom."""
    quality = quality_of(trace)
    known = names.callbacks(trace).rename({"row": "callback_row", "label": "callback"})
    instances = scope.within(instances_of(trace, quality), "start_ns")
    if (chosen := scope.callbacks(trace)) is not None:
        known, instances = (frame.filter(pl.col("callback_row").is_in(chosen)) for frame in (known, instances))
    instances = split_of(trace, instances, "thread")
    sections = (
        _durations(trace, instances, known, quality, scope),
        _where_time_went(trace, instances, known),
        _preempted_by(trace, instances, known),
    )
    figures = ("callbacks", "callback owners", "thread states", "wake-ups", "migrations")
    return quality.answer("callbacks", sections, *figures, scope=scope)


def instances_of(trace: Source, quality: Quality) -> pl.DataFrame:
    """Every instance with its duration and the time since the previous start of the same callback.

    That time is null across a gap of the trace: an instance in between may have been lost. So are the end and the
    duration of an instance into which a gap reaches (`duration_left_out`): the end may be that of a later one.
    """
    frame = trace.table("callback_instances").rename({"callback": "callback_row"})
    if not frame["start_ns"].is_sorted():  # they are, but where the clock of a stream went back
        frame = frame.sort("start_ns", maintain_order=True)
    frame = frame.with_columns(
        duration_ns=pl.col("end_ns") - pl.col("start_ns"),
        previous_ns=pl.col("start_ns").shift(1).over("callback_row"),
    )
    lost = quality.touched(frame["previous_ns"], frame["start_ns"]).fill_null(False)
    since = pl.col("start_ns") - pl.col("previous_ns")
    unsure = quality.touched(frame["start_ns"], frame["end_ns"], anywhere=False).fill_null(False)
    return frame.with_columns(
        pl.when(~unsure).then("end_ns").alias("end_ns"),
        pl.when(~unsure).then("duration_ns").alias("duration_ns"),
        unended=pl.col("end_ns").is_null(),
        duration_left_out=unsure,
        inter_arrival_ns=pl.when(~lost).then(since),
        across_gap=lost,
    )


def _why(frame: pl.DataFrame, null: str, left_out: str, texts: tuple[str, str]) -> str:
    """Why values of a column are null; `texts`: the reason for rows without losses, and for those with some."""
    lost = frame.filter(pl.col(null).is_null())[left_out] > 0
    said = [text for text, applies in zip(texts, ((~lost).any(), lost.any()), strict=True) if applies]
    return "; or ".join(said or texts[:1])


def _named(table: Table, frame: pl.DataFrame, known: pl.DataFrame, *longest: str, **more: pl.Expr) -> pl.DataFrame:
    """The columns of the table, with which callbacks these are, and more; the longest first."""
    return (
        frame.join(known, on="callback_row", how="left")
        .with_columns(pl.col("callback").fill_null("(unknown)"), **more)
        .sort(*longest, descending=[True] + [False] * (len(longest) - 1))
        .select(table.names)
    )


def _durations(trace: Source, instances: pl.DataFrame, known: pl.DataFrame, quality: Quality, scope: Scope) -> Section:
    every = names.callbacks(trace)
    periods = every["period_ns"].gather(instances["callback_row"])
    figures = {"duration": pl.col("duration_ns"), "inter_arrival": pl.col("inter_arrival_ns")}
    others = [
        pl.len().alias("n"),
        pl.col("unended", "duration_left_out").sum(),
        pl.col("duration_ns").sum().alias("total_ns"),
        pl.col("thread").n_unique().alias("threads"),
        pl.col("parent").count().alias("nested"),
        pl.col("intra_process").sum(),
        pl.col("across_gap").sum().alias("inter_arrival_left_out"),
        quantile((pl.col("inter_arrival_ns") - pl.col("period_ns")).abs(), 990).alias("period_error_p99_ns"),
    ]
    at = {"duration": since_begin(trace, "start_ns"), "inter_arrival": since_begin(trace, "start_ns")}
    frame = describe(instances.with_columns(periods), ["callback_row"], figures, others, at=at)
    begin, end = scope.begin_ns, scope.end_ns
    span = pl.min_horizontal("last_ns", pl.lit(end, pl.Int64)) - pl.max_horizontal("first_ns", pl.lit(begin, pl.Int64))
    used = pl.when((span > 0) & (pl.col("duration_n") > 0)).then(100.0 * pl.col("total_ns") / span)
    frame = frame.rename({"inter_arrival_sd_ns": "jitter_ns"})
    frame = _named(CALLBACKS, frame, known, "total_ns", "callback", utilization_percent=used)
    no_end = _why(
        frame, "duration_max_ns", "duration_left_out",
        ("no instance was seen to end", "events are missing within all instances that ended"),
    )  # fmt: skip
    no_second = _why(
        frame, "inter_arrival_max_ns", "inter_arrival_left_out",
        ("there is one start only", "events are missing between all starts"),
    )  # fmt: skip
    no_jitter = _why(
        frame, "jitter_ns", "inter_arrival_left_out",
        ("a standard deviation needs 2 inter-arrival times, 3 starts",
         "events are missing between all starts but two"),
    )  # fmt: skip
    why = dict.fromkeys(columns_of("duration", ("min", "max", MAX_AT, "mean")), no_end)
    why |= dict.fromkeys(columns_of("inter_arrival", ("min", "max", MAX_AT, "mean")), no_second)
    why |= {"process": names.NO_PROCESS_NAME, "duration_sd_ns": f"{REASON_SD}; or {no_end}"}
    why |= {"jitter_ns": no_jitter, "utilization_percent": no_end}
    return Section(CALLBACKS, frame, _duration_notes(frame, known.height, quality), why)


_COUNTED = (  # columns of CALLBACKS of which a note says how many there are
    ("unended", "callback", "started and did not end: in n, in no duration and no utilization"),
    ("nested", "callback", "ran within another one: the durations of both contain that time"),
    (
        "duration_left_out", "duration",
        "left out: events are missing there, and with them perhaps the end; in n, in no utilization",
    ),
    (
        "inter_arrival_left_out", "inter-arrival time",
        "left out: events are missing there, and with them perhaps a start in between",
    ),
)  # fmt: skip


def _duration_notes(frame: pl.DataFrame, callbacks_known: int, quality: Quality) -> tuple[str, ...]:
    notes = [
        "duration: callback_start to callback_end, wall time; inter-arrival: start to start; jitter: its standard"
        " deviation; utilization: share of one CPU's time from the first to the last event of the process; max at: when"
        " the longest began, from the beginning of the trace"
    ]
    if quality.has_losses and frame.height:
        notes.append("events of user space were lost: n and utilization are lower bounds")
    if quality.gaps_anywhere and frame.height:
        notes.append(
            "for some of them it is unknown when: an end may be paired with the wrong start, so that single "
            "durations may be wrong"
        )
    if never := callbacks_known - frame["handle"].count():
        notes.append(f"{plural(never, 'callback')} never ran")
    notes += [f"{plural(n, what)} {text}" for column, what, text in _COUNTED if (n := int(frame[column].sum()))]
    return tuple(notes)


def _where_time_went(trace: Source, instances: pl.DataFrame, known: pl.DataFrame) -> Section:
    facts = trace.facts
    no_scheduler, no_wake_ups, no_migrations = (
        reason(facts) for reason in (scheduler_reason, wake_up_reason, migration_reason)
    )
    is_known = pl.col("on_cpu_ns").is_not_null()
    if no_scheduler is not None:
        instances = instances.clear()
    frame = describe(
        instances.filter(pl.col("duration_ns").is_not_null()),
        ["callback_row"],
        {"on_cpu": pl.col("on_cpu_ns"), "waiting": pl.col("preempted_ns") + pl.col("wake_up_ns")},
        [
            pl.len().alias("n"),
            is_known.sum().alias("n_known"),
            pl.col("duration_ns").filter(is_known).sum().alias("known_ns"),
            *(
                pl.when(is_known.any()).then(pl.col(f"{state}_ns").sum()).alias(f"{state}_total_ns")
                for state in SPLIT_STATES
            ),
            pl.when(is_known.any()).then(pl.col("migrations").cast(pl.Int64).sum()).alias("migrations"),
        ],
        statistics=_SHORT,
    )
    shares = {f"{state}_percent": part_of(pl.col(f"{state}_total_ns"), pl.col("known_ns")) for state in SPLIT_STATES}
    frame = frame.with_columns(**shares, coverage_percent=100.0 * pl.col("n_known") / pl.col("n"))
    unseen = {
        **dict.fromkeys(("wake_up_total_ns", "wake_up_percent"), no_wake_ups),
        "migrations": no_migrations,
    }
    why = {column: reason for column, reason in unseen.items() if reason is not None}
    frame = frame.with_columns(pl.lit(None).cast(frame.schema[column]).alias(column) for column in why)
    frame = _named(SPLIT, frame, known, "known_ns", "callback")
    notes = no_scheduler or (
        "of instances whose thread's states are known throughout (coverage); waiting: preempted, or woken and not yet"
        " running"
    )
    hidden = () if frame["stopped_total_ns"].sum() else ("stopped_percent",)
    return Section(SPLIT, frame, (notes,), why, hidden)


def _preempted_by(trace: Source, instances: pl.DataFrame, known: pl.DataFrame) -> Section:
    """Who ran while a callback's thread could have run: one row per callback, state and thread that had the CPU."""
    schema = {
        "interval": pl.UInt32, "state": pl.String, "holder": pl.Int32, "held_ns": pl.Int64,
    }  # fmt: skip
    reason = scheduler_reason(trace.facts)
    if reason is not None or instances.is_empty():
        instances, holds = instances.clear(), pl.DataFrame(schema=schema)
    else:
        holds = trace.holds(instances["thread"], instances["start_ns"], instances["end_ns"])
        holds = holds.select("interval", pl.col("state").cast(pl.String), "holder", "held_ns")
    waited = (
        instances.lazy()
        .group_by("callback_row")
        .agg(waited_ns=pl.col("preempted_ns").sum() + pl.col("wake_up_ns").sum())
        .collect()
    )
    of = instances.with_row_index("interval").select("interval", "callback_row")
    frame = (
        holds.lazy()
        .join(of.lazy(), on="interval", how="left")
        .group_by("callback_row", "interval", "state", "holder")
        .agg(pl.col("held_ns").sum())
        .group_by("callback_row", "state", "holder")
        .agg(instances=pl.len(), held_ns=pl.col("held_ns").sum(), longest_ns=pl.col("held_ns").max())
        .collect()
        .join(holders(trace), on="holder", how="left")
        .join(waited, on="callback_row", how="left", nulls_equal=True)
        .with_columns(
            by=pl.when(pl.col("holder").is_null())
            .then(pl.lit("idle, or not known"))
            .otherwise(pl.coalesce("by_thread", pl.format("tid {}", "by_tid"))),
            share_percent=part_of(pl.col("held_ns"), pl.col("waited_ns")),
        )
    )
    frame = _named(PREEMPTED_BY, frame, known, "held_ns", "callback", "by")
    notes = reason or (
        "who had the CPU while the callback's thread was preempted, or woken and not yet running; share: of all such"
        " waiting of the callback; longest: in one instance"
    )
    return Section(PREEMPTED_BY, frame, (notes,))
