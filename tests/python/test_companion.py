"""perflab-guard, perflab-burn and the companion that perflab makes of them, with the real programs.

Every test notes the processes it sees, by number and start time, and looks for exactly those in the end.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support import SOURCE

from perflab import models, processes
from perflab.condition import Companion
from perflab.errors import PerflabError, Unavailable
from perflab.experiment import companion as companion_module
from perflab.experiment.companion import GuardedCompanion, left_behind
from perflab.models import as_json
from perflab.processes import Process, children_of, read_process
from perflab.results.files import Guarded, TrialCompanion

pytestmark = pytest.mark.native

LIMIT_S = 60.0  # for what comes at once on a machine that is not busy
LONG_S = "1000"

# Two sleepers out of the session and the process group, the one of them an orphan; their numbers go to $1.
ESCAPING = """\
setsid sh -c 'sleep 1000 & echo $! >> "$0"; exit 0' "$1" &
wait $!
setsid sleep 1000 & echo $! >> "$1"
echo complete >> "$1"
wait
"""

ECHO = """\
import json, socket, sys
channel = socket.socket(fileno=int(sys.argv[sys.argv.index("--control-fd") + 1]))
for line in channel.makefile("r", encoding="utf-8"):
    body = json.loads(line)
    garbage = body.get("say") == "garbage"
    answer = "this is not JSON" if garbage else json.dumps({"type": "echo", "of": body})
    channel.sendall(answer.encode() + b"\\n")
