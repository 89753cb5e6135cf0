"""What a reader must know first, and then what the trials show, in words with intervals and numbers of trials."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from perflab.columns import Tone
from perflab.report.run_page.effects import (
    certainty,
    change,
    from_to,
    in_words,
    numbered,
    numbers,
    plain,
    sentence,
    size,
)
from perflab.report.run_page.runs import ReportRun
from perflab.results.comparison import (
    BETTER,
    CONDITION,
    DIFFERENCES,
    FACTOR,
    OBSERVER,
    WORSE,
    Comparison,
    Effect,
    Finding,
    Remark,
    SuccessRate,
)
from perflab.results.curve import BreakingPoint, Curve, CurveMetric
from perflab.results.outcome import FAILED, HARNESS_ERROR, INVALID, Outcome, Outcomes
from perflab.results.trial import CONTROL, MEASURED, Result, Trial
from perflab.statistics.comparison import MARGIN, effect_of
from perflab.statistics.curve_verdicts import UNITS, level_words
from perflab.statistics.metrics import LOWER, Metric, chosen, find
from perflab.statistics.remarks import SAME as SAME_EVERYWHERE
from perflab.statistics.remarks import VIRTUAL, no_difference_words, trials_advice
from perflab.statistics.runs import compare_runs
from perflab.statistics.selection import match, names_of, place_words
from perflab.statistics.verdicts import caveats_in_words
from perflab.units import format_count, plural

MAX_CLAIMS = 10  # the others are folded
MAX_REASONS = 3  # of trials that do not count, above the findings; the others are folded

DIFFERS = "differs"  # between levels, and neither up nor down over all of them

# Sign, word and tone of a statement on a difference.
_KINDS: dict[str, tuple[str, str, Tone]] = {
    WORSE: ("▲", "worse", "bad"),
    BETTER: ("▼", "better", "good"),
    DIFFERS: ("≠", "not steady", ""),
    "equivalent": ("=", "no difference", ""),
    "same": ("=", "the same", ""),
    "below_noise_floor": ("≈", "within noise", "faint"),
    "not_shown": ("?", "not shown", "faint"),
    "too_few_trials": ("?", "too few trials", "faint"),
}

# Between what is said of figures without a difference and the figures.
_JOINTS = {"equivalent": " in", "below_noise_floor": ":", "not_shown": " in", "too_few_trials": "; seen were"}
NOT_INTERLEAVED = (
    "The runs were not interleaved: whatever changed on the machine between them is in these differences, too."
)

# Which remarks of the summary stand here, with the sign and the word before them. Those of differences are said anew,
# those about the data stand with its quality.
_REMARKS: dict[str, tuple[str, str, Tone]] = {
    "spread": ("≠", "spread", ""),
    "carry_over": ("!", "carry-over", "warn"),
    "same_seed": ("!", "same seeds", "warn"),
    "same": ("=", "the same", ""),
}
OF_QUALITY = ("missing", "unused", "lattice", "outliers", "observer")
_FIRST = (HARNESS_ERROR, INVALID, "ended_early")


@dataclass(frozen=True)
class Statement:
    """A sentence, the detail behind it, and what kind of statement it is."""

    sign: str
    kind: str
    tone: Tone
    words: str
    detail: str = ""


@dataclass(frozen=True)
class Box:
    """What must be read before all else, and what is folded behind it."""

    heading: str
    texts: Sequence[str]
    tone: Tone
    folded: Sequence[str] = ()


@dataclass(frozen=True)
class Found:
    """Statements on one run, or on two; those that are folded, with what they are; and what could be done next."""

    title: str  # empty where there is but one
    statements: Sequence[Statement] = ()
    folded: Sequence[Statement] = ()
    folded_title: str = ""
    spreads: Sequence[str] = ()
    advice: str = ""
    note: str = ""


# ---- what must be said first


def first(runs: Sequence[ReportRun]) -> list[Box]:
    """Of runs of which something is wrong: interrupted, invalid trials, failures of the laboratory."""
    return [box for run in runs for box in _first_of(run, f"{run.name}: " if len(runs) > 1 else "")]


def _first_of(run: ReportRun, where: str) -> list[Box]:
    said, folded = _troubles(run)
    if said:
        tone: Tone = "warn" if is_whole(run) else "bad"
        return [Box(f"{where}read this first", [*said, *run.notes], tone, folded)]
    return [Box(f"{where}about the data of this run", run.notes, "warn")] if run.notes else []


def is_whole(run: ReportRun) -> bool:
    return not _interrupted(run) and (run.planned is None or count_trials(run) >= run.planned)


def is_running(run: ReportRun) -> bool:
    """Whether the perflab that makes it is alive, and on this machine."""
    from perflab.host import Host
    from perflab.runs.controller import RUNNING, controller_state
    from perflab.runs.rundir import SUMMARY

    if not run.own or "controller" not in run.manifest or (run.data.path / SUMMARY).exists():
        return False
    return controller_state(run.manifest, Host()) == RUNNING


def count_trials(run: ReportRun) -> int:
    """Planned trials that came to an end: extra and invalid ones too, interrupted ones not."""
    return sum(len(r.trials_detail) for r in run.results) - len(_interrupted(run))


def _interrupted(run: ReportRun) -> list[Trial]:
    return [t for _, _, t in run.trials if run.is_interrupted(t)]


def _troubles(run: ReportRun) -> tuple[list[str], list[str]]:
    """Sentences, and those that are folded behind them."""
    said: list[str] = []
    folded: list[str] = []
    if not is_whole(run):
        of = "" if run.planned is None else f" of {run.planned} planned"
        n = count_trials(run)
        here = f"{n}{of} trials are here." if of or n != 1 else "1 trial is here."
        if is_running(run):
            return [f"This run is still going on: {here}"], []
        cut = _interrupted(run)
        during = f" during trial {cut[-1].trial}" if cut else ""
        said.append(
            f"This run was ended before it was complete{during}: {here} "
            f"`perflab {run.verb} --resume {shlex.quote(str(run.data.path))}` goes on with the rest."
        )
    troubles: tuple[tuple[Outcome, str], ...] = (
        (INVALID, "invalid: a condition was not in effect, so they are in no statistics"),
        (HARNESS_ERROR, f"{HARNESS_ERROR.counted}, not by what it measures; in no statistics"),
        (FAILED, "failed before their end and have no figures"),
    )
    for outcome, words in troubles:
        found = [
            (label, t)
            for label, _, t in run.trials
            if t.outcome == outcome
            and not run.is_interrupted(t)
            and not (outcome == FAILED and t.measured is not False)
        ]
        if found:
            told, rest = _listed(found, words, len(run.trials), failed=outcome == FAILED)
            said += told
            folded += rest
    said += [r.words for r in run.remarks if r.kind in _FIRST and not run.trials]
    return said, folded


def _listed(
    found: Sequence[tuple[str, Trial]], words: str, all_trials: int, *, failed: bool
) -> tuple[list[str], list[str]]:
    """ "3 of 12 trials were invalid: …. Trials 5, 7 and 9 (message_flood): 1078176 messages were sent …".

    Where there are several reasons each is a line of its own; where there are many, the most frequent kinds of them
    with an example, and each of them to be folded.
    """
    by_label: dict[str, list[Trial]] = {}
    for label, trial in found:
        by_label.setdefault(label, []).append(trial)
    parts: list[str] = []
    for label, trials in by_label.items():
        reason = next((t.reason for t in trials if t.reason), "")
        which = numbered([t.trial for t in trials])
        parts.append(f"{which.capitalize()} ({label}){f': {reason}' if reason else ''}.")
    verb = "was" if len(found) == 1 else "were"
    head = words.replace("they are", "it is").replace("their", "its").replace("have", "has") if verb == "was" else words
    if failed:
        verb, head = "", head if len(found) == all_trials else f"{head}; what is said below is of the others"
    told = f"{len(found)} of {all_trials} trials {f'{verb} ' if verb else ''}{head}."
    if len(parts) == 1:
        return [f"{told} {parts[0]}"], []
    return ([told, *parts], []) if len(parts) <= MAX_REASONS else ([told, *_most_frequent(found)], parts)


def _most_frequent(found: Sequence[tuple[str, Trial]]) -> list[str]:
    """Reasons that differ in their numbers alone are one kind."""
    kinds: dict[str, list[tuple[str, Trial]]] = {}
    for label, trial in found:
        kinds.setdefault(re.sub(r"\d[\d.]*", "0", trial.reason or ""), []).append((label, trial))
    ordered = sorted(kinds.values(), key=len, reverse=True)
    said = []
    for members in ordered[:MAX_REASONS]:
        label, trial = members[0]
        reason = trial.reason or "no reason was recorded"
        such = "such as " if len(members) > 1 else ""
        said.append(f"{plural(len(members), 'trial')}, {such}trial {trial.trial} ({label}): {reason}.")
    if rest := sum(map(len, ordered[MAX_REASONS:])):
        said.append(f"{plural(rest, 'trial')} for other reasons.")
    return said


def verdict(runs: Sequence[ReportRun]) -> str:
    """One line: how many trials, with which outcomes, and what was found."""
    outcomes = Outcomes.together([result.outcomes for run in runs for result in run.results])
    cut = sum(len(_interrupted(run)) for run in runs)
    total = outcomes.total
    if not total:
        return "No trial was recorded."
    counts = [(n - cut if o == HARNESS_ERROR else n, o.counted + outcomes.cases(o)) for o, n in outcomes]
    parts = [f"{format_count(n)} {what}" for n, what in (*counts, (cut, "interrupted")) if n]
    trials = plural(total, "trial")
    head = f"{trials}, all successful" if outcomes.success == total > 1 else f"{trials}: {', '.join(parts)}"
    curves = [curve for run in runs for curve in run.summary.curves]
    head = ". ".join([head, *_courses(curves)])
    comparisons = [c for run in runs for c in run.comparisons if c.kind != OBSERVER]
    if not comparisons:
        return f"{head}."
    worse = sum(c.effect == WORSE for c in comparisons)
    better = sum(c.effect == BETTER for c in comparisons)
    none = sum(c.verdict == "equivalent" or c.constant is not None for c in comparisons)
    found = [
        f"{n} {what}"
        for n, what in ((worse, "worse"), (better, "better"), (none, "without a difference that matters"))
        if n
    ]
    rest = len(comparisons) - worse - better - none
    if rest:
        found.append(f"{rest} undecided" if found else "none decided")
    which = f"{len(comparisons)} comparisons{' of single levels' if curves else ''}"
    return f"{head}. Of {which} {', '.join(found)}."


def _courses(curves: Sequence[Curve]) -> list[str]:
    """ "Over `message_flood.rate` worse: latency p50, latency p99"; of several variants those of any of them."""
    said = []
    for factor in dict.fromkeys(curve.factor for curve in curves):
        by_kind: dict[str, dict[str, None]] = {WORSE: {}, BETTER: {}, DIFFERS: {}}
        for curve in curves:
            for name, of_metric in curve.metrics.items() if curve.factor == factor else ():
                metric = find(name)
                if metric is not None and (kind := _course(metric, of_metric)) in by_kind:
                    by_kind[kind].setdefault(metric.words)
        parts = [f"{kind}: {', '.join(names)}" for kind, names in by_kind.items() if names]
        said.append(f"Over `{factor}` {'; '.join(parts) or 'no change is shown'}")
    return said


# ---- what was found


def section(runs: Sequence[ReportRun]) -> list[Found]:
    """Of each run what it shows, and of each later one against the first."""
    reference, *others = runs
    return [
        *(_of_run(run, run.name if others else "") for run in runs),
        *(_against(reference, other) for other in others),
    ]


def _of_run(run: ReportRun, title: str) -> Found:
    courses = [*_of_searches(run), *_of_curves(run)]
    claims, others = _of_comparisons(run)
    remarks = [
        Statement(*_REMARKS[remark.kind], sentence(_remark(run, remark)))
        for remark in run.remarks
        if remark.kind in _REMARKS
    ]
    if courses:  # they say in a sentence what the levels say one by one
        levels = [*_failures(run), *claims, *others, *remarks]
        return Found(title, courses, levels, "Every level against the baseline")
    said = [*_failures(run), *claims[:MAX_CLAIMS], *others, *remarks]
    rest = claims[MAX_CLAIMS:]
    spreads, advice = _nothing_to_compare(run)
    return Found(title, said, rest, f"{len(rest)} more differences", spreads, advice)


def _failures(run: ReportRun) -> list[Statement]:
    """Results of which some trials failed, with Wilson's interval of the share that succeeded."""
    names = in_words([r for r in run.results if r.is_disturbed])
    rates = () if run.summary.findings is None else run.summary.findings.success_rates
    several = len({rate.variant for rate in rates}) > 1
    found = []
    for rate in rates:
        if rate.successes == rate.n:
            continue
        name = names.get(rate.treatment)
        place = "without observers" if rate.purpose == CONTROL else "at the baseline" if not name else f"under {name}"
        where = f"{rate.variant}, {place}" if several else place[:1].upper() + place[1:]
        interval = rate.interval
        between = f" [{100 * interval.low:.0f} %, {100 * interval.high:.0f} %]" if interval else ""
        share = f"{100 * rate.successes / rate.n:.0f} %{between}"
        reason = _first_failure(run, rate)
        detail = f"n = {rate.n}{f'; for example {reason}' if reason else ''}"
        words = f"{where}: {rate.successes} of {plural(rate.n, 'trial')} succeeded, {share}."
        found.append(Statement("✖", "failed", "bad", words, detail))
    return found


