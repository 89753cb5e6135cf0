"""Figures as specifications of Vega, and as SVG, PNG or PDF. A page draws the same specification (draw_html.py).

A specification stores what is drawn as tables of columns: one for points of lines and signs, one for rules, and so on;
`rows` converts them to Vega's input. Colours are names ("group0", "faint", "shade50"): the signal `theme` maps each to
a colour, and may change at any time. The same holds for `hidden`, groups that are not drawn, and for `x_domain` and
`y_domain`.
"""

from __future__ import annotations

import html
import json
import math
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from perflab.report import axes
from perflab.report.figures import Axis, Figure, Key, Series, Sign, Span
from perflab.report.palette import BAND_OPACITY, SHADES, THEMES, Background, Theme, mark

Format = Literal["svg", "png", "pdf"]
FORMATS: tuple[Format, ...] = ("svg", "png", "pdf")
PX_PER_IN = 96
PT_PER_PX = 72 / PX_PER_IN

PAPER_WIDTH_PX = 864
PLOT_HEIGHT_PX = 370
ROW_HEIGHT_PX = 30
MORE_PER_RESULT_PX = 12
FONT = "DejaVu Sans, Segoe UI, sans-serif"

_MARGIN_PX = 12
SMALL_WIDTH_PX = 430  # for a figure with its own height
_X_AXIS_PX = 52  # labels and title
_LINE_PX = 15  # of a note
_NOTE_LETTERS = 135
_ENTRY_PX = 20  # height of a legend entry
_GLYPH_PX = 18  # half height of a row
_LETTER_PX = 6.6  # average width of a letter in a legend
_PANELS_BESIDE = 2  # small pictures
_TITLE_PX, _Y_AXIS_PX, _GAP_PX = 46, 62, 16  # space for title and axis, and between the pictures
_TITLE = {"anchor": "start", "font": FONT, "fontWeight": "bold", "subtitleFont": FONT}
_WIDE_SPAN_PX = 24  # width that a number fits in

_WEIGHTS = {"thick": 2.6, "normal": 1.8, "thin": 1.0}
_DASHES: dict[str, tuple[float, ...]] = {"solid": (), "dashed": (7, 4), "dotted": (1.5, 3)}
_CAP_PX = 4  # of a whisker

_SIDES = re.compile(r'(width|height)="([\d.]+)"')
_REFERENCE = re.compile(rb"(\d+) 0 R")  # reference from one PDF object to another
_NAMED = re.compile(rb"(?m)(?:^ +/\w+ \d+ 0 R\n)+")

Spec = dict[str, Any]
Table = dict[str, Any]  # columns by name, and their `length`


@dataclass(frozen=True)
class Stroke:
    """A path in px around its position, in the tones of a theme; "tone" is that of the mark that draws it."""

    path: str
    fill: str = "none"
    stroke: str = "tone"
    width: float = 0.0
    opacity: float = 1.0
    dash: tuple[float, ...] = ()


def painted(stroke: Stroke, tone: str) -> Stroke:
    """A stroke in the mark's own tone."""
    fill, line = (tone if own == "tone" else own for own in (stroke.fill, stroke.stroke))
    return replace(stroke, fill=fill, stroke=line)


def _square(half: float, height: float | None = None) -> str:
    upper = half if height is None else height
    return f"M{-half},{-upper}H{half}V{upper}H{-half}Z"


def _circle(radius: float) -> str:
    return f"M{-radius},0a{radius},{radius} 0 1,0 {2 * radius},0a{radius},{radius} 0 1,0 {-2 * radius},0Z"


_SIGNS: Mapping[Sign, Stroke] = {
    "none": Stroke("M0,0"),
    "full": Stroke("", "tone", "background", 0.6),  # the mark of the group, as "hollow"
    "hollow": Stroke("", "background", "tone", 1.6),
    "bar": Stroke("M0,-6V6", width=2.0),
    "dot": Stroke(_circle(2.5), "tone", "none", opacity=0.7),
    "cross": Stroke("M-3.5,-3.5L3.5,3.5M-3.5,3.5L3.5,-3.5", width=1.4, opacity=0.75),
    "ring": Stroke(_circle(7.0), width=1.8),
    "box": Stroke(_square(6.5), width=1.8),
    "lost": Stroke("M0,-5V5", width=2.0),
    "whisker": Stroke("M-11,-4V4M-11,0H11M11,-4V4", width=1.8),
    "band": Stroke(_square(14, 5), "tone", "none", opacity=BAND_OPACITY),
    "ground": Stroke(_square(14, 5), "ground", "none"),
}


