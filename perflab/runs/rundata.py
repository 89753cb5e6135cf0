"""One loader for every kind of run: perflab's own directories, those of irobot_benchmark, and logs of performance_test.

All code that draws, compares or exports results reads them through `open_run` and so works on all kinds.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from perflab import models
from perflab.errors import DAMAGE, BadInput
from perflab.formats import json_file, loops, records, tables
from perflab.formats.records import ProcessRecords, RecordError
from perflab.formats.tables import empty_tables
from perflab.host import Host
from perflab.models import Damaged
from perflab.phases import phase
from perflab.results import summary as summaries
from perflab.results.files import Manifest, TrialFile, UsedWorkload
from perflab.results.outcome import FAILED, OwnOutcome
from perflab.results.run import PERFLAB, TABLES, RunData, Tables, TrialTables
from perflab.results.summary import Summary
from perflab.runs import rundir
from perflab.runs.controller import RUNNING, controller_state
from perflab.runs.rundir import RunDirectory, TrialDirectory
from perflab.runs.trials import NOT_SET, OF_OBSERVER, left_out, own_trials
from perflab.workload import rounds

if TYPE_CHECKING:
    from polars import DataFrame

    from perflab.runs.collect import Collected
    from perflab.statistics.histogram import Histogram

_FROM = "file of the row"
LOOPS = "loops"
_LATER = ("services",)  # tables that runs of older versions do not have

_GOES_ON = "the run is still in progress; these are its numbers so far"
_ENDED_EARLY = "perflab ended before the run was complete; the numbers are from its processes' records"


def open_run(path: str | Path, *, with_tables: bool = True) -> RunData:
    """The run in a directory, or with a name below runs/; `with_tables=False` leaves `trials` empty and is faster.

    Reads perflab's run directories, even without summary.json, and results of irobot_benchmark: one `<topology>_log`
    directory or a directory of them, in the current or the older dialect, as text or CSV; and logs of performance_test,
    a file or a directory of them. Raises BadInput for anything else.
    """
    word = str(path)
    if not is_perflab_run(word):
        from perflab.formats.irobot import parse as irobot
        from perflab.formats.irobot import runs as of_irobot
        from perflab.formats.performance_test import parse as performance_test
        from perflab.formats.performance_test import runs as of_performance_test

        for find, read in (
            (irobot.find, of_irobot.read),
            (performance_test.find, of_performance_test.read),
        ):
            if (foreign := find(Path(word))) is not None:
                with phase(f"reading {word}"):
                    return read(Path(word), foreign)
    with phase(f"reading {word}"):
        return _open_own(rundir.open_run(word), with_tables)


def is_perflab_run(word: str) -> bool:
    """Whether a path, or a name below runs/, is a run directory of perflab. Raises BadInput if this is unknown."""
    try:
        return any((folder / rundir.MANIFEST).is_file() for folder in (Path(word), Path(rundir.RUNS) / word))
    except OSError as error:
        raise BadInput(f"cannot open run {word!r}: {error.strerror}") from error


def _open_own(directory: RunDirectory, with_tables: bool) -> RunData:
    manifest = directory.read_manifest()
    notes = [manifest.rough] if manifest.rough is not None else []
    summary: Summary | None = None
    problem: str | None = None
    try:
        if directory.summary.exists():
            summary = summaries.read(json_file.read_json(directory.summary))
        else:
            notes.append(_GOES_ON if controller_state(manifest, Host()) == RUNNING else _ENDED_EARLY)
    except (BadInput, Damaged) as error:
        other = f"{directory.summary} is damaged, or was written by another version of perflab"
        problem = str(error) if isinstance(error, BadInput) else f"{other}: {error}"
        notes.append(f"{problem}; these numbers are computed from the records")
    if summary is None:
        from perflab.runs.collect import collect_run

        summary, found = collect_run(directory)
        if problem is not None and not summary.results:
            raise BadInput(problem)  # and there is nothing to rebuild it from
        notes += found
    else:
        notes += said_in(directory)
    try:
        trials, files = _trials(directory, manifest, notes) if with_tables else ((), ())
    except DAMAGE as error:
        raise BadInput(f"{directory.path} is damaged: {type(error).__name__}: {error}") from error
    except OSError as error:
        raise BadInput(f"cannot read {error.filename or directory.path}: {error.strerror}") from error
    return RunData(summary.run, directory.path, PERFLAB, summary, manifest, trials, tuple(dict.fromkeys(notes)), files)


def said_in(directory: RunDirectory, begins: tuple[str, ...] = (NOT_SET, OF_OBSERVER)) -> list[str]:
    """DDS settings that perflab could not make, according to the trials, and the observers' remarks on their records,
    without duplicates."""
    said: dict[str, None] = {}
    for trial in directory.trials():
        try:
            told = json_file.read_json(trial.trial_json).get("notes", ())
        except (BadInput, OSError, *DAMAGE):
            continue  # readers of the trial's details get an error
        said |= {note: None for note in told if str(note).startswith(begins)}
    return list(said)


def _trials(
    directory: RunDirectory, manifest: Manifest, notes: list[str]
) -> tuple[tuple[TrialTables, ...], tuple[tuple[Path, TrialFile], ...]]:
    damaged: list[str] = []
    found: list[TrialTables] = []
    own = [(trial, file) for trial, file in own_trials(directory, manifest, [], damaged) if file is not None]
    stored = _stored_together([trial for trial, file in own if file.finished])
    for trial, file in own:
        try:
            found.append(_trial(trial, file, manifest.workload, notes, stored))
        except BadInput as error:
            damaged.append(str(error))
        except DAMAGE as error:
            damaged.append(f"{trial.path} is damaged: {type(error).__name__}: {error}")
    if damaged and not found:
        raise BadInput(damaged[0])
    # A rebuilt summary already has this remark.
    notes += [left_out(problem, in_summary=True) for problem in damaged if left_out(problem) not in notes]
    return tuple(found), tuple((trial.path, file) for trial, file in own)


def _trial(
    directory: TrialDirectory,
    file: TrialFile,
    workload: UsedWorkload,
    notes: list[str],
    stored: Mapping[Path, DataFrame],
) -> TrialTables:
    frames = _stored_tables(directory, file, notes, stored)
    if frames is None:
        from perflab.runs.collect import collect, expected_of

        frames = _tables_of(collect(directory, file, *expected_of(directory, workload)))
    return TrialTables(
        **models.shared(TrialTables, file.ended)
        | {
            "number": file.trial,
            "middleware": file.middleware.name,
            "started_ns": _measured_from_ns(directory, file),
            "waited_s": None if file.cool_down is None else file.cool_down.waited_s,
            "quiet": None if file.cool_down is None else file.cool_down.reached,
            "missed_criterion": any(not c.met for c in file.criteria) or _is_failure(file.own_outcome),
            "read_times": partial(_times, directory, file),
            "read_loops": partial(_loops, directory, file),
            **frames,
        }
    )


def _is_failure(own: OwnOutcome | None) -> bool:
    """For a trial that ran to its end, its values from this kind of workload."""
    return own is not None and own.of == FAILED


def _times(directory: TrialDirectory, file: TrialFile) -> dict[str, Histogram]:
    """The times of the workload's kind and of observers. Raises BadInput if they are damaged."""
    from perflab.runs.collect import observed_times
    from perflab.statistics import histogram as hg

    try:
        own = {name: hg.from_record(record) for name, record in file.own_times.items()}
        if not own and (table := _loops(directory, file)) is not None:
            own = rounds.times(loops.of_table(table))  # for any graph with `--measure loops`
        return own | observed_times(directory, file, _records(directory, file) if file.observers else ())
    except (hg.HistogramError, *DAMAGE) as error:
        raise BadInput(f"{directory.path} is damaged: {type(error).__name__}: {error}") from error
    except OSError as error:
        raise BadInput(f"cannot read {error.filename or directory.path}: {error.strerror}") from error


