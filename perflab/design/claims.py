"""The claims of an experiment, and the metrics that must be compared because of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from perflab.design.document import BadEntry, Document
from perflab.design.factors import WORKLOAD
from perflab.errors import BadInput, instead
from perflab.results.trial import BASELINE
from perflab.statistics.claims import EXECUTOR, MIDDLEWARE, Asked, parse_expectation, with_claims
from perflab.statistics.metrics import Metric, chosen

if TYPE_CHECKING:
    from perflab.design.treatments import Treatment


def asked_of(document: Document, figures: Mapping[str, str] | None = None) -> list[Asked]:
    """Raises BadInput at the place of the unreadable claim."""
    found = []
    for number, claim in enumerate(document.claims):
        try:
            expects = parse_expectation(claim.expects, f"claims, entry {number + 1}", figures)
        except BadInput as error:
            raise BadEntry(("claims", number, "expects"), str(error)) from error
        found.append(Asked(claim.says, expects, claim.source, claim.treatment, claim.at, claim.against))
    return found


def metrics_asked(document: Document, figures: Mapping[str, str] | None = None) -> tuple[Metric, ...]:
    """The metrics that the experiment compares. Raises BadInput."""
    metrics = chosen(document.statistics.metrics, figures=figures)
    return with_claims(metrics, asked_of(document, figures)) if document.claims else metrics


def check(document: Document, treatments: Iterable[Treatment], figures: Mapping[str, str] | None = None) -> None:
    """Checks that each claim refers to an existing treatment and an existing combination of levels. Raises BadEntry."""
    made = [t for t in treatments if t.conditions or t.label == BASELINE]
    disturbed = dict.fromkeys(t.label for t in made if t.conditions)
    labels = [*disturbed, *([BASELINE] if document.baseline else [])]
    for number, claim in enumerate(asked_of(document, figures)):
        where = f"claims, entry {number + 1}"

        def refuse(key: str, words: str, number: int = number, where: str = where) -> BadEntry:
            return BadEntry(("claims", number, key), f"{where}: {words}")

        if document.breaking_point is not None:
            raise refuse("expects", "a search compares nothing; test claims in an experiment with a plan")
        if claim.treatment is None and len(disturbed) > 1:
            raise refuse("treatment", f"name the treatment that the claim is about: {', '.join(labels)}")
        if claim.treatment is not None and claim.treatment not in labels:
            raise refuse("treatment", f"no treatment {claim.treatment!r}; {instead(claim.treatment, labels)}")
        about = claim.treatment or next(iter(disturbed), BASELINE)
        if claim.expects.of_baseline and not document.baseline:
            raise refuse("expects", f"{claim.expects.text!r} needs a baseline, which is off")
        if claim.expects.of_baseline and about == BASELINE and not claim.against:
            raise refuse("against", "the baseline is not compared with itself; name a level: against: {FACTOR: LEVEL}")
        if claim.against and (about != BASELINE or not claim.expects.of_baseline):
            raise refuse("against", "only a claim about the baseline that compares, latency.p50 > baseline, is")
        mine = [t for t in made if t.label == about]
        for path, level in claim.at.items():
            there = {str(_level(t, path)) for t in mine} - {"None"}
            if str(level) not in there:
                known = f"there are {', '.join(sorted(there))}" if there else f"name a factor {WORKLOAD}.KEY"
                raise refuse("at", f"{path} is nowhere {level!r}; {known}")
        for path, level in claim.against.items():
            before = _before(document, mine, path, claim.at.get(path))
            if str(level) not in before:
                known = f"use {' or '.join(before)}" if before else f"say in `at` of which {path} it is, not the first"
                raise refuse("against", f"{path}={level} is not what it is compared with; {known}")


def _before(document: Document, treatments: Iterable[Treatment], path: str, level: object) -> list[str]:
    """The levels that a level is compared with: the first one of a factor, all before it of what is a variant."""
    levels = list(dict.fromkeys(str(_level(t, path)) for t in treatments))
    before = levels[: levels.index(str(level))] if str(level) in levels else []
    return before if path in (MIDDLEWARE, EXECUTOR) else before[:1]


def _level(treatment: Treatment, path: str) -> object:
    own = {MIDDLEWARE: treatment.variant.middleware_name, EXECUTOR: treatment.variant.executor_name}
    return own[path] if path in own else treatment.factors.get(path)
