"""The command of one trial: started under perflab-guard, waited for, asked to end, ended.

It is a companion like any load is, so that it and all its descendants end with perflab whatever is killed. Unlike a
node it says nothing to perflab: whether it is ready is told by time or by its log.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from perflab.condition import Launch
from perflab.errors import BadInput, Unavailable
from perflab.experiment.companion import GuardedCompanion
from perflab.experiment.process import describe_status, log_tail, on_cpus
from perflab.units import NS_PER_S, format_duration
from perflab.workload.command import Command

DOMAIN = "ROS_DOMAIN_ID"
FOLDER = "PERFLAB_TRIAL"
LOOPBACK = "lo"
DISTROS_WITHOUT_RANGE = "h"  # of ROS_DISTRO: Humble and before have ROS_LOCALHOST_ONLY alone

# What a program that speaks ROS 2 or DDS has loaded, with what carries its messages first.
_LIBRARIES = re.compile(r"/(librmw_\w+_cpp|librmw_zenoh\w*|libddsc|libfastdds|libfastrtps|libnddsc|libzenohc?)\.so")


def environment(
    command: Command, levels: Mapping[str, Any], domain: int | None, network: str, folder: Path
) -> dict[str, str]:
    """The variables of a trial: its own domain, on the interface that was asked for, and what the user says."""
    return {DOMAIN: str(domain), **_discovery(network), FOLDER: str(folder.absolute()), **command.environment(levels)}


def _discovery(network: str) -> dict[str, str]:
    on_host = network == LOOPBACK
    found = {"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST" if on_host else "SUBNET"}
    # Later ones still obey it, with a warning.
    if os.environ.get("ROS_DISTRO", "")[:1] <= DISTROS_WITHOUT_RANGE:
        found["ROS_LOCALHOST_ONLY"] = "1" if on_host else "0"
    return found


class CommandRun:
    """One life of the command. `name` is that of its files."""

    def __init__(self, command: Command, name: str, log: Path, arguments: Mapping[str, Any] | None = None) -> None:
        """`arguments` are the levels of factors that stand in its words."""
        self.command = command
        self.words = command.words(arguments or {})
        self.name = name
        self.log = log
        self.companion: GuardedCompanion | None = None
        self.ready_ns: int | None = None
        self.ready_line: str | None = None
        self.asked_to_end_ns: int | None = None
        self.libraries: list[str] | None = None
        self._roots: set[int] = set()
        self._read = 0  # bytes of the log that were searched
        self._closed = False

    @property
    def pid(self) -> int:
        assert self.companion is not None and self.companion.pid is not None, "launch comes first"
        return self.companion.pid

    @property
    def started_ns(self) -> int | None:
        return None if self.companion is None else self.companion.started_ns

    @property
    def ended_ns(self) -> int | None:
        """When its first process ended; what that had started may still run."""
        return None if self.companion is None else self.companion.ended_ns

    def has_ended(self) -> bool:
        return self.ended_ns is not None

    @property
    def status(self) -> int | None:
        return None if self.companion is None else self.companion.status

    def launch(self, launch: Launch, variables: Mapping[str, str], guard: Path) -> GuardedCompanion:
        """Starts it as conditions and observers want it. Raises BadInput where it cannot be executed."""
        with on_cpus(launch.cpus_of.get(self.command.name, launch.cpus)):
            try:
                self.companion = GuardedCompanion(
                    self.name,
                    [*launch.prefix, *self.words],
                    guard=guard,
                    log=self.log,
                    environment={**variables, **launch.environment},
                    directory=self.command.parameters.folder,
                )
            except Unavailable as error:
                raise BadInput(f"{error}: name a program for this machine, or a script with its interpreter") from error
        return self.companion

    def new_roots(self) -> list[int]:
        """The first process, and daemons that have left the tree below it, each once."""
        assert self.companion is not None
        found = [pid for pid in (self.pid, *self.companion.children()) if pid not in self._roots]
        self._roots.update(found)
        return list(dict.fromkeys(found))

    def not_ready(self) -> str | None:
        """What is still missing until measuring may begin, without waiting; None once it is ready."""
        if self.ready_ns is not None:
            return None
        assert self.started_ns is not None
        ready, now_ns = self.command.parameters.ready_when, time.monotonic_ns()
        if ready.after is not None:
            if now_ns < self.started_ns + ready.after:
                return f"{format_duration(ready.after / NS_PER_S)} have not passed"
        elif ready.log is not None and (line := self._line_like(ready.log)) is not None:
            self.ready_line = line
        elif ready.log is not None:
            return f"no line of its log matches {ready.log!r}"
        self.ready_ns = now_ns
        return None

    def _line_like(self, pattern: str) -> str | None:
        """The first new line of the log that matches; the last one also while it is being written."""
        with contextlib.suppress(OSError), self.log.open("rb") as file:
            file.seek(self._read)
            data = file.read()
            *whole, rest = data.split(b"\n")
            self._read += len(data) - len(rest)
            for line in (*whole, rest):
                text = line.decode("utf-8", errors="replace")
                if re.search(pattern, text):
                    return text.strip()
        return None

    def ask_to_end(self) -> None:
        assert self.companion is not None
        stop = self.command.parameters.stop
        self.asked_to_end_ns = time.monotonic_ns()
        self.companion.signal(stop.number, group=stop.to == "group")

    def close(self) -> None:
        """Ends whatever is left of it. Raises PerflabError where that cannot be done. Idempotent."""
        if self.companion is not None and not self._closed:
            self._closed = True
            self.companion.stop()

    def note_libraries(self) -> None:
        """What carries its messages, while it runs."""
        assert self.companion is not None
        self.libraries = loaded_libraries(self.companion.processes())

    def how_it_ended(self) -> str:
        """ "exited with 3 0.52 s after it was started; its log ends with: ..."."""
        assert self.companion is not None
        how = "was ended" if self.status is None else describe_status(self.status)
        after = ""
        if self.started_ns is not None and self.ended_ns is not None:
            after = f" {format_duration((self.ended_ns - self.started_ns) / NS_PER_S)} after it was started"
        return f"{how}{after}{self.last_words()}"

    def last_words(self) -> str:
        tail = log_tail(self.log)
        return f"; its log ends with: {tail[-1]}" if tail else "; its log is empty"

    @property
    def run_s(self) -> float | None:
        """How long it ran, of one that ends by itself and has."""
        if not self.command.parameters.ends_itself or self.ended_ns is None or self.started_ns is None:
            return None
        return (self.ended_ns - self.started_ns) / NS_PER_S

    def document(self) -> dict[str, Any]:
        """For trial.json."""
        begin_ns = self.started_ns

        def since_start(at_ns: int | None) -> float | None:
            return None if at_ns is None or begin_ns is None else (at_ns - begin_ns) / NS_PER_S

        parameters = self.command.parameters
        return {
            "words": self.words,
            "ready_s": since_start(self.ready_ns),
            "ready_line": self.ready_line,
            "stop_signal": None if self.asked_to_end_ns is None else str(parameters.stop.signal),
            "asked_to_end_s": since_start(self.asked_to_end_ns),
            "ended_s": since_start(self.ended_ns),
            "run_s": self.run_s,
            "libraries": self.libraries,
        }


def loaded_libraries(pids: Iterable[int]) -> list[str] | None:
    """Names of the middlewares' libraries in these processes; None where none could be looked into."""
    found: set[str] = set()
    known = False
    for pid in pids:
        try:
            maps = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        known = True
        found |= {match[1] for match in _LIBRARIES.finditer(maps)}
    return sorted(found) if known else None
