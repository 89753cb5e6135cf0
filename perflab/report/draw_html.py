"""Figures as one HTML page that needs nothing else: plotly.js is in it, and it may load nothing from anywhere."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, Literal

from perflab.report import axes
from perflab.report.figures import Axis, Cells, Figure, Key, Label, Series, Span, Spans, stretches
from perflab.report.palette import (
    BAND_OPACITY,
    DARK,
    LIGHT,
    MARKS,
    SHADES,
    THEMES,
    Background,
    Theme,
    color,
    faded,
    ground,
    mark,
    shade,
)

Choice = Literal["auto", "light", "dark"]

CHOICES: tuple[Choice, ...] = ("auto", "light", "dark")
PLOT_HEIGHT_PX = 430
NARROW_HEIGHT_PX = 340
ROW_HEIGHT_PX = 30
MORE_PER_RESULT_PX = 12
WIDE_SPAN = 0.035  # of the axis: a number fits in, on a telephone too
AXIS_HEIGHT_PX = 90  # with the title of the axis and the buttons

_FONT = "system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif"
_WEIGHTS = {"thick": 2.6, "normal": 1.8, "thin": 1.0}
_STROKES = {"solid": "solid", "dashed": "7px,4px", "dotted": "1.5px,3px"}
_SIZES = {"full": 8.0, "hollow": 8.0, "bar": 9.0, "dot": 5.0, "cross": 6.0, "ring": 14.0, "box": 13.0, "lost": 9.0}
_CLEAR = "rgba(0,0,0,0)"


@dataclass(frozen=True)
class PageParts:
    """What a page with figures is put together from: each member is the text within an element, and safe there.

    `style` belongs into a <style>; `sections` are HTML by the names of figures, in their order; `data` belongs into
    <script id="figures" type="application/json"> and `scripts` into a <script> behind it. The root element says by
    data-theme ("auto", "light" or "dark") which colours are shown, and may change it at any time; `switch` is a
    <label> with the list of these, to be put where it is wanted. A plot is drawn when it comes near what is seen, and
    all before printing; data-drawn of the root element counts them, and `perflabDrawAll()` draws the rest.
    """

    style: str
    sections: dict[str, str]
    data: str
    scripts: str
    switch: str


def parts(figures: Sequence[Figure], theme: Choice = "auto") -> PageParts:
    """The parts of a page with these figures; `theme` is what `switch` shows at first.

    Raises ValueError where two have the same name.
    """
    from plotly.offline import get_plotlyjs

    sections = {figure.name: _section(figure) for figure in figures}
    if len(sections) < len(figures):
        raise ValueError(f"figures of the same name: {', '.join(figure.name for figure in figures)}")
    document = {"figures": [_embedded(figure) for figure in figures]}
    return PageParts(
        style=page_style(),
        sections=sections,
        # "<" would end the script, whatever a topic is called.
        data=json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c"),
        scripts=f"{get_plotlyjs()}\n;{_asset('page.js')}",
        switch=switch(theme),
    )


def page_style() -> str:
    """The style of a page, with both themes."""
    return _variables() + _asset("page.css")


def switch(theme: Choice) -> str:
    """What chooses the theme on a page."""
    choices = "".join(
        f'<option value="{c}"{" selected" if c == theme else ""}>{c.capitalize()}</option>' for c in CHOICES
    )
    return f'<label class="theme">Theme <select id="theme">{choices}</select></label>'


def page(figures: Sequence[Figure], title: str, notes: Sequence[str] = (), theme: Choice = "auto") -> str:
    """The page: one section per figure, each with its legend; notes above them."""
    made = parts(figures, theme)
    pieces = {
        "theme": theme,
        "title": html.escape(title),
        "switch": made.switch,
        "style": made.style,
        "notes": _paragraphs(notes),
        "sections": "\n".join(made.sections.values()),
        "data": made.data,
        "scripts": made.scripts,
    }
    return filled(_asset("page.html"), pieces)


def filled(template: str, pieces: Mapping[str, str]) -> str:
    """A template with a piece in place of each {{name}}, in one pass: what is put in is not looked at again."""
    head, *rest = template.split("{{")
    return head + "".join(pieces[name] + text for name, text in (piece.split("}}", 1) for piece in rest))


def _asset(name: str) -> str:
    return resources.files("perflab.report").joinpath("page", name).read_text(encoding="utf-8")


def _variables() -> str:
    """The themes as CSS variables."""

    def block(theme: Theme) -> str:
        groups = "".join(f"--group{i}: {tone}; " for i, tone in enumerate(theme.groups))
        tones = f"--background: {theme.background}; --ink: {theme.ink}; --faint: {theme.faint}; --grid: {theme.grid}; "
        shades = "".join(f"--shade{percent}: {shade(theme, percent)}; " for percent in SHADES)
        return f"{tones}--ground: {ground(theme)}; {shades}{groups}"

    light, dark = f"color-scheme: light; {block(LIGHT)}", f"color-scheme: dark; {block(DARK)}"
    return (
        f":root {{ {light} }}\n:root[data-theme=dark] {{ {dark} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root[data-theme=auto] {{ {dark} }} }}\n"
        f"@media print {{ :root:root {{ {light} }} }}\n"
    )


def _paragraphs(notes: Sequence[str]) -> str:
    lines = "".join(f"<p>{html.escape(note)}</p>" for note in notes)
    return f'<div class="notes">{lines}</div>' if notes else ""


def _section(figure: Figure) -> str:
    buttons = "".join(
        f'<button type="button" aria-pressed="true" data-plot="{figure.name}" data-group="{i}">'
        f"{_glyph(Key('', 'solid', 'normal', 'full'), i)}<span>{html.escape(name)}</span></button>"
        for i, name in figure.groups
    )
    keys = "".join(f"<span>{_glyph(key, None)}<span>{html.escape(key.label)}</span></span>" for key in figure.keys)
    return (
        f'<section aria-label="{html.escape(figure.title)}"><h2>{html.escape(figure.title)}</h2>'
        f'<p class="facts">{_unbroken(html.escape(figure.subtitle))}</p>'
        f'<div class="plot" id="{figure.name}" role="img" aria-label="{html.escape(figure.title)}"></div>'
        f'<div class="legend">{buttons}</div>'
        + (f'<div class="legend keys">{keys}</div>' if keys else "")
        + f"{_paragraphs(figure.notes)}</section>"
    )


def _unbroken(text: str) -> str:
    """The text with numbers of several groups of digits kept on one line."""
    return re.sub(r"(?<=\d) (?=\d)", "\u00a0", text)


def _glyph(key: Key, group: int | None) -> str:
    """A stroke with its sign as a small SVG, in the colour of a group or of the text."""
    tone = "var(--faint)" if group is None else f"var(--group{group % len(LIGHT.groups)})"
    parts = []
    if key.shade is not None:
        parts.append(f'<path d="M-14,-6H14V6H-14Z" fill="var(--shade{key.shade:g})" stroke="var(--faint)"/>')
    if key.stroke is not None:
        dash = {"solid": "", "dashed": ' stroke-dasharray="6 3"', "dotted": ' stroke-dasharray="1.5 2.5"'}[key.stroke]
        parts.append(f'<path d="M-17,0H17" fill="none" stroke="{tone}" stroke-width="{_WEIGHTS[key.weight]}"{dash}/>')
    path = (MARKS[0] if group is None else mark(group)).svg
    drawn = {
        "none": "",
        "full": f'<path d="{path}" fill="{tone}"/>',
        "dot": f'<circle r="2.5" fill="{tone}"/>',
        "hollow": f'<path d="{path}" fill="var(--background)" stroke="{tone}" stroke-width="1.5"/>',
        "ring": f'<circle r="6" fill="none" stroke="{tone}" stroke-width="1.5"/>',
        "box": f'<path d="M-5.5,-5.5H5.5V5.5H-5.5Z" fill="none" stroke="{tone}" stroke-width="1.5"/>',
        "bar": f'<path d="M0,-6V6" stroke="{tone}" stroke-width="2.2"/>',
        "lost": f'<path d="M0,-6V6" stroke="{tone}" stroke-width="2.2"/>',
        "cross": f'<path d="M-4,-4L4,4M-4,4L4,-4" stroke="{tone}" stroke-width="2"/>',
        "whisker": f'<path d="M-11,-4V4M-11,0H11M11,-4V4" fill="none" stroke="{tone}" stroke-width="1.8"/>',
        "band": f'<path d="M-14,-5H14V5H-14Z" fill="{tone}" fill-opacity="{BAND_OPACITY}"/>',
        "ground": '<path d="M-14,-5H14V5H-14Z" fill="var(--ground)"/>',
    }
    parts.append(drawn[key.sign])
    return f'<svg viewBox="-18 -7 36 14" aria-hidden="true">{"".join(parts)}</svg>'


@dataclass(frozen=True)
class _Trace:
    """A trace of plotly, and what of it depends on the theme: members by their paths."""

    trace: dict[str, Any]
    tones: Callable[[Theme], dict[str, Any]]


def _embedded(figure: Figure) -> dict[str, Any]:
    """What the page's script needs: the plot, and its colours for either theme."""
    traces = [trace for cells in figure.cells for trace in _cell_traces(figure, cells)]
    traces += [trace for spans in figure.spans for trace in _span_traces(figure, spans)]
    traces += [trace for series in figure.series for trace in _traces(figure, series)]
    traces += [_label_trace(figure, label) for label in figure.labels]
    height, narrow = PLOT_HEIGHT_PX, NARROW_HEIGHT_PX
    if figure.y.scale == "rows":
        rows = len(figure.y.ticks)
        lanes = figure.lanes or max(1, len(figure.groups))
        height = narrow = AXIS_HEIGHT_PX + rows * (ROW_HEIGHT_PX + MORE_PER_RESULT_PX * (lanes - 1))
    layout = {
        "height": height,
        "minreducedheight": 2,  # else the axis of a picture with one row gets no room
        "margin": {"l": 8, "r": 12, "t": 30, "b": 8},  # the buttons of the plot stand above it
        "xaxis": _axis(figure.x, upright=False),
        "yaxis": _axis(figure.y, upright=True),
        "showlegend": False,
        "hovermode": "closest",
        "font": {"family": _FONT, "size": 13},
        "separators": ".\u2009",
        "annotations": _annotations(figure),
        "shapes": [
            {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": r.value, "y1": r.value,
             "line": {"width": 1.5, "dash": "6px,4px"}} for r in figure.references
        ],
    }  # fmt: skip
    return {
        "id": figure.name,
        "plot": {"data": [t.trace for t in traces], "layout": layout},
        "narrow_height": narrow,
        "colors": {name: _colors(figure, traces, name) for name in THEMES},
    }


