"""A flood that its reader cannot stand, throttled for real: the rate falls, and the reader keeps up."""

from __future__ import annotations

import itertools
import json
import math
import operator
from pathlib import Path

from .conftest import Run
from .traces import trials

# 2 x 1000 messages/s of 1 ms of work each, for one thread.
FLOOD = "message_flood:publishers=2,rate=1000,work=1ms,at_least=10"


def test_a_throttled_flood_falls_to_what_its_reader_can_take(run: Run, pingpong: Path, tmp_path: Path) -> None:
    folder = tmp_path / "made"
    done = run(
        "run", pingpong, "--time", "2", "--trials", "1", "--cool-down", "0", "--baseline", "off", "--observer-control",
        "off", "--condition", FLOOD, "--mitigation", "adaptive_throttling:target=30ms", "--output", folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    plain, throttled = sorted(trials(folder), key=lambda trial: len(trial["conditions"]))
    assert throttled["mitigations"] == ["adaptive_throttling"]
    assert throttled["treatment"] == "message_flood + adaptive_throttling"
    evidence = throttled["evidence"]["adaptive_throttling"]
    assert evidence["in_effect"], evidence
    achieved = evidence["achieved"]
    assert achieved["withheld"] > 0
    assert achieved["decreases"] > 0
    assert achieved["acknowledged"] > 0
    assert len(achieved["rate_in_second"]) == 2
    flooded = [trial["evidence"]["message_flood"] for trial in (plain, throttled)]
    assert all(one["in_effect"] for one in flooded), flooded
    sent = [one["achieved"]["sent"] for one in flooded]
    assert sent[1] + achieved["withheld"] <= 4000 + 200
    assert sent[1] < 0.8 * sent[0]
    # The plan of the trial has it, and another process could run it again.
    plans = [json.loads(path.read_text()) for path in sorted(folder.glob("trials/*/plan.json"))]
    named = sorted([c["name"] for c in plan["conditions"]] for plan in plans)
    assert named == [["message_flood"], ["message_flood", "adaptive_throttling"]]


def test_rates_rise_evenly_and_are_halved_in_virtual_time(run: Run, pingpong: Path, tmp_path: Path) -> None:
    folder = tmp_path / "made"
    done = run(
        "run", pingpong, "--middleware", "virtual", "--time", "3", "--trials", "1", "--baseline", "off",
        "--observer-control", "off",
        "--condition", "message_flood:publishers=1,rate=2000,readers=inside,process=pong,work=1ms",
        "--mitigation", "adaptive_throttling:target=10ms,increase=5,decrease=50,lowest=1", "--output", folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    records = [json.loads(line) for path in folder.glob("trials/*/processes/*.jsonl") for line in path.open()]
    rates = [rate for record in records if record["type"] == "throttle" for rate in record["rate_hz"]]
    steps = list(itertools.pairwise([2000.0, *rates]))
    for before, after in steps:
        allowed = (max(20.0, before / 2), min(2000.0, before + 100), before)
        assert any(math.isclose(after, one) for one in allowed), (before, after)
    rises, falls = (sum(compare(after, before) for before, after in steps) for compare in (operator.gt, operator.lt))
    # Its reader can take 1000 messages/s: the rate goes up and down about that.
    assert rises > 10
    assert falls >= 2
    assert max(rates[5:]) < 1500
