"""`cyclictest`: how late the kernel wakes a high-priority thread on the same CPUs, measured by rt-tests' program.

No executor timer can be better with the same policy, priority and CPUs: `like=executors` copies those from the kernel,
and reports differences. The lateness of a timer beyond this is caused by its executor, or by threads with a higher
priority. It changes nothing on the machine (`--default-system`): idle states stay as the trial has them.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field, model_validator

from perflab import processes, programs
from perflab.condition import Companion, Trial
from perflab.condition.evidence import allowed_cpus, cpu_words
from perflab.errors import NotAsExpected, PerflabError, Unavailable
from perflab.formats.json_file import read_json, write_json
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
LONGEST_US = 200_000  # range of the histograms; of longer latencies cyclictest reports only the count and the maximum


THREADS = Path(NAME) / "threads.json"  # the scheduling of its threads
REAL_TIME = ("FIFO", "RR")
STARTS_WITHIN_S = 5.0  # a thread that is on its CPU but does not have its policy yet may starve for a second
_STEP_S = 0.02
_NO_NUMBER = re.compile(r"-?\bnan\b")
_POLICIES = {os.SCHED_OTHER: "OTHER", os.SCHED_FIFO: "FIFO", os.SCHED_RR: "RR"}


@dataclass(frozen=True, order=True)
class Scheduling:
    """Scheduling shared by one or several threads, as the kernel reports it."""

    policy: str
    priority: int
    cpus: tuple[int, ...]

    @property
    def words(self) -> str:
        """ "RR 98 on CPU 1"."""
        level = f" {self.priority}" if self.priority else ""
        return f"{self.policy}{level} on {cpu_words(self.cpus)}"

    def is_floor_of(self, other: Scheduling) -> bool:
        """FIFO and RR differ only among threads of equal priority."""
        of_time = self.policy in REAL_TIME and other.policy in REAL_TIME
        alike = of_time or self.policy == other.policy
        return alike and (self.priority, self.cpus) == (other.priority, other.cpus)


class Cyclictest(Observer):
    """Runs `cyclictest` from when the workload is matched to the end of the measured part."""

    name: ClassVar[str] = NAME
    on_virtual: ClassVar[str | None] = "nothing sleeps in virtual time"

    interval: DurationNs = Field(
        default=1_000_000,
        validate_default=False,
        ge=100_000,
        le=NS_PER_S,
        description="time from one wake-up of a thread to its next, 100us to 1s (default: 1ms)",
    )
    like: Literal["executors"] | None = Field(
        default=None,
        description="executors: copy the policy, priority and CPUs of the threads that run callbacks, whatever "
        "these are in a trial",
    )
    policy: Literal["OTHER", "FIFO", "RR"] = Field(default="FIFO", description="scheduling policy of its threads")
    priority: int = Field(
        default_factory=lambda given: 0 if given.get("policy") == "OTHER" else 99,
        ge=0,
        le=99,
        description="1 to 99 with FIFO and RR (default 99, above all others), 0 with OTHER",
    )
    cpus: Cpus = Field(
        default_factory=allowed_cpus, description="CPUs, with one thread on each (default: all that perflab may use)"
    )

    @model_validator(mode="after")
    def _priority_of_policy(self) -> Cyclictest:
        if self.like is not None and (given := self.model_fields_set & {"policy", "priority", "cpus"}):
            raise ValueError(f"like={self.like} says the {', '.join(sorted(given))}")
        if (self.policy == "OTHER") != (self.priority == 0):
            right = "0" if self.policy == "OTHER" else "1 to 99"
            raise ValueError(f"priority of {self.policy} is {right}, not {self.priority}")
        return self

    def check(self, host: Host, runtime: str) -> None:
        super().check(host, runtime)
        find()
        if self.like is None and self.priority and not host.may_be_real_time(self.priority):
            raise Unavailable(
                f"{NAME}: this user may not use {self.policy} {self.priority}; run as root, set `rtprio 99` in "
                "/etc/security/limits.d/perflab.conf, or use policy=OTHER"
            )

    def begin(self, trial: Trial) -> Observation:
        return Running(self, trial)

    @classmethod
    def histograms(cls, directory: Path, checkpoints: Sequence[Mapping[str, Any]]) -> Mapping[str, Histogram]:
        del checkpoints
        found = merged(directory / FILE) if (directory / FILE).is_file() else None
        return {NAME: found} if found is not None and found.count else {}  # threads may starve all the time

    @classmethod
    def remarks(cls, directory: Path, threads: Sequence[results.ThreadGroup]) -> Sequence[str]:
        """Why it is not a lower bound of the executors' timers."""
        if not (directory / THREADS).is_file():
            return ()
        own = Scheduling(**(read := read_json(directory / THREADS)) | {"cpus": tuple(read["cpus"])})
        of = sorted({Scheduling(t.policy, t.priority, tuple(t.cpus)) for t in threads if t.role == "executor"})
        others = [one for one in of if not own.is_floor_of(one)]
        if not others:
            return ()
        said = "; ".join(one.words for one in others)
        return (f"it ran with {own.words}, but executors with {said}: it is not a lower bound of their timers",)

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
        wanted = self._wanted()
        self._file.parent.mkdir(exist_ok=True)
        # For OTHER no priority may be given: cyclictest takes any priority for FIFO.
        priority = (f"--priority={wanted.priority}",) if wanted.policy in REAL_TIME else ()
        self._program = self._trial.start(
            NAME,
            [
                find(),
                *("--quiet", "--mlockall", "--default-system", f"--policy={wanted.policy.lower()}", *priority),
                *(f"--threads={len(wanted.cpus)}", f"--affinity={','.join(map(str, wanted.cpus))}"),
                *(f"--interval={self._asked.interval // 1000}", "--distance=0", f"--histogram={LONGEST_US}"),
                *("--histfile=/dev/null", f"--json={self._file}"),
            ],
        )
        self._read_back(self._program, wanted)

    def _wanted(self) -> Scheduling:
        asked = self._asked
        if asked.like is None:
            return Scheduling(asked.policy, asked.priority, tuple(sorted(asked.cpus)))
        found = sorted(self._executors())
        if len(found) != 1:
            said = "; ".join(one.words for one in found) or "none is known"
            raise PerflabError(f"{NAME}: like=executors needs executors with the same scheduling: {said}")
        if found[0].policy not in (*REAL_TIME, "OTHER"):
            raise PerflabError(f"{NAME}: it has no threads with {found[0].policy}, the executors' policy")
        return found[0]

    def _executors(self) -> set[Scheduling]:
        """The requested scheduling, which a process verifies before the measured part; else that of its process."""
        found = set()
        for name, pid in self._trial.processes.items():
            given = read_json(self._trial.directory / "processes" / f"{name}.config.json")
            (own,) = (process for process in given["graph"]["processes"] if process["name"] == given["process"])
            of_process = _scheduling_of(pid)
            for executor in own["executors"]:
                asked = given["threads"]["executors"] or executor["thread"] or own["threads"]["executors"] or {}
                policy = asked.get("policy")
                found.add(
                    Scheduling(
                        policy or of_process.policy,
                        asked["priority"] if policy else of_process.priority,
                        tuple(asked.get("cpus") or of_process.cpus),
                    )
                )
        return found

    def _read_back(self, program: Companion, wanted: Scheduling) -> None:
        """The scheduling of its threads, from the kernel. Raises PerflabError if it differs from the request."""
        found: list[Scheduling] = []
        for _ in range(round(STARTS_WITHIN_S / _STEP_S)):
            found = [] if program.pid is None else _threads_of(program.pid)
            if sorted(found) == [replace(wanted, cpus=(cpu,)) for cpu in wanted.cpus]:
                break
            self._trial.wait(_STEP_S)
        else:
            said = "; ".join(one.words for one in sorted(set(found))) or "none"
            raise PerflabError(f"{NAME}: its threads must be {wanted.words}, but are {said}; see {program.log}")
        write_json(self._trial.directory / THREADS, asdict(wanted))

    def stop(self) -> list[Artifact]:
        if self._program is None:
            return []  # the trial ended before the workload ran
        self._program.stop()
        if not self._file.is_file():
            raise PerflabError(f"it wrote no {self._file}; its output is in {self._program.log}")
        return [Artifact(self._file, NAME)]


