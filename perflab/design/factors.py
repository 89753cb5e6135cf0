"""What factors there are: parameters of conditions and workloads, what is set in a graph, options of middlewares."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator

from perflab.condition.kinds import REGISTRY as CONDITIONS
from perflab.middleware import REGISTRY as MIDDLEWARES
from perflab.option import Completer, Form, one_of, values
from perflab.results.trial import ALIGNED
from perflab.workload import PHASES
from perflab.workload.generated import REGISTRY as GENERATED

WORKLOAD = "workload"
MIDDLEWARE = "middleware"
TIMER_SPEED = "timer_speed"
FORMER_TIMER_SPEED = "rate"  # so it was called; runs that were recorded then are read
PHASE = "phase"


def _within(low: float, high: float, *, whole: bool = False) -> BeforeValidator:
    def check(level: Any) -> Any:
        number = not isinstance(level, bool) and isinstance(level, int if whole else int | float)
        if not number or not low <= level <= high:
            raise ValueError(f"{level!r} is not a number within {low:g}..{high:.6g}")
        return level

    return BeforeValidator(check)


def _one(*words: str) -> tuple[BeforeValidator, Form]:
    def check(level: Any) -> Any:
        if level not in words:
            raise ValueError(f"{level!r} is not {' or '.join(words)}")
        return level

    return BeforeValidator(check), Form("|".join(words), complete=one_of(words))


class Qos(BaseModel):
    """What a factor of a graph may set of every publisher and subscription."""

    depth: Annotated[int, _within(1, 100_000, whole=True)] = 1
    reliability: Annotated[str, *_one("reliable", "best_effort")] = "reliable"
    durability: Annotated[str, *_one("volatile", "transient_local")] = "volatile"


class GraphLevels(Qos):
    """Likewise how many times as often all timers fire, and where in their periods they do."""

    timer_speed: Annotated[float, _within(0.001, 1000.0)] = 1.0
    phase: Annotated[str, *_one(*PHASES)] = ALIGNED


QOS_LEVELS, GRAPH_LEVELS = Qos.model_fields, GraphLevels.model_fields


def levels_by_path() -> dict[str, Completer]:
    """Every factor that has a name, with what completes a level of it."""
    found: dict[str, Completer] = {}
    for name, kind in CONDITIONS.items():
        found |= {f"{name}.{key}": partial(values, field) for key, field in kind.model.model_fields.items()}
    found |= {f"{WORKLOAD}.{key}": partial(values, field) for key, field in GRAPH_LEVELS.items()}
    for generated in GENERATED.values():
        found |= {f"{WORKLOAD}.{key}": partial(values, field) for key, field in generated.model.model_fields.items()}
    for name, middleware in MIDDLEWARES.items():
        found |= {f"{name}.{option.key}": one_of(option.values) for option in middleware.options}
    return found
