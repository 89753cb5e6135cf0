"""Traces of random shape with random values, the same for the same seed, and what a reader must find in them."""

from __future__ import annotations

import json
import math
import random
import struct
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ctf_writer import (
    CHAR,
    UINT8,
    UINT32,
    UINT64,
    Array,
    Clock,
    CtfTrace,
    Enum,
    EventClass,
    Float,
    Int,
    Order,
    Seq,
    StreamClass,
    String,
    Struct,
    Type,
    Values,
    Variant,
    lttng_compact_header,
    lttng_large_header,
    lttng_packet_context,
    perf_packet_header,
)

GHZ = 1_000_000_000
ORDERS: tuple[Order, ...] = ("le", "be")


@dataclass
class RandomTrace:
    """What was written, and by file the lines that a reader must print, in the words of babeltrace2_dump.py."""

    folder: Path
    expected: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))


def shown(kind: Type, value: Any) -> str:
    """A field's value as both dumps print it."""
    match kind:
        case Int():
            return str(value)
        case Enum():
            return str(kind.value_of(value) if isinstance(value, str) else value)
        case Float():
            single = kind.mantissa == 24
            double = struct.unpack(">f", struct.pack(">f", value))[0] if single else value
            return '"0x' + struct.pack(">d", double).hex() + '"'
        case String():
            return json.dumps(value.decode("latin-1"))
        case Array() | Seq():
            if isinstance(kind.element, Int) and kind.element.encoding != "none":
                text = bytes(v & 0xFF for v in value).split(b"\0")[0]
                return json.dumps(text.decode("latin-1"))
            return "[" + ",".join(shown(kind.element, v) for v in value) + "]"
        case Struct():
            inner = (f"{json.dumps(name.removeprefix('_'))}:{shown(child, value[name])}" for name, child in kind.fields)
            return "{" + ",".join(inner) + "}"
        case Variant():
            option, chosen = value
            return shown(dict(kind.options)[option], chosen)


