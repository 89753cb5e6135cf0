"""What becomes of a message, and when: the definitions of docs/tracing.md (Messages) on events written by hand, through
the real reader up to the answer. Times in ns; a talker of pid 10 publishes what a listener of pid 20 takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from made_trace import MadeTrace, Node, Process, Publisher, Subscription
from opened import opened

from perflab.trace.answer import Answer
from perflab.trace.messages import messages

MS = 1_000_000


class Pair:
    """/talker publishes /chatter, /listener subscribes to it; its initialisation ends before 1_000."""

    def __init__(self, layout: Any = "jazzy", *, intra_process: bool = False, depth: int = 10) -> None:
        self.made = MadeTrace(layout)
        self.talker: Process = self.made.process("talker", pid=10)
        self.listener: Process = self.talker if intra_process else self.made.process("listener", pid=20, cpu=1)
        self.node: Node = self.talker.node("talker")
        self.chatter: Publisher = self.talker.publisher(self.node, "/chatter")
        there = self.listener.node("listener")
        self.heard: Subscription = self.listener.subscription(
            there, "/chatter", depth=depth, intra_process=intra_process
        )

    def message(self, at: int, taken_at: int | None = None, *, handled: bool = True) -> None:
        sent = self.talker.main.publish(self.chatter, at)
        if taken_at is not None:
            self.listener.main.take(self.heard, sent, taken_at)
            if handled:
                self.listener.main.callback(self.heard, taken_at + 5, taken_at + 20)

    def last_event(self, at: int) -> None:
        """Something that the listener does, so that it is known to have been there."""
        self.listener.main.at(at).rclcpp_executor_get_next_ready()

    def answer(self, folder: Path) -> Answer:
        return messages(opened(self.made, folder))


def only_row(answer: Answer, section: str = "messages") -> dict[str, Any]:
    (row,) = answer.section(section).frame.to_dicts()
    return row


def counts(row: dict[str, Any]) -> dict[str, int]:
    """Those that are not 0; they add up."""
    whole = row["taken"] + row["not_taken"] + row["before_first"] + row["pending"]
    assert row["published"] + row["taken_earlier"] == whole
    names = ("published", "taken", "handled", "not_taken", "before_first", "pending", "taken_earlier", "overwritten")
    return {name: row[name] for name in names if row[name]}


# Counts and losses ----------------------------------------------------------------------------------------------------


def test_judged_is_from_the_first_message_that_was_taken_to_100_ms_before_the_subscriber_s_last_event(
    tmp_path: Path,
) -> None:
    pair = Pair()
    pair.message(1 * MS)  # before the first that was taken
    pair.message(2 * MS, 2 * MS + 100)
    pair.message(3 * MS)  # lost
    pair.message(4 * MS, 4 * MS + 100, handled=False)
    pair.message(400 * MS - 1)  # judged to the nanosecond: rclcpp_publish counts
    pair.message(400 * MS + 1)  # less than 100 ms before the end
    pair.message(450 * MS, 450 * MS + 100)  # taken all the same
    pair.last_event(500 * MS)
    pair.message(600 * MS)  # after it
    row = only_row(pair.answer(tmp_path))
    assert counts(row) == {
        "published": 8, "taken": 3, "handled": 2, "not_taken": 2, "before_first": 1, "pending": 2,
    }  # fmt: skip
    assert row["not_taken_percent"] == 50  # of the four in the judged time
    assert row["not_taken_at_least"] == row["not_taken"]


def test_published_begins_with_the_subscription_and_what_it_takes_from_before_is_taken_earlier(tmp_path: Path) -> None:
    made = MadeTrace("jazzy")
    talker, listener = made.process("talker", pid=10), made.process("listener", pid=20, cpu=1)
    chatter = talker.publisher(talker.node("talker"), "/chatter")
    talker.main.publish(chatter, 1_000)  # nobody is there: in no count
    kept = talker.main.publish(chatter, 2_000)
    heard = listener.subscription(listener.node("listener", at=3_000), "/chatter")
    listener.main.take(heard, kept, 4_000)  # transient local
    sent = talker.main.publish(chatter, 5_000)
    listener.main.take(heard, sent, 5_100)
    listener.main.at(300 * MS).rclcpp_executor_get_next_ready()
    assert counts(only_row(messages(opened(made, tmp_path)))) == {"published": 1, "taken": 2, "taken_earlier": 1}


def test_a_message_that_is_taken_twice_counts_once_and_one_of_two_subscriptions_is_not_the_other(
    tmp_path: Path,
) -> None:
    pair = Pair()
    second = pair.listener.subscription(pair.listener.node("second"), "/chatter")
    sent = pair.talker.main.publish(pair.chatter, 1_000)
    pair.listener.main.take(pair.heard, sent, 1_100)
    pair.listener.main.take(pair.heard, sent, 1_200)
    other = pair.talker.main.publish(pair.chatter, 2_000)
    pair.listener.main.take(second, other, 2_100)
    pair.last_event(300 * MS)
    rows = {r["subscription"]: counts(r) for r in pair.answer(tmp_path).section("messages").frame.to_dicts()}
    assert rows == {
        "/listener": {"published": 2, "taken": 1, "not_taken": 1},
        "/second": {"published": 2, "taken": 1, "before_first": 1},
    }


def test_an_executor_that_takes_everything_before_it_runs_anything_handles_each(tmp_path: Path) -> None:
    """Semantics LET; what it took in the phase before is handled by nobody."""
    pair = Pair()
    second = pair.listener.subscription(pair.listener.node("second"), "/chatter")
    main = pair.listener.main
    sent = [pair.talker.main.publish(pair.chatter, at) for at in (1_000, 1_100, 1_200)]
    main.at(1_500).rclcpp_executor_get_next_ready()
    main.take(pair.heard, sent[0], 1_600)
    main.at(2_000).rclcpp_executor_get_next_ready()
    main.take(pair.heard, sent[1], 2_100)
    main.take(second, sent[1], 2_200)
    main.callback(pair.heard, 2_300, 2_400)
    main.callback(second, 2_500, 2_600)
    main.at(3_000).rclcpp_executor_get_next_ready()
    main.take(second, sent[2], 3_100)
    main.callback(pair.heard, 3_200, 3_300)
    pair.last_event(300 * MS)
    rows = {r["subscription"]: counts(r) for r in pair.answer(tmp_path).section("messages").frame.to_dicts()}
    assert rows["/listener"]["taken"] == 2 and rows["/listener"]["handled"] == 1
    assert rows["/second"]["taken"] == 2 and rows["/second"]["handled"] == 1


@pytest.mark.parametrize("loss", ["7 events discarded", "3 packets lost"])
def test_where_user_space_lost_events_not_taken_has_a_lower_bound(loss: str, tmp_path: Path) -> None:
    pair = Pair()
    pair.message(1 * MS, 1 * MS + 100)
    pair.message(200 * MS)  # surely not taken: nothing is missing within 100 ms
    pair.message(500 * MS)  # its take may be among those that were lost
    pair.last_event(499 * MS)
    if "discarded" in loss:  # they lie between the ends of two packets
        pair.made.user_space().discard(499 * MS, 0, cpu=1)
        pair.made.user_space().discard(501 * MS, 7, cpu=1)
    else:
        pair.made.user_space().lose_packets(500 * MS, packets=3, cpu=1)
    pair.message(900 * MS, 900 * MS + 100)
    pair.last_event(1200 * MS)
    answer = pair.answer(tmp_path)
    row = only_row(answer)
    assert (row["not_taken"], row["not_taken_at_least"]) == (2, 1)
    assert any("lower bounds" in note for note in answer.section("messages").notes)
    assert any(line.startswith(loss) for line in answer.quality)


def test_lost_events_of_the_kernel_do_not_touch_messages(tmp_path: Path) -> None:
    pair = Pair()
    pair.message(1 * MS, 1 * MS + 100)
    pair.message(200 * MS)
    pair.last_event(600 * MS)
    kernel = pair.made.kernel()
    kernel.switch(100 * MS, cpu=1, prev=0, next=99)
    kernel.lose_packets(150 * MS, cpu=1)
    kernel.switch(500 * MS, cpu=1, prev=99, next=0)
    row = only_row(pair.answer(tmp_path))
    assert (row["not_taken"], row["not_taken_at_least"]) == (1, 1)


def test_where_nothing_was_taken_all_is_not_taken_and_a_note_says_what_else_it_may_be(tmp_path: Path) -> None:
    pair = Pair()
    pair.message(1 * MS)
    pair.message(2 * MS)
    pair.last_event(300 * MS)
    answer = pair.answer(tmp_path)
    row = only_row(answer)
    assert counts(row) == {"published": 2, "not_taken": 2}
    assert row["latency_max_ns"] is None
    assert any("domains" in note for note in answer.section("messages").notes)


# Within a process -----------------------------------------------------------------------------------------------------


def test_what_a_ring_buffer_overwrites_is_not_taken_and_overwritten(tmp_path: Path) -> None:
    pair = Pair("jazzy", intra_process=True, depth=2)
    main = pair.talker.main
    for at in (1_000, 2_000, 3_000):  # the third takes the place of the first
        main.intra_publish(pair.chatter, [pair.heard], at)
    assert pair.heard.ring is not None
    for at in (4_000, 5_000):
        main.dequeue(pair.heard, at)
        main.callback(pair.heard.ring, at + 10, at + 50, intra=True)
    pair.last_event(300 * MS)
    answer = pair.answer(tmp_path)
    row = only_row(answer)
    assert row["delivery"] == "intra_process"
    assert counts(row) == {"published": 3, "taken": 2, "handled": 2, "not_taken": 1, "overwritten": 1}
    # From rclcpp_intra_publish; enqueued 1 later; dequeued by buffer and index, not by order of publication.
    assert (row["latency_min_ns"], row["latency_max_ns"]) == (2_010, 2_010)
    legs = only_row(answer, "legs")
    means = [legs[f"{leg}_mean_ns"] for leg in ("publish_call", "transport", "take", "dispatch")]
    assert means == [1, 1_999, None, 10]


# Legs -----------------------------------------------------------------------------------------------------------------


def test_latency_begins_with_the_first_layer_that_saw_the_publication(tmp_path: Path) -> None:
    pair = Pair()
    main = pair.talker.main
    # A node without rclcpp: rcl_publish is the first layer.
    stamp = 77
    main.at(2_000).rcl_publish(publisher_handle=pair.chatter.handle, message=0xA)
    main.at(2_030).rmw_publish(rmw_publisher_handle=pair.chatter.rmw_handle, message=0xA, timestamp=stamp)
    taken = pair.listener.main
    taken.at(2_100).rmw_take(
        rmw_subscription_handle=pair.heard.rmw_handle, message=0xB, source_timestamp=stamp, taken=1
    )
    taken.at(2_104).rcl_take(message=0xB)  # and no rclcpp_take
    taken.callback(pair.heard, 2_110, 2_150)
    legs = only_row(pair.answer(tmp_path), "legs")
    assert legs["latency_mean_ns"] == 110
    means = [legs[f"{leg}_mean_ns"] for leg in ("publish_call", "transport", "take", "dispatch", "callback")]
    assert means == [30, 70, 4, 6, 40]


def test_a_wake_up_before_the_message_was_sent_is_not_that_of_the_message(tmp_path: Path) -> None:
    pair = Pair()
    kernel = pair.made.kernel()
    listener = pair.listener.main
    kernel.switch(900, cpu=1, prev=listener, next=0)
    kernel.wakeup(950, cpu=1, task=listener)
    kernel.switch(1_050, cpu=1, prev=0, next=listener)  # it runs after the message was sent, and was woken before
    pair.message(1_000, 1_200)
    kernel.switch(3_000, cpu=1, prev=listener, next=0)
    legs = only_row(pair.answer(tmp_path), "legs")
    assert (legs["n"], legs["woken"], legs["wake_up_mean_ns"]) == (1, 0, None)


def test_a_reader_may_take_before_the_writer_is_done_and_a_note_counts_it(tmp_path: Path) -> None:
    pair = Pair("humble_fork")
    main = pair.talker.main
    main.at(1_000).rclcpp_publish(message=0xA)
    main.at(1_001).rcl_publish(publisher_handle=pair.chatter.handle, message=0xA)
    main.at(1_010).rmw_publish(message=0xA)
    main.at(1_012).dds__write_pre(writer=pair.chatter.writer, data=0xA)
    main.at(1_100).dds__write(writer=pair.chatter.writer, timestamp=55)
    pair.listener.main.take(pair.heard, None, 1_060, source_timestamp=55)
    pair.listener.main.callback(pair.heard, 1_070, 1_090)
    answer = pair.answer(tmp_path)
    legs = only_row(answer, "legs")
    assert (legs["latency_mean_ns"], legs["publish_call_mean_ns"], legs["write_mean_ns"]) == (70, 100, 90)
    assert legs["transport_mean_ns"] == -40
    assert any("1 message arrived before" in note for note in answer.section("messages").notes)


# What belongs together ------------------------------------------------------------------------------------------------


def test_a_subscription_whose_initialisation_comes_late_has_its_takes_before_that_as_unknown(tmp_path: Path) -> None:
    made = MadeTrace("jazzy")
    talker, listener = made.process("talker", pid=10), made.process("listener", pid=20, cpu=1)
    chatter = talker.publisher(talker.node("talker"), "/chatter")
    first = talker.main.publish(chatter, 1_000)
    # The handle is in use before the trace says what it is: another object of the same address, or a late tracer.
    listener.main.at(1_100).rmw_take(
        rmw_subscription_handle=0x5500_0000_1030, message=0xB, source_timestamp=first.source_timestamp, taken=1
    )
    heard = listener.subscription(listener.node("listener", at=2_000), "/chatter")
    assert heard.rmw_handle == 0x5500_0000_1030
    second = talker.main.publish(chatter, 3_000)
    listener.main.take(heard, second, 3_100)
    listener.main.at(300 * MS).rclcpp_executor_get_next_ready()
    answer = messages(opened(made, tmp_path))
    assert counts(only_row(answer)) == {"published": 1, "taken": 1}
    row = only_row(answer, "takes_without_publication")
    assert (row["topic"], row["match"], row["n"]) == (None, "unknown_subscription", 1)


def test_a_publisher_without_initialisation_is_no_edge_and_takes_of_its_messages_have_no_publication(
    tmp_path: Path,
) -> None:
    made = MadeTrace("jazzy")
    talker, listener = made.process("talker", pid=10), made.process("listener", pid=20, cpu=1)
    talker.main.at(1_000).rclcpp_publish(message=0xA)
    talker.main.at(1_001).rcl_publish(publisher_handle=0x77, message=0xA)
    talker.main.at(1_002).rmw_publish(rmw_publisher_handle=0x78, message=0xA, timestamp=5)
    heard = listener.subscription(listener.node("listener"), "/chatter")
    listener.main.take(heard, None, 1_100, source_timestamp=5)
    trace = opened(made, tmp_path)
    assert trace.table("publishers").select("handle", "topic").rows() == [(0x77, None)]  # kept, without a name
    answer = messages(trace)
    assert answer.section("messages").frame.is_empty()
    assert only_row(answer, "takes_without_publication")["match"] == "no_publication"


# Services -------------------------------------------------------------------------------------------------------------


def test_a_round_trip_is_request_server_and_reply_and_one_without_response_is_not_answered(tmp_path: Path) -> None:
    made = MadeTrace("kilted")
    asker, server = made.process("asker", pid=10), made.process("server", pid=20, cpu=1)
    asker.context()
    client = asker.client(asker.node("asker"), "/plan")
    service = server.service(server.node("server"), "/plan")
    ask, serve = asker.main, server.main
    for number, at in ((1, 1_000), (2, 5_000)):
        ask.at(at).rmw_send_request(rmw_client_handle=client.rmw_handle, request=1, sequence_number=number)
        serve.at(at + 100).rmw_take_request(
            rmw_service_handle=service.rmw_handle, request=2, client_gid=client.gid, sequence_number=number, taken=1
        )
        serve.callback(service, at + 110, at + 180)
        serve.at(at + 150).rmw_send_response(
            rmw_service_handle=service.rmw_handle, response=3, client_gid=client.gid, sequence_number=number,
            timestamp=9,
        )  # fmt: skip
    ask.at(1_400).rmw_take_response(
        rmw_client_handle=client.rmw_handle, response=4, sequence_number=1, source_timestamp=9, taken=1
    )
    row = only_row(messages(opened(made, tmp_path)), "services")
    assert (row["n"], row["answered"]) == (2, 1)
    assert [row[f"{leg}_max_ns"] for leg in ("request", "server", "reply", "round_trip")] == [100, 50, 250, 400]
    assert row["callback_max_ns"] == 70
