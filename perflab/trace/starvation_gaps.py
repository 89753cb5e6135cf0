"""Stretches in which a callback did not come while a thread starved, and what stood between.

A stretch lasts from one start of a callback to the next one; the first of a subscription from when it is known. It is
reported if one of these is true:
  chain   the message that ended it, or one that this one was published for, waited for the CPU of a starving thread
  lost    messages of its topic were published meanwhile and never handled by it, and a thread starved of its process,
          or of one that publishes that topic
  timer   it is a timer's, longer than its period by the threshold, and its own thread starved
The chain is that of the message that ended it: the message, the one that was handled by the callback in which it was
published, and so on, back to the tick of a timer, or the beginning of the stretch. Its parts are those of `why`. Before
it were messages that never arrived: of these only the starved threads are known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from perflab.trace import names, why
from perflab.trace.answer import Section
from perflab.trace.columns import Table, because, count, identity, text, time
from perflab.trace.messages import Deliveries
from perflab.trace.quality import Quality
from perflab.trace.scope import Scope
from perflab.trace.source import Source
from perflab.trace.starvation_waits import behind_words, thread_words
from perflab.trace.why_path import STAGES
from perflab.trace.why_threads import Threads
from perflab.units import format_time, plural

Json = Mapping[str, Any]

_STARVED = because(
    "not known",
    text("thread", "the thread that starved for the longest time of it"),
    identity("tid", "its number"),
    text("process", "its process"),
    identity("pid", "number of that"),
    text("by_process", "process of the thread that had its CPU"),
    text("by_thread", "that thread"),
    identity("by_tid", "its number"),
    text("by_priorities", "its priority then, as people set it"),
)
STRETCHES = Table(
    "stretches",
    "Stretches in which a callback did not come",
    (
        count("stretch", "number of the stretch"),
        text("callback", "the callback"),
        text("topic", "its topic", "only subscriptions have a topic"),
        time("at", "when it began, from the beginning of the trace"),
        time("begin", "the same on the trace's clock"),
        time("end", "when the callback came, on the trace's clock"),
        time("length", "how long it was"),
        time("chain", "of that, what the way of the message that ended it took", "no message ended it"),
        time("starved", "how long the thread that is named starved within it"),
        count("not_handled", "messages of its topic that were published meanwhile, and that it never handled"),
        *_STARVED,
        text("sentence", "what stood between, in one sentence"),
    ),
    shown=(
        "callback", "at_ns", "length_ns", "chain_ns", "starved_ns", "not_handled", "thread", "tid", "by_process",
        "by_priorities",
    ),
    spare=("chain_ns", "by_priorities"),
)  # fmt: skip
CHAIN = Table(
    "chain",
    "What stood between",
    (
        count("stretch", "number of the stretch"),
        text("edge", "who published the message, and who handled it"),
        text("topic", "its topic"),
        time("at", "when the part began, from the beginning of the stretch"),
        time("part", "how long"),
        text("stage", f"where on the way: {', '.join(STAGES)}"),
        text("cause", "the cause, as of `why`"),
        text("who", "who it was", "nobody is named for this cause"),
        identity("cpu", "the CPU that was waited for", "not a wait for a CPU"),
        *because(
            "the way was not in the hands of a thread",
            text("of_thread", "the thread that had the way in its hands"),
            identity("of_tid", "its number"),
            text("of_process", "its process"),
        ),
        time("first", "when it began, on the trace's clock"),
    ),
    shown=("stretch", "topic", "at_ns", "part_ns", "cause", "who", "cpu", "of_thread", "of_tid"),
)

TABLES = (STRETCHES, CHAIN)


LEAST_TOLD = 0.01  # of all parts of its stretch: what is shorter a terminal leaves out


def short_chain(section: Section) -> Section:
    """The section `chain` without its short parts; any other as it is."""
    if section.name != CHAIN.name or not section.frame.height:
        return section
    long = pl.col("part_ns") >= LEAST_TOLD * pl.col("part_ns").sum().over("stretch")
    frame = section.frame.filter(long)
    left_out = section.frame.height - frame.height
    notes = (
        (*section.notes, f"{plural(left_out, 'part')} of less than 1 % left out: --all") if left_out else section.notes
    )
    return replace(section, content=frame, notes=notes)


@dataclass(frozen=True)
class Gaps:
    frame: pl.DataFrame  # of STRETCHES
    chain: pl.DataFrame  # of CHAIN

    def sections(self) -> tuple[Section, Section]:
        told = () if self.frame.height else ("no callback stayed away while a thread starved",)
        no_chain = () if self.chain.height else ("no message that was handled waited for a thread that starved",)
        return (
            Section(
                STRETCHES, self.frame.sort("length_ns", "stretch", descending=[True, False]), told, hidden=("tid",)
            ),
            Section(CHAIN, self.chain, no_chain),
        )


@dataclass(frozen=True)
class _Stretch:
    """Of a callback; `instance` is the row that ended it."""

    callback: int
    instance: int
    begin_ns: int
    end_ns: int
    thread: int | None

    @property
    def length_ns(self) -> int:
        return self.end_ns - self.begin_ns


def gaps(
    trace: Source,
    scope: Scope,
    quality: Quality,
    threads: Threads,
    waits: pl.DataFrame,
    longer_than_ns: int,
    pids: Collection[int],
) -> Gaps:
    """`waits` are the long waits with their holders."""
    if not waits.height or not trace.table("callback_instances").height:
        return Gaps(STRETCHES.frame([]), CHAIN.frame([]))
    starving = _Starving(waits)
    mine = names.callbacks(trace)
    if pids:
        mine = mine.filter(pl.col("pid").is_in(list(pids)))
    if (chosen := scope.callbacks(trace)) is not None:
        mine = mine.filter(pl.col("row").is_in(chosen))
    of_callback = {row["row"]: row for row in mine.iter_rows(named=True)}
    stretches = [
        stretch
        for stretch in _stretches(trace, scope, longer_than_ns)
        if stretch.callback in of_callback and starving.overlaps(stretch, longer_than_ns)
    ]
    messages = why.numbered(why.considered(trace, why.Selection(later_than_ns=-1), quality), pl.lit(True))
    ways = _Ways(messages)
    chains = {stretch: ways.back(stretch.instance, stretch.begin_ns) for stretch in stretches}
    needed = sorted({subject for chain in chains.values() for subject in chain})
    parts = _parts(trace, messages, needed, threads)
    carriers = {part["thread_row"] for told in parts.values() for part in told if starving.held_up(part)}
    unhandled = _Unhandled(trace, Deliveries(trace, quality))
    zero_ns = int(trace.facts["begin_ns"] or 0)
    rows: list[Json] = []
    links: list[Json] = []
    for stretch in stretches:
        callback, chain = of_callback[stretch.callback], chains[stretch]
        of_chain = [(subject, part) for subject in reversed(chain) for part in parts.get(subject, ())]
        of_chain = [(s, p) for s, p in of_chain if p["first_ns"] + p["part_ns"] > stretch.begin_ns]
        held = [part for _, part in of_chain if starving.held_up(part)]
        lost = unhandled.within(callback, stretch)
        longest = max(held, key=lambda part: int(part["part_ns"]), default=None)
        row = None
        if longest is not None:
            row = starving.longest(stretch, pl.col("thread_row") == longest["thread_row"])
        elif lost:
            around = pl.col("pid").is_in([callback["pid"], *unhandled.publishers(callback)])
            # A thread that is known to have carried messages, else any of these processes.
            row = starving.longest(stretch, around & pl.col("thread_row").is_in(list(carriers)))
            row = row or starving.longest(stretch, around)
        elif callback["period_ns"] is not None and stretch.length_ns > callback["period_ns"] + longer_than_ns:
            row = starving.longest(stretch, pl.col("thread_row") == stretch.thread)
        if row is None or row["overlap_ns"] < longer_than_ns:
            continue
        begins = [int(messages["begin_ns"][subject]) for subject in chain]
        chain_ns = stretch.end_ns - max(stretch.begin_ns, min(begins)) if begins else None
        of_thread = sum(part["part_ns"] for part in held if part["thread_row"] == row["thread_row"])
        links += [_link(len(rows), stretch, part, messages["edge"][subject]) for subject, part in of_chain]
        rows.append(_row(len(rows), stretch, callback, row, chain_ns, lost, of_thread, zero_ns))
    return Gaps(STRETCHES.frame(rows), CHAIN.frame(links))


def _stretches(trace: Source, scope: Scope, longer_than_ns: int) -> Iterator[_Stretch]:
    """From start to start of each callback, those that are as long as that and touch the scope's time."""
    known = trace.table("callbacks").with_row_index("callback").filter(pl.col("kind") == "subscription")
    known = known.select(pl.col("callback").cast(pl.Int32), known_ns="valid_from_ns")
    first_ns, last_ns = scope.bounds(trace)
    long = (
        trace.table("callback_instances")
        .with_row_index("instance")
        .filter(pl.col("callback").is_not_null())
        .sort("callback", "start_ns")
        .join(known, on="callback", how="left", maintain_order="left")
        .with_columns(begin_ns=pl.coalesce(pl.col("start_ns").shift(1).over("callback"), "known_ns"))
        .filter(pl.col("start_ns") - pl.col("begin_ns") >= longer_than_ns)
        .filter(pl.col("start_ns") > first_ns, pl.col("begin_ns") < last_ns)
        .sort("begin_ns", "callback")
    )
    for row in long.iter_rows(named=True):
        yield _Stretch(row["callback"], row["instance"], row["begin_ns"], row["start_ns"], row["thread"])


