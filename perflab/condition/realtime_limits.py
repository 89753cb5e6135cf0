"""`realtime_limits`: changes, or removes, the share of a CPU that the kernel withholds from real-time threads during a
trial.

The files for this depend on the kernel (perflab/real_time.py). They are held like the settings of `sysctl`: held.py.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from perflab import real_time
from perflab.condition import Applied, Condition, Evidence, NotInEffect, Shown, Trial, Window, held
from perflab.condition.evidence import require_processes
from perflab.errors import BadInput, Unavailable
from perflab.host import Host
from perflab.kernel import Files
from perflab.option import Form
from perflab.real_time import FAIR_SERVER, PERIOD_US, RUNTIME_US, RealTimeLimits, real_time_limits
from perflab.registry import Kind
from perflab.workload import Graph

OFF: Literal["off"] = "off"
DEBUGFS = "sys/kernel/debug"
MOUNT = "mount -t debugfs none /sys/kernel/debug"
SAME = 0.001  # tolerance of shares: the files have whole microseconds


def _limit(value: Any) -> Any:
    if value is False or value == OFF:  # YAML reads off as false
        return OFF
    text = str(value).strip().removesuffix("%") if isinstance(value, str | int | float) else ""
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if isinstance(value, bool) or not 0 < share <= 100:
        raise ValueError(f"{value!r} is neither off nor a share above 0% and up to 100%, e.g. 50%")
    return share


# "off", 50, "50%"; percent of a CPU
Limit = Annotated[
    Literal["off"] | float,
    BeforeValidator(_limit),
    WithJsonSchema({"anyOf": [{"type": ["number", "string"]}, {"const": False}]}),
    Form("off|P%", lambda limit: limit if limit == OFF else f"{limit:g}%"),
]

OfRealTime = Annotated[float | None, Shown("share that real-time threads may use", "%", 0.01)]
OfOthers = Annotated[float | None, Shown("share that other threads still get", "%", 0.01)]


@dataclass(frozen=True, kw_only=True)
class Promised(held.Promised):
    real_time_share: OfRealTime
    """Share of a CPU that real-time threads together may use; 1: no limit; null: unchanged."""
    fair_server_share: OfOthers
    """Share that waiting threads of other policies still get; 0: none; null: unchanged."""


@dataclass(frozen=True, kw_only=True)
class Achieved(held.Achieved):
    real_time_share: OfRealTime
    """The limits at the end of the measured part, by the kernel's files; null: unknown."""
    fair_server_share: OfOthers
    """Likewise."""


@dataclass(frozen=True, kw_only=True)
class LimitsEvidence(Evidence):
    promised: Promised
    achieved: Achieved | None
    note: str | None = None
    """How the kernel rounded a value."""


