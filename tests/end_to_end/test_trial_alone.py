"""A trial is a value: from the plan in its folder another process runs it, and records the same."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.conftest import SOURCE, TIMEOUT_S, Run, environment

# Which process it was, when it lived, and what reading the clock cost it.
_OF_THE_PROCESS = re.compile(rb'"(pid|started_ns|wall_ns|clock_cost_ns)":\d+')
_INSTANT = re.compile(rb'"(at_ns|intended_ns|max_at_ns|measured_from_ns|measured_until_ns)":(\d+)')
# Records with instants of virtual time, which begins at the start; those of all others are the host's.
_VIRTUAL = ("start", "checkpoint", "progress")


def without_the_host(records: Path) -> list[bytes]:
    """The lines of a process's records, with instants from the start on, and without what is of the process itself."""
    lines = records.read_bytes().splitlines()
    start_ns = next(record["at_ns"] for line in lines if (record := json.loads(line))["type"] == "start")

    def from_start(instant: re.Match[bytes]) -> bytes:
        return b'"%b":%d' % (instant[1], int(instant[2]) - start_ns)

    told = []
    for line in lines:
        virtual = json.loads(line)["type"] in _VIRTUAL
        told.append(_OF_THE_PROCESS.sub(b"", _INSTANT.sub(from_start if virtual else b"", line)))
    return told


def alone(given: Path, into: Path) -> dict[str, Any]:
    program = Path(__file__).with_name("trial_alone.py")
    done = subprocess.run(
        [sys.executable, program, given, into],
        cwd=into.parent,
        env=environment(PYTHONPATH=str(SOURCE)),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    "options",
    [
        ("--condition", "message_flood:publishers=2,rate=50"),
        ("--warmup", "0.2", "--seed", "7", "--middleware-option", "loss=0.1", "--trials", "2"),
    ],
)
def test_another_process_records_the_same(run: Run, tmp_path: Path, pingpong: Path, options: tuple[str, ...]) -> None:
    """Byte for byte on virtual, where nothing but the plan decides what happens."""
    done = run("run", "-q", "-o", "run", "--time", "1", "--middleware", "virtual", *options, pingpong)
    assert done.returncode == 0, done.stderr
    trials = sorted((tmp_path / "run" / "trials").iterdir())
    for trial in trials:
        again = alone(trial, tmp_path / trial.name)
        kept = json.loads((trial / "trial.json").read_text(encoding="utf-8"))
        assert {key: kept[key] for key in again} == again
        assert again["outcome"] == "success"
        (records,) = (trial / "processes").glob("*.jsonl")
        before = without_the_host(records)
        assert b'"type":"checkpoint"' in b"".join(before)
        assert without_the_host(tmp_path / trial.name / "processes" / records.name) == before
    # What is compared tells trials apart that differ in their graph, or in their seed alone.
    assert len({b"".join(without_the_host(next((t / "processes").glob("*.jsonl")))) for t in trials}) > 1


def test_a_command_runs_from_its_plan_wherever_that_is_read(run: Run, tmp_path: Path) -> None:
    (tmp_path / "say").write_text("#!/bin/sh\necho $WORD $PWD\n", encoding="utf-8")
    (tmp_path / "say").chmod(0o755)
    done = run("run", "-q", "-o", "run", "--time", "5", "--ends", "itself", "--tracing", "off", "--environment",
               "WORD=hello", "--", "./say")  # fmt: skip
    assert done.returncode == 0, done.stderr
    (trial,) = (tmp_path / "run" / "trials").iterdir()
    (tmp_path / "elsewhere").mkdir()
    again = alone(trial, tmp_path / "elsewhere" / "again")
    assert again["outcome"] == "success", again
    logs = [(folder / "processes" / "say.log").read_text() for folder in (trial, tmp_path / "elsewhere" / "again")]
    assert logs == [f"hello {tmp_path}\n"] * 2
