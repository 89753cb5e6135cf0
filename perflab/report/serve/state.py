"""The state of a run, from its files alone: read on request, and only new parts.

Nothing is written into the run or requested from its processes: the run is not aware of being watched. The keys are in
docs/formats.md, "Live state".
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shlex
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from perflab.errors import DAMAGE, BadInput
from perflab.formats import json_file
from perflab.host import Host
from perflab.models import as_json
from perflab.report.label import labels
from perflab.report.progress import RunProgress
from perflab.report.serve import finished
from perflab.report.serve.finished import Finished, circumstances, place_of
from perflab.report.serve.present import PresentTrial
from perflab.results.curve import BreakingPoint, Curve
from perflab.results.files import DesignedTrial, Manifest, TrialFile
from perflab.results.outcome import SUCCESS
from perflab.results.trial import Result, least_lost, owners, received
from perflab.runs import rundir
from perflab.runs.controller import ELSEWHERE, GONE, RUNNING, controller_state
from perflab.runs.display import PlannedTrial, RunPlan
from perflab.runs.film import films_may_be
from perflab.runs.rundir import RunDirectory, TrialDirectory
from perflab.statistics import key_figures
from perflab.statistics.metrics import METRICS, chosen
from perflab.statistics.selection import variant_words
from perflab.units import NS_PER_S

if TYPE_CHECKING:
    from perflab.design.breaking_point import Goal

SCHEMA = 1
LOOK_INTERVAL_S = 0.9  # files are not read more often, whatever the number of requests
READING_S = 0.25  # seconds per request for reading finished trials; the rest follows with the next ones
ALPHA = 0.05  # for runs from before there were statistics

# States of a run in addition to RUNNING and ELSEWHERE.
WAITING, FINISHED, ENDED_EARLY, CRASHED, DAMAGED = "waiting", "finished", "ended_early", "crashed", "damaged"
ENDED = (FINISHED, ENDED_EARLY, CRASHED)

Json = dict[str, Any]
Signature = tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class SoFar:
    """The part of a run that changes when a trial begins or ends: for programs, and the records behind it."""

    document: Json
    results: Sequence[Result] = ()
    trials: Sequence[Finished] = ()
    curves: Sequence[Curve] = ()
    breaking_points: Sequence[BreakingPoint] = ()


class State:
    """The state of a run at one instant. `version` changes with everything but the cost of the server itself."""

    def __init__(self, run: SoFar, now: Json) -> None:
        self.run, self.now = run, now
        self._slow, self._quick = _json(run.document), _json(now)
        self.run_version = hashlib.sha256(self._slow).hexdigest()[:16]
        self.version = hashlib.sha256(self._slow + self._quick).hexdigest()[:16]

    @property
    def kind(self) -> str:
        return str(self.now["state"])

    def body(self, server: Mapping[str, Any], known: str | None = None) -> bytes:
        """The document; without `run` for a reader that has this version of it."""
        parts = {
            "schema": _json(SCHEMA),
            "version": _json(self.version),
            "run_version": _json(self.run_version),
            "server": _json(server),
            "now": self._quick,
            "run": b"null" if known == self.run_version else self._slow,
        }
        return b"{" + b",".join(b'"%s":%s' % (key.encode(), value) for key, value in parts.items()) + b"}"


T = TypeVar("T")


class _Document(Generic[T]):
    """A file that is read again only after it has changed. `read` raises BadInput."""

    def __init__(self, path: Path, read: Callable[[], T | None]) -> None:
        self.path, self._read = path, read
        self.content: T | None = None
        self.problem: str | None = None
        self.signature: Signature | None = None

    def refresh(self) -> None:
        """A missing file has no content; a damaged one has a problem."""
        found = _signature(self.path)
        if found == self.signature:
            return
        self.signature, self.content, self.problem = found, None, None
        if found is not None:
            try:
                self.content = self._read()
            except BadInput as error:
                self.problem = str(error)

    @property
    def there(self) -> bool:
        return self.signature is not None


class _Seen(_Document[TrialFile]):
    """The folder of a trial: trial.json, what was read after its end, or why that is impossible."""

    def __init__(self, directory: TrialDirectory) -> None:
        super().__init__(directory.trial_json, directory.read)
        self.directory = directory
        self.finished: Finished | None = None
        self.note: str | None = None

    @property
    def file(self) -> TrialFile:
        assert self.content is not None, "whether it belongs to this run"
        return self.content

    @property
    def unread(self) -> bool:
        return self.note is None and (self.finished is None or (self.finished.unfinished and self.file.finished))


class Watch:
    """One run, read when `state` is called; from any thread."""

    def __init__(self, word: str, host: Host | None = None) -> None:
        """`word` is a run directory or its name in runs/, which may be created later. Raises BadInput if it is a
        file."""
        self.word = word
        self._host = host or Host()
        self._lock = threading.Lock()
        self._looked_s: float | None = None
        self._state: State | None = None
        self._followed: _Followed | None = None
        if Path(word).exists() and not Path(word).is_dir():
            raise BadInput(f"{word!r} is a file; name the run directory, which may also be created later")

    @property
    def name(self) -> str:
        """The run's name, as far as it is known."""
        return Path(self.word).name or self.word

    @property
    def path(self) -> Path | None:
        """The run directory, as soon as it exists."""
        return None if self._followed is None else self._followed.run.path

    def state(self) -> State:
        """The state, not older than LOOK_INTERVAL_S."""
        with self._lock:
            if self._state is None or self._looked_s is None or time.monotonic() - self._looked_s >= LOOK_INTERVAL_S:
                self._state = self._look()
                self._looked_s = time.monotonic()
            return self._state

    def film(self, number: int | None) -> Json:
        """The film of a trial, or of the newest one without a number; its files are read each time."""
        from perflab.report.serve.film import film_document

        followed = self._followed  # another thread may release it meanwhile
        return film_document([] if followed is None else followed.run.trials(), number)

    def _look(self) -> State:
        if self._followed is not None and not self._followed.run.manifest.exists():
            self._followed = None  # removed; another one may replace it
        if self._followed is None:
            try:
                self._followed = _Followed(rundir.open_run(self.word), self._host)
            except BadInput:
                return _nothing(self.name, WAITING, self._missing())
        path = self._followed.run.path
        try:
            return self._followed.look()
        except BadInput as error:
            return _nothing(self.name, DAMAGED, str(error))
        except DAMAGE as error:
            return _nothing(self.name, DAMAGED, f"{path} is damaged: {type(error).__name__}: {error}")
        except OSError as error:
            return _nothing(self.name, DAMAGED, f"cannot read {error.filename or path}: {error.strerror}")

    def _missing(self) -> str:
        """perflab creates the folder shortly before the manifest; a folder without one for longer is not a run."""
        path = Path(self.word)
        if path.is_dir() and any(path.iterdir()):
            return f"{self.word} is not a run directory, it has no {rundir.MANIFEST}; waiting for one"
        return f"there is no run {self.word} yet; waiting for it"


