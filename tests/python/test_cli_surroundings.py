"""How a command ends where the machine does not go along: little memory, files that cannot be written, moved runs."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from made_run import MadeTrial, Stream, arrivals, make_run
from support import SOURCE

from perflab.cli import main
from perflab.cli.app import LEAST_ADDRESS_SPACE
from perflab.errors import PerflabError
from perflab.experiment import run as experiment_run
from perflab.host import Host
from perflab.report import live
from perflab.runs import rundir
from perflab.runs.display import FinishedTrial
from perflab.runs.rundir import RunDirectory
from tests.marks import long_but


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, native_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("PERFLAB_NATIVE", str(native_folder))
    yield


@pytest.fixture
def made(tmp_path: Path) -> Path:
    streams = [Stream("a", "/t", "b", 10, 50, arrivals([100.0] * 50))]
    return make_run(tmp_path / "made", {"p": ["a", "b"]}, [MadeTrial(streams)])


def ended(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, str]:
    """The exit code of a command, and its only line of error."""
    code = main([str(word) for word in words])
    error = capsys.readouterr().err
    assert error.count("\n") <= 1, error
    assert "unexpected" not in error
    return code, error.removeprefix("perflab: ").removesuffix("\n")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["sweep", "TYPO"], "no workload named 'TYPO'"),
        (["sweep", "siera_nevada"], "no workload named 'siera_nevada'; did you mean sierra_nevada"),
        (["sweep", "sweep_cpu_laod"], "no workload named 'sweep_cpu_laod'; did you mean sweep_cpu_load"),
        (["breaking-point", "TYPO"], "no workload named 'TYPO'"),
        (["run", "sierra_nevada", "demo"], "'demo' is an experiment; it cannot be combined"),
        (["run", "demo", "sierra_nevada"], "'demo' is an experiment; it cannot be combined"),
        (["run", "x" * 300], "File name too long"),
    ],
)
def test_a_word_that_is_no_workload_is_what_is_complained_of(
    capsys: pytest.CaptureFixture[str], arguments: list[str], expected: str
) -> None:
    code, error = ended(capsys, *arguments)
    assert (code, expected in error) == (2, True), error


def _limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (LEAST_ADDRESS_SPACE, LEAST_ADDRESS_SPACE))


@pytest.mark.parametrize(("verb", "code"), [("show nothing", 3), ("list", 0)])
def test_too_little_address_space_is_one_line(verb: str, code: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "perflab", *verb.split()],
        env={**os.environ, "PYTHONPATH": str(SOURCE)}, preexec_fn=_limited, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == code
    if code:
        assert done.stdout == ""
        assert done.stderr.startswith("perflab: this process is limited to 2048 MiB of address space, and needs ")
        assert done.stderr.count("\n") == 1


def test_memory_that_runs_out_is_one_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(_: str) -> None:
        raise MemoryError

    monkeypatch.setattr("perflab.runs.rundir.open_run", none_left)
    assert ended(capsys, "show", "x") == (3, "out of memory; free some, or raise the limit (`ulimit -v`)")


def test_a_file_that_the_machine_refuses_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: str) -> None:
        raise OSError(5, "Input/output error", "some/file")

    monkeypatch.setattr("perflab.runs.rundir.open_run", refused)
    assert ended(capsys, "show", "x") == (1, "some/file: Input/output error")


@pytest.mark.parametrize(
    ("verb", "code"),
    [
        (["archive", "RUN", "-o", "WHERE/a.tar.gz"], 1),
        (["report", "RUN", "--still", "-o", "WHERE/r.html"], 1),
        (["report", "RUN", "--latex", "WHERE/l"], 1),
        (["plot", "RUN", "-o", "WHERE/p"], 1),
        (["export", "RUN", "-o", "WHERE/e"], 1),
        (["inventory", "RUN", "-o", "WHERE/i"], 1),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_cannot_be_written_is_one_line(
    capsys: pytest.CaptureFixture[str], made: Path, verb: list[str], code: int
) -> None:
    # Nobody can make a file there, root included.
    words = [word.replace("RUN", str(made)).replace("WHERE", "/proc") for word in verb]
    said, error = ended(capsys, *words)
    assert said == code
    assert error.startswith(("cannot write /proc/", "cannot create /proc/")), error


def test_a_run_that_cannot_be_written_cannot_go_on(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError(30, "Read-only file system", "x")

    directory = RunDirectory(made, created=False)
    monkeypatch.setattr(rundir, "write_json", refused)
    with pytest.raises(
        PerflabError, match=r"^cannot write .*/manifest\.json: Read-only file system; a run can only be resumed in"
    ):
        experiment_run.take_over(directory.read_manifest(), directory, Host())


@pytest.mark.parametrize("when", ["during", "after"])
def test_a_run_that_is_moved_while_it_goes_on_says_so(
    capsys: pytest.CaptureFixture[str], graph_file: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    silent = type(live.silent())

    class Moving(silent):  # type: ignore[misc,valid-type]
        def trial_started(self, order: int) -> None:
            if when == "during" and order == 1:
                Path("out").rename("elsewhere")

        def trial_finished(self, trial: FinishedTrial) -> None:
            if when == "after" and trial.trial.order == 1:
                Path("out").rename("elsewhere")

    monkeypatch.setattr(live, "silent", lambda **_: Moving(None))
    code, error = ended(
        capsys, "run", graph_file, "-t", "0.1", "-s", "0.1", "--trials", "2", "--cool-down", "0", "-o", "out", "-q"
    )
    assert code == 1
    assert error.startswith("the run directory out was moved or removed during the run; ")
    assert not Path("out").exists()
    assert json.loads(Path("elsewhere/manifest.json").read_text())["run"] == "out"
    assert main(["show", "elsewhere"]) == 0


# What is read as a number and is too much of one, and documents whose shape is wrong.


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("g,m,s,n\nx,1,1,5\ny,1,1,1e30\n", "n is 1e+30; the maximum is 1e+12"),
        ("g,m,s,n\nx,1,1,5\ny,1e308,1,5\n", "line 3: m is '1e308'"),
        ("g,m,s,n\nx,1,1,5\ny,1,-1e308,5\n", "line 3: s is '-1e308'"),
        ("g,m,s,n\nx,1,1,5\ny,1,1,inf\n", "line 3: n is 'inf', which is not finite"),
    ],
)
def test_numbers_that_cannot_be_calculated_with_are_one_line(
    capsys: pytest.CaptureFixture[str], table: str, expected: str
) -> None:
    Path("t.csv").write_text(table)
    words = ("statistics", "t.csv", "--group", "g", "--from-summary", "--mean", "m", "--sd", "s", "--n", "n")
    code, error = ended(capsys, *words)
    assert (code, expected in error) == (2, True), error


@pytest.mark.parametrize("quantile", ["inf", "-inf", "nan", "1e999", "1", "-0.1", "0.9999"])
def test_a_quantile_that_is_none_is_one_line(capsys: pytest.CaptureFixture[str], quantile: str) -> None:
    code, error = ended(capsys, "trace", "why", ".", "--quantile", quantile)
    assert (code, "--quantile" in error) == (2, True), error


@pytest.mark.parametrize("word", ["0", "-1", "x", "9" * 5000])
def test_a_process_number_that_is_none_is_one_line(capsys: pytest.CaptureFixture[str], word: str) -> None:
    code, error = ended(capsys, "profile", "--pid", word)
    assert (code, "is not a process id" in error) == (2, True), error


def _put(document: dict[str, object], path: str, value: object) -> None:
    *above, last = path.split(".")
    part: object = document
    for key in above:
        part = part[int(key)] if isinstance(part, list) else part[key]  # type: ignore[index]
    if isinstance(part, list):
        part[int(last)] = value
    else:
        part[last] = value  # type: ignore[index]


WRONG_TYPES = [
    ("results.0.key_figures", 10**30),
    ("results.0.totals.latency_ns", "x"),
    ("results.0.edges", 3),
    ("results.0", None),
    ("results.0.key_figures", []),
    ("results.0.totals", None),
    ("results.0.trials_detail", {}),
    ("results.0.factors", []),
    ("results.0.outcomes", "x"),
]


@pytest.mark.parametrize(("path", "value"), long_but(WRONG_TYPES[:4], WRONG_TYPES))
def test_a_summary_of_the_wrong_types_is_one_line(
    capsys: pytest.CaptureFixture[str], made: Path, tmp_path: Path, path: str, value: object
) -> None:
    good = shutil.copytree(made, tmp_path / "good")
    summary = json.loads((made / "summary.json").read_text())
    _put(summary, path, value)
    (made / "summary.json").write_text(json.dumps(summary))
    for words in (
        ("compare", made, good),
        ("check", made, "--baseline", good),
        ("plot", made, "-o", "pictures", "--kind", "percentiles"),
        ("export", made, "-o", "exported"),
        ("show", made),
    ):
        code, error = ended(capsys, *words)
        # Some verbs need nothing of it; the others name the cause.
        assert code in (0, 2), error
        assert not code or "is damaged: " in error, error


def test_links_in_a_loop_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    Path("loop").symlink_to("loop")
    Path("dangling").symlink_to("nowhere")
    for word in ("loop", "dangling"):
        for words in (("trace", "compare", word, "other"), ("trace", "paths", word), ("show", word), ("run", word)):
            code, error = ended(capsys, *words)
            assert code == 2
            assert word in error
