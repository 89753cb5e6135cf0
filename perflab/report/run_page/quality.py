"""How good the data is: what was lost and how, what is missing, and what to know of the figures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from perflab.columns import AnyTable
from perflab.errors import DAMAGE, one_line
from perflab.formats.recording import FILE
from perflab.report.run_page.effects import numbered, sentence
from perflab.report.run_page.findings import OF_QUALITY
from perflab.report.run_page.runs import ReportRun
from perflab.report.run_page.tables import rows_of
from perflab.report.tables import messages
from perflab.units import format_count


@dataclass(frozen=True)
class Quality:
    """The tables of all runs, and of each its name (empty where there is but one) with what is to be said of it."""

    tables: Sequence[AnyTable]
    said: Sequence[tuple[str, Sequence[str]]]


def section(runs: Sequence[ReportRun]) -> Quality:
    rows = rows_of(runs)
    said = [(run.name if len(runs) > 1 else "", sentences(run)) for run in runs]
    return Quality([messages.accounting(rows), messages.hiccups(rows)], said)


def sentences(run: ReportRun) -> list[str]:
    said = [sentence(remark.words) for remark in run.remarks if remark.kind in OF_QUALITY]
    said += _cool_downs(run) + _traces(run)
    notes: dict[str, list[int]] = {}
    for _, _, trial in run.trials:
        for note in run.file(trial).get("notes") or ():
            notes.setdefault(str(note), []).append(trial.trial)
    said += [sentence(f"{numbered(trials)}: {note}") for note, trials in notes.items()]
    for label, _, trial in run.trials:
        if trial.drain not in (None, "rest") and trial.totals.lost.tail:
            said.append(f"Trial {trial.trial} ({label}): it was stopped before its messages had come to rest.")
    return list(dict.fromkeys(said))


def _cool_downs(run: ReportRun) -> list[str]:
    loud = [t.trial for _, _, t in run.trials if (run.file(t).get("cool_down") or {}).get("reached") is False]
    if not loud:
        return []
    began = "It" if len(loud) == 1 else "They"
    return [
        f"{numbered(loud).capitalize()}: the machine did not become quiet within the limit. {began} began on a busy "
        "machine."
    ]


def _traces(run: ReportRun) -> list[str]:
    """Events that tracers lost, as recording.json beside each trace says."""
    said = []
    for number, file in sorted(run.files.items()):
        path = file.path / "trace" / FILE
        if not path.is_file():
            continue
        try:
            recording = json.loads(path.read_text(encoding="utf-8"))
            lost = [
                ((recording.get("user_space") or {}).get("discarded_events"), "events of user space"),
                ((recording.get("user_space") or {}).get("lost_packets"), "packets of user space"),
                ((recording.get("scheduler") or {}).get("lost"), "events of the scheduler"),
            ]
        except (OSError, *DAMAGE) as error:
            said.append(
                f"Trial {number}: {path} cannot be read ({one_line(str(error))}): whether events were lost is not "
                "known."
            )
            continue
        told = [f"{format_count(n)} {what}" for n, what in lost if n]
        if told:
            said.append(f"Trial {number}: the tracer lost {' and '.join(told)}; the trace is not whole.")
    return said
