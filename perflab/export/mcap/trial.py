"""The trial that becomes an MCAP file: its records, its clock, and its metadata in the file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perflab.errors import BadInput
from perflab.formats import messages, records
from perflab.formats.json_file import read_json
from perflab.formats.mcap import McapFile, topic_of
from perflab.formats.messages import Recorded
from perflab.results.files import TrialFile
from perflab.runs.rundir import RunDirectory, TrialDirectory
from perflab.units import NS_PER_S
from perflab.version import __version__

if TYPE_CHECKING:
    from perflab.results.run import RunData, TrialTables

VIRTUAL = "virtual"
OWN = "perflab"  # prefix of all channels but the topics of the workload


def is_virtual(trial: TrialTables) -> bool:
    return trial.middleware == VIRTUAL


def topic(*parts: str) -> str:
    return topic_of(OWN, *parts)


@dataclass(frozen=True)
class ExportedTrial:
    data: RunData
    tables: TrialTables
    directory: TrialDirectory
    file: TrialFile
    shift_ns: int  # from instants of the records to the wall clock
    recorded: Recorded | None  # single messages

    @classmethod
    def read(cls, data: RunData, tables: TrialTables) -> ExportedTrial:
        """Raises BadInput."""
        own = next(t for t in RunDirectory(data.path, created=False).trials() if t.number == tables.number)
        file = own.read()
        if file is None:
            raise BadInput(f"{own.path} has no trial.json")
        return cls(data, tables, own, file, _shift_ns(data, own), messages.read(own.path))

    @property
    def begin_ns(self) -> int:
        """Of the measured part."""
        return self.tables.started_ns or self.file.start_at_ns or 0

    @property
    def end_ns(self) -> int:
        return self.begin_ns + round(self.tables.duration_s * NS_PER_S)

    @property
    def missing(self) -> list[str]:
        return [] if self.recorded is None else self.recorded.remarks()

    def wall(self, at_ns: int) -> int:
        """Of an instant of the records."""
        return max(0, at_ns + self.shift_ns)

    def describe(self, file: McapFile) -> None:
        """The trial's circumstances, and its trial.json and graph unchanged."""
        tables, at_ns = self.tables, self.wall(self.begin_ns)
        values = {
            "run": self.data.name,
            "run_id": self.data.manifest.run_id,
            "trial": tables.number,
            "treatment": tables.label,
            "workload": tables.workload,
            "middleware": tables.middleware,
            "executor": tables.executor,
            "outcome": tables.outcome,
            "reason": self.file.reason,
            "clock": "virtual time" if is_virtual(tables) else "CLOCK_MONOTONIC",
            "wall_minus_clock_ns": self.shift_ns,
            "recorded_by": self.data.manifest.versions.perflab,
            "exported_by": __version__,
            "missing": "; ".join(self.missing),
        }
        file.note(OWN, {name: str(value) for name, value in values.items() if value not in (None, "")})
        file.attach("trial.json", self.directory.trial_json.read_bytes(), "application/json", at_ns)
        graph = json.dumps(self._graph, indent=1, ensure_ascii=False)
        file.attach("graph.json", graph.encode(), "application/json", at_ns)

    @property
    def _graph(self) -> Mapping[str, Any]:
        """With the conditions' additions and at the levels of the factors, if the trial wrote its plan."""
        if self.directory.plan.exists():
            graph: Mapping[str, Any] = read_json(self.directory.plan)["graph"]
            return graph
        return self.data.manifest.workload.graph


def _shift_ns(data: RunData, directory: TrialDirectory) -> int:
    """One for all processes, which keeps their order. Virtual time is shifted to an instant of the machine."""
    try:
        for path in sorted(directory.processes.glob("*.jsonl")):
            for record in records.lines(path, "process"):
                if record is not None and record.get("type") == "process" and record.get("wall_ns") is not None:
                    return int(record["wall_ns"]) - int(record["started_ns"])
    except records.RecordError as error:
        raise BadInput(str(error)) from error
    clock = data.manifest.clock
    if clock is None:
        raise BadInput(f"{directory.path} does not record the wall clock; `--format csv` writes its tables")
    return clock.wall_ns - clock.monotonic_ns
