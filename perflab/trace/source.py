"""An open trace as data frames: what answers are computed from.

Tables and their columns are those of native/traceview/tables.h, which docs/tracing.md explains:

    hosts processes threads                                                  where it ran
    nodes publishers subscriptions services clients timers callbacks links   ROS objects
    callback_instances publications takes intra_deliveries service_calls     what they did
    phases                                                                   what executors did
    functions function_calls                                                 instrumented functions
    thread_states wake_ups migrations holds                                  the scheduler

    *_ns             Int64, on the trace's time line (`facts["epoch_offset_ns"]` later it is ns since the epoch)
    references       Int32, row numbers of the table that they name: `callback`, `thread`, `publication`, ...
    numbers          Int32, Int64, UInt32, UInt64
    flags            Boolean
    enumerations     Enum, with the names and in the order of tables.h: `callbacks.kind`, `links.kind`, `takes.match`,
                     `phases.phase`, `thread_states.state`, `thread_states.end_state`, `holds.state`
    texts            String

What is not known is null.
"""

from __future__ import annotations

import json
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from perflab.trace import library

if TYPE_CHECKING:
    import polars as pl

TABLES = (
    *("hosts", "processes", "threads"),
    *("nodes", "publishers", "subscriptions", "services", "clients", "timers", "callbacks", "links"),
    *("callback_instances", "publications", "takes", "intra_deliveries", "service_calls"),
    *("phases", "functions", "function_calls"),
    *("thread_states", "wake_ups", "migrations", "holds"),
)


class Source(Protocol):
    """An open trace; tests use doubles made of frames."""

    @property
    def facts(self) -> dict[str, Any]:
        """What is known of the trace: its parts, event counts, losses (docs/tracing.md)."""

    def table(self, name: str) -> pl.DataFrame:
        """One of TABLES."""

    def split(self, thread: pl.Series, start_ns: pl.Series, end_ns: pl.Series) -> pl.DataFrame:
        """How stretches of threads' time were spent, row by row: on_cpu_ns, preempted_ns, blocked_ns, wake_up_ns
        (Int64; for the rest of the stretch the thread was stopped), migrations (UInt32). All null where the scheduler
        does not say so for all of the stretch, or where one of the three is null.
        """

    def holds(self, thread: pl.Series, start_ns: pl.Series, end_ns: pl.Series) -> pl.DataFrame:
        """Who held the CPUs that stretches of threads' time waited for: interval (UInt32, row of the stretch),
        state (Enum: preempted or woken), cpu, holder (row of threads, null where the CPU was idle or nobody knows),
        held_ns, summed for each (interval, state, cpu, holder).
        """


class NativeTrace:
    """A trace read by libperflab_trace.so. Frames stay valid after `close`; reading the same table again is free."""

    facts: dict[str, Any]

    def __init__(self, paths: Sequence[Path], threads: int = 0) -> None:
        self._library = library.load()
        self._handle = self._library.open(paths, threads)
        self._close = weakref.finalize(self, self._library.close, self._handle)
        self._close.atexit = False  # a process that ends frees everything, and faster
        self._lock = threading.Lock()
        self._calls = 0  # that run in any thread
        self._closed = False
        self.facts = json.loads(self._library.facts(self._handle))
        self._tables: dict[str, pl.DataFrame] = {}

    def close(self) -> None:
        """Frees what no frame holds. Tables that were read can still be asked for, new ones and `split` cannot. Where
        other threads still wait for an answer, they get it, and the last of them frees.
        """
        with self._lock:
            self._closed = True
            idle = self._calls == 0
        if idle:
            self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def table(self, name: str) -> pl.DataFrame:
        """One of TABLES, not copied."""
        if name not in self._tables:
            import polars as pl

            with self._open_handle() as handle:
                stream = self._library.table(handle, name)
            self._tables[name] = pl.DataFrame(stream)
        return self._tables[name]

    def split(self, thread: pl.Series, start_ns: pl.Series, end_ns: pl.Series) -> pl.DataFrame:
        """See Source."""
        return self._ask(self._library.split, thread, start_ns, end_ns)

    def holds(self, thread: pl.Series, start_ns: pl.Series, end_ns: pl.Series) -> pl.DataFrame:
        """See Source."""
        return self._ask(self._library.holds, thread, start_ns, end_ns)

    def export(self, format_: str, path: Path, options: dict[str, Any]) -> dict[str, int]:
        """Writes a file in a format of its own (perflab_trace.h), which it replaces; returns what was written."""
        text = json.dumps(options, ensure_ascii=False, allow_nan=False).encode(errors="replace")
        with self._open_handle() as handle:
            counts: dict[str, int] = json.loads(self._library.export(handle, format_, path, text))
        return counts

    def _ask(
        self,
        question: Callable[[int, int, int, int, int], library.Stream],
        thread: pl.Series,
        start_ns: pl.Series,
        end_ns: pl.Series,
    ) -> pl.DataFrame:
        import polars as pl

        if not len(thread) == len(start_ns) == len(end_ns):
            raise ValueError(f"{len(thread)} threads, {len(start_ns)} starts and {len(end_ns)} ends are not rows")
        unknown = start_ns.is_null() | end_ns.is_null()
        if unknown.any():
            thread = pl.select(pl.when(~unknown).then(thread)).to_series()
        # Views of the series' memory where they have no nulls, and one chunk. No thread has the row -1.
        columns = [
            series.cast(kind).fill_null(-1).rechunk().to_numpy()
            for series, kind in ((thread, pl.Int32), (start_ns, pl.Int64), (end_ns, pl.Int64))
        ]
        threads, begins, ends = (column.__array_interface__["data"][0] for column in columns)
        with self._open_handle() as handle:
            stream = question(handle, threads, begins, ends, len(thread))
        return pl.DataFrame(stream)

    @contextmanager
    def _open_handle(self) -> Iterator[int]:
        """The handle, which nobody frees meanwhile."""
        with self._lock:
            if self._closed:
                raise ValueError("this trace is closed")
            self._calls += 1
        try:
            yield self._handle
        finally:
            self._end_call()

    def _end_call(self) -> None:
        with self._lock:
            self._calls -= 1
            last = self._closed and self._calls == 0
        if last:
            self._close()
