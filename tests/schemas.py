"""The published schemas, each checked once: checking one takes much longer than validating a document by it."""

from __future__ import annotations

import functools
import json
from pathlib import Path

from jsonschema import Draft202012Validator

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "schema"


@functools.cache
def published(name: str) -> Draft202012Validator:
    """The validator of docs/schema/NAME.schema.json."""
    schema = json.loads((FOLDER / f"{name}.schema.json").read_text())
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)
