"""The quality of the data: losses and their kinds, what is missing, and remarks on the figures."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from perflab.errors import DAMAGE, one_line
from perflab.formats.recording import FILE
from perflab.report.run_page.blocks import Block, Items, Sheet, Text, each
from perflab.report.run_page.effects import sentence
from perflab.report.run_page.findings import OF_QUALITY
from perflab.report.run_page.tables import rows_of
from perflab.report.runs import ReportRun
from perflab.report.tables import messages
from perflab.units import format_count, numbered


def section(runs: Sequence[ReportRun]) -> Iterator[Block]:
    rows = rows_of(runs)
    yield Sheet(messages.accounting(rows))
    yield Sheet(messages.hiccups(rows))
    for run, heading in each(runs):
        yield from heading
        said = list(dict.fromkeys(_sentences(run)))
        yield Items(said) if said else Text("No further remarks on the data.", "faint")


def _sentences(run: ReportRun) -> Iterator[str]:
    yield from (sentence(remark.words) for remark in run.remarks if remark.kind in OF_QUALITY)
    cooled = [(t.trial, file.cool_down) for _, _, t in run.trials if (file := run.file(t)) is not None]
    if loud := [number for number, seen in cooled if seen is not None and seen.reached is False]:
        began = "It" if len(loud) == 1 else "They"
        yield (
            f"{numbered(loud).capitalize()}: the machine did not become quiet within the limit. {began} began on a "
            "busy machine."
        )
    yield from _traces(run)
    notes: dict[str, list[int]] = {}
    for _, _, trial in run.trials:
        for note in () if (file := run.file(trial)) is None else file.notes:
            notes.setdefault(note, []).append(trial.trial)
    yield from (sentence(f"{numbered(trials)}: {note}") for note, trials in notes.items())
    for label, _, trial in run.trials:
        if trial.drain not in (None, "rest") and trial.totals.lost.tail:
            yield f"Trial {trial.trial} ({label}): it was stopped before all its messages had arrived."


def _traces(run: ReportRun) -> Iterator[str]:
    """Events that tracers lost, from recording.json beside each trace."""
    for number, folder in sorted(run.folders.items()):
        path = folder / "trace" / FILE
        if not path.is_file():
            continue
        try:
            recording = json.loads(path.read_text(encoding="utf-8"))
            user_space, scheduler = (recording.get(part) or {} for part in ("user_space", "scheduler"))
            lost = (
                (user_space.get("discarded_events"), "events of user space"),
                (user_space.get("lost_packets"), "packets of user space"),
                (scheduler.get("lost"), "events of the scheduler"),
            )
        except (OSError, *DAMAGE) as error:
            problem = one_line(str(error))
            yield f"Trial {number}: {path} cannot be read ({problem}): whether events were lost is unknown."
            continue
        if told := [f"{format_count(n)} {what}" for n, what in lost if n]:
            yield f"Trial {number}: the tracer lost {' and '.join(told)}; the trace is incomplete."
