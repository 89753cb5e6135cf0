"""Describes what is wrong with a value that a user wrote in a file or as an option."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

DURATION = "duration"  # its format in a schema

# What a value is not, by the type of pydantic's error without the part after the first _.
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "on or off",
    "list": "a list",
    "tuple": "a list",
    "dict": "a mapping",
    "string": "text",
}
_OF_KIND = ("type", "parsing", "parsing_size", "from_float")
_BOUNDS = {
    "greater_than_equal": ("must be at least", "ge"),
    "greater_than": ("must be more than", "gt"),
    "less_than_equal": ("must be at most", "le"),
    "less_than": ("must be less than", "lt"),
}


def plain(number: Any) -> str:
    return f"{number:g}" if isinstance(number, float) else str(number)


def what_is_wrong(error: Any, text: Callable[[Any], str] = plain) -> str | None:
    """ "'many' is not a whole number", "0 must be at least 1", for an error of pydantic; None if its own words suffice.

    `text` is how a number of the field is written.
    """
    given = error["input"]
    kind, _, problem = error["type"].partition("_")
    if error["type"] == "finite_number" or (error["type"] in _BOUNDS and _is_nan(given)):
        return f"{given} is not a number"
    if error["type"] in _BOUNDS:
        words, bound = _BOUNDS[error["type"]]
        limit = error["ctx"][bound]
        try:
            shown = text(type(limit)(given))
        except ValueError:  # as written, "0Mbit"
            shown = str(given)
        return f"{shown} {words} {text(limit)}"
    if error["type"] == "literal_error":
        return f"{given!r} is not {error['ctx']['expected'].replace(chr(39), '')}"
    if kind in _KINDS and problem in _OF_KIND:
        return f"{given!r} is not {_KINDS[kind]}"
    return None


def _is_nan(given: Any) -> bool:
    try:
        return math.isnan(float(str(given).strip().removesuffix("%")))
    except ValueError:
        return False


def plain_schema(schema: Any) -> None:
    """Defaults in the user's notation, and no titles that only repeat the keys."""
    if isinstance(schema, list):
        for part in schema:
            plain_schema(part)
    if not isinstance(schema, dict):
        return
    if schema.pop("format", None) == DURATION and isinstance(schema.get("default"), int):
        schema["default"] /= 1e9
    if isinstance(schema.get("title"), str) and "properties" not in schema:
        del schema["title"]
    for key, part in schema.items():
        if key != "default":
            plain_schema(part)
