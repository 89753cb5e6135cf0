"""What happened in a stretch of time, for a picture of it: who ran on CPUs when, who waited for them, and messages.

    lanes(trace, begin_ns, end_ns, pids)

A document of plain values; instants are on the trace's time line. Threads are those that ran on the CPUs which a thread
of these processes waited for, those that waited themselves, and those that published or handled messages. Runs of one
thread on one CPU that lie closer together than a picture can show are one; how many they were is kept.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import polars as pl

from perflab.trace import names
from perflab.trace.messages import Deliveries
from perflab.trace.quality import quality_of
from perflab.trace.scope import Scope
from perflab.trace.source import Source
from perflab.trace.starvation_waits import WAITING, roles
from perflab.trace.why_threads import Threads

RESOLUTION = 2000  # runs that follow each other within such a part of the stretch are one
LEAST_WAIT = 200  # waits that are shorter than such a part are left out
MOST_RUNS = 4000  # of a CPU: more are not told, the longest ones are

Json = dict[str, Any]


def lanes(trace: Source, begin_ns: int, end_ns: int, pids: Collection[int] = ()) -> Json:
    """`threads` by their rows, `runs`, `waits` and `messages`, of these processes; none: of all with callbacks."""
    scope = Scope(begin_ns=begin_ns, end_ns=end_ns)
    threads = Threads(trace)
    who = names.threads(trace).join(roles(trace, threads), on="thread_row", how="left", maintain_order="left")
    mine = who.filter(pl.col("pid").is_in(list(pids)) if pids else pl.col("role").is_in(["executor", "middleware"]))
    states = scope.cut(trace.table("thread_states")).with_columns(
        pl.col("state").cast(pl.String), length_ns=pl.col("end_ns") - pl.col("start_ns")
    )
    waits = _waits(states.filter(pl.col("thread").is_in(mine["thread_row"].to_list())), end_ns - begin_ns)
    cpus = waits["cpu"].drop_nulls().unique().sort().to_list()
    found = states.filter(pl.col("state") == "running", pl.col("cpu").is_in(cpus))
    runs = _runs(found, (end_ns - begin_ns) // RESOLUTION)
    messages = _messages(trace, scope, set(mine["thread_row"].to_list()))
    shown = {
        *runs["thread"], *waits["thread"], *(m[end] for m in messages for end in ("from_thread", "to_thread")),
    } - {None}  # fmt: skip
    return {
        "begin_ns": begin_ns,
        "end_ns": end_ns,
        "cpus": cpus,
        "threads": {
            str(row["thread_row"]): {
                "process": row["process"], "pid": row["pid"], "thread": row["thread"], "tid": row["tid"],
                "role": row["role"],
            }
            for row in who.filter(pl.col("thread_row").is_in(list(shown))).iter_rows(named=True)
        },
        "runs": runs.rows(),
        "waits": waits.select("thread", "cpu", "start_ns", "end_ns").rows(),
        "messages": messages,
    }  # fmt: skip


def _waits(states: pl.DataFrame, length_ns: int) -> pl.DataFrame:
    waits = states.filter(pl.col("state").is_in(WAITING), pl.col("length_ns") >= length_ns // LEAST_WAIT)
    return waits.sort("start_ns", "thread")


def _runs(running: pl.DataFrame, gap_ns: int) -> pl.DataFrame:
    """cpu, thread, first_ns, last_ns and n: how many runs it was."""
    other = (pl.col("thread") != pl.col("thread").shift(1)).fill_null(True)
    apart = (pl.col("start_ns") - pl.col("end_ns").shift(1) > gap_ns).fill_null(True)
    numbered = running.sort("cpu", "start_ns").with_columns(run=(other | apart).cum_sum().over("cpu"))
    merged = numbered.group_by("cpu", "run", maintain_order=True).agg(
        pl.col("thread").first(),
        first_ns=pl.col("start_ns").first(),
        last_ns=pl.col("end_ns").last(),
        n=pl.len(),
        length_ns=pl.col("length_ns").sum(),
    )
    longest = merged.filter(pl.col("length_ns").rank("ordinal", descending=True).over("cpu") <= MOST_RUNS)
    return longest.select("cpu", "thread", "first_ns", "last_ns", "n")


def _messages(trace: Source, scope: Scope, mine: set[int]) -> list[Json]:
    """Those that threads of these processes published in the stretch or handled in it."""
    deliveries = Deliveries(trace, quality_of(trace))
    topics = trace.table("publishers")["topic"]
    handled = deliveries.handled.select("publication", to_thread="thread", handled_ns="started_ns")
    all_of = (
        deliveries.publications.with_columns(topic=topics.gather(deliveries.publications["publisher_row"]))
        .filter(~names.is_internal(pl.col("topic")), pl.col("publisher_thread").is_in(list(mine)))
        .join(handled, on="publication", how="left", maintain_order="left")
        .filter(scope.contains("published_ns") | scope.contains("handled_ns").fill_null(False))
    )
    return [
        {"topic": topic, "published_ns": at, "from_thread": sender, "handled_ns": handled_ns, "to_thread": reader}
        for topic, at, sender, handled_ns, reader in all_of.select(
            "topic", "published_ns", "publisher_thread", "handled_ns", "to_thread"
        ).iter_rows()
    ]
