"""Warnings, and then what the trials show, in words with intervals and numbers of trials."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from perflab.columns import Tone
from perflab.report.run_page.blocks import Block, Box, Fold, Heading, Items, Statement, Statements, Text, paragraphs
from perflab.report.run_page.effects import (
    certainty,
    change,
    from_to,
    in_words,
    numbers,
    plain,
    sentence,
    size,
)
from perflab.report.run_page.overview import VERDICTS, against, key, key_of, machine
from perflab.report.runs import ReportRun
from perflab.report.tables import claims as tables
from perflab.results.claim import VERDICT_WORDS, Claim
from perflab.results.comparison import (
    BETTER,
    CONDITION,
    DIFFERENCES,
    FACTOR,
    MARGIN,
    MITIGATION,
    OBSERVER,
    WORSE,
    Comparison,
    Finding,
    Remark,
    SuccessRate,
)
from perflab.results.curve import BreakingPoint, Curve, CurveMetric
from perflab.results.outcome import FAILED, Outcomes
from perflab.results.trial import CONTROL, MEASURED, Result
from perflab.statistics.breaking_point_verdicts import STATES
from perflab.statistics.metrics import LOWER, Metric, chosen, find
from perflab.statistics.selection import UNITS, level_words, place_words
from perflab.statistics.verdicts import SAME as SAME_EVERYWHERE
from perflab.statistics.verdicts import (
    by_turns,
    caveats_in_words,
    effect_of,
    more_trials_words,
    no_difference_words,
    too_few_words,
)
from perflab.units import format_count, plural

MAX_CLAIMS = 10  # the others are folded

DIFFERS = "differs"  # between levels, with no overall direction

# Sign, word and tone of each kind of statement. Remarks of the summary other than these are rephrased, or shown with
# the quality of the data.
_KINDS: dict[str, tuple[str, str, Tone]] = {
    "failed": ("✖", "failed", "bad"),
    "found": ("⊥", "breaking point", "bad"),
    "not_found": ("?", "not found", "warn"),
    "not_alike": ("▲", "not the same", "bad"),
    **VERDICTS,
    DIFFERS: ("≠", "not steady", ""),
    "same": ("=", "the same", ""),
    "spread": ("≠", "spread", ""),
    "carry_over": ("!", "carry-over", "warn"),
    "same_seed": ("!", "same seeds", "warn"),
    MITIGATION: ("⇄", "mitigation", ""),
}
_REMARKS = (MITIGATION, "spread", "carry_over", "same_seed", SAME_EVERYWHERE)
OF_QUALITY = ("missing", "unused", "lattice", "outliers", "observer")

# Separator between a statement on figures without a difference and the figures.
_JOINTS = {"equivalent": " in", "below_noise_floor": ":", "not_shown": " in", "too_few_trials": "; seen were"}
NOT_INTERLEAVED = "The runs were not interleaved: changes of the machine between them are in these differences, too."


def _statement(kind: str, words: str, detail: str = "", key: str = "") -> Statement:
    return Statement(*_KINDS[kind], words, detail, key)


# ---- warnings


def first(runs: Sequence[ReportRun]) -> Iterator[Box]:
    """For incomplete runs, and damaged files."""
    for run in runs:
        where = f"{run.name}: " if len(runs) > 1 else ""
        notes = [note for note in run.notes if note != run.manifest.rough]  # which is a reason not to trust it
        if not run.is_whole:
            yield Box(f"{where}read this first", [_not_whole(run), *notes], "bad")
        elif notes:
            yield Box(f"{where}about the data of this run", notes, "warn")


def _not_whole(run: ReportRun) -> str:
    of = "" if run.planned is None else f" of {run.planned} planned"
    n = run.ended
    here = f"{n}{of} trials are here." if of or n != 1 else "1 trial is here."
    if run.is_running:
        return f"This run is still in progress: {here}"
    during = f" during trial {run.interrupted[-1].trial}" if run.interrupted else ""
    return (
        f"This run was ended before it was complete{during}: {here} `perflab {run.verb} --resume "
        f"{shlex.quote(run.data.path.resolve().name)}` continues it."
    )


def verdict(runs: Sequence[ReportRun]) -> str:
    """One line: the number of trials, their outcomes, and the findings."""
    outcomes = Outcomes.together([result.outcomes for run in runs for result in run.results])
    total = outcomes.total
    if not total:
        return "No trial was recorded."
    trials = plural(total, "trial")
    head = f"{trials}, all successful" if outcomes.success == total > 1 else f"{trials}: {outcomes.words}"
    curves = [curve for run in runs for curve in run.summary.curves]
    claims = tables.in_words([claim for run in runs for claim in run.summary.claims])
    said = [head, *filter(None, [claims]), *_courses(curves), *(words for run in runs for words in _searched(run))]
    if len(runs) > 1:
        return ". ".join([*said, *(_beside(runs[0], run) for run in runs[1:])]) + "."
    if comparisons := [c for run in runs for c in run.comparisons if c.kind != OBSERVER]:
        worse = sum(c.effect == WORSE for c in comparisons)
        better = sum(c.effect == BETTER for c in comparisons)
        none = sum(c.verdict == "equivalent" or c.constant is not None for c in comparisons)
        rest = len(comparisons) - worse - better - none
        found = _counted(
            ((worse, "worse"), (better, "better"), (none, "without a difference that matters"), (rest, "undecided"))
        )
        which = plural(len(comparisons), "comparison") + (" at single levels" if curves else "")
        said.append(f"Of {which} {'none decided' if rest == len(comparisons) else found}")
    return ". ".join(said) + "."


def _searched(run: ReportRun) -> Iterator[str]:
    """ "`lost == 0` is met in 50 % of the trials at 2343 msg/s [1843 msg/s, 2870 msg/s] (95 %, 18 trials)"."""
    for search in run.summary.breaking_points:
        variant = f"{search.variant}: " if search.variant and len(run.summary.breaking_points) > 1 else ""
        words = search.words[0] if search.words else STATES[search.state]
        yield f"{variant}{words.rstrip('.')}"


def _beside(reference: ReportRun, run: ReportRun) -> str:
    """ "b against a: 2 worse, 1 better, 9 undecided"."""
    both, head = against(reference, run), f"{run.name} against {reference.name}"
    if both.why_not:
        return f"{head} is not compared: {both.why_not}"
    verdicts = [
        VERDICTS[(effect_of(one.metric, c) if c.verdict in DIFFERENCES else None) or c.verdict][1]
        for one in both.compared
        if (c := one.comparison).constant is None
    ]
    counts = {word: verdicts.count(word) for word in dict.fromkeys(word for _, word, _ in VERDICTS.values())}
    return f"{head}: {_counted((n, word) for word, n in counts.items()) or 'identical in every trial'}"


def _counted(found: Iterable[tuple[int, str]]) -> str:
    return ", ".join(f"{format_count(n)} {what}" for n, what in found if n)


def _courses(curves: Sequence[Curve]) -> list[str]:
    """ "Over `message_flood.rate` worse: latency p50, latency p99"; for several variants, those of any of them."""
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


# ---- claims


def claimed(runs: Sequence[ReportRun]) -> Iterator[Block]:
    """The claims that each run tests: whether they hold, and the evidence."""
    for run in runs:
        if run.summary.claims:
            yield Text(f"{f'{run.name}, on' if len(runs) > 1 else 'On'} {machine(run)}.", "faint")
            yield Statements([_verdict_on(run, number, claim) for number, claim in enumerate(run.summary.claims)])


def _verdict_on(run: ReportRun, number: int, claim: Claim) -> Statement:
    sign, tone = tables.SIGNS[claim.verdict]
    detail = f"{sentence(_with_times(claim.words))} {sentence(tables.basis(claim))}"
    return Statement(
        sign, VERDICT_WORDS[claim.verdict], tone, sentence(claim.says), detail, key(run.name, "claim", str(number))
    )


# ---- results


def section(runs: Sequence[ReportRun]) -> Iterator[Block]:
    """The results of each run, and of each later one compared with the first."""
    reference, *others = runs
    for run in runs:
        if others:
            yield Heading(run.name)
        yield from _of_run(run)
    for other in others:
        yield Heading(f"{other.name} against {reference.name}")
        yield from _against(reference, other)


def _of_run(run: ReportRun) -> Iterator[Block]:
    courses = [*_of_searches(run), *_of_curves(run)]
    claims, others = _of_comparisons(run)
    remarks = [
        _statement(r.kind, sentence(_remark(run, r)), "", key(run.name, r.kind, str(number)))
        for number, r in enumerate(run.remarks)
        if r.kind in _REMARKS
    ]
    if courses:  # they summarise what the levels say individually
        yield Statements(courses)
        levels = [*_failures(run), *claims, *others, *remarks]
        yield Fold("Every level compared with the baseline", [Statements(levels)])
        return
    yield Statements([*_failures(run), *claims[:MAX_CLAIMS], *others, *remarks])
    rest = claims[MAX_CLAIMS:]
    yield Fold(f"{len(rest)} more differences", [Statements(rest)])
    yield from _nothing_to_compare(run)


def _failures(run: ReportRun) -> Iterator[Statement]:
    """Results with failed trials, with Wilson's interval of the success rate."""
    names = in_words([r for r in run.results if r.is_disturbed])
    rates = () if run.summary.findings is None else run.summary.findings.success_rates
    several = len({rate.variant for rate in rates}) > 1
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
        words = f"{where}: {rate.successes} of {plural(rate.n, 'trial')} succeeded, {share}."
        detail = f"n = {rate.n}{f'; for example {reason}' if reason else ''}"
        yield _statement("failed", words, detail, key(run.name, rate.variant, rate.treatment, rate.purpose, "failed"))


