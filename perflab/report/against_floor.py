"""Floors: the middlewares that carry messages in the cheapest way, for comparison with the others."""

from __future__ import annotations

from collections.abc import Sequence

from perflab.middleware import REGISTRY
from perflab.results.curve import Curve

FLOOR = "a floor: only sockets or memory"


def is_floor(middleware: str | None) -> bool:
    """The floor for a name in results; None for several middlewares together."""
    kind = REGISTRY.get(middleware or "")
    return kind is not None and kind.floor


def floors_among(curves: Sequence[Curve]) -> list[Curve]:
    """The floors; empty if there is nothing to compare with them."""
    found = [curve for curve in curves if is_floor(curve.middleware)]
    return found if len(found) < len(curves) else []
