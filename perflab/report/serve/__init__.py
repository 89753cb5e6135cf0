"""`perflab report RUN --serve`: a live page of a run, served only to this machine."""

from __future__ import annotations

import contextlib
import os
import select
import sys
import threading
from collections.abc import Callable, Sequence

from perflab.report.serve import page
from perflab.report.serve.server import LiveServer
from perflab.report.serve.state import Watch

NICE = 19  # the measurement comes first
POLL_S = 0.5  # seconds until the end of serving is noticed


def serve(runs: Sequence[str], port: int = 0, announce: Callable[[str], None] | None = None) -> None:
    """Serves the live page of these runs until Ctrl-C or SIGTERM, the only ways to end it, and then returns.

    A run may be in progress, have ended, or not have begun yet. `port` 0 is any free one. `announce` receives lines for
    the user, the first of them with the URL; stdout by default. Must be called in the main thread, which receives
    signals; lowers the process's priority as far as possible. Raises BadInput for an invalid run or `port`,
    PerflabError if the port is unavailable.
    """
    from perflab.signals import Signals

    say = announce or _print
    watches = [Watch(word) for word in runs]
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, NICE)
    with Signals() as signals:
        server = LiveServer(watches, port, page.assets([watch.name for watch in watches]), page.report)
        thread = threading.Thread(target=server.serve_forever, args=(POLL_S,), name="serve", daemon=True)
        thread.start()
        try:
            say(f"Serving {', '.join(runs)} at {server.url}  (Ctrl-C ends it)")
            select.select([signals], [], [])
        finally:
            server.shutdown()
            server.close()
            thread.join()
        cost = server.cost()
        say(f"Served for {cost['seconds']:.0f} s, using {cost['cpu_s']:.2f} s of CPU time")


def _print(line: str) -> None:
    """Flushed at once, even if stdout is a file."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
