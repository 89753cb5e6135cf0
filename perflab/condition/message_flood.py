"""message_flood: publishers that send as fast as they are told, as a part of the graph.

The flood's publishers and readers are nodes like any other, so that every middleware and executor carries them and they
are counted as the workload is: by whom sent, and by whom received. A flood that nobody reads costs a middleware next to
nothing, for it is not sent; so readers are what this condition is about.

Example:
    --condition message_flood:publishers=4,rate=1000,payload=1kB,readers=external
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, cast

from perflab import native
from perflab.condition import AFTER, Condition, Evidence, NotInEffect, Trial, Window, flood_churn, flood_evidence
from perflab.condition.flood_graph import DEFAULT_PAYLOAD, DEFAULT_PUBLISHERS, Flood, MessageType, lay_out
from perflab.condition.flood_parameters import FloodParameters
from perflab.errors import Unavailable
from perflab.formats.records import RecordError
from perflab.host import Host
from perflab.registry import Kind
from perflab.units import is_zero
from perflab.workload import Graph, topology

NAME = "message_flood"


class FloodTrial(Trial, Protocol):
    """What churn needs of a trial beside the rest."""

    @property
    def middleware_configuration(self) -> Mapping[str, Any]:
        """The `middleware` member of a node's configuration (docs/formats.md, section 2)."""
        ...


class MessageFlood(Condition):
    """Publishers of messages that the workload does not want, with or without readers, and churn of discovery."""

    name: ClassVar[str] = NAME
    when: str = AFTER  # of the churn: the workload's own discovery is over
    ends_by_schedule: ClassVar[bool] = True

    def __init__(self, parameters: FloodParameters, types: tuple[MessageType, ...] | None = None) -> None:
        """`types`: the message types; perflab-graph is asked where they are not given."""
        self.label = NAME
        self._given = parameters
        self._types = types
        self._flood: Flood | None = None
        self._virtual = False
        self._churn: flood_churn.Churn | None = None

    @property
    def parameters(self) -> dict[str, Any]:
        document = self._given.model_dump(mode="json")
        on_topics = self._given.readers == "topics"
        if self._given.publishers is None:
            document["publishers"] = 1 if on_topics else DEFAULT_PUBLISHERS
        if self._given.payload is None and not on_topics:
            document["payload"] = DEFAULT_PAYLOAD
        if self._given.depth is None and self._given.history == "keep_last":
            document["depth"] = self._given.qos["depth"]
        return document

    def check(self, host: Host, graph: Graph, runtime: str) -> None:
        self._virtual = runtime == "virtual"
        if self._virtual and self._given.churn:
            raise Unavailable("message_flood: churn: virtual time has no discovery; use a real middleware")
        self._lay_out(graph)
        if self._given.churn:
            native.find().program(flood_churn.PROGRAM)

    def extend(self, graph: Graph) -> Graph:
        self._flood = self._lay_out(graph)
        return self._flood.graph

    def apply(self, trial: Trial) -> None:
        if not self._given.churn:
            return
        middleware = cast(FloodTrial, trial).middleware_configuration
        participants = len(self._laid_out().graph.processes) + 1
        self._churn = flood_churn.Churn(self._given, trial, self.label, middleware, participants)

    def settle(self, trial: Trial) -> None:
        if self._churn is not None:
            self._churn.settle()

    def verify(self, trial: Trial, window: Window) -> Evidence:
        flood = self._laid_out()
        folder = trial.directory / "processes"
        try:
            evidence = self._flood_evidence(flood, trial, window)
            if self._churn is not None:
                achieved, reason = self._churn.verify(folder, window)
                evidence["promised"]["churn"] = flood_churn.promised(self._given)
                evidence["achieved"] = {**(evidence["achieved"] or {}), "churn": achieved}
                if reason is not None and evidence["in_effect"]:
                    evidence |= {"in_effect": False, "reason": reason}
        except (RecordError, OSError) as error:
            raise NotInEffect(f"records cannot be read: {error}") from error
        return evidence

    def remove(self, trial: Trial) -> None:
        churn, self._churn = self._churn, None
        if churn is not None:
            churn.stop()

    def _flood_evidence(self, flood: Flood, trial: Trial, window: Window) -> Evidence:
        if not flood.publishers:  # churn alone
            return {"promised": {"publishers": 0}, "achieved": {}, "in_effect": True, "reason": None, "notes": []}
        counts = trial.counts(self.label)
        if self._virtual:
            known = flood_evidence.in_virtual_time(counts, window)
        else:
            own = [name for name, label in flood.graph.condition_nodes().items() if label == self.label]
            known = flood_evidence.account(trial.directory / "processes", self.label, counts, window, own)
        return flood_evidence.judge(flood, self._given, known, window, seconds=not self._virtual)

    def _laid_out(self) -> Flood:
        if self._flood is None:
            raise RuntimeError(f"{self.label} has not extended a graph")
        return self._flood

    def _lay_out(self, graph: Graph) -> Flood:
        return lay_out(graph, self.label, self._given, self._types or _known_types())


@functools.cache
def _known_types() -> tuple[MessageType, ...]:
    return tuple(
        MessageType(str(entry["name"]), None if entry["variable"] else int(entry["payload_bytes"]))
        for entry in topology.message_types(native.find())
    )


KIND: Kind[Condition] = Kind(
    NAME,
    "publishers on topics of their own or of the workload, with readers outside or inside it, and discovery churn",
    FloodParameters,
    MessageFlood,
    is_off=lambda written: (
        not written.get("churn") and (is_zero(written.get("rate")) or is_zero(written.get("publishers")))
    ),
)
