"""Which results of a run, or of two, belong beside each other, and their labels."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from perflab.results.phase import AS_CREATED
from perflab.results.trial import Circumstances, Result, Trial, level_values
from perflab.statistics.metrics import Metric
from perflab.statistics.sample import Sample
from perflab.units import is_zero, level_value

R = TypeVar("R", bound=Circumstances)

_COMPARED = (
    "workload", "middleware", "executor", "ipc", "pass_by", "conditions", "condition_parameters", "factors",
    "observers",
)  # fmt: skip


def beside_irobot(phases: Iterable[str | None]) -> str | None:
    """A remark on figures beside irobot_benchmark's, if the phase makes them differ."""
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
    """Labels of results in a list: by place, treatment, or both, as they differ."""
    several_places = len({r.place for r in results}) > 1
    several_treatments = len({r.label for r in results}) > 1
    if several_places and several_treatments:
        return [f"{place_words(r)}, {r.label}" for r in results]
    return [r.label if several_treatments else place_words(r) for r in results]


def sample_of(trials: Sequence[Trial], metric: Metric, name: str, *, blocked: bool = True) -> Sample:
    """One value per trial; unmeasured ones count as missing."""
    blocks = [t.block for t in trials]
    return Sample.of(
        [metric.read(t).value for t in trials],
        [f"trial {t.trial}" for t in trials],
        [b for b in blocks if b is not None] if blocked and None not in blocks else None,
        name,
    )


def why_missing(trials: Sequence[Trial], metric: Metric) -> str | None:
    """The first reason why a trial has no value; None if each has one."""
    readings = (metric.read(t) for t in trials)
    return next((r.reason for r in readings if r.value is None), None)


@dataclass(frozen=True)
class Match:
    """Two results of two runs that measured the same thing; `differing` lists their remaining differences."""

    first: Result
    second: Result
    differing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Matches:
    pairs: list[Match]
    only_first: list[Result]
    only_second: list[Result]


