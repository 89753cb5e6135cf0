"""`cyclictest`: how late the kernel wakes a thread of high priority on the same CPUs, by rt-tests' program.

No timer of an executor can be better. What a timer is later than this is its executor's delay, or the wait for threads
with a higher priority. It changes nothing of the machine (`--default-system`): idle states stay as the trial has them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field, model_validator

from perflab import programs
from perflab.condition import Companion, Trial
from perflab.condition.evidence import allowed_cpus
from perflab.errors import NotAsExpected, PerflabError, Unavailable
from perflab.formats.json_file import read_json
from perflab.host import Host
from perflab.observer import Artifact, Observation, Observer
from perflab.parameters import Cpus, DurationNs
from perflab.registry import Kind
from perflab.units import NS_PER_S, format_count, format_time

if TYPE_CHECKING:
    from perflab.results import trial as results
    from perflab.statistics.histogram import Histogram

NAME = "cyclictest"
FILE = Path(NAME) / "histograms.json"
LONGEST_US = 200_000  # of the histograms; with what is beyond it cyclictest tells how many there were, and the greatest


class Cyclictest(Observer):
    """Runs `cyclictest` from when the workload is matched to the end of the measured part."""

    name: ClassVar[str] = NAME
    on_virtual: ClassVar[str | None] = "nothing sleeps in virtual time"

    interval: DurationNs = Field(
        default=1_000_000,
        validate_default=False,
        ge=100_000,
        le=NS_PER_S,
        description="from one wake-up of a thread to its next, 100us to 1s (default: 1ms)",
    )
    policy: Literal["OTHER", "FIFO", "RR"] = Field(default="FIFO", description="scheduling policy of its threads")
    priority: int = Field(
        default_factory=lambda given: 0 if given.get("policy") == "OTHER" else 99,
        ge=0,
        le=99,
        description="1 to 99 with FIFO and RR (default 99, above all others), 0 with OTHER",
    )
    cpus: Cpus = Field(
        default_factory=allowed_cpus, description="one thread on each (default: all that perflab may use)"
    )

    @model_validator(mode="after")
    def _priority_of_policy(self) -> Cyclictest:
        if (self.policy == "OTHER") != (self.priority == 0):
            right = "0" if self.policy == "OTHER" else "1 to 99"
            raise ValueError(f"priority of {self.policy} is {right}, not {self.priority}")
        return self

    def check(self, host: Host, runtime: str) -> None:
        super().check(host, runtime)
        find()
        if self.priority and not host.may_be_real_time(self.priority):
            raise Unavailable(
                f"{NAME}: this user may not have {self.policy} {self.priority}; run as root, set `rtprio 99` in "
                "/etc/security/limits.d/perflab.conf, or take policy=OTHER"
            )

    def begin(self, trial: Trial) -> Observation:
        return Running(self, trial)

    @classmethod
    def histograms(cls, directory: Path, checkpoints: Sequence[Mapping[str, Any]]) -> Mapping[str, Histogram]:
        del checkpoints
        return {NAME: merged(directory / FILE)} if (directory / FILE).is_file() else {}

    @classmethod
    def recorded(cls, trial: results.Trial, artifact: Callable[[str], Path]) -> str:
        found = trial.observed_ns.get(NAME)
        if not found or not found.count:
            raise NotAsExpected("no wake-up was recorded")
        return f"{format_count(found.count)} wake-ups, p99 {format_time(found.p99)}"


class Running(Observation):
    """The program of one trial."""

    def __init__(self, asked: Cyclictest, trial: Trial) -> None:
        self._asked, self._trial = asked, trial
        self._file = trial.directory / FILE
        self._program: Companion | None = None

    def start(self) -> None:
        asked = self._asked
        self._file.parent.mkdir(exist_ok=True)
        self._program = self._trial.start(
            NAME,
            [
                find(),
                *("--quiet", "--mlockall", "--default-system", f"--policy={asked.policy.lower()}"),
                *(f"--priority={asked.priority}", f"--threads={len(asked.cpus)}"),
                *(f"--affinity={','.join(map(str, asked.cpus))}", f"--interval={asked.interval // 1000}"),
                *("--distance=0", f"--histogram={LONGEST_US}", "--histfile=/dev/null", f"--json={self._file}"),
            ],
        )

    def stop(self) -> list[Artifact]:
        if self._program is None:
            return []  # the trial ended before the workload was there
        self._program.stop()
        if not self._file.is_file():
            raise PerflabError(f"it wrote no {self._file}; its words are in {self._program.log}")
        return [Artifact(self._file, NAME)]


def find() -> Path:
    """Raises Unavailable."""
    return programs.find(NAME, "apt-get install rt-tests")


def merged(path: Path) -> Histogram:
    """Of all threads of a file of its, in ns. Raises one of DAMAGE, OSError."""
    from perflab.statistics import histogram as hg

    return hg.merge(_of_thread(thread) for thread in read_json(path)["thread"].values())


def _of_thread(thread: Mapping[str, Any]) -> Histogram:
    """It counts whole microseconds, of which the middle is taken. What is beyond its histogram is
    taken as its maximum, the only one that it tells."""
    from perflab.statistics import histogram as hg

    counts = {int(us): int(n) for us, n in thread["histogram"].items()}
    beyond = max(0, int(thread["cycles"]) - sum(counts.values()))
    counts[int(thread["max"])] = counts.get(int(thread["max"]), 0) + beyond
    return hg.from_counts({us * 1000 + 500: n for us, n in counts.items() if n})


KIND: Kind[Observer] = Kind(
    NAME, "how late the kernel wakes threads of high priority: the floor of all timers", Cyclictest
)
