"""Left-over shared memory: what a process named is removed, and nothing else whatever it names."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from perflab.experiment.shared_memory import remove_left_over


def test_only_what_was_named_is_removed(tmp_path: Path) -> None:
    for name in ("segment", "other"):
        (tmp_path / name).touch()
    removal = remove_left_over(["segment", "segment", "gone"], tmp_path)
    assert removal.removed == ("segment",)
    assert removal.notes == ["the middleware left shared memory behind, removed: segment"]
    assert [p.name for p in tmp_path.iterdir()] == ["other"]


@pytest.mark.parametrize(
    "name", ["", ".", "..", "folder", "link", "folder/file", "../outside/file", "a\0b", "x" * 5000]
)
def test_nothing_else_is_reached(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "shm"
    for path in (folder / "folder/file", tmp_path / "outside/file"):
        path.parent.mkdir(parents=True)
        path.touch()
    (folder / "link").symlink_to(folder / "folder/file")
    remove_left_over([name, str(folder / "folder/file")], folder)
    assert (folder / "folder/file").exists()
    assert (tmp_path / "outside/file").exists()
    assert (folder / "link").is_symlink()


def test_what_belongs_to_another_user_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "segment").touch()
    somebody = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: somebody)
    assert remove_left_over(["segment"], tmp_path).removed == ()
    assert (tmp_path / "segment").exists()


def test_what_cannot_be_removed_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "segment").touch()

    def refuse(self: Path, missing_ok: bool = False) -> None:
        raise PermissionError(1, "Operation not permitted", str(self))

    monkeypatch.setattr(Path, "unlink", refuse)
    removal = remove_left_over(["segment"], tmp_path)
    assert removal.notes == [f"{tmp_path}/segment was left behind and cannot be removed: Operation not permitted"]


def test_many_are_counted(tmp_path: Path) -> None:
    names = [f"s{n}" for n in range(5)]
    for name in names:
        (tmp_path / name).touch()
    assert remove_left_over(names, tmp_path).notes == [
        "the middleware left shared memory behind, removed: s0, s1, s2 and 2 more"
    ]


def test_what_another_process_has_taken_over_stays(tmp_path: Path) -> None:
    for name in ("port", "port_el", "sem.port_mutex", "mine", "mine_el"):
        (tmp_path / name).touch()
    with (tmp_path / "port_el").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        names = ["port", "port_el", "sem.port_mutex", "mine", "mine_el"]
        assert remove_left_over(names, tmp_path).removed == ("mine", "mine_el")
    assert remove_left_over(names, tmp_path).removed == ("port", "port_el", "sem.port_mutex")
