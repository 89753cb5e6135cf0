"""perflab-scheduler-recorder on this machine: against perf, against what threads know of themselves, and in trouble.

Nothing here depends on how fast the machine is. The kernel may keep events from every tracer (docs/recording.md:
`withheld`, `chain_breaks`); none of the proofs takes that for a loss, or a loss for that."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from both_readers import need_babeltrace2, run_ctf_dump
from opened import needs_library

from perflab.trace import open_trace

PATIENCE_S = 120
TRACING = Path("/sys/kernel/tracing")


def program(name: str = "perflab-scheduler-recorder") -> Path:
    path = Path(os.environ.get("PERFLAB_NATIVE", "")) / name
    if not path.is_file():
        pytest.skip(f"no {name} in PERFLAB_NATIVE; build it with `make test`")
    return path


def tool(name: str) -> Path:
    path = Path(os.environ.get("PERFLAB_TEST_TOOLS", "")) / name
    if not path.is_file():
        pytest.skip(f"no {name} in PERFLAB_TEST_TOOLS; build it with `make test`")
    return path


def run(*command: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """However it ends."""
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False, **options)


class Recorder:
    """The program with its control channel; `within` is the command that it is started by."""

    def __init__(self, output: Path, *arguments: str, within: Sequence[str] = ()) -> None:
        ours, theirs = socket.socketpair()
        self.channel = ours
        self.process = subprocess.Popen(
            [*within, program(), "--output", output, "--control-fd", str(theirs.fileno()), *arguments],
            pass_fds=[theirs.fileno()],
            stderr=subprocess.PIPE,
            text=True,
        )
        theirs.close()
        ours.settimeout(PATIENCE_S)
        self.lines = ours.makefile("r")
        self.output = output

    def next(self) -> dict[str, Any]:
        line = self.lines.readline()
        return json.loads(line) if line else {}

    def send(self, **line: Any) -> None:
        self.channel.sendall((json.dumps(line) + "\n").encode())

    def stop(self) -> dict[str, Any]:
        self.send(type="stop")
        done = self.next()
        assert done["type"] == "done", done
        assert self.process.wait(PATIENCE_S) == 0
        return done


@contextlib.contextmanager
def recorder(output: Path, *arguments: str, within: Sequence[str] = ()) -> Iterator[Recorder]:
    made = Recorder(output, *arguments, within=within)
    try:
        first = made.next()
        if first.get("type") == "error" and made.process.wait(PATIENCE_S) == 3:
            pytest.skip(f"scheduler events cannot be recorded here: {first['text']}")
        assert first["type"] == "recording", (first, made.process.stderr and made.process.stderr.read())
        yield made
    finally:
        made.channel.close()
        made.process.kill()
        made.process.wait()


def events_of(folder: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """All events by perflab's reader, and its last line."""
    done = run_ctf_dump("--no-headers", folder)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    return [json.loads(line) for line in lines[:-1]], json.loads(lines[-1])


def settings() -> dict[str, str]:
    """Every setting of the kernel that a tracer could have changed."""
    files = [*sorted(Path("/proc/sys/kernel").glob("perf_*")), Path("/proc/sys/kernel/sched_schedstats")]
    files += [TRACING / name for name in ("tracing_on", "set_event", "current_tracer", "trace_clock", "buffer_size_kb")]
    found = {str(file): file.read_text() for file in files if file.is_file() and os.access(file, os.R_OK)}
    for name in ("sched_switch", "sched_waking", "sched_wakeup", "sched_process_fork"):
        enable = TRACING / "events/sched" / name / "enable"
        if os.access(enable, os.R_OK):
            found[str(enable)] = enable.read_text()
    return found


def own_instances() -> list[str]:
    """Instances of the tracer that are perflab's; other programs may come and go with theirs."""
    with contextlib.suppress(OSError):
        return sorted(found.name for found in (TRACING / "instances").iterdir() if "perflab" in found.name)
    return []


def text_of(value: object) -> str:
    return str(value).split("\x00", 1)[0]


