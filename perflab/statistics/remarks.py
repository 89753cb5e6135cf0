"""What findings mean, in sentences: one for each thing that a reader must know, in the order of their importance."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from perflab.results.comparison import (
    DIFFERENCES,
    FACTOR,
    OBSERVER,
    VARIANT,
    Comparison,
    FoundLattice,
    FoundOutlier,
    Remark,
)
from perflab.results.outcome import FAILED, HARNESS_ERROR, INVALID, Outcome
from perflab.statistics.comparison import Analysed, Compared, effect_of, effect_words
from perflab.statistics.metrics import NOT_MEASURED, Metric, named
from perflab.statistics.pairs import Entering, Pair, Place, observers_of
from perflab.statistics.proportion import wilson
from perflab.statistics.sample import Block
from perflab.statistics.selection import why_missing
from perflab.statistics.verdicts import in_words, scatter_in_words
from perflab.units import format_confidence, plural

OfPair = Compared[Pair]

ONE_TRIAL = "one trial each: nothing can be said about differences; --trials 5 or more"

SAME = "same"
VIRTUAL = "virtual"  # the runtime of which nothing but the seed is random
MAX_OUTLIERS = 4

# By importance: what is wrong with the data, what got worse, what could mislead, and then the rest.
ORDER = (
    "one_trial", HARNESS_ERROR, INVALID, "ended_early", "unused", "success", "worse", "carry_over",
    "same_seed", "better", "spread",
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
    several = len(places) > 1
    counts = [len(r.trials) for p in places for r in p.results]
    found = [
        *([Remark("one_trial", ONE_TRIAL)] if len(counts) > 1 and max(counts) == 1 else []),
        *_troubles(places, several, alpha),
        *_unused(compared, several),
        *_claims(compared, several),
        *_spreads(compared, several),
        *_carried_over(carried, several),
        *_same_seed([*compared, *carried]),
        *_missing(places, metrics, several),
        *_observers(compared, several),
        *_others(compared, several, alpha, margin),
        *_of_values(lattices, outliers, several),
    ]
    return sorted(found, key=lambda remark: ORDER.index(remark.kind))


def _troubles(places: Sequence[Place], several: bool, alpha: float) -> list[Remark]:
    """Trials that do not enter, and treatments under which not all succeeded."""
    remarks: list[Remark] = []
    for place, result in ((p, r) for p in places for r in p.results):
        outcomes, trials = result.result.outcomes, result.result.trials_detail
        of = f"of {plural(result.result.trials, 'trial')}"
        interrupted = sum(t.interrupted for t in trials)
        failed = outcomes.harness_error - interrupted
        early = sum(t.outcome == FAILED for t in trials) - sum(t.outcome == FAILED for t in result.trials)
        were, them = ("was", "it") if interrupted == 1 else ("were", "them")
        interval, between = wilson(outcomes.success, outcomes.judged, 1 - alpha), ""
        if interval is not None:
            between = f" ({format_confidence(1 - alpha)} interval {100 * interval[0]:.0f}–{100 * interval[1]:.0f} %)"
        succeeded = f"{outcomes.success} of {plural(outcomes.judged, 'trial')} succeeded{between}"
        found = (
            (HARNESS_ERROR, interrupted, f"{interrupted} {of} {were} interrupted; `--resume` runs {them}"),
            (
                HARNESS_ERROR,
                failed,
                f"{failed} {of} {HARNESS_ERROR.counted}, not by what it measures{_reason(result, HARNESS_ERROR)}",
            ),
            (
                INVALID,
                outcomes.invalid,
                f"{outcomes.invalid} {of} invalid, so neither success nor failure{_reason(result, INVALID)}",
            ),
            (
                "ended_early",
                early,
                f"{early} {of} failed before their end and have no figures; what is said here is of the others",
            ),
            ("success", outcomes.failed, f"{succeeded}{_reason(result, FAILED)}"),
        )
        name = _named(place, result, several)
        remarks += [Remark(kind, f"{name}: {words}") for kind, count, words in found if count]
    return remarks


def _reason(result: Entering, outcome: Outcome) -> str:
    trials = [t for t in result.result.trials_detail if t.outcome == outcome and not t.interrupted]
    reasons = [t.reason for t in trials]
    first = next((r for r in reasons if r), None)
    return "" if first is None else f" ({'for example ' if len(reasons) > 1 else ''}{first})"


def _unused(compared: Sequence[OfPair], several: bool) -> list[Remark]:
    """Blocks of which a pair did not use every trial, for the block lacks the other side."""
    blocks_of: dict[str, set[int]] = {}
    for pair, _, c in compared:
        trials = {f"trial {t.trial}": t.block for r in (pair.baseline, pair.treatment) for t in r.trials}
        blocks = {trials[label] for label in c.unused}
        if c.blocks is not None:
            blocks_of.setdefault(_pair_words(pair, several), set()).update(int(b) for b in blocks if b is not None)
    by_blocks: dict[tuple[int, ...], list[str]] = {}
    for name, found in blocks_of.items():
        if found:
            by_blocks.setdefault(tuple(sorted(found)), []).append(name)
    remarks: list[Remark] = []
    for numbers, names in by_blocks.items():
        one = len(numbers) == 1
        which = f"block {numbers[0]} was" if one else f"blocks {', '.join(map(str, numbers))} were"
        words = f"compared within blocks; {which} not complete and {'is' if one else 'are'} not used"
        where = "" if len(names) == len(blocks_of) else f" ({'; '.join(names)})"
        remarks.append(Remark("unused", words + where))
    return remarks


def _missing(places: Sequence[Place], metrics: Sequence[Metric], several: bool) -> list[Remark]:
    """Metrics that trials did not give although the workload has them."""
    remarks: list[Remark] = []
    results = [(p, r) for p in places for r in p.results if r.trials]
    for metric in metrics:
        reasons = [(p, r, why) for p, r in results if (why := why_missing(r.trials, metric)) is not None]
        if reasons and all(why == NOT_MEASURED for _, _, why in reasons) and len(reasons) == len(results):
            continue  # no service, or no such figure
        if len({why for _, _, why in reasons}) == 1 and len(reasons) == len(results) > 1:
            remarks.append(Remark("missing", f"{metric.words}: {reasons[0][2]}"))
            continue
        for place, result, why in reasons:
            lacking = sum(metric.read(t).value is None for t in result.trials)
            of = f"{lacking} of {plural(len(result.trials), 'trial')}"
            words = f"{_named(place, result, several)}: {metric.words} missing in {of}: {why}"
            remarks.append(Remark("missing", words))
    return remarks


def _claims(compared: Sequence[OfPair], several: bool) -> list[Remark]:
    """What is shown to differ: the largest difference of each pair, and then their others."""

    def size(entry: OfPair) -> float:
        c = entry.comparison
        value = c.estimate.value
        if value is None:
            return 0.0
        return abs(math.log(value)) if c.scale == "ratio" and value > 0 else math.inf

    shown = [e for e in compared if e.comparison.verdict in DIFFERENCES and e.of.kind != OBSERVER]
    by_pair: dict[tuple[str, ...], list[OfPair]] = {}
    for entry in sorted(shown, key=size, reverse=True):
        by_pair.setdefault((entry.of.place, *entry.of.names), []).append(entry)
    ordered = [e for row in itertools.zip_longest(*by_pair.values()) for e in row if e is not None]
    return [
        Remark(effect_of(metric, c) or SAME, _prefixed(pair, several, in_words(c, metric.format)))
        for pair, metric, c in ordered
    ]


def _spreads(compared: Sequence[OfPair], several: bool) -> list[Remark]:
    """Treatments whose trials scatter more or less than those of their baseline."""
    shown = [e for e in compared if e.comparison.spread.verdict in ("more", "less") and e.of.kind != OBSERVER]
    return [Remark("spread", _prefixed(p, several, scatter_in_words(c, metric.format))) for p, metric, c in shown]


def _carried_over(carried: Sequence[OfPair], several: bool) -> list[Remark]:
    remarks = []
    for pair, shown in _by_place([e for e in carried if e.comparison.verdict in DIFFERENCES]):
        figures = ", ".join(f"{m.words} {effect_words(m, c)}" for _, m, c in shown)
        words = f"what disturbs outlasts its trial: baselines right after a disturbance differ from others ({figures})"
        remarks.append(Remark("carry_over", _prefixed(pair, several, words)))
    return remarks


def _observers(compared: Sequence[OfPair], several: bool) -> list[Remark]:
    """What the observers cost: baselines with them against controls without."""
    remarks = []
    for pair, mine in _by_place([e for e in compared if e.of.kind == OBSERVER]):
        figures = ", ".join(f"{m.words} {effect_words(m, c)}{_doubt(c)}" for _, m, c in mine)
        words = f"cost of {observers_of(pair.treatment)}: {figures}"
        remarks.append(Remark("observer", _prefixed(pair, several, words)))
    return remarks


def _by_place(entries: Sequence[OfPair]) -> list[tuple[Pair, list[OfPair]]]:
    """Each with the first of its pairs."""
    groups: dict[str, list[OfPair]] = {}
    for entry in entries:
        groups.setdefault(entry.of.place, []).append(entry)
    return [(group[0].of, group) for group in groups.values()]


def _doubt(comparison: Comparison) -> str:
    return {"equivalent": " (none to speak of)", **dict.fromkeys(DIFFERENCES, "")}.get(
        comparison.verdict, " (not shown)"
    )


def no_difference_of(comparison: Comparison) -> str:
    """The key of a comparison in no_difference_words()."""
    return str(comparison.verdict) if comparison.constant is None else SAME


def no_difference_words(margin: float) -> dict[str, str]:
    """What to say of comparisons that show no difference, by their verdict; SAME: every trial gave the same value."""
    return {
        "equivalent": f"no difference larger than {100 * margin:.3g} %",
        "below_noise_floor": "no more than baselines differ among themselves",
        "not_shown": "neither a difference nor its absence is shown",
        "too_few_trials": "not enough trials to tell",
        SAME: "the same in every trial",
    }


def _others(compared: Sequence[OfPair], several: bool, alpha: float, margin: float) -> list[Remark]:
    """One sentence for each way in which no difference was shown."""
    listed = [entry for entry in compared if entry[0].kind != OBSERVER]
    remarks = []
    for verdict, words in no_difference_words(margin).items():
        mine = [entry for entry in listed if entry[2].verdict == verdict and entry.comparison.constant is None]
        if verdict == SAME:
            mine = [entry for entry in listed if entry.comparison.constant is not None]
        if not mine:
            continue
        what, everywhere = _grouped(mine, listed, several)
        needed = trials_needed(mine, alpha) if verdict == "too_few_trials" else None
        advice = "" if needed is None else trials_advice(needed)
        remarks.append(Remark(verdict, f"{words}: {what}{advice}", what, everywhere))
    return remarks


def trials_advice(needed: int) -> str:
    return f"; --trials {needed} or more"


def _grouped(mine: Sequence[OfPair], everything: Sequence[OfPair], several: bool) -> tuple[str, tuple[str, ...]]:
    """ "latency p50, CPU (a; b); lost (everywhere)": pairs with the same metrics stand together. And the names of the
    metrics, where all of it holds everywhere."""
    by_pair: dict[str, list[Metric]] = {}
    for pair, metric, _ in mine:
        by_pair.setdefault(_pair_words(pair, several), []).append(metric)
    by_metrics: dict[tuple[Metric, ...], list[str]] = {}
    for name, metrics in by_pair.items():
        by_metrics.setdefault(tuple(metrics), []).append(name)
    pairs = {_pair_words(pair, several) for pair, _, _ in everything}
    everywhere = [len(names) == len(pairs) > 1 for names in by_metrics.values()]
    words = "; ".join(
        ", ".join(metric.words for metric in metrics) + (" (everywhere)" if all_of_them else f" ({'; '.join(names)})")
        for (metrics, names), all_of_them in zip(by_metrics.items(), everywhere, strict=True)
    )
    return words, tuple(metric.name for metrics in by_metrics for metric in metrics) if all(everywhere) else ()


def trials_needed(compared: Sequence[OfPair], alpha: float) -> int | None:
    """Repetitions with which every one of these could come out at all, with designs like theirs.

    A repetition is a block; all of them have as many arrangements as the average one of the design has now.
    """
    needed = [
        math.ceil(_repetitions(c) * math.log(2 * c.family_size / alpha) / math.log(c.design.arrangements) - 1e-9)
        for _, _, c in compared
        if c.verdict == "too_few_trials" and c.design.arrangements > 1
    ]
    return max(needed, default=None)


def _repetitions(comparison: Analysed) -> int:
    """Blocks, each of which may hold the baseline several times; without any, trials of the smaller sample."""
    design = comparison.design
    return len(design.blocks) if design.said else min(len(design.a), len(design.b))


def _of_values(lattices: Sequence[FoundLattice], outliers: Sequence[FoundOutlier], several: bool) -> list[Remark]:
    remarks = []
    for lattice in lattices:
        metric = named(lattice.metric)
        where = f"{lattice.variant}: " if several else ""
        step, offset = metric.format(lattice.period), metric.format(lattice.offset)
        words = (
            f"{where}{metric.words} comes in steps of {step} (offset {offset}): differences below a step mean little"
        )
        remarks.append(Remark("lattice", words))
    if outliers:
        by_trial: dict[str, list[str]] = {}
        for outlier in outliers:
            name = f"{outlier.variant}, {outlier.sample}" if several else outlier.sample
            by_trial.setdefault(f"{outlier.label} ({name})", []).append(named(outlier.metric).words)
        shown = list(by_trial.items())[:MAX_OUTLIERS]
        listed = "; ".join(f"{trial}: {', '.join(metrics)}" for trial, metrics in shown)
        if len(by_trial) > len(shown):
            listed += f"; and {len(by_trial) - len(shown)} more"
        remarks.append(Remark("outliers", f"far from the other trials, and kept: {listed}"))
    return remarks


def _same_seed(compared: Sequence[OfPair]) -> list[Remark]:
    """That equal values are no evidence where they had to be: on `virtual` all trials of a block have one seed."""
    simulated = [
        c
        for pair, _, c in compared
        if pair.baseline.result.middleware == VIRTUAL == pair.treatment.result.middleware and c.constant is None
    ]
    equal = [c for c in simulated if c.design.said and c.design.blocks and all(map(_is_equal, c.design.blocks))]
    if not equal:
        return []
    words = (
        f"{len(equal)} of {len(simulated)} comparisons on {VIRTUAL} are of equal values in every block: all trials of "
        "a block have one seed, so that what changes nothing in the simulation changes no value; this is no "
        "measurement of noise, and other seeds would say it again"
    )
    return [Remark("same_seed", words)]


def _is_equal(block: Block) -> bool:
    return len({*block.a.tolist(), *block.b.tolist()}) == 1


def _named(place: Place, result: Entering, several: bool) -> str:
    name = f"{result.treatment} without observers" if result.result.is_control else result.treatment
    return f"{place.words}, {name}" if several else name


def _pair_words(pair: Pair, several: bool) -> str:
    if pair.kind == VARIANT:
        return f"{pair.names[1]} against {pair.names[0]}"
    words = f"{pair.names[1]} against {pair.names[0]}" if pair.kind == FACTOR else pair.names[1]
    return f"{pair.place}, {words}" if several else words


def _prefixed(pair: Pair, several: bool, words: str) -> str:
    return f"{pair.place}: {words}" if several and pair.place else words
