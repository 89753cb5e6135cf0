"""What a perflab that was killed left behind, found and removed by what its runs recorded, never by how it is called.

A process is the recorded one when its number, its start in ticks and the boot are the recorded ones; it and its
descendants are ended through pidfds, so that a number that was given to somebody else meanwhile is never hit. A run
whose perflab is alive, or was started where this one cannot see it, is not touched.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
import signal
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perflab.errors import DAMAGE, BadInput, PerflabError
from perflab.experiment import shared_memory
from perflab.formats.json_file import read_json, write_json
from perflab.host import Host
from perflab.processes import Process, living
from perflab.runs.controller import GONE, controller_state
from perflab.runs.rundir import MANIFEST, RESERVE, SUMMARY, TRIAL, TRIALS, RunDirectory, TrialDirectory
from perflab.tracer import lttng
from perflab.waiting import Wait

Json = dict[str, Any]

PROCESS, SHARED_MEMORY, TEMPORARY, FILE, TRIAL_LEFT = "process", "shared_memory", "temporary", "file", "trial"
SESSION = "session"  # of LTTng

ENDED_EARLY = "perflab ended before the trial did"
TERM_WAIT_S = 2.0
KILL_WAIT_S = 10.0
ROUNDS = 3  # a process may start others while its descendants are being counted


@dataclass(frozen=True)
class Leftover:
    """One thing that a run left; `what` names it for people. The rest is what it is recognised by."""

    kind: str
    run: Path
    what: str
    trial: Path | None = None
    pid: int | None = None
    start_ticks: int | None = None
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
            removal = _REMOVERS[left.kind](left)
        if removal.problem is not None:
            stuck.add(left.trial)
        done.append(removal)
    return done


# -- finding ---------------------------------------------------------------------------------------------------------


def _left_in(run: RunDirectory, manifest: Json, host: Host) -> Iterator[Leftover]:
    here = host.boot_id()
    run_boot = (manifest.get("controller") or {}).get("boot_id")
    for trial in run.trials():
        document = _trial_document(trial)
        if document is not None:
            # A resumed run has trials of more than one boot.
            this_boot = here is not None and document.get("boot_id", run_boot) == here
            yield from _left_of(run, trial, document, this_boot)
        yield from _half_written(run, trial, document)
    for name in (MANIFEST, SUMMARY):
        yield from _file(run, None, run.path / f".{name}.tmp", "half-written file")
    yield from _file(run, None, run.path / RESERVE, "reserve of disk space")


def _left_of(run: RunDirectory, trial: TrialDirectory, document: Json, this_boot: bool) -> Iterator[Leftover]:
    running = document.get("status") == "running"
    processes = _processes_of(document)
    if this_boot:
        for name, process in processes:
            if process.get("mark") is not None:
                continue  # a command, which stands under a guard as companions do
            pid, ticks = process.get("pid"), process.get("start_ticks")
            if isinstance(pid, int) and isinstance(ticks, int) and Process(pid, ticks).alive:
                what = f"process {name} (pid {pid}) of trial {trial.path.name}"
                yield Leftover(PROCESS, run.path, what, trial.path, pid=pid, start_ticks=ticks)
        yield from _companions(run, trial, document)
        yield from _session(run, trial)
        # After a trial that ended, the names may be somebody else's.
        names = [name for _, process in processes for name in process.get("shared_memory") or () if running]
        for name in names:
            if isinstance(name, str) and _in_shared_memory(name):
                what = f"shared memory {name} of trial {trial.path.name}"
                yield Leftover(SHARED_MEMORY, run.path, what, trial.path, name=name)
    recorded = (*_recorded_by_conditions(trial), *_recorded_by_tracers(trial))
    for entry in (*(document.get("temporary") or ()), *recorded):
        if (folder := _temporary(run, entry, this_boot)) is not None:
            path, identity = folder
            what = f"temporary folder {path} of trial {trial.path.name}"
            yield Leftover(TEMPORARY, run.path, what, trial.path, path=path, identity=identity)
    if running:
        yield Leftover(TRIAL_LEFT, run.path, f"trial {trial.path.name}, which was running", trial.path)


def _processes_of(document: Json) -> list[tuple[str, Json]]:
    return [(str(n), p) for n, p in (document.get("processes") or {}).items() if isinstance(p, dict)]


def _companions(run: RunDirectory, trial: TrialDirectory, document: Json) -> Iterator[Leftover]:
    """What lives of the programs beside the workload, and of a command; of a tree the topmost alone."""
    from perflab.experiment.companion import left_behind

    commands = [{"name": n, **p} for n, p in _processes_of(document) if p.get("mark") is not None]
    for companion in (*commands, *(c for c in document.get("companions") or () if isinstance(c, dict))):
        # Looking for a mark means reading the environment of every process: only where something may be left.
        searched = companion if document.get("status") == "running" else {**companion, "mark": None}
        left = {process.pid: process for process in left_behind(searched)}
        for process in left.values():
            if process.parent not in left:
                what = f"process {companion.get('name')} (pid {process.pid}) of trial {trial.path.name}"
                yield Leftover(PROCESS, run.path, what, trial.path, pid=process.pid, start_ticks=process.start_ticks)


def _session(run: RunDirectory, trial: TrialDirectory) -> Iterator[Leftover]:
    """A session in a daemon that was there before the run, whose keeper was killed as well."""
    for record in _tracers_records(trial):
        name = record.get("session")
        if isinstance(name, str) and name.startswith(lttng.SESSION_PREFIX) and lttng.exists(name):
            yield Leftover(SESSION, run.path, f"LTTng session {name} of trial {trial.path.name}", trial.path, name=name)


def _recorded_by_tracers(trial: TrialDirectory) -> Iterator[Json]:
    """The folders in which session daemons had their sockets."""
    for record in _tracers_records(trial):
        if isinstance(home := record.get("home"), dict):
            yield home


def _tracers_records(trial: TrialDirectory) -> Iterator[Json]:
    for path in sorted(trial.path.glob(f"*/{lttng.RECORD}")):
        with contextlib.suppress(BadInput):
            yield read_json(path)


def _recorded_by_conditions(trial: TrialDirectory) -> Iterator[Json]:
    """The folders that conditions made in the trial, as they recorded them."""
    from perflab.condition import temporary

    for record in sorted(trial.path.glob(f"*/{temporary.RECORD}")):
        with contextlib.suppress(BadInput):
            known = read_json(record)
            folder = record.parent.absolute() / temporary.FOLDER
            yield {"path": str(folder), "st_dev": known.get("device"), "st_ino": known.get("inode")}


def _trial_document(trial: TrialDirectory) -> Json | None:
    """None where there is none, or where it is damaged: then nothing is recorded that could be recognised."""
    if not trial.trial_json.exists():
        return None
    try:
        return read_json(trial.trial_json)
    except BadInput:
        return None


def _half_written(run: RunDirectory, trial: TrialDirectory, document: Json | None) -> Iterator[Leftover]:
    """The temporary names of exactly the files that perflab writes into a trial."""
    from perflab.results.run import TABLES

    yield from _file(run, trial, trial.path / f".{TRIAL}.tmp", "half-written file")
    for table in (*TABLES, "cost"):
        yield from _file(run, trial, trial.path / f".{table}.parquet.tmp", "half-written file")
    for name in (document or {}).get("processes") or ():
        config = trial.config(str(name))
        yield from _file(run, trial, config.with_name(f".{config.name}.tmp"), "half-written file")


def _file(run: RunDirectory, trial: TrialDirectory | None, path: Path, kind: str) -> Iterator[Leftover]:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        status = path.lstat()
        if stat.S_ISREG(status.st_mode):
            owner = None if trial is None else trial.path
            yield Leftover(FILE, run.path, f"{kind} {path}", owner, path=path, identity=(status.st_dev, status.st_ino))


def _in_shared_memory(name: str) -> bool:
    if "/" in name or "\0" in name or name in ("", ".", ".."):
        return False
    try:
        status = (shared_memory.FOLDER / name).lstat()
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.getuid()


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


def _remove_process(left: Leftover) -> Removal:
    assert left.pid is not None and left.start_ticks is not None
    try:
        ended = _end_tree(left.pid, left.start_ticks)
    except OSError as error:
        return Removal(left, f"cannot end {left.what}: {error.strerror}", error.strerror)
    if Process(left.pid, left.start_ticks).alive:
        return Removal(left, f"{left.what} does not end", "it survives SIGKILL")
    if not ended:
        return Removal(left, f"{left.what} had ended already")
    more = f" and {ended - 1} of its descendants" if ended > 1 else ""
    return Removal(left, f"ended {left.what}{more}")


def _remove_shared_memory(left: Leftover) -> Removal:
    assert left.name is not None
    removal = shared_memory.remove_left_over([left.name])
    if removal.problems:
        return Removal(left, removal.problems[0], removal.problems[0])
    if not removal.removed and _in_shared_memory(left.name):
        return Removal(left, f"left alone: {left.what}: another process uses it by now")
    return Removal(left, f"removed {left.what}")


def _remove_temporary(left: Leftover) -> Removal:
    from perflab.condition import temporary

    assert left.path is not None
    try:
        status = left.path.lstat()
        if (status.st_dev, status.st_ino) != left.identity:
            return Removal(left, f"left alone: {left.path} is another folder by now")
        if (mounted := _mounted_below(left.path)) is not None:
            problem = f"{mounted} is a mount point; unmount it first"
            return Removal(left, f"cannot remove {left.what}: {problem}", problem)
        shutil.rmtree(left.path)
        if (left.path.parent / temporary.RECORD).is_file():
            temporary.remove(left.path)  # what is around it: a condition made it
    except FileNotFoundError:
        pass
    except OSError as error:
        return Removal(left, f"cannot remove {left.what}: {error.strerror}", error.strerror)
    return Removal(left, f"removed {left.what}")


def _remove_session(left: Leftover) -> Removal:
    assert left.name is not None
    try:
        lttng.destroy(left.name)
    except PerflabError as error:
        return Removal(left, f"cannot destroy {left.what}: {error}", str(error))
    return Removal(left, f"destroyed {left.what}")


def _mounted_below(path: Path) -> Path | None:
    """A mount point that is `path` or below it: what is mounted there is not the run's."""
    whole = path.resolve()
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape").splitlines():
        point = Path(re.sub(r"\\([0-7]{3})", lambda m: chr(int(m.group(1), 8)), line.split()[4]))
        if point.is_relative_to(whole):
            return point
    return None


