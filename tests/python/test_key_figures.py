"""Key figures: what a resolved graph declares, as numbers of trials, as metrics and criteria, and for people."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from made_run import MANIFEST
from support import checkpoint, edge, publisher

from perflab.errors import BadInput
from perflab.models import as_json
from perflab.output import console
from perflab.report import terminal
from perflab.report.run_page.tables import rows_of
from perflab.report.runs import ReportRun
from perflab.report.tables.key_figures import tables
from perflab.results.outcome import FAILED, SUCCESS
from perflab.results.summary import read
from perflab.statistics import histogram as hg
from perflab.statistics import key_figures, metrics
from perflab.statistics.accounting import account
from perflab.statistics.key_figures import KeyFigure
from perflab.statistics.summary import TrialData, figures_of, summarize
from tests.schemas import published

MS = 1_000_000

Json = dict[str, Any]


def node(name: str, reads: Sequence[str], sends: Sequence[str], *reactions: Json) -> Json:
    return {
        "name": name,
        "namespace": "/",
        "publishers": [{"topic": topic} for topic in sends],
        "subscriptions": [{"topic": topic} for topic in reads],
        "reactions": list(reactions),
    }


def reaction(kind: str, on: Sequence[int], publish: Sequence[int] = (0,)) -> Json:
    return {"kind": kind, "on": list(on), "publish": list(publish)}


# front 10 ms, rear 20 ms -> both -> fused -> sink; planner by its own period.
GRAPH: Json = {
    "processes": [
        {
            "nodes": [
                node("front", [], ["/front"]),
                node("rear", [], ["/rear"]),
                node("fuse", ["/front", "/rear"], ["/fused"], reaction("fusion", [0, 1])),
                node("filter", ["/fused"], ["/filtered"], reaction("transform", [0])),
                node("planner", ["/filtered"], ["/plan"], reaction("cyclic", [0])),
            ]
        }
    ],
    "key_figures": [
        {
            "name": "hot_path",
            "kind": "path",
            "from": ["/front", "/rear"],
            "to": "/planner",
            "edges": [["/filter", "/filtered", "/planner"]],
        },
        {"name": "dropped", "kind": "lost", "topics": None},
        {"name": "fused_dropped", "kind": "lost", "topics": ["/fused"]},
        {
            "name": "steady",
            "kind": "jitter",
            "publishers": [{"node": "/planner", "topic": "/plan", "period_ns": 50 * MS}],
        },
    ],
}
FIGURES = key_figures.declared(GRAPH)

ENDS = (
    ("/front", "/front", "/fuse"),
    ("/rear", "/rear", "/fuse"),
    ("/fuse", "/fused", "/filter"),
    ("/filter", "/filtered", "/planner"),
)


def histogram(values: Sequence[int]) -> Json:
    return hg.to_record(hg.from_values(values))


def record_of(ends: tuple[str, str, str], received: int, responses: Sequence[int] | None = None) -> Json:
    of, topic, to = ends
    more: Json = {} if responses is None else {"response": histogram(responses), "latency": histogram(responses)}
    first = 0 if received else None
    highest = received - 1 if received else None
    return edge(received, first, highest, publisher=of, topic=topic, subscription=to, **more)


def trial(number: int = 1, arrived: int = 9, slowest: int = 30 * MS, final: bool = True, **more: Any) -> TrialData:
    """20 of front, 10 of rear: 10 can be fused. The fusion sends all; what is missing at the planner is lost."""
    sent = {"/front": 20, "/rear": 10, "/fuse": 10, "/filter": 10, "/planner": 4}
    topics = {of: topic for of, topic, _ in ENDS} | {"/planner": "/plan"}
    publishers = [publisher(n, node=name, topic=topics[name]) for name, n in sent.items()]
    publishers[-1] |= {
        "period": histogram([49 * MS, 50 * MS, 52 * MS]),
        "period_jitter": histogram([1 * MS, 0, 2 * MS]),
    }
    responses = [10 * MS] * (arrived - 1) + [slowest] if arrived else []
    edges = [record_of(ends, sent[ends[0]]) for ends in ENDS[:3]] + [record_of(ENDS[3], arrived, responses)]
    fields: Json = {
        "number": number,
        "order": number,
        "workload": "w",
        "middleware": "m",
        "conditions": (),
        "outcome": SUCCESS,
        "reason": None,
        "drain": "rest",
        "duration_s": 1.0,
        "measured_s": 1.0,
        "started_ns": 0,
        "accounts": account([checkpoint(publishers, edges, final=final)]),
        "resources": (),
        "key_figures": FIGURES,
    }
    return TrialData(**{**fields, **more})


def test_a_graph_without_key_figures_has_none() -> None:
    assert key_figures.declared({"processes": []}) == ()


def test_what_it_is_stands_in_words() -> None:
    assert [figure.words for figure in FIGURES] == [
        "response from front and rear to planner",
        "messages lost on all topics",
        "messages lost on fused",
        "jitter of planner",
    ]


def test_a_path_is_the_response_where_it_ends_and_what_did_not_come() -> None:
    found = as_json(figures_of(trial()))["key_figures"]["hot_path"]
    assert (found["response_ns"]["count"], found["response_ns"]["min"], found["response_ns"]["max"]) == (
        9,
        10 * MS,
        30 * MS,
    )
    # A fusion sends what its slowest input brings.
    assert (found["possible"], found["arrived"], found["missed"]) == (10, 9, 1)


def test_a_transform_of_several_inputs_passes_on_the_sum_of_them() -> None:
    graph = json.loads(json.dumps(GRAPH))
    graph["processes"][0]["nodes"][2]["reactions"][0]["kind"] = "transform"
    (figure, *_) = key_figures.declared(graph)
    counts = {("/front", "/front"): 20, ("/rear", "/rear"): 10}
    assert [pace.of(counts) for pace in figure.paces] == [30]
    assert [pace.of({("/front", "/front"): 20}) for pace in figure.paces] == [None]


def test_what_a_killed_trial_missed_is_not_known() -> None:
    found = as_json(figures_of(trial(final=False)))["key_figures"]
    assert (found["hot_path"]["possible"], found["hot_path"]["missed"]) == (None, None)
    assert found["hot_path"]["arrived"] == 9
    assert found["dropped"]["lost"] is None


def test_lost_is_of_the_named_topics_or_of_all() -> None:
    found = as_json(figures_of(trial(arrived=6)))["key_figures"]
    assert (found["dropped"]["sent"], found["dropped"]["lost"], found["dropped"]["share_percent"]) == (50, 4, 8.0)
    assert (found["fused_dropped"]["sent"], found["fused_dropped"]["lost"]) == (10, 0)


def test_jitter_stands_beside_the_intervals_that_it_is_of() -> None:
    found = as_json(figures_of(trial()))["key_figures"]["steady"]
    assert found["periods_ns"] == [50 * MS]
    assert (found["jitter_ns"]["count"], found["jitter_ns"]["max"], found["jitter_ns"]["mean"]) == (3, 2 * MS, MS)
    assert (found["period_ns"]["min"], found["period_ns"]["max"]) == (49 * MS, 52 * MS)


def test_at_another_rate_the_period_is_another() -> None:
    assert FIGURES[3].at_rate(4).periods_ns == (12_500_000,)


def test_intervals_of_several_periods_are_not_merged() -> None:
    figure = KeyFigure("steady", key_figures.JITTER, publishers=(("/planner", "/plan"),), periods_ns=(1, 2))
    found = as_json(figures_of(trial(key_figures=(figure,))))["key_figures"]["steady"]
    assert found["period_ns"] is None
    assert found["jitter_ns"]["count"] == 3


def test_nothing_recorded_is_null_and_not_0() -> None:
    found = as_json(figures_of(trial(accounts=None, outcome=FAILED)))["key_figures"]
    assert found["hot_path"]["response_ns"] is None
    assert (found["hot_path"]["arrived"], found["dropped"]["lost"], found["steady"]["jitter_ns"]) == (None, None, None)


# ---- over trials


def summary_of(*trials: TrialData) -> Json:
    summary = summarize("run", trials)
    if any(result.trials > 1 for result in summary.results):
        results = tuple(key_figures.with_medians(result, FIGURES, 0.95) for result in summary.results)
        summary = replace(summary, results=results)
    document: Json = as_json(summary)
    published("summary").validate(document)
    return document


def test_a_result_merges_its_trials_and_has_medians_over_them_with_intervals() -> None:
    trials = [trial(n, slowest=(20 + n) * MS) for n in range(1, 8)]
    (result,) = summary_of(*trials)["results"]
    found = result["key_figures"]["hot_path"]
    assert (found["response_ns"]["count"], found["response_ns"]["max"]) == (63, 27 * MS)
    assert (found["possible"], found["missed"]) == (70, 7)
    median = found["metrics"]["hot_path.max"]
    assert (median["value"], median["n"], median["unit"]) == (24 * MS, 7, "ns")
    assert median["low"] <= 24 * MS <= median["high"]
    assert found["metrics"]["hot_path.missed"]["value"] == 1
    assert result["key_figures"]["dropped"]["metrics"]["dropped"]["value"] == 1
    assert "hot_path.p99" not in found["metrics"], "a trial has 9 messages, and p99 needs 1000"


def test_a_single_trial_has_no_median() -> None:
    (result,) = summary_of(trial())["results"]
    assert result["key_figures"]["hot_path"]["metrics"] == {}


def test_a_summary_of_a_graph_without_any_is_as_before() -> None:
    summary = summarize("run", [trial(key_figures=())])
    assert summary.results[0].key_figures == {}


# ---- as metrics and criteria

KINDS = key_figures.kinds(FIGURES)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hot_path.max", 30 * MS),
        ("hot_path.missed", 1),
        ("dropped", 1),
        ("dropped.share", 2.0),
        ("fused_dropped", 0),
        ("steady.max", 2 * MS),
        ("steady.mean", MS),
    ],
)
def test_each_is_a_metric(name: str, value: float) -> None:
    assert metrics.parse(name, figures=KINDS).read(figures_of(trial())).value == value


def test_every_metric_of_a_figure_can_be_named_and_found_again() -> None:
    for figure in FIGURES:
        for metric in key_figures.metrics_of(figure):
            assert metrics.parse(metric.name, figures=KINDS).name == metric.name
            assert metrics.named(metric.name).unit == metric.unit


def test_a_percentile_needs_its_messages_as_any_other_metric_does() -> None:
    reading = metrics.parse("hot_path.p99", figures=KINDS).read(figures_of(trial()))
    assert (reading.value, reading.reason) == (None, "p99 needs 1 000 messages in a trial, there are only 9")


def test_a_graph_that_does_not_declare_it_did_not_measure_it() -> None:
    reading = metrics.named("hot_path.max").read(figures_of(trial(key_figures=())))
    assert (reading.value, reading.reason) == (None, "not measured")


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("hot_path.max <= 30ms", True),
        ("hot_path.max < 30ms", False),
        ("hot_path.missed == 0", False),
        ("dropped <= 1", True),
        ("dropped.share <= 2 %", True),
        ("steady.max <= 2ms", True),
        ("hot_path.p99 <= 1s", None),
    ],
)
def test_each_can_be_a_criterion(text: str, met: bool | None) -> None:
    criterion = metrics.parse_criterion(text, figures=KINDS)
    assert criterion.evaluate(figures_of(trial())).met is met


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("hot_pat.max <= 1ms", "--success: no metric 'hot_pat.max'; did you mean hot_path.max?"),
        ("steady.missed == 0", "--success: no metric 'steady.missed'; did you mean steady.mean?"),
        (
            "dropped.share <= 2",
            "--success: 'dropped.share <= 2' has no unit; write dropped.share <= 2 %, or the intended unit",
        ),
    ],
)
def test_a_wrong_criterion_gets_one_line(text: str, line: str) -> None:
    with pytest.raises(BadInput) as error:
        metrics.parse_criterion(text, figures=KINDS)
    assert str(error.value) == line


def test_without_the_graph_a_key_figure_is_no_metric() -> None:
    with pytest.raises(BadInput, match=r"no metric 'hot_path\.max'"):
        metrics.parse("hot_path.max")


@pytest.mark.parametrize("name", ["lost", "latency", "period", "hot_path"])
def test_a_key_figure_is_not_called_like_a_metric(name: str) -> None:
    graph = {**GRAPH, "key_figures": [{"name": name, "kind": "lost", "topics": None}]}
    if not any(metric.partition(".")[0] == name for metric in metrics.METRICS):
        assert key_figures.declared(graph)[0].name == name
        return
    with pytest.raises(BadInput, match=f"'{name}' is a metric of every graph; give the key figure another name"):
        key_figures.declared(graph)


# ---- for people


def shown(summary: Json) -> str:
    out = io.StringIO()
    terminal.print_summary(console(out), read(summary), MANIFEST)
    return out.getvalue()


def test_the_terminal_has_one_row_for_each_figure_of_a_result() -> None:
    lines = shown(summary_of(trial())).splitlines()
    (path,) = [line for line in lines if line.startswith("hot_path")]
    shown_words = "hot_path response from front and rear to planner 12.2 ms 30.0 ms 1 of 10 missed"
    assert " ".join(path.split()) == shown_words
    (jitter,) = [line for line in lines if line.startswith("steady")]
    assert "jitter of planner, period 50.0 ms" in jitter
    assert any(line.startswith("dropped") and line.rstrip().endswith("1 of 50 lost") for line in lines)


def test_several_results_stand_in_one_table_for_each_figure() -> None:
    trials = [trial(n, slowest=30 * MS) for n in (1, 3)] + [
        trial(n, slowest=40 * MS, middleware="other") for n in (2, 4)
    ]
    text = shown(summary_of(*trials))
    table = text[text.index("Key figure hot_path: ") :].splitlines()
    assert table[0] == "Key figure hot_path: response from front and rear to planner"
    assert table[1].split() == ["result", "trials", "mean", "max", "missed"], "no trial has messages enough for p50"
    assert table[3].split() == ["m", "2", "12.2", "ms", "30.0", "ms", "1"]
    assert table[4].split() == ["other", "2", "13.3", "ms", "40.0", "ms", "1"]


def test_the_page_has_a_table_for_each_figure() -> None:
    summary = read(summary_of(trial(1), trial(2, middleware="other")))

    data: Any = SimpleNamespace(name="run", manifest=MANIFEST, summary=summary)
    run = ReportRun(data, ("m", "other"), {}, {}, ())
    made = tables(rows_of([run]))
    assert [table.title for table in made] == [
        "Key figure hot_path: response from front and rear to planner",
        "Key figure dropped: messages lost on all topics",
        "Key figure fused_dropped: messages lost on fused",
        "Key figure steady: jitter of planner, period 50.0 ms",
    ]
    second = [cells[1].text for _, cells in made[0].filled()]
    assert second == [
        "other",
        "1",
        "12.2 ms",
        "30.0 ms",
        "1",
    ]
