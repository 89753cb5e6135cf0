"""perflab, a performance laboratory for ROS 2 and DDS.

An experiment runs a workload under conditions, trial by trial, while observers record; analysis turns the
records into answers. Imports point one way: cli -> experiment -> workload, middleware, condition, observer ->
native programs; `statistics` is pure and knows none of them.

For scripts and notebooks (docs/api.md) there are three functions, which import what they need when they are called:

    import perflab

    run = perflab.run("sierra_nevada", time=5, trials=3, conditions=["cpu_load:load=80"])
    run = perflab.open("runs/20260101T120000Z_sierra_nevada")
    perflab.trials(run)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perflab.version import __version__ as __version__

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import polars as pl

    from perflab.results.run import RunData

__all__ = ["__version__", "open", "run", "trials"]


def run(
    workload: str | Path | Sequence[str] | Mapping[str, Any],
    *,
    output: str | Path | None = None,
    progress: str = "auto",
    check: bool = True,
    **experiment: Any,
) -> RunData:
    """Runs an experiment, as `perflab run` does, and opens what it recorded.

    `workload` is what the command takes: a catalog name, graph files, an experiment file, a generated graph as
    "NAME:key=value", or a mapping that describes a command. The keys of `experiment` are those of an experiment file
    (docs/experiments.md) and replace the file's; times are seconds, or text with a unit ("500ms"). `output` is the run
    directory, by default runs/<UTC time>_<name>; `progress` is what stderr shows: "auto", "lines" or "off".

    Raises BadInput and Unavailable (perflab.errors) with nothing written, Interrupted after Ctrl-C, and, unless `check`
    is off, TrialFailed if a trial was not a success; the run can still be opened, and the error names it. It must be
    called from the main thread, in which Ctrl-C ends a run in order.
    """
    from pathlib import Path

    from perflab.experiment.call import call
    from perflab.report import live

    directory = call(workload, experiment, None if output is None else Path(output), live.chosen(progress), check)
    return open(directory.path)


def open(path: str | Path) -> RunData:
    """The results of a run: a run directory, its name in runs/, or output of irobot_benchmark or of performance_test.

    `summary` is summary.json as typed records, `manifest` what ran and where, `frame` a table of all trials:

        run = perflab.open("runs/20260101T120000Z_sierra_nevada")
        run.summary.results[0].totals.latency_ns.p99             # ns
        run.summary.findings.comparisons                         # with intervals and verdicts
        run.frame("edges").select("treatment", "topic", "received", "late")
        run.trials[0].resources.select("process", "at_ns", "rss_kb")

    Raises perflab.errors.BadInput, with a line that says what is wrong.
    """
    from perflab.runs.rundata import open_run

    return open_run(path)


def trials(run: RunData) -> pl.DataFrame:
    """A row per trial: its circumstances, its outcome, and every measured metric, null if not measured.

    `perflab export RUN --format csv` writes the same as trials.csv, and beside it the columns' units and meanings.
    """
    import polars as pl

    from perflab.report.runs import read, trials_of
    from perflab.report.tables import plain
    from perflab.report.tables.trials import measurements

    return pl.DataFrame(plain.records(measurements(trials_of([read(run)]))), infer_schema_length=None)
