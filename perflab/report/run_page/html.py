"""The pieces that a report is made of: text, facts, boxes, tables that sort. Whatever is put in is escaped here."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from perflab.report.tables import model
from perflab.report.tables.model import DEEPER, AnyTable, Cell, Tone

LONG_ROWS = 50  # a table with more shows its first ones until it is asked for the rest
FIRST_ROWS = 20
WIDE_COLUMNS = 11  # from more on it stands on pages of its own that lie on their side, on paper

_UNITS = "ns|µs|ms|s|min|h|B|KiB|MiB|GiB|MB|Hz|MHz|GHz|CPUs?"

LONG_TEXT = 18
SENTENCE = 60  # letters from which on a line of a cell gets more room


# They turn the direction of what follows them, too: a name with one would turn the words of the page.
_TURNS = re.compile("[\u202a-\u202e\u2066-\u2069]")


def escape(text: object) -> str:
    return html.escape(_TURNS.sub("\ufffd", str(text)))


def unbroken(text: object) -> str:
    """Escaped, with numbers and their units kept on one line: "1 054", "45.2 µs"."""
    spaced = re.sub(rf"(?<=\d) (?=\d|%|(?:{_UNITS})\b)", "\u00a0", str(text))
    return escape(spaced)


def inline(text: object) -> str:
    """Like `unbroken`, with what stands between back quotes as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", unbroken(text))


def cell_html(cell: Cell, tag: str = "td", *, right: bool = False) -> str:
    """Sorted by its value: a number or a text; what is not known is always last."""
    value = cell.value
    known = None if isinstance(value, float) and not math.isfinite(value) else value
    by = "" if known is None else f' data-by="{escape(f"{known:.12g}" if isinstance(known, float) else known)}"'
    # What is long gets room for some words in a line.
    long = not right and any(len(line) > LONG_TEXT for line in (cell.text, *cell.below))
    sentence = long and any(len(line) > SENTENCE for line in (cell.text, *cell.below))
    kinds = ("r" if right else "", cell.tone, "long-text" if long else "", "sentence" if sentence else "")
    classes = " ".join(kind for kind in kinds if kind)
    sign = f'<b class="sign" aria-hidden="true">{escape(cell.sign)}</b>\u00a0' if cell.sign else ""
    below = "".join(f'<span class="below">{inline(line)}</span>' for line in cell.below if line)
    scope = ' scope="row"' if tag == "th" else ""
    given = f' class="{classes}"' if classes else ""
    why = f' title="{escape(cell.reason)}"' if cell.reason else ""
    text = inline(DEEPER * cell.depth + cell.text)
    return f"<{tag}{scope}{given}{by}{why}>{sign}{text}{below}</{tag}>"


def number(text: str, value: float | None, tone: Tone = "") -> Cell:
    """A formatted number, sorted by its value; without one, by nothing."""
    return Cell(text, None if value is None else float(value), tone)


def word(text: object, tone: Tone = "") -> Cell:
    shown = "–" if text is None or text == "" else str(text)
    return Cell(shown, None if shown == "–" else shown, tone)


@dataclass(frozen=True)
class Column:
    """`numeric` ones stand to the right and sort by number. `title` explains the header where one points at it."""

    header: str
    numeric: bool = True
    title: str = ""


@dataclass
class Table:
    """Rows of cells, one for each column; the first column heads its row. `caption` stands above it, `name` says the
    same to who cannot see what is around it."""

    caption: str
    columns: Sequence[Column]
    rows: list[list[Cell]] = field(default_factory=list)
    notes: Sequence[str] = ()
    name: str = ""
    long: int = LONG_ROWS

    def html(self) -> str:
        """Without the columns in which nothing is known; empty where there is no row."""
        if not self.rows:
            return ""
        kept = [i for i in range(len(self.columns)) if i == 0 or any(row[i].known for row in self.rows)]
        heads = "".join(_head(self.columns[i]) for i in kept)
        body = "".join(_row([row[i] for i in kept], [self.columns[i] for i in kept]) for row in self.rows)
        long = len(self.rows) > self.long
        classes = f"table{' long folded' if long else ''}{' wide' if len(kept) > WIDE_COLUMNS else ''}"
        tools = _tools(self.caption, len(self.rows)) if long else ""
        more = _more(len(self.rows)) if long else ""
        name = escape(self.name or self.caption)
        return (
            f'<div class="{classes}" data-first="{min(FIRST_ROWS, self.long)}">{tools}'
            f'<div class="scroll" role="region" tabindex="0" aria-label="{name}">'
            f'<table class="sorts"><caption>{escape(self.caption)}</caption>'
            f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>{more}"
            f"{paragraphs(self.notes, 'faint')}</div>"
        )


