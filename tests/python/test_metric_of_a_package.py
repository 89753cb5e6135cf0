"""A metric of another package, declared in one file, is wherever perflab's own are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from made_experiment import Effect, Made, read_results, write_run
from test_metrics import documented
from test_plugins import GROUPS, install

from perflab import plugins
from perflab.cli import main
from perflab.report.serve import page
from perflab.results.summary import Summary
from perflab.runs import collect
from perflab.statistics import curves
from perflab.statistics.metrics import METRICS, chosen, names, parse_criterion

Captured = pytest.CaptureFixture[str]
WORDS = "tail of latency"
ASKED = ("--metric", "tail")


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Installed for one test; its own folder is out of the way of runs."""
    (tmp_path / "site").mkdir()
    install(tmp_path / "site", {"perflab.metrics": GROUPS["perflab.metrics"]})
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setattr(METRICS, "_found", None)
    plugins._entry_points.cache_clear()  # what is installed is read once per process
    yield
    monkeypatch.setattr(METRICS, "_found", None)
    plugins._entry_points.cache_clear()


def run(path: Path, seed: int = 1) -> str:
    """A run that was asked for the metric."""
    made = Made({"cpu_load": Effect(latency=1.5)}, blocks=8, seed=seed).summary()
    summary = Summary(run=path.name, valid=True, results=read_results(made["results"]))
    wanted = chosen(["latency.p50,tail"])
    found = collect.with_findings(summary, wanted, alpha=0.05, margin=0.05, seed=0)
    return str(write_run(path, found))


def said(capsys: Captured, *arguments: str, status: int = 0) -> str:
    assert main(list(arguments)) == status
    return capsys.readouterr().out


def test_it_is_known_by_its_name() -> None:
    assert "tail" in names()
    assert parse_criterion("tail <= 3").metric is METRICS["tail"]
    assert "| `tail` | p99 of the latency over its p50 |  | factor |" in documented()


def test_show_and_the_comparison_of_a_run_have_it(tmp_path: Path, capsys: Captured) -> None:
    one = run(tmp_path / "one")
    assert WORDS in said(capsys, "show", one)
    compared = json.loads(said(capsys, "compare", one, *ASKED, "--json"))
    assert "tail" in json.dumps(compared)


def test_the_comparison_of_runs_and_the_check_have_it(tmp_path: Path, capsys: Captured) -> None:
    one, two = run(tmp_path / "one"), run(tmp_path / "two", seed=2)
    assert WORDS in said(capsys, "compare", one, two, *ASKED)
    checked = json.loads(said(capsys, "check", two, "--baseline", one, *ASKED, "--json"))
    assert {c["metric"] for c in checked["baseline"]["checks"]} == {"success", "tail"}


def test_report_paper_and_the_page_of_a_run_that_has_ended_have_it(tmp_path: Path, capsys: Captured) -> None:
    one = run(tmp_path / "one")
    said(capsys, "report", one, "--output", str(tmp_path / "page.html"))
    assert WORDS in (tmp_path / "page.html").read_text()
    said(capsys, "report", one, "--latex", str(tmp_path / "paper"))
    for file in ("results.tex", "values.tex"):
        assert "tail" in (tmp_path / "paper" / file).read_text()
    assert WORDS in page.report([one])


def test_curves_have_it() -> None:
    levels = {level: Effect(latency=1 + level / 100) for level in (10, 50, 90)}
    made = Made(factors={"workload.depth": levels}, blocks=6).summary()
    (curve,) = curves.of(read_results(made["results"]), {"workload.depth": [*levels]}, chosen(["tail"]))
    assert [*curve.metrics] == ["tail"]


def test_the_table_of_trials_has_it(tmp_path: Path) -> None:
    from perflab.report.tables.trials import TrialOf, measurements

    (result,) = read_results(Made(blocks=2).summary()["results"])
    table = measurements([TrialOf(t, result, "made", None) for t in result.trials_detail])
    assert "tail" in [column.name for column in table.columns]


def test_without_messages_it_has_a_reason() -> None:
    (result,) = read_results(Made(blocks=2).summary()["results"])
    trial = result.trials_detail[0]
    nothing = replace(trial, totals=replace(trial.totals, latency_ns=None))
    assert METRICS["tail"].read(nothing).reason == "not measured"
