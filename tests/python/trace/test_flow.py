"""What leads to what: the definitions of docs/tracing.md (Paths) on events written by hand, through the real reader.

Times in ns. A callback that publishes does so 10 ns after its start unless a test says otherwise.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from ctf_writer import UINT64, Struct
from made_trace import MadeTrace, Node, Process, Publisher, Subscription, Timer
from opened import opened

from perflab.trace.flow import flow_of, found
from perflab.trace.paths import Asked, Paths, paths, paths_of
from perflab.trace.quality import quality_of

MS = 1_000_000


class System:
    """Nodes that each run in a process and thread of their own; initialisation ends before 1 ms."""

    def __init__(self, layout: Any = "jazzy", *, together: bool = False) -> None:
        self.made = MadeTrace(layout)
        self._pids = itertools.count(10, 10)
        self._one = self.made.process("all", pid=9) if together else None
        self.nodes: dict[str, tuple[Process, Node]] = {}

    def node(self, name: str, **where: Any) -> tuple[Process, Node]:
        if name not in self.nodes:
            pid = next(self._pids)
            process = self._one or self.made.process(name, pid=pid, cpu=pid // 10 % 4, **where)
            self.nodes[name] = process, process.node(name)
        return self.nodes[name]

    def timer(self, name: str, period_ns: int = MS) -> Timer:
        process, node = self.node(name)
        return process.timer(node, period_ns)

    def publisher(self, name: str, topic: str) -> Publisher:
        process, node = self.node(name)
        return process.publisher(node, topic)

    def subscription(self, name: str, topic: str, **more: Any) -> Subscription:
        process, node = self.node(name)
        return process.subscription(node, topic, **more)

    def main(self, name: str) -> Any:
        return self.nodes[name][0].main

    def tick(self, name: str, timer: Timer, at: int, *publishers: Publisher, end: int = 100) -> list[Any]:
        """The timer's callback from `at` on, for `end` ns, which publishes one message of each."""
        return self._run(name, timer, at, publishers, end)

    def hear(
        self, name: str, heard: Subscription, sent: Any, at: int, *publishers: Publisher, end: int = 100
    ) -> list[Any]:
        """Takes what was sent 5 ns before `at`, and runs the callback."""
        self.main(name).take(heard, sent, at - 5)
        return self._run(name, heard, at, publishers, end)

    def _run(self, name: str, owner: Any, at: int, publishers: tuple[Publisher, ...], end: int) -> list[Any]:
        thread = self.main(name)
        thread.at(at).callback_start(callback=owner.callback, is_intra_process=0)
        sent = [thread.publish(p, at + 10 * (i + 1)) for i, p in enumerate(publishers)]
        thread.at(at + end).callback_end(callback=owner.callback)
        return sent

    def end(self, at: int) -> None:
        """Something that every node does, so that all are known to have been there."""
        for process, _ in self.nodes.values():
            process.main.at(at).rclcpp_executor_get_next_ready()

    def paths(self, folder: Path, **asked: Any) -> Paths:
        return paths_of(opened(self.made, folder), Asked(**asked))


def told(p: Paths) -> dict[str, tuple[int, int, dict[str, int]]]:
    """Of each path how many set out, how many came to its end, and why the others did not."""
    return {
        t.route.name: (
            t.followed.set_out,
            t.followed.complete.height,
            dict(t.followed.ended.group_by("reason").agg(pl.col("n").sum()).rows()),
        )
        for t in p.told
    }


def legs(p: Paths, place: int = 0) -> list[list[int]]:
    """Of each instance of a path the time of its hops."""
    complete = p.told[place].followed.complete
    columns = [f"leg_{i}" for i in range(len(p.told[place].route.hops))]
    return [list(row) for row in complete.select(columns).rows()]


class Chain(System):
    """/a, a timer, publishes /x; /b makes /y of it; /c takes that."""

    def __init__(self, layout: Any = "jazzy") -> None:
        super().__init__(layout)
        self.a_timer, self.x = self.timer("a"), self.publisher("a", "/x")
        self.b_heard, self.y = self.subscription("b", "/x"), self.publisher("b", "/y")
        self.c_heard = self.subscription("c", "/y")

    def whole(self, at: int) -> None:
        (x,) = self.tick("a", self.a_timer, at, self.x)
        (y,) = self.hear("b", self.b_heard, x, at + 200, self.y)
        self.hear("c", self.c_heard, y, at + 500, end=50)


