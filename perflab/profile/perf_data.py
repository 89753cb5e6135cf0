"""What a perf.data file says beside its samples: what was lost, where it was throttled, which processes there were.

`perf script` does not tell these. The layout is that of the kernel's tools/perf/Documentation/perf.data-file-format.txt
and of perf_event_open(2); a file that perf could not finish is read as far as it goes.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass, field
from pathlib import Path

from perflab.errors import BadInput

_MAGIC = b"PERFILE2"
_HEADER = struct.Struct("<8sQQQQQQ")  # magic, size, attr size, attrs offset and size, data offset and size
_RECORD = struct.Struct("<IHH")  # type, misc, size with this header
_LOST = struct.Struct("<QQ")
_LOST_SAMPLES = struct.Struct("<Q")
_PROCESS_AND_THREAD = struct.Struct("<II")
_FORK = struct.Struct("<IIII")  # pid, parent's pid, tid, parent's tid

_LOST_TYPE, _COMM, _THROTTLE, _FORK_TYPE, _SAMPLE, _LOST_SAMPLES_TYPE = 2, 3, 5, 7, 9, 13


@dataclass
class PerfData:
    """`names` are those of the processes' main threads, the last one of each; `parents` of processes that began."""

    samples: int = 0
    lost: int = 0  # records that found no room in the buffers, samples and others
    throttled: int = 0  # how often the kernel held the event back for the rest of a tick
    complete: bool = True  # False: perf was ended before it could finish the file
    names: dict[int, str] = field(default_factory=dict)
    parents: dict[int, int] = field(default_factory=dict)


def read(path: Path) -> PerfData:
    """Raises BadInput where it is no perf.data of this byte order."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEADER.size)
            if len(head) < _HEADER.size or not head.startswith(_MAGIC):
                raise BadInput(f"{path} is no perf.data: it does not begin with {_MAGIC.decode()}")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                return _read(content, *_HEADER.unpack(head)[5:])
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error


def _read(content: mmap.mmap, begin: int, size: int) -> PerfData:
    found = PerfData(complete=size > 0)
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
            if pid == tid:
                name = content[body + _PROCESS_AND_THREAD.size : at + length].split(b"\0", 1)[0]
                found.names[pid] = name.decode("utf-8", "replace")
        elif kind == _FORK_TYPE:
            pid, parent, tid, _ = _FORK.unpack_from(content, body)
            if pid == tid and pid != parent:
                found.parents[pid] = parent
                found.names.setdefault(pid, found.names.get(parent, ""))
        at += length
    return found