class _Generator:
    """`full`: also what babeltrace2 2.0 aborts at: a sequence or variant in the context of an event class."""

    def __init__(self, seed: int, full: bool) -> None:
        self.full = full
        self.rng = random.Random(seed)
        self._names = 0

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def name(self, prefix: str = "f") -> str:
        self._names += 1
        return f"{'_' if self.chance(0.6) else ''}{prefix}{self._names}"

    # Types

    def integer(self) -> Int:
        rng = self.rng
        size = rng.choice([rng.randint(1, 64), 8, 16, 32, 64])
        align = rng.choice([1, 1, 8, 8, 8, 2, 4, 16, 32, 64])
        # Within one byte there is one byte order: a field of the other must fill whole bytes.
        order: Order | None = rng.choice(ORDERS) if size % 8 == 0 and align >= 8 and self.chance(0.2) else None
        return Int(size, signed=self.chance(0.5), align=align, order=order, base=rng.choice([2, 8, 10, 16]))

    def enumeration(self, labels: list[str] | None = None) -> Enum:
        rng = self.rng
        integer = Int(rng.choice([6, 8, 13, 16, 32, 64]), signed=self.chance(0.5), align=rng.choice([1, 8]))
        count = len(labels) if labels else rng.randint(1, 5)
        low = -(1 << (integer.size - 1)) if integer.signed else 0
        high = (1 << (integer.size - integer.signed)) - 1
        edges = sorted(rng.sample(range(max(low, -1000), min(high, 1000) + 1), 2 * count))
        names = labels or [self.name("label") for _ in range(count)]
        ranges = [(names[i], edges[2 * i], edges[2 * i + 1]) for i in range(count)]
        rng.shuffle(ranges)
        return Enum(integer, tuple(ranges))

    def scalar(self) -> Type:
        rng = self.rng
        pick = rng.random()
        if pick < 0.5:
            return self.integer()
        if pick < 0.6:
            return Float(*rng.choice([(8, 24), (11, 53)]), align=rng.choice([1, 8, 32, 64]))
        if pick < 0.75:
            return String(rng.choice([None, "UTF8", "ASCII"]))
        if pick < 0.85:
            return self.enumeration()
        return self.text_array()

    def text_array(self) -> Type:
        element = Int(8, signed=self.chance(0.5), encoding=self.rng.choice(["UTF8", "ASCII"]))
        return Array(element, self.rng.randint(1, 20))

    def type(self, depth: int) -> Type:
        rng = self.rng
        pick = rng.random()
        if depth == 0 or pick < 0.6:
            return self.scalar()
        if pick < 0.85:
            element = self.type(depth - 1) if self.chance(0.5) else self.integer()
            return Array(element, rng.randint(0, 6))
        return self.structure(depth - 1)

    def fields(self, depth: int) -> list[tuple[str, Type]]:
        """One field, or two where the second needs the first: a length or a selector."""
        pick = self.rng.random()
        if pick < 0.75:
            return [(self.name(), self.type(depth))]
        if pick < 0.88:
            length = self.name("n")
            size = self.rng.choice([3, 8, 16, 32, 64])
            element: Type = CHAR if self.chance(0.2) else self.type(max(depth - 1, 0))
            sequence: tuple[str, Type] = (self.name(), Seq(element, length))
            if self.chance(0.2):  # the length stands outside
                sequence = (self.name("s"), Struct((sequence,)))
            return [(length, Int(size, align=self.rng.choice([1, 8]))), sequence]
        labels = [f"{'_' if self.chance(0.3) else ''}option{i}" for i in range(self.rng.randint(1, 4))]
        selector = self.name("e")
        options = tuple((label, self.type(max(depth - 1, 0))) for label in labels)
        return [(selector, self.enumeration(labels)), (self.name("v"), Variant(selector, options))]

    def structure(self, depth: int, most: int = 5, scalars: bool = False) -> Struct:
        fields: list[tuple[str, Type]] = []
        for _ in range(self.rng.randint(0, most)):
            fields += [(self.name(), self.scalar())] if scalars else self.fields(depth)
        return Struct(tuple(fields), align=self.rng.choice([1, 1, 8, 32]))

    # Values

    def number(self, kind: Int) -> int:
        low = -(1 << (kind.size - 1)) if kind.signed else 0
        high = (1 << (kind.size - kind.signed)) - 1
        small = max(low, min(high, self.rng.randint(-3, 3)))
        return self.rng.choice([low, high, small, self.rng.randint(low, high)])

    def real(self) -> float:
        rng = self.rng
        special = [0.0, -0.0, math.inf, -math.inf, 1e-310, 1.5, -2.25e-3]
        return rng.choice(special) if self.chance(0.5) else rng.uniform(-1e6, 1e6)

    def value(self, kind: Type, outer: dict[str, Any]) -> Any:
        """`outer` has the values of the fields before, of this structure and of those around it."""
        rng = self.rng
        match kind:
            case Int():
                return self.number(kind)
            case Float():
                return self.real()
            case String():
                return bytes(
                    rng.randint(1, 255) if self.chance(0.1) else rng.randint(32, 126) for _ in range(rng.randint(0, 12))
                )
            case Enum():
                _, low, high = rng.choice(kind.mappings)
                return rng.randint(low, high)
            case Array():
                return [self.value(kind.element, outer) for _ in range(kind.length)]
            case Seq():
                return [self.value(kind.element, outer) for _ in range(outer[kind.length])]
            case Variant():
                selector, number = outer[kind.selector]
                label = selector.label_of(number)
                return (label, self.value(dict(kind.options)[label], outer))
            case Struct():
                return self.values(kind, outer)

    def values(self, kind: Struct, outer: dict[str, Any] | None = None) -> dict[str, Any]:
        inner = dict(outer or {})
        made: dict[str, Any] = {}
        for name, child in kind.fields:
            if isinstance(child, Int) and name.removeprefix("_").startswith("n"):
                made[name] = self.rng.randint(0, 5)
            else:
                made[name] = self.value(child, inner)
            inner[name] = (child, made[name]) if isinstance(child, Enum) else made[name]
        return made


@dataclass
class _Shape:
    """What of a stream class the events must respect."""

    stream: StreamClass
    events: list[EventClass]
    stamp_bits: int | None  # None: no time
    packets: bool  # whether there may be more than one
    context: bool


def random_trace(seed: int, folder: Path, *, full: bool = False) -> RandomTrace:
    """Without `full` it has nothing that babeltrace2 2.0 is known not to read."""
    gen = _Generator(seed, full)
    rng = gen.rng
    frequency = rng.choice([GHZ, GHZ, GHZ, 1_000_000, 24_000_000, 3_579_545])
    timed = gen.chance(0.9)
    clock = Clock("c", frequency, rng.randint(0, frequency - 1), rng.randint(-5, 2_000_000_000)) if timed else None
    headers: list[Any] = ["lttng", "lttng", perf_packet_header(), Struct.of(stream_id=UINT8, magic_not=UINT32)]
    header = rng.choice(headers)
    trace = CtfTrace(
        order=rng.choice(ORDERS), clock=clock, packet_header=header, metadata_in_packets=gen.chance(0.5),
        env={"seed": seed, "tracer_name": "perflab's tests"},
    )  # fmt: skip
    if isinstance(header, Struct) and "magic_not" in dict(header.fields):
        trace.packet_header = Struct.of(stream_id=UINT8) if gen.chance(0.5) else None
    streams = 1 if trace.packet_header is None else rng.randint(1, 2)
    shapes = [_stream(gen, trace) for _ in range(streams)]
    result = RandomTrace(folder)
    for number in range(rng.randint(1, 3)):
        _file(gen, trace, rng.choice(shapes), f"stream_{number}", result)
    trace.write(folder)
    return result


