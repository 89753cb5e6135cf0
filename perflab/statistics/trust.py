"""Whether to trust the results of a run: by what is missing, what was invalid, how noisy machine and baselines were,
and how many comparisons were decided. docs/report.md explains the grades."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterator, Sequence

from perflab.host import WARN
from perflab.results.comparison import OBSERVER, Finding
from perflab.results.files import Manifest
from perflab.results.outcome import FAILED, HARNESS_ERROR, INVALID, Outcome
from perflab.results.summary import Summary
from perflab.results.trial import Trial
from perflab.results.trust import Grade, Reason, Trust
from perflab.statistics.metrics import RATIO, named
from perflab.statistics.pairs import Place, places_of
from perflab.statistics.selection import names_of
from perflab.statistics.verdicts import more_trials_words, too_few_words
from perflab.units import numbered, plural

STEADY = 0.10  # baselines whose trials have a smaller relative standard deviation are called steady
MOST_INVALID = 1 / 3  # share of all trials; with more of them the others are not enough to rely on
MAX_EXAMPLES = 3  # of trials that do not count
MIN_TRIALS = 2  # that show how much trials differ
UNDECIDED = ("not_shown", "too_few_trials", "below_noise_floor")

# For trials that do not count: the words for one and for several.
_TROUBLES: tuple[tuple[Outcome, str, str], ...] = (
    (
        INVALID,
        "was invalid: a condition was not in effect, so it is excluded from statistics",
        "were invalid: a condition was not in effect, so they are excluded from statistics",
    ),
    (
        HARNESS_ERROR,
        f"was {HARNESS_ERROR.counted}, not by the system under test; excluded from statistics",
        f"were {HARNESS_ERROR.counted}, not by the system under test; excluded from statistics",
    ),
    (FAILED, "failed before its end and has no figures", "failed before their end and have no figures"),
)


def trust_of(summary: Summary, manifest: Manifest) -> Trust:
    """The judgement of a run, from its files; for a run in progress, so far."""
    places = places_of(summary.results)
    return Trust(
        (
            *([Reason("rough", "warn", f"{manifest.rough.capitalize()}.")] if manifest.rough is not None else []),
            *_planned(summary, manifest),
            *_rule(manifest),
            *_left_out(summary),
            *_machine(summary, manifest),
            *(() if summary.breaking_points else _spread(places)),
            *_comparisons(summary),
            *_carry_over(summary),
        )
    )


def _trials(summary: Summary) -> list[tuple[str, Trial]]:
    """Every trial that was not cut off by a signal, with the name of its result, in the order in which they ran."""
    names = names_of(summary.results)
    found = [(n, t) for n, r in zip(names, summary.results, strict=True) for t in r.trials_detail if not t.interrupted]
    return sorted(found, key=lambda entry: (entry[1].order, entry[1].trial))


def _planned(summary: Summary, manifest: Manifest) -> Iterator[Reason]:
    planned, ended = len(manifest.trials), len(_trials(summary))
    if not any(t.is_measured for _, t in _trials(summary)):
        yield Reason("planned", "bad", "No trial was measured to its end.")
    elif ended < planned:
        yield Reason("planned", "warn", f"{ended} of {planned} planned trials ran.")


def _rule(manifest: Manifest) -> Iterator[Reason]:
    if manifest.rule is not None:
        yield Reason("rule", "warn" if manifest.rule.ended == "interrupted" else "good", manifest.rule.words)


def _left_out(summary: Summary) -> Iterator[Reason]:
    trials = _trials(summary)
    if not trials:
        return
    fine = True
    for outcome, of_one, of_several in _TROUBLES:
        found = [(n, t) for n, t in trials if t.outcome == outcome and (outcome != FAILED or t.measured is False)]
        if found:
            grade: Grade = "bad" if len(found) > MOST_INVALID * len(trials) else "warn"
            words = of_one if len(found) == 1 else of_several
            details, more = _listed(found)
            yield Reason("invalid", grade, f"{len(found)} of {plural(len(trials), 'trial')} {words}.", details, more)
            fine = False
    if fine:
        yield Reason("invalid", "good", "No trial was invalid.")


def _listed(found: Sequence[tuple[str, Trial]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """ "Trials 5, 7 and 9 (message_flood): 1078176 messages were sent …".

    If there are many reasons, the most frequent kinds with an example; reasons that differ only in their numbers are
    one kind.
    """
    by_name: dict[str, list[Trial]] = {}
    kinds: dict[str, list[tuple[str, Trial]]] = {}
    for name, trial in found:
        by_name.setdefault(name, []).append(trial)
        kinds.setdefault(re.sub(r"\d[\d.]*", "0", trial.reason or ""), []).append((name, trial))
    parts: list[str] = []
    for name, trials in by_name.items():
        reason = next((f": {t.reason}" for t in trials if t.reason), "")
        parts.append(f"{numbered([t.trial for t in trials]).capitalize()} ({name}){reason}.")
    if len(parts) <= MAX_EXAMPLES:
        return tuple(parts), ()
    ordered = sorted(kinds.values(), key=len, reverse=True)
    said = []
    for members in ordered[:MAX_EXAMPLES]:
        name, trial = members[0]
        such = "such as " if len(members) > 1 else ""
        reason = trial.reason or "no reason was recorded"
        said.append(f"{plural(len(members), 'trial')}, {such}trial {trial.trial} ({name}): {reason}.")
    if rest := sum(map(len, ordered[MAX_EXAMPLES:])):
        said.append(f"{plural(rest, 'trial')} for other reasons.")
    return tuple(said), tuple(parts)


def _machine(summary: Summary, manifest: Manifest) -> Iterator[Reason]:
    """Results of the checks of the machine, unless nothing was measured on it."""
    if summary.results and all(result.middleware == "virtual" for result in summary.results):
        yield Reason("machine", "good", "Time was simulated: these results do not contain the machine's noise.")
        return
    warnings = [f"{c.name} ({c.value})" if c.value else c.name for c in manifest.preflight if c.status == WARN]
    if warnings:
        words = f"Noise on this machine: {', '.join(warnings)}; `perflab doctor` says what to do."
        yield Reason("machine", "warn", words)
    elif manifest.preflight:
        yield Reason("machine", "good", "No disturbances of measurements were found on this machine.")
    else:
        yield Reason("machine", "warn", "Disturbances of measurements on this machine were not recorded.")


def _spread(places: Sequence[Place]) -> Iterator[Reason]:
    """How much the trials of baselines differ: the metrics with the least and the most scatter."""
    baselines = [(p, p.baseline) for p in places if p.baseline is not None and p.baseline.trials]
    if not baselines:
        return
    found: list[tuple[float, str]] = []
    for place, baseline in baselines:
        for name in baseline.result.intervals:
            metric = named(name)
            sample = baseline.sample(metric, "")
            if metric.compared == RATIO and sample.n >= MIN_TRIALS and sample.positive:
                where = metric.words if place.only else f"{metric.words}, {place.words}"
                found.append((statistics.stdev(map(math.log, sample.values)), where))
    most = max(len(baseline.trials) for _, baseline in baselines)
    if not found:
        if most < MIN_TRIALS:
            words = "One trial of each: the scatter of trials is unknown, so no difference can be shown."
            yield Reason("spread", "bad", words)
        return
    least, largest = min(found), max(found)
    ends = dict.fromkeys(f"{percent(sd)} ({where})" for sd, where in (least, largest))
    words = f"The trials of the baseline scatter by {' to '.join(ends)}, standard deviation of up to {most} trials."
    yield Reason("spread", "good" if largest[0] <= STEADY else "warn", words)


def percent(share: float) -> str:
    """ "3.1 %", "117 %"."""
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:.0f} %"


def judged_comparisons(summary: Summary) -> list[Finding]:
    """Comparisons of systems, without figures that were identical in every trial."""
    found = () if summary.findings is None else summary.findings.comparisons
    return [c for c in found if c.kind != OBSERVER and c.constant is None]


def _comparisons(summary: Summary) -> Iterator[Reason]:
    judged = judged_comparisons(summary)
    undecided = [c for c in judged if c.verdict in UNDECIDED]
    if not judged:
        return
    if not undecided:
        all_of = f"All {len(judged)} comparisons are" if len(judged) > 1 else "The comparison is"
        yield Reason("comparisons", "good", f"{all_of} decided.")
        return
    are = "is" if len(judged) == 1 else "are"
    words = f"{len(undecided)} of {plural(len(judged), 'comparison')} {are} inconclusive"
    advice = more_trials_words(undecided) + too_few_words(undecided)
    yield Reason("comparisons", "warn", f"{words}{advice or '; more trials needed'}.")


def _carry_over(summary: Summary) -> Iterator[Reason]:
    remarks = () if summary.findings is None else summary.findings.remarks
    for remark in remarks:
        if remark.kind == "carry_over":
            yield Reason("carry_over", "warn", f"{remark.words[:1].upper()}{remark.words[1:]}.")
