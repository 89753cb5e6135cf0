"""Comparisons in cautious sentences: the result, with interval and numbers of trials; or why there is none."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from perflab.quantity import FACTOR, NUMBER, P, ends
from perflab.results.comparison import (
    BETTER,
    CLAIMS,
    DIFFERENCES,
    NOT_POSITIVE,
    NOTABLE_RATIO,
    WORSE,
    Comparison,
    Effect,
    Estimate,
    Interval,
    Lattice,
    Margin,
)
from perflab.results.trial import Result
from perflab.statistics.attainable import enough, family_words
from perflab.statistics.metrics import LOWER, Metric
from perflab.units import format_confidence, plural

if TYPE_CHECKING:
    from perflab.statistics.summary_data import SummaryComparison

ONE_TRIAL = "one trial each: no statements about differences are possible; use --trials 5 or more"
SAME = "same"

T = TypeVar("T")
Form = Callable[[float], str]

plain: Form = NUMBER.write  # a value without a unit, with three digits or all of its integer digits


def factor(value: float) -> str:
    """A ratio with three digits: "1.00", "0.955", "12.4"."""
    return f"{value:.0f}" if value >= 99.95 else f"{value:#.3g}"


def p_in_words(p: float) -> str:
    """ "p = 0.16", "p < 0.0001"."""
    return "p < 0.0001" if p < 0.0001 else f"p = {P.text(p)}"


def in_words(comparison: Comparison, form: Form = plain) -> str:
    """One sentence on the location; `form` writes a value with its unit, such as units.format_time."""
    c, n = comparison, _numbers(comparison)
    if c.blocks is not None:
        n += f" in {c.blocks} blocks"
    return f"{_head(c)}{_verdict(c, n, form)}{_missing(c)}{caveats_in_words(c)}."


def caveats_in_words(comparison: Comparison) -> str:
    """ "; it depends on one trial: …", "; shown at look 1, after 30 trials"; empty if there is no remark."""
    return f"{_hangs(comparison)}{_no_margin(comparison)}{look_in_words(comparison)}"


def look_in_words(comparison: Comparison) -> str:
    """ "; shown at look 1, after 30 trials"; empty if the last look at the run shows it."""
    at = comparison.look
    if at is None:
        return ""
    said = "shown" if comparison.verdict in CLAIMS else "judged"
    since = "" if said == "shown" else ", since later trials are too few for another look"
    return f"; {said} at look {at.number}, after {plural(at.trials, 'trial')}{since}"


def spread_in_words(comparison: Comparison, form: Form = plain) -> str | None:
    """On the spread, if standard deviations differ notably or the test finds a difference; None: no remark."""
    c, spread = comparison, comparison.spread
    p, ratio = spread.brown_forsythe.p, spread.sd_ratio.value
    if ratio is None or spread.sd_baseline is None or spread.sd_treatment is None:
        return None
    if 1 / NOTABLE_RATIO < ratio < NOTABLE_RATIO and (p is None or p > c.alpha):
        return None
    change = f"the SD is {form(spread.sd_treatment)} against {form(spread.sd_baseline)}"
    if p is None:
        tested = f"too few trials for a test ({spread.brown_forsythe.reason})"
    else:
        shown = "a difference of spread" if p <= c.alpha else "no difference of spread is shown"
        tested = f"{shown} (Brown-Forsythe {p_in_words(p)}, for this comparison alone)"
    text = f"{_head(c)}{change}, {tested}"
    if (carrier := c.spread_influence.carried_by) is not None:
        left = f"the ratio is {carrier.sd_ratio:.2f} instead of {ratio:.2f}"
        text += f"; it depends on one trial: without {carrier.label} {left}"
    return text + "."


def scatter_in_words(comparison: Comparison, form: Form = plain) -> str:
    """On a difference of spread that is shown within a family, on the scale of the comparison."""
    return f"{_head(comparison)}{spread_change_in_words(comparison, form)}."


def spread_change_in_words(comparison: Comparison, form: Form = plain) -> str:
    """ "trials scatter less in proportion, SD 4 % against 20 %, 0.21x [0.1, 0.5] (Brown-Forsythe p = 0.01)"."""
    c, spread = comparison, comparison.spread
    how_much = "in proportion" if c.scale == "ratio" else "in all"
    sds = [sd for sd in (spread.scaled_sd_baseline, spread.scaled_sd_treatment) if sd is not None]
    shown = [f"{100 * sd:.2g} %" if c.scale == "ratio" else form(sd) for sd in sds]
    p = spread.p_adjusted if spread.p_adjusted is not None else 1.0
    tested = f"Brown-Forsythe {p_in_words(p)}{_after_holm(c.family_size, spread.scaled_test.p, p)}"
    ratio = size_in_words(spread.scaled_ratio, form, is_ratio=True)
    return f"trials scatter {spread.verdict} {how_much}, SD {shown[1]} against {shown[0]}, {ratio} ({tested})"


def lattice_in_words(found: Lattice, what: str, form: Form = plain) -> str:
    """Values on a lattice, and the consequences."""
    if found.kind == "resolution":
        return f"{what}: the values are written in steps of {form(found.period)}; smaller differences cannot be seen."
    on = f"all {found.n}" if found.on_lattice == found.n else f"{found.on_lattice} of {found.n}"
    offset = (
        form(found.offset)
        if found.offset_low == found.offset_high
        else f"{form(found.offset_low)} to {form(found.offset_high)}"
    )
    return (
        f"{what}: {on} values are on a lattice of {form(found.period)} with an offset of {offset} ({found.levels} "
        f"steps, {p_in_words(found.p)} by chance), as if something polled with that period; differences smaller "
        "than it only show how often a tick was just missed."
    )


def summary_in_words(comparison: SummaryComparison, form: Form = plain) -> str:
    """One sentence on a comparison of means from mean, sd and n."""
    c, head, n, p = comparison, _head(comparison), _numbers(comparison), _p(comparison)
    value = c.difference.value or 0.0
    change = f"the mean differs by {_signed(value, form)}{_interval(c.difference.interval, form, nothing=0.0)}"
    refused = _not_tested(c.margin) if c.margin is not None and c.p is not None and c.equivalence_p is None else ""
    if c.verdict == "equivalent" and c.margin is not None:
        q = c.equivalence_p_adjusted
        return (
            f"{head}no difference of means larger than {_margin(c.margin, form)} "
            f"({change}, {n}, {p_in_words(q if q is not None else 1.0)})."
        )
    if c.verdict == "too_few_trials":
        return f"{head}too few trials ({n}): {c.welch.reason}."
    if c.verdict in ("higher", "lower"):
        return f"{head}the mean is {form(abs(value))} {c.verdict} ({change}, {n}{p}){refused}."
    if c.p is None:
        return f"{head}no test can be made: {c.welch.reason} ({n})."
    detectable = c.power.detectable
    could = ""
    if detectable is not None:
        could = f"; only a difference of {form(detectable)} or more would be found in 8 of 10 such experiments"
    needed = _needed(c.power.power, c.power.needed, c.margin, form)
    return f"{head}no difference is shown ({change}, {n}{p}){could}{needed}{refused}."


def _verdict(c: Comparison, n: str, form: Form) -> str:
    value = c.estimate.value
    size = size_in_words(c.estimate, form, is_ratio=c.scale == "ratio")
    if c.verdict in ("not_shown", "too_few_trials") and c.constant is not None:
        return f"identical in every trial, {form(c.constant)} ({n}), so nothing can be tested"
    p = _p(c)
    match c.verdict:
        case "higher" | "lower":
            return f"{size} {c.verdict}, {n}{p}" if value != _nothing(c) else f"{c.verdict} in rank, {n}{p}"
        case "equivalent":
            q = None if c.equivalence is None else c.equivalence.p_adjusted
            margin = "" if c.equivalence is None else _margin(c.equivalence.margin, form)
            there = c.p_adjusted is not None and c.p_adjusted <= c.alpha
            but = ", although there is a smaller one" if there else ""
            tested = f"{p_in_words(1.0 if q is None else q)}{corrected_words(c.family_size)}"
            return f"no difference larger than {margin}{but} ({size}, {n}, {tested})"
        case "below_noise_floor":
            floor = "" if c.noise_floor is None else _on_scale(c, c.noise_floor, form)
            return (
                f"{size}, {n}{p}, which is no more than the baseline differs from itself ({floor}): not claimed"
                f"{_more(c)}"
            )
        case "too_few_trials":
            return _too_few(c, size, n)
        case _:
            return _not_shown(c, size, n, p, form)


def _not_shown(c: Comparison, size: str, n: str, p: str, form: Form) -> str:
    text = f"no difference is shown ({size}, {n}{p})"
    if c.p is not None and c.p <= c.alpha < (c.p_adjusted or 0) and c.family_size > 1:
        text += f"; {p_in_words(c.p)} by itself, but it is one of {c.family_size} comparisons"
    if c.power.detectable is not None and c.blocks is None:
        if c.scale == "ratio":
            least = f"a factor of {factor(c.power.detectable)}"
        else:
            least = f"a difference of {form(c.power.detectable)}"
        text += f"; only {least} or more would be found in 8 of 10 such experiments"
    margin = None if c.equivalence is None else c.equivalence.margin
    return text + (_more(c) or _needed(c.power.power, c.power.needed, margin, form))


def _more(c: Comparison) -> str:
    """How many more trials would probably decide it."""
    return more_trials_words([c])


def more_trials_words(inconclusive: Sequence[Comparison]) -> str:
    """ "; about 12 more trials of each would probably decide 3 of them"; empty if no prediction exists."""
    known = [c.more_trials for c in inconclusive if c.more_trials is not None]
    if not known:
        return ""
    which = "it" if len(inconclusive) == 1 else "them" if len(known) == len(inconclusive) else f"{len(known)} of them"
    return f"; about {plural(max(known), 'more trial')} of each would probably decide {which}"


def too_few_words(inconclusive: Sequence[Comparison]) -> str:
    """ "; with 5 repetitions nothing can be shown among 16 comparisons, with 10 it can"; empty if not applicable."""
    short = [(n, c) for c in inconclusive if c.verdict == "too_few_trials" and (n := enough(c)) is not None]
    if not short:
        return ""
    most, c = max(short, key=lambda entry: entry[0])
    return f"; {family_words(c.blocks or min(c.baseline.n, c.treatment.n), most, c.family_size)}"


def _too_few(c: Comparison, size: str, n: str) -> str:
    if c.attainable_p is None or c.attainable_adjusted is None:
        return f"too few trials ({n}): there is nothing to compare"
    of_family = ""
    if c.attainable_p <= c.alpha:
        of_family = f" as one of {c.family_size} comparisons"
    blocks = f" in {c.blocks} blocks" if c.blocks is not None else ""
    return (
        f"too few trials: with {c.baseline.n} and {c.treatment.n}{blocks} no test can reach "
        f"{c.alpha:g}{of_family} (at best p = {c.attainable_adjusted:.2g}; seen: {size}){_could(c)}{_more(c)}"
    )


def _could(c: Comparison) -> str:
    """How many trials could show a difference."""
    least = enough(c)
    return "" if least is None else f"; {plural(least, 'trial' if c.blocks is None else 'block')} could"


def _needed(power: float | None, needed: int | None, margin: Margin | None, form: Form) -> str:
    if power is None or margin is None:
        return ""
    trials = f"; {needed} trials of either are needed for 0.8" if needed is not None and power < 0.8 else ""
    return f"; one of {_margin(margin, form)} would be found with power {power:.2g}{trials}"


def _no_margin(c: Comparison) -> str:
    """Remark that the margin was not tested, and why."""
    refused = c.equivalence is not None and c.equivalence.low is None and c.p is not None
    return _not_tested(c.equivalence.margin) if c.equivalence is not None and refused and c.constant is None else ""


def _not_tested(margin: Margin) -> str:
    return f"; a margin of {_margin(margin, plain)} is not tested: {NOT_POSITIVE}, an absolute one does not"


def _hangs(c: Comparison) -> str:
    """On single trials whose removal changes the verdict."""
    flips = c.influence.flips
    if not flips:
        return ""
    if c.verdict in CLAIMS:
        if (one := c.influence.carries) is not None:
            return f"; it depends on one trial: without {one.label} {_WORDS[one.verdict]}"
        lost = [trial for trial in flips if trial.verdict not in CLAIMS]
        return f"; it is borderline: without any one of {len(lost)} trials {_WORDS[lost[0].verdict]}" if lost else ""
    gained = [trial for trial in flips if trial.verdict in CLAIMS]
    if len(gained) == 1:
        return f"; one trial decides: without {gained[0].label} it would be {_WORDS[gained[0].verdict]}"
    return ""


_WORDS = {
    "higher": "higher",
    "lower": "lower",
    "equivalent": "no larger than the margin",
    "not_shown": "no difference is shown",
    "below_noise_floor": "it is within the noise of the baseline",
    "too_few_trials": "there are too few trials",
}


def _missing(c: Comparison) -> str:
    missing = c.baseline.missing + c.treatment.missing
    words = f"; {missing} without a value" if missing else ""
    if c.unused:
        words += f"; {len(c.unused)} not used, because their block has no trial to compare with"
    return words


def size_in_words(found: Estimate, form: Form, *, is_ratio: bool, more: str = "") -> str:
    """ "2.1x [1.8, 2.5]", "+3.1 ms [1.2 ms, 5 ms]"; `more` follows the interval; empty without a value."""
    if found.value is None:
        return ""
    nothing = 1.0 if is_ratio else 0.0
    between = _interval(found.interval, factor if is_ratio else form, more, nothing)
    return f"{factor(found.value)}x{between}" if is_ratio else f"{_signed(found.value, form)}{between}"


def _on_scale(c: Comparison, value: float, form: Form) -> str:
    return f"{factor(value)}x" if c.scale == "ratio" else form(value)


def _nothing(c: Comparison) -> float:
    return 1.0 if c.scale == "ratio" else 0.0


def _interval(interval: Interval | None, form: Form, more: str = "", nothing: float | None = None) -> str:
    """`nothing`: the value that would be no difference."""
    if interval is None:
        return ""
    excluded = None if nothing is None or interval.contains(nothing) else nothing
    low, high = ends(interval.low, interval.high, excluded, form)
    return f" [{low}, {high}{more}]"


def _signed(value: float, form: Form) -> str:
    return f"+{form(value)}" if value > 0 else form(value)


def _head(c: Comparison | SummaryComparison) -> str:
    return f"{f'{c.metric} ' if c.metric else ''}{c.treatment.name} against {c.baseline.name}: "


def _numbers(c: Comparison | SummaryComparison) -> str:
    return f"n = {c.baseline.n} and {c.treatment.n}"


def _p(c: Comparison | SummaryComparison) -> str:
    if c.p_adjusted is None:
        return ""
    return f", {p_in_words(c.p_adjusted)}{corrected_words(c.family_size)}"


def confidence_words(alpha: float, size: int) -> str:
    """ "95 % for all 12 together": the confidence of a family's intervals."""
    return format_confidence(1 - alpha) + (f" for all {size} together" if size > 1 else "")


