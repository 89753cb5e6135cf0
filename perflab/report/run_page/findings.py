"""What a reader must know first, and then what the trials show, in words with intervals and numbers of trials."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from perflab.report.label import treatment
from perflab.report.run_page.elements import box, details, escape, inline, items, paragraph
from perflab.report.run_page.runs import ReportRun
from perflab.report.run_page.words import (
    certainty,
    change,
    from_to,
    in_words,
    is_claim,
    metric_of,
    numbers,
    plain,
    size,
)
from perflab.statistics.curves_words import SAME, UNITS, level_words
from perflab.statistics.metric_comparison import BETTER, WORSE
from perflab.statistics.metrics import LOWER, Metric, chosen
from perflab.statistics.pairs import CONDITION, FACTOR, OBSERVER
from perflab.statistics.selection import place_words, purpose_of
from perflab.units import format_count

Json = dict[str, Any]

MAX_CLAIMS = 10  # the others are folded
MAX_REASONS = 3  # of trials that do not count, above the findings; the others are folded

# Which remarks of the summary stand here, with the sign and the word before them. Those of differences are said anew,
# those about the data stand with its quality.
_REMARKS = {
    "carry_over": ("!", "carry-over", "warn"),
    "same_seed": ("!", "same seeds", "warn"),
    "same": ("=", "the same", ""),
}
OF_QUALITY = ("missing", "unused", "lattice", "outliers", "observer")
_FIRST = ("harness_error", "invalid", "ended_early")


@dataclass(frozen=True)
class Finding:
    """A sentence, the detail behind it, and what kind of statement it is."""

    sign: str
    kind: str
    tone: str
    words: str
    detail: str = ""

    def html(self) -> str:
        tone = f" {self.tone}" if self.tone else ""
        detail = f'<span class="detail">{inline(self.detail)}</span>' if self.detail else ""
        return (
            f'<li><span class="kind{tone}"><b class="sign" aria-hidden="true">{escape(self.sign)}</b> '
            f'{escape(self.kind)}</span><span class="words">{inline(self.words)} {detail}</span></li>'
        )


# ---- what must be said first


def first(runs: Sequence[ReportRun]) -> str:
    """Boxes on runs of which something is wrong: interrupted, invalid trials, failures of the laboratory."""
    return "".join(_first_of(run, several=len(runs) > 1) for run in runs)


def _first_of(run: ReportRun, *, several: bool) -> str:
    said, folded = _troubles(run)
    notes = list(run.notes)
    if not said and not notes:
        return ""
    where = f"{run.name}: " if several else ""
    if not said:
        return box(f"{where}about the data of this run", notes, "warn")
    more = details("Every one of these trials", items(folded))
    return box(f"{where}read this first", [*said, *notes], "bad" if not is_whole(run) else "warn", more)


def is_whole(run: ReportRun) -> bool:
    return not _interrupted(run) and (run.planned is None or count_trials(run) >= run.planned)


def is_running(run: ReportRun) -> bool:
    """Whether the perflab that makes it is alive, and on this machine."""
    from perflab.experiment.clean import RUNNING, controller_state
    from perflab.experiment.rundir import SUMMARY
    from perflab.host import Host

    if not run.own or "controller" not in run.manifest or (run.data.path / SUMMARY).exists():
        return False
    return controller_state(run.manifest, Host()) == RUNNING


def count_trials(run: ReportRun) -> int:
    """Planned trials that came to an end: extra and invalid ones too, interrupted ones not."""
    return sum(len(r["trials_detail"]) for r in run.results) - len(_interrupted(run))


def _interrupted(run: ReportRun) -> list[Json]:
    return [t for _, _, t in run.trials if is_interrupted(run, t)]


def is_interrupted(run: ReportRun, trial: Json) -> bool:
    reason = str(trial.get("reason") or "")
    return trial["outcome"] == "harness_error" and (
        bool(run.file(trial).get("interrupted")) or reason.startswith("interrupted by ")
    )


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
        during = f" during trial {cut[-1]['trial']}" if cut else ""
        said.append(
            f"This run was ended before it was complete{during}: {here} "
            f"`perflab {run.verb} --resume {shlex.quote(str(run.data.path))}` goes on with the rest."
        )
    for outcome, words in (
        ("invalid", "invalid: a condition was not in effect, so they are in no statistics"),
        ("harness_error", "failed by the laboratory, not by what it measures; in no statistics"),
        ("failed", "failed before their end and have no figures; what is said below is of the others"),
    ):
        found = [
            (label, t)
            for label, _, t in run.trials
            if t["outcome"] == outcome
            and not is_interrupted(run, t)
            and not (outcome == "failed" and t.get("measured", True))
        ]
        if found:
            told, rest = _listed(found, words, len(run.trials))
            said += told
            folded += rest
    said += [str(r["words"]) for r in _remarks(run) if r["kind"] in _FIRST and not run.trials]
    return said, folded


def _listed(found: Sequence[tuple[str, Json]], words: str, all_trials: int) -> tuple[list[str], list[str]]:
    """ "3 of 12 trials were invalid: …. Trials 5, 7 and 9 (message_flood): 1078176 messages were sent …".

    Where there are several reasons each is a line of its own; where there are many, the most frequent kinds of them
    with an example, and each of them to be folded.
    """
    by_label: dict[str, list[Json]] = {}
    for label, trial in found:
        by_label.setdefault(label, []).append(trial)
    parts: list[str] = []
    for label, trials in by_label.items():
        reason = next((str(t["reason"]) for t in trials if t.get("reason")), "")
        which = numbered([t["trial"] for t in trials])
        parts.append(f"{which.capitalize()} ({label}){f': {reason}' if reason else ''}.")
    verb = "was" if len(found) == 1 else "were"
    head = words.replace("they are", "it is").replace("their", "its").replace("have", "has") if verb == "was" else words
    if len(found) == all_trials:
        head = head.partition("; what is said below")[0]
    told = f"{len(found)} of {all_trials} trials {'' if head.startswith('failed before') else f'{verb} '}{head}."
    if len(parts) == 1:
        return [f"{told} {parts[0]}"], []
    return ([told, *parts], []) if len(parts) <= MAX_REASONS else ([told, *_most_frequent(found)], parts)


def _most_frequent(found: Sequence[tuple[str, Json]]) -> list[str]:
    """Reasons that differ in their numbers alone are one kind."""
    kinds: dict[str, list[tuple[str, Json]]] = {}
    for label, trial in found:
        kinds.setdefault(re.sub(r"\d[\d.]*", "0", str(trial.get("reason") or "")), []).append((label, trial))
    ordered = sorted(kinds.values(), key=len, reverse=True)
    said = []
    for members in ordered[:MAX_REASONS]:
        label, trial = members[0]
        reason = str(trial.get("reason") or "no reason was recorded")
        such = "such as " if len(members) > 1 else ""
        said.append(f"{_trials(len(members))}, {such}trial {trial['trial']} ({label}): {reason}.")
    if rest := sum(map(len, ordered[MAX_REASONS:])):
        said.append(f"{_trials(rest)} for other reasons.")
    return said


def numbered(trials: Sequence[int], most: int = 8) -> str:
    """ "trial 3", "trials 3, 5 and 9", "trials 1, 2, 3, … (24 of them)"."""
    if len(trials) == 1:
        return f"trial {trials[0]}"
    if len(trials) > most:
        return f"trials {', '.join(map(str, trials[:most]))}, … ({len(trials)} of them)"
    return f"trials {', '.join(map(str, trials[:-1]))} and {trials[-1]}"


def verdict(runs: Sequence[ReportRun]) -> str:
    """One line: how many trials, with which outcomes, and what was found."""
    outcomes: dict[str, int] = {}
    for run in runs:
        for result in run.results:
            for name, count in result["outcomes"].items():
                outcomes[name] = outcomes.get(name, 0) + count
    if cut := sum(len(_interrupted(run)) for run in runs):
        outcomes["harness_error"] -= cut
        outcomes["interrupted"] = cut
    total = sum(outcomes.values())
    if not total:
        return "No trial was recorded."
    words = {
        "success": "successful",
        "failed": "failed",
        "invalid": "invalid",
        "harness_error": "failed by the laboratory",
    }
    parts = [f"{format_count(n)} {words.get(name, name)}" for name, n in outcomes.items() if n]
    trials = _trials(total)
    head = f"{trials}, all successful" if outcomes.get("success") == total > 1 else f"{trials}: {', '.join(parts)}"
    curves = [curve for run in runs for curve in run.summary.get("curves") or ()]
    head = ". ".join([head, *_courses(curves)])
    comparisons = [c for run in runs for c in _comparisons(run) if c["kind"] != OBSERVER]
    if not comparisons:
        return f"{head}."
    worse = sum(c["effect"] == WORSE for c in comparisons)
    better = sum(c["effect"] == BETTER for c in comparisons)
    none = sum(c["verdict"] == "equivalent" or _is_constant(c) for c in comparisons)
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


def _courses(curves: Sequence[Json]) -> list[str]:
    """ "Over `message_flood.rate` worse: latency p50, latency p99"; of several variants those of any of them."""
    said = []
    for factor in dict.fromkeys(str(curve["factor"]) for curve in curves):
        by_kind: dict[str, dict[str, None]] = {WORSE: {}, BETTER: {}, DIFFERS: {}}
        for curve in curves:
            for name, of_metric in curve["metrics"].items() if curve["factor"] == factor else ():
                metric, words = metric_of(name), of_metric.get("words")
                if metric is not None and words and (kind := _course(metric, words[0])) in by_kind:
                    by_kind[kind].setdefault(metric.words)
        parts = [f"{kind}: {', '.join(names)}" for kind, names in by_kind.items() if names]
        said.append(f"Over `{factor}` {'; '.join(parts) or 'no change is shown'}")
    return said


# ---- what was found


def section(runs: Sequence[ReportRun]) -> str:
    made = []
    for run in runs:
        inner = _of_run(run)
        made.append(f"<h3>{escape(run.name)}</h3>{inner}" if len(runs) > 1 else inner)
    return "".join(made) + (_against_each_other(runs) if len(runs) > 1 else "")


def _of_run(run: ReportRun) -> str:
    findings = [*_of_searches(run), *_of_curves(run)]
    claims, others = _of_comparisons(run)
    remarks = [
        Finding(*_REMARKS[r["kind"]][:2], _REMARKS[r["kind"]][2], _sentence(_remark(run, r)))
        for r in _remarks(run)
        if r["kind"] in _REMARKS
    ]
    if findings:  # they say in a sentence what the levels say one by one
        levels = [*_failures(run), *claims, *others, *remarks]
        return _list(findings) + details("Every level against the baseline", _list(levels))
    text = _list([*_failures(run), *claims[:MAX_CLAIMS], *others, *remarks])
    if len(claims) > MAX_CLAIMS:
        text += details(f"{len(claims) - MAX_CLAIMS} more differences", _list(claims[MAX_CLAIMS:]))
    return text + _nothing_to_compare(run)


def _failures(run: ReportRun) -> list[Finding]:
    """Results of which some trials failed, with Wilson's interval of the share that succeeded."""
    names = in_words([r for r in run.results if r.get("conditions")])
    rates = [r for r in (run.summary.get("findings") or {}).get("success_rates") or () if r["successes"] < r["n"]]
    several = len({p["variant"] for p in (run.summary.get("findings") or {}).get("success_rates") or ()}) > 1
    found = []
    for rate in rates:
        name = names.get(rate["treatment"])
        place = (
            "without observers" if rate["purpose"] == "control" else "at the baseline" if not name else f"under {name}"
        )
        where = f"{rate['variant']}, {place}" if several else place[:1].upper() + place[1:]
        interval = rate.get("interval")
        between = f" [{100 * interval['low']:.0f} %, {100 * interval['high']:.0f} %]" if interval else ""
        share = f"{100 * rate['successes'] / rate['n']:.0f} %{between}"
        reason = _first_failure(run, rate)
        detail = f"n = {rate['n']}{f'; for example {reason}' if reason else ''}"
        words = f"{where}: {rate['successes']} of {_trials(rate['n'])} succeeded, {share}."
        found.append(Finding("✖", "failed", "bad", words, detail))
    return found