def _first_failure(run: ReportRun, rate: SuccessRate) -> str:
    for result in run.results:
        if (
            result.label == rate.treatment
            and (result.purpose or MEASURED) == (rate.purpose or MEASURED)
            and rate.variant.endswith(place_words(result))
        ):
            told = (t.reason for t in result.trials_detail if t.outcome == FAILED and t.reason)
            return next(told, "")
    return ""


def _remark(run: ReportRun, remark: Remark) -> str:
    """Its words without what the sign before it says already; of what is the same everywhere with the value."""
    if remark.kind != SAME_EVERYWHERE or not remark.about:
        return remark.words
    values: dict[str, set[str]] = {}
    for c in run.comparisons:
        if c.constant is not None and (metric := find(c.metric)) is not None:
            values.setdefault(metric.name, set()).add(f"{metric.words} {metric.format(c.constant)}")
    if remark.metrics and all(len(values.get(name, ())) == 1 for name in remark.metrics):
        return f"{', '.join(next(iter(values[name])) for name in remark.metrics)} in every trial"
    return f"in every trial the same: {remark.about}"


def _of_comparisons(run: ReportRun) -> tuple[list[Statement], list[Statement]]:
    """Differences that are shown, the largest of each treatment first; and, by treatment, where there is none."""
    if run.summary.findings is None:
        return [], []
    comparisons = [c for c in run.comparisons if c.kind != OBSERVER]
    several = len({c.variant for c in comparisons if c.kind == CONDITION}) > 1
    names = in_words([r for r in run.results if r.is_disturbed])
    shown = [c for c in comparisons if c.verdict in DIFFERENCES]
    found = [_claim(c, names, several) for c in sorted(_by_turns(shown), key=lambda c: c.effect != WORSE)]
    undecided = [(_place(c, names, several), find(c.metric), c) for c in comparisons if c.constant is None]
    return found, _not_decided(undecided, run.summary.findings.margin, run.summary.findings.trials_needed)


