"""The documentation: the site builds without a warning, needs no network, and names no command that there is not."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import live_browser
import pytest
import typer
from support import SOURCE
from typer._click.exceptions import ClickException

from perflab.cli.app import app
from perflab.statistics.metrics import METRICS

# Of Markdown that was not understood as such: a list or a table within a paragraph.
UNREAD = re.compile(r"<p>(?:(?!</p>).)*\n(?:\* |- |\d+\. |\|)", re.DOTALL)
CODE = re.compile(r"<(pre|code)\b.*?</\1>", re.DOTALL)
FETCHED = re.compile(
    r"<(?:script|img|iframe|link)\b[^>]*(?:src|href)=\"?(?:https?:)?//|@import|url\([\"']?(?:https?:)?//"
)
FENCE = re.compile(r"^ *```(sh|bash|console)\b[^\n]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    built = subprocess.run(words, cwd=SOURCE, capture_output=True, text=True, check=False, timeout=280)
    said = [line for line in (built.stdout + built.stderr).splitlines() if line.startswith(("WARNING", "ERROR"))]
    assert (built.returncode, said) == (0, []), built.stdout + built.stderr
    return folder


def test_links_and_anchors_lead_somewhere_and_nothing_comes_from_the_network(site: Path) -> None:
    pages = {path.relative_to(site): path.read_text("utf-8") for path in site.rglob("*.html")}
    assert len(pages) > 100
    own = {path: text for path, text in pages.items() if path.name != "sample_report.html"}
    assert [str(path) for path, text in own.items() if FETCHED.search(CODE.sub("", text))] == []
    documents = {path: text for path, text in own.items() if path.parts[0] != "source"}
    assert [str(path) for path, text in documents.items() if UNREAD.search(CODE.sub("", text))] == []


@pytest.mark.skipif(live_browser.executable() is None, reason="no Chromium; install chromium")
def test_a_browser_searches_in_the_files_and_asks_for_nothing_else(site: Path, tmp_path: Path) -> None:
    with live_browser.browser(tmp_path) as page:
        page.open(f"{(site / 'tutorial.html').as_uri()}?q=flood")
        found = "document.querySelector('.md-search-result__meta')?.textContent.match(/(\\d+) matching/)?.[1]"
        assert int(page.wait_for(found)) > 5
        assert [url for url in page.requests if not url.startswith(("file:", "data:"))] == []
        assert page.complaints == []


def test_the_reference_has_what_perflab_has(site: Path) -> None:
    metrics = (site / "reference/metrics.html").read_text("utf-8")
    assert {name.partition(".")[0] for name in METRICS if name.partition(".")[0] not in metrics} == set()
    commands = {path.stem for path in (site / "reference/commands").glob("*.html")}
    assert {"-".join(words) for words, _ in verbs(typer.main.get_command(app))} | {"index"} == commands
    run = (site / "reference/commands/run.html").read_text("utf-8")
    assert "--until-decided" in run
    assert "<code>--progress</code> <code>auto|lines|seconds|off</code>" in run


def verbs(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command with the words that call it."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield words, command
    for name, one in (inner or {}).items():
        yield from verbs(one, (*words, name))


def documented() -> list[tuple[str, list[str]]]:
    """The command lines of perflab in the documents, with where they stand."""
    found = []
    for page in (SOURCE / "README.md", *sorted((SOURCE / "docs").rglob("*.md"))):
        for language, block in FENCE.findall(page.read_text("utf-8")):
            prompt = "$ " if language == "console" else ""
            for line in block.replace("\\\n", " ").splitlines():
                if line.strip().startswith(f"{prompt}perflab "):
                    words = shlex.split(line.strip().removeprefix(prompt).partition(" && ")[0], comments=True)
                    found.append((f"{page.relative_to(SOURCE)}: {line.strip()}", words[1:]))
    return found


def test_the_documents_name_no_command_or_option_that_there_is_not() -> None:
    lines = documented()
    assert len(lines) > 150
    assert [f"{where}: {said}" for where, words in lines if (said := refused(words)) is not None] == []


@pytest.mark.parametrize("line", ["runn sierra_nevada", "run a --tim 3", "trace whi x", "check"])
def test_a_wrong_command_is_seen(line: str) -> None:
    assert refused(line.split()) is not None


def refused(words: list[str]) -> str | None:
    """What perflab says of a command line before it does anything; None where it would go on."""
    command: Any = typer.main.get_command(app)
    rest, name = list(words), "perflab"
    while (inner := getattr(command, "commands", None)) is not None and not (rest and rest[0].startswith("-")):
        if not rest or rest[0] not in inner:
            return f"no command {' '.join(rest[:1])!r}"
        name = rest.pop(0)
        command = inner[name]
    try:
        command.make_context(name, rest)
    except typer.Exit:
        return None
    except ClickException as error:
        return error.format_message()
    return None
