"""Claims of an experiment: what they may expect, the verdict on trials with known effects, and its words."""

from __future__ import annotations

import io
import random
from dataclasses import replace
from typing import Any

import pytest
from made_experiment import Effect, Made, read_results, result, trial
from rich.console import Console

from perflab.design import claims as of_document
from perflab.design.document import Document
from perflab.errors import BadInput
from perflab.report.answers import print_claims
from perflab.report.tables import claims as tables
from perflab.results.claim import Claim
from perflab.results.summary import Summary
from perflab.statistics import claims, findings
from perflab.statistics.claims import Asked, parse_expectation
from perflab.statistics.metrics import METRICS
from perflab.statistics.proportion import newcombe

P99 = (METRICS["latency.p99"],)


def judged(results: Any, *expects: str, **asked: Any) -> list[Claim]:
    made = read_results(results)
    wanted = [Asked(f"claim {n}", parse_expectation(text), **asked) for n, text in enumerate(expects)]
    metrics = claims.with_claims(P99, wanted)
    return list(claims.judge(wanted, made, findings.find(made, metrics=metrics)))


def verdicts(made: Made, *expects: str, **asked: Any) -> list[str]:
    return [claim.verdict for claim in judged(made.summary()["results"], *expects, **asked)]


def test_a_difference_decides_claims_about_it() -> None:
    slower = Made({"cpu_load": Effect(latency=1.8)})
    assert verdicts(slower, "latency.p99 > baseline", "latency.p99 >= 1.5x baseline", "latency.p99 < 3x baseline") == (
        ["holds"] * 3
    )
    assert verdicts(slower, "latency.p99 < baseline", "latency.p99 >= 2.5x baseline") == ["does_not_hold"] * 2
    assert verdicts(slower, "latency.p99 == baseline within 20 %", "latency.p99 > 1.8x baseline") == [
        "does_not_hold", "not_decided",
    ]  # fmt: skip


def test_that_nothing_changes_is_decided_by_the_margin() -> None:
    nothing = Made({"flood": Effect()}, spread=0.01)
    same = "latency.p99 == baseline within 5 %"
    assert verdicts(nothing, same, "latency.p99 < 1.05x baseline") == ["holds"] * 2
    # Shown to be no more than what counts as no difference.
    assert verdicts(nothing, "latency.p99 > baseline", "latency.p99 < baseline") == ["does_not_hold"] * 2
    # At most as much as the baseline is what is equal, too.
    a_little_less = Made({"flood": Effect(latency=0.97)}, spread=0.002)
    assert verdicts(a_little_less, "latency.p99 <= baseline", "latency.p99 >= baseline", "latency.p99 < baseline") == [
        "holds", "does_not_hold", "does_not_hold",
    ]  # fmt: skip
    scattered = Made({"flood": Effect()}, spread=0.4, seed=2)
    assert verdicts(scattered, same, "latency.p99 > baseline") == ["not_decided"] * 2


def test_what_is_within_the_noise_of_the_baseline_is_no_difference() -> None:
    made = read_results(Made({"cpu_load": Effect(latency=1.8)}).summary()["results"])
    wanted = [
        Asked(text, parse_expectation(text))
        for text in ("latency.p99 > baseline", "latency.p99 < 3x baseline", "latency.p99 < baseline")
    ]
    found = findings.find(made, metrics=P99)
    assert [claim.verdict for claim in claims.judge(wanted, made, found)] == ["holds", "holds", "does_not_hold"]
    noisy = replace(found, comparisons=tuple(replace(c, verdict="below_noise_floor") for c in found.comparisons))
    more, bounded, less = claims.judge(wanted, made, noisy)
    assert (more.verdict, bounded.verdict, less.verdict) == ("not_decided", "holds", "does_not_hold")
    assert "baselines differ from each other" in more.words


def test_few_trials_decide_nothing_and_say_how_many_could() -> None:
    (claim,) = judged(Made({"cpu_load": Effect(latency=1.8)}, blocks=2).summary()["results"], "latency.p99 > baseline")
    assert claim.verdict == "not_decided"
    assert (claim.n, claim.n_baseline) == (2, 4)
    assert "repetitions" in claim.words


