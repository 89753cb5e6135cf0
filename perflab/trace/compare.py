"""Two traces side by side: what is in both under one name, with the figures of either, their difference and ratio.

Things are matched by what they are called: callbacks by node, kind and topic, service or period; messages by topic,
publisher and subscription; threads by process and name. Handles and process numbers differ from run to run. What has
the same name several times in a trace is one row, and `objects_a`, `objects_b` say how many.

What the interval means: the values of a figure, in the order of time, are cut into BATCHES batches of equal size, and
each batch gives its median. `shift` is Hodges and Lehmann's shift between the batch medians of a and those of b, with
its interval (perflab.statistics.difference). Neighbouring values depend on each other, batches far less; hence batches
are compared. All of it is about these two traces: what varies from one start of the programs to the next is not in it.
One trace of either is one trial of either, and no number of messages makes it more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import polars as pl

from perflab.trace import callbacks as callbacks_answer
from perflab.trace import messages as messages_answer
from perflab.trace import names
from perflab.trace.answer import Answer, Section
from perflab.trace.columns import (
    PROCESS,
    THREAD,
    Column,
    Table,
    because,
    count,
    number,
    percent,
    points,
    rate,
    symbol,
    text,
    time,
)
from perflab.trace.executor import EXECUTOR as EXECUTOR_OF_ONE
from perflab.trace.executor import MIN_KNOWN_PERCENT, executor
from perflab.trace.quality import Quality, quality_of
from perflab.trace.quantiles import REASON_QUANTILE, describe
from perflab.trace.scheduling import THREADS as THREADS_OF_ONE
from perflab.trace.scheduling import covered_ns, latencies, scheduling, states_in_order, wake_up_intervals
from perflab.trace.scope import EVERYTHING, Scope, since_begin
from perflab.trace.threads import ONLY_SCHEDULER, identities, part_of
from perflab.units import format_confidence, plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perflab.trace.source import Source

BATCHES = 20
CONFIDENCE = 0.95
MIN_IN_BATCH = 10  # values, so that a batch's median is of something

ONE_TRIAL = (
    "One trace of either is one trial of either: whether what was traced differs, or only these two runs of it, cannot "
    "be told from them; `perflab run` makes trials that can"
)
INTERVAL = (
    f"shift: between the medians of {BATCHES} batches of consecutive values of either, with its "
    f"{format_confidence(CONFIDENCE)} interval; it is "
    "about these two traces alone"
)
_STATISTICS = ("p50", "p99", "max")
_SHIFT = ("shift_ns", "shift_low_ns", "shift_high_ns")
_KEYS = ("node", "callback", "topic", "publisher", "subscription", "process", "thread", "function", "figure")
_DELIVERY = text("delivery", "the way between them")
_PROCESS = text("process", "name of the process", ONLY_SCHEDULER)

TRACES = Table(
    "traces",
    "Traces",
    (
        text("what", "what is counted"),
        *because(
            "the trace has no events of that kind",
            count("a", "in trace a"),
            count("b", "in trace b"),
            count("difference", "b - a"),
        ),
    ),
)


def _sides(column: Column, stem: str) -> tuple[Column, Column]:
    """A column of either trace. `stem` is its name without the unit, behind which stands the trace."""
    return tuple(  # type: ignore[return-value]
        replace(
            column,
            name=f"{stem}_{side}{column.name.removeprefix(stem)}",
            header=f"{stem.replace('_', ' ')} {side}",
            help=f"{column.help}, in trace {side}",
        )
        for side in "ab"
    )


def _compared(column: Column, stem: str, difference: Callable[..., Column]) -> tuple[Column, ...]:
    return (*_sides(column, stem), difference(f"{stem}_difference", "b - a", column.empty, kind=column.kind))


def _distribution_table(name: str, title: str, *key: Column, labels: Sequence[Column] = ()) -> Table:
    few = f"a quantile or a batch is of too few values: {BATCHES} batches of {MIN_IN_BATCH} in either trace are needed"
    figures: list[Column] = []
    for statistic in _STATISTICS:
        empty = "" if statistic == "max" else REASON_QUANTILE
        figures += _compared(time(statistic, statistic, empty), statistic, time)
        figures.append(number(f"{statistic}_ratio", "b / a", "the figure of a is 0, or one of the two is null"))
    return Table(
        name,
        title,
        (
            *key,
            text("figure", "what is compared"),
            *(column for label in labels for column in _sides(label, label.name)),
            *_sides(count("objects", "things of that name"), "objects"),
            *_sides(count("n", "values"), "n"),
            *figures,
            *_sides(time("max_at", "when the longest began, from the beginning of the trace"), "max_at"),
            *because(
                few,
                time("shift", "shift between the medians of batches of a and of b", kind="number"),
                time("shift_low", f"low end of its {format_confidence(CONFIDENCE)} interval", kind="number"),
                time("shift_high", "high end of that", kind="number"),
            ),
        ),
        spare=(
            "max_at_a_ns", "max_at_b_ns", "max_ratio", "max_a_ns", "max_b_ns", "p99_ratio", "p99_a_ns", "p99_b_ns",
            "n_a", "n_b",
        ),
    )  # fmt: skip


CALLBACKS = _distribution_table(
    "callbacks",
    "Callbacks",
    text("node", "the node", "the initialisation of the callback is not in the trace"),
    text("callback", "kind of the callback, and its topic, service, period or symbol"),
)
MESSAGES = _distribution_table(
    "messages",
    "Messages",
    text("topic", "the topic", "the initialisation of the publisher is not in the trace"),
    text("publisher", "node of the publisher", names.NO_PUBLISHER),
    text("subscription", "node of the subscription", names.NO_SUBSCRIBER),
    labels=(_DELIVERY,),
)
WAKE_UPS = _distribution_table("wake_ups", "Wake-up latency and periods of threads", _PROCESS, THREAD)

_COVERED = (
    f"the scheduler's events of one of the traces cover less than {MIN_KNOWN_PERCENT} % of it, or it took no time"
)
EXECUTOR = Table(
    "executor",
    "Executor threads",
    (
        PROCESS,
        THREAD,
        symbol("function", "what the threads do"),
        *_sides(count("threads", "threads of that name"), "threads"),
        *_sides(count("count", "how often"), "count"),
        *_compared(
            percent("of_spin", "share of spin's wall time", "the thread as a whole is not a part of spin"),
            "of_spin",
            points,
        ),
        *_compared(percent("cpu_usage", "time on a CPU, of the part that is known", _COVERED), "cpu_usage", points),
        *_compared(percent("cpu_of_thread", "share of the thread's time on a CPU", _COVERED), "cpu_of_thread", points),
    ),
    spare=("cpu_usage_difference_points", "cpu_usage_a_percent", "cpu_usage_b_percent", "count_a", "count_b"),
)
THREADS = Table(
    "threads",
    "Threads",
    (
        _PROCESS,
        THREAD,
        *_sides(count("threads", "threads of that name"), "threads"),
        *_compared(percent("cpu", "time on a CPU, of the covered time"), "cpu", points),
        *_compared(percent("preempted", "time preempted, of the covered time"), "preempted", points),
        *_compared(rate("switches", "times that they were switched in"), "switches", rate),
        *_compared(rate("migrations", "times that they ran on another CPU than before"), "migrations", rate),
    ),
    spare=("migrations_a_hz", "migrations_b_hz", "threads_a", "threads_b"),
)
UNMATCHED = Table(
    "unmatched",
    "Only in one of the traces",
    (
        text("only_in", "a or b"),
        text("what", "what it is"),
        text("name", "what it is called"),
        count("n", "how many values it has"),
    ),
)

TABLES = (TRACES, CALLBACKS, MESSAGES, EXECUTOR, WAKE_UPS, THREADS, UNMATCHED)


@dataclass(frozen=True)
class _Side:
    """One of the two traces."""

    trace: Source
    name: str  # "a" or "b"
    quality: Quality
    scope: Scope


def compare(a: Source, b: Source, scopes: tuple[Scope, Scope] = (EVERYTHING, EVERYTHING)) -> Answer:
    """Trace b beside trace a; differences are b - a, ratios b / a. Scopes are as instants of their traces."""
    sides = (_Side(a, "a", quality_of(a), scopes[0]), _Side(b, "b", quality_of(b), scopes[1]))
    unmatched = [UNMATCHED.frame(())]
    compared = (
        _distributions(CALLBACKS, sides, _callbacks, unmatched, "callback"),
        _distributions(MESSAGES, sides, _messages, unmatched, "message"),
        _executor(sides, unmatched),
        _distributions(WAKE_UPS, sides, _wake_ups, unmatched),
        _threads(sides, unmatched),
    )
    sections = (_traces(sides), *compared, Section(UNMATCHED, pl.concat(unmatched)))
    lines = [f"{side.name}: {line}" for side in sides for line in side.quality.doubts()]
    figures = ("callbacks", "messages", "handling", "executor", "thread states")
    warnings = [f"{side.name}: {line}" for side in sides for line in side.quality.warnings(*figures)]
    return Answer("compare", sections, (ONE_TRIAL, *lines), tuple(warnings), sides[0].scope.words)


def _traces(sides: Sequence[_Side]) -> Section:
    """What was read of either, and what is missing in it."""
    columns = []
    for side in sides:
        facts = side.trace.facts
        begin, end = facts["begin_ns"], facts["end_ns"]
        covered = covered_ns(side.trace, side.scope)
        counts: dict[str, int | None] = {
            "length_ns": None if begin is None or end is None else end - begin,
            "scheduler_covers_ns": covered,
            "events": sum(part["events"] for part in facts["traces"]),
        }
        for entry in facts["ledger"]:
            counts[entry["kind"]] = (counts.get(entry["kind"]) or 0) + entry["count"]
        columns.append(counts | {name: n for name, n in facts["counters"].items() if n})
    # What is not in the ledger or the counters of one trace did not happen in it.
    rows = [
        (name, *(counts.get(name, None if name.endswith("_ns") else 0) for counts in columns))
        for name in dict.fromkeys(name for counts in columns for name in counts)
    ]
    frame = TRACES.frame((what, a, b, None if a is None or b is None else b - a) for what, a, b in rows)
    notes = []
    for side in sides:
        facts = side.trace.facts
        versions = ", ".join(map(str, facts["tracetools_versions"])) or "none seen"
        notes.append(f"{side.name}: {', '.join(map(str, facts['paths']))}; tracetools {versions}")
    return Section(TRACES, frame, tuple(notes))


# Values ---------------------------------------------------------------------------------------------------------------
# One row per value: the columns of its key, labels, which may differ between the traces, `object`, `figure`, `at_ns`
# from the beginning of the trace, `value_ns`. With them what they do without, a sentence.

Values = tuple[pl.DataFrame, str]


def _long(side: _Side, frame: pl.DataFrame, columns: Sequence[str], figures: dict[str, str]) -> pl.DataFrame:
    """A frame with one column per figure as one row per value, without nulls."""
    value = [pl.col(column).cast(pl.Int64).alias(name) for name, column in figures.items()]
    index = (*columns, "object", "at_ns")
    return (
        frame.with_columns(since_begin(side.trace, "at_ns"))
        .select(*index, *value)
        .unpivot(list(figures), index=index, variable_name="figure", value_name="value_ns")
        .filter(pl.col("value_ns").is_not_null())
    )


def _callbacks(side: _Side) -> Values:
    known = names.callbacks(side.trace)
    periods = [None if ns is None else f"{ns / 1e6:.12g} ms" for ns in known["period_ns"]]
    timer = pl.col("kind") == "timer"
    what = pl.when(timer).then(pl.Series("period", periods, dtype=pl.String)).otherwise(pl.col("name"))
    who = known.select(
        pl.col("row").alias("callback_row"),
        pl.col("node"),
        pl.concat_str(pl.col("kind").cast(pl.String), pl.coalesce(what, "symbol"), separator=" ", ignore_nulls=True)
        .alias("callback"),
    )  # fmt: skip
    instances = side.scope.within(callbacks_answer.instances_of(side.trace, side.quality), "start_ns")
    if (chosen := side.scope.callbacks(side.trace)) is not None:
        instances = instances.filter(pl.col("callback_row").is_in(chosen))
    durations, intervals = int(instances["duration_left_out"].sum()), int(instances["across_gap"].sum())
    note = (
        f"{plural(durations, 'duration')} and {plural(intervals, 'inter-arrival time')}"
        " left out: events are missing there"
    )
    split = side.trace.split(instances["thread"], instances["start_ns"], instances["end_ns"])
    frame = instances.with_columns(split["on_cpu_ns"]).join(who, on="callback_row", how="left", maintain_order="left")
    frame = frame.with_columns(at_ns="start_ns", object=pl.col("callback_row"))
    figures = {"duration": "duration_ns", "on_cpu": "on_cpu_ns", "inter_arrival": "inter_arrival_ns"}
    return _long(side, frame, ["node", "callback"], figures), note if durations or intervals else ""


def _messages(side: _Side) -> Values:
    trace = side.trace
    publications = messages_answer.publications_of(trace)
    deliveries = messages_answer.deliveries_of(trace, publications)
    deliveries = side.scope.within(messages_answer.handled_of(deliveries, side.quality), "published_ns")
    left_out = int(deliveries["left_out"].sum())
    note = f"{plural(left_out, 'message')} left out: events are missing between publish() and callback_start"
    deliveries = deliveries.filter(~pl.col("left_out"))
    publishers = names.objects(trace, "publishers").select("topic", publisher_row="row", publisher="node")
    subscriptions = names.objects(trace, "subscriptions").select(subscription_row="row", subscription="node")
    legs = (messages_answer.LATENCY, *(leg for leg in messages_answer.LEGS_OF_LATENCY if leg.name != "take"))
    frame = (
        deliveries.join(publishers, on="publisher_row", how="left", maintain_order="left")
        .join(subscriptions, on="subscription_row", how="left", maintain_order="left")
        .with_columns(
            *(leg.time for leg in legs),
            delivery=pl.when("intra_process").then(pl.lit("within process")).otherwise(pl.lit("middleware")),
            object=pl.struct("publisher_row", "subscription_row").rank("dense").cast(pl.Int32),
            at_ns="published_ns",
        )
    )
    frame = side.scope.edges(frame)
    # Not part of the key: whether delivery within the process pays is what many compare two traces for.
    figures = {leg.name: leg.name for leg in legs}
    values = _long(side, frame, ["topic", "publisher", "subscription", "delivery"], figures)
    return values, note if left_out else ""


def _wake_ups(side: _Side) -> Values:
    who = identities(side.trace).select("thread_row", "process", "thread")
    wake_ups = side.scope.within(side.trace.table("wake_ups").rename({"thread": "thread_row"}), "wakeup_ns")
    woken = latencies(side.scope.of_threads(side.trace, wake_ups))
    frame = woken.join(who, on="thread_row", how="left", maintain_order="left")
    frame = frame.with_columns(at_ns="wakeup_ns", object=pl.col("thread_row"))
    figures = {"wake_up": "latency_ns", "from_waking": "from_waking_ns"}
    states = side.scope.of_threads(side.trace, side.scope.cut(states_in_order(side.trace)))
    periods = wake_up_intervals(states).join(who, on="thread_row", how="left", maintain_order="left")
    periods = periods.with_columns(object=pl.col("thread_row"))
    key = ["process", "thread"]
    return pl.concat([_long(side, frame, key, figures), _long(side, periods, key, {"period": "interval_ns"})]), ""


# Tables ---------------------------------------------------------------------------------------------------------------


def _key(table: Table) -> list[str]:
    """The columns by which rows of the two traces belong together."""
    return [name for name in table.names if name in _KEYS]


def _beside(table: Table, frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Rows of both traces with the same key, in the order of a, with the differences and ratios that the table has."""

    def of_side(column: str, side: str) -> str:
        stem, _, unit = column.rpartition("_")
        return f"{stem}_{side}_{unit}" if unit in ("ns", "percent", "hz") else f"{column}_{side}"

    key = _key(table)
    first, second = (
        frame.rename({column: of_side(column, side) for column in frame.columns if column not in key})
        for frame, side in zip(frames, "ab", strict=True)
    )
    both = first.join(second, on=key, how="inner", nulls_equal=True, maintain_order="left")
    made = []
    for name in table.names:
        stem, difference, unit = name.partition("_difference_")
        if difference:
            of_a, of_b = (pl.col(f"{stem}_{side}_{unit.replace('points', 'percent')}") for side in "ab")
            made.append((of_b - of_a).alias(name))
        elif name.endswith("_ratio"):
            of_a, of_b = (pl.col(f"{name.removesuffix('_ratio')}_{side}_ns") for side in "ab")
            made.append(pl.when(of_a > 0).then(of_b / of_a).alias(name))
    return both.with_columns(made)


