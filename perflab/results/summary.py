"""summary.json (docs/schema/summary.schema.json)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from perflab import models
from perflab.results.claim import Claim
from perflab.results.comparison import Findings
from perflab.results.costs import ExecutorCosts
from perflab.results.curve import BreakingPoint, Curve
from perflab.results.figure import OwnFigure, know
from perflab.results.trial import Result, as_today

SCHEMA: Literal[1] = 1


@dataclass(frozen=True, kw_only=True)
class Summary:
    """Machine-readable results; also printed by `perflab run --json` and `perflab show RUN --json`. Values that were
    not measured are null. Readers must ignore unknown keys."""

    schema: Literal[1] = SCHEMA
    run: str
    """Name of the run directory."""
    valid: bool
    """Whether every planned trial took place and was a success."""
    results: tuple[Result, ...]
    """One per workload, variant (middleware, executor, ipc, pass_by), treatment, levels of factors and observers."""
    findings: Findings | None = None
    """Null for a single trial, and for a search."""
    claims: tuple[Claim, ...] = ()
    """The verdicts on the experiment's claims, in their order (docs/findings.md)."""
    curves: tuple[Curve, ...] = ()
    """For a run with factors whose levels are numbers: one per place (variant, conditions, levels of the other
    factors) and factor (docs/sweeps.md)."""
    breaking_points: tuple[BreakingPoint, ...] = ()
    """For a search: one per variant, entry of `conditions` and combination of the other factors' levels
    (docs/breaking_point.md)."""
    executor_costs: ExecutorCosts | None = None
    """Null if no CPU time was measured, for searches, and for older runs."""


def read(document: Mapping[str, Any]) -> Summary:
    """The summary in a file, also from older versions. Raises models.Damaged, BadInput."""
    results = document.get("results")
    if isinstance(results, list) and all(isinstance(result, Mapping) for result in results):
        document = {**document, "results": [_with_interrupted(as_today(result)) for result in results]}
    summary = models.read(Summary, document)
    for name, figure in (item for result in summary.results for item in result.key_figures.items()):
        if isinstance(figure, OwnFigure):
            know(name, figure)
    return summary


def _with_interrupted(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """Upgrades a result of an older version, which recorded interruptions only for single trials."""
    outcomes, trials = result.get("outcomes"), result.get("trials_detail")
    if not isinstance(outcomes, Mapping) or "interrupted" in outcomes or not isinstance(trials, list):
        return result
    cut = sum(bool(trial.get("interrupted")) for trial in trials if isinstance(trial, Mapping))
    return {**result, "outcomes": {**outcomes, "interrupted": cut}}


def json_schema() -> dict[str, Any]:
    """docs/schema/summary.schema.json."""
    return models.schema(Summary, "summary.json of a perflab run")
