"""The claims of an experiment, and the metrics that must be compared because of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from perflab.design.document import BadEntry, Document
from perflab.design.factors import WORKLOAD
from perflab.errors import BadInput, instead
from perflab.statistics.claims import Asked, parse_expectation, with_claims
from perflab.statistics.metrics import Metric, chosen

if TYPE_CHECKING:
    from perflab.design.treatments import Treatment

MIDDLEWARE = "middleware"


def asked_of(document: Document, figures: Mapping[str, str] | None = None) -> list[Asked]:
    """Raises BadInput at the place of the unreadable claim."""
    found = []
    for number, claim in enumerate(document.claims):
        try:
            expects = parse_expectation(claim.expects, f"claims, entry {number + 1}", figures)
        except BadInput as error:
            raise BadEntry(("claims", number, "expects"), str(error)) from error
        found.append(Asked(claim.says, expects, claim.source, claim.treatment, claim.at))
    return found


def metrics_asked(document: Document, figures: Mapping[str, str] | None = None) -> tuple[Metric, ...]:
    """The metrics that the experiment compares. Raises BadInput."""
    metrics = chosen(document.statistics.metrics, figures=figures)
    return with_claims(metrics, asked_of(document, figures)) if document.claims else metrics


def check(document: Document, treatments: Iterable[Treatment], figures: Mapping[str, str] | None = None) -> None:
    """Checks that each claim refers to an existing treatment and an existing combination of levels. Raises BadEntry."""
    disturbed = [t for t in treatments if t.conditions]
    labels = dict.fromkeys(t.label for t in disturbed)
    for number, claim in enumerate(asked_of(document, figures)):
        where = f"claims, entry {number + 1}"

        def refuse(key: str, words: str, number: int = number, where: str = where) -> BadEntry:
            return BadEntry(("claims", number, key), f"{where}: {words}")

        if document.breaking_point is not None:
            raise refuse("expects", "a search compares nothing; test claims in an experiment with a plan")
        if not labels:
            raise refuse("treatment", "the experiment has no condition, so there is no treatment to judge the claim by")
        if claim.treatment is None and len(labels) > 1:
            raise refuse("treatment", f"name the treatment that the claim is about: {', '.join(labels)}")
        if claim.treatment is not None and claim.treatment not in labels:
            raise refuse("treatment", f"no treatment {claim.treatment!r}; {instead(claim.treatment, labels)}")
        if claim.expects.of_baseline and not document.baseline:
            raise refuse("expects", f"{claim.expects.text!r} needs a baseline, which is off")
        mine = [t for t in disturbed if claim.treatment in (None, t.label)]
        for path, level in claim.at.items():
            there = {str(_level(t, path)) for t in mine} - {"None"}
            if str(level) not in there:
                known = f"there are {', '.join(sorted(there))}" if there else f"name a factor {WORKLOAD}.KEY"
                raise refuse("at", f"{path} is nowhere {level!r}; {known}")


def _level(treatment: Treatment, path: str) -> object:
    return treatment.variant.middleware_name if path == MIDDLEWARE else treatment.factors.get(path)