def _first_failure(run: ReportRun, rate: Json) -> str:
    for result in run.results:
        if (
            treatment(result) == rate["treatment"]
            and purpose_of(result) == rate["purpose"]
            and (str(rate["variant"]).endswith(place_words(result)))
        ):
            told = (str(t["reason"]) for t in result["trials_detail"] if t["outcome"] == "failed" and t.get("reason"))
            return next(told, "")
    return ""


def _trials(n: int) -> str:
    return "1 trial" if n == 1 else f"{format_count(n)} trials"


def _list(findings: Sequence[Finding]) -> str:
    return f'<ul class="findings">{"".join(f.html() for f in findings)}</ul>' if findings else ""


def _remarks(run: ReportRun) -> list[Json]:
    remarks: list[Json] = (run.summary.get("findings") or {}).get("remarks") or []
    return remarks


def _comparisons(run: ReportRun) -> list[Json]:
    comparisons: list[Json] = (run.summary.get("findings") or {}).get("comparisons") or []
    return comparisons


def _remark(run: ReportRun, remark: Json) -> str:
    """Its words without what the sign before it says already; of what is the same everywhere with the value."""
    head, _, what = str(remark["words"]).partition(f"{SAME}: ")
    if remark["kind"] != "same" or head:
        return str(remark["words"])
    values: dict[str, set[str]] = {}
    for c in _comparisons(run):
        if _is_constant(c) and (metric := metric_of(c["metric"])) is not None:
            values.setdefault(metric.words, set()).add(metric.format(c["baseline"]["smallest"]))
    names = what.removesuffix(" (everywhere)").split(", ")
    if what.endswith(" (everywhere)") and all(len(values.get(name, ())) == 1 for name in names):
        return f"{', '.join(f'{name} {next(iter(values[name]))}' for name in names)} in every trial"
    return f"in every trial the same: {what}"


