"""What a trial says, as one number for each metric; and criteria of success, which bound such a number.

A metric that a trial did not measure is None, with the reason,
and so is a percentile for which it has too few messages: of n messages fewer than ten lie above the quantile q where
n < 10 / (1 - q), and the value is then little more than one of the largest few.
"""

from __future__ import annotations

import difflib
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from perflab import quantity
from perflab.errors import BadInput
from perflab.quantity import Quantity
from perflab.results.trial import Distribution, JitterFigure, PathFigure, Trial, counted, owners, received
from perflab.statistics.cost import COUNTERS
from perflab.units import format_count

LOWER: Literal["lower"] = "lower"  # which is better
HIGHER: Literal["higher"] = "higher"
RATIO, DIFFERENCE = "ratio", "difference"  # how two values of a metric are compared

# Times are positive and spread over decades: what changes them multiplies. Counts and shares are 0 as a rule.
_QUANTITIES = {q.unit: q for q in (quantity.TIME, quantity.PERCENT, quantity.COUNT, quantity.KILOBYTES,
                                   quantity.PER_MESSAGE)}  # fmt: skip
NS, PERCENT, COUNT, KILOBYTES, PER_MESSAGE = _QUANTITIES

BEYOND = 10  # messages that must lie above a percentile
_QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99_9": 0.999, "p99_99": 0.9999}
STATISTICS = ("mean", *_QUANTILES, "max")
_FIGURES = {
    "latency": "from sending a message to its callback, over all edges",
    "response": "from when a message was due to its callback, over all edges",
    "publish_delay": "how much later than due messages were sent",
    "publish_call": "how long the call that sends took",
    "dispatch": "from the arrival of a message to its callback; `--measure dispatch`",
    "work": "how long callbacks ran; `--measure work`",
}


@dataclass(frozen=True)
class Reading:
    """A metric of one trial; `reason` says why where the value is None."""

    value: float | None
    reason: str | None = None


@dataclass(frozen=True)
class Metric:
    """One number of a trial. `compared` says whether differences of it are ratios or differences."""

    name: str
    words: str
    unit: str
    better: Literal["lower", "higher"]
    compared: str
    read: Callable[[Trial], Reading]
    help: str

    def format(self, value: float | None) -> str:
        """A value for people: "45.2 µs", "0.11 %", "12"."""
        return self.quantity.text(value)

    @property
    def quantity(self) -> Quantity:
        return _QUANTITIES[self.unit]


def needed(statistic: str) -> int:
    """How many messages a trial must have for this statistic to mean something."""
    quantile = _QUANTILES.get(statistic)
    return 1 if quantile is None else math.ceil(round(BEYOND / (1 - quantile), 6))


def _distribution(key: str, statistic: str) -> Callable[[Trial], Reading]:
    def read(trial: Trial) -> Reading:
        return _of(getattr(trial.totals, key), statistic)

    return read


def _of(distribution: Distribution | None, statistic: str) -> Reading:
    if distribution is None:
        return Reading(None, "not measured")
    count, value = distribution.count, getattr(distribution, statistic)
    if value is None:
        return Reading(None, "no message was received" if count == 0 else "not measured")
    if count is not None and count < needed(statistic):
        short = statistic.replace("_", ".")
        return Reading(
            None,
            f"{short} needs {format_count(needed(statistic))} messages in a trial, there are {format_count(count)}",
        )
    return Reading(float(value))


def _round_trip(statistic: str) -> Callable[[Trial], Reading]:
    """The mean over all replies; otherwise that of the slowest service, for percentiles cannot be merged."""

    def read(trial: Trial) -> Reading:
        distributions = [s.round_trip_ns for s in trial.services if s.round_trip_ns is not None]
        if not distributions:
            return Reading(None, "not measured")
        readings = [_of(d, statistic) for d in distributions]
        if (missing := next((r for r in readings if r.value is None), None)) is not None:
            return missing
        values = [r.value for r in readings if r.value is not None]
        if statistic != "mean":
            return Reading(max(values))
        if len(values) == 1:
            return Reading(values[0])
        counts = [d.count for d in distributions if d.count is not None]
        if len(counts) < len(distributions):
            return Reading(None, "the number of replies is not known")
        return Reading(sum(map(operator.mul, counts, values)) / sum(counts))

    return read


