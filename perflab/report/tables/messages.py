"""Tables about messages: all of a result together, edges, services, where every message went."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from perflab.columns import Cell, Column, Table
from perflab.quantity import BYTES, COUNT, DATA_RATE, FREQUENCY, KILOBYTES, PER_SECOND, PERCENT, PLAIN, SYMBOL, TIME
from perflab.results.figure import Distribution
from perflab.results.trial import (
    AllocationSite,
    Counts,
    EdgeResult,
    ProcessResources,
    Resources,
    Result,
    ServiceResult,
    Totals,
    added,
    counted,
    expected,
    least_lost,
    owners,
    received,
)
from perflab.statistics.allocation_sites import callers
from perflab.statistics.metrics import cpu_per_message, per_second, received_bytes
from perflab.units import format_duration

R = TypeVar("R")
Part = TypeVar("Part")

ONE_CPU = "100 % is one CPU"


@dataclass(frozen=True)
class Of(Generic[R]):
    """A record, with the names of its result and of its run if there are several of them."""

    record: R
    result: str = ""
    run: str = ""

    def parts(self, of: Callable[[R], Iterable[Part]], *, named: bool = True) -> Iterator[Of[Part]]:
        return (Of(part, self.result if named else "", self.run) for part in of(self.record))


Times = Callable[[Any], Distribution | None]  # of a record


def result_column(rank: int | None = None) -> Column[Any]:
    return Column("result", "result", lambda row: row.result, rank=rank)


RUN: Column[Any] = Column("run", "run", lambda row: row.run)


def times(group: str, of: Times, ranks: Mapping[str, int | None], help_: str = "") -> list[Column[Any]]:
    """A column for each statistic of a distribution."""

    def column(statistic: str, rank: int | None) -> Column[Any]:
        def read(row: Any) -> float | None:
            found = of(row.record)
            return None if found is None else getattr(found, statistic)

        return Column(
            name="_".join(filter(None, (group.replace(" ", "_"), statistic))),
            header=statistic.replace("_", "."), group=group, read=read, quantity=TIME, rank=rank, help=help_,
        )  # fmt: skip

    return [column(statistic, rank) for statistic, rank in ranks.items()]


# The delivery of messages of one edge or service, and their period.
_COUNTS: tuple[Column[Any], ...] = (
    Column("rate", "Hz", lambda row: row.record.frequency_hz or None, FREQUENCY, rank=13),
    Column("sent", "sent", lambda row: row.record.sent, COUNT, rank=12),
    Column("received", "received", lambda row: row.record.received, COUNT, rank=2),
    Column("lost", "lost", lambda row: least_lost(row.record), COUNT, rank=3, tone="bad"),
    Column("late", "late", lambda row: row.record.late, COUNT, rank=10, tone="warn"),
    Column("too_late", "too late", lambda row: row.record.too_late, COUNT, rank=11, tone="bad"),
)


def edges(rows: Sequence[Of[EdgeResult]]) -> Table[Of[EdgeResult]]:
    name: Column[Any] = Column("edge", "publisher → subscription", _ends("publisher", "subscription"), rank=0)
    size: Column[Any] = Column("size", "size", lambda row: row.record.size_bytes, BYTES, rank=14)
    response = times("response", lambda edge: edge.response_ns, {"p50": 9, "p99": 8, "max": 9})
    return Table("edges", "Edges", [name, *_flow("topic", size), *_own_times("latency", rows), *response], rows)


def services(rows: Sequence[Of[ServiceResult]]) -> Table[Of[ServiceResult]]:
    name: Column[Any] = Column("service_edge", "client → server", _ends("client", "server"), rank=0)
    said: list[Column[Any]] = [Column("answers", "answers", lambda row: _answers(row.record), rank=8, optional=True)]
    if not any(row.record.answers for row in rows):
        said = []
    return Table("services", "Services", [name, *_flow("service"), *said, *_own_times("round trip", rows)], rows)


def _answers(service: ServiceResult) -> str | None:
    """The contents of the replies of a part of an action: "succeeded 20, canceled 2"."""
    return ", ".join(f"{answer} {count}" for answer, count in (service.answers or {}).items()) or None


def _ends(sender: str, receiver: str) -> Callable[[Any], str]:
    return lambda row: f"{getattr(row.record, sender) or '?'} → {getattr(row.record, receiver) or '?'}"


def _flow(over: str, *more: Column[Any]) -> list[Column[Any]]:
    return [Column(over, over, lambda row: getattr(row.record, over), rank=7), RUN, result_column(), *more, *_COUNTS]


def _own_times(group: str, rows: Sequence[Of[Any]]) -> list[Column[Any]]:
    """Beside percentiles a mean is optional; a foreign run may have no percentiles."""
    known = [row.record.times_ns for row in rows if row.record.times_ns is not None]
    mean = None if any(times.p50 is not None for times in known) else 6
    return times(group, lambda part: part.times_ns, {"mean": mean, "p50": 6, "p99": 4, "max": 5})


def all_messages(rows: Sequence[Of[Result]]) -> Table[Of[Result]]:
    """One row per result: all messages of all its trials together."""
    note = "All messages of all trials together: with more trials, a maximum covers more messages."
    return Table(
        "all_messages",
        "All messages together",
        [
            result_column(0),
            RUN,
            Column(
                "trials", "trials", lambda row: row.record.coverage.trials_merged, PLAIN,
                rank=3,
            ),
            Column("received", "received", lambda row: received(row.record), COUNT, rank=2),
            Column("expected", "expected", lambda row: expected(row.record), COUNT, rank=2),
            Column(
                "lost", "lost", lambda row: least_lost(*owners(row.record)), COUNT, rank=3,
                tone="bad",
            ),
            counted_column("late", "late", rank=8, tone="warn"),
            counted_column("too_late", "too late", tone="bad"),
            *times(
                "latency", lambda result: result.totals.latency_ns,
                {"mean": None, "p50": 6, "p90": None, "p99": 1, "p99_9": None, "max": 5},
            ),
            *times("response", lambda result: result.totals.response_ns, {"p99": 7, "max": None}),
            Column(
                "round_trip_p99", "p99", group="round trip", read=_slowest_round_trip, quantity=TIME,
                rank=4, help="of the slowest service",
            ),
            cpu(lambda row: row.record.resources, 9),
            Column(
                "cpu_per_message", "per message", group="CPU", quantity=TIME, rank=10,
                read=lambda row: cpu_per_message(row.record.merged).value,
                help="CPU time of all processes for each delivered message",
            ),
            rss(lambda row: row.record.resources, 11),
            Column(
                "received_per_s", "received", group="per second", quantity=PER_SECOND, rank=12,
                read=lambda row: per_second(received(row.record), row.record.merged),
            ),
            Column(
                "bytes_per_s", "payload", group="per second", quantity=DATA_RATE, rank=12,
                read=lambda row: per_second(received_bytes(row.record), row.record.merged),
            ),
        ],
        rows,
        [note] if len(rows) > 1 else [],
    )  # fmt: skip


def counted_column(name: str, header: str, **more: Any) -> Column[Any]:
    """Over all topics and services of a trial or result."""
    return Column(
        name=name, header=header, read=lambda row: counted(row.record, lambda owner: getattr(owner, name)),
        quantity=COUNT, **more,
    )  # fmt: skip


def _slowest_round_trip(row: Of[Result]) -> float | None:
    """For the slowest service: percentiles of several cannot be merged here."""
    round_trips = [s.round_trip_ns for s in row.record.services if s.round_trip_ns is not None]
    return max((times.p99 for times in round_trips if times.p99), default=None)


def cpu(of: Callable[[Any], Resources | ProcessResources], rank: int | None = None) -> Column[Any]:
    """Percent of one CPU; for foreign runs, of all CPUs, as they record it."""

    def read(row: Any) -> float | Cell | None:
        used = of(row)
        if used.cpu_percent_mean is None and used.cpu_percent_of_machine is not None:
            return Cell(f"{PERCENT.text(used.cpu_percent_of_machine)} of all", used.cpu_percent_of_machine)
        return used.cpu_percent_mean

    return Column("cpu_percent", "CPU", read, quantity=PERCENT, rank=rank, help=ONE_CPU)


def rss(of: Callable[[Any], Resources | ProcessResources], rank: int | None = None) -> Column[Any]:
    return Column(
        "rss_kb", "RSS peak", lambda row: of(row).rss_kb_max, KILOBYTES, rank=rank
    )  # fmt: skip


def processes(rows: Sequence[Of[ProcessResources]]) -> Table[Of[ProcessResources]]:
    return Table(
        "processes",
        "Resources of each process",
        [
            Column("process", "process", lambda row: row.record.process, rank=0),
            RUN,
            result_column(),
            cpu(lambda row: row.record, 1),
            rss(lambda row: row.record, 2),
            Column("minor_faults", "minor", lambda row: row.record.minor_faults, COUNT, group="page faults", rank=3),
            Column("major_faults", "major", lambda row: row.record.major_faults, COUNT, group="page faults", rank=3),
        ],
        rows,
    )


def sites_of(result: Result) -> tuple[AllocationSite, ...]:
    """From the first trial that has some: those of several are similar, and their counts belong to trials."""
    return next((t.allocation_sites for t in result.trials_detail if t.allocation_sites), ())


def allocation_sites(rows: Sequence[Of[AllocationSite]]) -> Table[Of[AllocationSite]]:
    return Table(
        "allocation_sites",
        "Where memory is allocated",
        [
            RUN,
            result_column(),
            Column("process", "process", lambda row: row.record.process, rank=1),
            Column("thread", "thread", lambda row: row.record.thread, rank=0),
            Column("count", "allocations", lambda row: row.record.count, COUNT, rank=0),
            Column("bytes", "bytes", lambda row: row.record.bytes, COUNT, rank=2),
            Column(
                "function", "in", lambda row: next(iter(callers(row.record)), None), SYMBOL, rank=0, least=24,
                help="the first function outside of the allocator and the standard library",
            ),
            Column(
                "callers", "called by", lambda row: " < ".join(callers(row.record)[1:4]), SYMBOL, rank=3, least=24,
            ),
        ],
        rows,
        ["From one trial, in its measured part; without perflab's own threads."] if rows else [],
    )  # fmt: skip


# -- where every message went ----------------------------------------------------------------------------------------


def accounting(rows: Sequence[Of[Result]]) -> Table[Of[Result]]:
    def sums(name: str, header: str, of: Callable[[Counts], int | None], **more: Any) -> Column[Of[Result]]:
        return Column(
            name=name, header=header, read=lambda row: added(of(part) for part in owners(row.record)), quantity=COUNT,
            **more,
        )  # fmt: skip

    return Table(
        "accounting",
        "Where every message went",
        [
            result_column(),
            RUN,
            Column(
                "records", "records", _records, help="whether every process wrote its last ones"
            ),
            sums("sent", "sent", lambda part: part.sent),
            sums("received", "received", lambda part: part.received),
            sums(
                "filtered", "filtered", lambda part: part.filtered,
                help="rejected by the content filter of a subscription: neither sent to it nor lost",
            ),
            sums("gap", "lost in gaps", lambda part: part.lost.gap, tone="bad"),
            sums("tail", "lost at the end", lambda part: part.lost.tail, tone="bad"),
            sums(
                "pre_match", "before matching", lambda part: part.lost.pre_match, tone="warn",
                help="sent before the two ends had found each other",
            ),
            sums("reordered", "reordered", lambda part: part.reordered, tone="warn"),
            sums("duplicate", "duplicate", lambda part: part.duplicate, tone="warn"),
            sums(
                "beyond_window", "beyond the window", lambda part: part.beyond_window, tone="warn",
                help="too far out of order to distinguish from a loss",
            ),
            sums("not_sent", "ticks not sent", lambda part: part.not_sent, tone="bad"),
            sums("write_errors", "write errors", lambda part: part.write_errors, tone="bad"),
            Column(
                "saturated", "saturated", lambda row: _of_histograms(row, lambda d: d.saturated),
                quantity=COUNT, tone="warn", help="values above the range of a histogram",
            ),
            Column(
                "negative", "negative", lambda row: _of_histograms(row, lambda d: d.negative),
                quantity=COUNT, tone="warn", help="values below 0: clocks that disagree",
            ),
        ],
        rows,
    )  # fmt: skip


def _records(row: Of[Result]) -> Cell:
    coverage = row.record.coverage
    words = "complete" if coverage.complete else "not complete" if coverage.trials_merged else "none"
    return Cell(words, words, "" if coverage.complete else "warn")


def _of_histograms(row: Of[Result], count_of: Callable[[Distribution], int | None]) -> int | None:
    """Values of all histograms together, as far as they are known."""
    found = [d for part in owners(row.record) for d in _distributions(part) if d is not None]
    known = [n for d in found if (n := count_of(d)) is not None]
    return sum(known) if known else None


def _distributions(part: Counts) -> list[Distribution | None]:
    found = [part.times_ns, part.publish_delay_ns, part.publish_call_ns, part.dispatch_ns, part.work_ns]
    found += [part.serialize_ns, part.deserialize_ns]
    return [*found, part.response_ns] if isinstance(part, Totals) else found


def hiccups(rows: Sequence[Of[Result]]) -> Table[Of[tuple[str, Distribution]]]:
    """The machine's effect on threads that only sleep, if it was observed."""
    return Table(
        "hiccups",
        "How late threads that only sleep woke up",
        [
            result_column(),
            RUN,
            Column("observer", "observer", lambda row: row.record[0]),
            Column("wake_ups", "wake-ups", lambda row: row.record[1].count, COUNT),
            *times("", lambda late: late[1], {"p50": None, "p99": None, "p99_9": None, "max": None}),
        ],
        [late for row in rows for late in row.parts(lambda result: result.observed_ns.items())],
    )


# -- one result ------------------------------------------------------------------------------------------------------

_FIGURES = ("latency", "response", "publish_delay", "publish_call", "serialize", "deserialize", "dispatch", "work")


def distributions(totals: Totals) -> Table[Of[Distribution]]:
    """One row for each measured time of a result's messages."""
    known = [(name.replace("_", " "), getattr(totals, f"{name}_ns")) for name in _FIGURES]
    return Table(
        "distributions",
        "Distributions",
        [
            Column("figure", "", lambda row: row.result, rank=0),
            *times(
                "", lambda figure: figure,
                {"min": 7, "mean": 8, "p50": 3, "p90": 6, "p99": 1, "p99_9": 4, "p99_99": 5, "max": 2},
            ),
            Column("max_at_s", "", _when, rank=9, called="time of the maximum"),
        ],
        [Of(found, name) for name, found in known if found is not None],
    )  # fmt: skip


def _when(row: Of[Distribution]) -> Cell | None:
    at = row.record.max_at_s
    return None if at is None else Cell(f"at {format_duration(at)}", at)
