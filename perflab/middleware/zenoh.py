"""Eclipse zenoh: peers that connect to each other over the loopback."""

from perflab.middleware.kind import SWITCH, MiddlewareKind, Option, as_option

KIND = MiddlewareKind(
    name="zenoh",
    summary="Eclipse zenoh: peers over TCP on the loopback, or shared memory for large messages",
    runtime="dds",
    install="run `make plugins`",
    wire="zenoh",
    over_network={"shared_memory": "off"},
    service_framings=("rmw_fastrtps", "rmw_cyclonedds"),
    tuning={"shared_memory": as_option("shared_memory")},
    options=(
        Option("express", "send each message at once, without batching (off)", SWITCH),
        Option(
            "shared_memory",
            "messages of 3 KiB and more, and loans; the transport that was really used is counted (on)",
            SWITCH,
        ),
    ),
)
