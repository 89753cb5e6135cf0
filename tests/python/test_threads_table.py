"""The table of threads: what each does, by the middleware that named it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from perflab.middleware import REGISTRY, what_threads_do
from perflab.report.tables.messages import Of
from perflab.report.tables.threads import of_results, what_it_does
from perflab.results.trial import Result, ThreadGroup


def thread(name: str, role: str = "middleware") -> ThreadGroup:
    return ThreadGroup(
        process="ping", name=name, role=role, asked=None, policy="RR", priority=98, cpus=(0, 1), tids=(7, 8)
    )


@pytest.mark.parametrize(
    ("middleware", "name", "words"),
    [
        ("cyclonedds", "tev", "timed events"),
        ("cyclonedds@/opt/mine", "tev", "timed events"),
        ("rclcpp/rmw_cyclonedds_cpp", "recvUC", "unicast"),
        ("rclcpp/rmw_fastrtps_cpp", "dds.ev.0", "timers"),
        ("fastdds", "fdds.udp.user", "messages"),
        ("cyclonedds+fastdds", "fdds", "timers"),
    ],
)
def test_a_thread_of_a_middleware_is_known_by_its_name(middleware: str, name: str, words: str) -> None:
    assert words in (what_threads_do(middleware, name) or "")


def test_what_nobody_knows_is_not_guessed() -> None:
    assert what_threads_do("cyclonedds", "fdds") is None
    assert what_threads_do("shm", "tev") is None
    assert what_threads_do(None, "tev") is None
    assert what_it_does("cyclonedds", thread("odd", "of_a_later_version")) is None


def test_a_pattern_that_follows_one_which_takes_all_of_it_would_never_be_used() -> None:
    for kind in REGISTRY.values():
        for name, does in kind.threads:
            assert what_threads_do(kind.name, name.replace("*", "1")) == does


def test_each_group_of_threads_is_a_row() -> None:
    threads = (thread("tev"), thread("ping", "executor"))
    table = of_results([Of(cast(Result, SimpleNamespace(middleware="cyclonedds", threads=threads)))])
    first, second = ([column.cell(row).value for column in table.columns][2:] for row in table.rows)
    assert first == ["ping", "tev", 2, "middleware", what_threads_do("cyclonedds", "tev"), "RR", 98, "0-1"]
    assert second[4] == "runs callbacks"
