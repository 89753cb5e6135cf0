"""Why messages were late, where trials were traced; flame graphs and families, where they were profiled."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from perflab.errors import DAMAGE, BadInput
from perflab.profile import flamegraph, result
from perflab.report.run_page.html import Column, Table, escape, facts, number, paragraph, paragraphs, word
from perflab.report.run_page.runs import ReportRun
from perflab.report.tables.model import Cell
from perflab.results.trial import Why
from perflab.trace.causes import CAUSES
from perflab.units import format_confidence, format_count, format_time

Json = dict[str, Any]

MOST_BYTES = 12 << 20  # of flame graphs in one page; more are named by their files
FOLDER = "profile"


def why(runs: Sequence[ReportRun]) -> str:
    """Of every traced trial a sentence, what passed the time of its late messages, and how much of it."""
    made = []
    for run in runs:
        for label, _, trial in run.trials:
            if trial.why is not None:
                name = f"{run.name}, {label}" if len(runs) > 1 else label
                made.append(_why(f"{name}, trial {trial.trial}", trial.why))
    return "".join(made)


def _why(title: str, told: Why) -> str:
    columns = [
        Column("cause", False),
        Column("decided", title="late messages of which it is the largest part"),
        Column("share of those"),
        Column("time"),
        Column("share of the time"),
        Column("took part in"),
        Column("median each"),
        Column("max each"),
    ]

    def rows(entries: Sequence[Mapping[str, Any]], name: str) -> list[list[Cell]]:
        return [
            [
                word(CAUSES[e[name]].short if e[name] in CAUSES else str(e[name])),
                number(format_count(e["messages"]), e["messages"]),
                number(_percent(e["messages_percent"]), e["messages_percent"]),
                number(format_time(e["total_ns"]), e["total_ns"]),
                number(_percent(e["total_percent"]), e["total_percent"]),
                number(format_count(e["having"]), e["having"]),
                number(format_time(e["each_p50_ns"]), e["each_p50_ns"]),
                number(format_time(e["each_max_ns"]), e["each_max_ns"]),
            ]
            for e in entries
        ]

    causes = Table(f"{title}: by cause", columns, rows(told.causes, "cause"))
    columns = [Column("what it was", False), *columns[1:]]
    totals = Table(f"{title}: by who it was", columns, rows(told.totals, "what"), long=12)
    said = paragraph(told.sentence if told.sentence.endswith(".") else f"{told.sentence}.")
    return f"<h3>{escape(title)}</h3>{said}{causes.html()}{totals.html()}"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.3g} %"


# ---- CPU profiles


def profiles(runs: Sequence[ReportRun]) -> str:
    """A flame graph of each process of each profiled trial, drawn when it is opened, with its table of families."""
    made: list[str] = []
    room = MOST_BYTES
    for run in runs:
        for label, _, trial in run.trials:
            file = run.files.get(trial.trial)
            folder = None if file is None else file.path / FOLDER
            if folder is None or not (folder / result.FILE).is_file():
                continue
            title = f"{f'{run.name}, ' if len(runs) > 1 else ''}{label}, trial {trial.trial}"
            try:
                text, used = _profile(title, folder, room)
            except BadInput as problem:
                text, used = f"<h3>{escape(title)}</h3>{paragraph(problem, 'warn')}", 0
            except DAMAGE as error:
                said = f"{folder / result.FILE} is damaged: {type(error).__name__}: {error}"
                text, used = f"<h3>{escape(title)}</h3>{paragraph(said, 'warn')}", 0
            made.append(text)
            room -= used
    return "".join(made)


def _profile(title: str, folder: Path, room: int) -> tuple[str, int]:
    document = result.load(folder)
    quality, unit = document["quality"], document["unit"]
    said = facts(
        [
            (
                "sampled",
                f"{result.amount(quality['weight'], unit)} in {quality['samples']:,} samples of {document['event']} at "
                f"{document['frequency_hz']} Hz",
            ),
            (
                "stacks",
                f"by {document['call_graph']}; {result.percent(quality['whole'])} whole, "
                f"{result.percent(quality['unresolved'])} of the samples in functions without a name",
            ),
        ]
    )
    parts, used = [], 0
    for process in document["processes"]:
        name = f"{process['name']} ({process['pid']})"
        table = _families(f"{title}: {name}", process, document).html()
        few = "" if table else paragraph(f"{name}: {process['samples']} samples are too few for shares.", "faint")
        graph, size = _graph(name, folder, process, list(document["families"]), room - used)
        used += size
        parts.append(table + few + graph)
    warnings = paragraphs(document.get("warnings") or (), "warn") + paragraphs(document.get("notes") or (), "faint")
    return f"<h3>{escape(title)}</h3>{said}{warnings}{''.join(parts)}", used


def _families(title: str, process: Json, document: Json) -> Table:
    columns = [
        Column("family of symbols", False),
        Column("itself"),
        Column("interval", False),
        Column("with what it calls"),
        Column("samples"),
    ]
    rows = [
        [
            word(document["families"].get(row["family"], row["family"])),
            number(result.percent(row["self_share"]), row["self_share"]),
            word(result.interval(row["self_low"], row["self_high"])),
            number(result.percent(row["inclusive_share"]), row["inclusive_share"]),
            number(f"{row['self_samples']:,}", row["self_samples"]),
        ]
        for row in process["families"]
        if row["self_share"] is not None
    ]
    level = "" if document.get("confidence") is None else f", {format_confidence(document['confidence'])}"
    note = f"The interval is what sampling alone leaves open in this recording (Wilson{level})."
    return Table(title, columns, rows, [note])


def _graph(name: str, folder: Path, process: Json, families: Sequence[str], room: int) -> tuple[str, int]:
    """The flame graph, folded; and how many bytes of the page it takes. One that has no room is named by its file."""
    page = process.get("page")
    if not page:
        return "", 0
    path = folder / str(page)
    try:
        stacks = _stacks_of(path.read_text(encoding="utf-8"))
    except OSError as error:
        return paragraph(f"Flame graph of {name}: {path}: {error.strerror}", "warn"), 0
    if stacks is None:
        return paragraph(f"Flame graph of {name}: {path} is damaged: it holds no stacks", "warn"), 0
    names = ["", *families]
    data = _script_json(
        {
            "stacks": json.dumps(stacks, ensure_ascii=False, separators=(",", ":")),
            "groups": stacks.get("groups", "threads"),
            "style": _hosted(flamegraph.colors(names)),
            "patterns": "".join(flamegraph.pattern(number) for number in range(1, len(names))),
        }
    )
    if len(data) > room:
        return paragraph(f"Flame graph of {name}: {path} (too large to be in this page, too)", "faint"), 0
    return (
        f'<details class="flame"><summary>Flame graph of {escape(name)}</summary><div class="graph"></div>'
        f'<script type="application/json">{data}</script></details>'
    ), len(data)


def _stacks_of(page: str) -> Json | None:
    """The stacks as the page of a flame graph holds them; None where they are not whole."""
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL)
    try:
        document = None if found is None else json.loads(found[1])
    except ValueError:
        return None
    return document if isinstance(document, dict) and isinstance(document.get("families"), list) else None


def _script_json(document: Json) -> str:
    # "<" would end the script, whatever a function is called.
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


@cache
def scripts() -> str:
    """What draws the flame graphs of a page, each in a shadow tree of its own.

    The script of the page with a single graph looks for its elements in `document`; here that is the tree.
    """
    template = flamegraph.asset("flamegraph.html")
    body = '<div class="tools">' + template.partition('<div class="tools">')[2].partition("<noscript>")[0]
    parts = {"style": _style(), "body": body}
    script = flamegraph.asset("flamegraph.js")
    return f"const perflabFlame = {_script_json(parts)};\nperflabFlame.draw = (document) => {{\n{script}\n}};\n"


def _style() -> str:
    """That of the page with a single graph, for a tree whose host says by data-scheme which colours are shown."""
    return _hosted(flamegraph.asset("flamegraph.css")).replace("\nbody {", "\n.body {")


def _hosted(text: str) -> str:
    dark = r"@media screen and \(prefers-color-scheme: dark\) \{\s*:root (\{[^}]*\})\s*\}"
    return re.sub(dark, r":host([data-scheme=dark]) \1", text).replace(":root {", ":host {")
