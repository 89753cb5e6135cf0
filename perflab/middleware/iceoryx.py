"""RouDi, the daemon of iceoryx, which owns the memory that the processes of a machine share. A machine has one."""

from __future__ import annotations

import grp
import math
import os
import shutil
import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perflab.errors import Unavailable
from perflab.processes import is_locked

PROGRAM = "iox-roudi"
PACKAGE = "iceoryx"
OPTION = "shared_memory"
SHARED = Path("/dev/shm")
MADE = Path("/tmp")  # folder of iceoryx's sockets and locks
SOCKET, LOCK, MANAGEMENT = "roudi", "iox-unique-roudi.lock", "iceoryx_mgmt"
LOCKS = (LOCK, f"{SOCKET}.lock")
OF_PROCESS = "iceoryx_rt_{pid}_*"  # Cyclone DDS's name for a process

QUEUE = 256  # limit of a subscriber
IN_PLACE = 200  # messages of deeper histories are copied (native/middleware/cyclonedds/iceoryx.h)
LOANS = 8  # of a publisher
SPARE = 4  # the last message of a publisher, one that is being read, and those under way
HEADERS = 1024  # bytes of a message in addition to the header of perflab's types, the encapsulation and the chunk's own
ALIGNED = 64
SMALL, SMALL_COUNT = 1024, 256  # minimum


@dataclass(frozen=True)
class RouDi:
    """A `Daemon` of perflab.middleware.kind."""

    name: str = PROGRAM

    def wanted(self, options: Mapping[str, str]) -> bool:
        return options.get(OPTION) == "on"

    def require(self) -> None:
        if shutil.which(PROGRAM) is None:
            raise Unavailable(
                f"{OPTION}=on needs {PROGRAM}, which is not installed; install it with `apt install {PACKAGE}`"
            )

    def require_none(self) -> None:
        if is_held():
            raise Unavailable(
                f"{OPTION}=on: another {PROGRAM} is running; a machine can have only one, and perflab starts its "
                "own; end it, or wait until the run that uses it is over"
            )

    def command(self, graph: Mapping[str, Any], folder: Path) -> list[str]:
        file = folder / "roudi.toml"
        pools = pools_of(graph)
        needed, free = sum(size * count for size, count in pools.items()), shutil.disk_usage(SHARED).free
        if needed > free:
            raise Unavailable(
                f"{OPTION}=on: the messages of the graph need {needed >> 20} MiB of shared memory, but {SHARED} "
                f"has only {free >> 20} MiB left; use smaller messages, or shallower histories"
            )
        file.write_text(_configuration(pools), encoding="utf-8")
        # A process that does not answer in time on a busy machine must not lose its memory.
        return [PROGRAM, "--config-file", str(file), "--monitoring-mode", "off", "--log-level", "error"]

    def ready(self) -> bool:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect(str(MADE / SOCKET))
            except OSError:
                return False
        return True

    def left_over(self, pids: Iterable[int]) -> list[Path]:
        """Files left by killed processes of the trial, and by RouDi if it was killed; none that are in use."""
        found = [path for pid in pids for path in MADE.glob(OF_PROCESS.format(pid=pid))]
        if not is_held():
            segment = grp.getgrgid(os.getgid()).gr_name  # RouDi's name for it
            found += [MADE / SOCKET, *(MADE / lock for lock in LOCKS), SHARED / MANAGEMENT, SHARED / segment]
        return [path for path in found if _is_ours(path)]


def _is_ours(path: Path) -> bool:
    try:
        return path.lstat().st_uid == os.getuid()
    except OSError:
        return False  # it does not exist


def is_held() -> bool:
    """Whether a RouDi runs: it holds a lock as long as it lives."""
    try:
        return is_locked(MADE / LOCK)
    except PermissionError:  # another user's
        return RouDi().ready()


def pools_of(graph: Mapping[str, Any]) -> dict[int, int]:
    """The largest number of chunks of each size that a resolved graph needs, so that no writer ever waits for one: a
    reader has as many in iceoryx's queue as in its history."""
    nodes: Sequence[Mapping[str, Any]] = [node for process in graph["processes"] for node in process["nodes"]]
    held: dict[str, int] = {}
    for node in nodes:
        for subscription in node["subscriptions"]:
            if (depth := subscription["qos"]["depth"]) is not None:  # keep_all messages do not go through shared memory
                here = min(depth, QUEUE) + (depth if depth <= IN_PLACE else 0) + SPARE
                held[subscription["topic"]] = held.get(subscription["topic"], 0) + here
    pools = {SMALL: SMALL_COUNT}
    for node in nodes:
        for publisher in node["publishers"]:
            if publisher["size_bytes"] is None:  # messages of variable size are not carried by iceoryx
                continue
            size = math.ceil((publisher["size_bytes"] + HEADERS) / ALIGNED) * ALIGNED
            # Readers are counted only with the first publisher of a topic.
            pools[size] = pools.get(size, 0) + LOANS + SPARE + held.pop(publisher["topic"], 0)
    return dict(sorted(pools.items()))


def _configuration(pools: Mapping[int, int]) -> str:
    text = "[general]\nversion = 1\n\n[[segment]]\n"
    for size, count in pools.items():
        text += f"\n[[segment.mempool]]\nsize = {size}\ncount = {count}\n"
    return text


ROUDI = RouDi()
