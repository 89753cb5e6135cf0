"""Whether the process that makes a run exists."""

from __future__ import annotations

from perflab.host import Host
from perflab.processes import Process, pid_namespace
from perflab.results.files import Controller, Manifest

# State of the perflab process that makes a run: alive, gone, or out of sight.
RUNNING, GONE, ELSEWHERE = "running", "gone", "elsewhere"


def controller_state(manifest: Manifest, host: Host) -> str:
    """RUNNING, GONE or ELSEWHERE: on another machine, or among processes that are not visible here."""
    controller = manifest.controller or Controller()
    recorded = manifest.host.get("hostname")
    if controller.boot_id != host.boot_id():
        return GONE if recorded is None or recorded == host.facts()["hostname"] else ELSEWHERE
    if controller.pid_namespace not in (None, pid_namespace()):
        return ELSEWHERE
    if controller.pid is None or controller.start_ticks is None:
        return GONE
    return RUNNING if Process(controller.pid, controller.start_ticks).alive else GONE
