"""Eclipse iceoryx2: messages in shared memory, delivered without a copy."""

from perflab.middleware.kind import MiddlewareKind, Option

KIND = MiddlewareKind(
    name="iceoryx2",
    summary="Eclipse iceoryx2: shared memory between processes of one machine, without a copy",
    runtime="dds",
    install="run `make plugins`",
    wire="iceoryx2",
    service_framings=("rmw_fastrtps", "rmw_cyclonedds"),
    options=(
        Option("buffer", "messages that may wait for a reader; keep_last keeps at most a quarter of them (4096)"),
        Option("max_blocking_time", "how long a reliable writer waits for a reader that keeps all (1s)"),
    ),
)
