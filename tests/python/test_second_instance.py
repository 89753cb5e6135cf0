"""The condition `second_instance`: which process may run twice, what the second one does, and what it proves."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from perflab.condition import Window
from perflab.condition.second_instance import KIND, SecondInstance
from perflab.errors import BadInput
from perflab.host import Host
from perflab.models import as_json
from perflab.workload import Graph

S = 1_000_000_000
WINDOW = Window(10 * S, 12 * S)


def node(name: str, **ends: list[dict[str, Any]]) -> dict[str, Any]:
    kinds = ("publishers", "subscriptions", "timers", "clients", "servers", "reactions")
    return {"name": name, "namespace": "/", "executor": 0, **{kind: [] for kind in kinds}, **ends}


def process(name: str, *nodes: dict[str, Any], **more: Any) -> dict[str, Any]:
    threads = {"executors": None, "middleware": None, **dict.fromkeys(more.pop("of_program", ()))}
    return {"name": name, "executors": [{"id": 0}], "threads": threads, "nodes": list(nodes), **more}


MOVE = {"action": "/move", "type": "stamped"}
GRAPH = Graph(
    {
        "name": "g",
        "processes": [
            process("listener", node("ear", subscriptions=[{"topic": "/t"}])),
            process(
                "talker", node("mouth", publishers=[{"topic": "/t"}], timers=[{"name": "talk", "overrun": "queue"}])
            ),
            process(
                "arm",
                node(
                    "joints",
                    publishers=[{"topic": "/joints", "frequency_hz": 0.0}],
                    servers=[{"service": "/tell"}],
                    clients=[{"service": "/ask"}],
                    action_servers=[{**MOVE, "reject_every": 0}],
                    action_clients=[MOVE],
                ),
                program="perflab-arm",
                options={"speed": 1},
                of_program=("control",),
            ),
            process("runner", node("run", publishers=[{"topic": "/u"}]), program="perflab-runner", ends=True),
        ],
    }
)


def doubled(**parameters: Any) -> SecondInstance:
    made = KIND.make(parameters, "second_instance")
    assert isinstance(made, SecondInstance)
    return made


def added(**parameters: Any) -> dict[str, Any]:
    found: dict[str, Any] = doubled(**parameters).extend(GRAPH).document["processes"][-1]
    return found


def test_plain_nodes_do_all_that_the_first_ones_do_under_names_of_their_own() -> None:
    second = added()  # the first process that publishes or serves
    assert second["name"] == "second_instance_talker"
    (copy,) = second["nodes"]
    assert (copy["name"], copy["condition"]) == ("mouth_second_instance", "second_instance")
    assert copy["publishers"] == [{"topic": "/t"}]
    assert copy["timers"] == [{"name": "talk", "overrun": "skip"}]
    assert "stands_for" not in copy


def test_a_program_runs_twice_and_finds_its_nodes_by_their_first_names() -> None:
    second = added(process="arm")
    assert (second["program"], second["options"]) == ("perflab-arm", {"speed": 1})
    assert "control" in second["threads"]
    (copy,) = second["nodes"]
    assert (copy["name"], copy["stands_for"]) == ("joints_second_instance", "/joints")
    assert copy["action_servers"] == [{**MOVE, "reject_every": 0}]


def test_one_that_hangs_has_endpoints_that_reject_every_goal_and_are_silent() -> None:
    second = added(process="arm", does="hang")
    assert not {"program", "options"} & set(second)
    assert set(second["threads"]) == {"executors", "middleware"}
    (copy,) = second["nodes"]
    assert copy["publishers"] == [{"topic": "/joints", "frequency_hz": 0.0}]
    assert copy["action_servers"] == [{**MOVE, "reject_every": 1}]
    assert not {"action_clients", "stands_for"} & set(copy)
    assert copy["clients"] == copy["servers"] == copy["timers"] == []


@pytest.mark.parametrize(
    ("parameters", "runtime", "complaint"),
    [
        ({"process": "tallker"}, "dds", "no process 'tallker' that publishes or serves; choose from talker, arm$"),
        ({"process": "listener"}, "dds", "no process 'listener' that publishes"),
        ({"process": "runner"}, "dds", "no process 'runner' that publishes"),
        ({}, "virtual", "has no processes"),
        ({}, "command", "processes of a command"),
    ],
)
def test_what_cannot_run_twice_is_refused(parameters: dict[str, Any], runtime: str, complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint) as caught:
        doubled(**parameters).check(Host(), GRAPH, runtime)
    assert "\n" not in str(caught.value)


def proven(folder: Path, matched: dict[str, int]) -> dict[str, Any]:
    """Its evidence where these processes found all endpoints then."""
    asked = doubled(process="arm")
    (folder / "processes").mkdir()
    for name in ALL:
        events = [{"type": "event", "code": "all_endpoints_matched", "at_ns": matched[name]}] if name in matched else []
        path = folder / "processes" / f"{name}.jsonl"
        path.write_text("".join(json.dumps(event) + "\n" for event in events), "utf-8")
    trial: Any = SimpleNamespace(directory=folder, graph=asked.extend(GRAPH))
    return dict(as_json(asked.begin(trial).verify(WINDOW)))


ALL = {"listener": S, "talker": S, "arm": S, "runner": S, "second_instance_arm": 2 * S}


def test_its_evidence_is_the_discovery_of_all(tmp_path: Path) -> None:
    found = proven(tmp_path, ALL)
    assert found["in_effect"]
    assert found["promised"] == {"process": "arm", "endpoints": 5}
    assert found["achieved"] == {"endpoints": 5}


@pytest.mark.parametrize("missing", ["talker", "second_instance_arm"])
def test_one_who_does_not_know_the_other_makes_the_trial_invalid(tmp_path: Path, missing: str) -> None:
    for late in ({}, {missing: 11 * S}):
        folder = tmp_path / str(len(late))
        folder.mkdir()
        found = proven(folder, {**{k: v for k, v in ALL.items() if k != missing}, **late})
        assert not found["in_effect"]
        assert found["achieved"]["endpoints"] is None
        assert found["reason"].startswith(missing)
