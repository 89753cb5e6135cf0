"""`perflab statistics` on a published table of trials, on its means, and on input that is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from perflab.cli import main
from perflab.errors import BadInput
from perflab.formats.table_file import parse_where, read_table
from perflab.results.comparison import Margin
from perflab.statistics import verdicts
from perflab.statistics.comparison import compare, corrected
from perflab.statistics.sample import Sample

Captured = pytest.CaptureFixture[str]

DATA = Path(__file__).resolve().parent.parent / "data" / "statistics"
TRIALS, SWEEP = DATA / "manipulation_trials.csv", DATA / "manipulation_cpu_sweep.csv"
EXECUTION = ("--group", "scenario", "--value", "execution_latency_ms")
SUCCESS = ("--where", "status == 'success'")
NOT_PROFILED = ("--where", "status == 'success' and not trial_id endswith '_profiled'")


def result(capsys: Captured, *arguments: str | Path) -> dict[str, Any]:
    assert main(["statistics", *map(str, arguments), "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def refusal(capsys: Captured, *arguments: str | Path) -> str:
    assert main(["statistics", *map(str, arguments)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return err


def test_the_times_of_the_successful_trials_sit_on_a_lattice_of_50_ms(capsys: Captured) -> None:
    lattice = result(capsys, TRIALS, *EXECUTION, *SUCCESS)["lattices"]["execution_latency_ms"]
    assert (lattice["kind"], lattice["period"]) == ("lattice", 50)
    assert 10 <= lattice["offset_low"] <= lattice["offset"] <= lattice["offset_high"] <= 12
    assert lattice["on_lattice"] == lattice["n"] == 22
    assert lattice["p"] < 1e-4


def test_planning_times_of_the_same_trials_sit_on_none(capsys: Captured) -> None:
    document = result(capsys, TRIALS, "--group", "scenario", "--value", "planning_latency_ms", *SUCCESS)
    assert document["lattices"]["planning_latency_ms"] is None


def test_no_difference_between_baseline_and_cpu_load_is_shown(capsys: Captured) -> None:
    for where in (SUCCESS, NOT_PROFILED):
        (c,) = result(capsys, TRIALS, *EXECUTION, *where)["comparisons"]
        assert c["verdict"] == "not_shown"
        assert c["p"] > 0.5
        assert c["ratio"]["interval"]["low"] < 1 < c["ratio"]["interval"]["high"]
    assert c["welch"]["p"] == pytest.approx(0.78, abs=0.01)
    assert c["spread"]["brown_forsythe"]["p"] == pytest.approx(0.36, abs=0.01)


def test_the_fall_of_the_spread_hangs_on_one_trial_and_is_gone_without_the_profiled_ones(capsys: Captured) -> None:
    document = result(capsys, TRIALS, *EXECUTION, *SUCCESS)
    (c,) = document["comparisons"]
    assert (round(c["spread"]["sd_baseline"]), round(c["spread"]["sd_treatment"])) == (500, 93)
    assert c["spread_influence"]["carried_by"]["label"] == "baseline_profiled"
    assert c["spread_influence"]["carried_by"]["sd_ratio"] > 0.6
    assert any("depends on one trial: without baseline_profiled" in sentence for sentence in document["words"])
    assert "baseline_profiled" in {outlier["label"] for outlier in document["groups"][0]["outliers"]}
    assert document["groups"][0]["n"] == 11

    without = result(capsys, TRIALS, *EXECUTION, *NOT_PROFILED)
    (c,) = without["comparisons"]
    assert (without["rows"], without["rows_of_table"]) == (20, 32)
    assert c["spread"]["sd_ratio"]["value"] == pytest.approx(97.5 / 139.3, abs=0.01)
    assert c["spread_influence"]["carried_by"] is None
    assert not any("SD" in sentence for sentence in without["words"])


def test_the_cpu_sweep_shows_no_difference_between_any_numbers_of_cpus(capsys: Captured) -> None:
    from statsmodels.stats.power import TTestIndPower

    document = result(capsys, SWEEP, "--group", "cpus", "--value", "execution_latency_ms", "--from-summary")
    by_pair = {(c["baseline"]["name"], c["treatment"]["name"]): c for c in document["comparisons"]}
    assert len(by_pair) == 6
    assert by_pair["1", "2"]["p"] == pytest.approx(0.16, abs=0.005)
    assert by_pair["2", "4"]["p"] == pytest.approx(1.0, abs=0.001)
    assert {c["verdict"] for c in by_pair.values()} == {"not_shown"}
    assert all(c["p_adjusted"] >= c["p"] for c in by_pair.values())
    for c in by_pair.values():
        a, b, planned = c["baseline"], c["treatment"], c["power"]
        assert planned["alpha"] == pytest.approx(0.05 / 6)
        peer = TTestIndPower().solve_power(nobs1=a["n"], ratio=b["n"] / a["n"], alpha=0.05 / 6, power=0.8)
        assert planned["detectable"] == pytest.approx(peer * planned["sd"], rel=1e-4)
    assert any("only a difference of 734 or more would be found" in sentence for sentence in document["words"])
    assert document["anova"]["execution_latency_ms"]["p"] > 0.3
    against = result(
        capsys, SWEEP, "--group", "cpus", "--from-summary", "--mean", "total_latency_ms_mean", "--sd",
        "total_latency_ms_sd", "--baseline", "1", "--margin", "10%",
    )  # fmt: skip
    assert [c["treatment"]["name"] for c in against["comparisons"]] == ["2", "4", "8"]
    assert {c["verdict"] for c in against["comparisons"]} == {"not_shown"}
    assert against["comparisons"][0]["power"]["needed"] > 100


def test_the_report_has_tables_and_words(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    for width in ("160", "60"):
        monkeypatch.setenv("COLUMNS", width)
        assert main(["statistics", str(TRIALS), *EXECUTION, *SUCCESS, "--margin", "50ms"]) == 0
        out = capsys.readouterr().out
        assert "22 rows of 32" in " ".join(out.split())
        assert "not shown" in out
        assert "baseline_profiled" in out
        assert "lattice of 50" in " ".join(out.split())
        assert max(map(len, out.splitlines())) <= int(width)
    assert main(["statistics", str(SWEEP), "--group", "cpus", "--value", "execution_latency_ms", "--from-summary"]) == 0
    assert "no difference among the means is shown" in " ".join(capsys.readouterr().out.split())


def test_missing_values_are_counted_and_said(tmp_path: Path, capsys: Captured) -> None:
    table = tmp_path / "table.csv"
    table.write_text("run;load;ms\n1;a;1.0\n2;a;\n3;a;nan\n4;b;2.0\n5;b;2.5\n")
    document = result(capsys, table, "--group", "load", "--value", "ms")
    assert [(g["n"], g["missing"]) for g in document["groups"]] == [(1, 2), (2, 0)]
    assert "ms: 2 rows have no value." in document["words"]
    assert document["comparisons"][0]["verdict"] == "too_few_trials"


def test_blocks_are_taken_from_a_column(tmp_path: Path, capsys: Captured) -> None:
    table = tmp_path / "table.tsv"
    rows = [
        f"{day}\t{load}\t{100 * day + (day % 3) * 0.1 + (5 if load == 'x' else 0)}"
        for day in range(1, 9)
        for load in "bx"
    ]
    table.write_text("day\tload\tms\n" + "\n".join(rows) + "\n")
    options = (table, "--group", "load", "--value", "ms", "--baseline", "b")
    assert result(capsys, *options)["comparisons"][0]["verdict"] == "not_shown"
    (c,) = result(capsys, *options, "--block", "day")["comparisons"]
    assert (c["verdict"], c["blocks"]) == ("higher", 8)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--value", "nope"], "--value 'nope' is not a column of"),
        (["--value", "status"], "line 2: status is 'success', which is not a number"),
        (
            ["--value", "execution_latency_ms", "--group", "x"],
            "columns: trial_id, scenario, status, planning_latency_ms",
        ),
        ([], "--value is missing"),
        (["--value", "execution_latency_ms", "--baseline", "q"], "groups: baseline, cpu_load, msg_load"),
        (["--value", "execution_latency_ms", "--bogus"], "--bogus"),
        (["--value", "execution_latency_ms", "--margin", "5x"], "--margin '5x' is not a valid difference"),
        (["--value", "execution_latency_ms", "--margin", "0"], "--margin '0' is not a valid difference"),
        (["--value", "execution_latency_ms", "--alpha", "2"], "--alpha 2 is not a valid rate"),
        (["--value", "execution_latency_ms", "--where", "status == 'q'"], "matches none of the 32"),
        (["--value", "execution_latency_ms", "--mean", "x"], "--mean goes with --from-summary"),
        (["--from-summary"], "no column of"),
    ],
)
def test_wrong_options_are_refused_in_one_line(capsys: Captured, arguments: list[str], said: str) -> None:
    group = [] if "--group" in arguments else ["--group", "scenario"]
    assert said in refusal(capsys, TRIALS, *group, *arguments)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"a,b\n", "has a header and no rows"),
        (b"a,a\n1,2\n", "two columns are called 'a'"),
        (b"a,\n1,2\n", "column 2 has no name"),
        (b"a,b\n1,2\n1,2,3\n", "line 3: 3 cells, but the header has 2 columns"),
        (b"a,b\nx,\xff\n", "is not UTF-8 text"),
        (b"a,b\nx,1\ny,\n", "group 'y' has no value of b in its 1 rows"),
        (b"a,b\nx,1\n,2\n", "line 3: a is empty"),
        (b"a,b\nx,inf\n", "line 2: b is 'inf', which is not finite"),
        (
            b"a,b\nx,1\ny,1e300\n",
            "line 3: b is '1e300', which is not within 1e-60 and 1e+60; use another unit for the column",
        ),
        (
            b"a,b\nx,-1e-310\n",
            "line 2: b is '-1e-310', which is not within 1e-60 and 1e+60; use another unit for the column",
        ),
        (b'a,b\nx,"1\n', "line 2"),
    ],
)
def test_wrong_tables_are_refused_in_one_line(tmp_path: Path, capsys: Captured, content: bytes, said: str) -> None:
    table = tmp_path / "table.csv"
    table.write_bytes(content)
    assert said in refusal(capsys, table, "--group", "a", "--value", "b")
    assert "cannot read" in refusal(capsys, tmp_path / "none.csv", "--group", "a", "--value", "b")


def test_wrong_summaries_are_refused(tmp_path: Path, capsys: Captured) -> None:
    table = tmp_path / "table.csv"
    for row, said in (
        ("x,1,-2,5", "sd must not be negative"),
        ("x,1,2,2.5", "not a whole number"),
        ("x,,2,5", "no row has"),
    ):
        table.write_text(f"g,mean,sd,n\n{row}\n")
        assert said in refusal(capsys, table, "--group", "g", "--from-summary")
    table.write_text("g,mean,sd,n\nx,1,1,5\nx,2,1,5\n")
    assert "'x' was there before" in refusal(capsys, table, "--group", "g", "--from-summary")


@pytest.mark.parametrize(
    ("expression", "count"),
    [
        ("status == 'success'", 22),
        ("status != 'success'", 10),
        ("not status == 'success'", 10),
        ("scenario in ('baseline', 'cpu_load') and execution_latency_ms < 500", 6),
        ("scenario not in ['baseline']", 21),
        ("execution_latency_ms > 700 or (planning_latency_ms >= 22 and scenario == 'msg_load')", 3),
        ("trial_id endswith '_profiled'", 2),
        ("trial_id not endswith '_profiled'", 30),
        ("trial_id startswith 'cpu' and trial_id contains '00'", 9),
        ("500 < execution_latency_ms <= 561.46", 11),
        ("planning_latency_ms == 12.950", 1),
        ("col('status') == 'success'", 22),
        ("execution_latency_ms > -1", 32),
        ("scenario == 5", 0),
    ],
)
def test_where_takes_the_rows_it_describes(expression: str, count: int) -> None:
    table = read_table(TRIALS)
    assert len(table.where(parse_where(expression, table)).rows) == count


@pytest.mark.parametrize(
    "expression",
    [
        "", "status", "status ==", "status == success", "open('x')", "status.upper() == 'X'", "__import__('os')",
        "(lambda: 1)() == 1", "status == 'a' + 'b'", "status in 'success'", "[x for x in (1,)] == 1", "status == `x`",
        "status is 'x'", "status == True", "1", "(" * 500, "status endswith", "status == 'x'; 1", "a" * 3000,
    ],
)  # fmt: skip
def test_where_refuses_what_it_does_not_know(expression: str) -> None:
    table = read_table(TRIALS)
    with pytest.raises(BadInput, match="--where") as refused:
        parse_where(expression, table)
    assert "\n" not in str(refused.value)


def test_where_names_the_row_that_cannot_be_ordered() -> None:
    table = read_table(TRIALS)
    with pytest.raises(BadInput, match="line 2: --where compares 'success' with a number"):
        table.where(parse_where("status < 3", table))


def said(a: list[float], b: list[float], **options: Any) -> str:
    one = Sample.of(a, [f"base {i}" for i in range(len(a))], name="baseline")
    return verdicts.in_words(compare(one, Sample.of(b, name="flood"), metric="p99", **options))


def test_words_are_honest() -> None:
    a = [100.0, 101, 102, 103, 104, 105, 106, 107]
    double = [x * 2.1 for x in a]
    assert said(a, double) == "p99 flood against baseline: 2.10x [2.04, 2.16] higher, n = 8 and 8, p = 0.00016."
    assert "lower" in said(double, a)
    assert said(a, [x + 0.1 for x in a], margin=Margin(0.05, relative=True)).startswith(
        "p99 flood against baseline: no difference larger than 5 % ("
    )
    assert "too few trials: with 3 and 3 no test can reach 0.05" in said(a[:3], double[:3])
    assert "no difference is shown" in said(a, [x + 0.5 for x in a])
    assert "identical in every trial, 0 (n = 5 and 5)" in said([0.0] * 5, [0.0] * 5)
    assert "no more than the baseline differs from itself" in said(a, [x * 1.1 for x in a], noise_floor=1.5)


def test_words_say_when_one_trial_carries_a_claim() -> None:
    base = [10.0, 10.1, 10.2, 10.3, 10.4, 10.5, 10.6, 10.7]
    carried = [9.0, 9.1, 10.55, 10.75, 10.8, 10.9, 11.0, 11.1]
    one, other = Sample.of(base, name="a"), Sample.of(carried, [f"t{i}" for i in range(8)], name="b")
    c = compare(one, other)
    assert c.verdict == "not_shown"
    assert {flip.label for flip in c.influence.flips} == {"t0", "t1"}
    clear = compare(one, Sample.of([x + 5 for x in base], name="b"))
    assert (clear.verdict, clear.influence.flips, clear.influence.carries) == ("higher", (), None)
    few = compare(Sample.of([10.0, 11, 12, 13, 14], name="a"), Sample.of([12.5, 15, 16, 17, 18], name="b"))
    assert (few.verdict, len(few.influence.flips), few.influence.carries) == ("higher", 7, None)
    assert "it is borderline: without any one of 7 trials no difference is shown" in verdicts.in_words(few)


def test_words_say_that_a_family_took_a_claim_away() -> None:
    a, b = [10.0, 11.0, 12.0, 13.0, 14.0, 15.0], [14.5, 13.5, 15.5, 16.0, 17.0, 13.6]
    one = compare(Sample.of(a, name="a"), Sample.of(b, name="b"))
    assert one.verdict == "higher"
    many = corrected([one, *[compare(Sample.of(a, name="a"), Sample.of(a, name="c"))] * 9])[0]
    assert many.verdict == "not_shown"
    assert "by itself, but it is one of 10 comparisons" in verdicts.in_words(many)
