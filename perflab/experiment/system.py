"""What a trial runs, as seen by the phases of the trial: nodes of a graph, a command, or anything else with these
methods.

launch - ready - start - progress - drain - end, in this order and each once; `farewell` instead if the trial ends
early, and `close` and `records` always. Meanwhile `hear` receives every event of the processes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from perflab.condition import Window
from perflab.errors import PerflabError, one_line
from perflab.experiment.supervisor import Event
from perflab.observer import Artifact
from perflab.results.outcome import BrokenOff, Outcome

LOOK_INTERVAL_S = 0.05  # between two checks of things that send no events


class Failed(Exception):
    """The trial cannot continue."""

    def __init__(
        self,
        outcome: Outcome,
        reason: str,
        *,
        last: bool = False,
        error: PerflabError | None = None,
        condition: str | None = None,
        broken_off: BrokenOff | None = None,
    ) -> None:
        super().__init__(reason)
        self.outcome = outcome
        self.reason = one_line(reason)
        self.last = last  # further trials are pointless
        self.error = error  # the command's exit code, if not "a trial failed"
        self.condition = condition  # the label of the condition at fault
        self.broken_off = broken_off


class System(ABC):
    """Every method but `close` and `records` raises Failed, PerflabError, NotInEffect."""

    @abstractmethod
    def launch(self) -> None:
        """Starts the processes, launched as conditions and observers require."""

    @abstractmethod
    def ready(self) -> None:
        """Waits until measuring may begin."""

    @abstractmethod
    def start(self) -> None:
        """Announces the beginning of the warm-up."""

    @abstractmethod
    def progress(self) -> None:
        """Until its schedule has ended: nothing is published any more by itself, or counts."""

    @abstractmethod
    def drain(self) -> None:
        """Until messages under way have arrived."""

    @abstractmethod
    def end(self) -> None:
        """Last records, and the end of every process, in order."""

    @abstractmethod
    def farewell(self) -> None:
        """Lets processes that still run write their data, for a bounded time. Raises nothing."""

    @abstractmethod
    def close(self) -> list[str]:
        """Ends what is left while the conditions are still in effect; returns what could not be ended, one line
        each."""

    @abstractmethod
    def records(self, artifacts: Sequence[Artifact]) -> None:
        """After everything has ended: completes the records and trial.json."""

    @abstractmethod
    def hear(self, event: Event) -> bool:
        """Handles an event. False if it belongs to another system."""

    @property
    @abstractmethod
    def scheduled(self) -> Window:
        """The planned measured part; after `start`."""

    @property
    @abstractmethod
    def published_until_ns(self) -> int:
        """When the last message was published; later than scheduled if it was behind. After `progress`."""

    @property
    @abstractmethod
    def shared_memory(self) -> list[str]:
        """Its files in /dev/shm, as far as reported."""
