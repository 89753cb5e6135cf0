"""What a run leaves on the disk while it goes on and afterwards, and which of its processes live."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from .conftest import has_received

Json = dict[str, Any]
Identity = tuple[int, int]  # number and start time in ticks
T = TypeVar("T")

LIMIT_S = 120  # for what comes within seconds on a machine that is not busy
GONE_S = 20


def trials(out: Path) -> list[Json]:
    """All trial.json, in the order in which they were begun, each with its `path`."""
    found = sorted(path for path in (out / "trials").glob("*/trial.json"))
    return [{**json.loads(path.read_text()), "path": path.parent} for path in found]


def of(out: Path, treatment: str) -> list[Json]:
    return [trial for trial in trials(out) if trial["treatment"] == treatment]


def wait_for(what: str, ask: Callable[[], T | None], run: subprocess.Popen[str] | None = None) -> T:
    """What `ask` says as soon as it says something, while the run is in progress."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        answer = ask()
        if answer is not None:
            return answer
        assert run is None or run.poll() is None, (what, run.communicate())
        time.sleep(0.02)
    raise AssertionError(f"it did not happen: {what}")


def running(out: Path, treatment: str | None = None, past: int = 0) -> Json | None:
    """The trial that runs, if it has that treatment and comes behind number `past`."""
    found = trials(out)
    if not found or found[-1]["status"] != "running" or found[-1]["trial"] <= past:
        return None
    return found[-1] if treatment in (None, found[-1]["treatment"]) else None


def measuring(out: Path, run: subprocess.Popen[str], treatment: str | None = None, past: int = 0) -> Json:
    """The trial that runs, as soon as every process of the workload has received something in its measured part."""

    def ask() -> Json | None:
        trial = running(out, treatment, past)
        if trial is None:
            return None
        own = [name for name, process in trial["processes"].items() if process["condition"] is None]
        received = all(has_received(trial["path"] / "processes" / f"{name}.jsonl") for name in own)
        return trial if received else None

    return wait_for(f"a trial with {treatment or 'any treatment'} measures", ask, run)


def companion(trial: Json, name: str) -> Json:
    (found,) = (c for c in trial["companions"] if c["name"] == name)
    assert isinstance(found, dict)
    return found


def children(pid: int) -> list[int]:
    """All descendants."""
    found: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # it ends meanwhile
            for word in path.read_text().split():
                found += [int(word), *children(int(word))]
    return found


def identities(out: Path) -> set[Identity]:
    """Every process that the trials of a run recorded: nodes, companions and their guards."""
    found: set[Identity] = set()
    for trial in trials(out):
        known = [*trial["processes"].values(), *trial["companions"], *(c["guard"] for c in trial["companions"])]
        found |= {(p["pid"], p["start_ticks"]) for p in known if p["pid"] is not None}
    return found


def marks(out: Path) -> set[str]:
    """What stands in the environment of everything that a companion has started."""
    return {str(companion["mark"]) for trial in trials(out) for companion in trial["companions"]}


def lives(identity: Identity) -> bool:
    try:
        fields = Path(f"/proc/{identity[0]}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return False
    return int(fields[19]) == identity[1] and fields[0] not in "ZX"


def marked(wanted: Iterable[str]) -> list[int]:
    """Living processes with one of these marks."""
    words = {f"PERFLAB_COMPANION={mark}".encode() for mark in wanted}
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            environment = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if words & set(environment):
            found.append(int(path.parent.name))
    return found


def nothing_is_left(out: Path, more: Iterable[Identity] = ()) -> None:
    """Waits, for a bounded time, until no process of the run lives."""
    known, wanted = identities(out) | set(more), marks(out)
    deadline = time.monotonic() + GONE_S
    while left := [*(identity for identity in known if lives(identity)), *marked(wanted)]:
        assert time.monotonic() < deadline, f"left behind: {left} of {os.fspath(out)}"
        time.sleep(0.05)


def identity(pid: int) -> Identity | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return pid, int(fields[19])


def living_below(pid: int) -> set[Identity]:
    """All descendants that live."""
    return {found for child in children(pid) if (found := identity(child)) is not None}


def sums_of_finished(out: Path) -> dict[str, str]:
    """The SHA-256 of every file of every trial that has ended and is a result."""
    return {
        str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest()
        for trial in trials(out)
        if trial["status"] == "finished" and not trial["interrupted"]
        for path in sorted(trial["path"].rglob("*"))
        if path.is_file()
    }
