"""`perflab report RUN --serve`: a page that shows a run while it goes on, served to this machine alone."""

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
POLL_S = 0.5  # in which the end of serving is noticed


def serve(runs: Sequence[str], port: int = 0, announce: Callable[[str], None] | None = None) -> None:
    """Serves the live page of these runs until Ctrl-C or SIGTERM, and then returns: that is the way to end it.

    A run may go on, have ended, or not have begun: it is then waited for. `port` 0 is any that is free. `announce` is
    given lines for the user, the first of them with the URL; they go to stdout by default. To be called in the main
    thread, of which the signals are; the process is as nice as can be from then on. Raises BadInput where a word
    cannot become a run or `port` is none, PerflabError where the port cannot be had.
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
        say(f"Served for {cost['seconds']:.0f} s, which took {cost['cpu_s']:.2f} s of CPU time")


def _print(line: str) -> None:
    """At once, also where stdout is a file."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
