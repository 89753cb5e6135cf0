"""Figures as SVG, PNG or PDF, drawn by matplotlib without a window system and without its global state."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from perflab.report import axes
from perflab.report.figures import Axis, Cells, Figure, Key, Label, Series, Sign, Spans, stretches
from perflab.report.palette import BAND_OPACITY, THEMES, Background, Theme, color, ground, mark, shade

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas
    from matplotlib.lines import Line2D

Format = Literal["svg", "png", "pdf"]
FORMATS: tuple[Format, ...] = ("svg", "png", "pdf")

WIDTH_IN = 9.0
PLOT_HEIGHT_IN = 4.4
ROW_HEIGHT_IN = 0.27
MORE_PER_RESULT_IN = 0.09
WIDE_SPAN = 0.02  # of the axis: a number fits in
NOTE_LETTERS = 125
NAME_LETTERS = 56  # of an edge

_WEIGHTS = {"thick": 2.0, "normal": 1.5, "thin": 0.8}
_WHISKERS = {"thick": 2.2, "normal": 1.2, "thin": 0.9}
_STROKES: dict[str, Any] = {"solid": "-", "dashed": (0, (5, 2.2)), "dotted": (0, (1, 1.8))}
_SIGN_SIZES: dict[Sign, float] = {
    "full": 5.5, "hollow": 5.5, "bar": 8.0, "dot": 3.5, "cross": 4.5, "ring": 10.0, "box": 9.0,
    "lost": 7.0, "whisker": 0.0, "band": 10.0, "ground": 10.0,
}  # fmt: skip


def draw(figure: Figure, fmt: Format, background: Background = "light", dpi: int = 150) -> bytes:
    """The picture as a file of that format; `dpi` is that of a PNG. The same figure gives the same bytes."""
    import matplotlib as mpl

    theme = THEMES[background]
    settings: Any = {
        "font.family": "sans-serif",
        "font.sans-serif": ["DejaVu Sans"],
        "font.size": 9.0,
        "svg.fonttype": "none",  # text stays text: it can be found, read aloud and copied
        "svg.hashsalt": figure.name,
        "pdf.fonttype": 42,  # likewise; the letters that occur are in the file
        "axes.edgecolor": theme.faint,
        "text.color": theme.ink,
        "text.parse_math": False,
        "axes.unicode_minus": True,
    }
    with mpl.rc_context(settings):
        canvas = _compose(figure, theme)
        out = io.BytesIO()
        metadata: dict[str, Any] = {"Title": f"{figure.title} ({figure.subtitle})", "Software": None}
        if fmt == "svg":
            metadata = {"Title": metadata["Title"], "Date": None, "Creator": "perflab"}
        if fmt == "pdf":
            metadata = {"Title": metadata["Title"], "Creator": "perflab", "Producer": None, "CreationDate": None}
        canvas.savefig(out, format=fmt, dpi=dpi if fmt == "png" else 72, facecolor=theme.background, metadata=metadata)
    return out.getvalue()


def _compose(figure: Figure, theme: Theme) -> Canvas:
    """Title, plot, legend and notes below each other; only the plot grows with its rows."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    rows = len(figure.y.ticks) if figure.y.scale == "rows" else 0
    plot_in = PLOT_HEIGHT_IN
    if rows:
        lanes = figure.lanes or max(1, len(figure.groups))
        plot_in = max(1.4, rows * (ROW_HEIGHT_IN + MORE_PER_RESULT_IN * (lanes - 1)) + 0.5)
    notes = "\n".join(line for note in figure.notes for line in textwrap.wrap(note, NOTE_LETTERS))
    notes_in = 0.142 * len(notes.splitlines()) + (0.1 if notes else 0.0)
    title_in = 0.62

    canvas = Canvas(figsize=(WIDTH_IN, plot_in), facecolor=theme.background)
    renderer: Any = FigureCanvasAgg(canvas).get_renderer()  # type: ignore[no-untyped-call]
    legends = _legends(canvas, renderer, figure, theme)
    heights = [legend.get_window_extent(renderer).height / canvas.dpi + 0.02 for legend in legends]
    legend_in = sum(heights) + 0.1
    height = title_in + plot_in + legend_in + notes_in + 0.12
    canvas.set_size_inches(WIDTH_IN, height)
    above = notes_in + 0.06
    for legend, own in zip(reversed(legends), reversed(heights), strict=True):
        legend.set_bbox_to_anchor((0.012, above / height), transform=canvas.transFigure)
        above += own

    canvas.set_layout_engine("constrained")
    engine = canvas.get_layout_engine()
    assert engine is not None
    bottom = (legend_in + notes_in + 0.06) / height
    engine.set(rect=(0.0, bottom, 1.0, 1.0 - bottom - title_in / height), w_pad=0.1, h_pad=0.05)  # type: ignore[call-arg]
    plot = canvas.add_subplot()
    _dress(plot, figure, theme)
    for cells in figure.cells:
        _draw_cells(plot, cells, theme)
    for spans in figure.spans:
        _draw_spans(plot, figure, spans, theme)
    for series in figure.series:
        _draw_series(plot, figure, series, theme)
    for label in figure.labels:
        _draw_label(plot, figure, label, theme)
    for reference in figure.references:
        plot.axhline(reference.value, color=theme.ink, linewidth=1.2, linestyle=_STROKES["dashed"], zorder=2)
        plot.annotate(
            reference.label, (1.0, reference.value), xycoords=("axes fraction", "data"), xytext=(-4, 3),
            textcoords="offset points", ha="right", va="bottom", fontsize=8.5, color=theme.ink,
        )  # fmt: skip
    canvas.text(0.015, 1.0 - 0.12 / height, figure.title, fontsize=12.5, fontweight="bold", va="top", color=theme.ink)
    canvas.text(0.015, 1.0 - 0.38 / height, figure.subtitle, fontsize=9.5, va="top", color=theme.faint)
    if notes:
        canvas.text(0.015, 0.08 / height, notes, fontsize=8, va="bottom", color=theme.faint, linespacing=1.25)
    return canvas


