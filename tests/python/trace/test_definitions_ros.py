"""What a callback, a publication, a take, a delivery and a phase is: each definition of docs/tracing.md on a short list
of events, written as a trace and read by the real reader."""

from __future__ import annotations

import dataclasses
import uuid
from pathlib import Path

import polars as pl
import pytest
from made_trace import MadeTrace, RingBuffer
from opened import column, needs_library, opened, rows

from perflab.trace import names, open_trace
from perflab.trace.summary import summary

LAYOUTS = ("humble_fork", "iron", "jazzy", "kilted")


# Objects ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_object_has_its_node_its_name_and_its_symbol(layout: str, tmp_path: Path) -> None:
    made = MadeTrace(layout)  # type: ignore[arg-type]
    process = made.process("robot", pid=10)
    process.context()
    node = process.node("arm", "/left")
    process.publisher(node, "/joints", depth=7)
    subscription = process.subscription(node, "/goal", symbol="void Arm::on_goal()")
    timer = process.timer(node, 2_000_000)
    process.service(node, "/left/arm/reset")
    process.client(node, "/plan")
    trace = opened(made, tmp_path)
    assert column(trace.table("nodes"), "name") == ["/left/arm"]
    assert rows(trace.table("publishers"), "node", "topic", "queue_depth") == [(0, "/joints", 7)]
    assert rows(trace.table("subscriptions"), "node", "topic", "handle") == [(0, "/goal", subscription.handle)]
    assert rows(trace.table("timers"), "node", "period_ns", "handle") == [(0, 2_000_000, timer.handle)]
    assert rows(trace.table("services"), "node", "name") == [(0, "/left/arm/reset")]
    assert rows(trace.table("clients"), "node", "name") == [(0, "/plan")]
    callbacks = trace.table("callbacks")
    assert rows(callbacks, "kind", "name", "node", "symbol") == [
        ("subscription", "/goal", 0, "void Arm::on_goal()"),
        ("timer", "2 ms", 0, "void on_timer()"),
        ("service", "/left/arm/reset", 0, "void on_request()"),
    ]
    assert len(trace.facts["tracetools_versions"]) == 1
    assert trace.table("processes")["tracetools_version"][0] == trace.facts["tracetools_versions"][0]


def test_a_waitable_and_a_span_are_known_by_what_they_register(tmp_path: Path) -> None:
    made = MadeTrace("jazzy")
    process = made.process("robot", pid=10)
    process.node("leg", "/left")
    process.node("arm", "/left")
    main = process.main
    said = (
        "perflab::waitable(/left/arm, graph changes)",
        "perflab::waitable(/gone, w)",
        "perflab::span(/left/arm, plan)",
        "perflab::waitable(",
        "tick()",
    )
    for number, symbol in enumerate(said):
        main.at(500 + number).rclcpp_callback_register(callback=0xC0 + number, symbol=symbol)
        main.callback(0xC0 + number, 1_000 + 100 * number, 1_050 + 100 * number)
    trace = opened(made, tmp_path)
    assert rows(trace.table("callbacks"), "kind", "node", "name") == [
        ("waitable", 1, "graph changes"), ("waitable", None, "w"), ("span", 1, "plan"),
        ("unknown", None, None), ("unknown", None, None),
    ]  # fmt: skip
    assert trace.facts["counters"]["callbacks_without_owner"] == 2
    labels = names.callbacks(trace)["label"].to_list()
    assert labels[:3] == ["/left/arm waitable graph changes", "(robot 10) waitable w", "/left/arm span plan"]
    (owners,) = (c for c in summary(trace).section("coverage").frame.to_dicts() if c["figure"] == "callback owners")
    assert (owners["known"], owners["of"]) == (3, 5)


def test_objects_may_be_initialised_before_what_they_belong_to(tmp_path: Path) -> None:
    made = MadeTrace("humble_fork")
    process = made.process("robot", pid=10)
    main = process.main
    main.at(10).rcl_timer_init(timer_handle=0x7, period=1_000)
    main.at(11).rclcpp_timer_link_node(timer_handle=0x7, node_handle=0x9)
    main.at(12).rclcpp_callback_register(callback=0xC, symbol="tick()")
    main.at(13).rclcpp_timer_callback_added(timer_handle=0x7, callback=0xC)
    main.at(14).rcl_node_init(node_handle=0x9, rmw_handle=1, node_name="late", namespace="/")
    trace = opened(made, tmp_path)
    assert rows(trace.table("callbacks"), "kind", "node", "name", "symbol") == [("timer", 0, "1 us", "tick()")]
    assert column(trace.table("nodes"), "name") == ["/late"]


