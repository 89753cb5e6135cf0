"""The costs of executors (docs/executors.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from perflab.models import Ordinal, Share
from perflab.results.figure import Median
from perflab.results.trial import Circumstances, Families, Phases


@dataclass(frozen=True, kw_only=True)
class CostRatio(Median):
    """Relative to the reference."""

    of: str
    """The compared figure."""
    paired: bool
    """Within blocks."""


@dataclass(frozen=True, kw_only=True)
class CostRow(Circumstances):
    """The costs of one treatment."""

    trials: Ordinal
    cpu_per_message_ns: Median
    cpu_per_tick_ns: Median
    cpu_percent: Median
    cycles_per_message: Median
    instructions_per_message: Median
    latency_p50_ns: Median
    latency_p99_ns: Median
    response_p50_ns: Median
    response_p99_ns: Median
    reference: int | None = None
    """Index in `rows` of the treatment on the same middleware without an executor."""
    ratio: CostRatio | None = None
    roles: Mapping[str, Share] | None
    """Shares of the CPU time by role of threads, from 0 to 1."""
    roles_reason: str | None
    families: Families | None
    families_reason: str | None
    phases: Phases | None
    phases_reason: str | None
    not_counted: Mapping[str, str] = field(default_factory=dict)
    """Why a counter of the processor (cycles, instructions, cache misses) counted in no trial."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ExecutorCosts:
    """The costs of each treatment, beside the same middleware without an executor."""

    level: float
    """Confidence level of the intervals."""
    rows: tuple[CostRow, ...]
