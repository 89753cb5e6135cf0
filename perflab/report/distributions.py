"""Pictures of distributions: percentile curves, and individual edges."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perflab.report import axes
from perflab.report.captions import WHAT, counted_as, groups, left_out, not_single, single, subtitle, title_of, words
from perflab.report.figures import Axis, Figure, Key, Plot, Sign, Stroke, Weight, fixed, rows, times
from perflab.report.results import ROUND_TRIP, Numbers, Trials, histogram, merged, numbers, own_times
from perflab.results.run import PERFLAB
from perflab.statistics import histogram as hg
from perflab.statistics.accounting import PUBLISHER_HISTOGRAMS
from perflab.statistics.histogram import Histogram
from perflab.statistics.sample import Floats
from perflab.units import format_count, format_time

MIN_BEYOND = 10  # a percentile is reliable if this many messages were slower
MAX_ROWS = 24  # edges in one picture

_STROKES: tuple[Stroke, ...] = ("solid", "dashed")  # for the first and the second figure in one picture
_SIGNS: tuple[tuple[Sign, str], ...] = (("full", "middle"), ("hollow", "p99"), ("bar", "maximum"))  # of an edge


def percentiles(results: Sequence[Trials], measured: Sequence[str]) -> Figure | None:
    """One curve per result, merged over edges and trials; solid for the first figure, dashed for a second one.

    A curve goes to the last percentile with MIN_BEYOND slower messages, which is marked, and continues faintly to the
    maximum.
    """
    of_trials = {
        (group, name): [histogram((trial,), name) for trial in result.trials]
        for group, result in enumerate(results)
        for name in measured
    }
    curves = [
        (group, results[group], name, whole)
        for (group, name), parts in of_trials.items()
        if (whole := merged(parts)) is not None
    ]
    if not curves:
        return None
    names = " and ".join(words(name) for name in measured)
    several = len(measured) > 1
    what = counted_as(measured)
    top = max(90.0, *(_last_percentile(whole) for *_, whole in curves))
    x = Axis(f"percentile of {what} (%)", "nines", 0.0, top, axes.percentile_ticks(top))
    plot = Plot(fixed(x), times(names))
    for group, result, name, whole in curves:
        stroke = _STROKES[measured.index(name)]
        label = f"{result.label}, {words(name)}" if several else result.label
        for trial, own in single(list(zip(result.trials, of_trials[group, name], strict=True))):
            if own is not None:
                _curve(plot, f"{label}, trial {trial.number}", group, own, stroke, "thin", what)
        _curve(plot, label, group, whole, stroke, "thick", what)
        if _reliable_percentile(whole) is None:
            plot.notes.append(
                f"{label}: {format_count(whole.count)} {what} are too few for percentiles; the faint line ends at "
                "the maximum."
            )
    if any(whole.min == 0 for *_, whole in curves):
        plot.notes.append("0 ns is drawn at 1 ns: the scale is logarithmic.")
    plot.notes += not_single(results) + left_out(results, measured)
    return plot.figure(
        f"{'_'.join(measured)}_percentiles",
        f"{names.capitalize() if several else title_of(measured[0], own_times(results))}: percentiles",
        subtitle([(r, n, h.count) for _, r, n, h in curves]),
        groups(results),
        [
            *(Key(words(name), stroke, "thick") for name, stroke in zip(measured, _STROKES, strict=False) if several),
            Key(f"last percentile with {MIN_BEYOND} slower {what}", None, sign="ring"),
            Key("beyond it, up to the maximum", "dotted", "thin", "bar"),
            Key("single trials", "solid", "thin"),
        ],
    )


def _curve(plot: Plot, name: str, group: int, h: Histogram, stroke: Stroke, weight: Weight, what: str) -> None:
    """The reliable part of a percentile curve with its end, and the rest up to the maximum; for a single trial only the
    first of these."""
    last, reliable = _last_percentile(h), _reliable_percentile(h)
    grid = _percentile_grid(last, reliable)
    values = np.maximum(_quantiles(h, grid), 1)
    hover = []
    if weight != "thin" or reliable is None:  # points of thin lines have no hover text
        hover = [
            f"{name}<br>{round(p, 6):.10g} %: {format_time(value)}"
            for p, value in zip(grid.tolist(), values.tolist(), strict=True)
        ]
    split = 0
    if reliable is not None:
        split = int(np.searchsorted(grid, reliable))
        x, y = grid[: split + 1].tolist(), values[: split + 1].tolist()
        marked = tuple(int(np.searchsorted(x, p)) for p, _ in axes.percentile_ticks(reliable) if p)
        sign: Sign = "none" if weight == "thin" else "full"
        plot.line(name, group, x, y, hover=hover[: split + 1], stroke=stroke, weight=weight, sign=sign, signed=marked)
        if weight == "thin":
            return
        end = f"{hover[split]}<br>{MIN_BEYOND} {what} were slower"
        plot.points(f"{name}, last", group, [(reliable, y[-1], end)], sign="ring")
    hover[-1] = f"{name}<br>maximum {format_time(h.max)} of {format_count(h.count)} {what}"
    plot.line(
        f"{name}, up to the maximum", group, grid[split:].tolist(), values[split:].tolist(), hover=hover[split:],
        stroke="dotted", weight="thin", sign="bar", signed=(len(grid) - split - 1,),
    )  # fmt: skip


def _percentile_grid(last: float, reliable: float | None) -> Floats:
    """Percentiles evenly on the scale of nines, including the labelled ones and both ends."""
    places = np.arange(0.0, axes.nines(last), 1 / 48)
    grid = 100.0 * (1.0 - 10.0**-places)
    more = [p for p, _ in axes.percentile_ticks(last)] + [last] + ([] if reliable is None else [reliable])
    merged = np.unique(np.round(np.concatenate([grid, more]), 10))
    if reliable is not None:
        merged[np.argmin(np.abs(merged - reliable))] = reliable
    return merged


def _quantiles(h: Histogram, grid: Floats) -> Floats:
    """HdrHistogram's values at percentiles, never above the exact maximum; at 0 the exact minimum."""
    total = int(h.counts.sum())
    targets = np.maximum((grid * total / 100 + 0.5).astype(np.int64), 1)
    places = np.minimum(np.searchsorted(np.cumsum(h.counts), targets), h.indices.size - 1)
    values = hg.highest_value(h.indices[places]).astype(np.float64)
    if h.max is not None:
        values = np.minimum(values, h.max)
    if h.min is not None:
        values = np.where(grid == 0.0, h.min, values)
    return values


