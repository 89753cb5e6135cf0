"""How a command ends when its surroundings do not cooperate: Ctrl-C at any instant, damaged runs, odd streams."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from conftest import Perflab
from support import SOURCE, run_here, two_processes

from perflab.cli import main
from perflab.errors import BadInput
from perflab.formats import tables
from perflab.runs import rundir
from tests.marks import long_but
from tests.schemas import published

DEEP = "[" * 200_000

Change = Callable[[dict[str, Any]], object]


@pytest.fixture(scope="module")
def finished_once(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    (folder / "small.json").write_text(json.dumps(two_processes()))
    done = run_here(["run", "small.json", "-t", "0.2", "-s", "0.1", "-o", "run", "-q"], folder, environment)
    assert (done.returncode, done.stderr) == (0, "")
    return folder / "run"


@pytest.fixture
def finished(finished_once: Path, tmp_path: Path) -> Path:
    """The directory of a run that went well, to be damaged."""
    return Path(shutil.copytree(finished_once, tmp_path / "run"))


def test_ctrl_c_while_the_tables_are_written_leaves_a_whole_run(
    graph_file: Path, tmp_path: Path, environment: dict[str, str], perflab_process: Perflab
) -> None:
    # Every table sends the signal from within polars' own write.
    hook = tmp_path / "hook"
    hook.mkdir()
    (hook / "sitecustomize.py").write_text(
        "import os, signal\n"
        "from perflab.formats import tables\n"
        "whole = tables._write_whole\n"
        "def write(path, table):\n"
        "    collect = type(table).write_parquet\n"
        "    def interrupted(*a, **k):\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "        return collect(*a, **k)\n"
        "    type(table).write_parquet = interrupted\n"
        "    try:\n"
        "        whole(path, table)\n"
        "    finally:\n"
        "        type(table).write_parquet = collect\n"
        "tables._write_whole = write\n"
    )
    out = tmp_path / "run"
    python_path = f"{hook}{os.pathsep}{environment['PYTHONPATH']}"
    done = perflab_process("run", graph_file, "-t", "0.2", "-s", "0.1", "-o", out, "-q", PYTHONPATH=python_path)
    assert (done.returncode, done.stderr) == (130, "perflab: interrupted by SIGINT\n")
    summary = json.loads((out / "summary.json").read_text())
    published("summary").validate(summary)
    assert summary["valid"] is True
    assert len(list(out.glob("trials/*/*.parquet"))) == 8
    assert not list(out.rglob(".*"))


def test_sigint_is_ours_while_tables_are_written(tmp_path: Path) -> None:
    """In a process of its own: what polars does about SIGINT it does once, when it is imported."""
    script = """
import os, signal, sys, threading, time
from pathlib import Path
from perflab.signals import Signals
from perflab.formats import tables
with Signals() as signals:
    tables.write(Path(sys.argv[1]), None, [])
    import polars as pl
    table = pl.DataFrame({"a": range(2_000_000)})
    threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGINT)).start()
    deadline = time.monotonic() + 30
    while signals.received is None and time.monotonic() < deadline:
        tables._write_whole(Path(sys.argv[1], "big.parquet"), table)
    print(signals.received)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{int(signal.SIGINT)}\n", "")
    assert pl.read_parquet(tmp_path / "big.parquet").height == 2_000_000
    assert tables.of(None, [])["edges"].height == 0


