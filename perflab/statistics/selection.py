"""Which trials of a run's results enter statistics, and which results belong beside each other.

A trial enters that was measured to its end with all its conditions in effect, and that was made to be measured: never
one that was invalid, that the laboratory failed, or that was an extra one for tracing or profiling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perflab.statistics.metrics import Metric
from perflab.statistics.sample import Sample
from perflab.units import is_zero, level_value
from perflab.workload import ALIGNED, AS_CREATED

Json = dict[str, Any]
Trial = Mapping[str, Any]

BASELINE = "baseline"
MEASURED, CONTROL, EXTRA = "measured", "control", "extra"

_VARIANT = ("workload", "middleware", "executor", "ipc", "pass_by")


def purpose_of(result: Trial) -> str:
    return str(result.get("purpose") or MEASURED)


def treatment_of(result: Trial) -> str:
    """The label of the treatment; results of older runs have the names of their conditions alone."""
    return str(result.get("treatment") or " + ".join(result.get("conditions") or ()) or BASELINE)


def phase_of(result: Trial) -> str | None:
    """Where in their periods the timers ticked; None where that is not known, as of a command.

    Of graphs that were run before there were phases they were aligned.
    """
    if "phase" in result:
        return None if result["phase"] is None else str(result["phase"])
    return ALIGNED if result.get("ipc") is not None else None


def beside_irobot(phases: Iterable[str | None]) -> str | None:
    """What to say of figures that stand beside irobot_benchmark's, as far as the phase makes them others."""
    others = sorted({phase for phase in phases if phase not in (None, AS_CREATED)})
    return f"irobot_benchmark's timers have the phase {AS_CREATED}; these had {', '.join(others)}" if others else None


def is_disturbed(result: Trial) -> bool:
    return bool(result.get("conditions"))


def variant_of(result: Trial) -> tuple[str | None, ...]:
    return tuple(result.get(key) for key in _VARIANT)


def outer_factors(result: Trial) -> dict[str, Any]:
    """The levels of the factors that are not parameters of a condition: a baseline has them too.

    A result without a condition may have levels of it all the same: one of them is 0, at which there is nothing of it.
    """
    off = conditions_off(result)
    conditions = set(result.get("conditions") or ())
    return {
        path: level
        for path, level in (result.get("factors") or {}).items()
        if path.partition(".")[0] in _outer_names(result) or path.partition(".")[0] not in conditions | off
    }


def conditions_off(result: Trial) -> set[str]:
    """The conditions that levels of factors switch off; what other levels of theirs the result has mean nothing."""
    there = _outer_names(result) | set(result.get("conditions") or ())
    levels = (result.get("factors") or {}).items()
    return {name for path, level in levels if is_zero(level) and (name := path.partition(".")[0]) not in there}


def level_values(factors: Mapping[str, Any]) -> dict[str, object]:
    """Levels as values, so that those which say the same are equal however they were written: 0 and "0 %"."""
    return {path: level_value(level) for path, level in factors.items()}


def _outer_names(result: Trial) -> set[str]:
    return {"workload", "middleware", *str(result.get("middleware") or "").split("+")}


def place_of(result: Trial) -> tuple[object, ...]:
    """What a treatment shares with its baseline; results of one place differ in conditions and observers alone."""
    return (*variant_of(result), tuple(sorted((k, repr(v)) for k, v in level_values(outer_factors(result)).items())))


def variant_words(result: Trial) -> str:
    """ "cyclonedds, events, ipc on, by unique"."""
    asked = (
        result.get("middleware") or "middleware not recorded",
        result.get("executor"),
        "ipc on" if result.get("ipc") == "on" else None,
        f"by {result['pass_by']}" if result.get("pass_by") else None,
    )
    return ", ".join(str(word) for word in asked if word)


def place_words(result: Trial) -> str:
    """ "cyclonedds, events, workload.depth=10"."""
    levels = [f"{path}={_text(level)}" for path, level in outer_factors(result).items()]
    return ", ".join([variant_words(result), *levels])


def names_of(results: Sequence[Trial]) -> list[str]:
    """What to call results in a list of them: by place, treatment, or both, as they differ."""
    several_places = len({place_of(r) for r in results}) > 1
    several_treatments = len({treatment_of(r) for r in results}) > 1
    if several_places and several_treatments:
        return [f"{place_words(r)}, {treatment_of(r)}" for r in results]
    return [treatment_of(r) if several_treatments else place_words(r) for r in results]


def entering(result: Trial) -> list[Trial]:
    """The trials that enter statistics, in the order in which they ran."""
    if purpose_of(result) == EXTRA:
        return []
    chosen = [t for t in result["trials_detail"] if is_measured(t) and (t.get("purpose") or MEASURED) != EXTRA]
    return sorted(chosen, key=lambda t: int(t["order"]))


