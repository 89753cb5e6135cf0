"""Which threads starved: could run and did not for long, who had their CPU meanwhile, and what waited for them.

    starvation(trace)                                       waits for a CPU of 100 ms and more
    starvation(trace, longer_than_ns=10_000_000)            of 10 ms and more

Definitions (docs/tracing.md, Who starved whom):
  wait       from when a thread was woken, or had to leave its CPU although it could run on, until it runs again; at
             the latest the end of the scheduler's events. It starves where that takes as long as the threshold
  holder     who ran on the CPU that a starving thread waited for, with its priority then. Times of holders are parts of
             the wait; if they are less, the thread that ran there for the rest is unknown
  waiter     a thread that slept while another one starved, and that this one woke when it ran again, before it slept
  role       executor: a thread that runs callbacks; middleware: any other of a process with callbacks; kernel: a thread
             that has no process; program: of any other process
  lock       a waiter for a lock is one that slept for a lock that a starving thread held (perflab/trace/locks.py)
A stretch in which a callback did not come, and what stood between: perflab/trace/starvation_gaps.py.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import polars as pl

from perflab.kernel import cpu_list
from perflab.trace import locks, names, starvation_gaps
from perflab.trace.answer import Answer, Section
from perflab.trace.columns import Table, because, count, flag, identity, percent, text, time
from perflab.trace.names import NO_SCHEDULER
from perflab.trace.quality import quality_of
from perflab.trace.scheduling import covered_ns, priority_label
from perflab.trace.scope import EVERYTHING, Scope, since_begin
from perflab.trace.source import Source
from perflab.trace.starvation_gaps import short_chain
from perflab.trace.starvation_waits import KERNEL, LONGER_THAN_NS, behind_words, held, roles, thread_words, waits_of
from perflab.trace.threads import OF_ANY, identities, in_words, part_of, section_of
from perflab.trace.why_threads import Layer, Threads, ints
from perflab.units import format_time, plural

__all__ = ["LONGER_THAN_NS", "TABLES", "short_chain", "starvation"]

_NAMED = 3  # threads in the sentence
_NOBODY = "no thread is known to have had the CPU"

_ROLE = text("role", "executor, middleware, kernel or program")
_BY = because(
    _NOBODY,
    text("by_process", "process of the thread that had the CPU for the longest time of it", "that is no process"),
    identity("by_pid", "its number"),
    text("by_thread", "that thread"),
    identity("by_tid", "its number"),
    text("by_priorities", "its priority then, as people set it"),
    time("by", "how long it had the CPU"),
    percent("by", "share of the waits"),
)
_CPUS = text("cpus", "the CPUs that it waited for", "the CPU is not known")

VERDICT = Table(
    "starvation",
    "Who starved whom",
    (
        text("sentence", "the answer in one sentence"),
        time("threshold", "what is called a long wait"),
        count("threads", "threads that starved"),
        count("waits", "their long waits"),
        time("longest", "the longest of them", "no thread starved"),
        count("stretches", "stretches in which a callback did not come for it"),
    ),
    shown=("threads", "waits", "longest_ns", "stretches"),
    vertical=True,
)
STARVED = Table(
    "starved",
    "Threads that starved",
    (
        *OF_ANY,
        _ROLE,
        text("priorities", "its priority, as people set it", "its events have no priority"),
        _CPUS,
        count("waits", "long waits"),
        time("total", "their sum"),
        percent("total", "share of the covered time"),
        time("longest", "the longest"),
        time("longest_at", "when that began, from the beginning of the trace"),
        *_BY,
        count("waiters", "threads that slept meanwhile and that it woke after"),
    ),
    shown=(
        "host", "process", "thread", "tid", "role", "priorities", "cpus", "waits", "total_ns", "longest_ns",
        "by_process", "by_thread", "by_tid", "by_priorities", "by_percent",
    ),
    spare=("by_process", "priorities", "total_ns", "role"),
)  # fmt: skip
HOLDERS = Table(
    "holders",
    "Who had the CPU while threads starved",
    (
        *OF_ANY,
        identity("cpu", "the CPU that was waited for", "the CPU is not known"),
        flag("idle", "whether that CPU idled: a quota or a limit kept the thread from it"),
        *_BY,
    ),
    shown=(
        "host", "process", "thread", "tid", "cpu", "by_process", "by_thread", "by_tid", "by_priorities", "by_ns",
        "by_percent",
    ),
)  # fmt: skip
WAITS = Table(
    "waits",
    "The waits for a CPU",
    (
        *OF_ANY,
        _ROLE,
        count("wait", "number of the wait"),
        time("at", "when it began, from the beginning of the trace"),
        time("begin", "the same on the trace's clock"),
        time("end", "when the thread ran again, on the trace's clock"),
        time("waited", "how long it was"),
        text("began", "what it began with: woken, or preempted"),
        flag("ran", "whether it ran after; else the scheduler's events end there"),
        text("priorities", "its priority, as people set it", "its events have no priority"),
        _CPUS,
        *_BY,
        *because(
            "it was not woken, or the waker is unknown",
            text("woken_by_thread", "who ran where it was woken: who woke it, or was interrupted"),
            identity("woken_by_tid", "its number"),
        ),
    ),
    shown=(
        "host", "process", "thread", "tid", "at_ns", "waited_ns", "cpus", "by_process", "by_thread", "by_tid",
        "by_percent", "woken_by_thread",
    ),
    spare=("woken_by_thread", "by_process"),
)  # fmt: skip
WAITERS = Table(
    "waiters",
    "Who waited for them",
    (
        *OF_ANY,
        _ROLE,
        time("at", "when it was woken, from the beginning of the trace"),
        time("waited", "how long it had slept since the wait of the other one began"),
        count("for_wait", "number of the wait"),
        text("for_process", "process of the thread that starved and woke it", "that is no process"),
        identity("for_pid", "its number", "that is no process"),
        text("for_thread", "the thread that starved and woke it"),
        identity("for_tid", "its number"),
        time("for", "how long that one starved"),
    ),
    shown=("host", "process", "thread", "tid", "at_ns", "waited_ns", "for_process", "for_thread", "for_tid", "for_ns"),
    spare=("for_process",),
)

LOCKED = Table(
    "lock_waiters",
    "Who waited for locks that they held",
    (
        *OF_ANY,
        _ROLE,
        text("priority", "its priority, as people set it", "its events have no priority"),
        time("at", "when it began to wait for the lock, from the beginning of the trace"),
        time("waited", "how long it slept for the lock while the other one starved"),
        locks.ADDRESS,
        count("for_wait", "number of the wait for a CPU"),
        text("for_process", "process of the thread that held the lock and starved", "that is no process"),
        identity("for_pid", "its number", "that is no process"),
        text("for_thread", "the thread that held the lock and starved"),
        identity("for_tid", "its number"),
        text("for_priority", "its priority then, as people set it", "its events have no priority"),
        *_BY[:-2],
        time("inversion", "how long of it one that is less urgent than this thread had that CPU"),
    ),
    shown=(
        "host", "process", "thread", "tid", "priority", "at_ns", "waited_ns", "address", "for_thread", "for_tid",
        "for_priority", "by_process", "by_thread", "by_priorities", "inversion_ns",
    ),
    spare=("by_process", "process", "address"),
)  # fmt: skip

TABLES = (VERDICT, STARVED, *starvation_gaps.TABLES, HOLDERS, WAITS, WAITERS, LOCKED)


def starvation(
    trace: Source,
    scope: Scope = EVERYTHING,
    longer_than_ns: int = LONGER_THAN_NS,
    pids: Collection[int] = (),
) -> Answer:
    """Who starved whom. `pids`: threads of these processes, and of the kernel, alone; none: all."""
    quality = quality_of(trace)
    threads = Threads(trace)
    found = _Found.of(trace, threads, scope, longer_than_ns, pids)
    waiters = found.waiters()
    gaps = starvation_gaps.gaps(trace, scope, quality, threads, found.with_holders(), longer_than_ns, pids)
    sections = (
        found.verdict(gaps.frame.height),
        found.starved(waiters),
        *gaps.sections(),
        found.holders_section(),
        found.waits_section(),
        found.waiters_section(waiters),
        found.locked_section(),
    )
    return quality.answer("starvation", sections, "thread states", "wake-ups", scope=scope)


@dataclass(frozen=True)
class _Found:
    """The long waits, and who had the CPUs."""

    trace: Source
    threads: Threads
    scope: Scope
    longer_than_ns: int
    waits: pl.DataFrame
    holds: pl.DataFrame  # pieces of waits: wait, cpu, idle, holder, priority, held_ns

    @classmethod
    def of(cls, trace: Source, threads: Threads, scope: Scope, longer_than_ns: int, pids: Collection[int]) -> _Found:
        waits = waits_of(trace, scope, longer_than_ns)
        waits = waits.join(identities(trace), on="thread_row", how="left", maintain_order="left")
        waits = waits.join(roles(trace, threads), on="thread_row", how="left", maintain_order="left")
        if pids:
            waits = waits.filter(pl.col("pid").is_in(list(pids)) | (pl.col("role") == KERNEL))
        if scope.has_names:
            mine = set(threads.process[scope.threads(trace) or []].tolist()) - {-1}
            process = pl.Series(threads.process)
            waits = waits.filter(process.gather(waits["thread_row"]).is_in(list(mine)))
        waits = waits.drop("wait").with_row_index("wait").with_columns(pl.col("wait").cast(pl.Int32))
        return cls(trace, threads, scope, longer_than_ns, waits, held(trace, threads, waits))

    def with_holders(self) -> pl.DataFrame:
        """The waits with who had the CPU for the longest time of each."""
        return self._main_holder(self.waits, "wait")

    def _main_holder(self, frame: pl.DataFrame, by: str) -> pl.DataFrame:
        """Rows with the columns `by_*`: of those with the same value of `by` (a wait, or a thread)."""
        known = self.holds.join(self.waits.select("wait", "thread_row"), on="wait", how="left")
        total = self.waits.group_by(by).agg(all_ns=pl.col("waited_ns").sum())
        longest = (
            known.filter(pl.col("holder").is_not_null())
            .group_by(by, "holder")
            .agg(by_ns=pl.col("held_ns").sum(), by_priority_numbers=pl.col("priority").drop_nulls().unique().sort())
            .sort(by, "by_ns", "holder", descending=[False, True, False])
            .group_by(by, maintain_order=True)
            .first()
            .join(total, on=by, how="left")
        )
        return frame.join(self._named(longest).drop("holder", "all_ns"), on=by, how="left", maintain_order="left")

    def _named(self, held: pl.DataFrame) -> pl.DataFrame:
        """Rows with `holder`, `by_ns`, `by_priority_numbers` and `all_ns`: with names, priorities and the share."""
        who = names.threads(self.trace).select(
            holder="thread_row", by_process="process", by_pid="pid", by_thread="thread", by_tid="tid"
        )
        return (
            held.join(who, on="holder", how="left", maintain_order="left")
            .with_columns(
                by_priorities=_priorities("by_priority_numbers"), by_percent=part_of(pl.col("by_ns"), pl.col("all_ns"))
            )
            .drop("by_priority_numbers")
        )

    # Sections ---------------------------------------------------------------------------------------------------------

    def verdict(self, stretches: int) -> Section:
        longest = self.waits["waited_ns"].max()
        sentence = self._sentence()
        row = (
            sentence, self.longer_than_ns, self.waits["thread_row"].n_unique(), self.waits.height, longest, stretches,
        )  # fmt: skip
        notes = () if self.trace.facts["scheduler"] is not None else (NO_SCHEDULER,)
        return Section(replace(VERDICT, title=sentence), VERDICT.frame([row]), notes)

    def _sentence(self) -> str:
        """ "1 thread starved for 100 ms or longer: thread recv (tid 21) of listener (pid 20) did not run for 950 ms
        behind hog (pid 99, RT 90) on CPU 1"."""
        limit = names.period(self.longer_than_ns)
        if self.trace.facts["scheduler"] is None:
            return "Whether threads starved is not known"
        if not self.waits.height:
            return f"No thread that could run waited for a CPU for {limit} or longer"
        longest_first = self.with_holders().sort("waited_ns", "wait", descending=[True, False])
        of_threads = longest_first.unique("thread_row", keep="first", maintain_order=True)
        said = [
            f"{thread_words(row)} did not run for {format_time(row['waited_ns'])}{behind_words(row)}"
            for row in of_threads.head(_NAMED).iter_rows(named=True)
        ]
        more = of_threads.height - len(said)
        rest = f", and {more} more" if more > 0 else ""
        return f"{plural(of_threads.height, 'thread')} starved for {limit} or longer: {'; '.join(said)}{rest}"

    def starved(self, waiters: pl.DataFrame) -> Section:
        length = pl.col("waited_ns")
        woken = waiters.join(self.waits.select("wait", starved_row="thread_row"), on="wait", how="left")
        counted = woken.group_by(thread_row="starved_row").agg(waiters=pl.col("waiter").n_unique())
        rows = self.waits.group_by("thread_row", maintain_order=True).agg(
            pl.col("role").first(),
            cpu_numbers=pl.col("cpu_numbers").explode().drop_nulls().unique().sort(),
            priority_numbers=pl.col("priority_numbers").explode().drop_nulls().unique().sort(),
            waits=pl.len(),
            total_ns=length.sum(),
            longest_ns=length.max(),
            longest_at_ns=since_begin(self.trace, "begin_ns").sort_by("waited_ns", descending=True).first(),
        )
        rows = self._main_holder(rows, "thread_row").join(counted, on="thread_row", how="left", maintain_order="left")
        covered = pl.lit(covered_ns(self.trace, self.scope), pl.Int64)
        rows = rows.with_columns(
            pl.col("waiters").fill_null(0),
            total_percent=part_of(pl.col("total_ns"), covered),
            cpus=_cpus("cpu_numbers"),
            priorities=_priorities("priority_numbers"),
        )
        notes = (f"waits of {names.period(self.longer_than_ns)} and more",) if rows.height else self._why_empty()
        return section_of(
            self.trace, STARVED, rows.select("thread_row", *STARVED.names[len(OF_ANY) :]), notes, longest="longest_ns"
        )

    def holders_section(self) -> Section:
        total = self.waits.group_by("thread_row").agg(all_ns=pl.col("waited_ns").sum())
        held = (
            self.holds.join(self.waits.select("wait", "thread_row"), on="wait", how="left")
            .group_by("thread_row", "cpu", "idle", "holder", maintain_order=True)
            .agg(by_ns=pl.col("held_ns").sum(), by_priority_numbers=pl.col("priority").drop_nulls().unique().sort())
            .join(total, on="thread_row", how="left", maintain_order="left")
        )
        rows = self._named(held).select("thread_row", *HOLDERS.names[len(OF_ANY) :])
        hidden = () if rows["idle"].any() else ("idle",)
        return section_of(
            self.trace, HOLDERS, rows, () if rows.height else self._why_empty(), hidden=hidden, longest="by_ns"
        )

    def waits_section(self) -> Section:
        woken = (
            self.trace.table("wake_ups")
            .filter(pl.col("by_thread").is_not_null())
            .select("by_thread", thread_row="thread", begin_ns="wakeup_ns")
            .unique(["thread_row", "begin_ns"], keep="first", maintain_order=True)
        )
        by = names.threads(self.trace).select(by_thread_row="thread_row", woken_by_thread="thread", woken_by_tid="tid")
        rows = (
            self.with_holders()
            .join(woken.rename({"by_thread": "by_thread_row"}), on=["thread_row", "begin_ns"], how="left",
                  maintain_order="left")
            .join(by, on="by_thread_row", how="left", maintain_order="left")
            .with_columns(
                since_begin(self.trace, "begin_ns").alias("at_ns"),
                cpus=_cpus("cpu_numbers"),
                priorities=_priorities("priority_numbers"),
            )
        )  # fmt: skip
        notes = () if rows.height else self._why_empty()
        return section_of(
            self.trace, WAITS, rows.select("thread_row", *WAITS.names[len(OF_ANY) :]), notes, longest="waited_ns"
        )

    def waiters(self) -> pl.DataFrame:
        """`wait`, `waiter` (its thread's row), `woken_ns` and `waited_ns`."""
        states = self.trace.table("thread_states").select("thread", "start_ns", "end_ns", "state")
        blocked = states.filter(pl.col("state").cast(pl.String) == "blocked")
        asleep = Layer.of(blocked)
        waits = self.waits.filter("ran")
        thread, end = ints(waits["thread_row"]), ints(waits["end_ns"])
        # From when it ran until it slept again; where it was not seen to, until the end.
        until = asleep.next_start(thread, end - 1)
        runs = waits.select("wait", "end_ns", "begin_ns", starved="thread_row").with_columns(
            until_ns=pl.Series(until, dtype=pl.Int64)
        )
        slept = blocked.select("thread", slept_ns="start_ns", wakeup_ns="end_ns")
        wakes = (
            self.trace.table("wake_ups")
            .filter(~pl.col("already_running").fill_null(False), pl.col("by_thread").is_not_null())
            .select("thread", "wakeup_ns", starved="by_thread")
            .join(slept, on=["thread", "wakeup_ns"], how="inner", maintain_order="left")
        )
        return (
            wakes.join(runs, on="starved", how="inner", maintain_order="left")
            .filter(pl.col("wakeup_ns").is_between("end_ns", "until_ns"), pl.col("thread") != pl.col("starved"))
            .with_columns(waited_ns=pl.col("wakeup_ns") - pl.max_horizontal("slept_ns", "begin_ns"))
            .filter(pl.col("slept_ns") < pl.col("end_ns"))
            .select("wait", "waited_ns", waiter="thread", woken_ns="wakeup_ns")
            .sort("waited_ns", "wait", "waiter", descending=[True, False, False])
        )

    def waiters_section(self, waiters: pl.DataFrame) -> Section:
        starved = self.waits.select(
            "wait", for_wait="wait", for_process="process", for_pid="pid", for_thread="thread", for_tid="tid",
            for_ns="waited_ns",
        )  # fmt: skip
        rows = (
            waiters.join(starved, on="wait", how="left", maintain_order="left")
            .rename({"waiter": "thread_row"})
            .join(roles(self.trace, self.threads), on="thread_row", how="left", maintain_order="left")
            .with_columns(since_begin(self.trace, "woken_ns").alias("at_ns"))
        )
        notes = () if rows.height else ("no thread that starved woke another one after",)
        return section_of(
            self.trace, WAITERS, rows.select("thread_row", *WAITERS.names[len(OF_ANY) :]), notes, longest="waited_ns"
        )

    def locked_section(self) -> Section:
        """The edges: this thread waits for a lock that one holds which could run and did not, behind a third."""
        found = locks.LockWaits.of(self.trace, self.threads)
        pieces, waits = found.pieces, self.waits
        starving = Layer.of(waits.select("begin_ns", "end_ns", thread="thread_row").rename({"begin_ns": "start_ns"}))
        owner, begin, end = (ints(pieces[name]) for name in ("owner_row", "start_ns", "end_ns"))
        of, start, stop, row = starving.cut(owner, begin, end)
        of, start, stop, row = (column[row >= 0] for column in (of, start, stop, row))
        edges = (
            pieces[of.tolist()]
            .select("wait", "owner_row", "owner_priority_number")
            .rename({"wait": "lock_wait"})
            .with_columns(
                edge=pl.int_range(pl.len(), dtype=pl.Int32),
                for_wait=waits["wait"].gather(row),
                start_ns=pl.Series(start, dtype=pl.Int64),
                end_ns=pl.Series(stop, dtype=pl.Int64),
            )
        )
        waiting = found.waits.select(
            "thread_row", "begin_ns", "priority_number", "address_number", lock_wait="wait"
        )  # fmt: skip
        starved = self.with_holders().select(
            *(column.name for column in _BY[:-2]),
            for_wait="wait", for_process="process", for_pid="pid", for_thread="thread", for_tid="tid",
        )  # fmt: skip
        behind = held(
            self.trace, self.threads,
            edges.select("start_ns", "end_ns", wait="edge", thread_row="owner_row").rename({"start_ns": "begin_ns"}),
        ).rename({"wait": "edge"})  # fmt: skip
        rows = edges.join(waiting, on="lock_wait", how="left", maintain_order="left")
        inverted = (
            behind.join(rows.select("edge", "priority_number"), on="edge", how="left")
            .filter(locks.less_urgent(pl.col("priority"), pl.col("priority_number")))
            .group_by("edge")
            .agg(inversion_ns=pl.col("held_ns").sum())
        )
        rows = (
            rows.join(inverted, on="edge", how="left", maintain_order="left")
            .join(starved, on="for_wait", how="left", maintain_order="left")
            .join(roles(self.trace, self.threads), on="thread_row", how="left", maintain_order="left")
            .with_columns(
                locks.hexadecimal(rows["address_number"]),
                since_begin(self.trace, "begin_ns").alias("at_ns"),
                pl.col("inversion_ns").fill_null(0),
                waited_ns=pl.col("end_ns") - pl.col("start_ns"),
                priority=locks.label("priority_number"),
                for_priority=locks.label("owner_priority_number"),
            )
        )
        none = (
            "no thread waited for a lock that one held which starved" if locks.recorded(self.trace) else locks.NO_LOCKS
        )
        notes = () if rows.height else (none if self.trace.facts["scheduler"] is not None else NO_SCHEDULER,)
        return section_of(
            self.trace, LOCKED, rows.select("thread_row", *LOCKED.names[len(OF_ANY) :]), notes, longest="waited_ns"
        )

    def _why_empty(self) -> tuple[str, ...]:
        if self.trace.facts["scheduler"] is None:
            return (NO_SCHEDULER,)
        return (f"no thread that could run waited for {names.period(self.longer_than_ns)} or longer",)


def _cpus(column: str) -> pl.Expr:
    return in_words(column, cpu_list)


def _priorities(column: str) -> pl.Expr:
    return in_words(column, lambda numbers: ", ".join(map(priority_label, numbers)))
