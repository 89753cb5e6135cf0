"""Entries `curves` and `breaking_points` of summary.json as sweeps and searches write them, of known shapes."""

from __future__ import annotations

import math
from typing import Any

from perflab.models import read
from perflab.results.curve import BreakingPoint, Curve

Json = dict[str, Any]

LEVELS = (0, 500, 1000, 1500, 2000, 2500, 3000)


def made_curve(variant: str = "cyclonedds", knee: float | None = 1500, **changes: Any) -> Curve:
    return read(Curve, curve_document(variant, knee, **changes))


def curve_document(variant: str = "cyclonedds", knee: float | None = 1500, **changes: Any) -> Json:
    """A curve over the rate of a flood: p99 is 80 µs up to the knee and then rises; flat without one."""
    p99 = [80_000.0 * math.exp(max(0.0, level - (knee or math.inf)) / 500) for level in LEVELS]
    curve: Json = {
        "variant": variant,
        "factor": "message_flood.rate",
        "others": {},
        "scale": "linear",
        "levels": [
            {
                "level": level,
                "treatment": f"message_flood rate={level}",
                "n": 5,
                "successes": 5 if knee is None or level <= knee else 3,
                "judged": 5,
                "success_low": 0.5655 if knee is None or level <= knee else 0.2307,
                "success_high": 1.0 if knee is None or level <= knee else 0.8824,
                "invalid": 1 if level == 3000 else 0,
                "harness_errors": 0,
            }
            for level in LEVELS
        ],
        "metrics": {
            "latency.p50": _metric("ns", [v / 3 for v in p99]),
            "latency.p99": _metric("ns", p99),
            "lost_share": _metric("%", [max(0.0, level - 2000) / 200 if knee else 0.0 for level in LEVELS]),
        },
    }
    if knee is not None:
        own = curve["metrics"]["latency.p99"]
        own["knee"] = {"level": knee, "low": knee - 200, "high": knee + 300, "confidence": 0.95}
        own["knee_reason"] = None
        own["words"] = [f"From {knee:g} on p99 rises faster"]
        lost = curve["metrics"]["lost_share"]
        lost["saturation"] = {"level": 2000, "low": 1800, "high": 2300, "confidence": 0.95}
    return curve | changes


def _metric(unit: str, values: list[float]) -> Json:
    return {
        "unit": unit,
        "points": [{"value": v, "low": v * 0.8, "high": v * 1.3, "n": 5} for v in values],
        "confidence": 0.95,
        "knee": None,
        "knee_reason": "the curve is straight",
        "saturation": None,
        "saturation_reason": None,
        "words": [],
    }


def made_breaking_point(variant: str = "cyclonedds", value: float | None = 1480, **changes: Any) -> BreakingPoint:
    return read(BreakingPoint, search_document(variant, value, **changes))


def search_document(variant: str = "cyclonedds", value: float | None = 1480, **changes: Any) -> Json:
    """A search between 100 and 3000 that found `value`, or with None that nothing breaks."""
    at = math.inf if value is None else value

    def share(level: float) -> float:
        return 1 / (1 + math.exp((level - at) / 120 - math.log(9)))

    asked = (1550, 800, 2200, 1300, 1700, 1400, 1500, 1600, 1450, 1350, 1500, 1550)
    course: list[Json] = []
    for order, level in enumerate((*asked, *asked, *asked), start=1):
        met: bool | None = share(level) > (order * 0.618) % 1
        course.append({"order": order, "level": level, "met": None if order == 7 else met})
    levels = []
    for level in sorted(set(asked)):
        told = [step["met"] for step in course if step["level"] == level and step["met"] is not None]
        low, high = _wilson(sum(told), len(told))
        invalid = sum(step["met"] is None for step in course if step["level"] == level)
        levels.append({"level": level, "met": sum(told), "n": len(told), "low": low, "high": high, "invalid": invalid})
    grid = [100 + 2900 * i / 60 for i in range(61)]
    fit = {
        "level": grid,
        "share": [share(level) for level in grid],
        "low": [max(0.0, share(level + 90) - 0.02) for level in grid],
        "high": [min(1.0, share(level - 90) + 0.02) for level in grid],
    }
    found = value is not None
    entry: Json = {
        "variant": variant,
        "treatment": "message_flood",
        "factor": "message_flood.rate",
        "others": {},
        "criterion": "success",
        "falls": False,
        "max_trials": 60,
        "share": 0.9,
        "low": 100,
        "high": 3000,
        "scale": "linear",
        "integer": False,
        "state": "found" if found else "not_reached",
        "value": value,
        "interval": {"low": at - 70, "high": at + 60, "level": 0.95} if found else None,
        "precision": 290.0,
        "stopped": "precise enough" if found else "all levels met it",
        "trials": sum(level["n"] for level in levels),
        "left_out": {"invalid": 1, "harness_error": 0},
        "levels": levels,
        "course": course,
        "fit": fit if found else None,
        "monotone_p": 0.6,
        "words": [
            f"Breaks at {value:g}" if value is not None else "Not reached: at 3000 the criterion was still met",
            "Left out: 1 trial (1 invalid); they count neither way.",
        ],
    }
    return entry | changes


def _wilson(met: int, n: int, z: float = 1.96) -> tuple[float, float]:
    p, root = met / n, z * math.sqrt(met / n * (1 - met / n) / n + z * z / (4 * n * n))
    middle, whole = p + z * z / (2 * n), 1 + z * z / n
    return max(0.0, (middle - root) / whole), min(1.0, (middle + root) / whole)
