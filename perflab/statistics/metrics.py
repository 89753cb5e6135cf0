"""The values of a trial, one number for each metric; and criteria of success, which bound such a number.

A metric that a trial did not measure has a reason instead, and so has a percentile with too few messages: of n
messages, fewer than ten lie above the quantile q if n < 10 / (1 - q), and the value is then little more than one of the
largest few.

A metric is declared here, once; tables, reports, comparisons and criteria use METRICS. An installed package adds one by
an entry point of the group `perflab.metrics` (perflab/plugins.py).
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Literal

from perflab import quantity
from perflab.errors import BadInput, instead
from perflab.plugins import Registry
from perflab.quantity import Quantity
from perflab.results.figure import OWN_FIGURES, Distribution, OwnFigure
from perflab.results.trial import SLOPE_FROM_S, HasCounts, Judged, Trial, counted, owners, received
from perflab.statistics.cost import COUNTERS
from perflab.units import format_count

LOWER: Literal["lower"] = "lower"  # direction of improvement
HIGHER: Literal["higher"] = "higher"
# How two values of a metric are compared. Times are positive and spread over decades: effects on them multiply. Counts
# and shares are usually 0.
RATIO, DIFFERENCE = "ratio", "difference"

NS, PERCENT, COUNT, KILOBYTES = (
    of.unit for of in (quantity.TIME, quantity.PERCENT, quantity.COUNT, quantity.KILOBYTES)
)

BEYOND = 10  # messages that must lie above a percentile
_QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99_9": 0.999, "p99_99": 0.9999}
STATISTICS = ("mean", *_QUANTILES, "max")

NOT_MEASURED = "not measured"
Measured = float | str | None
"""A number; or why there is none; None: NOT_MEASURED."""


@dataclass(frozen=True)
class Reading:
    """A metric of one trial; `reason` says why if the value is None."""

    value: float | None
    reason: str | None = None

    @staticmethod
    def of(found: Measured) -> Reading:
        if found is None or isinstance(found, str):
            return Reading(None, found or NOT_MEASURED)
        return Reading(float(found))


@dataclass(frozen=True)
class Metric:
    """One number of a trial. `compared`: whether differences of it are ratios or differences."""

    name: str
    words: str
    quantity: Quantity
    measure: Callable[[Trial], Measured]
    help: str
    better: Literal["lower", "higher"] = LOWER
    compared: str = RATIO
    observers: frozenset[str] = frozenset()
    """Observers without which a trial does not have it."""

    @property
    def unit(self) -> str:
        return self.quantity.unit

    def read(self, trial: Trial) -> Reading:
        return Reading.of(self.measure(trial))

    def format(self, value: float | None) -> str:
        """A value for people: "45.2 µs", "0.11 %", "12"."""
        return self.quantity.text(value)


# -- values of trials ------------------------------------------------------------------------------------------------


def needed(statistic: str) -> int:
    """How many messages a trial needs for this statistic to be meaningful."""
    quantile = _QUANTILES.get(statistic)
    return 1 if quantile is None else math.ceil(round(BEYOND / (1 - quantile), 6))


def of_distribution(distribution: Distribution | None, statistic: str) -> Measured:
    """A statistic of times; or why there is none if they are too few for it to be meaningful."""
    if distribution is None:
        return None
    count: int | None = distribution.count
    value: float | None = getattr(distribution, statistic)
    if value is None:
        return "no message was received" if count == 0 else None
    if count is not None and count < (least := needed(statistic)):
        short = statistic.replace("_", ".")
        return f"{short} needs {format_count(least)} messages in a trial, there are only {format_count(count)}"
    return float(value)


def _round_trip(statistic: str, trial: Trial) -> Measured:
    """The mean over all replies; otherwise that of the slowest service, because percentiles cannot be merged."""
    distributions = [s.round_trip_ns for s in trial.services if s.round_trip_ns is not None]
    readings = [of_distribution(d, statistic) for d in distributions]
    values = [r for r in readings if isinstance(r, float)]
    if not readings or len(values) < len(readings):
        return next((r for r in readings if not isinstance(r, float)), None)
    if statistic != "mean":
        return max(values)
    if len(values) == 1:
        return values[0]
    counts = [d.count for d in distributions if d.count is not None]
    if len(counts) < len(distributions):
        return "the number of replies is unknown"
    return sum(map(operator.mul, counts, values), 0.0) / sum(counts)


def _observed(name: str, statistic: str, trial: Trial) -> Measured:
    if (found := trial.observed_ns.get(name)) is None:
        return f"not measured: the observer {_observer_of(name)} was not on, or recorded nothing"
    return of_distribution(found, statistic)


def _lost(trial: Trial) -> Measured:
    if not owners(trial):
        return None
    lost = counted(trial, attrgetter("all_lost"))
    return "losses at the end are unknown" if lost is None else lost


def _lost_share(trial: Trial) -> Measured:
    lost, arrived = _lost(trial), received(trial)
    if lost is None or isinstance(lost, str):
        return lost
    if arrived is None or not arrived + lost:
        return "nothing was sent"
    return 100 * lost / (arrived + lost)


def _per_message(value: float | None, arrived: int | None) -> Measured:
    if value is None or arrived is None:
        return None
    return value / arrived if arrived else "no message was received"


def _share_of_received(trial: Trial, count: str) -> Measured:
    part = counted(trial, attrgetter(count))
    return _per_message(None if part is None else 100 * part, received(trial))


def cpu_per_message(trials: Sequence[Trial]) -> Reading:
    """CPU time of all processes divided by the received messages, both in the measured parts of all these trials."""
    return Reading.of(_cpu_per_message(trials))


def _cpu_per_message(trials: Sequence[Trial]) -> Measured:
    used = [(t.resources.cpu_percent_mean, t.measured_s, received(t)) for t in trials]
    known = [(percent / 100 * s * 1e9, n) for percent, s, n in used if percent is not None and s and n is not None]
    if not known or len(known) < len(trials):
        return None
    return _per_message(sum(ns for ns, _ in known), sum(n for _, n in known))


def per_second(count: int | None, trials: Sequence[Trial]) -> float | None:
    """From the counts in all of these trials, over their measured parts."""
    lasted = [t.measured_s for t in trials]
    known = [s for s in lasted if s is not None]
    return count / sum(known) if count is not None and len(known) == len(lasted) and sum(known) > 0 else None


def _slope(of: float | None, trial: Trial) -> Measured:
    short = trial.measured_s is not None and trial.measured_s < SLOPE_FROM_S
    return f"not defined for a trial of less than {SLOPE_FROM_S} s" if of is None and short else of


def received_bytes(of: HasCounts) -> int | None:
    return counted(of, attrgetter("received_bytes"))


def _counter_per_message(trial: Trial, counter: str) -> Measured:
    count = _counter(trial, counter)
    return count if count is None or isinstance(count, str) else _per_message(count, received(trial))


def _counter(trial: Trial, counter: str) -> Measured:
    if trial.cost is None:
        return None
    count: int | None = getattr(trial.cost, counter)
    return f"not counted: {getattr(trial.cost, f'{counter}_reason')}" if count is None else count


def _clock_rate(trial: Trial) -> Measured:
    cycles = _counter(trial, "cycles")
    if trial.cost is None or cycles is None or isinstance(cycles, str):
        return cycles
    return 1e9 * cycles / trial.cost.cpu_ns if trial.cost.cpu_ns else "the processes used no CPU time"


def _cpu_frequency(trial: Trial) -> Measured:
    if trial.machine is None:
        return None
    known = [cpu.frequency_hz for cpu in trial.machine.cpus if cpu.frequency_hz is not None]
    return sum(known) / len(known) if known else "not measured: this machine has no cpufreq, like most virtual ones"


def _of_system(count: str, trial: Trial) -> Measured:
    if trial.system is None:
        return None
    found: int | None = getattr(trial.system, count)
    return trial.system.reasons.get(count) if found is None else found


def _of_system_per_message(count: str, trial: Trial) -> Measured:
    found = _of_system(count, trial)
    return found if found is None or isinstance(found, str) else _per_message(found, received(trial))


def _of_recoveries(member: str, trial: Trial) -> Measured:
    if not trial.recoveries:
        return "no process crashed: the condition `crash` was not on"
    found = [getattr(recovery, member) for recovery in trial.recoveries]
    if None in found:
        return "the process that came back received nothing"
    return float(sum(found) if member == "missed" else max(found))


def _allocations_per_message(trial: Trial) -> Measured:
    if trial.allocations is None:
        return (
            "not counted: the observer allocations was not on, or the run is from a version before they were "
            "counted separately"
        )
    return _per_message(trial.allocations, received(trial))


# Times that observers record: named after the observer, or NAME_PART.
OBSERVED = {
    "hiccup": "how late a thread that only sleeps wakes up",
    "hiccup_waited": "the part of `hiccup` in which the thread was ready and another one had its CPU",
    "hiccup_woken_late": "the rest of `hiccup`, before the thread was woken",
    "cyclictest": "how late the kernel wakes a high-priority thread",
}


def _observer_of(name: str) -> str:
    return name.partition("_")[0]


# -- declarations ----------------------------------------------------------------------------------------------------


def _times(
    name: str, help_: str, read: Callable[[str, Trial], Measured] | None = None, observers: frozenset[str] = frozenset()
) -> Iterator[Metric]:
    """A metric for each statistic of a distribution, by default one of the totals."""

    def of_totals(statistic: str, trial: Trial) -> Measured:
        return of_distribution(getattr(trial.totals, f"{name}_ns"), statistic)

    own = read or of_totals
    for statistic in STATISTICS:
        words = f"{name} {statistic.replace('p99_', 'p99.')}".replace("_", " ")
        measure = partial(own, statistic)
        yield Metric(f"{name}.{statistic}", words, quantity.TIME, measure, help_, observers=observers)


def _count(
    name: str, help_: str, words: str = "", measure: Callable[[Trial], Measured] | None = None,
    better: Literal["lower", "higher"] = LOWER,
) -> Metric:  # fmt: skip
    """Over topics and services."""
    own = measure or partial(counted, count=attrgetter(name))
    return Metric(name, words or name, quantity.COUNT, own, help_, better, DIFFERENCE)


def _share(name: str, words: str, help_: str, measure: Callable[[Trial], Measured]) -> Metric:
    return Metric(name, words, quantity.PERCENT, measure, help_, compared=DIFFERENCE)


def _own() -> Iterator[Metric]:
    yield from _times("latency", "from sending a message to its callback, over all edges")
    yield from _times("response", "from when a message was due to its callback, over all edges")
    yield from _times("publish_delay", "how much later than due messages were sent")
    yield from _times("publish_call", "duration of the call that sends")
    yield from _times("dispatch", "from the arrival of a message to its callback; `--measure dispatch`")
    yield from _times("work", "duration of callbacks; `--measure work`")
    yield from _times("serialize", "duration of encoding a message; `--serialization every`")
    yield from _times("deserialize", "duration of decoding a message; `--serialization every`")
    yield from _times("round_trip", "from request to reply, of the slowest service (the mean: of all)", _round_trip)
    for name, help_ in OBSERVED.items():
        observer = _observer_of(name)
        yield from _times(name, f"{help_}; observer `{observer}`", partial(_observed, name), frozenset({observer}))
    of_received = "among the received messages and replies"
    yield _count("received", "received messages and replies", better=HIGHER)
    yield Metric(
        "received_per_s", "received per second", quantity.PER_SECOND, lambda t: per_second(received(t), [t]),
        "received messages and replies, in each second of the measured part", HIGHER,
    )  # fmt: skip
    yield Metric(
        "bytes_per_s", "throughput", quantity.DATA_RATE, lambda t: per_second(received_bytes(t), [t]),
        "payload of the received messages and replies, in each second of the measured part", HIGHER,
    )  # fmt: skip
    yield Metric(
        "latency_slope", "latency slope", quantity.DRIFT,
        lambda t: _slope(t.latency_slope_ns_per_s, t),
        f"change of the mean latency of a second per second; for {SLOPE_FROM_S} s or more",
        compared=DIFFERENCE,
    )  # fmt: skip
    yield Metric(
        "rss_slope", "RSS slope", quantity.GROWTH, lambda t: _slope(t.rss_slope_kb_per_s, t),
        f"change of the resident memory of all processes together, in kB of 1024 bytes; for {SLOPE_FROM_S} s or more",
        compared=DIFFERENCE,
    )  # fmt: skip
    yield _count("lost", "messages and replies that never arrived", measure=_lost)
    yield _share("lost_share", "share lost", "lost, as a share of those sent", _lost_share)
    yield _count("late", "slower than 5 ms or 20 % of the period, whichever is less")
    yield _count("too_late", "slower than 50 ms or the period, whichever is less", "too late")
    for count in ("late", "too_late"):
        words = count.replace("_", " ")
        measure = partial(_share_of_received, count=count)
        yield _share(f"{count}_share", f"share {words}", f"{words}, {of_received}", measure)
    yield _count("reordered", "received after a later one")
    yield _count("duplicate", "received once more", "duplicates")
    yield _count("not_sent", "skipped by timers with overrun `skip`", "ticks not sent")
    yield _count("write_errors", "rejected by the middleware", "write errors")
    for of in ("participants", "endpoints"):
        done = "all participants were found" if of == "participants" else "all endpoints were matched"
        yield Metric(
            f"discovery_{of}", f"discovery of {of}", quantity.TIME, attrgetter(f"discovery_ns.{of}"),
            f"from the creation of a participant until {done}, in the slowest process",
        )  # fmt: skip
    yield Metric(
        "first_message", "first message", quantity.TIME, attrgetter("first_message_ns"),
        "from when the first message of all, including the warm-up, was due to its callback, on the slowest edge",
    )  # fmt: skip
    for member, words, help_ in (
        ("matched", "matched again", "until all endpoints were matched"),
        ("first_message", "first message again", "until the callback of the first message"),
    ):
        yield Metric(
            f"recovery_{member}", words, quantity.TIME, partial(_of_recoveries, f"{member}_ns"),
            f"from when a process that had crashed was started again {help_}; condition `crash`",
        )  # fmt: skip
    yield Metric(
        "recovery_missed", "missed by a crash", quantity.COUNT, partial(_of_recoveries, "missed"),
        "messages that reached a process neither before its crash nor after it, over its edges; condition `crash`",
        compared=DIFFERENCE,
    )  # fmt: skip
    yield Metric(
        "run_time", "run time", quantity.TIME,
        lambda t: "not for a command that ends by itself" if t.run_s is None else t.run_s * 1e9,
        "for a command that ends by itself",
    )  # fmt: skip
    yield Metric(
        "cpu_percent", "CPU", quantity.PERCENT, attrgetter("resources.cpu_percent_mean"),
        "CPU time of all processes, in percent of one CPU",
    )  # fmt: skip
    yield Metric(
        "cpu_per_message", "CPU per message", quantity.TIME, lambda t: _cpu_per_message([t]),
        "CPU time of all processes for each message received",
    )  # fmt: skip
    uncounted = "not measured if the processor has no such counter or none is available in a virtual machine"
    for counter in COUNTERS:
        words = counter.replace("_", " ")
        yield Metric(
            f"{counter}_per_message", f"{words} per message", quantity.PER_MESSAGE,
            partial(_counter_per_message, counter=counter),
            f"counted by the processor in all processes for each message received; {uncounted}",
        )  # fmt: skip
        yield Metric(
            counter, words, quantity.COUNT, partial(_counter, counter=counter),
            f"counted by the processor in all processes in the measured part; {uncounted}",
        )  # fmt: skip
    yield Metric(
        "clock_rate", "clock rate", quantity.CLOCK, _clock_rate,
        f"cycles of all processes for each second of their CPU time, counted by the processor; {uncounted}",
        HIGHER,
    )  # fmt: skip
    yield Metric(
        "cpu_frequency", "CPU frequency", quantity.CLOCK, _cpu_frequency,
        "mean of all CPUs over the measured part, read twice a second; not measured if the machine has no "
        "cpufreq, like most virtual ones",
        HIGHER,
    )  # fmt: skip
    yield Metric(
        "rss_kb", "RSS", quantity.KILOBYTES, attrgetter("resources.rss_kb_max"),
        "largest resident memory of the largest process, in kB of 1024 bytes",
    )  # fmt: skip
    yield Metric(
        "allocations_per_message", "allocations per message", quantity.PER_MESSAGE, _allocations_per_message,
        "allocations for each message received, without those of perflab's own threads; observer `allocations`",
        compared=DIFFERENCE, observers=frozenset({"allocations"}),
    )  # fmt: skip
    yield from _system()


_OF_PROCESSES = "in all processes, including perflab's own threads in them"
_OF_NAMESPACE = "by all programs in the network namespace of the processes; on a loopback each message is sent once"
_SYSTEM = {
    "minor_faults": ("minor page faults", f"without reading from storage, {_OF_PROCESSES}"),
    "major_faults": ("major page faults", f"with reading from storage, {_OF_PROCESSES}"),
    "block_inputs": ("blocks read", f"from storage, of 512 bytes, {_OF_PROCESSES}"),
    "block_outputs": ("blocks written", f"to storage, of 512 bytes, {_OF_PROCESSES}"),
    "voluntary_switches": ("voluntary switches", f"a thread waited and gave its CPU away, {_OF_PROCESSES}"),
    "involuntary_switches": ("involuntary switches", f"a ready thread lost its CPU, {_OF_PROCESSES}"),
    "wire_bytes": ("bytes on the wire", f"sent over all interfaces, with headers, {_OF_NAMESPACE}"),
    "wire_packets": ("packets on the wire", f"sent over all interfaces, {_OF_NAMESPACE}"),
    "signals": ("signals", "received by the processes; not measured: Linux counts none"),
    "socket_drops": ("socket drops", "datagrams for which sockets of the processes had no room"),
    "tcp_retransmissions": ("TCP retransmissions", "retransmitted segments of all programs in the network namespace"),
    "retransmitted_bytes": (
        "retransmitted bytes",
        "retransmitted by the middleware, including warm-up and drain; not measured if it does not report them",
    ),
}
"""The operating system's counters, with their words and meaning."""
_SYSTEM_PER_MESSAGE = (
    "minor_faults", "voluntary_switches", "involuntary_switches", "wire_bytes", "wire_packets",
)  # fmt: skip


