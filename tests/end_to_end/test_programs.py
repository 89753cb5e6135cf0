"""Processes whose callbacks are code of their own (docs/programs.md), on real processes.

The programs are those of tests/programs and of examples/talker.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from .conftest import NATIVE, SOURCE, Run, environment, measuring, started

TOOLS = Path(os.environ.get("PERFLAB_TEST_TOOLS", ""))
PROBE = SOURCE / "tests" / "programs" / "probe.yaml"
TALKER = SOURCE / "examples" / "talker"


@pytest.fixture(autouse=True)
def _programs() -> None:
    if not os.access(TOOLS / "perflab-probe", os.X_OK):
        pytest.skip("no perflab-probe in PERFLAB_TEST_TOOLS; build it with `make test`")


def probe(folder: Path, *, limit: str | None = None, **options: Any) -> Path:
    """The graph of the probe with these options; with `serves` it asks itself a service, `threaded` in a thread."""
    graph = yaml.safe_load(PROBE.read_text())
    for one in graph["processes"]:
        one["program"] = str(TOOLS / one["program"])
    process = graph["processes"][0]
    process["options"] = options
    if options.get("threaded"):
        process["threads"] = {"control": {}}
    if options.get("acts"):
        action = {"action": "count", "type": "example_interfaces/action/Fibonacci"}
        process["nodes"][0] |= {"action_clients": [action], "action_servers": [dict(action)]}
    if options.get("serves"):
        service = {"service": "switch", "type": "std_srvs/srv/SetBool"}
        process["nodes"][0] |= {"clients": [service], "servers": [dict(service)]}
    graph["limit"] = limit or graph["limit"]
    path = folder / "probe.yaml"
    path.write_text(yaml.safe_dump(graph))
    return path


def measured(folder: Path) -> Any:
    return json.loads((folder / "summary.json").read_text())["results"][0]


def records(folder: Path, process: str, of_type: str) -> list[dict[str, Any]]:
    (path,) = folder.glob(f"trials/*/processes/{process}.jsonl")
    return [record for line in path.read_text().splitlines() if (record := json.loads(line))["type"] == of_type]


@pytest.mark.parametrize("middleware", ["cyclonedds", pytest.param("shm", marks=pytest.mark.long)])
def test_a_program_tells_figures_and_times_answers_late_and_ends_the_measured_part(
    run: Run, tmp_path: Path, middleware: str
) -> None:
    out = tmp_path / "made"
    graph = probe(tmp_path, turns=50, threaded=True, serves=True, acts=True)
    done = run(
        "run", graph, "--middleware", middleware, "--thread", "control=OTHER@0", "--cool-down", "0", "--output", out
    )
    assert done.returncode == 0, done.stdout + done.stderr
    result = measured(out)
    figures = result["key_figures"]
    said = {name: figures[name]["value"] for name in ("started", "stopped", "turns", "answered", "said_after_end")}
    assert said == {"started": 1, "stopped": 1, "turns": 50, "answered": 1, "said_after_end": 1}
    assert (figures["counted"]["value"], figures["feedback"]["value"]) == (
        8,
        3,
    )  # 0, 1, 1, 2, 3, 5, 8; and three of them
    assert figures["tens"]["value"] >= 30  # the median of 10, 20, ... 50 and more
    assert figures["answered_after"]["value"] > 0
    times = figures["there_and_back"]["of_ns"]
    (pong,) = [edge for edge in result["edges"] if edge["topic"] == "pong"]
    assert 0 < times["p50"] <= times["max"]
    assert times["count"] >= 50  # those of the measured part
    assert sum(pong["lost"].values()) == 0
    (trial,) = result["trials_detail"]
    assert trial["outcome"] == "success"
    (file,) = out.glob("trials/*/trial.json")
    assert json.loads(file.read_text())["duration_s"] < 20  # the limit
    (thread,) = [t for t in records(out, "probe", "threads")[0]["threads"] if t["role"] == "program"]
    assert (thread["name"], thread["cpus"], thread["asked"]["cpus"]) == ("control", [0], [0])


def test_an_outcome_that_a_program_tells_is_that_of_the_trial(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "made"
    done = run(
        "run", probe(tmp_path, turns=5, does="outcome"), "--middleware", "shm", "--cool-down", "0", "--output", out
    )
    assert done.returncode == 1
    assert "it gave up: it was told to" in done.stderr
    assert measured(out)["outcomes"]["own"] == [{"name": "gave_up", "words": "it gave up", "of": "failed", "trials": 1}]


def test_who_does_not_end_the_measured_part_within_its_limit_has_failed(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "made"
    done = run(
        "run",
        probe(tmp_path, turns=5, does="nothing", limit="1s"),
        "--middleware",
        "shm",
        "--cool-down",
        "0",
        "--output",
        out,
    )
    assert done.returncode == 1
    assert "process 'probe' did not end the measured part within its limit of 1 s" in done.stderr
    assert measured(out)["key_figures"]["turns"]["value"] == 5  # what it had said is there


@pytest.mark.long
@pytest.mark.parametrize(
    ("does", "words"),
    [
        ("fail", "process 'probe': as it was told to"),
        ("throw", "process 'probe': subscription /pong of /probe: a handler that throws"),
        ("throw_in_thread", "process 'probe': thread control: the control loop is gone"),
        ("undeclared", "a program reports the figure 'unheard_of', which is not declared"),
    ],
)
def test_a_program_that_fails_says_why(run: Run, tmp_path: Path, does: str, words: str) -> None:
    graph = probe(tmp_path, turns=5, does=does, threaded=True)
    done = run("run", graph, "--middleware", "shm", "--cool-down", "0", "--output", tmp_path / "made")
    assert done.returncode == 1
    assert words in done.stderr


def test_a_program_that_is_killed_leaves_nothing_behind(tmp_path: Path) -> None:
    out = tmp_path / "made"
    graph = probe(tmp_path, does="nothing", threaded=True)
    with started("run", graph, "--middleware", "cyclonedds", "--cool-down", "0", "--output", out) as process:
        pids = measuring(out, process)
        os.kill(pids["probe"], signal.SIGKILL)
        _, stderr = process.communicate()
    assert process.returncode == 1
    assert "process 'probe'" in stderr
    assert "SIGKILL" in stderr
    assert not [pid for pid in pids.values() if Path(f"/proc/{pid}").exists()]


def test_what_cannot_be_is_refused_before_anything_is_written(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "made"

    def refused(graph: Path, code: int, *more: str) -> str:
        done = run("run", graph, "--middleware", "shm", "--cool-down", "0", "--output", out, *more)
        assert (done.returncode, out.exists()) == (code, False), done.stdout + done.stderr
        assert done.stdout == ""  # no trial was planned
        return done.stderr

    assert "options: has no key 'turnz'; did you mean 'turns'?" in refused(probe(tmp_path, turnz=5), 2)
    assert "--middleware virtual has no real time" in refused(probe(tmp_path), 2, "--middleware", "virtual")
    words = refused(probe(tmp_path, threaded=True), 2, "--thread", "contrl=FIFO:50")
    assert "no threads named 'contrl'; there are executors, middleware, control" in words
    assert "probe of probe ends the measured part, within 20 s" in refused(probe(tmp_path), 2, "--time", "5")
    graph = probe(tmp_path)
    graph.write_text(graph.read_text().replace(str(TOOLS / "perflab-probe"), "./nowhere"))
    assert f"{tmp_path}/nowhere, the program of process 'probe', does not exist" in refused(graph, 3)


def test_a_program_that_is_not_reentrant_refuses_an_executor_that_runs_handlers_at_the_same_time(
    run: Run, tmp_path: Path
) -> None:
    words = "inline runs handlers of a node at the same time, but the program"
    out = tmp_path / "made"
    done = run("run", probe(tmp_path), "--middleware", "shm", "--executor", "events,inline", "--output", out)
    assert (done.returncode, done.stdout, out.exists()) == (2, "", False)
    assert f"perflab: process probe, executor 0: {words} {TOOLS}/perflab-probe is not reentrant; right" in done.stderr
    graph = probe(tmp_path)
    document = yaml.safe_load(graph.read_text())
    document["processes"][1]["executors"] = [{"id": 0, "kind": "inline"}]
    graph.write_text(yaml.safe_dump(document))
    assert check(tmp_path, graph, "perflab-probe")[0] == 0  # its own executor is another one
    code, said = check(tmp_path, graph, "perflab-mirror", "mirror")
    assert (code, f"process mirror, executor 0: {words}" in said) == (2, True), said


def check(tmp_path: Path, graph: Path, program: str, process: str = "probe") -> tuple[int, str]:
    """How that program ends with --check, as a process of the graph."""
    told: list[str | Path] = [Path(NATIVE) / "perflab-graph", "resolve", graph]
    resolved = json.loads(subprocess.run(told, capture_output=True, check=True).stdout)
    configuration = {
        "schema": 1, "graph": resolved, "process": process, "runtime": "dds", "duration_ns": None,
        "middleware": {"name": "shm", "library": f"{NATIVE}/middleware/shm.so", "domain": 231, "options": {}},
        "records": os.devnull,
    }  # fmt: skip
    config = tmp_path / "config.json"
    config.write_text(json.dumps(configuration))
    asked: list[str | Path] = [
        Path(NATIVE if program == "perflab-node" else TOOLS) / program,
        "--check",
        "--config",
        config,
    ]
    done = subprocess.run(asked, capture_output=True, text=True, env=environment(), check=False)
    return done.returncode, done.stderr


def test_options_are_judged_by_check(tmp_path: Path) -> None:
    def judged(**options: Any) -> str:
        code, words = check(tmp_path, probe(tmp_path, **options), "perflab-probe")
        assert code == (2 if words else 0)
        return words.strip()

    assert check(tmp_path, probe(tmp_path), "perflab-mirror", "mirror") == (0, "")  # whom the other one ends
    where = "perflab-probe: process probe, options"
    assert judged(turns=5, period="1ms") == ""
    assert judged(turns="x") == f'{where}.turns: is "x"; right would be a whole number from 0 to 1000000'
    assert judged(turns=-1) == f"{where}.turns: is -1; right would be a whole number from 0 to 1000000"
    assert judged(serves=1) == f"{where}.serves: is 1; right would be true or false"
    assert judged(does="end it").startswith(f'{where}.does: is "end it"; right would be end, nothing, fail')
    assert judged(period=3).startswith(f'{where}.period: is 3; right would be a duration with its unit, like "10ms"')


def test_a_graph_and_its_program_must_fit(tmp_path: Path) -> None:
    def with_(old: str, new: str, *, program: str = "perflab-probe") -> str:
        graph = probe(tmp_path)
        text = graph.read_text()
        assert old in text
        graph.write_text(text.replace(old, new))
        code, words = check(tmp_path, graph, program)
        assert code == 2
        return words.strip()

    missing = with_("topic: ping", "topic: pinged")
    assert missing.endswith("node /probe has no publisher /ping in the graph; did you mean /pinged?")
    other = with_("std_msgs/msg/String", "std_msgs/msg/Int64")
    assert "the program has type std_msgs/msg/String, but the graph std_msgs/msg/Int64; right would be" in other
    assert "this is perflab-node, which has no program" in with_("limit: 20s", "limit: 21s", program="perflab-node")


def test_a_thread_that_cannot_be_scheduled_so_is_told_by_check(tmp_path: Path) -> None:
    graph = probe(tmp_path, threaded=True)
    graph.write_text(graph.read_text().replace("control: {}", "control: {cpus: 1023}"))
    code, words = check(tmp_path, graph, "perflab-probe")
    assert (code, words.startswith("perflab-probe: process probe, thread control: ")) == (3, True), words


@pytest.mark.long
def test_the_example_is_built_against_an_installed_perflab_and_runs(run: Run, tmp_path: Path) -> None:
    prefix, build = tmp_path / "prefix", tmp_path / "talker" / "build"
    shutil.copytree(TALKER, build.parent)
    for command in (
        ["cmake", "--install", Path(NATIVE).parents[1], "--prefix", prefix],
        ["cmake", "-S", build.parent, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}"],
        ["cmake", "--build", build],
    ):
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    graph, out, native = build.parent / "talker.yaml", tmp_path / "made", str(prefix / "lib" / "perflab")
    done = run(
        "run", graph, "--middleware", "cyclonedds", "--cool-down", "0", "--output", out, PERFLAB_NATIVE=native
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert measured(tmp_path / "made")["key_figures"]["turns"]["value"] == 500
