"""Kinds that a user names on the command line as "NAME[:key=value,...]": conditions and observers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from perflab.errors import BadInput

T = TypeVar("T")


@dataclass(frozen=True)
class Kind(Generic[T]):
    """Its name, one line about it, and how its parameters make one. `create` raises BadInput."""

    name: str
    summary: str
    create: Callable[[Mapping[str, str]], T]


def parse(words: Sequence[str], what: str, registry: Mapping[str, Kind[T]]) -> list[T]:
    """What the words of the option `--{what}` ask for, in their order. Raises BadInput."""
    made = []
    for word in words:
        name, parameters = _split(word, f"--{what}")
        if name not in registry:
            known = ", ".join(sorted(registry)) or "none in this version"
            raise BadInput(f"no {what} named {name!r}; there are: {known}")
        made.append(registry[name].create(parameters))
    return made


def _split(word: str, option: str) -> tuple[str, dict[str, str]]:
    """Name and parameters of "NAME[:key=value,...]". Raises BadInput, which names `option`."""
    name, colon, rest = word.partition(":")
    parameters: dict[str, str] = {}
    for pair in rest.split(",") if colon else []:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise BadInput(f"{option} {word!r} is not NAME:key=value,...; {pair!r} has no value")
        parameters[key.strip()] = value.strip()
    return name, parameters
