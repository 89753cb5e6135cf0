"""A run as one file: the same run gives the same bytes, every file in it has its checksum, and reading it back verifies
it.

The archive is a tar of one folder with the run's name, with its files in order, without owners, and with the time at
which the run began; `SHA256SUMS` comes last, in the format of sha256sum.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import lzma
import os
import shutil
import stat
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO, cast

from perflab.errors import BadInput, PerflabError
from perflab.results.files import Manifest
from perflab.runs.rundir import MANIFEST, RESERVE, SUMMARY, RunDirectory

SUMS = "SHA256SUMS"
SUFFIXES = (".tar.gz", ".tar.xz")
CHUNK = 1 << 20
MAX_SUMS_BYTES = 64 << 20

_DAMAGED = (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile, UnicodeError)


@dataclass(frozen=True)
class Archive:
    """An archive, written or read: the run's name, its files, their bytes."""

    path: str
    run: str
    sums: Mapping[str, str]  # as computed, by path below the run
    bytes: int

    @property
    def files(self) -> int:
        return len(self.sums)

    def document(self) -> dict[str, Any]:
        return {"path": self.path, "run": self.run, "files": self.files, "bytes": self.bytes}


def write(run: RunDirectory, output: Path, *, with_records: bool = True) -> Archive:
    """Writes the archive and reads it back. Raises BadInput, and PerflabError, leaving nothing behind.

    The caller makes sure that the run is not in progress.
    """
    _check_output(run, output)
    if not with_records and not run.summary.is_file():
        raise BadInput(f"{run.path} has no {SUMMARY}: its numbers are only in the records, which must not be left out")
    begun = _begun(run.read_manifest())
    name = run.path.resolve().name
    try:
        files = _files(run.path, with_records)
        with _temporary(output) as (temporary, raw):
            with _compressed(raw, output.name) as packed:
                sums = _write_tar(packed, run.path, name, files, begun)
            raw.flush()
            os.fsync(raw.fileno())
            read = _read(temporary, output.name)
            if read.sums != sums:
                raise PerflabError(f"{output} differs from {run.path} when it is read back; check the disk")
            _publish(temporary, output)
    except OSError as error:
        raise PerflabError(f"cannot write {output}: {error.strerror or error}") from error
    return replace(read, path=str(output))


def check(path: Path) -> Archive:
    """Reads a whole archive and verifies every checksum. Raises BadInput for a file that is not an archive,
    PerflabError for a damaged one."""
    return _read(path, str(path))


