"""Summaries of experiments with known effects, as their files have them, for tests of what is said about them."""

from __future__ import annotations

import functools
import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from perflab import models
from perflab.results import summary as summaries
from perflab.results.comparison import ALPHA, MARGIN
from perflab.results.summary import Summary
from perflab.results.trial import Result, Trial
from perflab.runs import collect
from perflab.statistics import findings
from perflab.statistics.metrics import chosen

Json = dict[str, Any]


@dataclass(frozen=True)
class Effect:
    """What a treatment does to every trial: factors of its times and CPU use, and messages lost in each."""

    latency: float = 1.0
    cpu: float = 1.0
    lost: int = 0


@dataclass(frozen=True)
class Made:
    """An experiment: every block has each treatment once, and a baseline again after each disturbed one."""

    treatments: Mapping[str, Effect] = field(default_factory=dict)
    variants: Mapping[str, Effect] = field(default_factory=lambda: {"cyclonedds": Effect()})
    blocks: int = 8
    spread: float = 0.02  # standard deviation of the logarithm of a trial's figures
    drift: float = 0.0  # that of a block's
    carry_over: float = 1.0  # factor of a baseline right after a disturbance
    control: Effect | None = None  # what taking the observers away does
    observers: Sequence[str] = ()
    factors: Mapping[str, Mapping[Any, Effect]] = field(default_factory=dict)
    messages: int = 2000
    seed: int = 1
    runtime_seed: int | None = None
    condition_parameters: Mapping[str, Any] = field(default_factory=dict)

    def summary(self, run: str = "made") -> Json:
        generator = random.Random(self.seed)
        results: list[Json] = []
        order = 0
        levels = [(path, level, e) for path, given in self.factors.items() for level, e in given.items()]
        for middleware, of_variant in self.variants.items():
            for path, level, of_level in levels or [("", None, Effect())]:
                place = _together(of_variant, of_level)
                factors = {path: level} if path else {}
                drifts = [math.exp(generator.gauss(0, self.drift)) if self.drift else 1.0 for _ in range(self.blocks)]

                def trials(
                    effect: Effect, after: str | None = None, drifts: Sequence[float] = drifts, place: Effect = place
                ) -> list[Json]:
                    nonlocal order
                    made = []
                    for block in range(1, self.blocks + 1):
                        order += 1
                        factor = drifts[block - 1] * (self.carry_over if after else 1.0)
                        whole = _together(place, effect)
                        made.append(trial(order, block, whole, factor, self.spread, self.messages, generator, after))
                    return made

                baseline = trials(Effect())
                disturbed = {}
                for name, effect in self.treatments.items():
                    disturbed[name] = trials(effect)
                    baseline += trials(Effect(), after=name)
                key = {"middleware": middleware, "factors": factors, "observers": list(self.observers)}
                results.append(result(baseline, **key))
                if self.control is not None:
                    control = {**key, "observers": [], "purpose": "control"}
                    results.append(result(trials(self.control), **control))
                for name, made in disturbed.items():
                    parameters = {name: self.condition_parameters.get(name, {})}
                    conditions = {"conditions": name.split(" ")[0].split("+"), "condition_parameters": parameters}
                    results.append(result(made, **key, **conditions, treatment=name))
        return {"schema": 1, "run": run, "valid": True, "results": results}


def _together(one: Effect, other: Effect) -> Effect:
    return Effect(one.latency * other.latency, one.cpu * other.cpu, one.lost + other.lost)


