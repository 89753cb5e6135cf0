"""Traces of ROS 2 systems written by hand, event by event, for tests that state numbers.

    trace = MadeTrace("jazzy")
    talker = trace.process("talker", pid=10)
    node = talker.node("talker")
    chatter = talker.publisher(node, "/chatter")
    main = talker.thread(10)
    timer = talker.timer(node, period_ns=1_000_000)
    main.at(1_000).callback_start(callback=timer.callback, is_intra_process=0)
    sent = main.publish(chatter, at=1_100)                  # rclcpp_publish, rcl_publish, rmw_publish
    main.at(1_500).callback_end(callback=timer.callback)

    kernel = trace.kernel("lttng")
    kernel.switch(900, cpu=0, prev=0, next=main)
    trace.write(folder)

Times are ns on the clock of the traces (raw monotonic). The helpers that make ROS objects (`node`, `publisher`, ...)
write the whole initialisation in the order in which rclcpp and rmw write it, one event per nanosecond from `at` on;
without `at` right after the previous one, the first at 1. So events of a test at 1_000 and later come after them.
They return the handles.

Versions ("layouts") of tracetools: "humble_fork" (4.1, with the dds:* events of a forked rmw_fastrtps), "iron",
"jazzy", "kilted". An event or a field that a version does not have is a KeyError.
"""

from __future__ import annotations

import itertools
import uuid as uuid_module
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ctf_writer import (
    INT32,
    INT64,
    POINTER,
    UINT8,
    UINT32,
    UINT64,
    Array,
    Clock,
    CtfTrace,
    EventClass,
    Seq,
    StreamClass,
    StreamFile,
    String,
    Struct,
    Type,
    lttng_compact_header,
    lttng_large_header,
    lttng_packet_context,
    lttng_ust_context,
    perf_event_header,
    perf_packet_context,
    perf_packet_header,
    perf_payload,
    text_array,
)

Layout = Literal["humble_fork", "iron", "jazzy", "kilted"]
Flavour = Literal["lttng", "perf"]

EPOCH_OFFSET_NS = 1_700_000_000_000_000_000  # from the traces' clock to the epoch, unless a test says otherwise

# Types of fields, by the short names used below.
_COMM = text_array(16, signed=False)
_TYPES: dict[str, Type] = {
    "ptr": POINTER,
    "u8": UINT8,
    "u32": UINT32,
    "u64": UINT64,
    "i32": INT32,
    "i64": INT64,
    "str": String(),
    "comm": _COMM,
    "gid24": Array(UINT8, 24),
    "gid16": Array(UINT8, 16),
    "prefix": Array(UINT8, 12),
    "entity": Array(UINT8, 4),
}
# Of sequences: the length, which is a field before them, and the elements.
_SEQUENCES: dict[str, tuple[Type, Type]] = {"ptrs": (UINT64, POINTER), "tids": (UINT8, INT32)}

