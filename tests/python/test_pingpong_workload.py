"""The workload `pingpong`: its graph, its figures and outcomes on made loops."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perflab.errors import BadInput
from perflab.results.loops import Life, Loop, Loops
from perflab.results.outcome import FAILED, SUCCESS
from perflab.results.trial import StarvedThread, Trial
from perflab.statistics.histogram import value_at_percentile
from perflab.workload import Ended, pingpong, rounds
from perflab.workload.pingpong import KIND, PingPongParameters

MS, S = 10**6, 10**9
FROM = 10 * S


def written(**given: Any) -> dict[str, Any]:
    return pingpong.document(PingPongParameters.model_validate(given))


@pytest.mark.parametrize(
    ("pattern", "processes"),
    [
        ("1e1n", {"pingpong": ["/ping_pong"]}),
        ("1e2n", {"pingpong": ["/ping", "/pong"]}),
        ("2e", {"ping": ["/ping"], "pong": ["/pong"]}),
    ],
)
def test_a_pattern_places_the_halves(pattern: str, processes: dict[str, list[str]]) -> None:
    document = KIND.workload({"pattern": pattern}).graph.document
    found = {p["name"]: [f"/{node['name']}" for node in p["nodes"]] for p in document["processes"]}
    assert found == processes
    assert all(len(p["executors"]) == 1 for p in document["processes"])


def test_message_and_qos_are_those_of_every_end() -> None:
    document = written(message="Array4k", depth=3, reliability="reliable")
    ends = [end for p in document["processes"] for node in p["nodes"] for end in node["publishers"]]
    assert {end["type"] for end in ends} == {"perflab_msgs/msg/Array4k"}
    assert {(end["qos"]["depth"], end["qos"]["reliability"]) for end in ends} == {(3, "reliable")}
    assert written()["processes"][0]["nodes"][0]["publishers"][0]["qos"] | {"depth": 1} == {
        **written()["processes"][0]["nodes"][0]["publishers"][0]["qos"],
        "reliability": "best_effort",
    }


def loop(number: int, back: int | None, **instants: int | None) -> Loop:
    """Due each 10 ms; `back` and the others in ms after it was due, each as late as the one before at least."""
    due = FROM + (number + 1) * 10 * MS
    at: dict[str, int | None] = {"woken": 0, "published": 0, "sent": 0, "answered": back, **instants, "back": back}
    return Loop(
        loop=number, due_ns=due, **{f"{name}_ns": None if ms is None else due + ms * MS for name, ms in at.items()}
    )


def made(*rows: Loop) -> Loops:
    return Loops(process="ping", node="/ping", timer="ping", period_ns=10 * MS, beyond=0, rows=rows)


def life(until_s: float, matched_s: float = 0.5) -> Life:
    began = FROM - S
    return Life(
        process="ping",
        began_ns=began,
        matched_ns=began + round(matched_s * S),
        start_ns=FROM,
        measured_from_ns=FROM,
        measured_until_ns=FROM + S,
        last_ns=FROM + round(until_s * S),
        ended_ns=FROM + round(until_s * S),
    )


def judged(
    rows: list[Loop], *, outcome: Any = SUCCESS, until_s: float = 1.0, matched_s: float = 0.5, **more: Any
) -> Any:
    trial = replace(Trial(trial=1, order=1, outcome=outcome), **more)
    parameters = PingPongParameters.model_validate({"loops": 100, "slow_start": "3s"})
    return KIND.judge(Ended(parameters, trial, Path(), (made(*rows),), (life(until_s, matched_s),)))


def whole(**changed: Loop) -> list[Loop]:
    return [changed.get(f"n{number}") or loop(number, 1) for number in range(100)]


def inhibitor(ended_ms: int) -> dict[str, Any]:
    return {"priority_inhibitor": {"achieved": {"ended_ns": FROM + ended_ms * MS}}}


def test_loops_that_come_back_in_time_are_unaffected() -> None:
    said = judged(whole())
    assert (said.outcome, said.reason) == ("unaffected", None)
    assert (said.figures["stalls"], said.figures["longest_stall"]) == (0, 0)
    assert said.figures["time_start"] == 0.5 * S
    assert said.figures["time_loops"] == 1001 * MS
    assert value_at_percentile(said.times["ping_pong"], 50) == pytest.approx(MS, rel=0.002)


@pytest.mark.parametrize(
    ("stuck", "stage"),
    [
        (loop(40, 300, woken=299, published=299, sent=299, answered=300), "its callback did not begin"),
        (loop(40, 300, sent=299, answered=300), "the call that publishes its ping did not return"),
        (loop(40, 300, answered=300), "no pong answered its ping"),
        (loop(40, 300, answered=1), "its pong was published and did not come back"),
    ],
)
def test_a_stall_says_how_long_at_which_loop_and_where_it_stood(stuck: Loop, stage: str) -> None:
    behind = {f"n{number}": loop(number, 300 - 10 * (number - 40)) for number in range(41, 70)}
    said = judged(whole(n40=stuck, **behind))
    assert said.outcome == "stalled"
    assert "no loop was completed for 0.309 s, from loop 40 on" in said.reason
    assert stage in said.reason


def test_a_loop_of_which_nothing_is_known_did_not_come_to_its_timer() -> None:
    nothing = Loop(loop=0, due_ns=None, woken_ns=None, published_ns=None, sent_ns=None, answered_ns=None, back_ns=None)
    loops = Loops(process="p", node="/ping", timer="ping", period_ns=10 * MS, beyond=0, rows=(nothing,))
    (stall,) = rounds.stalls(loops, 3, FROM, FROM + S, 100 * MS)
    assert (stall.loop, stall.until_ns, stall.stage) == (0, None, "its timer was due, but its callback did not begin")


def test_lost_messages_are_no_stall_until_so_many_are_lost_that_nothing_comes_back() -> None:
    lost = {f"n{number}": loop(number, None) for number in range(20, 29)}
    assert judged(whole(**lost)).outcome == "unaffected"
    lost = {f"n{number}": loop(number, None) for number in range(20, 40)}
    assert judged(whole(**lost)).outcome == "stalled"


def test_a_stall_that_ends_with_the_inhibitor_was_blocked_by_it() -> None:
    lost = {f"n{number}": loop(number, None) for number in range(20, 60)}
    assert judged(whole(**lost), evidence=inhibitor(600)).outcome == "blocked"
    assert judged(whole(**lost), evidence=inhibitor(300)).outcome == "stalled"


def test_a_start_that_waits_for_the_end_of_the_inhibitor_is_blocked_and_any_other_slow_one_stalled() -> None:
    ended = {"priority_inhibitor": {"achieved": {"ended_ns": FROM - S + 4 * S}}}
    assert judged(whole(), matched_s=4.1, evidence=ended).outcome == "blocked"
    assert judged(whole(), matched_s=4.1).outcome == "stalled"


def test_loops_that_never_come_back_again_hang() -> None:
    said = judged([loop(n, 1) for n in range(50)], outcome=FAILED, until_s=30)
    assert said.outcome == "hung"
    assert "no further loop was completed for 29.5 s, from loop 50 on" in said.reason


def test_a_trial_that_did_not_match_for_a_starved_thread_hung_and_names_it() -> None:
    thread = StarvedThread(
        process="pong", tid=7, name="recvUC", policy="OTHER", priority=None, cpus=(1,), waiting_share=0.95
    )
    said = judged([], outcome=FAILED, starved=(thread,))
    assert said.outcome == "hung"
    assert "thread recvUC (OTHER) of pong, which waited 95 % of the time" in said.reason


def test_a_trial_that_failed_for_another_reason_keeps_it() -> None:
    assert judged(whole(), outcome=FAILED).outcome is None


def test_the_wait_for_the_common_start_is_in_no_part_of_the_time() -> None:
    parts = rounds.phases([life(3.0)], [made(*whole())])
    assert parts["time_total"] == sum(parts[f"time_{part}"] or 0 for part in ("start", "loops", "closing"))
    assert rounds.phases([life(3.0)], [])["time_total"] is None


@pytest.mark.parametrize(
    "given", [{"period": "1us"}, {"loops": 0}, {"loops": 10**7, "period": "1s"}, {"pattern": "3e"}]
)
def test_what_is_no_pingpong(given: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        KIND.workload(given)


def test_figures_have_names_that_can_stand_in_a_list() -> None:
    assert [figure.words for figure in KIND.figures.values() if "," in figure.words] == []
