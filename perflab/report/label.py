"""Labels that distinguish results: only what they differ in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from perflab.results.trial import Circumstances

NO_MIDDLEWARE = "middleware not recorded"


def levels(result: Circumstances) -> str | None:
    """The levels that the treatment's name lacks: those of the workload and of middleware options."""
    return " ".join(f"{path.partition('.')[2]}={level}" for path, level in result.outer_factors.items()) or None


def observers(result: Circumstances) -> str | None:
    """Special observers of a result; None for the usual ones."""
    if result.is_control:
        return "without observers"
    if result.is_extra:
        return f"extra trials with {result.observers[-1]}"
    return None


# In the order in which they appear in a label; None if the result does not record it, or has "as in the graph".
_Part = Callable[[Circumstances], str | None]
_PARTS: tuple[_Part, ...] = (
    lambda result: result.workload,
    lambda result: result.middleware,
    lambda result: result.executor,
    lambda result: f"ipc {result.ipc}" if result.ipc else None,
    lambda result: f"by {result.pass_by}" if result.pass_by else None,
    levels,
    lambda result: result.label,
    observers,
)


def labels(results: Sequence[Circumstances], run_names: Sequence[str] | None = None) -> list[str]:
    """One unique label per result of a summary, from what the results differ in.

    `run_names` is the run of each result. It replaces a middleware that was not recorded, and precedes labels that
    would otherwise be equal. A single result has its middleware as label.

    >>> labels([Circumstances(workload="chain", middleware="cyclonedds", ipc=ipc) for ipc in ("on", "off")])
    ['ipc on', 'ipc off']
    """
    if run_names is not None and len(run_names) != len(results):
        raise ValueError(f"{len(run_names)} run names for {len(results)} results")
    named = [
        replace(result, middleware=result.middleware or (run_names[n] if run_names else NO_MIDDLEWARE))
        for n, result in enumerate(results)
    ]
    if len(results) == 1:
        return [str(results[0].middleware or NO_MIDDLEWARE)]
    names = _joined(named, [part for part in _PARTS if len({part(result) for result in named}) > 1])
    if _alike(names) and run_names is not None and len(set(run_names)) > 1:
        names = [f"{run}: {name}" if name else run for run, name in zip(run_names, names, strict=True)]
    if _alike(names) and len({_duration(result) for result in results}) > 1:
        names = [f"{name}, {_duration(r)}" if name else _duration(r) for r, name in zip(results, names, strict=True)]
    return _numbered([name or str(result.middleware) for name, result in zip(names, named, strict=True)])


def _joined(results: Sequence[Circumstances], parts: Sequence[_Part]) -> list[str]:
    """The known parts of each result. If no part is known, the graph determines it."""
    found = [[word for part in parts if (word := part(result)) is not None] for result in results]
    return [", ".join(words) if words or not parts else "as in the graph" for words in found]


def _alike(names: Sequence[str]) -> bool:
    return len(set(names)) < len(names)


def _duration(result: Circumstances) -> str:
    return f"{result.duration_s:g} s" if result.duration_s else "duration not recorded"


def _numbered(names: Sequence[str]) -> list[str]:
    """The names, with a number appended to those that occur more than once."""
    seen: dict[str, int] = {}
    unique = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        unique.append(name if names.count(name) == 1 else f"{name} #{seen[name]}")
    return unique