def table_html(table: AnyTable) -> str:
    """A table that was declared once, on the page."""
    filled = table.filled()
    columns = [Column(column.title, column.quantity.numeric, column.help) for column, _ in filled]
    rows = [list(cells) for cells in zip(*(_below(column, cells) for column, cells in filled), strict=True)]
    return Table(table.title, columns, rows, table.notes).html()


def _below(column: model.Column[Any], cells: Sequence[Cell]) -> list[Cell]:
    """With their intervals below them."""
    return [replace(cell, below=(column.interval(cell), *cell.below)) for cell in cells]


def _head(column: Column) -> str:
    title = f' title="{escape(column.title)}"' if column.title else ""
    side = ' class="r"' if column.numeric else ""
    kind = "number" if column.numeric else "text"
    return (
        f'<th scope="col"{side} aria-sort="none" data-kind="{kind}"><button type="button"{title}>'
        f'{escape(column.header)}<span class="way" aria-hidden="true"></span></button></th>'
    )


def _row(cells: Sequence[Cell], columns: Sequence[Column]) -> str:
    made = "".join(
        cell_html(cell, "th" if i == 0 else "td", right=column.numeric)
        for i, (cell, column) in enumerate(zip(cells, columns, strict=True))
    )
    return f"<tr>{made}</tr>"


def _tools(caption: str, rows: int) -> str:
    return (
        f'<div class="tools"><label>Filter <input type="search" class="filter" autocomplete="off" spellcheck="false" '
        f'aria-label="Filter {escape(caption)}"></label><span class="count" aria-live="polite">{rows} rows</span></div>'
    )


def _more(rows: int) -> str:
    return f'<button type="button" class="all" aria-expanded="false">Show all {rows} rows</button>'


def paragraph(text: object, tone: str = "") -> str:
    given = f' class="{tone}"' if tone else ""
    return f"<p{given}>{inline(text)}</p>" if str(text) else ""


def paragraphs(texts: Iterable[object], tone: str = "") -> str:
    return "".join(paragraph(text, tone) for text in texts)


def items(texts: Iterable[str]) -> str:
    """A list of plain sentences."""
    found = "".join(f"<li>{inline(text)}</li>" for text in texts)
    return f"<ul>{found}</ul>" if found else ""


def facts(pairs: Iterable[tuple[str, object]]) -> str:
    """Names with values; those without a value are left out."""
    rows = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{unbroken(value)}</dd></div>"
        for name, value in pairs
        if value is not None and str(value) != ""
    )
    return f'<dl class="known">{rows}</dl>' if rows else ""


def box(heading: str, texts: Sequence[str], tone: Tone, more: str = "") -> str:
    """What must be read before all else; `more` is what stands below it as it is."""
    if not texts:
        return ""
    sign = {"bad": "✖", "warn": "!"}.get(tone, "i")
    inner = paragraph(texts[0]) if len(texts) == 1 else items(texts)
    return (
        f'<div class="box {tone}" role="note"><p class="what"><b class="sign" aria-hidden="true">{sign}</b> '
        f"{escape(heading)}</p>{inner}{more}</div>"
    )


def details(summary: str, inner: str, *, on_paper: bool = True) -> str:
    """What is folded; on paper it is opened, unless what it holds is said in short elsewhere."""
    closed = "" if on_paper else ' class="screen"'
    return f"<details{closed}><summary>{escape(summary)}</summary>{inner}</details>" if inner else ""


def text_block(text: str, what: str) -> str:
    """Text as it is, with a button that copies it."""
    return (
        f'<div class="copied"><button type="button" class="copy" aria-label="Copy {escape(what)}">Copy</button>'
        f'<pre tabindex="0" aria-label="{escape(what)}">{html.escape(text)}</pre></div>'
    )


def heading(level: int, text: str) -> str:
    return f"<h{level}>{escape(text)}</h{level}>"
