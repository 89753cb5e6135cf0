"""The elements of a section, from top to bottom; perflab/pages/sections.html renders each of these."""

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
    """With its judgement, if there is one."""

    text: str
    level: int = 3
    judged: str = ""
    sign: str = ""
    tone: Tone = ""


@dataclass(frozen=True)
class Text:
    words: str
    tone: str = ""  # or another style class


@dataclass(frozen=True)
class Items:
    texts: Sequence[str]


@dataclass(frozen=True)
class Known:
    facts: Facts


@dataclass(frozen=True)
class Statement:
    """A sentence, its details, and the kind of statement."""

    sign: str
    kind: str
    tone: Tone
    words: str
    detail: str = ""
    key: str = ""  # target of links


@dataclass(frozen=True)
class Statements:
    statements: Sequence[Statement]


@dataclass(frozen=True)
class Box:
    """What must be read first, and the folded details."""

    heading: str
    texts: Sequence[str]
    tone: Tone
    folded: Sequence[str] = ()


@dataclass(frozen=True)
class Sheet:
    """A table; with more rows than `long`, only the first are shown until the rest is requested. `called` is the name
    for screen readers. Without `sorts` it is shown completely, in its order."""

    table: AnyTable
    called: str = ""
    long: int = 50
    sorts: bool = True


@dataclass(frozen=True)
class Effects:
    """A table with intervals that are drawn on one axis, which has `ticks` as positions from 0 to 1. The first rows are
    shown, the others on request."""

    table: AnyTable
    ticks: Ticks
    first: Drawn | None
    shown: int = 10


@dataclass(frozen=True)
class Judgement:
    """Whether to trust a run, with the name `called` if there are several."""

    trust: Trust
    called: str = ""


@dataclass(frozen=True)
class Source:
    """Text as written, for copying."""

    text: str
    what: str


@dataclass(frozen=True)
class Fold:
    """Folded content, unless it is empty. It is open on paper, unless its content is summarised elsewhere."""

    summary: str
    blocks: Sequence[Block]
    on_paper: bool = True


@dataclass(frozen=True)
class Group:
    """Related elements, by the name of their style."""

    name: str
    blocks: Sequence[Block]
    key: str = ""  # target of links


@dataclass(frozen=True)
class Flame:
    """A flame graph, which is drawn when it is opened."""

    name: str
    looks: Sequence[Look]
    drawing: dict[str, Any]


@dataclass(frozen=True)
class Still:
    """A picture of a film, and its subject."""

    source: str
    words: str


@dataclass(frozen=True)
class Movie:
    """A film of a trial: its outcome, some pictures of it, and the data of the page's player (packed)."""

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
    """The common data of a page's films, packed."""

    data: str


@dataclass(frozen=True)
class Picture:
    """A figure that is rendered already."""

    markup: Markup


Block = (
    Heading | Text | Items | Known | Statements | Box | Sheet | Effects | Judgement | Source | Fold | Group | Flame
    | Movie | Scenes | Picture
)  # fmt: skip


def paragraphs(texts: Iterable[str], tone: str = "") -> Iterator[Text]:
    return (Text(words, tone) for words in texts if words)


def each(runs: Sequence[ReportRun]) -> Iterator[tuple[ReportRun, list[Heading]]]:
    """Every run, with its name as a heading if there are several."""
    return ((run, [Heading(run.name)] if len(runs) > 1 else []) for run in runs)
