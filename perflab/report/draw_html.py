"""Figures as one HTML page that needs nothing else: plotly.js is in it, and it may load nothing from anywhere."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from importlib import resources
from typing import Any, Literal

from perflab.report import axes
from perflab.report.figures import Axis, Figure, Key, Series
from perflab.report.palette import DARK, LIGHT, MARKS, THEMES, Background, Theme, color, mark

Choice = Literal["auto", "light", "dark"]

CHOICES: tuple[Choice, ...] = ("auto", "light", "dark")
PLOT_HEIGHT_PX = 430
NARROW_HEIGHT_PX = 340
ROW_HEIGHT_PX = 30
MORE_PER_RESULT_PX = 12
AXIS_HEIGHT_PX = 90  # with the title of the axis and the buttons

_FONT = "system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif"
_WEIGHTS = {"thick": 2.6, "normal": 1.8, "thin": 1.0}
_STROKES = {"solid": "solid", "dashed": "7px,4px", "dotted": "1.5px,3px"}
_SIZES = {"full": 8.0, "hollow": 8.0, "bar": 9.0, "dot": 5.0, "cross": 6.0, "ring": 14.0, "lost": 9.0}
_CLEAR = "rgba(0,0,0,0)"


def page(figures: Sequence[Figure], title: str, notes: Sequence[str] = (), theme: Choice = "auto") -> str:
    """The page: one section per figure, each with its legend; notes above them."""
    from plotly.offline import get_plotlyjs

    document = {"figures": [_embedded(figure) for figure in figures]}
    parts = {
        "theme": theme,
        "title": html.escape(title),
        "themes": "".join(
            f'<option value="{c}"{" selected" if c == theme else ""}>{c.capitalize()}</option>' for c in CHOICES
        ),
        "style": _variables() + _asset("page.css"),
        "notes": _paragraphs(notes),
        "sections": "\n".join(_section(figure) for figure in figures),
        # "<" would end the script, whatever a topic is called.
        "figures": json.dumps(document, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c"),
        "script": _asset("page.js"),
        "plotly": get_plotlyjs(),
    }
    # One pass over the template: what is put in is not looked at again.
    pieces = _asset("page.html").split("{{")
    return pieces[0] + "".join(parts[name] + rest for name, rest in (piece.split("}}", 1) for piece in pieces[1:]))


def _asset(name: str) -> str:
    return resources.files("perflab.report").joinpath("page", name).read_text(encoding="utf-8")


def _variables() -> str:
    """The themes as CSS variables."""

    def block(theme: Theme) -> str:
        groups = "".join(f"--group{i}: {tone}; " for i, tone in enumerate(theme.groups))
        tones = f"--background: {theme.background}; --ink: {theme.ink}; --faint: {theme.faint}; --grid: {theme.grid}; "
        return tones + groups

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
    if key.stroke is not None:
        dash = {"solid": "", "dashed": ' stroke-dasharray="6 3"', "dotted": ' stroke-dasharray="1.5 2.5"'}[key.stroke]
        parts.append(f'<path d="M-17,0H17" fill="none" stroke="{tone}" stroke-width="{_WEIGHTS[key.weight]}"{dash}/>')
    path = (MARKS[0] if group is None else mark(group)).svg
    match key.sign:
        case "full":
            parts.append(f'<path d="{path}" fill="{tone}"/>')
        case "dot":
            parts.append(f'<circle r="2.5" fill="{tone}"/>')
        case "hollow":
            parts.append(f'<path d="{path}" fill="var(--background)" stroke="{tone}" stroke-width="1.5"/>')
        case "ring":
            parts.append(f'<circle r="6" fill="none" stroke="{tone}" stroke-width="1.5"/>')
        case "bar" | "lost":
            parts.append(f'<path d="M0,-6V6" stroke="{tone}" stroke-width="2.2"/>')
        case "cross":
            parts.append(f'<path d="M-4,-4L4,4M-4,4L4,-4" stroke="{tone}" stroke-width="2"/>')
        case "none":
            pass
    return f'<svg viewBox="-18 -7 36 14" aria-hidden="true">{"".join(parts)}</svg>'


def _embedded(figure: Figure) -> dict[str, Any]:
    """What the page's script needs: the plot, and its colours for either theme."""
    import plotly.graph_objects as go

    traces: list[Any] = []
    origins: list[Series] = []
    for series in figure.series:
        for trace in _traces(figure, series):
            traces.append(trace)
            origins.append(series)
    height, narrow = PLOT_HEIGHT_PX, NARROW_HEIGHT_PX
    if figure.y.scale == "rows":
        rows = len(figure.y.ticks)
        height = narrow = AXIS_HEIGHT_PX + rows * (ROW_HEIGHT_PX + MORE_PER_RESULT_PX * (len(figure.groups) - 1))
    layout = go.Layout(
        height=height,
        minreducedheight=2,  # else the axis of a picture with one row gets no room
        margin={"l": 8, "r": 12, "t": 30, "b": 8},  # the buttons of the plot stand above it
        xaxis=_axis(figure.x, upright=False),
        yaxis=_axis(figure.y, upright=True),
        showlegend=False,
        hovermode="closest",
        font={"family": _FONT, "size": 13},
        separators=".\u2009",
        annotations=_annotations(figure),
        shapes=[
            {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": r.value, "y1": r.value,
             "line": {"width": 1.5, "dash": "6px,4px"}} for r in figure.references
        ],
    )  # fmt: skip
    plot = json.loads(go.Figure(data=traces, layout=layout).to_json(remove_uids=True))
    plot["layout"].pop("template", None)  # a theme of plotly's own, of which every member is set here
    return {
        "id": figure.name,
        "plot": plot,
        "narrow_height": narrow,
        "colors": {name: _colors(figure, traces, origins, name) for name in THEMES},
    }


