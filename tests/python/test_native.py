"""What is said of a native program that is not there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support import SOURCE

from perflab.errors import Unavailable
from perflab.native import MANIPULATION, Native


def test_a_missing_program_of_the_arm_names_the_command_that_builds_it(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="build it with `make manipulation`"):
        Native(tmp_path).program("perflab-simulator")
    with pytest.raises(Unavailable, match="build it with `make`"):
        Native(tmp_path).program("perflab-node")


def test_every_program_of_the_arm_is_known() -> None:
    built = {
        name
        for file in (SOURCE / "native" / "manipulation").rglob("CMakeLists.txt")
        for name in re.findall(r"perflab_program\(\s*(perflab-\S+)", file.read_text("utf-8"))
    }
    assert built <= MANIPULATION
