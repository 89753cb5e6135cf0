"""What a wheel says that it needs of the distribution, and for which one it is."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from perflab import needs, workspace
from perflab.errors import Unavailable
from perflab.native import Native
from perflab.version import __version__

SOURCE = Path(__file__).resolve().parents[2]
NOWHERE = "libnowhere.so.7"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The native folder of a wheel that was made here; one of its two programs lacks a library."""
    files = {"perflab-graph": {"libc.so.6": "libc6", NOWHERE: "libnowhere7"}, "perflab-node": {"libc.so.6": "libc6"}}
    made_on = dict(zip(("id", "version"), (needs.here() or "").split(), strict=False))
    _write(tmp_path, files, {**made_on, "name": "this one"})
    for program in files:
        (tmp_path / program).touch(mode=0o755)
    return tmp_path


def _write(folder: Path, files: dict[str, dict[str, str]], distribution: dict[str, str]) -> None:
    document = {"schema": 1, "distribution": distribution, "files": files}
    (folder / needs.FILE).write_text(json.dumps(document))


def test_a_program_that_lacks_a_library_is_unavailable_with_the_command_that_installs_it(folder: Path) -> None:
    native = Native(folder)
    assert native.program("perflab-node") == folder / "perflab-node"
    with pytest.raises(Unavailable) as told:
        native.program("perflab-graph")
    command = "sudo apt-get install --no-install-recommends libnowhere7"
    assert str(told.value) == f"perflab-graph needs {NOWHERE}; install with `{command}`"


def test_a_wheel_of_another_distribution_is_not_mended_by_packages(folder: Path) -> None:
    _write(folder, {"perflab-graph": {NOWHERE: "libnowhere7"}}, {"id": "hurd", "version": "1", "name": "Hurd 1"})
    with pytest.raises(Unavailable, match=r"built on Hurd 1, and this is .*: install the wheel of this distrib"):
        Native(folder).program("perflab-graph")


def test_what_was_built_here_needs_nothing(tmp_path: Path) -> None:
    assert needs.Needs.of(tmp_path).missing("perflab-graph") is None
    assert not [package for package in needs.Needs.of(tmp_path).packages() if package.text.startswith("library")]


def test_packages_are_missing_where_one_of_their_libraries_is(folder: Path) -> None:
    packages = {package.name: package for package in needs.Needs.of(folder).packages()}
    assert packages["libc6"].available
    assert packages["libc6"].text == "library of perflab-graph, perflab-node"
    assert not packages["libnowhere7"].available


def test_a_library_is_here_where_the_linker_finds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert needs.is_here("libc.so.6")
    assert not needs.is_here(NOWHERE)
    (tmp_path / NOWHERE).touch()
    monkeypatch.setenv("LD_LIBRARY_PATH", f":{tmp_path}")
    assert needs.is_here(NOWHERE)


def test_the_prefix_of_a_wheel_is_within_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site-packages" / "perflab"
    (package / "installed" / "lib" / "perflab").mkdir(parents=True)
    monkeypatch.setattr(workspace, "__file__", str(package / "workspace.py"))
    assert workspace.installed("lib", "perflab") == package / "installed" / "lib" / "perflab"


def test_the_version_of_a_wheel_names_the_distribution() -> None:
    module = runpy.run_path(str(SOURCE / "packaging" / "wheel_version.py"))
    assert module["distribution"]({"ID": "debian", "VERSION_ID": "12"}) == "debian12"
    assert module["distribution"]({"ID": "opensuse-leap", "VERSION_ID": "15.6"}) == "opensuseleap15.6"
    assert module["distribution"]({"ID": "debian"}) == "debian"
    provider = module["Provider"]()
    assert provider.dynamic_metadata({}, {})["version"].startswith(f"{__version__}+")
    provider.build_state("editable")
    assert provider.dynamic_metadata({}, {}) == {"version": __version__}


def test_what_is_linked_is_found_with_its_package(tmp_path: Path) -> None:
    (tmp_path / "program").write_bytes(Path("/bin/true").read_bytes())
    (tmp_path / "text").write_text("no program")
    subprocess.run([sys.executable, SOURCE / "packaging" / "needs.py", tmp_path], check=True)
    assert json.loads((tmp_path / needs.FILE).read_text())["files"] == {"program": {"libc.so.6": "libc6"}}


def test_containers_differ_by_their_distribution_alone() -> None:
    made = {}
    for file in (SOURCE / "packaging" / "containers").iterdir():
        name = file.name.removeprefix("Containerfile.")
        image = name.replace("debian", "debian:").replace("ubuntu", "ubuntu:")
        lines = [line for line in file.read_text().splitlines() if not line.startswith("#")]
        made[name] = "\n".join(lines).replace(image, "IMAGE").replace(name, "NAME")
        assert ("Untested" in file.read_text()) == (name == "ubuntu24.04")
    assert sorted(made) == ["debian12", "debian13", "ubuntu24.04"]
    assert len(set(made.values())) == 1
