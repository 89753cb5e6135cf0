"""The conditions that the suite runs: each has a module here, with its name."""

from __future__ import annotations

import importlib

from perflab.condition.kinds import REGISTRY
from tests.conformance.condition.case import Case

CASES: tuple[Case, ...] = tuple(
    case for name in REGISTRY for case in importlib.import_module(f"{__name__}.{name}").CASES
)
