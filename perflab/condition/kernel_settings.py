"""Kernel settings that are held for a while: set, watched, and restored whichever process is killed.

A setting is a name in /proc/sys (vm.stat_interval), or the absolute path of a file. Conditions run this file as a
program under perflab-guard (held.py); so it imports only the standard library:

    python kernel_settings.py RECORDS SETTINGS TRIAL NAME=VALUE... --control-fd N

The program is two processes. The first only waits and ends with the second; the second, the keeper, sets and restores.
It restores on SIGTERM, and when the first one is gone: so whichever of perflab, perflab-guard and the program is
killed, the settings are restored. If all are killed at once, the record of each setting remains (`abandoned`), with its
former value: the next trial or `perflab clean` finds it and calls `give_back`.

A lock on its record holds a setting; the lock vanishes with the keeper. A process that finds it locked leaves it alone;
one that finds a record without a lock restores it first: a value set by a killed run is not an original.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
import socket
import stat
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

SETTINGS = Path("/proc/sys")
# One place for all perflab processes of a machine; a reboot resets the kernel's settings and clears /run.
FOLDER = Path("/run/perflab/settings")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
LOOK_INTERVAL_S = 1.0  # rarely: this is Python beside a measurement
REFUSED, HELD, FAILED = "refused", "held", "failed"  # kinds of errors that the program reports


@dataclass(frozen=True)
class Record:
    """The value of a setting before it was set."""

    name: str
    before: str
    asked: str
    trial: str  # the directory of the trial that set it
    boot_id: str
    schema: int = 1


class Problem(Exception):
    """One line; `kind` is one of REFUSED, HELD, FAILED."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


def path_of(name: str, settings: Path | None = None) -> Path:
    """The file of a setting: dots become slashes and slashes dots, as in sysctl(8) (net.ipv4.conf.eth0/1.mtu)."""
    if name.startswith("/"):
        return Path(name)
    return (settings or SETTINGS) / name.translate(str.maketrans("./", "/."))


def command(name: str, value: str) -> str:
    """The shell command that sets it."""
    return f"echo '{value}' > {name}" if name.startswith("/") else f"sysctl -w {name}='{value}'"


def read(name: str, settings: Path | None = None) -> str:
    """The value of a setting, with single spaces for the kernel's tabs. Raises OSError."""
    return plain(path_of(name, settings).read_text(encoding="utf-8", errors="surrogateescape"))


def plain(text: str) -> str:
    return " ".join(text.split())


def write(name: str, value: str, settings: Path | None = None) -> None:
    """Raises OSError."""
    # One write(): the kernel takes the first one as the whole value.
    handle = os.open(path_of(name, settings), os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(handle, f"{value}\n".encode(errors="surrogateescape"))
    finally:
        os.close(handle)


# -- records ---------------------------------------------------------------------------------------------------------


def record_path(folder: Path, name: str) -> Path:
    """Network settings belong to a network namespace, and so does their record."""
    of_namespace = f"@{Path('/proc/self/ns/net').stat().st_ino}" if name.startswith("net.") else ""
    return folder / f"{name.replace('/', '%')}{of_namespace}.json"


@contextlib.contextmanager
def hold(folder: Path, name: str) -> Iterator[int]:
    """Holds a setting: returns the descriptor of its locked record, which is empty unless a killed keeper left one.
    Raises Problem."""
    path = record_path(folder, name)
    _prepare(folder)
    while True:
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise Problem(FAILED, f"cannot write the record {path}: {error.strerror}") from error
        with contextlib.ExitStack() as stack:
            stack.callback(os.close, handle)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Problem(HELD, f"another trial has set {name} ({_trial_in(handle) or path})") from None
            # The previous holder may have removed the file between opening and locking it.
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), path.lstat()):
                    yield handle
                    return


def _trial_in(handle: int) -> str | None:
    record = _read(handle)
    return None if record is None else record.trial


