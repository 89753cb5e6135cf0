"""YAML that people write: one reader, which refuses what would grow or deceive, with its place."""

from __future__ import annotations

import re
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import SOURCE

from perflab.design import document
from perflab.errors import BadInput
from perflab.formats.yaml_file import MAX_DEPTH, MAX_DIGITS, MAX_VALUES, parse
from perflab.profile import families
from perflab.trace import paths_named

# Each line of 9 aliases makes the document nine times as large.
LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
READERS: tuple[Callable[[Path], Any], ...] = (document.read, paths_named.read, families.load)


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__module__)
def test_every_file_of_yaml_refuses_what_would_grow(reader: Callable[[Path], Any], tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(LAUGHS)
    assert len(LAUGHS) < 500
    tracemalloc.start()
    try:
        with pytest.raises(BadInput, match=re.escape(f"{path}:2:8: the alias *a is not allowed; write the value out")):
            reader(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10 << 20


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 1\nb: {c: 1, c: 2}\n", "x.yaml:2:11: c is there twice"),
        ("a: 1\n'a': 2\n", "x.yaml:2:1: a is there twice"),
        ("a:\n  <<: {b: 1}\n", "x.yaml:2:3: the merge key << is not allowed; write the values out"),
        ("? [a]\n: b\n", "x.yaml:1:3: a key must be a word, not a list or a mapping"),
        ("? {a: b}\n: b\n", "x.yaml:1:3: a key must be a word"),
        (
            "a: !!python/object/apply:os.system [ls]\n",
            "x.yaml:1:4: the tag !!python/object/apply:os.system is not allowed",
        ),
        ("a: !!set {b}\n", "x.yaml:1:4: the tag !!set is not allowed"),
        ("a: !mine b\n", "x.yaml:1:4: the tag !mine is not allowed"),
        ("a: " + "[" * 3000, f"x.yaml:1:{4 + MAX_DEPTH - 1}: more than {MAX_DEPTH} nested values"),
        ("- " * 3000 + "a", f"more than {MAX_DEPTH} nested values"),
        ("[" + "a," * (MAX_VALUES + 1) + "]", f"more than {MAX_VALUES:,} values are not allowed"),
        ("a: " + "1:" * 5000 + "1\n", "x.yaml:1:4: a number of 10,001 characters is not allowed"),
        ("a: " + "9" * 5000 + "\n", "x.yaml:1:4: a number of 5,000 characters is not allowed"),
        ("a: 1\n--- \nb: 2\n", "x.yaml:2:1: not YAML: but found another document"),
        ("a: [\n", "x.yaml:2:1: not YAML: "),
        ("\ta: 1\n", "x.yaml:1:1: not YAML: "),
        ("a: !!int b\n", "x.yaml: not YAML: "),
        ("a: b\0\n", "x.yaml: not YAML: "),
    ],
)
def test_what_is_refused_is_one_line_with_its_place(text: str, words: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse(text, "x.yaml")
    assert str(caught.value).startswith(words) or words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_not_refused() -> None:
    read, lines = parse(f"a: &b [1, 2.5, yes]\nd: 2026-01-01\n'1': x\nn: {'9' * MAX_DIGITS}\n", "x.yaml")
    assert read == {"a": [1, 2.5, True], "d": "2026-01-01", "1": "x", "n": int("9" * MAX_DIGITS)}
    assert lines[("a", 1)] == 1
    assert lines[("1",)] == 3
    assert parse("# nothing\n", "x.yaml") == (None, {})


def test_there_is_one_reader() -> None:
    loads = re.compile(r"\byaml\.(\w*load\w*|compose\w*|parse|scan|\w*Loader)\b")
    found = {
        path.relative_to(SOURCE).as_posix()
        for path in (SOURCE / "perflab").rglob("*.py")
        if loads.search(path.read_text())
    }
    assert found == {"perflab/formats/yaml_file.py"}