_INITIALISATION = """
ros2:rcl_init context_handle:ptr version:str
ros2:rcl_node_init node_handle:ptr rmw_handle:ptr node_name:str namespace:str
ros2:rmw_publisher_init rmw_publisher_handle:ptr gid:GID
ros2:rcl_publisher_init publisher_handle:ptr node_handle:ptr rmw_publisher_handle:ptr RCL_TOPIC
ros2:rclcpp_publish message:ptr
ros2:rcl_publish publisher_handle:ptr message:ptr
ros2:rmw_publish RMW_PUBLISH
ros2:rmw_subscription_init rmw_subscription_handle:ptr gid:GID
ros2:rcl_subscription_init subscription_handle:ptr node_handle:ptr rmw_subscription_handle:ptr RCL_TOPIC
ros2:rclcpp_subscription_init subscription_handle:ptr subscription:ptr
ros2:rclcpp_subscription_callback_added subscription:ptr callback:ptr
ros2:rmw_take rmw_subscription_handle:ptr message:ptr source_timestamp:i64 taken:i32
ros2:rcl_take message:ptr
ros2:rclcpp_take message:ptr
ros2:rcl_service_init service_handle:ptr node_handle:ptr rmw_service_handle:ptr service_name:str
ros2:rclcpp_service_callback_added service_handle:ptr callback:ptr
ros2:rcl_client_init client_handle:ptr node_handle:ptr rmw_client_handle:ptr service_name:str
ros2:rcl_timer_init timer_handle:ptr period:i64
ros2:rclcpp_timer_callback_added timer_handle:ptr callback:ptr
ros2:rclcpp_timer_link_node timer_handle:ptr node_handle:ptr
ros2:rclcpp_callback_register callback:ptr symbol:str
ros2:callback_start callback:ptr is_intra_process:i32
ros2:callback_end callback:ptr
ros2:rcl_lifecycle_state_machine_init node_handle:ptr state_machine:ptr
ros2:rcl_lifecycle_transition state_machine:ptr start_label:str goal_label:str
ros2:rclcpp_executor_get_next_ready
ros2:rclcpp_executor_wait_for_work timeout:i64
ros2:rclcpp_executor_execute handle:ptr
"""
_MESSAGE_LINKS = """
ros2:message_link_periodic_async subs:ptrs pubs:ptrs
ros2:message_link_partial_sync subs:ptrs pubs:ptrs
"""
_DDS_FORK = """
dds:create_writer writer:ptr topic_name:str gid_prefix:prefix gid_entity:entity
dds:create_reader reader:ptr topic_name:str gid_prefix:prefix gid_entity:entity
dds:write_pre writer:ptr data:ptr
dds:write writer:ptr timestamp:i64
dds:read reader:ptr buffer:ptr
"""
_INTRA_PROCESS = """
ros2:rclcpp_intra_publish publisher_handle:ptr message:ptr
ros2:rclcpp_ipb_to_subscription ipb:ptr subscription:ptr
ros2:rclcpp_buffer_to_ipb buffer:ptr ipb:ptr
ros2:rclcpp_construct_ring_buffer buffer:ptr capacity:u64
ros2:rclcpp_ring_buffer_enqueue buffer:ptr index:u64 size:u64 overwritten:i32
ros2:rclcpp_ring_buffer_dequeue buffer:ptr index:u64 size:u64
ros2:rclcpp_ring_buffer_clear buffer:ptr
"""
_SERVICES = """
ros2:rmw_client_init rmw_client_handle:ptr gid:gid16
ros2:rmw_send_request rmw_client_handle:ptr request:ptr sequence_number:i64
ros2:rmw_take_request rmw_service_handle:ptr request:ptr client_gid:gid16 sequence_number:i64 taken:i32
ros2:rmw_send_response rmw_service_handle:ptr response:ptr client_gid:gid16 sequence_number:i64 timestamp:i64
ros2:rmw_take_response rmw_client_handle:ptr response:ptr sequence_number:i64 source_timestamp:i64 taken:i32
"""
_FUNCTIONS = """
lttng_ust_cyg_profile:func_entry addr:ptr call_site:ptr
lttng_ust_cyg_profile:func_exit addr:ptr call_site:ptr
lttng_ust_cyg_profile_fast:func_entry addr:ptr
lttng_ust_cyg_profile_fast:func_exit
lttng_ust_statedump:bin_info baddr:ptr memsz:u64 path:str is_pic:u8 has_build_id:u8 has_debug_link:u8
lttng_ust_lib:load baddr:ptr memsz:u64 path:str has_build_id:u8 has_debug_link:u8
lttng_ust_lib:unload baddr:ptr
"""
_PERFLAB = """
perflab:timer_due timer_handle:ptr due_ns:i64
"""
# Scheduler events of LTTng; perf's have the same fields under other names (below).
_KERNEL = """
sched_switch prev_comm:comm prev_tid:i32 prev_prio:i32 prev_state:i64 next_comm:comm next_tid:i32 next_prio:i32
sched_wakeup comm:comm tid:i32 prio:i32 target_cpu:i32
sched_wakeup_new comm:comm tid:i32 prio:i32 target_cpu:i32
sched_waking comm:comm tid:i32 prio:i32 target_cpu:i32
sched_migrate_task comm:comm tid:i32 prio:i32 orig_cpu:i32 dest_cpu:i32
sched_process_exit comm:comm tid:i32 prio:i32
sched_process_exec filename:str tid:i32 old_tid:i32
sched_process_fork parent_comm:comm parent_tid:i32 parent_pid:i32 parent_ns_inum:u32 \
child_comm:comm child_tid:i32 vtids:tids child_pid:i32 child_ns_inum:u32
"""
# Of perflab's recorder, where waits for locks were asked for: a trace without any does not declare them.
_LOCKS = """
perflab_futex_wait comm:comm tid:i32 prio:i32 uaddr:i64 op:i32 owner:i32
perflab_futex_return comm:comm tid:i32 prio:i32 uaddr:i64 op:i32 ret:i32
"""
_PERF_NAMES = {
    "prev_tid": "prev_pid", "next_tid": "next_pid", "tid": "pid", "old_tid": "old_pid", "parent_tid": "parent_pid",
    "child_tid": "child_pid",
}  # fmt: skip
_ONLY_LTTNG = {"parent_pid", "child_pid", "parent_ns_inum", "child_ns_inum", "_vtids_length", "vtids"}

# Version, size of gids, fields of rmw_publish, and the groups of events beside those of the initialisation.
_MESSAGE, _STAMPED = "message:ptr", "rmw_publisher_handle:ptr message:ptr timestamp:i64"
_LAYOUTS: dict[str, tuple[str, str, str, str]] = {
    "humble_fork": ("4.1.0", "gid24", _MESSAGE, _MESSAGE_LINKS + _DDS_FORK),
    "iron": ("6.3.0", "gid24", _MESSAGE, _INTRA_PROCESS),
    "jazzy": ("8.2.2", "gid24", _STAMPED, _INTRA_PROCESS),
    "kilted": ("8.6.0", "gid16", _STAMPED, _INTRA_PROCESS + _SERVICES),
}

