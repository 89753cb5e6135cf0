"""Kinds of other people's packages: one of each sort from a package outside perflab, and what is wrong with others."""

from __future__ import annotations

import csv
import itertools
import json
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from support import HERE, SOURCE, build_plugin, run_here

import perflab.condition
import perflab.middleware
import perflab.mitigation
import perflab.observer
from perflab.condition import Condition
from perflab.condition.kinds import REGISTRY as CONDITIONS
from perflab.middleware import REGISTRY as MIDDLEWARES
from perflab.mitigation.kinds import REGISTRY as MITIGATIONS
from perflab.observer.kinds import REGISTRY as OBSERVERS
from perflab.plugins import Registry
from perflab.registry import Kind
from perflab.report.serve.state import Watch
from tests.said import without_waits

PACKAGE = HERE.parent / "data" / "package" / "lab_extras"
GROUPS = {
    "perflab.conditions": {"solar_flare": "lab_extras.solar_flare:KIND"},
    "perflab.observers": {"notebook": "lab_extras.notebook:KIND"},
    "perflab.workloads": {"pair": "lab_extras.pair:KIND", "robot": "lab_extras.robot:KIND"},
    "perflab.middlewares": {"lab_links": "lab_extras.lab_links:KIND"},
    "perflab.exporters": {"shopping_list": "lab_extras.shopping_list:KIND"},
    "perflab.metrics": {"tail": "lab_extras.tail:KIND"},
}


def install(folder: Path, groups: Mapping[str, Mapping[str, str]], name: str = "lab-extras") -> None:
    """What `pip install` leaves of a package with these entry points."""
    if name == "lab-extras":
        shutil.copytree(PACKAGE, folder / "lab_extras", ignore=shutil.ignore_patterns("__pycache__"))
    about = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in entries.items()) for group, entries in groups.items()]
    (about / "entry_points.txt").write_text("\n".join(lines))