def test_counts_are_compared_by_differences() -> None:
    losing = Made({"flood": Effect(lost=40)})
    assert verdicts(losing, "lost > baseline", "lost == baseline within 10", "lost == baseline within 100") == [
        "holds", "does_not_hold", "holds",
    ]  # fmt: skip


def spreads(first: float, second: float, n: int = 24) -> list[Any]:
    generator = random.Random(3)
    calm = [trial(i, i, spread=first, generator=generator) for i in range(1, n + 1)]
    other = [trial(100 + i, i, spread=second, generator=generator) for i in range(1, n + 1)]
    return [result(calm), result(other, conditions=["cpu_load"], treatment="cpu_load")]


def test_the_ratio_of_spreads_decides_claims_about_it() -> None:
    (steadier, wilder) = judged(
        spreads(0.2, 0.02), "spread of latency.p99 < baseline", "spread of latency.p99 > baseline"
    )
    assert (steadier.verdict, wilder.verdict) == ("holds", "does_not_hold")
    assert steadier.figure.value == pytest.approx(0.1, rel=0.5)
    assert steadier.figure.high is not None
    assert steadier.figure.high < 1
    assert "of the baseline's, n = 24 and 24" in steadier.words
    (alike,) = judged(spreads(0.05, 0.05), "spread of latency.p99 < baseline")
    assert alike.verdict == "not_decided"


def test_a_spread_of_few_trials_has_no_interval_and_says_so() -> None:
    (claim,) = judged(spreads(0.4, 0.01, n=7), "spread of latency.p99 < baseline")
    assert claim.figure.interval is None
    assert "7 values are too few for a bootstrap" in claim.words


def with_outcomes(*outcomes: str) -> list[Any]:
    fine = [trial(i, i) for i in range(1, 25)]
    mine = [trial(100 + i, i, outcome=outcome) for i, outcome in enumerate(outcomes, 1)]
    return [result(fine), result(mine, conditions=["flood"], treatment="flood")]


@pytest.mark.parametrize(
    ("outcomes", "expects", "verdict"),
    [
        (["failed"] * 6, "success < 50 %", "holds"),
        (["success"] * 6, "success < 50 %", "does_not_hold"),
        (["success", "failed"] * 3, "success < 50 %", "not_decided"),
        (["failed"] * 6, "success < baseline", "holds"),
        (["success"] * 6, "success == baseline within 50 %", "holds"),
        (["invalid"] * 6, "success < 50 %", "not_decided"),
    ],
)
def test_success_is_the_share_of_all_trials_that_were_judged(outcomes: list[str], expects: str, verdict: str) -> None:
    (claim,) = judged(with_outcomes(*outcomes), expects)
    assert claim.verdict == verdict, claim.words
    assert claim.n == 6 * ("invalid" not in outcomes)


def test_shares_and_medians_of_several_claims_share_alpha() -> None:
    one = judged(with_outcomes(*["success"] * 6), "success < 50 %")
    three = judged(with_outcomes(*["success"] * 6), "success < 50 %", "success < 20 %", "latency.p99 < 1s")
    assert one[0].figure.low is not None
    assert three[0].figure.low is not None
    assert three[0].figure.low < one[0].figure.low
    assert three[2].verdict == "not_decided"
    assert "6 values are too few for an interval" in three[2].words
    (median,) = judged(with_outcomes(*["success"] * 6), "latency.p99 < 1s")
    assert median.verdict == "holds"
    assert median.words.startswith("median of latency p99 ")


def test_newcombe_is_that_of_the_paper() -> None:
    # Newcombe 1998, Table II, method 10: 56/70 - 48/80, 9/10 - 3/10 and 10/10 - 0/20.
    for first, second, expected in (
        ((48, 80), (56, 70), (0.0524, 0.3339)),
        ((3, 10), (9, 10), (0.1705, 0.8090)),
        ((0, 20), (10, 10), (0.6791, 1.0)),
    ):
        assert newcombe(first, second, 0.95) == pytest.approx(expected, abs=5e-5)


