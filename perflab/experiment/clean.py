"""What a perflab that was killed left behind, found and removed by what its runs recorded, never by how it is called.

A process is the recorded one when its number, its start in ticks and the boot are the recorded ones; it and its
descendants are ended through pidfds, so that a number that was given to somebody else meanwhile is never hit. A run
whose perflab is alive, or was started where this one cannot see it, is not touched.
"""

from __future__ import annotations

import contextlib
import errno
import shutil
import signal
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perflab.condition import temporary
from perflab.errors import DAMAGE, BadInput, PerflabError
from perflab.experiment import shared_memory
from perflab.experiment.companion import left_behind
from perflab.formats.json_file import read_json, write_json
from perflab.host import Host
from perflab.kernel import Files
from perflab.processes import LOOK_INTERVAL_S, Process, ancestors, kill_all, send, with_descendants
from perflab.results.run import TABLES
from perflab.runs import trial_file
from perflab.runs.controller import GONE, controller_state
from perflab.runs.rundir import MANIFEST, RESERVE, TRIALS, RunDirectory, TrialDirectory
from perflab.tracer import lttng
from perflab.waiting import Wait

Json = dict[str, Any]

PROCESS, SHARED_MEMORY, TEMPORARY, FILE, TRIAL_LEFT = "process", "shared_memory", "temporary", "file", "trial"
SESSION = "session"  # of LTTng

TERM_WAIT_S = 2.0


@dataclass(frozen=True)
class Leftover:
    """One thing that a run left; `what` names it for people. The rest is what it is recognised by."""

    kind: str
    run: Path
    what: str
    trial: Path | None = None
    process: Process | None = None
    path: Path | None = None
    identity: tuple[int, int] | None = None  # st_dev, st_ino
    name: str | None = None


@dataclass(frozen=True)
class Removal:
    """What became of a leftover: `problem` is None where it is gone; `text` is one line either way."""

    leftover: Leftover
    text: str
    problem: str | None = None

    def document(self) -> Json:
        left = self.leftover
        return {
            "kind": left.kind,
            "run": str(left.run),
            "trial": None if left.trial is None else left.trial.name,
            "what": left.what,
            "text": self.text,
            "problem": self.problem,
        }


def find(runs: Iterable[Path], host: Host) -> list[Leftover]:
    """What is left of these runs, in the order in which it must be removed. Raises BadInput where one is damaged."""
    found: list[Leftover] = []
    for path in runs:
        run = RunDirectory(path, created=False)
        manifest = read_json(run.manifest)
        try:
            if controller_state(manifest, host) == GONE:
                found += _left_in(run, manifest, host)
        except DAMAGE as error:
            raise BadInput(f"{run.manifest} is damaged: {type(error).__name__}: {error}") from error
        except OSError as error:
            raise BadInput(f"cannot read {error.filename or path}: {error.strerror}") from error
    return found


def remove(leftovers: Iterable[Leftover], host: Host) -> list[Removal]:
    """Removes what `find` found. A trial whose processes could not be ended keeps the rest of what is its own."""
    done: list[Removal] = []
    stuck: set[Path | None] = set()
    states: dict[Path, str] = {}
    for left in leftovers:
        # Between finding and removing somebody may have resumed the run.
        if left.run not in states:
            states[left.run] = controller_state(read_json(left.run / MANIFEST), host)
        if states[left.run] != GONE:
            removal = Removal(left, f"left alone: {left.what}", "the run goes on")
        elif left.trial is not None and left.trial in stuck:
            removal = Removal(left, f"left alone: {left.what}", "something of its trial could not be removed")
        else:
            removal = _removed(left)
        if removal.problem is not None:
            stuck.add(left.trial)
        done.append(removal)
    return done


# -- finding ---------------------------------------------------------------------------------------------------------


def _left_in(run: RunDirectory, manifest: Json, host: Host) -> Iterator[Leftover]:
    here = host.boot_id()
    run_boot = (manifest.get("controller") or {}).get("boot_id")
    for trial in run.trials():
        document: Json = {}  # of a damaged one nothing can be recognised
        with contextlib.suppress(BadInput):
            document = read_json(trial.trial_json) if trial.trial_json.exists() else {}
        # A resumed run has trials of more than one boot.
        yield from _left_of(run, trial, document, here is not None and document.get("boot_id", run_boot) == here)
        written = [trial.trial_json, *(trial.path / f"{table}.parquet" for table in (*TABLES, "cost"))]
        written += [trial.config(str(name)) for name in document.get("processes") or ()]
        yield from _unfinished(run, trial.path, written)
    yield from _unfinished(run, None, [run.manifest, run.summary])
    yield from _file(run, None, run.path / RESERVE, "reserve of disk space")


