"""What executors spend their threads' time on: waiting, finding what is ready, executing it.

Two sources. The tracepoints that every rclcpp has give the phases of a thread; programs built with
-finstrument-functions give the calls of its functions, and these the same table with the parts below it.

Definitions, of one thread (docs/tracing.md):
  spin                       from its first phase to the end of its last
  get_next_executable        all its get_next_ready_executable and wait_for_work; a call begins with each
                             get_next_ready_executable that does not follow a wait_for_work
  get_next_ready_executable  looks for something that is ready
  wait_for_work              from its event to the get_next_ready_executable that follows
  execute                    of timers and subscriptions, from its event to the next phase
  dispatch                   of all others, which have no event: from the callback that begins where a phase of
                             get_next_ready was, to the next phase
  callbacks                  those that begin within an execute or dispatch that ended, without those inside of others
Phases within a callback are those of an executor that it spins; the phase around it goes on.
CPU usage is on-CPU time divided by duration, over the part of it in which the scheduler's events tell the state
of the thread; `known_percent` is the size of that part, and below MIN_KNOWN_PERCENT there is none. Shares of CPU time
need that of both durations.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl

from perflab.trace import names
from perflab.trace.answer import Answer, Section
from perflab.trace.columns import Table, because, count, percent, symbol, text, time
from perflab.trace.names import NO_SCHEDULER, SILENT_EXECUTORS
from perflab.trace.quality import Quality, quality_of
from perflab.trace.scope import EVERYTHING, Scope, since_begin
from perflab.trace.source import Source
from perflab.trace.threads import WHO, identities, known_time, part_of, section_of, split_of
from perflab.trace.why_threads import Threads
from perflab.units import plural


def _sum(column: str) -> pl.Expr:
    """The sum of the known values; null, and not 0, if there are none."""
    return pl.when(pl.col(column).count() > 0).then(pl.col(column).sum()).alias(column)


MIN_KNOWN_PERCENT = 90  # of a duration, below which no share of its CPU time is given
LARGEST = 100  # nodes of the tree of calls that are kept without being asked for all

_READY, _WAIT, _WITH_CALLBACKS = "get_next_ready", "wait_for_work", ("execute", "dispatch")
_PHASES = (_READY, _WAIT, *_WITH_CALLBACKS)
_IN_CALLBACKS = "callbacks in "
# The rows of a thread: name, depth, which of them is the parent, and the phases that it is the sum of.
_ROWS = (
    ("thread", 0, None, ()),
    ("spin", 1, 0, _PHASES),
    ("get_next_executable", 2, 1, (_READY, _WAIT)),
    ("get_next_ready_executable", 3, 2, (_READY,)),
    ("wait_for_work", 3, 2, (_WAIT,)),
    ("execute", 2, 1, ("execute",)),
    (f"{_IN_CALLBACKS}execute", 3, 5, (f"{_IN_CALLBACKS}execute",)),
    ("dispatch", 2, 1, ("dispatch",)),
    (f"{_IN_CALLBACKS}dispatch", 3, 7, (f"{_IN_CALLBACKS}dispatch",)),
)
_OWN_TIMES = tuple(map(_sum, ("wall_ns", "self_ns", "on_cpu_ns", "on_cpu_self_ns")))
_OF_CPU = ("on_cpu", "cpu_", "known")  # columns that rest on the scheduler's events begin so
MUCH_LOCK_PERCENT = 5  # of a thread's phases spent waiting for the executor's lock: worth a sentence

NO_IDENTITY = (
    "Which executor a thread belongs to is not in the trace; the threads of a MultiThreadedExecutor stand one by one"
)
NESTED = "of executors that a callback spins: their time is also that of the phase around it, and counts in both"
NO_WAKERS = "wake-ups were not recorded: who held the lock is not known"
NOT_COVERED = "the scheduler's events do not cover it"

_PART_COVERED = f"the scheduler's events cover less than {MIN_KNOWN_PERCENT} % of it or of the whole"
_NO_PARENT = "there is no parent, or it took no time"
_NOT_RETURNED = "a call below it did not return in the trace"
_TOO_LITTLE = f"the scheduler's events cover less than {MIN_KNOWN_PERCENT} % of it (known_percent)"

_COUNT = count("count", "how often")
_WALL = time("wall", "duration: wall time")
_ON_CPU = time("on_cpu", "time on a CPU, of the part that the scheduler's events cover", NOT_COVERED)
_OWN_FIGURES = (
    _COUNT,
    _WALL,
    time("self", "duration without the rows below", _NOT_RETURNED),
    _ON_CPU,
    time("on_cpu_self", "time on a CPU without the rows below", NOT_COVERED),
)
_DEPTH = count("depth", "depth of the row in the tree of its thread")
_CPU_SHARES = (
    percent("cpu_usage", "time on a CPU of the part that is known", f"{_TOO_LITTLE}, or it took no time"),
    percent("cpu_of_thread", "share of the thread's time on a CPU", _PART_COVERED),
    percent("cpu_of_parent", "share of the parent's time on a CPU", f"there is no parent, or {_PART_COVERED}"),
)
_OF_THREAD = percent("wall_of_thread", "share of the thread's wall time", "the thread has one event")
_OF_PARENT = percent("wall_of_parent", "share of the parent's wall time", _NO_PARENT)
_KNOWN = percent("known", "share that the scheduler's events cover", f"{NOT_COVERED}, or it took no time")

EXECUTOR = Table(
    "executor",
    "Executor threads",
    (
        *WHO,
        _DEPTH,
        symbol("function", "what the thread does: docs/tracing.md has the rows"),
        _COUNT,
        _WALL,
        _ON_CPU,
        *_CPU_SHARES,
        _OF_THREAD,
        percent("wall_of_spin", "share of spin's wall time", "it is not a part of spin"),
        _OF_PARENT,
        _KNOWN,
    ),
    spare=(
        "wall_of_thread_percent", "wall_of_parent_percent", "cpu_of_parent_percent", "cpu_of_thread_percent",
        "on_cpu_ns", "known_percent",
    ),
)  # fmt: skip

_STATE_WORDS = {
    "on_cpu": "on a CPU",
    "runnable": "preempted, or woken and not yet on a CPU",
    "preempted": "preempted",
    "wake_up": "woken and not yet on a CPU",
    "blocked": "asleep",
    "stopped": "stopped by a signal or a debugger",
    "executor_lock": "asleep until another thread of the same executor let go of its lock",
    "blocked_in_callbacks": "asleep in callbacks",
}
_NO_SLEEP = {
    "executor_lock": f"a sleep in wait_for_work is the wait for work, or {_TOO_LITTLE}",
    "blocked_in_callbacks": f"the phase calls no callbacks, or {_TOO_LITTLE}",
}
PHASES = Table(
    "phases",
    "Executor phases by thread state",
    (
        *WHO,
        text("phase", "get_next_ready, wait_for_work, execute or dispatch"),
        _COUNT,
        *because(
            "no such phase ended",
            _WALL,
            time("max", "the longest phase", of="wall"),
            time("max_at", "when it began, from the beginning of the trace", of="wall"),
        ),
        *(
            quantity(state, f"{what} {words}", _NO_SLEEP.get(state, empty))
            for state, words in _STATE_WORDS.items()
            for quantity, what, empty in (
                (time, "time", NOT_COVERED),
                (percent, "share of the known time", _TOO_LITTLE),
            )
        ),
        *because(NOT_COVERED, _KNOWN),
    ),
    spare=(
        "blocked_in_callbacks_percent", "known_percent", "count", "process", "wall_max_at_ns", "wall_max_ns", "wall_ns",
    ),
)  # fmt: skip

WITHOUT_PHASES = Table(
    "without_phases",
    "Threads with callbacks but without phases",
    (
        *WHO,
        count("callbacks", "callbacks that began on it"),
        time("in_callbacks", "time in callbacks"),
        text("reason", "why it has no phases"),
    ),
)


def _tree_table(name: str, title: str) -> Table:
    """Functions below their callers."""
    return Table(
        name,
        title,
        (
            *WHO,
            _DEPTH,
            symbol("function", "the function without its arguments"),
            *_OWN_FIGURES,
            *_CPU_SHARES,
            _OF_THREAD,
            _OF_PARENT,
            _KNOWN,
            symbol("symbol", "the function with its arguments", "it is the thread itself"),
        ),
        spare=("wall_of_thread_percent", "wall_of_parent_percent", "on_cpu_self_ns"),
        always=False,
    )


EXECUTOR_FUNCTIONS = _tree_table("executor_functions", "Executor's functions (-finstrument-functions)")
CALL_TREE = _tree_table("call_tree", "Calls of functions")
FUNCTIONS = Table(
    "functions",
    "Functions by their own time",
    (
        *WHO,
        symbol("function", "the function without its arguments"),
        *_OWN_FIGURES,
        symbol("symbol", "the function with its arguments"),
    ),
    spare=("process",),
    always=False,
)

TABLES = (EXECUTOR, PHASES, WITHOUT_PHASES, EXECUTOR_FUNCTIONS, CALL_TREE, FUNCTIONS)
TREES = tuple(table.name for table in (EXECUTOR, EXECUTOR_FUNCTIONS, CALL_TREE))  # rows of these belong together

# Functions of rclcpp's executors, by their names without arguments, and those in which they wait.
EXECUTOR_FUNCTION = re.compile(
    r"rclcpp::(?:\w+::)*\w*Executor\w*::"
    r"(?:spin\w*|run|get_next_executable|get_next_ready_executable\w*|wait_for_work|execute_\w+|collect_\w+)"
    r"|rcl_wait|rmw_wait"
)


def executor(trace: Source, largest: int | None = LARGEST, scope: Scope = EVERYTHING) -> Answer:
    """The executor threads of a trace. Of the tree of all calls the `largest` nodes; None: all of them."""
    quality = quality_of(trace)
    phases = trace.table("phases").with_row_index("phase_row").rename({"thread": "thread_row"})
    phases = scope.of_threads(trace, scope.within(phases, "start_ns"))
    phases = phases.sort("thread_row", "start_ns", maintain_order=True).with_columns(pl.col("phase").cast(pl.String))
    lengths = _nested(trace, _with_split(trace, phases))
    inside = _callbacks_inside(trace, lengths)
    rows = _phase_rows(trace, scope, lengths, inside)
    sections = [
        _phase_table(trace, rows, lengths, quality),
        _phase_states(trace, rows),
        _without_phases(trace, phases, scope),
    ]
    calls = _calls_within(trace, scope)
    if calls.height:
        sections += _function_sections(trace, calls, largest)
    return quality.answer("executor", sections, "executor", "thread states", scope=scope)


def _calls_within(trace: Source, scope: Scope) -> pl.DataFrame:
    """The calls of functions; one whose caller is not among them stands for itself."""
    calls = trace.table("function_calls").rename({"thread": "thread_row"})
    if scope.is_everything:
        return calls
    kept = scope.of_threads(trace, scope.within(calls.with_row_index("row"), "start_ns"))
    places = kept.select(parent="row", place=pl.int_range(pl.len(), dtype=pl.Int32))
    return (
        kept.with_columns(pl.col("parent").cast(pl.UInt32))
        .join(places, on="parent", how="left", maintain_order="left")
        .with_columns(parent="place")
        .drop("row", "place")
    )


def _with_split(trace: Source, frame: pl.DataFrame) -> pl.DataFrame:
    """The stretches with their duration, what the scheduler says of it, and `told_ns`: the duration where it does."""
    return (
        split_of(trace, frame)
        .with_columns(wall_ns=pl.col("end_ns") - pl.col("start_ns"))
        .with_columns(told_ns=pl.when(pl.col("on_cpu_ns").is_not_null()).then("wall_ns"))
    )


def _life(trace: Source, threads: pl.Series, scope: Scope = EVERYTHING) -> pl.DataFrame:
    """Of each of these threads as a whole, from the first to the last of its events."""
    spans = (
        scope.cut(identities(trace), "first_ns", "last_ns")
        .filter(pl.col("thread_row").is_in(threads.unique().implode()))
        .select("thread_row", begin_ns="first_ns", end_ns="last_ns")
    )
    told = known_time(trace.table("thread_states"), spans)
    return spans.join(told, on="thread_row", how="left", maintain_order="left").select(
        "thread_row",
        count=pl.lit(1, pl.UInt32),
        wall_ns=pl.col("end_ns") - pl.col("begin_ns"),
        on_cpu_ns="running_ns",
        told_ns="known_ns",
    )


def _covered(figure: pl.Expr) -> pl.Expr:
    """The figure if the scheduler's events cover the stretch: with less coverage it would not be a fair sample."""
    return pl.when(100.0 * pl.col("told_ns") >= MIN_KNOWN_PERCENT * pl.col("wall_ns")).then(figure)


