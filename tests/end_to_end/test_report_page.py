"""A report in a real browser: it draws, sorts, filters, follows the theme, prints, and fetches nothing."""

from __future__ import annotations

import itertools
import json
import os
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import first_screen
import pytest
from live_browser import Page, browser, executable
from made_run import MadeTrial, Stream, arrivals, make_run

from perflab.profile import flamegraph

from .conftest import PINGPONG, TIMEOUT_S, Run, command, environment

TRIALS_OF_A_LONG_RUN = 60  # more than 50, of which 20 are shown before the rest is asked for
MOST_BYTES = 1_500_000  # of the report of the demo

READY = "document.readyState === 'complete' && document.documentElement.dataset.ready === 'true'"
LOADED = f"{READY} && document.documentElement.dataset.drawn !== undefined"
DRAWN = "Number(document.documentElement.dataset.drawn) === document.querySelectorAll('.plot').length"

# A table by its caption, a header by its words, what that column is sorted by in the order that is shown.
TABLE = """
  const table = (caption) => [...document.querySelectorAll("table")].find((t) => t.caption.textContent === caption);
  const head = (t, words) => [...t.tHead.rows[0].cells].find((c) => c.textContent === words);
  const keys = (t, words) => [...t.tBodies[0].rows].map((r) => r.cells[head(t, words).cellIndex].dataset.by ?? null);
  const seen = (t) => [...t.tBodies[0].rows].filter((r) => r.offsetParent !== null || r.getClientRects().length).length;
"""

pytestmark = pytest.mark.skipif(executable() is None, reason="no Chromium; install chromium")


def asked(page: Page, script: str) -> Any:
    return page.ask(f"(() => {{{TABLE}{script}}})()")


