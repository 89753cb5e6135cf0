"""Mitigations: what shall make a workload withstand a disturbance. Each is one module with a KIND (perflab/plugins.py).

A mitigation is a condition that helps: it has parameters, is checked, begins, is verified and removed as they are, and
its evidence says that it was really there. A treatment has it beside its conditions, after them: what it changes in the
graph it changes with what they added. Beside that it may tune the middlewares of a trial.

An experiment runs every treatment with and without each mitigation, so what it buys under a condition, and what it
costs without one, are comparisons like all others.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from perflab.condition import Condition
from perflab.middleware import Middleware
from perflab.workload import Graph


class Mitigation(Condition):
    """Helps instead of disturbing."""

    mitigates: ClassVar[bool] = True

    def tuned(self, middlewares: tuple[Middleware, ...]) -> tuple[Middleware, ...]:
        """The middlewares of a trial as it sets them. Raises BadInput, Unavailable for one that cannot do that."""
        return middlewares


def names_of(conditions: Iterable[Condition]) -> list[str]:
    """Of the conditions of a treatment those that help."""
    return [condition.name for condition in conditions if condition.mitigates]


def before_it(graph: Graph, conditions: Iterable[Condition], mitigation: Condition) -> Graph:
    """The graph that a mitigation finds: with what the conditions and mitigations before it add."""
    for condition in conditions:
        if condition is mitigation:
            break
        graph = condition.extend(graph)
    return graph