def test_a_claim_is_judged_at_each_place_or_where_it_says() -> None:
    made = Made({"cpu_load": Effect(latency=1.8)}, factors={"workload.depth": {1: Effect(), 10: Effect()}})
    everywhere = judged(made.summary()["results"], "latency.p99 > baseline")
    assert [claim.variant for claim in everywhere] == ["cyclonedds, workload.depth=1", "cyclonedds, workload.depth=10"]
    there = judged(made.summary()["results"], "latency.p99 > baseline", at={"workload.depth": 10})
    assert [claim.variant for claim in there] == ["cyclonedds, workload.depth=10"]
    (missing,) = judged(made.summary()["results"], "latency.p99 > baseline", treatment="cpu_load load=4")
    assert (missing.verdict, missing.words) == ("not_decided", "no trial of cpu_load load=4 was run")
    (lacking,) = judged(with_outcomes(*["success"] * 6), "cpu_frequency > baseline")
    assert (lacking.verdict, lacking.words) == ("not_decided", "CPU frequency: not measured")


def test_the_baseline_is_judged_by_itself_or_against_another_level() -> None:
    made = Made(
        variants={"cyclonedds": Effect(), "fastdds": Effect(latency=2)},
        factors={"workload.depth": {1: Effect(), 10: Effect(latency=1.5)}},
        spread=0.01,
        blocks=12,
    ).summary()["results"]
    slower = "latency.p99 >= 1.3x baseline"
    (deeper,) = judged(made, slower, at={"workload.depth": 10, "middleware": "fastdds"}, against={"workload.depth": 1})
    assert (deeper.verdict, deeper.variant, deeper.against) == (
        "holds", "fastdds, workload.depth=10", "fastdds, workload.depth=1",
    )  # fmt: skip
    assert "compared with fastdds, workload.depth=1, n = 12 and 12" in deeper.words
    others = judged(made, slower, at={"middleware": "fastdds"}, against={"middleware": "cyclonedds"})
    assert [one.verdict for one in others] == ["holds"] * 2
    assert [one.figure.value for one in others] == [pytest.approx(2, rel=0.03)] * 2
    undisturbed = judged(made, "latency.p50 == 100us within 10 %", "latency.p50 == 100us within 10us")
    assert [one.verdict for one in undisturbed] == ["holds", *["does_not_hold"] * 3] * 2
    both = Made({"flood": Effect(latency=3)}, spread=0.01).summary()["results"]
    (own,) = judged(both, "latency.p50 == 100us within 10 %", treatment="baseline")
    assert (own.verdict, own.treatment, own.against) == ("holds", "baseline", None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("latency.p99", "is not an expectation; write it like 'planning > baseline'"),
        ("latncy.p99 > baseline", "no metric 'latncy.p99'; did you mean latency.p99?"),
        ("latency.p99 = baseline", "has =; use one of <= < >= > =="),
        ("latency.p99 == baseline", "a margin (within ...) needs =="),
        ("latency.p99 > baseline within 5 %", "a margin (within ...) needs =="),
        ("latency.p99 == baseline within 5ms", "compared by factors, so its margin must be in percent, as 5 %"),
        ("latency.p99 == baseline within 0 %", "a margin must be above 0"),
        ("latency.p99 == baseline within 1e999 %", "1e999 is too large"),
        ("latency.p99 > 0x baseline", "a factor must be above 0"),
        ("latency.p99 > 5", "has no unit; write latency.p99 > 5ms"),
        ("latency.p99 == 5ms", "trials cannot show an exact value; write latency.p99 == 5ms within 1 %"),
        ("latency.p99 < 5ms within 1 %", "or < <= > >= without a margin"),
        ("latency.p99 == 5ms within 0 %", "a margin must be above 0"),
        ("lost_share == 5 % within 1", "has no unit; write lost_share == 5% within 1 %"),
        ("latency.p99 > twice", "after > write `baseline` or a value"),
        ("lost > 2x baseline", "lost is compared by differences, so it has no factor; leave 2x out"),
        ("success < 50", "has no unit; write success < 50 %"),
        ("spread of success < baseline", "success refers to all trials together and has no spread"),
        ("spread of latency.p99 < 5ms", "a spread is compared with that of the baseline"),
    ],
)
def test_what_no_trial_could_meet_is_refused_in_one_line(text: str, said: str) -> None:
    with pytest.raises(BadInput) as error:
        parse_expectation(text)
    assert said in str(error.value)
    assert str(error.value).startswith("expects: ")
    assert "\n" not in str(error.value)


