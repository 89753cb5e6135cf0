"""The version of the package, which is recorded in runs and written into other formats."""

from __future__ import annotations

__version__ = "0.1.0"