def _shares(rows: pl.DataFrame, trace: Source) -> pl.DataFrame:
    """Rows of trees (`node`, `parent`, `depth` 0 for the thread itself) with their shares in thread and parent."""
    # A share of two times of which different parts are known would be of neither.
    rows = rows.with_columns(cpu=_covered(pl.col("on_cpu_ns")))
    above = rows.select(parent="node", parent_wall="wall_ns", parent_cpu="cpu")
    top = rows.filter(pl.col("depth") == 0).select("thread_row", thread_wall="wall_ns", thread_cpu="cpu")
    known = pl.when(pl.lit(trace.facts["scheduler"] is not None))
    shares = {
        f"{figure}_of_{whole}_percent": part_of(pl.col(column), pl.col(f"{whole}_{figure}"))
        for figure, column in (("cpu", "cpu"), ("wall", "wall_ns"))
        for whole in ("thread", "parent")
    }
    return (
        rows.join(above, on="parent", how="left", maintain_order="left")
        .join(top, on="thread_row", how="left", maintain_order="left")
        .with_columns(
            **shares,
            cpu_usage_percent=_covered(part_of(pl.col("on_cpu_ns"), pl.col("told_ns"))),
            known_percent=known.then(part_of(pl.col("told_ns"), pl.col("wall_ns"))),
        )
    )