def test_ctrl_c_in_a_command_is_one_line(perflab: Perflab, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(word: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(rundir, "open_run", interrupted)
    done = perflab("show", "x")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "perflab: interrupted\n")


@pytest.mark.parametrize(
    "start", [["-m", "perflab"], ["-c", "import sys; from perflab.cli import main; sys.exit(main())"]]
)
@pytest.mark.parametrize("module", ["typer", "perflab.cli.app"])
def test_ctrl_c_during_the_imports_is_one_line(
    tmp_path: Path, environment: dict[str, str], module: str, start: list[str]
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}:\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupt())\n"
    )
    done = subprocess.run(
        [sys.executable, *start, "list"],
        env={**environment, "PYTHONPATH": f"{tmp_path}{os.pathsep}{SOURCE}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "perflab: interrupted\n")


def _document(**members: Any) -> Change:
    def change(document: dict[str, Any]) -> None:
        document.clear()
        document.update(members)

    return change


def _rewrite(path: Path, change: Change | str) -> None:
    if isinstance(change, str):
        path.write_text(change)
        return
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


DAMAGES: list[Change | str] = [
    DEEP,
    _document(schema=2, results=[]),
    _document(schema=1),
    _document(schema=1, results={}),
    _document(schema=1, results=[{}]),
    _document(schema=1, results=[3]),
    lambda s: s["results"][0]["totals"]["latency_ns"].update(p50="x"),
    lambda s: s["results"][0]["edges"][1].pop("topic"),
    lambda s: s["results"][0]["edges"][-1].update(late="many"),
]


@pytest.mark.parametrize("change", long_but([DAMAGES[0], DAMAGES[-1]], DAMAGES))
def test_a_damaged_summary_is_made_anew_from_the_records(
    perflab: Perflab, finished: Path, change: Change | str
) -> None:
    before = json.loads((finished / "summary.json").read_text())
    _rewrite(finished / "summary.json", change)
    shown = perflab("show", finished)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert f"Note: {finished}/summary.json is damaged" in shown.stdout.replace("\n", " ")
    assert "50 of 50 messages received" in shown.stdout
    assert json.loads(perflab("show", finished, "--json").stdout) == before
    shutil.rmtree(finished / "trials/0001_baseline/processes")
    (finished / "trials/0001_baseline/trial.json").write_text("{}")
    for option in ([], ["--json"]):
        shown = perflab("show", finished, *option)
        assert (shown.returncode, shown.stdout) == (2, "")
        assert "0001_baseline/trial.json is damaged: it lacks order" in shown.stderr
        assert shown.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "change",
    [
        DEEP,
        _document(),
        _document(schema=2),
        _document(schema=1),
        lambda m: m.update(middlewares=None),
        lambda m: m.update(middlewares=[3]),
        lambda m: m.update(preflight=[{}]),
    ],
)
def test_a_damaged_manifest_is_bad_input(perflab: Perflab, finished: Path, change: Change | str) -> None:
    _rewrite(finished / "manifest.json", change)
    for option in ([], ["--json"]):
        shown = perflab("show", finished, *option)
        assert (shown.returncode, shown.stdout) == (2, "")
        assert shown.stderr.startswith(f"perflab: {finished}/manifest.json is damaged")
        assert shown.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["received", "first_sequence", "frequency_hz", "max_at_ns"])
def test_text_in_a_number_of_the_records_is_bad_input(perflab: Perflab, finished: Path, name: str) -> None:
    (finished / "summary.json").unlink()
    for path in finished.glob("trials/*/processes/*.jsonl"):
        records = [json.loads(line) for line in path.read_text().splitlines()]
        for record in records:
            for edge in record.get("edges", ()):
                for owner in (edge, edge["latency"]):
                    owner.update({name: "x"} if name in owner else {})
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    shown = perflab("show", finished)
    assert (shown.returncode, shown.stdout) == (2, "")
    assert f"{finished}/trials" in shown.stderr
    assert "is damaged" in shown.stderr
    assert shown.stderr.count("\n") == 1


@pytest.mark.parametrize(("kind", "member"), [("threads", "policy"), ("passing", "copies")])
def test_records_of_threads_and_passing_that_lack_a_member_are_a_harness_error(
    perflab: Perflab, finished: Path, kind: str, member: str
) -> None:
    (finished / "summary.json").unlink()
    for path in finished.glob("trials/*/processes/*.jsonl"):
        records = [json.loads(line) for line in path.read_text().splitlines()]
        for record in records:
            for entry in (*record.get("threads", ()), *record.get("publishers", ())) if record["type"] == kind else ():
                del entry[member]
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    shown = perflab("show", finished)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert f"trial 1: a record of threads, passing or allocations lacks '{member}'" in shown.stdout


