"""Who a thread is, and what the scheduler's events say of all of its time; what several answers need."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import polars as pl

from perflab.trace import names
from perflab.trace.answer import Section
from perflab.trace.columns import Table, because
from perflab.trace.names import HOST, PID, PROCESS, THREAD, TID
from perflab.trace.source import Source

IDENTITY = ("host", "process", "pid", "thread", "tid")
ONLY_SCHEDULER = "only the scheduler knows the thread"
WHO = (HOST, *because(names.NO_PROCESS_NAME, PROCESS), PID, THREAD, TID)  # of user space
OF_ANY = (HOST, *because(ONLY_SCHEDULER, PROCESS, PID), THREAD, TID)  # or of nothing that was traced
STATES = ("running", "preempted", "blocked", "woken", "stopped", "traced")
SPLIT_STATES = ("on_cpu", "preempted", "blocked", "stopped", "wake_up")  # of a stretch; stopped: or traced


def identities(trace: Source) -> pl.DataFrame:
    """One row per thread: `thread_row`, who it is, and when its first and last event lie.

    The process is null for threads that only the scheduler knows; their host is known all the same.
    """
    return names.threads(trace).select("thread_row", *IDENTITY, "first_ns", "last_ns")


def holders(trace: Source) -> pl.DataFrame:
    """The same as those who had a CPU: `holder`, their row, `by_process`, `by_pid`, `by_thread` and `by_tid`."""
    return names.threads(trace).select(
        holder="thread_row", by_process="process", by_pid="pid", by_thread="thread", by_tid="tid"
    )


def section_of(
    trace: Source,
    table: Table,
    rows: pl.DataFrame,
    notes: Iterable[str] = (),
    because: Mapping[str, str] | None = None,
    hidden: Collection[str] = (),
    *,
    longest: str | pl.Expr | Sequence[str] | None = None,
) -> Section:
    """A section about threads: rows with `thread_row` and the columns of the table but who they are.

    `longest` comes first, else the rows are in the order of the threads.
    """
    frame = (
        rows.join(identities(trace).drop("first_ns", "last_ns"), on="thread_row", how="left", maintain_order="left")
        .sort("host", "process", "pid", "tid", "thread_row", nulls_last=True, maintain_order=True)
        .select(table.names)
    )
    if longest is not None:
        frame = frame.sort(longest, descending=True, nulls_last=True, maintain_order=True)
    # What tells a terminal nothing: the host where there is one only, a process that is called like its thread.
    useless = {"pid", *hidden, *(() if trace.table("hosts").height > 1 else ("host",))}
    if (frame["process"].is_null() | frame["process"].eq_missing(frame["thread"])).all():
        useless.add("process")
    return Section(table, frame, tuple(notes), because or {}, useless)


def known_time(states: pl.DataFrame, spans: pl.DataFrame) -> pl.DataFrame:
    """Of each thread the time within its span that was spent in each state.

    `spans` has `thread_row`, `begin_ns` and `end_ns`. The result has `thread_row`, `running_ns`, `preempted_ns`,
    `blocked_ns`, `woken_ns`, `stopped_ns`, `traced_ns` and `known_ns`, their sum; no row for threads of which nothing
    is known.
    """
    length = pl.min_horizontal("end_ns", "__end") - pl.max_horizontal("start_ns", "__begin")
    clipped = (
        states.lazy()
        .join(
            spans.lazy().select("thread_row", __begin="begin_ns", __end="end_ns"),
            left_on="thread",
            right_on="thread_row",
        )
        .select(pl.col("thread").alias("thread_row"), "state", length.clip(lower_bound=0).alias("length"))
    )
    sums = [pl.col("length").filter(pl.col("state") == state).sum().alias(f"{state}_ns") for state in STATES]
    return clipped.group_by("thread_row").agg(*sums, known_ns=pl.col("length").sum()).collect()


def split_of(trace: Source, frame: pl.DataFrame, thread: str = "thread_row") -> pl.DataFrame:
    """Stretches with how they were spent by `Source.split`: times of SPLIT_STATES, which add up, and `migrations`."""
    found = trace.split(frame[thread], frame["start_ns"], frame["end_ns"])
    others = pl.sum_horizontal("on_cpu_ns", "preempted_ns", "blocked_ns", "wake_up_ns")
    length = pl.col("end_ns") - pl.col("start_ns")
    return pl.concat([frame, found], how="horizontal").with_columns(
        stopped_ns=length - pl.when(pl.col("on_cpu_ns").is_not_null()).then(others)
    )


def part_of(part: pl.Expr, whole: pl.Expr) -> pl.Expr:
    """100 part / whole; null where the whole is 0 or not known."""
    return pl.when(whole > 0).then(100.0 * part / whole)


def in_words(lists: str, words: Callable[[list[int]], str]) -> pl.Expr:
    """Lists as text; null where a list is empty."""
    return pl.col(lists).map_elements(lambda numbers: words(numbers.to_list()) or None, return_dtype=pl.String)
