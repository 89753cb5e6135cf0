"""`perflab trace record` with the real LTTng: what is recorded, what was lost, and that nothing is left behind."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from perflab import native
from perflab.tracer import lttng
from tests.said import finished

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = "liblttng-ust-cyg-profile.so"
LIMIT_S = 240
EVENTS = "lttng_ust_cyg_profile*"

PROGRAM = """
#include <cstdio>
#include <cstdlib>
volatile int sum = 0;
void step() { sum = sum + 1; }
int main(int, char** arguments) {
  for (int i = std::atoi(arguments[1]); i > 0; --i) step();
  std::puts("stepped");
  return std::atoi(arguments[2]);
}
"""

GRAPH = """
name: clock
processes:
  - name: clock
    nodes:
      - name: clock
        timers: [{name: tick, period: 10ms, publish: tick}]
        publishers: [{topic: tick, type: stamped100b}]
      - name: reader
        subscriptions: [{topic: tick, type: stamped100b}]
"""

pytestmark = pytest.mark.native


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Calls a function as often as its first argument says, and ends with the status that is its second."""
    for name, package in (("lttng", "lttng-tools"), ("lttng-sessiond", "lttng-tools"), ("g++", "g++")):
        if shutil.which(name) is None:
            pytest.skip(f"no {name}: install {package}")
    if LIBRARY not in subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=False).stdout:
        pytest.skip(f"no {LIBRARY}: install liblttng-ust-dev")
    try:
        native.find().program("perflab-guard")
    except Exception as error:  # noqa: BLE001 - whatever is missing is said
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("program")
    (folder / "steps.cpp").write_text(PROGRAM)
    path = folder / "steps"
    words = ["g++", "-O0", "-finstrument-functions", str(folder / "steps.cpp"), "-o", str(path)]
    subprocess.run(words, check=True, timeout=LIMIT_S)
    return path


@pytest.fixture
def daemon() -> Iterator[None]:
    """A session daemon that was there before; root can have one only."""
    lock = lttng.locked(fcntl.LOCK_EX)
    assert lock is not None, "these tests run within a recording"
    with lock, subprocess.Popen(["lttng-sessiond", "--no-kernel"]) as process:
        try:
            _until(lambda: lttng.answers({}) or process.poll() is not None)
            assert process.poll() is None, "another daemon runs; end it, or run this test where there is none"
            fcntl.flock(lock, fcntl.LOCK_SH)  # all recordings share this one
            yield
            fcntl.flock(lock, fcntl.LOCK_EX)  # nobody uses it any more
        finally:
            process.terminate()
            process.wait(LIMIT_S)


