"""Asks a plug-in, of a middleware or of a runtime, what it is, in a process of its own: a library that cannot be
loaded, or that crashes while it is loaded, must not take perflab with it.

Run as a program with the path of a plug-in, this file prints what it found as JSON.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import Any

ABI = 5
RUNTIME_ABI = 2
RUNTIME_ENTRY = "perflab_runtime_plugin"
PROBE_TIMEOUT_S = 20.0


@dataclass(frozen=True)
class Answer:
    """What a plug-in says of itself; `error` is one line where it cannot be used."""

    name: str | None = None
    summary: str | None = None
    version: str | None = None
    across_processes: bool = True
    error: str | None = None


class _Capabilities(ctypes.Structure):
    """`perflab_capabilities`."""

    _fields_ = (
        ("across_processes", ctypes.c_bool),
        ("data_ready_callbacks", ctypes.c_bool),
        ("source_timestamps", ctypes.c_bool),
        ("reception_timestamps", ctypes.c_bool),
        ("reports_endpoints", ctypes.c_bool),
        ("related_samples", ctypes.c_bool),
        ("loans", ctypes.c_bool),
    )


class _Head(ctypes.Structure):
    """The first members of `perflab_middleware` (native/middleware/middleware.h)."""

    _fields_ = (
        ("abi", ctypes.c_uint32),
        ("name", ctypes.c_char_p),
        ("summary", ctypes.c_char_p),
        ("version", ctypes.CFUNCTYPE(ctypes.c_char_p)),
        ("capabilities", ctypes.CFUNCTYPE(_Capabilities)),
    )


def probe(library: os.PathLike[str]) -> Answer:
    """What the plug-in at that path says of itself. Raises Interrupted alone."""
    from perflab.programs import ask  # the program that this file is as well has nothing but the standard library

    try:
        done = ask([sys.executable, "-I", "-S", __file__, os.fspath(library)], limit_s=PROBE_TIMEOUT_S)
        return Answer(**json.loads(done.stdout))
    except subprocess.TimeoutExpired:
        return Answer(error=f"it did not answer within {PROBE_TIMEOUT_S:.0f} s")
    except (OSError, ValueError, TypeError):
        return Answer(error="it crashes when it is loaded")


class _Runtime(ctypes.Structure):
    """The first members of `PluginApi` (native/runtime/plugin.h)."""

    _fields_ = (("abi", ctypes.c_uint32), ("name", ctypes.c_char_p), ("version", ctypes.c_char_p))


def load(path: str) -> Answer:
    """Loads the plug-in into this process and asks it."""
    try:
        library = ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_LOCAL)
        if hasattr(library, RUNTIME_ENTRY):
            return _runtime(getattr(library, RUNTIME_ENTRY))
        entry = library.perflab_middleware_plugin
    except (OSError, AttributeError) as error:
        return Answer(error=" ".join(str(error).split()))
    entry.restype = ctypes.POINTER(_Head)
    head = entry().contents
    if head.abi != ABI:
        return Answer(error=f"it was built for plug-in interface {head.abi}, this is {ABI}")
    across_processes = bool(head.capabilities().across_processes)
    return Answer(_text(head.name), _text(head.summary), _text(head.version()), across_processes)


def _runtime(entry: Any) -> Answer:
    entry.restype = ctypes.POINTER(_Runtime)
    head = entry().contents
    if head.abi != RUNTIME_ABI:
        return Answer(error=f"it was built for runtime interface {head.abi}, this is {RUNTIME_ABI}")
    return Answer(_text(head.name), None, _text(head.version))


def _text(raw: bytes | None) -> str | None:
    return None if raw is None else raw.decode("utf-8", errors="replace")


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asdict(load(sys.argv[1]))))
