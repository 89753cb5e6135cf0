"""Compares two runs: result by result, one value per trial, and as a gate that a new run must pass.

Trials of different runs are not paired: block 3 of today has nothing in common with block 3 of yesterday, and pairing
would only cost power. On the virtual runtime they are paired, if both runs have the same seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

import scipy

from perflab.results.comparison import ALPHA, MARGIN, Direction
from perflab.results.outcome import Outcome
from perflab.results.trial import Result
from perflab.statistics.comparison import Analysed, Compared, compare_all, compare_metric, holm
from perflab.statistics.difference import attainable_p, rank_p
from perflab.statistics.metrics import LOWER, RATIO, Metric
from perflab.statistics.sample import Sample, design
from perflab.statistics.selection import Match, sample_of
from perflab.statistics.verdicts import effect_words

SUCCESS = "success"

GateVerdict = Literal["passed", "failed", "undecided"]
PASSED: GateVerdict = "passed"
FAILED: GateVerdict = "failed"
UNDECIDED: GateVerdict = "undecided"


def compare_runs(
    matches: Sequence[Match],
    metrics: Sequence[Metric],
    names: tuple[str, str],
    *,
    alpha: float = ALPHA,
    margin: float = MARGIN,
    paired: bool = False,
    seed: int = 0,
) -> list[Compared[Match]]:
    """Every pair of results in every metric that both have, as one family; the first run is the baseline."""
    asked = ((m, metric, *_samples(m, metric, names, paired), None) for m in matches for metric in metrics)
    return compare_all(asked, alpha, margin, seed)


@dataclass(frozen=True)
class GateCheck:
    """One figure of one result. `p` is for the hypothesis of being worse by more than the margin, after Holm over all
    checks."""

    match: Match
    metric: str
    words: str
    verdict: GateVerdict
    reason: str
    p: float | None
    comparison: Analysed | None  # None for the rate of success, and if a side has no value
    baseline: str  # medians, or successes of trials, for people
    measured: str


@dataclass(frozen=True)
class _Tested:
    match: Match
    metric: Metric | None  # None: the rate of success
    first: Sample
    second: Sample
    p_worse: float | None
    p_within: float | None  # hypothesis of being worse by the margin or more, tested for rejection
    attainable: float | None


def gate(
    matches: Sequence[Match],
    metrics: Sequence[Metric],
    names: tuple[str, str],
    *,
    alpha: float = ALPHA,
    margin: float = MARGIN,
    paired: bool = False,
) -> list[GateCheck]:
    """Whether the second run is worse than the first.

    A figure fails if it is shown to be worse by more than the margin, and passes if it is shown not to be; if the
    trials show neither, it is undecided. Both are one-sided rank tests against the baseline moved by the margin.
    """
    tested: list[_Tested] = []
    for match in matches:
        tested.append(_success(match))
        for metric in metrics:
            first, second = _samples(match, metric, names, paired)
            if first.n:
                tested.append(_tested(match, metric, first, second, margin))
    adjusted = holm([t.p_worse for t in tested])
    size = sum(t.p_worse is not None for t in tested)
    return [_check(t, p, size, alpha, margin) for t, p in zip(tested, adjusted, strict=True)]


def _samples(match: Match, metric: Metric, names: tuple[str, str], paired: bool) -> tuple[Sample, Sample]:
    first = sample_of(match.first.entering, metric, names[0], blocked=paired)
    return first, sample_of(match.second.entering, metric, names[1], blocked=paired)


def _tested(match: Match, metric: Metric, first: Sample, second: Sample, margin: float) -> _Tested:
    if not second.n or _without_factor(metric, first, second):
        return _Tested(match, metric, first, second, None, None, None)
    worse: Direction = "higher" if metric.better == LOWER else "lower"
    better: Direction = "lower" if metric.better == LOWER else "higher"
    factor = _factor(metric, margin)
    moved = design(first.mapped(lambda value: value * factor), second)
    return _Tested(
        match, metric, first, second, rank_p(moved, worse), rank_p(moved, better), attainable_p(moved, worse)
    )


def _factor(metric: Metric, margin: float) -> float:
    """The factor for the baseline. For counts and shares, any increase matters."""
    if metric.compared != RATIO:
        return 1.0
    return 1 + margin if metric.better == LOWER else 1 / (1 + margin)


def _without_factor(metric: Metric, first: Sample, second: Sample) -> bool:
    """Whether values below 0 make a margin by a factor meaningless: 1.05 times -10 is less, not more."""
    return metric.compared == RATIO and min((*first.values, *second.values)) < 0


def _success(match: Match) -> _Tested:
    """Fisher's exact test of fewer successes."""
    first, second = _rate(match.first), _rate(match.second)
    empty = Sample((), ())
    if not first[1] or not second[1]:
        return _Tested(match, None, empty, empty, None, None, None)
    table = [[second[0], second[1] - second[0]], [first[0], first[1] - first[0]]]
    worst = [[0, second[1]], [first[0], first[1] - first[0]]]
    p, least = (float(scipy.stats.fisher_exact(t, alternative="less").pvalue) for t in (table, worst))
    return _Tested(match, None, empty, empty, p, None, least)


