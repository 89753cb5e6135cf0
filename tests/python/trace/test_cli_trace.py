"""`perflab trace` as a user meets it: help, answers as tables and JSON, exit codes, one line per error."""

from __future__ import annotations

import fnmatch
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from made_tables import MadeSource
from opened import needs_library
from reference_traces import RECORDED, reference_trace, trace_folders
from support import SOURCE

import perflab.trace
from perflab.cli import main
from perflab.errors import BadInput
from perflab.trace.source import Reads
from tests.marks import long_but

VERBS = (
    "summary",
    "callbacks",
    "messages",
    "executor",
    "scheduling",
    "compare",
    "export",
    "why",
    "starvation",
    "locks",
)
ANSWERS = VERBS[:5]


def made(threads: int = 1) -> MadeSource:
    phases = ("get_next_ready", "wait_for_work", "get_next_ready", "execute")
    return MadeSource(
        {
            "hosts": [{"name": "robot"}],
            "processes": [{"host": 0, "pid": 10, "name": "talker", "first_ns": 0, "last_ns": 100}],
            "threads": [
                {"host": 0, "process": 0, "tid": 10 + i, "name": "talker", "first_ns": 0, "last_ns": 100}
                for i in range(threads)
            ],
            "phases": [
                {"thread": thread, "phase": phase, "start_ns": 10 * i, "end_ns": 10 * i + 10}
                for thread in range(threads)
                for i, phase in enumerate(phases)
            ],
        },
        traces=[{
            "path": "/traces/made", "uuid": None, "host": "robot", "domain": "ust", "tracer": "lttng-ust",
            "tracer_version": None, "clock": None, "shift_ns": 0, "events": 4, "first_ns": 0, "last_ns": 100,
            "streams": [],
        }],
    )  # fmt: skip


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder that is read as the trace of `made`."""

    def open_trace(paths: Sequence[Path], threads: int = 0, reads: Reads | None = None) -> Any:
        return made(3)

    monkeypatch.setattr(perflab.trace, "open_trace", open_trace)
    (tmp_path / "session").mkdir()
    return tmp_path / "session"


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    code = main([*map(str, arguments)])
    said = capsys.readouterr()
    return code, said.out, said.err


def one_line(text: str) -> str:
    assert text.startswith("perflab: ") and text.endswith("\n") and text.count("\n") == 1, text
    return text


@pytest.mark.parametrize("verb", VERBS)
def test_help_has_an_example(capsys: pytest.CaptureFixture[str], verb: str) -> None:
    code, out, err = run(capsys, "trace", verb, "--help")
    assert (code, err) == (0, "")
    assert f"    perflab trace {verb} " in out
    assert "--threads" in out


def test_the_verbs_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "trace", "--help")
    assert code == 0
    assert all(f"  {verb} " in out for verb in VERBS)
    assert "trace" in run(capsys, "--help")[1]
    assert "Missing command" in one_line(run(capsys, "trace")[2])


@pytest.mark.parametrize("verb", ANSWERS)
def test_answers_are_json_with_rows_notes_and_reasons(
    capsys: pytest.CaptureFixture[str], opened: Path, verb: str
) -> None:
    code, out, err = run(capsys, "trace", verb, opened, "--json")
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert (document["schema_version"], document["kind"]) == (1, verb)
    assert isinstance(document.pop("quality"), list)
    assert isinstance(document.pop("warnings"), list)
    assert document.pop("scope") is None
    sections = {name: value for name, value in document.items() if name not in ("schema_version", "kind")}
    assert sections
    assert all(set(section) == {"rows", "notes", "reasons"} for section in sections.values())


@pytest.mark.parametrize("verb", ANSWERS)
def test_answers_are_tables_that_fit(
    capsys: pytest.CaptureFixture[str], opened: Path, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for width in (80, 120):
        monkeypatch.setenv("COLUMNS", str(width))
        code, out, err = run(capsys, "trace", verb, opened)
        assert (code, err) == (0, "")
        assert out.strip()
        assert max(map(len, out.splitlines())) <= width


def test_a_tree_is_not_cut_unless_it_is_asked_for(capsys: pytest.CaptureFixture[str], opened: Path) -> None:
    assert run(capsys, "trace", "executor", opened)[1].count("get_next_ready_executable") == 3
    few = run(capsys, "trace", "executor", opened, "--top", "9")[1]
    assert few.count("get_next_ready_executable") == 1
    assert "The first 9 of 27 rows" in few
    document = json.loads(run(capsys, "trace", "executor", opened, "--json", "--top", "9")[1])
    assert len(document["executor"]["rows"]) == 9


def test_two_traces_side_by_side(capsys: pytest.CaptureFixture[str], opened: Path) -> None:
    (opened.parent / "other").mkdir()
    code, out, err = run(capsys, "trace", "compare", opened, opened.parent / "other", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["kind"] == "compare"
    code, out, _ = run(capsys, "trace", "compare", opened, opened.parent / "other")
    assert code == 0
    assert "one trial" in " ".join(out.split())
    code, _, err = run(capsys, "trace", "compare", opened, opened)
    assert (code, "named twice" in one_line(err)) == (2, True)


def test_export_prints_what_it_wrote(capsys: pytest.CaptureFixture[str], opened: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    code, said, err = run(capsys, "trace", "export", opened, "--output", out)
    assert (code, err) == (0, "")
    assert sorted(said.splitlines()) == sorted(str(path) for path in out.rglob("*") if path.is_file())
    code, _, err = run(capsys, "trace", "export", opened, "--output", out)
    assert (code, "--force" in one_line(err)) == (2, True)
    code, said, _ = run(capsys, "trace", "export", opened, "--output", out, "--force", "--json", "--format", "parquet")
    assert code == 0
    assert json.loads(said)["format"] == "parquet"
    code, _, err = run(capsys, "trace", "export", opened, "--output", tmp_path / "x", "--format", "xml")
    assert (code, "csv, parquet" in one_line(err)) == (2, True)


@pytest.mark.parametrize("verb", VERBS)
def test_a_path_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path, verb: str) -> None:
    others: dict[str, list[str | Path]] = {"compare": [tmp_path / "b"], "export": ["-o", tmp_path / "out"]}
    more = others.get(verb, [])
    code, out, err = run(capsys, "trace", verb, tmp_path / "nothing", *more)
    assert (code, out) == (2, "")
    assert f"{tmp_path}/nothing" in one_line(err)
    assert not (tmp_path / "out").exists()
    code, _, err = run(capsys, "trace", verb, "a" * 300, *more)
    assert code == 2
    one_line(err)


def test_what_the_reader_says_is_the_line(
    capsys: pytest.CaptureFixture[str], opened: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(paths: Sequence[Path], threads: int = 0, reads: Reads | None = None) -> Any:
        raise BadInput(f"{paths[0]}: no readable events")

    monkeypatch.setattr(perflab.trace, "open_trace", refuse)
    code, out, err = run(capsys, "trace", "summary", opened)
    assert (code, out, err) == (2, "", f"perflab: {opened}: no readable events\n")

    def empty(paths: Sequence[Path], threads: int = 0, reads: Reads | None = None) -> Any:
        return MadeSource({})

    monkeypatch.setattr(perflab.trace, "open_trace", empty)
    assert run(capsys, "trace", "summary", opened) == (2, "", f"perflab: {opened}: no readable events\n")


def test_ctrl_c_is_met_while_the_reader_is_at_work(
    capsys: pytest.CaptureFixture[str], opened: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = threading.Event()

    def slow(paths: Sequence[Path], threads: int = 0, reads: Reads | None = None) -> Any:
        signal.raise_signal(signal.SIGINT)  # its handler runs in the main thread
        released.wait(60)
        return made()

    monkeypatch.setattr(perflab.trace, "open_trace", slow)
    assert run(capsys, "trace", "summary", opened) == (130, "", "perflab: interrupted\n")
    released.set()


@pytest.mark.parametrize("option", [["--threads", "-1"], ["--threads", "x"], ["--top", "0"], ["--walk"]])
def test_wrong_options_are_one_line(capsys: pytest.CaptureFixture[str], opened: Path, option: list[str]) -> None:
    code, _, err = run(capsys, "trace", "summary", opened, *option)
    assert code == 2
    assert option[0] in one_line(err)


# With the real reader -------------------------------------------------------------------------------------------------


# test_nulls_are_explained.py has every answer of every recording, without the command.
QUICK = [("jazzy_small", verb) for verb in ANSWERS] + [(name, "summary") for name in RECORDED]


@pytest.mark.parametrize(("name", "verb"), long_but(QUICK, itertools.product(RECORDED, ANSWERS)))
def test_recorded_traces_are_answered(capsys: pytest.CaptureFixture[str], name: str, verb: str) -> None:
    needs_library()
    folder = reference_trace(name)
    code, out, err = run(capsys, "trace", verb, folder, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["kind"] == verb
    code, out, err = run(capsys, "trace", verb, folder, "--threads", "2")
    assert (code, err) == (0, "")
    assert out


def test_recorded_traces_are_compared_and_exported(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    needs_library()
    small, intra = reference_trace("jazzy_small"), reference_trace("jazzy_small_ipc")
    code, out, err = run(capsys, "trace", "compare", small, intra, "--json")
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert document["callbacks"]["rows"]
    assert document["unmatched"]["rows"]
    code, out, err = run(capsys, "trace", "export", small, "-o", tmp_path / "out", "--format", "parquet", "--json")
    assert (code, err) == (0, "")
    files = {entry["file"]: entry for entry in json.loads(out)["files"]}
    assert files["tables/phases.parquet"]["rows"] == pl.read_parquet(tmp_path / "out/tables/phases.parquet").height > 0


def documented() -> dict[tuple[str, str], list[str]]:
    """Answer and section -> columns, with * for statistics, of the table in docs/formats.md."""
    rows = re.findall(r"^\| (\w+) \| (\w+) \| (`.*`) \|$", (SOURCE / "docs/formats.md").read_text(), re.MULTILINE)
    return {(answer, section): re.findall(r"`([^`]+)`", columns) for answer, section, columns in rows}


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All sections and tables of jazzy_small as files."""
    needs_library()
    out = tmp_path_factory.mktemp("exported") / "out"
    assert main(["trace", "export", str(reference_trace("jazzy_small")), "-o", str(out)]) == 0
    return out