def _stream(gen: _Generator, trace: CtfTrace) -> _Shape:
    rng = gen.rng
    clock = trace.clock.name if trace.clock else None
    events = rng.randint(1, 5)
    context: Struct | None = None
    pick = rng.random()
    if pick < 0.6:
        context = lttng_packet_context(clock) if clock else Struct.of(content_size=UINT64, packet_size=UINT64)
    elif pick < 0.85:
        context = Struct.of(packet_size=UINT32, content_size=UINT32)
        context = Struct(context.fields + tuple((n, k) for n, k in gen.structure(0, 2).fields if isinstance(k, Int)))
    has_begin = context is not None and "timestamp_begin" in dict(context.fields)
    stamp_bits: int | None = 64 if clock else None
    event_header: Struct | None
    pick = rng.random()
    if clock and has_begin and pick < 0.6:
        event_header = lttng_large_header(clock) if pick < 0.3 else lttng_compact_header(clock)
    else:
        id_type = Int(rng.choice([3, 8, 16, 32, 64]), align=rng.choice([1, 8]))
        fields: list[tuple[str, Type]] = [] if events == 1 and gen.chance(0.3) else [("id", id_type)]
        if clock:
            stamp_bits = rng.choice([64, 48, 32, 27]) if has_begin else 64
            fields.append(("timestamp", Int(stamp_bits, align=rng.choice([1, 8]), clock=clock)))
        event_header = Struct(tuple(fields), align=rng.choice([1, 8])) if fields else None
    event_context = gen.structure(1, 3) if gen.chance(0.5) else None
    if event_context is not None and gen.chance(0.5):
        event_context = Struct((("nctx", UINT8), *event_context.fields), event_context.align)
    stream = trace.stream_class(packet_context=context, event_header=event_header, event_context=event_context)
    classes = []
    for i in range(events):
        payload = gen.structure(3) if gen.chance(0.95) else None
        if payload is not None and event_context is not None and "nctx" in dict(event_context.fields):
            sequence = Seq(gen.integer(), "stream.event.context.nctx")
            payload = Struct((*payload.fields, (gen.name(), sequence)), payload.align)
        if payload is None or context is None or event_header is None:
            # Every event has a size, and where nothing says how long the content is, it ends on a whole byte.
            payload = Struct((*(payload.fields if payload else ()), (gen.name("last"), UINT8)))
        own_context = gen.structure(1, 2, scalars=not gen.full) if gen.chance(0.3) else None
        classes.append(
            stream.event(f"provider:event {i}", payload, context=own_context, log_level=rng.choice([None, 13]))
        )  # fmt: skip
    return _Shape(stream, classes, stamp_bits, context is not None, context is not None)


def _file(gen: _Generator, trace: CtfTrace, shape: _Shape, name: str, result: RandomTrace) -> None:
    rng = gen.rng
    file = trace.file(name, shape.stream, cpu=rng.randint(0, 3))
    time = rng.randint(0, 1 << 40)
    known = {"timestamp_begin", "timestamp_end", "content_size", "packet_size", "packet_seq_num", "events_discarded"}
    known.add("cpu_id")
    for _ in range(rng.randint(1, 4) if shape.packets else 1):
        for _ in range(rng.randint(0 if shape.packets else 1, 12)):
            event = rng.choice(shape.events)
            far = min(shape.stamp_bits or 1, 34)
            time += rng.choice([0, rng.randint(0, 1000), rng.randint(0, (1 << far) - 1)])
            context = gen.values(shape.stream.event_context) if shape.stream.event_context else {}
            specific = gen.values(event.context) if event.context else {}
            outer = {"stream.event.context.nctx": context["nctx"]} if "nctx" in context else {}
            payload = gen.values(event.payload, outer) if event.payload else {}
            file.write(event, time, payload, context=specific, stream_context=context, extended=gen.chance(0.1))
            result.expected[name].append(_line(trace, shape, event, time, context, specific, payload))
        packet_context = shape.stream.packet_context
        more = (
            gen.values(Struct(tuple(f for f in packet_context.fields if f[0] not in known))) if packet_context else {}
        )
        file.end_packet(context=more, padding=rng.choice([0, 0, 1, 4, 64]) if shape.packets else 0)


def _line(
    trace: CtfTrace, shape: _Shape, event: EventClass, time: int, context: Values, specific: Values, payload: Values
) -> str:
    when = '{"time_ns":null,"epoch_ns":null'
    if trace.clock:
        ns = time * GHZ // trace.clock.frequency
        offset = trace.clock.offset_s * GHZ + trace.clock.offset * GHZ // trace.clock.frequency
        when = f'{{"time_ns":{ns},"epoch_ns":{ns + offset}'
    scopes = (
        ("stream_context", shape.stream.event_context, context),
        ("context", event.context, specific),
        ("payload", event.payload, payload),
    )
    text = "".join(f',"{n}":{shown(kind, values) if kind else "null"}' for n, kind, values in scopes)
    return f'{when},"id":{event.id},"name":{json.dumps(event.name)}{text}}}'
