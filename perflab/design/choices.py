"""The possible values of options. Modules are imported on request, so that reading a file stays quick."""

from __future__ import annotations

import importlib
import socket
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from perflab.option import Completer, one_of


def _table(module: str, name: str) -> Callable[[], Any]:
    """Looks up one of perflab's tables."""
    return lambda: getattr(importlib.import_module(f"perflab.{module}"), name)


metrics = _table("statistics.metrics", "METRICS")
middlewares = _table("middleware", "REGISTRY")
executors = _table("design.variant", "EXECUTORS")
ways_to_pass = _table("design.variant", "PASS_BY")
framings = _table("design.variant", "FRAMINGS")
conditions = _table("condition.kinds", "REGISTRY")
mitigations = _table("mitigation.kinds", "REGISTRY")
observers = _table("observer.kinds", "REGISTRY")


def middleware_option(incomplete: str) -> list[str]:
    from perflab.middleware import options_by_path

    return _assignment({path: one_of(option.values) for path, option in options_by_path().items()}, incomplete)


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
