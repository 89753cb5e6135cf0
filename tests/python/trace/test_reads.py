"""What an answer says that it reads of a trace is all that it reads: of a trace that was opened for that alone it is
the same as of the whole one.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from made_tables import MadeSource
from opened import needs_library
from reference_traces import RECORDED, ROOT, reference_trace, trace_folders

from perflab.errors import BadInput, PerflabError
from perflab.trace import callbacks, messages, open_trace, summary
from perflab.trace.answer import Answer
from perflab.trace.source import HAPPENED, Count, NativeTrace, Reads, Source

OWN = "functions"
ANSWERS: tuple[tuple[Callable[[Source], Answer], Reads], ...] = (
    (summary.summary, summary.READS),
    (callbacks.callbacks, callbacks.READS),
    (messages.messages, messages.READS),
)


def folder_of(name: str) -> Path:
    return ROOT / "tests" / "data" / "traces" / OWN if name == OWN else reference_trace(name)


def of_user_space(name: str) -> list[Path]:
    """Without the scheduler's events, for which everything is kept."""
    found = []
    for folder in trace_folders(folder_of(name)):
        with open_trace([folder]) as trace:
            if trace.facts["scheduler"] is None:
                found.append(folder)
    return found


@pytest.mark.parametrize("name", [OWN, *RECORDED])
@pytest.mark.parametrize(("answer", "reads"), ANSWERS, ids=lambda value: getattr(value, "__name__", ""))
def test_an_answer_needs_what_it_says_that_it_reads(
    name: str, answer: Callable[[Source], Answer], reads: Reads
) -> None:
    needs_library()
    for paths in filter(None, ([folder_of(name)], of_user_space(name))):
        with open_trace(paths) as whole, open_trace(paths, reads=reads) as part:
            assert json.dumps(answer(part).document()) == json.dumps(answer(whole).document())


COUNTS = (
    Count("takes"),
    Count(
        "takes",
        by=("subscription", "match"),
        counted=(("callback_instance",), ("rcl_ns", "rclcpp_ns")),
        least=("rmw_ns",),
    ),
    Count("publications", by=("publisher",), counted=(("dds_ns",),), least=("rcl_ns", "intra_ns")),
    Count("phases", by=("phase", "callback"), counted=(("end_ns",),)),
)


@pytest.mark.parametrize("name", [OWN, RECORDED[0]])
@pytest.mark.parametrize("question", COUNTS, ids=lambda question: f"{question.table} by {question.by}")
def test_rows_are_counted_as_those_of_data_frames(name: str, question: Count) -> None:
    needs_library()
    with open_trace([folder_of(name)]) as trace:
        made = MadeSource({question.table: trace.table(question.table).to_dicts()})
        assert trace.count(question) == made.count(question)
        begin, end = trace.facts["begin_ns"], trace.facts["end_ns"]
        within = replace(question, begin_ns=begin + (end - begin) // 3, end_ns=end, instants=question.least)
        if within.instants:
            assert trace.count(within) == made.count(within)


def test_what_nobody_wanted_is_not_kept() -> None:
    needs_library()
    paths = of_user_space(OWN)
    with open_trace(paths) as whole, open_trace(paths, reads={"phases": ("end_ns",)}) as part:
        assert part.table("phases").columns == ["end_ns"]
        assert part.table("phases").equals(whole.table("phases").select("end_ns"))
        assert part.table("threads").equals(whole.table("threads"))


@pytest.mark.parametrize("table", HAPPENED)
def test_a_table_that_was_not_to_be_read_is_not_taken_for_an_empty_one(table: str) -> None:
    needs_library()
    with (
        open_trace(of_user_space(OWN), reads={}) as trace,
        pytest.raises(ValueError, match=f"^this trace was not opened to read {table}$"),
    ):
        trace.table(table)


def test_values_of_a_column_whose_nulls_were_to_be_read_are_not_there() -> None:
    needs_library()
    with open_trace(of_user_space("jazzy_small"), reads={"phases": ("end_ns?",)}) as trace:
        ((phases, ended),) = trace.count(Count("phases", counted=(("end_ns",),)))
        assert phases >= ended > 0
        with pytest.raises(ValueError, match=r"^this trace was not opened to read phases$"):
            trace.table("phases")
        with pytest.raises(PerflabError, match=r"^the column phase is not kept$"):
            trace.count(Count("phases", by=("phase",)))


def test_a_column_that_no_table_has_is_said() -> None:
    needs_library()
    with pytest.raises(BadInput, match=r"^no table has the column takes\.nothing$"):
        open_trace(of_user_space(OWN), reads={"takes": ("nothing",)})


def test_a_trace_that_was_opened_in_part_is_not_exported(tmp_path: Path) -> None:
    needs_library()
    trace: NativeTrace = open_trace(of_user_space(OWN), reads=summary.READS)
    with pytest.raises(Exception, match="opened for some of its columns only"):
        trace.export("folded", tmp_path / "folded", {})
