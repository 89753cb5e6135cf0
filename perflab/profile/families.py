"""Which part of a system a function belongs to, by the rules of families.yaml and of the user's own file; and the
shares of these families in the samples of a process or thread, with their sampling intervals.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from perflab.errors import BadInput
from perflab.formats import yaml_file
from perflab.middleware import REGISTRY as MIDDLEWARES
from perflab.profile.perf_data import Frame, Stack, ThreadStacks, Weight, file_name, is_whole
from perflab.statistics.proportion import wilson
from perflab.validation import what_is_wrong

CONFIDENCE = 0.95
LEAST_SAMPLES = 10  # minimum number of samples for meaningful shares
APPLICATION, UNKNOWN, KERNEL_OTHER = "application", "unknown", "kernel_other"
KERNEL = "kernel"  # the name of the kernel and its modules in rules


def _pattern(written: Any) -> re.Pattern[str]:
    """One regular expression, or a list of which one must match."""
    several = written if isinstance(written, list) else [written]
    try:
        return re.compile("|".join(f"(?:{one})" for one in several))
    except re.error as error:
        raise ValueError(f"is not a regular expression: {error}") from error


Pattern = Annotated[re.Pattern[str] | None, BeforeValidator(_pattern)]


_SAID = {
    "missing": "is missing",
    "extra_forbidden": "is unknown",
    "list_type": "is not a list",
    "string_pattern_mismatch": "{input!r} is not a valid name; use lower case, digits and _",
}


class Rule(BaseModel):
    """A function belongs to the family if all given patterns match."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    family: str
    object: Pattern = None
    symbol: Pattern = None

    def fits(self, file: str, symbol: str | None) -> bool:
        if self.object is not None and self.object.search(file) is None:
            return False
        return self.symbol is None or (symbol is not None and self.symbol.search(symbol) is not None)


class _Family(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    title: str


class _Written(BaseModel):
    """A file of families."""

    model_config = ConfigDict(extra="forbid")

    families: list[_Family] = []
    rules: list[Rule] = []


@dataclass
class Families:
    """Names with their titles, in the order of tables, and the rules, the first of which decides."""

    titles: dict[str, str]
    rules: Sequence[Rule]
    _known: dict[tuple[str, str | None], str | None] = field(default_factory=dict)

    def of_frame(self, frame: Frame, caller: str | None = None) -> str:
        """`caller` is the family of the calling frame, if that is in the kernel, too."""
        found = self._rule_for(frame)
        if found is not None:
            return found
        if frame.kernel:
            return caller or KERNEL_OTHER
        return UNKNOWN if frame.object is None and frame.symbol is None else APPLICATION

    def of_stack(self, frames: Sequence[Frame], stack: Stack) -> list[str]:
        """The family of each frame of a stack, the outermost first."""
        found: list[str] = []
        caller: str | None = None
        for number in stack:
            frame = frames[number]
            found.append(self.of_frame(frame, caller))
            caller = found[-1] if frame.kernel and found[-1] != KERNEL_OTHER else None
        return found

    def _rule_for(self, frame: Frame) -> str | None:
        file = KERNEL if frame.kernel else file_name(frame.object or "")
        key = file, frame.symbol
        if key not in self._known:
            self._known[key] = next((rule.family for rule in self.rules if rule.fits(*key)), None)
        return self._known[key]


@cache
def _own() -> _Written:
    text = resources.files("perflab.profile").joinpath("families.yaml").read_text(encoding="utf-8")
    plugins = dict.fromkeys(kind.plugin or kind.name for kind in MIDDLEWARES.values())
    text = text.replace("@PLUGINS@", "|".join(map(re.escape, plugins)))
    return _parsed(yaml_file.parse(text, "families.yaml")[0], "families.yaml", ())


def load(path: Path | None = None, where: str = "--families") -> Families:
    """The families of perflab, preceded by those of a file. Raises BadInput."""
    own, more = _own(), _Written()
    if path is not None:
        document = yaml_file.read(path, "a file of families", where).document
        more = _parsed(document, f"{where} {path}", own.families)
    titles = {family.name: family.title for family in (*own.families, *more.families)}
    titles[UNKNOWN] = titles.pop(UNKNOWN)  # stays the last
    return Families(titles, (*more.rules, *own.rules))


def _parsed(document: Any, where: str, known: Sequence[_Family]) -> _Written:
    if not isinstance(document, dict):
        raise BadInput(f"{where}: it must be a mapping with the lists `families` and `rules`")
    try:
        written = _Written.model_validate({key: value for key, value in document.items() if value is not None})
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part + 1) if isinstance(part, int) else part for part in first["loc"])
        known_words = _SAID.get(first["type"], "").format(**first)
        said = known_words or what_is_wrong(first) or str(first["msg"]).removeprefix("Value error, ")
        raise BadInput(f"{where}: {place} {said}") from error
    names = [family.name for family in (*known, *written.families)]
    for number, rule in enumerate(written.rules, 1):
        if rule.family not in names:
            raise BadInput(f"{where}: rules.{number}: no family named {rule.family!r}; choose from {', '.join(names)}")
        if rule.object is None and rule.symbol is None:
            raise BadInput(f"{where}: rules.{number}: it must have a family and a pattern for object or symbol")
    return written


