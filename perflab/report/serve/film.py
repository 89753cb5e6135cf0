"""The film of a trial as the live page asks for it: of one that is over, or as far as it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perflab.report.film import document
from perflab.runs.film import film
from perflab.runs.rundir import TrialDirectory

Json = dict[str, Any]


def film_document(trials: Sequence[TrialDirectory], number: int | None) -> Json:
    """Of the trial of this number, or the newest one; `film` is null where there is nothing to be seen yet."""
    found = next((t for t in reversed(trials) if number is None or t.number == number), None)
    shown = None if found is None else film(found.path)
    told: Json = {"trial": None if found is None else found.number, "film": None}
    if shown is None:
        return told
    return told | {
        "scene": document.scene_document(shown.scene),
        "film": document.document(shown),
        "about": document.about(shown),
    }
