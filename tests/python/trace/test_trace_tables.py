"""Answers on a terminal: no line is too long, what matters most stays, and every dash has its reason."""

from __future__ import annotations

import io
from collections.abc import Callable

import polars as pl
import pytest
from made_tables import MadeSource
from rich.cells import cell_len
from rich.console import Console

from perflab.report.table import fold_symbol, shorten
from perflab.report.trace_tables import print_answer
from perflab.trace.answer import Answer, Section
from perflab.trace.callbacks import callbacks
from perflab.trace.columns import Table, count, percent, symbol, text, time
from perflab.trace.messages import messages
from perflab.trace.names import PID
from perflab.trace.source import Source
from perflab.trace.summary import summary

WIDTHS = (60, 80, 100, 160, 240)


def render(answer: Answer, width: int, *, everything: bool = False) -> str:
    out = io.StringIO()
    print_answer(
        Console(file=out, width=width, no_color=True, highlight=False, force_terminal=False),
        answer,
        everything=everything,
    )
    return out.getvalue()


CALLBACK = text("callback", "its name")
MANY = Table(
    "callbacks",
    "Callbacks",
    (
        CALLBACK,
        count("n", "how often", "never null"),
        time("p50", "median", of="duration"),
        time("p99", "p99", "a p99 needs 100 values", of="duration"),
        percent("share", "share"),
        PID,
        symbol("symbol", "the function"),
    ),
    spare=("symbol", "pid"),
)


def many(n: int = 30) -> Answer:
    frame = pl.DataFrame(
        {
            "callback": [f"/a/namespace/of/some/length/node_{i} /topic_with_a_long_name_{i}" for i in range(n)],
            "n": [12_480 + i for i in range(n)],
            "duration_p50_ns": [950 * 10 ** (i % 4) for i in range(n)],
            "duration_p99_ns": [None if i == 3 else 45_200_000 for i in range(n)],
            "share_percent": [float(i) for i in range(n)],
            "pid": [123_456] * n,
            "symbol": ["void (Node::?)(std::shared_ptr<std_msgs::msg::String_<std::allocator<void> > const>)"] * n,
        }
    )
    return Answer("callbacks", (Section(MANY, frame, ("times are wall time",)),), ("3 events discarded by the tracer",))


@pytest.mark.parametrize("width", WIDTHS)
def test_no_line_is_longer_than_the_terminal(width: int) -> None:
    assert max(cell_len(line) for line in render(many(), width).splitlines()) <= width


def test_units_counts_and_identities_are_written_for_people() -> None:
    text = render(many(2), 240)
    for words in ("950 ns", "9.50 µs", "45.2 ms", "12 480", "123456", "1 %", "duration", "p50", "p99"):
        assert words in text
    assert "_ns" not in text


def test_a_dash_has_its_reason_and_only_a_dash_has() -> None:
    text = render(many(), 160)
    assert "– duration p99: a p99 needs 100 values" in text
    assert "never null" not in text
    assert "needs 100 values" not in render(many(3), 160)  # nothing is null in these rows


def test_a_narrow_terminal_leaves_out_what_is_spare_first() -> None:
    assert "symbol" in render(many(), 240)
    for name, width in (("symbol", 120), ("pid", 60)):
        table, _, named = render(many(), width).partition("Left out at ")
        assert f" {name}" not in table
        assert name in named
    text = render(many(), 60)
    assert "/a/name" in text and " n " in text


def test_rows_beyond_the_first_are_counted_and_shown_when_asked_for() -> None:
    text = render(many(), 160)
    assert "… and 10 more: --all" in text and "node_20" not in text
    text = render(many(), 160, everything=True)
    assert "more: --all" not in text and "node_29" in text


def test_notes_and_quality_are_printed() -> None:
    text = render(many(), 100)
    assert "times are wall time" in text
    assert "Data quality\n- 3 events discarded by the tracer" in text


def test_an_empty_section_has_its_title_and_its_note() -> None:
    table = Table("ledger", "What is missing", (count("n", "how many"),))
    section = Section(table, table.frame(()), notes=("nothing is missing",))
    assert render(Answer("summary", (section,)), 80).split("\n")[:2] == ["What is missing", "nothing is missing"]


def test_a_column_that_is_null_throughout_takes_no_room_but_its_reason_stays() -> None:
    frame = pl.DataFrame({"callback": ["/a"], "n": [1], "symbol": [None]}, schema_overrides={"symbol": pl.String})
    columns = (CALLBACK, count("n", "how often"), symbol("symbol", "the function", "it was not registered"))
    section = Section(Table("callbacks", "Callbacks", columns), frame)
    lines = render(Answer("callbacks", (section,)), 80).splitlines()
    assert "symbol" not in lines[1]
    assert "– symbol: it was not registered" in lines


