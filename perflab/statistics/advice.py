"""The rule that recommends an assignment of policies and priorities, from the outcomes of a run's trials.

The aim is to prevent failed trials, whatever a kind of workload calls them (stalled, hung). An assignment is
recommended if the share of its trials that fail is shown to be below the required share: the upper end of Wilson's
interval is below it. Among several, the least demanding one is chosen: the fewest roles of threads with a real-time
policy, then the lowest priorities, then the lowest p99 of the response. Only assignments that were run are recommended.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence

from perflab.errors import BadInput
from perflab.results.advice import (
    AVOIDS,
    EXECUTOR,
    FAILS,
    MIDDLEWARE,
    NOT_JUDGED,
    REAL_TIME,
    UNDECIDED,
    Advice,
    Counted,
    Disturber,
    Proof,
    RoleScheduled,
    Scheduled,
    Situation,
    Tried,
    Verdict,
)
from perflab.results.files import Manifest
from perflab.results.outcome import FAILED, SUCCESS
from perflab.results.summary import Summary
from perflab.results.trial import Level, Result
from perflab.statistics.proportion import wilson
from perflab.statistics.selection import variant_words
from perflab.units import listed, plural

CONFIDENCE = 0.95
BELOW = 0.5  # four trials without a failure show this, nine show 0.3, thirty-five 0.1
THREADS = "workload.threads"  # the factor whose levels are assignments
INHIBITOR = "priority_inhibitor"  # the condition that takes a CPU by its priority
_ORDER = {AVOIDS: 0, UNDECIDED: 1, NOT_JUDGED: 2, FAILS: 3}
_ROLES = {EXECUTOR: "executors", MIDDLEWARE: "threads of the middleware"}


def can_advise(summary: Summary) -> bool:
    """Whether a run has the required parts: assignments as a factor, and a disturbance with a priority."""
    return any(True for _ in _disturbed(summary))


def advise(summary: Summary, manifest: Manifest, below: float = BELOW) -> Advice:
    """Raises BadInput for a run without the data for a recommendation."""
    if not any(THREADS in result.factors for result in summary.results):
        raise BadInput(
            f"{summary.run} has no assignments of threads as a factor; `perflab run realtime_priorities` has, and "
            f"`assignments` with the factor {THREADS} of any experiment"
        )
    groups: dict[tuple[object, ...], list[tuple[Result, Disturber]]] = {}
    for result, disturber in _disturbed(summary):
        groups.setdefault((_variant(result), result.label, disturber), []).append((result, disturber))
    if not groups:
        raise BadInput(f"{summary.run} has no trial with {INHIBITOR}; `--condition {INHIBITOR}` adds one")
    words = manifest.experiment.document.get("assignments") or {}
    versions = {used.name: used.version for used in manifest.middlewares}
    baselines: dict[tuple[object, ...], Result] = {
        (_variant(result), result.factors[THREADS]): result
        for result in summary.results
        if result.is_regular and THREADS in result.factors and not result.is_disturbed
    }
    situations = [
        _situation([result for result, _ in found], found[0][1], words, baselines, versions, below)
        for found in groups.values()
    ]
    return Advice(
        run=summary.run, below=below, confidence=CONFIDENCE, rule=rule_words(below), situations=tuple(situations)
    )


def proof(situation: Situation, advised: str, again: Summary, directory: str, below: float) -> Proof:
    """The outcomes of a recommended assignment in a run of its own."""
    (result,) = (r for r in again.results if r.is_regular)
    trials = counted(result)
    return Proof(
        situation=situation.name,
        assignment=advised,
        run=directory,
        trials=trials,
        outcomes=_outcomes(result),
        verdict=judged(trials, below),
    )


def rule_words(below: float) -> str:
    return (
        f"Recommended is an assignment whose share of failed trials is shown to be below {100 * below:g} % (upper "
        f"end of Wilson's interval of {100 * CONFIDENCE:g} %); among several, the one with the fewest roles of "
        "threads with a real-time policy, then with the lowest priorities, then with the lowest p99 of the response."
    )


def _disturbed(summary: Summary) -> Iterator[tuple[Result, Disturber]]:
    for result in summary.results:
        if result.is_regular and THREADS in result.factors and (found := _disturber(result)) is not None:
            yield result, found


def _disturber(result: Result) -> Disturber | None:
    """The highest inhibitor of a result's trials, as requested."""
    found = [
        Disturber(label=label, policy=said["policy"], priority=said["priority"], cpus=tuple(said["cpus"] or ()))
        for label, said in result.condition_parameters.items()
        if label == INHIBITOR or label.startswith(f"{INHIBITOR} ")
    ]
    return max(found, key=lambda one: one.rank, default=None)


