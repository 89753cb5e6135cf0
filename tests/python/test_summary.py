"""summary.json: merging, nulls, coverage, and the published schema."""

from __future__ import annotations

from typing import Any

import pytest
from support import checkpoint, edge, publisher, service

from perflab.models import as_json
from perflab.results.outcome import BrokenOff, Outcome, OwnOutcome
from perflab.results.trial import Passing, ProcessResources
from perflab.statistics import histogram as hg
from perflab.statistics import target
from perflab.statistics.accounting import account
from perflab.statistics.summary import (
    TrialData,
    distribution,
    resources_of,
    summarize,
    threads_of,
)
from tests.schemas import published


def trial(number: int = 1, received: int = 10, outcome: str = "success", **more: Any) -> TrialData:
    values = [1000 * (k + 1) * number for k in range(received)]
    h = hg.to_record(hg.from_values(values, [5_000_000_000 + v for v in values]))
    record = edge(received, 0, received - 1, latency=h, response=h)
    fields: dict[str, Any] = {
        "number": number,
        "order": number,
        "workload": "w",
        "middleware": "m",
        "conditions": (),
        "outcome": Outcome(outcome),
        "reason": None if outcome == "success" else "why",
        "drain": "rest" if outcome == "success" else None,
        "duration_s": 1.0,
        "measured_s": 1.0,
        "started_ns": 5_000_000_000,
        "accounts": account([checkpoint([publisher(10)], [record])]),
        "resources": (
            ProcessResources(process="p", cpu_percent_mean=12.5, rss_kb_max=100),
            ProcessResources(process="q", cpu_percent_mean=2.5, rss_kb_max=300),
        ),
    }
    return TrialData(**{**fields, **more})


def only_result(summary: dict[str, Any]) -> dict[str, Any]:
    published("summary").validate(summary)
    assert len(summary["results"]) == 1
    result: dict[str, Any] = summary["results"][0]
    return result


def test_totals_of_a_trial() -> None:
    totals = only_result(as_json(summarize("run", [trial(received=8)])))["totals"]
    assert (totals["sent"], totals["received"], totals["published"]) == (10, 8, 10)
    assert totals["lost"] == {"pre_match": 0, "gap": 0, "tail": 2}
    latency = totals["latency_ns"]
    assert (latency["count"], latency["min"], latency["max"], latency["mean"]) == (8, 1000, 8000, 4500.0)
    assert latency["max_at_s"] == pytest.approx(8e-6)
    assert totals["dispatch_ns"] is None


def test_trials_are_merged_not_averaged() -> None:
    result = only_result(as_json(summarize("run", [trial(1), trial(2)])))
    assert (result["trials"], result["totals"]["received"]) == (2, 20)
    assert result["totals"]["latency_ns"]["mean"] == (5500 + 11000) / 2
    assert result["totals"]["latency_ns"]["p50"] == hg.value_at_percentile(
        hg.from_values([*range(1000, 11000, 1000), *range(2000, 22000, 2000)]), 50
    )
    assert [t["totals"]["received"] for t in result["trials_detail"]] == [10, 10]


def test_only_successful_trials_are_merged_when_there_are_any() -> None:
    result = only_result(as_json(summarize("run", [trial(1), trial(2, 5, "failed")])))
    assert result["coverage"] == {"trials_merged": 1, "complete": True}
    assert result["totals"]["received"] == 10
    counted = {"success": 1, "failed": 1, "invalid": 0, "harness_error": 0}
    assert result["outcomes"] == {**counted, "interrupted": 0, "own": []}


def test_a_failure_that_its_kind_names_is_merged_unless_the_limit_cut_it_off() -> None:
    own = OwnOutcome(name="missed", words="missed")
    cut = BrokenOff(why="limit", at_ns=1)
    failures = [trial(1, outcome="failed", own_outcome=own, broken_off=by) for by in (None, cut)]
    assert [each.measured for each in failures] == [True, False]


def test_without_a_success_the_numbers_are_those_of_what_was_recorded() -> None:
    summary = as_json(summarize("run", [trial(1, 5, "failed")]))
    assert summary["valid"] is False
    assert only_result(summary)["totals"]["received"] == 5


