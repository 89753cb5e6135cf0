"""Dataclasses whose methods are compiled at their first call.

`dataclass` compiles six methods of every frozen class, but most processes call only one. Commands import several
hundred such classes, and without this the compiler took a fifth of their time.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

_CREATE = "_create_fn"  # makes a function from a method's text; until Python 3.12, later ones are left unchanged


def install() -> None:
    """Applies to the classes that this process defines from now on."""
    create = getattr(dataclasses, _CREATE, None)
    if create is not None and not isinstance(create, functools.partial):
        setattr(dataclasses, _CREATE, functools.partial(_method, create))


def _method(create: Callable[..., Any], name: str, *text: Any, **more: Any) -> Any:
    if name == "__init__":  # its signature is inspected
        return create(name, *text, **more)
    compiled: Any = None

    def method(*values: object) -> Any:
        nonlocal compiled
        if compiled is None:
            compiled = create(name, *text, **more)
        return compiled(*values)

    method.__name__ = name
    return method
