"""The picture of a time in which a trial made no progress: which threads ran on its CPUs, which waited, and
messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from perflab.errors import DAMAGE
from perflab.report import axes
from perflab.report.figures import Axis, Figure, Key, Plot, Sign, Span, Spans, fixed, rows
from perflab.units import format_time, plural

Json = Mapping[str, Any]

TOP, BOTTOM = -0.3, 0.3  # half height of a bar in its row
MOST_WAITING = 8  # threads with their own lane, those that waited longest
MOST_MESSAGES = 400  # number drawn individually; of more, the slowest, and evenly those that never arrived
LEAST_SEEN = 1 / 1500  # share of the picture: shorter stretches are drawn with this length
EXECUTOR, MIDDLEWARE = "executor", "middleware"
# Groups of bars, by the thread's role; the first group is for threads that had the CPU of waiting ones.
HOLDER, WAITS, OF_EXECUTOR, OF_MIDDLEWARE, OTHERS, MESSAGES = range(6)
_WORDS = {
    HOLDER: "had the CPU", WAITS: "ready but not running", OF_EXECUTOR: "executors run",
    OF_MIDDLEWARE: "the middleware runs", OTHERS: "others run", MESSAGES: "messages",
}  # fmt: skip
_SIGNS: tuple[tuple[str, Sign], ...] = (("published", "bar"), ("handled", "full"), ("never handled", "cross"))


def length_ns(found: Json) -> int:
    """Number of the recorded stretch; 0 if that is damaged."""
    try:
        begin_ns, end_ns = found["stretch"]
        return int(end_ns) - int(begin_ns)
    except DAMAGE:
        return 0


def lanes(name: str, title: str, found: Json) -> Figure | None:
    """Drawn from the trial's record of the stretch (`perflab.trace.lanes`); None if no thread waited. Raises one of
    DAMAGE."""
    threads: Mapping[str, Json] = found["threads"]
    begin_ns, end_ns = found["begin_ns"], found["end_ns"]
    zero_ns, until_ns = found["stretch"]
    unit = axes.time_unit([end_ns - begin_ns])
    waited: dict[int, int] = {}
    for thread, _, first, last in found["waits"]:
        waited[thread] = waited.get(thread, 0) + last - first
    if not waited:
        return None
    had: dict[int, int] = {}
    for _, thread, first, last, _ in found["runs"]:
        had[thread] = had.get(thread, 0) + last - first
    starving = sorted(waited, key=lambda thread: -waited[thread])[:MOST_WAITING]
    holder = max((t for t in had if t not in starving), key=lambda thread: had[thread], default=None)
    messages: Sequence[Json] = found["messages"]
    ends = [m[end] for m in messages for end in ("from_thread", "to_thread") if m[end] is not None]
    own = [t for t in dict.fromkeys([*ends, *starving]) if str(t) in threads]
    own.sort(key=lambda t: (threads[str(t)]["role"] != EXECUTOR, -waited.get(t, 0)))
    names = [*(f"CPU {cpu}" for cpu in found["cpus"]), *(_label(threads[str(t)]) for t in own)]
    words = _WORDS | ({} if holder is None else {HOLDER: f"{_label(threads[str(holder)])} runs"})
    places = {t: len(found["cpus"]) + number for number, t in enumerate(own)}
    least_ns = int(LEAST_SEEN * (end_ns - begin_ns))

    def at(instant_ns: int) -> float:
        return float((instant_ns - zero_ns) / unit.ns)

    def bar(first: int, last: int, row: int, label: str, hover: str) -> Span:
        last = min(max(last, first + least_ns), max(end_ns, last))
        return Span(at(first), at(last), row + TOP, row + BOTTOM, label, f"{hover}<br>{format_time(last - first)}")

    bars: dict[int, list[Span]] = {}
    for cpu, thread, first, last, n in found["runs"]:
        who = threads[str(thread)]
        group = HOLDER if thread == holder else _group(who)
        label, several = _label(who), f", {plural(n, 'run')}" if n > 1 else ""
        short = who["process"] or who["thread"] or ""
        bars.setdefault(group, []).append(
            bar(first, last, found["cpus"].index(cpu), short, f"CPU {cpu}: {label}{several}")
        )
        if thread in places:
            bars.setdefault(group, []).append(bar(first, last, places[thread], "", f"{label} runs on CPU {cpu}"))
    for thread, cpu, first, last in found["waits"]:
        if thread in places:
            place = "" if cpu is None else f" on CPU {cpu}"
            hover = f"{_label(threads[str(thread)])} was ready but did not run{place}"
            bars.setdefault(WAITS, []).append(bar(first, last, places[thread], format_time(last - first), hover))
    low, high = at(begin_ns), at(end_ns)
    x = Axis(f"time since the last progress ({unit.name})", "linear", low, high, axes.linear_ticks(low, high, 8))
    plot = Plot(fixed(x), rows(names))
    arrived, lost = _messages(plot, messages, places, at, (begin_ns, end_ns))
    sent = plural(len(messages), "message")
    plot.notes.append(f"{sent}: {arrived} handled, {lost} never; runs shorter than 1/1500 of the time drawn longer.")
    return plot.figure(
        name,
        title,
        f"{format_time(until_ns - zero_ns)} without progress, with the time before and after",
        [(group, words[group]) for group in sorted(words)],
        [
            Key("published", None, sign="bar"),
            Key("handled", None, sign="full"),
            Key("never handled", None, sign="cross"),
        ],
        spans=tuple(Spans(words[group], group, tuple(bars[group])) for group in sorted(bars)),
        lanes=1,
    )


def _messages(
    plot: Plot, messages: Sequence[Json], places: Mapping[int, int], at: Any, ends: tuple[int, int]
) -> tuple[int, int]:
    """Draws them from publisher to handler; returns how many were handled, and how many never."""
    handled = [m for m in messages if m["handled_ns"] is not None]
    lost = [m for m in messages if m["handled_ns"] is None]
    slowest = sorted(handled, key=lambda m: m["published_ns"] - m["handled_ns"])[:MOST_MESSAGES]
    evenly = lost[:: max(1, -(-len(lost) // MOST_MESSAGES))]
    if len(slowest) < len(handled) or len(evenly) < len(lost):
        plot.notes.append(f"{len(slowest) + len(evenly)} of the messages are drawn.")
    line_x: list[float | None] = []
    line_y: list[float | None] = []
    sent, came, never = [], [], []
    for message in [*slowest, *evenly]:
        if (row := places.get(message["from_thread"])) is None:
            continue
        published_ns, handled_ns = message["published_ns"], message["handled_ns"]
        words = f"{message['topic']} published"
        mark = (at(published_ns), float(row), words)
        if handled_ns is None:
            never.append((at(published_ns), float(row), f"{words}, and never handled"))
            continue
        if ends[0] <= published_ns:
            sent.append(mark)
        if (to := places.get(message["to_thread"])) is not None and handled_ns <= ends[1]:
            took = format_time(handled_ns - published_ns)
            came.append((at(handled_ns), float(to), f"{message['topic']} handled after {took}"))
            line_x += [at(max(published_ns, ends[0])), at(handled_ns), None]
            line_y += [float(row), float(to), None]
    plot.line("messages", MESSAGES, line_x, line_y, weight="thin")
    plot.points("published", MESSAGES, sent, sign="bar")
    plot.points("handled", MESSAGES, came, sign="full")
    plot.points("never handled", MESSAGES, never, sign="cross")
    return len(handled), len(lost)


def _group(thread: Json) -> int:
    return {EXECUTOR: OF_EXECUTOR, MIDDLEWARE: OF_MIDDLEWARE}.get(thread["role"] or "", OTHERS)


def _label(thread: Json) -> str:
    name, process = thread["thread"] or f"tid {thread['tid']}", thread["process"]
    return name if process in (None, name) else f"{name} of {process}"