def _first_failure(run: ReportRun, rate: SuccessRate) -> str:
    for result in run.results:
        if (
            result.label == rate.treatment
            and (result.purpose or MEASURED) == (rate.purpose or MEASURED)
            and rate.variant.endswith(place_words(result))
        ):
            return next((t.reason for t in result.trials_detail if t.outcome == FAILED and t.reason), "")
    return ""


def _remark(run: ReportRun, remark: Remark) -> str:
    """Its words without those that the sign already expresses; for something that is the same everywhere, with the
    value."""
    if remark.kind != SAME_EVERYWHERE or not remark.about:
        return remark.words
    values: dict[str, set[str]] = {}
    for c in run.comparisons:
        if c.constant is not None and (metric := find(c.metric)) is not None:
            values.setdefault(metric.name, set()).add(f"{metric.words} {metric.format(c.constant)}")
    if remark.metrics and all(len(values.get(name, ())) == 1 for name in remark.metrics):
        return f"{', '.join(next(iter(values[name])) for name in remark.metrics)} in every trial"
    return f"identical in every trial: {remark.about}"


_Undecided = tuple[str, Metric | None, Comparison]  # where, and what shows no difference


def _of_comparisons(run: ReportRun) -> tuple[list[Statement], list[Statement]]:
    """Significant differences, the largest of each treatment first; and, by treatment, where there is none."""
    if run.summary.findings is None:
        return [], []
    comparisons = [c for c in run.comparisons if c.kind != OBSERVER]
    several = len({c.variant for c in comparisons if c.kind == CONDITION}) > 1
    names = in_words([r for r in run.results if r.is_disturbed])
    shown = [c for c in comparisons if c.verdict in DIFFERENCES]
    claims = by_turns(shown, lambda c: c, lambda c: (c.variant, c.treatment.name))
    claims.sort(key=lambda c: c.effect != WORSE)
    found = [replace(_claim(c, names, several), key=key_of(c, run.name)) for c in claims]
    undecided = [(_place(c, names, several), find(c.metric), c) for c in comparisons if c.constant is None]
    return found, _not_decided(undecided, run.summary.findings.margin, run.name)


