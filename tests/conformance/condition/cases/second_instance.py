"""`second_instance` needs a graph, which the workload of the suite is not: tests/end_to_end has it."""

from __future__ import annotations

from tests.conformance.condition.case import Case

CASES: tuple[Case, ...] = ()
