"""The processes' records of single messages (docs/formats.md, section 17): times, contents, and losses.

While a trial runs, each process has files of rows with numbers for names; afterwards they become two tables, ordered by
time, which are read piece by piece. Contents stay in the files of the processes.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from perflab.errors import BadInput
from perflab.formats import records
from perflab.formats.json_file import replaced

if TYPE_CHECKING:
    import polars as pl

MESSAGES = "messages.parquet"
PUBLICATIONS = "publications.parquet"
DELIVERED, PUBLISHED, CONTENTS = ".deliveries", ".publications", ".contents"
TOPIC, SERVICE = "topic", "service"

_UNKNOWN_NS = np.iinfo(np.int64).min
_WARM_UP, _COUNTED = 1, 2
_PIECE = 1 << 16  # rows of a table that are in memory at a time

# Layout of native/measure/message_ring.h.
DELIVERY = np.dtype(
    [
        ("edge", "<u4"), ("flags", "<u4"), ("sequence", "<u8"), ("intended_ns", "<i8"), ("published_ns", "<i8"),
        ("arrived_ns", "<i8"), ("callback_ns", "<i8"), ("ended_ns", "<i8"), ("deserialize_ns", "<i8"),
    ]
)  # fmt: skip
PUBLICATION = np.dtype(
    [
        ("publisher", "<u4"), ("flags", "<u4"), ("sequence", "<u8"), ("intended_ns", "<i8"), ("published_ns", "<i8"),
        ("returned_ns", "<i8"), ("serialize_ns", "<i8"), ("offset", "<u8"), ("size", "<u8"),
    ]
)  # fmt: skip
_INSTANTS = ("intended_ns", "published_ns", "arrived_ns", "callback_ns", "ended_ns", "deserialize_ns")
_SENDING = ("intended_ns", "published_ns", "returned_ns", "serialize_ns")


@dataclass(frozen=True)
class Log:
    """Of one process, by file name. Lost records are those for which there was no room, time, or disk space."""

    name: str
    publishers: Sequence[Mapping[str, str]]  # node, topic, type
    edges: Sequence[Mapping[str, str]]  # publisher, topic, subscription
    services: Sequence[Mapping[str, str]]  # client, service, server
    definitions: Mapping[str, Mapping[str, str]]  # by full name of a type: its definition and those of its parts
    lost_deliveries: Sequence[int] = ()  # by edge, then service
    lost_publications: Sequence[int] = ()  # by publisher
    limit_reached_ns: int | None = None
    error: str | None = None

    @property
    def lost(self) -> int:
        return sum(self.lost_deliveries) + sum(self.lost_publications)


@dataclass(frozen=True)
class Recorded:
    """A trial's records of single messages, on disk."""

    directory: Path
    logs: Sequence[Log] = field(repr=False)

    @property
    def lost(self) -> int:
        return sum(log.lost for log in self.logs)

    def remarks(self) -> list[str]:
        """What is missing, one sentence each."""
        said = []
        for log in self.logs:
            counts = (
                f"{sum(log.lost_deliveries)} deliveries and {sum(log.lost_publications)} publications of process "
                f"{log.name!r} are not among its recorded messages"
            )
            if log.error is not None:
                said.append(f"{counts}: {log.error}")
            elif log.limit_reached_ns is not None:
                said.append(f"{counts}: the limit was reached; `messages:limit=SIZE` allows more")
            elif log.lost:
                said.append(
                    f"{counts}: they came faster than they were written; `messages:buffer=SIZE` provides more room"
                )
        return said

    def messages(self) -> Iterator[pl.DataFrame]:
        """Pieces of the table of deliveries, by the start of their callbacks. Raises BadInput if it is damaged."""
        return _pieces(self.directory / MESSAGES, "callback_ns")

    def publications(self) -> Iterator[pl.DataFrame]:
        """Pieces of the table of publications, by time. Raises BadInput if it is damaged."""
        return _pieces(self.directory / PUBLICATIONS, "published_ns")

    def topics_with_contents(self) -> list[str]:
        """Raises BadInput if the table is damaged."""
        import polars as pl

        path = self.directory / PUBLICATIONS
        try:
            lazy = pl.scan_parquet(path).filter(pl.col("size") > 0).select(pl.col("topic").unique().sort())
            return lazy.collect().to_series().to_list()
        except pl.exceptions.PolarsError as error:
            raise BadInput(f"{path} is damaged: {str(error).splitlines()[0]}") from error

    def contents(self, process: str) -> mmap.mmap | None:
        """For the publications of a process; None if there are none. Raises OSError."""
        path = self.directory / "processes" / f"{process}{CONTENTS}"
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if path.stat().st_size else None


def write_tables(directory: Path) -> Recorded | None:
    """Converts the files of a finished trial's processes to tables, and deletes them; None if there were none. Raises
    BadInput if they are damaged, OSError."""
    logs = [log for path in _logs(directory) if (log := _log(path)) is not None]
    if not logs:
        return None
    processes = directory / "processes"
    for path, table in (
        (directory / MESSAGES, _deliveries(processes, logs)),
        (directory / PUBLICATIONS, _publications(processes, logs)),
    ):
        with replaced(path) as file:
            table.write_parquet(file, row_group_size=_PIECE)
    for log in logs:
        for ending in (DELIVERED, PUBLISHED):
            (processes / f"{log.name}{ending}").unlink(missing_ok=True)
    return Recorded(directory, logs)


