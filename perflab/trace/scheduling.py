"""What the scheduler did with threads: CPU time, waiting, wake-ups, preemptions, and how regularly threads wake up.

Definitions (docs/tracing.md); all need the events sched_switch and, but for CPU time, sched_wakeup:
  covered time      from the first to the last scheduler event of the trace
  CPU               time on a CPU divided by the covered time: of one CPU, so at most 100 % for a thread
  wake-up latency   from sched_wakeup to the sched_switch to the thread; not of wake-ups of threads that ran already,
                    nor of those that had not run when the trace ended. `from_waking` counts from sched_waking, where it
                    is recorded
  preemption        the thread left its CPU although it could have gone on; `by` is who ran there next
  migration         a thread runs on another CPU than the last time it ran
  period            of a thread that sleeps: from one wake-up to the next. Every interval counts, however long, unless
                    scheduler events were lost within it. The jitter of a thread is the SD of its periods

A thread is listed as periodic from MIN_INTERVALS intervals on, and marked regular where the median deviation of its
intervals from their median is at most REGULAR_PERCENT of it: at least half of them are that close.
"""

from __future__ import annotations

import polars as pl

from perflab.kernel import cpu_list
from perflab.trace import names
from perflab.trace.answer import Answer, Section
from perflab.trace.columns import Table, because, count, distribution, flag, identity, percent, text, time
from perflab.trace.names import HOST, NO_SCHEDULER
from perflab.trace.quality import migration_reason, quality_of, wake_up_reason
from perflab.trace.quantiles import MAX_AT, REASON_QUANTILE, columns_of, describe, quantile
from perflab.trace.scope import EVERYTHING, Scope, since_begin
from perflab.trace.source import Source
from perflab.trace.threads import OF_ANY, ONLY_SCHEDULER, STATES, holders, in_words, part_of, section_of
from perflab.units import plural

MIN_INTERVALS = 20
REGULAR_PERCENT = 10.0
LATENCY = ("min", "p50", "p90", "p99", "p99_9", "max")
_NOBODY = "the CPU was idle, or the thread that ran there is unknown"
_NOT_COVERED = "the covered time is empty"

THREADS = Table(
    "threads",
    "Threads",
    (
        *OF_ANY,
        percent("cpu", "time on a CPU divided by the covered time", _NOT_COVERED),
        time("on_cpu", "time on a CPU"),
        count("switches", "times the thread was switched in"),
        count("preemptions", "times it left its CPU although it could have gone on"),
        count("migrations", "times it ran on another CPU than the time before"),
        time("preempted", "time in which it could have run on, but another thread had the CPU"),
        time("blocked", "time asleep"),
        time("stopped", "time stopped by a signal or a debugger"),
        time("wake_up", "time woken and not yet on a CPU"),
        count("wake_ups", "times that it was woken"),
        count("already_running", "of these, those that found it running"),
        text("cpus", "the CPUs that it ran on", "it did not run"),
        text("priorities", "the kernel's, as people set them", "its events have no priority"),
        percent("known", "share of the covered time in which its state is known", _NOT_COVERED),
    ),
    spare=("known_percent", "wake_ups", "migrations", "cpus", "priorities"),
)

_LATENCIES = (
    count("wake_up_n", "wake-ups that have a latency"),
    *because(REASON_QUANTILE, *distribution("wake_up", "sched_wakeup until it ran", LATENCY)),
    *distribution("wake_up", "sched_wakeup until it ran", (MAX_AT,), at="when it was woken"),
    count("from_waking_n", "wake-ups of which the waker's instant is known"),
    *because(REASON_QUANTILE, *distribution("from_waking", "sched_waking until it ran", LATENCY)),
)
WAKE_UP_LATENCY = Table(
    "wake_up_latency",
    "Wake-up latency of threads",
    (*OF_ANY, *_LATENCIES),
    spare=("from_waking_p90_ns", "from_waking_min_ns", "wake_up_p90_ns"),
)
BY_PRIORITY = Table(
    "wake_up_latency_by_priority",
    "Wake-up latency by priority",
    (
        text("priorities", "the priority, as people set it", "the events have no priority"),
        count("priority", "the kernel's number of it", "of all priorities"),
        count("threads", "threads of that priority"),
        *_LATENCIES,
    ),
    spare=("from_waking_p90_ns", "from_waking_min_ns", "wake_up_p90_ns"),
)

