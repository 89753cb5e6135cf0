"""`network_shaping`: the workload runs in its own network namespace, whose loopback is slow, late or lossy.

The host's network is not changed. A holder process creates the namespace and its queueing disciplines and sleeps; when
it ends, the kernel removes the namespace.
"""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema, model_validator

from perflab import programs
from perflab.condition import Applied, Companion, Condition, Evidence, NotInEffect, Shown, Trial, Window
from perflab.condition.evidence import (
    has_ended,
    network_namespace,
    outside_namespace,
    require_processes,
    rounded,
    wait_until,
)
from perflab.errors import BadInput, Unavailable, one_line
from perflab.host import Host
from perflab.option import Form
from perflab.parameters import Bytes, DurationNs, Percent
from perflab.processes import PROC
from perflab.registry import Kind
from perflab.units import NS_PER_S, format_time, parse_duration, quantity
from perflab.workload import Graph

INTERFACE = "lo"
DEFAULT_QUEUE: Any = "50ms"  # parsed like a user's value
# The loopback's largest packet, with its Ethernet header: a smaller token bucket always drops such a packet.
LARGEST_PACKET_BYTES = 65536 + 14
# tc and the kernel round to what the token bucket can hold: bytes/s, and ticks of 64 ns.
SETTING_TOLERANCE = 0.01
# Share of the packets on the interface, which must all have passed the discipline; the two are not read at one instant.
COUNT_TOLERANCE = 0.01
COUNT_SLACK_PACKETS = 20
# A loss of p is measured as p within this many standard deviations of a binomial count.
LOSS_DEVIATIONS = 5.0
# The namespace has only this discipline to limit the rate: excess is a measuring error.
RATE_TOLERANCE = 0.02
_ANSWER_LIMIT_S = 20.0
_PACKAGES = {"ip": "iproute2", "tc": "iproute2", "unshare": "util-linux", "nsenter": "util-linux"}


_BIT_RATE = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([kMG]?)bit(?:/s)?")
_BIT_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}


def _bit_rate(value: Any) -> Any:
    match = _BIT_RATE.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"{value!r} is not a rate; use a unit (500kbit, 20Mbit, 1Gbit)")
    return round(float(match.group(1)) * _BIT_UNITS[match.group(2)])


# bit/s
BitRate = Annotated[
    int,
    BeforeValidator(_bit_rate),
    PlainSerializer("{}bit".format, when_used="json"),
    WithJsonSchema({"type": "string"}),
    Form("RATE", "{}bit".format),
]


@dataclass(frozen=True)
class Snapshot:
    """Counters of the namespace's loopback and its queueing disciplines at a moment; CLOCK_MONOTONIC."""

    at_ns: int
    disciplines: Mapping[str, Mapping[str, Any]]  # by kind, as printed by tc
    interface_packets: int
    passed_meanwhile: int = 0  # times while the disciplines were read, which takes long on a busy machine

    def count(self, key: str) -> int | None:
        """A counter of the outermost discipline; None if it does not exist."""
        root = next((d for d in self.disciplines.values() if d.get("root")), None)
        return None if root is None else int(root.get(key, 0))

    def counted_since(self, before: Snapshot, key: str) -> int | None:
        begin, end = before.count(key), self.count(key)
        return None if begin is None or end is None else end - begin


Rate = Annotated[float | None, Shown("highest rate", "Mbit/s", 125_000)]
Delay = Annotated[int | None, Shown("delay", "ms", 1e6, zero=False)]
Jitter = Annotated[int | None, Shown("jitter", "ms", 1e6, zero=False)]
Loss = Annotated[float | None, Shown("packets lost", "%", 0.01, zero=False)]


@dataclass(frozen=True, kw_only=True)
class Promised:
    interface: str
    """The shaped interface."""
    disciplines: tuple[str, ...]
    """Queueing disciplines, by the kernel's names."""
    rate_bytes_per_s: Rate
    """Most that passes in a second."""
    burst_bytes: int | None
    """What may pass at once after a pause; with a rate."""
    queue_ns: int | None
    """Longest wait for the rate."""
    delay_ns: Delay
    """Delay of every packet, in each direction."""
    jitter_ns: Jitter
    """Variation of that delay."""
    loss: Loss
    """Share of the packets that is lost, 0 to 1."""