CHAIN = "/a timer 1 ms → /x → /b → /y → /c"


# Services and actions -------------------------------------------------------------------------------------------------


class Calling(System):
    """/a asks /b for /add in its timer; /b publishes /x in the service's callback, and replies."""

    def __init__(self) -> None:
        super().__init__("kilted")
        self.a_timer = self.timer("a")
        self.client = self.nodes["a"][0].client(self.nodes["a"][1], "/add")
        process, node = self.node("b")
        self.service = process.service(node, "/add")
        self.x, self.c_heard = self.publisher("b", "/x"), self.subscription("c", "/x")

    def request(self, at: int, number: int) -> None:
        thread = self.main("a")
        thread.at(at).callback_start(callback=self.a_timer.callback, is_intra_process=0)
        thread.at(at + 10).rmw_send_request(rmw_client_handle=self.client.rmw_handle, request=1, sequence_number=number)
        thread.at(at + 100).callback_end(callback=self.a_timer.callback)

    def serve(self, at: int, number: int, *publishers: Publisher) -> list[Any]:
        thread = self.main("b")
        thread.at(at - 5).rmw_take_request(
            rmw_service_handle=self.service.rmw_handle, request=1, client_gid=self.client.gid,
            sequence_number=number, taken=1,
        )  # fmt: skip
        return self._run("b", self.service, at, publishers, 100)

    def reply(self, at: int, taken: int | None, number: int) -> None:
        self.main("b").at(at).rmw_send_response(
            rmw_service_handle=self.service.rmw_handle, response=1, client_gid=self.client.gid,
            sequence_number=number, timestamp=0,
        )  # fmt: skip
        if taken is not None:
            self.main("a").at(taken).rmw_take_response(
                rmw_client_handle=self.client.rmw_handle,
                response=1,
                sequence_number=number,
                source_timestamp=0,
                taken=1,
            )


REQUEST = "/a timer 1 ms → /add request → /b service /add"


def test_a_request_leads_to_the_callback_of_its_service_and_the_reply_back_whenever_it_is_sent(tmp_path: Path) -> None:
    calling = Calling()
    calling.request(1 * MS, 1)
    calling.serve(1 * MS + 300, 1)
    calling.request(2 * MS, 2)
    calling.serve(2 * MS + 300, 2)
    # Outside of the callback, and the second one first.
    calling.reply(3 * MS, 3 * MS + 40, 2)
    calling.reply(4 * MS, 4 * MS + 50, 1)
    calling.end(500 * MS)
    p = calling.paths(tmp_path)
    assert told(p) == {f"{REQUEST} → /add reply → /a client /add": (2, 2, {})}
    assert [hop.kind for hop in p.told[0].route.hops] == ["callback", "message", "callback", "message", "sink"]
    assert [row[:4] for row in legs(p)] == [[10, 290, 3 * MS - 300, 50], [10, 290, MS - 300, 40]]


def test_what_a_service_publishes_is_on_the_way_from_its_request(tmp_path: Path) -> None:
    calling = Calling()
    calling.request(1 * MS, 1)
    (x,) = calling.serve(1 * MS + 300, 1, calling.x)
    calling.hear("c", calling.c_heard, x, 1 * MS + 600)
    calling.request(2 * MS, 2)  # nobody takes it
    calling.end(500 * MS)
    p = calling.paths(tmp_path)
    assert told(p) == {f"{REQUEST} → /x → /c": (2, 1, {"not_taken": 1})}
    assert legs(p) == [[10, 290, 10, 290, 100]]


