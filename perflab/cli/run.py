"""`perflab run`: a workload on one or more middlewares, trial by trial."""

from __future__ import annotations

import json
import math
import shlex
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perflab.errors import BadInput, Unavailable
from perflab.units import format_duration, parse_duration

if TYPE_CHECKING:
    from perflab.experiment.run import RunResult
    from perflab.experiment.settings import Experiment

MAX_TRIALS = 10_000
MAX_SEED = 2**63 - 1


def _complete_workload(incomplete: str) -> list[str]:
    from perflab import catalog

    return [entry.name for entry in catalog.topologies() if entry.name.startswith(incomplete)]


def _complete_middleware(incomplete: str) -> list[str]:
    from perflab.middleware import REGISTRY

    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in REGISTRY if name.startswith(last)]


def _complete_executor(incomplete: str) -> list[str]:
    from perflab.experiment.settings import EXECUTORS

    return [name for name in EXECUTORS if name.startswith(incomplete)]


def run(
    workload: Annotated[
        list[str],
        typer.Argument(
            metavar="WORKLOAD...",
            help="A name of the catalog (`perflab list topologies`), or graph files that form one graph.",
            autocompletion=_complete_workload,
            show_default=False,
        ),
    ],
    middleware: Annotated[
        str | None,
        typer.Option(
            metavar="M[,M]", help="What carries the messages; default cyclonedds.", autocompletion=_complete_middleware
        ),
    ] = None,
    middleware_option: Annotated[
        list[str] | None,
        typer.Option(metavar="[NAME.]KEY=VALUE", help="An option of a middleware; repeatable.", show_default=False),
    ] = None,
    executor: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help="inline or single_threaded, for every executor; default as the graph says.",
            autocompletion=_complete_executor,
        ),
    ] = None,
    ipc: Annotated[str, typer.Option(metavar="on|off", help="Intra-process delivery.")] = "off",
    time: Annotated[str, typer.Option("--time", "-t", metavar="S", help="Measured time: 10, 2.5, 500ms, 2min.")] = "10",
    warmup: Annotated[str, typer.Option(metavar="S", help="Time before it that is not counted.")] = "0",
    trials: Annotated[int, typer.Option(metavar="N", help="Repetitions per middleware, interleaved.")] = 1,
    sampling: Annotated[
        str, typer.Option("--sampling", "-s", metavar="S", help="Interval of resource samples.")
    ] = "500ms",
    late_percentage: Annotated[
        float, typer.Option(metavar="P", help="Late: above this share of the period, in percent, ...")
    ] = 20.0,
    late_absolute: Annotated[float, typer.Option(metavar="US", help="... or above this, in µs.")] = 5000.0,
    too_late_percentage: Annotated[float, typer.Option(metavar="P", help="Too late, likewise.")] = 100.0,
    too_late_absolute: Annotated[float, typer.Option(metavar="US", help="Too late, likewise.")] = 50000.0,
    measure: Annotated[
        str | None,
        typer.Option(metavar="F[,F]", help="Figures beside the usual ones: dispatch, work.", show_default=False),
    ] = None,
    discovery_timeout: Annotated[
        str, typer.Option(metavar="S", help="Until all endpoints are matched; 0 starts without waiting.")
    ] = "30",
    network: Annotated[str, typer.Option(metavar="IFACE", help="Network interface.")] = "lo",
    condition: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME[:KEY=VALUE,...]", help="A condition; repeatable.", show_default=False),
    ] = None,
    observer: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME[:KEY=VALUE,...]", help="An observer; repeatable.", show_default=False),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Run directory; default runs/<UTC time>_<name>."),
    ] = None,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of the run; default that of the workload.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Of everything random; trial k uses N + k - 1.")] = 1,
    drain_quiet: Annotated[
        str, typer.Option(metavar="S", help="Silence after which what is missing at the end is lost.")
    ] = "1",
    drain_limit: Annotated[str, typer.Option(metavar="S", help="Bound of the wait for the last messages.")] = "10",
    as_json: Annotated[bool, typer.Option("--json", help="Print summary.json and nothing else.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the run directory and nothing else.")] = False,
) -> int:
    """Run a workload and measure it.

    Example: perflab run sierra_nevada --time 60
    """
    from perflab import native as native_programs
    from perflab.condition import parse as parse_conditions
    from perflab.experiment.run import execute
    from perflab.experiment.rundir import check_output
    from perflab.experiment.settings import Experiment, Limits, Settings, Thresholds
    from perflab.host import Host
    from perflab.middleware import DEFAULT, select
    from perflab.observer import parse as parse_observers
    from perflab.report import live
    from perflab.workload import topology

    settings = Settings(
        duration_ns=parse_duration(time, "--time"),
        warmup_ns=parse_duration(warmup, "--warmup", zero_allowed=True),
        sampling_ns=_sampling(sampling),
        discovery_timeout_ns=parse_duration(discovery_timeout, "--discovery-timeout", zero_allowed=True),
        measure=_measure(measure),
        executor=_executor(executor),
        network=_network(network),
        seed=_within(seed, 0, MAX_SEED, "--seed"),
        thresholds=Thresholds(
            late_percent=_threshold(late_percentage, "--late-percentage"),
            late_ns=round(_threshold(late_absolute, "--late-absolute") * 1000),
            too_late_percent=_threshold(too_late_percentage, "--too-late-percentage"),
            too_late_ns=round(_threshold(too_late_absolute, "--too-late-absolute") * 1000),
        ),
        limits=Limits(
            drain_quiet_ns=parse_duration(drain_quiet, "--drain-quiet"),
            drain_limit_ns=parse_duration(drain_limit, "--drain-limit"),
        ),
    )
    repetitions = _within(trials, 1, MAX_TRIALS, "--trials")
    _check_ipc(ipc)
    conditions = parse_conditions(condition or [])
    observers = parse_observers(observer or [])
    if output is not None:
        check_output(output)
    native = native_programs.find()
    loaded = topology.load(workload, native)
    experiment = Experiment(
        name=name or loaded.name,
        workload=loaded,
        middlewares=tuple(select(DEFAULT if middleware is None else middleware, middleware_option or [], native)),
        conditions=tuple(conditions),
        observers=tuple(observers),
        repetitions=repetitions,
        settings=settings,
        output=output,
        command_line=("perflab", *sys.argv[1:]),
    )
    _check_together(experiment)
    watched = sys.stderr.isatty() and not quiet
    result = execute(experiment, native, Host(), live.on_terminal if watched else live.silent)
    _print(result, as_json=as_json, quiet=quiet)
    if result.error is not None:
        raise result.error
    return 0


