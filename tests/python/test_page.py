"""Templates stay compiled in the user's cache, and pages are the same with and without it."""

from __future__ import annotations

import marshal
import os
from collections.abc import Iterator
from pathlib import Path

import jinja2
import pytest

from perflab import page


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    page._engine.cache_clear()
    yield tmp_path / "perflab"
    page._engine.cache_clear()


def written() -> str:
    page._engine.cache_clear()
    return str(page.part("macros.html", "items", ["1 054 messages", "`code` <b>"]))


def test_a_template_is_compiled_once_and_again_where_what_was_kept_is_damaged(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[str] = []
    compile_ = jinja2.Environment.compile

    def noted(engine: jinja2.Environment, source: str, name: str, *more: object) -> object:
        compiled.append(name)
        return compile_(engine, source, name, *more)  # type: ignore[call-overload]

    monkeypatch.setattr(jinja2.Environment, "compile", noted)
    first = written()
    assert written() == first == "<ul><li>1\u00a0054 messages</li><li><code>code</code> &lt;b&gt;</li></ul>\n"
    assert compiled == ["macros.html"]
    (kept,) = cache.iterdir()
    kept.write_bytes(b"")
    assert (written(), len(compiled)) == (first, 2)


def test_what_another_user_kept_is_not_run(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = written()
    (kept,) = cache.iterdir()
    kept.write_bytes(marshal.dumps(compile("raise SystemExit(9)", "theirs", "exec")))
    owner = kept.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    assert written() == first


def test_a_user_without_a_home_has_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setattr(Path, "home", no_home)
    assert "messages" in written()


def test_a_cache_that_cannot_be_written_is_done_without(cache: Path) -> None:
    cache.write_text("a file in its place")
    assert "messages" in written()
