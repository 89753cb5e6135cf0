"""Figures as PDF files, for papers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from perflab.report.draw import draw
from perflab.report.pictures import of_report
from perflab.results.run import RunData


@dataclass(frozen=True)
class Picture:
    """One picture. `name` is that of its file, without a suffix."""

    name: str
    title: str
    subtitle: str
    content: bytes


def pictures(runs: Sequence[RunData]) -> list[Picture]:
    """Everything that can be drawn of runs, in the order of a report; each name once."""
    found: list[Picture] = []
    for figure in of_report(runs).figures:
        name = stem = re.sub(r"[^A-Za-z0-9_-]+", "-", figure.name)
        number = 1
        while any(name == other.name for other in found):
            number += 1
            name = f"{stem}_{number}"
        content = draw(figure, "pdf", "light")
        found.append(Picture(name, figure.title, figure.subtitle, content))
    return found
