"""What an experiment shows: made experiments with known effects, and what is said about them."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest
from made_experiment import Effect, Made, read_results, result, trial, with_findings

from perflab.models import as_json
from perflab.results.comparison import Looks
from perflab.statistics import findings
from perflab.statistics.comparison import holm
from perflab.statistics.metrics import METRICS, Metric
from perflab.statistics.proportion import wilson
from perflab.statistics.runs import compare_runs
from perflab.statistics.selection import match
from perflab.statistics.spread import brown_forsythe
from perflab.statistics.verdicts import ONE_TRIAL, no_difference_of, no_difference_words

Json = dict[str, Any]

P99 = (METRICS["latency.p99"],)
LOST = (METRICS["lost"],)


def found(made: Made, metrics: tuple[Metric, ...] = P99) -> Json:
    document: Json = as_json(findings.find(read_results(made.summary()["results"]), metrics=metrics))
    return document


def only(document: Json, **wanted: str) -> Json:
    """The one comparison of these kinds, names and metrics."""
    names = {"treatment": lambda c: c["treatment"]["name"], "baseline": lambda c: c["baseline"]["name"]}
    alike = [
        c
        for c in document["comparisons"]
        if all(names.get(k, lambda c, k=k: c[k])(c) == value for k, value in wanted.items())
    ]
    assert len(alike) == 1, [(c["kind"], c["metric"], c["treatment"]["name"]) for c in alike]
    comparison: Json = alike[0]
    return comparison


def kinds(document: Json) -> list[str]:
    return [r["kind"] for r in document["remarks"]]


def words(document: Json, kind: str) -> str:
    return str(next(r["words"] for r in document["remarks"] if r["kind"] == kind))


def test_an_effect_is_found_with_its_size_and_sign() -> None:
    document = found(Made({"cpu_load": Effect(latency=1.8)}))
    c = only(document, kind="condition", treatment="cpu_load")
    assert (c["verdict"], c["effect"], c["scale"]) == ("higher", "worse", "ratio")
    assert c["estimate"]["value"] == pytest.approx(1.8, rel=0.05)
    assert c["estimate"]["interval"]["low"] < 1.8 < c["estimate"]["interval"]["high"]
    assert c["blocks"] == 8
    assert (c["baseline"]["n"], c["treatment"]["n"]) == (16, 8)  # those after a disturbance included
    assert "cpu_load against baseline" in words(document, "worse")


def test_an_improvement_is_better_and_not_worse() -> None:
    document = found(Made({"cpu_pinning": Effect(latency=0.6)}))
    assert only(document, kind="condition")["effect"] == "better"
    assert "better" in kinds(document)
    assert "worse" not in kinds(document)


def test_no_effect_is_shown_to_be_none() -> None:
    document = found(Made({"message_flood": Effect()}))
    assert only(document, kind="condition")["verdict"] == "equivalent"
    assert words(document, "equivalent") == "no difference larger than 5 %: latency p99 (message_flood)"
    assert not {"worse", "better"} & set(kinds(document))


def test_a_small_effect_among_scatter_is_neither_shown_nor_excluded() -> None:
    document = found(Made({"cpu_load": Effect(latency=1.02)}, spread=0.4))
    assert only(document, kind="condition")["verdict"] == "not_shown"
    assert "inconclusive: latency p99 (cpu_load)" in words(document, "not_shown")


def test_drift_between_blocks_does_not_hide_an_effect() -> None:
    made = Made({"cpu_load": Effect(latency=1.1)}, spread=0.01, drift=0.6)
    assert only(found(made), kind="condition")["verdict"] == "higher"


def test_losses_are_compared_as_differences_and_never_called_equivalent() -> None:
    document = found(Made({"cpu_load": Effect(), "message_flood": Effect(lost=5)}), LOST)
    flood = only(document, treatment="message_flood")
    assert (flood["scale"], flood["effect"]) == ("difference", "worse")
    assert 5 <= flood["estimate"]["value"] <= 8
    assert only(document, treatment="cpu_load")["verdict"] != "equivalent"
    assert words(document, "same") == "identical in every trial: lost (cpu_load)"


def test_constant_losses_of_two_runs_are_the_same_in_every_trial() -> None:
    run = read_results(Made(blocks=5).summary()["results"])
    (one,) = compare_runs(match(run, run).pairs, LOST, ("a", "b"))
    document = one.comparison
    assert document.verdict == "not_shown"
    assert no_difference_words(0.05)[no_difference_of(document)] == "identical in every trial"
    (other,) = compare_runs(match(run, run).pairs, P99, ("a", "b"))
    assert no_difference_of(other.comparison) == other.comparison.verdict


def test_one_trial_each_says_nothing() -> None:
    document = found(Made({"cpu_load": Effect(latency=9)}, blocks=1, variants={"cyclonedds": Effect()}), P99)
    results = [result([trial(1)]), result([trial(2, effect=Effect(9))], conditions=["x"], treatment="x")]
    alone = as_json(findings.find(read_results(results), metrics=P99))
    assert alone["comparisons"] == []
    assert alone["family_size"] == 0
    assert [(r["kind"], r["words"]) for r in alone["remarks"]] == [("one_trial", ONE_TRIAL)]
    assert kinds(document) == ["more_trials", "too_few_trials"]  # of two baseline trials and one other


def test_two_trials_each_are_too_few_and_it_says_how_many_more_would_do() -> None:
    document = found(Made({"cpu_load": Effect(latency=2)}, blocks=2))
    one = only(document, kind="condition")
    assert (one["verdict"], one["more_trials"], document["more_trials"]) == ("too_few_trials", 2, 2)
    assert words(document, "more_trials") == (
        "1 comparison is inconclusive; about 2 more trials of each would probably decide it; "
        "with 2 repetitions nothing can be shown, with 4 it can "
        "(`perflab run --resume RUN --until-decided`)"
    )
    assert "; 4 blocks could; about 2 more trials of each would probably decide it" in one["words"]


def test_what_the_advice_asks_for_is_enough() -> None:
    """As part of the same run: a look that could show nothing was none."""
    results = read_results(Made({"cpu_load": Effect(latency=2)}, blocks=2 + 2).summary()["results"])
    document: Json = as_json(findings.find(results, metrics=P99))
    one = only(document, kind="condition")
    assert (one["verdict"], one["more_trials"]) == ("higher", None)


def test_power_is_planned_at_the_level_of_the_family() -> None:
    document = found(Made({"cpu_load": Effect(), "message_flood": Effect()}, spread=0.4))
    assert [c["power"]["alpha"] for c in document["comparisons"]] == pytest.approx([0.05 * Looks().share / 2] * 2)
    alone = found(Made({"cpu_load": Effect()}, spread=0.4))["comparisons"][0]["power"]
    assert alone["alpha"] == pytest.approx(0.05 * Looks().share)
    assert document["comparisons"][0]["power"]["needed"] > alone["needed"]


def test_interrupted_trials_are_no_failures_of_the_laboratory() -> None:
    cut: Json = {"outcome": "harness_error", "measured": False}
    disturbed = [trial(10 + n, n) for n in range(1, 7)]
    disturbed += [trial(20 + n, 6 + n, **cut, reason="interrupted by SIGINT", interrupted=True) for n in range(2)]
    results = [
        result([trial(n, n) for n in range(1, 9)]),
        result(disturbed, conditions=["cpu_load"], treatment="cpu_load"),
    ]
    said = [
        r["words"]
        for r in as_json(findings.find(read_results(results), metrics=P99))["remarks"]
        if r["kind"] == "harness_error"
    ]
    assert said == ["cpu_load: 2 of 8 trials were interrupted; `--resume` runs them"]
    disturbed.append(trial(30, 8, **cut, reason="disk full"))
    results[1] = result(disturbed, conditions=["cpu_load"], treatment="cpu_load")
    said = [
        r["words"]
        for r in as_json(findings.find(read_results(results), metrics=P99))["remarks"]
        if r["kind"] == "harness_error"
    ]
    assert said[0] == "cpu_load: 2 of 9 trials were interrupted; `--resume` runs them"
    assert said[1] == "cpu_load: 1 of 9 trials stopped by a perflab error, not by the system under test (disk full)"


def test_blocks_that_are_not_used_are_named() -> None:
    disturbed = [trial(10 + n, n) for n in range(2, 9)]
    results = [
        result([trial(n, n) for n in range(1, 9)]),
        result(disturbed, conditions=["cpu_load"], treatment="cpu_load"),
    ]
    document = as_json(findings.find(read_results(results), metrics=P99))
    assert words(document, "unused") == "compared within blocks; block 1 was not complete and is not used"
    assert "unused" not in kinds(found(Made({"cpu_load": Effect()})))


def test_a_single_result_has_intervals_and_no_comparison() -> None:
    summary = with_findings(Made(blocks=8).summary())
    interval = summary.results[0].intervals["latency.p99"]
    assert (interval.n, interval.unit, interval.level) == (8, "ns", 0.95)
    assert interval.low < interval.value < interval.high  # type: ignore[operator]
    assert summary.findings is not None
    assert summary.findings.comparisons == ()


def test_invalid_failed_and_extra_trials_never_enter() -> None:
    wild = Effect(latency=1000)
    baseline = [trial(n, n) for n in range(1, 9)]
    disturbed = [trial(10 + n, n) for n in range(1, 9)]
    disturbed += [
        trial(31, 1, wild, outcome="invalid", measured=False, reason="the load was killed"),
        trial(32, 2, wild, outcome="harness_error", measured=False, reason="disk full"),
        trial(33, 3, wild, outcome="failed", measured=False, reason="a node died"),
    ]
    results = [
        result(baseline),
        result(disturbed, conditions=["cpu_load"], treatment="cpu_load"),
        result([trial(50 + n, n, wild) for n in range(1, 9)], purpose="extra", observers=["trace"]),
    ]
    document = as_json(findings.find(read_results(results), metrics=P99))
    assert document["comparisons"][0]["treatment"]["n"] == 8
    assert document["comparisons"][0]["verdict"] == "equivalent"
    assert len(document["comparisons"]) == 1
    assert "1 of 11 trials invalid" in words(document, "invalid")
    assert "the load was killed" in words(document, "invalid")
    assert "disk full" in words(document, "harness_error")
    assert "1 of 11 trials failed before their end" in words(document, "ended_early")
    rate = document["success_rates"][1]
    assert (rate["successes"], rate["n"], rate["invalid"], rate["harness_errors"]) == (8, 9, 1, 1)


def test_a_trial_that_missed_a_criterion_was_measured() -> None:
    trials = [trial(10 + n, n, Effect(2), outcome="failed", reason="latency p99 too high") for n in range(1, 9)]
    results = [
        result([trial(n, n) for n in range(1, 9)]),
        result(trials, conditions=["cpu_load"], treatment="cpu_load"),
    ]
    document = as_json(findings.find(read_results(results), metrics=P99))
    assert document["comparisons"][0]["treatment"]["n"] == 8
    assert "0 of 8 trials succeeded" in words(document, "success")


def test_carry_over_is_seen_where_there_is_any() -> None:
    clean = found(Made({"cpu_load": Effect(latency=1.5)}))
    assert "carry_over" not in kinds(clean)
    carried = found(Made({"cpu_load": Effect(latency=1.5)}, carry_over=1.3))
    assert carried["carry_over"][0]["verdict"] == "higher"
    assert "baselines right after a disturbance differ from others (latency p99 1." in words(carried, "carry_over")


def test_the_cost_of_observers_is_that_of_baselines_against_controls() -> None:
    document = found(Made(observers=["hiccup"], control=Effect(latency=0.8)))
    c = only(document, kind="observer")
    assert (c["baseline"]["name"], c["treatment"]["name"]) == ("without hiccup", "with hiccup")
    assert c["estimate"]["value"] == pytest.approx(1.25, rel=0.05)
    assert words(document, "observer").startswith("cost of hiccup: latency p99 1.2")
    assert "worse" not in kinds(document)


def test_variants_are_compared_at_their_baselines() -> None:
    made = Made({"cpu_load": Effect(latency=1.5)}, {"cyclonedds": Effect(), "fastdds": Effect(latency=1.3)})
    document = found(made)
    c = only(document, kind="variant")
    assert (c["baseline"]["name"], c["treatment"]["name"]) == ("cyclonedds", "fastdds")
    assert c["estimate"]["value"] == pytest.approx(1.3, rel=0.05)
    assert {c["variant"] for c in document["comparisons"] if c["kind"] == "condition"} == {"cyclonedds", "fastdds"}
    assert document["family_size"] == 3


def test_levels_of_an_outer_factor_have_their_own_baselines() -> None:
    levels = {1: Effect(), 10: Effect(latency=1.4)}
    document = found(Made({"cpu_load": Effect(latency=1.2)}, factors={"workload.depth": levels}))
    c = only(document, kind="factor")
    assert (c["baseline"]["name"], c["treatment"]["name"]) == ("workload.depth=1", "workload.depth=10")
    assert c["estimate"]["value"] == pytest.approx(1.4, rel=0.05)
    conditions = [c for c in document["comparisons"] if c["kind"] == "condition"]
    assert [c["variant"] for c in conditions] == ["cyclonedds, workload.depth=1", "cyclonedds, workload.depth=10"]
    assert all(c["estimate"]["value"] == pytest.approx(1.2, rel=0.05) for c in conditions)


def test_the_noise_floor_is_that_of_the_baseline() -> None:
    quiet = found(Made({"cpu_load": Effect()}, spread=0.01))["noise_floor"]["cyclonedds"]["latency.p99"]
    loud = found(Made({"cpu_load": Effect()}, spread=0.2))["noise_floor"]["cyclonedds"]["latency.p99"]
    assert 1 < quiet["ratio"] < 1.02 < loud["ratio"]


def test_a_figure_that_too_few_messages_support_is_missing_and_said_to_be() -> None:
    document = found(Made({"cpu_load": Effect()}, messages=400))
    assert document["comparisons"] == []
    assert words(document, "missing") == "latency p99: p99 needs 1 000 messages in a trial, there are only 400"


def test_the_cells_of_histograms_are_no_lattice_and_a_polling_period_is_one() -> None:
    def values(step: int) -> list[Json]:
        trials = [trial(n, n) for n in range(1, 13)]
        for n, t in enumerate(trials):
            t["totals"]["latency_ns"]["p99"] = 1_500_000 + step * ((n * 7) % 11)
        return trials

    cells = as_json(findings.find(read_results([result(values(1024))]), metrics=P99))
    assert cells["lattices"] == []
    polled = as_json(findings.find(read_results([result(values(50_000))]), metrics=P99))
    assert polled["lattices"][0]["period"] == pytest.approx(50_000)
    assert "comes in steps of 50.0 µs" in words(polled, "lattice")


def test_outliers_are_named_and_stay() -> None:
    trials = [trial(n, n) for n in range(1, 11)]
    trials[3]["totals"]["latency_ns"]["p99"] *= 20
    document = as_json(findings.find(read_results([result(trials)]), metrics=P99))
    assert "trial 4 (baseline): latency p99" in words(document, "outliers")
    assert findings.intervals(read_results([result(trials)])[0], P99)["latency.p99"].n == 10


def test_findings_are_json_and_the_same_for_the_same_trials() -> None:
    made = Made({"cpu_load": Effect(latency=1.8)})
    first, second = (json.dumps(found(made), allow_nan=False) for _ in range(2))
    assert first == second


@pytest.mark.long
def test_no_effect_is_claimed_at_most_as_often_as_stated() -> None:
    claims = 0
    for seed in range(25):
        document = found(Made({"cpu_load": Effect()}, blocks=5, spread=0.3, seed=seed))
        claims += any(c["effect"] for c in document["comparisons"])
    assert claims <= 5  # of 25 at 5 %: 6 or more have a chance of 0.1 %


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"), [(10, 10, 0.7225, 1.0), (0, 10, 0.0, 0.2775), (5, 10, 0.2366, 0.7634)]
)
def test_wilsons_interval_has_its_known_values(successes: int, n: int, low: float, high: float) -> None:
    assert wilson(successes, n, 0.95) == pytest.approx((low, high), abs=1e-4)


def test_no_trials_have_no_rate() -> None:
    assert wilson(0, 0, 0.95) is None


def in_blocks(middleware: str, values: dict[str, list[int]], **changes: Any) -> list[Json]:
    """A result for each name, with a p99 per block; the first is the baseline."""
    made = []
    for number, (name, p99s) in enumerate(values.items()):
        trials = [trial(100 * number + b, b) for b in range(1, len(p99s) + 1)]
        for t, p99 in zip(trials, p99s, strict=True):
            t["totals"]["latency_ns"]["p99"] = p99
        given = {"conditions": [name], "condition_parameters": {name: {}}, "treatment": name} if number else {}
        made.append(result(trials, middleware=middleware, **given, **changes))
    return made


def test_equal_values_of_one_seed_are_no_evidence_and_that_is_said() -> None:
    seeded = [500_000, 510_000, 505_000, 520_000, 490_000, 515_000, 495_000, 512_000]
    values = {"baseline": seeded, "null": seeded, "effect": [2 * v for v in seeded]}
    document = as_json(findings.find(read_results(in_blocks("virtual", values)), metrics=P99))
    assert only(document, treatment="null")["verdict"] == "equivalent"
    assert words(document, "same_seed").startswith(
        "1 of 2 comparisons on virtual have equal values in every block: all trials of a block have one seed"
    )


@pytest.mark.parametrize(
    ("middleware", "null"),
    [
        ("cyclonedds", [500_000, 510_000, 505_000, 520_000, 490_000, 515_000]),  # a coincidence, which is no seed's
        ("virtual", [500_000, 510_000, 505_000, 520_000, 490_000, 515_001]),
    ],
)
def test_values_that_seeds_did_not_make_equal_are_left_alone(middleware: str, null: list[int]) -> None:
    values = {"baseline": [500_000, 510_000, 505_000, 520_000, 490_000, 515_000], "null": null}
    assert "same_seed" not in kinds(as_json(findings.find(read_results(in_blocks(middleware, values)), metrics=P99)))


def test_the_same_value_in_every_trial_is_said_once() -> None:
    constant = [500_000] * 6
    found = as_json(
        findings.find(read_results(in_blocks("virtual", {"baseline": constant, "null": constant})), metrics=P99)
    )
    assert "same" in kinds(found)
    assert "same_seed" not in kinds(found)


def test_the_noise_floor_of_two_places_is_that_of_the_noisier_on_the_scale_of_the_metric() -> None:
    """One variant scatters more by factors, the other more in messages."""
    generator = random.Random(5)

    def variant(middleware: str, centre: float, spread: float) -> Json:
        trials = [trial(n, n, None) for n in range(1, 13)]
        for t in trials:
            t["block"] = 1
            t["totals"]["received"] = round(centre + generator.uniform(-spread, spread))
        return result(trials, middleware=middleware)

    few, many = variant("few", 100, 40), variant("many", 100_000, 4000)
    document = as_json(findings.find(read_results([few, many]), metrics=(METRICS["received"],)))
    floors = {name: each["received"]["difference"] for name, each in document["noise_floor"].items()}
    assert max(floors.values()) > 10 * min(floors.values())
    (comparison,) = document["comparisons"]
    assert comparison["scale"] == "difference"
    assert comparison["noise_floor"] == max(floors.values())


def test_a_treatment_whose_trials_scatter_more_is_a_finding_and_one_that_multiplies_all_of_them_is_none() -> None:
    steady = [trial(n, n, spread=0.01) for n in range(1, 25)]
    wild = [trial(100 + n, n, spread=0.2) for n in range(1, 25)]
    slow = [trial(200 + n, n, Effect(latency=3), spread=0.01) for n in range(1, 25)]
    results = [
        result(steady),
        result(wild, conditions=["cpu_load"], treatment="cpu_load"),
        result(slow, conditions=["io_load"], treatment="io_load"),
    ]
    found = findings.find(read_results(results), metrics=P99)
    spreads = {c.treatment.name: c.spread for c in found.comparisons}
    assert {name: spread.verdict for name, spread in spreads.items()} == {"cpu_load": "more", "io_load": "not_shown"}
    assert spreads["cpu_load"].p_adjusted == pytest.approx(2 * (spreads["cpu_load"].scaled_test.p or 0) / Looks().share)
    between = spreads["cpu_load"].scaled_ratio
    assert between.low is not None
    assert between.low > 1
    assert between.value == pytest.approx(20, rel=0.5)
    assert between.interval is not None
    assert between.interval.confidence == pytest.approx(1 - 0.05 * Looks().share / 2), "as that of the family"
    assert spreads["io_load"].sd_ratio.value == pytest.approx(3, rel=0.5), "the standard deviations themselves differ"
    (remark,) = [r for r in found.remarks if r.kind == "spread"]
    assert "cpu_load against baseline: trials scatter more in proportion, SD " in remark.words
    assert "after Holm" in remark.words


def test_differences_of_spread_are_claimed_no_more_often_than_alpha_allows() -> None:
    """Families of three treatments without any difference, of 8 trials each."""
    generator, claims, families = np.random.default_rng(5), 0, 1000
    for _ in range(families):
        baseline, *others = generator.normal(0, 0.05, (4, 8))
        adjusted = holm([brown_forsythe(baseline, other).p for other in others])
        claims += any(p is not None and p <= 0.05 for p in adjusted)
    assert claims <= 65  # at most 50 are expected; more than 65 of them would be seen once in 60 such tests