_Undecided = tuple[str, Metric | None, Comparison]


def _not_decided(undecided: Sequence[_Undecided], margin: float, needed: int | None = None) -> list[Statement]:
    """A statement for each verdict and place, on all figures of which no difference is shown there."""
    found = []
    for decided, head in no_difference_words(margin).items():
        groups: dict[str, list[_Undecided]] = {}
        for entry in undecided:
            if entry[2].verdict == decided:
                groups.setdefault(entry[0], []).append(entry)
        for place, members in groups.items():
            figures = ", ".join(
                c.metric or "" if metric is None else f"{metric.words} ({size(metric, c)})" for _, metric, c in members
            )
            few = decided == "too_few_trials"
            detail = numbers(members[0][2]) + (trials_advice(needed) if few and needed is not None else "")
            where = f"{place}: " if place else ""
            found.append(Statement(*_KINDS[decided], f"{where}{head}{_JOINTS[decided]} {figures}.", detail))
    return found


def _claim(comparison: Finding, names: dict[str, str], several: bool) -> Statement:
    metric = find(comparison.metric)
    if metric is None:  # of a version that knows more
        return Statement(_kind(comparison.effect)[0], comparison.effect or "", "", comparison.words)
    between = comparison.kind != CONDITION
    extra = caveats_in_words(comparison)
    place = f"{_place(comparison, names, several)}{':' if between else ','}"
    words = f"{place} {change(metric, comparison, between=between)}{extra}."
    return Statement(*_kind(comparison.effect), words, _detail(metric, comparison, between=between))


