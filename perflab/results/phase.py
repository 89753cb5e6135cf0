"""The phase of timers within their periods (native/graph/phase.h): as nodes create them, all at once, or spread."""

from __future__ import annotations

AS_CREATED, ALIGNED = "as_created", "aligned"
PHASES = (AS_CREATED, ALIGNED, "staggered", "random")
