"""The search for a breaking point with a known truth: the coverage of its interval, and its cost.

It is compared with bisection with 20 trials per point, which uses the final interval width of the search: it tries both
ends, and halves until its bracket is as narrow. That bracket is often wrong, so there is a second bisection: with as
many trials per point as its bracket needs to include the true value in 95 %. Three parts:

* given curves: steps, logistic, Weibull, Gumbel, normal, straight lines, with trials that miss for no reason,
thresholds anywhere in the range; then thresholds outside, and non-monotone shares;
* systems on the `virtual` runtime whose threshold follows from their parameters: outcomes of real trials of
perflab-node by level and seed, from which searches draw;
* the same systems, with every trial of a search run on demand.

    python benchmarks/breaking_point.py [--searches 200] [--drawn 300] [--live 10] [--seeds 40] [--jobs 2] [--only TEXT]

The limits: no scenario covers significantly less than 95 % (binomial, 1 % over all scenarios), except those marked as
outside of the method's assumptions; and steps, and virtual systems whose p falls from 0.95 to 0.05 within a tenth of
the range, take at most a third of the trials of bisection with 20 per point. For all others the ratios to both
bisections are printed.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from lab import NATIVE, finish, load_note, median
from scipy import optimize, stats

from perflab.results.curve import Found
from perflab.statistics.breaking_point import Aim, Search, Space

PER_POINT = 20
PER_POINT_TRIED = (10, 20, 30, 45, 70, 100, 150, 220, 330, 500, 750, 1100)  # by the bisection with correct coverage
BISECTIONS = 400
LIMIT = 1 / 3
CONFIDENCE = 0.95
GRID = 120  # steps of a search with the default precision
PERCENT = Space(0.0, 100.0)

Curve = Callable[[float], float]  # P(met) at a place of the scale


# -- given curves; `t` is where they fall to `share`


def step(t: float, lapse: float = 0.0, guess: float = 0.0) -> Curve:
    return lambda u: 1 - lapse if u < t else guess


def logistic(t: float, share: float, spread: float, lapse: float = 0.0) -> Curve:
    z = math.log((1 - lapse) / share - 1)
    return lambda u: (1 - lapse) / (1 + math.exp(min(700.0, (u - t) / spread + z)))


def weibull(t: float, share: float, k: float, lapse: float = 0.0) -> Curve:
    scale = t / (-math.log(share / (1 - lapse))) ** (1 / k)
    return lambda u: (1 - lapse) * math.exp(-((u / scale) ** k))


def gumbel(t: float, share: float, spread: float, lapse: float = 0.0) -> Curve:
    """Sharp at first, with a long tail."""
    z = -math.log(-math.log1p(-share / (1 - lapse)))
    return lambda u: -(1 - lapse) * math.expm1(-math.exp(min(700.0, -((u - t) / spread + z))))


def normal(t: float, share: float, spread: float, lapse: float = 0.0) -> Curve:
    z = float(stats.norm.isf(share / (1 - lapse)))
    return lambda u: (1 - lapse) * 0.5 * math.erfc(((u - t) / spread + z) / math.sqrt(2))


def straight(t: float, share: float, width: float, lapse: float = 0.0) -> Curve:
    start = t - (1 - share / (1 - lapse)) * width
    return lambda u: (1 - lapse) * min(1.0, max(0.0, 1 - (u - start) / width))


def plateau(t: float, share: float) -> Curve:
    """Slightly above the share from 0.35 below the threshold on: no curve of the model can have this."""
    return lambda u: 0.995 if u < t - 0.35 else 0.3 + 0.7 * share if u < t else 0.0


@dataclass(frozen=True)
class Scenario:
    name: str
    curve: Callable[[float, float], Curve]  # of threshold and share
    share: float
    space: Space = PERCENT
    thresholds: tuple[float, float] = (0.02, 0.98)
    precision: float = 0.1
    counted: bool = True  # for the limit; not if the method's assumptions are violated on purpose

    @property
    def steep(self) -> bool:
        """A step within the range: at most a third of the trials of bisection is required."""
        return "step" in self.name and self.thresholds[0] >= 0 and self.thresholds[1] <= 1


def scenarios() -> list[Scenario]:
    kinds: list[tuple[str, Callable[[float, float], Curve]]] = [
        ("step", lambda t, s: step(t)),
        ("step, 2 % lapses", lambda t, s: step(t, min(0.02, (1 - s) / 2))),
        ("step, 5 % lapses", lambda t, s: step(t, min(0.05, (1 - s) / 2))),
        ("step to 20 %", lambda t, s: step(t, 0.01, 0.2)),
        ("logistic 0.01", lambda t, s: logistic(t, s, 0.01)),
        ("logistic 0.03, 2 % lapses", lambda t, s: logistic(t, s, 0.03, min(0.02, (1 - s) / 2))),
        ("logistic 0.1", lambda t, s: logistic(t, s, 0.1)),
        ("logistic 0.2", lambda t, s: logistic(t, s, 0.2)),
        ("Weibull 2", lambda t, s: weibull(t, s, 2.0)),
        ("Weibull 8, 2 % lapses", lambda t, s: weibull(t, s, 8.0, min(0.02, (1 - s) / 2))),
        ("Gumbel 0.03", lambda t, s: gumbel(t, s, 0.03)),
        ("normal 0.03", lambda t, s: normal(t, s, 0.03)),
        ("straight 0.3", lambda t, s: straight(t, s, 0.3)),
    ]
    made = [Scenario(name, curve, share) for share in (0.5, 0.9, 0.95) for name, curve in kinds]
    made += [Scenario(name, curve, 0.8) for name, curve in (kinds[1], kinds[5], kinds[8])]
    step2 = kinds[1][1]
    made += [
        Scenario("log scale, step", step2, 0.9, Space(100, 3000, "log")),
        Scenario("log scale, logistic 0.03", kinds[5][1], 0.5, Space(100, 3000, "log")),
        Scenario("integers 0..100", step2, 0.5, Space(0, 100, integer=True)),
        Scenario("integers 0..100", step2, 0.9, Space(0, 100, integer=True)),
        Scenario("integers 1..16", step2, 0.5, Space(1, 16, integer=True)),
        Scenario("integers 1..16, logistic 0.03", kinds[5][1], 0.9, Space(1, 16, integer=True)),
        Scenario("integers 1..1024, log scale", step2, 0.5, Space(1, 1024, "log", integer=True)),
        Scenario("falls, integers 1..8", step2, 0.9, Space(1, 8, integer=True, falls=True)),
        Scenario("precision 0.03, step", step2, 0.5, precision=0.03),
        Scenario("precision 0.2, logistic 0.1", kinds[6][1], 0.5, precision=0.2),
        Scenario("precision 0.2, logistic 0.03", kinds[5][1], 0.9, precision=0.2),
        Scenario("near the upper end, step", step2, 0.5, thresholds=(0.93, 0.999)),
        Scenario("near the upper end, step", step2, 0.9, thresholds=(0.93, 0.999)),
        Scenario("near the upper end, logistic 0.03", kinds[5][1], 0.9, thresholds=(0.93, 0.999)),
        Scenario("near the lower end, step", step2, 0.9, thresholds=(0.001, 0.07)),
        Scenario("near the lower end, logistic 0.03", kinds[5][1], 0.5, thresholds=(0.001, 0.07)),
        Scenario("beyond the upper end, step", step2, 0.5, thresholds=(1.001, 1.5)),
        Scenario("beyond the upper end, step", step2, 0.9, thresholds=(1.001, 1.5)),
        Scenario("beyond the upper end, logistic 0.03", kinds[5][1], 0.9, thresholds=(1.001, 1.5)),
        Scenario("below the lower end, step", step2, 0.9, thresholds=(-0.5, -0.001)),
        Scenario("below the lower end, logistic 0.03", kinds[5][1], 0.5, thresholds=(-0.5, -0.001)),
        Scenario("plateau", plateau, 0.9, thresholds=(0.4, 0.9), counted=False),
    ]
    return made


# -- one search, and bisection for comparison


@dataclass(frozen=True)
class Outcome:
    state: str
    right: bool  # the interval covers, or the state is true
    trials: int
    width: float | None  # of the interval, as a part of the scale
    bisection_trials: int | None
    bisection_right: bool | None
    not_monotone: bool
    longest_s: float  # CPU time of one next()


def searched(space: Space, aim: Aim, seed: int, trial: Callable[[float], bool]) -> tuple[Found, float]:
    search, longest = Search(space, aim, seed), 0.0
    while True:
        began = time.thread_time()
        level = search.next()
        longest = max(longest, time.thread_time() - began)
        if level is None:
            return search.result(), longest
        search.add(level, trial(level))


def bisected(trial: Callable[[float], bool], share: float, width: float) -> tuple[int, float, float]:
    """Trials, and the bracket, as places: halved depending on whether the sample's success rate reaches the share."""

    def holds(place: float) -> bool:
        return sum(trial(place) for _ in range(PER_POINT)) >= share * PER_POINT

    points, low, high = halved(holds, width)
    return PER_POINT * points, low, high