@dataclass(frozen=True, kw_only=True)
class Achieved:
    """From the counters of the outermost discipline, as read by tc; null if they were not read."""

    counted_s: float | None = None
    """Time between the two readings, just before and just after the measured part."""
    bytes: int | None = None
    """Bytes that passed the discipline."""
    packets: int | None = None
    """Packets that passed it."""
    drops: Annotated[int | None, Shown("packets dropped")] = None
    """Packets that it dropped."""
    overlimits: int | None = None
    """How often a packet had to wait for the rate."""
    backlog_bytes: int | None = None
    """Bytes in the queue at the end."""
    bytes_per_s: Rate = None
    """Bytes that passed in a second."""
    interface_packets: int | None = None
    """Packets that passed the interface, from /proc/PID/net/dev."""
    delay_ns: Delay = None
    """Null: the delay of packets is not measured."""
    jitter_ns: Jitter = None
    """Null, likewise."""
    loss: Loss = None
    """Share of the packets that was dropped; null with a rate, whose token bucket drops packets, too."""
    processes_outside: tuple[str, ...] = ()
    """Processes of the workload that are not in the namespace."""


@dataclass(frozen=True, kw_only=True)
class ShapingEvidence(Evidence):
    promised: Promised
    achieved: Achieved
    settings: Mapping[str, Any] | None = None
    """The disciplines as reported by the kernel, before and after the measured part."""
    note: str | None = None
    """Quantities that were not measured."""


class NetworkShaping(Condition):
    """Limits, delays or loses what the workload's processes send each other over the loopback."""

    name: ClassVar[str] = "network_shaping"
    over_network: ClassVar[bool] = True
    evidence: ClassVar[type[Evidence]] = ShapingEvidence

    rate: BitRate | None = Field(
        default=None, ge=8_000, le=100_000_000_000, description="most that passes in a second, e.g. 20Mbit (tbf)"
    )
    burst: Bytes = Field(
        default=128 << 10,
        ge=LARGEST_PACKET_BYTES,
        le=1 << 30,
        description="what may pass at once after a pause, e.g. 128KiB; with rate",
    )
    queue: DurationNs = Field(
        default=DEFAULT_QUEUE, gt=0, description="longest time that a packet waits for the rate before it is dropped"
    )
    delay: DurationNs = Field(default=0, description="delay of every packet, in each direction (netem)")
    jitter: DurationNs = Field(default=0, description="variation of that delay (netem)")
    loss: Percent = Field(
        default=0.0, ge=0, le=100, description="share of packets lost, in percent, independently (netem)"
    )

    @model_validator(mode="after")
    def _something(self) -> NetworkShaping:
        if self.rate is None and not (self.delay or self.loss):
            raise ValueError("give at least one of rate, delay and loss")
        if self.jitter and not self.delay:
            raise ValueError("jitter needs a delay to vary")
        if self.jitter > self.delay:
            raise ValueError("jitter exceeds the delay")
        return self

    @property
    def kinds(self) -> tuple[str, ...]:
        """The queueing disciplines that it needs."""
        netem = self.delay or self.loss
        return (*(("netem",) if netem else ()), *(("tbf",) if self.rate is not None else ()))

    @property
    def rate_bytes_per_s(self) -> int | None:
        return None if self.rate is None else round(self.rate / 8)

    def check(self, host: Host, graph: Graph, runtime: str) -> None:
        require_processes(self.label, runtime)
        for program in _PACKAGES:
            _find(program)
        if (reason := cannot_make_namespaces()) is not None:
            raise Unavailable(f"{self.label}: {reason}")
        for kind in self.kinds:
            if (reason := missing_discipline(kind)) is not None:
                raise Unavailable(f"{self.label}: {reason}")

    def check_network(self, network: str) -> None:
        if network != INTERFACE:
            raise BadInput(f"{self.label}: shapes only {INTERFACE}, but the network is {network}")

    def commands(self) -> list[str]:
        """The tc commands; a token bucket goes below the delay, as tc-netem(8) recommends."""
        tc = _find("tc")
        commands: list[str] = []
        parent = "root"
        if "netem" in self.kinds:
            words = []
            if self.delay:
                words += ["delay", f"{self.delay // 1000}us", f"{self.jitter // 1000}us"]
            if self.loss:
                words += ["loss", "random", f"{self.loss:g}%"]
            # A queue of netem's default 1000 packets drops at 100000 packets/s and 10 ms, which would be additional
            # loss.
            commands.append(f"{tc} qdisc add dev {INTERFACE} root handle 1: netem limit 1000000 {' '.join(words)}")
            parent = "parent 1:1"
        if "tbf" in self.kinds:
            commands.append(
                f"{tc} qdisc add dev {INTERFACE} {parent} handle 10: tbf rate {self.rate_bytes_per_s}bps "
                f"burst {self.burst} latency {self.queue // 1000}us"
            )
        return commands

    def begin(self, trial: Trial) -> Shaped:
        if trial.launch.prefix:
            raise NotInEffect("another condition already changes where the workload's processes start")
        return Shaped(self, trial)


