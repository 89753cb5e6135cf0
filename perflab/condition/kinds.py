"""All conditions by name."""

from __future__ import annotations

from perflab.condition import (
    Condition,
    cpu_load,
    cpu_pinning,
    io_load,
    memory_pressure,
    message_flood,
    network_shaping,
    priority_inhibitor,
)
from perflab.registry import Kind

REGISTRY: dict[str, Kind[Condition]] = {
    kind.name: kind
    for kind in (
        cpu_load.KIND,
        message_flood.KIND,
        cpu_pinning.KIND,
        memory_pressure.KIND,
        io_load.KIND,
        network_shaping.KIND,
        priority_inhibitor.KIND,
    )
}
