"""Discovery churn beside a flood: endpoints or participants that perflab-churn creates and deletes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perflab.condition import Companion, NotInEffect, Trial, Window
from perflab.condition.evidence import ready
from perflab.condition.flood_graph import FloodParameters
from perflab.formats import records
from perflab.formats.json_file import write_json
from perflab.units import NS_PER_S

PROGRAM = "perflab-churn"
TOPIC_PREFIX = "perflab_churn_"  # name of its topics, as perflab-churn names them
MESSAGE_TYPE = "stamped10b"
READY_WITHIN_S = 30.0
# Share of the promised cycles, as for messages: see flood_evidence.
CYCLES_AT_LEAST = 0.95
# perflab-churn reports five times a second.
SILENT_AT_MOST_NS = 3 * NS_PER_S
FOUND = ("writer_found", "reader_found", "participant_found")
LOST = ("writer_lost", "reader_lost", "participant_lost")


@dataclass(frozen=True, kw_only=True)
class ChurnPromised:
    of: str
    """Endpoints or participants."""
    cycles_per_s: float
    """Number created and deleted."""
    topics: int
    """Topics used in turn."""


@dataclass(frozen=True, kw_only=True)
class ChurnAchieved:
    """As counted by perflab-churn; null if it reported nothing."""

    cycles: int | None = None
    """Created."""
    cycles_per_s: float | None = None
    """Created per second."""
    skipped: int | None = None
    """Cycles skipped because they were late."""
    deleted: int | None = None
    """Deleted."""
    discovered: Mapping[str, int] | None = None
    """What the trial's processes discovered and lost of it; null if their events were dropped."""


class Churn:
    """perflab-churn in one trial."""

    def __init__(self, parameters: FloodParameters, trial: Trial, label: str) -> None:
        self._parameters = parameters
        self._label = label
        folder = trial.directory / label
        folder.mkdir(parents=True, exist_ok=True)
        self._records = folder / "churn.jsonl"
        config = folder / "churn.json"
        # Each process discovers its own participant beside the others.
        write_json(config, self._configuration(trial.middleware_configuration, len(trial.graph.processes) + 1))
        program = trial.native.program(PROGRAM)
        variables = [f"{name}={value}" for name, value in trial.middleware_environment.items()]
        told = ["env", *variables] if variables else []
        self._companion: Companion = trial.start(
            f"{label}_churn",
            [*trial.launch.prefix, *told, program, "--config", config.absolute()],
            control=True,
            condition=label,
        )

    def settle(self) -> None:
        """Waits until it has joined the domain. Raises NotInEffect."""
        try:
            said = ready(self._companion, PROGRAM, READY_WITHIN_S)
        except NotInEffect as error:
            raise NotInEffect(f"{self._label}: churn: {error}") from error
        if said["type"] == "error":
            raise NotInEffect(f"{self._label}: churn: {said.get('text')}")

    def verify(self, folder: Path, window: Window) -> tuple[ChurnAchieved, str | None]:
        """What was achieved, from the records of the workload's processes in `folder`; and why that is not enough."""
        lines = records.lines(self._records, "progress")
        progress = [line for line in lines if line is not None and line.get("type") == "progress"]
        return judge(self._parameters, progress, seen(sorted(folder.glob("*.jsonl")), window), window)

    def stop(self) -> None:
        self._companion.stop()

    def _configuration(self, middleware: Mapping[str, Any], participants: int) -> dict[str, Any]:
        return {
            "middleware": dict(middleware),
            "what": self._parameters.churn_of,
            "rate_hz": self._parameters.churn,
            "topics": self._parameters.churn_topics,
            "type": MESSAGE_TYPE,
            "participants_expected": participants,
            "records": str(self._records.absolute()),
        }


def promised(parameters: FloodParameters) -> ChurnPromised:
    return ChurnPromised(of=parameters.churn_of, cycles_per_s=parameters.churn, topics=parameters.churn_topics)


def seen(files: Sequence[Path], window: Window) -> dict[str, int] | None:
    """What the processes of the trial discovered and lost of the churn in the window; None if events were dropped.

    Participants have no topic to distinguish them, but no others come within the window.
    """
    counts = dict.fromkeys((*FOUND, *LOST), 0)
    for file in files:
        for record in records.lines(file, "event"):
            if record is None or record.get("type") != "event":
                continue
            code = record.get("code")
            if code == "events_dropped":
                return None
            if code not in counts or not window.begin_ns <= record["at_ns"] <= window.end_ns:
                continue
            # The loss of an endpoint is reported only by identity, as is that of a participant.
            if code not in ("writer_found", "reader_found") or TOPIC_PREFIX in (record.get("text") or ""):
                counts[code] += 1
    return counts


def judge(
    parameters: FloodParameters,
    progress: Sequence[Mapping[str, Any]],
    discovered: Mapping[str, int] | None,
    window: Window,
) -> tuple[ChurnAchieved, str | None]:
    """What was achieved, and why that is not enough; None if it is."""
    before = [line for line in progress if line["at_ns"] <= window.begin_ns]
    within = [line for line in progress if window.begin_ns < line["at_ns"] <= window.end_ns]
    if not within:
        return ChurnAchieved(discovered=discovered), f"{PROGRAM} reported nothing in the measured part"
    first = before[-1] if before else within[0]
    last = within[-1]
    seconds = (last["at_ns"] - first["at_ns"]) / NS_PER_S
    cycles = last["created"] - first["created"]
    achieved = ChurnAchieved(
        cycles=cycles,
        cycles_per_s=cycles / seconds if seconds > 0 else None,
        skipped=last["skipped"] - first["skipped"],
        deleted=last["deleted"] - first["deleted"],
        discovered=discovered,
    )
    silent_ns = window.end_ns - last["at_ns"]
    if silent_ns > SILENT_AT_MOST_NS:
        return achieved, f"{PROGRAM} last reported {silent_ns / NS_PER_S:.1f} s before the end of the measured part"
    if cycles < CYCLES_AT_LEAST * parameters.churn * seconds - 1:
        return achieved, (
            f"{cycles} {parameters.churn_of} came and went in {seconds:.1f} s, of {parameters.churn * seconds:.0f} "
            f"promised; at least {CYCLES_AT_LEAST:.0%} is needed"
        )
    expected = FOUND if parameters.churn_of == "participants" else FOUND[:2]
    # An endpoint created just before the end may not have been reported yet.
    if discovered is not None and cycles > 1 and not any(discovered[code] for code in expected):
        return achieved, f"{cycles} {parameters.churn_of} came and went, but no process of the trial discovered any"
    return achieved, None
