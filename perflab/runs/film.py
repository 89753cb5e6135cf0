"""The film of a trial, from the records of its programs; a trial whose programs record no scene has none."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

from perflab.errors import DAMAGE
from perflab.formats import records
from perflab.results.files import Manifest
from perflab.results.film import (
    NOWHERE,
    UPRIGHT,
    Body,
    Cylinder,
    Film,
    Joint,
    Mark,
    Mesh,
    Moment,
    Plan,
    Pose,
    Quaternion,
    Scene,
    Series,
    Shape,
    Vector,
)  # fmt: skip
from perflab.units import NS_PER_S

Json = Mapping[str, Any]

PROCESSES = "processes"
BEFORE_NS = NS_PER_S // 4  # shown before the first moment
_KNOWN = ("joints", "desired", "tip", "planned", "considered", "lateness")


def films_may_be(manifest: Manifest) -> bool:
    """Only programs record scenes: trials of other runs need not be read."""
    return any(process.get("program") for process in manifest.workload.graph.get("processes") or ())


def film(directory: Path) -> Film | None:
    """For a trial that has ended, or its progress so far. None if there is nothing to show, or it is damaged."""
    said: list[tuple[str, Json]] = []
    for path in sorted((directory / PROCESSES).glob("*.jsonl")):
        try:
            said += [(path.stem, record) for record in records.lines(path, "program") if record is not None]
        except (records.RecordError, OSError):
            continue
    try:
        return _film(said)
    except DAMAGE:
        return None


def _film(said: Iterable[tuple[str, Json]]) -> Film | None:
    """Raises one of DAMAGE."""
    # A process that runs twice, or again after a crash, repeats its scene.
    bodies: dict[str, Json] = {}
    marks: list[Json] = []
    tip: str | None = None
    series: dict[str, Series] = {}
    moments: list[Moment] = []
    for process, record in said:
        if record.get("type") != "program":
            continue
        scene = record.get("scene") or {}
        for body in scene.get("bodies", ()):
            bodies.setdefault(body["name"], body)
        marks += [mark for mark in scene.get("marks", ()) if mark not in marks]
        tip = scene.get("tip", tip)
        for found in record.get("series", ()):
            if found["name"] in _KNOWN:
                series[found["name"]] = _longer(series.get(found["name"]), found, process)
        moments += [Moment(int(m["at_ns"]), str(m["words"])) for m in record.get("moments", ())]
        if (outcome := record.get("outcome")) is not None:
            moments.append(Moment(int(outcome["at_ns"]), f"{outcome['name']}: {outcome['reason']}", failed=True))
    joints = series.get("joints")
    if not bodies or joints is None or len(joints.rows) < 2:
        return None
    moments.sort(key=lambda moment: moment.at_ns)
    considered = next(iter(_plans(series.pop("considered"))), None) if "considered" in series else None
    if moments and (begin_ns := moments[0].at_ns - BEFORE_NS) < joints.at_ns[-2]:
        series = {name: _since(of, begin_ns) for name, of in series.items()}
    planned = series.get("planned")
    made = Scene(tuple(map(_body, bodies.values())), tip, tuple(map(_mark, marks)))
    if tip is not None and tip not in bodies:
        raise ValueError(f"the tip {tip!r} is not a body")
    made.poses({})  # whether each parent exists, before its children
    return Film(
        made,
        series["joints"],
        series.get("desired"),
        series.get("tip"),
        series.get("lateness"),
        () if planned is None else tuple(_plans(planned)),
        considered,
        tuple(moments),
    )


def _longer(known: Series | None, found: Json, process: str) -> Series:
    columns = tuple(map(str, found["columns"]))
    if known is None or known.columns != columns:
        known = Series(columns, process=process)
    rows = tuple(tuple(map(float, row)) for row in found["rows"])
    if any(len(row) != len(columns) for row in rows):
        raise ValueError(f"a row of {found['name']} does not have {len(columns)} numbers")
    at_ns = tuple(map(int, found["at_ns"]))
    if known.process != process and known.at_ns:  # one that runs twice is shown once, one that came back continues
        first = bisect.bisect_right(at_ns, known.at_ns[-1])
        at_ns, rows = at_ns[first:], rows[first:]
    return replace(known, at_ns=known.at_ns + at_ns, rows=known.rows + rows, left_out=int(found.get("left_out", 0)))


def _since(series: Series, begin_ns: int) -> Series:
    first = next((n for n, at_ns in enumerate(series.at_ns) if at_ns >= begin_ns), len(series.at_ns))
    return replace(series, at_ns=series.at_ns[first:], rows=series.rows[first:])


def _plans(planned: Series) -> Iterable[Plan]:
    """Points that were ready at the same time form one plan; their first column is the time since its start."""
    for at_ns, points in groupby(zip(planned.at_ns, planned.rows, strict=True), key=lambda point: point[0]):
        rows = [row for _, row in points]
        yield Plan(at_ns, planned.columns[1:], tuple(row[0] for row in rows), tuple(row[1:] for row in rows))


def _body(found: Json) -> Body:
    joint = found.get("joint")
    return Body(
        str(found["name"]),
        found.get("parent"),
        _pose(found),
        None if joint is None else _joint(joint),
        tuple(map(_shape, found.get("shapes", ()))),
        "robot" if found.get("kind") == "robot" else "object",
    )


def _joint(found: Json) -> Joint:
    kind = found["kind"]
    if kind not in ("turn", "slide", "free"):
        raise ValueError(f"a joint cannot {kind!r}")
    return Joint(
        str(found["name"]), kind, _vector(found.get("axis", (0, 0, 1))), _vector(found.get("position", NOWHERE))
    )


def _shape(found: Json) -> Shape:
    mesh, box, cylinder, sphere = (found.get(key) for key in ("mesh", "box", "cylinder", "sphere"))
    return Shape(
        _pose(found),
        None if mesh is None else Mesh(tuple(map(float, mesh["points"])), tuple(map(int, mesh["faces"]))),
        None if box is None else _vector(box),
        None if cylinder is None else Cylinder(float(cylinder["radius"]), float(cylinder["height"])),
        None if sphere is None else float(sphere),
    )


def _mark(found: Json) -> Mark:
    return Mark(str(found["name"]), _vector(found["position"]), float(found.get("radius", 0.01)))


def _pose(found: Json) -> Pose:
    x, y, z, w = map(float, found.get("orientation", UPRIGHT))
    orientation: Quaternion = (x, y, z, w)
    return Pose(_vector(found.get("position", NOWHERE)), orientation)


def _vector(found: Iterable[Any]) -> Vector:
    x, y, z = map(float, found)
    return x, y, z
