"""The published schema of experiment files is that of the code, and takes what the code takes."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
import yaml
from support import SOURCE

from perflab.design.document import json_schema
from tests.schemas import published

PUBLISHED = json.loads((SOURCE / "docs/schema/experiment.schema.json").read_text())
EXPERIMENTS = sorted((SOURCE / "catalog/experiments").glob("*.yaml"))


def test_the_published_schema_is_that_of_the_code() -> None:
    assert json.loads(json.dumps(json_schema())) == PUBLISHED


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_the_catalog_fits_the_schema(path: Any) -> None:
    published("experiment").validate(yaml.safe_load(path.read_text()))


@pytest.mark.parametrize(
    "document",
    [
        {"workload": "a", "tim": 3},
        {"time": 3},
        {"workload": "a", "conditions": [{"cpu_load": {"lod": 3}}]},
        {"workload": "a", "conditions": [{"cpu_lod": {}}]},
        {"workload": "a", "observers": [{"hiccup": {"interval": []}}]},
        {"workload": "a", "trials": 0},
    ],
)
def test_what_the_code_refuses_an_editor_sees(document: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        published("experiment").validate(document)