class _Followed:
    """An existing run, with what was read so far."""

    def __init__(self, run: RunDirectory, host: Host) -> None:
        self.run = run
        self._host = host
        self._manifest = _Document(run.manifest, run.read_manifest)
        self._summary = _Document(run.summary, lambda: json_file.read_json(run.summary))
        self._trials: dict[str, _Seen] = {}  # by folder name
        self._present: PresentTrial | None = None
        self._made: tuple[object, SoFar] | None = None
        self._goal: Goal | None = None
        self._goal_of: Signature | None = None  # the manifest that it belongs to

    def look(self) -> State:
        """Raises BadInput, OSError, or one of DAMAGE."""
        self._manifest.refresh()
        self._summary.refresh()
        manifest = self._manifest.content
        if manifest is None:
            raise BadInput(self._manifest.problem or f"{self.run.manifest} has gone")
        if self._goal_of != self._manifest.signature:
            self._goal, self._goal_of = finished.goal_of(manifest), self._manifest.signature
        controller = controller_state(manifest, self._host)
        ended = self._has_summary(controller)
        own = self._own(manifest)
        present = own[-1] if own else None
        going_on = controller != GONE and not ended
        unread = self._read([t for t in own if t is not present or not going_on or t.file.finished], manifest)
        trials = self._valid()
        kind = RUNNING if controller == RUNNING else ELSEWHERE
        if ended:
            kind = FINISHED if self._whole(manifest, trials) or unread else ENDED_EARLY
        elif controller == GONE:
            kind = CRASHED
        current = present if going_on and present is not None and not present.file.finished else None
        run = self._so_far(manifest, trials, current)
        resumed = kind in (CRASHED, ENDED_EARLY)
        now = {
            "state": kind,
            "words": _words(kind, trials, run.document["planned"], unread),
            "resume": f"perflab run --resume {shlex.quote(str(self.run.path))}" if resumed else None,
            "unread": unread,
            "report": kind in ENDED and not unread and any(received(t.trial) is not None for t in trials),
            **self._time_left(run.document, trials, current if kind == RUNNING else None, going_on),
            "trial": None if present is None else self._trial(present, manifest, run, current, controller),
        }
        return State(run, now)

    # -- files -------------------------------------------------------------------------------------------------------

    def _has_summary(self, controller: str) -> bool:
        """Whether the run has ended. While a run is being resumed, the summary of its earlier part still exists."""
        made, begun = self._summary.signature, self._manifest.signature
        if made is None or begun is None:
            return False
        return controller != RUNNING or made[0] >= begun[0]

    def _own(self, manifest: Manifest) -> list[_Seen]:
        """The run's own trials with a readable trial.json, in order."""
        own = []
        for directory in self.run.trials():
            name = directory.path.name
            seen = self._trials.setdefault(name, _Seen(directory))
            if seen.finished is None or seen.finished.unfinished:
                seen.refresh()
            if seen.problem is not None:
                seen.note = seen.problem
            elif seen.content is not None and manifest.run_id not in (None, seen.content.run_id):
                seen.note = f"{name} belongs to another run and is left out"
            elif seen.content is not None:
                own.append(seen)
        return own

    def _read(self, trials: Sequence[_Seen], manifest: Manifest) -> int:
        """Reads newly finished trials for a while; returns how many are left for the next time."""
        began = time.monotonic()
        new = [seen for seen in trials if seen.unread]
        for place, seen in enumerate(new):
            if time.monotonic() - began > READING_S:
                return len(new) - place
            try:
                seen.finished = finished.read(seen.directory, seen.file, manifest, self._goal)
            except (BadInput, OSError) as error:
                seen.note = str(error)
            except DAMAGE as error:
                seen.note = f"{seen.directory.path.name} is damaged: {type(error).__name__}: {error}"
        return 0

    def _valid(self) -> list[Finished]:
        """Trials that were read, without interrupted ones that were run again."""
        read = [seen.finished for seen in self._trials.values() if seen.finished is not None]
        trials = sorted(read, key=lambda t: t.trial.trial)
        again = {t.trial.order: t.trial.trial for t in trials}
        return [t for t in trials if not (t.trial.interrupted and again[t.trial.order] > t.trial.trial)]

    def _whole(self, manifest: Manifest, trials: Sequence[Finished]) -> bool:
        """Whether the run came to the end of its plan. A search has no plan; it has ended if no trial was cut off."""
        if any(t.trial.interrupted for t in trials):
            return False
        planned = {entry.order for entry in manifest.trials if entry.order is not None}
        return finished.asked(manifest) is not None or planned <= {t.trial.order for t in trials}

    # -- the slow part: changes when a trial begins or ends ----------------------------------------------------------

    def _so_far(self, manifest: Manifest, trials: Sequence[Finished], current: _Seen | None) -> SoFar:
        notes = [seen.note for seen in self._trials.values() if seen.note is not None]
        key = (self._manifest.signature, [t.trial.trial for t in trials], current and current.path, notes)
        if self._made is None or self._made[0] != key:
            self._made = (key, self._made_anew(manifest, trials, None if current is None else current.file, notes))
        return self._made[1]

    def _made_anew(
        self, manifest: Manifest, trials: Sequence[Finished], current: TrialFile | None, notes: Sequence[str]
    ) -> SoFar:
        statistics = manifest.experiment.document.get("statistics") or {}
        alpha = float(statistics.get("alpha") or ALPHA)
        figure = trials[0].figure if trials else "latency"
        treatments = [circumstances(entry) for entry in (*manifest.treatments, current) if entry]
        metrics = dict.fromkeys(METRICS[name] for name in (f"{figure}.p50", f"{figure}.p99", "run_time"))
        with contextlib.suppress(BadInput):  # from a package that is not installed here
            kinds = key_figures.kinds(key_figures.declared(manifest.workload.graph))
            metrics |= dict.fromkeys(chosen(statistics.get("metrics"), figures=kinds))
        results = finished.results(trials, treatments, list(metrics), alpha)
        names = labels(results) if results else []
        places = {place_of(result): n for n, result in enumerate(results)}
        curves = finished.curves(results, figure, alpha)
        points = finished.breaking_points(self._goal, trials, manifest)
        settings, searched = manifest.settings, finished.asked(manifest)
        document = {
            "name": manifest.run,
            "path": str(self.run.path.absolute()),
            "workload": manifest.workload.name,
            "created_utc": manifest.created_utc,
            "command_line": shlex.join(manifest.command_line) or None,
            "duration_s": _seconds(settings.duration_ns),
            "warmup_s": _seconds(settings.warmup_ns) or 0.0,
            "figure": figure,
            "confidence": 1 - alpha,
            "search": searched,
            "breaking_points": as_json(points),
            "planned": None if searched is not None else len(manifest.trials),
            "trials": _rows(manifest.trials, trials, current, places),
            "results": [
                finished.document(r, name, figure, alpha) for r, name in zip(results, names, strict=True)
            ],
            "levels": _levels(curves, results),
            "unavailable_levels": as_json(manifest.unavailable_levels),
            "left_out": as_json(manifest.left_out),
            "films": films_may_be(manifest),
            "notes": notes,
        }  # fmt: skip
        return SoFar(document, results, trials, [curve for curve, _ in curves], points)

    # -- the quick part ----------------------------------------------------------------------------------------------

    def _time_left(self, run: Json, trials: Sequence[Finished], current: _Seen | None, going_on: bool) -> Json:
        """As in the terminal (report/progress.py); null if nothing runs, or the number of trials is unknown."""
        done = {t.trial.order: t for t in trials if not t.trial.interrupted}
        told: Json = {"done": len(done), "left_s": None, "left_words": None}
        if not going_on or not run["planned"] or not run["duration_s"]:
            return told
        seconds = run["duration_s"] + run["warmup_s"]
        of_current = None if current is None else current.file.order
        orders = [row["order"] for row in run["trials"]]
        # In the order in which they ran, which differs from the plan's for a resumed run.
        orders.sort(key=lambda order: (order not in done, order != of_current, order))
        entries = tuple(PlannedTrial(order, "", "", seconds, run["warmup_s"]) for order in orders)
        clock_s = 0.0
        progress = RunProgress(RunPlan(len(entries), entries), lambda: clock_s, [done[n] for n in orders[: len(done)]])
        if current is not None and of_current is not None:
            progress.start(of_current)
            began_s = finished.epoch_s(current.file.started_utc)
            clock_s = 0.0 if began_s is None else max(0.0, time.time() - began_s)
        if progress.current is None and progress.next is None:
            return told  # its summary is being written
        return told | {"left_s": round(progress.left_s()), "left_words": progress.left_in_words()}

    def _trial(self, seen: _Seen, manifest: Manifest, run: SoFar, current: _Seen | None, controller: str) -> Json:
        """The present trial; if none runs, the last one."""
        file, directory, running = seen.file, seen.directory, current is not None
        if self._present is None or self._present.directory.path != directory.path:
            self._present = PresentTrial(directory)
        self._present.refresh(file, running=running)
        of, command = circumstances(file), manifest.workload.command is not None
        here = controller == RUNNING and of.middleware != "virtual"
        places = [place_of(result) for result in run.results]
        return {
            "name": directory.path.name,
            "number": directory.number,
            "order": file.order,
            "result": places.index(place_of(of)) if place_of(of) in places else None,
            "treatment": file.treatment,
            "variant": variant_words(of),
            "running": running,
            "phase": self._present.phase(file, here=here, command=command) if running else None,
            "outcome": file.outcome,
            "reason": file.reason,
            "started_utc": file.started_utc,
            "duration_s": file.duration_s,
            "warmup_s": file.warmup_s,
            "measured_since": self._present.since(here=here) if running else None,
            **self._present.document(),
        }