def with_tracefs() -> list[str]:
    """What mounts tracefs for a command alone: perf does it for the whole machine."""
    if os.geteuid() != 0:
        return []
    return ["unshare", "--mount", "sh", "-c", f'mount -t tracefs tracefs {TRACING} 2>/dev/null; exec "$@"', "sh"]


both_sources = pytest.mark.parametrize("source", ["perf_event", "ebpf"])


@both_sources
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can unmount tracefs for one program")
def test_it_needs_no_mounted_tracefs_and_mounts_none(tmp_path: Path, source: str) -> None:
    without = ["unshare", "--mount", "sh", "-c", f'umount --lazy {TRACING} 2>/dev/null; exec "$@"', "sh"]
    with recorder(tmp_path / "t", "--source", source, within=without) as ours:
        assert " tracefs " not in Path(f"/proc/{ours.process.pid}/mountinfo").read_text()
        child = run(sys.executable, "-c", "import os; print(os.getpid())")
        ours.stop()
    exits = [e["payload"]["tid"] for e in events_of(ours.output)[0] if e["name"] == "sched_process_exit"]
    assert int(child.stdout) in exits


@both_sources
def test_what_perf_has_of_the_same_time_is_in_the_recording(tmp_path: Path, source: str) -> None:
    perf = shutil.which("perf")
    if perf is None:
        pytest.skip("perf is not installed")
    handoff = tool("handoff")
    with recorder(tmp_path / "t", "--source", source) as ours:
        data = tmp_path / "perf.data"
        command: list[str | Path] = [*with_tracefs(), perf, "record", "-q", "-a", "-k", "CLOCK_MONOTONIC", "-m", "4096"]
        command += [
            "-o",
            data,
            "-e",
            "sched:sched_switch,sched:sched_wakeup,sched:sched_waking,sched:sched_process_fork",
        ]
        taken = run(*command, "--", handoff, "2", "500")
        if taken.returncode != 0:
            pytest.skip(f"perf cannot record here: {taken.stderr.strip()[:200]}")
        done = ours.stop()
    script = subprocess.run(
        [*with_tracefs(), perf, "script", "-i", data, "--ns", "-F", "cpu,time,event,trace"],
        capture_output=True, text=True, timeout=PATIENCE_S, check=True,
    )  # fmt: skip
    theirs = perf_events(script.stdout)
    if sum(key[1] == "sched_switch" for key in theirs) < 1000:
        pytest.skip("a BPF program at the scheduler's tracepoints kept their events from perf (docs/recording.md)")
    mine = our_events(events_of(ours.output)[0])
    missing = not_among(theirs, mine)
    print(
        f"{len(theirs)} events of perf, {len(mine)} of ours, {missing} of perf's missing in ours, lost {done['lost']}"
    )
    assert missing <= done["lost"]


Key = tuple[int, str, int, tuple[object, ...]]  # CPU, event, time, what it says


def not_among(theirs: list[Key], ours: list[Key]) -> int:
    """How many of theirs have none of ours. Each tracer takes its own time of an event."""
    tolerance_ns = 50_000_000
    times: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for cpu, name, at, what in sorted(ours, key=lambda key: key[2], reverse=True):
        times[(cpu, name, what)].append(at)  # the earliest last
    missing = 0
    for cpu, name, at, what in sorted(theirs, key=lambda key: key[2]):
        candidates = times[(cpu, name, what)]
        while candidates and candidates[-1] < at - tolerance_ns:
            candidates.pop()
        if candidates and candidates[-1] <= at + tolerance_ns:
            candidates.pop()
        else:
            missing += 1
    return missing


def perf_events(text: str) -> list[Key]:
    keys: list[Key] = []
    for line in text.splitlines():
        found = re.match(r"\[(\d+)\]\s+(\d+)\.(\d{9}):\s+sched:(\w+): (.*)", line.strip())
        assert found, line
        cpu, name, at = int(found[1]), found[4], int(found[2]) * 10**9 + int(found[3])
        numbers = dict(re.findall(r"(\w+)=(-?\d+)(?= |$)", found[5]))
        if name == "sched_switch":
            what: tuple[object, ...] = (int(numbers["prev_pid"]), int(numbers["next_pid"]), int(numbers["next_prio"]))
        elif name == "sched_process_fork":
            what = (int(numbers["pid"]), int(numbers["child_pid"]))
        else:
            what = (int(numbers["pid"]), int(numbers["prio"]), int(numbers["target_cpu"]))
        keys.append((cpu, name, at, what))
    return keys