# Phases ---------------------------------------------------------------------------------------------------------------


def _phase_rows(trace: Source, scope: Scope, lengths: pl.DataFrame, inside: pl.DataFrame) -> pl.DataFrame:
    """Of each thread the rows of _ROWS as a tree: how often they came, the sums of their stretches, the longest one."""
    # How long a thread slept in the executor's own code, not for work, until another thread of the executor woke it. A
    # phase does not end while its thread sleeps.
    slept = Threads(trace).locked_by_its_executor().group_by("phase_row").agg(pl.col("slept_ns").sum())
    follows_wait = (pl.col("phase") == _WAIT).shift(1).over("thread_row").fill_null(False)
    stretches = pl.concat(
        [
            lengths.join(slept, on="phase_row", how="left", maintain_order="left").with_columns(
                begins=(pl.col("phase") == _READY) & ~follows_wait,
                executor_lock_ns=pl.when(pl.col("on_cpu_ns").is_not_null()).then("slept_ns"),
            ),
            inside.with_columns(phase=pl.lit(_IN_CALLBACKS) + pl.col("phase")),
        ],
        how="diagonal_relaxed",
    )
    shape = pl.DataFrame(
        _ROWS,
        schema={"function": pl.String, "depth": pl.Int64, "above": pl.Int64, "phase": pl.List(pl.String)},
        orient="row",
    ).with_row_index("place")
    is_spin = pl.col("function") == "spin"
    longest = pl.col("wall_ns") == pl.col("wall_ns").max()
    parts = (
        stretches.join(shape.select("function", "phase").explode("phase"), on="phase", maintain_order="left")
        .group_by("thread_row", "function")
        .agg(
            *map(_sum, ("wall_ns", "on_cpu_ns", "blocked_ns", "stopped_ns", "preempted_ns", "wake_up_ns")),
            pl.col("told_ns", "begins", "executor_lock_ns").sum(),
            count=pl.len(),
            span_ns=pl.max_horizontal(pl.col("end_ns").max(), pl.col("start_ns").max()) - pl.col("start_ns").min(),
            wall_max_ns=pl.col("wall_ns").max(),
            wall_max_at_ns=since_begin(trace, "start_ns").filter(longest).first(),
        )
        .with_columns(
            wall_ns=pl.when(is_spin).then("span_ns").otherwise("wall_ns"),
            count=pl.when(is_spin)
            .then(1)
            .when(pl.col("function") == "get_next_executable")
            .then("begins")
            .otherwise("count"),
        )
    )
    life = _life(trace, lengths["thread_row"], scope).with_columns(function=pl.lit("thread"))
    # Of what never happened nothing is on a CPU, if anybody looked.
    watched = pl.lit(None if trace.facts["scheduler"] is None else 0, pl.Int64)
    nothing = {"wall_ns": pl.lit(0), "told_ns": watched, "on_cpu_ns": watched, "count": pl.lit(0)}
    never = pl.col("count").is_null()
    first = pl.col("thread_row").cast(pl.Int64) * len(_ROWS)
    rows = (
        lengths.select(pl.col("thread_row").unique(maintain_order=True))
        .join(shape, how="cross", maintain_order="left_right")
        .join(
            pl.concat([life, parts], how="diagonal_relaxed"),
            on=["thread_row", "function"],
            how="left",
            maintain_order="left",
        )
        .with_columns(pl.when(never).then(value).otherwise(name).alias(name) for name, value in nothing.items())
        .with_columns(node=first + pl.col("place"), parent=first + pl.col("above"))
    )
    return _shares(rows, trace)


