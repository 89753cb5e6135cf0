"""Real trials: exact counts, and a run directory that tells all of it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import polars as pl
import pytest
from hdrh.histogram import HdrHistogram

from tests.schemas import published

from .conftest import NATIVE, Run, command, edges_by_name, environment


@pytest.mark.parametrize("middleware", ["cyclonedds", "virtual"])
@pytest.mark.parametrize("executor", ["inline", "single_threaded"])
def test_sierra_nevada_counts_are_exact(run: Run, tmp_path: Path, middleware: str, executor: str) -> None:
    out = tmp_path / "run"
    done = run(
        "run", "sierra_nevada", "-t", "3", "--middleware", middleware, "--executor", executor, "-o", out, "--json"
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    summary = json.loads(done.stdout)
    published("summary").validate(summary)
    assert summary["valid"] is True
    totals = summary["results"][0]["totals"]
    assert totals["received"] == totals["sent"] == 1054 * 3
    assert totals["published"] == 654 * 3
    assert totals["lost"] == {"pre_match": 0, "gap": 0, "tail": 0}
    assert totals["duplicate"] == totals["write_errors"] == totals["not_sent"] == 0
    edges = edges_by_name(summary)
    assert len(edges) == 17
    graph = json.loads((out / "manifest.json").read_text())["workload"]["graph"]
    periods = {
        (node["name"], node["publishers"][index]["topic"].removeprefix("/")): timer["period_ns"]
        for process in graph["processes"]
        for node in process["nodes"]
        for timer in node["timers"]
        for index in timer["publish"]
    }
    for (publisher, topic, _), edge in edges.items():
        assert edge["received"] == 3_000_000_000 // periods[publisher, topic]
        assert edge["latency_ns"]["count"] == edge["response_ns"]["count"] == edge["received"]
        assert edge["on_time"] + edge["late"] + edge["too_late"] == edge["received"]


LOOP = """\
name: loop
nodes:
  - name: start
    publishers: [{topic: tick, type: stamped_int64, period: 100ms}]
  - name: a
    subscriptions: [{topic: tick, type: stamped_int64}, {topic: y, type: stamped_int64}]
    publishers: [{topic: x, type: stamped_int64}]
    reactions: [{kind: fusion, on: [tick, y], publish: x}]
  - name: b
    subscriptions: [{topic: x, type: stamped_int64}]
    publishers: [{topic: y, type: stamped_int64}]
    reactions: [{kind: transform, on: x, publish: y}]
