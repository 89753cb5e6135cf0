"""What a node says on the control channel, checked where it arrives."""

from __future__ import annotations

from typing import Any

import pytest

from perflab.errors import ProtocolError
from perflab.experiment import protocol
from perflab.experiment.protocol import Message

PROGRESS: dict[str, Any] = {"type": "progress", "publishing": True} | dict.fromkeys(
    ("at_ns", "elapsed_ns", "sent", "deliveries_expected", "received", "completed", "lost"), 1
)
FLOOD = {"sent": 9, "not_sent": 2, "deliveries_expected": 18, "received": 17}


def parse(body: dict[str, Any]) -> protocol.Line:
    return protocol.parse(Message("p", body))


def test_progress_tells_what_each_condition_did() -> None:
    line = parse(PROGRESS | {"conditions": {"message_flood": FLOOD}})
    assert isinstance(line, protocol.Progress)
    assert line.conditions is not None
    assert line.conditions["message_flood"].model_dump() == FLOOD


@pytest.mark.parametrize("more", [{}, {"conditions": None}])
def test_a_graph_without_conditions_says_nothing_of_them(more: dict[str, Any]) -> None:
    line = parse(PROGRESS | more)
    assert isinstance(line, protocol.Progress)
    assert line.conditions is None


def test_a_condition_that_lacks_a_count_is_refused_by_name() -> None:
    flood = {key: value for key, value in FLOOD.items() if key != "received"}
    with pytest.raises(ProtocolError, match=r"'p'.*conditions\.message_flood\.received"):
        parse(PROGRESS | {"conditions": {"message_flood": flood}})