# Names of prev_state, as the kernel numbers them.
STATES = {
    "running": 0,
    "sleeping": 1,
    "uninterruptible": 2,
    "stopped": 4,
    "traced": 8,
    "dead": 16,
    "zombie": 32,
    "parked": 64,
    "idle": 1026,
    "preempted": 256,  # TASK_STATE_MAX of today's kernels
}


def _fields_of(table: str) -> dict[str, list[tuple[str, Type]]]:
    """Name of an event -> its fields, of lines `event field:type field:type`."""
    events = {}
    for line in filter(None, table.splitlines()):
        event, *words = line.split()
        fields: list[tuple[str, Type]] = []
        for name, kind in (word.split(":") for word in words):
            if kind in _SEQUENCES:
                length, element = _SEQUENCES[kind]
                fields += [(f"_{name}_length", length), (name, Seq(element, f"__{name}_length"))]
            else:
                fields.append((name, _TYPES[kind]))
        events[event] = fields
    return events


def _lttng_payload(fields: Iterable[tuple[str, Type]]) -> Struct:
    return Struct(tuple((f"_{name}", kind) for name, kind in fields))


def _events_of(layout: Layout) -> dict[str, Struct]:
    """Full name -> payload, in the order of the metadata."""
    _, gid, rmw_publish, more = _LAYOUTS[layout]
    table = (_INITIALISATION + more + _FUNCTIONS + _PERFLAB).replace("RMW_PUBLISH", rmw_publish).replace("GID", gid)
    table = table.replace("RCL_TOPIC", "topic_name:str queue_depth:u64")
    return {name: _lttng_payload(fields) for name, fields in _fields_of(table).items()}


# Handles ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Node:
    handle: int
    name: str
    namespace: str


@dataclass(frozen=True)
class Publisher:
    handle: int
    rmw_handle: int
    topic: str
    node: Node
    gid: tuple[int, ...]
    writer: int | None  # of the fork's dds:* events


@dataclass
class RingBuffer:
    buffer: int
    ipb: int
    subscription: int  # the object that is given to rclcpp_subscription_init a second time
    callback: int
    capacity: int
    enqueued: int = 0  # how often: the helpers count indices by it
    dequeued: int = 0

    @property
    def size(self) -> int:
        return self.enqueued - self.dequeued


@dataclass(frozen=True)
class Subscription:
    handle: int
    rmw_handle: int
    subscription: int  # rclcpp's object
    callback: int
    topic: str
    node: Node
    reader: int | None
    ring: RingBuffer | None


@dataclass(frozen=True)
class Timer:
    handle: int
    callback: int
    period_ns: int
    node: Node


@dataclass(frozen=True)
class Service:
    handle: int
    rmw_handle: int
    callback: int
    name: str
    node: Node


@dataclass(frozen=True)
class Client:
    handle: int
    rmw_handle: int
    name: str
    node: Node
    gid: tuple[int, ...] | None


@dataclass(frozen=True)
class Publication:
    message: int
    source_timestamp: int


# Who emits events ---------------------------------------------------------------------------------------------------


class Moment:
    """`thread.at(1_000).callback_start(callback=1, is_intra_process=0)`: any event of the layout, by its name without
    "ros2:". Others are written with `__` for the colon: `dds__write`, `lttng_ust_cyg_profile_fast__func_entry`."""

    def __init__(self, thread: Thread, time_ns: int, cpu: int) -> None:
        self._thread, self._time_ns, self._cpu = thread, time_ns, cpu

    def __getattr__(self, event: str) -> Callable[..., Thread]:
        if event.startswith("__"):
            raise AttributeError(event)

        def emit(**fields: Any) -> Thread:
            return self._thread.emit(self._time_ns, event, fields, cpu=self._cpu)

        return emit


