"""Conditions and observers are values: frozen, equal by their parameters, and made again from what they say of them."""

from __future__ import annotations

import contextlib
import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from made_trial import MadeMonitor, MadeTrial
from pydantic import ValidationError
from support import graph, node

from perflab.condition import Condition, cpu_idle, message_flood
from perflab.condition.flood_graph import Flood, MessageType
from perflab.condition.kinds import REGISTRY as CONDITIONS
from perflab.design import treatments as design
from perflab.design.document import Written, validate
from perflab.design.variant import Variant
from perflab.errors import BadInput, Unavailable
from perflab.host import Host
from perflab.middleware import Middleware
from perflab.observer.kinds import REGISTRY as OBSERVERS
from perflab.registry import Kind
from perflab.specification import Specification
from perflab.workload import Graph, Made

# What is asked for of each kind, twice: every type of a parameter is among them.
ASKED: Mapping[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "cpu_load": ({}, {"load": "10%", "workers": 2, "cpus": "0"}),
    "cpu_pinning": ({"count": 1}, {"cpus": "0-1", "clip": "on", "processes": "a,b"}),
    "cpu_idle": ({}, {"latency": "20us"}),
    "crash": ({}, {"process": "b", "at": "50%", "back_after": "1s"}),
    "io_load": ({}, {"bytes": "2MiB", "rate": 1.5}),
    "memory_pressure": ({"percent": 1}, {"bytes": "4MiB", "access": "hold"}),
    "message_flood": ({}, {"readers": "topics", "topics": "/t", "rate": "20Hz"}),
    "network_shaping": ({"rate": "10Mbit"}, {"delay": "1.5ms", "loss": "0.5%", "queue": "20ms"}),
    "priority_inhibitor": ({"policy": "OTHER"}, {"policy": "RR", "priority": 3, "limit": "90s", "when": "after"}),
    "realtime_limits": ({"throttling": False}, {"throttling": "50%", "fair_server": "off"}),
    "second_instance": ({}, {"process": "one", "does": "hang"}),
    "sysctl": ({"vm.stat_interval": 2}, {"net.core.rmem_max": "8388608", "net.ipv4.tcp_rmem": "4096 \t131072 6291456"}),
    "monitor": ({}, {"interval": "20ms"}),
    "hiccup": ({}, {"interval": "1500us"}),
    "allocations": ({}, {}),
    "messages": ({}, {"topics": "/a,/b", "contents": "off", "limit": "1MiB", "buffer": "64kB"}),
    "cyclictest": ({"policy": "OTHER"}, {"interval": "2ms", "policy": "RR", "priority": 3, "cpus": "0"}),
    "tracing": ({}, {"events": "a:*,b:*", "buffer": "1MiB", "trials": "all"}),
    "cpu_profile": ({}, {"frequency": 99, "system": "on", "stack": "16KiB"}),
}
KINDS: dict[str, Kind[Any]] = {**CONDITIONS, **OBSERVERS}
CASES = [(name, given) for name in KINDS for given in ASKED.get(name, ({},))]

SMALL = Graph(graph({"one": [node("/a", {"/t": 10}), node("/b", None, ["/t"])]}))
LARGE = Graph(
    graph({"two": [node("/a", {"/t": 10, "/u": 20})], "three": [node("/b", None, ["/t"]), node("/c", None, ["/u"])]})
)


@pytest.fixture(autouse=True)
def _types(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_flood, "known_types", lambda: (MessageType("stamped_vector", None),))


def made(name: str, given: Mapping[str, Any]) -> Specification:
    found: Specification = KINDS[name].make(given, name)
    return found


def test_every_kind_is_asked_for() -> None:
    assert set(ASKED) == set(KINDS)


@pytest.mark.parametrize(("name", "given"), CASES)
def test_equal_parameters_make_equal_specifications(name: str, given: dict[str, Any]) -> None:
    first, second = made(name, given), made(name, given)
    assert first == second
    assert hash(first) == hash(second)
    assert first.name == name
    others = [made(*case) for case in CASES if case != (name, given)]
    assert name == "allocations" or first not in others


