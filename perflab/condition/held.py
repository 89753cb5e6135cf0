"""Kernel settings that a condition holds during a trial: set, read back, watched and restored.

kernel_settings.py does this, under perflab-guard.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from perflab.condition import Companion, NotInEffect, Shown, Trial, Window
from perflab.condition import kernel_settings as kernel
from perflab.condition.evidence import has_ended, ready
from perflab.errors import BadInput, PerflabError, Unavailable
from perflab.units import NS_PER_S, listed

PROGRAM = Path(kernel.__file__)
KEEPER = "the keeper of the settings"
READY_LIMIT_S = 20.0
GIVE_BACK_LIMIT_S = 10.0

AsAsked = Annotated[int, Shown("kernel settings as promised")]


@dataclass(frozen=True, kw_only=True)
class Promised:
    settings: Mapping[str, str]
    """Requested values, by the names of the settings."""
    as_promised: AsAsked
    """Number of these settings."""


@dataclass(frozen=True, kw_only=True)
class Change:
    name: str
    value: str
    at_s: float


@dataclass(frozen=True, kw_only=True)
class Achieved:
    """Read from the files of the settings."""

    settings: Mapping[str, str]
    """Values that the kernel reported when all were set; it may round them."""
    as_promised: AsAsked
    """Number of settings that kept that value until the end of the measured part."""
    before: Mapping[str, str]
    """Values before the trial, which are restored after it."""
    at_end: Mapping[str, str | None]
    """Values after the measured part; null: unreadable."""
    changes: tuple[Change, ...]
    """Other values seen meanwhile; seconds from the start of the measured part."""


class Held:
    """The settings of one trial, from when they are set until they are restored."""

    def __init__(self, trial: Trial, label: str, settings: Mapping[str, str]) -> None:
        """Sets them. Raises BadInput if the kernel refuses a value, Unavailable if another trial holds a setting."""
        self.asked = dict(settings)
        pairs = [f"{name}={value}" for name, value in self.asked.items()]
        self.keeper: Companion = trial.start(
            label,
            [sys.executable, "-I", "-S", PROGRAM, kernel.FOLDER, kernel.SETTINGS, trial.directory.absolute(), *pairs],
            control=True,
        )
        said = ready(self.keeper, KEEPER, READY_LIMIT_S)
        if said["type"] == "error":
            text = f"{label}: {said['text']}"
            raise {kernel.REFUSED: BadInput, kernel.HELD: Unavailable}.get(said["kind"], NotInEffect)(text)
        self.before = {s["name"]: str(s["before"]) for s in said["settings"]}
        self.read = {s["name"]: str(s["read"]) for s in said["settings"]}
        self._given_back = False

    def settle(self) -> None:
        """Raises NotInEffect if the kernel accepts a value without changing the setting."""
        for name, value in self.asked.items():
            if self.read[name] == self.before[name] != value:
                raise NotInEffect(f"the kernel leaves {name} at {self.read[name]!r}, but {value!r} was requested")

    @property
    def promised(self) -> Promised:
        return Promised(settings=self.asked, as_promised=len(self.read))

    def judged(self, window: Window) -> tuple[Achieved, str | None]:
        """The settings' values, and the first deviation from the promise."""
        at_end = {name: current(name) for name in self.read}
        changes = tuple(self._changes(window))
        other = {c.name: f"became {c.value!r} {c.at_s:.1f} s into the measured time" for c in reversed(changes)}
        for name, value in at_end.items():
            if value != self.read[name]:
                other.setdefault(name, f"was {'unreadable' if value is None else repr(value)} at the end")
        achieved = Achieved(
            settings=self.read,
            as_promised=len(self.read) - len(other),
            before=self.before,
            at_end=at_end,
            changes=changes,
        )
        problems = (f"{name} {what}, but {self.read[name]!r} was promised" for name, what in other.items())
        return achieved, has_ended(self.keeper, KEEPER) or next(problems, None)

    def give_back(self) -> None:
        """Idempotent. Raises PerflabError if a setting was not restored."""
        self.keeper.stop(GIVE_BACK_LIMIT_S)
        if self._given_back:
            return
        self._given_back = True
        for name, before in self.before.items():
            try:
                kernel.give_back(name)  # if the keeper was killed with its parent
            except kernel.Problem as problem:
                raise PerflabError(str(problem)) from problem
            if (now := current(name)) != before:
                raise PerflabError(
                    f"{name} is {now!r}, but it was {before!r}; `{kernel.command(name, before)}` restores it"
                )

    def rounded(self) -> str | None:
        """How the kernel rounded values."""
        asked = self.asked
        made = [f"{asked[name]} of {name} became {value}" for name, value in self.read.items() if asked[name] != value]
        return f"the kernel rounded: {listed(made)}" if made else None

    def _changes(self, window: Window) -> Iterator[Change]:
        """The keeper's reports, in order."""
        while (said := self.keeper.receive(0.0)) is not None:
            if said.get("type") == "changed":
                at_s = (said["at_ns"] - window.begin_ns) / NS_PER_S
                yield Change(name=said["name"], value=str(said["value"]), at_s=round(at_s, 3))


def current(name: str) -> str | None:
    """The current value of a setting; None if it cannot be read."""
    try:
        return kernel.read(name)
    except OSError:
        return None


def give_back_abandoned(label: str, names: Iterable[str]) -> None:
    """First restores what a killed run has left set: a baseline must not have it. Raises Unavailable."""
    for name in names:
        try:
            kernel.give_back(name)
        except kernel.Problem as problem:
            raise Unavailable(f"{label}: {problem}") from problem


def require_settable(label: str, name: str, value: str) -> None:
    """For an existing file. Raises BadInput, or Unavailable if it cannot be set or could not be restored."""
    path = kernel.path_of(name)
    mode = path.stat().st_mode
    if not mode & stat.S_IWUSR:
        raise BadInput(f"{label}: {name} can only be read")
    if not mode & stat.S_IRUSR:
        raise BadInput(f"{label}: {name} cannot be read, so it could not be restored")
    try:
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise Unavailable(f"{label}: {name} cannot be read: {error.strerror}; run perflab as root") from error
    if len(text.splitlines()) > 1 or not kernel.plain(text).isprintable():
        raise BadInput(f"{label}: {name} is not one line of plain text")
    if not os.access(path, os.W_OK):
        if os.statvfs(path).f_flag & os.ST_RDONLY:
            where = "/proc/sys" if path.is_relative_to(kernel.SETTINGS) else path.parent
            raise Unavailable(f"{label}: {where} is read-only here, as in a container; use `docker run --privileged`")
        by_hand = kernel.command(name, value)
        by_hand = f'sh -c "{by_hand}"' if name.startswith("/") else by_hand
        raise Unavailable(
            f"{label}: only root may set {name}; run perflab with `sudo`, or run `sudo {by_hand}` once for all trials"
        )
