"""The `command` workload: any command line is the system under test, or several with names.

A ROS 2 launch file, a DDS program, a script: every trial starts it anew, unchanged, and measures it from outside.
perflab knows only its processes, its output, and its `ros2:*` tracepoints. Named commands are processes of the workload
with these names, like those of a graph.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import signal
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from perflab.errors import BadInput
from perflab.option import Form, Group, Option
from perflab.parameters import DurationNs, Switch
from perflab.units import NS_PER_S, duration_text
from perflab.workload import Graph, Source, Workload, file_name

KIND = "command"
# Factors: followed by the name of a variable, or by a NAME that appears in its words as {NAME}.
ENVIRONMENT, ARGUMENT = "workload.environment.", "workload.argument."
STOPPED, ITSELF = "stopped", "itself"
SIGNALS = ("SIGINT", "SIGTERM", "SIGQUIT", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGKILL")

# A launch file starts its nodes within about this time; `ready` overrides it.
SETTLED_AFTER_NS = 2 * NS_PER_S
MAX_SOURCE_BYTES = 1 << 20

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")

# Operators that only a shell understands.
_SHELL = re.compile(r"\|\|?|&&?|;|\d?>>?|<|`.*`|\$\(.*\)")

_SCALAR_SCHEMA = {"type": ["string", "number"]}
_WORDS_SCHEMA = {"type": ["string", "array"], "items": _SCALAR_SCHEMA}
_ENVIRONMENT_SCHEMA = {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}


def _text(value: Any, what: str) -> str:
    """A scalar of YAML as the text for a program. Values that YAML changes are rejected."""
    if isinstance(value, bool) or value is None or not isinstance(value, str | int | float):
        raise ValueError(f"{what} {value!r} is not text; put it in quotes")
    text = str(value)
    if "\0" in text:
        raise ValueError(f"{what} {text!r} has a character that cannot be passed to a program")
    return text


def _words(value: Any) -> list[str]:
    if isinstance(value, str):
        try:
            words = shlex.split(value)
        except ValueError as error:
            raise ValueError(f"{value!r} cannot be split into words: {str(error).lower()}") from error
        if (operator := next((word for word in words if _SHELL.fullmatch(word)), None)) is not None:
            raise ValueError(f"{operator!r} needs a shell, and perflab starts none; write [sh, -c, {value!r}]")
    elif isinstance(value, list | tuple):
        words = [_text(word, "the word") for word in value]
    else:
        raise ValueError("a command is a list of words, or one line of them")
    if not words or not words[0]:
        raise ValueError("the command is empty")
    return words


def _environment(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise ValueError("an environment is a mapping of names and values")
    found = {}
    for key, given in value.items():
        if not isinstance(key, str) or not key or "=" in key or "\0" in key:
            raise ValueError(f"{key!r} is not a valid variable name")
        found[key] = _text(given, f"{key}: the value")
    return found


def _ready(value: Any) -> Any:
    """ "2s", "after:2s" or "log:REGEX"; a mapping has the same keys."""
    if isinstance(value, str):
        key, colon, rest = value.partition(":")
        return {key: rest} if colon and key in ("after", "log") else {"after": value}
    return {"after": value} if isinstance(value, int | float) and not isinstance(value, bool) else value


def _stop(value: Any) -> Any:
    """ "SIGTERM" or "SIGINT:10s"; a mapping has the same keys."""
    if not isinstance(value, str):
        return value
    name, colon, grace = value.partition(":")
    return {"signal": name, **({"grace": grace} if colon else {})}


def _pattern(value: Any) -> Any:
    if value == "":
        raise ValueError("an empty pattern matches any line")
    if isinstance(value, str):
        try:
            re.compile(value)
        except re.error as error:
            raise ValueError(f"{value!r} is not a regular expression: {error}") from error
    return value


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", defer_build=True)


class Ready(Part):
    """When measuring may begin: after or log."""

    after: DurationNs | None = Field(None, description="this long after its start, e.g. 2s")
    log: Annotated[str, BeforeValidator(_pattern)] | None = Field(
        None, description="a line of its output that matches this regular expression"
    )
    within: DurationNs = Field(30 * NS_PER_S, gt=0, description="longest wait for log")

    @model_validator(mode="after")
    def _one_of_them(self) -> Ready:
        if (self.after is None) == (self.log is None):
            raise ValueError("give exactly one of after and log")
        return self


class Stop(Part):
    """How to end it; what then still runs gets SIGTERM, and after that SIGKILL."""

    signal: Literal[SIGNALS] = Field("SIGINT", description="what Ctrl-C sends")  # type: ignore[valid-type]
    to: Literal["group", "command"] = Field(
        "group",
        description="group: signal its whole process group, as a terminal does; command: only its first process",
    )
    grace: DurationNs = Field(5 * NS_PER_S, gt=0, description="how long it may take to end")

    @property
    def number(self) -> signal.Signals:
        return signal.Signals[str(self.signal)]


def _stop_text(stop: Stop) -> str:
    return f"{stop.signal}:{duration_text(stop.grace)}"


# A line, or its words; variables by name; how to end it.
Words = Annotated[list[str], BeforeValidator(_words), WithJsonSchema(_WORDS_SCHEMA)]
Environment = Annotated[dict[str, str], BeforeValidator(_environment), WithJsonSchema(_ENVIRONMENT_SCHEMA)]
AskedToStop = Annotated[Stop, BeforeValidator(_stop), Form("SIGNAL[:GRACE]", _stop_text)]
_Ready = Annotated[Ready, BeforeValidator(_ready)]


class NamedCommand(Part):
    """One of several commands; settings that it lacks are those for all."""

    command: Words = Field(description="Its words, or one line with all of them.")
    ready: _Ready | None = Field(None, description="when measuring may begin, for this command")
    ends: Literal["stopped", "itself"] | None = Field(None, description="stopped or itself")
    stop: AskedToStop | None = Field(None, description="how to end it")
    environment: Environment = Field({}, description="variables in addition to those for all")
    directory: str | None = Field(None, min_length=1, description="working directory")


def _named(value: Any) -> Any:
    """A command line, or a mapping with the key command."""
    return {"command": value} if isinstance(value, str | list | tuple) else value


def _commands(value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise ValueError("commands are a mapping of names and command lines")
    if wrong := next((name for name in value if not isinstance(name, str) or not _NAME.fullmatch(name)), None):
        raise ValueError(f"{wrong!r} is not a valid name for a command; use letters, digits, _ and -")
    return value


_Named = Annotated[
    NamedCommand,
    BeforeValidator(_named, json_schema_input_type=Annotated[list[str], WithJsonSchema(_WORDS_SCHEMA)] | NamedCommand),
]


class CommandParameters(Part):
    """A command line as the workload, or several with names."""

    command: Annotated[Words, Option(Group.COMMAND, "the command after --")] = Field(
        [], description="The words of the command line, or one line with all of them; without a shell."
    )
    commands: Annotated[
        dict[str, _Named],
        BeforeValidator(_commands),
        Option(Group.COMMAND, "--command", many=True),
        Form("NAME=COMMAND"),
    ] = Field(
        {},
        description="A command with a name, one of several that form the workload, instead of one after --; "
        "conditions refer to them as processes.",
    )
    name: str | None = Field(None, min_length=1, description="Name of the workload. Default: the program's name.")
    ready: Annotated[_Ready | None, Option(Group.COMMAND), Form("AFTER|log:REGEX")] = Field(
        None,
        description="When measuring may begin: this long after its start, or when a line of its output matches. "
        "Default: 2s, or at once if it ends by itself.",
    )
    ends: Annotated[Literal["stopped", "itself"], Option(Group.COMMAND)] = Field(
        "stopped",
        description="stopped: it runs until it is stopped; itself: it ends with status 0 within the measured "
        "time, and its running time is a figure.",
    )
    stop: Annotated[AskedToStop, Option(Group.COMMAND)] = Field(
        default_factory=lambda: Stop.model_validate({}),
        description="How to end it; what still runs after the grace time gets SIGTERM, then SIGKILL.",
    )
    environment: Annotated[Environment, Option(Group.COMMAND, many=True), Form("NAME=VALUE")] = Field(
        {},
        description="Environment variable in addition to perflab's own; the factor workload.environment.NAME "
        "varies one.",
    )
    directory: Annotated[str | None, Option(Group.COMMAND), Form("DIR")] = Field(
        None, min_length=1, description="Working directory. Default: perflab's."
    )
    tracing: Annotated[Switch, Option(Group.COMMAND)] = Field(
        True,
        description="Record its ros2:* events in every trial, for messages and their latency; off: only resources "
        "and outcomes.",
    )

    @model_validator(mode="before")
    @classmethod
    def _as_written(cls, value: Any) -> Any:
        """Omitted fields are written as omitted."""
        several = isinstance(value, Mapping) and value.get("command") == [] and value.get("commands")
        return {key: of for key, of in value.items() if key != "command"} if several else value

    @model_validator(mode="after")
    def _one_or_several(self) -> CommandParameters:
        if bool(self.command) == bool(self.commands):
            raise ValueError("give exactly one of command and commands")
        return self

    @property
    def words(self) -> list[str]:
        """The ready condition of all of its commands."""
        return [*self.command, *(word for one in self.commands.values() for word in one.command)]

    def of(self, name: str) -> CommandParameters:
        """One of its named commands, as a workload of its own."""
        own = self.commands[name]
        return self.model_copy(
            update={
                "command": own.command,
                "commands": {},
                "ready": self.ready if own.ready is None else own.ready,
                "ends": own.ends or self.ends,
                "stop": own.stop or self.stop,
                "environment": {**self.environment, **own.environment},
                "directory": own.directory or self.directory,
            }
        )

    @property
    def ends_itself(self) -> bool:
        return self.ends == ITSELF

    @property
    def ready_when(self) -> Ready:
        """With the default filled in."""
        if self.ready is not None:
            return self.ready
        return Ready.model_validate({"after": 0 if self.ends_itself else SETTLED_AFTER_NS / NS_PER_S})

    @property
    def folder(self) -> Path:
        return Path(self.directory) if self.directory is not None else Path.cwd()


@dataclass(frozen=True)
class Command(Workload):
    """A command line that can be started, or several. Its graph has a process for each, without any known node."""

    name: str
    parameters: CommandParameters
    plain_kind: ClassVar[str] = KIND

    @property
    def command(self) -> Command:
        return self

    @property
    def members(self) -> tuple[Command, ...]:
        """Each of its command lines as a command of its own, with its process's name."""
        several = self.parameters.commands
        return tuple(Command(name, self.parameters.of(name)) for name in several) or (self,)

    @property
    def drawn(self) -> Graph:
        processes = [
            {
                "name": member.name,
                "executors": [],
                "threads": {"executors": None, "middleware": None},
                "lock_memory": False,
                "nodes": [],
            }
            for member in self.members
        ]
        return Graph({"schema": 1, "name": self.name, "processes": processes})

    def set_to(self, factors: Mapping[str, Any]) -> Command:
        """At these levels of factors, of which variables and words matter, from any working directory."""
        given = self.parameters
        changed = {**_at_levels(given, factors), "directory": str(given.folder.absolute())}
        commands = {
            name: one.model_copy(update={**_at_levels(one, factors), "directory": _absolute(one.directory)})
            for name, one in given.commands.items()
        }
        return replace(self, parameters=given.model_copy(update={**changed, "commands": commands}))

    def document(self) -> dict[str, Any]:
        return {**super().document(), "command": self.parameters.model_dump(mode="json")}


