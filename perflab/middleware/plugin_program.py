"""Loads plug-ins, of middlewares or of a runtime, and prints their descriptions: a list of JSON, in order.

perflab/middleware/probe.py runs this:

    python plugin_program.py LIMIT_S PLUGIN...

Each plug-in is loaded in its own process, all in parallel: one that crashes or hangs does not affect the others. They
are forked, and this module imports little, because starting Python takes longer than the query.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from collections.abc import Sequence

ABI = 10
RUNTIME_ABI = 11
RUNTIME_ENTRY = "perflab_runtime_plugin"
_PR_SET_PDEATHSIG = 1


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
        ("instances", ctypes.c_bool),
        ("filters", ctypes.c_bool),
    )


class _Policy(ctypes.Structure):
    """`perflab_policy`."""

    _fields_ = (("name", ctypes.c_char_p), ("support", ctypes.c_int), ("note", ctypes.c_char_p))


SUPPORT = ("refused", "hint", "supported")  # `perflab_support`


class _Head(ctypes.Structure):
    """The first members of `perflab_middleware` (native/middleware/middleware.h)."""

    _fields_ = (
        ("abi", ctypes.c_uint32),
        ("name", ctypes.c_char_p),
        ("summary", ctypes.c_char_p),
        ("version", ctypes.CFUNCTYPE(ctypes.c_char_p)),
        ("capabilities", ctypes.CFUNCTYPE(_Capabilities)),
        ("policies", ctypes.CFUNCTYPE(ctypes.POINTER(_Policy))),
    )


class _Runtime(ctypes.Structure):
    """The first members of `PluginApi` (native/runtime/plugin.h)."""

    _fields_ = (("abi", ctypes.c_uint32), ("name", ctypes.c_char_p), ("version", ctypes.c_char_p))


def load(path: str) -> dict[str, object]:
    """Loads the plug-in into this process and queries it: members of `probe.Answer`."""
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
        "instances": bool(head.capabilities().instances),
        "filters": bool(head.capabilities().filters),
        "libraries": _mapped(),
        "policies": _policies(head),
    }


def _mapped() -> list[str]:
    """The shared objects of this process, from the kernel."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:  # noqa: PTH123 - imports little
        fields = [line.split(None, 5) for line in maps.read().splitlines()]
    return sorted({f[5] for f in fields if len(f) == 6 and f[5].startswith("/") and ".so" in f[5].rpartition("/")[2]})


def _policies(head: _Head) -> dict[str, list[str | None]]:
    """Its description of QoS policies, and of single values of them: supported, hint or refused, with a note."""
    declared, found, index = head.policies(), {}, 0
    while (name := _text(declared[index].name)) is not None:
        found[name] = [SUPPORT[declared[index].support], _text(declared[index].note)]
        index += 1
    return found


def _runtime(entry: ctypes._NamedFuncPointer) -> dict[str, object]:
    entry.restype = ctypes.POINTER(_Runtime)
    head = entry().contents
    if head.abi != RUNTIME_ABI:
        return {"error": f"it was built for runtime interface {head.abi}, this is {RUNTIME_ABI}"}
    return {"name": _text(head.name), "version": _text(head.version)}


def _text(raw: bytes | None) -> str | None:
    return None if raw is None else raw.decode("utf-8", errors="replace")


def ask(paths: Sequence[str], limit_s: int) -> list[dict[str, object]]:
    """The results of `load` for each plug-in, in its own process, within `limit_s`."""
    begun = [_begin(path, limit_s) for path in paths]
    return [_finish(pid, answer, limit_s) for pid, answer in begun]


def _begin(path: str, limit_s: int) -> tuple[int, int]:
    """Loads a plug-in in another process: returns its pid, and where it writes the result of `load`."""
    answer, of_child = os.pipe()
    parent = os.getpid()
    if (pid := os.fork()) != 0:
        os.close(of_child)
        return pid, answer
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() == parent:
        signal.alarm(limit_s)
        os.dup2(2, 1)  # a library's own output is not an answer
        os.write(of_child, json.dumps(load(path)).encode())
    os._exit(0)


def _finish(pid: int, answer: int, limit_s: int) -> dict[str, object]:
    with open(answer, "rb") as said:
        text = said.read()
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM:
        return {"error": f"it did not answer within {limit_s} s"}
    try:
        found: dict[str, object] = json.loads(text)
    except ValueError:
        return {"error": "it crashes when it is loaded"}
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(ask(sys.argv[2:], int(sys.argv[1]))))
