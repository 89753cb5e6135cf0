"""The text of `perf script` with fixed fields, as stacks of frames with weights.

A sample is a line "comm  pid/tid  seconds.nanoseconds:  period event:", then its frames from the innermost to the
outermost, "\\t address symbol (object)", then an empty line. Names of threads and functions may hold anything but a
line end; so the lines are taken apart from their ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

FIELDS = "comm,pid,tid,time,event,period,ip,sym,dso"

UNKNOWN = "[unknown]"
_NO_OBJECTS = (UNKNOWN, "//anon", "[heap]", "[stack]", "anon_inode:", "/dev/zero", "/SYSV")
_HEADER = re.compile(r"(.*)\s+(-?\d+)/(-?\d+)\s+(\d+)\.(\d{9}):\s+(\d+)\s+(.+?):\s*$")
# The upper half of the addresses is the kernel's, without the last page: such values come of a stack that went wrong.
_KERNEL = range(1 << 63, (1 << 64) - 4096)

_LIBC = re.compile(r"/(libc|libpthread|ld-musl)[-.][^/]*$")

# Where a thread begins: a stack that reaches one of these is whole.
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
    """One function on a stack. `symbol` is None where the address has none."""

    symbol: str | None
    object: str | None  # the file it was loaded from; None where no file is mapped there
    kernel: bool = False
    inlined: bool = False

    @property
    def name(self) -> str:
        """For people: of what has no symbol, the file in brackets."""
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
    """All samples of one thread by their stacks. `name` is the one it had last."""

    pid: int
    tid: int
    name: str = ""
    stacks: dict[Stack, Weight] = field(default_factory=dict)


@dataclass
class Samples:
    """What was read. Threads are known by (pid, tid); `frames` by their number in the stacks."""

    frames: list[Frame] = field(default_factory=list)
    threads: dict[tuple[int, int], ThreadStacks] = field(default_factory=dict)
    idle: int = 0  # samples of CPUs with nothing to do
    unreadable: int = 0  # lines that are not as they should be
    first_ns: int | None = None
    last_ns: int | None = None

    @property
    def total(self) -> int:
        return sum(w.samples for thread in self.threads.values() for w in thread.stacks.values())

    def include(self, sample: _Sample | None) -> None:
        """One that is complete."""
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
    """What begins with a line "comm  pid/tid  seconds.nanoseconds:  period event:"."""
    match = _HEADER.match(line)
    if match is None:
        return None
    name, pid, tid, seconds, nanoseconds, period, _ = match.groups()
    return _Sample(name.strip(), int(pid), int(tid), int(f"{seconds}{nanoseconds}"), int(period))


def parse(lines: Iterable[str]) -> Samples:
    """Reads line by line; a frame's text is looked at once for each address."""
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
    """Whether a stack reaches the place where its thread begins.

    Without libc's debugging symbols the functions of it that call main() and those of threads have no name.
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
    # Objects begin with "/" or "["; names of functions have parentheses, too.
    at = max(rest.rfind(" (/"), rest.rfind(" (["))
    if at < 0:
        at = rest.rfind(" (")
    symbol, path = (rest[:at], rest[at + 2 : -1]) if at >= 0 else ("", rest[1:-1])
    symbol = symbol.split("@@", 1)[0].strip()  # the version of a symbol
    none = path.startswith(_NO_OBJECTS)
    return Frame(None if symbol in ("", UNKNOWN) else symbol, None if none else path, kernel and path != "[vdso]")