def _traces(figure: Figure, series: Series) -> list[_Trace]:
    """One trace for a line and one for the signs on it: where only some points carry one, hovering finds the line."""
    x, y = _places(figure.x, series.x), _places(figure.y, series.y)
    common = {"type": "scatter", "name": series.name, "meta": {"group": series.group}}
    if series.shape == "band":
        return [_band(series, common)]
    thin = series.shape == "line" and series.weight == "thin" and series.stroke != "dotted"
    # Of a thin line, of which there are many, a word for each point would be most of the page.
    texts = [_hover(text) for text in series.hover]
    hovering: dict[str, Any] = {"hovertext": _hover(series.name) if thin else texts, "hoverinfo": "text"}
    hovering = hovering if texts else {"hoverinfo": "skip"}
    traces = []
    if series.shape in ("line", "ranges"):
        wide = series.shape == "ranges"
        line = {"width": 4 if wide else _WEIGHTS[series.weight], "dash": _STROKES[series.stroke]}
        opacity = 0.45 if wide else 0.5 if thin else 1.0
        trace = {"x": x, "y": y, "mode": "lines", "line": line, "opacity": opacity, **common, **hovering}
        traces.append(_Trace(trace, lambda theme: {"line.color": color(theme, series.group)}))
        hovering = {"hoverinfo": "skip"}
    if series.sign != "none":
        if series.shape == "points" and not texts:
            hovering = {"hoverinfo": "skip"}
        chosen = range(len(x)) if series.signed is None else series.signed
        trace = {"x": [x[i] for i in chosen], "y": [y[i] for i in chosen], "mode": "markers", "cliponaxis": False}
        trace |= {"marker": _marker(figure, series), **common, **hovering}
        if series.shape == "whiskers":
            trace |= _whiskers(series)
        traces.append(_Trace(trace, lambda theme: _sign_tones(series, theme)))
    return traces