def _rate(result: Result) -> tuple[int, int]:
    outcomes = result.outcomes
    return outcomes.success, outcomes.judged


def _check(tested: _Tested, p: float | None, size: int, alpha: float, margin: float) -> GateCheck:
    if tested.metric is None:
        return _success_check(tested, p, size, alpha)
    metric, first, second = tested.metric, tested.first, tested.second
    if not second.n:
        reason = "measured in the baseline, but in no trial of this run"
        medians = metric.format(median(first.values)), "–"
        return GateCheck(tested.match, metric.name, metric.words, UNDECIDED, reason, None, None, *medians)
    comparison = compare_metric(metric, first, second, alpha, margin)
    medians = metric.format(median(first.values)), metric.format(median(second.values))
    if _without_factor(metric, first, second):
        reason = f"values below 0, for which a margin of {100 * margin:.3g} % is meaningless"
        return GateCheck(tested.match, metric.name, metric.words, UNDECIDED, reason, None, comparison, *medians)
    by = effect_words(metric, comparison)
    least = f" by more than {100 * margin:.3g} %" if metric.compared == RATIO else ""
    value = comparison.estimate.value or 0.0
    nothing = 1.0 if comparison.scale == "ratio" else 0.0
    is_worse = (value > nothing) == (metric.better == LOWER) and value != nothing
    verdict: GateVerdict
    if p is not None and p <= alpha:
        verdict, reason = FAILED, f"worse{least}: {by}"
    elif least and tested.p_within is not None and tested.p_within <= alpha:
        verdict, reason = PASSED, f"not worse{least}: {by}"
    elif tested.attainable is None or tested.attainable * size > alpha:
        sizes = f"{first.n} and {second.n}"
        verdict, reason = UNDECIDED, f"too few trials ({sizes}, {size} checks): {by}"
    elif comparison.constant is not None:
        verdict, reason = PASSED, "identical in every trial"
    elif not least and not is_worse:
        verdict, reason = PASSED, f"not worse: {by}"
    else:
        verdict, reason = UNDECIDED, f"neither shown to be worse{least} nor not to be: {by}"
    return GateCheck(tested.match, metric.name, metric.words, verdict, reason, p, comparison, *medians)


def _rate_in_words(result: Result, rate: tuple[int, int]) -> str:
    """ "2 of 6 (4 stalled)"."""
    return f"{rate[0]} of {rate[1]}{result.outcomes.cases(Outcome.FAILED)}"


def _success_check(tested: _Tested, p: float | None, size: int, alpha: float) -> GateCheck:
    first, second = _rate(tested.match.first), _rate(tested.match.second)
    rates = _rate_in_words(tested.match.first, first), _rate_in_words(tested.match.second, second)
    verdict: GateVerdict
    if not second[1]:
        verdict, reason = UNDECIDED, "no trial of this run was a success or a failure"
    elif not first[1]:
        verdict, reason = UNDECIDED, "no trial of the baseline was a success or a failure"
    elif p is not None and p <= alpha:
        verdict, reason = FAILED, "fewer trials succeed"
    elif second[0] * first[1] >= first[0] * second[1]:
        verdict, reason = PASSED, "at least as large a share of trials succeeds"
    elif tested.attainable is None or tested.attainable * size > alpha:
        verdict, reason = UNDECIDED, f"fewer trials succeed, but there are too few to be certain ({size} checks)"
    else:
        verdict, reason = UNDECIDED, "fewer trials succeed, which may be chance"
    return GateCheck(tested.match, SUCCESS, "trials that succeed", verdict, reason, p, None, *rates)