def is_measured(trial: Trial) -> bool:
    """Whether its figures are those of a whole trial, which may have missed a criterion of success; summaries of older
    runs and of foreign ones know successes alone."""
    return bool(trial.get("measured", trial["outcome"] == "success"))


def merged(result: Trial) -> list[Trial]:
    """The trials whose figures a result holds together, as summary.py chooses them: those that were measured, and where
    there is none, all that recorded anything."""
    details: Sequence[Trial] = result["trials_detail"]
    return [t for t in details if is_measured(t)] or [t for t in details if _recorded(t)]


def _recorded(trial: Trial) -> bool:
    totals = trial["totals"]
    return any(totals.get(key) is not None for key in ("received", "published")) or bool(trial.get("services"))


def sample_of(trials: Sequence[Trial], metric: Metric, name: str, *, blocked: bool = True) -> Sample:
    """One value per trial, those that did not measure it as missing ones."""
    blocks = [t.get("block") for t in trials]
    return Sample.of(
        [metric.read(t).value for t in trials],
        [f"trial {t['trial']}" for t in trials],
        [int(b) for b in blocks if b is not None] if blocked and None not in blocks else None,
        name,
    )


def why_missing(trials: Sequence[Trial], metric: Metric) -> str | None:
    """The first reason why a trial has no value; None where each has one."""
    readings = (metric.read(t) for t in trials)
    return next((r.reason for r in readings if r.value is None), None)


@dataclass(frozen=True)
class Match:
    """Two results of two runs that measured the same thing; `differing` says what they differ in all the same."""

    first: Json
    second: Json
    differing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Matches:
    pairs: list[Match]
    only_first: list[Json]
    only_second: list[Json]


def match(first: Sequence[Json], second: Sequence[Json]) -> Matches:
    """The results of two runs by what they measured.

    Where nothing is alike: by their treatments if each run has one variant, and if each has one result these two.
    """
    firsts = [r for r in first if purpose_of(r) == MEASURED]
    seconds = [r for r in second if purpose_of(r) == MEASURED]
    found = _matched(firsts, seconds, lambda r: (place_of(r), _treatment_key(r)))
    if not found.pairs and len({place_of(r) for r in firsts}) == 1 == len({place_of(r) for r in seconds}):
        found = _matched(firsts, seconds, _treatment_key)
    if not found.pairs and len(firsts) == 1 == len(seconds):
        found = _matched(firsts, seconds, lambda _: ())
    return found


def _matched(firsts: Sequence[Json], seconds: Sequence[Json], key: Callable[[Json], tuple[object, ...]]) -> Matches:
    rest = list(seconds)
    pairs: list[Match] = []
    only_first: list[Json] = []
    for result in firsts:
        found = next((other for other in rest if key(other) == key(result)), None)
        if found is None:
            only_first.append(result)
        else:
            rest.remove(found)
            pairs.append(Match(result, found, _differing(result, found)))
    return Matches(pairs, only_first, rest)


def _treatment_key(result: Trial) -> tuple[object, ...]:
    parameters = sorted((label, _text(p)) for label, p in (result.get("condition_parameters") or {}).items())
    observers = tuple(sorted(result.get("observers") or ()))
    return tuple(parameters), tuple(result.get("conditions") or ()), observers


def _differing(first: Trial, second: Trial) -> tuple[str, ...]:
    words = [
        f"{key}: {_said(key, first)} and {_said(key, second)}"
        for key in (*_VARIANT, "conditions", "condition_parameters", "factors", "observers")
        if _compared(key, first) != _compared(key, second)
    ]
    phases = phase_of(first), phase_of(second)
    if phases[0] != phases[1] and None not in phases:
        words.append(f"phase of the timers: {phases[0]} and {phases[1]}")
    return tuple(words)


# Of these perflab's own runs have None where nothing was asked for.
_AS_IN_GRAPH = ("executor", "ipc", "pass_by")


def _said(key: str, result: Trial) -> str:
    """What a result says of itself. One of another program, which knows no purposes, does not say "none" of what it did
    not record."""
    if result.get(key):
        return _text(result[key])
    if "purpose" not in result or key in ("workload", "middleware"):
        return "not recorded"
    return "as in the graph" if key in _AS_IN_GRAPH else "none"


def _compared(key: str, result: Trial) -> object:
    found = result.get(key) or None
    return level_values(found) if key == "factors" and found is not None else found


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, Mapping):
        return " ".join(f"{k}={_text(v)}" for k, v in sorted(value.items())) or "none"
    if isinstance(value, list | tuple):
        return ",".join(map(_text, value)) or "none"
    return "none" if value is None else str(value)