def _phase_table(trace: Source, rows: pl.DataFrame, lengths: pl.DataFrame, quality: Quality) -> Section:
    spin = rows.filter(pl.col("function") == "spin")
    of_spin = pl.when(pl.col("depth") > 0).then(part_of(pl.col("wall_ns"), pl.col("spin_wall")))
    rows = rows.join(spin.select("thread_row", spin_wall="wall_ns"), on="thread_row", maintain_order="left")
    notes = _phase_notes(trace, lengths, spin, quality)
    return _tree_section(trace, EXECUTOR, rows.with_columns(wall_of_spin_percent=of_spin), notes)


def _phase_notes(trace: Source, lengths: pl.DataFrame, spins: pl.DataFrame, quality: Quality) -> list[str]:
    if lengths.is_empty():
        return [_why_no_phases(trace)]
    notes = [NO_IDENTITY]
    spinning = int(spins["wall_ns"].sum())
    if (gap := spinning - int(lengths["wall_ns"].sum())) > 0:
        notes.append(f"In {100 * gap / spinning:.3g} % of the time in spin the phase is not known")
    if touched := int(quality.touched(lengths["start_ns"], lengths["end_ns"]).sum()):
        notes.append(
            f"{plural(touched, 'phase')} where events were lost: others may lie within them, and are their time"
        )
    known = spins["known_percent"].filter(spins["known_percent"] < MIN_KNOWN_PERCENT)
    if len(known):
        covered = [f"{share:.3g}" for share in known.sort()]
        range_ = covered[0] if len(covered) == 1 else f"{covered[0]} to {covered[-1]}"
        notes.append(
            f"Of {plural(len(known), 'thread')} the scheduler's events cover {range_} % of spin only: on-CPU time is "
            "of that part (known_percent)"
        )
    if nested := int(lengths["nested"].sum()):
        notes.append(f"{plural(nested, 'phase')} {NESTED}")
    return notes