def tones(theme: Theme) -> dict[str, str]:
    """Every colour of a theme by its name, in a specification and in CSS."""
    return {
        **{name: getattr(theme, name) for name in ("background", "ink", "faint", "grid")},
        "ground": theme.grid,
        "none": "transparent",
        **{f"shade{percent}": tone for percent, tone in zip(SHADES, theme.shades, strict=True)},
        **{f"group{i}": tone for i, tone in enumerate(theme.groups)},
    }


def tone_of(group: int | None) -> str:
    """The name of a group's colour; None stands for no group.

    Colours repeat after six, in different pairs with the seven marks.
    """
    return "faint" if group is None else f"group{group % len(THEMES['light'].groups)}"


def sign_stroke(sign: Sign, group: int, *, upright: bool = True) -> Stroke:
    """How a sign of a group is drawn; `upright`: a bar is vertical, else horizontal."""
    found = _SIGNS[sign]
    path = found.path or mark(group)
    if sign == "bar" and not upright:
        path = "M-6,0H6"
    return Stroke(path, found.fill, found.stroke, found.width, found.opacity)


def glyph(key: Key, group: int) -> list[Stroke]:
    """The symbol before a name in a legend, 36 px wide."""
    found = []
    if key.shade is not None:
        found.append(Stroke(_square(14, 6), f"shade{key.shade:g}", "faint", 1.0))
    if key.stroke is not None:
        found.append(Stroke("M-17,0H17", width=_WEIGHTS[key.weight], dash=_DASHES[key.stroke]))
    return [*found, sign_stroke(key.sign, group)] if key.sign != "none" else found


# -- files -----------------------------------------------------------------------------------------------------------


def draw(
    figure: Figure, fmt: Format, background: Background = "light", dpi: int = 150, small: Sequence[Figure] = ()
) -> bytes:
    """The picture as a file in that format; `dpi` applies to PNG. `small` pictures are drawn instead, below its title.
    The same figure gives the same bytes."""
    import vl_convert

    spec = _on_paper(figure, THEMES[background], small)
    svg = _numbered(vl_convert.vega_to_svg(spec, allowed_base_urls=[]))
    title = html.escape(f"{figure.title} ({figure.subtitle})", quote=False)
    # Of the whole picture: shown on tabs and read aloud by screen readers
    svg = svg.replace(">", f"><title>{title}</title>", 1)
    if fmt == "png":
        return bytes(vl_convert.svg_to_png(svg, scale=dpi / PX_PER_IN * (1 + 1e-6), ppi=72))  # the library rounds down
    if fmt == "pdf":
        in_pt = _SIDES.sub(lambda px: f'{px[1]}="{float(px[2]) * PT_PER_PX:g}"', svg, count=2)
        return _ordered(bytes(vl_convert.svg_to_pdf(in_pt)))
    return svg.encode()


def _numbered(svg: str) -> str:
    """Numbers its parts from 0: the library continues counting from picture to picture."""
    names = {name: f"clip{i}" for i, name in enumerate(dict.fromkeys(re.findall(r'id="(clip\d+)"', svg)))}
    return re.sub(r"\bclip\d+\b", lambda found: names.get(found[0], found[0]), svg) if names else svg