class Shaped(Applied):
    """The namespace of one trial, in which its processes are launched."""

    def __init__(self, asked: NetworkShaping, trial: Trial) -> None:
        self.asked = asked
        self.trial = trial
        setup = " && ".join([f"{_find('ip')} link set {INTERFACE} up", *asked.commands(), "exec sleep infinity"])
        self.holder: Companion = trial.start(asked.label, [*_unshare(), "sh", "-c", setup])
        wait_until(trial, self._not_ready)
        self.namespace = network_namespace(self._pid())
        self.before: Snapshot | None = None
        trial.launch.prefix = tuple(enter(self._pid()))

    def settle(self) -> None:
        if (reason := self._not_ready()) is not None:
            raise NotInEffect(reason)
        self.before = take_snapshot(self._pid())

    def verify(self, window: Window) -> Evidence:
        asked = self.asked
        promised = Promised(
            interface=INTERFACE,
            disciplines=asked.kinds,
            rate_bytes_per_s=asked.rate_bytes_per_s,
            burst_bytes=asked.burst if asked.rate is not None else None,
            queue_ns=asked.queue if asked.rate is not None else None,
            delay_ns=asked.delay,
            jitter_ns=asked.jitter,
            loss=asked.loss / 100,
        )
        outside = self._outside()
        reason = has_ended(self.holder, "the holder of the namespace")
        if reason is not None:
            return ShapingEvidence(promised=promised, achieved=Achieved(processes_outside=outside), reason=reason)
        after = take_snapshot(self._pid())
        achieved, problem = self._judge(self.before, after, window)
        if outside:
            problem = f"process {outside[0]!r} of the workload is not in the shaped network namespace"
        return ShapingEvidence(
            promised=promised,
            achieved=replace(achieved, processes_outside=outside),
            reason=problem,
            settings=_options(self.before, after),  # a setting passed to the kernel is not a measurement
            note=self._not_measured(),
        )

    def remove(self) -> None:
        self.holder.stop()

    def _not_ready(self) -> str | None:
        if (reason := has_ended(self.holder, "the holder of the namespace")) is not None:
            return reason
        pid = self.holder.pid
        if pid is None or network_namespace(pid) in (None, network_namespace(os.getpid())):
            return "the network namespace is not there"
        found = take_snapshot(pid)
        missing = [kind for kind in self.asked.kinds if kind not in found.disciplines]
        return f"there is no {missing[0]} on {INTERFACE} of the namespace" if missing else None

    def _pid(self) -> int:
        assert self.holder.pid is not None, "trial.start returns once it has been started"
        return self.holder.pid

    def _not_measured(self) -> str | None:
        unknown = [name for name in ("delay", "jitter") if getattr(self.asked, name)]
        if self.asked.loss and "tbf" in self.asked.kinds:
            unknown.append("loss")
        if not unknown:
            return None
        return (
            f"{' and '.join(unknown)}: not measured; it is only known that netem had these settings, and what passed it"
        )

    def _outside(self) -> tuple[str, ...]:
        """The graph's processes in another network namespace, without those that have ended."""
        processes = {**self.trial.processes, **self.trial.condition_processes}
        return outside_namespace(processes, self.namespace)

    def _judge(self, before: Snapshot | None, after: Snapshot, window: Window) -> tuple[Achieved, str | None]:
        if before is None:
            return Achieved(), "it was not settled before the measured time"
        if before.at_ns > window.begin_ns:
            return Achieved(), "its counters were read after the measured time had begun"
        seconds = (after.at_ns - before.at_ns) / NS_PER_S
        counters = ("bytes", "packets", "drops", "overlimits")
        passed, packets, drops, overlimits = (after.counted_since(before, key) for key in counters)
        achieved = Achieved(
            counted_s=rounded(seconds),
            bytes=passed,
            packets=packets,
            drops=drops,
            overlimits=overlimits,
            backlog_bytes=after.count("backlog"),
            bytes_per_s=rounded(None if passed is None else passed / seconds, 1),
            # Without what passed during the two readings: the discipline may or may not have counted that.
            interface_packets=after.interface_packets - before.interface_packets - before.passed_meanwhile,
            loss=rounded(self._lost_share(packets, drops), 6),
        )
        return achieved, (
            _replaced(before, after, self.asked.kinds)
            or self._other_settings(before)
            or self._other_settings(after)
            or _unshaped(achieved)
            or self._too_fast(passed or 0, seconds)
            or self._other_loss(packets or 0, drops or 0)
        )

    def _other_settings(self, snapshot: Snapshot) -> str | None:
        for kind, key, wanted, unit in self._settings():
            found = _setting(snapshot.disciplines[kind], key)
            if found is None or abs(found - wanted) > SETTING_TOLERANCE * wanted:
                shown = "unknown" if found is None else f"{found:g}"
                return f"{key} of {kind} is {shown} {unit}, but {wanted:g} was promised"
        return None

    def _settings(self) -> list[tuple[str, str, float, str]]:
        """Discipline, option and value, as printed by tc."""
        asked = self.asked
        settings: list[tuple[str, str, float, str]] = []
        if asked.rate_bytes_per_s is not None:
            settings += [("tbf", "rate", asked.rate_bytes_per_s, "bytes/s"), ("tbf", "burst", asked.burst, "bytes")]
            settings += [("tbf", "lat", asked.queue / 1000, "us")]
        if asked.delay:
            settings.append(("netem", "delay.delay", asked.delay / NS_PER_S, "s"))
        if asked.jitter:
            settings.append(("netem", "delay.jitter", asked.jitter / NS_PER_S, "s"))
        if asked.loss:
            settings.append(("netem", "loss-random.loss", asked.loss / 100, "of the packets"))
        return settings

    def _too_fast(self, passed: int, seconds: float) -> str | None:
        if self.asked.rate_bytes_per_s is None:
            return None
        most = self.asked.rate_bytes_per_s * seconds * (1 + RATE_TOLERANCE) + self.asked.burst
        return f"{passed} bytes passed, but rate and burst allow only {most:.0f}" if passed > most else None

    def _lost_share(self, packets: int | None, drops: int | None) -> float | None:
        """As counted; None if nothing passed, or if a token bucket drops packets, too."""
        if "tbf" in self.asked.kinds or packets is None or drops is None or packets + drops <= 0:
            return None
        return drops / (packets + drops)

    def _other_loss(self, packets: int, drops: int) -> str | None:
        """If netem is the only discipline, its drops are the loss; a token bucket below it also drops."""
        if not self.asked.loss or "tbf" in self.asked.kinds:
            return None
        share, offered = self.asked.loss / 100, packets + drops
        deviation = (offered * share * (1 - share)) ** 0.5
        if abs(drops - offered * share) <= LOSS_DEVIATIONS * deviation + 1:
            return None
        return f"{drops} of {offered} packets were lost, but {share:.3%} were promised"