def test_a_handle_that_is_used_again_is_another_object(tmp_path: Path) -> None:
    made = MadeTrace("jazzy")
    process = made.process("robot", pid=10)
    main = process.main
    for at, name in ((10, "first"), (5_000, "second")):
        main.at(at).rcl_node_init(node_handle=0x9, rmw_handle=1, node_name=name, namespace="/")
        main.at(at + 1).rcl_timer_init(timer_handle=0x7, period=at)
        main.at(at + 2).rclcpp_timer_callback_added(timer_handle=0x7, callback=0xC)
        main.at(at + 3).rclcpp_timer_link_node(timer_handle=0x7, node_handle=0x9)
        main.callback(0xC, at + 100, at + 150)
    trace = opened(made, tmp_path)
    assert rows(trace.table("nodes"), "name", "valid_from_ns", "valid_to_ns") == [
        ("/first", 10, 5_000), ("/second", 5_000, None),
    ]  # fmt: skip
    assert column(trace.table("callback_instances"), "callback") == [0, 1]
    assert column(trace.table("callbacks"), "node") == [0, 1]


def test_the_same_handle_in_two_processes_is_two_objects(tmp_path: Path) -> None:
    made = MadeTrace("jazzy")
    for pid in (10, 20):
        process = made.process(f"robot{pid}", pid=pid)
        process.main.at(pid).rcl_node_init(node_handle=0x9, rmw_handle=1, node_name=f"n{pid}", namespace="/")
        process.main.at(pid + 1).callback_start(callback=0xC, is_intra_process=0)
        process.main.at(pid + 5).callback_end(callback=0xC)
    trace = opened(made, tmp_path)
    assert rows(trace.table("nodes"), "process", "name") == [(0, "/n10"), (1, "/n20")]
    assert rows(trace.table("callback_instances"), "callback", "start_ns", "end_ns") == [(0, 11, 15), (1, 21, 25)]


def test_an_object_without_its_initialisation_is_kept_unknown_and_a_later_one_is_another(tmp_path: Path) -> None:
    made = MadeTrace("jazzy")
    process = made.process("robot", pid=10)
    process.main.callback(0xC, 100, 200)
    process.main.at(300).rcl_timer_init(timer_handle=0x7, period=1_000)
    process.main.at(301).rclcpp_timer_callback_added(timer_handle=0x7, callback=0xC)
    process.main.callback(0xC, 400, 500)
    trace = opened(made, tmp_path)
    assert rows(trace.table("callbacks"), "kind", "name", "valid_from_ns", "valid_to_ns") == [
        ("unknown", None, None, 301), ("timer", "1 us", 301, None),
    ]  # fmt: skip
    assert column(trace.table("callback_instances"), "callback") == [0, 1]
    assert trace.facts["counters"]["callbacks_without_owner"] == 1


# Callbacks ----------------------------------------------------------------------------------------------------------


def test_a_callback_lasts_from_its_start_to_its_end_on_its_thread(tmp_path: Path) -> None:
    made = MadeTrace("jazzy")
    process = made.process("robot", pid=10)
    one, two = process.thread(11), process.thread(12, cpu=1)
    one.at(100).callback_start(callback=0xC, is_intra_process=0)
    two.at(150).callback_start(callback=0xC, is_intra_process=0)  # a reentrant group: the same callback at once
    one.at(300).callback_end(callback=0xC)
    two.at(200).callback_end(callback=0xC)
    trace = opened(made, tmp_path)
    assert rows(trace.table("callback_instances"), "thread", "start_ns", "end_ns", "parent") == [
        (0, 100, 300, None), (1, 150, 200, None),
    ]  # fmt: skip


def test_a_callback_within_a_callback_has_a_parent(tmp_path: Path) -> None:
    made = MadeTrace("jazzy")
    main = made.process("robot", pid=10).main
    main.at(100).callback_start(callback=0xA, is_intra_process=0)
    main.callback(0xB, 200, 300)
    main.at(400).callback_end(callback=0xA)
    trace = opened(made, tmp_path)
    assert rows(trace.table("callback_instances"), "start_ns", "end_ns", "parent") == [(100, 400, None), (200, 300, 0)]


