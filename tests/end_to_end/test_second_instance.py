"""The condition `second_instance` on real processes: how a second server of an action affects clients."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from .conftest import NATIVE, Run
from .traces import trials

Json = dict[str, Any]


def services_of(folder: Path, process: str) -> list[Json]:
    (file,) = folder.glob(f"trials/*/processes/{process}.jsonl")
    records = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    found: list[Json] = [record for record in records if record["type"] == "checkpoint"][-1]["services"]
    return found


@pytest.mark.parametrize("middleware", ["cyclonedds", "fastdds"])
def test_a_second_server_that_hangs_rejects_goals_or_does_not_know_them(
    run: Run, tmp_path: Path, middleware: str
) -> None:
    folder = tmp_path / "made"
    done = run(
        "run", "action_loop", "--middleware", middleware, "--time", "2", "--trials", "1", "--cool-down", "0",
        "--condition", "second_instance:does=hang", "--baseline", "off", "--output", folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (trial,) = trials(folder)
    evidence = trial["evidence"]["second_instance"]
    assert evidence["in_effect"], evidence
    assert evidence["promised"] == evidence["achieved"] | {"process": "server"}
    said: dict[str, int] = {}
    for service in services_of(folder, "clients"):
        for word, count in (service.get("answers") or {}).items():
            said[word] = said.get(word, 0) + count
    # Whose answer is first is not determined; each goal meets one or the other, and none comes to its end.
    assert said.get("rejected", 0) + said.get("unknown", 0) > 0
    assert said.get("succeeded", 0) == 0


@pytest.mark.skipif(
    not NATIVE or not os.access(Path(NATIVE) / "perflab-simulator", os.X_OK),
    reason="perflab-simulator is not built; `make manipulation` installs what it needs",
)
def test_a_controller_that_was_left_behind_makes_motions_fail(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "made"
    done = run(
        "run", "manipulation", "--trials", "1", "--cool-down", "0", "--baseline", "off",
        "--condition", "second_instance:process=simulator,does=hang", "--output", folder,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    (trial,) = trials(folder)
    assert trial["own_outcome"]["name"] in ("goal_rejected", "result_unknown")
    assert "CONTROL_FAILED (-4)" in trial["reason"]
    assert trial["own_figures"]["execution_failed"] > 0
