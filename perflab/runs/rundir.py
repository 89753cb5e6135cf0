"""The run directory: its content, how it is written, and how it is found.

Every file that perflab itself writes appears completely or not at all (temporary file, fsync, rename, fsync of the
directory). The manifest comes first and summary.json last, so a directory shows how far its run came.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from perflab import models
from perflab.errors import BadInput, PerflabError
from perflab.formats.json_file import read_json, write_json
from perflab.models import Damaged
from perflab.results.files import SCHEMA, Manifest, TrialFile, read_trial
from perflab.workload import file_name

T = TypeVar("T")

RUNS = "runs"
MANIFEST = "manifest.json"
SUMMARY = "summary.json"
TRIALS = "trials"
TRIAL = "trial.json"
PLAN = "plan.json"
RESERVE = ".reserve"
RESERVE_BYTES = 256 << 10


@dataclass(frozen=True)
class TrialDirectory:
    """The files of one trial."""

    path: Path

    @property
    def number(self) -> int:
        """From 1, in the order in which the trials were begun."""
        return int(self.path.name.partition("_")[0])

    @property
    def trial_json(self) -> Path:
        return self.path / TRIAL

    def read(self) -> TrialFile | None:
        """trial.json, or None if perflab ended before it wrote one. Raises BadInput if it is damaged."""
        return _read(self.trial_json, read_trial) if self.trial_json.exists() else None

    def write(self, file: TrialFile) -> None:
        """Raises OSError."""
        write_json(self.trial_json, models.as_json(file))

    @property
    def plan(self) -> Path:
        return self.path / PLAN

    @property
    def processes(self) -> Path:
        return self.path / "processes"

    def config(self, process: str) -> Path:
        return self.processes / f"{process}.config.json"

    def log(self, process: str) -> Path:
        return self.processes / f"{process}.log"

    def records(self, process: str) -> Path:
        return self.processes / f"{process}.jsonl"


@dataclass(frozen=True)
class RunDirectory:
    """A run's directory. `created`: whether perflab created it, or was given an empty one."""

    path: Path
    created: bool
    made_on_the_way: tuple[Path, ...] = ()  # parent directories that perflab created, innermost first

    @property
    def manifest(self) -> Path:
        return self.path / MANIFEST

    def read_manifest(self) -> Manifest:
        """Raises BadInput if it is damaged, or has an unknown version."""
        return _read(self.manifest, self.manifest_of)

    def manifest_of(self, document: Mapping[str, Any]) -> Manifest:
        """Parses the file's content. Raises BadInput, models.Damaged."""
        if (schema := document.get("schema")) != SCHEMA:
            raise BadInput(
                f"{self.manifest} is damaged, or of another version: schema {schema!r} instead of {SCHEMA}; "
                "read it with the perflab that made it"
            )
        return models.read(Manifest, document)

    def write_manifest(self, manifest: Manifest) -> None:
        """Raises OSError."""
        write_json(self.manifest, models.as_json(manifest))

    @property
    def summary(self) -> Path:
        return self.path / SUMMARY

    def new_trial(self, treatment: str) -> TrialDirectory:
        """Creates the directory of the next trial."""
        number = max((trial.number for trial in self.trials()), default=0) + 1
        directory = TrialDirectory(self.path / TRIALS / f"{number:04d}_{file_name(treatment)}")
        # Does not belong to the run: a directory that was moved away is not started again
        directory.path.parent.mkdir(exist_ok=True)
        directory.processes.mkdir(parents=True)
        return directory

    def trials(self) -> list[TrialDirectory]:
        """The trials that were begun, in order."""
        root = self.path / TRIALS
        found = [p for p in root.iterdir() if p.is_dir() and p.name[:4].isdigit()] if root.is_dir() else []
        return [TrialDirectory(p) for p in sorted(found)]

    def reserve(self) -> None:
        """Reserves disk space for the final files of a run that fills the disk. Raises OSError if there is none."""
        with (self.path / RESERVE).open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, RESERVE_BYTES)

    def release_reserve(self) -> None:
        (self.path / RESERVE).unlink(missing_ok=True)

    def discard(self) -> None:
        """Removes everything that was written, for a run with bad input."""
        if self.created:
            shutil.rmtree(self.path, ignore_errors=True)
            for parent in self.made_on_the_way:
                with contextlib.suppress(OSError):
                    parent.rmdir()  # other files may have been put there meanwhile
            return
        for entry in self.path.iterdir():
            if entry.is_dir():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)


