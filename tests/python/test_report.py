"""The report fits the terminal: no line is longer, nothing wraps inside a table, what matters most stays."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console
from support import checkpoint, edge, publisher
from test_summary import trial

from perflab.experiment.trial import LiveProgress
from perflab.report import terminal
from perflab.report.live import LiveLine
from perflab.statistics import histogram as hg
from perflab.statistics.accounting import account
from perflab.statistics.summary import TrialData, summarize

MANIFEST = {
    "middlewares": [{"name": "m", "version": "1.2.3"}],
    "preflight": [{"name": "load", "status": "warn", "value": "1.5 on 2 CPUs", "advice": "wait"}],
}


def large(edges: int = 12, namespace: str = "/") -> TrialData:
    records = [
        edge(
            90, 0, 89,
            publisher=f"{namespace}publisher_with_a_long_name_{i}", subscription=f"{namespace}subscription_{i}",
            topic=f"/topic_number_{i}", size_bytes=1000 * i, late=3, too_late=1,
        )
        for i in range(edges)
    ]  # fmt: skip
    publishers = [publisher(100, node=r["publisher"], topic=r["topic"]) for r in records]
    return replace(trial(), accounts=account([checkpoint(publishers, records)]))


def render(width: int, *trials: TrialData, notes: tuple[str, ...] = ()) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, no_color=True, highlight=False)
    terminal.print_summary(console, summarize("run", trials), MANIFEST, notes)
    return out.getvalue()


@pytest.mark.parametrize("width", [60, 72, 80, 100, 132, 160, 240])
def test_no_line_is_longer_than_the_terminal_and_rows_stay_rows(width: int) -> None:
    text = render(width, large())
    assert max(cell_len(line) for line in text.splitlines()) <= width
    assert sum("→" in line for line in text.splitlines()) == 13  # the header and 12 edges


def test_a_wide_terminal_shows_everything() -> None:
    text = render(200, large())
    for word in ("sent", "received", "lost", "late", "too late", "latency", "response", "p99.99", "size", "Hz"):
        assert word in text
    assert "m 1.2.3" in text
    assert "1 080 of 1 200 messages received, 120 lost (120 at the end)" in text


def test_a_narrow_terminal_keeps_what_matters() -> None:
    text = render(80, large())
    header = next(line for line in text.splitlines() if "→" in line)
    assert all(word in header for word in ("received", "lost", "p99"))
    assert "size" not in header


def test_namespaces_stay_visible_where_there_are_any() -> None:
    assert "robot/publisher" in render(200, large(namespace="/robot/"))
    assert "/publisher" not in render(200, large())


def test_a_huge_graph_shows_the_slowest_edges() -> None:
    text = render(160, large(edges=100))
    assert sum("→" in line for line in text.splitlines()) == 61
    assert "… and 40 more with a lower p99" in text


def test_a_failed_trial_shows_its_reason_and_what_is_not_known() -> None:
    accounts = account([checkpoint([publisher(10)], [edge(5, 0, 4)], final=False)])
    text = render(100, replace(trial(outcome="failed"), accounts=accounts, reason="process 'p' was killed"))
    assert "trial 1: process 'p' was killed" in text
    assert "last checkpoints" in text
    assert "5 messages received, at least 0 lost" in text


def test_markup_in_names_is_printed_as_it_is() -> None:
    assert "[bold]w" in render(100, replace(trial(), workload="[bold]w"))
    assert "Note: [red]x" in render(100, trial(), notes=("[red]x",))


def test_the_noise_of_the_machine_is_mentioned() -> None:
    assert "Noise on this machine: load (1.5 on 2 CPUs)" in render(100, trial())


def test_the_live_line() -> None:
    line = LiveLine("m: ", 60.0)
    assert line.text(LiveProgress("discovery", 0, 0, 0, 0, note="3 unmatched")) == "m: discovery, 3 unmatched"
    h: Any = hg.encode(hg.from_values([1000, 2000]))
    line.text(LiveProgress("measuring", 1_000_000_000, 110, 100, 0, (h,)))
    text = line.text(LiveProgress("measuring", 2_000_000_000, 1160, 1154, 2, (h, h)))
    assert text == "m: 2/60 s  1 054/s received  latency p50 1.00 µs p99 2.00 µs max 2.00 µs  2 lost"
    assert line.text(LiveProgress("measuring", 2_000_000_000, 1160, 1154, 2, (h, h))) is None
    assert "latency" not in (line.text(LiveProgress("draining", 3, 1, 1, 0, ("damaged",))) or "")
