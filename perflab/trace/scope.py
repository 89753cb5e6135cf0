"""What of a trace an answer is about: a stretch of its time, and some of its nodes and topics.

    scope = Scope.of(trace, begin="1s", end="2.5s", nodes=("/planner*",), topics=())
    callbacks(trace, scope)

The stretch is of the trace's own time, 0 is its first event. What begins in it is in the answer, whenever it ends:
callbacks that start, messages and calls that are sent, phases, wake-ups; states of threads are cut to it. Of a node are
its callbacks, the messages from it and to it, and the threads that ran its callbacks; of a topic the callbacks that
handle or publish it, its messages, and the threads of these callbacks. Names may be patterns ("/camera/*"). Losses and
coverage are those of the whole trace.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from perflab.errors import BadInput
from perflab.trace import names
from perflab.trace.source import Source
from perflab.units import format_time, parse_duration

if TYPE_CHECKING:
    import polars as pl
else:
    from perflab.late_modules import polars as pl


@dataclass(frozen=True)
class Scope:
    """Instants on the trace's time line, names as they are in the trace; None: all of it."""

    begin_ns: int | None = None
    end_ns: int | None = None
    nodes: frozenset[str] | None = None
    topics: frozenset[str] | None = None
    words: str = ""  # for people: "from 1 s to 2.5 s, node /planner"

    @classmethod
    def of(
        cls,
        trace: Source,
        *,
        begin: str | None = None,
        end: str | None = None,
        nodes: Iterable[str] = (),
        topics: Iterable[str] = (),
    ) -> Scope:
        """As the options --begin, --end, --node and --topic say it. Raises BadInput."""
        nodes, topics = tuple(nodes), tuple(topics)
        zero, last = trace.facts["begin_ns"], trace.facts["end_ns"]
        instants = [
            None if text is None else zero + parse_duration(text, option, zero_allowed=True)
            for text, option in ((begin, "--begin"), (end, "--end"))
        ]
        if instants[0] is not None and instants[0] > last:
            raise BadInput(f"--begin {begin} is after the end of the trace, which is {format_time(last - zero)} long")
        if instants[0] is not None and instants[1] is not None and instants[1] <= instants[0]:
            raise BadInput(f"--end {end} is not after --begin {begin}")
        words = []
        if begin is not None or end is not None:
            words.append(f"from {begin or 'the beginning'} to {end or 'the end'} of the trace")
        words += [f"node {name}" for name in nodes] + [f"topic {name}" for name in topics]
        return cls(
            instants[0],
            instants[1],
            _found(trace, "node", nodes, name=("nodes",)),
            _found(trace, "topic", topics, topic=("publishers", "subscriptions")),
            ", ".join(words),
        )

    @property
    def is_everything(self) -> bool:
        return self == EVERYTHING

    @property
    def has_window(self) -> bool:
        return self.begin_ns is not None or self.end_ns is not None

    @property
    def has_names(self) -> bool:
        return self.nodes is not None or self.topics is not None

    def contains(self, instant: str) -> pl.Expr:
        """Whether an instant lies in the stretch; the end does not."""
        inside = pl.lit(True)
        if self.begin_ns is not None:
            inside &= pl.col(instant) >= self.begin_ns
        if self.end_ns is not None:
            inside &= pl.col(instant) < self.end_ns
        return inside

    def within(self, frame: pl.DataFrame, instant: str) -> pl.DataFrame:
        """The rows whose instant lies in the stretch."""
        return frame.filter(self.contains(instant)) if self.has_window else frame

    def cut(self, frame: pl.DataFrame, begin: str = "start_ns", end: str = "end_ns") -> pl.DataFrame:
        """Intervals cut to the stretch; those outside of it go."""
        low, high = pl.lit(self.begin_ns, pl.Int64), pl.lit(self.end_ns, pl.Int64)
        inside = (pl.max_horizontal(begin, low).alias(begin), pl.min_horizontal(end, high).alias(end))
        return frame.with_columns(inside).filter(pl.col(begin) < pl.col(end)) if self.has_window else frame

    def bounds(self, trace: Source) -> tuple[int, int]:
        """The stretch, or the whole trace's."""
        begin, end = trace.facts["begin_ns"], trace.facts["end_ns"]
        return (
            begin if self.begin_ns is None else self.begin_ns,
            end if self.end_ns is None else min(end, self.end_ns),
        )

    def has_node(self, name: str | None) -> bool:
        return self.nodes is None or name in self.nodes

    def has_topic(self, name: str | None) -> bool:
        return self.topics is None or name in self.topics

    def edges(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Rows with the names `publisher`, `subscription` and `topic` that are of these nodes and topics."""
        return self.of_topics(self.of_nodes(frame, "publisher", "subscription"))

    def of_topics(self, frame: pl.DataFrame, column: str = "topic") -> pl.DataFrame:
        return frame if self.topics is None else frame.filter(pl.col(column).is_in(list(self.topics)))

    def of_nodes(self, frame: pl.DataFrame, *columns: str) -> pl.DataFrame:
        """Rows of which one of the columns names one of these nodes."""
        if self.nodes is None:
            return frame
        return frame.filter(pl.any_horizontal(pl.col(column).is_in(list(self.nodes)) for column in columns))

    def callbacks(self, trace: Source) -> list[int] | None:
        """The rows of the callbacks of these nodes, and that handle or publish these topics; None: all."""
        if not self.has_names:
            return None
        found = self.of_nodes(names.callbacks(trace), "node")
        if self.topics is not None:
            handles = (pl.col("kind") == "subscription") & pl.col("name").is_in(list(self.topics))
            found = found.filter(handles | pl.col("row").is_in(self._publishing(trace)))
        return found["row"].to_list()

    def _publishing(self, trace: Source) -> list[int]:
        """The rows of the callbacks that published these topics."""
        publications = trace.table("publications").filter(pl.col("callback_instance").is_not_null())
        topics = trace.table("publishers")["topic"].gather(publications["publisher"])
        chosen = publications.filter(topics.is_in(list(self.topics or ())).fill_null(False))["callback_instance"]
        return trace.table("callback_instances")["callback"].gather(chosen).drop_nulls().unique().to_list()

    def threads(self, trace: Source) -> list[int] | None:
        """The rows of the threads that ran these callbacks; None: all."""
        chosen = self.callbacks(trace)
        if chosen is None:
            return None
        instances = trace.table("callback_instances")
        return instances.filter(pl.col("callback").is_in(chosen))["thread"].drop_nulls().unique().sort().to_list()

    def of_threads(self, trace: Source, frame: pl.DataFrame, column: str = "thread_row") -> pl.DataFrame:
        """Rows of these threads."""
        chosen = self.threads(trace)
        return frame if chosen is None else frame.filter(pl.col(column).is_in(chosen))


EVERYTHING = Scope()


def since_begin(trace: Source, instant: str) -> pl.Expr:
    """An instant from the trace's beginning on, as people look for it."""
    return pl.col(instant) - (trace.facts["begin_ns"] or 0)


def _found(trace: Source, what: str, patterns: tuple[str, ...], **places: tuple[str, ...]) -> frozenset[str] | None:
    """The names that fit; `places` are columns with the tables that have them. Raises BadInput for a pattern that none
    fits.
    """
    if not patterns:
        return None
    every = {row[column] for column, tables in places.items() for table in tables for row in trace.rows(table)}
    known: list[str] = sorted(every - {None})
    chosen: set[str] = set()
    for pattern in patterns:
        fitting = [name for name in known if fnmatchcase(name, pattern)]
        if not fitting:
            raise BadInput(f"--{what}: {names.unknown(what, pattern, known)}")
        chosen.update(fitting)
    return frozenset(chosen)
