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

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

import polars as pl

from perflab.trace import callbacks as callbacks_answer
from perflab.trace import executor as executor_answer
from perflab.trace import messages as messages_answer
from perflab.trace import names, scheduling
from perflab.trace.answer import Answer, Section
from perflab.trace.columns import Column, Table, because, count, number, percent, points, rate, symbol, text, time
from perflab.trace.names import PROCESS, THREAD
from perflab.trace.quality import Quality, quality_of
from perflab.trace.quantiles import REASON_QUANTILE, describe
from perflab.trace.scope import EVERYTHING, Scope, since_begin
from perflab.trace.source import Source
from perflab.trace.threads import ONLY_SCHEDULER, identities, part_of
from perflab.units import format_confidence, plural

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
# By the unit at the end of a column's name: what makes the column of a difference.
_DIFFERENCES: dict[str, Callable[..., Column]] = {"ns": time, "percent": points, "hz": rate}
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


def _parted(column: str) -> tuple[str, str]:
    """The name of a column without its unit, and "" or the unit with _ before it."""
    stem, _, unit = column.rpartition("_")
    return (stem, f"_{unit}") if unit in _DIFFERENCES else (column, "")


def _of_side(column: str, side: str) -> str:
    """ "p50_a_ns": what a column of one trace is called beside that of the other."""
    stem, unit = _parted(column)
    return f"{stem}_{side}{unit}"


def _sides(*columns: Column) -> tuple[Column, ...]:
    """Each column of either trace."""
    return tuple(
        replace(
            column,
            name=_of_side(column.name, side),
            header=f"{_parted(column.name)[0].replace('_', ' ')} {side}",
            help=f"{column.help}, in trace {side}",
        )
        for column in columns
        for side in "ab"
    )


def _beside(column: Column) -> tuple[Column, ...]:
    stem, unit = _parted(column.name)
    difference = _DIFFERENCES[unit[1:]]
    return (*_sides(column), difference(f"{stem}_difference", "b - a", column.empty, kind=column.kind))