def _sentence(text: str) -> str:
    text = text[:1].upper() + text[1:] if text[:1].islower() and " " in text else text
    return text if text.endswith((".", "?", "!")) else f"{text}."


def _of_comparisons(run: ReportRun) -> tuple[list[Finding], list[Finding]]:
    """Differences that are shown, the largest of each treatment first; and, by treatment, where there is none."""
    comparisons = [c for c in _comparisons(run) if c["kind"] != OBSERVER]
    several = len({c["variant"] for c in comparisons if c["kind"] == CONDITION}) > 1
    names = in_words([r for r in run.results if r.get("conditions")])
    claims = [c for c in comparisons if is_claim(c)]
    ordered = _by_turns(claims)
    ordered.sort(key=lambda c: c["effect"] != WORSE)
    found = [_claim(c, names, several) for c in ordered]
    margin = 100 * float((run.summary.get("findings") or {}).get("margin") or 0)
    too_few = next((str(r["words"]) for r in _remarks(run) if r["kind"] == "too_few_trials"), "")
    advice = "; --trials" + too_few.rpartition("--trials")[2] if "--trials" in too_few else ""
    others: list[Finding] = []
    for kind, sign, word, head in (
        ("equivalent", "=", "no difference", f"no difference larger than {margin:.3g} % in"),
        ("below_noise_floor", "≈", "within noise", "no more than baselines differ among themselves:"),
        ("not_shown", "?", "not shown", "neither a difference nor its absence is shown in"),
        ("too_few_trials", "?", "too few trials", "not enough trials to tell; seen were"),
    ):
        groups: dict[str, list[Json]] = {}
        for c in comparisons:
            if c["verdict"] == kind and not _is_constant(c):
                groups.setdefault(_place(c, names, several), []).append(c)
        for place, members in groups.items():
            figures = ", ".join(f"{_words(c)} ({_size(c)})" for c in members)
            tone = "" if kind == "equivalent" else "faint"
            detail = numbers(members[0]) + (advice if kind == "too_few_trials" else "")
            others.append(Finding(sign, word, tone, f"{place}: {head} {figures}.", detail))
    return found, others


