"""The native trace reader as data frames. What is read is the view of tests/native/traceview/arrow/double: made up, so
that every value is known.
"""

from __future__ import annotations

import gc
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support import SOURCE

from perflab.errors import BadInput, PerflabError, Unavailable
from perflab.trace import open_trace, source
from perflab.trace.source import LIBRARY, TABLES, Handle, NativeTrace, Source, Stream

DOUBLE = Path(os.environ.get("PERFLAB_TEST_TOOLS", "")) / "trace_double"
TAKE_MATCH = ["matched", "not_taken", "no_timestamp", "unknown_subscription", "no_publication", "ambiguous"]
THREAD_STATE = ["running", "preempted", "blocked", "woken", "stopped", "traced"]
SPLIT = {
    "on_cpu_ns": pl.Int64,
    "preempted_ns": pl.Int64,
    "blocked_ns": pl.Int64,
    "wake_up_ns": pl.Int64,
    "migrations": pl.UInt32,
}


@pytest.fixture
def double(monkeypatch: pytest.MonkeyPatch) -> Path:
    if not (DOUBLE / LIBRARY).is_file():
        pytest.skip("no trace_double in PERFLAB_TEST_TOOLS; build it with `make test`")
    monkeypatch.setenv("PERFLAB_NATIVE", str(DOUBLE))
    return DOUBLE


@pytest.fixture
def trace(double: Path) -> Iterator[NativeTrace]:
    with open_trace([Path("small")]) as opened:
        yield opened


def address(series: pl.Series) -> int:
    """Where the values of a series lie, by a view that cannot be a copy."""
    values = series.to_physical().to_numpy(allow_copy=False)
    where: int = values.__array_interface__["data"][0]
    return where


def series(*values: int | None, dtype: type[pl.DataType] = pl.Int64) -> pl.Series:
    return pl.Series(values, dtype=dtype)


# Tables


def test_columns_arrive_with_their_types_values_and_nulls(trace: NativeTrace) -> None:
    frame = trace.table("callback_instances")
    assert frame.schema == pl.Schema(
        {
            "callback": pl.Int32,
            "thread": pl.Int32,
            "start_ns": pl.Int64,
            "end_ns": pl.Int64,
            "intra_process": pl.Boolean,
            "take": pl.Int32,
            "delivery": pl.Int32,
            "parent": pl.Int32,
            "due_ns": pl.Int64,
        }
    )
    assert frame["start_ns"].to_list() == [1000 * row for row in range(20)]
    assert frame["end_ns"].to_list() == [*(1000 * row + 10 for row in range(19)), None]
    assert frame["take"].to_list() == [None] * 20


def test_flags_are_boolean(trace: NativeTrace) -> None:
    expected = [row % 3 == 1 if row != 18 else None for row in range(20)]
    assert trace.table("callback_instances")["intra_process"].to_list() == expected
    assert trace.table("intra_deliveries").schema["lost"] == pl.Boolean
    assert trace.table("wake_ups").schema["already_running"] == pl.Boolean


def test_enumerations_have_all_names_in_order(trace: NativeTrace) -> None:
    match = trace.table("takes")["match"]
    assert match.dtype == pl.Enum(TAKE_MATCH)
    assert match.to_list() == TAKE_MATCH
    states = trace.table("thread_states")
    assert states["state"].dtype == pl.Enum(THREAD_STATE)
    assert states["state"].to_list() == ["running", "blocked"]
    assert states["end_state"].to_list() == ["sleeping", None]


def test_enumerations_compare_and_group_as_such(trace: NativeTrace) -> None:
    takes = trace.table("takes")
    assert takes.filter(pl.col("match") == "no_timestamp")["subscription"].to_list() == [2]
    assert takes.group_by("match").len().sort("match")["match"].to_list() == TAKE_MATCH


def test_texts_are_unicode_and_may_be_null_or_empty(trace: NativeTrace) -> None:
    assert trace.table("hosts")["name"].to_list() == ["größe", None, "cut \ufffd"]
    assert trace.table("threads")["name"].to_list() == ["main", "main", ""]


