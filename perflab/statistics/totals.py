"""What a result counted altogether: its topics and its services, which no total of a summary holds together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Json = dict[str, Any]


def owners(result: Json) -> list[Json]:
    """What has counts: the topics together, as far as there are any, and each service."""
    totals = result["totals"]
    topics = totals["received"] is not None or result["edges"]
    return [*([totals] if topics else []), *result["services"]]


def counted(result: Json, count: Callable[[Json], int | None]) -> int | None:
    """A count over all topics and services; None where one of them is not known."""
    counts = [count(owner) for owner in owners(result)]
    known = [n for n in counts if n is not None]
    return sum(known) if counts and len(known) == len(counts) else None


def delivered(result: Json) -> int | None:
    return counted(result, lambda owner: owner["received"])


def expected(result: Json) -> int | None:
    return counted(result, lambda owner: owner["sent"])


def lost(*owners_: Json) -> int | None:
    """All losses of these; where a class is not known at least so many, and None rather than 0."""
    classes = [n for owner in owners_ for n in owner["lost"].values()]
    known = [n for n in classes if n is not None]
    return sum(known) if (known and len(known) == len(classes)) or any(known) else None


def all_lost(result: Json) -> int | None:
    return lost(*owners(result))


def largest(values: Sequence[int | None]) -> int | None:
    """The largest; None where there is no value or one is not known."""
    known = [value for value in values if value is not None]
    return max(known) if known and len(known) == len(values) else None
