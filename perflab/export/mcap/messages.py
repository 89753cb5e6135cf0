"""Single messages, if they were recorded: their times on a channel for each edge, service and publisher, and their
content on a channel for each topic. They are read piece by piece: a trial may have more than fit into memory."""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from perflab.errors import BadInput
from perflab.export.mcap.trial import ExportedTrial, topic
from perflab.formats.mcap import McapFile, Message, Series
from perflab.formats.messages import SERVICE, Recorded

if TYPE_CHECKING:
    import polars as pl

_NUMBER = "number"
_SEQUENCE = {
    "sequence": ("integer", "number of the message, from its publisher"),
    "warm_up": ("integer", "1 in the warm-up, whose messages are numbered separately, else 0"),
}
# For each figure its two instants, or the column that has it; and its description.
_DELIVERED = {
    "latency_us": ("published_ns", "callback_ns", "from its publication to the begin of its callback, µs"),
    "response_us": ("intended_ns", "callback_ns", "from when it was due to the begin of its callback, µs"),
    "publish_delay_us": ("intended_ns", "published_ns", "from when it was due to its publication, µs"),
    "dispatch_us": ("arrived_ns", "callback_ns", "from the middleware's thread to the begin of its callback, µs"),
    "work_us": ("callback_ns", "ended_ns", "duration of its callback, µs"),
    "deserialize_us": (None, "deserialize_ns", "duration of decoding, µs"),
}
_ANSWERED = {
    "round_trip_us": ("published_ns", "callback_ns", "from the stamp of the request to the callback of its reply, µs"),
    "round_trip_response_us": ("intended_ns", "callback_ns", "likewise from when the request was due, µs"),
    "publish_delay_us": ("intended_ns", "published_ns", "from when the request was due to its stamp, µs"),
    "dispatch_us": ("arrived_ns", "callback_ns", "from the middleware's thread to the callback of the reply, µs"),
    "deserialize_us": (None, "deserialize_ns", "duration of decoding the reply, µs"),
}
_PUBLISHED = {
    "publish_delay_us": ("intended_ns", "published_ns", "from when it was due to its publication, µs"),
    "publish_call_us": ("published_ns", "returned_ns", "from its publication until the call came back, µs"),
    "serialize_us": (None, "serialize_ns", "duration of encoding, µs"),
}
_Figures = Mapping[str, tuple[str | None, str, str]]


def _series(name: str, summary: str, figures: _Figures) -> Series:
    return Series(
        f"perflab.{name}", summary, _SEQUENCE | {key: (_NUMBER, words) for key, (*_, words) in figures.items()}
    )


_DELIVERY = _series("Delivery", "A message that a subscription received, when its callback began", _DELIVERED)
_REPLY = _series("Reply", "A reply that a client received, when its callback began", _ANSWERED)
_PUBLICATION = _series("Publication", "A message that was sent, when it was stamped", _PUBLISHED)


def of(trial: ExportedTrial, file: McapFile, *, contents: bool) -> list[Iterator[Message]]:
    """For each kind, in time order; none if they were not recorded. Raises BadInput if they are damaged."""
    if (recorded := trial.recorded) is None:
        return []
    found = [_deliveries(trial, file, recorded), _publications(trial, file, recorded)]
    return [*found, _contents(trial, recorded, _content_channels(file, recorded))] if contents else found


def _deliveries(trial: ExportedTrial, file: McapFile, recorded: Recorded) -> Iterator[Message]:
    channels: dict[tuple[str, ...], int] = {}
    for piece in recorded.messages():
        edges = piece.select("kind", "topic", "publisher", "subscription")
        texts = {SERVICE: _texts(piece, _ANSWERED), "": _texts(piece, _DELIVERED)}
        rows = zip(edges.iter_rows(), piece["callback_ns"], piece["published_ns"], piece["sequence"], strict=True)
        for place, (edge, at_ns, published_ns, sequence) in enumerate(rows):
            if (channel := channels.get(edge)) is None:
                channel = channels[edge] = _edge_channel(file, *edge)
            text = texts[SERVICE if edge[0] == SERVICE else ""][place]
            sent_ns = at_ns if published_ns is None else published_ns
            yield Message(trial.wall(at_ns), channel, text, trial.wall(sent_ns), sequence)


