"""`perflab check`: verdicts on targets, and the figures beside them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from made_run import MadeTrial, Stream, arrivals, make_run
from support import SOURCE
from test_irobot_formats import DATA

from perflab import catalog
from perflab.cli import main

Captured = pytest.CaptureFixture[str]

PROCESSES = {"mouth": ["talker"], "ear": ["listener"]}


def talk(latencies_us: Sequence[float], sent: int | None = None) -> Stream:
    count = len(latencies_us) if sent is None else sent
    return Stream("talker", "chat", "listener", 10, count, arrivals(latencies_us))


def target(path: Path, **document: Any) -> Path:
    path.write_text(json.dumps(document))
    return path


def made(path: Path, **changes: Any) -> Path:
    trial = MadeTrial([talk([100] * 97 + [2500, 2600, 11_000], sent=110)], **changes)
    return make_run(path, PROCESSES, [trial])


def check(run: Path, wanted: Path | str, *arguments: str) -> int:
    return main(["check", str(run), "--target", str(wanted), *arguments])


def figures(capsys: Captured) -> dict[str, Any]:
    document = json.loads(capsys.readouterr().out)
    return {figure["key"]: figure for figure in document["results"][0]["figures"]}


def test_every_figure_is_measured_in_the_unit_of_the_original(tmp_path: Path, capsys: Captured) -> None:
    wanted = target(
        tmp_path / "t.json",
        resources={"cpu[%]": 15, "rss[KB]": 10_000},
        latency_total={
            "mean[us]": 1000, "late[#]": 2, "late[%]": 2, "too_late[#]": 1, "too_late[%]": 1, "lost[#]": 10,
            "lost[%]": 9.1,
        },
    )  # fmt: skip
    assert check(made(tmp_path / "run"), wanted, "--json") == 0
    found = figures(capsys)
    measured = {key: figure["measured"] for key, figure in found.items()}
    assert measured["late_perc"] == 2
    assert measured["too_late_perc"] == 1
    assert measured["lost_msgs"] == 10
    assert measured["lost_perc"] == pytest.approx(100 * 10 / 110)
    assert measured["mean_us"] == pytest.approx((97 * 100 + 2500 + 2600 + 11_000) / 100)
    # 20 ms of 500 ms in each of two processes, on 4 CPUs
    assert measured["cpu_perc"] == pytest.approx(2)
    assert found["cpu_perc"]["beside"]["cpu_percent_of_one_cpu"] == pytest.approx(8)
    assert measured["rss_KB"] == 7000  # the peak, of the largest process
    assert found["rss_KB"]["beside"] == {"rss_kb_mean": 6125, "rss_kb_last": 6500}
    assert {figure["verdict"] for figure in found.values()} == {"met"}


def test_memory_beside_a_target_is_of_the_trials_whose_peak_is_judged(tmp_path: Path, capsys: Captured) -> None:
    """What missed a criterion was measured, and the peak is of it too; what ended early is not in either."""
    trials = [
        MadeTrial([talk([100] * 10)]),
        MadeTrial([talk([100] * 10)], missed="late_share < 1 %", rss_kb=(9000, 9000, 9000, 9000)),
        MadeTrial([talk([100] * 10)], outcome="failed", rss_kb=(50_000,) * 4),
    ]
    run = make_run(tmp_path / "run", PROCESSES, trials)
    assert check(run, target(tmp_path / "t.json", resources={"rss[KB]": 10_000}), "--json") == 0
    (rss,) = figures(capsys).values()
    assert rss["measured"] == 9000
    assert rss["beside"] == {"rss_kb_mean": (6125 + 9000) / 2, "rss_kb_last": (6500 + 9000) / 2}


def test_a_figure_above_its_bound_is_a_miss_and_ends_with_1(tmp_path: Path, capsys: Captured) -> None:
    wanted = target(tmp_path / "t.json", latency_total={"late_perc": 1.9, "lost_perc": 50})
    assert check(made(tmp_path / "run"), wanted) == 1
    captured = capsys.readouterr()
    assert captured.err == "perflab: 1 of 2 targets not met: late_perc missed\n"
    late, lost = (line.split() for line in captured.out.splitlines() if "% of" in line)
    assert late == ["late", "%", "of", "received", "1.9", "2", "missed"]
    assert lost[-1] == "met"


def test_a_bound_that_is_just_reached_is_met(tmp_path: Path) -> None:
    assert check(made(tmp_path / "run"), target(tmp_path / "t.json", latency_total={"late_perc": 2})) == 0


def test_what_was_not_measured_is_a_miss(tmp_path: Path, capsys: Captured) -> None:
    run = made(tmp_path / "run", rss_kb=())
    wanted = target(tmp_path / "t.json", resources={"cpu_perc": 100, "rss_KB": 1e9})
    assert check(run, wanted, "--json") == 1
    captured = capsys.readouterr()
    found = json.loads(captured.out)["results"][0]["figures"]
    assert [(f["measured"], f["verdict"]) for f in found] == [(None, "not measured")] * 2
    assert "cpu_perc not measured, rss_KB not measured" in captured.err


def test_losses_of_a_run_that_was_cut_off_are_not_measured(tmp_path: Path, capsys: Captured) -> None:
    run = made(tmp_path / "run", final=False, outcome="failed")
    assert check(run, target(tmp_path / "t.json", latency_total={"lost_perc": 100}), "--json") == 1
    document = json.loads(capsys.readouterr().out)
    assert document["results"][0]["figures"][0]["measured"] is None
    assert any("not every process wrote its last record" in note for note in document["notes"])
    assert any("no successful trial (1 failed: made so)" in note for note in document["notes"])


def test_resources_are_those_of_the_process_that_the_target_names(tmp_path: Path, capsys: Captured) -> None:
    wanted = target(tmp_path / "t.json", topology_file="ear.json", resources={"cpu_perc": 15})
    assert check(made(tmp_path / "run"), wanted, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["results"][0]["processes"] == ["ear"]
    assert document["results"][0]["figures"][0]["measured"] == pytest.approx(1)
    assert "the target is for ear, but the run measured made" in document["notes"]


def test_a_target_of_another_workload_is_refused(tmp_path: Path, capsys: Captured) -> None:
    wanted = target(tmp_path / "t.json", topology_file="topology/nose.json", resources={"cpu_perc": 100})
    assert check(made(tmp_path / "run"), wanted) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == (f"perflab: --target {wanted} is for nose, but run measured made; check a run of nose\n")
    assert (
        check(tmp_path / "run", target(tmp_path / "m.json", topology_file="made.json", resources={"cpu_perc": 99})) == 0
    )


@pytest.mark.parametrize(
    "option", [("--strict",), ("--margin", "5%"), ("--metric", "latency.p99"), ("--alpha", "0.05")], ids=lambda o: o[0]
)
def test_what_says_how_to_compare_runs_is_refused_without_a_baseline(
    tmp_path: Path, capsys: Captured, option: tuple[str, ...]
) -> None:
    wanted = target(tmp_path / "t.json", resources={"cpu_perc": 100})
    assert check(made(tmp_path / "run"), wanted, *option) == 2
    err = capsys.readouterr().err
    assert err == (
        f"perflab: {option[0]} applies to a comparison with an earlier run; add --baseline RUN, or leave it out\n"
    )


def test_another_machine_and_other_thresholds_are_said(tmp_path: Path, capsys: Captured) -> None:
    wanted = target(
        tmp_path / "t.json",
        platform="rpi3 b 1.2",
        additional_options="-t 600 --late-percentage 20 --too-late-absolute 40000",
        latency_total={"late_perc": 100},
    )
    assert check(made(tmp_path / "run"), wanted) == 0
    out = capsys.readouterr().out
    assert "Note: the target is for rpi3 b 1.2, but this was measured on Test CPU, x86_64, 4 CPUs" in out
    assert "Note: the target asks for --too-late-absolute 40000 (was 50000)" in out
    assert (
        check(tmp_path / "run", target(tmp_path / "u.json", platform="test cpu", latency_total={"late_perc": 9})) == 0
    )
    assert "Note" not in capsys.readouterr().out


def test_another_phase_than_that_of_the_original_is_said(tmp_path: Path, capsys: Captured) -> None:
    wanted = target(tmp_path / "t.json", latency_total={"late_perc": 100})
    for phase, said in (("aligned", True), ("as_created", False), (None, False)):
        run = make_run(tmp_path / str(phase), PROCESSES, [MadeTrial([talk([100])], phase=phase)])
        assert check(run, wanted) == 0
        note = "Note: irobot_benchmark's timers have the phase as_created; these had aligned"
        assert (note in capsys.readouterr().out) is said, phase


def test_every_result_of_a_run_is_checked(tmp_path: Path, capsys: Captured) -> None:
    trials = [MadeTrial([talk([100] * 10)], ipc="on"), MadeTrial([talk([100] * 9 + [2500])], ipc="off")]
    run = make_run(tmp_path / "run", PROCESSES, trials)
    assert check(run, target(tmp_path / "t.json", latency_total={"late_perc": 1.9}), "--json") == 1
    captured = capsys.readouterr()
    results = json.loads(captured.out)["results"]
    assert [(r["label"], r["met"]) for r in results] == [("ipc on", True), ("ipc off", False)]
    assert "1 of 2 targets not met" in captured.err


def test_output_of_the_original_is_checked_too(tmp_path: Path, capsys: Captured) -> None:
    wanted = target(
        tmp_path / "t.json",
        resources={"cpu[%]": 60, "rss[KB]": 60_000},
        latency_total={"late[%]": 1.9, "too_late[%]": 0.1, "lost[%]": 0.0},
    )
    assert check(DATA / "legacy", wanted, "--json") == 1
    found = figures(capsys)
    assert found["cpu_perc"]["measured"] == 50
    assert found["rss_KB"]["measured"] == 55_496
    assert found["late_perc"]["measured"] == pytest.approx(0.1818, abs=1e-4)
    assert found["lost_perc"]["measured"] == pytest.approx(0.04542, abs=1e-4)
    assert [k for k, f in found.items() if f["verdict"] != "met"] == ["lost_perc"]


def test_targets_of_the_catalog_are_known_by_name(tmp_path: Path, capsys: Captured) -> None:
    assert [e.name for e in catalog.targets()] == ["mont_blanc_rpi3", "sierra_nevada_rpi3"]
    trial = MadeTrial([talk([100] * 97 + [2500, 2600, 11_000], sent=110)])
    run = make_run(tmp_path / "run", PROCESSES, [trial], workload="sierra_nevada")
    assert check(run, "sierra_nevada_rpi3", "--json") == 1
    found = figures(capsys)
    assert {key: figure["target"] for key, figure in found.items()} == {
        "cpu_perc": 15, "rss_KB": 10240, "late_perc": 1.9, "too_late_perc": 0.1, "lost_perc": 0,
    }  # fmt: skip
    assert main(["list", "targets"]) == 0
    out = capsys.readouterr().out
    assert "mont_blanc_rpi3     at most cpu_perc 20, rss_KB 20480" in out
    assert (SOURCE / "catalog/targets/mont_blanc_rpi3.json").is_file()


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "is neither a file nor a target in the catalog; the catalog has mont_blanc_rpi3, sierra_nevada_rpi3"),
        ({"resources": {"cpus": 1}}, "unknown key 'cpus' in resources"),
        ({"resurces": {}}, "unknown key 'resurces'"),
    ],
)
def test_bad_targets_end_with_2_and_one_line(content: Any, complaint: str, tmp_path: Path, capsys: Captured) -> None:
    wanted = tmp_path / "t.json" if content is None else target(tmp_path / "t.json", **content)
    assert check(made(tmp_path / "run"), wanted) == 2
    captured = capsys.readouterr()
    assert complaint in captured.err
    assert (captured.out, captured.err.count("\n")) == ("", 1)


def asking(final: bool = True) -> list[MadeTrial]:
    topic = talk([100] * 97 + [2500, 2600, 11_000], sent=110)
    asks = Stream("talker", "add", "listener", 10, 60, arrivals([400] * 48 + [3000, 12_000]), service=True)
    return [MadeTrial([topic, asks], final=final)]


def test_services_count_as_the_clients_of_the_original_do(tmp_path: Path, capsys: Captured) -> None:
    run = make_run(tmp_path / "run", PROCESSES, asking())
    bounds = dict.fromkeys(("lost_msgs", "lost_perc", "late_msgs", "too_late_msgs", "mean_us"), 1e9)
    wanted = target(tmp_path / "t.json", latency_total=bounds)
    assert check(run, wanted, "--json") == 0
    measured = {key: figure["measured"] for key, figure in figures(capsys).items()}
    topics, replies = 97 * 100 + 2500 + 2600 + 11_000, 48 * 400 + 3000 + 12_000
    assert measured == {
        "lost_msgs": 20,
        "lost_perc": pytest.approx(100 * 20 / 170),
        "late_msgs": 3,
        "too_late_msgs": 2,
        "mean_us": pytest.approx((topics + replies) / 150),
    }
    exported = tmp_path / "exported"
    assert main(["export", str(run), "--output", str(exported), "--json"]) == 0
    total = json.loads(capsys.readouterr().out)["trials"][0]["system_total"]
    assert {key: total[key] for key in ("received", "lost", "late", "too_late")} == {
        "received": 150, "lost": 20, "late": 3, "too_late": 2,
    }  # fmt: skip
    assert total["mean_us"] == pytest.approx(measured["mean_us"])
    # The files themselves are judged alike.
    assert check(exported, wanted, "--json") == 0
    again = {key: figure["measured"] for key, figure in figures(capsys).items()}
    assert {k: v for k, v in again.items() if k != "mean_us"} == {k: v for k, v in measured.items() if k != "mean_us"}


def test_a_run_of_services_alone_is_judged_by_them(tmp_path: Path, capsys: Captured) -> None:
    asks = Stream("talker", "add", "listener", 10, 12, arrivals([400] * 10), service=True)
    run = make_run(tmp_path / "run", PROCESSES, [MadeTrial([asks])])
    wanted = target(tmp_path / "t.json", latency_total={"lost_msgs": 1, "mean_us": 500})
    assert main(["export", str(run), "--output", str(tmp_path / "exported"), "--json"]) == 0
    capsys.readouterr()
    for path in (run, tmp_path / "exported"):
        assert check(path, wanted, "--json") == 1
        found = figures(capsys)
        assert (found["lost_msgs"]["measured"], found["lost_msgs"]["verdict"]) == (2, "missed")
        assert found["mean_us"]["measured"] == pytest.approx(400)


def test_another_way_of_running_than_that_of_the_target_is_said(tmp_path: Path, capsys: Captured) -> None:
    wanted = target(tmp_path / "t.json", additional_options="--ipc=on -t 60", latency_total={"late_perc": 100})
    assert check(made(tmp_path / "off", ipc="off"), wanted) == 0
    assert "Note: the target asks for --ipc on (was off), -t 60 (was 2)" in capsys.readouterr().out
    wanted = target(tmp_path / "t.json", additional_options="--ipc on -t 2", latency_total={"late_perc": 100})
    assert check(made(tmp_path / "on", ipc="on"), wanted) == 0
    assert "Note" not in capsys.readouterr().out
