"""What the figures of messages mean, on a few messages written by hand. Times in ns; the trace ends at 1 s."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from made_tables import MadeSource, Row
from made_trace import MadeTrace
from opened import opened

from perflab.trace.answer import Answer
from perflab.trace.messages import messages

END = 1_000_000_000
SCHEDULER = {"begin_ns": 0, "end_ns": END, "events": 9, "has_wakeups": True, "has_waking": True,
             "has_migrations": True}  # fmt: skip
LEGS = ("publish_call", "transport", "take", "dispatch")


def objects(*, same_process: bool = False, same_host: bool = True, topic: str = "/chatter") -> dict[str, list[Row]]:
    """/talker publishes /chatter, /listener subscribes to it from 100 on."""
    there = 0 if same_process else 1
    return {
        "hosts": [{"name": "robot"}, {"name": "station"}],
        "processes": [
            {"host": 0, "pid": 10, "name": "talker", "first_ns": 0, "last_ns": END, "events": 50},
            {"host": 0 if same_host else 1, "pid": 20, "name": "listener", "first_ns": 0, "last_ns": END, "events": 50},
        ],
        "threads": [{"host": 0, "process": 0, "tid": 10}, {"host": 0, "process": there, "tid": 20}],
        "nodes": [
            {"process": 0, "handle": 1, "name": "/talker"},
            {"process": there, "handle": 2, "name": "/listener"},
        ],
        "publishers": [{"process": 0, "node": 0, "handle": 3, "topic": topic, "valid_from_ns": 0}],
        "subscriptions": [{"process": there, "node": 1, "handle": 4, "topic": topic, "valid_from_ns": 100}],
        "callbacks": [{"process": there, "handle": 5, "kind": "subscription", "owner": 0, "node": 1, "name": topic}],
    }


class Flow:
    """Messages of that publisher, one after the other."""

    def __init__(self, *, dds: bool = False) -> None:
        self.publications: list[Row] = []
        self.takes: list[Row] = []
        self.instances: list[Row] = []
        self.dds = dds

    def publish(self, at: int, call: int = 10) -> int:
        """rclcpp_publish at `at`, rmw_publish `call` later, dds:write 5 after that where there is one."""
        self.publications.append(
            {"publisher": 0, "thread": 0, "rclcpp_ns": at, "rcl_ns": at + 1, "rmw_ns": at + call,
             "dds_ns": at + call + 5 if self.dds else None, "source_timestamp": at}
        )  # fmt: skip
        return len(self.publications) - 1

    def take(self, publication: int, at: int, take: int = 4) -> None:
        self.takes.append(
            {"subscription": 0, "thread": 1, "rmw_ns": at, "rcl_ns": at + 1, "rclcpp_ns": at + take,
             "match": "matched", "publication": publication}
        )  # fmt: skip

    def handle(self, publication: int, at: int, take: int = 4, dispatch: int = 6, run: int = 50) -> None:
        self.take(publication, at, take)
        start = at + take + dispatch
        self.takes[-1] = dict(self.takes[-1]) | {"callback_instance": len(self.instances)}
        self.instances.append({"callback": 0, "thread": 1, "start_ns": start, "end_ns": start + run})

    @property
    def tables(self) -> dict[str, list[Row]]:
        return {"publications": self.publications, "takes": self.takes, "callback_instances": self.instances}


def only_row(answer: Answer, section: str = "messages") -> dict[str, Any]:
    rows = answer.section(section).frame.to_dicts()
    assert len(rows) == 1
    return rows[0]


def counts(row: dict[str, Any]) -> dict[str, Any]:
    names = ("published", "taken", "handled", "not_taken", "before_first", "pending", "taken_earlier")
    assert row["published"] + row["taken_earlier"] == (
        row["taken"] + row["not_taken"] + row["before_first"] + row["pending"]
    )
    return {name: row[name] for name in names if row[name]}


def test_latency_and_its_legs() -> None:
    flow = Flow()
    flow.handle(flow.publish(1000, call=10), at=1100, take=4, dispatch=6, run=50)  # 10 + 90 + 4 + 6
    flow.handle(flow.publish(2000, call=20), at=2200, take=8, dispatch=12, run=70)  # 20 + 180 + 8 + 12
    answer = messages(MadeSource(objects() | flow.tables))
    row = only_row(answer)
    assert (row["edge"], row["topic"], row["delivery"]) == ("/talker → /listener", "/chatter", "other_process")
    assert (row["latency_min_ns"], row["latency_max_ns"], row["latency_mean_ns"]) == (110, 220, 165)
    legs = only_row(answer, "legs")
    assert [legs[f"{leg}_mean_ns"] for leg in LEGS] == [15, 135, 6, 9]
    assert [legs[f"{leg}_max_ns"] for leg in LEGS] == [20, 180, 8, 12]
    assert legs["callback_mean_ns"] == 60
    assert (legs["n"], legs["write_mean_ns"], legs["wake_up_mean_ns"]) == (2, None, None)
    assert "scheduler" in answer.section("legs").reasons["wake_up_mean_ns"]


@pytest.mark.parametrize("dds", [False, True])
def test_the_mean_legs_add_up_to_the_mean_latency(dds: bool) -> None:
    flow = Flow(dds=dds)
    for i in range(37):
        at = 1000 * (i + 1)
        flow.handle(flow.publish(at, call=3 + i % 5), at=at + 50 + i * i, take=2 + i % 3, dispatch=1 + i % 7)
    flow.take(flow.publish(90_000), at=90_100)  # not handled: in no latency
    legs = only_row(messages(MadeSource(objects() | flow.tables)), "legs")
    assert sum(legs[f"{leg}_mean_ns"] for leg in LEGS) == pytest.approx(legs["latency_mean_ns"], abs=1e-6)
    assert legs["n"] == 37


def test_the_write_of_the_middleware_is_part_of_the_publish_call() -> None:
    flow = Flow(dds=True)
    flow.handle(flow.publish(1000, call=10), at=1100)
    legs = only_row(messages(MadeSource(objects() | flow.tables)), "legs")
    assert (legs["write_mean_ns"], legs["publish_call_mean_ns"], legs["transport_mean_ns"]) == (5, 15, 85)


def test_a_leg_that_some_messages_do_not_have_keeps_the_sum() -> None:
    flow = Flow()
    flow.handle(flow.publish(1000), at=1100, take=4)
    flow.handle(flow.publish(2000), at=2100, take=4)
    flow.takes[1] = dict(flow.takes[1]) | {"rcl_ns": None, "rclcpp_ns": None}
    legs = only_row(messages(MadeSource(objects() | flow.tables)), "legs")
    assert (legs["take_max_ns"], legs["take_mean_ns"]) == (4, 2)
    assert sum(legs[f"{leg}_mean_ns"] for leg in LEGS) == legs["latency_mean_ns"]


def test_what_became_of_every_message() -> None:
    flow = Flow()
    flow.publish(50)  # before the subscription: not of its business
    flow.publish(200)  # before the first that arrived
    flow.handle(flow.publish(300), at=350)
    flow.publish(400)  # lost
    flow.take(flow.publish(500), at=550)  # taken, and no callback
    flow.publish(END - 50)  # may have been on its way
    row = only_row(messages(MadeSource(objects() | flow.tables)))
    assert counts(row) == {
        "published": 5, "taken": 2, "handled": 1, "not_taken": 1, "before_first": 1, "pending": 1,
    }  # fmt: skip
    assert row["not_taken_percent"] == pytest.approx(100 / 3)
    assert row["not_taken_at_least"] == 1


def test_a_message_from_before_the_subscription_is_taken_and_not_counted_as_published() -> None:
    flow = Flow()
    flow.handle(flow.publish(50), at=150)  # durability transient local
    flow.handle(flow.publish(300), at=350)
    row = only_row(messages(MadeSource(objects() | flow.tables)))
    assert counts(row) == {"published": 1, "taken": 2, "handled": 2, "taken_earlier": 1}


def test_a_subscription_that_took_nothing_lost_all_and_the_note_says_what_else_it_may_be() -> None:
    flow = Flow()
    for at in (200, 300, 400):
        flow.publish(at)
    answer = messages(MadeSource(objects() | flow.tables))
    row = only_row(answer)
    assert counts(row) == {"published": 3, "not_taken": 3}
    assert (row["not_taken_percent"], row["latency_max_ns"]) == (100, None)
    assert any("different domains" in note for note in answer.section("messages").notes)


def test_messages_beyond_the_last_event_of_the_subscriber_are_pending() -> None:
    made = objects()
    made["processes"][1] = dict(made["processes"][1]) | {"last_ns": 500_000_000}
    flow = Flow()
    flow.handle(flow.publish(1000), at=1100)
    flow.publish(450_000_000)
    flow.publish(700_000_000)
    row = only_row(messages(MadeSource(made | flow.tables)))
    assert counts(row) == {"published": 3, "taken": 1, "handled": 1, "pending": 2}


def test_a_message_that_was_taken_twice_counts_once() -> None:
    flow = Flow()
    sent = flow.publish(1000)
    flow.take(sent, at=1050)
    flow.handle(sent, at=1100)
    flow.handle(flow.publish(2000), at=2100)
    row = only_row(messages(MadeSource(objects() | flow.tables)))
    assert counts(row) == {"published": 2, "taken": 2, "handled": 2}


def test_messages_without_callbacks_have_counts_and_no_latency() -> None:
    flow = Flow()
    flow.take(flow.publish(1000), at=1050)  # as in a program of rclpy
    answer = messages(MadeSource(objects() | flow.tables))
    row = only_row(answer)
    assert counts(row) == {"published": 1, "taken": 1}
    assert (row["latency_mean_ns"], answer.section("legs").frame.height) == (None, 0)
    assert "no callback" in answer.section("messages").reasons["latency_mean_ns"]


def test_lost_events_make_bounds_of_the_losses() -> None:
    flow = Flow()
    flow.handle(flow.publish(1000), at=1100)
    flow.publish(2000)  # events are missing right after it
    flow.publish(700_000_000)  # here none are
    flow.handle(flow.publish(800_000_000), at=800_000_100)
    lost = {"kind": "discarded_events", "count": 3, "exact": True, "file": "ust/channel_0", "begin_ns": 2500,
            "end_ns": 3000, "message": "3 events"}  # fmt: skip
    answer = messages(MadeSource(objects() | flow.tables, ledger=[lost]))
    row = only_row(answer)
    assert (row["not_taken"], row["not_taken_at_least"]) == (2, 1)
    assert (
        "3 events discarded by the tracer in 1 file, between 2.50 µs and 3.00 µs after the beginning" in answer.quality
    )
    anywhere = messages(MadeSource(objects() | flow.tables, ledger=[lost | {"begin_ns": None, "end_ns": None}]))
    assert only_row(anywhere)["not_taken_at_least"] == 0


def test_a_latency_across_a_loss_is_left_out_with_its_legs() -> None:
    flow = Flow()
    flow.handle(flow.publish(1000), at=1100)
    flow.handle(flow.publish(2000), at=9000)  # the callback may be that of another message
    flow.handle(flow.publish(20_000), at=20_200, run=5000)  # and this end that of another start
    lost = {"kind": "discarded_events", "count": 3, "exact": True, "file": "ust/channel_0", "offset": None,
            "begin_ns": 2500, "end_ns": 3000, "message": "3 events"}  # fmt: skip
    later = lost | {"begin_ns": 21_000, "end_ns": 22_000}
    answer = messages(MadeSource(objects() | flow.tables, ledger=[lost, later]))
    row = only_row(answer)
    assert (row["handled"], row["latency_left_out"], row["latency_max_ns"]) == (3, 1, 210)
    legs = answer.section("legs").frame.row(0, named=True)
    assert (legs["n"], legs["transport_max_ns"], legs["callback_max_ns"]) == (2, 190, 50)
    assert any(note.startswith("1 latency left out") for note in answer.section("messages").notes)
    nowhere = messages(MadeSource(objects() | flow.tables, ledger=[lost | {"begin_ns": None, "end_ns": END}]))
    assert nowhere.section("legs").notes == ("events are missing on the way of every message that was handled",)
    assert "events are missing on the way" in nowhere.section("messages").reasons["latency_max_ns"]


def test_edges_between_nodes_of_one_name_have_the_numbers_of_their_processes() -> None:
    made = objects()
    made["processes"].append(dict(made["processes"][1]) | {"pid": 30})
    made["nodes"].append({"process": 2, "handle": 2, "name": "/listener"})
    made["subscriptions"].append({"process": 2, "node": 2, "handle": 4, "topic": "/chatter", "valid_from_ns": 100})
    flow = Flow()
    flow.handle(flow.publish(1000), at=1100)
    section = messages(MadeSource(made | flow.tables)).section("messages")
    assert set(section.frame["edge"]) == {"/talker (10) → /listener (20)", "/talker (10) → /listener (30)"}
    assert not {"edge", "topic"} & set(section.table.spare)


def test_without_takes_none_is_claimed_to_have_its_publication() -> None:
    notes = messages(MadeSource(objects())).section("takes_without_publication").notes
    assert notes == ("the trace has no messages taken from the middleware",)


def test_edges_of_one_publisher_are_kept_apart() -> None:
    made = objects()
    made["subscriptions"].append({"process": 0, "node": 0, "handle": 9, "topic": "/chatter", "valid_from_ns": 0})
    flow = Flow()
    first = flow.publish(1000)
    flow.handle(first, at=1100)
    flow.handle(first, at=1300)
    flow.takes[1] = dict(flow.takes[1]) | {"subscription": 1}
    rows = messages(MadeSource(made | flow.tables)).section("messages").frame.to_dicts()
    assert {(r["edge"], r["delivery"], r["published"], r["latency_max_ns"]) for r in rows} == {
        ("/talker → /listener", "other_process", 1, 110),
        ("/talker → /talker", "same_process", 1, 310),
    }


def test_an_edge_between_hosts_is_marked() -> None:
    flow = Flow()
    flow.handle(flow.publish(1000), at=1100)
    answer = messages(MadeSource(objects(same_host=False) | flow.tables))
    assert only_row(answer)["delivery"] == "other_host"
    assert any("synchronised" in note for note in answer.section("messages").notes)


def test_topics_of_ros_itself_stand_last() -> None:
    made = objects()
    for table, row in (("publishers", {"handle": 6}), ("subscriptions", {"handle": 7})):
        made[table].insert(0, dict(made[table][0]) | row | {"topic": "/rosout"})
    flow = Flow()
    for at in (200, 300):
        flow.publish(at)
    flow.publications += [dict(p) | {"publisher": 1} for p in flow.publications[:1]]
    frame = messages(MadeSource(made | flow.tables)).section("messages").frame
    assert frame["topic"].to_list() == ["/chatter", "/rosout"]
    assert frame["published"].to_list() == [1, 2]


def wake_up(wakeup: int, switch: int, thread: int = 1, **more: Any) -> Row:
    return {"thread": thread, "wakeup_ns": wakeup, "switch_ns": switch, "already_running": False, **more}


def test_the_wake_up_is_the_last_one_of_the_taking_thread_after_the_message_was_sent() -> None:
    flow = Flow()
    flow.handle(flow.publish(1000), at=1100)  # sent at 1010
    flow.handle(flow.publish(2000), at=2100)  # its thread was awake
    flow.handle(flow.publish(3000), at=3100)
    wake_ups = [
        wake_up(1020, 1025), wake_up(1050, 1080), wake_up(1060, 1090, thread=0), wake_up(1990, 2050),
        wake_up(3020, 3050), wake_up(3060, 3060, already_running=True), wake_up(3120, 3130),
    ]  # fmt: skip
    tables = objects() | flow.tables | {"wake_ups": wake_ups}
    legs = only_row(messages(MadeSource(tables, scheduler=SCHEDULER)), "legs")
    assert legs["woken"] == 2
    assert (legs["wake_up_min_ns"], legs["wake_up_max_ns"]) == (30, 30)
    assert legs["transport_mean_ns"] == 90  # contains it


def test_intra_process_delivery_by_ring_buffer() -> None:
    made = objects(same_process=True)
    publications = [{"publisher": 0, "thread": 0, "intra_ns": at} for at in (1000, 2000, 3000, END - 10)]
    deliveries: list[Row] = [
        {"subscription": 0, "publication": 0, "enqueue_ns": 1010, "dequeue_ns": 1100, "lost": False,
         "dequeue_thread": 1, "callback_instance": 0},
        {"subscription": 0, "publication": 1, "enqueue_ns": 2010, "lost": True},
        {"subscription": 0, "publication": 2, "enqueue_ns": 3010, "dequeue_ns": 3040, "lost": False,
         "dequeue_thread": 1, "callback_instance": 1},
        {"subscription": 0, "publication": 3, "enqueue_ns": END - 5, "lost": False},
    ]  # fmt: skip
    instances = [
        {"callback": 0, "thread": 1, "start_ns": 1120, "end_ns": 1200, "intra_process": True},
        {"callback": 0, "thread": 1, "start_ns": 3050, "end_ns": 3100, "intra_process": True},
    ]
    tables: dict[str, list[Row]] = {
        "publications": list(publications), "intra_deliveries": deliveries, "callback_instances": list(instances),
    }  # fmt: skip
    answer = messages(MadeSource(made | tables))
    row = only_row(answer)
    assert (row["delivery"], row["overwritten"]) == ("intra_process", 1)
    assert counts(row) == {"published": 4, "taken": 2, "handled": 2, "not_taken": 1, "pending": 1}
    legs = only_row(answer, "legs")
    assert [legs[f"{leg}_mean_ns"] for leg in LEGS] == [10, 60, None, 15]
    assert legs["latency_mean_ns"] == 85
    assert "intra-process: 4 of 4 deliveries matched" in answer.quality


def test_takes_without_publication_are_told_by_reason_and_topic() -> None:
    takes: list[Row] = [
        {"subscription": 0, "thread": 1, "rmw_ns": 10 + i, "match": match}
        for i, match in enumerate(["no_publication", "no_publication", "not_taken"])
    ]
    takes.append({"thread": 1, "rmw_ns": 50, "match": "unknown_subscription"})
    answer = messages(MadeSource(objects() | {"takes": takes}))
    rows = answer.section("takes_without_publication").frame.to_dicts()
    assert [(r["topic"], r["subscriber"], r["match"], r["n"]) for r in rows] == [
        ("/chatter", "/listener", "no_publication", 2),
        ("/chatter", "/listener", "not_taken", 1),
        (None, None, "unknown_subscription", 1),
    ]
    notes = answer.section("takes_without_publication").notes
    assert [note.split(":")[0] for note in notes] == ["not_taken", "unknown_subscription", "no_publication"]
    assert "messages: 0 of 3 takes matched (0.0 %; others: 2 no_publication, 1 unknown_subscription)" in answer.quality


def services() -> dict[str, list[Row]]:
    return objects() | {
        "clients": [{"process": 0, "node": 0, "handle": 6, "name": "/add"}],
        "services": [{"process": 1, "node": 1, "handle": 7, "name": "/add"}],
        "callbacks": [{"process": 1, "handle": 8, "kind": "service", "owner": 0, "node": 1, "name": "/add"}],
        "callback_instances": [{"callback": 0, "thread": 1, "start_ns": 1050, "end_ns": 1080}],
    }


def test_services_have_round_trips_where_requests_are_recorded() -> None:
    calls: list[Row] = [
        {"client": 0, "service": 0, "sequence_number": 1, "send_request_ns": 1000, "take_request_ns": 1040,
         "send_response_ns": 1090, "take_response_ns": 1150, "callback_instance": 0},
        {"client": 0, "service": 0, "sequence_number": 2, "send_request_ns": 2000},
    ]  # fmt: skip
    events = [{"name": "ros2:rmw_send_request", "count": 2, "kind": "rmw_send_request", "trace": 0}]
    answer = messages(MadeSource(services() | {"service_calls": calls}, events=events))
    row = only_row(answer, "services")
    assert (row["service"], row["client"], row["server"]) == ("/add", "/talker", "/listener")
    assert (row["n"], row["answered"]) == (2, 1)
    legs = [row[f"{leg}_mean_ns"] for leg in ("round_trip", "request", "server", "reply", "callback")]
    assert legs == [150, 40, 50, 60, 30]
    assert "services: 1 of 2 calls answered (50.0 %)" in answer.quality


def test_services_of_older_versions_have_callbacks_only_and_the_reason() -> None:
    answer = messages(MadeSource(services(), tracetools_versions=["8.2.3"]))
    row = only_row(answer, "services")
    assert (row["service"], row["server"], row["client"], row["n"], row["callback_max_ns"]) == (
        "/add", "/listener", None, 1, 30,
    )  # fmt: skip
    assert row["round_trip_max_ns"] is None
    reason = answer.section("services").reasons["round_trip_max_ns"]
    assert "8.2.3" in reason and "Kilted" in reason
    assert any(line.startswith("services: null because tracetools 8.2.3") for line in answer.quality)


def test_a_trace_without_messages_gives_empty_tables() -> None:
    answer = messages(MadeSource({}))
    assert [section.frame.height for section in answer.sections] == [0, 0, 0, 0]
    assert "messages: null because the trace has no messages taken from the middleware" in answer.quality


# Through the reader ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flavour", ["lttng", "perf"])
def test_a_message_from_one_process_to_another_with_its_wake_up(flavour: Any, tmp_path: Path) -> None:
    made = MadeTrace("jazzy")
    talker, listener = made.process("talker", pid=10), made.process("listener", pid=20, cpu=1)
    chatter = talker.publisher(talker.node("talker"), "/chatter")
    heard = listener.subscription(listener.node("listener"), "/chatter")
    kernel = made.kernel(flavour)
    kernel.switch(500, cpu=1, prev=listener.main, next=0, prev_state="sleeping")
    sent = talker.main.publish(chatter, 1_000, rmw_at=1_020)
    kernel.wakeup(1_030, cpu=0, task=listener.main, target_cpu=1)
    kernel.switch(1_070, cpu=1, prev=0, next=listener.main)
    listener.main.take(heard, sent, 1_100, rclcpp_at=1_108)
    listener.main.callback(heard, 1_115, 1_165)
    listener.main.take(heard, None, 1_200, taken=False)
    kernel.switch(2_000, cpu=1, prev=listener.main, next=0, prev_state="sleeping")
    answer = messages(opened(made, tmp_path))
    row = only_row(answer)
    assert (row["edge"], row["delivery"]) == ("/talker → /listener", "other_process")
    assert (row["taken"], row["handled"], row["latency_max_ns"]) == (1, 1, 115)
    legs = only_row(answer, "legs")
    assert [legs[f"{leg}_mean_ns"] for leg in LEGS] == [20, 80, 8, 7]
    assert (legs["wake_up_mean_ns"], legs["woken"], legs["callback_mean_ns"]) == (40, 1, 50)
    assert [(r["topic"], r["match"], r["n"]) for r in answer.section("takes_without_publication").frame.to_dicts()] == [
        ("/chatter", "not_taken", 1)
    ]


def test_the_write_of_a_middleware_with_tracepoints(tmp_path: Path) -> None:
    made = MadeTrace("humble_fork")
    talker, listener = made.process("talker", pid=10), made.process("listener", pid=20, cpu=1)
    chatter = talker.publisher(talker.node("talker"), "/chatter")
    heard = listener.subscription(listener.node("listener"), "/chatter")
    sent = talker.main.publish(chatter, 1_000, rmw_at=1_020)
    listener.main.take(heard, sent, 1_100)
    listener.main.callback(heard, 1_115, 1_165)
    legs = only_row(messages(opened(made, tmp_path)), "legs")
    assert (legs["n"], legs["latency_mean_ns"], legs["write_mean_ns"], legs["publish_call_mean_ns"]) == (1, 115, 0, 20)


def test_a_message_of_a_publisher_that_was_not_traced_has_no_publication(tmp_path: Path) -> None:
    made = MadeTrace("jazzy")
    listener = made.process("listener", pid=20)
    heard = listener.subscription(listener.node("listener"), "/chatter")
    listener.main.take(heard, None, 1_000, source_timestamp=77)
    listener.main.callback(heard, 1_010, 1_020)
    answer = messages(opened(made, tmp_path))
    assert answer.section("messages").frame.is_empty()
    row = only_row(answer, "takes_without_publication")
    assert (row["topic"], row["match"], row["n"], row["handled"]) == ("/chatter", "no_publication", 1, 1)
