"""--thread: what it asks for, for which process, and one line for each mistake."""

from __future__ import annotations

from typing import Any

import pytest

from perflab.design.scheduling import assigned, of_process, parse
from perflab.errors import BadInput
from perflab.workload import Graph

PROCESSES = ["ping", "pong.2"]


def asked(policy: str | None, priority: int = 0, cpus: list[int] | None = None) -> dict[str, Any]:
    return {"policy": policy, "priority": priority, "cpus": cpus or []}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("RR:98@1", asked("RR", 98, [1])),
        ("FIFO:1", asked("FIFO", 1)),
        ("OTHER", asked("OTHER")),
        ("OTHER@0-1", asked("OTHER", 0, [0, 1])),
        ("@0", asked(None, 0, [0])),
        ("@5,0-2,1", asked(None, 0, [0, 1, 2, 5])),
    ],
)
def test_what_is_asked_for(value: str, expected: dict[str, Any]) -> None:
    requests = parse([f"executors={value}"], PROCESSES)
    assert of_process(requests, "ping") == {"executors": expected, "middleware": None}


def test_what_names_the_process_goes_first() -> None:
    requests = parse(["pong.2.executors=FIFO:5", "executors=RR:9", "ping.middleware=@1"], PROCESSES)
    assert of_process(requests, "ping") == {"executors": asked("RR", 9), "middleware": asked(None, 0, [1])}
    assert of_process(requests, "pong.2") == {"executors": asked("FIFO", 5), "middleware": None}
    assert of_process((), "ping") == {"executors": None, "middleware": None}


@pytest.mark.parametrize(
    ("word", "complaint"),
    [
        ("", "is not [PROCESS.]executors|middleware=POLICY[:PRIORITY][@CPUS], e.g. executors=RR:98@1"),
        ("executors", "is not [PROCESS.]executors|middleware="),
        ("executor=RR:1", "is not [PROCESS.]executors|middleware="),
        ("executors=", "the request is empty"),
        ("executors=@", "no CPU after @"),
        ("executors=RR:1@", "no CPU after @"),
        ("pang.executors=RR:1", "no process named 'pang'; there are ping, pong.2"),
        (".executors=RR:1", "no process named ''"),
        ("executors=rr:1", "unknown policy 'rr'; choose from OTHER, FIFO, RR, DEADLINE"),
        ("middleware=DEADLINE:2ms/10ms/10ms", "DEADLINE is not inherited, but threads of the middleware inherit"),
        ("executors=DEADLINE:2ms/10ms/10ms@1", "DEADLINE runs on all CPUs; leave @1 out"),
        ("executors=DEADLINE", "DEADLINE needs a runtime, a deadline and a period, e.g. DEADLINE:2ms/10ms/10ms"),
        ("executors=DEADLINE:2ms/10ms", "DEADLINE needs a runtime, a deadline and a period"),
        ("executors=DEADLINE:x/10ms/10ms", "'x' is not a duration"),
        ("executors=DEADLINE:9ms/8ms/10ms", "1024 ns <= runtime <= deadline <= period does not hold"),
        ("executors=:5", "unknown policy ''"),
        ("executors=RR", "the priority is missing within 1..99, e.g. RR:98"),
        ("executors=RR:", "priority '' is not a number within 1..99"),
        ("executors=RR:0", "priority '0' is not a number within 1..99"),
        ("executors=FIFO:100", "priority '100' is not a number within 1..99"),
        ("executors=FIFO:-1", "priority '-1' is not a number within 1..99"),
        ("executors=OTHER:3", "OTHER has no priority; use FIFO or RR"),
        ("executors=@2-1", "'2-1' is no list of CPUs, e.g. 0-1,3"),
        ("executors=@0,", "'0,' is no list of CPUs"),
        ("executors=@0-1-2", "'0-1-2' is no list of CPUs"),
        ("executors=@1024", "'1024' is no list of CPUs"),
        ("executors=@a", "'a' is no list of CPUs"),
    ],
)
def test_mistakes_are_one_line(word: str, complaint: str) -> None:
    with pytest.raises(BadInput) as error:
        parse([word], PROCESSES)
    assert complaint in str(error.value)
    assert str(error.value).startswith(f"--thread {word!r}")


def test_two_requests_for_the_same_threads_are_refused() -> None:
    with pytest.raises(BadInput, match=r"'ping\.executors=RR:2': these threads"):
        parse(["ping.executors=RR:1", "executors=RR:3", "ping.executors=RR:2"], PROCESSES)


def test_a_deadline_has_its_times() -> None:
    request = of_process(parse(["executors=DEADLINE:2ms/9ms/10ms"], PROCESSES), "ping")["executors"]
    assert request == asked("DEADLINE") | {"runtime_ns": 2_000_000, "deadline_ns": 9_000_000, "period_ns": 10_000_000}


def test_an_assignment_stands_in_the_graph_and_leaves_other_threads_as_they_were() -> None:
    before = {"executors": asked("FIFO", 3), "middleware": asked("OTHER")}
    processes = [{"name": name, "nodes": [{"name": name}], "threads": dict(before)} for name in PROCESSES]
    graph = Graph({"name": "pair", "processes": processes})
    after = assigned(graph, ["executors=RR:98@1", "ping.middleware=RR:97"]).document["processes"]
    assert after[0]["threads"] == {"executors": asked("RR", 98, [1]), "middleware": asked("RR", 97)}
    assert after[1]["threads"] == {"executors": asked("RR", 98, [1]), "middleware": asked("OTHER")}
    assert graph.document["processes"][0]["threads"] == before


def test_threads_of_programs_have_names_of_their_own() -> None:
    named = {"ping": ("control", "physics")}
    requests = parse(["control=FIFO:50", "ping.physics=@1", "executors=RR:9"], PROCESSES, named)
    assert of_process(requests, "ping") == {
        "executors": asked("RR", 9), "middleware": None, "control": asked("FIFO", 50), "physics": asked(None, 0, [1]),
    }  # fmt: skip
    with pytest.raises(BadInput, match="no threads named 'contrl'; there are executors, middleware, control, physics"):
        parse(["contrl=FIFO:50"], PROCESSES, named)
    with pytest.raises(BadInput, match=r"no threads named 'control'; there are executors, middleware$"):
        parse(["pong.2.control=FIFO:50"], PROCESSES, named)


def test_an_assignment_reaches_the_threads_of_a_program_where_it_has_them() -> None:
    processes = [
        {"name": "ping", "program": "perflab-x", "threads": {"executors": None, "middleware": None, "control": None}},
        {"name": "pong", "threads": {"executors": None, "middleware": None}},
    ]
    graph = Graph({"processes": [{**p, "nodes": [{"name": "n", "namespace": "/"}]} for p in processes]})
    ping, pong = assigned(graph, ["control=FIFO:50"]).document["processes"]
    assert ping["threads"] == {"executors": None, "middleware": None, "control": asked("FIFO", 50)}
    assert pong["threads"] == {"executors": None, "middleware": None}
