"""No file of this repository names a place of the machine on which it was made."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("docs", "catalog", "perflab", "native", "scripts", "benchmarks", "tests", "ros")
# Paths of an author's machine; /home/me and /root are neutral.
OF_A_MACHINE = re.compile(r"(?<!\w)/(?:work/[a-z]|Users/[a-z]|home/(?!me/)[a-z]|root/\w)|/tmp/(?!perf)\w+/\w")
PICTURES = (".png",)


def places(path: Path) -> list[str]:
    if path.suffix in PICTURES:
        return []
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return []  # a recording, whose programs were somewhere
    return [
        f"{path.relative_to(ROOT)}: {text[max(0, m.start() - 30) : m.end() + 30]!r}"
        for m in OF_A_MACHINE.finditer(text)
    ]


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_file_names_a_place_of_a_machine(folder: str) -> None:
    files = [path for path in (ROOT / folder).rglob("*") if path.is_file() and path != Path(__file__).resolve()]
    assert files
    assert [found for path in files for found in places(path) if "__pycache__" not in path.parts] == []


def test_a_place_of_a_machine_is_found(tmp_path: Path) -> None:
    # Put together, so that this file names none itself.
    assert OF_A_MACHINE.search("/".join(("see ", "work", "main", "x")))
    assert OF_A_MACHINE.search("/".join(("", "home", "somebody", "ws")))
    assert not OF_A_MACHINE.search("a/work/b of /home/me/x and /tmp/run")
