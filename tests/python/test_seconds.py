"""`--progress seconds`: a line for each second of a trial."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

from perflab.report import live, seconds
from perflab.report.seconds import Seconds, Table
from perflab.runs.display import LiveProgress, PlannedTrial, RunPlan
from perflab.statistics import histogram as hg

MS = 1_000_000
SECOND = 1_000_000_000


def told(at_s: float, latencies: list[int], phase: str = "measuring", **more: Any) -> LiveProgress:
    """Two processes; the second one receives all, and what it tells is cumulative."""
    n = len(latencies)
    texts = (hg.encode(hg.empty()), hg.encode(hg.from_values(latencies)))
    at_ns = round(at_s * SECOND)
    counts: dict[str, Any] = {"lost": 0, "published": n, "received_bytes": 1000 * n, "complete_ns": at_ns}
    counts |= {"histograms": texts, "responses": texts}
    return LiveProgress(phase, at_ns, n, n, **(counts | more))


def test_a_second_is_what_came_since_the_one_before() -> None:
    cut = Seconds()
    first = cut.next(told(0.98, [1 * MS, 3 * MS]))
    assert first is not None
    assert (first.sent, first.received, first.received_bytes, first.latency.count) == (2, 2, 2000, 2)
    assert hg.mean(first.latency) == pytest.approx(2 * MS, rel=1e-3)
    second = cut.next(told(1.98, [1 * MS, 3 * MS, 10 * MS], lost=1))
    assert second is not None
    assert (second.sent, second.lost, second.lost_percent, second.latency.count) == (1, 1, 50.0, 1)
    assert second.per_s(second.received) == pytest.approx(1.0)
    assert second.latency.min == pytest.approx(10 * MS, rel=1e-3)


def test_a_second_is_over_when_all_processes_have_told_theirs() -> None:
    cut = Seconds()
    assert cut.next(told(1.0, [MS], complete_ns=0)) is None  # one has not said anything
    assert cut.next(told(1.0, [MS])) is not None
    assert cut.next(told(2.0, [MS, MS], complete_ns=SECOND)) is None  # one has reported its 2nd second
    assert cut.next(told(2.0, [MS, MS])) is not None


def test_neither_warm_up_nor_drain_has_seconds() -> None:
    cut = Seconds()
    assert cut.next(told(-0.5, [])) is None
    assert cut.next(told(1.0, [MS], phase="draining")) is None


def test_the_variance_is_that_of_the_values_within_the_precision_of_a_histogram() -> None:
    values = np.random.default_rng(1).lognormal(11, 0.5, 5000).astype(int).tolist()
    second = Seconds().next(told(1.0, values))
    assert second is not None
    (column,) = (c for c in seconds.COLUMNS if c.name == "variance")
    assert column.cell(second).value == pytest.approx(np.var(values), rel=2e-3)


def test_where_nothing_was_received_there_is_no_latency() -> None:
    second = Seconds().next(told(1.0, []))
    assert second is not None
    assert (second.lost_percent, second.latency.min) == (None, None)
    assert Table().line(second).split() == ["1", "0", "0", "0", "–", "0"] + ["–"] * 9


@pytest.mark.parametrize("width", [60, 80, 100, None])
def test_columns_stand_below_each_other_and_no_line_is_longer_than_the_terminal(width: int | None) -> None:
    table = Table(width)
    second = Seconds().next(told(1.0, [MS] * 1000))
    assert second is not None
    lines = [table.heading()[1], table.line(second)]
    assert len({len(line) for line in lines}) == 1
    assert all(len(line) <= (width or 1000) for line in [*table.heading(), *lines])
    assert {"s", "recv/s", "lost"} <= set(lines[0].split())


def test_the_groups_stand_above_their_columns() -> None:
    groups, names = Table().heading()
    assert groups.index("latency") + len("latency") == names.index("min") + len("min")
    assert groups.index("response") + len("response") == names.index("p50", names.index("max")) + len("p50")


def test_a_histogram_that_has_lost_values_is_no_later_one() -> None:
    with pytest.raises(hg.HistogramError):
        hg.since(hg.from_values([MS]), hg.from_values([MS, 2 * MS]))


def test_a_process_that_drains_while_others_still_send_tells_no_times_and_ends_no_run() -> None:
    cut = Seconds()
    assert cut.next(told(1.0, [MS, MS])) is not None
    assert cut.next(told(2.0, [MS, MS, MS], histograms=(), responses=())) is None
    third = cut.next(told(3.0, [MS, MS, MS]))
    assert third is not None and (third.length_ns, third.latency.count) == (2 * SECOND, 1)


def test_each_trial_has_a_heading_and_its_seconds() -> None:
    out = io.StringIO()
    display = live.seconds(out)
    display.begin(RunPlan(1, (PlannedTrial(1, "baseline", "cyclonedds", 2.0),)))
    display.trial_started(1)
    display.progress(told(1.0, [MS]))
    display.progress(told(2.0, [MS, MS]))
    lines = out.getvalue().splitlines()[1:]
    assert lines[0] == "[1/1] cyclonedds  baseline"
    assert [line.split()[0] for line in lines[1:]] == ["latency", "s", "1", "2"]


def test_what_is_not_told_of_the_payload_is_no_rate_of_nothing() -> None:
    second = Seconds().next(told(1.0, [MS] * 10, received_bytes=None))
    assert second is not None
    assert Table().line(second).split()[:6] == ["1", "10", "10", "0", "0", "–"]