class RealtimeLimits(Condition):
    """Sets the limits of real-time threads before the workload's processes start."""

    name: ClassVar[str] = "realtime_limits"
    evidence: ClassVar[type[Evidence]] = LimitsEvidence

    throttling: Limit | None = Field(
        default=None,
        description="share of a CPU that real-time threads together may use, or off: all of it (default: unchanged)",
    )
    fair_server: Limit | None = Field(
        default=None,
        description="share of a CPU for threads of other policies while they wait for real-time ones, or off: "
        "none (default: unchanged); Linux 6.12 or later, with debugfs",
    )

    @model_validator(mode="after")
    def _something(self) -> RealtimeLimits:
        if self.throttling is None and self.fair_server is None:
            raise ValueError("nothing is limited; use throttling=off or fair_server=off")
        return self

    @property
    def real_time_share(self) -> float | None:
        return None if self.throttling is None else 1.0 if self.throttling == OFF else self.throttling / 100

    @property
    def fair_server_share(self) -> float | None:
        return None if self.fair_server is None else 0.0 if self.fair_server == OFF else self.fair_server / 100

    def check(self, host: Host, graph: Graph, runtime: str) -> None:
        require_processes(self.label, runtime)
        for name, value in self.settings(host.root).items():
            held.require_settable(self.label, name, value)

    def resolved(self, host: Host) -> RealtimeLimits:
        held.give_back_abandoned(self.label, self.settings(host.root))
        return self

    def begin(self, trial: Trial) -> Limited:
        return Limited(self, trial)

    def limits_of(self, host: Host) -> RealTimeLimits:
        """The limits that will hold on this machine in a trial with it."""
        now = real_time_limits(host.root)
        share, server = self.real_time_share, self.fair_server_share
        return RealTimeLimits(
            throttle=now.throttle if share is None else share,
            throttled_to=now.throttled_to if share is None else None,
            fair_server=now.fair_server if server is None else server,
            group_scheduling=now.group_scheduling,
        )

    def settings(self, root: Path) -> dict[str, str]:
        """The values to set, by the names of the settings. Raises Unavailable if the kernel has no such setting."""
        files = Files(root)
        return {**self._of_throttling(files), **self._of_fair_server(files)}

    def _of_throttling(self, files: Files) -> dict[str, str]:
        by, runtime, share = real_time.means(files.root), files.number(RUNTIME_US), self.real_time_share
        period = files.number(PERIOD_US)
        if share is None:
            return {}
        if runtime is None or period is None:
            raise Unavailable(f"{self.label}: this kernel does not report its throttling (/{RUNTIME_US})")
        sysctl = _sysctl(RUNTIME_US, files.root)
        if self.throttling == OFF:
            # Without throttling the setting limits only DEADLINE threads, and stays as it is.
            return {} if by.throttles is False else {sysctl: "-1"}
        if by.throttles is None:
            raise Unavailable(f"{self.label}: the kernel's configuration cannot be read, so its throttling is unknown")
        if not by.throttles:
            raise Unavailable(
                f"{self.label}: since Linux 6.12 a kernel without RT_GROUP_SCHED does not throttle real-time threads; "
                "only throttling=off is possible here, and fair_server limits them"
            )
        if not by.group_scheduling:
            return {sysctl: str(round(share * period))}
        if by.group is None:
            raise Unavailable(
                f"{self.label}: with real-time group scheduling and no cgroup v1 for `cpu`, the share is fixed at "
                "boot; only throttling=off is possible here"
            )
        own, of = files.number(f"{by.group}/cpu.rt_runtime_us"), files.number(f"{by.group}/cpu.rt_period_us")
        if own is None or of is None:
            raise Unavailable(f"{self.label}: /{by.group}/cpu.rt_runtime_us cannot be read")
        found = {}
        # The total share must have room for the share of each group.
        if (least := max(share, own / of)) > (runtime / period if runtime >= 0 else -1.0) + SAME:
            found[sysctl] = str(round(least * period))
        return {**found, str(files.root / by.group / "cpu.rt_runtime_us"): str(round(share * of))}

    def _of_fair_server(self, files: Files) -> dict[str, str]:
        by, share = real_time.means(files.root), self.fair_server_share
        if share is None or (not by.has_fair_server and share == 0 and by.version is not None):
            return {}
        if not by.has_fair_server:
            raise Unavailable(f"{self.label}: this kernel has no fair server; it exists since Linux 6.12")
        folders = files.folders(FAIR_SERVER, "cpu*")
        if not folders:
            if files.text("proc/self/mounts") is not None and not _is_mounted(files):
                raise Unavailable(
                    f"{self.label}: the fair server's settings are in debugfs, which is not mounted: `{MOUNT}`"
                )
            raise Unavailable(
                f"{self.label}: /{FAIR_SERVER} does not exist: the kernel was built without SCHED_DEBUG, or only "
                "root may see it"
            )
        found = {}
        for folder in folders:
            period = self._whole(files, f"{folder}/period")
            self._whole(files, f"{folder}/runtime")
            found[str(files.root / folder / "runtime")] = str(round(share * period))
        return found

    def _whole(self, files: Files, path: str) -> int:
        """Raises Unavailable with the kernel's reason."""
        try:
            return int((files.root / path).read_text(encoding="ascii"))
        except OSError as error:
            if error.errno == errno.EPERM and os.geteuid() == 0:
                raise Unavailable(
                    f"{self.label}: the kernel is locked down (kernel_lockdown(7)): even root cannot open "
                    "writable files in debugfs, and so cannot read or set the fair server; boot without "
                    "`lockdown=` and Secure Boot"
                ) from error
            raise Unavailable(f"{self.label}: /{path} cannot be read: {error.strerror}; run perflab as root") from error
        except ValueError as error:
            raise Unavailable(f"{self.label}: /{path} is not a number") from error


