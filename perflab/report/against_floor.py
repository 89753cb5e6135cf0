"""Floors: the middlewares that carry a message with the least there is, beside which others say what they add."""

from __future__ import annotations

from collections.abc import Sequence

from perflab.middleware import REGISTRY
from perflab.results.curve import Curve

FLOOR = "a floor: sockets or memory alone"


def is_floor(middleware: str | None) -> bool:
    """Of a name as results have it; not of several middlewares together."""
    kind = REGISTRY.get(middleware or "")
    return kind is not None and kind.floor


def floors_among(curves: Sequence[Curve]) -> list[Curve]:
    """Those of floors; empty where there is nothing else that could stand above them."""
    found = [curve for curve in curves if is_floor(curve.middleware)]
    return found if len(found) < len(curves) else []