def test_a_callback_that_never_ends_is_reported_and_not_closed_by_another(tmp_path: Path) -> None:
    made = MadeTrace("jazzy")
    main = made.process("robot", pid=10).main
    main.callback(0xA, 100, None)  # an exception
    main.callback(0xA, 500, 600)
    main.at(700).callback_start(callback=0xA, is_intra_process=0)
    main.callback(0xB, 800, None)
    main.at(900).callback_end(callback=0xA)
    main.callback(0xC, 1_000, None)  # the trace ends
    trace = opened(made, tmp_path)
    assert rows(trace.table("callback_instances"), "start_ns", "end_ns") == [
        (100, None), (500, 600), (700, 900), (800, None), (1_000, None),
    ]  # fmt: skip
    assert trace.facts["counters"]["callback_start_without_end"] == 3


def test_an_end_without_a_start_is_counted_and_ends_nothing(tmp_path: Path) -> None:
    made = MadeTrace("jazzy")
    main = made.process("robot", pid=10).main
    main.at(50).callback_end(callback=0xA)
    main.at(100).callback_start(callback=0xB, is_intra_process=0)
    main.at(150).callback_end(callback=0xA)
    main.at(200).callback_end(callback=0xB)
    trace = opened(made, tmp_path)
    assert rows(trace.table("callback_instances"), "start_ns", "end_ns") == [(100, 200)]
    assert trace.facts["counters"]["callback_end_without_start"] == 2


# Messages between processes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["humble_fork", "jazzy", "kilted"])
def test_a_take_is_of_the_publication_with_its_source_timestamp_and_topic(layout: str, tmp_path: Path) -> None:
    made = MadeTrace(layout)  # type: ignore[arg-type]
    talker, listener = made.process("talker", pid=10), made.process("listener", pid=20, cpu=1)
    chatter = talker.publisher(talker.node("talker"), "/chatter")
    other = talker.publisher(talker.node("other"), "/other")
    heard = listener.subscription(listener.node("listener"), "/chatter")
    also = listener.subscription(listener.node("listener_too"), "/chatter")
    first = talker.main.publish(chatter, 1_000, rcl_at=1_010, rmw_at=1_020)
    # The same instant on another topic, by chance.
    talker.main.publish(other, 1_100, source_timestamp=first.source_timestamp)
    listener.main.take(heard, first, 2_000)
    listener.main.callback(heard, 2_050, 2_100)
    listener.main.take(also, first, 2_200)
    listener.main.callback(also, 2_250, 2_300)
    trace = opened(made, tmp_path)
    takes = trace.table("takes")
    assert rows(takes, "match", "publication", "rmw_ns", "rclcpp_ns", "callback_instance") == [
        ("matched", 0, 2_000, 2_001, 0), ("matched", 0, 2_200, 2_201, 1),
    ]  # fmt: skip
    publications = trace.table("publications")
    assert rows(publications, "publisher", "rclcpp_ns", "rcl_ns", "rmw_ns")[0] == (0, 1_000, 1_010, 1_020)
    assert column(trace.table("callback_instances"), "take") == [0, 1]


def test_takes_without_publication_say_why(tmp_path: Path) -> None:
    made = MadeTrace("jazzy")
    talker, listener = made.process("talker", pid=10), made.process("listener", pid=20, cpu=1)
    chatter = talker.publisher(talker.node("talker"), "/chatter")
    heard = listener.subscription(listener.node("listener"), "/chatter")
    main = listener.main
    sent = talker.main.publish(chatter, 1_000)
    again = talker.main.publish(chatter, 1_100, source_timestamp=sent.source_timestamp)
    assert again.source_timestamp == sent.source_timestamp
    main.take(heard, None, 2_000, taken=False)
    main.at(2_100).rmw_take(rmw_subscription_handle=heard.rmw_handle, message=1, source_timestamp=0, taken=1)
    main.at(2_200).rmw_take(rmw_subscription_handle=0xBAD, message=1, source_timestamp=5, taken=1)
    main.at(2_300).rmw_take(rmw_subscription_handle=heard.rmw_handle, message=1, source_timestamp=77, taken=1)
    main.take(heard, sent, 2_400)
    trace = opened(made, tmp_path)
    assert rows(trace.table("takes"), "match", "publication", "subscription") == [
        ("not_taken", None, 0),
        ("no_timestamp", None, 0),
        ("unknown_subscription", None, None),
        ("no_publication", None, 0),
        ("ambiguous", None, 0),
    ]
    assert trace.facts["counters"]["takes_of_unknown_subscriptions"] == 1


