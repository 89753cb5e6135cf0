"""LTTng: a recording session, and a session daemon if none runs.

An existing daemon is used, and perflab's session is removed from it whatever happens to perflab (a small program under
perflab-guard does this). Otherwise one is started under perflab-guard and ends with the recording. There can be only
one daemon of root: recordings of root that need their own wait for each other. A recording within another one (`perflab
trace record -- perflab run ... --observer tracing`) uses that one's daemon.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import grp
import json
import os
import re
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any, TextIO

from perflab import programs
from perflab.condition import Companion, Start
from perflab.errors import BadInput, Interrupted, PerflabError, Unavailable, one_line
from perflab.processes import ancestors, last_words
from perflab.waiting import Wait

INSTALL = "apt-get install lttng-tools"
COMMAND_LIMIT_S = 120.0  # a command that stops a session waits for the last data
START_LIMIT_S = 60.0
LOCK_LIMIT_S = 600.0
LOCK = "perflab-lttng.lock"
# How long a traced process waits at its start for the daemon. The daemon answers at once, except on a busy machine.
REGISTER_LIMIT_MS = 60_000
SESSION_PREFIX = "perflab-"
CHANNEL = "perflab"
RECORD = "session.json"  # beside the traces, while they are being recorded
KERNEL_MODULE = "lttng-tracer"
KERNEL_CONTEXTS = ("pid", "tid")
KERNEL_EVENTS = (
    *("sched_switch", "sched_waking", "sched_wakeup", "sched_wakeup_new", "sched_migrate_task"),
    *("sched_process_fork", "sched_process_exec", "sched_process_exit"),
)
KERNEL_BUFFERS = (1 << 20, 8)
GROUP = "tracing"
SHARED_MEMORY = "/dev/shm"
ROS2, PERFLAB = "ros2:*", "perflab:*"

# Destroys the session $0 when it is asked to end, by perflab or perflab-guard.
_KEEPER = """
trap 'lttng --no-sessiond destroy --no-wait "$0"; exit 0' TERM
while :; do sleep 60 & wait; done
"""
# Runs the daemon, whose folder is $0, and removes the folder when the daemon has ended, by perflab or perflab-guard.
_DAEMON = """
LTTNG_HOME=$0 "$@" & daemon=$!
trap 'kill "$daemon"' TERM
wait "$daemon"; status=$?
[ "$status" -le 128 ] || wait "$daemon"
rm -rf "$0"
exit "$status"
"""
# "PERROR - ...: Error in write mmap (ret -28 != write_len 425984): No space left on device (in lttng_consumer_...)"
_WRITE_ERROR = re.compile(
    r"^PERROR .*(?:[Ww]rite|splice|[Cc]reat|[Oo]pen).*: ([^:]+?) \(in lttng_consumer_", re.MULTILINE
)
_SPACE = "{https://lttng.org/xml/ns/lttng-mi}"


@dataclass(frozen=True)
class UserSpaceSettings:
    """A user-space channel. With `snapshot` its buffers are overwritten, and written once, at the end."""

    events: tuple[str, ...] = (ROS2, PERFLAB)
    contexts: tuple[str, ...] = ("vpid", "vtid")
    buffer_bytes: int = 8 << 20  # per CPU
    sub_buffers: int = 8
    snapshot: bool = False

    @property
    def sub_buffer_bytes(self) -> int:
        """A power of two, as LTTng requires."""
        size: int = max(self.buffer_bytes // self.sub_buffers, 4096)
        return 1 << (size - 1).bit_length()

    def memory_bytes(self, cpus: int) -> int:
        """The minimum size of one user's buffers. A consumer has one further sub-buffer for each CPU, to read."""
        return (self.sub_buffers + 1) * self.sub_buffer_bytes * cpus


def check() -> None:
    """Raises Unavailable if LTTng's programs are not installed."""
    for program in ("lttng", "lttng-sessiond"):
        programs.find(program, INSTALL)


def check_contexts(names: Sequence[str]) -> None:
    """Raises BadInput for an unknown context; those of applications ($app.x:y) cannot be checked."""
    known = _lttng(("add-context", "--list"), {}).split()
    for name in names:
        if name not in known and not name.startswith(("$app.", "perf:")):
            raise BadInput(f"LTTng has no context {name!r}; `lttng add-context --list` names those that it has")


def has_kernel_modules() -> bool:
    """Whether this kernel can load LTTng's tracer."""
    if Path("/sys/module/lttng_tracer").is_dir():
        return True
    folder = Path("/lib/modules") / os.uname().release
    return any(folder.rglob(f"{KERNEL_MODULE}.ko*"))