def _count(key: str) -> Callable[[Trial], Reading]:
    def read(trial: Trial) -> Reading:
        return _reading(counted(trial, operator.attrgetter(key)))

    return read


def _reading(value: float | None, reason: str = "not measured") -> Reading:
    return Reading(None, reason) if value is None else Reading(float(value))


def _lost(trial: Trial) -> Reading:
    if not owners(trial):
        return Reading(None, "not measured")
    return _reading(counted(trial, lambda owner: owner.all_lost), "what was lost at the end is not known")


def _lost_share(trial: Trial) -> Reading:
    lost, arrived = _lost(trial), received(trial)
    if lost.value is None:
        return lost
    if arrived is None or not arrived + lost.value:
        return Reading(None, "nothing was sent")
    return Reading(100 * lost.value / (arrived + lost.value))


def _per_message(value: float | None, trial: Trial) -> Reading:
    arrived = received(trial)
    if value is None or arrived is None:
        return Reading(None, "not measured")
    return Reading(value / arrived) if arrived else Reading(None, "no message was received")


def _share_of_received(key: str) -> Callable[[Trial], Reading]:
    def read(trial: Trial) -> Reading:
        part = counted(trial, operator.attrgetter(key))
        return _per_message(None if part is None else 100 * part, trial)

    return read


def _resource(key: str) -> Callable[[Trial], Reading]:
    def read(trial: Trial) -> Reading:
        return _reading(getattr(trial.resources, key))

    return read


def cpu_per_message(trials: Sequence[Trial]) -> Reading:
    """CPU time of all processes over the messages received, both of the measured parts of all of these trials."""
    used_ns = [ns for trial in trials if (ns := _cpu_ns(trial)) is not None]
    counts = [n for trial in trials if (n := received(trial)) is not None]
    if not trials or len(used_ns) < len(trials) or len(counts) < len(trials):
        return Reading(None, "not measured")
    return Reading(sum(used_ns) / sum(counts)) if any(counts) else Reading(None, "no message was received")


def _cpu_ns(trial: Trial) -> float | None:
    percent, seconds = trial.resources.cpu_percent_mean, trial.measured_s
    return None if percent is None or not seconds else percent / 100 * seconds * 1e9


def _cpu_per_message(trial: Trial) -> Reading:
    return cpu_per_message([trial])


def _counted_per_message(counter: str) -> Callable[[Trial], Reading]:
    def read(trial: Trial) -> Reading:
        if trial.cost is None:
            return Reading(None, "not measured")
        count = getattr(trial.cost, counter)
        if count is None:
            return Reading(None, f"not counted: {getattr(trial.cost, f'{counter}_reason')}")
        return _per_message(count, trial)

    return read


def _allocations_per_message(trial: Trial) -> Reading:
    if trial.allocations is None:
        return Reading(None, "not measured: the observer allocations was not on")
    return _per_message(trial.allocations, trial)


def _run_time(trial: Trial) -> Reading:
    return _reading(None if trial.run_s is None else trial.run_s * 1e9, "not of a command that ends by itself")


def _hiccup(statistic: str) -> Callable[[Trial], Reading]:
    def read(trial: Trial) -> Reading:
        if trial.hiccup_ns is None:
            return Reading(None, "not measured: the observer hiccup was not on")
        return _of(trial.hiccup_ns, statistic)

    return read