def _edge_channel(file: McapFile, kind: str, name: str, publisher: str, subscription: str) -> int:
    if kind == SERVICE:
        ends = {"client": publisher, "service": name, "server": subscription}
        return file.series(topic("services", name, publisher, "to", subscription), _REPLY, **ends)
    ends = {"publisher": publisher, "topic": name, "subscription": subscription}
    return file.series(topic("edges", name, publisher, "to", subscription), _DELIVERY, **ends)


def _publications(trial: ExportedTrial, file: McapFile, recorded: Recorded) -> Iterator[Message]:
    channels: dict[tuple[str, ...], int] = {}
    for piece in recorded.publications():
        texts = _texts(piece, _PUBLISHED)
        rows = zip(
            piece.select("topic", "node").iter_rows(), piece["published_ns"], piece["sequence"], texts, strict=True
        )
        for publisher, at_ns, sequence, text in rows:
            if (channel := channels.get(publisher)) is None:
                names = dict(zip(("topic", "node"), publisher, strict=True))
                channel = channels[publisher] = file.series(topic("publishers", *publisher), _PUBLICATION, **names)
            wall_ns = trial.wall(at_ns)
            yield Message(wall_ns, channel, text, wall_ns, sequence)


def _texts(piece: pl.DataFrame, figures: _Figures) -> list[bytes]:
    """Each row as JSON, without unknown values."""
    import polars as pl

    warm_up = pl.col("warm_up").cast(pl.Int8).cast(pl.String)
    parts = [pl.lit('{"sequence":'), pl.col("sequence").cast(pl.String), pl.lit(',"warm_up":'), warm_up]
    for name, (begin, end, _) in figures.items():
        ns = pl.col(end) if begin is None else pl.col(end) - pl.col(begin)
        parts.append(pl.concat_str(pl.lit(f',"{name}":'), (ns / 1000).round(3).cast(pl.String)).fill_null(""))
    texts = piece.select(pl.concat_str(*parts, pl.lit("}"))).to_series()
    return texts.cast(pl.Binary).to_list()


def _contents(trial: ExportedTrial, recorded: Recorded, channels: Mapping[str, int]) -> Iterator[Message]:
    held: dict[str, mmap.mmap | None] = {}
    try:
        for piece in recorded.publications():
            columns = ("process", "topic", "published_ns", "sequence", "offset", "size")
            for process, name, at_ns, sequence, offset, size in piece.select(columns).iter_rows():
                if size == 0:
                    continue
                if process not in held:
                    held[process] = recorded.contents(process)
                wall_ns = trial.wall(at_ns)
                yield Message(wall_ns, channels[name], _cut(held[process], process, offset, size), wall_ns, sequence)
    finally:
        for memory in held.values():
            if memory is not None:
                memory.close()


def _cut(memory: mmap.mmap | None, process: str, offset: int, size: int) -> bytes:
    there = 0 if memory is None else len(memory)
    if memory is None or not 0 <= offset <= offset + size <= there:
        raise BadInput(
            f"the contents of messages of process {process!r} are damaged: {there} bytes, but one is from "
            f"{offset} to {offset + size}"
        )
    return memory[offset : offset + size]


def _content_channels(file: McapFile, recorded: Recorded) -> dict[str, int]:
    """For topics with records, under their own names."""
    types = {p["topic"]: p["type"] for log in recorded.logs for p in log.publishers}
    texts = {name: of for log in recorded.logs for name, of in log.definitions.items()}
    topics = recorded.topics_with_contents()
    if unknown := [name for name in topics if types.get(name) not in texts]:
        raise BadInput(
            f"{recorded.directory} has messages of {unknown[0]} but no records with their type; `--contents off` "
            "leaves them out"
        )
    return {name: file.cdr(name, types[name], texts[types[name]]) for name in topics}
