"""docs/tutorial.md: its commands run as they stand there, only shorter, and print what stands below them.

Figures differ from run to run. What does not is compared: lines without figures, and the labels of rows.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.said import finished

from .conftest import SOURCE, command, environment

TUTORIAL = SOURCE / "docs" / "tutorial.md"
FENCE = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WIDTH = "100"  # of the terminal of the page
SHORTER = ((r"--trials \d+", "--trials 1"), (r"--time \d+", "--time 500ms"))
VERDICT = ("check",)  # commands that end with 1 where a bound is missed
OF_TRIALS = ("- ", "!", "✔", "✖")  # remarks, which hang on how many trials there are and how they went
PERCENTILE = re.compile(r"\bp\d+(?:\.\d+)?\b")


def test_the_commands_of_the_tutorial_print_what_stands_there(tmp_path: Path) -> None:
    traced, missing = True, list[str]()
    blocks = FENCE.findall(TUTORIAL.read_text("utf-8"))
    for _, name, text in blocks:
        if name:
            (tmp_path / name).write_text(text, encoding="utf-8")
    asked = [one for language, _, text in blocks if language == "console" for one in commands(text)]
    assert len(asked) >= 7
    for line, expected in asked:
        words = shlex.split(shorter(line))
        assert words[0] == "perflab", line
        if not traced and words[1] == "trace":
            continue
        done = run(words, tmp_path)
        if "tracing" in line and done.returncode == 3 and os.geteuid() != 0:
            traced = False  # the message names the missing permission
            continue
        assert done.returncode in ((0, 1) if words[1] in VERDICT else (0,)), f"{line}\n{done.stdout}{done.stderr}"
        printed = [squeezed(one) for one in done.stdout.splitlines()]
        absent = [what for what in stable(expected) if not any(one.startswith(what) for one in printed)]
        missing += [f"{what!r} is not in what {line!r} printed:\n{done.stdout}" for what in absent]
    assert not missing, "\n".join(missing)


def run(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """What a command line printed; one of trials is repeated where a load was not there on a busy machine."""
    for _ in range(3):
        done = finished(command(*words[1:]), cwd=folder, env=environment(COLUMNS=WIDTH), stdin=subprocess.DEVNULL)
        if done.returncode != 1 or ": invalid: " not in done.stderr:
            break
        shutil.rmtree(folder / words[words.index("-o") + 1])
    return done


def commands(block: str) -> Iterator[tuple[str, list[str]]]:
    """Each command of a console block with the lines that it prints there."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        line, *output = part.splitlines()
        yield line, output


def shorter(line: str) -> str:
    for pattern, replacement in SHORTER:
        line = re.sub(pattern, replacement, line)
    return line


def stable(lines: list[str]) -> list[str]:
    """What another run prints as well at the beginning of a line."""
    found = []
    for line in lines:
        plain = squeezed(line)
        if not plain or "…" in plain or plain.startswith(OF_TRIALS):
            continue
        label = re.split(r"\s{2,}", line.strip())[0]
        if not re.search(r"\d", PERCENTILE.sub("", plain)):
            found.append(plain)
        elif not re.search(r"\d", label):
            found.append(label)
    return found


def squeezed(line: str) -> str:
    return " ".join(line.split())
