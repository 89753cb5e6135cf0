"""All mitigations by name, and all that a treatment can have."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from typing import Any, cast

from perflab.condition import Condition
from perflab.condition.kinds import REGISTRY as CONDITIONS
from perflab.plugins import Registry
from perflab.registry import Kind

REGISTRY: Registry[Kind[Condition]] = Registry("mitigation", "perflab.mitigation", Kind)
# Conditions and mitigations: what stands by its name in treatments, factors, plans and evidence.
PARTS: Mapping[str, Kind[Condition]] = ChainMap(cast(Any, CONDITIONS), cast(Any, REGISTRY))
