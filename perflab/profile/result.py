"""The folder of a profile: made from perf.data, read back, with remarks.

perf.data perf's recording, unless dropped profile.json everything below, and how it was recorded (docs/formats.md)
families.* shares of families, per process and thread, as Parquet and CSV folded.txt stacks with weights, one per line,
for other tools index.html links to one flame graph per process
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from perflab import models, page, waiting
from perflab.columns import Cell, Column, Table
from perflab.errors import DAMAGE, BadInput, PerflabError
from perflab.profile import FILE, MOST_FUNCTIONS, TOP, flamegraph, perf_data, record
from perflab.profile.families import (
    CONFIDENCE,
    LEAST_SAMPLES,
    Families,
    FamilyShares,
    FunctionShares,
    Group,
    Sampled,
    Shares,
    functions,
    group,
)
from perflab.profile.perf_data import PerfData, Samples, ThreadStacks, file_name
from perflab.profile.record import Recording
from perflab.quantity import COUNT, PLAIN, SHARE
from perflab.units import format_confidence, format_time

SCHEMA = 1
FOLDED, INDEX = "folded.txt", "index.html"
PARQUET, CSV = "families.parquet", "families.csv"
KIND = "profile"

_LONGEST_NAME = 56  # of a function, in tables

FEW_WHOLE, MANY_UNRESOLVED = 0.8, 0.2  # shares of samples from which a remark is made


@dataclass(frozen=True, kw_only=True)
class Thread(Group):
    tid: int
    name: str


@dataclass(frozen=True, kw_only=True)
class Process(Group):
    pid: int
    name: str
    threads: tuple[Thread, ...]
    functions: tuple[FunctionShares, ...] = ()  # the hottest, MOST_FUNCTIONS of them; none in an older profile
    page: str | None  # its flame graph; None if there are too few samples for one

    @property
    def title(self) -> str:
        return f"{self.name} ({self.pid})"


@dataclass(frozen=True, kw_only=True)
class Quality(Sampled):
    idle: int  # samples of idle CPUs, in no other figure
    lost: int
    throttled: int
    unreadable_lines: int
    complete: bool


@dataclass(frozen=True, kw_only=True)
class Profile(Recording):
    """profile.json."""

    schema: int
    quality: Quality
    families: dict[str, str]  # titles by name, in the order of tables
    confidence: float
    processes: tuple[Process, ...]
    warnings: tuple[str, ...] = ()


def analyse(directory: Path, perf: Path, known: Recording, families: Families, *, keep_raw: bool = True) -> Profile:
    """Makes everything from perf.data, also repeatedly, e.g. with other families. Raises PerflabError if perf.data
    cannot be read.
    """
    data = directory / record.DATA
    facts = perf_data.read(data)
    samples = read_samples(perf, data)
    profile = _profile(known, facts, samples, families)
    _write_stacks(directory, profile, samples)
    _write_pages(directory, profile, samples, families)
    _write_tables(directory, profile)
    if not keep_raw:
        data.unlink()
    text = json.dumps(models.as_json(profile), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    (directory / FILE).write_text(text, encoding="utf-8")
    return profile


def load(directory: Path) -> Profile:
    """The profile in a folder that `analyse` wrote. Raises BadInput."""
    path = directory / FILE
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["schema"] != SCHEMA:
            raise BadInput(f"{path} has another version: schema {document['schema']!r} instead of {SCHEMA}")
        return models.read(Profile, document)
    except OSError as error:
        raise BadInput(f"{directory} has no profile: {path.name}: {error.strerror}") from error
    except DAMAGE as error:
        raise BadInput(f"{path} is damaged: {type(error).__name__}: {error}") from error


def read_samples(perf: Path, data: Path) -> Samples:
    """Through `perf script`, line by line. Raises PerflabError if it fails."""
    command = [str(perf), "script", "-f", "-i", str(data), "-F", perf_data.FIELDS, "--ns", "--no-inline"]
    # Neither the user's settings nor the network affect the reading.
    environment = {**os.environ, "PERF_CONFIG": "/dev/null", "LC_ALL": "C", "DEBUGINFOD_URLS": ""}
    with tempfile.TemporaryFile() as words:
        # It ends with perflab in any case: then its pipe has no reader.
        with subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=words, env=environment, text=True,
            encoding="utf-8", errors="replace",
        ) as reader:  # fmt: skip
            printed = reader.stdout
            assert printed is not None
            try:
                samples = waiting.work(lambda: perf_data.parse(printed), f"perf script to read the samples of {data}")
            except BaseException:
                reader.kill()
                raise
        if reader.returncode:
            words.seek(0)
            lines = words.read().decode("utf-8", "replace").split("\n")
            said = next((line.strip() for line in lines if line.strip()), f"status {reader.returncode}")
            raise PerflabError(f"perf script cannot read {data}: {said}")
    return samples


def _profile(known: Recording, facts: PerfData, samples: Samples, families: Families) -> Profile:
    threads = list(samples.threads.values())

    def grouped(some: Sequence[ThreadStacks]) -> dict[str, Any]:
        return vars(group(some, samples.frames, families))

    processes = []
    for pid in {thread.pid: None for thread in threads}:
        mine = [thread for thread in threads if thread.pid == pid]
        name = facts.names.get(pid) or next((t.name for t in mine if t.tid == pid), mine[0].name)
        each = [Thread(**grouped([thread]), tid=thread.tid, name=thread.name) for thread in mine]
        each.sort(key=lambda t: (-t.weight, t.tid))
        page = f"flame_{pid}_{re.sub(r'[^A-Za-z0-9._-]+', '_', name)[:40] or 'process'}.html"
        hottest = functions(mine, samples.frames, families, MOST_FUNCTIONS)
        processes.append(
            Process(**grouped(mine), pid=pid, name=name, threads=tuple(each), functions=hottest, page=page)
        )
    processes.sort(key=lambda p: (-p.weight, p.pid))
    few = [process for process in processes[1:] if process.samples < LEAST_SAMPLES]
    whole = group(threads, samples.frames, families)
    how = {field.name: getattr(known, field.name) for field in dataclasses.fields(Recording)}
    how["began_ns"] = samples.first_ns if known.began_ns is None else known.began_ns
    how["ended_ns"] = samples.last_ns if known.ended_ns is None else known.ended_ns
    quality = Quality(
        whole.samples, whole.weight, whole.whole, whole.unresolved, idle=samples.idle, lost=facts.lost,
        throttled=facts.throttled, unreadable_lines=samples.unreadable, complete=facts.complete,
    )  # fmt: skip
    profile = Profile(
        **how,
        schema=SCHEMA,
        quality=quality,
        families=families.titles,
        confidence=CONFIDENCE,
        processes=tuple(replace(process, page=None) if process in few else process for process in processes),
    )
    return replace(profile, warnings=tuple(_warnings(profile)))


def _warnings(profile: Profile) -> list[str]:
    """Limits of the figures' quality, each with the remedy."""
    quality, found = profile.quality, []
    if not quality.complete:
        found.append("perf was ended before it could finish its file: unwritten data is missing")
    if quality.lost:
        found.append(
            f"{quality.lost:,} records did not fit into the buffers: lower the frequency, or copy fewer bytes of "
            "each stack"
        )
    if quality.throttled:
        found.append(f"the kernel paused sampling {quality.throttled:,} times: lower the frequency")
    if quality.unreadable_lines:
        found.append(f"{quality.unreadable_lines:,} lines of perf script could not be understood")
    if quality.samples < LEAST_SAMPLES or quality.whole is None or quality.unresolved is None:
        found.append(f"only {quality.samples} samples: too few for shares; record for longer")
        return found
    if quality.whole < FEW_WHOLE:
        remedy = {
            "dwarf": f"copy more than {profile.stack_bytes} bytes of each stack",
            "fp": "use --call-graph dwarf, because programs and libraries are rarely built with frame pointers",
            "lbr": "use --call-graph dwarf, because the processor keeps only the last calls",
        }[profile.call_graph]
        found.append(f"{1 - quality.whole:.0%} of the stacks end too early, so that inclusive shares are too low: "
                     f"{remedy}")  # fmt: skip
    if quality.unresolved > MANY_UNRESOLVED:
        found.append(
            f"{quality.unresolved:.0%} of the samples are in functions without a name: install the libraries' debug "
            "symbols (packages -dbgsym or -dbg); families are known all the same"
        )
    return found


