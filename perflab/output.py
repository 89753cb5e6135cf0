"""Everything that perflab prints. Nothing foreign reaches a terminal as anything but letters.

Names and words come from trial.json, logs, traces and other users' threads, so they may hold whatever a terminal obeys:
escape sequences, characters that move the cursor or turn the direction of writing around, and rich's markup. Each such
character is printed as \\uXXXX, which is also what JSON may write, so `--json` stays the same document.

Two ways lead out: `guarded` puts a stream before stdout and stderr that writes nothing raw, and `console` makes the
only consoles of rich, whose styles are perflab's own.
"""

from __future__ import annotations

import bisect
import contextlib
import functools
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from typing import IO, TYPE_CHECKING, Any, NewType, TextIO, cast

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.text import Text

PLAIN_WIDTH = 160  # of output that goes into a file or a pipe, where COLUMNS does not say otherwise

# What `captured` holds: text with the styles of a console, which are the terminal's to obey.
Styled = NewType("Styled", str)

# Controls (C0 without tab and line end, DEL, C1), what turns the direction of writing, what is invisible, line ends
# that are none in ASCII, halves of characters that stand for bytes in names of files, and tags.
_OBEYED = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    r"\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
)
_IN_TEXT = re.compile(f"[{_OBEYED}]")
_IN_LINE = re.compile(f"[\n{_OBEYED}]")


def visible(text: str) -> str:
    """`text` with what a terminal would obey written out; tabs and line ends stay.

    >>> visible("a\\x1b[2Jb")
    'a\\\\u001b[2Jb'
    """
    return _IN_TEXT.sub(_written_out, text)


def visible_line(text: str) -> str:
    """The same where `text` is part of a line: line ends are written out, too."""
    return _IN_LINE.sub(_written_out, text)


def _written_out(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", errors="surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))


class _Guarded:
    """A text stream that writes what is visible; all else is the stream's own."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        self.stream.write(visible(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def guard(stream: TextIO) -> TextIO:
    """`stream`, written to with `visible` alone."""
    return stream if isinstance(stream, _Guarded) else cast(TextIO, _Guarded(stream))


@contextlib.contextmanager
def guarded() -> Iterator[None]:
    """Within this context nothing raw reaches stdout or stderr."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = guard(sys.stdout), guard(sys.stderr)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _raw(stream: IO[str]) -> IO[str]:
    return stream.stream if isinstance(stream, _Guarded) else stream


@functools.cache
def _console_class() -> type[Console]:
    """Made when it is needed: rich takes a while to import."""
    import rich.console
    from rich.segment import Segment
    from rich.text import Text

    class VisibleConsole(rich.console.Console):
        """Whatever is rendered ends here as text: what a terminal would obey is written out, but what rich adds."""

        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            shown = visible_text(renderable) if isinstance(renderable, Text) else renderable
            for segment in super().render(shown, options):
                yield segment if segment.control else Segment(visible(segment.text), segment.style)

    return VisibleConsole


def console(file: IO[str] | None = None) -> Console:
    """A console on stdout: styled and as wide as the terminal, or plain and wide when it is not one."""
    target = _raw(file or sys.stdout)
    if target.isatty():
        return _console_class()(file=target, highlight=False, markup=False, emoji=False)
    columns = os.environ.get("COLUMNS", "")
    width = int(columns) if columns.isdigit() and int(columns) > 0 else PLAIN_WIDTH
    return plain_console(target, width)


def plain_console(file: IO[str], width: int) -> Console:
    """A console without styles."""
    return _console_class()(
        file=_raw(file), width=width, no_color=True, force_terminal=False, highlight=False, markup=False, emoji=False
    )


@contextlib.contextmanager
def captured(out: Console) -> Iterator[list[Styled]]:
    """Keeps what is printed on `out` meanwhile; the list holds it afterwards, as its only entry."""
    whole: list[Styled] = []
    with out.capture() as capture:
        yield whole
    whole.append(Styled(capture.get()))


def write_json(document: object) -> None:
    """What `--json` prints, and nothing else."""
    sys.stdout.write(json.dumps(document, indent=1, ensure_ascii=False) + "\n")


def write_captured(text: Styled) -> None:
    """Prints what a console captured."""
    _raw(sys.stdout).write(text)


def visible_text(text: Text) -> Text:
    """The same with its styles. It is a line, or a cell of a table: line ends are written out, too."""
    from rich.text import Span

    ends: list[int] = []
    longer: list[int] = [0]
    for match in _IN_LINE.finditer(text.plain):
        ends.append(match.end())
        longer.append(longer[-1] + len(_written_out(match)) - 1)
    if not ends:
        return text

    def moved(offset: int) -> int:
        return offset + longer[bisect.bisect_right(ends, offset)]

    shown = text.blank_copy(visible_line(text.plain))
    shown.spans = [Span(moved(span.start), moved(span.end), span.style) for span in text.spans]
    return shown
