"""`perflab compare`, and what results are called."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from made_run import MadeTrial, Stream, arrivals, make_run
from test_irobot_formats import DATA

from perflab.cli import main
from perflab.report.label import labels
from perflab.results.trial import Circumstances

Captured = pytest.CaptureFixture[str]

PROCESSES = {"mouth": ["talker"], "ear": ["listener"]}


def talk(latencies_us: Sequence[float], sent: int | None = None) -> Stream:
    count = len(latencies_us) if sent is None else sent
    return Stream("talker", "chat", "listener", 10, count, arrivals(latencies_us))


def compared(capsys: Captured, *arguments: str | Path) -> list[dict[str, Any]]:
    assert main(["compare", *map(str, arguments), "--json"]) == 0
    columns: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["columns"]
    return columns


def test_runs_stand_side_by_side_with_their_ratios_to_the_first(tmp_path: Path, capsys: Captured) -> None:
    one = make_run(tmp_path / "one", PROCESSES, [MadeTrial([talk([100, 200, 300], sent=4)])])
    two = make_run(tmp_path / "two", PROCESSES, [MadeTrial([talk([200, 400, 3000], sent=3)], cpu_ms=40)])
    first, second = compared(capsys, one, two)
    assert (first["label"], second["label"]) == ("one", "two")
    assert first["figures"]["latency_mean_ns"] == 200_000
    assert second["figures"]["latency_mean_ns"] == 1_200_000
    assert second["ratios"]["latency_mean_ns"] == 6
    assert (first["figures"]["lost"], second["figures"]["lost"], second["ratios"]["lost"]) == (1, 0, 0)
    assert (first["figures"]["late"], second["figures"]["late"], second["ratios"]["late"]) == (0, 1, None)
    assert second["ratios"]["cpu_percent"] == pytest.approx(2)
    assert first["figures"]["cpu_percent_of_machine"] == pytest.approx(first["figures"]["cpu_percent"] / 4)
    assert set(first["ratios"].values()) <= {1, None}


def test_results_of_one_run_are_called_by_what_they_differ_in(tmp_path: Path, capsys: Captured) -> None:
    trials = [
        MadeTrial([talk([100])], executor="events", ipc="on"),
        MadeTrial([talk([100])], executor="events", ipc="off"),
        MadeTrial([talk([100])], executor="inline", ipc="off"),
    ]
    run = make_run(tmp_path / "run", PROCESSES, trials)
    assert [c["label"] for c in compared(capsys, run)] == ["events, ipc on", "events, ipc off", "inline, ipc off"]


def test_extra_trials_do_not_enter(tmp_path: Path, capsys: Captured) -> None:
    trials = [MadeTrial([talk([100])], executor=executor) for executor in ("events", "inline", "single_threaded")]
    run = make_run(tmp_path / "run", PROCESSES, trials)
    path = run / "summary.json"
    summary = json.loads(path.read_text())
    (traced,) = (result for result in summary["results"] if result["executor"] == "inline")
    traced["purpose"] = "extra"
    path.write_text(json.dumps(summary))
    assert [c["label"] for c in compared(capsys, run)] == ["events", "single_threaded"]


def test_the_table_says_that_there_are_no_intervals(tmp_path: Path, capsys: Captured) -> None:
    one = make_run(tmp_path / "one", PROCESSES, [MadeTrial([talk([100, 300])])])
    two = make_run(tmp_path / "two", PROCESSES, [MadeTrial([talk([100, 100])])])
    assert main(["compare", str(one), str(two)]) == 0
    out = capsys.readouterr().out
    assert "without intervals: they do not show whether a difference is more than chance." in out
    lines = {line[:14].strip(): line.split() for line in out.splitlines()}
    assert lines["latency mean"] == ["latency", "mean", "200", "µs", "100", "µs", "0.50"]
    assert lines["delivered"] == ["delivered", "2", "2", "1.00"]
    assert "round trip p99" not in lines  # no service, no line


def test_a_narrow_terminal_gets_several_tables(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    trials = [MadeTrial([talk([100])], conditions=[f"c{n}"]) for n in range(5)]
    run = make_run(tmp_path / "run", PROCESSES, trials)
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["compare", str(run)]) == 0
    out = capsys.readouterr().out
    assert out.count("latency mean") > 1
    assert all(len(line) <= 60 for line in out.splitlines())
    for n in range(5):
        assert f"c{n}" in out


def test_long_names_stand_above_the_table(tmp_path: Path, capsys: Captured) -> None:
    trials = [
        MadeTrial([talk([100])], conditions=[name]) for name in ("short", "a_very_long_name_of_a_condition_indeed")
    ]
    run = make_run(tmp_path / "run", PROCESSES, trials)
    assert main(["compare", str(run)]) == 0
    out = capsys.readouterr().out
    assert "(2) a_very_long_name_of_a_condition_indeed\n" in out
    assert any(line.split() == ["(1)", "(2)", "ratio"] for line in out.splitlines())


def test_services_are_compared_by_the_slowest(tmp_path: Path, capsys: Captured) -> None:
    def asks(us: float) -> MadeTrial:
        slow = Stream("talker", "slow", "listener", 100, 2, arrivals([us, us], 100), service=True)
        quick = Stream("talker", "quick", "listener", 100, 2, arrivals([10, 10], 100), service=True)
        return MadeTrial([talk([100]), slow, quick])

    one = make_run(tmp_path / "one", PROCESSES, [asks(500)])
    two = make_run(tmp_path / "two", PROCESSES, [asks(1000)])
    columns = compared(capsys, one, two)
    assert columns[0]["figures"]["round_trip_max_ns"] == 500_000
    assert columns[1]["ratios"]["round_trip_max_ns"] == 2


def test_output_of_the_original_is_compared_too(tmp_path: Path, capsys: Captured) -> None:
    own = make_run(tmp_path / "own", PROCESSES, [MadeTrial([talk([100])])])
    columns = compared(capsys, own, DATA / "csv")
    assert columns[1]["figures"]["latency_p99_ns"] is None
    assert columns[1]["figures"]["late"] is None
    assert columns[1]["figures"]["cpu_percent_of_machine"] == pytest.approx(2.45038)
    assert main(["compare", str(own), str(DATA / "csv")]) == 0
    out = capsys.readouterr().out
    assert "Note: csv: it ran without --tracking on" in out
    assert "The durations differ" in out
    assert "The workloads differ." in out


def test_runs_whose_timers_differ_in_their_phase_are_not_compared_in_silence(tmp_path: Path, capsys: Captured) -> None:
    one = make_run(tmp_path / "one", PROCESSES, [MadeTrial([talk([100])], phase="aligned")])
    two = make_run(tmp_path / "two", PROCESSES, [MadeTrial([talk([100])], phase="as_created")])
    assert [column["phase"] for column in compared(capsys, one, two)] == ["aligned", "as_created"]
    assert main(["compare", str(one), str(two)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "one and two differ in phase of the timers: aligned and as_created" in said
    original = str(DATA / "csv")
    assert main(["compare", str(one), original, "--json"]) == 0
    assert [c["phase"] for c in json.loads(capsys.readouterr().out)["columns"]] == ["aligned", "as_created"]


def test_a_single_result_has_nothing_to_be_compared_with(tmp_path: Path, capsys: Captured) -> None:
    run = make_run(tmp_path / "run", PROCESSES, [MadeTrial([talk([100])])])
    assert main(["compare", str(run)]) == 2
    assert "nothing to compare it with" in capsys.readouterr().err


def test_what_was_no_success_is_said(tmp_path: Path, capsys: Captured) -> None:
    bad = MadeTrial([talk([100])], outcome="failed", final=False, ipc="on")
    run = make_run(tmp_path / "run", PROCESSES, [MadeTrial([talk([100])], ipc="off"), bad])
    assert main(["compare", str(run)]) == 0
    out = capsys.readouterr().out
    assert "Note: ipc on: no successful trial (1 failed: made so)" in out
    assert "losses at the end are unknown" in out


def test_results_without_figures_are_refused(tmp_path: Path, capsys: Captured) -> None:
    def nothing(ipc: str) -> MadeTrial:
        return MadeTrial([talk([1])], outcome="failed", final=False, checkpoint=False, rss_kb=(), ipc=ipc)

    run = make_run(tmp_path / "run", PROCESSES, [nothing("on"), nothing("off")])
    assert main(["compare", str(run)]) == 2
    assert f"nothing was recorded in {run}" in capsys.readouterr().err


def test_a_damaged_summary_is_said_and_made_anew(tmp_path: Path, capsys: Captured) -> None:
    run = make_run(tmp_path / "run", PROCESSES, [MadeTrial([talk([100])])])
    summary = json.loads((run / "summary.json").read_text())
    summary["results"][0]["totals"] = None
    (run / "summary.json").write_text(json.dumps(summary))
    assert main(["compare", str(run), str(DATA / "csv")]) == 0
    said = "results.0.totals: must be an object, not null"
    assert said in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("results", "runs", "expected"),
    [
        ([{"middleware": "a"}], None, ["a"]),
        ([{"middleware": None}], None, ["middleware not recorded"]),
        ([{"middleware": "a"}, {"middleware": "b"}], None, ["a", "b"]),
        ([{"middleware": "a", "ipc": "on"}, {"middleware": "a", "ipc": "off"}], ["r", "r"], ["ipc on", "ipc off"]),
        ([{"middleware": "a", "executor": None}, {"middleware": "a", "executor": "events"}], None,
         ["as in the graph", "events"]),
        ([{"middleware": "a", "conditions": ()}, {"middleware": "a", "conditions": ("x", "y")}], None,
         ["baseline", "x + y"]),
        ([{"middleware": "a"}, {"middleware": "a"}], ["r", "s"], ["r", "s"]),
        ([{"middleware": "a"}, {"middleware": "b"}, {"middleware": "a"}], ["r", "r", "s"], ["r: a", "r: b", "s: a"]),
        ([{"middleware": "a"}, {"middleware": None}], ["r", "s"], ["a", "s"]),
        ([{"middleware": "a", "duration_s": 5}, {"middleware": "a", "duration_s": 10}], ["r", "r"], ["5 s", "10 s"]),
        ([{"middleware": "a"}, {"middleware": "a"}], ["r", "r"], ["a #1", "a #2"]),
        ([{"middleware": "a", "pass_by": "unique"}, {"middleware": "a", "pass_by": "loaned"}], None,
         ["by unique", "by loaned"]),
    ],
)  # fmt: skip
def test_labels_hold_what_differs_and_nothing_else(
    results: list[dict[str, Any]], runs: list[str] | None, expected: list[str]
) -> None:
    assert labels([Circumstances(workload="w", **result) for result in results], runs) == expected


def test_labels_need_a_run_name_for_each_result() -> None:
    with pytest.raises(ValueError, match="1 run names for 2 results"):
        labels([Circumstances(workload="w", middleware="a")] * 2, ["r"])


def test_services_are_among_what_was_delivered_late_and_lost(tmp_path: Path, capsys: Captured) -> None:
    asks = Stream("talker", "add", "listener", 10, 12, arrivals([400] * 8 + [3000, 12_000]), service=True)
    one = make_run(tmp_path / "one", PROCESSES, [MadeTrial([talk([100, 2500], sent=3), asks])])
    two = make_run(tmp_path / "two", PROCESSES, [MadeTrial([asks])])
    both, services = (column["figures"] for column in compared(capsys, one, two))
    assert [both[key] for key in ("delivered", "late", "too_late", "lost")] == [12, 2, 1, 3]
    assert [services[key] for key in ("delivered", "late", "too_late", "lost")] == [10, 1, 1, 2]


def test_losses_that_are_not_known_are_not_0(tmp_path: Path, capsys: Captured) -> None:
    def killed(stream: Stream, ipc: str) -> MadeTrial:
        return MadeTrial([stream], outcome="failed", final=False, ipc=ipc)

    gap = Stream("talker", "chat", "listener", 10, 3, [a for a in arrivals([100] * 3) if a.number != 1])
    run = make_run(tmp_path / "run", PROCESSES, [killed(talk([100] * 3), "off"), killed(gap, "on")])
    nothing_known, at_least = compared(capsys, run)
    assert nothing_known["figures"]["lost"] is None
    assert at_least["figures"]["lost"] == 1


def test_counts_of_different_numbers_of_trials_are_means_of_a_trial(tmp_path: Path, capsys: Captured) -> None:
    one = make_run(tmp_path / "one", PROCESSES, [MadeTrial([talk([100, 200], sent=3)])] * 2)
    two = make_run(tmp_path / "two", PROCESSES, [MadeTrial([talk([100, 400], sent=3)])] * 3)
    first, second = compared(capsys, one, two)
    assert (first["trials_merged"], second["trials_merged"]) == (2, 3)
    assert (first["figures"]["delivered"], second["figures"]["delivered"]) == (2, 2)
    assert (first["figures"]["lost"], second["figures"]["lost"]) == (1, 1)
    assert (second["ratios"]["delivered"], second["ratios"]["latency_max_ns"]) == (1, None)
    assert second["ratios"]["latency_mean_ns"] == pytest.approx(250 / 150)
    assert main(["compare", str(one), str(two)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.split() == ["trials", "2", "3", "–"] for line in lines)
    assert any(line.split() == ["delivered", "per", "trial", "2", "2", "1.00"] for line in lines)
    assert any("counts are means over trials" in line for line in lines)


def test_equal_numbers_of_trials_keep_their_counts(tmp_path: Path, capsys: Captured) -> None:
    one = make_run(tmp_path / "one", PROCESSES, [MadeTrial([talk([100, 200])])] * 2)
    two = make_run(tmp_path / "two", PROCESSES, [MadeTrial([talk([100, 400])])] * 2)
    _, second = compared(capsys, one, two)
    assert second["figures"]["delivered"] == 4
    assert second["ratios"]["latency_max_ns"] == 2


def test_a_run_is_not_compared_with_itself(tmp_path: Path, capsys: Captured) -> None:
    run = make_run(tmp_path / "run", PROCESSES, [MadeTrial([talk([100])])])
    assert main(["compare", str(run), f"{run}/."]) == 2
    error = capsys.readouterr().err
    assert "run is named twice" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(("middleware", "said"), [("cyclonedds", True), ("virtual", False)])
def test_runs_are_sessions_unless_virtual(middleware: str, said: bool, tmp_path: Path, capsys: Captured) -> None:
    one, two = (
        make_run(tmp_path / name, PROCESSES, [MadeTrial([talk([100])], middleware=middleware)]) for name in ("a", "b")
    )
    assert main(["compare", str(one), str(two)]) == 0
    assert ("he runs are separate sessions" in capsys.readouterr().out) is said
