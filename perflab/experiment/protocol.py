"""The control channel, and a node's messages on it (docs/formats.md, section 3), checked on arrival."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator

from perflab.errors import ProtocolError
from perflab.experiment.shared_memory import FOLDER

MAX_LINE_BYTES = 64 << 20

STRANGER = "another program uses"  # in a node's report on endpoints with too many peers

NOT_READY = "after the common start"  # in a node's report that it was ready too late


class Channel:
    """One JSON object per line, over a socket that never blocks on this side. `who` describes its other end."""

    def __init__(self, who: str) -> None:
        """`theirs` is the other end, which the child process inherits and the caller closes."""
        self.open = True
        self._who = who
        self._socket, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.setblocking(False)
        self._incoming, self._outgoing = bytearray(), bytearray()

    def fileno(self) -> int:
        """-1 after close()."""
        return self._socket.fileno()

    @property
    def has_to_send(self) -> bool:
        return bool(self._outgoing)

    def send(self, body: Mapping[str, Any]) -> None:
        """Queues one line; it is sent as the other end reads. Has no effect after it has ended."""
        if self.open:
            self._outgoing += json.dumps(body, separators=(",", ":")).encode() + b"\n"
            self.flush()

    def flush(self) -> None:
        try:
            while self._outgoing:
                del self._outgoing[: self._socket.send(self._outgoing)]
        except BlockingIOError:
            pass
        except OSError:
            self._outgoing.clear()  # the other end is ending; its pidfd reports how

    def receive(self) -> Iterator[dict[str, Any]]:
        """Everything that has arrived so far; `open` is False once nothing more can come. Raises ProtocolError."""
        while self.open:
            try:
                chunk = self._socket.recv(1 << 16)
            except BlockingIOError:
                break
            except ConnectionError:
                chunk = b""
            self.open = bool(chunk)
            self._incoming += chunk
        while (end := self._incoming.find(b"\n")) >= 0:
            line = bytes(self._incoming[:end])
            del self._incoming[: end + 1]
            yield self._parse(line)
        if len(self._incoming) > MAX_LINE_BYTES:
            raise ProtocolError(f"{self._who} sent a line of more than {MAX_LINE_BYTES >> 20} MiB")

    def close(self) -> None:
        self.open = False
        self._socket.close()

    def _parse(self, line: bytes) -> dict[str, Any]:
        try:
            body = json.loads(line)
        except ValueError:
            body = None
        if not isinstance(body, dict) or not isinstance(body.get("type"), str):
            raise ProtocolError(f"{self._who} sent a line that violates the protocol: {line[:80]!r}")
        return body


@dataclass(frozen=True)
class Message:
    """One line from a node."""

    process: str
    body: dict[str, Any]


class _Line(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Created(_Line):
    """All endpoints of the process exist. `shared_memory` are names in /dev/shm; None: the middleware does not report
    them."""

    type: Literal["created"]
    pid: int
    writers: list[dict[str, Any]]
    shared_memory: list[str] | None = None

    @field_validator("shared_memory")
    @classmethod
    def _names(cls, files: list[str] | None) -> list[str] | None:
        """Without the folder, if the middleware reports it."""
        return None if files is None else [file.removeprefix(f"{FOLDER}/") for file in files]


class Waiting(_Line):
    """Not everything is matched yet."""

    type: Literal["waiting"]
    unmatched: list[str]


class Ready(_Line):
    """Everything is matched, or discovery took too long."""

    type: Literal["ready"]
    matched: bool
    unmatched: list[str] = []


class ConditionCounts(_Line):
    """Messages from the nodes of one condition, as far as this process sends or receives them; cumulative."""

    sent: int
    not_sent: int
    deliveries_expected: int
    received: int


class Progress(_Line):
    """Cumulative counts of the measured part, of the workload's own messages; see docs/formats.md."""

    type: Literal["progress"]
    at_ns: int
    elapsed_ns: int
    publishing: bool
    sent: int
    deliveries_expected: int
    received: int
    completed: int
    lost: int
    received_bytes: int | None = None  # payload of topics
    latency_count: int | None = None
    latency_sum: int | None = None
    latency: str | None = None
    response: str | None = None  # while messages are published
    checkpoint_error: str | None = None
    conditions: dict[str, ConditionCounts] | None = None  # by label


class PartEnded(_Line):
    """The program of the process ends the measured part of the trial."""

    type: Literal["ended"]
    at_ns: int


class Done(_Line):
    """The last line before the process exits with 0."""

    type: Literal["done"]
    files: list[str] = []


class Failure(_Line):
    """The process ends because of an error."""

    type: Literal["error"]
    kind: Literal["bad_input", "unsupported", "failed"]
    text: str


Line = Created | Waiting | Ready | Progress | PartEnded | Done | Failure
_LINE: TypeAdapter[Line] = TypeAdapter(Annotated[Line, Field(discriminator="type")])


def parse(message: Message) -> Line:
    """The line as its type. Raises ProtocolError."""
    try:
        return _LINE.validate_python(message.body)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ProtocolError(
            f"process {message.process!r} sent a line that violates the protocol: {where}: {first['msg']}"
        ) from error
