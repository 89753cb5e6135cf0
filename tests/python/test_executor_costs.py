"""What executors cost, from results whose costs are known."""

from __future__ import annotations

from typing import Any

import made_costs
import pytest
from made_costs import nothing_sent, of_executor, summary
from made_experiment import read_results, result

from perflab.models import as_json
from perflab.statistics import executor_costs

Json = dict[str, Any]


def rows_of(results: list[Json]) -> list[Json]:
    found = as_json(executor_costs.of(read_results(results)))
    assert found is not None
    rows: list[Json] = found["rows"]
    return rows


def test_cpu_time_per_message_is_the_median_over_trials() -> None:
    row = rows_of([of_executor("events", [10.0, 11.0, 30.0])])[0]
    assert row["cpu_per_message_ns"]["value"] == pytest.approx(110_000)
    assert row["cpu_percent"]["value"] == pytest.approx(11.0)
    assert row["cpu_per_message_ns"]["n"] == row["trials"] == 3


def test_the_reference_is_the_executor_inline_and_the_ratio_is_within_blocks() -> None:
    # Blocks that differ by far more than the executors do: beside each other the ratio is the same in all.
    inline = [10.0 * 1.5**n for n in range(8)]
    rows = rows_of([of_executor("inline", inline), of_executor("events", [1.1 * cpu for cpu in inline])])
    assert [row["reference"] for row in rows] == [0, 0]
    ratio = rows[1]["ratio"]
    assert ratio["paired"]
    assert ratio["value"] == pytest.approx(1.1)
    assert ratio["low"] == pytest.approx(1.1)
    assert ratio["high"] == pytest.approx(1.1)
    assert rows[0]["ratio"]["value"] == 1.0
    assert rows[0]["ratio"]["reason"] == "it is the reference itself"


def test_the_case_middleware_comes_before_the_executor_inline() -> None:
    def case(name: str, executor: str, cpu: float) -> Json:
        return of_executor(executor, [cpu] * 2, factors={"workload.case": name})

    rows = rows_of([case("ros", "inline", 15.0), case("ros", "events", 40.0), case("middleware", "inline", 10.0)])
    assert [row["reference"] for row in rows] == [2, 2, 2]
    assert rows[1]["ratio"]["value"] == pytest.approx(4.0)


def test_a_case_middleware_that_ran_on_an_executor_is_no_reference() -> None:
    rows = rows_of([of_executor("events", [10.0], factors={"workload.case": case}) for case in ("ros", "middleware")])
    assert rows[0]["reference"] is None
    assert rows[0]["ratio"]["value"] is None
    assert "runs without an executor" in rows[0]["ratio"]["reason"]


def of_case(case: str, cpu: float, middleware: str = "cyclonedds", executor: str = "inline") -> Json:
    factors = {"workload.case": case}
    if case == "nopub":
        trials = [nothing_sent(1, cpu)]
        return of_executor(executor, [], trials_detail=trials, middleware=middleware, factors=factors)
    return of_executor(executor, [cpu], middleware=middleware, factors=factors)


def test_the_case_plain_is_compared_with_the_only_case_middleware() -> None:
    rows = rows_of([of_case("middleware", 10.0), of_case("ros", 20.0), of_case("plain", 5.0, "direct")])
    assert rows[2]["reference"] == 0
    assert rows[2]["ratio"]["value"] == pytest.approx(0.5)


def test_the_case_plain_has_no_reference_among_several_and_none_alone() -> None:
    plain = of_case("plain", 5.0, "direct")
    rows = rows_of([of_case("middleware", 10.0), of_case("middleware", 12.0, "rclcpp/rmw_cyclonedds_cpp"), plain])
    assert rows[2]["reference"] is None
    assert rows[2]["ratio"]["reason"] == "it runs on no middleware, but the case middleware ran on several"
    (row,) = rows_of([plain])
    assert row["ratio"]["reason"] == "it runs on no middleware, but the case middleware did not run"


