"""The demo's traced trials say why messages were late, on a machine as it comes."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import polars as pl
import pytest

from perflab import native, tracer
from perflab.report.places import without_folders
from perflab.runs.traced import asked_of
from perflab.trace import open_trace
from perflab.trace.why import why
from perflab.trace.why_path import NO_HOLDER
from tests.said import finished

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 600
UNKNOWN_AT_MOST = 5  # percent of the time that late messages took

pytestmark = [pytest.mark.native, pytest.mark.alone]


def perflab(*words: str, **environment: str) -> None:
    ran = finished([sys.executable, "-m", "perflab", *words], cwd=ROOT, timeout=LIMIT_S, env=os.environ | environment)
    assert ran.returncode == 0, ran.stderr


def unknown_percent(trace: Path) -> float | None:
    """Of the time that late messages took; None where events are missing in the recording.

    Where switches had to be recovered and wake-ups cannot be, these are missing, too (docs/recording.md).
    By perf_event without the waits of threads that were moved before anything switched on the CPU: there no event says
    who had that.
    """
    recorded = json.loads((trace / "recording.json").read_text())["scheduler"]
    if recorded["recovered"] and recorded.get("recovered_wakeups") is None:
        return None
    with open_trace([trace]) as opened:
        if opened.facts["ledger"] or opened.facts["scheduler"]["contradictions"]:
            return None
        selection = asked_of(trace)
        assert selection is not None
        parts = why(opened, selection).section("parts").frame
    unknown = parts.filter(cause="unknown")
    if recorded["tracer"] == "perf_event":
        unknown = unknown.filter(pl.col("reason") != NO_HOLDER)
    return 100.0 * int(unknown["part_ns"].sum()) / int(parts["part_ns"].sum())


@pytest.mark.long
def test_of_complete_recordings_the_demo_says_why(tmp_path: Path) -> None:
    tracer.check(tracer.RecordingSettings(scheduler=tracer.AUTO), native.find())
    run = tmp_path / "run"
    perflab("run", "demo", "--middleware", "cyclonedds", "--trials", "1", "--output", str(run))
    assert json.loads((run / "manifest.json").read_text())["not_recorded"] == []
    traces = sorted((run / "trials").glob("*/trace"))
    assert len(traces) == 4, "one traced trial for each treatment"
    found = [unknown_percent(trace) for trace in traces]
    assert all(percent is None or percent < UNKNOWN_AT_MOST for percent in found), found


def test_without_rights_it_records_the_rest_and_says_what_grants_them_before_the_first_trial(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give up single rights")
    run = tmp_path / "run"
    lesser = ("setpriv", "--bounding-set=-sys_admin,-perfmon,-bpf", "--inh-caps=-all")
    words = ("run", "sierra_nevada", "--observer", "tracing:required=off", "--progress", "lines", "--time", "300ms")
    command = [*lesser, sys.executable, "-m", "perflab", *words, "--output", str(run)]
    ran = finished(command, cwd=ROOT, timeout=LIMIT_S)
    assert ran.returncode == 0, ran.stderr
    (missing,) = json.loads((run / "manifest.json").read_text())["not_recorded"]
    assert missing["rest"] == "tracing:scheduler=none"
    assert "sudo " in missing["reason"]
    said = f"only tracing:scheduler=none is recorded: {missing['reason']}"
    before, _, _ = ran.stderr.partition("[1/")
    assert said in before
    assert said in " ".join(ran.stdout.split())
    page = finished([sys.executable, "-m", "perflab", "report", str(run), "--markdown"], cwd=ROOT, timeout=LIMIT_S)
    # A report is passed on: it names no folder of this machine.
    assert without_folders(said, [str(run)])[1:] in page.stdout