def _distributions(
    table: Table,
    sides: Sequence[_Side],
    values_of: Callable[[_Side], Values],
    unmatched: list[pl.DataFrame],
    what: str | None = None,
) -> Section:
    """The distributions of every figure that both traces have values of."""
    found = [values_of(side) for side in sides]
    values = [frame for frame, _ in found]
    by = _key(table)
    key = [name for name in by if name != "figure"]
    labels = [column for column in values[0].columns if column not in (*by, "object", "at_ns", "value_ns")]
    more = [pl.col("object").n_unique().alias("objects"), *(pl.col(c).unique().sort().str.join(", ") for c in labels)]
    described = [
        describe(frame, by, {"value": pl.col("value_ns")}, more, statistics=_STATISTICS, at={"value": pl.col("at_ns")})
        .rename(lambda column: column.removeprefix("value_"))
        for frame in values
    ]  # fmt: skip
    if what is not None:
        unmatched += _missing(described, key, what, "n")
    both = _beside(table, described)
    frame = pl.concat([both, _shifts(values, both, by)], how="horizontal").select(table.names)
    # What ROS itself sends comes last.
    internal = [names.is_internal(pl.col(c).str.split(" ").list.last()) for c in ("topic", "callback") if c in key]
    frame = frame.sort(*internal, *key, nulls_last=True, maintain_order=True)
    notes = [INTERVAL] if frame.height else []
    if all(map(len, values)) and frame.is_empty():
        notes = ["Nothing has the same name in both"]
    notes += [f"{side.name}: {note}" for side, (_, note) in zip(sides, found, strict=True) if note]
    hidden = {"objects_a", "objects_b", "p50_difference_ns", "p99_difference_ns", "max_difference_ns", "shift_ns"}
    return Section(table, frame, tuple(notes), hidden=hidden)


