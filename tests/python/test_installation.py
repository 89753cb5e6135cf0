"""NAME@PREFIX: builds of one middleware, told apart by name, found by the dynamic linker, and refused in one line."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from support import build_plugin

from perflab import middleware
from perflab.design.document import Written, with_options
from perflab.design.document import read as read_experiment
from perflab.design.variant import Variant
from perflab.errors import BadInput, Unavailable
from perflab.middleware import alike, installation, select
from perflab.middleware.installation import labels
from perflab.middleware.kind import MiddlewareKind
from perflab.native import Native

KIND = MiddlewareKind(name="wired", summary="", runtime="dds", install="", wire="rtps", libraries=("libwire",))


def build_library(
    folder: Path, soname: str = "libwire.so.1", symbols: str = "int wire_new(void) { return 1; }"
) -> Path:
    """A library libwire in a folder."""
    compiler = shutil.which("cc") or pytest.skip("no C compiler `cc` to build a library with")
    folder.mkdir(parents=True)
    (folder.parent / "wire.c").write_text(f"{symbols}\n")
    path = folder / f"{soname}.2.3"
    command: list[str | Path] = [
        compiler,
        "-shared",
        "-fPIC",
        f"-Wl,-soname,{soname}",
        "-o",
        path,
        folder.parent / "wire.c",
    ]
    subprocess.run(command, check=True)
    (folder / soname).symlink_to(path.name)
    (folder / "libwire.so").symlink_to(path.name)
    return path


@pytest.fixture
def native(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Native:
    """A folder with the plug-in `wired`, which is linked to libwire.so.1 of tmp_path/system."""
    monkeypatch.setitem(middleware.REGISTRY.kinds, KIND.name, KIND)
    library = build_library(tmp_path / "system")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(library.parent))
    (tmp_path / "native/middleware").mkdir(parents=True)
    linked = ["-Wl,--no-as-needed", f"-L{library.parent}", "-lwire", "-Wl,-u,wire_new", "-Wl,--no-undefined"]
    build_plugin(tmp_path / "native/middleware/wired.so", KIND.name, linked=linked)
    return Native(tmp_path / "native")


@pytest.mark.parametrize(
    ("paths", "called"),
    [
        (["/opt/wired-1"], ["wired-1"]),
        (["/opt/before", "/opt/after"], ["before", "after"]),
        (["/opt/before/install", "/srv/after/install"], ["before", "after"]),
        (["/a/x/install", "/b/x/install", "/b/y/install"], ["a/x", "b/x", "b/y"]),
        (["/opt", "/opt/b/opt"], ["opt", "b/opt"]),
        (["/"], ["/"]),
    ],
)
def test_a_label_is_the_last_parts_that_differ(paths: list[str], called: list[str]) -> None:
    assert list(labels([Path(path) for path in paths]).values()) == called


def test_builds_are_variants_of_their_own_with_the_options_of_their_kind(native: Native, tmp_path: Path) -> None:
    files = [build_library(tmp_path / name / "install" / lib) for name, lib in (("before", "lib"), ("after", "lib64"))]
    before, after = tmp_path / "before/install", tmp_path / "after/install"
    names = f"wired,wired@{before},wired@{after}+wired@{before}"
    chosen = select(names, ["wired.a=1", "b=2"], native)
    assert [[m.name for m in mixture] for mixture in chosen] == [
        ["wired"], ["wired@before"], ["wired@after", "wired@before"],
    ]  # fmt: skip
    assert {m.kind for mixture in chosen for m in mixture} == {"wired"}
    assert all(m.options == {"a": "1", "b": "2"} for mixture in chosen for m in mixture)
    own, (build,), (other, _) = chosen
    assert own[0].environment == {}
    assert own[0].used.prefix is own[0].used.library is own[0].used.sha256 is None
    assert build.environment == {"LD_LIBRARY_PATH": f"{before}/lib:{tmp_path}/system"}
    assert build.configuration(3, "lo", 1)["name"] == "wired", "perflab-node knows the kind"
    assert (build.used.prefix, build.used.library) == (str(before), str(files[0]))
    assert other.used.library == str(files[1])
    assert build.used.sha256 == installation.digest(files[0])
    assert len({Variant(mixture).key for mixture in chosen}) == 3
    assert json.loads(json.dumps(build.used.options)) == {"a": "1", "b": "2"}


def test_builds_with_the_same_library_are_told(native: Native, tmp_path: Path) -> None:
    build_library(tmp_path / "before/lib")
    build_library(tmp_path / "same/lib")
    build_library(tmp_path / "after/lib", symbols="int wire_new(void) { return 2; }")
    words = ",".join(f"wired@{tmp_path}/{name}" for name in ("before", "same", "after"))
    chosen = [m for mixture in select(f"wired,{words}", [], native) for m in mixture]
    assert alike([*chosen, *chosen]) == ["wired@before and wired@same have the same library, byte by byte"]


def test_what_is_no_build_of_it_is_one_line(native: Native, tmp_path: Path) -> None:
    def refused(kind: type[Exception], word: str) -> str:
        with pytest.raises(kind) as caught:
            select(word, [], native)
        assert "\n" not in str(caught.value)
        return str(caught.value)

    assert "no such folder" in refused(BadInput, f"wired@{tmp_path}/nowhere")
    (tmp_path / "empty/lib").mkdir(parents=True)
    assert refused(BadInput, f"wired@{tmp_path}/empty").endswith(f"{tmp_path}/empty/lib has no libwire.so")
    assert "shm has no library of its own" in refused(BadInput, f"shm@{tmp_path}/empty")
    assert "names one twice" in refused(BadInput, f"wired@{tmp_path}/empty,wired@{tmp_path}/empty")
    build_library(tmp_path / "other/lib", "libwire.so.7")
    line = refused(Unavailable, f"wired@{tmp_path}/other")
    assert f"{tmp_path}/other/lib has libwire.so, libwire.so.7, libwire.so.7.2.3, but the plug-in loads" in line
    assert f"{tmp_path}/system/libwire.so.1.2.3 instead: it is linked to another SONAME" in line
    build_library(tmp_path / "broken/lib").write_text("not a library\n")
    assert f"does not load with {tmp_path}/broken/lib" in refused(Unavailable, f"wired@{tmp_path}/broken")


def test_a_library_that_was_built_anew_meanwhile_is_seen(tmp_path: Path) -> None:
    library = tmp_path / "libwire.so.1"
    library.write_bytes(b"1")
    digest = installation.digest(library)
    assert installation.changed(library, digest) is None
    library.write_bytes(b"2")
    assert installation.changed(library, digest) == f"{library} was changed after this run began"
    library.unlink()
    assert installation.changed(library, digest) == f"{library} can no longer be read: No such file or directory"


def test_prefixes_are_absolute_of_a_file_relative_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/h")
    written = with_options(Written({}), {"middlewares": ["wired@a+wired@/b", "wired@~/c"]})
    assert written.mapping["middlewares"] == [f"wired@{tmp_path}/a+wired@/b", "wired@/h/c"]
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/e.yaml").write_text("workload: pubsub\nmiddlewares: wired,wired@../a\n")
    found = read_experiment(Path("folder/e.yaml")).mapping["middlewares"]
    assert Path(found.partition("@")[2]).is_absolute()
    assert Path(found.partition("@")[2]).resolve() == tmp_path / "a"
