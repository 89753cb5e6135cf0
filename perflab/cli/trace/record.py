"""`perflab trace record`: records a program, or the whole machine for a while, as a trace."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perflab import native
from perflab.cli import recording
from perflab.cli.options import AsJson
from perflab.cli.recording import LOOK_S, STOP_GRACE_S, Command, Companions, Duration, Limit
from perflab.errors import BadInput, Interrupted, PerflabError, TrialFailed
from perflab.output import write_json
from perflab.parameters import parse_size
from perflab.phases import phase
from perflab.trace import open_trace
from perflab.tracer import AUTO, NONE, SCHEDULERS, Recording, RecordingSettings, check, losses
from perflab.tracer.lttng import UserSpaceSettings
from perflab.units import format_bytes
from perflab.workload.command import check_program

if TYPE_CHECKING:
    from perflab.experiment.companion import GuardedCompanion

USER_SPACE, SCHEDULER = "user space", "the scheduler"
COUNTED_BYTES = 512 << 20  # a larger trace is not read just to count its events: that takes seconds and memory


def record(
    command: Command = None,
    scheduler: Annotated[
        bool,
        typer.Option(
            "--scheduler", help="Also record the scheduler's events: which thread ran when, and which woke which."
        ),
    ] = False,
    scheduler_from: Annotated[
        str | None,
        typer.Option(
            "--scheduler-from", metavar="NAME", help="Like --scheduler, recorded with perf_event, ebpf, lttng, or auto."
        ),
    ] = None,
    locks: Annotated[bool, typer.Option("--locks", help="Like --scheduler, with lock waits and lock owners.")] = False,
    whole_system: Annotated[
        bool, typer.Option("--whole-system", help="Keep the scheduler events of all processes, not only of COMMAND's.")
    ] = False,
    events: Annotated[
        list[str] | None,
        typer.Option(
            "--event",
            metavar="PATTERN",
            help="User-space events to record; repeatable.",
            show_default="ros2:*, perflab:*",
        ),
    ] = None,
    contexts: Annotated[
        list[str] | None,
        typer.Option("--context", metavar="NAME", help="LTTng contexts beside vpid and vtid; repeatable."),
    ] = None,
    buffer: Annotated[
        str, typer.Option("--buffer", metavar="SIZE", help="Size of the user-space buffers, per CPU.")
    ] = "8MiB",
    snapshot: Annotated[
        bool,
        typer.Option(
            "--snapshot", help="Flight recorder: keep only what fits into the buffers, and write it at the end."
        ),
    ] = False,
    duration: Duration = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Where to.", show_default="traces/<time>_<command>"),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Record ROS 2 events of a program and of all that it starts, and the scheduler's on request.

    \b
        perflab trace record --scheduler -- ros2 launch my_robot bringup.launch.py
        perflab trace record --scheduler --whole-system --duration 10

    Without COMMAND, everything that runs is recorded. Ctrl-C ends the command and the recording in order.
    """
    words = list(command or [])
    if whole_system and words and not (scheduler or scheduler_from or locks):
        raise BadInput("--whole-system applies to the scheduler's events: give --scheduler as well")
    if scheduler_from is not None and scheduler_from not in SCHEDULERS:
        raise BadInput(f"--scheduler-from {scheduler_from!r} is not one of {', '.join(SCHEDULERS)}")
    size = parse_size(buffer, "--buffer")
    if size == 0:
        raise BadInput(f"--buffer {buffer!r} must be more than 0")
    for option, names in (("--event", events), ("--context", contexts)):
        if not all(name.strip() for name in names or ()):
            raise BadInput(f"{option} '' is empty; leave it out for the default")
    default = UserSpaceSettings()
    settings = RecordingSettings(
        user_space=UserSpaceSettings(
            events=tuple(events) if events else default.events,
            contexts=(*default.contexts, *(name for name in contexts or () if name not in default.contexts)),
            buffer_bytes=size,
            snapshot=snapshot,
        ),
        scheduler=scheduler_from or (AUTO if scheduler or locks else NONE),
        locks=locks,
        whole_system=whole_system or not words,
        flight_recorder_bytes=size if snapshot else None,
    )
    limit = Limit(duration)
    if not words and limit.seconds is None and not sys.stdin.isatty():
        raise BadInput(
            "neither a command nor --duration was given; use for example `perflab trace record --duration 10s`"
        )
    programs = native.find()
    check(settings, programs)
    if words:
        check_program(words[0], Path.cwd())
    place = recording.make(output, "recording", "traces", Path(words[0]).name if words else "system")
    directory = place.path
    guard = programs.program("perflab-guard")
    with (
        Companions(guard, lambda name: directory / "logs" / f"{name}.log") as companions,
        recording.signals_interrupt(),
    ):
        recorder = Recording(directory, settings, start=companions.start, native=programs)
        try:
            recorder.begin([os.getpid()])
        except BaseException:
            companions.close()
            place.take_back()
            raise
        try:
            with phase(f"recording into {directory}; Ctrl-C ends it"):
                status = _run(companions, words, recorder.environment, limit)
        finally:
            document = _end(recorder, words, directory)
    if as_json:
        write_json({"directory": str(directory), **document})
    else:
        _tell(directory, document, losses(document))
    if status not in (0, None):
        raise TrialFailed(f"{words[0]} exited with status {status}; the recording until then is in {directory}")
    return 0


