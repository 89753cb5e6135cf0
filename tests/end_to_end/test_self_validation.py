"""Measurements compared with known values: published counts, and simulated disturbances."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.marks import long_but

from .conftest import Json, Run, edges_by_name

KINDS = ("offered", "lost", "reordered", "duplicated")
HISTOGRAM_ERROR = 1 / 1024
# Between sim's own clock reading at delivery and perflab's at callback entry lie two readings and a call. The smallest
# of some hundred values is compared, so that no preemption is in it.
CLOCK_AND_CALL_NS = 50_000


def injected(run: Path) -> Json:
    """What the simulator says it did in the first trial, added up over processes: counts, and its own delays."""
    total: Json = dict.fromkeys(KINDS, 0) | {"delay_min_ns": [], "delay_max_ns": []}
    for file in (run / "trials" / "0001_baseline" / "processes").glob("*.jsonl"):
        records = [json.loads(line) for line in file.read_text().splitlines()]
        said = next(r for r in records if r["type"] == "process_end")["middleware"]["effective"]["injected"]
        for edge in said["per_edge"]:
            for kind in KINDS:
                total[kind] += edge[kind]
        if said["delay_ns"]["count"]:
            total["delay_min_ns"].append(said["delay_ns"]["min"])
            total["delay_max_ns"].append(said["delay_ns"]["max"])
    return total


@pytest.mark.long
@pytest.mark.parametrize("executor", ["inline", "single_threaded"])
def test_sierra_nevada_for_ten_seconds_delivers_exactly_10540_messages(run: Run, tmp_path: Path, executor: str) -> None:
    done = run("run", "sierra_nevada", "-t", "10", "--executor", executor, "-o", tmp_path / "run", "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    totals = summary["results"][0]["totals"]
    assert (totals["published"], totals["sent"], totals["received"]) == (6_540, 10_540, 10_540)
    assert totals["lost"] == {"pre_match": 0, "gap": 0, "tail": 0}
    frequencies = {key: edge["frequency_hz"] for key, edge in edges_by_name(summary).items()}
    assert {key: edge["received"] for key, edge in edges_by_name(summary).items()} == {
        key: round(10 * frequency) for key, frequency in frequencies.items()
    }


@pytest.mark.parametrize("middleware", long_but(["sim", "cyclonedds"], ["sim", "cyclonedds", "fastdds"]))
def test_every_disturbance_is_counted_in_its_own_class(
    run: Run, pingpong: Path, tmp_path: Path, middleware: str
) -> None:
    out = tmp_path / "run"
    options = ["loss=0.05", "reorder_every=7", "duplicate_every=11", "delay=2ms", "seed=4"]
    arguments = [argument for option in options for argument in ("--middleware-option", f"disturb.{option}")]
    done = run("run", pingpong, "-t", "4", "--middleware", middleware, *arguments, "-o", out, "--json")
    assert done.returncode == 0, done.stderr
    totals = json.loads(done.stdout)["results"][0]["totals"]
    did = injected(out)
    assert did["lost"] > 0
    assert did["reordered"] > 0
    assert did["duplicated"] > 0
    assert totals["sent"] == did["offered"]
    assert totals["lost"]["pre_match"] == 0
    assert totals["lost"]["gap"] + totals["lost"]["tail"] == did["lost"]
    assert totals["received"] == did["offered"] - did["lost"]
    assert totals["reordered"] == did["reordered"]
    assert totals["duplicate"] == did["duplicated"]


@pytest.mark.parametrize("delay", ["500us", "5ms"])
def test_measured_latency_is_the_injected_delay(run: Run, pingpong: Path, tmp_path: Path, delay: str) -> None:
    out = tmp_path / "run"
    options = ["--middleware-option", f"delay={delay}", "--executor", "inline"]
    done = run("run", pingpong, "-t", "2", "--middleware", "sim", *options, "-o", out, "--json")
    assert done.returncode == 0, done.stderr
    latency = json.loads(done.stdout)["results"][0]["totals"]["latency_ns"]
    programmed = {"500us": 500_000, "5ms": 5_000_000}[delay]
    smallest = min(injected(out)["delay_min_ns"])
    assert programmed <= latency["min"]
    assert abs(latency["min"] - smallest) <= CLOCK_AND_CALL_NS
    # At least half of the messages were no later than the simulator's own latest one, on its own clock.
    largest = max(injected(out)["delay_max_ns"])
    assert programmed <= latency["p50"] <= (largest + CLOCK_AND_CALL_NS) * (1 + HISTOGRAM_ERROR)


def test_what_is_sent_before_the_match_is_neither_gap_nor_tail(run: Run, pingpong: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    # Longer than the lead of the start on a machine that is busy.
    options = ["--middleware-option", "match_delay=5s", "--middleware-option", "delay=0ns", "--discovery-timeout", "0"]
    done = run("run", pingpong, "-t", "7", "--middleware", "sim", *options, "-o", out, "--json")
    assert done.returncode == 0, done.stderr
    totals = json.loads(done.stdout)["results"][0]["totals"]
    assert totals["lost"]["pre_match"] > 0
    assert totals["lost"]["gap"] == totals["lost"]["tail"] == 0
    # The simulator was offered a message for an edge only once that edge was matched.
    assert totals["sent"] - totals["lost"]["pre_match"] == totals["received"] == injected(out)["offered"]
