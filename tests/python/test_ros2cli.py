"""`ros2 perflab ...`, and perflab below the prefix of a colcon workspace."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from xml.etree import ElementTree

import pytest
from support import SOURCE

import perflab
from tests.marks import long_but

# ros2cli as far as a command meets it: an entry point is loaded, given its parser, and run. Like the real
# one it parses once before the command has a say, with help kept quiet, and sets the command as a default.
ROS2 = """
import argparse, os, sys
from importlib.metadata import entry_points

parser = argparse.ArgumentParser(prog="ros2")
commands = parser.add_subparsers(dest=" command")
(entry,) = entry_points(group="ros2cli.command", name="perflab")
sub = commands.add_parser(entry.name)
commands.add_parser("topic")
show, leave = sub.print_help, sub.exit
sub.print_help, sub.exit = (lambda *_: None), (lambda *_: None)
known, _ = parser.parse_known_args()
sub.print_help, sub.exit = show, leave
assert getattr(known, " command") == "perflab"
extension = entry.load()()
sub.set_defaults(_command=extension)
sub.description = extension.__doc__
extension.add_arguments(sub, "ros2 perflab", argv=None)
args = parser.parse_args()
sys.exit(args._command.main(parser=parser, args=args))
"""
COMMAND_EXTENSION = "class CommandExtension:\n    def __init__(self):\n        pass\n"
# Stands for perflab's own command line: prints its arguments, and exits with the given status.
ECHO = (
    "import json, sys\n"
    "def main():\n"
    "    print(json.dumps(sys.argv[1:]))\n"
    "    return int(sys.argv[-1]) if sys.argv[-1].isdigit() else 0\n"
)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """What colcon installs, made by the same program, and a double of ros2cli beside it."""
    prefix = tmp_path / "install" / "perflab"
    site = prefix / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    site.mkdir(parents=True)
    made = tmp_path / "metadata"
    subprocess.run([sys.executable, SOURCE / "ros/python/metadata.py", SOURCE / "pyproject.toml", made], check=True)
    (made / f"perflab-{perflab.__version__}.dist-info").rename(site / f"perflab-{perflab.__version__}.dist-info")
    (site / "perflab").symlink_to(SOURCE / "perflab")
    (prefix / "lib" / "perflab").mkdir()
    (made / "requirements.txt").rename(prefix / "lib" / "perflab" / "requirements.txt")
    (site / "ros2cli" / "command").mkdir(parents=True)
    (site / "ros2cli" / "command" / "__init__.py").write_text(COMMAND_EXTENSION)
    (tmp_path / "ros2").write_text(ROS2)
    return prefix


def _site(prefix: Path) -> Path:
    return next(prefix.glob("lib/python*/site-packages"))


def _run(prefix: Path, *words: str, program: str = "ros2", cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """`ros2 WORDS` or `perflab WORDS` in a shell that sourced the workspace, from a folder outside of perflab."""
    command = [prefix.parents[1] / program] if program == "ros2" else ["-P", "-m", "perflab"]
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PERFLAB_", "PYTHON"))}
    return subprocess.run(
        [sys.executable, *command, *words],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=cwd or prefix,
        env={**environment, "PYTHONPATH": str(_site(prefix))},
    )


def _replace_command_line(prefix: Path) -> None:
    """perflab's modules that are asked, with ECHO in place of the command line."""
    package = _site(prefix) / "perflab"
    package.unlink()
    (package / "cli").mkdir(parents=True)
    for module in ("__init__", "__main__", "errors", "output", "ros2cli", "version", "workspace"):
        (package / f"{module}.py").symlink_to(SOURCE / "perflab" / f"{module}.py")
    (package / "cli" / "__init__.py").write_text(ECHO)
    (prefix / "lib" / "perflab" / "requirements.txt").write_text("")


WORDS = [
    [],
    ["--help"],
    ["run", "--", "--help", "-x"],
    ["list", "--use-python-default-buffering"],
    ["topic", "a word with spaces", ""],
    ["list", "middlewares"],
    ["-h"],
    ["run", "graph.yaml", "--time", "2", "--json"],
]


@pytest.mark.parametrize("words", long_but(WORDS[:5], WORDS))
def test_every_word_after_ros2_perflab_reaches_perflab(workspace: Path, words: list[str]) -> None:
    _replace_command_line(workspace)
    ran = _run(workspace, "perflab", *words)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == words


@pytest.mark.parametrize("code", long_but([2, 130], [0, 1, 2, 3, 130]))
def test_the_exit_code_is_perflabs(workspace: Path, code: int) -> None:
    _replace_command_line(workspace)
    assert _run(workspace, "perflab", str(code)).returncode == code


def test_a_folder_of_that_name_in_the_current_one_is_not_the_program(workspace: Path, tmp_path: Path) -> None:
    _replace_command_line(workspace)
    clone = tmp_path / "src" / "perflab"
    clone.mkdir(parents=True)
    (clone / "__init__.py").write_text("raise SystemExit('the wrong one')\n")
    ran = _run(workspace, "perflab", "list", cwd=clone.parent)
    assert (ran.returncode, json.loads(ran.stdout)) == (0, ["list"])


def test_help_is_perflabs_own(workspace: Path) -> None:
    ran = _run(workspace, "perflab", "--help")
    assert ran.returncode == 0, ran.stderr
    assert "Usage: perflab" in re.sub(r"\x1b\[[0-9;]*m", "", ran.stdout)
    assert "run" in ran.stdout


