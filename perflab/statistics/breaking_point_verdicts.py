"""The result of a search for a breaking point, in sentences that claim no more than was seen."""

from __future__ import annotations

from collections.abc import Callable

from perflab.results.curve import Bounds, Found, State
from perflab.results.outcome import SUCCESS
from perflab.units import format_confidence, plural

# Names in tables for the states that docs/breaking_point.md explains.
STATES: dict[State, str] = {
    "found": "found",
    "not_reached": "not reached",
    "below_low": "broken at the lowest level",
    "not_monotone": "not monotone",
    "unsettled": "not settled",
    "not_producible": "not producible",
}

Form = Callable[[float], str]


def plain(value: float) -> str:
    """A level without a unit, with four digits or all of its integer digits."""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def sentences(found: Found, form: Form = plain, criterion: str | None = None) -> list[str]:
    """The finding first, then remarks on its reliability.

    `criterion`: its text, "success" or "latency.p99 <= 5ms"; None: "the criterion".
    """
    finding = _finding(found, form, criterion or "the criterion")
    said = [f"{finding[0].upper()}{finding[1:]}" if criterion in (None, SUCCESS) else finding]
    if found.state != "not_producible" and found.producible is not None:
        said.append(f"Beyond {form(found.producible)} no level could be produced.")
    if left := _left_out(found):
        said.append(left)
    if found.state in ("found", "unsettled") and found.monotone_p is not None and found.monotone_p < 0.05:
        said.append(f"The share of trials that meet it may not fall everywhere (p = {found.monotone_p:.2g}).")
    return said


def _finding(found: Found, form: Form, criterion: str) -> str:
    share, n = f"{100 * found.share:g} %", plural(found.trials, "trial")
    sure = "" if found.confidence is None else format_confidence(found.confidence)
    first, last = (found.high, found.low) if found.falls else (found.low, found.high)  # the harmless end, the other
    match found.state:
        case "found" if found.value is not None and found.interval is not None:
            return f"{_breaks(found, form, criterion)} {_interval(found.interval, form)} ({sure}, {n})."
        case "not_reached":
            return (
                f"Not reached: up to {form(last)} at least {share} of the trials {_meet(criterion)} "
                f"({sure}, {n}{_seen(found, last, form)})."
            )
        case "below_low":
            return (
                f"Already at {form(first)} less than {share} of the trials {_meet(criterion)} "
                f"({sure}, {n}{_seen(found, first, form)})."
            )
        case "not_monotone" if found.rises is not None and found.monotone_p is not None:
            a, b, c, d = found.rises
            return (
                f"Not monotone: fewer of the trials {_meet(criterion)} at {_span(a, b, form)} "
                f"than at {_span(c, d, form)}{_counts(found, (a, b), (c, d))} (p = {found.monotone_p:.2g}, {n}): "
                "there is no one breaking point."
            )
        case "not_producible" if found.producible is None or not found.trials:
            return f"Not producible: no level gave a valid trial from {form(first)} on."
        case "not_producible" if found.producible is not None:
            return (
                f"Not reached as far as levels can be produced: up to {form(found.producible)} at least {share} of the "
                f"trials {_meet(criterion)} ({sure}, {n}{_seen(found, found.producible, form)})."
            )
    if not found.trials:
        return "Unsettled: there is no valid trial yet."
    if found.interval is None:
        return f"Unsettled after {n}: it is unknown where {_falls(criterion, share)} ({found.stopped})."
    where = f"somewhere in {_interval(found.interval, form)}"
    return (
        f"Unsettled after {n}: {_falls(criterion, share)} {where} ({sure}), which is wider than requested "
        f"({found.stopped})."
    )


def _breaks(found: Found, form: Form, criterion: str) -> str:
    share, value = f"{100 * found.share:g} %", found.value
    assert value is not None
    if found.integer:
        return f"{form(value)} is the first level at which less than {share} of the trials {_meet(criterion)}"
    return f"{_falls(criterion, share)} at {form(value)}"


def _meet(criterion: str) -> str:
    """After "the trials"."""
    return "succeed" if criterion == SUCCESS else f"meet {criterion}"


def _falls(criterion: str, share: str) -> str:
    return f"success falls to {share}" if criterion == SUCCESS else f"{criterion} is met in {share} of the trials"


def _interval(bounds: Bounds, form: Form) -> str:
    below = bounds.beyond in ("low", "both")
    above = bounds.beyond in ("high", "both")
    text = f"[{form(bounds.low)}, {form(bounds.high)}]"
    if below and above:
        return f"{text} or beyond either end"
    return f"{text} or {'below' if below else 'above'}" if below or above else text


def _seen(found: Found, level: float, form: Form) -> str:
    """The results at one level, with Wilson's interval."""
    at = next((x for x in found.levels if x.level == level and x.n), None)
    if at is None or at.low is None or at.high is None:
        return f"; none at {form(level)} itself"
    return f"; {at.met} of {at.n} at {form(level)}, share [{100 * at.low:.0f} %, {100 * at.high:.0f} %]"


def _counts(found: Found, lower: tuple[float, float], upper: tuple[float, float]) -> str:
    texts = []
    for ends in (lower, upper):
        low, high = min(ends) * (1 - 1e-9), max(ends) * (1 + 1e-9)
        inside = [x for x in found.levels if low <= x.level <= high]
        texts.append(f"{sum(x.met for x in inside)} of {sum(x.n for x in inside)}")
    return f", {texts[0]} against {texts[1]} trials"


def _span(a: float, b: float, form: Form) -> str:
    return form(a) if form(a) == form(b) else f"{form(min(a, b))} to {form(max(a, b))}"


def _left_out(found: Found) -> str | None:
    left = found.left_out.outcomes
    return f"Left out: {plural(left.total, 'trial')} ({left.words}); they count neither way." if left.total else None
