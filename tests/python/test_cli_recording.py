"""The folder of a recording: its own, and gone again where nothing was recorded."""

from __future__ import annotations

from datetime import datetime, tzinfo
from pathlib import Path

import pytest
from conftest import Perflab

from perflab.cli import recording
from perflab.errors import BadInput


def test_two_that_begin_in_the_same_second_have_two_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Noon(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Noon:
            return cls(2026, 1, 1, 12, tzinfo=tz)

    monkeypatch.setattr(recording, "datetime", Noon)
    monkeypatch.chdir(tmp_path)
    found = [recording.make(None, "recording", "traces", "talker").path.name for _ in range(3)]
    assert found == ["20260101T120000Z_talker", "20260101T120000Z_talker_2", "20260101T120000Z_talker_3"]


def test_what_is_taken_back_leaves_what_was_there(tmp_path: Path) -> None:
    place = recording.make(tmp_path / "a/b/c", "recording", "traces", "x")
    (place.path / "logs").mkdir()
    (place.path / "logs/x.log").write_text("")
    place.take_back()
    assert list(tmp_path.iterdir()) == []


def test_an_empty_folder_of_the_user_stays_and_stays_empty(tmp_path: Path) -> None:
    place = recording.make(tmp_path, "recording", "traces", "x")
    (place.path / "session.json").write_text("{}")
    place.take_back()
    assert tmp_path.is_dir()
    assert list(tmp_path.iterdir()) == []


def test_what_somebody_else_put_beside_it_stays(tmp_path: Path) -> None:
    place = recording.make(tmp_path / "traces/mine", "recording", "traces", "x")
    (tmp_path / "traces/theirs").mkdir()
    place.take_back()
    assert [path.name for path in (tmp_path / "traces").iterdir()] == ["theirs"]


@pytest.mark.parametrize("place", ["/proc/x", "/dev/null", "/dev/null/x"])
def test_where_no_folder_can_be_it_is_one_line(place: str) -> None:
    with pytest.raises(BadInput, match=f"^--output {place}: "):
        recording.make(Path(place), "recording", "traces", "x")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--buffer", "0", "--", "true"], "--buffer '0' must be more than 0"),
        (["--event", "", "--", "true"], "--event '' is empty"),
        (["--context", " ", "--", "true"], "--context '' is empty"),
        (["--whole-system", "--", "true"], "--whole-system applies to the scheduler's events"),
    ],
)
def test_bad_input_of_record_is_one_line_and_writes_nothing(
    perflab: Perflab, tmp_path: Path, words: list[str], line: str
) -> None:
    run = perflab("trace", "record", *words)
    assert run.returncode == 2
    assert line in run.stderr
    assert len(run.stderr.splitlines()) == 1
    assert list((tmp_path / "work").iterdir()) == []
