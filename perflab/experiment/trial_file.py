"""What of trial.json others rely on, and its type: a file that has something else there is damaged."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

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
    outcome: Literal["success", "failed", "invalid", "harness_error"] | None
    reason: str | None
    interrupted: bool = False
    duration_s: Finite
    drain: str | None = None
    executor: str | None = None
    ipc: str | None = None
    pass_by: str | None = None
    treatment: str | None = None
    phase: str | None = None
    purpose: str | None = None
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
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        if first["type"] == "missing":
            return f"it has no {key}"
        message = str(first["msg"])
        given = repr(first["input"])
        return f"{key}: {message[:1].lower()}{message[1:]}, not {given if len(given) < 40 else f'{given[:36]}...'}"
    return None
