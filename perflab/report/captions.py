"""Words and notes shared by several pictures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from perflab.report import axes
from perflab.report.results import FIGURES, ROUND_TRIP, Trials, was_measured
from perflab.results.outcome import Outcomes
from perflab.results.run import TrialTables
from perflab.units import format_confidence, format_count, format_duration

WHAT = {
    "latency": "Latency, from publishing to the callback",
    "response": "Response, from the intended time to the callback",
    "publish_delay": "Publish delay, from the intended time to publishing",
    "publish_call": "Publish call, the duration of publish()",
    "dispatch": "Dispatch, from arrival to the callback",
    "work": "Work, the duration of the callback",
    "serialize": "Serialize, encoding a message from its struct",
    "deserialize": "Deserialize, decoding it into one",
    "round_trip": "Round trip, from a request to the callback of its reply",
}


MAX_SINGLE = 10  # largest number of trials of a result that are drawn individually
MAX_NAMED = 4  # largest number of results that are mentioned individually


T = TypeVar("T")


def title_of(name: str, own: Mapping[str, str]) -> str:
    """The description of a figure: of messages, or one of these."""
    found = WHAT.get(name) or own.get(name) or words(name)
    return f"{found[:1].upper()}{found[1:]}"


def words(name: str) -> str:
    return name.replace("_", " ")


def workloads(results: Sequence[Trials]) -> str:
    return ", ".join(dict.fromkeys(result.workload for result in results))


def durations(results: Sequence[Trials]) -> str:
    """ "12 s", "3 trials of 12 s", "4 trials of 10 s to 12 s"."""
    trials = [trial for result in results for trial in result.trials]
    lengths = sorted({trial.duration_s for trial in trials})
    of = " to ".join(format_duration(s) for s in (lengths if len(lengths) == 1 else (lengths[0], lengths[-1])))
    return of if len(trials) == 1 else f"{len(trials)} trials of {of}"


def subtitle(counts: Sequence[tuple[Trials, str, int | None]]) -> str:
    """The workloads, how many messages of the first figure the picture covers, and how long they were measured."""
    shown = list({id(result): result for result, *_ in counts}.values())
    numbers = [n for _, name, n in counts if name == counts[0][1]]
    known = [n for n in numbers if n is not None]
    what = counted_as([counts[0][1]])
    messages = f"{format_count(sum(known))} {what}, " if len(known) == len(numbers) else ""
    return f"{workloads(shown)}: {messages}{durations(shown)}"


def counted_as(names: Sequence[str]) -> str:
    """What the values of these figures measure."""
    if set(names) == {ROUND_TRIP}:
        return "replies"
    return "messages" if all(name in FIGURES for name in names) else "values"


def left_out(results: Sequence[Trials], measured: Sequence[str] = ()) -> list[str]:
    """Which trials are missing in the picture, or are in it although they did not succeed; then the results that lack a
    figure which others have."""
    bad = [result for result in results if not any(t.measured for t in result.trials)]
    missed = [(r, found) for r in results if r not in bad and (found := [t for t in r.trials if t.missed_criterion])]
    without = [(r, r.left_out) for r in results if r not in bad and r.left_out]
    said = "did not succeed, and counts as measured"
    notes = [f"{r.label}: no trial succeeded ({_outcomes(r.trials)}); this is what was recorded." for r in bad]
    if len(missed) > MAX_NAMED:
        notes.append(_of_many(missed, "did not succeed, and count as measured"))
    else:
        notes += [f"{result.label}: {_trials(trials)} {said}." for result, trials in missed]
    if len(without) > MAX_NAMED:
        notes.append(_of_many(without, "did not succeed, and are left out"))
    else:
        notes += [f"{result.label}: {_trials(trials)} ({_outcomes(trials)}) is left out." for result, trials in without]
    missing = [(result, name) for result in results for name in measured if not was_measured(result, name)]
    return [*notes, *(f"{result.label}: no {words(name)} was measured." for result, name in missing)]


def _of_many(found: Sequence[tuple[Trials, Sequence[TrialTables]]], what: str) -> str:
    """ "31 trials of 17 results are left out."."""
    return f"{sum(len(trials) for _, trials in found)} trials of {len(found)} results {what}."


def _trials(trials: Sequence[TrialTables]) -> str:
    return f"trial {', '.join(str(t.number) for t in trials)}"


def _outcomes(trials: Sequence[TrialTables]) -> str:
    return ", ".join(sorted({t.outcome.words for t in trials}))


def left_out_words(outcomes: Outcomes) -> str:
    """ "1 trial was invalid and 2 trials were stopped by a perflab error: left out.", or nothing."""
    parts = [f"{n} {'trial was' if n == 1 else 'trials were'} {words}" for _, n, _, words in outcomes.counts]
    return f"{' and '.join(parts)}: left out." if parts else ""


def interval_of(confidences: Iterable[float]) -> str:
    """ "95 % interval", with the levels that the results have; without a level "interval"."""
    return f"{format_confidence(*confidences)} interval".strip()


def first_of(found: Sequence[object], shown: Sequence[object], what: str) -> list[str]:
    """ "The first 7 of 9 variants.", if some are not shown."""
    return [f"The first {len(shown)} of {len(found)} {what}."] if len(shown) < len(found) else []


def single(trials: Sequence[T]) -> list[T]:
    """The trials of a result that are drawn individually, evenly chosen in their order; none if there is only one
    trial."""
    return [trials[i] for i in axes.spread(len(trials), MAX_SINGLE)] if len(trials) > 1 else []


def not_single(results: Sequence[Trials]) -> list[str]:
    """A note if not every trial has its own line."""
    if all(len(result.trials) <= MAX_SINGLE for result in results):
        return []
    return [f"At most {MAX_SINGLE} trials of a result have their own line; the thick lines cover all of them."]


def groups(results: Sequence[Trials]) -> list[tuple[int, str]]:
    """Every result with its group."""
    return [(group, result.label) for group, result in enumerate(results)]