def _others(result: Result) -> dict[str, Level]:
    return {path: level for path, level in result.outer_factors.items() if path != THREADS}


def _variant(result: Result) -> tuple[object, ...]:
    return (*result.variant, tuple(sorted((path, repr(level)) for path, level in _others(result).items())))


def _situation(
    results: Sequence[Result],
    disturber: Disturber,
    words: Mapping[str, Sequence[str]],
    baselines: Mapping[tuple[object, ...], Result],
    versions: Mapping[str, str | None],
    below: float,
) -> Situation:
    first = results[0]
    tried = [
        _tried(r, words, baselines.get((_variant(r), r.factors[THREADS])), below)
        for r in results
    ]  # fmt: skip
    able = sorted((one for one in tried if one.verdict == AVOIDS), key=_need)
    advised = able[0] if able else None
    tried.sort(key=lambda one: (one is not advised, _ORDER[one.verdict], _need(one)))
    return Situation(
        name=_name(first, disturber),
        workload=first.workload,
        middleware=first.middleware,
        version=versions.get(first.middleware or ""),
        executor=first.executor,
        ipc=first.ipc,
        pass_by=first.pass_by,
        treatment=first.label,
        conditions=dict(first.condition_parameters),
        factors=_others(first),
        disturber=disturber,
        tried=tuple(tried),
        advised=None if advised is None else advised.assignment,
        words=_why_not(tried, disturber, below) if advised is None else _why(advised, able),
        borders=tuple(_borders(tried, disturber)),
    )


def _name(result: Result, disturber: Disturber) -> str:
    """ "cyclonedds, workload.pattern=2e, beside priority_inhibitor (RR 90)"."""
    levels = [f"{path}={level}" for path, level in _others(result).items()]
    return f"{', '.join([variant_words(result), *levels])}, beside {result.label} ({disturber.words})"


def _need(tried: Tried) -> tuple[object, ...]:
    """How demanding an assignment is: the less, the better. Unrecorded ones come last."""
    p99 = tried.response_p99_ns
    return (not tried.scheduled, len(tried.real_time), tried.real_time, p99 is None, p99 or 0.0, tried.assignment)


def _tried(result: Result, words: Mapping[str, Sequence[str]], without: Result | None, below: float) -> Tried:
    name = str(result.factors[THREADS])
    trials = counted(result)
    verdict = judged(trials, below)
    p99 = [t.totals.response_ns.p99 for t in result.entering if t.totals.response_ns is not None]
    known = [value for value in p99 if value is not None]
    return Tried(
        assignment=name,
        threads=tuple(words.get(name) or name.split()),
        verdict=verdict,
        trials=trials,
        outcomes=_outcomes(result),
        without=None if without is None else counted(without),
        more_trials=more_trials(trials, below) if verdict in (UNDECIDED, NOT_JUDGED) else None,
        scheduled=tuple(_scheduled(result)),
        response_p99_ns=statistics.median(known) if known else None,
    )


def _outcomes(result: Result) -> str:
    """In the words of the kind of workload, if it has any: "3 stalled, 1 hung"."""
    own = [f"{one.trials} {one.words}" for one in result.outcomes.own]
    named = {of: sum(one.trials for one in result.outcomes.own if one.of == of) for of in (SUCCESS, FAILED)}
    rest = [(n - named.get(outcome, 0), outcome.counted) for outcome, n in result.outcomes]
    return ", ".join([*own, *(f"{n} {words}" for n, words in rest if n)])


def counted(result: Result) -> Counted:
    outcomes = result.outcomes
    low, high = wilson(outcomes.failed, outcomes.judged, CONFIDENCE) or (None, None)
    return Counted(failed=outcomes.failed, judged=outcomes.judged, low=low, high=high)


def judged(trials: Counted, below: float) -> Verdict:
    if trials.low is None or trials.high is None:
        return NOT_JUDGED
    return AVOIDS if trials.high < below else FAILS if trials.low >= below else UNDECIDED


def more_trials(trials: Counted, below: float) -> int:
    """How many more trials would show that the share is below, if none of them failed."""

    def shown(more: int) -> bool:
        interval = wilson(trials.failed, trials.judged + more, CONFIDENCE)
        return interval is not None and interval[1] < below

    most = 1
    while not shown(most):
        most *= 2
    least = most // 2
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if shown(middle) else (middle, most)
    return most


