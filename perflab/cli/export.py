"""`perflab export`: the results of a run in the file formats of other programs."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perflab.cli.options import complete_run, parameters, read, with_options
from perflab.errors import BadInput, PerflabError, damage_of
from perflab.option import Declared, declared, one_of
from perflab.output import write_json
from perflab.results.outcome import SUCCESS
from perflab.units import listed

if TYPE_CHECKING:
    from perflab.export import Written
    from perflab.results.run import RunData, TrialTables


def _formats() -> Iterable[str]:
    from perflab.export import REGISTRY

    return REGISTRY


def _options() -> dict[str, Declared]:
    """The options of all formats, by parameter name."""
    from perflab.export import REGISTRY

    return {option.parameter: option for kind in REGISTRY.values() for option in declared(kind.model)}


def _parameters() -> list[inspect.Parameter]:
    return parameters(_options().values())


@with_options(_parameters)
def export(
    context: typer.Context,
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="A run directory, or its name in runs/.", autocompletion=complete_run)
    ],
    format_: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="irobot, irobot-legacy, performance_test, csv (perflab's tables), mcap (Foxglove, PlotJuggler), "
            "or a format of an installed package.",
            autocompletion=one_of(_formats),
        ),
    ] = "irobot",
    trial: Annotated[int | None, typer.Option(metavar="N", help="Export only this trial; default all.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="DIR", help="Output directory; default RUN/export/FORMAT.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write into a directory that is not empty.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print only JSON.")] = False,
    **of_format: Any,
) -> int:
    """Write the results of a run in another format.

    irobot writes what irobot_benchmark writes, one DIR/<process>_log per process, so that its scripts work;
    irobot-legacy does so with the column names that these scripts expect. performance_test writes its logs, a CSV and a
    JSON file per process. mcap writes a file for Foxglove and PlotJuggler. With several trials, each gets its own
    folder.
    """
    from perflab.cli.options import given
    from perflab.export import REGISTRY
    from perflab.runs.rundata import open_run

    if format_ not in REGISTRY:
        raise BadInput(f"--format {format_!r} is not one of {', '.join(REGISTRY)}")
    kind, known = REGISTRY[format_], _options()
    own = {option.parameter: option for option in declared(kind.model)}
    for name in sorted(given(context) & known.keys() - own.keys()):
        formats = [n for n, other in REGISTRY.items() if any(o.parameter == name for o in declared(other.model))]
        raise BadInput(f"{known[name].name} belongs to --format {listed(formats)}")
    exporter = kind.create(read(kind.model, own.values(), of_format))
    data = open_run(run)
    exporter.check(data)
    with damage_of(data.path):
        trials = [t for t in _chosen(data, trial) if exporter.takes(t)]
        if not trials:
            raise BadInput(f"{data.path} has no such trial with records")
        directory = output if output is not None else data.folder / "export" / format_
        _check_free(directory, force)
        documents: list[dict[str, Any]] = []
        try:
            for chosen in trials:
                folder = directory if len(trials) == 1 else directory / _folder(chosen)
                written = exporter.write(data, chosen, folder)
                about = {"trial": chosen.number, "outcome": chosen.outcome, "phase": chosen.phase}
                documents.append({**about, "directory": str(folder), "files": written.files, **written.document})
                if not as_json:
                    _print(chosen, written, exporter.note(chosen))
            numbers = {t.trial for r in data.summary.results for t in r.trials_detail if trial in (None, t.trial)}
            together = exporter.write_together(data, numbers, directory)
            if not as_json:
                sys.stdout.write("".join(f"{path}\n" for path in together))
        except OSError as error:
            raise PerflabError(f"cannot write {error.filename or directory}: {error.strerror}") from error
    if as_json:
        document = {"format": format_, "trials": documents, "files": together}
        write_json(document)
    return 0


def _chosen(data: RunData, number: int | None) -> list[TrialTables]:
    trials = list(data.trials)
    if not trials:
        raise BadInput(f"{data.path} has no trial with records")
    if number is None:
        return trials
    found = [t for t in trials if t.number == number]
    if not found:
        numbers = ", ".join(str(t.number) for t in trials)
        raise BadInput(f"--trial {number}: {data.path} has no such trial; it has {numbers}")
    return found


def _folder(trial: TrialTables) -> str:
    from perflab.design.treatments import BASELINE
    from perflab.workload import file_name

    # A treatment's label includes its parameters; runs from before treatments existed have only conditions.
    treatment = [trial.treatment] if trial.treatment is not None else trial.conditions
    parts = (
        trial.middleware,
        trial.executor,
        trial.ipc and f"ipc_{trial.ipc}",
        trial.pass_by,
        *(f"{path.rpartition('.')[2]}={level}" for path, level in trial.outer_factors.items()),
        *(label for label in treatment if label != BASELINE),
    )
    return file_name("_".join([f"{trial.number:04d}", *(part for part in parts if part)]))


def _check_free(directory: Path, force: bool) -> None:
    try:
        if directory.exists() and not directory.is_dir():
            raise BadInput(f"{directory} is not a directory; name another with --output")
        if directory.is_dir() and any(directory.iterdir()) and not force:
            raise BadInput(f"{directory} is not empty; name another with --output, or write into it with --force")
    except OSError as error:
        raise BadInput(f"cannot list {directory}: {error.strerror}") from error


def _print(trial: TrialTables, written: Written, note: str | None) -> None:
    if trial.outcome != SUCCESS:
        sys.stdout.write(f"Note: trial {trial.number} did not succeed ({trial.outcome.words})\n")
    if note is not None:
        sys.stdout.write(f"Note: trial {trial.number}: {note}\n")
    sys.stdout.write("".join(f"{path}\n" for path in written.files) + written.text)