def _not_decided(undecided: Sequence[_Undecided], margin: float, run: str = "") -> list[Statement]:
    """A statement for each verdict and place, on all figures without a shown difference there."""
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
            compared = [c for _, _, c in members]
            advice = more_trials_words(compared) + too_few_words(compared)
            where = f"{place}: " if place else ""
            words = f"{where}{head}{_JOINTS[decided]} {figures}."
            first = members[0][2]
            key = key_of(first, run if isinstance(first, Finding) else place)
            found.append(_statement(decided, words, numbers(first) + advice, key))
    return found


def _claim(comparison: Finding, names: dict[str, str], several: bool) -> Statement:
    kind = WORSE if comparison.effect == WORSE else BETTER
    metric = find(comparison.metric)
    if metric is None:  # from a newer version
        return Statement(_KINDS[kind][0], comparison.effect or "", "", comparison.words)
    between = comparison.kind != CONDITION
    place = f"{_place(comparison, names, several)}{':' if between else ','}"
    words = f"{place} {change(metric, comparison, between=between)}{caveats_in_words(comparison)}."
    return _statement(kind, words, _detail(metric, comparison, between=between))


def _detail(metric: Metric, comparison: Comparison, *, between: bool) -> str:
    """ "from 502 µs to 893 µs, n = 8 and 24, p = 0.001 for 12 comparisons together"."""
    return ", ".join(part for part in (from_to(metric, comparison, between=between), certainty(comparison)) if part)


