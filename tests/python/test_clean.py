"""What a killed perflab left: exactly what its run recorded is ended and removed, and nothing that is like it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from support import SOURCE

from perflab import processes
from perflab.errors import BadInput
from perflab.experiment import clean, shared_memory
from perflab.host import Host
from perflab.processes import read_process
from perflab.runs.controller import ELSEWHERE, controller_state
from perflab.runs.rundir import RunDirectory

HOST = Host()
WAIT_S = 30.0

Spawn = Callable[[str], "subprocess.Popen[bytes]"]
Perflab = Callable[..., "subprocess.CompletedProcess[str]"]


def ticks(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


def until(condition: Callable[[], bool]) -> None:
    limit = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < limit, "it did not come to that"
        time.sleep(0.01)


@pytest.fixture
def spawn() -> Iterator[Spawn]:
    """Starts a shell command in a session of its own; whatever is left of it at the end is killed."""
    started: list[subprocess.Popen[bytes]] = []

    def start(script: str) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(["sh", "-c", script], start_new_session=True, stdout=subprocess.PIPE))
        return started[-1]

    yield start
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def controller(**changes: Any) -> dict[str, Any]:
    """Of a perflab that is gone: the number of one that lives, but another start."""
    return {"pid": os.getpid(), "start_ticks": ticks(os.getpid()) - 1, "boot_id": HOST.boot_id(), **changes}


def make_run(path: Path, trial: dict[str, Any] | None = None, **manifest: Any) -> Path:
    """A run with one trial that was running."""
    folder = path / "trials/0001_baseline"
    (folder / "processes").mkdir(parents=True)
    document = {"schema": 1, "trial": 1, "order": 1, "status": "running", "outcome": None, "reason": None}
    document |= {"workload": "w", "middleware": {"name": "m"}, "duration_s": 1, "processes": {}, **(trial or {})}
    (folder / "trial.json").write_text(json.dumps(document))
    usual = {"settings": {}, "workload": {"name": "w"}, "middlewares": [], "trials": [], "preflight": []}
    host = {"hostname": HOST.facts()["hostname"]}
    manifest = {"schema": 1, "run": path.name, **usual, "controller": controller(), "host": host, **manifest}
    (path / "manifest.json").write_text(json.dumps(manifest))
    return path


def process(popen: subprocess.Popen[bytes], **more: Any) -> dict[str, Any]:
    return {"pid": popen.pid, "start_ticks": ticks(popen.pid), **more}


def cleaned(run: Path) -> list[str]:
    removals = clean.remove(clean.find([run], HOST), HOST)
    assert [removal.problem for removal in removals if removal.problem] == []
    return [removal.text for removal in removals]


def trial_of(run: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((run / "trials/0001_baseline/trial.json").read_text())
    return document


def tree(run: Path) -> list[str]:
    return sorted(str(p.relative_to(run)) for p in run.rglob("*") if p.is_file())


def test_a_recorded_process_is_ended_and_the_trial_marked(tmp_path: Path, spawn: Spawn) -> None:
    node = spawn("exec sleep 1000")
    run = make_run(tmp_path / "r", {"processes": {"ping": process(node)}})
    assert cleaned(run) == [
        f"ended process ping (pid {node.pid}) of trial 0001_baseline",
        "marked trial 0001_baseline harness_error: perflab ended before the trial did",
    ]
    assert node.wait(WAIT_S) == -signal.SIGTERM
    assert (trial_of(run)["status"], trial_of(run)["interrupted"]) == ("finished", True)
    assert cleaned(run) == []


def test_companions_end_with_all_their_descendants_even_those_that_hold_out(tmp_path: Path, spawn: Spawn) -> None:
    load = spawn("trap '' TERM; (sleep 1000 & echo orphan $!) ; sleep 1000 & echo child $!; while :; do sleep 1; done")
    assert load.stdout is not None
    pids = [int(load.stdout.readline().split()[1]) for _ in range(2)]
    run = make_run(tmp_path / "r", {"companions": [process(load, name="cpu_load")]})
    texts = cleaned(run)
    assert texts[0].startswith(f"ended process cpu_load (pid {load.pid}) of trial 0001_baseline and ")
    assert load.wait(WAIT_S) == -signal.SIGKILL
    for pid in pids:
        until(lambda pid=pid: read_process(pid) is None)  # type: ignore[misc]


def test_orphans_of_a_companion_are_known_by_its_mark(tmp_path: Path, spawn: Spawn) -> None:
    orphan = spawn("export PERFLAB_COMPANION=mark-of-this-test; (setsid sleep 1000 & echo $!)")
    assert orphan.stdout is not None
    pid = int(orphan.stdout.readline())
    orphan.wait(WAIT_S)
    until(lambda: b"mark-of-this-test" in Path(f"/proc/{pid}/environ").read_bytes())
    gone = {"name": "io_load", "pid": orphan.pid, "start_ticks": 1, "guard": None, "mark": "mark-of-this-test"}
    run = make_run(tmp_path / "r", {"companions": [gone]})
    assert cleaned(run)[0] == f"ended process io_load (pid {pid}) of trial 0001_baseline"
    until(lambda: read_process(pid) is None)


def test_a_number_that_somebody_else_has_by_now_is_never_hit(tmp_path: Path, spawn: Spawn) -> None:
    somebody = spawn("exec sleep 1000")
    recorded = {"pid": somebody.pid, "start_ticks": ticks(somebody.pid) - 1}
    run = make_run(tmp_path / "r", {"processes": {"a": recorded}, "companions": [{"name": "b", **recorded}]})
    assert [left.kind for left in clean.find([run], HOST)] == ["trial"]
    stale = processes.Process(recorded["pid"], recorded["start_ticks"])
    with pytest.raises(Exception, match="had already ended"):
        clean.end_process(stale, "it")
    assert somebody.poll() is None


@pytest.mark.parametrize("incomplete", [{"pid": None}, {"start_ticks": None}, {"pid": "1"}])
def test_a_process_without_its_whole_identity_is_left_alone(
    tmp_path: Path, spawn: Spawn, incomplete: dict[str, Any]
) -> None:
    node = spawn("exec sleep 1000")
    run = make_run(tmp_path / "r", {"processes": {"ping": process(node) | incomplete}})
    cleaned(run)
    assert node.poll() is None


def test_processes_of_another_boot_are_not_those_of_this_one(tmp_path: Path, spawn: Spawn) -> None:
    node = spawn("exec sleep 1000")
    run = make_run(tmp_path / "r", {"processes": {"ping": process(node)}}, controller=controller(boot_id="before"))
    assert cleaned(run) == ["marked trial 0001_baseline harness_error: perflab ended before the trial did"]
    assert node.poll() is None
    resumed = make_run(tmp_path / "resumed", {"boot_id": "before", "processes": {"ping": process(node)}})
    assert len(cleaned(resumed)) == 1
    assert node.poll() is None


def test_perflab_does_not_end_itself_nor_what_it_descends_from(tmp_path: Path, spawn: Spawn) -> None:
    run = tmp_path / "r"
    os.mkfifo(tmp_path / "go")
    program = f"from perflab.cli.clean import clean; clean(['{run}'])"
    command = f'PYTHONPATH={SOURCE} {sys.executable} -c "{program}" 2>&1'
    shell = spawn(f"read go < {tmp_path / 'go'}; {command}; echo still here")
    make_run(run, {"companions": [process(shell, name="shell")]})
    (tmp_path / "go").write_text("go\n")
    output, _ = shell.communicate(timeout=WAIT_S)
    assert b"does not end" in output
    assert output.endswith(b"still here\n")


def test_a_run_whose_perflab_is_alive_is_not_touched(tmp_path: Path, spawn: Spawn) -> None:
    node = spawn("exec sleep 1000")
    run = make_run(
        tmp_path / "r",
        {"processes": {"ping": process(node)}},
        controller=controller(start_ticks=ticks(os.getpid())),
    )
    (run / ".reserve").touch()
    assert clean.find([run], HOST) == []


def test_a_run_that_is_resumed_between_finding_and_removing_is_not_touched(tmp_path: Path, spawn: Spawn) -> None:
    node = spawn("exec sleep 1000")
    run = make_run(tmp_path / "r", {"processes": {"ping": process(node)}})
    found = clean.find([run], HOST)
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["controller"]["start_ticks"] = ticks(os.getpid())
    (run / "manifest.json").write_text(json.dumps(manifest))
    assert {removal.problem for removal in clean.remove(found, HOST)} == {"the run is in progress"}
    assert node.poll() is None
    assert trial_of(run)["status"] == "running"


@pytest.mark.parametrize(
    "elsewhere",
    [
        {"controller": controller(pid_namespace="pid:[1]")},
        {"controller": controller(boot_id="other"), "host": {"hostname": "another-machine"}},
    ],
)
def test_a_run_of_another_container_or_machine_is_not_touched(tmp_path: Path, elsewhere: dict[str, Any]) -> None:
    run = make_run(tmp_path / "r", **elsewhere)
    (run / ".reserve").touch()
    before = tree(run)
    assert controller_state(RunDirectory(run, created=False).read_manifest(), HOST) == ELSEWHERE
    assert cleaned(run) == []
    assert tree(run) == before


def test_the_own_namespace_is_no_other(tmp_path: Path) -> None:
    assert len(cleaned(make_run(tmp_path / "r", controller=controller(pid_namespace=processes.pid_namespace())))) == 1


def test_shared_memory_of_a_trial_that_was_running_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shm = tmp_path / "shm"
    shm.mkdir()
    for name in ("mine", "others"):
        (shm / name).touch()
    monkeypatch.setattr(shared_memory, "FOLDER", shm)
    names = ["mine", "gone", "../r/manifest.json", ""]
    run = make_run(tmp_path / "r", {"processes": {"ping": {"pid": 1, "shared_memory": names}}})
    assert cleaned(run)[0] == "removed shared memory mine of trial 0001_baseline"
    assert [p.name for p in shm.iterdir()] == ["others"]
    finished = make_run(
        tmp_path / "f", {"status": "finished", "processes": {"ping": {"pid": 1, "shared_memory": ["others"]}}}
    )
    assert cleaned(finished) == []


def home(folder: Path, more: int = 0, **changes: Any) -> dict[str, Any]:
    """A folder as an observer records it."""
    status = folder.stat()
    return {"path": str(folder), "st_dev": status.st_dev, "st_ino": status.st_ino + more, **changes}


def record(run: Path, homes: Sequence[Any]) -> None:
    """What observers of the trial recorded, each in a folder of its own."""
    for number, one in enumerate(homes):
        folder = run / f"trials/0001_baseline/observer_{number}"
        folder.mkdir()
        (folder / "session.json").write_text(json.dumps({"session": "somebody's", "home": one}))


def test_temporary_folders_are_known_by_their_place_or_their_identity(tmp_path: Path) -> None:
    run = tmp_path / "r"
    inside, recorded, replaced, foreign = (
        run / "trials/0001_baseline/cpu_load/temp",
        tmp_path / "elsewhere",
        tmp_path / "replaced",
        tmp_path / "foreign",
    )
    for folder in (recorded, replaced, foreign):
        folder.mkdir()
        (folder / "file").touch()

    make_run(run)
    other = run / "trials/0001_baseline/other"
    for folder in (inside, other):
        folder.mkdir(parents=True)
    homes = [
        home(inside),
        home(recorded),
        home(replaced, 1),
        {"path": str(foreign)},
        home(other, path="trials/0001_baseline/other"),
    ]
    record(run, homes)
    assert cleaned(run)[:3] == [
        f"removed temporary folder {folder} of trial 0001_baseline" for folder in (inside, recorded, other)
    ]
    assert not inside.exists()
    assert not recorded.exists()
    assert (replaced / "file").exists()
    assert (foreign / "file").exists()


def test_folders_of_conditions_go_with_their_records(tmp_path: Path) -> None:
    run = make_run(tmp_path / "r")
    folders = [run / f"trials/0001_baseline/{label}/temporary" for label in ("io_load", "replaced")]
    for more, folder in enumerate(folders):
        folder.mkdir(parents=True)
        (folder / "file").touch()
        record = {"schema": 1, "device": folder.stat().st_dev, "inode": folder.stat().st_ino + more}
        (folder.parent / "temporary.json").write_text(json.dumps(record))
    assert cleaned(run)[0] == f"removed temporary folder {folders[0]} of trial 0001_baseline"
    assert not folders[0].parent.exists()
    assert (folders[1] / "file").exists()


@pytest.mark.parametrize(
    "name", ["", ".", "trials", "trials/0001_baseline", "trials/0001_baseline/processes", "link", "a/../../x", "a\0b"]
)
def test_what_is_no_temporary_folder_of_the_run_stays(tmp_path: Path, name: str) -> None:
    (tmp_path / "x").mkdir()
    run = make_run(tmp_path / "r")
    (run / "a").mkdir()
    (run / "link").symlink_to(tmp_path / "x")
    there = run / name if "\0" not in name and (run / name).exists() else run
    record(run, [7, None, {}, {"path": name}, {"path": 7}, home(there, path=name)])
    before = tree(run)
    assert len(cleaned(run)) == 1  # the trial is marked
    assert tree(run) == before
    assert (tmp_path / "x").is_dir()


def test_another_boot_names_no_folder_outside_the_run(tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    run = make_run(tmp_path / "r", controller=controller(boot_id="before"))
    record(run, [home(folder)])
    cleaned(run)
    assert folder.is_dir()


def test_half_written_files_go_and_files_of_others_stay(tmp_path: Path) -> None:
    run = make_run(tmp_path / "r", {"processes": {"ping": {"pid": None}}})
    trial = run / "trials/0001_baseline"
    ours = [run / ".summary.json.tmp", trial / ".trial.json.tmp", trial / ".edges.parquet.tmp"]
    ours += [trial / "processes/.ping.config.json.tmp", run / ".reserve"]
    others = [run / ".notes.tmp", trial / ".x.tmp", trial / "processes/.pong.config.json.tmp", run / "summary.json.tmp"]
    for path in (*ours, *others):
        path.touch()
    assert len(cleaned(run)) == len(ours) + 1
    assert not any(path.exists() for path in ours)
    assert all(path.exists() for path in others)


def test_a_trial_whose_process_cannot_be_ended_keeps_the_rest(
    tmp_path: Path, spawn: Spawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = spawn("exec sleep 1000")
    run = make_run(tmp_path / "r", {"processes": {"ping": process(node)}})
    (run / ".reserve").touch()

    def refuse(pidfd: int, signum: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(signal, "pidfd_send_signal", refuse)
    problems = [removal.problem for removal in clean.remove(clean.find([run], HOST), HOST)]
    assert problems == ["Operation not permitted", "a part of its trial could not be removed", None]
    assert trial_of(run)["status"] == "running"
    assert not (run / ".reserve").exists()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"controller": 7}'])
def test_a_damaged_manifest_is_bad_input(tmp_path: Path, text: str) -> None:
    run = make_run(tmp_path / "r")
    (run / "manifest.json").write_text(text)
    with pytest.raises(BadInput, match="damaged"):
        clean.find([run], HOST)


def test_a_damaged_trial_records_nothing_to_go_by(tmp_path: Path) -> None:
    run = make_run(tmp_path / "r")
    (run / "trials/0001_baseline/trial.json").write_text("{")
    (run / "trials/0002_baseline").mkdir()
    assert clean.find([run], HOST) == []