def _loops(directory: TrialDirectory, file: TrialFile) -> DataFrame | None:
    """Raises BadInput if they are damaged."""
    import polars as pl

    path = directory.path / f"{LOOPS}.parquet"
    if file.finished and path.is_file():
        try:
            found = pl.read_parquet(path)
        except (pl.exceptions.PolarsError, OSError) as error:
            raise BadInput(f"{path} cannot be read: {str(error).splitlines()[0]}") from error
    else:
        found = tables.of(None, _records(directory, file))[LOOPS]
    return found if found.height else None


def _records(directory: TrialDirectory, file: TrialFile) -> list[ProcessRecords]:
    """Of the workload's processes; damage was reported when the trial was opened."""
    found = []
    for name, told in file.processes.items():
        if not told.condition:
            with contextlib.suppress(RecordError, OSError):
                found.append(records.read(directory.records(name), name))
    return found


def _stored_together(directories: Sequence[TrialDirectory]) -> dict[Path, DataFrame]:
    """The Parquet files of trials, each table's read at once: one by one takes five times as long. Without tables of
    which any is damaged, or has other columns.
    """
    import polars as pl

    found: dict[Path, DataFrame] = {}
    for name, empty in empty_tables().items():
        paths = [path for directory in directories if (path := directory.path / f"{name}.parquet").is_file()]
        if len(paths) < 2:
            continue
        try:
            whole = _completed(pl.read_parquet(paths, glob=False, include_file_paths=_FROM), empty)
        except (pl.exceptions.PolarsError, OSError):
            continue
        parts = whole.partition_by(_FROM, as_dict=True, include_key=False)
        none = whole.clear().drop(_FROM)
        found |= {path: parts.get((str(path),), none) for path in paths}
    return found


