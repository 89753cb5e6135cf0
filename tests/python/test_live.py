"""What is shown while a run goes on: how far, what now, what next, time left, the last trials; at any width."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console
from support import SOURCE

from perflab.design.settings import BESIDE_S
from perflab.report import live
from perflab.report.progress import LiveLine, RunProgress
from perflab.results.figure import Distribution
from perflab.results.outcome import FAILED, HARNESS_ERROR, INVALID, SUCCESS, Outcome
from perflab.results.trial import Lost, Totals, Trial
from perflab.runs.display import FinishedTrial, LiveProgress, PlannedTrial, RunPlan
from perflab.statistics import histogram as hg

LABELS = ("baseline", "cpu_load", "message_flood+cpu_pinning", "one_cpu")
VARIANTS = ("cyclonedds, events, ipc on", "fastdds, multi_threaded:2")
TOTALS = Totals(latency_ns=Distribution(p50=45_200, p99=130_000), lost=Lost(pre_match=0, gap=3, tail=0))


def plan(trials: int, had: int = 0) -> RunPlan:
    """Trials of 10 s, the first `had` of which a resumed run has already."""
    entries = (PlannedTrial(n, LABELS[n % 4], VARIANTS[n % 2], 10.0) for n in range(had + 1, trials + 1))
    return RunPlan(trials, tuple(entries))


def finished(order: int, outcome: Outcome, reason: str | None, totals: Totals, took_s: float) -> FinishedTrial:
    return FinishedTrial(
        trial=Trial(trial=order, order=order, outcome=outcome, reason=reason, totals=totals), took_s=took_s
    )


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def run_of(trials: int, over: int, clock: Clock | None = None, took_s: float = 11.5, had: int = 0) -> RunProgress:
    run = RunProgress(plan(trials, had), clock or Clock())
    for order in range(had + 1, had + over + 1):
        run.start(order)
        run.finish(finished(order, SUCCESS, None, TOTALS, took_s))
    return run


def shown(run: RunProgress, width: int = 80, height: int = 24, state: str = "") -> str:
    console = Console(file=io.StringIO(), width=width, height=height, record=True, color_system=None)
    console.print(live.render(run, state, width, height))
    return console.export_text()


def test_the_block_says_what_is_now_and_next_and_how_the_last_ones_went() -> None:
    run = run_of(42, 10)
    run.start(11)
    run.finish(finished(11, INVALID, "cpu_load: 61 % of the promised 80 %", TOTALS, 11.5))
    run.start(12)
    run.finish(finished(12, HARNESS_ERROR, "the disk is full", Totals(), 3.0))
    run.start(13)
    text = shown(run, 120, state="3/10 s  p50 45.2 µs")
    out = [line.rstrip() for line in text.splitlines()]
    assert out[0].endswith("━  12 of 42 trials, about 6 min left")
    assert out[1:5] == [
        "      1 invalid, 1 stopped by a perflab error",
        "now   cpu_load  fastdds, multi_threaded:2  trial 13",
        "      3/10 s  p50 45.2 µs",
        "next  message_flood+cpu_pinning  cyclonedds, events, ipc on  trial 14",
    ]
    assert out[6].split() == ["trial", "treatment", "variant", "outcome", "p50", "p99", "lost"]
    assert out[7].split()[-5:] == ["harness", "error", "–", "–", "–"]
    assert out[8].strip() == "the disk is full"
    assert out[9].split()[-6:] == ["invalid", "45.2", "µs", "130", "µs", "3"]
    assert [line.split()[0] for line in out[11:]] == ["10", "9", "8", "7"]


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 200])
@pytest.mark.parametrize("height", [5, 12, 24, 50])
def test_it_fits_the_terminal(width: int, height: int) -> None:
    run = run_of(42, 9)
    for order, outcome in ((10, FAILED), (11, INVALID), (12, SUCCESS)):
        run.start(order)
        run.finish(finished(order, outcome, None if outcome == SUCCESS else "because " * 30, TOTALS, 11.0))
    run.start(13)
    text = shown(run, width, height, "x" * 300)
    rows = text.splitlines()
    assert max(cell_len(row) for row in rows) <= width
    assert len(rows) <= max(height, 5)
    if width >= 80 and height >= 24:
        assert all(f"\n   {order} " in text or f"\n    {order} " in text for order in range(7, 13))


def test_a_run_of_one_trial_is_one_line() -> None:
    run = RunProgress(plan(1))
    run.start(1)
    assert shown(run, state="3/10 s") == f"{VARIANTS[1]}: 3/10 s\n"


def test_names_are_not_markup() -> None:
    run = RunProgress(RunPlan(2, tuple(PlannedTrial(n, "[bold]l", "[red]v", 1.0) for n in (1, 2))))
    run.start(1)
    run.finish(finished(1, FAILED, "[red]why", Totals(), 1.0))
    run.start(2)
    text = shown(run, state="[x]")
    assert all(word in text for word in ("[bold]l", "[red]v", "[red]why", "[x]"))


# -- time left -------------------------------------------------------------------------------------------------------


def test_until_a_trial_has_ended_each_is_taken_to_need_some_seconds_more() -> None:
    run = RunProgress(plan(3), Clock())
    assert run.left_s() == pytest.approx(3 * (10.0 + BESIDE_S))
    assert run.left_in_words() == "about 35 s left"
    run.start(1)
    run.clock.now += 5.0  # type: ignore[attr-defined]
    assert run.left_in_words() == "about 30 s left"


def test_virtual_time_passes_as_fast_as_it_is_computed() -> None:
    entries = tuple(PlannedTrial(n, "baseline", "virtual", 3600.0, virtual=True) for n in (1, 2, 3))
    run = RunProgress(RunPlan(3, entries), Clock())
    run.start(1)
    run.finish(finished(1, SUCCESS, None, TOTALS, took_s=0.5))
    assert run.left_s() == pytest.approx(2 * 0.5)


def of_plan(trials: int, had: int = 0, **more: Any) -> str:
    return RunProgress(replace(plan(trials, had), **more)).plan_in_words()


def test_the_plan_says_what_runs_and_how_long_it_will_take() -> None:
    assert of_plan(1) == "Plan: 1 trial, 10 s measured: about 10 s, with 2 s to start and end it."
    assert of_plan(42) == (
        "Plan: 42 trials of 4 treatments, 10 s measured in each: about 8 min, with 2 s to start and end each."
    )
    assert of_plan(42, had=40, quiet_limit_s=10.0) == (
        "Plan: 2 trials of 42 left, 10 s measured in each: about 25 s, with 2 s to start and end each; on a busy "
        "machine up to 10 s more each."
    )
    assert of_plan(60, at_most=True) == (
        "Plan: at most 60 trials, 10 s measured in each: at most 12 min, with 2 s to start and end each."
    )
    assert of_plan(3, had=3) == "Plan: nothing left to run."
    warmed = PlannedTrial(1, "baseline", "virtual", 12.0, 2.0, virtual=True)
    assert RunProgress(RunPlan(1, (warmed,), rough=True)).plan_in_words() == (
        "Plan (--quick: rough): 1 trial, 10 s measured after 2 s of warm-up, in virtual time: as fast as this "
        "machine computes it."
    )


def test_a_search_whose_trials_told_nothing_goes_on_beyond_its_plan() -> None:
    run = RunProgress(RunPlan(2, tuple(PlannedTrial(n, "rate", "", 1.0) for n in (1, 2)), at_most=True), Clock())
    for order in (1, 2, 3):
        run.planned(PlannedTrial(order, f"rate={order}", "sim", 1.0))
        assert run.start(order).label == f"rate={order}"
        run.finish(finished(order, INVALID, None, Totals(), 1.0))
    assert (run.done, run.plan.total) == (3, 3)
    assert run.next is None


def test_time_left_counts_what_trials_really_take() -> None:
    clock = Clock()
    run = run_of(10, 4, clock, took_s=15.0)
    assert run.left_s() == pytest.approx(6 * 15.0)
    run.start(5)
    clock.now += 12.0
    assert run.left_s() == pytest.approx(5 * 15.0 + 3.0)
    clock.now += 100.0  # it takes longer than the others: what comes after it still takes its time
    assert run.left_s() == pytest.approx(5 * 15.0)
    assert run.left_in_words() == "about 1 min left"


def test_a_trial_that_broke_off_is_no_measure_of_the_others() -> None:
    run = run_of(10, 1, took_s=15.0)
    run.start(2)
    run.finish(finished(2, HARNESS_ERROR, "it did not start", Totals(), 1.0))
    assert run.left_s() == pytest.approx(8 * 15.0)


def test_a_resumed_run_counts_what_it_had() -> None:
    run = run_of(10, 1, had=4, took_s=12.0)
    assert run.done == 5
    assert run.left_s() == pytest.approx(5 * 12.0)
    assert run.next is not None
    assert run.next.order == 6
    assert run.share == 0.5


def test_the_bar_moves_within_a_trial_and_never_beyond_it() -> None:
    clock = Clock()
    run = run_of(4, 1, clock, took_s=20.0)
    run.start(2)
    clock.now += 10.0
    assert run.share == pytest.approx((1 + 0.5) / 4)
    clock.now += 1000.0
    assert run.share == pytest.approx(2 / 4)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (2, "5 s"), (7, "5 s"), (33, "35 s"), (57, "55 s"), (58, "1 min"), (119, "2 min"),
        (3500, "58 min"), (3600, "1 h"), (5000, "1 h 20 min"),
    ],
)  # fmt: skip
def test_time_is_told_no_more_exactly_than_it_is_known(seconds: float, words: str) -> None:
    run = RunProgress(RunPlan(1, (PlannedTrial(1, "", "", seconds - BESIDE_S),)), Clock())
    assert run.left_in_words() == f"about {words} left"


# -- the displays ----------------------------------------------------------------------------------------------------


def tell(display: live.Display) -> None:
    histogram: Any = hg.encode(hg.from_values([1000, 2000]))
    display.begin(plan(3, had=1))
    display.trial_started(2)
    display.progress(LiveProgress("measuring", 2_000_000_000, 100, 90, 1, (histogram,)))
    display.note("[bold]something")
    display.trial_finished(finished(2, SUCCESS, None, TOTALS, 11.0))
    display.trial_started(3)
    display.trial_finished(finished(3, INVALID, "no load", Totals(), 11.0))
    display.close()


def test_lines_are_the_plan_and_one_per_finished_trial() -> None:
    out = io.StringIO()
    tell(live.lines(out))
    assert out.getvalue().splitlines() == [
        of_plan(3, had=1),
        "Note: [bold]something",
        f"[2/3] {VARIANTS[0]}  {LABELS[2]}  p50 45.2 µs  p99 130 µs  3 lost  success",
        f"[3/3] {VARIANTS[1]}  {LABELS[3]}  p50 –  p99 –  – lost  invalid: no load",
    ]


def test_of_a_long_trial_there_is_a_line_per_phase() -> None:
    out = io.StringIO()
    display = live.lines(out)
    display.begin(RunPlan(1, (PlannedTrial(1, "baseline", "cyclonedds", 605.0, warmup_s=5.0),)))
    display.trial_started(1)
    counted = LiveProgress("measuring", 2_000_000_000, 100, 90, 1)
    for progress in (LiveProgress("discovery", 0, 0, 0, 0, note="3 unmatched"), counted, counted):
        display.progress(progress)
    display.progress(replace(counted, phase="draining"))
    assert out.getvalue().splitlines()[1:] == [
        "[1/1] cyclonedds  baseline  discovery, 3 unmatched",
        "[1/1] cyclonedds  baseline  2/600 s  45/s received  1 lost",
        "[1/1] cyclonedds  baseline  draining  45/s received  1 lost",
    ]


def test_silence(capsys: pytest.CaptureFixture[str]) -> None:
    tell(live.silent())
    assert capsys.readouterr() == ("", "")


def test_on_a_terminal_notes_stay_and_the_block_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    out = io.StringIO()
    tell(live.on_terminal(Console(file=out, force_terminal=True, width=80, height=24, color_system=None)))
    text = out.getvalue()
    assert "Note: [bold]something\n" in text
    assert text.startswith("Plan: 2 trials of 3 left")
    assert "2/10 s  p50 1.00 µs  p99 2.00 µs  1 lost  45/s" in text
    assert text.endswith("\x1b[2K")  # the last thing is that the block's lines are erased
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1


def test_a_terminal_that_cannot_move_its_cursor_gets_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    tell(live.on_terminal(Console(file=io.StringIO(), force_terminal=True)))
    assert "[2/3]" in capsys.readouterr().err


def test_closing_twice_or_before_the_beginning_does_no_harm() -> None:
    display = live.on_terminal(Console(file=io.StringIO(), force_terminal=True))
    display.close()
    tell(display)
    display.close()


def test_an_interrupt_leaves_the_cursor_visible_and_the_block_gone() -> None:
    program = (
        "from test_live import plan; from perflab.report import live; d = live.on_terminal()\n"
        "try:\n d.begin(plan(3)); d.trial_started(1); raise KeyboardInterrupt\n"
        "except KeyboardInterrupt: pass\n"
        "finally: d.close()"
    )
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "PYTHONPATH": f"{SOURCE}:{SOURCE / 'tests/python'}"}
    done = subprocess.run(
        [sys.executable, "-c", program], stdin=theirs, stdout=theirs, stderr=theirs, env=environment, check=False
    )
    os.close(theirs)
    output = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert done.returncode == 0, output
    assert "now" in output
    assert output.rindex("\x1b[?25h") > output.rindex("\x1b[?25l")
    assert output.endswith("\x1b[2K")


def test_the_brief_line_has_the_figures_first() -> None:
    line = LiveLine("", 10.0, brief=True)
    histogram: Any = hg.encode(hg.from_values([1000, 2000]))
    text = line.text(LiveProgress("measuring", 2_000_000_000, 100, 90, 1, (histogram,)))
    assert text == "2/10 s  p50 1.00 µs  p99 2.00 µs  1 lost  45/s"
