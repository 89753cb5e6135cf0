"""Who had the CPUs of some threads over a long time, in bins: what single runs are too short for.

    occupancy(trace, begin_ns, end_ns, bin_ns, tids)

A document of plain values. Its lanes are, of each of these threads, the share of each bin in which it ran, and the
share in which it was ready but did not run; then the threads that ran most on the CPUs where it ran or
waited, and all others there. Shares are percent of a bin; of `others` together they are of as many CPUs as there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from perflab.trace import names
from perflab.trace.scope import Scope
from perflab.trace.source import Source
from perflab.trace.starvation_waits import WAITING

NEIGHBOURS = 6  # with a lane of their own
RUNS, WAITS, NEIGHBOUR, OTHERS = "runs", "waits", "neighbour", "others"
_RUNNING = "running"

Json = dict[str, Any]


def occupancy(trace: Source, begin_ns: int, end_ns: int, bin_ns: int, tids: Sequence[int]) -> Json:
    """`lanes`, each with its `kind`, `thread`, `tid`, `process` and `shares`; `cpus` are where these threads were."""
    edges = np.arange(begin_ns, end_ns + bin_ns, bin_ns)
    who = {row["thread_row"]: row for row in names.threads(trace).iter_rows(named=True)}
    mine = [row for tid in tids for row, thread in who.items() if thread["tid"] == tid]
    states = (
        Scope(begin_ns=begin_ns, end_ns=end_ns)
        .cut(trace.table("thread_states"))
        .with_columns(pl.col("state").cast(pl.String))
    )
    own = states.filter(pl.col("thread").is_in(mine))
    cpus = own["cpu"].drop_nulls().unique().sort().to_list()
    there = states.filter(pl.col("state") == _RUNNING, pl.col("cpu").is_in(cpus), ~pl.col("thread").is_in(mine))
    ran = there.group_by("thread").agg(ns=(pl.col("end_ns") - pl.col("start_ns")).sum()).sort("ns", "thread")
    beside = ran["thread"].reverse().head(NEIGHBOURS).to_list()
    lanes: list[Json] = []
    for row in mine:
        of = own.filter(pl.col("thread") == row)
        lanes += [
            _lane(kind, who[row], of.filter(pl.col("state").is_in(states)), edges)
            for kind, states in ((RUNS, (_RUNNING,)), (WAITS, WAITING))
        ]
    lanes += [_lane(NEIGHBOUR, who[row], there.filter(pl.col("thread") == row), edges) for row in beside]
    lanes.append(_lane(OTHERS, {}, there.filter(~pl.col("thread").is_in(beside)), edges, max(1, len(cpus))))
    return {"begin_ns": begin_ns, "bin_ns": bin_ns, "cpus": cpus, "lanes": lanes}


def _lane(kind: str, thread: Json, states: pl.DataFrame, edges: np.ndarray[Any, Any], of: int = 1) -> Json:
    shares = 100.0 * spent(states["start_ns"].to_numpy(), states["end_ns"].to_numpy(), edges) / np.diff(edges) / of
    named = {key: thread.get(key) for key in ("thread", "tid", "process")}
    return {"kind": kind, **named, "shares": np.rint(shares).astype(int).tolist()}


def spent(starts: Any, ends: Any, edges: Any) -> Any:
    """How much of each bin between `edges` intervals take together; they may overlap.

    >>> spent(np.array([5, 12]), np.array([12, 13]), np.array([0, 10, 20])).tolist()
    [5.0, 3.0]
    """

    def until(instants: Any) -> Any:
        """The time since each of these instants, added up, at each edge."""
        ordered = np.sort(instants).astype(float)
        sums = np.concatenate([[0.0], np.cumsum(ordered)])
        n = np.searchsorted(ordered, edges)
        return n * edges - sums[n]

    return np.diff(until(starts) - until(ends))