def _remove_file(left: Leftover) -> Removal:
    assert left.path is not None
    try:
        status = left.path.lstat()
        if (status.st_dev, status.st_ino) == left.identity:
            left.path.unlink()
    except FileNotFoundError:
        pass
    except OSError as error:
        return Removal(left, f"cannot remove {left.what}: {error.strerror}", error.strerror)
    return Removal(left, f"removed {left.what}")


def _mark_trial(left: Leftover) -> Removal:
    assert left.trial is not None
    trial = TrialDirectory(left.trial)
    try:
        document = read_json(trial.trial_json)
        document["status"] = "finished"
        document["interrupted"] = document.get("outcome") is None  # a resumed run takes its place again
        document["outcome"] = document.get("outcome") or "harness_error"
        document["reason"] = document.get("reason") or ENDED_EARLY
        write_json(trial.trial_json, document)
    except (OSError, PerflabError) as error:
        problem = error.strerror if isinstance(error, OSError) else str(error)
        return Removal(left, f"cannot mark {left.what}: {problem}", problem)
    return Removal(left, f"marked trial {trial.path.name} {document['outcome']}: {document['reason']}")


_REMOVERS = {
    PROCESS: _remove_process,
    SHARED_MEMORY: _remove_shared_memory,
    SESSION: _remove_session,
    TEMPORARY: _remove_temporary,
    FILE: _remove_file,
    TRIAL_LEFT: _mark_trial,
}


