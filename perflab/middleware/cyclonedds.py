"""Eclipse Cyclone DDS, by its C API, over RTPS/UDP."""

from collections.abc import Mapping
from typing import Any

from perflab.middleware.iceoryx import ROUDI
from perflab.middleware.kind import SWITCH, MiddlewareKind, Option, ThreadSettings, ThreadsWanted, as_option

LIBRARIES = ("libddsc",)

# Names that the configuration of 0.10 accepts; it refuses any other (check_thread_properties of q_init.c).
_NAMED = ("recv", "tev", "gc", "lease", "dq.builtins", "dq.user", "xmit.user", "debmon", "fsm")
_RECEIVERS = ("recvUC", "recvMC")  # threads with their own sockets, which no name matches


def thread_settings(wanted: ThreadsWanted) -> ThreadSettings:
    """Threads by name; threads without a name in the configuration are not started, and another thread does their
    work."""
    apart = [name for name in wanted.names if name in _RECEIVERS]
    names = [name for name in _NAMED if name in wanted.names or (name == "recv" and apart)]
    lines = ['<CycloneDDS xmlns="https://cdds.io/config">', '  <Domain Id="any">']
    if apart:
        lines += [
            "    <Internal>",
            "      <MultipleReceiveThreads>false</MultipleReceiveThreads>",
            "    </Internal>",
        ]
    lines.append("    <Threads>")
    for name in names:
        level = f"<Class>realtime</Class><Priority>{wanted.priority}</Priority>"
        lines.append(f'      <Thread name="{name}"><Scheduling>{level}</Scheduling></Thread>')
    lines += ["    </Threads>", "  </Domain>", "</CycloneDDS>"]
    notes = ["Class realtime is FIFO on Linux, even if RR was measured. CPUs cannot be set here: use `taskset`."]
    if apart:
        notes.append(
            f"{' and '.join(apart)} cannot be named, so one thread, recv, receives for all sockets here: this "
            "differs from the measured configuration."
        )
    if rest := [name for name in wanted.names if name not in (*_NAMED, *_RECEIVERS)]:
        notes.append(f"{', '.join(rest)}: no such name in the configuration; these inherit.")
    return ThreadSettings("Cyclone DDS: the file that CYCLONEDDS_URI names", "\n".join(lines), tuple(notes))


def high_water(size: Any) -> Mapping[str, str]:
    """Configuration of its writers' history caches; the library only has its own format for it."""
    marks = f"<Watermarks><WhcHigh>{size} B</WhcHigh></Watermarks>"
    return {"config": f'<CycloneDDS><Domain id="any"><Internal>{marks}</Internal></Domain></CycloneDDS>'}


KIND = MiddlewareKind(
    name="cyclonedds",
    summary="Eclipse Cyclone DDS over RTPS/UDP",
    runtime="dds",
    install="install its library with `apt install cyclonedds-dev` and build with `make`",
    wire="rtps",
    over_network={},
    libraries=LIBRARIES,
    thread_settings=thread_settings,
    daemon=ROUDI,
    secured=True,
    tuning={
        "receive_buffer": as_option("socket_receive_buffer"),
        "send_buffer": as_option("socket_send_buffer"),
        "high_water": high_water,
        "shared_memory": as_option("shared_memory"),
    },
    threads=(  # src/core/ddsi/src of the library: q_init.c, ddsi_participant.c, q_receive.c, gcreq
        ("recvMC", "receives multicast datagrams, and delivers their content to readers"),
        ("recvUC", "receives unicast datagrams, and delivers their content to readers"),
        ("recv", "receives datagrams on sockets without another thread"),
        ("tev", "timed events: acknowledgements, heartbeats, retransmissions, announcements"),
        ("dq.builtins", "discovery: handles announcements of other participants and their endpoints"),
        ("dq.user", "delivers messages that arrived out of order or in fragments"),
        ("gc", "frees deleted objects that are no longer in use"),
        ("lease", "removes participants that were silent for too long"),
        ("fsm", "DDS Security: handshakes"),
    ),
    options=(
        Option("batching", "on or off: small messages wait for others and leave in one datagram (off)", SWITCH),
        Option("batching_delay", "longest such wait; for a writer with a latency_budget, that long (1ms)"),
        Option("config", "an XML file, or XML itself, in Cyclone's format; overrides perflab's settings"),
        Option("lease_duration", "how long a silent participant counts as alive (10s)"),
        Option("max_blocking_time", "how long a reliable writer may wait for room before the write fails (1s)"),
        Option("max_message_size", "largest UDP payload, 2000..65500"),
        Option("receive_buffer", "Cyclone's unit of received packets (256KiB)"),
        Option(
            "security",
            "on, off or a folder of credentials: DDS Security, datagrams signed and messages encrypted (off)",
            SWITCH,
        ),
        Option(
            "shared_memory",
            "on or off: messages of fixed size go through iceoryx, whose daemon perflab starts (off)",
            SWITCH,
        ),
        Option("socket_receive_buffer", "size to request from the kernel (4MiB)"),
        Option("socket_send_buffer", "size to request from the kernel (4MiB)"),
    ),
)
