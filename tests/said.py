"""What perflab says on stderr, apart from what a busy machine makes it say."""

from __future__ import annotations


def without_waits(stderr: str) -> str:
    """Without the lines that name what perflab has waited for since two seconds."""
    return "".join(line for line in stderr.splitlines(keepends=True) if not line.startswith("perflab: waiting for "))
