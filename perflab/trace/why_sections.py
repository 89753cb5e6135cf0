"""The tables of `why`: late messages or slow callbacks with their parts, summed up by cause and by thread, and as a
sentence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import polars as pl

from perflab.trace import names
from perflab.trace.answer import Section
from perflab.trace.causes import CAUSES
from perflab.trace.columns import Table, because, count, identity, percent, text, time
from perflab.trace.names import TID
from perflab.trace.quantiles import quantile
from perflab.units import format_count, format_time, plural

# What parts are about: messages, or callbacks. Column, plural, and what those are that were asked about.
SUBJECTS = {"message": ("messages", "late"), "callback": ("callbacks", "slow")}

MOST_NAMED = 3  # causes in the sentence
MOST_PARTS = 3  # of a message in its row
LEAST_TOLD = 0.5  # where those are the main cause of fewer, the sentence tells causes without names

_GROUP = ("cause", "group", "group_cpu", "host")

_EDGE = (text("edge", "who publishes, and who subscribes"), text("topic", "the topic"))
_DELIVERY = text("delivery", "the way between them")
_CAUSE = text("cause", f"the cause: {', '.join(CAUSES)}")

BY_EDGE = Table(
    "by_edge",
    "By edge",
    (
        *_EDGE,
        _DELIVERY,
        count("messages", "messages that a callback handled"),
        count("late", "of these, those that were asked about"),
        time("p50", "median of the responses of all messages", "a median needs 2 values", of="response"),
        time("longest", "the longest response"),
        time("longest_at", "when that message was handled, from the beginning of the trace"),
        time("total", "responses of the late messages"),
        text("mostly", "the main cause of most of the late messages"),
        count("of_these", "of how many of them"),
        text("publisher", "node of the publisher", names.NO_PUBLISHER),
        text("subscription", "node of the subscription", names.NO_SUBSCRIBER),
    ),
    shown=(
        "edge", "topic", "messages", "late", "response_p50_ns", "longest_ns", "longest_at_ns", "mostly", "of_these",
    ),
    spare=("response_p50_ns", "of_these", "longest_at_ns"),
)  # fmt: skip

_MAIN = (
    time("at", "when it was over, from the beginning of the trace"),
    time("total", "its whole time"),
    time("main", "the part of its main cause"),
    text("main", "the main cause, and who it was"),
    *because(
        "all of it has one cause", time("second", "the part of the next cause"), text("second", "that, and who it was")
    ),
    percent("main", "share of the main cause"),
    text("parts", "its longest parts"),
)
_MAIN_SHOWN = ("at_ns", "total_ns", "main_ns", "main", "second_ns", "second")
_MAIN_CAUSE = text("main_cause", "the main cause alone")
_SUBJECTS = {
    "message": Table(
        "messages",
        "Late messages, the longest first",
        (
            *_EDGE,
            *_MAIN,
            count("message", "number of the message"),
            _DELIVERY,
            time("latency", "publish() to callback_start"),
            text("begin", "what its time begins with"),
            time("begin", "when that was, on the trace's clock"),
            time("published", "publish(), on the trace's clock"),
            time("sent", "the write, on the trace's clock"),
            time("arrived", "the take, on the trace's clock"),
            time("started", "callback_start, on the trace's clock"),
            _MAIN_CAUSE,
        ),
        shown=("edge", "topic", *_MAIN_SHOWN),
        spare=("second", "second_ns", "at_ns", "topic"),
    ),
    "callback": Table(
        "callbacks",
        "Slow callbacks, the longest first",
        (
            text("of", "the callback"),
            *_MAIN,
            count("callback", "number of the instance"),
            text("node", "its node", "the owner of the callback is not in the trace"),
            text("topic", "its topic", "only subscriptions have a topic"),
            time("start", "callback_start, on the trace's clock"),
            time("end", "callback_end, on the trace's clock"),
            text("of_thread", "its thread", "the name of the thread is not in the trace"),
            TID,
            _MAIN_CAUSE,
        ),
        shown=("of", *_MAIN_SHOWN),
        spare=("second", "second_ns", "at_ns"),
    ),
}


def _tables(kind: str) -> dict[str, Table]:
    many, late = SUBJECTS[kind]
    none = f"no {kind} was {late}"
    unnamed = "nobody is named for this cause"
    nobody = "no thread was held up, or had the CPU"
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
    spare = ("stages", "each_max_ns", "having", f"{many}_percent")
    verdict = Table(
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
            _CAUSE,
            text("who", "who it was", unnamed),
            identity("cpu", "the CPU that was waited for", "not a wait for a CPU that another one had"),
            text("pids", "numbers of the processes", "neither a CPU nor a stop"),
            text("host", "host of the CPU", "the trace has one host, or as cpu"),
        ),
        shown=("what", *(column.name for column in shares)),
        spare=spare,
    )
    parts = Table(
        "parts",
        f"Parts of the {many}",
        (
            count(kind, f"number of the {kind}"),
            text("stage", "where on the way"),
            _CAUSE,
            text("who", "who it was", unnamed),
            identity("cpu", "the CPU that was waited for", "not a wait for a CPU, or the CPU is not known"),
            time("part", "how long"),
            text(
                "during", "in which callback or phase", "neither a callback nor a phase of an executor is known there"
            ),
            text("reason", "remarks on it", "there are no remarks"),
            count("pieces", "pieces that the part has"),
            time("first", "when the first of them began, on the trace's clock"),
            *because(
                "the way was not in the hands of a thread",
                text("of_thread", "the thread that had the way in its hands"),
                identity("of_tid", "its number"),
                text("of_process", "its process"),
                identity("of_pid", "number of that"),
            ),
            *because(
                nobody,
                text("by_thread", "the thread that had the CPU, or held it up"),
                identity("by_tid", "its number"),
                text("by_process", "its process"),
                identity("by_pid", "number of that"),
            ),
            text("group", "who it was, at the level of processes and callbacks", unnamed),
            identity("group_pid", "number of that process", nobody),
            text("host", "host of the CPU", "the trace has one host, or as cpu"),
        ),
        shown=(kind, "stage", "cause", "who", "cpu", "part_ns", "during", "of_thread", "of_tid", "reason"),
        spare=("of_tid", "reason", "of_thread"),
    )
    by_edge = (BY_EDGE,) if kind == "message" else ()
    tables = (verdict, totals, Table("causes", "By cause", (_CAUSE, *shares), spare=spare), *by_edge, _SUBJECTS[kind])
    return {table.name: table for table in (*tables, parts)}


TABLES = {kind: _tables(kind) for kind in SUBJECTS}


@dataclass(frozen=True)
class Late:
    """The late messages (or slow callbacks) of an answer, and their parts."""

    kind: str  # of SUBJECTS
    rows: pl.DataFrame  # one per `subject`, with the columns of its table but for what its parts tell
    parts: pl.DataFrame
    of: int  # how many there are in all
    limit: str  # what was asked for, in words
    notes: tuple[str, ...]
    edges: pl.DataFrame | None = None  # of messages: `edge_row`, `messages` and `response_p50_ns`, and who its ends are

    def sections(self) -> tuple[Section, ...]:
        many, late = SUBJECTS[self.kind]
        totals = self.summed(_GROUP)
        pids = pl.col("pids").cast(pl.List(pl.String)).list.join(", ")
        totals = totals.with_columns(
            _described(totals, "what"), pl.when(pids != "").then(pids).alias("pids"), who="group", cpu="group_cpu"
        )
        causes = self.summed(("cause",)).sort("total_ns", "cause", descending=[True, False])
        unknown = self.parts.filter(pl.col("cause") == "unknown").group_by("reason").agg(pl.col("part_ns").sum())
        whys = unknown.sort("part_ns", "reason", descending=[True, False])["reason"].to_list()
        of_causes = (
            f"{many}: those of which it is the longest part; total: of all that were {late}; having: with such a part",
            *([f"unknown: {'; '.join(whys)}"] if whys else []),
        )
        subjects = (
            self.rows.join(self.main, on="subject", how="left", maintain_order="left")
            .with_columns(main_percent=100.0 * pl.col("main_ns") / pl.col("total_ns"))
            .sort("total_ns", "subject", descending=[True, False])
        )
        made: list[tuple[str, pl.DataFrame, tuple[str, ...]]] = [
            ("totals", totals, (f"each: of the {many} that have it",)),
            ("causes", causes, of_causes),
            (many, subjects, self.notes),
            ("parts", self.parts, (f"the parts of a {self.kind} add up to its total",)),
        ]
        if self.edges is not None:
            note = "mostly: the main cause of most of the late messages of the edge, of_these of them"
            made.insert(2, ("by_edge", self._by_edge(self.edges), (note,)))
        sections = [self._verdict()]
        for name, frame, notes in made:
            table = TABLES[self.kind][name]
            rows = frame.rename({"subject": self.kind}, strict=False).select(table.names)
            sections.append(Section(table, rows, notes if rows.height else (f"no {self.kind} was {late}",)))
        return tuple(sections)

    # What their parts tell --------------------------------------------------------------------------------------------

    @cached_property
    def groups(self) -> pl.DataFrame:
        """Per subject and group (cause, and who at the level of processes and callbacks) its time, the longest first
        (`rank` 0)."""
        return self._by(_GROUP)

    def _by(self, group: tuple[str, ...]) -> pl.DataFrame:
        of_cpu = pl.when(pl.col("cause") == "cpu")
        return (
            self.parts.lazy()
            .with_columns(group_cpu=of_cpu.then("cpu"), host=of_cpu.then("host"))
            .group_by("subject", *group)
            .agg(
                pl.col("part_ns").sum().alias("ns"),
                pl.col("group_pid").drop_nulls().unique().sort().alias("pids"),
                pl.col("stage").unique().sort().alias("stages"),
                pl.col("first_ns").min(),
            )
            .sort("subject", "ns", "first_ns", *group, descending=[False, True, False, *(False for _ in group)])
            .with_columns(rank=pl.int_range(pl.len()).over("subject"))
            .collect()
        )

    def summed(self, group: tuple[str, ...]) -> pl.DataFrame:
        """One row per group over all subjects, that of the most of which it is the main cause first; these are in the
        column `messages` or `callbacks`."""
        many, _ = SUBJECTS[self.kind]
        n, whole = max(self.rows.height, 1), max(int(self.rows["total_ns"].sum()), 1)
        return (
            (self.groups if group == _GROUP else self._by(group))
            .group_by(group)
            .agg(
                (pl.col("rank") == 0).sum().cast(pl.Int64).alias(many),
                pl.len().cast(pl.Int64).alias("having"),
                pl.col("ns").sum().alias("total_ns"),
                quantile(pl.col("ns"), 500).alias("each_p50_ns"),
                pl.col("ns").max().alias("each_max_ns"),
                pl.col("stages", "pids").explode().drop_nulls().unique().sort(),
            )
            .sort(many, "total_ns", *group, descending=[True, True, *(False for _ in group)], nulls_last=True)
            .with_columns(
                pl.col("cause").cast(pl.String),
                pl.col("stages").cast(pl.List(pl.String)).list.join(", "),
                (100.0 * pl.col(many) / n).alias(f"{many}_percent"),
                total_percent=100.0 * pl.col("total_ns") / whole,
            )
        )

    @cached_property
    def main(self) -> pl.DataFrame:
        """Of each subject its main cause, `main_ns` of it, and its longest parts in words."""
        longest = self.groups.filter(pl.col("rank") < MOST_PARTS).with_columns(pl.col("cause").cast(pl.String))
        longest = longest.with_columns(_described(longest, "words"))
        listed = [f"{what} {format_time(ns)}" for what, ns in longest.select("words", "ns").iter_rows()]
        longest = longest.with_columns(pl.Series("listed", listed, dtype=pl.String))
        return longest.group_by("subject", maintain_order=True).agg(
            main_cause=pl.col("cause").first(),
            main=pl.col("words").first(),
            main_ns=pl.col("ns").first(),
            second=pl.col("words").get(1, null_on_oob=True),
            second_ns=pl.col("ns").get(1, null_on_oob=True),
            parts=pl.col("listed").str.join("; "),
        )

    def _verdict(self) -> Section:
        """One row, whose title is the sentence."""
        sentence = self._sentence()
        whole = int(self.rows["total_ns"].sum())
        unknown = int(self.parts.filter(pl.col("cause") == "unknown")["part_ns"].sum())
        share = 100.0 * unknown / whole if whole else None
        table = replace(TABLES[self.kind]["why"], title=sentence)
        return Section(table, table.frame([(sentence, self.limit, self.of, self.rows.height, whole, unknown, share)]))

    def _sentence(self) -> str:
        """ "Of 204 late messages (longer than 5 ms; 12 480 in all) 151 waited for CPU 1 behind hog (pid 77), ..." """
        n = self.rows.height
        many, late = SUBJECTS[self.kind]
        if not self.of:
            return f"The trace has no {many} to ask about"
        if not n:
            return f"Of {plural(self.of, self.kind)} none was {late} ({self.limit})"
        told = self.summed(_GROUP).filter(pl.col(many) > 0).head(MOST_NAMED)
        named = int(told[many].sum()) >= LEAST_TOLD * n
        if not named:
            told = self.summed(("cause",)).filter(pl.col(many) > 0).head(MOST_NAMED)
        reasons = [
            f"{format_count(row[many])} "
            f"{CAUSES[row['cause']].told(row, row[many], slow=self.kind == 'callback', named=named)}"
            for row in told.iter_rows(named=True)
        ]
        if rest := n - int(told[many].sum()):
            reasons.append(f"{format_count(rest)} for other reasons")
        head = f"Of {format_count(n)} {late} {self.kind if n == 1 else many}"
        return f"{head} ({self.limit}; {format_count(self.of)} in all) {', '.join(reasons)}"

    def _by_edge(self, edges: pl.DataFrame) -> pl.DataFrame:
        main = self.rows.select("subject", "edge_row", "total_ns", "at_ns").join(self.main, on="subject", how="left")
        grouped = main.group_by("edge_row", "main").agg(n=pl.len().cast(pl.Int64), ns=pl.col("main_ns").sum())
        first = (
            grouped.sort("edge_row", "n", "ns", "main", descending=[False, True, True, False])
            .group_by("edge_row", maintain_order=True)
            .agg(mostly=pl.col("main").first(), of_these=pl.col("n").first())
        )
        lateness = main.group_by("edge_row").agg(
            late=pl.len().cast(pl.Int64),
            total_ns=pl.col("total_ns").sum(),
            longest_ns=pl.col("total_ns").max(),
            longest_at_ns=pl.col("at_ns").get(pl.col("total_ns").arg_max()),
        )
        return (
            lateness.join(first, on="edge_row", how="left")
            .join(edges, on="edge_row", how="left")
            .sort("late", "total_ns", "edge", "topic", descending=[True, True, False, False], nulls_last=True)
        )


def _described(groups: pl.DataFrame, name: str) -> pl.Series:
    """The cause of each group, and who it was."""
    return pl.Series(name, [CAUSES[row["cause"]].described(row) for row in groups.iter_rows(named=True)], pl.String)
