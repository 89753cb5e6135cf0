"""The progress of a run, independent of its display: the present trial, the last ones, the time left."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from perflab.design.settings import BESIDE_S
from perflab.results.outcome import HARNESS_ERROR
from perflab.runs.display import FinishedTrial, LiveProgress, PlannedTrial, RunPlan
from perflab.statistics import histogram as hg
from perflab.units import NS_PER_S, format_count, format_duration, format_time

RECENT = 6


@dataclass
class RunProgress:
    """The state of a run. `clock` in seconds."""

    plan: RunPlan
    clock: Callable[[], float] = time.monotonic
    finished: list[FinishedTrial] = field(default_factory=list)
    current: PlannedTrial | None = None
    _began_s: float = 0.0

    def start(self, order: int) -> PlannedTrial:
        self.current = self.planned_as(order)
        self._began_s = self.clock()
        return self.current

    def planned_as(self, order: int) -> PlannedTrial:
        return next(entry for entry in self.plan.entries if entry.order == order)

    def planned(self, trial: PlannedTrial) -> None:
        """Replaces the planned entry of a trial; an unplanned trial is appended."""
        entries = tuple(trial if entry.order == trial.order else entry for entry in self.plan.entries)
        if trial in entries:
            self.plan = replace(self.plan, entries=entries)
        else:
            self.plan = replace(self.plan, total=self.plan.total + 1, entries=(*entries, trial))

    def finish(self, trial: FinishedTrial) -> None:
        self.finished.append(trial)
        self.current = None

    @property
    def done(self) -> int:
        """Finished trials, beginning with those that a resumed run already had."""
        return self.plan.total - len(self.plan.entries) + len(self.finished)

    @property
    def next(self) -> PlannedTrial | None:
        """The trial after the present one; None if unknown before that has ended."""
        if self.plan.at_most:
            return None
        over = len(self.finished) + (self.current is not None)
        return self.plan.entries[over] if over < len(self.plan.entries) else None

    @property
    def share(self) -> float:
        """Share of the run's trials, including the elapsed planned time of the present one; 0 to 1."""
        done = float(self.done)
        if self.current is not None:
            expected_s = self._lasts_s(self.current) + self._dead_s()
            done += min(1.0, (self.clock() - self._began_s) / expected_s) if expected_s > 0 else 0.0
        return done / self.plan.total if self.plan.total else 1.0

    def left_s(self) -> float:
        """From the plan, and from what finished trials took beyond it, or BESIDE_S before the first."""
        dead_s = self._dead_s()
        waiting = self.plan.entries[len(self.finished) + (self.current is not None) :]
        left = sum(self._lasts_s(entry) + dead_s for entry in waiting)
        if self.current is not None:
            left += max(0.0, self._lasts_s(self.current) + dead_s - (self.clock() - self._began_s))
        return left

    def left_in_words(self) -> str:
        """ "about 2 min left"; for a search "at most"."""
        return f"{self._about} {_roughly(self.left_s())} left"

    def plan_in_words(self) -> str:
        """What will run and for how long, announced beforehand, with the basis of the estimate."""
        if self.plan.adds is None:
            return self._planned_in_words()
        then = f"{self.plan.adds}."
        return f"{self._planned_in_words()} Then {then}" if self.plan.entries else f"Plan: {then}"

    def _planned_in_words(self) -> str:
        plan, trials = self.plan, len(self.plan.entries)
        if not trials:
            return "Plan: nothing left to run."
        left = f"{_counted(trials)} of {plan.total} left" if trials < plan.total else _counted(trials)
        kinds = 0 if plan.at_most else len({(e.label, e.variant) for e in plan.entries})
        of = f" of {kinds} treatments" if 1 < kinds < trials else ""
        head = f"Plan{' (--quick: rough)' if plan.rough else ''}: {'at most ' if plan.at_most else ''}{left}{of}, "
        first = plan.entries[0]
        warmup = f" after {format_duration(first.warmup_s)} of warm-up" if first.warmup_s else ""
        if first.measured_s is None:
            return f"{head}measured{warmup} until it is stopped: Ctrl-C ends it and keeps what was measured."
        each = f"{format_duration(first.measured_s)} measured{'' if trials == 1 else ' in each'}"
        if first.open:
            each = f"each measured until it ends, within {format_duration(first.measured_s)}"
        if all(e.virtual for e in plan.entries):
            return f"{head}{each}{warmup}, in virtual time: as fast as this machine computes it."
        text = f"{head}{each}{warmup}: {self._about} {_roughly(self.left_s())}"
        text += f", with {BESIDE_S:g} s to start and end {'it' if trials == 1 else 'each'}"
        if plan.quiet_limit_s:
            more = f"; on a busy machine up to {format_duration(plan.quiet_limit_s)} more"
            text += more if trials == 1 else f"{more} each"
        return f"{text}."

    @property
    def _about(self) -> str:
        unknown = not self.finished and any(entry.open for entry in self.plan.entries)
        return "at most" if self.plan.at_most or unknown else "about"

    def _lasts_s(self, trial: PlannedTrial) -> float:
        """Its planned time; for one that ends by itself, known once another one has finished."""
        return trial.duration_s if trial.open and not self.finished else trial.lasts_s

    def _dead_s(self) -> float:
        """What a trial takes beyond warm-up and measured part, from trials that were measured to their end."""
        whole = [f for f in self.finished if f.trial.outcome != HARNESS_ERROR] or self.finished
        beside = [f.took_s - self.planned_as(f.trial.order).lasts_s for f in whole if f.took_s is not None]
        return max(0.0, statistics.median(beside)) if beside else BESIDE_S


