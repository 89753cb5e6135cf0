"""The errors that end a command, each with its exit code and one line for the user.

0 done, 1 a verdict or trial failed, 2 usage or bad input, 3 the machine cannot do it, 128 + n ended by signal n.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterable, Iterator


class PerflabError(Exception):
    """Ends a command. The text is one line: what, where, and what would be right."""

    exit_code = 1


class TrialFailed(PerflabError):
    """A trial did not succeed; what it recorded stays in the run directory."""


class BadInput(PerflabError):
    """The user's request is invalid; nothing was written."""

    exit_code = 2


class Unavailable(PerflabError):
    """This machine cannot do it; the text says what is missing and the command that installs it."""

    exit_code = 3


class Interrupted(PerflabError):
    """A signal asked perflab to end."""

    def __init__(self, signum: int) -> None:
        super().__init__(f"interrupted by {signal.Signals(signum).name}")
        self.signum = signum
        self.exit_code = 128 + signum


class ProtocolError(PerflabError):
    """One of perflab's own programs violated the protocol."""


class NotAsExpected(PerflabError):
    """The records differ from the expected result."""


class LeftOut(UserWarning):
    """An extension from another package cannot be used. The text is one line."""


# Python's exceptions for a document that could be parsed but has unexpected content.
DAMAGE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


@contextlib.contextmanager
def damage_of(*places: object) -> Iterator[None]:
    """Converts errors about unexpected content within this context to BadInput about the files at `places`."""
    try:
        yield
    except Exception as error:
        if isinstance(error, DAMAGE) or type(error).__module__.partition(".")[0] == "polars":
            where = " or ".join(dict.fromkeys(map(str, places)))
            raise BadInput(f"{where} is damaged: {type(error).__name__}: {error}") from error
        raise


def one_line(text: str) -> str:
    """`text` with every run of white space, including line ends, as one space."""
    return " ".join(text.split())


def instead(word: str, known: Iterable[str], otherwise: str | None = None, *, most: int = 1) -> str:
    """Suggestions for an unknown word: at most this many similar ones, or all that exist."""
    import difflib

    words = list(known)
    if close := difflib.get_close_matches(word, words, n=most, cutoff=0.5):
        return f"did you mean {' or '.join(close)}?"
    return otherwise or f"there are {', '.join(words) or 'none'}"
