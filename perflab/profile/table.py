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
class FamilyShares:
    """Of one family: `self` is where the processor was, `inclusive` counts a sample for every family on its stack once.

    Shares are between 0 and 1, with the interval that sampling gives them; None where there are too few samples in all.
    """

    family: str
    self_samples: int
    self_weight: int
    self_share: float | None
    self_low: float | None
    self_high: float | None
    inclusive_samples: int
    inclusive_weight: int
    inclusive_share: float | None
    inclusive_low: float | None
    inclusive_high: float | None


@dataclass(frozen=True)
class Sampled:
    """Samples that belong together; shares are None where there is none."""

    samples: int
    weight: int
    whole: float | None  # the share of samples whose stacks reach where their thread begins
    unresolved: float | None  # the share of samples of which the innermost frame has no symbol


@dataclass(frozen=True)
class Group(Sampled):
    """A process, or a thread of it, and the families of its samples; families without a sample are left out."""

    families: tuple[FamilyShares, ...]


def group(threads: Iterable[ThreadStacks], frames: Sequence[Frame], families: Families) -> Group:
    """What the threads have in common."""
    total, own, all_ = Weight(), defaultdict[str, Weight](Weight), defaultdict[str, Weight](Weight)
    whole = unresolved = 0
    known: dict[Stack, list[str]] = {}
    listed = list(frames)
    for thread in threads:
        for stack, weight in thread.stacks.items():
            total.include(weight)
            names = known.get(stack)
            if names is None:
                names = known[stack] = families.of_stack(frames, stack) or ["unknown"]
            own[names[-1]].include(weight)
            for name in set(names):
                all_[name].include(weight)
            whole += weight.samples if is_whole(listed, stack) else 0
            unresolved += weight.samples if not stack or frames[stack[-1]].symbol is None else 0
    shares = tuple(
        FamilyShares(name, *_share(own[name], total), *_share(all_[name], total))
        for name in families.titles
        if name in all_
    )
    n = total.samples
    return Group(n, total.weight, whole / n if n else None, unresolved / n if n else None, shares)


def _share(part: Weight, total: Weight) -> tuple[int, int, float | None, float | None, float | None]:
    """Samples, weight, share, and Wilson's interval. Samples of unequal weight count as as many as would be as certain
    (Kish).
    """
    if total.samples < LEAST_SAMPLES or not total.weight:
        return part.samples, part.weight, None, None, None
    share = part.weight / total.weight
    effective = total.weight**2 / total.squares
    interval = wilson(round(share * effective), round(effective), CONFIDENCE)
    assert interval is not None
    return part.samples, part.weight, share, min(share, interval[0]), max(share, interval[1])
