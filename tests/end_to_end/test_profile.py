"""CPU profiles by the real perf: of a program whose shares are known, of processes that run, and in a run."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pytest

from perflab.errors import PerflabError
from perflab.processes import descendants, read_process
from perflab.profile import perf_data, record
from tests.said import finished

from .conftest import NATIVE, TIMEOUT_S, Json, Run, command, environment, started

LIMIT_S = 60.0
SIGMAS = 5

# Spends 70 and 30 per cent of its CPU time in two functions, as it measures itself, and says how much it was in ns.
BURN = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static volatile unsigned long sink;
static long long used(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}
#define BURNER(name) \
  __attribute__((noinline)) long long name(long long ns) { \
    const long long begin = used(); \
    while (used() - begin < ns) \
      for (int i = 0; i < 200000; ++i) sink += i; \
    return used() - begin; \
  }
BURNER(burn_seventy)
BURNER(burn_thirty)
static void* work(void* given) {
  const double seconds = *(double*)given;
  long long seventy = 0, thirty = 0;
  while (seventy + thirty < seconds * 1e9) {
    seventy += burn_seventy(14000000);
    thirty += burn_thirty(6000000);
  }
  printf("%lld %lld\n", seventy, thirty);
  return NULL;
}
int main(int count, char** words) {
  double seconds = count > 1 ? atof(words[1]) : 1.0;
  if (count > 2 && strcmp(words[2], "child") == 0) {  /* a process that is started when told so, and a thread of it */
    getchar();
    if (fork() != 0) return 0 * (int)sleep(1000);
    pthread_t thread;
    pthread_create(&thread, NULL, work, &seconds);
    pthread_join(thread, NULL);
    fflush(stdout);
    sleep(1000);
  }
  work(&seconds);
  return count > 2 ? atoi(words[2]) : 0;
}
"""


def usable() -> str | None:
    """Why perf cannot be used here; None where it can."""
    try:
        record.Plan.of(record.Settings())
    except PerflabError as error:
        return str(error)
    return None if shutil.which("cc") else "there is no C compiler"


WHY_NOT = usable()
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=f"{WHY_NOT}")


@pytest.fixture(scope="session")
def burn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("burn")
    folder.chmod(0o755)
    (folder / "burn.c").write_text(BURN)
    # As distributions build: without frame pointers.
    options = ["-O2", "-fomit-frame-pointer", "-pthread"]
    subprocess.run(["cc", *options, "-o", folder / "burn", folder / "burn.c"], check=True, timeout=TIMEOUT_S)
    return folder / "burn"


@pytest.fixture
def everybodys() -> Iterator[Path]:
    """A folder that every user may write to: pytest closes its own to others whenever another one starts."""
    with tempfile.TemporaryDirectory(prefix="perflab-everybodys-") as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


def document(folder: Path) -> Json:
    found: Json = json.loads((folder / "profile.json").read_text())
    return found


def shares(folder: Path) -> tuple[dict[str, float], int]:
    """Of the functions, with whatever they call, in the folded stacks; and the number of samples."""
    weights = {"burn_seventy": 0, "burn_thirty": 0}
    for line in (folder / "folded.txt").read_text().splitlines():
        stack, _, weight = line.rpartition(" ")
        for name in weights:
            weights[name] += int(weight) if name in stack.split(";") else 0
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}, document(folder)["quality"]["samples"]


def wait_for(what: str, condition: Callable[[], bool]) -> None:
    limit = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < limit, f"{what}: not within {LIMIT_S:.0f} s"
        time.sleep(0.05)


