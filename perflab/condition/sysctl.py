"""`sysctl`: settings of the kernel (/proc/sys) have other values during a trial, and their own again after it.

A keeper beside the workload sets them, watches them and gives them back: kernel_settings.py.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, ConfigDict, WithJsonSchema, model_validator

from perflab.condition import Applied, Companion, Condition, Evidence, NotInEffect, Shown, Trial, Window
from perflab.condition import kernel_settings as kernel
from perflab.condition.evidence import has_ended, network_namespace, outside_namespace, ready, require_processes
from perflab.errors import BadInput, PerflabError, Unavailable, instead
from perflab.host import Host
from perflab.registry import Kind
from perflab.units import NS_PER_S, listed
from perflab.workload import Graph

PROGRAM = Path(kernel.__file__)
KEEPER = "the keeper of the settings"
READY_LIMIT_S = 20.0
GIVE_BACK_LIMIT_S = 10.0
# What cannot be set back until the machine boots (Documentation/admin-guide/sysctl/kernel.rst, Yama.rst).
ONE_WAY = ("kernel.kexec_load_disabled", "kernel.modules_disabled", "kernel.unprivileged_bpf_disabled",
           "kernel.yama.ptrace_scope")  # fmt: skip

LIKE_SYSCTL = "`sysctl -a` lists them"


def _value(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError(f"{value!r} is not a number or text; put it in quotes")
    text = kernel.plain(str(value))
    if not text.isprintable():
        raise ValueError(f"{value!r} is not one line of plain text")
    return text


# 8388608, "4096 131072 6291456"
Value = Annotated[str, BeforeValidator(_value), WithJsonSchema({"type": ["integer", "string"]})]

AsAsked = Annotated[int, Shown("kernel settings as promised")]


@dataclass(frozen=True, kw_only=True)
class Promised:
    settings: Mapping[str, str]
    """Values that were asked for, by the names of the settings."""
    as_promised: AsAsked
    """How many settings these are."""


@dataclass(frozen=True, kw_only=True)
class Change:
    name: str
    value: str
    at_s: float


@dataclass(frozen=True, kw_only=True)
class Achieved:
    """From /proc/sys."""

    settings: Mapping[str, str]
    """Values that the kernel gave back when all were set; it may round what it is given."""
    as_promised: AsAsked
    """How many settings kept that value until the end of the measured part."""
    before: Mapping[str, str]
    """Values before the trial, which the settings have again after it."""
    at_end: Mapping[str, str | None]
    """Values after the measured part; null: could not be read."""
    changes: tuple[Change, ...]
    """Other values that were seen meanwhile; seconds from the start of the measured part."""


@dataclass(frozen=True, kw_only=True)
class SysctlEvidence(Evidence):
    promised: Promised
    achieved: Achieved | None
    note: str | None = None
    """What the kernel made of a value."""


class Sysctl(Condition):
    """Sets settings before the workload's processes start; every parameter is one."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Value]

    name: ClassVar[str] = "sysctl"
    evidence: ClassVar[type[Evidence]] = SysctlEvidence

    @model_validator(mode="after")
    def _something(self) -> Sysctl:
        if not self.settings:
            raise ValueError("name a setting and its value, e.g. net.core.rmem_max=8388608")
        return self

    @property
    def settings(self) -> dict[str, str]:
        """The values by the names of the settings."""
        return dict(self.__pydantic_extra__)

    def check(self, host: Host, graph: Graph, runtime: str) -> None:
        require_processes(self.label, runtime)
        for name, value in self.settings.items():
            _check(self.label, name, value)

    def resolved(self, host: Host) -> Sysctl:
        """Gives back first what a killed run has left set: that is nobody's baseline."""
        for name in self.settings:
            try:
                kernel.give_back(name)
            except kernel.Problem as problem:
                raise Unavailable(f"{self.label}: {problem}") from problem
        return self

    def begin(self, trial: Trial) -> Set:
        return Set(self, trial)


