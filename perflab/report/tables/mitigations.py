"""The benefit and cost of each mitigation, as a table: for every treatment that combines one with a disturbance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from perflab.columns import Cell, Column, Table, Tone
from perflab.quantity import NUMBER
from perflab.results.comparison import BETTER, CONDITION, MITIGATION, WORSE, Effect, Finding, Verdict
from perflab.results.summary import Summary
from perflab.statistics.metrics import find, named
from perflab.statistics.pairs import alone, mitigation_words, places_of, without_mitigation
from perflab.statistics.verdicts import effect_words

TITLE = "Benefit and cost of mitigations"
NOTE = (
    "Factors, and differences of counts and shares, with intervals; * differs, = by no more than the margin. "
    "Disturbed: compared with the baseline. It buys: with the mitigation compared with without it, under the "
    "disturbance. "
    "What is left: with both compared with the baseline. It costs: the mitigation alone compared with the baseline."
)
_TONES: Mapping[Effect | None, Tone] = {BETTER: "good", WORSE: "bad", None: ""}
_MARKS: Mapping[Verdict, str] = {"higher": " *", "lower": " *", "equivalent": " ="}


@dataclass(frozen=True)
class Bought:
    """One metric under one disturbance; None if the run does not compare it."""

    place: str
    what: str  # "throttle, under flood"
    metric: str
    does: Finding | None  # the disturbance compared with the baseline
    buys: Finding | None  # with the mitigation compared with without it, under the disturbance
    left: Finding | None  # with the mitigation, under the disturbance, compared with the baseline
    costs: Finding | None  # the mitigation alone compared with the baseline


def mitigations(summary: Summary) -> Table[Bought]:
    rows = list(_rows(summary))
    several = len({row.place for row in rows}) > 1
    return Table(
        "mitigations",
        TITLE,
        [
            Column("mitigation", "mitigation", lambda row: row.what, rank=0, once=True),
            Column("metric", "metric", lambda row: _words(row.metric), rank=0),
            Column("does", "disturbed", lambda row: _cell(row.does), NUMBER, rank=0),
            Column("buys", "it buys", lambda row: _cell(row.buys), NUMBER, rank=0),
            Column("left", "what is left", lambda row: _cell(row.left), NUMBER, rank=1),
            Column("costs", "it costs", lambda row: _cell(row.costs), NUMBER, rank=0),
        ],
        rows,
        [NOTE] if rows else [],
        grouped=(lambda row: row.place) if several else None,
    )


def _rows(summary: Summary) -> Iterator[Bought]:
    findings = summary.findings
    if findings is None:
        return
    for place in places_of(summary.results):
        of_place = [c for c in findings.comparisons if c.variant == place.words and find(c.metric) is not None]
        found = {(c.kind, c.treatment.name, c.metric): c for c in of_place}
        for other in place.disturbed:
            without = without_mitigation(place, other)
            if without is None:
                continue
            by_itself = alone(place, other)
            what = mitigation_words(place, other, without)
            for metric in findings.metrics:
                does = found.get((CONDITION, without.treatment, metric))
                buys = found.get((MITIGATION, other.treatment, metric))
                left = found.get((CONDITION, other.treatment, metric))
                costs = None if by_itself is None else found.get((CONDITION, by_itself.treatment, metric))
                if any(each is not None for each in (does, buys, left, costs)):
                    yield Bought(place.words, what, metric, does, buys, left, costs)


def _words(metric: str) -> str:
    found = find(metric)
    return metric if found is None else found.words


def _cell(c: Finding | None) -> Cell | None:
    if c is None:
        return None
    mark = _MARKS.get(c.verdict, "")
    return Cell(f"{effect_words(named(c.metric), c)}{mark}", c.estimate.value, _TONES[c.effect])
