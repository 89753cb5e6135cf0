"""irobot_benchmark's output directories: `<topology>_log/` with latency_all, latency_total, resources, events and
metadata.txt, in the current dialect or the older one, as text of fixed width or CSV.

    model      what one such directory says, whatever its dialect
    dialect    the names and widths of columns
    parse      directory -> model          write       model -> directory
    runs       models -> RunData           accounts    a trial of perflab -> models
"""

from __future__ import annotations

from perflab.formats.irobot.accounts import Accounting, outputs_of
from perflab.formats.irobot.model import Output
from perflab.formats.irobot.parse import find
from perflab.formats.irobot.runs import read
from perflab.formats.irobot.write import write

__all__ = ["Accounting", "Output", "find", "outputs_of", "read", "write"]
