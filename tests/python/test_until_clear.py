"""Repetitions until the outcome is clear: which treatments get more, how often the result is wrong, and replays."""

from __future__ import annotations

import random
from typing import Any, cast

import pytest
from test_design import NATIVE, needs_native

from perflab.design.document import Written
from perflab.design.until_clear import LEAD, UntilClear, error_of
from perflab.errors import BadInput
from perflab.experiment.build import build
from perflab.results.outcome import FAILED, HARNESS_ERROR, SUCCESS, Outcome
from perflab.statistics.summary import TrialData


class Ended:
    """As much of a trial as the rule sees."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome


def experiment(**members: Any) -> Any:
    written = {"workload": "sierra_nevada", "conditions": ["cpu_load", "io_load"], "trials": 3, "until_clear": 9}
    return build(Written({**written, "baseline_again": False, **members}), NATIVE, output=None, command_line=())


def course(made: Any, added: Any = lambda _: None) -> UntilClear:
    found = made.course(lambda *_: [], added=added)
    assert isinstance(found, UntilClear)
    return found


def run(made: Any, outcome: Any) -> list[tuple[int, str]]:
    """Block and label of each trial; `outcome` says how a label's next trial ends."""
    ran = []
    of = course(made)
    while (planned := of.next()) is not None:
        of.ended(planned, cast(TrialData, Ended(outcome(planned.treatment.label))))
        ran.append((planned.block, planned.treatment.label))
    assert [order + 1 for order in range(len(ran))] == [p.order for p in of._order]
    return ran


@needs_native
def test_only_what_is_not_clear_has_more_repetitions_and_at_most_so_many() -> None:
    mixed = iter([SUCCESS, FAILED] * 9)
    ran = run(experiment(), lambda label: {"baseline": SUCCESS, "cpu_load": FAILED}.get(label) or next(mixed))
    assert sorted(label for block, label in ran if block <= 3) == sorted(["baseline", "cpu_load", "io_load"] * 3)
    assert [label for block, label in ran if block > 3] == ["io_load"] * 6


@needs_native
def test_it_ends_with_the_lead_and_what_says_nothing_does_not_count() -> None:
    ends = {"cpu_load": iter([HARNESS_ERROR, SUCCESS, SUCCESS, SUCCESS]), "io_load": iter([FAILED] + [SUCCESS] * 8)}
    ran = [label for _, label in run(experiment(), lambda label: next(ends[label]) if label in ends else SUCCESS)]
    assert [ran.count(label) for label in ("baseline", "cpu_load", "io_load")] == [3, 4, 5]


@needs_native
def test_a_course_that_is_told_the_same_trials_plans_the_same() -> None:
    made = experiment()
    outcomes = [random.Random(3).choice([SUCCESS, FAILED]) for _ in range(99)]
    again = [iter(outcomes), iter(outcomes)]
    first, second = (run(made, lambda _, n=n: next(again[n])) for n in range(2))
    assert first == second


def test_a_wrong_claim_is_as_rare_as_is_said() -> None:
    """Of a share of 0.8 in 1.5 % of treatments, however many repetitions there may be."""
    generator = random.Random(7)
    wrong = 0
    for _ in range(20_000):
        lead = 0
        while abs(lead) < LEAD:
            lead += 1 if generator.random() < 0.8 else -1
        wrong += lead < 0
    assert wrong / 20_000 == pytest.approx(error_of(0.8), abs=0.003)
    assert error_of(0.8) == pytest.approx(1 / 65)


@needs_native
def test_what_does_not_go_together_is_refused() -> None:
    with pytest.raises(BadInput, match="until-clear: until_decided decides itself"):
        experiment(until_decided=True)
    with pytest.raises(BadInput, match="until-clear is an upper limit, but there are 12 trials"):
        experiment(trials=12)
