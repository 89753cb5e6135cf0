"""Pictures of distributions: percentile curves, and the edges one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from perflab.report import axes
from perflab.report.axes import Unit
from perflab.report.captions import (
    WHAT,
    Draft,
    groups,
    left_out,
    low,
    not_single,
    single,
    subtitle,
    time_axis,
    unmeasured,
    words,
)
from perflab.report.figures import Axis, Figure, Key, Series, Sign, Stroke, Weight, points, rows_axis
from perflab.report.results import ROUND_TRIP, Numbers, Trials, histogram, numbers
from perflab.statistics import histogram as hg
from perflab.statistics.accounting import PUBLISHER_HISTOGRAMS
from perflab.statistics.histogram import Histogram
from perflab.units import format_count, format_time

MIN_BEYOND = 10  # a percentile is reliable where so many messages were slower
MAX_ROWS = 24  # edges in one picture

_NO_QUANTILES = "irobot_benchmark records no distribution: there are means and maxima, no percentiles."


def percentiles(results: Sequence[Trials], measured: Sequence[str]) -> Figure | None:
    """One curve per result, merged over edges and trials; the first figure as a solid line, a second one dashed.

    A curve goes to the last percentile with MIN_BEYOND slower messages, which is marked, and faintly on to the maximum.
    """
    curves = [
        (group, result, name, merged)
        for group, result in enumerate(results)
        for name in measured
        if (merged := histogram(result.trials, name)) is not None
    ]
    if not curves:
        return None
    unit = axes.time_unit(v for *_, h in curves for v in (low(h), h.max or 1))
    draft = Draft()
    top = 90.0
    for group, result, name, merged in curves:
        stroke = _stroke(measured.index(name))
        label = result.label if len(measured) == 1 else f"{result.label}, {words(name)}"
        for trial in single(result.trials):
            own = histogram((trial,), name)
            if own is not None:
                line = _curve(f"{label}, trial {trial.number}", group, own, unit, stroke, "thin")
                draft.series += line[:1]
        draft.series += _curve(label, group, merged, unit, stroke, "thick")
        top = max(top, _last_percentile(merged))
        if _reliable_percentile(merged) is None:
            draft.notes.append(
                f"{label}: {format_count(merged.count)} messages are too few for percentiles; the faint line ends at "
                "the maximum."
            )
    _note_zero(draft, (h for *_, h in curves))
    draft.notes += not_single(results) + left_out(results) + unmeasured(results, measured)
    keys = [Key(words(name), _stroke(i), "thick") for i, name in enumerate(measured)] if len(measured) > 1 else []
    signs = {s.sign for s in draft.series}
    if "ring" in signs:
        keys.append(Key(f"last percentile with {MIN_BEYOND} slower messages", None, sign="ring"))
    keys.append(Key("beyond it, up to the maximum", "dotted", "thin", "bar"))
    if any(len(r.trials) > 1 for r in results):
        keys.append(Key("single trials", "solid", "thin"))
    names = " and ".join(words(name) for name in measured)
    title = WHAT[measured[0]] if len(measured) == 1 else names.capitalize()
    what = "replies" if set(measured) == {ROUND_TRIP} else "messages"
    return Figure(
        name=f"{'_'.join(measured)}_percentiles",
        title=f"{title}: percentiles",
        subtitle=subtitle([(r, n, h.count) for _, r, n, h in curves]),
        x=Axis(f"percentile of {what} (%)", "nines", 0.0, top, axes.percentile_ticks(top)),
        y=time_axis(names, unit, draft.series, "y"),
        series=tuple(draft.series),
        groups=groups(results, draft.series),
        keys=tuple(keys),
        notes=tuple(draft.notes),
    )


def edges(results: Sequence[Trials], name: str) -> Figure | None:
    """p50, p99 and maximum of each edge (publisher, service), worst on top; mean and maximum where there is no more."""
    table = [numbers(result.trials, name) for result in results]
    keys = list(dict.fromkeys(key for row in table for key in row))
    if not keys:
        return None

    def worst(key: tuple[str, ...]) -> tuple[float, float]:
        return max(_badness(row[key]) for row in table if key in row)

    shown = sorted(keys, key=worst, reverse=True)[:MAX_ROWS]
    known = [v for row in table for key in shown if key in row for v in _drawn(row[key])]
    unit = axes.time_unit(known)
    draft = Draft()
    for group, (result, row) in enumerate(zip(results, table, strict=True)):
        places = [(_place(i, group, key, table), key, row[key]) for i, key in enumerate(shown) if key in row]
        draft.series += _edge_series(result.label, group, places, unit)
    owner = "service" if name == ROUND_TRIP else "publisher" if name in PUBLISHER_HISTOGRAMS else "edge"
    if len(keys) > len(shown):
        draft.notes.append(f"The worst {len(shown)} of {len(keys)} {owner}s; `perflab show --json` has all of them.")
    draft.notes += left_out(results) + unmeasured(results, (name,))
    rows = [row[key] for row in table for key in shown if key in row]
    if any(n.p50 is None for n in rows):
        draft.notes.append(_NO_QUANTILES)
    counts = [(r, name, _total(row.values())) for r, row in zip(results, table, strict=True) if row]
    return Figure(
        name=f"{name}_edges",
        title=f"{WHAT[name]}: by {owner}",
        subtitle=subtitle(counts),
        x=time_axis(words(name), unit, draft.series, "x"),
        y=rows_axis([_row_name(key) for key in shown]),
        series=tuple(draft.series),
        groups=groups(results, draft.series),
        keys=_edge_keys(rows),
        notes=tuple(draft.notes),
    )


def _curve(name: str, group: int, h: Histogram, unit: Unit, stroke: Stroke, weight: Weight) -> list[Series]:
    """The reliable part of a percentile curve with its end, and the rest up to the maximum."""
    last, reliable = _last_percentile(h), _reliable_percentile(h)
    grid = _percentile_grid(last, reliable)
    values = np.maximum(_quantiles(h, grid), 1) / unit.ns
    series = []
    split = 0
    if reliable is not None:
        split = int(np.searchsorted(grid, reliable))
        x, y = grid[: split + 1], values[: split + 1]
        standard = [p for p, _ in axes.percentile_ticks(reliable) if p]
        series.append(
            Series(
                name=name,
                group=group,
                shape="line",
                x=tuple(x.tolist()),
                y=tuple(y.tolist()),
                stroke=stroke,
                weight=weight,
                sign="none" if weight == "thin" else "full",
                signed=tuple(int(np.searchsorted(x, p)) for p in standard),
                hover=tuple(_curve_hover(name, p, v * unit.ns) for p, v in zip(x, y, strict=True)),
            )
        )
        hover = f"{_curve_hover(name, reliable, y[-1] * unit.ns)}<br>{MIN_BEYOND} messages were slower"
        series.append(points(f"{name}, last", group, [(reliable, float(y[-1]), hover)], sign="ring"))
    x, y = grid[split:], values[split:]
    series.append(
        Series(
            name=f"{name}, up to the maximum",
            group=group,
            shape="line",
            x=tuple(x.tolist()),
            y=tuple(y.tolist()),
            stroke="dotted",
            weight="thin",
            sign="bar",
            signed=(len(x) - 1,),
            hover=(
                *(_curve_hover(name, p, v * unit.ns) for p, v in zip(x[:-1], y[:-1], strict=True)),
                f"{name}<br>maximum {format_time(h.max)} of {format_count(h.count)} messages",
            ),
        )
    )
    return series


def _curve_hover(name: str, percentile: float, ns: float) -> str:
    return f"{name}<br>{axes.percentile_name(round(percentile, 6))}: {format_time(ns)}"


def _percentile_grid(last: float, reliable: float | None) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Percentiles evenly on the scale of nines, with all that are written on the axis and both ends."""
    places = np.arange(0.0, axes.nines(last), 1 / 48)
    grid = 100.0 * (1.0 - 10.0**-places)
    more = [p for p, _ in axes.percentile_ticks(last)] + [last] + ([] if reliable is None else [reliable])
    merged = np.unique(np.round(np.concatenate([grid, more]), 10))
    if reliable is not None:
        merged[np.argmin(np.abs(merged - reliable))] = reliable
    return merged


