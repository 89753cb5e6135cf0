"""Shared memory that a middleware created and did not remove, because its process was killed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from perflab.processes import is_locked

FOLDER = Path("/dev/shm")
SHOWN = 3


@dataclass(frozen=True)
class Removal:
    """The result for left-over files: their names, and one line for each that could not be removed."""

    removed: tuple[str, ...]
    problems: tuple[str, ...]

    @property
    def notes(self) -> list[str]:
        """For the trial, one line each; none if nothing was left."""
        if not self.removed:
            return list(self.problems)
        shown = ", ".join(self.removed[:SHOWN])
        more = f" and {len(self.removed) - SHOWN} more" if len(self.removed) > SHOWN else ""
        return [f"the middleware left shared memory behind, removed: {shown}{more}", *self.problems]


def remove_left_over(names: Iterable[str], folder: Path | None = None) -> Removal:
    """Removes those files of `folder` (FOLDER) that a trial's ended processes had named and that still exist.

    Only plain names of regular files of this user: a process's report must not affect anything else. Never raises.
    """
    folder = folder or FOLDER
    removed: list[str] = []
    problems: list[str] = []
    for name in sorted(set(names)):
        try:
            if not is_ours(name, folder) or _taken_over(folder, name):
                continue
            (folder / name).unlink()
            removed.append(name)
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            problems.append(f"{folder / name} was left behind and cannot be removed: {reason}")
    return Removal(tuple(removed), tuple(problems))


def _taken_over(folder: Path, name: str) -> bool:
    """Whether another process uses the file by now: Fast DDS holds a lock on the `_el` file beside each used file."""
    lock = folder / f"{name.removeprefix('sem.').removesuffix('_mutex').removesuffix('_el')}_el"
    return is_locked(lock)


def is_ours(name: str, folder: Path | None = None) -> bool:
    """Whether it is the plain name of a regular file of this user. Raises OSError."""
    if "/" in name or name in ("", ".", "..") or "\0" in name:
        return False
    status = ((folder or FOLDER) / name).lstat()
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.getuid()
