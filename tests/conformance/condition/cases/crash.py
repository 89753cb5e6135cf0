"""`crash` kills a process of a graph, which the suite's workload is not: tests/end_to_end/test_crash.py has it."""

from __future__ import annotations

from tests.conformance.condition.case import Case

CASES: tuple[Case, ...] = ()