def _claim(comparison: Json, names: dict[str, str], several: bool) -> Finding:
    metric = metric_of(comparison["metric"])
    worse = comparison["effect"] == WORSE
    if metric is None:  # of a version that knows more
        return Finding("▲" if worse else "▼", comparison["effect"] or "", "", str(comparison.get("words")))
    between = comparison["kind"] != CONDITION
    middle = from_to(metric, comparison, between=between)
    detail = ", ".join(part for part in (middle, certainty(comparison)) if part)
    hangs = str(comparison.get("words") or "").partition("; it ")[2]
    extra = f"; it {hangs.removesuffix('.')}" if hangs else ""
    place = _place(comparison, names, several)
    return Finding(
        "▲" if worse else "▼",
        "worse" if worse else "better",
        "bad" if worse else "good",
        f"{place}{':' if between else ','} {change(metric, comparison, between=between)}{extra}.",
        detail,
    )


def _place(comparison: Json, names: dict[str, str], several: bool) -> str:
    """ "Under 4 × 80 % CPU load", "cyclonedds, events: under …", "fastdds against cyclonedds"."""
    name = comparison["treatment"]["name"]
    if comparison["kind"] != CONDITION:
        against = f"{name} against {comparison['baseline']['name']}"
        return (
            f"{comparison['variant']}: {against}" if comparison["kind"] == FACTOR and comparison["variant"] else against
        )
    under = f"nder {names.get(name, name)}"
    return f"{comparison['variant']}: u{under}" if several and comparison["variant"] else f"U{under}"


