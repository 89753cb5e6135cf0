"""Asks a plug-in, of a middleware or of a runtime, what it is, in a process of its own: a library that cannot be
loaded, or that crashes while it is loaded, must not take perflab with it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from perflab.programs import ask

PROBE_TIMEOUT_S = 20.0
PROGRAM = Path(__file__).with_name("plugin_program.py")


@dataclass(frozen=True)
class Answer:
    """What a plug-in says of itself; `error` is one line where it cannot be used."""

    name: str | None = None
    summary: str | None = None
    version: str | None = None
    across_processes: bool = True
    error: str | None = None


def probe(library: os.PathLike[str]) -> Answer:
    """What the plug-in at that path says of itself. Raises Interrupted alone."""
    try:
        done = ask([sys.executable, "-I", "-S", os.fspath(PROGRAM), os.fspath(library)], limit_s=PROBE_TIMEOUT_S)
        return Answer(**json.loads(done.stdout))
    except subprocess.TimeoutExpired:
        return Answer(error=f"it did not answer within {PROBE_TIMEOUT_S:.0f} s")
    except OSError as error:
        return Answer(error=f"{sys.executable}, which would ask it, cannot be started: {error.strerror}")
    except (ValueError, TypeError):
        return Answer(error="it crashes when it is loaded")
