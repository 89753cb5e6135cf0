"""What a workload was read from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Source:
    """A file that the user named, as it was when it was read."""

    path: str
    sha256: str
    text: str
