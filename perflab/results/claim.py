"""Claims that an experiment tests, and what its trials say of them (docs/findings.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from perflab.models import Count
from perflab.results.comparison import Estimate

ClaimVerdict = Literal["holds", "does_not_hold", "not_decided"]
HOLDS: ClaimVerdict = "holds"
DOES_NOT_HOLD: ClaimVerdict = "does_not_hold"
NOT_DECIDED: ClaimVerdict = "not_decided"

VERDICT_WORDS: dict[ClaimVerdict, str] = {
    HOLDS: "holds",
    DOES_NOT_HOLD: "does not hold",
    NOT_DECIDED: "not decided",
}


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim at one place of an experiment: a variant, with levels of factors."""

    says: str
    source: str | None
    """Who claims it, and where."""
    expects: str
    """When it holds, as the experiment says it: planning > baseline."""
    treatment: str
    variant: str | None
    """The place, in words; null where the experiment has no other, or no trial of the treatment."""
    against: str | None = None
    """The place whose baseline is compared with that of this one; null where it is the baseline of the same place."""
    verdict: ClaimVerdict
    figure: Estimate
    """What decides, with the interval that decides: a ratio or difference to the baseline, a ratio of spreads, or a
    value of the treatment. All intervals of a run's claims hold together as those of its comparisons do."""
    scale: Literal["ratio", "difference", "value"]
    unit: str
    """Of the figure; empty of a ratio and of a count."""
    n: Count
    """Trials of the treatment that enter; likewise of the baseline."""
    n_baseline: Count | None
    """Null where the baseline does not matter."""
    words: str
    """What was found, with interval and numbers of trials; of what is not decided the reason."""
