"""Shares of families in the samples of a process or thread, with the interval that sampling alone gives them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from perflab.profile.families import Families
from perflab.profile.script import Frame, Stack, ThreadStacks, Weight, is_whole
from perflab.statistics.proportion import wilson

CONFIDENCE = 0.95
LEAST_SAMPLES = 10  # below it, shares say nothing


@dataclass(frozen=True)
class Share:
    """Of one family, between 0 and 1. None where there are too few samples in all."""

    samples: int
    weight: int
    share: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class FamilyRow:
    """`self` is where the processor was; `inclusive` counts a sample for every family on its stack, once."""

    family: str
    self: Share
    inclusive: Share


@dataclass(frozen=True)
class Group:
    """A process, or a thread of it, and the families of its samples; families without a sample are left out."""

    samples: int
    weight: int
    whole: float | None  # the share of samples whose stacks reach where their thread begins
    unresolved: int  # samples of which the innermost frame has no symbol
    rows: tuple[FamilyRow, ...]


@dataclass
class _Sum:
    samples: int = 0
    weight: int = 0
    squares: int = 0

    def add(self, weight: Weight) -> None:
        self.samples += weight.samples
        self.weight += weight.weight
        self.squares += weight.squares


def group(threads: Iterable[ThreadStacks], frames: Sequence[Frame], families: Families) -> Group:
    """What the threads have in common."""
    total, own, all_ = _Sum(), defaultdict[str, _Sum](_Sum), defaultdict[str, _Sum](_Sum)
    whole = unresolved = 0
    known: dict[Stack, list[str]] = {}
    listed = list(frames)
    for thread in threads:
        for stack, weight in thread.stacks.items():
            total.add(weight)
            names = known.get(stack)
            if names is None:
                names = known[stack] = families.of_stack(frames, stack) or ["unknown"]
            own[names[-1]].add(weight)
            for name in set(names):
                all_[name].add(weight)
            whole += weight.samples if is_whole(listed, stack) else 0
            unresolved += weight.samples if not stack or frames[stack[-1]].symbol is None else 0
    rows = tuple(
        FamilyRow(name, _share(own[name], total), _share(all_[name], total)) for name in families.titles if name in all_
    )
    share = whole / total.samples if total.samples else None
    return Group(total.samples, total.weight, share, unresolved, rows)


def _share(part: _Sum, total: _Sum) -> Share:
    """With Wilson's interval. Samples of unequal weight count as as many as would be as certain (Kish)."""
    if total.samples < LEAST_SAMPLES or not total.weight:
        return Share(part.samples, part.weight, None, None, None)
    share = part.weight / total.weight
    effective = total.weight**2 / total.squares
    interval = wilson(round(share * effective), round(effective), CONFIDENCE)
    assert interval is not None
    return Share(part.samples, part.weight, share, min(share, interval[0]), max(share, interval[1]))