def _read(path: Path, record_of: Callable[[Mapping[str, Any]], T]) -> T:
    try:
        return record_of(read_json(path))
    except Damaged as error:
        raise BadInput(f"{path} is damaged: {error}") from error


def create(output: Path | None, name: str, now: datetime | None = None) -> RunDirectory:
    """Creates runs/<UTC time>_<name>/, or `output`, which must not exist or be empty. Raises BadInput."""
    if output is not None:
        check_output(output)
        # Without "..", whose directory would have to exist.
        output = Path(os.path.normpath(output))
        created = not output.exists()
        missing = _missing_above(output)
        _make(output, parents=True, exist_ok=True)
        return RunDirectory(output, created, missing)
    root = Path(RUNS)
    made = () if root.exists() else (root,)
    _make(root, parents=True, exist_ok=True)
    stem = f"{(now or datetime.now(UTC)).strftime('%Y%m%dT%H%M%SZ')}_{file_name(name)}"
    for attempt in range(1, 1000):
        path = root / (stem if attempt == 1 else f"{stem}_{attempt}")
        with contextlib.suppress(FileExistsError):
            _make(path)
            return RunDirectory(path, created=True, made_on_the_way=made)
    raise PerflabError(f"cannot find a free name for a run in {root}")


def _missing_above(path: Path) -> tuple[Path, ...]:
    """The directories above `path` that do not exist, innermost first."""
    return tuple(parent for parent in path.absolute().parents if not parent.exists())


def check_output(output: Path) -> None:
    """Raises BadInput if `output` cannot become a run directory. Writes nothing."""
    try:
        output = Path(os.path.normpath(output))
        if output.is_dir():
            if any(output.iterdir()):
                raise BadInput(f"--output {output} is not empty; name a new or an empty directory")
        elif output.exists() or output.is_symlink():
            raise BadInput(f"--output {output} is not a directory; name a new or an empty directory")
        parent = next(p for p in (output, *output.absolute().parents) if p.exists())
        if not parent.is_dir():
            raise BadInput(f"--output {output} cannot be created: {parent} is not a directory")
        if not os.access(parent, os.W_OK | os.X_OK):
            raise BadInput(f"--output {output} cannot be created: {parent} is not writable")
    except OSError as error:
        raise BadInput(f"--output {output} cannot be created: {error.strerror}") from error


def open_run(word: str) -> RunDirectory:
    """The run that a word of the command line names: a path, or a name below runs/. Raises BadInput."""
    try:
        for path in (Path(word), Path(RUNS) / word):
            if (path / MANIFEST).is_file():
                return RunDirectory(path, created=False)
        path = Path(word)
        if path.is_dir():
            raise BadInput(f"{word!r} is not a run directory: it has no {MANIFEST}")
        if path.exists():
            raise BadInput(f"{word!r} is a file; name the run directory that contains {MANIFEST}")
    except OSError as error:
        raise BadInput(f"cannot open run {word!r}: {error.strerror}") from error
    raise BadInput(f"no run {word!r}; name a run directory, `ls {RUNS}` shows those of this folder")


def _make(path: Path, *, parents: bool = False, exist_ok: bool = False) -> None:
    try:
        path.mkdir(parents=parents, exist_ok=exist_ok)
    except FileExistsError:
        if not exist_ok:
            raise
        raise BadInput(f"cannot create the run directory {path}: it is a file") from None
    except OSError as error:
        raise BadInput(f"cannot create the run directory {path}: {error.strerror}; choose one with --output") from error
