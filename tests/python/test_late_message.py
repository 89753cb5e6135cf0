"""The picture of one late message: its way, the threads that had it in their hands, and who had their CPUs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from perflab.report.late_message import NOBODY, WAY, lanes
from perflab.runs import traced

MS = 1_000_000
BEGIN_NS = 5_000 * MS
MESSAGE: dict[str, Any] = {
    "message": 7, "edge": "/a → /b", "topic": "/t", "total_ns": 5 * MS, "parts": "CPU 1: stress-ng 4 ms",
    "begin_ns": BEGIN_NS, "published_ns": BEGIN_NS + 4 * MS, "sent_ns": None, "arrived_ns": BEGIN_NS + 4_500_000,
    "started_ns": BEGIN_NS + 5 * MS,
}  # fmt: skip


def part(cause: str, first_ms: float, length_ms: float, *, cpu: int | None = None, **more: Any) -> dict[str, Any]:
    held = cause == "cpu"
    return {
        "message": 7, "cause": cause, "who": "who", "cpu": cpu, "first_ns": BEGIN_NS + round(first_ms * MS),
        "part_ns": round(length_ms * MS), "during": None, "pieces": 1, "of_thread": "main", "of_tid": 3,
        "of_process": "node", "by_process": "stress-ng" if held else None, **more,
    }  # fmt: skip


PARTS = [
    part("timer_late", 0, 0.2, of_tid=None, of_thread=None, of_process=None),
    part("cpu", 0.2, 3.8, cpu=1),
    part("executor", 4, 1, pieces=3),
]


def test_lanes_are_the_way_the_threads_and_the_cpus_in_the_unit_of_its_length() -> None:
    figure = lanes("late", MESSAGE, PARTS)
    assert [name for _, name in figure.y.ticks] == [WAY, NOBODY, "thread main of node", "CPU 1"]
    assert figure.x.title == "time since it was due (ms)"
    assert (figure.title, figure.subtitle) == ("/a → /b · /t, 5.00 ms", "CPU 1: stress-ng 4 ms")
    spans = {of.name: [(round(s.begin, 3), round(s.end, 3), round(s.top), s.label) for s in of.spans]
             for of in figure.spans}  # fmt: skip
    assert spans["CPU of others"] == [(0.2, 4.0, 2, ""), (0.2, 4.0, 3, "stress-ng")], "the thread, and who had its CPU"
    assert spans["timer late"] == [(0.0, 0.2, 1, "")]
    assert spans["executor"] == [(4.0, 5.0, 2, "")]
    assert figure.notes == ("1 part of several pieces: drawn as one, from the beginning of the first.",)


def test_what_is_not_known_of_the_way_is_not_drawn() -> None:
    """It has no stamp of the write: neither that, nor what lies before or behind it."""
    figure = lanes("late", MESSAGE, PARTS)
    (stamps,) = figure.series
    assert [text.partition(" ")[0] for text in stamps.hover] == ["published", "taken", "handled"]
    way = next(of for of in figure.spans if of.group is None)
    assert [s.hover.partition(":")[0] for s in way.spans] == ["until it is published", "until its callback"]


def test_causes_beyond_those_with_a_colour_are_together() -> None:
    names = ("cpu", "executor", "own_work", "publish_call", "callback_ahead", "timer_late", "wake_up")
    figure = lanes("late", MESSAGE, [part(cause, n * 0.5, 0.5 - 0.01 * n) for n, cause in enumerate(names)])
    assert [name for _, name in figure.groups][-1] == "other causes" and len(figure.groups) == 6
    assert sum(len(of.spans) for of in figure.spans if of.group is not None) == len(names)


def test_the_slowest_message_is_read_from_beside_the_trace(tmp_path: Path) -> None:
    (tmp_path / "trace").mkdir()
    file = tmp_path / "trace" / "why.json"
    file.write_text(json.dumps({"slowest": {"message": MESSAGE, "parts": PARTS}}))
    assert traced.slowest(tmp_path) == (MESSAGE, PARTS)
    file.write_text(json.dumps({"why": {"rows": []}}))  # of a run from before, or nothing was late
    assert traced.slowest(tmp_path) is None