def _words(comparison: Json) -> str:
    metric = metric_of(comparison["metric"])
    return comparison["metric"] if metric is None else metric.words


def _size(comparison: Json) -> str:
    metric = metric_of(comparison["metric"])
    return "" if metric is None else size(metric, comparison)


def _is_constant(comparison: Json) -> bool:
    return len({comparison[side][end] for side in ("baseline", "treatment") for end in ("smallest", "largest")}) == 1


def _by_turns(claims: Iterable[Json]) -> list[Json]:
    """The largest difference of each treatment, then the second largest of each, and so on."""

    def amount(comparison: Json) -> float:
        value = comparison["estimate"]["value"]
        if value is None:
            return 0.0
        return abs(math.log(value)) if comparison["scale"] == "ratio" and value > 0 else math.inf

    groups: dict[tuple[str, str], list[Json]] = {}
    for comparison in sorted(claims, key=amount, reverse=True):
        groups.setdefault((str(comparison["variant"]), comparison["treatment"]["name"]), []).append(comparison)
    longest = max(map(len, groups.values()), default=0)
    return [group[i] for i in range(longest) for group in groups.values() if i < len(group)]


DIFFERS = "differs"  # between levels, and neither up nor down over all of them

# How the first sentence on a metric of a curve goes on after its name, and what that is; the rest is not shown.
_COURSES = (
    (" rises from", "higher"),
    (" is higher at", "higher"),
    (" falls from", "lower"),
    (" is lower at", "lower"),
    (" differs between", DIFFERS),
    (" tends", DIFFERS),
    (": flat:", "equivalent"),
    (": no difference larger", "equivalent"),
    (f": {SAME}", "same"),
    (": not enough trials", "too_few_trials"),
)
_KINDS_OF_CURVES = {
    WORSE: ("▲", "worse", "bad"),
    BETTER: ("▼", "better", "good"),
    DIFFERS: ("≠", "not steady", ""),
    "equivalent": ("=", "no difference", ""),
    "same": ("=", "the same", ""),
    "not_shown": ("?", "not shown", "faint"),
    "too_few_trials": ("?", "too few trials", "faint"),
}


def _of_curves(run: ReportRun) -> list[Finding]:
    """One for each metric of a curve: how it goes over the levels; behind it knee and saturation."""
    found: list[tuple[str, Finding]] = []
    curves = run.summary.get("curves") or []
    several = len({c["variant"] for c in curves}) > 1
    for curve in curves:
        for name, of_metric in curve["metrics"].items():
            if words := [_as_signs(text) for text in of_metric.get("words") or ()]:
                metric = metric_of(name)
                kind = _course(metric, words[0])
                head = f"{_over(curve, several)}, {_sentence_within(words[0])}"
                own = f"{name if metric is None else metric.words}: "
                detail = " ".join(_sentence(text.removeprefix(own)) for text in words[1:])
                found.append((kind, Finding(*_KINDS_OF_CURVES[kind], head, detail)))
    order = list(_KINDS_OF_CURVES)
    ordered = [one for _, one in sorted(found, key=lambda entry: order.index(entry[0]))]
    return [*(said for curve in curves if (said := _successes(curve, several)) is not None), *ordered]


