"""Settings of the kernel that are held for a while: set, watched, and given back whoever is killed.

A setting is one of /proc/sys by its name (vm.stat_interval), or a file by its absolute path. Conditions start this file
as a program under perflab-guard (held.py); so it imports the standard library alone:

    python kernel_settings.py RECORDS SETTINGS TRIAL NAME=VALUE... --control-fd N

The program is two processes. The first does nothing but end with the second; the second, the keeper, sets and gives
back. It gives back on SIGTERM, and when the first one is gone: so whichever of perflab, perflab-guard and the program
is killed, somebody gives back. Where all are killed at once, the record of each setting is left (`abandoned`), with
what it was before: `give_back` is for whoever finds it, the next trial or `perflab clean`.

A setting is held by a lock on its record, which vanishes with the keeper. Who finds it locked does not touch it; who
finds a record without a lock gives back first: what a killed run has set is nobody's original.
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
# One place for all perflabs of a machine; the kernel's settings are gone with a reboot, and so is what is in /run.
FOLDER = Path("/run/perflab/settings")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
LOOK_INTERVAL_S = 1.0  # seldom: it is Python beside a measurement
REFUSED, HELD, FAILED = "refused", "held", "failed"  # kinds of errors that the program says


@dataclass(frozen=True)
class Record:
    """What a setting was before somebody set it."""

    name: str
    before: str
    asked: str
    trial: str  # the directory of the trial for which it was set
    boot_id: str
    schema: int = 1


class Problem(Exception):
    """One line; `kind` is one of REFUSED, HELD, FAILED."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


def path_of(name: str, settings: Path | None = None) -> Path:
    """The file of a setting: dots are slashes and slashes dots, as sysctl(8) has it (net.ipv4.conf.eth0/1.mtu)."""
    if name.startswith("/"):
        return Path(name)
    return (settings or SETTINGS) / name.translate(str.maketrans("./", "/."))


def command(name: str, value: str) -> str:
    """What sets it in a shell."""
    return f"echo '{value}' > {name}" if name.startswith("/") else f"sysctl -w {name}='{value}'"


def read(name: str, settings: Path | None = None) -> str:
    """The value of a setting, with single blanks where the kernel has tabs. Raises OSError."""
    return plain(path_of(name, settings).read_text(encoding="utf-8", errors="surrogateescape"))


def plain(text: str) -> str:
    return " ".join(text.split())


def write(name: str, value: str, settings: Path | None = None) -> None:
    """Raises OSError."""
    # One write(): the kernel takes what comes first as the whole value.
    handle = os.open(path_of(name, settings), os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(handle, f"{value}\n".encode(errors="surrogateescape"))
    finally:
        os.close(handle)


# -- records ---------------------------------------------------------------------------------------------------------


def record_path(folder: Path, name: str) -> Path:
    """Settings of the network are of the network namespace, and so is their record."""
    of_namespace = f"@{Path('/proc/self/ns/net').stat().st_ino}" if name.startswith("net.") else ""
    return folder / f"{name.replace('/', '%')}{of_namespace}.json"


@contextlib.contextmanager
def hold(folder: Path, name: str) -> Iterator[int]:
    """Holds a setting: the descriptor of its locked record, which is empty where nobody left one. Raises Problem."""
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
            # Whoever had it may have removed the file between opening and locking it.
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
    # What is written in a record is written to the kernel: nobody else may have put it there.
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise Problem(FAILED, f"{folder} can be written by others; remove it, perflab keeps its records there")


def _read(handle: int) -> Record | None:
    """None where there is none, or a damaged one: it is written whole before anything is set."""
    try:
        return Record(**json.loads(os.pread(handle, 1 << 16, 0)))
    except (ValueError, TypeError):
        return None


def _boot_id() -> str:
    return BOOT_ID.read_text(encoding="ascii").strip()


def abandoned(folder: Path | None = None) -> list[Record]:
    """What was set in this boot and network namespace by keepers that are gone; none where it cannot be read."""
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
    """Gives back what a keeper that is gone had set; the record of it, None where there is none.

    Raises Problem where somebody holds it, or it cannot be given back.
    """
    folder = folder or FOLDER
    if not record_path(folder, name).exists():
        return None
    with hold(folder, name) as handle:
        return _give_back(handle, record_path(folder, name), settings)


def _give_back(handle: int, path: Path, settings: Path | None) -> Record | None:
    """Of a record that is held, which is then gone. One of another boot says nothing of this one."""
    record = _read(handle)
    if record is not None and record.boot_id == _boot_id():
        restore(record, settings)
    path.unlink(missing_ok=True)
    return record


def restore(record: Record, settings: Path | None = None) -> None:
    """Raises Problem where it is not what it was before."""
    by_hand = f"it was {record.before!r} before; `{command(record.name, record.before)}` sets it back"
    try:
        if read(record.name, settings) != record.before:
            write(record.name, record.before, settings)
        now = read(record.name, settings)
    except OSError as error:
        raise Problem(FAILED, f"cannot set {record.name} back: {error.strerror}; {by_hand}") from error
    if now != record.before:
        raise Problem(FAILED, f"{record.name} is {now!r}; {by_hand}")


# -- the keeper ------------------------------------------------------------------------------------------------------


class Keeper:
    """Holds settings until it is told to end, or `parent`, the end of a pipe, is closed."""

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
        """Sets all, or gives back those that it has set; what the kernel then reads."""
        settings: list[dict[str, object]] = []
        for name, value in self._asked.items():
            handle, path = stack.enter_context(hold(self._folder, name)), record_path(self._folder, name)
            if _read(handle) is not None:
                _give_back(handle, path, self._settings)  # its file is then gone, and the lock with it
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
        # One setting may change another, as the kernel keeps dirty_bytes and dirty_ratio.
        seen = {name: read(name, self._settings) for name in self._asked}
        self._say({"type": "ready", "settings": [{**s, "read": seen[str(s["name"])]} for s in settings]})
        return seen

    def _watch(self, seen: dict[str, str]) -> None:
        """Says what is otherwise than it was, until it is time to end."""
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
        """In the opposite order. The exit status; what could not be given back keeps its record."""
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
        with contextlib.suppress(OSError):  # nobody listens any more
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
            os.close(of_parent)  # which the keeper sees
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
