"""Key figures over the whole way: declared in a graph, recorded by perflab-node, in summary.json and in words.

On `virtual` time is computed, so every figure is known beforehand: the tests say how.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.schemas import published

from .conftest import Run

MS = 1_000_000

# One executor and thread for each node, so that nobody waits for another. A message of the lidar (every 10 ms) or the
# map (every 20 ms) is 1 ms on its way, as every one is; the localizer works 2 ms, the planner 3 ms.
GRAPH = """\
name: known
executors: [{id: 0}, {id: 1}, {id: 2}, {id: 3}, {id: 4}]
work: {fusion: 2ms, cyclic: 3ms}
key_figures:
  pose_age: {from: [lidar, map], to: planner}
  plan_age: {from: planner, to: base}
  dropped: {lost: all}
  steady: {jitter: planner}
nodes:
  - name: lidar
    executor: 0
    publishers: [{topic: points, type: stamped10b, period: 10ms}]
  - name: map
    executor: 1
    publishers: [{topic: tiles, type: stamped10b, period: 20ms}]
  - name: localizer
    executor: 2
    subscriptions: [{topic: points, type: stamped10b}, {topic: tiles, type: stamped10b}]
    publishers: [{topic: pose, type: stamped10b}]
    reactions: [{kind: fusion, on: [points, tiles], publish: pose}]
  - name: planner
    executor: 3
    subscriptions: [{topic: pose, type: stamped10b}]
    publishers: [{topic: plan, type: stamped10b}]
    reactions: [{kind: cyclic, period: 50ms, on: pose, publish: plan}]
  - name: base
    executor: 4
    subscriptions: [{topic: plan, type: stamped10b}]
