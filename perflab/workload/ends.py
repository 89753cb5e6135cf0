"""Publishers and subscriptions as a few parameters describe them: their message, its size, their QoS.

What kinds of workloads with messages of the user's choice share. `EndParameters` is without QoS, whose parameters are
those of qos.py: `with_qos` adds them.
"""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import Field, create_model

from perflab import qos
from perflab.parameters import Bytes, Parameters

P = TypeVar("P", bound="EndParameters")


class EndParameters(Parameters):
    message: str = Field("array1k", description="type of the message; `perflab list messages` shows them all")
    size: Bytes | None = Field(
        None, ge=0, description="of types of variable size: bytes, characters or elements of what varies"
    )


def with_qos(model: type[P], name: str, **usual: Any) -> type[P]:
    """The model with a parameter for each QoS policy; `usual` are defaults that are others than ROS 2's."""
    return create_model(name, __base__=model, **qos.fields(**usual))


def publisher(p: EndParameters, topic: str, **more: Any) -> dict[str, Any]:
    """As a graph file has it, with these keys as well; without a pace among them a reaction publishes."""
    size = {} if p.size is None else {"size": p.size}
    return {"topic": topic, "type": type_of(p), **size, **more, "qos": qos.document(p, qos.PUBLISHERS)}


def subscription(p: EndParameters, topic: str, **more: Any) -> dict[str, Any]:
    return {"topic": topic, "type": type_of(p), **more, "qos": qos.document(p, qos.SUBSCRIPTIONS)}


def type_of(p: EndParameters) -> str:
    """A name as performance_test has them, Array1k, is that of one of perflab's own."""
    bare = "/" not in p.message and p.message[:1].isupper()
    return f"perflab_msgs/msg/{p.message}" if bare else p.message
