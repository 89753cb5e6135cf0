"""Plans of many random motions of the arm, looked at more finely than the planner did: native, and long."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

TOOL = Path(os.environ.get("PERFLAB_TEST_TOOLS", "")) / "planning_long"


@pytest.mark.long
def test_plans_to_random_goals_keep_limits_and_collide_nowhere() -> None:
    if not TOOL.is_file():
        pytest.skip("no planning_long in PERFLAB_TEST_TOOLS; `make manipulation` installs what it needs")
    done = subprocess.run([TOOL, "--gtest_brief=1"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:]