def _sysctl(path: str, root: Path) -> str:
    """The name of a setting of /proc/sys; with another root its path."""
    if root != Path("/"):
        return str(root / path)
    return path.removeprefix("proc/sys/").translate(str.maketrans("./", "/."))


def _is_mounted(files: Files) -> bool:
    return any(kind == "debugfs" and point == Path("/", DEBUGFS) for point, kind in files.mounts())


class Limited(Applied):
    """The limits of one trial."""

    def __init__(self, asked: RealtimeLimits, trial: Trial) -> None:
        self.asked = asked
        settings = asked.settings(Path("/"))
        try:
            self.held = held.Held(trial, asked.label, settings) if settings else None
        except BadInput as refused:  # a share that leaves no room for other groups or DEADLINE threads
            raise Unavailable(str(refused)) from refused

    def settle(self) -> None:
        if self.held is not None:
            self.held.settle()
        if (wrong := self._differs(real_time_limits())) is not None:
            raise NotInEffect(wrong)

    def verify(self, window: Window) -> Evidence:
        limits = real_time_limits()
        held_, reason = (_NOTHING, None) if self.held is None else self.held.judged(window)
        promised = _NOTHING_PROMISED if self.held is None else self.held.promised
        return LimitsEvidence(
            promised=Promised(
                **vars(promised),
                real_time_share=self.asked.real_time_share,
                fair_server_share=self.asked.fair_server_share,
            ),
            achieved=Achieved(**vars(held_), real_time_share=limits.throttle, fair_server_share=limits.fair_server),
            reason=reason or self._differs(limits),
            note=None if self.held is None else self.held.rounded(),
        )

    def remove(self) -> None:
        """Raises PerflabError if a setting was not restored."""
        if self.held is not None:
            self.held.give_back()

    def _differs(self, now: RealTimeLimits) -> str | None:
        """What the kernel's files report that differs from the request."""
        for what, asked, found in (
            ("real-time threads may use", self.asked.real_time_share, now.throttle),
            ("waiting threads get", self.asked.fair_server_share, now.fair_server),
        ):
            if asked is not None and (found is None or abs(asked - found) > SAME):
                said = "an unknown share" if found is None else f"{found:.4g}"
                return f"{what} {said} of a CPU, but {asked:.4g} was promised"
        return None


_NOTHING = held.Achieved(settings={}, as_promised=0, before={}, at_end={}, changes=())
_NOTHING_PROMISED = held.Promised(settings={}, as_promised=0)


def words(given: Mapping[str, Any]) -> str:
    named = {"real-time throttling": given.get("throttling"), "fair server": given.get("fair_server")}
    return ", ".join(
        f"{what} {level if isinstance(level, str) else f'{level:g} %'}"
        for what, level in named.items()
        if level is not None
    )


KIND: Kind[Condition] = Kind(
    "realtime_limits",
    "changes or removes the share of a CPU that the kernel withholds from real-time threads; restored after the trial",
    RealtimeLimits,
    words=words,
    gently=("throttling=off", "fair_server=5"),
)
