"""Graphs with message types of every family, and with types of the user's."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.marks import long_but

from . import traces
from .conftest import NATIVE, TIMEOUT_S, Run, edges_by_name, started

FAMILIES = ("array1k", "radar_track", "struct32k", "bounded_sequence4k", "unbounded_string")
# They say nothing of when they were sent: each is known by its source time stamp.
OTHERS = ("geometry_msgs/msg/Twist", "sensor_msgs/msg/Image")
SIZES = {
    "sensor_msgs/msg/Image": "10kB",
    "bounded_sequence4k": "3kB",
    "unbounded_string": 1000,
    "my_msgs/msg/Sweep": 40,
    "my_msgs/msg/Report": 7,
}
# Sequences without a bound within each other; the measurement first, and behind what varies.
INTERFACES = {
    "my_msgs/msg/Beam": "float32[] ranges\ngeometry_msgs/Point origin\nstring name\n",
    "my_msgs/msg/Sweep": "int64 time\nuint64 id\nBeam[] beams\nstring[] notes\n",
    "my_msgs/msg/Report": "string<=20 author\nSweep[] sweeps\nperflab_msgs/Header header\nbool[] flags\n",
}
TYPES = (*FAMILIES, *OTHERS, "my_msgs/msg/Sweep", "my_msgs/msg/Report")
QUEUE = {"depth": 1000}  # a machine that stands still for some tenths of a second shall lose nothing
SENT = 50


@pytest.fixture
def messages(tmp_path: Path) -> Path:
    """A folder of interface files, as in a workspace."""
    folder = tmp_path / "ws"
    for name, text in INTERFACES.items():
        path = folder / "src" / f"{name}.msg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    """Two processes; one topic of each type."""
    topics = {f"of{number}": name for number, name in enumerate(TYPES)}
    size = {name: {"size": size} for name, size in SIZES.items()}
    publishers = [
        {"topic": topic, "type": name, "period": "20ms", "qos": QUEUE, **size.get(name, {})}
        for topic, name in topics.items()
    ]
    # The short form of the name means the same.
    subscriptions = [
        {"topic": topic, "type": name.replace("/msg/", "/"), "qos": QUEUE} for topic, name in topics.items()
    ]
    sensors = {"name": "sensors", "nodes": [{"name": "sensors", "publishers": publishers}]}
    robot = {"name": "robot", "nodes": [{"name": "robot", "subscriptions": subscriptions}]}
    path = tmp_path / "types.json"
    path.write_text(json.dumps({"name": "types", "processes": [sensors, robot]}))
    return path


def refused(run: Run, *arguments: str | Path) -> str:
    """The line with which it is refused."""
    done = run("run", *arguments, "-o", "refused")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    return done.stderr.removeprefix("perflab: ").rstrip("\n")


def graph_of_one(folder: Path, type_name: str) -> Path:
    path = folder / "one.yaml"
    path.write_text(f"nodes:\n  - name: a\n    publishers: [{{topic: x, size: 3, type: {type_name}, period: 10ms}}]\n")
    return path


@pytest.mark.parametrize("serialization", ["once", "every"])
@pytest.mark.parametrize("middleware", long_but(["cyclonedds", "shm"], ["cyclonedds", "fastdds", "shm"]))
def test_every_message_arrives_and_its_schedule_is_known(
    run: Run, graph: Path, messages: Path, tmp_path: Path, middleware: str, serialization: str
) -> None:
    out = tmp_path / "run"
    options = ("-t", "1", "--middleware", middleware, "--serialization", serialization, "-o", out, "--json")
    done = run("run", graph, "--message-path", messages, *options)
    assert done.returncode == 0, done.stderr
    edges = edges_by_name(json.loads(done.stdout))
    assert len(edges) == len(TYPES)
    for (_, topic, _), edge in edges.items():
        assert (edge["received"], edge["sent"], edge["duplicate"]) == (SENT, SENT, 0), topic
        latency, response = edge["latency_ns"], edge["response_ns"]
        assert latency["count"] == response["count"] == SENT, topic
        assert all(response[figure] >= latency[figure] > 0 for figure in ("min", "mean", "max")), topic
        assert (edge["deserialize_ns"] is not None) is (serialization == "every"), topic
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["workload"]["graph"]["interfaces"] == INTERFACES
    config = json.loads(next(out.glob("trials/*/processes/robot.config.json")).read_text())
    assert config["graph"]["interfaces"] == INTERFACES


@pytest.mark.long
def test_a_run_goes_on_without_the_folder(run: Run, graph: Path, messages: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    options = ("--message-path", messages, "-t", "1", "--trials", "3", "--middleware", "shm", "-o", out)
    with started("run", graph, *options) as process:
        traces.wait_for("the second trial runs", lambda: traces.running(out, past=1), process)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=TIMEOUT_S)
    shutil.rmtree(messages)
    done = run("run", "--resume", out, "-q")
    assert (done.returncode, done.stderr) == (0, "")
    summary = json.loads((out / "summary.json").read_text())
    assert summary["valid"] is True
    assert summary["results"][0]["totals"]["received"] == 3 * SENT * len(TYPES)


def test_an_experiment_names_the_folder(run: Run, graph: Path, messages: Path, tmp_path: Path) -> None:
    experiment = tmp_path / "experiment.yaml"
    experiment.write_text(
        f"workload: {graph}\nmessage_path: {messages}\nmiddlewares: virtual\ntime: 1s\nserialization: once\n"
    )
    done = run("run", experiment, "-o", tmp_path / "run", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["results"][0]["totals"]["received"] == SENT * len(TYPES)


def test_a_generated_workload_has_them_at_each_level_of_its_factors(run: Run, messages: Path, tmp_path: Path) -> None:
    options = ("--message-path", messages, "--factor", "workload.size=3,30", "-t", "1", "--middleware", "virtual")
    done = run("run", "pubsub:message=my_msgs/msg/Sweep,size=1,rate=100", *options, "-o", tmp_path / "run", "--json")
    assert done.returncode == 0, done.stderr
    assert [result["totals"]["received"] for result in json.loads(done.stdout)["results"]] == [100, 100]


def test_a_malformed_definition_is_one_line_with_its_place(run: Run, messages: Path, tmp_path: Path) -> None:
    beam = messages / "src/my_msgs/msg/Beam.msg"
    beam.write_text("float32[] ranges\nflot64 angle\n")
    said = refused(run, graph_of_one(tmp_path, "my_msgs/msg/Sweep"), "--message-path", messages)
    assert said == f"{beam}:2:1: unknown type 'flot64'; did you mean 'float64'?"


@pytest.mark.parametrize(
    ("type_name", "words"),
    [
        ("my_msgs/msg/Swep", "type 'my_msgs/msg/Swep' is unknown; did you mean my_msgs/msg/Sweep?"),
        ("other_msgs/msg/Sweep", "type 'other_msgs/msg/Sweep' is unknown; "),
        ("std_srvs/srv/SetBool", "type std_srvs/srv/SetBool is a service; use a message, like stamped1kb"),
    ],
)
def test_a_type_that_is_none_is_one_line(run: Run, messages: Path, tmp_path: Path, type_name: str, words: str) -> None:
    path = graph_of_one(tmp_path, type_name)
    said = refused(run, path, "--message-path", messages)
    assert said.startswith(f"{path}:3:44: {words}")


def test_a_folder_without_interfaces_is_one_line(run: Run, graph: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    said = refused(run, graph, "--message-path", tmp_path / "empty")
    assert said.startswith(f"{tmp_path / 'empty'}: contains no interface file; ")
    assert refused(run, graph, "--message-path", "nowhere") == "nowhere: no such folder"


def test_without_the_folder_the_type_is_unknown(run: Run, graph: Path) -> None:
    assert re.fullmatch(r".*/types\.json:1:\d+: type 'my_msgs/msg/Sweep' is unknown; .*", refused(run, graph))


def test_the_list_has_them(run: Run, messages: Path) -> None:
    listed = run("list", "messages", "--message-path", messages, "--json")
    assert listed.returncode == 0, listed.stderr
    types: dict[str, Any] = {row["name"]: row for row in json.loads(listed.stdout)}
    assert types["my_msgs/msg/Sweep"].items() >= {"stamp": "time and id", "plain": False, "variable": True}.items()
    assert types["my_msgs/msg/Report"].items() >= {"stamp": "header", "family": "my_msgs"}.items()
    assert types["array1k"].items() >= {"payload_bytes": 1024, "plain": True, "struct_bytes": 1024}.items()
    assert types["sensor_msgs/msg/Image"].items() >= {"family": "sensor_msgs", "stamp": None}.items()


def test_the_list_has_the_good_ones_and_a_line_for_each_wrong_file(run: Run, messages: Path) -> None:
    folder = messages / "src/my_msgs"
    (folder / "msg/Beam.msg").write_text("float32[] ranges\nflot64 angle\n")  # Sweep and Report need it
    (folder / "msg/Odd.msg").write_text("int32 a\nint32 a\n")
    (folder / "msg/Good.msg").write_text("int32 a\n")
    (folder / "srv").mkdir()
    (folder / "srv/Ask.srv").write_text("int32 a\n---\nNone b\n")
    lines = {
        "msg/Beam.msg:2:1: unknown type 'flot64'; did you mean 'float64'?",
        "msg/Odd.msg:2:7: ",
        "srv/Ask.srv:3:1: ",
    }
    listed = run("list", "messages", "--message-path", messages, "--json")
    assert listed.returncode == 2, listed.stderr
    said = sorted(line.removeprefix(f"{folder}/") for line in listed.stderr.splitlines())
    assert [bool(line.startswith(begin)) for line, begin in zip(said, sorted(lines), strict=True)] == [True] * 3, said
    names = {row["name"] for row in json.loads(listed.stdout)}
    assert {"my_msgs/msg/Good", "array1k"} <= names
    assert not {"my_msgs/msg/Beam", "my_msgs/msg/Sweep", "my_msgs/msg/Report", "my_msgs/msg/Odd"} & names


def test_a_graph_file_may_stand_behind_the_folder(graph: Path, messages: Path) -> None:
    done = subprocess.run(
        [Path(NATIVE) / "perflab-graph", "resolve", "--message-path", messages, graph],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    resolved = json.loads(done.stdout)
    assert resolved["interfaces"] == INTERFACES
    publishers = {p["type"]: p for p in resolved["processes"][0]["nodes"][0]["publishers"]}
    lengths = {name: p["length"] for name, p in publishers.items() if "length" in p}
    assert lengths == SIZES | {"bounded_sequence4k": 3000, "sensor_msgs/msg/Image": 10_000}
