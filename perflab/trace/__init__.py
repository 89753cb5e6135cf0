"""Traces of ROS 2 systems: read by native code, handed over as data frames, and turned into answers.

Example:
    trace = open_trace([Path("traces/session")])
    takes = trace.table("takes")
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perflab.trace.source import NativeTrace, Reads

__all__ = ["open_trace"]


def open_trace(paths: Sequence[Path], threads: int = 0, reads: Reads | None = None) -> NativeTrace:
    """Reads the traces in these directories, of one session, with so many decoding threads; 0 is one per CPU.
    `reads`: what will be read of the tables of what happened, as an answer's READS says it; None: all of it.

    Raises BadInput where they cannot be read, Unavailable where the native reader is missing. What is lost or damaged
    within them is in `facts["ledger"]`.
    """
    from perflab.trace.source import NativeTrace

    return NativeTrace(paths, threads, reads)
