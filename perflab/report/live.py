"""Progress of a running trial: one line on a terminal that is rewritten, nothing anywhere else."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

from perflab.experiment.trial import LiveProgress, TrialPlan
from perflab.statistics import histogram as hg
from perflab.units import NS_PER_S, format_count, format_time

Report = Callable[[LiveProgress], None]


@contextlib.contextmanager
def silent(plan: TrialPlan, trials: int) -> Iterator[Report]:
    """Shows nothing."""
    del plan, trials
    yield lambda progress: None


@contextlib.contextmanager
def on_terminal(plan: TrialPlan, trials: int) -> Iterator[Report]:
    """Shows the state of the trial in the last line of the terminal (stderr)."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    terminal = Console(file=sys.stderr, highlight=False)
    prefix = f"[{plan.order}/{trials}] {plan.variant.words}: " if trials > 1 else f"{plan.variant.words}: "
    total_s = plan.settings.duration_ns / NS_PER_S
    line, pace = LiveLine(prefix, total_s), Pace()
    # Refreshed by progress only: a refreshing thread would run beside the measurement.
    with Live(console=terminal, auto_refresh=False, transient=True) as live:

        def report(progress: LiveProgress) -> None:
            text = line.text(progress) if pace.due(progress.phase) else None
            if text is not None:
                live.update(Text(text, no_wrap=True, overflow="ellipsis"), refresh=True)

        yield report


class Pace:
    """Lets a phase's first progress through, and then no more than one per interval: merging histograms costs time."""

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
    """The text of the progress line; keeps what the rate is computed from."""

    def __init__(self, prefix: str, total_s: float) -> None:
        self._prefix = prefix
        self._total_s = total_s
        self._base = (0.0, 0)
        self._rate: float | None = None
        self._last: str | None = None

    def text(self, progress: LiveProgress) -> str | None:
        """The line for this state; None where it would not change."""
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
        base_s, base_received = self._base
        if elapsed_s - base_s >= 0.9:
            self._rate = (progress.received - base_received) / (elapsed_s - base_s)
            self._base = (elapsed_s, progress.received)
        parts = [
            f"{min(elapsed_s, self._total_s):.0f}/{self._total_s:.0f} s"
            if progress.phase == "measuring"
            else "draining"
        ]
        if self._rate is not None:
            parts.append(f"{format_count(round(self._rate))}/s received")
        parts.append(self._latency(progress))
        parts.append(f"{format_count(progress.lost)} lost")
        return "  ".join(part for part in parts if part)

    @staticmethod
    def _latency(progress: LiveProgress) -> str:
        try:
            merged = hg.merge(hg.decode(text) for text in progress.histograms)
        except hg.HistogramError:
            return ""
        if not merged.count:
            return ""
        p50, p99 = (format_time(hg.value_at_percentile(merged, p)) for p in (50.0, 99.0))
        return f"latency p50 {p50} p99 {p99} max {format_time(merged.max)}"
