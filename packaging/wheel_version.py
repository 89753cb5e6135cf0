"""The version of a wheel, for scikit-build-core: that of perflab, and the distribution whose libraries it uses.

A wheel made on Debian 12 is perflab-0.1.0+debian12-py3-none-linux_x86_64.whl: its middlewares are linked with the DDS
libraries of Debian 12. What runs from a source folder has no such part.
"""

from __future__ import annotations

import platform
import re
import runpy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).resolve().parent.parent


def of_source() -> str:
    """Of this source folder."""
    return str(runpy.run_path(str(SOURCE / "perflab" / "version.py"))["__version__"])


def distribution(release: Mapping[str, str]) -> str:
    """What /etc/os-release says, as a part of a version: debian12, ubuntu24.04."""
    return re.sub(r"[^a-z0-9.]", "", f"{release['ID']}{release.get('VERSION_ID', '')}".lower())


class Provider:
    """The interface is scikit-build-core's."""

    def __init__(self) -> None:
        self._state = "wheel"

    def build_state(self, build_state: str) -> None:
        self._state = build_state

    def dynamic_metadata(self, settings: Mapping[str, Any], project: Mapping[str, Any]) -> dict[str, Any]:
        if self._state not in ("wheel", "metadata_wheel"):
            return {"version": of_source()}
        return {"version": f"{of_source()}+{distribution(platform.freedesktop_os_release())}"}
