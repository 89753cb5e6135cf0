"""The source of a workload."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Source:
    """A file that the user named, with its text when it was read."""

    path: str
    sha256: str
    text: str
