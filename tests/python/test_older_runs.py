"""Run directories of other versions of perflab: what an older one wrote is read, what a later one wrote is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Perflab
from made_run import MadeTrial, Stream, arrivals, make_run

from perflab.errors import BadInput
from perflab.models import as_json
from perflab.runs.rundata import open_run

# What the first version did not write: identities, treatments, conditions' parameters, the document of the experiment.
LATER_IN_MANIFESTS = {"run_id", "experiment", "treatments", "variants", "inventory", "controller", "versions"}
LATER_IN_TRIALS = {"run_id", "block", "phase", "treatment", "purpose", "factors", "observers", "evidence", "cool_down"}


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """A run as the first version wrote it, whose repetitions were not called blocks."""
    talk = Stream("talker", "chat", "listener", 10, 3, arrivals([100, 200, 3000]))
    path = make_run(tmp_path / "older", {"mouth": ["talker"], "ear": ["listener"]}, [MadeTrial([talk], ipc="off")])
    (path / "summary.json").unlink()
    for file, later in ((path / "manifest.json", LATER_IN_MANIFESTS), *trials(path)):
        document = json.loads(file.read_text())
        assert document["schema"] == 1
        file.write_text(json.dumps({key: value for key, value in document.items() if key not in later}))
    return path


def trials(path: Path) -> list[tuple[Path, set[str]]]:
    return [(file, LATER_IN_TRIALS) for file in sorted(path.glob("trials/*/trial.json"))]


def test_an_older_run_has_the_numbers_that_it_recorded(older: Path) -> None:
    run = open_run(older)
    (result,) = as_json(run.summary)["results"]
    assert (result["totals"]["received"], result["totals"]["late"]) == (3, 1)
    assert (run.trials[0].block, run.trials[0].phase) == (None, "aligned")  # there was no other phase
    assert run.trials[0].edges["received"].to_list() == [3]


@pytest.mark.parametrize("words", [["show"], ["report"], ["export", "--format", "csv"], ["clean"]])
def test_verbs_read_an_older_run(perflab: Perflab, older: Path, words: list[str]) -> None:
    done = perflab(words[0], str(older), *words[1:])
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("schema", [None, 0, 2])
def test_a_run_of_another_schema_is_refused_in_one_line(perflab: Perflab, older: Path, schema: int | None) -> None:
    manifest = json.loads((older / "manifest.json").read_text())
    (older / "manifest.json").write_text(json.dumps({**manifest, "schema": schema}))
    with pytest.raises(BadInput, match="of another version"):
        open_run(older)
    for words in (["show", str(older)], ["report", str(older)], ["run", "--resume", str(older)]):
        done = perflab(*words)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.count("\n") == 1
        assert f"schema {schema!r} instead of 1" in done.stderr