"""


@pytest.fixture(scope="module")
def native() -> Path:
    named = os.environ.get("PERFLAB_NATIVE")
    folder = Path(named) if named else Path(sys.prefix) / "lib" / "perflab"
    for program in ("perflab-guard", "perflab-burn"):
        if not os.access(folder / program, os.X_OK):
            pytest.skip(f"{folder / program} is missing; build the native programs and set PERFLAB_NATIVE")
    return folder


Start = Callable[..., GuardedCompanion]


@pytest.fixture
def start(native: Path, tmp_path: Path) -> Iterator[Start]:
    """Starts companions, and ends them with the test."""
    with contextlib.ExitStack() as stack:

        def started(*command: str | Path, name: str = "load", **options: Any) -> GuardedCompanion:
            guard = native / "perflab-guard"
            log = tmp_path / f"{name}.log"
            return stack.enter_context(GuardedCompanion(name, command, guard=guard, log=log, **options))

        yield started


def until(holds: Callable[[], Any], what: str) -> Any:
    limit = time.monotonic() + LIMIT_S
    while not (result := holds()):
        assert time.monotonic() < limit, f"not within {LIMIT_S:.0f} s: {what}"
        time.sleep(0.01)
    return result


def until_finished(load: GuardedCompanion, what: str, holds: Callable[[], bool] | None = None) -> None:
    def polled() -> bool:
        load.poll()
        return load.finished if holds is None else holds()

    until(polled, what)


def is_gone(known: Process) -> bool:
    now = read_process(known.pid)
    return now is None or now.identity != known.identity


def below(pid: int) -> list[Process]:
    return processes.with_descendants(lambda process: process.parent == pid)


def known(pid: int | None) -> Process:
    assert pid is not None
    process = read_process(pid)
    assert process is not None
    return process


def escaped(file: Path) -> list[Process]:
    """The two sleepers of ESCAPING."""
    until(lambda: file.exists() and "complete" in file.read_text(), "the sleepers have started")
    pids = [int(word) for word in file.read_text().split() if word.isdecimal()]
    assert len(pids) == 2
    until(lambda: os.getsid(pids[1]) == pids[1], "the second has a session of its own")
    return [known(pid) for pid in pids]


def test_it_is_a_companion_and_tells_of_its_program(start: Start) -> None:
    load: Companion = start("sleep", LONG_S)
    assert isinstance(load, GuardedCompanion)
    running = known(load.pid)
    assert load.start_ticks == running.start_ticks
    assert load.status is None and not load.ended_by_itself and not load.finished
    assert os.getpgid(running.pid) == running.pid, "a process group of its own"
    document = as_json(load.recorded)
    assert json.loads(json.dumps(document)) == document
    assert {key: document[key] for key in ("name", "command", "pid", "start_ticks", "status")} == {
        "name": "load",
        "command": ["sleep", LONG_S],
        "pid": running.pid,
        "start_ticks": running.start_ticks,
        "status": None,
    }
    assert load.stop() == -signal.SIGTERM
    assert is_gone(running)
    assert load.recorded.status == -signal.SIGTERM
    assert not load.ended_by_itself
    assert load.killed == 0
    assert load.stop() == -signal.SIGTERM, "a second time changes nothing"
    load.poll()
    assert load.receive(0.0) is None


def test_descendants_that_leave_session_and_group_end_too(start: Start, tmp_path: Path) -> None:
    load = start("sh", "-c", ESCAPING, "sh", tmp_path / "pids")
    everybody = [known(load.pid), known(load.guard_pid), *escaped(tmp_path / "pids")]
    sessions = {process.session for process in everybody}
    assert len(sessions) > 2
    load.stop()
    assert all(is_gone(process) for process in everybody)


def test_what_ignores_sigterm_is_killed_after_the_grace(start: Start, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    script = 'trap "" TERM; touch "$1"; while :; do sleep 1000; done'
    load = start("sh", "-c", script, "sh", ready)
    until(ready.exists, "the trap is set")
    running = known(load.pid)
    assert load.stop(grace_s=0.2) == -signal.SIGKILL
    assert load.killed is not None and load.killed >= 1
    assert is_gone(running)


def test_a_program_has_its_grace_to_end_in_order(start: Start, tmp_path: Path) -> None:
    ready, last = tmp_path / "ready", tmp_path / "last words"
    script = 'trap "sleep 0.3; echo bye > \\"$2\\"; exit 7" TERM; touch "$1"; while :; do sleep 0.05; done'
    load = start("sh", "-c", script, "sh", ready, last)
    until(ready.exists, "the trap is set")
    assert load.stop(grace_s=LIMIT_S) == 7
    assert last.read_text() == "bye\n"
    assert load.killed == 0


def test_a_program_that_is_stopped_ends_by_sigterm(start: Start) -> None:
    load = start("sleep", LONG_S)
    os.kill(known(load.pid).pid, signal.SIGSTOP)
    assert load.stop(grace_s=LIMIT_S) == -signal.SIGTERM
    assert load.killed == 0


@pytest.mark.parametrize(("script", "status"), [("exit 3", 3), ("kill -USR1 $$", -signal.SIGUSR1), ("exit 0", 0)])
def test_a_program_that_ends_by_itself_is_noticed(start: Start, script: str, status: int) -> None:
    load = start("sh", "-c", script)
    waiting = select.poll()
    waiting.register(load.fileno(), select.POLLIN)
    waiting.register(load.pidfd, select.POLLIN)
    limit = time.monotonic() + LIMIT_S
    while not load.finished and time.monotonic() < limit:
        waiting.poll(1000)
        load.poll()
        if not load.channel.open:
            waiting.register(load.fileno(), 0)
    assert load.finished
    assert load.ended_by_itself
    assert load.status == status
    assert load.stop() == status
    assert load.ended_by_itself, "what comes later does not change it"


def test_descendants_of_a_program_that_ended_by_itself_end_with_stop(start: Start, tmp_path: Path) -> None:
    load = start("sh", "-c", 'setsid sleep 1000 & echo $! > "$1"', "sh", tmp_path / "pid")
    until_finished(load, "the shell has ended", lambda: load.status is not None)
    sleeper = known(int((tmp_path / "pid").read_text()))
    assert load.ended_by_itself
    assert not load.finished
    load.stop()
    assert is_gone(sleeper)


def test_kill_9_of_the_program_is_noticed(start: Start) -> None:
    load = start("sleep", LONG_S)
    os.kill(known(load.pid).pid, signal.SIGKILL)
    until_finished(load, "the guard has ended")
    assert load.status == -signal.SIGKILL
    assert load.ended_by_itself


def test_kill_9_of_the_guard_ends_the_program_and_what_it_started(start: Start, tmp_path: Path) -> None:
    load = start("sh", "-c", ESCAPING, "sh", tmp_path / "pids")
    everybody = [known(load.pid), known(load.guard_pid), *escaped(tmp_path / "pids")]
    os.kill(load.guard_pid, signal.SIGKILL)
    until_finished(load, "nothing is left")
    assert all(is_gone(process) for process in everybody)
    assert load.status == -signal.SIGKILL
    assert load.ended_by_itself
    assert load.stop() == -signal.SIGKILL


def test_kill_9_of_the_guard_ends_descendants_that_hide_their_environment(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(companion_module, "RECORD_INTERVAL_S", 0.0)  # each poll notes what is below the guard
    script = 'env -i setsid sleep 1000 & env -i sleep 1000 & touch "$1"; wait'
    load = start("sh", "-c", script, "sh", tmp_path / "ready")
    until((tmp_path / "ready").exists, "the shell has come that far")
    shell = known(load.pid)

    def sleepers() -> list[Process]:
        return [p for p in below(shell.pid) if Path(f"/proc/{p.pid}/comm").read_text() == "sleep\n"]

    until(lambda: len(sleepers()) == 2, "both sleepers run")
    everybody = [shell, *sleepers()]
    load.poll()
    os.kill(load.guard_pid, signal.SIGKILL)
    load.stop()
    assert all(is_gone(process) for process in everybody)


def test_a_guard_that_does_not_answer_is_killed_with_all_below(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = start("sh", "-c", ESCAPING, "sh", tmp_path / "pids")
    everybody = [known(load.pid), known(load.guard_pid), *escaped(tmp_path / "pids")]
    monkeypatch.setattr(companion_module, "ANSWER_LIMIT_S", 0.0)
    monkeypatch.setattr(companion_module, "GUARD_KILL_LIMIT_S", 0.0)
    os.kill(load.guard_pid, signal.SIGSTOP)
    load.stop(grace_s=0.1)
    assert all(is_gone(process) for process in everybody)
    assert load.status is not None
    assert not load.ended_by_itself


STAND_IN = """\
import sys, time
from pathlib import Path
from perflab.experiment.companion import GuardedCompanion
guard, log, document, *command = sys.argv[1:]
load = GuardedCompanion("load", command, guard=Path(guard), log=Path(log))
import json
from perflab.models import as_json
Path(document + ".part").write_text(json.dumps(as_json(load.recorded)))
Path(document + ".part").rename(document)
time.sleep(1000)
"""


@pytest.fixture
def stand_in(native: Path, tmp_path: Path) -> Iterator[tuple[Process, TrialCompanion, list[Process]]]:
    """Another process in perflab's place, with a companion; its process, the document, and all others."""
    guard, log, document, pids = (native / "perflab-guard", *(tmp_path / n for n in ("log", "document", "pids")))
    command = ["sh", "-c", ESCAPING, "sh", str(pids)]
    process = subprocess.Popen(
        [sys.executable, "-c", STAND_IN, guard, log, document, *command],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )
    try:
        sleepers = escaped(pids)
        until(document.exists, "the stand-in has written its document")
        recorded = models.read(TrialCompanion, json.loads(document.read_text()))
        assert recorded.pid is not None and recorded.guard is not None and recorded.guard.pid is not None
        others = [known(recorded.pid), known(recorded.guard.pid), *sleepers]
        yield known(process.pid), recorded, others
    finally:
        process.kill()
        process.wait()


