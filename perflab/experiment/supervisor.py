"""The perflab-node processes of one trial: started, controlled, watched and ended.

Each node is the leader of its own session and process group, so that a terminal's Ctrl-C does not reach it and that all
its descendants end with it. A pidfd reports its end at once. The control channel (docs/formats.md, section 3) is a
socket pair with one JSON object per line, non-blocking on perflab's side.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perflab.errors import ProtocolError, Unavailable
from perflab.experiment.companion import GuardedCompanion
from perflab.experiment.protocol import Channel, Message
from perflab.processes import on_cpus
from perflab.signals import Signals
from perflab.waiting import STEP_S, Wait

KILL_WAIT_S = 10.0
LOOK_INTERVAL_S = 1.0


@dataclass(frozen=True)
class Ended:
    """A node has ended. `status` is its exit status, or minus the number of the signal that killed it."""

    process: str
    status: int


@dataclass(frozen=True)
class CompanionEnded:
    """A program beside the workload ended although it was not stopped."""

    companion: GuardedCompanion


@dataclass(frozen=True)
class Tick:
    """Nothing happened until the timeout."""


Event = Message | Ended | CompanionEnded | Tick


@dataclass
class NodeProcess:
    """One running perflab-node."""

    name: str
    log: Path
    popen: subprocess.Popen[bytes]
    pidfd: int
    channel: Channel
    status: int | None = None

    @property
    def pid(self) -> int:
        return self.popen.pid


class Supervisor:
    """All nodes of one trial. Use as a context: on leaving, every process is gone in any case."""

    def __init__(self, signals: Signals | None = None) -> None:
        self.nodes: dict[str, NodeProcess] = {}
        self._signals = signals
        self._selector = selectors.DefaultSelector()
        self._pending: list[Event] = []
        self._next_look_s = 0.0
        self._watched: dict[int, GuardedCompanion] = {}  # by the descriptors to wait for
        self.waiting: Wait | None = None  # what `poll` waits for, if not the measured part
        if signals is not None:
            self._selector.register(signals.fileno(), selectors.EVENT_READ, None)

    def __enter__(self) -> Supervisor:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        for node in self.nodes.values():
            with contextlib.suppress(ProtocolError):
                self._receive(node)
            node.channel.close()
        self._selector.close()

    def start(
        self,
        name: str,
        command: Sequence[str | os.PathLike[str]],
        log: Path,
        *,
        cpus: Set[int] | None = None,
        environment: Mapping[str, str] | None = None,
        descriptors: Sequence[int] = (),
    ) -> NodeProcess:
        """Starts `command --control-fd N` with its output in `log`. Raises Unavailable and OSError.

        `cpus` are those that all its threads may use from the first instant, None: perflab's. `environment` is added to
        perflab's. `descriptors` are inherited under the same numbers.
        """
        channel = Channel(f"process {name!r}")
        with channel.theirs as theirs, log.open("wb") as output, on_cpus(cpus):
            try:
                popen = subprocess.Popen(
                    [*command, "--control-fd", str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    pass_fds=(theirs.fileno(), *descriptors),
                    start_new_session=True,
                    env=None if not environment else {**os.environ, **environment},
                )
            except OSError as error:
                channel.close()
                program = os.fspath(command[0])
                raise Unavailable(f"cannot start {program}: {error.strerror}; build it again with `make`") from error
        node = NodeProcess(name, log, popen, os.pidfd_open(popen.pid), channel)
        self.nodes[name] = node
        self._selector.register(node.channel, selectors.EVENT_READ, node)
        self._selector.register(node.pidfd, selectors.EVENT_READ, node)
        return node

    def watch(self, companion: GuardedCompanion) -> None:
        """From now on, `poll` reports when the companion ends by itself."""
        for descriptor in (companion.fileno(), companion.pidfd):
            self._watched[descriptor] = companion
            self._selector.register(descriptor, selectors.EVENT_READ, companion)

    def forget(self, companion: GuardedCompanion) -> None:
        """Call before a companion is stopped on purpose."""
        for descriptor in [d for d, watched in self._watched.items() if watched is companion]:
            self._drop(descriptor)

    def _drop(self, descriptor: int) -> None:
        if self._watched.pop(descriptor, None) is not None:
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(descriptor)

    def send(self, node: NodeProcess, body: dict[str, Any]) -> None:
        """Queues one line; it is sent as the node reads."""
        node.channel.send(body)
        self._select(node)

    def send_all(self, body: dict[str, Any]) -> None:
        """Queues one line for every node that still runs."""
        for node in self.nodes.values():
            if node.status is None:
                self.send(node, body)

    def poll(self, deadline_s: float) -> Event:
        """The next event, or Tick when time.monotonic() reaches the deadline. Raises Interrupted, ProtocolError."""
        while not self._pending:
            if self._signals is not None:
                self._signals.raise_if_received()
            self._look_after_companions()
            left_s = deadline_s - time.monotonic()
            if self.waiting is not None:
                self.waiting.say()
                left_s = min(left_s, self.waiting.silent_for_s)
            ready = self._selector.select(max(0.0, left_s))
            for key, mask in ready:
                node = key.data
                if node is None:
                    continue
                if not isinstance(node, NodeProcess):
                    self._hear_companion(node)
                    continue
                if key.fileobj == node.pidfd:
                    self._reap(node)
                    continue
                if mask & selectors.EVENT_WRITE:
                    node.channel.flush()
                    self._select(node)
                if mask & selectors.EVENT_READ:
                    self._receive(node)
            if not ready and time.monotonic() >= deadline_s:
                return Tick()
        return self._pending.pop(0)

    def heed_signal(self) -> None:
        """The Interrupted that `poll` raised was a request, and is handled."""
        if self._signals is not None:
            self._signals.heed()

    @property
    def unheard(self) -> list[Message]:
        """Messages that nodes had sent before they ended and that were not polled yet."""
        return [event for event in self._pending if isinstance(event, Message)]

    @property
    def running(self) -> list[NodeProcess]:
        return [node for node in self.nodes.values() if node.status is None]

    def kill(self) -> None:
        """Kills every process group that still has its leader, and waits for the leaders."""
        for node in self.running:
            _kill_group(node.pid)
        for node in self.running:
            wait = Wait(f"process {node.name!r} (pid {node.pid}), which was killed, to end", KILL_WAIT_S)
            while node.status is None and not wait.is_over:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._ended(node, node.popen.wait(STEP_S))
                wait.say()

    def _look_after_companions(self) -> None:
        """Lets them note their descendants, so that these can be found if a guard is killed."""
        if time.monotonic() < self._next_look_s:
            return
        self._next_look_s = time.monotonic() + LOOK_INTERVAL_S
        for companion in list({id(w): w for w in self._watched.values()}.values()):
            self._hear_companion(companion)

    def _hear_companion(self, companion: GuardedCompanion) -> None:
        companion.poll()
        if not companion.channel.open:
            for descriptor in [d for d, w in self._watched.items() if w is companion and d != companion.pidfd]:
                self._drop(descriptor)
        if companion.ended_by_itself or companion.finished:
            self.forget(companion)
            self._pending.append(CompanionEnded(companion))

    def _reap(self, node: NodeProcess) -> None:
        """Notes the end of a node after everything that it had sent before."""
        if node.status is not None:
            return
        self._receive(node)
        # The group is killed before its leader is reaped: until then its number cannot be reused.
        _kill_group(node.pid)
        self._ended(node, node.popen.wait())

    def _ended(self, node: NodeProcess, status: int) -> None:
        node.status = status
        self._pending.append(Ended(node.name, status))
        with contextlib.suppress(KeyError):
            self._selector.unregister(node.pidfd)
        os.close(node.pidfd)

    def _receive(self, node: NodeProcess) -> None:
        """Notes everything that a node has sent so far. Raises ProtocolError."""
        was_open = node.channel.open
        for body in node.channel.receive():
            self._pending.append(Message(node.name, body))
        if was_open and not node.channel.open:
            self._selector.unregister(node.channel)

    def _select(self, node: NodeProcess) -> None:
        """Also waits until the node reads, if there is more to send to it."""
        if node.channel.open:
            writing = selectors.EVENT_WRITE if node.channel.has_to_send else 0
            self._selector.modify(node.channel, selectors.EVENT_READ | writing, node)


def _kill_group(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