def _times(name: str, read: Callable[[str], Callable[[Trial], Reading]], help_: str) -> list[Metric]:
    """A metric for each statistic of a distribution."""
    return [
        Metric(f"{name}.{s}", f"{name} {s.replace('p99_', 'p99.')}".replace("_", " "), NS, LOWER, RATIO, read(s), help_)
        for s in STATISTICS
    ]


def _of_totals(figure: str) -> Callable[[str], Callable[[Trial], Reading]]:
    return lambda statistic: _distribution(f"{figure}_ns", statistic)


def _number(
    name: str, words: str, read: Callable[[Trial], Reading], help_: str, better: Literal["lower", "higher"] = LOWER
) -> Metric:
    """A count over topics and services."""
    return Metric(name, words, COUNT, better, DIFFERENCE, read, help_)


def _all() -> dict[str, Metric]:
    metrics = [m for figure, help_ in _FIGURES.items() for m in _times(figure, _of_totals(figure), help_)]
    metrics += _times("round_trip", _round_trip, "from request to reply, of the slowest service (the mean: of all)")
    metrics += _times("hiccup", _hiccup, "how late a thread that only sleeps wakes up; observer `hiccup`")
    of_received = "of the messages and replies that were received"
    metrics += [
        _number("received", "received", _count("received"), "messages and replies that were received", HIGHER),
        _number("lost", "lost", _lost, "messages and replies that never came"),
        Metric("lost_share", "share lost", PERCENT, LOWER, DIFFERENCE, _lost_share, "lost, of what was sent"),
        _number("late", "late", _count("late"), "slower than 5 ms or 20 % of the period, whichever is less"),
        _number("too_late", "too late", _count("too_late"), "slower than 50 ms or the period, whichever is less"),
        Metric("late_share", "share late", PERCENT, LOWER, DIFFERENCE, _share_of_received("late"),
               f"late, {of_received}"),
        Metric("too_late_share", "share too late", PERCENT, LOWER, DIFFERENCE, _share_of_received("too_late"),
               f"too late, {of_received}"),
        _number("reordered", "reordered", _count("reordered"), "received after a later one"),
        _number("duplicate", "duplicates", _count("duplicate"), "received once more"),
        _number("not_sent", "ticks not sent", _count("not_sent"), "left out by timers with overrun `skip`"),
        _number("write_errors", "write errors", _count("write_errors"), "the middleware refused them"),
        Metric("run_time", "run time", NS, LOWER, RATIO, _run_time, "of a command that ends by itself"),
        Metric("cpu_percent", "CPU", PERCENT, LOWER, RATIO, _resource("cpu_percent_mean"),
               "CPU time of all processes, in per cent of one CPU"),
        Metric("cpu_per_message", "CPU per message", NS, LOWER, RATIO, _cpu_per_message,
               "CPU time of all processes for each message received"),
        *(
            Metric(f"{name}_per_message", f"{name} per message", PER_MESSAGE, LOWER, RATIO, _counted_per_message(name),
                   "what the processor counted in all processes for each message received; not measured where it has "
                   "no such counter or none is given to a virtual machine")
            for name in COUNTERS
        ),
        Metric("rss_kb", "RSS", KILOBYTES, LOWER, RATIO, _resource("rss_kb_max"),
               "resident memory of the largest process at most, in kB of 1024 bytes"),
        Metric("allocations_per_message", "allocations per message", PER_MESSAGE, LOWER, DIFFERENCE,
               _allocations_per_message, "allocations of memory for each message received; observer `allocations`"),
    ]  # fmt: skip
    return {metric.name: metric for metric in metrics}


METRICS: dict[str, Metric] = _all()

# What reports compare unless asked for others. Few, since each one more makes Holm's correction of all others
# stricter: the usual message and the slow one, both as the sender saw them and (response) by the schedule, what was
# lost, and what it cost. Not the maximum: it is one message of a trial, so it spreads over trials like nothing else
# and grows with their length; it stands in the tables of distributions, and `--metric latency.max` compares it.
DEFAULT = ("latency.p50", "latency.p99", "response.p99", "round_trip.p99", "lost", "cpu_percent")


