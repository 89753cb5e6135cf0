"""`perflab compare` of runs with several trials: what is more than chance."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_experiment import Effect, Made, read_results, write_run
from support import SOURCE

from perflab.cli import main
from perflab.statistics.selection import match

Captured = pytest.CaptureFixture[str]
Json = dict[str, Any]

PLAIN = Made(blocks=8)
CHANCE = "whether a difference is more than chance"


def compared(capsys: Captured, *arguments: str | Path) -> Json:
    assert main(["compare", *map(str, arguments), "--metric", "latency.p99", "--json"]) == 0
    document: Json = json.loads(capsys.readouterr().out)
    return document


def other(effect: Effect, made: Made = PLAIN, middleware: str = "cyclonedds") -> Made:
    return replace(made, variants={middleware: effect}, seed=2)


def test_runs_are_compared_result_by_result(tmp_path: Path, capsys: Captured) -> None:
    made = replace(PLAIN, treatments={"cpu_load": Effect(latency=2)})
    one = write_run(tmp_path / "one", made.summary())
    two = write_run(tmp_path / "two", other(Effect(latency=1.5), made).summary())
    document = compared(capsys, one, two)
    statistics = document["statistics"]
    assert statistics["tested"]
    assert not any(CHANCE in note for note in document["notes"])
    found = {c["result"]: c for c in statistics["comparisons"]}
    assert set(found) == {"baseline", "cpu_load"}
    for c in found.values():
        assert (c["verdict"], c["effect"], c["blocks"], c["family_size"]) == ("higher", "worse", None, 2)
        assert c["estimate"]["value"] == pytest.approx(1.5, rel=0.05)
        assert c["words"].startswith(f"{c['result']}: latency p99, two against one: 1.")


def test_what_another_program_did_not_record_is_not_none(tmp_path: Path, capsys: Captured) -> None:
    one = write_run(tmp_path / "one", PLAIN.summary())
    document = compared(capsys, one, SOURCE / "tests/data/irobot/csv")
    (differing,) = [r for r in document["statistics"]["remarks"] if r.startswith("one and csv differ in")]
    assert "middleware: cyclonedds and not recorded" in differing
    assert "executor: as in the graph and single_threaded" in differing
    assert "none" not in differing


@pytest.mark.parametrize(
    ("key", "own", "other", "words"),
    [
        ("observers", ["monitor"], [], "observers: monitor and none"),
        ("observers", ["monitor"], None, "observers: monitor and not recorded"),
        ("ipc", "on", None, "ipc: on and not recorded"),
        ("factors", {"workload.nodes": 5}, {}, "factors: workload.nodes=5 and none"),
        ("pass_by", "unique", "shared", "pass_by: unique and shared"),
    ],
)
def test_two_results_say_what_they_differ_in(key: str, own: Any, other: Any, words: str) -> None:
    """`None` stands for a result of another program, which has no such key and no purpose."""
    first, second = (dict(PLAIN.summary()["results"][0], **{key: value}) for value in (own, other))
    if other is None:
        del second["purpose"], second[key]
    (pair,) = match(*(read_results([made]) for made in (first, second))).pairs
    assert pair.differing == (words,)


def test_runs_that_are_alike_are_shown_to_be(tmp_path: Path, capsys: Captured) -> None:
    quiet = replace(PLAIN, spread=0.005)
    one = write_run(tmp_path / "one", quiet.summary())
    two = write_run(tmp_path / "two", other(Effect(), quiet).summary())
    assert compared(capsys, one, two)["statistics"]["comparisons"][0]["verdict"] == "equivalent"
    assert main(["compare", str(one), str(two), "--metric", "latency.p99"]) == 0
    out = capsys.readouterr().out
    assert "- no difference larger than 5 %: two against one, cyclonedds: latency p99\n" in out
    assert CHANCE not in out


def test_other_variants_are_compared_where_each_run_has_one(tmp_path: Path, capsys: Captured) -> None:
    one = write_run(tmp_path / "one", PLAIN.summary())
    two = write_run(tmp_path / "two", other(Effect(latency=0.5), middleware="fastdds").summary())
    statistics = compared(capsys, one, two)["statistics"]
    assert statistics["comparisons"][0]["effect"] == "better"
    assert statistics["remarks"] == ["one and two differ in middleware: cyclonedds and fastdds"]


def test_one_trial_each_says_that_nothing_can_be_said(tmp_path: Path, capsys: Captured) -> None:
    one = write_run(tmp_path / "one", replace(PLAIN, blocks=1).summary())
    two = write_run(tmp_path / "two", replace(other(Effect(latency=9)), blocks=1).summary())
    document = compared(capsys, one, two)
    assert not document["statistics"]["tested"]
    assert (
        "no statements about differences are possible; use --trials 5 or more" in document["statistics"]["remarks"][0]
    )
    assert main(["compare", str(one), str(two)]) == 0
    out = capsys.readouterr().out
    assert CHANCE in out
    assert "no statements about differences" in out


def test_the_results_of_one_run_are_compared_as_its_findings(tmp_path: Path, capsys: Captured) -> None:
    run = write_run(tmp_path / "run", replace(PLAIN, treatments={"cpu_load": Effect(latency=2)}).summary())
    statistics = compared(capsys, run)["statistics"]
    assert statistics["findings"]["comparisons"][0]["effect"] == "worse"
    assert main(["compare", str(run), "--metric", "latency.p99"]) == 0
    assert "- latency p99, cpu_load against baseline: " in capsys.readouterr().out


def test_only_simulated_runs_of_one_seed_are_paired(tmp_path: Path, capsys: Captured) -> None:
    def run(name: str, seed: int, middleware: str) -> Path:
        made = replace(PLAIN, variants={middleware: Effect()}, drift=0.5).summary()
        return write_run(tmp_path / name, made, settings={"seed": seed})

    def blocks(one: Path, two: Path) -> int | None:
        found: int | None = compared(capsys, one, two)["statistics"]["comparisons"][0]["blocks"]
        return found

    assert blocks(run("a", 1, "virtual"), run("b", 1, "virtual")) == 8
    assert blocks(run("c", 1, "virtual"), run("d", 2, "virtual")) is None
    assert blocks(run("e", 1, "cyclonedds"), run("f", 1, "cyclonedds")) is None


def test_runs_with_nothing_in_common_say_so(tmp_path: Path, capsys: Captured) -> None:
    two_variants = {"cyclonedds": Effect(), "fastdds": Effect()}
    one = write_run(tmp_path / "one", replace(PLAIN, variants=two_variants, blocks=2).summary())
    two = write_run(tmp_path / "two", replace(other(Effect()), variants={"sim": Effect()}, blocks=2).summary())
    statistics = compared(capsys, one, two)["statistics"]
    assert statistics["remarks"] == ["two measured nothing that one measured: nothing to test"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--margin", "x"], "--margin 'x' is not"),
        (["--alpha", "0"], "--alpha 0 must be more than 0"),
        (["--metric", "x"], "no metric"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, capsys: Captured, arguments: list[str], complaint: str) -> None:
    run = write_run(tmp_path / "run", replace(PLAIN, blocks=1).summary())
    assert main(["compare", str(run), str(run), *arguments]) == 2
    error = capsys.readouterr().err
    assert complaint in error
    assert error.count("\n") == 1


def test_trials_of_different_lengths_are_not_tested(tmp_path: Path, capsys: Captured) -> None:
    longer = other(Effect(latency=2)).summary()
    for result in longer["results"]:
        result["duration_s"] = 5.0
    one = write_run(tmp_path / "one", PLAIN.summary())
    two = write_run(tmp_path / "two", longer)
    statistics = compared(capsys, one, two)["statistics"]
    assert not statistics["tested"]
    assert statistics["comparisons"] == []
    assert statistics["remarks"] == [
        "cyclonedds: two cannot be tested against one: a trial lasts 5 s, in the first run 2 s"
    ]
