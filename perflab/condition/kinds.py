"""All conditions by name."""

from __future__ import annotations

from perflab.condition import Condition
from perflab.plugins import Registry
from perflab.registry import Kind

REGISTRY: Registry[Kind[Condition]] = Registry("condition", "perflab.condition", Kind)