def test_layers_of_one_publication_are_joined_by_message_and_thread(tmp_path: Path) -> None:
    made = MadeTrace("jazzy")
    process = made.process("talker", pid=10)
    chatter = process.publisher(process.node("talker"), "/chatter")
    one, two = process.thread(11), process.thread(12, cpu=1)
    one.at(1_000).rclcpp_publish(message=0xA)
    two.at(1_001).rclcpp_publish(message=0xA)  # the same address on another thread's stack
    one.at(1_010).rcl_publish(publisher_handle=chatter.handle, message=0xA)
    two.at(1_011).rcl_publish(publisher_handle=chatter.handle, message=0xA)
    one.at(1_020).rclcpp_publish(message=0xA)  # the address again: another message, although rmw_publish was not seen
    trace = opened(made, tmp_path)
    assert rows(trace.table("publications"), "thread", "rclcpp_ns", "rcl_ns", "rmw_ns") == [
        (1, 1_000, 1_010, None), (2, 1_001, 1_011, None), (1, 1_020, None, None),
    ]  # fmt: skip


def test_a_publication_belongs_to_the_callback_in_which_it_is_made(tmp_path: Path) -> None:
    made = MadeTrace("jazzy")
    process = made.process("talker", pid=10)
    chatter = process.publisher(process.node("talker"), "/chatter")
    process.main.callback(0xC, 1_000, 2_000)
    process.main.publish(chatter, 1_500)
    process.main.publish(chatter, 2_500)
    process.thread(11, cpu=1).publish(chatter, 1_600)  # another thread, at the same time
    trace = opened(made, tmp_path)
    assert sorted(rows(trace.table("publications"), "rclcpp_ns", "callback_instance")) == [
        (1_500, 0), (1_600, None), (2_500, None),
    ]  # fmt: skip


def test_a_message_is_handled_by_the_next_callback_of_its_subscription_on_its_thread(tmp_path: Path) -> None:
    made = MadeTrace("jazzy")
    talker, listener = made.process("talker", pid=10), made.process("listener", pid=20, cpu=1)
    chatter = talker.publisher(talker.node("talker"), "/chatter")
    node = listener.node("listener")
    heard, timer = listener.subscription(node, "/chatter"), listener.timer(node, 1_000)
    sent = talker.main.publish(chatter, 1_000)
    listener.main.take(heard, sent, 2_000)
    listener.thread(21, cpu=2).callback(heard, 2_010, 2_015)  # another thread
    listener.main.callback(timer, 2_020, 2_030)  # another owner
    listener.main.callback(heard, 2_040, 2_050)
    listener.main.callback(heard, 2_060, 2_070)  # the message has been handled
    trace = opened(made, tmp_path)
    assert rows(trace.table("callback_instances"), "start_ns", "take") == [
        (2_010, None), (2_020, None), (2_040, 0), (2_060, None),
    ]  # fmt: skip


def test_a_process_of_another_host_is_matched_and_brought_to_one_time_line(tmp_path: Path) -> None:
    made = MadeTrace("jazzy")
    made.host("arm", epoch_offset_ns=1_000_000)
    made.host("base", epoch_offset_ns=1_000_500)  # booted 500 ns later: its clock shows 500 ns less
    talker, listener = made.process("talker", pid=10, host="arm"), made.process("listener", pid=10, host="base")
    chatter = talker.publisher(talker.node("talker"), "/chatter")
    heard = listener.subscription(listener.node("listener"), "/chatter")
    sent = talker.main.publish(chatter, 2_000)
    listener.main.take(heard, sent, 2_100)
    trace = opened(made, tmp_path)
    assert column(trace.table("hosts"), "name") == ["arm", "base"]
    assert rows(trace.table("takes"), "match", "rmw_ns") == [("matched", 2_600)]
    assert [t["shift_ns"] for t in trace.facts["traces"]] == [0, 500]


# Messages within a process ------------------------------------------------------------------------------------------


def test_a_delivery_within_a_process_is_by_buffer_and_index(tmp_path: Path) -> None:
    made = MadeTrace("jazzy")
    process = made.process("robot", pid=10)
    node = process.node("node")
    chatter = process.publisher(node, "/chatter")
    heard = process.subscription(node, "/chatter", depth=4, intra_process=True)
    worker = process.thread(11, cpu=1)
    process.main.intra_publish(chatter, [heard], 1_000)
    process.main.intra_publish(chatter, [heard], 1_100)
    worker.dequeue(heard, 1_200)
    assert heard.ring is not None
    worker.callback(heard.ring, 1_210, 1_220, intra=True)
    worker.dequeue(heard, 1_300)
    worker.callback(heard.ring, 1_310, 1_320, intra=True)
    trace = opened(made, tmp_path)
    deliveries = trace.table("intra_deliveries")
    assert rows(deliveries, "subscription", "publication", "index", "callback_instance") == [(0, 0, 0, 0), (0, 1, 1, 1)]
    assert rows(deliveries, "enqueue_ns", "dequeue_ns") == [(1_001, 1_200), (1_101, 1_300)]
    assert rows(trace.table("callback_instances"), "delivery", "intra_process", "callback") == [
        (0, True, 0), (1, True, 0),
    ]  # fmt: skip
    assert rows(trace.table("publications"), "publisher", "intra_ns", "rmw_ns") == [(0, 1_000, None), (0, 1_100, None)]


