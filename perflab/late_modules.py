"""Modules that are imported when something of them is first used.

    if TYPE_CHECKING:
        import polars as pl
    else:
        from perflab.late_modules import polars as pl

For what takes long to import, and what some answers do without.
"""

from __future__ import annotations

import importlib
from typing import Any


class LateModule:
    """Stands for a module until something of it is asked for, by whatever thread."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        found = getattr(importlib.import_module(self._name), name)
        setattr(self, name, found)  # asked for once
        return found


polars = LateModule("polars")