def _ordered(pdf: bytes) -> bytes:
    """Numbers its objects in order of reference: the library's order is random."""
    table = int(pdf[pdf.rindex(b"startxref") :].split()[1])
    starts = [int(entry) for entry in re.findall(rb"(\d{10}) 00000 n", pdf[table:])]
    bounds = sorted([*starts, table])
    heads: dict[bytes, bytes] = {}
    streams: dict[bytes, bytes] = {}
    for number, start in enumerate(starts, start=1):
        name = b"%d" % number
        text = pdf[start + len(name) + len(b" 0 obj") : bounds[bounds.index(start) + 1]]
        head, begin, rest = text.partition(b"stream\n")
        heads[name] = _NAMED.sub(lambda lines: b"".join(sorted(lines[0].splitlines(keepends=True))), head)
        streams[name] = begin + rest
    trailer = pdf[pdf.rindex(b"trailer") : pdf.rindex(b"startxref")]
    order: dict[bytes, bytes] = {}
    waiting = _REFERENCE.findall(trailer)
    while waiting:
        name = waiting.pop(0)
        if name not in order:
            order[name] = b"%d" % (len(order) + 1)
            waiting += _REFERENCE.findall(heads[name])

    def renamed(text: bytes) -> bytes:
        return _REFERENCE.sub(lambda found: order[found[1]] + b" 0 R", text)

    made = pdf[: min(starts)]
    entries = b""
    for old, new in order.items():
        entries += b"%010d 00000 n\r\n" % len(made)
        made += new + b" 0 obj" + renamed(heads[old]) + streams[old]
    size = b"0 %d\n0000000000 65535 f\r\n" % (len(order) + 1)
    return made + b"xref\n" + size + entries + renamed(trailer) + b"startxref\n%d\n%%%%EOF" % len(made)


def _on_paper(figure: Figure, theme: Theme, small: Sequence[Figure]) -> Spec:
    """The plot, or the small ones instead, with title, legends and notes around it."""
    paper_px = SMALL_WIDTH_PX if figure.height else PAPER_WIDTH_PX
    inner_px = paper_px - 2 * _MARGIN_PX
    small = small or figure.panels
    spec = _panels(small, inner_px) if small else specification(figure)
    strokes: list[Spec] = []
    texts: list[Spec] = []
    y = float(_GAP_PX if small else _X_AXIS_PX)
    whole = Key("", "solid", "normal", "full")
    groups = () if small and not figure.panels else figure.groups  # names are beside lines
    for entries in ([(name, whole, i) for i, name in groups], [(key.label, key, None) for key in figure.keys]):
        if not entries:
            continue
        x = 0.0
        for name, key, group in entries:
            width = 2 * _GLYPH_PX + 20 + _LETTER_PX * len(name)
            if x + width > inner_px and x > 0:
                x, y = 0.0, y + _ENTRY_PX
            strokes += [
                {"x": x + _GLYPH_PX, "y": y, **asdict(painted(stroke, tone_of(group)))}
                for stroke in glyph(key, group or 0)
            ]
            texts.append({"x": x + 2 * _GLYPH_PX + 5, "y": y, "text": name, "tone": "ink", "size": 11.5})
            x += width
        y += _ENTRY_PX + 2
    lines = [line for note in figure.notes for line in textwrap.wrap(note, _NOTE_LETTERS)]
    texts += [
        {"x": 0, "y": y + 3 + _LINE_PX * i, "text": line, "tone": "faint", "size": 10.5} for i, line in enumerate(lines)
    ]
    y += _LINE_PX * len(lines)
    left = {"signal": "datum.x + left"}
    below = {"signal": "height + datum.y"}
    spec["data"] = _with_values(spec["data"])
    spec["data"] += [{"name": "glyphs", "values": strokes}, {"name": "words", "values": texts}]
    spec["marks"] += [
        _mark("symbol", "glyphs", x=left, y=below, **_stroke_channels("datum")),
        _mark(
            "text", "words", x=left, y=below, text={"field": "text"}, fontSize={"field": "size"},
            baseline={"value": "middle"}, fill={"signal": "theme[datum.tone]"},
        ),
    ]  # fmt: skip
    for signal in spec["signals"]:
        if signal["name"] == "theme":
            signal["value"] = tones(theme)
    spec["signals"].append({"name": "left", "update": f"width - {inner_px}"})
    spec |= {
        "width": inner_px if small else paper_px,
        "background": theme.background,
        "description": f"{figure.title} ({figure.subtitle})",
        "padding": _MARGIN_PX,
        "title": {
            "text": figure.title, "subtitle": figure.subtitle, **_TITLE, "frame": "bounds", "offset": 14,
            "fontSize": 16.5, "color": theme.ink, "subtitleFontSize": 12.5, "subtitleColor": theme.faint,
            "subtitlePadding": 5,
        },
    }  # fmt: skip
    return spec


