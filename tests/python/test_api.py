"""`import perflab`: an experiment run and opened from Python, and what it costs to import."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support import SOURCE, two_processes

import perflab
from perflab.errors import BadInput, TrialFailed
from perflab.results.outcome import FAILED, SUCCESS
from perflab.results.run import TABLES, RunData


@pytest.fixture(autouse=True)
def here(native_folder: Path, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFLAB_NATIVE", str(native_folder))
    monkeypatch.setenv("PERFLAB_COOL_DOWN", "0")
    monkeypatch.chdir(work)


def test_importing_it_loads_nothing_heavy() -> None:
    program = "import sys, perflab; print(*sorted({m.partition('.')[0] for m in sys.modules}))"
    found = subprocess.run([sys.executable, "-c", program], cwd=SOURCE, capture_output=True, text=True, check=True)
    assert not {"polars", "numpy", "pydantic", "typer", "rich", "scipy"} & set(found.stdout.split())


@pytest.fixture(scope="module")
def ran(native_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[RunData, Path, str]:
    """A run, the graph that it is of, and what was said on stderr meanwhile."""
    folder = tmp_path_factory.mktemp("ran")
    graph_file = folder / "small.json"
    graph_file.write_text(json.dumps(two_processes()))
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stderr(io.StringIO()) as said:
        patch.setenv("PERFLAB_NATIVE", str(native_folder))
        patch.chdir(folder)
        found = perflab.run(graph_file, time=0.2, trials=2, cool_down=0, name="called")
        return replace(found, path=found.path.resolve()), graph_file, said.getvalue()


@pytest.fixture
def run(ran: tuple[RunData, Path, str]) -> RunData:
    return ran[0]


def test_it_runs_and_opens_an_experiment(ran: tuple[RunData, Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    run, graph_file, said = ran
    assert said.startswith("Plan: 2 trials, 0.2 s measured in each")
    assert run.summary.valid
    assert run.manifest.name == "called"
    monkeypatch.chdir(run.path.parent.parent)
    assert run.summary == perflab.open(run.path).summary == perflab.open(run.path.name).summary
    assert [trial.outcome for trial in run.trials] == [SUCCESS, SUCCESS]
    program, option, text = run.manifest.command_line
    assert (program, option) == ("python3", "-c")
    words = f"{str(graph_file)!r}, time=0.2, trials=2, cool_down=0, name='called'"
    assert text == f"import perflab; perflab.run({words})"


def test_its_tables_are_frames_of_all_trials(run: RunData) -> None:
    for table in TABLES:
        frame = run.frame(table)
        assert frame.columns[:5] == ["trial", "block", "treatment", "middleware", "outcome"]
        assert frame.height == sum(getattr(trial, table).height for trial in run.trials)
    assert run.frame("edges").get_column("trial").unique().sort().to_list() == [1, 2]
    with pytest.raises(BadInput, match=r"no table 'edge'; did you mean edges\?"):
        run.frame("edge")


def test_each_trial_is_a_row_with_every_metric(run: RunData) -> None:
    frame = perflab.trials(run)
    assert frame.get_column("trial").to_list() == [1, 2]
    (result,) = run.summary.results
    sent = [trial.totals.received for trial in result.trials_detail]
    assert frame.sort("trial").get_column("received").to_list() == sent
    assert frame.get_column("dispatch.p99").is_null().all()  # not measured


def test_keys_replace_those_of_an_experiment_file(graph_file: Path, work: Path) -> None:
    file = work / "experiment.yaml"
    file.write_text(f"workload: {graph_file}\ntime: 100ms\ntrials: 7\n")
    run = perflab.run(file, trials=1, cool_down=0, progress="off")
    assert (run.manifest.settings.duration_ns, len(run.trials)) == (100_000_000, 1)


def test_a_trial_that_fails_is_an_error_or_a_result(graph_file: Path) -> None:
    asked: dict[str, Any] = {"time": 0.2, "cool_down": 0, "success": "received < 1", "progress": "off"}
    with pytest.raises(TrialFailed, match="not met"):
        perflab.run(graph_file, output="raised", **asked)
    assert perflab.open("raised").trials[0].outcome == FAILED
    assert perflab.run(graph_file, output="returned", check=False, **asked).trials[0].outcome == FAILED


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"trials": 0}, "--trials 0 must be at least 1"),
        ({"trails": 3}, r"no key 'trails'; did you mean trials\?"),
        ({"progress": "loud"}, "--progress 'loud' is not auto, lines, seconds or off"),
        ({"sweep": True}, "a sweep needs a factor"),
        ({"breaking_point": {"factor": "workload.depth"}}, "--low, --high missing"),
    ],
)
def test_what_is_wrong_is_said_in_one_line_and_nothing_is_written(
    graph_file: Path, work: Path, wrong: dict[str, object], complaint: str
) -> None:
    with pytest.raises(BadInput, match=complaint) as raised:
        perflab.run(graph_file, output="out", **wrong)  # type: ignore[arg-type]
    assert "\n" not in str(raised.value)
    assert not (work / "out").exists()


def test_only_the_main_thread_may_run(graph_file: Path) -> None:
    raised: list[BaseException] = []

    def called() -> None:
        try:
            perflab.run(graph_file)
        except BadInput as error:
            raised.append(error)

    thread = threading.Thread(target=called)
    thread.start()
    thread.join()
    assert "main thread" in str(raised[0])


def test_a_run_without_trials_has_frames_without_rows(run: RunData) -> None:
    assert replace(run, trials=()).frame("edges").equals(pl.DataFrame())