class Set(Applied):
    """The settings of one trial."""

    def __init__(self, asked: Sysctl, trial: Trial) -> None:
        self.asked = asked
        self.trial = trial
        pairs = [f"{name}={value}" for name, value in asked.settings.items()]
        self.keeper: Companion = trial.start(
            asked.label,
            [sys.executable, "-I", "-S", PROGRAM, kernel.FOLDER, kernel.SETTINGS, trial.directory.absolute(), *pairs],
            control=True,
        )
        said = ready(self.keeper, KEEPER, READY_LIMIT_S)
        if said["type"] == "error":
            text = f"{asked.label}: {said['text']}"
            raise {kernel.REFUSED: BadInput, kernel.HELD: Unavailable}.get(said["kind"], NotInEffect)(text)
        self.before = {s["name"]: str(s["before"]) for s in said["settings"]}
        self.read = {s["name"]: str(s["read"]) for s in said["settings"]}
        self._given_back = False

    def settle(self) -> None:
        for name, value in self.asked.settings.items():
            if self.read[name] == self.before[name] != value:
                raise NotInEffect(f"the kernel leaves {name} at {self.read[name]!r}, and {value!r} was asked for")

    def verify(self, window: Window) -> Evidence:
        at_end = {name: _read(name) for name in self.read}
        changes = tuple(self._changes(window))
        other = {c.name: f"became {c.value!r} {c.at_s:.1f} s into the measured time" for c in reversed(changes)}
        for name, value in at_end.items():
            if value != self.read[name]:
                other.setdefault(name, f"was {'unreadable' if value is None else repr(value)} at the end")
        achieved = Achieved(
            settings=self.read,
            as_promised=len(self.read) - len(other),
            before=self.before,
            at_end=at_end,
            changes=changes,
        )
        problems = (f"{name} {what}, and {self.read[name]!r} was promised" for name, what in other.items())
        return SysctlEvidence(
            promised=Promised(settings=self.asked.settings, as_promised=len(self.read)),
            achieved=achieved,
            reason=has_ended(self.keeper, KEEPER) or next(problems, None) or self._outside(),
            note=self._made_of_them(),
        )

    def remove(self) -> None:
        """Raises PerflabError where a setting is not what it was."""
        self.keeper.stop(GIVE_BACK_LIMIT_S)
        if self._given_back:
            return
        self._given_back = True
        for name, before in self.before.items():
            try:
                kernel.give_back(name)  # where the keeper was killed with its parent
            except kernel.Problem as problem:
                raise PerflabError(str(problem)) from problem
            if (now := _read(name)) != before:
                raise PerflabError(f"{name} is {now!r}, and it was {before!r}; `sysctl -w {name}='{before}'` sets it")

    def _changes(self, window: Window) -> Iterator[Change]:
        """What the keeper has seen, in order."""
        while (said := self.keeper.receive(0.0)) is not None:
            if said.get("type") == "changed":
                at_s = (said["at_ns"] - window.begin_ns) / NS_PER_S
                yield Change(name=said["name"], value=str(said["value"]), at_s=round(at_s, 3))

    def _made_of_them(self) -> str | None:
        asked = self.asked.settings
        made = [f"{asked[name]} of {name} became {value}" for name, value in self.read.items() if asked[name] != value]
        return f"the kernel rounded: {listed(made)}" if made else None

    def _outside(self) -> str | None:
        """Settings of the network are those of a network namespace: says who of the workload has another one."""
        if not any(name.startswith("net.") for name in self.read):
            return None
        outside = outside_namespace(self.trial.processes, network_namespace(os.getpid()))
        if not outside:
            return None
        return f"process {outside[0]!r} of the workload has another network namespace, with settings of its own"


def _read(name: str) -> str | None:
    try:
        return kernel.read(name)
    except OSError:
        return None


def names() -> Iterator[str]:
    """Every setting of this kernel that can be set and set back, sorted."""
    for folder, _, files in sorted(os.walk(kernel.SETTINGS)):
        for file in sorted(files):
            path = Path(folder, file)
            try:
                both = stat.S_IRUSR | stat.S_IWUSR
                can_be = path.stat().st_mode & both == both
            except OSError:  # of a device that went away
                continue
            name = str(path.relative_to(kernel.SETTINGS)).translate(str.maketrans("./", "/."))
            if can_be and name not in ONE_WAY:
                yield name


def _check(label: str, name: str, value: str) -> None:
    """Raises BadInput, Unavailable where a setting cannot be set, or could not be set back."""
    path = kernel.path_of(name)
    if ".." in path.parts or path == kernel.SETTINGS or not path.is_file():
        raise BadInput(f"{label}: this kernel has no setting {name!r}; {instead(name, names(), LIKE_SYSCTL, most=3)}")
    if name in ONE_WAY:
        raise BadInput(f"{label}: {name} cannot be set back before the machine boots again")
    mode = path.stat().st_mode
    if not mode & stat.S_IWUSR:
        raise BadInput(f"{label}: {name} can only be read")
    if not mode & stat.S_IRUSR:
        raise BadInput(f"{label}: {name} cannot be read, and so not be set back")
    try:
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise Unavailable(f"{label}: {name} cannot be read: {error.strerror}; run perflab as root") from error
    if len(text.splitlines()) > 1 or not kernel.plain(text).isprintable():
        raise BadInput(f"{label}: {name} is not one line of plain text")
    if not os.access(path, os.W_OK):
        if os.statvfs(path).f_flag & os.ST_RDONLY:
            raise Unavailable(
                f"{label}: /proc/sys can only be read here, as in a container; `docker run --privileged` lets it be set"
            )
        raise Unavailable(
            f"{label}: only root may set {name}; run perflab with `sudo`, or once before it "
            f"`sudo sysctl -w {name}='{value}'` for all trials"
        )


def words(given: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in given.items())


KIND: Kind[Condition] = Kind(
    "sysctl",
    "settings of the kernel have other values, each a parameter: net.core.rmem_max=8388608; set back after the trial",
    Sysctl,
    words=words,
    gently=("vm.stat_interval=1",),
    names=names,
)