def _successes(curve: Json, several: bool) -> Finding | None:
    """ "Over `message_flood.rate`, 26 of 36 trials succeeded." with the shares at the levels; None where all did."""
    levels = [level for level in curve["levels"] if level.get("judged")]
    judged, successes = sum(level["judged"] for level in levels), sum(level["successes"] for level in levels)
    if successes == judged:
        return None
    factor = str(curve["factor"])
    each = ", ".join(f"{v['successes']}/{v['judged']} at {level_words(factor, v['level'])}" for v in levels)
    words = f"{_over(curve, several)}, {successes} of {_trials(judged)} succeeded."
    return Finding("✖", "failed", "bad", words, each)


def _course(metric: Metric | None, words: str) -> str:
    if metric is None:  # of a version that knows more
        return "not_shown"
    course = next((kind for start, kind in _COURSES if words.startswith(f"{metric.words}{start}")), "not_shown")
    if course not in ("higher", "lower"):
        return course
    return WORSE if (course == "higher") == (metric.better == LOWER) else BETTER


def _over(part: Json, several: bool) -> str:
    """ "Over `message_flood.rate`", "fastdds: over `cpu_load.load` with `message_flood.publishers` = 4"."""
    others = ", ".join(f"`{path}` = {plain(level)}" for path, level in (part.get("others") or {}).items())
    factor = f"ver `{part['factor']}`{f' with {others}' if others else ''}"
    return f"{part['variant']}: o{factor}" if several and part["variant"] else f"O{factor}"


def _of_searches(run: ReportRun) -> list[Finding]:
    found = []
    searches = run.summary.get("breaking_points") or []
    several = len({s["variant"] for s in searches}) > 1
    for search in searches:
        if words := search.get("words"):
            decided = search["state"] == "found"
            sign, kind, tone = ("⊥", "breaking point", "bad") if decided else ("?", "not found", "warn")
            unit = UNITS.get(str(search["factor"]), "").strip()
            over = f"{_over(search, several)}{f' in {unit}' if unit else ''}"
            head = f"{over}, `{search['criterion']}`: {_sentence_within(words[0])}"
            detail = " ".join(map(_sentence, words[1:]))
            found.append(Finding(sign, kind, tone, head, detail))
    return found


def _sentence_within(text: str) -> str:
    """It goes on after a comma or colon: small at its beginning, unless that is an abbreviation."""
    text = text[:1].lower() + text[1:] if text[1:2].islower() else text
    return text if text.endswith((".", "?", "!")) else f"{text}."


def _as_signs(text: str) -> str:
    """ "2.1x [1.8, 2.5]" as the rest of the page writes it."""
    return re.sub(r"(?<=\d)x(?=[ ,;.)]|$)", "×", text)


def _nothing_to_compare(run: ReportRun) -> str:
    """What to run, where there is one result, or one trial of each."""
    if not run.results or _comparisons(run):
        return ""
    most = max(len(r["trials_detail"]) for r in run.results)
    if not run.own:
        return paragraph("This run holds means and maxima of one execution: there is nothing to compare within it.")
    virtual = all(r["middleware"] == "virtual" for r in run.results)
    condition = "--middleware virtual --condition message_flood" if virtual else "--condition cpu_load:load=80"
    command = f"`perflab run {_workload(run)} --trials 10 {condition}`"
    if run.summary.get("curves") or run.summary.get("breaking_points"):
        return ""
    if most <= 1:
        many = "One trial" if len(run.results) == 1 else "One trial each"
        more = f"`perflab run {_workload(run)} --trials 10`" if len(run.results) > 1 else command
        return paragraph(
            f"{many}: there is nothing to compare, and nothing is known of how much trials differ. {more} says what "
            "changes, and how sure that is; --trials 5 is the least."
        )
    lines = [text for result in run.results for text in _spreads(result)]
    what = (
        "There is one treatment, so there is nothing to compare it with"
        if len(run.results) == 1
        else "Nothing is compared"
    )
    return items(lines) + paragraph(f"{what}; {command} would disturb it.")


