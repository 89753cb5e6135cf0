"""Folded stacks: every ns that a thread ran is in one stack, and in no other."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from made_trace import MadeTrace
from opened import needs_library, opened
from reference_traces import reference_trace

from perflab.errors import BadInput
from perflab.trace import open_trace
from perflab.trace.export import export_file
from perflab.trace.source import NativeTrace

LINE = re.compile(r"[^;\x00-\x1f]+(;[^;\x00-\x1f]+)* [1-9][0-9]*")


def folded(trace: NativeTrace, folder: Path, *, wall: bool = False) -> dict[str, int]:
    """Stacks and their weights, as the readers of the format take a line apart: at its last space."""
    path = folder / "made.folded"
    export_file(trace, path, "folded", force=True, wall=wall)
    lines = path.read_text().splitlines()
    assert all(LINE.fullmatch(line) for line in lines)
    assert lines == sorted(lines, key=str.encode)
    found = {line.rpartition(" ")[0]: int(line.rpartition(" ")[2]) for line in lines}
    assert len(found) == len(lines)
    return found


def made() -> MadeTrace:
    """A timer's callback that is preempted once and has another within it, in an executor that waits on the CPU."""
    trace = MadeTrace("jazzy")
    talker = trace.process("talker", pid=10)
    outer = talker.timer(talker.node("talker"), period_ns=100_000_000)
    inner = talker.timer(talker.node("inner"), period_ns=1_000_000)
    main, kernel = talker.main, trace.kernel("lttng")
    kernel.switch(900, cpu=0, prev=0, next=main)
    main.get_next_ready(1_000)
    main.function(0x5500_0001, 1_010, 2_050)  # what called the executor's functions
    main.execute(1_100, outer)
    main.at(1_200).callback_start(callback=outer.callback, is_intra_process=0)
    main.function(0x5500_0002, 1_250, 1_900)
    main.callback(inner, 1_300, 1_400)
    kernel.switch(1_500, cpu=0, prev=main, next=(99, "a; other"), prev_state="preempted")
    kernel.switch(1_800, cpu=0, prev=(99, "a; other"), next=main, prev_state="sleeping")
    main.at(2_000).callback_end(callback=outer.callback)
    main.wait_for_work(2_010)
    kernel.switch(2_100, cpu=0, prev=main, next=0)
    return trace


def test_on_a_cpu_by_phase_callback_and_function(tmp_path: Path) -> None:
    trace = opened(made(), tmp_path / "trace")
    top, call = "talker (10);talker (10)", "talker (10);talker (10);execute;/talker timer 100 ms"
    assert folded(trace, tmp_path) == {
        f"{top};[other]": 100 + 50,  # 900 to 1000, 2050 to 2100: wait_for_work did not end
        f"{top};get_next_ready;[executor]": 10,
        f"{top};get_next_ready;[executor];0x55000001": 90,
        f"{top};execute;[executor];0x55000001": 110,  # 1100 to 1200, 2000 to 2010
        call: 150,  # 1200 to 1250, 1900 to 2000
        f"{call};0x55000002": 50 + 100 + 100,  # 1250 to 1300, 1400 to 1500, 1800 to 1900: not what another had the CPU
        f"{call};0x55000002;/inner timer 1 ms": 100,
        f"{top};[other];0x55000001": 40,  # 2010 to 2050
        "[no process known];a, other (99);[other]": 300,
    }


def test_wall_time_says_so_in_the_process(tmp_path: Path) -> None:
    found = folded(opened(made(), tmp_path / "trace"), tmp_path, wall=True)
    assert {stack.split(";")[0] for stack in found} == {"talker (10) [wall time]"}
    call = "talker (10) [wall time];talker (10);execute;/talker timer 100 ms"
    assert found[f"{call};0x55000002"] == 50 + 500  # with what it was preempted for
    (thread,) = opened(made(), tmp_path / "again").table("threads").filter(pl.col("tid") == 10).iter_rows(named=True)
    assert sum(found.values()) == thread["last_ns"] - thread["first_ns"]


