"""`allocations`: how often the processes of the workload, and each of their threads, allocate.

A counting library is preloaded into them; perflab-node finds it and adds the counts to its resource records
(docs/formats.md, section 4).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from perflab import native
from perflab.condition import Trial
from perflab.errors import NotAsExpected, Unavailable
from perflab.host import Host
from perflab.native import Native
from perflab.observer import Observation, Observer
from perflab.parameters import Switch
from perflab.registry import Kind
from perflab.units import format_count

if TYPE_CHECKING:
    from perflab.results import trial as results

LIBRARY = "libperflab_allocations.so"
PRELOAD = "LD_PRELOAD"


class Allocations(Observer):
    """Preloads the counting library into every process of the workload, before other preloaded libraries."""

    name: ClassVar[str] = "allocations"
    on_virtual: ClassVar[str | None] = "resources are not recorded on virtual"
    on_command: ClassVar[str | None] = "perflab-node counts them"

    call_sites: Switch = Field(
        default=False,
        description="also record where, i.e. functions per thread; costs some microseconds per allocation",
    )

    def check(self, host: Host, runtime: str) -> None:
        super().check(host, runtime)
        library = _library(native.find())
        if not library.is_file():
            raise Unavailable(f"{library.name} is not in {library.parent}; build it with `make` in the perflab folder")
        # The dynamic linker takes both for the end of a name, and has no quotes.
        if any(letter in str(library) for letter in " :"):
            raise Unavailable(
                f"{self.name}: {PRELOAD} cannot name {library}: install perflab in a path without ' ', ':'"
            )

    def begin(self, trial: Trial) -> Observation:
        environment = trial.launch.environment
        before = environment.get(PRELOAD, os.environ.get(PRELOAD, ""))
        library = str(_library(trial.native))
        others = [word for word in before.replace(" ", ":").split(":") if word and word != library]
        environment[PRELOAD] = ":".join((library, *others))
        return Observation()

    def configure(self, configuration: dict[str, Any], native: Native) -> None:
        if self.call_sites:
            configuration["allocation_sites"] = True

    @classmethod
    def recorded(cls, trial: results.Trial, artifact: Callable[[str], Path]) -> str:
        if trial.allocations is None:
            raise NotAsExpected("no allocation was counted")
        return f"{format_count(trial.allocations)} allocations"


def _library(programs: Native) -> Path:
    return programs.folder / LIBRARY


KIND: Kind[Observer] = Kind("allocations", "memory allocations of each process and thread", Allocations)
