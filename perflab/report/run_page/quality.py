"""How good the data is: what was lost and how, what is missing, and what to know of the figures."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from perflab.errors import DAMAGE, one_line
from perflab.formats.recording import FILE
from perflab.report.run_page.elements import Column, Table, escape, items, paragraph, word
from perflab.report.run_page.findings import OF_QUALITY, numbered
from perflab.report.run_page.runs import ReportRun, of_all
from perflab.report.run_page.tables import count, run_cell, run_column, time
from perflab.results.trial import Counts, Distribution, Totals, added, owners
from perflab.units import format_count


def section(runs: Sequence[ReportRun]) -> str:
    made = [table.html() for table in (accounting(runs), hiccups(runs))]
    for run in runs:
        said = sentences(run)
        inner = items(said) or paragraph("Nothing else is to be said about the data.", "faint")
        made.append(f"<h3>{escape(run.name)}</h3>{inner}" if len(runs) > 1 else inner)
    return "".join(made)


def accounting(runs: Sequence[ReportRun]) -> Table:
    """Where every message went, by result."""
    columns = [
        Column("result", False),
        *run_column(runs),
        Column("records", False, "whether every process wrote its last ones"),
        Column("sent"),
        Column("received"),
        Column("lost in gaps"),
        Column("lost at the end"),
        Column("before matching", title="sent before the two ends had found each other"),
        Column("reordered"),
        Column("duplicate"),
        Column("beyond the window", title="too far out of order to be told from a loss"),
        Column("ticks not sent"),
        Column("write errors"),
        Column("saturated", title="values above what a histogram holds"),
        Column("negative", title="values below 0: clocks that do not agree"),
    ]
    rows = []
    for run, label, result in of_all(runs):
        coverage, parts = result.coverage, owners(result)
        complete = "complete" if coverage.complete else "not complete" if coverage.trials_merged else "none"
        rows.append(
            [
                word(label),
                *run_cell(runs, run),
                word(complete, "" if coverage.complete else "warn"),
                count(added(part.sent for part in parts)),
                count(added(part.received for part in parts)),
                count(added(part.lost.gap for part in parts), "bad"),
                count(added(part.lost.tail for part in parts), "bad"),
                count(added(part.lost.pre_match for part in parts), "warn"),
                count(added(part.reordered for part in parts), "warn"),
                count(added(part.duplicate for part in parts), "warn"),
                count(added(part.beyond_window for part in parts), "warn"),
                count(added(part.not_sent for part in parts), "bad"),
                count(added(part.write_errors for part in parts), "bad"),
                count(_of_histograms(parts, lambda d: d.saturated), "warn"),
                count(_of_histograms(parts, lambda d: d.negative), "warn"),
            ]
        )
    return Table("Where every message went", columns, rows)


def hiccups(runs: Sequence[ReportRun]) -> Table:
    """What the machine does to a thread that only sleeps, where that was observed."""
    columns = [
        Column("result", False),
        *run_column(runs),
        Column("wake-ups"),
        Column("p50"),
        Column("p99"),
        Column("p99.9"),
        Column("max"),
    ]
    rows = [
        [
            word(label),
            *run_cell(runs, run),
            count(late.count),
            time(late.p50),
            time(late.p99),
            time(late.p99_9),
            time(late.max),
        ]
        for run, label, result in of_all(runs)
        if (late := result.hiccup_ns) is not None
    ]
    return Table("How late a thread that only sleeps woke up", columns, rows)


def _of_histograms(parts: Sequence[Counts], count_of: Callable[[Distribution], int | None]) -> int | None:
    """Values of all histograms together, as far as they are known."""
    counts = [count_of(d) for part in parts for d in _distributions(part) if d is not None]
    known = [n for n in counts if n is not None]
    return sum(known) if known else None


def _distributions(part: Counts) -> list[Distribution | None]:
    found = [part.times_ns, part.publish_delay_ns, part.publish_call_ns, part.dispatch_ns, part.work_ns]
    return [*found, part.response_ns] if isinstance(part, Totals) else found


def sentences(run: ReportRun) -> list[str]:
    said = [_sentence(remark.words) for remark in run.remarks if remark.kind in OF_QUALITY]
    said += _cool_downs(run) + _traces(run)
    notes: dict[str, list[int]] = {}
    for _, _, trial in run.trials:
        for note in run.file(trial).get("notes") or ():
            notes.setdefault(str(note), []).append(trial.trial)
    said += [_sentence(f"{numbered(trials)}: {note}") for note, trials in notes.items()]
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


def _sentence(text: str) -> str:
    text = text[:1].upper() + text[1:]
    return text if text.endswith(".") else f"{text}."
