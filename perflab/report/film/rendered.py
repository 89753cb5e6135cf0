"""MuJoCo's pictures of films, from a separate process (perflab.report.film.render)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from perflab.report.film.document import camera, frame, scene_document
from perflab.results.film import Film

SIZE = (480, 360)
QUALITY = 66  # of JPEG
LIMIT_S = 120.0  # for the pictures of one film; without them the page draws everything itself


@dataclass(frozen=True)
class Rendered:
    """The pictures in base64, in order, and the GL library that drew them; or why there are none."""

    pictures: Sequence[str] = field(default=())
    library: str | None = None
    missing: str | None = None


def rendered(film: Film, instants_ns: Sequence[int], quality: int | None = QUALITY) -> Rendered:
    """The film at these instants, as JPEG of this quality, or as PNG without one. If the other process fails, the page
    is made without these pictures."""
    asked = {
        "scene": scene_document(film.scene),
        "camera": camera(film),
        "size": SIZE,
        "quality": quality,
        "frames": [frame(film, at_ns) for at_ns in instants_ns],
    }
    try:
        done = subprocess.run(
            [sys.executable, "-m", "perflab.report.film.render"],
            input=json.dumps(asked), capture_output=True, text=True, timeout=LIMIT_S, check=False,
        )  # fmt: skip
        answers: list[Mapping[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        return Rendered(missing=f"rendering failed: {error}")
    missing = next((str(answer["missing"]) for answer in answers if "missing" in answer), None)
    if missing is None and (done.returncode != 0 or len(answers) != len(instants_ns)):
        last = done.stderr.strip().splitlines()[-1:] or [f"it exited with status {done.returncode}"]
        missing = f"rendering failed: {last[0]}"
    if missing is not None:
        return Rendered(missing=missing)
    return Rendered([str(a["picture"]) for a in answers], answers[0]["library"] if answers else None)