def _end(recorder: Recording, words: Sequence[str], directory: Path) -> dict[str, Any]:
    try:
        return recorder.end(words or None)
    except PerflabError as error:
        error.args = (f"{error}; the recording until then is in {directory}",)
        raise


def _run(companions: Companions, words: Sequence[str], environment: dict[str, str], limit: Limit) -> int | None:
    """The exit status of the command; None without a command, or if perflab ended it."""
    if not words:
        with contextlib.suppress(KeyboardInterrupt):
            while not limit.is_over:
                time.sleep(LOOK_S)
        return None
    program = companions.run(words, environment)
    try:
        while program.status is None and not limit.is_over:
            program.receive(LOOK_S)
        if program.status is not None:
            return program.status
    except KeyboardInterrupt:
        pass
    except Interrupted:
        _interrupt(program)
        raise
    _interrupt(program)
    return None


def _interrupt(program: GuardedCompanion) -> None:
    """Does what Ctrl-C does to a program in a terminal; the program has some time to end in order."""
    program.signal(signal.SIGINT)
    deadline = time.monotonic() + STOP_GRACE_S
    with contextlib.suppress(KeyboardInterrupt):
        while program.status is None and time.monotonic() < deadline:
            program.receive(LOOK_S)
    program.stop()


def _events(directory: Path, size: int) -> dict[str, int] | None:
    """The number of events in the trace; None if counting would take long or the trace cannot be read."""
    if size > COUNTED_BYTES:
        return None
    try:
        with open_trace([directory]) as trace:
            parts = trace.facts["traces"]
    except PerflabError:
        return {USER_SPACE: 0, SCHEDULER: 0} if not any(directory.rglob("metadata")) else None
    counts = {USER_SPACE: 0, SCHEDULER: 0}
    for part in parts:
        counts[SCHEDULER if part["domain"] == "kernel" else USER_SPACE] += part["events"]
    return counts


def _tell(directory: Path, document: dict[str, Any], lost: Sequence[str]) -> None:
    seconds = (document["ended_ns"] - document["began_ns"]) / 1e9
    size = sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
    tracers = {USER_SPACE: "LTTng"} if document["user_space"] else {}
    if document["scheduler"]:
        tracers[SCHEDULER] = document["scheduler"]["tracer"]
    events = _events(directory, size)
    what = ", ".join(
        f"{part} ({tracer})" if events is None else f"{events[part]:,} events of {part} ({tracer})"
        for part, tracer in tracers.items()
    )
    sys.stderr.write(f"perflab: recorded {seconds:.1f} s into {directory}: {what}; {format_bytes(size)}\n")
    for line in lost:
        sys.stderr.write(f"perflab: {line}\n")
    kept = {path.relative_to(directory).parts[0] for path in directory.rglob("metadata")}
    if document["user_space"] and not kept - {"scheduler", "kernel"}:
        patterns = ", ".join(document["user_space"]["events"])
        sys.stderr.write(
            "perflab: no user-space events were recorded: no process that ran is traced by LTTng (events: "
            f"{patterns}); was it built with tracepoints?\n"
        )
    if kept:
        sys.stderr.write(f"perflab: next: perflab trace summary {directory}\n")
