"""Where in their periods timers tick (native/graph/phase.h): as nodes create them, all at once, or apart."""

from __future__ import annotations

AS_CREATED, ALIGNED = "as_created", "aligned"
PHASES = (AS_CREATED, ALIGNED, "staggered", "random")
