"""The first screen: what ran, where and for how long; how treatments differ from their baselines; whether to trust the
run; why messages were late. The same as Markdown, for reviewers of a change."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from perflab.columns import Cell, Column, Drawn, Table, Tone
from perflab.quantity import COUNT, NUMBER
from perflab.report import axes, inventory
from perflab.report.axes import Ticks
from perflab.report.run_page.blocks import Block, Effects, Fold, Group, Heading, Judgement, Sheet, paragraphs
from perflab.report.run_page.effects import certainty, from_to, in_words, numbers, size
from perflab.report.run_page.setup import size_of, versions_of
from perflab.report.runs import ReportRun
from perflab.report.tables import claims, plain
from perflab.report.tables.results import median_of
from perflab.results.comparison import (
    ALPHA,
    BETTER,
    CONDITION,
    DIFFERENCES,
    MITIGATION,
    OBSERVER,
    WORSE,
    Comparison,
    Finding,
)
from perflab.results.figure import Median
from perflab.results.trial import Why
from perflab.results.trust import Trust
from perflab.statistics.comparison import Compared
from perflab.statistics.metrics import LOWER, RATIO, Metric, chosen, find
from perflab.statistics.pairs import Entering
from perflab.statistics.runs import compare_runs
from perflab.statistics.selection import Match, match, names_of
from perflab.statistics.trust import UNDECIDED, judged_comparisons
from perflab.statistics.verdicts import confidence_words, effect_of
from perflab.trace.causes import CAUSES, ITSELF, OWN
from perflab.units import format_count, format_duration, listed, plural

MAX_SHOWN = 10  # comparisons on the first screen; the others are folded
MAX_CONDITIONS = 4  # named individually
MAX_WHY = 3  # traced trials mentioned on the first screen
LEAST_OWN = 1.0  # percent of the late messages' time taken by perflab itself from which it is mentioned
NEAR = 0.13  # of the axis: closer numbers would touch
NONE = "1×"  # no difference
EDGE = 0.03  # of the drawn axis, left free at either end

# Sign, word and tone of each verdict; a difference is worse or better.
VERDICTS: dict[str, tuple[str, str, Tone]] = {
    WORSE: ("▲", "worse", "bad"),
    BETTER: ("▼", "better", "good"),
    "not_shown": ("?", "inconclusive", "faint"),
    "too_few_trials": ("?", "too few trials", "faint"),
    "below_noise_floor": ("≈", "within noise", "faint"),
    "equivalent": ("=", "no difference", ""),
}


def key_of(comparison: Comparison, *where: str | None) -> str:
    """Its anchor on the page: a difference has its own; for no difference, that of all such figures at its place."""
    about = comparison.metric if comparison.verdict in DIFFERENCES else comparison.verdict
    variant = comparison.variant if isinstance(comparison, Finding) else ""
    return key(*where, variant, comparison.treatment.name, comparison.baseline.name, about)


def key(*parts: str | None) -> str:
    return "finding-" + re.sub(r"[^a-z0-9.]+", "-", " ".join(filter(None, parts)).lower()).strip("-")


# ---- one sentence


def sentences_on(runs: Sequence[ReportRun]) -> list[str]:
    """For each run what ran, where and for how long; the host is named if there are several."""
    hosts = {run.manifest.host.get("hostname") for run in runs}
    before = [f"{run.name}: " if len(runs) > 1 else "" for run in runs]
    return [head + _sentence_on(run, named=len(hosts) > 1) for head, run in zip(before, runs, strict=True)]


def _sentence_on(run: ReportRun, *, named: bool) -> str:
    """ "`sierra_nevada` (1 process, 10 nodes) on cyclonedds 0.10.2, undisturbed and under …: 35 trials of 1 s …"."""
    results = run.results
    workloads = dict.fromkeys(r.workload for r in results) or [run.manifest.workload.name]
    what = ", ".join(f"`{name}`" for name in workloads)
    names = filter(None, dict.fromkeys(r.middleware for r in results))
    middlewares = listed((versions_of(run.manifest) or "; ".join(names)).split("; "))
    on = f" on {middlewares}" if middlewares else ""
    lengths = sorted({r.duration_s for r in results if r.duration_s})
    each = " to ".join(format_duration(s) for s in dict.fromkeys(lengths[:1] + lengths[-1:]))
    trials = f"{plural(run.ended, 'trial')}{f' of {each}' if each else ''}"
    lasting = run.data.lasted_s
    head = f"{what}{size_of(run.manifest.workload)}{on}{_disturbed(run)}: {trials}"
    told = [f"{head}{f', {format_duration(lasting)} in all' if lasting is not None else ''}"]
    if where := machine(run, named=named):
        told.append(f"on {where}")
    return f"{', '.join(told)}."


def _disturbed(run: ReportRun) -> str:
    disturbed = [r for r in run.results if r.is_disturbed]
    factors = dict.fromkeys(path for r in run.results for path in r.factors)
    if factors:
        levels = {path: {str(r.factors[path]) for r in run.results if path in r.factors} for path in factors}
        return ", over " + " and ".join(f"{len(found)} levels of `{path}`" for path, found in levels.items())
    words = in_words(disturbed)
    if not words:
        return ", undisturbed"
    before = " undisturbed and" if any(not r.is_disturbed for r in run.results) else ""
    if len(words) > MAX_CONDITIONS:
        return f",{before} under {len(words)} conditions"
    return f",{before} under {listed(list(words.values()))}"


def machine(run: ReportRun, *, named: bool = False) -> str:
    """ "AMD EPYC, 2 CPUs, 23.5 GiB, Linux 6.18, KVM"."""
    if run.results and run.data.is_virtual:
        return "simulated time"
    host = {**run.manifest.host, **run.manifest.inventory}
    words = inventory.in_words(host)
    name = host.get("hostname") if named else None
    return f"{name}: {words}" if name and words else str(name or words)


# ---- effects


@dataclass(frozen=True)
class Effect:
    """A comparison in one metric."""

    comparison: Comparison
    metric: Metric
    where: str
    key: str
    effect: str | None  # if a difference is shown: whether it is worse or better
    drawn: Drawn | None = None

    @property
    def verdict(self) -> tuple[str, str, Tone]:
        """Sign, word and tone."""
        return VERDICTS[self.effect or self.comparison.verdict]

    @property
    def change(self) -> str:
        return size(self.metric, self.comparison)

    @property
    def medians(self) -> str:
        """ "463 µs to 2.1 ms"."""
        return from_to(self.metric, self.comparison).removeprefix("from ")

    @property
    def rests_on(self) -> str:
        """ "463 µs to 2.1 ms, n = 3 and 12"."""
        return ", ".join(filter(None, (self.medians, numbers(self.comparison))))

    @property
    def rank(self) -> tuple[int, float]:
        """Those shown to be worse, then better, the largest first; then undecided ones, the worst estimate first; then
        those without a difference."""
        c = self.comparison
        place = (WORSE, BETTER, None, "equivalent").index(None if c.verdict in UNDECIDED else self.effect or c.verdict)
        value = c.estimate.value
        if value is None or (c.scale == RATIO and value <= 0):
            return place, math.inf
        amount = math.log(value) if c.scale == RATIO else value
        return place, -abs(amount) if place < 2 else -amount if self.metric.better == LOWER else amount


@dataclass(frozen=True)
class Against:
    """A later run compared with the first: every result in every common metric, or why they are not compared."""

    matches: Sequence[Match]
    compared: Sequence[Compared[Match]]
    why_not: str = ""

    def place(self, match: Match) -> str:
        names = names_of([m.first for m in self.matches])
        return names[[id(m) for m in self.matches].index(id(match))] if len(self.matches) > 1 else ""


@cache
def against(reference: ReportRun, run: ReportRun) -> Against:
    """Runs with common results, in trials of equal length."""
    matches = match(reference.results, run.results).pairs
    pairs = [m for m in matches if m.first.duration_s == m.second.duration_s]
    if not pairs:
        why_not = "their trials have different lengths" if matches else "they measured nothing in common"
        return Against(matches, (), why_not)
    if max(min(len(m.first.entering), len(m.second.entering)) for m in pairs) < 2:
        return Against(matches, (), "one of them has a single trial of each result; use --trials 5 or more")
    paired = reference.data.is_paired(run.data)
    return Against(pairs, compare_runs(pairs, chosen(None), (reference.name, run.name), paired=paired))


def effects_of_runs(runs: Sequence[ReportRun]) -> tuple[list[Effect], Ticks]:
    """For each later run compared with the first, like `effects_of`."""
    reference, *others = runs
    found = []
    for run in others:
        beside = against(reference, run)
        for one in beside.compared:
            c, metric, place = one.comparison, one.metric, beside.place(one.of)
            if c.constant is None:
                versus = f"{run.name} against {reference.name}" if len(others) > 1 or not place else ""
                effect = effect_of(metric, c) if c.verdict in DIFFERENCES else None
                where = ": ".join(filter(None, (versus, place)))
                found.append(Effect(c, metric, where, key_of(c, place), effect))
    return _placed_on_axis(found)


def effects_of(runs: Sequence[ReportRun]) -> tuple[list[Effect], Ticks]:
    """Every comparison of these runs except those of figures that were identical in every trial, the worst first, with
    its position on a common axis, and the ticks of that axis as positions."""
    found = []
    for run in runs:
        comparisons = judged_comparisons(run.summary)
        several = len({c.variant for c in comparisons if c.kind == CONDITION}) > 1
        for c in comparisons:
            if (metric := find(c.metric)) is not None:
                where = _where(c, several)
                where = f"{run.name}: {where}" if len(runs) > 1 else where
                found.append(Effect(c, metric, where, key_of(c, run.name), c.effect))
    return _placed_on_axis(found)


def _placed_on_axis(found: list[Effect]) -> tuple[list[Effect], Ticks]:
    found.sort(key=lambda effect: effect.rank)
    ratios = [v for e in found if e.comparison.scale == RATIO for v in _on_axis(e.comparison) if v > 0]
    low, high = axes.log_range([*ratios, 1.0])
    place = _placed(low, high)
    largest: dict[str, float] = {}
    for e in found:
        if e.comparison.scale != RATIO:
            most = max((abs(v) for v in _ends(e.comparison)), default=0.0)
            largest[e.metric.name] = max(largest.get(e.metric.name, 0.0), most)
    ticks = _apart((place(at), f"{text}×") for at, text in axes.log_ticks(low, high))
    return [replace(e, drawn=_drawn(e, place, largest)) for e in found], ticks


def _apart(ticks: Iterable[tuple[float, str]]) -> Ticks:
    """The ticks with room for their words; the one of no difference always stays."""
    kept: list[tuple[float, str]] = []
    for at, text in ticks:
        if kept and at - kept[-1][0] < NEAR:
            if text != NONE:
                continue
            kept.pop()
        kept.append((at, text))
    return tuple(kept)


def _where(c: Finding, several: bool) -> str:
    if c.kind == CONDITION:
        return f"{c.variant}, {c.treatment.name}" if several and c.variant else c.treatment.name
    against = f"{c.treatment.name} against {c.baseline.name}"
    named = c.variant and (several or c.kind != MITIGATION)
    return f"{c.variant}: {against}" if named else against


def _on_axis(c: Comparison) -> list[float]:
    """The values that define the axis: for an undecided one only the estimate, since its interval may fill most of the
    axis."""
    value = c.estimate.value
    return _ends(c) if c.verdict not in UNDECIDED else [] if value is None or not math.isfinite(value) else [value]


def _ends(c: Comparison) -> list[float]:
    values = (c.estimate.low, c.estimate.value, c.estimate.high)
    return [value for value in values if value is not None and math.isfinite(value)]


def _placed(low: float, high: float) -> Callable[[float], float]:
    """The position of a ratio between the ends of the axis, from 0 to 1."""

    def place(value: float) -> float:
        if value <= 0:
            return 0.0
        if not math.isfinite(value):
            return 1.0
        share = math.log(value / low) / math.log(high / low)
        return min(max(EDGE + (1 - 2 * EDGE) * share, 0.0), 1.0)

    return place


def _drawn(effect: Effect, place: Callable[[float], float], largest: Mapping[str, float]) -> Drawn | None:
    """A ratio on the common axis; a difference on a scale of its metric, with no difference at the position of ratio
    1."""
    c, none = effect.comparison, place(1.0)
    value, low, high = c.estimate.value, c.estimate.low, c.estimate.high
    if value is None:
        return None
    half = (min(none, 1 - none) - EDGE) / (largest.get(effect.metric.name) or 1.0)

    def at(v: float) -> float:
        return place(v) if c.scale == RATIO else min(max(none + half * v, 0.0), 1.0)

    low, high = (None if end is None else at(end) for end in (low, high))
    return Drawn(none, at(value), low, high, own_scale=c.scale != RATIO)


def caption(runs: Sequence[ReportRun]) -> str:
    """The meaning of the intervals: those of a run hold simultaneously."""
    found = [run.summary.findings for run in runs if run.summary.findings is not None]
    together = dict.fromkeys(confidence_words(f.alpha, f.family_size) for f in found)
    return f"Effects, the worst first: change [intervals: {'; '.join(together)}]"


def caption_of_runs(runs: Sequence[ReportRun]) -> str:
    reference, *others = runs
    sizes = dict.fromkeys(c.comparison.family_size for run in others for c in against(reference, run).compared)
    together = "; ".join(confidence_words(ALPHA, n) for n in sizes)
    names = listed([run.name for run in others])
    return f"{names} compared with {reference.name}, the worst first: change [intervals: {together}]"


# In text, i.e. Markdown.
_TEXT: list[Column[Effect]] = [
    Column("verdict", "", lambda e: f"{e.verdict[0]} {e.verdict[1]}"),
    Column("compared", "compared", lambda e: e.where),
    Column("metric", "metric", lambda e: e.metric.words),
    Column("change", "change [interval]", lambda e: e.change),
    Column("medians", "medians", lambda e: e.medians),
    Column("certainty", "trials", lambda e: certainty(e.comparison)),
]

# On the page: with fewer columns, and the interval drawn.
_DRAWN: list[Column[Effect]] = [
    Column("effect", "effect", lambda e: Cell(e.metric.words, below=(e.where,), link=e.key)),
    Column("verdict", "verdict", lambda e: Cell(e.verdict[1], tone=e.verdict[2], sign=e.verdict[0])),
    Column("interval", "interval", lambda e: Cell("", drawn=e.drawn, tone=e.verdict[2])),
    Column(
        "change",
        "change",
        lambda e: Cell(e.change, below=(e.rests_on,)),
    ),
]


# ---- the screen


def screen(runs: Sequence[ReportRun]) -> Iterator[Block]:
    """How runs differ from the first one, and treatments from their baselines, the worst first; folded if something
    more informative comes first."""
    effects, ticks = effects_of(runs)
    own = list(_effects(caption(runs), effects, ticks, _the_same(runs)))
    if len(runs) > 1:
        yield from _effects(caption_of_runs(runs), *effects_of_runs(runs))
        yield Fold(f"Within each run: {plural(len(effects), 'comparison')}", own)
    elif any(run.summary.curves for run in runs):
        yield Fold(f"Every level compared with the baseline: {plural(len(effects), 'comparison')}", own)
    else:
        yield from own
        if not own and (measured := _measured(runs)) is not None:
            yield Sheet(measured, long=MAX_SHOWN)


@dataclass(frozen=True)
class _Figure:
    """The measurements of a result in one metric: the median of one value per trial."""

    result: str
    metric: Metric
    median: Median


def _measured(runs: Sequence[ReportRun]) -> Table[_Figure] | None:
    """For runs without comparisons, the figures themselves."""
    if any(run.summary.curves or run.summary.breaking_points for run in runs):
        return None
    found = [
        _Figure(name, metric, median)
        for run in runs
        for name, result in zip(names_of(run.results), run.results, strict=True)
        if not result.is_extra
        for metric in chosen(None)
        if (median := median_of(Entering(result, result.entering), metric)) is not None
    ]
    several = len({figure.result for figure in found}) > 1
    alone = all(figure.median.n == 1 for figure in found)
    title = f"What was measured{'' if alone else ', medians of one value per trial'}"
    return Table("measured", title, [*([_RESULT] if several else []), *_FIGURE], found) if found else None


def _value(figure: _Figure) -> Cell:
    median, quantity = figure.median, figure.metric.quantity
    return Cell(figure.metric.format(median.value), median.value, low=median.low, high=median.high, quantity=quantity)


_RESULT: Column[_Figure] = Column("result", "result", lambda f: f.result, once=True)
_FIGURE: list[Column[_Figure]] = [
    Column("metric", "metric", lambda f: f.metric.words),
    Column("value", "value", _value, NUMBER, help="median over trials [interval]"),
    Column("n", "trials", lambda f: f.median.n, COUNT),
]


def _the_same(runs: Sequence[ReportRun]) -> list[str]:
    """Which comparisons of these runs have no row."""
    same = [c for run in runs for c in run.comparisons if c.kind != OBSERVER and c.constant is not None]
    names = dict.fromkeys(metric.words for c in same if (metric := find(c.metric)) is not None)
    return [f"{plural(len(same), 'more comparison')}: identical in every trial ({', '.join(names)})."] if same else []


def _effects(title: str, effects: Sequence[Effect], ticks: Ticks, same: Sequence[str] = ()) -> Iterator[Effects]:
    if effects:
        notes = [*same]
        if any({e.drawn.low, e.drawn.high} & {0.0, 1.0} for e in effects if e.drawn is not None):
            notes.append("A line that reaches the edge continues beyond it.")
        if any(e.drawn is not None and e.drawn.own_scale for e in effects):
            notes.append("Dotted: a difference, not a factor, on its own scale.")
        yield Effects(Table("effects", title, _DRAWN, effects, notes), ticks, effects[0].drawn)


def beside(runs: Sequence[ReportRun], judged: Sequence[Trust]) -> Iterator[Block]:
    """Whether to trust each run, and why its messages were late."""
    for run, trust in zip(runs, judged, strict=True):
        yield Judgement(trust, run.name if len(runs) > 1 else "")
    if said := why(runs):
        yield Group("lateness", [Heading("Why messages were late", 2), *paragraphs(said)])


def why(runs: Sequence[ReportRun]) -> list[str]:
    """What this machine did not allow to record; a sentence for each traced trial with the longest lateness; how to
    trace if none was."""
    missing = [f"{m.words[:1].upper()}{m.words[1:]}." for run in runs for m in run.manifest.not_recorded]
    found: list[tuple[int, str]] = []
    for run in runs:
        names = {id(r): name for r, name in zip(run.results, names_of(run.results), strict=True)}
        for _, result, trial in run.trials:
            if trial.why is not None:
                found.append((trial.why.total_ns or 0, f"{names[id(result)]}: {_lateness(trial.why)}"))
    if not found:
        own = any(run.own and not run.data.is_virtual for run in runs)
        return missing or (["No trial was traced; `--observer tracing` shows why messages are late."] if own else [])
    found.sort(key=lambda entry: -entry[0])
    rest = len(found) - MAX_WHY
    more = [f"{plural(rest, 'more traced trial')} in the appendix."] if rest > 0 else []
    return [*missing, *(words for _, words in found[:MAX_WHY]), *more]


def _lateness(why: Why) -> str:
    """ "53 of 1 159 messages late; 96 % of their time: CPU of others, mostly CPU 0: stress-ng (pid 7), 61 %." Delays by
    perflab itself are always mentioned."""
    late = f"{format_count(why.late)} of {format_count(why.messages)} messages late"
    causes = [row for row in why.causes if row.get("total_percent") is not None]
    if not why.late or not causes:
        return f"{late}."
    most = max(causes, key=_share)
    cause = CAUSES[most["cause"]].short if most["cause"] in CAUSES else str(most["cause"])
    of_cause = sorted((row for row in why.totals if row.get("cause") == most["cause"]), key=_share, reverse=True)
    who = f"{cause}"
    if of_cause:
        first = of_cause[0]
        alone = percent(_share(first)) == percent(_share(most))
        who = str(first["what"]) if alone else f"{cause}, mostly {first['what']}, {percent(_share(first))}"
    own = [row for row in why.totals if row.get("cause") == "cpu" and row.get("who") in OWN]
    share = sum(map(_share, own))
    said = share < LEAST_OWN or own[0] in of_cause[:1]
    itself = "" if said else f" {ITSELF[:1].upper()}{ITSELF[1:]} had their CPU for {percent(share)}."
    return f"{late}; {percent(_share(most))} of their time: {who}.{itself}"


def _share(row: Mapping[str, Any]) -> float:
    """Share of the time of all late messages, in percent."""
    return float(row.get("total_percent") or 0.0)


def percent(share: float) -> str:
    return f"{share:.2g} %" if share < 99.5 else f"{share:.0f} %"


# ---- as Markdown


def markdown(runs: Sequence[ReportRun], judged: Sequence[Trust], title: str, verdict: str) -> str:
    """The first screen for a pull request; all effects with a difference, and the first of the others."""
    several = len(runs) > 1
    title_of_all = caption_of_runs(runs) if several else caption(runs)
    effects, _ = effects_of_runs(runs) if several else effects_of(runs)
    shown = [e for e in effects if e.comparison.verdict in DIFFERENCES]
    shown += [e for e in effects if e not in shown][: max(0, MAX_SHOWN - len(shown))]
    lines = [f"### {title}", "", *(f"{words}\n" for words in sentences_on(runs)), f"**{verdict}**", ""]
    if shown:
        lines += [
            plain.markdown_table(Table("effects", title_of_all, _TEXT, shown)),
            "",
        ]
        if rest := len(effects) - len(shown):
            lines += [f"{plural(rest, 'more comparison')} without a shown difference.", ""]
    elif not several and (measured := _measured(runs)) is not None:
        lines += [plain.markdown_table(measured), ""]
    for run in runs:
        if run.summary.claims:
            lines += [f"**Claims{f' ({run.name})' if several else ''}, on {machine(run)}**", ""]
            lines += [plain.markdown_table(claims.table(run.summary.claims)), ""]
    for run, trust in zip(runs, judged, strict=True):
        lines += [f"**{trust.sign} {trust.words}{f' ({run.name})' if len(runs) > 1 else ''}**", ""]
        for reason in trust.reasons:
            lines += [f"- {reason.sign} {reason.words}", *(f"  - {detail}" for detail in reason.details)]
        lines.append("")
    if said := why(runs):
        lines += ["**Why messages were late**", "", *(f"- {words}" for words in said), ""]
    return "\n".join(lines)
