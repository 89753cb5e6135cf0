"""`cpu_idle`: CPUs enter no idle state with a longer wake-up latency than allowed (C-states are held off).

/dev/cpu_dma_latency holds a request while it is open (the kernel's Documentation/power/pm_qos_interface.rst): so the
request ends with perflab, however that ends, and nothing needs to be restored.
"""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field, field_validator

from perflab.condition import Applied, Condition, Evidence, NotInEffect, Shown, Trial, Window
from perflab.condition.evidence import require_processes, rounded
from perflab.errors import Unavailable
from perflab.host import Host
from perflab.kernel import CPU
from perflab.parameters import DurationNs
from perflab.registry import Kind
from perflab.units import format_time, parse_duration
from perflab.workload import Graph

DEVICE = Path("/dev/cpu_dma_latency")
_VALUE = struct.Struct("=i")  # microseconds, the unit of the device
MOST_US = 1_000_000
NO_DRIVER = (None, "none")

Latency = Annotated[int | None, Shown("longest wake-up latency", "µs")]
Entries = Annotated[int | None, Shown("deeper idle states entered")]


@dataclass(frozen=True, kw_only=True)
class Promised:
    latency_us: Latency
    """Longest time that a CPU may take to wake up."""
    deep_entries: Entries = 0
    """Entries into deeper idle states that are permitted: none."""


@dataclass(frozen=True, kw_only=True)
class IdleState:
    latency_us: int
    entries: int
    share: float | None


@dataclass(frozen=True, kw_only=True)
class Achieved:
    latency_us: Latency
    """Read from the device at the end: the strictest request on the machine, which may be another program's."""
    deep_entries: Entries
    """How often CPUs entered a state with a longer latency, by the kernel's counters; null: it has none."""
    before_us: int | None
    """Read from the device before this request."""
    states: Mapping[str, IdleState]
    """Each idle state by name: latency, how often CPUs entered it, and its share of all CPUs' time."""


@dataclass(frozen=True, kw_only=True)
class CpuIdleEvidence(Evidence):
    promised: Promised
    achieved: Achieved
    driver: str | None = None
    """The kernel's cpuidle driver."""
    governor: str | None = None
    """The governor that chooses the states."""


class CpuIdle(Condition):
    """Holds /dev/cpu_dma_latency open during a trial."""

    name: ClassVar[str] = "cpu_idle"
    evidence: ClassVar[type[Evidence]] = CpuIdleEvidence

    latency: DurationNs = Field(
        default=0, le=MOST_US * 1000, description="longest time that a CPU may take to wake up, in whole microseconds"
    )

    @field_validator("latency")
    @classmethod
    def _whole(cls, latency: int) -> int:
        if latency % 1000:
            raise ValueError(f"{format_time(latency)} is not a whole number of microseconds")
        return latency

    @property
    def latency_us(self) -> int:
        return self.latency // 1000

    def check(self, host: Host, graph: Graph, runtime: str) -> None:
        require_processes(self.label, runtime)
        driver = host.text(f"{CPU}/cpuidle/current_driver")
        if driver in NO_DRIVER:
            raise Unavailable(f"{self.label}: the kernel has no cpuidle driver here, so it uses no C-states")
        if not DEVICE.exists():
            raise Unavailable(
                f"{self.label}: {DEVICE} does not exist; in a container, use `docker run --device {DEVICE}`"
            )
        if not os.access(DEVICE, os.R_OK | os.W_OK):
            raise Unavailable(
                f"{self.label}: this user may not open {DEVICE}; run perflab as root, or use `sudo chmod a+rw {DEVICE}`"
            )

    def begin(self, trial: Trial) -> Held:
        return Held(self, Host())


@dataclass(frozen=True)
class _Counted:
    """Counters of an idle state, summed over all CPUs since boot."""

    latency_us: int
    entries: int
    time_us: int


