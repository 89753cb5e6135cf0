"""Writes traces in CTF 1.8, any shape of them, so that tests can say exactly what a trace holds.

A trace is declared (types, event classes), then filled event by event, then written:

    trace = CtfTrace(env={"domain": "ust"}, clock=Clock("monotonic", offset=1_000))
    stream = trace.stream_class(packet_context=lttng_packet_context(), event_header=lttng_large_header())
    ping = stream.event("ping", Struct.of(_count=UINT32, _name=String()))
    cpu0 = trace.file("channel_0", stream, cpu=0)
    cpu0.write(ping, 1_000, {"count": 1, "name": "one"})
    trace.write(folder)

Names are written into the metadata as they are given ("_count"); values are given under the same name or under the name
without its first underscore. Lengths of sequences and selectors of variants that are fields beside them are filled in
where they are not given. Sizes and alignments are in bits.
"""

from __future__ import annotations

import struct
import uuid as uuid_module
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

MAGIC = 0xC1FC1FC1
METADATA_MAGIC = 0x75D11D57
METADATA_PACKET_BYTES = 4096

Order = Literal["le", "be"]
Values: TypeAlias = Mapping[str, Any]


# Types --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Int:
    size: int
    signed: bool = False
    align: int = 8
    order: Order | None = None  # None: the trace's
    base: int = 10
    encoding: str = "none"
    clock: str | None = None

    def tsdl(self) -> str:
        parts = [f"size = {self.size}", f"align = {self.align}", f"signed = {'true' if self.signed else 'false'}"]
        parts += [f"encoding = {self.encoding}", f"base = {self.base}"]
        if self.order:
            parts.append(f"byte_order = {self.order}")
        if self.clock:
            parts.append(f"map = clock.{self.clock}.value")
        return "integer { " + "; ".join(parts) + "; }"


@dataclass(frozen=True)
class Float:
    exponent: int = 11
    mantissa: int = 53  # with the hidden bit
    align: int = 8
    order: Order | None = None

    def tsdl(self) -> str:
        order = f" byte_order = {self.order};" if self.order else ""
        return (
            f"floating_point {{ exp_dig = {self.exponent}; mant_dig = {self.mantissa}; align = {self.align};{order} }}"
        )


@dataclass(frozen=True)
class Enum:
    """Labels with ranges: Enum(UINT8, (("low", 0, 9), ("high", 10, 99)))."""

    integer: Int
    mappings: tuple[tuple[str, int, int], ...]

    def tsdl(self) -> str:
        labels = ", ".join(
            f'"{label}" = {low}' if low == high else f'"{label}" = {low} ... {high}'
            for label, low, high in self.mappings
        )
        return f"enum : {self.integer.tsdl()} {{ {labels} }}"

    def value_of(self, label: str) -> int:
        return next(low for name, low, _ in self.mappings if name == label)

    def label_of(self, value: int) -> str:
        return next(name for name, low, high in self.mappings if low <= value <= high)


@dataclass(frozen=True)
class String:
    encoding: str | None = None

    def tsdl(self) -> str:
        return f"string {{ encoding = {self.encoding}; }}" if self.encoding else "string"


@dataclass(frozen=True)
class Array:
    element: Type
    length: int


@dataclass(frozen=True)
class Seq:
    """`length` is the name of the field with the number of elements, or its whole path ("event.fields.n")."""

    element: Type
    length: str


@dataclass(frozen=True)
class Struct:
    fields: tuple[tuple[str, Type], ...]
    align: int = 1

    @staticmethod
    def of(**fields: Type) -> Struct:
        return Struct(tuple(fields.items()))

    def tsdl(self, indent: str = "\t") -> str:
        align = f" align({self.align})" if self.align != 1 else ""
        return f"struct {_members(self.fields, indent)}{align}"


@dataclass(frozen=True)
class Variant:
    """A value is (name of the option, its value)."""

    selector: str
    options: tuple[tuple[str, Type], ...]

    def tsdl(self, indent: str = "\t") -> str:
        return f"variant <{self.selector}> {_members(self.options, indent)}"


Type: TypeAlias = Int | Float | Enum | String | Array | Seq | Struct | Variant

INT8, INT16, INT32, INT64 = (Int(n, signed=True) for n in (8, 16, 32, 64))
UINT8, UINT16, UINT32, UINT64 = (Int(n) for n in (8, 16, 32, 64))
POINTER = Int(64, base=16)
FLOAT32, FLOAT64 = Float(8, 24), Float(11, 53)
CHAR = Int(8, signed=True, encoding="UTF8")


