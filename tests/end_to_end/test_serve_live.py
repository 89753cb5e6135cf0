"""A real run, watched by a real browser: the page follows it, fetches nothing from elsewhere, and leaves it alone."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from live_browser import Page, browser, executable

from .conftest import TIMEOUT_S, command, environment

SECONDS, TRIALS = 4, 2

SHOWN = """(() => {
  const text = (id) => document.getElementById(id)?.textContent ?? null;
  return {
    state: document.documentElement?.dataset.state ?? null,
    words: text("state-words") + text("left"), elapsed: text("elapsed"),
    rows: document.querySelectorAll("#trials-table tbody tr").length,
    strip: document.querySelectorAll("#strip li").length,
    curves: document.querySelectorAll("#latency svg path[stroke-width='2']").length,
    marks: document.querySelectorAll("#latency svg [transform]").length,
    link: document.querySelector("#notice a")?.getAttribute("href") ?? null,
  };
})()"""

HIDDEN = """Object.defineProperty(document, "hidden", { get: () => IS, configurable: true });
document.dispatchEvent(new Event("visibilitychange"))"""

pytestmark = pytest.mark.skipif(executable() is None, reason="no Chromium; install chromium")


@contextlib.contextmanager
def serving(*runs: Path, port: int = 0) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A server of the live page of these runs; its URL."""
    process = subprocess.Popen(
        command("report", *runs, "--serve", "--port", str(port)), env=environment(), stdout=subprocess.PIPE, text=True
    )
    with process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split(" at ")[1].split()[0], process
        finally:
            process.kill()


def start(out: Path, trials: int = TRIALS) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command("run", "sierra_nevada", "-t", str(SECONDS), "--trials", str(trials), "-o", out, "--quiet"),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def follow(page: Page, until: str) -> list[dict[str, Any]]:
    """What the page shows until the run is in a state, each time that it has changed."""
    shown: list[dict[str, Any]] = []
    deadline = time.monotonic() + TIMEOUT_S
    while not shown or shown[-1]["state"] != until:
        assert time.monotonic() < deadline, shown[-3:]
        now = page.ask(SHOWN)
        if not shown or now != shown[-1]:
            shown.append(now)
        time.sleep(0.1)
    return shown


def files(run: Path) -> set[str]:
    return {str(path.relative_to(run)) for path in run.rglob("*")}


@pytest.mark.long
def test_a_run_is_followed_from_before_its_beginning_to_its_end(tmp_path: Path) -> None:
    out = tmp_path / "watched"
    with serving(out) as (url, server), browser(tmp_path / "profile") as page:
        page.open(url)
        page.wait_for("document.documentElement?.dataset.state === 'waiting'")
        run = start(out)
        shown = follow(page, "finished")
        assert run.communicate(timeout=TIMEOUT_S) == (f"{out}\n", "")
        assert run.returncode == 0

        running = [s for s in shown if s["state"] == "running"]
        assert {s["strip"] for s in running} == {TRIALS}
        assert {0, 1} <= {s["rows"] for s in running}, "trials appear as they end"
        assert any("left" in s["words"] for s in running)
        counted = [s["elapsed"] for s in running if s["elapsed"] and f"of {SECONDS} s" in s["elapsed"]]
        assert len(set(counted)) >= 2, "the present trial's clock goes on"
        assert len({s["marks"] for s in running}) >= 3, "latency comes second by second"
        last = shown[-1]
        assert last["words"] == f"finished: {TRIALS} of {TRIALS} trials, all successes"
        assert (last["rows"], last["link"]) == (TRIALS, "/report.html")

        asked = len(page.requests)
        state = page.ask("fetch('/state.json').then((answer) => answer.json())")
        assert state["run"]["results"][0]["successes"] == TRIALS
        summary = json.loads((out / "summary.json").read_text())["results"][0]["trials_detail"]
        told = [(t["p50_ns"], t["p99_ns"], t["lost"]) for t in state["run"]["trials"]]
        assert told == [(t["totals"]["latency_ns"]["p50"], t["totals"]["latency_ns"]["p99"], 0) for t in summary]

        page.ask("document.querySelector('#notice a').click()")
        page.wait_for("location.pathname === '/report.html' && typeof perflabDrawAll === 'function'")
        page.ask("perflabDrawAll()")
        page.wait_for("Number(document.documentElement.dataset.drawn) === document.querySelectorAll('.plot').length")
        assert page.ask("document.querySelectorAll('.plot svg').length") > 0
        assert "sierra_nevada" in page.ask("document.body.textContent")
        assert all(request.startswith((url, "data:", "blob:")) for request in page.requests), page.requests
        assert page.complaints == []
        assert asked < 10 + 2 * TIMEOUT_S
        assert server.poll() is None

    unwatched = tmp_path / "unwatched"
    alone = start(unwatched)
    assert alone.communicate(timeout=TIMEOUT_S) == (f"{unwatched}\n", "")
    assert files(out) == files(unwatched)


def test_a_page_that_nobody_looks_at_asks_for_nothing(tmp_path: Path) -> None:
    with serving(tmp_path / "later") as (url, _), browser(tmp_path / "profile") as page:
        page.open(url)
        page.wait_for("document.documentElement?.dataset.state === 'waiting'")
        page.ask(HIDDEN.replace("IS", "true"))
        page.ask("new Promise((done) => setTimeout(done, 300))")
        before = len(page.requests)
        page.ask("new Promise((done) => setTimeout(done, 3000))")
        assert len(page.requests) == before
        page.ask(HIDDEN.replace("IS", "false"))
        page.ask("new Promise((done) => setTimeout(done, 3000))")
        assert len(page.requests) > before


def test_a_page_whose_server_ended_says_so_and_comes_back(tmp_path: Path) -> None:
    with serving(tmp_path / "later") as (url, server), browser(tmp_path / "profile") as page:
        page.open(url)
        page.wait_for("document.documentElement?.dataset.state === 'waiting'")
        server.terminate()
        server.wait(TIMEOUT_S)
        page.wait_for("document.getElementById('state-words').textContent.startsWith('no answer from the server')")
        with serving(tmp_path / "later", port=int(url.rsplit(":", 1)[1].strip("/"))):
            page.wait_for("document.getElementById('state-words').textContent.startsWith('there is no run')")


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_a_killed_run_is_told_and_fits_the_screen(tmp_path: Path, width: int, dark: bool) -> None:
    out = tmp_path / "killed"
    run = start(out, trials=100)  # goes on until it is killed, however late the page shows it
    with run, serving(out) as (url, _), browser(tmp_path / "profile") as page:
        page.open(url, width, 844, dark=dark)
        page.wait_for("Number(document.querySelectorAll('#latency svg').length) > 0", TIMEOUT_S)
        run.kill()
        page.wait_for("document.documentElement.dataset.state === 'crashed'")
        assert page.ask("document.querySelector('#notice code').textContent") == f"perflab run --resume {out}"
        assert page.ask("document.documentElement.scrollWidth <= innerWidth")
        assert page.complaints == []
        picture = tmp_path / "page.png"
        page.picture(picture)
        assert picture.stat().st_size > 10_000