def _nested(trace: Source, lengths: pl.DataFrame) -> pl.DataFrame:
    """The phases with whether they begin within a callback: they are of an executor that it spins then."""
    outermost = trace.table("callback_instances").filter(pl.col("parent").is_null())
    around = outermost.select(pl.col("thread").alias("thread_row"), began_ns="start_ns", until_ns="end_ns")
    within = (pl.col("start_ns") < pl.col("until_ns")).fill_null(False)
    flags = _begun_before(lengths, around, exactly=False).select("phase_row", within.alias("nested"))
    return lengths.join(flags, on="phase_row", how="left", maintain_order="left")


def _begun_before(frame: pl.DataFrame, others: pl.DataFrame, *, exactly: bool = True) -> pl.DataFrame:
    """Each stretch with the one of the others that began last before it on its thread, or `exactly` with it."""
    return frame.sort("start_ns").join_asof(
        others.sort("began_ns"), left_on="start_ns", right_on="began_ns", by="thread_row", strategy="backward",
        allow_exact_matches=exactly, check_sortedness=False,
    )  # fmt: skip


def _callbacks_inside(trace: Source, lengths: pl.DataFrame) -> pl.DataFrame:
    """The outermost callbacks that begin within an execute or dispatch that ended, with what the scheduler says."""
    outermost = trace.table("callback_instances").filter(pl.col("parent").is_null())
    phases = lengths.filter(~pl.col("nested")).select("thread_row", "phase", began_ns="start_ns", until_ns="end_ns")
    callbacks = outermost.select(pl.col("thread").alias("thread_row"), "start_ns", "end_ns")
    during = _begun_before(callbacks, phases)
    # Without its end a phase has no duration that its callbacks could be a part of.
    ended = pl.col("phase").is_in(_WITH_CALLBACKS) & (pl.col("start_ns") <= pl.col("until_ns"))
    return _with_split(trace, during.filter(ended))


def _why_no_phases(trace: Source) -> str:
    kinds = {event["kind"] for event in trace.facts["events"] if event["count"] and event["kind"] is not None}
    if any(kind.startswith("executor_") for kind in kinds):
        return "No thread has phases of an executor"
    nothing = "The trace has none of the executor's events (rclcpp_executor_...)"
    return f"{nothing}: not recorded, or nothing spun that has them; {SILENT_EXECUTORS} have none"