@pytest.mark.parametrize("verb", ANSWERS)
def test_sections_and_columns_are_those_of_the_documentation(exported: Path, verb: str) -> None:
    table = documented()
    index = json.loads((exported / "index.json").read_text())
    found = {
        entry["name"]: [column["name"] for column in entry["columns"]]
        for entry in index["files"]
        if entry["kind"] == "section" and entry["answer"] == verb
    }
    only_with_functions = {"executor_functions", "call_tree", "functions"}
    assert set(found) == {section for answer, section in table if answer == verb} - only_with_functions
    for section, columns in found.items():
        unknown = [c for c in columns if not any(fnmatch.fnmatchcase(c, known) for known in table[verb, section])]
        assert not unknown, section
        gone = [known for known in table[verb, section] if not fnmatch.filter(columns, known)]
        assert not gone, section


def test_folders_without_a_readable_event_are_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    needs_library()
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "metadata").write_text("not a trace")
    (tmp_path / "file").write_text("not a trace")
    for name in ("empty", "text", "file"):
        code, out, err = run(capsys, "trace", "summary", tmp_path / name)
        assert (code, out) == (2, ""), name
        assert str(tmp_path / name) in one_line(err)


def test_metadata_alone_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    needs_library()
    (metadata,) = trace_folders(reference_trace("ros2_fastrtps_humble_fork"))
    (tmp_path / "only").mkdir()
    shutil.copy(metadata / "metadata", tmp_path / "only" / "metadata")
    code, out, err = run(capsys, "trace", "callbacks", tmp_path / "only")
    assert (code, out) == (2, "")
    assert "no event can be read" in one_line(err)


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    needs_library()
    folder = reference_trace("ros2_fastrtps_humble_fork")
    done = subprocess.run(
        ["sh", "-c", '"$0" -m perflab trace callbacks "$1" --json | head -c 10', sys.executable, str(folder)],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (len(done.stdout), done.stderr) == (10, "")
