"""Commands as the workload: any program in trials, under conditions, with what its trace says of its messages."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest

from perflab.condition import Window
from perflab.experiment.traced_messages import read
from perflab.formats import records
from perflab.statistics import histogram as hg
from perflab.trace import open_trace
from tests.schemas import published

from . import traces
from .conftest import NATIVE, SOURCE, TIMEOUT_S, Json, Run, started

QUIETLY = ("--cool-down", "0", "-q")
UNTRACED = ("--tracing", "off", *QUIETLY)


def summary_of(out: Path) -> Json:
    summary = json.loads((out / "summary.json").read_text())
    published("summary").validate(summary)
    assert isinstance(summary, dict)
    return summary


def the_trial(out: Path) -> Json:
    (trial,) = traces.trials(out)
    return trial


def alive(marker: str) -> list[int]:
    """The processes whose command line has the marker."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and marker in (entry / "cmdline").read_text().split("\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def test_a_command_that_runs_until_it_is_stopped(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = run("run", "-t", "1.5", "-o", out, *UNTRACED, "--", "sleep", "600")
    assert (done.returncode, done.stderr) == (0, "")
    trial = the_trial(out)
    assert (trial["outcome"], trial["command"]["stop_signal"]) == ("success", "SIGINT")
    assert trial["processes"]["sleep"]["status"] == -signal.SIGINT
    assert trial["messages"] == {"source": None, "reason": "the command was not traced"}
    (result,) = summary_of(out)["results"]
    assert (result["totals"]["received"], result["totals"]["latency_ns"]) == (None, None)
    assert result["resources"]["processes"][0]["rss_kb_max"] > 0
    assert result["coverage"] == {"trials_merged": 1, "complete": True}
    assert "No messages: the command was not traced." in run("show", out).stdout
    assert run("show", out, "--json").returncode == 0


@pytest.mark.alone
def test_how_long_a_command_ran_that_ends_by_itself_is_compared(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    work = "import time; time.sleep(0.3); print('done')"
    done = run(
        "run", "-t", "60", "--ends", "itself", "--trials", "2", "-o", out, "--condition", "cpu_load:workers=1,load=10",
        "--metric", "run_time", "--success", "run_time < 60s", *UNTRACED, "--", sys.executable, "-c", work,
    )  # fmt: skip
    if shutil.which("stress-ng") is None:
        assert done.returncode == 3
        return
    assert (done.returncode, done.stderr) == (0, "")
    found = traces.trials(out)
    assert len(found) == 6
    assert all(trial["command"]["run_s"] >= 0.3 for trial in found)
    assert all(c["in_effect"] for trial in found for c in trial["evidence"].values())
    summary = summary_of(out)
    assert [c["metric"] for c in summary["findings"]["comparisons"]] == ["run_time"]
    assert "It ran for" in run("show", out).stdout


@pytest.mark.parametrize(
    ("options", "words", "said"),
    [
        ((), ("sh", "-c", "echo it fell; kill -SEGV $$"), "was killed by SIGSEGV .* its log ends with: it fell"),
        (("--ready", "0"), ("sh", "-c", "sleep 1; exit 7"), r"exited with 7 \d.* s after it was started"),
        ((), ("true",), r"exited with 0 .* use `ends: itself` \(--ends itself\) if that is intended"),
        (("--ready", "log:never"), ("sh", "-c", "echo up"), "exited with 0"),
        (("--stop", "SIGINT:1s"), ("sh", "-c", "trap '' INT; while :; do sleep 0.1; done"),
         "did not end within 1 s after SIGINT; it was killed by SIGTERM"),
        (("--ends", "itself"), ("false",), "exited with 1"),
        (("--ends", "itself"), ("sleep", "600"), "has not ended by itself within"),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_a_failure_with_its_reason(
    run: Run, tmp_path: Path, options: tuple[str, ...], words: tuple[str, ...], said: str
) -> None:
    out = tmp_path / "run"
    done = run("run", "-t", "1.5", "-o", out, *options, *UNTRACED, "--", *words)
    assert done.returncode == 1
    trial = the_trial(out)
    assert trial["outcome"] == "failed"
    assert re.search(said, trial["reason"]), trial["reason"]
    assert done.stderr.count("\n") == 1
    summary_of(out)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--", "/no/such/program"), "the program '/no/such/program' does not exist"),
        (("--", "/tmp"), "is a folder"),
        (("--",), "name a command after --"),
        (("--", "sierra_nevada"), "run the catalog's sierra_nevada without --"),
        (("--executor", "events", "--", "sleep", "9"), "--executor: applies to graphs"),
        (("--middleware", "fastdds", "--", "sleep", "9"), "a command brings its own"),
        (("--environment", "ROS_DOMAIN_ID=1", "--", "sleep", "9"), "perflab sets ROS_DOMAIN_ID"),
        (("--tracing", "off", "--observer", "hiccup", "--", "sleep", "9"), "it is a thread of perflab-node"),
        (("--ready", "2", "sierra_nevada"), "--ready is for a command"),
        (("sierra_nevada", "--", "sleep", "9"), "a workload and a command after --"),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_written(
    run: Run, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    out = tmp_path / "run"
    done = run("run", "-q", "-o", out, *arguments)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert said in done.stderr
    assert not out.exists()


@pytest.mark.long
def test_bytes_that_are_no_text_and_daemons_are_no_trouble(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    script = "head -c 100000 /dev/urandom; setsid sleep 60.125 & (setsid sleep 60.125 &) ; exec sleep 600"
    done = run("run", "-t", "1.5", "-o", out, *UNTRACED, "--", "sh", "-c", script)
    assert (done.returncode, done.stderr) == (0, "")
    assert alive("60.125") == []


def test_pinning_holds_for_all_that_it_starts(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    script = "(setsid sleep 600 &); while :; do sleep 0.1; done"
    pinned = ("--condition", "cpu_pinning:count=1", "--baseline", "off")
    done = run("run", "-t", "2", "-o", out, *pinned, *UNTRACED, "--", "sh", "-c", script)
    assert (done.returncode, done.stderr) == (0, "")
    evidence = the_trial(out)["evidence"]["cpu_pinning"]
    assert evidence["in_effect"]
    assert evidence["achieved"]["processes"]["sh"]["threads"] >= 3
    assert len(evidence["achieved"]["processes"]["sh"]["affinities"]) == 1


@pytest.mark.long
def test_a_flood_runs_beside_it_in_its_domain(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    flood = ("--condition", "message_flood:publishers=1,rate=50,at_least=20", "--baseline", "off")
    show = "echo domain $ROS_DOMAIN_ID; exec sleep 600"
    done = run("run", "-t", "3", "-o", out, *flood, *UNTRACED, "--", "sh", "-c", show)
    assert (done.returncode, done.stderr) == (0, "")
    trial = the_trial(out)
    assert trial["evidence"]["message_flood"]["in_effect"]
    config = json.loads((trial["path"] / "processes" / "message_flood.config.json").read_text())
    assert [p["name"] for p in config["graph"]["processes"]] == ["message_flood", "message_flood_readers"]
    assert config["middleware"]["domain"] == trial["domain"]
    assert (trial["path"] / "processes" / "sh.log").read_text() == f"domain {trial['domain']}\n"
    for refused in ("readers=inside", "own_process=off", "readers=topics"):
        done = run("run", *UNTRACED, "--condition", f"message_flood:{refused}", "--", "sleep", "9")
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr


@pytest.mark.long
def test_an_experiment_file_with_levels_of_a_variable(run: Run, tmp_path: Path) -> None:
    (tmp_path / "say.sh").write_text("#!/bin/sh\necho it is $WHICH\nexec sleep 600\n")
    (tmp_path / "say.sh").chmod(0o755)
    (tmp_path / "experiment.yaml").write_text(
        "workload:\n  command: ./say.sh\n  directory: .\n  tracing: off\n  ready: {log: it is}\n"
        "time: 1\ncool_down: 0\nfactors:\n  workload.environment.WHICH: [left, right]\n"
    )
    out = tmp_path / "run"
    done = run("run", "experiment.yaml", "-q", "-o", out)
    assert (done.returncode, done.stderr) == (0, "")
    lines = {t["factors"]["workload.environment.WHICH"]: t["command"]["ready_line"] for t in traces.trials(out)}
    assert lines == {"left": "it is left", "right": "it is right"}


def test_a_run_that_was_killed_leaves_nothing_and_goes_on(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = ("sh", "-c", "(setsid sleep 60.375 &); exec sleep 60.375")
    with started("run", "-t", "2", "--trials", "2", "-o", out, *UNTRACED, "--", *words) as process:
        traces.wait_for("the command runs", lambda: (alive("60.375") and traces.running(out)) or None, process)
        process.kill()
        process.wait(timeout=TIMEOUT_S)
    limit = time.monotonic() + traces.GONE_S
    while alive("60.375"):
        assert time.monotonic() < limit, "the guard ends what perflab has left"
        time.sleep(0.05)
    assert run("clean", out).returncode == 0
    done = run("run", "--resume", out, "-q")
    assert (done.returncode, done.stderr) == (0, "")
    assert summary_of(out)["valid"]
    assert run("archive", out, "-o", tmp_path / "run.tar.gz").returncode == 0


def test_what_outlives_perflab_and_guard_is_cleaned_by_its_mark(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = ("sh", "-c", "setsid sleep 60.625 & exec sleep 60.625")
    with started("run", "-t", "60", "-o", out, *UNTRACED, "--", *words) as process:

        def guard_of() -> int | None:
            trial = traces.running(out)
            both = trial is not None and len(alive("60.625")) == 2
            # It runs before that is written down.
            guard = trial["processes"]["sh"].get("guard") if trial is not None and both else None
            return None if guard is None else int(guard["pid"])

        guard = traces.wait_for("the command runs", guard_of, process)
        process.kill()
        os.kill(guard, signal.SIGKILL)
        process.wait(timeout=TIMEOUT_S)
    done = run("clean", out)
    assert done.returncode == 0
    assert alive("60.625") == []
    assert run("clean", out).stdout == "nothing to clean\n"


SEVERAL = """
workload:
  commands:
    planner: {command: sleep 600, ready: 0}
    driver: {command: sleep 1, ends: itself}
  tracing: off
time: 30
baseline: off
conditions:
  - cpu_pinning: {count: 1, processes: [planner]}
cool_down: 0
"""


def test_named_commands_are_started_pinned_measured_and_ended_each(run: Run, tmp_path: Path) -> None:
    file, out = tmp_path / "several.yaml", tmp_path / "run"
    file.write_text(SEVERAL)
    done = run("run", file, "-o", out, "-q")
    assert (done.returncode, done.stderr) == (0, "")
    trial = the_trial(out)
    assert trial["outcome"] == "success"
    planner, driver = (trial["commands"][name] for name in ("planner", "driver"))
    assert (planner["stop_signal"], planner["run_s"], driver["stop_signal"]) == ("SIGINT", None, None)
    assert driver["run_s"] >= 0.9  # its sleep of 1 s began before it was known to run
    assert trial["command"] is None
    assert {name: p["status"] for name, p in trial["processes"].items()} == {"planner": -signal.SIGINT, "driver": 0}
    pinned = trial["evidence"]["cpu_pinning"]
    assert pinned["in_effect"]
    assert list(pinned["achieved"]["processes"]) == pinned["promised"]["processes"] == ["planner"]
    (result,) = summary_of(out)["results"]
    assert result["trials_detail"][0]["run_s"] == driver["run_s"]
    used = {p["process"]: p for p in result["resources"]["processes"]}
    assert set(used) == {"planner", "driver"}
    assert all(p["rss_kb_max"] > 0 for p in used.values())


def test_one_of_several_commands_that_ends_is_named(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    named = ("--command", "planner=sleep 600", "--command", "driver=sh -c 'exit 3'")
    done = run("run", "-t", "1.5", "-o", out, *named, *UNTRACED)
    assert done.returncode == 1
    assert re.search(r"command 'driver' \(pid \d+\) exited with 3", the_trial(out)["reason"])
    assert run("run", "sierra_nevada", *named, *UNTRACED).returncode == 2


@pytest.fixture
def lttng() -> None:
    """Skips where nothing can be traced."""
    if shutil.which("lttng") is None or shutil.which("lttng-sessiond") is None:
        pytest.skip("lttng-tools is not installed")
    if not (Path(NATIVE) / "libperflab_ros2_tracepoints.so").is_file():
        pytest.skip("no libperflab_ros2_tracepoints.so in PERFLAB_NATIVE: liblttng-ust-dev was not there at build time")


@pytest.mark.usefixtures("lttng")
@pytest.mark.long
@pytest.mark.parametrize("middleware", ["cyclonedds", "fastdds"])
def test_figures_from_the_trace_are_those_of_the_same_graph(
    run: Run, pingpong: Path, tmp_path: Path, middleware: str
) -> None:
    """The graph is run by perflab for its configuration, then by a script that perflab knows nothing of."""
    graph = tmp_path / "graph"
    done = run("run", pingpong, "--middleware", middleware, "-t", "1", "-o", graph, *QUIETLY)
    assert done.returncode == 0, done.stderr
    template = json.loads((traces.trials(graph)[0]["path"] / "processes/ping.config.json").read_text())
    template["tracing"] = {"library": str((Path(NATIVE) / "libperflab_ros2_tracepoints.so").absolute())}
    template["duration_ns"] = 60_000_000_000
    (tmp_path / "template.json").write_text(json.dumps(template))
    out = tmp_path / "run"
    words = (sys.executable, SOURCE / "tests/end_to_end/graph_alone.py", f"{NATIVE}/perflab-node", "template.json")
    done = run("run", "-t", "2", "--ready", "log:the graph runs", "-o", out, *QUIETLY, "--", *words)
    assert (done.returncode, done.stderr) == (0, "")
    trial = the_trial(out)
    assert trial["messages"]["source"] == "trace"
    (result,) = summary_of(out)["results"]
    assert {(e["publisher"], e["topic"], e["subscription"]) for e in result["edges"]} == {
        ("ping", "ping", "pong"), ("pong", "pong", "ping"),
    }  # fmt: skip
    assert result["totals"]["latency_ns"]["count"] == result["totals"]["received"] > 100
    assert result["totals"]["dispatch_ns"] is None
    own = [records.read(path, path.stem) for path in sorted((trial["path"] / "own").glob("*.jsonl"))]
    with open_trace([trial["path"] / "trace"]) as trace:
        begin_ns = min(r.start.measured_from_ns for r in own if r.start is not None)
        found = read(trace, Window(begin_ns, trace.facts["end_ns"] + 1))
    traced = {(e["publisher"], e["subscription"]): e for e in found.edges}
    sent = {p["node"]: p["sent"] for p in found.publishers}
    for checkpoint in (r.checkpoint for r in own):
        assert checkpoint is not None
        assert all(sent[p["node"]] == p["sent"] for p in checkpoint["publishers"])
        for edge in checkpoint["edges"]:
            other = traced[edge["publisher"], edge["subscription"]]
            assert other["received"] == edge["received"]
            mine, theirs = hg.from_record(edge["latency"]), hg.from_record(other["latency"])
            # Between the two readings of the clock at either end lies a tracepoint or a preemption.
            assert hg.value_at_percentile(theirs, 50) == pytest.approx(hg.value_at_percentile(mine, 50), abs=50_000)


FOLLOWING = """
workload:
  commands:
    reader: {command: "sh -c 'while [ ! -e gone ]; do sleep 0.05; done'", ready: 0}
    writer: {command: "sh -c 'trap \\"touch gone; sleep 1; exit 0\\" INT; while :; do sleep 0.05; done'", ready: 0}
  directory: DIRECTORY
  tracing: off
time: 0.5
cool_down: 0
"""


@pytest.mark.long
def test_a_command_may_end_because_its_peer_was_asked_to(run: Run, tmp_path: Path) -> None:
    file, out = tmp_path / "following.yaml", tmp_path / "run"
    file.write_text(FOLLOWING.replace("DIRECTORY", str(tmp_path)))
    done = run("run", file, "-o", out, "-q")
    assert (done.returncode, done.stderr) == (0, "")
    trial = the_trial(out)
    assert trial["outcome"] == "success"
    assert trial["commands"]["writer"]["stop_signal"] == "SIGINT"
    assert trial["commands"]["reader"]["stop_signal"] is None
