"""What values of options can be. Modules are imported when they are asked, so that reading a file is quick."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from perflab.option import Completer, one_of

if TYPE_CHECKING:
    from perflab.registry import Kind


def metrics() -> Iterable[str]:
    from perflab.statistics.metrics import METRICS

    return METRICS


def middlewares() -> Iterable[str]:
    from perflab.middleware import REGISTRY

    return REGISTRY


def middleware_option(incomplete: str) -> list[str]:
    from perflab.middleware import REGISTRY

    known = {
        f"{name}.{option.key}": one_of(option.values) for name, kind in REGISTRY.items() for option in kind.options
    }
    return _assignment(known, incomplete)


def executors() -> Iterable[str]:
    from perflab.design.variant import EXECUTORS

    return EXECUTORS


def ways_to_pass() -> Iterable[str]:
    from perflab.design.variant import PASS_BY

    return PASS_BY


def framings() -> Iterable[str]:
    from perflab.design.variant import FRAMINGS

    return FRAMINGS


def interfaces() -> Iterable[str]:
    return (name for _, name in socket.if_nameindex())


def thread(incomplete: str) -> list[str]:
    from perflab.design.scheduling import POLICIES, ROLES

    key, equals, value = incomplete.partition("=")
    if equals:
        words = [policy if policy == "OTHER" else f"{policy}:" for policy in POLICIES]
        return [f"{key}={word}" for word in words if word.startswith(value)]
    process, dot, last = key.rpartition(".")
    return [f"{process}{dot}{role}=" for role in ROLES if role.startswith(last)]


def conditions() -> Mapping[str, Kind[Any]]:
    from perflab.condition.kinds import REGISTRY

    return REGISTRY


def observers() -> Mapping[str, Kind[Any]]:
    from perflab.observer.kinds import REGISTRY

    return REGISTRY


def path(incomplete: str) -> list[str]:
    from perflab.design.factors import levels_by_path

    return [path for path in levels_by_path() if path.startswith(incomplete)]


def factor(incomplete: str) -> list[str]:
    from perflab.design.factors import levels_by_path

    return _assignment(levels_by_path(), incomplete)


def _assignment(known: Mapping[str, Completer], incomplete: str) -> list[str]:
    """Completes PATH=VALUE,VALUE: the path, or the last value."""
    path, equals, values = incomplete.partition("=")
    if not equals:
        return [f"{known_path}=" for known_path in known if known_path.startswith(path)]
    before, comma, last = values.rpartition(",")
    return [f"{path}={before}{comma}{word}" for word in known[path](last)] if path in known else []
