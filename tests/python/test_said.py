"""What programs say of a trial: merged over processes, handed to the kind, and judged by what is declared."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perflab.parameters import Parameters
from perflab.results.figure import OwnFigure
from perflab.results.outcome import FAILED, OwnOutcome
from perflab.statistics import histogram as hg
from perflab.statistics import key_figures, said
from perflab.statistics.said import Said, SaidOutcome
from perflab.workload import Graph, Made, Origin, WorkloadKind

TRIAL: Any = None  # what programs say does not depend on it
NO_PLAN = SaidOutcome(process="runner", name="no_plan", reason="none", at_ns=2)


def times(*values: int) -> dict[str, Any]:
    return hg.to_record(hg.from_values(values))


def test_figures_are_one_list_times_the_last_ones_and_the_first_outcome_counts() -> None:
    simulator = [
        {"type": "program", "at_ns": 1, "figures": {"planning": [0.1]}, "times": {"loop": times(1000)}},
        {"type": "program", "at_ns": 3, "outcome": {"name": "late", "reason": "it took too long", "at_ns": 3}},
        {
            "type": "program",
            "at_ns": 4,
            "figures": {"planning": [0.2], "tip": [1]},
            "times": {"loop": times(1000, 3000)},
        },
    ]
    runner = [
        {"type": "program", "at_ns": 2, "times": {"loop": times(2000)}, "figures": {"planning": [0.3]}},
        {"type": "program", "at_ns": 2, "outcome": {"name": "no_plan", "reason": "none was found", "at_ns": 2}},
    ]
    found = said.of({"simulator": simulator, "runner": runner, "bridge": []})
    assert found.figures == {"planning": (0.1, 0.2, 0.3), "tip": (1.0,)}
    assert (found.times["loop"].count, found.times["loop"].max) == (3, 3000)
    assert found.outcomes == (
        SaidOutcome(process="runner", name="no_plan", reason="none was found", at_ns=2),
        SaidOutcome(process="simulator", name="late", reason="it took too long", at_ns=3),
    )
    assert said.of({}) == Said()


def graph(**declared: Any) -> Made:
    return Made(Graph({"name": "g", "processes": [], **declared}))


def test_of_a_graph_file_the_median_of_a_figure_is_the_trials() -> None:
    workload = graph(
        own_figures={"planning": {"kind": "value", "words": "planning time"}, "loop": {"kind": "times", "words": "it"}},
        own_outcomes={"no_plan": {"words": "no plan was found", "of": "failed"}},
    )
    told = Said(figures={"planning": (3.0, 1.0, 2.0)}, times={"loop": hg.from_values([5])}, outcomes=(NO_PLAN,))
    judgement, outcome = workload.judged(TRIAL, Path(), said=told)
    assert judgement.figures == {"planning": 2.0}
    assert judgement.times["loop"].count == 1
    assert outcome is not None
    assert (outcome.name, outcome.words, outcome.of, judgement.reason) == (
        "no_plan",
        "no plan was found",
        FAILED,
        "none",
    )


def test_a_declaration_says_the_unit_of_what_is_told_and_what_becomes_of_several_values() -> None:
    value = {"kind": "value", "words": "it"}
    workload = graph(
        own_figures={
            "planning": value | {"unit": "ns", "factor": 1e9},
            "misses_summed": value | {"several": "sum"},
            "share_won": value | {"unit": "%", "factor": 100, "several": "mean"},
        }
    )
    told = Said(figures={"planning": (0.1, 0.3, 0.2), "misses_summed": (2.0, 3.0), "share_won": (1.0, 0.0, 0.0, 1.0)})
    judgement, _ = workload.judged(TRIAL, Path(), said=told)
    assert judgement.figures == {"planning": pytest.approx(2e8), "misses_summed": 5.0, "share_won": 50.0}
    # What makes the value of a trial is in no result.
    (planning, *_) = key_figures.declared(workload.graph.document)
    assert planning.own == OwnFigure(words="it", unit="ns")


def test_figures_of_a_graph_and_of_its_kind_stand_beside_each_other() -> None:
    kind = WorkloadKind(
        "robot",
        "a robot",
        Parameters,
        lambda _: graph(),
        figures={"goals": OwnFigure(words="goals")},
        outcomes=(OwnOutcome(name="late", words="late"),),
        judge=lambda ended: replace(ended.passed_on(), outcome="late"),
    )
    drawn = Graph({
        "name": "g", "processes": [], "own_figures": {"planning": {"kind": "value", "words": "it"}},
        "own_outcomes": {"no_plan": {"words": "none", "of": "failed"}},
    })  # fmt: skip
    workload = Made(drawn, origin=Origin(kind, {}))
    assert list(workload.graph.document["own_figures"]) == ["planning", "goals"]
    assert [own.name for own in workload.own_outcomes] == ["no_plan", "late"]
    judgement, outcome = workload.judged(TRIAL, Path(), said=Said(figures={"planning": (1.0,)}))
    assert judgement.figures == {"planning": 1.0}
    assert outcome is not None
    assert outcome.name == "late"


def test_what_is_not_declared_is_an_error() -> None:
    with pytest.raises(ValueError, match="the figure 'planning', which is not declared"):
        graph().judged(TRIAL, Path(), said=Said(figures={"planning": (1.0,)}))
    with pytest.raises(ValueError, match="the outcome 'no_plan', which is not declared"):
        graph().judged(TRIAL, Path(), said=Said(outcomes=(NO_PLAN,)))


def test_a_graph_whose_process_ends_the_measured_part_has_its_limit_as_duration() -> None:
    process = {"name": "p", "ends": True, "program": "x", "nodes": []}
    ends = Made(Graph({"name": "g", "limit_ns": 5_000_000_000, "processes": [process]}))
    assert ends.pins.duration_ns == 5_000_000_000
    assert "p of g ends the measured part, within 5 s" in ends.pins.why
    assert graph().pins.duration_ns is None