def perflab(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return finished([sys.executable, "-m", "perflab", *words], cwd=ROOT, timeout=LIMIT_S, env=os.environ | environment)


def record(output: Path, *words: str, command: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    return perflab(
        *("trace", "record", "--event", EVENTS, "--output", str(output), *words, "--"),
        *("env", f"LD_PRELOAD={LIBRARY}", *command),
    )


def steps(folder: Path) -> int:
    """How many calls of the function the trace has, by perflab's own reader."""
    answer = perflab("trace", "summary", str(folder), "--json")
    assert answer.returncode == 0, answer.stderr
    events = {row["event"]: row["n"] for row in json.loads(answer.stdout)["events"]["rows"]}
    return int(events["lttng_ust_cyg_profile:func_entry"]) - 1  # main


def processes(folder: Path) -> int:
    """How many processes said that they published."""
    answer = perflab("trace", "messages", str(folder), "--json")
    assert answer.returncode == 0, answer.stderr
    summary = json.loads(perflab("trace", "summary", str(folder), "--json").stdout)
    assert all(row["published"] > 0 for row in json.loads(answer.stdout)["messages"]["rows"])
    return len(summary["processes"]["rows"])


def sessions() -> str:
    listed = subprocess.run(["lttng", "--no-sessiond", "list"], capture_output=True, text=True, timeout=60, check=True)
    return listed.stdout


def recording(folder: Path) -> dict[str, object]:
    document: dict[str, object] = json.loads((folder / "recording.json").read_text())
    return document


def test_a_program_is_recorded(program: Path, tmp_path: Path) -> None:
    run = record(tmp_path / "trace", command=(str(program), "1000", "0"))
    assert run.returncode == 0, run.stderr
    assert run.stdout == "stepped\n"
    assert f"perflab trace summary {tmp_path / 'trace'}" in run.stderr
    counted = json.loads(perflab("trace", "summary", str(tmp_path / "trace"), "--json").stdout)["overview"]["rows"][0]
    assert f": {counted['events']:,} events of user space (LTTng); " in run.stderr
    assert steps(tmp_path / "trace") == 1000
    document = recording(tmp_path / "trace")
    assert document["command"] == ["env", f"LD_PRELOAD={LIBRARY}", str(program), "1000", "0"]
    assert document["user_space"]["discarded_events"] == 0  # type: ignore[index]
    assert document["scheduler"] is None
    assert not (tmp_path / "trace" / lttng.RECORD).exists()


def test_a_program_without_tracepoints_is_said_to_be_one(program: Path, tmp_path: Path) -> None:
    run = perflab("trace", "record", "--output", str(tmp_path / "trace"), "--", "true")
    assert run.returncode == 0, run.stderr
    assert "no user-space events were recorded" in run.stderr
    assert "next:" not in run.stderr, "there is no trace to read"


def test_the_status_of_the_command_is_told_and_the_trace_is_kept(program: Path, tmp_path: Path) -> None:
    run = record(tmp_path / "trace", command=(str(program), "10", "7"))
    assert run.returncode == 1
    assert "exited with status 7" in run.stderr.splitlines()[-1]
    assert steps(tmp_path / "trace") == 10


def test_what_is_lost_is_told(program: Path, tmp_path: Path) -> None:
    wanted = 500_000
    run = record(tmp_path / "trace", "--buffer", "32kB", command=(str(program), str(wanted), "0"))
    assert run.returncode == 0, run.stderr
    user_space = recording(tmp_path / "trace")["user_space"]
    discarded = user_space["discarded_events"]  # type: ignore[index]
    assert discarded > 0
    assert f"LTTng discarded {discarded:,} user-space events" in run.stderr
    # Entry and exit of each call and of main, and what else the library says.
    assert steps(tmp_path / "trace") < wanted
    summary = json.loads(perflab("trace", "summary", str(tmp_path / "trace"), "--json").stdout)
    assert any("discarded" in line or "lost" in line for line in summary["quality"])


def test_a_flight_recorder_keeps_the_end(program: Path, tmp_path: Path) -> None:
    run = record(tmp_path / "trace", "--snapshot", "--buffer", "64kB", command=(str(program), "200000", "0"))
    assert run.returncode == 0, run.stderr
    kept = steps(tmp_path / "trace")
    assert 0 < kept < 200_000
    assert recording(tmp_path / "trace")["user_space"]["mode"] == "snapshot"  # type: ignore[index]


def test_it_ends_after_its_duration(program: Path, tmp_path: Path) -> None:
    run = record(tmp_path / "trace", "--duration", "1s", command=("sh", "-c", f"{program} 5 0; exec sleep 1000"))
    assert run.returncode == 0, run.stderr
    assert steps(tmp_path / "trace") == 5


def test_a_daemon_that_runs_is_used_and_its_session_taken_away(daemon: None, program: Path, tmp_path: Path) -> None:
    run = record(tmp_path / "trace", command=(str(program), "100", "0"))
    assert run.returncode == 0, run.stderr
    assert recording(tmp_path / "trace")["user_space"]["daemon"] == "running"  # type: ignore[index]
    assert steps(tmp_path / "trace") == 100
    assert str(tmp_path) not in sessions()


def test_a_killed_recording_leaves_no_session(daemon: None, program: Path, tmp_path: Path) -> None:
    _kill_recording(tmp_path)
    _until(lambda: str(tmp_path) not in sessions())


def test_a_killed_recording_leaves_no_daemon_and_no_command(program: Path, tmp_path: Path) -> None:
    mark = f"{tmp_path.name}-sleeper"
    _kill_recording(tmp_path, mark)
    _until(lambda: mark not in _commands())
    document = tmp_path / "trace" / lttng.RECORD
    home = json.loads(document.read_text())["home"]
    if home is not None:  # a daemon of its own
        _until(lambda: home["path"] not in _environments())
        _until(lambda: not Path(home["path"]).exists())


def test_a_run_within_a_recording_joins_it_and_says_its_own_events(program: Path, tmp_path: Path) -> None:
    outer, run_folder = tmp_path / "outer", tmp_path / "run"
    graph = tmp_path / "clock.yaml"
    graph.write_text(GRAPH)
    recorded = perflab(
        *("trace", "record", "--output", str(outer), "--", sys.executable, "-m", "perflab", "run", str(graph)),
        *(
            "--time",
            "0.3",
            "--warmup",
            "0.1",
            "--cool-down",
            "0",
            "--observer",
            "tracing:scheduler=none",
            "--output",
            str(run_folder),
        ),
    )
    assert recorded.returncode == 0, recorded.stderr
    inner = next(run_folder.glob("trials/*/trace"))
    assert recording(inner)["user_space"]["daemon"] == "running"  # type: ignore[index]
    assert processes(inner) == 1
    assert processes(outer) == 2, "the trial that the observer does not trace is in it, too"
    untraced = json.loads(next(run_folder.glob("trials/0001*/trial.json")).read_text())
    assert any("perflab ran inside of the recorded trace" in note for note in untraced["notes"])


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--scheduler-from", "strace", "--", "true"], "--scheduler-from 'strace' is not one of"),
        (["--buffer", "many", "--", "true"], "--buffer: 'many' is not a size"),
        (["--duration", "soon", "--", "true"], "--duration"),
        (["--output", ".", "--", "true"], "exists and is not an empty folder"),
        (["--output", "/proc/x", "--", "true"], "--output /proc/x: "),
        (["--buffer", "99999GB", "--", "true"], "the buffers of user space would take 294912 GiB"),
        (["--context", "bogus", "--", "true"], "LTTng has no context 'bogus'"),
        (["--", "/no/such/program"], "/no/such/program"),
        (["--", "/etc/passwd"], "'/etc/passwd' is not executable"),
    ],
)
def test_bad_input_is_one_line(program: Path, tmp_path: Path, words: list[str], line: str) -> None:
    place = [] if "--output" in words else ["--output", str(tmp_path / "trace")]
    run = perflab("trace", "record", *place, *words)
    assert run.returncode in (2, 3)
    assert line in run.stderr
    assert len(run.stderr.splitlines()) == 1


def test_without_lttng_it_says_what_to_install(program: Path, tmp_path: Path) -> None:
    run = perflab("trace", "record", "--output", str(tmp_path / "trace"), "--", "true", PATH=str(tmp_path))
    assert run.returncode == 3
    assert "install it with: apt-get install lttng-tools" in run.stderr
    assert not (tmp_path / "trace").exists()


def _kill_recording(tmp_path: Path, mark: str = "sleeper") -> None:
    trace = tmp_path / "trace"
    command = ["sh", "-c", f"echo begun; sleep 1000; : {mark}"]
    process = subprocess.Popen(
        [sys.executable, "-m", "perflab", "trace", "record", "--output", str(trace), "--", *command],
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"begun\n"
    process.send_signal(signal.SIGKILL)
    process.wait(LIMIT_S)
    process.stdout.close()


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.2)


def _commands() -> str:
    return _of_all_processes("cmdline")


def _environments() -> str:
    return _of_all_processes("environ")


def _of_all_processes(file: str) -> str:
    found = []
    for path in Path("/proc").glob(f"[0-9]*/{file}"):
        try:
            found.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return "\n".join(found)