"""


VIRTUAL = ("--middleware", "virtual", "--middleware-option", "delay=1ms")


def summary_of(run: Run, *arguments: str | Path, code: int = 0) -> dict[str, Any]:
    done = run("run", *arguments, "--json")
    assert done.returncode == code, done.stderr
    summary: dict[str, Any] = json.loads(done.stdout)
    published("summary").validate(summary)
    return summary


def figures_in(summary: dict[str, Any]) -> dict[str, Any]:
    (result,) = summary["results"]
    figures: dict[str, Any] = result["key_figures"]
    return figures


def test_figures_that_are_known_beforehand(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "known.yaml"
    path.write_text(GRAPH)
    found = figures_in(summary_of(run, path, *VIRTUAL, "--time", "2"))

    # Every 20 ms the map's message comes with the lidar's of the same instant: 1 ms to the localizer, 2 ms of work,
    # 1 ms to the planner, which then is not at work: it is from 50 k to 50 k + 3 ms.
    pose = found["pose_age"]
    assert (pose["possible"], pose["arrived"], pose["missed"]) == (100, 100, 0)
    assert (pose["response_ns"]["min"], pose["response_ns"]["max"]) == (4 * MS, 4 * MS)
    # Published 3 ms after it was due, and 1 ms on its way.
    plan = found["plan_age"]
    assert (plan["arrived"], plan["response_ns"]["min"], plan["response_ns"]["max"]) == (40, 4 * MS, 4 * MS)
    # 200 of the lidar, 100 of the map, 100 poses, 40 plans.
    assert (found["dropped"]["sent"], found["dropped"]["lost"]) == (440, 0)
    steady = found["steady"]
    assert (steady["jitter_ns"]["count"], steady["jitter_ns"]["max"]) == (39, 0)
    assert (steady["period_ns"]["min"], steady["period_ns"]["max"]) == (50 * MS, 50 * MS)


def test_a_criterion_of_a_key_figure_decides_and_a_wrong_one_is_refused(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "known.yaml"
    path.write_text(GRAPH)
    options = (path, *VIRTUAL, "--time", "1")
    assert summary_of(run, *options, "--success", "plan_age.max <= 4ms", "--success", "dropped == 0")["valid"]
    missed = summary_of(run, *options, "--success", "plan_age.max < 4ms", code=1)
    (trial,) = missed["results"][0]["trials_detail"]
    assert trial["reason"] == "plan age max < 4.00 ms: not met with 4000000 ns"

    refused = run("run", *options, "--success", "plan_ag.max < 4ms")
    assert refused.returncode == 2
    assert "no metric 'plan_ag.max'; did you mean plan_age.max?" in refused.stderr


def test_a_key_figure_is_compared_like_any_metric(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "known.yaml"
    path.write_text(GRAPH)
    levels = ("--factor", "virtual.delay=1ms,2ms", "--metric", "plan_age.max,steady.max")
    summary = summary_of(run, path, "--middleware", "virtual", "--time", "1", "--trials", "3", *levels)
    assert summary["findings"]["metrics"] == ["plan_age.max", "steady.max"]
    medians = [r["intervals"]["plan_age.max"]["value"] for r in summary["results"]]
    assert medians == [4 * MS, 5 * MS]
    told = [r["key_figures"]["plan_age"]["metrics"]["plan_age.max"]["value"] for r in summary["results"]]
    assert told == medians


def test_what_has_priority_waits_for_one_callback_where_others_wait_for_all(run: Run) -> None:
    """As the example in the catalog says."""
    graph = Path(__file__).parents[2] / "catalog/topologies/examples/priorities.yaml"
    options = ("--middleware", "virtual", "--executor", "events,priority,let", "--time", "5")
    summary = summary_of(run, graph, *options)
    worst = {r["executor"]: r["key_figures"]["touch_to_stop"]["response_ns"]["max"] for r in summary["results"]}
    assert worst == {"events": 18 * MS, "priority": 6 * MS, "let": 18 * MS}


# ---- the reference graph of the catalog

# In 5 s by period: floor(5 s / period). A fusion sends as often as its slower input, here the map's 120 ms.
SENT = {
    "FrontLidarDriver": 50,
    "RearLidarDriver": 50,
    "PointCloudMap": 41,
    "Visualizer": 83,
    "Lanelet2Map": 50,
    "EuclideanClusterSettings": 200,
    "PointsTransformerFront": 50,
    "PointsTransformerRear": 50,
    "PointCloudFusion": 50,
    "VoxelGridDownsampler": 50,
    "RayGroundFilter": 50,
    "EuclideanClusterDetector": 50,
    "EuclideanIntersection": 200,
    "ObjectCollisionEstimator": 50,
    "PointCloudMapLoader": 41,
    "NDTLocalizer": 41,
    "Lanelet2GlobalPlanner": 41,
    "Lanelet2MapLoader": 41,
    "ParkingPlanner": 41,
    "LanePlanner": 41,
    "BehaviorPlanner": 50,
    "MPCController": 50,
    "VehicleInterface": 50,
}
SENSORS = list(SENT)[:6]


def test_the_reference_graph_has_its_exact_counts(run: Run) -> None:
    summary = summary_of(
        run, "autoware_reference", "--middleware", "virtual", "--executor", "single_threaded", "--time", "5"
    )
    edges = summary["results"][0]["edges"]
    assert {e["topic"]: e["published"] for e in edges} == SENT
    assert all(e["received"] == SENT[e["topic"]] for e in edges)
    found = figures_in(summary)
    assert (found["dropped"]["sent"], found["dropped"]["lost"]) == (1684, 0)
    path = found["hot_path"]
    assert (path["possible"], path["arrived"], path["missed"]) == (50, 50, 0)
    # Messages take no time, but all 24 nodes share one thread. When a lidar is due, ten callbacks of 1 ms come before
    # the estimator's: the planner's, both transformers', the settings', the controller's, the fusion's, the voxel
    # grid's, the ground filter's, the interface's and the detector's. Every 600 ms, when the map is due as well, there
    # are its loader's, the localizer's, the global planner's and the map loader's, too.
    response = path["response_ns"]
    assert (response["min"], response["max"]) == (10 * MS, 14 * MS)
    assert response["mean"] == (42 * 10 + 8 * 14) / 50 * MS
    # The planner's timer comes first whenever it is due.
    assert found["planner_jitter"]["jitter_ns"]["max"] == 0
    assert found["planner_jitter"]["period_ns"]["count"] == 49


def test_the_reference_graph_on_cyclone_dds(run: Run) -> None:
    summary = summary_of(
        run, "autoware_reference", "--middleware", "cyclonedds", "--executor", "single_threaded", "--time", "2"
    )
    edges = summary["results"][0]["edges"]
    sent = {e["topic"]: e["published"] for e in edges}
    # What timers send is known; with histories of 1 the rest depends on how busy the machine is.
    assert {topic: sent[topic] for topic in SENSORS} == {
        "FrontLidarDriver": 20,
        "RearLidarDriver": 20,
        "PointCloudMap": 16,
        "Visualizer": 33,
        "Lanelet2Map": 20,
        "EuclideanClusterSettings": 80,
    }
    assert sent["BehaviorPlanner"] == 20
    found = figures_in(summary)
    path = found["hot_path"]
    assert path["possible"] == 20
    assert path["arrived"] + path["missed"] == 20
    # Four callbacks of 1 ms lie between the lidar's message and the estimator.
    assert path["response_ns"]["min"] >= 4 * MS
    lost = sum(sum(e["lost"].values()) for e in edges)
    assert found["dropped"]["lost"] == lost
    assert found["dropped"]["sent"] == sum(e["received"] for e in edges) + lost
    assert found["planner_jitter"]["period_ns"]["count"] == 19
