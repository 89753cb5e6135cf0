"""The house of docs/ARCHITECTURE.md holds: no module needs itself, and packages know those below them alone."""

from __future__ import annotations

import ast
import graphlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import SOURCE

PACKAGE = SOURCE / "perflab"
TOP = ("perflab", "perflab.__main__", "perflab.ros2cli")


def name_of(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imported(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Modules of perflab that are imported anywhere in a file, in functions and for types too, each with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "perflab":
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield (inner if inner in MODULES else node.module), node.lineno
        elif isinstance(node, ast.Import):
            yield from ((a.name, node.lineno) for a in node.names if a.name.split(".")[0] == "perflab")


def without_types(tree: ast.Module) -> ast.Module:
    """What is executed: imports for a type checker need nothing when the program runs."""

    class Executed(ast.NodeTransformer):
        def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
            if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
                return node.orelse
            return self.generic_visit(node)

    made = Executed().visit(tree)
    assert isinstance(made, ast.Module)
    return made


def layers() -> list[list[str]]:
    """As the document draws them, from the top; packages of one layer stand beside each other."""
    text = (SOURCE / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    block = text.partition("```layers\n")[2].partition("```")[0]
    return [[word.strip() for word in line.partition("#")[0].split("|")] for line in block.splitlines()]


def package_of(module: str) -> str | None:
    """None of a single module, which stands below all packages."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and (PACKAGE / parts[1]).is_dir() else None


def test_every_package_has_a_layer() -> None:
    drawn = [package for layer in layers() for package in layer]
    assert sorted(drawn) == sorted({p for p in map(package_of, MODULES) if p is not None} - {"ros2cli"})


def test_no_module_needs_itself() -> None:
    needs = {
        name: {m for m, _ in imported(without_types(ast.parse(path.read_text("utf-8")))) if m != name}
        for name, path in MODULES.items()
    }
    try:
        graphlib.TopologicalSorter(needs).prepare()
    except graphlib.CycleError as circle:
        pytest.fail(" needs ".join(reversed(circle.args[1])))


def test_packages_know_those_below_them_alone() -> None:
    heights = {package: -n for n, layer in enumerate(layers()) for package in layer}
    lowest = min(heights.values()) - 1
    wrong = []
    for name, path in MODULES.items():
        if name in TOP or name.startswith("perflab.ros2cli"):
            continue
        own = package_of(name)
        for module, line in imported(ast.parse(path.read_text("utf-8"))):
            other = package_of(module)
            if other == own:
                continue
            if module in TOP or heights.get(other or "", lowest) >= heights.get(own or "", lowest):
                wrong.append(f"{path.relative_to(SOURCE)}:{line} imports {module}")
    assert not wrong, "\n".join(wrong)
