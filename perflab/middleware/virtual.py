"""The virtual runtime: the whole graph as discrete events on a virtual clock, deterministic from a seed."""

from perflab.middleware.disturbance import WITHOUT_PREFIX
from perflab.middleware.kind import MiddlewareKind, Option

KIND = MiddlewareKind(
    name="virtual",
    summary="simulated links in virtual time: a 120 s graph in moments, the same for the same seed",
    runtime="virtual",
    install="build perflab-node with `make`",
    without_prefix=True,
    options=(
        *WITHOUT_PREFIX,
        Option("service", "cost of every callback, in addition to the graph's work (0ns)"),
        Option("publish_call", "cost of every publish() (0ns)"),
    ),
)
