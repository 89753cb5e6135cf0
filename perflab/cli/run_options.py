"""The experiment described by the options of `perflab run`, `sweep` and `breaking-point`.

perflab/design/document.py declares the keys of an experiment; this module adds what only the command line has.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from pydantic import BaseModel, Field

from perflab.cli import options
from perflab.cli.commands import COMMAND_KEY
from perflab.design.document import Written, option_at, validate, with_options
from perflab.design.document import options as of_experiments
from perflab.errors import BadInput, Unavailable
from perflab.option import Declared, Form, Group, Option, declared, kind_of
from perflab.parameters import Switch
from perflab.units import NS_PER_S

if TYPE_CHECKING:
    from perflab.design.settings import Experiment
    from perflab.experiment.run import Earlier
    from perflab.host import Host
    from perflab.native import Native


class Start(BaseModel):
    """What to run, beside the keys of an experiment."""

    ros_params: Annotated[Switch | None, Option(Group.THREADS)] = Field(
        None, description="Parameter services of the nodes; only with rclcpp. Default with rclcpp: on."
    )
    node_type: Annotated[Literal["node", "lifecycle"] | None, Option(Group.THREADS)] = Field(
        None, description="Kind of the nodes; lifecycle only with rclcpp."
    )
    resume: Annotated[str | None, Option(Group.OUTPUT), Form("RUN")] = Field(
        None,
        description="Continue a run; only --until-decided, --at-most, --edges, --json, --progress and --quiet may "
        "be added.",
    )
    output: Annotated[Path | None, Option(Group.OUTPUT, short="-o")] = Field(
        None, description="Run directory. Run directory; default runs/<UTC time>_<name>."
    )


class Shown(BaseModel):
    """How to show a run."""

    edges: Annotated[bool, Option(Group.OUTPUT)] = Field(
        False, description="Print every edge, even with more than two variants."
    )
    as_json: Annotated[bool, Option(Group.OUTPUT, "--json")] = Field(False, description="Print only summary.json.")
    quiet: Annotated[bool, Option(Group.OUTPUT, short="-q")] = Field(False, description="Print only the run directory.")


_START, _SHOWN = tuple(declared(Start)), tuple(declared(Shown))


def _complete_workload(incomplete: str) -> list[str]:
    from perflab import catalog
    from perflab.workload.generated import REGISTRY

    entries = (*catalog.topologies(), *catalog.experiments())
    return [e.name for e in entries if e.name.startswith(incomplete)] + kind_of(lambda: REGISTRY)(incomplete)


_WORKLOAD = inspect.Parameter(
    "workload",
    inspect.Parameter.KEYWORD_ONLY,
    default=None,
    annotation=Annotated[
        list[str] | None,
        typer.Argument(
            metavar="WORKLOAD...|EXPERIMENT.yaml",
            help="Catalog names (`perflab list topologies`, `perflab list experiments`), graph files that form "
            "one graph, or one experiment file. Everything after -- is a command line, which becomes the workload.",
            autocompletion=_complete_workload,
            show_default=False,
        ),
    ],
)


def takes(*, without: Collection[str] = (), defaults: Mapping[str, str] | None = None) -> list[inspect.Parameter]:
    """The parameters of a verb that runs a workload: every experiment option except some keys."""
    return [_WORKLOAD, *options.parameters((*_of_keys(without), *_START, *_SHOWN), defaults)]


def _of_keys(without: Collection[str]) -> list[Declared]:
    return [o for o in of_experiments() if o.path[0] not in without and o.is_option]


def experiment_of(
    context: typer.Context,
    values: Mapping[str, Any],
    native: Native,
    host: Host,
    *,
    verb: str,
    without: Collection[str] = (),
    defaults: Mapping[str, str] | None = None,
    also: Mapping[str, Any] | None = None,
    changed: Callable[[Written], Written] | None = None,
) -> tuple[Experiment, Earlier | None]:
    """The experiment that a verb's options describe, or the existing one if a run is resumed.

    `without` and `defaults` are those of `takes`; a default applies if neither the command line nor a file sets the
    key. `also` are experiment keys that the verb sets; `changed` may edit the result last. Raises BadInput,
    Unavailable.
    """
    from perflab.experiment.build import asked, named, resumed
    from perflab.runs.rundir import check_output, open_run

    start: Start = options.read(Start, _START, values)
    behind = context.meta.get(COMMAND_KEY)
    command_line = ("perflab", *sys.argv[1:])
    workload = values["workload"]
    if start.resume is not None:
        if behind is not None:
            raise BadInput(f"--resume continues {start.resume!r} unchanged; leave out the command after --")
        goes_with_it = {"resume", "until_decided", "at_most", *(o.parameter for o in _SHOWN)}
        if clash := sorted(options.typed(context) - goes_with_it):
            option = "WORKLOAD" if clash[0] == "workload" else f"--{clash[0].replace('_', '-')}"
            raise BadInput(f"--resume continues {start.resume!r} unchanged; leave out {option}")
        typed = options.typed(context)
        rule = options.mapping_of(_of_keys(without), {k: values[k] for k in ("until_decided", "at_most") if k in typed})
        said = validate(Written({"workload": "none", **rule}, given=frozenset(rule)))
        at_most_s = said.at_most / NS_PER_S if "at_most" in rule else None
        earlier = open_run(start.resume)
        return resumed(start.resume, earlier, native, host, command_line, said.until_decided, at_most_s)
    if behind is not None and not behind:
        raise BadInput(f"name a command after --, e.g. `perflab {verb} -- ros2 launch my_robot bringup.launch.py`")
    if not workload and behind is None and not values.get("command"):
        raise BadInput(f"name a workload or an experiment, e.g. `perflab {verb} sierra_nevada`, or a command after --")
    if start.output is not None:
        check_output(start.output)
    written = named(workload) if workload else None
    given = options.given(context)
    chosen = options.mapping_of(_of_keys(without), {name: values[name] for name in values if name in given})
    known = set(chosen) | set(written.mapping if written is not None else ())
    chosen = {
        **{key: options.scalar(text) for key, text in (defaults or {}).items() if key not in known},
        **chosen,
    }
    full = with_options(written, {**_with_command(written, chosen, behind), **(also or {})})
    full = _on_rclcpp(full, start)
    if changed is not None:
        full = changed(full)
    return asked(full, native, output=start.output, command_line=command_line), None


def shown(values: Mapping[str, Any]) -> Shown:
    """Raises BadInput."""
    read: Shown = options.read(Shown, _SHOWN, values)
    return read


def _with_command(written: Written | None, chosen: dict[str, Any], behind: Sequence[str] | None) -> dict[str, Any]:
    """The options with the command after -- as the workload, which replaces that of an experiment file."""
    workload = chosen.get("workload", {})
    if "directory" in workload:
        workload["directory"] = str(Path(workload["directory"]).absolute())
    of_file = None if written is None else written.mapping.get("workload")
    if behind is None and "commands" in workload:
        if written is not None and written.file is None:
            raise BadInput("both a workload and --command were given; choose one")
        return {**chosen, "workload": {"directory": str(Path.cwd()), **workload}}
    if behind is None:
        if workload and not isinstance(of_file, Mapping):
            option = option_at(("workload", next(iter(workload))))
            raise BadInput(f"{option} is for a command; write the command after --")
        return chosen
    if written is not None and written.file is None:
        raise BadInput("both a workload and a command after -- were given; choose one")
    return {**chosen, "workload": {"directory": str(Path.cwd()), **workload, "command": list(behind)}}


def _on_rclcpp(written: Written, start: Start) -> Written:
    """Adds irobot_benchmark's options that only ROS 2 nodes have. Raises Unavailable if ROS 2 is missing."""
    from perflab.middleware.rclcpp import NAME

    asked = {
        "parameter_services": None if start.ros_params is None else "on" if start.ros_params else "off",
        "node": start.node_type,
    }
    named = written.mapping.get("middlewares") or ""
    words = named if isinstance(named, str) else ",".join(map(str, named))
    if any(word.strip().partition("/")[0] == NAME for word in words.replace("+", ",").split(",")):
        own = {f"{NAME}.{key}": value for key, value in asked.items() if value is not None}
        return with_options(written, {"middleware_options": own}) if own else written
    if start.ros_params:
        raise Unavailable("--ros-params on: only ROS 2 nodes have parameter services; use --middleware rclcpp")
    if start.node_type == "lifecycle":
        raise Unavailable("--node-type lifecycle: only ROS 2 has lifecycle nodes; use --middleware rclcpp")
    return written