def test_an_overwritten_or_cleared_message_is_lost(tmp_path: Path) -> None:
    made = MadeTrace("jazzy")
    process = made.process("robot", pid=10)
    node = process.node("node")
    chatter = process.publisher(node, "/chatter")
    heard = process.subscription(node, "/chatter", depth=1, intra_process=True)
    process.main.intra_publish(chatter, [heard], 1_000)
    process.main.intra_publish(chatter, [heard], 1_100)  # overwrites
    process.main.dequeue(heard, 1_200)
    process.main.intra_publish(chatter, [heard], 1_300)
    assert heard.ring is not None
    process.main.at(1_400).rclcpp_ring_buffer_clear(buffer=heard.ring.buffer)
    process.main.at(1_500).rclcpp_ring_buffer_dequeue(buffer=heard.ring.buffer, index=0, size=0)
    trace = opened(made, tmp_path)
    assert rows(trace.table("intra_deliveries"), "enqueue_ns", "dequeue_ns", "lost") == [
        (1_001, None, True), (1_101, 1_200, False), (1_301, None, True),
    ]  # fmt: skip
    assert trace.facts["counters"]["dequeues_without_enqueue"] == 1


# Services -----------------------------------------------------------------------------------------------------------


def test_a_service_call_is_identified_by_its_client_and_number(tmp_path: Path) -> None:
    made = MadeTrace("kilted")
    server = made.process("server", pid=10)
    service = server.service(server.node("server"), "/add")
    clients = []
    for pid in (20, 30):
        process = made.process(f"client{pid}", pid=pid, cpu=1)
        clients.append((process, process.client(process.node("client"), "/add")))
    for start, (process, client) in zip((1_000, 1_010), clients, strict=True):  # both call with number 1
        process.main.at(start).rmw_send_request(rmw_client_handle=client.rmw_handle, request=1, sequence_number=1)
    for start, (_, client) in zip((2_000, 3_000), reversed(clients), strict=True):
        server.main.at(start).rmw_take_request(
            rmw_service_handle=service.rmw_handle, request=1, client_gid=client.gid, sequence_number=1, taken=1
        )
        server.main.at(start + 10).callback_start(callback=service.callback, is_intra_process=0)
        server.main.at(start + 50).rmw_send_response(
            rmw_service_handle=service.rmw_handle, response=1, client_gid=client.gid, sequence_number=1, timestamp=0
        )
        server.main.at(start + 60).callback_end(callback=service.callback)
    for start, (process, client) in zip((5_000, 4_000), clients, strict=True):
        process.main.at(start).rmw_take_response(
            rmw_client_handle=client.rmw_handle, response=1, sequence_number=1, source_timestamp=0, taken=1
        )
    calls = opened(made, tmp_path).table("service_calls")
    assert rows(calls, "client", "service") == [(0, 0), (1, 0)]
    assert rows(calls, "send_request_ns", "take_request_ns") == [(1_000, 3_000), (1_010, 2_000)]
    assert rows(calls, "send_response_ns", "take_response_ns") == [(3_050, 5_000), (2_050, 4_000)]
    assert column(calls, "callback_instance") == [1, 0]
    assert column(calls, "request_in") == [None, None]


# Executors ----------------------------------------------------------------------------------------------------------


def test_a_phase_ends_where_the_next_of_its_thread_begins(tmp_path: Path) -> None:
    made = MadeTrace("jazzy")
    process = made.process("robot", pid=10)
    node = process.node("node")
    timer, service = process.timer(node, 1_000), process.service(node, "/add")
    main = process.main
    main.get_next_ready(1_000)
    main.wait_for_work(1_010)
    main.get_next_ready(2_000)
    main.execute(2_010, timer)
    main.callback(timer, 2_020, 2_100)
    main.get_next_ready(2_200)
    main.callback(service, 2_220, 2_300)  # of services there is no rclcpp_executor_execute
    main.get_next_ready(2_310)
    process.thread(11, cpu=1).get_next_ready(1_500)  # another thread's phases are its own
    trace = opened(made, tmp_path)
    phases = trace.table("phases").filter(trace.table("phases")["thread"] == 0)
    assert rows(phases, "phase", "start_ns", "end_ns", "callback") == [
        ("get_next_ready", 1_000, 1_010, None),
        ("wait_for_work", 1_010, 2_000, None),
        ("get_next_ready", 2_000, 2_010, None),
        ("execute", 2_010, 2_200, 0),
        ("get_next_ready", 2_200, 2_220, None),
        ("dispatch", 2_220, 2_310, 1),
        ("get_next_ready", 2_310, None, None),
    ]