def perflab(*words: str, folder: Path) -> None:
    done = subprocess.run(
        command(*words), cwd=folder, env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run of two results and one of many trials, which is written by hand, each with its report."""
    folder = tmp_path_factory.mktemp("report")
    (folder / "graph.yaml").write_text(PINGPONG)
    flood = "message_flood:rate=200,at_least=20"
    options = ("-t", "1", "--trials", "2", "--condition", flood, "--observer", "monitor", "--cool-down", "0")
    perflab("run", "graph.yaml", *options, "-o", "small", "--quiet", folder=folder)
    one = MadeTrial([Stream("a", "t", "b", 10, 20, arrivals([100] * 20))], middleware="virtual")
    make_run(folder / "long", {"p": ["a", "b"]}, [one] * TRIALS_OF_A_LONG_RUN)
    for name in ("small", "long"):
        perflab("report", name, "-o", f"{name}.html", folder=folder)
    return {name: folder / f"{name}.html" for name in ("small", "long")}


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    with browser(tmp_path / "browser") as opened:
        yield opened
        # Nothing but the page itself; pictures are in it.
        assert [url for url in opened.requests if not url.startswith(("file:", "data:", "blob:"))] == []
        assert len({url for url in opened.requests if url.startswith("file:")}) == 1
        assert opened.complaints == []


def opened(page: Page, path: Path, width: int = 1280, *, dark: bool = False) -> Page:
    page.open(path.as_uri(), width, 900, dark=dark)
    page.wait_for(LOADED)
    return page


@pytest.mark.long
def test_every_plot_is_drawn_when_the_reader_comes_near(page: Page, reports: dict[str, Path]) -> None:
    opened(page, reports["small"])
    plots = page.ask("document.querySelectorAll('.plot').length")
    assert plots >= 3
    for number in range(plots):
        page.ask(f"document.querySelectorAll('.plot')[{number}].scrollIntoView()")
        page.wait_for(f"document.querySelectorAll('.plot')[{number}].querySelector('svg.marks') !== null")
    page.wait_for(DRAWN)


# What is expected of the demo on any machine: it may have too few trials to show a difference on a busy one.
OF_THE_DEMO = {
    "What was tested?": r"sierra_nevada \(1 process, 10 nodes, 17 edges\)",
    "On which middleware?": r"on cyclonedds [\d.]+ and fastdds [\d.]+",
    "On what machine?": r" in all, on .+, \d+ CPUs?, [\d.]+ GiB, Linux \d",
    "Under which conditions?": r"and under 2 × 80 % CPU load, a flood of 4 × 500 messages/s .*\(pinning to 1 CPU\)",
    "How many trials, and how long?": r"\d+ trials of 1 s, .* in all",
    "Which is worse, and by how much?": r"Of \d+ comparisons .*(latency|response) p\d\d .*\d\.\d\d× \[[\d.]+, [\d.]+\]",
    "How sure is that?": r"intervals: 95 % for all \d+ together.* n = \d+ and \d+",
    "What was invalid?": r"No trial was invalid|of \d+ trials? w(as|ere) invalid",
    "Can it be trusted, and why?": r"(can be trusted|Read these results with care).*trials of the baseline",
    "Why were messages late?": r"Why messages were late .*(messages late; [\d.]+ % of their time|No trial was traced)",
}


@pytest.mark.long
def test_the_demo_answers_ten_questions_without_scrolling(page: Page, tmp_path: Path) -> None:
    """PERFLAB_DEMO names a run of the demo in place of one that is made here, PERFLAB_PICTURES the folder where the
    pictures of its first screen are kept (docs/pictures)."""
    run = os.environ.get("PERFLAB_DEMO") or str(tmp_path / "run")
    if "PERFLAB_DEMO" not in os.environ:
        perflab("run", "demo", "--trials", "3", "--cool-down", "0", "-o", run, "--quiet", folder=tmp_path)
    path = tmp_path / "demo.html"
    perflab("report", run, "-o", str(path), folder=tmp_path)
    assert path.stat().st_size < MOST_BYTES
    pictures = Path(os.environ.get("PERFLAB_PICTURES") or tmp_path)
    opened(page, path, 1400)
    text = first_screen.seen(page)
    assert first_screen.unanswered(text, OF_THE_DEMO) == [], text
    for width, dark in itertools.product((1400, 420), (False, True)):
        opened(page, path, width, dark=dark)
        target = pictures / f"first_screen_{width}_{'dark' if dark else 'light'}.png"
        page.picture(target, whole=False)
        head = target.read_bytes()[:24]
        assert head[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">II", head[16:]) == (width, 900)


def test_a_table_sorts_by_click_and_by_keyboard(page: Page, reports: dict[str, Path]) -> None:
    opened(page, reports["small"])
    before = asked(page, "return keys(table('Trials'), 'latency p99')")
    numbers = sorted(float(key) for key in before if key is not None)
    asked(page, "head(table('Trials'), 'latency p99').querySelector('button').click()")
    sorts = "return head(table('Trials'), 'latency p99').getAttribute('aria-sort')"
    assert asked(page, sorts) == "ascending"
    assert [float(key) for key in asked(page, "return keys(table('Trials'), 'latency p99')") if key] == numbers
    asked(page, "head(table('Trials'), 'latency p99').querySelector('button').focus()")
    page.press("Enter")
    assert asked(page, sorts) == "descending"
    assert [float(key) for key in asked(page, "return keys(table('Trials'), 'latency p99')") if key] == numbers[::-1]
    asked(page, "head(table('Trials'), 'trial').querySelector('button').focus()")
    page.press(" ")
    assert asked(page, sorts) == "none"
    assert asked(page, "return keys(table('Trials'), 'trial')") == [str(n) for n in range(1, len(before) + 1)]


def test_many_trials_are_folded_filtered_and_unfolded(page: Page, reports: dict[str, Path]) -> None:
    opened(page, reports["long"])
    assert asked(page, "return [seen(table('Trials')), table('Trials').tBodies[0].rows.length]") == [
        20,
        TRIALS_OF_A_LONG_RUN,
    ]
    # The first ones are those of the order that is chosen.
    asked(page, "const h = head(table('Trials'), 'trial').querySelector('button'); h.click(); h.click()")
    assert asked(page, "return keys(table('Trials'), 'trial').slice(0, 2)") == [
        str(TRIALS_OF_A_LONG_RUN),
        str(TRIALS_OF_A_LONG_RUN - 1),
    ]
    assert asked(page, "return seen(table('Trials'))") == 20
    asked(page, "table('Trials').closest('.long').querySelector('.all').click()")
    assert asked(page, "return seen(table('Trials'))") == TRIALS_OF_A_LONG_RUN
    asked(
        page,
        "const f = table('Trials').closest('.long').querySelector('.filter'); f.value = 'virtual nothing-like-this'; "
        "f.dispatchEvent(new Event('input'))",
    )
    assert asked(page, "return seen(table('Trials'))") == 0
    assert (
        asked(page, "return table('Trials').closest('.long').querySelector('.count').textContent")
        == f"0 of {TRIALS_OF_A_LONG_RUN} rows"
    )


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_wider_than_the_screen(page: Page, reports: dict[str, Path], width: int) -> None:
    opened(page, reports["small"], width)
    page.ask("document.querySelectorAll('main details').forEach((d) => (d.open = true))")
    page.ask("perflabDrawAll()")
    assert page.ask("document.documentElement.scrollWidth") <= width
    wide = page.ask(
        "[...document.querySelectorAll('main *')].filter((e) => !e.closest('.scroll, .plot, pre') && "
        f"e.getBoundingClientRect().right > {width} + 1).map((e) => e.outerHTML.slice(0, 80))"
    )
    assert wide == []


def test_it_follows_the_screen_and_the_switch(page: Page, reports: dict[str, Path]) -> None:
    opened(page, reports["small"], dark=True)
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    dark = page.ask(ground)
    page.dark(False)
    page.wait_for(f"{ground} !== '{dark}'")
    asked(page, "const t = document.getElementById('theme'); t.value = 'dark'; t.dispatchEvent(new Event('change'))")
    assert page.ask(ground) == dark


def test_paper_has_everything(page: Page, reports: dict[str, Path]) -> None:
    opened(page, reports["long"])
    page.ask("dispatchEvent(new Event('beforeprint'))")
    page._call("Emulation.setEmulatedMedia", media="print")
    assert page.ask(DRAWN)
    assert asked(page, "return seen(table('Trials'))") == TRIALS_OF_A_LONG_RUN
    controls = "[...document.querySelectorAll('nav, .tools, .all, .copy, #theme')]"
    assert page.ask(f"{controls}.filter((e) => e.getClientRects().length).length") == 0
    assert page.ask("document.querySelectorAll('main details:not([open])').length") == 0
    page._call("Emulation.setEmulatedMedia", media="")
    page.ask("dispatchEvent(new Event('afterprint'))")
    assert page.ask("document.querySelectorAll('main details:not([open])').length") > 0


def test_paper_that_is_asked_for_at_once_has_the_plots_too(page: Page, reports: dict[str, Path]) -> None:
    page.open("about:blank")
    page._call("Page.addScriptToEvaluateOnNewDocument", source="window.requestAnimationFrame = () => 0")
    page.open(reports["small"].as_uri())
    page.wait_for(READY)
    assert page.ask("document.documentElement.dataset.drawn") is None
    page.ask("dispatchEvent(new Event('beforeprint'))")
    assert page.ask(DRAWN)


def test_the_contents_say_where_the_reader_is(page: Page, reports: dict[str, Path]) -> None:
    opened(page, reports["small"])
    page.ask("document.querySelector('nav a[href=\"#quality\"]').click()")
    deadline = time.monotonic() + 30
    current = "document.querySelector('nav a[aria-current]')?.getAttribute('href')"
    while page.ask(current) not in ("#quality", "#repeat"):  # the last ones may both be in sight
        assert time.monotonic() < deadline
        time.sleep(0.1)
    page.resize(390, 800)
    page.wait_for("!document.querySelector('.contents').open")


def test_a_flame_graph_is_drawn_when_it_is_opened(run: Run, page: Page, tmp_path: Path) -> None:
    """Of stacks that are known: real ones need perf and its rights."""
    (tmp_path / "graph.yaml").write_text(PINGPONG)
    assert run("run", "graph.yaml", "-t", "1", "--middleware", "virtual", "-o", "run", "--quiet").returncode == 0
    folder = next((tmp_path / "run" / "trials").iterdir()) / "profile"
    folder.mkdir()
    families = {"application": "the </script> application", "unknown": "unknown"}
    share = dict.fromkeys(("share", "low", "high"), 0.5) | {"samples": 20, "weight": 20}
    row = {f"{kind}_{key}": value for kind in ("self", "inclusive") for key, value in share.items()}
    processes = [
        {"pid": pid, "name": f"<b>{pid}", "samples": 40, "weight": 40, "whole": 1.0, "unresolved": 0.0, "threads": [],
         "families": [{"family": "application", **row}], "page": f"flame_{pid}.html"} for pid in (1, 2)
    ]  # fmt: skip
    document = {
        "schema": 1, "command": None, "pids": [1, 2], "system": False, "frequency_hz": 999, "call_graph": "fp",
        "event": "cpu-clock", "unit": "ns", "notes": [], "began_ns": 0, "ended_ns": 9, "perf_cpu_ns": None,
        "stack_bytes": None, "kernel": True, "buffer_bytes_per_cpu": 4096, "perf": "6.1",
        "warnings": ["be careful"], "families": families,
        "confidence": 0.95, "processes": processes,
        "quality": {"samples": 80, "weight": 80, "whole": 1.0, "unresolved": 0.0, "idle": 0, "lost": 0, "throttled": 0,
                    "unreadable_lines": 0, "complete": True},
    }  # fmt: skip
    (folder / "profile.json").write_text(json.dumps(document))
    for pid in (1, 2):
        stacks = [(("thread", flamegraph.Frame(f"main<{pid}>", "application"), "leaf</script>"), 10 * pid)]
        drawing = flamegraph.drawn(stacks, unit="ns", families=families)
        (folder / f"flame_{pid}.json").write_text(json.dumps(drawing))
    assert run("report", "run").returncode == 0
    opened(page, tmp_path / "run" / "report.html", dark=True)
    assert "be careful" in page.ask("document.getElementById('profiles').textContent")
    names = (
        "[...document.querySelectorAll('.flame .graph')].map((h) => h.shadowRoot && "
        "[...h.shadowRoot.querySelectorAll('#frames g')].map((g) => g.getAttribute('aria-label').split(',')[0]))"
    )
    assert page.ask(names) == [None, None]
    page.ask("document.querySelectorAll('.flame')[1].querySelector('summary').click()")
    page.wait_for("document.querySelectorAll('.flame .graph')[1].shadowRoot !== null")
    assert page.ask(names) == [None, ["all", "thread", "main<2>", "leaf</script>"]]
    page.ask("document.querySelectorAll('.flame')[0].querySelector('summary').click()")
    page.wait_for("document.querySelectorAll('.flame .graph')[0].shadowRoot !== null")
    assert page.ask(names)[0] == ["all", "thread", "main<1>", "leaf</script>"]
    # Zooming one leaves the other alone.
    box = "document.querySelector('.graph').shadowRoot.querySelector('#n2 rect')"
    page.ask(f"{box}.dispatchEvent(new MouseEvent('click', {{bubbles: true}}))")
    out = "[...document.querySelectorAll('.graph')].map((h) => h.shadowRoot.getElementById('out').disabled)"
    assert page.ask(out) == [False, True]
    ground = "getComputedStyle(document.querySelector('.graph').shadowRoot.querySelector('pattern rect')).fill"
    dark = page.ask(ground)
    page.dark(False)
    page.wait_for(f"{ground} !== '{dark}'")