def _kind(effect: Effect | None) -> tuple[str, str, Tone]:
    return _KINDS[WORSE if effect == WORSE else BETTER]


def _detail(metric: Metric, comparison: Comparison, *, between: bool) -> str:
    """ "from 502 µs to 893 µs, n = 8 and 24, p = 0.001 after Holm"."""
    return ", ".join(part for part in (from_to(metric, comparison, between=between), certainty(comparison)) if part)


def _place(comparison: Finding, names: dict[str, str], several: bool) -> str:
    """ "Under 4 × 80 % CPU load", "cyclonedds, events: under …", "fastdds against cyclonedds"."""
    name = comparison.treatment.name
    if comparison.kind != CONDITION:
        against = f"{name} against {comparison.baseline.name}"
        return f"{comparison.variant}: {against}" if comparison.kind == FACTOR and comparison.variant else against
    under = f"nder {names.get(name, name)}"
    return f"{comparison.variant}: u{under}" if several and comparison.variant else f"U{under}"


def _by_turns(claims: Sequence[Finding]) -> list[Finding]:
    """The largest difference of each treatment, then the second largest of each, and so on."""

    def amount(comparison: Finding) -> float:
        value = comparison.estimate.value
        if value is None:
            return 0.0
        return abs(math.log(value)) if comparison.scale == "ratio" and value > 0 else math.inf

    groups: dict[tuple[str | None, str], list[Finding]] = {}
    for comparison in sorted(claims, key=amount, reverse=True):
        groups.setdefault((comparison.variant, comparison.treatment.name), []).append(comparison)
    longest = max(map(len, groups.values()), default=0)
    return [group[i] for i in range(longest) for group in groups.values() if i < len(group)]


