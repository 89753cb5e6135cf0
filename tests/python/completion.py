"""The completions of a word, requested like typer's shell scripts do."""

from __future__ import annotations

import contextlib
import io
import os
from unittest import mock

from perflab.cli import main


def completed(*words: str) -> list[str]:
    """What the last of the words after `perflab` can become."""
    asked = {"_PERFLAB_COMPLETE": "complete_fish", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    out = io.StringIO()
    asked["_TYPER_COMPLETE_ARGS"] = " ".join(("perflab", *words))
    with mock.patch.dict(os.environ, asked), contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        main([])
    return [line for line in out.getvalue().splitlines() if line]