def test_a_trial_that_recorded_nothing_has_nulls_not_zeros() -> None:
    result = only_result(as_json(summarize("run", [trial(1, outcome="failed", accounts=None, resources=())])))
    totals = result["totals"]
    assert (totals["sent"], totals["received"], totals["lost"]["tail"]) == (None, None, None)
    assert totals["latency_ns"] is None
    nothing = dict.fromkeys(("cpu_percent_mean", "rss_kb_max", "cpu_percent_of_machine"))
    assert result["resources"] == {**nothing, "processes": []}


def test_totals_that_depend_on_complete_data_are_null_without_it() -> None:
    accounts = account([checkpoint([publisher(10)], [edge(5, 0, 4)], final=False)])
    totals = only_result(as_json(summarize("run", [trial(1, outcome="failed", accounts=accounts)])))["totals"]
    assert (totals["sent"], totals["received"], totals["published"]) == (None, 5, 10)
    assert totals["lost"] == {"pre_match": None, "gap": 0, "tail": None}


def test_a_run_that_lacks_planned_trials_is_not_valid() -> None:
    assert as_json(summarize("run", [trial(1)], planned_trials=2))["valid"] is False
    assert as_json(summarize("run", [trial(1)], planned_trials=1))["valid"] is True
    assert as_json(summarize("run", []))["valid"] is False


def test_middlewares_are_results_of_their_own() -> None:
    summary = as_json(summarize("run", [trial(1), trial(2, middleware="n"), trial(3)]))
    assert [(r["middleware"], r["trials"]) for r in summary["results"]] == [("m", 2), ("n", 1)]


def test_every_variant_is_a_result_of_its_own() -> None:
    ways: list[dict[str, Any]] = [
        {"ipc": "off"},
        {"ipc": "on"},
        {"ipc": "on", "executor": "multi_threaded:4"},
        {"ipc": "on", "pass_by": "unique"},
        {"ipc": "off", "conditions": ("noise",)},
    ]
    summary = as_json(summarize("run", [trial(n, **way) for n, way in enumerate(ways * 2, start=1)]))
    published("summary").validate(summary)
    keys = ("ipc", "executor", "pass_by", "conditions")
    assert [tuple(r[k] for k in keys) for r in summary["results"]] == [
        ("off", None, None, []),
        ("on", None, None, []),
        ("on", "multi_threaded:4", None, []),
        ("on", None, "unique", []),
        ("off", None, None, ["noise"]),
    ]
    assert all(r["trials"] == 2 for r in summary["results"])


def test_services_are_merged_over_trials_and_in_no_total() -> None:
    def asking(number: int) -> TrialData:
        h = hg.to_record(hg.from_values([1000 * number] * 10))
        record = service(publisher(12), edge(10, 0, 9, latency=h, response=h))
        return trial(number, accounts=account([checkpoint([publisher(10)], [edge(10, 0, 9)], [record])]))

    result = only_result(as_json(summarize("run", [asking(1), asking(2)])))
    assert (result["totals"]["sent"], result["totals"]["published"]) == (20, 20)
    (answered,) = result["services"]
    assert (answered["client"], answered["service"], answered["server"]) == ("a", "add", "s")
    assert (answered["sent"], answered["received"], answered["published"]) == (24, 20, 24)
    assert answered["lost"] == {"pre_match": 0, "gap": 0, "tail": 4}
    assert (answered["round_trip_ns"]["count"], answered["round_trip_ns"]["mean"]) == (20, 1500.0)
    assert answered["publish_call_ns"] is None


def test_a_trial_of_services_alone_has_no_totals_of_topics() -> None:
    accounts = account([checkpoint(services=[service(publisher(5), edge(5, 0, 4))])])
    result = only_result(as_json(summarize("run", [trial(accounts=accounts)])))
    assert (result["totals"]["sent"], result["totals"]["latency_ns"]) == (None, None)
    assert result["services"][0]["received"] == 5