class Thread:
    """A thread of a process. Its events go to the stream of its CPU: `thread.cpu`, or what `at` is given."""

    def __init__(self, process: Process, tid: int, name: str, cpu: int) -> None:
        self.process, self.tid, self.name, self.cpu = process, tid, name, cpu

    def at(self, time_ns: int, cpu: int | None = None) -> Moment:
        return Moment(self, time_ns, self.cpu if cpu is None else cpu)

    def emit(self, time_ns: int, event: str, fields: Mapping[str, Any], cpu: int | None = None) -> Thread:
        name = event.replace("__", ":", 1) if "__" in event else f"ros2:{event}"
        self.process.host.ust.add(time_ns, self.cpu if cpu is None else cpu, name, fields, self)
        return self

    def publish(
        self,
        publisher: Publisher,
        at: int,
        *,
        message: int | None = None,
        source_timestamp: int | None = None,
        rcl_at: int | None = None,
        rmw_at: int | None = None,
    ) -> Publication:
        """A message to the middleware: rclcpp_publish at `at`, rcl_publish and rmw_publish 1 and 2 ns later unless said
        otherwise (humble_fork: then dds:write_pre and dds:write). The source timestamp is the time of rmw_publish since
        the epoch unless it is given."""
        trace = self.process.host.trace
        message = self.process.new_handle() if message is None else message
        rcl_at = at + 1 if rcl_at is None else rcl_at
        rmw_at = rcl_at + 1 if rmw_at is None else rmw_at
        stamp = rmw_at + self.process.host.epoch_offset_ns if source_timestamp is None else source_timestamp
        self.at(at).rclcpp_publish(message=message)
        self.at(rcl_at).rcl_publish(publisher_handle=publisher.handle, message=message)
        if trace.has_field("ros2:rmw_publish", "timestamp"):
            self.at(rmw_at).rmw_publish(rmw_publisher_handle=publisher.rmw_handle, message=message, timestamp=stamp)
        else:
            self.at(rmw_at).rmw_publish(message=message)
        if trace.layout == "humble_fork":
            self.at(rmw_at).dds__write_pre(writer=publisher.writer, data=message)
            self.at(rmw_at).dds__write(writer=publisher.writer, timestamp=stamp)
        return Publication(message, stamp)

    def take(
        self,
        subscription: Subscription,
        publication: Publication | None,
        at: int,
        *,
        message: int | None = None,
        taken: bool = True,
        source_timestamp: int | None = None,
        rclcpp_at: int | None = None,
    ) -> int:
        """rmw_take at `at`, then rcl_take and rclcpp_take (both at `rclcpp_at`, 1 ns later unless given; only where a
        message was taken). Returns the address of the message."""
        message = self.process.new_handle() if message is None else message
        stamp = source_timestamp
        if stamp is None:
            stamp = publication.source_timestamp if publication and taken else 0
        if subscription.reader is not None:
            self.at(at).dds__read(reader=subscription.reader, buffer=message)
        self.at(at).rmw_take(
            rmw_subscription_handle=subscription.rmw_handle, message=message, source_timestamp=stamp, taken=int(taken)
        )
        if taken:
            later = at + 1 if rclcpp_at is None else rclcpp_at
            self.at(later).rcl_take(message=message)
            self.at(later).rclcpp_take(message=message)
        return message

    def callback(
        self,
        owner: Subscription | Timer | Service | RingBuffer | int,
        start: int,
        end: int | None,
        *,
        intra: bool = False,
    ) -> None:
        """callback_start and callback_end of the owner's callback (or of a callback's address). Without `end` it does
        not end."""
        address = owner if isinstance(owner, int) else owner.callback
        self.at(start).callback_start(callback=address, is_intra_process=int(intra))
        if end is not None:
            self.at(end).callback_end(callback=address)

    def intra_publish(
        self,
        publisher: Publisher,
        subscriptions: Iterable[Subscription],
        at: int,
        *,
        message: int | None = None,
    ) -> list[int]:
        """rclcpp_intra_publish at `at`, 1 ns later one rclcpp_ring_buffer_enqueue per subscription (overwriting where
        the buffer is full). Returns the index in each buffer."""
        message = self.process.new_handle() if message is None else message
        self.at(at).rclcpp_intra_publish(publisher_handle=publisher.handle, message=message)
        indices = []
        for subscription in subscriptions:
            ring = _ring(subscription)
            full = ring.size == ring.capacity
            ring.dequeued += int(full)
            index = ring.enqueued % ring.capacity
            ring.enqueued += 1
            self.at(at + 1).rclcpp_ring_buffer_enqueue(
                buffer=ring.buffer, index=index, size=ring.size, overwritten=int(full)
            )
            indices.append(index)
        return indices

    def dequeue(self, subscription: Subscription, at: int) -> int:
        """rclcpp_ring_buffer_dequeue of the oldest message; returns its index."""
        ring = _ring(subscription)
        if ring.size == 0:
            raise ValueError("the ring buffer is empty")
        index = ring.dequeued % ring.capacity
        ring.dequeued += 1
        self.at(at).rclcpp_ring_buffer_dequeue(buffer=ring.buffer, index=index, size=ring.size)
        return index

    def get_next_ready(self, at: int) -> None:
        self.at(at).rclcpp_executor_get_next_ready()

    def wait_for_work(self, at: int, timeout: int = -1) -> None:
        self.at(at).rclcpp_executor_wait_for_work(timeout=timeout)

    def execute(self, at: int, owner: Subscription | Timer | int) -> None:
        """rclcpp_executor_execute of a subscription's or timer's handle."""
        self.at(at).rclcpp_executor_execute(handle=owner if isinstance(owner, int) else owner.handle)

    def function(self, address: int, entry: int, exit_at: int | None, *, call_site: int | None = None) -> None:
        """Entry and exit of a function of a program built with -finstrument-functions. With `call_site` the long form
        of the events; otherwise the fast one, whose exit does not say of which function it is."""
        long = call_site is not None
        provider = "lttng_ust_cyg_profile" if long else "lttng_ust_cyg_profile_fast"
        entered = {"addr": address, **({"call_site": call_site} if long else {})}
        self.emit(entry, f"{provider}__func_entry", entered)
        if exit_at is not None:
            self.emit(exit_at, f"{provider}__func_exit", entered if long else {})


def _ring(subscription: Subscription) -> RingBuffer:
    if subscription.ring is None:
        raise ValueError(f"{subscription.topic} was not made with intra_process=True")
    return subscription.ring


