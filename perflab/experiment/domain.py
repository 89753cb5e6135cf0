"""DDS domains that no other run on this machine holds.

A domain is held by an exclusive lock on its own file, in one directory for all users, and by an abstract socket
address: two users may have different temporary directories, yet share the network, and abstract addresses are per
network namespace just as the ports of a domain are. Both vanish with the process that holds them.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from perflab.errors import Unavailable

# Above 101 the ports of a domain (7400 + 250 * domain) reach into Linux' range of ephemeral ports; 0 is everybody's
# default.
DOMAINS = range(1, 101)


def lock_directory() -> Path:
    """The directory of the lock files."""
    return Path(tempfile.gettempdir()) / "perflab-domains"


@contextlib.contextmanager
def hold_this(domain: int) -> Iterator[int]:
    """Holds a domain that the user has chosen. Raises Unavailable if another run has it."""
    directory = lock_directory()
    _prepare(directory)
    path = directory / f"{domain}.lock"
    with contextlib.ExitStack() as stack:
        if not (_lock(path, stack) and _bind(domain, stack)):
            raise Unavailable(
                f"--domain {domain}: another run holds it; wait for it to end (`fuser {path}` shows it), or leave "
                "--domain out"
            )
        yield domain


@contextlib.contextmanager
def hold(after: int | None = None) -> Iterator[int]:
    """Holds a free domain, preferably one above `after`, so that consecutive trials do not reuse one.

    Raises Unavailable if all are taken.
    """
    directory = lock_directory()
    _prepare(directory)
    start = DOMAINS.index(after) + 1 if after is not None else 0
    for domain in (*DOMAINS[start:], *DOMAINS[:start]):
        with contextlib.ExitStack() as stack:
            if _lock(directory / f"{domain}.lock", stack) and _bind(domain, stack):
                yield domain
                return
    raise Unavailable(
        f"all DDS domains {DOMAINS[0]}..{DOMAINS[-1]} are held by other runs; wait for one to end, "
        f"`fuser {directory}/*` shows them"
    )


def _prepare(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o1777, exist_ok=True)
        status = directory.lstat()
        if not stat.S_ISDIR(status.st_mode):
            raise Unavailable(f"{directory} is not a directory; remove it, perflab keeps its domain locks there")
        if status.st_uid == os.getuid() and stat.S_IMODE(status.st_mode) != 0o1777:
            directory.chmod(0o1777)  # mkdir's mode is subject to the umask
    except OSError as error:
        raise Unavailable(
            f"cannot keep domain locks in {directory}: {error.strerror}; name another place with TMPDIR"
        ) from error


def _lock(path: Path, stack: contextlib.ExitStack) -> bool:
    """Whether the lock was free; `stack` releases it."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        try:
            # Without O_CREAT first: fs.protected_regular forbids O_CREAT on another user's file in such a directory.
            descriptor = os.open(path, flags)
        except FileNotFoundError:
            descriptor = os.open(path, flags | os.O_CREAT, 0o644)
    except OSError:
        return False
    stack.callback(os.close, descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _bind(domain: int, stack: contextlib.ExitStack) -> bool:
    holder = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
    try:
        holder.bind(f"\0perflab-domain-{domain}")
    except OSError:
        return False
    return True