class _Starving:
    """The long waits, asked about stretches."""

    def __init__(self, waits: pl.DataFrame) -> None:
        self._waits = waits

    def within(self, begin_ns: int, end_ns: int) -> pl.DataFrame:
        """Those that overlap it, with how long each does."""
        overlap = pl.min_horizontal("end_ns", pl.lit(end_ns)) - pl.max_horizontal("begin_ns", pl.lit(begin_ns))
        return self._waits.with_columns(overlap_ns=overlap).filter(pl.col("overlap_ns") > 0)

    def overlaps(self, stretch: _Stretch, longer_than_ns: int) -> bool:
        longest: Any = self.within(stretch.begin_ns, stretch.end_ns)["overlap_ns"].max()
        return longest is not None and longest >= longer_than_ns

    def held_up(self, part: Json) -> bool:
        """Whether a part of a chain lies in a long wait of its thread."""
        if part["cause"] != "cpu" or part["thread_row"] is None:
            return False
        found = self.within(part["first_ns"], part["first_ns"] + 1)
        return bool((found["thread_row"] == part["thread_row"]).any())

    def longest(self, stretch: _Stretch, which: pl.Expr) -> Json | None:
        """Of the threads that are asked about the one that starved longest within it: its longest wait, `overlap_ns` of
        that, and `starved_ns`, its waits together."""
        found = self.within(stretch.begin_ns, stretch.end_ns).filter(which)
        together = pl.col("overlap_ns").sum().over("thread_row")
        found = found.with_columns(starved_ns=together).sort(
            "starved_ns", "overlap_ns", "wait", descending=[True, True, False]
        )
        return found.row(0, named=True) if found.height else None


