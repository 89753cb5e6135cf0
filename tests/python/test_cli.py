"""The command line as a user meets it: exit codes, one line per error, nothing written by what is refused."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from conftest import Perflab
from support import build_plugin, graph, node, two_processes
from test_trial import is_gone

from perflab.cli import main
from perflab.experiment.domain import hold_this
from tests.marks import long_but
from tests.schemas import published


def one_line(text: str) -> str:
    assert text.startswith("perflab: "), text
    assert text.count("\n") == 1, text
    assert text.endswith("\n")
    return text


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "Missing command"),
        (["walk"], "walk"),
        (["run"], "name a workload"),
        (["run", "GRAPH", "--walk"], "--walk"),
        (["run", "GRAPH", "--trials", "x"], "--trials"),
        (["run", "GRAPH", "--trials", "0"], "--trials 0 must be at least 1"),
        (
            ["run", "GRAPH", "--time", "0", "--trials", "2"],
            "--time 0 runs one trial until it is stopped, but this experiment has 2; use a duration, or one "
            "variant and one trial",
        ),
        (
            ["run", "GRAPH", "--time", "0", "--middleware", "virtual"],
            "--time 0 runs until it is stopped, but virtual time does not wait for anybody",
        ),
        (
            ["run", "GRAPH", "--time", "0", "--quick"],
            "--quick takes a minute, but with a time of 0 its length is unknown",
        ),
        (["run", "GRAPH", "--time", "-1"], "--time '-1' is not a duration"),
        (["run", "GRAPH", "--time", "nan"], "is not a duration"),
        (["run", "GRAPH", "--time", "10 minutes"], "is not a duration"),
        (["run", "GRAPH", "--time", "8000h"], "longer than the 7 days"),
        (["run", "GRAPH", "--warmup", "-1"], "--warmup"),
        (["run", "GRAPH", "--sampling", "1ms"], "--sampling 1.00 ms is shorter than"),
        (
            ["run", "GRAPH", "--measure", "work,latency"],
            "--measure 'latency' is not a figure; choose from dispatch, work, loops",
        ),
        (["run", "GRAPH", "--middleware", "cyclonedd"], "unknown middleware 'cyclonedd'; did you mean cyclonedds?"),
        (["run", "GRAPH", "--middleware", "sim,sim"], "names one twice"),
        (["run", "GRAPH", "--middleware", ""], "unknown middleware ''"),
        (["run", "GRAPH", "--middleware", "sim"], "does not connect processes"),
        (["run", "GRAPH", "--middleware-option", "novalue"], "'novalue' is not [NAME.]KEY=VALUE"),
        (["run", "GRAPH", "--middleware-option", "sim.a=b"], "is for sim, which --middleware does not name"),
        (["run", "GRAPH", "--middleware-option", "fake=bad_option"], "fake: bad_option"),
        (["run", "GRAPH", "--middleware", "cyclonedds+sim"], "cyclonedds and sim have different wire"),
        (["run", "GRAPH", "--executor", "magic"], "unknown executor 'magic'"),
        (["run", "GRAPH", "--executor", "inline:2"], "only multi_threaded has a number of threads"),
        (["run", "GRAPH", "--ipc", "maybe"], "--ipc 'maybe' is not on or off"),
        (["run", "GRAPH", "--ipc", "on,on"], "--ipc 'on,on' names one twice"),
        (
            ["run", "GRAPH", "--ipc", "off,on"],
            "--ipc on has no effect: no topic, service or action of small has both",
        ),
        (["run", "GRAPH", "--pass-by", "hand"], "--pass-by 'hand' is not shared, unique or loaned"),
        (
            ["run", "GRAPH", "--pass-by", "unique"],
            "--pass-by unique has no effect: no message of small is deliver",
        ),
        (["run", "GRAPH", "--service-framing", "x"], "--service-framing 'x' is not rmw_fastrtps or rmw_cyclonedds"),
        (["run", "GRAPH", "--thread", "pang.executors=RR:1"], "no process named 'pang'; there are ping, pong"),
        (["run", "GRAPH", "--thread", "executors=RR"], "the priority is missing within 1..99"),
        (["run", "GRAPH", "--lock-memory", "maybe"], "--lock-memory 'maybe' is not on or off"),
        (["run", "GRAPH", "--name-threads", "1"], "--name-threads '1' is not on or off"),
        (["run", "GRAPH", "--ros-params", "x"], "--ros-params 'x' is not on or off"),
        (["run", "GRAPH", "--node-type", "x"], "--node-type 'x' is not node or lifecycle"),
        (["run", "GRAPH", "--domain", "233"], "--domain 233 must be at most 232"),
        (["run", "GRAPH", "--domain", "1", "--middleware", "virtual"], "--domain: virtual time has no DDS domains"),
        (["run", "GRAPH", "--network", "eth99"], "no network interface 'eth99'; choose from lo"),
        (["run", "GRAPH", "--late-percentage", "-1"], "--late-percentage -1% must be at least 0%"),
        (["run", "GRAPH", "--too-late-absolute", "inf"], "--too-late-absolute inf is not a number"),
        (["run", "GRAPH", "--late-absolute", "5ms"], "--late-absolute 5ms is not a number from 0 to 1e+12"),
        (["run", "GRAPH", "--alpha", "x"], "--alpha 'x' is not a number"),
        (["run", "GRAPH", "--order", "x"], "--order 'x' is not randomised or as_written"),
        (["run", "GRAPH", "--progress", "x"], "--progress 'x' is not auto, lines, seconds or off"),
        (["run", "GRAPH", "--stop", "SIGINT"], "--stop is for a command; write the command after --"),
        (["run", "GRAPH", "--factor", "workload.rate=1,2"], "factor workload.rate is now called workload.timer_speed"),
        (["run", "GRAPH", "--seed", "-1"], "--seed -1 must be at least 0"),
        (["run", "GRAPH", "--condition", "gremlins"], "no condition named 'gremlins'"),
        (["run", "GRAPH", "--observer", "gremlins:a=b"], "no observer named 'gremlins'"),
        (["run", "siera_nevada"], "no workload named 'siera_nevada'; did you mean sierra_nevada"),
        (["run", "./none.yaml"], "workload file './none.yaml' does not exist"),
        (["run", "BROKEN"], "broken.json:1: Expecting"),
        (["run", "EMPTY"], "no topic with a publisher and a subscription, and no service with a client"),
        (["run", "."], "workload file '.' does not exist|is a directory"),
        (["run", "GRAPH", "--output", "FULL"], "is not empty; name a new or an empty directory"),
        (["run", "GRAPH", "--output", "BELOW_FILE"], "small.json is not a directory"),
        (["run", "GRAPH", "--output", "GRAPH"], "is not a directory"),
        (["show"], "RUN"),
        (["show", "none"], "no run 'none'"),
        (["show", "FULL"], "is not a run directory: it has no manifest.json"),
        (["show", "GRAPH"], "is a file"),
        (["list", "gremlins"], "'gremlins' is not a list"),
        (["doctor", "now"], "now"),
    ],
)
def test_bad_input_is_one_line_and_exit_2_and_writes_nothing(
    graph_file: Path,
    tmp_path: Path,
    native_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    expected: str,
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").touch()
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "empty.json").write_text(json.dumps(graph({"p": [node("n", {"/t": 10})]})))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("PERFLAB_NATIVE", str(native_folder))
    words = {
        "GRAPH": graph_file,
        "BROKEN": tmp_path / "broken.json",
        "EMPTY": tmp_path / "empty.json",
        "FULL": tmp_path / "full",
        "BELOW_FILE": graph_file / "run",
    }
    assert main([str(words.get(a, a)) for a in arguments]) == 2
    printed = capsys.readouterr()
    assert re.search(re.escape(expected).replace(r"\|", "|"), one_line(printed.err))
    assert printed.out == ""
    assert list((tmp_path / "work/runs").glob("*")) == []
    assert sorted(p.name for p in (tmp_path / "full").iterdir()) == ["file"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--pass-by", "loaned"], "pass_by loaned: the double cannot lend messages"),
        (["--ros-params", "on"], "parameter services; use --middleware rclcpp"),
        (["--node-type", "lifecycle"], "lifecycle nodes; use --middleware rclcpp"),
        (["--service-framing", "rmw_fastrtps"], "middleware cyclonedds can only carry rmw_cyclonedds"),
        (["--middleware-option", "fake=unsupported"], "fake: unsupported"),
    ],
)
def test_what_this_machine_cannot_do_is_exit_3(
    perflab: Perflab, graph_file: Path, tmp_path: Path, arguments: list[str], expected: str
) -> None:
    done = perflab("run", graph_file, *arguments)
    assert (done.returncode, done.stdout) == (3, "")
    assert expected in one_line(done.stderr)
    assert list((tmp_path / "work/runs").glob("*")) == []


def in_one_process(graph_file: Path) -> Path:
    """The graph with the nodes of its second process in the first one."""
    document = json.loads(graph_file.read_text())
    first, second = document["processes"]
    first["nodes"] += second["nodes"]
    document["processes"] = [first]
    graph_file.write_text(json.dumps(document))
    return graph_file


def test_a_later_variant_is_judged_before_the_first_trial(perflab: Perflab, graph_file: Path, tmp_path: Path) -> None:
    variants = ("--executor", "inline,events", "--ipc", "on", "--pass-by", "unique,loaned")
    done = perflab("run", in_one_process(graph_file), "--time", "300", *variants)
    assert (done.returncode, done.stderr) == (3, "perflab: pass_by loaned: the double cannot lend messages\n")
    assert not (tmp_path / "work/runs").exists()


def test_the_virtual_middleware_has_no_threads(perflab: Perflab, graph_file: Path) -> None:
    for option in (["--thread", "executors=@0"], ["--lock-memory", "on"]):
        done = perflab("run", graph_file, "--middleware", "virtual", *option)
        assert done.returncode == 3
        assert "the virtual middleware has no threads" in one_line(done.stderr)


def test_missing_programs_and_plugins_name_the_command_that_builds_them(
    perflab: Perflab, graph_file: Path, tmp_path: Path, native_folder: Path
) -> None:
    done = perflab("run", graph_file, PERFLAB_NATIVE=str(tmp_path / "nowhere"))
    assert done.returncode == 3
    assert re.search("perflab-graph is not in .*nowhere; build it with `make`", one_line(done.stderr))
    partial = tmp_path / "partial"
    partial.mkdir()
    (partial / "perflab-graph").symlink_to(native_folder / "perflab-graph")
    done = perflab("run", graph_file, PERFLAB_NATIVE=str(partial))
    assert done.returncode == 3
    assert "cyclonedds.so is not in" in one_line(done.stderr)
    assert "apt install cyclonedds-dev" in done.stderr
    build_middleware = partial / "middleware"
    build_middleware.mkdir()
    build_plugin(build_middleware / "cyclonedds.so", "cyclonedds", abi=99)
    done = perflab("run", graph_file, PERFLAB_NATIVE=str(partial))
    assert done.returncode == 3
    assert "it was built for plug-in interface 99" in one_line(done.stderr)
    (build_middleware / "cyclonedds.so").write_text("not a library")
    done = perflab("run", graph_file, PERFLAB_NATIVE=str(partial))
    assert done.returncode == 3
    assert "cannot be used" in one_line(done.stderr)


def test_an_empty_output_directory_that_turns_out_to_be_for_nothing_is_left_empty(
    perflab: Perflab, graph_file: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine").mkdir()
    done = perflab("run", graph_file, "--middleware-option", "fake=bad_option", "--output", tmp_path / "mine")
    assert done.returncode == 2
    assert list((tmp_path / "mine").iterdir()) == []


def test_run_prints_a_report_and_where_it_is(perflab: Perflab, graph_file: Path, tmp_path: Path) -> None:
    done = perflab("run", graph_file, "--time", "500ms", "--output", tmp_path / "run")
    assert (done.returncode, done.stderr) == (0, "")
    assert "small on cyclonedds 0.0.1, baseline: 1 trial of 0.5 s, success" in done.stdout
    assert "125 of 125 messages received, 0 lost" in done.stdout
    assert "ping → listener" in done.stdout
    assert f"perflab show {tmp_path / 'run'}" in done.stdout
    assert "\x1b" not in done.stdout
    shown = perflab("show", tmp_path / "run")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "125 of 125 messages received, 0 lost" in shown.stdout


def test_json_is_the_summary_and_nothing_else(perflab: Perflab, graph_file: Path, tmp_path: Path) -> None:
    done = perflab("run", graph_file, "--time", "0.5", "--output", tmp_path / "run", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    summary = json.loads(done.stdout)
    published("summary").validate(summary)
    assert summary == json.loads((tmp_path / "run/summary.json").read_text())
    assert summary == json.loads(perflab("show", tmp_path / "run", "--json").stdout)
    assert summary["valid"] is True
    assert summary["results"][0]["totals"]["received"] == 125


def test_quiet_prints_the_run_directory_and_nothing_else(perflab: Perflab, graph_file: Path) -> None:
    done = perflab("run", graph_file, "--time", "0.2", "--quiet", "--sampling", "100ms", "--name", "a name/x")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"runs/\d{8}T\d{6}Z_a_name_x\n", done.stdout)


def test_all_trials_share_the_domain_that_was_chosen(perflab: Perflab, tmp_path: Path) -> None:
    chosen = 110 + os.getpid() % 120  # which no run takes by itself
    middlewares = ["--middleware", "sim,virtual"]
    file = tmp_path / "one.json"
    file.write_text(json.dumps(graph({"p": [node("a", {"/t": 10}), node("b", {}, ["/t"])]})))
    asked = ["run", file, "-t", "0.1", "--domain", str(chosen), "--trials", "2", "--cool-down", "0", "-q"]
    done = perflab(*asked, *middlewares, "-o", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    trials = [json.loads(p.read_text()) for p in sorted(tmp_path.glob("run/trials/*/trial.json"))]
    assert {(t["middleware"]["name"], t["domain"]) for t in trials} == {("sim", chosen), ("virtual", None)}
    with hold_this(chosen):
        done = perflab(*asked, "-o", tmp_path / "refused")
    assert done.returncode == 3
    assert done.stderr.splitlines()[-1].startswith(f"perflab: --domain {chosen}: another run holds it; wait for it")
    assert not (tmp_path / "refused").exists()


def test_trials_of_several_middlewares_are_interleaved(perflab: Perflab, tmp_path: Path) -> None:
    file = tmp_path / "one.json"
    file.write_text(json.dumps(graph({"p": [node("a", {"/t": 10}), node("b", {}, ["/t"])]})))
    out = tmp_path / "run"
    done = perflab(
        "run",
        file,
        "-t",
        "0.2",
        "-s",
        "0.1",
        "--middleware",
        "sim,virtual",
        "--trials",
        "2",
        "--seed",
        "5",
        "--order",
        "as_written",
        "-o",
        out,
        "-q",
    )
    assert done.returncode == 0, done.stderr
    trials = [json.loads(p.read_text()) for p in sorted(out.glob("trials/*/trial.json"))]
    assert [(t["order"], t["block"], t["middleware"]["name"]) for t in trials] == [
        (1, 1, "sim"),
        (2, 1, "virtual"),
        (3, 2, "sim"),
        (4, 2, "virtual"),
    ]
    assert trials[0]["domain"] != trials[2]["domain"]
    assert trials[1]["domain"] is None
    configs = [json.loads(p.read_text()) for p in sorted(out.glob("trials/*/processes/*.config.json"))]
    assert [c["seed"] for c in configs] == [5, 5, 6, 6]
    assert [c["process"] for c in configs] == ["p", None, "p", None]
    summary = json.loads((out / "summary.json").read_text())
    assert [(r["middleware"], r["trials"], r["totals"]["received"]) for r in summary["results"]] == [
        ("sim", 2, 40),
        ("virtual", 2, 40),
    ]


@pytest.mark.long
def test_every_combination_runs_and_is_a_result(perflab: Perflab, graph_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    variants = ["--executor", "events,multi_threaded:3", "--ipc", "off,on", "--pass-by", "unique"]
    done = perflab(
        "run", in_one_process(graph_file), "-t", "0.2", "-s", "0.1", *variants, "--trials", "2",
        "--order", "as_written", "-o", out,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    asked = [(e, i) for e in ("events", "multi_threaded:3") for i in ("off", "on")]
    trials = [json.loads(p.read_text()) for p in sorted(out.glob("trials/*/trial.json"))]
    assert [(t["executor"], t["ipc"], t["pass_by"]) for t in trials] == [(e, i, "unique") for e, i in asked * 2]
    config = json.loads((out / "trials/0004_baseline/processes/ping.config.json").read_text())
    keys = ("executor", "executor_threads", "intra_process", "pass_by", "service_framing", "name_threads")
    assert [config[key] for key in keys] == ["multi_threaded", 3, True, "unique", None, True]
    manifest = json.loads((out / "manifest.json").read_text())
    assert [(v["executor"], v["ipc"]) for v in manifest["variants"]] == asked
    assert [(t["executor"], t["ipc"]) for t in manifest["trials"]] == asked * 2
    summary = json.loads((out / "summary.json").read_text())
    published("summary").validate(summary)
    assert [(r["executor"], r["ipc"], r["trials"]) for r in summary["results"]] == [(e, i, 2) for e, i in asked]
    assert "small on cyclonedds 0.0.1, events, ipc on, by unique, baseline: 2 trials of 0.2 s" in done.stdout
    assert "Intra-process: 3 of 3 subscriptions" in done.stdout
    compared = done.stdout[done.stdout.index("All messages of all trials together") :].split("\n\n")[0]
    assert [line.split("  ")[0] for line in compared.splitlines()[2:] if "ipc" in line] == [
        f"{e}, ipc {i}" for e, i in asked
    ]
    assert "publisher → subscription" not in done.stdout
    assert perflab("show", out).stdout.startswith(done.stdout.partition("Run directory")[0].rstrip("\n"))


@pytest.mark.native
def test_what_was_asked_of_threads_reaches_the_nodes_and_comes_back(
    perflab: Perflab, native_folder: Path, graph_file: Path, tmp_path: Path
) -> None:
    if not (native_folder / "perflab-watchdog").is_file():
        pytest.skip("no perflab-watchdog in PERFLAB_NATIVE; build it with `make` and set it")
    out = tmp_path / "run"
    threads = ["--thread", "executors=RR:9@1", "--thread", "pong.executors=FIFO:3", "--thread", "ping.middleware=OTHER"]
    more = ["--lock-memory", "on", "--name-threads", "off"]
    done = perflab("run", graph_file, "-t", "0.3", "-s", "0.1", *threads, *more, "-o", out)
    assert done.returncode == 0, done.stderr
    configs = {
        n: json.loads((out / f"trials/0001_baseline/processes/{n}.config.json").read_text()) for n in ("ping", "pong")
    }
    assert {n: (c["lock_memory"], c["name_threads"]) for n, c in configs.items()} == dict.fromkeys(
        configs, (True, False)
    )
    assert [c["threads"]["executors"]["priority"] for c in configs.values()] == [9, 3]
    assert [c["threads"]["middleware"] is None for c in configs.values()] == [False, True]
    (result,) = json.loads((out / "summary.json").read_text())["results"]
    read = [(t["process"], t["name"], t["role"], t["policy"], len(t["tids"])) for t in result["threads"]]
    assert read == [
        (process, name, role, policy if role == "executor" else "OTHER", count)
        for process, policy in (("ping", "RR"), ("pong", "FIFO"))
        for name, role, count in (("fake", "executor", 1), ("recv", "middleware", 2), ("sampler", "perflab", 1))
    ]
    expected = (
        "Threads: ping fake RR 9 on CPU 1; middleware (2 threads) OTHER; pong fake FIFO 3; middleware (2 threads)"
    )
    assert expected in done.stdout
    table = pl.read_parquet(out / "trials/0001_baseline/threads.parquet")
    assert table.select("process", "role", "policy", "priority", "cpus").unique().sort("process").rows() == [
        ("ping", "executor", "RR", 9, "1"),
        ("pong", "executor", "FIFO", 3, "0,1"),
    ]


def services(topics: bool = False) -> dict[str, Any]:
    """asking asks /add of answering every 10 ms and /sub every 20 ms; with topics beside them if wanted."""
    published, subscribed = ({"/t": 10}, ["/t"]) if topics else ({}, [])
    return graph(
        {
            "asking": [node("asking", published, asks={"/add": 10, "/sub": 20})],
            "answering": [node("answering", {}, subscribed, serves=["/add", "/sub"])],
        }
    )


@pytest.mark.parametrize("topics", [False, True])
def test_services_are_measured(perflab: Perflab, tmp_path: Path, topics: bool) -> None:
    file, out = tmp_path / "services.json", tmp_path / "run"
    file.write_text(json.dumps(services(topics)))
    done = perflab("run", file, "-t", "0.5", "--warmup", "0.1", "-o", out)
    assert (done.returncode, done.stderr) == (0, "")
    summary = json.loads((out / "summary.json").read_text())
    published("summary").validate(summary)
    (result,) = summary["results"]
    assert [(s["client"], s["service"], s["server"], s["sent"], s["received"]) for s in result["services"]] == [
        ("asking", "add", "answering", 50, 50),
        ("asking", "sub", "answering", 25, 25),
    ]
    assert all(200_000 <= s["round_trip_ns"]["p50"] <= 200_200 for s in result["services"])
    assert all(s["publish_call_ns"]["count"] == s["sent"] for s in result["services"])
    assert result["totals"]["received"] == (50 if topics else None)
    assert "75 of 75 replies received, 0 lost" in done.stdout
    assert ("50 of 50 messages received" in done.stdout) == topics
    assert "asking → answering" in done.stdout
    table = pl.read_parquet(out / "trials/0001_baseline/services.parquet")
    columns = ("client", "service", "server", "sent", "requested", "received", "warmup_sent", "round_trip_max")
    assert table.select(columns).rows() == [
        ("/asking", "/add", "/answering", 50, 50, 50, 10, 200_000),
        ("/asking", "/sub", "/answering", 25, 25, 25, 5, 200_000),
    ]
    assert json.loads((out / "manifest.json").read_text())["workload"]["services"] == [
        ["/asking", "/add", "/answering"],
        ["/asking", "/sub", "/answering"],
    ]
    (out / "summary.json").unlink()
    assert json.loads(perflab("show", out, "--json").stdout) == summary


UNANSWERED = ("unanswered", 0, "69 of 75 replies received, 6 lost (6 at the end)")
NO_SERVICES = (
    *("no_services", 1), "service /add of /asking at /answering is in the graph, but its client recorded nothing",
)  # fmt: skip


@pytest.mark.parametrize(
    ("fault", "code", "expected"),
    long_but(
        [UNANSWERED, NO_SERVICES],
        [
            UNANSWERED,
            NO_SERVICES,
            ("miscounted", 1, "service /add of /asking at /answering does not add up"),
            ("die:asking", 1, "process 'asking'"),
        ],
    ),
)
def test_replies_that_are_missing(perflab: Perflab, tmp_path: Path, fault: str, code: int, expected: str) -> None:
    file, out = tmp_path / "services.json", tmp_path / "run"
    file.write_text(json.dumps(services()))
    option = ["--middleware-option", f"fake={fault}", "--drain-quiet", "0.2"]
    done = perflab("run", file, "-t", "0.5", *option, "-o", out)
    assert done.returncode == code, done.stderr
    assert expected in " ".join((done.stdout + done.stderr).split())
    published("summary").validate(json.loads((out / "summary.json").read_text()))


def test_shared_memory_of_a_killed_process_is_removed_and_noted(
    perflab: Perflab, graph_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    options = ["--middleware-option", "segment=on", "--middleware-option", "fake=die:pong"]
    assert perflab("run", graph_file, "-t", "0.5", *options, "-o", out).returncode == 1
    trial = json.loads((out / "trials/0001_baseline/trial.json").read_text())
    pong = trial["processes"]["pong"]
    assert pong["shared_memory"] == [f"perflab_double_{pong['pid']}"]
    assert f"the middleware left shared memory behind, removed: {pong['shared_memory'][0]}" in trial["notes"]
    assert not Path("/dev/shm", pong["shared_memory"][0]).exists()


def test_a_run_directory_has_what_the_documentation_says(perflab: Perflab, graph_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert perflab("run", graph_file, "-t", "0.5", "--warmup", "0.2", "-o", out, "-q").returncode == 0
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["workload"]["graph"] == two_processes()
    assert manifest["workload"]["sources"][0]["text"] == graph_file.read_text()
    assert manifest["command_line"][:2] == ["perflab", "run"]
    assert {c["status"] for c in manifest["preflight"]} <= {"ok", "warn", "unknown"}
    published("manifest").validate(manifest)
    trial = out / "trials/0001_baseline"
    published("trial").validate(json.loads((trial / "trial.json").read_text()))
    names = {p.name for p in (trial / "processes").iterdir()}
    assert names == {f"{p}.{e}" for p in ("ping", "pong") for e in ("config.json", "jsonl", "log")}
    edges = pl.read_parquet(trial / "edges.parquet")
    assert edges["received"].to_list() == [25, 50, 50]
    assert edges["first_sequence"].to_list() == [10, 20, 20]
    assert pl.read_parquet(trial / "resources.parquet")["process"].unique().sort().to_list() == ["ping", "pong"]
    assert {p.name for p in trial.glob("*.parquet")} == {
        f"{n}.parquet" for n in ("edges", "publishers", "services", "resources", "threads", "cost", "loops", "events")
    }
    assert not list(out.rglob(".*")), "temporary files were left behind"


DIED = ("die:pong", "failed: process 'pong' .* was killed by SIGKILL")
NO_FINAL = ("no_final:pong", "harness error: process 'pong' wrote no final checkpoint")


@pytest.mark.parametrize(
    ("fault", "expected"),
    long_but(
        [DIED, NO_FINAL],
        [
            DIED,
            NO_FINAL,
            ("unmatched", "harness error: 2 endpoints not matched within 30 s: /lyon subscription"),
            ("contradiction", "harness error: edge /pong -> /ping on /pong does not add up"),
            ("disk_full", "harness error: process '.*' cannot write its records: No space left on device"),
        ],
    ),
)
def test_a_trial_that_fails_is_exit_1_and_stays_readable(
    perflab: Perflab, graph_file: Path, tmp_path: Path, fault: str, expected: str
) -> None:
    out = tmp_path / "run"
    done = perflab(
        "run", graph_file, "-t", "0.5", "-o", out, "--middleware-option", f"cyclonedds.fake={fault}", "--json"
    )
    assert done.returncode == 1
    assert re.search(expected, one_line(done.stderr)), done.stderr
    summary = json.loads(done.stdout)
    published("summary").validate(summary)
    assert summary["valid"] is False
    shown = perflab("show", out)
    assert shown.returncode == 0, shown.stderr
    assert summary["results"][0]["trials_detail"][0]["reason"] in " ".join(shown.stdout.split())


def test_a_failed_trial_does_not_keep_the_others_from_running(
    perflab: Perflab, graph_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    done = perflab(
        "run", graph_file, "-t", "0.5", "-o", out, "--middleware-option", "fake=die:pong", "--trials", "2", "--json"
    )
    assert done.returncode == 1
    assert json.loads(done.stdout)["results"][0]["outcomes"]["failed"] == 2


def test_losses_are_said_in_words(perflab: Perflab, graph_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = perflab(
        "run", graph_file, "-t", "0.5", "-o", out, "--middleware-option", "fake=tail", "--drain-quiet", "0.2"
    )
    assert done.returncode == 0
    assert "116 of 125 messages received, 9 lost (9 at the end)" in done.stdout


@pytest.mark.parametrize("signal_name", long_but(["TERM"], ["INT", "TERM"]))
def test_an_interrupted_run_is_finalised(
    graph_file: Path, tmp_path: Path, environment: dict[str, str], signal_name: str
) -> None:
    out = tmp_path / "run"
    signum = getattr(signal, f"SIG{signal_name}")
    command = [sys.executable, "-m", "perflab", "run", str(graph_file), "-t", "300", "-o", str(out), "--json"]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        pids = wait_for_measuring(out)
        process.send_signal(signum)
        stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 128 + signum
    assert one_line(stderr) == f"perflab: interrupted by SIG{signal_name}\n"
    detail = json.loads(stdout)["results"][0]["trials_detail"][0]
    assert (detail["outcome"], detail["reason"]) == ("harness_error", f"interrupted by SIG{signal_name}")
    assert detail["totals"]["received"] > 0
    assert all(is_gone(pid) for pid in pids)
    assert not list(out.rglob(".*"))


def wait_for_measuring(out: Path) -> list[int]:
    """The processes of the first trial, as soon as all of them have written a checkpoint."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        records = sorted(out.glob("trials/*/processes/*.jsonl"))
        if len(records) == 2 and all(re.search('"checkpoint".*"received": [1-9]', r.read_text()) for r in records):
            trial = json.loads(next(out.glob("trials/*/trial.json")).read_text())
            return [p["pid"] for p in trial["processes"].values()]
        time.sleep(0.02)
    raise AssertionError("the trial never began to measure")


