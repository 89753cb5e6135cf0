"""Opens what a test wrote by hand with the real reader."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest
from made_trace import MadeTrace

from perflab.trace import open_trace
from perflab.trace.source import LIBRARY, NativeTrace


def needs_library() -> None:
    """Skips the test where the native part is not built."""
    if not (Path(os.environ.get("PERFLAB_NATIVE", "")) / LIBRARY).is_file():
        pytest.skip(f"no {LIBRARY} in PERFLAB_NATIVE; build it with `make test`")


def opened(trace: MadeTrace, folder: Path) -> NativeTrace:
    needs_library()
    return open_trace([trace.write(folder)])


def rows(frame: pl.DataFrame, *columns: str) -> list[tuple[object, ...]]:
    return frame.select(columns).rows()


def column(frame: pl.DataFrame, name: str) -> list[object]:
    return frame[name].to_list()