def _place(comparison: Finding, names: dict[str, str], several: bool) -> str:
    """ "Under 4 × 80 % CPU load", "cyclonedds, events: under …", "fastdds against cyclonedds"."""
    name = comparison.treatment.name
    if comparison.kind != CONDITION:
        against = f"{name} against {comparison.baseline.name}"
        named = comparison.kind == FACTOR or (comparison.kind == MITIGATION and several)
        return f"{comparison.variant}: {against}" if named and comparison.variant else against
    under = f"nder {names.get(name, name)}"
    return f"{comparison.variant}: u{under}" if several and comparison.variant else f"U{under}"


def _of_curves(run: ReportRun) -> list[Statement]:
    """One for each metric of a curve: its course over the levels; in the details, knee and saturation."""
    found: list[tuple[str, Statement]] = []
    curves = run.summary.curves
    several = len({c.variant for c in curves}) > 1
    for curve in curves:
        for name, of_metric in curve.metrics.items():
            if words := list(map(_with_times, of_metric.words)):
                metric = find(name)
                kind = _course(metric, of_metric)
                head = f"{_over(curve, several)}, {_sentence_within(words[0])}"
                own = f"{name if metric is None else metric.words}: "
                detail = " ".join(sentence(text.removeprefix(own)) for text in words[1:])
                found.append((kind, _statement(kind, head, detail, _key(run, curve, name))))
    order = list(_KINDS)
    found.sort(key=lambda entry: order.index(entry[0]))
    return [*(said for curve in curves for said in _successes(run, curve, several)), *(one for _, one in found)]


def _with_times(text: str) -> str:
    """ "2.1x [1.8, 2.5]" in the notation of the rest of the page."""
    return re.sub(r"(?<=\d)x(?=[ ,;.)]|$)", "×", text)


def _key(run: ReportRun, part: Curve | BreakingPoint, about: str) -> str:
    others = " ".join(f"{path} {plain(level)}" for path, level in part.others.items())
    return key(run.name, part.factor, part.variant, others, about)


def _successes(run: ReportRun, curve: Curve, several: bool) -> Iterator[Statement]:
    """ "Over `message_flood.rate`, 26 of 36 trials succeeded." with the shares at the levels; empty if all did."""
    levels = [level for level in curve.levels if level.judged]
    judged, successes = sum(level.judged for level in levels), sum(level.successes for level in levels)
    if successes < judged:
        each = ", ".join(f"{v.successes}/{v.judged} at {level_words(curve.factor, v.level)}" for v in levels)
        words = f"{_over(curve, several)}, {successes} of {plural(judged, 'trial')} succeeded."
        yield _statement("failed", words, each, _key(run, curve, "success"))


def _course(metric: Metric | None, of_metric: CurveMetric) -> str:
    """The kind of statement."""
    if metric is None or of_metric.course is None:  # from another version
        return "not_shown"
    if of_metric.course not in ("higher", "lower"):
        return of_metric.course
    return WORSE if (of_metric.course == "higher") == (metric.better == LOWER) else BETTER


def _over(part: Curve | BreakingPoint, several: bool) -> str:
    """ "Over `message_flood.rate`", "fastdds: over `cpu_load.load` with `message_flood.publishers` = 4"."""
    others = ", ".join(f"`{path}` = {plain(level)}" for path, level in part.others.items())
    factor = f"ver `{part.factor}`{f' with {others}' if others else ''}"
    return f"{part.variant}: o{factor}" if several and part.variant else f"O{factor}"


