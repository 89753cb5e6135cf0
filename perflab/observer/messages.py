"""`messages`: every message of the workload: its times at both ends, and its content.

perflab-node records messages where they are sent and received (docs/observers.md): this adds no endpoint, so matching
and delivery are the same as without this observer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field, field_validator

from perflab.condition import Trial
from perflab.errors import NotAsExpected
from perflab.native import Native
from perflab.observer import Artifact, Observation, Observer
from perflab.parameters import Bytes, Names, Switch
from perflab.registry import Kind
from perflab.units import format_count

if TYPE_CHECKING:
    from perflab.results import trial as results

LARGEST_BUFFER = 1 << 30
_TABLE = "messages"


class Messages(Observer):
    """Writes messages.parquet and publications.parquet, and the content beside the records of each process."""

    name: ClassVar[str] = "messages"
    on_command: ClassVar[str | None] = "perflab-node records them"

    topics: Names = Field(
        default=(), description="record only these topics and services (default: all of the workload)"
    )
    contents: Switch = Field(
        default=True, description="also record the content of messages on topics; off: only their times"
    )
    limit: Bytes = Field(
        default=256 << 20,
        gt=0,
        description="most bytes written by each process; later messages are only counted (default: 256MiB)",
    )
    buffer: Bytes = Field(
        default=8 << 20,
        gt=0,
        le=LARGEST_BUFFER,
        description="memory of each process for unwritten records, at least 4 messages (default: 8MiB)",
    )

    @field_validator("topics")
    @classmethod
    def _absolute(cls, topics: tuple[str, ...]) -> tuple[str, ...]:
        for topic in topics:
            if not topic.startswith("/"):
                raise ValueError(f"{topic!r} is not a full topic name; use '/{topic}'")
        return topics

    def configure(self, configuration: dict[str, Any], native: Native) -> None:
        configuration["messages"] = {
            "topics": list(self.topics),
            "contents": self.contents,
            "limit_bytes": self.limit,
            "buffer_bytes": self.buffer,
        }

    def begin(self, trial: Trial) -> Observation:
        return Written(trial.directory)

    @classmethod
    def remarks(cls, directory: Path, threads: Sequence[results.ThreadGroup]) -> Sequence[str]:
        from perflab.formats import messages

        found = messages.read(directory)
        return () if found is None else found.remarks()

    @classmethod
    def recorded(cls, trial: results.Trial, artifact: Callable[[str], Path]) -> str:
        import polars as pl

        received = trial.totals.received
        rows = int(pl.scan_parquet(artifact(_TABLE)).select(pl.col("counted").sum()).collect().item())
        if rows != received:
            raise NotAsExpected(f"{rows} messages were recorded, but {received} were received")
        return f"{format_count(rows)} messages recorded, as many as were received"


class Written(Observation):
    """One trial; its processes have ended when it is stopped."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def stop(self) -> list[Artifact]:
        from perflab.formats import messages

        found = messages.write_tables(self._directory)
        if found is None:
            return []  # the trial ended before any process had its endpoints
        paths = [self._directory / "processes" / f"{log.name}{messages.CONTENTS}" for log in found.logs]
        return [
            Artifact(self._directory / messages.MESSAGES, _TABLE),
            Artifact(self._directory / messages.PUBLICATIONS, "table"),
            *(Artifact(path, "contents") for path in paths if path.is_file() and path.stat().st_size),
        ]


KIND: Kind[Observer] = Kind("messages", "every message: its times, and its content", Messages)