def test_each_runtime_is_compared_with_its_own_case_middleware() -> None:
    ros = "rclcpp/rmw_cyclonedds_cpp"
    rows = rows_of(
        [of_case("middleware", 10.0), of_case("middleware", 20.0, ros), of_case("ros", 30.0, ros, "single_threaded")]
    )
    assert [row["reference"] for row in rows] == [0, 1, 1]
    assert rows[2]["ratio"]["value"] == pytest.approx(1.5)


def test_timers_alone_are_compared_with_the_case_middleware_where_they_did_not_run_inline() -> None:
    rows = rows_of([of_case("middleware", 10.0), of_case("nopub", 2.0, executor="single_threaded")])
    assert rows[1]["reference"] == 0
    assert (rows[1]["ratio"]["of"], rows[1]["ratio"]["value"]) == ("cpu_percent", pytest.approx(0.2))


@pytest.mark.parametrize(
    "other",
    [{"middleware": "fastdds"}, {"factors": {"workload.nodes": 20}}, {"treatment": "cpu_load"}, {"ipc": "on"}],
)
def test_what_differs_in_anything_else_is_no_reference(other: Json) -> None:
    rows = rows_of([of_executor("inline", [10.0], **other), of_executor("events", [12.0])])
    assert rows[1]["reference"] is None
    assert rows[1]["ratio"]["value"] is None


def test_single_trials_have_a_ratio_without_an_interval() -> None:
    rows = rows_of([of_executor("inline", [10.0]), of_executor("events", [12.0])])
    ratio = rows[1]["ratio"]
    assert ratio["value"] == pytest.approx(1.2)
    assert ratio["low"] is None
    assert "too few" in ratio["reason"]


def test_timers_alone_cost_by_tick_and_are_compared_by_their_cpu_time() -> None:
    def timers(executor: str, cpu: float) -> Json:
        return of_executor(executor, [], trials_detail=[nothing_sent(1, cpu)], factors={"workload.case": "nopub"})

    middleware = of_executor("inline", [10.0], factors={"workload.case": "middleware"})
    rows = rows_of([timers("inline", 2.0), timers("events", 5.0), middleware])
    assert rows[1]["cpu_per_message_ns"]["value"] is None
    assert rows[1]["cpu_per_message_ns"]["reason"] == "not measured"
    assert rows[1]["cpu_per_tick_ns"]["value"] == pytest.approx(100_000)  # 50 ms a second, 500 ticks
    assert rows[1]["reference"] == 0  # not the case that delivers messages
    assert (rows[1]["ratio"]["of"], rows[1]["ratio"]["value"]) == ("cpu_percent", pytest.approx(2.5))
    assert rows[2]["cpu_per_tick_ns"] == {
        **rows[2]["cpu_per_tick_ns"],
        "value": None,
        "reason": "messages are delivered",
    }


def test_shares_of_roles_and_what_was_not_recorded() -> None:
    known, unknown = rows_of(
        [
            of_executor("events", [10.0, 20.0]),
            of_executor("inline", [], trials_detail=[{**made_costs.costing(1, 5.0), "cost": None}]),
        ]
    )
    assert known["roles"] == {"executor": 0.5, "middleware": 0.25, "perflab": 0.25, "tracer": 0.0, "ended": 0.0}
    assert unknown["roles"] is None
    assert "not recorded" in unknown["roles_reason"]
    assert unknown["cycles_per_message"]["value"] is None


def test_shares_of_roles_are_at_most_the_whole_where_threads_were_read_later_than_their_process() -> None:
    detail = made_costs.costing(1, 5.0)
    detail["cost"]["cpu_ns"] = sum(detail["cost"]["roles"].values()) // 2
    (row,) = rows_of([of_executor("events", [], trials_detail=[detail])])
    assert row["roles"] == {"executor": 0.5, "middleware": 0.25, "perflab": 0.25, "tracer": 0.0, "ended": 0.0}


