"""Recorded traces, which are not part of the repository: where they are, unpacked once per session.

The folder with the archives is named by PERFLAB_REFERENCE_TRACES; without it, it is ../shared/traces beside the
repository."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
FOLDER = Path(os.environ.get("PERFLAB_REFERENCE_TRACES") or ROOT.parent / "shared" / "traces")

# Those that hold good traces; babeltrace_ctf_traces holds bad ones too.
RECORDED = (
    "ros2_fastrtps_humble_fork",
    "caret_end_to_end_sample",
    "jazzy_small",
    "jazzy_small_ipc",
    "kernel_16_cores_rt",
    "lttng_ust_plus_perf",
)


def unpack(archive: Path, folder: Path) -> None:
    """All of an archive of this repository; the filter came to Python 3.11 only with its fourth correction."""
    safe: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    with tarfile.open(archive) as tar:
        tar.extractall(folder, **safe)


@functools.cache
def _unpacked(archive: Path) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="perflab-traces-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    unpack(archive, folder)
    return folder


def reference_trace(name: str) -> Path:
    """The unpacked trace; skips the test where it is absent."""
    archive = FOLDER / f"{name}.tar.xz"
    if not archive.is_file():
        pytest.skip(f"no {archive.name} in {FOLDER}; PERFLAB_REFERENCE_TRACES names the folder with recorded traces")
    return _unpacked(archive)


def trace_folders(folder: Path) -> list[Path]:
    """Every folder with a metadata file, in the order of their names."""
    return sorted(m.parent for m in folder.rglob("metadata"))