# The kinds of key figures, which graphs declare, and what each makes beside its name; "" is the name alone.
PATH, LOST, JITTER = "path", "lost", "jitter"
_MADE_BY = {PATH: (*STATISTICS, "missed"), LOST: ("", "share"), JITTER: STATISTICS}
_FIGURE_NAME = re.compile(r"[a-z][a-z0-9_]*")


def made_by(figures: Mapping[str, str]) -> list[str]:
    """The names of all metrics of key figures, which are given as their kinds by name.

    >>> made_by({"dropped": LOST})
    ['dropped', 'dropped.share']
    """
    return [f"{figure}.{s}" if s else figure for figure, kind in figures.items() for s in _MADE_BY[kind]]


def _of_figure(figure: str, statistic: str) -> Callable[[Trial], Reading]:
    def read(trial: Trial) -> Reading:
        match trial.key_figures.get(figure):
            case PathFigure(response_ns=times) | JitterFigure(jitter_ns=times):
                return _of(times, statistic)
            case _:
                return Reading(None, "not measured")

    return read


def _number_of_figure(figure: str, key: str) -> Callable[[Trial], Reading]:
    def read(trial: Trial) -> Reading:
        entry = trial.key_figures.get(figure)
        if not hasattr(entry, key):
            return Reading(None, "not measured")
        return _reading(getattr(entry, key), "what was lost at the end is not known")

    return read


def find(name: str) -> Metric | None:
    """The metric that a summary calls by this name: one of METRICS, or of a key figure of its graph."""
    if name in METRICS:
        return METRICS[name]
    figure, _, statistic = name.partition(".")
    if not _FIGURE_NAME.fullmatch(figure):
        return None
    words = f"{figure} {statistic.replace('_', '.')}".replace("_", " ").strip()
    help_ = "a key figure of the graph"
    if statistic in STATISTICS:
        return Metric(name, words, NS, LOWER, RATIO, _of_figure(figure, statistic), help_)
    if statistic == "missed":
        return _number(name, words, _number_of_figure(figure, "missed"), help_)
    if statistic == "share":
        return Metric(name, words, PERCENT, LOWER, DIFFERENCE, _number_of_figure(figure, "share_percent"), help_)
    if name == figure:
        return _number(name, words, _number_of_figure(figure, "lost"), help_)
    return None


def named(name: str) -> Metric:
    """As find(), of a name that must be one. Raises KeyError."""
    metric = find(name)
    if metric is None:
        raise KeyError(name)
    return metric


def parse(name: str, option: str = "--metric", figures: Mapping[str, str] | None = None) -> Metric:
    """The metric of this name, of every graph or of one of these key figures (their kinds by name).

    Raises BadInput, which names `option`.

    >>> parse("latency.p99.9").name
    'latency.p99_9'
    """
    wanted = re.sub(r"p99\.(9+)$", r"p99_\1", name.strip().lower())
    if wanted in METRICS:
        return METRICS[wanted]
    made = made_by(figures or {})
    if wanted in made and (metric := find(wanted)) is not None:
        return metric
    close = difflib.get_close_matches(wanted, [*METRICS, *made], n=1, cutoff=0.5)
    known = f"did you mean {close[0]}?" if close else f"there are {', '.join([*names(), *made])}"
    raise BadInput(f"{option}: no metric {name.strip()!r}; {known}")


def names() -> list[str]:
    """All metrics in short: "latency.{mean,p50,...}, ..., lost, ..."."""
    statistics = "{" + ",".join(STATISTICS) + "}"
    figures = [f"{figure}.{statistics}" for figure in (*_FIGURES, "round_trip", "hiccup")]
    return [*figures, *(name for name in METRICS if "." not in name)]


