"""eProsima Fast DDS, by its C++ API, over RTPS/UDP and shared memory."""

import re

from perflab.middleware.kind import SWITCH, MiddlewareKind, Option, ThreadSettings, ThreadsWanted, as_option

LIBRARIES = ("libfastrtps", "libfastdds")  # before and since 3.0

SETTINGS_SINCE = (2, 13)  # its release notes
_NUMBERS = {"FIFO": 1, "RR": 2}  # of sched(7), which the library passes to the kernel
_THREADS = ("builtin_controllers_sender_thread", "timed_events_thread", "builtin_transports_reception_threads")


def thread_settings(wanted: ThreadsWanted) -> ThreadSettings:
    """A profile of the participant, for versions that have thread settings."""
    mask = sum(1 << cpu for cpu in wanted.cpus)
    level = [
        f"<scheduling_policy>{_NUMBERS[wanted.policy]}</scheduling_policy>",
        f"<priority>{wanted.priority}</priority>",
        *([f"<affinity>{mask}</affinity>"] if mask else []),
    ]
    lines = [
        '<dds xmlns="http://www.eprosima.com">',
        "  <profiles>",
        '    <participant profile_name="participant" is_default_profile="true">',
        "      <rtps>",
    ]
    for name in _THREADS:
        lines += [f"        <{name}>", *(f"          {line}" for line in level), f"        </{name}>"]
    lines += ["      </rtps>", "    </participant>", "  </profiles>", "</dds>"]
    since = ".".join(map(str, SETTINGS_SINCE))
    notes = [f"Thread settings exist since {since}. perflab did not test this file."]
    if wanted.version is not None and _number(wanted.version) < SETTINGS_SINCE:
        notes.insert(
            0,
            f"Not for {wanted.version}, which was measured: it has no thread settings. They inherit from the "
            "thread that creates the participant.",
        )
    return ThreadSettings(
        "Fast DDS: the profiles that FASTRTPS_DEFAULT_PROFILES_FILE names, from 3.0 on FASTDDS_DEFAULT_PROFILES_FILE",
        "\n".join(lines),
        tuple(notes),
    )


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"[0-9]+", version)[:2])


KIND = MiddlewareKind(
    name="fastdds",
    summary="eProsima Fast DDS over RTPS/UDP and shared memory",
    runtime="dds",
    install="run `make` in the perflab source folder, which installs its library",
    wire="rtps",
    libraries=LIBRARIES,
    thread_settings=thread_settings,
    secured=True,
    tuning={
        "receive_buffer": as_option("socket_receive_buffer"),
        "send_buffer": as_option("socket_send_buffer"),
        "shared_memory": lambda on: {"transport": "udp+shm", "data_sharing": "on"} if on else {"transport": "udp"},
    },
    threads=(
        # Names given by perflab's plug-in; the threads of versions since 2.12 have their own.
        ("fdds.udp.disc", "receives and handles datagrams of discovery"),
        ("fdds.udp.user", "receives datagrams of messages, and calls listeners"),
        ("fdds.shm.disc", "receives and handles discovery through shared memory"),
        ("fdds.shm.user", "receives messages through shared memory, and calls listeners"),
        ("fdds.sharing", "waits for messages in memory that writers share, and calls the reader's listener"),
        ("fdds", "timers (heartbeats, acknowledgements, leases), the asynchronous writer, watchdogs, the log"),
        ("dds.ev.*", "timers: heartbeats, acknowledgements, leases, announcements"),
        ("dds.asyn.*", "sends messages that asynchronous writers and flow controllers hold back"),
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
            "transport",
            "udp, shm or udp+shm; the transport that was really used is counted (udp+shm)",
            ("udp", "shm", "udp+shm"),
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
        Option("socket_receive_buffer", "size to request from the kernel (4MiB)"),
        Option("socket_send_buffer", "size to request from the kernel (4MiB)"),
        Option("max_message_size", "largest datagram, 2000..65500 (65500)"),
        Option("shm_segment_size", "size of the shared-memory transport's segment (512KiB)"),
        Option("lease_duration", "how long a silent participant counts as alive (10s)"),
        Option("max_blocking_time", "how long a reliable writer may wait for room before the write fails (1s)"),
        Option(
            "config", "an XML file, or XML itself, with a default participant profile; overrides perflab's settings"
        ),
    ),
)