def _counted(trials: int) -> str:
    return "1 trial" if trials == 1 else f"{trials} trials"


def _roughly(seconds: float) -> str:
    """With the precision of such an estimate: steps of 5 s, of 1 min, of 10 min."""
    if seconds < 57.5:
        return f"{max(5, 5 * math.ceil(seconds / 5 - 0.5))} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{max(1, minutes)} min"
    tens = round(seconds / 600)
    hours, rest = tens // 6, tens % 6 * 10
    return f"{hours} h {rest} min" if rest else f"{hours} h"


class Pace:
    """Passes on a phase's first progress, and then at most one per interval: merging histograms costs time."""

    def __init__(self, interval_s: float = 0.9) -> None:
        self._interval_s = interval_s
        self._phase = ""
        self._last_s = 0.0

    def due(self, phase: str) -> bool:
        now = time.monotonic()
        if phase == self._phase and now - self._last_s < self._interval_s:
            return False
        self._phase, self._last_s = phase, now
        return True


class LiveLine:
    """The state of the present trial, in one line; keeps the data for the rate."""

    def __init__(self, prefix: str, total_s: float | None, *, brief: bool = False) -> None:
        """`total_s`: measured time in all; None: unknown. `brief` is for 70 columns, with the most important figures
        first."""
        self._brief = brief
        self._prefix = prefix
        self._total_s = total_s
        self._base = (0.0, 0)
        self._rate: float | None = None
        self._last: str | None = None

    def text(self, progress: LiveProgress) -> str | None:
        """The line for this state; None if it would not change."""
        text = self._prefix + self._state(progress)
        if text == self._last:
            return None
        self._last = text
        return text

    def _state(self, progress: LiveProgress) -> str:
        if progress.phase not in ("measuring", "draining"):
            return progress.phase + (f", {progress.note}" if progress.note else "")
        elapsed_s = progress.elapsed_ns / NS_PER_S
        if elapsed_s < 0:
            return "warming up"
        if progress.received is None or progress.lost is None:  # its messages are not counted
            return self._spent(elapsed_s) if progress.phase == "measuring" else progress.phase
        base_s, base_received = self._base
        if elapsed_s - base_s >= 0.9:
            self._rate = (progress.received - base_received) / (elapsed_s - base_s)
            self._base = (elapsed_s, progress.received)
        parts = [self._spent(elapsed_s) if progress.phase == "measuring" else "draining"]
        rate = "" if self._rate is None else f"{format_count(round(self._rate))}/s"
        lost = f"{format_count(progress.lost)} lost"
        if self._brief:
            parts += [self._latency(progress), lost, rate]
        else:
            parts += [rate and f"{rate} received", self._latency(progress), lost]
        return "  ".join(part for part in parts if part)

    def _spent(self, elapsed_s: float) -> str:
        if self._total_s is None:
            return f"{elapsed_s:.0f} s"
        return f"{min(elapsed_s, self._total_s):.0f}/{self._total_s:.0f} s"

    def _latency(self, progress: LiveProgress) -> str:
        try:
            merged = hg.merge(hg.decode(text) for text in progress.histograms)
        except hg.HistogramError:
            return ""
        if not merged.count:
            return ""
        p50, p99 = map(format_time, quantiles(merged))
        if self._brief:
            return f"p50 {p50}  p99 {p99}"
        return f"latency p50 {p50} p99 {p99} max {format_time(merged.max)}"


def quantiles(counted: hg.Histogram) -> tuple[int | None, int | None]:
    """p50 and p99, never above the maximum."""
    found = [hg.value_at_percentile(counted, p) for p in (50.0, 99.0)]
    p50, p99 = (v if v is None or counted.max is None else min(v, counted.max) for v in found)
    return p50, p99
