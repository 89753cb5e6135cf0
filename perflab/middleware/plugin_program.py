"""Loads a plug-in, of a middleware or of a runtime, and prints as JSON what it says of itself.

perflab/middleware/probe.py runs this in a process of its own:

    python plugin_program.py PLUGIN

Imports little: to start Python takes longer than the question.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys

ABI = 5
RUNTIME_ABI = 2
RUNTIME_ENTRY = "perflab_runtime_plugin"


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


class _Runtime(ctypes.Structure):
    """The first members of `PluginApi` (native/runtime/plugin.h)."""

    _fields_ = (("abi", ctypes.c_uint32), ("name", ctypes.c_char_p), ("version", ctypes.c_char_p))


def load(path: str) -> dict[str, object]:
    """Loads the plug-in into this process and asks it: members of `probe.Answer`."""
    try:
        library = ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_LOCAL)
        if hasattr(library, RUNTIME_ENTRY):
            return _runtime(getattr(library, RUNTIME_ENTRY))
        entry = library.perflab_middleware_plugin
    except (OSError, AttributeError) as error:
        return {"error": " ".join(str(error).split())}
    entry.restype = ctypes.POINTER(_Head)
    head = entry().contents
    if head.abi != ABI:
        return {"error": f"it was built for plug-in interface {head.abi}, this is {ABI}"}
    return {
        "name": _text(head.name),
        "summary": _text(head.summary),
        "version": _text(head.version()),
        "across_processes": bool(head.capabilities().across_processes),
    }


def _runtime(entry: ctypes._NamedFuncPointer) -> dict[str, object]:
    entry.restype = ctypes.POINTER(_Runtime)
    head = entry().contents
    if head.abi != RUNTIME_ABI:
        return {"error": f"it was built for runtime interface {head.abi}, this is {RUNTIME_ABI}"}
    return {"name": _text(head.name), "version": _text(head.version)}


def _text(raw: bytes | None) -> str | None:
    return None if raw is None else raw.decode("utf-8", errors="replace")


if __name__ == "__main__":
    sys.stdout.write(json.dumps(load(sys.argv[1])))
