"""What the trace of a trial tells of it, asked once when the trial has ended and kept beside its trace: why messages
were late, and what executors did."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from perflab import models
from perflab.errors import DAMAGE, BadInput, PerflabError
from perflab.formats.json_file import read_json
from perflab.results.trial import Phases, Why
from perflab.statistics.executor_costs import phases_of
from perflab.units import NS_PER_S

if TYPE_CHECKING:
    from perflab.design.document import Thresholds
    from perflab.trace.why import Selection
    from perflab.workload import Graph

Json = dict[str, Any]
T = TypeVar("T")

FOLDER = "trace"
FILE = "why.json"
EXECUTOR = "executor.json"
TOTALS_KEPT = 20  # causes that the summary has; the file has all
_ASKED = "asked"  # what was called late, and which processes are the trial's
_PARTS = "parts"  # of every late message; `perflab trace why` tells them again, and the slowest one has its own here
_SLOWEST = "slowest"


def explain(directory: Path, graph: Graph, thresholds: Thresholds, pids: AbstractSet[int] = frozenset()) -> list[str]:
    """Asks the trace of a trial, if it has one, and writes trace/why.json and trace/executor.json; what went wrong, one
    sentence each.

    Late is what the run calls late. Where nothing was, it is asked about the slowest hundredth of every edge.
    `pids` are the processes of the trial, where they are known: a session records whatever emits `ros2:*` on this
    machine, and the figures are the trial's alone.
    """
    folder = directory / FOLDER
    if not folder.is_dir():
        return []
    what = "why messages were late"
    try:
        _keep(folder / FILE, _document(folder, late_after_ns(graph, thresholds), frozenset(pids)))
        what = "what executors did"
        _keep(folder / EXECUTOR, _executor(folder, pids))
    except (PerflabError, OSError, *DAMAGE) as error:
        return [f"{what} cannot be told: {error}"]
    return []


def _keep(path: Path, document: Json) -> None:
    path.write_text(json.dumps(document, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")


def _kept(directory: Path, file: str, record_of: Callable[[Json], T]) -> T | None:
    """What was kept of the trial's trace; None where there is none, or it does not tell."""
    path = directory / FOLDER / file
    try:
        return record_of(read_json(path)) if path.is_file() else None
    except (BadInput, *DAMAGE):
        return None


def phases(directory: Path) -> Phases | None:
    """What the summary says of the executors of a trial that was traced; None where the trace does not tell."""
    return _kept(directory, EXECUTOR, phases_of)


def why(directory: Path) -> Why | None:
    """What the summary says of a trial that was traced: the sentence, how many messages, and the causes."""
    return _kept(directory, FILE, _why_of)


def slowest(directory: Path) -> tuple[Json, list[Json]] | None:
    """The row of the slowest late message of a trial that was traced, and those of its parts, as the answer of
    `perflab trace why` has them. None where none was late, or the trace does not tell."""
    return _kept(directory, FILE, lambda document: (document[_SLOWEST]["message"], document[_SLOWEST]["parts"]))


def _why_of(document: Json) -> Why:
    """Of an answer as it was kept. Raises one of DAMAGE."""
    (verdict,) = document["why"]["rows"]
    causes, totals = document["causes"]["rows"], document["totals"]["rows"][:TOTALS_KEPT]
    return models.read(Why, {**verdict, "causes": causes, "totals": totals, "quality": document["quality"]})


def late_after_ns(graph: Graph, thresholds: Thresholds) -> dict[str, int]:
    """By topic the latency from which the run calls a message late; of several publishers the slowest one's."""
    found: dict[str, int] = {}
    for process in graph.document["processes"]:
        for node in process["nodes"]:
            for publisher in () if node.get("condition") else node["publishers"]:
                limit = _limit(publisher.get("frequency_hz") or 0.0, thresholds)
                found[publisher["topic"]] = max(found.get(publisher["topic"], 0), limit)
    return found


def _limit(frequency_hz: float, thresholds: Thresholds) -> int:
    """As perflab-node classifies (native/measure/classification.h)."""
    if frequency_hz <= 0:
        return thresholds.late_ns
    return min(thresholds.late_ns, int(thresholds.late_percent / 100 * NS_PER_S / frequency_hz))


def _document(folder: Path, limits: Mapping[str, int], pids: frozenset[int]) -> Json:
    from perflab.trace import open_trace
    from perflab.trace.why import Selection
    from perflab.trace.why import why as ask

    with open_trace([folder]) as trace:
        selection = Selection(later_than_by_topic=limits, pids=pids)
        answer = ask(trace, selection)
        if not answer.section("why").frame["late"].item():
            selection = Selection(pids=pids)
            answer = ask(trace, selection)
        document: Json = answer.document()
    parts = document.pop(_PARTS, {"rows": ()})["rows"]
    if messages := document["messages"]["rows"]:
        slowest = messages[0]  # they stand in this order
        document[_SLOWEST] = {
            "message": slowest,
            "parts": [part for part in parts if part["message"] == slowest["message"]],
        }
    by_topic = selection.later_than_by_topic
    return document | {
        _ASKED: {"later_than_by_topic": None if by_topic is None else dict(by_topic), "pids": sorted(selection.pids)}
    }


def asked_of(path: Path) -> Selection | None:
    """What the report of a run asked the trace of a trial, so that who asks again gets the same answer: `path` is the
    trial's folder or that of its trace. None where it is no trial's.
    """
    from perflab.trace.why import Selection

    for folder in (path, path / FOLDER):
        try:
            asked = read_json(folder / FILE)[_ASKED]
            return Selection(later_than_by_topic=asked["later_than_by_topic"], pids=frozenset(asked["pids"]))
        except (BadInput, *DAMAGE):
            continue
    return None


def _executor(folder: Path, pids: AbstractSet[int]) -> Json:
    from perflab.trace import open_trace
    from perflab.trace.executor import executor

    with open_trace([folder]) as trace:
        document: Json = executor(trace).document()
    if pids:
        for section in document.values():
            if isinstance(section, dict) and "rows" in section:
                section["rows"] = [row for row in section["rows"] if row["pid"] in pids]
    return document
