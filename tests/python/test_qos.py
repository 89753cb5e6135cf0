"""The QoS policies of Python, of the native programs, of the schema and of the documents are the same."""

from __future__ import annotations

import json
import re
import subprocess

import pytest
from support import SOURCE

from perflab import native, qos
from perflab.design.factors import GRAPH_LEVELS
from perflab.middleware import REGISTRY, Middleware, all_available
from perflab.middleware.kind import PolicySupport
from perflab.workload.pubsub import PubSubParameters

SCHEMA = json.loads((SOURCE / "docs/schema/graph.schema.json").read_text())["$defs"]


def test_each_policy_is_a_parameter_of_pubsub_and_a_factor() -> None:
    for policy in qos.POLICIES:
        assert policy.name in PubSubParameters.model_fields
        assert policy.name in GRAPH_LEVELS


@pytest.mark.parametrize(("ends", "name"), [(qos.PUBLISHERS, "publisher_qos"), (qos.SUBSCRIPTIONS, "subscription_qos")])
def test_the_schema_has_the_policies_of_each_end(ends: str, name: str) -> None:
    properties = SCHEMA[name]["properties"]
    assert set(properties) == {policy.name for policy in qos.POLICIES if policy.is_of(ends)}
    for policy in qos.POLICIES:
        if isinstance(policy.form, tuple) and policy.is_of(ends):
            assert set(properties[policy.name]["enum"]) == set(policy.form)


def test_services_have_the_policies_of_ros2() -> None:
    assert set(SCHEMA["service_qos"]["properties"]) == {policy.name for policy in qos.POLICIES if policy.ros2}


@pytest.mark.native
def test_the_native_table_is_the_same() -> None:
    said = json.loads(subprocess.check_output([native.find().program("perflab-graph"), "policies"], text=True))
    assert [one["name"] for one in said] == [policy.name for policy in qos.POLICIES]
    for one, policy in zip(said, qos.POLICIES, strict=True):
        form = set(policy.form) if isinstance(policy.form, tuple) else policy.form
        assert (set(one["form"]) if isinstance(one["form"], list) else one["form"]) == form
        assert (one["resolved"], one["policy"], one["ends"], one["ros2"]) == (
            policy.resolved,
            policy.dds,
            policy.ends,
            policy.ros2,
        )


@pytest.mark.native
def test_the_matrix_of_the_document_is_what_middlewares_declare() -> None:
    kinds = [kind for kind in REGISTRY.values() if kind.plugin is None]
    found = dict(zip((kind.name for kind in kinds), all_available(kinds, native.find()), strict=True))
    text = (SOURCE / "docs/middlewares.md").read_text(encoding="utf-8").partition("## Quality of service\n")[2]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]
    head, lines = rows[0], rows[2:]
    shown = [re.sub(r"`", "", name) for name in head[1:]]
    policies = [line[0].strip("`") for line in lines[: len(qos.dds_policies())]]
    assert policies == list(qos.dds_policies())
    for line in lines[: len(policies)]:
        for name, cell in zip(shown, line[1:], strict=True):
            if name in found and found[name].usable:
                said = found[name].policies[line[0].strip("`")]
                assert cell.partition(":")[0] == said.support, (name, line[0])


def test_every_policy_that_the_document_on_performance_test_lists_has_a_name() -> None:
    listed = """
        durability durability_service lifespan history presentation reliability partition destination_order ownership
        ownership_strength deadline latency_budget transport_priority time_based_filter resource_limits user_data
        topic_data group_data
    """.split()  # noqa: SIM905
    assert len(listed) == 18
    assert set(listed) <= {*qos.dds_policies(), *qos.BY_NAME}


def test_a_factor_sets_the_policy_of_the_ends_that_can_have_it() -> None:
    levels = {
        "ownership_strength": 3,
        "time_based_filter": "5ms",
        "partition": "left, right",
        "deadline": "10ms",
        "coherent": "on",
    }
    publisher: dict[str, object] = {"history": "keep_all", "depth": None}
    subscription = dict(publisher)
    qos.with_levels(publisher, levels, qos.PUBLISHERS)
    qos.with_levels(subscription, levels, qos.SUBSCRIPTIONS)
    both = {
        "history": "keep_all",
        "depth": None,
        "partition": "left,right",
        "deadline_ns": 10_000_000,
        "coherent": True,
    }
    assert publisher == {**both, "ownership_strength": 3}
    assert subscription == {**both, "time_based_filter_ns": 5_000_000}


@pytest.mark.parametrize(
    ("levels", "history", "depth"),
    [
        ({"depth": 4}, "keep_last", 4),
        ({"history": "keep_all"}, "keep_all", None),
        ({"history": "keep_last"}, "keep_last", 10),
    ],
)
def test_depth_and_history_go_together(levels: dict[str, object], history: str, depth: int | None) -> None:
    given: dict[str, object] = {"history": "keep_all", "depth": None}
    qos.with_levels(given, levels, qos.PUBLISHERS)
    assert given == {"history": history, "depth": depth}


def test_what_a_middleware_refuses_is_said_by_name() -> None:
    declared = {
        "reliability": PolicySupport("refused", "datagrams are sent once"),
        "durability": PolicySupport("supported"),
        "durability=persistent": PolicySupport("refused"),
        "lifespan": PolicySupport("refused", "there is no timer"),
        "presentation": PolicySupport("refused"),
    }
    middleware = Middleware("udp", "dds", None, None, policies=declared)
    assert middleware.refusal({"reliability": "best_effort", "durability": "transient_local"}) is None
    assert (
        middleware.refusal({"reliability": "reliable"})
        == "udp refuses reliability reliable: datagrams are sent once; use best_effort"
    )
    assert middleware.refusal({"durability": "persistent"}) == "udp refuses durability persistent; use volatile"
    said = middleware.refusal({"lifespan_ns": 5_000_000})
    assert said == "udp refuses lifespan 5ms: there is no timer; use none"
    assert middleware.refusal({"coherent": True}) == "udp refuses coherent on; use off"
    assert middleware.refusal({"partition": "a"}) is None  # of which nothing is known
