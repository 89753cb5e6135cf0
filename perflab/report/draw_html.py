"""Figures as one self-contained HTML page: Vega is included, and the page may load nothing else."""

from __future__ import annotations

import base64
import contextlib
import json
import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Any, Literal

from perflab import page as pages
from perflab.report import whole_file
from perflab.report.draw import Stroke, draw, glyph, painted, specification, tone_of, tones
from perflab.report.figures import Figure, Key
from perflab.report.palette import THEMES

if TYPE_CHECKING:
    from markupsafe import Markup

    from perflab.report.pictures import Pictures

Choice = Literal["auto", "light", "dark"]

NARROW_HEIGHT_PX = 280

_LIBRARY = "vl-convert-python"
NOTICE = "Vega, BSD-3-Clause, https://github.com/vega/vega"
_PATHS = re.compile(rb' d="[^"]*"')
_DIGITS = re.compile(rb"(\.\d)\d+")


@dataclass(frozen=True)
class PageParts:
    """The parts of a page with figures: each member is the text within an element.

    `style` belongs into a <style>; `sections` are HTML by figure name, in order; `drawing` of pages/pictures.html draws
    them: `data` and `library`, both packed, and the `notice` of the library's authors; empty if nothing is drawn. The
    root element's data-theme ("auto", "light" or "dark") selects the colours, and may change at any time. A plot is
    drawn when it comes near the visible part, and all plots before printing; data-drawn of the root element counts
    them, and `perflabDrawAll()` draws the rest.
    """

    style: Markup
    sections: dict[str, Markup]
    data: Markup
    library: Markup
    notice: str


@dataclass(frozen=True)
class _Entry:
    """Of a legend."""

    name: str
    group: int | None
    strokes: list[Stroke]


def parts(figures: Sequence[Figure], theme: Choice = "auto", *, still: bool = False, level: int = 2) -> PageParts:
    """The parts of a page with these figures; `level` is that of their headings; small ones have one more.

    `still`: static pictures, which need no script; they are light unless `theme` is dark.

    Raises ValueError if two have the same name.
    """
    from markupsafe import Markup

    moving = bool(figures) and not still
    return PageParts(
        style=page_style(),
        sections=sections(figures, theme, still=still, level=level),
        data=Markup(packed(_written(document(figures))) if moving else ""),
        library=Markup(_kept("packed", lambda: packed(library())) if moving else ""),
        notice=NOTICE,
    )


def _written(document: dict[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def packed(text: str) -> str:
    """Text in the form that pages/unpack.js reads: its size in bytes (32 bits, little-endian) and raw DEFLATE, in
    base64. It is a third of the library's size, and less for figures; its content cannot end an element of a page."""
    data, deflate = text.encode(), zlib.compressobj(9, zlib.DEFLATED, -15)
    return base64.b64encode(len(data).to_bytes(4, "little") + deflate.compress(data) + deflate.flush()).decode()


def sections(
    figures: Sequence[Figure], theme: Choice = "auto", *, still: bool = False, level: int = 2
) -> dict[str, Markup]:
    """The sections of pictures with the text around them, by name. As `parts`."""
    made = {
        figure.name: _section(figure, _still(figure, theme) if still else "", level + (figure.height is not None))
        for figure in figures
    }
    if len(made) < len(figures):
        raise ValueError(f"figures of the same name: {', '.join(figure.name for figure in figures)}")
    return made


def document(figures: Sequence[Figure], height_px: int | None = None) -> dict[str, Any]:
    """The input of the page's script; pictures without rows are `height_px` high, if that is given."""
    return {
        "figures": [_embedded(figure, height_px) for figure in figures],
        "themes": {name: tones(colors) for name, colors in THEMES.items()},
    }


def page_style() -> Markup:
    """The style of a page, with both themes."""
    return pages.part("pictures.html", "style", {name: tones(theme) for name, theme in THEMES.items()})


def page(made: Pictures, title: str, notes: Sequence[str] = (), theme: Choice = "auto") -> str:
    """The page: one section per figure, or for its small ones instead; notes above them."""
    plots = parts(made.every, theme)
    shown = [picture for of in groups(made, plots, 2).values() for picture in of]
    return pages.render("plot.html", title=title, theme=theme, said=notes, plots=plots, pictures=shown)


def groups(made: Pictures, plots: PageParts, level: int) -> dict[str, list[Markup]]:
    """The sections of pictures by kind; with many results, small pictures instead of one."""
    found: dict[str, list[Markup]] = {}
    for kind, figure in made.drawn:
        small = [plots.sections[part.name] for part in made.apart(kind, figure)]
        found.setdefault(kind, []).append(together(figure, small, level) if small else plots.sections[figure.name])
    return found


def library() -> str:
    """Vega as a script that defines `vegaEmbed`."""

    def bundle() -> str:
        import vl_convert

        return f"/*! {NOTICE} */\n{vl_convert.javascript_bundle('window.vegaEmbed = vegaEmbed;')}"

    return _kept("js", bundle)


def _kept(suffix: str, make: Callable[[], str]) -> str:
    """The packed library: packing takes seconds and depends only on the version, so the user's cache keeps it."""
    kept = pages.user_cache() / f"vega-{metadata.version(_LIBRARY)}.{suffix}"
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return kept.read_text(encoding="utf-8")
    made = make()
    with contextlib.suppress(OSError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        whole_file.put(kept, made)
    return made


def _section(figure: Figure, still: str, level: int) -> Markup:
    """`still` is the address of a static picture; empty if the page draws it."""
    groups = [_entry(_group_key(name), i) for i, name in figure.groups]
    keys = [_entry(key, None) for key in figure.keys]
    return pages.part("pictures.html", "picture", figure, groups, keys, still, level)


def together(figure: Figure, parts: Sequence[Markup], level: int) -> Markup:
    """The sections of small pictures instead of a figure, with their common parts."""
    keys = [_entry(_group_key(name), i) for i, name in figure.groups if figure.panels]
    keys += [_entry(key, None) for key in figure.keys]
    return pages.part("pictures.html", "multiples", figure, keys, list(parts), level)


def _entry(key: Key, group: int | None) -> _Entry:
    """With its sign in the colour of a group, or of the text."""
    return _Entry(key.label, group, [painted(stroke, tone_of(group)) for stroke in glyph(key, group or 0)])


def _group_key(name: str) -> Key:
    return Key(name, "solid", "normal", "full")


def _still(figure: Figure, theme: Choice) -> str:
    """The picture with paths rounded to a tenth of a px: further digits are invisible."""
    drawn = draw(figure, "svg", "dark" if theme == "dark" else "light")
    small = _PATHS.sub(lambda path: _DIGITS.sub(rb"\1", path[0]), drawn)
    return f"data:image/svg+xml;base64,{base64.b64encode(small).decode()}"


def _embedded(figure: Figure, height_px: int | None) -> dict[str, Any]:
    """The input of the page's script; its height on a telephone is that of its rows, or less."""
    spec, rows = specification(figure), figure.y.scale == "rows"
    if height_px is not None and not rows:
        spec["height"] = height_px
    narrow = spec["height"] if rows else min(spec["height"], NARROW_HEIGHT_PX)
    return {"id": figure.name, "title": figure.title, "narrow_height": narrow, "rows": rows, "spec": spec}
