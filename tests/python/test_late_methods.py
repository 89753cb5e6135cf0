"""Classes whose methods are compiled late are as `dataclass` makes them."""

from __future__ import annotations

import dataclasses

import pytest

from perflab import late_methods

create = getattr(dataclasses, "_create_fn", None)


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Those of the methods that are compiled, as they are."""
    if create is None:
        pytest.skip("this Python compiles methods of a class together")
    found: list[str] = []
    original = create.args[0] if hasattr(create, "args") else create

    def noted(name: str, *text: object, **more: object) -> object:
        found.append(name)
        return original(name, *text, **more)

    monkeypatch.setattr(dataclasses, "_create_fn", noted)
    late_methods.install()
    return found


def test_methods_are_compiled_when_they_are_called_and_do_what_they_did(names: list[str]) -> None:
    @dataclasses.dataclass(frozen=True, order=True)
    class Point:
        x: int
        y: int = 0

    @dataclasses.dataclass(frozen=True)
    class Named(Point):
        name: str = ""

    assert names == ["__init__", "__init__"]
    one, same, other = Point(1, 2), Point(x=1, y=2), Point(2)
    assert one == same and one != other and hash(one) == hash(same)
    assert names == ["__init__", "__init__", "__eq__", "__hash__"]
    assert repr(one).endswith("Point(x=1, y=2)")
    assert one < other and Named(1, 2, "a") != one
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
        one.x = 3  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'name'"):
        del Named(1).name
    assert dataclasses.replace(Named(1, name="b"), y=4) == Named(1, 4, "b")
