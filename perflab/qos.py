"""The QoS policies, a row for each: parameters of `pubsub`, factors, and keys of a resolved graph.

native/middleware/policies.h is the same for the running graph, and a test compares the two (`perflab-graph policies`);
docs/graphs.md explains each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from perflab.parameters import DurationNs, Names, Switch
from perflab.units import duration_text

MOST = 100_000
PUBLISHERS, SUBSCRIPTIONS, BOTH = "publishers", "subscriptions", "both"
KEEP_ALL = "keep_all"


@dataclass(frozen=True)
class Policy:
    """`form` is how a value is written: one of some words, or depth, limit, duration, number, most, flag, text, names;
    `usual` is the default of ROS 2, or if that lacks the policy, of DDS; None: without."""

    name: str
    description: str
    form: str | tuple[str, ...]
    usual: Any = None
    ends: str = BOTH
    policy: str = ""  # of DDS, if it is different
    ros2: bool = False  # ROS 2 has it

    @property
    def dds(self) -> str:
        return self.policy or self.name

    @property
    def resolved(self) -> str:
        """Its key in a resolved graph."""
        return f"{self.name}_ns" if self.form in ("limit", "duration") else self.name

    @property
    def type(self) -> Any:
        """Of a parameter."""
        if isinstance(self.form, tuple):
            return Literal[self.form]
        return _TYPES[self.form]

    def field(self, usual: Any = None) -> Any:
        return (self.type, Field(self.usual if usual is None else usual, description=self.description))

    @property
    def least(self) -> Any:
        """The value that requests nothing."""
        return "best_effort" if self.name == "reliability" else self.usual

    def asks(self, value: Any) -> bool:
        """Whether the value of a resolved graph requests anything from a middleware; None is no limit, or the usual."""
        return self.name != "depth" and value is not None and value != self.least

    def is_of(self, ends: str) -> bool:
        return self.ends in (BOTH, ends)

    def in_file(self, value: Any) -> Any:
        """In the form of a graph file."""
        if self.form in ("limit", "duration"):
            return f"{value}ns"
        return list(value) if self.form == "names" else value

    def written(self, value: Any) -> str:
        """A value of a resolved graph in the user's notation: 10ms, on."""
        if value is None or value in ((), ""):
            return "none"
        if isinstance(value, bool):
            return "on" if value else "off"
        return duration_text(value) if self.form in ("limit", "duration") else str(value)

    def in_graph(self, value: Any) -> Any:
        """A user's level in the form of a resolved graph."""
        parsed = TypeAdapter(self.type).validate_python(value)
        return ",".join(parsed) if self.form == "names" else parsed


_TYPES: Mapping[str, Any] = {
    "depth": Annotated[int, Field(ge=1, le=MOST)],
    "limit": Annotated[DurationNs | None, Field(gt=0)],
    "duration": Annotated[DurationNs | None, Field(ge=0)],
    "number": Annotated[int, Field(ge=0, le=2**31 - 1)],
    "most": Annotated[int | None, Field(ge=1, le=MOST)],
    "flag": Switch,
    "text": Annotated[str, Field(max_length=255)],
    "names": Names,
}

POLICIES: tuple[Policy, ...] = (
    Policy("history", "which messages are kept for delivery", ("keep_last", KEEP_ALL), "keep_last", ros2=True),
    Policy("depth", "number of messages that keep_last keeps", "depth", 10, policy="history", ros2=True),
    Policy("reliability", "whether lost messages are sent again", ("reliable", "best_effort"), "reliable", ros2=True),
    Policy(
        "durability",
        "messages kept for late readers",
        ("volatile", "transient_local", "transient", "persistent"),
        "volatile",
        ros2=True,
    ),
    Policy("deadline", "the longest time between two messages", "limit", ros2=True),
    Policy("lifespan", "how long a message is worth delivering", "limit", ends=PUBLISHERS, ros2=True),
    Policy(
        "liveliness", "how a publisher shows that it is alive", ("automatic", "manual_by_topic"), "automatic", ros2=True
    ),
    Policy(
        "lease_duration", "how long it counts as alive without a sign of life", "limit", policy="liveliness", ros2=True
    ),
    Policy(
        "service_cleanup_delay",
        "how long a durability service keeps a disposed instance",
        "duration",
        ends=PUBLISHERS,
        policy="durability_service",
    ),
    Policy("partition", "names of which both ends must share one", "names", ()),
    Policy(
        "ownership", "whether all publishers are received, or only the strongest", ("shared", "exclusive"), "shared"
    ),
    Policy("ownership_strength", "strength of a publisher", "number", 0, PUBLISHERS, policy="ownership"),
    Policy("time_based_filter", "the least time between two received messages", "duration", ends=SUBSCRIPTIONS),
    Policy(
        "destination_order",
        "whether an older message may follow a newer one",
        ("by_reception", "by_source"),
        "by_reception",
    ),
    Policy("transport_priority", "a hint to the transport", "number", 0, PUBLISHERS),
    Policy("latency_budget", "a hint how long a message may wait to be sent with others", "duration"),
    Policy("max_samples", "messages that an end has room for", "most", policy="resource_limits"),
    Policy("max_instances", "instances that it has room for", "most", policy="resource_limits"),
    Policy("max_samples_per_instance", "messages of each instance", "most", policy="resource_limits"),
    Policy(
        "access_scope",
        "scope of coherence and order of messages",
        ("instance", "topic", "group"),
        "instance",
        policy="presentation",
    ),
    Policy("coherent", "whether sets of messages arrive whole", "flag", False, policy="presentation"),
    Policy("ordered", "whether order holds across instances", "flag", False, policy="presentation"),
    Policy("user_data", "data that peers see about the end", "text", ""),
    Policy("topic_data", "data that they see about its topic", "text", ""),
    Policy("group_data", "data that they see about its publisher or subscriber", "text", ""),
)
BY_NAME = {policy.name: policy for policy in POLICIES}


def fields(**usual: Any) -> dict[str, Any]:
    """A field of a model for each; `usual` are different defaults."""
    return {policy.name: policy.field(usual.get(policy.name)) for policy in POLICIES}


def document(values: Any, ends: str) -> dict[str, Any]:
    """`qos` of a graph file, from the attributes of `values`, for one kind of end."""
    found = {}
    for policy in POLICIES:
        value = getattr(values, policy.name)
        needless = policy.name == "depth" and values.history == KEEP_ALL
        if policy.is_of(ends) and value is not None and not needless and (policy.ros2 or value != policy.usual):
            found[policy.name] = policy.in_file(value)
    return found


def with_levels(qos: dict[str, Any], levels: Mapping[str, Any], ends: str) -> None:
    """Sets levels of factors in `qos` of a resolved graph. A depth implies keep_last, and keep_all has none."""
    for name, level in levels.items():
        policy = BY_NAME[name]
        if policy.is_of(ends):
            qos[policy.resolved] = policy.in_graph(level)
    if "depth" in levels:
        qos["history"] = "keep_last"
    elif levels.get("history") == KEEP_ALL:
        qos["depth"] = None
    elif "history" in levels and qos["depth"] is None:
        qos["depth"] = BY_NAME["depth"].usual


def dds_policies(of: Iterable[Policy] = POLICIES) -> tuple[str, ...]:
    """DDS's names for them, without duplicates."""
    return tuple(dict.fromkeys(policy.dds for policy in of))
