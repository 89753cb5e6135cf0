"""Whether claims hold, according to the trials of an experiment. The condition for a claim is written as an
expectation:

    planning > baseline                        a comparison of treatment and baseline, of the family of all comparisons
    execution >= 1.5x baseline                 a factor
    total == baseline within 5 %               equivalence: the interval lies within the margin
    spread of execution < baseline             the ratio of the spreads
    success < 50 %                             a value of the treatment: the share of its trials that succeed
    planning <= 20ms                           likewise, the median over its trials
    received_per_s == 1000 within 1 %          likewise, that the interval lies within the margin

A claim about the baseline is one about a value of it; or compares it with the undisturbed trials at another level
(`against`), which are the baseline of such an expectation.

A claim holds if the whole interval meets the expectation, and does not hold if the whole interval contradicts it; else
it is not decided. A claim that something is larger than the baseline is also refuted if the difference is shown to be
smaller than the experiment's margin. The intervals of comparisons are those of the findings; shares and medians are a
separate family, among which alpha is divided.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from perflab import quantity
from perflab.errors import BadInput
from perflab.results.claim import DOES_NOT_HOLD, HOLDS, NOT_DECIDED, Claim, ClaimVerdict
from perflab.results.comparison import ALPHA, CONDITION, MARGIN, Estimate, Finding, Findings, Interval, Kind
from perflab.results.outcome import FAILED
from perflab.results.trial import BASELINE, Result, level_values
from perflab.statistics.metrics import DIFFERENCE, HIGHER, RATIO, Metric, bound_of, parse
from perflab.statistics.pairs import Place, pairs_of, places_of
from perflab.statistics.proportion import newcombe, wilson
from perflab.statistics.selection import sample_of, why_missing
from perflab.statistics.verdicts import (
    ONE_TRIAL,
    caveats_in_words,
    effect_words,
    more_trials_words,
    p_in_words,
    size_in_words,
    too_few_words,
)

MIDDLEWARE, EXECUTOR = "middleware", "executor"
"""Keys of `at` and `against` beside the paths of factors."""

SUCCESS = Metric(
    "success", "trials that succeed", quantity.PERCENT, lambda _: None, "share of the trials that succeed", HIGHER,
    DIFFERENCE,
)  # fmt: skip
"""Over the trials of a treatment together, so no single trial has it."""

Sign = Literal["<", "<=", ">", ">=", "=="]
_SIGNS: Mapping[str, Sign] = {"<=": "<=", "<": "<", ">=": ">=", ">": ">", "==": "=="}

_EXPECTATION = re.compile(r"\s*(spread\s+of\s+)?([A-Za-z][A-Za-z0-9_./]*)\s*(<=|>=|==|<|>|=|!=)\s*(.*?)\s*", re.DOTALL)
_NUMBER = r"([0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?)"
_BASELINE = re.compile(rf"(?:{_NUMBER}\s*x\s+)?baseline(?:\s+within\s+{_NUMBER}\s*(\S*))?")
_VALUE = re.compile(rf"{_NUMBER}\s*(\S*?)(?:\s+within\s+{_NUMBER}\s*(\S*))?")
_EXAMPLES = "write it like 'planning > baseline', 'total == baseline within 5 %' or 'success < 50 %'"


@dataclass(frozen=True)
class Expectation:
    """`bound` is a factor if the metric is compared by factors, else in the metric's unit: the limit for the
    treatment's figure, or for its distance from the baseline. `within`: half the width of the equality range, in the
    same unit."""

    text: str
    metric: Metric
    of_spread: bool
    sign: Sign
    of_baseline: bool
    bound: float
    within: float | None = None

    @property
    def by_factor(self) -> bool:
        return self.of_baseline and (self.of_spread or self.metric.compared == RATIO)

    @property
    def compared(self) -> bool:
        """Whether a comparison of the findings decides it."""
        return self.of_baseline and self.metric is not SUCCESS

    @property
    def of_difference(self) -> bool:
        """Whether it claims that the treatment is on one side of the baseline."""
        if self.sign == "==":
            return False
        beyond = self.bound - (1.0 if self.by_factor else 0.0)
        return (beyond > 0 if self.sign.startswith(">") else beyond < 0) or (beyond == 0 and len(self.sign) == 1)


@dataclass(frozen=True)
class Asked:
    """A claim of an experiment. `treatment` None: its only one; `at` are the levels of the workload's and the
    middleware's factors, `middleware` and `executor`, at which it is judged; `against` is the level with which a
    baseline is compared."""

    says: str
    expects: Expectation
    source: str | None = None
    treatment: str | None = None
    at: Mapping[str, Any] = field(default_factory=dict)
    against: Mapping[str, Any] = field(default_factory=dict)


def parse_expectation(text: str, where: str = "expects", figures: Mapping[str, str] | None = None) -> Expectation:
    """Raises BadInput, which names `where`."""
    said = f"{where}: {text.strip()!r}"
    match = _EXPECTATION.fullmatch(text)
    if match is None:
        raise BadInput(f"{said} is not an expectation; {_EXAMPLES}")
    spread, name, written, rest = match.groups()
    metric = SUCCESS if name == SUCCESS.name else parse(name, where, figures)
    if written not in _SIGNS:
        raise BadInput(f"{said} has {written}; use one of {' '.join(_SIGNS)}")
    if spread and metric is SUCCESS:
        raise BadInput(f"{said}: success refers to all trials together and has no spread; name a metric")
    made = Expectation(text.strip(), metric, bool(spread), _SIGNS[written], of_baseline=True, bound=0.0)
    relative = _BASELINE.fullmatch(rest)
    return _of_value(made, rest, said, where) if relative is None else _of_baseline(made, relative, said, where)


def _of_value(made: Expectation, rest: str, said: str, where: str) -> Expectation:
    """About a value of the treatment itself."""
    value, before = _VALUE.fullmatch(rest), f"{made.metric.name} {made.sign}"
    if value is None:
        raise BadInput(f"{said}: after {made.sign} write `baseline` or a value; {_EXAMPLES}")
    if made.of_spread:
        raise BadInput(f"{said}: a spread is compared with that of the baseline; write spread of {before} baseline")
    number, unit, within, of_margin = value.groups()
    made = replace(made, of_baseline=False, bound=bound_of(made.metric, number, unit, said, before, where))
    if (within is None) == (made.sign == "=="):
        right = f"{made.metric.name} == {number}{unit} within 1 %"
        raise BadInput(f"{said}: trials cannot show an exact value; write {right}, or < <= > >= without a margin")
    if within is None:
        return made
    if of_margin == "%" and made.metric.unit != quantity.PERCENT.unit:
        margin = made.bound * float(within) / 100
    else:
        margin = bound_of(made.metric, within, of_margin, said, f"{before} {number}{unit} within", where)
    if not margin > 0 or not math.isfinite(margin):
        raise BadInput(f"{said}: a margin must be above 0")
    return replace(made, within=margin)


def _of_baseline(made: Expectation, relative: re.Match[str], said: str, where: str) -> Expectation:
    factor, within, unit = relative.groups()
    name = made.metric.name
    for number in filter(None, (factor, within)):
        if not math.isfinite(float(number)):
            raise BadInput(f"{said}: {number} is too large")
    if factor is not None and made.by_factor and not float(factor):
        raise BadInput(f"{said}: a factor must be above 0")
    if factor is not None and not made.by_factor:
        raise BadInput(f"{said}: {name} is compared by differences, so it has no factor; leave {factor}x out")
    if (within is None) == (made.sign == "=="):
        right = f"{name} == baseline within 5 %"
        raise BadInput(f"{said}: a margin (within ...) needs ==, and == needs a margin; e.g. {right}")
    made = replace(made, bound=float(factor or 1.0) if made.by_factor else 0.0)
    if within is None:
        return made
    if made.by_factor and unit != "%":
        raise BadInput(f"{said}: {name} is compared by factors, so its margin must be in percent, as 5 %")
    before = f"{name} == baseline within"
    margin = float(within) / 100 if made.by_factor else bound_of(made.metric, within, unit, said, before, where)
    if not margin > 0:
        raise BadInput(f"{said}: a margin must be above 0")
    return replace(made, within=margin)


def with_claims(metrics: Sequence[Metric], claims: Sequence[Asked]) -> tuple[Metric, ...]:
    """The metrics of a run, plus those that its claims need."""
    own = [one.expects.metric for one in claims if one.expects.compared]
    return tuple({metric.name: metric for metric in (*metrics, *own)}.values())


# -- judged ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _At:
    """A claim at one place; `baseline` None if there is none. `comparison` is the finding that decides it, by kind,
    names of treatment and baseline, and place; `against` is the place of the baseline, if it is another one."""

    asked: Asked
    place: str | None
    only: bool
    treatment: Result
    baseline: Result | None
    comparison: tuple[Kind, str, str, str | None]
    against: str | None = None


@dataclass(frozen=True)
class _Found:
    verdict: ClaimVerdict
    figure: Estimate
    words: str


def judge(
    claims: Sequence[Asked], results: Sequence[Result], findings: Findings | None, alpha: float = ALPHA
) -> tuple[Claim, ...]:
    """The verdict on each claim, at every place where its treatment ran; in the order of the claims."""
    placed = [(one, _places(one, results)) for one in claims]
    own = sum(not one.expects.compared for one, places in placed for _ in places)
    share = 1.0 if findings is None else findings.looks.share
    confidence = 1 - alpha * share / max(1, own)
    margin = MARGIN if findings is None else findings.margin
    found: list[Claim] = []
    for asked, places in placed:
        if not places:
            missing = f"no trial of {asked.treatment or 'a treatment'} was run"
            found.append(_claim(asked, None, _Found(NOT_DECIDED, Estimate(None, reason=missing), missing)))
        for at in places:
            decided = _compared(at, findings, margin) if asked.expects.compared else _by_itself(at, confidence)
            found.append(_claim(asked, at, decided))
    return tuple(found)


def _places(asked: Asked, results: Sequence[Result]) -> list[_At]:
    places = places_of(results)
    if asked.against:
        return _levels_compared(asked, places)
    found = []
    for place in (one for one in places if _is_at(one, asked.at)):
        baseline = place.baseline
        there = [one for one in place.disturbed if asked.treatment in (None, one.treatment)]
        if baseline is not None and not there and asked.treatment in (None, BASELINE):
            there = [baseline]
        for one in there:
            mine, name = (None, BASELINE) if baseline is None else (baseline.result, baseline.treatment)
            comparison = (CONDITION, one.treatment, name, place.words)
            found.append(_At(asked, place.words, place.only, one.result, mine, comparison))
    return found


def _levels_compared(asked: Asked, places: Sequence[Place]) -> list[_At]:
    """The baselines of the claim's places, each with that of the level that it is compared with."""
    found = []
    for pair in pairs_of(places):
        if len(pair.places) != 2 or not _is_at(pair.places[1], asked.at):
            continue
        if not _is_at(pair.places[0], {**asked.at, **asked.against}):
            continue
        comparison = (pair.kind, pair.names[1], pair.names[0], pair.place or None)
        one, other = pair.baseline.result, pair.treatment.result
        place, against = pair.places[1].words, pair.places[0].words
        found.append(_At(asked, place, False, other, one, comparison, against))
    return found


