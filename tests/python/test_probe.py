"""What Python knows of the plug-ins' interfaces without a compiler."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import SOURCE, build_plugin

from perflab.middleware.plugin_program import ABI, RUNTIME_ABI
from perflab.middleware.probe import Answer, probe


def test_a_python_that_may_not_be_started_is_no_plug_in_that_crashes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "python"
    program.write_text("")
    monkeypatch.setattr(sys, "executable", str(program))
    answer = probe([tmp_path / "x.so"])[tmp_path / "x.so"]
    assert answer.error == f"{program} cannot be started to load it: Permission denied"


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


probing = importlib.import_module("perflab.middleware.probe")  # the package has the function of this name


def library(path: Path, at_load: str) -> Path:
    """One that does that when it is loaded."""
    compiler = shutil.which("cc") or pytest.skip("no C compiler `cc` to build a library with")
    includes = "#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n"
    code = f"{includes}__attribute__((constructor)) static void load(void) {{ {at_load} }}\n"
    subprocess.run([compiler, "-shared", "-fPIC", "-x", "c", "-o", path, "-"], input=code.encode(), check=True)
    return path


def test_plugins_that_are_asked_together_harm_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "PROBE_TIMEOUT_S", 1)
    good, later = tmp_path / "good.so", tmp_path / "later.so"
    build_plugin(good, "good")
    build_plugin(later, "later", "false")
    crashes = library(tmp_path / "crashes.so", "abort();")
    hangs = library(tmp_path / "hangs.so", "for (;;) pause();")
    ends = library(tmp_path / "ends.so", "exit(0);")
    chatters = library(tmp_path / "chatters.so", 'puts("hello"); fflush(stdout);')
    missing = tmp_path / "missing.so"
    answers = probe([good, crashes, hangs, ends, chatters, missing, good, later])
    assert list(answers) == [good, crashes, hangs, ends, chatters, missing, later]
    policies: dict[str, list[str | None]] = {"history": ["supported", None], "latency_budget": ["hint", "a note"]}
    assert answers[good] == Answer("good", "a test double", "0.0.1", True, policies=policies)
    assert answers[later] == Answer("later", "a test double", "0.0.1", False, policies=policies)
    assert [answers[of].error for of in (crashes, ends)] == ["it crashes when it is loaded"] * 2
    assert answers[hangs].error == "it did not answer within 1 s"
    assert re.search("undefined symbol: perflab_middleware_plugin", answers[chatters].error or "")
    assert re.search("cannot open shared object file", answers[missing].error or "")


def test_nothing_is_started_where_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(probing, "ask")
    assert probe([]) == {}