def test_one_row_may_be_written_as_lines() -> None:
    frame = pl.DataFrame({"duration_ns": [10_180_000_000], "events": [99_338]})
    table = Table("overview", "Trace", (time("duration", "how long"), count("events", "how many")), vertical=True)
    assert "duration  10.2 s\nevents    99 338\n" in render(Answer("summary", (Section(table, frame),)), 80)


def test_a_tree_of_functions_is_indented() -> None:
    frame = pl.DataFrame({"function": ["spin()", "wait()"], "depth": [0, 1], "calls": [1, 7]})
    columns = (symbol("function", "its name"), count("depth", "how deep"), count("calls", "how often"))
    table = Table("tree", "Calls", columns, shown=("function", "calls"))
    lines = render(Answer("executor", (Section(table, frame),)), 80).splitlines()
    assert [line.split("  ")[0] for line in lines[3:4]] == ["spin()"] and lines[4].startswith("  wait()")


@pytest.mark.parametrize(
    ("symbol", "width", "folded"),
    [
        ("tick()", 32, "tick()"),
        ("std::shared_ptr<std_msgs::msg::String> f(int)", 32, "std::shared_ptr<…> f(int)"),
        ("f(A<B<some_long_type>, int>, C<D>)", 32, "f(A<B<…>, int>, C<D>)"),
        ("f(A<B<some_long_type>, int>, C<D>)", 16, "f(A<…>, C<D>)"),
        ("bool operator<(Left const&, Right const&)", 24, "bool operat…ight const&)"),
        ("a_very_long_function_name_without_any_arguments()", 21, "a_very_lon…rguments()"),
    ],
)
def test_symbols_lose_their_template_arguments_first_and_then_their_middle(
    symbol: str, width: int, folded: str
) -> None:
    assert fold_symbol(symbol, width) == folded
    assert cell_len(folded) <= width


def source(n: int = 200) -> MadeSource:
    """A talker and a listener, one message per millisecond."""
    node = "/a/namespace/of/some/length/and_a_node_of_a_long_name"
    at = [1_000_000 * (i + 1) for i in range(n)]
    return MadeSource(
        {
            "hosts": [{"name": "robot"}],
            "processes": [{"host": 0, "pid": 10, "name": "container", "first_ns": 0, "last_ns": 10**9, "events": 9}],
            "threads": [{"host": 0, "process": 0, "tid": 10, "name": "container", "events": 9}],
            "nodes": [{"process": 0, "handle": 1, "name": node}],
            "publishers": [{"process": 0, "node": 0, "handle": 2, "topic": "/chatter", "valid_from_ns": 0}],
            "subscriptions": [{"process": 0, "node": 0, "handle": 3, "topic": "/chatter", "valid_from_ns": 0}],
            "callbacks": [
                {"process": 0, "handle": 4, "kind": "subscription", "owner": 0, "node": 0, "name": "/chatter",
                 "symbol": "void (Listener::?)(std::shared_ptr<std_msgs::msg::String const>)"}
            ],
            "callback_instances": [
                {"callback": 0, "thread": 0, "start_ns": t + 200_000, "end_ns": t + 300_000} for t in at
            ],
            "publications": [{"publisher": 0, "rclcpp_ns": t, "rcl_ns": t + 1, "rmw_ns": t + 900} for t in at],
            "takes": [
                {"subscription": 0, "thread": 0, "rmw_ns": t + 190_000, "rclcpp_ns": t + 195_000, "match": "matched",
                 "publication": i, "callback_instance": i}
                for i, t in enumerate(at)
            ],
        }
    )  # fmt: skip


def test_long_names_lose_their_middle_on_both_sides_of_an_arrow() -> None:
    assert shorten("/a_long_namespace/talker → /b", 20) == "/a_long…/talker → /b"
    assert shorten("/aaaaaaaaaaaaaaaaa → /bbbbbbbbbbbbbbbbb", 21) == "/aaa…aaaa → /bbb…bbbb"
    assert shorten("/a → /b", 7) == "/a → /b"


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("question", [summary, callbacks, messages])
def test_the_answers_fit_and_keep_their_figures(question: Callable[[Source], Answer], width: int) -> None:
    text = render(question(source()), width)
    assert max(cell_len(line) for line in text.splitlines()) <= width
    if question is callbacks and width >= 80:
        assert "100 µs" in text and "p99" in text
    if question is messages and width >= 80:
        assert "200 µs" in text and "latency" in text