def find() -> Path:
    """Raises Unavailable."""
    return programs.find(NAME, "apt-get install rt-tests")


def _threads_of(pid: int) -> list[Scheduling]:
    """The measuring threads, i.e. all but the first; without those that end meanwhile."""
    found = []
    for tid in (tid for tid, _ in processes.threads_of(pid) if tid != pid):
        with contextlib.suppress(ProcessLookupError):
            found.append(_scheduling_of(tid))
    return found


def _scheduling_of(tid: int) -> Scheduling:
    """Raises ProcessLookupError."""
    policy = _POLICIES.get(os.sched_getscheduler(tid) & ~os.SCHED_RESET_ON_FORK, "another policy")
    return Scheduling(policy, os.sched_getparam(tid).sched_priority, tuple(sorted(os.sched_getaffinity(tid))))


def merged(path: Path) -> Histogram:
    """The latencies of all threads in one of its files, in ns. Raises one of DAMAGE, OSError."""
    from perflab.statistics import histogram as hg

    # The average over no wake-ups is written as -nan, which is not JSON.
    document = json.loads(_NO_NUMBER.sub("null", path.read_text("utf-8")))
    return hg.merge(_of_thread(thread) for thread in document["thread"].values())


def _of_thread(thread: Mapping[str, Any]) -> Histogram:
    """It counts whole microseconds; the middle of each is used. Latencies beyond its histogram count as its maximum,
    the only one that it reports."""
    from perflab.statistics import histogram as hg

    counts = {int(us): int(n) for us, n in thread["histogram"].items()}
    beyond = max(0, int(thread["cycles"]) - sum(counts.values()))
    counts[int(thread["max"])] = counts.get(int(thread["max"]), 0) + beyond
    return hg.from_counts({us * 1000 + 500: n for us, n in counts.items() if n})


KIND: Kind[Observer] = Kind(
    NAME, "how late the kernel wakes high-priority threads: the lower bound of all timers", Cyclictest
)
