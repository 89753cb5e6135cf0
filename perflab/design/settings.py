"""The user's request, checked and with every default filled in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, BeforeValidator, TypeAdapter

from perflab.design import document
from perflab.design.document import Document, Scalar, Thresholds
from perflab.design.scheduling import ThreadRequest
from perflab.design.treatments import EXTRA, AsPlanned, Course, Planned, Treatment
from perflab.design.variant import Variant
from perflab.middleware import alike
from perflab.results.files import LeftOutTreatment, NotRecorded, StoppingRule
from perflab.units import NS_PER_S
from perflab.workload import Pins, Source, Workload

if TYPE_CHECKING:
    from perflab.design.breaking_point import Goal
    from perflab.design.until_decided import Foreseen, Judge
    from perflab.results.comparison import Looks

CHECKPOINT_NS = 5 * NS_PER_S
MIN_SAMPLING_NS = 10_000_000

# Estimated time of a trial beyond warm-up and measured part, until one has run: on two CPUs 1.3 to 1.7 s in trials of
# sierra_nevada, for starting and matching processes, the last messages, and the records.
BESIDE_S = 2.0


def _default(key: str, model: type[BaseModel] = Document) -> Any:
    """The request in an experiment."""
    return model.model_fields[key].default


def _as_kept(kept: Any) -> Any:
    """Converts the user's durations to nanoseconds."""
    return Thresholds.model_construct(**kept) if isinstance(kept, dict) else kept


@dataclass(frozen=True)
class UnavailableLevel:
    """A level of a factor that this machine cannot produce."""

    factor: str
    level: Scalar
    reason: str


@dataclass(frozen=True)
class Limits:
    """How long perflab waits for a node. Limits only; none of them is part of a measurement."""

    created_ns: int = 60 * NS_PER_S
    silence_ns: int = 30 * NS_PER_S
    done_ns: int = 30 * NS_PER_S
    farewell_ns: int = 5 * NS_PER_S
    drain_quiet_ns: int = _default("drain_quiet")
    drain_limit_ns: int = _default("drain_limit")


@dataclass(frozen=True)
class Settings:
    """The settings of every trial of a run."""

    duration_ns: int  # 0: until it is stopped
    warmup_ns: int = _default("warmup")
    sampling_ns: int = _default("sampling")
    checkpoint_ns: int = CHECKPOINT_NS
    discovery_timeout_ns: int = _default("discovery_timeout")
    measure: tuple[str, ...] = ()
    threads: tuple[ThreadRequest, ...] = ()
    lock_memory: bool | None = None  # None: as the graph says
    name_threads: bool = _default("name_threads")
    network: str = _default("network")
    seed: int = _default("seed")
    thresholds: Annotated[Thresholds, BeforeValidator(_as_kept)] = field(default_factory=Thresholds)
    limits: Limits = field(default_factory=Limits)
    quiet_limit_ns: int = _default("limit", document.CoolDown)  # 0: do not wait
    quiet_threshold: float | None = None  # busy share of all CPUs in percent; None: as measured before the first trial

    def with_threads(self, threads: tuple[ThreadRequest, ...]) -> Settings:
        return replace(self, threads=threads)

    @property
    def trial_s(self) -> float:
        """Length of a trial: warm-up and measured part."""
        return (self.warmup_ns + self.duration_ns) / NS_PER_S

    def pinned(self, pins: Pins) -> Settings:
        """With the workload's own demands on its trials."""
        duration_ns = self.duration_ns if pins.duration_ns is None else pins.duration_ns
        return replace(
            self,
            duration_ns=duration_ns,
            sampling_ns=min(self.sampling_ns, max(MIN_SAMPLING_NS, duration_ns or self.sampling_ns)),
            measure=tuple(dict.fromkeys((*self.measure, *pins.measure))),
        )

    def document(self) -> dict[str, Any]:
        """As stored in the manifest and in a trial's plan."""
        kept: dict[str, Any] = TypeAdapter(Settings).dump_python(self, mode="json", by_alias=False)
        return kept

    @classmethod
    def read(cls, kept: Any) -> Settings:
        """The result of reading `document`. Raises ValueError."""
        return TypeAdapter(cls).validate_python(kept)


@dataclass(frozen=True)
class SearchPlan:
    """A search for a breaking point: its goal, and what makes the `count` treatments of a level."""

    goal: Goal
    at_level: Callable[[Scalar], Sequence[Treatment]]
    count: int


@dataclass(frozen=True)
class Experiment:
    """Everything that a run will do."""

    name: str
    workload: Workload
    document: Document
    written: Mapping[str, Any]  # the user's input, from which the document was made
    settings: Settings
    treatments: tuple[Treatment, ...]  # in design order: by variant, the baseline first
    order: tuple[Planned, ...]
    output: Path | None
    command_line: tuple[str, ...]
    sources: tuple[Source, ...] = ()  # the experiment file
    unavailable: tuple[UnavailableLevel, ...] = ()  # levels of a sweep that this machine cannot produce
    left_out: tuple[LeftOutTreatment, ...] = ()  # treatments left out because they are not required
    not_recorded: tuple[NotRecorded, ...] = ()  # what this machine cannot record for observers that are not required
    search: SearchPlan | None = None  # instead of `order`
    rule: StoppingRule | None = None  # adds further blocks after `order`

    @property
    def notes(self) -> list[str]:
        """One line for each thing that is skipped because this machine cannot do it, and for builds that do not
        differ."""
        without = [*(left.words for left in self.left_out), *(missing.words for missing in self.not_recorded)]
        return [*without, *alike(m for variant in self.variants for m in variant.middlewares)]

    def named(self, name: str) -> Experiment:
        return replace(self, name=name)

    def course(
        self,
        judge: Judge | None = None,
        added: Callable[[Sequence[Planned]], None] = lambda _: None,
        seen: int = 0,
        enough: Callable[[Looks, int | None], int] | None = None,
        begins: Callable[[Foreseen], None] = lambda _: None,
        told: Callable[[str], None] = lambda _: None,
    ) -> Course:
        """Which trials run, from the first on; without a judge of the results, only the plan. Other courses are
        `UntilDecided` and `UntilClear`."""
        if self.document.until_clear is not None and judge is not None:
            from perflab.design.until_clear import UntilClear

            return UntilClear(
                self.document, self.treatments, self.order, self.document.until_clear, added=added, told=told
            )
        if self.rule is not None and judge is not None:
            from perflab.design.until_decided import UntilDecided

            block = [p for p in self.order if p.block == 1 and p.treatment.purpose != EXTRA]
            real = [p for p in block if p.treatment.variant.runtime != "virtual"]
            block_s = sum(BESIDE_S + self.settings.pinned(p.treatment.pins).trial_s for p in real)
            return UntilDecided(
                self.document,
                self.treatments,
                self.order,
                self.rule,
                judge,
                block_s=block_s,
                seen=seen,
                enough=enough,
                begins=begins,
                added=added,
            )
        if self.search is None:
            return AsPlanned(self.order)
        from perflab.design.breaking_point import Searching

        baselines = [t for t in self.treatments if not t.conditions and t.factors.get(self.search.goal.factor) is None]
        return Searching(self.search.goal, baselines, self.search.at_level, self.settings.seed, self.search.count)

    def runtime_of(self, treatment: Treatment) -> str:
        """The kind of system that conditions and observers are checked for: "dds", "virtual" or "command"."""
        return treatment.variant.runtime if self.workload.command is None else "command"

    @property
    def variants(self) -> list[Variant]:
        """Without duplicates, in design order."""
        return list({t.variant.key: t.variant for t in self.treatments}.values())