def _hover(text: str) -> str:
    return html.escape(text).replace("&lt;br&gt;", "<br>")


def _whiskers(series: Series) -> dict[str, Any]:
    at = series.x if series.across else series.y
    ends = list(zip(at, series.low, series.high, strict=True))
    whole = [v is not None and low is not None and high is not None for v, low, high in ends]
    bars = {
        "type": "data",
        "symmetric": False,
        "array": [_rounded(max(0.0, e[2] - e[0])) if ok else 0 for e, ok in zip(ends, whole, strict=True)],  # type: ignore[operator]
        "arrayminus": [_rounded(max(0.0, e[0] - e[1])) if ok else 0 for e, ok in zip(ends, whole, strict=True)],  # type: ignore[operator]
        "thickness": {"thick": 3, "normal": 1.6, "thin": 1.2}[series.weight],
        "width": 5 if series.weight == "thick" else 4,
    }
    return {"error_x" if series.across else "error_y": bars}


def _sign_tones(series: Series, theme: Theme) -> dict[str, Any]:
    tone = color(theme, series.group)
    tones: dict[str, Any] = {
        "marker.color": theme.background if series.sign == "hollow" else tone,
        "marker.line.color": theme.background if series.sign == "full" else tone,
    }
    if series.shape == "whiskers":
        bars = faded(tone, 0.5) if series.weight == "thin" else tone
        tones[f"error_{'x' if series.across else 'y'}.color"] = bars
    return tones


