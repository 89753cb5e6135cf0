"""The catalog: the data files that come with perflab.

It is beside the package in a source checkout and in <prefix>/share/perflab/catalog when installed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perflab import workspace

TOPOLOGY_SUFFIXES = (".yaml", ".yml", ".json")


@dataclass(frozen=True)
class Entry:
    """One file of the catalog, with its name without suffix."""

    name: str
    path: Path


def folder() -> Path:
    """The catalog's folder; it need not exist."""
    beside = Path(__file__).resolve().parent.parent / "catalog"
    return beside if beside.is_dir() else workspace.installed("share", "perflab", "catalog")


def topologies() -> list[Entry]:
    """The topologies by name."""
    root = folder() / "topologies"
    found = {p.stem: p for p in sorted(root.glob("*")) if p.suffix in TOPOLOGY_SUFFIXES} if root.is_dir() else {}
    return [Entry(name, path) for name, path in sorted(found.items())]


def experiments() -> list[Entry]:
    """The example experiments by name."""
    root = folder() / "experiments"
    found = sorted(p for p in root.glob("*") if p.suffix in TOPOLOGY_SUFFIXES) if root.is_dir() else []
    return [Entry(p.stem, p) for p in found]


def targets() -> list[Entry]:
    """The performance targets by name."""
    root = folder() / "targets"
    found = sorted(root.glob("*.json")) if root.is_dir() else []
    return [Entry(p.stem, p) for p in found]


def paths() -> list[Entry]:
    """Named paths with their objectives, by name; traces of a graph are evaluated for those with the graph's name."""
    root = folder() / "paths"
    found = sorted(p for p in root.glob("*") if p.suffix in TOPOLOGY_SUFFIXES) if root.is_dir() else []
    return [Entry(p.stem, p) for p in found]


def tasks() -> list[Entry]:
    """Tasks of robot arms, by name."""
    root = folder() / "tasks"
    found = sorted(root.glob("*.json")) if root.is_dir() else []
    return [Entry(p.stem, p) for p in found]


def planners() -> list[str]:
    """Planners for robot arms, by MoveIt's names for OMPL's planners."""
    return sorted(read_json(folder() / "planners.json") or {}, key=str.encode)


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in a JSON file, or None if it is not an object."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) else None