def corrected_words(size: int) -> str:
    """ " for 12 comparisons together", after the p of a family."""
    return f" for {size} comparisons together" if size > 1 else ""


def _after_holm(size: int, p: float | None, adjusted: float) -> str:
    return " after Holm" if size > 1 and p != adjusted else ""


def _margin(margin: Margin, form: Form) -> str:
    return f"{margin.value * 100:.3g} %" if margin.relative else form(margin.value)


# -- in short --------------------------------------------------------------------------------------------------------


def effect_of(metric: Metric, comparison: Comparison) -> Effect | None:
    """Whether a shown difference is worse or better; None without one."""
    if comparison.verdict not in DIFFERENCES:
        return None
    return WORSE if (comparison.verdict == "higher") == (metric.better == LOWER) else BETTER


def effect_words(metric: Metric, comparison: Comparison) -> str:
    """ "1.80x [1.50, 2.20]", "+12 [+3, +20]"; without brackets if there is no interval."""
    value, interval = comparison.estimate.value, comparison.estimate.interval
    if value is None:
        return "–"

    def form(x: float) -> str:
        if comparison.scale == "ratio":
            return FACTOR.text(x)
        return f"{'+' if x > 0 else '−' if x < 0 else ''}{metric.format(abs(x))}"

    if comparison.scale == "difference" and interval is not None and interval.low == interval.high == value:
        return form(value) if value else f"±{metric.format(0.0)}"  # "0 %" alone would look like the share itself
    unit = "x" if comparison.scale == "ratio" else ""
    between = _interval(interval, form, nothing=1.0 if comparison.scale == "ratio" else 0.0)
    return f"{form(value)}{unit}{between}"


