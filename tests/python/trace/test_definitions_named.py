"""docs/tracing.md names the test of each definition: every name is that of a test."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_every_test_that_is_named_is_there() -> None:
    text = (ROOT / "docs" / "tracing.md").read_text()
    section = text.partition("## Tests of the definitions")[2]
    named = re.findall(r"`(test_\w+\.py)::(test_\w+)`", section)
    native = re.findall(r"`([A-Z]\w+)\.([A-Z]\w+)`", section)
    assert len(named) > 40
    assert native
    here = Path(__file__).parent
    texts = {f: next(path.read_text() for at in (here, ROOT / "tests") for path in at.rglob(f)) for f, _ in named}
    absent = [f"{f}::{t}" for f, t in named if f"\ndef {t}(" not in texts[f]]
    sources = "\n".join(path.read_text() for path in (ROOT / "tests" / "native").rglob("*_test.cpp"))
    # A test of its own, or a row of a table of tests.
    found = r"^TEST\w*\({0}, {1}\)|\"{0}_{1}\""
    absent += [f"{s}.{t}" for s, t in native if not re.search(found.format(s, t), sources, re.M)]
    assert absent == []


def test_every_row_names_a_test() -> None:
    text = (ROOT / "docs" / "tracing.md").read_text()
    rows = [line for line in text.partition("## Tests of the definitions")[2].splitlines() if line.startswith("| ")][1:]
    assert all("`" in row for row in rows)
