"""Shared memory and futexes between processes of one machine: the lower bound for comparisons with other
middlewares."""

from perflab.middleware.kind import MiddlewareKind, Option

KIND = MiddlewareKind(
    name="shm",
    summary="shared memory and futexes between processes of one machine: the lower bound of a message's cost",
    runtime="dds",
    install="build it with `make`",
    wire="shm",
    floor=True,
    service_framings=("rmw_fastrtps", "rmw_cyclonedds"),
    options=(
        Option("match_delay", "time between discovery and matching of a writer and a reader (0ns)"),
        Option("max_blocking_time", "how long a reliable writer may wait for room before the write fails (1s)"),
    ),
)
