"""Runs as files: the same bytes for the same run, nothing half-written, and nothing unpacked outside of the run."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made_run import MadeTrial, Stream, arrivals, make_run

from perflab.cli import archive as command
from perflab.errors import BadInput, PerflabError
from perflab.experiment import archive
from perflab.experiment.archive import SUMS, check, extract, write
from perflab.host import Host
from perflab.runs.rundata import open_run
from perflab.runs.rundir import RunDirectory


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    stream = Stream("ping", "t", "pong", 10, 5, arrivals([100, 200, 300, 400, 500]))
    path = make_run(tmp_path / "runs/r", {"a": ["ping", "pong"]}, [MadeTrial([stream]), MadeTrial([stream])])
    return RunDirectory(path, created=False)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


@pytest.mark.parametrize("suffix", [".tar.gz", ".tar.xz"])
def test_there_and_back(run: RunDirectory, tmp_path: Path, suffix: str) -> None:
    (run.path / "trials/0001_baseline/empty").mkdir()
    before = contents(run.path)
    written = write(run, tmp_path / f"a{suffix}")
    assert (written.run, written.files) == ("r", len(before))
    assert written.bytes == sum(map(len, before.values()))
    assert check(tmp_path / f"a{suffix}").files == len(before)
    extract(tmp_path / f"a{suffix}", tmp_path / "back")
    back = contents(tmp_path / "back")
    sums = back.pop(SUMS).decode()
    assert back == before
    assert (tmp_path / "back/trials/0001_baseline/empty").is_dir()
    assert sums.splitlines()[0] == f"{hashlib.sha256(before['manifest.json']).hexdigest()}  manifest.json"
    assert open_run(tmp_path / "back").summary == open_run(run.path).summary
    subprocess.run(["sha256sum", "--check", "--quiet", SUMS], cwd=tmp_path / "back", check=True)


def test_the_same_run_gives_the_same_bytes(run: RunDirectory, tmp_path: Path) -> None:
    write(run, tmp_path / "a.tar.gz")
    (run.path / ".reserve").touch()
    (run.path / ".summary.json.tmp").touch()
    for path in run.path.rglob("*"):
        os.utime(path, (1, 1))
        path.chmod(0o700)
    write(run, tmp_path / "b.tar.gz")
    assert (tmp_path / "a.tar.gz").read_bytes() == (tmp_path / "b.tar.gz").read_bytes()
    (tmp_path / "there").mkdir()
    extract(tmp_path / "a.tar.gz", tmp_path / "there/r")
    write(RunDirectory(tmp_path / "there/r", created=False), tmp_path / "c.tar.gz")
    assert (tmp_path / "a.tar.gz").read_bytes() == (tmp_path / "c.tar.gz").read_bytes()


def test_without_records_the_tables_and_the_summary_remain(run: RunDirectory, tmp_path: Path) -> None:
    write(run, tmp_path / "a.tar.gz", with_records=False)
    extract(tmp_path / "a.tar.gz", tmp_path / "back")
    assert not list((tmp_path / "back").rglob("*.jsonl"))
    back = open_run(tmp_path / "back")
    assert back.summary == open_run(run.path).summary
    assert [trial.edges.height for trial in back.trials] == [1, 1]
    run.summary.unlink()
    with pytest.raises(BadInput, match="in the records"):
        write(run, tmp_path / "b.tar.gz", with_records=False)


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("there.tar.gz", "exists"),
        ("a.zip", "does not end in"),
        ("none/a.tar.gz", "there is no directory"),
        ("runs/r/a.tar.gz", "within the run"),
    ],
)
def test_outputs_that_are_refused(run: RunDirectory, tmp_path: Path, output: str, words: str) -> None:
    (tmp_path / "there.tar.gz").write_text("precious")
    with pytest.raises(BadInput, match=words):
        write(run, tmp_path / output)
    assert (tmp_path / "there.tar.gz").read_text() == "precious"


def test_what_is_no_file_is_not_archived(run: RunDirectory, tmp_path: Path) -> None:
    (run.path / "link").symlink_to("/etc")
    with pytest.raises(BadInput, match="neither a file nor a directory"):
        write(run, tmp_path / "a.tar.gz")
    assert names(tmp_path) == ["runs"]


def test_a_full_disk_leaves_nothing_half(run: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(PerflabError, match=r"cannot write .*a.tar.gz: No space left on device"):
        write(run, tmp_path / "a.tar.gz")
    assert names(tmp_path) == ["runs"]


def test_bytes_that_turn_on_the_disk_are_noticed(
    run: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = archive._write_tar

    def other(*arguments: Any) -> dict[str, str]:
        return {**real(*arguments), "manifest.json": "0" * 64}

    monkeypatch.setattr(archive, "_write_tar", other)
    with pytest.raises(PerflabError, match="read back"):
        write(run, tmp_path / "a.tar.gz")
    assert names(tmp_path) == ["runs"]


def test_an_unfinished_archive_of_somebody_else_stays(run: RunDirectory, tmp_path: Path) -> None:
    (tmp_path / ".a.tar.gz.tmp").write_text("theirs")
    with pytest.raises(BadInput, match="remove it"):
        write(run, tmp_path / "a.tar.gz")
    assert (tmp_path / ".a.tar.gz.tmp").read_text() == "theirs"


Change = Callable[[dict[str, bytes]], None]


def made(path: Path, change: Change, folder: str = "r") -> Path:
    """An archive whose files, sums included, were changed."""
    files = {"manifest.json": b"{}", "x/y": b"1"}
    sums = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in files.items())
    files[SUMS] = sums.encode()
    change(files)
    with tarfile.open(path, "w:gz") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(f"{folder}/{name}" if folder else name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return path


def test_the_made_archive_is_good_without_a_change(tmp_path: Path) -> None:
    assert check(made(tmp_path / "a.tar.gz", lambda files: None)).files == 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda files: files.update({"x/y": b"2"}), "x/y differs from its checksum in SHA256SUMS"),
        (lambda files: files.pop("x/y"), "x/y is missing"),
        (lambda files: files.update(more=b""), "more differs from its checksum"),
        (lambda files: files.pop(SUMS), "lacks SHA256SUMS"),
        (lambda files: files.pop("manifest.json"), "lacks manifest.json"),
        (lambda files: files.update({SUMS: b"nonsense"}), "has the line 'nonsense'"),
    ],
)
def test_what_does_not_agree_is_told_and_not_unpacked(tmp_path: Path, change: Change, words: str) -> None:
    path = made(tmp_path / "a.tar.gz", change)
    with pytest.raises(PerflabError, match=words):
        check(path)
    with pytest.raises(PerflabError, match=words):
        extract(path, tmp_path / "back")
    assert names(tmp_path) == ["a.tar.gz"]


@pytest.mark.parametrize("name", ["../../evil", "x/../../../evil", "/evil", "a//b", "./a", "a\nb"])
def test_names_that_lead_elsewhere_are_refused(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "in/side"
    folder.mkdir(parents=True)
    for prefix in ("r", ""):
        path = made(folder / "a.tar.gz", lambda files: files.update({name: b"evil"}), prefix)
        with pytest.raises(BadInput, match="not an archive of a run"):
            extract(path, folder / "back")
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == ["a.tar.gz"]


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_nothing_but_files_and_folders_is_made(tmp_path: Path, kind: bytes) -> None:
    path = tmp_path / "a.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        member = tarfile.TarInfo("r/x")
        member.type, member.linkname = kind, "/etc/passwd"
        tar.addfile(member)
    with pytest.raises(BadInput, match="not a plain file"):
        extract(path, tmp_path / "back")
    assert names(tmp_path) == ["a.tar.gz"]


def test_files_that_are_no_archives(run: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    whole = tmp_path / "a.tar.gz"
    write(run, whole)
    data = whole.read_bytes()
    for content in (b"", b"text", data[:50], data[: len(data) // 2], data[:-9], bytes(range(256)) * 40):
        whole.write_bytes(content)
        wrong = (
            "damaged: Compressed file ended" if content == data[: len(content)] and content else "neither gzip nor xz"
        )
        with pytest.raises(PerflabError, match=f"a.tar.gz is .*{wrong}"):
            check(whole)
        for folder in (tmp_path / "back", None):
            with pytest.raises(PerflabError, match=f"a.tar.gz is .*{wrong}"):
                extract(whole, folder)
    for path, wrong in (
        (tmp_path / "none.tar.gz", "^no archive .*none.tar.gz$"),
        (tmp_path, "is not a file; name an archive"),
    ):
        with pytest.raises(BadInput, match=wrong):
            check(path)
        with pytest.raises(BadInput, match=wrong):
            extract(path, None)
    assert names(tmp_path) == ["a.tar.gz", "runs"]


def test_an_existing_directory_is_not_unpacked_into(run: RunDirectory, tmp_path: Path) -> None:
    write(run, tmp_path / "a.tar.gz")
    with pytest.raises(BadInput, match="exists"):
        extract(tmp_path / "a.tar.gz", run.path)
    (tmp_path / "empty").mkdir()
    assert extract(tmp_path / "a.tar.gz", tmp_path / "empty").path == str(tmp_path / "empty")


def test_the_command(
    run: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command.archive("r", None, None, None, False, False) == 0
    assert capsys.readouterr().out.startswith("r.tar.gz: run r, ")
    assert command.archive(None, Path("r.tar.gz"), None, None, False, False) == 0
    assert capsys.readouterr().out.endswith("all checksums match\n")
    assert command.archive(None, None, Path("r.tar.gz"), None, False, True) == 0
    assert json.loads(capsys.readouterr().out)["path"] == "r"
    assert (tmp_path / "r/summary.json").is_file()
    for wrong, complaint in (
        ((None, None, None, None, False, False), "choose one action"),
        (("r", Path("r.tar.gz"), None, None, False, False), "choose one action"),
        ((None, Path("r.tar.gz"), None, Path("x"), False, False), "--check writes nothing: leave out --output"),
        ((None, Path("r.tar.gz"), None, None, True, False), "--without-records applies only when an archive"),
    ):
        with pytest.raises(BadInput, match=complaint):
            command.archive(*wrong)


def test_a_run_that_goes_on_is_refused(run: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    manifest = json.loads(run.manifest.read_text())
    start = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    manifest["controller"] = {"pid": os.getpid(), "start_ticks": start, "boot_id": Host().boot_id()}
    run.manifest.write_text(json.dumps(manifest))
    with pytest.raises(BadInput, match="still running"):
        command.archive("r", None, None, None, False, False)
    assert names(tmp_path) == ["runs"]
