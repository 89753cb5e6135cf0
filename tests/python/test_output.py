"""What is foreign reaches a terminal as letters alone, whichever way it takes."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from made_run import MadeTrial, Stream, arrivals, make_run
from rich.text import Text
from support import SOURCE

from perflab import output
from perflab.cli import main
from perflab.columns import Column, Table
from perflab.output import captured, console, guard, guarded, plain_console, visible, visible_line, write_captured
from perflab.quantity import PLAIN
from perflab.report.table import print_rows

# Clears the screen, writes the clipboard, sets colours by C1, turns the direction of writing, goes back in the line.
HOSTILE = "n\x1b[2J\x1b]52;c;aGk=\x07\x9b31m\u202e\u2066\r\x7f[red]:boom:"
WRITTEN_OUT = "n\\u001b[2J\\u001b]52;c;aGk=\\u0007\\u009b31m\\u202e\\u2066\\u000d\\u007f[red]:boom:"
# rich drops some of these by itself.
BY_RICH = WRITTEN_OUT.replace("\\u0007", "").replace("\\u000d", "")

# What perflab itself says to a terminal: colours.
OWN = re.compile(r"\x1b\[[0-9;]*m")
OBEYED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Bytes(io.BytesIO):
    """What stands below a text stream, into which it writes."""

    def __init__(self, text: io.StringIO) -> None:
        super().__init__()
        self._text = text

    def write(self, data: Any) -> int:
        return self._text.write(bytes(data).decode())


def column(header: str, text: str, rank: int = 0, **more: Any) -> Column[None]:
    return Column(header, header, lambda _: text, PLAIN, rank=rank, **more)


def table(*columns: Column[None]) -> Table[None]:
    """Of one row."""
    return Table("table", "Table", columns, [None])


def test_what_a_terminal_obeys_is_written_out() -> None:
    assert visible(HOSTILE) == WRITTEN_OUT
    assert visible("a\tb\nc µs → … é 漢 👍") == "a\tb\nc µs → … é 漢 👍"
    assert visible_line("a\nb") == "a\\u000ab"
    assert visible("\udc9b") == "\\udc9b"  # a byte of a file's name


def test_a_json_document_stays_the_same() -> None:
    document = {HOSTILE: [HOSTILE, "\U000e0041\u2028"]}
    assert json.loads(visible(json.dumps(document, ensure_ascii=False))) == document


@pytest.mark.parametrize("target", [Terminal(), io.StringIO()])
def test_a_console_writes_text_as_it_is_and_its_own_styles_alone(target: io.StringIO) -> None:
    out = console(target)
    out.print(f"one {HOSTILE}")
    out.print(Text(f"two {HOSTILE}", "bold"), soft_wrap=True)
    out.print(Text.assemble((HOSTILE, "red"), " three\nforged"), soft_wrap=True)
    print_rows(out, table(column(HOSTILE, f"{HOSTILE}\nforged", group=HOSTILE), column("b", "1")))
    printed = OWN.sub("", target.getvalue())
    assert not OBEYED.search(printed)
    assert f"one {BY_RICH}" in printed
    assert f"two {BY_RICH}" in printed
    assert f"{BY_RICH} three\\u000aforged" in printed
    assert "forged" not in [line.strip() for line in printed.splitlines()]


def test_styles_keep_their_places() -> None:
    text = Text.assemble(("a\x1bb", "red"), ("c", "bold"))
    shown = output.visible_text(text)
    assert shown.plain == "a\\u001bbc"
    assert [(shown.plain[s.start : s.end], s.style) for s in shown.spans] == [("a\\u001bb", "red"), ("c", "bold")]


def test_a_table_is_as_wide_as_what_is_printed() -> None:
    target = io.StringIO()
    print_rows(plain_console(target, 40), table(column("a", "\x1b\x1b"), column("b", "1")))
    assert target.getvalue().splitlines()[-1] == "\\u001b\\u001b  1"


def test_columns_that_a_narrow_terminal_has_no_room_for_are_named() -> None:
    target = io.StringIO()
    columns = table(
        column("name", "n" * 20),
        column("p50", "1 ms", 2, group="latency"),
        column("p99", "1 ms", 2, group="latency"),
        column("", "x" * 30, 1, called="reason"),
    )
    print_rows(plain_console(target, 60), columns)
    assert target.getvalue().splitlines()[-1] == "Left out at 60 columns: latency p50, latency p99"
    print_rows(plain_console(target, 40), columns)
    assert target.getvalue().endswith("Left out at 40 columns: latency p50, \nlatency p99, reason\n")
    target = io.StringIO()
    print_rows(plain_console(target, 100), columns)
    assert "Left out" not in target.getvalue()


def test_streams_are_guarded_while_a_command_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    streams = Terminal(), Terminal()
    monkeypatch.setattr(sys, "stdout", streams[0])
    monkeypatch.setattr(sys, "stderr", streams[1])
    with guarded():
        sys.stdout.write(HOSTILE)
        sys.stderr.writelines([HOSTILE])
        with captured(console()) as whole:
            console().print("x")
        assert guard(sys.stdout) is sys.stdout
        write_captured(output.Styled("\x1b[1mown\x1b[0m"))
    assert (sys.stdout, sys.stderr) == streams
    assert streams[0].getvalue().startswith(WRITTEN_OUT)
    assert streams[0].getvalue().endswith("\x1b[1mown\x1b[0m")
    assert streams[1].getvalue() == WRITTEN_OUT
    assert len(whole) == 1


def test_an_error_shows_what_was_given(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", HOSTILE]) == 2
    assert main([HOSTILE]) == 2
    said = capsys.readouterr().err
    assert said.count("perflab: ") == 2
    assert not OBEYED.search(said)


def _hostile_run(folder: Path) -> Path:
    """A run whose names are hostile wherever they are words and not keys of perflab's own."""
    streams = [Stream("a", "/t", "b", 10, 50, arrivals([100.0] * 50))]
    path = make_run(folder / "run", {"p": ["a", "b"]}, [MadeTrial(streams)])
    for file in (path / "summary.json", path / "manifest.json", *path.glob("trials/*/trial.json")):
        if file.exists():
            file.write_text(json.dumps(_hostile(json.loads(file.read_text()))))
    return path


