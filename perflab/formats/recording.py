"""recording.json: metadata of a folder of recorded traces (docs/formats.md, section 16)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perflab import models
from perflab.models import Damaged

FILE = "recording.json"
_LEVELS_UP = 5  # from LTTng's innermost folder to that of the recording


@dataclass(frozen=True, kw_only=True)
class Throttled:
    """A group throttled by a CPU quota was released between two readings of its counters, CLOCK_MONOTONIC."""

    before_ns: int
    after_ns: int
    periods: int  # time during which it was throttled, since it was released before
    ns: int  # throttled time, summed over CPUs


@dataclass(frozen=True, kw_only=True)
class Frozen:
    """When the freezer was read, CLOCK_MONOTONIC."""

    before_ns: int | None  # last reading before the group was frozen; None: it was frozen from the first reading on
    first_ns: int  # while it was frozen
    last_ns: int
    after_ns: int | None  # first reading after; None: it was frozen until the last reading


@dataclass(kw_only=True)
class Cgroup:
    """A control group that throttled or froze threads of the recording."""

    path: str
    quota_us: int | None
    period_us: int | None
    threads: list[int]
    throttled: list[Throttled]
    frozen: list[Frozen]


def recording_of(path: Path) -> dict[str, Any]:
    """The recording of a trace in that folder; empty if there is none, or the file cannot be read."""
    for folder in (path, *path.absolute().parents)[: _LEVELS_UP + 1]:
        if (folder / FILE).is_file():
            try:
                document = json.loads((folder / FILE).read_text(encoding="utf-8"))
            except (OSError, ValueError):
                return {}
            return document if isinstance(document, dict) else {}
    return {}


def cgroups_of(document: dict[str, Any]) -> list[Cgroup]:
    """The groups of a recording; none if it lacks them, as from an older perflab."""
    try:
        return [models.read(Cgroup, group) for group in document.get("cgroups") or ()]
    except (Damaged, TypeError):
        return []