def document(**keys: Any) -> Document:
    written = {"workload": "sierra_nevada", "conditions": ["cpu_load", "io_load"], **keys}
    return Document.model_validate(written)


class Planned:
    """What a claim asks of a treatment."""

    def __init__(self, label: str, depth: int = 1, executor: str | None = None) -> None:
        self.label, self.conditions = label, () if label == "baseline" else ("cpu_load",)
        self.factors, self.variant = {"workload.depth": depth}, self
        self.middleware_name, self.executor_name = "cyclonedds", executor


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        ({}, "name the treatment that the claim is about: cpu_load, io_load, baseline"),
        ({"treatment": "cpu_lod"}, "no treatment 'cpu_lod'; did you mean cpu_load?"),
        ({"treatment": "baseline"}, "the baseline is not compared with itself; name a level"),
        ({"treatment": "cpu_load", "against": {"workload.depth": 1}}, "only a claim about the baseline"),
        ({"treatment": "cpu_load", "at": {"workload.depth": 3}}, "workload.depth is nowhere 3; there are 1"),
        ({"treatment": "cpu_load", "expects": "latency.p99 ~ 3"}, "claims, entry 1: 'latency.p99 ~ 3' is no"),
    ],
)
def test_a_claim_about_nothing_of_the_experiment_is_refused(claim: dict[str, Any], said: str) -> None:
    asked = document(claims=[{"says": "It is so.", "expects": "latency.p99 > baseline", **claim}])
    with pytest.raises(BadInput) as error:
        of_document.check(asked, [Planned("cpu_load"), Planned("io_load")])  # type: ignore[list-item]
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        ({"at": {"executor": "events"}, "against": {"executor": "inline"}}, None),
        ({"at": {"executor": "inline"}, "against": {"executor": "events"}}, "say in `at` of which executor it is"),
        ({"at": {"workload.depth": 100}, "against": {"workload.depth": 10}}, "use 1"),
        ({"against": {"workload.depth": 1}}, "say in `at` of which workload.depth it is"),
        ({"at": {"executor": "polling"}, "against": {"executor": "inline"}}, "executor is nowhere 'polling'"),
    ],
)
def test_a_level_is_compared_with_what_comes_before_it(claim: dict[str, Any], said: str | None) -> None:
    asked = document(conditions=[], claims=[{"says": "It is so.", "expects": "latency.p99 > baseline", **claim}])
    planned = [Planned("baseline", depth, executor) for executor in ("inline", "events") for depth in (1, 10, 100)]
    if said is None:
        of_document.check(asked, planned)  # type: ignore[arg-type]
        return
    with pytest.raises(BadInput) as error:
        of_document.check(asked, planned)  # type: ignore[arg-type]
    assert said in str(error.value)


def test_what_claims_need_is_compared_beside_what_was_asked_for() -> None:
    asked = document(
        claims=[
            {"says": "Slower.", "treatment": "cpu_load", "expects": "latency.p99 > baseline"},
            {"says": "Fails.", "treatment": "cpu_load", "expects": "success < 50 %"},
        ],
        statistics={"metrics": ["latency.p50"]},
    )
    assert [metric.name for metric in of_document.metrics_asked(asked)] == ["latency.p50", "latency.p99"]


def test_each_claim_is_told_with_what_it_rests_on() -> None:
    found = judged(
        Made({"cpu_load": Effect(latency=1.8)}).summary()["results"], "latency.p99 < baseline", source="somebody"
    )
    out = Console(file=io.StringIO(), width=200)
    print_claims(out, Summary(run="r", valid=True, results=(), claims=tuple(found)), "a machine, 2 CPUs")
    text = out.file.getvalue()  # type: ignore[attr-defined]
    assert text.startswith("Claims, on a machine, 2 CPUs\n✖ does not hold: claim 0\n  latency p99 1.")
    assert "n = 8 and 16" in text
    assert "holds if `latency.p99 < baseline` (cpu_load); source: somebody" in text
    assert tables.in_words(found) == "Of 1 claim 1 does not hold"
    two = [*found, replace(found[0], verdict="holds"), replace(found[0], verdict="not_decided")]
    assert tables.in_words(two) == "Of 3 claims 1 holds, 1 does not hold, 1 is not decided"