def _is_at(place: Place, levels: Mapping[str, Any]) -> bool:
    first = place.first
    there = {**level_values(first.outer_factors), MIDDLEWARE: first.middleware, EXECUTOR: first.executor}
    own = {path: level for path, level in levels.items() if path in (MIDDLEWARE, EXECUTOR)}
    wanted = level_values({path: level for path, level in levels.items() if path not in own})
    return all(there.get(path) == level for path, level in {**wanted, **own}.items())


def _claim(asked: Asked, at: _At | None, found: _Found) -> Claim:
    expects = asked.expects
    scale: Literal["ratio", "difference", "value"] = "value"
    if expects.of_baseline:
        scale = "ratio" if expects.by_factor else "difference"
    baseline = None if at is None or not expects.of_baseline or at.baseline is None else at.baseline
    return Claim(
        says=asked.says,
        source=asked.source,
        expects=expects.text,
        treatment=asked.treatment or ("" if at is None else at.treatment.label),
        variant=None if at is None or at.only else at.place,
        against=None if at is None else at.against,
        verdict=found.verdict,
        figure=found.figure,
        scale=scale,
        unit="" if scale == "ratio" else expects.metric.unit,
        n=0 if at is None else _trials(at.treatment, expects),
        n_baseline=None if baseline is None else _trials(baseline, expects),
        words=found.words,
    )


