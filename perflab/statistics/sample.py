"""The samples of the statistics, with one value per trial, and which of their trials are exchangeable.

The trial is the unit. Messages of one trial share its process, its discovery and the machine's state, so they are not
independent of each other; a figure of a trial (its p99, its mean) counts as one value. Without a difference, all trials
of two samples are exchangeable, or those within a block.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from perflab.results.comparison import Estimate
from perflab.results.figure import Median

Floats = npt.NDArray[np.float64]
Json = dict[str, Any]


@dataclass(frozen=True)
class Sample:
    """One figure of the trials of one treatment.

    `labels` name the trials. `blocks`: which trials belong together (a repetition of all treatments); None if the
    trials were not blocked. `missing` counts the trials that have no value. Raises ValueError if the lengths differ or
    a value is not finite.
    """

    values: tuple[float, ...]
    labels: tuple[str, ...]
    blocks: tuple[Hashable, ...] | None = None
    name: str = ""
    missing: int = 0

    def __post_init__(self) -> None:
        if len(self.labels) != len(self.values):
            raise ValueError(f"{len(self.values)} values with {len(self.labels)} labels")
        if self.blocks is not None and len(self.blocks) != len(self.values):
            raise ValueError(f"{len(self.values)} values with {len(self.blocks)} blocks")
        if not all(map(math.isfinite, self.values)):
            raise ValueError("a value that is not finite; count it as missing instead")

    @staticmethod
    def of(
        values: Sequence[float | None],
        labels: Sequence[str] | None = None,
        blocks: Sequence[Hashable] | None = None,
        name: str = "",
    ) -> Sample:
        """From a list in which None and NaN stand for unmeasured values; labels are "1", "2", … by default."""
        names = [str(i + 1) for i in range(len(values))] if labels is None else list(labels)
        if len(names) != len(values) or (blocks is not None and len(blocks) != len(values)):
            raise ValueError(f"{len(values)} values need as many labels and blocks")
        known = [i for i, v in enumerate(values) if v is not None and math.isfinite(v)]
        return Sample(
            values=tuple(float(v) for i in known if (v := values[i]) is not None),
            labels=tuple(names[i] for i in known),
            blocks=None if blocks is None else tuple(blocks[i] for i in known),
            name=name,
            missing=len(values) - len(known),
        )

    @property
    def n(self) -> int:
        return len(self.values)

    @property
    def array(self) -> Floats:
        return np.asarray(self.values, dtype=np.float64)

    @property
    def positive(self) -> bool:
        return self.n > 0 and min(self.values) > 0

    def without(self, index: int) -> Sample:
        """The same without one trial."""
        keep = [i for i in range(self.n) if i != index]
        return dataclasses.replace(
            self,
            values=tuple(self.values[i] for i in keep),
            labels=tuple(self.labels[i] for i in keep),
            blocks=None if self.blocks is None else tuple(self.blocks[i] for i in keep),
        )

    def mapped(self, function: Callable[[float], float]) -> Sample:
        """The same with another figure of each trial, such as its logarithm."""
        return dataclasses.replace(self, values=tuple(map(function, self.values)))


def as_median(found: Estimate, n: int, confidence: float, unit: str = "") -> Median:
    """A median with its interval, or why it has none."""
    low, high = (None, None) if found.interval is None else (found.interval.low, found.interval.high)
    return Median(value=found.value, low=low, high=high, level=confidence, n=n, unit=unit, reason=found.reason)


@dataclass(frozen=True)
class Block:
    """Exchangeable trials: a of the baseline, b of the treatment; neither is empty."""

    a: Floats
    b: Floats

    @property
    def arrangements(self) -> int:
        return math.comb(len(self.a) + len(self.b), len(self.b))


@dataclass(frozen=True)
class Design:
    """`unused` are the labels of trials whose block lacks the other sample: they contain no information on the
    difference.

    `blocked` if blocks are kept apart, which needs several; `said` if the samples have blocks at all.
    """

    blocks: tuple[Block, ...]
    blocked: bool
    unused: tuple[str, ...] = ()
    said: bool = False

    @property
    def a(self) -> Floats:
        return np.concatenate([block.a for block in self.blocks]) if self.blocks else np.empty(0)

    @property
    def b(self) -> Floats:
        return np.concatenate([block.b for block in self.blocks]) if self.blocks else np.empty(0)

    @property
    def arrangements(self) -> int:
        """How many ways there are to choose which trials were the treatment's."""
        return math.prod(block.arrangements for block in self.blocks)

    def shifted(self, by: float) -> Design:
        """The same with every value of the treatment larger by that much."""
        return Design(
            tuple(Block(block.a, block.b + by) for block in self.blocks), self.blocked, self.unused, self.said
        )


def design(baseline: Sample, treatment: Sample) -> Design:
    """Blocked if both samples have blocks and share more than one."""
    if baseline.blocks is None or treatment.blocks is None:
        whole = (Block(baseline.array, treatment.array),) if baseline.n and treatment.n else ()
        return Design(whole, blocked=False)
    members: dict[Hashable, tuple[list[float], list[float]]] = {}
    for side, sample in enumerate((baseline, treatment)):
        for value, key in zip(sample.values, sample.blocks or (), strict=True):
            members.setdefault(key, ([], []))[side].append(value)
    shared = {key for key, (a, b) in members.items() if a and b}
    blocks = tuple(Block(np.asarray(a), np.asarray(b)) for key, (a, b) in members.items() if key in shared)
    unused = tuple(
        label
        for sample in (baseline, treatment)
        for label, key in zip(sample.labels, sample.blocks or (), strict=True)
        if key not in shared
    )
    return Design(blocks, len(blocks) > 1, unused, said=True)
