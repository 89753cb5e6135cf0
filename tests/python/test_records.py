"""Reading the records of a node that may have been killed at any instant."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from perflab.formats.records import RecordError, read

CHECKPOINT = {"type": "checkpoint", "at_ns": 5, "final": False, "publishers": [], "edges": []}
START = {"type": "start", "at_ns": 1, "measured_from_ns": 2, "measured_until_ns": 3, "matched": True}


def write(path: Path, *lines: object, end: str = "\n") -> Path:
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(texts) + end)
    return path


def test_the_last_checkpoint_counts(tmp_path: Path) -> None:
    path = write(tmp_path / "p.jsonl", START, CHECKPOINT, {**CHECKPOINT, "at_ns": 9, "final": True})
    records = read(path, "p")
    assert records.checkpoint is not None
    assert (records.checkpoint["at_ns"], records.final, records.truncated) == (9, True, False)
    assert records.start is not None
    assert records.start.measured_until_ns == 3


def test_every_kind_of_record_is_kept_and_unknown_ones_are_ignored(tmp_path: Path) -> None:
    path = write(
        tmp_path / "p.jsonl", {"type": "process", "pid": 1}, {"type": "event"}, {"type": "resources"}, {"type": "news"}
    )
    records = read(path, "p")
    assert (records.process, len(records.events), len(records.resources)) == ({"type": "process", "pid": 1}, 1, 1)


def test_the_last_reading_of_a_thread_counts(tmp_path: Path) -> None:
    def reading(when: str, **priorities: int) -> dict[str, Any]:
        threads = [{"tid": int(tid[1:]), "priority": priority} for tid, priority in priorities.items()]
        return {"type": "threads", "when": when, "threads": threads}

    path = write(tmp_path / "p.jsonl", reading("start", t1=1, t2=2), reading("end", t2=5, t3=3))
    assert {tid: t["priority"] for tid, t in read(path, "p").thread_states.items()} == {1: 1, 2: 5, 3: 3}
    assert read(path, "p").passing is None


@pytest.mark.parametrize("cut", range(1, len(json.dumps(CHECKPOINT)) + 1))
def test_a_last_line_cut_anywhere_leaves_what_was_before(tmp_path: Path, cut: int) -> None:
    whole = json.dumps(CHECKPOINT)
    path = write(tmp_path / "p.jsonl", {**CHECKPOINT, "at_ns": 4}, whole[: len(whole) - cut + 1], end="")
    records = read(path, "p")
    assert records.checkpoint is not None
    assert (records.checkpoint["at_ns"], records.truncated) == (4, True)


def test_a_damaged_line_in_the_middle_names_file_and_line(tmp_path: Path) -> None:
    path = write(tmp_path / "p.jsonl", START, '{"type":', CHECKPOINT)
    with pytest.raises(RecordError, match=r"p\.jsonl:2"):
        read(path, "p")


def test_a_start_that_lacks_a_member_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="measured_until_ns"):
        read(write(tmp_path / "p.jsonl", {k: v for k, v in START.items() if k != "measured_until_ns"}), "p")


def test_a_missing_or_empty_file_holds_nothing(tmp_path: Path) -> None:
    assert read(tmp_path / "none.jsonl", "p").checkpoint is None
    assert read(write(tmp_path / "empty.jsonl", end=""), "p").checkpoint is None


def test_what_a_condition_added_is_not_in_the_checkpoint(tmp_path: Path) -> None:
    own, flood = {"node": "/a"}, {"node": "/flood", "condition": "message_flood"}
    line = {**CHECKPOINT, **{key: [own, flood] for key in ("publishers", "edges", "services")}}
    checkpoint = read(write(tmp_path / "p.jsonl", START, line), "p").checkpoint
    assert checkpoint is not None
    assert [checkpoint[key] for key in ("publishers", "edges", "services")] == [[own]] * 3
    assert checkpoint["at_ns"] == CHECKPOINT["at_ns"]