def enter(holder: int) -> list[str]:
    """A command prefix that executes a command in the namespaces of a holder."""
    own_user = [] if _is_root() else [f"--user=/proc/{holder}/ns/user", "--preserve-credentials"]
    return [_find("nsenter"), *own_user, f"--net=/proc/{holder}/ns/net", "--"]


def take_snapshot(holder: int) -> Snapshot:
    """Raises NotInEffect if the namespace's disciplines cannot be read."""
    packets = _packets_sent(holder)
    done = _run([*enter(holder), _find("tc"), "-s", "-j", "qdisc", "show", "dev", INTERFACE])
    try:
        listed = json.loads(done.stdout) if done.returncode == 0 else None
    except ValueError:
        listed = None
    if not isinstance(listed, list):
        raise NotInEffect(f"tc cannot read the namespace: {one_line(done.stderr) or done.returncode}")
    # noqueue, the state of an interface without a discipline, is not one.
    found = {str(d["kind"]): d for d in listed if d.get("kind") != "noqueue"}
    return Snapshot(time.monotonic_ns(), found, packets, _packets_sent(holder) - packets)


@functools.cache
def cannot_make_namespaces() -> str | None:
    """Why no network namespace can be created here; None if one can."""
    done = _run([*_unshare(), "true"])
    if done.returncode == 0:
        return None
    said = one_line(done.stderr) or f"unshare exited with status {done.returncode}"
    return f"cannot create a network namespace ({said}); run as root, or allow unprivileged user namespaces"


