"""How the threads of a workload shall be scheduled, as the command line says it.

"[PROCESS.]executors|middleware=POLICY[:PRIORITY][@CPUS]": RR:98@1, OTHER@0-1, FIFO:10, @0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from perflab.errors import BadInput

ROLES = ("executors", "middleware")
POLICIES = ("OTHER", "FIFO", "RR")
PRIORITIES = range(1, 100)
MAX_CPUS = 1024  # as the kernel's cpu_set_t

_EXAMPLE = "e.g. executors=RR:98@1 or ping.middleware=OTHER@0-1"


@dataclass(frozen=True)
class ThreadRequest:
    """What the threads of a role shall be. `process` None: in every process."""

    process: str | None
    role: str
    policy: str | None  # None: as inherited
    priority: int  # 0 without FIFO or RR
    cpus: tuple[int, ...]  # none: as inherited


def parse(words: Sequence[str], processes: Sequence[str]) -> tuple[ThreadRequest, ...]:
    """The requests of the words of --thread, for a graph of these processes. Raises BadInput."""
    requests = [_request(word, processes) for word in words]
    for number, request in enumerate(requests):
        if any((request.process, request.role) == (r.process, r.role) for r in requests[:number]):
            raise BadInput(f"--thread {words[number]!r}: there are two for these threads; name them once")
    return tuple(requests)


def of_process(requests: Sequence[ThreadRequest], process: str | None) -> dict[str, Any]:
    """The `threads` member of a node's configuration; what names the process goes before what names none."""
    members: dict[str, Any] = {}
    for role in ROLES:
        fitting = [r for r in requests if r.role == role and r.process in (None, process)]
        chosen = max(fitting, key=lambda r: r.process is not None, default=None)
        members[role] = None if chosen is None else _document(chosen)
    return members


def _document(request: ThreadRequest) -> dict[str, Any]:
    return {"policy": request.policy, "priority": request.priority, "cpus": list(request.cpus)}


def _request(word: str, processes: Sequence[str]) -> ThreadRequest:
    key, equals, value = word.partition("=")
    process, dot, role = key.rpartition(".")
    if not equals or role not in ROLES:
        raise BadInput(f"--thread {word!r} is not [PROCESS.]executors|middleware=POLICY[:PRIORITY][@CPUS], {_EXAMPLE}")
    if dot and process not in processes:
        raise BadInput(f"--thread {word!r}: no process named {process!r}; there are {', '.join(processes)}")
    scheduling, at, cpus = value.partition("@")
    policy, colon, priority = scheduling.partition(":")
    if not value or (at and not cpus):
        raise BadInput(f"--thread {word!r}: {'no CPU after @' if at else 'nothing is asked for'}, {_EXAMPLE}")
    if (policy or colon) and policy not in POLICIES:
        raise BadInput(f"--thread {word!r}: no policy {policy!r}; there are {', '.join(POLICIES)}")
    return ThreadRequest(
        process=process if dot else None,
        role=role,
        policy=policy or None,
        priority=_priority(word, policy, priority if colon else None),
        cpus=_cpus(word, cpus) if at else (),
    )


def _priority(word: str, policy: str, text: str | None) -> int:
    if policy in ("", "OTHER"):
        if text is not None:
            raise BadInput(f"--thread {word!r}: OTHER has no priority; FIFO and RR have one")
        return 0
    number = _number(text or "")
    if number is None or number not in PRIORITIES:
        wrong = "there is no priority" if text is None else f"priority {text!r} is no number"
        raise BadInput(
            f"--thread {word!r}: {wrong} within {PRIORITIES[0]}..{PRIORITIES[-1]}, e.g. {policy}:{PRIORITIES[-1] - 1}"
        )
    return number


def _cpus(word: str, text: str) -> tuple[int, ...]:
    """CPUs of "0-2,5", ascending, each once."""
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        low = _number(first)
        high = _number(last) if dash else low
        if low is None or high is None or not low <= high < MAX_CPUS:
            raise BadInput(f"--thread {word!r}: {text!r} is no list of CPUs, e.g. 0-1,3")
        found.update(range(low, high + 1))
    return tuple(sorted(found))


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