class Held(Applied):
    """The open device of one trial."""

    def __init__(self, asked: CpuIdle, host: Host) -> None:
        self.asked = asked
        self.host = host
        try:
            self._device: int | None = os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            raise Unavailable(f"{asked.label}: cannot open {DEVICE}: {error.strerror}") from error
        # An open device requests nothing until it is written.
        self.before_us = self._read()
        os.write(self._device, _VALUE.pack(asked.latency_us))
        self._states: dict[str, _Counted] = {}
        self._cpus = len(host.online())
        self._settled = False

    def settle(self) -> None:
        if (reason := self._not_held(self._read())) is not None:
            raise NotInEffect(reason)
        # The kernel has woken every CPU for the new request by now.
        self._states, self._settled = states(self.host), True

    def verify(self, window: Window) -> Evidence:
        now_us, now = self._read(), states(self.host)
        seen = {name: self._since(name, counted, window) for name, counted in now.items()}
        deep = {name: state for name, state in seen.items() if state.latency_us > self.asked.latency_us}
        reason = self._not_held(now_us) if self._settled else "it was not settled before the measured time"
        for name, state in deep.items():
            if state.entries and reason is None:
                reason = f"CPUs entered {name} ({state.latency_us} µs) {state.entries} times"
        return CpuIdleEvidence(
            promised=Promised(latency_us=self.asked.latency_us),
            achieved=Achieved(
                latency_us=now_us,
                deep_entries=sum(state.entries for state in deep.values()) if now else None,
                before_us=self.before_us,
                states=seen,
            ),
            reason=reason,
            driver=self.host.text(f"{CPU}/cpuidle/current_driver"),
            governor=self.host.text(f"{CPU}/cpuidle/current_governor_ro"),
        )

    def remove(self) -> None:
        if self._device is not None:
            with contextlib.suppress(OSError):  # another owner closed it: the request is gone as well
                os.close(self._device)
            self._device = None

    def _read(self) -> int | None:
        """The strictest request of all programs, in microseconds."""
        try:
            return None if self._device is None else int(_VALUE.unpack(os.pread(self._device, _VALUE.size, 0))[0])
        except (OSError, struct.error):
            return None

    def _not_held(self, now_us: int | None) -> str | None:
        if now_us is None:
            return f"{DEVICE} cannot be read"
        if now_us > self.asked.latency_us:
            return f"{DEVICE} has {now_us} µs, but {self.asked.latency_us} µs were promised"
        return None

    def _since(self, name: str, now: _Counted, window: Window) -> IdleState:
        """Counts since it settled."""
        before = self._states.get(name, _Counted(0, 0, 0))
        whole_us = window.seconds * 1e6 * self._cpus
        share = (now.time_us - before.time_us) / whole_us if whole_us else None
        return IdleState(latency_us=now.latency_us, entries=now.entries - before.entries, share=rounded(share))


def states(host: Host) -> dict[str, _Counted]:
    """The idle states of this machine by name, with the counts of all CPUs; none if the kernel has no counters."""
    found: dict[str, _Counted] = {}
    for cpu in host.online():
        for folder in host.folders(f"{CPU}/cpu{cpu}/cpuidle", "state*"):
            name = host.text(f"{folder}/name")
            figures = [host.number(f"{folder}/{key}") for key in ("latency", "usage", "time")]
            if name is None or None in figures:
                continue
            latency_us, entries, time_us = (figure or 0 for figure in figures)
            other = found.get(name, _Counted(latency_us, 0, 0))
            found[name] = _Counted(max(latency_us, other.latency_us), entries + other.entries, time_us + other.time_us)
    return found


def words(given: Mapping[str, Any]) -> str:
    ns = parse_duration(str(given.get("latency", "0s")), "latency", zero_allowed=True)
    return f"C-states slower than {ns / 1000:g} µs held off" if ns else "C-states held off"


KIND: Kind[Condition] = Kind(
    "cpu_idle",
    "CPUs enter no idle state with a longer wake-up latency than allowed: /dev/cpu_dma_latency holds C-states off",
    CpuIdle,
    words=words,
)