def _band(series: Series, common: dict[str, Any]) -> _Trace:
    """One outline for each stretch without a gap."""
    xs: list[float | None] = []
    ys: list[float | None] = []
    for stretch in stretches(series):
        there = [(x, high) for x, _, high in stretch]
        back = [(x, low) for x, low, _ in reversed(stretch)]
        outline = [*there, *back, there[0]]
        xs += [*(_rounded(x) for x, _ in outline), None]
        ys += [*(_rounded(y) for _, y in outline), None]
    trace = {"x": xs, "y": ys, "mode": "lines", "fill": "toself", "hoverinfo": "skip", **common}
    trace["line"] = {"width": 0.8, "dash": _STROKES["dotted"]}
    return _Trace(
        trace,
        lambda theme: {
            "line.color": color(theme, series.group),
            "fillcolor": faded(color(theme, series.group), BAND_OPACITY),
        },
    )


def _cell_traces(figure: Figure, cells: Cells) -> list[_Trace]:
    """A heat map whose rows are the strips and, empty, what lies between them."""
    tops = [_places(figure.y, (strip.top, strip.bottom)) for strip in cells.strips]
    edges = sorted({_rounded(edge) for pair in tops for edge in pair if edge is not None})
    rows: dict[float, list[float | None]] = {}
    for strip, (top, _) in zip(cells.strips, tops, strict=True):
        if top is not None:
            rows[_rounded(top)] = [None if v is None else round(v, 1) for v in strip.values]
    columns = max((len(strip.values) for strip in cells.strips), default=0)
    trace = {
        "type": "heatmap", "name": cells.name, "meta": {"group": None}, "x0": _rounded(cells.begin + cells.step / 2),
        "dx": _rounded(cells.step), "y": edges, "z": [rows.get(edge, [None] * columns) for edge in edges[:-1]],
        "zmin": 0, "zmax": 100, "showscale": False, "zsmooth": False, "hoverongaps": False,
        "hovertemplate": f"{html.escape(cells.name)}<br>at %{{x:.4~g}} s: %{{z:.3~g}} %<extra></extra>",
    }  # fmt: skip

    def tones(theme: Theme) -> dict[str, Any]:
        last = len(theme.shades) - 1
        return {"colorscale": [[i / last, tone] for i, tone in enumerate(theme.shades)]}

    return [_Trace(trace, tones)]


