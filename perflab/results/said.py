"""What the programs of a trial said of it (docs/formats.md, section 4, records of type `program`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perflab.statistics.histogram import Histogram


@dataclass(frozen=True, kw_only=True)
class Said:
    """By all processes together. Names are as the programs give them."""

    figures: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """All values, of each process in the order in which it said them."""
    times: Mapping[str, Histogram] = field(default_factory=dict)
    outcome: str | None = None
    """The one that was said first."""
    reason: str | None = None
    """Of the outcome."""

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.figures, *self.times)
