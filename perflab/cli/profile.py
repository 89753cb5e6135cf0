"""`perflab profile`: shows where a command or running processes spend CPU time."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perflab import models
from perflab import native as native_programs
from perflab.cli import recording
from perflab.cli.options import AsJson, TopFunctions
from perflab.cli.recording import LOOK_S, STOP_GRACE_S, Command, Companions, Duration, Folder, Limit
from perflab.errors import BadInput, Interrupted, PerflabError, TrialFailed, Unavailable
from perflab.native import Native
from perflab.output import console, write_json
from perflab.parameters import parse_size
from perflab.phases import phase
from perflab.processes import descendants, describe_status, read_process
from perflab.profile import DEFAULT_FREQUENCY_HZ, TOP, perf_data, record, result
from perflab.profile import families as families_module
from perflab.profile.families import Families
from perflab.profile.record import Plan, Recording
from perflab.profile.result import Profile
from perflab.workload.command import check_program

if TYPE_CHECKING:
    from perflab.experiment.companion import GuardedCompanion


def profile(
    command: Command = None,
    pids: Annotated[
        list[str] | None,
        typer.Option("--pid", metavar="PID", help="Profile this process and its descendants; 1,2,3 for several."),
    ] = None,
    system: Annotated[bool, typer.Option("--system", help="Profile all processes on all CPUs.")] = False,
    duration: Duration = None,
    frequency: Annotated[
        int, typer.Option("--frequency", "-F", metavar="HZ", min=1, max=50_000, help="Samples per second and CPU.")
    ] = DEFAULT_FREQUENCY_HZ,
    call_graph: Annotated[
        str, typer.Option("--call-graph", metavar="KIND", help="How stacks are unwound: dwarf, fp or lbr.")
    ] = "dwarf",
    stack: Annotated[
        str, typer.Option("--stack", metavar="SIZE", help="Bytes of each stack to copy for dwarf, up to 65528.")
    ] = "8KiB",
    families: Annotated[
        Path | None,
        typer.Option("--families", metavar="FILE", help="Your own rules for families, applied before perflab's."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Where to.", show_default="profiles/<time>_<command>"),
    ] = None,
    drop_raw: Annotated[bool, typer.Option("--drop-raw", help="Remove perf.data after it has been read.")] = False,
    show: Annotated[
        Path | None,
        typer.Option(
            "--show", metavar="DIR", help="Print an existing profile; with --families, classify its functions again."
        ),
    ] = None,
    threads: Annotated[bool, typer.Option("--threads", help="Also print a table for each thread.")] = False,
    top: TopFunctions = TOP,
    as_json: AsJson = False,
) -> int:
    """Show where CPU time is spent: a flame graph per process, and a table by family of functions.

    \b
        perflab profile -- ros2 run demo_nodes_cpp talker
        perflab profile --pid 4711 --duration 10s
        perflab profile --show profiles/20260101T120000Z_talker

    Records with perf, which must be installed. Processes that COMMAND starts are profiled, too.
    """
    rules = families_module.load(families)
    if show is not None:
        if command or pids or system:
            raise BadInput("--show prints an existing profile; use `perflab profile --show DIR`")
        return _print(_shown(show, rules if families is not None else None), show, as_json, threads, top)
    words = list(command or [])
    targets = _pids(pids or [])
    size = parse_size(stack, "--stack")
    record.check_stack(size, "--stack")
    settings = record.Settings(frequency, record.parse_call_graph(call_graph, "--call-graph"), size, system)
    limit = Limit(duration)
    if sum((bool(words), bool(targets), system)) != 1:
        raise BadInput("give one of a command, --pid and --system, e.g. `perflab profile -- COMMAND`")
    if not words and limit.seconds is None and not sys.stdin.isatty():
        raise BadInput("--duration is missing; use for example `perflab profile --pid PID --duration 10s`")
    plan = record.Plan.of(settings)
    native = native_programs.find()
    guard = native.program("perflab-guard")
    if words:
        check_program(words[0], Path.cwd())
    record.with_descendants(targets)  # tools are checked before anything is created
    name = Path(words[0]).name if words else str(targets[0]) if targets else "system"
    place = recording.make(output, "profile", "profiles", name)
    directory, status = place.path, None
    with recording.signals_interrupt(), _only_if_recorded(place):
        companions = Companions(guard, lambda _: directory / record.LOG)
        with phase(f"recording into {directory}; Ctrl-C ends it"):
            if words:
                recorded, status = _of_command(words, plan, directory, companions, limit, as_json)
            else:
                recorded = _of_processes(targets, plan, directory, companions, limit, native)
        with phase("reading what perf recorded"):
            made = result.analyse(directory, plan.perf, recorded, rules, keep_raw=not drop_raw)
    _print(made, directory, as_json, threads, top)
    if status:
        raise TrialFailed(f"{words[0]} {describe_status(status)}; the recording until then is in {directory}")
    return 0


def _pids(written: Sequence[str]) -> list[int]:
    words = [word.strip() for text in written for word in text.split(",")]
    for word in words:
        if not word.isdecimal() or len(word) > len(str(2**31)) or int(word) == 0:
            raise BadInput(f"--pid {word!r} is not a process id")
    return list(dict.fromkeys(int(word) for word in words))


@contextlib.contextmanager
def _only_if_recorded(place: Folder) -> Iterator[None]:
    """Leaves no folder behind if nothing could be recorded."""
    try:
        yield
    except (Unavailable, BadInput):
        if not (place.path / record.DATA).exists():
            place.take_back()
        raise


def _of_command(
    words: Sequence[str], plan: Plan, directory: Path, companions: Companions, limit: Limit, quiet: bool
) -> tuple[Recording, int | None]:
    """Returns the command's status; None if perflab ended it."""
    interrupted: BaseException | None = None
    with _output_to_stderr(quiet):
        companion = companions.run(record.command_line(plan, directory, words))
    try:
        done, perf_cpu_ns = _wait(companion, limit)
    except (KeyboardInterrupt, Interrupted) as error:
        interrupted, done, perf_cpu_ns = error, False, None
    try:
        if not done:
            _end_command(companion)
    finally:
        companion.stop(record.END_GRACE_S)
    if isinstance(interrupted, Interrupted):
        raise interrupted
    if not _has_samples(directory):
        raise Unavailable(f"perf: {record.complaint(directory / record.LOG)}")
    return Recording.of(plan, command=tuple(words), perf_cpu_ns=perf_cpu_ns), companion.status if done else None


