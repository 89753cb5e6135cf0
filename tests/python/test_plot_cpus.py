"""Pictures of what the monitor saw: known shares in known cells, threads on known CPUs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from made_run import MS, START_NS
from made_watched import records, watched
from support import as_they_are
from test_plot import Page, rows, svg_text

from perflab.cli import main
from perflab.errors import BadInput
from perflab.formats import monitor
from perflab.formats.monitor import MonitorReader
from perflab.report import cpus, draw, draw_html
from perflab.report.figures import Figure


def certain(figure: Figure | None) -> Figure:
    assert figure is not None
    return figure


@pytest.mark.parametrize("tables", [False, True])
def test_cells_hold_the_busy_share_of_each_cpu_and_the_workloads(tables: bool, tmp_path: Path) -> None:
    results = watched(tmp_path / "run", {"": [100]})
    if tables:
        (folder,) = (tmp_path / "run" / "trials").iterdir()
        reader = MonitorReader(folder / "monitor.jsonl")
        reader.refresh()
        monitor.write_tables(folder, reader)
        (folder / "monitor.jsonl").unlink()
    figure = certain(cpus.cores(cpus.watch(results)))
    busy, own = figure.cells
    assert [busy.begin, busy.step] == pytest.approx([0, 0.1])
    first, second = (strip.values for strip in busy.strips)
    assert len(first) == len(second) == 20
    assert first == pytest.approx([25] * 20)
    assert second == pytest.approx([0] * 10 + [100] * 10)
    on_first, on_second = (strip.values for strip in own.strips)
    assert on_first == pytest.approx([10] * 10 + [0] * 10)
    assert on_second == pytest.approx([0] * 10 + [10] * 10)
    assert [name for _, name in figure.y.ticks] == ["CPU 0: 25 % busy, workload 5 %", "CPU 1: 50 % busy, workload 5 %"]


def test_what_was_not_sampled_is_empty_and_not_idle(tmp_path: Path) -> None:
    lines = [line for line in records() if not START_NS + 450 * MS < line["at_ns"] < START_NS + 950 * MS]
    for line in lines:
        if line["at_ns"] > START_NS + 900 * MS and line["type"] == "sample":
            line["cpus"] = line["cpus"][:1]
    busy, _ = certain(cpus.cores(cpus.watch(watched(tmp_path / "run", {"": [100]}, lines)))).cells
    second = busy.strips[1].values
    assert second[:4] == pytest.approx([0] * 4)
    assert second[10:] == (None,) * 10


def test_threads_stand_on_the_cpus_where_they_were_seen_over_those_they_may_use(tmp_path: Path) -> None:
    figure = certain(cpus.affinity(cpus.watch(watched(tmp_path / "run", {"": [100]}))))
    names = [name for _, name in figure.y.ticks]
    assert names == ["talker: 10 %, allowed 0-1", "stress (load): 50 %, allowed 0-1"]
    assert figure.groups == ((0, "seen on CPU 0"), (1, "seen on CPU 1"))
    ground, first, second = figure.spans
    assert [edge for s in first.spans for edge in (s.begin, s.end)] == pytest.approx([0, 1])
    assert [edge for s in second.spans for edge in (s.begin, s.end)] == pytest.approx([1, 2, 0, 2])
    assert [[s.label for s in of.spans] for of in (first, second)] == [["0"], ["1", "1"]]
    assert len(ground.spans) == 4
    talker_on_0, talker_on_1 = first.spans[0], second.spans[0]
    assert talker_on_0.bottom < talker_on_1.top, "a lane for each CPU"


def test_a_pinned_thread_has_the_lane_of_its_cpu_alone(tmp_path: Path) -> None:
    lines = records(allowed="1")
    figure = certain(cpus.affinity(cpus.watch(watched(tmp_path / "run", {"": [100]}, lines))))
    ground = figure.spans[0]
    assert figure.y.ticks[0][1] == "talker: 10 %, allowed 1"
    assert len(ground.spans) == 2


def test_the_trial_in_the_middle_of_each_result_is_shown_and_named(tmp_path: Path) -> None:
    results = watched(tmp_path / "run", {"": [300, 100, 200], "load": [500, 700, 600]})
    for figure in (certain(cpus.cores(cpus.watch(results))), certain(cpus.affinity(cpus.watch(results)))):
        assert any("Shown is trial 3 of baseline, trial 6 of load, in the middle" in note for note in figure.notes)
        assert figure.y.ticks[0][1].startswith("baseline · ")
        assert figure.y.ticks[-1][1].startswith("load · ")


def test_of_many_cpus_the_busiest_are_shown_and_counted(tmp_path: Path) -> None:
    figure = certain(cpus.cores(cpus.watch(watched(tmp_path / "run", {"": [100]}, records(cpus_seen=70)))))
    assert len(figure.y.ticks) == cpus.MAX_ROWS
    assert any(f"the {cpus.MAX_ROWS} busiest of 70 CPUs" in note for note in figure.notes)


def test_of_many_results_the_first_are_shown(tmp_path: Path) -> None:
    results = watched(tmp_path / "run", {f"load{i}": [100] for i in range(cpus.MAX_RESULTS + 1)})
    figure = certain(cpus.cores(cpus.watch(results)))
    assert f"The first {cpus.MAX_RESULTS} of {cpus.MAX_RESULTS + 1} results." in figure.notes


def test_without_a_monitor_nothing_is_drawn_and_that_is_said_where_it_is_named(tmp_path: Path, capsys: Any) -> None:
    results = watched(tmp_path / "run", {"": [100]})
    for path in (tmp_path / "run" / "trials").glob("*/monitor.jsonl"):
        path.unlink()
    assert cpus.cores(cpus.watch(results)) is None
    assert cpus.affinity(cpus.watch(results)) is None
    assert main(["plot", str(tmp_path / "run"), "--kind", "cores,affinity"]) == 2
    assert "cores: no trial was watched by perflab-monitor" in capsys.readouterr().err


def test_a_damaged_file_of_the_monitor_is_one_line(tmp_path: Path) -> None:
    results = watched(tmp_path / "run", {"": [100]})
    for path in (tmp_path / "run" / "trials").glob("*/monitor.jsonl"):
        path.write_text('{"type":"sample"}\n')
    with pytest.raises(BadInput, match=r"monitor\.jsonl:1: not a record of perflab-monitor"):
        cpus.cores(cpus.watch(results))


@pytest.mark.parametrize("background", ["light", "dark"])
def test_they_are_drawn_and_a_page_has_their_cells_and_spans(background: Any, tmp_path: Path) -> None:
    results = watched(tmp_path / "run", {"": [100], "load": [200]})
    figures = [certain(cpus.cores(cpus.watch(results))), certain(cpus.affinity(cpus.watch(results)))]
    for figure in figures:
        texts = svg_text(draw.draw(figure, "svg", background))
        assert {name for _, name in figure.y.ticks} <= set(texts)
        assert draw.draw(figure, "pdf", background).startswith(b"%PDF-")
    cores, affinity = (figure["spec"] for figure in Page(draw_html.page(as_they_are(figures), "t")).figures)
    heat = [(row["share"], row["x"], row["x2"]) for row in rows(cores, "spans") if row["text"].startswith("CPU busy")]
    assert heat[0] == (25, 0, 2)
    assert heat[1:3] == [(0, 0, 1), (100, 1, 2)]
    assert [row["label"] for row in rows(affinity, "spans")].count("0") == 2
