"""Shared memory and futexes between processes of one machine: the floor that other middlewares are compared with."""

from perflab.middleware.kind import MiddlewareKind, Option

KIND = MiddlewareKind(
    name="shm",
    summary="shared memory and futexes between processes of one machine: the floor of what a message costs",
    runtime="dds",
    install="build it with `make`",
    wire="shm",
    floor=True,
    service_framings=("rmw_fastrtps", "rmw_cyclonedds"),
    options=(
        Option("match_delay", "a writer and a reader match only that long after they know each other (0ns)"),
        Option("max_blocking_time", "how long a reliable writer may wait for room before the write fails (1s)"),
    ),
)
