"""A simulated middleware in real time: links with programmed delay, loss, reordering and duplication."""

from perflab.middleware.kind import MiddlewareKind, Option

KIND = MiddlewareKind(
    name="sim",
    summary="simulated links in real time, with programmed delay, loss, reordering and duplication",
    runtime="dds",
    install="build it with `make`",
    wire="sim",
    takes_seed=True,
    delays=("delay", "jitter"),
    options=(
        Option("delay", "every message arrives that much after it was sent (0ns)"),
        Option("jitter", "and a uniform extra of 0..jitter later, without overtaking (0ns)"),
        Option("loss", "probability with which a message is lost (0)"),
        Option("loss_every", "every n-th message of a writer to a reader is lost"),
        Option("reorder_every", "every n-th message arrives right after its successor"),
        Option("duplicate_every", "every n-th message arrives twice"),
        Option("seed", "of jitter and loss (that of the run)"),
        Option("match_delay", "a writer and a reader match only that long after they know each other (0ns)"),
        Option("max_blocking_time", "how long a reliable writer may wait for room before the write fails (1s)"),
        Option("topic", "disturb this topic only"),
    ),
)
