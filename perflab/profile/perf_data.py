"""perf's recording: the text of `perf script` as stacks of frames with weights, and further data from the file.

`perf script` unwinds stacks and names functions. With fixed fields a sample is a line
"comm  pid/tid  seconds.nanoseconds:  period event:", then its frames from the innermost to the outermost,
"\\t address symbol (object)", then an empty line. Names of threads and functions may contain anything but a line end;
so lines are parsed from their ends.

Losses, throttling and the list of processes are read from perf.data itself. Its layout is that of the kernel's
tools/perf/Documentation/perf.data-file-format.txt and of perf_event_open(2); an unfinished file is read as far as
possible.
"""

from __future__ import annotations

import mmap
import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from perflab.errors import BadInput

FIELDS = "comm,pid,tid,time,event,period,ip,sym,dso"

UNKNOWN = "[unknown]"
_NO_OBJECTS = (UNKNOWN, "//anon", "[heap]", "[stack]", "anon_inode:", "/dev/zero", "/SYSV")
_HEADER = re.compile(r"(.*)\s+(-?\d+)/(-?\d+)\s+(\d+)\.(\d{9}):\s+(\d+)\s+(.+?):\s*$")
# The upper half of the addresses is the kernel's, without the last page: such values come from a broken stack.
_KERNEL = range(1 << 63, (1 << 64) - 4096)

_LIBC = re.compile(r"/(libc|libpthread|ld-musl)[-.][^/]*$")

# Where a thread begins: a stack that reaches one of these is complete.
ENTRIES = frozenset(
    {
        *("_start", "_dl_start", "_dl_start_user", "__libc_start_main", "__libc_start_call_main"),
        *("clone", "clone3", "__clone", "__clone3", "__clone_internal", "thread_start", "start_thread"),
        *("ret_from_fork", "ret_from_fork_asm", "kthread", "runtime.goexit", "runtime.goexit.abi0", "_rt0_amd64"),
        *("secondary_startup_64", "secondary_startup_64_no_verify", "cpu_startup_entry", "start_kernel"),
    }
)


@dataclass(frozen=True, slots=True)
class Frame:
    """One function on a stack. `symbol` is None if the address has none."""

    symbol: str | None
    object: str | None  # the file it was loaded from; None if no file is mapped there
    kernel: bool = False
    inlined: bool = False

    @property
    def name(self) -> str:
        """For people: without a symbol, the file in brackets."""
        if self.symbol is not None:
            return self.symbol
        if self.kernel and self.object in (None, "[kernel.kallsyms]"):
            return "[kernel]"
        return f"[{file_name(self.object)}]" if self.object else UNKNOWN


def file_name(path: str) -> str:
    """Of an object, without its folder and the brackets of the kernel's."""
    return path.removesuffix(" (deleted)").rpartition("/")[2].strip("[]")


@dataclass(slots=True)
class Weight:
    """Of one stack, or of several. `squares` is the sum of the squares of the samples' weights."""

    samples: int = 0
    weight: int = 0
    squares: int = 0

    def include(self, other: Weight) -> None:
        self.samples += other.samples
        self.weight += other.weight
        self.squares += other.squares


Stack = tuple[int, ...]  # numbers of frames, the outermost first


@dataclass
class ThreadStacks:
    """All samples of one thread by their stacks. `name` is its last name."""

    pid: int
    tid: int
    name: str = ""
    stacks: dict[Stack, Weight] = field(default_factory=dict)