def _span_traces(figure: Figure, spans: Spans) -> list[_Trace]:
    """The areas, the labels of those that are wide enough, and what is said when one is pointed at."""
    xs: list[float | None] = []
    ys: list[float | None] = []
    middles: list[tuple[float, float, Span]] = []
    for span in spans.spans:
        top, bottom = _places(figure.y, (span.top, span.bottom))
        if top is None or bottom is None:
            continue
        begin, end = _rounded(span.begin), _rounded(span.end)
        xs += [begin, end, end, begin, begin, None]
        ys += [top, top, bottom, bottom, top, None]
        middles.append((_rounded((begin + end) / 2), _rounded((top + bottom) / 2), span))
    common = {"type": "scatter", "name": spans.name, "meta": {"group": spans.group}}
    area: dict[str, Any] = {
        "x": xs,
        "y": ys,
        "mode": "lines",
        "fill": "toself",
        "hoverinfo": "skip",
        "line": {"width": 0},
        **common,
    }
    traces = [
        _Trace(area, lambda theme: {"fillcolor": ground(theme) if spans.group is None else color(theme, spans.group)})
    ]
    wide = WIDE_SPAN * (figure.x.high - figure.x.low)
    if labelled := [m for m in middles if m[2].label and m[2].end - m[2].begin >= wide]:
        words: dict[str, Any] = {
            "x": [m[0] for m in labelled],
            "y": [m[1] for m in labelled],
            "mode": "text",
            "hoverinfo": "skip",
        }
        words |= {"text": [html.escape(m[2].label) for m in labelled], "textfont": {"size": 10}, **common}
        traces.append(_Trace(words, lambda theme: {"textfont.color": theme.background}))
    if hovered := [m for m in middles if m[2].hover]:
        points: dict[str, Any] = {
            "x": [m[0] for m in hovered],
            "y": [m[1] for m in hovered],
            "mode": "markers",
            "hoverinfo": "text",
        }
        points |= {"hovertext": [_hover(m[2].hover) for m in hovered], "marker": {"size": 8, "opacity": 0}, **common}
        traces.append(_Trace(points, lambda theme: {"marker.color": theme.ink}))
    return traces


def _label_trace(figure: Figure, label: Label) -> _Trace:
    (x,), (y,) = _places(figure.x, (label.x,)), _places(figure.y, (label.y,))
    side = "left" if figure.x.is_right(label.x) else "right"
    where = f"{'bottom' if label.below else 'top'} {side}"
    trace = {
        "type": "scatter", "name": label.text, "meta": {"group": label.group}, "x": [x], "y": [y], "mode": "text",
        "text": [f"\u2002{html.escape(label.text)}\u2002"], "textposition": where, "textfont": {"size": 12},
        "hoverinfo": "skip", "cliponaxis": False,
    }  # fmt: skip
    return _Trace(trace, lambda theme: {"textfont.color": color(theme, label.group)})


def _marker(figure: Figure, series: Series) -> dict[str, Any]:
    bar = "line-ns-open" if figure.y.scale == "rows" else "line-ew-open"
    symbols = {
        "bar": bar, "dot": "circle", "cross": "x-thin-open", "ring": "circle-open", "box": "square-open",
        "lost": "line-ns-open",
    }  # fmt: skip
    width = {"full": 0.5, "hollow": 1.6, "dot": 0.0, "cross": 1.4}.get(series.sign, 2.0)
    size = _SIZES[series.sign]
    if series.sign == "bar" and series.shape == "whiskers":
        size = 12.0
    return {
        "symbol": symbols.get(series.sign, mark(series.group).plotly),
        "size": [round(size * factor, 2) for factor in series.sizes] if series.sizes else size,
        "line": {"width": 3.0 if series.shape == "whiskers" and series.weight == "thick" else width},
        "opacity": 0.7 if series.sign in ("dot", "cross") else 1.0,
    }


