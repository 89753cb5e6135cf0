"""Which trials of two samples may be exchanged with each other if there is no difference: all, or those of a block."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from perflab.statistics.sample import Floats, Sample


@dataclass(frozen=True)
class Block:
    """Trials that may be exchanged: a of the baseline, b of the treatment; neither is empty."""

    a: Floats
    b: Floats

    @property
    def arrangements(self) -> int:
        return math.comb(len(self.a) + len(self.b), len(self.b))


@dataclass(frozen=True)
class Design:
    """`unused` are the labels of trials whose block lacks the other sample: they tell nothing of the difference.

    `blocked` where blocks are kept apart, which takes several; `said` where the samples say their blocks at all.
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
        """How many ways there are to say which trials were the treatment's."""
        return math.prod(block.arrangements for block in self.blocks)

    def shifted(self, by: float) -> Design:
        """The same where every value of the treatment is larger by that much."""
        return Design(
            tuple(Block(block.a, block.b + by) for block in self.blocks), self.blocked, self.unused, self.said
        )


def design(baseline: Sample, treatment: Sample) -> Design:
    """Blocked where both samples say their blocks and share more than one."""
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
