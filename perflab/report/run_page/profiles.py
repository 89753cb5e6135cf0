"""Where the CPU time went: families and a flame graph of each process of each profiled trial."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from perflab.errors import BadInput
from perflab.profile import FILE, TOP
from perflab.report.run_page.blocks import Block, Flame, Heading, Known, Sheet, Text, paragraphs
from perflab.report.runs import ReportRun

if TYPE_CHECKING:
    from perflab.profile.result import Process, Profile

MOST_BYTES = 12 << 20  # number of flame graphs in one page; others are referred to by file name
FOLDER = "profile"


def section(runs: Sequence[ReportRun], top: int = TOP) -> Iterator[Block]:
    """Lists the `top` hottest functions of each process."""
    room = MOST_BYTES
    for run in runs:
        for label, _, trial in run.trials:
            folder = run.folders.get(trial.trial, Path()) / FOLDER
            if trial.trial not in run.folders or not (folder / FILE).is_file():
                continue
            from perflab.profile import result

            title = f"{f'{run.name}, ' if len(runs) > 1 else ''}{label}, trial {trial.trial}"
            yield Heading(title)
            try:
                read = result.load(folder)
            except BadInput as problem:
                yield Text(str(problem), "warn")
                continue
            yield Known(list(zip(("sampled", "stacks"), result.facts(read.quality, read), strict=True)))
            yield from paragraphs(read.warnings, "warn")
            yield from paragraphs(read.notes, "faint")
            for process in read.processes:
                yield Sheet(result.families_table(f"{title}: {process.title}", process, read))
                functions = result.functions_table(f"{title}: hottest of {process.title}", process, read, top)
                if functions.rows:
                    yield Sheet(functions)
                graph, used = _graph(folder, process, read, room)
                yield graph
                room -= used


def _graph(folder: Path, process: Process, read: Profile, room: int) -> tuple[Block, int]:
    """The flame graph of a process, or why there is none; and its size in the page in bytes."""
    from perflab.profile import flamegraph, result

    name = process.title
    if process.page is None:
        return Text(f"{name}: {process.samples} samples are too few for shares.", "faint"), 0
    path = result.drawing_of(folder / process.page)
    head = f"Flame graph of {name}: {path}"
    try:
        text = path.read_text(encoding="utf-8")
        if len(text) > room:
            return Text(f"{head} (too large for this page)", "faint"), 0
        drawing = json.loads(text)
        if not isinstance(drawing, dict) or not drawing.keys() >= {"families", "groups", "nodes"}:
            return Text(f"{head} is damaged: it has no stacks", "warn"), 0
    except OSError as error:
        return Text(f"{head}: {error.strerror}", "warn"), 0
    except ValueError as error:
        return Text(f"{head} is damaged: {error}", "warn"), 0
    return Flame(name, flamegraph.looks(read.families), drawing), len(text)