def may_trace_kernel() -> bool:
    """Whether this user may: root, and members of the group."""
    if os.geteuid() == 0:
        return True
    with contextlib.suppress(KeyError):
        return grp.getgrnam(GROUP).gr_gid in os.getgroups()
    return False


def free_shared_memory() -> int | None:
    """Free bytes for user-space buffers; None if unreadable."""
    try:
        status = os.statvfs(SHARED_MEMORY)
    except OSError:
        return None
    return status.f_bavail * status.f_frsize


def version() -> str | None:
    """Version of the installed lttng-tools."""
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        run = programs.ask(["lttng", "--version"], limit_s=20)
        words = run.stdout.rsplit(")", 1)[-1].split()
        return words[0] if words else None
    return None


@dataclass(eq=False)
class Session:
    """One session; its output goes to `directory`/ust and `directory`/kernel."""

    directory: Path
    user_space: UserSpaceSettings | None
    _: KW_ONLY
    kernel: bool
    start: Start
    name: str = field(default_factory=lambda: f"{SESSION_PREFIX}{os.getpid()}-{secrets.token_hex(4)}")
    _daemon: _Daemon = field(init=False)
    _keeper: Companion | None = None
    _created: bool = False
    _created_once: bool = False
    _told: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        self.directory = self.directory.absolute()
        self._daemon = _Daemon(self.start, kernel=self.kernel)

    @property
    def environment(self) -> dict[str, str]:
        """For the recorded processes."""
        return {**self._daemon.variables, "LTTNG_UST_REGISTER_TIMEOUT": str(REGISTER_LIMIT_MS)}

    def begin(self) -> None:
        """Raises Unavailable if no daemon is available, PerflabError if LTTng rejects something."""
        check()
        self._daemon.begin()
        self._record()
        if not self._daemon.own:
            # It will not end with perflab; so the session must.
            self._keeper = self.start("lttng_session", ["sh", "-c", _KEEPER, self.name])
        user_space = self.user_space
        snapshot = user_space is not None and user_space.snapshot
        where = ["--snapshot"] if snapshot else [f"--output={self.directory}"]
        self._run("create", self.name, *where)
        self._created = self._created_once = True
        if user_space is not None:
            sizes = user_space.sub_buffer_bytes, user_space.sub_buffers
            self._add("userspace", user_space.events, user_space.contexts, sizes, overwrite=snapshot)
        if self.kernel:
            self._add("kernel", KERNEL_EVENTS, KERNEL_CONTEXTS, KERNEL_BUFFERS, overwrite=snapshot)
        self._run("start", self.name)

    def end(self) -> dict[str, Any]:
        """Stops and destroys the session, and returns what of "user_space" and "scheduler" it recorded and lost.
        Idempotent. Raises PerflabError if LTTng rejects something or could not write the whole trace; everything has
        ended then.
        """
        if self._told is not None:
            return self._told
        try:
            self._told = self._end()
        except Interrupted:
            raise
        except PerflabError as error:
            raise PerflabError(self._unwritten() or str(error)) from error
        if (reason := self._unwritten()) is not None:
            raise PerflabError(reason)
        return self._told

    def _unwritten(self) -> str | None:
        """Why a part of the trace could not be written. LTTng does not report it: its daemon continues, and exits with
        status 0."""
        said = self._daemon.write_error()
        with contextlib.suppress(OSError):
            if said is None and self._created_once and os.statvfs(self.directory).f_bavail == 0:
                said = os.strerror(errno.ENOSPC)
        return None if said is None else f"LTTng could not write the whole trace: {said}"

    def _end(self) -> dict[str, Any]:
        losses: dict[str, tuple[int, int]] = {}
        try:
            if self._created:
                self._run("stop", self.name)
                losses = self._losses()
                if self.user_space is not None and self.user_space.snapshot:
                    self._run("snapshot", "record", f"--session={self.name}", str(self.directory))
        finally:
            with contextlib.ExitStack() as stack:
                stack.callback(self._daemon.end)
                if self._keeper is not None:
                    stack.callback(self._keeper.stop)
                stack.callback(self._record_file.unlink, missing_ok=True)
                if self._created:
                    self._run("destroy", self.name)
                    self._created = False

        # What is not known is None.
        def lost(domain: str) -> dict[str, Any]:
            discarded, packets = losses.get(domain, (None, None))
            return {"discarded_events": discarded, "lost_packets": packets, "lttng_version": version()}

        told: dict[str, Any] = {}
        if (settings := self.user_space) is not None:
            told["user_space"] = {
                "tracer": "lttng",
                "mode": "snapshot" if settings.snapshot else "discard",
                "events": list(settings.events),
                "contexts": list(settings.contexts),
                "sub_buffer_bytes": settings.sub_buffer_bytes,
                "sub_buffers": settings.sub_buffers,
                "daemon": "own" if self._daemon.own else "running",
                **lost("UST"),
            }
        if self.kernel:
            kernel = lost("KERNEL")
            told["scheduler"] = {
                "tracer": "lttng", "filter": None, "events": None, "lost": kernel["discarded_events"], **kernel
            }  # fmt: skip
        return told

    @property
    def _record_file(self) -> Path:
        return self.directory / RECORD

    def _record(self) -> None:
        """What remains of a perflab that is killed together with its guards; `perflab clean` reads it."""
        record: dict[str, Any] = {"session": self.name, "home": None}
        if (home := self._daemon.home) is not None:
            status = home.lstat()
            record["home"] = {"path": str(home), "st_dev": status.st_dev, "st_ino": status.st_ino}
        self._record_file.write_text(json.dumps(record) + "\n", encoding="utf-8")

    def _add(
        self, domain: str, events: Sequence[str], contexts: Sequence[str], sizes: tuple[int, int], *, overwrite: bool
    ) -> None:
        """A channel of a domain, userspace or kernel; `sizes` are the size in bytes and the number of its
        sub-buffers."""
        place = [f"--{domain}", f"--session={self.name}"]
        mode = ["--overwrite" if overwrite else "--discard"]
        buffers = [f"--subbuf-size={sizes[0]}", f"--num-subbuf={sizes[1]}"]
        self._run("enable-channel", *place, *buffers, *mode, CHANNEL)
        place.append(f"--channel={CHANNEL}")
        self._run("enable-event", *place, ",".join(events))
        if contexts:
            self._run("add-context", *place, *(f"--type={name}" for name in contexts))

    def _losses(self) -> dict[str, tuple[int, int]]:
        """Discarded events and lost packets by domain name."""
        from xml.etree import ElementTree

        document = ElementTree.fromstring(self._run("--mi=xml", "list", self.name))
        found = {}
        for domain in document.iter(f"{_SPACE}domain"):
            name = domain.findtext(f"{_SPACE}type") or ""
            sums = [
                sum(int(element.text or 0) for element in domain.iter(f"{_SPACE}{key}"))
                for key in ("discarded_events", "lost_packets")
            ]
            found[name] = (sums[0], sums[1])
        return found

    def _run(self, *arguments: str) -> str:
        return _lttng(arguments, self._daemon.variables)


