"""For all tests: whether the machine is quiet matters to measurements, and no test waits for it unless it says so."""

from __future__ import annotations

import os

os.environ.setdefault("PERFLAB_COOL_DOWN", "0")