def by_turns(claims: Iterable[T], comparison: Callable[[T], Comparison], group: Callable[[T], object]) -> list[T]:
    """The largest difference of each group, then the second largest of each, and so on."""

    def amount(claim: T) -> float:
        c = comparison(claim)
        if c.estimate.value is None:
            return 0.0
        return abs(math.log(c.estimate.value)) if c.scale == "ratio" and c.estimate.value > 0 else math.inf

    groups: dict[object, list[T]] = {}
    for claim in sorted(claims, key=amount, reverse=True):
        groups.setdefault(group(claim), []).append(claim)
    longest = max(map(len, groups.values()), default=0)
    return [members[i] for i in range(longest) for members in groups.values() if i < len(members)]


def no_difference_of(comparison: Comparison) -> str:
    """The key of a comparison in no_difference_words()."""
    return str(comparison.verdict) if comparison.constant is None else SAME


def no_difference_words(margin: float) -> dict[str, str]:
    """Words for comparisons without a shown difference, by verdict; SAME: every trial gave the same value."""
    return {
        "equivalent": f"no difference larger than {100 * margin:.3g} %",
        "below_noise_floor": "no more than baselines differ from each other",
        "not_shown": "inconclusive",
        "too_few_trials": "too few trials",
        SAME: "identical in every trial",
    }


def estimate_in_words(estimate: Estimate, form: Form = plain) -> str:
    """ "12.3 [11.8, 12.9]", "12.3" or "–"."""
    return "–" if estimate.value is None else f"{form(estimate.value)}{_interval(estimate.interval, form)}"


def no_success(result: Result) -> str | None:
    """Remark on a result whose figures are not from successful trials."""
    if result.outcomes.success:
        return None
    reason = next((t.reason for t in result.trials_detail if t.reason), None)
    return f"no successful trial ({result.outcomes.words}{f': {reason}' if reason else ''})"