def _left_of(run: RunDirectory, trial: TrialDirectory, document: Json, this_boot: bool) -> Iterator[Leftover]:
    running = document.get("status") == "running"
    processes = [(str(n), p) for n, p in (document.get("processes") or {}).items() if isinstance(p, dict)]
    tracers = list(_records(trial, lttng.RECORD))

    def left(kind: str, what: str, **known_by: Any) -> Leftover:
        return Leftover(kind, run.path, f"{what} of trial {trial.path.name}", trial.path, **known_by)

    if this_boot:
        for name, recorded in processes:
            pid, ticks = recorded.get("pid"), recorded.get("start_ticks")
            guarded = recorded.get("mark") is not None  # a command, which is under a guard as companions are
            if not guarded and isinstance(pid, int) and isinstance(ticks, int) and Process(pid, ticks).alive:
                yield left(PROCESS, f"process {name} (pid {pid})", process=Process(pid, ticks))
        for name, process in _guarded(document, processes):
            yield left(PROCESS, f"process {name} (pid {process.pid})", process=process)
        for _, record in tracers:
            # In a daemon that was there before the run, and whose keeper was killed as well.
            session = record.get("session")
            ours = isinstance(session, str) and session.startswith(lttng.SESSION_PREFIX)
            if ours and lttng.exists(str(session)):
                yield left(SESSION, f"LTTng session {session}", name=session)
        # After a trial that ended, the names may be somebody else's.
        names = [name for _, process in processes for name in process.get("shared_memory") or () if running]
        for name in names:
            with contextlib.suppress(OSError):
                if isinstance(name, str) and shared_memory.is_ours(name):
                    yield left(SHARED_MEMORY, f"shared memory {name}", name=name)
    made = [
        {"path": str(path.parent / temporary.FOLDER), "st_dev": record.get("device"), "st_ino": record.get("inode")}
        for path, record in _records(trial, temporary.RECORD)
    ]
    sockets = [home for _, record in tracers if isinstance(home := record.get("home"), dict)]
    for entry in (*(document.get("temporary") or ()), *made, *sockets):
        if (folder := _temporary(run, entry, this_boot)) is not None:
            path, identity = folder
            yield left(TEMPORARY, f"temporary folder {path}", path=path, identity=identity)
    if running:
        yield Leftover(TRIAL_LEFT, run.path, f"trial {trial.path.name}, which was running", trial.path)


def _guarded(document: Json, processes: list[tuple[str, Json]]) -> Iterator[tuple[Any, Process]]:
    """What lives of the programs beside the workload, and of a command; of a tree the topmost alone."""
    commands = [{"name": n, **p} for n, p in processes if p.get("mark") is not None]
    for companion in (*commands, *(c for c in document.get("companions") or () if isinstance(c, dict))):
        # Looking for a mark means reading the environment of every process: only where something may be left.
        searched = companion if document.get("status") == "running" else {**companion, "mark": None}
        left = {process.pid: process for process in left_behind(searched)}
        yield from ((companion.get("name"), process) for process in left.values() if process.parent not in left)


def _records(trial: TrialDirectory, name: str) -> Iterator[tuple[Path, Json]]:
    """What conditions or observers recorded, each in a folder of its own."""
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
        if stat.S_ISREG(status.st_mode):
            yield Leftover(FILE, run.path, f"{kind} {path}", trial, path=path, identity=(status.st_dev, status.st_ino))


def _temporary(run: RunDirectory, entry: Any, this_boot: bool) -> tuple[Path, tuple[int, int]] | None:
    """A recorded folder: one below the run, or elsewhere if it still has the recorded device and inode.

    Elsewhere only of this boot, whose identity cannot be guessed: a run from somebody else must not name any folder.
    """
    recorded: tuple[Any, Any] | None = None
    if isinstance(entry, dict):
        entry, recorded = entry.get("path"), (entry.get("st_dev"), entry.get("st_ino"))
    if not isinstance(entry, str) or "\0" in entry or ".." in Path(entry).parts:
        return None
    path = run.path.absolute() / entry
    try:
        status = path.lstat()
        root, parent = run.path.resolve(), path.parent.resolve(strict=True)
    except OSError:
        return None
    identity = (status.st_dev, status.st_ino)
    trials = [trial.path.resolve() for trial in run.trials()]
    own = {root, root / TRIALS, *trials, *(trial / "processes" for trial in trials)}
    below = parent.is_relative_to(root) and parent / path.name not in own
    if not stat.S_ISDIR(status.st_mode) or recorded not in (None, identity):
        return None
    return (path, identity) if below or (recorded is not None and this_boot) else None


