"""Two samples of a metric compared as befits the metric, and the result in short."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from perflab.results.comparison import BETTER, DIFFERENCES, WORSE, Comparison, Effect, Lattice, Margin, NoiseFloor
from perflab.statistics.comparison import Analysed, compare
from perflab.statistics.lattice import detect
from perflab.statistics.metrics import LOWER, RATIO, Metric
from perflab.statistics.sample import Sample

ALPHA = 0.05
MARGIN = 0.05  # a difference by a smaller factor is called none


HISTOGRAM_CELLS = 1024  # at least, per doubling (docs/method.md): quantiles sit on lattices of their own


def compare_metric(
    metric: Metric,
    baseline: Sample,
    treatment: Sample,
    alpha: float = ALPHA,
    margin: float = MARGIN,
    floor: NoiseFloor | None = None,
    seed: int = 0,
) -> Analysed:
    """Times and the like as factors with a margin; counts and shares as differences, where no difference is too small
    to matter, so that none is ever called equivalent."""
    is_ratio = metric.compared == RATIO
    comparison = compare(
        baseline,
        treatment,
        metric=f"{metric.words},",  # as verdicts.py puts it in front of what is compared
        alpha=alpha,
        margin=Margin(margin, relative=True) if is_ratio else None,
        noise_floor=floor,
        seed=seed,
        ratio=None if is_ratio else False,
    )
    return replace(comparison, lattice=lattice_of(metric, [*baseline.values, *treatment.values]))


def effect_of(metric: Metric, comparison: Comparison) -> Effect | None:
    """Whether what is shown is worse or better; None where no difference is."""
    if comparison.verdict not in DIFFERENCES:
        return None
    return WORSE if (comparison.verdict == "higher") == (metric.better == LOWER) else BETTER


def effect_words(metric: Metric, comparison: Comparison) -> str:
    """ "1.80x [1.50, 2.20]", "+12 [+3, +20]"; without brackets where there is no interval."""
    value, interval = comparison.estimate.value, comparison.estimate.interval
    if value is None:
        return "–"

    def form(x: float | None) -> str:
        if x is None:
            return "–"
        if comparison.scale == "ratio":
            return f"{x:.2f}" if x < 9.995 else f"{x:.1f}" if x < 99.95 else f"{x:.0f}"
        return f"{'+' if x > 0 else '−' if x < 0 else ''}{metric.format(abs(x))}"

    if comparison.scale == "difference" and interval is not None and interval.low == interval.high == value:
        return form(value)
    unit = "x" if comparison.scale == "ratio" else ""
    between = "" if interval is None else f" [{form(interval.low)}, {form(interval.high)}]"
    return f"{form(value)}{unit}{between}"


def lattice_of(metric: Metric, values: Sequence[float]) -> Lattice | None:
    """That on which trial values sit for another reason than the cells of the histograms or the unit of counts."""
    if metric.compared != RATIO or not values:
        return None
    is_quantile = metric.name.rpartition(".")[2].startswith("p")
    found = detect(values, resolution=max(values) / HISTOGRAM_CELLS if is_quantile else None)
    return found if found is not None and found.kind == "lattice" else None
