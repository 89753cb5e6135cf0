"""All conditions by name."""

from __future__ import annotations

from typing import Any

from perflab import models
from perflab.condition import Condition, Evidence
from perflab.plugins import Registry
from perflab.registry import Kind

REGISTRY: Registry[Kind[Condition]] = Registry("condition", "perflab.condition", Kind)


def evidence_of(name: str) -> type[Evidence]:
    """The record of what a condition proves."""
    model = REGISTRY[name].model
    return model.evidence if issubclass(model, Condition) else Evidence


def evidence_schema() -> dict[str, Any]:
    """docs/schema/evidence.schema.json: `evidence` of trial.json, by the labels of conditions."""
    records = {f"^{name}(_[0-9]+)?$": evidence_of(name) for name in REGISTRY}
    return models.schema_of_each(records, "evidence of the conditions of a perflab trial")
