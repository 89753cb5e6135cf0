"""For all tests: whether the machine is quiet matters to measurements, and no test waits for it unless it says so.

Tests that run beside each other are given a width of the terminal, which is not that of a pipe.
"""

from __future__ import annotations

import os
import signal

from perflab import late_methods

# A shell's background jobs ignore Ctrl-C, and so would all that the tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ.setdefault("PERFLAB_COOL_DOWN", "0")
late_methods.install()  # as commands do: every process of the tests imports most modules
# What perflab is doing is said where a test asks for it.
os.environ.setdefault("PERFLAB_PROGRESS", "off")
os.environ.pop("COLUMNS", None)
