"""`perflab report`: a page of one or several runs, to share."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from perflab.cli.options import MeasuredRuns, Theme, TopFunctions, check_theme
from perflab.errors import BadInput
from perflab.output import write_json
from perflab.phases import phase
from perflab.profile import TOP
from perflab.report import whole_file

if TYPE_CHECKING:
    from perflab.report.draw_html import Choice
    from perflab.report.runs import ReportRun

PAGE = "report.html"


def report(
    run: MeasuredRuns,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Output file; default report.html in the first run; - for stdout.",
            show_default=False,
        ),
    ] = None,
    title: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Title of the page; default the workload.", show_default=False)
    ] = None,
    theme: Theme = None,
    still: Annotated[
        bool, typer.Option("--still", help="Static pictures, which make the page a third smaller.")
    ] = False,
    top: TopFunctions = TOP,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the first screen as Markdown, for a pull request, instead.")
    ] = False,
    latex: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Write tables and figures for a paper into this directory instead.", show_default=False
        ),
    ] = None,
    serve: Annotated[
        bool, typer.Option("--serve", help="Show the run live in a browser, on the loopback interface only.")
    ] = False,
    port: Annotated[
        int | None, typer.Option(metavar="N", help="Port for --serve; default a free one.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the list of files as JSON.")] = False,
) -> int:
    """Write a report: one self-contained HTML page with findings, tables, pictures, and how to repeat the run.

    Example: perflab report RUN

    Example: perflab report RUN ANOTHER_RUN --output both.html --title "Before and after"
    """
    shown = cast("Choice", check_theme(theme))
    of_page = {"--output": output, "--theme": theme, "--still": still or None, "--top": None if top == TOP else top}
    others = {**of_page, "--latex": latex, "--json": as_json or None}
    _check({**others, "--title": title, "--markdown": markdown or None}, port, serve)
    if markdown and (given := [name for name, value in others.items() if value is not None]):
        raise BadInput(f"--markdown prints text and writes no page: it excludes {', '.join(given)}")
    of_page["--title"] = title
    if as_json and output == whole_file.STDOUT:
        raise BadInput("--json and --output - both write to stdout: give one of them")
    if latex is not None and any(value is not None for value in of_page.values()):
        raise BadInput(f"--latex DIR writes no page: it excludes {', '.join(of_page)}")
    if serve:
        from perflab.report.serve import serve as serve_run

        with phase(""):
            serve_run(run, port or 0)
        return 0
    from perflab.report.runs import open_all

    runs = open_all(run)
    notes = [f"{of.name}: {note}" if len(runs) > 1 else note for of in runs for note in of.notes]
    if markdown:
        from perflab.report.run_page.page import markdown as written

        sys.stdout.write(written(runs, title=title))
        return 0
    if latex is not None:
        from perflab.report.latex import write

        with phase("writing tables and figures"):
            files = write([of.data for of in runs], latex)
    else:
        from perflab.report.run_page.page import report as made

        files = [_target(runs, output)]
        with phase("writing the report"):
            whole = made(runs, title=title, theme=shown, still=still, top=top)
        whole_file.write(files[0], whole.page, parents=True)
        notes += whole.notes
    if as_json:
        document = {"files": [str(file) for file in files], "notes": notes}
        write_json(document)
        return 0
    # When the page goes to stdout, nothing else does.
    out = sys.stderr if output == whole_file.STDOUT else sys.stdout
    for file in files:
        if file != whole_file.STDOUT:
            out.write(f"{file}\n")
    for line in notes:
        out.write(f"Note: {line}\n")
    return 0


def _check(not_served: Mapping[str, object], port: int | None, serve: bool) -> None:
    """Raises BadInput for options that exclude --serve, or require it."""
    if port is not None and not serve:
        raise BadInput("--port goes with --serve")
    if port is not None and not 0 <= port <= 65535:
        raise BadInput(f"--port {port} is not within 0..65535")
    if serve and (given := [name for name, value in not_served.items() if value is not None]):
        raise BadInput(f"--serve shows runs and writes nothing: it excludes {', '.join(given)}")


def _target(runs: list[ReportRun], output: Path | None) -> Path:
    """The file to write. Raises BadInput if the path cannot be a file."""
    if output is None:
        first = runs[0].data.path
        return (first if first.is_dir() else first.parent) / PAGE
    if output.is_dir():
        raise BadInput(f"--output {output} is a folder; name a file, such as {output / PAGE}")
    return output
