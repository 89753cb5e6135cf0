"""Objectives: known answers of totals, of what they are beside a baseline, and of how much hangs on the weights."""

from __future__ import annotations

import io
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_experiment import read_results, result, trial
from rich.console import Console

from perflab import catalog, models
from perflab.report.table import print_declared
from perflab.report.tables import objectives as tables
from perflab.report.tables.messages import Of
from perflab.results.objective import PathResult
from perflab.results.trial import Result
from perflab.statistics import histogram as hg
from perflab.statistics import objectives
from perflab.statistics.objectives import beside, of_times, resolved, total, with_objectives
from perflab.trace import paths_named
from perflab.workload import manipulation

MS = 1_000_000


def path(name: str, weight: float | None = 1.0, **scores: float | None) -> dict[str, Any]:
    made = PathResult(name=name, weight=weight, deadline_ns=None if weight is None else MS, scores=scores)
    return dict(models.as_json(made))


def results(baseline: list[dict[str, Any]], *loaded: list[dict[str, Any]]) -> tuple[Result, ...]:
    load = {"conditions": ["cpu_load"], "treatment": "cpu_load", "condition_parameters": {"cpu_load": {"load": 80}}}
    made = result([trial(1, paths=baseline)]), result([trial(n, paths=p) for n, p in enumerate(loaded, 2)], **load)
    return with_objectives(read_results(made))


# Beside a baseline ----------------------------------------------------------------------------------------------------


def test_where_every_path_is_worse_no_weights_change_that() -> None:
    found = beside(("a", "b"), (0.2, 0.9), (0.1, 0.3), (1.0, 3.0))
    assert found["ratio"] == pytest.approx((0.2 + 2.7) / (0.1 + 0.9))
    assert (found["least"], found["most"]) == pytest.approx((2.0, 3.0))
    assert found["low"] == pytest.approx(2.0)  # b left out
    assert found["high"] == pytest.approx(3.0)  # a left out
    assert (found["verdict"], found["hangs_on_weights"], found["turned_by"]) == ("worse", False, ())


def test_a_verdict_that_hangs_on_the_weights_says_which_change_turns_it() -> None:
    # a is worse by 0.2, b better by 0.15: with equal weights worse, with that of a halved better.
    found = beside(("a", "b"), (0.4, 0.15), (0.2, 0.3), (1.0, 1.0))
    assert (found["verdict"], found["hangs_on_weights"]) == ("worse", True)
    assert found["turned_by"] == ("a -50 %", "a left out", "b +50 %")
    assert (found["least"], found["most"]) == pytest.approx((0.5, 2.0))


def test_no_weights_go_beyond_the_ratios_of_single_paths() -> None:
    generator = random.Random(7)
    for _ in range(200):
        n = generator.randint(1, 6)
        scores, before, weights = ([generator.uniform(0.01, 2) for _ in range(n)] for _ in range(3))
        found = beside([str(i) for i in range(n)], scores, before, weights)
        for _ in range(20):
            others = [generator.uniform(0.001, 10) for _ in range(n)]
            ratio = (total(scores, others) or 0) / (total(before, others) or 1)
            assert found["least"] - 1e-9 <= ratio <= found["most"] + 1e-9
            worse = ratio > 1
            assert found["hangs_on_weights"] or worse == (found["verdict"] == "worse")


def test_beside_nothing_there_is_no_ratio_and_no_bound() -> None:
    found = beside(("a", "b"), (0.1, 0.0), (0.0, 0.0), (1.0, 1.0))
    assert (found["ratio"], found["verdict"], found["hangs_on_weights"]) == (None, "worse", False)
    assert (found["least"], found["most"]) == (None, None)
    same = beside(("a",), (0.0,), (0.0,), (1.0,))
    assert (same["verdict"], same["ratio"], same["hangs_on_weights"]) == ("same", None, False)


# Results --------------------------------------------------------------------------------------------------------------


def test_scores_are_medians_over_trials_beside_the_baseline_of_the_place() -> None:
    baseline, loaded = results(
        [path("a", 3.0, misses=0.1, median=0.5), path("b", misses=0.0, median=None), path("watched", None)],
        [path("a", 3.0, misses=0.1, median=1.0), path("b", misses=0.0, median=0.1)],
        [path("a", 3.0, misses=0.3, median=1.0), path("b", misses=0.2, median=0.1)],
        [path("a", 3.0, misses=0.2, median=1.0), path("b", misses=0.1, median=0.1)],
    )
    assert baseline.objectives["misses"].total == pytest.approx(0.075)
    assert baseline.objectives["misses"].verdict is None
    assert set(baseline.objectives["misses"].weights) == {"a", "b"}
    found = loaded.objectives["misses"]
    assert (found.scores, found.trials) == ({"a": 0.2, "b": 0.1}, 3)
    assert found.total == pytest.approx((0.6 + 0.1) / 4)
    assert found.baseline_total == pytest.approx(0.075)
    assert found.verdict == "worse"
    assert found.most is None  # b missed nothing in the baseline
    assert baseline.objectives["median"].total is None
    assert baseline.objectives["median"].reason == "b: median needs 2 instances that arrived"
    assert loaded.objectives["median"].total == pytest.approx(3.1 / 4)
    assert loaded.objectives["median"].verdict is None
    assert "baseline: b: median needs" in str(loaded.objectives["median"].reason)


