"""The files of Apex.AI's performance_test 2.3: a log per process, as CSV and as JSON, with a row per second."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perflab.errors import BadInput
from perflab.export import AccountingParameters, Exporter, Written
from perflab.registry import Kind

if TYPE_CHECKING:
    from perflab.results.run import RunData, TrialTables

_TABLES = "`--format csv` writes its tables"


class PerformanceTest(Exporter):
    def __init__(self, asked: AccountingParameters) -> None:
        self._accounting = asked.accounting

    def check(self, data: RunData) -> None:
        from perflab.results.run import PERFLAB

        if data.origin != PERFLAB:
            raise BadInput(f"{data.path} is from {data.program} and has no records of each second; {_TABLES}")
        if data.manifest.workload.command is not None:
            raise BadInput(
                f"{data.path} measured a command, whose settings the format needs but which are unknown; {_TABLES}"
            )
        _check(data, data.manifest.workload.graph)

    def takes(self, trial: TrialTables) -> bool:
        return bool(trial.edges.height or trial.publishers.height)

    def note(self, trial: TrialTables) -> str | None:
        from perflab.formats.performance_test.accounts import NOT_MEASURED

        return f"perflab does not measure {', '.join(NOT_MEASURED)}: empty in CSV, null in JSON"

    def write(self, data: RunData, trial: TrialTables, directory: Path) -> Written:
        from perflab.formats.json_file import read_json
        from perflab.formats.performance_test.accounts import logs_of
        from perflab.formats.performance_test.write import csv_text, json_text
        from perflab.runs.rundir import RunDirectory
        from perflab.workload import file_name

        own = next(t for t in RunDirectory(data.path, created=False).trials() if t.number == trial.number)
        config = next(iter(sorted(own.processes.glob("*.config.json"))), None)
        graph = data.manifest.workload.graph if config is None else read_json(config)["graph"]
        _check(data, graph)
        records = {path.stem: path for path in sorted(own.processes.glob("*.jsonl"))}
        logs = logs_of(data, trial, graph, records, self._accounting)
        directory.mkdir(parents=True, exist_ok=True)
        files = []
        for process, log in logs.items():
            for suffix, text_of in ((".csv", csv_text), (".json", json_text)):
                path = directory / f"{file_name(process)}{suffix}"
                path.write_text(text_of(log, path.name), encoding="utf-8")
                files.append(str(path))
        return Written(files)


def _check(data: RunData, graph: Mapping[str, Any]) -> None:
    from perflab.formats.performance_test.accounts import topics_of

    topics = topics_of(graph)
    if len(topics) != 1:
        raise BadInput(
            f"{data.path} measured {len(topics)} topics, but a log of performance_test covers one, like runs of "
            f"the workload pubsub; {_TABLES}"
        )


KIND: Kind[Exporter] = Kind(
    "performance_test", "in the format of performance_test 2.3", AccountingParameters, PerformanceTest
)
