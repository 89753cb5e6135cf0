"""Thread scheduling of a workload, as written on the command line.

"[PROCESS.]executors|middleware=POLICY[:PRIORITY][@CPUS]": RR:98@1, OTHER@0-1, FIFO:10, @0; for executors also
DEADLINE:RUNTIME/DEADLINE/PERIOD. The name of a program's thread may replace these two words. Several such words form an
assignment; levels of the factor `workload.threads` are stored in the graph, like the threads' settings of a graph file.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perflab.errors import BadInput
from perflab.parameters import cpus_of
from perflab.units import parse_duration
from perflab.workload import THREAD_ROLES, Graph

ROLES = THREAD_ROLES
DEADLINE = "DEADLINE"
POLICIES = ("OTHER", "FIFO", "RR", DEADLINE)
LEAST_RUNTIME_NS = 1024  # limit of the kernel, kernel/sched/deadline.c
PRIORITIES = range(1, 100)
MAX_CPUS = 1024  # as the kernel's cpu_set_t

_WORD = re.compile(r"(?:([^=]*)\.)?([a-z][a-z0-9_]*)=([^:@]*)(?::([^@]*))?(?:@(.*))?")
_EXAMPLE = "e.g. executors=RR:98@1 or ping.middleware=OTHER@0-1"


@dataclass(frozen=True)
class ThreadRequest:
    """Scheduling requested for the threads of a role. `process` None: in every process."""

    process: str | None
    role: str  # one of ROLES, or the name of a program's thread
    policy: str | None  # None: as inherited
    priority: int  # 0 unless FIFO or RR
    cpus: tuple[int, ...]  # none: inherited
    runtime_ns: int = 0  # for DEADLINE, like the next two
    deadline_ns: int = 0
    period_ns: int = 0


def parse(
    words: Sequence[str], processes: Sequence[str], threads: Mapping[str, Collection[str]] | None = None
) -> tuple[ThreadRequest, ...]:
    """The requests in the words of --thread, for a graph with these processes, whose programs name their threads so.
    Raises BadInput."""
    requests = [_request(word, processes, threads or {}) for word in words]
    for number, request in enumerate(requests):
        if any((request.process, request.role) == (r.process, r.role) for r in requests[:number]):
            raise BadInput(f"--thread {words[number]!r}: these threads are named twice; name them once")
    return tuple(requests)


def of_process(requests: Sequence[ThreadRequest], process: str | None) -> dict[str, Any]:
    """The `threads` member of a node's configuration; requests for a named process come before those for all."""
    members: dict[str, Any] = {}
    for role in dict.fromkeys((*ROLES, *(r.role for r in requests))):
        fitting = [r for r in requests if r.role == role and r.process in (None, process)]
        chosen = max(fitting, key=lambda r: r.process is not None, default=None)
        members[role] = None if chosen is None else _document(chosen)
    return members


def _document(request: ThreadRequest) -> dict[str, Any]:
    times = {key: getattr(request, key) for key in ("runtime_ns", "deadline_ns", "period_ns")}
    of_policy = times if request.policy == DEADLINE else {}
    return {"policy": request.policy, "priority": request.priority, "cpus": list(request.cpus), **of_policy}


def assigned(graph: Graph, words: Sequence[str]) -> Graph:
    """The graph with these requests, which replace its own for the same threads. Raises BadInput."""
    requests = parse(words, graph.own_processes, names_in(graph))
    document = copy.deepcopy(graph.document)
    for process in document["processes"]:
        if process["name"] in graph.condition_processes:
            continue
        known = (*ROLES, *graph.threads_of_program(process["name"]))
        found = of_process(requests, process["name"])
        asked = {role: said for role, said in found.items() if said is not None and role in known}
        process["threads"] = {**process.get("threads", dict.fromkeys(ROLES)), **asked}
    return Graph(document)


def names_in(graph: Graph) -> dict[str, tuple[str, ...]]:
    """The names that the graph's programs give their threads, by process."""
    return {process: graph.threads_of_program(process) for process in graph.programs}


def _request(word: str, processes: Sequence[str], threads: Mapping[str, Collection[str]]) -> ThreadRequest:
    match = _WORD.fullmatch(word)
    if match is None or (match[2] not in ROLES and not any(threads.values())):
        raise BadInput(f"--thread {word!r} is not [PROCESS.]executors|middleware=POLICY[:PRIORITY][@CPUS], {_EXAMPLE}")
    process, role, policy, priority, cpus = match.groups()

    def wrong(problem: str) -> BadInput:
        return BadInput(f"--thread {word!r}: {problem}")

    if (problem := _unknown(process, role, processes, threads)) is not None:
        raise wrong(problem)
    if not cpus and (cpus is not None or not (policy or priority is not None)):
        raise wrong(f"{'the request is empty' if cpus is None else 'no CPU after @'}, {_EXAMPLE}")
    if (policy or priority is not None) and policy not in POLICIES:
        raise wrong(f"unknown policy {policy!r}; choose from {', '.join(POLICIES)}")
    named = () if cpus is None else cpus_of(cpus)
    if named is None or any(cpu >= MAX_CPUS for cpu in named):
        raise wrong(f"{cpus!r} is no list of CPUs, e.g. 0-1,3")
    if policy == DEADLINE:
        if role == "middleware":
            raise wrong(
                f"{DEADLINE} is not inherited, but threads of the middleware inherit their policy; use FIFO or RR"
            )
        if named:
            raise wrong(f"{DEADLINE} runs on all CPUs; leave @{cpus} out")
        return ThreadRequest(process, role, policy, 0, (), *_times(priority, wrong))
    level = 0
    if policy in ("", "OTHER"):
        if priority is not None:
            raise wrong("OTHER has no priority; use FIFO or RR")
    elif priority is not None and re.fullmatch("[0-9]{1,9}", priority) and int(priority) in PRIORITIES:
        level = int(priority)
    else:
        lacks = "the priority is missing" if priority is None else f"priority {priority!r} is not a number"
        raise wrong(f"{lacks} within {PRIORITIES[0]}..{PRIORITIES[-1]}, e.g. {policy}:{PRIORITIES[-1] - 1}")
    return ThreadRequest(process, role, policy or None, level, named)


def _unknown(
    process: str | None, role: str, processes: Sequence[str], threads: Mapping[str, Collection[str]]
) -> str | None:
    """What is wrong with the name of a process or of its threads."""
    if process is not None and process not in processes:
        return f"no process named {process!r}; there are {', '.join(processes)}"
    of_programs = [name for of, names in threads.items() if process in (None, of) for name in names]
    known = (*ROLES, *dict.fromkeys(of_programs))
    return None if role in known else f"no threads named {role!r}; there are {', '.join(known)}"


def _times(text: str | None, wrong: Callable[[str], BadInput]) -> tuple[int, int, int]:
    """Runtime, deadline and period in ns, from "2ms/10ms/10ms"."""
    words = (text or "").split("/")
    example = f"e.g. {DEADLINE}:2ms/10ms/10ms"
    if len(words) != 3:
        raise wrong(f"{DEADLINE} needs a runtime, a deadline and a period, {example}")
    try:
        runtime_ns, deadline_ns, period_ns = (parse_duration(word, DEADLINE) for word in words)
    except BadInput as error:
        raise wrong(f"{error}, {example}") from error
    if not LEAST_RUNTIME_NS <= runtime_ns <= deadline_ns <= period_ns:
        raise wrong(f"{LEAST_RUNTIME_NS} ns <= runtime <= deadline <= period does not hold, {example}")
    return runtime_ns, deadline_ns, period_ns