"""


def test_warm_up_is_not_counted(run: Run, tmp_path: Path) -> None:
    done = run("run", "sierra_nevada", "-t", "1", "--warmup", "1", "-o", tmp_path / "run", "--json")
    assert done.returncode == 0, done.stderr
    totals = json.loads(done.stdout)["results"][0]["totals"]
    assert totals["received"] == totals["sent"] == totals["latency_ns"]["count"] == 1054
    assert 0 <= totals["latency_ns"]["max_at_s"] <= 2
    edges = pl.read_parquet(tmp_path / "run/trials/0001_baseline/edges.parquet")
    assert edges["warmup_received"].sum() == 1054
    assert (edges["first_sequence"] == 0).all()  # numbered apart from warm-up


def test_processes_of_a_graph_find_each_other(run: Run, pingpong: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = run("run", pingpong, "-t", "2", "--trials", "2", "-o", out, "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)["results"][0]
    assert result["totals"]["received"] == result["totals"]["sent"] == 2 * 2 * 200
    assert {p["process"] for p in result["resources"]["processes"]} == {"ping", "pong"}
    assert all(p["rss_kb_max"] > 0 and p["cpu_percent_mean"] >= 0 for p in result["resources"]["processes"])
    edges = edges_by_name({"results": [result]})
    forth = edges["ping", "ping", "pong"]["response_ns"]
    back = edges["pong", "pong", "ping"]["response_ns"]
    # The answer inherits the intended time of the question, so its response spans both ways.
    assert back["min"] >= forth["min"]
    trials = [json.loads(p.read_text()) for p in sorted(out.glob("trials/*/trial.json"))]
    assert trials[0]["domain"] != trials[1]["domain"]
    assert [t["drain"] for t in trials] == ["rest", "rest"]


def test_several_files_are_one_graph(run: Run, tmp_path: Path) -> None:
    graphs = ("sierra_nevada", "debug_sierra_nevada_reliable")
    done = run("run", *graphs, "--middleware", "virtual", "-t", "1", "-o", tmp_path / "run", "--json")
    assert done.returncode == 0, done.stderr
    totals = json.loads(done.stdout)["results"][0]["totals"]
    assert totals["received"] == totals["sent"] == 1054 + 654


def test_histograms_are_readable_by_any_hdrhistogram(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert run("run", "sierra_nevada", "-t", "1", "-o", out, "-q").returncode == 0
    edges = pl.read_parquet(out / "trials/0001_baseline/edges.parquet")
    summary = json.loads((out / "summary.json").read_text())
    for row, edge in zip(edges.iter_rows(named=True), summary["results"][0]["edges"], strict=True):
        peer = HdrHistogram.decode(row["latency_v2"])
        assert peer.get_total_count() == row["latency_count"] == edge["latency_ns"]["count"]
        for name, percentile in (("p50", 50), ("p90", 90), ("p99", 99), ("p99_9", 99.9)):
            expected = min(peer.get_value_at_percentile(percentile), row["latency_max"])
            assert edge["latency_ns"][name] == expected


def test_two_runs_at_the_same_time_never_meet(pingpong: Path, tmp_path: Path) -> None:
    outs = [tmp_path / "a", tmp_path / "b"]
    processes = [
        subprocess.Popen(
            command("run", pingpong, "-t", "2", "-o", out, "-q"), env=environment(), stdout=subprocess.DEVNULL
        )
        for out in outs
    ]
    assert [p.wait(timeout=240) for p in processes] == [0, 0]
    domains = set()
    for out in outs:
        totals = json.loads((out / "summary.json").read_text())["results"][0]["totals"]
        assert totals["received"] == totals["sent"] == 400
        trial = json.loads((out / "trials/0001_baseline/trial.json").read_text())
        domains.add(trial["domain"])
        for record in out.glob("trials/*/processes/*.jsonl"):
            lines = [json.loads(line) for line in record.read_text().splitlines()]
            last = [line for line in lines if line["type"] == "checkpoint"][-1]
            assert (last["foreign_messages"], last["malformed_messages"]) == (0, 0)
    assert len(domains) == 2


def test_virtual_time_is_the_same_for_the_same_seed(run: Run, tmp_path: Path) -> None:
    summaries = []
    for name in ("a", "b"):
        done = run("run", "mont_blanc", "-t", "120", "--middleware", "virtual", "-o", tmp_path / name, "--json")
        assert done.returncode == 0, done.stderr
        summaries.append(json.loads(done.stdout)["results"])
    assert summaries[0][0]["totals"]["received"] == 151_560
    assert summaries[0] == summaries[1]


@pytest.mark.parametrize("middleware", ["sim", "virtual"])
def test_what_is_injected_is_what_is_measured(run: Run, pingpong: Path, tmp_path: Path, middleware: str) -> None:
    options = ["--middleware-option", "loss_every=10", "--middleware-option", f"{middleware}.delay=20ms"]
    done = run("run", pingpong, "-t", "2", "--middleware", middleware, *options, "-o", tmp_path / "run", "--json")
    assert done.returncode == 0, done.stderr
    edges = edges_by_name(json.loads(done.stdout))
    forth, back = edges["ping", "ping", "pong"], edges["pong", "pong", "ping"]
    assert (forth["sent"], forth["received"], forth["lost"]) == (200, 180, {"pre_match": 0, "gap": 19, "tail": 1})
    assert (back["sent"], back["received"], back["lost"]) == (180, 162, {"pre_match": 0, "gap": 17, "tail": 1})
    assert forth["latency_ns"]["min"] >= 20_000_000
    # The answer inherits the intended time of the question, so its response spans both ways.
    assert back["response_ns"]["min"] >= 40_000_000


def test_what_the_node_refuses_is_bad_input_and_leaves_nothing(run: Run, tmp_path: Path) -> None:
    done = run("run", "sierra_nevada", "--middleware-option", "no_such_option=1", "-o", tmp_path / "run")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "no_such_option" in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_graph_error_is_passed_through(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("name: x\nprocesses: []\nwhat: 1\n")
    done = run("run", tmp_path / "bad.yaml")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "bad.yaml:" in done.stderr


def test_list_and_doctor_know_the_native_programs(run: Run) -> None:
    topologies = {t["name"]: t for t in json.loads(run("list", "topologies", "--json").stdout)}
    assert topologies["sierra_nevada"]["graph"]["delivered_per_s"] == pytest.approx(1054)
    messages = [m["name"] for m in json.loads(run("list", "messages", "--json").stdout)]
    assert "stamped_vector" in messages
    health = json.loads(run("doctor", "--json").stdout)
    assert [p["available"] for p in health["programs"]] == [True, True]
    cyclone = next(m for m in health["middlewares"] if m["name"] == "cyclonedds")
    assert cyclone["available"] == (Path(NATIVE) / "middleware/cyclonedds.so").is_file()


@pytest.mark.parametrize("option", ["sim.loss=2", "sim.no_such_option=1"])
def test_a_later_middleware_is_judged_before_the_first_trial(run: Run, tmp_path: Path, option: str) -> None:
    out = tmp_path / "new" / "run"
    started = ("run", "sierra_nevada", "--middleware", "cyclonedds,sim", "--middleware-option", option, "-t", "600")
    done = run(*started, "-o", out)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert not out.parent.exists()


def test_a_configuration_that_cyclone_cannot_read_is_bad_input(run: Run, tmp_path: Path) -> None:
    done = run("run", "sierra_nevada", "--middleware-option", "config=<foo", "-o", tmp_path / "new" / "run")
    assert done.returncode == 2
    assert "parser error" in done.stderr
    assert not (tmp_path / "new").exists()


def test_what_is_no_regular_file_is_refused_at_once(run: Run, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.yaml")
    for path in ("/dev/zero", tmp_path / "fifo.yaml", "/dev/stdin"):
        done = run("run", path)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert "not a regular file" in done.stderr


def test_an_inline_loop_is_bad_input(run: Run, tmp_path: Path) -> None:
    (tmp_path / "loop.yaml").write_text(LOOP)
    assert run("run", tmp_path / "loop.yaml", "-t", "0.5", "-q").returncode == 0
    done = run("run", tmp_path / "loop.yaml", "-t", "0.5", "--executor", "inline", "-o", tmp_path / "run")
    assert done.returncode == 2
    assert "inline" in done.stderr
    assert not (tmp_path / "run").exists()
