"""A trace as one file for tools of others: Perfetto's own format, and folded stacks.

Both are written by native code (native/traceview/perfetto.h, folded.h); what is said here are names and doubts.

What each of them shows is in docs/tracing.md, Exports.
"""

from __future__ import annotations

import contextlib
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from perflab.errors import BadInput, PerflabError
from perflab.trace import names

if TYPE_CHECKING:
    import polars as pl

    from perflab.trace.source import NativeTrace, Source

Json = dict[str, Any]

FILE_FORMATS = ("perfetto", "folded", "flamegraph")
# Frames of stacks by what they are, in the order of the page's legend.
_FAMILIES = {
    "callback": "callbacks",
    "executor": "the executor's phases",
    "function": "functions",
    "other": "outside of executors",
}


def check_file(path: Path, *, force: bool) -> None:
    """Raises BadInput where an export may not go: a folder, a device, or a file that is there, unless forced."""
    try:
        if path.is_dir():
            raise BadInput(f"--output {path} is a folder; name a file in it")
        if path.exists() and not path.is_file():
            raise BadInput(f"--output {path} is no file; name another")
        if path.exists() and not force:
            raise BadInput(f"--output {path} is there already; name another, or replace it with --force")
    except OSError as error:
        raise BadInput(f"cannot look at --output {path}: {error.strerror}") from error


def export_file(
    trace: NativeTrace, path: Path, format_: str, *, force: bool = False, wall: bool = False
) -> dict[str, int]:
    """Writes the file, whole or not at all, and returns what is in it.

    Raises BadInput where `check_file` does, the format is none, or the trace has not what it needs (scheduler events
    for folded stacks, unless they are of `wall` time); PerflabError where the file cannot be written.
    """
    if format_ not in FILE_FORMATS:
        raise BadInput(f"--format {format_!r} is not one of {', '.join(FILE_FORMATS)}")
    if wall and format_ == "perfetto":
        raise BadInput("--wall is for --format folded and flamegraph; perfetto shows both times")
    check_file(path, force=force)
    if format_ != "perfetto" and not wall and trace.facts["scheduler"] is None:
        raise BadInput(
            "the trace has no scheduler events, so nobody knows what was on a CPU; record them, too, or weigh wall "
            "time with --wall"
        )
    options = perfetto_options(trace) if format_ == "perfetto" else {**_names(trace), "wall": wall}
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        counts = trace.export("perfetto" if format_ == "perfetto" else "folded", temporary, options)
        if format_ == "flamegraph":
            page = _flamegraph(trace, temporary.read_text().splitlines(), options, counts)
            counts["bytes"] = temporary.write_bytes(page.encode())
        temporary.replace(path)
    except OSError as error:
        raise PerflabError(f"cannot write {path}: {error.strerror}; choose another with --output") from error
    except PerflabError as error:
        line = str(error).replace(str(temporary), str(path))
        raise PerflabError(f"{line}; choose another with --output") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
    return counts


def _flamegraph(trace: Source, lines: list[str], options: Json, counts: dict[str, int]) -> str:
    """The page with the stacks of these lines; a switch on it merges processes."""
    from perflab.profile.flamegraph import Frame, folded, page
    from perflab.trace.quality import quality_of

    phases = {*trace.table("phases")["phase"].unique().cast(str).to_list(), "[executor]"}
    callbacks = set(options["callbacks"])

    def frame(place: int, name: str) -> Frame:
        if place < 2:  # process, thread
            return Frame(name)
        if name == "[other]":
            return Frame(name, "other")
        return Frame(name, "executor" if name in phases else "callback" if name in callbacks else "function")

    stacks = (([frame(*one) for one in enumerate(stack)], weight) for stack, weight in folded(lines))
    time = "Wall time" if options["wall"] else "Time on a CPU"
    facts = [f"{time} of threads, by executor phase, callback and function", *quality_of(trace).doubts()]
    if counts["without_end"]:
        facts.append(
            f"{names.plural(counts['without_end'], 'phase, callback or call', 'phases, callbacks and calls')} "
            "whose end was not seen: in no stack"
        )
    title = ", ".join(Path(path).name for path in trace.facts["paths"])
    return page(title, stacks, unit="ns", families=_FAMILIES, groups="processes", facts=facts)


def perfetto_options(trace: Source) -> Json:
    """What Perfetto shows beside the tables: names, what is doubtful, what was lost, and when."""
    from perflab.trace.messages import not_taken
    from perflab.trace.quality import quality_of

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
            for loss in quality.ledger.iter_rows(named=True)
        ],
        "marks": _ends_of_scheduler(trace.facts),
        "gaps": quality.gaps.select("begin_ns", "end_ns").rows(),
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
        text = "scheduler events end here: nobody knows what threads do from here on"
        found.append((scheduler["end_ns"], text))
    return found
