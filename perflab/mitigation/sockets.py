"""The receive buffers of UDP sockets, as reported by the kernel: sock_diag(7), which needs no privileges."""

from __future__ import annotations

import re
import socket
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

from perflab.errors import Unavailable
from perflab.processes import PROC

NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY = 4, 20
NLM_F_REQUEST, NLM_F_DUMP, NLMSG_ERROR, NLMSG_DONE = 1, 0x300, 2, 3
INET_DIAG_SKMEMINFO = 7
SK_MEMINFO_RCVBUF, SK_MEMINFO_SNDBUF = 1, 3
ALL_STATES = 0xFFFFFFFF

_HEADER = struct.Struct("=IHHII")  # nlmsghdr
_REQUEST = struct.Struct("=BBBBI48s")  # inet_diag_req_v2
_MESSAGE = struct.Struct("=BBBB48sIIIII")  # inet_diag_msg; the last one is the inode
_ATTRIBUTE = struct.Struct("=HH")
LIMIT_S = 5.0
_NOT_OF_MIDDLEWARES = ("perflab", "lttng-ust-", "shm-ust-consumer-")


def buffers_of(pids: Iterable[int]) -> dict[int, list[tuple[int, int]]]:
    """Receive and send buffer, in bytes as setsockopt(2) takes them, of each UDP socket of these processes.

    The kernel doubles the requested size for its own bookkeeping. Raises Unavailable if it does not report them.
    """
    by_inode = dict(_udp_sockets())
    return {pid: [by_inode[inode] for inode in _inodes(pid) if inode in by_inode] for pid in pids}


def _inodes(pid: int) -> Iterator[int]:
    """The inodes of a process's open sockets; none for a process that has ended."""
    try:
        entries = list((PROC / str(pid) / "fd").iterdir())
    except OSError:
        return
    for entry in entries:
        try:
            match = re.fullmatch(r"socket:\[(\d+)\]", str(entry.readlink()))
        except OSError:
            continue
        if match is not None:
            yield int(match[1])


def _udp_sockets() -> Iterator[tuple[int, tuple[int, int]]]:
    """By inode, of this network namespace."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as asking:
                asking.settimeout(LIMIT_S)
                request = _REQUEST.pack(family, socket.IPPROTO_UDP, 1 << (INET_DIAG_SKMEMINFO - 1), 0, ALL_STATES, b"")
                flags = NLM_F_REQUEST | NLM_F_DUMP
                asking.send(_HEADER.pack(_HEADER.size + len(request), SOCK_DIAG_BY_FAMILY, flags, 1, 0) + request)
                yield from _answers(asking)
        except OSError as error:
            raise Unavailable(f"the kernel does not report socket buffers: {error}") from error


def _answers(asking: socket.socket) -> Iterator[tuple[int, tuple[int, int]]]:
    while True:
        data = memoryview(asking.recv(1 << 20))
        while len(data) >= _HEADER.size:
            length, kind, *_ = _HEADER.unpack_from(data)
            if kind == NLMSG_DONE:
                return
            if kind == NLMSG_ERROR:
                raise OSError("sock_diag answered with an error")
            if (found := _socket(data[_HEADER.size : length])) is not None:
                yield found
            data = data[(length + 3) & ~3 :]


def _socket(body: memoryview) -> tuple[int, tuple[int, int]] | None:
    inode = _MESSAGE.unpack_from(body)[-1]
    at = _MESSAGE.size
    while at + _ATTRIBUTE.size <= len(body):
        length, kind = _ATTRIBUTE.unpack_from(body, at)
        if kind == INET_DIAG_SKMEMINFO:
            numbers = struct.unpack_from(f"={(length - _ATTRIBUTE.size) // 4}I", body, at + _ATTRIBUTE.size)
            return inode, (numbers[SK_MEMINFO_RCVBUF] // 2, numbers[SK_MEMINFO_SNDBUF] // 2)
        at += max(_ATTRIBUTE.size, (length + 3) & ~3)
    return None


def shared_files_of(pid: int) -> set[str]:
    """The shared-memory files that a process has mapped, except perflab's own and LTTng's, which come with a trace;
    none for a process that has ended."""
    try:
        text = (PROC / str(pid) / "maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return set()
    found = {line.split(maxsplit=5)[5] for line in text.splitlines() if "/dev/shm/" in line}
    return {path for path in found if not Path(path).name.startswith(_NOT_OF_MIDDLEWARES)}
