"""Conditions, treatments and comparisons in the words of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perflab.errors import BadInput
from perflab.mitigation.kinds import PARTS
from perflab.results.comparison import Comparison
from perflab.results.trial import BASELINE, Circumstances
from perflab.statistics.metrics import Metric
from perflab.statistics.verdicts import corrected_words, effect_words, p_in_words
from perflab.units import NS_PER_S, format_duration


def condition_in_words(label: str, parameters: object) -> str:
    """ "4 × 80 % CPU load"; the label of a condition that is unknown here, or that lacks a parameter.

    A parameter of an unexpected type means that trial.json is damaged, which is reported.
    """
    kind = PARTS.get(label) or PARTS.get(label.rpartition("_")[0])  # a trial may have several of a kind
    if kind is None or kind.words is None or not isinstance(parameters, Mapping):
        return label
    try:
        return kind.words(parameters)
    except KeyError:
        return label
    except (TypeError, ValueError, BadInput):
        return f"{label} (its parameters cannot be read)"


def treatment_in_words(result: Circumstances) -> str:
    """ "4 × 80 % CPU load and pinning to 1 CPU"; the treatment's name if it was given one. "" of a baseline."""
    if not result.is_disturbed:
        return ""
    given = result.condition_parameters
    words = " and ".join(condition_in_words(label, parameters) for label, parameters in given.items())
    name = result.label
    known = any(name.startswith(condition) for condition in result.conditions)
    return (words or name) if known else f"“{name}” ({words})" if words else f"“{name}”"


def in_words(results: Sequence[Circumstances]) -> dict[str, str]:
    """Descriptions by treatment name; ambiguous ones include the name."""
    words = {r.label: treatment_in_words(r) for r in results}
    counts: dict[str, int] = {}
    for text in words.values():
        counts[text] = counts.get(text, 0) + 1
    return {name: f"{text} ({name})" if text and counts[text] > 1 else text or BASELINE for name, text in words.items()}


def size(metric: Metric, comparison: Comparison) -> str:
    """ "2.1× [1.8, 2.5]", "+12 [+3, +20]"."""
    words = effect_words(metric, comparison)
    return words.replace("x", "×", 1) if comparison.scale == "ratio" else words


def change(metric: Metric, comparison: Comparison, *, between: bool = False) -> str:
    """ "latency p99 rose 2.1× [1.8, 2.5]", "lost rose: +12 [+3, +20]".

    `between` two results that exist at the same time nothing rises: "latency p99 is 2.1× [1.8, 2.5]".
    """
    higher = comparison.verdict == "higher"
    value = comparison.estimate.value
    ratio = comparison.scale == "ratio"
    verb = ("is" if ratio else "differs:") if between else "rose" if higher else "fell"
    if value is None or value == (1.0 if ratio else 0.0):
        return f"{metric.words} {'is higher' if higher else 'is lower'} in rank"
    if between:
        return f"{metric.words} {verb} {size(metric, comparison)}"
    return f"{metric.words} {verb}{(' ' if higher else ' to ') if ratio else ': '}{size(metric, comparison)}"


def from_to(metric: Metric, comparison: Comparison, *, between: bool = False) -> str:
    """ "from 502 µs to 893 µs", the medians; "893 µs against 502 µs" between two; empty if one is unknown."""
    baseline, treatment = comparison.baseline.median.value, comparison.treatment.median.value
    if baseline is None or treatment is None:
        return ""
    if between:
        return f"{metric.format(treatment)} against {metric.format(baseline)}"
    return f"from {metric.format(baseline)} to {metric.format(treatment)}"


def numbers(comparison: Comparison) -> str:
    """ "n = 8 and 24"; the treatment's is the first one."""
    return f"n = {comparison.treatment.n} and {comparison.baseline.n}"


def certainty(comparison: Comparison) -> str:
    """ "n = 8 and 24, p = 0.001 for 12 comparisons together"."""
    return ", ".join(filter(None, (numbers(comparison), p_of(comparison))))


def p_of(comparison: Comparison) -> str:
    """ "p = 0.001 for 12 comparisons together", of the deciding test; empty if there is none."""
    p = comparison.p_adjusted
    if comparison.verdict == "equivalent":
        p = None if comparison.equivalence is None else comparison.equivalence.p_adjusted
    return "" if p is None else f"{p_in_words(p)}{corrected_words(comparison.family_size)}"


def seconds(ns: float | None) -> str:
    return "" if ns is None else format_duration(ns / NS_PER_S)


def plain(value: object) -> str:
    """A value of a manifest or of evidence for people: switches, lists, numbers with at most four digits."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:,.0f}".replace(",", " ")
    if isinstance(value, int):
        return f"{value:,}".replace(",", " ") if abs(value) >= 10_000 else str(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{k} {plain(v)}" for k, v in value.items()) or "none"
    if isinstance(value, list | tuple):
        return ", ".join(plain(v) for v in value) or "none"
    return str(value)


def sentence(text: str) -> str:
    """With a capital letter, unless it begins with a name, and with a full stop."""
    text = text[:1].upper() + text[1:] if text[:1].islower() and " " in text else text
    return text if text.endswith((".", "?", "!")) else f"{text}."