def _dress(plot: Axes, figure: Figure, theme: Theme) -> None:
    """Axes, grid and ticks."""
    plot.set_facecolor(theme.background)
    for side in ("top", "right", *(("left",) if figure.y.scale == "rows" else ())):
        plot.spines[side].set_visible(False)
    plot.grid(True, which="major", color=theme.grid, linewidth=0.8)
    plot.set_axisbelow(True)
    plot.tick_params(which="both", color=theme.faint, labelcolor=theme.ink, length=3)
    plot.tick_params(which="minor", length=1.5)
    if figure.y.scale == "rows":
        plot.tick_params(axis="y", length=0)
    for which, axis in (("x", figure.x), ("y", figure.y)):
        _scale(plot, which, axis)
        getattr(plot, f"set_{which}label")(axis.title, color=theme.ink)


def _scale(plot: Axes, which: str, axis: Axis) -> None:
    from matplotlib.ticker import FixedLocator, LogLocator, NullFormatter, NullLocator

    side: Any = plot.xaxis if which == "x" else plot.yaxis
    limits = (_place(axis, axis.low), _place(axis, axis.high))
    if axis.scale == "log":
        getattr(plot, f"set_{which}scale")("log")
    if axis.scale == "nines":
        limits = (-0.04, limits[1] * 1.02)
    getattr(plot, f"set_{which}lim")(*(reversed(limits) if axis.scale == "rows" else limits))
    side.set_major_locator(FixedLocator([_place(axis, at) for at, _ in axis.ticks]))
    side.set_ticklabels([_middle_cut(name) if axis.scale == "rows" else name for _, name in axis.ticks])
    if axis.scale == "log":
        side.set_minor_locator(LogLocator(subs=tuple(range(2, 10)), numticks=50))
        side.set_minor_formatter(NullFormatter())
    else:
        side.set_minor_locator(NullLocator())


def _middle_cut(name: str) -> str:
    """A name of at most NAME_LETTERS letters; of a longer one beginning and end."""
    if len(name) <= NAME_LETTERS:
        return name
    half = (NAME_LETTERS - 1) // 2
    return f"{name[:half]}…{name[-half:]}"


def _place(axis: Axis, value: float) -> float:
    return axes.nines(value) if axis.scale == "nines" else value


def _places(axis: Axis, values: Sequence[float | None]) -> list[float]:
    return [math.nan if v is None else _place(axis, v) for v in values]