def test_trials_without_named_paths_have_no_objectives_and_no_tables() -> None:
    plain = with_objectives(read_results([result([trial(1)])]))
    assert plain[0].objectives == {}
    assert tables.tables([Of(plain[0], "plain")]) == []


def test_tables_say_totals_ranges_and_what_turns_the_verdict() -> None:
    found = results([path("a", misses=0.2), path("b", misses=0.3)], [path("a", misses=0.4), path("b", misses=0.15)])
    named, weighed = tables.tables([Of(r, r.label) for r in found])
    assert [column.name for column in named.columns][:3] == ["result", "run", "path"]
    cells = {column.name: column.cell(row).text for row in weighed.rows[4:] for column in weighed.columns}
    assert cells["verdict"] == "worse; better with a -50 %, a left out, b +50 %"
    assert cells["any_weights"] == "0.50 to 2.00"
    out = Console(width=200, record=True, file=io.StringIO())
    print_declared(out, weighed)
    said = out.export_text()
    assert "Weights: a 1, b 1." in said and "worse; better with a -50 %" in said


# Times in place of paths ----------------------------------------------------------------------------------------------


def test_times_that_processes_measured_have_the_figures_of_a_path() -> None:
    times = hg.from_values([*[MS] * 98, 3 * MS, 5 * MS])
    figures = of_times(times, 2 * MS)
    assert (figures["judged"], figures["late"], figures["misses_percent"]) == (100, 2, 2.0)
    assert figures["latency_max_ns"] == 5 * MS
    assert figures["max_of_deadline"] == 2.5
    assert figures["latency_p99_ns"] == pytest.approx(3 * MS, rel=1e-3)
    assert figures["latency_p99_9_ns"] is None  # it needs 1 000
    assert of_times(hg.empty(), MS) == {}
    one = of_times(hg.from_values([MS]), 2 * MS)
    assert (one["latency_p50_ns"], one["max_of_deadline"], one["misses"]) == (None, 0.5, 0)


def test_times_are_put_in_once_they_are_known_and_what_is_missing_says_which_there_are() -> None:
    asked = (PathResult(name="control", times="cycle", deadline_ns=2 * MS, weight=1.0), PathResult(name="way"))
    control, way = resolved(asked, {"cycle": hg.from_values([MS, 3 * MS])}) or ()
    assert (control.judged, control.late, control.scores["misses"]) == (2, 1, 0.5)
    assert way == asked[1]
    (missing, _) = resolved(asked, {"step": hg.from_values([MS])}) or ()
    assert missing == replace(asked[0], reason="no times 'cycle' were measured; there are step")


# The catalog ----------------------------------------------------------------------------------------------------------


def test_each_paths_file_of_the_catalog_is_one_and_found_by_its_name() -> None:
    assert "manipulation" in [entry.name for entry in catalog.paths()]
    for entry in catalog.paths():
        assert paths_named.find(entry.name) == paths_named.read(entry.path)


def test_the_arm_s_paths_are_of_times_nodes_and_topics_that_it_has() -> None:
    document = manipulation.document(manipulation.ManipulationParameters.model_validate({}))
    nodes = {f"/{node['name']}" for process in document["processes"] for node in process["nodes"]}
    topics = {
        publisher["topic"]
        for process in document["processes"]
        for node in process["nodes"]
        for publisher in node.get("publishers", ())
    }
    topics |= {
        f"{server['action']}/_action/send_goal request"
        for process in document["processes"]
        for node in process["nodes"]
        for server in node.get("action_servers", ())
    }
    found = {wanted.name: wanted for wanted in paths_named.find("manipulation")}
    assert {"planning", "control", "feedback", "collision_check"} <= set(found)
    for wanted in found.values():
        assert set(wanted.path.nodes or ()) <= nodes and set(wanted.path.topics or ()) <= topics
        assert wanted.path.times is None or wanted.path.times in manipulation.TIMES


def test_the_measures_have_a_score_each() -> None:
    assert set(objectives.scores({})) == set(objectives.MEASURES)


def test_what_is_neither_a_file_nor_in_the_catalog_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(
        Exception, match=r"--paths 'manipulatoin' is neither a file nor one of the catalog: manipulation"
    ):
        paths_named.find("manipulatoin")
    with pytest.raises(Exception, match="cannot read --paths"):
        paths_named.find(tmp_path / "none.yaml")