StandIn = tuple[Process, TrialCompanion, list[Process]]


def test_kill_9_of_perflab_leaves_nothing(stand_in: StandIn) -> None:
    perflab, document, others = stand_in
    assert {process.identity for process in left_behind(document)} == {process.identity for process in others}
    os.kill(perflab.pid, signal.SIGKILL)
    until(lambda: all(is_gone(process) for process in others), "everything has ended")
    assert left_behind(document) == []


def test_what_is_left_when_perflab_and_the_guard_are_killed_is_known_by_the_document(stand_in: StandIn) -> None:
    perflab, document, (program, guard, *sleepers) = stand_in
    os.kill(guard.pid, signal.SIGSTOP)  # so that it cannot come first
    os.kill(perflab.pid, signal.SIGKILL)
    os.kill(guard.pid, signal.SIGKILL)
    until(lambda: is_gone(program) and is_gone(guard), "the kernel has ended the program")
    assert {process.identity for process in left_behind(document)} == {process.identity for process in sleepers}
    assert processes.kill_all(lambda: left_behind(document)) == []
    assert all(is_gone(process) for process in sleepers)


def test_processes_of_the_same_number_but_another_start_are_not_taken_for_left_behind() -> None:
    own_child = subprocess.Popen(["sleep", LONG_S])
    try:
        process = known(own_child.pid)
        recorded = Guarded(pid=process.pid, start_ticks=process.start_ticks)
        assert left_behind(recorded) == [process]
        assert left_behind(replace(recorded, start_ticks=process.start_ticks - 1)) == []
        processes.send(Process(process.pid, process.start_ticks - 1), signal.SIGKILL)
        assert not is_gone(process)
    finally:
        own_child.kill()
        own_child.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_to_the_guard_ends_everything(start: Start, number: signal.Signals) -> None:
    load = start("sleep", LONG_S)
    running = known(load.pid)
    os.kill(load.guard_pid, number)
    until_finished(load, "the guard has ended")
    assert is_gone(running)
    assert load.status == -signal.SIGTERM


