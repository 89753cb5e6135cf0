"""Every middleware with every executor and way of delivery, services, loans, two middlewares in one graph."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.marks import long_but

from .conftest import SOURCE, Json, Run

REAL = ("cyclonedds", "fastdds", "sim")
EXECUTORS = ("inline", "single_threaded", "events", "multi_threaded:2")
SECONDS = 1
PAIRS = ("cyclonedds+fastdds", "fastdds+cyclonedds")

# Histories that outlast any stall of the machine, so that every message must arrive.
TALKER = """\
name: talker
nodes:
  - name: talker
    publishers:
      - {topic: small, type: stamped100b, period: 10ms, qos: {history: keep_all}}
      - {topic: large, type: stamped_vector, size: 200kB, period: 100ms, qos: {history: keep_all}}
      - {topic: best_effort, type: stamped1kb, period: 20ms, qos: {reliability: best_effort, depth: 1000}}
    subscriptions: [{topic: echo, type: stamped100b, qos: {history: keep_all}}]
"""
LISTENER = """\
name: listener
nodes:
  - name: listener
    publishers: [{topic: echo, type: stamped100b, qos: {history: keep_all}}]
    subscriptions:
      - {topic: small, type: stamped100b, qos: {history: keep_all}}
      - {topic: large, type: stamped_vector, qos: {history: keep_all}}
      - {topic: best_effort, type: stamped1kb, qos: {reliability: best_effort, depth: 1000}}
    reactions: [{on: small, publish: echo}]
"""
# Deep queues: a machine that stands still for some tenths of a second shall lose no request.
SERVICES = """\
name: services
processes:
  - name: asking
    nodes:
      - name: one
        clients:
          - {service: add, type: stamped10b, period: 10ms, qos: {depth: 1000}}
          - {service: local, type: stamped100b, period: 20ms, qos: {depth: 1000}}
      - name: two
        clients: [{service: add, type: stamped10b, period: 20ms, qos: {depth: 1000}}]
      - name: near
        servers: [{service: local, type: stamped100b, qos: {depth: 1000}}]
  - name: answering
    nodes:
      - name: far
        servers: [{service: add, type: stamped10b, work: 100us, qos: {depth: 1000}}]