def _trials(result: Result, expects: Expectation) -> int:
    return result.outcomes.judged if expects.metric is SUCCESS else len(result.entering)


def _compared(at: _At, findings: Findings | None, margin: float) -> _Found:
    """By the comparison of the findings."""
    expects = at.asked.expects
    c = _comparison(at, findings)
    if c is None:
        return _nothing_compared(at)
    if expects.of_spread:
        return _of_spread(expects, c)
    metric, estimate = expects.metric, c.estimate
    of_ratio = c.scale == RATIO
    than = at.against or "the baseline"
    against = f"of {than}'s" if of_ratio and at.against is None else f"compared with {than}"
    said = f"{metric.words} {effect_words(metric, c)} {against}"
    numbers = f"n = {c.treatment.n} and {c.baseline.n}"
    if expects.by_factor and not of_ratio:
        reason = "a value is 0, so there is no factor"
        return _Found(NOT_DECIDED, replace(estimate, reason=reason), f"{said}, {numbers}: {reason}")
    verdict = _decided(expects, estimate.interval, margin)
    if verdict == HOLDS and expects.of_difference and c.verdict == "below_noise_floor":
        verdict = NOT_DECIDED
        numbers += "; no more than baselines differ from each other"
    more = f"{more_trials_words([c])}{too_few_words([c])}" if verdict == NOT_DECIDED else ""
    return _Found(verdict, estimate, f"{said}, {numbers}{caveats_in_words(c)}{more}")


