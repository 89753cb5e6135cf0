"""The part of a film for a page: whole numbers if a picture needs no more, and times from the film's beginning."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from perflab.results.film import Body, Film, Plan, Pose, Scene, Series, Shape, Vector
from perflab.units import NS_PER_S

Json = dict[str, Any]

FOV_DEGREES = 38.0  # of the camera, from top to bottom
AZIMUTH, ELEVATION = 148.0, -21.0  # the camera's direction, in MuJoCo's terms
MARGIN_M = 0.13  # around the centres of bodies
MILLISECONDS, POSITIONS = 1000.0, 1e4  # factors to whole numbers: of times; of radians and metres
LATENESS_NS = 1000.0
APART = 0.03  # rad or m between a joint and its plan from which the planned robot is shown beside it


def document(film: Film, occupancy: Json | None = None) -> Json:
    """Everything but the scene, which the films of one run share."""
    return {
        "s": seconds(film, film.end_ns),
        "joints": _series(film, film.joints, POSITIONS),
        "desired": None if film.desired is None else _series(film, film.desired, POSITIONS),
        "plans": [
            {
                "at": seconds(film, plan.at_ns),
                "columns": plan.columns,
                "s": plan.s,
                "rows": [[round(value * POSITIONS) for value in row] for row in plan.rows],
            }
            for plan in film.plans
        ],
        "considered": [[round(value, 4) for value in point] for point in considered_tips(film)],
        "moments": [[seconds(film, m.at_ns), m.words, m.failed] for m in film.moments],
        "lateness": None if film.lateness is None else _series(film, film.lateness, 1 / LATENESS_NS),
        "lanes": None if occupancy is None else _lanes(film, occupancy),
    }


def scene_document(scene: Scene) -> Json:
    return {
        "bodies": [_body(body) for body in scene.bodies],
        "tip": scene.tip,
        "marks": [{"name": m.name, "position": m.position, "radius": m.radius} for m in scene.marks],
    }


def seconds(film: Film, at_ns: int) -> float:
    return round((at_ns - film.begin_ns) / NS_PER_S, 4)


def row_at(series: Series, at_ns: int) -> dict[str, float]:
    """The last row recorded by then, by column; the first one before that."""
    place = max(0, bisect.bisect_right(series.at_ns, at_ns) - 1)
    return series.named(series.rows[place])


def planned_at(film: Film, at_ns: int) -> dict[str, float] | None:
    """The planned joint positions by the last plan; None before the first plan."""
    plan = next((plan for plan in reversed(film.plans) if plan.at_ns <= at_ns), None)
    return None if plan is None else on_plan(plan, (at_ns - plan.at_ns) / NS_PER_S)


def on_plan(plan: Plan, s: float) -> dict[str, float]:
    """Interpolates linearly between two points; constant before and after the plan."""
    after = bisect.bisect_right(plan.s, s)
    if after in (0, len(plan.s)):
        row: Iterable[float] = plan.rows[0 if after == 0 else -1]
    else:
        share = (s - plan.s[after - 1]) / (plan.s[after] - plan.s[after - 1])
        row = (a + share * (b - a) for a, b in zip(plan.rows[after - 1], plan.rows[after], strict=True))
    return dict(zip(plan.columns, row, strict=True))


def tips(film: Film) -> list[Vector]:
    """The positions of the tip, at each row of its joints."""
    if film.scene.tip is None:
        return []
    return [film.scene.poses(film.joints.named(row))[film.scene.tip].position for row in film.joints.rows]


def planned_tips(film: Film) -> list[list[Vector]]:
    """The positions of the tip in each plan."""
    return [_tips_of(film, plan) for plan in film.plans]


def begins_to_go(film: Film) -> int:
    """When the first plan with a motion was ready; without one the last plan, and without plans the beginning."""
    ways = zip(film.plans, planned_tips(film), strict=False)
    goes = (plan.at_ns for plan, way in ways if _goes(way))
    return next(goes, film.plans[-1].at_ns if film.plans else film.begin_ns)


def _goes(way: Sequence[Vector]) -> bool:
    return any(math.dist(way[0], point) > APART for point in way)


def considered_tips(film: Film) -> list[Vector]:
    """The path of the plan of which nothing was executed; empty if another plan has a motion."""
    goes = any(map(_goes, planned_tips(film)))
    return [] if goes or film.considered is None else _tips_of(film, film.considered)


def _tips_of(film: Film, plan: Plan) -> list[Vector]:
    if film.scene.tip is None:
        return []
    before = row_at(film.joints, plan.at_ns)
    rows = (before | dict(zip(plan.columns, row, strict=True)) for row in plan.rows)
    return [film.scene.poses(row)[film.scene.tip].position for row in rows]


def camera(film: Film) -> Json:
    """A camera view that shows all moving bodies for the whole film: target, distance and angles."""
    rows = [film.joints.named(row) for row in film.joints.rows[:: max(1, len(film.joints.rows) // 24)]]
    moving = [body for body in film.scene.bodies if body.kind == "robot" or body.joint is not None]
    seen = [film.scene.poses(row)[body.name].position for row in rows for body in moving]
    seen += [mark.position for mark in film.scene.marks]
    seen += [point for points in planned_tips(film) for point in points[:: max(1, len(points) // 8)]]
    low, high = (tuple(map(of, zip(*seen, strict=True))) for of in (min, max))
    at = tuple((a + b) / 2 for a, b in zip(low, high, strict=True))
    radius = math.dist(low, high) / 2 + MARGIN_M
    distance = radius / math.sin(math.radians(FOV_DEGREES / 2))
    return {"at": at, "distance": round(distance, 3), "azimuth": AZIMUTH, "elevation": ELEVATION, "fov": FOV_DEGREES}


def about(film: Film) -> Json:
    """The player's settings beside the film."""
    return {"camera": camera(film), "apart": APART}


