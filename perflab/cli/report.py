"""`perflab report`: one page of one or several runs that people share."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perflab.cli.options import complete_run
from perflab.errors import BadInput
from perflab.option import one_of
from perflab.output import write_json
from perflab.report import whole_file

if TYPE_CHECKING:
    from perflab.report.run_page.runs import ReportRun

THEMES = ("auto", "light", "dark")
PAGE = "report.html"


def report(
    run: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN...",
            help="Run directories, or their names in runs/; also output of irobot_benchmark.",
            autocompletion=complete_run,
            show_default=False,
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Default: report.html in the first run; - for stdout.",
            show_default=False,
        ),
    ] = None,
    title: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Above the page; default the workload.", show_default=False)
    ] = None,
    theme: Annotated[
        str | None,
        typer.Option(
            metavar="T",
            help="light, dark, or auto: the page follows the screen.",
            show_default="auto",
            autocompletion=one_of(THEMES),
        ),
    ] = None,
    still: Annotated[
        bool, typer.Option("--still", help="Pictures that do not move: a page of some 100 kB instead of 5 MB.")
    ] = False,
    latex: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write tables and figures for a paper there, instead.", show_default=False),
    ] = None,
    serve: Annotated[bool, typer.Option("--serve", help="Show the run while it goes on, on loopback alone.")] = False,
    port: Annotated[
        int | None, typer.Option(metavar="N", help="With --serve; default one that is free.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the list of files as JSON.")] = False,
) -> int:
    """Write a report: one HTML page that needs no network, with findings, tables, pictures, and how to repeat it.

    Example: perflab report RUN

    Example: perflab report RUN ANOTHER_RUN --output both.html --title "Before and after"
    """
    if theme is not None and theme not in THEMES:
        raise BadInput(f"--theme {theme!r} is not one of {', '.join(THEMES)}")
    _check_combination(output, title, theme, latex, serve, port, as_json, still=still)
    if serve:
        from perflab.report.serve import serve as serve_run

        serve_run(run, port or 0)
        return 0
    from perflab.report.run_page.runs import open_all

    runs = open_all(run)
    files, notes = (
        _latex(runs, latex) if latex is not None else _page(runs, output, title, theme or "auto", still=still)
    )
    if as_json:
        document = {"files": [str(file) for file in files], "notes": notes}
        write_json(document)
        return 0
    # Where the page itself is on stdout, nothing else is.
    out = sys.stderr if output == whole_file.STDOUT else sys.stdout
    for file in files:
        if file != whole_file.STDOUT:
            out.write(f"{file}\n")
    for line in notes:
        out.write(f"Note: {line}\n")
    return 0


def _check_combination(
    output: Path | None,
    title: str | None,
    theme: str | None,
    latex: Path | None,
    serve: bool,
    port: int | None,
    as_json: bool,
    *,
    still: bool,
) -> None:
    """Raises BadInput for options that do not go together."""
    if port is not None and not serve:
        raise BadInput("--port goes with --serve")
    if port is not None and not 0 <= port <= 65535:
        raise BadInput(f"--port {port} is not within 0..65535")
    if serve:
        others = {
            "--latex": latex is not None,
            "--output": output is not None,
            "--title": title is not None,
            "--theme": theme is not None,
            "--still": still,
            "--json": as_json,
        }
        if given := [name for name, is_given in others.items() if is_given]:
            raise BadInput(f"--serve shows runs and writes nothing: it does not go with {', '.join(given)}")
    if as_json and output == whole_file.STDOUT:
        raise BadInput("--json and --output - both write to stdout: give one of them")
    if latex is not None and (output is not None or title is not None or theme is not None or still):
        raise BadInput("--latex DIR writes no page: it does not go with --output, --title, --theme or --still")


def _latex(runs: list[ReportRun], folder: Path) -> tuple[list[Path], list[str]]:
    from perflab.report.latex import write

    files = write([run.data for run in runs], folder)
    return files, [_named(run, note, len(runs) > 1) for run in runs for note in run.notes]


def _page(
    runs: list[ReportRun], output: Path | None, title: str | None, theme: str, *, still: bool
) -> tuple[list[Path], list[str]]:
    from perflab.report.draw_html import CHOICES
    from perflab.report.run_page.page import report as made

    target = _target(runs, output)
    choice = next(c for c in CHOICES if c == theme)
    whole = made(runs, title=title, theme=choice, still=still)
    whole_file.write(target, whole.page, parents=True)
    return [target], [*(_named(run, note, len(runs) > 1) for run in runs for note in run.notes), *whole.notes]


def _named(run: ReportRun, note: str, several: bool) -> str:
    return f"{run.name}: {note}" if several else note


def _target(runs: list[ReportRun], output: Path | None) -> Path:
    """The file to write. Raises BadInput where it cannot be one."""
    if output is None:
        first = runs[0].data.path
        return (first if first.is_dir() else first.parent) / PAGE
    if output.is_dir():
        raise BadInput(f"--output {output} is a folder; name a file, such as {output / PAGE}")
    return output
