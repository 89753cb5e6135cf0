"""What a plan will compare, before anything has run: pairs, and how many repetitions it takes to show anything.

The smallest p of a test by ranks follows from the numbers of trials alone. Where alpha is divided among so many
comparisons that it is not small enough, the trials can show nothing, whatever they measure.
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
    """`baseline` and `treatment` are trials of either in one repetition."""

    pair: Pair
    baseline: int
    treatment: int


def planned_pairs(order: Sequence[Planned], workload: str) -> list[PlannedPair]:
    """What the findings of this plan will compare, in each metric."""
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
    """Repetitions with which each of so many could show something at this level of all together."""
    return max(_needed(pairs, comparisons, alpha))


def _needed(pairs: Sequence[PlannedPair], comparisons: int, alpha: float) -> list[int]:
    return [needed_repetitions(alpha / comparisons, math.comb(a + b, b)) for _, a, b in pairs]


def too_few(pairs: Sequence[PlannedPair], metrics: int, repetitions: int, alpha: float) -> str | None:
    """What to say before a run whose trials are too few to show anything of some comparison; None where there is none.

    `metrics` of each pair are compared; `alpha` is that of all comparisons together at this look.
    """
    family = len(pairs) * metrics
    needed = _needed(pairs, family, alpha)
    lacking = metrics * sum(n > repetitions for n in needed)
    if not lacking:
        return None
    some = "" if lacking == family else f"in {lacking} of them "
    says = f"{some}{family_words(repetitions, max(needed), family)}"
    return f"{says}: --trials {max(needed)}, or --until-decided, which adds repetitions as they are needed"
