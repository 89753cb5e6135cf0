"""DDS Security: the graph runs, what is on the wire cannot be read, and the credentials are gone with the trial."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from perflab.middleware import security

from .conftest import Run

pytestmark = pytest.mark.skipif(shutil.which(security.PROGRAM) is None, reason="openssl is not installed")
ALL_PROTOCOLS = 0x0003  # ETH_P_ALL
ROOM = 8 << 20  # for what comes while this process does not run
ON_THE_WIRE = {"cyclonedds": (), "fastdds": ("--middleware-option", "transport=udp")}  # and not in memory


@contextlib.contextmanager
def overheard(words: bytes) -> Iterator[list[bytes]]:
    """Packets of the loopback interface that have these words."""
    try:
        ear = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_PROTOCOLS))
    except PermissionError:
        pytest.skip("packets cannot be overheard: this takes CAP_NET_RAW")
    found: list[bytes] = []
    ends = threading.Event()

    def listen() -> None:
        while not ends.is_set():
            with contextlib.suppress(TimeoutError):
                if words in (packet := ear.recv(65536)):
                    found.append(packet)

    with ear:
        ear.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, ROOM)
        ear.bind(("lo", 0))
        ear.settimeout(0.05)
        thread = threading.Thread(target=listen)
        thread.start()
        try:
            yield found
        finally:
            ends.set()
            thread.join()


@pytest.mark.parametrize("middleware", ["cyclonedds", "fastdds"])
def test_nobody_else_can_read_it(run: Run, pingpong: Path, tmp_path: Path, middleware: str) -> None:
    topic = f"t{tmp_path.stat().st_ino}x"  # of this test alone
    pingpong.write_text(
        pingpong.read_text().replace("ping,", f"{topic},").replace("publish: ping}", f"publish: {topic}}}")
    )
    for secured in ("off", "on"):
        out = tmp_path / secured
        with overheard(f"rt/{topic}".encode()) as packets:
            option = f"security={secured}"
            done = run("run", pingpong, "--middleware", middleware, "--middleware-option", option,
                       *ON_THE_WIRE[middleware], "-t", "0.3", "--cool-down", "0", "-q", "-o", out)  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert bool(packets) == (secured == "off")
        lines = (out / "trials/0001_baseline/processes/pong.jsonl").read_text().splitlines()
        assert json.loads(lines[-1])["middleware"]["effective"]["security"] is (secured == "on")
    assert not list(out.rglob("*.pem"))
    assert not list(out.rglob("*.p7s"))
    assert json.loads((out / "manifest.json").read_text())["middlewares"][0]["options"]["security"] == "on"