def test_a_killed_perflab_leaves_no_process_and_a_run_that_opens(
    graph_file: Path, tmp_path: Path, environment: dict[str, str], perflab: Perflab
) -> None:
    out = tmp_path / "run"
    command = [sys.executable, "-m", "perflab", "run", str(graph_file), "-t", "300", "-o", str(out)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        pids = wait_for_measuring(out)
        running = perflab("show", out)
        process.kill()
    assert running.returncode == 0
    assert "the run is still in progress" in running.stdout
    deadline = time.monotonic() + 30
    while not all(is_gone(pid) for pid in pids):
        assert time.monotonic() < deadline, "a process outlived perflab"
        time.sleep(0.02)
    with next(out.glob("trials/*/processes/ping.jsonl")).open("a") as file:
        file.write('{"type":"checkpoint","at_')
    shown = perflab("show", out)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "perflab ended before the run was" in shown.stdout
    assert "ping.jsonl of 0001_baseline ends within a line" in shown.stdout
    summary = json.loads(perflab("show", out, "--json").stdout)
    published("summary").validate(summary)
    assert summary["valid"] is False
    assert summary["results"][0]["coverage"] == {"trials_merged": 1, "complete": False}
    assert summary["results"][0]["totals"]["received"] > 0
    assert summary["results"][0]["totals"]["lost"]["tail"] is None


def test_a_run_that_was_killed_before_its_first_trial_opens(
    perflab: Perflab, perflab_process: Perflab, graph_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    # A process: whether the one that the manifest names still lives matters where there is no summary.
    assert perflab_process("run", graph_file, "-t", "0.2", "-s", "0.1", "-o", out, "-q").returncode == 0
    (out / "summary.json").unlink()
    assert "50 of 50 messages received" in perflab("show", out).stdout
    (out / "trials/0001_baseline/trial.json").unlink()
    shown = perflab("show", out)
    assert shown.returncode == 0
    assert "0001_baseline was being prepared and recorded nothing" in shown.stdout
    assert "No trial was recorded." in shown.stdout


def test_a_damaged_run_is_bad_input(perflab: Perflab, graph_file: Path, tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    assert perflab("run", graph_file, "-t", "0.2", "-s", "0.1", "-o", whole, "-q").returncode == 0
    for damaged in ("manifest.json", "trials/0001_baseline/trial.json"):
        out = shutil.copytree(whole, tmp_path / damaged.replace("/", "_"))
        if damaged.endswith("trial.json"):
            (out / "summary.json").unlink()
        for content in ("{", "[]") if damaged == "manifest.json" else ("{", "[]", "{}"):
            (out / damaged).write_text(content)
            shown = perflab("show", out)
            assert shown.returncode == 2, (content, shown)
            assert "is damaged" in one_line(shown.stderr)


def test_list_and_doctor_speak_json(perflab: Perflab) -> None:
    topologies = {row["name"] for row in json.loads(perflab("list", "topologies", "--json").stdout)}
    assert {"sierra_nevada", "mont_blanc"} <= topologies
    everything = json.loads(perflab("list", "--json").stdout)
    names = [row["name"] for row in everything["middlewares"]]
    own = ["cyclonedds", "direct", "fastdds", "iceoryx2", "shm", "sim", "udp", "virtual", "zenoh"]
    assert [name for name in names if "/" not in name] == own
    assert {"rclcpp/rmw_cyclonedds_cpp", "rclcpp/rmw_fastrtps_cpp"} <= set(names)
    assert everything["messages"][0]["name"] == "stamped_int64"
    health = json.loads(perflab("doctor", "--json").stdout)
    assert {"host", "programs", "middlewares", "preflight"} <= health.keys()
    assert perflab("doctor").returncode == 0
    assert "cyclonedds" in perflab("list").stdout


def test_list_works_without_the_native_programs(perflab: Perflab, tmp_path: Path) -> None:
    done = perflab("list", PERFLAB_NATIVE=str(tmp_path))
    assert done.returncode == 0
    assert "sierra_nevada" in done.stdout
    assert "not available" in done.stdout
    assert perflab("list", "messages", PERFLAB_NATIVE=str(tmp_path)).returncode == 3


def test_a_reader_that_goes_away_is_no_error(graph_file: Path, environment: dict[str, str]) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    command = [sys.executable, "-m", "perflab", "list"]
    done = subprocess.run(command, env=environment, stdout=write_end, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write_end)
    assert done.stderr == ""


@pytest.mark.parametrize("width", [80, 120])
def test_the_options_of_run_stand_in_groups(perflab: Perflab, width: int) -> None:
    done = perflab("run", "--help", COLUMNS=str(width))
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= width
    groups = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert groups[0] == "Arguments:"
    assert len(groups) >= 7
    assert lines.index(next(g for g in groups if g.startswith("Variants"))) < lines.index("Output:")
    assert "executors=RR:98@1" in done.stdout


def test_help_names_every_verb(perflab: Perflab) -> None:
    done = perflab("--help")
    assert done.returncode == 0
    assert all(verb in done.stdout for verb in ("run", "show", "doctor", "list", "--install-completion"))
    assert perflab("--version").stdout.startswith("perflab ")
