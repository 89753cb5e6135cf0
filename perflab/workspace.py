"""perflab below a prefix: the location of its own files, and the Python packages that it needs in a colcon workspace.

pip installs the packages of pyproject.toml; `colcon build` does not, and several of them are newer than the
distribution's. They are in a folder that only perflab has on its path, <prefix>/lib/perflab/python, so that the other
programs of the workspace keep the numpy that ROS 2 was built with. A wheel has its prefix within the package.

Also runs if Python is too old for perflab, to report that.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path


def prefix() -> Path | None:
    """The prefix that this package is installed below, or None for a source folder."""
    if (within := Path(__file__).absolute().with_name("installed")).is_dir():
        return within
    site = Path(__file__).absolute().parent.parent
    if site.name not in ("site-packages", "dist-packages"):
        return None
    return next((folder.parent for folder in site.parents if folder.name in ("lib", "lib64")), None)


def installed(*below: str) -> Path:
    """A path below the prefix of this package, or if that does not exist, below Python's own; it need not exist."""
    own = prefix()
    places = [own / Path(*below)] if own else []
    return next((place for place in places if place.exists()), Path(sys.prefix, *below))


def prepare() -> str | None:
    """Makes the Python packages of a colcon workspace importable; returns one line if perflab cannot run with them.

    Does nothing if perflab was not installed by colcon.
    """
    own = prefix()
    needed = own / "lib" / "perflab" / "requirements.txt" if own else None
    if needed is None or not needed.is_file():
        return None
    if sys.version_info < (3, 11):  # noqa: UP036
        version = ".".join(str(part) for part in sys.version_info[:2])
        return f"needs Python 3.11 or newer, and {sys.executable} is {version}"
    folder = needed.parent / "python"
    if folder.is_dir():
        sys.path.insert(0, os.fspath(folder))
    lacking = [line for line in needed.read_text(encoding="utf-8").split() if not _is_here(line)]
    if not lacking:
        return None
    command = [sys.executable, "-m", "pip", "install", "--upgrade", "--target", folder, "--requirement", needed]
    names = ", ".join(lacking)
    return f"needs the Python packages {names}; install with `{shlex.join(map(str, command))}`"


def _is_here(requirement: str) -> bool:
    from importlib import metadata  # importing it takes a third of a start

    name, _, version = requirement.partition("==")
    try:
        return metadata.version(name) == version
    except metadata.PackageNotFoundError:
        return False
