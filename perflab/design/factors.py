"""What factors there are: parameters of conditions and workloads, what is set in a graph, options of middlewares."""

from __future__ import annotations

from functools import partial

from perflab.condition.kinds import REGISTRY as CONDITIONS
from perflab.middleware import REGISTRY as MIDDLEWARES
from perflab.option import Completer, one_of, values
from perflab.workload import PHASES
from perflab.workload.generated import REGISTRY as GENERATED

WORKLOAD = "workload"
MIDDLEWARE = "middleware"
TIMER_SPEED = "timer_speed"
FORMER_TIMER_SPEED = "rate"  # so it was called; runs that were recorded then are read
PHASE = "phase"
# What a factor of a graph may set: of every publisher and subscription, how many times as often all timers fire, and
# where in their periods they do.
QOS_LEVELS: dict[str, tuple[str, ...] | None] = {
    "depth": None,
    "reliability": ("reliable", "best_effort"),
    "durability": ("volatile", "transient_local"),
}
GRAPH_LEVELS: dict[str, tuple[str, ...] | None] = {**QOS_LEVELS, TIMER_SPEED: None, PHASE: PHASES}


def levels_by_path() -> dict[str, Completer]:
    """Every factor that has a name, with what completes a level of it."""
    found: dict[str, Completer] = {}
    for name, kind in CONDITIONS.items():
        found |= {f"{name}.{key}": partial(values, field) for key, field in kind.model.model_fields.items()}
    found |= {f"{WORKLOAD}.{key}": one_of(words or ()) for key, words in GRAPH_LEVELS.items()}
    for generated in GENERATED.values():
        found |= {f"{WORKLOAD}.{key}": partial(values, field) for key, field in generated.model.model_fields.items()}
    for name, middleware in MIDDLEWARES.items():
        found |= {f"{name}.{option.key}": one_of(option.values) for option in middleware.options}
    return found
