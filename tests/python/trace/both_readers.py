"""The two readers that are set beside each other: ctf_dump, over perflab's library, and babeltrace2."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
SYSTEM_PYTHON = "/usr/bin/python3"  # has the bindings: they are no package of a registry
TIMEOUT_S = 250

Streams = dict[str, list[str]]  # by the name of the stream's file

_OURS = re.compile(
    r'(\{"time_ns":[^,]+,"epoch_ns":[^,]+),"trace":"[^"]*","stream":("[^"]*"),"instance":[^,]+,"cpu":[^,]+(,.*)'
)


@dataclass(frozen=True)
class Dump:
    streams: Streams
    end: dict[str, Any]  # ctf_dump: number of events and ledger


@functools.cache
def _bt2_is_there() -> bool:
    try:
        return subprocess.run([SYSTEM_PYTHON, "-c", "import bt2"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def need_babeltrace2() -> None:
    if not _bt2_is_there():
        pytest.skip("babeltrace2's Python bindings are not installed (package python3-bt2)")


def ctf_dump_program() -> Path:
    program = Path(os.environ.get("PERFLAB_TEST_TOOLS", "")) / "ctf_dump"
    if not program.is_file():
        pytest.skip("no ctf_dump in PERFLAB_TEST_TOOLS; build it with `make test`")
    return program


def run_ctf_dump(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ctf_dump_program(), *arguments], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )


def ours(*folders: Path, threads: int = 1) -> Dump:
    """What ctf_dump reads, without what babeltrace2 does not tell. Its order by time is checked on the way."""
    done = run_ctf_dump("--no-headers", "--threads", str(threads), *folders)
    assert done.returncode == 0, done.stderr
    streams: Streams = defaultdict(list)
    lines = done.stdout.splitlines()
    for line in lines[:-1]:
        match = _OURS.fullmatch(line)
        assert match, line
        streams[json.loads(match[2])].append(match[1] + match[3])
    end = json.loads(lines[-1])
    assert end["events"] == len(lines) - 1
    return Dump(dict(streams), end)


def babeltrace2(jobs: Sequence[Sequence[Path]], scratch: Path) -> list[Streams]:
    """What babeltrace2 reads in each of these traces (of each the folders of all chunks). Fails where it gives up."""
    need_babeltrace2()
    outputs = [scratch / f"babeltrace2_{i}" for i in range(len(jobs))]
    lines = [
        json.dumps({"inputs": [str(f) for f in job], "output": str(o)}) for job, o in zip(jobs, outputs, strict=True)
    ]
    done = subprocess.run(
        [SYSTEM_PYTHON, HERE / "babeltrace2_dump.py"], input="\n".join(lines), capture_output=True, text=True,
        timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    results = []
    for output in outputs:
        streams: Streams = defaultdict(list)
        with output.open() as file:
            for line in file:
                key, tab, event = line.rstrip("\n").partition("\t")
                assert tab, f"babeltrace2: {line}"
                streams[key].append(event)
        output.unlink()
        results.append(dict(streams))
    return results


def assert_same(mine: Streams, theirs: Streams, what: str) -> int:
    """Event by event and field by field. Returns the number of events."""
    assert {k: len(v) for k, v in mine.items()} == {k: len(v) for k, v in theirs.items()}, what
    for stream, events in mine.items():
        if events == theirs[stream]:
            continue
        for i, (a, b) in enumerate(zip(events, theirs[stream], strict=True)):
            assert json.loads(a) == json.loads(b), f"{what}, {stream}, event {i}"
            assert a == b, f"{what}, {stream}, event {i}"
    return sum(map(len, mine.values()))