def _of_curves(run: ReportRun) -> list[Statement]:
    """One for each metric of a curve: how it goes over the levels; behind it knee and saturation."""
    found: list[tuple[str, Statement]] = []
    curves = run.summary.curves
    several = len({c.variant for c in curves}) > 1
    for curve in curves:
        for name, of_metric in curve.metrics.items():
            if words := [_as_signs(text) for text in of_metric.words]:
                metric = find(name)
                kind = _course(metric, of_metric)
                head = f"{_over(curve, several)}, {_sentence_within(words[0])}"
                own = f"{name if metric is None else metric.words}: "
                detail = " ".join(sentence(text.removeprefix(own)) for text in words[1:])
                found.append((kind, Statement(*_KINDS[kind], head, detail)))
    order = list(_KINDS)
    ordered = [one for _, one in sorted(found, key=lambda entry: order.index(entry[0]))]
    return [*(said for curve in curves if (said := _successes(curve, several)) is not None), *ordered]


def _successes(curve: Curve, several: bool) -> Statement | None:
    """ "Over `message_flood.rate`, 26 of 36 trials succeeded." with the shares at the levels; None where all did."""
    levels = [level for level in curve.levels if level.judged]
    judged, successes = sum(level.judged for level in levels), sum(level.successes for level in levels)
    if successes == judged:
        return None
    each = ", ".join(f"{v.successes}/{v.judged} at {level_words(curve.factor, v.level)}" for v in levels)
    words = f"{_over(curve, several)}, {successes} of {plural(judged, 'trial')} succeeded."
    return Statement("✖", "failed", "bad", words, each)


def _course(metric: Metric | None, of_metric: CurveMetric) -> str:
    """The kind of statement that it is."""
    if metric is None or of_metric.course is None:  # of another version
        return "not_shown"
    if of_metric.course not in ("higher", "lower"):
        return of_metric.course
    return WORSE if (of_metric.course == "higher") == (metric.better == LOWER) else BETTER


def _over(part: Curve | BreakingPoint, several: bool) -> str:
    """ "Over `message_flood.rate`", "fastdds: over `cpu_load.load` with `message_flood.publishers` = 4"."""
    others = ", ".join(f"`{path}` = {plain(level)}" for path, level in part.others.items())
    factor = f"ver `{part.factor}`{f' with {others}' if others else ''}"
    return f"{part.variant}: o{factor}" if several and part.variant else f"O{factor}"


_FOUND: tuple[str, str, Tone] = ("⊥", "breaking point", "bad")
_NOT_FOUND: tuple[str, str, Tone] = ("?", "not found", "warn")


def _of_searches(run: ReportRun) -> list[Statement]:
    found = []
    searches = run.summary.breaking_points
    several = len({s.variant for s in searches}) > 1
    for search in searches:
        if words := search.words:
            unit = UNITS.get(search.factor, "").strip()
            over = f"{_over(search, several)}{f' in {unit}' if unit else ''}"
            head = f"{over}, `{search.criterion}`: {_sentence_within(words[0])}"
            detail = " ".join(map(sentence, words[1:]))
            kind = _FOUND if search.state == "found" else _NOT_FOUND
            found.append(Statement(*kind, head, detail))
    return found


def _sentence_within(text: str) -> str:
    """It goes on after a comma or colon: small at its beginning, unless that is an abbreviation."""
    text = text[:1].lower() + text[1:] if text[1:2].islower() else text
    return text if text.endswith((".", "?", "!")) else f"{text}."