def _panels(figures: Sequence[Figure], width_px: float) -> Spec:
    """Small pictures in a grid, each with its title."""
    count = min(_PANELS_BESIDE, len(figures))
    step_px = width_px / count
    marks: list[Spec] = []
    y = 0.0
    for first in range(0, len(figures), count):
        row = [(figure, specification(figure)) for figure in figures[first : first + count]]
        heights = [spec["height"] if count > 1 or figure.y.scale == "rows" else PLOT_HEIGHT_PX for figure, spec in row]
        for place, ((figure, spec), height) in enumerate(zip(row, heights, strict=True)):
            left = 0 if figure.y.scale == "rows" else _Y_AXIS_PX
            sizes = {"width": step_px - left - (_GAP_PX if place < count - 1 else 0), "height": height}
            where = {"x": place * step_px + left, "y": y + _TITLE_PX, **sizes}
            title: Spec = {"text": figure.title, "subtitle": figure.subtitle, "fontSize": 12.5, "subtitleFontSize": 11}
            title |= {"color": {"signal": "theme.ink"}, "subtitleColor": {"signal": "theme.faint"}}
            own = [signal for signal in spec["signals"] if signal["name"] not in ("theme", "hidden")]
            marks.append(
                {
                    "type": "group",
                    "encode": {"update": {name: {"value": value} for name, value in where.items()}},
                    "signals": [*({"name": name, "value": value} for name, value in sizes.items()), *own],
                    "data": _with_values(spec["data"]),
                    **{part: spec[part] for part in ("scales", "axes", "marks")},
                    "title": title | _TITLE,
                }
            )
        y += _TITLE_PX + max(heights) + _X_AXIS_PX + _GAP_PX
    whole = specification(figures[0])
    kept = {part: whole[part] for part in ("$schema", "config", "padding")}
    signals = [signal for signal in whole["signals"] if signal["name"] in ("theme", "hidden")]
    return {**kept, "height": y - _GAP_PX, "autosize": "pad", "signals": signals, "data": [], "marks": marks}


def _with_values(data: Sequence[Spec]) -> list[Spec]:
    """Converts tables of columns to the rows that Vega reads."""
    return [
        {"name": table["name"], **({"values": rows(table["columns"])} if "columns" in table else table)}
        for table in data
    ]


def rows(table: Table) -> list[Spec]:
    """The rows of a table."""
    length, columns = table["length"], {name: column for name, column in table.items() if name != "length"}
    return [{name: None if c is None else c[i] for name, c in columns.items()} for i in range(length)]


# -- the specification -----------------------------------------------------------------------------------------------