def _draw_cells(plot: Axes, cells: Cells, theme: Theme) -> None:
    """Neighbours of the same shade are one area: files stay small."""
    from matplotlib.collections import PolyCollection

    areas: list[list[tuple[float, float]]] = []
    tones: list[str] = []
    for strip in cells.strips:
        shades = [None if v is None else shade(theme, v) for v in strip.values]
        start = 0
        for i in range(1, len(shades) + 1):
            if i < len(shades) and shades[i] == shades[start]:
                continue
            if (tone := shades[start]) is not None:
                begin, end = (cells.begin + k * cells.step for k in (start, i))
                areas.append(_area(begin, end, strip.top, strip.bottom))
                tones.append(tone)
            start = i
    # The rim in the same colour hides the seams that viewers draw between areas.
    plot.add_collection(
        PolyCollection(areas, facecolors=tones, edgecolors=tones, linewidths=0.3, zorder=2), autolim=False
    )


def _draw_spans(plot: Axes, figure: Figure, spans: Spans, theme: Theme) -> None:
    from matplotlib.collections import PolyCollection

    tone = ground(theme) if spans.group is None else color(theme, spans.group)
    areas = [_area(span.begin, span.end, span.top, span.bottom) for span in spans.spans]
    below = spans.group is None
    plot.add_collection(
        PolyCollection(areas, facecolors=tone, edgecolors="none", zorder=1.5 if below else 3), autolim=False
    )
    wide = WIDE_SPAN * (figure.x.high - figure.x.low)
    for span in spans.spans:
        if span.label and span.end - span.begin >= wide:
            plot.text(
                (span.begin + span.end) / 2, (span.top + span.bottom) / 2, span.label, ha="center", va="center",
                fontsize=6.5, color=theme.background, zorder=4, clip_on=True,
            )  # fmt: skip


def _area(begin: float, end: float, top: float, bottom: float) -> list[tuple[float, float]]:
    return [(begin, top), (end, top), (end, bottom), (begin, bottom)]


def _draw_label(plot: Axes, figure: Figure, label: Label, theme: Theme) -> None:
    left = figure.x.is_right(label.x)
    aside = (-6 if left else 6, -6 if label.below else 6)
    plot.annotate(
        label.text, (_place(figure.x, label.x), _place(figure.y, label.y)), xytext=aside, textcoords="offset points",
        ha="right" if left else "left", va="top" if label.below else "bottom", fontsize=8.5,
        color=color(theme, label.group), zorder=6, annotation_clip=False,
        bbox={"facecolor": theme.background, "alpha": 0.75, "edgecolor": "none", "pad": 0.8},
    )  # fmt: skip


def _draw_series(plot: Axes, figure: Figure, series: Series, theme: Theme) -> None:
    tone = color(theme, series.group)
    if series.shape == "band":
        for stretch in stretches(series):
            xs, lows, highs = zip(*stretch, strict=True)
            plot.fill_between(
                _places(figure.x, xs), lows, highs, color=tone, alpha=BAND_OPACITY, linewidth=0, zorder=1.8
            )
            for side in (lows, highs):
                plot.plot(
                    _places(figure.x, xs), side, color=tone, linewidth=0.6, linestyle=_STROKES["dotted"], zorder=1.9
                )
        return
    if series.shape == "whiskers":
        _draw_whiskers(plot, series, tone)
    x, y = _places(figure.x, series.x), _places(figure.y, series.y)
    style = _sign_style(series.sign, series.group, tone, theme, upright=figure.y.scale == "rows")
    line = series.shape in ("line", "ranges")
    if series.shape == "ranges":
        style = {"linewidth": 2.6, "alpha": 0.45, "solid_capstyle": "round"}
    elif line:
        style["linewidth"] = _WEIGHTS[series.weight]
    elif series.shape == "whiskers" and series.weight == "thick":
        style["markeredgewidth"] = 2.4
    thin = line and series.weight == "thin" and series.stroke != "dotted"
    if thin:
        style["alpha"] = 0.55
    if series.sizes:
        for at_x, at_y, factor in zip(x, y, series.sizes, strict=True):
            own = style | {"markersize": style["markersize"] * factor}
            plot.plot([at_x], [at_y], color=tone, linestyle="none", zorder=4, clip_on=False, **own)
        return
    plot.plot(
        x, y, color=tone, linestyle=_STROKES[series.stroke] if line else "none",
        markevery=list(series.signed) if series.signed is not None else None,
        zorder=2.2 if thin or series.sign in ("dot", "cross") else 3 if line else 4,
        clip_on=series.sign == "none", label=series.name, **style,
    )  # fmt: skip


