"""Objectives: the weighted scores of named paths, and how much the results depend on the weights (docs/tracing.md).

A score is a share of a deadline or of misses: dimensionless, and smaller is better. The total of some paths is the sum
of weight x score / sum of the weights. Beside a baseline there is the ratio of both totals, with two ranges of it: if
the weight of one path changes by half or the path is left out, and over all weights. The latter is the range of the
ratios of single paths, since a total is a mean of scores with the same weights on both sides.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from perflab.results.objective import BETTER, SAME, WORSE, ObjectiveResult, PathResult
from perflab.results.trial import Result
from perflab.statistics import histogram as hg
from perflab.statistics.histogram import Histogram
from perflab.statistics.proportion import wilson

CONFIDENCE = 0.95
CHANGES = (-50, -10, 10, 50)  # changes of a weight, in percent
LEFT_OUT = "left out"
# The measure that is summed, and how many instances it needs.
MEASURES = {
    "median": ("median latency / deadline", "2 instances"),
    "p99": ("p99 latency / deadline", "100 instances"),
    "max": ("largest latency / deadline", "an instance"),
    "misses": ("share of misses", "an instance"),
}
_QUANTILES = {"min": 0, "p50": 500, "p90": 900, "p99": 990, "p99_9": 999, "max": 1000}


# Scores ---------------------------------------------------------------------------------------------------------------


def misses(late: int, never_arrived: int, judged: int) -> dict[str, Any]:
    """How many were late or did not arrive, their share and its interval."""
    missed = late + never_arrived
    ends = [100.0 * end for end in wilson(missed, judged, CONFIDENCE) or ()]
    return {
        "late": late, "misses": missed, "misses_percent": 100.0 * missed / judged,
        **dict(zip(("misses_low_percent", "misses_high_percent"), ends, strict=True)),
    }  # fmt: skip


def of_times(times: Histogram, deadline_ns: int | None) -> dict[str, Any]:
    """The figures of a path (perflab.trace.paths.NAMED) whose latencies are times that the processes measured. Lateness
    is known to within the precision of the histogram: a message is late if its cell lies above the deadline."""
    if not times.count:
        return {}
    found: dict[str, Any] = {"judged": times.count, "never_arrived": 0, "stopped": 0, "not_judged": 0}
    for name, per_mille in _QUANTILES.items():
        value = times.min if per_mille == 0 else hg.value_at_percentile(times, per_mille / 10)
        known = times.count * (1000 - per_mille) >= 1000 or per_mille in (0, 1000)  # a quantile q needs 1 / (1 - q)
        known = known and value is not None and times.max is not None
        found[f"latency_{name}_ns"] = min(value or 0, times.max or 0) if known else None
    found |= {"latency_mean_ns": round(hg.mean(times) or 0.0), "latency_n": times.count}
    if deadline_ns is not None:
        late = int(times.counts[hg.lowest_value(times.indices) > deadline_ns].sum())
        found |= misses(late, 0, times.count) | of_deadline(found, deadline_ns)
    return found


def of_deadline(figures: Mapping[str, Any], deadline_ns: int) -> dict[str, float | None]:
    """Quantiles of the latency as shares of the deadline."""
    named = (("median", "p50"), ("p99", "p99"), ("max", "max"))
    at = {name: figures[f"latency_{of}_ns"] for name, of in named}
    return {f"{name}_of_deadline": None if value is None else value / deadline_ns for name, value in at.items()}


def scores(figures: Mapping[str, Any]) -> dict[str, float | None]:
    """The value of a path for a measure; None if unknown."""
    shares: dict[str, float | None] = {name: figures.get(f"{name}_of_deadline") for name in ("median", "p99", "max")}
    missed, judged = figures.get("misses"), figures.get("judged")
    return shares | {"misses": missed / judged if missed is not None and judged else None}


def resolved(paths: Sequence[PathResult] | None, times: Mapping[str, Histogram]) -> tuple[PathResult, ...] | None:
    """The paths of a trial, including those that are times which its processes measured."""
    if paths is None:
        return None
    return tuple(path if path.times is None else _of_times(path, times) for path in paths)


def _of_times(path: PathResult, times: Mapping[str, Histogram]) -> PathResult:
    figures = of_times(times[str(path.times)], path.deadline_ns) if path.times in times else {}
    if not figures:
        return replace(path, reason=no_times(str(path.times), times))
    of_counts = ("judged", "never_arrived", "late", "misses", "misses_percent")
    known: dict[str, Any] = {name: figures.get(name) for name in of_counts}
    latency = {f"latency_{name}_ns": figures[f"latency_{name}_ns"] for name in ("p50", "p99", "max")}
    return replace(path, **known, **latency, scores=scores(figures), reason=None)


def no_times(name: str, times: Mapping[str, Histogram]) -> str:
    if name in times:
        return f"no {name} was measured"
    return f"no times {name!r} were measured; there are {', '.join(sorted(times)) or 'none'}"


# Totals ---------------------------------------------------------------------------------------------------------------


def total(scores: Sequence[float | None], weights: Sequence[float]) -> float | None:
    """The weighted mean; None if any is unknown."""
    known = [s for s in scores if s is not None]
    if len(known) < len(scores) or not known:
        return None
    return sum(s * w for s, w in zip(known, weights, strict=True)) / sum(weights)


def changed_totals(
    scores: Sequence[float | None], weights: Sequence[float], place: int
) -> Iterator[tuple[str, float | None, float | None]]:
    """The total if the weight of one path changes: the change, the new weight, the new total."""
    for percent in CHANGES:
        new = [*weights[:place], weights[place] * (1 + percent / 100), *weights[place + 1 :]]
        yield f"{percent:+d} %", new[place], total(scores, new)
    rest = [*scores[:place], *scores[place + 1 :]]
    yield LEFT_OUT, None, total(rest, [*weights[:place], *weights[place + 1 :]])


def ratio(value: float, baseline: float) -> float | None:
    """None if neither is positive; math.inf if only the baseline is 0."""
    if baseline:
        return value / baseline
    return math.inf if value else None


def verdict(value: float, baseline: float) -> str:
    return SAME if value == baseline else WORSE if value > baseline else BETTER


def beside(
    names: Sequence[str], scores: Sequence[float], baselines: Sequence[float], weights: Sequence[float]
) -> dict[str, Any]:
    """A treatment compared with its baseline, and how much this depends on the weights: fields of ObjectiveResult."""
    whole, before = total(scores, weights) or 0.0, total(baselines, weights) or 0.0
    said = verdict(whole, before)
    turned, ratios = [], [ratio(whole, before)]
    for place, name in enumerate(names):
        changed = zip(changed_totals(scores, weights, place), changed_totals(baselines, weights, place), strict=True)
        for (change, _, value), (_, _, beside_it) in changed:
            if value is None or beside_it is None:
                continue
            ratios.append(ratio(value, beside_it))
            if verdict(value, beside_it) not in (said, SAME):
                turned.append(f"{name} {change}")
    single = [ratio(of, before) for of, before in zip(scores, baselines, strict=True)]
    low, high = _range(ratios)
    least, most = _range(single)
    each = {verdict(of, before) for of, before in zip(scores, baselines, strict=True)} - {SAME}
    return {
        "baseline_total": before, "ratio": _finite(ratio(whole, before)), "verdict": said,
        "low": low, "high": high, "least": least, "most": most,
        "turned_by": tuple(turned), "hangs_on_weights": len(each) > 1,
    }  # fmt: skip


def _range(ratios: Sequence[float | None]) -> tuple[float | None, float | None]:
    known = [r for r in ratios if r is not None]
    return (_finite(min(known)), _finite(max(known))) if known else (None, None)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


# Results --------------------------------------------------------------------------------------------------------------


def with_objectives(results: Sequence[Result]) -> tuple[Result, ...]:
    """Results with the objectives formed from the named paths of their trials, beside the baseline of their place."""
    return tuple(replace(result, objectives=_objectives(result, results)) for result in results)


def _objectives(result: Result, results: Sequence[Result]) -> dict[str, ObjectiveResult]:
    own = _over_trials(result)
    if not own:
        return {}
    same = [r for r in results if r.place == result.place and r.purpose == result.purpose and not r.is_disturbed]
    before = _over_trials(same[0]) if same and same[0] is not result else {}
    return {measure: _objective(measure, own, before) for measure in MEASURES}


def _over_trials(result: Result) -> dict[str, list[PathResult]]:
    """The paths with a deadline, by name, of each judged trial."""
    found: dict[str, list[PathResult]] = {}
    for trial in result.trials_detail:
        for path in (trial.paths or ()) if trial.outcome.judged else ():
            if path.weight is not None:
                found.setdefault(path.name, []).append(path)
    return found


def _objective(
    measure: str, own: Mapping[str, Sequence[PathResult]], before: Mapping[str, Sequence[PathResult]]
) -> ObjectiveResult:
    names, weights = list(own), [paths[0].weight or 0.0 for paths in own.values()]
    values = [_median(paths, measure) for paths in own.values()]
    made = ObjectiveResult(
        what=MEASURES[measure][0],
        trials=max(len(paths) for paths in own.values()),
        weights=dict(zip(names, weights, strict=True)),
        scores=dict(zip(names, values, strict=True)),
        total=total(values, weights),
        reason=_reason(measure, own),
    )
    if not before or made.total is None:
        return made
    others = [_median(before.get(name, ()), measure) for name in names]
    if any(value is None for value in others):
        missing = [name for name, value in zip(names, others, strict=True) if value is None]
        return replace(made, reason=f"baseline: {_reason(measure, before) or f'{missing[0]} was not measured'}")
    known = [value or 0.0 for value in values], [value or 0.0 for value in others]
    return replace(made, **beside(names, *known, weights))


def _median(paths: Sequence[PathResult], measure: str) -> float | None:
    """The median of a score over trials; None if one of them lacks it."""
    values = [path.scores.get(measure) for path in paths]
    known = [value for value in values if value is not None]
    return median(known) if known and len(known) == len(values) else None


def _reason(measure: str, paths: Mapping[str, Sequence[PathResult]]) -> str | None:
    for name, of_trials in paths.items():
        for path in of_trials:
            if path.reason is not None:
                return f"{name} was not measured: {path.reason}"
            if path.scores.get(measure) is None:
                return f"{name}: {measure} needs {MEASURES[measure][1]} that arrived"
    return None