def _colors(figure: Figure, traces: Sequence[_Trace], name: Background) -> dict[str, Any]:
    """The changes of traces and layout that paint a plot for one background; null where a trace has no such member."""
    theme = THEMES[name]
    tones = [t.tones(theme) for t in traces]
    paths = dict.fromkeys(path for of in tones for path in of)
    layout: dict[str, Any] = {
        "paper_bgcolor": _CLEAR,
        "plot_bgcolor": _CLEAR,
        "font.color": theme.ink,
        "hoverlabel.bgcolor": theme.background,
        "hoverlabel.bordercolor": theme.faint,
        "hoverlabel.font.color": theme.ink,
        "modebar.bgcolor": _CLEAR,
        "modebar.color": theme.faint,
        "modebar.activecolor": theme.ink,
    }
    for axis in ("xaxis", "yaxis"):
        layout |= {f"{axis}.gridcolor": theme.grid, f"{axis}.linecolor": theme.faint, f"{axis}.tickcolor": theme.faint}
    layout |= {f"shapes[{i}].line.color": theme.ink for i in range(len(figure.references))}
    return {"traces": {path: [of.get(path) for of in tones] for path in paths}, "layout": layout}


def _axis(axis: Axis, *, upright: bool) -> dict[str, Any]:
    low, high = axis.low, axis.high
    made: dict[str, Any] = {
        "title": {"text": axis.title, "standoff": 8},
        "automargin": True,
        "zeroline": False,
        "showline": axis.scale != "rows",
        "ticks": "outside",
        "ticklen": 4,
        "tickangle": 0,
    }
    match axis.scale:
        case "log":
            made |= {"type": "log", "range": _log10(low, high), "tickmode": "array"}
            made |= {"tickvals": [at for at, _ in axis.ticks], "ticktext": [name for _, name in axis.ticks]}
        case "nines":
            made |= {"range": [-0.06, axes.nines(high) * 1.02], "tickmode": "array"}
            made |= {"tickvals": [axes.nines(at) for at, _ in axis.ticks], "ticktext": [name for _, name in axis.ticks]}
        case "linear":
            made |= {"range": [low, high], "nticks": 8, "rangemode": "nonnegative", "separatethousands": True}
        case "rows":
            # Names stand above their row and not beside it: so they have room on a telephone, too.
            made |= {"range": [high, low], "showticklabels": False, "ticks": "", "automargin": False}
            made |= {"tickmode": "array", "tickvals": [at - 0.5 for at, _ in axis.ticks], "fixedrange": True}
    if not upright and axis.scale in ("log", "linear", "nines"):
        made["nticks"] = 7
    return made


def _log10(low: float, high: float) -> list[float]:
    from math import log10

    return [log10(low), log10(high)]


def _places(axis: Axis, values: Sequence[float | None]) -> list[float | None]:
    """Where values stand on an axis, to six digits: more are not seen, and would be most of the page."""
    if axis.scale == "nines":
        return [None if v is None else _rounded(axes.nines(v)) for v in values]
    if axis.scale == "rows":
        return [None if v is None else _rounded(_below_name(v)) for v in values]
    return [None if v is None else _rounded(v) for v in values]


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")


def _below_name(row: float) -> float:
    """The place of a mark within its row, the upper part of which is taken by the name."""
    middle = round(row)
    return middle + 0.17 + (row - middle) * 0.7


def _annotations(figure: Figure) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = [
        {"text": html.escape(r.label), "x": 1, "xref": "paper", "xanchor": "right", "y": r.value, "yanchor": "bottom",
         "showarrow": False, "font": {"size": 12}} for r in figure.references
    ]  # fmt: skip
    if figure.y.scale == "rows":
        made += [
            {"text": html.escape(name), "x": 0, "xref": "paper", "xanchor": "left", "y": at - 0.5, "yanchor": "top",
             "showarrow": False, "font": {"size": 12}, "borderpad": 0} for at, name in figure.y.ticks
        ]  # fmt: skip
    return made
