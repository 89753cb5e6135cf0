"""`messages`: every message of the workload, one by one: its times at both ends, and what was in it.

perflab-node writes them down where they are sent and received (docs/observers.md): no endpoint is added, so who is
matched with whom, and how a message goes, stays as it is without this observer.
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
    """Writes messages.parquet and publications.parquet, and beside the records of each process what was in them."""

    name: ClassVar[str] = "messages"
    on_command: ClassVar[str | None] = "perflab-node writes them down"

    topics: Names = Field(default=(), description="these topics and services alone (default: all of the workload)")
    contents: Switch = Field(default=True, description="what is in the messages of topics, too; off: their times alone")
    limit: Bytes = Field(
        default=256 << 20,
        gt=0,
        description="the most that is written of each process; what comes later is counted (default: 256MiB)",
    )
    buffer: Bytes = Field(
        default=8 << 20,
        gt=0,
        le=LARGEST_BUFFER,
        description="memory of each process for what is still to be written, or 4 messages (default: 8MiB)",
    )

    @field_validator("topics")
    @classmethod
    def _absolute(cls, topics: tuple[str, ...]) -> tuple[str, ...]:
        for topic in topics:
            if not topic.startswith("/"):
                raise ValueError(f"{topic!r} is no full name of a topic; right would be '/{topic}'")
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
            raise NotAsExpected(f"{rows} messages were written down, {received} were received")
        return f"{format_count(rows)} messages written down, as many as were received"


class Written(Observation):
    """One trial, whose processes have ended when it is stopped."""

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


KIND: Kind[Observer] = Kind("messages", "every message one by one: its times, and what was in it", Messages)
