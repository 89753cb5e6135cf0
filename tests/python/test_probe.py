"""What Python knows of the plug-ins' interfaces without a compiler."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest
from support import SOURCE

from perflab.middleware.plugin_program import ABI, RUNTIME_ABI


def test_a_python_that_may_not_be_started_is_no_plug_in_that_crashes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "python"
    program.write_text("")
    monkeypatch.setattr(sys, "executable", str(program))
    answer = importlib.import_module("perflab.middleware.probe").probe(tmp_path / "x.so")
    assert answer.error == f"{program}, which would ask it, cannot be started: Permission denied"


@pytest.mark.parametrize(
    ("header", "name", "known"),
    [
        ("native/middleware/middleware.h", "PERFLAB_MIDDLEWARE_ABI", ABI),
        ("native/runtime/plugin.h", "kPluginAbi", RUNTIME_ABI),
    ],
)
def test_the_interface_is_the_one_of_the_header(header: str, name: str, known: int) -> None:
    text = (SOURCE / header).read_text()
    assert re.findall(rf"\b{name}(?: =)? (\d+)u?\b", text) == [str(known)]
