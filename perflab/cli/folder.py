"""The folder of a recording: one of its own, and gone again where nothing was recorded."""

from __future__ import annotations

import contextlib
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from perflab.errors import BadInput


@dataclass(frozen=True)
class Folder:
    """One that was made, or was empty. `made` is what was not there before, the outermost first."""

    path: Path
    made: tuple[Path, ...]

    def take_back(self) -> None:
        """Leaves what was there before: nothing."""
        for path in self.path.iterdir() if self.path.is_dir() else ():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        for path in reversed(self.made):
            with contextlib.suppress(OSError):  # somebody else uses it by now
                path.rmdir()


def check(output: Path | None, what: str) -> None:
    """Raises BadInput where `output` is there and not an empty folder."""
    if output is None:
        return
    try:
        if output.exists() and (not output.is_dir() or any(output.iterdir())):
            raise BadInput(f"--output {output}: exists and is not an empty folder; a {what} has a folder of its own")
    except OSError as error:
        raise BadInput(f"--output {output}: {error.strerror}") from error


def make(output: Path | None, what: str, parent: str, name: str) -> Folder:
    """`output`, or one in `parent` that nobody else has: two that begin in the same second get two. Raises BadInput."""
    check(output, what)
    wanted = output or Path(parent) / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}_{name}"
    missing = [path for path in (wanted, *wanted.parents) if not path.exists()]
    path, number = wanted, 1
    try:
        wanted.parent.mkdir(parents=True, exist_ok=True)
        while True:
            try:
                path.mkdir(exist_ok=output is not None)
                break
            except FileExistsError:
                if output is not None:
                    raise
                number += 1
                path = wanted.with_name(f"{wanted.name}_{number}")
    except OSError as error:
        place = f"--output {output}" if output is not None else f"{wanted.parent}; --output chooses another folder"
        raise BadInput(f"{place}: {error.strerror}") from error
    above = [folder for folder in reversed(missing) if folder != wanted]
    return Folder(path, (*above, *([path] if path != wanted or wanted in missing else [])))