def test_an_action_is_followed_by_its_services_and_what_works_on_the_goal_by_inference_alone(tmp_path: Path) -> None:
    """/b works on goals in code of its own, and sends one to /d."""
    calling = Calling()
    process, node = calling.node("d")
    goal = "/drive/_action/send_goal"
    driver, b_client = process.service(node, goal), calling.nodes["b"][0].client(calling.nodes["b"][1], goal)
    calling.request(1 * MS, 1)
    calling.serve(1 * MS + 300, 1)
    calling.main("b").at(1 * MS + 700).rmw_send_request(
        rmw_client_handle=b_client.rmw_handle, request=1, sequence_number=1
    )
    calling.main("d").at(1 * MS + 900).rmw_take_request(
        rmw_service_handle=driver.rmw_handle, request=1, client_gid=b_client.gid, sequence_number=1, taken=1
    )
    calling._run("d", driver, 1 * MS + 910, (), 50)
    calling.end(500 * MS)
    work = f"/b (no callback) → {goal} request → /d service {goal}"
    assert told(calling.paths(tmp_path / "plain")) == {REQUEST: (1, 1, {}), work: (1, 1, {})}
    p = calling.paths(tmp_path / "guessed", inferred=True)
    guessed = f"{REQUEST} → (inferred) {work}"
    assert told(p)[guessed] == (1, 1, {})
    assert next(t.route.link for t in p.told if t.route.name == guessed) == "inferred"


# Causality ------------------------------------------------------------------------------------------------------------


def test_a_path_is_from_the_start_of_the_first_callback_to_that_of_the_last_and_its_hops_add_up(tmp_path: Path) -> None:
    chain = Chain()
    for at in (1 * MS, 2 * MS):
        chain.whole(at)
    chain.end(500 * MS)
    p = chain.paths(tmp_path)
    assert told(p) == {CHAIN: (2, 2, {})}
    assert [hop.kind for hop in p.told[0].route.hops] == ["callback", "message", "callback", "message", "sink"]
    assert legs(p) == [[10, 190, 10, 290, 50]] * 2
    row = paths(opened(chain.made, tmp_path / "again")).section("paths").frame.row(0, named=True)
    assert (row["latency_p50_ns"], row["until_end_p50_ns"], row["from_due_p50_ns"]) == (500, 550, None)
    assert (row["bottleneck"], row["bottleneck_share_percent"]) == ("/y: /b → /c", pytest.approx(100 * 290 / 550))


def test_messages_close_in_time_are_not_joined(tmp_path: Path) -> None:
    """/b publishes right after it heard /x, but from its timer."""
    chain = Chain()
    b_timer = chain.timer("b")
    (x,) = chain.tick("a", chain.a_timer, 1 * MS, chain.x)
    chain.hear("b", chain.b_heard, x, 1 * MS + 200)
    (y,) = chain.tick("b", b_timer, 1 * MS + 301, chain.y)
    chain.hear("c", chain.c_heard, y, 1 * MS + 500)
    chain.end(500 * MS)
    p = chain.paths(tmp_path)
    assert told(p) == {"/a timer 1 ms → /x → /b": (1, 1, {}), "/b timer 1 ms → /y → /c": (1, 1, {})}


def test_fan_out_is_a_path_for_each_branch(tmp_path: Path) -> None:
    s = System()
    timer, x, z = s.timer("a"), s.publisher("a", "/x"), s.publisher("a", "/z")
    b, c, d = s.subscription("b", "/x"), s.subscription("c", "/x"), s.subscription("d", "/z")
    for at in (1 * MS, 2 * MS):
        sent_x, sent_z = s.tick("a", timer, at, x, z)
        s.hear("b", b, sent_x, at + 300)
        s.hear("c", c, sent_x, at + 400)
        s.hear("d", d, sent_z, at + 500)
    s.end(500 * MS)
    assert told(s.paths(tmp_path)) == {
        f"/a timer 1 ms → /{topic} → /{node}": (2, 2, {}) for topic, node in (("x", "b"), ("x", "c"), ("z", "d"))
    }