def test_large_numbers_keep_their_value(trace: NativeTrace) -> None:
    threads = trace.table("threads")
    assert threads["events"].to_list() == [2**64 - 1] * 3
    assert threads["last_ns"].to_list() == [2**60] * 3


def test_a_table_without_rows_has_its_columns(trace: NativeTrace) -> None:
    nodes = trace.table("nodes")
    assert nodes.height == 0
    assert nodes.schema == pl.Schema(
        {
            "process": pl.Int32,
            "handle": pl.UInt64,
            "name": pl.String,
            "valid_from_ns": pl.Int64,
            "valid_to_ns": pl.Int64,
        }
    )


def test_values_are_not_copied(trace: NativeTrace) -> None:
    """All but flags, which are bits here, and codes of enumerations, of which polars makes its own."""
    one, other = (pl.DataFrame(trace._library.table(trace._handle, b"takes")) for _ in range(2))
    for column in ("subscription", "thread", "rmw_ns", "source_timestamp"):
        assert address(one[column]) == address(other[column])
    assert address(one["rmw_ns"]) != address(one["rcl_ns"])


def test_a_table_is_read_once(trace: NativeTrace) -> None:
    assert trace.table("takes") is trace.table("takes")


def test_an_unknown_table_is_refused_in_one_line(trace: NativeTrace) -> None:
    with pytest.raises(PerflabError, match=r"^no table take; there are hosts, processes, .*wake_ups$"):
        trace.table("take")


# Lifetimes


def test_frames_outlive_their_trace(double: Path) -> None:
    trace = open_trace([Path("small")])
    takes = trace.table("takes")
    trace.close()
    trace.close()
    assert trace.table("takes") is takes
    del trace
    gc.collect()
    assert takes["match"].to_list() == TAKE_MATCH
    assert takes["rmw_ns"].sum() == 15


def test_a_closed_trace_is_not_asked(double: Path) -> None:
    with open_trace([Path("small")]) as trace:
        pass
    with pytest.raises(ValueError, match="closed"):
        trace.table("takes")
    with pytest.raises(ValueError, match="closed"):
        trace.split(series(0, dtype=pl.Int32), series(0), series(1))


