"""Folders for what a load writes, in the trial's directory, and their removal after a kill -9.

Such a folder is recorded before anything is written to it, with its inode number. So a leftover is known by identity:
another folder of that name is not touched.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from pathlib import Path

from perflab.condition import Trial

FOLDER = "temporary"
RECORD = "temporary.json"


def make(trial: Trial, label: str) -> Path:
    """A new empty folder for the files of the condition's programs: LABEL/temporary in the trial's directory."""
    folder = trial.directory / label / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    status = folder.stat()
    record = folder.parent / RECORD
    with record.open("w", encoding="utf-8") as file:
        json.dump({"schema": 1, "device": status.st_dev, "inode": status.st_ino}, file)
        file.flush()
        os.fsync(file.fileno())
    return folder


def remove(folder: Path) -> None:
    """Removes a folder created by `make`, with its content and its record. Idempotent."""
    shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():
        (folder.parent / RECORD).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # not empty, or gone: it stays because of its other content
            folder.parent.rmdir()


def remove_left_over(trial_directory: Path) -> list[Path]:
    """Removes what the loads of a killed trial left there; returns the removed folders.

    Only for a trial whose processes are known to be gone.
    """
    removed: list[Path] = []
    for record in sorted(trial_directory.glob(f"*/{RECORD}")):
        folder = record.parent / FOLDER
        if not _is_recorded(record, folder):
            continue
        remove(folder)
        removed.append(folder)
    return removed


def _is_recorded(record: Path, folder: Path) -> bool:
    try:
        identity = json.loads(record.read_text(encoding="utf-8"))
        status = folder.lstat()
        return bool(identity["device"] == status.st_dev and identity["inode"] == status.st_ino)
    except (OSError, ValueError, KeyError, TypeError):
        return False
