"""The checks of a smoke test: short real trials, run by the code of `perflab run`, and judged exactly.

Each check is a small experiment. What this machine lacks is reported as unavailable, with the reason; what is there and
misbehaves has failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from perflab.condition import Condition
from perflab.condition.kinds import REGISTRY as CONDITIONS
from perflab.design.document import Written
from perflab.errors import DAMAGE, Interrupted, NotAsExpected, PerflabError, Unavailable
from perflab.experiment.build import build
from perflab.experiment.run import RunResult, execute
from perflab.host import Host
from perflab.middleware import REGISTRY as MIDDLEWARES
from perflab.middleware import available
from perflab.models import as_json
from perflab.native import Native
from perflab.observer import Observer
from perflab.observer.kinds import REGISTRY as OBSERVERS
from perflab.report.evidence import in_words
from perflab.results.outcome import SUCCESS
from perflab.results.summary import Summary
from perflab.results.trial import Trial, added
from perflab.runs.display import Display
from perflab.runs.rundir import RunDirectory
from perflab.units import format_count, format_time
from perflab.workload.generated import REGISTRY as WORKLOADS

WORKLOAD = "sierra_nevada"  # one process, and enough messages in a second for a p99
READER = "pubsub"  # with a process that only receives, and so can restart
BEST_EFFORT = "pubsub:reliability=best_effort"  # for a middleware that does not promise more
VIRTUAL = "virtual"

OK, UNAVAILABLE, FAILED = "ok", "unavailable", "FAILED"

SEARCH_BOUND = 0.1  # tolerance for the share of lost messages


Judge = Callable[[RunDirectory, Summary], str]


@dataclass(frozen=True)
class Check:
    """One check: an experiment, and a function that describes its correct result or raises NotAsExpected.

    `unavailable` is the reason, known beforehand, why it cannot run here.
    """

    kind: str  # "middleware", "condition", "observer", "search"
    name: str
    written: Mapping[str, Any]
    judge: Judge
    unavailable: str | None = None


@dataclass(frozen=True)
class Answer:
    """The result of a check."""

    kind: str
    name: str
    state: str  # OK, UNAVAILABLE, FAILED
    text: str
    run: Path | None = None  # folder with its records; None: none


def checks(native: Native, names: Sequence[str] | None) -> Iterator[Check]:
    """All checks, in order; `names` are the middlewares to check, by default those that are installed."""
    usable: list[str] = []
    for name in names or MIDDLEWARES:
        found = available(MIDDLEWARES[name], native)
        if found.usable:
            usable.append(name)
        yield Check(
            "middleware", name, _experiment(name), exact_counts, None if found.usable else found.text or "is missing"
        )
    # The other checks run on one of these, preferably on one that connects processes.
    real = [name for name in usable if MIDDLEWARES[name].runtime != VIRTUAL]
    base = next((n for n in real if available(MIDDLEWARES[n], native).across_processes), next(iter(real), None))
    missing = None
    if base is None:
        missing = (
            "needs a middleware that connects processes, and none is available; `perflab doctor` says what is missing"
        )
    for condition in CONDITIONS.values():
        options, cannot = ({}, missing) if base is None else _beneath(base, condition.model, native)
        for name, text in condition.tries.items():
            written = _experiment(base, conditions=[text], baseline=False, middleware_options=options)
            if issubclass(condition.model, Condition) and condition.model.changes_peers:
                written["workload"] = [READER]
            yield Check("condition", name, written, condition_in_effect, cannot)
    # These get trials of their own because they disturb much; a smoke test needs no second one.
    for observer in OBSERVERS:
        for name, text in OBSERVERS[observer].tries.items():
            written = _experiment(base, observers=[text], observer_control=False)
            yield Check("observer", name, written, recorded_by(observer), missing)
    for kind in WORKLOADS.values():
        for name, text in kind.tries.items() if kind.tried else ():
            written = {**_experiment(base), "workload": [text]}
            del written["time"]
            yield Check("workload", name, written, succeeded, missing)
    if names is None or VIRTUAL in names:
        yield Check("search", "breaking point", _search(), known_breaking_point)


def _beneath(middleware: str, condition: type[BaseModel], native: Native) -> tuple[dict[str, str], str | None]:
    """The middleware options that this condition needs, or why it cannot run on this middleware."""
    kind = MIDDLEWARES[middleware]
    assert issubclass(condition, Condition)
    if condition.from_beside and not available(kind, native).across_processes:
        return {}, f"{middleware} does not connect processes"
    if not condition.over_network:
        return {}, None
    if kind.over_network is None:
        return {}, f"{middleware} sends nothing over the network"
    return {f"{middleware}.{key}": value for key, value in kind.over_network.items()}, None


def _experiment(middleware: str | None, **more: Any) -> dict[str, Any]:
    return {
        "workload": [WORKLOAD if MIDDLEWARES[middleware or VIRTUAL].reliable else BEST_EFFORT],
        "middlewares": [middleware or VIRTUAL],
        "time": "1s",
        "cool_down": {"limit": 0},
        "name": "smoke",
        **more,
    }


def _search() -> dict[str, Any]:
    """A system in virtual time with a known breaking point: it loses the requested share of messages."""
    return {
        **_experiment(VIRTUAL),
        "breaking_point": {
            "factor": "virtual.loss",
            "low": SEARCH_BOUND / 10,
            "high": SEARCH_BOUND * 5,
            "criterion": f"lost_share <= {100 * SEARCH_BOUND:g} %",
            "precision": 50,
            "max_trials": 40,
        },
    }


def carry_out(check: Check, native: Native, host: Host, display: Display, folder: Path) -> Answer:
    """Runs the experiment in a new folder and judges it; a failed one keeps its folder. Raises Interrupted."""
    if check.unavailable is not None:
        return Answer(check.kind, check.name, UNAVAILABLE, check.unavailable)
    written = Written(dict(check.written), given=frozenset(check.written))
    try:
        experiment = build(written, native, output=folder, command_line=("perflab", "smoke-test"))
        result = execute(experiment, native, host, display)
    except Unavailable as error:
        return Answer(check.kind, check.name, UNAVAILABLE, str(error))
    except Interrupted:
        raise
    except PerflabError as error:
        return Answer(check.kind, check.name, FAILED, str(error), folder if folder.exists() else None)
    return _judged(check, result)


def _judged(check: Check, result: RunResult) -> Answer:
    if isinstance(result.error, Interrupted):
        raise result.error
    path = result.directory.path
    if result.error is not None:
        return Answer(check.kind, check.name, FAILED, str(result.error), path)
    try:
        return Answer(check.kind, check.name, OK, check.judge(result.directory, result.summary), path)
    except NotAsExpected as problem:
        return Answer(check.kind, check.name, FAILED, str(problem), path)
    except DAMAGE as problem:
        text = f"its results are wrong: {type(problem).__name__}: {problem}"
        return Answer(check.kind, check.name, FAILED, text, path)


# -- judges ----------------------------------------------------------------------------------------------------------


def exact_counts(_: RunDirectory, summary: Summary) -> str:
    """Every message that the graph's timers were due to send was sent and received once; none was lost."""
    result = summary.results[0]
    totals = result.totals
    counts = {
        **as_json(totals.lost),
        "duplicate": totals.duplicate,
        "reordered": totals.reordered,
        "write_errors": totals.write_errors,
    }
    for what, count in counts.items():
        if count != 0:
            raise NotAsExpected(f"{'not known' if count is None else count} messages {what.replace('_', ' ')}")
    if totals.received != totals.sent:
        raise NotAsExpected(f"{totals.received} of {totals.sent} messages received")
    for edge in result.edges:
        due = round(edge.frequency_hz * result.duration_s) if edge.frequency_hz and result.duration_s else None
        if due is not None and added((edge.published, edge.not_sent)) != due:
            raise NotAsExpected(
                f"{edge.publisher} published {edge.published} messages on {edge.topic} and skipped "
                f"{edge.not_sent}, {due} were due"
            )
    words = f"{format_count(totals.received)} of {format_count(totals.sent)} messages"
    p99 = None if totals.latency_ns is None else totals.latency_ns.p99
    late = f", {totals.not_sent} ticks not sent" if totals.not_sent else ""
    return f"{words}{'' if p99 is None else f', p99 {format_time(p99)}'}{late}"


