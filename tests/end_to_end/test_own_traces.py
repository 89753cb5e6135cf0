"""perflab-node's own tracepoints: a process is recorded with LTTng, and the trace says what the process measured."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import struct
import subprocess
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from measured import (
    messages_of,
    only,
    process_of,
    records_in,
    same_edges_as_measured,
    same_publications_as_measured,
)
from reference_traces import reference_trace

from perflab.experiment import domain
from perflab.trace import names, quality
from perflab.trace.executor import executor
from perflab.trace.paths import Asked, paths_of
from perflab.trace.source import NativeTrace
from tests.lttng_daemon import session_daemon
from tests.marks import long_but

from .conftest import NATIVE, PINGPONG, SOURCE

LIMIT_S = 120
LIBRARY = "libperflab_ros2_tracepoints.so"
RECORDED_JAZZY = ("jazzy_small", "jazzy_small_ipc")  # made by rclcpp
Json = dict[str, Any]


def ran(command: list[str], environment: dict[str, str]) -> str:
    run = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False, env=environment)
    assert run.returncode == 0, (command, run.stdout, run.stderr)
    return run.stdout


@pytest.fixture(scope="module")
def lttng() -> Iterator[dict[str, str]]:
    """An environment with a session daemon."""
    if not (Path(NATIVE) / LIBRARY).exists():
        pytest.skip(f"no {LIBRARY} in {NATIVE}: install liblttng-ust-dev and build it")
    with session_daemon() as environment:
        yield environment


@contextmanager
def recording(environment: dict[str, str], output: Path) -> Iterator[None]:
    """Records everything that is emitted meanwhile into that folder."""
    name = f"perflab-{uuid.uuid4().hex}"
    session = ["--userspace", "--session", name]
    channel = [*session, "--channel=ros"]

    def tell(*arguments: str) -> None:
        ran(["lttng", "--no-sessiond", *arguments], environment)

    tell("create", name, f"--output={output}")
    try:
        tell("enable-channel", *session, "--subbuf-size=1M", "--num-subbuf=4", "ros")
        for events in ("ros2:*", "perflab:*"):
            tell("enable-event", *channel, events)
        tell("add-context", *channel, "--type=vpid", "--type=vtid", "--type=procname")
        tell("start", name)
        yield
        tell("stop", name)
    finally:
        tell("destroy", name)


def graph_of(file: Path) -> Json:
    command = [str(Path(NATIVE) / "perflab-graph"), "resolve", str(file)]
    graph = json.loads(ran(command, dict(os.environ)))
    assert isinstance(graph, dict)
    return graph


def sierra_nevada() -> Json:
    return graph_of(SOURCE / "catalog" / "topologies" / "sierra_nevada.yaml")


def configured(folder: Path, number: int, graph: Json, process: str, **changes: Any) -> Path:
    """The configuration of one traced process, in the domain of that number."""
    middleware = changes.pop("middleware", "cyclonedds")
    document = {
        "schema": 1,
        "graph": graph,
        "process": process,
        "runtime": "dds",
        "middleware": {
            "name": middleware,
            "library": f"{NATIVE}/middleware/{middleware}.so",
            "domain": number,
            "network": "lo",
            "options": {},
        },
        "duration_ns": 1_500_000_000,
        "warmup_ns": 500_000_000,
        "discovery_timeout_ns": LIMIT_S * 10**9,
        "records": str(folder / f"{process}.jsonl"),
        "tracing": {"library": f"{NATIVE}/{LIBRARY}"},
        **changes,
    }
    file = folder / f"{process}.json"
    file.write_text(json.dumps(document))
    return file


def node(config: Path, environment: dict[str, str], *options: str) -> None:
    ran([f"{NATIVE}/perflab-node", "--config", str(config), *options], environment)


def records(folder: Path, process: str) -> list[Json]:
    return records_in(folder / f"{process}.jsonl")


@pytest.mark.native
# Each middleware, executor and way of delivery once in the check.
@pytest.mark.parametrize(
    ("middleware", "intra_process", "executor"),
    long_but(
        [
            ("cyclonedds", False, "single_threaded"),
            ("fastdds", True, "multi_threaded"),
            ("cyclonedds", True, "inline"),
            ("fastdds", False, "events"),
        ],
        product(("cyclonedds", "fastdds"), (False, True), ("inline", "single_threaded", "events", "multi_threaded")),
    ),
)
def test_a_trace_says_what_the_process_measured(
    lttng: dict[str, str], tmp_path: Path, middleware: str, intra_process: bool, executor: str
) -> None:
    if not Path(f"{NATIVE}/middleware/{middleware}.so").exists():
        pytest.skip(f"no {middleware}.so in {NATIVE}/middleware")
    with domain.hold() as number, recording(lttng, tmp_path / "trace"):
        how: Json = {"middleware": middleware, "intra_process": intra_process, "executor": executor}
        node(configured(tmp_path, number, sierra_nevada(), "sierra_nevada", **how), lttng)
    own = records(tmp_path, "sierra_nevada")
    assert only(own, "process")["tracing"] == {"library": f"{NATIVE}/{LIBRARY}", "recorded": True}
    final = only(own, "checkpoint")
    assert final["final"]
    with NativeTrace([tmp_path / "trace"]) as trace:
        assert trace.facts["ledger"] == []
        assert {name: n for name, n in trace.facts["counters"].items() if n} == {}
        process = process_of(trace, only(own, "process")["pid"])
        same_publications_as_measured(trace, process, final)
        takes = trace.table("takes")
        assert set(takes["match"].unique()) <= {"matched", "not_taken"}
        assert (takes.filter(pl.col("match") == "matched").height == 0) == intra_process
        handled = messages_of(trace, process)
        same_edges_as_measured(handled, final)
        due_times_are_those_of_the_schedule(trace, own)
        threads_have_phases(trace, executor)
        assert trace.facts["tracetools_versions"] == ["8.5.0+perflab"]


def due_times_are_those_of_the_schedule(trace: NativeTrace, own: list[Json]) -> None:
    callbacks = trace.table("callbacks")
    timers = trace.table("timers")
    instances = trace.table("callback_instances")
    kind = callbacks["kind"][instances["callback"]]
    ticks = instances.filter(kind == "timer")
    assert instances.filter(kind != "timer")["due_ns"].null_count() == instances.height - ticks.height
    start = only(own, "start")["measured_from_ns"]
    period = timers["period_ns"][callbacks["owner"][ticks["callback"]]]
    assert ticks.height > 0
    # Each timer keeps the place in its period that the process recorded.
    place = ticks.select("callback", place=(ticks["due_ns"] - start) % period).unique()
    assert place["callback"].is_unique().all()
    expected = sorted(timer["offset_ns"] % timer["period_ns"] for timer in only(own, "process")["timers"])
    assert sorted(place["place"]) == expected
    assert (ticks["due_ns"] <= ticks["start_ns"]).all()
    # Each tick once.
    assert ticks.select("callback", "due_ns").is_unique().all()


def threads_have_phases(trace: NativeTrace, executor: str) -> None:
    phases = trace.table("phases")
    if executor == "inline":
        assert phases.height == 0
        return
    names = trace.table("threads")["name"][phases["thread"].unique()]
    assert all(str(name).startswith("montreal") for name in names)
    ended = phases.filter(pl.col("end_ns").is_not_null())
    assert phases.height - ended.height <= len(names)  # the last one of each thread
    assert {"get_next_ready", "wait_for_work", "execute"} <= set(map(str, phases["phase"].unique()))
    # Every callback that an executor's thread ran is in a phase that says so.
    ran = phases.filter(pl.col("callback").is_not_null())
    assert ran.height == trace.table("callback_instances").height
    assert set(map(str, ran["phase"].unique())) <= {"execute", "dispatch"}


SERVICE = """\
name: service
processes:
  - name: both
    nodes:
      - name: caller
        namespace: /robot
        timers: [{name: call, period: 20ms, request: /add}]
        clients: [{service: /add, type: stamped10b}]
      - name: adder
        servers: [{service: /add, type: stamped10b, work: 1ms}]