def test_without_scheduler_events_nobody_knows_what_was_on_a_cpu(tmp_path: Path) -> None:
    trace = MadeTrace("jazzy")
    talker = trace.process("talker", pid=10)
    timer = talker.timer(talker.node("talker"), period_ns=100_000_000)
    talker.main.callback(timer, 1_000, 1_500)
    source = opened(trace, tmp_path / "trace")
    with pytest.raises(BadInput, match=r"no scheduler events.*weigh wall time with --wall"):
        export_file(source, tmp_path / "x", "folded")
    assert not (tmp_path / "x").exists()
    assert folded(source, tmp_path, wall=True)["talker (10) [wall time];talker (10);/talker timer 100 ms"] == 500


def test_a_callback_without_an_end_is_in_no_stack(tmp_path: Path) -> None:
    trace = MadeTrace("jazzy")
    talker = trace.process("talker", pid=10)
    timer = talker.timer(talker.node("talker"), period_ns=100_000_000)
    kernel = trace.kernel("lttng")
    kernel.switch(900, cpu=0, prev=0, next=talker.main)
    talker.main.callback(timer, 1_000, None)
    kernel.switch(2_100, cpu=0, prev=talker.main, next=0)
    source = opened(trace, tmp_path / "trace")
    assert folded(source, tmp_path) == {"talker (10);talker (10);[other]": 1_200}
    assert export_file(source, tmp_path / "y", "folded")["without_end"] == 1


@pytest.mark.parametrize(
    "name", ["jazzy_small", "jazzy_small_ipc", "kernel_16_cores_rt", "ros2_fastrtps_humble_fork", "lttng_ust_plus_perf"]
)
def test_the_stacks_of_a_thread_add_up_to_what_it_ran(tmp_path: Path, name: str) -> None:
    needs_library()
    trace = open_trace([reference_trace(name)])
    states = trace.table("thread_states")
    if states.height == 0:
        with pytest.raises(BadInput, match="no scheduler events"):
            folded(trace, tmp_path)
        return
    threads = trace.table("threads").with_row_index("thread").select(pl.col("thread").cast(pl.Int32), "tid")
    running = states.filter(pl.col("state") == "running").join(threads, on="thread")
    expected: Counter[int] = Counter()
    for tid, begin, end in running.select("tid", "start_ns", "end_ns").iter_rows():
        expected[tid] += end - begin
    found: Counter[int] = Counter()
    for stack, ns in folded(trace, tmp_path).items():
        number = re.search(r"\((\d+)\)$", stack.split(";")[1])
        assert number is not None
        found[int(number[1])] += ns
    assert found == expected


def test_callbacks_have_the_time_on_a_cpu_that_answers_give_them(tmp_path: Path) -> None:
    needs_library()
    trace = open_trace([reference_trace("jazzy_small")])
    instances = trace.table("callback_instances").filter(pl.col("end_ns").is_not_null())
    split = trace.split(instances["thread"], instances["start_ns"], instances["end_ns"])
    known = instances.select("callback").hstack(split.select("on_cpu_ns")).with_columns(
        known=pl.col("on_cpu_ns").is_not_null().all().over("callback")
    )  # fmt: skip
    from perflab.trace import names

    labels = names.callbacks(trace)["label"].to_list()
    found: Counter[str] = Counter()
    for stack, ns in folded(trace, tmp_path).items():
        for frame in set(stack.split(";")[2:]):
            found[frame] += ns
    whole = known.filter("known").group_by("callback").agg(pl.col("on_cpu_ns").sum()).rows()
    assert len(whole) > 10
    for callback, ns in whole:
        assert found[labels[callback]] == ns


def test_the_flame_graph_has_the_same_stacks(tmp_path: Path) -> None:
    trace = opened(made(), tmp_path / "trace")
    export_file(trace, tmp_path / "made.html", "flamegraph")
    page = (tmp_path / "made.html").read_text()
    data = json.loads(page.partition('type="application/json"')[2].partition(">")[2].partition("</script>")[0])
    assert sum(data["own"]) == sum(folded(trace, tmp_path).values())
    families = {name: data["families"][family] for name, family in zip(data["names"], data["family"], strict=True)}
    assert families["/talker timer 100 ms"] == "callbacks"
    assert families["execute"] == families["[executor]"] == "the executor's phases"
    assert families["0x55000002"] == "functions"
    assert families["[other]"] == "outside of executors"
    assert families["talker (10)"] == ""
    assert "1 phase, callback or call whose end was not seen: in no stack" in page