def extract(path: Path, output: Path | None) -> Archive:
    """Unpacks an archive into the run directory `output`, by default one with the run's name; completely or not at all.

    Raises BadInput and PerflabError. Creates only plain files and folders below the run.
    """
    folder = output if output is not None else Path(_run_name(path))
    if folder.is_symlink() or (folder.exists() and not (folder.is_dir() and not any(folder.iterdir()))):
        raise BadInput(f"{folder} exists; name a new directory with --output")
    temporary = folder.absolute().with_name(f".{folder.absolute().name}.tmp")
    try:
        temporary.parent.mkdir(parents=True, exist_ok=True)
        temporary.mkdir()
    except FileExistsError as error:
        raise BadInput(f"{temporary} exists, from an unfinished unpacking; remove it") from error
    except OSError as error:
        raise BadInput(f"cannot make {folder}: {error.strerror}") from error
    try:
        read = _read(path, str(path), temporary)
        temporary.replace(folder)
    except OSError as error:
        raise PerflabError(f"cannot write {folder}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return replace(read, path=str(folder))


# -- writing ---------------------------------------------------------------------------------------------------------


def _check_output(run: RunDirectory, output: Path) -> None:
    if not output.name.endswith(SUFFIXES):
        raise BadInput(f"--output {output} does not end in {' or '.join(SUFFIXES)}")
    if output.exists() or output.is_symlink():
        raise BadInput(f"{output} exists; name another with --output")
    if not output.absolute().parent.is_dir():
        raise BadInput(f"--output {output}: there is no directory {output.parent}")
    if output.absolute().resolve().is_relative_to(run.path.resolve()):
        raise BadInput(f"--output {output} is within the run itself; name another place")


def _begun(manifest: Manifest) -> int:
    """When the run began, in seconds since 1970; 0 if the manifest does not say."""
    try:
        return int(datetime.fromisoformat(str(manifest.created_utc)).timestamp())
    except ValueError:
        return 0


def _files(root: Path, with_records: bool) -> list[PurePosixPath]:
    """Files and folders below a run, folders before their content. Raises BadInput for what cannot be archived."""
    found: list[PurePosixPath] = []
    for folder, folders, files in os.walk(root, onerror=_raise):
        folders.sort()
        here = Path(folder)
        for name in (*folders, *files):
            path = here / name
            relative = PurePosixPath(path.relative_to(root).as_posix())
            if str(relative) in (SUMS, RESERVE) or (name.startswith(".") and name.endswith(".tmp")):
                continue
            if relative.parent.name == "processes" and relative.suffix == ".jsonl" and not with_records:
                continue
            mode = path.lstat().st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                raise BadInput(f"{path} is neither a file nor a directory; remove it from the run first")
            if not name.isprintable():
                raise BadInput(f"{str(path)!r} has an unprintable name; rename it first")
            found.append(relative)
    return sorted(found)


def _raise(error: OSError) -> None:
    raise error


@contextlib.contextmanager
def _temporary(output: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """A new file beside the output, which is removed at the end in any case."""
    temporary = output.with_name(f".{output.name}.tmp")
    try:
        raw = temporary.open("xb")
    except FileExistsError:
        raise BadInput(f"{temporary} exists, from an unfinished archive; remove it") from None
    try:
        with raw:
            yield temporary, raw
    finally:
        temporary.unlink(missing_ok=True)


def _publish(temporary: Path, output: Path) -> None:
    """Gives the file its name, unless another file has taken it meanwhile."""
    try:
        os.link(temporary, output)
    except FileExistsError:
        raise BadInput(f"{output} exists; name another with --output") from None
    except OSError:  # a file system without links
        temporary.replace(output)
    descriptor = os.open(output.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _compressed(raw: BinaryIO, name: str) -> Iterator[BinaryIO]:
    """Without the name and the time that gzip would store."""
    if name.endswith(".xz"):
        with lzma.LZMAFile(raw, "wb", preset=6) as packed:
            yield cast(BinaryIO, packed)
    else:
        with gzip.GzipFile(filename="", mode="wb", fileobj=raw, compresslevel=6, mtime=0) as zipped:
            yield cast(BinaryIO, zipped)


def _write_tar(packed: BinaryIO, root: Path, name: str, paths: list[PurePosixPath], begun: int) -> dict[str, str]:
    """Writes all files and their checksums; returns the checksums by path below the run."""
    sums: dict[str, str] = {}
    with tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(_member(name, begun, folder=True))
        for path in paths:
            source = root / path
            member = _member(f"{name}/{path}", begun, folder=source.is_dir())
            if member.isdir():
                tar.addfile(member)
                continue
            with source.open("rb") as file:
                member.size = os.fstat(file.fileno()).st_size
                sums[str(path)] = hashlib.file_digest(file, "sha256").hexdigest()
                file.seek(0)
                tar.addfile(member, file)
        text = "".join(f"{digest}  {path}\n" for path, digest in sums.items()).encode()
        member = _member(f"{name}/{SUMS}", begun)
        member.size = len(text)
        tar.addfile(member, io.BytesIO(text))
    return sums


def _member(name: str, begun: int, *, folder: bool = False) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type = tarfile.DIRTYPE if folder else tarfile.REGTYPE
    member.mode = 0o755 if folder else 0o644
    member.mtime = begun
    return member


# -- reading ---------------------------------------------------------------------------------------------------------


def _run_name(path: Path) -> str:
    """The folder in an archive. Raises BadInput."""
    with _damage_told(str(path)), _unpacked(path) as packed, tarfile.open(fileobj=packed, mode="r|") as tar:
        first = tar.next()
        if first is None:
            raise BadInput(f"{path} is not an archive of a run: it is empty")
        return _parts(first, str(path))[0]


@contextlib.contextmanager
def _unpacked(path: Path) -> Iterator[IO[bytes]]:
    """The tar in an archive. Raises BadInput; ReadError for an unknown compression."""
    if not path.is_file():
        raise BadInput(f"no archive {path}" if not path.exists() else f"{path} is not a file; name an archive")
    try:
        with path.open("rb") as file:
            magic = file.read(6)
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error
    if magic.startswith(b"\x1f\x8b"):
        with gzip.open(path, "rb") as zipped:
            yield cast(IO[bytes], zipped)
    elif magic == b"\xfd7zXZ\0":
        with lzma.open(path, "rb") as packed:
            yield cast(IO[bytes], packed)
    else:
        raise tarfile.ReadError("neither gzip nor xz")


@contextlib.contextmanager
def _damage_told(name: str) -> Iterator[None]:
    try:
        yield
    except tarfile.ReadError as error:
        raise BadInput(f"{name} is not an archive of a run, or damaged: {error}") from error
    except _DAMAGED as error:
        raise PerflabError(f"{name} is damaged: {error}") from error


def _read(path: Path, name: str, target: Path | None = None) -> Archive:
    """Reads everything, verifies all checksums, and writes the files below `target` if there is one.

    Raises BadInput, PerflabError; OSError if `target` cannot be written.
    """
    sums: dict[str, str] = {}
    listed: dict[str, str] | None = None
    run: str | None = None
    size = 0
    with _damage_told(name), _unpacked(path) as packed, tarfile.open(fileobj=packed, mode="r|") as tar:
        for member in tar:
            parts = _parts(member, name)
            run = run or parts[0]
            inside = "/".join(parts[1:])
            if parts[0] != run or inside in sums or (listed is not None and inside == SUMS):
                raise BadInput(f"{name} is not an archive of a run: {member.name!r} does not belong there")
            if member.isdir():
                if target is not None:
                    (target / inside).mkdir(parents=True, exist_ok=True)
                continue
            file = tar.extractfile(member)
            assert file is not None
            if inside == SUMS:
                listed = _sums(file.read(MAX_SUMS_BYTES), name)
                if target is not None:
                    (target / SUMS).write_text("".join(f"{d}  {p}\n" for p, d in listed.items()), encoding="utf-8")
                continue
            sums[inside] = _copy(file, None if target is None else target / inside)
            size += member.size
        while packed.read(CHUNK):  # only its end shows whether the compressed file is complete
            pass
    if run is None or listed is None or MANIFEST not in sums:
        raise BadInput(f"{name} is not an archive of a run: it lacks {SUMS if listed is None else MANIFEST}")
    for path_ in sorted(set(sums) | set(listed)):
        if path_ not in sums:
            raise PerflabError(f"{name} is damaged: {path_} is missing")
        if sums[path_] != listed.get(path_):
            raise PerflabError(f"{name} is damaged: {path_} differs from its checksum in {SUMS}")
    return Archive(name, run, sums, size)


def _parts(member: tarfile.TarInfo, name: str) -> tuple[str, ...]:
    """The components of a member's name. Raises BadInput for a path that could leave the run."""
    parts = tuple(member.name.split("/"))
    plain = member.isreg() or member.isdir()
    if not plain or any(part in ("", ".", "..") or not part.isprintable() for part in parts):
        raise BadInput(f"{name} is not an archive of a run: {member.name!r} is not a plain file below it")
    if member.isreg() and len(parts) < 2:
        raise BadInput(f"{name} is not an archive of a run: {member.name!r} is not in a folder")
    return parts


def _copy(source: IO[bytes], target: Path | None) -> str:
    """Reads a member to its end, into a new file if one is named; returns its checksum."""
    digest = hashlib.sha256()
    with contextlib.ExitStack() as stack:
        file = None
        if target is not None:
            target.parent.mkdir(parents=True, exist_ok=True)
            file = stack.enter_context(target.open("xb"))
        while data := source.read(CHUNK):
            digest.update(data)
            if file is not None:
                file.write(data)
    return digest.hexdigest()


def _sums(text: bytes, name: str) -> dict[str, str]:
    listed: dict[str, str] = {}
    for line in text.decode("utf-8", errors="replace").splitlines():
        digest, gap, path = line.partition("  ")
        if not gap or len(digest) != 64 or path in listed:
            raise BadInput(f"{name} is not an archive of a run: {SUMS} has the line {line[:80]!r}")
        listed[path] = digest
    return listed
