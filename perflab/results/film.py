"""The contents of a trial's film: bodies and their joints, where they were, and where they should have been.

Positions are in metres, angles in radians, orientations quaternions x, y, z, w; instants in nanoseconds of
CLOCK_MONOTONIC. Programs record it while they run (docs/programs.md#a-film-of-a-trial); the code here does not depend
on the program.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Vector = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]
NOWHERE: Vector = (0.0, 0.0, 0.0)
UPRIGHT: Quaternion = (0.0, 0.0, 0.0, 1.0)
_FREE = (".x", ".y", ".z", ".qx", ".qy", ".qz", ".qw")


@dataclass(frozen=True)
class Pose:
    position: Vector = NOWHERE
    orientation: Quaternion = UPRIGHT

    def __matmul__(self, other: Pose) -> Pose:
        """`other`, given in the frame of this pose, transformed to the parent frame of this pose."""
        return Pose(added(self.position, turned(self.orientation, other.position)),
                    multiplied(self.orientation, other.orientation))  # fmt: skip


@dataclass(frozen=True)
class Joint:
    """How a body moves in its parent: about or along `axis`, through `position`; a free one has any pose."""

    name: str
    kind: Literal["turn", "slide", "free"]
    axis: Vector = (0.0, 0.0, 1.0)
    position: Vector = NOWHERE

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its columns in a series."""
        return tuple(self.name + each for each in _FREE) if self.kind == "free" else (self.name,)


@dataclass(frozen=True)
class Mesh:
    """Vertices, three numbers each, and faces, three indices of vertices each, counterclockwise from outside."""

    points: tuple[float, ...]
    faces: tuple[int, ...]


@dataclass(frozen=True)
class Cylinder:
    radius: float
    height: float


@dataclass(frozen=True)
class Shape:
    """One of these shapes, and its place on its body."""

    pose: Pose = Pose()
    mesh: Mesh | None = None
    box: Vector | None = None  # edge lengths
    cylinder: Cylinder | None = None  # along z
    sphere: float | None = None  # its radius


@dataclass(frozen=True)
class Body:
    name: str
    parent: str | None = None  # none: it is attached to the world
    pose: Pose = Pose()
    joint: Joint | None = None
    shapes: tuple[Shape, ...] = ()
    kind: Literal["robot", "object"] = "object"


@dataclass(frozen=True)
class Mark:
    """The goal of the tip."""

    name: str
    position: Vector
    radius: float = 0.01


@dataclass(frozen=True)
class Scene:
    """`bodies` with parents before their children; the path of the body `tip` is drawn."""

    bodies: tuple[Body, ...]
    tip: str | None = None
    marks: tuple[Mark, ...] = ()

    def poses(self, positions: Mapping[str, float]) -> dict[str, Pose]:
        """The pose of each body, with its joints at these positions by column name; a missing joint is at 0."""
        found: dict[str, Pose] = {}
        for body in self.bodies:
            base = body.pose if body.parent is None else found[body.parent] @ body.pose
            found[body.name] = _moved(base, body.joint, positions)
        return found


@dataclass(frozen=True)
class Series:
    """Rows of numbers over time, in order; `left_out` is the number of rows that did not fit."""

    columns: tuple[str, ...]
    at_ns: tuple[int, ...] = ()
    rows: tuple[tuple[float, ...], ...] = ()
    left_out: int = 0
    process: str = ""  # that recorded it

    def named(self, row: Sequence[float]) -> dict[str, float]:
        return dict(zip(self.columns, row, strict=True))


@dataclass(frozen=True)
class Plan:
    """The planned joint positions, `s` seconds after the start; the plan was ready at `at_ns`."""

    at_ns: int
    columns: tuple[str, ...]
    s: tuple[float, ...]
    rows: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Moment:
    """What began then; `failed`: the trial's outcome, and its reason."""

    at_ns: int
    words: str
    failed: bool = False


@dataclass(frozen=True)
class Film:
    """`joints` are measured positions, `desired` those of a controller, `tip` positions of the tip as seen by a
    program."""

    scene: Scene
    joints: Series
    desired: Series | None = None
    tip: Series | None = None
    lateness: Series | None = None  # nanoseconds, a column for each loop: the latest cycle since the previous row
    plans: tuple[Plan, ...] = ()
    considered: Plan | None = None  # of which nothing was executed
    moments: tuple[Moment, ...] = ()

    @property
    def begin_ns(self) -> int:
        return self.joints.at_ns[0]

    @property
    def end_ns(self) -> int:
        return self.joints.at_ns[-1]

    @property
    def failure(self) -> Moment | None:
        return next((moment for moment in self.moments if moment.failed), None)


def added(one: Vector, other: Vector) -> Vector:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]


def multiplied(one: Quaternion, other: Quaternion) -> Quaternion:
    (ax, ay, az, aw), (bx, by, bz, bw) = one, other
    return (
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
        aw * bw - ax * bx - ay * by - az * bz,
    )


def turned(by: Quaternion, point: Vector) -> Vector:
    x, y, z, w = by
    px, py, pz = point
    tx, ty, tz = 2 * (y * pz - z * py), 2 * (z * px - x * pz), 2 * (x * py - y * px)
    return px + w * tx + y * tz - z * ty, py + w * ty + z * tx - x * tz, pz + w * tz + x * ty - y * tx


def _moved(base: Pose, joint: Joint | None, positions: Mapping[str, float]) -> Pose:
    if joint is None:
        return base
    if joint.kind == "free":
        values = [positions.get(column) for column in joint.columns]
        if any(value is None for value in values):
            return base
        x, y, z, qx, qy, qz, qw = (float(value or 0.0) for value in values)
        return Pose((x, y, z), (qx, qy, qz, qw))
    value = positions.get(joint.name, 0.0)
    ax, ay, az = joint.axis
    if joint.kind == "slide":
        return base @ Pose((ax * value, ay * value, az * value))
    half = math.sin(value / 2)
    turn: Quaternion = (ax * half, ay * half, az * half, math.cos(value / 2))
    back = turned(turn, joint.position)
    at = joint.position
    return base @ Pose((at[0] - back[0], at[1] - back[1], at[2] - back[2]), turn)
