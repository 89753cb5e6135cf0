"""Whether the process that makes a run is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perflab.host import Host
from perflab.processes import Process, pid_namespace

# Whose perflab it is that made a run: alive, gone, or out of sight.
RUNNING, GONE, ELSEWHERE = "running", "gone", "elsewhere"


def controller_state(manifest: Mapping[str, Any], host: Host) -> str:
    """RUNNING, GONE or ELSEWHERE: on another machine, or among processes that cannot be seen from here."""
    controller = manifest.get("controller") or {}
    recorded = (manifest.get("host") or {}).get("hostname")
    if controller.get("boot_id") != host.boot_id():
        return GONE if recorded is None or recorded == host.facts()["hostname"] else ELSEWHERE
    namespace = controller.get("pid_namespace")
    if namespace is not None and namespace != pid_namespace():
        return ELSEWHERE
    pid, ticks = controller.get("pid"), controller.get("start_ticks")
    if not isinstance(pid, int) or not isinstance(ticks, int):
        return GONE
    return RUNNING if Process(pid, ticks).alive else GONE