def trial(
    number: int,
    block: int = 1,
    effect: Effect | None = None,
    factor: float = 1.0,
    spread: float = 0.02,
    messages: int = 2000,
    generator: random.Random | None = None,
    after: str | None = None,
    **changes: Any,
) -> Json:
    """One entry of trials_detail."""
    effect, generator = effect or Effect(), generator or random.Random(number)

    def scattered(value: float) -> float:
        return value * factor * math.exp(generator.gauss(0, spread))

    def distribution(scale: float) -> Json:
        p50 = round(scattered(100_000 * scale * effect.latency))
        p99 = round(scattered(500_000 * scale * effect.latency))
        return {
            "count": messages,
            "min": p50 // 2,
            "mean": p50 * 1.1,
            "p50": p50,
            "p90": (p50 + p99) // 2,
            "p99": p99,
            "p99_9": p99 * 2,
            "p99_99": p99 * 3,
            "max": round(scattered(2_000_000 * scale * effect.latency)),
            "max_at_s": 1.0,
            "saturated": 0,
            "negative": 0,
        }

    lost = effect.lost + (generator.randrange(3) if effect.lost else 0)
    totals = {
        "sent": messages + lost,
        "received": messages,
        "on_time": messages,
        "late": 0,
        "too_late": 0,
        "lost": {"pre_match": 0, "gap": lost, "tail": 0},
        "reordered": 0,
        "duplicate": 0,
        "beyond_window": 0,
        "published": messages + lost,
        "not_sent": 0,
        "write_errors": 0,
        "latency_ns": distribution(1.0),
        "response_ns": distribution(1.8),
        "publish_delay_ns": None,
        "publish_call_ns": None,
        "dispatch_ns": None,
        "work_ns": None,
    }
    cpu = scattered(20.0 * effect.cpu) / factor
    return {
        "trial": number,
        "order": number,
        "block": block,
        "purpose": "measured",
        "after": after,
        "measured": True,
        "outcome": "success",
        "reason": None,
        "drain": "rest",
        "measured_s": 2.0,
        "discovery_ns": {"participants": None, "endpoints": None},
        "complete": True,
        "totals": totals,
        "resources": {"cpu_percent_mean": cpu, "rss_kb_max": 7000, "processes": []},
        "services": [],
        "observed_ns": {},
        "allocations": None,
        "criteria": [],
        "evidence": {},
        **changes,
    }


def result(trials: list[Json], **changes: Any) -> Json:
    outcomes = {o: sum(t["outcome"] == o for t in trials) for o in ("success", "failed", "invalid", "harness_error")}
    return {
        "workload": "made",
        "middleware": "cyclonedds",
        "executor": None,
        "ipc": "off",
        "pass_by": None,
        "conditions": [],
        "treatment": "baseline",
        "condition_parameters": {},
        "factors": {},
        "observers": [],
        "purpose": "measured",
        "trials": len(trials),
        "outcomes": outcomes,
        "duration_s": 2.0,
        "coverage": {"trials_merged": len(trials), "complete": True},
        "totals": trials[0]["totals"] if trials else {},
        "trials_detail": trials,
        "intervals": {},
        "services": [],
        "edges": [],
        "resources": trials[0]["resources"] if trials else {},
        "threads": None,
        "passing": None,
        **changes,
    }


def read_results(results: Sequence[Json]) -> tuple[Result, ...]:
    """The records of such results."""
    return tuple(models.read(Result, made) for made in results)


def read_trial(made: Json) -> Trial:
    return models.read(Trial, made)


def with_findings(summary: Json) -> Summary:
    """The summary with its findings. Those of many trials take seconds, so equal ones are looked at once."""
    return _with_findings(json.dumps(summary))


@functools.cache
def _with_findings(document: str) -> Summary:
    summary = summaries.read(json.loads(document))
    made = collect.with_findings(summary, chosen(None), alpha=ALPHA, margin=MARGIN, seed=0)
    return replace(made, findings=made.findings or findings.find(made.results))  # of a single trial too


def write_run(path: Path, summary: Summary | Json, **manifest: Any) -> Path:
    """A run directory that holds this summary; no trial is in it."""
    document = {
        "schema": 1,
        "run": path.name,
        "name": "made",
        "settings": {"seed": 1, "network": "lo"},
        "workload": {"kind": "topology", "name": "made", "graph": {}, "edges": [], "services": []},
        "middlewares": [],
        "trials": [],
        "preflight": [],
        "host": {"cpu_model": "Test CPU", "cpus_online": "0-3"},
        **manifest,
    }
    path.mkdir(parents=True)
    (path / "manifest.json").write_text(json.dumps(document))
    (path / "summary.json").write_text(json.dumps({**models.as_json(summary), "run": path.name}))
    return path
