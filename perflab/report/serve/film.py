"""The film of a trial for the live page: of a finished trial, or as far as it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perflab.report.film import document
from perflab.runs.film import film
from perflab.runs.rundir import TrialDirectory

Json = dict[str, Any]


def film_document(trials: Sequence[TrialDirectory], number: int | None) -> Json:
    """The film of the trial with this number, or of the newest one; `film` is null if there is nothing to show yet."""
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