class Process:
    """A process: makes ROS objects, all from its main thread (whose tid is the pid) at the time `at`."""

    def __init__(self, host: Host, name: str, pid: int, cpu: int) -> None:
        self.host, self.name, self.pid, self.cpu = host, name, pid, cpu
        self._threads: dict[int, Thread] = {}
        # Two processes hand out the same addresses, as forks of one program do: nothing may be keyed by address alone.
        self._handles = itertools.count(0x5500_0000_1000, 0x10)
        self._next_ns = 1

    def thread(self, tid: int, name: str | None = None, cpu: int | None = None) -> Thread:
        if tid not in self._threads:
            self._threads[tid] = Thread(self, tid, name or self.name, self.cpu if cpu is None else cpu)
        return self._threads[tid]

    @property
    def main(self) -> Thread:
        return self.thread(self.pid)

    def new_handle(self) -> int:
        return next(self._handles)

    def _init(self, at: int | None) -> Callable[..., None]:
        if at is not None:
            self._next_ns = at

        def emit(event: str, **fields: Any) -> None:
            self.main.emit(self._next_ns, event, fields)
            self._next_ns += 1

        return emit

    def context(self, *, at: int | None = None, version: str | None = None) -> int:
        """rcl_init with the layout's version of tracetools."""
        handle = self.new_handle()
        self._init(at)("rcl_init", context_handle=handle, version=version or _LAYOUTS[self.host.trace.layout][0])
        return handle

    def node(self, name: str, namespace: str = "/", *, at: int | None = None) -> Node:
        node = Node(self.new_handle(), name, namespace)
        self._init(at)(
            "rcl_node_init", node_handle=node.handle, rmw_handle=self.new_handle(), node_name=name, namespace=namespace
        )
        return node

    def publisher(self, node: Node, topic: str, depth: int = 10, *, at: int | None = None) -> Publisher:
        emit = self._init(at)
        writer = self._dds(emit, "writer", f"rt{topic}")
        made = Publisher(self.new_handle(), self.new_handle(), topic, node, self._gid(), writer)
        emit("rmw_publisher_init", rmw_publisher_handle=made.rmw_handle, gid=made.gid)
        emit(
            "rcl_publisher_init", publisher_handle=made.handle, node_handle=node.handle,
            rmw_publisher_handle=made.rmw_handle, topic_name=topic, queue_depth=depth,
        )  # fmt: skip
        return made

    def subscription(
        self,
        node: Node,
        topic: str,
        symbol: str | None = "void on_message()",
        depth: int = 10,
        *,
        intra_process: bool = False,
        at: int | None = None,
    ) -> Subscription:
        """With `intra_process` it has a ring buffer of `depth` places, and the callback of that as well. Without a
        symbol (None) rclcpp_callback_register is left out."""
        emit = self._init(at)
        reader = self._dds(emit, "reader", f"rt{topic}")
        handle, rmw_handle, subscription, callback = (self.new_handle() for _ in range(4))
        emit("rmw_subscription_init", rmw_subscription_handle=rmw_handle, gid=self._gid())
        emit(
            "rcl_subscription_init", subscription_handle=handle, node_handle=node.handle,
            rmw_subscription_handle=rmw_handle, topic_name=topic, queue_depth=depth,
        )  # fmt: skip
        ring = None
        if intra_process:
            ring = RingBuffer(
                buffer=self.new_handle(),
                ipb=self.new_handle(),
                subscription=self.new_handle(),
                callback=self.new_handle(),
                capacity=depth,
            )
            if self.host.trace.has_event("ros2:rclcpp_construct_ring_buffer"):
                emit("rclcpp_construct_ring_buffer", buffer=ring.buffer, capacity=depth)
                emit("rclcpp_buffer_to_ipb", buffer=ring.buffer, ipb=ring.ipb)
                emit("rclcpp_ipb_to_subscription", ipb=ring.ipb, subscription=ring.subscription)
            emit("rclcpp_subscription_callback_added", subscription=ring.subscription, callback=ring.callback)
            if symbol is not None:
                emit("rclcpp_callback_register", callback=ring.callback, symbol=symbol)
            emit("rclcpp_subscription_init", subscription_handle=handle, subscription=ring.subscription)
        emit("rclcpp_subscription_init", subscription_handle=handle, subscription=subscription)
        emit("rclcpp_subscription_callback_added", subscription=subscription, callback=callback)
        if symbol is not None:
            emit("rclcpp_callback_register", callback=callback, symbol=symbol)
        return Subscription(handle, rmw_handle, subscription, callback, topic, node, reader, ring)

    def timer(
        self, node: Node, period_ns: int, symbol: str | None = "void on_timer()", *, at: int | None = None
    ) -> Timer:
        emit = self._init(at)
        timer = Timer(self.new_handle(), self.new_handle(), period_ns, node)
        emit("rcl_timer_init", timer_handle=timer.handle, period=period_ns)
        emit("rclcpp_timer_callback_added", timer_handle=timer.handle, callback=timer.callback)
        if symbol is not None:
            emit("rclcpp_callback_register", callback=timer.callback, symbol=symbol)
        emit("rclcpp_timer_link_node", timer_handle=timer.handle, node_handle=node.handle)
        return timer

    def service(
        self, node: Node, name: str, symbol: str | None = "void on_request()", *, at: int | None = None
    ) -> Service:
        emit = self._init(at)
        self._dds(emit, "reader", f"rq{name}Request")
        self._dds(emit, "writer", f"rr{name}Reply")
        made = Service(self.new_handle(), self.new_handle(), self.new_handle(), name, node)
        emit(
            "rcl_service_init", service_handle=made.handle, node_handle=node.handle,
            rmw_service_handle=made.rmw_handle, service_name=name,
        )  # fmt: skip
        emit("rclcpp_service_callback_added", service_handle=made.handle, callback=made.callback)
        if symbol is not None:
            emit("rclcpp_callback_register", callback=made.callback, symbol=symbol)
        return made

    def client(self, node: Node, name: str, *, at: int | None = None) -> Client:
        """Its gid is in the trace from kilted on."""
        emit = self._init(at)
        self._dds(emit, "writer", f"rq{name}Request")
        self._dds(emit, "reader", f"rr{name}Reply")
        gid = self._gid() if self.host.trace.has_event("ros2:rmw_client_init") else None
        made = Client(self.new_handle(), self.new_handle(), name, node, gid)
        if gid is not None:
            emit("rmw_client_init", rmw_client_handle=made.rmw_handle, gid=gid)
        emit(
            "rcl_client_init", client_handle=made.handle, node_handle=node.handle,
            rmw_client_handle=made.rmw_handle, service_name=name,
        )  # fmt: skip
        return made

    def _dds(self, emit: Callable[..., None], kind: Literal["writer", "reader"], topic: str) -> int | None:
        if self.host.trace.layout != "humble_fork":
            return None
        handle = self.new_handle()
        gid = self._gid()
        emit(
            f"dds__create_{kind}", topic_name=topic, gid_prefix=gid[:12], gid_entity=gid[12:16], **{kind: handle}
        )  # fmt: skip
        return handle

    def _gid(self) -> tuple[int, ...]:
        size = 16 if _LAYOUTS[self.host.trace.layout][1] == "gid16" else 24
        number = self.new_handle().to_bytes(8, "big")
        return tuple(self.pid.to_bytes(4, "big") + bytes(4) + number + bytes(size - 16))