def _write_stacks(directory: Path, profile: Profile, samples: Samples) -> None:
    names = {process.pid: process.name for process in profile.processes}
    words = [_folded_name(frame) for frame in samples.frames]
    with (directory / FOLDED).open("w", encoding="utf-8") as file:
        for thread in samples.threads.values():
            head = f"{_plain(names[thread.pid])} ({thread.pid});{_plain(thread.name)} ({thread.tid})"
            for stack, weight in thread.stacks.items():
                file.write(f"{';'.join([head, *(words[number] for number in stack)])} {weight.weight}\n")


def _folded_name(frame: perf_data.Frame) -> str:
    """With the marks used by tools for folded stacks: [k] in the kernel, [i] inlined."""
    return _plain(frame.name) + ("_[k]" if frame.kernel else "_[i]" if frame.inlined else "")


def _plain(name: str) -> str:
    return name.replace(";", ":")


def _write_pages(directory: Path, profile: Profile, samples: Samples, families: Families) -> None:
    for old in directory.glob("flame_*"):
        old.unlink()
    for process in profile.processes:
        if process.page is not None:
            stacks = _stacks([t for t in samples.threads.values() if t.pid == process.pid], samples, families)
            drawing = flamegraph.drawn(stacks, unit=profile.unit, families=families.titles)
            path, words = directory / process.page, _words(process, profile)
            path.write_text(flamegraph.written(process.title, drawing, families.titles, words), encoding="utf-8")
            text = json.dumps(drawing, ensure_ascii=False, separators=(",", ":"))
            drawing_of(path).write_text(text, encoding="utf-8")
    (directory / INDEX).write_text(_index(profile), encoding="utf-8")