def exists(session: str) -> bool:
    """Whether the running daemon, if any, has a session of that name."""
    return _is_done(("list", session), {})


def destroy(session: str) -> None:
    """Raises PerflabError on an error."""
    _lttng(("destroy", session), {})


@dataclass
class _Daemon:
    """The running session daemon, or a new one of perflab's own."""

    start: Start
    kernel: bool
    variables: dict[str, str] = field(default_factory=dict)  # environment by which it is found
    own: bool = False
    _companion: Companion | None = None
    home: Path | None = None  # of perflab's own daemon
    _lock: TextIO | None = None
    _log: Path | None = None  # of perflab's own daemon; it outlives the daemon

    def begin(self) -> None:
        if os.geteuid() == 0:
            # A recording with its own daemon holds the lock; the daemon will end with it.
            self._lock = locked(fcntl.LOCK_SH)
        if answers({}):
            return
        if os.geteuid() == 0:
            self._unlock()
            self._lock = locked(fcntl.LOCK_EX)
            if answers({}):  # another process started one meanwhile
                return
            if self._lock is None:
                raise Unavailable(
                    "the outer recording has no LTTng session daemon that answers; end it, and record again"
                )
        # Socket paths must be short; files of other users there are ignored.
        self.home = Path(tempfile.mkdtemp(prefix="perflab-lttng-", dir="/tmp"))
        self.variables = {"LTTNG_HOME": str(self.home)}
        self.own = True
        try:
            self._launch()
        except BaseException:
            self.end()
            raise

    def _launch(self) -> None:
        options = [] if self.kernel else ["--no-kernel"]
        words = ["sh", "-c", _DAEMON, str(self.home), "lttng-sessiond", *options]
        self._companion = self.start("lttng_sessiond", words)
        self._log = self._companion.log
        wait = Wait("LTTng's session daemon to answer", START_LIMIT_S)
        while not answers(self.variables):
            self._companion.receive(0.05)
            wait.look()
            if self._companion.status is not None or wait.is_over:
                raise Unavailable(f"no LTTng session daemon can be started{last_words(self._companion.log)}")

    def write_error(self) -> str | None:
        """What perflab's own daemon could not write of a trace, from its log; None: everything could be written, or it
        is unknown."""
        if self._log is None:
            return None
        with contextlib.suppress(OSError):
            if (match := _WRITE_ERROR.search(self._log.read_text(errors="replace"))) is not None:
                return match[1]
        return None

    def end(self) -> None:
        """Idempotent."""
        try:
            if self._companion is not None:
                self._companion.stop(10.0)
        finally:
            self._companion = None
            if self.home is not None:
                shutil.rmtree(self.home, ignore_errors=True)
                self.home = None
            self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def locked(kind: int) -> TextIO | None:
    """root's lock; `kind` is fcntl's. Waits for recordings that have their own daemon.

    None if it is held by an outer recording: that one's daemon lives longer than this recording.
    """
    path = Path(tempfile.gettempdir()) / LOCK
    try:
        # In a folder writable by everybody, nobody must be able to plant a link.
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Unavailable(f"cannot open root's LTTng lock {path}: {error.strerror}; remove it") from error
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(os.fdopen(handle, "r+", encoding="utf-8"))
        wait = Wait(lambda: f"root's LTTng lock {path}, which {_holders_words(path)} holds", LOCK_LIMIT_S)
        while not wait.is_over:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(file, kind | fcntl.LOCK_NB)
                stack.pop_all()
                return file
            if set(lock_holders(path)) & ({*ancestors()} - {os.getpid()}):
                return None
            wait.pause()
    raise Unavailable(
        f"another recording has had its own LTTng session daemon for {LOCK_LIMIT_S:.0f} s, and root can have only "
        "one; `lttng-sessiond --daemonize` starts one that all recordings share"
    )


