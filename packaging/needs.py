"""Which packages of this distribution the native programs of a wheel need.

    needs.py FOLDER

writes FOLDER/needs.json about every program and library in the folder (perflab/needs.py reads it).
"""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
import sysconfig
from pathlib import Path


def needed(file: Path) -> list[str]:
    """The libraries that an ELF file is linked with."""
    headers = subprocess.run(["objdump", "-p", file], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^\s+NEEDED\s+(\S+)$", headers, re.MULTILINE)


def package_of(library: str) -> str:
    """The package that has the library, where the dynamic linker looks for it."""
    folder = sysconfig.get_config_var("MULTIARCH")
    listed = subprocess.run(["dpkg-query", "--search", f"*/{library}"], capture_output=True, text=True, check=False)
    for line in listed.stdout.splitlines():
        package, _, path = line.rpartition(": ")
        if Path(path).parent in (Path("/lib", folder), Path("/usr/lib", folder)):
            return package.split(",")[0].split(":")[0]
    raise SystemExit(f"needs.py: no package of this distribution has {library}; a wheel cannot name what it needs")


def needs_of(folder: Path) -> dict[str, dict[str, str]]:
    files = [file for file in sorted(folder.rglob("*")) if file.is_file() and file.read_bytes()[:4] == b"\x7fELF"]
    linked = {file: [name for name in needed(file) if not list(folder.rglob(name))] for file in files}
    package = {name: package_of(name) for name in sorted({name for names in linked.values() for name in names})}
    return {str(file.relative_to(folder)): {name: package[name] for name in names} for file, names in linked.items()}


if __name__ == "__main__":
    where = Path(sys.argv[1])
    release = platform.freedesktop_os_release()
    distribution = {
        key: release.get(name) for key, name in (("id", "ID"), ("version", "VERSION_ID"), ("name", "PRETTY_NAME"))
    }
    document = {"schema": 1, "distribution": distribution, "files": needs_of(where)}
    (where / "needs.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
