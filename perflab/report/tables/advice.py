"""The tried assignments of threads, as a table."""

from __future__ import annotations

from collections.abc import Callable

from perflab.columns import Cell, Column, Table, Tone
from perflab.quantity import COUNT, PLAIN, TIME
from perflab.results.advice import AVOIDS, EXECUTOR, FAILS, MIDDLEWARE, NOT_JUDGED, UNDECIDED, Counted, Situation, Tried

VERDICTS: dict[str, tuple[str, Tone]] = {
    AVOIDS: ("avoids it", "good"),
    FAILS: ("fails", "bad"),
    UNDECIDED: ("undecided", "warn"),
    NOT_JUDGED: ("not judged", "warn"),
}


def table(situation: Situation) -> Table[Tried]:
    """For one situation, the recommended assignment first."""
    return Table(
        "advice",
        situation.name,
        [
            Column("assignment", "assignment", lambda one: _name(one, situation), rank=0),
            Column("executors", "executors", _level(EXECUTOR), rank=2),
            Column("middleware", "middleware", _level(MIDDLEWARE), rank=2),
            Column("verdict", "", _verdict, rank=0),
            Column("failed", "failed", lambda one: _share(one.trials), PLAIN, rank=0),
            Column("without", "without it", lambda one: _share(one.without), PLAIN, rank=3),
            Column("outcomes", "outcomes", lambda one: one.outcomes, rank=4),
            Column("real_time_threads", "real-time threads", _threads, COUNT, rank=5),
            Column("response_p99", "response p99", lambda one: one.response_p99_ns, TIME, rank=1),
        ],
        situation.tried,
    )


def _name(one: Tried, situation: Situation) -> Cell:
    advised = one.assignment == situation.advised
    return Cell(one.assignment, one.assignment, "strong" if advised else "", sign="→" if advised else "")


def _level(role: str) -> Callable[[Tried], str | None]:
    def read(one: Tried) -> str | None:
        lowest = one.lowest(role)
        return None if lowest is None else lowest.words

    return read


def _verdict(one: Tried) -> Cell:
    words, tone = VERDICTS[one.verdict]
    return Cell(words, one.verdict, tone)


def _share(counted: Counted | None) -> Cell:
    if counted is None:
        return Cell("", reason="not run")
    share = counted.failed / counted.judged if counted.judged else None
    return Cell(counted.words, share)


def _threads(one: Tried) -> int | None:
    return one.real_time_threads if one.scheduled else None