def _workload(run: ReportRun) -> str:
    """As it was named on the command line; a command's own line is not repeated here."""
    written = ((run.manifest.get("experiment") or {}).get("written") or {}).get("workload")
    names = written if isinstance(written, list) and all(isinstance(w, str) for w in written) else None
    kind = (run.manifest.get("workload") or {}).get("kind")
    return " ".join(map(shlex.quote, names)) if names and kind == "topology" else "WORKLOAD"


def _spreads(result: Json) -> list[str]:
    found = []
    for metric in chosen(None):
        interval = (result.get("intervals") or {}).get(metric.name)
        if interval is None or interval["n"] < 2:
            continue
        between = (
            "" if interval["low"] is None else f" [{metric.format(interval['low'])}, {metric.format(interval['high'])}]"
        )
        name = metric.words[:1].upper() + metric.words[1:]
        middle = f"{metric.format(interval['value'])}{between}"
        found.append(f"{name}: median {middle} over n = {interval['n']} trials.")
    return found


# ---- runs against each other


def _against_each_other(runs: Sequence[ReportRun]) -> str:
    """Each later run against the first, result by result."""
    from perflab.statistics.metric_comparison import effect_of
    from perflab.statistics.runs import compare_runs
    from perflab.statistics.selection import entering, match, names_of

    reference, made = runs[0], []
    for run in runs[1:]:
        text = f"{run.name} against {reference.name}"
        matches = match(reference.results, run.results).pairs
        names = dict(zip(map(id, matches), names_of([m.first for m in matches]), strict=True)) if matches else {}
        pairs = [m for m in matches if m.first["duration_s"] == m.second["duration_s"]]
        if not pairs:
            why = "their trials have different lengths" if matches else "they measured nothing that is alike"
            made.append(f"<h3>{escape(text)}</h3>{paragraph(f'Not compared: {why}.')}")
            continue
        if max(min(len(entering(m.first)), len(entering(m.second))) for m in pairs) < 2:
            why = "one of them has a single trial of each result; --trials 5 or more"
            made.append(f"<h3>{escape(text)}</h3>{paragraph(f'Not compared: {why}.')}")
            continue
        found: list[Finding] = [
            Finding("▲", "not the same", "bad", f"{names[id(m)]}: {words}.") for m in pairs for words in m.differing
        ]
        groups: dict[tuple[str, str], list[str]] = {}
        compared = compare_runs(pairs, chosen(None), (reference.name, run.name), paired=_is_paired(reference, run))
        for one in compared:
            c = {**one.comparison.to_dict(), "metric": one.metric.name}
            c["effect"] = effect_of(one.metric, one.comparison)
            where = f"{names[id(one.match)]}: " if len(matches) > 1 else ""
            if is_claim(c):
                worse = c["effect"] == WORSE
                detail = ", ".join(part for part in (from_to(one.metric, c, between=True), certainty(c)) if part)
                words = f"{where}{change(one.metric, c, between=True)}."
                kind = ("▲", "worse", "bad") if worse else ("▼", "better", "good")
                found.append(Finding(*kind, words, detail))
            elif not _is_constant(c):
                groups.setdefault((where, c["verdict"]), []).append(f"{one.metric.words} ({size(one.metric, c)})")
        for (where, decided), figures in groups.items():
            head = {
                "equivalent": "no difference larger than 5 % in",
                "too_few_trials": "not enough trials to tell:",
            }.get(decided, "neither a difference nor its absence is shown in")
            sign, kind_ = ("=", "no difference") if decided == "equivalent" else ("?", "not shown")
            found.append(Finding(sign, kind_, "" if sign == "=" else "faint", f"{where}{head} {', '.join(figures)}."))
        note = (
            "The runs were not interleaved: whatever changed on the machine between them is in these differences, too."
            if run.own and any(r["middleware"] != "virtual" for r in run.results)
            else ""
        )
        made.append(f"<h3>{escape(text)}</h3>{_list(found)}{paragraph(note, 'faint')}")
    return "".join(made)


def _is_paired(first_run: ReportRun, second: ReportRun) -> bool:
    """Whether blocks belong together: only of what simulates the same disturbances, from one seed."""
    virtual = all(r["middleware"] == "virtual" for run in (first_run, second) for r in run.results)
    seeds = [(run.manifest.get("settings") or {}).get("seed") for run in (first_run, second)]
    return virtual and seeds[0] is not None and seeds[0] == seeds[1]
