"""`perflab trace callbacks`: durations and periods of callbacks."""

from __future__ import annotations

from perflab.cli.trace.common import AsJson, Begin, End, Node, Paths, Threads, Top, Topic, Whole, opened, scope_of, show


def callbacks(
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
    """Show how long callbacks ran, how regularly they came, and what kept them from running.

    Where their time went needs the scheduler's events (sched_switch, sched_wakeup).

    \b
        perflab trace callbacks ~/.ros/tracing/session --top 10
    """
    from perflab.trace.callbacks import callbacks as answer

    trace = opened(paths, threads)
    found = answer(trace, scope_of(trace, begin, end, node, topic))
    return show(found, as_json=as_json, whole=whole, top=top)
