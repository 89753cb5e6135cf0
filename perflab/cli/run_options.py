"""The options that the verbs share which run a workload, and the experiment that they mean."""

from __future__ import annotations

import inspect
import math
import socket
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from perflab.cli.grouped import COMMAND_KEY
from perflab.errors import BadInput, Unavailable

if TYPE_CHECKING:
    from perflab.experiment.document import Written
    from perflab.experiment.run import Earlier
    from perflab.experiment.settings import Experiment
    from perflab.host import Host
    from perflab.native import Native

Values = dict[str, Any]  # of the options, by the names of the parameters of `declared`

PROGRESS = ("auto", "lines", "off")

# The groups of `perflab run --help`.
_VARIANTS = "Variants (every combination of what is listed runs)"
_LENGTH = "How long, how often"
_THREADS = "Threads and nodes"
_FIGURES = "What is measured"
_ENDS = "Beginning and end of a trial"
_AROUND = "Around the workload"
_VERDICTS = "Criteria and statistics"
_COMMAND = "A command as the workload (everything after --)"
_OUTPUT = "Output"


def _complete_workload(incomplete: str) -> list[str]:
    from perflab import catalog
    from perflab.workload.generated import REGISTRY

    kind, colon, given = incomplete.partition(":")
    if colon and kind in REGISTRY:
        before, comma, last = given.rpartition(",")
        keys = REGISTRY[kind].model.model_fields
        return [f"{kind}:{before}{comma}{key}=" for key in keys if key.startswith(last)]
    entries = (*catalog.topologies(), *catalog.experiments())
    return [name for name in (*(entry.name for entry in entries), *REGISTRY) if name.startswith(incomplete)]


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
    from perflab.condition.kinds import REGISTRY

    before = incomplete[: incomplete.rfind("+") + 1]
    return [f"{before}{name}" for name in REGISTRY if name.startswith(incomplete[len(before) :])]


def complete_factor(incomplete: str) -> list[str]:
    from perflab.condition.kinds import REGISTRY
    from perflab.experiment.design import GRAPH_LEVELS
    from perflab.middleware import REGISTRY as MIDDLEWARES
    from perflab.workload.generated import REGISTRY as GENERATED

    of_conditions = [f"{name}.{key}" for name, kind in REGISTRY.items() for key in kind.model.model_fields]
    of_generated = [key for kind in GENERATED.values() for key in kind.model.model_fields]
    of_workload = [f"workload.{key}" for key in dict.fromkeys((*GRAPH_LEVELS, *of_generated))]
    options = [f"{name}.{option.key}" for name, kind in MIDDLEWARES.items() for option in kind.options]
    return [path for path in (*of_conditions, *of_workload, *options) if path.startswith(incomplete)]


def _complete_observer(incomplete: str) -> list[str]:
    from perflab.observer.kinds import REGISTRY

    return [name for name in REGISTRY if name.startswith(incomplete)]


def _complete_metric(incomplete: str) -> list[str]:
    from perflab.statistics.metrics import METRICS

    return [name for name in METRICS if name.startswith(incomplete)]


def _complete_ends(incomplete: str) -> list[str]:
    return [word for word in ("stopped", "itself") if word.startswith(incomplete)]


def _complete_order(incomplete: str) -> list[str]:
    return [word for word in ("randomised", "as_written") if word.startswith(incomplete)]


def _complete_progress(incomplete: str) -> list[str]:
    return [word for word in PROGRESS if word.startswith(incomplete)]


