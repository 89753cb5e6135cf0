"""What a node may say on the control channel (docs/formats.md, section 3), checked where it arrives."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator

from perflab.errors import ProtocolError
from perflab.experiment.shared_memory import FOLDER
from perflab.experiment.supervisor import Message

STRANGER = "somebody else uses"  # in what a node says of endpoints with too many peers

NOT_READY = "after the common start"  # in what a node says that was ready too late


class _Line(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Created(_Line):
    """All endpoints of the process exist. `shared_memory` are names in /dev/shm; None: the middleware cannot tell."""

    type: Literal["created"]
    pid: int
    writers: list[dict[str, Any]]
    shared_memory: list[str] | None = None

    @field_validator("shared_memory")
    @classmethod
    def _names(cls, files: list[str] | None) -> list[str] | None:
        """Without the folder, where the middleware tells it."""
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
    """Cumulative counts of the measured part, the workload's own; see docs/formats.md."""

    type: Literal["progress"]
    at_ns: int
    elapsed_ns: int
    publishing: bool
    sent: int
    deliveries_expected: int
    received: int
    completed: int
    lost: int
    latency: str | None = None
    checkpoint_error: str | None = None
    conditions: dict[str, ConditionCounts] | None = None  # by their labels


class Done(_Line):
    """The last line before the process exits with 0."""

    type: Literal["done"]
    files: list[str] = []


class Failure(_Line):
    """The process ends because of an error."""

    type: Literal["error"]
    kind: Literal["bad_input", "unsupported", "failed"]
    text: str


Line = Created | Waiting | Ready | Progress | Done | Failure
_LINE: TypeAdapter[Line] = TypeAdapter(Annotated[Line, Field(discriminator="type")])


def parse(message: Message) -> Line:
    """The line as its type. Raises ProtocolError."""
    try:
        return _LINE.validate_python(message.body)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ProtocolError(
            f"process {message.process!r} sent a line that is not in the protocol: {where}: {first['msg']}"
        ) from error
