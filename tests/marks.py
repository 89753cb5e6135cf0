"""Which cases of a parametrised test belong to the check that every change must pass; the others run with all tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest


def long_but(quick: Sequence[Any], cases: Iterable[Any]) -> list[Any]:
    """`cases`, of which all but `quick` are marked long. Each of `quick` must be a case, or the check would lose it."""
    known = list(cases)
    assert all(case in known for case in quick), f"{quick} are not all among {known}"
    return [case if case in quick else _long(case) for case in known]


def _long(case: Any) -> Any:
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.long)
