"""The condition `crash`: whom it may kill, what it proves, and how two lives of a process make one account."""

from __future__ import annotations

from typing import Any

import pytest
from support import checkpoint, edge, publisher

from perflab.condition import Interruption, Window
from perflab.condition.crash import KIND, Crash, Crashing
from perflab.errors import BadInput
from perflab.experiment.drain import Drain
from perflab.experiment.protocol import Progress
from perflab.host import Host
from perflab.models import as_json
from perflab.statistics.accounting import account, missed_between
from perflab.workload import Graph

S = 1_000_000_000
ENDS = ("publishers", "subscriptions", "timers", "clients", "servers", "waitables", "reactions")


def graph(**processes: tuple[str, ...]) -> Graph:
    """Each process with one node, which has one of each of these ends."""
    made = []
    for name, ends in processes.items():
        node: dict[str, Any] = {"name": name, "namespace": "", **{end: [] for end in ENDS}, **{e: [{}] for e in ends}}
        made.append({"name": name, "nodes": [node]})
    return Graph({"name": "g", "processes": made})


PUBSUB = graph(talker=("publishers", "timers"), both=("subscriptions", "publishers"), listener=("subscriptions",))


def crash(**parameters: Any) -> Crash:
    made = KIND.make(parameters, "crash")
    assert isinstance(made, Crash)
    return made


def test_the_first_process_that_only_receives_is_killed() -> None:
    crash().check(Host(), PUBSUB, "dds")
    assert crash().chosen(PUBSUB) == "listener"
    assert crash(process="listener").chosen(PUBSUB) == "listener"


@pytest.mark.parametrize(
    ("parameters", "of", "runtime", "complaint"),
    [
        ({"process": "both"}, PUBSUB, "dds", "'both' is needed, .* choose from listener"),
        ({"process": "lisener"}, PUBSUB, "dds", "no process 'lisener'; choose from listener"),
        (
            {},
            graph(talker=("publishers",)),
            "dds",
            "a process that only receives is needed, .*there is none",
        ),
        ({}, PUBSUB, "virtual", "has no processes"),
        ({}, PUBSUB, "command", "processes of a command"),
    ],
)
def test_who_cannot_come_back_as_the_same_is_refused(
    parameters: dict[str, Any], of: Graph, runtime: str, complaint: str
) -> None:
    with pytest.raises(BadInput, match=complaint) as caught:
        crash(**parameters).check(Host(), of, runtime)
    assert "\n" not in str(caught.value)


def proven(**seen: int | None) -> dict[str, Any]:
    interruption = Interruption("listener", at_share=0.25, back_after_ns=S, **seen)
    return dict(as_json(Crashing(interruption).verify(Window(10 * S, 18 * S))))


def test_its_evidence_is_what_was_seen_of_the_process() -> None:
    found = proven(killed_ns=12 * S, started_ns=13 * S, ready_ns=14 * S)
    assert found["in_effect"]
    assert found["promised"] == {"process": "listener", "at_s": 2.0, "down_s": 1.0}
    assert found["achieved"] == {"at_s": 2.0, "down_s": 1.0, "matched_s": 1.0}


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        ({}, "was not killed"),
        ({"killed_ns": 12 * S, "started_ns": 13 * S}, "had not come back by the end of the measured part, 6 s after"),
        ({"killed_ns": 12 * S, "started_ns": 13 * S, "ready_ns": 19 * S}, "had not come back"),
    ],
)
def test_a_crash_that_was_none_makes_the_trial_invalid(seen: dict[str, int], reason: str) -> None:
    found = proven(**seen)
    assert not found["in_effect"]
    assert reason in found["reason"]


@pytest.mark.parametrize(
    ("before", "after", "received", "gap", "duplicate", "missed"),
    [
        (edge(4, 0, 3), edge(3, 7, 9), 7, 3, 0, 3),  # 4, 5 and 6 came to nobody
        (edge(3, 0, 3, gap=1), edge(2, 7, 9, gap=1), 5, 5, 0, 3),
        (edge(4, 0, 3), edge(8, 2, 9), 10, 0, 2, 0),  # 2 and 3 came to both, as history does
        (edge(0), edge(3, 7, 9), 3, 7, 0, 0),
        (edge(4, 0, 3), edge(0), 4, 0, 0, 0),
    ],
)
def test_two_lives_of_a_process_are_one_account_that_adds_up(
    before: Any, after: Any, received: int, gap: int, duplicate: int, missed: int
) -> None:
    first, second = checkpoint(edges=[before], final=False), checkpoint(edges=[after])
    accounts = account([checkpoint([publisher(10)]), second], earlier=[first])
    (found,) = accounts.edges
    assert accounts.complete, accounts.problems
    assert (found.received, found.gap, found.duplicate) == (received, gap, duplicate)
    assert found.sent == 10 == received + gap + (found.tail or 0)
    assert missed_between(first, second) == missed


def test_a_life_of_which_nothing_was_written_leaves_the_account_incomplete() -> None:
    accounts = account([checkpoint([publisher(10)]), checkpoint(edges=[edge(3, 7, 9)])], earlier=[None])
    assert not accounts.complete


def progress(at: int, expected: int, completed: int, *, publishing: bool = False) -> Progress:
    return Progress(
        type="progress", at_ns=at, elapsed_ns=at, publishing=publishing, sent=expected, deliveries_expected=expected,
        received=completed, completed=completed, lost=0,
    )  # fmt: skip


def test_the_drain_waits_for_who_came_back_and_not_for_who_has_gone() -> None:
    drain = Drain(["talker", "listener"], S, 10 * S)
    drain.update("talker", progress(1, 5, 0, publishing=True), 1)
    drain.update("listener", progress(1, 0, 3, publishing=True), 1)
    drain.leave("listener")
    drain.update("talker", progress(2, 8, 0), 2)
    assert not drain.publishing
    drain.join("listener_2")
    for at in (3, 4, 5):
        drain.update("talker", progress(at * S, 8, 0), at * S)
        drain.update("listener_2", progress(at * S, 0, 2), at * S)
    assert drain.verdict(5 * S) == "quiet"