def test_a_guard_whose_parent_thread_ended_goes_on(start: Start) -> None:
    """A death signal of the parent, if it went by threads, would be sent when the thread's task ends in the kernel."""
    loads: list[GuardedCompanion] = []
    thread = threading.Thread(target=lambda: loads.append(start("sleep", LONG_S)))
    thread.start()
    task = Path(f"/proc/self/task/{thread.native_id}")
    thread.join()
    until(lambda: not task.exists(), "the thread's task has ended")
    # The guard still handles later requests: it ends the command on request, and not before.
    load = loads[0]
    load.poll()
    assert load.status is None
    command, guard = known(load.pid), known(load.guard_pid)
    assert not is_gone(command)
    assert not is_gone(guard)
    assert load.stop() == -signal.SIGTERM
    assert not load.ended_by_itself
    assert is_gone(command)


def test_a_command_that_is_not_there_is_named(start: Start, tmp_path: Path) -> None:
    with pytest.raises(Unavailable) as raised:
        start("no-such-program", "--fast", install="install it with `make`")
    assert str(raised.value) == ("cannot execute no-such-program: No such file or directory; install it with `make`")
    (tmp_path / "plain").write_text("text")
    with pytest.raises(Unavailable, match=r"cannot execute .*plain: Permission denied$"):
        start(tmp_path / "plain")


def test_a_guard_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"cannot start .*no-guard: No such file"):
        GuardedCompanion("load", ["true"], guard=tmp_path / "no-guard", log=tmp_path / "log")


def test_a_guard_that_ends_without_a_word_is_an_error(tmp_path: Path) -> None:
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\necho out of luck\nexit 9\n")
    silent.chmod(0o755)
    with pytest.raises(PerflabError, match=r"ended before it had started true: exited with 9; out of luck$"):
        GuardedCompanion("load", ["true"], guard=silent, log=tmp_path / "log")


def test_output_goes_to_the_log_and_the_environment_to_the_program(start: Start) -> None:
    load = start("sh", "-c", 'echo "$HERE"; echo there >&2', environment={"HERE": "here"})
    until_finished(load, "it has ended")
    assert load.log.read_text() == "here\nthere\n"


def test_control_passes_both_ways(start: Start) -> None:
    load = start(sys.executable, "-c", ECHO, control=True)
    bodies = [{"type": "set", "text": "grün", "n": n, "float": 0.1} for n in range(200)]
    for body in bodies:
        load.send(body)
    assert [load.receive(LIMIT_S) for _ in bodies] == [{"type": "echo", "of": body} for body in bodies]
    large = {"text": "x" * (4 << 20)}
    load.send(large)
    assert load.receive(LIMIT_S) == {"type": "echo", "of": large}
    assert load.receive(0.0) is None
    load.stop()
    assert load.receive(LIMIT_S) is None
    load.send({"type": "too late"})


def test_a_reader_that_is_slow_does_not_keep_the_guard_from_its_duties(start: Start) -> None:
    talker = (
        "import socket, sys\n"
        "channel = socket.socket(fileno=int(sys.argv[-1]))\n"
        "while True: channel.sendall(b'{\"text\":\"' + b'x' * 65536 + b'\"}\\n')\n"
    )
    load = start(sys.executable, "-c", talker, control=True)
    assert load.receive(LIMIT_S) is not None
    running = known(load.pid)
    # It blocks in its channel as soon as nobody reads, and ends nevertheless.
    until(lambda: Path(f"/proc/{running.pid}/stat").read_text().rpartition(")")[2].split()[0] == "S", "it is blocked")
    os.kill(load.guard_pid, signal.SIGTERM)
    until(lambda: is_gone(running), "it has ended")
    assert load.stop() == -signal.SIGTERM


