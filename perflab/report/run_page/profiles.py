"""Where the CPU time went: families and a flame graph of each process of each profiled trial."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perflab.columns import AnyTable, Tone
from perflab.errors import BadInput
from perflab.profile import flamegraph, result
from perflab.report.run_page.runs import ReportRun

Json = dict[str, Any]

MOST_BYTES = 12 << 20  # of flame graphs in one page; more are named by their files
FOLDER = "profile"


@dataclass(frozen=True)
class Process:
    """Its families, and what its flame graph draws; or why there is none."""

    name: str
    families: AnyTable
    looks: Sequence[flamegraph.Look] = ()
    drawing: Json | None = None
    problem: str = ""
    tone: Tone = "faint"


@dataclass(frozen=True)
class Profile:
    """Of one trial; or only why it cannot be shown."""

    title: str
    problem: str = ""
    facts: Sequence[tuple[str, object]] = ()
    warnings: Sequence[str] = ()
    notes: Sequence[str] = ()
    processes: Sequence[Process] = ()


def section(runs: Sequence[ReportRun]) -> list[Profile]:
    made: list[Profile] = []
    room = MOST_BYTES
    for run in runs:
        for label, _, trial in run.trials:
            file = run.files.get(trial.trial)
            folder = None if file is None else file.path / FOLDER
            if folder is None or not (folder / result.FILE).is_file():
                continue
            title = f"{f'{run.name}, ' if len(runs) > 1 else ''}{label}, trial {trial.trial}"
            try:
                profile, room = _profile(title, folder, room)
            except BadInput as problem:
                profile = Profile(title, str(problem))
            made.append(profile)
    return made


def _profile(title: str, folder: Path, room: int) -> tuple[Profile, int]:
    """The profile, and how many bytes are left for the flame graphs of others."""
    read = result.load(folder)
    facts = list(zip(("sampled", "stacks"), result.facts(read.quality, read), strict=True))
    processes = []
    for of in read.processes:
        process, used = _process(title, folder, of, read, room)
        processes.append(process)
        room -= used
    return Profile(title, "", facts, read.warnings, read.notes, processes), room


def _process(title: str, folder: Path, of: result.Process, read: result.Profile, room: int) -> tuple[Process, int]:
    """A process, and how many bytes of the page its flame graph takes."""
    name = of.title
    families = result.families_table(f"{title}: {name}", of, read)
    if of.page is None:
        return Process(name, families, problem=f"{name}: {of.samples} samples are too few for shares."), 0
    path = result.drawing_of(folder / of.page)
    head = f"Flame graph of {name}: {path}"
    try:
        text = path.read_text(encoding="utf-8")
        if len(text) > room:
            return Process(name, families, problem=f"{head} (too large to be in this page, too)"), 0
        drawing = json.loads(text)
        if not isinstance(drawing, dict) or not drawing.keys() >= {"families", "groups", "nodes"}:
            return Process(name, families, problem=f"{head} is damaged: it holds no stacks", tone="warn"), 0
    except OSError as error:
        return Process(name, families, problem=f"{head}: {error.strerror}", tone="warn"), 0
    except ValueError as error:
        return Process(name, families, problem=f"{head} is damaged: {error}", tone="warn"), 0
    return Process(name, families, flamegraph.looks(read.families), drawing), len(text)