def _print(result: RunResult, *, as_json: bool, quiet: bool) -> None:
    path = shlex.quote(str(result.directory.path))
    if as_json:
        sys.stdout.write(json.dumps(result.summary, indent=1, ensure_ascii=False) + "\n")
    elif quiet:
        sys.stdout.write(f"{path}\n")
    else:
        from perflab.experiment.rundir import read_json
        from perflab.report import terminal

        manifest = read_json(result.directory.manifest) if result.directory.manifest.exists() else {}
        terminal.print_summary(terminal.console(), result.summary, manifest)
        sys.stdout.write(f"Run directory: {path}\nSee it again:  perflab show {path}\n")
    sys.stdout.flush()


def _sampling(text: str) -> int:
    sampling_ns = parse_duration(text, "--sampling")
    if sampling_ns < 10_000_000:
        raise BadInput(f"--sampling {text!r} is shorter than the 10ms that sampling all threads may take")
    return sampling_ns


def _executor(kind: str | None) -> str | None:
    from perflab.experiment.settings import EXECUTORS

    if kind is not None and kind not in EXECUTORS:
        raise BadInput(f"no executor named {kind!r}; there are {', '.join(EXECUTORS)}")
    return kind


def _measure(names: str | None) -> tuple[str, ...]:
    from perflab.experiment.settings import FIGURES

    chosen = tuple(dict.fromkeys(names.split(","))) if names is not None else ()
    for name in chosen:
        if name not in FIGURES:
            raise BadInput(f"--measure {name!r} is no figure; there are {', '.join(FIGURES)}")
    return chosen


def _check_ipc(ipc: str) -> None:
    if ipc == "on":
        raise Unavailable("--ipc on: intra-process delivery is not available in this version; use --ipc off")
    if ipc != "off":
        raise BadInput(f"--ipc {ipc!r} is not on or off")


def _network(interface: str) -> str:
    known = [name for _, name in socket.if_nameindex()]
    if interface not in known:
        raise BadInput(f"no network interface {interface!r}; there are {', '.join(known)}")
    return interface


def _threshold(value: float, option: str) -> float:
    if not math.isfinite(value) or not 0 <= value <= 1e12:
        raise BadInput(f"{option} {value} is not a number from 0 to 1e12")
    return value


def _within(value: int, low: int, high: int, option: str) -> int:
    if not low <= value <= high:
        raise BadInput(f"{option} {value} is not within {low}..{high}")
    return value


def _check_together(experiment: Experiment) -> None:
    """What makes no sense in combination."""
    graph = experiment.workload.graph
    if not graph.edges():
        raise BadInput(
            f"workload {experiment.workload.name!r} has no topic with a publisher and a subscription; "
            "name further files that complete it, e.g. `perflab run sierra_nevada debug_sierra_nevada_reliable`"
        )
    shortest_ns = graph.shortest_period_ns
    if shortest_ns is None:
        raise BadInput(f"workload {experiment.workload.name!r} has no timer: nothing would ever be sent")
    if shortest_ns > experiment.settings.duration_ns:
        raise BadInput(
            f"--time is shorter than the shortest period of {experiment.workload.name!r}, "
            f"{format_duration(shortest_ns / 1e9)}: nothing would be sent"
        )
    if len(experiment.workload.graph.processes) > 1:
        for middleware in experiment.middlewares:
            if not middleware.across_processes:
                raise BadInput(
                    f"middleware {middleware.name} does not reach across processes, and "
                    f"{experiment.workload.name!r} has {len(experiment.workload.graph.processes)} of them"
                )
