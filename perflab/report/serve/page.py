"""What the live page is made of, answered from memory: the page, its style and its script."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from importlib import resources

from perflab.report import draw_html
from perflab.report.palette import LIGHT, MARKS
from perflab.report.serve.server import Asset


def assets(names: Sequence[str]) -> Mapping[str, Asset]:
    """By path. `names` are those of the runs, in the order of the `run` of a state's query."""
    title = ", ".join(names)
    text = draw_html.filled(_own("live.html"), {"title": html.escape(title), "runs": _links(names)})
    style = f"{draw_html.page_style()}{_own('live.css')}"
    constants = f"const MARKS = {json.dumps([mark.svg for mark in MARKS])}, TONES = {len(LIGHT.groups)};\n"
    return {
        "/": Asset("text/html; charset=utf-8", text.encode(errors="replace")),
        "/live.css": Asset("text/css; charset=utf-8", style.encode()),
        "/live.js": Asset("text/javascript; charset=utf-8", f"{constants}{_own('live.js')}".encode()),
    }


def _links(names: Sequence[str]) -> str:
    """To the other runs, where there are several."""
    if len(names) < 2:
        return ""
    links = (f'<a href="/?run={n}">{html.escape(name)}</a>' for n, name in enumerate(names, start=1))
    return f'<nav aria-label="Runs">{" ".join(links)}</nav>'


def _own(name: str) -> str:
    return resources.files("perflab.report.serve").joinpath(name).read_text(encoding="utf-8")