def read(directory: Path) -> Recorded | None:
    """Reads a trial's folder; None if no messages were recorded. Raises BadInput if it is damaged."""
    if not (directory / MESSAGES).is_file():
        return None
    return Recorded(directory, [log for path in _logs(directory) if (log := _log(path)) is not None])


def _logs(directory: Path) -> list[Path]:
    return sorted((directory / "processes").glob("*.jsonl"))


def _log(path: Path) -> Log | None:
    """None for a process that wrote none. Raises BadInput if it is damaged."""
    found: dict[str, Mapping[str, Any]] = {}
    try:
        for record in records.lines(path, "message_log", "message_counts"):
            if record is not None:
                found[str(record.get("type"))] = record
        if (names := found.get("message_log")) is None:
            return None
        counts = found.get("message_counts", {})
        return Log(
            path.stem,
            names["publishers"],
            names["edges"],
            names["services"],
            names["definitions"],
            counts.get("lost_deliveries", ()),
            counts.get("lost_publications", ()),
            counts.get("limit_reached_ns"),
            counts.get("error"),
        )
    except records.RecordError as error:
        raise BadInput(str(error)) from error
    except KeyError as error:
        raise BadInput(f"{path} is damaged: the record message_log lacks {error}") from error


def _rows(path: Path, of: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Only whole rows: a process that was killed, or had no disk space left, may have written a part of its last
    one."""
    count = path.stat().st_size // of.itemsize if path.is_file() else 0
    return np.fromfile(path, of, count) if count else np.empty(0, of)


def _deliveries(processes: Path, logs: Sequence[Log]) -> pl.DataFrame:
    import polars as pl

    parts = []
    for log in logs:
        rows = _rows(processes / f"{log.name}{DELIVERED}", DELIVERY)
        ends = [*((TOPIC, *_values(e)) for e in log.edges), *((SERVICE, *_values(s)) for s in log.services)]
        _check(rows["edge"], len(ends), log)
        keys = ("kind", "publisher", "topic", "subscription")
        names = {key: [end[place] for end in ends] for place, key in enumerate(keys)}
        parts.append(_frame(rows, "edge", log.name, names, _INSTANTS))
    return pl.concat(parts).sort("callback_ns", maintain_order=True)


def _publications(processes: Path, logs: Sequence[Log]) -> pl.DataFrame:
    import polars as pl

    parts = []
    for log in logs:
        rows = _rows(processes / f"{log.name}{PUBLISHED}", PUBLICATION)
        _check(rows["publisher"], len(log.publishers), log)
        names = {key: [p[key] for p in log.publishers] for key in ("node", "topic", "type")}
        parts.append(_frame(rows, "publisher", log.name, names, _SENDING, "offset", "size"))
    return pl.concat(parts).sort("published_ns", maintain_order=True)


def _values(end: Mapping[str, str]) -> tuple[str, ...]:
    """The names of the two ends of an edge or service, with the topic or the service between them."""
    keys = ("client", "service", "server") if "service" in end else ("publisher", "topic", "subscription")
    return tuple(end[key] for key in keys)


def _check(numbers: np.ndarray[Any, Any], count: int, log: Log) -> None:
    if len(numbers) and int(numbers.max()) >= count:
        raise BadInput(
            f"the recorded messages of process {log.name!r} are damaged: end {int(numbers.max())} of {count}"
        )


def _frame(
    rows: np.ndarray[Any, Any],
    number: str,
    process: str,
    names: Mapping[str, Sequence[str]],
    instants: Sequence[str],
    *more: str,
) -> pl.DataFrame:
    import polars as pl

    table = pl.DataFrame(
        {
            "process": pl.repeat(process, len(rows), dtype=pl.String, eager=True),
            **{key: pl.Series(list(of), dtype=pl.String).gather(rows[number]) for key, of in names.items()},
            "sequence": rows["sequence"].astype(np.int64),
            "warm_up": (rows["flags"] & _WARM_UP) != 0,
            **({"counted": (rows["flags"] & _COUNTED) != 0} if number == "edge" else {}),
            **{name: np.ascontiguousarray(rows[name]) for name in instants},
            **{name: rows[name].astype(np.int64) for name in more},
        }
    )
    unknown = [pl.when(pl.col(name) != _UNKNOWN_NS).then(pl.col(name)).alias(name) for name in instants]
    return table.with_columns(unknown)


def _pieces(path: Path, order: str) -> Iterator[pl.DataFrame]:
    import polars as pl

    try:
        lazy = pl.scan_parquet(path)
        count = int(lazy.select(pl.len()).collect().item())
        before: int | None = None
        for offset in range(0, count, _PIECE):
            piece = lazy.slice(offset, _PIECE).collect()
            first, last = (piece[order][place] for place in (0, -1))
            if first is None or last is None or not piece[order].is_sorted() or (before is not None and first < before):
                raise BadInput(f"{path} is damaged: not ordered by {order}")
            before = last
            yield piece
    except pl.exceptions.PolarsError as error:
        raise BadInput(f"{path} is damaged: {str(error).splitlines()[0]}") from error
