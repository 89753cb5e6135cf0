"""Colours and marks of pictures.

Six colours that are distinguishable with each kind of colour blindness, each with a contrast of at least 3 : 1 against
its background; a test computes both. No picture relies only on them: every result also has its own mark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Background = Literal["light", "dark"]


@dataclass(frozen=True)
class Theme:
    """The colours of pictures on one background."""

    background: str
    ink: str  # text
    faint: str  # secondary text, axes
    grid: str
    groups: tuple[str, ...]
    shades: tuple[str, str, str]  # for cells: 0, 50 and 100 %, with rising contrast to the background


LIGHT = Theme(
    background="#ffffff",
    ink="#1c1f24",
    faint="#59606b",
    grid="#e1e4e9",
    groups=("#002bda", "#de7100", "#01a188", "#951d8b", "#6b5529", "#1b0b2a"),
    shades=("#eaedf3", "#6f94f0", "#0b1c70"),
)
DARK = Theme(
    background="#15181d",
    ink="#eceef2",
    faint="#a3abb8",
    grid="#333943",
    groups=("#5a86ff", "#f0561a", "#22dd88", "#d865ae", "#ffdf3d", "#dcf3ec"),
    shades=("#262c36", "#3c66d6", "#dbe7ff"),
)
THEMES: dict[Background, Theme] = {"light": LIGHT, "dark": DARK}


# SVG paths within -6 .. 6 px.
MARKS = (
    "M-4.5,0a4.5,4.5 0 1,0 9,0a4.5,4.5 0 1,0 -9,0Z",
    "M-4,-4H4V4H-4Z",
    "M0,-5L5,4H-5Z",
    "M0,-5.5L5,0L0,5.5L-5,0Z",
    "M0,5L5,-4H-5Z",
    "M-2,-5H2V-2H5V2H2V5H-2V2H-5V-2H-2Z",
    "M0,-6L1.6,-2L6,-1.8L2.5,0.9L3.7,5L0,2.6L-3.7,5L-2.5,0.9L-6,-1.8L-1.6,-2Z",
)
SHADES = (0, 50, 100)  # percent; those of Theme.shades
BAND_OPACITY = 0.18


def mark(group: int) -> str:
    """The mark of a result."""
    return MARKS[group % len(MARKS)]
