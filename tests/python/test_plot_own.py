"""Pictures of what kinds of workloads and observers say themselves: times over the loops and on one axis, outcomes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from made_run import START_NS, MadeTrial, Stream, arrivals, make_run

from perflab.cli import plot
from perflab.report import histograms, pictures
from perflab.report.draw import draw
from perflab.report.figures import Figure, Series
from perflab.report.latex import pictures as of_paper
from perflab.report.results import results_of
from perflab.report.tables import floors, key_figures
from perflab.report.tables.messages import Of
from perflab.results.figure import Distribution, OwnTimes
from perflab.results.outcome import FAILED, SUCCESS, CountedOutcome
from perflab.results.run import RunData
from perflab.runs.rundata import open_run
from perflab.statistics import histogram as hg

MS = 1_000_000
LATE = {"baseline": 50_000, "load": 2 * MS}  # wake-ups, ns
KERNEL = 10_000  # ns


def loops_of(late_ns: int, lost: set[int]) -> pl.DataFrame:
    """Ten loops of 10 ms, all woken that late; a pong for each that is not lost, 1 ms after the wake-up."""
    rows = []
    for number in range(10):
        due = START_NS + number * 10 * MS
        woken = due + late_ns
        back = None if number in lost else woken + MS
        instants = {"published_ns": woken, "sent_ns": woken, "answered_ns": back, "back_ns": back}
        owner = {"process": "p", "node": "/ping", "timer": "ping", "period_ns": 10 * MS}
        rows.append({**owner, "loop": number, "due_ns": due, "woken_ns": woken, **instants})
    return pl.DataFrame(rows)


def distribution(value: int) -> Distribution:
    return Distribution(count=2000, min=value, mean=value, p50=value, p90=value, p99=value, max=value)


@pytest.fixture
def run(tmp_path: Path) -> RunData:
    """Two undisturbed trials, and two under load of which one stalled and lost loops 3 and 4."""
    stream = Stream("talker", "chat", "listener", 1, 100, arrivals([100] * 100, 1))
    trials = [MadeTrial([stream], conditions=["load"] * loaded) for loaded in (False, True, False, True)]
    made = open_run(make_run(tmp_path / "run", {"mouth": ["talker"], "ear": ["listener"]}, trials))
    own = {"unaffected": SUCCESS, "stalled": FAILED}
    results = []
    for result in made.summary.results:
        late = LATE[result.label]
        names = ["unaffected", "unaffected" if result.label == "baseline" else "stalled"]
        counted = [CountedOutcome(name=n, words=n, of=own[n], trials=names.count(n)) for n in dict.fromkeys(names)]
        failed = names.count("stalled")
        times = OwnTimes(words="late", drawn=True, floor="cyclictest", of_ns=distribution(late))
        others = {"ping_pong": OwnTimes(words="M3", drawn=True), "ping_call": OwnTimes(words="a call")}
        results.append(
            replace(
                result,
                outcomes=replace(result.outcomes, success=2 - failed, failed=failed, own=tuple(counted)),
                key_figures={"wakeup_late": times, **others},
                observed_ns={"cyclictest": distribution(KERNEL)},
            )
        )

    def measured(trial: Any) -> Any:
        late = LATE[trial.label]
        times = {"wakeup_late": hg.from_values([late] * 100), "cyclictest": hg.from_values([KERNEL] * 1000)}
        lost = {3, 4} if trial.number == 4 else set()
        return replace(trial, read_times=lambda: times, read_loops=lambda: loops_of(late, lost))

    summary = replace(made.summary, results=tuple(results))
    return replace(made, summary=summary, trials=tuple(map(measured, made.trials)))


def figure(run: RunData, name: str) -> Figure:
    return next(f for f in pictures.of_report([run]).figures if f.name == name)


def only(of: Figure, **members: Any) -> list[Series]:
    return [s for s in of.series if all(getattr(s, name) == value for name, value in members.items())]


def test_times_of_loops_stand_over_their_number_what_was_disturbed_beside_what_was_not(run: RunData) -> None:
    drawn = figure(run, "wakeup_late_loops")
    assert [name for _, name in drawn.groups] == ["baseline", "load"]
    assert not drawn.panels, "there is a single variant"
    for group, label in enumerate(("baseline", "load")):
        lines = only(drawn, group=group, shape="line")
        assert len(lines) == 2
        assert {line.x for line in lines} == {tuple(map(float, range(10)))}
        per = 1e3 if "µs" in drawn.y.title else 1e6
        assert [y for line in lines for y in line.y] == pytest.approx([LATE[label] / per] * 20)


def test_loops_without_the_time_break_the_line_and_are_marked(run: RunData) -> None:
    drawn = figure(run, "ping_pong_loops")
    (marked,) = only(drawn, sign="lost")
    assert (marked.group, marked.x, marked.lane) == (1, (3.0, 4.0), 1)
    broken = [line for line in only(drawn, group=1, shape="line") if None in line.y]
    assert [line.y.index(None) for line in broken] == [3]


def test_a_loop_between_two_without_the_time_is_a_point_as_no_line_shows_it(run: RunData) -> None:
    trials = [replace(t, read_loops=lambda: loops_of(LATE["load"], {3, 5})) if t.number == 4 else t for t in run.trials]
    drawn = figure(replace(run, trials=tuple(trials)), "ping_pong_loops")
    (alone,) = only(drawn, sign="dot")
    assert (alone.group, alone.x) == (1, (4.0,))
    assert not only(figure(run, "ping_pong_loops"), sign="dot")


def test_each_variant_has_a_small_picture_and_all_have_one_legend_and_the_same_axes(run: RunData) -> None:
    placed = [replace(t, factors={"workload.pattern": "2e" if t.number > 2 else "1e1n"}) for t in run.trials]
    found = [
        replace(r, factors={"workload.pattern": level}, trials_detail=r.trials_detail[n : n + 1])
        for n, level in enumerate(("1e1n", "2e"))
        for r in run.summary.results
    ]
    whole = figure(
        replace(run, trials=tuple(placed), summary=replace(run.summary, results=tuple(found))), "ping_pong_loops"
    )
    assert [panel.title for panel in whole.panels] == ["pattern=1e1n", "pattern=2e"]
    assert {(panel.x, panel.y) for panel in whole.panels} == {(whole.x, whole.y)}
    assert [name for _, name in whole.groups] == ["baseline", "load"]
    assert whole.panels[1].subtitle == "without it: baseline 0 %, load 20 %"
    assert all(draw(whole, "svg").count(f">{words}<".encode()) == 1 for words in ("pattern=1e1n", "pattern=2e", "load"))


def test_loops_of_any_workload_are_drawn_where_they_were_measured(run: RunData) -> None:
    bare = replace(run.summary, results=tuple(replace(r, key_figures={}) for r in run.summary.results))
    assert not [f for f in pictures.of_report([replace(run, summary=bare)]).figures if f.name.endswith("_loops")]
    manifest = replace(run.manifest, settings=replace(run.manifest.settings, measure=("loops",)))
    drawn = pictures.of_report([replace(run, summary=bare, manifest=manifest)]).figures
    assert [f.name for f in drawn if f.name.endswith("_loops")] == ["wakeup_late_loops", "ping_pong_loops"]


def test_several_times_stand_on_one_axis_with_their_floor(run: RunData) -> None:
    drawn = figure(run, "wakeup_late_cyclictest_histograms")
    assert [panel.title for panel in drawn.panels] == ["baseline", "load"]
    assert [name.partition(":")[0] for _, name in drawn.groups] == ["wakeup late", "cyclictest"]
    for panel in drawn.panels:
        medians = {s.group: s.x[0] for s in panel.series if s.sign == "full"}
        assert medians[1] == pytest.approx(KERNEL, rel=1e-3)
        assert medians[0] == pytest.approx(LATE[panel.title], rel=1e-3)
        (line,) = only(panel, group=1, shape="line")
        assert max(y for y in line.y if y is not None) == 100.0


def test_a_histogram_holds_every_value_once() -> None:
    values = [3, 999, 1_000, 5_500, 5_500, 10**9]
    edges, counts = histograms._stretches(hg.from_values(values))
    assert counts.sum() == len(values)
    assert edges[0] <= min(values)
    assert max(values) < edges[-1]


def test_outcomes_are_shares_with_intervals_coloured_by_outcome(run: RunData) -> None:
    drawn = figure(run, "outcomes")
    assert [name for _, name in drawn.groups] == ["unaffected", "stalled"]
    bars = {(spans.name, span.begin, span.end, span.label) for spans in drawn.spans for span in spans.spans}
    assert bars == {("unaffected", 0, 100, "2/2"), ("unaffected", 0, 50, "1/2"), ("stalled", 50, 100, "1/2")}
    (stalled,) = only(drawn, group=1, shape="whiskers")
    assert stalled.x == (50.0,)
    assert (*stalled.low, *stalled.high) == pytest.approx((9.45, 90.55), abs=0.1)


def test_outcomes_are_those_of_the_results_that_were_chosen(run: RunData) -> None:
    chosen = [result for result in results_of([run]) if result.label == "load"]
    (narrowed,) = plot._narrowed([run], chosen)
    drawn = figure(narrowed, "outcomes")
    assert [span.label for spans in drawn.spans for span in spans.spans] == ["1/2", "1/2"]


def test_the_note_about_results_that_are_not_drawn_is_of_pictures_that_leave_some_out(run: RunData) -> None:
    results = results_of([run]) * pictures.MAX_RESULTS
    assert "results are drawn" in " ".join(pictures.build(results, ["percentiles"], ["latency"], runs=[run]).notes)
    assert pictures.build(results, ["outcomes"], ["latency"], runs=[run]).notes == ()


def test_the_paper_has_the_same_pictures(run: RunData) -> None:
    names = [f.name for f in pictures.of_report([run]).figures]
    assert list(of_paper([run])) == names
    assert {"outcomes", "wakeup_late_loops", "ping_pong_loops", "wakeup_late_cyclictest_histograms"} <= set(names)


def test_the_table_against_the_floor_has_ratios(run: RunData) -> None:
    (table,) = floors.tables([Of(result, result.label) for result in run.summary.results])
    rows = [{column.name: column.cell(row).value for column in table.columns} for row in table.rows]
    assert [(row["result"], row["times_p50"], row["floor_p50"]) for row in rows] == [
        (label, LATE[label], KERNEL) for label in ("baseline", "load")
    ]


def test_many_figures_are_one_table_on_a_terminal_with_those_that_are_drawn(run: RunData) -> None:
    more = {f"time_{n}": OwnTimes(words="more") for n in range(4)}
    results = [replace(r, key_figures={**r.key_figures, **more}) for r in run.summary.results]
    (table,) = key_figures.in_short([Of(result, result.label) for result in results])
    assert [c.name for c in table.columns if c.group == "wakeup late"] == [
        f"wakeup_late.{statistic}" for statistic in ("p50", "p99", "max")
    ]
    assert "ping_call" in table.notes[-1]
    assert len(table.rows) == 2
    few = key_figures.in_short([Of(result, result.label) for result in run.summary.results])
    assert len(few) == 3, "few stay tables of their own"