def succeeded(_: RunDirectory, summary: Summary) -> str:
    trial = _trial(summary)
    if trial.outcome != SUCCESS:
        raise NotAsExpected(f"{trial.outcome.words}: {trial.reason}")
    return trial.own_outcome.words if trial.own_outcome is not None else trial.outcome.words


def condition_in_effect(_: RunDirectory, summary: Summary) -> str:
    """The evidence of every condition of the trial; a trial without it does not pass."""
    evidence = _trial(summary).evidence
    if not evidence:
        raise NotAsExpected("the trial has no evidence of it")
    for label, found in evidence.items():
        if found.get("in_effect") is not True:
            raise NotAsExpected(f"{label}: {found.get('reason') or 'not in effect'}")
    return "; ".join(in_words(label, found) for label, found in evidence.items())


def _trial(summary: Summary) -> Trial:
    return summary.results[0].trials_detail[0]


def recorded_by(observer: str) -> Judge:
    """What the observer says about its own records."""
    model = OBSERVERS[observer].model

    def judge(directory: RunDirectory, summary: Summary) -> str:
        def artifact(kind: str) -> Path:
            for trial in directory.trials():
                file = trial.read()
                for written in () if file is None else file.artifacts:
                    if written.kind == kind and Path(written.path).exists():
                        return Path(written.path)
            raise NotAsExpected(f"it left no {kind}")

        own = model.recorded(_trial(summary), artifact) if issubclass(model, Observer) else None
        return exact_counts(directory, summary) if own is None else own

    return judge


def known_breaking_point(_: RunDirectory, summary: Summary) -> str:
    """The interval of the breaking point includes the level above which the criterion cannot be met."""
    found = summary.breaking_points[0]
    interval = found.interval
    if found.value is None or interval is None:
        raise NotAsExpected(f"the known breaking point was not found: {'; '.join(found.words)}")
    words = (
        f"{found.value:.3g} [{interval.low:.3g}, {interval.high:.3g}] after {found.trials} trials, "
        f"known to be {SEARCH_BOUND:g}"
    )
    if not interval.low <= SEARCH_BOUND <= interval.high:
        raise NotAsExpected(words)
    return words
