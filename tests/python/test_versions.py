"""docs/versions.md names the numbers that the code has, each where it stands."""

from __future__ import annotations

import re
import tomllib

import pytest
from support import SOURCE

from perflab.version import __version__

PAGE = (SOURCE / "docs/versions.md").read_text(encoding="utf-8")
# | what | number | `NAME` in `file` ... |
ROWS = re.findall(r"^\| (.+?) \| (\d+) \| `(\w+)` in `([^`]+)`(?:, read in `([^`]+)`)? \|$", PAGE, re.MULTILINE)
# How each name is given its number: as a constant, a member or a macro.
GIVEN = r"(?:{name}\b[^\n=]*= |#define {name} |\"{name}\": ?|\"{name}\\?\",? ?:?|\(\"{name}\"\)\.get<int>\(\) != )(\d+)"


@pytest.mark.parametrize(("what", "number", "name", "file", "reader"), ROWS, ids=[row[0] for row in ROWS])
def test_the_page_has_the_number_of_the_code(what: str, number: str, name: str, file: str, reader: str) -> None:
    for path in filter(None, (file, reader)):
        found = re.findall(GIVEN.format(name=name), (SOURCE / path).read_text(encoding="utf-8"))
        assert set(found) == {number}, f"{what}: {path} has {found}"


def test_the_page_has_every_number_of_a_file_and_of_an_interface() -> None:
    declared = {
        (path.relative_to(SOURCE).as_posix(), name)
        for folder, ending in (("perflab", "*.py"), ("native", "*.h"), ("native", "*.cpp"))
        for path in (SOURCE / folder).rglob(ending)
        for name in re.findall(
            r"^(?:constexpr int |inline constexpr std::uint32_t |#define )?"
            r"(SCHEMA|SCHEMA_VERSION|kSchema|kPluginAbi|\w+_ABI)(?:: Literal\[\d+\])? =? ?\d+u?;?$",
            path.read_text(encoding="utf-8"),
            re.MULTILINE,
        )
        if name != "RUNTIME_ABI"  # the loader's copies, which test_probe.py compares with the headers
    }
    assert declared == {(file, name) for _, _, name, file, _ in ROWS if name != "schema"}


def test_there_is_one_version_of_perflab() -> None:
    for package in ("package.xml", "ros/perflab_msgs/package.xml"):
        assert f"<version>{__version__}</version>" in (SOURCE / package).read_text()
    project = tomllib.loads((SOURCE / "pyproject.toml").read_text())["project"]
    assert project.get("version", __version__) == __version__
    assert f"| perflab | {__version__} | `__version__` in `perflab/version.py` |" in PAGE
    assert f"## [{__version__}] " in (SOURCE / "CHANGELOG.md").read_text()
    crate = tomllib.loads((SOURCE / "plugins/Cargo.toml").read_text())["workspace"]["package"]["version"]
    assert f"| {crate} | `plugins/Cargo.toml` |" in PAGE
