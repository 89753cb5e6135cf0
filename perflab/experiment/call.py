"""An experiment started by a call instead of a command line: `perflab.run`."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perflab import native as native_programs
from perflab.design.document import Written, with_options
from perflab.design.sweep import as_search, as_sweep
from perflab.errors import BadInput, Interrupted
from perflab.experiment.build import asked, named
from perflab.experiment.run import execute
from perflab.host import Host
from perflab.runs.display import Display
from perflab.runs.rundir import RunDirectory, check_output


def call(
    workload: Any, experiment: Mapping[str, Any], output: Path | None, display: Display, check: bool
) -> RunDirectory:
    """Runs it as `perflab run` would; returns the directory. Raises the errors documented for `perflab.run`
    (perflab/__init__.py)."""
    if threading.current_thread() is not threading.main_thread():
        raise BadInput(
            "perflab.run must be called from the main thread, because only there Ctrl-C can end a run in order"
        )
    if output is not None:
        check_output(output)
    written = with_options(_written(workload), experiment)
    if written.mapping.get("breaking_point"):
        written = as_search(written)
    elif experiment.get("sweep"):
        written = as_sweep(written)
    native = native_programs.find()
    made = asked(written, native, output=output, command_line=_again(workload, experiment))
    result = execute(made, native, Host(), display)
    if isinstance(result.error, Interrupted) or (check and result.error is not None):
        raise result.error
    return result.directory


def _written(workload: Any) -> Written:
    if isinstance(workload, Mapping):
        return Written({"workload": dict(workload)}, given=frozenset({"workload"}))
    words = [workload] if isinstance(workload, str | Path) else list(workload)
    return named([str(word) for word in words])


def _again(workload: Any, experiment: Mapping[str, Any]) -> tuple[str, ...]:
    """The command line for the same run, as stored in the manifest."""
    shown = str(workload) if isinstance(workload, Path) else workload
    words = [repr(shown), *(f"{key}={value!r}" for key, value in experiment.items())]
    return "python3", "-c", f"import perflab; perflab.run({', '.join(words)})"