def test_a_waitable_is_dispatched_while_its_thread_looks_for_what_is_ready(tmp_path: Path) -> None:
    made = MadeTrace("jazzy")
    process = made.process("robot", pid=10)
    process.node("node")
    main = process.main
    main.at(500).rclcpp_callback_register(callback=0xC0, symbol="perflab::waitable(/node, changes)")
    main.get_next_ready(1_000)
    main.callback(0xC0, 1_020, 1_100)
    main.get_next_ready(1_110)
    phases = opened(made, tmp_path).table("phases")
    assert rows(phases, "phase", "start_ns", "end_ns", "callback") == [
        ("get_next_ready", 1_000, 1_020, None),
        ("dispatch", 1_020, 1_110, 0),
        ("get_next_ready", 1_110, None, None),
    ]


def test_events_of_one_thread_on_several_cpus_are_in_the_order_of_time(tmp_path: Path) -> None:
    made = MadeTrace("jazzy")
    main = made.process("robot", pid=10).main
    for i in range(200):
        main.at(1_000 + 10 * i, cpu=i % 3).callback_start(callback=0xC, is_intra_process=0)
        main.at(1_005 + 10 * i, cpu=(i + 1) % 3).callback_end(callback=0xC)
    instances = opened(made, tmp_path).table("callback_instances")
    assert column(instances, "start_ns") == [1_000 + 10 * i for i in range(200)]
    assert column(instances, "end_ns") == [1_005 + 10 * i for i in range(200)]


def test_phases_within_a_callback_are_those_of_the_executor_that_it_spins(tmp_path: Path) -> None:
    made = MadeTrace("jazzy")
    process = made.process("robot", pid=10)
    node = process.node("node")
    outer, inner = process.timer(node, 1_000), process.timer(node, 2_000)
    main = process.main
    main.get_next_ready(1_000)
    main.execute(1_010, outer)
    main.at(1_020).callback_start(callback=outer.callback, is_intra_process=0)
    main.get_next_ready(1_100)
    main.execute(1_110, inner)
    main.callback(inner, 1_120, 1_200)
    main.get_next_ready(1_300)
    main.at(1_400).callback_end(callback=outer.callback)
    main.get_next_ready(1_500)
    trace = opened(made, tmp_path)
    assert rows(trace.table("phases"), "phase", "start_ns", "end_ns", "callback") == [
        ("get_next_ready", 1_000, 1_010, None),
        ("execute", 1_010, 1_500, 0),
        ("get_next_ready", 1_100, 1_110, None),
        ("execute", 1_110, 1_300, 1),
        ("get_next_ready", 1_300, 1_400, None),
        ("get_next_ready", 1_500, None, None),
    ]
    assert rows(trace.table("callback_instances"), "start_ns", "parent") == [(1_020, None), (1_120, 0)]


def test_a_callback_that_does_not_end_is_nobodys_parent_and_spoils_no_phase(tmp_path: Path) -> None:
    made = MadeTrace("jazzy")
    process = made.process("robot", pid=10)
    node = process.node("node")
    once, timer = process.timer(node, 1_000), process.timer(node, 2_000)
    chatter = process.publisher(node, "/chatter")
    main = process.main
    main.get_next_ready(1_000)
    main.execute(1_010, once)
    main.callback(once, 1_020, None)  # threw
    main.publish(chatter, 1_030)
    for start in (2_000, 3_000):
        main.get_next_ready(start)
        main.publish(chatter, start + 5)
        main.execute(start + 10, timer)
        main.callback(timer, start + 20, start + 30)
    main.get_next_ready(4_000)
    trace = opened(made, tmp_path)
    assert rows(trace.table("callback_instances"), "start_ns", "end_ns", "parent") == [
        (1_020, None, None), (2_020, 2_030, None), (3_020, 3_030, None),
    ]  # fmt: skip
    phases = trace.table("phases").filter(trace.table("phases")["phase"] == "execute")
    assert rows(phases, "start_ns", "end_ns", "callback") == [(1_010, None, 0), (2_010, 3_000, 1), (3_010, 4_000, 1)]
    publications = trace.table("publications")
    assert rows(publications, "rclcpp_ns", "callback_instance") == [(1_030, 0), (2_005, None), (3_005, None)]
    assert trace.facts["counters"]["callback_start_without_end"] == 1