def text_array(length: int, signed: bool = True) -> Array:
    """What tracers write names of threads as: bytes that are text up to the first zero."""
    return Array(replace(CHAR, signed=signed), length)


def declaration(kind: Type, name: str, indent: str = "\t") -> str:
    """`integer {...} name[4][ length ]`. Of nested arrays the outermost dimension comes first, as in C."""
    dimensions = ""
    while isinstance(kind, Array | Seq):
        dimensions += f"[{kind.length}]" if isinstance(kind, Array) else f"[ {kind.length} ]"
        kind = kind.element
    text = kind.tsdl(indent) if isinstance(kind, Struct | Variant) else kind.tsdl()
    return f"{text} {name}{dimensions}"


def _members(fields: Iterable[tuple[str, Type]], indent: str) -> str:
    lines = (f"{indent}\t{declaration(kind, name, indent + chr(9))};\n" for name, kind in fields)
    return f"{{\n{''.join(lines)}{indent}}}"


def alignment(kind: Type) -> int:
    match kind:
        case Int() | Float():
            return kind.align
        case Enum():
            return kind.integer.align
        case String():
            return 8
        case Array() | Seq():
            return alignment(kind.element)
        case Struct():
            return max([kind.align, *(alignment(child) for _, child in kind.fields)])
        case Variant():
            return 1


# Bits ---------------------------------------------------------------------------------------------------------------