def _draw_whiskers(plot: Axes, series: Series, tone: str) -> None:
    at = series.x if series.across else series.y
    known = [
        (x, y, v - low, high - v)
        for x, y, v, low, high in zip(series.x, series.y, at, series.low, series.high, strict=True)
        if x is not None and y is not None and v is not None and low is not None and high is not None
    ]
    if not known:
        return
    xs, ys, below, above = zip(*known, strict=True)
    ends: Any = [[max(0.0, d) for d in below], [max(0.0, d) for d in above]]
    plot.errorbar(
        xs, ys, fmt="none", ecolor=tone, elinewidth=_WHISKERS[series.weight], capsize=2.6,
        alpha=0.5 if series.weight == "thin" else 1.0, zorder=3.5,
        **{"xerr" if series.across else "yerr": ends},
    )  # fmt: skip


def _sign_style(sign: Sign, group: int, tone: str, theme: Theme, *, upright: bool) -> dict[str, Any]:
    """How matplotlib draws a sign; `upright`: the values run along x."""
    if sign == "none":
        return {}
    shape = {"bar": "|" if upright else "_", "dot": "o", "cross": "x", "ring": "o", "box": "s", "lost": "|",
             "band": "s", "ground": "s", "whisker": "|"}.get(sign, mark(group).matplotlib)  # fmt: skip
    style: dict[str, Any] = {"marker": shape, "markersize": _SIGN_SIZES[sign], "markeredgecolor": tone}
    match sign:
        case "hollow":
            style |= {"markerfacecolor": theme.background, "markeredgewidth": 1.3}
        case "band":
            style |= {"markerfacecolor": tone, "markeredgewidth": 0, "alpha": BAND_OPACITY}
        case "ground":
            style |= {"markerfacecolor": ground(theme), "markeredgewidth": 0}
        case "ring" | "box":
            style |= {"markerfacecolor": "none", "markeredgewidth": 1.3}
        case "bar" | "lost":
            style |= {"markeredgewidth": 1.5}
        case "cross":
            style |= {"alpha": 0.7, "markeredgewidth": 1.1}
        case "dot":
            style |= {"markerfacecolor": tone, "alpha": 0.7, "markeredgewidth": 0}
        case _:
            style |= {"markerfacecolor": tone, "markeredgecolor": theme.background, "markeredgewidth": 0.6}
    return style


def _legends(canvas: Canvas, renderer: Any, figure: Figure, theme: Theme) -> list[Any]:
    """Results by colour and mark, and below them what strokes and signs mean."""
    upright = figure.y.scale == "rows"
    whole = Key("", "solid", "normal", "full")
    results = [_handle(name, color(theme, i), whole, i, theme, upright) for i, name in figure.groups]
    keys = [_handle(key.label, theme.faint, key, 0, theme, upright) for key in figure.keys]
    return [_legend(canvas, renderer, handles, theme) for handles in (results, keys) if handles]


def _legend(canvas: Canvas, renderer: Any, handles: Sequence[Line2D], theme: Theme) -> Any:
    """As many columns as fit."""
    for columns in range(len(handles), 0, -1):
        legend = canvas.legend(
            handles=list(handles), loc="lower left", bbox_to_anchor=(0.012, 0.01), ncols=columns, frameon=False,
            fontsize=8.5, labelcolor=theme.ink, handlelength=2.4, columnspacing=1.6, borderaxespad=0.0, borderpad=0.15,
        )  # fmt: skip
        if columns == 1 or legend.get_window_extent(renderer).width < (WIDTH_IN - 0.2) * canvas.dpi:
            return legend
        legend.remove()
    raise ValueError("a legend without entries")


def _handle(label: str, tone: str, key: Key, group: int, theme: Theme, upright: bool) -> Line2D:
    from matplotlib.lines import Line2D

    style = _sign_style(key.sign, group, tone, theme, upright=upright)
    if key.shade is not None:
        style = {"marker": "s", "markersize": 9.0, "markerfacecolor": shade(theme, key.shade), "markeredgecolor": tone}
        style["markeredgewidth"] = 0.6
    if key.sign == "whisker":
        return Line2D([], [], color=tone, marker="|", markersize=6.0, linewidth=1.4, label=label)
    style.setdefault("linewidth", _WEIGHTS[key.weight])
    stroke: Any = _STROKES[key.stroke] if key.stroke is not None else "none"
    return Line2D([], [], color=tone, linestyle=stroke, label=label, **style)