def test_the_same_callback_again_shows_that_its_end_was_missed(tmp_path: Path) -> None:
    made = MadeTrace("jazzy")
    process = made.process("robot", pid=10)
    timer = process.timer(process.node("node"), 1_000)
    main = process.main
    for start, end in ((1_000, None), (2_000, 2_050), (3_000, 3_050)):
        main.get_next_ready(start)
        main.execute(start + 10, timer)
        main.callback(timer, start + 20, end)
    main.get_next_ready(4_000)
    trace = opened(made, tmp_path)
    assert column(trace.table("callback_instances"), "end_ns") == [None, 2_050, 3_050]
    phases = trace.table("phases").filter(trace.table("phases")["phase"] == "execute")
    assert rows(phases, "start_ns", "end_ns") == [(1_010, None), (2_010, 3_000), (3_010, 4_000)]


def test_an_address_that_is_used_again_for_another_publisher_is_another_message(tmp_path: Path) -> None:
    made = MadeTrace("jazzy")
    process = made.process("robot", pid=10)
    node = process.node("node")
    first, second = process.publisher(node, "/a"), process.publisher(node, "/b")
    heard = process.subscription(node, "/a", intra_process=True)
    other = process.subscription(node, "/b")
    process.main.intra_publish(first, [heard], 1_000, message=0xA)
    sent = process.main.publish(second, 2_000, message=0xA)
    process.main.take(other, sent, 3_000)
    trace = opened(made, tmp_path)
    assert rows(trace.table("publications"), "publisher", "intra_ns", "rclcpp_ns", "rmw_ns") == [
        (0, 1_000, None, None), (1, None, 2_000, 2_002),
    ]  # fmt: skip
    assert column(trace.table("takes"), "publication") == [1]
    assert column(trace.table("intra_deliveries"), "publication") == [0]


def test_what_was_half_done_is_not_joined_across_a_loss(tmp_path: Path) -> None:
    made = MadeTrace("jazzy")
    talker, listener = made.process("talker", pid=10), made.process("listener", pid=20)
    chatter = talker.publisher(talker.node("talker"), "/chatter")
    heard = listener.subscription(listener.node("listener"), "/chatter")
    sent = talker.main.publish(chatter, 1_000)
    listener.main.take(heard, sent, 2_000)
    made.user_space().discard(3_000, events=4)
    listener.main.callback(heard, 900_000, 900_100)
    trace = opened(made, tmp_path)
    assert column(trace.table("takes"), "match") == ["matched"]
    assert column(trace.table("takes"), "callback_instance") == [None]


def test_of_two_servers_the_first_that_takes_a_request_is_the_one_of_the_call(tmp_path: Path) -> None:
    made = MadeTrace("kilted")
    caller = made.process("caller", pid=10)
    client = caller.client(caller.node("caller"), "/add")
    caller.main.at(1_000).rmw_send_request(rmw_client_handle=client.rmw_handle, request=1, sequence_number=1)
    for pid, start in ((20, 1_100), (30, 1_300)):
        server = made.process(f"server{pid}", pid=pid)
        service = server.service(server.node(f"server{pid}"), "/add")
        same = {"rmw_service_handle": service.rmw_handle, "client_gid": client.gid, "sequence_number": 1}
        server.main.at(start).rmw_take_request(request=1, taken=1, **same)
        server.main.at(start + 50).rmw_send_response(response=1, timestamp=0, **same)
    trace = opened(made, tmp_path)
    assert rows(trace.table("service_calls"), "service", "take_request_ns", "send_response_ns") == [(0, 1_100, 1_150)]
    assert trace.facts["counters"]["requests_taken_by_several_servers"] == 1


def test_two_machines_of_one_name_are_two_hosts(tmp_path: Path) -> None:
    """As clones of one image are called; LTTng's clock carries the identity of the boot."""
    for number, offset in ((1, 1_000_000), (2, 1_000_500)):
        made = MadeTrace("jazzy", epoch_offset_ns=offset)
        process = made.process("robot", pid=10)
        process.main.callback(0xC, 2_000, 2_100)
        ust = made.user_space().ctf
        boot = f"00000000-0000-0000-0000-00000000000{number}"
        assert ust.clock is not None
        ust.uuid, ust.clock = uuid.UUID(boot), dataclasses.replace(ust.clock, uuid=boot)
        made.write(tmp_path / str(number))
    needs_library()
    trace = open_trace([tmp_path])
    assert column(trace.table("hosts"), "name") == ["robot", "robot"]
    assert rows(trace.table("processes"), "host", "pid") == [(0, 10), (1, 10)]
    assert column(trace.table("callback_instances"), "start_ns") == [2_000, 2_500]


