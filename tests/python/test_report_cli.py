"""`perflab report` as a user meets it: a file, what is said of it, and one line for bad input."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest
from made_experiment import Made, with_findings, write_run
from made_run import MadeTrial, make_run
from test_cli import one_line

from perflab.cli import main


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", with_findings(Made(blocks=3).summary()))


def test_the_page_stands_in_the_first_run(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(run)]) == 0
    assert capsys.readouterr().out == f"{run / 'report.html'}\n"
    text = (run / "report.html").read_text()
    assert text.startswith("<!doctype html>") and '<html lang="en" data-theme="auto">' in text
    assert [path.name for path in run.iterdir() if "part" in path.name] == []


def test_json_has_the_files_and_the_notes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(tmp_path / "cut_off", {"p": ["a"]}, [MadeTrial([])], with_summary=False)
    target = tmp_path / "new" / "page.html"
    assert main(["report", str(run), "-o", str(target), "--theme", "dark", "--title", "Mine", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["files"] == [str(target)]
    assert any("perflab ended before the run was" in note for note in document["notes"])
    text = target.read_text()
    assert 'data-theme="dark"' in text and "<h1>Mine</h1>" in text
    assert any("perflab ended before the run was" in line for line in text.splitlines())


def test_a_still_page_runs_no_plots(run: Path, tmp_path: Path) -> None:
    still = tmp_path / "still.html"
    assert main(["report", str(run), "-o", str(still), "--still"]) == 0
    assert "perflabUnpack" not in still.read_text()
    assert main(["report", str(run), "--still", "--latex", str(tmp_path / "paper")]) == 2


def test_markdown_is_the_first_screen_for_a_pull_request(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(run.iterdir())
    assert main(["report", str(run), "--markdown", "--title", "A new executor"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("### A new executor\n\n`made` on cyclonedds")
    assert "**! Read these results with care**\n\n- ✔ No trial was invalid.\n" in text
    assert sorted(run.iterdir()) == before
    assert main(["report", str(run), "--markdown", "--still"]) == 2
    assert one_line(capsys.readouterr().err).endswith("it excludes --still\n")


def test_a_dash_writes_the_page_to_stdout_and_nothing_beside_it(
    run: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    before = sorted(run.iterdir())
    assert main(["report", str(run), "-o", "-"]) == 0
    out = capsysbinary.readouterr().out
    assert out.startswith(b"<!doctype html>") and out.rstrip().endswith(b"</html>")
    assert sorted(run.iterdir()) == before and not Path("-").exists()


def test_a_pipe_is_written_to_and_stays_one(run: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()), daemon=True)
    reader.start()
    assert main(["report", str(run), "-o", str(pipe)]) == 0
    reader.join(60)
    assert got and got[0].startswith(b"<!doctype html>") and pipe.is_fifo()


def test_a_full_disk_gets_one_line_and_leaves_what_was_there(capsys: pytest.CaptureFixture[str], run: Path) -> None:
    full = Path("/dev/full")
    if not full.is_char_device():
        pytest.skip("no /dev/full here")
    assert main(["report", str(run), "-o", str(full)]) == 1
    assert "cannot write /dev/full: No space left on device" in one_line(capsys.readouterr().err)
    assert full.is_char_device()


def test_latex_writes_into_a_folder(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(run), "--latex", str(tmp_path / "paper")]) == 0
    files = capsys.readouterr().out.split()
    assert files and all(Path(file).is_file() and Path(file).parent == tmp_path / "paper" for file in files)
    assert not (run / "report.html").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "nowhere"),
        (["RUN", "--theme", "blue"], "--theme 'blue' is not one of auto, light, dark"),
        (["RUN", "RUN"], "run is named twice"),
        (["RUN", "--port", "80"], "--port goes with --serve"),
        (["RUN", "--serve", "--port", "70000"], "--port 70000 is not within 0..65535"),
        (["RUN", "--serve", "--json"], "--serve shows runs and writes nothing: it excludes --json"),
        (["RUN", "--serve", "--theme", "dark"], "it excludes --theme"),
        (["RUN", "--json", "-o", "-"], "--json and --output - both write to stdout"),
        (["RUN", "--latex", "x", "--title", "y"], "--latex DIR writes no page"),
        (["RUN", "-o", "."], "is a folder; name a file, such as report.html"),
    ],
)
def test_bad_input_gets_one_line(
    run: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(run.parent)
    assert main(["report", *(str(run) if word == "RUN" else word for word in arguments)]) == 2
    assert said in one_line(capsys.readouterr().err)


def test_a_damaged_summary_gets_one_line(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run / "summary.json").write_text(json.dumps({"schema": 1, "run": "run", "results": [{"outcomes": 3}]}))
    assert main(["report", str(run)]) == 2
    assert "summary.json is damaged" in one_line(capsys.readouterr().err)


def test_a_place_that_cannot_be_written_gets_one_line(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run / "file").write_text("")
    assert main(["report", str(run), "-o", str(run / "file" / "page.html")]) == 1
    assert "cannot write" in one_line(capsys.readouterr().err)