def _as_signs(text: str) -> str:
    """ "2.1x [1.8, 2.5]" as the rest of the page writes it."""
    return re.sub(r"(?<=\d)x(?=[ ,;.)]|$)", "×", text)


def _nothing_to_compare(run: ReportRun) -> tuple[Sequence[str], str]:
    """Of a run with one result, or one trial of each: how much its trials scatter, and what to run."""
    if not run.results or run.comparisons or run.summary.curves or run.summary.breaking_points:
        return (), ""
    if not run.own:
        return (), "This run holds means and maxima of one execution: there is nothing to compare within it."
    virtual = all(r.middleware == VIRTUAL for r in run.results)
    condition = "--middleware virtual --condition message_flood" if virtual else "--condition cpu_load:load=80"
    more = f"perflab run {_workload(run)} --trials 10"
    one = len(run.results) == 1
    if max(len(r.trials_detail) for r in run.results) <= 1:
        return (), (
            f"One trial{'' if one else ' each'}: there is nothing to compare, and nothing is known of how much trials "
            f"differ. `{more}{f' {condition}' if one else ''}` says what changes, and how sure that is; --trials 5 is "
            "the least."
        )
    what = "There is one treatment, so there is nothing to compare it with" if one else "Nothing is compared"
    spreads = [text for result in run.results for text in _spreads(result)]
    return spreads, f"{what}; `{more} {condition}` would disturb it."


def _workload(run: ReportRun) -> str:
    """As it was named on the command line; a command's own line is not repeated here."""
    written = ((run.manifest.get("experiment") or {}).get("written") or {}).get("workload")
    names = written if isinstance(written, list) and all(isinstance(w, str) for w in written) else None
    kind = (run.manifest.get("workload") or {}).get("kind")
    return " ".join(map(shlex.quote, names)) if names and kind == "topology" else "WORKLOAD"


def _spreads(result: Result) -> list[str]:
    found = []
    for metric in chosen(None):
        interval = result.intervals.get(metric.name)
        if interval is None or interval.n < 2:
            continue
        between = "" if interval.low is None else f" [{metric.format(interval.low)}, {metric.format(interval.high)}]"
        name = metric.words[:1].upper() + metric.words[1:]
        middle = f"{metric.format(interval.value)}{between}"
        found.append(f"{name}: median {middle} over n = {interval.n} trials.")
    return found


# ---- runs against each other


def _against(reference: ReportRun, run: ReportRun) -> Found:
    """A later run against the first, result by result."""
    title = f"{run.name} against {reference.name}"
    matches = match(reference.results, run.results).pairs
    pairs = [m for m in matches if m.first.duration_s == m.second.duration_s]
    if not pairs:
        why = "their trials have different lengths" if matches else "they measured nothing that is alike"
        return Found(title, advice=f"Not compared: {why}.")
    if max(min(len(m.first.entering), len(m.second.entering)) for m in pairs) < 2:
        return Found(title, advice="Not compared: one of them has a single trial of each result; --trials 5 or more.")
    names = dict(zip(map(id, matches), names_of([m.first for m in matches]), strict=True))
    found: list[Statement] = [
        Statement("▲", "not the same", "bad", f"{names[id(m)]}: {words}.") for m in pairs for words in m.differing
    ]
    undecided: list[_Undecided] = []
    compared = compare_runs(pairs, chosen(None), (reference.name, run.name), paired=_is_paired(reference, run))
    for one in compared:
        metric, c = one.metric, one.comparison
        place = names[id(one.of)] if len(matches) > 1 else ""
        if c.verdict in DIFFERENCES:
            words = f"{f'{place}: ' if place else ''}{change(metric, c, between=True)}."
            found.append(Statement(*_kind(effect_of(metric, c)), words, _detail(metric, c, between=True)))
        elif c.constant is None:
            undecided.append((place, metric, c))
    found += _not_decided(undecided, MARGIN)
    mixed = run.own and any(r.middleware != VIRTUAL for r in run.results)
    return Found(title, found, note=NOT_INTERLEAVED if mixed else "")


def _is_paired(first_run: ReportRun, second: ReportRun) -> bool:
    """Whether blocks belong together: only of what simulates the same disturbances, from one seed."""
    virtual = all(r.middleware == VIRTUAL for run in (first_run, second) for r in run.results)
    seeds = [(run.manifest.get("settings") or {}).get("seed") for run in (first_run, second)]
    return virtual and seeds[0] is not None and seeds[0] == seeds[1]
