"""What is served: the live page with its style and its script, from memory, and the report of runs that have ended."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from perflab import page
from perflab.report import draw_html
from perflab.report.palette import LIGHT, MARKS
from perflab.report.serve.server import Asset


def assets(names: Sequence[str]) -> Mapping[str, Asset]:
    """By path. `names` are those of the runs, in the order of the `run` of a state's query."""
    text = page.render("live.html", title=", ".join(names), runs=names)
    style = f"{draw_html.page_style()}{page.asset('live.css')}"
    constants = f"const MARKS = {json.dumps(MARKS)}, TONES = {len(LIGHT.groups)};\n"
    return {
        "/": Asset("text/html; charset=utf-8", text.encode(errors="replace")),
        "/live.css": Asset("text/css; charset=utf-8", style.encode()),
        "/live.js": Asset("text/javascript; charset=utf-8", f"{constants}{page.asset('live.js')}".encode()),
    }


def report(runs: Sequence[str]) -> str:
    """The page that `perflab report` writes. Raises PerflabError where there is nothing to report."""
    from perflab.report.run_page.page import report as made  # pictures and more, which nothing else here needs
    from perflab.report.run_page.runs import open_all

    return made(open_all(runs)).page
