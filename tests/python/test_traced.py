"""What a run says of its traced trials: from the answer of the trace to the summary and the terminal."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import made_costs
import made_experiment
from made_experiment import read_results
from rich.console import Console

from perflab.design.document import Thresholds
from perflab.report.answers import print_why
from perflab.runs import traced
from perflab.workload import Graph

Json = dict[str, Any]

CAUSES = [
    {"cause": "cpu", "total_percent": 75.0},
    {"cause": "on_the_way", "total_percent": 24.8},
    {"cause": "executor", "total_percent": 0.2},
]
VERDICT = {
    "sentence": "Of 4 late messages (longer than 1 ms; 90 in all) 4 waited for CPU 1 behind stress-ng (pid 7)",
    "limit": "longer than 1 ms",
    "messages": 90,
    "late": 4,
    "total_ns": 8_000_000,
    "unknown_ns": 0,
    "unknown_percent": 0.0,
}


def answer(totals: int = 1) -> Json:
    return {
        "why": {"rows": [VERDICT]},
        "causes": {"rows": CAUSES},
        "totals": {"rows": [{"what": f"thing {n}"} for n in range(totals)]},
        "quality": ["takes: all"],
    }


def graph(*publishers: Json) -> Graph:
    node = {"name": "a", "namespace": "/", "publishers": list(publishers)}
    flood = {"name": "f", "namespace": "/", "condition": "message_flood", "publishers": [{"topic": "/flood"}]}
    return Graph({"name": "g", "processes": [{"name": "p", "nodes": [node, flood]}]})


def result(why: Json | None, **members: object) -> Json:
    trial = {"trial": 1, "order": 1, "outcome": "success", "why": why}
    return made_experiment.result([{**trial, "totals": {}, "resources": {}}], workload="w", middleware="m", **members)


def printed(results: list[Json], width: int = 100) -> str:
    out = Console(file=io.StringIO(), width=width, no_color=True, highlight=False)
    print_why(out, read_results(results))
    file = out.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def test_late_is_what_the_run_calls_late() -> None:
    thresholds = Thresholds.model_construct(late_percent=20.0, late_ns=5_000_000)
    limits = traced.late_after_ns(
        graph(
            {"topic": "/fast", "frequency_hz": 100.0},
            {"topic": "/slow", "frequency_hz": 10.0},
            {"topic": "/reaction", "frequency_hz": 0.0},
            {"topic": "/both", "frequency_hz": 100.0},
            {"topic": "/both", "frequency_hz": 50.0},
        ),
        thresholds,
    )
    assert limits == {"/fast": 2_000_000, "/slow": 5_000_000, "/reaction": 5_000_000, "/both": 4_000_000}


def test_a_trial_without_a_trace_says_nothing(tmp_path: Path) -> None:
    assert traced.explain(tmp_path, graph(), Thresholds()) == []
    assert traced.why(tmp_path) is None


def test_a_trace_that_cannot_be_read_is_a_note(tmp_path: Path) -> None:
    (tmp_path / traced.FOLDER).mkdir()
    (note,) = traced.explain(tmp_path, graph(), Thresholds())
    assert note.startswith("why messages were late is unknown: ")
    assert traced.why(tmp_path) is None


def test_the_summary_has_the_verdict_and_the_first_causes(tmp_path: Path) -> None:
    (tmp_path / traced.FOLDER).mkdir()
    (tmp_path / traced.FOLDER / traced.FILE).write_text(json.dumps(answer(totals=50)))
    why = traced.why(tmp_path)
    assert why is not None
    assert {key: getattr(why, key) for key in VERDICT} == VERDICT
    assert list(why.causes) == CAUSES
    assert len(why.totals) == traced.TOTALS_KEPT


def test_a_damaged_answer_is_none(tmp_path: Path) -> None:
    (tmp_path / traced.FOLDER).mkdir()
    for text in ("", "{}", '{"why": {"rows": []}}', "[]"):
        (tmp_path / traced.FOLDER / traced.FILE).write_text(text)
        assert traced.why(tmp_path) is None, text


def test_what_executors_did_is_in_the_summary_and_a_damaged_answer_is_none(tmp_path: Path) -> None:
    assert traced.phases(tmp_path) is None
    (tmp_path / traced.FOLDER).mkdir()
    kept = tmp_path / traced.FOLDER / traced.EXECUTOR
    kept.write_text(json.dumps(made_costs.answer()))
    phases = traced.phases(tmp_path)
    assert phases is not None
    assert phases.threads == 2
    for text in ("", "{}", '{"executor": {"rows": [{}]}}', "[]"):
        kept.write_text(text)
        assert traced.phases(tmp_path) is None, text


def test_the_terminal_has_a_sentence_and_the_shares_of_each_traced_trial() -> None:
    why = {**VERDICT, "causes": CAUSES, "totals": [], "quality": []}
    nothing = {**VERDICT, "late": 0, "sentence": "No message was late", "causes": [], "totals": []}
    text = printed(
        [
            result(None, treatment="baseline"),
            result(why, treatment="cpu_load", purpose="extra", observers=["tracing"]),
            result(nothing, treatment="baseline", purpose="extra", observers=["tracing"]),
        ]
    )
    assert "cpu_load: of 4 late messages (longer than 1 ms; 90 in all) 4 waited for CPU 1 behind stress-ng" in text
    assert "baseline: no message was late" in text
    header, row = [line for line in text.splitlines() if "CPU of others" in line or "75 %" in line]
    assert "on the way" in header
    assert "executor" not in header, "less than half a per cent everywhere"
    assert "24.8 %" in row


def test_several_traced_trials_of_one_result_are_told_apart() -> None:
    told = result({**VERDICT, "causes": CAUSES, "totals": []})
    (trial,) = told["trials_detail"]
    told["trials_detail"] = [{**trial, "trial": number} for number in (2, 5)]
    text = printed([told, result(None, purpose="control")])
    assert "baseline, trial 2: of 4 late messages" in text
    assert "baseline, trial 5: of 4 late messages" in text


def test_nothing_is_printed_where_nothing_was_traced() -> None:
    assert printed([result(None)]) == ""
