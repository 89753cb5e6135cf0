"""Runs a graph on perflab-node as any other system would run: until SIGINT, knowing nothing of perflab.

graph_alone.py PERFLAB_NODE CONFIGURATION: the configuration of one process (docs/formats.md, section 2), whose graph,
runtime and middleware are those of all of them; programs lie beside perflab-node, and what is outside is left to
others. Domain and folder are those that a trial gives a command.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, Any

stopping = False


def stop(*_: object) -> None:
    global stopping  # noqa: PLW0603 - set by a signal
    stopping = True


def hear(channel: IO[str], kind: str) -> dict[str, Any]:
    while True:
        line: dict[str, Any] = json.loads(channel.readline())
        if line["type"] == "error":
            sys.exit(line["text"])
        if line["type"] == kind:
            return line


def main() -> int:
    signal.signal(signal.SIGINT, stop)
    node, template = sys.argv[1], json.loads(Path(sys.argv[2]).read_text())
    folder = Path(os.environ["PERFLAB_TRIAL"]) / "own"
    folder.mkdir()
    schedule = os.memfd_create("perflab_schedule")
    running: list[tuple[subprocess.Popen[bytes], IO[str]]] = []
    for process in template["graph"]["processes"]:
        name, program = process["name"], process.get("program") or Path(node).name
        if program == "outside":
            continue
        middleware = {**template["middleware"], "domain": int(os.environ["ROS_DOMAIN_ID"])}
        own = {"process": name, "records": str(folder / f"{name}.jsonl"), "schedule_fd": schedule}
        config = folder / f"{name}.config.json"
        config.write_text(json.dumps({**template, **own, "middleware": middleware}))
        ours, theirs = socket.socketpair()
        command = [str(Path(node).parent / program), "--config", str(config), "--control-fd", str(theirs.fileno())]
        popen = subprocess.Popen(command, pass_fds=[theirs.fileno(), schedule], start_new_session=True)
        running.append((popen, ours.makefile("rw", encoding="utf-8")))
        theirs.close()

    def tell(body: dict[str, Any]) -> None:
        for _, channel in running:
            channel.write(json.dumps(body) + "\n")
            channel.flush()

    writers = [writer for _, channel in running for writer in hear(channel, "created")["writers"]]
    for _, channel in running:
        hear(channel, "ready")
    tell({"type": "start", "at_ns": time.monotonic_ns() + 1_000_000_000, "writers": writers})
    time.sleep(1.1)
    print("the graph runs", flush=True)
    while not stopping:
        time.sleep(0.02)
    tell({"type": "stop"})
    return max(abs(process.wait()) for process, _ in running)


if __name__ == "__main__":
    sys.exit(main())
