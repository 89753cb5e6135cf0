"""No treatment is judged by what another one made of a condition or an observer; nor a trial by the one before."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support import graph, node

from perflab.condition import Condition, message_flood
from perflab.condition.flood_graph import MessageType
from perflab.condition.kinds import REGISTRY as CONDITIONS
from perflab.errors import BadInput, Unavailable
from perflab.experiment import design
from perflab.experiment.design import Treatment
from perflab.experiment.document import Written, validate
from perflab.experiment.variant import Variant
from perflab.host import Host
from perflab.middleware import Middleware
from perflab.observer import Observer
from perflab.observer.kinds import REGISTRY as OBSERVERS
from perflab.workload import Graph

# One of each kind. What is asked for leaves to the graph and the machine whatever can be left to them.
OF_CONDITIONS: Mapping[str, dict[str, Any]] = {
    "cpu_load": {"load": 10},
    "cpu_pinning": {"count": 1},
    "io_load": {"bytes": "1MiB"},
    "memory_pressure": {"percent": 1},
    "message_flood": {"readers": "topics", "rate": 10},
    "network_shaping": {"rate": "10Mbit"},
    "priority_inhibitor": {"policy": "OTHER"},
}
OF_OBSERVERS: Mapping[str, dict[str, Any]] = {name: {} for name in OBSERVERS}

SMALL = Graph(graph({"one": [node("/a", {"/t": 10}), node("/b", None, ["/t"])]}))
LARGE = Graph(
    graph({"two": [node("/a", {"/t": 10, "/u": 20})], "three": [node("/b", None, ["/t"]), node("/c", None, ["/u"])]})
)
REAL = Variant((Middleware("one", "dds", None, None),))
VIRTUAL = Variant((Middleware("virtual", "virtual", None, None),))


@pytest.fixture(autouse=True)
def _types(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_flood, "_known_types", lambda: (MessageType("stamped_vector", None),))


def treatments(**keys: Any) -> list[Treatment]:
    """On a real middleware and on virtual, at two levels each."""
    document = validate(Written({"workload": "w", "factors": {"workload.depth": [1, 5]}, **keys}))
    found = design.treatments(document, [(REAL, {}), (VIRTUAL, {})], SMALL)
    return [*found, *design.extras(document, found)]


def state(of: Any) -> Any:
    """All that an object holds, to be compared; of a graph its document."""
    if isinstance(of, Graph):
        return of.document
    if isinstance(of, Mapping):
        return {key: state(value) for key, value in of.items()}
    if isinstance(of, list | tuple):
        return [state(entry) for entry in of]
    return {key: state(value) for key, value in vars(of).items()} if hasattr(of, "__dict__") else of


def brought(condition: Condition, place: Graph, runtime: str) -> Any:
    """The state of a condition that was judged on a graph, and has added to it what it adds."""
    with contextlib.suppress(Unavailable, BadInput):
        condition.check(Host(), place, runtime)
        condition.extend(place)
    return state(condition)


def test_every_kind_is_tried() -> None:
    assert set(OF_CONDITIONS) == set(CONDITIONS)
    assert set(OF_OBSERVERS) == set(OBSERVERS)


@pytest.mark.parametrize("name", OF_CONDITIONS)
def test_a_condition_is_what_it_would_be_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Host, "facts", lambda _: {})
    entry = {name: OF_CONDITIONS[name]}
    places = (SMALL, LARGE)
    found = [t for t in treatments(conditions=[entry], baseline=False) if t.conditions]
    assert len(found) == 4
    for number, treatment in enumerate(found):
        brought(treatment.conditions[0], places[number % 2], treatment.variant.runtime)
    for number, treatment in enumerate(found):
        alone = CONDITIONS[name].make(OF_CONDITIONS[name], name)
        expected = brought(alone, places[number % 2], treatment.variant.runtime)
        known = state(treatment.conditions[0])
        if name == "memory_pressure":  # a share of the memory that was available at that moment
            expected.pop("_bytes"), known.pop("_bytes")
        assert known == expected


def test_nothing_that_changes_belongs_to_two_treatments() -> None:
    found = treatments(
        conditions=[{name: given} for name, given in OF_CONDITIONS.items()],
        observers=[{name: given} for name, given in OF_OBSERVERS.items()],
        trials=2,
    )
    assert {t.purpose for t in found} == {design.MEASURED, design.CONTROL, design.EXTRA}
    owned: list[Condition | Observer] = []
    for treatment in found:
        owned += treatment.conditions
        owned += treatment.observers
    assert len(owned) > 4 * len(CONDITIONS)
    assert len({id(part) for part in owned}) == len(owned)


def test_a_flood_of_the_workloads_topics_is_judged_by_its_own_graph(tmp_path: Path) -> None:
    flooded = [t for t in treatments(conditions=[{"message_flood": {"readers": "topics"}}]) if t.conditions]
    for treatment, place in zip(flooded, (SMALL, LARGE, SMALL, LARGE), strict=True):
        treatment.conditions[0].check(Host(), place, treatment.variant.runtime)
        treatment.conditions[0].extend(place)
    of = [t.conditions[0] for t in flooded]
    assert all(isinstance(condition, message_flood.MessageFlood) for condition in of)
    assert [len(condition._laid_out().topics) for condition in of] == [1, 2, 1, 2]  # type: ignore[attr-defined]
    assert [condition._virtual for condition in of] == [False, False, True, True]  # type: ignore[attr-defined]
