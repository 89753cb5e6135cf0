"""What several tests need: small graphs, records as a node writes them, and where things are."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from perflab.cli import main
from perflab.middleware.plugin_program import ABI
from perflab.report.figures import Figure
from perflab.report.pictures import Pictures
from perflab.statistics import histogram as hg
from tests.said import without_waits

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent.parent


def as_they_are(figures: Sequence[Figure]) -> Pictures:
    """Pictures of a page that stay whole."""
    return Pictures(tuple(("course", figure) for figure in figures), ())


def unpacked(text: str) -> str:
    """What is packed in a page (draw_html.packed)."""
    data = base64.b64decode(text)
    found = zlib.decompress(data[4:], -15)
    assert len(found) == int.from_bytes(data[:4], "little")
    return found.decode()


def graph(processes: dict[str, list[dict[str, Any]]], name: str = "small") -> dict[str, Any]:
    """A resolved graph of processes with nodes made by `node`."""
    return {
        "schema": 1,
        "name": name,
        "processes": [
            {"name": process, "executors": [{"id": 0, "kind": "single_threaded"}], "nodes": nodes}
            for process, nodes in processes.items()
        ],
    }


def node(
    name: str,
    publishes: dict[str, int] | None = None,
    subscribes: list[str] | None = None,
    *,
    asks: dict[str, int] | None = None,
    serves: list[str] | None = None,
) -> dict[str, Any]:
    """A node that publishes topics with periods in ms and subscribes to topics; likewise with services."""
    publishes, asks = publishes or {}, asks or {}
    return {
        "name": name,
        "namespace": "/",
        "executor": 0,
        "publishers": [
            {
                "topic": t,
                "type": "stamped_int64",
                "size_bytes": 8,
                "frequency_hz": 1000 / ms,
                "pass_by": None,
                "qos": {},
            }
            for t, ms in publishes.items()
        ],
        "subscriptions": [{"topic": t, "type": "stamped_int64", "pass_by": None, "qos": {}} for t in subscribes or []],
        "clients": [
            {"service": s, "type": "stamped10b", "frequency_hz": 1000 / ms, "qos": {}} for s, ms in asks.items()
        ],
        "servers": [{"service": s, "type": "stamped10b", "qos": {}, "work_ns": 0} for s in serves or []],
        "timers": [
            *(timer(t, ms, publish=[i]) for i, (t, ms) in enumerate(publishes.items())),
            *(timer(s, ms, request=[i]) for i, (s, ms) in enumerate(asks.items())),
        ],
        "reactions": [],
    }


def timer(
    name: str, period_ms: int, publish: list[int] | None = None, request: list[int] | None = None
) -> dict[str, Any]:
    return {
        "name": name,
        "period_ns": period_ms * 1_000_000,
        "publish": publish or [],
        "request": request or [],
        "work_ns": 0,
        "overrun": "catch_up",
    }


def two_processes() -> dict[str, Any]:
    """ping sends /ping every 10 ms to two nodes of pong, pong sends /pong every 20 ms to ping."""
    return graph(
        {
            "ping": [node("ping", {"/ping": 10}, ["/pong"])],
            "pong": [node("pong", {"/pong": 20}, ["/ping"]), node("listener", {}, ["/ping"])],
        }
    )


def publisher(sent: int, first: int | None = 0, node: str = "/a", topic: str = "/t") -> dict[str, Any]:
    return {
        "node": node,
        "topic": topic,
        "sent": sent,
        "not_sent": 0,
        "write_errors": 0,
        "warmup_sent": 0,
        "first_sequence": first if sent else None,
        "publish_delay": hg.to_record(hg.from_values(range(sent))),
        "publish_call": None,
    }


def edge(
    received: int, first: int | None = None, highest: int | None = None, gap: int = 0, **more: Any
) -> dict[str, Any]:
    h = hg.to_record(hg.from_values(range(received)))
    return {
        "publisher": "/a",
        "topic": "/t",
        "subscription": "/b",
        "size_bytes": 8,
        "frequency_hz": 100.0,
        "received": received,
        "first_sequence": first,
        "highest_sequence": highest,
        "gap": gap,
        "reordered": 0,
        "duplicate": 0,
        "beyond_window": 0,
        "warmup_received": 0,
        "on_time": received,
        "late": 0,
        "too_late": 0,
        "latency": h,
        "response": h,
        "dispatch": None,
        "work": None,
        **more,
    }


def service(requests: dict[str, Any], replies: dict[str, Any], client: str = "/a") -> dict[str, Any]:
    """The record of a service, of those of a publisher and an edge."""
    names = ("node", "topic", "publisher", "subscription")
    return {
        "client": client,
        "service": "/add",
        "server": "/s",
        "requests": {key: value for key, value in requests.items() if key not in names},
        "replies": {key: value for key, value in replies.items() if key not in names},
    }


def checkpoint(
    publishers: list[dict[str, Any]] | None = None,
    edges: list[dict[str, Any]] | None = None,
    services: list[dict[str, Any]] | None = None,
    *,
    final: bool = True,
) -> dict[str, Any]:
    return {
        "final": final,
        "publishers": publishers or [],
        "edges": edges or [],
        "services": services or [],
        "foreign_messages": 0,
        "malformed_messages": 0,
    }


def build_plugin(
    target: Path, name: str, across_processes: str = "true", abi: int = ABI, linked: Sequence[str] = ()
) -> None:
    compiler = shutil.which("cc") or pytest.skip("no C compiler `cc` to build the plug-in double with")
    defines = [f'-DFAKE_NAME="{name}"', f"-DFAKE_ACROSS_PROCESSES={across_processes}", f"-DFAKE_ABI={abi}"]
    source = [str(HERE / "fake_plugin.c"), "-I", str(SOURCE / "native")]
    subprocess.run([compiler, "-shared", "-fPIC", *defines, "-o", str(target), *source, *linked], check=True)


def run_here(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """`perflab ARGUMENTS...` within this process, with that folder and environment and with files as its streams.

    Starting a process and importing perflab take longer than most commands. What the command's own children print is
    not part of the answer.
    """
    with (
        pytest.MonkeyPatch.context() as patch,
        Path(os.devnull).open() as stdin,
        tempfile.TemporaryFile("w+", encoding="utf-8") as stdout,
        tempfile.TemporaryFile("w+", encoding="utf-8") as stderr,
    ):
        for name in os.environ.keys() - environment.keys():
            patch.delenv(name)
        for name, value in environment.items():
            patch.setenv(name, value)
        patch.chdir(folder)
        patch.setattr(tempfile, "tempdir", None)  # TMPDIR is looked at once otherwise
        for name, given in (
            ("argv", ["perflab", *arguments]),
            ("stdin", stdin),
            ("stdout", stdout),
            ("stderr", stderr),
        ):
            patch.setattr(sys, name, given)
        status = main(arguments)
        for stream in (stdout, stderr):
            stream.seek(0)
        said = without_waits(stderr.read())
        return subprocess.CompletedProcess(["perflab", *arguments], status, stdout.read(), said)
