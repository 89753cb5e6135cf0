"""What of trial.json others rely on, and its type: a file that has something else there is damaged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from perflab import models
from perflab.results.outcome import HARNESS_ERROR, Outcome
from perflab.results.trial import ALIGNED, Drained, Purpose

Finite = Annotated[float, Field(allow_inf_nan=False)]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")


class _Middleware(_Part):
    name: str


class _Criterion(_Part):
    criterion: str
    met: bool
    words: str


class _Command(_Part):
    run_s: Finite | None = None


class _Messages(_Part):
    reason: str | None = None


class _TrialFile(_Part):
    run_id: str | None = None  # of a version that had none
    trial: int
    order: int
    status: str
    workload: str
    middleware: _Middleware
    conditions: list[str]
    outcome: Outcome | None
    own_outcome: dict[str, str] | None = None
    own_figures: dict[str, Finite | None] = {}
    reason: str | None
    interrupted: bool = False
    duration_s: Finite
    drain: Drained | None = None
    executor: str | None = None
    ipc: str | None = None
    pass_by: str | None = None
    treatment: str | None = None
    phase: str | None = None
    purpose: Purpose | None = None
    after: str | None = None
    block: int | None = None
    condition_parameters: dict[str, dict[str, Any]] | None = None
    factors: dict[str, bool | int | Finite | str] | None = None
    observers: list[str] | None = None
    evidence: dict[str, dict[str, Any]] | None = None
    criteria: list[_Criterion] | None = None
    processes: dict[str, dict[str, Any]]
    command: _Command | None = None
    messages: _Messages | None = None


def what_is_wrong(document: dict[str, Any]) -> str | None:
    """ "duration_s: input should be a valid number, not 'x'"; None of a good trial.json."""
    try:
        _TrialFile.model_validate(document)
    except ValidationError as error:
        return models.what_is_wrong(error)
    return None


def ended_early(document: Mapping[str, Any]) -> dict[str, Any]:
    """The trial.json of a trial that was not closed: an interrupted one, whose place a resumed run takes again."""
    return {
        **document,
        "status": "finished",
        "interrupted": document.get("outcome") is None,
        "outcome": document.get("outcome") or HARNESS_ERROR,
        "reason": document.get("reason") or "perflab ended before the trial did",
    }


def phase_of(document: Mapping[str, Any]) -> str | None:
    """Where in their periods the timers ticked; None where that is not known, as of a command.

    Of graphs that were run before there were phases they were aligned.
    """
    if "phase" in document:
        return None if document["phase"] is None else str(document["phase"])
    return ALIGNED if document.get("ipc") is not None else None
