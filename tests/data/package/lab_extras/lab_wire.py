"""The Python side of a middleware whose plug-in lies with it."""

from pathlib import Path

from perflab.middleware.kind import MiddlewareKind

KIND = MiddlewareKind(
    name="lab_wire",
    summary="a wire",
    runtime="dds",
    install="build lab_extras",
    library=Path(__file__).parent / "liblab_wire.so",
)
