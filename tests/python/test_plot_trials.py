"""The picture of each trial: known places of its marks, and what is left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from made_run import MadeTrial, Stream, arrivals, make_run
from test_plot import svg_text

from perflab.report.draw import draw
from perflab.report.figures import Figure, Series
from perflab.report.per_trial import MAX_ROWS, per_trial
from perflab.report.results import results_of
from perflab.runs.rundata import open_run


def measured(us: float, condition: str = "", **members: Any) -> MadeTrial:
    """A trial of 1000 messages with one latency."""
    stream = Stream("talker", "chat", "listener", 1, 1000, arrivals([us] * 1000, 1))
    return MadeTrial([stream], conditions=[condition] if condition else [], **members)


def drawn(path: Path, trials: list[MadeTrial], name: str = "latency.p99", **summary: Any) -> Figure | None:
    make_run(path, {"mouth": ["talker"], "ear": ["listener"]}, trials)
    if summary:
        document = json.loads((path / "summary.json").read_text())
        for result in document["results"]:
            result["intervals"] = summary.get("_".join(result["conditions"]) or "baseline", {})
        (path / "summary.json").write_text(json.dumps(document))
    return per_trial(results_of([open_run(path)]), name)


def certain(figure: Figure | None) -> Figure:
    assert figure is not None
    return figure


def only(figure: Figure, **members: Any) -> Series:
    (found,) = [s for s in figure.series if all(getattr(s, name) == value for name, value in members.items())]
    return found


def values(series: Series) -> list[float]:
    return [round(x) for x in series.x if x is not None]


def test_each_trial_is_a_mark_in_the_row_of_its_result_in_their_order(tmp_path: Path) -> None:
    trials = [measured(100), measured(200, "load"), measured(130), measured(260, "load"), measured(110)]
    figure = certain(drawn(tmp_path / "run", trials))
    assert [name.partition(":")[0] for _, name in figure.y.ticks] == ["baseline", "load"]
    base, load = only(figure, shape="points", group=0), only(figure, shape="points", group=1)
    assert values(base) == [100, 130, 110]
    assert values(load) == [200, 260]
    for row, series in enumerate((base, load)):
        places = [y for y in series.y if y is not None]
        assert places == sorted(places), "from top to bottom"
        assert all(row - 0.5 < y < row + 0.5 for y in places)
    assert figure.x.scale == "log"
    assert figure.x.title == "latency p99 (µs)"
    assert figure.subtitle == "made: 5 trials of 2 s"


def test_the_median_has_its_interval_and_is_printed(tmp_path: Path) -> None:
    interval = {"latency.p99": {"value": 110e3, "low": 100e3, "high": 130e3, "level": 0.95, "n": 3, "unit": "ns"}}
    trials = [measured(100), measured(200, "load"), measured(130), measured(260, "load"), measured(110)]
    figure = certain(drawn(tmp_path / "run", trials, baseline=interval))
    bar = only(figure, shape="whiskers", group=0)
    assert (bar.x, bar.low, bar.high, bar.across) == ((110,), (100,), (130,), True)
    assert figure.y.ticks[0][1] == "baseline: 110 µs [100 µs, 130 µs], n 3"
    bare = only(figure, shape="whiskers", group=1)
    assert values(bare) == [230]
    assert (bare.low, bare.high) == ((None,), (None,))
    assert "Too few trials for an interval: load (2)." in figure.notes
    assert "its 95 % interval" in [key.label for key in figure.keys]


def test_a_trial_that_does_not_count_is_a_cross_and_not_in_the_median(tmp_path: Path) -> None:
    figure = certain(drawn(tmp_path / "run", [measured(100), measured(900, outcome="invalid"), measured(120)]))
    cross = only(figure, sign="cross")
    assert values(cross) == [900]
    assert values(only(figure, sign="full")) == [100, 120]
    assert values(only(figure, shape="whiskers")) == [110]
    assert any("does not count" in key.label for key in figure.keys)


def test_a_trial_without_the_metric_is_counted_in_a_note(tmp_path: Path) -> None:
    few = MadeTrial([Stream("talker", "chat", "listener", 10, 30, arrivals([100] * 30))])
    figure = certain(drawn(tmp_path / "run", [measured(100), few, measured(120)]))
    assert any(note.endswith("1 trial has no latency p99.") for note in figure.notes)
    assert values(only(figure, shape="points")) == [100, 120]


@pytest.mark.parametrize("trials", [[measured(100)], [measured(100), measured(200, "load")]])
def test_single_trials_have_no_such_picture(trials: list[MadeTrial], tmp_path: Path) -> None:
    assert drawn(tmp_path / "run", trials) is None


def test_of_very_many_results_the_first_are_drawn_and_that_is_said(tmp_path: Path) -> None:
    trials = [measured(100 + k, f"load{k:02d}") for k in range(MAX_ROWS + 2) for _ in range(2)]
    figure = certain(drawn(tmp_path / "run", trials))
    assert len(figure.y.ticks) == MAX_ROWS
    assert f"The first {MAX_ROWS} of {MAX_ROWS + 2} results, the worst among them." in figure.notes
    assert figure.y.ticks[-1][1].startswith(f"load{MAX_ROWS + 1}: 141 µs"), "the slowest, though it comes last"


def test_a_metric_that_is_no_time_has_a_linear_axis_from_zero(tmp_path: Path) -> None:
    figure = certain(drawn(tmp_path / "run", [measured(100, cpu_ms=50), measured(100, cpu_ms=100)], "cpu_percent"))
    assert figure.x.scale == "linear"
    assert figure.x.low == 0
    assert figure.x.title == "CPU (%)"
    assert values(only(figure, shape="points")) == [20, 40]


def test_it_is_drawn_with_its_rows(tmp_path: Path) -> None:
    figure = certain(drawn(tmp_path / "run", [measured(100), measured(120), measured(300, "load")]))
    texts = svg_text(draw(figure, "svg"))
    assert {name for _, name in figure.y.ticks} <= set(texts)