PREEMPTIONS = Table(
    "preemptions",
    "Who ran while threads waited for a CPU",
    (
        *OF_ANY,
        text("by_process", "process of the thread that ran", f"{ONLY_SCHEDULER}; or {_NOBODY}"),
        identity("by_pid", "its number", f"{ONLY_SCHEDULER}; or {_NOBODY}"),
        text("by_thread", "the thread that ran", _NOBODY),
        identity("by_tid", "its number", _NOBODY),
        count("preemptions", "times that the thread had to go for it"),
        time("while_preempted", "how long it ran while the thread was preempted"),
        time("while_woken", "how long it ran while the thread was woken and not yet on a CPU"),
        time("longest", "the longest stretch"),
        time("longest_at", "when that began, from the beginning of the trace"),
    ),
)

PERIODIC = Table(
    "periodic",
    "Threads that wake up again and again",
    (
        *OF_ANY,
        flag("regular", f"whether the median deviation is at most {REGULAR_PERCENT:g} % of the median"),
        count("n", "times from one wake-up from sleep to the next"),
        time("p50", "median of these", of="period"),
        time("sd", "standard deviation of these", of="jitter", kind="number"),
        time("p99", "distance from the median: p99", REASON_QUANTILE, of="off"),
        time("max", "distance from the median: the largest", of="off"),
        time("max_at", "when that ended, from the beginning of the trace", of="off"),
        time("min", "the shortest", of="period"),
        time("max", "the longest", of="period"),
        count("long_periods", "those longer than 1.5 times the median"),
        percent("median_deviation", "median of the distances, of the median"),
        count("intervals_across_losses", "those left out, for events are missing there"),
    ),
    spare=("period_min_ns", "period_max_ns"),
)

CPUS = Table(
    "cpus",
    "CPUs",
    (
        HOST,
        identity("cpu", "number of the CPU"),
        percent("busy", "share of the covered time in which a thread ran there"),
        percent(
            "idle",
            "the rest",
            "scheduler events of this CPU were lost: the rest of its time need not have been idle",
        ),
        count("threads", "threads that ran there"),
        count("switches", "times that one was switched in"),
        time("busy", "time in which a thread ran there"),
    ),
)

TABLES = (THREADS, WAKE_UP_LATENCY, BY_PRIORITY, PREEMPTIONS, PERIODIC, CPUS)


def scheduling(trace: Source, scope: Scope = EVERYTHING) -> Answer:
    """What the scheduler did with each thread and on each CPU; of some nodes or topics with their threads."""
    everybody = scope.cut(states_in_order(trace))
    states = scope.of_threads(trace, everybody)
    wake_ups = scope.within(trace.table("wake_ups").rename({"thread": "thread_row"}), "wakeup_ns")
    wake_ups = scope.of_threads(trace, wake_ups)
    sections = (
        _threads(trace, states, wake_ups, scope),
        _wake_ups(trace, wake_ups),
        _by_priority(trace, wake_ups),
        _preemptions(trace, states, scope),
        _periodic(trace, states),
        _cpus(trace, everybody, scope),
    )
    return quality_of(trace).answer("scheduling", sections, "thread states", "wake-ups", "migrations", scope=scope)


def states_in_order(trace: Source) -> pl.DataFrame:
    """The states of each thread in the order of time; `gap` counts the times that nothing is known between two."""
    states = trace.table("thread_states").rename({"thread": "thread_row"})
    broken = (pl.col("start_ns") != pl.col("end_ns").shift(1).over("thread_row")).fill_null(False)
    return states.sort("thread_row", "start_ns", maintain_order=True).with_columns(
        broken.cum_sum().over("thread_row").alias("gap")
    )


def priority_label(priority: int) -> str:
    """The kernel's priority (p->prio) as people set it: "RT 50", "nice -5"; FIFO and RR have the same.

    >>> priority_label(49), priority_label(120), priority_label(-1)
    ('RT 50', 'nice 0', 'deadline')
    """
    if priority < 0:
        return "deadline"
    return f"RT {99 - priority}" if priority < 100 else f"nice {priority - 120}"


