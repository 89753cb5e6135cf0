"""The meaning of findings, in sentences: one for each thing that a reader must know, in order of importance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from perflab.results.comparison import (
    CLAIMS,
    CONDITION,
    DIFFERENCES,
    MITIGATION,
    OBSERVER,
    FoundLattice,
    FoundOutlier,
    Remark,
    Verdict,
)
from perflab.results.outcome import FAILED, HARNESS_ERROR, INTERRUPTED, INVALID, Outcome
from perflab.statistics.metrics import NOT_MEASURED, Metric, named
from perflab.statistics.pairs import Pair, Place, alone, mitigation_words, observers_of, without_mitigation
from perflab.statistics.proportion import wilson
from perflab.statistics.selection import why_missing
from perflab.statistics.verdicts import (
    ONE_TRIAL,
    SAME,
    by_turns,
    effect_of,
    effect_words,
    in_words,
    more_trials_words,
    no_difference_of,
    no_difference_words,
    scatter_in_words,
    too_few_words,
)
from perflab.units import format_confidence, plural

if TYPE_CHECKING:
    from perflab.statistics.comparison import Compared

    OfPair = Compared[Pair]

T = TypeVar("T")

VIRTUAL = "virtual"  # the runtime in which only the seed is random
MAX_OUTLIERS = 4
MOST_NAMED = 6  # pairs in a remark
# Remark after the cost of an observer without a shown difference.
_DOUBTS: Mapping[Verdict, str] = {
    "equivalent": " (none to speak of)",
    "below_noise_floor": " (not shown)",
    "not_shown": " (not shown)",
    "too_few_trials": " (not shown)",
}

# By importance: what is wrong with the data, what got worse, what could mislead, and then the rest.
ORDER = (
    "one_trial", HARNESS_ERROR, INVALID, "ended_early", "unused", "success", MITIGATION, "worse", "carry_over",
    "same_seed", "better", "more_trials", "spread",
    "missing", "observer", "equivalent", "below_noise_floor", "not_shown", "too_few_trials", SAME, "lattice",
    "outliers",
)  # fmt: skip


def all_of(
    places: Sequence[Place],
    metrics: Sequence[Metric],
    compared: Sequence[OfPair],
    carried: Sequence[OfPair],
    lattices: Sequence[FoundLattice],
    outliers: Sequence[FoundOutlier],
    alpha: float,
    margin: float,
) -> list[Remark]:
    """Every remark, the most important first."""
    counts = [len(r.trials) for p in places for r in p.results]
    of_systems = [entry for entry in compared if entry.of.kind != OBSERVER]
    found = [
        *([Remark("one_trial", ONE_TRIAL)] if len(counts) > 1 and max(counts) == 1 else []),
        *_troubles(places, alpha),
        *_unused(compared),
        *_mitigations(places, compared),
        *_claims(of_systems),
        *_spreads(of_systems),
        *_by_place("carry_over", [e for e in carried if e.comparison.verdict in DIFFERENCES]),
        *_same_seed([*compared, *carried]),
        *_missing(places, metrics),
        *_by_place("observer", [e for e in compared if e.of.kind == OBSERVER]),
        *_others(of_systems, margin),
        *_more(of_systems),
        *_of_values(lattices, outliers, several=len(places) > 1),
    ]
    return sorted(found, key=lambda remark: ORDER.index(remark.kind))


def _troubles(places: Sequence[Place], alpha: float) -> Iterator[Remark]:
    """Trials that do not count, and treatments under which not all succeeded."""
    for place, result in ((p, r) for p in places for r in p.results):
        outcomes, trials = result.result.outcomes, result.result.trials_detail
        of = f"of {plural(result.result.trials, 'trial')}"
        others = "; statements here refer to the others" if result.trials else ""
        interrupted = sum(t.interrupted for t in trials)
        failed = outcomes.harness_error - interrupted
        early = sum(t.outcome == FAILED for t in trials) - sum(t.outcome == FAILED for t in result.trials)
        were, them = ("was", "it") if interrupted == 1 else ("were", "them")
        interval, between = wilson(outcomes.success, outcomes.judged, 1 - alpha), ""
        if interval is not None:
            between = f" ({format_confidence(1 - alpha)} interval {100 * interval[0]:.0f}–{100 * interval[1]:.0f} %)"
        succeeded = f"{outcomes.success} of {plural(outcomes.judged, 'trial')} succeeded{between}"
        found: tuple[tuple[str, int, str, Outcome | None], ...] = (
            (HARNESS_ERROR, interrupted, f"{interrupted} {of} {were} {INTERRUPTED}; `--resume` runs {them}", None),
            (
                HARNESS_ERROR,
                failed,
                f"{failed} {of} {HARNESS_ERROR.counted}, not by the system under test",
                HARNESS_ERROR,
            ),
            (INVALID, outcomes.invalid, f"{outcomes.invalid} {of} invalid, so neither success nor failure", INVALID),
            (
                "ended_early",
                early,
                f"{early} {of} failed before their end and have no figures{others}",
                None,
            ),
            ("success", outcomes.failed, succeeded, FAILED),
        )
        for kind, count, words, of_outcome in found:
            if count:
                reasons = [t.reason for t in trials if t.outcome == of_outcome and not t.interrupted]
                first = next((r for r in reasons if r), None)
                reason = "" if first is None else f" ({'for example ' if len(reasons) > 1 else ''}{first})"
                yield Remark(kind, f"{place.named(result)}: {words}{reason}")


def _unused(compared: Sequence[OfPair]) -> Iterator[Remark]:
    """Blocks from which a pair did not use every trial, because the block lacks the other side."""
    blocks_of: dict[str, set[int]] = {}
    for pair, _, c in compared:
        trials = {f"trial {t.trial}": t.block for r in (pair.baseline, pair.treatment) for t in r.trials}
        blocks = {trials[label] for label in c.unused}
        if c.blocks is not None:
            blocks_of.setdefault(pair.words, set()).update(int(b) for b in blocks if b is not None)
    for numbers, names in _alike({name: tuple(sorted(found)) for name, found in blocks_of.items() if found}).items():
        one = len(numbers) == 1
        which = f"block {numbers[0]} was" if one else f"blocks {', '.join(map(str, numbers))} were"
        words = f"compared within blocks; {which} not complete and {'is' if one else 'are'} not used"
        where = "" if len(names) == len(blocks_of) else f" ({'; '.join(names)})"
        yield Remark("unused", words + where)


def _alike(by_name: Mapping[str, T]) -> dict[T, list[str]]:
    """The names of those that have the same."""
    found: dict[T, list[str]] = {}
    for name, value in by_name.items():
        found.setdefault(value, []).append(name)
    return found


def _missing(places: Sequence[Place], metrics: Sequence[Metric]) -> Iterator[Remark]:
    """Metrics that trials lack although the workload has them."""
    results = [(p, r) for p in places for r in p.results if r.trials]
    for metric in metrics:
        reasons = [(p, r, why) for p, r in results if (why := why_missing(r.trials, metric)) is not None]
        everywhere, different = len(reasons) == len(results), {why for _, _, why in reasons}
        if everywhere and different == {NOT_MEASURED}:
            continue  # no service, or no such figure
        if everywhere and len(different) == 1 < len(results):
            yield Remark("missing", f"{metric.words}: {reasons[0][2]}")
            continue
        for place, result, why in reasons:
            lacking = sum(metric.read(t).value is None for t in result.trials)
            of = f"{lacking} of {plural(len(result.trials), 'trial')}"
            yield Remark("missing", f"{place.named(result)}: {metric.words} missing in {of}: {why}")


def _claims(compared: Sequence[OfPair]) -> Iterator[Remark]:
    """Shown differences: the largest of each pair, and then their others."""
    shown = [e for e in compared if e.comparison.verdict in DIFFERENCES]
    for pair, metric, c in by_turns(shown, lambda e: e.comparison, lambda e: (e.of.place, *e.of.names)):
        yield Remark(effect_of(metric, c) or SAME, pair.said(in_words(c, metric.format)))


def _mitigations(places: Sequence[Place], compared: Sequence[OfPair]) -> Iterator[Remark]:
    """The benefit of each mitigation under each disturbance, and its cost alone, whatever is shown of it."""

    def figures(kind: str, place: Place, treatment: str) -> str:
        mine = [e for e in compared if (e.of.kind, e.of.place, e.of.names[1]) == (kind, place.words, treatment)]
        return ", ".join(f"{m.words} {effect_words(m, c)}{_DOUBTS.get(c.verdict, '')}" for _, m, c in mine)

    for place in places:
        for other in place.disturbed:
            if (without := without_mitigation(place, other)) is None:
                continue
            buys, by_itself = figures(MITIGATION, place, other.treatment), alone(place, other)
            costs = "" if by_itself is None else figures(CONDITION, place, by_itself.treatment)
            if buys:
                where = "" if place.only else f"{place.words}: "
                cost = f"; alone it costs {costs}" if costs else ""
                yield Remark(MITIGATION, f"{where}{mitigation_words(place, other, without)}, buys {buys}{cost}")


def _spreads(compared: Sequence[OfPair]) -> Iterator[Remark]:
    """Treatments whose trials scatter more or less than those of their baseline."""
    for pair, metric, c in compared:
        if c.spread.verdict in ("more", "less"):
            yield Remark("spread", pair.said(scatter_in_words(c, metric.format)))


def _by_place(kind: str, entries: Sequence[OfPair]) -> Iterator[Remark]:
    """At each place the carry-over, or the cost of the observers: baselines with them compared with controls
    without."""
    groups: dict[str, list[OfPair]] = {}
    for entry in entries:
        groups.setdefault(entry.of.place, []).append(entry)
    for group in groups.values():
        pair = group[0].of
        if kind == "carry_over":
            figures = ", ".join(f"{m.words} {effect_words(m, c)}" for _, m, c in group)
            words = "disturbances outlast their trial: baselines right after a disturbance differ from others"
            yield Remark(kind, pair.said(f"{words} ({figures})"))
        else:
            figures = ", ".join(f"{m.words} {effect_words(m, c)}{_DOUBTS.get(c.verdict, '')}" for _, m, c in group)
            yield Remark(kind, pair.said(f"cost of {observers_of(pair.treatment)}: {figures}"))


def _others(compared: Sequence[OfPair], margin: float) -> Iterator[Remark]:
    """One sentence for each reason why no difference was shown."""
    pairs = {entry.of.words for entry in compared}
    for verdict, words in no_difference_words(margin).items():
        mine = [entry for entry in compared if no_difference_of(entry.comparison) == verdict]
        if not mine:
            continue
        by_pair: dict[str, tuple[Metric, ...]] = {}
        for pair, metric, _ in mine:
            by_pair[pair.words] = (*by_pair.get(pair.words, ()), metric)
        by_metrics = _alike(by_pair)
        # "latency p50, CPU (a; b); lost (everywhere)": pairs with the same metrics are grouped.
        everywhere = [len(names) == len(pairs) > 1 for names in by_metrics.values()]
        what = "; ".join(
            f"{', '.join(metric.words for metric in metrics)} ({'everywhere' if every else _where(names, len(pairs))})"
            for (metrics, names), every in zip(by_metrics.items(), everywhere, strict=True)
        )
        about = tuple(metric.name for metrics in by_metrics for metric in metrics) if all(everywhere) else ()
        yield Remark(verdict, f"{words}: {what}", what, about)


def _where(names: Sequence[str], of: int) -> str:
    """Those pairs; if there are many, their number, as the table shows them."""
    return "; ".join(names) if len(names) <= MOST_NAMED else f"{len(names)} of {of} pairs"


def more_trials(compared: Sequence[OfPair]) -> int | None:
    """Further repetitions that would probably decide each comparison with a prediction."""
    return max((c.more_trials for _, _, c in compared if c.more_trials is not None), default=None)


def _more(compared: Sequence[OfPair]) -> Iterator[Remark]:
    """How many more trials would probably decide the undecided ones."""
    inconclusive = [c for _, _, c in compared if c.verdict not in CLAIMS and c.constant is None]
    if more := more_trials_words(inconclusive) + too_few_words(inconclusive):
        are = "is" if len(inconclusive) == 1 else "are"
        words = f"{plural(len(inconclusive), 'comparison')} {are} inconclusive{more}"
        yield Remark("more_trials", f"{words} (`perflab run --resume RUN --until-decided`)")


def _of_values(
    lattices: Sequence[FoundLattice], outliers: Sequence[FoundOutlier], *, several: bool
) -> Iterator[Remark]:
    for lattice in lattices:
        metric = named(lattice.metric)
        where = f"{lattice.variant}: " if several else ""
        steps = f"steps of {metric.format(lattice.period)} (offset {metric.format(lattice.offset)})"
        yield Remark("lattice", f"{where}{metric.words} comes in {steps}: differences below a step mean little")
    by_trial: dict[str, list[str]] = {}
    for outlier in outliers:
        name = f"{outlier.variant}, {outlier.sample}" if several else outlier.sample
        by_trial.setdefault(f"{outlier.label} ({name})", []).append(named(outlier.metric).words)
    shown = [f"{trial}: {', '.join(metrics)}" for trial, metrics in by_trial.items()]
    if len(shown) > MAX_OUTLIERS:
        shown = [*shown[:MAX_OUTLIERS], f"and {len(shown) - MAX_OUTLIERS} more"]
    if shown:
        yield Remark("outliers", f"outliers (kept): {'; '.join(shown)}")


def _same_seed(compared: Sequence[OfPair]) -> Iterator[Remark]:
    """Equal values are not evidence if they are inevitable: on `virtual` all trials of a block have one seed."""
    simulated = [
        c
        for pair, _, c in compared
        if pair.baseline.result.middleware == VIRTUAL == pair.treatment.result.middleware and c.constant is None
    ]
    designs = [c.judged.design for c in simulated]
    equal = [d for d in designs if d.said and d.blocks and all(len({*b.a, *b.b}) == 1 for b in d.blocks)]
    if equal:
        yield Remark(
            "same_seed",
            f"{len(equal)} of {len(simulated)} comparisons on {VIRTUAL} have equal values in every block: all "
            "trials of a block have one seed, so that a change without effect in the simulation changes no value; "
            "this does not measure noise, and other seeds would give the same",
        )
