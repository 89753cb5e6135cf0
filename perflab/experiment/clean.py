"""Leftovers of a killed perflab, found and removed by the records of its runs, never by name.

A process is the recorded one if its id, its start in ticks and the boot match the record; it and its descendants are
ended through pidfds, so that a reused process id is never signalled. A run whose perflab is alive, or was started where
it is not visible from here, is not touched.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import shutil
import signal
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perflab import models
from perflab.condition import kernel_settings, temporary
from perflab.errors import BadInput, PerflabError
from perflab.experiment import shared_memory
from perflab.experiment.companion import left_behind
from perflab.formats.json_file import read_json
from perflab.host import Host
from perflab.kernel import Files
from perflab.middleware import kinds_in
from perflab.processes import LOOK_INTERVAL_S, Process, ancestors, kill_all, send, with_descendants
from perflab.results.files import Manifest, TrialCompanion, TrialFile
from perflab.results.run import TABLES
from perflab.runs.controller import GONE, controller_state
from perflab.runs.rundir import RESERVE, TRIALS, RunDirectory, TrialDirectory
from perflab.tracer import lttng
from perflab.waiting import Wait

PROCESS, SHARED_MEMORY, TEMPORARY, FILE, TRIAL_LEFT = "process", "shared_memory", "temporary", "file", "trial"
SESSION = "session"  # of LTTng
SETTING = "setting"  # of the kernel
VERBS = {PROCESS: ("end", "ended"), SESSION: ("destroy", "destroyed"), SETTING: ("set back", "set back")}
OTHERWISE = "remove", "removed"

TERM_WAIT_S = 2.0


@dataclass(frozen=True)
class Leftover:
    """One leftover of a run; `what` names it for people."""

    kind: str
    run: Path | None  # None: for a setting, whose run may be anywhere
    what: str
    trial: Path | None
    remove: Callable[[], str] = field(repr=False)
    """Removes only what was found, if it is still the same; returns further remarks. Raises OSError,
    PerflabError, _Not."""


@dataclass(frozen=True)
class Removal:
    """The result for a leftover: `problem` is None if it is gone; `text` is one line either way."""

    leftover: Leftover
    text: str
    problem: str | None = None

    def document(self) -> dict[str, Any]:
        left = self.leftover
        return {
            "kind": left.kind,
            "run": None if left.run is None else str(left.run),
            "trial": None if left.trial is None else left.trial.name,
            "what": left.what,
            "text": self.text,
            "problem": self.problem,
        }


def find(runs: Iterable[Path], host: Host) -> list[Leftover]:
    """The leftovers of these runs, in the order in which they must be removed. Raises BadInput if a run is damaged."""
    found: list[Leftover] = []
    for path in runs:
        run = RunDirectory(path, created=False)
        manifest = run.read_manifest()
        try:
            if controller_state(manifest, host) == GONE:
                found += _left_in(run, manifest, host)
        except OSError as error:
            raise BadInput(f"cannot read {error.filename or path}: {error.strerror}") from error
    return found


def find_settings(runs: Iterable[Path] | None) -> list[Leftover]:
    """Kernel settings that no process holds any more and that are not restored: of trials of these runs, or all."""
    roots = None if runs is None else [run.resolve() for run in runs]
    found: list[Leftover] = []
    for record in kernel_settings.abandoned():
        trial = Path(record.trial)
        if roots is None or any(trial.resolve().is_relative_to(root) for root in roots):
            what = f"{record.name} to {record.before} (was set to {record.asked} for {trial})"
            found.append(Leftover(SETTING, None, what, trial, functools.partial(_set_back, record)))
    return found


def remove(leftovers: Iterable[Leftover], host: Host) -> list[Removal]:
    """Removes the leftovers that `find` found. A trial whose processes could not be ended keeps its other leftovers."""
    done: list[Removal] = []
    stuck: set[Path | None] = set()
    states: dict[Path, str] = {}
    for left in leftovers:
        # The run may have been resumed between finding and removing.
        if left.run is not None and left.run not in states:
            states[left.run] = controller_state(RunDirectory(left.run, created=False).read_manifest(), host)
        if left.run is not None and states[left.run] != GONE:
            removal = Removal(left, f"left alone: {left.what}", "the run is in progress")
        elif left.trial is not None and left.trial in stuck:
            removal = Removal(left, f"left alone: {left.what}", "a part of its trial could not be removed")
        else:
            removal = _removed(left)
        if removal.problem is not None:
            stuck.add(left.trial)
        done.append(removal)
    return done


# -- finding ---------------------------------------------------------------------------------------------------------


def _left_in(run: RunDirectory, manifest: Manifest, host: Host) -> Iterator[Leftover]:
    here = host.boot_id()
    run_boot = None if manifest.controller is None else manifest.controller.boot_id
    for trial in run.trials():
        file: TrialFile | None = None  # nothing in a damaged one can be identified
        with contextlib.suppress(BadInput):
            file = trial.read()
        # A resumed run has trials from more than one boot.
        this_boot = here is not None and here == ((file and file.boot_id) or run_boot)

        def left(kind: str, what: str, remove: Callable[[str], str], trial: TrialDirectory = trial) -> Leftover:
            named = f"{what} of trial {trial.path.name}"
            return Leftover(kind, run.path, named, trial.path, functools.partial(remove, named))

        if file is not None and this_boot:
            yield from _running(file, left)
            if not file.finished:
                yield from _of_daemons(run, trial, file)
        yield from _made(run, trial, left, this_boot)
        if file is not None and not file.finished:
            what = f"trial {trial.path.name} of {run.path}, which was running"
            yield Leftover(TRIAL_LEFT, run.path, what, trial.path, functools.partial(_mark_trial, trial, file))
        written = [trial.trial_json, *(trial.path / f"{table}.parquet" for table in (*TABLES, "cost"))]
        written += [trial.config(name) for name in (file.processes if file else ())]
        yield from _unfinished(run, trial.path, written)
    yield from _unfinished(run, None, [run.manifest, run.summary])
    yield from _file(run, None, run.path / RESERVE, "reserved disk space")


Left = Callable[[str, str, Callable[[str], str]], Leftover]


def _running(file: TrialFile, left: Left) -> Iterator[Leftover]:
    """Processes, and their files in memory."""

    def of_process(name: str, process: Process) -> Leftover:
        return left(PROCESS, f"process {name} (pid {process.pid})", functools.partial(end_process, process))

    guarded = list(file.companions)  # a command runs under a guard, like companions
    for name, recorded in file.processes.items():
        if recorded.mark is not None:
            guarded.append(TrialCompanion(name=name, **models.shared(TrialCompanion, recorded)))
        elif recorded.pid is not None and recorded.start_ticks is not None:
            process = Process(recorded.pid, recorded.start_ticks)
            if process.alive:
                yield of_process(name, process)
    for companion in guarded:
        # Looking for a mark means reading the environment of every process: only if leftovers are possible.
        living = {p.pid: p for p in left_behind(companion, by_mark=not file.finished)}
        # Of a tree, only the topmost.
        yield from (of_process(companion.name, p) for p in living.values() if p.parent not in living)
    if file.finished:
        return  # other processes may use the names by now
    for name in (name for process in file.processes.values() for name in process.shared_memory or ()):
        with contextlib.suppress(OSError, ValueError):
            if shared_memory.is_ours(name):
                yield left(SHARED_MEMORY, f"shared memory {name}", functools.partial(_remove_shared_memory, name))


def _of_daemons(run: RunDirectory, trial: TrialDirectory, file: TrialFile) -> Iterator[Leftover]:
    """Files of ended processes that belong to the daemons of a middleware."""
    gone = [p.pid for p in file.processes.values() if p.pid is not None and not Path("/proc", str(p.pid)).exists()]
    for daemon in {kind.daemon for kind in kinds_in(file.middleware.name) if kind.daemon is not None}:
        for path in daemon.left_over(gone):
            yield from _file(run, trial.path, path, f"file of {daemon.name}")


def _made(run: RunDirectory, trial: TrialDirectory, left: Left, this_boot: bool) -> Iterator[Leftover]:
    """Sessions of LTTng and folders created by conditions and observers."""
    folders = []
    for _, record in _records(trial, lttng.RECORD):
        # In a daemon that existed before the run, and whose keeper was killed as well.
        session = str(record.get("session"))
        if this_boot and session.startswith(lttng.SESSION_PREFIX) and lttng.exists(session):
            yield left(SESSION, f"LTTng session {session}", functools.partial(_remove_session, session))
        if isinstance(home := record.get("home"), dict):
            folders.append((str(home.get("path")), (home.get("st_dev"), home.get("st_ino"))))
    for path, record in _records(trial, temporary.RECORD):
        folders.append((str(path.parent / temporary.FOLDER), (record.get("device"), record.get("inode"))))
    for name, recorded in folders:
        if (identity := _temporary(run, name, recorded, this_boot)) is not None:
            folder = run.path.absolute() / name
            yield left(TEMPORARY, f"temporary folder {folder}", functools.partial(_remove_temporary, folder, identity))


def _records(trial: TrialDirectory, name: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Records of conditions or observers, each in its own folder."""
    for path in sorted(trial.path.absolute().glob(f"*/{name}")):
        with contextlib.suppress(BadInput):
            yield path, read_json(path)


