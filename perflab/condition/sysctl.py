"""`sysctl`: settings of the kernel (/proc/sys) have other values during a trial, and are restored after it.

A keeper beside the workload sets them, watches them and restores them: held.py.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, ConfigDict, WithJsonSchema, model_validator

from perflab.condition import Applied, Condition, Evidence, Trial, Window, held
from perflab.condition import kernel_settings as kernel
from perflab.condition.evidence import network_namespace, outside_namespace, require_processes
from perflab.condition.held import Achieved, Promised
from perflab.errors import BadInput, instead
from perflab.host import Host
from perflab.registry import Kind
from perflab.workload import Graph

# Settings that cannot be restored until a reboot (Documentation/admin-guide/sysctl/kernel.rst, Yama.rst).
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


@dataclass(frozen=True, kw_only=True)
class SysctlEvidence(Evidence):
    promised: Promised
    achieved: Achieved | None
    note: str | None = None
    """How the kernel rounded a value."""


class Sysctl(Condition):
    """Sets settings before the workload's processes start; each parameter is a setting."""

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
        held.give_back_abandoned(self.label, self.settings)
        return self

    def begin(self, trial: Trial) -> Set:
        return Set(self, trial)


class Set(Applied):
    """The settings of one trial."""

    def __init__(self, asked: Sysctl, trial: Trial) -> None:
        self.trial = trial
        self.held = held.Held(trial, asked.label, asked.settings)

    def settle(self) -> None:
        self.held.settle()

    def verify(self, window: Window) -> Evidence:
        achieved, reason = self.held.judged(window)
        return SysctlEvidence(
            promised=self.held.promised,
            achieved=achieved,
            reason=reason or self._outside(),
            note=self.held.rounded(),
        )

    def remove(self) -> None:
        """Raises PerflabError if a setting was not restored."""
        self.held.give_back()

    def _outside(self) -> str | None:
        """Network settings belong to a network namespace: returns the first process of the workload in another one."""
        if not any(name.startswith("net.") for name in self.held.read):
            return None
        outside = outside_namespace(self.trial.processes, network_namespace(os.getpid()))
        if not outside:
            return None
        return f"process {outside[0]!r} of the workload has another network namespace, with its own settings"


def names() -> Iterator[str]:
    """Every setting of this kernel that can be set and restored, sorted."""
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
    """Raises BadInput, or Unavailable if a setting cannot be set, or could not be restored."""
    path = kernel.path_of(name)
    if ".." in path.parts or path == kernel.SETTINGS or not path.is_file():
        raise BadInput(f"{label}: this kernel has no setting {name!r}; {instead(name, names(), LIKE_SYSCTL, most=3)}")
    if name in ONE_WAY:
        raise BadInput(f"{label}: {name} cannot be restored before the next reboot")
    held.require_settable(label, name, value)


def words(given: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in given.items())


KIND: Kind[Condition] = Kind(
    "sysctl",
    "other values for kernel settings, each a parameter: net.core.rmem_max=8388608; restored after the trial",
    Sysctl,
    words=words,
    gently=("vm.stat_interval=1",),
    names=names,
)
