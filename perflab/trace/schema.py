"""docs/schema/trace.schema.json: what `perflab trace ... --json` prints, made of the tables of the answers."""

from __future__ import annotations

from typing import Any

from perflab.trace import callbacks, compare, executor, locks, messages, paths, scheduling, starvation, summary, why
from perflab.trace.answer import SCHEMA_VERSION
from perflab.trace.columns import Column, Table

# By kind of the answer.
TABLES: dict[str, tuple[Table, ...]] = {
    "summary": summary.TABLES,
    "callbacks": callbacks.TABLES,
    "messages": messages.TABLES,
    "executor": executor.TABLES,
    "scheduling": scheduling.TABLES,
    "starvation": starvation.TABLES,
    "locks": locks.TABLES,
    "paths": paths.TABLES,
    "why": tuple(why.TABLES["message"].values()),
    "why_callbacks": tuple(why.TABLES["callback"].values()),
    "compare": compare.TABLES,
}

_SENTENCES = {"$ref": "#/$defs/sentences"}


def json_schema() -> dict[str, Any]:
    shared = {
        "sentences": {"type": "array", "items": {"type": "string"}},
        "reasons": {
            "description": "why a column is null, where it is",
            "type": "object",
            "additionalProperties": {"type": "string"},
        },
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "An answer of perflab trace",
        "description": "docs/tracing.md explains it. Null is what is not known; reasons say why.",
        "oneOf": [{"$ref": f"#/$defs/{kind}"} for kind in TABLES],
        "$defs": shared | {kind: _answer(kind, tables) for kind, tables in TABLES.items()},
    }


def _answer(kind: str, tables: tuple[Table, ...]) -> dict[str, Any]:
    head = {
        "schema_version": {"const": SCHEMA_VERSION},
        "kind": {"const": kind},
        "quality": {**_SENTENCES, "description": "what of the data's quality matters for this answer"},
        "warnings": {**_SENTENCES, "description": "what to know before a figure is believed"},
        "scope": {"type": ["string", "null"], "description": "what of the trace it is about, where that is not all"},
    }
    return _closed(
        head | {table.name: _section(table) for table in tables},
        required=[*head, *(table.name for table in tables if table.always)],
    )


def _section(table: Table) -> dict[str, Any]:
    rows = _closed(
        {column.name: _value(column) for column in table.columns},
        required=[column.name for column in table.columns if not column.optional],
    )
    parts = {"rows": {"type": "array", "items": rows}, "notes": _SENTENCES, "reasons": {"$ref": "#/$defs/reasons"}}
    return {"title": table.title, **_closed(parts, required=list(parts))}


def _value(column: Column) -> dict[str, Any]:
    unit = f" ({column.quantity.unit})" if column.quantity.unit else ""
    empty = f" Null: {column.empty}." if column.empty else ""
    return {"type": [column.kind, "null"], "description": f"{column.help}{unit}.{empty}"}


def _closed(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
