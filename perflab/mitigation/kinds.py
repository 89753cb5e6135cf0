"""All mitigations by name, and everything that a treatment can have."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from typing import Any, cast

from perflab.condition import Condition
from perflab.condition.kinds import REGISTRY as CONDITIONS
from perflab.plugins import Registry
from perflab.registry import Kind

REGISTRY: Registry[Kind[Condition]] = Registry("mitigation", "perflab.mitigation", Kind)
# Conditions and mitigations: everything that treatments, factors, plans and evidence refer to by name.
PARTS: Mapping[str, Kind[Condition]] = ChainMap(cast(Any, CONDITIONS), cast(Any, REGISTRY))
