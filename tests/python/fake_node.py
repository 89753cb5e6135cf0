"""A test double of perflab-node: speaks docs/formats.md without sending a message.

What a publisher has sent and a subscription received follows from the clock alone, with a latency of exactly
100 µs; a reply takes 200 µs. It cannot lend messages, and with `--check` it says so. With the middleware option
`segment=on` it makes a file in /dev/shm, and takes it away if it ends by itself. The middleware option
`fake=WHAT` or `fake=WHAT:PROCESS` makes the process misbehave:

    die          killed by SIGKILL in the middle          abort         dies with a last word on stderr
    exit         exits with 5 in the middle               hang          falls silent after the start
    linger       ignores `stop`                           truncated     dies within a line of its records
    disk_full    reports a full disk                      unmatched     discovery fails
    bad_option   refuses its configuration                unsupported   cannot do what was asked
    failed       says that it failed                      garbage       breaks the protocol
    tail         the last 3 messages never arrive         gap           message 5 never arrives
    late_start   the first 2 messages never arrive        contradiction counts that do not add up
    child        leaves a child process behind            endless       never stops publishing
    slow_create  never creates its endpoints              never_ready   never finishes discovery
    no_final     ends without a final checkpoint          unanswered  the last 3 requests get no reply
    no_services  records no services                      miscounted  replies that do not add up
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import one_value

LATENCY_NS = 100_000
ROUND_TRIP_NS = 200_000
SHARED_MEMORY = Path("/dev/shm")
NO_LOANS = "pass_by loaned: the double cannot lend messages"
PROGRESS_S = 0.1
DRAIN_PROGRESS_S = 0.02


class FakeNode:
    def __init__(self, config: dict[str, Any], control: socket.socket) -> None:
        self.config = config
        self.control = control
        self.buffer = b""
        what, _, process = config["middleware"]["options"].get("fake", "").partition(":")
        self.fault = what if process in ("", config["process"]) else ""
        self.records = Path(config["records"]).open("ab", buffering=0)  # noqa: SIM115 - open for the process's life
        self.at_ns = 0
        self.last_checkpoint = 0.0
        self.shared_memory = f"perflab_double_{os.getpid()}"

    # -- the graph ---------------------------------------------------------------------------------------------------

    def nodes(self, every: bool) -> list[tuple[str, dict[str, Any]]]:
        mine = self.config["process"]
        return [
            (f"{node['namespace'].rstrip('/')}/{node['name']}", node)
            for process in self.config["graph"]["processes"]
            if every or mine is None or process["name"] == mine
            for node in process["nodes"]
        ]

    def publishers(self, every: bool) -> list[tuple[str, str, int, dict[str, Any]]]:
        found = []
        for name, node in self.nodes(every):
            for index, publisher in enumerate(node["publishers"]):
                periods = [t["period_ns"] for t in node["timers"] if index in t["publish"]]
                found.append((name, publisher["topic"], periods[0] if periods else 0, publisher))
        return found

    def clients(self) -> list[tuple[str, str, int]]:
        """Node, service and period of those in this process."""
        return [
            (name, client["service"], timer["period_ns"])
            for name, node in self.nodes(every=False)
            for index, client in enumerate(node.get("clients", ()))
            for timer in node["timers"]
            if index in timer.get("request", ())
        ]

    def sent(self, period_ns: int) -> int:
        if not period_ns:
            return 0
        return max(0, min(self.elapsed_ns(), int(self.config["duration_ns"])) // period_ns)

    def warmup_ticks(self, period_ns: int) -> int:
        return int(self.config["warmup_ns"]) // period_ns if period_ns else 0

    def elapsed_ns(self) -> int:
        """Of the measured part."""
        return time.monotonic_ns() - self.at_ns - int(self.config["warmup_ns"])

    def publishing(self) -> bool:
        return self.fault == "endless" or self.elapsed_ns() < self.config["duration_ns"]

    def edges(self) -> list[dict[str, Any]]:
        edges = []
        for publisher, topic, period_ns, about in self.publishers(every=True):
            sent = self.sent(period_ns)
            missing_first = min(sent, 2) if self.fault == "late_start" else 0
            missing_last = min(sent, 3) if self.fault == "tail" else 0
            gap = 1 if self.fault == "gap" and sent > 5 else 0
            for subscriber, node in self.nodes(every=False):
                for subscription in node["subscriptions"]:
                    if subscription["topic"] == topic:
                        ends = {"publisher": publisher, "topic": topic, "subscription": subscriber}
                        size = {"size_bytes": about["size_bytes"], "frequency_hz": about["frequency_hz"]}
                        counts = self.counts(period_ns, sent, missing_first, missing_last, gap, LATENCY_NS)
                        if self.fault == "contradiction":
                            counts["received"] -= 1
                        edges.append({**ends, **size, **counts})
        return edges

    def counts(
        self, period_ns: int, sent: int, missing_first: int, missing_last: int, gap: int, latency_ns: int
    ) -> dict[str, Any]:
        """What an edge says of its messages."""
        first = self.warmup_ticks(period_ns)
        received = sent - missing_first - missing_last - gap
        latency = one_value.record(latency_ns, received, self.at_ns + period_ns)
        return {
            "received": received,
            "first_sequence": first + missing_first if received else None,
            "highest_sequence": first + sent - missing_last - 1 if received else None,
            "gap": gap,
            "reordered": 0,
            "duplicate": 0,
            "beyond_window": 0,
            "warmup_received": first,
            "on_time": received,
            "late": 0,
            "too_late": 0,
            "latency": latency,
            "response": latency,
            "dispatch": None,
            "work": None,
        }

    def sending(self, period_ns: int) -> dict[str, Any]:
        """What a publisher says of its messages."""
        sent = self.sent(period_ns)
        delay = one_value.record(1000, sent)
        return {
            "sent": sent,
            "not_sent": 0,
            "write_errors": 0,
            "warmup_sent": self.warmup_ticks(period_ns),
            "first_sequence": self.warmup_ticks(period_ns) if sent else None,
            "publish_delay": delay,
            "publish_call": delay,
        }

    def services(self) -> list[dict[str, Any]]:
        servers = {s["service"]: name for name, node in self.nodes(every=True) for s in node.get("servers", ())}
        services = []
        for client, service, period_ns in self.clients() if self.fault != "no_services" else ():
            sent = self.sent(period_ns)
            missing = min(sent, 3) if self.fault == "unanswered" else 0
            replies = self.counts(period_ns, sent, 0, missing, 0, ROUND_TRIP_NS)
            if self.fault == "miscounted":
                replies["received"] -= 1
            services.append(
                {
                    "client": client,
                    "service": service,
                    "server": servers[service],
                    "requests": self.sending(period_ns),
                    "replies": {"size_bytes": 10, "frequency_hz": 1e9 / period_ns, **replies},
                }
            )
        return services

    # -- records -----------------------------------------------------------------------------------------------------

    def write(self, record: dict[str, Any]) -> None:
        self.records.write(json.dumps(record).encode() + b"\n")

    def checkpoint(self, final: bool) -> None:
        publishers = [
            {"node": node, "topic": topic, **self.sending(period_ns)}
            for node, topic, period_ns, _ in self.publishers(every=False)
        ]
        now = time.monotonic_ns()
        self.write(
            {
                "type": "checkpoint",
                "at_ns": now,
                "final": final,
                "publishers": publishers,
                "edges": self.edges(),
                "services": self.services(),
                "foreign_messages": 0,
                "malformed_messages": 0,
            }
        )
        self.last_checkpoint = time.monotonic()

    def threads(self, when: str) -> None:
        def state(tid: int, name: str, role: str, asked: dict[str, Any] | None) -> dict[str, Any]:
            return {
                "tid": tid,
                "name": name,
                "role": role,
                "asked": asked,
                "policy": (asked or {}).get("policy") or "OTHER",
                "priority": (asked or {}).get("priority") or 0,
                "nice": 0,
                "cpus": (asked or {}).get("cpus") or [0, 1],
            }

        asked, pid = self.config["threads"], os.getpid()
        threads = [
            state(pid, "fake", "executor", asked["executors"]),
            *(state(pid + n, "recv", "middleware", asked["middleware"]) for n in (1, 2)),
            state(pid + 3, "sampler", "perflab", None),
        ]
        self.write(
            {
                "type": "threads",
                "at_ns": 1,
                "when": when,
                "locked_memory_kb": 0,
                "threads": threads[: 3 if when == "start" else 4],
            }
        )

    def passing(self) -> None:
        mine = [s["topic"] for _, node in self.nodes(every=False) for s in node["subscriptions"]]
        everybody = [s["topic"] for _, node in self.nodes(every=True) for s in node["subscriptions"]]
        publishers = []
        for name, topic, _, about in self.publishers(every=False):
            direct = mine.count(topic) if self.config["intra_process"] else 0
            publishers.append(
                {
                    "node": name,
                    "topic": topic,
                    "asked": self.config["pass_by"] or about["pass_by"],
                    "intra_process": direct,
                    "copies": 1 if direct else 0,
                    "middleware": everybody.count(topic) - direct,
                    "loaned": False,
                }
            )
        self.write({"type": "passing", "at_ns": 1, "publishers": publishers})

    def sample(self) -> None:
        self.write(
            {
                "type": "resources", "at_ns": time.monotonic_ns(), "interval_ns": 100_000_000,
                "cpu_ns": 1, "cpu_interval_ns": 25_000_000,
                "rss_kb": 1000, "rss_peak_kb": 2048, "vsz_kb": 1, "arena_kb": 1, "in_use_kb": 1, "mmap_kb": 1,
                "voluntary_switches": 1, "involuntary_switches": 1, "run_delay_ns": 1,
                "threads": [{"tid": os.getpid(), "name": "fake", "cpu_ns": 1, "cpu_interval_ns": 1, "run_delay_ns": 1,
                             "voluntary_switches": 1, "involuntary_switches": 1, "cpu": 0}],
            }
        )  # fmt: skip

    # -- control -----------------------------------------------------------------------------------------------------

    def send(self, body: dict[str, Any]) -> None:
        self.control.sendall(json.dumps(body).encode() + b"\n")

    def receive(self, timeout_s: float) -> dict[str, Any] | None:
        if b"\n" not in self.buffer:
            if not select.select([self.control], [], [], timeout_s)[0]:
                return None
            chunk = self.control.recv(1 << 16)
            if not chunk:
                sys.exit(0)
            self.buffer += chunk
        line, newline, rest = self.buffer.partition(b"\n")
        if not newline:
            return None
        self.buffer = rest
        return dict(json.loads(line))

    def progress(self) -> None:
        subscriptions = [s["topic"] for _, node in self.nodes(every=True) for s in node["subscriptions"]]
        sent = [(topic, self.sent(period_ns)) for _, topic, period_ns, _ in self.publishers(every=False)]
        edges, services = self.edges(), self.services()
        received = sum(e["received"] for e in (*edges, *(s["replies"] for s in services)))
        requested = sum(s["requests"]["sent"] for s in services)
        self.send(
            {
                "type": "progress",
                "at_ns": time.monotonic_ns(),
                "elapsed_ns": self.elapsed_ns(),
                "publishing": self.publishing(),
                "sent": sum(n for _, n in sent) + requested,
                "deliveries_expected": sum(n * subscriptions.count(topic) for topic, n in sent) + requested,
                "received": received,
                "completed": received,
                "lost": sum(e["gap"] for e in edges),
                "latency": one_value.encode(LATENCY_NS, sum(e["latency"]["count"] for e in edges)),
                "checkpoint_error": "No space left on device" if self.fault == "disk_full" else None,
            }
        )

    # -- life --------------------------------------------------------------------------------------------------------

    def run(self) -> int:
        print("fake node is here", file=sys.stderr, flush=True)
        if self.config["pass_by"] == "loaned":
            self.send({"type": "error", "kind": "unsupported", "text": NO_LOANS})
            return 3
        errors = {"bad_option": ("bad_input", 2), "unsupported": ("unsupported", 3), "failed": ("failed", 1)}
        if self.fault in errors:
            kind, status = errors[self.fault]
            self.send({"type": "error", "kind": kind, "text": f"fake: {self.fault}"})
            return status
        if self.fault == "child":
            subprocess.Popen(["sleep", "600"])
        if self.fault == "slow_create":
            time.sleep(600)
        self.write({"type": "process", "pid": os.getpid(), "process": self.config["process"]})
        writers = [{"node": n, "topic": t, "identity": "0" * 32} for n, t, _, _ in self.publishers(every=False)]
        names = None
        if self.config["middleware"]["options"].get("segment") == "on":
            names = [f"/dev/shm/{self.shared_memory}" if self.config["process"] == "ping" else self.shared_memory]
            (SHARED_MEMORY / self.shared_memory).write_text("a segment")
        self.send({"type": "created", "pid": os.getpid(), "writers": writers, "shared_memory": names})
        unmatched = ["/lyon subscription /amazon: 0 of 1 writers"] if self.fault == "unmatched" else []
        self.send({"type": "waiting", "unmatched": unmatched})
        if self.fault == "never_ready":
            time.sleep(600)
        self.threads("start")
        self.passing()
        self.send({"type": "ready", "matched": not unmatched, "unmatched": unmatched})
        while True:
            message = self.receive(60.0)
            if message is None or message["type"] == "stop":
                return 0
            if message["type"] == "start":
                break
        self.start(message)
        self.measure()
        if self.fault == "linger":
            time.sleep(600)
        self.threads("end")
        if self.fault != "no_final":
            self.checkpoint(final=True)
        (SHARED_MEMORY / self.shared_memory).unlink(missing_ok=True)
        self.send({"type": "done", "files": [self.config["records"]]})
        return 0

    def start(self, message: dict[str, Any]) -> None:
        self.at_ns = message["at_ns"]
        measured_from = self.at_ns + self.config["warmup_ns"]
        self.write(
            {
                "type": "start",
                "at_ns": self.at_ns,
                "measured_from_ns": measured_from,
                "measured_until_ns": measured_from + self.config["duration_ns"],
                "matched": self.fault != "late_start",
            }
        )
        self.write({"type": "event", "at_ns": self.at_ns, "code": "started", "text": "go"})

    def measure(self) -> None:
        while True:
            message = self.receive(PROGRESS_S if self.publishing() else DRAIN_PROGRESS_S)
            if message and message["type"] == "stop":
                return
            if self.elapsed_ns() > self.config["duration_ns"] // 2:
                self.misbehave()
            self.sample()
            if time.monotonic() - self.last_checkpoint > self.config["checkpoint_ns"] / 1e9 / 20:
                self.checkpoint(final=False)
            self.progress()

    def misbehave(self) -> None:
        match self.fault:
            case "die":
                os.kill(os.getpid(), signal.SIGKILL)
            case "abort":
                print("terminate called after throwing", file=sys.stderr, flush=True)
                os.abort()
            case "exit":
                os._exit(5)
            case "hang":
                time.sleep(600)
            case "garbage":
                self.control.sendall(b"this is not JSON\n")
            case "truncated":
                self.checkpoint(final=False)
                self.records.write(b'{"type":"checkpoint","at_ns":12')
                os.kill(os.getpid(), signal.SIGKILL)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--control-fd", type=int)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    config = json.loads(arguments.config.read_text())
    if arguments.check:
        if config["pass_by"] == "loaned":
            print(f"perflab-node: {NO_LOANS}", file=sys.stderr)
            return 3
        return 0
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    with socket.socket(fileno=arguments.control_fd) as control:
        return FakeNode(config, control).run()


if __name__ == "__main__":
    sys.exit(main())
