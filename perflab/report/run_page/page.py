"""A report: one HTML page of one or several runs that needs nothing else, and loads nothing from anywhere.

What its sections hold is made by the modules beside this one; here they are put in the order in which a reader wants
them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources

from perflab.errors import DAMAGE, BadInput, one_line
from perflab.report import draw_html, draw_still
from perflab.report.draw_html import Choice, PageParts
from perflab.report.figures import Figure
from perflab.report.run_page import costs, curves, findings, profiles, quality, setup, tables
from perflab.report.run_page.html import box, escape, paragraph
from perflab.report.run_page.runs import ReportRun
from perflab.results.run import RunData

# Pictures by the sections of the page; what is in neither list stands at the end of the first one.
OF_CURVES = ("curves", "breaking_points", "executor_costs")
PICTURE_TITLES = {
    "distributions": "Distributions",
    "percentiles": "Percentiles",
    "time": "Over time",
    "cores": "CPUs",
    "affinity": "Where threads ran",
    "cpu": "CPU use",
    "rss": "Memory",
}


@dataclass(frozen=True)
class Report:
    """The page, and a line for each thing that could not be shown."""

    page: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Section:
    name: str
    title: str
    html: str


def report(
    runs: Sequence[ReportRun], *, title: str | None = None, theme: Choice = "auto", still: bool = False
) -> Report:
    """The report of these runs, in this order; `still` has pictures that do not move, and is small."""
    notes: list[str] = []
    figures, found = _figures([run.data for run in runs], notes)
    parts = (draw_still if still else draw_html).parts(figures, theme)
    by_key: dict[str, list[str]] = {}
    for key, figure in found:
        # Above its title stand that of the section and that of its group.
        lower = parts.sections[figure.name].replace("<h2", "<h4").replace("</h2>", "</h4>")
        by_key.setdefault(key, []).append(lower)

    def guarded(make: Callable[[Sequence[ReportRun]], str], what: str) -> str:
        """What is damaged in one part keeps none of the others from being shown."""
        try:
            return make(runs)
        except (BadInput, OSError) as error:
            said = one_line(str(error))
        except DAMAGE as error:
            said = f"damaged data: {type(error).__name__}: {one_line(str(error))}"
        notes.append(f"{what}: {said}")
        return box(f"{what} cannot be shown", [said], "warn")

    sections = [
        _Section("findings", "Findings", guarded(findings.section, "the findings")),
        _Section("setup", "What was run, and on what", guarded(setup.section, "what was run")),
        _Section("conditions", "Did the conditions hold?", guarded(setup.evidence, "the evidence of conditions")),
        _Section("tables", "Tables", guarded(tables.section, "the tables")),
        _Section("pictures", "Pictures", _pictures(by_key)),
        _Section(
            "executors",
            "What executors cost",
            "".join(by_key.get("executor_costs", ())) + guarded(costs.section, "what executors cost"),
        ),
        _Section(
            "curves",
            "Degradation curves",
            "".join(by_key.get("curves", ())) + guarded(curves.curves, "the curves"),
        ),
        _Section(
            "breaking",
            "Breaking points",
            "".join(by_key.get("breaking_points", ())) + guarded(curves.breaking_points, "the breaking points"),
        ),
        _Section("quality", "Data quality", guarded(quality.section, "the quality of the data")),
        _Section("why", "Why messages were late", guarded(profiles.why, "why messages were late")),
        _Section("profiles", "Where the CPU time went", guarded(profiles.profiles, "the CPU profiles")),
        _Section("repeat", "How to repeat it", guarded(setup.repeat, "how to repeat it")),
    ]
    first = guarded(findings.first, "what is wrong with the runs")
    verdict = guarded(lambda them: paragraph(findings.verdict(them), "verdict"), "the verdict")
    if notes:
        first += box("not everything could be shown", notes, "warn")
    shown = [section for section in sections if section.html]
    page = _page(runs, title or _title(runs), theme, parts, first + verdict, shown)
    return Report(page, tuple(notes))


def _figures(runs: Sequence[RunData], notes: list[str]) -> tuple[list[Figure], list[tuple[str, Figure]]]:
    from perflab.report import report_figures

    try:
        found = report_figures.of(runs)
    except (BadInput, OSError) as error:
        notes.append(f"the pictures: {one_line(str(error))}")
        return [], []
    except DAMAGE as error:
        notes.append(f"the pictures: damaged data: {type(error).__name__}: {one_line(str(error))}")
        return [], []
    return [figure for _, figure in found], found


def _pictures(by_key: dict[str, list[str]]) -> str:
    made = []
    for key in [*PICTURE_TITLES, *(k for k in by_key if k not in PICTURE_TITLES and k not in OF_CURVES)]:
        if by_key.get(key):
            title = f"<h3>{escape(PICTURE_TITLES.get(key, key.replace('_', ' ').capitalize()))}</h3>"
            # A single picture has a title of its own.
            inner = by_key[key] if len(by_key[key]) == 1 else [title, *by_key[key]]
            made.append(f'<div class="pictures" id="pictures-{escape(key)}">{"".join(inner)}</div>')
    return "".join(made)


def _title(runs: Sequence[ReportRun]) -> str:
    workloads = list(dict.fromkeys(r.workload for run in runs for r in run.results))
    if not workloads:
        return " and ".join(run.name for run in runs)
    return " and ".join(workloads) if len(workloads) < 4 else f"{', '.join(workloads[:3])} and others"


def _asset(name: str) -> str:
    return resources.files("perflab.report").joinpath("page", name).read_text(encoding="utf-8")


def _page(
    runs: Sequence[ReportRun], title: str, theme: Choice, parts: PageParts, first: str, sections: Sequence[_Section]
) -> str:
    dates = list(dict.fromkeys(date for run in runs if (date := setup.when(run)) is not None))
    told = [
        ", ".join(run.name for run in runs),
        *([dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"] if dates else []),
    ]
    links = "".join(f'<li><a href="#{s.name}">{escape(s.title)}</a></li>' for s in sections)
    flames = any('class="flame"' in s.html for s in sections)
    pieces = {
        "theme": theme,
        "title": escape(title),
        "style": parts.style + _asset("report.css"),
        "switch": parts.switch,
        "runs": escape(" · ".join(told)),
        "links": links,
        "first": first,
        "sections": "\n".join(
            f'<section id="{s.name}" aria-labelledby="h-{s.name}">'
            f'<h2 id="h-{s.name}">{escape(s.title)}</h2>{s.html}</section>'
            for s in sections
        ),
        "data": parts.data,
        "scripts": parts.scripts if parts.sections else "",
        "flames": profiles.scripts() if flames else "",
        "script": _asset("report.js"),
    }
    return draw_html.filled(_asset("report.html"), pieces)
