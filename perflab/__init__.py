"""perflab, a performance laboratory for ROS 2 and DDS.

An experiment runs a workload under conditions, trial by trial, while observers record; analysis turns the
records into answers. Imports point one way: cli -> experiment -> workload, middleware, condition, observer ->
native programs; `statistics` is pure and knows none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perflab.version import __version__ as __version__

if TYPE_CHECKING:
    from pathlib import Path

    from perflab.results.run import RunData


def open(path: str | Path) -> RunData:
    """The results of a run, for notebooks and scripts: a run directory, its name in runs/, or irobot_benchmark output.

    The tables of each trial are polars frames, and `summary` is summary.json as a dict:

        import perflab

        run = perflab.open("runs/20260101T120000Z_sierra_nevada")
        run.summary["results"][0]["totals"]["latency_ns"]["p99"]     # ns
        run.trials[0].edges.select("publisher", "topic", "subscription", "received", "late")
        run.trials[0].resources.select("process", "at_ns", "rss_kb")

    Raises perflab.errors.BadInput, with one line that says what is wrong.
    """
    from perflab.runs.rundata import open_run

    return open_run(path)
