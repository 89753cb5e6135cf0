"""The search for a breaking point: trials whose levels are chosen one by one (docs/breaking_point.md).

Every variant, entry of `conditions` and combination of the other factors has its own search; the searches take turns,
so that machine drifts affect all alike. A search learns nothing from a trial that was invalid or failed because of a
perflab error.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from perflab.design.document import BreakingPoint as Asked
from perflab.design.document import Document, Scalar
from perflab.design.levels import quantity, with_unit
from perflab.design.treatments import Planned, Treatment, is_whole
from perflab.errors import BadInput
from perflab.formats.irobot import target as targets
from perflab.formats.irobot.target import Target
from perflab.results.curve import BreakingPoint, Step
from perflab.results.outcome import SUCCESS
from perflab.results.trial import MEASURED, Trial, expected, received
from perflab.statistics.breaking_point import Aim, Search, Space
from perflab.statistics.breaking_point_verdicts import sentences
from perflab.statistics.metrics import Criterion, needed, parse_criterion
from perflab.statistics.selection import level_words, place_words
from perflab.statistics.summary import TrialData, figures_of
from perflab.statistics.target import exceeded, processes_of

TARGET = "target:"
SHARE_OF_SUCCESS, SHARE_OF_BOUND = 0.9, 0.5
LOG_FROM = 10.0  # a range of at least this ratio is searched on a logarithmic scale


# Whether a trial meets the criterion; None if it gives no answer. Raises BadInput if no trial of this kind can be
# judged.
Judge = Callable[[TrialData], bool | None]
Bound = Callable[[Trial], bool]  # also raised for a measured trial


@dataclass(frozen=True)
class Goal:
    """What the search looks for. Levels are numbers of `unit`, which is "" if they have none."""

    factor: str
    criterion: str
    judge: Judge
    space: Space
    aim: Aim
    unit: str = ""

    def level(self, number: float) -> Scalar:
        """A level in the form that a condition or a program takes."""
        return with_unit(number, self.unit)

    def number(self, level: Scalar) -> float:
        """The inverse of `level`."""
        return quantity(level)[0]

    def words(self, number: float) -> str:
        """A level as shown to people."""
        unit = f" {self.unit}" if self.unit else ""
        return f"{level_words(self.factor, float(f'{number:.4g}'))}{unit}"


def goal_of_document(
    document: Document,
    asked: Asked,
    cpus: int | None,
    figures: Mapping[str, str],
    observers: Collection[str] | None = None,
) -> Goal:
    """The goal of a document that asks for a search; otherwise like `goal`."""
    return goal(asked, is_whole(asked.factor, asked.low, asked.high, document.workload), cpus, figures, observers)


def goal(
    asked: Asked,
    integer: bool,
    cpus: int | None,
    figures: Mapping[str, str] | None = None,
    observers: Collection[str] | None = None,
) -> Goal:
    """The goal that a document asks for, on a machine with `cpus` CPUs. `integer`: levels are whole numbers.

    `figures` are the graph's key figures with their kinds, by name; `observers` are those of the search's trials, where
    known.

    Raises BadInput.
    """
    low, high, unit = _range(asked)
    scale = asked.scale
    if scale == "auto":
        scale = "log" if low > 0 and high / low >= LOG_FROM else "linear"
    if scale == "log" and low <= 0:
        raise BadInput(f"--low {_shown(asked.low)}: a logarithmic scale must begin above 0; use --scale linear")
    for option, end, number in (("--low", asked.low, low), ("--high", asked.high, high)):
        if integer and number != int(number):
            raise BadInput(f"{option} {_shown(end)}: {asked.factor} takes only whole numbers")
    judge, share = _judge(asked.criterion, cpus, figures, observers)
    return Goal(
        factor=asked.factor,
        criterion=asked.criterion.strip(),
        judge=judge,
        space=Space(low, high, scale, integer=integer, falls=asked.breaks == "below"),
        aim=Aim(
            share=share if asked.share is None else asked.share,
            confidence=asked.confidence / 100,
            precision=asked.precision / 100,
            max_trials=asked.max_trials,
        ),
        unit=unit,
    )


def _range(asked: Asked) -> tuple[float, float, str]:
    """The ends of the range as numbers of one unit. Raises BadInput."""
    (low, unit), (high, other) = quantity(asked.low), quantity(asked.high)
    both = f"--low {_shown(asked.low)} and --high {_shown(asked.high)}"
    if unit != other and (low or unit):  # 0 is 0 in every unit
        raise BadInput(f"{both} have different units; write both in one, e.g. --low 1ms --high 20ms")
    if low >= high:
        raise BadInput(f"--low {_shown(asked.low)} is not below --high {_shown(asked.high)}: nothing to search")
    return low, high, other


def _shown(end: int | float | str) -> str:
    return end if isinstance(end, str) else f"{end:g}"


def _judge(
    text: str, cpus: int | None, figures: Mapping[str, str] | None, observers: Collection[str] | None
) -> tuple[Judge, float]:
    """The judge of a trial, and the default share of trials that must meet it."""
    word = text.strip()
    if word == SUCCESS:
        return _is_success, SHARE_OF_SUCCESS
    if word.startswith(TARGET):
        target = targets.find(word.removeprefix(TARGET), "--criterion target:")
        return _Measured(partial(_within, target, cpus)), SHARE_OF_BOUND
    try:
        return _Measured(partial(_meets, parse_criterion(word, "--criterion", figures, observers))), SHARE_OF_BOUND
    except BadInput as error:
        if any(sign in word for sign in "<>="):
            raise
        raise BadInput(
            f"--criterion {word!r} is unknown; write success, a bound like 'latency.p99 <= 5ms', or target:FILE"
        ) from error


def _is_success(data: TrialData) -> bool | None:
    return data.outcome == SUCCESS if data.outcome.judged else None


@dataclass(frozen=True)
class _Measured:
    """Judges by a bound; a trial that failed before the metric could be measured has not met it."""

    bound: Bound

    def __call__(self, data: TrialData) -> bool | None:
        return (data.measured and self.bound(figures_of(data))) if data.outcome.judged else None


def _meets(criterion: Criterion, figures: Trial) -> bool:
    """A metric that is missing only because messages were lost counts as not met: enough were sent, but did not arrive.
    Lost messages are a failure of the system; a metric that no trial can measure was already missing in the baseline,
    which runs first."""
    judgement = criterion.evaluate(figures)
    if judgement.met is None:
        sent, arrived = expected(figures), received(figures)
        enough = needed(criterion.metric.name.rpartition(".")[2])
        if sent is None or arrived is None or sent <= arrived or sent < enough:
            raise BadInput(f"--criterion: {judgement.words}; use longer trials (--time), or another criterion")
    return bool(judgement.met)


def _within(target: Target, cpus: int | None, figures: Trial) -> bool:
    over, unknown = exceeded(target.bounds, figures, processes_of(figures, target.topology), cpus)
    if unknown and not over:
        raise BadInput(f"--criterion: {', '.join(unknown)} of the target {target.path.name} was not measured")
    return not over


def _tell(search: Search, level: float, met: bool | None, data: TrialData) -> None:
    if met is not None:
        search.add(level, met)
    else:
        search.invalid(level, data.outcome)


class Searching:
    """A course that takes the next level from searches. Baselines run first, one for each search."""

    def __init__(
        self,
        goal: Goal,
        baselines: Sequence[Treatment],
        at_level: Callable[[Scalar], Sequence[Treatment]],
        seed: int,
        count: int,
    ) -> None:
        """`at_level` makes the treatments of a level: always `count`, always in the same order."""
        self._goal = goal
        self._baselines = baselines
        self._at_level = at_level
        self._searches = [Search(goal.space, goal.aim, seed + number) for number in range(count)]
        self._turn = 0
        self._over = 0
        self._now: tuple[Planned, int | None, float] | None = None

    @property
    def most(self) -> int:
        return len(self._baselines) + self._goal.aim.max_trials * len(self._searches)

    def next(self) -> Planned | None:
        if self._now is None:
            self._now = self._choose()
        return None if self._now is None else self._now[0]

    def ended(self, planned: Planned, data: TrialData) -> None:
        assert self._now is not None and self._now[0] is planned, "call next first"
        _, number, level = self._now
        self._over += 1
        self._now = None
        met = self._goal.judge(data)
        if number is None:
            return
        self._turn = (number + 1) % len(self._searches)
        _tell(self._searches[number], level, met, data)

    def _choose(self) -> tuple[Planned, int | None, float] | None:
        order = self._over + 1
        if self._over < len(self._baselines):
            return Planned(order, order, self._baselines[self._over]), None, 0.0
        for turn in range(len(self._searches)):
            number = (self._turn + turn) % len(self._searches)
            level = self._searches[number].next()
            if level is not None:
                treatment = self._at_level(self._goal.level(level))[number]
                return Planned(order, order, treatment), number, level
        return None


def results(goal: Goal, trials: Iterable[TrialData], seed: int) -> list[BreakingPoint]:
    """The result of a search, from the trials of a run alone.

    Replays the trials of each search, in the order in which they ran, into a new search.
    """
    groups: dict[tuple[object, ...], list[TrialData]] = {}
    for data in sorted(trials, key=lambda t: t.order):
        if goal.factor in data.factors and data.purpose == MEASURED:
            groups.setdefault(_search_of(goal, data), []).append(data)
    found = [_result(goal, group, seed + number) for number, group in enumerate(groups.values())]
    called = [(f.variant, str(f.others)) for f in found]
    return [
        replace(f, variant=f"{f.variant}, {f.treatment}") if called.count(name) > 1 else f  # their conditions differ
        for f, name in zip(found, called, strict=True)
    ]


def _search_of(goal: Goal, data: TrialData) -> tuple[object, ...]:
    """What the trials of one search have in common: everything but the level."""
    path, key = goal.factor, goal.factor.partition(".")[2]
    parameters = {
        label: {k: v for k, v in given.items() if k != key} if label.startswith(path.partition(".")[0]) else given
        for label, given in data.condition_parameters.items()
    }
    others = {k: v for k, v in data.factors.items() if k != path}
    asked = (data.middleware, data.executor, data.ipc, data.pass_by, data.conditions)
    return (*asked, str(parameters), str(sorted(others.items())))


def _result(goal: Goal, trials: Sequence[TrialData], seed: int) -> BreakingPoint:
    search = Search(goal.space, goal.aim, seed)
    course: list[Step] = []
    for data in trials:
        level = goal.number(data.factors[goal.factor])
        try:
            met = goal.judge(data)
        except BadInput:  # the result that ended the search: nothing followed it
            met = None
        else:
            _tell(search, level, met, data)
        course.append(Step(data.order, level, met))
    first = trials[0]
    others = {path: level for path, level in first.factors.items() if path != goal.factor}
    found = replace(search.result(), course=tuple(course))
    return BreakingPoint(
        **vars(found),
        variant=place_words(replace(first, factors=others)),
        treatment=_label(first, goal),
        factor=goal.factor,
        unit=goal.unit or None,
        others=others,
        criterion=goal.criterion,
        words=tuple(sentences(found, goal.words, goal.criterion)),
    )


def _label(data: TrialData, goal: Goal) -> str:
    """The treatment's label without its level."""
    words = f"{goal.factor.partition('.')[2]}={data.factors[goal.factor]}"
    return str(data.treatment or "").replace(words, "").strip()
