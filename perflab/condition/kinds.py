"""All conditions by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perflab import models
from perflab.condition import Condition, Evidence
from perflab.plugins import Registry
from perflab.registry import Kind

REGISTRY: Registry[Kind[Condition]] = Registry("condition", "perflab.condition", Kind)


def evidence_of(name: str, kinds: Mapping[str, Kind[Condition]] = REGISTRY) -> type[Evidence]:
    """The evidence record for conditions of these kinds."""
    model = kinds[name].model
    return model.evidence if issubclass(model, Condition) else Evidence


def evidence_schema(kinds: Mapping[str, Kind[Condition]] = REGISTRY) -> dict[str, Any]:
    """docs/schema/evidence.schema.json, for all existing kinds: `evidence` of trial.json, by label."""
    records = {f"^{name}(_[0-9]+)?$": evidence_of(name, kinds) for name in kinds}
    return models.schema_of_each(records, "evidence of the conditions and mitigations of a perflab trial")
