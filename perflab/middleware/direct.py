"""No middleware: writing is a function call, within one process."""

from perflab.middleware.kind import MiddlewareKind, Option

KIND = MiddlewareKind(
    name="direct",
    summary="function calls within one process: the cost of a graph without a middleware",
    runtime="dds",
    install="build it with `make`",
    wire="direct",
    floor=True,
    service_framings=("rmw_fastrtps", "rmw_cyclonedds"),
    options=(Option("max_blocking_time", "how long a reliable writer may wait for a reader that keeps all (1s)"),),
)