# -- removing --------------------------------------------------------------------------------------------------------


class _Not(Exception):
    """It is not removed: the line, and what is wrong, None where nothing is."""

    def __init__(self, text: str, problem: str | None = None) -> None:
        super().__init__(text)
        self.problem = problem


def _removed(left: Leftover) -> Removal:
    verb, done, remove = _REMOVERS[left.kind]
    try:
        more = remove(left)
    except _Not as error:
        return Removal(left, str(error), error.problem)
    except FileNotFoundError:
        more = ""
    except (OSError, PerflabError) as error:
        problem = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return Removal(left, f"cannot {verb} {left.what}: {problem}", problem)
    return Removal(left, f"{done} {left.what}{more}")


def _end_process(left: Leftover) -> str:
    """Ends it, what descends from it, and the sessions that these lead, by SIGTERM and then by SIGKILL."""
    assert left.process is not None
    root, known, own = left.process, set[Process](), set(ancestors())

    def living() -> list[Process]:
        leaders = {p.pid for p in known if p.session == p.pid and p.alive}
        below = with_descendants(lambda p: p == root or p in known or p.session in leaders)
        found = [process for process in below if process.pid not in own]
        known.update(found)
        return found

    if not root.alive:
        raise _Not(f"{left.what} had ended already")
    living()
    for process in living():  # with the sessions of those that were found first
        send(process, signal.SIGTERM)
    wait = Wait(f"{len(known)} processes to end", TERM_WAIT_S)
    while living() and not wait.is_over:
        wait.say()
        time.sleep(LOOK_INTERVAL_S)
    if kill_all(living) or Process(*root.identity).alive:
        raise _Not(f"{left.what} does not end", "it survives SIGKILL")
    return f" and {len(known) - 1} of its descendants" if len(known) > 1 else ""


def _remove_shared_memory(left: Leftover) -> str:
    assert left.name is not None
    removal = shared_memory.remove_left_over([left.name])
    if removal.problems:
        raise _Not(removal.problems[0], removal.problems[0])
    with contextlib.suppress(FileNotFoundError):
        if not removal.removed and shared_memory.is_ours(left.name):
            raise _Not(f"left alone: {left.what}: another process uses it by now")
    return ""


def _remove_session(left: Leftover) -> str:
    assert left.name is not None
    lttng.destroy(left.name)
    return ""


def _is_the_same(left: Leftover, path: Path) -> bool:
    status = path.lstat()
    return (status.st_dev, status.st_ino) == left.identity


def _remove_temporary(left: Leftover) -> str:
    assert left.path is not None
    if not _is_the_same(left, left.path):
        raise _Not(f"left alone: {left.path} is another folder by now")
    if (mounted := _mounted_below(left.path)) is not None:
        raise OSError(errno.EBUSY, f"{mounted} is a mount point; unmount it first")
    shutil.rmtree(left.path)
    if (left.path.parent / temporary.RECORD).is_file():
        temporary.remove(left.path)  # what is around it: a condition made it
    return ""


def _mounted_below(path: Path) -> Path | None:
    """A mount point that is `path` or below it: what is mounted there is not the run's."""
    whole = path.resolve()
    return next((point for point, _ in Files().mounts() if point.is_relative_to(whole)), None)


def _remove_file(left: Leftover) -> str:
    assert left.path is not None
    if _is_the_same(left, left.path):
        left.path.unlink()
    return ""


def _mark_trial(left: Leftover) -> str:
    assert left.trial is not None
    trial = TrialDirectory(left.trial)
    document = trial_file.ended_early(read_json(trial.trial_json))
    write_json(trial.trial_json, document)
    raise _Not(f"marked trial {trial.path.name} {document['outcome']}: {document['reason']}")


_REMOVERS: dict[str, tuple[str, str, Callable[[Leftover], str]]] = {
    PROCESS: ("end", "ended", _end_process),
    SHARED_MEMORY: ("remove", "removed", _remove_shared_memory),
    SESSION: ("destroy", "destroyed", _remove_session),
    TEMPORARY: ("remove", "removed", _remove_temporary),
    FILE: ("remove", "removed", _remove_file),
    TRIAL_LEFT: ("mark", "marked", _mark_trial),
}