def _has_samples(directory: Path) -> bool:
    """Whether perf wrote a usable file; otherwise its log says why not."""
    try:
        perf_data.read(directory / record.DATA)
    except BadInput:
        return False
    return True


@contextlib.contextmanager
def _output_to_stderr(wanted: bool) -> Iterator[None]:
    """With --json, stdout has only the document: programs started meanwhile print to stderr."""
    if not wanted:
        yield
        return
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        os.dup2(2, 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def _wait(companion: GuardedCompanion, limit: Limit) -> tuple[bool, int | None]:
    """Whether the command ended by itself in time, and the CPU time of perf when last read."""
    used: int | None = None
    while companion.status is None and not companion.finished:
        if limit.is_over:
            return False, used
        companion.receive(LOOK_S)
        used = record.cpu_ns(companion.pid) or used
    return True, used


def _end_command(companion: GuardedCompanion) -> None:
    """Does what Ctrl-C does; perf ends after the command, and writes what it still holds."""
    process = record.command_of(companion.pid) if companion.pid is not None else None
    deadline = time.monotonic() + STOP_GRACE_S
    for signum, until in ((signal.SIGINT, deadline), (signal.SIGKILL, deadline + STOP_GRACE_S)):
        if process is None:
            return
        for pid in _group(process.pid):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signum)
        while companion.status is None and time.monotonic() < until:
            with contextlib.suppress(KeyboardInterrupt):
                companion.receive(LOOK_S)
        if companion.status is not None:
            return


def _group(pid: int) -> list[int]:
    """The command and its process group, as a terminal would signal them; perf leads that group."""
    found = [pid]
    with contextlib.suppress(ProcessLookupError):
        group = os.getpgid(pid)
        for below in descendants(pid):
            with contextlib.suppress(ProcessLookupError):
                if os.getpgid(below.pid) == group:
                    found.append(below.pid)
    return found


def _of_processes(
    pids: Sequence[int], plan: Plan, directory: Path, companions: Companions, limit: Limit, native: Native
) -> Recording:
    attached = record.Attached(directory, plan, pids, companions.start, native)
    identities = [process for pid in pids if (process := read_process(pid)) is not None]
    try:
        attached.begin(companions.wait)
        with contextlib.suppress(KeyboardInterrupt):
            while not limit.is_over:
                companions.wait(LOOK_S)
                if companions.running[0].status is not None:
                    raise PerflabError(f"perf ended early: {record.complaint(directory / record.LOG)}")
                if pids and not any(process.alive for process in identities):
                    break
    finally:
        attached.end()
    return attached.recording


def _shown(directory: Path, families: Families | None) -> Profile:
    found = result.load(directory)
    if families is None:
        return found
    if not (directory / record.DATA).is_file():
        raise BadInput(f"{directory} no longer has {record.DATA}, so other families cannot be applied")
    return result.analyse(directory, record.find()[0], found, families)


def _print(found: Profile, directory: Path, as_json: bool, threads: bool, top: int) -> int:
    if as_json:
        write_json(models.as_json(found))
    else:
        from perflab.report import profile_tables

        profile_tables.print_profile(console(), found, directory, threads=threads, top=top)
    return 0
