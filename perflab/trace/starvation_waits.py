"""The waits of threads that could run and did not, who they are, and who had their CPUs meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from perflab.kernel import cpu_list
from perflab.results.starvation import LONG_WAIT_NS
from perflab.trace import names
from perflab.trace.scope import Scope
from perflab.trace.source import Source
from perflab.trace.why_threads import FOREVER, Layer, Threads, ints, of_rows

# What is called a long wait unless something else is asked.
LONGER_THAN_NS = LONG_WAIT_NS
WAITING = ("preempted", "woken")
EXECUTOR, MIDDLEWARE, KERNEL, PROGRAM = "executor", "middleware", "kernel", "program"


def roles(trace: Source, threads: Threads) -> pl.DataFrame:
    """`thread_row` and `role`."""
    with_callbacks = np.unique(threads.process[threads.executes])
    frame = names.threads(trace).select("thread_row", "pid", process_row=pl.Series(threads.process))
    executes = pl.Series("executes", threads.executes)
    return frame.with_columns(executes).select(
        "thread_row",
        role=pl.when("executes")
        .then(pl.lit(EXECUTOR))
        .when((pl.col("process_row") >= 0) & pl.col("process_row").is_in(with_callbacks.tolist()))
        .then(pl.lit(MIDDLEWARE))
        .when(pl.col("pid").is_null())
        .then(pl.lit(KERNEL))
        .otherwise(pl.lit(PROGRAM)),
    )


def waits_of(trace: Source, scope: Scope, longer_than_ns: int) -> pl.DataFrame:
    """The long waits of all threads, in the order of time: `wait`, `thread_row`, `begin_ns`, `end_ns`, `waited_ns`,
    `began`, `ran`, `cpu_numbers` and `priority_numbers`."""
    states = trace.table("thread_states").rename({"thread": "thread_row"})
    scheduler = trace.facts["scheduler"] or {}
    last_ns = scheduler.get("end_ns")
    waiting = states.filter(pl.col("state").cast(pl.String).is_in(WAITING)).sort("thread_row", "start_ns")
    apart = (pl.col("start_ns") != pl.col("end_ns").shift(1).over("thread_row")).fill_null(True)
    merged = (
        waiting.with_columns(number=apart.cum_sum().over("thread_row"))
        .group_by("thread_row", "number", maintain_order=True)
        .agg(
            start_ns=pl.col("start_ns").min(),
            end_ns=pl.col("end_ns").max(),
            began=pl.col("state").cast(pl.String).first(),
            cpu_numbers=pl.col("cpu").drop_nulls().unique().sort(),
            priority_numbers=pl.col("priority").drop_nulls().unique().sort(),
        )
        .with_columns(ran=pl.col("end_ns") < pl.lit(last_ns, pl.Int64))
    )
    cut = scope.cut(_within_recordings(trace, merged)).with_columns(waited_ns=pl.col("end_ns") - pl.col("start_ns"))
    return (
        cut.filter(pl.col("waited_ns") >= longer_than_ns)
        .sort("start_ns", "thread_row")
        .with_row_index("wait")
        .with_columns(pl.col("wait").cast(pl.Int32))
        .rename({"start_ns": "begin_ns"})
        .drop("number")
    )


def _within_recordings(trace: Source, waits: pl.DataFrame) -> pl.DataFrame:
    """Waits end where the recording ends in which they began: what a thread did until the next one, say of another
    trial of a run, is unknown."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for part in trace.facts["traces"]:
        if part["domain"] == "kernel" and part["first_ns"] is not None:
            spans.setdefault(part["host"], []).append((part["first_ns"], part["last_ns"]))
    hosts = names.threads(trace).select("thread_row", "host")
    waits = waits.join(hosts, on="thread_row", how="left", maintain_order="left")
    for host, recordings in spans.items():
        for end_ns in _ends(recordings):
            over = (pl.col("host") == host) & (pl.col("start_ns") <= end_ns) & (pl.col("end_ns") >= end_ns)
            over = over.fill_null(False)
            waits = waits.with_columns(
                end_ns=pl.when(over).then(pl.lit(end_ns, pl.Int64)).otherwise("end_ns"), ran=pl.col("ran") & ~over
            )
    return waits.drop("host")


def _ends(recordings: list[tuple[int, int]]) -> list[int]:
    """Where one ended and none went on, but for the last."""
    ends: list[int] = []
    for first, last in sorted(recordings):
        if ends and first <= ends[-1]:
            ends[-1] = max(ends[-1], last)
        else:
            ends.append(last)
    return ends[:-1]


def held(trace: Source, threads: Threads, waits: pl.DataFrame) -> pl.DataFrame:
    """The pieces of waits in which another thread had the CPU, or it idled, with the holder's priority then."""
    holds = trace.table("holds")
    thread, begin, end = (ints(waits[column]) for column in ("thread_row", "begin_ns", "end_ns"))
    of, start, stop, row = Layer.of(holds).cut(thread, begin, end)
    keep = row >= 0
    of, start, stop, row = of[keep], start[keep], stop[keep], row[keep]
    holder = of_rows(ints(holds["holder"]), row)
    state = threads.states.at(holder, start)
    priority = of_rows(ints(trace.table("thread_states")["priority"], -FOREVER), state)
    frame = pl.DataFrame(
        {
            "wait": waits["wait"].gather(of),
            "cpu": holds["cpu"].gather(row),
            "idle": holds["idle"].gather(row).fill_null(False),
            "holder": holds["holder"].gather(row),
            "priority": pl.Series(np.where(state >= 0, priority, -FOREVER), dtype=pl.Int64),
            "held_ns": pl.Series(stop - start, dtype=pl.Int64),
        }
    )
    return frame.with_columns(pl.when(pl.col("priority") > -FOREVER).then("priority"))


def thread_words(row: Mapping[str, Any], priority: str | None = None) -> str:
    """ "thread recv (tid 21) of listener"; with its priority, where that is given."""
    process = row["process"]
    place = f" of {process} (pid {row['pid']})" if process is not None else ""
    how = ", ".join(filter(None, (f"tid {row['tid']}", priority)))
    return f"thread {row['thread'] or '(unnamed)'} ({how}){place}"


def behind_words(row: Mapping[str, Any]) -> str:
    """ " behind perflab-burn (pid 7, RT 90) on CPU 1"; empty if the holder is unknown."""
    if row["by_thread"] is None:
        return ""
    cpus = row.get("cpu_numbers") or []
    place = f" on CPU {cpu_list(cpus)}" if cpus else ""
    number = f"tid {row['by_tid']}" if row["by_pid"] is None else f"pid {row['by_pid']}"
    how = ", ".join(filter(None, (number, row["by_priorities"])))
    return f" behind {row['by_process'] or row['by_thread']} ({how}){place}"
