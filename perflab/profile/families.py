"""To which part of a system a function belongs, by the rules of families.yaml and those of the user's own file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from perflab.errors import BadInput
from perflab.formats import yaml_file
from perflab.profile.script import Frame, Stack, file_name
from perflab.validation import what_is_wrong

APPLICATION, UNKNOWN, KERNEL_OTHER = "application", "unknown", "kernel_other"
KERNEL = "kernel"  # what the kernel and its modules are called in rules


def _pattern(written: Any) -> re.Pattern[str]:
    """Of one regular expression, or a list of which one must fit."""
    several = written if isinstance(written, list) else [written]
    try:
        return re.compile("|".join(f"(?:{one})" for one in several))
    except re.error as error:
        raise ValueError(f"is no regular expression: {error}") from error


Pattern = Annotated[re.Pattern[str] | None, BeforeValidator(_pattern)]


_SAID = {
    "missing": "is missing",
    "extra_forbidden": "is not known",
    "list_type": "is not a list",
    "string_pattern_mismatch": "{input!r} is no name; right would be lower case, digits and _",
}


class Rule(BaseModel):
    """A function is of the family where all patterns that are given are found."""

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
        """`caller` is the family of the frame that called it, if that is in the kernel, too."""
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
    return _parsed(yaml_file.parse(text, "families.yaml")[0], "families.yaml", ())


def load(path: Path | None = None, where: str = "--families") -> Families:
    """The families of perflab, and those of a file before them. Raises BadInput."""
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
            raise BadInput(f"{where}: rules.{number}: no family named {rule.family!r}; there are {', '.join(names)}")
        if rule.object is None and rule.symbol is None:
            raise BadInput(f"{where}: rules.{number}: it must have a family and a pattern for object or symbol")
    return written
