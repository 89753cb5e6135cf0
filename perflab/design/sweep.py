"""Sweeps: experiments with factors, which imply their conditions and skip impossible levels."""

from __future__ import annotations

import dataclasses
from collections.abc import Container, Iterable, Mapping
from typing import Any

from perflab.condition.kinds import REGISTRY as CONDITIONS
from perflab.design.document import Written
from perflab.design.levels import listed
from perflab.design.settings import Experiment, UnavailableLevel
from perflab.design.treatments import Planned, Treatment
from perflab.errors import BadInput, Unavailable
from perflab.host import Host
from perflab.results.files import LeftOutTreatment


def as_sweep(written: Written) -> Written:
    """Adds every condition that a factor names. Raises BadInput without a factor to sweep."""
    factors = written.mapping.get("factors")
    if not isinstance(factors, Mapping) or not factors:
        raise BadInput(f"{written.where(('factors',))}: a sweep needs a factor, e.g. --factor cpu_load.load=0..90:15")
    for path, levels in factors.items():
        try:
            count = len(listed(levels)) if isinstance(levels, str | list) else 2
        except ValueError:
            continue  # the reader of the document reports it, at its place
        if count < 2 and len(factors) == 1:
            raise BadInput(
                f"{written.where(('factors', path))}: factor {path} has one level; a sweep needs two or more"
            )
    return with_conditions(written, factors)


def as_search(written: Written) -> Written:
    """Adds the condition of the searched factor. Raises BadInput if the searched factor is missing."""
    asked = written.mapping.get("breaking_point")
    missing = [key for key in ("factor", "low", "high") if not isinstance(asked, Mapping) or key not in asked]
    if missing:
        options = ", ".join(f"--{key}" for key in missing)
        raise BadInput(
            f"{options} missing: name the factor and its range, e.g. --factor message_flood.rate --low 100 --high 8000"
        )
    return with_conditions(written, [str(asked["factor"])] if isinstance(asked, Mapping) else [])


def with_conditions(written: Written, paths: Iterable[str]) -> Written:
    """Adds the conditions of these factors to every entry of `conditions` that lacks them."""
    names = list(dict.fromkeys(name for path in paths if (name := path.partition(".")[0]) in CONDITIONS))
    given = written.mapping.get("conditions")
    entries = [given] if isinstance(given, str | Mapping) else list(given or [])
    if not names or any(not isinstance(entry, str | Mapping) for entry in entries):
        return written
    changed = [_with_names(entry, names) for entry in entries] or ["+".join(names)]
    return dataclasses.replace(written, mapping={**written.mapping, "conditions": changed})


def _with_names(entry: str | Mapping[str, Any], names: Iterable[str]) -> str | dict[str, Any]:
    if isinstance(entry, str):
        there = {word.strip().partition(":")[0] for word in entry.split("+")}
        return "+".join([entry, *(name for name in names if name not in there)])
    return {**entry, **{name: None for name in names if name not in entry}}


def possible(experiment: Experiment, host: Host) -> Experiment:
    """The experiment without optional parts that this machine cannot do; they are listed in it."""
    return _possible_levels(_possible_treatments(experiment, host), host)


def _possible_treatments(experiment: Experiment, host: Host) -> Experiment:
    """Without the treatments that are not required and cannot run here."""
    reasons = {id(t): _why_not(experiment, t, host) for t in experiment.treatments if not t.required}
    left_out = {t.label: reason for t in experiment.treatments if (reason := reasons.get(id(t))) is not None}
    if not left_out or all(reasons.get(id(t)) is not None for t in experiment.treatments):
        return experiment  # if nothing would be left, the caller refuses as usual
    gone = {treatment for treatment, reason in reasons.items() if reason is not None}
    found = tuple(LeftOutTreatment(treatment=label, reason=reason) for label, reason in left_out.items())
    return dataclasses.replace(_without(experiment, gone), left_out=found)


def _without(experiment: Experiment, gone: Container[int]) -> Experiment:
    """Without the treatments with these identities."""
    kept = tuple(t for t in experiment.treatments if id(t) not in gone)
    order = [p for p in experiment.order if id(p.treatment) not in gone]
    renumbered = tuple(Planned(n, p.block, p.treatment, p.after) for n, p in enumerate(order, 1))
    return dataclasses.replace(experiment, treatments=kept, order=renumbered)


def _possible_levels(experiment: Experiment, host: Host) -> Experiment:
    """Without the levels of a sweep that cannot be produced.

    Nothing else is left out: the caller refuses a treatment that fails for other reasons, and a factor with fewer than
    two remaining levels.
    """
    if not experiment.document.sweep:
        return experiment
    unavailable: dict[tuple[str, str], UnavailableLevel] = {}
    gone: set[int] = set()
    for treatment in experiment.treatments:
        reason = _why_not(experiment, treatment, host)
        blamed = None if reason is None else _blamed(experiment, treatment, host)
        if reason is None or blamed is None:
            continue
        gone.add(id(treatment))
        unavailable[blamed, str(treatment.factors[blamed])] = UnavailableLevel(
            blamed, treatment.factors[blamed], reason
        )
    if not gone:
        return experiment
    for path in {level.factor for level in unavailable.values()}:
        left = {str(t.factors[path]) for t in experiment.treatments if id(t) not in gone and path in t.factors}
        if len(left) < 2:
            return experiment
    return dataclasses.replace(_without(experiment, gone), unavailable=tuple(unavailable.values()))


def _why_not(experiment: Experiment, treatment: Treatment, host: Host) -> str | None:
    try:
        treatment.check(host, experiment.runtime_of(treatment))
    except (Unavailable, BadInput) as error:
        return str(error)
    return None


def _blamed(experiment: Experiment, treatment: Treatment, host: Host) -> str | None:
    """The factor whose level alone makes the treatment impossible: with another level it could run."""
    for path in treatment.factors:
        for other in experiment.treatments:
            differing = [k for k in treatment.factors if other.factors.get(k) != treatment.factors[k]]
            same = other.variant.key == treatment.variant.key and other.conditions
            if same and differing == [path] and path in other.factors and _why_not(experiment, other, host) is None:
                return path
    return None
