"""Queries plug-ins, of middlewares or of a runtime, each in its own process: a library that cannot be loaded, or that
crashes while loading, must not affect perflab.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from perflab.programs import ask

PROBE_TIMEOUT_S = 20
PROGRAM = Path(__file__).with_name("plugin_program.py")


@dataclass(frozen=True)
class Answer:
    """A plug-in's description of itself; `error` is one line if it cannot be used."""

    name: str | None = None
    summary: str | None = None
    version: str | None = None
    across_processes: bool = True
    instances: bool = False
    filters: bool = False
    libraries: Sequence[str] = field(default=(), compare=False)
    """Shared objects that were mapped with it, with the kernel's names; none for a runtime."""
    policies: Mapping[str, Sequence[str | None]] = field(default_factory=dict)
    error: str | None = None


def probe(libraries: Iterable[Path], environment: Mapping[str, str] | None = None) -> dict[Path, Answer]:
    """The descriptions of the plug-ins at these paths, loaded with these variables in addition to perflab's own.

    Raises only Interrupted.
    """
    paths = list(dict.fromkeys(libraries))
    if not paths:
        return {}
    program: list[str | Path] = [sys.executable, "-I", "-S", PROGRAM, str(PROBE_TIMEOUT_S), *paths]
    try:
        # The program ends loads that do not finish.
        done = ask(program, limit_s=2 * PROBE_TIMEOUT_S, environment=environment)
        return dict(zip(paths, (Answer(**said) for said in json.loads(done.stdout)), strict=True))
    except subprocess.TimeoutExpired:
        failed = Answer(error=f"it did not answer within {2 * PROBE_TIMEOUT_S} s")
    except OSError as error:
        failed = Answer(error=f"{sys.executable} cannot be started to load it: {error.strerror}")
    except (ValueError, TypeError):
        failed = Answer(error=f"{PROGRAM} returned no answer about it")
    return dict.fromkeys(paths, failed)
