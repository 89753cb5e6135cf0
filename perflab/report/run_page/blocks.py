"""What a section of a report is made of, from top to bottom; perflab/pages/sections.html writes each of these."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perflab.columns import AnyTable, Drawn, Tone

if TYPE_CHECKING:
    from markupsafe import Markup

    from perflab.profile.flamegraph import Look
    from perflab.report.axes import Ticks
    from perflab.report.runs import ReportRun
    from perflab.results.trust import Trust

Facts = Sequence[tuple[str, object]]  # names with values; those without a value are left out


@dataclass(frozen=True)
class Heading:
    """With how it was judged, where it was."""

    text: str
    level: int = 3
    judged: str = ""
    sign: str = ""
    tone: Tone = ""


@dataclass(frozen=True)
class Text:
    words: str
    tone: str = ""  # or another class of style


@dataclass(frozen=True)
class Items:
    texts: Sequence[str]


@dataclass(frozen=True)
class Known:
    facts: Facts


@dataclass(frozen=True)
class Statement:
    """A sentence, the detail behind it, and what kind of statement it is."""

    sign: str
    kind: str
    tone: Tone
    words: str
    detail: str = ""
    key: str = ""  # that a link may lead to


@dataclass(frozen=True)
class Statements:
    statements: Sequence[Statement]


@dataclass(frozen=True)
class Box:
    """What must be read before all else, and what is folded behind it."""

    heading: str
    texts: Sequence[str]
    tone: Tone
    folded: Sequence[str] = ()


@dataclass(frozen=True)
class Sheet:
    """A table; of more rows than `long` the first are shown until the rest is asked for. Who cannot see what is around
    it is told what it is `called`. Without `sorts` it is all there, and stays in its order."""

    table: AnyTable
    called: str = ""
    long: int = 50
    sorts: bool = True


@dataclass(frozen=True)
class Effects:
    """A table with intervals that are drawn on one axis, which has `ticks` as places from 0 to 1. The first rows are
    shown; the others are asked for."""

    table: AnyTable
    ticks: Ticks
    first: Drawn | None
    shown: int = 10


@dataclass(frozen=True)
class Judgement:
    """Whether to trust a run, which is `called` so where there are several."""

    trust: Trust
    called: str = ""


@dataclass(frozen=True)
class Source:
    """Text as it was written, to be copied."""

    text: str
    what: str


@dataclass(frozen=True)
class Fold:
    """What is folded, unless it is empty. On paper it is open, unless what it holds is said in short elsewhere."""

    summary: str
    blocks: Sequence[Block]
    on_paper: bool = True


@dataclass(frozen=True)
class Group:
    """What belongs together, by the name of its style."""

    name: str
    blocks: Sequence[Block]
    key: str = ""  # that a link may lead to


@dataclass(frozen=True)
class Flame:
    """A flame graph, which is drawn when it is opened."""

    name: str
    looks: Sequence[Look]
    drawing: dict[str, Any]


@dataclass(frozen=True)
class Still:
    """A picture of a film, and of what it is."""

    source: str
    words: str


@dataclass(frozen=True)
class Movie:
    """A film of a trial: how it ended, some pictures of it, and what the page's player shows (packed)."""

    key: str
    title: str
    why: str
    sign: str
    tone: str
    ended: str
    stills: Sequence[Still]
    notes: Sequence[str]
    data: str


@dataclass(frozen=True)
class Scenes:
    """What the films of a page have in common, packed."""

    data: str


@dataclass(frozen=True)
class Picture:
    """A figure that is written already."""

    markup: Markup


Block = (
    Heading | Text | Items | Known | Statements | Box | Sheet | Effects | Judgement | Source | Fold | Group | Flame
    | Movie | Scenes | Picture
)  # fmt: skip


def paragraphs(texts: Iterable[str], tone: str = "") -> Iterator[Text]:
    return (Text(words, tone) for words in texts if words)


def each(runs: Sequence[ReportRun]) -> Iterator[tuple[ReportRun, list[Heading]]]:
    """Every run, with its name as a heading where there are several."""
    return ((run, [Heading(run.name)] if len(runs) > 1 else []) for run in runs)