def our_events(events: list[dict[str, Any]]) -> list[Key]:
    keys: list[Key] = []
    for event in events:
        p = event["payload"]
        if event["name"] == "sched_switch":
            what: tuple[object, ...] = (p["prev_tid"], p["next_tid"], p["next_prio"] + 100)
        elif event["name"] == "sched_process_fork":
            what = (p["parent_tid"], p["child_tid"])
        elif event["name"] in ("sched_wakeup", "sched_waking"):
            what = (p["tid"], p["prio"] + 100, p["target_cpu"])
        else:
            continue
        keys.append((event["cpu"], event["name"], event["time_ns"], what))
    return keys


@both_sources
def test_every_switch_that_threads_know_of_is_recorded_at_a_high_rate(tmp_path: Path, source: str) -> None:
    handoff = tool("handoff")
    with recorder(tmp_path / "t", "--source", source) as ours:
        ran = subprocess.run([handoff, "2", "20000"], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
        done = ours.stop()
    oracle = json.loads(ran.stdout)
    events, end = events_of(ours.output)
    assert end["events"] == done["events"] == len(events)
    seconds = (oracle["end_ns"] - oracle["begin_ns"]) / 1e9
    within = sum(oracle["begin_ns"] <= event["time_ns"] <= oracle["end_ns"] for event in events)
    print(f"{within} events in {seconds:.2f} s: {within / seconds:,.0f} per second; lost {done['lost']}")
    assert done["lost"] == 0, f"at {within / seconds:,.0f} events per second"
    voluntary: Counter[int] = Counter()
    involuntary: Counter[int] = Counter()
    for event in events:
        payload = event["payload"]
        # The last switch of a thread, of which it knows nothing, leaves it dead.
        if event["name"] != "sched_switch" or payload["prev_state"] & (16 | 32):
            continue
        of = voluntary if payload["prev_state"] & 0xFF else involuntary
        of[payload["prev_tid"]] += 1
    for thread in oracle["threads"]:
        # A thread reads its counts right before its end; it may be preempted on the way there.
        assert voluntary[thread["tid"]] - thread["voluntary"] in (0, 1), thread
        assert 0 <= involuntary[thread["tid"]] - thread["involuntary"] <= 5, thread
    assert not end["ledger"], end["ledger"]
    # It wakes for a part of a buffer, or now and then, and not for each event.
    own = sum(e["name"] == "sched_wakeup" and e["payload"]["tid"] == ours.process.pid for e in events)
    assert own < len(events) / 100, own


def test_both_readers_agree_on_every_event(tmp_path: Path) -> None:
    need_babeltrace2()
    if shutil.which("babeltrace2") is None:
        pytest.skip("babeltrace2 is not installed")
    with recorder(tmp_path / "t") as ours:
        subprocess.run([sys.executable, "-c", "import subprocess; subprocess.run(['true'])"], check=True)
        done = ours.stop()
    read = run("babeltrace2", ours.output)
    assert read.returncode == 0 and read.stderr == ""
    lines = read.stdout.splitlines()
    assert len(lines) == done["events"] == sum(done["by_event"].values())
    mine = Counter(event["name"] for event in events_of(ours.output)[0])
    theirs = Counter(re.search(r" (sched_\w+): ", line)[1] for line in lines)  # type: ignore[index]
    assert mine == theirs == Counter({k: v for k, v in done["by_event"].items() if v})


@both_sources
def test_events_have_lttng_s_names_types_and_priorities(tmp_path: Path, source: str) -> None:
    with recorder(tmp_path / "t", "--source", source) as ours:
        child = run(sys.executable, "-c", "import os; print(os.getpid())")
        ours.stop()
    events = events_of(ours.output)[0]
    pid = int(child.stdout)
    fork = [e["payload"] for e in events if e["name"] == "sched_process_fork" and e["payload"]["child_tid"] == pid]
    assert [(f["parent_pid"], f["child_pid"]) for f in fork] == [(os.getpid(), pid)]
    execs = [
        text_of(e["payload"]["filename"])
        for e in events
        if e["name"] == "sched_process_exec" and e["payload"]["tid"] == pid
    ]
    assert execs == [sys.executable]
    (gone,) = (e["payload"] for e in events if e["name"] == "sched_process_exit" and e["payload"]["tid"] == pid)
    assert gone["prio"] == 20 + os.nice(0)
    away = [e for e in events if e["name"] == "sched_switch" and e["payload"]["prev_tid"] == pid]
    assert away and all(e["stream_context"] == {"pid": pid, "tid": pid} for e in away)
    metadata = (ours.output / "metadata").read_text()
    assert 'domain = "kernel"' in metadata and 'tracer_name = "perflab-scheduler-recorder"' in metadata
    assert Path("/proc/sys/kernel/random/boot_id").read_text().strip() in metadata


@both_sources
def test_a_process_tree_is_all_that_is_kept(tmp_path: Path, source: str) -> None:
    code = "import subprocess,sys\nsys.stdin.readline()\nfor _ in range(3): subprocess.run(['sleep', '0.01'])\n"
    with (
        subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, text=True) as root,
        recorder(tmp_path / "t", "--source", source, "--root", str(root.pid)) as ours,
    ):
        root.communicate("go\n", timeout=PATIENCE_S)
        done = ours.stop()
    events = events_of(ours.output)[0]
    tree = {root.pid}
    for event in events:
        if event["name"] == "sched_process_fork" and event["payload"]["parent_tid"] in tree:
            tree.add(event["payload"]["child_tid"])
    assert len(tree) == 4
    for event in events:
        payload = event["payload"]
        if event["name"] in ("sched_switch", "perflab_cpu_held"):
            continue  # what others did on a CPU for which one of the tree waits is kept too
        assert {payload.get("tid"), payload.get("parent_tid"), payload.get("old_tid")} & tree, event
    exits = {e["payload"]["tid"] for e in events if e["name"] == "sched_process_exit"}
    assert exits == tree
    assert done["filtered_out"] > 0
    assert 'scheduler_filter = "process tree"' in (ours.output / "metadata").read_text()