# For a future trial of the plan.
_ROW: Json = {
    "order": None, "result": None, "number": None, "outcome": None, "ended": None, "interrupted": False, "reason": None,
    "p50_ns": None, "p99_ns": None, "received": None, "lost": None, "met": None, "took_s": None,
}  # fmt: skip


def _rows(
    plan: Sequence[DesignedTrial], trials: Sequence[Finished], current: TrialFile | None, places: Mapping[str, int]
) -> list[Json]:
    """The trials of the plan in order, with their outcomes; those of a search, which has no plan, as they ran."""

    def row(entry: DesignedTrial | TrialFile, **more: Any) -> Json:
        return {**_ROW, "order": entry.order, "result": places.get(place_of(circumstances(entry))), **more}

    # Manifests from before experiments existed have empty entries.
    rows = {entry.order: row(entry) for entry in plan if entry.order is not None}
    for t in trials:
        trial = t.trial
        rows[trial.order] = _ROW | {
            "order": trial.order, "result": places.get(t.place), "number": trial.trial, "outcome": trial.outcome,
            "ended": trial.ended, "interrupted": trial.interrupted, "reason": trial.reason,
            "p50_ns": t.quantile("p50"), "p99_ns": t.quantile("p99"), "received": received(trial),
            "lost": least_lost(*owners(trial)), "met": t.met, "took_s": t.took_s,
        }  # fmt: skip
    if current is not None:
        before = rows.get(current.order)
        if before is None or before["outcome"] is None or before["interrupted"]:
            rows[current.order] = row(current, number=current.trial, outcome="running")
    return [rows[order] for order in sorted(rows)]


