"""Claims that an experiment tests, and the verdicts of its trials (docs/findings.md)."""

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
    """Source of the claim."""
    expects: str
    """The expectation as written in the experiment: planning > baseline."""
    treatment: str
    variant: str | None
    """The place, in words; null if the experiment has no other, or no trial of the treatment."""
    against: str | None = None
    """The place whose baseline is compared with that of this one; null if it is the baseline of the same place."""
    verdict: ClaimVerdict
    figure: Estimate
    """The deciding value, with its interval: a ratio or difference to the baseline, a ratio of spreads, or a
    value of the treatment. All intervals of a run's claims hold simultaneously, like those of its comparisons."""
    scale: Literal["ratio", "difference", "value"]
    unit: str
    """Unit of the figure; empty for a ratio and a count."""
    n: Count
    """Trials of the treatment that are used; likewise for the baseline."""
    n_baseline: Count | None
    """Null if the baseline does not matter."""
    words: str
    """The result, with interval and numbers of trials; if undecided, the reason."""