@pytest.mark.parametrize(("name", "given"), CASES)
def test_what_a_specification_says_of_itself_makes_it_again(name: str, given: dict[str, Any]) -> None:
    specification = made(name, given)
    for said in (specification.written, json.loads(json.dumps(specification.written))):
        assert made(name, said) == specification
    keys = {*type(specification).model_fields, *(specification.model_extra or {})}
    assert set(specification.parameters) == set(specification.written) == keys
    assert pickle.loads(pickle.dumps(specification)) == specification


@pytest.mark.parametrize("name", KINDS)
def test_a_specification_is_frozen(name: str) -> None:
    specification = made(name, ASKED[name][0])
    for key in type(specification).model_fields:
        with pytest.raises(ValidationError, match="frozen"):
            setattr(specification, key, getattr(specification, key))
    with pytest.raises((ValidationError, ValueError, AttributeError)):
        specification.anything = 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", CONDITIONS)
def test_what_is_asked_of_a_condition_does_not_change_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Host, "facts", lambda _: {})
    monkeypatch.setattr(cpu_idle, "DEVICE", tmp_path / "cpu_dma_latency")
    condition = made(name, ASKED[name][0])
    assert isinstance(condition, Condition)
    before = pickle.dumps(condition)
    for place in (SMALL, LARGE):
        for runtime in ("dds", "virtual", "command"):
            with contextlib.suppress(Unavailable, BadInput):
                condition.check(Host(), place, runtime)
                condition.resolved(Host())
        extended = condition.extend(place)
        assert extended == condition.extend(place)
        assert condition.extend(extended) != extended or extended == place
        # Here nothing can be started.
        with contextlib.suppress(AssertionError, BadInput, Unavailable):
            condition.begin(MadeTrial(tmp_path, MadeMonitor(tmp_path / "m.jsonl").reader(), graph=extended))
    assert pickle.dumps(condition) == before


def test_several_of_a_name_have_labels_of_their_own() -> None:
    first = CONDITIONS["cpu_load"].make({}, "cpu_load")
    second = first.numbered(2)
    assert (first.label, second.label) == ("cpu_load", "cpu_load_2")
    assert first != second
    assert second.numbered(1) == first


def test_a_share_of_the_memory_becomes_a_number_of_bytes_on_a_machine(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemAvailable: 4096000 kB\n", encoding="utf-8")
    asked = CONDITIONS["memory_pressure"].make({"percent": 25}, "memory_pressure")
    resolved = asked.resolved(Host(tmp_path))
    assert resolved.parameters == asked.parameters | {"bytes": 1024000 << 10, "percent": None}
    assert CONDITIONS["memory_pressure"].make(resolved.written, "again") == resolved


def test_treatments_share_what_was_asked_for() -> None:
    keys = {"workload": "w", "factors": {"workload.depth": [1, 5]}, "trials": 2}
    keys |= {"conditions": [{name: given[0]} for name, given in ASKED.items() if name in CONDITIONS]}
    keys |= {"observers": [{name: given[0]} for name, given in ASKED.items() if name in OBSERVERS]}
    document = validate(Written(keys))
    variants: list[tuple[Variant, dict[str, Any]]] = [
        (Variant((Middleware("one", "dds", None, None),)), {}),
        (Variant((Middleware("virtual", "virtual", None, None),)), {}),
    ]
    found = design.treatments(document, variants, Made(SMALL))
    found += design.extras(document, found)
    assert {t.purpose for t in found} == {design.MEASURED, design.CONTROL, design.EXTRA}
    assert len({c for t in found for c in t.conditions}) == len(CONDITIONS)
    assert len({o for t in found for o in t.observers}) == len(OBSERVERS)


def test_a_flood_of_the_workloads_topics_is_judged_by_its_own_graph(tmp_path: Path) -> None:
    flood = CONDITIONS["message_flood"].make({"readers": "topics"}, "message_flood")
    assert isinstance(flood, message_flood.MessageFlood)
    for place, topics in ((SMALL, 1), (LARGE, 2), (SMALL, 1)):
        assert len(Flood.of(flood.extend(place), flood.label, flood).topics) == topics
