"""Logs of performance_test: read in every dialect, mended or left out where they are wrong, written and read again."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from made_run import MS, START_NS, MadeTrial, Stream, arrivals, make_run
from support import HERE

from perflab.cli import main
from perflab.errors import BadInput
from perflab.formats.performance_test import dialect, parse
from perflab.formats.performance_test.dialect import Log, Second
from perflab.formats.performance_test.parse import find
from perflab.formats.performance_test.write import csv_text, json_text
from perflab.models import as_json
from perflab.report import timelines
from perflab.report.results import results_of
from perflab.results.run import PERFORMANCE_TEST
from perflab.runs.rundata import open_run
from perflab.statistics import histogram as hg
from tests.schemas import published

Captured = pytest.CaptureFixture[str]
Json = dict[str, Any]

DATA = HERE.parent / "data" / "performance_test"
OLD = "log_Array1k_01-07-2018_10-00-00"
FILES = ("one.csv", "two_subscribers.json", OLD, "nine_columns.csv", "pair")


def result_of(path: Path) -> Json:
    results = as_json(open_run(path).summary)["results"]
    assert len(results) == 1
    return dict(results[0])


# -- read --------------------------------------------------------------------------------------------------------------


def test_a_log_becomes_a_run_of_pubsub() -> None:
    run, result = open_run(DATA / "one.csv"), result_of(DATA / "one.csv")
    assert (run.origin, run.name, run.program) == (PERFORMANCE_TEST, "one", "performance_test")
    assert (result["workload"], result["middleware"], result["executor"], result["duration_s"]) == (
        "pubsub",
        "cyclonedds",
        None,
        4.0,
    )
    totals = result["totals"]
    # The first row, whose time is that since boot, is in nothing.
    assert (totals["received"], totals["published"], totals["sent"]) == (298, 300, None)
    assert totals["lost"] == {"pre_match": None, "gap": 2, "tail": None}
    latency = totals["latency_ns"]
    assert (latency["count"], latency["min"], latency["max"]) == (298, 10_000, 1_500_000)
    assert latency["mean"] == pytest.approx((100 * 50e3 + 98 * 60e3 + 100 * 40e3) / 298)
    assert {latency[name] for name in ("p50", "p90", "p99", "p99_9", "p99_99")} == {None}
    assert totals["response_ns"] is None
    (process,) = result["resources"]["processes"]
    assert (process["cpu_percent_of_machine"], process["cpu_percent_mean"], process["rss_kb_max"]) == (2.0, None, 9200)


def test_the_variance_of_csv_is_s2_times_1000() -> None:
    """1e-6 "ms" are 1e-9 s², and so a deviation of 31.6 µs."""
    (row, *_) = parse.parse(DATA / "one.csv").seconds[1:]
    assert row.latency_variance_s2 == pytest.approx(1e-9)
    squares = 99 * 1e3 + 97 * 4e3 + 99 * 1e3  # in µs²
    means = 100 * 50 + 98 * 60 + 100 * 40
    between = 100 * 50**2 + 98 * 60**2 + 100 * 40**2 - means**2 / 298
    sd_us = result_of(DATA / "one.csv")["totals"]["latency_ns"]["sd"] / 1000
    assert sd_us == pytest.approx(math.sqrt((squares + between) / 297))


def test_a_variance_that_overflowed_is_mended_in_json() -> None:
    """Of 2000 latencies of 4 and 6 ms the deviation is 1 ms; the file says 4.9 ms."""
    path = DATA / "two_subscribers.json"
    said = parse.parse(path).seconds[1]
    assert math.sqrt(said.latency_variance_s2 or 0) == pytest.approx(4.9e-3, rel=1e-2)
    n, squares = 2000 + 2000 + 1, 2000 * 1e12 + 2e-7 * 1e18
    means = (2000 * 5e6, 2000 * 4e4, 5e4)
    between = 2000 * 5e6**2 + 2000 * 4e4**2 + 5e4**2 - sum(means) ** 2 / n
    assert result_of(path)["totals"]["latency_ns"]["sd"] == pytest.approx(math.sqrt((squares + between) / (n - 1)))


def test_a_variance_that_overflowed_is_none_in_csv(tmp_path: Path) -> None:
    text = (DATA / "one.csv").read_text()
    slow = text.replace("0.03,\t\t1.5,\t\t0.06,\t\t4e-06", "0.03,\t\t50,\t\t40,\t\t4e-06")
    negative = text.replace("0.06,\t\t4e-06", "0.06,\t\t-4e-06")
    for made in (slow, negative):
        assert made != text
        (tmp_path / "log.csv").write_text(made)
        run = open_run(tmp_path / "log.csv")
        assert any("1 row has no variance: it overflowed" in note for note in run.notes)
        assert as_json(run.summary)["results"][0]["totals"]["latency_ns"]["sd"] is None
    old = slow.replace("Version: 2.3.0", "Version: 1.3.6")  # which added squares up in floating point
    (tmp_path / "log.csv").write_text(old)
    assert not any("overflowed" in note for note in open_run(tmp_path / "log.csv").notes)


def test_what_json_has_in_place_of_no_number_is_none() -> None:
    nothing = parse.parse(DATA / "two_subscribers.json").seconds[-1]
    assert (nothing.latency_n, nothing.latency_min_s, nothing.latency_max_s, nothing.latency_mean_s) == (
        0,
        None,
        None,
        None,
    )
    one = parse.parse(DATA / "two_subscribers.json").seconds[-2]
    assert (one.latency_n, one.latency_mean_s, one.latency_variance_s2) == (1, 5e-5, None)


def test_json_counts_latencies_exactly_and_its_losses_are_of_all_subscribers() -> None:
    result = result_of(DATA / "two_subscribers.json")
    (edge,) = result["edges"]
    # 1998 per second of 1.0005 s are 1999 or 2000 messages; latency_n says which.
    assert (edge["received"], edge["subscription"], edge["topic"]) == (4001, "subscribers", "test_topic")
    assert edge["size_bytes"] is None
    assert (result["middleware"], result["executor"]) == ("rclcpp/rmw_cyclonedds_cpp", "single_threaded")
    assert result["resources"]["cpu_percent_mean"] == pytest.approx(4 * 2.0, rel=1e-3)


def test_the_cpu_use_of_the_first_row_is_that_since_boot_wherever_the_file_begins(tmp_path: Path) -> None:
    document = json.loads((DATA / "two_subscribers.json").read_text())
    document["analysis_results"] = document["analysis_results"][2:]  # --ignore 2: the time of the row is right
    (tmp_path / "log.json").write_text(json.dumps(document))
    result = result_of(tmp_path / "log.json")
    assert result["resources"]["cpu_percent_of_machine"] == pytest.approx(2.0)
    assert result["duration_s"] == 4.0  # of six seconds; JSON does not say how many were ignored
    (trial,) = open_run(tmp_path / "log.json").trials
    assert trial.resources["cpu_percent_of_machine"].to_list() == [None, 2.0, 2.0]


def test_the_dialect_of_2018_is_read() -> None:
    run, result = open_run(DATA / OLD), result_of(DATA / OLD)
    assert (result["middleware"], result["executor"], result["duration_s"]) == ("rclcpp", None, 3.0)
    # T_experiment is the end of a row there, and the first row is one as any other.
    seconds = run.trials[0].seconds
    assert seconds is not None
    assert seconds["begin_ns"].to_list() == pytest.approx([0, 1e9, 2e9], abs=300_000)
    assert result["totals"]["received"] == 890 + 881 + 889  # per second of 1.00009 s
    # Microseconds of ru_utime were multiplied by 1e6 instead of divided.
    assert run.trials[0].resources["cpu_ns"].to_list() == [None, None, None]
    assert run.trials[0].resources["rss_peak_kb"].to_list() == [20000] * 3


def test_nine_columns_without_times_are_taken_for_seconds() -> None:
    run = open_run(DATA / "nine_columns.csv")
    assert "rows do not have their length; each is assumed to be one second" in run.notes
    totals = as_json(run.summary)["results"][0]["totals"]
    assert (totals["received"], totals["lost"]["gap"], totals["latency_ns"]["max"]) == (2657, 4, 380_900)
    assert result_of(DATA / "nine_columns.csv")["resources"]["processes"] == []


def test_a_publisher_and_its_subscriber_are_one_trial() -> None:
    run, result = open_run(DATA / "pair"), result_of(DATA / "pair")
    assert [p["process"] for p in result["resources"]["processes"]] == ["run_pub", "run_sub"]
    assert (result["totals"]["published"], result["totals"]["received"], result["trials"]) == (400, 400, 1)
    left_out = "the first row is left out: its time is that since boot, and its losses are unknown"
    assert f"run_pub.csv and 1 more: {left_out}" in run.notes


def test_a_publisher_alone_says_what_it_published(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(DATA / "pair" / "run_pub.csv")]) == 0
    shown = capsys.readouterr().out
    assert "published, receivers unknown" in shown
    assert not any(line.strip() == "─" for line in shown.splitlines()), "a table without columns"


def test_latencies_since_the_start_are_those_of_the_last_row() -> None:
    run, result = open_run(DATA / "pair"), result_of(DATA / "pair")
    latency = result["totals"]["latency_ns"]
    assert (latency["count"], latency["min"], latency["mean"], latency["max"]) == (
        None,
        20_000,
        pytest.approx(55e3),
        2_000_000,
    )
    assert latency["sd"] == pytest.approx(math.sqrt(4e-9) * 1e9)
    assert any("those since the start" in note for note in run.notes)
    seconds = run.trials[0].seconds
    assert seconds is not None
    assert seconds.height == 0


def test_logs_with_the_same_settings_are_trials_and_others_are_levels(tmp_path: Path) -> None:
    text = (DATA / "one.csv").read_text()
    for number, rate in enumerate(("100", "100", "50")):
        made = text.replace("Publishing rate: 100", f"Publishing rate: {rate}").replace("11111111", f"{number:08}")
        (tmp_path / f"{number}.csv").write_text(made)
    run = open_run(tmp_path)
    assert [(r.factors, r.trials) for r in run.summary.results] == [
        ({"workload.rate": 100}, 2),
        ({"workload.rate": 50}, 1),
    ]
    assert run.summary.results[0].totals.received == 2 * 298
    assert run.frame("edges")["trial"].to_list() == [1, 2, 3]


def test_middlewares_are_results_of_their_own(tmp_path: Path) -> None:
    text = (DATA / "one.csv").read_text()
    (tmp_path / "1.csv").write_text(text)
    (tmp_path / "2.csv").write_text(text.replace("CycloneDDS", "FastRTPS").replace("11111111", "22222222"))
    assert [(r.middleware, r.trials) for r in open_run(tmp_path).summary.results] == [("cyclonedds", 1), ("fastdds", 1)]


def test_of_a_process_that_wrote_both_the_json_counts(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text((DATA / "one.csv").read_text().replace("11111111", "aaaaaaaa"))
    (tmp_path / "b.json").write_bytes((DATA / "two_subscribers.json").read_bytes())
    assert result_of(tmp_path)["totals"]["received"] == 4001


def test_the_summary_of_every_dialect_is_one() -> None:
    for name in FILES:
        published("summary").validate(json.loads(json.dumps(as_json(open_run(DATA / name).summary))))


def test_settings_that_touch_what_follows_are_told_apart(tmp_path: Path) -> None:
    """2.3 ends its settings without a newline, and so they touch what stands in APEX_PERFORMANCE_TEST."""
    text = (DATA / "one.csv").read_text()
    (tmp_path / "log.csv").write_text(text.replace("beginning: 0\n", "beginning: 0githash: 0123abc\n"))
    log = parse.parse(tmp_path / "log.csv")
    assert (log.settings["ignore_seconds"], log.external) == (0, {"githash": "0123abc"})


# -- shown, drawn, compared --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
def test_a_log_is_shown(name: str, capsys: Captured) -> None:
    assert main(["show", str(DATA / name)]) == 0
    out = capsys.readouterr().out
    assert "pubsub on " in out
    assert "latency" in out


def test_a_log_is_drawn(tmp_path: Path, capsys: Captured) -> None:
    log = tmp_path / "log.csv"
    log.write_bytes((DATA / "one.csv").read_bytes())
    assert main(["plot", str(log), "--format", "svg"]) == 0
    said = capsys.readouterr().out
    assert sorted(p.name for p in (tmp_path / "log" / "plots").iterdir()) == [
        *("cpu.svg", "latency_edges.svg", "latency_time.svg", "rss.svg"),
    ]
    assert "Not drawn: percentiles: performance_test leaves no histograms" in said
    drawn = (tmp_path / "log" / "plots" / "latency_time.svg").read_text()
    assert "no percentiles and no single messages" in drawn
    assert "p99" not in drawn


def test_a_log_has_a_report_of_what_it_holds(tmp_path: Path) -> None:
    assert main(["report", str(DATA / "one.csv"), "-o", str(tmp_path / "report.html")]) == 0
    text = (tmp_path / "report.html").read_text()
    assert "logs of performance_test" in text
    assert "irobot" not in text


def test_seconds_of_several_trials_are_drawn_together(tmp_path: Path) -> None:
    text = (DATA / "one.csv").read_text()
    for number, mean in ((1, "0.05,"), (2, "0.07,")):
        (tmp_path / f"{number}.csv").write_text(text.replace("11111111", f"{number:08}").replace("0.05,", mean))
    figure = timelines.time(results_of([open_run(tmp_path)]), "latency")
    assert figure is not None
    lines = {series.name: series for series in figure.series if series.shape == "line"}
    assert list(lines) == [f"cyclonedds, {what}" for what in ("trial 1, mean", "trial 2, mean", "mean", "maximum")]
    assert {lines[f"cyclonedds, trial {n}, mean"].weight for n in (1, 2)} == {"thin"}
    assert lines["cyclonedds, mean"].x == (1.0, 2.0, 2.0, 3.0, 3.0, 4.0)
    assert lines["cyclonedds, mean"].y == pytest.approx((60, 60, 60, 60, 40, 40))
    assert lines["cyclonedds, maximum"].y == pytest.approx((500, 500, 1500, 1500, 400, 400))
    assert "596 messages" in figure.subtitle


def test_logs_are_compared_and_checked_against(tmp_path: Path, capsys: Captured) -> None:
    other = tmp_path / "other.csv"
    other.write_text((DATA / "one.csv").read_text().replace("1.5,", "3.0,"))
    assert main(["compare", str(DATA / "one.csv"), str(other), "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)["columns"]
    assert (first["origin"], second["origin"]) == (PERFORMANCE_TEST, PERFORMANCE_TEST)
    assert main(["check", str(other), "--baseline", str(DATA / "one.csv"), "--metric", "latency.max"]) == 0
    assert "latency max" in capsys.readouterr().out


@pytest.mark.parametrize("order", [1, -1])
def test_a_log_is_checked_against_a_run_of_perflab_and_the_other_way(
    order: int, tmp_path: Path, capsys: Captured
) -> None:
    run = recorded(tmp_path / "run")
    assert export(run, "--output", tmp_path / "out") == 0
    first, second = (run, tmp_path / "out")[::order]
    capsys.readouterr()
    assert main(["check", str(first), "--baseline", str(second), "--metric", "response.max", "--json"]) == 0
    checked = json.loads(capsys.readouterr().out)["baseline"]
    assert [c["metric"] for c in checked["checks"]] == ["success", "response.max"]
    assert not any("thresholds" in warning for warning in checked["warnings"])


# -- bad input ---------------------------------------------------------------------------------------------------------


def changed(old: str, new: str) -> Callable[[str], str]:
    def change(text: str) -> str:
        assert old in text
        return text.replace(old, new, 1)

    return change


LINES = (DATA / "one.csv").read_text().split("\n")
HEADER = LINES.index(dialect.START) + 2  # numbers of lines count from 1
LAST = HEADER + 4


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (changed("latency_min (ms)", "low (ms)"), f":{HEADER}: column 8 is 'low (ms)', which performance_test "),
        (changed("lost,", "sent,"), f":{HEADER}: column 5 is 'sent' again"),
        (changed("received,\tsent", "sent"), f":{HEADER}: no column received, which a table of performance_test "
            "must have"),
        (changed(",\t\t1.5", ""), f":{HEADER + 3}: 27 columns; the header has 28"),
        (changed("1.5", "1.5ms"), f":{HEADER + 3}: latency_max (ms) is '1.5ms', which is not a number"),
        (changed("1.5", "1_5"), f":{HEADER + 3}: latency_max (ms) is '1_5', which is not a number"),
        (changed("9200", "-9200"), f":{HEADER + 3}: ru_maxrss is -9200 instead of a whole number from 0 on"),
        (changed("9200", "92.5"), f":{HEADER + 3}: ru_maxrss is 92.5 instead of a whole number from 0 on"),
        (changed("1.5,", "1e30,"), f":{HEADER + 3}: latency_max (ms) is longer than 292 years"),
        (changed("2.000000", "-2.0"), f":{HEADER + 3}: T_experiment is -2 instead of a number from 0 on"),
        (changed("rate: 100", "rate: often"), ":7: Publishing rate is 'often' instead of a whole number from 0 on"),
        (changed("enabled: 0", "enabled: 2"), ":13: Memory check enabled is '2' instead of 0 or 1"),
        (changed("depth: 16", "depth: deep"), ":6: History depth is 'deep' instead of a whole number from 0 on"),
        (lambda text: text[:-1], f":{LAST}: the line was cut: it has no end; remove it to read the lines before it"),
        (lambda text: text[:-40], f":{LAST}: the line was cut"),
        (lambda text: text.partition(dialect.START)[0], ": no line ---EXPERIMENT-START--- with a table below it"),
        (lambda text: text.partition("T_exp")[0], f":{HEADER}: no header; there should be T_experiment,"),
        (lambda text: "", " is empty; performance_test writes JSON when it ends, and CSV from its start on"),
    ],
)  # fmt: skip
def test_a_bad_csv_is_one_line_that_says_where(
    change: Callable[[str], str], complaint: str, tmp_path: Path, capsys: Captured
) -> None:
    path = tmp_path / "log.csv"
    path.write_text(change((DATA / "one.csv").read_text()))
    assert main(["show", str(path)]) == 2
    error = capsys.readouterr().err
    assert f"{path}{complaint}" in error
    assert error.count("\n") == 1


def with_row(**members: Any) -> Callable[[Json], Any]:
    def change(document: Json) -> Any:
        document["analysis_results"][1] |= members
        return document

    return change


def without(key: str) -> Callable[[Json], Any]:
    def change(document: Json) -> Any:
        del document["analysis_results"][1][key]
        return document

    return change


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (with_row(latency_min="fast"), ": analysis_results[1].latency_min is 'fast', which is not a number"),
        (with_row(num_samples_lost=True), ": analysis_results[1].num_samples_lost is True, which is not a number"),
        (with_row(num_samples_lost=-1), ": analysis_results[1]: num_samples_lost is -1 instead of a whole number"),
        (with_row(latency_max=1e12), ": analysis_results[1]: latency_max is longer than 292 years"),
        (
            without("latency_mean"),
            ": analysis_results[1] has no latency_mean, which a row of performance_test must have",
        ),
        (
            lambda d: d | {"analysis_results": {}},
            ": no list analysis_results, which a log of performance_test must have",
        ),
        (lambda d: d | {"analysis_results": [7]}, ": analysis_results[0] is 7 instead of an object"),
        (lambda d: d | {"rate": "fast"}, ": rate is 'fast' instead of a whole number from 0 on"),
        (lambda d: d | {"check_memory": "no"}, ": check_memory is 'no' instead of true or false"),
    ],
)
def test_a_bad_json_is_one_line_that_says_where(
    change: Callable[[Json], Any], complaint: str, tmp_path: Path, capsys: Captured
) -> None:
    path = tmp_path / "log.json"
    path.write_text(json.dumps(change(json.loads((DATA / "two_subscribers.json").read_text()))))
    assert main(["show", str(path)]) == 2
    error = capsys.readouterr().err
    assert f"{path}{complaint}" in error
    assert error.count("\n") == 1


def test_a_json_that_was_cut_says_so(tmp_path: Path) -> None:
    text = (DATA / "two_subscribers.json").read_text()
    (tmp_path / "log.json").write_text(text[:1500])
    with pytest.raises(BadInput, match=r"log\.json:1: column \d+: .*; the file was cut"):
        open_run(tmp_path / "log.json")


def test_other_files_are_no_logs(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("T_experiment is a column\n")
    (tmp_path / "other.json").write_text("{}")
    assert find(tmp_path) is None
    with pytest.raises(BadInput, match=r"is a file; name the run directory"):
        open_run(tmp_path / "other.json")


@pytest.mark.parametrize("name", ["one.csv", "two_subscribers.json", OLD])
def test_cut_and_changed_files_are_read_or_refused_in_one_line(name: str, tmp_path: Path) -> None:
    """Whatever became of a file, nothing but BadInput comes of it."""
    whole, chance = (DATA / name).read_bytes(), random.Random(7)
    path = tmp_path / f"log{Path(name).suffix or '.csv'}"
    refused = 0
    for _ in range(150):
        made = bytearray(whole[: chance.randrange(len(whole))] if chance.random() < 0.5 else whole)
        for _ in range(chance.randrange(4)):
            if made:
                made[chance.randrange(len(made))] = chance.choice(b'0123456789.,-\n\t{}[]":eEnaif \xff')
        path.write_bytes(made)
        try:
            open_run(path)
        except BadInput as error:
            refused += 1
            assert "\n" not in str(error)
    assert refused > 50


# -- written -----------------------------------------------------------------------------------------------------------


def test_what_is_written_in_csv_is_what_was_read(tmp_path: Path) -> None:
    log = parse.parse(DATA / "one.csv")
    golden = (DATA / "one.csv").read_text()
    # perflab has one blank line less, and an empty cell for what is no number.
    assert csv_text(log, "one.csv") == golden.replace("\n\n\n", "\n\n").replace("-nan", "")


def test_what_is_written_in_json_is_what_was_read() -> None:
    log = parse.parse(DATA / "two_subscribers.json")
    golden = json.loads((DATA / "two_subscribers.json").read_text())
    written = json.loads(json_text(log, ""))
    assert list(written)[:-1] == list(golden)[:-1]
    for key, value in golden.items():
        if key != "analysis_results":
            assert written[key] == value, key
    for made, row in zip(written["analysis_results"][:3], golden["analysis_results"], strict=False):
        assert list(made) == list(row)
        assert made == pytest.approx(row)
    assert written["analysis_results"][-1]["latency_mean"] is None


def test_the_own_accounting_has_variances_in_ms2() -> None:
    second = Second(
        received=2,
        sent=2,
        lost=0,
        latency_min_s=1e-3,
        latency_max_s=3e-3,
        latency_mean_s=2e-3,
        latency_variance_s2=2e-6,
    )
    external = {dialect.MEASURED_BY: "perflab", dialect.ACCOUNTING: dialect.CORRECTED}
    log = Log(Path("x"), {}, external, (second,))
    cells = csv_text(log, "x").splitlines()[-1].split(dialect.ROW_SEPARATOR)
    assert (cells[9], cells[10]) == ("2", "2")
    original = replace(log, external={**external, dialect.ACCOUNTING: dialect.ORIGINAL})
    assert csv_text(original, "x").splitlines()[-1].split(dialect.ROW_SEPARATOR)[10] == "0.002"


# -- export ------------------------------------------------------------------------------------------------------------


PROCESSES = {"source": ["publisher"], "sink": ["subscriber"]}
LATENCIES_US = [*[100.0 + k for k in range(90)], *[5000.0] * 10]


def recorded(path: Path, *, lost: Sequence[int] = (), cpus: str | None = "0-3") -> Path:
    """A run of 100 messages, 10 ms apart: the records of a subscriber that says after 0.5 s what it has by then."""
    arrived = [a for a in arrivals(LATENCIES_US) if a.number not in lost]
    stream = Stream("publisher", "pubsub", "subscriber", 10, 100, arrived)
    trial = MadeTrial([stream], rss_kb=[5000] * 7, cpu_ms=50)
    run = make_run(path, PROCESSES, [trial], duration_s=1.0, cpus=cpus, workload="pubsub")
    half = START_NS + 500 * MS
    for process in PROCESSES:
        file = next(run.glob(f"trials/*/processes/{process}.jsonl"))
        *before, last = file.read_text().splitlines()
        early = [a for a in arrived if a.at_ns <= half] if process == "sink" else []
        numbers = [a.number for a in early]
        times = hg.encode(hg.from_values([a.latency_ns for a in early]))
        progress = {
            "type": "progress",
            "at_ns": half,
            "sent": 49 if process == "source" else 0,
            "received": len(early),
            "lost": numbers[-1] - numbers[0] + 1 - len(numbers) if numbers else 0,
            "latency": times,
            "response": times,
        }
        file.write_text("\n".join([*before, json.dumps(progress), last]) + "\n")
    return run


def export(run: Path, *arguments: str | Path) -> int:
    return main(["export", str(run), "--format", "performance_test", *map(str, arguments)])


def test_each_process_gets_a_csv_and_a_json_and_what_is_empty_is_said(tmp_path: Path, capsys: Captured) -> None:
    run = recorded(tmp_path / "run")
    assert export(run) == 0
    out = capsys.readouterr().out
    folder = run / "export" / "performance_test"
    assert sorted(p.name for p in folder.iterdir()) == ["sink.csv", "sink.json", "source.csv", "source.json"]
    assert "perflab does not measure ru_ixrss, ru_idrss" in out
    rows = json.loads((folder / "sink.json").read_text())["analysis_results"]
    assert rows[0]["sys_tracker_ru_ixrss"] is None
    assert rows[0]["sys_tracker_ru_utime"] > 0
    assert rows[0]["sys_tracker_ru_minflt"] > 0
    assert (folder / "sink.csv").read_text().splitlines()[-1].split(dialect.ROW_SEPARATOR)[14:17] == ["", "", ""]


def test_rows_are_seconds_with_what_was_counted_in_them(tmp_path: Path) -> None:
    run = recorded(tmp_path / "run")
    assert export(run) == 0
    sink = parse.parse(run / "export/performance_test/sink.json").seconds
    assert [(s.experiment_s, s.loop_s, s.received, s.latency_n) for s in sink] == [(0, 0.5, 49, 49), (0.5, 0.5, 51, 51)]
    assert [s.data_received for s in sink] == [49 * 8, 51 * 8]
    assert sink[0].latency_min_s == pytest.approx(100e-6, rel=1e-3)
    assert sink[0].latency_max_s == pytest.approx(148e-6, rel=1e-3)
    late = [100.0 + k for k in range(49, 90)] + [5000.0] * 10
    mean = sum(late) / 51
    assert sink[1].latency_mean_s == pytest.approx(mean * 1e-6, rel=1 / 2048)
    sd = math.sqrt(sum((x - mean) ** 2 for x in late) / 50)
    rms = math.sqrt(sum(x * x for x in late) / 51)
    assert math.sqrt(sink[1].latency_variance_s2 or 0) * 1e6 == pytest.approx(sd, abs=rms / 2048 * 1.02)
    source = parse.parse(run / "export/performance_test/source.json").seconds
    assert [(s.sent, s.received, s.latency_min_s) for s in source] == [(49, 0, None), (51, 0, None)]
    # 50 ms of CPU time in 500 ms, of four CPUs.
    assert [s.cpu_usage for s in sink] == [pytest.approx(2.5), pytest.approx(2.5)]


def test_the_original_accounting_has_rates_that_are_cut_down_and_no_losses_at_the_end(tmp_path: Path) -> None:
    run = recorded(tmp_path / "run", lost=(0, 1, 30, 99))
    for accounting in ("original", "corrected"):
        assert export(run, "--accounting", accounting, "--output", tmp_path / accounting) == 0
    original = parse.parse(tmp_path / "original/sink.csv").seconds
    corrected = parse.parse(tmp_path / "corrected/sink.csv").seconds
    # The two before the first are in the first row, as ids that are missing; the last one is seen by perflab alone.
    assert [s.lost for s in original] == [math.floor(3 / 0.5), 0]
    assert [s.lost for s in corrected] == [3, 1]
    assert [s.received for s in original] == [2 * 46, 2 * 50]
    assert [s.received for s in corrected] == [46, 50]
    assert original[0].relative_loss is None
    assert corrected[0].relative_loss == pytest.approx(3 / 49)


@pytest.mark.parametrize("accounting", ["original", "corrected"])
@pytest.mark.parametrize("suffix", [".csv", ".json", None])
def test_what_is_exported_comes_back(accounting: str, suffix: str | None, tmp_path: Path) -> None:
    run = recorded(tmp_path / "run", lost=(30,))
    out = tmp_path / "out"
    assert export(run, "--accounting", accounting, "--output", out) == 0
    for file in list(out.iterdir()):
        if suffix is not None and file.suffix != suffix:
            file.unlink()
    before, back = as_json(open_run(run).summary)["results"][0], open_run(out)
    after = as_json(back.summary)["results"][0]
    assert after["workload"] == "pubsub"
    for key in ("middleware", "executor", "ipc", "duration_s"):
        assert after[key] == before[key], key
    assert after["totals"]["received"] == before["totals"]["received"] == 99
    assert after["totals"]["published"] == before["totals"]["published"] == 100
    assert after["totals"]["lost"]["gap"] == 1
    figure, other = ("latency_ns", "response_ns") if accounting == "original" else ("response_ns", "latency_ns")
    mine, own = after["totals"][figure], before["totals"][figure]
    assert after["totals"][other] is None
    assert mine["count"] == own["count"]
    assert mine["mean"] == pytest.approx(own["mean"], rel=1e-3)
    assert (mine["min"], mine["max"]) == (pytest.approx(own["min"], rel=2e-3), pytest.approx(own["max"], rel=2e-3))
    assert after["edges"][0]["frequency_hz"] == 100
    assert after["resources"]["cpu_percent_mean"] == pytest.approx(20, rel=1e-3)
    assert any(f"accounting {accounting}" in note for note in back.notes)


def test_records_of_one_process_for_all_are_one_log(tmp_path: Path) -> None:
    """As in virtual time, where there is one checkpoint, at the end."""
    stream = Stream("publisher", "pubsub", "subscriber", 10, 100, arrivals(LATENCIES_US))
    run = make_run(tmp_path / "run", {"all": ["publisher", "subscriber"]}, [MadeTrial([stream])], duration_s=1.0)
    (records,) = run.glob("trials/*/processes/all.jsonl")
    records.rename(records.with_name("pubsub.jsonl"))
    assert export(run) == 0
    (second,) = parse.parse(run / "export/performance_test/pubsub.json").seconds
    assert (second.loop_s, second.sent, second.received, second.lost) == (1.0, 100, 100, 0)


def test_several_trials_have_folders_that_are_read_together(tmp_path: Path) -> None:
    stream = Stream("publisher", "pubsub", "subscriber", 10, 100, arrivals(LATENCIES_US))
    run = make_run(tmp_path / "run", PROCESSES, [MadeTrial([stream]), MadeTrial([stream])], duration_s=1.0)
    assert export(run, "--output", tmp_path / "out") == 0
    assert len(list((tmp_path / "out").iterdir())) == 2
    result = result_of(tmp_path / "out")
    assert (result["trials"], result["totals"]["received"], result["edges"][0]["received"]) == (2, 200, 200)


def test_treatments_stay_apart(tmp_path: Path) -> None:
    stream = Stream("publisher", "pubsub", "subscriber", 10, 100, arrivals(LATENCIES_US))
    trials = [MadeTrial([stream]), MadeTrial([stream], conditions=["cpu_load"])]
    run = make_run(tmp_path / "run", PROCESSES, trials, duration_s=1.0)
    assert export(run, "--output", tmp_path / "out") == 0
    results = open_run(tmp_path / "out").summary.results
    assert [(r.label, r.is_disturbed, r.trials) for r in results] == [("baseline", False, 1), ("cpu_load", True, 1)]


def test_an_unknown_number_of_cpus_leaves_cpu_open(tmp_path: Path) -> None:
    run = recorded(tmp_path / "run", cpus=None)
    assert export(run) == 0
    for suffix in (".csv", ".json"):
        log = parse.parse(run / "export/performance_test" / f"sink{suffix}")
        assert [s.cpu_usage for s in log.seconds] == [None, None]


def test_several_topics_are_not_exported(tmp_path: Path, capsys: Captured) -> None:
    streams = [Stream("publisher", topic, "subscriber", 10, 5, arrivals([100.0] * 5)) for topic in ("a", "b")]
    run = make_run(tmp_path / "run", PROCESSES, [MadeTrial(streams)])
    assert export(run) == 2
    assert "measured 2 topics, but a log of performance_test covers one" in capsys.readouterr().err
    assert not (run / "export").exists()


def test_a_log_is_not_exported_again_but_its_tables_are(tmp_path: Path, capsys: Captured) -> None:
    assert export(DATA / "one.csv", "--output", tmp_path / "out") == 2
    assert "is from performance_test and has no records of each second" in capsys.readouterr().err
    assert main(["export", str(DATA / "one.csv"), "--format", "csv", "-o", str(tmp_path / "out")]) == 0
    assert pl.read_csv(tmp_path / "out" / "edges.csv")["received"].to_list() == [298]
    assert pl.read_csv(tmp_path / "out" / "seconds.csv")["mean"].to_list() == pytest.approx([50e3, 60e3, 40e3])