@both_sources
def test_perflab_trace_knows_what_a_filtered_recording_leaves_out(tmp_path: Path, source: str) -> None:
    needs_library()
    handoff = tool("handoff")
    code = f"import subprocess,sys\nsys.stdin.readline()\nsubprocess.run([{str(handoff)!r}, '2', '1000'])\n"
    root = [sys.executable, "-c", code]
    with (
        subprocess.Popen(root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as tree,
        recorder(tmp_path / "t", "--source", source, "--root", str(tree.pid)) as ours,
    ):
        oracle = json.loads(tree.communicate("go\n", timeout=PATIENCE_S)[0])
        ours.stop()
    trace = open_trace([ours.output])
    assert trace.facts["scheduler"]["filter"] == "process tree"
    assert any("process trees" in warning for warning in trace.facts["warnings"])
    threads = trace.table("threads").with_row_index("thread")
    states = trace.table("thread_states").with_columns(pl.col("thread").cast(pl.UInt32))
    ran = states.filter(pl.col("state") == "running").join(threads, on="thread").group_by("tid").len()
    times_run = dict(ran.rows())
    for thread in oracle["threads"]:
        # Each switch away ends a time that it ran, and so does its end. A switch that no tracer saw may be missing.
        switches = thread["voluntary"] + thread["involuntary"] + 1
        assert abs(times_run[thread["tid"]] - switches) <= 5 + switches // 50, thread


@both_sources
def test_a_root_that_is_named_later_turns_the_filter_on(tmp_path: Path, source: str) -> None:
    with recorder(tmp_path / "t", "--source", source) as ours:
        ours.send(type="root", pid=os.getpid())
        ours.send(type="root", pid=2**31 - 2)
        gone = ours.next()
        assert gone["type"] == "gone" and gone["pid"] == 2**31 - 2
        subprocess.run(["sleep", "0.3"], check=True)
        done = ours.stop()
    assert 'scheduler_filter = "process tree"' in (ours.output / "metadata").read_text()
    assert done["filtered_out"] > 0
    kept = {e["payload"]["tid"] for e in events_of(ours.output)[0] if e["name"] == "perflab_thread_kept"}
    assert os.getpid() in kept


def test_the_flight_recorder_keeps_the_end(tmp_path: Path) -> None:
    handoff = tool("handoff")
    # What others do meanwhile must not fill it.
    with recorder(tmp_path / "t", "--flight-recorder", "262144", "--root", str(os.getpid())) as ours:
        subprocess.run([handoff, "2", "4000"], capture_output=True, timeout=PATIENCE_S, check=True)
        assert sum(f.stat().st_size for f in ours.output.glob("scheduler_*")) == 0
        last = run(sys.executable, "-c", "import os; print(os.getpid())")
        done = ours.stop()
    size = sum(f.stat().st_size for f in ours.output.glob("scheduler_*"))
    assert 0 < size < 2 * 262144
    events, end = events_of(ours.output)
    assert 0 < len(events) < done["events"] and not end["ledger"]
    assert any(e["name"] == "sched_process_exit" and e["payload"]["tid"] == int(last.stdout) for e in events)


def test_no_setting_of_the_kernel_is_changed_even_by_one_that_is_killed(tmp_path: Path) -> None:
    before = settings()
    with recorder(tmp_path / "a") as ours:
        assert settings() == before
        ours.stop()
    assert settings() == before
    with recorder(tmp_path / "b") as ours:
        ours.process.send_signal(signal.SIGKILL)
        ours.process.wait(PATIENCE_S)
    assert settings() == before
    assert not own_instances()


def test_what_was_written_before_a_kill_is_readable(tmp_path: Path) -> None:
    with recorder(tmp_path / "t") as ours:
        deadline = time.monotonic() + PATIENCE_S
        while not any(f.stat().st_size for f in ours.output.glob("scheduler_*")):
            assert time.monotonic() < deadline
            subprocess.run(["sleep", "0.05"], check=True)
        ours.process.kill()
        ours.process.wait(PATIENCE_S)
    events, end = events_of(ours.output)
    assert events and not end["ledger"]


def test_it_ends_with_its_parent(tmp_path: Path) -> None:
    source = f"""
import socket, subprocess, sys
ours, theirs = socket.socketpair()
fd = theirs.fileno()
p = subprocess.Popen([{str(program())!r}, "--output", sys.argv[1], "--control-fd", str(fd)], pass_fds=[fd])
print(p.pid, flush=True)
print(ours.makefile().readline().strip(), flush=True)
sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", source, str(tmp_path / "t")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pid, first = int(parent.stdout.readline()), json.loads(parent.stdout.readline())
        if first["type"] != "recording":
            parent.kill()
            pytest.skip(f"scheduler events cannot be recorded here: {first['text']}")
        parent.kill()
    deadline = time.monotonic() + PATIENCE_S
    while Path(f"/proc/{pid}").exists() and Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] != "Z":
        assert time.monotonic() < deadline, "it lives on"
        time.sleep(0.02)
    events, end = events_of(tmp_path / "t")
    assert events and not end["ledger"]


def test_a_full_disk_is_one_line_and_what_was_written_stays_readable(tmp_path: Path) -> None:
    handoff = tool("handoff")
    disk = tmp_path / "disk"
    disk.mkdir()
    if run("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk).returncode != 0:
        pytest.skip("no file system may be mounted here")
    try:
        with recorder(disk / "t") as ours:
            for _ in range(100):
                subprocess.run([handoff, "2", "2000"], capture_output=True, timeout=PATIENCE_S, check=True)
                if ours.process.poll() is not None:
                    break
            error = ours.next()
            assert error["type"] == "error" and error["kind"] == "failed"
            assert "scheduler_" in error["text"] and "No space left on device" in error["text"]
            assert ours.process.wait(PATIENCE_S) == 1
            assert ours.process.stderr is not None
            assert len(ours.process.stderr.read().splitlines()) == 1
        events, end = events_of(disk / "t")
        assert len(events) > 1000 and not end["ledger"]
    finally:
        subprocess.run(["umount", disk], check=True)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "usage"),
        (["--output", "x", "--source", "lttng"], "must be perf_event or ebpf"),
        (["--output", "x", "--buffer-bytes", "5000"], "power of two"),
        (["--output", "x", "--root", "0"], "must be a number from 1"),
        (["--output", "x", "--root", "2147483646"], "no such process"),
        (["--output", "/proc/none/x"], "--output /proc/none"),
        (["--output", "x", "--what"], "usage"),
    ],
)
def test_bad_input_is_one_line_and_status_2(tmp_path: Path, arguments: list[str], says: str) -> None:
    done = run(program(), *arguments, cwd=tmp_path)
    if done.returncode == 3:
        pytest.skip(f"scheduler events cannot be recorded here: {done.stderr.strip()}")
    assert done.returncode == 2 and says in done.stderr and len(done.stderr.splitlines()) == 1


def test_a_trace_is_not_written_over(tmp_path: Path) -> None:
    with recorder(tmp_path / "t") as ours:
        ours.stop()
    again = run(program(), "--output", tmp_path / "t")
    assert again.returncode == 2 and "metadata" in again.stderr and "exists" in again.stderr
    assert events_of(tmp_path / "t")[0]


def as_nobody(*command: str | Path) -> subprocess.CompletedProcess[str]:
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("only root can become another user, with setpriv")
    done = run("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *command)
    if "failed to execute" in done.stderr:
        pytest.skip(f"another user cannot run the program here: {done.stderr.strip()}")
    return done


def test_without_the_right_to_read_tracefs_it_says_the_command(tmp_path: Path) -> None:
    if (TRACING / "events").is_dir() and TRACING.stat().st_mode & 0o007:
        pytest.skip("everybody may read tracefs here")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # pytest's own folders are for its user alone
        done = as_nobody(shutil.copy(program(), folder), "--output", tmp_path / "t")
    assert done.returncode == 3, done.stderr
    assert len(done.stderr.splitlines()) == 1
    mounted = os.path.ismount(TRACING)
    assert str(TRACING) in done.stderr and ("sudo mount -o remount" if mounted else "sudo mount -t") in done.stderr


def test_two_capabilities_are_enough_for_ebpf() -> None:
    capabilities = "--inh-caps=+bpf,+perfmon", "--ambient-caps=+bpf,+perfmon"
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        done = as_nobody(*capabilities, shutil.copy(program(), folder), "--check", "--source", "ebpf")
    if "setpriv" in done.stderr:
        pytest.skip(f"capabilities cannot be given away here: {done.stderr.strip()}")
    assert (done.returncode, done.stderr) == (0, "")


def test_without_cap_perfmon_it_says_the_setting_and_its_value(tmp_path: Path) -> None:
    paranoid = int(Path("/proc/sys/kernel/perf_event_paranoid").read_text())
    if paranoid < 0:
        pytest.skip("everybody may record scheduler events here")
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("only root can give capabilities away, with setpriv")
    # tracefs may be read (the user is root), perf may not be used.
    lesser = (*with_tracefs(), "setpriv", "--bounding-set=-sys_admin,-perfmon", "--inh-caps=-all")
    done = run(*lesser, program(), "--output", tmp_path / "t")
    if done.returncode == 0 or "setpriv" in done.stderr:
        pytest.skip(f"capabilities cannot be taken away here: {done.stderr.strip()}")
    assert done.returncode == 3, done.stderr
    assert f"kernel.perf_event_paranoid is {paranoid}" in done.stderr
    assert "sudo sysctl kernel.perf_event_paranoid=-1" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "t").exists()
