"""`perflab run`: a workload in one or more variants, trial by trial."""

from __future__ import annotations

import json
import math
import shlex
import socket
import sys
from collections.abc import Sequence
from dataclasses import replace
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

# The groups of `perflab run --help`.
_VARIANTS = "Variants (every combination of what is listed runs)"
_LENGTH = "How long, how often"
_THREADS = "Threads and nodes"
_FIGURES = "What is measured"
_ENDS = "Beginning and end of a trial"
_AROUND = "Around the workload"
_OUTPUT = "Output"


def _complete_workload(incomplete: str) -> list[str]:
    from perflab import catalog

    return [entry.name for entry in catalog.topologies() if entry.name.startswith(incomplete)]


def _complete_middleware(incomplete: str) -> list[str]:
    from perflab.middleware import REGISTRY

    before = incomplete[: max(incomplete.rfind(","), incomplete.rfind("+")) + 1]
    return [f"{before}{name}" for name in REGISTRY if name.startswith(incomplete[len(before) :])]


def _complete_listed(words: Sequence[str], incomplete: str) -> list[str]:
    """The last one of a list that is being typed."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{word}" for word in words if word.startswith(last)]


def _complete_executor(incomplete: str) -> list[str]:
    from perflab.experiment.variant import EXECUTORS

    return _complete_listed(tuple(EXECUTORS), incomplete)


def _complete_ipc(incomplete: str) -> list[str]:
    return _complete_listed(("off", "on"), incomplete)


def _complete_pass_by(incomplete: str) -> list[str]:
    from perflab.experiment.variant import PASS_BY

    return _complete_listed(PASS_BY, incomplete)


def _complete_framing(incomplete: str) -> list[str]:
    from perflab.experiment.variant import FRAMINGS

    return [framing for framing in FRAMINGS if framing.startswith(incomplete)]


def _complete_measure(incomplete: str) -> list[str]:
    from perflab.experiment.settings import FIGURES

    return _complete_listed(FIGURES, incomplete)


def _complete_switch(incomplete: str) -> list[str]:
    return [word for word in ("on", "off") if word.startswith(incomplete)]


def _complete_node_type(incomplete: str) -> list[str]:
    return [word for word in ("node", "lifecycle") if word.startswith(incomplete)]


def _complete_network(incomplete: str) -> list[str]:
    return [name for _, name in socket.if_nameindex() if name.startswith(incomplete)]


def _complete_thread(incomplete: str) -> list[str]:
    from perflab.experiment.scheduling import POLICIES, ROLES

    key, equals, value = incomplete.partition("=")
    if equals:
        words = [policy if policy == "OTHER" else f"{policy}:" for policy in POLICIES]
        return [f"{key}={word}" for word in words if word.startswith(value)]
    process, dot, last = key.rpartition(".")
    return [f"{process}{dot}{role}=" for role in ROLES if role.startswith(last)]


def _complete_condition(incomplete: str) -> list[str]:
    from perflab.condition import REGISTRY

    return [name for name in REGISTRY if name.startswith(incomplete)]


def _complete_observer(incomplete: str) -> list[str]:
    from perflab.observer import REGISTRY

    return [name for name in REGISTRY if name.startswith(incomplete)]


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
            metavar="M[,M+M]",
            help="What carries the messages; default cyclonedds. M+M gives each process of the graph its own.",
            autocompletion=_complete_middleware,
            rich_help_panel=_VARIANTS,
        ),
    ] = None,
    executor: Annotated[
        str | None,
        typer.Option(
            metavar="E[,E]",
            help="What runs the callbacks: inline, single_threaded, events, multi_threaded[:N]; default as the graph "
            "says.",
            autocompletion=_complete_executor,
            rich_help_panel=_VARIANTS,
        ),
    ] = None,
    ipc: Annotated[
        str,
        typer.Option(
            metavar="off|on|off,on",
            help="Within a process hand messages over without the middleware.",
            autocompletion=_complete_ipc,
            rich_help_panel=_VARIANTS,
        ),
    ] = "off",
    pass_by: Annotated[
        str | None,
        typer.Option(
            metavar="P[,P]",
            help="How publishers hand over messages: shared, unique, loaned; default as the graph says.",
            autocompletion=_complete_pass_by,
            rich_help_panel=_VARIANTS,
        ),
    ] = None,
    middleware_option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME.]KEY=VALUE",
            help="An option of a middleware (`perflab list middlewares`); repeatable.",
            show_default=False,
            rich_help_panel=_VARIANTS,
        ),
    ] = None,
    service_framing: Annotated[
        str | None,
        typer.Option(
            metavar="F",
            help="How replies are tied to requests: rmw_fastrtps, rmw_cyclonedds; default what suits the middleware.",
            autocompletion=_complete_framing,
            rich_help_panel=_VARIANTS,
        ),
    ] = None,
    time: Annotated[
        str,
        typer.Option("--time", "-t", metavar="S", help="Measured time: 10, 2.5, 500ms, 2min.", rich_help_panel=_LENGTH),
    ] = "10",
    warmup: Annotated[
        str, typer.Option(metavar="S", help="Time before it that is not counted.", rich_help_panel=_LENGTH)
    ] = "0",
    trials: Annotated[
        int, typer.Option(metavar="N", help="Repetitions of every variant, interleaved.", rich_help_panel=_LENGTH)
    ] = 1,
    seed: Annotated[
        int,
        typer.Option(metavar="N", help="Of everything random; repetition k uses N + k - 1.", rich_help_panel=_LENGTH),
    ] = 1,
    thread: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[PROCESS.]ROLE=SCHEDULING",
            help="How the threads of a ROLE, executors or middleware, are scheduled: POLICY[:PRIORITY][@CPUS], e.g. "
            "executors=RR:98@1, ping.middleware=OTHER@0-1; repeatable.",
            autocompletion=_complete_thread,
            show_default=False,
            rich_help_panel=_THREADS,
        ),
    ] = None,
    lock_memory: Annotated[
        str | None,
        typer.Option(
            metavar="on|off",
            help="Keep all pages of the processes in memory; default as the graph says.",
            autocompletion=_complete_switch,
            rich_help_panel=_THREADS,
        ),
    ] = None,
    name_threads: Annotated[
        str,
        typer.Option(
            metavar="on|off",
            help="Call the threads of an executor after its nodes.",
            autocompletion=_complete_switch,
            rich_help_panel=_THREADS,
        ),
    ] = "on",
    ros_params: Annotated[
        str,
        typer.Option(
            metavar="on|off",
            help="Parameter services of the nodes; on needs the rclcpp runtime.",
            autocompletion=_complete_switch,
            rich_help_panel=_THREADS,
        ),
    ] = "off",
    node_type: Annotated[
        str,
        typer.Option(
            metavar="node|lifecycle",
            help="Kind of the nodes; lifecycle needs the rclcpp runtime.",
            autocompletion=_complete_node_type,
            rich_help_panel=_THREADS,
        ),
    ] = "node",
    sampling: Annotated[
        str,
        typer.Option("--sampling", "-s", metavar="S", help="Interval of resource samples.", rich_help_panel=_FIGURES),
    ] = "500ms",
    measure: Annotated[
        str | None,
        typer.Option(
            metavar="F[,F]",
            help="Figures beside the usual ones: dispatch, work.",
            autocompletion=_complete_measure,
            show_default=False,
            rich_help_panel=_FIGURES,
        ),
    ] = None,
    late_percentage: Annotated[
        float,
        typer.Option(
            metavar="P", help="Late: above this share of the period, in percent, ...", rich_help_panel=_FIGURES
        ),
    ] = 20.0,
    late_absolute: Annotated[
        float, typer.Option(metavar="US", help="... or above this, in µs.", rich_help_panel=_FIGURES)
    ] = 5000.0,
    too_late_percentage: Annotated[
        float, typer.Option(metavar="P", help="Too late, likewise.", rich_help_panel=_FIGURES)
    ] = 100.0,
    too_late_absolute: Annotated[
        float, typer.Option(metavar="US", help="Too late, likewise.", rich_help_panel=_FIGURES)
    ] = 50000.0,
    network: Annotated[
        str,
        typer.Option(
            metavar="IFACE", help="Network interface.", autocompletion=_complete_network, rich_help_panel=_ENDS
        ),
    ] = "lo",
    discovery_timeout: Annotated[
        str,
        typer.Option(
            metavar="S", help="Until all endpoints are matched; 0 starts without waiting.", rich_help_panel=_ENDS
        ),
    ] = "30",
    drain_quiet: Annotated[
        str,
        typer.Option(
            metavar="S", help="Silence after which what is missing at the end is lost.", rich_help_panel=_ENDS
        ),
    ] = "1",
    drain_limit: Annotated[
        str, typer.Option(metavar="S", help="Bound of the wait for the last messages.", rich_help_panel=_ENDS)
    ] = "10",
    condition: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[:KEY=VALUE,...]",
            help="A condition; repeatable.",
            autocompletion=_complete_condition,
            show_default=False,
            rich_help_panel=_AROUND,
        ),
    ] = None,
    observer: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[:KEY=VALUE,...]",
            help="An observer; repeatable.",
            autocompletion=_complete_observer,
            show_default=False,
            rich_help_panel=_AROUND,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Run directory; default runs/<UTC time>_<name>.",
            rich_help_panel=_OUTPUT,
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Name of the run; default that of the workload.", rich_help_panel=_OUTPUT),
    ] = None,
    edges: Annotated[
        bool,
        typer.Option("--edges", help="Print every edge, also of more than two variants.", rich_help_panel=_OUTPUT),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print summary.json and nothing else.", rich_help_panel=_OUTPUT)
    ] = False,
    quiet: Annotated[
        bool,
        typer.Option("--quiet", "-q", help="Print the run directory and nothing else.", rich_help_panel=_OUTPUT),
    ] = False,
) -> int:
    """Run a workload and measure it.

    Example: perflab run sierra_nevada --time 60

    Example: perflab run sierra_nevada --executor single_threaded,events --ipc off,on --trials 3
    """
    from perflab import native as native_programs
    from perflab.condition import parse as parse_conditions
    from perflab.experiment import scheduling
    from perflab.experiment.run import execute
    from perflab.experiment.rundir import check_output
    from perflab.experiment.settings import Experiment, Limits, Settings, Thresholds
    from perflab.experiment.variant import parse_executors, parse_framing, parse_ipc, parse_pass_by, product_of
    from perflab.host import Host
    from perflab.middleware import DEFAULT, select
    from perflab.observer import parse as parse_observers
    from perflab.report import live
    from perflab.workload import topology

    settings = Settings(
        duration_ns=parse_duration(time, "--time"),
        warmup_ns=parse_duration(warmup, "--warmup", zero_allowed=True),
        sampling_ns=_sampling(sampling, time),
        discovery_timeout_ns=parse_duration(discovery_timeout, "--discovery-timeout", zero_allowed=True),
        measure=_measure(measure),
        lock_memory=None if lock_memory is None else _switch(lock_memory, "--lock-memory"),
        name_threads=_switch(name_threads, "--name-threads"),
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
    executors, ipcs, passing = parse_executors(executor), parse_ipc(ipc), parse_pass_by(pass_by)
    framing = parse_framing(service_framing)
    _check_rclcpp(ros_params, node_type)
    conditions = parse_conditions(condition or [])
    observers = parse_observers(observer or [])
    if output is not None:
        check_output(output)
    native = native_programs.find()
    loaded = topology.load(workload, native)
    middlewares = select(DEFAULT if middleware is None else middleware, middleware_option or [], native)
    experiment = Experiment(
        name=name or loaded.name,
        workload=loaded,
        variants=product_of(middlewares, executors, ipcs, passing, framing),
        conditions=tuple(conditions),
        observers=tuple(observers),
        repetitions=repetitions,
        settings=replace(settings, threads=scheduling.parse(thread or [], loaded.graph.processes)),
        output=output,
        command_line=("perflab", *sys.argv[1:]),
    )
    _check_together(experiment)
    watched = sys.stderr.isatty() and not quiet
    result = execute(experiment, native, Host(), live.on_terminal if watched else live.silent)
    _print(result, as_json=as_json, quiet=quiet, edges=edges)
    if result.error is not None:
        raise result.error
    return 0


def _print(result: RunResult, *, as_json: bool, quiet: bool, edges: bool) -> None:
    path = shlex.quote(str(result.directory.path))
    if as_json:
        sys.stdout.write(json.dumps(result.summary, indent=1, ensure_ascii=False) + "\n")
    elif quiet:
        sys.stdout.write(f"{path}\n")
    else:
        from perflab.experiment.rundir import read_json
        from perflab.report import terminal

        manifest = read_json(result.directory.manifest) if result.directory.manifest.exists() else {}
        terminal.print_summary(terminal.console(), result.summary, manifest, edges=edges or None)
        sys.stdout.write(f"Run directory: {path}\nSee it again:  perflab show {path}\n")
    sys.stdout.flush()


def _sampling(text: str, time: str) -> int:
    sampling_ns = parse_duration(text, "--sampling")
    if sampling_ns > parse_duration(time, "--time"):
        hint = f"; `{text}ms` would be milliseconds" if text.isascii() and text.isdigit() else ""
        raise BadInput(f"--sampling {text!r} is longer than --time {time!r}: there would be no interval{hint}")
    if sampling_ns < 10_000_000:
        raise BadInput(f"--sampling {text!r} is shorter than the 10ms that sampling all threads may take")
    return sampling_ns


def _measure(names: str | None) -> tuple[str, ...]:
    from perflab.experiment.settings import FIGURES

    chosen = tuple(dict.fromkeys(names.split(","))) if names is not None else ()
    for name in chosen:
        if name not in FIGURES:
            raise BadInput(f"--measure {name!r} is no figure; there are {', '.join(FIGURES)}")
    return chosen


def _switch(word: str, option: str) -> bool:
    if word not in ("on", "off"):
        raise BadInput(f"{option} {word!r} is not on or off")
    return word == "on"


def _check_rclcpp(ros_params: str, node_type: str) -> None:
    """What irobot_benchmark has from rclcpp, and this runtime has not."""
    if node_type not in ("node", "lifecycle"):
        raise BadInput(f"--node-type {node_type!r} is not node or lifecycle")
    if _switch(ros_params, "--ros-params"):
        raise Unavailable("--ros-params on: parameter services need the rclcpp runtime, which this version lacks")
    if node_type == "lifecycle":
        raise Unavailable("--node-type lifecycle: lifecycle nodes need the rclcpp runtime, which this version lacks")


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
    graph, name = experiment.workload.graph, experiment.workload.name
    if not graph.edges() and not graph.services():
        raise BadInput(
            f"workload {name!r} has no topic with a publisher and a subscription, and no service with a client; "
            "name further files that complete it, e.g. `perflab run sierra_nevada debug_sierra_nevada_reliable`"
        )
    shortest_ns = graph.shortest_period_ns
    if shortest_ns is None:
        raise BadInput(f"workload {name!r} has no timer: nothing would ever be sent")
    if shortest_ns > experiment.settings.duration_ns:
        raise BadInput(
            f"--time is shorter than the shortest period of {name!r}, "
            f"{format_duration(shortest_ns / 1e9)}: nothing would be sent"
        )
    processes = len(graph.processes)
    for variant in experiment.variants:
        count = len(variant.middlewares)
        if count not in (1, processes):
            has = "1 process" if processes == 1 else f"{processes} processes"
            raise BadInput(
                f"--middleware {variant.middleware_name} names {count} of them, and {name!r} has {has}; "
                "name one for each, or one for all"
            )
        first = variant.middlewares[0]
        if processes > 1 and not first.across_processes:
            raise BadInput(
                f"middleware {first.name} does not reach across processes, and {name!r} has {processes} of them"
            )
        if first.runtime == "virtual" and (experiment.settings.threads or experiment.settings.lock_memory):
            raise Unavailable("--thread and --lock-memory: the virtual middleware has no threads and no memory to lock")
