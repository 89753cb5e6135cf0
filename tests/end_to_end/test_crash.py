"""The condition `crash` on real processes: a reader is killed, comes back, and every message is accounted for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .conftest import Run

pytestmark = pytest.mark.alone


@pytest.mark.parametrize("middleware", ["shm", pytest.param("cyclonedds", marks=pytest.mark.long)])
def test_a_reader_that_crashes_comes_back_and_the_other_one_misses_nothing(
    run: Run, tmp_path: Path, middleware: str
) -> None:
    folder = tmp_path / "made"
    done = run(
        "run", "pubsub:rate=200,subscribers=2,depth=1000", "--middleware", middleware, "--time", "3",
        "--condition", "crash:process=subscriber_2,at=20,back_after=200ms", "--baseline", "off",
        "--output", str(folder),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads((folder / "summary.json").read_text())["results"][0]
    trial = result["trials_detail"][0]
    assert (trial["outcome"], trial["complete"], trial["evidence"]["crash"]["in_effect"]) == ("success", True, True)
    edges: dict[str, Any] = {edge["subscription"]: edge for edge in result["edges"]}
    assert sum(edges["subscriber_1"]["lost"].values()) == 0
    crashed = edges["subscriber_2"]
    assert crashed["received"] + sum(crashed["lost"].values()) == crashed["sent"]
    (recovery,) = trial["recoveries"]
    assert 0 < recovery["matched_ns"] <= recovery["first_message_ns"]
    assert recovery["missed"] >= 30  # 200 ms at 200 Hz, and what it takes to start
    assert crashed["lost"]["gap"] >= recovery["missed"]
    processes = json.loads(next(folder.glob("trials/*/trial.json")).read_text())["processes"]
    assert (processes["subscriber_2"]["status"], processes["subscriber_2_2"]["continues"]) == (-9, "subscriber_2")
    assert trial["system"]["minor_faults"] > 0
