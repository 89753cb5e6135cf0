"""Run directories as they are while a run goes on: a manifest with a plan, finished trials, and one that runs."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from made_run import MS, MadeTrial, Stream, arrivals, make_run

from perflab.formats.json_file import write_json
from perflab.host import Host
from perflab.processes import pid_namespace, start_ticks
from perflab.statistics import histogram as hg

RUN_ID = "5" * 32
SECOND_NS = 1_000_000_000
PROCESSES = {"mouth": ["talker"], "ear": ["listener"]}

Json = dict[str, Any]


def trial(latency_us: float = 100.0, messages: int = 1000, **more: Any) -> MadeTrial:
    """A trial whose messages all took as long."""
    return MadeTrial([Stream("talker", "chat", "listener", 10, messages, arrivals([latency_us] * messages))], **more)


@dataclass
class LiveRun:
    """A run whose plan is `treatments`, one trial of each entry; the first `done` are finished, as given."""

    path: Path
    treatments: Sequence[str]
    done: Sequence[MadeTrial]
    factors: Mapping[str, Json] = field(default_factory=dict)  # levels, by treatment
    duration_s: float = 10.0
    document: Json = field(default_factory=dict)  # of the experiment

    def __post_init__(self) -> None:
        make_run(self.path, PROCESSES, self.done or [trial()], with_summary=False, with_tables=False)
        plan = [self.place(treatment) for treatment in self.treatments]
        unique = [json.loads(t) for t in dict.fromkeys(json.dumps(p, sort_keys=True) for p in plan)]
        manifest = json.loads((self.path / "manifest.json").read_text())
        manifest |= {
            "run_id": RUN_ID,
            "command_line": ["perflab", "run", "made"],
            "created_utc": datetime.now(UTC).isoformat(),
            "experiment": {
                "written": {"workload": ["made"], **self.document},
                "document": {"statistics": {"alpha": 0.05, "margin": 5.0, "metrics": []}, **self.document},
            },
            "treatments": unique,
            "trials": [{"order": n, "block": 1, "after": None, **p} for n, p in enumerate(plan, start=1)],
        }
        manifest["settings"] |= {"duration_ns": round(self.duration_s * SECOND_NS), "warmup_ns": 0, "seed": 1}
        manifest["host"]["hostname"] = Host().facts()["hostname"]
        self._manifest = manifest
        self.controlled_by(os.getpid())
        for number in range(1, len(self.done) + 1):
            self._finish(number)
        if not self.done:
            (self.path / "trials/0001_baseline/trial.json").unlink()
            for file in (self.path / "trials/0001_baseline/processes").iterdir():
                file.unlink()
            (self.path / "trials/0001_baseline/processes").rmdir()
            (self.path / "trials/0001_baseline").rmdir()

    def place(self, treatment: str) -> Json:
        name, levels = treatment.partition(" ")[0], self.factors.get(treatment, {})
        parameters = {path.partition(".")[2]: level for path, level in levels.items() if path.startswith(f"{name}.")}
        return {
            "middleware": "cyclonedds",
            "executor": None,
            "ipc": None,
            "pass_by": None,
            "treatment": treatment,
            "conditions": [] if treatment == "baseline" else [name],
            "condition_parameters": {} if treatment == "baseline" else {name: parameters},
            "factors": dict(levels),
            "observers": [],
            "purpose": "measured",
        }

    def controlled_by(self, pid: int | None, *, boot_id: str | None = None, hostname: str | None = None) -> None:
        """Names the perflab that runs it; None: one that is gone."""
        ticks = start_ticks(os.getpid() if pid is None else pid)
        self._manifest["controller"] = {
            "pid": os.getpid() if pid is None else pid,
            "start_ticks": ticks if pid is not None or ticks is None else ticks - 1,
            "boot_id": boot_id or Host().boot_id(),
            "pid_namespace": pid_namespace(),
        }
        if hostname is not None:
            self._manifest["host"]["hostname"] = hostname
        write_json(self.path / "manifest.json", self._manifest)

    def summary(self, **more: Any) -> None:
        """Ends the run as perflab does."""
        from perflab.models import as_json
        from perflab.runs.collect import collect_run
        from perflab.runs.rundir import RunDirectory

        summary, _ = collect_run(RunDirectory(self.path, created=False))
        write_json(self.path / "summary.json", {**as_json(summary), **more})

    def folder(self, number: int) -> Path:
        return next(self.path.glob(f"trials/{number:04d}_*"))

    def change(self, number: int, **changes: Any) -> None:
        """Changes trial.json."""
        path = self.folder(number) / "trial.json"
        write_json(path, {**json.loads(path.read_text()), **changes})

    def begin(self, number: int, order: int | None = None, launched: bool = True) -> Path:
        """A trial that runs and has recorded nothing yet; its folder."""
        folder = self.path / f"trials/{number:04d}_next"
        (folder / "processes").mkdir(parents=True)
        order = number if order is None else order
        document = {
            "schema": 1,
            "run_id": RUN_ID,
            "trial": number,
            "order": order,
            "block": 1,
            "status": "running",
            "outcome": None,
            "reason": None,
            "interrupted": False,
            "workload": "made",
            **self.place(self.treatments[order - 1]),
            "middleware": {"name": "cyclonedds", "version": "1.0", "options": {}},
            "duration_s": self.duration_s,
            "warmup_s": 0.0,
            "started_utc": datetime.now(UTC).isoformat(),
            "processes": {n: {"process": n, "condition": None, "pid": 1 if launched else None} for n in PROCESSES},
        }
        write_json(folder / "trial.json", document)
        return folder

    def _finish(self, number: int) -> None:
        place = self.place(self.treatments[number - 1])
        del place["middleware"]
        self.change(
            number, run_id=RUN_ID, interrupted=False, block=1, **place, started_utc=datetime.now(UTC).isoformat()
        )


class Recorder:
    """Writes the records of the processes of a trial that runs, as they come; every line whole unless it is cut."""

    def __init__(self, folder: Path, from_ns: int | None = None, duration_s: float = 10.0) -> None:
        self.from_ns = time.monotonic_ns() if from_ns is None else from_ns
        self.until_ns = self.from_ns + round(duration_s * SECOND_NS)
        self._folder = folder
        self._latencies: list[int] = []

    def start(self) -> None:
        for process in PROCESSES:
            self.line(process, {"type": "start", "at_ns": self.from_ns, "measured_from_ns": self.from_ns,
                                "measured_until_ns": self.until_ns, "matched": True})  # fmt: skip

    def second(self, second: int, latencies_us: Sequence[float], lost: int = 0, sender: bool = True) -> None:
        """The progress of one second: what the listener got in it."""
        self._latencies += [round(us * 1000) for us in latencies_us]
        at_ns = self.from_ns + second * SECOND_NS
        common = {"type": "progress", "at_ns": at_ns, "elapsed_ns": second * SECOND_NS, "publishing": True}
        if sender:
            self.line("mouth", {**common, "sent": len(self._latencies), "received": 0, "lost": 0, "latency": None})
        counted = hg.encode(hg.from_values(self._latencies))
        self.line(
            "ear", {**common, "sent": 0, "received": len(self._latencies), "lost": lost, "latency": counted}
        )  # fmt: skip

    def resources(self, process: str, at_s: float, cpu_percent: float, interval_s: float = 0.5) -> None:
        interval_ns = round(interval_s * SECOND_NS)
        self.line(process, {"type": "resources", "at_ns": self.from_ns + round(at_s * SECOND_NS),
                            "interval_ns": interval_ns, "cpu_interval_ns": round(interval_ns * cpu_percent / 100),
                            "rss_kb": 1, "rss_peak_kb": 1})  # fmt: skip

    def event(self, process: str, code: str) -> None:
        self.line(process, {"type": "event", "at_ns": self.from_ns + MS, "code": code, "edge": 0, "sequence": 1})

    def line(self, process: str, record: Json, cut: int = 0) -> None:
        """With `cut`, only so many bytes of the line."""
        text = json.dumps(record, separators=(",", ":")) + "\n"
        self.raw(process, text[:cut] if cut else text)

    def raw(self, process: str, text: str) -> None:
        with (self._folder / "processes" / f"{process}.jsonl").open("a") as file:
            file.write(text)
