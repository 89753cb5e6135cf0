"""What is shown of a comparison never contradicts its verdict: by property, on data of every kind."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from perflab.quantity import FACTOR, ends
from perflab.report.latex.table import Value
from perflab.results.comparison import DIFFERENCES, Interval, Margin
from perflab.statistics.comparison import compare
from perflab.statistics.judgement import Judgement, Rules, judge
from perflab.statistics.metrics import METRICS
from perflab.statistics.sample import Floats, Sample
from perflab.statistics.summary_data import Moments, compare_moments
from perflab.statistics.summary_data import corrected as corrected_moments
from perflab.statistics.verdicts import effect_words, in_words

Rng = np.random.Generator
MARGIN = 0.05
FACTORS = METRICS["latency.p99"]
COUNTS = METRICS["lost"]

KINDS: dict[str, Callable[[Rng, int], Floats]] = {
    "times": lambda rng, n: np.exp(rng.normal(6, 0.03, n)),
    "times far apart": lambda rng, n: np.exp(rng.normal(6, 0.5, n)),
    "a lattice": lambda rng, n: 50 * np.maximum(1, np.round(rng.normal(10, 1, n))),
    "counts, most of them 0": lambda rng, n: (rng.random(n) < 0.3) * rng.poisson(4, n).astype(float),
    "two values": lambda rng, n: np.where(rng.random(n) < 0.5, 1.0, 2.0),
    "one value": lambda rng, n: np.full(n, 7.0),
}


Pair = tuple[Sample, Sample, float | None]


def pairs(kind: str, seed: int) -> Iterator[Pair]:
    """Two samples with effects of all sizes, with and without blocks, with and without a noise floor."""
    rng = np.random.default_rng(seed)
    make = KINDS[kind]
    for times, n, blocked in itertools.product((1.0, 1.02, 1.2, 3.0), (4, 9), (False, True)):
        a, b = make(rng, 2 * n), make(rng, n) * times + (times > 2 and "counts" in kind)
        keys = list(range(n))
        baseline = Sample.of(a.tolist(), blocks=[*keys, *keys] if blocked else None)
        treatment = Sample.of(b.tolist(), blocks=keys if blocked else None)
        yield baseline, treatment, 0.03 if seed % 2 else None


def judged(pair: Pair) -> Judgement:
    baseline, treatment, floor = pair
    positive = baseline.positive and treatment.positive
    margin = Margin(MARGIN, relative=True) if positive else Margin(0.4) if min(baseline.values) else None
    return judge(baseline, treatment, Rules(0.05, margin, floor, logarithms=positive))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", KINDS)
def test_the_interval_says_what_the_verdict_says(kind: str, seed: int) -> None:
    seen = set()
    for pair in pairs(kind, seed):
        for of_family in map(judged(pair).corrected, (1.0, 2.2, 20.0)):
            verdict, interval, rules = of_family.verdict, of_family.estimate.interval, of_family.rules
            within = not isinstance(rules.bounds, str) and interval is not None and interval.within(*rules.bounds)
            assert within is (verdict == "equivalent")
            if not within:
                excludes = interval is not None and not interval.contains(0.0)
                assert excludes is (verdict in DIFFERENCES)
                assert verdict != "not_shown" or interval is not None
                if excludes and interval is not None:
                    assert (interval.low >= 0) is (verdict == "higher")
            seen.add(verdict)
    assert "too_few_trials" in seen
    assert kind == "one value" or seen & {"higher", "lower"}


@pytest.mark.parametrize("kind", KINDS)
def test_as_written_no_end_looks_as_if_it_said_otherwise(kind: str) -> None:
    for number, (baseline, treatment, floor) in enumerate(pairs(kind, 0)):
        if number % 3:
            continue
        c = compare(baseline, treatment, noise_floor=floor)
        metric, nothing = (FACTORS, 1.0) if c.scale == "ratio" else (COUNTS, 0.0)
        interval = c.estimate.interval
        if interval is None:
            continue
        excluded = None if interval.contains(nothing) else nothing
        assert c.excluded == excluded
        quantity = FACTOR if c.scale == "ratio" else COUNTS.quantity.change
        value = Value(c.estimate.value, interval.low, interval.high, quantity, c.excluded)
        for text in (effect_words(metric, c), in_words(c, metric.format), value.texts()[1]):
            if "[" in text:
                first, last = plain(text).partition("[")[2].partition("]")[0].split(", ")
                looks_so = first.startswith(">") or last.startswith("<")
                looks_so = looks_so or float(first) > nothing or float(last) < nothing
                assert looks_so is (excluded is not None), text


def plain(text: str) -> str:
    """ "[−3, >1.05]" of what a terminal, a page or LaTeX shows."""
    return text.replace(r"\ensuremath{-}", "-").replace("−", "-").replace("$", "")


def test_an_end_that_is_rounded_to_no_difference_says_on_which_side_it_is() -> None:
    assert ends(1.001, 1.02, 1.0, FACTOR.write) == (">1.00", "1.02")
    assert ends(0.9, 0.9999, 1.0, FACTOR.write) == ("0.90", "<1.00")
    assert ends(0.9999, 1.2, None, FACTOR.write) == ("1.00", "1.20")


def test_an_open_end_is_not_in_the_interval() -> None:
    half = Interval(0.0, 5.0, 0.95, "", low_open=True)
    assert not half.contains(0.0)
    assert half.contains(5.0)
    assert half.within(0.0, 6.0)
    assert not half.within(0.0, 5.0)


def test_counts_that_are_mostly_0_may_have_an_interval_that_begins_above_it() -> None:
    zeros, some = Sample.of([0.0] * 10), Sample.of([0.0, 0.0, 3.0, 4.0, 5.0])
    c = compare(zeros, some)
    assert c.verdict == "higher"
    assert c.estimate.interval is not None
    assert (c.estimate.interval.low, c.estimate.interval.low_open) == (0.0, True)
    assert "[>0, " in effect_words(COUNTS, c)


@pytest.mark.parametrize("seed", range(6))
def test_intervals_of_moments_say_what_their_verdicts_say(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pairs = [(Moments("a", 100, 2, 12), Moments("b", 100 + float(rng.normal(0, 2)), 2, 12)) for _ in range(8)]
    for c in corrected_moments([compare_moments(a, b, margin=Margin(3.0)) for a, b in pairs]):
        interval = c.difference.interval
        assert interval is not None
        assert interval.within(-3, 3) is (c.verdict == "equivalent")
        if c.verdict != "equivalent":
            assert interval.contains(0) is (c.verdict == "not_shown")


@pytest.mark.long
def test_all_intervals_of_a_family_hold_together() -> None:
    """With effects, without, and within the margin: at most alpha of all experiments have any interval that misses, so
    at most alpha make any false claim, of a difference or of an equivalence."""
    rng = np.random.default_rng(5)
    truths, experiments, missed, wrong = (0.0, 0.0, math.log(1 + MARGIN), 0.3), 1000, 0, 0
    for _ in range(experiments):
        made = []
        for truth in truths:
            a, b = np.exp(rng.normal(0, 0.02, 10)), np.exp(truth + rng.normal(0, 0.02, 10))
            pair = Sample.of(a.tolist()), Sample.of(b.tolist())
            made.append(judged((*pair, None)))
        intervals = [j.estimate.interval for j in (one.corrected(len(truths)) for one in made)]
        missed += any(i is not None and not i.contains(t) for i, t in zip(intervals, truths, strict=True))
        verdicts = [one.corrected(len(truths)).verdict for one in made]
        wrong += any(v in DIFFERENCES for v in verdicts[:2]) or verdicts[2] == "equivalent"
        assert verdicts[3] == "higher"
    limit = 0.05 + 3 * math.sqrt(0.05 * 0.95 / experiments)
    assert missed / experiments <= limit
    assert wrong / experiments <= limit