class Bits:
    """Bits one after the other; little-endian fields fill bytes from the low end, big-endian ones from the high end."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.data = bytearray()
        self.position = 0

    def pad(self, bits: int) -> None:
        self.position += bits
        self.data.extend(bytes((self.position + 7) // 8 - len(self.data)))

    def align(self, bits: int) -> None:
        self.pad(-self.position % bits)

    def integer(self, value: int, size: int, order: Order | None = None) -> None:
        order = order or self.order
        value &= (1 << size) - 1
        if self.position % 8 == 0 and size % 8 == 0:
            self.data += value.to_bytes(size // 8, "little" if order == "le" else "big")
            self.position += size
            return
        left = size
        while left:
            used = self.position % 8
            if used == 0:
                self.data.append(0)
            take = min(8 - used, left)
            if order == "le":
                self.data[-1] |= (value & ((1 << take) - 1)) << used
                value >>= take
            else:
                self.data[-1] |= ((value >> (left - take)) & ((1 << take) - 1)) << (8 - used - take)
            left -= take
            self.position += take

    def write(self, kind: Type, value: Any) -> None:
        match kind:
            case Int():
                self.align(kind.align)
                self.integer(int(value), kind.size, kind.order)
            case Enum():
                self.write(kind.integer, kind.value_of(value) if isinstance(value, str) else value)
            case Float():
                self.align(kind.align)
                letter, size = ("f", 32) if kind.mantissa == 24 else ("d", 64)
                self.integer(int.from_bytes(struct.pack(f">{letter}", value), "big"), size, kind.order)
            case String():
                self.align(8)
                text = value.encode() if isinstance(value, str) else bytes(value)
                self.data += text + b"\0"
                self.position += 8 * len(text) + 8
            case Array():
                self._elements(kind, value, kind.length)
            case Seq():
                self._elements(kind, value, len(value))
            case Struct():
                self.align(alignment(kind))
                values = complete(kind, value)
                for name, child in kind.fields:
                    self.write(child, values[name])
            case Variant():
                option, chosen = value
                self.write(_option(kind, option), chosen)

    def _elements(self, kind: Array | Seq, value: Any, length: int) -> None:
        self.align(alignment(kind.element))
        if isinstance(value, str | bytes):
            raw = value.encode() if isinstance(value, str) else value
            value = list(raw.ljust(length, b"\0"))
        if len(value) != length:
            raise ValueError(f"{len(value)} elements given for an array of {length}")
        for element in value:
            self.write(kind.element, element)


def _option(kind: Variant, name: str) -> Type:
    for option, child in kind.options:
        if name in (option, option.removeprefix("_")):
            return child
    raise KeyError(f"a variant of {[o for o, _ in kind.options]} has no option {name}")


def _given(values: Values, name: str) -> Any:
    if name in values:
        return values[name]
    return values.get(name.removeprefix("_"))


def complete(kind: Struct, values: Values) -> dict[str, Any]:
    """Values by the names in the metadata, with lengths and selectors filled in. An unknown or missing name is an
    error."""
    names = [name for name, _ in kind.fields]
    unknown = set(values) - set(names) - {n.removeprefix("_") for n in names}
    if unknown:
        raise KeyError(f"no field {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    full = {name: _given(values, name) for name in names}
    types = dict(kind.fields)
    for name, child in kind.fields:
        if isinstance(child, Seq) and child.length in full and full[child.length] is None:
            full[child.length] = len(full[name])
        if isinstance(child, Variant) and child.selector in full and full[child.selector] is None:
            selector = types[child.selector]
            assert isinstance(selector, Enum)
            full[child.selector] = selector.value_of(full[name][0])
    missing = [name for name in names if full[name] is None]
    if missing:
        raise KeyError(f"no value for {', '.join(missing)}")
    return full


# Traces -------------------------------------------------------------------------------------------------------------


def _block(name: str, lines: Iterable[str]) -> str:
    return f"{name} {{\n" + "".join(f"\t{line};\n" for line in lines) + "};\n\n"


@dataclass(frozen=True)
class Clock:
    name: str = "monotonic"
    frequency: int = 1_000_000_000
    offset: int = 0  # cycles
    offset_s: int = 0
    uuid: str | None = None
    description: str = "Monotonic Clock"

    def tsdl(self) -> str:
        lines = [f"name = {self.name}"]
        if self.uuid:
            lines.append(f'uuid = "{self.uuid}"')
        lines += [f'description = "{self.description}"', f"freq = {self.frequency}"]
        lines += [f"offset_s = {self.offset_s}", f"offset = {self.offset}", "absolute = FALSE"]
        return _block("clock", lines)


@dataclass
class EventClass:
    id: int
    name: str
    stream: StreamClass
    payload: Struct | None
    context: Struct | None = None
    log_level: int | None = None

    def tsdl(self, stream_id: bool = True) -> str:
        lines = [f'name = "{self.name}"', f"id = {self.id}"]
        if stream_id:
            lines.append(f"stream_id = {self.stream.id}")
        if self.log_level is not None:
            lines.append(f"loglevel = {self.log_level}")
        if self.context:
            lines.append(f"context := {self.context.tsdl()}")
        if self.payload:
            lines.append(f"fields := {self.payload.tsdl()}")
        return _block("event", lines)


@dataclass
class StreamClass:
    id: int
    packet_context: Struct | None
    event_header: Struct | None
    event_context: Struct | None
    events: list[EventClass] = field(default_factory=list)

    def event(
        self,
        name: str,
        payload: Struct | None,
        *,
        event_id: int | None = None,
        context: Struct | None = None,
        log_level: int | None = None,
    ) -> EventClass:
        """Declares an event class; ids count from 0 unless they are given."""
        number = len(self.events) if event_id is None else event_id
        made = EventClass(number, name, self, payload, context, log_level)
        self.events.append(made)
        return made

    def tsdl(self, stream_id: bool = True) -> str:
        scopes = {
            "packet.context": self.packet_context,
            "event.header": self.event_header,
            "event.context": self.event_context,
        }
        lines = [f"id = {self.id}"] if stream_id else []
        return _block("stream", lines + [f"{name} := {kind.tsdl()}" for name, kind in scopes.items() if kind])


@dataclass
class _Event:
    kind: EventClass
    time: int
    payload: Values
    context: Values
    stream_context: Values
    extended: bool


class StreamFile:
    """The packets of one stream in one file."""

    def __init__(self, trace: CtfTrace, name: str, stream: StreamClass, instance: int, cpu: int) -> None:
        self.trace, self.name, self.stream, self.instance, self.cpu = trace, name, stream, instance, cpu
        self._packets = bytearray()
        self._events: list[_Event] = []  # of the packet that is open
        self._last_time = 0
        self._sequence_number = 0
        self._discarded = 0

    def write(
        self,
        event: EventClass,
        time: int,
        payload: Values | None = None,
        *,
        context: Values | None = None,
        stream_context: Values | None = None,
        extended: bool = False,
    ) -> None:
        """Adds an event at `time` (cycles of the clock). `extended` asks for the long form of LTTng's event header."""
        self._events.append(_Event(event, time, payload or {}, context or {}, stream_context or {}, extended))

    def end_packet(self, *, end: int | None = None, context: Values | None = None, padding: int = 0) -> None:
        """Closes the packet (an empty one if nothing was written). It begins with its first event and ends with its
        last unless `end` is given; `context` has the packet context's fields that the writer does not fill itself,
        `padding` is in bytes."""
        events, self._events = self._events, []
        begin = events[0].time if events else self._last_time
        last = events[-1].time if events else begin
        self._last_time = last if end is None else end
        known = {
            "magic": MAGIC,
            "uuid": list(self.trace.uuid.bytes),
            "stream_id": self.stream.id,
            "stream_instance_id": self.instance,
            "timestamp_begin": begin,
            "timestamp_end": self._last_time,
            "packet_seq_num": self._sequence_number,
            "events_discarded": self._discarded,
            "cpu_id": self.cpu,
            **(context or {}),
        }
        body = Bits(self.trace.order)
        body.pad(self._head(known, 0, 0).position)
        clock = begin
        for event in events:
            self._encode(body, event, clock)
            clock = event.time
        size = (body.position + 7) // 8 + padding
        head = self._head(known, body.position, 8 * size)
        packet = bytearray(body.data.ljust(size, b"\0"))
        for i, byte in enumerate(head.data):
            packet[i] |= byte
        self._packets += packet
        self._sequence_number += 1

    def discard(self, events: int) -> None:
        """The tracer had no room for that many events in the packet that is open."""
        self._discarded += events

    def lose_packets(self, packets: int) -> None:
        """That many packets between the last one and the next were overwritten before they were read."""
        self.encode()
        self._sequence_number += packets

    def encode(self) -> bytes:
        if self._events:
            self.end_packet()
        return bytes(self._packets)

    def _head(self, known: Values, content: int, size: int) -> Bits:
        bits = Bits(self.trace.order)
        values = {**known, "content_size": content, "packet_size": size}
        for kind in (self.trace.packet_header, self.stream.packet_context):
            if kind:
                names = {name for full, _ in kind.fields for name in (full, full.removeprefix("_"))}
                bits.write(kind, {name: value for name, value in values.items() if name in names})
        return bits

    def _encode(self, bits: Bits, event: _Event, clock: int) -> None:
        header = self.stream.event_header
        for kind, values in (
            (header, _header_values(header, event, clock) if header else {}),
            (self.stream.event_context, event.stream_context),
            (event.kind.context, event.context),
            (event.kind.payload, event.payload),
        ):
            if kind:
                bits.write(kind, values)


