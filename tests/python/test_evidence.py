"""What conditions prove is declared once: schema, tables of reports and document follow from the records."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

import pytest
from jsonschema import Draft202012Validator
from support import SOURCE

from perflab.condition.kinds import evidence_of, evidence_schema
from perflab.mitigation.kinds import PARTS
from perflab.models import docstrings
from perflab.report.evidence import in_words

DOCUMENTS = [(SOURCE / "docs" / name).read_text("utf-8") for name in ("conditions.md", "mitigations.md")]
PUBLISHED = json.loads((SOURCE / "docs/schema/evidence.schema.json").read_text("utf-8"))


def side(name: str, which: str) -> type[Any]:
    """The record of `promised` or `achieved`."""
    hint = get_type_hints(evidence_of(name, PARTS))[which]
    return next(t for t in (hint, *get_args(hint)) if dataclasses.is_dataclass(t) and isinstance(t, type))


def table(name: str) -> str:
    """As the document shows it."""
    record = evidence_of(name, PARTS)
    sides = {which: docstrings(side(name, which)) for which in ("promised", "achieved")}
    names = {which: [f.name for f in dataclasses.fields(side(name, which))] for which in sides}
    beside = [
        f.name for f in dataclasses.fields(record) if f.name not in ("promised", "achieved", "in_effect", "reason")
    ]
    lines = ["| evidence | promised | achieved |", "|---|---|---|"]
    lines += [
        f"| `{field}` | {sides['promised'].get(field, '')} | {sides['achieved'].get(field, '')} |"
        for field in dict.fromkeys((*names["promised"], *names["achieved"]))
    ]
    said = docstrings(record)
    lines += [f"| `{field}`, beside both | | {said[field]} |" for field in beside]
    return re.sub(r"  +", " ", "\n".join(lines))


def sections() -> Iterator[tuple[str, str]]:
    for text in (section for document in DOCUMENTS for section in document.split("\n## ")[1:]):
        yield text.partition("\n")[0].strip(), text


@pytest.mark.parametrize("name", list(PARTS))
def test_the_document_has_the_table_of_its_evidence(name: str) -> None:
    assert table(name) in dict(sections())[name], f"it should be\n{table(name)}"


@pytest.mark.parametrize("name", list(PARTS))
@pytest.mark.parametrize("which", ["promised", "achieved"])
def test_every_field_says_what_it_is(name: str, which: str) -> None:
    record = side(name, which)
    assert {f.name for f in dataclasses.fields(record)} == set(docstrings(record))


def test_the_published_schema_is_that_of_the_code() -> None:
    assert json.loads(json.dumps(evidence_schema(PARTS))) == PUBLISHED
    validator = Draft202012Validator(PUBLISHED)
    assert not validator.is_valid({"cpu_load_2": {"promised": {}, "achieved": {}}})


def test_an_evidence_is_a_sentence() -> None:
    promised = {"demand_cpus": 1.2}
    said = {"promised": promised, "achieved": {"cpus_wanted": 1.66, "cpus_used": 0.572}, "in_effect": True}
    assert in_words("cpu_load_2", said) == "CPUs wanted 1.66 (1.2 promised), CPUs used 0.572"
    nobody = {"promised": {"messages_per_s": 10, "deliveries_per_s": 0}, "achieved": {"deliveries_per_s": 0.0}}
    assert (
        in_words("message_flood", {**nobody, "in_effect": True}) == "messages offered 10 1/s, messages delivered 0 1/s"
    )
    other = {"promised": {"strength": 3, "word": "x"}, "achieved": {"strength": 3}, "in_effect": True}
    assert in_words("of_another_version", other) == "strength 3 (3 promised)"
