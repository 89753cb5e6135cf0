"""What a user says of a message flood."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, WithJsonSchema, field_validator

from perflab.parameters import Bytes, DurationNs, Names, Parameters, Percent

Readers = Literal["none", "external", "inside", "topics"]


def _on_or_off(value: Any) -> Any:
    """YAML reads on and off as true and false."""
    return ("on" if value else "off") if isinstance(value, bool) else value


def _hertz(value: Any) -> Any:
    return value.strip().removesuffix("Hz").strip() if isinstance(value, str) else value


Hertz = Annotated[
    float, BeforeValidator(_hertz), Field(allow_inf_nan=False), WithJsonSchema({"type": ["number", "string"]})
]
OwnProcess = Annotated[
    Literal["auto", "on", "off"],
    BeforeValidator(_on_or_off),
    WithJsonSchema({"enum": ["auto", "on", "off", True, False]}),
]


# Of the promised messages. Missing a twentieth is a smaller change of dose than any that an experiment would vary, and
# more than a flood misses on a machine with a CPU to spare.
OFFERED_AT_LEAST_PERCENT = 95.0


class FloodParameters(Parameters):
    """Fields are checked in their order; what depends on others stands behind them."""

    publishers: int | None = Field(
        None,
        ge=0,
        le=256,
        description="publishers, each on a topic of its own (4); with readers=topics so many on every topic (1)",
    )
    rate: Hertz = Field(1000.0, ge=0.1, le=100_000, description="messages per second of each publisher")
    payload: Bytes | None = Field(
        None, gt=0, description="bytes of a message (1024); with readers=topics that of the workload's messages"
    )
    reliability: Literal["best_effort", "reliable"] = Field(
        "best_effort", description="QoS of publishers and readers; with readers=topics reliable where these ask for it"
    )
    history: Literal["keep_last", "keep_all"] = Field("keep_last", description="QoS: keep_last or keep_all")
    depth: int | None = Field(None, ge=1, le=100_000, description="QoS: how many messages keep_last keeps (10)")
    durability: Literal["volatile", "transient_local"] = Field(
        "volatile", description="QoS: volatile or transient_local"
    )
    at_least: Percent = Field(
        OFFERED_AT_LEAST_PERCENT,
        gt=0,
        le=100,
        description="share of the rate that must be sent in every second; beside a load that takes the CPUs, less",
    )
    own_process: OwnProcess = Field(
        "auto",
        description="off: on threads of their own in the workload's first process, for middlewares within one process",
    )
    processes: int = Field(1, ge=1, le=64, description="processes that the publishers are spread over")
    readers: Readers = Field(
        "external",
        description="none; external: a process of their own; inside: on an executor of the workload; "
        "topics: the workload itself, whose topics are flooded",
    )
    process: str | None = Field(None, description="with readers=inside: the process (the only one)")
    executor: int | None = Field(None, ge=0, description="with readers=inside: the id of the executor (the first)")
    topics: Names = Field((), description="with readers=topics: which of them (all that the workload subscribes to)")
    readers_per_topic: int = Field(1, ge=1, le=64, description="with readers=external or inside: readers of a topic")
    work: DurationNs = Field(
        0, le=10_000_000_000, description="with readers=external or inside: CPU time that a reader spends on a message"
    )
    churn: Hertz = Field(
        0.0, ge=0, le=1000, description="endpoints or participants created and deleted per second beside the flood"
    )
    churn_of: Literal["endpoints", "participants"] = Field(
        "endpoints", description="what churn creates and deletes: a writer and a reader, or a participant with them"
    )
    churn_topics: int = Field(1, ge=1, le=100, description="topics of its own that churn uses in turn")

    @property
    def separate(self) -> bool:
        """Whether the flood has processes of its own."""
        return self.own_process != "off"

    @property
    def qos(self) -> dict[str, Any]:
        """As a resolved graph has it."""
        keep_last = self.history == "keep_last"
        return {
            "history": self.history,
            "depth": (self.depth or 10) if keep_last else None,
            "reliability": self.reliability,
            "durability": self.durability,
            "deadline_ns": None,
            "lifespan_ns": None,
            "liveliness": "automatic",
            "lease_duration_ns": None,
        }

    @field_validator("depth")
    @classmethod
    def _depth_needs_keep_last(cls, depth: int | None, info: ValidationInfo) -> int | None:
        if depth is not None and info.data.get("history") == "keep_all":
            raise ValueError("keep_all keeps every message; leave depth out, or use history=keep_last")
        return depth

    @field_validator("processes")
    @classmethod
    def _processes_have_publishers(cls, processes: int, info: ValidationInfo) -> int:
        if processes > 1 and info.data.get("own_process") == "off":
            raise ValueError("own_process=off leaves no process to the flood; leave processes out")
        publishers = info.data.get("publishers")
        if processes > 1 and publishers is not None and processes > publishers:
            raise ValueError(f"{processes} processes cannot share {publishers} publishers; use at most as many")
        return processes

    @field_validator("churn")
    @classmethod
    def _something_to_do(cls, churn: float, info: ValidationInfo) -> float:
        if churn == 0 and info.data.get("publishers") == 0:
            raise ValueError("is needed where publishers is 0; else there is no flood at all")
        if 0 < churn < 0.1:
            raise ValueError("must be at least 0.1 per second")
        return churn

    @field_validator("process", "executor", "topics", "readers_per_topic", "work", "churn_of", "churn_topics")
    @classmethod
    def _is_of_use(cls, value: Any, info: ValidationInfo) -> Any:
        """What was given must change something."""
        name, readers = info.field_name or "", info.data.get("readers")
        needed = {"process": "inside", "executor": "inside", "topics": "topics"}.get(name)
        if value == cls.model_fields[name].default:
            return value
        if needed is not None and readers != needed:
            raise ValueError(f"is of use with readers={needed} only; leave it out")
        if name in ("readers_per_topic", "work") and readers not in ("external", "inside"):
            raise ValueError(f"readers={readers} has no readers of the flood's own; leave it out")
        if name.startswith("churn_") and info.data.get("churn") == 0:
            raise ValueError("is of use with churn only; leave it out, or give churn a rate")
        return value