def _system() -> Iterator[Metric]:
    for name, (words, help_) in _SYSTEM.items():
        measure = partial(_of_system, name)
        of = quantity.BYTES if "bytes" in name else quantity.COUNT
        yield Metric(name, words, of, measure, help_, compared=DIFFERENCE)
        if name in _SYSTEM_PER_MESSAGE:
            measure = partial(_of_system_per_message, name)
            each = f"{words} for each message received, {help_.rpartition(', ')[2]}"
            yield Metric(
                f"{name}_per_message", f"{words} per message", quantity.PER_MESSAGE, measure, each, compared=DIFFERENCE
            )


class _Metrics(Registry[Metric]):
    """The metrics of every graph."""

    def _own(self) -> Iterator[Metric]:
        return _own()


METRICS = _Metrics("metric", "perflab.statistics", Metric)

# The metrics that reports compare by default. Few, since alpha is divided among all of them: the usual message and the
# slow one, both as the sender saw them and (response) by the schedule, losses, and the cost. Not the maximum: it is one
# message of a trial, so it scatters more than anything else and grows with the trial's length; it is in the tables of
# distributions, and `--metric latency.max` compares it.
DEFAULT = ("latency.p50", "latency.p99", "response.p99", "round_trip.p99", "lost", "cpu_percent")


