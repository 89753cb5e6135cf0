"""Prints what babeltrace2 reads in a trace, in the words of ctf_dump. Runs with the system's Python, which has bt2.

    /usr/bin/python3 babeltrace2_dump.py < jobs      # a line of JSON each: {"inputs": [FOLDER, ...], "output": FILE}

A line of the output is STREAM, a tab, and the event as ctf_dump prints it from "time_ns" on without what babeltrace2
does not tell (the folder, the event header). STREAM is the name of its file. The last line is {"error": ...}
where babeltrace2 gave up, with the events up to there before it.

Fields are read by the functions below the bindings' classes: these take thirty times as long.
"""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bt2  # type: ignore[import-not-found,unused-ignore]
from bt2 import field_class as classes  # type: ignore[import-not-found,unused-ignore]
from bt2 import native_bt as native  # type: ignore[import-not-found,unused-ignore]

GHZ = 1_000_000_000
Printer = Callable[[Any], str]


def text(value: str) -> str:
    return json.dumps(value.encode("utf-8", "surrogateescape").decode("latin-1"))


def printer(field_class: Any) -> Printer:
    """A function that prints a field of that class."""
    if isinstance(field_class, classes._UnsignedIntegerFieldClass | classes._UnsignedIntegerFieldClassConst):
        get = native.field_integer_unsigned_get_value
        return lambda f: str(get(f))
    if isinstance(field_class, classes._SignedIntegerFieldClass | classes._SignedIntegerFieldClassConst):
        get = native.field_integer_signed_get_value
        return lambda f: str(get(f))
    if isinstance(field_class, classes._SinglePrecisionRealFieldClass | classes._SinglePrecisionRealFieldClassConst):
        get = native.field_real_single_precision_get_value
        return lambda f: '"0x' + struct.pack(">d", get(f)).hex() + '"'
    if isinstance(field_class, classes._DoublePrecisionRealFieldClass | classes._DoublePrecisionRealFieldClassConst):
        get = native.field_real_double_precision_get_value
        return lambda f: '"0x' + struct.pack(">d", get(f)).hex() + '"'
    if isinstance(field_class, classes._StringFieldClass | classes._StringFieldClassConst):
        get = native.field_string_get_value
        size = native.field_string_get_length
        # babeltrace2 2.0 leaves the text before in the buffer of an empty one; only the length is right.
        return lambda f: text(get(f)) if size(f) else '""'
    if isinstance(field_class, classes._StructureFieldClass | classes._StructureFieldClassConst):
        return structure_printer(field_class)
    if isinstance(field_class, classes._ArrayFieldClass | classes._ArrayFieldClassConst):
        element = printer(field_class.element_field_class)
        length = native.field_array_get_length
        at = native.field_array_borrow_element_field_by_index_const
        return lambda f: "[" + ",".join([element(at(f, i)) for i in range(length(f))]) + "]"
    if isinstance(field_class, classes._VariantFieldClass | classes._VariantFieldClassConst):
        options = [printer(o.field_class) for o in field_class.values()]
        index = native.field_variant_get_selected_option_index
        chosen = native.field_variant_borrow_selected_option_field_const
        return lambda f: options[index(f)](chosen(f))
    raise TypeError(f"a field class that is not known: {field_class}")


def structure_printer(field_class: Any) -> Printer:
    members = [(i, json.dumps(name) + ":", printer(m.field_class)) for i, (name, m) in enumerate(field_class.items())]
    at = native.field_structure_borrow_member_field_by_index_const
    return lambda f: "{" + ",".join([name + member(at(f, i)) for i, name, member in members]) + "}"


def scope(name: str, field_class: Any, borrow: Callable[[Any], Any]) -> Printer:
    """`,"name":` and the scope of an event, or null where its class has none."""
    if field_class is None:
        return lambda event: f',"{name}":null'
    printed = printer(field_class)
    start = f',"{name}":'
    return lambda event: start + printed(borrow(event))


def class_printer(event_class: Any) -> Printer:
    start = f',"id":{event_class.id},"name":{text(event_class.name or "")}'
    scopes = [
        scope(
            "stream_context",
            event_class.stream_class.event_common_context_field_class,
            native.event_borrow_common_context_field_const,
        ),
        scope("context", event_class.specific_context_field_class, native.event_borrow_specific_context_field_const),
        scope("payload", event_class.payload_field_class, native.event_borrow_payload_field_const),
    ]
    return lambda event: start + "".join([s(event) for s in scopes])


def times(message: Any, clock: Any) -> str:
    """Computed from cycles in integers: babeltrace2 goes through floating point where the clock does not count ns."""
    cycles = message.default_clock_snapshot.value
    time_ns = cycles * GHZ // clock.frequency
    offset_ns = clock.offset.seconds * GHZ + clock.offset.cycles * GHZ // clock.frequency
    if clock.frequency == GHZ and message.default_clock_snapshot.ns_from_origin != time_ns + offset_ns:
        raise ValueError("babeltrace2's time is not the sum of offset and cycles")
    return f'{{"time_ns":{time_ns},"epoch_ns":{time_ns + offset_ns}'


def stream_key(stream: Any) -> str:
    return Path(stream.name).name if stream.name else str(stream.id)


def dump(inputs: list[str], output: Path) -> None:
    spec = bt2.ComponentSpec.from_named_plugin_and_component_class("ctf", "fs", {"inputs": inputs})
    printers: dict[int, Printer] = {}
    streams: dict[int, tuple[str, Any]] = {}
    with output.open("w") as out:
        try:
            for message in bt2.TraceCollectionMessageIterator([spec]):
                if type(message) is not bt2._EventMessageConst:
                    continue
                event = native.message_event_borrow_event_const(message._ptr)
                class_at = int(native.event_borrow_class_const(event))
                stream_at = int(native.event_borrow_stream_const(event))
                if class_at not in printers:
                    printers[class_at] = class_printer(message.event.cls)
                if stream_at not in streams:
                    stream = message.event.stream
                    streams[stream_at] = (stream_key(stream), stream.cls.default_clock_class)
                key, clock = streams[stream_at]
                when = times(message, clock) if clock is not None else '{"time_ns":null,"epoch_ns":null'
                out.write(f"{key}\t{when}{printers[class_at](event)}}}\n")
        except (bt2._Error, RuntimeError) as error:
            out.write(json.dumps({"error": str(error).splitlines()[0]}) + "\n")


if __name__ == "__main__":
    for line in sys.stdin:
        job = json.loads(line)
        dump(job["inputs"], Path(job["output"]))
