"""`perflab trace compare`: two traces side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from perflab.cli.trace.common import AsJson, Begin, End, Node, Threads, Top, Topic, Whole, opened, scope_of, show
from perflab.errors import BadInput

_TREES = ("executor",)


def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="Folder with a trace; differences are to it.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Folder with the other.")],
    begin: Begin = None,
    end: End = None,
    node: Node = None,
    topic: Topic = None,
    as_json: AsJson = False,
    whole: Whole = False,
    top: Top = None,
    threads: Threads = 0,
) -> int:
    """Show two traces side by side: callbacks, messages, executors and threads of the same name.

    Figures, differences and ratios; no verdict, for one trace of either is one trial of either.

    \b
        perflab trace compare before/session after/session
    """
    from perflab.trace.compare import compare as answer

    if _same(a, b):
        raise BadInput(f"{b} is named twice, and is compared with itself; name another trace")
    first, second = opened([a], threads), opened([b], threads)
    scopes = (scope_of(first, begin, end, node, topic), scope_of(second, begin, end, node, topic))
    return show(answer(first, second, scopes), as_json=as_json, whole=whole, top=top, trees=_TREES)


def _same(a: Path, b: Path) -> bool:
    try:
        return a.resolve() == b.resolve()
    except (OSError, RuntimeError):  # the latter of links in a loop
        return False
