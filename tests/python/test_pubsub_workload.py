"""The workload `pubsub`: the graph of each layout, and what is no such workload."""

from __future__ import annotations

from typing import Any

import pytest

from perflab.errors import BadInput
from perflab.workload import pubsub
from perflab.workload.pubsub import KIND, PubSubParameters


def written(**given: Any) -> dict[str, Any]:
    return pubsub.document(PubSubParameters.model_validate(given))


def nodes_of(document: dict[str, Any]) -> list[dict[str, Any]]:
    parts = document.get("processes", [document])
    return [node for part in parts for node in part["nodes"]]


@pytest.mark.parametrize(
    ("layout", "processes", "executors"), [("thread", 1, 1), ("threads", 1, 5), ("processes", 5, 1)]
)
def test_a_layout_says_in_which_process_and_thread_a_node_is(layout: str, processes: int, executors: int) -> None:
    document = written(layout=layout, publishers=2, subscribers=3)
    nodes = nodes_of(document)
    assert [node["name"] for node in nodes] == [
        "publisher_1", "publisher_2", "subscriber_1", "subscriber_2", "subscriber_3",
    ]  # fmt: skip
    assert len(document.get("processes", [document])) == processes
    assert len({node.get("executor", 0) for node in nodes}) == executors
    ends = [end["topic"] for node in nodes for end in (*node.get("publishers", ()), *node.get("subscriptions", ()))]
    assert ends == ["/pubsub"] * 5


def test_a_relay_sends_back_what_it_gets_and_the_round_trip_is_a_key_figure() -> None:
    document = written(layout="relay")
    main, relay = nodes_of(document)
    assert main["publishers"][0]["topic"] == relay["subscriptions"][0]["topic"] == "/pubsub"
    assert relay["publishers"][0]["topic"] == main["subscriptions"][0]["topic"] == "/pubsub/relayed"
    assert "period" not in relay["publishers"][0]
    assert document["key_figures"] == {"relay_round_trip": {"from": "main", "to": "main"}}


def test_rate_size_and_qos_are_those_of_all_ends() -> None:
    document = written(
        message="unbounded_sequence", size="2kB", rate=250, reliability="best_effort", durability="transient_local",
        depth=3, deadline="20ms", lifespan="1s", liveliness="manual_by_topic", lease_duration="100ms",
    )  # fmt: skip
    publisher, subscriber = nodes_of(document)
    (sends,), (takes,) = publisher["publishers"], subscriber["subscriptions"]
    assert (sends["type"], sends["size"], sends["period"]) == ("unbounded_sequence", 2000, "4000000ns")
    both = {
        "reliability": "best_effort", "durability": "transient_local", "history": "keep_last", "depth": 3,
        "liveliness": "manual_by_topic", "deadline": "20000000ns", "lease_duration": "100000000ns",
    }  # fmt: skip
    assert takes["qos"] == both
    assert sends["qos"] == {**both, "lifespan": "1000000000ns"}


@pytest.mark.parametrize(
    ("message", "named"),
    [
        ("array1k", "array1k"),
        ("Array1k", "perflab_msgs/msg/Array1k"),
        ("sensor_msgs/msg/Image", "sensor_msgs/msg/Image"),
    ],
)
def test_messages_may_be_called_as_performance_test_calls_them(message: str, named: str) -> None:
    assert {end["type"] for node in nodes_of(written(message=message)) for end in (*node.get("publishers", ()),)} == {
        named
    }


@pytest.mark.parametrize(
    ("given", "pace"),
    [
        ({}, {"period": "1000000ns"}),
        ({"rate": 0}, {"arrivals": "unthrottled"}),
        ({"arrivals": "poisson", "rate": 50}, {"period": "20000000ns", "arrivals": "poisson"}),
        ({"burst": 10}, {"period": "1000000ns", "burst": 10}),
    ],
)
def test_messages_come_one_by_one_at_random_in_bursts_or_as_fast_as_it_goes(
    given: dict[str, Any], pace: dict[str, Any]
) -> None:
    (publisher, _) = nodes_of(written(**given))
    sends = publisher["publishers"][0]
    assert {key: sends[key] for key in ("period", "arrivals", "burst") if key in sends} == pace


def test_a_history_of_everything_has_no_depth() -> None:
    (node, _) = nodes_of(written(history="keep_all"))
    assert "depth" not in node["publishers"][0]["qos"]


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"rate": "-1"}, "rate: -1 must be at least 0"),
        (
            {"rate": "0", "burst": "5"},
            "rate=0 is unthrottled, without arrivals or bursts; leave them out",
        ),
        ({"arrivals": "random"}, "arrivals: 'random' is not periodic or poisson"),
        ({"layout": "relay", "subscribers": "2"}, "layout=relay needs one publisher and one subscriber"),
        ({"layout": "proceses"}, "layout: 'proceses' is not thread, threads, processes or relay"),
        ({"messages": "array1k"}, "no parameter 'messages'; did you mean message?"),
        ({"depth": "0"}, "depth: 0 must be at least 1"),
    ],
)
def test_what_is_wrong_is_said(given: dict[str, str], complaint: str) -> None:
    with pytest.raises(BadInput) as caught:
        KIND.make(given, "workload pubsub")
    assert complaint in str(caught.value)
