"""Where timers tick in their periods: as asked, recorded, in the trial's seed, and not charged to the response."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from .conftest import Json, Run

# Four timers of one executor, whose callback takes 1 ms, and their subscriptions in another process.
GRAPH = """\
processes:
  - name: sender
    nodes:
      - name: talker
        publishers: [{TOPICS, period: 20ms}]
  - name: receiver
    nodes:
      - name: listener
        subscriptions: [{TOPICS}]
"""
TOPICS = "abcd"
IROBOT = {
    "nodes": [
        {
            "node_name": "talker",
            "publishers": [{"topic_name": t, "msg_type": "stamped10b", "period_ms": 20} for t in TOPICS],
        },
        {"node_name": "listener", "subscribers": [{"topic_name": t, "msg_type": "stamped10b"} for t in TOPICS]},
    ]
}


def entries(end: str) -> str:
    return ", ".join(f"{{topic: {topic}, type: stamped10b{end}}}" for topic in TOPICS)


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    path = tmp_path / "graph.yaml"
    path.write_text(GRAPH.replace("{TOPICS, period: 20ms}", entries(", period: 20ms")).replace("{TOPICS}", entries("")))
    return path


def offsets(run: Path) -> dict[int, list[int]]:
    """Of each trial, in its order."""
    found = {}
    for trial in sorted((run / "trials").iterdir()):
        records = next((trial / "processes").glob("*.jsonl")).read_text().splitlines()
        process = next(r for r in map(json.loads, records) if r["type"] == "process")
        found[int(trial.name[:4])] = [timer["offset_ns"] for timer in process["timers"]]
    return found


def test_the_phase_is_a_factor_whose_levels_are_as_they_say(run: Run, tmp_path: Path, graph: Path) -> None:
    words = "aligned,as_created,staggered,random"
    virtual = ["--middleware", "virtual", "--middleware-option", "virtual.service=1ms"]
    done = run("run", graph, *virtual, "-t", "1", "--trials", "2", "--factor", f"workload.phase={words}", "-o", "out")
    assert done.returncode == 0, done.stderr
    results: dict[str, Json] = {
        r["phase"]: r for r in json.loads((tmp_path / "out/summary.json").read_text())["results"]
    }
    assert sorted(results) == sorted(words.split(","))
    for phase, result in results.items():
        assert result["totals"]["received"] == 2 * 4 * 50, phase
    # Aligned ones wait for each other, at the timers and at the readers; what is 5 ms apart does not.
    assert results["aligned"]["totals"]["response_ns"]["max"] == 5_000_000
    assert results["staggered"]["totals"]["response_ns"]["max"] == 2_000_000
    by_phase: dict[str, list[list[int]]] = {}
    for number, found in offsets(tmp_path / "out").items():
        trial = next((tmp_path / "out/trials").glob(f"{number:04d}_*")) / "trial.json"
        by_phase.setdefault(json.loads(trial.read_text())["phase"], []).append(found)
    assert by_phase["aligned"] == [[0, 0, 0, 0]] * 2
    assert by_phase["staggered"] == [[0, 5_000_000, 10_000_000, 15_000_000]] * 2
    assert by_phase["as_created"][0] == by_phase["as_created"][1]
    assert len(set(by_phase["as_created"][0])) == 4
    assert by_phase["random"][0] != by_phase["random"][1], "each block has its own draw"


def test_a_topology_of_irobot_benchmark_has_the_instants_at_which_its_timers_were_created(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "small.json").write_text(json.dumps(IROBOT))
    done = run("run", "small.json", "-t", "1", "--middleware", "direct", "--executor", "events", "-o", "out")
    assert done.returncode == 0, done.stderr
    (result,) = json.loads((tmp_path / "out/summary.json").read_text())["results"]
    assert result["phase"] == "as_created"
    assert result["totals"]["received"] == 4 * 50
    (found,) = offsets(tmp_path / "out").values()
    assert len(set(found)) == 4
    # Each publisher was created after the one before; a period may end between the two.
    assert all(0 < (after - before) % 20_000_000 < 10_000_000 for before, after in pairwise(found))