def test_a_fifo_does_not_hang(perflab: Perflab, finished: Path) -> None:
    for name in ("summary.json", "manifest.json"):
        (finished / name).unlink()
        os.mkfifo(finished / name)
        shown = perflab("show", finished)
        if name == "summary.json":
            assert (shown.returncode, shown.stderr) == (0, "")
            assert "summary.json is damaged: not a regular file" in shown.stdout
        else:
            assert shown.returncode == 2
            assert "is not a run directory: it has no manifest.json" in shown.stderr


ENCODINGS = [
    {"PYTHONIOENCODING": "ascii"},
    {"PYTHONIOENCODING": "latin-1"},
    {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
]


@pytest.mark.parametrize("changes", long_but(ENCODINGS[-1:], ENCODINGS))
def test_what_the_encoding_lacks_is_replaced(
    environment: dict[str, str], finished: Path, changes: dict[str, str]
) -> None:
    command = [sys.executable, "-m", "perflab", "show", str(finished)]
    shown = subprocess.run(command, env={**environment, **changes}, capture_output=True, check=False)
    assert (shown.returncode, shown.stderr) == (0, b"")
    assert b"ping ? listener" in shown.stdout


def _shell(line: str, environment: dict[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
    command = line.replace("PERFLAB", f"'{sys.executable}' -m perflab")
    return subprocess.run(
        ["sh", "-c", command], env=environment, cwd=cwd, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize("closed", long_but(["<&- >&-"], [">&-", "<&- >&-"]))
def test_a_closed_stdout_is_no_error(
    graph_file: Path, tmp_path: Path, environment: dict[str, str], closed: str
) -> None:
    out = tmp_path / "run"
    done = _shell(f"PERFLAB run {graph_file} -t 0.2 -s 0.1 -o {out} {closed}", environment, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert (out / "summary.json").is_file()
    assert _shell(f"PERFLAB show {out} {closed} 2>&-", environment, tmp_path).returncode == 0


@pytest.mark.parametrize("stream", ["2>&-", "2>/dev/full"])
def test_an_error_that_cannot_be_written_keeps_its_exit_code(
    tmp_path: Path, environment: dict[str, str], stream: str
) -> None:
    assert _shell(f"PERFLAB show nothing {stream}", environment, tmp_path).returncode == 2


FULL = "perflab: cannot write to stdout: No space left on device\n"


@pytest.mark.parametrize("arguments", ["list", "list --json", "--help", "--version", "show RUN", "show RUN --json"])
def test_a_full_stdout_is_one_line(
    finished: Path,
    environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: str,
) -> None:
    monkeypatch.setenv("PERFLAB_NATIVE", environment["PERFLAB_NATIVE"])
    with Path("/dev/full").open("w") as full:  # its end fails if anything is left to be written
        monkeypatch.setattr(sys, "stdout", full)
        assert main([str(finished) if word == "RUN" else word for word in arguments.split()]) == 1
    assert capsys.readouterr().err == FULL


def test_a_full_stdout_is_one_line_of_a_process(finished: Path, environment: dict[str, str]) -> None:
    done = _shell("PERFLAB list >/dev/full", environment, finished)
    assert (done.returncode, done.stderr) == (1, FULL)


def test_a_path_that_cannot_be_looked_at_is_bad_input(perflab: Perflab, monkeypatch: pytest.MonkeyPatch) -> None:
    for word in ("a" * 300, "a/" * 3000):
        shown = perflab("show", word)
        assert shown.returncode == 2, shown.stderr[-200:]
        assert shown.stderr.count("\n") == 1

    def denied(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_file", denied)
    with pytest.raises(BadInput, match="cannot open run 'locked': Permission denied"):
        rundir.open_run("locked")
