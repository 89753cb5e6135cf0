"""Everything that perflab prints. Foreign text reaches a terminal only as plain characters.

Names and words come from trial.json, logs, traces and other users' threads, so they may contain anything that a
terminal interprets: escape sequences, characters that move the cursor or reverse the writing direction, and rich's
markup. Each such character is printed as \\uXXXX, which is also what JSON may write, so `--json` stays the same
document.

There are two outputs: `guarded` replaces stdout and stderr by streams that write nothing raw, and `console` makes the
only rich consoles, whose styles are perflab's own.
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

PLAIN_WIDTH = 160  # width of output to a file or a pipe, unless COLUMNS overrides it

# The content of `captured`: text with a console's styles, for the terminal to interpret.
Styled = NewType("Styled", str)

# Controls (C0 without tab and line end, DEL, C1), bidirectional controls, invisible characters, non-ASCII line ends,
# surrogates that stand for bytes in file names, and tags.
_OBEYED = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    r"\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
)
_IN_TEXT = re.compile(f"[{_OBEYED}]")
_IN_LINE = re.compile(f"[\n{_OBEYED}]")


def visible(text: str) -> str:
    """`text` with everything that a terminal would interpret escaped; tabs and line ends stay.

    >>> visible("a\\x1b[2Jb")
    'a\\\\u001b[2Jb'
    """
    return _IN_TEXT.sub(_written_out, text)


def visible_line(text: str) -> str:
    """The same for `text` within a line: line ends are escaped, too."""
    return _IN_LINE.sub(_written_out, text)


def _written_out(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", errors="surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))


class _Guarded:
    """A text stream that escapes what it writes; everything else is the wrapped stream's."""

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
    """`stream`, written to only through `visible`."""
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
    """Created on first use: rich takes a while to import."""
    import rich.console
    from rich.segment import Segment
    from rich.text import Text

    class VisibleConsole(rich.console.Console):
        """All rendered output passes here as text: everything that a terminal would interpret is escaped, except what
        rich adds."""

        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            shown = visible_text(renderable) if isinstance(renderable, Text) else renderable
            for segment in super().render(shown, options):
                yield segment if segment.control else Segment(visible(segment.text), segment.style)

    return VisibleConsole


def console(file: IO[str] | None = None) -> Console:
    """A console on stdout: styled and as wide as the terminal, or plain and wide if it is not one."""
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
    """Collects what is printed on `out` meanwhile; the list then contains it as its only entry."""
    whole: list[Styled] = []
    with out.capture() as capture:
        yield whole
    whole.append(Styled(capture.get()))


def write_json(document: object) -> None:
    """Prints only the output of `--json`."""
    sys.stdout.write(json.dumps(document, indent=1, ensure_ascii=False) + "\n")


def write_captured(text: Styled) -> None:
    """Prints what a console captured."""
    _raw(sys.stdout).write(text)


def visible_text(text: Text) -> Text:
    """The same with its styles. It is a line, or a cell of a table: line ends are escaped, too."""
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
