"""Where the processes of a trial allocate memory, from the records of the counting library in each (docs/formats.md,
section 4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from perflab.results.trial import AllocationSite

MOST = 20  # of a trial
OWN = "perflab"  # the role of perflab's own threads

# Functions between a program and the allocator, which do not show the real caller.
_ALLOCATORS = ("operator new", "std::", "__gnu_cxx::", "void std::", "malloc", "calloc", "realloc", "strdup")


def of_process(process: str, record: Mapping[str, Any]) -> list[AllocationSite]:
    """Allocation sites of its threads, without perflab's own. Raises KeyError and TypeError for an invalid record."""
    return [
        AllocationSite(
            process=process,
            thread=site["thread"],
            role=site["role"],
            count=site["count"],
            bytes=site["bytes"],
            frames=tuple(_named(frame) for frame in site["frames"]),
        )
        for site in record["sites"]
        if site["role"] != OWN
    ]


def most(sites: Sequence[AllocationSite]) -> tuple[AllocationSite, ...]:
    """The most frequent ones; threads with the same name are merged."""
    merged: dict[tuple[Any, ...], AllocationSite] = {}
    for site in sites:
        key = (site.process, site.thread, site.role, site.frames)
        before = merged.get(key)
        count, size = (0, 0) if before is None else (before.count, before.bytes)
        merged[key] = AllocationSite(
            process=site.process, thread=site.thread, role=site.role, frames=site.frames,
            count=site.count + count, bytes=site.bytes + size,
        )  # fmt: skip
    return tuple(sorted(merged.values(), key=lambda site: (-site.count, -site.bytes, site.frames))[:MOST])


def callers(site: AllocationSite) -> tuple[str, ...]:
    """Its frames from the first one outside of the allocator and the standard library."""
    outside = [n for n, frame in enumerate(site.frames) if not frame.startswith(_ALLOCATORS)]
    return site.frames[outside[0] :] if outside else site.frames


def _named(frame: Mapping[str, Any]) -> str:
    """The function; else the object and its offset, as input for addr2line(1)."""
    return frame["function"] or f"{frame['object'] or '?'}+{frame['offset']:#x}"
