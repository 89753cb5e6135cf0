"""On every recorded trace every answer works, in a table and as JSON, and whatever is null says why."""

from __future__ import annotations

import functools
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pytest
from made_trace import MadeTrace
from opened import needs_library
from opened import opened as opened_made
from reference_traces import RECORDED, ROOT, reference_trace
from rich.console import Console

from perflab.report import trace_tables
from perflab.trace import open_trace
from perflab.trace.answer import Answer
from perflab.trace.callbacks import callbacks
from perflab.trace.executor import executor
from perflab.trace.locks import locks
from perflab.trace.messages import messages
from perflab.trace.paths import paths
from perflab.trace.scheduling import scheduling
from perflab.trace.source import NativeTrace, Source
from perflab.trace.starvation import starvation
from perflab.trace.summary import summary
from perflab.trace.why import Selection, why

OWN = "functions"


def why_callbacks(trace: Source) -> Answer:
    return why(trace, Selection(slow_callbacks=True))


def short_starvation(trace: Source) -> Answer:
    return starvation(trace, longer_than_ns=1_000_000)


ANSWERS: tuple[Callable[[Source], Answer], ...] = (
    summary, callbacks, messages, paths, executor, scheduling, why, why_callbacks, starvation,
    short_starvation, locks,
)  # fmt: skip


@functools.cache
def opened(name: str) -> NativeTrace:
    folder = ROOT / "tests" / "data" / "traces" / name
    return open_trace([Path(folder) if name == OWN else reference_trace(name)])


@functools.cache
def answered(name: str, answer: Callable[[Source], Answer]) -> Answer:
    return answer(opened(name))


def unexplained(answer: Answer) -> Iterator[str]:
    for section in answer.sections:
        frame = section.frame
        for column in frame.columns:
            nulls = frame.filter(pl.col(column).is_null())
            told = "reason" in frame.columns and nulls["reason"].null_count() == 0
            if nulls.height and not told and not section.reasons.get(column):
                yield f"{section.name}.{column}"
        if section.frame.is_empty() and not section.notes:
            yield f"{section.name} is empty"


@pytest.mark.parametrize("name", [OWN, *RECORDED])
@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: answer.__name__)
def test_every_null_has_its_reason(name: str, answer: Callable[[Source], Answer]) -> None:
    needs_library()
    found = answered(name, answer)
    assert list(unexplained(found)) == []
    document = json.loads(json.dumps(found.document(), allow_nan=False))
    for section in found.sections:
        assert len(document[section.name]["rows"]) == section.frame.height


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: answer.__name__)
def test_nulls_have_reasons_where_no_event_says_a_thread_s_name(
    tmp_path: Path, answer: Callable[[Source], Answer]
) -> None:
    made = MadeTrace("jazzy", procname=False)
    talker, listener = made.process("talker", pid=10), made.process("listener", pid=20, cpu=1)
    publisher = talker.publisher(talker.node("talker"), "/chatter")
    heard = listener.subscription(listener.node("listener"), "/chatter")
    message = talker.main.publish(publisher, 10_000, rcl_at=10_001, rmw_at=10_002)
    listener.main.take(heard, message, 11_000, rclcpp_at=11_010)
    listener.main.callback(heard, 11_100, 11_200)
    assert list(unexplained(answer(opened_made(made, tmp_path)))) == []


@pytest.mark.parametrize("width", [80, 100, 160])
@pytest.mark.parametrize("name", [OWN, "jazzy_small", "kernel_16_cores_rt"])
def test_tables_keep_to_the_width(name: str, width: int) -> None:
    needs_library()
    for answer in ANSWERS:
        text = io.StringIO()
        trace_tables.print_answer(Console(file=text, width=width, no_color=True), answered(name, answer))
        longest = max(text.getvalue().splitlines(), key=len)
        assert len(longest) <= width, longest