def specification(figure: Figure) -> Spec:
    """The plot of a figure, with the width of the signal `width`. The entries of its `data` have `columns`."""
    is_rows = figure.y.scale == "rows"
    height = figure.height or PLOT_HEIGHT_PX
    if is_rows:
        lanes = figure.lanes or max(1, len(figure.groups))
        height = len(figure.y.ticks) * (ROW_HEIGHT_PX + MORE_PER_RESULT_PX * (lanes - 1))
    hidden = "indexof(hidden, datum.group) < 0"
    tables = {
        "points": _table("s x y low high size text", _points(figure)),
        "rules": _table("group tone x y x2 y2 dx dy width opacity", _rules(figure)),
        "spans": _table("group tone share x x2 y y2 label text", _spans(figure)),
        "labels": _table("group tone x y text below right", _labels(figure)),
        "references": _table("y text", ((r.value, r.label) for r in figure.references)),
        "names": _table("y text", ((at - 0.5, name) for at, name in figure.y.ticks if is_rows)),
    }
    data: list[Spec] = [{"name": name, "columns": columns} for name, columns in tables.items()]
    data += [
        {"name": f"seen_{name}", "source": name, "transform": [{"type": "filter", "expr": hidden}]}
        for name in ("rules", "spans", "labels")
    ]
    data.append({"name": "seen", "source": "points", "transform": [{"type": "filter", "expr": _SEEN}]})
    data += [
        {"name": name, "source": "seen", "transform": [{"type": "filter", "expr": expr}]}
        for name, expr in (
            ("lines", "style[datum.s].line > 0"), ("bands", "style[datum.s].band"), ("signs", "datum.size > 0"),
        )
    ]  # fmt: skip
    return {
        "$schema": "https://vega.github.io/schema/vega/v6.json",
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "padding": {"left": 2, "right": 6, "top": 4, "bottom": 6},
        "config": {"text": {"font": FONT}},
        "signals": [
            {"name": "theme", "value": tones(THEMES["light"])},
            {"name": "hidden", "value": []},
            {"name": "style", "value": [_style(figure, series) for series in figure.series]},
            *_axis_signals("x", figure.x),
            *_axis_signals("y", figure.y),
        ],
        "data": data,
        "scales": [
            _scale("x", figure.x),
            _scale("y", figure.y),
            {"name": "shade", "type": "linear", "domain": list(SHADES), "clamp": True,
             "range": {"signal": f"[{', '.join(f'theme.shade{percent}' for percent in SHADES)}]"}},
        ],
        "axes": [*_axis("x", figure.x), *_axis("y", figure.y)],
        "marks": _marks(figure),
    }  # fmt: skip


_SEEN = "indexof(hidden, style[datum.s].group) < 0"
_INSIDE_Y = "inrange(scale('y', datum.y), [-1, height + 1])"
_INSIDE = f"inrange(scale('x', datum.x), [-1, width + 1]) && {_INSIDE_Y}"


def _mark(kind: str, data: str | None, *, more: Spec | None = None, **channels: Spec) -> Spec:
    source = {} if data is None else {"from": {"data": data}}
    return {"type": kind, **source, **(more or {}), "encode": {"update": channels}}


def _stroke_channels(of: str) -> Spec:
    """How to draw a symbol that has its own stroke; `of` is the path of its members."""
    return {
        "shape": {"signal": f"{of}.path"}, "size": {"value": 4}, "fill": {"signal": f"theme[{of}.fill]"},
        "stroke": {"signal": f"theme[{of}.stroke]"}, "strokeWidth": {"signal": f"{of}.width"},
        "opacity": {"signal": f"{of}.opacity"}, "strokeDash": {"signal": f"{of}.dash"},
    }  # fmt: skip


def _at(name: str, side: str | None = None, **more: Any) -> Spec:
    return {"scale": side or name[0], "field": name, **more}


