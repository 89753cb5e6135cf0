"""Which results of a run, or of two, belong beside each other, and what to call them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perflab.results.trial import AS_CREATED, Circumstances, Result, Trial, level_values
from perflab.statistics.metrics import Metric
from perflab.statistics.sample import Sample

_COMPARED = (
    "workload", "middleware", "executor", "ipc", "pass_by", "conditions", "condition_parameters", "factors",
    "observers",
)  # fmt: skip


def beside_irobot(phases: Iterable[str | None]) -> str | None:
    """What to say of figures that stand beside irobot_benchmark's, as far as the phase makes them others."""
    others = sorted({phase for phase in phases if phase not in (None, AS_CREATED)})
    return f"irobot_benchmark's timers have the phase {AS_CREATED}; these had {', '.join(others)}" if others else None


def variant_words(result: Circumstances) -> str:
    """ "cyclonedds, events, ipc on, by unique"."""
    asked = (
        result.middleware or "middleware not recorded",
        result.executor,
        "ipc on" if result.ipc == "on" else None,
        f"by {result.pass_by}" if result.pass_by else None,
    )
    return ", ".join(word for word in asked if word)


def place_words(result: Circumstances) -> str:
    """ "cyclonedds, events, workload.depth=10"."""
    levels = [f"{path}={text_of(level)}" for path, level in result.outer_factors.items()]
    return ", ".join([variant_words(result), *levels])


def names_of(results: Sequence[Circumstances]) -> list[str]:
    """What to call results in a list of them: by place, treatment, or both, as they differ."""
    several_places = len({r.place for r in results}) > 1
    several_treatments = len({r.label for r in results}) > 1
    if several_places and several_treatments:
        return [f"{place_words(r)}, {r.label}" for r in results]
    return [r.label if several_treatments else place_words(r) for r in results]


def sample_of(trials: Sequence[Trial], metric: Metric, name: str, *, blocked: bool = True) -> Sample:
    """One value per trial, those that did not measure it as missing ones."""
    blocks = [t.block for t in trials]
    return Sample.of(
        [metric.read(t).value for t in trials],
        [f"trial {t.trial}" for t in trials],
        [b for b in blocks if b is not None] if blocked and None not in blocks else None,
        name,
    )


def why_missing(trials: Sequence[Trial], metric: Metric) -> str | None:
    """The first reason why a trial has no value; None where each has one."""
    readings = (metric.read(t) for t in trials)
    return next((r.reason for r in readings if r.value is None), None)


@dataclass(frozen=True)
class Match:
    """Two results of two runs that measured the same thing; `differing` says what they differ in all the same."""

    first: Result
    second: Result
    differing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Matches:
    pairs: list[Match]
    only_first: list[Result]
    only_second: list[Result]


def match(first: Sequence[Result], second: Sequence[Result]) -> Matches:
    """The results of two runs by what they measured.

    Where nothing is alike: by their treatments if each run has one variant, and if each has one result these two.
    """
    firsts = [r for r in first if r.is_regular]
    seconds = [r for r in second if r.is_regular]
    found = _matched(firsts, seconds, lambda r: (r.place, _treatment_key(r)))
    if not found.pairs and len({r.place for r in firsts}) == 1 == len({r.place for r in seconds}):
        found = _matched(firsts, seconds, _treatment_key)
    if not found.pairs and len(firsts) == 1 == len(seconds):
        found = _matched(firsts, seconds, lambda _: ())
    return found


def _matched(firsts: Sequence[Result], seconds: Sequence[Result], key: Callable[[Result], object]) -> Matches:
    rest = list(seconds)
    pairs: list[Match] = []
    only_first: list[Result] = []
    for result in firsts:
        index = next((i for i, other in enumerate(rest) if key(other) == key(result)), None)
        if index is None:
            only_first.append(result)
        else:
            found = rest.pop(index)
            pairs.append(Match(result, found, _differing(result, found)))
    return Matches(pairs, only_first, rest)


def _treatment_key(result: Circumstances) -> tuple[object, ...]:
    parameters = sorted((label, text_of(p)) for label, p in result.condition_parameters.items())
    return tuple(parameters), result.conditions, tuple(sorted(result.observers))


def _differing(first: Circumstances, second: Circumstances) -> tuple[str, ...]:
    words = [
        f"{key}: {_said(key, first)} and {_said(key, second)}"
        for key in _COMPARED
        if _compared(key, first) != _compared(key, second)
    ]
    if first.phase != second.phase and None not in (first.phase, second.phase):
        words.append(f"phase of the timers: {first.phase} and {second.phase}")
    return tuple(words)


# Of these perflab's own runs have None where nothing was asked for.
_AS_IN_GRAPH = ("executor", "ipc", "pass_by")


def _said(key: str, result: Circumstances) -> str:
    """What a result says of itself. One of another program, which knows no purposes, does not say "none" of what it did
    not record."""
    if getattr(result, key):
        return text_of(getattr(result, key))
    if result.purpose is None or key in ("workload", "middleware"):
        return "not recorded"
    return "as in the graph" if key in _AS_IN_GRAPH else "none"


def _compared(key: str, result: Circumstances) -> object:
    found = getattr(result, key) or None
    return level_values(found) if key == "factors" and found is not None else found


def text_of(value: Any) -> str:
    """A level or a parameter for people."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, Mapping):
        return " ".join(f"{k}={text_of(v)}" for k, v in sorted(value.items())) or "none"
    if isinstance(value, list | tuple):
        return ",".join(map(text_of, value)) or "none"
    return "none" if value is None else str(value)
