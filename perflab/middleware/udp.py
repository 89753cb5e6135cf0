"""Plain datagrams over the loopback, best effort: the lower bound for comparisons with middlewares over a network."""

from perflab.middleware.kind import MiddlewareKind, Option, as_option

KIND = MiddlewareKind(
    name="udp",
    summary="plain datagrams over the loopback, best effort: the lower bound of a network path's cost",
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
        Option("socket_receive_buffer", "size to request from the kernel, which is the queue of a reader (4MiB)"),
        Option("socket_send_buffer", "size to request from the kernel (4MiB)"),
    ),
)
