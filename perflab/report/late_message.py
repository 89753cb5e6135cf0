"""The picture of one late message: where its time went, on its path, on threads and on CPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from perflab.report import axes
from perflab.report.figures import Axis, Figure, Key, Plot, Span, Spans, fixed, rows
from perflab.trace.causes import CAUSES
from perflab.units import format_time, listed, plural

MAX_CAUSES = 5  # parts with their own colour, those with most time; the others share one
OTHERS = "other causes"
TOP, BOTTOM = -0.2, 0.4  # half height of a bar in its row
WAY = "the message's path"
NOBODY = "in no thread's hands"
_STAMPS = (("published", "published_ns"), ("written", "sent_ns"), ("taken", "arrived_ns"), ("handled", "started_ns"))
# Stages of the path, from a message's stamps at both ends.
_LEGS = (
    ("until it is published", "begin_ns", "published_ns"),
    ("publish()", "published_ns", "sent_ns"),
    ("in the middleware", "sent_ns", "arrived_ns"),
    ("until its callback", "arrived_ns", "started_ns"),
)

Json = Mapping[str, Any]


def title(message: Json) -> str:
    """ "/geneva → /arequipa · /arkansas, 5.07 ms"."""
    return f"{message['edge']} · {message['topic']}, {format_time(message['total_ns'])}"


def lanes(name: str, message: Json, parts: Sequence[Json]) -> Figure:
    """The row of a message and those of its parts, as in `perflab trace why`. Raises one of DAMAGE."""
    begin = message["begin_ns"]
    length = max([message["total_ns"], *(p["first_ns"] + p["part_ns"] - begin for p in parts)])
    unit = axes.time_unit([length])

    def bar(first_ns: int, last_ns: int, row: int, label: str, hover: str) -> Span:
        first, last = ((at - begin) / unit.ns for at in (first_ns, last_ns))
        return Span(first, last, row + TOP, row + BOTTOM, label, hover)

    names = [WAY, *dict.fromkeys(_thread(p) for p in parts), *sorted({_cpu(p) for p in parts if p["cpu"] is not None})]
    place = {lane: number for number, lane in enumerate(names)}
    ground = [
        bar(message[first], message[last], 0, "", f"{leg}: {format_time(message[last] - message[first])}")
        for leg, first, last in _LEGS
        if message.get(first) is not None and message.get(last) is not None
    ]
    totals: dict[str, int] = {}
    for part in parts:
        totals[part["cause"]] = totals.get(part["cause"], 0) + part["part_ns"]
    causes = sorted(totals, key=lambda cause: -totals[cause])[:MAX_CAUSES]
    bars: dict[str, list[Span]] = {}
    for part in parts:
        cause = part["cause"] if part["cause"] in causes else OTHERS
        words = CAUSES[part["cause"]].short if part["cause"] in CAUSES else part["cause"]
        who = f": {part['who']}" if part["who"] else ""
        during = f"<br>during {part['during']}" if part["during"] else ""
        hover = f"{words}{who}<br>{format_time(part['part_ns'])}{during}"
        for lane in filter(None, (_thread(part), _cpu(part) if part["cpu"] is not None else None)):
            label = part["by_process"] or "" if lane != _thread(part) else ""
            ends = part["first_ns"], part["first_ns"] + part["part_ns"]
            bars.setdefault(cause, []).append(bar(*ends, place[lane], label, hover))
    groups = {cause: number for number, cause in enumerate([*causes, OTHERS]) if cause in bars}
    called = {cause: CAUSES[cause].short if cause in CAUSES else cause for cause in groups}
    high = length / unit.ns * 1.01
    x = Axis(f"time since it was due ({unit.name})", "linear", 0.0, high, axes.linear_ticks(0.0, high, 8))
    plot = Plot(fixed(x), rows(names))
    if several := sum(part["pieces"] > 1 for part in parts):
        plot.notes.append(
            f"{plural(several, 'part')} of several pieces: drawn as one, from the beginning of the first."
        )
    stamps = [(words, message[at]) for words, at in _STAMPS if message.get(at) is not None]
    middle = (TOP + BOTTOM) / 2
    marks = [((at - begin) / unit.ns, middle, f"{words} after {format_time(at - begin)}") for words, at in stamps]
    plot.points(WAY, len(groups), marks, sign="bar")
    return plot.figure(
        name,
        title(message),
        message["parts"],
        [(number, called[cause]) for cause, number in groups.items()],
        [Key(listed([words for words, _ in stamps]), None, sign="bar")],
        spans=(
            Spans(WAY, None, tuple(ground)),
            *(Spans(called[cause], number, tuple(bars[cause])) for cause, number in groups.items()),
        ),
        lanes=1,
    )


def _thread(part: Json) -> str:
    if part["of_tid"] is None:
        return NOBODY
    return f"thread {part['of_thread'] or part['of_tid']}" + (f" of {part['of_process']}" if part["of_process"] else "")


def _cpu(part: Json) -> str:
    return f"CPU {part['cpu']}"