def drawing_of(page: Path) -> Path:
    """The file with the drawing data of a flame graph's page."""
    return page.with_suffix(".json")


def _stacks(
    threads: Sequence[ThreadStacks], samples: Samples, families: Families
) -> Iterator[tuple[list[flamegraph.Frame | str], int]]:
    made: dict[tuple[int, str], flamegraph.Frame] = {}
    for thread in threads:
        first = flamegraph.Frame(f"{thread.name} ({thread.tid})")
        for stack, weight in thread.stacks.items():
            frames: list[flamegraph.Frame | str] = [first]
            for key in zip(stack, families.of_stack(samples.frames, stack), strict=True):
                if key not in made:
                    frame = samples.frames[key[0]]
                    where = "inlined" if frame.inlined else "kernel" if frame.kernel else frame.object or ""
                    made[key] = flamegraph.Frame(frame.name, key[1], where)
                frames.append(made[key])
            yield frames, weight.weight


def facts(part: Sampled, profile: Profile) -> tuple[str, str]:
    """The sampled event, and the quality of the stacks."""
    sampled = f"{amount(part.weight, profile.unit)} in {part.samples:,} samples of {profile.event}"
    stacks = (
        f"by {profile.call_graph}; {SHARE.text(part.whole)} complete, {SHARE.text(part.unresolved)} of the "
        "samples in functions without a name"
    )
    return f"{sampled} at {profile.frequency_hz} Hz", stacks


def _words(part: Sampled, profile: Profile) -> list[str]:
    return [", stacks ".join(facts(part, profile)), *profile.warnings, *profile.notes]


def amount(weight: int, unit: str) -> str:
    """A weight for people."""
    if unit == "ns":
        return format_time(weight)
    return f"{weight / 1e9:.3g} G cycles" if weight >= 1e9 else f"{weight / 1e6:.3g} M cycles"


def _index(profile: Profile) -> str:
    graphs = [
        (p.title, p.page, (families_table("", p, profile), functions_table("", p, profile, TOP)))
        for p in profile.processes
        if p.page is not None
    ]
    return page.render(
        "profile.html",
        title=f"CPU profile of {profile.title}",
        facts=_words(profile.quality, profile),
        processes=processes_table(profile),
        graphs=graphs,
    )


_WHOLE = "share of the samples with a complete stack"
_UNRESOLVED = "share of the samples in such functions"
_INNERMOST = "share of the samples in the function itself"
_ITSELF = "share of the samples whose innermost frame belongs to it"


