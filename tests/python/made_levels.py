"""Results of sweeps as a summary has them, with known effects at each level."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from made_experiment import Effect, result, trial

Json = dict[str, Any]

LOAD = "cpu_load.load"
KNEE_AT_60 = {0: 1.0, 15: 1.02, 30: 1.03, 45: 1.05, 60: 1.07, 75: 3.0, 90: 9.0}


def sweep(path: str, effects: Mapping[Any, Effect], n: int = 5, spread: float = 0.03, **changes: Any) -> list[Json]:
    """A result with n trials for each level; one of a condition at level 0 is the baseline."""
    generator = random.Random(1)
    results: list[Json] = []
    name, _, key = path.partition(".")
    for level, effect in effects.items():
        number = 100 * len(results)
        trials = [trial(number + b, b, effect, 1.0, spread, 2000, generator) for b in range(1, n + 1)]
        given: Json = {"factors": {path: level}}
        if name != "workload" and level != 0:
            given |= {
                "conditions": [name],
                "condition_parameters": {name: {key: level, "workers": 4}},
                "treatment": f"{name} {key}={level}",
            }
        results.append(result(trials, **{**given, **changes}))
    return results


def loads(factors: Mapping[Any, float] = KNEE_AT_60, **changes: Any) -> list[Json]:
    """A sweep over a CPU load with these factors of all times."""
    return sweep(LOAD, {level: Effect(latency=factor) for level, factor in factors.items()}, **changes)
