"""A trace for other tools: all that it becomes as a folder of files, or one file in a format of others.

    csv, parquet      DIR/tables/<table>.csv        what docs/tracing.md calls the tables
                      DIR/<answer>/<section>.csv    what `perflab trace summary, callbacks, ...` show
                      DIR/index.json                what there is: written last, so that it stands for a whole export
    perfetto, folded  written by native code (native/traceview/perfetto.h, folded.h); said here are names and doubts
    flamegraph        folded stacks as a page that draws itself

Each file appears whole or not at all. In CSV a value that is not known is an empty cell, a flag "true" or "false", and
an enumeration its name; Parquet keeps the types. What the formats of others show: docs/tracing.md, Exports.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

import polars as pl

from perflab.errors import BadInput, PerflabError
from perflab.formats.json_file import replaced
from perflab.profile import flamegraph
from perflab.trace import names
from perflab.trace.answer import SCHEMA_VERSION, Answer
from perflab.trace.callbacks import callbacks
from perflab.trace.columns import Column
from perflab.trace.executor import executor
from perflab.trace.locks import locks
from perflab.trace.messages import messages, not_taken
from perflab.trace.paths import Asked, paths
from perflab.trace.quality import LEDGER, quality_of
from perflab.trace.scheduling import scheduling
from perflab.trace.source import TABLES, NativeTrace, Source
from perflab.trace.starvation import starvation
from perflab.trace.summary import summary
from perflab.trace.why import why
from perflab.units import plural

Json = dict[str, Any]

FILES, FOLDERS = ("perfetto", "folded", "flamegraph"), ("csv", "parquet")
INDEX = "index.json"
# Frames of stacks by what they are, in the order of the page's legend.
_FAMILIES = {
    "callback": "callbacks",
    "executor": "the executor's phases",
    "function": "functions",
    "other": "outside of executors",
}


def answers(trace: Source) -> Iterator[Answer]:
    """Every answer about one trace, whole."""
    yield summary(trace)
    yield callbacks(trace)
    yield messages(trace)
    yield executor(trace, None)
    yield scheduling(trace)
    yield starvation(trace)
    yield locks(trace)
    yield why(trace)
    yield paths(trace, Asked(limit=None))


def check(place: Path, format_: str, *, force: bool = False, wall: bool = False) -> None:
    """Raises BadInput where an export may not go, unless forced, or the format is none."""
    if format_ not in (*FILES, *FOLDERS):
        raise BadInput(f"--format {format_!r} is not one of {', '.join((*FILES, *FOLDERS))}")
    if wall and format_ not in ("folded", "flamegraph"):
        raise BadInput("--wall is for --format folded and flamegraph; the others have both times")
    try:
        is_folder, is_there = place.is_dir(), place.exists()
        if format_ in FILES:
            if is_folder:
                raise BadInput(f"--output {place} is a folder; name a file in it")
            if is_there and not place.is_file():
                raise BadInput(f"--output {place} is no file; name another")
            if is_there and not force:
                raise BadInput(f"--output {place} is there already; name another, or replace it with --force")
        elif is_there and not is_folder:
            raise BadInput(f"--output {place} is not a directory; name another")
        elif is_folder and any(place.iterdir()) and not force:
            raise BadInput(f"--output {place} is not empty; name another, or write into it with --force")
    except OSError as error:
        raise BadInput(f"cannot look at --output {place}: {error.strerror}") from error


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    """What cannot be written is one line."""
    try:
        yield
    except (OSError, PerflabError, pl.exceptions.PolarsError) as error:
        said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        line = said.replace(f".{path.name}.tmp", path.name).removeprefix(f"cannot write {path}: ")
        raise PerflabError(f"cannot write {path}: {line}; choose another with --output") from error


@contextlib.contextmanager
def _whole(path: Path) -> Iterator[BinaryIO]:
    """A file, written whole or not at all. Raises PerflabError."""
    with _writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replaced(path) as file:
            yield file


def export(
    trace: Source,
    directory: Path,
    format_: str = "csv",
    *,
    force: bool = False,
    wrote: Callable[[Path], None] = lambda path: None,
) -> Json:
    """Writes all files of one of FOLDERS and returns the index; `wrote` is called for each of them.

    Raises BadInput where `check` does, PerflabError where a file cannot be written; those written before stay, without
    an index.
    """
    check(directory, format_, force=force)
    files: list[Json] = []

    def write(stem: str, frame: pl.DataFrame, defined: Mapping[str, Column] = {}, **more: Any) -> None:
        path = directory / f"{stem}.{format_}"
        with _whole(path) as file:
            (frame.write_csv if format_ == "csv" else frame.write_parquet)(file)
        columns = [
            {"name": name, "type": str(kind)} | ({"help": defined[name].help} if name in defined else {})
            for name, kind in frame.schema.items()
        ]
        files.append({"file": f"{stem}.{format_}", **more, "rows": frame.height, "columns": columns})
        wrote(path)

    # An index of an export before would speak of files that are about to change.
    with _writing(directory / INDEX):
        (directory / INDEX).unlink(missing_ok=True)
    for table in TABLES:
        write(f"tables/{table}", trace.table(table), kind="table", name=table)
    quality: Json = {}
    for answer in answers(trace):
        quality[answer.kind] = list(answer.quality)
        for section in answer.sections:
            write(
                f"{answer.kind}/{section.name}", section.frame, section.table.of, kind="section", answer=answer.kind,
                name=section.name, title=section.title, notes=list(section.notes), reasons=section.reasons,
            )  # fmt: skip
    index = {
        "schema_version": SCHEMA_VERSION,
        "format": format_,
        "paths": [str(path) for path in trace.facts["paths"]],
        "quality": quality,
        "files": files,
        "facts": trace.facts,
    }
    with _whole(directory / INDEX) as file:
        file.write(f"{json.dumps(index, indent=1, ensure_ascii=False, allow_nan=False)}\n".encode())
    wrote(directory / INDEX)
    return index


def export_file(
    trace: NativeTrace, path: Path, format_: str, *, force: bool = False, wall: bool = False
) -> dict[str, int]:
    """Writes a file of one of FILES and returns what is in it.

    Raises BadInput where `check` does, or the trace has not what it needs (scheduler events for folded stacks, unless
    they are of `wall` time); PerflabError where the file cannot be written.
    """
    check(path, format_, force=force, wall=wall)
    if format_ != "perfetto" and not wall and trace.facts["scheduler"] is None:
        raise BadInput(
            "the trace has no scheduler events, so it is unknown what was on a CPU; record them, too, or weigh "
            "wall time with --wall"
        )
    options = _perfetto_options(trace) if format_ == "perfetto" else {**_names(trace), "wall": wall}
    with _whole(path) as file:
        counts = trace.export("perfetto" if format_ == "perfetto" else "folded", Path(file.name), options)
        if format_ == "flamegraph":
            page = _flamegraph(trace, Path(file.name).read_text().splitlines(), options, counts)
            file.truncate(0)
            counts["bytes"] = file.write(page.encode())
    return counts


def _flamegraph(trace: Source, lines: list[str], options: Json, counts: dict[str, int]) -> str:
    """The page with the stacks of these lines; a switch on it merges processes."""
    phases = {*trace.table("phases")["phase"].unique().cast(str).to_list(), "[executor]"}
    callbacks = set(options["callbacks"])

    def frame(place: int, name: str) -> flamegraph.Frame:
        if place < 2:  # process, thread
            return flamegraph.Frame(name)
        if name == "[other]":
            return flamegraph.Frame(name, "other")
        return flamegraph.Frame(name, "executor" if name in phases else "callback" if name in callbacks else "function")

    stacks = (([frame(*one) for one in enumerate(stack)], weight) for stack, weight in flamegraph.folded(lines))
    time = "Wall time" if options["wall"] else "Time on a CPU"
    facts = [f"{time} of threads, by executor phase, callback and function", *quality_of(trace).doubts()]
    if counts["without_end"]:
        facts.append(
            f"{plural(counts['without_end'], 'phase, callback or call', 'phases, callbacks and calls')} "
            "whose end was not seen: in no stack"
        )
    title = ", ".join(Path(path).name for path in trace.facts["paths"])
    return flamegraph.page(title, stacks, unit="ns", families=_FAMILIES, groups="processes", facts=facts)


def _perfetto_options(trace: Source) -> Json:
    """What Perfetto shows beside the tables: names, what is doubtful, what was lost, and when."""
    quality = quality_of(trace)
    coverage = [f"{one.figure}: {one.basis()}" for one in quality.coverage]
    missing = not_taken(trace, quality)
    return {
        **_names(trace),
        "begin_ns": trace.facts["begin_ns"],
        "end_ns": trace.facts["end_ns"],
        "epoch_offset_ns": trace.facts["epoch_offset_ns"],
        "quality": [*quality.doubts(), *coverage, *_several_hosts(trace)],
        "losses": [
            {
                "begin_ns": loss["begin_ns"],
                "end_ns": loss["end_ns"],
                "track": f"events lost: {PurePosixPath(loss['file']).name}",
                "text": loss["message"],
            }
            for loss in (dict(zip(LEDGER.names, row, strict=True)) for row in quality.ledger)
        ],
        "marks": _ends_of_scheduler(trace.facts),
        "gaps": quality.gap_spans,
        "not_taken": missing.select("publication", "subscription_row").rows(),
    }


def _names(trace: Source) -> Json:
    """What the rows of tables are called, in their order."""
    several = trace.table("hosts").height > 1
    processes = [
        f"{row['process'] or 'process'}{' @ ' + (row['host'] or 'host') if several else ''}"
        for row in names.processes(trace).iter_rows(named=True)
    ]
    threads = [name or "thread" for name in trace.table("threads")["name"]]
    publishers = [topic or "to a topic that is not known" for topic in trace.table("publishers")["topic"]]
    subscriptions = [
        f"{row['topic'] or row['handle']} → {row['node'] or row['process'] or 'process'}"
        for row in names.objects(trace, "subscriptions").iter_rows(named=True)
    ]
    functions = [
        symbol or f"{address:#x}" for symbol, address in trace.table("functions").select("symbol", "address").rows()
    ]
    return {
        "processes": processes,
        "threads": threads,
        "callbacks": names.callbacks(trace)["label"].to_list(),
        "publishers": publishers,
        "subscriptions": subscriptions,
        "functions": functions,
    }


def _several_hosts(trace: Source) -> list[str]:
    hosts: pl.Series = trace.table("hosts")["name"]
    if len(hosts) < 2:
        return []
    return [
        f"{len(hosts)} hosts in one picture: their CPUs stand one after the other, and numbers of processes and "
        "threads from 10,000,000 on are such of another host, or used again, with a multiple of that added"
    ]


def _ends_of_scheduler(facts: Json) -> list[tuple[int, str]]:
    """Where scheduler events begin later or end earlier than the trace: threads are in no state before, and whatever is
    drawn after it is what they did last.
    """
    scheduler, found = facts["scheduler"], []
    if scheduler and scheduler["begin_ns"] > facts["begin_ns"]:
        found.append((scheduler["begin_ns"], "scheduler events begin here"))
    if scheduler and scheduler["end_ns"] < facts["end_ns"]:
        text = "scheduler events end here: what threads do from here on is unknown"
        found.append((scheduler["end_ns"], text))
    return found