@functools.cache
def missing_discipline(kind: str) -> str | None:
    """Why a queueing discipline is unavailable, found by creating one in a temporary namespace."""
    arguments = {"tbf": "rate 1mbit burst 128kb latency 50ms", "netem": "delay 1ms"}[kind]
    ip, tc = _find("ip"), _find("tc")
    done = _run([*_unshare(), "sh", "-c", f"{ip} link set lo up && {tc} qdisc add dev lo root {kind} {arguments}"])
    if done.returncode == 0:
        return None
    what = "delay, jitter and loss need" if kind == "netem" else "rate needs"
    return (
        f"{what} {kind}, but this kernel rejects it ({one_line(done.stderr) or done.returncode}); load it with "
        f"`modprobe sch_{kind}`, or use a kernel with CONFIG_NET_SCH_{kind.upper()}"
    )


def _unshare() -> list[str]:
    return [_find("unshare"), *([] if _is_root() else ["--user", "--map-root-user"]), "--net", "--"]


def _is_root() -> bool:
    return os.geteuid() == 0


def _find(program: str) -> str:
    """Raises Unavailable."""
    return str(programs.find(program, f"apt-get install {_PACKAGES[program]}"))


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    try:
        return programs.ask(command, limit_s=_ANSWER_LIMIT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(list(command), -1, "", str(error))


def _packets_sent(pid: int) -> int:
    """Packets that the loopback of a process's namespace sent."""
    try:
        text = (PROC / str(pid) / "net" / "dev").read_text(encoding="utf-8")
    except OSError as error:
        raise NotInEffect(f"the counters of the namespace cannot be read: {error.strerror}") from error
    for line in text.splitlines():
        name, colon, rest = line.partition(":")
        if colon and name.strip() == INTERFACE:
            return int(rest.split()[9])
    raise NotInEffect(f"the namespace has no {INTERFACE}")


def _replaced(before: Snapshot, after: Snapshot, kinds: Sequence[str]) -> str | None:
    """Whether a discipline is gone, or was replaced: a new one counts from 0."""
    for kind in kinds:
        if kind not in after.disciplines:
            return f"{kind} is no longer on {INTERFACE} of the namespace"
        old, new = before.disciplines.get(kind), after.disciplines[kind]
        if old is None or old.get("handle") != new.get("handle") or int(new["bytes"]) < int(old["bytes"]):
            return f"{kind} on {INTERFACE} of the namespace was replaced during the trial"
    return None


def _options(before: Snapshot | None, after: Snapshot) -> dict[str, Any]:
    """The disciplines as reported by the kernel, before and after the measured part."""

    def told(snapshot: Snapshot) -> list[dict[str, Any]]:
        keys = ("kind", "handle", "options")
        return [{key: found[key] for key in keys if key in found} for found in snapshot.disciplines.values()]

    return {"before": None if before is None else told(before), "after": told(after)}


def _unshaped(achieved: Achieved) -> str | None:
    """Whether packets passed the interface without the discipline, or no packets passed at all."""
    packets, on_interface = achieved.packets, achieved.interface_packets or 0
    if on_interface > (packets or 0) * (1 + COUNT_TOLERANCE) + COUNT_SLACK_PACKETS:
        return f"{on_interface} packets passed {INTERFACE}, but only {packets} of them the shaping"
    if not packets:
        return f"no packet passed {INTERFACE}: the workload's messages take another way, e.g. shared memory"
    return None


def _setting(discipline: Mapping[str, Any], path: str) -> float | None:
    """An option of a discipline, "delay.jitter" for a nested one."""
    found: Any = discipline.get("options", {})
    for key in path.split("."):
        found = found.get(key) if isinstance(found, Mapping) else None
    return float(found) if isinstance(found, int | float) and not isinstance(found, bool) else None


def words(given: Mapping[str, Any]) -> str:
    rate, loss = given.get("rate"), given.get("loss")
    times = {what: parse_duration(given.get(what) or "0", what, zero_allowed=True) for what in ("delay", "jitter")}
    parts = [
        f"{quantity(rate)[0] / 1e6:g} Mbit/s" if rate else "",
        *(f"{format_time(ns)} {what}" if ns else "" for what, ns in times.items()),
        f"{loss:g} % loss" if loss else "",
    ]
    return f"a network with {', '.join(filter(None, parts))}"


KIND: Kind[Condition] = Kind(
    "network_shaping",
    "rate, delay, jitter and loss of the loopback, in a network namespace of the trial",
    NetworkShaping,
    words=words,
    gently=("rate=1Gbit", "delay=1ms"),
)
