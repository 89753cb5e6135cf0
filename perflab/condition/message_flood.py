"""message_flood: publishers that send at a given rate, as a part of the graph.

The flood's publishers and readers are ordinary nodes, so that every middleware and executor carries them and they are
counted like the workload, by senders and receivers. A flood without readers costs a middleware almost nothing, because
nothing is sent; so readers are the essence of this condition.

Example:
    --condition message_flood:publishers=4,rate=1000,payload=1kB,readers=external
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from perflab import native
from perflab.condition import (
    AFTER,
    Applied,
    Condition,
    Evidence,
    NotInEffect,
    Trial,
    Window,
    flood_churn,
    flood_evidence,
)
from perflab.condition.flood_evidence import Achieved, FloodEvidence, Promised
from perflab.condition.flood_graph import (
    DEFAULT_PAYLOAD,
    DEFAULT_PUBLISHERS,
    Flood,
    FloodParameters,
    MessageType,
    lay_out,
)
from perflab.errors import Unavailable
from perflab.formats.records import RecordError
from perflab.host import Host
from perflab.registry import Kind
from perflab.units import format_bytes, format_count, format_rate, is_zero
from perflab.workload import Graph, topology

NAME = "message_flood"


class MessageFlood(FloodParameters, Condition):
    """Publishers of messages that the workload does not need, with or without readers, and discovery churn."""

    name: ClassVar[str] = NAME
    from_beside: ClassVar[bool] = True
    evidence: ClassVar[type[Evidence]] = FloodEvidence
    ends_by_schedule: ClassVar[bool] = True

    @property
    def begins(self) -> str:
        return AFTER  # churn starts now: the workload's own discovery has finished

    @property
    def parameters(self) -> dict[str, Any]:
        document = self.written | {"work": self.work}
        on_topics = self.readers == "topics"
        if self.publishers is None:
            document["publishers"] = 1 if on_topics else DEFAULT_PUBLISHERS
        if self.payload is None and not on_topics:
            document["payload"] = DEFAULT_PAYLOAD
        if self.depth is None and self.history == "keep_last":
            document["depth"] = self.qos["depth"]
        return document

    def check(self, host: Host, graph: Graph, runtime: str) -> None:
        if runtime == "virtual" and self.churn:
            raise Unavailable("message_flood: churn: virtual time has no discovery; use a real middleware")
        self.extend(graph)
        if self.churn:
            native.find().program(flood_churn.PROGRAM)

    def extend(self, graph: Graph) -> Graph:
        return lay_out(graph, self.label, self, known_types())

    def begin(self, trial: Trial) -> Flooded:
        return Flooded(self, trial)


class Flooded(Applied):
    """The flood of one trial, whose messages the graph carries, and its churn."""

    def __init__(self, asked: MessageFlood, trial: Trial) -> None:
        self.asked = asked
        self.trial = trial
        self.flood = Flood.of(trial.graph, asked.label, asked)
        self.churn = flood_churn.Churn(asked, trial, asked.label) if asked.churn else None

    def settle(self) -> None:
        if self.churn is not None:
            self.churn.settle()

    def verify(self, window: Window) -> Evidence:
        folder = self.trial.directory / "processes"
        try:
            evidence = self._flood_evidence(folder, window)
            if self.churn is not None:
                churned, reason = self.churn.verify(folder, window)
                evidence = replace(
                    evidence,
                    promised=replace(evidence.promised, churn=flood_churn.promised(self.asked)),
                    achieved=replace(evidence.achieved or Achieved(), churn=churned),
                    reason=evidence.reason or reason,
                )
        except (RecordError, OSError) as error:
            raise NotInEffect(f"records cannot be read: {error}") from error
        return evidence

    def remove(self) -> None:
        if self.churn is not None:
            self.churn.stop()

    def _flood_evidence(self, folder: Path, window: Window) -> FloodEvidence:
        if not self.flood.publishers:  # churn alone
            return FloodEvidence(promised=Promised(publishers=0), achieved=Achieved())
        label, virtual = self.asked.label, self.trial.runtime == "virtual"
        counts = self.trial.counts(label)
        if virtual:
            known = flood_evidence.in_virtual_time(counts, window)
        else:
            own = [name for name, _ in self.trial.graph.nodes_of(label)]
            known = flood_evidence.account(folder, label, counts, window, own)
        return flood_evidence.judge(self.flood, known, window, seconds=not virtual)


@functools.cache
def known_types() -> tuple[MessageType, ...]:
    return tuple(
        MessageType(
            str(entry["name"]),
            None if entry["variable"] else int(entry["payload_bytes"]),
            usual=entry["family"] == "Stamped",
        )
        for entry in topology.message_types(native.find())
    )


def words(given: Mapping[str, Any]) -> str:
    parts = []
    if given["publishers"] and given["rate"]:
        of_its_own = given["readers"] != "topics"
        size = f" of {format_bytes(given['payload'])}" if of_its_own else ""
        readers = {"none": " without readers", "inside": " read inside the workload", "topics": " on its own topics"}
        rate = format_count(round(given["rate"])) if given["rate"] >= 1000 else format_rate(given["rate"])
        how = f"{size}{readers.get(given['readers'], '')}"
        parts.append(f"a flood of {given['publishers']} × {rate} messages/s{how}")
    if given.get("churn"):
        parts.append(f"{given['churn']:g} {given['churn_of']} coming and going per second")
    return " and ".join(parts) or f"{NAME} switched off"


KIND: Kind[Condition] = Kind(
    NAME,
    "publishers on topics of their own or of the workload, with readers outside or inside it, and discovery churn",
    MessageFlood,
    words=words,
    is_off=lambda written: (
        not written.get("churn") and (is_zero(written.get("rate")) or is_zero(written.get("publishers")))
    ),
    gently=("publishers=1,rate=200,at_least=80",),
)
