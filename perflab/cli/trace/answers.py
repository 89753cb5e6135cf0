"""The verbs of `perflab trace` that ask one question: of one trace, or of two side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from perflab.cli.trace.common import Asked, Paths
from perflab.errors import BadInput


@Asked.options()
def summary(paths: Paths, **options: Any) -> int:
    """Show what a trace holds, and how good its data are.

    Processes, nodes, topics, what was lost, and how much of it the other answers rest on.

    \b
        perflab trace summary ~/.ros/tracing/session
    """
    from perflab.trace.summary import summary

    return Asked(**options).answer(paths, summary)


@Asked.options()
def callbacks(paths: Paths, **options: Any) -> int:
    """Show how long callbacks ran, how regularly they came, and what kept them from running.

    Where their time went needs the scheduler's events (sched_switch, sched_wakeup).

    \b
        perflab trace callbacks ~/.ros/tracing/session --top 10
    """
    from perflab.trace.callbacks import callbacks

    return Asked(**options).answer(paths, callbacks)


@Asked.options()
def messages(paths: Paths, **options: Any) -> int:
    """Show how long messages took from publisher to callback, by legs, and how many did not arrive.

    Of every edge: a publisher, a topic and a subscription.

    \b
        perflab trace messages ~/.ros/tracing/session --json
    """
    from perflab.trace.messages import messages

    return Asked(**options).answer(paths, lambda trace, scope: messages(trace, scope=scope))


@Asked.options()
def executor(paths: Paths, **options: Any) -> int:
    """Show what executors spend their threads' time on: waiting, finding what is ready, executing.

    CPU time needs the scheduler's events. Programs built with -finstrument-functions show it function by function, too;
    of the tree of calls the longest are shown, with --all (also in JSON) all of them.

    \b
        perflab trace executor ~/.ros/tracing/session
    """
    from perflab.trace.executor import LARGEST, TREES, executor

    asked = Asked(**options)
    largest = None if asked.whole else LARGEST
    return asked.answer(paths, lambda trace, scope: executor(trace, largest, scope), TREES)


@Asked.options()
def scheduling(paths: Paths, **options: Any) -> int:
    """Show CPU time, wake-up latency, preemptions and periods of threads.

    Needs the scheduler's events (sched_switch, sched_wakeup); ROS need not be traced.

    \b
        perflab trace scheduling session/kernel --top 20
    """
    from perflab.trace.scheduling import scheduling

    return Asked(**options).answer(paths, scheduling)


@Asked.options()
def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="Folder with a trace; differences are to it.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Folder with the other.")],
    **options: Any,
) -> int:
    """Show two traces side by side: callbacks, messages, executors and threads of the same name.

    Figures, differences and ratios; no verdict, for one trace of either is one trial of either.

    \b
        perflab trace compare before/session after/session
    """
    from perflab.trace.compare import EXECUTOR, compare

    if _same(a, b):
        raise BadInput(f"{b} is named twice, and is compared with itself; name another trace")
    asked = Asked(**options)
    first, second = asked.open([a]), asked.open([b])
    return asked.show(compare(first, second, (asked.scope(first), asked.scope(second))), (EXECUTOR.name,))


def _same(a: Path, b: Path) -> bool:
    try:
        return a.resolve() == b.resolve()
    except (OSError, RuntimeError):  # the latter of links in a loop
        return False