def test_closing_waits_for_nobody_and_frees_nothing_that_is_in_use(
    double: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = open_trace([Path("small")])
    asked, go_on = threading.Event(), threading.Event()
    split = trace._library.split
    answers: list[pl.DataFrame] = []

    def slow(*arguments: Any) -> Stream:
        asked.set()
        assert go_on.wait(60)
        return split(*arguments)

    monkeypatch.setattr(trace._library, "split", slow)
    arguments = (series(0, dtype=pl.Int32), series(5), series(8))
    thread = threading.Thread(target=lambda: answers.append(trace.split(*arguments)))
    thread.start()
    assert asked.wait(60)
    end = trace._handle.end
    trace.close()
    assert end.alive
    with pytest.raises(ValueError, match="closed"):
        trace.table("takes")
    go_on.set()
    thread.join(60)
    assert [frame["on_cpu_ns"].to_list() for frame in answers] == [[3]]
    assert not end.alive


@pytest.fixture
def released(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each stream that perflab lets go of: whether nobody had taken it over."""
    seen: list[bool] = []
    release = source._release

    def spy(stream: Any) -> None:
        seen.append(bool(stream.release))
        release(stream)

    monkeypatch.setattr(source, "_release", spy)
    return seen


def stream_of(trace: NativeTrace) -> Stream:
    return trace._library.table(trace._handle, b"takes")


def test_a_stream_that_is_not_read_is_released(trace: NativeTrace, released: list[bool]) -> None:
    stream = stream_of(trace)
    del stream
    gc.collect()
    assert released == [True]


def test_a_capsule_that_is_not_read_releases_its_stream(trace: NativeTrace, released: list[bool]) -> None:
    stream = stream_of(trace)
    capsule = stream.__arrow_c_stream__()
    assert type(capsule).__name__ == "PyCapsule"
    del stream
    gc.collect()
    assert released == []
    del capsule
    gc.collect()
    assert released == [True]
    assert source._in_capsules == {}


def test_a_stream_that_was_taken_over_is_left_alone(trace: NativeTrace, released: list[bool]) -> None:
    frame = pl.DataFrame(stream_of(trace))
    gc.collect()
    assert released == [False]
    assert source._in_capsules == {}
    assert frame["rmw_ns"].sum() == 15


def test_a_stream_is_read_once(trace: NativeTrace) -> None:
    stream = stream_of(trace)
    pl.DataFrame(stream)
    with pytest.raises(ValueError, match="read already"):
        pl.DataFrame(stream)


# Questions to the scheduler


def test_split_answers_row_by_row(trace: NativeTrace) -> None:
    frame = trace.split(series(0, 1, 2, 7, dtype=pl.Int32), series(5, 5, 5, 5), series(8, 9, 8, 8))
    assert frame.schema == pl.Schema(SPLIT)
    assert frame["on_cpu_ns"].to_list() == [3, 4, None, None]
    assert frame["wake_up_ns"].to_list() == [0, 0, None, None]
    assert frame["migrations"].to_list() == [0, 1, None, None]


@pytest.mark.parametrize("place", range(3))
def test_a_null_anywhere_is_a_null_row(trace: NativeTrace, place: int) -> None:
    columns: list[list[int | None]] = [[0, 0, 0], [5, 5, 5], [8, 8, 8]]
    columns[place][1] = None
    kinds = (pl.Int32, pl.Int64, pl.Int64)
    thread, start, end = (series(*values, dtype=kind) for values, kind in zip(columns, kinds, strict=True))
    assert trace.split(thread, start, end).null_count().row(0) == (1,) * 5
    assert trace.split(thread, start, end)["on_cpu_ns"].to_list() == [3, None, 3]
    assert trace.holds(thread, start, end)["interval"].to_list() == [0, 2]


def test_holds_name_the_stretches_of_the_caller(trace: NativeTrace) -> None:
    frame = trace.holds(series(None, 0, 9, 1, dtype=pl.Int32), series(0, 10, 0, 20), series(1, 13, 1, 24))
    assert frame.to_dicts() == [
        {"interval": 1, "state": "woken", "cpu": 0, "holder": 0, "held_ns": 3},
        {"interval": 3, "state": "woken", "cpu": 1, "holder": None, "held_ns": 4},
    ]
    assert frame.schema["state"] == pl.Enum(THREAD_STATE)
    assert frame.schema["interval"] == pl.UInt32


def test_series_may_have_other_integers_and_several_chunks(trace: NativeTrace) -> None:
    thread = pl.concat([pl.Series([0], dtype=pl.UInt32), pl.Series([1], dtype=pl.UInt32)], rechunk=False)
    start = pl.concat([pl.Series([1], dtype=pl.Int16), pl.Series([2], dtype=pl.Int16)], rechunk=False)
    assert thread.n_chunks() == 2
    assert trace.split(thread, start, series(10, 20))["on_cpu_ns"].to_list() == [9, 18]


def test_slices_of_series_are_read_where_they_begin(trace: NativeTrace) -> None:
    times = series(*range(0, 100, 10))
    thread = series(*[2] * 5, *[0] * 5, dtype=pl.Int32)
    assert trace.split(thread[7:], times[7:], times[:3] + 200)["on_cpu_ns"].to_list() == [130, 130, 130]


def test_columns_without_nulls_are_handed_over_without_a_copy(
    trace: NativeTrace, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, ...]] = []
    split = trace._library.split

    def spy(handle: Handle, *arguments: int) -> Stream:
        asked.append(arguments)
        return split(handle, *arguments)

    monkeypatch.setattr(trace._library, "split", spy)
    frame = trace.table("callback_instances")
    trace.split(frame["thread"], frame["start_ns"], frame["start_ns"])
    start = address(frame["start_ns"])
    assert asked == [(address(frame["thread"]), start, start, 20)]


def test_no_stretches_are_no_rows(trace: NativeTrace) -> None:
    nothing = series()
    assert trace.split(nothing.cast(pl.Int32), nothing, nothing).schema == pl.Schema(SPLIT)
    assert trace.holds(nothing.cast(pl.Int32), nothing, nothing).height == 0


def test_without_scheduler_events_nothing_is_known(double: Path) -> None:
    with open_trace([Path("silent")]) as trace:
        assert trace.split(series(0, dtype=pl.Int32), series(0), series(1)).null_count().row(0) == (1,) * 5
        assert trace.holds(series(0, dtype=pl.Int32), series(0), series(1)).height == 0


@pytest.mark.parametrize("trace", ["small", "silent"])
def test_stretches_are_asked_for_without_numpy(double: Path, trace: str) -> None:
    script = (
        "import sys, polars as pl; from pathlib import Path; from perflab.trace import open_trace\n"
        f"trace = open_trace([Path('{trace}')]); one = pl.Series([0]); trace.split(one, one, one)\n"
        "sys.exit('numpy' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], cwd=SOURCE, check=True)


def test_columns_of_different_length_are_refused(trace: NativeTrace) -> None:
    with pytest.raises(ValueError, match="1 threads, 2 starts and 1 ends"):
        trace.split(series(0, dtype=pl.Int32), series(0, 1), series(1))


# Opening


def test_a_trace_knows_its_facts(double: Path) -> None:
    with open_trace([Path("x/small")], threads=2) as trace:
        source: Source = trace
        assert source.facts == {"paths": ["small"], "threads": 2, "scheduler": {"events": 5}}


def test_what_cannot_be_opened_is_bad_input_in_one_line(double: Path) -> None:
    with pytest.raises(BadInput, match=r"^a/missing: no such trace$"):
        open_trace([Path("a/missing")])


def test_a_missing_library_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFLAB_NATIVE", str(tmp_path))
    line = f"{LIBRARY} is not in {tmp_path}; build it with `make` in the perflab source folder"
    with pytest.raises(Unavailable, match=f"^{re.escape(line)}$"):
        open_trace([Path("small")])


def test_a_file_that_is_no_library_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / LIBRARY).write_text("nothing")
    monkeypatch.setenv("PERFLAB_NATIVE", str(tmp_path))
    with pytest.raises(Unavailable, match=r"^\S+ cannot be used: .*; build it anew with `make`") as caught:
        open_trace([Path("small")])
    assert "\n" not in str(caught.value)


def test_a_library_of_another_version_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other.c").write_text("void perflab_trace_open(void) {}\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / LIBRARY, tmp_path / "other.c"], check=True, timeout=60)
    monkeypatch.setenv("PERFLAB_NATIVE", str(tmp_path))
    with pytest.raises(Unavailable, match=r"cannot be used: .*perflab_trace_close; build it anew"):
        open_trace([Path("small")])


def test_ctrl_c_does_not_wait_for_the_reader(double: Path) -> None:
    program = "\n".join(
        [
            "import sys",
            "from pathlib import Path",
            "from perflab.trace import open_trace",
            "print('reading', flush=True)",
            "try:",
            "    open_trace([Path('slow')])",
            "except KeyboardInterrupt:",
            "    sys.exit(130)",
        ]
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "reading\n"
        assert process.stdout.readline() == "opened\n"  # the view says so, and then does not return for an hour
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
    finally:
        process.kill()
        process.wait()


def test_the_reader_is_imported_without_polars(double: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from perflab.trace import open_trace; open_trace([Path('small')]);"
        "sys.exit(any(name in sys.modules for name in ('polars', 'numpy')))"
    )
    subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": str(SOURCE)}, check=True, timeout=60
    )


def test_the_tables_are_those_of_the_view() -> None:
    names = re.findall(r'f\("(\w+)", ', (SOURCE / "native/traceview/view.h").read_text())
    assert sorted(names) == sorted(TABLES)
