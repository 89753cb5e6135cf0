"""What single trials do to a conclusion: every comparison is made again without each of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from perflab.results.comparison import Influence, LeftOut, SpreadInfluence, SpreadLeftOut, Verdict
from perflab.statistics.judgement import Judgement, Rules, judge
from perflab.statistics.sample import Floats, Sample
from perflab.statistics.spread import brown_forsythe

MAX_TRIALS = 120  # of both samples; one of more carries no conclusion by ranks

# A ratio of standard deviations that is worth a word, and what must be left of its logarithm without any one trial.
NOTABLE_RATIO = 2.0
LEFT = 0.5


def without_each(baseline: Sample, treatment: Sample, rules: Rules, whole: Judgement) -> tuple[LeftOut, ...]:
    """Leaves out each trial in turn; a trial that is in no shared block changes nothing and is not listed. Empty where
    there are more than MAX_TRIALS."""
    if _counted(whole) > MAX_TRIALS:
        return ()
    trials: list[LeftOut] = []
    for side, sample in (("baseline", baseline), ("treatment", treatment)):
        for index, label in enumerate(sample.labels):
            if label in whole.design.unused:
                continue
            rest = sample.without(index)
            judged = judge(rest, treatment, rules) if side == "baseline" else judge(baseline, rest, rules)
            value = judged.value if judged.value is None or not rules.logarithms else math.exp(judged.value)
            found = (judged.test.p, judged.attainable_p, judged.equivalence_p, judged.test, judged.verdict)
            trials.append(LeftOut(side, label, value, *found))
    return tuple(trials)


def of_location(left_out: Sequence[LeftOut], rules: Rules, whole: Judgement) -> Influence:
    """What the comparisons without each trial say of the whole one."""
    if (counted := _counted(whole)) > MAX_TRIALS:
        return Influence(None, None, (), f"{counted} trials are more than the {MAX_TRIALS} that are left out by turns")
    value = whole.estimate.value
    return collected(left_out, value, whole.test.p, whole.verdict, logarithms=rules.logarithms)


def _counted(whole: Judgement) -> int:
    return len(whole.design.a) + len(whole.design.b)


def collected(
    trials: Sequence[LeftOut], estimate: float | None, p: float | None, verdict: Verdict, *, logarithms: bool
) -> Influence:
    """The extremes among comparisons without one trial; `estimate` is that of all, on the scale of the analysis."""

    def moved(trial: LeftOut) -> float:
        if trial.estimate is None or estimate is None:
            return -1.0
        return abs((math.log(trial.estimate) if logarithms else trial.estimate) - estimate)

    def changed(trial: LeftOut) -> float:
        return -1.0 if trial.p is None or p is None else abs(trial.p - p)

    return Influence(
        max(trials, key=moved, default=None),
        max(trials, key=changed, default=None),
        tuple(trial for trial in trials if trial.verdict not in (verdict, "too_few_trials")),
    )


def of_spread(baseline: Sample, treatment: Sample) -> SpreadInfluence:
    """The same for the ratio of standard deviations; nothing where a sample has fewer than 4 values or no scatter."""
    if min(baseline.n, treatment.n) < 4:
        return SpreadInfluence(None, None)
    whole = _log_ratio(baseline.array, treatment.array)
    if whole is None:
        return SpreadInfluence(None, None)
    trials = []
    for sample, side in ((baseline, "baseline"), (treatment, "treatment")):
        for index, label in enumerate(sample.labels):
            rest = sample.without(index).array
            a, b = (rest, treatment.array) if side == "baseline" else (baseline.array, rest)
            if (ratio := _log_ratio(a, b)) is not None:
                trials.append(SpreadLeftOut(side, label, math.exp(ratio), brown_forsythe(a, b).p))
    largest = max(trials, key=lambda trial: abs(math.log(trial.sd_ratio) - whole), default=None)
    carrying = [trial for trial in trials if math.log(trial.sd_ratio) / whole < LEFT] if whole else []
    notable = abs(whole) >= math.log(NOTABLE_RATIO)
    return SpreadInfluence(largest, carrying[0] if notable and len(carrying) == 1 else None)


def _log_ratio(a: Floats, b: Floats) -> float | None:
    of_a, of_b = float(np.std(a, ddof=1)), float(np.std(b, ddof=1))
    return math.log(of_b / of_a) if of_a > 0 and of_b > 0 else None