# -- key figures, which graphs and kinds of workloads declare --------------------------------------------------------

PATH, LOST, JITTER, VALUE, TIMES = "path", "lost", "jitter", "value", "times"
# Beside its name.
_MADE_BY = {PATH: (*STATISTICS, "missed"), LOST: ("", "share"), JITTER: STATISTICS, VALUE: ("",), TIMES: STATISTICS}
_FIELDS = {"": "lost", "share": "share_percent", "missed": "missed"}  # from its record; all others are from its times
_FIGURE_NAME = re.compile(r"[a-z][a-z0-9_]*")


def made_by(figures: Mapping[str, str]) -> list[str]:
    """The names of all metrics of key figures, given as their kinds by name.

    >>> made_by({"dropped": LOST})
    ['dropped', 'dropped.share']
    """
    return [f"{figure}.{s}" if s else figure for figure, kind in figures.items() for s in _MADE_BY[kind]]


def _of_figure(trial: Trial, figure: str, statistic: str) -> Measured:
    entry = trial.key_figures.get(figure)
    if entry is None:
        return None
    if statistic in STATISTICS:
        return of_distribution(entry.times_ns, statistic)
    if not hasattr(entry, _FIELDS[statistic]):
        return None
    found: int | float | None = getattr(entry, _FIELDS[statistic])
    return "losses at the end are unknown" if found is None else found


