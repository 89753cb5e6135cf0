"""Of which version this is: of the package, what records its runs, and what it writes into other formats."""

from __future__ import annotations

__version__ = "0.1.0"