def _stored_tables(
    directory: TrialDirectory, file: TrialFile, notes: list[str], stored: Mapping[Path, DataFrame]
) -> Tables | None:
    """The Parquet files of a trial; None if some are missing, so that the records must be read."""
    import polars as pl

    paths = {name: directory.path / f"{name}.parquet" for name in TABLES}
    missing = [name for name, path in paths.items() if not path.is_file()]
    if not file.finished or any(name not in _LATER for name in missing):
        return None
    frames: Tables = {}
    for name, empty in empty_tables().items():
        if name in missing:
            frames[name] = empty
            continue
        try:
            frame = stored.get(paths[name])
            frames[name] = _completed(pl.read_parquet(paths[name]), empty) if frame is None else frame
        except (pl.exceptions.PolarsError, OSError) as error:
            notes.append(f"{paths[name]} cannot be read ({str(error).splitlines()[0]}); the records are read instead")
            return None
    return frames


def _completed(frame: DataFrame, empty: DataFrame) -> DataFrame:
    """With the columns that a run of an older version lacks, as not measured."""
    import polars as pl

    known = set(frame.columns)
    lacking = [pl.lit(None, of).alias(name) for name, of in empty.schema.items() if name not in known]
    return frame.with_columns(lacking) if lacking else frame


def _tables_of(collected: Collected) -> Tables:
    made = tables.of(collected.data.accounts, collected.processes)
    return {name: made[name] for name in TABLES}


def _measured_from_ns(directory: TrialDirectory, file: TrialFile) -> int | None:
    """The earliest start of the measured part; its line is near the beginning of every process's records."""
    starts = [_start_of(directory.records(name)) for name in file.processes]
    return min((start for start in starts if start is not None), default=None)


def _start_of(path: Path) -> int | None:
    if not path.is_file():
        return None
    with path.open("rb") as file:
        for line in file:
            if b'"start"' not in line:
                continue
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                return None  # the last line of a process that was killed
            if isinstance(record, dict) and record.get("type") == "start":
                return int(record["measured_from_ns"])
    return None
