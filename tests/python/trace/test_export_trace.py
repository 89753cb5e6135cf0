"""Everything that a trace becomes, as files: what there is, that nothing is overwritten, how a full disk ends it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from made_tables import MadeSource
from polars.testing import assert_frame_equal
from support import HERE, SOURCE

from perflab.errors import BadInput, PerflabError
from perflab.trace.export import answers, export
from perflab.trace.source import TABLES


def made() -> MadeSource:
    return MadeSource(
        {
            "hosts": [{"name": "robot"}],
            "processes": [{"host": 0, "pid": 10, "name": "a, \"b\"", "first_ns": 0, "last_ns": 100}],
            "threads": [{"host": 0, "process": 0, "tid": 10, "name": "talker", "first_ns": 0, "last_ns": 100}],
            "callbacks": [{"process": 0, "handle": 2**64 - 1, "kind": "timer", "symbol": "f<a, b>()"}],
            "callback_instances": [
                {"callback": 0, "thread": 0, "start_ns": 1, "end_ns": 5, "intra_process": False},
                {"callback": 0, "thread": 0, "start_ns": 8, "end_ns": None, "intra_process": True},
            ],
        }
    )  # fmt: skip


def files(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file())


@pytest.mark.parametrize("format_", ["csv", "parquet"])
def test_every_table_and_every_section_is_a_file_that_the_index_names(tmp_path: Path, format_: str) -> None:
    trace = made()
    told: list[Path] = []
    index = export(trace, tmp_path / "out", format_, wrote=told.append)
    assert index == json.loads((tmp_path / "out" / "index.json").read_text())
    expected = [f"tables/{name}.{format_}" for name in TABLES]
    expected += [f"{answer.kind}/{section.name}.{format_}" for answer in answers(trace) for section in answer.sections]
    assert [entry["file"] for entry in index["files"]] == expected
    assert files(tmp_path / "out") == sorted([*expected, "index.json"])
    assert told == [tmp_path / "out" / name for name in [*expected, "index.json"]]
    assert {e["answer"] for e in index["files"] if e["kind"] == "section"} == {
        "summary", "callbacks", "messages", "executor", "scheduling", "starvation", "locks", "why", "paths",
    }  # fmt: skip
    for entry in index["files"]:
        path = tmp_path / "out" / entry["file"]
        read = pl.read_parquet(path) if format_ == "parquet" else pl.read_csv(path, infer_schema=False)
        assert read.height == entry["rows"], path
        assert read.columns == [column["name"] for column in entry["columns"]]


def test_parquet_gives_the_same_frame_back(tmp_path: Path) -> None:
    trace = made()
    export(trace, tmp_path, "parquet")
    for name in ("processes", "callbacks", "callback_instances", "thread_states"):
        assert_frame_equal(pl.read_parquet(tmp_path / "tables" / f"{name}.parquet"), trace.table(name))


def test_csv_has_empty_cells_for_what_is_not_known(tmp_path: Path) -> None:
    export(made(), tmp_path, "csv")
    lines = (tmp_path / "tables" / "callback_instances.csv").read_text().splitlines()
    assert lines == [
        "callback,thread,start_ns,end_ns,intra_process,take,delivery,parent,due_ns",
        "0,0,1,5,false,,,,",
        "0,0,8,,true,,,,",
    ]
    callbacks = pl.read_csv(tmp_path / "tables" / "callbacks.csv", infer_schema=False)
    assert callbacks.row(0, named=True)["handle"] == str(2**64 - 1)
    assert callbacks.row(0, named=True)["symbol"] == "f<a, b>()"


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(BadInput, match="not empty; name another, or write into it with --force"):
        export(made(), tmp_path)
    assert files(tmp_path) == ["mine.txt"]
    export(made(), tmp_path, force=True)
    assert (tmp_path / "mine.txt").read_text() == "mine"
    assert (tmp_path / "index.json").is_file()
    with pytest.raises(BadInput, match="is not a directory"):
        export(made(), tmp_path / "mine.txt", force=True)


def test_a_format_that_is_none_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="--format 'xlsx' is not one of perfetto, folded, flamegraph, csv, parquet"):
        export(made(), tmp_path / "out", "xlsx")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("format_", ["csv", "parquet"])
def test_a_full_disk_is_one_line_and_leaves_no_half_file_and_no_index(tmp_path: Path, format_: str) -> None:
    script = """
import resource, sys
from pathlib import Path
from made_tables import MadeSource
from perflab.errors import PerflabError
from perflab.trace.export import export
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
starts = [i * i * 7919 for i in range(20_000)]
rows = [{"thread": 0, "phase": "execute", "start_ns": t, "end_ns": t + t % 977} for t in starts]
try:
    export(MadeSource({"phases": rows}), Path(sys.argv[1]), sys.argv[2])
except PerflabError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "out"), format_],
        env={**os.environ, "PYTHONPATH": f"{SOURCE}{os.pathsep}{HERE}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.stderr == ""
    assert done.stdout.count("\n") == 1
    assert done.stdout.startswith(f"cannot write {tmp_path}/out/tables/phases.{format_}: ")
    assert "File too large" in done.stdout
    written = files(tmp_path / "out")
    assert "index.json" not in written
    assert f"tables/hosts.{format_}" in written
    assert not [name for name in written if "phases" in name or name.endswith(".tmp")]


def test_an_export_that_fails_takes_the_old_index_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    export(made(), tmp_path)

    def full(self: pl.DataFrame, *arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pl.DataFrame, "write_csv", full)
    with pytest.raises(PerflabError, match=r"cannot write .*hosts\.csv: No space left on device") as failed:
        export(made(), tmp_path, force=True)
    assert failed.value.exit_code == 1
    assert not (tmp_path / "index.json").exists()
    assert (tmp_path / "tables" / "hosts.csv").is_file()  # the one of before