# Where events go ----------------------------------------------------------------------------------------------------


class _Domain:
    """The events of one trace (user space or kernel of one host), by CPU: what is done to the CPU's file, and when."""

    def __init__(self, ctf: CtfTrace, stream: StreamClass, file_name: str) -> None:
        self.ctf, self.stream, self.file_name = ctf, stream, file_name
        self.recorded: dict[int, list[tuple[int, Callable[[StreamFile], None]]]] = {}

    def put(self, cpu: int, time_ns: int, act: Callable[[StreamFile], None]) -> None:
        self.recorded.setdefault(cpu, []).append((time_ns, act))

    def discard(self, at: int, events: int, cpu: int = 0) -> None:
        """The tracer dropped that many events of the CPU's stream at that instant: a packet ends there and says so."""

        def end_packet(file: StreamFile) -> None:
            file.discard(events)
            file.end_packet(end=at)

        self.put(cpu, at, end_packet)

    def lose_packets(self, at: int, packets: int = 1, cpu: int = 0) -> None:
        """That many packets of the CPU's stream are missing at that instant."""
        self.put(cpu, at, lambda file: file.lose_packets(packets))

    def write(self, folder: Path) -> None:
        self.ctf.files.clear()
        for cpu in sorted(self.recorded):
            file = self.ctf.file(f"{self.file_name}_{cpu}", self.stream, cpu=cpu)
            for _, act in sorted(self.recorded[cpu], key=lambda record: record[0]):
                act(file)
        self.ctf.write(folder)


class UserSpace(_Domain):
    """What LTTng-UST recorded on one host: `trace.user_space()`, for losses; events come from threads."""

    def __init__(self, host: Host) -> None:
        self.host = host
        trace = host.trace
        ctf = CtfTrace(
            uuid=uuid_module.uuid5(uuid_module.NAMESPACE_DNS, f"{host.name}.ust"),
            env={
                "domain": "ust", "tracer_name": "lttng-ust", "tracer_major": 2, "tracer_minor": 13,
                "tracer_buffering_scheme": "uid", "tracer_buffering_id": 0, "architecture_bit_width": 64,
                "trace_name": "made", "hostname": host.name,
            },
            clock=Clock(offset=host.epoch_offset_ns, uuid=host.clock_uuid),
            metadata_in_packets=True,
        )  # fmt: skip
        stream = ctf.stream_class(
            packet_context=lttng_packet_context(),
            event_header=lttng_large_header(),
            event_context=lttng_ust_context(trace.procname),
        )
        self.events = {n: stream.event(n, payload, log_level=13) for n, payload in trace.events.items()}
        super().__init__(ctf, stream, "ros2")

    def add(self, time_ns: int, cpu: int, name: str, fields: Mapping[str, Any], thread: Thread) -> None:
        if name not in self.events:
            raise KeyError(f"the layout {self.host.trace.layout} has no event {name}")
        context: dict[str, Any] = {"vpid": thread.process.pid, "vtid": thread.tid}
        if self.host.trace.procname:
            context["procname"] = thread.name
        event = self.events[name]
        self.put(cpu, time_ns, lambda file: file.write(event, time_ns, fields, stream_context=context))


