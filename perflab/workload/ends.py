"""Publishers and subscriptions from a few parameters: message type, size, QoS.

Shared by the kinds of workloads whose message type the user chooses. `EndParameters` has no QoS; `with_qos` adds the
parameters of qos.py.
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
        None,
        ge=0,
        description="for types of variable size: number of bytes, characters or elements of the variable part",
    )


def with_qos(model: type[P], name: str, **usual: Any) -> type[P]:
    """The model with a parameter for each QoS policy; `usual` has the defaults that differ from ROS 2's."""
    return create_model(name, __base__=model, **qos.fields(**usual))


def publisher(p: EndParameters, topic: str, **more: Any) -> dict[str, Any]:
    """A publisher as in a graph file, with `more` keys; without a period or arrivals a reaction publishes."""
    size = {} if p.size is None else {"size": p.size}
    return {"topic": topic, "type": type_of(p), **size, **more, "qos": qos.document(p, qos.PUBLISHERS)}


def subscription(p: EndParameters, topic: str, **more: Any) -> dict[str, Any]:
    return {"topic": topic, "type": type_of(p), **more, "qos": qos.document(p, qos.SUBSCRIPTIONS)}


def type_of(p: EndParameters) -> str:
    """A name in performance_test's style, like Array1k, means one of perflab's own types."""
    bare = "/" not in p.message and p.message[:1].isupper()
    return f"perflab_msgs/msg/{p.message}" if bare else p.message