@dataclass
class Samples:
    """The parsed recording. Threads are identified by (pid, tid); `frames` by their number in the stacks."""

    frames: list[Frame] = field(default_factory=list)
    threads: dict[tuple[int, int], ThreadStacks] = field(default_factory=dict)
    idle: int = 0  # samples of idle CPUs
    unreadable: int = 0  # lines in an unexpected format
    first_ns: int | None = None
    last_ns: int | None = None

    @property
    def total(self) -> int:
        return sum(w.samples for thread in self.threads.values() for w in thread.stacks.values())

    def include(self, sample: _Sample | None) -> None:
        """A complete sample."""
        if sample is None:
            return
        if sample.pid == 0:
            self.idle += 1
            return
        self.first_ns = min(sample.at_ns, sample.at_ns if self.first_ns is None else self.first_ns)
        self.last_ns = max(sample.at_ns, sample.at_ns if self.last_ns is None else self.last_ns)
        identity = sample.pid, sample.tid
        thread = self.threads.setdefault(identity, ThreadStacks(*identity))
        thread.name = sample.name
        weight = Weight(1, sample.period, sample.period**2)
        thread.stacks.setdefault(tuple(reversed(sample.stack)), Weight()).include(weight)


@dataclass(slots=True)
class _Sample:
    name: str
    pid: int
    tid: int
    at_ns: int
    period: int
    stack: list[int] = field(default_factory=list)  # the innermost first


def _sample(line: str) -> _Sample | None:
    """A sample that begins with a line "comm pid/tid seconds.nanoseconds: period event:"."""
    match = _HEADER.match(line)
    if match is None:
        return None
    name, pid, tid, seconds, nanoseconds, period, _ = match.groups()
    return _Sample(name.strip(), int(pid), int(tid), int(f"{seconds}{nanoseconds}"), int(period))


def parse(lines: Iterable[str]) -> Samples:
    """Reads line by line; a frame's text is parsed once for each address."""
    found = Samples()
    numbers: dict[Frame, int] = {}
    known: dict[str, int] = {}  # by the text of their line
    sample: _Sample | None = None
    for line in lines:
        if sample is not None and line[:1] in ("\t", " "):
            if line not in known:
                frame = _frame(line)
                if frame is None:
                    found.unreadable += 1
                    continue
                known[line] = numbers.setdefault(frame, len(numbers))
            sample.stack.append(known[line])
            continue
        found.include(sample)
        sample = _sample(line)
        found.unreadable += sample is None and bool(line.strip())
    found.include(sample)
    found.frames.extend(numbers)
    return found


def is_whole(frames: list[Frame], stack: Stack) -> bool:
    """Whether a stack reaches the beginning of its thread.

    Without libc's debugging symbols, its functions that call main() and those of threads have no name.
    """
    if not stack:
        return False
    first = frames[stack[0]]
    return first.symbol in ENTRIES or (first.symbol is None and _LIBC.search(first.object or "") is not None)


def _frame(line: str) -> Frame | None:
    """The frame of a line "\\t address symbol (object)"."""
    address, _, rest = line.strip().partition(" ")
    try:
        kernel = int(address, 16) in _KERNEL
    except ValueError:
        return None
    if not rest.endswith(")"):
        return None
    if rest.endswith(" (inlined)"):
        return Frame(rest.removesuffix(" (inlined)"), None, kernel, inlined=True)
    # Objects begin with "/" or "["; function names have parentheses, too.
    at = max(rest.rfind(" (/"), rest.rfind(" (["))
    if at < 0:
        at = rest.rfind(" (")
    symbol, path = (rest[:at], rest[at + 2 : -1]) if at >= 0 else ("", rest[1:-1])
    symbol = symbol.split("@@", 1)[0].strip()  # the version of a symbol
    none = path.startswith(_NO_OBJECTS)
    return Frame(None if symbol in ("", UNKNOWN) else symbol, None if none else path, kernel and path != "[vdso]")


_MAGIC = b"PERFILE2"
_BEGIN = struct.Struct("<8sQQQQQQ")  # magic, size, attr size, attrs offset and size, data offset and size
_RECORD = struct.Struct("<IHH")  # type, misc, size with this header
_LOST = struct.Struct("<QQ")
_LOST_SAMPLES = struct.Struct("<Q")
_PROCESS_AND_THREAD = struct.Struct("<II")
_FORK = struct.Struct("<IIII")  # pid, parent's pid, tid, parent's tid