def _phase_states(trace: Source, rows: pl.DataFrame) -> Section:
    """What threads do in each phase: run, wait for a CPU, sleep; and what they sleep for."""
    row = pl.col("function")
    in_callbacks = rows.filter(row.str.starts_with(_IN_CALLBACKS)).select(
        "thread_row", phase=row.str.strip_prefix(_IN_CALLBACKS), blocked_in_callbacks_ns="blocked_ns"
    )
    scheduler = trace.facts["scheduler"]
    sees_wakers = scheduler is not None and scheduler["has_wakeups"]
    known_sleep, executes = pl.col("blocked_ns").is_not_null(), pl.col("phase").is_in(_WITH_CALLBACKS)
    for_lock = known_sleep & (pl.col("phase") != _WAIT) & pl.lit(sees_wakers)
    told = pl.when(known_sleep).then("told_ns")
    rows = (
        rows.with_columns(phase=row.replace("get_next_ready_executable", _READY))
        .filter(pl.col("phase").is_in(_PHASES) & (pl.col("count") > 0))
        .join(in_callbacks, on=["thread_row", "phase"], how="left", maintain_order="left")
        .with_columns(
            pl.when(known_sleep & executes).then(pl.col("blocked_in_callbacks_ns").fill_null(0)),
            pl.when(for_lock).then("executor_lock_ns").alias("executor_lock_ns"),
            runnable_ns=pl.col("preempted_ns") + pl.col("wake_up_ns"),
            known_percent=part_of(told, pl.col("wall_ns")),
        )
        .with_columns(
            _covered(part_of(pl.col(f"{state}_ns"), pl.col("told_ns"))).alias(f"{state}_percent")
            for state in _STATE_WORDS
        )
    )
    times, shares = ([f"{state}_{unit}" for state in _STATE_WORDS] for unit in ("ns", "percent"))
    why = {}
    if scheduler is None:
        why = dict.fromkeys((*times, *shares, "known_percent"), NO_SCHEDULER)
    elif not sees_wakers:
        why = dict.fromkeys(("executor_lock_ns", "executor_lock_percent"), NO_WAKERS)
    hidden = {*times, "preempted_percent", "wake_up_percent"}
    if not rows["stopped_ns"].sum():
        hidden.add("stopped_percent")
    return section_of(trace, PHASES, rows, _state_notes(rows), why, hidden)


def _state_notes(sums: pl.DataFrame) -> tuple[str, ...]:
    if sums.is_empty():
        return ("No executor has phases in the trace",)
    notes = [
        "Shares are of the time in which the thread's state is known. Runnable: preempted, or woken and not yet on a "
        "CPU. Stopped: by a signal or a debugger. Blocked: asleep; in wait_for_work for work, elsewhere in a callback, "
        "for a lock, for the disk. "
        "Executor_lock: the part of blocked until a thread of the same executor let go. Max at: when the longest "
        "began, from the beginning of the trace"
    ]
    waited = sums.group_by("thread_row").agg(
        pl.col("executor_lock_ns").sum(), pl.col("wall_ns").sum(), pl.col("executor_lock_ns").arg_max().alias("most")
    )
    waited = waited.filter(part_of(pl.col("executor_lock_ns"), pl.col("wall_ns")) >= MUCH_LOCK_PERCENT)
    if waited.height:
        share = waited.select(part_of(pl.col("executor_lock_ns").sum(), pl.col("wall_ns").sum())).item()
        notes.append(
            f"{plural(waited.height, 'thread')} spent {share:.3g} % of the time waiting for the executor's lock: "
            "another thread of the executor looked for work, or waited for it, meanwhile"
        )
    return tuple(notes)


def _without_phases(trace: Source, phases: pl.DataFrame, scope: Scope) -> Section:
    """Threads that run callbacks and have no phases, and programs that show neither."""
    instances = trace.table("callback_instances").rename({"thread": "thread_row"})
    instances = scope.of_threads(trace, scope.within(instances, "start_ns"))
    others = instances.filter(pl.col("parent").is_null()).join(phases, on="thread_row", how="anti")
    reason = (
        f"no executor's event on this thread: {SILENT_EXECUTORS} have none, nor has a program's own call"
        if phases.height
        else _why_no_phases(trace)
    )
    rows = (
        others.group_by("thread_row", maintain_order=True)
        .agg(pl.len().alias("callbacks"), (pl.col("end_ns") - pl.col("start_ns")).sum().alias("in_callbacks_ns"))
        .with_columns(reason=pl.lit(reason))
    )
    who = identities(trace)
    seen = pl.concat([phases.select("thread_row"), instances.select("thread_row")]).unique()
    active = who.join(seen, on="thread_row", how="semi").select("host", "process", "pid").unique()
    nodes = names.processes(trace).filter(pl.col("process_row").is_in(trace.table("nodes")["process"].implode()))
    of_ros = who.join(nodes, on=["process", "pid"], how="semi", nulls_equal=True)
    silent = of_ros.join(active, on=["host", "process", "pid"], how="anti", nulls_equal=True)
    silent = silent.select("process", "pid").unique(maintain_order=True)
    if scope.has_names:
        silent = silent.clear()  # where some nodes are asked about, nothing is said of the processes of others
    notes = []
    if rows.is_empty() and silent.is_empty():
        notes.append("Every thread that runs callbacks has phases" if phases.height else "No thread runs callbacks")
    if silent.height:
        listed = ", ".join(f"{row['process'] or 'process'} ({row['pid']})" for row in silent.iter_rows(named=True))
        notes.append(
            f"Processes with nodes but neither phases nor callbacks, as programs in Python have none: {listed}"
        )
    return section_of(trace, WITHOUT_PHASES, rows, notes)


