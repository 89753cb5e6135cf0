"""docs/new-middleware.md shows plug-ins as they are; those are compiled, and pass the conformance suite."""

from __future__ import annotations

import itertools
import re

from support import SOURCE

PAGE = (SOURCE / "docs" / "new-middleware.md").read_text("utf-8")
SHOWN = re.findall(r"^`([^`\n]+)`:\n\n```\w+\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
SHM = "native/middleware/shm"
SMALLEST = (
    "native/middleware/smallest_c/plugin.c",
    "native/middleware/smallest_cpp/plugin.cpp",
    "plugins/smallest/src/lib.rs",
)
STEPS = ("## Step 1: ", "## Step 2: ", "## Step 3: ", "## A real one")


def test_each_step_shows_the_smallest_plug_in_of_each_language() -> None:
    for step, after in itertools.pairwise(STEPS):
        part = PAGE.partition(step)[2].partition(after)[0]
        assert [file for file in SMALLEST if f"`{file}`:" not in part] == [], step
    suite = (SOURCE / "tests/conformance/middleware/CMakeLists.txt").read_text("utf-8")
    for language in ("c", "cpp", "rust"):
        assert f"perflab_middleware_conformance(perflab_middleware_smallest_{language})\n" in suite


def test_the_code_on_the_page_is_that_of_the_plug_in() -> None:
    sources = {f"{SHM}/{name}.cpp" for name in ("plugin", "ring", "writer", "waitset")}
    assert sources < {file for file, _ in SHOWN}
    for file, code in SHOWN:
        assert code in (SOURCE / file).read_text("utf-8"), f"{file} does not have:\n{code}"


def test_the_page_shows_all_that_a_middleware_is_made_of() -> None:
    shown = dict(SHOWN)
    module = "perflab/middleware/shm.py"
    assert shown[module] == (SOURCE / module).read_text("utf-8")
    assert shown[f"{SHM}/CMakeLists.txt"].startswith("perflab_middleware_plugin(shm ")
    suite = shown["tests/conformance/middleware/CMakeLists.txt"]
    assert suite == "perflab_middleware_conformance(perflab_middleware_shm)\n"
    assert shown["tests/conformance/refusals.cmake"].startswith("set(perflab_refused_by_shm ")
