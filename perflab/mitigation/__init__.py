"""Mitigations, which should make a workload withstand a disturbance. Each is one module with a KIND
(perflab/plugins.py).

A mitigation is a condition that helps: like other conditions it has parameters, is checked, begun, verified and
removed, and its evidence shows that it was in effect. In a treatment it comes after the conditions: its changes to the
graph include what they added. It may also tune the middlewares of a trial.

An experiment runs every treatment with and without each mitigation, so its benefit under a condition and its cost
without one are ordinary comparisons.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from perflab.condition import Condition
from perflab.middleware import Middleware
from perflab.workload import Graph


class Mitigation(Condition):
    """A condition that helps instead of disturbing."""

    mitigates: ClassVar[bool] = True

    def tuned(self, middlewares: tuple[Middleware, ...]) -> tuple[Middleware, ...]:
        """The middlewares of a trial, tuned. Raises BadInput, or Unavailable for a middleware that cannot be tuned
        so."""
        return middlewares


def names_of(conditions: Iterable[Condition]) -> list[str]:
    """The mitigations among the conditions of a treatment."""
    return [condition.name for condition in conditions if condition.mitigates]


def before_it(graph: Graph, conditions: Iterable[Condition], mitigation: Condition) -> Graph:
    """The graph that a mitigation receives: with the additions of the conditions and mitigations before it."""
    for condition in conditions:
        if condition is mitigation:
            break
        graph = condition.extend(graph)
    return graph