def halved(holds: Callable[[float], bool], width: float) -> tuple[int, float, float]:
    """Tried points, including both ends, and the bracket."""
    low, high, points = 0.0, 1.0, 2
    if not holds(0.0):
        return points, -math.inf, 0.0
    if holds(1.0):
        return points, 1.0, math.inf
    while high - low > width + 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
        points += 1
    return points, low, high


def covering_bisection(
    problem: Callable[[], tuple[float, Curve]], share: float, width: float, generator: np.random.Generator
) -> tuple[int, int] | None:
    """The fewest trials per point with which 95 % of the brackets are right, and the total number of trials; None: too
    many.

    `problem` draws a threshold and its curve.
    """
    problems = [problem() for _ in range(BISECTIONS)]
    for per_point in PER_POINT_TRIED:
        right, trials = 0, []
        for threshold, curve in problems:

            def holds(place: float, curve: Curve = curve, per_point: int = per_point) -> bool:
                return generator.binomial(per_point, min(max(curve(place), 0.0), 1.0)) >= share * per_point - 1e-9

            points, low, high = halved(holds, width)
            right += low <= threshold <= high
            trials.append(float(points * per_point))
        if right >= CONFIDENCE * BISECTIONS:
            return per_point, round(median(trials))
    return None


def least_sd(curve: Curve, share: float) -> float | None:
    """A trial's contribution to the estimate, by the best possible design: 1 / sqrt(information per trial), as a place.

    That design knows the curve; the estimate knows its kind, and neither threshold nor slope (c-optimal, Elfving 1952).
    A 95 % interval is wider than 3.92 of it by the root of the number of trials, in large samples. Places with an
    outcome that is certain to 1e-5 are left out. None: the curve has a step or a corner.
    """
    places = np.linspace(0.0, 1.0, 401)
    p = np.array([curve(float(place)) for place in places])
    slope = np.gradient(p, places)
    bend = np.abs(np.diff(p, 2)).max()
    if bend > 0.007:  # a step or a corner: the error falls faster than by the root of the number there
        return None
    threshold = float(np.interp(-share, -p, places))
    open_ = p * (1 - p) > 1e-5
    scaled = np.stack([-slope, -(places - threshold) * slope])[:, open_] / np.sqrt((p * (1 - p))[open_])
    design = np.concatenate([scaled, -scaled], axis=1)
    size = np.abs(design).max(axis=1)
    solved = optimize.linprog(
        np.ones(design.shape[1]), A_eq=design / size[:, None], b_eq=np.array([1 / size[0], 0.0]), bounds=(0, None)
    )
    return float(solved.fun) if solved.status == 0 else None