def test_fan_in_is_a_path_from_each_source_and_only_that_of_the_message_that_was_handled(tmp_path: Path) -> None:
    s = System()
    ta, tb = s.timer("a"), s.timer("b")
    xa, xb = s.publisher("a", "/xa"), s.publisher("b", "/xb")
    ha, hb, out = s.subscription("f", "/xa"), s.subscription("f", "/xb"), s.publisher("f", "/out")
    end = s.subscription("g", "/out")
    (a,) = s.tick("a", ta, 1 * MS, xa)
    (b,) = s.tick("b", tb, 1 * MS + 50, xb)
    s.hear("f", ha, a, 1 * MS + 300)  # kept
    (o,) = s.hear("f", hb, b, 1 * MS + 500, out)  # the second completes the set
    s.hear("g", end, o, 1 * MS + 700)
    s.end(500 * MS)
    p = s.paths(tmp_path)
    assert told(p) == {
        "/b timer 1 ms → /xb → /f → /out → /g": (1, 1, {}),
        "/a timer 1 ms → /xa → /f": (1, 1, {}),
    }
    inferred = s.paths(tmp_path / "inferred", inferred=True)
    assert {t.route.name: t.route.link for t in inferred.told if t.route.link != "causal"} == {
        "/a timer 1 ms → /xa → /f → (inferred) /f /xb → /out → /g": "inferred"
    }
    assert legs(inferred, 2) == [[10, 290, 210, 190, 100]]


def test_a_diamond_is_two_paths_and_instances_are_counted_once_per_way(tmp_path: Path) -> None:
    s = System()
    timer, x = s.timer("a"), s.publisher("a", "/x")
    of_l, of_r = s.subscription("l", "/x"), s.subscription("r", "/x")
    yl, yr = s.publisher("l", "/yl"), s.publisher("r", "/yr")
    el, er = s.subscription("e", "/yl"), s.subscription("e", "/yr")
    (sent,) = s.tick("a", timer, 1 * MS, x)
    (left,) = s.hear("l", of_l, sent, 1 * MS + 200, yl)
    (right,) = s.hear("r", of_r, sent, 1 * MS + 220, yr)
    s.hear("e", el, left, 1 * MS + 500)
    s.hear("e", er, right, 1 * MS + 700)
    s.end(500 * MS)
    assert told(s.paths(tmp_path)) == {
        "/a timer 1 ms → /x → /l → /yl → /e": (1, 1, {}),
        "/a timer 1 ms → /x → /r → /yr → /e": (1, 1, {}),
    }


def test_a_cycle_ends_a_path_where_it_closes_and_another_begins_there(tmp_path: Path) -> None:
    s = System()
    timer, x, y = s.timer("a"), s.publisher("a", "/x"), s.publisher("b", "/y")
    hb, ha = s.subscription("b", "/x"), s.subscription("a", "/y")
    (sent,) = s.tick("a", timer, 1 * MS, x)
    for i in range(3):
        at = (2 + i) * MS
        (back,) = s.hear("b", hb, sent, at, y)
        (sent,) = s.hear("a", ha, back, at + 500, x)
    s.end(500 * MS)
    p = s.paths(tmp_path)
    assert told(p) == {
        "/a timer 1 ms → /x → /b → /y → /a → /x → /b (again)": (1, 1, {}),
        "(again) → /b /x → /y → /a → /x → /b (again)": (2, 1, {"not_taken": 1}),
    }


def test_several_publishers_of_a_topic_are_several_sources(tmp_path: Path) -> None:
    s = System()
    ta, tb = s.timer("a"), s.timer("b")
    xa, xb = s.publisher("a", "/x"), s.publisher("b", "/x")
    heard = s.subscription("c", "/x")
    for i in range(3):
        (sent,) = s.tick("a", ta, (2 * i + 1) * MS, xa)
        s.hear("c", heard, sent, (2 * i + 1) * MS + 300)
    (sent,) = s.tick("b", tb, 10 * MS, xb)
    s.hear("c", heard, sent, 10 * MS + 300)
    s.end(500 * MS)
    assert told(s.paths(tmp_path)) == {
        "/a timer 1 ms → /x → /c": (3, 3, {}),
        "/b timer 1 ms → /x → /c": (1, 1, {}),
    }