_ATTR = struct.Struct("<24xQ8xQ")  # of perf_event_attr: sample_type, flags
_TIMESTAMP = struct.Struct("<Q")
_SAMPLE_ID_ALL = 1 << 18  # a flag: records end with fields that identify a sample
_SAMPLE_TIME = 1 << 2
_BEHIND_TIME = 1 << 6 | 1 << 7 | 1 << 9 | 1 << 16  # PERF_SAMPLE_ID, _CPU, _STREAM_ID, _IDENTIFIER

_LOST_TYPE, _COMM, _THROTTLE, _FORK_TYPE, _SAMPLE, _LOST_SAMPLES_TYPE = 2, 3, 5, 7, 9, 13


@dataclass
class PerfData:
    """`names` are those of the processes' main threads, the last one of each; `parents` of processes that began."""

    samples: int = 0
    lost: int = 0  # records that did not fit into the buffers, samples and others
    throttled: int = 0  # how often the kernel paused the event for the rest of a tick
    complete: bool = True  # False: perf was ended before it could finish the file
    names: dict[int, str] = field(default_factory=dict)
    parents: dict[int, int] = field(default_factory=dict)


def read(path: Path) -> PerfData:
    """Raises BadInput if it is not perf.data of this byte order."""
    try:
        with path.open("rb") as file:
            head = file.read(_BEGIN.size)
            if len(head) < _BEGIN.size or not head.startswith(_MAGIC):
                raise BadInput(f"{path} is not perf.data: it does not begin with {_MAGIC.decode()}")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                return _read(content, *_BEGIN.unpack(head)[3:])
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error


def _time_before_end(content: mmap.mmap, attrs: int, size: int) -> int | None:
    """How many bytes before its end a record other than a sample has its time; None: it has none."""
    if size < _ATTR.size or attrs + _ATTR.size > len(content):
        return None
    kind, flags = _ATTR.unpack_from(content, attrs)
    if not (kind & _SAMPLE_TIME and flags & _SAMPLE_ID_ALL):
        return None
    return _TIMESTAMP.size * (1 + int(kind & _BEHIND_TIME).bit_count())


def _read(content: mmap.mmap, attrs: int, attrs_size: int, begin: int, size: int) -> PerfData:
    found = PerfData(complete=size > 0)
    back = _time_before_end(content, attrs, attrs_size)
    named_ns: dict[int, int] = {}  # records are in the order in which the buffers of the CPUs were read, not by time
    at, end = begin, min(len(content), begin + size) if size else len(content)
    while at + _RECORD.size <= end:
        kind, _, length = _RECORD.unpack_from(content, at)
        if length < _RECORD.size or at + length > end:
            found.complete = False
            break
        body = at + _RECORD.size
        if kind == _SAMPLE:
            found.samples += 1
        elif kind == _LOST_TYPE:
            found.lost += _LOST.unpack_from(content, body)[1]
        elif kind == _LOST_SAMPLES_TYPE:
            found.lost += _LOST_SAMPLES.unpack_from(content, body)[0]
        elif kind == _THROTTLE:
            found.throttled += 1
        elif kind == _COMM:
            pid, tid = _PROCESS_AND_THREAD.unpack_from(content, body)
            at_ns = 0 if back is None or back > length else _TIMESTAMP.unpack_from(content, at + length - back)[0]
            if pid == tid and at_ns >= named_ns.get(pid, 0):
                named_ns[pid] = at_ns
                name = content[body + _PROCESS_AND_THREAD.size : at + length].split(b"\0", 1)[0]
                found.names[pid] = name.decode("utf-8", "replace")
        elif kind == _FORK_TYPE:
            pid, parent, tid, _ = _FORK.unpack_from(content, body)
            if pid == tid and pid != parent:
                found.parents[pid] = parent
                found.names.setdefault(pid, found.names.get(parent, ""))
        at += length
    return found
