"""Figures as one HTML page that needs nothing else: Vega is in it, and it may load nothing from anywhere."""

from __future__ import annotations

import base64
import contextlib
import html
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata, resources
from pathlib import Path
from typing import Any, Literal

from perflab.report import whole_file
from perflab.report.draw import draw, glyph, painted, specification, tone_of, tones
from perflab.report.figures import Figure, Key
from perflab.report.palette import DARK, LIGHT, THEMES, Theme

Choice = Literal["auto", "light", "dark"]

CHOICES: tuple[Choice, ...] = ("auto", "light", "dark")
NARROW_HEIGHT_PX = 280

_LIBRARY = "vl-convert-python"
_PATHS = re.compile(rb' d="[^"]*"')
_DIGITS = re.compile(rb"(\.\d)\d+")


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


def parts(figures: Sequence[Figure], theme: Choice = "auto", *, still: bool = False) -> PageParts:
    """The parts of a page with these figures; `theme` is what `switch` shows at first.

    `still`: pictures that do not move, and need no script; they are light unless `theme` is dark.

    Raises ValueError where two have the same name.
    """
    sections = {figure.name: _still(figure, theme) if still else _section(figure) for figure in figures}
    if len(sections) < len(figures):
        raise ValueError(f"figures of the same name: {', '.join(figure.name for figure in figures)}")
    document = {
        "figures": [] if still else [_embedded(figure) for figure in figures],
        "themes": {name: tones(colors) for name, colors in THEMES.items()},
    }
    return PageParts(
        style=page_style(),
        sections=sections,
        # "<" would end the script, whatever a topic is called.
        data=json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c"),
        scripts="" if still else f"{_library()}\n;{_asset('page.js')}",
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


def _library() -> str:
    """Vega as a script that defines `vegaEmbed`.

    To put it together takes seconds, and gives the same for one version: the user's cache keeps it.
    """
    import vl_convert

    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    kept = cache / "perflab" / f"vega-{metadata.version(_LIBRARY)}.js"
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return kept.read_text(encoding="utf-8")
    made = str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))
    script = f"/*! Vega {vl_convert.get_vega_version()}, BSD-3-Clause, https://github.com/vega/vega */\n{made}"
    with contextlib.suppress(OSError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        whole_file.put(kept, script)
    return script


def _variables() -> str:
    """The themes as CSS variables."""

    def block(scheme: str, theme: Theme) -> str:
        return f"color-scheme: {scheme}; " + "".join(f"--{name}: {tone}; " for name, tone in tones(theme).items())

    light, dark = block("light", LIGHT), block("dark", DARK)
    return (
        f":root {{ {light} }}\n:root[data-theme=dark] {{ {dark} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root[data-theme=auto] {{ {dark} }} }}\n"
        f"@media print {{ :root:root {{ {light} }} }}\n"
    )


def _paragraphs(notes: Sequence[str]) -> str:
    lines = "".join(f"<p>{html.escape(note)}</p>" for note in notes)
    return f'<div class="notes">{lines}</div>' if notes else ""


def _section(figure: Figure) -> str:
    title = html.escape(figure.title)
    buttons = "".join(
        f'<button type="button" aria-pressed="true" data-plot="{figure.name}" data-group="{i}">'
        f"{_glyph(Key('', 'solid', 'normal', 'full'), i)}<span>{html.escape(name)}</span></button>"
        for i, name in figure.groups
    )
    keys = "".join(f"<span>{_glyph(key, None)}<span>{html.escape(key.label)}</span></span>" for key in figure.keys)
    return (
        f'<section aria-label="{title}"><h2>{title}</h2>'
        f'<p class="facts">{_unbroken(html.escape(figure.subtitle))}</p>'
        f'<div class="plot" id="{figure.name}" role="img" aria-label="{title}"></div>'
        f'<div class="legend">{buttons}</div>'
        + (f'<div class="legend keys">{keys}</div>' if keys else "")
        + f"{_paragraphs(figure.notes)}</section>"
    )


def _still(figure: Figure, theme: Choice) -> str:
    """The picture with paths to a tenth of a px: what nobody sees is most of the file."""
    drawn = draw(figure, "svg", "dark" if theme == "dark" else "light")
    small = _PATHS.sub(lambda path: _DIGITS.sub(rb"\1", path[0]), drawn)
    title = html.escape(figure.title)
    address = f"data:image/svg+xml;base64,{base64.b64encode(small).decode()}"
    return f'<section aria-label="{title}"><img class="still" alt="{title}" src="{address}"></section>'


def _unbroken(text: str) -> str:
    """The text with numbers of several groups of digits kept on one line."""
    return re.sub(r"(?<=\d) (?=\d)", "\u00a0", text)


def _glyph(key: Key, group: int | None) -> str:
    """A stroke with its sign as a small SVG, in the colour of a group or of the text."""
    paths = "".join(
        f'<path d="{stroke.path}" fill="var(--{stroke.fill})" stroke="var(--{stroke.stroke})" '
        f'stroke-width="{stroke.width}" stroke-dasharray="{" ".join(map(str, stroke.dash))}" '
        f'opacity="{stroke.opacity}"/>'
        for stroke in (painted(stroke, tone_of(group)) for stroke in glyph(key, group or 0))
    )
    return f'<svg viewBox="-18 -7 36 14" aria-hidden="true">{paths}</svg>'


def _embedded(figure: Figure) -> dict[str, Any]:
    """What the page's script needs; its height on a telephone is that of its rows, or less."""
    spec = specification(figure)
    narrow = spec["height"] if figure.y.scale == "rows" else min(spec["height"], NARROW_HEIGHT_PX)
    return {"id": figure.name, "narrow_height": narrow, "rows": figure.y.scale == "rows", "spec": spec}