def _distributions(name: str, title: str, *key: Column, labels: Sequence[Column] = ()) -> Table:
    few = f"a quantile or a batch is of too few values: {BATCHES} batches of {MIN_IN_BATCH} in either trace are needed"
    figures: list[Column] = []
    for statistic in _STATISTICS:
        figures += _beside(time(statistic, statistic, "" if statistic == "max" else REASON_QUANTILE))
        figures.append(number(f"{statistic}_ratio", "b / a", "the figure of a is 0, or one of the two is null"))
    return Table(
        name,
        title,
        (
            *key,
            text("figure", "what is compared"),
            *_sides(*labels, count("objects", "things of that name"), count("n", "values")),
            *figures,
            *_sides(time("max_at", "when the longest began, from the beginning of the trace")),
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


CALLBACKS = _distributions(
    "callbacks",
    "Callbacks",
    text("node", "the node", "the initialisation of the callback is not in the trace"),
    text("callback", "kind of the callback, and its topic, service, period or symbol"),
)
MESSAGES = _distributions(
    "messages",
    "Messages",
    text("topic", "the topic", "the initialisation of the publisher is not in the trace"),
    text("publisher", "node of the publisher", names.NO_PUBLISHER),
    text("subscription", "node of the subscription", names.NO_SUBSCRIBER),
    labels=(text("delivery", "the way between them"),),
)
WAKE_UPS = _distributions("wake_ups", "Wake-up latency and periods of threads", _PROCESS, THREAD)

_THREADS = count("threads", "threads of that name")
_COVERED = (
    f"the scheduler's events of one of the traces cover less than {executor_answer.MIN_KNOWN_PERCENT} % of it, or it"
    " took no time"
)
EXECUTOR = Table(
    "executor",
    "Executor threads",
    (
        PROCESS,
        THREAD,
        symbol("function", "what the threads do"),
        *_sides(_THREADS, count("count", "how often")),
        *_beside(percent("of_spin", "share of spin's wall time", "the thread as a whole is not a part of spin")),
        *_beside(percent("cpu_usage", "time on a CPU, of the part that is known", _COVERED)),
        *_beside(percent("cpu_of_thread", "share of the thread's time on a CPU", _COVERED)),
    ),
    spare=("cpu_usage_difference_points", "cpu_usage_a_percent", "cpu_usage_b_percent", "count_a", "count_b"),
)
THREADS = Table(
    "threads",
    "Threads",
    (
        _PROCESS,
        THREAD,
        *_sides(_THREADS),
        *_beside(percent("cpu", "time on a CPU, of the covered time")),
        *_beside(percent("preempted", "time preempted, of the covered time")),
        *_beside(rate("switches", "times that they were switched in")),
        *_beside(rate("migrations", "times that they ran on another CPU than before")),
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


@dataclass(frozen=True)
class _Compared:
    """A table of what has the same name in both traces."""

    table: Table
    # Of one trace: the key, which are the columns that the table has under the same name, and what is compared; with
    # them what they do without, a sentence.
    rows: Callable[[_Side], tuple[pl.DataFrame, str]]
    what: str = ""  # description of a row that only one of the two has
    counted: str = "n"  # what then says how many values it has
    hidden: Collection[str] = ()


def compare(a: Source, b: Source, scopes: tuple[Scope, Scope] = (EVERYTHING, EVERYTHING)) -> Answer:
    """Trace b beside trace a; differences are b - a, ratios b / a. Scopes are as instants of their traces."""
    sides = (_Side(a, "a", quality_of(a), scopes[0]), _Side(b, "b", quality_of(b), scopes[1]))
    unmatched = [UNMATCHED.frame(())]
    compared = [_section(each, sides, unmatched) for each in _COMPARED]
    sections = (_traces(sides), *compared, Section(UNMATCHED, pl.concat(unmatched)))
    lines = [f"{side.name}: {line}" for side in sides for line in side.quality.doubts()]
    figures = ("callbacks", "messages", "handling", "executor", "thread states")
    warnings = [f"{side.name}: {line}" for side in sides for line in side.quality.warnings(*figures)]
    return Answer("compare", sections, (ONE_TRIAL, *lines), tuple(warnings), sides[0].scope.words)


def _section(of: _Compared, sides: Sequence[_Side], unmatched: list[pl.DataFrame]) -> Section:
    """Rows of both traces with the same key, in the order of a; to `unmatched` comes what one of them has not."""
    frames, texts = zip(*(of.rows(side) for side in sides), strict=True)
    key = [name for name in frames[0].columns if name in of.table.of]
    thing = [name for name in key if name not in ("figure", "function")]
    if of.what:
        unmatched += _missing(frames, thing, of)
    first, second = (
        frame.rename({column: _of_side(column, side.name) for column in frame.columns if column not in key})
        for frame, side in zip(frames, sides, strict=True)
    )
    frame = first.join(second, on=key, how="inner", nulls_equal=True, maintain_order="left")
    made = []
    for name in of.table.names:
        stem, difference, unit = name.partition("_difference_")
        if difference:
            of_a, of_b = (pl.col(f"{stem}_{side}_{unit.replace('points', 'percent')}") for side in "ab")
            made.append((of_b - of_a).alias(name))
        elif name.endswith("_ratio"):
            of_a, of_b = (pl.col(f"{name.removesuffix('_ratio')}_{side}_ns") for side in "ab")
            made.append(pl.when(of_a > 0).then(of_b / of_a).alias(name))
    frame = frame.with_columns(made)
    notes = []
    if "figure" in key:
        frame = pl.concat([frame, _shifts(frame["medians_a"], frame["medians_b"])], how="horizontal")
        # What ROS itself sends comes last.
        internal = [names.is_internal(pl.col(c).str.split(" ").list.last()) for c in ("topic", "callback") if c in key]
        frame = frame.sort(*internal, *thing, nulls_last=True, maintain_order=True)
        if frame.height:
            notes = [INTERVAL]
        elif all(map(len, frames)):
            notes = ["Nothing has the same name in both"]
    notes += [f"{side.name}: {note}" for side, note in zip(sides, texts, strict=True) if note]
    return Section(of.table, frame.select(of.table.names), tuple(notes), hidden=of.hidden)


def _missing(frames: Sequence[pl.DataFrame], key: list[str], of: _Compared) -> list[pl.DataFrame]:
    """What one of the two has no value of: one row per thing, with its number of values."""
    name = pl.concat_str([pl.col(column).cast(pl.String).fill_null("(unknown)") for column in key], separator="  ")
    return [
        frame.join(other, on=key, how="anti", nulls_equal=True)
        .group_by(key, maintain_order=True)
        .agg(pl.col(of.counted).max().cast(pl.Int64).alias("n"))
        .select(only_in=pl.lit(side), what=pl.lit(of.what), name=name, n="n")
        for frame, other, side in ((frames[0], frames[1], "a"), (frames[1], frames[0], "b"))
    ]


def _shifts(a: pl.Series, b: pl.Series) -> pl.DataFrame:
    """Row by row the shift between the batch medians, and its interval; null where one of the two has none."""
    rows = []
    for medians in zip(a, b, strict=True):
        row: tuple[float | None, ...] = (None, None, None)
        if medians[0] is not None and medians[1] is not None:
            from perflab.statistics.difference import shift
            from perflab.statistics.sample import Sample, design

            estimate = shift(design(*(Sample.of(values.to_list()) for values in medians)), CONFIDENCE)
            interval = estimate.interval
            row = (estimate.value, *((None, None) if interval is None else (interval.low, interval.high)))
        rows.append(row)
    return pl.DataFrame(rows, schema=dict.fromkeys(_SHIFT, pl.Float64), orient="row")


def _traces(sides: Sequence[_Side]) -> Section:
    """What was read of either, and what is missing in it."""
    columns, notes = [], []
    for side in sides:
        facts = side.trace.facts
        begin, end = facts["begin_ns"], facts["end_ns"]
        counts: dict[str, int | None] = {
            "length_ns": None if begin is None or end is None else end - begin,
            "scheduler_covers_ns": scheduling.covered_ns(side.trace, side.scope),
            "events": sum(part["events"] for part in facts["traces"]),
        }
        for entry in facts["ledger"]:
            counts[entry["kind"]] = (counts.get(entry["kind"]) or 0) + entry["count"]
        columns.append(counts | {name: n for name, n in facts["counters"].items() if n})
        versions = ", ".join(map(str, facts["tracetools_versions"])) or "none seen"
        notes.append(f"{side.name}: {', '.join(map(str, facts['paths']))}; tracetools {versions}")
    rows = []
    for name in dict.fromkeys(name for counts in columns for name in counts):
        # What is not in the ledger or the counters of one trace did not happen in it.
        a, b = (counts.get(name, None if name.endswith("_ns") else 0) for counts in columns)
        rows.append((name, a, b, None if a is None or b is None else b - a))
    return Section(TRACES, TRACES.frame(rows), tuple(notes))


# Of one trace ---------------------------------------------------------------------------------------------------------


def _described(side: _Side, table: Table, *values: tuple[pl.DataFrame, dict[str, str]]) -> pl.DataFrame:
    """The distribution of each figure by the table's key, and the medians of its batches in the order of time.

    `values` are frames with the key, labels, `object` and `at_ns`, and the column of each figure by its name.
    """
    columns = values[0][0].columns
    key = [name for name in table.names if name in columns]
    labels = [name for name in columns if _of_side(name, "a") in table.of]
    by, index = [*key, "figure"], [*key, *labels, "object", "at_ns"]
    frame = pl.concat(
        frame.with_columns(since_begin(side.trace, "at_ns"))
        .select(*index, *(pl.col(c).cast(pl.Int64).alias(name) for name, c in figures.items()))
        .unpivot(list(figures), index=index, variable_name="figure")
        .drop_nulls("value")
        for frame, figures in values
    )
    place, n = pl.int_range(pl.len()), pl.len()
    medians = (
        frame.group_by(by)
        .agg(pl.col("value").sort_by("at_ns", maintain_order=True), batch=place * BATCHES // n, n=n)
        .filter(pl.col("n") >= BATCHES * MIN_IN_BATCH)
        .explode("value", "batch")
        .group_by(*by, "batch", maintain_order=True)
        .agg(medians=pl.col("value").median())
        .group_by(by, maintain_order=True)
        .agg("medians")
    )
    more = [pl.col("object").n_unique().alias("objects"), *(pl.col(c).unique().sort().str.join(", ") for c in labels)]
    return (
        describe(frame, by, {"value": pl.col("value")}, more, statistics=_STATISTICS, at={"value": pl.col("at_ns")})
        .rename(lambda column: column.removeprefix("value_"))
        .join(medians, on=by, how="left", nulls_equal=True, maintain_order="left")
    )


def _callbacks(side: _Side) -> tuple[pl.DataFrame, str]:
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
    return _described(side, CALLBACKS, (frame, figures)), note if durations or intervals else ""


def _messages(side: _Side) -> tuple[pl.DataFrame, str]:
    found = messages_answer.Deliveries(side.trace, side.quality, side.scope)
    left_out = int(found.handled["left_out"].sum())
    note = f"{plural(left_out, 'message')} left out: events are missing between publish() and callback_start"
    edges = found.pairs.select(*messages_answer.EDGE, "topic", "publisher", "subscription")
    legs = (messages_answer.LATENCY, *(leg for leg in messages_answer.LEGS_OF_LATENCY if leg.name != "take"))
    frame = (
        found.handled.filter(~pl.col("left_out"))
        .join(edges, on=messages_answer.EDGE, how="left", maintain_order="left")
        .with_columns(
            *(leg.time for leg in legs),
            # No part of the key: whether delivery within the process pays is what many compare two traces for.
            delivery=pl.when("intra_process").then(pl.lit("within process")).otherwise(pl.lit("middleware")),
            object=pl.struct("publisher_row", "subscription_row").rank("dense").cast(pl.Int32),
            at_ns="published_ns",
        )
    )
    figures = {leg.name: leg.name for leg in legs}
    return _described(side, MESSAGES, (side.scope.edges(frame), figures)), note if left_out else ""


def _wake_ups(side: _Side) -> tuple[pl.DataFrame, str]:
    trace, scope = side.trace, side.scope
    woken = scope.within(trace.table("wake_ups").rename({"thread": "thread_row"}), "wakeup_ns")
    states = scope.of_threads(trace, scope.cut(scheduling.states_in_order(trace)))
    who = identities(trace).select("thread_row", "process", "thread", object="thread_row")
    latencies, periods = (
        frame.join(who, on="thread_row", how="left", maintain_order="left")
        for frame in (
            scheduling.latencies(scope.of_threads(trace, woken)).with_columns(at_ns="wakeup_ns"),
            scheduling.wake_up_intervals(states),
        )
    )
    figures = {"wake_up": "latency_ns", "from_waking": "from_waking_ns"}
    return _described(side, WAKE_UPS, (latencies, figures), (periods, {"period": "interval_ns"})), ""


def _executor(side: _Side) -> tuple[pl.DataFrame, str]:
    """The time of executor threads, those of one name together."""
    answer = executor_answer.executor(side.trace, scope=side.scope)
    on_cpu, wall, told = (pl.col(name) for name in ("on_cpu_ns", "wall_ns", "told_ns"))
    sums = (
        answer.section(executor_answer.EXECUTOR.name)
        .frame.with_columns(told_ns=wall * pl.col("known_percent") / 100.0)
        .group_by("process", "thread", "function", maintain_order=True)
        .agg(
            pl.col("count", "wall_ns", "told_ns").sum(),
            threads=pl.len(),
            on_cpu_ns=pl.when(on_cpu.count() > 0).then(on_cpu.sum()),
        )
        .with_columns(known_ns=pl.when(100.0 * told >= executor_answer.MIN_KNOWN_PERCENT * wall).then(on_cpu))
    )

    def of_its(function: str, column: str) -> pl.Expr:
        return pl.col(column).filter(pl.col("function") == function).first().over("process", "thread")

    frame = sums.select(
        "process", "thread", "function", "threads", "count",
        of_spin_percent=pl.when(pl.col("function") != "thread").then(part_of(wall, of_its("spin", "wall_ns"))),
        cpu_of_thread_percent=part_of(pl.col("known_ns"), of_its("thread", "known_ns")),
        cpu_usage_percent=pl.when(pl.col("known_ns").is_not_null()).then(part_of(on_cpu, told)),
    )  # fmt: skip
    return frame, ""


def _threads(side: _Side) -> tuple[pl.DataFrame, str]:
    """What threads did in a second, those of one name together."""
    covered = pl.lit(scheduling.covered_ns(side.trace, side.scope), pl.Int64)
    answer = scheduling.scheduling(side.trace, side.scope)
    frame = (
        answer.section(scheduling.THREADS.name)
        .frame.group_by("process", "thread", maintain_order=True)
        .agg(
            pl.len().alias("threads"),
            *(part_of(pl.col(f"{part}_ns").sum(), covered).alias(f"{name}_percent") for name, part in _OF_THREADS),
            *((pl.col(name).sum() * 1e9 / covered).alias(f"{name}_hz") for name in ("switches", "migrations")),
        )
    )
    return frame, "" if side.trace.facts["scheduler"] is not None else "the trace has no scheduler events"


_OF_THREADS = (("cpu", "on_cpu"), ("preempted", "preempted"))
_OF_DISTRIBUTIONS = ("objects_a", "objects_b", *(f"{s}_difference_ns" for s in _STATISTICS), "shift_ns")
_COMPARED = (
    _Compared(CALLBACKS, _callbacks, "callback", hidden=_OF_DISTRIBUTIONS),
    _Compared(MESSAGES, _messages, "message", hidden=_OF_DISTRIBUTIONS),
    _Compared(EXECUTOR, _executor, "executor thread", "threads", hidden=("threads_a", "threads_b")),
    _Compared(WAKE_UPS, _wake_ups, hidden=_OF_DISTRIBUTIONS),
    _Compared(
        THREADS, _threads, "thread", "threads", hidden=[name for name in THREADS.names if "_difference_" in name]
    ),
)