_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
    "==": operator.eq,
}
_CRITERION = re.compile(
    r"\s*([A-Za-z][A-Za-z0-9_.]*)\s*(<=|>=|==|<|>|=|!=)\s*([0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?)\s*(\S*)\s*"
)
_UNITS: dict[str, dict[str, float]] = {
    NS: {"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9},
    PERCENT: {"%": 1},
    COUNT: {},
    PER_MESSAGE: {},
    # Of the kernel's kilobytes, which have 1024 bytes.
    KILOBYTES: {"kB": 1e3 / 1024, "MB": 1e6 / 1024, "GB": 1e9 / 1024, "KiB": 1, "MiB": 1024, "GiB": 1 << 20},
}  # fmt: skip
_SHARES = ("lost_share", "late_share", "too_late_share")


@dataclass(frozen=True)
class Judgement:
    """`met` is None where the metric was not measured: the trial then did not meet the criterion either."""

    met: bool | None
    words: str


@dataclass(frozen=True)
class Criterion:
    """A bound that a metric of each trial must keep for the trial to be a success."""

    text: str
    metric: Metric
    comparison: str
    bound: float  # in the metric's unit

    def evaluate(self, trial: Trial) -> Judgement:
        """Whether a trial keeps the bound, and in words what it measured."""
        reading = self.metric.read(trial)
        wanted = f"{self.metric.words} {self.comparison} {self.metric.format(self.bound)}"
        if reading.value is None:
            return Judgement(None, f"{wanted} cannot be judged: {reading.reason}")
        met = _OPERATORS[self.comparison](reading.value, self.bound)
        value = self.metric.format(reading.value)
        if not met and value == self.metric.format(self.bound):  # rounded to the same figure
            value = f"{reading.value:.12g}{f' {self.metric.unit}' if self.metric.unit else ''}"
        return Judgement(met, f"{wanted}: {'met' if met else 'not met'} with {value}")


def parse_criterion(text: str, where: str = "--success", figures: Mapping[str, str] | None = None) -> Criterion:
    """Of "latency.p99 <= 5ms", "lost == 0", "late_share < 1 %". Raises BadInput, which names `where`."""
    example = "write it like 'latency.p99 <= 5ms' or 'lost == 0'"
    match = _CRITERION.fullmatch(text)
    if match is None:
        raise BadInput(f"{where}: {text.strip()!r} is no criterion; {example}")
    name, sign, number, unit = match.groups()
    metric = parse(name, where, figures)
    if sign in ("=", "!="):
        raise BadInput(f"{where}: {text.strip()!r} has {sign}; use one of {' '.join(_OPERATORS)}")
    value, units = float(number), _UNITS[metric.unit]
    if unit and unit not in units:
        what = f"use one of {', '.join(units)}" if units else "it is a plain number"
        raise BadInput(f"{where}: {unit!r} is no unit of {metric.name}; {what}")
    # A bare number is a guess where a name does not hold the unit.
    if not unit and value and (metric.unit == NS or metric.name in _SHARES or metric.name.endswith(".share")):
        right = f"{number}ms" if metric.unit == NS else f"{number} %"
        raise BadInput(f"{where}: {text.strip()!r} has no unit; write {metric.name} {sign} {right}, or what you mean")
    bound = value * units[unit] if unit else value
    if not math.isfinite(bound):
        raise BadInput(f"{where}: {number} is too large")
    return Criterion(f"{metric.name} {sign} {number}{unit}", metric, sign, bound)


def chosen(
    words: Sequence[str] | None, option: str = "--metric", figures: Mapping[str, str] | None = None
) -> tuple[Metric, ...]:
    """The metrics of these names, or the default ones. Raises BadInput."""
    if not words:
        return tuple(METRICS[name] for name in DEFAULT)
    found = [parse(name, option, figures) for word in words for name in word.split(",")]
    return tuple({metric.name: metric for metric in found}.values())