def _of_own(name: str, figure: OwnFigure) -> Metric:
    """Figures from a kind of workload. Its unit is not in its name, unlike for other figures."""

    def measure(trial: Trial) -> Measured:
        value: float | None = getattr(trial.key_figures.get(name), "value", None)
        return value

    of, help_ = quantity.of_unit(figure.unit), "a figure of this kind of workload"
    return Metric(name, figure.words, of, measure, help_, figure.better, figure.scale)


OVER = "/"  # between the names of two metrics whose ratio is meant


def _ratio(name: str) -> Metric | None:
    """The ratio to another metric in the same trial; None if they are not positive quantities of one unit."""
    of, over = (find(part) for part in name.split(OVER, 1))
    if of is None or over is None or of.unit != over.unit or {of.compared, over.compared} != {RATIO}:
        return None

    def measure(trial: Trial) -> Measured:
        value, floor = of.read(trial), over.read(trial)
        if value.value is None or floor.value is None:
            return value.reason if value.value is None else floor.reason
        return value.value / floor.value if floor.value else f"{over.words} is {over.format(floor.value)}"

    words, help_ = f"{of.words} {OVER} {over.words}", "one metric of a trial as a multiple of another one"
    return Metric(name, words, quantity.FACTOR, measure, help_, of.better, observers=of.observers | over.observers)


