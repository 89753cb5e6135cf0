"""Paths files: what they say, and one line with its place for everything that is wrong in them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from support import SOURCE

from perflab.errors import BadInput
from perflab.trace import paths_named
from tests.schemas import published

PUBLISHED = json.loads((SOURCE / "docs/schema/paths.schema.json").read_text())

GOOD = """\
paths:
  - name: control
    nodes: [/sensor, /control, /actuator]
    deadline: 10ms
    weight: 2
  - name: feedback
    topics: /state
    deadline: 0.002
    since: due
    until: start
    may_stop: true
  - name: watched
    topics: [/a, /b*]
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "paths.yaml"
    path.write_text(text)
    return path


def test_a_file_says_what_each_path_is(tmp_path: Path) -> None:
    control, feedback, watched = paths_named.read(written(tmp_path, GOOD))
    assert (control.path.nodes, control.path.deadline, control.weight) == (
        ["/sensor", "/control", "/actuator"],
        10_000_000,
        2.0,
    )
    assert (control.path.since, control.path.until, control.path.may_stop) == ("start", "end", False)
    assert (feedback.path.topics, feedback.path.deadline, feedback.weight) == (["/state"], 2_000_000, 1.0)
    assert (feedback.path.since, feedback.path.until, feedback.path.may_stop) == ("due", "start", True)
    assert (watched.path.deadline, watched.weight) == (None, None)
    assert control.where("nodes", 1) == f"{tmp_path}/paths.yaml:3"


def test_json_is_read_as_well(tmp_path: Path) -> None:
    path = tmp_path / "paths.json"
    path.write_text(json.dumps({"paths": [{"name": "a", "topics": ["/x"], "deadline": "1ms"}]}))
    assert paths_named.read(path)[0].path.deadline == 1_000_000


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("paths:\n  - name: a\n    nods: [/a, /b]\n", 3, "no key 'nods'; did you mean nodes?"),
        ("path: []\n", 1, "no key 'path'; did you mean paths?"),
        ("paths:\n  - nodes: [/a, /b]\n", 2, "name is missing"),
        ("paths:\n  - name: a\n    nodes: [/a, /b]\n    deadline: 0\n", 4, "deadline 0 must be more than 0"),
        ("paths:\n  - name: a\n    nodes: [/a, /b]\n    deadline: -5ms\n", 4, "deadline"),
        ("paths:\n  - name: a\n    nodes: [/a, /b]\n    deadline: soon\n", 4, "deadline"),
        (
            "paths:\n  - name: a\n    nodes: [/a, /b]\n    deadline: 1ms\n    weight: 0\n",
            5,
            "weight 0 must be more than 0",
        ),
        ("paths:\n  - name: a\n    nodes: [/a, /b]\n    deadline: 1ms\n    weight: .inf\n", 5, "weight"),
        ("paths:\n  - name: a\n    nodes: [/a, /b]\n    weight: 2\n", 4, "a weight needs a deadline"),
        (
            "paths:\n  - name: a\n    topics: /x\n  - name: a\n    topics: /y\n",
            4,
            "there is a path 'a' already, on line 2",
        ),
        ("paths:\n  - name: a\n", 2, "needs nodes, topics or times"),
        ("paths:\n  - name: a\n    topics: /x\n    times: planning\n", 3, "has times, which topics says nothing of"),
        ("paths:\n  - name: a\n    times: planning\n    since: due\n", 4, "has times, which since says nothing of"),
        ("paths:\n  - name: a\n    nodes: [/a]\n", 3, "a path of nodes has a first and a last one"),
        ("paths:\n  - name: a\n    topics: []\n", 3, "topics"),
        ("paths:\n  - name: a\n    topics: [3]\n", 3, "3 is not text"),
        ("paths:\n  - name: a\n    name: b\n    topics: /x\n", 3, "name is there twice"),
        ("paths:\n  - just text\n", 2, "a path is a mapping"),
        ("paths: []\n", 1, "paths"),
        ("paths:\n  - name: a\n    until: midnight\n    topics: /x\n", 3, "until"),
        ("paths: [\n", 2, "not YAML"),
    ],
)
def test_what_is_wrong_is_one_line_with_its_place(tmp_path: Path, text: str, line: int, said: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(BadInput) as raised:
        paths_named.read(path)
    message = str(raised.value)
    assert re.match(rf"{re.escape(str(path))}:{line}:(\d+:)? ", message), message  # of what is no YAML the column, too
    assert said in message
    assert "\n" not in message


@pytest.mark.parametrize(("data", "said"), [(b"", "is empty"), (b"- a\n", "mapping"), (b"\xff\xfe", "not UTF-8")])
def test_files_that_are_none_are_one_line(tmp_path: Path, data: bytes, said: str) -> None:
    path = tmp_path / "paths.yaml"
    path.write_bytes(data)
    with pytest.raises(BadInput, match=re.escape(said)):
        paths_named.read(path)
    with pytest.raises(BadInput, match="cannot read --paths"):
        paths_named.read(tmp_path / "nothing.yaml")


def test_the_published_schema_is_that_of_the_code() -> None:
    assert json.loads(json.dumps(paths_named.json_schema())) == PUBLISHED


def test_what_the_code_takes_fits_the_schema() -> None:
    published("paths").validate(yaml.safe_load(GOOD))


@pytest.mark.parametrize(
    "document",
    [
        {"paths": []},
        {"paths": [{"nodes": ["/a", "/b"]}]},
        {"paths": [{"name": "a", "nods": ["/a"]}]},
        {"paths": [{"name": "a", "topics": [3]}]},
        {"paths": [{"name": "a", "topics": "/x", "weight": 0}]},
    ],
)
def test_what_the_code_refuses_an_editor_sees(document: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        published("paths").validate(document)
