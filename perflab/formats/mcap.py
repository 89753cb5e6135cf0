"""MCAP files for Foxglove and PlotJuggler: chunks with an index and a summary, messages in time order.

Two kinds of channels: numbers as JSON, with a JSON schema that describes each, and messages of ROS 2 in CDR, with their
definitions as rosbag2 writes them.
"""

from __future__ import annotations

import heapq
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import IO, Any, NamedTuple

SEPARATOR = "=" * 80  # separator of the definitions in a schema "ros2msg"
_NO_NAME = re.compile(r"[^A-Za-z0-9_/]+")


class Message(NamedTuple):
    """On a channel; times are wall-clock nanoseconds since the epoch."""

    log_ns: int
    channel: int
    data: bytes
    publish_ns: int
    sequence: int = 0


@dataclass(frozen=True)
class Series:
    """The members of messages on JSON channels: by name the JSON type and a description with the unit."""

    name: str
    summary: str
    members: Mapping[str, tuple[str, str]]  # (type, description)

    @property
    def schema(self) -> dict[str, Any]:
        properties = {name: {"type": of, "description": words} for name, (of, words) in self.members.items()}
        return {"title": self.name, "description": self.summary, "type": "object", "properties": properties}


# From https://docs.foxglove.dev, for its panel of logs.
_TIME = {"type": "object", "properties": {"sec": {"type": "integer"}, "nsec": {"type": "integer"}}}
LOG = "foxglove.Log"
_LOG_SCHEMA = {
    "title": LOG,
    "description": "A log message",
    "type": "object",
    "properties": {
        "timestamp": {**_TIME, "title": "time", "description": "Timestamp of log message"},
        "level": {"type": "integer", "description": "0 unknown, 1 debug, 2 info, 3 warning, 4 error, 5 fatal"},
        "message": {"type": "string", "description": "Log message"},
        "name": {"type": "string", "description": "Process or node name"},
        "file": {"type": "string", "description": "Filename"},
        "line": {"type": "integer", "description": "Line number in the file"},
    },
}
INFO, WARNING, ERROR = 2, 3, 4


def topic_of(*parts: str) -> str:
    """A channel name that paths of Foxglove take without quotes."""
    words = (_NO_NAME.sub("_", part).strip("/") for part in parts)
    return "/" + "/".join(word for word in words if word)


def ros2msg(type_name: str, texts: Mapping[str, str]) -> str:
    """The definition of a message and of all its parts, in rosbag2's format: its own first."""
    others = [name for name in sorted(texts) if name != type_name]
    parts = [f"{SEPARATOR}\nMSG: {package}/{name}\n{texts[other].rstrip()}\n" for other in others
             for package, _, name in (other.split("/"),)]  # fmt: skip
    return "".join([f"{texts[type_name].rstrip()}\n", *parts])


class McapFile:
    """One file being written."""

    def __init__(self, stream: IO[bytes], compression: str, library: str) -> None:
        """`compression` is zstd, lz4 or none."""
        from mcap.writer import CompressionType, Writer

        self._writer = Writer(stream, compression=CompressionType[compression.upper()])
        self._writer.start(library=library)
        self._schemas: dict[str, int] = {}
        self._taken: set[str] = set()

    def series(self, topic: str, series: Series, /, **metadata: str) -> int:
        """A new channel; its name gets a number if another one has that topic."""
        return self._json(topic, series.name, series.schema, metadata)

    def log(self, topic: str) -> int:
        return self._json(topic, LOG, _LOG_SCHEMA, {})

    def cdr(self, topic: str, type_name: str, texts: Mapping[str, str]) -> int:
        """Of messages of ROS 2."""
        schema = self._schema(type_name, "ros2msg", lambda: ros2msg(type_name, texts))
        return self._writer.register_channel(self._free(topic), "cdr", schema)

    def _json(self, topic: str, name: str, schema: Mapping[str, Any], metadata: Mapping[str, str]) -> int:
        number = self._schema(name, "jsonschema", lambda: json.dumps(schema))
        return self._writer.register_channel(self._free(topic), "json", number, dict(metadata))

    def _schema(self, name: str, encoding: str, text: Callable[[], str]) -> int:
        if name not in self._schemas:
            self._schemas[name] = self._writer.register_schema(name, encoding, text().encode())
        return self._schemas[name]

    def _free(self, topic: str) -> str:
        names = (topic if number == 1 else f"{topic}_{number}" for number in count(1))
        name = next(name for name in names if name not in self._taken)
        self._taken.add(name)
        return name

    def write(self, *sources: Iterable[Message]) -> int:
        """Merges messages of all sources, each in time order, in time order; returns how many."""
        number = 0
        for of in heapq.merge(*sources, key=lambda message: message.log_ns):
            self._writer.add_message(of.channel, of.log_ns, of.data, of.publish_ns, of.sequence & 0xFFFFFFFF)
            number += 1
        return number

    def attach(self, name: str, data: bytes, media_type: str, at_ns: int) -> None:
        self._writer.add_attachment(at_ns, at_ns, name, media_type, data)

    def note(self, name: str, values: Mapping[str, str]) -> None:
        """A record of metadata."""
        self._writer.add_metadata(name, dict(values))

    def finish(self) -> None:
        self._writer.finish()


def log(channel: int, at_ns: int, level: int, name: str, text: str) -> Message:
    stamp = {"sec": at_ns // 10**9, "nsec": at_ns % 10**9}
    document = {"timestamp": stamp, "level": level, "message": text, "name": name, "file": "", "line": 0}
    return Message(at_ns, channel, json.dumps(document, ensure_ascii=False).encode(), at_ns)


def numbers(channel: int, at_ns: int, values: Mapping[str, Any]) -> Message:
    """Unknown members are left out."""
    known = {name: value for name, value in values.items() if value is not None}
    return Message(at_ns, channel, json.dumps(known, ensure_ascii=False).encode(), at_ns)