def over_floor(figure: str, floor: str, statistic: str) -> str:
    """The name of the metric for the ratio of a figure to its floor."""
    return f"{figure}.{statistic}{OVER}{floor}.{statistic}"


def find(name: str) -> Metric | None:
    """The metric with this name in a summary: one of METRICS, or of a key figure of its graph or workload; or two of
    these, as a ratio."""
    if OVER in name:
        return _ratio(name)
    if name in METRICS:
        return METRICS[name]
    if name in OWN_FIGURES:
        return _of_own(name, OWN_FIGURES[name])
    figure, dot, statistic = name.partition(".")
    known = statistic in (*STATISTICS, *_FIELDS) and bool(dot) == bool(statistic)
    if not known or not _FIGURE_NAME.fullmatch(figure):
        return None
    words = f"{figure} {statistic.replace('_', '.')}".replace("_", " ").strip()
    is_time = statistic in STATISTICS
    of = quantity.TIME if is_time else quantity.PERCENT if statistic == "share" else quantity.COUNT
    measure = partial(_of_figure, figure=figure, statistic=statistic)
    return Metric(name, words, of, measure, "a key figure of the graph", compared=RATIO if is_time else DIFFERENCE)


# -- parsing ---------------------------------------------------------------------------------------------------------


def named(name: str) -> Metric:
    """Like find(), for a name that must exist. Raises KeyError."""
    metric = find(name)
    if metric is None:
        raise KeyError(name)
    return metric


