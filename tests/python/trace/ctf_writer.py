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
from collections.abc import Mapping, Sequence
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
        lines = "".join(f"{indent}\t{declaration(kind, name, indent + chr(9))};\n" for name, kind in self.fields)
        align = f" align({self.align})" if self.align != 1 else ""
        return f"struct {{\n{lines}{indent}}}{align}"


@dataclass(frozen=True)
class Variant:
    """A value is (name of the option, its value)."""

    selector: str
    options: tuple[tuple[str, Type], ...]

    def tsdl(self, indent: str = "\t") -> str:
        lines = "".join(f"{indent}\t{declaration(kind, name, indent + chr(9))};\n" for name, kind in self.options)
        return f"variant <{self.selector}> {{\n{lines}{indent}}}"


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


@dataclass(frozen=True)
class Clock:
    name: str = "monotonic"
    frequency: int = 1_000_000_000
    offset: int = 0  # cycles
    offset_s: int = 0
    uuid: str | None = None
    description: str = "Monotonic Clock"
    absolute: bool = False

    def tsdl(self) -> str:
        lines = [f"name = {self.name}"]
        if self.uuid:
            lines.append(f'uuid = "{self.uuid}"')
        lines += [f'description = "{self.description}"', f"freq = {self.frequency}"]
        lines += [f"offset_s = {self.offset_s}", f"offset = {self.offset}"]
        lines.append(f"absolute = {'TRUE' if self.absolute else 'FALSE'}")
        return "clock {\n" + "".join(f"\t{line};\n" for line in lines) + "};\n\n"


@dataclass
class EventClass:
    id: int
    name: str
    stream: StreamClass
    payload: Struct | None
    context: Struct | None = None
    log_level: int | None = None

    def tsdl(self, stream_id: bool = True) -> str:
        lines = [f'\tname = "{self.name}";\n\tid = {self.id};\n']
        if stream_id:
            lines.append(f"\tstream_id = {self.stream.id};\n")
        if self.log_level is not None:
            lines.append(f"\tloglevel = {self.log_level};\n")
        if self.context:
            lines.append(f"\tcontext := {self.context.tsdl()};\n")
        if self.payload:
            lines.append(f"\tfields := {self.payload.tsdl()};\n")
        return "event {\n" + "".join(lines) + "};\n\n"


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
        lines = [f"\tid = {self.id};\n"] if stream_id else []
        for name, kind in (
            ("packet.context", self.packet_context),
            ("event.header", self.event_header),
            ("event.context", self.event_context),
        ):
            if kind:
                lines.append(f"\t{name} := {kind.tsdl()};\n")
        return "stream {\n" + "".join(lines) + "};\n\n"


@dataclass
class _Event:
    kind: EventClass
    time: int
    payload: Values
    context: Values
    stream_context: Values
    extended: bool


@dataclass
class _Packet:
    events: list[_Event] = field(default_factory=list)
    begin: int | None = None
    end: int | None = None
    sequence_number: int = 0
    discarded: int = 0
    context: Values = field(default_factory=dict)
    padding: int = 0  # bytes after the content


