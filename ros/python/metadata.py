"""What pip would install beside the package: its metadata, from pyproject.toml.

    metadata.py pyproject.toml FOLDER

writes FOLDER/perflab-VERSION.dist-info, the requirements as a file for pip, and the command `perflab`.
"""

from __future__ import annotations

import runpy
import shutil
import sys
import tomllib
from pathlib import Path

COMMAND = """#!{python}
import sys

from perflab.__main__ import main

sys.exit(main())
"""


def write(pyproject: Path, folder: Path) -> None:
    """Replaces the files of an earlier version in the folder."""
    project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    shutil.rmtree(folder, ignore_errors=True)
    version = runpy.run_path(str(pyproject.parent / "perflab" / "version.py"))["__version__"]
    information = folder / f"{project['name']}-{version}.dist-info"
    information.mkdir(parents=True)
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {project['name']}",
        f"Version: {version}",
        f"Summary: {project['description']}",
        f"License-Expression: {project['license']}",
        f"Requires-Python: {project['requires-python']}",
        *(f"Requires-Dist: {requirement}" for requirement in project["dependencies"]),
    ]
    (information / "METADATA").write_text("\n".join(lines) + "\n", encoding="utf-8")
    groups = {"console_scripts": project["scripts"], **project["entry-points"]}
    sections = [
        f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in entries.items())
        for group, entries in groups.items()
    ]
    (information / "entry_points.txt").write_text("\n".join(sections), encoding="utf-8")
    (information / "INSTALLER").write_text("colcon\n", encoding="utf-8")
    (folder / "requirements.txt").write_text("\n".join(project["dependencies"]) + "\n", encoding="utf-8")
    (folder / "perflab").write_text(COMMAND.format(python=sys.executable), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path(sys.argv[2]))
