"""A report: one self-contained HTML page of one or several runs, which loads nothing from elsewhere.

The modules beside this one make the content of its sections (blocks.py), in reading order.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from perflab import page as pages
from perflab.errors import DAMAGE, BadInput, one_line
from perflab.profile import TOP
from perflab.report import draw_html, late_message, multiples, pictures
from perflab.report.draw_html import Choice
from perflab.report.figures import Figure
from perflab.report.places import without_folders
from perflab.report.run_page import advice, evidence, films, findings, overview, profiles, quality, setup, tables
from perflab.report.run_page.blocks import Block, Box, Fold, Group, Heading, Picture
from perflab.report.runs import ReportRun
from perflab.runs.traced import slowest
from perflab.statistics.trust import trust_of

if TYPE_CHECKING:
    from markupsafe import Markup

# Pictures before a section of their own, by its name.
PICTURES_OF = {
    "outcomes": "outcomes",
    "executors": "executor_costs",
    "curves": "curves",
    "breaking": "breaking_points",
}


MAX_FIRST = 4  # pictures on the first screen


@dataclass(frozen=True)
class Report:
    """The page, and a line for each thing that could not be shown."""

    page: str
    notes: tuple[str, ...]


Make = Callable[[Sequence[ReportRun]], Iterable[Block]]

# Name, title, content (named if it cannot be shown), and the function that makes it.
SECTIONS: tuple[tuple[str, str, str, Make], ...] = (
    ("claims", "Claims", "the claims", findings.claimed),
    ("outcomes", "Outcomes", "the outcomes", tables.became),
    ("advice", "Which priorities prevent failures", "the advice", advice.section),
    ("findings", "Findings", "the findings", findings.section),
    ("films", "Watching trials", "the films of trials", films.section),
    ("tables", "Tables", "the tables", tables.section),
    ("objectives", "Objectives", "the objectives", tables.weighed),
    ("pictures", "Pictures", "the pictures", lambda _: ()),
    ("executors", "What executors cost", "what executors cost", tables.costs),
    ("curves", "Degradation curves", "the curves", tables.curves),
    ("breaking", "Breaking points", "the breaking points", tables.breaking_points),
    ("conditions", "Did the conditions hold?", "the evidence of conditions", evidence.section),
    ("setup", "What was run, and on what", "what was run", setup.section),
    ("quality", "Data quality", "the quality of the data", quality.section),
    ("profiles", "Where the CPU time went", "the CPU profiles", profiles.section),
    ("repeat", "How to repeat it", "how to repeat it", setup.repeat),
    ("traced", "Appendix: traced trials", "the traced trials", tables.traced),
)


def report(
    runs: Sequence[ReportRun],
    *,
    title: str | None = None,
    theme: Choice = "auto",
    still: bool = False,
    top: int = TOP,
) -> Report:
    """The report of these runs, in this order; `still` has static pictures, and is small; `top` is how many functions
    of each profiled process are listed.
    """
    notes: list[str] = []
    try:
        made, watched = (of([run.data for run in runs]) for of in (pictures.of_report, pictures.of_watched))
    except (OSError, BadInput, *DAMAGE) as error:
        made = watched = pictures.Pictures((), ())
        notes.append(f"the pictures: {_problem(error, runs)}")
    # A picture's title is below those of the section and of its group.
    late = dict(_late(runs))
    begin = [multiples.small(figure) for figure in _first(made)]
    plots = draw_html.parts([*begin, *made.every, *watched.every, *late.values()], theme, still=still, level=4)
    groups = _groups(made, plots)
    lanes = {key: Picture(plots.sections[figure.name]) for key, figure in late.items()}
    more: dict[Make, dict[str, Any]] = {profiles.section: {"top": top}, tables.traced: {"lanes": lanes}}
    appendix = [picture for found in _groups(watched, plots).values() for picture in found]
    shown = []
    for name, heading, what, make in SECTIONS:
        before: list[Block] = [*groups.get(PICTURES_OF.get(name, ""), ())]
        if name == "pictures":
            before = [_group(kind, own) for kind, own in groups.items() if kind not in PICTURES_OF.values()]
        content = _written(before) + _part(what, partial(make, **more.get(make, {})), runs, notes)
        if name == "traced" and appendix:
            content += _written([Fold("Their pictures", appendix, on_paper=False)])
        if content.strip():
            shown.append({"name": name, "title": heading, "content": content})
    first = _part("the problems of the runs", findings.first, runs, notes)
    small = Group("multiples", [Picture(plots.sections[figure.name]) for figure in begin])
    effects = _written([small] if begin else [])
    effects += _part("the effects", overview.screen, runs, notes)
    judged = [trust_of(run.summary, run.manifest) for run in runs]
    beside = _part("why messages were late", lambda of: overview.beside(of, judged), runs, notes)
    if notes:
        first += _written([Box("not everything could be shown", notes, "warn")])
    head, said = title or _title(runs), findings.verdict(runs)
    page = pages.render(
        "report.html",
        title=head,
        theme=theme,
        runs=_told(runs),
        ran=overview.sentences_on(runs),
        first=first,
        verdict=said,
        effects=effects,
        judged=[
            (f"{run.name}: {t.words}" if len(runs) > 1 else t.words, t) for run, t in zip(runs, judged, strict=True)
        ],
        beside=beside,
        markdown=overview.markdown(runs, judged, head, said),
        sections=shown,
        plots=plots,
        has_films=any('class="film"' in section["content"] for section in shown),
        has_flames=any('class="flame"' in section["content"] for section in shown),
    )
    return Report(page, tuple(notes))


def markdown(runs: Sequence[ReportRun], *, title: str | None = None) -> str:
    """The first screen of the report as Markdown, for a pull request."""
    judged = [trust_of(run.summary, run.manifest) for run in runs]
    return overview.markdown(runs, judged, title or _title(runs), findings.verdict(runs))


def _late(runs: Sequence[ReportRun]) -> Iterator[tuple[tuple[str, int], Figure]]:
    """The slowest message of every traced trial whose parts were kept."""
    for number, run in enumerate(runs):
        for trial, folder in run.folders.items():
            with contextlib.suppress(*DAMAGE):  # the rest about the trial is shown without it
                if (found := slowest(folder)) is not None:
                    yield (run.name, trial), late_message.lanes(f"late_{number}_{trial}", *found)


def _first(made: pictures.Pictures) -> list[Figure]:
    """Pictures of the first screen: for a sweep the curves of the most important metrics, for a search the breaking
    point."""
    curves = [figure for kind, figure in made.drawn if kind == "curves"]
    broken = [figure for kind, figure in made.drawn if kind == "breaking_points" and "_course" not in figure.name]
    return [*broken, *curves][:MAX_FIRST]


def _groups(made: pictures.Pictures, plots: draw_html.PageParts) -> dict[str, list[Picture]]:
    return {kind: [Picture(one) for one in of] for kind, of in draw_html.groups(made, plots, 4).items()}


def _written(blocks: Iterable[Block]) -> Markup:
    return pages.part("sections.html", "blocks", list(blocks))


def _part(what: str, make: Make, runs: Sequence[ReportRun], notes: list[str]) -> Markup:
    """Damage in one part does not prevent the others from being shown."""
    try:
        return _written(make(runs))
    except (OSError, BadInput, *DAMAGE) as error:
        said = _problem(error, runs)
    notes.append(f"{what}: {said}")
    return _written([Box(f"{what} cannot be shown", [said], "warn")])


def _problem(error: Exception, runs: Sequence[ReportRun]) -> str:
    said = without_folders(one_line(str(error)), [run.data.path.resolve().name for run in runs])
    return said if isinstance(error, BadInput | OSError) else f"damaged data: {type(error).__name__}: {said}"


def _group(kind: str, drawn: Sequence[Picture]) -> Group:
    """A single picture has its own title."""
    title = [Heading(pictures.BY_NAME[kind].title)] if len(drawn) > 1 else []
    return Group("pictures", [*title, *drawn], f"pictures-{kind}")


def _title(runs: Sequence[ReportRun]) -> str:
    workloads = list(dict.fromkeys(r.workload for run in runs for r in run.results))
    if not workloads:
        return " and ".join(run.name for run in runs)
    return " and ".join(workloads) if len(workloads) < 4 else f"{', '.join(workloads[:3])} and others"


def _told(runs: Sequence[ReportRun]) -> str:
    """The names of the runs, and when they were made."""
    names = ", ".join(run.name for run in runs)
    ordered = sorted(runs, key=lambda run: run.manifest.created_utc or "")
    dates = list(dict.fromkeys(date for run in ordered if (date := setup.when(run)) is not None))
    return " · ".join([names, " to ".join(dict.fromkeys((dates[0], dates[-1])))] if dates else [names])