def least_trials(curve: Curve, share: float, width: float) -> float | None:
    """The minimum number of trials for a 95 % interval of that width."""
    sd = least_sd(curve, share)
    return None if sd is None else round((2 * float(stats.norm.isf((1 - CONFIDENCE) / 2)) * sd / width) ** 2, 1)


def judged(found: Found, threshold: float, space: Space) -> bool:
    """Whether the result is true for a threshold, given as a place."""
    if found.state == "not_reached":
        return threshold > 1
    if found.state == "below_low":
        return threshold < 0
    if found.interval is None:
        return found.state == "unsettled"
    bounds = found.interval
    if threshold > 1 or threshold < 0:
        end = "high" if (threshold > 1) != space.falls else "low"
        return bounds.beyond in (end, "both")
    level = space.level(threshold)
    if space.integer:
        level = math.floor(level) if space.falls else math.ceil(level)
    return bounds.low - 1e-9 <= level <= bounds.high + 1e-9


def outcome(
    space: Space, aim: Aim, seed: int, trial: Callable[[float], bool], threshold: float,
    bisection_trial: Callable[[float], bool] | None = None,
) -> Outcome:  # fmt: skip
    """`bisection_trial` takes a place; None: bisection is only counted."""
    found, longest = searched(space, aim, seed, trial)
    width = None
    trials: int | None = None
    right: bool | None = None
    if found.interval is not None:
        width = abs(space.place(found.interval.high) - space.place(found.interval.low))
        if space.integer:
            width = max(width, 1 / (space.steps or 1))
        if bisection_trial is not None:
            trials, low, high = bisected(bisection_trial, aim.share, max(width, 1e-3))
            right = low <= threshold <= high
    return Outcome(
        found.state, judged(found, threshold, space), found.trials, width, trials, right,
        found.state == "not_monotone", longest,
    )  # fmt: skip