def _traces(figure: Figure, series: Series) -> list[Any]:
    """One trace for a line and one for the signs on it: where only some points carry one, hovering finds the line."""
    import plotly.graph_objects as go

    x, y = _places(figure.x, series.x), _places(figure.y, series.y)
    texts = [html.escape(text).replace("&lt;br&gt;", "<br>") for text in series.hover]
    common = {"name": series.name, "meta": {"group": series.group}}
    hovering: dict[str, Any] = {"hovertext": texts, "hoverinfo": "text"} if texts else {"hoverinfo": "skip"}
    traces = []
    if series.shape in ("line", "ranges"):
        wide = series.shape == "ranges"
        thin = series.weight == "thin" and series.stroke != "dotted"
        line = {"width": 4 if wide else _WEIGHTS[series.weight], "dash": _STROKES[series.stroke]}
        opacity = 0.45 if wide else 0.5 if thin else 1.0
        traces.append(
            go.Scatter(x=x, y=y, mode="lines", line=line, opacity=opacity, connectgaps=False, **common, **hovering)
        )
        hovering = {"hoverinfo": "skip"}
    if series.sign != "none":
        chosen = range(len(x)) if series.signed is None else series.signed
        if series.shape == "points":
            hovering = hovering if texts else {"hoverinfo": "skip"}
        xs, ys = [x[i] for i in chosen], [y[i] for i in chosen]
        traces.append(
            go.Scatter(
                x=xs, y=ys, mode="markers", marker=_marker(figure, series), cliponaxis=False, **common, **hovering
            )
        )
    return traces


def _marker(figure: Figure, series: Series) -> dict[str, Any]:
    bar = "line-ns-open" if figure.y.scale == "rows" else "line-ew-open"
    symbols = {"bar": bar, "dot": "circle", "cross": "x-thin-open", "ring": "circle-open", "lost": "line-ns-open"}
    width = {"full": 0.5, "hollow": 1.6, "dot": 0.0, "cross": 1.4}.get(series.sign, 2.0)
    return {
        "symbol": symbols.get(series.sign, mark(series.group).plotly),
        "size": _SIZES[series.sign],
        "line": {"width": width},
        "opacity": 0.7 if series.sign in ("dot", "cross") else 1.0,
    }


def _colors(figure: Figure, traces: Sequence[Any], origins: Sequence[Series], name: Background) -> dict[str, Any]:
    """The changes of traces and layout that paint a plot for one background."""
    theme = THEMES[name]
    lines: list[str] = []
    fills: list[str] = []
    rims: list[str] = []
    for series in origins:
        tone = color(theme, series.group)
        lines.append(tone)
        fills.append(theme.background if series.sign == "hollow" else tone)
        rims.append(theme.background if series.sign == "full" else tone)
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
    assert len(lines) == len(traces)
    return {"traces": {"line.color": lines, "marker.color": fills, "marker.line.color": rims}, "layout": layout}


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
            made |= {"range": [low, high], "nticks": 8, "rangemode": "nonnegative"}
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
    if axis.scale == "nines":
        return [None if v is None else axes.nines(v) for v in values]
    if axis.scale == "rows":
        return [None if v is None else _below_name(v) for v in values]
    return list(values)


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