def frame(film: Film, at_ns: int) -> Json:
    """The scene at that instant, for `perflab.report.film.render`."""
    from perflab.report.film.render import EXECUTED, FAILED, GOAL, PLANNED

    poses = film.scene.poses(row_at(film.joints, at_ns))
    until = bisect.bisect_right(film.joints.at_ns, at_ns)
    way, planned = tips(film), planned_tips(film)
    # For the plan of the moment; a plan does not hide the actual path.
    plan = max((n for n, plan in enumerate(film.plans) if plan.at_ns <= at_ns), default=0 if planned else None)
    lines: list[Any] = [] if plan is None or not planned else [(PLANNED, _apart(planned[plan]))]
    since = 0 if plan is None or not film.plans else bisect.bisect_left(film.joints.at_ns, film.plans[plan].at_ns)
    lines += [(PLANNED, _apart(considered_tips(film))), (EXECUTED, _apart(way[since:until]))]
    balls: list[Any] = [(GOAL, mark.position, max(0.012, mark.radius)) for mark in film.scene.marks]
    if (failure := film.failure) is not None and failure.at_ns <= at_ns and film.scene.tip is not None:
        balls.append((FAILED, poses[film.scene.tip].position, 0.022))
    return {"poses": {name: [*pose.position, *pose.orientation] for name, pose in poses.items()},
            "lines": lines, "balls": balls}  # fmt: skip


def _apart(points: Sequence[Vector]) -> list[Vector]:
    """Without points that are too near to the previous one to show as a line."""
    kept: list[Vector] = []
    for point in points:
        if not kept or math.dist(kept[-1], point) > 0.004:
            kept.append(point)
    return kept


def moved(film: Film) -> list[float]:
    """The distance that all joints together have moved, at each row."""
    total, found = 0.0, [0.0]
    for one, other in zip(film.joints.rows, film.joints.rows[1:], strict=False):
        total += sum(abs(a - b) for a, b in zip(one, other, strict=True))
        found.append(total)
    return found


def _series(film: Film, series: Series, unit: float) -> Json:
    """Times and, by column, values, each as the difference to the previous one."""
    times = [round((at_ns - film.begin_ns) / NS_PER_S * MILLISECONDS) for at_ns in series.at_ns]
    columns = [_differences(round(row[n] * unit) for row in series.rows) for n in range(len(series.columns))]
    return {"columns": series.columns, "times": _differences(times), "values": columns, "left_out": series.left_out}


def _differences(numbers: Iterable[int]) -> list[int]:
    before, found = 0, []
    for number in numbers:
        found.append(number - before)
        before = number
    return found


def _lanes(film: Film, occupancy: Json) -> Json:
    return {
        "begin": seconds(film, occupancy["begin_ns"]),
        "bin": occupancy["bin_ns"] / NS_PER_S,
        "cpus": occupancy["cpus"],
        "lanes": [{"kind": lane["kind"], "name": _name(lane), "shares": lane["shares"]} for lane in occupancy["lanes"]],
    }


def _name(lane: Mapping[str, Any]) -> str:
    thread = lane["thread"] or (f"tid {lane['tid']}" if lane["tid"] is not None else None)
    who = thread if lane["process"] in (None, thread) or thread is None else f"{thread} of {lane['process']}"
    words = {"runs": f"{who} runs", "waits": f"{who} was ready but did not run", "others": "all others there"}
    return words.get(lane["kind"], who or "?")


def _body(body: Body) -> Json:
    joint = body.joint
    return {
        "name": body.name,
        "parent": body.parent,
        "kind": body.kind,
        **_pose(body.pose),
        "joint": None
        if joint is None
        else {"columns": joint.columns, "kind": joint.kind, "axis": joint.axis, "position": joint.position},
        "shapes": [_shape(shape) for shape in body.shapes],
    }


def _shape(shape: Shape) -> Json:
    found: Json = _pose(shape.pose)
    if shape.mesh is not None:
        found["mesh"] = {"points": shape.mesh.points, "faces": shape.mesh.faces}
    elif shape.box is not None:
        found["box"] = shape.box
    elif shape.cylinder is not None:
        found["cylinder"] = {"radius": shape.cylinder.radius, "height": shape.cylinder.height}
    else:
        found["sphere"] = shape.sphere or 0.0
    return found


def _pose(pose: Pose) -> Json:
    return {"position": pose.position, "orientation": pose.orientation}