# Functions ------------------------------------------------------------------------------------------------------------


def base_name(symbol: str) -> str:
    """A demangled function's name without its return type, template arguments and arguments.

    >>> base_name("void rclcpp::Executor::run<int>(std::function<void ()>, int) const")
    'rclcpp::Executor::run'
    """
    kept: list[str] = []
    depth = 0
    for letter in symbol.replace("(anonymous namespace)", "{anonymous}"):
        if letter in "<(":
            depth += 1
        elif letter in ">)":
            depth = max(0, depth - 1)
        elif depth == 0:
            kept.append(letter)
    words = "".join(kept).split()
    while len(words) > 1 and words[-1] in ("const", "volatile", "&", "&&", "[clone"):
        words.pop()
    return words[-1] if words else symbol


def _function_sections(trace: Source, calls: pl.DataFrame, largest: int | None) -> list[Section]:
    functions = trace.table("functions")
    symbols = [symbol or f"0x{address:x}" for symbol, address in functions.select("symbol", "address").rows()]
    labels = pl.DataFrame(
        {"function": map(base_name, symbols), "symbol": symbols},
        schema={"function": pl.String, "symbol": pl.String},
    ).with_row_index("label")
    lengths = _with_split(
        trace, calls.select("thread_row", "start_ns", "end_ns", "parent", label=pl.col("function").cast(pl.UInt32))
    )
    notes = []
    if unended := lengths["wall_ns"].null_count():
        notes.append(f"{plural(unended, 'call')} had not returned when the trace ended: counted, without a duration")
    if unnamed := functions["symbol"].null_count():
        notes.append(f"{plural(unnamed, 'function')} of {functions.height} without a name: addresses stand for them")

    # The executor's functions among themselves: what is called between two of them is time of the outer one.
    of_executor = [EXECUTOR_FUNCTION.fullmatch(name) is not None for name in labels["function"]]
    nodes = _nodes(lengths)
    own = _tree(trace, lengths, nodes, of_executor, labels)
    none = () if own.height else ("No function of an rclcpp executor is among those that the trace has",)
    tree = _tree(trace, lengths, nodes, [True] * len(symbols), labels)
    kept = tree if largest is None else _largest(tree, largest)
    cut = (f"The {largest} longest of {tree.height}; --all has all of them",) if kept.height < tree.height else ()
    # Wherever they are called from; time of a recursive call is counted once.
    outermost = ~pl.col("recursive")
    flat = (
        tree.filter(pl.col("depth") > 0)
        .with_columns(pl.when(outermost).then(pl.col("wall_ns", "on_cpu_ns")))
        .group_by("thread_row", "label", "function", "symbol", maintain_order=True)
        .agg(pl.col("count").sum(), *_OWN_TIMES)
    )
    return [
        _tree_section(trace, EXECUTOR_FUNCTIONS, own, (*none, *notes)),
        _tree_section(trace, CALL_TREE, kept, (*cut, *notes)),
        _tree_section(trace, FUNCTIONS, flat, notes, longest="self_ns"),
    ]


_Nodes = dict[tuple[int, int], int]  # by the node above, of a thread -1 - its row, and the function


def _nodes(lengths: pl.DataFrame) -> tuple[_Nodes, list[int]]:
    """The nodes of a tree of all calls, where those of a thread with the same chain of callers are one; and of which
    node each call is."""
    nodes: _Nodes = {}
    node_of: list[int] = []
    columns = (lengths[name].to_list() for name in ("thread_row", "label", "parent"))
    for thread, label, parent in zip(*columns, strict=True):
        above = -1 - thread if parent is None else node_of[parent]
        node_of.append(nodes.setdefault((above, label), len(nodes)))
    return nodes, node_of


def _without(nodes: _Nodes, chosen: Sequence[bool]) -> tuple[_Nodes, list[int]]:
    """The tree of the chosen functions, and its node of each one before: one that is not chosen is a part of the one
    above."""
    kept: _Nodes = {}
    kept_of: list[int] = []
    for before, label in nodes:
        above = before if before < 0 else kept_of[before]
        kept_of.append(kept.setdefault((above, label), len(kept)) if chosen[label] else above)
    return kept, kept_of


def _callers(lengths: pl.DataFrame, chosen: Sequence[bool]) -> pl.Series:
    """Of each call the one that counts: itself, or the nearest around it that is chosen; null where there is none."""
    nobody = lengths.height
    itself, picked = np.arange(nobody), np.array(chosen, dtype=bool)[lengths["label"]]
    caller = np.append(np.where(picked, itself, lengths["parent"].fill_null(nobody)), nobody)
    while not np.array_equal(further := caller[caller], caller):
        caller = further
    return pl.Series(caller[:-1]).replace(nobody, None)


