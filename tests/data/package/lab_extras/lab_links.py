"""The Python side of a middleware; that of perflab-node is the virtual runtime."""

from perflab.middleware.kind import MiddlewareKind, Option

KIND = MiddlewareKind(
    name="lab_links",
    summary="links of a laboratory, in virtual time",
    runtime="virtual",
    install="it is part of lab_extras",
    options=(Option("delay", "every message arrives that much after it was sent (0ns)"),),
)