def _levels(curves: Sequence[tuple[Curve, list[list[Result]]]], results: Sequence[Result]) -> list[Json]:
    """The curves of each factor: which results belong to which level."""
    places = {id(result): n for n, result in enumerate(results)}
    found = []
    for factor in dict.fromkeys(curve.factor for curve, _ in curves):
        own = [(curve, at) for curve, at in curves if curve.factor == factor]
        told = [
            {
                "label": _label(curve, [c for c, _ in own]),
                "points": [
                    {"level": level.level, "result": places[id(result)]}
                    for level, of_level in zip(curve.levels, at, strict=True)
                    for result in of_level
                ],
            }
            for curve, at in own
        ]
        found.append({"factor": factor, "curves": told})
    return found


def _label(curve: Curve, of_factor: Sequence[Curve]) -> str:
    """What distinguishes a curve from the others of its factor; empty if there is only one."""
    words = [curve.variant] if len({c.variant for c in of_factor}) > 1 else []
    different = [path for path in curve.others if len({str(c.others.get(path)) for c in of_factor}) > 1]
    return ", ".join([*words, *(f"{path.partition('.')[2]}={curve.others[path]}" for path in different)])


def _words(kind: str, trials: Sequence[Finished], planned: int | None, unread: int) -> str:
    """One sentence about the run."""
    if unread:
        return f"reading {len(trials)} of {len(trials) + unread} trials"
    valid = [t for t in trials if not t.trial.interrupted]
    of = f"{len(valid)} of {planned} trials" if planned else f"{len(valid)} trials"
    bad = sum(t.trial.outcome != SUCCESS for t in valid)
    return {
        RUNNING: f"running: {of} done",
        ELSEWHERE: f"runs on another machine or in another container, or did: {of} are here so far",
        FINISHED: f"finished: {of}" + (f", {bad} of them not successful" if bad else ", all successes"),
        ENDED_EARLY: f"ended before its plan was complete: {of}",
        CRASHED: f"perflab disappeared without ending the run: {of} are complete",
    }[kind]


def _nothing(name: str, kind: str, words: str) -> State:
    """For an unreadable run."""
    run: Json = {"name": name, "planned": None, "trials": [], "results": [], "levels": [], "notes": []}
    quick: Json = {"state": kind, "words": words, "resume": None, "unread": 0, "report": False, "done": 0}
    return State(SoFar(run), {**quick, "left_s": None, "left_words": None, "trial": None})


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode(errors="replace")


def _signature(path: Path) -> Signature | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _seconds(ns: object) -> float | None:
    return ns / NS_PER_S if isinstance(ns, int | float) else None
