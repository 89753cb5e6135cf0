"""Stacks with weights as one self-contained page: a flame graph to zoom and search. It loads nothing.

    page("perflab-node", [((Frame("main"), Frame("work", "application")), 12_000_000)], unit="ns",
         families={"application": "application"})

The first frame of each stack is its group, e.g. the thread; a switch on the page merges the groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Unit = Literal["ns", "cycles", "samples"]

# Hue and saturation of the families' colours in turn; each time with another pattern, 56 pairs before one repeats.
_HUES = ((150, 38), (212, 62), (28, 72), (285, 42), (52, 66), (345, 58), (182, 48), (85, 24))
# The drawing of a pattern in a tile of 8 by 8.
_PATTERNS = (
    "",
    "M-2,2L2,-2M0,8L8,0M6,10L10,6",
    "M0,4H8",
    "M2,2h1.5v1.5h-1.5zM6,6h1.5v1.5h-1.5z",
    "M-2,6L2,10M0,0L8,8M6,-2L10,2",
    "M4,0V8",
    "M0,4H8M4,0V8",
)
_UNKNOWN = "unknown"  # is grey


@dataclass(frozen=True, slots=True)
class Frame:
    """A box of the graph. `family` is a key of the page's families or empty; `detail` is shown beside the name."""

    name: str
    family: str = ""
    detail: str = ""


Stacks = Iterable[tuple[Sequence[Frame | str], int]]  # the outermost frame first; an integer weight


def folded(text: Iterable[str]) -> Iterator[tuple[list[str], int]]:
    """Stacks from lines "frame;frame;frame weight". Raises ValueError for an invalid line."""
    for line in text:
        stack, _, weight = line.rstrip("\n").rpartition(" ")
        if stack:
            yield stack.split(";"), int(weight)


def page(
    title: str,
    stacks: Stacks,
    *,
    unit: Unit,
    families: Mapping[str, str] | None = None,
    groups: str = "threads",
    facts: Sequence[str] = (),
) -> str:
    """The page. `families` are titles by name, in the order of the legend; `groups` describes the first frames."""
    return written(title, drawn(stacks, unit=unit, families=families, groups=groups), families or {}, facts)


def drawn(
    stacks: Stacks, *, unit: Unit, families: Mapping[str, str] | None = None, groups: str = "threads"
) -> dict[str, Any]:
    """The input of the page's script, as JSON."""
    titles = {"": "", **(families or {})}
    return {"unit": unit, "groups": groups, "families": list(titles.values()), **_tree(stacks, list(titles))}


def written(title: str, drawing: Mapping[str, Any], families: Iterable[str], facts: Sequence[str] = ()) -> str:
    """The page for the result of `drawn`; `families` are their names."""
    from perflab import page as pages

    return pages.render("flamegraph.html", title=title, drawing=drawing, looks=looks(families), facts=facts)


class _Node:
    __slots__ = ("children", "own", "total")

    def __init__(self) -> None:
        self.children: dict[int, _Node] = {}
        self.own = self.total = 0


def _tree(stacks: Stacks, families: Sequence[str]) -> dict[str, Any]:
    """Frames as numbers, and the tree in drawing order: number, depth and own weight of each node."""
    known: dict[Frame | str, int] = {}
    # Comparing frames would take longer than everything else; most come as the same objects again, which `seen` keeps
    # alive.
    by_identity: dict[int, int] = {}
    seen: list[Frame | str] = []
    frames: list[Frame] = []
    root = _Node()
    for stack, weight in stacks:
        if weight < 0:
            raise ValueError(f"a stack with the weight {weight}; weights must not be negative")
        node = root
        node.total += weight
        for frame in stack:
            number = by_identity.get(id(frame))
            if number is None:
                number = known.setdefault(frame, len(frames))
                if number == len(frames):
                    frames.append(frame if isinstance(frame, Frame) else Frame(frame))
                by_identity[id(frame)] = number
                seen.append(frame)
            below = node.children.get(number)
            if below is None:
                below = node.children[number] = _Node()
            node = below
            node.total += weight
        node.own += weight
    numbers, depths, own = _in_order(root)
    details = list(dict.fromkeys(frame.detail for frame in frames))
    place = {detail: number for number, detail in enumerate(details)}
    index = {name: number for number, name in enumerate(families)}
    return {
        "names": [frame.name for frame in frames],
        "family": [index.get(frame.family, 0) for frame in frames],
        "detail": [place[frame.detail] for frame in frames],
        "details": details,
        "nodes": numbers,
        "depths": depths,
        "own": own,
    }


def _in_order(root: _Node) -> tuple[list[int], list[int], list[int]]:
    """Each node before those below it, the heavier of siblings first; without recursion, as stacks may be deep."""
    numbers: list[int] = []
    depths: list[int] = []
    own: list[int] = []
    waiting = [(-1, 0, root)]
    while waiting:
        number, depth, node = waiting.pop()
        numbers.append(number)
        depths.append(depth)
        own.append(node.own)
        below = sorted(node.children.items(), key=lambda item: item[1].total)
        waiting += [(child, depth + 1, at) for child, at in below]
    return numbers, depths, own


@dataclass(frozen=True)
class Look:
    """The style of a family's boxes: a hue, its saturation in percent, and lines in a tile of 8 by 8."""

    hue: int
    saturation: int
    path: str


def looks(families: Iterable[str]) -> list[Look]:
    """Each family's own style; text is readable in either scheme (perflab/pages/flames.html)."""
    return [
        Look(*((0, 0) if name == _UNKNOWN else _HUES[number % len(_HUES)]), _PATTERNS[number % len(_PATTERNS)])
        for number, name in enumerate(families)
    ]
