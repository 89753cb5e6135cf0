"""The pictures of a report: everything that runs hold, in the order in which it is read."""

from __future__ import annotations

from collections.abc import Sequence

from perflab.report import pictures
from perflab.report.figures import Figure
from perflab.report.results import ROUND_TRIP, Trials, by_level, evenly, results_of, was_measured
from perflab.results.run import RunData

SECTIONS = (
    "distributions", "percentiles", "time", "curves", "breaking_points", "executor_costs", "cores", "affinity",
    "cpu", "rss",
)  # fmt: skip


def of(runs: Sequence[RunData]) -> list[tuple[str, Figure]]:
    """The section and the figure of each picture, ready to be drawn; names of figures differ.

    Raises BadInput where files of a run are damaged.
    """
    results = results_of(runs)
    measured = [name for name in ("latency", ROUND_TRIP) if any(was_measured(result, name) for result in results)]
    made = pictures.build(
        results,
        SECTIONS,
        measured,
        together=False,
        runs=runs,
        chosen=_over_levels(results),
        others="`perflab plot --only` draws others",
    )
    return [(figure.kind, figure) for figure in made.figures]


def _over_levels(results: Sequence[Trials]) -> list[Trials] | None:
    """Of too many levels of a factor those that lie evenly, the first and the last among them; None: not that many."""
    ordered = by_level(results) if len(results) > pictures.MAX_RESULTS else None
    return None if ordered is None else evenly(ordered, pictures.MAX_RESULTS)