def test_threads_of_one_executor_do_not_mix_their_messages(tmp_path: Path) -> None:
    """Two callbacks of one process at the same time, on two threads: what each publishes is its own."""
    s = System(together=True)
    timer, x = s.timer("a"), s.publisher("a", "/x")
    heard, y = s.subscription("b", "/x"), s.publisher("b", "/y")
    end = s.subscription("c", "/y")
    process = s.nodes["a"][0]
    first, second = process.thread(101), process.thread(102)
    first.at(1 * MS).callback_start(callback=timer.callback, is_intra_process=0)
    sent = first.publish(x, 1 * MS + 10)
    second.take(heard, sent, 1 * MS + 50)
    second.at(1 * MS + 60).callback_start(callback=heard.callback, is_intra_process=0)
    late = first.publish(x, 1 * MS + 100)  # while the other runs
    on = second.publish(y, 1 * MS + 110)
    first.at(1 * MS + 200).callback_end(callback=timer.callback)
    second.at(1 * MS + 210).callback_end(callback=heard.callback)
    first.take(end, on, 1 * MS + 300)
    first.callback(end, 1 * MS + 310, 1 * MS + 320)
    assert late.message != on.message
    s.end(500 * MS)
    p = s.paths(tmp_path)
    assert told(p) == {CHAIN: (2, 1, {"not_taken": 1})}
    assert legs(p) == [[10, 50, 50, 200, 10]]


def test_within_a_process_a_delivery_is_by_buffer_and_index(tmp_path: Path) -> None:
    s = System(together=True)
    timer, x = s.timer("a"), s.publisher("a", "/x")
    heard = s.subscription("b", "/x", intra_process=True, depth=2)
    main = s.main("a")
    for i in range(4):  # four messages into two places: the first two are overwritten
        at = 1 * MS + 1_000 * i
        main.at(at).callback_start(callback=timer.callback, is_intra_process=0)
        main.intra_publish(x, [heard], at + 10)
        main.at(at + 100).callback_end(callback=timer.callback)
    assert heard.ring is not None
    for i in range(2):
        at = 1 * MS + 10_000 + 1_000 * i
        main.dequeue(heard, at)
        main.callback(heard.ring.callback, at + 5, at + 50, intra=True)
    s.end(500 * MS)
    p = s.paths(tmp_path)
    assert told(p) == {"/a timer 1 ms → /x → /b": (4, 2, {"overwritten": 2})}
    assert legs(p) == [[10, 7_995, 45]] * 2  # the third and fourth that were published
    assert p.told[0].followed.complete["start_ns"].to_list() == [1 * MS + 2_000, 1 * MS + 3_000]


# Where instances end --------------------------------------------------------------------------------------------------


