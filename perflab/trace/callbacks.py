"""Callbacks: how long they ran, how regularly they came, and what kept them from running.

Definitions (docs/tracing.md, Callbacks): the duration is from callback_start to callback_end, wall time; the
inter-arrival time from one start to the next of the same callback, on whatever thread; its jitter is the standard
deviation of that.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import polars as pl

from perflab.trace import names
from perflab.trace.answer import Answer, Section
from perflab.trace.names import plural
from perflab.trace.quality import Quality, migration_reason, quality_of, scheduler_reason, wake_up_reason
from perflab.trace.quantiles import MAX_AT, REASON_QUANTILE, REASON_SD, TIMED, columns_of, describe, quantile
from perflab.trace.scope import EVERYTHING, Scope, since_begin
from perflab.trace.threads import SPLIT_STATES, split_of

if TYPE_CHECKING:
    from perflab.trace.source import Source

_IDENTITY = ("callback", "node", "kind", "name", "symbol", "process", "pid", "host", "handle")
_INTER_ARRIVAL = ("min", "p50", "p90", "p99", "p99_9", "max", MAX_AT, "mean")

_UNKNOWN_OWNER = "the initialisation of the callback is not in the trace"


def callbacks(trace: Source, scope: Scope = EVERYTHING) -> Answer:
    """Durations, inter-arrival times and utilization of every callback; where its time went, and to whom."""
    quality = quality_of(trace)
    known = names.callbacks(trace).rename({"row": "callback_row", "label": "callback"})
    instances = scope.within(instances_of(trace, quality), "start_ns")
    if (chosen := scope.callbacks(trace)) is not None:
        known, instances = (frame.filter(pl.col("callback_row").is_in(chosen)) for frame in (known, instances))
    split = _split(trace, instances)
    sections = (
        _durations(trace, instances, known, quality, scope),
        _where_time_went(trace, split, known),
        _preempted_by(trace, instances, split, known),
    )
    figures = ("callbacks", "callback owners", "thread states", "wake-ups", "migrations")
    return quality.answer("callbacks", sections, *figures, scope=scope)


def instances_of(trace: Source, quality: Quality) -> pl.DataFrame:
    """Every instance with its duration and the time since the previous start of the same callback.

    That time is null across a gap of the trace: an instance in between may have been lost. So are the end and the
    duration of an instance into which a gap reaches (`duration_left_out`): the end may be that of a later one.
    """
    frame = (
        trace.table("callback_instances")
        .rename({"callback": "callback_row"})
        .sort("start_ns", maintain_order=True)
        .with_columns(
            duration_ns=pl.col("end_ns") - pl.col("start_ns"),
            previous_ns=pl.col("start_ns").shift(1).over("callback_row"),
        )
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


def _why(parts: Iterable[tuple[str, bool]]) -> str:
    """The reasons that apply, as one; the first where none does."""
    parts = list(parts)
    return "; or ".join([text for text, applies in parts if applies] or [parts[0][0]])


def _durations(trace: Source, instances: pl.DataFrame, known: pl.DataFrame, quality: Quality, scope: Scope) -> Section:
    periods = known.select("callback_row", "period_ns")
    figures = {"duration": pl.col("duration_ns"), "inter_arrival": pl.col("inter_arrival_ns")}
    others = [
        pl.len().alias("n"),
        pl.col("unended", "duration_left_out").sum(),
        pl.col("duration_ns").sum().alias("total_ns"),
        pl.col("thread").n_unique().alias("threads"),
        pl.col("parent").count().alias("nested"),
        pl.col("intra_process").sum().alias("intra_process"),
        pl.col("across_gap").sum().alias("across_gaps"),
        quantile((pl.col("inter_arrival_ns") - pl.col("period_ns")).abs(), 990).alias("period_error_p99_ns"),
    ]
    at = {"duration": since_begin(trace, "start_ns"), "inter_arrival": since_begin(trace, "start_ns")}
    frame = describe(instances.join(periods, on="callback_row", how="left"), ["callback_row"], figures, others, at=at)
    begin, end = scope.begin_ns, scope.end_ns
    span = pl.min_horizontal("last_ns", pl.lit(end, pl.Int64)) - pl.max_horizontal("first_ns", pl.lit(begin, pl.Int64))
    frame = (
        frame.join(known, on="callback_row", how="left")
        .with_columns(
            pl.col("callback").fill_null("(unknown)"),
            utilization_percent=pl.when((span > 0) & (pl.col("duration_n") > 0)).then(
                100.0 * pl.col("total_ns") / span
            ),
        )
        .rename({"inter_arrival_sd_ns": "jitter_ns"})
        .sort("total_ns", "callback", descending=[True, False])
        .select(
            *_IDENTITY, "n", "unended", "duration_left_out", *columns_of("duration", TIMED),
            *columns_of("inter_arrival", _INTER_ARRIVAL), "jitter_ns", "period_ns", "period_error_p99_ns",
            "utilization_percent", "threads", "nested", "intra_process",
            pl.col("across_gaps").alias("inter_arrival_left_out"),
        )
    )  # fmt: skip
    reasons = {c: REASON_QUANTILE for c in frame.columns if "_p" in c and c.endswith("_ns") and "period" not in c}
    none = pl.col("duration_max_ns").is_null()
    no_end = _why(
        (
            ("no instance was seen to end", _any(frame, none, pl.col("duration_left_out") == 0)),
            ("events are missing within all instances that ended", _any(frame, none, pl.col("duration_left_out") > 0)),
        )
    )
    left_out = pl.col("inter_arrival_left_out") > 0
    across = "events are missing between all starts"
    no_second = _why(
        (
            ("there is one start only", _any(frame, pl.col("inter_arrival_max_ns").is_null(), ~left_out)),
            (across, _any(frame, pl.col("inter_arrival_max_ns").is_null(), left_out)),
        )
    )
    no_jitter = _why(
        (
            (
                "a standard deviation needs 2 inter-arrival times, 3 starts",
                _any(frame, pl.col("jitter_ns").is_null(), ~left_out),
            ),
            ("events are missing between all starts but two", _any(frame, pl.col("jitter_ns").is_null(), left_out)),
        )
    )
    reasons |= {"process": names.NO_PROCESS_NAME, "duration_sd_ns": f"{REASON_SD}; or {no_end}", "jitter_ns": no_jitter}
    reasons |= dict.fromkeys(columns_of("duration", ("min", "max", MAX_AT, "mean")), no_end)
    reasons |= dict.fromkeys(columns_of("inter_arrival", ("min", "max", MAX_AT, "mean")), no_second)
    reasons |= {
        "node": _UNKNOWN_OWNER,
        "name": _UNKNOWN_OWNER,
        "symbol": "rclcpp_callback_register of the callback is not in the trace",
        "period_ns": "only timers have a period",
        "period_error_p99_ns": "only timers have a period, and a p99 needs 100 inter-arrival times",
        "utilization_percent": no_end,
    }
    return Section(
        "callbacks",
        "Callbacks",
        frame,
        notes=_duration_notes(frame, known.height, quality),
        reasons=reasons,
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


def _any(frame: pl.DataFrame, *conditions: pl.Expr) -> bool:
    """Whether there is a row of which all of that is true."""
    return not frame.filter(*conditions).is_empty()


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
            "nobody knows when some of them were: an end may belong to another start than it stands with, so that"
            " single durations may be wrong"
        )
    if never := callbacks_known - frame["handle"].count():
        notes.append(f"{plural(never, 'callback')} never ran")
    if unended := int(frame["unended"].sum()):
        notes.append(f"{plural(unended, 'callback')} started and did not end: in n, in no duration and no utilization")
    if nested := int(frame["nested"].sum()):
        notes.append(f"{plural(nested, 'callback')} ran within another one: the durations of both contain that time")
    if left_out := int(frame["duration_left_out"].sum()):
        text = plural(left_out, "duration")
        notes.append(
            f"{text} left out: events are missing there, and with them perhaps the end; in n, in no utilization"
        )
    if left_out := int(frame["inter_arrival_left_out"].sum()):
        text = plural(left_out, "inter-arrival time")
        notes.append(f"{text} left out: events are missing there, and with them perhaps a start in between")
    return tuple(notes)


def _split(trace: Source, instances: pl.DataFrame) -> pl.DataFrame:
    """Of each instance how its time was spent; null where that is not known. The same rows."""
    if scheduler_reason(trace.facts) is not None or instances.is_empty():
        columns = [pl.lit(None, pl.Int64).alias(f"{state}_ns") for state in SPLIT_STATES]
        return instances.select("callback_row", "duration_ns", *columns, pl.lit(None, pl.UInt32).alias("migrations"))
    spent = split_of(trace, instances["thread"], instances["start_ns"], instances["end_ns"])
    return pl.concat([instances.select("callback_row", "duration_ns"), spent], how="horizontal")


def _where_time_went(trace: Source, split: pl.DataFrame, known: pl.DataFrame) -> Section:
    no_scheduler, no_wake_ups, no_migrations = (
        scheduler_reason(trace.facts), wake_up_reason(trace.facts), migration_reason(trace.facts),
    )  # fmt: skip
    is_known = pl.col("on_cpu_ns").is_not_null()
    ended = split.filter(pl.col("duration_ns").is_not_null())
    frame = describe(
        ended,
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
        statistics=("p50", "p99", "max"),
    )
    shares = [
        pl.when(pl.col("known_ns") > 0).then(100.0 * pl.col(f"{state}_total_ns") / pl.col("known_ns"))
        .alias(f"{state}_percent")
        for state in SPLIT_STATES
    ]  # fmt: skip
    frame = frame.with_columns(*shares, coverage_percent=100.0 * pl.col("n_known") / pl.col("n"))
    if no_wake_ups is not None:
        frame = frame.with_columns(
            pl.lit(None, pl.Int64).alias("wake_up_total_ns"), pl.lit(None, pl.Float64).alias("wake_up_percent")
        )
    if no_migrations is not None:
        frame = frame.with_columns(pl.lit(None, pl.Int64).alias("migrations"))
    frame = (
        frame.join(known, on="callback_row", how="left")
        .with_columns(pl.col("callback").fill_null("(unknown)"))
        .sort("known_ns", "callback", descending=[True, False])
        .select(
            *_IDENTITY, "n", "n_known", "coverage_percent", "known_ns",
            *(f"{state}_total_ns" for state in SPLIT_STATES), *(f"{state}_percent" for state in SPLIT_STATES),
            *columns_of("on_cpu", ("p50", "p99", "max")), *columns_of("waiting", ("p50", "p99", "max")), "migrations",
        )
    )  # fmt: skip
    if no_scheduler is not None:
        frame = frame.clear()
    unknown = "no instance of the callback has known thread states throughout"
    reasons = {c: unknown for c in frame.columns if c.endswith(("_total_ns", "_percent", "_max_ns"))}
    reasons |= {c: f"{REASON_QUANTILE}; or {unknown}" for c in frame.columns if c.endswith(("_p50_ns", "_p99_ns"))}
    reasons |= {"wake_up_total_ns": no_wake_ups or unknown, "wake_up_percent": no_wake_ups or unknown}
    reasons["migrations"] = no_migrations or unknown
    reasons |= {
        "node": _UNKNOWN_OWNER,
        "name": _UNKNOWN_OWNER,
        "symbol": "rclcpp_callback_register of the callback is not in the trace",
    }
    notes = (no_scheduler,) if no_scheduler else (
        "of instances whose thread's states are known throughout (coverage); waiting: preempted, or woken and not yet"
        " running",
    )  # fmt: skip
    return Section(
        "split",
        "Where the time of callbacks went",
        frame,
        notes=notes,
        reasons=reasons,
        shown=(
            "callback", "n", "coverage_percent", "known_ns", "on_cpu_percent", "preempted_percent", "blocked_percent",
            *(("stopped_percent",) if frame["stopped_total_ns"].sum() else ()), "wake_up_percent",
            "on_cpu_p50_ns", "on_cpu_p99_ns", "on_cpu_max_ns", "waiting_p99_ns", "waiting_max_ns", "migrations",
        ),
        spare=("on_cpu_p50_ns", "waiting_p99_ns", "on_cpu_max_ns", "known_ns", "migrations", "on_cpu_p99_ns"),
    )  # fmt: skip


def _preempted_by(trace: Source, instances: pl.DataFrame, split: pl.DataFrame, known: pl.DataFrame) -> Section:
    """Who ran while a callback's thread could have run: one row per callback, state and thread that had the CPU."""
    schema = {
        "interval": pl.UInt32, "state": pl.String, "holder": pl.Int32, "held_ns": pl.Int64,
    }  # fmt: skip
    reason = scheduler_reason(trace.facts)
    if reason is not None or instances.is_empty():
        holds = pl.DataFrame(schema=schema)
    else:
        holds = trace.holds(instances["thread"], instances["start_ns"], instances["end_ns"])
        holds = holds.select("interval", pl.col("state").cast(pl.String), "holder", "held_ns")
    threads = names.threads(trace).select(
        pl.col("thread_row").alias("holder"),
        pl.col("thread").alias("by_thread"),
        pl.col("tid").alias("by_tid"),
        pl.col("process").alias("by_process"),
        pl.col("pid").alias("by_pid"),
    )
    waited = (
        split.lazy()
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
        .join(threads, on="holder", how="left")
        .join(waited, on="callback_row", how="left", nulls_equal=True)
        .join(known, on="callback_row", how="left")
        .with_columns(
            pl.col("callback").fill_null("(unknown)"),
            by=pl.when(pl.col("holder").is_null())
            .then(pl.lit("idle, or not known"))
            .otherwise(pl.coalesce("by_thread", pl.format("tid {}", "by_tid"))),
            share_percent=pl.when(pl.col("waited_ns") > 0).then(100.0 * pl.col("held_ns") / pl.col("waited_ns")),
        )
        .sort("held_ns", "callback", "by", descending=[True, False, False])
        .select(
            *_IDENTITY, "state", "by", "by_tid", "by_process", "by_pid", "instances", "held_ns", "longest_ns",
            "share_percent",
        )
    )  # fmt: skip
    notes = (reason,) if reason else (
        "who had the CPU while the callback's thread was preempted, or woken and not yet running; share: of all such"
        " waiting of the callback; longest: in one instance",
    )  # fmt: skip
    return Section(
        "preempted_by",
        "Who ran instead of callbacks",
        frame,
        notes=notes,
        reasons={
            "by_tid": "the CPU was idle, or nobody knows who had it",
            "by_process": "threads of programs without tracing, and of the kernel, have no known process",
            "by_pid": "threads of programs without tracing, and of the kernel, have no known process",
            "share_percent": "the callback's waiting is not known as a whole",
        },
        shown=(
            "callback", "state", "by", "by_tid", "by_process", "instances", "held_ns", "longest_ns", "share_percent",
        ),
        spare=("by_process", "longest_ns", "instances"),
    )  # fmt: skip
