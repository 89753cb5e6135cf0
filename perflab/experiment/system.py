"""What a trial runs, seen from the phases of the trial: nodes of a graph, a command; whatever else can do these things.

launch - ready - start - progress - drain - end, in this order and each once; `farewell` instead where it broke off, and
`close` and `records` always. Meanwhile `hear` gets every event of the processes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from perflab.condition import Window
from perflab.errors import PerflabError, one_line
from perflab.experiment.supervisor import Event
from perflab.observer import Artifact
from perflab.results.outcome import BrokenOff, Outcome

LOOK_INTERVAL_S = 0.05  # between two looks at what says nothing by itself


class Failed(Exception):
    """The trial cannot go on."""

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
        self.last = last  # no further trial makes sense
        self.error = error  # what the command ends with, where that is not "a trial failed"
        self.condition = condition  # the label of the one that is to blame
        self.broken_off = broken_off


class System(ABC):
    """Every method but `close` and `records` raises Failed, PerflabError, NotInEffect."""

    @abstractmethod
    def launch(self) -> None:
        """Starts the processes, as conditions and observers want them launched."""

    @abstractmethod
    def ready(self) -> None:
        """Waits until measuring may begin."""

    @abstractmethod
    def start(self) -> None:
        """Says when the warm-up begins."""

    @abstractmethod
    def progress(self) -> None:
        """Until its schedule has ended: nothing is published any more by itself, or counts."""

    @abstractmethod
    def drain(self) -> None:
        """Until what is on its way has arrived."""

    @abstractmethod
    def end(self) -> None:
        """Last records, and the end of every process, in order."""

    @abstractmethod
    def farewell(self) -> None:
        """Lets processes that still run write what they have, for a bounded time. Raises nothing."""

    @abstractmethod
    def close(self) -> list[str]:
        """Ends what is left while the conditions are still there; what could not be ended, one line each."""

    @abstractmethod
    def records(self, artifacts: Sequence[Artifact]) -> None:
        """After everything has ended: completes the records and trial.json."""

    @abstractmethod
    def hear(self, event: Event) -> bool:
        """Takes in what happened. False where it did not happen to this system."""

    @property
    @abstractmethod
    def scheduled(self) -> Window:
        """The measured part as it was planned; after `start`."""

    @property
    @abstractmethod
    def published_until_ns(self) -> int:
        """When the last message was published; later than scheduled where it was behind. After `progress`."""

    @property
    @abstractmethod
    def shared_memory(self) -> list[str]:
        """What it made in /dev/shm, as far as it has told."""