def _header_values(header: Struct, event: _Event, clock: int) -> Values:
    """id and timestamp of a plain header, or the variants that LTTng has: short ids and times where they suffice."""
    types = dict(header.fields)
    if isinstance(types.get("v"), Variant):
        chooser, variant = types["id"], types["v"]
        assert isinstance(chooser, Enum) and isinstance(variant, Variant)
        short = _option(variant, "compact")
        assert isinstance(short, Struct)
        stamp = dict(short.fields)["timestamp"]
        assert isinstance(stamp, Int)
        extended = chooser.value_of("extended")
        if event.extended or event.kind.id >= extended or not 0 <= event.time - clock < 1 << stamp.size:
            return {"id": extended, "v": ("extended", {"id": event.kind.id, "timestamp": event.time})}
        return {"id": event.kind.id, "v": ("compact", {"timestamp": event.time})}
    known = {"id": event.kind.id, "timestamp": event.time}
    return {name: known[name.removeprefix("_")] for name in types}


class CtfTrace:
    """One trace: a folder with a metadata file and files of streams."""

    def __init__(
        self,
        *,
        order: Order = "le",
        uuid: uuid_module.UUID | None = None,
        env: Mapping[str, str | int] | None = None,
        clock: Clock | None = None,
        packet_header: Struct | Literal["lttng"] | None = "lttng",
        metadata_in_packets: bool = False,
    ) -> None:
        self.order: Order = order
        self.uuid = uuid or uuid_module.UUID(int=0x5EED_0000_0000_4000_8000_0000_0000_0001)
        self.env = dict(env or {})
        self.clock = clock
        self.packet_header = lttng_packet_header() if packet_header == "lttng" else packet_header
        self.metadata_in_packets = metadata_in_packets
        self.streams: list[StreamClass] = []
        self.files: list[StreamFile] = []

    def stream_class(
        self,
        *,
        packet_context: Struct | None = None,
        event_header: Struct | None = None,
        event_context: Struct | None = None,
    ) -> StreamClass:
        made = StreamClass(len(self.streams), packet_context, event_header, event_context)
        self.streams.append(made)
        return made

    def file(self, name: str, stream: StreamClass, *, cpu: int = 0) -> StreamFile:
        made = StreamFile(self, name, stream, len(self.files), cpu)
        self.files.append(made)
        return made

    def metadata(self) -> str:
        lines = ["major = 1", "minor = 8", f'uuid = "{self.uuid}"', f"byte_order = {self.order}"]
        if self.packet_header:
            lines.append(f"packet.header := {self.packet_header.tsdl()}")
        text = "/* CTF 1.8 */\n\n" + _block("trace", lines)
        if self.env:
            text += _block("env", (f'{k} = "{v}"' if isinstance(v, str) else f"{k} = {v}" for k, v in self.env.items()))
        if self.clock:
            text += self.clock.tsdl()
        for stream in self.streams:
            # Without a packet header nothing could say which stream class a packet has: there is one, without an id.
            ids = self.packet_header is not None
            text += stream.tsdl(ids) + "".join(e.tsdl(ids) for e in stream.events)
        return text

    def metadata_bytes(self) -> bytes:
        text = self.metadata().encode()
        if not self.metadata_in_packets:
            return text
        prefix = "<" if self.order == "le" else ">"
        header_bytes = 37
        packets = []
        for start in range(0, len(text), METADATA_PACKET_BYTES - header_bytes):
            part = text[start : start + METADATA_PACKET_BYTES - header_bytes]
            head = struct.pack(
                f"{prefix}I16sIIIBBBBB",
                METADATA_MAGIC,
                self.uuid.bytes,
                0,  # checksum: none
                8 * (header_bytes + len(part)),
                8 * METADATA_PACKET_BYTES,
                0,  # compression
                0,  # encryption
                0,  # checksum's kind
                1,
                8,
            )
            packets.append((head + part).ljust(METADATA_PACKET_BYTES, b"\0"))
        return b"".join(packets)

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "metadata").write_bytes(self.metadata_bytes())
        for file in self.files:
            (folder / file.name).write_bytes(file.encode())
        return folder


