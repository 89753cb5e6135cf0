"""When a graph is at rest: never while a message is under way, whatever the order of the reports."""

from __future__ import annotations

import random

from perflab.experiment.drain import Drain
from perflab.experiment.protocol import Progress

S = 1_000_000_000


def progress(at: int, expected: int, completed: int, publishing: bool = False) -> Progress:
    return Progress(
        type="progress",
        at_ns=at,
        elapsed_ns=at,
        publishing=publishing,
        sent=expected,
        deliveries_expected=expected,
        received=completed,
        completed=completed,
        lost=0,
    )


def test_equal_sums_twice_in_a_row_are_rest() -> None:
    drain = Drain(["a", "b"], S, 10 * S)
    drain.update("b", progress(0, 0, 5), 0)
    for at in (1, 2):
        drain.update("a", progress(at, 5, 0), at)
        assert drain.verdict(at) is None
        drain.update("b", progress(at, 0, 5), at)
    assert drain.verdict(2) == "rest"


def test_equal_sums_once_are_not_rest() -> None:
    drain = Drain(["a"], S, 10 * S)
    drain.update("a", progress(1, 5, 5), 1)
    assert drain.verdict(1) is None
    drain.update("a", progress(2, 6, 6), 2)
    assert drain.verdict(2) is None
    drain.update("a", progress(3, 6, 6), 3)
    assert drain.verdict(3) == "rest"


def test_nothing_ends_while_a_process_publishes() -> None:
    drain = Drain(["a", "b"], S, 10 * S)
    for at in range(1, 30):
        drain.update("a", progress(at * S, 5, 5), at * S)
        drain.update("b", progress(at * S, 5, 5, publishing=True), at * S)
    assert drain.publishing
    assert drain.verdict(1000 * S) is None


def test_missing_messages_end_the_drain_when_it_is_quiet() -> None:
    drain = Drain(["a"], S, 10 * S)
    drain.update("a", progress(1, 5, 3), 0)
    drain.update("a", progress(2, 5, 4), S // 2)
    assert drain.verdict(S) is None
    assert drain.verdict(3 * S // 2) == "quiet"


def test_a_graph_that_never_rests_ends_at_the_limit() -> None:
    drain = Drain(["a"], S, 10 * S)
    for tenth in range(100):
        drain.update("a", progress(tenth + 1, 10 + tenth, tenth), tenth * S // 10)
        assert drain.verdict(tenth * S // 10) is None
    drain.update("a", progress(102, 200, 100), 10 * S)
    assert drain.verdict(10 * S) == "limit"


def test_a_silent_process_ends_the_drain_by_quiet() -> None:
    drain = Drain(["a", "b"], S, 10 * S)
    drain.update("a", progress(1, 5, 0), 1)
    drain.update("b", progress(1, 0, 5), 1)
    assert drain.verdict(2 * S) == "quiet"


def test_rest_is_never_found_while_a_message_is_under_way() -> None:
    """Messages hop along a ring; reports are read at random times. `rest` must imply that none is in flight."""
    for seed in range(300):
        rng = random.Random(seed)
        names = ["a", "b", "c"]
        expected, completed = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
        expected["a"] = 1
        flying = [("b", rng.randint(3, 12))]  # receiver, hops left
        drain = Drain(names, 10**6 * S, 10**6 * S)
        for now in range(1, 2000):
            action = rng.random()
            if flying and action < 0.2:
                receiver, hops = flying.pop(rng.randrange(len(flying)))
                if hops:
                    expected[receiver] += 1
                    flying.append((rng.choice(names), hops - 1))
                completed[receiver] += 1  # the callback ends after it has published
            else:
                name = rng.choice(names)
                drain.update(name, progress(now, expected[name], completed[name]), now)
            if drain.verdict(now) == "rest":
                assert not flying, seed
                break
        else:
            raise AssertionError(f"never at rest with seed {seed}")