def _scheduled(result: Result) -> Iterator[RoleScheduled]:
    """The scheduling of each role of each process, its lowest threads; without perflab's own threads and tracers."""
    groups: dict[tuple[str, str], list[RoleScheduled]] = {}
    for group in result.threads or ():
        if group.role in _ROLES:
            one = RoleScheduled(
                process=group.process,
                role=group.role,
                policy=group.policy,
                priority=group.priority if group.policy in REAL_TIME else 0,
                cpus=group.cpus,
                threads=len(group.tids),
                names=(group.name,),
            )
            groups.setdefault((group.process, group.role), []).append(one)
    for found in groups.values():
        lowest = min(found, key=lambda one: one.rank)
        yield RoleScheduled(
            process=lowest.process,
            role=lowest.role,
            policy=lowest.policy,
            priority=lowest.priority,
            cpus=lowest.cpus,
            threads=sum(one.threads for one in found),
            names=tuple(dict.fromkeys(name for one in found for name in one.names)),
        )


# -- in words --------------------------------------------------------------------------------------------------------


def _why(advised: Tried, able: Sequence[Tried]) -> str:
    head = f"Take {advised.assignment}: {advised.trials.words} of its trials failed"
    others = [one.assignment for one in able if one is not advised]
    if not others:
        return f"{head}; no other assignment is shown to suffice."
    return f"{head}; {listed(others)} {'does' if len(others) == 1 else 'do'} too, and {_more(advised, able)}."


def _more(advised: Tried, able: Sequence[Tried]) -> str:
    """What the others need more of, by the first criterion of the rule in which they differ."""
    others = [one for one in able if one is not advised]
    more = [len(one.real_time) > len(advised.real_time) for one in others]
    higher = [not m and one.real_time > advised.real_time for one, m in zip(others, more, strict=True)]
    if not all(m or h for m, h in zip(more, higher, strict=True)):
        return "none of them is less demanding or has a lower p99 of the response"
    needs = {"more threads with a real-time policy": any(more), "higher priorities": any(higher)}
    what = " or ".join(need for need, there in needs.items() if there)
    return f"it needs {what}" if len(others) == 1 else f"all of them need {what}"


def _why_not(tried: Sequence[Tried], disturber: Disturber, below: float) -> str:
    head = "Nothing is recommended"
    undecided = [one for one in tried if one.verdict in (UNDECIDED, NOT_JUDGED)]
    if undecided:
        least = min(undecided, key=lambda one: one.more_trials or 0)
        more = plural(least.more_trials or 0, "more trial")
        return (
            f"{head}: not enough trials. {more} of {least.assignment} would suffice, if none of them "
            f"fails ({least.trials.words} failed so far; the limit is {100 * below:g} %)."
        )
    above = [one for one in tried if one.above(disturber.rank)]
    if not above:
        lacking = [
            words
            for role, words in _ROLES.items()
            if not any((low := one.lowest(role)) is not None and low.rank > disturber.rank for one in tried)
        ]
        what = f"whose {listed(lacking)} are" if lacking else "with all threads"
        return f"{head}: no assignment was tried {what} above the inhibitor's {disturber.words}."
    names = listed([one.assignment for one in above])
    return (
        f"{head}: trials failed even with all threads above the inhibitor's {disturber.words} ({names}), so its "
        "priority is not the only cause; `--observer tracing` shows more."
    )


def _borders(tried: Sequence[Tried], disturber: Disturber) -> Iterator[str]:
    """The priority at which a role begins to fail while the other one stays the same, if two tried levels are on the
    two sides of the inhibitor and none contradicts."""
    for role, other in ((MIDDLEWARE, EXECUTOR), (EXECUTOR, MIDDLEWARE)):
        groups: dict[Scheduled, list[tuple[Scheduled, Tried]]] = {}
        for one in tried:
            mine, beside = one.lowest(role), one.lowest(other)
            if mine is not None and beside is not None:
                key = Scheduled(policy=beside.policy, priority=beside.priority)
                groups.setdefault(key, []).append((mine, one))
        for beside, found in groups.items():
            below = [(level, one.verdict) for level, one in found if level.rank <= disturber.rank]
            above = [(level, one.verdict) for level, one in found if level.rank > disturber.rank]
            if not below or not above or any(v != FAILS for _, v in below) or any(v != AVOIDS for _, v in above):
                continue
            highest, lowest = max((s for s, _ in below), key=_rank), min((s for s, _ in above), key=_rank)
            at = highest.words if not highest.rank or len(below) == 1 else f"{highest.words} and below"
            to = lowest.words if len(above) == 1 else f"{lowest.words} and above"
            yield (
                f"With {_ROLES[other]} at {beside.words}, trials fail with {_ROLES[role]} at {at} and not at "
                f"{to}: the boundary is the inhibitor's {disturber.words}."
            )


def _rank(level: Scheduled) -> int:
    return level.rank
