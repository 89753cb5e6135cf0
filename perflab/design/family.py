"""The comparisons that a plan will make, before anything has run: the pairs, and how many repetitions a result needs.

The smallest possible p of a rank test follows from the numbers of trials alone. If alpha is divided among so many
comparisons that no p can be small enough, the trials can show nothing, whatever they measure.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from perflab import models
from perflab.design.treatments import EXTRA, Planned, designed
from perflab.results.outcome import SUCCESS
from perflab.statistics.attainable import family_words, needed_repetitions
from perflab.statistics.pairs import Entering, Pair, pairs_of, places_of
from perflab.statistics.summary import TrialData, summarize


class PlannedPair(NamedTuple):
    """`baseline` and `treatment` are the trials of each in one repetition."""

    pair: Pair
    baseline: int
    treatment: int


def planned_pairs(order: Sequence[Planned], workload: str) -> list[PlannedPair]:
    """The comparisons that the findings of this plan will make, for each metric."""
    planned = [p for p in order if p.treatment.purpose != EXTRA]
    results = summarize("", [_as_if_run(p, workload) for p in planned]).results
    return [PlannedPair(p, _each(p.baseline), _each(p.treatment)) for p in pairs_of(places_of(results))]


def _as_if_run(planned: Planned, workload: str) -> TrialData:
    return TrialData(
        **models.shared(TrialData, designed(planned.treatment)),
        workload=workload,
        outcome=SUCCESS,
        order=planned.order,
        number=planned.order,
        block=planned.block,
        duration_s=0.0,
        started_ns=None,
        accounts=None,
        resources=(),
    )


def _each(entering: Entering) -> int:
    return min(Counter(t.block for t in entering.result.trials_detail).values())


def enough(pairs: Sequence[PlannedPair], comparisons: int, alpha: float) -> int:
    """The repetitions with which each of this many comparisons could show a difference at this overall level."""
    return max(_needed(pairs, comparisons, alpha))


def _needed(pairs: Sequence[PlannedPair], comparisons: int, alpha: float) -> list[int]:
    return [needed_repetitions(alpha / comparisons, math.comb(a + b, b)) for _, a, b in pairs]


def too_few(pairs: Sequence[PlannedPair], metrics: int, repetitions: int, alpha: float) -> str | None:
    """A warning, before the run, that some comparison has too few trials to show anything; None if there is none.

    `metrics` are compared for each pair; `alpha` is the overall level at this look.
    """
    family = len(pairs) * metrics
    needed = _needed(pairs, family, alpha)
    lacking = metrics * sum(n > repetitions for n in needed)
    if not lacking:
        return None
    some = "" if lacking == family else f"in {lacking} of them "
    says = f"{some}{family_words(repetitions, max(needed), family)}"
    return f"{says}: use --trials {max(needed)}, or --until-decided, which adds repetitions as needed"