def test_threads_that_are_alike_are_one_entry() -> None:
    def state(tid: int, name: str, priority: int = 0) -> dict[str, Any]:
        asked = {"policy": "RR", "priority": 5, "cpus": None} if priority else None
        policy = "RR" if priority else "OTHER"
        return {"tid": tid, "name": name, "role": "executor", "asked": asked, "policy": policy, "priority": priority,
                "nice": 0, "cpus": [0, 1]}  # fmt: skip

    threads = threads_of("p", [state(7, "a"), state(8, "a"), state(9, "a", 5), state(10, "b")])
    assert [(t.name, t.policy, t.tids) for t in threads] == [
        ("a", "OTHER", (7, 8)),
        ("a", "RR", (9,)),
        ("b", "OTHER", (10,)),
    ]
    result = only_result(as_json(summarize("run", [trial(), trial(2, threads=tuple(threads))])))
    assert result["threads"][1] == {
        "process": "p",
        "name": "a",
        "role": "executor",
        "asked": {"policy": "RR", "priority": 5, "cpus": None},
        "policy": "RR",
        "priority": 5,
        "cpus": [0, 1],
        "tids": [9],
        **dict.fromkeys(("runtime_ns", "deadline_ns", "period_ns")),  # of DEADLINE alone
    }


def test_what_was_not_recorded_of_threads_and_passing_is_null() -> None:
    result = only_result(as_json(summarize("run", [trial()])))
    assert (result["threads"], result["passing"]) == (None, None)
    passing: dict[str, Any] = {"asked": None, "intra_process": 1, "copies": 0, "middleware": 2, "loaned": False}
    result = only_result(as_json(summarize("run", [trial(passing=(Passing(node="a", topic="t", **passing),))])))
    assert result["passing"] == [{"node": "a", "topic": "t", **passing}]


def test_resources_are_summed_over_processes_and_averaged_over_trials() -> None:
    second = trial(
        2,
        resources=(
            ProcessResources(process="p", cpu_percent_mean=37.5, rss_kb_max=200),
            ProcessResources(process="q", cpu_percent_mean=2.5, rss_kb_max=100),
        ),
    )
    resources = only_result(as_json(summarize("run", [trial(1), second])))["resources"]
    assert resources["cpu_percent_mean"] == 25.0 + 2.5
    assert resources["rss_kb_max"] == 300


def test_a_percentile_is_never_above_the_exact_maximum() -> None:
    summary = as_json(distribution([(hg.from_values([1_000_001]), None)]))
    assert summary is not None
    assert summary["p50"] == summary["max"] == 1_000_001


def test_quantiles_of_an_empty_histogram_are_null() -> None:
    summary = as_json(distribution([(hg.empty(), None)]))
    assert summary is not None
    assert (summary["count"], summary["p50"], summary["mean"], summary["max_at_s"]) == (0, None, None, None)
    assert as_json(distribution([])) is None


def test_resource_samples_count_where_they_lie_in_the_measured_part() -> None:
    def sample(at_s: float, cpu_ms: int | None, interval_ms: int | None = 500) -> dict[str, Any]:
        return {
            "at_ns": round(at_s * 1e9),
            "interval_ns": None if interval_ms is None else interval_ms * 1_000_000,
            "cpu_interval_ns": None if cpu_ms is None else cpu_ms * 1_000_000,
            "rss_peak_kb": round(at_s * 100),
        }

    records = [sample(0.1, None, None), sample(1.0, 500), sample(1.6, 50), sample(2.1, 100), sample(3.0, 500)]
    used = resources_of("p", records, 1_000_000_000, 2_000_000_000)
    assert used == ProcessResources(process="p", cpu_percent_mean=15.0, rss_kb_max=300)
    assert resources_of("p", [], 0, 1).cpu_percent_mean is None


def test_the_largest_memory_is_not_known_where_that_of_one_process_is_not() -> None:
    used = (
        ProcessResources(process="p", cpu_percent_mean=12.5, rss_kb_max=None),
        ProcessResources(process="q", cpu_percent_mean=2.5, rss_kb_max=300),
    )
    result = only_result(as_json(summarize("run", [trial(resources=used)])))
    assert result["resources"]["rss_kb_max"] is None
    assert [p["rss_kb_max"] for p in result["resources"]["processes"]] == [None, 300]
    (record,) = summarize("run", [trial(resources=used)]).results
    figures = target.measured(record, record.resources.processes, cpus=4)
    assert figures["rss_KB"] is None
    assert target.measured(record, record.resources.processes[1:], cpus=4)["rss_KB"] == 300