"""


CALL = "/robot/caller timer 20 ms → /add request → /adder service /add → /add reply → /robot/caller client /add"


def pingpong(file: Path) -> Json:
    file.write_text(PINGPONG)
    return graph_of(file)


def together(configs: list[Path], environment: dict[str, str], *options: str) -> None:
    with ThreadPoolExecutor(len(configs)) as pool:
        for future in [pool.submit(node, config, environment, *options) for config in configs]:
            future.result(LIMIT_S)


@pytest.mark.native
@pytest.mark.parametrize("middleware", long_but(["cyclonedds"], ["cyclonedds", "fastdds", "shm"]))
def test_messages_between_processes_are_joined(lttng: dict[str, str], tmp_path: Path, middleware: str) -> None:
    if not Path(f"{NATIVE}/middleware/{middleware}.so").exists():
        pytest.skip(f"no {middleware}.so in {NATIVE}/middleware")
    graph = pingpong(tmp_path / "graph.yaml")
    with domain.hold() as number, recording(lttng, tmp_path / "trace"):
        together([configured(tmp_path, number, graph, name, middleware=middleware) for name in ("ping", "pong")], lttng)
    with NativeTrace([tmp_path / "trace"]) as trace:
        takes = trace.table("takes").filter(pl.col("match") != "not_taken")
        assert takes.height > 100
        assert (takes["match"] == "matched").all()
        stamps = trace.table("publications")["source_timestamp"][takes["publication"]]
        assert (stamps == takes["source_timestamp"]).all()
        process = trace.table("publishers")["process"][trace.table("publications")["publisher"][takes["publication"]]]
        assert (process != trace.table("subscriptions")["process"][takes["subscription"]]).all()


@pytest.mark.native
@pytest.mark.long
def test_no_initialisation_is_lost_however_soon_it_comes(lttng: dict[str, str], tmp_path: Path) -> None:
    graph = pingpong(tmp_path / "graph.yaml")
    names = ("ping", "pong")
    wanted = {
        "nodes": {"/ping", "/pong"},
        "publishers": {"/ping", "/pong"},
        "subscriptions": {"/ping", "/pong"},
        "callbacks": {"perflab::timer(/ping, tick)", "perflab::subscription(/ping, /pong)"}
        | {"perflab::subscription(/pong, /ping)"},
    }
    column = {"nodes": "name", "publishers": "topic", "subscriptions": "topic", "callbacks": "symbol"}
    for repetition in range(20):
        output = tmp_path / f"{repetition}"
        with domain.hold() as number, recording(lttng, output):
            together([configured(tmp_path, number, graph, name) for name in names], lttng, "--check")
        with NativeTrace([output]) as trace:
            assert trace.table("processes")["tracetools_version"].to_list() == ["8.5.0+perflab"] * len(names)
            for table, expected in wanted.items():
                frame = trace.table(table)
                assert sorted(frame[column[table]].to_list()) == sorted(expected), (repetition, table)
            for table in ("publishers", "subscriptions", "callbacks", "timers"):
                assert trace.table(table)["node"].null_count() == 0


@pytest.mark.native
@pytest.mark.parametrize("intra_process", [False, True], ids=["dds", "ipc"])
def test_of_a_service_each_call_is_known_with_its_callback(
    lttng: dict[str, str], tmp_path: Path, intra_process: bool
) -> None:
    (tmp_path / "graph.yaml").write_text(SERVICE)
    graph = graph_of(tmp_path / "graph.yaml")
    with domain.hold() as number, recording(lttng, tmp_path / "trace"):
        node(configured(tmp_path, number, graph, "both", intra_process=intra_process), lttng)
    final = only(records(tmp_path, "both"), "checkpoint")
    (service,) = final["services"]
    with NativeTrace([tmp_path / "trace"]) as trace:
        assert trace.table("services")["name"].to_list() == ["/add"]
        assert trace.table("clients")["name"].to_list() == ["/add"]
        callbacks = trace.table("callbacks")
        (row,) = (i for i, kind in enumerate(callbacks["kind"]) if kind == "service")
        instances = trace.table("callback_instances").filter(pl.col("callback") == row)
        requests = service["requests"]
        assert instances.height == requests["sent"] + requests["warmup_sent"]
        assert ((instances["end_ns"] - instances["start_ns"]) >= 1_000_000).all()
        assert set(instances["intra_process"]) == {False}
        assert quality.service_reason(trace.facts) is None
        calls = trace.table("service_calls")
        assert calls.height == instances.height
        assert calls["sequence_number"].to_list() == list(range(1, calls.height + 1))
        handled = trace.table("callback_instances")[calls["callback_instance"].to_list()]
        assert (handled["callback"] == row).all()
        course = (
            calls["send_request_ns"], calls["take_request_ns"], handled["start_ns"], calls["send_response_ns"],
            handled["end_ns"],
        )  # fmt: skip
        assert all((before <= after).all() for before, after in pairwise(course))
        assert (calls["take_response_ns"] >= calls["send_response_ns"]).all()
        for table in ("takes", "publications", "intra_deliveries"):
            assert trace.table(table).height == 0
        # From the timer by the service back to the client: one path of all of them.
        (told,) = paths_of(trace, Asked()).told
        assert told.route.name == CALL
        assert (told.followed.set_out, told.followed.complete.height) == (calls.height, calls.height)
        round_trips = (calls["take_response_ns"] - calls["send_request_ns"]).to_list()
        legs = told.followed.complete.sort("start_ns").select(pl.col("leg_1") + pl.col("leg_2") + pl.col("leg_3"))
        assert legs.to_series().to_list() == round_trips


WAITABLES = """\
name: waitables
nodes:
  - name: arm
    namespace: /robot
    waitables: [{name: idle, number: 3}, {name: changes, period: 20ms, work: 1ms}]