class StreamFile:
    """The packets of one stream in one file."""

    def __init__(self, trace: CtfTrace, name: str, stream: StreamClass, instance: int, cpu: int) -> None:
        self.trace, self.name, self.stream, self.instance, self.cpu = trace, name, stream, instance, cpu
        self.packets: list[_Packet] = []
        self._open: _Packet | None = None
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
        if self._open is None:
            self._open = _Packet(sequence_number=self._sequence_number)
        self._open.events.append(_Event(event, time, payload or {}, context or {}, stream_context or {}, extended))

    def end_packet(
        self, *, begin: int | None = None, end: int | None = None, context: Values | None = None, padding: int = 0
    ) -> None:
        """Closes the packet (an empty one if nothing was written). Its time stamps are those of its first and last
        event unless they are given; `context` has the packet context's fields that the writer does not fill itself."""
        packet = self._open or _Packet(sequence_number=self._sequence_number)
        times = [e.time for e in packet.events]
        last = self.packets[-1].end if self.packets else None
        packet.begin = begin if begin is not None else (times[0] if times else last or 0)
        packet.end = end if end is not None else (times[-1] if times else packet.begin)
        packet.discarded, packet.context, packet.padding = self._discarded, context or {}, padding
        self.packets.append(packet)
        self._sequence_number += 1
        self._open = None

    def discard(self, events: int) -> None:
        """The tracer had no room for that many events in the packet that is open."""
        self._discarded += events

    def lose_packets(self, packets: int) -> None:
        """That many packets between the last one and the next were overwritten before they were read."""
        if self._open is not None:
            self.end_packet()
        self._sequence_number += packets

    def encode(self) -> bytes:
        if self._open is not None:
            self.end_packet()
        return b"".join(self._encode_packet(p) for p in self.packets)

    def _encode_packet(self, packet: _Packet) -> bytes:
        stream, trace = self.stream, self.trace
        head = self._head(packet, 0, 0)
        body = Bits(trace.order)
        body.pad(head.position)
        clock = packet.begin or 0
        for event in packet.events:
            if stream.event_header:
                body.write(stream.event_header, _header_values(stream.event_header, event, clock))
            clock = event.time
            for kind, values in (
                (stream.event_context, event.stream_context),
                (event.kind.context, event.context),
                (event.kind.payload, event.payload),
            ):
                if kind:
                    body.write(kind, values)
        content = body.position
        size = ((content + 7) // 8 + packet.padding) * 8
        head = self._head(packet, content, size)
        data = bytearray(body.data.ljust(size // 8, b"\0"))
        for i, byte in enumerate(head.data):
            data[i] |= byte
        return bytes(data)

    def _head(self, packet: _Packet, content: int, size: int) -> Bits:
        bits = Bits(self.trace.order)
        header = {
            "magic": MAGIC,
            "uuid": list(self.trace.uuid.bytes),
            "stream_id": self.stream.id,
            "stream_instance_id": self.instance,
        }
        context = {
            "timestamp_begin": packet.begin,
            "timestamp_end": packet.end,
            "content_size": content,
            "packet_size": size,
            "packet_seq_num": packet.sequence_number,
            "events_discarded": packet.discarded,
            "cpu_id": self.cpu,
            **packet.context,
        }
        for kind, values in ((self.trace.packet_header, header), (self.stream.packet_context, context)):
            if kind:
                names = {n.removeprefix("_") for n, _ in kind.fields} | {n for n, _ in kind.fields}
                bits.write(kind, {k: v for k, v in values.items() if k in names or k in packet.context})
        return bits


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

    def file(self, name: str, stream: StreamClass, *, instance: int | None = None, cpu: int = 0) -> StreamFile:
        made = StreamFile(self, name, stream, len(self.files) if instance is None else instance, cpu)
        self.files.append(made)
        return made

    def metadata(self) -> str:
        text = "/* CTF 1.8 */\n\ntrace {\n\tmajor = 1;\n\tminor = 8;\n"
        text += f'\tuuid = "{self.uuid}";\n\tbyte_order = {self.order};\n'
        if self.packet_header:
            text += f"\tpacket.header := {self.packet_header.tsdl()};\n"
        text += "};\n\n"
        if self.env:
            quoted = {k: f'"{v}"' if isinstance(v, str) else str(v) for k, v in self.env.items()}
            text += "env {\n" + "".join(f"\t{k} = {v};\n" for k, v in quoted.items()) + "};\n\n"
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
    return Struct((("magic", UINT32), ("uuid", Array(UINT8, 16)), ("stream_id", UINT32)), align=8)


def perf_packet_context() -> Struct:
    """Its time stamps do not say of which clock they are."""
    fields: tuple[tuple[str, Type], ...] = (
        ("timestamp_begin", UINT64),
        ("timestamp_end", UINT64),
        ("content_size", UINT64),
        ("packet_size", UINT64),
        ("events_discarded", UINT64),
        ("cpu_id", replace(UINT32, align=1)),
    )
    return Struct(fields, align=8)


def perf_event_header(clock: str = "perf_clock") -> Struct:
    return Struct((("id", UINT32), ("timestamp", replace(UINT64, clock=clock))), align=8)


def perf_payload(*fields: tuple[str, Type]) -> Struct:
    """The fields of an event of the kernel as `perf data convert` writes them: those of perf first, all on single
    bits."""
    common: tuple[tuple[str, Type], ...] = (
        ("perf_ip", replace(POINTER, align=1)),
        ("perf_tid", replace(INT32, align=1)),
        ("perf_pid", replace(INT32, align=1)),
        ("perf_id", replace(UINT64, align=1)),
        ("perf_period", replace(UINT64, align=1)),
        ("common_type", replace(UINT32, align=1)),
        ("common_flags", replace(UINT32, align=1)),
        ("common_preempt_count", replace(UINT32, align=1)),
        ("common_pid", replace(INT32, align=1)),
    )
    packed = tuple((name, replace(kind, align=1) if isinstance(kind, Int) else kind) for name, kind in fields)
    return Struct(common + packed, align=8)


# Damage -------------------------------------------------------------------------------------------------------------


def truncate(file: Path, missing: int) -> None:
    """Cuts that many bytes off the end."""
    data = file.read_bytes()
    file.write_bytes(data[: len(data) - missing])


def overwrite(file: Path, offset: int, data: Sequence[int] | bytes) -> None:
    """Replaces bytes; a negative offset counts from the end."""
    old = bytearray(file.read_bytes())
    start = offset if offset >= 0 else len(old) + offset
    old[start : start + len(data)] = bytes(data)
    file.write_bytes(bytes(old))