def test_what_is_not_json_is_a_failure_and_ends_the_program(start: Start) -> None:
    load = start(sys.executable, "-c", ECHO, control=True)
    load.send({"say": "garbage"})
    until_finished(load, "the guard has given up")
    assert load.failure == f"{sys.executable} sent a line that is not JSON: this is not JSON"
    assert load.status is not None


def test_without_control_nothing_can_be_sent(start: Start) -> None:
    with pytest.raises(ValueError, match="without a control channel"):
        start("sleep", LONG_S).send({"type": "stop"})


def test_nothing_of_the_guard_is_inherited(start: Start) -> None:
    load = start("sh", "-c", "ls /proc/self/fd; grep Sig /proc/self/status; grep ShdPnd /proc/self/status")
    until_finished(load, "it has ended")
    words = load.log.read_text().split("\n")
    assert words[:4] == ["0", "1", "2", "3"], "3 is the folder that ls reads"
    assert not words[4].isdecimal()
    (blocked,) = (line.split()[1] for line in words if line.startswith("SigBlk"))
    assert int(blocked, 16) == 0


def has_two_children(pid: int) -> bool:
    return len(below(pid)) >= 2


def test_stress_ng_and_its_workers_end(start: Start) -> None:
    if shutil.which("stress-ng") is None:
        pytest.skip("stress-ng is not installed")
    for kill_guard in (False, True):
        load = start("stress-ng", "--cpu", "2", "--cpu-load", "5", "--quiet", name=f"stress_{kill_guard}")
        pid = known(load.pid).pid
        until(functools.partial(has_two_children, pid), "both workers run")
        everybody = [known(pid), *below(pid)]
        if kill_guard:
            os.kill(load.guard_pid, signal.SIGKILL)
            until_finished(load, "nothing is left")
        load.stop()
        assert all(is_gone(process) for process in everybody)


@pytest.mark.parametrize("number", range(5))
def test_kill_9_at_any_instant_leaves_nothing(start: Start, tmp_path: Path, number: int) -> None:
    """Also while the processes are still coming."""
    load = start("sh", "-c", ESCAPING, "sh", tmp_path / "pids")
    time.sleep(0.004 * number)
    os.kill(load.guard_pid, signal.SIGKILL)
    load.stop()
    assert left_behind(load.recorded) == []