def _comparison(at: _At, findings: Findings | None) -> Finding | None:
    wanted = (at.asked.expects.metric.name, *at.comparison)
    comparisons = () if findings is None else findings.comparisons
    return next(
        (c for c in comparisons if (c.metric, c.kind, c.treatment.name, c.baseline.name, c.variant) == wanted), None
    )


def _nothing_compared(at: _At) -> _Found:
    metric, trials = at.asked.expects.metric, at.treatment.entering
    if at.baseline is None:
        reason = "there is no baseline"
    elif not trials:
        reason = f"no trial of it was measured ({at.treatment.outcomes.words})"
    elif missing := why_missing(trials, metric) or why_missing(at.baseline.entering, metric):
        reason = missing
    else:
        reason = ONE_TRIAL
    return _Found(NOT_DECIDED, Estimate(None, reason=reason), f"{metric.words}: {reason}")


def _of_spread(expects: Expectation, c: Finding) -> _Found:
    spread, figure = c.spread, c.spread.scaled_ratio
    numbers = f"n = {c.treatment.n} and {c.baseline.n}"
    if figure.value is None:
        reason = figure.reason or "not known"
        return _Found(NOT_DECIDED, figure, f"spread of {expects.metric.words}: {reason}, {numbers}")
    size = size_in_words(figure, expects.metric.format, is_ratio=True)
    alike = expects.bound == 1.0 and expects.sign != "=="  # with the finding's direction
    p = f", {p_in_words(spread.p_adjusted)}" if alike and spread.p_adjusted is not None else ""
    why_not = f"; {figure.reason}" if figure.interval is None and figure.reason else ""
    said = f"spread of {expects.metric.words} {size} of the baseline's, {numbers}{p}{why_not}"
    verdict = NOT_DECIDED
    if not alike:
        verdict = _decided(expects, figure.interval, 0.0)
    elif spread.verdict in ("more", "less"):  # by the test and the interval
        verdict = HOLDS if (spread.verdict == "more") == expects.sign.startswith(">") else DOES_NOT_HOLD
    elif spread.verdict == "not_shown":
        said += "; no difference of spread is shown"
    return _Found(verdict, figure, said)


