"""What factors there are: parameters of conditions, mitigations and workloads, what is set in a graph, options of
middlewares."""

from __future__ import annotations

from functools import partial
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from perflab import qos
from perflab.middleware import disturbance, options_by_path
from perflab.mitigation.kinds import PARTS
from perflab.option import Completer, one_of, values
from perflab.parameters import Switch
from perflab.results.phase import ALIGNED, PHASES
from perflab.workload.generated import REGISTRY as GENERATED

WORKLOAD = "workload"
MIDDLEWARE = "middleware"
OF_ALL = (MIDDLEWARE, disturbance.NAME)  # what options of every middleware are named by
TIMER_SPEED = "timer_speed"
FORMER_TIMER_SPEED = "rate"  # so it was called; runs that were recorded then are read
PHASE = "phase"
SERIALIZATION = "serialization"
KEYED = "keyed"
THREADS = "threads"
Serialization = Literal["once", "every"]


class _Levels(BaseModel):
    """How many times as often all timers fire, where in their periods they do, how often a message is encoded, whether
    topics have keys, and how threads are scheduled: the name of an assignment, or its words."""

    model_config = ConfigDict(strict=True)

    timer_speed: float = Field(1.0, ge=0.001, le=1000.0)
    phase: Literal[PHASES] = ALIGNED  # type: ignore[valid-type]
    serialization: Serialization = "once"
    keyed: Switch = False
    threads: str = Field("", min_length=1)


# What a factor of a graph may set; of QoS, of every publisher and subscription that can have the policy.
GraphLevels: type[_Levels] = create_model("GraphLevels", __base__=_Levels, **qos.fields(depth=1))


def is_keyed(level: object) -> bool:
    """Whether topics have keys, of a level of that factor: on, off, True, False."""
    return GraphLevels.model_validate({KEYED: level}).keyed


QOS_LEVELS, GRAPH_LEVELS = frozenset(qos.BY_NAME), GraphLevels.model_fields


def levels_by_path() -> dict[str, Completer]:
    """Every factor that has a name, with what completes a level of it."""
    found: dict[str, Completer] = {}
    for name, kind in PARTS.items():
        found |= {f"{name}.{key}": partial(values, field) for key, field in kind.fields.items()}
    found |= {f"{WORKLOAD}.{key}": partial(values, field) for key, field in GRAPH_LEVELS.items()}
    for generated in GENERATED.values():
        found |= {f"{WORKLOAD}.{key}": partial(values, field) for key, field in generated.model.model_fields.items()}
    return found | {path: one_of(option.values) for path, option in options_by_path().items()}
