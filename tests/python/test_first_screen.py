"""The first screen of a report, in a real browser: ten questions are answered from what is seen without scrolling."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from first_screen import QUESTIONS, open_at, seen, unanswered
from live_browser import Page, browser, executable
from made_experiment import Effect, Made, result, trial, with_findings, write_run
from made_run import MadeTrial, Stream, arrivals, make_run
from made_sweep import made_breaking_point, made_curve

from perflab.report.run_page.page import report
from perflab.report.runs import open_all
from tests.marks import long_but

Json = dict[str, Any]

pytestmark = pytest.mark.skipif(executable() is None, reason="no Chromium; install chromium")

LOAD = {"workers": 2, "load": 80.0, "method": "matrixprod", "cpus": [0, 1]}
VARIANTS = {"cyclonedds": Effect(), "fastdds": Effect(latency=1.8)}
TREATMENTS = {"cpu_load": Effect(latency=2.4, cpu=0.9), "cpu_pinning": Effect(latency=1.3)}
MANIFEST: Json = {
    "middlewares": [{"name": name, "version": "1.2.3", "options": {}} for name in VARIANTS],
    "host": {"hostname": "robot7", "cpu_model": "Test CPU", "cpus_online": "0-3", "memory_kb": 8 << 20},
    "preflight": [{"name": "virtual machine", "status": "warn", "value": "KVM", "advice": "use another"}],
}
SHARE = {
    "messages": 9, "messages_percent": 90.0, "total_ns": 22_000_000, "total_percent": 92.0, "having": 10,
    "each_p50_ns": 2_200_000, "each_max_ns": 4_000_000, "stages": "sender",
}  # fmt: skip
WHY: Json = {
    "sentence": "Of 10 late messages 9 waited for CPU 1 behind stress-ng", "limit": "1.00 ms", "messages": 1054,
    "late": 10, "total_ns": 24_000_000, "causes": [{"cause": "cpu", **SHARE}],
    "totals": [
        {"what": "CPU 1: stress-ng", "cause": "cpu", "who": "stress-ng", **SHARE, "total_percent": 61.0},
        {"what": "CPU 0: perflab itself (pid 7)", "cause": "cpu", "who": "perflab", **SHARE, "total_percent": 31.0},
    ],
}  # fmt: skip


def named(summary: Json) -> Json:
    for one in summary["results"]:
        one["workload"] = "sierra_nevada"
        one["condition_parameters"] = {c: LOAD if c == "cpu_load" else {"count": 1} for c in one["conditions"]}
    return summary


def demo() -> Json:
    """Two middlewares, two conditions, eight blocks, and a traced trial of one of them."""
    summary = named(Made(variants=VARIANTS, treatments=TREATMENTS).summary())
    again = dict(summary["results"][1])
    traced = trial(999, why=WHY, purpose="extra")
    summary["results"].append({**again, **result([traced]), **{k: again[k] for k in ("workload", "middleware",
        "conditions", "condition_parameters", "treatment")}, "purpose": "extra", "observers": ["tracing"]})  # fmt: skip
    return summary


def invalid() -> Json:
    summary = named(Made(treatments=TREATMENTS).summary())
    disturbed = summary["results"][1]
    for one in disturbed["trials_detail"][:2]:
        one |= {"outcome": "invalid", "reason": "cpu_load: a worker ended", "measured": False}
    disturbed["outcomes"] |= {"success": 6, "invalid": 2}
    return summary


def interrupted() -> Json:
    summary = named(Made(treatments=TREATMENTS, blocks=2).summary())
    last = summary["results"][2]["trials_detail"][-1]
    last |= {"outcome": "harness_error", "reason": "interrupted by SIGINT", "interrupted": True, "measured": False}
    summary["results"][2]["outcomes"] |= {"success": 1, "harness_error": 1}
    return summary


def without_differences() -> Json:
    return named(Made(treatments={"cpu_load": Effect()}, blocks=10, spread=0.005).summary())


def single() -> Json:
    return named({"schema": 1, "run": "run", "valid": True, "results": [result([trial(1)])]})


CLIPPED = (
    "[...document.querySelectorAll('.scroll')].filter((table) => table.scrollWidth > table.clientWidth)"
    ".map((table) => `${table.getAttribute('aria-label')}: ${table.scrollWidth} > ${table.clientWidth}`)"
)
COMMON = dict.fromkeys(QUESTIONS, "") | {
    "What was tested?": r"sierra_nevada",
    "On which middleware?": r"on cyclonedds 1\.2\.3 and fastdds 1\.2\.3",
    "On what machine?": r", on Test CPU, CPUs 0-3, 8.00 GiB",
    "Under which conditions?": r"undisturbed and under 2 × 80 % CPU load and pinning to 1 CPU",
    "What was invalid?": r"No trial was invalid",
    "Why were messages late?": r"No trial was traced; --observer tracing shows why",
}
LOADED = {"Under which conditions?": r"undisturbed and under 2 × 80 % CPU load"}
RUNS: Mapping[str, tuple[Any, Json, Json]] = {
    "demo": (demo, {}, COMMON | {
        "How many trials, and how long?": r"81 trials of 2 s",
        "Which is worse, and by how much?": r"latency p50 fastdds, cpu_load ▲ worse 2\.4\d× \[2\.\d\d, 2\.\d\d\]",
        "How sure is that?": r"intervals: 95 % for all 25 together.* to \d+ µs, n = 8 and 24",
        "Can it be trusted, and why?":
            r"! Read these results with care .*! Noise on this machine: virtual machine \(KVM\).* The trials of the "
            r"baseline scatter by .* ✔ All 20 comparisons are decided",
        "Why were messages late?": r"cpu_load: 10 of 1 054 messages late; 92 % of their time: CPU of others, "
            r"mostly CPU 1: stress-ng, 61 %\. Perflab itself had their CPU for 31 %\.",
    }),
    "invalid": (invalid, {}, COMMON | {
        "How many trials, and how long?": r"40 trials of 2 s",
        "Which is worse, and by how much?": r"latency p99 cpu_load ▲ worse 2\.\d\d× \[",
        "How sure is that?": r"n = 6 and 24",
        "What was invalid?": r"2 of 40 trials were invalid: .* Trials 9 and 10 \(cpu_load\): cpu_load: a worker ended",
        "Can it be trusted, and why?": r"! Read these results with care",
    }),
    "interrupted": (interrupted, {"trials": [{}] * 20}, COMMON | {
        "How many trials, and how long?": r"9 trials of 2 s.* 9 of 20 planned trials are here",
        "Which is worse, and by how much?": r"8 undecided.*response p99 cpu_load \? too few trials 2\.4\d×",
        "How sure is that?": r"n = 2 and 6.*8 of 8 comparisons are inconclusive",
        "Can it be trusted, and why?": r"! Read these results with care ! 9 of 20 planned trials ran",
    }),
    "without differences": (without_differences, {}, COMMON | LOADED | {
        "How many trials, and how long?": r"30 trials of 2 s",
        "Which is worse, and by how much?": r"Of 5 comparisons 5 without a difference that matters",
        "How sure is that?": r"= no difference 1\.00× \[0\.99, 1\.0\d\].*n = 10 and 20",
        "Can it be trusted, and why?": r"Read these results with care .*✔ The trials of the baseline scatter by 0\.\d",
    }),
    "single": (single, {}, COMMON | {
        "Under which conditions?": r"undisturbed",
        "How many trials, and how long?": r"1 trial of 2 s",
        "Which is worse, and by how much?": r"One trial: there is nothing to compare",
        "How sure is that?": r"the scatter of trials is unknown",
        "Can it be trusted, and why?": r"✖ These results are not enough to rely on .*One trial of each",
    }),
}  # fmt: skip


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A report of each of these runs."""
    made = {}
    for name, (summary, manifest, _) in RUNS.items():
        run = write_run(tmp_path_factory.mktemp("first") / "run", with_findings(summary()), **MANIFEST, **manifest)
        made[name] = run / "report.html"
        made[name].write_text(report(open_all([str(run)])).page, encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A report of a sweep, of a search, and of two runs; and one with pictures of results."""
    folder = tmp_path_factory.mktemp("others")
    summary = with_findings(named(Made(treatments=TREATMENTS).summary()))
    later = with_findings(named(Made(treatments={name: Effect(latency=3.0) for name in TREATMENTS}).summary()))
    runs: dict[str, dict[str, Any]] = {
        "sweep": {"first": replace(summary, curves=(made_curve(), made_curve("fastdds", None)))},
        "search": {"first": replace(summary, results=summary.results[:1], findings=None,
                                    breaking_points=(made_breaking_point(),))},
        "two": {"first": summary, "second": replace(later, run="second")},
    }  # fmt: skip
    made = {}
    for name, found in runs.items():
        paths = [write_run(folder / name / run, of, **MANIFEST) for run, of in found.items()]
        made[name] = folder / f"{name}.html"
        made[name].write_text(report(open_all([str(path) for path in paths])).page, encoding="utf-8")
    return {**made, "drawn": drawn(folder)}


def test_a_sweep_shows_its_curves_first_and_every_level_folded(page: Page, others: dict[str, Path]) -> None:
    open_at(page, others["sweep"], 1400)
    text = seen(page)
    assert "Latency p50 over message_flood.rate" in text and "Latency p99 over message_flood.rate" in text
    assert "Over message_flood.rate no change is shown." in text
    folded = "document.querySelector('#overview .what-differs details:not([open]) summary').textContent"
    assert page.ask(folded).startswith("Every level compared with the baseline: ")
    small = "document.querySelectorAll('#overview .multiples .plot').length"
    assert page.ask(small) == 4


def test_a_search_shows_where_it_broke_with_its_interval(page: Page, others: dict[str, Path]) -> None:
    open_at(page, others["search"], 1400)
    text = seen(page)
    assert "Breaking point over message_flood.rate" in text
    words = made_breaking_point().words[0].rstrip(".")
    assert words == "Breaks at 1480" and words in text


def test_runs_stand_against_the_first_one_and_their_own_effects_are_folded(page: Page, others: dict[str, Path]) -> None:
    open_at(page, others["two"], 1400)
    text = seen(page)
    assert re.search(r"second against first: \d+ (worse|inconclusive|too few trials)", text), text
    change = r"second compared with first, the worst first: change \[intervals: 95 % for all \d+ together\]"
    assert re.search(change, text)
    assert re.search(r"(first|run): sierra_nevada .* second: sierra_nevada", text)
    assert "Within each run:" in page.ask("document.getElementById('overview').textContent")
    dead = "[...document.querySelectorAll('a[href^=\"#\"]')].filter((a) => !document.getElementById(a.hash.slice(1)))"
    assert page.ask(f"{dead}.map((a) => a.hash)") == []


@pytest.mark.parametrize("name", ["sweep", "search", "two"])
@pytest.mark.parametrize("width", [1400, 420])
def test_no_table_of_theirs_is_clipped_and_a_telephone_is_wide_enough(
    page: Page, others: dict[str, Path], name: str, width: int
) -> None:
    open_at(page, others[name], width)
    page.ask("document.querySelectorAll('main details').forEach((details) => (details.open = true))")
    assert page.ask("document.documentElement.scrollWidth") == width
    if width == 1400:
        assert page.ask(CLIPPED) == []


def test_whatever_can_be_pressed_is_reached_and_seen_by_keyboard(page: Page, others: dict[str, Path]) -> None:
    """Every fold, link and button: it can have the focus, and then has an outline."""
    open_at(page, others["two"], 1400)
    page.ask("document.querySelectorAll('main details').forEach((details) => (details.open = true))")
    page.press("Tab")  # from here on the focus is that of a keyboard
    unseen = page.ask(
        "[...document.querySelectorAll('summary, a, button, select, input, .scroll')]"
        ".filter((e) => e.checkVisibility())"
        ".filter((e) => { e.focus({focusVisible: true}); const style = getComputedStyle(e);"
        " return document.activeElement !== e || style.outlineStyle === 'none' || parseFloat(style.outlineWidth) < 1"
        " || style.opacity === '0'; }).map((e) => e.outerHTML.slice(0, 100))"
    )
    assert unseen == []


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(tmp_path_factory.mktemp("browser") / "profile") as opened:
        yield opened


@pytest.mark.parametrize("name", RUNS)
def test_ten_questions_are_answered_without_scrolling(page: Page, pages: dict[str, Path], name: str) -> None:
    open_at(page, pages[name], 1400)
    text = seen(page)
    assert unanswered(text, RUNS[name][2]) == [], text


@pytest.mark.parametrize("name", RUNS)
def test_a_telephone_shows_what_ran_what_was_found_and_whether_to_trust_it(
    page: Page, pages: dict[str, Path], name: str
) -> None:
    open_at(page, pages[name], 420)
    text = seen(page)
    answers = RUNS[name][2]
    for question in ("What was tested?", "On what machine?", "Under which conditions?"):
        assert not unanswered(text, dict.fromkeys(QUESTIONS, "") | {question: answers[question]}), text
    assert any(words in text for words in ("Read these results with care", "not enough to rely on")), text
    assert page.ask("document.documentElement.scrollWidth") == 420


@pytest.mark.parametrize("name", RUNS)
def test_no_table_is_clipped(page: Page, pages: dict[str, Path], name: str) -> None:
    open_at(page, pages[name], 1400)
    page.ask("document.querySelectorAll('main details').forEach((details) => (details.open = true))")
    assert page.ask(CLIPPED) == []


def drawn(path: Path) -> Path:
    """A report with pictures: of a run of two results with records."""
    streams = [Stream("a", "t", "b", 10, 200, arrivals([50.0 + n % 7 for n in range(200)]))]
    trials = [MadeTrial(streams, conditions=conditions) for conditions in ((), (), ("cpu_load",), ("cpu_load",))]
    run = make_run(path / "run", {"p": ["a", "b"]}, trials)
    (path / "drawn.html").write_text(report(open_all([str(run)])).page, encoding="utf-8")
    return path / "drawn.html"


def axe() -> str:
    pytest.importorskip("axe_core_python", reason="no axe-core; install perflab[test]")
    return resources.files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")


# Each page once, and each width and each colours on some; the other combinations are for the long check.
@pytest.mark.parametrize(
    ("name", "width", "dark"),
    long_but(
        [
            *(("demo", 1400, False), ("drawn", 420, True), ("sweep", 1400, True)),
            *(("search", 420, False), ("two", 420, True)),
        ],
        itertools.product(("demo", "drawn", "sweep", "search", "two"), (1400, 420), (False, True)),
    ),
)
def test_axe_finds_nothing_serious(
    page: Page, pages: dict[str, Path], others: dict[str, Path], name: str, width: int, dark: bool
) -> None:
    script = axe()
    open_at(page, {**pages, **others}[name], width, dark=dark)
    page.ask("document.querySelectorAll('main details').forEach((details) => (details.open = true))")
    if page.ask("document.querySelector('.plot') !== null"):
        page.wait_for("window.perflabDrawAll !== undefined")
        page.ask("perflabDrawAll()")
    page.ask(f"{script}; 0")
    # What is folded into rows that are asked for is looked at, too.
    page.ask("document.querySelectorAll('button.all').forEach((button) => button.click())")
    found = page.ask(
        "axe.run(document, {resultTypes: ['violations']}).then((found) => JSON.stringify(found.violations"
        ".filter((one) => ['serious', 'critical'].includes(one.impact))"
        ".map((one) => [one.id, one.help, one.nodes.slice(0, 3).map((node) => node.html.slice(0, 200))])))"
    )
    assert json.loads(found) == []


def test_the_keyboard_reaches_what_a_pointer_does(page: Page, pages: dict[str, Path]) -> None:
    open_at(page, pages["demo"], 1400)
    reached = []
    for _ in range(24):
        page.press("Tab")
        reached.append(page.ask("(document.activeElement.getAttribute('aria-label') || document.activeElement"
                                ".textContent).trim()"))  # fmt: skip
    assert reached[0] == "To the findings"
    assert "Copy as Markdown" in reached and "latency p50" in reached
    # A link that is seen where it has the focus leads to the finding of its row.
    page.ask("document.querySelector('.effects a').focus()")
    page.press("Enter")
    page.wait_for("location.hash.startsWith('#finding-')")
    target = "document.getElementById(location.hash.slice(1))"
    assert "latency p50" in page.ask(f"{target}.textContent")
    page.ask(f"{target}.querySelector('.anchor').focus()")
    assert page.ask("getComputedStyle(document.activeElement).opacity") == "1"


def test_every_effect_leads_to_its_finding_and_every_picture_has_a_link(page: Page, pages: dict[str, Path]) -> None:
    open_at(page, pages["demo"], 1400)
    dead = "[...document.querySelectorAll('a[href^=\"#\"]')].filter((a) => !document.getElementById(a.hash.slice(1)))"
    assert page.ask(f"{dead}.map((a) => a.hash)") == []
    twice = "[...document.querySelectorAll('[id]')].map((e) => e.id).filter((id, i, all) => all.indexOf(id) !== i)"
    assert page.ask(twice) == []


@pytest.mark.parametrize("name", ["sweep", "search"])
def test_what_a_curve_or_a_search_shows_has_a_link(page: Page, others: dict[str, Path], name: str) -> None:
    open_at(page, others[name], 1400)
    bare = "[...document.querySelectorAll('#findings .findings > li:not([id])')].map((e) => e.textContent.slice(0, 80))"
    assert page.ask(bare) == []
    twice = "[...document.querySelectorAll('[id]')].map((e) => e.id).filter((id, i, all) => all.indexOf(id) !== i)"
    assert page.ask(twice) == []


def test_figures_of_a_run_without_comparisons_are_seen(page: Page, tmp_path: Path) -> None:
    summary = with_findings(named({"schema": 1, "run": "run", "valid": True, "results": [result([trial(1)])]}))
    path = tmp_path / "alone.html"
    run = open_all([str(write_run(tmp_path / "run", summary, **MANIFEST))])
    path.write_text(report(run).page, encoding="utf-8")
    open_at(page, path, 1400)
    text = seen(page)
    assert re.search(r"What was measured .*latency p99 \d+ µs .*lost 0 ", text), text
    assert re.search(r"\| latency p99 \| \d+ µs \| 1 \|", page.ask("document.getElementById('markdown').textContent"))


def test_a_link_into_what_is_folded_opens_it(page: Page, pages: dict[str, Path]) -> None:
    open_at(page, pages["demo"], 1400)
    folded = "document.querySelector('details:not([open]) [id^=finding-]')"
    key = page.ask(f"{folded}.id")
    page.ask(f"location.hash = '#{key}'")
    page.wait_for(f"document.getElementById('{key}').checkVisibility()")


def test_it_is_copied_as_markdown(page: Page, pages: dict[str, Path]) -> None:
    open_at(page, pages["invalid"], 1400)
    page.ask("document.addEventListener('copy', () => (window.copied = String(getSelection())))")
    page.ask("Object.defineProperty(navigator, 'clipboard', {value: {writeText: async (t) => (window.copied = t)}}), 0")
    page.ask("document.querySelector('.copy-markdown').click()")
    page.wait_for("document.querySelector('.copy-markdown').textContent === 'Copied'")
    text = page.ask("window.copied")
    assert text.startswith("### sierra_nevada\n")
    assert "| ▲ worse | cpu\\_load | latency p99 | 2." in text
    assert "- ! 2 of 40 trials were invalid" in text