def _unfinished(run: RunDirectory, trial: Path | None, written: Iterable[Path]) -> Iterator[Leftover]:
    """The temporary names of exactly the files that perflab writes."""
    for path in written:
        yield from _file(run, trial, path.with_name(f".{path.name}.tmp"), "half-written file")


def _file(run: RunDirectory, trial: Path | None, path: Path, kind: str) -> Iterator[Leftover]:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        status = path.lstat()
        if stat.S_ISREG(status.st_mode) or stat.S_ISSOCK(status.st_mode):
            identity = status.st_dev, status.st_ino
            yield Leftover(FILE, run.path, f"{kind} {path}", trial, functools.partial(_remove_file, path, identity))


Inode = tuple[int, int]  # st_dev, st_ino


def _temporary(run: RunDirectory, name: str, recorded: tuple[Any, Any], this_boot: bool) -> Inode | None:
    """The identity of a recorded folder, if it is still the same one: below the run, or elsewhere.

    Elsewhere only from this boot, whose id cannot be guessed: a run from another person must not name arbitrary
    folders.
    """
    if "\0" in name or ".." in Path(name).parts:
        return None
    path = run.path.absolute() / name
    try:
        status = path.lstat()
        root, parent = run.path.resolve(), path.parent.resolve(strict=True)
    except OSError:
        return None
    trials = [trial.path.resolve() for trial in run.trials()]
    own = {root, root / TRIALS, *trials, *(trial / "processes" for trial in trials)}
    identity = status.st_dev, status.st_ino
    known = stat.S_ISDIR(status.st_mode) and recorded == identity and parent / path.name not in own
    return identity if known and (this_boot or parent.is_relative_to(root)) else None