def lock_holders(path: Path, locks: Path = Path("/proc/locks")) -> list[int]:
    """The processes that hold flock's lock on a file, from the kernel's list; none if unreadable."""
    try:
        status = path.stat()
        fields = [line.split() for line in locks.read_text(encoding="ascii", errors="replace").splitlines()]
    except OSError:
        return []
    # "1: FLOCK ADVISORY WRITE 1234 fe:00:5678 0 EOF"; a waiting process has "->" as the second word. On some file
    # systems (overlayfs) the device differs from that of stat(), so the inode numbers are not enough.
    pids = [int(f[4]) for f in fields if len(f) > 5 and f[1] == "FLOCK" and f[5].endswith(f":{status.st_ino}")]
    return [pid for pid in pids if _has_open(pid, status)]


def _has_open(pid: int, status: os.stat_result) -> bool:
    with contextlib.suppress(OSError):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                if os.path.samestat(link.stat(), status):
                    return True
    return False


def _holders_words(path: Path) -> str:
    holders = lock_holders(path)
    if not holders:
        return "another recording"
    words = []
    for pid in holders:
        with contextlib.suppress(OSError):
            line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            words.append(f"process {pid} (`{line}`)")
    return " and ".join(words) or "another recording"


def answers(variables: dict[str, str]) -> bool:
    """Whether a session daemon answers, of those found with these environment variables."""
    return _is_done(("list",), variables)


def _is_done(arguments: Sequence[str], variables: dict[str, str]) -> bool:
    try:
        _lttng(arguments, variables)
    except Interrupted:
        raise
    except PerflabError:
        return False
    return True


def _lttng(arguments: Sequence[str], variables: dict[str, str]) -> str:
    """Raises PerflabError with its error message."""
    command = ["lttng", "--no-sessiond", *arguments]
    try:
        run = programs.ask(command, limit_s=COMMAND_LIMIT_S, environment=variables)
    except subprocess.TimeoutExpired as error:
        raise PerflabError(f"`{' '.join(command)}` did not end within {COMMAND_LIMIT_S:.0f} s") from error
    except OSError as error:
        raise Unavailable(f"lttng cannot be started ({error.strerror}); install it with: {INSTALL}") from error
    if run.returncode != 0:
        complaint = one_line(run.stderr) or one_line(run.stdout) or f"status {run.returncode}"
        raise PerflabError(f"`{' '.join(command)}`: {complaint}")
    return run.stdout
