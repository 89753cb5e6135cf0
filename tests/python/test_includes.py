"""The house of docs/ARCHITECTURE.md holds for native/: no include goes upwards, or to a folder beside."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from support import SOURCE

NATIVE = SOURCE / "native"
INCLUDE = re.compile(r'^\s*#\s*include "([^"]+)"', re.MULTILINE)


def rules() -> dict[str, set[str]]:
    """Each folder, from the lowest, with those that it may include from; `a/*` are the folders of a/ without a line."""
    text = (SOURCE / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    lines = text.partition("```includes\n")[2].partition("```")[0].splitlines()
    return {folder.strip(): set(known.split()) for folder, _, known in (line.partition(":") for line in lines)}


def rule_of(folder: str, known: dict[str, set[str]]) -> str | None:
    """The line that is for a folder, or for the nearest folder above it."""
    while folder:
        for name in (folder, f"{folder.rpartition('/')[0]}/*"):
            if name in known:
                return name
        folder = folder.rpartition("/")[0]
    return None


def sources() -> Iterator[Path]:
    for path in sorted(NATIVE.rglob("*")):
        if path.suffix in (".h", ".cpp", ".c", ".in"):
            yield path


def folder_of(path: Path) -> str:
    return path.parent.relative_to(NATIVE).as_posix()


def test_a_folder_includes_from_those_above_its_line_alone() -> None:
    known = rules()
    order = list(known)
    assert order, "the document has a block of includes"
    for at, (folder, others) in enumerate(known.items()):
        assert folder.endswith("/*") or (NATIVE / folder).is_dir(), folder
        for other in others:
            rule = rule_of(other, known)
            assert rule is not None and order.index(rule) < at, f"{folder}: {other}"


def test_every_folder_has_a_line() -> None:
    known = rules()
    assert not {folder_of(path) for path in sources() if rule_of(folder_of(path), known) is None}


def test_no_include_goes_upwards() -> None:
    known = rules()
    wrong = []
    for path in sources():
        own = folder_of(path)
        rule = rule_of(own, known)
        for file in INCLUDE.findall(path.read_text("utf-8")):
            other = file.rpartition("/")[0]
            # One without a folder stands beside its source, or is made by the build.
            made = other in ("", own) or other.startswith("messages/")
            if made or (rule is not None and other in known[rule]):
                continue
            wrong.append(f"{path.relative_to(SOURCE)} includes {file}")
    assert not wrong, "\n".join(wrong)
