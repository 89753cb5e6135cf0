"""A trial as a value: everything that `run_trial` needs, here or in another process.

Facts about the run, not the trial (its place in the plan, its treatment's name), are not in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from perflab.condition import Condition
from perflab.design.settings import Settings
from perflab.design.variant import Variant
from perflab.errors import DAMAGE, BadInput
from perflab.formats.json_file import read_json, write_json
from perflab.host import Host
from perflab.mitigation import names_of
from perflab.mitigation.kinds import PARTS
from perflab.native import Native
from perflab.observer import Observer
from perflab.observer.kinds import REGISTRY as OBSERVERS
from perflab.results.files import TrialFile, TrialMiddleware, TrialProcess, utc_now
from perflab.runs.rundir import TrialDirectory
from perflab.specification import written
from perflab.units import NS_PER_S
from perflab.workload import Graph, file_name, outside
from perflab.workload.command import Command, CommandParameters

SCHEMA = 1


@dataclass(frozen=True)
class TrialPlan:
    """One trial. `graph` includes the conditions' additions, resolved for the machine that it runs on."""

    graph: Graph
    variant: Variant
    settings: Settings
    seed: int  # of this trial: that of the settings is the run's
    domain: int | None
    native: Native
    conditions: tuple[Condition, ...] = ()
    observers: tuple[Observer, ...] = ()
    monitored: bool = False
    command: Command | None = None  # the workload, if it is not a graph

    @property
    def hosted(self) -> Graph:
        """The part of the graph that perflab-node runs."""
        return self.graph.with_nodes

    @property
    def discovery_timeout_ns(self) -> int:
        """Processes that are not perflab's have their own limit, as they may take longer to start."""
        asked_ns = self.settings.discovery_timeout_ns
        return outside.wait_ns(self.graph) or asked_ns if asked_ns > 0 else asked_ns

    @property
    def names(self) -> dict[str | None, str]:
        """For every process of perflab's in the graph, or a command (None: all in one), the name of its files, without
        duplicates."""
        if self.variant.runtime == "virtual":
            return {None: file_name(self.graph.name)}
        names: dict[str | None, str] = {}
        for process in self.graph.processes:
            if process in self.graph.outside:
                continue
            stem = name = file_name(process)
            number = 2
            while name in names.values():
                name, number = f"{stem}_{number}", number + 1
            names[process] = name
        return names

    @property
    def node_names(self) -> dict[str | None, str]:
        """The same for those that perflab-node runs."""
        hosted = self.hosted.processes
        return {process: name for process, name in self.names.items() if process is None or process in hosted}

    def begun(self) -> TrialFile:
        """The initial trial.json of a trial that stands alone."""
        variant, of_conditions = self.variant, self.graph.condition_processes
        return TrialFile(
            trial=1,
            order=1,
            status="running",
            outcome=None,
            reason=None,
            workload=self.graph.name if self.command is None else self.command.name,
            middleware=self._middleware(),
            **variant.document(),
            service_framing=variant.service_framing,
            conditions=tuple(c.name for c in self.conditions),
            mitigations=tuple(names_of(self.conditions)),
            condition_parameters={c.label: c.parameters for c in self.conditions},
            observers=tuple(o.name for o in self.observers),
            duration_s=self.settings.duration_ns / NS_PER_S,
            warmup_s=self.settings.warmup_ns / NS_PER_S,
            domain=self.domain,
            boot_id=Host().boot_id(),
            started_utc=utc_now(),
            processes={
                name: TrialProcess(process=process, condition=of_conditions.get(process or ""))
                for process, name in self.names.items()
            },
        )

    def _middleware(self) -> TrialMiddleware:
        """The middleware of all processes; if each has its own, `processes` names it."""
        first, *others = self.variant.middlewares
        if not others and self.command is None:
            return TrialMiddleware(**vars(first.used))
        own = [process for process in self.graph.processes if process not in self.graph.condition_processes]
        each = zip(own, self.variant.middlewares, strict=True) if others else ()
        return TrialMiddleware(
            name=self.variant.middleware_name, processes={process: m.used for process, m in each} or None
        )

    def write(self, directory: TrialDirectory) -> None:
        """Writes the plan into the trial's folder. Raises OSError."""
        command = self.command
        write_json(
            directory.plan,
            {
                "schema": SCHEMA,
                "variant": TypeAdapter(Variant).dump_python(self.variant, mode="json"),
                "conditions": [{"name": c.name, "number": c.number, "parameters": c.written} for c in self.conditions],
                "observers": [{"name": o.name, "parameters": o.written} for o in self.observers],
                "settings": self.settings.document(),
                "seed": self.seed,
                "domain": self.domain,
                "native": str(self.native.folder),
                "monitored": self.monitored,
                "command": command and {"name": command.name, "parameters": written(command.parameters)},
                "graph": self.graph.document,
            },
        )

    @classmethod
    def read(cls, directory: TrialDirectory) -> TrialPlan:
        """Reads the result of `write`. Raises BadInput."""
        document = read_json(directory.plan)
        try:
            return cls._of(document)
        except DAMAGE as error:
            raise BadInput(f"{directory.plan} is damaged: {error}") from error

    @classmethod
    def _of(cls, document: Mapping[str, Any]) -> TrialPlan:
        if document["schema"] != SCHEMA:
            raise BadInput(f"the plan of the trial has schema {document['schema']}, but this perflab reads {SCHEMA}")
        command = document["command"]
        return cls(
            graph=Graph(document["graph"]),
            variant=TypeAdapter(Variant).validate_python(document["variant"]),
            settings=Settings.read(document["settings"]),
            seed=int(document["seed"]),
            domain=document["domain"],
            native=Native(Path(document["native"])),
            conditions=tuple(
                PARTS[c["name"]].make(c["parameters"], c["name"]).numbered(c["number"]) for c in document["conditions"]
            ),
            observers=tuple(OBSERVERS[o["name"]].make(o["parameters"], o["name"]) for o in document["observers"]),
            monitored=bool(document["monitored"]),
            command=command and Command(command["name"], CommandParameters.model_validate(command["parameters"])),
        )