def _marks(figure: Figure) -> list[Spec]:
    """The marks, from the background up."""
    of_group = {"signal": "theme[datum.tone]"}
    of_series = {"signal": "theme[style[datum.s].tone]"}
    whole = {"width": {"signal": "width"}, "height": {"signal": "height"}}
    spans = _mark(
        "rect", "seen_spans", x=_at("x"), x2=_at("x2"), y=_at("y"), y2=_at("y2"),
        fill={"signal": "isValid(datum.share) ? scale('shade', datum.share) : theme[datum.tone]"},
    )  # fmt: skip
    band = _mark(
        "area", "of_band", x=_at("x"), y=_at("low", "y"), y2=_at("high", "y"), fill=of_series, stroke=of_series,
        defined={"signal": "isValid(datum.low) && isValid(datum.high)"}, fillOpacity={"value": BAND_OPACITY},
        strokeWidth={"value": 0.8}, strokeDash={"value": _DASHES["dotted"]},
    )  # fmt: skip
    line = _mark(
        "line", "of_line", x=_at("x"), y=_at("y"), stroke=of_series, strokeWidth={"signal": "style[datum.s].line"},
        defined={"signal": "isValid(datum.x) && isValid(datum.y)"}, strokeDash={"signal": "style[datum.s].dash"},
        opacity={"signal": "style[datum.s].opacity"}, strokeJoin={"value": "round"},
        strokeCap={"signal": "style[datum.s].cap"},
    )  # fmt: skip
    shift = {"x": {"field": "dx"}, "y": {"field": "dy"}}
    back = {side: {"field": f"d{side}", "mult": -1} for side in "xy"}
    rules = _mark(
        "rule", "seen_rules", x=_at("x", offset=shift["x"]), y=_at("y", offset=shift["y"]),
        x2=_at("x2", offset=back["x"]), y2=_at("y2", offset=back["y"]), stroke=of_group,
        strokeWidth={"field": "width"}, opacity={"field": "opacity"},
    )  # fmt: skip
    references = _mark(
        "rule", "references", x={"value": 0}, x2={"signal": "width"}, y=_at("y"), stroke={"signal": "theme.ink"},
        strokeWidth={"value": 1.5}, strokeDash={"value": _DASHES["dashed"]},
    )  # fmt: skip
    facets = [
        {"type": "group", "from": {"facet": {"name": f"of_{inner}", "data": f"{inner}s", "groupby": "s"}},
         "encode": {"update": whole}, "marks": [drawn]} for inner, drawn in (("band", band), ("line", line))
    ]  # fmt: skip
    signs = _mark("symbol", "signs", x=_at("x"), y=_at("y"), **_stroke_channels("style[datum.s].sign"))
    signs["encode"]["update"] |= {
        "size": {"signal": "4 * datum.size * datum.size"},
        "opacity": {"signal": f"{_INSIDE} ? style[datum.s].sign.opacity : 0"},
    }
    words: dict[str, Spec] = {
        "x": _at("x", offset={"signal": "datum.right ? -8 : 8"}),
        "y": _at("y", offset={"signal": "datum.below ? 8 : -8"}),
        "text": {"field": "text"},
        "align": {"signal": "datum.right ? 'right' : 'left'"},
        "baseline": {"signal": "datum.below ? 'top' : 'bottom'"},
        "fontSize": {"value": 12},
        "opacity": {"signal": f"{_INSIDE} ? 1 : 0"},
    }
    halo: dict[str, Spec] = {
        "stroke": {"signal": "theme.background"},
        "strokeWidth": {"value": 4},
        "strokeJoin": {"value": "round"},
    }
    inside = _mark(
        "text", "seen_spans", x={"signal": "(scale('x', datum.x) + scale('x', datum.x2)) / 2"},
        y={"signal": "(scale('y', datum.y) + scale('y', datum.y2)) / 2"}, align={"value": "center"},
        baseline={"value": "middle"}, fontSize={"value": 10}, fill={"signal": "theme.background"},
        text={"signal": f"scale('x', datum.x2) - scale('x', datum.x) > {_WIDE_SPAN_PX} ? datum.label : ''"},
        limit={"signal": "scale('x', datum.x2) - scale('x', datum.x)"},
    )  # fmt: skip
    return [
        {"type": "group", "clip": True, "encode": {"update": whole},
         "marks": [spans, inside, *facets, rules, references]},
        _mark("text", "references", x={"signal": "width - 4"}, y=_at("y", offset=-4), text={"field": "text"},
              align={"value": "right"}, fontSize={"value": 12}, fill={"signal": "theme.ink"},
              opacity={"signal": f"{_INSIDE_Y} ? 1 : 0"}),
        _mark("text", "names", x={"value": 0}, y=_at("y", offset=3), text={"field": "text"}, baseline={"value": "top"},
              fontSize={"value": 12}, fill={"signal": "theme.ink"}),
        signs,
        _mark("text", "seen_labels", **words, **halo),
        _mark("text", "seen_labels", **words, fill=of_group),
    ]  # fmt: skip


# -- axes ------------------------------------------------------------------------------------------------------------

_NUMBER = (
    "replace(datum.value && abs(datum.value) < 1e-3 ? format(datum.value, '.3~g') : format(datum.value, ',.6~f'), "
    "regexp(',', 'g'), '\u2009')"
)


def _domain(axis: Axis) -> list[float]:
    if axis.scale == "nines":
        return [-0.05, axes.nines(axis.high) * 1.02]
    return [axis.high, axis.low] if axis.scale == "rows" else [axis.low, axis.high]


