"""What a trial says, as one number for each metric; and criteria of success, which bound such a number.

A trial is one entry of `trials_detail` in summary.json. A metric that it did not measure is None, with the reason,
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
from typing import Any

from perflab.errors import BadInput
from perflab.statistics.cost import COUNTERS
from perflab.units import format_bytes, format_count, format_time

Json = Mapping[str, Any]

LOWER, HIGHER = "lower", "higher"  # which is better
RATIO, DIFFERENCE = "ratio", "difference"  # how two values of a metric are compared

# Times are positive and spread over decades: what changes them multiplies. Counts and shares are 0 as a rule.
NS, PERCENT, COUNT, KILOBYTES, PER_MESSAGE = "ns", "%", "", "kB", "per message"

BEYOND = 10  # messages that must lie above a percentile
_QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99_9": 0.999, "p99_99": 0.9999}
STATISTICS = ("mean", *_QUANTILES, "max")
_FIGURES = ("latency", "response", "publish_delay", "publish_call", "dispatch", "work")


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
    better: str
    compared: str
    read: Callable[[Json], Reading]

    def format(self, value: float | None) -> str:
        """A value for people: "45.2 µs", "0.11 %", "12"."""
        if value is None:
            return "–"
        if self.unit == NS:
            return format_time(value)
        if self.unit == PERCENT:
            return f"{value:.3g} %"
        if self.unit == KILOBYTES:
            return format_bytes(value * 1024)
        if self.unit == PER_MESSAGE:
            return f"{value:.3g}" if value < 1000 else format_count(round(value))
        return format_count(int(value)) if value == int(value) else f"{value:.4g}"


def needed(statistic: str) -> int:
    """How many messages a trial must have for this statistic to mean something."""
    quantile = _QUANTILES.get(statistic)
    return 1 if quantile is None else math.ceil(round(BEYOND / (1 - quantile), 6))


def _distribution(key: str, statistic: str) -> Callable[[Json], Reading]:
    def read(trial: Json) -> Reading:
        return _of(_totals(trial).get(key), statistic)

    return read


def _of(distribution: Json | None, statistic: str) -> Reading:
    if distribution is None:
        return Reading(None, "not measured")
    count, value = distribution.get("count"), distribution.get(statistic)
    if value is None:
        return Reading(None, "no message was received" if count == 0 else "not measured")
    if count is not None and count < needed(statistic):
        short = statistic.replace("_", ".")
        return Reading(
            None,
            f"{short} needs {format_count(needed(statistic))} messages in a trial, there are {format_count(count)}",
        )
    return Reading(float(value))


def _round_trip(statistic: str) -> Callable[[Json], Reading]:
    """The mean over all replies; otherwise that of the slowest service, for percentiles cannot be merged."""

    def read(trial: Json) -> Reading:
        services = trial.get("services") or ()
        distributions = [s["round_trip_ns"] for s in services if s.get("round_trip_ns") is not None]
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
        counts = [d.get("count") for d in distributions]
        if None in counts:
            return Reading(None, "the number of replies is not known")
        return Reading(sum(map(operator.mul, counts, values)) / sum(counts))

    return read


def _totals(trial: Json) -> Json:
    totals: Json = trial.get("totals") or {}
    return totals


def _owners(trial: Json) -> list[Json]:
    """What has counts: the topics together, as far as there are any, and each service."""
    totals = _totals(trial)
    return [*([totals] if totals.get("received") is not None else []), *(trial.get("services") or ())]


def _counted(trial: Json, count: Callable[[Json], int | None]) -> int | None:
    counts = [count(owner) for owner in _owners(trial)]
    known = [n for n in counts if n is not None]
    return sum(known) if counts and len(known) == len(counts) else None


def _lost_of(owner: Json) -> int | None:
    classes = list(owner["lost"].values())
    return None if None in classes else sum(classes)


def _count(key: str) -> Callable[[Json], Reading]:
    def read(trial: Json) -> Reading:
        value = _counted(trial, lambda owner: owner.get(key))
        return Reading(None, "not measured") if value is None else Reading(float(value))

    return read


def _lost(trial: Json) -> Reading:
    if not _owners(trial):
        return Reading(None, "not measured")
    value = _counted(trial, _lost_of)
    return Reading(None, "what was lost at the end is not known") if value is None else Reading(float(value))


def _lost_share(trial: Json) -> Reading:
    lost, received = _lost(trial), _counted(trial, lambda owner: owner.get("received"))
    if lost.value is None:
        return lost
    if received is None or not received + lost.value:
        return Reading(None, "nothing was sent")
    return Reading(100 * lost.value / (received + lost.value))


def _share_of_received(key: str) -> Callable[[Json], Reading]:
    def read(trial: Json) -> Reading:
        part = _counted(trial, lambda owner: owner.get(key))
        received = _counted(trial, lambda owner: owner.get("received"))
        if part is None or received is None:
            return Reading(None, "not measured")
        return Reading(100 * part / received) if received else Reading(None, "no message was received")

    return read


def _resource(key: str) -> Callable[[Json], Reading]:
    def read(trial: Json) -> Reading:
        value = (trial.get("resources") or {}).get(key)
        return Reading(None, "not measured") if value is None else Reading(float(value))

    return read


def cpu_per_message(trials: Sequence[Json]) -> Reading:
    """CPU time of all processes over the messages received, both of the measured parts of all of these trials."""
    used_ns = [_cpu_ns(trial) for trial in trials]
    received = [_counted(trial, lambda owner: owner.get("received")) for trial in trials]
    known_ns, counts = [ns for ns in used_ns if ns is not None], [n for n in received if n is not None]
    if not trials or len(known_ns) < len(trials) or len(counts) < len(trials):
        return Reading(None, "not measured")
    return Reading(sum(known_ns) / sum(counts)) if any(counts) else Reading(None, "no message was received")


def _cpu_ns(trial: Json) -> float | None:
    percent = (trial.get("resources") or {}).get("cpu_percent_mean")
    seconds = trial.get("measured_s")
    return None if percent is None or not seconds else float(percent / 100 * seconds * 1e9)


def _cpu_per_message(trial: Json) -> Reading:
    return cpu_per_message([trial])


def _counted_per_message(counter: str) -> Callable[[Json], Reading]:
    def read(trial: Json) -> Reading:
        cost = trial.get("cost")
        if cost is None:
            return Reading(None, "not measured")
        if cost[counter] is None:
            return Reading(None, f"not counted: {cost[f'{counter}_reason']}")
        received = _counted(trial, lambda owner: owner.get("received"))
        return Reading(cost[counter] / received) if received else Reading(None, "no message was received")

    return read


def _allocations_per_message(trial: Json) -> Reading:
    allocations, received = trial.get("allocations"), _counted(trial, lambda owner: owner.get("received"))
    if allocations is None:
        return Reading(None, "not measured: the observer allocations was not on")
    return Reading(allocations / received) if received else Reading(None, "no message was received")


def _run_time(trial: Json) -> Reading:
    seconds = trial.get("run_s")
    return Reading(None, "not of a command that ends by itself") if seconds is None else Reading(seconds * 1e9)


def _hiccup(statistic: str) -> Callable[[Json], Reading]:
    def read(trial: Json) -> Reading:
        distribution = trial.get("hiccup_ns")
        if distribution is None:
            return Reading(None, "not measured: the observer hiccup was not on")
        return _of(distribution, statistic)

    return read


def _all() -> dict[str, Metric]:
    metrics = []
    for figure in _FIGURES:
        for statistic in STATISTICS:
            words = f"{figure} {statistic}".replace("p99_", "p99.").replace("_", " ")
            read = _distribution(f"{figure}_ns", statistic)
            metrics.append(Metric(f"{figure}.{statistic}", words, NS, LOWER, RATIO, read))
    for statistic in STATISTICS:
        words = f"round trip {statistic.replace('_', '.')}"
        metrics.append(Metric(f"round_trip.{statistic}", words, NS, LOWER, RATIO, _round_trip(statistic)))
    for statistic in STATISTICS:
        words = f"hiccup {statistic.replace('_', '.')}"
        metrics.append(Metric(f"hiccup.{statistic}", words, NS, LOWER, RATIO, _hiccup(statistic)))
    metrics += [
        Metric("received", "received", COUNT, HIGHER, DIFFERENCE, _count("received")),
        Metric("lost", "lost", COUNT, LOWER, DIFFERENCE, _lost),
        Metric("lost_share", "share lost", PERCENT, LOWER, DIFFERENCE, _lost_share),
        Metric("late", "late", COUNT, LOWER, DIFFERENCE, _count("late")),
        Metric("too_late", "too late", COUNT, LOWER, DIFFERENCE, _count("too_late")),
        Metric("late_share", "share late", PERCENT, LOWER, DIFFERENCE, _share_of_received("late")),
        Metric("too_late_share", "share too late", PERCENT, LOWER, DIFFERENCE, _share_of_received("too_late")),
        Metric("reordered", "reordered", COUNT, LOWER, DIFFERENCE, _count("reordered")),
        Metric("duplicate", "duplicates", COUNT, LOWER, DIFFERENCE, _count("duplicate")),
        Metric("not_sent", "ticks not sent", COUNT, LOWER, DIFFERENCE, _count("not_sent")),
        Metric("write_errors", "write errors", COUNT, LOWER, DIFFERENCE, _count("write_errors")),
        Metric("run_time", "run time", NS, LOWER, RATIO, _run_time),
        Metric("cpu_percent", "CPU", PERCENT, LOWER, RATIO, _resource("cpu_percent_mean")),
        Metric("cpu_per_message", "CPU per message", NS, LOWER, RATIO, _cpu_per_message),
        *(
            Metric(f"{name}_per_message", f"{name} per message", PER_MESSAGE, LOWER, RATIO, _counted_per_message(name))
            for name in COUNTERS
        ),
        Metric("rss_kb", "RSS", KILOBYTES, LOWER, RATIO, _resource("rss_kb_max")),
        Metric(
            "allocations_per_message",
            "allocations per message",
            PER_MESSAGE,
            LOWER,
            DIFFERENCE,
            _allocations_per_message,
        ),
    ]
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
_DISTRIBUTION_OF = {PATH: "response_ns", JITTER: "jitter_ns"}
_FIGURE_NAME = re.compile(r"[a-z][a-z0-9_]*")


def made_by(figures: Mapping[str, str]) -> list[str]:
    """The names of all metrics of key figures, which are given as their kinds by name.

    >>> made_by({"dropped": LOST})
    ['dropped', 'dropped.share']
    """
    return [f"{figure}.{s}" if s else figure for figure, kind in figures.items() for s in _MADE_BY[kind]]


def _key_figure(trial: Json, figure: str) -> Json | None:
    found: Json | None = (trial.get("key_figures") or {}).get(figure)
    return found


def _of_figure(figure: str, statistic: str) -> Callable[[Json], Reading]:
    def read(trial: Json) -> Reading:
        entry = _key_figure(trial, figure)
        key = None if entry is None else _DISTRIBUTION_OF.get(str(entry["kind"]))
        return Reading(None, "not measured") if entry is None or key is None else _of(entry[key], statistic)

    return read


def _number_of_figure(figure: str, key: str, missing: str) -> Callable[[Json], Reading]:
    def read(trial: Json) -> Reading:
        entry = _key_figure(trial, figure)
        if entry is None or key not in entry:
            return Reading(None, "not measured")
        value = entry[key]
        return Reading(None, missing) if value is None else Reading(float(value))

    return read


def find(name: str) -> Metric | None:
    """The metric that a summary calls by this name: one of METRICS, or of a key figure of its graph."""
    if name in METRICS:
        return METRICS[name]
    figure, _, statistic = name.partition(".")
    if not _FIGURE_NAME.fullmatch(figure):
        return None
    words = f"{figure} {statistic.replace('_', '.')}".replace("_", " ").strip()
    if statistic in STATISTICS:
        return Metric(name, words, NS, LOWER, RATIO, _of_figure(figure, statistic))
    unknown = "what was lost at the end is not known"
    if statistic == "missed":
        return Metric(name, words, COUNT, LOWER, DIFFERENCE, _number_of_figure(figure, "missed", unknown))
    if statistic == "share":
        return Metric(name, words, PERCENT, LOWER, DIFFERENCE, _number_of_figure(figure, "share_percent", unknown))
    if name == figure:
        return Metric(name, words, COUNT, LOWER, DIFFERENCE, _number_of_figure(figure, "lost", unknown))
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

    def evaluate(self, trial: Json) -> Judgement:
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
