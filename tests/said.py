"""What perflab says on stderr, apart from what a busy machine makes it say."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from typing import Any

LIMIT_S = 240


def without_waits(stderr: str) -> str:
    """Without the lines that name a wait of more than two seconds."""
    return "".join(line for line in stderr.splitlines(keepends=True) if not line.startswith("perflab: waiting for "))


def finished(words: Sequence[str], **more: Any) -> subprocess.CompletedProcess[str]:
    """What a command line that has perflab in it printed, once it has ended."""
    done = subprocess.run(words, capture_output=True, text=True, check=False, **{"timeout": LIMIT_S, **more})
    done.stderr = without_waits(done.stderr)
    return done
