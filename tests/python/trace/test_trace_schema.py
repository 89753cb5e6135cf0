"""The published schema of the answers is that of the code, and real answers are what it says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from opened import needs_library
from reference_traces import RECORDED, ROOT
from test_nulls_are_explained import ANSWERS, OWN, answered, opened

from perflab.trace import callbacks, messages, scheduling
from perflab.trace import paths as paths_answer
from perflab.trace.compare import compare
from perflab.trace.paths import Asked, paths
from perflab.trace.paths_named import read
from perflab.trace.schema import TABLES, json_schema

PUBLISHED = json.loads((ROOT / "docs" / "schema" / "trace.schema.json").read_text())
VALIDATOR = Draft202012Validator(PUBLISHED)
COLUMNS = [(kind, table, column) for kind, tables in TABLES.items() for table in tables for column in table.columns]


def of_kind(document: dict[str, Any]) -> Draft202012Validator:
    """Errors against the schema of one kind are clearer than against nine."""
    return Draft202012Validator({"$defs": PUBLISHED["$defs"], "$ref": f"#/$defs/{document['kind']}"})


def test_the_published_schema_is_that_of_the_code() -> None:
    assert json_schema() == PUBLISHED
    Draft202012Validator.check_schema(PUBLISHED)


@pytest.mark.parametrize("name", [OWN, *RECORDED])
def test_answers_about_recorded_traces_are_what_the_schema_says(name: str) -> None:
    needs_library()
    trace = opened(name)
    beside = paths(trace, Asked(inferred=True), trace)
    for answer in (*(answered(name, ask) for ask in ANSWERS), beside, compare(trace, trace)):
        document = json.loads(json.dumps(answer.document()))
        of_kind(document).validate(document)
        assert VALIDATOR.is_valid(document)


@pytest.mark.parametrize("baseline", [False, True])
def test_named_paths_are_what_the_schema_says(tmp_path: Path, baseline: bool) -> None:
    needs_library()
    trace = opened("jazzy_small")
    file = tmp_path / "paths.yaml"
    file.write_text("paths: [{name: one, topics: [/chatter], deadline: 10ms}, {name: two, topics: [/command]}]\n")
    answer = paths(trace, Asked(wanted=read(file)), trace if baseline else None)
    document = json.loads(json.dumps(answer.document()))
    of_kind(document).validate(document)
    assert {"named", "objective", "sensitivity"} <= set(document)
    assert all(("ratio" in row) == baseline for row in document["objective"]["rows"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda rows: rows[0].pop("events"), "'events' is a required property"),
        (lambda rows: rows[0].update(event=1), "Additional properties are not allowed"),
        (lambda rows: rows[0].update(events="many"), "'many' is not of type 'integer', 'null'"),
    ],
)
def test_what_is_no_answer_is_found(change: Any, words: str) -> None:
    needs_library()
    document = json.loads(json.dumps(answered(OWN, ANSWERS[0]).document()))
    change(document["overview"]["rows"])
    assert any(words in error.message for error in of_kind(document).iter_errors(document))


def test_the_name_of_a_column_ends_in_its_unit() -> None:
    units = {"ns": "_ns", "%": "_percent", "Hz": "_hz", "B": "_bytes", "percentage points": "_points"}
    for kind, table, column in COLUMNS:
        ending = units.get(column.quantity.unit, "")
        found = re.search("_(?:ns|percent|hz|bytes|points)$", column.name)
        assert (found[0] if found else "") == ending, (kind, table.name, column.name)


def test_every_column_has_help_in_one_line() -> None:
    bare = [
        (kind, table.name, c.name) for kind, table, c in COLUMNS if len(c.help) < 3 or c.help != c.help.strip(" .\n")
    ]
    assert bare == []


DOCUMENTED = {
    "## Callbacks": (callbacks.CALLBACKS, 9),
    "### Counts and losses": (messages.MESSAGES, 9),
    "### Named paths": (paths_answer.NAMED, 4),
    "## Scheduling": (scheduling.THREADS, 4),
}


@pytest.mark.parametrize("heading", DOCUMENTED)
def test_the_tables_of_the_documentation_begin_with_the_help_of_their_columns(heading: str) -> None:
    table, least = DOCUMENTED[heading]
    text = (ROOT / "docs" / "tracing.md").read_text()
    section = re.split("\n#+ ", text.split(f"\n{heading}\n")[1])[0]
    rows = dict(re.findall(r"^\| ([^|`]+) \| ((?:[^|]|\\\|)+) \|$", section, re.MULTILINE))
    helps = {column.title: column.help for column in reversed(table.columns)}
    helps |= {column.group: column.help.partition(":")[0] for column in table.columns if column.group}
    checked = [name for name in rows if name.replace("-", " ") in helps]
    assert len(checked) >= least, (sorted(set(helps) - set(checked)), sorted(rows))
    for name in checked:
        assert rows[name].replace("\\|", "|").startswith(helps[name.replace("-", " ")]), name
