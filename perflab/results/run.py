"""A run as read from files of perflab or of another program: the summary, and the tables of each trial."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perflab.errors import BadInput, instead
from perflab.results.files import Manifest, TrialFile, instant, span_of
from perflab.results.outcome import FAILED, SUCCESS, Outcome
from perflab.results.summary import Summary
from perflab.results.trial import Circumstances

if TYPE_CHECKING:
    import polars as pl

Tables = dict[str, Any]  # types of polars, by name

PERFLAB = "perflab"
IROBOT = "irobot"
IROBOT_LEGACY = "irobot-legacy"
PERFORMANCE_TEST = "performance_test"
PROGRAMS = {  # the program that wrote runs of each origin
    PERFLAB: "perflab",
    IROBOT: "irobot_benchmark",
    IROBOT_LEGACY: "irobot_benchmark",
    PERFORMANCE_TEST: "performance_test",
}
UNKNOWN = "unknown"  # the middleware of a trial whose source does not name one

TABLES = ("edges", "publishers", "services", "resources", "threads", "events")


@dataclass(frozen=True, kw_only=True)
class TrialTables(Circumstances):
    """The tables of one trial, with the columns of perflab/formats/tables.py; without rows if there is no data.

    Instants in the tables are CLOCK_MONOTONIC (virtual time on the virtual runtime); `started_ns` is the start of the
    measured part among them. If it is None, instants count from 0. Tables of a foreign run may have more columns.
    """

    number: int
    outcome: Outcome
    started_ns: int | None
    duration_s: float
    edges: pl.DataFrame = field(repr=False)
    publishers: pl.DataFrame = field(repr=False)
    resources: pl.DataFrame = field(repr=False)
    threads: pl.DataFrame = field(repr=False)
    events: pl.DataFrame = field(repr=False)
    services: pl.DataFrame = field(repr=False)
    # The trial's place in the plan; None: from a run before blocks existed, or a foreign one.
    block: int | None = None
    order: int | None = None
    after: str | None = None  # the disturbance just before it, if any
    # When it was run, and how long it first waited for a quiet machine; None if not recorded. `quiet`: whether the
    # machine became quiet.
    started_utc: str | None = None
    ended_utc: str | None = None
    waited_s: float | None = None
    quiet: bool | None = None
    # For a foreign run whose files have statistics of each second but no distribution: process, figure, begin_ns,
    # end_ns, count, min, mean, max.
    seconds: pl.DataFrame | None = field(default=None, repr=False)
    missed_criterion: bool = False  # the only reason for its failure: it ran to its end with everything in effect
    # Rarely used data is read on demand: histograms of times that belong to no message, by name; and a table of loops,
    # None if none were measured.
    read_times: Callable[[], Mapping[str, Any]] = field(default=dict, repr=False, compare=False)
    read_loops: Callable[[], pl.DataFrame | None] = field(default=lambda: None, repr=False, compare=False)

    @cached_property
    def times(self) -> Mapping[str, Any]:
        """The times from the kind of workload, and those that observers recorded, as histograms."""
        return self.read_times()

    @cached_property
    def loops(self) -> pl.DataFrame | None:
        return self.read_loops()

    @property
    def span(self) -> tuple[datetime, datetime] | None:
        """From its start, including the wait for a quiet machine, to its end; None if not recorded."""
        return span_of(self.started_utc, self.ended_utc)

    @property
    def measured(self) -> bool:
        """Whether its figures cover a whole trial."""
        return self.outcome == SUCCESS or (self.outcome == FAILED and self.missed_criterion)


@dataclass(frozen=True)
class RunData:
    """A run as read from its files.

    What the source lacks is None in `summary`; for a foreign directory, `manifest` has only its settings. `notes` are
    remarks for readers of the figures.
    """

    name: str
    path: Path
    origin: str  # a key of PROGRAMS
    summary: Summary = field(repr=False)
    manifest: Manifest = field(repr=False)
    trials: tuple[TrialTables, ...] = field(repr=False)
    notes: tuple[str, ...]
    files: tuple[tuple[Path, TrialFile], ...] = field(default=(), repr=False)  # of trials: the directory, trial.json

    def frame(self, table: str) -> pl.DataFrame:
        """One of TABLES, of all trials together: first what each row refers to (trial, block, treatment, middleware,
        outcome), then the table's own columns. Without rows if no trial was read. Raises BadInput for another name.
        """
        import polars as pl

        if table not in TABLES:
            raise BadInput(f"no table {table!r}; {instead(table, TABLES)}")
        of = ("block", "treatment", "middleware", "outcome")
        parts = [
            getattr(trial, table).select(
                pl.lit(trial.number, pl.Int64).alias("trial"),
                *(pl.lit(getattr(trial, name), pl.Int64 if name == "block" else pl.String).alias(name) for name in of),
                pl.all(),
            )
            for trial in self.trials
        ]
        return pl.concat(parts, how="diagonal_relaxed") if parts else pl.DataFrame()

    @property
    def program(self) -> str:
        """The program that wrote these files."""
        return PROGRAMS[self.origin]

    @property
    def folder(self) -> Path:
        """Folder for files made from the run: its directory, or one beside a file."""
        return self.path.with_suffix("") if self.path.is_file() else self.path

    @property
    def lasted_s(self) -> float | None:
        """From the beginning of the run to the end of its last trial; for a resumed run, the time within its trials.
        None if not recorded."""
        spans = [span for trial in self.trials if (span := trial.span) is not None]
        if not spans:
            return None
        if self.manifest.earlier_controllers:
            return sum((end - begin).total_seconds() for begin, end in spans)
        began = instant(self.manifest.created_utc) or min(begin for begin, _ in spans)
        return (max(end for _, end in spans) - began).total_seconds()

    @property
    def is_virtual(self) -> bool:
        """Whether everything ran in virtual time, where no machine can drift."""
        return all(result.middleware == "virtual" for result in self.summary.results)

    def is_paired(self, other: RunData) -> bool:
        """Whether the blocks of two runs correspond: only if they simulate the same disturbances, from one seed."""
        own, its = (run.manifest.settings.seed for run in (self, other))
        return self.is_virtual and other.is_virtual and own is not None and own == its
