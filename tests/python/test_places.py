"""What a report says of a run names no folder of the machine on which it was made."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from perflab.report.places import mapped, names_like_paths, without_folders


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cannot write /home/me/runs/r1/trials/3_x/edges: full", "cannot write trials/3_x/edges: full"),
        (
            "`setcap cap_perfmon+ep /opt/lib/perflab-monitor` grants it",
            "`setcap cap_perfmon+ep perflab-monitor` grants it",
        ),
        ("it stays in '/home/me/runs/r1'.", "it stays in 'r1'."),
        ("see /home/me/x.", "see x."),
        ("/proc/self/stat and /sys/fs/cgroup cannot be read", "/proc/self/stat and /sys/fs/cgroup cannot be read"),
        ("1 054/s of a/b at https://example.org/a/b", "1 054/s of a/b at https://example.org/a/b"),
        ("topic /robot/scan: 3 lost", "topic /robot/scan: 3 lost"),
    ],
)
def test_paths_in_a_sentence_are_shortened(text: str, said: str) -> None:
    assert without_folders(text, ["r1", ""], names_like_paths({"topics": [{"name": "/robot/scan"}]})) == said


@dataclass(frozen=True)
class Record:
    name: str
    reasons: tuple[str, ...]
    by_name: dict[str, str]
    n: int = 1


def test_sentences_of_a_record_are_changed_and_names_stay() -> None:
    record = Record("/a/b", ("see /home/me/x", "fine"), {"k": "see /home/me/y"})
    changed = mapped(record, lambda text: without_folders(text, []))
    assert changed == Record("/a/b", ("see x", "fine"), {"k": "see y"})
    assert mapped(changed, lambda text: without_folders(text, [])) is changed