def _quantiles(h: Histogram, grid: np.ndarray[Any, np.dtype[np.float64]]) -> np.ndarray[Any, np.dtype[np.float64]]:
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
    """The last percentile with MIN_BEYOND slower messages; None where that is below the median."""
    return 100.0 * (1.0 - MIN_BEYOND / h.count) if h.count >= 2 * MIN_BEYOND else None


def _edge_series(
    label: str, group: int, places: Sequence[tuple[float, tuple[str, ...], Numbers]], unit: Unit
) -> list[Series]:
    ranges_x: list[float | None] = []
    ranges_y: list[float | None] = []
    signs: dict[Sign, list[tuple[float, float, str]]] = {"full": [], "hollow": [], "bar": []}
    for y, key, n in places:
        known = [max(v, 1) / unit.ns for v in _drawn(n)]
        ranges_x += [min(known), max(known), None]
        ranges_y += [y, y, None]
        middle = ("p50", n.p50) if n.p50 is not None else ("mean", n.mean)
        for sign, (word, value) in {"full": middle, "hollow": ("p99", n.p99), "bar": ("max", n.maximum)}.items():
            if value is not None:
                text = f"{_row_name(key)}<br>{label}: {word} {format_time(value)}, {format_count(n.count)} messages"
                signs[sign].append((max(value, 1) / unit.ns, y, text))  # type: ignore[index]
    if not places:
        return []
    series = [Series(label, group, "ranges", tuple(ranges_x), tuple(ranges_y))]
    names = {"full": "middle", "hollow": "p99", "bar": "maximum"}
    return series + [points(f"{label}, {names[sign]}", group, rows, sign=sign) for sign, rows in signs.items() if rows]