def _last_percentile(h: Histogram) -> float:
    """The percentile at which the curve reaches the maximum."""
    return 100.0 * (1.0 - 1.0 / (2 * max(h.count, 1)))


def _reliable_percentile(h: Histogram) -> float | None:
    """The last percentile with MIN_BEYOND slower messages; None if it is below the median."""
    return 100.0 * (1.0 - MIN_BEYOND / h.count) if h.count >= 2 * MIN_BEYOND else None


# -- edges -------------------------------------------------------------------------------------------------------------


def edges(results: Sequence[Trials], name: str) -> Figure | None:
    """p50, p99 and maximum of each edge (publisher, service), worst on top; mean and maximum if only these exist."""
    table = [numbers(result.trials, name) for result in results]
    keys = list(dict.fromkeys(key for row in table for key in row))
    if not keys:
        return None

    def worst(key: tuple[str, ...]) -> tuple[float, float]:
        """p99, or the maximum without one."""
        found = [row[key] for row in table if key in row]
        return max((n.p99 if n.p99 is not None else n.maximum or 0.0, n.maximum or 0.0) for n in found)

    shown = sorted(keys, key=worst, reverse=True)[:MAX_ROWS]
    plot = Plot(times(words(name)), rows([_row_name(key) for key in shown]))
    for group, (result, own) in enumerate(zip(results, table, strict=True)):
        present = [(_place(i, group, key, table), key, own[key]) for i, key in enumerate(shown) if key in own]
        _edges(plot, result.label, group, present)
    owner = "service" if name == ROUND_TRIP else "publisher" if name in PUBLISHER_HISTOGRAMS else "edge"
    if len(keys) > len(shown):
        plot.notes.append(f"The worst {len(shown)} of {len(keys)} {owner}s; `perflab show --json` has all of them.")
    plot.notes += left_out(results, (name,))
    known = [row[key] for row in table for key in shown if key in row]
    middles = ["p50"] if any(n.p50 is not None for n in known) else []
    if any(n.p50 is None for n in known):
        programs = dict.fromkeys(r.run.program for r in results if r.run.origin != PERFLAB)
        who = " and ".join(programs) or "what was recorded"
        plot.notes.append(f"{who} has no distribution: only means and maxima, no percentiles.")
        if any(n.p50 is None and n.mean is not None for n in known):
            middles.append("mean if there is no p50")
    return plot.figure(
        f"{name}_edges",
        f"{WHAT[name]}: by {owner}",
        subtitle([(result, name, _total(own)) for result, own in zip(results, table, strict=True) if own]),
        groups(results),
        [
            Key(", or ".join(middles), None, sign="full"),
            Key("p99", None, sign="hollow"),
            Key("maximum", None, sign="bar"),
        ],
    )


def _edges(plot: Plot, label: str, group: int, places: Sequence[tuple[float, tuple[str, ...], Numbers]]) -> None:
    """Edges of a result at their rows: the range of the known values of each, and a sign for each number."""
    ranges: list[tuple[float | None, float | None]] = []
    signs: dict[Sign, list[tuple[float, float, str]]] = {sign: [] for sign, _ in _SIGNS}
    for y, key, n in places:
        middle = ("p50", n.p50) if n.p50 is not None else ("mean", n.mean)
        known = zip(signs, (middle, ("p99", n.p99), ("max", n.maximum)), strict=True)
        drawn = [(sign, word, value) for sign, (word, value) in known if value is not None]
        values = [value for *_, value in drawn]
        ranges += [(min(values), y), (max(values), y), (None, None)]
        for sign, word, value in drawn:
            text = f"{_row_name(key)}<br>{label}: {word} {format_time(value)}, {format_count(n.count)} messages"
            signs[sign].append((value, y, text))
    if places:
        plot.line(label, group, *zip(*ranges, strict=True), shape="ranges")
    for sign, word in _SIGNS:
        plot.points(f"{label}, {word}", group, signs[sign], sign=sign)


def _place(row: int, group: int, key: tuple[str, ...], table: Sequence[dict[tuple[str, ...], Numbers]]) -> float:
    """The offset of a result among those in the same row."""
    present = [g for g, numbers_of in enumerate(table) if key in numbers_of]
    return row + (present.index(group) - (len(present) - 1) / 2) * 0.72 / len(table)


def _total(found: dict[tuple[str, ...], Numbers]) -> int | None:
    known = [n.count for n in found.values() if n.count is not None]
    return sum(known) if len(known) == len(found) else None


def _row_name(key: tuple[str, ...]) -> str:
    """ "lyon → hamburg · tigris", or "lyon · tigris" for a publisher: names relative to the root namespace.

    For a service the client comes first, and alone if the server is unknown.
    """
    names = [part.removeprefix("/") for part in key]
    if len(names) == 2:
        return " · ".join(n for n in names if n)
    publisher, topic, subscription = names
    ends = f"{publisher} → {subscription}".strip() if subscription else publisher
    return f"{ends} · {topic}"
