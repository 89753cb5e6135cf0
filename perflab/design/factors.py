"""The kinds of factors: parameters of conditions, mitigations and workloads, settings of a graph, options of
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
OF_ALL = (MIDDLEWARE, disturbance.NAME)  # prefix of options that apply to every middleware
TIMER_SPEED = "timer_speed"
FORMER_TIMER_SPEED = "rate"  # the former name, as in older recorded runs
PHASE = "phase"
SERIALIZATION = "serialization"
KEYED = "keyed"
THREADS = "threads"
Serialization = Literal["once", "every"]


class _Levels(BaseModel):
    """How many times as often all timers fire, their phase within the period, how often a message is encoded, whether
    topics have keys, and thread scheduling: the name of an assignment, or its words."""

    model_config = ConfigDict(strict=True)

    timer_speed: float = Field(1.0, ge=0.001, le=1000.0)
    phase: Literal[PHASES] = ALIGNED  # type: ignore[valid-type]
    serialization: Serialization = "once"
    keyed: Switch = False
    threads: str = Field("", min_length=1)


# What a factor can set in a graph; a QoS level applies to every publisher and subscription that has the policy.
GraphLevels: type[_Levels] = create_model("GraphLevels", __base__=_Levels, **qos.fields(depth=1))


def is_keyed(level: object) -> bool:
    """Whether topics have keys at a level of that factor: on, off, True, False."""
    return GraphLevels.model_validate({KEYED: level}).keyed


QOS_LEVELS, GRAPH_LEVELS = frozenset(qos.BY_NAME), GraphLevels.model_fields


def levels_by_path() -> dict[str, Completer]:
    """Every named factor, with the completer of its levels."""
    found: dict[str, Completer] = {}
    for name, kind in PARTS.items():
        found |= {f"{name}.{key}": partial(values, field) for key, field in kind.fields.items()}
    found |= {f"{WORKLOAD}.{key}": partial(values, field) for key, field in GRAPH_LEVELS.items()}
    for generated in GENERATED.values():
        found |= {f"{WORKLOAD}.{key}": partial(values, field) for key, field in generated.model.model_fields.items()}
    return found | {path: one_of(option.values) for path, option in options_by_path().items()}