def latencies(wake_ups: pl.DataFrame) -> pl.DataFrame:
    """The wake-ups that have a latency, `latency_ns`, and `from_waking_ns` where the waker's instant is known."""
    ran = pl.col("switch_ns").is_not_null() & ~pl.col("already_running").fill_null(False)
    return wake_ups.filter(ran).with_columns(
        latency_ns=pl.col("switch_ns") - pl.col("wakeup_ns"), from_waking_ns=pl.col("switch_ns") - pl.col("waking_ns")
    )


def covered_ns(trace: Source, scope: Scope = EVERYTHING) -> int | None:
    """The length of the time that the scheduler's events cover; null where there are none."""
    scheduler = trace.facts["scheduler"]
    if scheduler is None:
        return None
    begin, end = int(scheduler["begin_ns"]), int(scheduler["end_ns"])
    if scope.has_window:
        first, last = scope.bounds(trace)
        begin, end = max(begin, first), min(end, last)
    return max(0, end - begin)


def _threads(trace: Source, states: pl.DataFrame, wake_ups: pl.DataFrame, scope: Scope) -> Section:
    running = pl.col("state") == "running"
    length = pl.col("end_ns") - pl.col("start_ns")
    previous_cpu = pl.col("cpu").filter(running).shift(1)
    moved = (pl.col("cpu").filter(running) != previous_cpu) & previous_cpu.is_not_null()
    counts = wake_ups.group_by("thread_row").agg(
        pl.len().alias("wake_ups"), pl.col("already_running").sum().cast(pl.UInt32)
    )
    covered = pl.lit(covered_ns(trace, scope), pl.Int64)
    missing = wake_up_reason(trace.facts)
    has_wake_ups = pl.when(pl.lit(missing is None))
    rows = (
        states.lazy()
        .group_by("thread_row")
        .agg(
            *(length.filter(pl.col("state") == state).sum().alias(f"{state}_ns") for state in STATES),
            switches=running.sum().cast(pl.UInt32),
            preemptions=(pl.col("end_state") == "preempted").sum().cast(pl.UInt32),
            migrations=moved.sum().cast(pl.UInt32),
            cpus=pl.col("cpu").filter(running).drop_nulls().unique(),
            priorities=pl.col("priority").drop_nulls().unique().sort(),
        )
        .collect()
        .join(counts, on="thread_row", how="left")
        .with_columns(
            cpu_percent=part_of(pl.col("running_ns"), covered),
            known_percent=part_of(pl.sum_horizontal(f"{state}_ns" for state in STATES), covered),
            on_cpu_ns="running_ns",
            stopped_ns=pl.col("stopped_ns") + pl.col("traced_ns"),
            wake_up_ns=has_wake_ups.then("woken_ns"),
            wake_ups=has_wake_ups.then(pl.col("wake_ups").fill_null(0)),
            already_running=has_wake_ups.then(pl.col("already_running").fill_null(0)),
            cpus=in_words("cpus", cpu_list),
            priorities=in_words("priorities", lambda priorities: ", ".join(map(priority_label, priorities))),
        )
        .select("thread_row", *THREADS.names[len(OF_ANY) :])
    )
    notes = ["FIFO and RR cannot be told apart by a priority: RT 50 is either"] if rows.height else [NO_SCHEDULER]
    if rows.height and missing is None and (reason := migration_reason(trace.facts)) is not None:
        notes.append(f"{reason[0].upper()}{reason[1:]}; migrations are those between two times that a thread ran")
    why = dict.fromkeys(("wake_up_ns", "wake_ups", "already_running"), missing) if missing else {}
    hidden = {"already_running", *(() if rows["stopped_ns"].sum() else ("stopped_ns",))}
    return section_of(trace, THREADS, rows, notes, why, hidden, longest="on_cpu_ns")


def _wake_ups(trace: Source, wake_ups: pl.DataFrame) -> Section:
    rows = _described(trace, wake_ups, ["thread_row"])
    if (reason := wake_up_reason(trace.facts)) is not None:
        notes = [reason]
    else:
        running = wake_ups.filter("already_running").height
        waiting = wake_ups.filter(pl.col("switch_ns").is_null() & ~pl.col("already_running").fill_null(False)).height
        left_out = f"{plural(running, 'wake-up')} of threads that ran already: without a latency, left out"
        unknown = f"{plural(waiting, 'wake-up')} after which the thread was not seen to run: their latency is not known"
        notes = [note for note, n in ((left_out, running), (unknown, waiting)) if n]
    return section_of(trace, WAKE_UP_LATENCY, rows, notes, *_without_waking(trace), longest="wake_up_n")