def of_perf(folder: Path) -> list[int]:
    """The processes of perf that write to a folder, by their command lines."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                words = (entry / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if str(folder) in words and "perf" in words and int(entry.name) != os.getpid():
                found.append(int(entry.name))
    return found


@contextmanager
def running(*words: str | Path) -> Iterator[subprocess.Popen[str]]:
    pipe = subprocess.PIPE
    with subprocess.Popen([*map(str, words)], stdin=pipe, stdout=pipe, text=True, start_new_session=True) as process:
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.alone
@pytest.mark.parametrize("call_graph", ["dwarf", "fp"])
def test_shares_are_those_that_the_program_measured_itself(
    run: Run, burn: Path, tmp_path: Path, call_graph: str
) -> None:
    done = run("profile", "--call-graph", call_graph, "-o", "out", "--", burn, "2")
    assert done.returncode == 0, done.stderr
    first, _, rest = done.stdout.partition("\n")
    seventy, thirty = map(int, first.split())
    found, samples = shares(tmp_path / "out")
    truth = seventy / (seventy + thirty)
    assert 0.6 < truth < 0.8
    sigma = (truth * (1 - truth) / samples) ** 0.5
    assert abs(found["burn_seventy"] - truth) < SIGMAS * sigma
    # The CPU time, too: one sample per millisecond, but for those that a busy host swallows.
    whole = document(tmp_path / "out")
    (process,) = [p for p in whole["processes"] if p["name"] == "burn"]
    if whole["unit"] == "ns":
        assert process["weight"] < 1.1 * (seventy + thirty) + 50_000_000
    assert process["families"][0]["family"] == "application"
    assert process["families"][0]["self_share"] > 0.8
    assert "CPU profile of" in rest and "application" in rest
    assert whole["quality"]["lost"] == 0 and whole["quality"]["complete"]
    assert whole["perf_cpu_ns"] is not None
    if call_graph == "dwarf":
        assert process["whole"] > 0.9


def test_the_status_of_the_command_is_told_and_its_output_goes_where_ours_does(run: Run, burn: Path) -> None:
    done = run("profile", "-o", "out", "--json", "--", burn, "0.2", "7")
    assert done.returncode == 1
    assert "exited with 7" in done.stderr
    found = json.loads(done.stdout)
    assert found["command"] == [str(burn), "0.2", "7"]
    assert sum(map(int, done.stderr.splitlines()[0].split())) >= 2e8, "with --json the command prints to stderr"


def test_children_are_profiled_too_and_a_duration_ends_all(run: Run, burn: Path, tmp_path: Path) -> None:
    done = run("profile", "-o", "out", "--", "sh", "-c", f"{burn} 0.1; {burn} 0.1")
    assert done.returncode == 0, done.stderr
    names = [(p["name"], p["samples"]) for p in document(tmp_path / "out")["processes"]]
    assert len([name for name, samples in names if name == "burn" and samples > 5]) == 2
    done = run("profile", "--duration", "1s", "-o", "ended", "--", burn, "1000")
    assert done.returncode == 0, done.stderr
    assert of_perf(tmp_path) == []


def test_a_process_that_runs_and_what_it_starts_later(burn: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with running(burn, "1", "child") as process:
        with started("profile", "--pid", str(process.pid), "--duration", "1000s", "-o", out) as profiled:
            log = out / "perf.log"
            wait_for("perf records", lambda: log.exists() and "Events enabled" in log.read_text())
            assert process.stdin is not None and process.stdout is not None
            print(file=process.stdin, flush=True)
            seventy, thirty = map(int, process.stdout.readline().split())
            # The thread has ended, its process has not: perf must not spin.
            time.sleep(4.0)
            profiled.send_signal(signal.SIGINT)
            assert profiled.wait(timeout=TIMEOUT_S) == 0
        assert read_process(process.pid) is not None, "it is left alone"
    found, samples = shares(out)
    truth = seventy / (seventy + thirty)
    assert samples > 100
    assert abs(found["burn_seventy"] - truth) < SIGMAS * (truth * (1 - truth) / samples) ** 0.5
    assert of_perf(tmp_path) == []


@pytest.mark.skipif(not (Path(NATIVE) / record.POLL).is_file(), reason=f"{record.POLL} was not built")
def test_perf_rests_when_a_thread_that_it_watches_has_ended(run: Run, tmp_path: Path) -> None:
    (tmp_path / "threads.py").write_text(
        "import sys, threading\n"
        "ended = threading.Event()\n"
        "thread = threading.Thread(target=ended.wait)\n"
        "thread.start()\n"
        "print('ready', flush=True)\n"
        "sys.stdin.readline()\n"
        "ended.set()\n"
        "sys.stdin.readline()\n"
    )
    out = tmp_path / "out"
    with running(sys.executable, tmp_path / "threads.py") as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        with started("profile", "--pid", str(process.pid), "--duration", "1000s", "-o", out) as profiled:
            log = out / "perf.log"
            wait_for("perf records", lambda: log.exists() and "Events enabled" in log.read_text())
            print(file=process.stdin, flush=True)
            time.sleep(5.0)
            profiled.send_signal(signal.SIGINT)
            assert profiled.wait(timeout=TIMEOUT_S) == 0
    whole = document(out)
    # Without the library it takes nearly all of a CPU.
    assert whole["perf_cpu_ns"] < 0.4 * (whole["ended_ns"] - whole["began_ns"])


def test_it_ends_when_the_processes_have_ended(burn: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with (
        running(burn, "1000") as process,
        started("profile", "--pid", str(process.pid), "--duration", "1000s", "-o", out) as profiled,
    ):
        log = out / "perf.log"
        wait_for("perf records", lambda: log.exists() and "Events enabled" in log.read_text())
        process.kill()
        assert profiled.wait(timeout=TIMEOUT_S) == 0
    whole = document(out)
    assert (whole["ended_ns"] - whole["began_ns"]) < 900e9


def test_a_process_that_is_not_there(run: Run, tmp_path: Path) -> None:
    with running("true") as process:
        process.wait(timeout=LIMIT_S)
        done = run("profile", "--pid", str(process.pid), "--duration", "1s", "-o", "out")
        assert done.returncode == 2
        assert done.stderr == f"perflab: --pid {process.pid}: there is no such process\n"
        assert not (tmp_path / "out").exists()


def test_a_profile_is_printed_again_and_sorted_by_other_rules(run: Run, burn: Path, tmp_path: Path) -> None:
    assert run("profile", "-o", "out", "--", burn, "0.5").returncode == 0
    (tmp_path / "mine.yaml").write_text(
        "families: [{name: hot, title: the hot part}]\nrules: [{family: hot, symbol: ^burn_seventy$}]\n"
    )
    first = run("profile", "--show", "out")
    assert first.returncode == 0 and "application" in first.stdout and "the hot part" not in first.stdout
    again = run("profile", "--show", "out", "--families", "mine.yaml", "--threads")
    assert again.returncode == 0 and "the hot part" in again.stdout and ", thread burn" in again.stdout
    table = pl.read_parquet(tmp_path / "out/families.parquet").filter(pl.col("tid").is_null())
    assert table.filter(pl.col("family") == "hot")["inclusive_share"].item() > 0.5
    (tmp_path / "out/perf.data").unlink()
    refused = run("profile", "--show", "out", "--families", "mine.yaml")
    assert refused.returncode == 2 and "no longer has perf.data" in refused.stderr


@pytest.mark.parametrize("what", ["perflab", "guard"])
def test_killed_nothing_is_left(burn: Path, tmp_path: Path, what: str) -> None:
    out = tmp_path / "out"
    with started("profile", "-o", out, "--", burn, "1000") as process:
        wait_for("perf runs the command", lambda: (out / "perf.data").exists() and len(of_perf(out)) > 0)
        below = of_perf(out)
        victim = process.pid
        if what == "guard":
            victim = next(
                pid for pid in below if "perflab-guard" in Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
            )
        os.kill(victim, signal.SIGKILL)
        process.wait(timeout=TIMEOUT_S)
    wait_for("perf and the command have ended", lambda: not of_perf(out))
    look = ["pgrep", "-f", f"^{burn} 1000"]
    wait_for("the command has ended", lambda: subprocess.run(look, check=False).returncode == 1)


def test_ctrl_c_ends_the_recording_and_it_is_analysed(burn: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with started("profile", "-o", out, "--", burn, "1000") as process:
        wait_for(
            "the program takes half a second of CPU time",
            lambda: any(p.name == "burn" and p.cpu_ns > 500_000_000 for p in descendants(process.pid)),
        )
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=TIMEOUT_S) == 0
    assert perf_data.read(out / "perf.data").complete
    assert document(out)["processes"][0]["name"] == "burn"
    assert of_perf(out) == []


def test_ctrl_c_reaches_what_a_shell_started(run: Run, tmp_path: Path) -> None:
    out, told = tmp_path / "out", tmp_path / "told"
    line = f"import signal, time; open({str(told)!r}, 'w').close()\ntime.sleep(1000)"
    inner = f"trap '' INT; {sys.executable} -c \"$0\"; echo $? > {told}"
    # Python makes SIGINT what it is for a program in a terminal; a shell's child inherits that it is ignored.
    line = f"import signal; signal.signal(signal.SIGINT, signal.default_int_handler); {line}"
    with started("profile", "-o", out, "--", "sh", "-c", inner, line) as process:
        wait_for("the inner program runs", told.exists)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=TIMEOUT_S) == 0
    assert told.read_text() in ("1\n", "130\n"), "ended by SIGINT, not by SIGKILL"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_user_without_rights_gets_user_space_or_one_line(burn: Path, everybodys: Path) -> None:
    """As nobody, who may read what root may, so that perflab is found wherever it is installed."""
    out = everybodys / "out"
    burn = Path(shutil.copy(burn, everybodys))
    rights = ["--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search"]
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *rights]

    def nobody(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        words = [*user, "env", "PYTHONDONTWRITEBYTECODE=1", f"HOME={everybodys}", *map(str, command(*arguments))]
        return finished(words, cwd=everybodys, env=environment(), stdin=subprocess.DEVNULL)

    # access(2) asks without the capability.
    asked = [*user, sys.executable, "-c", "import os, sys; sys.exit(not os.access(sys.argv[1], os.X_OK))"]
    if subprocess.run([*asked, Path(NATIVE) / "perflab-guard"], timeout=TIMEOUT_S, check=False).returncode != 0:
        pytest.skip(f"another user may not look into {NATIVE}")
    done = nobody("profile", "-o", out, "--", burn, "0.5")
    paranoid = int(Path("/proc/sys/kernel/perf_event_paranoid").read_text())
    if done.returncode == 3:
        assert f"kernel.perf_event_paranoid is {paranoid}" in done.stderr and "sudo sysctl" in done.stderr
        assert paranoid > 2 and not out.exists()
        return
    assert done.returncode == 0, done.stderr
    whole = document(out)
    assert whole["kernel"] == (paranoid < 2)
    assert any(f"perf_event_paranoid is {paranoid}" in note for note in whole["notes"]) == (paranoid >= 2)
    found, samples = shares(out)
    assert samples > 100 and found["burn_seventy"] > 0.5
    refused = nobody("profile", "--pid", "1", "--duration", "1s", "-o", everybodys / "other")
    assert refused.returncode == 3
    assert refused.stderr == "perflab: process 1 belongs to user 0: only root may profile it; use sudo\n"


def test_the_observer_profiles_the_workload_in_a_trial_of_its_own(run: Run, pingpong: Path, tmp_path: Path) -> None:
    done = run("run", pingpong, "-t", "2", "-o", "out", "-q", "--observer", "cpu_profile:keep_raw=off")
    assert done.returncode == 0, done.stderr
    plain, profiled = sorted((tmp_path / "out/trials").iterdir())
    assert not (plain / "profile").exists()
    trial = json.loads((profiled / "trial.json").read_text())
    assert trial["outcome"] == "success"
    whole = document(profiled / "profile")
    of_workload = {p["pid"] for p in trial["processes"].values()}
    assert {p["pid"] for p in whole["processes"]} <= of_workload == set(whole["pids"])
    assert whole["quality"]["samples"] > 0
    assert not (profiled / "profile/perf.data").exists()
    for artifact in trial["artifacts"]:
        assert Path(tmp_path / artifact["path"]).is_file()
    pages = [p["page"] for p in whole["processes"] if p["page"]]
    assert pages and all((profiled / "profile" / page).is_file() for page in pages)
    table = pl.read_parquet(profiled / "profile/families.parquet")
    assert {"cyclonedds", "perflab_runtime"} <= set(table["family"]) or {"fastdds"} <= set(table["family"])
    assert of_perf(tmp_path) == []


def test_the_observer_is_in_all_trials_if_told_so(run: Run, pingpong: Path, tmp_path: Path) -> None:
    done = run("run", pingpong, "-t", "1", "-o", "out", "--observer", "cpu_profile:trials=all,call_graph=fp")
    assert done.returncode == 0, done.stderr
    (trial,) = (tmp_path / "out/trials").iterdir()
    assert f"Flame graphs:  out/trials/{trial.name}/profile/index.html\n" in done.stdout
    assert (trial / "profile/perf.data").is_file()
    assert document(trial / "profile")["call_graph"] == "fp"