def parse(name: str, option: str = "--metric", figures: Mapping[str, str] | None = None) -> Metric:
    """The metric of this name, of every graph or of one of these key figures (their kinds by name).

    Raises BadInput, which names `option`.

    >>> parse("latency.p99.9").name
    'latency.p99_9'
    >>> parse("latency.p99/hiccup.p99").words
    'latency p99 / hiccup p99'
    """
    if OVER in name:
        parts = [parse(part, option, figures).name for part in name.split(OVER)]
        if len(parts) == 2 and (ratio := _ratio(OVER.join(parts))) is not None:
            return ratio
        raise BadInput(
            f"{option}: {name.strip()!r} is not a ratio; write two metrics of one unit, latency.p99/hiccup.p99"
        )
    wanted = re.sub(r"p99\.(9+)$", r"p99_\1", name.strip().lower())
    made = made_by(figures or {})
    if wanted in METRICS or wanted in made:
        return named(wanted)
    known = f"there are {', '.join([*names(), *made])}"
    raise BadInput(f"{option}: no metric {name.strip()!r}; {instead(wanted, [*METRICS, *made], known)}")


def names() -> list[str]:
    """All metrics in short: "latency.{mean,p50,...}, ..., lost, ..."."""
    statistics: dict[str, list[str]] = {}
    for name in METRICS:
        figure, _, statistic = name.partition(".")
        statistics.setdefault(figure, []).append(statistic)
    return [figure if of == [""] else f"{figure}.{{{','.join(of)}}}" for figure, of in statistics.items()]


