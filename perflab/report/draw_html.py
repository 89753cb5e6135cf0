"""Figures as one HTML page that needs nothing else: Vega is in it, and it may load nothing from anywhere."""

from __future__ import annotations

import base64
import contextlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from perflab import page as pages
from perflab.report import whole_file
from perflab.report.draw import Stroke, draw, glyph, painted, specification, tone_of, tones
from perflab.report.figures import Figure, Key
from perflab.report.palette import THEMES

if TYPE_CHECKING:
    from markupsafe import Markup

Choice = Literal["auto", "light", "dark"]

NARROW_HEIGHT_PX = 280

_LIBRARY = "vl-convert-python"
_PATHS = re.compile(rb' d="[^"]*"')
_DIGITS = re.compile(rb"(\.\d)\d+")


@dataclass(frozen=True)
class PageParts:
    """What a page with figures is put together from: each member is the text within an element.

    `style` belongs into a <style>; `sections` are HTML by the names of figures, in their order; `data` belongs into
    <script id="figures" type="application/json"> and `scripts` into a <script> behind it. The root element says by
    data-theme ("auto", "light" or "dark") which colours are shown, and may change it at any time. A plot is drawn when
    it comes near what is seen, and all before printing; data-drawn of the root element counts them, and
    `perflabDrawAll()` draws the rest.
    """

    style: Markup
    sections: dict[str, Markup]
    data: Markup
    scripts: Markup


@dataclass(frozen=True)
class _Entry:
    """Of a legend."""

    name: str
    group: int | None
    strokes: list[Stroke]


def parts(figures: Sequence[Figure], theme: Choice = "auto", *, still: bool = False, level: int = 2) -> PageParts:
    """The parts of a page with these figures; `level` is that of their headings, of small ones one more.

    `still`: pictures that do not move, and need no script; they are light unless `theme` is dark.

    Raises ValueError where two have the same name.
    """
    from markupsafe import Markup

    return PageParts(
        style=page_style(),
        sections=sections(figures, theme, still=still, level=level),
        data=pages.part("pictures.html", "data", document([] if still else figures)),
        scripts=Markup("" if still or not figures else f"{library()}\n;{pages.asset('pictures.js')}"),
    )


def sections(
    figures: Sequence[Figure], theme: Choice = "auto", *, still: bool = False, level: int = 2
) -> dict[str, Markup]:
    """The places of pictures with what stands around them, by their names. As `parts`."""
    made = {
        figure.name: _section(figure, _still(figure, theme) if still else "", level + (figure.height is not None))
        for figure in figures
    }
    if len(made) < len(figures):
        raise ValueError(f"figures of the same name: {', '.join(figure.name for figure in figures)}")
    return made


def document(figures: Sequence[Figure], height_px: int | None = None) -> dict[str, Any]:
    """What the page's script draws; pictures without rows are `height_px` high, if that is said."""
    return {
        "figures": [_embedded(figure, height_px) for figure in figures],
        "themes": {name: tones(colors) for name, colors in THEMES.items()},
    }


def page_style() -> Markup:
    """The style of a page, with both themes."""
    return pages.part("pictures.html", "style", {name: tones(theme) for name, theme in THEMES.items()})


def page(figures: Sequence[Figure], title: str, notes: Sequence[str] = (), theme: Choice = "auto") -> str:
    """The page: one section per figure, each with its legend; notes above them."""
    return pages.render("plot.html", title=title, theme=theme, said=notes, plots=parts(figures, theme))


def library() -> str:
    """Vega as a script that defines `vegaEmbed`.

    To put it together takes seconds, and gives the same for one version: the user's cache keeps it.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    kept = cache / "perflab" / f"vega-{metadata.version(_LIBRARY)}.js"
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return kept.read_text(encoding="utf-8")
    import vl_convert

    made = str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))
    script = f"/*! Vega {vl_convert.get_vega_version()}, BSD-3-Clause, https://github.com/vega/vega */\n{made}"
    with contextlib.suppress(OSError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        whole_file.put(kept, script)
    return script


def _section(figure: Figure, still: str, level: int) -> Markup:
    """`still` is the address of a picture that does not move; empty where the page draws it."""
    groups = [_entry(Key(name, "solid", "normal", "full"), i) for i, name in figure.groups]
    keys = [_entry(key, None) for key in figure.keys]
    return pages.part("pictures.html", "picture", figure, groups, keys, still, level)


def together(figure: Figure, parts: Sequence[Markup], level: int) -> Markup:
    """The places of small pictures that `multiples.apart` made of a figure, with what they have in common."""
    keys = [_entry(key, None) for key in figure.keys]
    return pages.part("pictures.html", "multiples", figure, keys, list(parts), level)


def _entry(key: Key, group: int | None) -> _Entry:
    """With its sign in the colour of a group, or of the text."""
    return _Entry(key.label, group, [painted(stroke, tone_of(group)) for stroke in glyph(key, group or 0)])


def _still(figure: Figure, theme: Choice) -> str:
    """The picture with paths rounded to a tenth of a px: digits beyond that cannot be seen."""
    drawn = draw(figure, "svg", "dark" if theme == "dark" else "light")
    small = _PATHS.sub(lambda path: _DIGITS.sub(rb"\1", path[0]), drawn)
    return f"data:image/svg+xml;base64,{base64.b64encode(small).decode()}"


def _embedded(figure: Figure, height_px: int | None) -> dict[str, Any]:
    """What the page's script needs; its height on a telephone is that of its rows, or less."""
    spec, rows = specification(figure), figure.y.scale == "rows"
    if height_px is not None and not rows:
        spec["height"] = height_px
    narrow = spec["height"] if rows else min(spec["height"], NARROW_HEIGHT_PX)
    return {"id": figure.name, "title": figure.title, "narrow_height": narrow, "rows": rows, "spec": spec}