_NAMES = ("workload", "publisher", "subscription", "topic", "process", "reason", "label", "hostname", "kernel")


def _hostile(document: Any, key: str = "") -> Any:
    if isinstance(document, dict):
        return {name: _hostile(value, name) for name, value in document.items()}
    if isinstance(document, list):
        return [_hostile(value, key) for value in document]
    return f"{document}{HOSTILE}" if isinstance(document, str) and key in _NAMES else document


@pytest.fixture(scope="module")
def hostile_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _hostile_run(tmp_path_factory.mktemp("hostile"))


def test_a_terminal_is_not_spoken_to_by_a_foreign_run(hostile_run: Path) -> None:
    controller, terminal = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "TERM": "xterm-256color", "COLUMNS": "200"}
    with subprocess.Popen(
        [sys.executable, "-m", "perflab", "show", hostile_run],
        env=environment, stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal,
    ) as process:  # fmt: skip
        os.close(terminal)
        said = b""
        with contextlib.suppress(OSError):  # the end of a terminal
            while part := os.read(controller, 65536):
                said += part
        assert process.wait(60) == 0
    os.close(controller)
    printed = OWN.sub("", said.decode().replace("\r\n", "\n"))
    assert not OBEYED.search(printed)
    assert "\\u001b[2J" in printed


@pytest.mark.parametrize(
    "verb",
    [["show"], ["show", "--json"], ["compare", "AGAIN"], ["check", "--baseline", "AGAIN"], ["inventory"],
     ["report", "-o", "OUT"], ["report", "-o", "-"], ["export", "--format", "irobot", "-o", "OUT"],
     ["archive", "-o", "OUT"]],
    ids=" ".join,
)  # fmt: skip
def test_no_verb_lets_a_foreign_run_speak(
    hostile_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: list[str]
) -> None:
    said = Terminal()
    monkeypatch.setattr(sys, "stdout", said)
    monkeypatch.setattr(sys, "stderr", said)
    monkeypatch.setattr(said, "buffer", Bytes(said), raising=False)
    again = tmp_path / "again"
    places = {"AGAIN": again, "OUT": tmp_path / "out"}
    if "AGAIN" in verb:
        shutil.copytree(hostile_run, again)
    assert main([verb[0], str(hostile_run), *(str(places.get(word, word)) for word in verb[1:])]) in (0, 1, 2)
    printed = OWN.sub("", said.getvalue())
    assert printed
    assert "(unexpected" not in printed
    assert not OBEYED.search(printed)
    if verb[0] == "show":
        assert "\\u001b[2J" in printed


# -- that no other way is taken ----------------------------------------------------------------------------------------

# Where perflab is the child that speaks with its parent through a pipe.
_CHILDREN = {"middleware/plugin_program.py"}
_ALLOWED = {"output.py": {"rich.console"}, "report/whole_file.py": {"buffer"}}


_WORTH_A_LOOK = re.compile(r"print|echo|Console|_console|__std|buffer|os\.write|markup|emoji|ansi|from rich")


def _ways_out(source: str) -> set[str]:
    """What in a module could write to a terminal past perflab.output."""
    found: set[str] = set()
    if not _WORTH_A_LOOK.search(source):
        return found
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            name = _dotted(node.func)
            if name in ("print", "rich.print", "click.echo", "typer.echo", "typer.secho", "Text.from_ansi"):
                found.add(name)
            if name.endswith((".Console", "from_markup")) or name in ("Console", "get_console"):
                found.add("rich.console")
            if name == "os.write" and node.args and isinstance(fd := node.args[0], ast.Constant) and fd.value in (1, 2):
                found.add(name)
            if any(
                k.arg in ("markup", "emoji") and isinstance(k.value, ast.Constant) and k.value.value
                for k in node.keywords
            ):
                found.add("markup")
        elif isinstance(node, ast.Attribute):
            if _dotted(node) in ("sys.__stdout__", "sys.__stderr__"):
                found.add(node.attr)
            if node.attr == "buffer" and _dotted(node.value).startswith("sys.std"):
                found.add("buffer")
        elif isinstance(node, ast.ImportFrom) and node.module in ("rich.markup", "rich", "rich.ansi"):
            found |= {f"{node.module}.{alias.name}" for alias in node.names} & {
                "rich.print", "rich.get_console", "rich.print_json", "rich.inspect",
                "rich.markup.escape", "rich.markup.render", "rich.ansi.AnsiDecoder",
            }  # fmt: skip
    return found


def _dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def test_the_search_for_other_ways_finds_them() -> None:
    for line in ("print(1)", "Console()", "rich.console.Console(file=x)", "sys.stdout.buffer.write(b'')",
                 "os.write(2, b'')", "sys.__stderr__.write(x)", "console.print(x, markup=True)",
                 "from rich import print", "Text.from_markup(x)"):  # fmt: skip
        assert _ways_out(line), line


def test_nothing_is_printed_but_through_one_module() -> None:
    folder = SOURCE / "perflab"
    others = {}
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(folder).as_posix()
        ways = _ways_out(path.read_text()) - _ALLOWED.get(name, set())
        if ways and name not in _CHILDREN:
            others[name] = ways
    assert others == {}
