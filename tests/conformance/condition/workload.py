"""A workload for trials without a DDS graph: a process with threads, and a child with threads, that send UDP messages.

    workload.py [--busy SHARE]

Standard library only, so that it starts fast on a busy machine. Ends with its standard input, or when it is killed.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import signal
import socket
import threading
import time

THREADS = 3
PERIOD_S = 0.02
MESSAGE_BYTES = 1000
PR_SET_PDEATHSIG = 1


def send() -> None:
    """Sends messages to itself over the loopback."""
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.bind(("127.0.0.1", 0))
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    while True:
        sender.sendto(b"x" * MESSAGE_BYTES, receiver.getsockname())
        receiver.recv(MESSAGE_BYTES)
        time.sleep(PERIOD_S)


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--busy", type=float, default=0.0, help="share of a CPU that one thread uses")
    busy: float = arguments.parse_args().busy
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    for _ in range(THREADS - 1):
        threading.Thread(target=send, daemon=True).start()
    while busy:
        end_s = time.thread_time() + busy * PERIOD_S
        while time.thread_time() < end_s:
            pass
        time.sleep((1 - busy) * PERIOD_S)
    threading.Event().wait()


if __name__ == "__main__":
    main()