def _absolute(directory: str | None) -> str | None:
    return None if directory is None else str(Path(directory).absolute())


def _at_levels(given: CommandParameters | NamedCommand, factors: Mapping[str, Any]) -> dict[str, Any]:
    """Words and variables of a command at these levels."""
    words, variables = list(given.command), dict(given.environment)
    for path, level in factors.items():
        if path.startswith(ARGUMENT):
            words = [word.replace(f"{{{path.removeprefix(ARGUMENT)}}}", str(level)) for word in words]
        elif path.startswith(ENVIRONMENT):
            variables[path.removeprefix(ENVIRONMENT)] = str(level)
    return {"command": words, "environment": variables}


def load(parameters: CommandParameters) -> Command:
    """Raises BadInput if a program or a folder does not exist."""
    name = parameters.name or "+".join(parameters.commands) or file_name(Path(parameters.command[0]).name)
    command = Command(name, parameters)
    sources: dict[str, Source] = {}
    for member in command.members:
        given, folder = member.parameters, member.parameters.folder
        where = f"command {member.name}: " if parameters.commands else ""
        if not folder.is_dir():
            raise BadInput(f"{where}directory {str(folder)!r} does not exist; name the command's working directory")
        try:
            check_program(given.command[0], folder, given.environment.get("PATH"))
        except BadInput as error:
            raise BadInput(f"{where}{error}") from error
        sources |= {source.path: source for source in _sources(given.command, folder)}
    return replace(command, sources=tuple(sources.values()))