def trials_of(
    curve: Curve, space: Space, generator: np.random.Generator
) -> tuple[Callable[[float], bool], Callable[[float], bool]]:
    """Trials at a level, and at a place."""

    def at(place: float) -> bool:
        return bool(generator.random() < curve(place))

    return lambda level: at(space.place(level)), at


def of_scenario(number: int, searches: int) -> dict[str, Any]:
    scenario = scenarios()[number]
    generator = np.random.default_rng([number, 20])
    outcomes = []
    aim = Aim(scenario.share, CONFIDENCE, scenario.precision)
    for seed in range(searches):
        threshold = float(generator.uniform(*scenario.thresholds))
        curve, space = scenario.curve(threshold, scenario.share), scenario.space
        trial, of_bisection = trials_of(curve, space, generator)
        outcomes.append(outcome(space, aim, seed, trial, threshold, of_bisection))
    found = figures(outcomes)

    def problem() -> tuple[float, Curve]:
        threshold = float(generator.uniform(*scenario.thresholds))
        return threshold, scenario.curve(threshold, scenario.share)

    inside = scenario.thresholds[0] >= 0 and scenario.thresholds[1] <= 1
    return {
        "scenario": scenario.name,
        "share": scenario.share,
        **found,
        **(against_covering(found, problem, scenario.share, generator) if inside else {}),
        "counted": scenario.counted,
        "steep": scenario.steep,
    }


def against_covering(
    found: dict[str, Any],
    problem: Callable[[], tuple[float, Curve]],
    share: float,
    generator: np.random.Generator,
) -> dict[str, Any]:
    """The ratio to the bisection with correct coverage, at the median width of the searches."""
    if found["width"] is None:
        return {}
    width = max(found["width"], 1e-3)
    covering = covering_bisection(problem, share, width, generator)
    return {
        "covering_per_point": None if covering is None else covering[0],
        "covering_ratio": None if covering is None else round(found["trials"] / covering[1], 3),
        "least_trials": least_trials(problem()[1], share, width),
    }


