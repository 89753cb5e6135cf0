"""Plain datagrams over the loopback, best effort: the floor that middlewares over a network are compared with."""

from perflab.middleware.kind import MiddlewareKind, Option, as_option

KIND = MiddlewareKind(
    name="udp",
    summary="plain datagrams over the loopback, best effort: the floor of what a network path costs",
    runtime="dds",
    install="build it with `make`",
    wire="udp",
    over_network={},
    floor=True,
    reliable=False,
    service_framings=("rmw_fastrtps", "rmw_cyclonedds"),
    tuning={
        "receive_buffer": as_option("socket_receive_buffer"),
        "send_buffer": as_option("socket_send_buffer"),
    },
    options=(
        Option("socket_receive_buffer", "what to ask the kernel for, which is the queue of a reader (4MiB)"),
        Option("socket_send_buffer", "what to ask the kernel for (4MiB)"),
    ),
)