def test_instances_that_did_not_arrive_say_where_and_why(tmp_path: Path) -> None:
    chain = Chain()
    chain.tick("a", chain.a_timer, MS // 2 + 500_000, chain.x)  # before the first that arrived
    chain.whole(2 * MS)
    chain.tick("a", chain.a_timer, 3 * MS, chain.x)  # lost
    (x,) = chain.tick("a", chain.a_timer, 4 * MS, chain.x)
    chain.hear("b", chain.b_heard, x, 4 * MS + 200)  # publishes nothing
    (x,) = chain.tick("a", chain.a_timer, 5 * MS, chain.x)
    chain.main("b").take(chain.b_heard, x, 5 * MS + 200)  # nobody handles it
    chain.main("b").at(5 * MS + 300).rclcpp_executor_get_next_ready()
    (x,) = chain.tick("a", chain.a_timer, 6 * MS, chain.x)
    (y,) = chain.hear("b", chain.b_heard, x, 6 * MS + 200, chain.y)  # /y is lost
    chain.tick("a", chain.a_timer, 450 * MS, chain.x)  # on its way at the end
    chain.tick("a", chain.a_timer, 7 * MS)  # publishes nothing: does not set out
    chain.end(500 * MS)
    p = chain.paths(tmp_path)
    assert y
    ended = p.told[0].followed.ended.select("hop", "reason", "n").sort("hop", "reason").rows()
    assert ended == [
        (1, "before_first", 1),
        (1, "end_of_trace", 1),
        (1, "not_handled", 1),
        (1, "not_taken", 1),
        (2, "not_published", 1),
        (2, "not_taken", 1),
    ]
    assert told(p)[CHAIN][:2] == (7, 1)


def test_around_lost_events_nothing_is_claimed(tmp_path: Path) -> None:
    chain = Chain()
    chain.whole(1 * MS)
    chain.tick("a", chain.a_timer, 200 * MS, chain.x)  # its take may be among what was lost
    cpu = chain.nodes["b"][0].cpu
    chain.made.user_space().lose_packets(250 * MS, packets=1, cpu=cpu)
    for at in (240 * MS, 260 * MS):  # the events that the lost packet lay between
        chain.main("b").at(at).rclcpp_executor_get_next_ready()
    chain.whole(900 * MS)
    chain.end(1500 * MS)
    p = chain.paths(tmp_path)
    assert told(p)[CHAIN] == (3, 2, {"cut": 1})


def test_a_complete_instance_across_a_loss_is_left_out_of_the_latencies(tmp_path: Path) -> None:
    chain = Chain()
    chain.whole(1 * MS)
    (x,) = chain.tick("a", chain.a_timer, 2 * MS, chain.x)
    cpu = chain.nodes["b"][0].cpu
    for at in (2 * MS + 120, 2 * MS + 160):  # the events that the lost packet lay between
        chain.main("b").at(at).rclcpp_executor_get_next_ready()
    chain.made.user_space().lose_packets(2 * MS + 150, packets=1, cpu=cpu)
    (y,) = chain.hear("b", chain.b_heard, x, 2 * MS + 200, chain.y)
    chain.hear("c", chain.c_heard, y, 2 * MS + 500)
    chain.end(500 * MS)
    p = chain.paths(tmp_path)
    assert told(p)[CHAIN][:2] == (2, 2)
    assert p.told[0].followed.complete["left_out"].to_list() == [False, True]
    assert p.told[0].figures["latency_n"] == 1


# Sources that are no callbacks ----------------------------------------------------------------------------------------


def test_publications_outside_of_callbacks_and_takes_without_publication_are_sources(tmp_path: Path) -> None:
    chain = Chain()
    sent = chain.main("a").publish(chain.x, 1 * MS)  # no callback runs
    chain.hear("b", chain.b_heard, sent, 1 * MS + 200)
    chain.main("b").take(chain.b_heard, None, 2 * MS, source_timestamp=77)  # of a process that was not traced
    (y,) = chain._run("b", chain.b_heard, 2 * MS + 10, (chain.y,), 100)
    chain.hear("c", chain.c_heard, y, 2 * MS + 500)
    chain.end(500 * MS)
    p = chain.paths(tmp_path)
    assert set(told(p)) == {"/a (no callback) → /x → /b", "(outside) → /b /x → /y → /c"}
    assert p.outside == 1
    without = next(t for t in p.told if t.route.name.startswith("/a"))
    assert [hop.kind for hop in without.route.hops] == ["message", "sink"]


def test_a_node_without_callbacks_in_the_trace_is_a_sink_that_takes(tmp_path: Path) -> None:
    """A Python node: rcl and rmw are traced, its callbacks are not."""
    s = System()
    timer, x = s.timer("a"), s.publisher("a", "/x")
    heard = s.subscription("py", "/x")
    for at in (1 * MS, 2 * MS):
        (sent,) = s.tick("a", timer, at, x)
        s.main("py").take(heard, sent, at + 300)
        s.main("py").at(at + 400).rclcpp_executor_get_next_ready()
    s.end(500 * MS)
    p = s.paths(tmp_path)
    assert told(p) == {"/a timer 1 ms → /x → /py": (2, 2, {})}
    assert p.told[0].figures["latency_p50_ns"] == 300
    assert p.told[0].figures["until_end_n"] == 0


# Links ----------------------------------------------------------------------------------------------------------------


def timer_driven(layout: Any = "jazzy") -> tuple[Chain, Timer]:
    """/b keeps what it hears; its timer publishes."""
    chain = Chain(layout)
    return chain, chain.timer("b", 2 * MS)


def run_timer_driven(chain: Chain, timer: Timer) -> None:
    for at in (10 * MS, 11 * MS):  # the second replaces the first
        (x,) = chain.tick("a", chain.a_timer, at, chain.x)
        chain.hear("b", chain.b_heard, x, at + 200)
    for at in (12 * MS, 14 * MS):  # both publish the second
        (y,) = chain.tick("b", timer, at, chain.y)
        chain.hear("c", chain.c_heard, y, at + 500)
    chain.end(500 * MS)


INFERRED_NAME = "/a timer 1 ms → /x → /b → ({}) /b timer 2 ms → /y → /c"


def test_an_inferred_link_is_from_the_latest_input_and_only_where_it_is_asked_for(tmp_path: Path) -> None:
    chain, timer = timer_driven()
    run_timer_driven(chain, timer)
    causal: dict[str, Any] = {"/a timer 1 ms → /x → /b": (2, 2, {}), "/b timer 2 ms → /y → /c": (2, 2, {})}
    plain = chain.paths(tmp_path)
    assert told(plain) == causal
    assert set(plain.flow.edges["link"]) == {"causal"}
    asked = chain.paths(tmp_path / "asked", inferred=True)
    assert told(asked) == causal | {INFERRED_NAME.format("inferred"): (3, 2, {"not_used": 1})}
    assert {t.route.name: t.route.link for t in asked.told}[INFERRED_NAME.format("inferred")] == "inferred"
    for t in plain.told:  # the figures of the causal paths are the same
        assert t.figures == next(other for other in asked.told if other.route.name == t.route.name).figures
    assert legs(asked, 2) == [[10, 190, MS - 190, 490, 100], [10, 190, 3 * MS - 190, 490, 100]]
    assert [h.kind for h in asked.told[2].route.hops] == ["callback", "message", "held", "message", "sink"]
    kinds = asked.flow.edges.filter(pl.col("link") == "inferred")
    assert kinds["via_vertex"].null_count() == 0


def test_a_declared_link_is_the_node_s_own_word(tmp_path: Path) -> None:
    chain, timer = timer_driven("humble_fork")
    chain.main("b").at(2 * MS).message_link_periodic_async(
        **{"_subs_length": 1, "subs": [chain.b_heard.handle], "_pubs_length": 1, "pubs": [chain.y.handle]}
    )
    run_timer_driven(chain, timer)
    trace = opened(chain.made, tmp_path)
    links = trace.table("links")
    assert links.select("kind", "subscription", "publisher", "time_ns").rows() == [("periodic_async", 0, 1, 2 * MS)]
    p = paths_of(trace, Asked())
    assert told(p) == {
        "/b timer 2 ms → /y → /c": (2, 2, {}),
        INFERRED_NAME.format("declared"): (3, 2, {"not_used": 1}),
    }
    assert {t.route.link for t in p.told} == {"causal", "declared"}
    # What is declared is not inferred as well.
    everything = flow_of(trace, quality_of(trace), inferred=True)
    assert set(everything.edges["link"]) == {"causal", "declared"}


def test_a_link_of_two_inputs_is_a_row_per_pair(tmp_path: Path) -> None:
    s = System("humble_fork")
    one, two = s.subscription("f", "/one"), s.subscription("f", "/two")
    out = s.publisher("f", "/out")
    s.main("f").at(1 * MS).message_link_partial_sync(
        **{"_subs_length": 2, "subs": [one.handle, two.handle], "_pubs_length": 1, "pubs": [out.handle]}
    )
    s.end(2 * MS)
    links = opened(s.made, tmp_path).table("links")
    assert links.select("kind", "subscription", "publisher").rows() == [("partial_sync", 0, 0), ("partial_sync", 1, 0)]


def test_where_a_timer_was_due_is_known_the_latency_from_then_is_told(tmp_path: Path) -> None:
    chain = Chain()
    for at in (1 * MS, 2 * MS):
        chain.main("a").at(at - 1).perflab__timer_due(timer_handle=chain.a_timer.handle, due_ns=at - 70)
        chain.whole(at)
    chain.end(500 * MS)
    row = paths(opened(chain.made, tmp_path)).section("paths").frame.row(0, named=True)
    assert (row["from_due_p50_ns"], row["latency_p50_ns"]) == (570, 500)


def test_a_declaration_without_lists_declares_nothing(tmp_path: Path) -> None:
    """Another tracer's event of that name, whose fields are numbers."""
    s = System("humble_fork")
    s.made.events["ros2:message_link_partial_sync"] = Struct((("_subs", UINT64), ("_pubs", UINT64)))
    heard, out = s.subscription("f", "/one"), s.publisher("f", "/out")
    s.main("f").at(1 * MS).message_link_partial_sync(subs=heard.handle, pubs=out.handle)
    s.end(2 * MS)
    assert opened(s.made, tmp_path).table("links").is_empty()


# Hosts ----------------------------------------------------------------------------------------------------------------


def test_a_path_over_two_hosts_is_on_one_time_line(tmp_path: Path) -> None:
    s = System()
    timer, x = s.timer("a"), s.publisher("a", "/x")
    s.made.host("other", epoch_offset_ns=s.made.host().epoch_offset_ns + 5_000)
    process = s.made.process("b", pid=77, host="other")
    node = process.node("b")
    heard = process.subscription(node, "/x")
    (sent,) = s.tick("a", timer, 1 * MS, x)
    process.main.take(heard, sent, 1 * MS + 295 - 5_000)  # its clock reads less
    process.main.callback(heard, 1 * MS + 300 - 5_000, 1 * MS + 400 - 5_000)
    s.end(500 * MS)
    process.main.at(500 * MS).rclcpp_executor_get_next_ready()
    trace = opened(s.made, tmp_path)
    p = paths_of(trace, Asked())
    assert legs(p) == [[10, 290, 100]]
    edges = paths(trace).section("edges").frame
    assert edges["delivery"].to_list() == ["other_host"]


# Routes ---------------------------------------------------------------------------------------------------------------


def test_following_a_route_finds_as_many_as_there_are_chains_in_the_data(tmp_path: Path) -> None:
    chain = Chain()
    for at in range(1, 20):
        chain.whole(at * MS)
    chain.tick("a", chain.a_timer, 30 * MS, chain.x)
    chain.end(500 * MS)
    trace = opened(chain.made, tmp_path)
    flow = flow_of(trace, quality_of(trace))
    routes = found(flow).routes
    assert [(r.n, r.follow().complete.height) for r in routes] == [(19, 19)]


def test_paths_can_be_cut_to_begin_and_end_somewhere(tmp_path: Path) -> None:
    chain = Chain()
    chain.whole(1 * MS)
    chain.end(500 * MS)
    assert set(told(chain.paths(tmp_path / "1", source="/b"))) == {"/b /x → /y → /c"}
    assert set(told(chain.paths(tmp_path / "2", sink="/x"))) == {"/a timer 1 ms → /x → /b"}
    assert set(told(chain.paths(tmp_path / "3", source="/[xy]", sink="/c"))) == {CHAIN}
    assert not told(chain.paths(tmp_path / "4", source="/c"))


def test_with_a_limit_the_least_travelled_paths_are_counted_and_not_told(tmp_path: Path) -> None:
    s = System()
    timer, x, z = s.timer("a"), s.publisher("a", "/x"), s.publisher("a", "/z")
    b, d = s.subscription("b", "/x"), s.subscription("d", "/z")
    sent_x, sent_z = s.tick("a", timer, 1 * MS, x, z)
    s.hear("b", b, sent_x, 1 * MS + 300)
    s.hear("d", d, sent_z, 1 * MS + 500)
    (sent_x,) = s.tick("a", timer, 2 * MS, x)
    s.hear("b", b, sent_x, 2 * MS + 300)
    s.end(500 * MS)
    trace = opened(s.made, tmp_path)
    p = paths_of(trace, Asked(limit=1))
    assert (list(told(p)), [route.n for route in p.left_out]) == (["/a timer 1 ms → /x → /b"], [1])
    assert any("1 path with 1 instance left out" in n for n in paths(trace, Asked(limit=1)).section("paths").notes)
