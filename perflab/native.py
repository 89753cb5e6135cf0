"""The location of the native programs.

The folder holds perflab-node, perflab-graph and middleware/*.so. `make` builds it and installs it below the Python
environment, `colcon build` below the package's prefix, a wheel contains it; the environment variable PERFLAB_NATIVE
overrides it.
"""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perflab import workspace
from perflab.errors import Unavailable

if TYPE_CHECKING:
    from perflab.needs import Needs

ENVIRONMENT_VARIABLE = "PERFLAB_NATIVE"

# The programs of native/manipulation, whose libraries are installed on demand.
MANIPULATION = frozenset(
    f"perflab-{name}"
    for name in (
        "clock-bridge",
        "controller-manager",
        "move-group",
        "move-runner",
        "simulator",
        "state-publisher",
    )
)


@dataclass(frozen=True)
class Native:
    """The native folder; the paths below it need not exist until `program` needs them."""

    folder: Path

    @functools.cached_property
    def needs(self) -> Needs:
        """What its files need of the distribution."""
        from perflab.needs import Needs

        return Needs.of(self.folder)

    def program(self, name: str) -> Path:
        """The path of an executable program. Raises Unavailable if it, or a library that it needs, is missing."""
        path = self.folder / name
        if not os.access(path, os.X_OK) or not path.is_file():
            how = "make manipulation" if name in MANIPULATION else "make"
            raise Unavailable(f"{name} is not in {self.folder}; build it with `{how}` in the perflab source folder")
        if (missing := self.needs.missing(name)) is not None:
            raise Unavailable(missing)
        return path

    def middleware_library(self, name: str) -> Path:
        """The plug-in of that middleware, if it was built."""
        return self.folder / "middleware" / f"{name}.so"

    def runtime_library(self, name: str) -> Path:
        """The runtime with that name, if it was built; perflab-node's built-in ones have none."""
        return self.folder / "runtime" / f"{name}.so"


def find() -> Native:
    """The native folder of this environment. Never fails; its programs may be missing."""
    named = os.environ.get(ENVIRONMENT_VARIABLE)
    return Native(Path(named).absolute() if named else workspace.installed("lib", "perflab"))