"""
ROUND_TRIPS = {("/one", "/add", "/far"): 100, ("/one", "/local", "/near"): 50, ("/two", "/add", "/far"): 50}


def results(run: Run, *arguments: str | Path) -> list[Json]:
    done = run("run", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    summary: Json = json.loads(done.stdout)
    assert summary["valid"] is True
    found: list[Json] = summary["results"]
    return found


def sierra_nevada(folder: Path) -> Path:
    """The graph of the catalog with histories that outlast any stall of the machine, so that nothing may be lost."""
    document = yaml.safe_load((SOURCE / "catalog" / "topologies" / "sierra_nevada.yaml").read_text())
    for node in document["nodes"]:
        for endpoint in (*node.get("publishers", ()), *node.get("subscriptions", ())):
            endpoint["qos"] = {"depth": 1000}
    path = folder / "sierra_nevada.json"
    path.write_text(json.dumps(document))
    return path


# Each executor and each middleware once in the check; tests/conformance/runtime has them all.
@pytest.mark.parametrize(
    ("middleware", "executors"),
    long_but(
        [("cyclonedds", "single_threaded"), ("fastdds", "multi_threaded:2")],
        [("cyclonedds", "single_threaded"), ("fastdds", "multi_threaded:2"), *((m, ",".join(EXECUTORS)) for m in REAL)],
    ),
)
def test_sierra_nevada_delivers_exactly_on_every_executor_and_either_way(
    run: Run, tmp_path: Path, middleware: str, executors: str
) -> None:
    found = results(
        run, sierra_nevada(tmp_path), "-t", str(SECONDS), "--middleware", middleware, "--executor", executors,
        "--ipc", "off,on", "-o", tmp_path / "run",
    )  # fmt: skip
    assert {(r["executor"], r["ipc"]) for r in found} == {(e, i) for e in executors.split(",") for i in ("off", "on")}
    for result in found:
        totals = result["totals"]
        counts = (totals["published"], totals["sent"], totals["received"], totals["duplicate"])
        assert counts == (654 * SECONDS, 1054 * SECONDS, 1054 * SECONDS, 0), (result["executor"], result["ipc"])
        assert totals["lost"] == {"pre_match": 0, "gap": 0, "tail": 0}
        assert all(e["received"] == round(SECONDS * e["frequency_hz"]) for e in result["edges"])
        reached = sum(p["intra_process"] for p in result["passing"])
        assert reached == (17 if result["ipc"] == "on" else 0)
        assert sum(p["middleware"] for p in result["passing"]) == 17 - reached


@pytest.mark.parametrize("middleware", long_but(PAIRS[:1], PAIRS))
def test_two_middlewares_run_the_halves_of_one_graph(run: Run, tmp_path: Path, middleware: str) -> None:
    (tmp_path / "talker.yaml").write_text(TALKER)
    (tmp_path / "listener.yaml").write_text(LISTENER)
    (result,) = results(run, "talker.yaml", "listener.yaml", "-t", "1", "--middleware", middleware)
    assert result["middleware"] == middleware
    assert {e["topic"]: e["received"] for e in result["edges"]} == {
        "small": 100,
        "large": 10,
        "best_effort": 50,
        "echo": 100,
    }
    assert result["totals"]["lost"] == {"pre_match": 0, "gap": 0, "tail": 0}


@pytest.mark.parametrize("ipc", long_but(["off"], ["off", "on"]))
@pytest.mark.parametrize(
    ("middleware", "framing"),
    long_but(
        [("fastdds", None), ("cyclonedds+fastdds", None)],
        [*((m, None) for m in (*REAL, *PAIRS)), ("fastdds", "rmw_cyclonedds")],
    ),
)
def test_every_request_gets_its_reply(run: Run, tmp_path: Path, middleware: str, framing: str | None, ipc: str) -> None:
    (tmp_path / "services.yaml").write_text(SERVICES)
    choice = [] if framing is None else ["--service-framing", framing]
    (result,) = results(run, "services.yaml", "-t", "1", "--middleware", middleware, "--ipc", ipc, *choice)
    services = {(f"/{s['client']}", f"/{s['service']}", f"/{s['server']}"): s for s in result["services"]}
    assert {key: (s["sent"], s["received"]) for key, s in services.items()} == {
        key: (n, n) for key, n in ROUND_TRIPS.items()
    }
    # The server works for 100 us before it replies.
    assert services["/one", "/add", "/far"]["round_trip_ns"]["min"] >= 100_000


def test_the_framing_of_rmw_fastrtps_is_refused_where_it_cannot_be_had(run: Run, tmp_path: Path) -> None:
    (tmp_path / "services.yaml").write_text(SERVICES)
    done = run("run", "services.yaml", "-t", "1", "--service-framing", "rmw_fastrtps")
    assert done.returncode == 3
    assert "rmw_cyclonedds" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "runs").exists()


def test_loaned_messages_go_in_memory_of_the_middleware(run: Run, tmp_path: Path) -> None:
    (tmp_path / "talker.yaml").write_text(
        "name: talker\nnodes: [{name: talker, publishers: [{topic: image, type: stamped1mb, period: 50ms}]}]\n"
    )
    (tmp_path / "listener.yaml").write_text(
        "name: listener\nnodes: [{name: listener, subscriptions: [{topic: image, type: stamped1mb}]}]\n"
    )
    options = ["--middleware", "fastdds", "--middleware-option", "data_sharing=on", "--pass-by", "loaned"]
    (result,) = results(run, "talker.yaml", "listener.yaml", "-t", "1", *options)
    assert [(p["asked"], p["loaned"]) for p in result["passing"]] == [("loaned", True)]
    assert result["totals"]["received"] == 20


@pytest.mark.parametrize(
    "options",
    [
        ["--middleware", "cyclonedds", "--pass-by", "loaned"],
        ["--middleware", "fastdds", "--pass-by", "loaned"],  # without data sharing
        ["--middleware", "fastdds", "--middleware-option", "data_sharing=on", "--pass-by", "loaned", "--ipc", "on"],
        ["--ros-params", "on"],
        ["--node-type", "lifecycle"],
    ],
)
def test_what_cannot_be_had_ends_with_exit_3_and_one_line(run: Run, tmp_path: Path, options: list[str]) -> None:
    (tmp_path / "graph.yaml").write_text(
        "name: graph\nnodes: [{name: a, publishers: [{topic: t, type: stamped1kb, period: 10ms}],"
        " subscriptions: [{topic: t, type: stamped1kb}]}]\n"
    )
    done = run("run", "graph.yaml", "-t", "1", *options)
    assert done.returncode == 3, done.stderr
    assert done.stderr.startswith("perflab: ")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "runs").exists()
