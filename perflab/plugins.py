"""Kinds of a sort, by name: perflab's modules that define one, and additions from other packages.

A module in the sort's package is a kind if it has a KIND (or several, KINDS); no list names it. An installed package
adds one by an entry point, which has the name of the kind:

    [project.entry-points."perflab.conditions"]
    solar_flare = "my_package.solar_flare:KIND"

A module that cannot be imported, or has a name that is taken, is left out with a one-line warning and does not affect
others.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import warnings
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from perflab.errors import LeftOut, one_line

if TYPE_CHECKING:
    from importlib import metadata


class Named(Protocol):
    @property
    def name(self) -> str: ...


K = TypeVar("K", bound=Named)


class Registry(Mapping[str, K], Generic[K]):
    """The kinds of the sort `what`, which are searched on first use."""

    def __init__(self, what: str, package: str, kind: type[K]) -> None:
        self._what, self._package, self._kind = what, package, kind
        self._found: dict[str, K] | None = None

    @property
    def kinds(self) -> dict[str, K]:
        """All of them; searched once."""
        if self._found is None:
            self._found = {kind.name: kind for kind in self._own()}
            for entry in sorted(_entry_points().select(group=f"perflab.{self._what}s"), key=_order):
                self._add(self._found, entry)
        return self._found

    def _own(self) -> Iterator[K]:
        """The kinds of the package's modules."""
        package = importlib.import_module(self._package)
        for info in pkgutil.iter_modules(package.__path__):
            module = importlib.import_module(f"{self._package}.{info.name}")
            several = getattr(module, "KINDS", (getattr(module, "KIND", None),))
            yield from (kind for kind in several if isinstance(kind, self._kind))

    def _add(self, found: dict[str, K], entry: metadata.EntryPoint) -> None:
        """A kind of another package, or a warning why not."""
        who = f"{self._what} {entry.name} of {_distribution(entry)}"
        if entry.name in found:
            return _leave_out(who, f"there is already a {self._what} of this name")
        try:
            kind: Any = entry.load()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - of a foreign module, which may raise anything
            return _leave_out(who, f"{type(error).__name__}: {error}")
        if not isinstance(kind, self._kind):
            return _leave_out(who, f"{entry.value} is not a {self._kind.__name__}")
        if kind.name != entry.name:
            return _leave_out(who, f"it calls itself {kind.name}; its entry point must have the same name")
        found[entry.name] = kind
        return None

    def __getitem__(self, name: str) -> K:
        if self._found is None and (own := self._own_of(name)) is not None:
            return own
        return self.kinds[name]

    def _own_of(self, name: str) -> K | None:
        """The kind of the module with its name, if there is one: most callers need no other."""
        module = f"{self._package}.{name}"
        if not name.isidentifier() or importlib.util.find_spec(module) is None:
            return None
        kind = getattr(importlib.import_module(module), "KIND", None)
        return kind if isinstance(kind, self._kind) and kind.name == name else None

    def __iter__(self) -> Iterator[str]:
        return iter(self.kinds)

    def __len__(self) -> int:
        return len(self.kinds)


@cache
def _entry_points() -> Any:  # EntryPoints, or an equivalent before Python 3.12
    """One metadata file per installed distribution, read once per process and shared by all kinds of plug-ins."""
    from importlib import metadata  # importing it takes half as long as a bare start; not needed without kinds

    return metadata.entry_points()


def _order(entry: metadata.EntryPoint) -> tuple[str, str]:
    return entry.name, _distribution(entry)


def _distribution(entry: metadata.EntryPoint) -> str:
    return "an unknown package" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"


def _leave_out(who: str, why: str) -> None:
    warnings.warn(LeftOut(f"{who} is left out: {one_line(why)}"), stacklevel=2)
