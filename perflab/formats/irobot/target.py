"""irobot_benchmark's performance targets: upper bounds of figures, in a JSON file.

    {"topology_file": ..., "platform": ..., "additional_options": ..., "comments": ...,
     "resources": {"cpu[%]": 15, "rss[KB]": 10240}, "latency_total": {"late[%]": 1.9, ...}}

Keys are columns of resources.txt and latency_total.txt, in either dialect.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from perflab.errors import BadInput
from perflab.formats.irobot import dialect
from perflab.formats.json_file import read_json

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
    """The target in a file, or with this name in the catalog. Raises BadInput, which names `option`."""
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
    raise BadInput(f"{option} {word!r} is neither a file nor a target in the catalog{names}")


def read(path: Path) -> Target:
    """The target in a file. Raises BadInput."""
    document = read_json(path)

    def wrong(problem: str) -> BadInput:
        return BadInput(f"target {path}: {problem}")

    for key, value in document.items():
        if key not in (*_TEXTS, *_SECTIONS):
            raise wrong(f"unknown key {key!r}; choose from {', '.join((*_TEXTS, *_SECTIONS))}")
        if key in _TEXTS and not isinstance(value, str | None):
            raise wrong(f"{key} is not text")
        if key in _SECTIONS and not isinstance(value, dict):
            raise wrong(f"{key} is not an object")
    bounds: dict[str, float] = {}
    for section, names in _SECTIONS.items():
        for key, value in document.get(section, {}).items():
            name = dialect.current_name(key)
            if name not in names:
                known = ", ".join(f"{n} or {dialect.legacy_name(n)}" for n in names)
                raise wrong(f"unknown key {key!r} in {section}; choose from {known}")
            if name in bounds:
                raise wrong(f"{section} gives {name} twice")
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or not math.isfinite(value) or value < 0:
                raise wrong(f"{key} in {section} is {value!r} instead of a number from 0 on")
            bounds[name] = float(value)
    if not bounds:
        raise BadInput(f"target {path} bounds nothing; it needs `resources` or `latency_total`")
    texts: dict[str, str | None] = {key: document.get(key) for key in _TEXTS}
    return Target(path=path, bounds=bounds, **texts)
