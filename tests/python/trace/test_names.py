"""What callbacks are called: short names that no other callback has, and that a person knows."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_trace import MadeTrace
from opened import opened

from perflab.trace import names


@pytest.mark.parametrize(
    ("symbol", "short"),
    [
        (None, None),
        ("perflab::timer(/montreal, nile)", "nile"),
        ("perflab::subscription(/left/arm, /goal)", "/goal"),
        ("Talker::on_tick()", "Talker::on_tick"),
        ("void Node::cb(std::shared_ptr<M>)", "Node::cb"),
        ("int Foo::bar(int) const", "Foo::bar"),
        ("main", "main"),
        ("void (Talker::?)()", None),
        ("std::_Bind<void (A::*(A*))()>", None),
    ],
)
def test_a_symbol_as_people_would_say_it(symbol: str | None, short: str | None) -> None:
    assert names.short_symbol(symbol) == short


def made(*symbols: str | None) -> MadeTrace:
    """A node with timers of one period, each of which ticks once."""
    trace = MadeTrace("jazzy")
    process = trace.process("robot", pid=10)
    process.context()
    node = process.node("arm", "/")
    timers = [process.timer(node, 10_000_000, symbol) for symbol in symbols]
    thread = process.thread(11)
    for number, timer in enumerate(timers):
        thread.at(1_000 + 100 * number).callback_start(callback=timer.callback, is_intra_process=0)
        thread.at(1_050 + 100 * number).callback_end(callback=timer.callback)
    return trace


def test_timers_of_one_node_and_period_are_told_apart_by_their_symbols(tmp_path: Path) -> None:
    trace = opened(made("perflab::timer(/arm, nile)", "void Arm::step()"), tmp_path)
    assert names.callbacks(trace)["label"].to_list() == ["/arm timer 10 ms nile", "/arm timer 10 ms Arm::step"]


def test_and_by_their_handles_where_these_do_not_differ(tmp_path: Path) -> None:
    trace = opened(made("void Arm::step()", "void Arm::step()"), tmp_path)
    labels = names.callbacks(trace)["label"].to_list()
    assert len(set(labels)) == 2
    assert all(label.startswith("/arm timer 10 ms 0x") for label in labels)
