"""`perflab trace scheduling`: what the scheduler did with threads."""

from __future__ import annotations

from perflab.cli.trace.common import AsJson, Begin, End, Node, Paths, Threads, Top, Topic, Whole, opened, scope_of, show


def scheduling(
    paths: Paths,
    begin: Begin = None,
    end: End = None,
    node: Node = None,
    topic: Topic = None,
    as_json: AsJson = False,
    whole: Whole = False,
    top: Top = None,
    threads: Threads = 0,
) -> int:
    """Show CPU time, wake-up latency, preemptions and periods of threads.

    Needs the scheduler's events (sched_switch, sched_wakeup); ROS need not be traced.

    \b
        perflab trace scheduling session/kernel --top 20
    """
    from perflab.trace.scheduling import scheduling as answer

    trace = opened(paths, threads)
    found = answer(trace, scope_of(trace, begin, end, node, topic))
    return show(found, as_json=as_json, whole=whole, top=top)
