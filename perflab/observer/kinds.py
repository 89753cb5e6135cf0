"""All observers by name."""

from __future__ import annotations

from perflab.observer import Observer
from perflab.plugins import Registry
from perflab.registry import Kind

REGISTRY: Registry[Kind[Observer]] = Registry("observer", "perflab.observer", Kind)
