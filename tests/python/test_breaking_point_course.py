"""The course of a search: which trial comes next, what it learns from a trial, and that a replay gives the same."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support import checkpoint, edge, graph, node, publisher

from perflab.design.breaking_point import Goal, Searching, goal, results
from perflab.design.document import BreakingPoint, Scalar
from perflab.design.treatments import BASELINE, AsPlanned, Planned, Treatment
from perflab.design.variant import Variant
from perflab.errors import BadInput
from perflab.middleware import Middleware
from perflab.models import as_json
from perflab.results.outcome import Outcome
from perflab.statistics import histogram as hg
from perflab.statistics.accounting import Accounts, account
from perflab.statistics.summary import TrialData
from perflab.workload import Graph

GRAPH = Graph(graph({"p": [node("/a", {"/t": 10}), node("/b", None, ["/t"])]}))
VARIANTS = tuple(Variant((Middleware(name, "dds", None, None),)) for name in ("one", "other"))
BREAKS_AT = 400.0


def asked(**keys: Any) -> BreakingPoint:
    return BreakingPoint.model_validate({"factor": "workload.timer_speed", "low": 1, "high": 1000, **keys})


def treatments(level: Scalar) -> list[Treatment]:
    factors = {"workload.timer_speed": level}
    return [Treatment(BASELINE, variant, GRAPH, factors=factors) for variant in VARIANTS]


def course(wanted: Goal, count: int = 1) -> Searching:
    baselines = [Treatment(BASELINE, VARIANTS[0], GRAPH)]
    return Searching(wanted, baselines, lambda level: treatments(level)[:count], seed=1, count=count)


def trial(planned: Planned, outcome: str = "success", **keys: Any) -> TrialData:
    treatment = planned.treatment
    told: dict[str, Any] = {
        "number": planned.order, "order": planned.order, "workload": "w",
        "middleware": treatment.variant.middleware_name, "conditions": (), "outcome": Outcome(outcome), "reason": None,
        "drain": None, "duration_s": 1.0, "measured_s": None,
        "started_ns": None, "accounts": None, "resources": (), "treatment": treatment.label,
        "factors": dict(treatment.factors),
    }  # fmt: skip
    return TrialData(**{**told, **keys})


def accounts_of(sent: int, received: int, *, complete: bool = True) -> Accounts:
    """Of one edge whose last messages did not arrive, with latencies below 2 µs."""
    latency = hg.to_record(hg.from_values(range(received)))
    ends = (0, received - 1) if received else (None, None)
    return account([checkpoint([publisher(sent)], [edge(received, *ends, latency=latency)], final=complete)])


def run(searching: Searching, outcomes: Any) -> list[TrialData]:
    """All trials; `outcomes` says how one at a level ends."""
    done: list[TrialData] = []
    while (planned := searching.next()) is not None:
        assert searching.next() is planned, "asked again it says the same"
        level = planned.treatment.factors.get("workload.timer_speed")
        done.append(trial(planned, "success" if level is None else outcomes(float(level), len(done))))
        searching.ended(planned, done[-1])
        assert len(done) <= searching.most
    return done


def steep(level: float, _: int) -> str:
    return "success" if level < BREAKS_AT else "failed"


def test_a_plan_is_gone_through_in_its_order() -> None:
    planned = [Planned(n, 1, treatments(n)[0]) for n in (1, 2, 3)]
    plan = AsPlanned(planned)
    assert plan.most == 3
    seen = []
    while (one := plan.next()) is not None:
        assert plan.next() is one
        seen.append(one)
        plan.ended(one, trial(one))
    assert seen == planned


def found_by(*of: Any, **named: Any) -> list[dict[str, Any]]:
    """As the summary has them."""
    return [as_json(found) for found in results(*of, **named)]


def test_a_search_begins_with_the_baseline_and_finds_what_breaks() -> None:
    done = run(course(goal(asked(share=0.5), False, None)), steep)
    assert done[0].factors == {}
    assert [t.order for t in done] == list(range(1, len(done) + 1))
    (found,) = found_by(goal(asked(share=0.5), False, None), done, seed=1)
    assert found["state"] == "found"
    assert found["interval"]["low"] <= BREAKS_AT <= found["interval"]["high"]
    assert (found["factor"], found["criterion"], found["variant"]) == ("workload.timer_speed", "success", "one")
    assert found["trials"] == len(done) - 1
    assert [step["order"] for step in found["course"]] == [t.order for t in done[1:]]


def test_trials_that_say_nothing_change_nothing_but_the_order() -> None:
    wanted = goal(asked(share=0.5), False, None)
    plain = run(course(wanted), steep)

    def spoilt(level: float, n: int) -> str:
        return "invalid" if n in (3, 7) else "harness_error" if n == 5 else steep(level, n)

    done = run(course(wanted), spoilt)
    (without,), (found,) = found_by(wanted, plain, 1), found_by(wanted, done, 1)
    assert found["left_out"] == {"invalid": 2, "harness_error": 1}
    assert {k: found[k] for k in ("state", "value", "interval", "trials")} == {
        k: without[k] for k in ("state", "value", "interval", "trials")
    }
    assert [s["met"] for s in found["course"]].count(None) == 3
    assert sum(level["n"] for level in found["levels"]) == found["trials"]


def test_several_searches_take_turns_and_know_nothing_of_each_other() -> None:
    wanted = goal(asked(share=0.5), False, None)

    def of_two(searching: Searching) -> list[TrialData]:
        done: list[TrialData] = []
        while (planned := searching.next()) is not None:
            level = float(planned.treatment.factors.get("workload.timer_speed", 0))
            limit = BREAKS_AT if planned.treatment.variant is VARIANTS[0] else 20.0
            done.append(trial(planned, "success" if level < limit else "failed"))
            searching.ended(planned, done[-1])
        return done

    done = of_two(course(wanted, count=2))
    names = [t.middleware for t in done[1:]]
    shorter = min(names.count("one"), names.count("other"))
    assert names[: 2 * shorter] == ["one", "other"] * shorter
    one, other = found_by(wanted, done, 1)
    assert one["interval"]["low"] <= BREAKS_AT <= one["interval"]["high"]
    assert other["interval"]["low"] <= 20.0 <= other["interval"]["high"]


def test_searches_under_different_conditions_are_called_differently() -> None:
    wanted = goal(asked(share=0.5, factor="message_flood.rate"), False, None)

    def under(name: str, order: int) -> TrialData:
        level = {"message_flood.rate": 50}
        label = f"{name}+message_flood rate=50"
        planned = Planned(order, order, Treatment(label, VARIANTS[0], GRAPH, factors=level))
        return trial(planned, conditions=(name, "message_flood"))

    one, other = found_by(wanted, [under("cpu_load", 1), under("cpu_pinning", 2)], 1)
    assert (one["variant"], other["variant"]) == ("one, cpu_load+message_flood", "one, cpu_pinning+message_flood")
    (alone,) = found_by(wanted, [under("cpu_load", 1)], 1)
    assert alone["variant"] == "one"


def test_told_again_a_search_goes_on_where_it_stopped() -> None:
    wanted = goal(asked(share=0.5), False, None)
    done = run(course(wanted), steep)
    again = course(wanted)
    for before in done[:9]:
        planned = again.next()
        assert planned is not None
        assert planned.treatment.factors == before.factors
        again.ended(planned, before)
    assert [t.factors for t in run_rest(again)] == [t.factors for t in done[9:]]


def run_rest(searching: Searching) -> Sequence[TrialData]:
    done = []
    while (planned := searching.next()) is not None:
        done.append(trial(planned, steep(float(planned.treatment.factors["workload.timer_speed"]), 0)))
        searching.ended(planned, done[-1])
    return done


@pytest.mark.parametrize(
    ("keys", "complaint"),
    [
        ({"low": 9, "high": 1}, "--low 9 is not below --high 1"),
        ({"low": 5, "high": 5}, "is not below"),
        ({"low": "9ms", "high": "1ms"}, "--low 9ms is not below --high 1ms"),
        ({"low": "1us", "high": "9ms"}, "--low 1us and --high 9ms have different units; write both in one"),
        ({"low": 1, "high": "9ms"}, "--low 1 and --high 9ms have different units"),
        ({"low": 0, "high": 5, "scale": "log"}, "must begin above 0; use --scale linear"),
        ({"low": -1, "high": 5, "scale": "log"}, "must begin above 0"),
        ({"criterion": "quick"}, "write success, a bound like"),
        ({"criterion": "latency.p99 <= 5"}, "has no unit"),
        ({"criterion": "target:nowhere"}, "is neither a file nor a target in the catalog"),
    ],
)
def test_what_cannot_be_searched_is_refused(keys: dict[str, Any], complaint: str) -> None:
    with pytest.raises(BadInput) as caught:
        goal(asked(**keys), False, None)
    assert complaint in str(caught.value)


def test_ends_between_whole_numbers_are_refused_where_there_is_nothing_between() -> None:
    with pytest.raises(BadInput, match=r"--high 9\.5: workload\.depth takes only whole numbers"):
        goal(asked(factor="workload.depth", high=9.5), True, None)


@pytest.mark.parametrize(
    ("keys", "share", "scale"),
    [
        ({}, 0.9, "log"),
        ({"high": 9}, 0.9, "linear"),
        ({"low": 0, "high": 1000}, 0.9, "linear"),
        ({"criterion": "lost == 0"}, 0.5, "log"),
        ({"criterion": "lost == 0", "share": 0.8, "scale": "linear"}, 0.8, "linear"),
    ],
)
def test_defaults_that_depend_on_what_is_searched(keys: dict[str, Any], share: float, scale: str) -> None:
    wanted = goal(asked(**keys), False, None)
    assert (wanted.aim.share, wanted.space.scale) == (share, scale)


def test_levels_are_given_as_whole_numbers_where_they_are_some() -> None:
    real, whole = goal(asked(), False, None), goal(asked(), True, None)
    assert [real.level(v) for v in (3.0, 2.5)] == [3, 2.5]
    assert type(real.level(3.0)) is type(whole.level(3.0)) is int


def test_levels_with_a_unit_are_given_with_it_and_told_as_numbers_of_it() -> None:
    wanted = goal(asked(factor="workload.timer_speed", low="1ms", high="20ms", share=0.5), False, None)
    assert (wanted.space.low, wanted.space.high, wanted.unit) == (1, 20, "ms")
    assert [wanted.level(v) for v in (2.5, 20.0)] == ["2.5ms", "20ms"]
    assert wanted.number("2.5ms") == 2.5
    assert goal(asked(low=0, high="20ms"), False, None).unit == "ms", "0 needs no unit"
    searching, done = course(wanted), []
    while (planned := searching.next()) is not None:
        level = str(planned.treatment.factors.get("workload.timer_speed", "0ms"))
        done.append(trial(planned, "success" if float(level.removesuffix("ms")) < 7 else "failed"))
        searching.ended(planned, done[-1])
    (found,) = found_by(wanted, done, 1)
    assert found["unit"] == "ms"
    assert found["interval"]["low"] <= 7 <= found["interval"]["high"]
    assert " ms [" in found["words"][0]


def test_what_came_to_nothing_has_not_met_a_bound_and_too_short_a_trial_says_nothing() -> None:
    """Criteria on latency need messages; that they were sent and lost is what breaking looks like."""
    judge = goal(asked(criterion="latency.p99 <= 5ms"), False, None).judge
    planned = Planned(1, 1, treatments(1)[0])

    def counted(sent: int, received: int) -> TrialData:
        return trial(planned, accounts=accounts_of(sent, received))

    assert judge(counted(2000, 2000)) is True
    assert judge(counted(2000, 0)) is False
    assert judge(counted(2000, 500)) is False
    with pytest.raises(BadInput, match="p99 needs 1 000 messages in a trial, there are only 500; use longer trials"):
        judge(counted(500, 500))
    with pytest.raises(BadInput, match="longer trials"):
        judge(counted(900, 500))
    assert judge(trial(planned, "failed", accounts=accounts_of(2000, 2000, complete=False))) is False, "it broke"


def test_a_trial_that_cannot_be_judged_is_told_without_a_verdict() -> None:
    """It ended the search; what was found before it is kept."""
    wanted = goal(asked(criterion="latency.p99 <= 5ms"), False, None)
    searching = course(wanted)
    done: list[TrialData] = []
    for sent in (2000, 2000, 2000, 10):
        planned = searching.next()
        assert planned is not None
        done.append(trial(planned, accounts=accounts_of(sent, sent)))
        if sent > 10:
            searching.ended(planned, done[-1])
    (found,) = found_by(wanted, done, 1)
    assert [step["met"] for step in found["course"]] == [True, True, None]
    assert (found["trials"], found["left_out"]) == (2, {"invalid": 0, "harness_error": 0})


def test_a_target_is_met_or_not_and_what_it_bounds_must_be_measured(tmp_path: Path) -> None:
    path = tmp_path / "target.json"
    path.write_text('{"resources": {"rss[KB]": 10}}')
    judge = goal(asked(criterion=f"target:{path}"), False, 2).judge
    planned = Planned(1, 1, treatments(1)[0])
    assert judge(trial(planned, "invalid")) is None
    assert judge(trial(planned, "failed")) is False, "what broke before it was measured has not met it"
    assert [outcome for outcome in Outcome if not outcome.judged] == ["invalid", "harness_error"]
    assert dataclasses.is_dataclass(judge)
