"""Other programs: their paths, and their output."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from perflab.errors import Unavailable
from perflab.waiting import STEP_S, Wait

# A user's PATH often lacks the administrator's program folders.
ADMINISTRATORS_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")
NAMED_BY_LETTERS = 80  # of a command, in the message that perflab waits for it


def which(program: str) -> Path | None:
    """The path of a program, including the administrator's."""
    folders = [os.environ.get("PATH", os.defpath), *ADMINISTRATORS_FOLDERS]
    path = shutil.which(program, path=os.pathsep.join(folders))
    return None if path is None else Path(path)


def find(program: str, install: str) -> Path:
    """Likewise. Raises Unavailable with the command that installs it, e.g. "apt-get install iproute2"."""
    path = which(program)
    if path is None:
        raise Unavailable(f"{program} is not installed; install it with: {install}")
    return path


@contextlib.contextmanager
def _read_by_it(told: str | None) -> Iterator[Any]:
    if told is None:
        yield subprocess.DEVNULL
        return
    with tempfile.TemporaryFile() as file:
        file.write(told.encode())
        file.seek(0)
        yield file


def ask(
    command: Sequence[str | os.PathLike[str]],
    *,
    limit_s: float,
    environment: Mapping[str, str] | None = None,
    errors: str = "replace",
    told: str | None = None,
) -> subprocess.CompletedProcess[str]:
    """Runs a program until it ends; a signal ends the wait for it, and the program.

    `environment` is added to perflab's; `told` is the program's input. Raises OSError, subprocess.TimeoutExpired,
    Interrupted.
    """
    words = [os.fspath(word) for word in command]
    named = textwrap.shorten(" ".join([Path(words[0]).name, *words[1:]]), NAMED_BY_LETTERS, placeholder=" …")
    wait = Wait(f"`{named}`", limit_s)
    # From a file: a pipe must be filled while waiting, and Python stops filling it after the first step of the wait.
    with (
        _read_by_it(told) as stdin,
        subprocess.Popen(
            words,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors=errors,
            env=None if environment is None else {**os.environ, **environment},
        ) as program,
    ):
        try:
            while True:
                try:
                    output, complaint = program.communicate(timeout=STEP_S)
                except subprocess.TimeoutExpired:
                    wait.look()
                    if wait.is_over:
                        raise subprocess.TimeoutExpired(words, limit_s) from None
                else:
                    return subprocess.CompletedProcess(words, program.returncode, output, complaint)
        except BaseException:
            program.kill()
            raise
