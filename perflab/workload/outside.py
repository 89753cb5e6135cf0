"""Processes of a graph that are not perflab's: a command line starts each, or it already runs.

In a graph file such a process has `program: outside`, the ends that the others wait for, and as `options` what is
below. It does not communicate with perflab: it is ready when each of perflab's ends has exactly the peers that the
graph declares.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import Field

from perflab.errors import BadInput, Unavailable
from perflab.parameters import DurationNs
from perflab.registry import Kind
from perflab.units import NS_PER_S
from perflab.workload import OUTSIDE, Graph
from perflab.workload.command import AskedToStop, Environment, Part, Stop, Words, check_program

_PACKAGES = Path("share/ament_index/resource_index/packages")
_PACKAGE = re.compile(r"[A-Za-z][\w-]*")
DOMAIN = "ROS_DOMAIN_ID"
USUAL_WAIT_NS = 120 * NS_PER_S


class OutsideParameters(Part):
    """A process that is not perflab's."""

    command: Words | None = Field(None, description="its command line, as words or one line; none: it already runs")
    environment: Environment = Field({}, description="variables in addition to perflab's")
    directory: str | None = Field(None, description="working directory (default: perflab's)")
    stop: AskedToStop = Field(default_factory=lambda: Stop.model_validate({}), description="how to end it")
    within: DurationNs = Field(USUAL_WAIT_NS, gt=0, description="longest wait until its ends are discovered")
    hint: str | None = Field(None, description="what is said beside who is missing where they are not")


def parts(graph: Graph) -> dict[str, OutsideParameters]:
    """The outside processes of a graph, by name. Raises BadInput."""
    kind: Kind[OutsideParameters] = Kind(OUTSIDE, "", OutsideParameters)
    found = {name: kind.make(said, f"process {name} of {graph.name}") for name, said in graph.outside.items()}
    for name, part in found.items():
        if DOMAIN in part.environment:
            raise BadInput(
                f"process {name} of {graph.name}: environment: perflab sets {DOMAIN}: each trial has its own "
                "domain, or that of --domain"
            )
    return found


def wait_ns(graph: Graph) -> int:
    """How long discovery may take because of them; 0 if there is none."""
    return max((part.within for part in parts(graph).values()), default=0)


def check(graph: Graph) -> None:
    """Whether this machine can start them. Raises Unavailable with what is missing and how to install it."""
    for name, part in parts(graph).items():
        if part.command is None:
            continue
        folder = Path(part.directory or ".")
        try:
            check_program(part.command[0], folder, part.environment.get("PATH"))
        except BadInput as error:
            what = f"unavailable: {name} of {graph.name}: {error}"
            raise Unavailable(f"{what}; `perflab doctor` says what to install") from error
        environment = {**os.environ, **part.environment}
        if (package := package_of(part.command)) is not None and not has_package(package, environment):
            raise Unavailable(
                f"unavailable: {name} of {graph.name}: the sourced ROS 2 has no package {package}; "
                f"`sudo apt install {apt_name(package, environment)}` installs a released one"
            )


def package_of(words: Sequence[str]) -> str | None:
    """The package of `ros2 launch PACKAGE FILE` and `ros2 run PACKAGE PROGRAM`; None after options, and for a file."""
    launches = len(words) > 3 and Path(words[0]).name == "ros2" and words[1] in ("launch", "run")
    return words[2] if launches and _PACKAGE.fullmatch(words[2]) else None


def has_package(name: str, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the sourced ROS 2 has a package."""
    prefixes = environment.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    return any(prefix and (Path(prefix) / _PACKAGES / name).exists() for prefix in prefixes)


def apt_name(package: str, environment: Mapping[str, str] = os.environ) -> str:
    """The apt package of a ROS 2 package."""
    return f"ros-{environment.get('ROS_DISTRO') or 'jazzy'}-{package.replace('_', '-')}"