def perflab_with(folder: Path, *words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join((str(SOURCE), str(folder)))
    return subprocess.run(
        [sys.executable, "-m", "perflab", *map(str, words)],
        env={**os.environ, "PYTHONPATH": path, **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_document_shows_what_is_installed_here() -> None:
    text = (SOURCE / "docs" / "adding.md").read_text("utf-8")
    shown = dict(re.findall(r"^`lab_extras/(\w+\.py)`:\n\n```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    assert {
        "solar_flare.py",
        "notebook.py",
        "pair.py",
        "robot.py",
        "lab_links.py",
        "lab_wire.py",
        "shopping_list.py",
        "tail.py",
    } == set(shown)
    for name, code in shown.items():
        assert code == (PACKAGE / name).read_text("utf-8"), name
    (points,) = re.findall(r"^```toml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert tomllib.loads(points)["project"]["entry-points"] == GROUPS


@pytest.mark.native
def test_a_package_adds_one_of_each(tmp_path: Path) -> None:
    """Its condition disturbs its workload on its middleware, its observer records, its exporter writes the results."""
    install(tmp_path, GROUPS)
    run = tmp_path / "run"
    words = ("pair:rate=20", "--middleware", "lab_links", "--factor", "solar_flare.strength=0,3", "--observer")
    done = perflab_with(tmp_path, "sweep", *words, "notebook:colour=red", "--trials", "2", "--time", "1", "-o", run)
    assert (done.returncode, without_waits(done.stderr)) == (0, "")
    summary = json.loads((run / "summary.json").read_text())
    (trial,) = (t for r in summary["results"] for t in r["trials_detail"] if t["order"] == 1)
    assert trial["outcome"] == "success"
    disturbed = [r for r in summary["results"] if r["conditions"] == ["solar_flare"]]
    assert [r["factors"] for r in disturbed] == [{"solar_flare.strength": 3}]
    assert [r["totals"]["sent"] for r in disturbed] == [40]
    evidence = disturbed[0]["trials_detail"][0]["evidence"]["solar_flare"]
    assert evidence["achieved"] == {"strength": 3}
    notes = sorted(run.glob("trials/*/notebook.txt"))
    assert [note.read_text() for note in notes] == ["red"] * 4

    exported = perflab_with(tmp_path, "export", run, "--format", "shopping_list", "--bullet", "*")
    assert (exported.returncode, exported.stderr) == (0, "")
    lists = sorted(run.glob("export/shopping_list/*/list.txt"))
    assert [path.read_text() for path in lists] == ["* 20 messages\n"] * 6, "two of them controls"
    refused = perflab_with(tmp_path, "export", run, "--format", "csv", "--bullet", "*")
    assert (refused.returncode, refused.stderr) == (2, "perflab: --bullet belongs to --format shopping_list\n")


@pytest.mark.native
def test_a_workload_has_figures_and_outcomes_of_its_own_wherever_there_are_some(tmp_path: Path) -> None:
    install(tmp_path, GROUPS)
    run = tmp_path / "run"
    levels = ("--factor", "workload.least=0,15,1000", "--success", "heard >= 10 Hz")
    words = ("pair:rate=20", "--middleware", "lab_links", *levels, "--trials", "3", "--time", "1", "-o", run)
    done = perflab_with(tmp_path, "sweep", *words)
    quiet = "too quiet: 20 words per second were heard, 1000 had to be"
    assert (done.returncode, "least=1000: 3 trials of 1 s, 3 failed (3 too quiet)" in done.stdout) == (0, True)
    assert f"trial 2: {quiet}" in done.stdout or f"trial 1: {quiet}" in done.stdout

    summary = json.loads((run / "summary.json").read_text())
    Draft202012Validator(json.loads((SOURCE / "docs/schema/summary.schema.json").read_text())).validate(summary)
    *heard, unheard = summary["results"]
    assert [r["outcomes"]["success"] for r in (*heard, unheard)] == [3, 3, 0]
    own = {"name": "too_quiet", "words": "too quiet", "of": "failed"}
    assert unheard["outcomes"] == {
        "success": 0, "failed": 3, "invalid": 0, "harness_error": 0, "interrupted": 0, "own": [{**own, "trials": 3}]
    }  # fmt: skip
    assert [(t["outcome"], t["own_outcome"], t["measured"]) for t in unheard["trials_detail"]] == [
        ("failed", own, True)
    ] * 3, "it ran to its end, and its figures are those of a whole trial"
    figure = unheard["key_figures"]["heard"]
    assert (figure["value"], figure["unit"], figure["better"], figure["metrics"]["heard"]["n"]) == (
        20,
        "Hz",
        "higher",
        3,
    )
    assert "heard" in summary["findings"]["metrics"], "it is compared without being asked for"

    for folder in tmp_path.glob("lab_extras*"):  # what a run says needs nothing that made it
        shutil.rmtree(folder)
    again = shutil.copytree(run, tmp_path / "again")
    said_by: tuple[tuple[str | Path, ...], ...] = (
        (f"trial 2: {quiet}", "show", run),
        ("words heard", "compare", again, run),
        ("3/3 [44, 100] %", "compare", again, run),
        ("words heard", "check", run, "--baseline", again),
        ("0 of 3 (3 too quiet)", "check", run, "--baseline", again),
        ("page.html", "report", run, "--still", "-o", tmp_path / "page.html"),
        ("paper", "report", run, "--latex", tmp_path / "paper"),
        ("trials.csv", "export", run, "--format", "csv", "-o", tmp_path / "csv"),
    )
    for words_said, *verb in said_by:
        done = run_here([str(word) for word in verb], tmp_path, os.environ)
        assert str(words_said) in done.stdout, (verb, done.stdout, done.stderr)
    assert "words heard" in (tmp_path / "paper" / "results.tex").read_text()
    assert "too quiet" in (tmp_path / "paper" / "outcomes.tex").read_text()
    page = (tmp_path / "page.html").read_text()
    assert "words heard" in page and "3 failed (3 too quiet)" in page
    (table,) = (tmp_path / "csv").rglob("trials.csv")
    rows = list(csv.DictReader(table.open()))
    assert {(row["own_outcome"], row["heard"]) for row in rows} == {("", "20"), ("too quiet", "20")}


@pytest.mark.native
@pytest.mark.long
def test_a_command_of_a_kind_has_figures_and_outcomes_of_its_own_wherever_there_are_some(tmp_path: Path) -> None:
    """One that fails is called what the kind calls it; one that does not, and misses its goals, is a failure of it."""
    install(tmp_path, GROUPS)
    run = tmp_path / "run"
    levels = ("--factor", "workload.floor=dry,wet,blocked", "--success", "goals >= 1", "--cool-down", "0")
    done = perflab_with(tmp_path, "sweep", "robot:goals=4", *levels, "--trials", "2", "--time", "5", "-o", run)
    assert (done.returncode, without_waits(done.stderr)) == (0, "")
    missed = "control failed: 4 of 4 goals missed"
    assert missed in done.stdout

    summary = json.loads((run / "summary.json").read_text())
    Draft202012Validator(json.loads((SOURCE / "docs/schema/summary.schema.json").read_text())).validate(summary)
    results = {r["factors"]["workload.floor"]: r for r in summary["results"]}
    own = {
        floor: [(t["outcome"], t["own_outcome"] and t["own_outcome"]["name"]) for t in result["trials_detail"]]
        for floor, result in results.items()
    }
    assert own == {
        "dry": [("success", None)] * 2,
        "wet": [("failed", "control_failed")] * 2,
        "blocked": [("failed", "planning_failed")] * 2,
    }
    assert "exited with 1" in results["blocked"]["trials_detail"][0]["reason"]
    assert [results[floor]["key_figures"]["goals"]["value"] for floor in ("dry", "wet")] == [4, 0]
    manifest = json.loads((run / "manifest.json").read_text())["workload"]
    assert (manifest["kind"], manifest["name"], manifest["parameters"]["goals"]) == ("robot", "robot", 4)
    assert manifest["command"]["ends"] == "itself"
    refused = perflab_with(tmp_path, "run", "robot", "--factor", "workload.depth=1,5")
    assert (refused.returncode, "workload robot has no parameter 'depth'" in refused.stderr) == (2, True)
    refused = perflab_with(tmp_path, "run", "robot", "--executor", "events")
    assert (refused.returncode, "this workload is a command" in refused.stderr) == (2, True)

    for folder in tmp_path.glob("lab_extras*"):  # what a run says needs nothing that made it
        shutil.rmtree(folder)
    again = shutil.copytree(run, tmp_path / "again")
    said_by: tuple[tuple[str | Path, ...], ...] = (
        (missed, "show", run),
        ("goals reached", "compare", again, run),
        ("goals reached", "check", run, "--baseline", again),
        ("page.html", "report", run, "--still", "-o", tmp_path / "page.html"),
        ("paper", "report", run, "--latex", tmp_path / "paper"),
        ("trials.csv", "export", run, "--format", "csv", "-o", tmp_path / "csv"),
    )
    for words_said, *verb in said_by:
        done = run_here([str(word) for word in verb], tmp_path, os.environ)
        assert str(words_said) in done.stdout, (verb, done.stdout, done.stderr)
    paper = "".join((tmp_path / "paper" / name).read_text() for name in ("results.tex", "report.tex"))
    for text in (paper, (tmp_path / "page.html").read_text()):
        assert "goals reached" in text and "2 planning failed" in text
    (table,) = (tmp_path / "csv").rglob("trials.csv")
    rows = {(row["own_outcome"], row["goals"]) for row in csv.DictReader(table.open())}
    assert rows == {("", "4"), ("control failed", "0"), ("planning failed", "0")}
    live = json.loads(Watch(str(run)).state().body({}))["run"]
    assert [[(f["words"], f["text"]) for f in r["own"]] for r in live["results"][:2]] == [
        [("goals reached", "4")],
        [("goals reached", "0")],
    ]
    assert missed in {trial["reason"] for trial in live["trials"]}


@pytest.mark.parametrize(
    ("what", "name", "parameter"),  # behind those that all of a kind have
    [
        ("conditions", "solar_flare", "strength: how strong it is (1)"),
        ("observers", "notebook", "colour: of the ink (blue)"),
        ("workloads", "pair", "rate: messages per second (10)"),
        ("workloads", "robot", "floor: what it drives on (dry)"),
        ("middlewares", "lab_links", "delay: every message arrives that much after it was sent (0ns)"),
        ("exporters", "shopping_list", "bullet: What begins a line. (-)"),
    ],
)
def test_it_is_listed_with_its_parameters(what: str, name: str, parameter: str, tmp_path: Path) -> None:
    install(tmp_path, GROUPS)
    done = perflab_with(tmp_path, "list", what)
    lines = done.stdout.splitlines()
    (place,) = (n for n, line in enumerate(lines) if line.startswith(f"{name} "))
    mine = itertools.takewhile(lambda line: line.startswith(" "), lines[place + 1 :])
    assert parameter in (line.strip() for line in mine)


def test_the_schema_and_completion_have_it(tmp_path: Path) -> None:
    install(tmp_path, GROUPS)
    asked = {"_PERFLAB_COMPLETE": "complete_fish", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    for typed, expected in (
        ("run --condition solar_flare:s", "solar_flare:strength="),
        ("run --observer notebook:colour=r", "notebook:colour=red"),
        ("run --middleware lab_", "lab_links"),
        ("run --factor workload.rat", "workload.rate="),
        ("run pai", "pair"),
        ("export --format sh", "shopping_list"),
    ):
        done = perflab_with(tmp_path, **asked, _TYPER_COMPLETE_ARGS=f"perflab {typed}")
        assert done.stdout.splitlines() == [expected]
    code = "import json; from perflab.design.document import json_schema; print(json.dumps(json_schema()))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(SOURCE), str(tmp_path)))}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert "solar_flare" in json.loads(done.stdout)["$defs"]


WRONG = {
    "cpu_load": "lab_extras.solar_flare:KIND",
    "ends": "lab_extras.ends:KIND",
    "gone": "lab_extras.no_such_module:KIND",
    "solar_wind": "lab_extras.solar_flare:KIND",
    "text": "lab_extras.solar_flare:NAME",
}


def test_what_is_wrong_is_one_line_each_and_leaves_the_others(tmp_path: Path) -> None:
    install(tmp_path, {"perflab.conditions": {**WRONG, **GROUPS["perflab.conditions"]}})
    install(tmp_path, {"perflab.conditions": GROUPS["perflab.conditions"]}, "second-lab")
    done = perflab_with(tmp_path, "list", "conditions")
    assert done.returncode == 0
    begin = "perflab: condition"
    assert done.stderr.splitlines() == [
        f"{begin} cpu_load of lab-extras 1.0 is left out: there is already a condition of this name",
        f"{begin} ends of lab-extras 1.0 is left out: SystemExit: not today",
        f"{begin} gone of lab-extras 1.0 is left out: ModuleNotFoundError: No module named 'lab_extras.no_such_module'",
        f"{begin} solar_flare of second-lab 1.0 is left out: there is already a condition of this name",
        f"{begin} solar_wind of lab-extras 1.0 is left out: it calls itself solar_flare; its entry point must have the "
        "same name",
        f"{begin} text of lab-extras 1.0 is left out: lab_extras.solar_flare:NAME is not a Kind",
    ]
    names = [line.split()[0] for line in done.stdout.splitlines() if not line.startswith(" ")]
    assert names == [*CONDITIONS, "solar_flare"]
    asked = {"_PERFLAB_COMPLETE": "complete_fish", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    completed = perflab_with(tmp_path, **asked, _TYPER_COMPLETE_ARGS="perflab run --condition so")
    assert (completed.stdout, completed.stderr) == ("solar_flare\n", ""), "a shell would show what is said"


def test_a_verb_that_needs_no_kinds_says_nothing_of_them(tmp_path: Path) -> None:
    install(tmp_path, {"perflab.conditions": WRONG})
    done = perflab_with(tmp_path, "run", "--help")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_middleware_of_a_package_has_its_plug_in_where_it_says(tmp_path: Path) -> None:
    install(tmp_path, {"perflab.middlewares": {"lab_wire": "lab_extras.lab_wire:KIND"}})

    def row() -> dict[str, object]:
        listed = json.loads(perflab_with(tmp_path, "list", "middlewares", "--json").stdout)
        (found,) = (row for row in listed if row["name"] == "lab_wire")
        return dict(found)

    library = tmp_path / "lab_extras" / "liblab_wire.so"
    assert not row()["available"]
    assert f"{library.name} is not in {library.parent}; build lab_extras" in str(row()["summary"])
    build_plugin(library, "lab_wire")
    assert (row()["available"], row()["version"]) == (True, "0.0.1")


def test_a_kind_is_found_without_the_others() -> None:
    registry: Registry[Kind[Condition]] = Registry("condition", "perflab.condition", Kind)
    assert registry["cpu_load"] is CONDITIONS["cpu_load"] and "kinds" not in registry
    assert "cpu_load_2" not in registry and registry.get("no/module") is None
    alone: Registry[Kind[Condition]] = Registry("condition", "perflab.condition", Kind)
    assert alone.get("cpu_load") is not None and alone._found is None


@pytest.mark.parametrize(
    ("package", "registry"),
    [
        (perflab.condition, CONDITIONS),
        (perflab.mitigation, MITIGATIONS),
        (perflab.observer, OBSERVERS),
        (perflab.middleware, MIDDLEWARES),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_module_is_enough(package: object, registry: Mapping[str, object]) -> None:
    """The kinds of perflab are those of the modules that are there."""
    modules = {info.name for info in pkgutil.iter_modules(getattr(package, "__path__"))}  # noqa: B009 - of a module
    assert {name.partition("/")[0] for name in registry} <= modules
    assert len(registry) >= 3