def declared(
    workload: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="WORKLOAD...|EXPERIMENT.yaml",
            help="Names of the catalog (`perflab list topologies`, `perflab list experiments`), graph files that form "
            "one graph, or one experiment file. What stands after -- is a command line, which is then the workload.",
            autocompletion=_complete_workload,
            show_default=False,
        ),
    ] = None,
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
            help="What runs the callbacks: inline, single_threaded, events, multi_threaded[:N], and on rclcpp "
            "static_single_threaded; default as the graph says.",
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
        str, typer.Option(metavar="N", help="Repetitions of everything, interleaved.", rich_help_panel=_LENGTH)
    ] = "1",
    seed: Annotated[
        str,
        typer.Option(metavar="N", help="Of everything random; repetition k uses N + k - 1.", rich_help_panel=_LENGTH),
    ] = "1",
    order: Annotated[
        str,
        typer.Option(
            metavar="randomised|as_written",
            help="Of the trials within a repetition.",
            autocompletion=_complete_order,
            rich_help_panel=_LENGTH,
        ),
    ] = "randomised",
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
        str | None,
        typer.Option(
            metavar="on|off",
            help="Parameter services of the nodes; on rclcpp alone, and there on by default.",
            autocompletion=_complete_switch,
            rich_help_panel=_THREADS,
        ),
    ] = None,
    node_type: Annotated[
        str | None,
        typer.Option(
            metavar="node|lifecycle",
            help="Kind of the nodes; lifecycle on rclcpp alone.",
            autocompletion=_complete_node_type,
            rich_help_panel=_THREADS,
        ),
    ] = None,
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
            help="A treatment: a condition, or several combined with + (A:k=v+B); repeatable. Baselines without it "
            "run in between.",
            autocompletion=_complete_condition,
            show_default=False,
            rich_help_panel=_AROUND,
        ),
    ] = None,
    factor: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH=LEVEL,LEVEL...",
            help="Levels of a parameter: cpu_load.load=20,80 or a range, 0..90:15 (step) or 100..3000/6log (number); "
            "also workload.depth, workload.rate, fastdds.transport; repeatable.",
            autocompletion=complete_factor,
            show_default=False,
            rich_help_panel=_AROUND,
        ),
    ] = None,
    baseline: Annotated[
        str,
        typer.Option(
            metavar="on|off",
            help="Run the workload without conditions as well.",
            autocompletion=_complete_switch,
            rich_help_panel=_AROUND,
        ),
    ] = "on",
    baseline_again: Annotated[
        str,
        typer.Option(
            metavar="on|off",
            help="A baseline after every trial with conditions.",
            autocompletion=_complete_switch,
            rich_help_panel=_AROUND,
        ),
    ] = "on",
    cool_down: Annotated[
        str,
        typer.Option(
            metavar="S",
            help="Longest wait for a quiet machine before a trial; 0 does not wait.",
            envvar="PERFLAB_COOL_DOWN",
            rich_help_panel=_AROUND,
        ),
    ] = "10",
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
    observer_control: Annotated[
        str,
        typer.Option(
            metavar="on|off",
            help="Baselines without observers, which show what these cost; where there are several trials.",
            autocompletion=_complete_switch,
            rich_help_panel=_AROUND,
        ),
    ] = "on",
    success: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CRITERION",
            help="What a trial must meet: 'lost == 0', 'latency.p99 <= 5ms'; repeatable.",
            show_default=False,
            rich_help_panel=_VERDICTS,
        ),
    ] = None,
    margin: Annotated[
        str,
        typer.Option(metavar="P%", help="A difference below this is called none.", rich_help_panel=_VERDICTS),
    ] = "5%",
    alpha: Annotated[
        float,
        typer.Option(
            metavar="A", help="Rate of false claims over all comparisons together.", rich_help_panel=_VERDICTS
        ),
    ] = 0.05,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="M",
            help="What is compared, e.g. latency.p99; repeatable; default a few that matter.",
            autocompletion=_complete_metric,
            show_default=False,
            rich_help_panel=_VERDICTS,
        ),
    ] = None,
    ready: Annotated[
        str | None,
        typer.Option(
            metavar="AFTER|log:REGEX",
            help="When measuring may begin: so long after its start (default 2s), or when a line that it prints "
            "matches.",
            show_default=False,
            rich_help_panel=_COMMAND,
        ),
    ] = None,
    ends: Annotated[
        str,
        typer.Option(
            metavar="stopped|itself",
            help="Runs until it is stopped, or ends by itself within --time; how long it ran is then a figure.",
            autocompletion=_complete_ends,
            rich_help_panel=_COMMAND,
        ),
    ] = "stopped",
    stop: Annotated[
        str,
        typer.Option(
            metavar="SIGNAL[:GRACE]",
            help="How it is asked to end; after the grace it gets SIGTERM, then SIGKILL.",
            rich_help_panel=_COMMAND,
        ),
    ] = "SIGINT:5s",
    environment: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="A variable of its environment; repeatable. --factor workload.environment.NAME=A,B varies one.",
            show_default=False,
            rich_help_panel=_COMMAND,
        ),
    ] = None,
    directory: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where it is started; default here.", rich_help_panel=_COMMAND),
    ] = None,
    tracing: Annotated[
        str,
        typer.Option(
            metavar="on|off",
            help="Messages and their latency from its ros2:* events; off: resources and outcomes alone.",
            autocompletion=_complete_switch,
            rich_help_panel=_COMMAND,
        ),
    ] = "on",
    resume: Annotated[
        str | None,
        typer.Option(
            metavar="RUN",
            help="Go on with a run that was interrupted; takes no other option but those of output.",
            show_default=False,
            rich_help_panel=_OUTPUT,
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
    progress: Annotated[
        str,
        typer.Option(
            metavar="auto|lines|off",
            help="What is shown on stderr meanwhile: auto is a display on a terminal, lines is one per trial.",
            autocompletion=_complete_progress,
            rich_help_panel=_OUTPUT,
        ),
    ] = "auto",
    quiet: Annotated[
        bool,
        typer.Option("--quiet", "-q", help="Print the run directory and nothing else.", rich_help_panel=_OUTPUT),
    ] = False,
) -> None:
    """Never called: the options of every verb that runs a workload, in the order of its help."""


def takes(
    *,
    without: Collection[str] = (),
    defaults: Mapping[str, Any] | None = None,
    beside: Callable[..., Any] | None = None,
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Gives a verb `(context, **values)` the options of `declared`, some left out or with other defaults.

    Those of `beside`, another function that is never called, come first.
    """
    functions = [f for f in (beside, declared) if f is not None]
    parameters = [inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)]
    for function in functions:
        hints = get_type_hints(function, include_extras=True)
        for name, parameter in inspect.signature(function).parameters.items():
            if (function is declared and name in without) or any(p.name == name for p in parameters):
                continue
            default = (defaults or {}).get(name, parameter.default)
            kind = inspect.Parameter.KEYWORD_ONLY
            parameters.append(parameter.replace(annotation=hints[name], default=default, kind=kind))

    def give(verb: Callable[..., int]) -> Callable[..., int]:
        verb.__signature__ = inspect.Signature(parameters, return_annotation=int)  # type: ignore[attr-defined]
        verb.__annotations__ = {**{p.name: p.annotation for p in parameters}, "return": int}
        return verb

    return give


def experiment_of(
    context: typer.Context,
    values: Values,
    native: Native,
    host: Host,
    *,
    changed: Callable[[Written], Written] | None = None,
    also: Mapping[str, Any] | None = None,
    verb: str = "run",
) -> tuple[Experiment, Earlier | None]:
    """The experiment that the options of a verb mean, with what it has already where it is one that goes on.

    `also` are keys of an experiment that the verb gives; `changed` has the last word on what was written. Raises
    BadInput, Unavailable.
    """
    from perflab.experiment.build import build, resumed
    from perflab.experiment.document import with_options
    from perflab.experiment.rundir import check_output, open_run

    o = {**{name: p.default for name, p in inspect.signature(declared).parameters.items()}, **values}
    of_rclcpp = _rclcpp_options(o["ros_params"], o["node_type"])
    check_progress(o["progress"])
    typed = {name for name in context.params if _comes_from(context, name, "COMMANDLINE")}
    given = typed | {name for name in context.params if _comes_from(context, name, "ENVIRONMENT")}
    behind = context.meta.get(COMMAND_KEY)
    command_line = ("perflab", *sys.argv[1:])
    resume, workload, output = o["resume"], o["workload"], o["output"]
    if resume is not None:
        if behind is not None:
            raise BadInput(f"--resume goes on with what {resume!r} was; leave out the command after --")
        if clash := sorted(typed - _OF_OUTPUT - {"resume"}):
            raise BadInput(f"--resume goes on with what {resume!r} was; {_option(clash[0])} cannot be changed")
        return resumed(resume, open_run(resume), native, host, command_line)
    if behind is not None and not behind:
        raise BadInput(f"name a command after --, e.g. `perflab {verb} -- ros2 launch my_robot bringup.launch.py`")
    if not workload and behind is None:
        raise BadInput(f"name a workload or an experiment, e.g. `perflab {verb} sierra_nevada`, or a command after --")
    if output is not None:
        check_output(output)
    # A default of the verb's own counts where neither the command line nor a file says otherwise.
    written = _written(workload or [])
    own = {
        name for name, p in inspect.signature(declared).parameters.items() if name in values and o[name] != p.default
    }
    given |= {n for n in own if written is None or _key(n) not in written.mapping}
    chosen = _with_command(written, _chosen(o, given), behind)
    full = with_options(written, {**chosen, **(also or {})})
    if of_rclcpp:
        full = _on_rclcpp(full, of_rclcpp)
    if changed is not None:
        full = changed(full)
    return build(full, native, output=output, command_line=command_line), None


def _chosen(o: Values, given: Collection[str]) -> dict[str, Any]:
    """What was given, as an experiment file says it."""
    options: dict[str, Any] = {
        "middlewares": o["middleware"],
        "executors": o["executor"],
        "ipc": o["ipc"],
        "pass_by": o["pass_by"],
        "middleware_options": _pairs(o["middleware_option"] or [], "--middleware-option", "[NAME.]key=value"),
        "service_framing": o["service_framing"],
        "time": o["time"],
        "warmup": o["warmup"],
        "trials": _level(o["trials"]),
        "seed": _level(o["seed"]),
        "order": o["order"],
        "baseline": o["baseline"],
        "baseline_again": o["baseline_again"],
        "conditions": o["condition"],
        "factors": _pairs(o["factor"] or [], "--factor", "PATH=LEVEL,LEVEL..., e.g. cpu_load.load=20,80"),
        "observers": o["observer"],
        "observer_control": o["observer_control"],
        "success": o["success"],
        "threads": o["thread"],
        "lock_memory": o["lock_memory"],
        "name_threads": o["name_threads"],
        "network": o["network"],
        "sampling": o["sampling"],
        "measure": o["measure"],
        "discovery_timeout": o["discovery_timeout"],
        "drain_quiet": o["drain_quiet"],
        "drain_limit": o["drain_limit"],
        "name": o["name"],
    }
    chosen = {key: value for key, value in options.items() if _PARAMETERS.get(key, key) in given}
    late, too_late = o["late_percentage"], o["too_late_percentage"]
    chosen |= _nested("thresholds", given, late_percentage=late, too_late_percentage=too_late)
    micro = {key: o[key] for key in ("late_absolute", "too_late_absolute")}
    absolute = {key: f"{_threshold(us, key):.12g}us" for key, us in micro.items() if key in given}
    if absolute:
        chosen["thresholds"] = {**chosen.get("thresholds", {}), **absolute}
    if "cool_down" in given:
        chosen["cool_down"] = {"limit": o["cool_down"]}
    statistics = {"alpha": o["alpha"], "margin": o["margin"], "metrics": o["metric"]}
    chosen |= _nested("statistics", {"metrics" if g == "metric" else g for g in given}, **statistics)
    directory = o["directory"]
    of_command = {
        "ready": o["ready"],
        "ends": o["ends"],
        "stop": o["stop"],
        "environment": _pairs(o["environment"] or [], "--environment", "NAME=VALUE"),
        "directory": None if directory is None else str(directory.absolute()),
        "tracing": o["tracing"],
    }
    return chosen | _nested("workload", given, **of_command)


# Parameters of `run` that are called otherwise than the keys of an experiment.
_PARAMETERS = {
    "middlewares": "middleware",
    "executors": "executor",
    "middleware_options": "middleware_option",
    "conditions": "condition",
    "factors": "factor",
    "observers": "observer",
    "threads": "thread",
}
_OF_OUTPUT = {"edges", "as_json", "quiet", "progress"}


def _key(parameter: str) -> str:
    """The key of an experiment that a parameter gives."""
    return next((key for key, name in _PARAMETERS.items() if name == parameter), parameter)


def check_progress(progress: str) -> None:
    if progress not in PROGRESS:
        raise BadInput(f"--progress {progress!r} is not {' or '.join(PROGRESS)}")


def _comes_from(context: typer.Context, name: str, where: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == where


def _option(name: str) -> str:
    return "WORKLOAD" if name == "workload" else f"--{name.replace('_', '-')}"


def _with_command(written: Written | None, chosen: dict[str, Any], behind: Sequence[str] | None) -> dict[str, Any]:
    """The options with the command after -- as the workload, which stands instead of that of an experiment file."""
    workload = chosen.get("workload", {})
    of_file = None if written is None else written.mapping.get("workload")
    if behind is None:
        if workload and not isinstance(of_file, Mapping):
            raise BadInput(f"{_option(next(iter(workload)))} is of a command; write it after --")
        return chosen
    if written is not None and written.source is None:
        raise BadInput("a workload and a command after --: name one of them")
    return {**chosen, "workload": {"directory": str(Path.cwd()), **workload, "command": list(behind)}}


def _written(words: Sequence[str]) -> Written | None:
    """The experiment file that a word means, or a workload; None where there is no word."""
    if not words:
        return None
    from perflab import catalog
    from perflab.experiment.document import Written, is_experiment, read
    from perflab.workload import generated, topology

    experiments = {entry.name: entry.path for entry in catalog.experiments()}
    topologies = {entry.name for entry in catalog.topologies()}
    for word in words:
        if generated.named(word) is not None:
            continue
        in_catalog = word in experiments and word not in topologies
        path = experiments[word] if in_catalog else topology.find(word)
        if in_catalog or is_experiment(path):
            if len(words) > 1:
                raise BadInput(f"{word!r} is an experiment; it stands alone")
            return read(path)
    return Written({"workload": list(words)}, given=frozenset({"workload"}))


def _pairs(words: Sequence[str], option: str, form: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key.strip("."):
            raise BadInput(f"{option} {word!r} is not {form}")
        if key in pairs:
            raise BadInput(f"{option} {word!r} comes after another value of {key!r}; give it once")
        pairs[key] = value
    return pairs


def _level(text: str) -> int | float | str:
    from perflab.experiment.levels import scalar

    return scalar(text)


def _nested(key: str, given: Collection[str], **members: object) -> dict[str, Any]:
    chosen = {name: value for name, value in members.items() if name in given}
    return {key: chosen} if chosen else {}


def _switch(word: str, option: str) -> bool:
    if word not in ("on", "off"):
        raise BadInput(f"{option} {word!r} is not on or off")
    return word == "on"


def _rclcpp_options(ros_params: str | None, node_type: str | None) -> dict[str, str]:
    """What irobot_benchmark's options are among the options of rclcpp; what says nothing there is left out."""
    if node_type not in (None, "node", "lifecycle"):
        raise BadInput(f"--node-type {node_type!r} is not node or lifecycle")
    options = {}
    if ros_params is not None:
        options["parameter_services"] = "on" if _switch(ros_params, "--ros-params") else "off"
    if node_type is not None:
        options["node"] = node_type
    return options


def _on_rclcpp(written: Written, options: Mapping[str, str]) -> Written:
    """With options that only nodes of ROS 2 have. Raises Unavailable where there are none to have them."""
    from perflab.experiment.document import with_options
    from perflab.middleware.rclcpp import NAME

    named = written.mapping.get("middlewares") or ""
    words = named if isinstance(named, str) else ",".join(map(str, named))
    if any(word.strip().partition("/")[0] == NAME for word in words.replace("+", ",").split(",")):
        return with_options(written, {"middleware_options": {f"{NAME}.{key}": v for key, v in options.items()}})
    if options.get("parameter_services") == "on":
        raise Unavailable("--ros-params on: parameter services are of ROS 2; right would be --middleware rclcpp")
    if options.get("node") == "lifecycle":
        raise Unavailable("--node-type lifecycle: lifecycle nodes are of ROS 2; right would be --middleware rclcpp")
    return written


def _threshold(value: float, name: str) -> float:
    if not math.isfinite(value) or not 0 <= value <= 1e12:
        raise BadInput(f"{_option(name)} {value} is not a number from 0 to 1e12")
    return value
