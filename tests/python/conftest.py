"""A native folder of test doubles, and the command line run as a user runs it."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support import HERE, SOURCE, build_plugin, run_here, two_processes

from perflab import waiting
from perflab.runs.rundir import TrialDirectory
from perflab.signals import Signals
from tests.said import finished

Perflab = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(autouse=True)
def unannounced(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine makes perflab say what it waits for; tests of that ask for it."""
    monkeypatch.setattr(waiting, "ANNOUNCE_AFTER_S", math.inf)


@pytest.fixture(scope="session")
def native_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """perflab-node and perflab-graph as test doubles, and plug-ins that can be asked what they are."""
    folder = tmp_path_factory.mktemp("native")
    for program, script in (("perflab-node", "fake_node.py"), ("perflab-graph", "fake_graph.py")):
        path = folder / program
        # Of most tests these starts are most of the time: -S -E leaves out what installed packages add to each.
        path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S -E "{HERE / script}" "$@"\n')
        path.chmod(0o755)
    (folder / "middleware").mkdir()
    for name, across in (("cyclonedds", "true"), ("shm", "false")):
        build_plugin(folder / "middleware" / f"{name}.so", name, across)
    # What watches over real-time threads of doubles is no double, where it is built.
    for program in ("perflab-guard", "perflab-watchdog"):
        if (built := Path(os.environ.get("PERFLAB_NATIVE", "")) / program).is_file():
            (folder / program).symlink_to(built)
    return folder


@pytest.fixture
def graph_file(tmp_path: Path) -> Path:
    path = tmp_path / "small.json"
    path.write_text(json.dumps(two_processes()))
    return path


@pytest.fixture(scope="session")
def environment(native_folder: Path) -> dict[str, str]:
    return {
        **{k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES", "PERFLAB_DEBUG")},
        "PERFLAB_NATIVE": str(native_folder),
        "PYTHONPATH": str(SOURCE),
    }


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """An empty folder for commands to run in."""
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def perflab(work: Path, environment: dict[str, str]) -> Perflab:
    """Runs `perflab ARGUMENTS...` in an empty folder with the native doubles, without a process of its own."""

    def run(*arguments: str | Path, **changes: str) -> subprocess.CompletedProcess[str]:
        return run_here([str(argument) for argument in arguments], work, {**environment, **changes})

    return run


@pytest.fixture
def perflab_process(work: Path, environment: dict[str, str]) -> Perflab:
    """The same as a process, for what it starts with, and for what shows only once it has ended."""

    def run(*arguments: str | Path, **changes: str) -> subprocess.CompletedProcess[str]:
        return finished(
            [sys.executable, "-m", "perflab", *map(str, arguments)],
            cwd=work,
            env={**environment, **changes},
            stdin=subprocess.DEVNULL,
        )

    return run


@pytest.fixture
def directory(tmp_path: Path) -> TrialDirectory:
    """The directory of one trial."""
    trial = TrialDirectory(tmp_path / "trial")
    trial.processes.mkdir(parents=True)
    return trial


@pytest.fixture
def signals() -> Iterator[Signals]:
    """SIGINT, SIGTERM and SIGHUP are noted while the test runs."""
    with Signals() as noted:
        yield noted
