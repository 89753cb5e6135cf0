"""Without a DDS graph there is no flood: its suite is its own, tests/python/test_message_flood.py."""

from __future__ import annotations

from tests.conformance.condition.case import Case

CASES: tuple[Case, ...] = ()