@pytest.mark.parametrize("program", ["ros2", "perflab"])
def test_packages_that_are_missing_are_named_with_the_command_that_installs_them(workspace: Path, program: str) -> None:
    needed = workspace / "lib" / "perflab" / "requirements.txt"
    here = metadata.version("rich")
    needed.write_text(f"rich=={here}\nno-such-package==1.2\npolars==0.0.1\n")
    ran = _run(workspace, *(["perflab"] if program == "ros2" else []), "list", program=program)
    assert ran.returncode == 3
    assert ran.stdout == ""
    (line,) = ran.stderr.splitlines()
    assert line.startswith("perflab: needs the Python packages no-such-package==1.2, polars==0.0.1; install with `")
    assert line.endswith(f"-m pip install --upgrade --target {needed.parent}/python --requirement {needed}`")


def test_packages_in_perflabs_own_folder_come_before_those_of_the_system(workspace: Path) -> None:
    folder = workspace / "lib" / "perflab" / "python"
    (folder / "made_up-7.dist-info").mkdir(parents=True)
    (folder / "made_up-7.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: made-up\nVersion: 7\n")
    _replace_command_line(workspace)
    (workspace / "lib" / "perflab" / "requirements.txt").write_text("made-up==7\n")
    (_site(workspace) / "perflab" / "cli" / "__init__.py").write_text(
        "import sys\ndef main():\n    print(sys.path[0])\n    return 0\n"
    )
    for words, program in ((["perflab", "list"], "ros2"), (["list"], "perflab")):
        ran = _run(workspace, *words, program=program)
        assert (ran.returncode, ran.stdout.strip()) == (0, str(folder)), ran.stderr


def test_native_programs_and_catalog_are_found_below_the_prefix(workspace: Path) -> None:
    package = _site(workspace) / "perflab"
    package.unlink()
    package.mkdir()
    for module in ("__init__", "catalog", "errors", "native", "version", "workspace"):
        (package / f"{module}.py").write_bytes((SOURCE / "perflab" / f"{module}.py").read_bytes())
    (workspace / "share" / "perflab" / "catalog").mkdir(parents=True)
    asked = subprocess.run(
        [sys.executable, "-c", "from perflab import catalog, native; print(native.find().folder, catalog.folder())"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        cwd=workspace,
        env={"PYTHONPATH": str(_site(workspace))},
    )
    assert asked.stdout.split() == [f"{workspace}/lib/perflab", f"{workspace}/share/perflab/catalog"]


def test_outside_a_workspace_nothing_is_looked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from perflab import workspace as module

    assert module.prepare() is None
    assert module.prefix() is None  # a source folder
    monkeypatch.setattr(sys, "prefix", os.fspath(tmp_path))
    assert module.installed("lib", "perflab") == tmp_path / "lib" / "perflab"
    # Below a prefix that pip made: its own files come before Python's, which may be elsewhere.
    installed = tmp_path / "local" / "lib" / "python3.12" / "dist-packages" / "perflab" / "workspace.py"
    monkeypatch.setattr(module, "__file__", os.fspath(installed))
    assert module.prefix() == tmp_path / "local"
    assert module.installed("lib", "perflab") == tmp_path / "lib" / "perflab"
    (tmp_path / "local" / "lib" / "perflab").mkdir(parents=True)
    assert module.installed("lib", "perflab") == tmp_path / "local" / "lib" / "perflab"
    assert module.prepare() is None


def test_the_entry_point_is_that_of_pyproject(workspace: Path) -> None:
    project = tomllib.loads((SOURCE / "pyproject.toml").read_text())["project"]
    (distribution,) = metadata.distributions(name="perflab", path=[str(_site(workspace))])
    assert distribution.version == perflab.__version__
    assert {(e.group, e.name, e.value) for e in distribution.entry_points} == {
        ("console_scripts", "perflab", "perflab.cli:main"),
        ("ros2cli.command", "perflab", "perflab.ros2cli:PerflabCommand"),
    }
    assert distribution.requires == project["dependencies"]


def _cmake_version(file: Path) -> str:
    found = re.search(r"^project\(\w+ VERSION (\S+)", file.read_text(), re.MULTILINE)
    assert found is not None, file
    return found[1]


def _package(file: Path) -> ElementTree.Element:
    root = ElementTree.parse(file).getroot()
    assert root.get("format") == "3"
    return root


def test_all_files_that_name_a_version_name_the_same() -> None:
    messages = SOURCE / "ros" / "perflab_msgs"
    versions = {
        "perflab/version.py": perflab.__version__,
        "CMakeLists.txt": _cmake_version(SOURCE / "CMakeLists.txt"),
        "package.xml": _package(SOURCE / "package.xml").findtext("version"),
        "ros/perflab_msgs/CMakeLists.txt": _cmake_version(messages / "CMakeLists.txt"),
        "ros/perflab_msgs/package.xml": _package(messages / "package.xml").findtext("version"),
    }
    assert set(versions.values()) == {perflab.__version__}, versions


def test_the_packages_say_what_they_are() -> None:
    for folder, name in ((SOURCE, "perflab"), (SOURCE / "ros" / "perflab_msgs", "perflab_msgs")):
        package = _package(folder / "package.xml")
        assert (package.findtext("name"), package.findtext("license")) == (name, "Apache-2.0")
