"""The progress of a run: a small block at the end of a terminal, or one line per finished trial.

The block is redrawn only by progress: a refreshing thread would run beside the measurement.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from perflab import output, phases
from perflab.columns import Cell, Column
from perflab.phases import AUTO, OFF, SECONDS
from perflab.quantity import COUNT, PLAIN, TIME
from perflab.report import seconds as seconds_table
from perflab.report.progress import RECENT, LiveLine, Pace, RunProgress
from perflab.results.figure import Distribution
from perflab.results.outcome import SUCCESS, Outcomes
from perflab.results.trial import least_lost
from perflab.runs.display import Display, FinishedTrial, LiveProgress, PlannedTrial, RunPlan

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live
    from rich.text import Text

__all__ = ["Display", "LiveLine", "Pace", "chosen", "lines", "on_terminal", "silent"]

NOTHING = RunPlan(0, ())
GAP = 2
MIN_BAR = 10
MAX_BAR = 40
MIN_NAME = 12
BLOCK_WITHOUT_TRIALS = 8  # lines: bar, outcomes, now, state, next, blank, heading, spare

_Row = tuple[FinishedTrial, PlannedTrial]


def chosen(mode: str, *, quiet: bool = False, by_second: bool = False) -> Display:
    """The display for --progress; `quiet`: nothing at all; `by_second`: a line per second instead of "auto". Raises
    BadInput for an unknown mode."""
    phases.check(mode)
    if quiet or mode == OFF:
        return silent(quiet=quiet)
    if mode == SECONDS or (mode == AUTO and by_second):
        return seconds()
    return on_terminal() if mode == AUTO and sys.stderr.isatty() else lines()


def silent(*, quiet: bool = False) -> Display:
    """Only shows what is waited for, on stderr; with `quiet` not even that."""
    return _Silent(None if quiet else sys.stderr)


def lines(file: TextIO | None = None) -> Display:
    """The plan, one line per finished trial, and notes, on stderr: for logs."""
    return _Lines(file or sys.stderr)


def seconds(file: TextIO | None = None) -> Display:
    """The same, and a line for each second of each trial."""
    out = file or sys.stderr
    return _Seconds(out, shutil.get_terminal_size().columns if out.isatty() else None)


def on_terminal(console: Console | None = None, clock: Callable[[], float] = time.monotonic) -> Display:
    """A live block on the terminal of stderr; lines if it cannot move its cursor. `close` removes the block."""
    terminal = console or output.console(sys.stderr)
    return _Lines(sys.stderr) if terminal.is_dumb_terminal else _Block(terminal, clock)


class _Silent(Display):
    def __init__(self, file: TextIO | None) -> None:
        self._file = file

    def waiting(self, text: str) -> None:
        self._write(f"perflab: {text}")

    def _write(self, line: str) -> None:
        if self._file is not None:
            self._file.write(line + "\n")
            self._file.flush()


LONG_S = 30.0  # seconds: a trial at least this long gets progress lines, after each such time


class _Lines(_Silent):
    """ "[12/42] cyclonedds  cpu_load  p50 45.2 µs  p99 130 µs  0 lost  success"."""

    def __init__(self, file: TextIO) -> None:
        super().__init__(file)
        self._run = RunProgress(NOTHING)
        self._planned: PlannedTrial | None = None  # the present trial, if it is a long one
        self._line, self._pace = LiveLine("", 0.0), Pace(LONG_S)

    def begin(self, plan: RunPlan) -> None:
        self._run = RunProgress(plan)
        self._write(self._run.plan_in_words())

    def planned(self, trial: PlannedTrial) -> None:
        self._run.planned(trial)

    def trial_started(self, order: int) -> None:
        planned = self._run.start(order)
        self._planned = planned if planned.endless or planned.lasts_s >= LONG_S else None
        self._line, self._pace = LiveLine("", planned.measured_s), Pace(LONG_S)

    def progress(self, progress: LiveProgress) -> None:
        if self._planned is None or not self._pace.due(progress.phase):
            return
        if (state := self._line.text(progress)) is not None:
            self._write("  ".join([self._head(self._planned), self._planned.label, state]))

    def _head(self, planned: PlannedTrial) -> str:
        total = str(self._run.plan.total)
        return f"[{planned.order:>{len(total)}}/{total}] {planned.variant}"

    def trial_finished(self, trial: FinishedTrial) -> None:
        self._run.finish(trial)
        row = (trial, self._run.planned_as(trial.trial.order))
        _, label, _, outcome, p50, p99, lost = (column.cell(row).text for column in _COLUMNS)
        # A reason from a kind of workload begins with the outcome's name there.
        reason = (_reason(trial) or "").removeprefix(f"{trial.trial.ended}: ")
        ended = outcome + (f": {reason}" if reason else "")
        words = [
            self._head(self._run.planned_as(trial.trial.order)),
            label,
            f"p50 {p50}",
            f"p99 {p99}",
            f"{lost} lost",
            ended,
        ]
        self._write("  ".join(words))

    def note(self, text: str) -> None:
        self._write(f"Note: {text}")


class _Seconds(_Lines):
    def __init__(self, file: TextIO, width: int | None) -> None:
        super().__init__(file)
        self._table = seconds_table.Table(width)
        self._seconds, self._headed = seconds_table.Seconds(), False

    def trial_started(self, order: int) -> None:
        self._seconds, self._headed = seconds_table.Seconds(), False
        super().trial_started(order)

    def progress(self, progress: LiveProgress) -> None:
        if progress.received is None:  # its messages are not counted
            super().progress(progress)
            return
        if (second := self._seconds.next(progress)) is None:
            return
        if not self._headed:
            self._headed = True
            planned = self._run.current
            self._write(f"{self._head(planned)}  {planned.label}" if planned is not None else "")
            for line in self._table.heading():
                self._write(line)
        self._write(self._table.line(second))


class _Block(Display):
    """The plan, which stays, and the live block: progress, the present trial, the next, and the last ones."""

    def __init__(self, console: Console, clock: Callable[[], float]) -> None:
        self._console = console
        self._run = RunProgress(NOTHING, clock)
        self._live: Live | None = None
        self._line = LiveLine("", 0.0)
        self._pace = Pace()
        self._state = ""

    def begin(self, plan: RunPlan) -> None:
        from rich.live import Live

        self._run = RunProgress(plan, self._run.clock)
        self._console.print(self._run.plan_in_words(), markup=False)
        # The run's own output goes to stdout, which may be a file: only other output on stderr is kept off the block.
        self._live = Live(console=self._console, auto_refresh=False, transient=True, redirect_stdout=False)
        self._live.start()
        sys.stderr = output.guard(sys.stderr)  # of rich, until `stop` restores the streams
        self._draw()

    def planned(self, trial: PlannedTrial) -> None:
        self._run.planned(trial)

    def trial_started(self, order: int) -> None:
        planned = self._run.start(order)
        brief = self._run.plan.total > 1
        self._line, self._pace = LiveLine("", planned.measured_s, brief=brief), Pace()
        self._state = "preparing"
        self._draw()

    def progress(self, progress: LiveProgress) -> None:
        if self._pace.due(progress.phase) and (state := self._line.text(progress)) is not None:
            self._state = state
            self._draw()

    def trial_finished(self, trial: FinishedTrial) -> None:
        self._run.finish(trial)
        self._state = ""
        self._draw()

    def waiting(self, text: str) -> None:
        """The state of the trial; a line if there is no block."""
        if self._live is None:
            self._console.print(f"perflab: {text}", markup=False)
            return
        self._state = text
        self._draw()

    def note(self, text: str) -> None:
        """Stays on the terminal, above the block."""
        from rich.text import Text

        self._console.print(Text(f"Note: {text}", "yellow"))

    def close(self) -> None:
        if self._live is not None:
            live, self._live = self._live, None
            live.stop()

    def _draw(self) -> None:
        if self._live is not None:
            self._live.update(render(self._run, self._state, *self._console.size), refresh=True)


def render(run: RunProgress, state: str, width: int, height: int) -> RenderableType:
    """The block, no wider than the terminal and no higher. A run of one trial only has its line."""
    from rich.console import Group
    from rich.text import Text

    from perflab.report.table import STYLES

    if run.plan.total == 1 and run.current is not None:
        return _cut(Text(f"{run.current.variant}: {state}"), width)
    rows: list[RenderableType] = [_bar(run, width)]
    bad = [f.trial for f in run.finished if f.trial.outcome != SUCCESS]
    if bad:
        outcomes = Outcomes.of([t.outcome for t in bad], interrupted=sum(t.interrupted for t in bad))
        counts = [(f"{n} {words}", STYLES[outcome.tone]) for outcome, n, _, words in outcomes.counts]
        rows.append(_cut(Text("      ").append_text(Text(", ").join(Text(*count) for count in counts)), width))
    if run.current is not None:
        rows.append(_named("now", run.current, width))
        rows.append(_cut(Text(f"      {state}"), width))
    if run.next is not None:
        rows.append(_named("next", run.next, width, "dim"))
    rows += _recent(run, width, height - BLOCK_WITHOUT_TRIALS)
    return Group(*rows)


def _cut(text: Text, width: int) -> Text:
    text.no_wrap, text.overflow = True, "ellipsis"
    text.truncate(width, overflow="ellipsis")
    return text


def _bar(run: RunProgress, width: int) -> Text:
    """ "━━━━━━━╸━━━━  11 of 42 trials, about 6 min left"."""
    from rich.text import Text

    left = f", {run.left_in_words()}" if run.current is not None or run.next is not None else ""
    most = "at most " if run.plan.at_most else ""
    words = Text(f"{run.done} of {most}{run.plan.total} trials{left}")
    room = min(MAX_BAR, width - words.cell_len - GAP)
    if room < MIN_BAR:
        return _cut(words, width)
    full = round(room * run.share)
    return Text.assemble(("━" * full, "green"), ("━" * (room - full), "bright_black"), " " * GAP, words)


def _named(word: str, planned: PlannedTrial, width: int, style: str = "") -> Text:
    from rich.text import Text

    text = Text(f"{word:<4}  ", "bold")
    text.append(f"{planned.label}", style or "bold")
    text.append(f"  {planned.variant}  trial {planned.order}", style or "not bold")
    return _cut(text, width)


def _latency(statistic: str) -> Callable[[_Row], float | None]:
    return lambda row: getattr(row[0].trial.totals.latency_ns or Distribution(), statistic)


# For the last trials. The higher its rank, the earlier a column is left out; names are shortened first.
_COLUMNS: tuple[Column[_Row], ...] = (
    Column("trial", "trial", lambda row: row[0].trial.order, PLAIN, rank=0),
    Column("treatment", "treatment", lambda row: row[1].label, rank=0, least=MIN_NAME),
    Column("variant", "variant", lambda row: row[1].variant, rank=4, least=MIN_NAME),
    Column("outcome", "outcome", lambda row: Cell(row[0].trial.ended, tone=row[0].trial.outcome.tone), rank=0),
    Column("p50", "p50", _latency("p50"), TIME, rank=3),
    Column("p99", "p99", _latency("p99"), TIME, rank=1),
    Column("lost", "lost", lambda row: least_lost(row[0].trial.totals), COUNT, rank=2),
)


def _recent(run: RunProgress, width: int, room: int) -> list[RenderableType]:
    """The last trials, newest first, with the reasons of unsuccessful ones; at most `room` lines."""
    from rich.text import Text

    from perflab.report.table import STYLES

    shown: list[_Row] = []
    for trial in reversed(run.finished[-RECENT:]):
        room -= 2 if _reason(trial) else 1
        if room < 0:
            break
        shown.append((trial, run.planned_as(trial.trial.order)))
    if not shown:
        return []
    widths = _widths(shown, width)
    table: list[RenderableType] = [Text(""), _line([Text(c.header, "bold") for c in widths], widths, width)]
    for row in shown:
        cells = [column.cell(row) for column in widths]
        table.append(_line([Text(cell.text, STYLES[cell.tone]) for cell in cells], widths, width))
        if reason := _reason(row[0]):
            indent = next(iter(widths.values())) + GAP
            table.append(_cut(Text(f"{'':{indent}}{reason}", STYLES[row[0].trial.outcome.tone]), width))
    return table


def _widths(rows: list[_Row], width: int) -> dict[Column[_Row], int]:
    """The columns for which there is room."""
    from rich.cells import cell_len

    widths = {c: max(cell_len(text) for text in (c.header, *(c.cell(row).text for row in rows))) for c in _COLUMNS}
    while True:
        names = sorted((c for c in widths if c.least), key=lambda c: widths[c])
        room = width - sum(n for c, n in widths.items() if not c.least) - GAP * (len(widths) - 1)
        last = max(widths, key=lambda c: c.rank or 0)
        if not last.rank or room >= sum(min(widths[c], c.least) for c in names):
            break
        del widths[last]
    # The shorter name stays complete if half of the room is enough for it.
    for column, share in zip(names, range(len(names), 0, -1), strict=True):
        widths[column] = min(widths[column], max(1, room // share))
        room -= widths[column]
    return widths


def _line(cells: list[Text], widths: dict[Column[_Row], int], width: int) -> Text:
    from rich.text import Text

    line = Text()
    for cell, (column, own) in zip(cells, widths.items(), strict=True):
        cell.truncate(own, overflow="ellipsis")
        cell.align("right" if column.quantity.numeric else "left", own)
        line.append(" " * GAP if line else "").append_text(cell)
    return _cut(line, width)


def _reason(trial: FinishedTrial) -> str | None:
    return trial.trial.reason if trial.trial.outcome != SUCCESS else None