@dataclass(frozen=True, kw_only=True)
class Shares:
    """Of a family or function: `self` counts samples in it, `inclusive` counts a sample once for every family or
    function on its stack.

    Shares are between 0 and 1, with their sampling interval; None if there are too few samples in all.
    """

    self_samples: int
    self_weight: int
    self_share: float | None
    self_low: float | None
    self_high: float | None
    inclusive_samples: int
    inclusive_weight: int
    inclusive_share: float | None
    inclusive_low: float | None
    inclusive_high: float | None


@dataclass(frozen=True, kw_only=True)
class FamilyShares(Shares):
    family: str


@dataclass(frozen=True, kw_only=True)
class FunctionShares(Shares):
    """Of one function, inlined or not: by name and the file that it was loaded from, None: none."""

    function: str
    object: str | None
    family: str


@dataclass(frozen=True)
class Sampled:
    """Samples that belong together; shares are None if there is none."""

    samples: int
    weight: int
    whole: float | None  # the share of samples whose stacks reach the beginning of their thread
    unresolved: float | None  # the share of samples whose innermost frame has no symbol


@dataclass(frozen=True)
class Group(Sampled):
    """A process, or a thread of it, and the families of its samples; families without a sample are left out."""

    families: tuple[FamilyShares, ...]


def group(threads: Iterable[ThreadStacks], frames: Sequence[Frame], families: Families) -> Group:
    """The common fields of threads."""
    total, own, all_ = Weight(), defaultdict[str, Weight](Weight), defaultdict[str, Weight](Weight)
    whole = unresolved = 0
    known: dict[Stack, list[str]] = {}
    listed = list(frames)
    for thread in threads:
        for stack, weight in thread.stacks.items():
            total.include(weight)
            names = known.get(stack)
            if names is None:
                names = known[stack] = families.of_stack(frames, stack) or ["unknown"]
            own[names[-1]].include(weight)
            for name in set(names):
                all_[name].include(weight)
            whole += weight.samples if is_whole(listed, stack) else 0
            unresolved += weight.samples if not stack or frames[stack[-1]].symbol is None else 0
    shares = tuple(
        FamilyShares(family=name, **_shares(own[name], all_[name], total)) for name in families.titles if name in all_
    )
    n = total.samples
    return Group(n, total.weight, whole / n if n else None, unresolved / n if n else None, shares)


def functions(
    threads: Iterable[ThreadStacks], frames: Sequence[Frame], families: Families, most: int
) -> tuple[FunctionShares, ...]:
    """The functions with most own time, the hottest first, `most` of them.

    A function of the kernel belongs to the family of its own name: it may have worked for several.
    """
    total, own, all_ = Weight(), defaultdict[Frame, Weight](Weight), defaultdict[Frame, Weight](Weight)
    listed = [replace(frame, inlined=False) for frame in frames]
    nothing = Frame(None, None)
    for thread in threads:
        for stack, weight in thread.stacks.items():
            total.include(weight)
            own[listed[stack[-1]] if stack else nothing].include(weight)
            for frame in {listed[number] for number in stack} or {nothing}:
                all_[frame].include(weight)
    hottest = sorted(own, key=lambda frame: (-own[frame].weight, frame.name, frame.object or ""))[:most]
    return tuple(
        FunctionShares(
            function=frame.name,
            object=frame.object,
            family=families.of_frame(frame),
            **_shares(own[frame], all_[frame], total),
        )
        for frame in hottest
    )


def _shares(own: Weight, all_: Weight, total: Weight) -> dict[str, Any]:
    """The fields of Shares."""
    parts = zip(("self", "inclusive"), (own, all_), strict=True)
    names = ("samples", "weight", "share", "low", "high")
    return {f"{part}_{n}": v for part, of in parts for n, v in zip(names, _share(of, total), strict=True)}


def _share(part: Weight, total: Weight) -> tuple[int, int, float | None, float | None, float | None]:
    """Samples, weight, share, and Wilson's interval. Samples of unequal weight count as the number of equal ones with
    the same precision (Kish).
    """
    if total.samples < LEAST_SAMPLES or not total.weight:
        return part.samples, part.weight, None, None, None
    share = part.weight / total.weight
    effective = total.weight**2 / total.squares
    interval = wilson(round(share * effective), round(effective), CONFIDENCE)
    assert interval is not None
    return part.samples, part.weight, share, min(share, interval[0]), max(share, interval[1])
