"""`perflab trace executor`: what executors spend their time on."""

from __future__ import annotations

from perflab.cli.trace.common import AsJson, Begin, End, Node, Paths, Threads, Top, Topic, Whole, opened, scope_of, show

TREES = ("executor", "executor_functions", "call_tree")


def executor(
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
    """Show what executors spend their threads' time on: waiting, finding what is ready, executing.

    CPU time needs the scheduler's events. Programs built with -finstrument-functions show it function by function, too;
    of the tree of calls the longest are shown, with --all (also in JSON) all of them.

    \b
        perflab trace executor ~/.ros/tracing/session
    """
    from perflab.trace.executor import LARGEST
    from perflab.trace.executor import executor as answer

    trace = opened(paths, threads)
    found = answer(trace, None if whole else LARGEST, scope_of(trace, begin, end, node, topic))
    return show(found, as_json=as_json, whole=whole, top=top, trees=TREES)