def figures(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    states: dict[str, int] = {}
    for one in outcomes:
        states[one.state] = states.get(one.state, 0) + 1
    ratios = [o.trials / o.bisection_trials for o in outcomes if o.bisection_trials]
    bisection = [o.bisection_right for o in outcomes if o.bisection_right is not None]
    widths = [o.width for o in outcomes if o.width is not None]
    right = sum(o.right for o in outcomes)
    return {
        "n": len(outcomes),
        "right": right,
        "coverage": round(right / len(outcomes), 4),
        "trials": median([float(o.trials) for o in outcomes]),
        "width": round(median(widths), 3) if widths else None,
        "ratio": round(median(ratios), 3) if ratios else None,
        "bisection_trials": median([float(o.bisection_trials) for o in outcomes if o.bisection_trials])
        if ratios
        else None,
        "bisection_covers": round(sum(bisection) / len(bisection), 3) if bisection else None,
        "not_monotone": sum(o.not_monotone for o in outcomes),
        "states": states,
        "next_ms_max": round(1e3 * max(o.longest_s for o in outcomes), 1),
    }


# -- non-monotone shares


def rising() -> list[tuple[str, Curve, float]]:
    return [
        ("gap of 15 %", lambda u: 0.0 if 0.3 < u < 0.45 or u > 0.8 else 1.0, 0.5),
        ("gap of 30 %", lambda u: 0.05 if 0.2 < u < 0.5 or u > 0.8 else 0.98, 0.9),
        ("recovers permanently", lambda u: 0.0 if 0.3 < u < 0.6 else 1.0, 0.5),
        ("better and better", lambda u: 0.1 + 0.8 * u, 0.5),
    ]


def of_rising(number: int, searches: int) -> dict[str, Any]:
    name, curve, share = rising()[number]
    generator = np.random.default_rng([number, 21])
    space = Space(0.0, 100.0)
    states: dict[str, int] = {}
    for seed in range(searches):
        found, _ = searched(space, Aim(share), seed, lambda level: bool(generator.random() < curve(space.place(level))))
        states[found.state] = states.get(found.state, 0) + 1
    return {"scenario": name, "share": share, "n": searches, "said": states.get("not_monotone", 0), "states": states}


# -- systems on the virtual runtime


@dataclass(frozen=True)
class System:
    """A graph in virtual time with one factor. `p`: the probability that a trial meets the criterion, by analysis."""

    name: str
    why: str
    space: Space
    share: float
    graph: Callable[[float], dict[str, Any]]
    options: Callable[[float], dict[str, str]]
    met: Callable[[dict[str, Any]], bool]  # of a final checkpoint
    p: Callable[[float], float]
    seconds: float
    random: bool  # whether its trials differ by seed

    @property
    def steep(self) -> bool:
        """p falls from 0.95 to 0.05 within a tenth of the range."""
        places = np.linspace(1e-6, 1 - 1e-6, 2001)
        p = np.array([self.p(self.space.level(float(u))) for u in places])
        return bool(((p < 0.95) & (p > 0.05)).mean() <= 0.1)

    @property
    def threshold(self) -> float:
        """As a place."""
        return float(optimize.brentq(lambda u: self.p(self.space.level(u)) - self.share, 1e-9, 1 - 1e-9, xtol=1e-12))


def pair(period: str, work: str = "0ns") -> dict[str, Any]:
    return {
        "name": "pair",
        "executors": [{"id": 0, "kind": "single_threaded"}, {"id": 1, "kind": "single_threaded"}],
        "nodes": [
            {"name": "sender", "executor": 1, "publishers": [{"topic": "a", "type": "stamped100b", "period": period}]},
            {
                "name": "receiver",
                "subscriptions": [{"topic": "a", "type": "stamped100b"}],
                "reactions": [{"on": "a", "work": work}],
            },
        ],
    }


def saturated(publishers: Iterable[float], work_us: float) -> dict[str, Any]:
    """50 messages/s with 1 ms of work each, and on the same executor readers of other topics, sent at rates in Hz."""
    graph = pair("20ms", "1ms")
    topics = [f"other_{i}" for i, _ in enumerate(publishers)]
    for topic, rate in zip(topics, publishers, strict=True):
        endpoint = {"topic": topic, "type": "stamped100b"}
        graph["nodes"] += [
            {"name": f"from_{topic}", "executor": 1, "publishers": [endpoint | {"period": f"{round(1e9 / rate)}ns"}]},
            {"name": f"to_{topic}", "subscriptions": [endpoint], "reactions": [{"on": topic, "work": f"{work_us}us"}]},
        ]
    return graph


def missing(checkpoint: dict[str, Any]) -> int:
    sent = {(p["node"], p["topic"]): p["sent"] for p in checkpoint["publishers"]}
    return int(sum(sent[e["publisher"], e["topic"]] - e["received"] for e in checkpoint["edges"]))


def late(checkpoint: dict[str, Any]) -> int:
    return int(sum(e["late"] + e["too_late"] for e in checkpoint["edges"]))


def systems() -> list[System]:
    binomial = stats.binom.cdf

    def falls_at(threshold: float) -> Callable[[float], float]:
        return lambda level: 1.0 if level < threshold else 0.0

    loss = System(
        "loss", "500 messages, each lost with the probability of the level; at most 10 may be: binomial",
        Space(0.0, 0.06), 0.5, lambda _: pair("10ms"), lambda x: {"loss": f"{x:.9f}"}, lambda c: missing(c) <= 10,
        lambda x: float(binomial(10, 500, x)), 5.0, True,
    )  # fmt: skip
    jitter = System(
        "jitter", "500 messages, uniform delay of 0 to the level in ms, at most 5 % of them above 5 ms: binomial",
        Space(4.0, 7.0, "log"), 0.5, lambda _: pair("40ms"), lambda x: {"jitter": f"{round(x * 1e6)}ns"},
        lambda c: late(c) <= 25, lambda x: float(binomial(25, 500, max(0.0, 1 - 5 / x))), 20.0, True,
    )  # fmt: skip
    flood = System(
        "flood_rate", "executor with 5 % of work of its own and 500 us per message of the flood: full at 1900 msg/s",
        Space(100.0, 3000.0), 0.9, lambda x: saturated([x], 500), lambda _: {"jitter": "100us"},
        lambda c: missing(c) == 0, falls_at(1900.0), 5.0, False,
    )  # fmt: skip
    publishers = System(
        "flood_publishers", "5 % of its own and 10 % for each publisher of 200 msg/s: 9 fit, 10 do not",
        Space(1.0, 20.0, integer=True), 0.9, lambda x: saturated([200.0] * round(x), 500),
        lambda _: {"jitter": "100us"}, lambda c: missing(c) == 0, falls_at(9.5), 5.0, False,
    )  # fmt: skip
    return [
        loss,
        replace(loss, share=0.9),
        jitter,
        replace(jitter, share=0.9),
        flood,
        publishers,
    ]


def virtual_trial(system: System, level: float, seed: int, folder: Path) -> bool:
    """One trial by perflab-node."""
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        records = Path(scratch) / "records.jsonl"
        graph = resolved(json.dumps(system.graph(level)))
        configuration = {
            "schema": 1, "graph": graph, "process": None, "runtime": "virtual", "executor": None,
            "executor_threads": None, "intra_process": False, "pass_by": None,
            "middleware": {"name": "virtual", "library": None, "domain": 0, "network": "lo",
                           "options": system.options(level)},
            "duration_ns": round(system.seconds * 1e9), "warmup_ns": 0, "sampling_ns": 500_000_000,
            "checkpoint_ns": 5_000_000_000, "discovery_timeout_ns": 30_000_000_000,
            "thresholds": {"late_percent": 100.0, "late_ns": 5_000_000, "too_late_percent": 100.0,
                           "too_late_ns": 50_000_000},
            "seed": seed, "measure": [], "records": str(records),
        }  # fmt: skip
        (Path(scratch) / "config.json").write_text(json.dumps(configuration))
        ours, theirs = socket.socketpair()
        configured, node_path = str(Path(scratch) / "config.json"), str(NATIVE / "perflab-node")
        command = [node_path, "--config", configured, "--control-fd", str(theirs.fileno())]
        with ours, subprocess.Popen(command, pass_fds=[theirs.fileno()], stderr=subprocess.DEVNULL) as node:
            theirs.close()
            ours.settimeout(60)
            converse(ours)
        if node.returncode != 0:
            raise SystemExit(f"perflab-node: exit {node.returncode} at level {level:g} of {system.name}")
        lines = [json.loads(line) for line in records.read_text().splitlines()]
    return system.met(next(line for line in lines if line.get("final")))


@functools.lru_cache(maxsize=256)
def resolved(text: str) -> Any:
    with tempfile.TemporaryDirectory() as scratch:
        written = Path(scratch) / "graph.json"
        written.write_text(text)
        resolve = [str(NATIVE / "perflab-graph"), "resolve", str(written)]
        return json.loads(subprocess.run(resolve, capture_output=True, check=True).stdout)


def converse(channel: socket.socket) -> None:
    """docs/formats.md, section 3: start it when it is ready, stop it when it is at rest."""
    with channel.makefile("r", encoding="utf-8") as lines:
        writers: list[Any] = []
        stopped = False
        for line in lines:
            message = json.loads(line)
            answer: dict[str, Any] | None = None
            if message["type"] == "created":
                writers = message["writers"]
            elif message["type"] == "ready":
                answer = {"type": "start", "at_ns": time.monotonic_ns(), "writers": writers}
            elif message["type"] == "progress" and not message["publishing"] and not stopped:
                answer, stopped = {"type": "stop"}, True
            elif message["type"] in ("done", "error"):
                return
            if answer is not None:
                channel.sendall(json.dumps(answer).encode() + b"\n")


def table_of(system: System, seeds: int, folder: Path) -> tuple[list[float], list[list[bool]]]:
    """Outcomes of real trials by level and seed: at 41 levels, or at all levels of a search if trials are
    deterministic.

    Between the levels of a table, outcomes are drawn from both neighbours. That would make a slope from a step.
    """
    space = system.space
    if space.integer:
        levels = [float(x) for x in range(round(space.low), round(space.high) + 1)]
    elif system.random:
        levels = [space.level(i / 40) for i in range(41)]
    else:
        levels = [space.rounded(space.level(i / GRID), 1 / GRID) for i in range(GRID + 1)]
    numbers = range(1, (seeds if system.random else 1) + 1)
    with ThreadPoolExecutor(8) as pool:  # a trial mostly waits
        jobs = [[pool.submit(virtual_trial, system, level, seed, folder) for seed in numbers] for level in levels]
        return levels, [[job.result() for job in row] for row in jobs]


def of_table(number: int, levels: list[float], table: list[list[bool]], searches: int) -> dict[str, Any]:
    system = systems()[number]
    space = system.space
    places = np.array([space.place(level) for level in levels])
    generator = np.random.default_rng([number, 22])

    def at(place: float) -> bool:
        """A real trial at the level of the table above or below, with a probability that rises with closeness."""
        upper = min(max(int(np.searchsorted(places, place)), 1), len(places) - 1)
        part = (place - places[upper - 1]) / (places[upper] - places[upper - 1])
        if not system.random:
            part = round(part)
        row = table[upper if generator.random() < part else upper - 1]
        return row[int(generator.integers(len(row)))]

    aim = Aim(system.share)
    done = [
        outcome(space, aim, seed, lambda level: at(space.place(level)), system.threshold, at)
        for seed in range(searches)
    ]
    found = figures(done)
    threshold = system.threshold

    def problem() -> tuple[float, Curve]:
        return threshold, lambda place: system.p(space.level(place))

    return {
        "scenario": system.name, "share": system.share, **found,
        **against_covering(found, problem, system.share, generator),
        "real_trials": sum(map(len, table)), "steep": system.steep,
    }  # fmt: skip


def live(system: System, searches: int, folder: Path) -> dict[str, Any]:
    def one(seed: int) -> Outcome:
        order = iter(range(1, 10_000))
        return outcome(
            system.space, Aim(system.share), seed,
            lambda level: virtual_trial(system, level, 100_000 * (seed + 1) + next(order), folder), system.threshold,
        )  # fmt: skip

    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(one, range(searches)))
    return {"scenario": system.name, "share": system.share, **figures(done)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--searches", type=int, default=200, help="per given curve")
    parser.add_argument("--drawn", type=int, default=300, help="per virtual system, from a table of real trials")
    parser.add_argument("--live", type=int, default=10, help="per virtual system, each trial run on demand")
    parser.add_argument("--seeds", type=int, default=40, help="real trials per level of the table")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="curves whose name contains this; several with | between them")
    options = parser.parse_args()
    # The searches run in parallel, so that numpy needs no further threads: OMP_NUM_THREADS=1 makes it faster.
    with ProcessPoolExecutor(options.jobs) as pool:
        chosen = [i for i, s in enumerate(scenarios()) if any(x in s.name for x in options.only.split("|"))]
        given = [pool.submit(of_scenario, i, options.searches) for i in chosen if options.searches]
        risen = [pool.submit(of_rising, i, options.searches) for i in range(len(rising())) if options.searches]
        curves, rises = [g.result() for g in given], [r.result() for r in risen]
        tables: list[dict[str, Any]] = []
        lives: list[dict[str, Any]] = []
        with tempfile.TemporaryDirectory() as scratch:
            made: dict[str, tuple[list[float], list[list[bool]]]] = {}
            for number, system in enumerate(systems()):
                if options.drawn:
                    if system.name not in made:
                        made[system.name] = table_of(system, options.seeds, Path(scratch))
                    tables.append(pool.submit(of_table, number, *made[system.name], options.drawn).result())
                if options.live:
                    lives.append(live(system, options.live, Path(scratch)))
    counted = [c for c in curves if c["counted"]] + tables + lives
    short = [f"{c['scenario']}, {c['share']}" for c in counted if too_few(c, len(counted))]
    ratios = [c["ratio"] for c in curves + tables if c["ratio"] is not None]
    beyond = [c for c in curves + tables if c["ratio"] is not None and c["ratio"] > LIMIT]
    over = [f"{c['scenario']}, {c['share']}" for c in beyond]
    failed = [f"{c['scenario']}, {c['share']}" for c in beyond if c["steep"]]
    ratio = round(median(ratios), 3) if ratios else None
    result: dict[str, object] = {
        "benchmark": "breaking_point",
        "searches": sum(c["n"] for c in curves + tables + lives),
        "coverage": round(sum(c["right"] for c in counted) / max(1, sum(c["n"] for c in counted)), 4),
        "covers_too_little": short,
        "ratio_of_trials": ratio,
        "limit": round(LIMIT, 3),
        "over_the_limit": over,
        "over_though_steep": failed,
        "false_alarms_of_not_monotone": sum(c["not_monotone"] for c in counted),
        "curves": curves,
        "rising": rises,
        "virtual_drawn": tables,
        "virtual_live": lives,
        "machine": load_note(),
    }
    finish(result, not short and not failed)


def too_few(figure: dict[str, Any], family: int) -> bool:
    """Whether so few right answers would occur less than once in a hundred such benchmarks, at 95 % in each."""
    return bool(stats.binom.cdf(figure["right"], figure["n"], CONFIDENCE) < 0.01 / family)


if __name__ == "__main__":
    main()