# -- removing --------------------------------------------------------------------------------------------------------


class _Not(Exception):
    """It was not removed: the line, and the problem, None if there is none."""

    def __init__(self, text: str, problem: str | None = None) -> None:
        super().__init__(text)
        self.problem = problem


def _removed(left: Leftover) -> Removal:
    verb, done = VERBS.get(left.kind, OTHERWISE)
    try:
        more = left.remove()
    except _Not as error:
        return Removal(left, str(error), error.problem)
    except FileNotFoundError:
        more = ""
    except (OSError, PerflabError) as error:
        problem = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return Removal(left, f"cannot {verb} {left.what}: {problem}", problem)
    return Removal(left, f"{done} {left.what}{more}")


def end_process(root: Process, what: str) -> str:
    """Ends it, its descendants, and the sessions that they lead, by SIGTERM and then by SIGKILL."""
    known, own = set[Process](), set(ancestors())

    def living() -> list[Process]:
        leaders = {p.pid for p in known if p.session == p.pid and p.alive}
        below = with_descendants(lambda p: p == root or p in known or p.session in leaders)
        found = [process for process in below if process.pid not in own]
        known.update(found)
        return found

    if not root.alive:
        raise _Not(f"{what} had already ended")
    living()
    for process in living():  # including the sessions of those that were found first
        send(process, signal.SIGTERM)
    wait = Wait(f"{len(known)} processes to end", TERM_WAIT_S)
    while living() and not wait.is_over:
        wait.say()
        time.sleep(LOOK_INTERVAL_S)
    if kill_all(living) or Process(*root.identity).alive:
        raise _Not(f"{what} does not end", "it survives SIGKILL")
    return f" and {len(known) - 1} of its descendants" if len(known) > 1 else ""


def _remove_shared_memory(name: str, what: str) -> str:
    removal = shared_memory.remove_left_over([name])
    if removal.problems:
        raise _Not(removal.problems[0], removal.problems[0])
    with contextlib.suppress(FileNotFoundError):
        if not removal.removed and shared_memory.is_ours(name):
            raise _Not(f"left alone: {what}: another process uses it by now")
    return ""


def _set_back(record: kernel_settings.Record) -> str:
    try:
        kernel_settings.give_back(record.name)
    except kernel_settings.Problem as problem:
        raise PerflabError(str(problem)) from problem
    return ""


def _remove_session(name: str, _: str) -> str:
    lttng.destroy(name)
    return ""


def _is_the_same(path: Path, identity: Inode) -> bool:
    status = path.lstat()
    return (status.st_dev, status.st_ino) == identity


def _remove_temporary(path: Path, identity: Inode, _: str) -> str:
    if not _is_the_same(path, identity):
        raise _Not(f"left alone: {path} is another folder by now")
    whole = path.resolve()
    if mounted := next((point for point, _ in Files().mounts() if point.is_relative_to(whole)), None):
        raise OSError(errno.EBUSY, f"{mounted} is a mount point; unmount it first")  # its content is not the run's
    shutil.rmtree(path)
    if (path.parent / temporary.RECORD).is_file():
        temporary.remove(path)  # its parent: a condition created it
    return ""


def _remove_file(path: Path, identity: Inode) -> str:
    if _is_the_same(path, identity):
        path.unlink()
    return ""


def _mark_trial(trial: TrialDirectory, file: TrialFile) -> str:
    trial.write(file.ended)
    raise _Not(f"marked trial {trial.path.name} {file.ended.outcome}: {file.ended.reason}")