def _shifts(values: Sequence[pl.DataFrame], both: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """For each row of `both` the shift between the batch medians, and its interval."""
    enough = (pl.col("n_a") >= BATCHES * MIN_IN_BATCH) & (pl.col("n_b") >= BATCHES * MIN_IN_BATCH)
    rows = both.with_row_index("__row").filter(enough).select("__row", *by)
    medians = [_batch_medians(frame, rows, by) for frame in values]
    shifts: dict[str, list[float | None]] = {column: [None] * both.height for column in _SHIFT}
    if rows.height:
        from perflab.statistics.difference import shift
        from perflab.statistics.sample import Sample, design

        for row in rows["__row"]:
            estimate = shift(design(Sample.of(medians[0][row]), Sample.of(medians[1][row])), CONFIDENCE)
            interval = estimate.interval
            ends = (None, None) if interval is None else (interval.low, interval.high)
            for column, value in zip(_SHIFT, (estimate.value, *ends), strict=True):
                shifts[column][row] = value
    return pl.DataFrame(shifts, schema=dict.fromkeys(_SHIFT, pl.Float64))


def _batch_medians(values: pl.DataFrame, rows: pl.DataFrame, by: list[str]) -> dict[int, list[float]]:
    """The medians of the batches of each row, in the order of time."""
    place = pl.int_range(pl.len()).over("__row")
    found = (
        values.join(rows, on=by, how="inner", nulls_equal=True)
        .sort("__row", "at_ns", maintain_order=True)
        .with_columns(batch=place * BATCHES // pl.len().over("__row"))
        .group_by("__row", "batch", maintain_order=True)
        .agg(pl.col("value_ns").median())
        .group_by("__row", maintain_order=True)
        .agg("value_ns")
    )
    return dict(found.iter_rows())


def _missing(frames: Sequence[pl.DataFrame], key: list[str], what: str, n: str) -> list[pl.DataFrame]:
    """What one of the two has no value of: one row per thing, with its number of values."""
    name = pl.concat_str([pl.col(column).cast(pl.String).fill_null("(unknown)") for column in key], separator="  ")
    return [
        frame.join(other, on=key, how="anti", nulls_equal=True)
        .group_by(key, maintain_order=True)
        .agg(pl.col(n).max().alias("n"))
        .select(only_in=pl.lit(side), what=pl.lit(what), name=name, n=pl.col("n").cast(pl.Int64))
        for frame, other, side in ((frames[0], frames[1], "a"), (frames[1], frames[0], "b"))
    ]


def _executor(sides: Sequence[_Side], unmatched: list[pl.DataFrame]) -> Section:
    """The time of executor threads, those of one name together."""
    frames = []
    for side in sides:
        table = executor(side.trace, scope=side.scope).section(EXECUTOR_OF_ONE.name).frame
        told = pl.col("wall_ns") * pl.col("known_percent") / 100.0
        sums = table.group_by(_key(EXECUTOR), maintain_order=True).agg(
            pl.len().alias("threads"), pl.col("count").sum(), pl.col("wall_ns").sum(),
            pl.when(pl.col("on_cpu_ns").count() > 0).then(pl.col("on_cpu_ns").sum()).alias("on_cpu_ns"),
            told.sum().alias("told_ns"),
        )  # fmt: skip
        thread, spin = pl.col("function") == "thread", pl.col("function") == "spin"
        of = ["process", "thread"]
        known = pl.when(100.0 * pl.col("told_ns") >= MIN_KNOWN_PERCENT * pl.col("wall_ns")).then("on_cpu_ns")
        of_spin = part_of(pl.col("wall_ns"), pl.col("wall_ns").filter(spin).first().over(of))
        frames.append(
            sums.with_columns(known_ns=known).with_columns(
                of_spin_percent=pl.when(~thread).then(of_spin),
                cpu_of_thread_percent=part_of(pl.col("known_ns"), pl.col("known_ns").filter(thread).first().over(of)),
                cpu_usage_percent=pl.when(pl.col("known_ns").is_not_null()).then(
                    part_of(pl.col("on_cpu_ns"), pl.col("told_ns"))
                ),
            )
        )
    named = [f.filter(pl.col("function") == "thread") for f in frames]
    unmatched += _missing(named, ["process", "thread"], "executor thread", "threads")
    frame = _beside(EXECUTOR, frames).select(EXECUTOR.names)
    return Section(EXECUTOR, frame, hidden={"threads_a", "threads_b"})


def _threads(sides: Sequence[_Side], unmatched: list[pl.DataFrame]) -> Section:
    """What threads did in a second, those of one name together."""
    frames = []
    for side in sides:
        table = scheduling(side.trace, side.scope).section(THREADS_OF_ONE.name).frame
        covered = pl.lit(covered_ns(side.trace, side.scope), pl.Int64)
        sums = table.group_by(_key(THREADS), maintain_order=True).agg(
            pl.len().alias("threads"), pl.col("on_cpu_ns", "preempted_ns", "switches", "migrations").sum()
        )
        frames.append(
            sums.with_columns(
                part_of(pl.col("on_cpu_ns"), covered).alias("cpu_percent"),
                part_of(pl.col("preempted_ns"), covered).alias("preempted_percent"),
                (pl.col("switches") * 1e9 / covered).alias("switches_hz"),
                (pl.col("migrations") * 1e9 / covered).alias("migrations_hz"),
            )
        )
    unmatched += _missing(frames, _key(THREADS), "thread", "threads")
    frame = _beside(THREADS, frames).select(THREADS.names)
    lacking = [side.name for side in sides if side.trace.facts["scheduler"] is None]
    notes = [f"{name}: the trace has no scheduler events" for name in lacking]
    hidden = {name for name in THREADS.names if "_difference_" in name}
    return Section(THREADS, frame, tuple(notes), hidden=hidden)