# -- processes -------------------------------------------------------------------------------------------------------


def _tree(roots: Iterable[Process]) -> list[Process]:
    """These processes as far as they still exist, their descendants, and their sessions, which may hold orphans.

    Neither this process nor one that it descends from.
    """
    all_ = {process.pid: process for process in living()}
    children: dict[int, list[Process]] = {}
    sessions: dict[int, list[Process]] = {}
    for process in all_.values():
        children.setdefault(process.parent, []).append(process)
        sessions.setdefault(process.session, []).append(process)
    tree: dict[int, Process] = {}
    waiting = [p for root in roots if (p := all_.get(root.pid)) == root and p is not None]
    while waiting:
        process = waiting.pop()
        if process.pid in tree:
            continue
        tree[process.pid] = process
        waiting += children.get(process.pid, ())
        if process.session == process.pid:
            waiting += sessions[process.pid]
    own: Process | None = all_.get(os.getpid())
    while own is not None:
        tree.pop(own.pid, None)
        own = all_.get(own.parent)
    return list(tree.values())


@dataclass
class _Held:
    """Processes held by pidfd: whatever becomes of their numbers, signals reach them or nobody."""

    pidfds: dict[Process, int] = field(default_factory=dict)

    def take(self, roots: Iterable[Process]) -> None:
        """These and what descends from them; again and again, for they may start others meanwhile."""
        for _ in range(ROUNDS):
            known = len(self.pidfds)
            for process in _tree(roots):
                self._take_one(process)
            if len(self.pidfds) == known:
                return

    def _take_one(self, process: Process) -> None:
        if process in self.pidfds:
            return
        with contextlib.suppress(ProcessLookupError):
            pidfd = os.pidfd_open(process.pid)
            # What is that process now, with the descriptor open, is what the descriptor means for ever.
            if process.alive:
                self.pidfds[process] = pidfd
            else:
                os.close(pidfd)

    def send(self, signum: int) -> None:
        for pidfd in self.pidfds.values():
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(pidfd, signum)

    def wait(self, seconds: float) -> bool:
        """Whether all have ended within that time."""
        wait = Wait(f"{len(self.pidfds)} processes to end", seconds)
        for pidfd in self.pidfds.values():
            poll = select.poll()
            poll.register(pidfd, select.POLLIN)
            while not poll.poll(wait.step_s * 1000):
                wait.say()
                if wait.is_over:
                    return False
        return True

    def close(self) -> None:
        for pidfd in self.pidfds.values():
            os.close(pidfd)
        self.pidfds.clear()


def _end_tree(pid: int, start_ticks: int) -> int:
    """Ends a process and its descendants, by SIGTERM and then by SIGKILL; returns how many. Raises OSError."""
    root = Process(pid, start_ticks)
    if not root.alive:
        return 0
    held = _Held()
    try:
        held.take([root])
        held.send(signal.SIGTERM)
        if not held.wait(TERM_WAIT_S):
            held.take(list(held.pidfds))
            held.send(signal.SIGSTOP)  # what is stopped starts nothing more
            held.take(list(held.pidfds))
            held.send(signal.SIGKILL)
            held.wait(KILL_WAIT_S)
        return len(held.pidfds)
    finally:
        held.close()
