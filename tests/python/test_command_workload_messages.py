"""The messages of a command, from a trace that is written by hand. Times in ns; the window is [1000, 2000)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from made_tables import MadeSource, Row

from perflab.condition import Window
from perflab.experiment.traced_messages import TracedMessages, read
from perflab.statistics import histogram as hg

WINDOW = Window(1000, 2000)


def source(
    publications: list[Row],
    takes: Sequence[Row] = (),
    instances: Sequence[Row] = (),
    **changed: Any,
) -> MadeSource:
    """/talker of process 10 publishes /chatter, /listener of process 20 subscribes to it."""
    tables: dict[str, list[Row]] = {
        "hosts": [{"name": "robot"}],
        "processes": [
            {"host": 0, "pid": pid, "name": name, "first_ns": 0, "last_ns": 9000, "events": 9}
            for pid, name in ((10, "talker"), (20, "listener"))
        ],
        "threads": [{"host": 0, "process": n, "tid": pid} for n, pid in ((0, 10), (1, 20))],
        "nodes": [
            {"process": 0, "handle": 1, "name": "/talker", "valid_from_ns": 0},
            {"process": 1, "handle": 2, "name": "/listener", "valid_from_ns": 0},
        ],
        "publishers": [
            {"process": 0, "node": 0, "handle": 3, "topic": "/chatter", "valid_from_ns": 0},
            {"process": 0, "node": 0, "handle": 4, "topic": "/rosout", "valid_from_ns": 0},
        ],
        "subscriptions": [{"process": 1, "node": 1, "handle": 5, "topic": "/chatter", "valid_from_ns": 0}],
        "callbacks": [{"process": 1, "handle": 6, "kind": "subscription", "owner": 0, "node": 1, "name": "/chatter"}],
        "publications": publications,
        "takes": list(takes),
        "callback_instances": list(instances),
    }
    return MadeSource(tables | changed, end_ns=9000)


def published(at: int, publisher: int = 0, **more: Any) -> Row:
    return {"publisher": publisher, "thread": 0, "rclcpp_ns": at, "rmw_ns": at + 10, **more}


def taken(publication: int, at: int, instance: int | None) -> Row:
    return {"subscription": 0, "thread": 1, "rmw_ns": at, "rclcpp_ns": at + 5, "match": "matched",
            "publication": publication, "callback_instance": instance}  # fmt: skip


def started(at: int, take: int) -> Row:
    return {"callback": 0, "thread": 1, "start_ns": at, "end_ns": at + 50, "intra_process": False, "take": take}


def the_edge(found: TracedMessages) -> dict[str, Any]:
    assert len(found.edges) == 1
    return found.edges[0]


def test_latency_is_from_publication_to_callback_of_messages_published_in_the_window() -> None:
    publications = [published(990), published(1000), published(1990), published(2000)]
    times = (1100, 1200, 2300, 2400)
    found = read(
        source(
            publications,
            [taken(n, at, n) for n, at in enumerate(times)],
            [started(at + 20, n) for n, at in enumerate(times)],
        ),
        WINDOW,
    )
    edge = the_edge(found)
    assert (edge["publisher"], edge["topic"], edge["subscription"]) == ("/talker", "/chatter", "/listener")
    assert (edge["sent"], edge["received"], edge["gap"], edge["tail"], edge["pre_match"]) == (2, 2, 0, 0, 0)
    latency = hg.from_record(edge["latency"])
    assert (latency.min, latency.max, latency.max_at_ns) == (220, 330, 2320)
    assert found.publishers[0]["sent"] == 2
    call = hg.from_record(found.publishers[0]["publish_call"])
    assert (call.min, call.max) == (10, 10)
    assert edge["response"] is None
    assert edge["dispatch"] is None
    assert edge["late"] is None


def test_what_was_never_taken_is_not_called_lost() -> None:
    found = read(source([published(1100), published(1200)], [taken(0, 1150, 0)], [started(1170, 0)]), WINDOW)
    edge = the_edge(found)
    assert (edge["sent"], edge["received"], edge["not_taken"]) == (2, 1, 1)
    assert (edge["pre_match"], edge["gap"], edge["tail"]) == (None, None, None)
    assert found.counts["not_taken"] == 1
    assert found.notes == ("1 messages were published and not seen to be taken: whether they were lost is unknown",)


def test_what_a_ring_buffer_overwrote_is_lost() -> None:
    deliveries = [
        {"subscription": 0, "publication": 0, "buffer": 1, "index": 0, "enqueue_ns": 1110, "lost": True},
        {"subscription": 0, "publication": 1, "buffer": 1, "index": 0, "enqueue_ns": 1210, "dequeue_ns": 1300,
         "dequeue_thread": 1, "callback_instance": 0},
    ]  # fmt: skip
    publications = [published(1100, intra_ns=1105), published(1200, intra_ns=1205)]
    edge = the_edge(read(source(publications, [], [started(1310, 0)], intra_deliveries=deliveries), WINDOW))
    assert (edge["sent"], edge["received"], edge["gap"], edge["tail"]) == (2, 1, 1, 0)
    assert hg.from_record(edge["latency"]).max == 110


def test_a_message_that_was_taken_twice_is_one() -> None:
    takes = [taken(0, 1150, 0), taken(0, 1400, 1)]
    edge = the_edge(read(source([published(1100)], takes, [started(1170, 0), started(1420, 1)]), WINDOW))
    assert (edge["sent"], edge["received"]) == (1, 1)
    assert hg.from_record(edge["latency"]).max == 70


def test_topics_of_ros_and_processes_of_others_are_left_out() -> None:
    publications = [published(1100), published(1200, publisher=1)]
    trace = source(publications, [taken(0, 1150, 0)], [started(1170, 0)])
    found = read(trace, WINDOW, {10, 20})
    assert (found.counts["publications"], found.counts["of_ros_itself"], found.counts["of_others"]) == (1, 1, 0)
    found = read(trace, WINDOW, {20})
    assert (found.edges, found.publishers, found.counts["of_others"]) == ((), (), 2)
    assert found.notes == ("2 publications are left out: their processes do not belong to the command",)


def test_publishers_without_a_name_are_said() -> None:
    nameless = [{"process": 0, "node": None, "handle": 3, "topic": None, "valid_from_ns": 0}]
    found = read(source([published(1100)], publishers=nameless), WINDOW)
    assert (found.edges, found.counts["without_name"]) == ((), 1)


def test_where_events_were_lost_counts_are_not_known() -> None:
    trace = source([published(1100)], [taken(0, 1150, 0)], [started(1170, 0)])
    trace.facts["ledger"] = [
        {"kind": "discarded_events", "count": 3, "exact": True, "file": "s", "offset": None, "begin_ns": 1500,
         "end_ns": 1600, "message": "lost"}
    ]  # fmt: skip
    trace.facts["traces"] = [{"path": "", "domain": "ust", "streams": []}]
    found = read(trace, WINDOW)
    edge = the_edge(found)
    assert (edge["sent"], edge["received"], edge["gap"], edge["not_taken"]) == (None, 1, None, None)
    assert found.publishers[0]["sent"] is None
    assert found.counts["events_lost"] is True


def test_response_counts_from_when_the_timer_was_due() -> None:
    timer = {"callback": 0, "thread": 0, "start_ns": 1090, "end_ns": 1120, "intra_process": False, "due_ns": 1040}
    publications = [published(1100, callback_instance=0)]
    found = read(source(publications, [taken(0, 1150, 1)], [timer, started(1170, 0)]), WINDOW)
    assert hg.from_record(the_edge(found)["response"]).max == 130
    assert hg.from_record(found.publishers[0]["publish_delay"]).max == 60


def test_each_second_has_what_was_counted_until_then() -> None:
    second = 1_000_000_000
    window = Window(0, 2 * second)
    publications = [published(100), published(second + 100)]
    times = (200, second + 200)
    found = read(
        source(publications, [taken(n, at, n) for n, at in enumerate(times)],
               [started(at + 10, n) for n, at in enumerate(times)]),
        window,
    )  # fmt: skip
    assert [(line["sent"], line["received"], line["completed"]) for line in found.progress] == [(1, 1, 1), (2, 2, 2)]
    assert hg.decode(found.progress[1]["latency"]).count == 2
