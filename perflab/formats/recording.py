"""recording.json: what a folder of recorded traces says of itself (docs/formats.md, section 16)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perflab import models
from perflab.models import Damaged

FILE = "recording.json"
_LEVELS_UP = 5  # from the innermost folder of LTTng's to that of the recording


@dataclass(frozen=True, kw_only=True)
class Throttled:
    """A group that a CPU quota had held back was let go between two readings of its counters, CLOCK_MONOTONIC."""

    before_ns: int
    after_ns: int
    periods: int  # in which it was held back, since it was let go before
    ns: int  # for how long, summed over CPUs


@dataclass(frozen=True, kw_only=True)
class Frozen:
    """When the freezer was read, CLOCK_MONOTONIC."""

    before_ns: int | None  # for the last time before the group was frozen; None: it was from the first reading on
    first_ns: int  # while it was
    last_ns: int
    after_ns: int | None  # for the first time after; None: it was frozen until the last reading


@dataclass(kw_only=True)
class Cgroup:
    """A control group that held back threads of the recording."""

    path: str
    quota_us: int | None
    period_us: int | None
    threads: list[int]
    throttled: list[Throttled]
    frozen: list[Frozen]


def recording_of(path: Path) -> dict[str, Any]:
    """The recording that a trace in that folder is of; empty where it is of none, or the file cannot be read."""
    for folder in (path, *path.absolute().parents)[: _LEVELS_UP + 1]:
        if (folder / FILE).is_file():
            try:
                document = json.loads((folder / FILE).read_text(encoding="utf-8"))
            except (OSError, ValueError):
                return {}
            return document if isinstance(document, dict) else {}
    return {}


def cgroups_of(document: dict[str, Any]) -> list[Cgroup]:
    """Those of a recording; none where it does not say, as one that was made by an older perflab."""
    try:
        return [models.read(Cgroup, group) for group in document.get("cgroups") or ()]
    except (Damaged, TypeError):
        return []
