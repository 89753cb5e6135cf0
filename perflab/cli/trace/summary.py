"""`perflab trace summary`: what a trace holds, and how good it is."""

from __future__ import annotations

from perflab.cli.trace.common import AsJson, Begin, End, Node, Paths, Threads, Top, Topic, Whole, opened, scope_of, show


def summary(
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
    """Show what a trace holds, and how good its data are.

    Processes, nodes, topics, what was lost, and how much of it the other answers rest on.

    \b
        perflab trace summary ~/.ros/tracing/session
    """
    from perflab.trace.summary import summary as answer

    trace = opened(paths, threads)
    found = answer(trace, scope_of(trace, begin, end, node, topic))
    return show(found, as_json=as_json, whole=whole, top=top)
