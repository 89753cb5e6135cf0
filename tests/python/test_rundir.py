"""The run directory: where it may be, and that its files appear whole or not at all."""

from __future__ import annotations

import errno
import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from perflab.errors import BadInput
from perflab.formats import json_file
from perflab.runs import rundir


def test_the_default_name_is_time_and_name_and_never_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    names = [rundir.create(None, "a b/c", now).path for _ in range(3)]
    assert [str(n) for n in names] == [
        "runs/20260102T030405Z_a_b_c",
        "runs/20260102T030405Z_a_b_c_2",
        "runs/20260102T030405Z_a_b_c_3",
    ]


def test_a_file_named_runs_is_bad_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").touch()
    with pytest.raises(BadInput, match="cannot create the run directory runs"):
        rundir.create(None, "x")


def test_output_may_be_new_or_empty_only(tmp_path: Path) -> None:
    assert rundir.create(tmp_path / "a/b", "x").created
    (tmp_path / "empty").mkdir()
    assert not rundir.create(tmp_path / "empty", "x").created
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("full", "full/file", "full/file/below", "link"):
        with pytest.raises(BadInput, match="--output"):
            rundir.create(tmp_path / name, "x")


def test_json_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    json_file.write_json(path, {"a": "ä"})
    json_file.write_json(path, {"a": 2})
    assert json_file.read_json(path) == {"a": 2}
    assert [p.name for p in tmp_path.iterdir()] == ["x.json"]


def test_what_cannot_be_written_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.json"
    json_file.write_json(path, {"a": 1})

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        json_file.write_json(path, {"a": 2})
    with pytest.raises(ValueError, match="Out of range"):
        json_file.write_json(path, {"a": float("nan")})
    assert json.loads(path.read_text()) == {"a": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["x.json"]


def test_the_reserve_holds_real_space_until_it_is_released(tmp_path: Path) -> None:
    run = rundir.create(tmp_path / "run", "x")
    run.reserve()
    assert (run.path / rundir.RESERVE).stat().st_blocks * 512 >= rundir.RESERVE_BYTES
    run.release_reserve()
    run.release_reserve()
    assert list(run.path.iterdir()) == []


def test_discarding_removes_only_what_perflab_made(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    for path in (tmp_path / "mine", tmp_path / "new"):
        run = rundir.create(path, "x")
        run.new_trial("baseline")
        json_file.write_json(run.manifest, {})
        run.discard()
    assert not (tmp_path / "new").exists()
    assert list((tmp_path / "mine").iterdir()) == []