def test_extra_trials_are_in_no_figure_but_give_families_and_phases() -> None:
    made = summary()
    rows = made["executor_costs"]["rows"]
    assert [row["executor"] for row in rows] == ["inline", "single_threaded", "events"]
    assert rows[1]["cpu_percent"]["value"] == pytest.approx(20.07)  # without the 30 % of the extra trials
    assert rows[1]["ratio"]["value"] == pytest.approx(2.0, rel=1e-3)
    assert rows[1]["ratio"]["low"] <= rows[1]["ratio"]["value"] <= rows[1]["ratio"]["high"]
    assert rows[1]["families"]["groups"] == pytest.approx(
        {"application": 0, "rclcpp": 0, "executor": 0.5, "rcl": 0, "rmw": 0, "dds": 0.2, "kernel": 0.2, "other": 0.1}
    )
    assert rows[1]["families"]["trial"] == 20
    assert rows[1]["phases"]["threads"] == 2
    bare = summary(observed=False)["executor_costs"]["rows"][0]
    assert bare["families"] is None
    assert bare["phases"] is None
    assert "cpu_profile" in bare["families_reason"]
    assert "tracing" in bare["phases_reason"]


def test_no_costs_where_no_cpu_time_was_measured() -> None:
    of = result([{**made_costs.costing(1, 1.0), "resources": {"cpu_percent_mean": None}, "cost": None}])
    assert as_json(executor_costs.of(read_results([of]))) is None
    assert as_json(executor_costs.of(read_results([]))) is None


def test_phases_are_those_of_the_published_table_over_all_threads() -> None:
    phases = as_json(executor_costs.phases_of(made_costs.answer()))
    assert phases is not None
    assert phases["reason"] is None
    by_name = {row["function"]: row for row in phases["rows"]}
    assert "callbacks in execute" not in by_name
    thread, ready, wait = (by_name[n] for n in ("thread", "get_next_ready_executable", "wait_for_work"))
    assert (thread["count"], thread["wall_ns"], thread["on_cpu_ns"]) == (10, 4 * 2930, 4 * 1640)
    assert thread["cpu_usage"] == pytest.approx(0.5597, abs=1e-4)
    assert thread["of_parent"] is None
    assert ready["of_thread"] == pytest.approx(0.5305, abs=1e-4)
    assert ready["of_parent"] == pytest.approx(0.6692, abs=1e-4)
    assert wait["cpu_usage"] == pytest.approx(0.2566, abs=1e-4)
    assert [row["depth"] for row in phases["rows"]] == [0, 1, 2, 3, 3, 2]


@pytest.mark.parametrize("known", [None, 80.0])
def test_phases_without_the_schedulers_events_have_no_cpu_time(known: float | None) -> None:
    phases = as_json(executor_costs.phases_of(made_costs.answer(known)))
    assert phases is not None
    assert {row["on_cpu_ns"] for row in phases["rows"]} == {None}
    assert {row["of_thread"] for row in phases["rows"]} == {None}
    assert "scheduler's events" in phases["reason"]
    assert executor_costs.phases_of({"executor": {"rows": []}}) is None


def test_families_of_a_profile_are_those_of_all_threads_and_of_each_role() -> None:
    def thread(tid: int, **weights: int) -> Json:
        return {"tid": tid, "families": [{"family": name, "self_weight": w} for name, w in weights.items()]}

    document = {
        "quality": {"samples": 40},
        "families": {"rclcpp": "rclcpp and rclpy"},
        "processes": [
            {"threads": [thread(1, rclcpp=30, rcl=10), thread(2, cyclonedds=40)]},
            {"threads": [thread(3, kernel_network=20)]},
        ],
    }
    found = as_json(executor_costs.families_of(document, {1: "executor", 2: "middleware"}))
    assert found is not None
    assert found["shares"] == {"cyclonedds": 0.4, "rclcpp": 0.3, "kernel_network": 0.2, "rcl": 0.1}
    assert found["titles"]["rclcpp"] == "rclcpp and rclpy"
    assert (found["groups"]["rclcpp"], found["groups"]["executor"]) == (0.3, 0.0)
    assert found["by_role"]["executor"]["share"] == 0.4
    assert found["by_role"]["executor"]["groups"]["rclcpp"] == 0.75
    assert found["by_role"]["ended"]["share"] == 0.2  # the role of thread 3 is unknown
    assert executor_costs.families_of({**document, "quality": {"samples": 9}}, {}) is None
