"""`perflab trace messages`: messages from publish to callback."""

from __future__ import annotations

from perflab.cli.trace.common import AsJson, Begin, End, Node, Paths, Threads, Top, Topic, Whole, opened, scope_of, show


def messages(
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
    """Show how long messages took from publisher to callback, by legs, and how many did not arrive.

    Of every edge: a publisher, a topic and a subscription.

    \b
        perflab trace messages ~/.ros/tracing/session --json
    """
    from perflab.trace.messages import messages as answer

    trace = opened(paths, threads)
    found = answer(trace, scope=scope_of(trace, begin, end, node, topic))
    return show(found, as_json=as_json, whole=whole, top=top)
