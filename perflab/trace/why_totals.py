"""Parts summed up: by cause, by cause and who, and in one sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import polars as pl

from perflab.trace.answer import Section
from perflab.trace.causes import CAUSES
from perflab.trace.columns import Table, count, identity, percent, text, time
from perflab.trace.names import plural
from perflab.trace.quantiles import quantile
from perflab.units import format_count, format_time

# What parts are about: messages, or callbacks. Column, plural, and what those are that were asked about.
SUBJECTS = {"message": ("messages", "late"), "callback": ("callbacks", "slow")}

MOST_NAMED = 3  # causes in the sentence
MOST_PARTS = 3  # of a message in its row
LEAST_TOLD = 0.5  # where those are the main cause of fewer, the sentence tells causes without names

_GROUP = ("cause", "group", "group_cpu", "host")


@dataclass(frozen=True)
class Tables:
    """What is said of subjects of one kind."""

    why: Table
    totals: Table
    causes: Table


def _tables(kind: str) -> Tables:
    many, late = SUBJECTS[kind]
    none = f"no {kind} was {late}"
    shares = (
        count(many, f"{many} of which it is the longest part"),
        percent(many, f"share of all {many} that were {late}"),
        time("total", f"its time in all {many} that were {late}"),
        percent("total", "share of their whole time"),
        count("having", f"{many} with such a part"),
        time("p50", f"median of the {many} that have it", "a median needs 2 values", of="each"),
        time("max", f"the longest of the {many} that have it", of="each"),
        text("stages", "where on the way it happens"),
    )
    why = Table(
        "why",
        f"Why {many} were {late}",
        (
            text("sentence", "the answer in one sentence"),
            text("limit", f"which {many} were asked about"),
            count(many, f"all {many}"),
            count(late, "of these, those that were asked about"),
            time("total", "their whole time"),
            time("unknown", "of that, the time of which the cause is not known"),
            percent("unknown", "share of that", none),
        ),
        shown=(many, late, "total_ns", "unknown_percent"),
        vertical=True,
    )
    totals = Table(
        "totals",
        "What they waited for",
        (
            text("what", "the cause, and who it was"),
            *shares,
            text("cause", "the cause alone"),
            text("who", "who it was", "nobody is named for this cause"),
            identity("cpu", "the CPU that was waited for", "not a wait for a CPU that another one had"),
            text("pids", "numbers of the processes", "neither a CPU nor a stop"),
            text("host", "host of the CPU", "the trace has one host, or as cpu"),
        ),
        shown=("what", *(column.name for column in shares)),
        spare=("stages", "each_max_ns", "having", f"{many}_percent"),
    )
    causes = Table(
        "causes",
        "By cause",
        (text("cause", "the cause"), *shares),
        spare=("stages", "each_max_ns", "having", f"{many}_percent"),
    )
    return Tables(why, totals, causes)


TABLES = {kind: _tables(kind) for kind in SUBJECTS}


@dataclass(frozen=True)
class Late:
    """The late messages (or slow callbacks) of an answer: one row each, and their parts."""

    kind: str  # of SUBJECTS
    rows: pl.DataFrame
    parts: pl.DataFrame

    @cached_property
    def causes(self) -> pl.DataFrame:
        """Per subject and group (cause, and who at the level of processes and callbacks) its time, the longest first
        (`rank` 0).
        """
        return _causes_of(self.parts, self.kind)

    @cached_property
    def by_cause(self) -> pl.DataFrame:
        """The same per subject and cause, whoever it was."""
        return _by_cause(self.parts, self.kind)

    @cached_property
    def main(self) -> pl.DataFrame:
        """Of each subject its main cause, `main_ns` of it, and its longest parts in words."""
        return _main_of(self.causes, self.kind)


def _causes_of(parts: pl.DataFrame, kind: str) -> pl.DataFrame:
    of_cpu = pl.when(pl.col("cause") == "cpu")
    return (
        parts.lazy()
        .with_columns(group_cpu=of_cpu.then("cpu"), host=of_cpu.then("host"))
        .group_by(kind, *_GROUP)
        .agg(
            pl.col("part_ns").sum().alias("ns"),
            pl.col("group_pid").drop_nulls().unique().sort().alias("pids"),
            pl.col("stage").unique().sort().alias("stages"),
            pl.col("first_ns").min(),
        )
        .sort(kind, "ns", "first_ns", *_GROUP, descending=[False, True, False, False, False, False, False])
        .with_columns(rank=pl.int_range(pl.len()).over(kind))
        .collect()
    )


def _main_of(causes: pl.DataFrame, kind: str) -> pl.DataFrame:
    longest = causes.filter(pl.col("rank") < MOST_PARTS)
    longest = longest.with_columns(pl.col("cause").cast(pl.String))
    words = pl.Series("words", [_what(row) for row in longest.iter_rows(named=True)], dtype=pl.String)
    listed = [f"{what} {format_time(ns)}" for what, ns in zip(words, longest["ns"], strict=True)]
    longest = longest.with_columns(words, pl.Series("listed", listed, dtype=pl.String))
    return longest.group_by(kind, maintain_order=True).agg(
        main_cause=pl.col("cause").first(),
        main=pl.col("words").first(),
        main_ns=pl.col("ns").first(),
        second=pl.col("words").get(1, null_on_oob=True),
        second_ns=pl.col("ns").get(1, null_on_oob=True),
        parts=pl.col("listed").str.join("; "),
    )


def verdict(found: Late, of: int, limit: str) -> Section:
    """One row, whose title is the sentence. `of`: how many there were in all, `limit`: what was asked for, in words."""
    kind, rows, parts = found.kind, found.rows, found.parts
    sentence = _sentence(found, of, limit)
    whole = int(rows["total_ns"].sum())
    unknown = int(parts.filter(pl.col("cause") == "unknown")["part_ns"].sum())
    share = 100.0 * unknown / whole if whole else None
    frame = TABLES[kind].why.frame([(sentence, limit, of, rows.height, whole, unknown, share)])
    return Section(replace(TABLES[kind].why, title=sentence), frame)


def causes_section(found: Late) -> Section:
    """Per cause, whoever it was."""
    kind = found.kind
    many, late = SUBJECTS[kind]
    frame = _with_shares(found.by_cause.group_by("cause").agg(_sums()), found.rows)
    unknown = found.parts.filter(pl.col("cause") == "unknown").group_by("reason").agg(pl.col("part_ns").sum())
    whys = unknown.sort("part_ns", "reason", descending=[True, False])["reason"].to_list()
    frame = frame.sort(["total_ns", "cause"], descending=[True, False]).rename({"main": many})
    frame = frame.rename({"main_percent": f"{many}_percent"}).select(TABLES[kind].causes.names)
    notes = [f"{many}: those of which it is the longest part; total: of all that were {late}; having: with such a part"]
    if whys:
        notes.append(f"unknown: {'; '.join(whys)}")
    return Section(TABLES[kind].causes, frame, tuple(notes) if frame.height else (f"no {kind} was {late}",))


def totals_section(found: Late) -> Section:
    """Per cause and who."""
    kind = found.kind
    many, late = SUBJECTS[kind]
    summed = _summed(found.causes)
    words = [_what(row) for row in summed.iter_rows(named=True)]
    frame = _with_shares(summed, found.rows).with_columns(pl.Series("what", words, dtype=pl.String))
    pids = pl.col("pids").cast(pl.List(pl.String)).list.join(", ")
    frame = (
        frame.rename({"main": many, "main_percent": f"{many}_percent", "group": "who", "group_cpu": "cpu"})
        .with_columns(pl.when(pids != "").then(pids).alias("pids"))
        .select(TABLES[kind].totals.names)
    )
    return Section(
        TABLES[kind].totals,
        frame,
        (f"each: of the {many} that have it",) if frame.height else (f"no {kind} was {late}",),
    )


def _sums() -> list[pl.Expr]:
    return [
        (pl.col("rank") == 0).sum().cast(pl.Int64).alias("main"),
        pl.len().cast(pl.Int64).alias("having"),
        pl.col("ns").sum().alias("total_ns"),
        quantile(pl.col("ns"), 500).alias("each_p50_ns"),
        pl.col("ns").max().alias("each_max_ns"),
        pl.col("stages").explode().unique().sort(),
    ]


def _by_cause(parts: pl.DataFrame, kind: str) -> pl.DataFrame:
    return (
        parts.lazy()
        .group_by(kind, "cause")
        .agg(
            pl.col("part_ns").sum().alias("ns"),
            pl.col("stage").unique().sort().alias("stages"),
            pl.col("first_ns").min(),
        )
        .sort(kind, "ns", "first_ns", "cause", descending=[False, True, False, False])
        .with_columns(rank=pl.int_range(pl.len()).over(kind))
        .collect()
    )


def _summed(causes: pl.DataFrame) -> pl.DataFrame:
    """One row per group over all subjects, that of the most of which it is the main cause first."""
    pids = pl.col("pids").explode().drop_nulls().unique().sort()
    frame = causes.group_by(_GROUP).agg(*_sums(), pids)
    order = ["main", "total_ns", *_GROUP]
    return frame.sort(order, descending=[True, True, False, False, False, False], nulls_last=True)


def _with_shares(frame: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    n, whole = max(rows.height, 1), max(int(rows["total_ns"].sum()), 1)
    return frame.with_columns(
        pl.col("cause").cast(pl.String),
        pl.col("stages").cast(pl.List(pl.String)).list.join(", "),
        main_percent=100.0 * pl.col("main") / n,
        total_percent=100.0 * pl.col("total_ns") / whole,
    )


# Words ----------------------------------------------------------------------------------------------------------------


def _sentence(found: Late, of: int, limit: str) -> str:
    """ "Of 204 late messages (longer than 5 ms; 12 480 in all) 151 waited for CPU 1 behind stress-ng (pid 77), ..." """
    kind, n = found.kind, found.rows.height
    many, late = SUBJECTS[kind]
    if not of:
        return f"The trace has no {many} to ask about"
    if not n:
        return f"Of {plural(of, kind)} none was {late} ({limit})"
    summed = _summed(found.causes).filter(pl.col("main") > 0)
    told = summed.head(MOST_NAMED)
    with_names = True
    if int(told["main"].sum()) < LEAST_TOLD * n:
        by_cause = found.by_cause.group_by("cause").agg(_sums()).filter(pl.col("main") > 0)
        told = by_cause.sort(["main", "total_ns", "cause"], descending=[True, True, False]).head(MOST_NAMED)
        with_names = False
    reasons = [f"{format_count(row['main'])} {_why(row, kind, with_names)}" for row in told.iter_rows(named=True)]
    if rest := n - int(told["main"].sum()):
        reasons.append(f"{format_count(rest)} for other reasons")
    head = f"Of {format_count(n)} {late} {kind if n == 1 else many} ({limit}; {format_count(of)} in all)"
    return f"{head} {', '.join(reasons)}"


def _why(row: Mapping[str, Any], kind: str, with_names: bool) -> str:
    """Of these messages or callbacks, for the sentence."""
    cause = CAUSES[str(row["cause"])]
    of_slow = kind == "callback"
    named = (of_slow and cause.slow) or cause.late
    unnamed = (of_slow and cause.slow_unnamed) or cause.late_unnamed or named
    return _worded(named if with_names else unnamed, row)


def _what(row: Mapping[str, Any]) -> str:
    return _worded(CAUSES[str(row["cause"])].what, row)


def _worded(words: str, row: Mapping[str, Any]) -> str:
    cpu, pids = row.get("group_cpu"), row.get("pids") or ()
    place = "a CPU" if cpu is None else f"CPU {cpu}"
    if row.get("host") is not None:
        place += f" of {row['host']}"
    return words.format(
        place=place, group=row.get("group"), pids=_of_processes(pids), was="was" if row.get("main") == 1 else "were"
    )


def _of_processes(pids: Sequence[int]) -> str:
    if not pids:
        return ""
    return f" (pid {pids[0]})" if len(pids) == 1 else f" ({len(pids)} processes)"