def test_the_guard_says_what_is_wrong_with_its_arguments(native: Path) -> None:
    for arguments in ([], ["--control-fd", "x", "--", "true"], ["--control-fd", "3"], ["--grace-ms", "-1", "true"]):
        done = subprocess.run([native / "perflab-guard", *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert done.stderr.splitlines()[-1].startswith("usage: perflab-guard")


# ---- perflab-burn ----


class Burn:
    """perflab-burn on a control channel of the test's."""

    def __init__(self, native: Path, cpus: str, *arguments: str, limit_s: float = 120.0) -> None:
        self.channel, theirs = socket.socketpair()
        with theirs:
            self.popen = subprocess.Popen(
                [
                    native / "perflab-burn",
                    *("--control-fd", str(theirs.fileno()), "--cpus", cpus),
                    *("--limit-ns", str(round(limit_s * 1e9)), *arguments),
                ],
                pass_fds=(theirs.fileno(),),
                stderr=subprocess.PIPE,
                text=True,
            )
        self.channel.settimeout(LIMIT_S)
        self.lines = self.channel.makefile("r", encoding="utf-8")

    def __enter__(self) -> Burn:
        return self

    def __exit__(self, *_: object) -> None:
        self.popen.kill()
        self.popen.communicate()
        self.lines.close()
        self.channel.close()

    def receive(self) -> dict[str, Any]:
        line = self.lines.readline()
        assert line, f"it has ended: {self.popen.communicate()[1]}"
        body = json.loads(line)
        assert isinstance(body, dict)
        return body

    def stop(self) -> dict[str, Any]:
        self.channel.sendall(b'{"type":"stop"}\n')
        return self.receive()

    def refused(self) -> str:
        body = self.receive()
        assert (body["type"], body["kind"], self.popen.wait(LIMIT_S)) == ("error", "unsupported", 3)
        text = body["text"]
        assert isinstance(text, str) and "\n" not in text
        return text


def usable_cpus() -> list[int]:
    return sorted(os.sched_getaffinity(0))


def real_time_or_skip() -> None:
    pid = os.fork()
    if pid == 0:
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(99))
        except PermissionError:
            os._exit(1)
        os._exit(0)
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0:
        pytest.skip("real-time priorities are not permitted here (RLIMIT_RTPRIO)")


@pytest.mark.parametrize(("policy", "number", "priority"), [("FIFO", os.SCHED_FIFO, 7), ("RR", os.SCHED_RR, 3)])
def test_burn_has_the_policy_and_the_cpu_that_it_says(native: Path, policy: str, number: int, priority: int) -> None:
    real_time_or_skip()
    cpus = usable_cpus()[-2:]
    names = ",".join(map(str, cpus))
    with Burn(native, names, "--policy", policy, "--priority", str(priority), "--load", "5") as burn:
        ready = burn.receive()
        assert [(thread["policy"], thread["priority"], thread["cpus"]) for thread in ready["threads"]] == [
            (policy, priority, [cpu]) for cpu in cpus
        ]
        for thread, cpu in zip(ready["threads"], cpus, strict=True):
            assert os.sched_getscheduler(thread["tid"]) == number
            assert os.sched_getparam(thread["tid"]).sched_priority == priority
            assert os.sched_getaffinity(thread["tid"]) == {cpu}
            status = Path(f"/proc/{burn.popen.pid}/task/{thread['tid']}/stat").read_text()
            fields = status.rpartition(")")[2].split()
            assert (int(fields[37]), int(fields[38])) == (priority, number)  # rt_priority, policy
        done = burn.stop()
        assert done["type"] == "done" and done["limit_reached"] is False
        assert burn.popen.wait(LIMIT_S) == 0


def test_burn_has_the_nice_value_that_it_says(native: Path) -> None:
    with Burn(native, str(usable_cpus()[0]), "--nice", "7", "--load", "5") as burn:
        (thread,) = burn.receive()["threads"]
        assert (thread["policy"], thread["priority"], thread["nice"]) == ("OTHER", 0, 7)
        assert os.getpriority(os.PRIO_PROCESS, thread["tid"]) == 7


def cpu_ns_of(burn: Burn, tid: int) -> int:
    return int(Path(f"/proc/{burn.popen.pid}/task/{tid}/schedstat").read_text().split()[0])


def test_burn_spends_the_share_that_was_asked_for(native: Path) -> None:
    """With a real-time priority it gets what it wants, however busy the machine is."""
    real_time_or_skip()
    arguments = ("--policy", "FIFO", "--priority", "50", "--load", "50", "--period-ns", "20000000")
    with Burn(native, str(usable_cpus()[-1]), *arguments) as burn:
        (thread,) = burn.receive()["threads"]
        begin, begin_ns = cpu_ns_of(burn, thread["tid"]), time.monotonic_ns()
        time.sleep(2)
        end, end_ns = cpu_ns_of(burn, thread["tid"]), time.monotonic_ns()
        done = burn.stop()
    assert 0.35 < (end - begin) / (end_ns - begin_ns) < 0.65
    assert done["cpu_ns"] >= end


def test_burn_at_full_load_takes_what_is_there(native: Path) -> None:
    real_time_or_skip()
    with Burn(native, str(usable_cpus()[-1]), "--policy", "RR", "--priority", "50") as burn:
        (thread,) = burn.receive()["threads"]
        begin, begin_ns = cpu_ns_of(burn, thread["tid"]), time.monotonic_ns()
        time.sleep(1)
        end, end_ns = cpu_ns_of(burn, thread["tid"]), time.monotonic_ns()
        burn.stop()
    assert (end - begin) / (end_ns - begin_ns) > 0.7


def test_burn_ends_by_itself_at_its_limit_with_every_cpu_at_the_highest_priority(native: Path) -> None:
    real_time_or_skip()
    cpus = ",".join(map(str, usable_cpus()))
    with Burn(native, cpus, "--policy", "FIFO", "--priority", "99", limit_s=0.5) as burn:
        assert burn.receive()["type"] == "ready"
        done = burn.receive()
        assert (done["type"], done["limit_reached"]) == ("done", True)
        assert burn.popen.wait(LIMIT_S) == 0
        assert 0 < done["cpu_ns"] < 0.6e9 * len(usable_cpus())


def test_burn_that_cannot_say_so_is_killed_after_its_limit(native: Path) -> None:
    with Burn(native, str(usable_cpus()[0]), "--load", "5", limit_s=0.5) as burn:
        assert burn.receive()["type"] == "ready"
        os.kill(burn.popen.pid, signal.SIGSTOP)
        assert burn.popen.wait(LIMIT_S) == -signal.SIGKILL


def test_burn_with_a_long_period_stops_at_once(native: Path) -> None:
    with Burn(native, str(usable_cpus()[0]), "--load", "0.1", "--period-ns", "60000000000") as burn:
        assert burn.receive()["type"] == "ready"
        assert burn.stop()["type"] == "done"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_burn_ends_in_order_by_a_signal(native: Path, number: signal.Signals) -> None:
    with Burn(native, str(usable_cpus()[0]), "--load", "5") as burn:
        assert burn.receive()["type"] == "ready"
        burn.popen.send_signal(number)
        assert burn.receive()["type"] == "done"
        assert burn.popen.wait(LIMIT_S) == 0


def test_burn_ends_when_its_channel_closes(native: Path) -> None:
    with Burn(native, str(usable_cpus()[0]), "--load", "5") as burn:
        assert burn.receive()["type"] == "ready"
        burn.channel.shutdown(socket.SHUT_RDWR)
        assert burn.popen.wait(LIMIT_S) == 0


def test_burn_refuses_what_the_kernel_does_not_have(native: Path) -> None:
    first = str(usable_cpus()[0])
    with Burn(native, first, "--policy", "FIFO", "--priority", "200") as burn:
        assert burn.refused() == "priority 200 with policy FIFO: the kernel has 1 to 99"
    with Burn(native, first, "--policy", "OTHER", "--priority", "5") as burn:
        assert burn.refused() == "priority 5 with policy OTHER: the kernel has 0"
    with Burn(native, f"{first},1000") as burn:
        assert burn.refused().startswith("CPUs 1000 are not all available: this process may use ")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--load", "0"], "--load 0: must be a number from 0.1 to 100.0"),
        (["--load", "half"], "--load half: must be a number from 0.1 to 100.0"),
        (["--policy", "fifo"], "--policy fifo: must be OTHER, FIFO or RR"),
        (["--cpus", "0,,1"], "--cpus : must be a number from 0 to 1000000"),
        (["--cpus", "0,0"], "--cpus: CPU 0 is named twice"),
        (["--nice", "20"], "--nice 20: must be a number from -20 to 19"),
        (["--limit-ns", "0"], "--limit-ns 0: must be a number from 1 to "),
        (["--unknown", "0"], "usage: perflab-burn"),
    ],
)
def test_burn_says_what_is_wrong_with_its_arguments(native: Path, arguments: list[str], complaint: str) -> None:
    with Burn(native, "0", *arguments) as burn:
        body = burn.receive()
        assert (body["type"], body["kind"], burn.popen.wait(LIMIT_S)) == ("error", "bad_input", 2)
        assert body["text"].startswith(complaint)