def check_program(program: str, folder: Path, path: str | None = None) -> None:
    """Checks that the program can be executed, searching like execvp(3). Raises BadInput."""
    if "/" in program:
        place = folder / program
        if not place.exists():
            raise BadInput(f"the program {program!r} does not exist")
        if place.is_dir():
            raise BadInput(f"{program!r} is a folder; name a program")
        if not os.access(place, os.X_OK):
            raise BadInput(
                f"{program!r} is not executable; `chmod +x` makes a script executable, or name its interpreter"
            )
        return
    if shutil.which(program, path=path) is not None:
        return
    if (folder / program).is_file():
        raise BadInput(f"no program {program!r} in PATH; use ./{program} for the file in {str(folder)!r}")
    raise BadInput(f"no program {program!r} in PATH{_hint(program)}")


def _hint(program: str) -> str:
    from perflab import catalog

    if any(entry.name == program for entry in (*catalog.topologies(), *catalog.experiments())):
        return f"; run the catalog's {program} without --: `perflab run {program}`"
    if program in ("ros2", "colcon"):
        return "; source the setup file of ROS 2 first, e.g. `. /opt/ros/jazzy/setup.sh`"
    return ""


def _sources(words: list[str], folder: Path) -> list[Source]:
    """The current text of scripts and launch files among the words, if not too long."""
    found = []
    for word in dict.fromkeys(words):
        path = folder / word
        try:
            if not path.is_file() or path.stat().st_size > MAX_SOURCE_BYTES:
                continue
            data = path.read_bytes()
            text = data.decode("utf-8")
        except (OSError, ValueError):
            continue  # not text, or not readable: the command line still names it
        if "\0" not in text:
            found.append(Source(str(path), hashlib.sha256(data).hexdigest(), text))
    return found
