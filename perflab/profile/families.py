"""To which part of a system a function belongs, by the rules of families.yaml and those of the user's own file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from perflab.errors import BadInput
from perflab.formats import yaml_file
from perflab.profile.script import Frame, Stack, file_name

APPLICATION, UNKNOWN, KERNEL_OTHER = "application", "unknown", "kernel_other"
KERNEL = "kernel"  # what the kernel and its modules are called in rules

_NAME = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True)
class Rule:
    family: str
    object: re.Pattern[str] | None
    symbol: re.Pattern[str] | None

    def fits(self, file: str, symbol: str | None) -> bool:
        if self.object is not None and self.object.search(file) is None:
            return False
        return self.symbol is None or (symbol is not None and self.symbol.search(symbol) is not None)


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
def _own() -> tuple[dict[str, str], tuple[Rule, ...]]:
    text = resources.files("perflab.profile").joinpath("families.yaml").read_text(encoding="utf-8")
    return _parsed(yaml_file.parse(text, "families.yaml")[0], "families.yaml", {})


def load(path: Path | None = None, where: str = "--families") -> Families:
    """The families of perflab, and those of a file before them. Raises BadInput."""
    titles, rules = _own()
    if path is None:
        return Families(dict(titles), rules)
    more, first = _parsed(yaml_file.read(path, "a file of families", where).document, f"{where} {path}", titles)
    # Before `unknown`, which stays the last.
    last = {UNKNOWN: titles[UNKNOWN]}
    return Families({**{k: v for k, v in titles.items() if k != UNKNOWN}, **more, **last}, (*first, *rules))


def _parsed(document: Any, where: str, known: dict[str, str]) -> tuple[dict[str, str], tuple[Rule, ...]]:
    if not isinstance(document, dict) or not set(document) <= {"families", "rules"}:
        raise BadInput(f"{where}: it must be a mapping with the lists `families` and `rules`")
    titles: dict[str, str] = {}
    for number, entry in enumerate(_entries(document, "families", where), 1):
        at = f"{where}: families, entry {number}"
        if not isinstance(entry, dict) or set(entry) != {"name", "title"}:
            raise BadInput(f"{at}: it must have a name and a title")
        name, title = (str(entry[key]) for key in ("name", "title"))
        if not _NAME.fullmatch(name):
            raise BadInput(f"{at}: {name!r} is no name; right would be lower case, digits and _")
        titles[name] = title
    rules = []
    for number, entry in enumerate(_entries(document, "rules", where), 1):
        rules.append(_rule(entry, f"{where}: rules, entry {number}", {**known, **titles}))
    return titles, tuple(rules)


def _entries(document: dict[str, Any], key: str, where: str) -> list[Any]:
    entries = document.get(key) or []
    if not isinstance(entries, list):
        raise BadInput(f"{where}: {key} is not a list")
    return entries


def _rule(entry: Any, where: str, known: dict[str, str]) -> Rule:
    if not isinstance(entry, dict) or "family" not in entry or not set(entry) <= {"family", "object", "symbol"}:
        raise BadInput(f"{where}: it must have a family and a pattern for object or symbol")
    family = str(entry["family"])
    if family not in known:
        raise BadInput(f"{where}: no family named {family!r}; there are {', '.join(known)}")
    patterns = {}
    for key in ("object", "symbol"):
        try:
            patterns[key] = _pattern(entry[key]) if key in entry else None
        except re.error as error:
            raise BadInput(f"{where}: {key} is no regular expression: {error}") from error
    if not any(patterns.values()):
        raise BadInput(f"{where}: it must have a family and a pattern for object or symbol")
    return Rule(family, **patterns)


def _pattern(written: Any) -> re.Pattern[str]:
    """Of one regular expression, or a list of which one must fit. Raises re.error."""
    several = written if isinstance(written, list) else [written]
    return re.compile("|".join(f"(?:{one})" for one in several))