def test_burn_under_a_guard_is_a_companion(start: Start, native: Path) -> None:
    cpu = str(usable_cpus()[0])
    arguments = ("--cpus", cpu, "--load", "5", "--limit-ns", str(120 * 10**9))
    burn = start(native / "perflab-burn", *arguments, control=True)
    ready = burn.receive(LIMIT_S)
    assert ready is not None and ready["type"] == "ready"
    burn.send({"type": "stop"})
    done = burn.receive(LIMIT_S)
    assert done is not None and done["type"] == "done" and done["cpu_ns"] > 0
    assert burn.stop() == 0


def test_kill_9_of_the_guard_ends_burn_at_the_highest_priority(start: Start, native: Path) -> None:
    real_time_or_skip()
    arguments = (
        "--cpus",
        str(usable_cpus()[-1]),
        "--limit-ns",
        str(30 * 10**9),
        "--policy",
        "FIFO",
        "--priority",
        "99",
    )
    burn = start(native / "perflab-burn", *arguments, control=True)
    running = known(burn.pid)
    os.kill(burn.guard_pid, signal.SIGKILL)
    until(lambda: is_gone(running), "the kernel has ended it")
    burn.stop()
    assert burn.status == -signal.SIGKILL


def test_children_of_a_process_that_ends_meanwhile_are_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    child = subprocess.Popen(["sleep", LONG_S])
    try:
        assert child.pid in children_of(os.getpid())
        assert children_of(child.pid) == []
    finally:
        child.kill()
        child.wait()
    assert children_of(child.pid) == []

    def gone(_: Path) -> Iterator[Path]:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "iterdir", gone)
    assert children_of(os.getpid()) == []