class _Ways:
    """Messages by the callbacks that handled them."""

    def __init__(self, messages: pl.DataFrame) -> None:
        handled = messages["callback_instance"].to_list()
        self._of_instance = {instance: subject for subject, instance in enumerate(handled) if instance is not None}
        self._published_in = messages["published_in"].to_list()
        self._begin_ns = messages["begin_ns"].to_list()

    def back(self, instance: int, begin_ns: int) -> list[int]:
        """The message that a callback handled, the one that this was published for, and so on; the last one first."""
        chain: list[int] = []
        at: int | None = instance
        while at is not None and (subject := self._of_instance.get(at)) is not None and subject not in chain:
            chain.append(subject)
            at = self._published_in[subject] if self._begin_ns[subject] > begin_ns else None
        return chain


class _Unhandled:
    """Messages that a subscription never handled."""

    def __init__(self, trace: Source, deliveries: Deliveries) -> None:
        topics = names.objects(trace, "publishers").select(publisher_row="row", topic="topic", pid="pid")
        self._published = deliveries.publications.join(topics, on="publisher_row", how="left", maintain_order="left")
        self._handled = deliveries.handled.select("publication", "subscription_row")

    def within(self, callback: Json, stretch: _Stretch) -> int:
        if callback["kind"] != "subscription":
            return 0
        mine = self._published.filter(
            pl.col("topic") == callback["name"],
            pl.col("published_ns").is_between(stretch.begin_ns, stretch.end_ns, closed="left"),
        )
        handled = self._handled.filter(pl.col("subscription_row") == callback["owner"])
        return mine.join(handled, on="publication", how="anti").height

    def publishers(self, callback: Json) -> list[int]:
        """The numbers of the processes that publish its topic."""
        return self._published.filter(pl.col("topic") == callback["name"])["pid"].drop_nulls().unique().to_list()


def _parts(trace: Source, messages: pl.DataFrame, needed: Sequence[int], threads: Threads) -> dict[int, list[Json]]:
    """The parts of these messages in the order of time, by their numbers."""
    if not needed:
        return {}
    asked = messages[list(needed)].with_columns(subject=pl.int_range(len(needed), dtype=pl.Int32))
    found: dict[int, list[Json]] = {}
    for part in why.parts_of_messages(trace, asked, threads).sort("subject", "first_ns").iter_rows(named=True):
        found.setdefault(needed[part["subject"]], []).append(part)
    return found


def _row(
    number: int, stretch: _Stretch, callback: Json, row: Json, chain_ns: int | None, lost: int, held: int, zero_ns: int
) -> dict[str, Any]:
    sentence = (
        f"callback {callback['label']} did not come for {format_time(stretch.length_ns)}: {thread_words(row)} could"
        f" run and did not for {format_time(row['overlap_ns'])}{behind_words(row)}"
    )
    if held:
        sentence += f"; the message that ended it waited for that thread for {format_time(held)}"
    if lost:
        sentence += f"; {plural(lost, 'message')} published meanwhile {'was' if lost == 1 else 'were'} never handled"
    return {
        "stretch": number,
        "callback": callback["label"],
        "topic": callback["name"] if callback["kind"] == "subscription" else None,
        "at_ns": stretch.begin_ns - zero_ns,
        "begin_ns": stretch.begin_ns,
        "end_ns": stretch.end_ns,
        "length_ns": stretch.length_ns,
        "chain_ns": chain_ns,
        "starved_ns": row["starved_ns"],
        "not_handled": lost,
        **{column.name: row[column.name] for column in _STARVED},
        "sentence": sentence,
    }


def _link(number: int, stretch: _Stretch, part: Json, edge: str) -> Json:
    copied = ("part_ns", "stage", "cause", "who", "cpu", "of_thread", "of_tid", "of_process", "topic", "first_ns")
    return {
        "stretch": number, "edge": edge, "at_ns": part["first_ns"] - stretch.begin_ns,
        **{name: part[name] for name in copied},
    }  # fmt: skip