"""


@pytest.mark.native
@pytest.mark.parametrize("kind", ["inline", "single_threaded", "events", "multi_threaded"])
def test_waitables_are_dispatched(lttng: dict[str, str], tmp_path: Path, kind: str) -> None:
    (tmp_path / "graph.yaml").write_text(WAITABLES)
    graph = graph_of(tmp_path / "graph.yaml")
    with domain.hold() as number, recording(lttng, tmp_path / "trace"):
        node(configured(tmp_path, number, graph, "waitables", executor=kind), lttng)
    final = only(records(tmp_path, "waitables"), "checkpoint")
    (changes,) = (w for w in final["waitables"] if w["name"] == "changes")
    assert changes["triggers"] + changes["not_triggered"] == 75
    assert changes["triggers"] == changes["executed"] + changes["coalesced"]
    with NativeTrace([tmp_path / "trace"]) as trace:
        assert {name: n for name, n in trace.facts["counters"].items() if n} == {}
        callbacks = names.callbacks(trace)
        assert set(callbacks.filter(pl.col("kind") == "waitable")["label"]) == {
            f"/robot/arm waitable {name}" for name in ("idle_1", "idle_2", "idle_3", "changes")
        }
        (row,) = callbacks.filter(pl.col("name") == "changes")["row"]
        instances = trace.table("callback_instances").filter(pl.col("callback") == row)
        assert changes["executed"] <= instances.height <= changes["executed"] + changes["warmup_triggers"]
        assert ((instances["end_ns"] - instances["start_ns"]) >= 1_000_000).all()
        if kind == "inline":
            return
        rows = executor(trace).section("executor").frame  # of each thread
        phases = dict(rows.group_by("function").agg(pl.col("count").sum()).iter_rows())
        assert phases["dispatch"] == phases["callbacks in dispatch"] == instances.height
        assert phases["callbacks in execute"] == trace.table("callback_instances").height - instances.height


def refused(config: Path) -> tuple[int, str]:
    command = [f"{NATIVE}/perflab-node", "--config", str(config), "--check"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    return run.returncode, run.stderr


@pytest.mark.native
def test_what_cannot_be_traced_is_refused_in_one_line(tmp_path: Path) -> None:
    graph = pingpong(tmp_path / "graph.yaml")
    virtual: Json = {"runtime": "virtual", "middleware": "virtual"}
    status, text = refused(configured(tmp_path, 1, graph, "ping", **virtual))
    assert (status, text.count("\n")) == (3, 1)
    assert text.startswith("perflab-node: virtual: tracing: ")
    status, text = refused(configured(tmp_path, 1, graph, "ping", tracing={"library": "/nowhere/x.so"}))
    assert (status, text) == (3, "perflab-node: tracepoints /nowhere/x.so: no such file\n")
    for wrong in ({}, "x.so", {"library": ""}, {"library": None}):
        status, text = refused(configured(tmp_path, 1, graph, "ping", tracing=wrong))
        assert (status, text.count("\n")) == (2, 1)
        assert 'tracing: must be null or {"library": "/path"}' in text


@pytest.mark.native
def test_nothing_of_the_tracer_is_linked_into_perflab_node() -> None:
    linked = ran(["ldd", f"{NATIVE}/perflab-node"], dict(os.environ))
    assert "libc.so" in linked
    assert "lttng" not in linked


@pytest.mark.native
@pytest.mark.parametrize("traced", [False, True])
def test_the_tracer_s_threads_are_nobody_else_s(lttng: dict[str, str], tmp_path: Path, traced: bool) -> None:
    graph = pingpong(tmp_path / "graph.yaml")
    realtime = {"policy": "FIFO", "priority": 7, "cpus": []}
    changes: Json = {"threads": {"executors": realtime, "middleware": realtime}} | ({} if traced else {"tracing": None})
    with domain.hold() as number, recording(lttng, tmp_path / "trace"):
        configs = [configured(tmp_path, number, graph, name, **changes) for name in ("ping", "pong")]
        try:
            together(configs, lttng)
        except AssertionError as failure:
            if "not permitted" in str(failure) or "RLIMIT_RTPRIO" in str(failure):
                pytest.skip("real-time priorities are not permitted here")
            raise
    for name in ("ping", "pong"):
        own = records(tmp_path, name)
        assert (only(own, "process")["tracing"] is not None) == traced
        for when in own:
            if when["type"] != "threads":
                continue
            by_role: dict[str, set[str]] = {}
            for thread in when["threads"]:
                by_role.setdefault(thread["role"], set()).add(thread["policy"])
            assert by_role["middleware"] == by_role["executor"] == {"FIFO"}
            assert by_role.get("tracer") == ({"OTHER"} if traced else None)


BINDINGS = """\
import bt2, sys
messages = bt2.TraceCollectionMessageIterator(sys.argv[1])
events = (message.event for message in messages if type(message) is bt2._EventMessageConst)
print(sum(dict(event.payload_field) is not None for event in events))
"""


def babeltrace_reads(trace: Path) -> None:
    """Without complaint, where it is here; its bindings as many events as perflab."""
    if shutil.which("babeltrace2") is None:
        pytest.skip("no babeltrace2: install babeltrace2")
    quiet = subprocess.run(
        ["babeltrace2", "--component=sink.utils.dummy", str(trace)],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert (quiet.returncode, quiet.stderr) == (0, "")
    python = "/usr/bin/python3"
    if subprocess.run([python, "-c", "import bt2"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no bindings of babeltrace2: install python3-bt2")
    with NativeTrace([trace]) as own:
        events = sum(event["count"] for event in own.facts["events"])
    assert int(ran([python, "-c", BINDINGS, str(trace)], dict(os.environ))) == events > 0


@pytest.mark.native
def test_other_readers_read_it_and_find_the_events_of_jazzy(lttng: dict[str, str], tmp_path: Path) -> None:
    graph = pingpong(tmp_path / "graph.yaml")
    with domain.hold() as number, recording(lttng, tmp_path / "trace"):
        together([configured(tmp_path, number, graph, name) for name in ("ping", "pong")], lttng, "--check")
    own = classes(metadata_of(tmp_path / "trace"))
    assert own.pop("perflab:timer_due") == event("timer_handle", "due_ns:i64")
    assert own == JAZZY
    for recorded in recorded_jazzy():
        for name, fields in classes(metadata_of(recorded)).items():
            assert own[name] == fields, name
    babeltrace_reads(tmp_path / "trace")


def metadata_of(folder: Path) -> str:
    """The metadata of the user space as text, out of its packets."""
    (file,) = (file for file in folder.rglob("metadata") if "ust" in file.parts)
    data, text, begin = file.read_bytes(), b"", 0
    while begin < len(data):
        magic, content_bits, packet_bits = struct.unpack_from("<I20xII", data, begin)
        assert magic == 0x75D11D57
        text += data[begin + 37 : begin + content_bits // 8]
        begin += packet_bits // 8
    return text.decode()


def classes(metadata: str) -> dict[str, list[tuple[str, str]]]:
    """The fields of each event with their types, in short: u64x is an unsigned integer of 64 bits, shown in base 16."""
    found = {}
    for name, fields in re.findall(
        r'event \{\s*name = "([^"]+)";.*?fields := struct \{(.*?)\n\t\};\n\};', metadata, re.DOTALL
    ):
        found[name] = [field(line) for line in map(str.strip, fields.splitlines()) if line]
    return found


def field(line: str) -> tuple[str, str]:
    if text := re.fullmatch(r"string _(\w+);", line):
        return text[1], "text"
    integer = re.fullmatch(
        r"integer \{ size = (\d+); align = 8; signed = ([01]); encoding = none; base = (10|16); \} _(\w+)(\[\d+\])?;",
        line,
    )
    assert integer is not None, line
    size, signed, base, name, length = integer.groups()
    return name, f"{'ui'[int(signed)]}{size}{'x' if base == '16' else ''}{length or ''}"


def recorded_jazzy() -> Iterator[Path]:
    """Traces of rclcpp, where they are here."""
    for name in RECORDED_JAZZY:
        with contextlib.suppress(pytest.skip.Exception):
            yield reference_trace(name)


def event(*fields: str) -> list[tuple[str, str]]:
    """Handles by their names alone, other fields as `name:type`."""
    pairs = (text.partition(":") for text in fields)
    return [(name, kind or "u64x") for name, _, kind in pairs]


# tracetools 8.2, and 8.5 of calls.
_ENDPOINT = ("topic_name:text", "queue_depth:u64")
JAZZY = {
    "ros2:rcl_init": event("context_handle", "version:text"),
    "ros2:rcl_node_init": event("node_handle", "rmw_handle", "node_name:text", "namespace:text"),
    "ros2:rmw_publisher_init": event("rmw_publisher_handle", "gid:u8[24]"),
    "ros2:rcl_publisher_init": event("publisher_handle", "node_handle", "rmw_publisher_handle", *_ENDPOINT),
    "ros2:rclcpp_publish": event("message"),
    "ros2:rclcpp_intra_publish": event("publisher_handle", "message"),
    "ros2:rcl_publish": event("publisher_handle", "message"),
    "ros2:rmw_publish": event("rmw_publisher_handle", "message", "timestamp:i64"),
    "ros2:rmw_subscription_init": event("rmw_subscription_handle", "gid:u8[24]"),
    "ros2:rcl_subscription_init": event("subscription_handle", "node_handle", "rmw_subscription_handle", *_ENDPOINT),
    "ros2:rclcpp_subscription_init": event("subscription_handle", "subscription"),
    "ros2:rclcpp_subscription_callback_added": event("subscription", "callback"),
    "ros2:rmw_take": event("rmw_subscription_handle", "message", "source_timestamp:i64", "taken:i32"),
    "ros2:rcl_take": event("message"),
    "ros2:rclcpp_take": event("message"),
    "ros2:rcl_service_init": event("service_handle", "node_handle", "rmw_service_handle", "service_name:text"),
    "ros2:rclcpp_service_callback_added": event("service_handle", "callback"),
    "ros2:rcl_client_init": event("client_handle", "node_handle", "rmw_client_handle", "service_name:text"),
    "ros2:rmw_client_init": event("rmw_client_handle", "gid:u8[24]"),
    "ros2:rmw_send_request": event("rmw_client_handle", "request", "sequence_number:i64"),
    "ros2:rmw_take_request": event(
        "rmw_service_handle", "request", "client_gid:u8[24]", "sequence_number:i64", "taken:i32"
    ),
    "ros2:rmw_send_response": event(
        "rmw_service_handle", "response", "client_gid:u8[24]", "sequence_number:i64", "timestamp:i64"
    ),
    "ros2:rmw_take_response": event(
        "rmw_client_handle", "response", "sequence_number:i64", "source_timestamp:i64", "taken:i32"
    ),
    "ros2:rcl_timer_init": event("timer_handle", "period:i64"),
    "ros2:rclcpp_timer_callback_added": event("timer_handle", "callback"),
    "ros2:rclcpp_timer_link_node": event("timer_handle", "node_handle"),
    "ros2:rclcpp_callback_register": event("callback", "symbol:text"),
    "ros2:callback_start": event("callback", "is_intra_process:i32"),
    "ros2:callback_end": event("callback"),
    "ros2:rcl_lifecycle_state_machine_init": event("node_handle", "state_machine"),
    "ros2:rcl_lifecycle_transition": event("state_machine", "start_label:text", "goal_label:text"),
    "ros2:rclcpp_executor_get_next_ready": event(),
    "ros2:rclcpp_executor_wait_for_work": event("timeout:i64"),
    "ros2:rclcpp_executor_execute": event("handle"),
    "ros2:rclcpp_ipb_to_subscription": event("ipb", "subscription"),
    "ros2:rclcpp_buffer_to_ipb": event("buffer", "ipb"),
    "ros2:rclcpp_construct_ring_buffer": event("buffer", "capacity:u64"),
    "ros2:rclcpp_ring_buffer_enqueue": event("buffer", "index:u64", "size:u64", "overwritten:i32"),
    "ros2:rclcpp_ring_buffer_dequeue": event("buffer", "index:u64", "size:u64"),
    "ros2:rclcpp_ring_buffer_clear": event("buffer"),
}
