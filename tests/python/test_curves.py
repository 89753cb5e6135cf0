"""Curves of sweeps: which results make one, what enters, and what is said of it."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from made_experiment import Effect, read_results, result, trial
from made_levels import KNEE_AT_60, LOAD, loads, sweep

from perflab.models import as_json, read
from perflab.results.trial import Circumstances
from perflab.statistics import curves, findings
from perflab.statistics.curves_trend import trend
from perflab.statistics.judgement import Rules, judge
from perflab.statistics.metrics import METRICS, chosen
from perflab.statistics.sample import Sample
from perflab.statistics.selection import match

Json = dict[str, Any]

P99 = (METRICS["latency.p99"],)


def of(results: list[Json], path: str = LOAD) -> Json:
    made: list[Json] = as_json(curves.of(read_results(results), {path: []}))
    (curve,) = made
    return curve


def test_the_baseline_is_the_level_at_which_the_condition_is_off() -> None:
    curve = of(loads())
    assert (curve["variant"], curve["factor"], curve["others"], curve["scale"]) == ("cyclonedds", LOAD, {}, "linear")
    assert [entry["level"] for entry in curve["levels"]] == [0, 15, 30, 45, 60, 75, 90]
    assert [entry["treatment"] for entry in curve["levels"]][:2] == ["baseline", "cpu_load load=15"]
    points = curve["metrics"]["latency.p99"]["points"]
    assert [point["n"] for point in points] == [5] * 7
    assert points[0]["value"] == pytest.approx(500_000, rel=0.05)
    # Five trials are too few for an interval of 95 %, and enough for one of 90 %: the smallest and the largest.
    values = sorted(t["totals"]["latency_ns"]["p99"] for t in loads()[0]["trials_detail"])
    assert (points[0]["low"], points[0]["high"]) == (values[0], values[-1])
    assert curve["metrics"]["latency.p99"]["confidence"] == 0.9
    assert of(loads(n=6))["metrics"]["latency.p99"]["confidence"] == 0.95
    four = of(loads(n=4))["metrics"]["latency.p99"]
    assert four["points"][0]["low"] is None
    assert four["confidence"] == 0.95


def test_curves_under_different_conditions_are_called_differently() -> None:
    results: list[Json] = []
    for other in ("cpu_pinning", "cpu_load"):
        under = sweep("message_flood.rate", {20: Effect(), 50: Effect()})
        for entry in under:
            entry["conditions"] = [other, "message_flood"]
            entry["condition_parameters"] = {other: {"workers": 1}, **entry["condition_parameters"]}
            entry["treatment"] = f"{other}+{entry['treatment']}"
        results += under
    found = curves.of(read_results(results), {"message_flood.rate": []})
    names = ["cyclonedds, cpu_pinning+message_flood", "cyclonedds, cpu_load+message_flood"]
    assert [curve.variant for curve in found] == names
    assert [[level.level for level in curve.levels] for curve in found] == [[20, 50], [20, 50]]


def test_levels_are_values_however_they_are_written() -> None:
    """A load of "0%" is off, as 0 is: its result is the baseline of the others, and they make one curve."""
    as_text = sweep(LOAD, {"0%" if level == 0 else f"{level}%": Effect() for level in KNEE_AT_60})
    for entry in as_text:
        if entry["factors"][LOAD] == "0%":
            entry |= {"conditions": [], "condition_parameters": {}, "treatment": "baseline"}
    as_numbers = sweep(LOAD, {level: Effect() for level in KNEE_AT_60})
    for results in (as_text, as_numbers):
        (first,) = read_results(results[:1])
        assert first.conditions_off == {"cpu_load"}
        assert first.outer_factors == {}
        assert [level["level"] for level in of(results)["levels"]] == [0, 15, 30, 45, 60, 75, 90]
        found = as_json(findings.find(read_results(results), metrics=P99))
        assert {c["baseline"]["name"] for c in found["comparisons"]} == {"baseline"}
        assert len({c["treatment"]["name"] for c in found["comparisons"]}) == 6


def test_results_of_two_runs_belong_together_whose_levels_say_the_same() -> None:
    def one(level: object) -> Json:
        return result([trial(1)], factors={"workload.period": level})

    numbers = [one("10ms"), one("20ms")]
    for other in ("0.01s", "10 ms"):
        found = match(read_results(numbers), read_results([one(other), one("30ms")]))
        assert [(m.first.factors, m.differing) for m in found.pairs] == [({"workload.period": "10ms"}, ())]


def test_points_are_medians_with_the_interval_of_their_order_statistics() -> None:
    results = loads(n=6)
    values = sorted(t["totals"]["latency_ns"]["p99"] for t in results[3]["trials_detail"])
    point = of(results)["metrics"]["latency.p99"]["points"][3]
    median = {"value": (values[2] + values[3]) / 2, "low": values[0], "high": values[5], "n": 6}
    assert point == {**median, "level": 0.95, "unit": "ns", "reason": None}


def test_levels_are_in_order_whatever_the_order_of_results() -> None:
    results = loads()
    assert of(results[::-1])["metrics"] == of(results)["metrics"]


def test_a_baseline_with_a_level_of_a_condition_is_compared_with_its_treatments() -> None:
    results = loads()
    found = as_json(findings.find(read_results(results), metrics=P99))
    kinds = {c["kind"] for c in found["comparisons"]}
    assert kinds == {"condition"}
    assert {c["treatment"]["name"] for c in found["comparisons"]} == {f"cpu_load load={n}" for n in KNEE_AT_60 if n}


def test_what_other_levels_of_a_condition_that_is_off_say_means_nothing() -> None:
    baseline = {
        "middleware": "cyclonedds",
        "conditions": [],
        "factors": {"message_flood.publishers": 0, "message_flood.rate": 1000, "workload.depth": 0, "fastdds.x": 3},
    }
    off = read(Circumstances, {"workload": "w", **baseline})
    assert off.conditions_off == {"message_flood"}
    assert off.outer_factors == {"workload.depth": 0, "fastdds.x": 3}
    assert replace(off, conditions=("message_flood",)).outer_factors == {"workload.depth": 0, "fastdds.x": 3}
    assert replace(off, middleware="fastdds", factors={"fastdds.x": 0}).outer_factors == {"fastdds.x": 0}


def test_two_factors_of_one_condition_share_their_baseline() -> None:
    results = [
        result([trial(b, b) for b in range(1, 6)], factors={"message_flood.publishers": 0, "message_flood.rate": 9})
    ]
    for publishers in (1, 2):
        for rate in (5, 9):
            parameters = {"publishers": publishers, "rate": rate, "readers": "inside"}
            results.append(
                result(
                    [trial(b, b) for b in range(1, 6)],
                    conditions=["message_flood"],
                    condition_parameters={"message_flood": parameters},
                    factors={"message_flood.publishers": publishers, "message_flood.rate": rate},
                    treatment=f"message_flood publishers={publishers} rate={rate}",
                )
            )
    found = as_json(
        curves.of(read_results(results), {"message_flood.publishers": [0, 1, 2], "message_flood.rate": [5, 9]})
    )
    shape = [(c["factor"].partition(".")[2], c["others"], [e["level"] for e in c["levels"]]) for c in found]
    assert shape == [
        ("publishers", {"message_flood.rate": 5}, [0, 1, 2]),
        ("publishers", {"message_flood.rate": 9}, [0, 1, 2]),
        ("rate", {"message_flood.publishers": 1}, [5, 9]),
        ("rate", {"message_flood.publishers": 2}, [5, 9]),
    ]


def test_two_conditions_make_a_curve_for_each_level_of_the_other() -> None:
    results = []
    for load in (0, 50):
        for rate in (0, 100):
            parameters = {
                **({"cpu_load": {"load": load}} if load else {}),
                **({"message_flood": {"rate": rate}} if rate else {}),
            }
            results.append(
                result(
                    [trial(b, b) for b in range(1, 6)],
                    conditions=list(parameters),
                    condition_parameters=parameters,
                    factors={LOAD: load, "message_flood.rate": rate},
                    treatment=f"{load} {rate}",
                )
            )
    found = as_json(curves.of(read_results(results), {LOAD: [], "message_flood.rate": []}))
    assert [(c["others"], [e["treatment"] for e in c["levels"]]) for c in found] == [
        ({"message_flood.rate": 0}, ["0 0", "50 0"]),
        ({"message_flood.rate": 100}, ["0 100", "50 100"]),
        ({LOAD: 0}, ["0 0", "0 100"]),
        ({LOAD: 50}, ["50 0", "50 100"]),
    ]


def test_variants_outer_factors_and_other_parameters_have_curves_of_their_own() -> None:
    results = [
        *loads(middleware="cyclonedds"),
        *loads(middleware="fastdds"),
        *sweep("workload.depth", {1: Effect(), 10: Effect(), 100: Effect()}),
    ]
    found = as_json(curves.of(read_results(results), {LOAD: [], "workload.depth": []}))
    assert [(c["variant"], c["factor"], c["scale"]) for c in found] == [
        ("cyclonedds", LOAD, "linear"),
        ("fastdds", LOAD, "linear"),
        ("cyclonedds", "workload.depth", "log"),
    ]
    other = loads({15: 1.0, 30: 1.0})
    for r in other:
        r["condition_parameters"]["cpu_load"]["workers"] = 8
    four, eight = as_json(curves.of(read_results([*loads(), *other]), {LOAD: []}))
    assert [len(c["levels"]) for c in (four, eight)] == [7, 3]  # the baseline is the first level of both


def test_levels_that_are_no_numbers_and_single_ones_make_no_curve() -> None:
    texts = sweep("workload.reliability", {"reliable": Effect(), "best_effort": Effect(), True: Effect()})
    assert as_json(curves.of(read_results(texts), {"workload.reliability": []})) == []
    assert as_json(curves.of(read_results(loads({30: 1.0})), {LOAD: []})) == []
    assert as_json(curves.of(read_results([]), {LOAD: []})) == []


def test_invalid_trials_harness_errors_and_extra_ones_never_enter() -> None:
    results = loads()
    spoilt = results[6]["trials_detail"]
    for n, outcome in enumerate(("invalid", "harness_error")):
        spoilt[n] |= {"outcome": outcome, "measured": False}
        spoilt[n]["totals"]["latency_ns"]["p99"] = 1
    spoilt[2] |= {"outcome": "failed"}  # a criterion was missed: measured all the same
    results[6]["outcomes"] = {"success": 2, "failed": 1, "invalid": 1, "harness_error": 1}
    extra = loads({90: 100.0}, purpose="extra")
    control = sweep(LOAD, {0: Effect(latency=50)}, purpose="control")
    curve = of([*results, *extra, *control])
    last = curve["levels"][6]
    assert {k: last[k] for k in ("n", "successes", "judged", "invalid", "harness_errors")} == {
        "n": 3, "successes": 2, "judged": 3, "invalid": 1, "harness_errors": 1,
    }  # fmt: skip
    assert last["success_low"] == pytest.approx(0.2077, abs=1e-4)  # Wilson's interval of 2 of 3
    assert last["success_high"] == pytest.approx(0.9385, abs=1e-4)
    point = curve["metrics"]["latency.p99"]["points"][6]
    assert point["n"] == 3
    assert point["value"] > 4_000_000
    assert curve["levels"][0]["n"] == 5


def test_a_level_at_which_nothing_was_measured_is_null() -> None:
    results = loads()
    for t in results[6]["trials_detail"]:
        t |= {"outcome": "failed", "measured": False, "reason": "a process ended"}
    results[6]["outcomes"] = {"success": 0, "failed": 5, "invalid": 0, "harness_error": 0}
    curve = of(results)
    metric = curve["metrics"]["latency.p99"]
    assert curve["levels"][6]["successes"] == 0 < curve["levels"][6]["judged"]
    assert metric["points"][6] is None
    assert "latency p99: no value at 90." in metric["words"]
    assert metric["saturation"] is None
    assert "no value at 90" in metric["saturation_reason"]


def test_words_of_a_curve_that_degrades() -> None:
    words = of(loads())["metrics"]["latency.p99"]["words"]
    assert words == [
        "latency p99 rises from 508 µs at 0 % to 4.52 ms at 90 %: 8.77x [8.19, 9.30; 90 %], n = 5 at each level, "
        "p = 0.0004 of a trend.",
        "latency p99: knee at 61 % [60, 75], n = 5 at each level.",
        "latency p99: no saturation: it still changes from 75 % to 90 % (3.03x [2.85, 3.23; 90 %], n = 5 and 5).",
    ]


def test_words_of_a_curve_that_improves_and_saturates() -> None:
    results = sweep("workload.cpus", {n: Effect(latency=f) for n, f in ((1, 8), (2, 3), (4, 1), (8, 1))}, spread=0.01)
    curve = of(results, "workload.cpus")
    metric = curve["metrics"]["latency.p99"]
    assert curve["scale"] == "log"
    assert metric["saturation"] == {"level": 4, "low": 4, "high": 4, "confidence": 0.9}
    assert metric["knee"]["low"] <= 4 <= metric["knee"]["high"]
    assert "latency p99: no difference larger than 5 % from 4 on, n = 5 at each level." in metric["words"]
    assert metric["words"][0].startswith("latency p99 falls from 4")
    flat = curve["metrics"]["cpu_percent"]
    assert flat["knee"] is None and flat["knee_reason"] == "flat: no level differs from the last by more than 5 %"
    assert flat["saturation"] is None
    assert len(flat["words"]) == 1
    assert flat["words"][0].startswith("CPU: flat: no difference larger than 5 % from the last level, from 1 to 8 (")


def test_counts_are_never_called_the_same_for_being_close() -> None:
    metric = of(sweep(LOAD, {n: Effect(lost=n // 10) for n in KNEE_AT_60}))["metrics"]["lost"]
    assert metric["saturation"] is None
    assert "every difference of it matters" in metric["saturation_reason"]
    assert metric["points"][0].items() >= {"value": 0.0, "low": 0.0, "high": 0.0, "n": 5}.items()


def test_the_same_value_in_every_trial_is_said() -> None:
    assert of(loads())["metrics"]["lost"]["words"] == ["lost: identical in every trial, 0 (n = 5 at each level)."]


def test_what_few_trials_cannot_tell_is_not_told() -> None:
    words = of(loads(n=2))["metrics"]["cpu_percent"]["words"]
    assert words[0].startswith("CPU: no change is shown (")
    assert "no knee: too few trials: 2 blocks have a trial at 3 levels or more, it needs 5" in words[1]
    assert "no saturation: too few trials to show whether 75 % differs from 90 % (n = 2 and 2" in words[2]
    two_levels = of(loads({0: 1.0, 90: 3.0}))["metrics"]["latency.p99"]["words"]
    assert two_levels[0].startswith("latency p99: too few trials to show whether it changes (50")
    assert two_levels[1] == "latency p99: no knee: it needs 4 levels with values, there are 2."


def test_one_trial_a_level_makes_a_curve_that_claims_nothing() -> None:
    metric = of(loads(n=1))["metrics"]["latency.p99"]
    assert metric["knee"] is None and metric["saturation"] is None
    assert [point["n"] for point in metric["points"]] == [1] * 7
    assert "too few trials" in metric["saturation_reason"]


def test_it_is_the_same_every_time() -> None:
    results = loads()
    first, again, other = (as_json(curves.of(read_results(results), {LOAD: []}, seed=seed)) for seed in (3, 3, 4))
    assert first == again
    assert first != other  # so that there is something random in it


def test_metrics_that_were_not_measured_are_absent() -> None:
    curve = of(loads())
    assert "round_trip.p99" not in curve["metrics"]
    (only,) = as_json(curves.of(read_results(loads()), {LOAD: []}, chosen(["latency.mean"])))
    assert list(only["metrics"]) == ["latency.mean"]


@pytest.mark.parametrize(
    ("levels", "scale"),
    [
        ([0, 25, 50], "linear"),
        ([1, 2, 4, 8], "log"),
        ([1, 2, 3, 4], "linear"),
        ([100, 197, 390, 769, 1520, 3000], "log"),
        ([0, 1, 10, 100], "linear"),
        ([1, 100], "linear"),
    ],
)
def test_the_scale_is_the_one_on_which_levels_are_even(levels: list[float], scale: str) -> None:
    assert curves.scale_of(levels) == scale


def test_a_trend_is_found_where_two_levels_alone_could_not_show_it() -> None:
    samples = [Sample.of([10 + level + b / 10 for b in range(3)], blocks=[0, 1, 2]) for level in range(4)]
    found = trend(samples)
    # Three blocks of 4! orders: the chance that all rise is 24^-3, far below what resampling can tell.
    assert found is not None
    assert found.sign == 1
    assert found.p == found.attainable == 2 / 5000
    falling = trend([s.mapped(lambda v: -v) for s in samples])
    assert falling is not None
    assert (falling.sign, falling.p) == (-1, found.p)
    pairs = trend([Sample.of([float(level + b) for b in range(5)], blocks=range(5)) for level in (0, 1)])
    assert pairs is not None
    assert pairs.attainable == pytest.approx(2 / 2**5)


def test_a_trend_is_not_claimed_too_often_where_blocks_drift() -> None:
    generator = random.Random(5)
    claims = 0
    for n in range(200):
        drift = [generator.gauss(0, 5) for _ in range(5)]
        samples = [Sample.of([d + generator.gauss(0, 1) for d in drift], blocks=range(5)) for _ in range(5)]
        found = trend(samples, n)
        claims += found is not None and found.p <= 0.05
    assert claims / 200 <= 0.09


def test_a_difference_is_not_claimed_too_often_where_there_is_none() -> None:
    generator = random.Random(6)
    claims = 0
    for n in range(200):
        drift = [generator.gauss(0, 5) for _ in range(5)]
        samples = [Sample.of([d + generator.gauss(0, 1) for d in drift], blocks=range(5)) for _ in range(5)]
        found = trend(samples, n)
        claims += found is not None and found.p_differs <= 0.05
    assert claims / 200 <= 0.09


def test_a_jump_to_a_plateau_is_a_difference_and_no_trend() -> None:
    plateau = {0: 1.0, 25: 5.0, 50: 4.9, 75: 5.1, 90: 4.8}
    (words, *_) = of(loads(plateau))["metrics"]["latency.p99"]["words"]
    assert words.startswith("latency p99 differs between the levels (p = 0.000")
    assert ", not steadily: " in words
    samples = [Sample.of([level + 0.01 * b for b in range(5)], blocks=range(5)) for level in (1, 5, 4.9, 5.1, 4.8)]
    found = trend(samples)
    assert found is not None
    assert found.p_differs < 0.001
    assert found.p > 0.05


def test_ends_that_may_be_alike_are_told_from_such_that_differ() -> None:
    rules = Rules(0.05, None, logarithms=False)
    first = Sample.of([1.0, 1.1, 0.9, 1.05, 0.95, 3.0])
    alike = judge(first, Sample.of([1.05, 1.2, 1.0, 1.1, 0.8, 2.0]), rules)
    apart = judge(first, Sample.of([11.0, 11.2, 11.4, 11.1, 10.8, 12.0]), rules)
    assert curves._may_be_none(alike)
    assert not curves._may_be_none(apart)


def test_no_trend_where_nothing_varies() -> None:
    assert trend([Sample.of([3.0] * 4, blocks=range(4))] * 3) is None
    assert trend([Sample.of([])]) is None
