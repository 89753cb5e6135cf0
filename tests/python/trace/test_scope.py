"""Answers about a part of a trace: a stretch of its time, some nodes, some topics; when maxima happened; warnings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from opened import needs_library
from reference_traces import reference_trace

from perflab.errors import BadInput
from perflab.trace import open_trace
from perflab.trace.answer import Answer
from perflab.trace.callbacks import callbacks
from perflab.trace.compare import compare
from perflab.trace.executor import executor
from perflab.trace.messages import messages
from perflab.trace.paths import Asked, paths
from perflab.trace.quantiles import describe
from perflab.trace.scheduling import scheduling
from perflab.trace.scope import Scope
from perflab.trace.source import NativeTrace
from perflab.trace.summary import summary
from perflab.trace.why import Selection, why

S = 1_000_000_000
ANSWERS: dict[str, Callable[[NativeTrace, Scope], Answer]] = {
    "summary": summary,
    "callbacks": callbacks,
    "messages": lambda trace, scope: messages(trace, scope=scope),
    "executor": lambda trace, scope: executor(trace, scope=scope),
    "scheduling": scheduling,
    "paths": lambda trace, scope: paths(trace, Asked(scope=scope)),
    "why": lambda trace, scope: why(
        trace,
        Selection(scope=scope),
    ),
}


@pytest.fixture(scope="module")
def trace() -> NativeTrace:
    needs_library()
    return open_trace([reference_trace("jazzy_small")])


def rows(answer: Answer, section: str) -> list[dict[str, Any]]:
    return answer.section(section).frame.to_dicts()


@pytest.mark.parametrize("name", ANSWERS)
def test_a_scope_of_everything_changes_nothing(trace: NativeTrace, name: str) -> None:
    length = f"{(trace.facts['end_ns'] - trace.facts['begin_ns']) / S + 1:.0f}s"
    whole = Scope.of(trace, begin="0s", end=length, nodes=["*"] if name not in ("scheduling", "executor") else ())
    found, plain = ANSWERS[name](trace, whole), ANSWERS[name](trace, Scope())
    for section in plain.sections:
        if section.name in ("processes", "without_phases", "messages", "legs", "takes_without_publication", "services"):
            continue  # what is of no node at all is left out where nodes are named
        if section.name in ("callbacks", "split", "preempted_by", "edges", "vertices", "overview"):
            assert found.section(section.name).frame.height <= section.frame.height
            continue
        assert found.section(section.name).frame.equals(section.frame), section.name


@pytest.mark.parametrize("name", ANSWERS)
def test_two_halves_of_a_trace_have_what_all_of_it_has(trace: NativeTrace, name: str) -> None:
    counts = {
        "summary": ("overview", "callback_instances"),
        "callbacks": ("callbacks", "n"),
        "messages": ("messages", "published"),
        "executor": ("phases", "count"),
        "scheduling": ("wake_up_latency", "wake_up_n"),
        "paths": ("paths", "set_out"),
        "why": ("by_edge", "messages"),
    }
    section, column = counts[name]
    answers = [
        ANSWERS[name](trace, scope) for scope in (Scope(), Scope.of(trace, end="2.5s"), Scope.of(trace, begin="2.5s"))
    ]
    whole, first, second = (int(answer.section(section).frame[column].sum() or 0) for answer in answers)
    assert 0 < first < whole
    if name == "why":  # only edges with late messages are listed
        whole, first, second = (answer.section("why").frame["messages"].item() for answer in answers)
    assert first + second == whole
    assert [answer.scope for answer in answers] == [
        "", "from the beginning to 2.5s of the trace", "from 2.5s to the end of the trace",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ANSWERS)
def test_a_stretch_has_no_maximum_outside_of_it(trace: NativeTrace, name: str) -> None:
    answer = ANSWERS[name](trace, Scope.of(trace, begin="1s", end="2s"))
    seen = 0
    for section in answer.sections:
        for column in section.frame.columns:
            if column.endswith(("_max_at_ns", "longest_at_ns")):
                at = section.frame[column].drop_nulls()
                seen += at.len()
                assert at.is_between(1 * S, 2.1 * S).all(), (section.name, column)
    assert seen or name == "summary"


def test_of_a_node_are_its_callbacks_its_messages_and_its_threads(trace: NativeTrace) -> None:
    scope = Scope.of(trace, nodes=["/listener*"])
    assert scope.words == "node /listener*"
    assert {row["node"] for row in rows(callbacks(trace, scope), "callbacks")} == {"/listener"}
    assert {row["node"] for row in rows(summary(trace, scope), "nodes")} == {"/listener"}
    edges = rows(messages(trace, scope=scope), "messages")
    assert edges
    assert all("/listener" in (row["publisher"], row["subscription"]) for row in edges)
    threads = {row["thread"] for row in rows(executor(trace, scope=scope), "phases")}
    assert threads == {"listener"}
    assert {row["thread"] for row in rows(scheduling(trace, scope), "threads")} == {"listener"}


def test_of_a_topic_are_its_messages_and_the_callbacks_that_handle_or_publish_it(trace: NativeTrace) -> None:
    topic = next(row["topic"] for row in rows(messages(trace), "messages") if row["subscription"] == "/listener")
    scope = Scope.of(trace, topics=[topic])
    edges = rows(messages(trace, scope=scope), "messages")
    assert {row["topic"] for row in edges} == {topic}
    ends = {row["publisher"] for row in edges} | {row["subscription"] for row in edges}
    assert {row["node"] for row in rows(callbacks(trace, scope), "callbacks")} == ends
    assert all(row["topic"] == topic for row in rows(paths(trace, Asked(scope=scope)), "edges"))


@pytest.mark.parametrize(
    ("asked", "line"),
    [
        ({"begin": "1h"}, "--begin 1h is after the end of the trace, which is "),
        ({"begin": "2s", "end": "1s"}, "--end 1s is not after --begin 2s"),
        ({"begin": "soon"}, "--begin"),
        ({"nodes": ["/listner"]}, "--node: no node '/listner' is in the trace; did you mean /listener"),
        ({"topics": ["nothing*"]}, "--topic: no topic 'nothing"),
    ],
)
def test_what_the_trace_does_not_have_is_one_line(trace: NativeTrace, asked: dict[str, Any], line: str) -> None:
    with pytest.raises(BadInput) as error:
        Scope.of(trace, **asked)
    assert str(error.value).startswith(line), error.value
    assert "\n" not in str(error.value)


def test_a_maximum_has_the_instant_at_which_it_happened_first() -> None:
    frame = pl.DataFrame({"of": ["a", "a", "a", "b"], "x": [3, 9, 9, None], "at": [10, 20, 30, 40]})
    found = describe(frame, ["of"], {"x": pl.col("x")}, statistics=("min", "max"), at={"x": pl.col("at")})
    assert found.columns == ["of", "x_n", "x_min_ns", "x_max_ns", "x_max_at_ns"]
    assert found["x_max_at_ns"].to_list() == [20, None]


def test_the_slowest_message_is_where_the_answer_says(trace: NativeTrace) -> None:
    (row,) = [r for r in rows(messages(trace), "messages") if r["subscription"] == "/listener" and r["handled"] > 100]
    at = row["latency_max_at_ns"]
    around = Scope.of(trace, begin=f"{at}ns", end=f"{at + 1}ns", nodes=["/listener"])
    (found,) = [r for r in rows(messages(trace, scope=around), "messages") if r["topic"] == row["topic"]]
    assert (found["published"], found["latency_max_ns"]) == (1, row["latency_max_ns"])


def test_poor_coverage_and_losses_are_warnings_before_the_tables(trace: NativeTrace) -> None:
    needs_library()
    lossy = open_trace([reference_trace("lttng_ust_plus_perf")])
    (warning,) = [w for w in messages(lossy).warnings if "messages" in w]
    assert warning.startswith("the figures of messages rest on a part of the data: 0 of 20 000 takes matched")
    assert not [w for w in callbacks(trace).warnings if "callbacks rest on" in w]


def test_two_traces_are_compared_in_a_part_of_both(trace: NativeTrace) -> None:
    scope = Scope.of(trace, end="2s", topics=["/chatter"])
    answer = compare(trace, trace, (scope, scope))
    assert {row["topic"] for row in rows(answer, "messages")} == {"/chatter"}
    latency = next(row for row in rows(answer, "messages") if row["figure"] == "latency")
    whole = next(
        r for r in rows(compare(trace, trace), "messages") if (r["topic"], r["figure"]) == ("/chatter", "latency")
    )
    assert 0 < latency["n_a"] == latency["n_b"] < whole["n_a"]
    assert latency["max_at_a_ns"] == latency["max_at_b_ns"] < 2 * S
    assert answer.scope == "from the beginning to 2s of the trace, topic /chatter"