def _prepare(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.lstat()
    except OSError as error:
        raise Problem(FAILED, f"cannot keep records in {folder}: {error.strerror}") from error
    # A record's value is written to the kernel: only root may have created it.
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise Problem(FAILED, f"{folder} is writable by others; remove it, perflab keeps its records there")


def _read(handle: int) -> Record | None:
    """None if there is none, or a damaged one: a record is written completely before anything is set."""
    try:
        return Record(**json.loads(os.pread(handle, 1 << 16, 0)))
    except (ValueError, TypeError):
        return None


def _boot_id() -> str:
    return BOOT_ID.read_text(encoding="ascii").strip()


def abandoned(folder: Path | None = None) -> list[Record]:
    """What dead keepers have set in this boot and network namespace; none if unreadable."""
    found: list[Record] = []
    folder = folder or FOLDER
    with contextlib.suppress(OSError):
        for path in sorted(folder.glob("*.json")):
            with contextlib.suppress(OSError, ValueError, TypeError):
                record = Record(**json.loads(path.read_text(encoding="utf-8")))
                if path != record_path(folder, record.name):
                    continue
                with contextlib.suppress(Problem), hold(folder, record.name) as handle:
                    found += [record] if _read(handle) == record and record.boot_id == _boot_id() else []
    return found


def give_back(name: str, folder: Path | None = None, settings: Path | None = None) -> Record | None:
    """Restores what a dead keeper had set; returns its record, or None if there is none.

    Raises Problem if another process holds it, or it cannot be restored.
    """
    folder = folder or FOLDER
    if not record_path(folder, name).exists():
        return None
    with hold(folder, name) as handle:
        return _give_back(handle, record_path(folder, name), settings)


def _give_back(handle: int, path: Path, settings: Path | None) -> Record | None:
    """Restores a held record, which is then removed. A record from another boot is irrelevant."""
    record = _read(handle)
    if record is not None and record.boot_id == _boot_id():
        restore(record, settings)
    path.unlink(missing_ok=True)
    return record


def restore(record: Record, settings: Path | None = None) -> None:
    """Raises Problem if the value was not restored."""
    by_hand = f"it was {record.before!r} before; `{command(record.name, record.before)}` restores it"
    try:
        if read(record.name, settings) != record.before:
            write(record.name, record.before, settings)
        now = read(record.name, settings)
    except OSError as error:
        raise Problem(FAILED, f"cannot restore {record.name}: {error.strerror}; {by_hand}") from error
    if now != record.before:
        raise Problem(FAILED, f"{record.name} is {now!r}; {by_hand}")


# -- the keeper ------------------------------------------------------------------------------------------------------


class Keeper:
    """Holds settings until a signal to end, or until `parent`, the end of a pipe, is closed."""

    def __init__(
        self,
        folder: Path,
        settings: Path,
        trial: str,
        asked: Mapping[str, str],
        control: socket.socket,
        parent: int,
    ) -> None:
        self._folder = folder
        self._settings = settings
        self._trial = trial
        self._asked = asked
        self._control = control
        self._parent = parent
        self._told = False
        self._held: list[tuple[int, Path]] = []
        self._wake, wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(wake)
        signal.signal(signal.SIGTERM, self._on_signal)

    def _on_signal(self, *_: object) -> None:
        self._told = True

    def run(self) -> int:
        with contextlib.ExitStack() as stack:
            status = 0
            try:
                seen = self._set(stack)
                self._watch(seen)
            except Problem as problem:
                self._say({"type": "error", "kind": problem.kind, "text": str(problem)})
                status = 1
            return self._give_back() or status

    def _set(self, stack: contextlib.ExitStack) -> dict[str, str]:
        """Sets all, or restores those already set; returns what the kernel then reports."""
        settings: list[dict[str, object]] = []
        for name, value in self._asked.items():
            handle, path = stack.enter_context(hold(self._folder, name)), record_path(self._folder, name)
            if _read(handle) is not None:
                _give_back(handle, path, self._settings)  # then its file is gone, and the lock with it
                handle = stack.enter_context(hold(self._folder, name))
            try:
                record = Record(name, read(name, self._settings), value, self._trial, _boot_id())
                os.ftruncate(handle, 0)
                os.pwrite(handle, json.dumps(asdict(record)).encode(), 0)
                os.fsync(handle)
                self._held.append((handle, path))
                write(name, value, self._settings)
                settings.append({"name": name, "before": record.before, "read": read(name, self._settings)})
            except OSError as error:
                raise Problem(REFUSED, f"the kernel refuses {name}={value}: {error.strerror}") from error
        # One setting may change another, as with the kernel's dirty_bytes and dirty_ratio.
        seen = {name: read(name, self._settings) for name in self._asked}
        self._say({"type": "ready", "settings": [{**s, "read": seen[str(s["name"])]} for s in settings]})
        return seen

    def _watch(self, seen: dict[str, str]) -> None:
        """Reports changes until it is time to end."""
        while not self._told:
            ready, _, _ = select.select([self._parent, self._wake], [], [], LOOK_INTERVAL_S)
            if self._parent in ready:
                return
            for name, before in seen.items():
                try:
                    now = read(name, self._settings)
                except OSError as error:
                    now = f"unreadable: {error.strerror}"
                if now != before:
                    seen[name] = now
                    self._say({"type": "changed", "name": name, "value": now, "at_ns": time.monotonic_ns()})

    def _give_back(self) -> int:
        """In reverse order. Returns the exit status; settings that could not be restored keep their records."""
        status = 0
        for handle, path in reversed(self._held):
            try:
                _give_back(handle, path, self._settings)
            except Problem as problem:
                self._say({"type": "error", "kind": problem.kind, "text": str(problem)})
                sys.stderr.write(f"{problem}\n")  # to its log
                status = 1
        return status

    def _say(self, line: Mapping[str, object]) -> None:
        with contextlib.suppress(OSError):  # the reader has gone
            self._control.sendall(json.dumps(line).encode() + b"\n")


def main(arguments: Sequence[str]) -> int:
    folder, settings, trial, *pairs, option, number = arguments
    assert option == "--control-fd", arguments
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    of_keeper, of_parent = os.pipe2(os.O_CLOEXEC)
    ended = False

    def end(*_: object) -> None:
        nonlocal ended
        if not ended:
            os.close(of_parent)  # which the keeper notices
        ended = True

    signal.signal(signal.SIGTERM, end)
    if (keeper := os.fork()) == 0:
        os.close(of_parent)
        control = socket.socket(fileno=int(number))
        asked = dict(pair.split("=", 1) for pair in pairs)
        status = Keeper(Path(folder), Path(settings), trial, asked, control, of_keeper).run()
        os._exit(status)
    os.close(int(number))
    _, status = os.waitpid(keeper, 0)
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.exit(code if code >= 0 else 128 - code)
