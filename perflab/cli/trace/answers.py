"""The verbs of `perflab trace` that read traces: questions about one trace, comparisons of two, and exports."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import inspect
import sys
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from perflab.cli.options import AsJson, with_options
from perflab.errors import BadInput, PerflabError
from perflab.option import one_of
from perflab.output import console, write_json
from perflab.phases import phase
from perflab.units import format_count, format_time, parse_duration

if TYPE_CHECKING:
    from perflab.trace.answer import Answer, Section
    from perflab.trace.scope import Scope
    from perflab.trace.source import NativeTrace, Reads

Paths = Annotated[
    list[Path],
    typer.Argument(
        metavar="PATH...",
        help="Folders with the traces of one session, user space and kernel; subfolders are read, too.",
        show_default=False,
    ),
]
Threads = Annotated[
    int, typer.Option(min=0, max=1024, metavar="N", help="Number of decoding threads.", show_default="one per CPU")
]
_FORMATS = ("table", "dot", "mermaid")  # of paths


@dataclass(frozen=True)
class Asked:
    """The options common to all answers, each a field with its typer declaration."""

    begin: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Only events after this time in the trace: 1.5s, 200ms.", show_default=False),
    ] = None
    end: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only events before this time in the trace.", show_default=False)
    ] = None
    node: Annotated[
        list[str] | None,
        typer.Option(metavar="NODE", help="Only these nodes; a name or a pattern, repeatable.", show_default="all"),
    ] = None
    topic: Annotated[
        list[str] | None,
        typer.Option(metavar="TOPIC", help="Only these topics; a name or a pattern, repeatable.", show_default="all"),
    ] = None
    as_json: AsJson = False
    whole: Annotated[bool, typer.Option("--all", help="Print all rows of all tables.")] = False
    top: Annotated[int | None, typer.Option(min=1, metavar="N", help="Print the first N rows of each table.")] = None
    threads: Threads = 0

    @classmethod
    def options(cls, *without: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
        """Gives these options, except some, to a verb with **values."""
        hints = get_type_hints(cls, include_extras=True)
        return with_options(
            lambda: [
                inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=hints[f.name])
                for f in dataclasses.fields(cls)
                if f.name not in without
            ]
        )

    def open(self, paths: Sequence[Path], reads: Reads | None = None, *, with_frames: bool = True) -> NativeTrace:
        """`reads`: which data an answer about the whole trace reads; an answer about a part may read everything."""
        in_part = any(option is not None for option in (self.begin, self.end, self.node, self.topic))
        return opened(paths, self.threads, None if in_part else reads, with_frames=with_frames)

    def scope(self, trace: NativeTrace) -> Scope:
        """What --begin, --end, --node and --topic leave of a trace. Raises BadInput."""
        from perflab.trace.scope import Scope

        return Scope.of(trace, begin=self.begin, end=self.end, nodes=self.node or (), topics=self.topic or ())

    def answer(
        self,
        paths: Sequence[Path],
        ask: Callable[[NativeTrace, Scope], Answer],
        trees: Collection[str] = (),
        reads: Reads | None = None,
        *,
        with_frames: bool = True,
    ) -> int:
        trace = self.open(paths, reads, with_frames=with_frames)
        return self.show(ask(trace, self.scope(trace)), trees)

    def show(self, answer: Answer, trees: Collection[str] = ()) -> int:
        """Prints it. `trees` are sections whose rows belong together: they are cut only if --top asks for it."""
        if self.top is not None:
            cut = tuple(_cut(section, self.top) for section in answer.sections)
            answer = dataclasses.replace(answer, sections=cut)
        if self.as_json:
            write_json(answer.document())
            return 0
        from perflab.report import trace_tables

        everything = self.whole or self.top is not None
        trace_tables.print_answer(console(), answer, everything=everything, uncut=trees)
        return 0


def opened(
    paths: Sequence[Path], threads: int = 0, reads: Reads | None = None, *, with_frames: bool = True
) -> NativeTrace:
    """Reads the traces of one session, as far as `reads` says. `with_frames`: the answer uses data frames.

    Raises BadInput if there is no trace, or no readable event in it.
    """
    from perflab.trace import open_trace

    for path in paths:
        try:
            if not path.exists():
                raise BadInput(f"{path}: no such file or folder")
        except OSError as error:
            raise BadInput(f"{path}: {error.strerror}") from error
    if with_frames:
        # Importing it takes a tenth of a second, which overlaps with reading the trace.
        threading.Thread(target=importlib.import_module, args=("polars",), name="polars", daemon=True).start()
    with phase(f"reading {', '.join(map(str, paths))}"):
        trace = open_trace(paths, threads, reads)
    if not any(part["events"] for part in trace.facts["traces"]):
        raise BadInput(f"{', '.join(map(str, paths))}: no readable events")
    return trace


def _cut(section: Section, rows: int) -> Section:
    return section if len(section.rows) <= rows else section.head(rows, f"The first {rows} of {len(section.rows)} rows")


@Asked.options()
def summary(paths: Paths, **options: Any) -> int:
    """Show what a trace contains, and how good its data are.

    Lists processes, nodes, topics and losses, and how far the losses affect the other answers.

    \b
        perflab trace summary ~/.ros/tracing/session
    """
    from perflab.trace.summary import READS, summary

    return Asked(**options).answer(paths, summary, reads=READS, with_frames=False)


@Asked.options()
def callbacks(paths: Paths, **options: Any) -> int:
    """Show how long callbacks ran, how regular they were, and what kept them from running.

    Showing where their time went needs the scheduler's events (sched_switch, sched_wakeup).

    \b
        perflab trace callbacks ~/.ros/tracing/session --top 10
    """
    from perflab.trace.callbacks import READS, callbacks

    return Asked(**options).answer(paths, callbacks, reads=READS)


@Asked.options()
def messages(paths: Paths, **options: Any) -> int:
    """Show how long messages took from publisher to callback, by stage, and how many were lost.

    One row for each edge: a publisher, a topic and a subscription.

    \b
        perflab trace messages ~/.ros/tracing/session --json
    """
    from perflab.trace.messages import READS, messages

    return Asked(**options).answer(paths, lambda trace, scope: messages(trace, scope=scope), reads=READS)


@Asked.options()
def executor(paths: Paths, **options: Any) -> int:
    """Show what executors spend their threads' time on: waiting, finding what is ready, executing.

    CPU time needs the scheduler's events. Programs built with -finstrument-functions are also shown function by
    function; the call tree shows the longest calls, with --all (also in JSON) all of them.

    \b
        perflab trace executor ~/.ros/tracing/session
    """
    from perflab.trace.executor import LARGEST, TREES, executor

    asked = Asked(**options)
    largest = None if asked.whole else LARGEST
    return asked.answer(paths, lambda trace, scope: executor(trace, largest, scope), TREES)


@Asked.options()
def scheduling(paths: Paths, **options: Any) -> int:
    """Show CPU time, wake-up latency, preemptions and periods of threads.

    Needs the scheduler's events (sched_switch, sched_wakeup), but none of ROS.

    \b
        perflab trace scheduling session/kernel --top 20
    """
    from perflab.trace.scheduling import scheduling

    return Asked(**options).answer(paths, scheduling)


@Asked.options()
def starvation(
    paths: Paths,
    longer_than: Annotated[
        str | None,
        typer.Option(
            "--longer-than", metavar="TIME", help="Shortest wait for a CPU to report: 10ms.", show_default="100ms"
        ),
    ] = None,
    **options: Any,
) -> int:
    """Show which threads were ready but did not run, which threads had their CPU, and what waited for them.

    Needs the scheduler's events. With ROS events, also shows the gaps in which a callback did not run, with the path
    of the message that ended each gap, and how many messages were lost before it.

    \b
        perflab trace starvation session
        perflab trace starvation session --longer-than 10ms --begin 2s --end 4s
    """
    from perflab.trace.starvation import LONGER_THAN_NS, short_chain
    from perflab.trace.starvation import starvation as answer

    threshold_ns = LONGER_THAN_NS if longer_than is None else parse_duration(longer_than, "--longer-than")
    asked = Asked(**options)
    trace = asked.open(paths)
    found = answer(trace, asked.scope(trace), threshold_ns)
    if not (asked.whole or asked.as_json):
        found = dataclasses.replace(found, sections=tuple(map(short_chain, found.sections)))
    return asked.show(found)


@Asked.options()
def locks(
    paths: Paths,
    longer_than: Annotated[
        str | None,
        typer.Option(
            "--longer-than", metavar="TIME", help="Shortest wait to list individually: 10ms.", show_default="1ms"
        ),
    ] = None,
    **options: Any,
) -> int:
    """Show which threads waited for locks, which threads held them and what the owner did meanwhile, and priority
    inversion.

    Needs the scheduler's events with lock waits: `perflab trace record --locks`, `--observer tracing:locks=on`.

    \b
        perflab trace locks session
        perflab trace locks session --longer-than 10ms --begin 2s --end 4s
    """
    from perflab.trace.locks import LONGER_THAN_NS
    from perflab.trace.locks import locks as answer

    threshold_ns = LONGER_THAN_NS if longer_than is None else parse_duration(longer_than, "--longer-than")
    return Asked(**options).answer(paths, lambda trace, scope: answer(trace, scope, threshold_ns))


@Asked.options()
def compare(
    a: Annotated[
        Path, typer.Argument(metavar="A", help="Folder with the first trace; differences are relative to it.")
    ],
    b: Annotated[Path, typer.Argument(metavar="B", help="Folder with the second trace.")],
    **options: Any,
) -> int:
    """Compare two traces: callbacks, messages, executors and threads of the same name.

    Shows figures, differences and ratios, but no verdict: each trace is a single trial.

    \b
        perflab trace compare before/session after/session
    """
    from perflab.trace.compare import EXECUTOR, compare

    with contextlib.suppress(OSError, RuntimeError):  # the last of the links in a loop
        if a.resolve() == b.resolve():
            raise BadInput(f"{b} is named twice and would be compared with itself; name another trace")
    asked = Asked(**options)
    first, second = asked.open([a]), asked.open([b])
    return asked.show(compare(first, second, (asked.scope(first), asked.scope(second))), (EXECUTOR.name,))


@Asked.options()
def paths(
    paths: Paths,
    file: Annotated[
        Path | None,
        typer.Option(
            "--paths",
            metavar="FILE|NAME",
            help="Named paths with deadlines and weights: a file (YAML, JSON), or a name from `perflab list paths`.",
        ),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="NODE|TOPIC", help="First node or topic of the paths; a name or a pattern."),
    ] = None,
    sink: Annotated[
        str | None, typer.Option("--to", metavar="NODE|TOPIC", help="Last node or topic of the paths.")
    ] = None,
    inferred: Annotated[
        bool,
        typer.Option("--inferred", help="Also follow the latest input of a node before it published; this is a guess."),
    ] = False,
    baseline: Annotated[
        list[Path] | None, typer.Option("--baseline", metavar="PATH", help="Another trace to compare with; repeatable.")
    ] = None,
    format_: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="Output format: table, dot or mermaid.",
            autocompletion=one_of(_FORMATS),
        ),
    ] = "table",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="File for the drawing.", show_default=False)
    ] = None,
    **options: Any,
) -> int:
    """Show how long messages took from source to sink, through all callbacks between, and where they were lost.

    Follows cause and effect as traced, never closeness in time; paths added by --inferred are marked.

    \b
        perflab trace paths ~/.ros/tracing/session --paths paths.yaml
        perflab trace paths ~/.ros/tracing/session --format dot --output flow.dot
    """
    from perflab.runs.traced import times_of
    from perflab.trace import paths_drawing, paths_named
    from perflab.trace.paths import LARGEST, answer_of, paths_of
    from perflab.trace.paths import Asked as Question

    asked = Asked(**options)
    if format_ not in _FORMATS:
        raise BadInput(f"--format {format_!r} is not one of {', '.join(_FORMATS)}")
    if format_ == "table" and output is not None:
        raise BadInput("--output is for drawings; add --format dot or --format mermaid")
    if format_ != "table" and asked.as_json:
        raise BadInput("--json and --format exclude each other; choose one")
    if format_ != "table" and baseline:
        raise BadInput("--baseline applies to tables; a drawing shows one trace")
    if baseline and (asked.begin is not None or asked.end is not None):
        raise BadInput("--begin and --end refer to one trace, and --baseline has its own time; leave one of them out")
    wanted = paths_named.find(file) if file is not None else ()
    trace = asked.open(paths)
    before = asked.open(baseline) if baseline else None
    largest, measured = None if asked.whole else LARGEST, next(filter(None, map(times_of, paths)), None)
    question = Question(wanted, source, sink, inferred, largest, asked.scope(trace), measured)
    found = paths_of(trace, question)
    if format_ != "table":
        _write(paths_drawing.dot(found) if format_ == "dot" else paths_drawing.mermaid(found), output)
        return 0
    if before is None:
        return asked.show(answer_of(found))
    of_baseline = dataclasses.replace(question, times=next(filter(None, map(times_of, baseline or ())), None))
    return asked.show(answer_of(found, paths_of(before, of_baseline, strict=False)))


def _write(text: str, output: Path | None) -> None:
    if output is None:
        sys.stdout.write(text)
        return
    try:
        output.write_text(text)
    except OSError as error:
        raise PerflabError(f"cannot write --output {output}: {error.strerror}") from error


@Asked.options("top")
def why(
    paths: Paths,
    later_than: Annotated[
        str | None,
        typer.Option(
            "--later-than", metavar="TIME", help="Messages that took longer than this: 5ms, 200us.", show_default=False
        ),
    ] = None,
    top: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="The N slowest messages.", show_default=False)
    ] = None,
    quantile: Annotated[
        float | None,
        typer.Option(
            metavar="Q",
            help="For every edge, the messages from this quantile on.",
            show_default="the run's definition of late; else 0.99",
        ),
    ] = None,
    slow_callbacks: Annotated[
        bool, typer.Option("--slow-callbacks", help="Explain slow callbacks instead of late messages.")
    ] = False,
    **options: Any,
) -> int:
    """Show what late messages waited for, and what delayed them.

    Splits the time of each late message, from its due time to its callback, into parts that add up to it: waits for a
    CPU and which thread had it, callbacks ahead in the executor, the sender's own work, the middleware, the transport.
    With --all and in JSON, lists all parts of each message.

    \b
        perflab trace why session --later-than 5ms
        perflab trace why session --slow-callbacks --top 20
    """
    from perflab.trace.why import Selection
    from perflab.trace.why import why as answer

    late = {"--later-than": later_than, "--top": top, "--quantile": quantile}
    said = [name for name, value in late.items() if value is not None]
    if len(said) > 1:
        raise BadInput(f"{' and '.join(said)} both define what is late; give one of them")
    selection = Selection(
        later_than_ns=None if later_than is None else parse_duration(later_than, "--later-than", zero_allowed=True),
        slowest=top,
        per_mille=None if quantile is None else _per_mille(quantile),
        slow_callbacks=slow_callbacks,
    )
    if not said and not slow_callbacks and len(paths) == 1:
        from perflab.runs.traced import asked_of

        # The run's own definition of late, if the trace belongs to one of its trials.
        selection = asked_of(paths[0]) or selection
    asked = Asked(**options)
    trace = asked.open(paths)
    found = answer(trace, dataclasses.replace(selection, scope=asked.scope(trace)))
    if not (asked.whole or asked.as_json):
        found = dataclasses.replace(found, sections=tuple(s for s in found.sections if s.name != "parts"))
    return asked.show(found, ("causes",))


def _per_mille(quantile: float) -> int:
    per_mille = round(quantile * 1000) if 0 <= quantile < 1 else -1
    if per_mille < 0 or abs(per_mille - quantile * 1000) > 1e-9:
        raise BadInput(f"--quantile {quantile:g} is not in [0, 1) with at most three decimals: 0.9, 0.99, 0.999")
    return per_mille


def _formats() -> Sequence[str]:
    from perflab.trace.export import FILES, FOLDERS

    return (*FILES, *FOLDERS)


def export(
    paths: Paths,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE_OR_DIR",
            help="Output file; a folder for csv and parquet.",
            show_default=False,
        ),
    ],
    format_: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="perfetto, folded, flamegraph, csv or parquet.",
            autocompletion=one_of(_formats),
        ),
    ] = "csv",
    wall: Annotated[bool, typer.Option("--wall", help="Weigh stacks by wall time instead of CPU time.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the file, or write into a folder that is not empty.")
    ] = False,
    as_json: AsJson = False,
    threads: Threads = 0,
) -> int:
    """Write a trace for other tools.

    \b
        perfetto       one file for ui.perfetto.dev: threads, callbacks, executors, scheduler, flows of messages
        folded         stacks weighed by time on a CPU, for flamegraph.pl, inferno and speedscope
        flamegraph     the same as a page that draws itself
        csv, parquet   all tables, and every section of all answers, one file each; index.json says what there is

    \b
        perflab trace export ~/.ros/tracing/session --format perfetto --output session.pftrace
        perflab trace export ~/.ros/tracing/session --format parquet --output tables
    """
    from perflab.trace import export as exporter

    exporter.check(output, format_, force=force, wall=wall)
    trace = opened(paths, threads)
    if format_ in exporter.FILES:
        counts = exporter.export_file(trace, output, format_, force=force, wall=wall)
        if as_json:
            write_json({"file": str(output), "format": format_, "counts": counts})
        else:
            sys.stdout.write(f"{output}\n{', '.join(_said(name, n) for name, n in counts.items() if n)}\n")
        return 0

    def wrote(path: Path) -> None:
        if not as_json:
            sys.stdout.write(f"{path}\n")

    index = exporter.export(trace, output, format_, force=force, wrote=wrote)
    if as_json:
        write_json({"directory": str(output), **{key: index[key] for key in ("format", "paths", "files")}})
    return 0


def _said(name: str, n: int) -> str:
    return format_time(n) if name == "total_ns" else f"{format_count(n)} {name.replace('_', ' ')}"