def _by_priority(trace: Source, wake_ups: pl.DataFrame) -> Section:
    each = _described(trace, wake_ups, ["priority"]).sort("priority", nulls_last=True)
    labels = [None if p is None else priority_label(p) for p in each["priority"]]
    frame = each.with_columns(pl.Series("priorities", labels, dtype=pl.String)).select(BY_PRIORITY.names)
    if frame.height:
        whole = _described(trace, wake_ups, []).with_columns(priorities=pl.lit("all"), priority=pl.lit(None, pl.Int32))
        frame = pl.concat([whole.select(BY_PRIORITY.names), frame])
    why, hidden = _without_waking(trace)
    return Section(BY_PRIORITY, frame, _why_empty(frame, trace, "was woken"), why, hidden | {"priority"})


def _described(trace: Source, wake_ups: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    figures = {"wake_up": pl.col("latency_ns"), "from_waking": pl.col("from_waking_ns")}
    threads = [] if by == ["thread_row"] else [pl.col("thread_row").n_unique().alias("threads")]
    at = {"wake_up": since_begin(trace, "wakeup_ns")}
    return describe(latencies(wake_ups), by, figures, threads, statistics=LATENCY, at=at)


def _why_empty(frame: pl.DataFrame, trace: Source, what: str) -> tuple[str, ...]:
    """Of a table without rows: not recorded, or it did not happen."""
    if frame.height:
        return ()
    return (f"No thread {what}" if trace.facts["scheduler"] is not None else "The trace has no scheduler events",)


def _without_waking(trace: Source) -> tuple[dict[str, str], set[str]]:
    """Why columns are null, and those that tell a terminal nothing, where no event says when a waker began."""
    if trace.facts["scheduler"] is not None and trace.facts["scheduler"]["has_waking"]:
        return {}, set()
    columns = columns_of("from_waking", LATENCY)
    return dict.fromkeys(columns, "the trace has no sched_waking events"), {"from_waking_n", *columns}


def _preemptions(trace: Source, states: pl.DataFrame, scope: Scope) -> Section:
    """Who ran while a thread waited for a CPU: after it was preempted, and after it was woken."""
    holds = scope.of_threads(trace, scope.cut(trace.table("holds").rename({"thread": "thread_row"})))
    begins = states.filter(pl.col("state") == "preempted").select("thread_row", "start_ns", first=pl.lit(True))
    preempted = pl.col("state") == "preempted"
    length = pl.col("end_ns") - pl.col("start_ns")
    sums = (
        holds.join(begins, on=["thread_row", "start_ns"], how="left", maintain_order="left")
        .group_by("thread_row", "holder", maintain_order=True)
        .agg(
            (preempted & pl.col("first").fill_null(False)).sum().cast(pl.UInt32).alias("preemptions"),
            length.filter(preempted).sum().alias("while_preempted_ns"),
            length.filter(~preempted).sum().alias("while_woken_ns"),
            length.max().alias("longest_ns"),
            since_begin(trace, "start_ns").filter(length == length.max()).first().alias("longest_at_ns"),
        )
    )
    rows = sums.join(holders(trace), on="holder", how="left", maintain_order="left")
    waited = pl.col("while_preempted_ns") + pl.col("while_woken_ns")
    notes = _why_empty(rows, trace, "waited for a CPU")
    return section_of(trace, PREEMPTIONS, rows, notes, hidden=("by_pid", "by_process"), longest=waited)


def wake_up_intervals(states: pl.DataFrame) -> pl.DataFrame:
    """Times between wake-ups from sleep, of `states_in_order`: `thread_row`, `interval_ns`, and `at_ns`, where it ends.

    An interval within which the state was not known is null.
    """
    slept = (pl.col("end_state") == "sleeping").shift(1).over("thread_row").fill_null(False)
    woken = (pl.col("state") == "woken").shift(-1).over("thread_row").fill_null(False)
    whole = (pl.col("gap") == pl.col("gap").shift(-1).over("thread_row")).fill_null(False)
    wakes = states.filter((pl.col("state") == "blocked") & slept & woken & whole)
    same = pl.col("gap") == pl.col("gap").shift(1).over("thread_row")
    interval = pl.col("end_ns") - pl.col("end_ns").shift(1).over("thread_row")
    first = pl.int_range(pl.len()).over("thread_row") == 0
    return (
        wakes.with_columns(pl.when(same).then(interval).alias("interval_ns"), first.alias("first"), at_ns="end_ns")
        .filter(~pl.col("first"))
        .select("thread_row", "at_ns", "interval_ns")
    )


def _periodic(trace: Source, states: pl.DataFrame) -> Section:
    """Threads that wake up again and again and are no executor's: control loops, timers of drivers."""
    executors = pl.concat(
        [trace.table(name).select(pl.col("thread").alias("thread_row")) for name in ("phases", "callback_instances")]
    ).unique()
    all_intervals = wake_up_intervals(states)
    length = pl.col("interval_ns")
    intervals = all_intervals.join(executors, on="thread_row", how="anti", maintain_order="left").with_columns(
        typical_ns=quantile(length, 500).over("thread_row")
    )
    median = length.median()  # the mean of the middle two: of the rule for regular ones alone
    rows = (
        describe(
            intervals,
            ["thread_row"],
            {"period": length, "off": (length - pl.col("typical_ns")).abs()},
            [
                length.is_null().sum().cast(pl.UInt32).alias("intervals_across_losses"),
                (length > 1.5 * pl.col("typical_ns")).sum().cast(pl.UInt32).alias("long_periods"),
                part_of((length - median).abs().median(), median).alias("median_deviation_percent"),
            ],
            statistics=("min", "p50", "p99", "max", "sd"),
            at={"off": since_begin(trace, "at_ns")},
        )
        .filter(pl.col("period_n") >= MIN_INTERVALS)
        .with_columns(regular=pl.col("median_deviation_percent") <= REGULAR_PERCENT)
        .rename({"period_n": "n", "period_sd_ns": "jitter_sd_ns"})
    )
    notes = [
        f"Threads with at least {MIN_INTERVALS} times from one wake-up from sleep to the next; regular: the median "
        f"deviation from the median is at most {REGULAR_PERCENT:g} % of it; no interval is left out for its length"
    ]
    if (reason := wake_up_reason(trace.facts)) is not None:
        notes = [reason]
    left_out = all_intervals["thread_row"].n_unique() - intervals["thread_row"].n_unique()
    if left_out:
        notes.append(f"{plural(left_out, 'thread')} with callbacks left out: their periods are those of the callbacks")
    hidden = ("median_deviation_percent", "intervals_across_losses")
    return section_of(trace, PERIODIC, rows, notes, hidden=hidden, longest=("regular", "n"))


def _cpus(trace: Source, states: pl.DataFrame, scope: Scope) -> Section:
    covered = pl.lit(covered_ns(trace, scope), pl.Int64)
    lossy = _cpus_with_losses(trace)
    whole = ~pl.col("cpu").is_in(list(lossy)) if lossy is not None else pl.lit(False)
    frame = (
        states.filter(pl.col("state") == "running")
        .join(names.threads(trace), on="thread_row", how="left", maintain_order="left")
        .group_by("host_row", "host", "cpu")
        .agg(
            (pl.col("end_ns") - pl.col("start_ns")).sum().alias("busy_ns"),
            pl.col("thread_row").n_unique().alias("threads"),
            pl.len().alias("switches"),
        )
        .sort("host_row", "cpu", nulls_last=True)
        .with_columns(busy_percent=part_of(pl.col("busy_ns"), covered))
        .with_columns(idle_percent=pl.when(whole).then(100.0 - pl.col("busy_percent")))
        .select(CPUS.names)
    )
    note = "CPUs on which no thread ran in the trace are not listed" if frame.height else NO_SCHEDULER
    return Section(CPUS, frame, (note,), hidden={"busy_ns"} if trace.table("hosts").height > 1 else {"busy_ns", "host"})


def _cpus_with_losses(trace: Source) -> set[int] | None:
    """CPUs whose scheduler events were lost; null if unknown."""
    lossy = {
        stream["cpu"]
        for part in trace.facts["traces"]
        if part["domain"] != "ust"
        for stream in part["streams"]
        if stream.get("lossy") or stream["discarded_events"] or stream["lost_packets"]
    }
    return None if None in lossy else lossy
