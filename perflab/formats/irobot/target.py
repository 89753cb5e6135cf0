"""irobot_benchmark's performance targets: upper bounds of figures, in a JSON file.

    {"topology_file": ..., "platform": ..., "additional_options": ..., "comments": ...,
     "resources": {"cpu[%]": 15, "rss[KB]": 10240}, "latency_total": {"late[%]": 1.9, ...}}

Keys are columns of resources.txt and latency_total.txt, in either dialect.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perflab.errors import BadInput
from perflab.formats.irobot import dialect

RESOURCES = ("cpu_perc", "rss_KB")
LATENCY_TOTAL = ("mean_us", "late_msgs", "late_perc", "too_late_msgs", "too_late_perc", "lost_msgs", "lost_perc")
_TEXTS = ("topology_file", "platform", "additional_options", "comments")
_SECTIONS = {"resources": RESOURCES, "latency_total": LATENCY_TOTAL}


@dataclass(frozen=True)
class Target:
    """A target: bounds by the current names of their columns, in the order of the file."""

    path: Path
    topology_file: str | None
    platform: str | None
    additional_options: str | None
    comments: str | None
    bounds: dict[str, float]

    @property
    def topology(self) -> str | None:
        """The name of the topology that it is for."""
        return Path(self.topology_file).stem if self.topology_file else None


def find(word: str, option: str) -> Target:
    """The target in a file, or of this name in the catalog. Raises BadInput, which names `option`."""
    from perflab import catalog

    try:
        if Path(word).is_file():
            return read(Path(word))
    except OSError as error:
        raise BadInput(f"cannot read target {word!r}: {error.strerror}") from error
    known = {entry.name: entry.path for entry in catalog.targets()}
    if word in known:
        return read(known[word])
    names = f"; the catalog has {', '.join(known)}" if known else ""
    raise BadInput(f"{option} {word!r} is neither a file nor a target of the catalog{names}")


def read(path: Path) -> Target:
    """The target in a file. Raises BadInput."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"cannot read target {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"target {path} is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise BadInput(f"target {path} is not a JSON object")
    for key in document:
        if key not in (*_TEXTS, *_SECTIONS):
            raise BadInput(f"target {path}: unknown key {key!r}; there are {', '.join((*_TEXTS, *_SECTIONS))}")
    for key in _TEXTS:
        if not isinstance(document.get(key), str | None):
            raise BadInput(f"target {path}: {key} is not a text")
    bounds: dict[str, float] = {}
    for section, names in _SECTIONS.items():
        for key, value in _section(path, document, section).items():
            name = _column(path, section, key, names)
            if name in bounds:
                raise BadInput(f"target {path}: {section} gives {name} twice")
            bounds[name] = _bound(path, section, key, value)
    if not bounds:
        raise BadInput(f"target {path} bounds nothing; it needs `resources` or `latency_total`")
    texts: dict[str, str | None] = {key: document.get(key) for key in _TEXTS}
    return Target(path=path, bounds=bounds, **texts)


def _section(path: Path, document: dict[str, Any], name: str) -> dict[str, Any]:
    section = document.get(name, {})
    if not isinstance(section, dict):
        raise BadInput(f"target {path}: {name} is not an object")
    return section


def _column(path: Path, section: str, key: str, names: Sequence[str]) -> str:
    name = dialect.current_name(key)
    if name not in names:
        known = ", ".join(f"{n} or {dialect.legacy_name(n)}" for n in names)
        raise BadInput(f"target {path}: unknown key {key!r} in {section}; there are {known}")
    return name


def _bound(path: Path, section: str, key: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise BadInput(f"target {path}: {key} in {section} is {value!r} instead of a number from 0 on")
    return float(value)