def _axis_signals(name: str, axis: Axis) -> list[Spec]:
    ticks = [] if axis.scale == "rows" else [(_place(axis, at), text) for at, text in axis.ticks]
    domain = _domain(axis)
    whole = " && ".join(f"{name}_domain[{i}] == {json.dumps(end)}" for i, end in enumerate(domain))
    return [
        {"name": f"{name}_domain", "value": domain},
        {"name": f"{name}_ticks", "value": [at for at, _ in ticks]},
        {"name": f"{name}_labels", "value": [text for _, text in ticks]},
        {"name": f"{name}_whole", "update": whole},
    ]


def _scale(name: str, axis: Axis) -> Spec:
    return {
        "name": name, "type": "log" if axis.scale == "log" else "linear", "zero": False, "nice": False,
        "domain": {"signal": f"{name}_domain"}, "range": "width" if name == "x" or axis.scale == "rows" else "height",
    } | ({"range": {"signal": "[height, 0]"}} if name == "y" else {})  # fmt: skip


def _axis(name: str, axis: Axis) -> list[Spec]:
    """Ticks are those of the figure, or computed if a reader has zoomed."""
    if axis.scale == "rows":
        return [{"scale": name, "orient": "left", "values": [at - 0.5 for at, _ in axis.ticks], "grid": True,
                 "gridColor": {"signal": "theme.grid"}, "labels": False, "ticks": False, "domain": False}]  # fmt: skip
    kept = "true" if axis.scale == "nines" else f"{name}_whole"
    place = f"indexof({name}_ticks, datum.value)"
    shown = {
        "scale": name, "orient": "bottom" if name == "x" else "left", "title": axis.title, "titleFont": FONT,
        "titleFontSize": 12, "titleFontWeight": "normal", "titlePadding": 8, "labelFont": FONT, "labelFontSize": 11.5,
        "labelOverlap": "greedy", "labelFlush": False, "grid": True, "gridWidth": 1, "tickSize": 4,
        # With more values than this, Vega drops every other one.
        "tickCount": {"signal": f"{kept} ? length({name}_ticks) : 7"},
        "domainColor": {"signal": "theme.faint"}, "tickColor": {"signal": "theme.faint"},
        "gridColor": {"signal": "theme.grid"}, "titleColor": {"signal": "theme.ink"},
        "labelColor": {"signal": "theme.ink"}, "values": {"signal": f"{kept} ? {name}_ticks : null"},
        "encode": {"labels": {"update": {
            "text": {"signal": f"{kept} && {place} >= 0 ? {name}_labels[{place}] : {_NUMBER}"}
        }}},
    }  # fmt: skip
    if axis.scale != "log":
        return [shown]
    between = [
        k * 10.0**exponent
        for exponent in range(math.floor(math.log10(axis.low)), math.ceil(math.log10(axis.high)))
        for k in range(2, 10)
        if axis.low <= k * 10.0**exponent <= axis.high
    ]
    minor = {
        "scale": name, "orient": shown["orient"], "values": {"signal": f"{name}_whole ? {json.dumps(between)} : []"},
        "tickCount": max(1, len(between)), "labels": False, "domain": False, "tickSize": 2.5,
        "tickColor": {"signal": "theme.faint"},
    }  # fmt: skip
    return [minor, shown]


# -- tables ----------------------------------------------------------------------------------------------------------


def _place(axis: Axis, value: float) -> float:
    """The position of a value on an axis, to six digits: more are invisible, and would fill most of a page.

    In a row, the name takes the upper part.
    """
    if axis.scale == "nines":
        value = axes.nines(value)
    if axis.scale == "rows":
        middle = round(value)
        value = middle + 0.17 + (value - middle) * 0.7
    return float(f"{value:.6g}")


def _places(axis: Axis, values: Sequence[float | None]) -> list[float | None]:
    return [None if v is None else _place(axis, v) for v in values]


