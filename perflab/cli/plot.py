"""`perflab plot`: pictures of one or several runs, to look at, print and explore."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from perflab.cli.check import open_target
from perflab.cli.options import MeasuredRuns, TargetName, Theme, check_theme
from perflab.errors import BadInput, damage_of
from perflab.option import some_of
from perflab.output import write_json
from perflab.phases import phase
from perflab.report import whole_file

if TYPE_CHECKING:
    from perflab.report.figures import Target
    from perflab.report.pictures import Pictures
    from perflab.report.results import Trials
    from perflab.results.run import RunData

FORMATS = ("html", "svg", "png", "pdf")
DEFAULT_FORMATS = ("html", "svg")
MIN_DPI, MAX_DPI = 50, 600
PAGE = "plots.html"
FOLDER = "plots"
MAX_FIGURES = 6  # as many as there are colours


def plot(
    run: MeasuredRuns,
    kind: Annotated[
        str,
        typer.Option(
            metavar="K[,K]",
            help="all, or some of: course, outcomes, loops, histograms, distributions, percentiles, edges, time, "
            "curves, breaking_points, executor_costs, target, cores, affinity, cpu, rss.",
        ),
    ] = "all",
    fmt: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="F[,F]",
            help="html, svg, png, pdf; default html,svg.",
            show_default=False,
            autocompletion=some_of(FORMATS),
        ),
    ] = None,
    figure: Annotated[
        str | None,
        typer.Option(
            metavar="F[,F]",
            help="Some of: latency, response, publish_delay, publish_call, dispatch, work, round_trip (of "
            "services), and the times of a workload or an observer (ping_pong, cyclictest); default latency "
            "and round_trip, if measured.",
            show_default=False,
        ),
    ] = None,
    only: Annotated[
        str | None,
        typer.Option(
            metavar="WORD[,WORD]",
            help="Only results whose legend contains one of these words; default all, up to 12.",
            show_default=False,
        ),
    ] = None,
    target: TargetName = None,
    theme: Theme = "auto",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR|FILE",
            help="Output directory; default plots/ in the first run.",
            show_default=False,
        ),
    ] = None,
    dpi: Annotated[int, typer.Option(metavar="N", help="Resolution of PNG files in dots per inch.")] = 150,
    as_json: Annotated[bool, typer.Option("--json", help="Print the list of files as JSON.")] = False,
) -> int:
    """Draw the measurements of runs.

    Example: perflab plot RUN ANOTHER_RUN --kind percentiles --figure latency,response
    """
    from perflab.report import pictures as made
    from perflab.report.results import FIGURES, as_in_summary, drawn_times, own_times, results_of
    from perflab.runs.rundata import open_run

    kinds = tuple(made.BY_NAME) if kind == "all" else _chosen(kind, tuple(made.BY_NAME), "--kind", "picture")
    shown = check_theme(theme)
    if not MIN_DPI <= dpi <= MAX_DPI:
        raise BadInput(f"--dpi {dpi} is not within {MIN_DPI}..{MAX_DPI}")
    formats = _formats(fmt, output)
    limits = None if target is None else _target(target)

    runs = [open_run(word) for word in run]
    with damage_of(*(data.path for data in runs)), phase("drawing"):
        results = as_in_summary(results_of(runs))
        if not results:
            raise BadInput(f"nothing to draw: no trial of {_names(runs)} has records")
        results = _selected(results, only)
        own = own_times(results)
        named = None if figure is None else _chosen(figure, (*FIGURES, *own), "--figure", "figure")
        if named is not None and len(named) > MAX_FIGURES:
            raise BadInput(f"--figure names {len(named)} figures; at most {MAX_FIGURES} fit into a picture")
        measured, missing = _measured(runs, results, named)
        # Figures that are not per message, and requested figures, are also drawn side by side.
        beside = drawn_times(results) if named is None else []
        if not beside and (kind != "all" or any(name in own for name in measured)):
            beside = measured
        drawable = [k for k in kinds if measured or named is None or not made.BY_NAME[k].of_figures]
        pictures = made.build(
            results, drawable, measured, limits, together=named is not None and len(named) <= 2,
            runs=runs if only is None else _narrowed(runs, results), own=beside,
        )  # fmt: skip
        # Missing figures that were not requested are not mentioned.
        missing += [str(one) for one in pictures.missing if kind != "all" or not made.BY_NAME[one.kind].special]
        if not pictures.drawn:
            raise BadInput(f"nothing to draw: {'; '.join(missing)}")
        files = _files(pictures, formats, output, runs[0].folder / FOLDER)
        _write(files, pictures, missing, runs, shown, dpi)
    if as_json:
        document = {
            "files": [str(path) for path, _ in files],
            "missing": missing,
            "notes": list(pictures.notes),
        }
        write_json(document)
        return 0
    for path, _ in files:
        sys.stdout.write(f"{path}\n")
    for line in pictures.notes:
        sys.stdout.write(f"Note: {line}\n")
    for line in missing:
        sys.stdout.write(f"Not drawn: {line}\n")
    return 0


def _chosen(text: str, known: Sequence[str], option: str, what: str) -> tuple[str, ...]:
    """The words of a list, without duplicates. Raises BadInput for an unknown word."""
    words = tuple(dict.fromkeys(word.strip() for word in text.split(",")))
    for word in words:
        if word not in known:
            raise BadInput(f"{option} {word!r} is not a {what}; choose from {', '.join(known)}")
    return words


def _formats(text: str | None, output: Path | None) -> tuple[str, ...]:
    """The formats from --format, or else from the suffix of the output file."""
    suffix = "" if output is None else output.suffix.lower().removeprefix(".")
    if text is None:
        return (suffix,) if suffix in FORMATS else DEFAULT_FORMATS
    formats = _chosen(text, FORMATS, "--format", "format")
    if suffix in FORMATS and formats != (suffix,):
        raise BadInput(f"--format {text} excludes --output {output}; name a directory")
    return formats


def _target(word: str) -> Target:
    from perflab.report.figures import Target

    target = open_target(word)
    return Target(target.path.stem, target.bounds, target.topology)


def _names(runs: Sequence[RunData]) -> str:
    return ", ".join(run.name for run in runs)


def _selected(results: list[Trials], only: str | None) -> list[Trials]:
    """The results whose names contain one of these words. Raises BadInput for a word that matches none."""
    if only is None:
        return results
    wanted = [word.strip() for word in only.split(",")]
    for word in wanted:
        if not word or not any(word in result.label for result in results):
            known = "; ".join(result.label for result in results)
            raise BadInput(f"--only {word!r} matches no result; there are {known}")
    return [result for result in results if any(word in result.label for word in wanted)]


def _narrowed(runs: Sequence[RunData], results: Sequence[Trials]) -> list[RunData]:
    """The runs reduced to these results."""
    from perflab.report.results import summary_of

    kept = {id(summary_of(result)) for result in results}
    return [
        replace(run, summary=replace(run.summary, results=tuple(r for r in run.summary.results if id(r) in kept)))
        for run in runs
    ]


def _measured(
    runs: Sequence[RunData], results: Sequence[Trials], named: Sequence[str] | None
) -> tuple[list[str], list[str]]:
    """The figures that can be drawn, of those named or the default ones; and a line for each named one that cannot be
    drawn."""
    from perflab.report.results import ROUND_TRIP, was_measured

    wanted = ("latency", ROUND_TRIP) if named is None else named
    measured = [name for name in wanted if any(was_measured(result, name) for result in results)]
    if named is None:
        return measured, []
    missing = []
    for name in named:
        if name not in measured:
            how = f"; measure it with `perflab run --measure {name}`" if name in ("dispatch", "work") else ""
            missing.append(f"--figure {name} was not measured in {_names(runs)}{how}")
    return measured, missing


def _files(
    pictures: Pictures, formats: Sequence[str], output: Path | None, default: Path
) -> list[tuple[Path, int | None]]:
    """Every file to write with the index of its figure; None is the page with all figures. Raises BadInput."""
    names = [(PAGE, None)] if "html" in formats else []
    files: list[tuple[str, int | None]] = [*names]
    for i, figure in enumerate(pictures.figures):
        files += [(f"{figure.name}.{f}", i) for f in formats if f != "html"]
    if output is None or output.suffix.lower().removeprefix(".") not in FORMATS or output.is_dir():
        folder = default if output is None else output
        return [(folder / name, i) for name, i in files]
    if len(files) > 1:
        made = ", ".join(name for name, _ in files)
        raise BadInput(f"--output {output} is one file, but there are {len(files)} pictures ({made}); name a directory")
    return [(output, files[0][1])]


def _write(
    files: Sequence[tuple[Path, int | None]],
    pictures: Pictures,
    missing: Sequence[str],
    runs: Sequence[RunData],
    theme: str,
    dpi: int,
) -> None:
    from perflab.report import draw, draw_html

    notes = [note if len(runs) == 1 else f"{run.name}: {note}" for run in runs for note in run.notes]
    notes += [f"Not drawn: {line}." for line in missing]
    title = " and ".join(dict.fromkeys(run.name for run in runs))
    for path, index in files:
        if index is None:
            content = draw_html.page(pictures, title, notes, cast("draw_html.Choice", theme)).encode()
        else:
            kind = cast("draw.Format", path.suffix.lower().removeprefix("."))
            drawn, figure = pictures.drawn[index]
            small = pictures.apart(drawn, figure)
            content = draw.draw(figure, kind, "dark" if theme == "dark" else "light", dpi, small)
        whole_file.write(path, content, parents=True)
