"""The search for a breaking point: what it says, and what it never says."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

from perflab.models import as_json
from perflab.results.curve import Found
from perflab.results.outcome import HARNESS_ERROR, INVALID
from perflab.statistics.breaking_point import Aim, Search, Space
from perflab.statistics.breaking_point_verdicts import sentences

Truth = Callable[[float], float]  # P(met) at a level


def run(space: Space, aim: Aim, truth: Truth, seed: int = 1) -> Found:
    generator = np.random.default_rng([seed, 5])
    search = Search(space, aim, seed)
    while (level := search.next()) is not None:
        search.add(level, bool(generator.random() < truth(level)))
    return search.result()


def step(threshold: float) -> Truth:
    return lambda level: 1.0 if level < threshold else 0.0


def test_the_breaking_point_of_a_step_is_found_within_its_interval() -> None:
    found = run(Space(0, 100), Aim(0.5), step(37.7))
    assert found.state == "found" and found.finished and found.stopped == "the interval is narrow enough"
    assert found.interval is not None and found.value is not None
    assert found.interval.low <= 37.7 <= found.interval.high
    assert found.interval.low <= found.value <= found.interval.high
    assert found.interval.high - found.interval.low <= 10
    assert found.trials == len(found.course) < 40


@pytest.mark.parametrize(
    ("criterion", "falls"),
    [
        (None, "the criterion is met in 50 % of the trials"),
        ("latency.p99 <= 5ms", "latency.p99 <= 5ms is met in 50 % of the trials"),
        ("success", "success falls to 50 %"),
    ],
)
def test_the_sentence_names_the_criterion(criterion: str | None, falls: str) -> None:
    found = run(Space(0, 100), Aim(0.5, precision=0.01), step(37.5))
    begins = falls if criterion == "latency.p99 <= 5ms" else falls.capitalize()
    assert sentences(found, criterion=criterion)[0].startswith(f"{begins} at 37.")
    unsettled = run(Space(0, 100), Aim(0.5, max_trials=8), lambda level: 1 / (1 + math.exp((level - 50) / 10)))
    assert sentences(unsettled, criterion=criterion)[0].startswith(f"Unsettled after 8 trials: {falls} somewhere in [")
    below = run(Space(0, 100), Aim(0.5), lambda level: 0.0)
    assert ("succeed" if criterion == "success" else f"meet {criterion or 'the criterion'}") in sentences(
        below, criterion=criterion
    )[0]


def test_of_integers_it_is_the_first_level_that_breaks_and_only_integers_are_tried() -> None:
    found = run(Space(0, 100, integer=True), Aim(0.5, precision=0.03), lambda level: float(level < 13))
    assert found.state == "found" and found.interval is not None
    assert found.interval.low <= 13 <= found.interval.high
    assert found.value == 13
    assert all(float(step.level).is_integer() for step in found.course)
    assert "13 is the first level at which less than 50 % of the trials meet the criterion" in sentences(found)[0]


def test_integers_are_never_asked_for_less_than_one_step() -> None:
    found = run(Space(1, 8, integer=True), Aim(0.5, precision=0.01), lambda level: float(level < 5))
    assert found.state == "found" and found.interval is not None
    assert found.interval.low <= 5 <= found.interval.high and found.interval.high - found.interval.low <= 1


def test_the_precision_is_a_part_of_the_range_on_the_scale() -> None:
    found = run(Space(100, 3000, "log"), Aim(0.5), step(450.0))
    assert found.state == "found" and found.interval is not None
    assert math.log(found.interval.high / found.interval.low) / math.log(30) <= 0.1 + 1e-9
    assert found.interval.low <= 450 <= found.interval.high


def test_a_factor_that_breaks_from_above_is_the_mirror_image() -> None:
    found = run(Space(1, 8, integer=True, falls=True), Aim(0.5), lambda level: float(level > 3))
    assert found.state == "found" and found.interval is not None
    assert found.value == 3 and found.interval.low <= 3 <= found.interval.high
    assert run(Space(1, 8, integer=True, falls=True), Aim(0.5), lambda level: 1.0).state == "not_reached"
    never = run(Space(1, 8, integer=True, falls=True), Aim(0.5), lambda level: 0.0)
    assert never.state == "below_low" and sentences(never)[0].startswith("Already at 8 less than ")


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_a_system_that_never_breaks_is_not_reached_and_the_sentence_says_what_was_seen(share: float) -> None:
    found = run(Space(100, 8000), Aim(share), lambda level: 1.0)
    assert found.state == "not_reached" and found.value is None and found.interval is None
    text = sentences(found, lambda x: f"{x:.0f} msg/s")[0]
    assert text.startswith(
        f"Not reached: up to 8000 msg/s at least {100 * share:g} % of the trials meet the criterion ("
    )
    at_the_end = next(x for x in found.levels if x.level == 8000)
    assert f"{at_the_end.met} of {at_the_end.n} at 8000 msg/s, share [" in text


def test_a_system_that_always_fails_is_below_the_range() -> None:
    found = run(Space(100, 8000), Aim(0.9), lambda level: 0.0)
    assert found.state == "below_low" and found.value is None
    assert sentences(found)[0].startswith("Already at 100 less than 90 % of the trials meet the criterion (95 %, ")


@pytest.mark.long
def test_with_many_trials_the_interval_lies_within_a_credible_one() -> None:
    """From 30 trials on, the ratio region, which a search may stop on at any time, is wider than is needed."""
    generator, search = np.random.default_rng(4), Search(Space(0, 1), Aim(0.5, precision=0.01), 1)
    for number in range(1, 41):
        level = search.next()
        assert level is not None
        search.add(level, bool(generator.random() < 1 / (1 + math.exp((level - 0.5) / 0.1))))
        posterior, interval = search._posterior, search.result().interval
        assert interval is not None
        region, central = posterior.region(10.0), (posterior.quantile(0.01), posterior.quantile(0.99))
        wanted = region if number < 30 else (max(region[0], central[0]), min(region[1], central[1]))
        assert (interval.low, interval.high) == pytest.approx(np.clip(wanted, 0, 1), rel=1e-5)  # of six digits
    assert central[0] > region[0] and central[1] < region[1]


def test_too_few_trials_leave_it_unsettled_with_an_interval() -> None:
    found = run(Space(0, 100), Aim(0.5, max_trials=8), lambda level: 1 / (1 + math.exp((level - 50) / 10)))
    assert found.state == "unsettled" and found.stopped == "all 8 trials used up" and found.trials == 8
    assert found.interval is not None and found.interval.high - found.interval.low > 10
    assert "wider than requested" in sentences(found)[0]


def test_a_gap_in_the_middle_is_not_monotone() -> None:
    found = run(Space(0, 100), Aim(0.5, max_trials=60), lambda level: 0.0 if 20 < level < 60 else 1.0)
    assert found.state == "not_monotone" and found.value is None and found.interval is None
    assert found.monotone_p is not None and found.monotone_p <= 0.005
    assert found.rises is not None and 20 < found.rises[0] <= found.rises[1] < 60 <= found.rises[2]
    assert sentences(found)[0].startswith("Not monotone: fewer of the trials meet the criterion at ")


def test_invalid_trials_never_count_as_breaking() -> None:
    """Every second trial says nothing, most of all above the middle: the threshold is where it is without them."""
    search, truth, number = Search(Space(0, 100), Aim(0.5), 3), step(70.0), 0
    while (level := search.next()) is not None:
        number += 1
        if number % 2:
            search.invalid(level, HARNESS_ERROR if number % 4 == 1 else INVALID)
        else:
            search.add(level, truth(level) == 1.0)
    found = search.result()
    assert found.state == "found" and found.interval is not None
    assert found.interval.low <= 70 <= found.interval.high
    assert found.left_out.outcomes.total == sum(s.met is None for s in found.course) > 5
    assert found.trials == sum(level.n for level in found.levels)
    assert "they count neither way" in sentences(found)[1]


def test_invalid_trials_tell_the_posterior_nothing() -> None:
    with_invalid, without = (Search(Space(0, 100), Aim(0.5), 3) for _ in range(2))
    for level, met in ((50.0, True), (80.0, False)):
        with_invalid.invalid(level)
        with_invalid.add(level, met)
        without.add(level, met)
    assert with_invalid.next() == without.next()
    assert with_invalid.result().interval == without.result().interval


def test_levels_that_cannot_be_produced_end_the_range_and_are_told() -> None:
    search = Search(Space(0, 100), Aim(0.5), 1)
    while (level := search.next()) is not None:
        if level > 60:
            search.invalid(level)
        else:
            search.add(level, True)
    found = search.result()
    assert found.state == "not_producible" and found.producible is not None
    assert 40 < found.producible <= 100
    assert sentences(found)[0].startswith("Not reached as far as levels can be produced: up to ")
    tried = [s.level for s in found.course if s.met is None]
    assert all(tried.count(level) <= 3 for level in tried)


def test_a_threshold_below_what_cannot_be_produced_is_found() -> None:
    search = Search(Space(0, 100), Aim(0.5), 1)
    while (level := search.next()) is not None:
        if level > 70:
            search.invalid(level)
        else:
            search.add(level, level < 30)
    found = search.result()
    assert found.state == "found" and found.interval is not None
    assert found.interval.low <= 30 <= found.interval.high


def test_where_nothing_can_be_produced_the_search_ends() -> None:
    search = Search(Space(0, 100), Aim(0.5), 1)
    number = 0
    while (level := search.next()) is not None:
        search.invalid(level)
        number += 1
        assert number <= 60
    found = search.result()
    assert (found.state, found.stopped) == ("not_producible", "no level can be produced")
    assert found.value is None and found.interval is None and found.trials == 0


def test_the_same_calls_give_the_same_levels() -> None:
    generator = np.random.default_rng(8)
    search, calls = Search(Space(10, 500, "log"), Aim(0.8, max_trials=30), 4), []
    while (level := search.next()) is not None:
        assert search.next() == level
        met = None if generator.random() < 0.1 else bool(generator.random() < (0.97 if level < 90 else 0.1))
        calls.append((level, met))
        search.invalid(level) if met is None else search.add(level, met)
    again = Search(Space(10, 500, "log"), Aim(0.8, max_trials=30), 4)
    for level, met in calls:
        assert again.next() == level
        again.invalid(level) if met is None else again.add(level, met)
    assert again.next() is None
    assert again.result() == search.result()


def test_looking_at_the_result_changes_nothing() -> None:
    looked, not_looked = (Search(Space(0, 10), Aim(0.5), 2) for _ in range(2))
    for _ in range(12):
        level = looked.next()
        assert level is not None and level == not_looked.next()
        looked.result()
        looked.add(level, level < 4)
        not_looked.add(level, level < 4)


def test_every_sixth_trial_fills_the_range_beginning_with_its_ends() -> None:
    found = run(Space(0, 100), Aim(0.5, precision=0.02, max_trials=40), lambda level: 1 / (1 + math.exp(level / 8 - 6)))
    filling = [s.level for s in found.course[5::6]]
    assert filling[:2] == [100.0, 0.0]
    assert max(filling) - min(filling) > 50


@pytest.mark.parametrize("space", [Space(0, 100), Space(100, 3000, "log"), Space(1, 40, integer=True, falls=True)])
def test_no_wide_stretch_of_the_range_is_without_a_trial(space: Space) -> None:
    found = run(space, Aim(0.5), lambda level: float(space.place(level) < 0.93))
    assert found.state == "found" and found.trials < 30
    places = sorted(space.place(level.level) for level in found.levels)
    one_step = 1 / space.steps if space.steps else 0.01
    assert max(b - a for a, b in pairwise([0.0, *places, 1.0])) <= 0.2 + one_step


@pytest.mark.parametrize("share", [0.5, 0.9])
@pytest.mark.long
def test_a_gap_that_is_as_wide_as_that_is_seen(share: float) -> None:
    said = sum(
        run(Space(0, 100), Aim(share), lambda level: float(level < 30 or 52 < level < 90), seed).state == "not_monotone"
        for seed in range(4)
    )
    assert said >= 3


def test_where_only_the_first_level_can_be_produced_the_search_ends() -> None:
    search, number = Search(Space(1, 8, integer=True), Aim(0.5), 1), 0
    while (level := search.next()) is not None and number < 100:
        search.add(level, True) if level == 1 else search.invalid(level)
        number += 1
    found = search.result()
    assert found.finished and found.state == "not_producible" and found.producible == 1


def test_levels_are_written_with_three_digits() -> None:
    found = run(Space(100, 3000, "log"), Aim(0.5), step(1234.5))
    assert all(s.level == float(f"{s.level:.3g}") for s in found.course)
    narrow = Space(10_000, 10_100)
    assert narrow.rounded(10_037.3, 0.01) == pytest.approx(10_037, abs=0.5)
    assert narrow.rounded(9_999, 0.01) == 10_000


def test_the_document_can_be_written_and_has_every_trial() -> None:
    found = run(Space(0, 100, integer=True), Aim(0.5), step(12.5))
    document = json.loads(json.dumps(as_json(found), allow_nan=False))
    assert document["state"] == "found" and document["value"] == 13 and document["integer"] is True
    assert document["interval"]["level"] == 0.95 and document["interval"]["beyond"] is None
    assert sum(level["n"] for level in document["levels"]) == document["trials"] == len(document["course"])
    assert [level["level"] for level in document["levels"]] == sorted(level["level"] for level in document["levels"])
    assert all(level["low"] <= level["met"] / level["n"] <= level["high"] for level in document["levels"])
    fit = document["fit"]
    assert fit["level"][0] == 0 and fit["level"][-1] == 100 and fit["share"] == sorted(fit["share"], reverse=True)
    assert all(low <= high for low, high in zip(fit["low"], fit["high"], strict=True))
    words = sentences(found, lambda x: f"{x:.0f} Hz", "success")
    assert words[0].startswith("13 Hz is the first level")


def test_before_the_first_trial_nothing_is_known() -> None:
    found = Search(Space(0, 1), Aim(), 1).result()
    assert (found.state, found.value, found.interval, found.fit) == ("unsettled", None, None, None)
    assert sentences(found) == ["Unsettled: there is no valid trial yet."]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Space(5, 5), "a range needs low < high"),
        (lambda: Space(0, 5, "log"), "a logarithmic scale needs low > 0"),
        (lambda: Space(0.5, 5, integer=True), "a factor of whole numbers needs whole ends"),
        (lambda: Space(0, math.nan), "a range needs low < high"),
        (lambda: Aim(share=1.0), "share must be 0.05 to 0.99"),
        (lambda: Aim(precision=0.001), "precision must be 0.01 to 0.5"),
        (lambda: Aim(confidence=95), "confidence must be 0.5 to 0.999"),
        (lambda: Aim(max_trials=3), "max_trials must be at least 8"),
        (lambda: Search(Space(0, 5), Aim(), 1).add(6, True), "level 6 is outside of 0 to 5"),
        (lambda: Search(Space(0, 5, integer=True), Aim(), 1).invalid(2.5), "level 2.5 is not a whole number"),
    ],
)
def test_what_makes_no_sense_is_told_in_one_line(make: Callable[[], object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make()


def test_a_step_between_the_two_lowest_levels_is_found_there_and_not_beside_it() -> None:
    found = run(Space(0, 100), Aim(0.9), step(1.2))
    assert found.state == "found" and found.interval is not None
    assert found.interval.low <= 1.2 <= found.interval.high


def test_where_nothing_can_be_produced_the_lowest_level_is_asked_next_and_that_is_the_end() -> None:
    search = Search(Space(90_000, 100_000), Aim(share=0.9), seed=1)
    asked = []
    while (level := search.next()) is not None:
        asked.append(level)
        search.invalid(level)
    assert asked[3:] == [90_000.0] * 3
    assert search.result().state == "not_producible"