def _place(row: int, group: int, key: tuple[str, ...], table: Sequence[dict[tuple[str, ...], Numbers]]) -> float:
    """Where a result stands among those that have this row."""
    present = [g for g, numbers_of in enumerate(table) if key in numbers_of]
    return row + (present.index(group) - (len(present) - 1) / 2) * 0.72 / len(table)


def _total(rows: Iterable[Numbers]) -> int | None:
    counts = [n.count for n in rows]
    known = [n for n in counts if n is not None]
    return sum(known) if len(known) == len(counts) else None


def _drawn(n: Numbers) -> list[float]:
    return [v for v in (n.p50 if n.p50 is not None else n.mean, n.p99, n.maximum) if v is not None]


def _badness(n: Numbers) -> tuple[float, float]:
    """What edges are ordered by: p99, or the maximum where there is none."""
    return (n.p99 if n.p99 is not None else n.maximum or 0.0, n.maximum or 0.0)


def _edge_keys(rows: Sequence[Numbers]) -> tuple[Key, ...]:
    """What the signs of these rows mean: a mean stands where there is no median."""
    middle = [word for word, there in _MIDDLES if any(map(there, rows))]
    keys = [Key(", or ".join(middle), None, sign="full")] if middle else []
    if any(n.p99 is not None for n in rows):
        keys.append(Key("p99", None, sign="hollow"))
    return (*keys, Key("maximum", None, sign="bar"))


_MIDDLES: tuple[tuple[str, Callable[[Numbers], bool]], ...] = (
    ("p50", lambda n: n.p50 is not None),
    ("mean where there is no p50", lambda n: n.p50 is None and n.mean is not None),
)


def _row_name(key: tuple[str, ...]) -> str:
    """ "lyon → hamburg · tigris", or "lyon · tigris" for a publisher: names relative to the root namespace.

    Of a service the client stands first, and alone where the server is not known.
    """
    names = [part.removeprefix("/") for part in key]
    if len(names) == 2:
        return " · ".join(n for n in names if n)
    publisher, topic, subscription = names
    ends = f"{publisher} → {subscription}".strip() if subscription else publisher
    return f"{ends} · {topic}"


def _stroke(index: int) -> Stroke:
    strokes: tuple[Stroke, ...] = ("solid", "dashed")
    return strokes[min(index, 1)]


def _note_zero(draft: Draft, histograms: Iterable[Histogram]) -> None:
    if any(h.min == 0 for h in histograms):
        draft.notes.append("0 ns is drawn at 1 ns: the scale is logarithmic.")
