"""Graphs on ROS 2 itself (which of these tests run where: ros2.py)."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from perflab.workload.outside import has_package

from .conftest import PINGPONG, Json, Perflab, Run, environment, started
from .ros2 import MAY_LACK, RMWS, lacking, missing, need
from .test_combinations import LISTENER, ROUND_TRIPS, SERVICES, TALKER, results, sierra_nevada

SECONDS = 2
EXECUTORS = ("inline", "single_threaded", "static_single_threaded", "events", "multi_threaded:2")
# Of a graph half of which is perflab's own: the plug-in that speaks to each RMW's library.
OWN = {"rmw_cyclonedds_cpp": "cyclonedds", "rmw_fastrtps_cpp": "fastdds"}


@pytest.fixture(autouse=True)
def _ros2(request: pytest.FixtureRequest) -> None:
    need(request)


@pytest.fixture(params=RMWS)
def rmw(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def exact(result: Json, published: int, delivered: int) -> None:
    """Everything due was sent or told as skipped, and everything sent was received."""
    totals, where = result["totals"], (result["middleware"], result["executor"], result["ipc"])
    skipped = totals["not_sent"]
    assert totals["published"] + skipped == published, where
    assert totals["received"] == totals["sent"], where
    if skipped == 0:
        assert totals["received"] == delivered, where
    assert totals["duplicate"] == 0, where
    assert totals["lost"] == {"pre_match": 0, "gap": 0, "tail": 0}, where


@pytest.mark.parametrize("executor", MAY_LACK)
def test_an_executor_that_rclcpp_lacks_is_refused_in_one_line(run: Run, tmp_path: Path, executor: str) -> None:
    reason = lacking(run, tmp_path, executor)  # asserts it
    if reason is None:
        pytest.skip(f"this rclcpp has the executor {executor}")


@pytest.mark.parametrize("ipc", ["off", "on"])
def test_sierra_nevada_delivers_exactly_on_every_executor(run: Run, tmp_path: Path, rmw: str, ipc: str) -> None:
    executors = [executor for executor in EXECUTORS if not lacking(run, tmp_path, executor)]
    found = results(
        run, sierra_nevada(tmp_path), "-t", str(SECONDS), "--middleware", f"rclcpp/{rmw}",
        "--executor", ",".join(executors), "--ipc", ipc,
    )  # fmt: skip
    assert {r["executor"] for r in found} == set(executors)
    for result in found:
        assert result["middleware"] == f"rclcpp/{rmw}"
        exact(result, 654 * SECONDS, 1054 * SECONDS)
        reached = sum(p["intra_process"] for p in result["passing"])
        assert reached == (17 if ipc == "on" else 0)
        assert sum(p["middleware"] for p in result["passing"]) == 17 - reached


@pytest.mark.parametrize("pass_by", ["shared", "unique", "loaned"])
def test_lifecycle_nodes_without_parameter_services(run: Run, tmp_path: Path, rmw: str, pass_by: str) -> None:
    (result,) = results(
        run, sierra_nevada(tmp_path), "-t", str(SECONDS), "--middleware", f"rclcpp/{rmw}", "--node-type", "lifecycle",
        "--ros-params", "off", "--executor", "single_threaded", "--pass-by", pass_by,
    )  # fmt: skip
    exact(result, 654 * SECONDS, 1054 * SECONDS)
    options = json.loads(next((tmp_path / "runs").glob("*/manifest.json")).read_text())["middlewares"][0]["options"]
    assert options == {"node": "lifecycle", "parameter_services": "off"}


# One of each family, sequences and texts within each other, and types that say nothing of themselves.
TYPES = {
    "struct32k": None,
    "point_cloud1m": None,
    "radar_track": None,
    "unbounded_string": 1000,
    "sensor_msgs/msg/PointCloud2": "100kB",
    "rcl_interfaces/msg/ParameterEvent": 7,
    "std_msgs/msg/String": 40,
}


def graph_of_types(folder: Path) -> Path:
    """Two processes; one topic of each type."""
    queue = {"depth": 1000}
    topics = {f"of{number}": (name, size) for number, (name, size) in enumerate(TYPES.items())}
    publishers = [
        {"topic": topic, "type": name, "period": "50ms", "qos": queue} | ({"size": size} if size else {})
        for topic, (name, size) in topics.items()
    ]
    subscriptions = [{"topic": topic, "type": name, "qos": queue} for topic, (name, _) in topics.items()]
    sensors = {"name": "sensors", "nodes": [{"name": "sensors", "publishers": publishers}]}
    robot = {"name": "robot", "nodes": [{"name": "robot", "subscriptions": subscriptions}]}
    path = folder / "types.json"
    path.write_text(json.dumps({"name": "types", "processes": [sensors, robot]}))
    return path


def of_process(record: Path, process: Perflab) -> Json:
    """What a process of the first trial says of itself, as soon as it does."""
    while True:
        assert process.poll() is None, process.communicate()
        lines = record.read_text().split("\n")[:-1] if record.exists() else []
        for line in map(json.loads, lines):
            if line["type"] == "process":
                return dict(line)
        time.sleep(0.05)


@pytest.mark.parametrize(
    "full", ["perflab_msgs/msg/RadarTrack", "perflab_msgs/msg/KeyedArray1k", "sensor_msgs/msg/Image"]
)
def test_rclcpp_reads_the_hash_of_a_type(tmp_path: Path, full: str) -> None:
    tools = Path(os.environ.get("PERFLAB_TEST_TOOLS", ""))
    endpoints, codec = (tools / name for name in ("ros2_endpoints_tool", "codec_tool"))
    for tool in (endpoints, codec):
        if not os.access(tool, os.X_OK):
            pytest.skip(f"no {tool.name} in PERFLAB_TEST_TOOLS; build it with `make test-ros2`")
    if (reason := missing("rmw_cyclonedds_cpp")) is not None:
        pytest.skip(reason)
    out = tmp_path / "run"
    size = {"size": 1000} if full.endswith("Image") else {}
    topic = {"topic": "hashed", "type": full}
    nodes = [
        {"name": "talker", "publishers": [topic | size | {"period": "100ms"}]},
        {"name": "listener", "subscriptions": [topic]},
    ]
    graph = tmp_path / "hashed.json"
    graph.write_text(json.dumps({"name": "hashed", "nodes": nodes}))
    with started("run", graph, "-t", "10min", "--middleware", "cyclonedds", "-o", out) as process:
        while not (folders := list(out.glob("trials/*/processes"))):
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        said = of_process(folders[0] / "hashed.jsonl", process)["middleware"]["effective"]
        # On the same interface as the plug-in, which has no multicast there.
        uri = re.sub("<SharedMemory>.*</SharedMemory>", "", said["configuration"])  # a part that not every build knows
        in_domain = {
            "ROS_DOMAIN_ID": str(said["domain"]),
            "RMW_IMPLEMENTATION": "rmw_cyclonedds_cpp",
            "CYCLONEDDS_URI": uri,
        }
        found = subprocess.run(
            [endpoints, "/hashed", "2"], env=environment(**in_domain), capture_output=True, text=True, check=True
        ).stdout.splitlines()
    hashed = subprocess.run([codec], input=f"hash {full}\n", capture_output=True, text=True, check=True).stdout.strip()
    assert re.fullmatch("RIHS01_[0-9a-f]{64}", hashed)
    if any(line.endswith(" none") for line in found):
        pytest.skip("endpoints of this rclcpp have no type hashes")
    assert found == [f"reads {full} {hashed}", f"writes {full} {hashed}"]


@pytest.mark.parametrize("serialization", ["once", "every"])
def test_messages_of_every_type_arrive_and_their_schedule_is_known(
    run: Run, tmp_path: Path, rmw: str, serialization: str
) -> None:
    ros, own = f"rclcpp/{rmw}", OWN[rmw]
    found = results(
        run, graph_of_types(tmp_path), "-t", "1", "--middleware", f"{ros},{ros}+{own},{own}+{ros}",
        "--serialization", serialization,
    )  # fmt: skip
    for result in found:
        assert len(result["edges"]) == len(TYPES)
        for edge in result["edges"]:
            where = (result["middleware"], edge["topic"])
            assert edge["sent"] == edge["received"] > 0, where
            latency, response = edge["latency_ns"], edge["response_ns"]
            assert latency["count"] == response["count"] == edge["received"], where
            assert all(response[figure] >= latency[figure] > 0 for figure in ("min", "mean", "max")), where
            # rclcpp does not say what it took.
            told = serialization == "every" and result["middleware"] == f"{ros}+{own}"
            assert (edge["deserialize_ns"] is not None) is told, where


def test_messages_of_every_type_stay_within_the_process(run: Run, tmp_path: Path, rmw: str) -> None:
    graph = json.loads(graph_of_types(tmp_path).read_text())
    nodes = [node for process in graph.pop("processes") for node in process["nodes"]]
    (tmp_path / "types.json").write_text(json.dumps({**graph, "nodes": nodes}))
    for pass_by in ("shared", "unique"):
        (result,) = results(
            run, "types.json", "-t", "1", "--middleware", f"rclcpp/{rmw}", "--ipc", "on", "--pass-by", pass_by
        )
        assert sum(p["intra_process"] for p in result["passing"]) == len(TYPES)
        assert all(edge["sent"] == edge["received"] > 0 for edge in result["edges"]), pass_by


def refused(run: Run, code: int, *arguments: str | Path) -> str:
    done = run("run", *arguments, "-t", "1", "-o", "refused")
    assert (done.returncode, done.stderr.count("\n")) == (code, 1), done.stderr
    return done.stderr


def test_encoded_messages_within_the_process_are_refused(run: Run, tmp_path: Path) -> None:
    options = ("--middleware", "rclcpp", "--serialization", "once", "--ipc", "on")
    said = refused(run, 2, graph_of_types(tmp_path), *options)
    assert "rclcpp delivers no encoded message within a process" in said
    assert "--ipc off" in said


def graph_of_one(folder: Path, type_name: str, definition: str) -> tuple[Path, ...]:
    """A graph that sends that type, and its options: the interface is in a folder."""
    package, name = type_name.split("/")
    interface = folder / "ws" / package / "msg" / f"{name}.msg"
    interface.parent.mkdir(parents=True)
    interface.write_text(definition)
    ends = {"publishers": [{"topic": "x", "type": type_name, "period": "10ms"}]}
    ends["subscriptions"] = [{"topic": "x", "type": type_name}]
    path = folder / "one.json"
    path.write_text(json.dumps({"name": "one", "nodes": [{"name": "a", **ends}]}))
    return path, Path("--message-path"), folder / "ws"


def test_a_type_without_its_package_is_refused_in_one_line(run: Run, tmp_path: Path) -> None:
    graph = graph_of_one(tmp_path, "no_such_msgs/Thing", "int64 time\nuint64 id\n")
    said = refused(run, 3, *graph, "--middleware", "rclcpp")
    assert "the sourced ROS 2 has no package no_such_msgs" in said
    assert "right would be to build no_such_msgs" in said


def test_another_definition_than_that_of_ros_2_is_refused_in_one_line(run: Run, tmp_path: Path) -> None:
    graph = graph_of_one(tmp_path, "std_msgs/ColorRGBA", "float32 r\nfloat32 g\nfloat64 b\nfloat32 a\n")
    said = refused(run, 3, *graph, "--middleware", "rclcpp")
    assert "std_msgs/msg/ColorRGBA of the sourced ROS 2 differs from that of this graph: 'b' differs" in said


def test_several_publishers_that_nothing_tells_apart_are_refused(run: Run, tmp_path: Path) -> None:
    graph = tmp_path / "two.yaml"
    node = "{{name: {}, publishers: [{{topic: x, type: std_msgs/String, size: 3, period: 10ms}}]}}"
    reader = "{name: reader, subscriptions: [{topic: x, type: std_msgs/String}]}"
    graph.write_text(f"nodes: [{node.format('a')}, {node.format('b')}, {reader}]\n")
    done = run("run", graph, "-t", "1", "--middleware", "rclcpp", "-o", "refused")
    assert done.returncode != 0
    assert "has 2 publishers" in done.stdout + done.stderr


@pytest.mark.parametrize("half", ["first", "second"])
def test_half_a_graph_is_ros_2(run: Run, tmp_path: Path, rmw: str, half: str) -> None:
    (tmp_path / "talker.yaml").write_text(TALKER)
    (tmp_path / "listener.yaml").write_text(LISTENER)
    words = (f"rclcpp/{rmw}", OWN[rmw])
    mixture = "+".join(words if half == "first" else reversed(words))
    (result,) = results(run, "talker.yaml", "listener.yaml", "-t", "3", "--middleware", mixture)
    assert result["middleware"] == mixture
    assert {e["topic"]: e["received"] for e in result["edges"]} == {e["topic"]: e["sent"] for e in result["edges"]}
    if result["totals"]["not_sent"] == 0:
        assert {e["topic"]: e["sent"] for e in result["edges"]} == {
            "small": 300,
            "large": 30,
            "best_effort": 150,
            "echo": 300,
        }
    assert result["totals"]["lost"] == {"pre_match": 0, "gap": 0, "tail": 0}


@pytest.mark.parametrize("executor", ["single_threaded", "events", "inline"])
def test_every_request_gets_its_reply(run: Run, tmp_path: Path, rmw: str, executor: str) -> None:
    if reason := lacking(run, tmp_path, executor):
        pytest.skip(reason)
    (tmp_path / "services.yaml").write_text(SERVICES)
    for middleware in (f"rclcpp/{rmw}", f"rclcpp/{rmw}+{OWN[rmw]}", f"{OWN[rmw]}+rclcpp/{rmw}"):
        (result,) = results(run, "services.yaml", "-t", "2", "--middleware", middleware, "--executor", executor)
        services = {(f"/{s['client']}", f"/{s['service']}", f"/{s['server']}"): s for s in result["services"]}
        counts = {key: (s["sent"], s["received"]) for key, s in services.items()}
        assert all(sent == received > 0 for sent, received in counts.values()), (middleware, counts)
        if result["totals"]["not_sent"] == 0:
            assert counts == {key: (n, n) for key, n in ROUND_TRIPS.items()}, middleware
        # The server works for 100 us before it replies.
        assert services["/one", "/add", "/far"]["round_trip_ns"]["min"] >= 100_000


def test_every_trigger_is_answered_on_every_executor(run: Run, tmp_path: Path) -> None:
    """Ticks that a timer of rclcpp left out trigger nothing, and are counted."""
    executors = [executor for executor in EXECUTORS if not lacking(run, tmp_path, executor)]
    workload = "executor:nodes=3,waitables=4,triggered=2,interval=10ms"
    done = run("run", workload, "-t", "2", "--middleware", "rclcpp", "--executor", ",".join(executors), "-o", "guarded")
    assert done.returncode == 0, done.stderr
    seen = set()
    for records in tmp_path.glob("guarded/trials/*/processes/*.jsonl"):
        lines = [json.loads(line) for line in records.read_text().splitlines()]
        (process,) = (line for line in lines if line["type"] == "process")
        seen.add(process["executors"][0]["kind"])
        (final,) = (line for line in lines if line["type"] == "checkpoint" and line["final"])
        assert len(final["waitables"]) == 12
        for one in final["waitables"]:
            idle = one["name"] in ("waitable_2", "waitable_3")
            assert one["triggers"] + one["not_triggered"] == (0 if idle else 200), (seen, one)
            assert one["triggers"] == one["executed"] + one["coalesced"], (seen, one)
            assert idle or one["executed"] > 0, (seen, one)
    assert seen == {executor.partition(":")[0] for executor in executors}


def test_fast_dds_answers_in_either_framing(run: Run, tmp_path: Path) -> None:
    """Cyclone DDS's RMW frames services in its own way, which perflab's Fast DDS can speak as well."""
    if reason := missing("rmw_cyclonedds_cpp"):
        pytest.skip(reason)
    (tmp_path / "services.yaml").write_text(SERVICES)
    (result,) = results(run, "services.yaml", "-t", "2", "--middleware", "rclcpp/rmw_cyclonedds_cpp+fastdds")
    assert all(s["sent"] == s["received"] > 0 for s in result["services"])


def effective_of(run_path: Path) -> dict[str, dict[str, Any]]:
    """What took effect in each process."""
    effective = {}
    for path in run_path.glob("trials/*/processes/*.jsonl"):
        process = next(r for r in map(json.loads, path.read_text().splitlines()) if r["type"] == "process")
        effective[process["process"]] = process["middleware"]["effective"]
    return effective


def test_cyclone_dds_is_configured_as_by_the_plugin(run: Run, tmp_path: Path) -> None:
    if reason := missing("rmw_cyclonedds_cpp"):
        pytest.skip(reason)
    (tmp_path / "graph.yaml").write_text(PINGPONG)
    middleware = "rclcpp/rmw_cyclonedds_cpp+cyclonedds"
    assert run("run", "graph.yaml", "-t", "1", "--middleware", middleware, "-o", "out").returncode == 0
    effective = effective_of(tmp_path / "out")
    own = re.sub("<SharedMemory>.*</SharedMemory>", "", effective["pong"]["configuration"])
    assert effective["ping"]["environment"]["CYCLONEDDS_URI"] == own
    assert "<MaxMessageSize>" in own
    # What this RMW does by itself is said, and by `perflab show` as well.
    same = ("socket_receive_buffer", "socket_send_buffer", "max_message_size", "lease_duration_ns")
    assert [effective["ping"][key] for key in same] == [effective["pong"][key] for key in same]
    (reason,) = effective["ping"]["not_set"]
    assert "max_blocking_time_ns" not in effective["ping"]
    assert "max_blocking_time_ns" in effective["pong"]
    assert f"not set by perflab: rclcpp/rmw_cyclonedds_cpp: {reason}" in run("show", "out").stdout.replace("\n", " ")


def test_fast_dds_is_configured_as_by_the_plugin(run: Run, tmp_path: Path) -> None:
    if reason := missing("rmw_fastrtps_cpp"):
        pytest.skip(reason)
    (tmp_path / "graph.yaml").write_text(PINGPONG)
    middleware = "rclcpp/rmw_fastrtps_cpp+fastdds"
    assert run("run", "graph.yaml", "-t", "1", "--middleware", middleware, "-o", "out").returncode == 0
    effective = effective_of(tmp_path / "out")
    same = (
        "socket_receive_buffer", "socket_send_buffer", "max_message_size", "lease_duration_ns", "max_blocking_time_ns",
    )  # fmt: skip
    assert [effective["ping"][key] for key in same] == [effective["pong"][key] for key in same]
    assert effective["ping"]["not_set"] == []


@pytest.mark.parametrize("other", ["cyclonedds", "rclcpp/rmw_cyclonedds_cpp"])
def test_the_fast_dds_of_ros_2_meets_cyclone_dds(run: Run, tmp_path: Path, other: str) -> None:
    if reason := missing("rmw_fastrtps_cpp"):
        pytest.skip(reason)
    (tmp_path / "graph.yaml").write_text(PINGPONG)
    (result,) = results(run, "graph.yaml", "-t", "2", "--middleware", f"rclcpp/rmw_fastrtps_cpp+{other}")
    assert result["totals"]["received"] == result["totals"]["sent"] > 0
    assert result["totals"]["lost"] == {"pre_match": 0, "gap": 0, "tail": 0}


@pytest.mark.parametrize("transport", ["udp", "default"])
def test_fast_dds_of_ros_2_shares_no_memory_over_udp_alone(run: Run, tmp_path: Path, transport: str) -> None:
    if reason := missing("rmw_fastrtps_cpp"):
        pytest.skip(reason)
    (tmp_path / "graph.yaml").write_text(PINGPONG)
    (result,) = results(
        run, "graph.yaml", "-t", "1", "--middleware", "rclcpp/rmw_fastrtps_cpp",
        "--middleware-option", f"rclcpp/rmw_fastrtps_cpp.transport={transport}",
    )  # fmt: skip
    assert result["totals"]["received"] == result["totals"]["sent"] > 0
    for path in (tmp_path / "runs").glob("*/trials/*/processes/*.jsonl"):
        (process,) = (r for r in map(json.loads, path.read_text().splitlines()) if r["type"] == "process")
        effective = process["middleware"]["effective"]
        assert (effective["shared_memory_files"] == []) == (transport == "udp")
        assert ("<type>SHM</type>" in effective["environment"]["fastdds_profile"]) == (transport == "default")


def test_a_flood_on_ros_2_is_in_effect(run: Run, tmp_path: Path, rmw: str) -> None:
    (tmp_path / "graph.yaml").write_text(PINGPONG)
    found = results(
        run, "graph.yaml", "-t", "2", "--middleware", f"rclcpp/{rmw}", "--condition", "message_flood:rate=500",
    )  # fmt: skip
    assert {r["outcome"] for result in found for r in result["trials_detail"]} == {"success"}


def test_participants_are_contexts(run: Run, tmp_path: Path, rmw: str) -> None:
    graph = "\n".join(
        [
            "name: three",
            "processes:",
            "  - name: three",
            "    participants: 3",
            "    nodes:",
            *(
                f"      - {{name: n{i}, publishers: [{{topic: t{i}, type: stamped100b, period: 10ms}}],"
                f" subscriptions: [{{topic: t{(i + 1) % 3}, type: stamped100b}}]}}"
                for i in range(3)
            ),
        ]
    )
    (tmp_path / "graph.yaml").write_text(graph + "\n")
    executors = [executor for executor in ("single_threaded", "events") if not lacking(run, tmp_path, executor)]
    for result in results(
        run, "graph.yaml", "-t", "2", "--middleware", f"rclcpp/{rmw}", "--executor", ",".join(executors)
    ):
        exact(result, 600, 600)


def test_an_unknown_rmw_is_one_line(run: Run, tmp_path: Path) -> None:
    done = run("run", "sierra_nevada", "-t", "1", "--middleware", "rclcpp/rmw_nothing")
    assert done.returncode == 3
    assert "rmw_nothing" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("type_", ["stamped", "control_msgs/action/FollowJointTrajectory"])
def test_clients_of_perflabs_count_what_a_server_of_rclcpp_action_does(
    run: Run, tmp_path: Path, rmw: str, type_: str
) -> None:
    """Goals accepted, rejected, succeeded, aborted and cancelled: by perflab's client on DDS and on rclcpp, and by the
    server, which knows nothing of perflab."""
    tool = Path(os.environ.get("PERFLAB_TEST_TOOLS", "")) / "ros2_action_server_tool"
    if not os.access(tool, os.X_OK):
        pytest.skip("no ros2_action_server_tool in PERFLAB_TEST_TOOLS; build it with `make test-ros2`")
    full = "perflab_msgs/action/Stamped" if type_ == "stamped" else type_
    if type_ != "stamped" and not has_package(full.partition("/")[0]):
        pytest.skip(f"this ROS 2 has no {full}")

    def client(name: str, period: str, **more: str) -> Json:
        ends = {"action": "/arm/move", "type": type_, "period": period, **more}
        return {"name": name, "nodes": [{"name": name, "action_clients": [ends]}]}

    server = {
        "name": "server",
        "program": "outside",
        "options": {"command": f"{tool} /arm/move {full}", "within": "30s"},
        "nodes": [{"name": "action_server", "action_servers": [{"action": "/arm/move", "type": type_}]}],
    }
    clients = [client("planner", "100ms"), client("operator", "150ms", cancel_after="20ms")]
    (tmp_path / "arm.json").write_text(json.dumps({"name": "arm", "processes": [*clients, server]}))
    both, out = f"{OWN[rmw]},rclcpp/{rmw}", tmp_path / "run"
    found = results(run, "arm.json", "-t", str(SECONDS), "--warmup", "0", "--middleware", both, "-o", out)
    trials = {
        json.loads(path.read_text())["middleware"]["name"]: path.parent for path in out.glob("trials/*/trial.json")
    }
    assert len(found) == len(trials) == 2
    for result in found:
        told: dict[str, int] = {}
        for service in result["services"]:
            assert service["sent"] == service["received"] == sum(service["answers"].values()) > 0, service
            if not service["service"].endswith("cancel_goal"):
                for answer, count in service["answers"].items():
                    told[answer] = told.get(answer, 0) + count
        log = trials[result["middleware"]] / "companions/server.log"
        words = log.read_text().splitlines()[-1].split()
        counted = dict(zip(words[::2], map(int, words[1::2]), strict=True))
        assert counted.pop("feedback") > 0
        assert {name: count for name, count in counted.items() if count} == told
        assert {"accepted", "rejected", "succeeded", "aborted", "canceled"} <= told.keys()
