"""The virtual runtime: the whole graph as discrete events on a virtual clock, deterministic from a seed."""

from perflab.middleware.kind import MiddlewareKind, Option

KIND = MiddlewareKind(
    name="virtual",
    summary="simulated links in virtual time: a 120 s graph in moments, the same for the same seed",
    runtime="virtual",
    install="build perflab-node with `make`",
    options=(
        Option("delay", "every message arrives that much after it was sent (0ns)"),
        Option("jitter", "and a uniform extra of 0..jitter later (0ns)"),
        Option("service", "what every callback costs, beside the work of the graph (0ns)"),
        Option("publish_call", "what every publish() costs (0ns)"),
        Option("loss", "probability with which a message is lost (0)"),
        Option("loss_every", "every n-th message of a link is lost"),
        Option("reorder_every", "every n-th message of a link arrives after its successor"),
        Option("duplicate_every", "every n-th message of a link arrives twice"),
        Option("seed", "of jitter and loss (that of the run)"),
    ),
)