def _tree(
    trace: Source,
    lengths: pl.DataFrame,
    calls: tuple[_Nodes, list[int]],
    chosen: Sequence[bool],
    labels: pl.DataFrame,
) -> pl.DataFrame:
    """The calls (`_nodes`) of the chosen functions: a row for each node, in the order of the tree, below one of the
    thread itself; `recursive`: the function is in the chain.
    """
    nodes, node_of = _without(calls[0], chosen)
    chains: dict[int, tuple[int, ...]] = {}
    for (above, label), node in nodes.items():
        chains[node] = (*chains.get(above, ()), label)
    rows = [
        (node, above, label, len(chains[node]), label in chains[node][:-1]) for (above, label), node in nodes.items()
    ]
    callers = _callers(lengths, chosen)
    counted = lengths.with_columns(
        call=pl.int_range(pl.len()),
        node=pl.Series(node_of, dtype=pl.Int64).gather(calls[1]),
        caller=callers,
        above=callers.gather(lengths["parent"]),
    )
    figures = (
        _with_own(counted.filter(pl.col("call") == pl.col("caller")))
        .group_by("node")
        .agg(pl.col("thread_row").first(), pl.len().alias("count"), *_OWN_TIMES, pl.col("told_ns").sum())
    )
    schema = {"node": pl.Int64, "parent": pl.Int64, "label": pl.UInt32, "depth": pl.Int64, "recursive": pl.Boolean}
    tree = pl.DataFrame(rows, schema=schema, orient="row").join(figures, on="node", maintain_order="left")
    whole = _life(trace, figures["thread_row"]).with_columns(
        node=-1 - pl.col("thread_row").cast(pl.Int64), parent=pl.lit(None, pl.Int64), depth=pl.lit(0, pl.Int64),
        function=pl.lit("thread"),
    )  # fmt: skip
    tree = tree.join(labels, on="label", how="left", maintain_order="left")
    return _in_order(_shares(pl.concat([whole, tree], how="diagonal_relaxed"), trace))


def _with_own(calls: pl.DataFrame) -> pl.DataFrame:
    """With what is left of the times of each call without the calls below it; null where one of these is not known."""
    times = ("wall_ns", "on_cpu_ns")
    known = (pl.when(pl.col(time).null_count() == 0).then(pl.col(time).sum()).alias(f"below_{time}") for time in times)
    below = calls.group_by(call="above").agg(*known, calls=pl.len())
    rest = {time: pl.col(time) - pl.col(f"below_{time}") for time in times}
    alone = pl.col("calls").is_null()
    return calls.join(below, on="call", how="left", maintain_order="left").with_columns(
        pl.when(alone).then(time).otherwise(rest[time]).alias(own)
        for time, own in zip(times, ("self_ns", "on_cpu_self_ns"), strict=True)
    )


def _in_order(rows: pl.DataFrame) -> pl.DataFrame:
    """Each node before those below it, siblings by their duration."""
    below: dict[int | None, list[tuple[int, int]]] = defaultdict(list)
    by_duration = rows.with_row_index("row").sort("wall_ns", descending=True, nulls_last=True, maintain_order=True)
    for parent, row, node in zip(*(by_duration[name].to_list() for name in ("parent", "row", "node")), strict=True):
        below[parent].append((row, node))
    order, waiting = [], below[None]
    while waiting:
        row, node = waiting.pop()
        order.append(row)
        waiting += reversed(below[node])
    return rows[order]


def _largest(rows: pl.DataFrame, count: int) -> pl.DataFrame:
    """The nodes with the longest durations, and what is above them."""
    chosen = rows.filter(pl.col("depth") > 0).sort("wall_ns", descending=True, nulls_last=True).head(count)
    parents = dict(rows.select("node", "parent").iter_rows())
    kept = set()
    for start in chosen["node"]:
        node = start
        while node is not None and node not in kept:
            kept.add(node)
            node = parents[node]
    return rows.filter(pl.col("node").is_in(list(kept)))


def _tree_section(
    trace: Source, table: Table, rows: pl.DataFrame, notes: Iterable[str], longest: str | None = None
) -> Section:
    hidden = {"depth", "symbol", *(() if table is EXECUTOR else ("known_percent",))}.intersection(table.names)
    because: dict[str, str] = {}
    if trace.facts["scheduler"] is None:
        because = dict.fromkeys((c.name for c in table.columns if c.name.startswith(_OF_CPU)), NO_SCHEDULER)
    return section_of(trace, table, rows, notes, because, hidden, longest=longest)