def _by_itself(at: _At, confidence: float) -> _Found:
    """By the share of successful trials, or by the median of the treatment."""
    from perflab.statistics import estimate as estimates  # scipy takes a second to import

    expects, metric = at.asked.expects, at.asked.expects.metric
    if metric is SUCCESS:
        return _of_success(at, confidence)
    sample = sample_of(at.treatment.entering, metric, at.treatment.label)
    figure = estimates.median(sample, confidence)
    if figure.value is None:
        reason = why_missing(at.treatment.entering, metric) or "no trial of it was measured"
        return _Found(NOT_DECIDED, replace(figure, reason=reason), f"{metric.words}: {reason}")
    verdict = _decided(expects, figure.interval, 0.0)
    why_not = f"; {figure.reason}" if figure.interval is None and figure.reason else ""
    said = f"median of {metric.words} {metric.format(figure.value)}{_between(figure.interval, metric)}"
    return _Found(verdict, figure, f"{said}, n = {sample.n}{why_not}")


def _of_success(at: _At, confidence: float) -> _Found:
    expects = at.asked.expects
    mine = at.treatment.outcomes
    if not mine.judged:
        reason = f"no trial of it shows anything about the system ({mine.words})"
        return _Found(NOT_DECIDED, Estimate(None, reason=reason), reason)
    own = f"{mine.success} of {mine.judged} succeeded{mine.cases(FAILED)}"
    if not expects.of_baseline:
        figure = _share(mine.success / mine.judged, wilson(mine.success, mine.judged, confidence), confidence, "Wilson")
        return _Found(_decided(expects, figure.interval, 0.0), figure, f"{own}{_between(figure.interval, SUCCESS)}")
    theirs = None if at.baseline is None else at.baseline.outcomes
    if theirs is None or not theirs.judged:
        return _Found(NOT_DECIDED, Estimate(None, reason="there is no baseline"), "there is no baseline")
    first, second = (theirs.success, theirs.judged), (mine.success, mine.judged)
    change = second[0] / second[1] - first[0] / first[1]
    figure = _share(change, newcombe(first, second, confidence), confidence, "Newcombe")
    words = f"{own}, of the baseline {first[0]} of {first[1]}: {SUCCESS.format(100 * change)}"
    return _Found(_decided(expects, figure.interval, 0.0), figure, f"{words}{_between(figure.interval, SUCCESS)}")


def _share(value: float, found: tuple[float, float] | None, confidence: float, method: str) -> Estimate:
    interval = None if found is None else Interval(100 * found[0], 100 * found[1], confidence, method)
    return Estimate(100 * value, interval)


def _between(interval: Interval | None, metric: Metric) -> str:
    return "" if interval is None else f" [{metric.format(interval.low)}, {metric.format(interval.high)}]"


def _decided(expects: Expectation, interval: Interval | None, margin: float) -> ClaimVerdict:
    """`margin`: a factor of less than 1 + margin is not a difference from the baseline."""
    if interval is None:
        return NOT_DECIDED
    if expects.within is not None:
        return _equal(expects, interval)
    turned, bound = interval, expects.bound
    if expects.sign.startswith("<"):  # the same, seen from the other end
        turned, bound = _turned(interval, expects.by_factor), 1 / bound if expects.by_factor else -bound
    strict = len(expects.sign) == 1
    # At most (or at least) as much as the baseline also holds if there is no difference.
    same = expects.by_factor and expects.bound == 1.0 and strict
    if same and turned.high < 1 + margin:
        return DOES_NOT_HOLD  # at most by what counts as no difference
    if turned.high < bound or (turned.high == bound and (strict or turned.high_open)):
        return DOES_NOT_HOLD
    if turned.low > bound or (turned.low == bound and (not strict or turned.low_open)):
        return HOLDS
    return NOT_DECIDED


def _turned(interval: Interval, by_factor: bool) -> Interval:
    """For the inverse of the factor, or the value with the other sign."""

    def other(value: float) -> float:
        return -value if not by_factor else 1 / value if value > 0 else math.inf

    return replace(
        interval,
        low=other(interval.high),
        high=other(interval.low),
        low_open=interval.high_open,
        high_open=interval.low_open,
    )


def _equal(expects: Expectation, interval: Interval) -> ClaimVerdict:
    within = expects.within or 0.0
    if expects.by_factor:
        low, high = expects.bound / (1 + within), expects.bound * (1 + within)
    else:
        low, high = expects.bound - within, expects.bound + within
    if interval.within(low, high):
        return HOLDS
    return DOES_NOT_HOLD if interval.low >= high or interval.high <= low else NOT_DECIDED