Task = Thread | tuple[int, str] | int


class Kernel(_Domain):
    """The scheduler events of one host. A task is a Thread, (tid, name) or a tid; priorities are the kernel's own
    numbers (120 is nice 0, 49 is FIFO 50), written as the tracer writes them; states are names (STATES) or numbers.

        kernel = trace.kernel("perf")
        kernel.waking(90, cpu=1, task=main, target_cpu=0)
        kernel.wakeup(100, cpu=0, task=main)
        kernel.switch(110, cpu=0, prev=0, next=main)
        kernel.switch(500, cpu=0, prev=main, next=(99, "other"), prev_state="running")   # preempted
    """

    def __init__(self, host: Host, flavour: Flavour) -> None:
        self.flavour, self.host = flavour, host
        uuid = uuid_module.uuid5(uuid_module.NAMESPACE_DNS, f"{host.name}.kernel")
        if flavour == "perf":
            ctf = CtfTrace(
                uuid=uuid,
                env={"host": host.name, "sysname": "Linux", "domain": "kernel", "tracer_name": "perf"},
                clock=Clock("perf_clock", description="perf clock"),
                packet_header=perf_packet_header(),
            )
            stream = ctf.stream_class(packet_context=perf_packet_context(), event_header=perf_event_header())
            super().__init__(ctf, stream, "perf_stream")
        else:
            ctf = CtfTrace(
                uuid=uuid,
                env={
                    "hostname": host.name, "domain": "kernel", "sysname": "Linux", "tracer_name": "lttng-modules",
                    "tracer_major": 2, "tracer_minor": 13, "tracer_patchlevel": 0,
                },
                clock=Clock(offset=host.epoch_offset_ns, uuid=host.clock_uuid),
                metadata_in_packets=True,
            )  # fmt: skip
            stream = ctf.stream_class(packet_context=lttng_packet_context(), event_header=lttng_compact_header())
            super().__init__(ctf, stream, "kernel")
        self.events = {name: self._declare(name, fields) for name, fields in _fields_of(_KERNEL).items()}

    def _declare(self, name: str, fields: Iterable[tuple[str, Type]]) -> EventClass:
        if self.flavour == "lttng":
            return self.stream.event(name, _lttng_payload(fields))
        renamed = [
            (_PERF_NAMES.get(n, n), String() if kind is _COMM else kind) for n, kind in fields if n not in _ONLY_LTTNG
        ]
        return self.stream.event(f"sched:{name}", perf_payload(*renamed))

    def emit(self, at: int, cpu: int, event: str, fields: Mapping[str, Any], current: int = 0) -> None:
        """Any event, with LTTng's names of fields. `current` is the thread that ran (perf records it)."""
        payload = dict(fields)
        if self.flavour == "perf":
            payload = {_PERF_NAMES.get(n, n): v for n, v in payload.items() if n not in _ONLY_LTTNG}
            payload |= {
                "perf_ip": 0xFFFF_FFFF_8100_0000, "perf_tid": current, "perf_pid": current, "perf_id": 1,
                "perf_period": 1, "common_type": 300, "common_flags": 0, "common_preempt_count": 0,
                "common_pid": current,
            }  # fmt: skip
        kind = self.events[event]
        self.put(cpu, at, lambda file: file.write(kind, at, payload))

    def switch(
        self,
        at: int,
        cpu: int,
        prev: Task,
        next: Task,
        prev_state: str | int = "sleeping",
        *,
        prev_prio: int = 120,
        next_prio: int = 120,
    ) -> None:
        """sched_switch. The idle task (0) always leaves as "running"."""
        state: str | int = "running" if self._tid(prev) == 0 else prev_state
        self.emit(
            at, cpu, "sched_switch",
            {
                "prev_comm": self._comm(prev, cpu), "prev_tid": self._tid(prev), "prev_prio": self._prio(prev_prio),
                "prev_state": STATES[state] if isinstance(state, str) else state,
                "next_comm": self._comm(next, cpu), "next_tid": self._tid(next), "next_prio": self._prio(next_prio),
            },
            self._tid(prev),
        )  # fmt: skip

    def wakeup(self, at: int, cpu: int, task: Task, target_cpu: int | None = None, *, prio: int = 120) -> None:
        self._about("sched_wakeup", at, cpu, task, prio, target_cpu=cpu if target_cpu is None else target_cpu)

    def waking(self, at: int, cpu: int, task: Task, target_cpu: int | None = None, *, prio: int = 120) -> None:
        self._about("sched_waking", at, cpu, task, prio, target_cpu=cpu if target_cpu is None else target_cpu)

    def migrate(self, at: int, cpu: int, task: Task, origin: int, destination: int, *, prio: int = 120) -> None:
        self._about("sched_migrate_task", at, cpu, task, prio, orig_cpu=origin, dest_cpu=destination)

    def exit(self, at: int, cpu: int, task: Task, *, prio: int = 120) -> None:
        self._about("sched_process_exit", at, cpu, task, prio)

    def fork(self, at: int, cpu: int, parent: Task, child: Task, *, child_pid: int | None = None) -> None:
        """A new thread or process: `child_pid` is the process it belongs to, itself unless given (LTTng alone says
        it)."""
        tid = self._tid(child)
        self.emit(
            at, cpu, "sched_process_fork",
            {
                "parent_comm": self._comm(parent, cpu), "parent_tid": self._tid(parent),
                "parent_pid": parent.process.pid if isinstance(parent, Thread) else self._tid(parent),
                "parent_ns_inum": 4_026_531_836, "child_comm": self._comm(child, cpu), "child_tid": tid,
                "vtids": [tid], "child_pid": tid if child_pid is None else child_pid, "child_ns_inum": 4_026_531_836,
            },
            self._tid(parent),
        )  # fmt: skip

    def with_locks(self) -> None:
        """Waits for locks are recorded, whether there are any or not."""
        if "perflab_futex_wait" not in self.events:
            self.events |= {name: self._declare(name, fields) for name, fields in _fields_of(_LOCKS).items()}

    def futex_wait(
        self, at: int, cpu: int, task: Task, address: int, *, op: int = 128, owner: int = 0, prio: int = 120
    ) -> None:
        self.with_locks()
        self._about("perflab_futex_wait", at, cpu, task, prio, uaddr=address, op=op, owner=owner)

    def futex_return(
        self, at: int, cpu: int, task: Task, address: int, *, op: int = 128, result: int = 0, prio: int = 120
    ) -> None:
        self.with_locks()
        self._about("perflab_futex_return", at, cpu, task, prio, uaddr=address, op=op, ret=result)

    def _about(self, event: str, at: int, cpu: int, task: Task, prio: int, **more: int) -> None:
        fields = {"comm": self._comm(task, cpu), "tid": self._tid(task), "prio": self._prio(prio), **more}
        self.emit(at, cpu, event, fields)

    def _tid(self, task: Task) -> int:
        if isinstance(task, Thread):
            return task.tid
        return task if isinstance(task, int) else task[0]

    def _comm(self, task: Task, cpu: int) -> str:
        if isinstance(task, Thread):
            return task.name[:15]
        if isinstance(task, tuple):
            return task[1][:15]
        return f"swapper/{cpu}" if task == 0 else f"task{task}"

    def _prio(self, priority: int) -> int:
        return priority if self.flavour == "perf" else priority - 100


