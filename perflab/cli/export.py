"""`perflab export`: the results of a run in the files of other programs."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perflab.cli.show import complete_run
from perflab.errors import BadInput, PerflabError, damage_of

if TYPE_CHECKING:
    from perflab.formats.rundata import RunData, TrialTables

Json = dict[str, Any]

FORMATS = ("irobot", "irobot-legacy", "csv")
ACCOUNTINGS = ("original", "corrected")


def export(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="A run directory, or its name in runs/.", autocompletion=complete_run)
    ],
    format_: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help=f"{', '.join(FORMATS)} (perflab's tables).")
    ] = "irobot",
    accounting: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help="original: as irobot_benchmark counts, defects included; corrected: perflab's figures.  "
            "[default: corrected]",
        ),
    ] = None,
    tracking: Annotated[
        str | None,
        typer.Option(
            metavar="on|off", help="As with irobot_benchmark's --tracking; off: no classes, no events.  [default: on]"
        ),
    ] = None,
    csv: Annotated[
        bool, typer.Option("--csv", help="Commas instead of columns, for irobot and irobot-legacy.")
    ] = False,
    trial: Annotated[int | None, typer.Option(metavar="N", help="This trial alone; default all.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="DIR", help="Where to; default RUN/export/FORMAT.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Also into a directory that is not empty.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
) -> int:
    """Write the results of a run in another format.

    irobot writes what irobot_benchmark leaves behind, one DIR/<process>_log per process, and so feeds its scripts;
    irobot-legacy does so with the column names that these scripts know. Several trials get a folder each.
    """
    from perflab.formats.rundata import PERFLAB, open_run

    _one_of(format_, FORMATS, "--format")
    if format_ == "csv" and (csv or accounting is not None or tracking is not None):
        raise BadInput("--csv, --accounting and --tracking belong to --format irobot and irobot-legacy")
    accounting = _one_of(accounting or "corrected", ACCOUNTINGS, "--accounting")
    tracked = _one_of(tracking or "on", ("on", "off"), "--tracking") == "on"
    data = open_run(run)
    if format_ != "csv" and data.origin != PERFLAB:
        raise BadInput(f"{run} is output of irobot_benchmark already; `--format csv` writes its tables")
    with damage_of(data.path):
        if format_ != "csv" and (data.manifest.get("workload") or {}).get("kind") == "command":
            raise BadInput(
                f"{run} measured a command: which of its messages were late, which the format needs, is not known; "
                "`--format csv` writes its tables"
            )
        trials = [t for t in _chosen(data, trial) if format_ == "csv" or _recorded(t)]
        if not trials:
            raise BadInput(f"{data.path} holds no such trial that recorded anything")
        directory = output if output is not None else data.path / "export" / format_
        _check_free(directory, force)
        written: list[Json] = []
        try:
            for chosen in trials:
                folder = directory if len(trials) == 1 else directory / _folder(chosen)
                if format_ == "csv":
                    done = {"files": _write_csv(chosen, folder), "system_total": None}
                else:
                    done = _write_irobot(data, chosen, folder, format_ == "irobot-legacy", accounting, tracked, csv)
                about = {
                    "trial": chosen.number,
                    "outcome": chosen.outcome,
                    "phase": chosen.phase,
                    "directory": str(folder),
                }
                written.append({**about, **done})
                if not as_json:
                    _print(written[-1], of_irobot=format_ != "csv")
        except OSError as error:
            raise PerflabError(f"cannot write {error.filename or directory}: {error.strerror}") from error
    if as_json:
        trials_written = [{k: v for k, v in done.items() if k != "table"} for done in written]
        sys.stdout.write(json.dumps({"format": format_, "trials": trials_written}, indent=1, ensure_ascii=False) + "\n")
    return 0


def _one_of(word: str, words: tuple[str, ...], option: str) -> str:
    if word not in words:
        raise BadInput(f"{option} {word!r} is not one of {', '.join(words)}")
    return word


def _chosen(data: RunData, number: int | None) -> list[TrialTables]:
    trials = list(data.trials)
    if not trials:
        raise BadInput(f"{data.path} holds no trial that recorded anything")
    if number is None:
        return trials
    found = [t for t in trials if t.number == number]
    if not found:
        numbers = ", ".join(str(t.number) for t in trials)
        raise BadInput(f"--trial {number}: {data.path} has no such trial; there is {numbers}")
    return found


def _recorded(trial: TrialTables) -> bool:
    return any(table.height for table in (trial.edges, trial.publishers, trial.services))


def _folder(trial: TrialTables) -> str:
    from perflab.experiment.design import BASELINE
    from perflab.statistics.selection import outer_factors
    from perflab.workload import file_name

    levels = outer_factors({"middleware": trial.middleware, "conditions": trial.conditions, "factors": trial.factors})
    # The label of a treatment tells its parameters too; runs from before there were treatments have conditions alone.
    treatment = [trial.treatment] if trial.treatment is not None else trial.conditions
    parts = (
        trial.middleware,
        trial.executor,
        trial.ipc and f"ipc_{trial.ipc}",
        trial.pass_by,
        *(f"{path.rpartition('.')[2]}={level}" for path, level in levels.items()),
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
        raise BadInput(f"cannot look into {directory}: {error.strerror}") from error


def _write_irobot(
    data: RunData, trial: TrialTables, directory: Path, legacy: bool, accounting: str, tracked: bool, csv: bool
) -> Json:
    """Writes all processes of a trial; what it wrote, and the total of all processes where there are several."""
    from perflab.formats import irobot
    from perflab.formats.irobot import dialect
    from perflab.formats.irobot.accounts import Accounting, aggregate
    from perflab.formats.irobot.write import total_table

    kind = Accounting(accounting)
    whole_us = kind is Accounting.ORIGINAL
    outputs = irobot.outputs_of(data, trial, kind, tracking=tracked, legacy=legacy, csv=csv)
    files: list[str] = []
    for process in outputs:
        folder = directory / f"{process.process}{dialect.LOG_SUFFIX}"
        folder.mkdir(parents=True, exist_ok=True)
        for name in dialect.FILES:
            (folder / name).unlink(missing_ok=True)  # of an export before, which may have had more files
        files += [
            str(folder / name) for name in irobot.write(process, folder, legacy=legacy, csv=csv, whole_us=whole_us)
        ]
    if len(outputs) < 2:
        return {"files": files, "system_total": None}
    total = aggregate(outputs, kind)
    figures = {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in asdict(total).items()}
    table = total_table(total, legacy=legacy, csv=csv, whole_us=whole_us)
    return {"files": files, "system_total": figures, "table": table}


def _write_csv(trial: TrialTables, directory: Path) -> list[str]:
    from perflab.formats.rundata import TABLES

    directory.mkdir(parents=True, exist_ok=True)
    files = []
    for name in TABLES:
        table = getattr(trial, name)
        path = directory / f"{name}.csv"
        # The encoded histograms are in the Parquet files; in a table for people they would only be in the way.
        table.select([column for column in table.columns if not column.endswith("_v2")]).write_csv(path)
        files.append(str(path))
    return files


def _print(done: Json, of_irobot: bool) -> None:
    from perflab.statistics.selection import beside_irobot

    if done["outcome"] != "success":
        sys.stdout.write(f"Note: trial {done['trial']} was no success ({done['outcome']})\n")
    if of_irobot and (note := beside_irobot([done["phase"]])) is not None:
        sys.stdout.write(f"Note: trial {done['trial']}: {note}\n")
    sys.stdout.write("".join(f"{path}\n" for path in done["files"]))
    if done["system_total"] is not None:
        sys.stdout.write(f"\nSystem total:\n{done['table']}")
