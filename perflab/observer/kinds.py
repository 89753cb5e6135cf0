"""All observers by name."""

from __future__ import annotations

from perflab.observer import Observer, allocations, cpu_profile, hiccup, monitor, tracing
from perflab.registry import Kind

REGISTRY: dict[str, Kind[Observer]] = {
    kind.name: kind for kind in (monitor.KIND, hiccup.KIND, allocations.KIND, tracing.KIND, cpu_profile.KIND)
}