def processes_table(profile: Profile) -> Table[Process]:
    total, unit = profile.quality.weight, profile.unit
    return Table(
        "processes",
        "Processes",
        [
            Column("process", "process", lambda p: p.title, rank=0),
            Column("cpu", "CPU", lambda p: Cell(amount(p.weight, unit), p.weight), PLAIN, rank=0),
            Column("share", "share", lambda p: p.weight / total if total else None, SHARE, rank=0),
            Column("samples", "samples", lambda p: p.samples, COUNT, rank=2),
            Column("whole", "whole stacks", lambda p: p.whole, SHARE, rank=1, help=_WHOLE),
            Column("unresolved", "without a name", lambda p: p.unresolved, SHARE, rank=3, help=_UNRESOLVED),
        ],
        profile.processes,
    )


def families_table(title: str, part: Group, profile: Profile) -> Table[FamilyShares]:
    """For a process or a thread; without rows if it has too few samples for shares."""
    level = format_confidence(profile.confidence)
    return Table(
        "families",
        title,
        [
            Column("family", "family", lambda row: profile.families.get(row.family, row.family), rank=0),
            Column("self_share", "itself", lambda row: row.self_share, SHARE, rank=0, help=_ITSELF),
            Column("interval", f"{level} interval", _interval, rank=1),
            Column("inclusive_share", "including callees", lambda row: row.inclusive_share, SHARE, rank=2),
            Column("self_samples", "samples", lambda row: row.self_samples, COUNT, rank=3),
        ],
        [row for row in part.families if row.self_share is not None],
        [f"The interval is the sampling uncertainty of this recording (Wilson, {level})."],
    )


def functions_table(title: str, process: Process, profile: Profile, top: int) -> Table[FunctionShares]:
    """The hottest functions of a process, at most `top`; without rows if it has too few samples for shares."""
    level = format_confidence(profile.confidence)
    known = [row for row in process.functions if row.self_share is not None]
    shown = known[:top]
    rest = 1 - sum(row.self_share or 0 for row in shown)
    with_more = len(known) > top or len(known) == MOST_FUNCTIONS
    return Table(
        "functions",
        title,
        [
            Column("function", "hottest functions", _named, rank=0),
            Column("object", "file", lambda row: file_name(row.object or "") or None, rank=3),
            Column("family", "family", lambda row: profile.families.get(row.family, row.family), rank=3),
            Column("self_share", "itself", lambda row: row.self_share, SHARE, rank=0, help=_INNERMOST),
            Column("interval", f"{level} interval", _interval, rank=1),
            Column("inclusive_share", "including callees", lambda row: row.inclusive_share, SHARE, rank=2),
            Column("self_samples", "samples", lambda row: row.self_samples, COUNT, rank=4),
        ],
        shown,
        [f"The other functions have {SHARE.text(rest)} together."] if shown and with_more else [],
    )


def _named(row: FunctionShares) -> Cell:
    """Names in C++ can fill a page: the arguments are left out first."""
    name = row.function
    if len(name) > _LONGEST_NAME and "(" in name[1:]:
        name = f"{name[: name.index('(', 1)]}(…)"
    return Cell(name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…", row.function)


def _interval(row: Shares) -> str:
    low, high = row.self_low, row.self_high
    return "–" if low is None or high is None else f"{100 * low:.1f} to {SHARE.text(high)}"


def _write_tables(directory: Path, profile: Profile) -> None:
    """The families: for each process all its threads together (tid null), then each thread."""
    import polars as pl

    schema = {"pid": pl.Int64, "process": pl.String, "tid": pl.Int64, "thread": pl.String, "total_samples": pl.Int64,
              "whole": pl.Float64}  # fmt: skip
    shares = ["family", *(field.name for field in dataclasses.fields(Shares))]
    kinds = {"family": pl.String} | dict.fromkeys((n for n in shares if n.endswith(("_samples", "_weight"))), pl.Int64)
    schema |= {name: kinds.get(name, pl.Float64) for name in shares}
    rows = [
        (process.pid, process.name, tid, name, part.samples, part.whole, *(getattr(row, name) for name in shares))
        for process in profile.processes
        for part, tid, name in ((process, None, None), *((t, t.tid, t.name) for t in process.threads))
        for row in part.families
    ]
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    frame.write_parquet(directory / PARQUET)
    frame.write_csv(directory / CSV)
