"""The statistics against published examples, against scipy, and against counting out by hand."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from perflab.results.comparison import Margin
from perflab.statistics import difference, estimate, power
from perflab.statistics.comparison import Analysed, compare, corrected, holm
from perflab.statistics.difference import attainable_p, hodges_lehmann, permutation_test, rank_test, shift, welch
from perflab.statistics.estimate import find_outliers
from perflab.statistics.noise import noise_floor
from perflab.statistics.sample import Design, Floats, Sample, design
from perflab.statistics.spread import brown_forsythe, compare_spread
from perflab.statistics.summary_data import Moments, compare_moments, welch_anova
from perflab.statistics.verdicts import in_words, summary_in_words

# Hollander, Wolfe, Chicken, Nonparametric Statistical Methods, 3rd ed., table 4.1: permeability of human chorioamnion;
# the two-sided p of the exact test of at term against 12 to 26 weeks is 0.2544, the estimate of the shift -0.305.
AT_TERM = (0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46)
EARLIER = (1.15, 0.88, 0.90, 0.74, 1.21)

# Student's sleep data (1908): extra hours of sleep of ten patients with two drugs. Welch: t = 1.8608, df = 17.776,
# p = 0.07939; interval of the difference -0.2055 to 3.3655. Paired: t = 4.0621, p = 0.002833.
DRUG_1 = (0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0)
DRUG_2 = (1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4)


def sample(values: tuple[float, ...] | Floats, blocks: list[int] | None = None, name: str = "") -> Sample:
    return Sample.of(list(map(float, values)), blocks=blocks, name=name)


def plain(a: tuple[float, ...] | Floats, b: tuple[float, ...] | Floats) -> Design:
    return design(sample(a), sample(b))


def counted_p(blocks: list[tuple[Floats, Floats]]) -> float:
    """The two-sided p of the aligned rank test, by going through every arrangement."""
    from scipy import stats

    values = [np.concatenate(pair) for pair in blocks]
    aligned = np.round(np.concatenate([v - v.mean() if len(blocks) > 1 else v for v in values]), 9)
    ranks = np.split(stats.rankdata(aligned), np.cumsum([len(v) for v in values])[:-1])
    observed = sum(r[len(a) :].sum() for r, (a, _) in zip(ranks, blocks, strict=True))
    choices = [itertools.combinations(r, len(b)) for r, (_, b) in zip(ranks, blocks, strict=True)]
    sums = np.asarray([sum(map(sum, each)) for each in itertools.product(*choices)])
    low, high = np.mean(sums <= observed + 1e-9), np.mean(sums >= observed - 1e-9)
    return float(min(1.0, 2 * min(low, high)))


def test_mann_whitney_and_hodges_lehmann_of_the_chorioamnion() -> None:
    of = plain(AT_TERM, EARLIER)
    test = rank_test(of)
    assert test.exact
    assert test.p == pytest.approx(0.2544, abs=5e-5)
    assert shift(of).value == pytest.approx(-0.305)


def test_welch_of_students_sleep_data() -> None:
    test, difference = welch(plain(DRUG_1, DRUG_2))
    assert test.statistic == pytest.approx(1.8608, abs=5e-5)
    assert test.p == pytest.approx(0.07939, abs=5e-6)
    assert difference.interval is not None
    assert (difference.interval.low, difference.interval.high) == pytest.approx((-0.2055, 3.3655), abs=5e-5)


def test_blocks_of_pairs_make_it_the_paired_t_test() -> None:
    patients = list(range(10))
    test, difference = welch(design(sample(DRUG_1, patients), sample(DRUG_2, patients)))
    assert test.statistic == pytest.approx(4.0621, abs=5e-5)
    assert test.p == pytest.approx(0.002833, abs=5e-7)
    assert difference.value == pytest.approx(1.58)


@pytest.mark.parametrize("seed", range(5))
def test_the_rank_test_with_ties_is_counted_out(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 5, 6).astype(float), rng.integers(0, 7, 5).astype(float)
    test = rank_test(plain(a, b))
    assert test.exact
    assert test.p == pytest.approx(counted_p([(a, b)]))


@pytest.mark.parametrize("seed", range(5))
def test_the_aligned_rank_test_is_counted_out(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = [(2, 1), (1, 1), (2, 2), (1, 2)]
    blocks = [(rng.integers(0, 9, n).astype(float), rng.integers(0, 9, m).astype(float)) for n, m in sizes]
    a = sample(np.concatenate([x for x, _ in blocks]), [i for i, (x, _) in enumerate(blocks) for _ in x])
    b = sample(np.concatenate([y for _, y in blocks]), [i for i, (_, y) in enumerate(blocks) for _ in y])
    of = design(a, b)
    assert rank_test(of).p == pytest.approx(counted_p(blocks))
    assert attainable_p(of) == pytest.approx(2 / (3 * 2 * 6 * 3))


def test_without_ties_the_own_count_is_scipys() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=12), rng.normal(0.7, 1, size=9)
    assert rank_test(plain(a, b)).p == pytest.approx(counted_p([(a, b)]))


def test_the_interval_of_the_shift_is_what_the_test_does_not_reject() -> None:
    from scipy import stats

    rng = np.random.default_rng(11)
    a, b = rng.normal(10, 2, 9), rng.normal(12, 2, 8)
    estimate_ = shift(plain(a, b), 0.95)
    assert estimate_.interval is not None
    assert estimate_.value == hodges_lehmann(a, b)
    for edge, inside in ((estimate_.interval.low, 1), (estimate_.interval.high, -1)):
        for step, rejected in ((1e-6 * inside, False), (-1e-6 * inside, True)):
            p = stats.mannwhitneyu(b - edge - step, a, method="exact").pvalue
            assert bool(p <= 0.05) is rejected


def test_the_interval_within_blocks_is_what_the_aligned_test_does_not_reject() -> None:
    rng = np.random.default_rng(5)
    levels = rng.normal(0, 20, 9)
    a, b = levels + rng.normal(0, 1, 9), levels + rng.normal(2, 1, 9)
    blocks = list(range(9))
    estimate_ = shift(design(sample(a, blocks), sample(b, blocks)))
    assert estimate_.interval is not None
    for edge, inside in ((estimate_.interval.low, 1), (estimate_.interval.high, -1)):
        for step, rejected in ((1e-6 * inside, False), (-1e-6 * inside, True)):
            p = rank_test(design(sample(a, blocks), sample(b - edge - step, blocks))).p
            assert p is not None
            assert (p <= 0.05) is rejected


def test_blocks_see_what_drift_hides() -> None:
    rng = np.random.default_rng(8)
    drift = np.arange(10) * 10.0
    a, b = 100 + drift + rng.normal(0, 1, 10), 104 + drift + rng.normal(0, 1, 10)
    blocks = list(range(10))
    assert compare(sample(a), sample(b), ratio=False).verdict == "not_shown"
    blocked = compare(sample(a, blocks), sample(b, blocks), ratio=False)
    assert blocked.verdict == "higher"
    assert blocked.blocks == 10
    assert blocked.shift.value == pytest.approx(4, abs=1.5)


def test_a_trial_whose_block_has_nothing_to_compare_is_not_used_and_named() -> None:
    a = Sample((1.0, 2.0, 3.0, 9.0), ("a1", "a2", "a3", "alone"), (1, 2, 3, 4))
    b = Sample((1.5, 2.5, 3.5), ("b1", "b2", "b3"), (1, 2, 3))
    assert compare(a, b).unused == ("alone",)


def test_permutation_is_complete_where_it_can_be_and_scipys_where_not() -> None:
    from scipy import stats

    small = permutation_test(plain(EARLIER, AT_TERM[:5]))
    reference = stats.permutation_test(
        (np.asarray(AT_TERM[:5]), np.asarray(EARLIER)), lambda x, y, axis: np.mean(x, axis) - np.mean(y, axis),
        vectorized=True,
    )  # fmt: skip
    assert small.exact
    assert small.p == pytest.approx(float(reference.pvalue))
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=20), rng.normal(0.5, 1, 20)
    large = permutation_test(plain(a, b), seed=1)
    assert not large.exact
    assert large.p == pytest.approx(stats.ttest_ind(a, b).pvalue, abs=0.02)


def test_random_permutations_never_give_a_p_of_zero_and_are_repeatable() -> None:
    a, b = np.arange(20.0), np.arange(20.0) + 1000
    first, again = permutation_test(plain(a, b), seed=4), permutation_test(plain(a, b), seed=4)
    assert first.p == again.p == pytest.approx(2 / 10_000)


@pytest.mark.parametrize(("n_a", "n_b", "p"), [(3, 3, 0.1), (4, 4, 2 / 70), (5, 5, 2 / 252), (1, 9, 0.2)])
def test_the_smallest_p_that_these_numbers_can_give(n_a: int, n_b: int, p: float) -> None:
    of = plain(tuple(range(n_a)), tuple(range(100, 100 + n_b)))
    assert attainable_p(of) == pytest.approx(p)
    assert rank_test(of).p == pytest.approx(p)


def test_order_statistics_have_the_published_ranks() -> None:
    # Tables of the sign test: for the median of n = 20 the 6th and the 15th, with 95.9 %.
    interval, _ = estimate.order_statistics(np.arange(1.0, 21), 0.5, 0.95)
    assert interval is not None
    assert (interval.low, interval.high) == (6, 15)
    # The median of n = 10 at 95 %: 2nd to 9th, with 97.9 %.
    interval, _ = estimate.order_statistics(np.arange(1.0, 11), 0.5, 0.95)
    assert interval is not None
    assert (interval.low, interval.high) == (2, 9)
    assert "97.9%" in interval.method


def test_no_interval_is_made_up_where_there_are_too_few_trials() -> None:
    of = estimate.median(sample((1.0, 2.0, 3.0, 4.0, 5.0)))
    assert of.value == 3
    assert of.interval is None
    assert of.reason == "5 values are too few for an interval of 95 %: it needs 6"
    assert estimate.mean(sample((1.0, 2.0))).interval is None
    assert estimate.standard_deviation(sample((1.0,))).value is None
    assert estimate.median(sample(())).value is None


def test_the_bootstrap_says_which_it_is_and_is_repeatable() -> None:
    values = sample(tuple(np.random.default_rng(0).exponential(size=30)))
    one, two = estimate.mean(values, seed=7), estimate.mean(values, seed=7)
    assert one == two
    assert one.interval is not None
    assert one.interval.method == "bootstrap, BCa"
    assert one.interval != estimate.mean(values, seed=8).interval


def test_hedges_g_and_cliffs_delta_have_the_sign_of_the_treatment() -> None:
    a, b = np.asarray(DRUG_1), np.asarray(DRUG_2)
    g = difference.hedges_g(a.mean(), a.std(ddof=1), 10, b.mean(), b.std(ddof=1), 10)
    # d = 0.8321 of the sleep data, times J(18) = 0.9576.
    assert g.value == pytest.approx(0.8321 * 0.9576, abs=2e-4)
    assert g.interval is not None
    assert g.value is not None
    assert g.interval.low < 0 < g.value < g.interval.high
    delta = difference.cliffs_delta(a, b)
    assert delta.value == pytest.approx(np.sign(np.subtract.outer(b, a)).mean())
    assert delta.value is not None
    assert delta.value > 0


def test_brown_forsythe_is_scipys_levene_about_the_median() -> None:
    from scipy import stats

    assert brown_forsythe(np.asarray(DRUG_1), np.asarray(DRUG_2)).p == pytest.approx(
        stats.levene(DRUG_1, DRUG_2, center="median").pvalue
    )


def test_holm_of_the_textbook() -> None:

    from statsmodels.stats.multitest import multipletests

    assert holm([0.01, 0.04, None, 0.03]) == pytest.approx([0.03, 0.06, None, 0.06])
    assert holm([None]) == [None]
    many = np.random.default_rng(0).uniform(0, 0.1, 30)
    assert holm(list(many)) == pytest.approx(list(multipletests(many, method="holm")[1]))


def compared(pairs: dict[Any, tuple[Sample, Sample]]) -> dict[Any, Analysed]:
    made = [compare(baseline, treatment) for baseline, treatment in pairs.values()]
    return dict(zip(pairs, corrected(made), strict=True))


def test_a_family_asks_more_of_each_p() -> None:
    rng = np.random.default_rng(2)
    base = rng.normal(100, 3, 8)
    pairs = {f"m{i}": (sample(base), sample(base + rng.normal(0, 2, 8) + (6 if i == 0 else 0))) for i in range(6)}
    family = compared(pairs)
    alone = compare(*pairs["m0"])
    assert family["m0"].p == alone.p
    assert family["m0"].p_adjusted == pytest.approx(min(1, 6 * (alone.p or 0)))
    assert family["m0"].family_size == 6
    again = corrected(list(family.values()))
    assert [c.p_adjusted for c in again] == [c.p_adjusted for c in family.values()]


def test_a_family_can_be_too_large_for_the_trials() -> None:
    a, b = sample((1.0, 1.1, 1.2, 1.3)), sample((2.0, 2.1, 2.2, 2.3))
    assert compare(a, b).verdict == "higher"
    family = compared({i: (a, sample((1.05, 1.15, 1.25, 1.29 + i / 100))) for i in range(3)} | {9: (a, b)})
    assert {c.verdict for c in family.values()} == {"too_few_trials"}
    assert family[9].attainable_p == pytest.approx(2 / 70)
    assert family[9].attainable_adjusted == pytest.approx(8 / 70)


def test_equivalence_is_the_interval_within_the_margin() -> None:
    rng = np.random.default_rng(6)
    a, b = rng.normal(100, 1, 15), rng.normal(100.3, 1, 15)
    for margin in (0.005, 0.01, 0.02, 0.05):
        c = compare(sample(a), sample(b), margin=Margin(margin, relative=True))
        assert c.equivalence is not None
        assert c.estimate.interval is not None
        inside = c.estimate.interval.low > 1 / (1 + margin) and c.estimate.interval.high < 1 + margin
        assert c.equivalence.shown is inside
        assert (c.verdict == "equivalent") is inside
    wide = compare(sample(a), sample(b), margin=Margin(5.0))
    assert (wide.scale, wide.verdict) == ("difference", "equivalent")


def test_a_relative_margin_of_values_that_are_not_all_above_0_is_refused() -> None:
    a, b = (-0.5, 1.2, 0.9, 1.4, 1.0, 0.8, 1.1, 1.3), (-0.4, 1.25, 0.95, 1.45, 1.05, 0.85, 1.15, 1.35)
    for treatment in (a, b):
        c = compare(sample(a), sample(treatment), margin=Margin(9.0, relative=True))
        assert c.equivalence is not None
        assert (c.verdict, c.equivalence.shown, c.equivalence.p) == ("not_shown", False, None)
        assert c.equivalence.reason == "a relative margin needs values above 0"
        assert c.power.effect is None
        assert in_words(c).endswith(
            "; a margin of 900 % is not tested: a relative margin needs values above 0, an absolute one does not."
        )
    assert compare(sample(a), sample(a), margin=Margin(1.0)).verdict == "equivalent"
    positive = tuple(x + 2 for x in a)
    of_factors = compare(sample(positive), sample(positive), margin=Margin(9.0, relative=True))
    assert of_factors.verdict == "equivalent"
    # Of differences although all values are positive: the margin is no factor of them either.
    assert compare(sample(positive), sample(positive), margin=Margin(9.0, relative=True), ratio=False).verdict != (
        "equivalent"
    )
    nothing = sample((0.0,) * 8)
    assert "so nothing can be tested." in in_words(compare(nothing, nothing, margin=Margin(0.1, relative=True)))


def test_a_relative_margin_of_a_mean_that_is_not_above_0_is_refused() -> None:
    c = compare_moments(Moments("a", -10, 1, 20), Moments("b", -10, 1, 20), margin=Margin(0.5, relative=True))
    assert (c.verdict, c.equivalence_p, c.power.effect) == ("not_shown", None, None)
    assert "a margin of 50 % is not tested" in summary_in_words(c)


def test_the_noise_floor_keeps_a_difference_from_being_claimed() -> None:
    rng = np.random.default_rng(9)
    a, b = sample(rng.normal(100, 1, 12)), sample(rng.normal(103, 1, 12))
    assert compare(a, b).verdict == "higher"
    assert compare(a, b, noise_floor=1.1).verdict == "below_noise_floor"
    assert compare(a, b, noise_floor=10.0, ratio=False).verdict == "below_noise_floor"
    floor = noise_floor(a, 12, 12)
    assert floor is not None
    assert floor.ratio is not None
    assert 0.3 < floor.difference < 2
    assert compare(a, b, noise_floor=floor).verdict == "higher"
    assert noise_floor(sample((1.0, 2.0, 3.0)), 3, 3) is None
    with pytest.raises(ValueError, match="at least 1"):
        compare(a, b, noise_floor=0.5)


def test_the_noise_floor_of_blocks_leaves_out_what_differs_between_them() -> None:
    rng = np.random.default_rng(10)
    values = np.repeat(np.arange(8) * 100.0, 2) + rng.normal(0, 1, 16)
    pairs = [i // 2 for i in range(16)]
    blocked, free = noise_floor(sample(values, pairs), 8, 8), noise_floor(sample(values), 8, 8)
    assert blocked is not None
    assert free is not None
    assert blocked.exact
    assert blocked.splits == 256
    assert blocked.difference < free.difference / 3
    once = noise_floor(sample(values, list(range(16))), 8, 8)
    assert once is None  # the baseline was never repeated within a block


def test_power_is_statsmodels_and_that_of_cohens_tables() -> None:

    from statsmodels.stats.power import TTestIndPower

    # Cohen 1988, table 2.4.1: d = 0.5, two-sided 0.05, power 0.80: 64 of either.
    assert power.trials_needed(0.5, 1.0, 0.05, efficiency=1.0) == 64
    assert power.t_power(0.5, 1.0, 64, 64, 0.05, efficiency=1.0) == pytest.approx(0.801, abs=1e-3)
    for effect, n_a, n_b, alpha in ((0.5, 64, 64, 0.05), (-2.0, 4, 7, 0.01), (0.1, 2, 300, 0.05), (9.0, 5, 5, 0.001)):
        known = TTestIndPower().power(abs(effect), nobs1=n_a, alpha=alpha, ratio=n_b / n_a)
        assert power.t_power(effect, 1.0, n_a, n_b, alpha, efficiency=1.0) == pytest.approx(known, abs=1e-12)
    assert power.trials_needed(0.5, 1.0, 0.05) == math.ceil(63.77 * math.pi / 3)
    found = power.detectable_shift(2.0, 10, 10, 0.05)
    assert found is not None
    assert power.t_power(found, 2.0, 10, 10, 0.05) == pytest.approx(0.8, abs=1e-4)
    assert power.detectable_shift(2.0, 3, 3, 0.05) is None


def test_outliers_are_named_and_stay() -> None:
    values = sample((10.0, 11.0, 10.5, 10.2, 10.8, 10.4, 30.0))
    (found,) = find_outliers(values)
    assert (found.label, found.by_mad, found.fence) == ("7", True, "outer")
    assert compare(values, values).baseline.n == 7
    assert find_outliers(sample((1.0, 2.0, 900.0))) == ()


def test_welch_and_anova_from_moments_are_those_of_the_rows() -> None:
    from scipy import stats

    rng = np.random.default_rng(12)
    rows = [rng.normal(10, s, n) for s, n in ((1, 7), (3, 5), (2, 9))]
    moments = [Moments(str(i), float(x.mean()), float(x.std(ddof=1)), len(x)) for i, x in enumerate(rows)]
    test, difference = welch(plain(rows[0], rows[1]))
    c = compare_moments(moments[0], moments[1])
    assert c.p == pytest.approx(test.p)
    assert c.difference.interval is not None
    assert difference.interval is not None
    assert (c.difference.interval.low, c.difference.interval.high) == pytest.approx(
        (difference.interval.low, difference.interval.high)
    )
    means = np.asarray([m.mean for m in moments])
    weights = np.asarray([m.n / m.sd**2 for m in moments])
    grand = (weights * means).sum() / weights.sum()
    lack = (((1 - weights / weights.sum()) ** 2) / (np.asarray([m.n for m in moments]) - 1)).sum()
    f = (weights * (means - grand) ** 2).sum() / 2 / (1 + 2 / 8 * lack)
    assert welch_anova(moments).p == pytest.approx(stats.f.sf(f, 2, 8 / (3 * lack)))


def test_equivalence_from_moments_agrees_with_its_interval() -> None:
    a, b = Moments("a", 100, 2, 20), Moments("b", 100.5, 2, 20)
    for d in (0.5, 1.0, 1.5, 2.0, 3.0):
        c = compare_moments(a, b, margin=Margin(d))
        assert c.difference.interval is not None
        inside = -d < c.difference.interval.low and c.difference.interval.high < d
        assert (c.verdict == "equivalent") is inside
    assert compare_moments(a, b, margin=Margin(0.05, relative=True)).verdict == "equivalent"
    assert compare_moments(a, b, margin=Margin(0.005, relative=True)).verdict == "not_shown"


# -- beside scipy and statsmodels, on designs of few values, ties and incomplete blocks -------------------------------


def drawn(rng: np.random.Generator) -> tuple[Floats, Floats, list[int] | None, list[int] | None]:
    n_a, n_b = map(int, rng.integers(3, 12, 2))
    digits = int(rng.integers(0, 3))
    a, b = np.round(rng.lognormal(2, 0.3, n_a), digits), np.round(rng.lognormal(2.1, 0.3, n_b), digits)
    if rng.random() < 0.4:
        return a, b, None, None
    blocks = int(rng.integers(1, 5))
    return a, b, rng.integers(0, blocks, n_a).tolist(), rng.integers(0, blocks + 1, n_b).tolist()


def test_designs_that_are_ranked_together_are_as_each_by_itself() -> None:
    rng = np.random.default_rng(1)
    found = [drawn(rng) for _ in range(60)]
    designs = [design(sample(a, of_a), sample(b, of_b)) for a, b, of_a, of_b in found]
    designs.insert(7, design(sample((1.0,), [1]), sample((2.0,), [2])))  # which share no block
    assert {d.blocked for d in designs} == {False, True}
    by = rng.normal(0, 1, len(designs)).tolist()
    assert difference.rank_tails(designs, by) == [
        difference.rank_tails([d], [x])[0] for d, x in zip(designs, by, strict=True)
    ]
    assert difference.shift_values(designs) == [difference.shift_values([d])[0] for d in designs]
    levels = [0.95 if n % 2 else 0.8 for n in range(len(designs))]
    assert difference.shifts(designs, levels) == [shift(d, level) for d, level in zip(designs, levels, strict=True)]


def test_what_is_had_without_scipys_own_tests_is_what_they_give() -> None:
    from scipy import stats
    from statsmodels.stats.nonparametric import rank_compare_2indep

    rng = np.random.default_rng(2)
    for _ in range(20):
        a, b, _, _ = drawn(rng)
        t_test, mean = welch(plain(a, b), 0.9)
        reference = stats.ttest_ind(b, a, equal_var=False)
        assert (t_test.p, t_test.statistic) == pytest.approx((reference.pvalue, reference.statistic))
        assert mean.interval is not None
        assert (mean.interval.low, mean.interval.high) == pytest.approx(tuple(reference.confidence_interval(0.9)))
        levene = brown_forsythe(a, b)
        assert levene.p == pytest.approx(stats.levene(a, b, center="median").pvalue)
        delta, ranks = difference.cliffs_delta(a, b, 0.9), rank_compare_2indep(b, a)
        if delta.interval is not None:
            ends = [2 * end - 1 for end in ranks.conf_int(alpha=0.1)]
            assert (delta.interval.low, delta.interval.high) == pytest.approx((max(-1, ends[0]), min(1, ends[1])))


def test_the_bootstrap_and_the_permutations_of_a_spread_are_scipys() -> None:
    from scipy import stats

    rng = np.random.default_rng(3)
    for n_a, n_b, resamples in ((9, 12, 9999), (5, 4, 9999)):
        a, b = rng.normal(0, 1, n_a), rng.normal(0, 2, n_b)
        spread = compare_spread(a, b, 0.9, seed=4)

        def log_ratio(a: Floats, b: Floats, axis: int = -1) -> Any:
            mads = (stats.median_abs_deviation(x, axis=axis) for x in (b, a))
            return np.abs(np.subtract(*map(np.log, mads)))

        reference = stats.permutation_test(
            (a - np.median(a), b - np.median(b)), log_ratio, vectorized=True, n_resamples=resamples,
            alternative="greater", rng=np.random.default_rng(4),
        )  # fmt: skip
        assert spread.permutation_mad.p == reference.pvalue
        if n_a >= estimate.MIN_BOOTSTRAP:
            mean = estimate.mean(sample(a), 0.9, seed=4).interval
            ends = stats.bootstrap(
                (a,), np.mean, confidence_level=0.9, method="BCa", rng=np.random.default_rng(4)
            ).confidence_interval
            assert mean is not None and (mean.low, mean.high) == pytest.approx(tuple(ends))