def match(first: Sequence[Result], second: Sequence[Result]) -> Matches:
    """Matches the results of two runs by what they measured.

    Without a match: by their treatments if each run has one variant, and if each has one result, these two.
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


# In perflab's own runs these are None if nothing was requested.
_AS_IN_GRAPH = ("executor", "ipc", "pass_by")


def _said(key: str, result: Circumstances) -> str:
    """The settings that a result records. A result of another program, which has no purposes, does not have "none" for
    what it did not record."""
    if getattr(result, key):
        return text_of(getattr(result, key))
    if result.purpose is None or key in ("workload", "middleware"):
        return "not recorded"
    return "as in the graph" if key in _AS_IN_GRAPH else "none"


def _compared(key: str, result: Circumstances) -> object:
    found = getattr(result, key) or None
    return level_values(found) if key == "factors" and found is not None else found


# -- over the levels of a factor -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Placed(Generic[R]):
    """A curve without figures: the variant, levels of the other factors, and results by level, ascending."""

    words: str
    others: Mapping[str, Any]
    levels: Mapping[float, list[R]]
    middleware: str | None = None
    called: Mapping[float, str] = field(default_factory=dict)  # levels that are words, by payload if placed there


def placed(path: str, results: Sequence[R]) -> list[Placed[R]]:
    """The curves of a factor: results that differ only in its level.

    There is one for each place and each combination of what else was varied: the variant, the levels of the other
    factors, and the other parameters of the conditions. A baseline is placed at the level that disables the condition.
    Levels that are words, such as message types, are placed at the payload of their messages in bytes if all payloads
    are different.
    """
    payloads = _payloads(path, results)
    found: list[tuple[R, dict[float, list[R]]]] = []
    # Results with the most conditions define the curves; those with some of them off join every curve that they fit.
    for result in sorted(results, key=lambda r: -len(r.conditions)):
        word = result.factors.get(path)
        level = payloads.get(word) if isinstance(word, str) and payloads else _level_of(path, result)
        if level is None:
            continue
        mine = [levels for first, levels in found if _belongs(path, first, result)]
        if not mine:
            mine = [{}]
            found.append((result, mine[0]))
        for levels in mine:
            levels.setdefault(level, []).append(result)
    order = {id(r): n for n, r in enumerate(results)}
    several = len({first.workload for first, _ in found}) > 1
    return [
        Placed(
            words=f"{first.workload}, {variant_words(first)}" if several else variant_words(first),
            others=_others(path, first),
            levels=dict(sorted(levels.items())),
            middleware=first.middleware,
            called={payload: word for word, payload in payloads.items()},
        )
        for first, levels in sorted(found, key=lambda entry: order[id(entry[0])])
    ]


def _payloads(path: str, results: Sequence[Circumstances]) -> dict[str, float]:
    """For levels of a factor that are words, the payload of the messages; empty if one is not a word, two have the same
    payload, or one has several."""
    sizes: dict[str, set[int]] = {}
    for result in results:
        level = result.factors.get(path)
        if level is None or not isinstance(result, Result):
            continue
        if not isinstance(level, str) or isinstance(level_value(level), float):
            return {}
        sizes.setdefault(level, set()).update(e.size_bytes for e in result.edges if e.size_bytes is not None)
    found = {level: float(next(iter(of))) for level, of in sizes.items() if len(of) == 1}
    # A result without records has no edges; the others still define the place.
    several = any(len(of) > 1 for of in sizes.values())
    return found if not several and len(found) > 1 and len(set(found.values())) == len(found) else {}


def _level_of(path: str, result: Circumstances) -> float | None:
    """The level of a result; for a disabled condition, only the one that disables it."""
    level = level_value(result.factors.get(path))
    if not isinstance(level, float) or (path.partition(".")[0] in result.conditions_off and level != 0):
        return None
    return level


def _belongs(path: str, first: Circumstances, result: Circumstances) -> bool:
    """Whether a result is on the curve of another: everything else is equal, except parameters of a disabled
    condition."""
    if first.variant != result.variant:
        return False
    name = path.partition(".")[0]
    skipped = {name} & result.conditions_off
    return _surroundings(path, first, skipped) == _surroundings(path, result, skipped)


def _surroundings(path: str, result: Circumstances, skipped: set[str]) -> dict[str, str]:
    """The other settings: levels of outer factors, the parameters of conditions, and which conditions are off."""
    found = {k: repr(v) for k, v in level_values(result.outer_factors).items() if k != path}
    found |= dict.fromkeys(result.conditions_off - skipped, "off")
    names = result.conditions
    for name, (label, parameters) in zip(names, result.condition_parameters.items(), strict=False):
        if name not in skipped:
            rest = {k: v for k, v in (parameters or {}).items() if f"{name}.{k}" != path}
            found[label] = json.dumps(rest, sort_keys=True, default=str)
    return found


def _others(path: str, result: Circumstances) -> dict[str, Any]:
    """The levels of the other factors, without those that have no effect."""
    off = result.conditions_off
    factors = result.factors.items()
    return {k: v for k, v in factors if k != path and (k.partition(".")[0] not in off or is_zero(v))}


PAYLOAD = "payload"  # the path of levels that are placed at the payload of their messages
UNITS = {"cpu_load.load": " %", "message_flood.rate": " msg/s", PAYLOAD: " B"}  # of the levels of factors


def level_words(path: str, level: float) -> str:
    """ "60 %", "4"."""
    return f"{level_number(level)}{UNITS.get(path, '')}"


def level_number(level: float) -> str:
    return f"{level:.0f}" if level == int(level) and abs(level) < 1e15 else f"{level:.6g}"


def text_of(value: Any) -> str:
    """A level or a parameter for people."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, Mapping):
        return " ".join(f"{k}={text_of(v)}" for k, v in sorted(value.items())) or "none"
    if isinstance(value, list | tuple):
        return ",".join(map(text_of, value)) or "none"
    return "none" if value is None else str(value)
