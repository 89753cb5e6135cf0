"""What perflab needs of the distribution: libraries that its programs are linked with, and programs that it starts.

A wheel brings needs.json beside its programs: which library each needs, and the package that has it. What was built
here with `make` has no such file, and needs nothing that was not there when it was built.
"""

from __future__ import annotations

import functools
import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perflab import programs
from perflab.catalog import read_json

FILE = "needs.json"

# By its package: a program that perflab starts, and for what.
PROGRAMS = {
    "stress-ng": ("stress-ng", "the conditions of load"),
    "iproute2": ("tc", "the network of a run, shaping"),
    "util-linux": ("unshare", "the network of a run"),
    "rt-tests": ("cyclictest", "the observer cyclictest"),
    "lttng-tools": ("lttng", "traces"),
    "openssl": ("openssl", "DDS Security"),
}


@dataclass(frozen=True)
class Package:
    """One of the distribution."""

    name: str
    available: bool
    text: str  # what it is for


@dataclass(frozen=True)
class Needs:
    """Of the programs in one folder. `files`: by file, packages by library."""

    files: Mapping[str, Mapping[str, str]]
    distribution: str | None = None
    release: str | None = None  # as /etc/os-release writes it: "debian 12"

    @classmethod
    def of(cls, folder: Path) -> Needs:
        """Those of a native folder: none without the file."""
        document = read_json(folder / FILE) or {}
        made_on = document.get("distribution") or {}
        release = " ".join(str(made_on[key]) for key in ("id", "version") if made_on.get(key))
        return cls(document.get("files") or {}, made_on.get("name"), release or None)

    def packages(self) -> list[Package]:
        """Those with a library that a file needs, and those with a program that perflab starts."""
        users: dict[str, set[str]] = {}
        lacking: set[str] = set()
        for file, libraries in self.files.items():
            for library, package in libraries.items():
                users.setdefault(package, set()).add(file)
                lacking |= set() if is_here(library) else {package}
        linked = [
            Package(name, name not in lacking, f"library of {_few(sorted(of))}") for name, of in sorted(users.items())
        ]
        started = [Package(name, programs.which(program) is not None, use) for name, (program, use) in PROGRAMS.items()]
        return linked + started

    def missing(self, file: str) -> str | None:
        """What keeps a file of the folder from being started or loaded, and what to do; None where nothing does."""
        absent = {name: package for name, package in self.files.get(file, {}).items() if not is_here(name)}
        if not absent:
            return None
        return f"{file} needs {', '.join(absent)}; {self.elsewhere() or install(absent.values())}"

    def elsewhere(self) -> str | None:
        """What to do where this is not the distribution that they were built on."""
        if self.release in (None, here()):
            return None
        return (
            f"this perflab was built on {self.distribution or self.release}, and this is {here() or 'something else'}: "
            "install the wheel of this distribution, or make it with `make wheel` in the perflab source folder"
        )


def install(packages: Iterable[str]) -> str:
    """The command that installs packages."""
    return f"install with `sudo apt-get install --no-install-recommends {shlex.join(sorted(set(packages)))}`"


def _few(files: Sequence[str]) -> str:
    return ", ".join(files) if len(files) <= 2 else f"{files[0]} and {len(files) - 1} more"


def here() -> str | None:
    """This distribution, as /etc/os-release writes it: "debian 12"."""
    import platform

    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return None
    return f"{release['ID']} {release.get('VERSION_ID', '')}".strip()


def is_here(library: str) -> bool:
    """Whether the dynamic linker finds a library of this name."""
    folders = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    return library in _known_to_linker() or any((Path(folder) / library).exists() for folder in folders if folder)


@functools.cache
def _known_to_linker() -> frozenset[str]:
    """The libraries in the linker's cache, which writes each as a path."""
    try:
        cache = Path("/etc/ld.so.cache").read_bytes()
    except OSError:
        return frozenset()
    paths = (Path(path.decode(errors="replace")) for path in cache.split(b"\0") if b".so" in path)
    return frozenset(path.name for path in paths if path.parent.name not in ("lib32", "libx32"))
