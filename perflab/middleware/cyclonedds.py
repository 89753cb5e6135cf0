"""Eclipse Cyclone DDS, by its C API, over RTPS/UDP."""

from perflab.middleware.iceoryx import ROUDI
from perflab.middleware.kind import SWITCH, MiddlewareKind, Option

LIBRARIES = ("libddsc",)

KIND = MiddlewareKind(
    name="cyclonedds",
    summary="Eclipse Cyclone DDS over RTPS/UDP",
    runtime="dds",
    install="install its library with `apt install cyclonedds-dev` and build with `make`",
    wire="rtps",
    over_network={},
    libraries=LIBRARIES,
    daemon=ROUDI,
    secured=True,
    threads=(  # src/core/ddsi/src of the library: q_init.c, ddsi_participant.c, q_receive.c, gcreq
        ("recvMC", "receives multicast datagrams, and delivers what they hold to readers"),
        ("recvUC", "receives unicast datagrams, and delivers what they hold to readers"),
        ("recv", "receives datagrams on the sockets that no other thread has"),
        ("tev", "timed events: acknowledgements, heartbeats, what is sent again, announcements"),
        ("dq.builtins", "discovery: handles what was heard of other participants and their endpoints"),
        ("dq.user", "delivers messages that arrived out of order or in fragments"),
        ("gc", "frees what was deleted when nobody uses it any more"),
        ("lease", "ends participants that were silent for too long"),
        ("fsm", "DDS Security: handshakes"),
    ),
    options=(
        Option("batching", "on or off: small messages wait for others and leave in one datagram (off)", SWITCH),
        Option("batching_delay", "how long they wait at most; of a writer with a latency_budget that long (1ms)"),
        Option("config", "an XML file, or XML itself, in Cyclone's format; wins over what perflab sets"),
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
            "on or off: messages of fixed size go through iceoryx, of which perflab starts the daemon (off)",
            SWITCH,
        ),
        Option("socket_receive_buffer", "what to ask the kernel for (4MiB)"),
        Option("socket_send_buffer", "what to ask the kernel for (4MiB)"),
    ),
)
