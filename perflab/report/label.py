"""What to call a result among others: by what they differ in, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from perflab.results.trial import Circumstances

NO_MIDDLEWARE = "middleware not recorded"


def levels(result: Circumstances) -> str | None:
    """The levels that the treatment's name does not have: those of the workload and of middlewares' options."""
    return " ".join(f"{path.partition('.')[2]}={level}" for path, level in result.outer_factors.items()) or None


def observers(result: Circumstances) -> str | None:
    """What is special about the observers of a result; None of the usual ones."""
    if result.is_control:
        return "without observers"
    if result.is_extra:
        return f"extra trials with {result.observers[-1]}"
    return None


# In the order in which they appear in a label; None where the result does not say, or says "as the graph".
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
    """One label per result of a summary, made of what the results differ in; all different from each other.

    `run_names` names the run of each result. It stands for a middleware that was not recorded, and in front of labels
    that would otherwise be alike. A single result is called by its middleware.

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
    """The parts of each result that are known. One whose every part is unknown is what its graph says."""
    found = [[word for part in parts if (word := part(result)) is not None] for result in results]
    return [", ".join(words) if words or not parts else "as in the graph" for words in found]


def _alike(names: Sequence[str]) -> bool:
    return len(set(names)) < len(names)


def _duration(result: Circumstances) -> str:
    return f"{result.duration_s:g} s" if result.duration_s else "duration not recorded"


def _numbered(names: Sequence[str]) -> list[str]:
    """The names, with a number behind those that occur more than once."""
    seen: dict[str, int] = {}
    unique = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        unique.append(name if names.count(name) == 1 else f"{name} #{seen[name]}")
    return unique