# perflab's own runtime ------------------------------------------------------------------------------------------------


def test_a_timer_s_callback_knows_when_it_was_due_where_the_trace_says_so(tmp_path: Path) -> None:
    made = MadeTrace("jazzy")
    process = made.process("robot", pid=10)
    node = process.node("node")
    timer, other = process.timer(node, 1_000), process.timer(node, 1_000)
    service = process.service(node, "/reset")
    main, worker = process.main, process.thread(11, cpu=1)
    main.at(1_100).perflab__timer_due(timer_handle=timer.handle, due_ns=1_000)
    worker.callback(other, 1_105, 1_120)  # of another thread
    main.callback(timer, 1_110, 1_130)
    main.callback(timer, 2_110, 2_130)  # not recorded for this one
    main.at(3_000).perflab__timer_due(timer_handle=other.handle, due_ns=2_900)
    main.callback(timer, 3_010, 3_020)  # it was said of another timer
    main.callback(other, 3_030, 3_040)  # and is of the next callback or of none
    main.at(4_000).perflab__timer_due(timer_handle=timer.handle, due_ns=3_990)
    main.callback(service, 4_010, 4_020)
    trace = opened(made, tmp_path)
    assert rows(trace.table("callback_instances"), "start_ns", "due_ns") == [
        (1_105, None), (1_110, 1_000), (2_110, None), (3_010, None), (3_030, None), (4_010, None),
    ]  # fmt: skip
    assert trace.table("callback_instances")["due_ns"].dtype == pl.Int64


def test_due_times_of_another_host_are_brought_to_the_time_line_too(tmp_path: Path) -> None:
    made = MadeTrace("jazzy")
    made.host("arm", epoch_offset_ns=1_000_000)
    made.host("base", epoch_offset_ns=1_000_500)
    made.process("first", pid=10, host="arm").node("first")
    process = made.process("second", pid=10, host="base")
    timer = process.timer(process.node("second"), 1_000)
    process.main.at(2_000).perflab__timer_due(timer_handle=timer.handle, due_ns=1_900)
    process.main.callback(timer, 2_010, 2_020)
    trace = opened(made, tmp_path)
    assert rows(trace.table("callback_instances"), "start_ns", "due_ns") == [(2_510, 2_400)]


def test_a_publication_goes_on_after_a_callback_within_it(tmp_path: Path) -> None:
    """An inline executor runs callbacks while a message is handed over: what they publish is another message."""
    made = MadeTrace("jazzy")
    process = made.process("robot", pid=10)
    node = process.node("node")
    outer, inner = process.publisher(node, "/outer"), process.publisher(node, "/inner")
    first, second = (process.subscription(node, "/outer", intra_process=True) for _ in range(2))
    timer = process.timer(node, 1_000)
    assert first.ring is not None
    assert second.ring is not None
    main = process.main

    def hand_over(ring: RingBuffer, at: int) -> None:
        main.at(at).rclcpp_ring_buffer_enqueue(buffer=ring.buffer, index=0, size=1, overwritten=0)
        main.at(at + 1).rclcpp_ring_buffer_dequeue(buffer=ring.buffer, index=0, size=0)

    main.at(100).callback_start(callback=timer.callback, is_intra_process=0)
    main.at(110).rclcpp_intra_publish(publisher_handle=outer.handle, message=0xA)
    hand_over(first.ring, 111)
    main.at(113).callback_start(callback=first.ring.callback, is_intra_process=1)
    main.publish(inner, 120, message=0xB)
    main.at(130).callback_end(callback=first.ring.callback)
    hand_over(second.ring, 140)
    main.callback(second.ring, 142, 143, intra=True)
    main.publish(outer, 150, message=0xA)  # and to readers behind the middleware
    main.at(160).callback_end(callback=timer.callback)
    trace = opened(made, tmp_path)
    assert rows(trace.table("publications"), "publisher", "callback_instance", "intra_ns", "rclcpp_ns") == [
        (0, 0, 110, 150), (1, 1, None, 120),
    ]  # fmt: skip
    assert rows(trace.table("intra_deliveries"), "publication", "callback_instance") == [(0, 1), (0, 2)]
