"""A report: one HTML page of one or several runs that needs nothing else, and loads nothing from anywhere.

Records for its sections are made by the modules beside this one; perflab/pages/sections.html writes them, in the order
in which a reader wants them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from perflab import page as pages
from perflab.errors import DAMAGE, BadInput, one_line
from perflab.report import draw_html, pictures
from perflab.report.draw_html import Choice
from perflab.report.run_page import evidence, findings, profiles, quality, setup, tables
from perflab.report.run_page.runs import ReportRun

if TYPE_CHECKING:
    from markupsafe import Markup

    from perflab.report.figures import Figure

# Pictures that stand in front of a section of their own, by its name.
PICTURES_OF = {"executors": "executor_costs", "curves": "curves", "breaking": "breaking_points"}
OF_SECTIONS = frozenset(PICTURES_OF.values())


@dataclass(frozen=True)
class Report:
    """The page, and a line for each thing that could not be shown."""

    page: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Section:
    """`name` is that of its macro, too; `what` it holds is said where it cannot be shown."""

    name: str
    title: str
    what: str
    make: Callable[[Sequence[ReportRun]], Any]
    content: Markup | str = ""


@dataclass(frozen=True)
class Pictures:
    key: str
    title: str
    pictures: Sequence[Markup]


SECTIONS = (
    Section("findings", "Findings", "the findings", findings.section),
    Section("setup", "What was run, and on what", "what was run", setup.section),
    Section("conditions", "Did the conditions hold?", "the evidence of conditions", evidence.section),
    Section("tables", "Tables", "the tables", tables.section),
    Section("pictures", "Pictures", "the pictures", lambda _: ()),
    Section("executors", "What executors cost", "what executors cost", tables.costs),
    Section("curves", "Degradation curves", "the curves", tables.curves),
    Section("breaking", "Breaking points", "the breaking points", tables.breaking_points),
    Section("quality", "Data quality", "the quality of the data", quality.section),
    Section("why", "Why messages were late", "why messages were late", tables.why),
    Section("profiles", "Where the CPU time went", "the CPU profiles", profiles.section),
    Section("repeat", "How to repeat it", "how to repeat it", setup.repeat),
)


def report(
    runs: Sequence[ReportRun], *, title: str | None = None, theme: Choice = "auto", still: bool = False
) -> Report:
    """The report of these runs, in this order; `still` has pictures that do not move, and is small."""
    from markupsafe import Markup

    notes: list[str] = []
    try:
        drawn = pictures.of_report([run.data for run in runs]).drawn
    except (OSError, BadInput, *DAMAGE) as error:
        drawn = ()
        notes.append(f"the pictures: {_problem(error)}")
    # Above a picture's title stand that of the section and that of its group.
    plots = draw_html.parts([figure for _, figure in drawn], theme, still=still, level=4)
    groups = _grouped(drawn, plots.sections)
    shown = []
    for section in SECTIONS:
        content = _part(section, runs, notes)
        if section.name == "pictures":
            content = pages.part("sections.html", "pictures", [g for k, g in groups.items() if k not in OF_SECTIONS])
        own = groups.get(PICTURES_OF.get(section.name, ""))
        content = Markup("").join([*(own.pictures if own else ()), content])
        if content.strip():
            shown.append(replace(section, content=content))
    first = _part(Section("first", "", "what is wrong with the runs", findings.first), runs, notes)
    verdict = _part(Section("verdict", "", "the verdict", findings.verdict), runs, notes)
    if notes:
        first += pages.part("macros.html", "box", "not everything could be shown", notes, "warn")
    page = pages.render(
        "report.html",
        title=title or _title(runs),
        theme=theme,
        runs=_told(runs),
        first=first + verdict,
        sections=shown,
        plots=plots,
        has_flames=any('class="flame"' in section.content for section in shown),
    )
    return Report(page, tuple(notes))


def _part(section: Section, runs: Sequence[ReportRun], notes: list[str]) -> Markup:
    try:
        return pages.part("sections.html", section.name, section.make(runs))
    except (OSError, BadInput, *DAMAGE) as error:
        said = _problem(error)
    notes.append(f"{section.what}: {said}")
    return pages.part("macros.html", "box", f"{section.what} cannot be shown", [said], "warn")


def _problem(error: Exception) -> str:
    """What is damaged in one part keeps none of the others from being shown."""
    said = one_line(str(error))
    return said if isinstance(error, BadInput | OSError) else f"damaged data: {type(error).__name__}: {said}"


def _grouped(drawn: Sequence[tuple[str, Figure]], sections: Mapping[str, Markup]) -> dict[str, Pictures]:
    """The pictures by the keys of their groups."""
    found: dict[str, list[Markup]] = {}
    for key, figure in drawn:
        found.setdefault(key, []).append(sections[figure.name])
    return {key: Pictures(key, pictures.BY_NAME[key].title, own) for key, own in found.items()}


def _title(runs: Sequence[ReportRun]) -> str:
    workloads = list(dict.fromkeys(r.workload for run in runs for r in run.results))
    if not workloads:
        return " and ".join(run.name for run in runs)
    return " and ".join(workloads) if len(workloads) < 4 else f"{', '.join(workloads[:3])} and others"


def _told(runs: Sequence[ReportRun]) -> str:
    """The names of the runs, and when they were made."""
    names = ", ".join(run.name for run in runs)
    dates = list(dict.fromkeys(date for run in runs if (date := setup.when(run)) is not None))
    return " · ".join([names, " to ".join(dict.fromkeys((dates[0], dates[-1])))] if dates else [names])
