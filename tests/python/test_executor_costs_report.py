"""What people see of the costs of executors: in a terminal, on the page, in papers, as a picture."""

from __future__ import annotations

import io
import itertools
from pathlib import Path

import made_costs
import pytest
from made_experiment import write_run
from rich.console import Console

from perflab import page as pages
from perflab.report import executor_costs, runs
from perflab.report.draw import draw
from perflab.report.latex.tables import of_costs
from perflab.report.run_page import page, tables
from perflab.report.table import print_declared
from perflab.report.tables import costs
from perflab.results.summary import read


def printed(summary: dict[str, object], width: int) -> str:
    out = Console(file=io.StringIO(), width=width, no_color=True, highlight=False)
    for table in costs.tables(read(summary)):
        print_declared(out, table)
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue()


def test_a_wide_terminal_has_all_that_is_known() -> None:
    text = printed(made_costs.summary(), 200)
    head, row = (next(line for line in text.splitlines() if word in line) for word in ("to middleware", "single_thr"))
    assert "2.00x [" in row
    assert "201 µs" in row
    assert "50.0 %" in row
    assert "cycles/message" not in head  # nothing was counted, which is said below
    assert "Cycles are not counted: this machine has no such counter." in text
    assert "get_next_ready_executable" in text
    assert "of thread" in text
    families = text[text.index(costs.FAMILIES_TITLE) :]
    assert "application" not in families.split("\n")[1]  # nobody has a sample of it


def test_80_columns_keep_cost_and_ratio_and_wrap_nothing() -> None:
    text = printed(made_costs.summary(), 80)
    assert all(len(line) <= 80 for line in text.splitlines())
    row = next(line for line in text.splitlines() if "single_threaded" in line)
    assert "201 µs" in row
    assert "2.00x" in row


@pytest.mark.parametrize("executors", [["events"], [None]])
def test_nothing_is_printed_of_a_run_with_one_executor(executors: list[str | None]) -> None:
    results = [made_costs.of_executor(executor, [10.0, 11.0]) for executor in executors]
    summary = made_costs.summary(observed=False, results=results)
    assert summary["executor_costs"] is not None
    assert printed(summary, 160) == ""
    assert executor_costs.figure(read(summary)) is None
    assert list(of_costs(read(summary))) == []


def test_a_single_executor_is_shown_where_the_workload_has_cases() -> None:
    cases = [made_costs.of_executor("inline", [10.0], factors={"workload.case": c}) for c in ("ros", "middleware")]
    text = printed(made_costs.summary(observed=False, results=cases), 160)
    assert "case=ros, inline" in text
    assert "1.00x" in text


def test_why_there_is_no_ratio_is_said() -> None:
    results = [made_costs.of_executor(e, [10.0]) for e in ("events", "single_threaded")]
    text = printed(made_costs.summary(observed=False, results=results), 160)
    assert "No ratio to the middleware: no treatment on cyclonedds runs without an executor" in text
    assert "to middleware" not in text.splitlines()[1]


def test_rows_without_a_ratio_and_ratios_of_cpu_use_are_named() -> None:
    made = [
        made_costs.of_executor("inline", [10.0], factors={"workload.case": "middleware"}, middleware=name)
        for name in ("cyclonedds", "rclcpp/rmw_cyclonedds_cpp")
    ]
    timers = {"trials_detail": [made_costs.nothing_sent(1, 2.0)], "factors": {"workload.case": "nopub"}}
    made.append(made_costs.of_executor("single_threaded", [], **timers))
    made.append(made_costs.of_executor("inline", [5.0], factors={"workload.case": "plain"}, middleware="direct"))
    lines = printed(made_costs.summary(observed=False, results=made), 160).splitlines()
    assert "The ratio of case=nopub, single_threaded is that of CPU use: no messages are delivered there." in lines
    because = "it runs on no middleware, but the case middleware ran on several"
    assert f"No ratio to the middleware of case=plain, inline: {because}." in lines


def test_middlewares_that_tell_rows_apart_are_shown_however_narrow_it_is() -> None:
    made = [made_costs.of_executor(e, [10.0], middleware=m) for m in ("cyclonedds", "rclcpp/rmw_cyclonedds_cpp")
            for e in ("inline", "single_threaded")]  # fmt: skip
    text = printed(made_costs.summary(observed=False, results=made), 80)
    assert len([line for line in text.splitlines() if "rclcpp/rmw_cyclonedds_cpp" in line]) == 2
    assert "to middleware" in text


def test_the_picture_stacks_families_where_all_were_profiled_and_roles_elsewhere() -> None:
    profiled = executor_costs.figure(read(made_costs.summary()))
    assert profiled is not None
    assert profiled.title == "CPU time per message, by families of functions"
    # Bars are as long as the CPU time of a message: its parts touch and end there.
    unit = 1000.0
    ends = sorted((span.begin, span.end) for spans in profiled.spans for span in spans.spans if span.top < 0.5)
    assert ends[0][0] == 0.0
    assert all(one[1] == pytest.approx(other[0]) for one, other in itertools.pairwise(ends))
    assert ends[-1][1] == pytest.approx(100.35e3 / unit, rel=1e-3)
    by_role = executor_costs.figure(read(made_costs.summary(observed=False)))
    assert by_role is not None
    assert by_role.title == "CPU time per message, by role of threads"
    assert [name for _, name in by_role.groups] == ["executor's threads", "middleware's threads", "perflab's threads"]
    assert draw(profiled, "png").startswith(b"\x89PNG")


def test_the_picture_of_timers_is_of_their_cpu_time() -> None:
    results = [
        made_costs.of_executor(e, [], trials_detail=[made_costs.nothing_sent(1, cpu)])
        for e, cpu in (("inline", 2.0), ("events", 5.0))
    ]
    figure = executor_costs.figure(read(made_costs.summary(observed=False, results=results)))
    assert figure is not None
    assert figure.x.title == "CPU time (% of one CPU)"
    assert max(span.end for spans in figure.spans for span in spans.spans) == pytest.approx(5.0)


def test_the_page_has_a_section_with_tables_and_the_picture(tmp_path: Path) -> None:
    write_run(tmp_path / "run", made_costs.summary())
    opened = runs.open_all([str(tmp_path / "run")])
    section = pages.part("sections.html", "blocks", list(tables.costs(opened)))
    for words in (costs.TITLE, costs.FAMILIES_TITLE, costs.PHASES_TITLE):
        assert words in section
    assert "2.00x" in section
    assert "cycles/message" not in section
    whole = page.report(opened, still=True)
    assert not whole.notes
    assert '<section id="executors"' in whole.page
    assert "CPU time per message, by families of functions" in whole.page


def test_papers_have_the_tables() -> None:
    written = list(of_costs(read(made_costs.summary())))
    assert [table.name for table in written] == ["executor_costs", "executor_families", "executor_phases"]
    text = written[0].floats("tab:x")
    assert r"single\_threaded" in text
    assert r"(\ensuremath{\times})" in text
    assert "2.00" in text
