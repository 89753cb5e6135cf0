"""`perflab check --baseline`: the regression gate, and its JUnit XML."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest
from made_experiment import Effect, Made, read_results, write_run
from made_experiment import result as made_result
from made_run import MadeTrial, Stream, arrivals, make_run

from perflab.cli import main
from perflab.cli.options import complete_metric
from perflab.report import junit
from perflab.report.junit import Case, Suite
from perflab.results.trial import Result
from perflab.statistics import metrics
from perflab.statistics.runs import gate
from perflab.statistics.selection import Match

Captured = pytest.CaptureFixture[str]
Json = dict[str, Any]

OLD = Made({"cpu_load": Effect(latency=1.5)}, blocks=8, seed=1)


def new(effect: Effect, **changes: Any) -> Made:
    """The same experiment, with other noise, in which every variant has this effect."""
    return replace(OLD, variants={"cyclonedds": effect}, seed=2, **changes)


def runs(tmp_path: Path, made: Made, old: Made = OLD, **manifest: Any) -> tuple[str, str]:
    baseline = write_run(tmp_path / "old", old.summary())
    return str(write_run(tmp_path / "new", made.summary(), **manifest)), str(baseline)


def check(paths: tuple[str, str], *arguments: str) -> int:
    return main(["check", paths[0], "--baseline", paths[1], *arguments])


def verdicts(capsys: Captured) -> dict[tuple[str, str], str]:
    document = json.loads(capsys.readouterr().out)["baseline"]
    return {(c["result"], c["metric"]): c["verdict"] for c in document["checks"]}


def test_a_run_that_is_as_before_passes(tmp_path: Path, capsys: Captured) -> None:
    assert check(runs(tmp_path, new(Effect())), "--json", "--strict") == 0
    found = verdicts(capsys)
    assert set(found.values()) == {"passed"}
    assert {metric for _, metric in found} == {
        "success",
        "latency.p50",
        "latency.p99",
        "response.p99",
        "lost",
        "cpu_percent",
    }
    assert {result for result, _ in found} == {"baseline", "cpu_load"}


def test_a_regression_beyond_the_margin_fails_and_is_named(tmp_path: Path, capsys: Captured) -> None:
    assert check(runs(tmp_path, new(Effect(latency=1.3))), "--metric", "latency.p99,cpu_percent") == 1
    captured = capsys.readouterr()
    assert captured.err == (
        "perflab: 2 of 6 figures are worse than in old: baseline latency.p99, cpu_load latency.p99\n"
    )
    line = next(line for line in captured.out.splitlines() if line.startswith("latency p99"))
    assert "failed" in line
    assert "worse by more than 5 %: 1.28x [1.26, 1.31]" in line


def test_a_regression_within_the_margin_passes(tmp_path: Path, capsys: Captured) -> None:
    paths = runs(tmp_path, new(Effect(latency=1.03)))
    assert check(paths, "--metric", "latency.p99", "--margin", "20%", "--json", "--strict") == 0
    assert set(verdicts(capsys).values()) == {"passed"}
    assert check(paths, "--metric", "latency.p99", "--margin", "0.1%") == 1


def test_an_improvement_passes(tmp_path: Path, capsys: Captured) -> None:
    assert (
        check(
            runs(tmp_path, new(Effect(latency=0.5, cpu=0.5))),
            "--metric",
            "latency.p99,cpu_percent",
            "--json",
            "--strict",
        )
        == 0
    )
    assert set(verdicts(capsys).values()) == {"passed"}


def test_a_margin_is_not_taken_of_values_below_0() -> None:
    """1.05 times -10 is less than -10: the same values would be "worse by more than 5 %"."""
    metric = metrics.named("latency.mean")

    def result(values: list[float]) -> Result:
        details = [
            {"trial": i, "order": i, "outcome": "success", "totals": {"latency_ns": {"count": 10, "mean": v}}}
            for i, v in enumerate(values, start=1)
        ]
        (made,) = read_results([made_result([{**d, "resources": {}} for d in details])])
        return made

    for offset, verdict in ((-10.0, "undecided"), (100.0, "passed")):
        values = [offset + i / 100 for i in range(12)]
        _, found = gate([Match(result(values), result(values))], [metric], ("old", "new"))
        assert (found.metric, found.verdict) == ("latency.mean", verdict)
        if verdict == "undecided":
            assert found.reason == "values below 0, for which a margin of 5 % is meaningless"


def test_any_shown_increase_of_losses_fails(tmp_path: Path, capsys: Captured) -> None:
    assert check(runs(tmp_path, new(Effect(lost=1))), "--metric", "lost", "--json") == 1
    assert verdicts(capsys)["baseline", "lost"] == "failed"


def test_what_scatters_is_undecided_passes_with_a_warning_and_fails_if_strict(tmp_path: Path, capsys: Captured) -> None:
    paths = runs(tmp_path, new(Effect(), spread=0.5))
    assert check(paths, "--metric", "latency.p99") == 0
    out = capsys.readouterr().out
    assert "Warning: 2 of 4 figures are undecided" in out
    assert "with --strict they fail" in out
    assert check(paths, "--metric", "latency.p99", "--strict") == 1
    assert "2 of 4 figures are undecided (--strict)" in capsys.readouterr().err


def test_one_trial_each_is_not_enough_and_says_so(tmp_path: Path, capsys: Captured) -> None:
    one = replace(OLD, treatments={}, blocks=1)
    paths = runs(tmp_path, replace(one, variants={"cyclonedds": Effect(latency=50)}, seed=2), one)
    assert check(paths) == 0
    assert "too few trials (1 and 1" in capsys.readouterr().out
    assert check(paths, "--strict") == 1


def with_key_figure(made: Made, times: float) -> Json:
    """Every trial says how late a hot path was, which is its latency so many times."""
    path = {
        "kind": "path",
        "words": "w",
        "from": ["a"],
        "to": "b",
        "edges": [],
        "possible": 9,
        "arrived": 9,
        "missed": 0,
    }
    summary = made.summary()
    for result in summary["results"]:
        for trial in result["trials_detail"]:
            latency = trial["totals"]["latency_ns"]
            late = {key: ns if ns is None or key == "count" else ns * times for key, ns in latency.items()}
            trial["key_figures"] = {"hot_path": {**path, "response_ns": late}}
        result["key_figures"] = {"hot_path": {**path, "response_ns": None}}
    return summary


def test_a_key_figure_is_gated_as_any_other(tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    baseline = str(write_run(tmp_path / "old", with_key_figure(OLD, 1)))
    slower = str(write_run(tmp_path / "new", with_key_figure(new(Effect()), 2)))
    assert check((slower, baseline), "--metric", "hot_path.p99,lost", "--json") == 1
    found = verdicts(capsys)
    assert {metric: v for (result, metric), v in found.items() if result == "baseline"} == {
        "success": "passed",
        "hot_path.p99": "failed",
        "lost": "passed",
    }
    assert check((slower, baseline), "--metric", "cold_path.p99") == 2
    assert capsys.readouterr().err.splitlines() == [
        "perflab: --metric: no metric 'cold_path.p99'; did you mean hot_path.p99?"
    ]
    context = SimpleNamespace(params={"run": slower, "baseline": str(tmp_path / "missing")})
    assert complete_metric(context, "hot_path.p5") == ["hot_path.p50"]  # type: ignore[arg-type]
    # By its name below runs/, too.
    (tmp_path / "runs").mkdir()
    Path(slower).rename(tmp_path / "runs" / "named")
    monkeypatch.chdir(tmp_path)
    context = SimpleNamespace(params={"runs": ("named",)})
    assert complete_metric(context, "hot_path.p5") == ["hot_path.p50"]  # type: ignore[arg-type]


def test_fewer_successes_fail(tmp_path: Path, capsys: Captured) -> None:
    summary = new(Effect()).summary()
    for t in summary["results"][0]["trials_detail"]:
        t["outcome"], t["reason"] = "failed", "lost 3"
    summary["results"][0]["outcomes"] = {"success": 0, "failed": 16, "invalid": 0, "harness_error": 0}
    paths = str(write_run(tmp_path / "new", summary)), str(write_run(tmp_path / "old", OLD.summary()))
    assert check(paths, "--metric", "latency.p99", "--json") == 1
    found = verdicts(capsys)
    assert found["baseline", "success"] == "failed"
    assert found["baseline", "latency.p99"] == "passed"  # they were measured all the same


def test_a_result_that_is_gone_is_a_warning(tmp_path: Path, capsys: Captured) -> None:
    paths = runs(tmp_path, new(Effect(), treatments={}))
    assert check(paths, "--metric", "latency.p99") == 0
    assert "Warning: cyclonedds, cpu_load is only in old" in capsys.readouterr().out
    assert check(paths, "--metric", "latency.p99", "--strict") == 1


def test_another_machine_is_a_warning(tmp_path: Path, capsys: Captured) -> None:
    paths = runs(tmp_path, new(Effect()), host={"cpu_model": "Other CPU", "cpus_online": "0-3"})
    assert check(paths, "--metric", "latency.p99") == 0
    assert "Warning: another machine: cpu_model is Other CPU, in old Test CPU" in capsys.readouterr().out


def test_other_conditions_of_the_same_name_are_not_matched(tmp_path: Path, capsys: Captured) -> None:
    made = new(Effect(), condition_parameters={"cpu_load": {"load": 50}})
    assert check(runs(tmp_path, made), "--metric", "latency.p99", "--json") == 0
    assert {result for result, _ in verdicts(capsys)} == {"cyclonedds"}


@pytest.mark.parametrize(
    ("key", "value", "complaint"),
    [
        ("duration_s", 10.0, "the duration of a trial is 10 s, in the baseline 2 s"),
        ("workload", "else", "the workload is else"),
    ],
)
def test_runs_of_something_else_are_refused(
    tmp_path: Path, capsys: Captured, key: str, value: Any, complaint: str
) -> None:
    made, old = (replace(m, treatments={}) for m in (new(Effect()), OLD))
    summary = made.summary()
    summary["results"][0][key] = value
    paths = str(write_run(tmp_path / "new", summary)), str(write_run(tmp_path / "old", old.summary()))
    assert check(paths) == 2
    error = capsys.readouterr().err
    assert complaint in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--margin", "none"], "--margin 'none' is not a percentage"),
        (["--margin", "-5%"], "--margin -5% must be more than 0%"),
        (["--alpha", "0.9"], "--alpha 0.9 must be less than 0.5"),
        (["--metric", "latency.p98"], "--metric: no metric 'latency.p98'; did you mean"),
        (["--baseline", "nowhere"], "no run 'nowhere'"),
        (["--junit", "missing/folder/x.xml"], "--junit missing/folder/x.xml cannot be written"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, capsys: Captured, arguments: list[str], complaint: str) -> None:
    paths = runs(tmp_path, replace(new(Effect()), treatments={}, blocks=1), replace(OLD, treatments={}, blocks=1))
    assert check(paths, *arguments) == 2
    captured = capsys.readouterr()
    assert complaint in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_nothing_to_check_against_and_the_run_itself_are_refused(tmp_path: Path, capsys: Captured) -> None:
    run = str(write_run(tmp_path / "run", replace(OLD, treatments={}, blocks=1).summary()))
    assert main(["check", run]) == 2
    assert "give --target FILE, --baseline RUN, or both" in capsys.readouterr().err
    assert main(["check", run, "--baseline", run]) == 2
    assert "is the run itself" in capsys.readouterr().err


def test_a_damaged_run_is_one_line(tmp_path: Path, capsys: Captured) -> None:
    summary = replace(OLD, treatments={}, blocks=2).summary()
    paths = runs(tmp_path, replace(OLD, treatments={}, blocks=2))
    del summary["results"][0]["trials_detail"]
    (tmp_path / "new" / "summary.json").write_text(json.dumps(summary))
    assert check(paths) == 2
    error = capsys.readouterr().err
    assert "is damaged, or was written by another version of perflab: it lacks results.0.trials_detail" in error
    assert error.count("\n") == 1


def test_junit_holds_every_verdict(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "report.xml"
    paths = runs(tmp_path, new(Effect(latency=1.5)))
    assert check(paths, "--metric", "latency.p99,cpu_percent", "--junit", str(file)) == 1
    capsys.readouterr()
    root = ElementTree.parse(file).getroot()
    assert root.tag == "testsuites"
    (suite,) = root
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("6", "2", "0")
    cases = {(c.get("classname"), c.get("name")): c for c in suite.iter("testcase")}
    failure = cases["cpu_load", "latency.p99"].find("failure")
    assert failure is not None
    assert "worse by more than 5 %" in str(failure.get("message"))
    assert cases["cpu_load", "cpu_percent"].find("failure") is None
    assert "in old" in str(cases["baseline", "success"].findtext("system-out"))
    assert {p.get("name"): p.get("value") for p in suite.iter("property")} == {
        "run": "new", "baseline": "old", "margin": "5 %",
    }  # fmt: skip


def test_junit_shows_what_is_undecided_as_skipped_or_if_strict_as_failed(tmp_path: Path) -> None:
    file = tmp_path / "report.xml"
    paths = runs(tmp_path, new(Effect(), spread=0.5, treatments={}), replace(OLD, treatments={}))
    for arguments, expected in (((), ("0", "1")), (("--strict",), ("1", "0"))):
        check(paths, "--metric", "latency.p99", "--junit", str(file), *arguments)
        suite = ElementTree.parse(file).getroot()[0]
        assert (suite.get("failures"), suite.get("skipped")) == expected


def test_targets_have_junit_too_and_both_can_be_asked_for(tmp_path: Path, capsys: Captured) -> None:
    chat = Stream("talker", "chat", "listener", 10, 100, arrivals([100] * 97 + [2500, 2600, 11_000]))
    paths = [
        str(make_run(tmp_path / name, {"mouth": ["talker"], "ear": ["listener"]}, [MadeTrial([chat])]))
        for name in ("new", "old")
    ]
    target, file = tmp_path / "t.json", tmp_path / "report.xml"
    target.write_text(json.dumps({"latency_total": {"late_perc": 1.9, "lost_perc": 50}}))
    assert main(["check", paths[0], "--target", str(target), "--baseline", paths[1], "--junit", str(file)]) == 1
    captured = capsys.readouterr()
    assert captured.err == "perflab: 1 of 2 targets not met: late_perc missed\n"
    assert ", against old" in captured.out
    targets, baseline = ElementTree.parse(file).getroot()
    assert (targets.get("name"), targets.get("tests"), targets.get("failures")) == ("target t.json", "2", "1")
    assert baseline.get("name") == "baseline old"


def test_junit_copes_with_what_xml_cannot_hold(tmp_path: Path) -> None:
    file = tmp_path / "x.xml"
    junit.write(file, "a\x00b", [Suite("<s> & \x1b", [Case("n\ud800", "g", failure="a < b\x07", output="π ]]>")])])
    root = ElementTree.parse(file).getroot()
    assert root.get("name") == "a\ufffdb"
    case = next(root.iter("testcase"))
    assert case.get("name") == "n\ufffd"
    assert case.findtext("failure") == "a < b\ufffd"
    assert case.findtext("system-out") == "π ]]>"


def test_junit_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "x.xml"
    file.write_text("before")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Exception, match="cannot be written: No space left"):
        junit.write(file, "n", [])
    assert file.read_text() == "before"
    assert list(tmp_path.iterdir()) == [file]
