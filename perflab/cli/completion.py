"""Completion in bash, which splits words at `:` and `=`: it asks for `cpu_load:load=` as four words."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from collections.abc import Callable, Sequence

INSTRUCTION = "_PERFLAB_COMPLETE"  # set by typer's shell scripts
BREAKS = re.compile("[:=]+")


def asked() -> bool:
    """Whether a shell is asking for completions; it would show anything that is printed."""
    return INSTRUCTION in os.environ


def in_bash() -> bool:
    """Whether bash is asking for completions."""
    return os.environ.get(INSTRUCTION) == "complete_bash"


def complete(run: Callable[[], object]) -> int:
    """Makes `run` print completions of the whole word, and prints the part that bash asked for."""
    words = os.environ["COMP_WORDS"].split("\n")
    whole, number = joined(words, int(os.environ["COMP_CWORD"]))
    os.environ |= {"COMP_WORDS": "\n".join(whole), "COMP_CWORD": str(number)}
    word = re.sub(r"^--[\w-]+=", "", whole[number]) if number < len(whole) else ""
    there = word[: max((found.end() for found in BREAKS.finditer(word)), default=0)]
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        run()
    sys.stdout.writelines(f"{line.removeprefix(there)}\n" for line in out.getvalue().splitlines())
    return 0


def joined(words: Sequence[str], number: int) -> tuple[list[str], int]:
    """The words as typed, and the index of the one to complete.

    >>> joined(["perflab", "run", "--condition", "cpu_load", ":", "lo"], 5)
    (['perflab', 'run', '--condition', 'cpu_load:lo'], 3)
    """
    whole: list[str] = []
    meant = 0
    for place, word in enumerate(words):
        if whole and word and (BREAKS.fullmatch(word) or BREAKS.fullmatch(words[place - 1])):
            whole[-1] += word
        else:
            whole.append(word)
        if place == number:
            meant = len(whole) - 1
    return whole, meant if number < len(words) else len(whole)
