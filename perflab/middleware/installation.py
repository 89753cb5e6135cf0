"""Builds of a middleware: NAME@PREFIX loads its library from an installation folder.

A plug-in is linked to the middleware's library by its SONAME, and the dynamic linker looks for it in LD_LIBRARY_PATH
first. So the same plug-in runs on each build with the same SONAME; the process's memory map shows if the linker skipped
a build.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perflab.errors import BadInput
from perflab.middleware.kind import MiddlewareKind

SEARCHED = "LD_LIBRARY_PATH"
MARK = "@"
_LIBRARY_FOLDERS = ("lib", "lib64", "lib/*-linux-gnu*")  # folders of CMake, of Fedora and SUSE, of Debian


@dataclass(frozen=True)
class Installation:
    """Location of a build: `folder` has its libraries."""

    prefix: Path
    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """Environment of a process that should use it."""
        return {SEARCHED: os.pathsep.join(filter(None, (str(self.folder), os.environ.get(SEARCHED))))}

    def has(self, library: Path) -> bool:
        """Whether a mapped file belongs to it; links are followed, as the kernel names their targets."""
        own = {path.resolve() for path in self.folder.iterdir()}
        return library.resolve() in own


def found(kind: MiddlewareKind, prefix: Path) -> Installation:
    """The build of a middleware in a folder. Raises BadInput if the folder has none."""
    where = f"--middleware {kind.name}{MARK}{prefix}"
    if not kind.libraries:
        raise BadInput(f"{where}: {kind.name} has no library of its own that another build could replace")
    if not prefix.is_dir():
        raise BadInput(f"{where}: no such folder; name the prefix of the installation")
    folders = [folder for pattern in _LIBRARY_FOLDERS for folder in sorted(prefix.glob(pattern)) if folder.is_dir()]
    for folder in folders:
        if any(is_of(kind, path) for path in folder.iterdir()):
            return Installation(prefix, folder)
    raise BadInput(f"{where}: {prefix}/lib has no {' or '.join(f'{name}.so' for name in kind.libraries)}")


def is_of(kind: MiddlewareKind, path: Path) -> bool:
    """Whether a file is a library of a middleware, by its name."""
    return path.name.partition(".so")[0] in kind.libraries and ".so" in path.name


def mapped(pid: int | str = "self") -> list[Path]:
    """The shared objects that a process has mapped; the kernel names the targets of links. Raises OSError."""
    text = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="surrogateescape")
    lines = (line.split(None, 5) for line in text.splitlines())
    paths = dict.fromkeys(fields[5] for fields in lines if len(fields) == 6 and fields[5].startswith("/"))
    return [Path(path) for path in paths if ".so" in Path(path).name]


def passed_over(kind: MiddlewareKind, installation: Installation, libraries: Iterable[Path]) -> str | None:
    """Why the mapped library is not that of the build, in one line; None if it is."""
    of_kind = [path for path in libraries if is_of(kind, path)]
    if any(installation.has(path) for path in of_kind):
        return None
    there = ", ".join(sorted(path.name for path in installation.folder.iterdir() if is_of(kind, path)))
    instead = f"{of_kind[0]} instead" if of_kind else "none"
    return (
        f"{installation.folder} has {there}, but the plug-in loads {instead}: it is linked to another SONAME; "
        "build perflab with CMAKE_PREFIX_PATH on that installation, or install one with the same SONAME"
    )


def digest(path: Path) -> str:
    """SHA-256 of a file. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def changed(library: Path, sha256: str | None) -> str | None:
    """Whether a library has changed, e.g. because it was rebuilt during a run; one line."""
    try:
        return None if digest(library) == sha256 else f"{library} was changed after this run began"
    except OSError as error:
        return f"{library} can no longer be read: {error.strerror}"


def labels(prefixes: Sequence[Path]) -> Mapping[Path, str]:
    """Labels for tables that distinguish builds: the last parts of the paths in which they differ.

    >>> labels([Path("/opt/before/install"), Path("/opt/after/install")])
    {PosixPath('/opt/before/install'): 'before', PosixPath('/opt/after/install'): 'after'}
    """
    parts = {prefix: list(prefix.parts[1:]) or ["/"] for prefix in prefixes}
    if len(parts) == 1:
        return {prefix: own[-1] for prefix, own in parts.items()}
    while len({own[-1] for own in parts.values()}) == 1 and min(map(len, parts.values())) > 1:
        parts = {prefix: own[:-1] for prefix, own in parts.items()}
    for length in range(1, max(map(len, parts.values())) + 1):
        short = {prefix: "/".join(own[-length:]) for prefix, own in parts.items()}
        if len(set(short.values())) == len(short):
            return short
    return {prefix: str(prefix) for prefix in parts}