def chosen(
    words: Sequence[str] | None, option: str = "--metric", figures: Mapping[str, str] | None = None
) -> tuple[Metric, ...]:
    """The metrics with these names, or the default ones and those of the workload's kind. Raises BadInput."""
    if not words:
        own = [
            name
            for name, kind in (figures or {}).items()
            if kind == VALUE and (name not in OWN_FIGURES or OWN_FIGURES[name].compared)
        ]
        return tuple(map(named, (*own, *DEFAULT)))
    found = [parse(name, option, figures) for word in words for name in word.split(",")]
    return tuple({metric.name: metric for metric in found}.values())


# -- criteria --------------------------------------------------------------------------------------------------------

_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
    "==": operator.eq,
}
_CRITERION = re.compile(
    r"\s*([A-Za-z][A-Za-z0-9_./]*)\s*(<=|>=|==|<|>|=|!=)\s*([0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?)\s*(\S*)\s*"
)


@dataclass(frozen=True)
class Criterion:
    """A bound that a metric of each trial must keep for the trial to be a success."""

    text: str
    metric: Metric
    comparison: str
    bound: float  # in the metric's unit

    def evaluate(self, trial: Trial) -> Judged:
        """Whether a trial keeps the bound, and the measured value in words."""
        reading = self.metric.read(trial)
        wanted = f"{self.metric.words} {self.comparison} {self.metric.format(self.bound)}"
        if reading.value is None:
            return Judged(criterion=self.text, met=None, words=f"{wanted} cannot be judged: {reading.reason}")
        met = _OPERATORS[self.comparison](reading.value, self.bound)
        value = self.metric.format(reading.value)
        if not met and value == self.metric.format(self.bound):  # rounded to the same figure
            value = f"{reading.value:.12g}{f' {self.metric.unit}' if self.metric.unit else ''}"
        return Judged(criterion=self.text, met=met, words=f"{wanted}: {'met' if met else 'not met'} with {value}")


def parse_criterion(
    text: str,
    where: str = "--success",
    figures: Mapping[str, str] | None = None,
    observers: Collection[str] | None = None,
) -> Criterion:
    """Parses "latency.p99 <= 5ms", "lost == 0", "late_share < 1 %". `observers` are those of the trials that it is for,
    if known.

    Raises BadInput, which names `where`.
    """
    example = "write it like 'latency.p99 <= 5ms' or 'lost == 0'"
    match = _CRITERION.fullmatch(text)
    if match is None:
        raise BadInput(f"{where}: {text.strip()!r} is not a criterion; {example}")
    name, sign, number, unit = match.groups()
    metric = parse(name, where, figures)
    for missing in sorted(metric.observers.difference(observers or ())) if observers is not None else ():
        raise BadInput(
            f"{where}: {metric.name} is recorded by the observer {missing}, which must be on in every trial; add "
            f"--observer {missing}"
        )
    if sign in ("=", "!="):
        raise BadInput(f"{where}: {text.strip()!r} has {sign}; use one of {' '.join(_OPERATORS)}")
    bound = bound_of(metric, number, unit, f"{where}: {text.strip()!r}", f"{metric.name} {sign}", where)
    return Criterion(f"{metric.name} {sign} {number}{unit}", metric, sign, bound)


def bound_of(metric: Metric, number: str, unit: str, said: str, before: str, where: str) -> float:
    """A number with its unit, in the unit of the metric. `said` is the whole as written, `before` the part before the
    number. Raises BadInput."""
    value, units = float(number), metric.quantity.units
    if unit and unit not in units:
        what = f"use one of {', '.join(units)}" if units else "it is a plain number"
        raise BadInput(f"{where}: {unit!r} is not a unit of {metric.name}; {what}")
    # A bare number is ambiguous if the name does not contain the unit.
    is_share = metric.unit == PERCENT and metric.compared == DIFFERENCE
    if not unit and value and (metric.unit == NS or is_share):
        right = f"{number}ms" if metric.unit == NS else f"{number} %"
        raise BadInput(f"{said} has no unit; write {before} {right}, or the intended unit")
    bound = value * units[unit] if unit else value
    if not math.isfinite(bound):
        raise BadInput(f"{where}: {number} is too large")
    return bound
