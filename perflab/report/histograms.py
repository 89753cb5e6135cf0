"""The picture of several times on one axis: the distribution of each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from perflab.report import axes
from perflab.report.captions import durations, left_out, title_of, words, workloads
from perflab.report.figures import AT_BOTTOM, Axis, Figure, Key, Place, Plot, Sign, decades
from perflab.report.multiples import Panel, panelled
from perflab.report.results import Trials, histogram, quantile
from perflab.statistics import histogram as hg
from perflab.statistics.histogram import Histogram
from perflab.statistics.sample import Floats
from perflab.units import format_count, format_time

PER_DECADE = 10  # bins of the axis: with whole microseconds there are no gaps from 4 µs on

_MARKS: tuple[tuple[str, Sign, float], ...] = (
    ("p50", "full", 50.0),
    ("p99", "hollow", 99.0),
    ("maximum", "cross", 100.0),
)


def histograms(results: Sequence[Trials], names: Sequence[str], own: Mapping[str, str]) -> Figure | None:
    """A small picture for each result, with a line for each of these figures over all its trials."""
    plot = Plot(decades("time"), _shares)
    panels: list[Panel] = []
    having: list[Trials] = []
    for result in results:
        found = [(i, h) for i, name in enumerate(names) if (h := histogram(result.trials, name)) is not None]
        first = len(plot.series)
        for group, h in found:
            _draw(plot, f"{result.label}, {words(names[group])}", group, h)
        if found:
            counts = ", ".join(f"{words(names[i])} {format_count(h.count)}" for i, h in found)
            panels.append(Panel(result.label, counts, first, len(plot.series)))
            having.append(result)
    if not having:
        return None
    plot.notes += left_out(having, names)
    drawn = sorted({series.group for series in plot.series})
    figure = plot.figure(
        f"{'_'.join(names[i] for i in drawn)}_histograms",
        "Times on one axis",
        f"{workloads(having)}: {durations(having)}",
        [(i, f"{words(name)}: {_lower(title_of(name, own))}") for i, name in enumerate(names)],
        [Key(word, None, sign=sign) for word, sign, _ in _MARKS],
    )
    return panelled(figure, panels)


def _draw(plot: Plot, name: str, group: int, h: Histogram) -> None:
    edges, counts = _stretches(h)
    shares = [100 * float(count) / h.count for count in counts]
    x: list[float] = [edges[0]]
    y: list[float] = [AT_BOTTOM]
    for i, share in enumerate(shares):
        x += [edges[i], edges[i + 1]]
        y += [share or AT_BOTTOM] * 2
    plot.line(name, group, [*x, edges[-1]], [*y, AT_BOTTOM])
    marks: dict[Sign, list[tuple[float, float, str]]] = {}
    for word, sign, percentile in _MARKS:
        value = h.max if percentile == 100.0 else quantile(h, percentile)
        if value is None:
            continue
        at = max(float(value), 1.0)
        place = min(max(int(np.searchsorted(edges, at, side="right")) - 1, 0), len(shares) - 1)
        said = f"{name}<br>{word} {format_time(value)} of {format_count(h.count)}"
        marks.setdefault(sign, []).append((at, shares[place] or AT_BOTTOM, said))
    for sign, own in marks.items():
        plot.points(name, group, own, sign=sign)


def _stretches(h: Histogram) -> tuple[list[float], Floats]:
    """The edges of bins with equal length on the axis, and how many values lie in each."""
    middles = np.maximum((hg.lowest_value(h.indices) + hg.highest_value(h.indices)) / 2, 1.0)
    first = math.floor(math.log10(float(middles.min())) * PER_DECADE)
    last = math.floor(math.log10(float(middles.max())) * PER_DECADE) + 1
    edges = 10.0 ** (np.arange(first, last + 1) / PER_DECADE)
    counts, _ = np.histogram(middles, edges, weights=h.counts)
    return edges.tolist(), counts


def _shares(values: Sequence[float]) -> tuple[Axis, Place]:
    low = min([*values, 100.0]) / 1.6
    return Axis("share of the values (%)", "log", low, 130.0, axes.log_ticks(low, 130.0)), float


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:] if text[1:2].islower() else text
