"""irobot_benchmark's directories: read in both dialects, as text and CSV, and written as that program writes them."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from support import HERE

from perflab.cli import main
from perflab.errors import BadInput
from perflab.formats.irobot import parse
from perflab.formats.irobot import target as targets
from perflab.formats.irobot.dialect import Output, Sample
from perflab.formats.irobot.parse import find
from perflab.formats.irobot.write import write
from perflab.models import as_json
from perflab.results.run import IROBOT, IROBOT_LEGACY, UNKNOWN
from perflab.runs.rundata import open_run
from perflab.statistics.irobot import Row, Total
from tests.schemas import published

DATA = HERE.parent / "data" / "irobot"
BASE = ("two/base_log", "two/arm_log", "csv/base_log")


def copied(source: Path, directory: Path) -> Path:
    directory.mkdir(parents=True)
    for path in source.iterdir():
        (directory / path.name).write_bytes(path.read_bytes())
    return directory


@pytest.mark.parametrize("name", BASE)
def test_what_is_written_is_what_was_read(name: str, tmp_path: Path) -> None:
    output = parse.parse(DATA / name)
    if name == "csv/base_log":
        assert output.total is not None
        assert math.isnan(output.total.mean_us)
        output = replace(output, total=replace(output.total, mean_us=1.0))  # -nan is written as nan
    write(output, tmp_path, legacy=False, csv=name.startswith("csv"), whole_us=True)
    written = {p.name: p.read_text() for p in tmp_path.iterdir()}
    golden = {p.name: p.read_text().replace("2001,-nan", "2001,1") for p in (DATA / name).iterdir()}
    assert written == golden


def test_the_older_dialect_is_written_as_it_was_read(tmp_path: Path) -> None:
    output = parse.parse(DATA / "legacy")
    write(output, tmp_path, legacy=True, csv=False, whole_us=True)
    for name in ("latency_all.txt", "latency_total.txt", "resources.txt", "events.txt"):
        written = [line.rstrip() for line in (tmp_path / name).read_text().splitlines()]
        assert written == [line.rstrip() for line in (DATA / "legacy" / name).read_text().splitlines()], name


def test_the_older_dialect_can_be_written_as_csv(tmp_path: Path) -> None:
    output = parse.parse(DATA / "legacy")
    write(output, tmp_path, legacy=True, csv=True, whole_us=True)
    assert (tmp_path / "latency_all.txt").read_text().splitlines()[:2] == [
        "node,topic,size[b],received[#],late[#],too_late[#],lost[#],mean[us],sd[us],min[us],max[us],freq[hz],duration[s]",
        "odometry,wheel,16,6001,11,0,0,602,145,345,4300,100,60",
    ]
    assert parse.parse(tmp_path).subscriptions == output.subscriptions


def test_columns_that_touch_are_told_apart_by_their_widths() -> None:
    rows = parse.parse(DATA / "two/arm_log").subscriptions
    assert rows is not None
    assert (rows[2].node, rows[2].topic, rows[2].lost, rows[2].mean_us) == (
        "planner_of_the_arm",
        "force",
        2**32 - 1,
        52,
    )


def test_a_caller_that_touches_its_code_is_told_apart() -> None:
    events = parse.parse(DATA / "two/arm_log").events
    assert events is not None
    assert (events[-1].caller, events[-1].code) == ("force->planner_of_the_arm", 3)


def test_the_current_dialect_becomes_a_run() -> None:
    run = open_run(DATA / "two")
    result = as_json(run.summary)["results"][0]
    assert (run.origin, run.name) == (IROBOT, "two")
    assert (result["workload"], result["middleware"], result["executor"], result["ipc"]) == (
        "base+arm",
        None,
        "events",
        "on",
    )
    totals = result["totals"]
    assert (totals["received"], totals["late"], totals["too_late"]) == (4101, 3, 1)
    assert totals["lost"] == {"pre_match": None, "gap": 4 + 2**32 - 1, "tail": None}
    assert totals["sent"] is None
    edge = result["edges"][0]
    assert (edge["publisher"], edge["topic"], edge["subscription"]) == ("wrist", "force", "gripper")
    latency = edge["latency_ns"]
    assert (latency["count"], latency["mean"], latency["min"], latency["max"]) == (1000, 48_000, 19_000, 4_273_000)
    assert (latency["p50"], latency["p99_9"], latency["sd"]) == (None, None, 28_000)
    assert result["services"][0]["round_trip_ns"]["max"] == 510_000
    assert any("wrapped around" in note for note in run.notes)


def test_means_are_weighted_by_the_messages_that_they_are_of() -> None:
    latency = as_json(open_run(DATA / "two").summary)["results"][0]["totals"]["latency_ns"]
    count = 1000 + 100 + 1000 + 2000
    assert latency["count"] == count
    assert latency["mean"] == pytest.approx(1000 * (1000 * 48 + 100 * 310 + 1000 * 52 + 2000 * 30) / count)
    squares = 1000 * (28**2 + 48**2) + 100 * (40**2 + 310**2) + 1000 * (30**2 + 52**2) + 2000 * (10**2 + 30**2)
    assert latency["sd"] == pytest.approx(1000 * math.sqrt(squares / count - (latency["mean"] / 1000) ** 2))


def test_the_tables_of_a_foreign_run_have_the_columns_of_perflab() -> None:
    trial = open_run(DATA / "two").trials[0]
    assert (trial.middleware, trial.started_ns, trial.duration_s) == (UNKNOWN, None, 10.0)
    assert trial.edges["received"].to_list() == [1001, 100, 1000, 2000]
    assert trial.edges["latency_v2"].null_count() == 4
    assert trial.publishers["node"].to_list() == ["/wrist", "/motor", "/eye"]
    arm = [row for row in trial.resources.iter_rows(named=True) if row["process"] == "arm"]
    assert [row["at_ns"] for row in arm] == [10**9, 2 * 10**9, 3 * 10**9]  # without the line of zeros
    assert [row["rss_peak_kb"] for row in arm] == [25580, 25580, 25600]
    assert [row["rss_kb"] for row in arm] == [None, None, None]
    assert arm[0]["cpu_percent_of_machine"] == 4.1
    codes = [row["code"] for row in trial.events.iter_rows(named=True) if row["process"] == "arm"]
    assert codes == ["all_participants_found", "all_endpoints_matched", "late", "too_late", "lost", "lost"]
    details = [json.loads(text) for text in trial.events["details"].drop_nulls()]
    assert details[0] == {
        "topic": "/force",
        "subscription": "/gripper",
        "sequence": 103,
        "latency_ns": 4_273_000,
        "threshold_ns": 2_000_000,
    }
    assert details[2]["count"] == 4


def test_cpu_is_of_the_machine_and_weighted_by_time() -> None:
    resources = as_json(open_run(DATA / "two").summary)["results"][0]["resources"]
    arm = resources["processes"][0]
    assert arm["cpu_percent_of_machine"] == pytest.approx((4.1 + 2.1 + 0.11) / 3)
    assert arm["cpu_percent_mean"] is None  # nothing says how many CPUs there were
    assert resources["rss_kb_max"] == 25600


def test_the_older_dialect_counts_cpu_from_the_start() -> None:
    run = open_run(DATA / "legacy")
    assert run.origin == IROBOT_LEGACY
    assert as_json(run.summary)["results"][0]["resources"]["processes"][0]["cpu_percent_of_machine"] == 50
    assert as_json(run.summary)["results"][0]["duration_s"] == 60
    assert as_json(run.summary)["results"][0]["totals"]["late"] == 12


def test_zeros_of_a_run_without_tracking_are_not_measured() -> None:
    run = open_run(DATA / "csv")
    totals = as_json(run.summary)["results"][0]["totals"]
    assert (totals["received"], totals["late"], totals["too_late"], totals["on_time"]) == (2001, None, None, None)
    assert set(totals["lost"].values()) == {None}
    assert any("without --tracking on" in note for note in run.notes)


def test_zeros_are_not_believed_where_nothing_says_that_they_were_counted(tmp_path: Path) -> None:
    directory = copied(DATA / "csv/base_log", tmp_path / "base_log")
    (directory / "metadata.txt").unlink()
    run = open_run(directory)
    assert as_json(run.summary)["results"][0]["totals"]["late"] is None
    assert any("whether it ran with --tracking on" in note for note in run.notes)


def test_a_subscription_without_messages_takes_size_and_frequency_from_its_publisher() -> None:
    edge = as_json(open_run(DATA / "csv/base_log").summary)["results"][0]["edges"][1]
    assert (edge["subscription"], edge["size_bytes"], edge["received"]) == ("silent", 16, 0)
    assert edge["latency_ns"]["mean"] is None


def test_one_directory_alone_is_a_run_too(tmp_path: Path) -> None:
    run = open_run(DATA / "two" / "base_log")
    assert as_json(run.summary)["results"][0]["workload"] == "base"
    renamed = copied(DATA / "csv/base_log", tmp_path / "elsewhere")
    assert as_json(open_run(renamed).summary)["results"][0]["workload"] == "base"  # as the metadata say


def test_totals_alone_are_enough(tmp_path: Path) -> None:
    directory = copied(DATA / "two/arm_log", tmp_path / "arm_log")
    for name in ("latency_all.txt", "resources.txt"):
        (directory / name).unlink()
    run = open_run(directory)
    totals = as_json(run.summary)["results"][0]["totals"]
    assert (totals["received"], totals["late"], totals["latency_ns"]["mean"]) == (2121, 3, 65_000)
    assert as_json(run.summary)["results"][0]["resources"]["processes"][0]["rss_kb_max"] is None
    assert "missing: latency_all.txt, resources.txt" in run.notes


def test_names_of_december_2023_are_known(tmp_path: Path) -> None:
    directory = copied(DATA / "csv/base_log", tmp_path / "base_log")
    path = directory / "latency_all.txt"
    path.write_text(path.read_text().replace("_msgs", "_num"))
    assert as_json(open_run(directory).summary)["results"][0]["totals"]["received"] == 2001


@pytest.mark.parametrize(
    ("name", "old", "new", "complaint"),
    [
        ("latency_all.txt", "2001,0,0", "2001,0", "latency_all.txt:4: the columns cannot be separated"),
        ("latency_all.txt", "wheel,16,2001", "wheel,16,many", "latency_all.txt:4: received_msgs is 'many'"),
        ("latency_all.txt", "30,10,12", "30,x,12", "latency_all.txt:4: sd_us is 'x', which is not a number"),
        ("latency_all.txt", "node,topic", "nodes,topic", "no column node"),
        ("latency_total.txt", "late_msgs", "late_mgs", "latency_total.txt has no column late_msgs"),
        ("resources.txt", "1000,2.45038", "1000,a", "resources.txt:3: cpu_perc is 'a'"),
    ],
)
def test_damage_is_named_with_file_and_line(name: str, old: str, new: str, complaint: str, tmp_path: Path) -> None:
    path = copied(DATA / "csv/base_log", tmp_path / "base_log") / name
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(BadInput, match=complaint.replace("(", r"\(")):
        open_run(path.parent)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = copied(DATA / "csv/base_log", tmp_path / "base_log") / "latency_all.txt"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadInput, match="is not text"):
        open_run(path.parent)


def test_an_event_that_is_none_is_refused(tmp_path: Path) -> None:
    path = copied(DATA / "two/base_log", tmp_path / "base_log") / "events.txt"
    path.write_text(path.read_text() + "some words without any order\n")
    with pytest.raises(BadInput, match=r"events.txt:3: not an event"):
        open_run(path.parent)


def test_other_directories_are_not_taken_for_output(tmp_path: Path) -> None:
    assert find(tmp_path) is None
    (tmp_path / "catkin_log").mkdir()
    (tmp_path / "events.txt").write_text("")
    assert find(tmp_path) is None
    assert find(tmp_path / "missing") is None
    with pytest.raises(BadInput, match="cannot"):
        open_run("a" * 300)
    with pytest.raises(BadInput, match="is not a run directory"):
        open_run(tmp_path)


def test_what_was_not_measured_has_no_file(tmp_path: Path) -> None:
    row = Row("n", "t", 8, 1, 0, 0, None, 1.25, 0.0, 1.25, 1.25, 100.0, 0.5)
    total = Total(1, 1.25, 0, 0.0, 0, 0.0, None, math.nan)
    names = write(
        Output("p", subscriptions=(row,), total=total, metadata={"ipc": "on"}),
        tmp_path,
        legacy=False,
        csv=True,
        whole_us=False,
    )
    assert names == ["latency_all.txt", "latency_total.txt", "metadata.txt"]
    assert "n,t,8,1,0,0,nan,1.250,0.000,1.250,1.250,100,0.5" in (tmp_path / "latency_all.txt").read_text()
    again = parse.parse(tmp_path).total
    assert again is not None
    assert math.isnan(again.lost_percent)
    assert replace(again, lost_percent=0.0) == replace(total, lost_percent=0.0)


@pytest.mark.parametrize(
    ("us", "whole", "decimals"),
    [
        (48.2317, "48", "48.232"),
        (0.5, "1", "0.500"),
        (999999.4, "999999", "999999.40"),
        (1234567.8, "1.23457e+06", "1234567.8"),
        (123456789.0, "1.23457e+08", "123456789"),
        (math.nan, "nan", "nan"),
    ],
)
def test_times_have_the_digits_of_a_stream_or_as_many_as_fit(
    us: float, whole: str, decimals: str, tmp_path: Path
) -> None:
    output = Output("p", total=Total(1, us, 0, 0.0, 0, 0.0, 0, 0.0))
    for whole_us, expected in ((True, whole), (False, decimals)):
        write(output, tmp_path, legacy=False, csv=True, whole_us=whole_us)
        assert (tmp_path / "latency_total.txt").read_text().splitlines()[1] == f"1,{expected},0,0,0,0,0,0"


def test_cpu_has_two_digits_in_text_and_six_in_csv(tmp_path: Path) -> None:
    output = Output("p", resources=(Sample(1000, 12.3456789, 1, 2, 3, 4, 5),))
    for csv, expected in ((True, "12.3457"), (False, "12")):
        write(output, tmp_path, legacy=False, csv=csv, whole_us=True)
        line = (tmp_path / "resources.txt").read_text().splitlines()[1]
        assert (line.split(",") if csv else line.split())[1] == expected


def test_targets_are_read_in_both_dialects(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    for keys in (("cpu[%]", "rss[KB]", "late[%]"), ("cpu_perc", "rss_KB", "late_perc")):
        path.write_text(json.dumps({"resources": {keys[0]: 15, keys[1]: 10}, "latency_total": {keys[2]: 1.5}}))
        assert targets.read(path).bounds == {"cpu_perc": 15, "rss_KB": 10, "late_perc": 1.5}


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        ([], "not a JSON object"),
        ({}, "bounds nothing"),
        ({"platfrom": "x", "resources": {}}, "unknown key 'platfrom'"),
        ({"resources": {"cpu": 1}}, r"unknown key 'cpu' in resources; choose from cpu_perc or cpu\[%\]"),
        ({"latency_total": {"cpu_perc": 1}}, "unknown key 'cpu_perc' in latency_total"),
        ({"resources": {"cpu_perc": "15"}}, "cpu_perc in resources is '15' instead of a number"),
        ({"resources": {"cpu_perc": True}}, "instead of a number"),
        ({"resources": {"cpu_perc": -1}}, "instead of a number from 0 on"),
        ({"resources": {"cpu_perc": 1, "cpu[%]": 2}}, "gives cpu_perc twice"),
        ({"resources": 5}, "resources is not an object"),
        ({"platform": 5, "resources": {"cpu_perc": 1}}, "platform is not text"),
    ],
)
def test_bad_targets_are_refused_in_one_line(document: object, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps(document))
    with pytest.raises(BadInput, match=complaint):
        targets.read(path)


def test_a_target_that_is_no_json_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text("{")
    with pytest.raises(BadInput, match="is damaged: "):
        targets.read(path)
    with pytest.raises(BadInput, match=r"cannot read .*missing\.json"):
        targets.read(tmp_path / "missing.json")


@pytest.mark.parametrize("name", ["two", "csv", "legacy"])
def test_summaries_of_both_dialects_have_the_documented_keys(name: str) -> None:
    summary = as_json(open_run(DATA / name).summary)
    published("summary").validate(summary)
    (result,) = summary["results"]
    assert result["middleware"] is None
    assert result["totals"]["latency_ns"]["sd"] > 0
    assert result["resources"]["cpu_percent_of_machine"] > 0


@pytest.mark.parametrize("count", [str(2**63), "-1"])
def test_counts_that_cannot_be_are_one_line(count: str, tmp_path: Path) -> None:
    path = copied(DATA / "csv/base_log", tmp_path / "base_log") / "latency_all.txt"
    path.write_text(path.read_text().replace("wheel,16,2001", f"wheel,16,{count}", 1))
    with pytest.raises(BadInput, match=rf"latency_all.txt:4: received_msgs is {count}, which is not within 0\.\."):
        open_run(path.parent)


def test_times_that_cannot_be_are_one_line(tmp_path: Path) -> None:
    path = copied(DATA / "csv/base_log", tmp_path / "base_log") / "resources.txt"
    path.write_text(path.read_text().replace("\n1000,", "\n1e300,", 1))
    with pytest.raises(BadInput, match=r"resources.txt:3: time_ms is 1e300, which is longer than 292 years"):
        open_run(path.parent)


def test_too_late_messages_are_in_the_times_where_they_were_not_told_apart() -> None:
    assert not any("too late messages" in note for note in open_run(DATA / "csv").notes)
    assert any("too late messages" in note for note in open_run(DATA / "legacy").notes)


def test_a_directory_where_a_file_should_be_is_said(tmp_path: Path) -> None:
    directory = copied(DATA / "csv/base_log", tmp_path / "base_log")
    (directory / "metadata.txt").unlink()
    (directory / "metadata.txt").mkdir()
    with pytest.raises(BadInput, match=r"metadata.txt is not a file"):
        open_run(directory)


def test_edges_without_percentiles_are_shown_with_their_means(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(DATA / "two")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert next(line for line in lines if line.startswith("publisher")).split().count("mean") == 1
    assert "52.0 µs" in next(line for line in lines if "planner_of_the_arm  force" in line)
