"""Figures as parts of a page that does not move: SVG instead of plotly, so that the page is small."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Sequence

from perflab.report import draw_html, draw_static
from perflab.report.draw_html import Choice, PageParts
from perflab.report.figures import Figure

_PATHS = re.compile(rb' d="[^"]*"')
_DIGITS = re.compile(rb"(\.\d)\d+")


def parts(figures: Sequence[Figure], theme: Choice = "auto") -> PageParts:
    """The parts of a page with these figures, as `draw_html.parts` has them; the pictures are light unless `theme` is
    dark."""
    return PageParts(
        style=draw_html.page_style(),
        sections={figure.name: _section(figure, theme) for figure in figures},
        data='{"figures":[]}',
        scripts="",
        switch=draw_html.switch(theme),
    )


def _rounded(svg: bytes) -> bytes:
    """With paths to a tenth of a point: what nobody sees is most of the file."""
    return _PATHS.sub(lambda path: _DIGITS.sub(rb"\1", path[0]), svg)


def _section(figure: Figure, theme: Choice) -> str:
    drawn = draw_static.draw(figure, "svg", "dark" if theme == "dark" else "light")
    address = f"data:image/svg+xml;base64,{base64.b64encode(_rounded(drawn)).decode()}"
    title = html.escape(figure.title)
    return f'<section aria-label="{title}"><img class="still" alt="{title}" src="{address}"></section>'