def _style(figure: Figure, series: Series) -> Spec:
    """How a series is drawn: its lines, its band, its signs."""
    wide = series.shape == "ranges"
    sign = painted(sign_stroke(series.sign, series.group, upright=figure.y.scale == "rows"), tone_of(series.group))
    if series.shape == "whiskers" and series.weight == "thick":
        sign = replace(sign, width=3.0)
    line = 4.0 if wide else _WEIGHTS[series.weight] if series.shape == "line" else 0.0
    return {
        "group": series.group, "name": series.name, "tone": tone_of(series.group), "line": line,
        "dash": _DASHES[series.stroke] if series.shape == "line" else [], "band": series.shape == "band",
        "opacity": 0.45 if wide else 0.5 if _is_faint(series) else 1.0, "cap": "round" if wide else "butt",
        "sign": asdict(sign),
    }  # fmt: skip


def _is_faint(series: Series) -> bool:
    """Line index: a name for each point would fill most of a page."""
    return series.shape == "line" and series.weight == "thin" and series.stroke != "dotted"


def _table(names: str, found: Iterable[Sequence[Any]]) -> Table:
    """A table with these columns, from its rows. A column with only nulls becomes None."""
    every = list(found)
    columns = zip(*every, strict=True)
    made = {name: list(next(columns, ())) for name in names.split()}
    return {"length": len(every), **{n: None if every and set(c) == {None} else c for n, c in made.items()}}


def _points(figure: Figure) -> Iterator[Sequence[Any]]:
    """Each point of each series: `s` is the index of the series; `size` is the factor of its sign or 0, `text` the
    hover text."""
    for number, series in enumerate(figure.series):
        count = len(series.x)
        signed = set(range(count) if series.signed is None else series.signed) if series.sign != "none" else set()
        nothing = [None] * count
        low, high = (
            _places(figure.y, ends) if series.shape == "band" else nothing for ends in (series.low, series.high)
        )
        sizes = [round(factor, 3) if i in signed else 0 for i, factor in enumerate(series.sizes or (1.0,) * count)]
        texts = nothing if _is_faint(series) or not series.hover else series.hover
        places = (_places(figure.x, series.x), _places(figure.y, series.y))
        yield from zip([number] * count, *places, low, high, sizes, texts, strict=True)


def _rules(figure: Figure) -> Iterator[Sequence[Any]]:
    """Whiskers: a rule and its two caps, whose ends are `dx` and `dy` px aside."""
    for series in figure.series:
        if series.shape != "whiskers":
            continue
        width, opacity = {"thick": (2.6, 1.0), "normal": (1.6, 1.0), "thin": (1.1, 0.5)}[series.weight]
        dx, dy = (0, _CAP_PX) if series.across else (_CAP_PX, 0)
        for x, y, low, high in zip(series.x, series.y, series.low, series.high, strict=True):
            if x is None or y is None or low is None or high is None:
                continue
            ends = [(low, y), (high, y)] if series.across else [(x, low), (x, high)]
            begin, end = ((_place(figure.x, a), _place(figure.y, b)) for a, b in ends)
            for row in ((*begin, *end, 0, 0), (*begin, *begin, dx, dy), (*end, *end, dx, dy)):
                yield series.group, tone_of(series.group), *row, width, opacity


def _spans(figure: Figure) -> Iterator[Sequence[Any]]:
    """Areas: stretches of groups, and cells, shaded by their `share`."""
    for cells in figure.cells:
        for strip in cells.strips:
            shares = [None if value is None else round(value) for value in strip.values]
            for first, last, share in axes.runs(shares):
                begin, end = cells.begin + first * cells.step, cells.begin + last * cells.step
                text = f"{cells.name}<br>{begin:.4g} to {end:.4g} s: {share} %"
                area = _area(figure, Span(begin, end, strip.top, strip.bottom))
                yield None, "none", share, *area, "", text
    for spans in figure.spans:
        tone = "ground" if spans.group is None else tone_of(spans.group)
        for span in spans.spans:
            yield spans.group, tone, None, *_area(figure, span), span.label, span.hover or None


def _area(figure: Figure, span: Span) -> Sequence[float | None]:
    return [*_places(figure.x, (span.begin, span.end)), *_places(figure.y, (span.top, span.bottom))]


def _labels(figure: Figure) -> Iterator[Sequence[Any]]:
    for label in figure.labels:
        place = (_place(figure.x, label.x), _place(figure.y, label.y))
        yield label.group, tone_of(label.group), *place, label.text, label.below, figure.x.is_right(label.x)
