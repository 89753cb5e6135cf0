"""eProsima Fast DDS, by its C++ API, over RTPS/UDP and shared memory."""

from perflab.middleware.kind import SWITCH, MiddlewareKind, Option

LIBRARIES = ("libfastrtps", "libfastdds")  # before and since 3.0

KIND = MiddlewareKind(
    name="fastdds",
    summary="eProsima Fast DDS over RTPS/UDP and shared memory",
    runtime="dds",
    install="install its library with `apt install libfastrtps-dev libfastcdr-dev` and build with `make`",
    wire="rtps",
    libraries=LIBRARIES,
    secured=True,
    threads=(
        # As perflab's plug-in names them; those of versions since 2.12 name themselves.
        ("fdds.udp.disc", "receives datagrams of discovery, and handles them"),
        ("fdds.udp.user", "receives datagrams of messages, and calls listeners"),
        ("fdds.shm.disc", "receives discovery through shared memory, and handles it"),
        ("fdds.shm.user", "receives messages through shared memory, and calls listeners"),
        ("fdds.sharing", "waits for messages in memory that writers share, and calls the reader's listener"),
        ("fdds", "timers (heartbeats, acknowledgements, leases), the asynchronous writer, watchdogs, the log"),
        ("dds.ev.*", "timers: heartbeats, acknowledgements, leases, announcements"),
        ("dds.asyn.*", "sends what asynchronous writers and flow controllers hold back"),
        ("dds.udp.*", "receives datagrams, and calls listeners"),
        ("dds.shm.wdog", "frees shared memory of processes that ended"),
        ("dds.shm.*", "receives through shared memory, and calls listeners"),
        ("dds.dsha.*", "waits for messages in memory that writers share, and calls the reader's listener"),
        ("dds.log*", "writes the log"),
    ),
    service_framings=("rmw_fastrtps", "rmw_cyclonedds"),
    over_network={"transport": "udp"},
    options=(
        Option(
            "transport", "udp, shm or udp+shm; what was really used is counted (udp+shm)", ("udp", "shm", "udp+shm")
        ),
        Option(
            "data_sharing",
            "on or off: types of fixed size in memory that processes share, needed for loans (off)",
            SWITCH,
        ),
        Option("intraprocess", "on or off: delivery within the process without a transport (on)", SWITCH),
        Option(
            "security",
            "on, off or a folder of credentials: DDS Security, datagrams signed and messages encrypted (off)",
            SWITCH,
        ),
        Option("publish_mode", "sync or async: whether write() itself sends (sync)", ("sync", "async")),
        Option("socket_receive_buffer", "what to ask the kernel for (4MiB)"),
        Option("socket_send_buffer", "what to ask the kernel for (4MiB)"),
        Option("max_message_size", "largest datagram, 2000..65500 (65500)"),
        Option("shm_segment_size", "of the shared-memory transport (512KiB)"),
        Option("lease_duration", "how long a silent participant counts as alive (10s)"),
        Option("max_blocking_time", "how long a reliable writer may wait for room before the write fails (1s)"),
        Option("config", "an XML file, or XML itself, with a default participant profile; wins over what perflab sets"),
    ),
)