class Host:
    def __init__(self, trace: MadeTrace, name: str, epoch_offset_ns: int) -> None:
        self.trace, self.name, self.epoch_offset_ns = trace, name, epoch_offset_ns
        self.clock_uuid = str(uuid_module.uuid5(uuid_module.NAMESPACE_DNS, f"{name}.clock"))
        self.ust = UserSpace(self)
        self.kernel: Kernel | None = None


class MadeTrace:
    """A trace of one host or of several; see the example at the top. `procname` says whether events carry it."""

    def __init__(
        self, layout: Layout = "jazzy", *, procname: bool = True, epoch_offset_ns: int = EPOCH_OFFSET_NS
    ) -> None:
        self.layout: Layout = layout
        self.procname = procname
        self.epoch_offset_ns = epoch_offset_ns
        self.events = _events_of(layout)
        self._hosts: dict[str, Host] = {}

    def has_event(self, name: str) -> bool:
        return name in self.events

    def has_field(self, event: str, name: str) -> bool:
        return any(n == f"_{name}" for n, _ in self.events[event].fields)

    def host(self, name: str = "robot", *, epoch_offset_ns: int | None = None) -> Host:
        """A host; made with the trace's offset of its clock to the epoch unless the first call says another."""
        if name not in self._hosts:
            offset = self.epoch_offset_ns if epoch_offset_ns is None else epoch_offset_ns
            self._hosts[name] = Host(self, name, offset)
        return self._hosts[name]

    def process(self, name: str, pid: int, host: str = "robot", cpu: int = 0) -> Process:
        """`cpu` is the one on which its threads' events are recorded unless a thread or an event says another."""
        return Process(self.host(host), name, pid, cpu)

    def kernel(self, flavour: Flavour = "lttng", host: str = "robot") -> Kernel:
        place = self.host(host)
        if place.kernel is None:
            place.kernel = Kernel(place, flavour)
        return place.kernel

    def user_space(self, host: str = "robot") -> UserSpace:
        return self.host(host).ust

    def write(self, folder: Path) -> Path:
        """Writes folder/ust and folder/kernel; with several hosts folder/HOST/ust and folder/HOST/kernel. What has no
        event is not written."""
        for host in self._hosts.values():
            place = folder / host.name if len(self._hosts) > 1 else folder
            for name, domain in (("ust", host.ust), ("kernel", host.kernel)):
                if domain is not None and domain.recorded:
                    domain.write(place / name)
        return folder
