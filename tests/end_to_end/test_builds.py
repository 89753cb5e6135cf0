"""Two builds of one middleware in one run: each process has mapped the library of its own build, by the kernel."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from perflab.middleware import REGISTRY, select
from perflab.middleware.installation import is_of
from perflab.middleware.probe import probe
from perflab.native import Native

from .conftest import NATIVE, Run


def copies(name: str, tmp_path: Path) -> list[Path]:
    """The library of a middleware in two folders; skips where there is none."""
    plugin = Native(Path(NATIVE)).middleware_library(name)
    if not plugin.is_file():
        pytest.skip(f"the plug-in {name} was not built")
    libraries = [path for path in map(Path, probe([plugin])[plugin].libraries) if is_of(REGISTRY[name], path)]
    assert len(libraries) == 1
    prefixes = [tmp_path / "before" / "install", tmp_path / "after" / "install"]
    for prefix in prefixes:
        (prefix / "lib").mkdir(parents=True)
        for path in libraries[0].parent.glob(f"{libraries[0].name.partition('.so')[0]}.so*"):
            shutil.copy2(path, prefix / "lib", follow_symlinks=False)
    return prefixes


@pytest.mark.parametrize("name", ["cyclonedds", "fastdds"])
def test_each_process_uses_the_library_of_its_build(name: str, run: Run, tmp_path: Path) -> None:
    before, after = copies(name, tmp_path)
    out = tmp_path / "run"
    done = run(
        "run", "pubsub:rate=100", "--middleware", f"{name}@{before},{name}@{after}", "-t", "0.3", "--trials", "1",
        "--cool-down", "0", "-o", out, "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    used = {}
    for path in sorted(out.glob("trials/*/trial.json")):
        trial = json.loads(path.read_text())
        libraries = {library for process in trial["processes"].values() for library in process["libraries"]}
        assert libraries == {trial["middleware"]["library"]}
        used[trial["middleware"]["name"]] = trial["middleware"]["library"]
    assert set(used) == {f"{name}@before", f"{name}@after"}
    assert Path(used[f"{name}@before"]).is_relative_to(before)
    assert Path(used[f"{name}@after"]).is_relative_to(after)
    manifest = json.loads((out / "manifest.json").read_text())
    assert [m["prefix"] for m in manifest["middlewares"]] == [str(before), str(after)]
    assert len(json.loads(done.stdout)["results"]) == 2


def test_the_version_is_that_of_the_build(tmp_path: Path) -> None:
    before, _ = copies("cyclonedds", tmp_path)
    native = Native(Path(NATIVE))
    ((of_machine,), (of_build,)) = select(f"cyclonedds,cyclonedds@{before}", [], native)
    assert of_build.version == of_machine.version
    assert of_build.name == "cyclonedds@install"