# What tracers write -------------------------------------------------------------------------------------------------


def lttng_packet_header() -> Struct:
    return Struct.of(magic=UINT32, uuid=Array(UINT8, 16), stream_id=UINT32, stream_instance_id=UINT64)


def lttng_packet_context(clock: str = "monotonic") -> Struct:
    stamp = replace(UINT64, clock=clock)
    return Struct.of(
        timestamp_begin=stamp,
        timestamp_end=stamp,
        content_size=UINT64,
        packet_size=UINT64,
        packet_seq_num=UINT64,
        events_discarded=UINT64,
        cpu_id=UINT32,
    )


def _lttng_header(id_bits: int, id_align: int, stamp_bits: int, stamp_align: int, clock: str) -> Struct:
    last = (1 << id_bits) - 1
    chooser = Enum(Int(id_bits, align=id_align), (("compact", 0, last - 1), ("extended", last, last)))
    short = Struct.of(timestamp=Int(stamp_bits, align=stamp_align, clock=clock))
    full = Struct.of(id=UINT32, timestamp=Int(64, clock=clock))
    return Struct((("id", chooser), ("v", Variant("id", (("compact", short), ("extended", full))))), align=8)


def lttng_large_header(clock: str = "monotonic") -> Struct:
    """16-bit id and 32-bit time, or both in full: what LTTng-UST has per user."""
    return _lttng_header(16, 8, 32, 8, clock)


def lttng_compact_header(clock: str = "monotonic") -> Struct:
    """5-bit id and 27-bit time, or both in full: what LTTng's kernel tracer has."""
    return _lttng_header(5, 1, 27, 1, clock)


def lttng_ust_context(procname: bool = True) -> Struct:
    fields: list[tuple[str, Type]] = [("_vpid", INT32), ("_vtid", INT32)]
    return Struct(tuple(fields + ([("_procname", text_array(17))] if procname else [])))


def perf_packet_header() -> Struct:
    return replace(Struct.of(magic=UINT32, uuid=Array(UINT8, 16), stream_id=UINT32), align=8)


def perf_packet_context() -> Struct:
    """Its time stamps do not say of which clock they are."""
    context = Struct.of(
        timestamp_begin=UINT64,
        timestamp_end=UINT64,
        content_size=UINT64,
        packet_size=UINT64,
        events_discarded=UINT64,
        cpu_id=replace(UINT32, align=1),
    )
    return replace(context, align=8)


def perf_event_header(clock: str = "perf_clock") -> Struct:
    return replace(Struct.of(id=UINT32, timestamp=replace(UINT64, clock=clock)), align=8)


_PERF_COMMON = Struct.of(
    perf_ip=POINTER,
    perf_tid=INT32,
    perf_pid=INT32,
    perf_id=UINT64,
    perf_period=UINT64,
    common_type=UINT32,
    common_flags=UINT32,
    common_preempt_count=UINT32,
    common_pid=INT32,
)


def perf_payload(*fields: tuple[str, Type]) -> Struct:
    """The fields of an event of the kernel as `perf data convert` writes them: those of perf first, all on single
    bits."""
    packed = ((n, replace(k, align=1) if isinstance(k, Int) else k) for n, k in (*_PERF_COMMON.fields, *fields))
    return Struct(tuple(packed), align=8)