def _of_searches(run: ReportRun) -> Iterator[Statement]:
    searches = run.summary.breaking_points
    several = len({s.variant for s in searches}) > 1
    for search in searches:
        if words := search.words:
            unit = UNITS.get(search.factor, "").strip()
            over = f"{_over(search, several)}{f' in {unit}' if unit else ''}"
            head = f"{over}, `{search.criterion}`: {_sentence_within(words[0])}"
            kind = "found" if search.state == "found" else "not_found"
            yield _statement(kind, head, " ".join(map(sentence, words[1:])), _key(run, search, search.criterion))


def _sentence_within(text: str) -> str:
    """The text after a comma or colon: begins in lower case, unless with an abbreviation."""
    text = text[:1].lower() + text[1:] if text[1:2].islower() else text
    return text if text.endswith((".", "?", "!")) else f"{text}."


def _nothing_to_compare(run: ReportRun) -> Iterator[Block]:
    """For a run with one result, or one trial of each: the scatter of its trials, and what to run next."""
    if not run.results or run.comparisons or run.summary.curves or run.summary.breaking_points:
        return
    if not run.own:
        yield Text("This run holds means and maxima of one execution: there is nothing to compare within it.")
        return
    virtual = run.data.is_virtual
    condition = "--middleware virtual --condition message_flood" if virtual else "--condition cpu_load:load=80"
    more = f"perflab run {_workload(run)} --trials 10"
    one = sum(not result.is_extra for result in run.results) <= 1
    if max(len(r.trials_detail) for r in run.results) <= 1:
        yield Text(
            f"One trial{'' if one else ' each'}: there is nothing to compare, and the scatter of trials is "
            f"unknown. `{more}{f' {condition}' if one else ''}` shows what changes, and how certain that is; use "
            "at least --trials 5."
        )
        return
    what = "There is one treatment, so there is nothing to compare it with" if one else "Nothing is compared"
    yield Items([text for result in run.results for text in _spreads(result)])
    yield Text(f"{what}; `{more} {condition}` would disturb it.")


def _workload(run: ReportRun) -> str:
    """The workload as named on the command line; a command's own line is not repeated here."""
    written = (run.manifest.experiment.written or {}).get("workload")
    names = written if isinstance(written, list) and all(isinstance(w, str) for w in written) else None
    kind = run.manifest.workload.kind
    return " ".join(map(shlex.quote, names)) if names and kind == "topology" else "WORKLOAD"


def _spreads(result: Result) -> Iterator[str]:
    for metric in chosen(None):
        interval = result.intervals.get(metric.name)
        if interval is not None and interval.n >= 2:
            middle, low, high = map(metric.format, (interval.value, interval.low, interval.high))
            between = "" if interval.low is None else f" [{low}, {high}]"
            name = metric.words[:1].upper() + metric.words[1:]
            yield f"{name}: median {middle}{between} over n = {interval.n} trials."


# ---- comparisons of runs


def _against(reference: ReportRun, run: ReportRun) -> Iterator[Block]:
    """A later run compared with the first, result by result."""
    both = against(reference, run)
    if both.why_not:
        yield Text(f"Not compared: {both.why_not}.")
        return
    found = [_statement("not_alike", f"{both.place(m)}: {words}.") for m in both.matches for words in m.differing]
    undecided: list[_Undecided] = []
    for one in both.compared:
        metric, c, place = one.metric, one.comparison, both.place(one.of)
        if c.verdict in DIFFERENCES:
            words = f"{f'{place}: ' if place else ''}{change(metric, c, between=True)}."
            kind = WORSE if effect_of(metric, c) == WORSE else BETTER
            found.append(_statement(kind, words, _detail(metric, c, between=True), key_of(c, place)))
        elif c.constant is None:
            undecided.append((place, metric, c))
    yield Statements([*found, *_not_decided(undecided, MARGIN)])
    if run.own and not run.data.is_virtual:
        yield from paragraphs([NOT_INTERLEAVED], "faint")
