"""What is in a report: the sentences, what is said first, the tables, and that nothing is loaded or runs by itself."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from made_experiment import Effect, Made, read_results, result, trial, with_findings, write_run
from made_run import MadeTrial, Stream, arrivals, make_run

from perflab import models
from perflab import page as pages
from perflab.errors import BadInput
from perflab.host import Host
from perflab.report.run_page.page import markdown, report
from perflab.report.runs import open_all
from perflab.results.curve import Bounds, BreakingPoint, Curve, CurveLevel, CurveMetric, Knee, LeftOutTrials, LevelTried
from perflab.results.figure import Median
from perflab.statistics.objectives import with_objectives

Json = dict[str, Any]

LOAD = {"workers": 4, "load": 80.0, "method": "matrixprod", "cpus": [0, 1]}
EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)> & \"quoted\" 'too' {{script}}"
VOID = ("meta", "link", "img", "input", "br", "hr")


class Page(HTMLParser):
    """The text of a page by its sections, its tables, what it would load, and its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.tags: list[str] = []
        self.handlers: list[str] = []
        self.text: dict[str, str] = {"": ""}
        self.order: list[str] = []
        self.rows: list[list[str]] = []
        self._section, self._open, self._silent = "", list[str](), False
        self.feed(text)
        self.close()
        assert self._open == [], f"not closed: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append(tag)
        self.loads += [v or "" for name, v in attrs if name in ("src", "href", "srcset", "data", "action", "poster")]
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        if tag not in VOID:
            self._open.append(tag)
        self._silent = tag in ("script", "style") or given.get("class") == "anchor"
        if tag == "section" and given.get("id") and not (given["id"] or "").startswith("picture-"):
            self._section = given["id"] or ""
            self.order.append(self._section)
            self.text[self._section] = ""
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("svg", "path", "circle", "rect") and (not self._open or self._open[-1] != tag):
            return  # closed where it was opened
        assert self._open and self._open[-1] == tag, f"</{tag}> closes {self._open[-1:]}"
        self._open.pop()
        self._silent = False
        if tag in ("p", "li", "td", "th", "dt", "dd", "h1", "h2", "h3", "h4", "summary", "span", "div"):
            self.text[self._section] += "\n"

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        if self._silent:
            return
        self.text[self._section] += data.replace("\u00a0", " ")
        if "td" in self._open or "th" in self._open:
            self.rows[-1][-1] += data.replace("\u00a0", " ")

    def said(self, section: str) -> str:
        return re.sub(r"\s+", " ", self.text[section])


def made(path: Path, summary: Json, **manifest: Any) -> Path:
    return write_run(path, with_findings(summary), **manifest)


def without_findings(path: Path, summary: Json, **manifest: Any) -> Path:
    """For tests of other sections, as findings of many trials take long."""
    return write_run(path, {**summary, "findings": None}, **manifest)


def page_of(*paths: Path, title: str | None = None) -> Page:
    return Page(report(open_all([str(path) for path in paths]), title=title).page)


def loaded(factor: float = 2.1, blocks: int = 8) -> Json:
    experiment = Made(
        treatments={"cpu_load": Effect(latency=factor)},
        blocks=blocks,
        condition_parameters={"cpu_load": LOAD},
    )
    return experiment.summary()


def test_a_difference_is_said_in_words_with_interval_and_numbers(tmp_path: Path) -> None:
    page = page_of(made(tmp_path / "run", loaded()))
    said = page.said("findings")
    found = re.search(
        r"worse Under 4 × 80 % CPU load, latency p99 rose (\S+)× \[(\S+), (\S+)\]\. "
        r"from \d+ µs to [\d.]+ ms, n = 8 and 16, p = \S+ for \d+ comparisons together",
        said,
    )
    assert found is not None, said
    value, low, high = (float(text) for text in found.groups())
    assert low <= value <= high and low <= 2.1 <= high
    assert re.search(r"= no difference Under 4 × 80 % CPU load: no difference larger than 5 % in CPU \(\S+× \[", said)
    assert "Of 5 comparisons 3 worse" in page.said("overview")


def test_a_difference_for_the_better_stands_below_those_for_the_worse(tmp_path: Path) -> None:
    experiment = Made(treatments={"cpu_load": Effect(latency=0.5), "cpu_pinning": Effect(cpu=2)}, blocks=6)
    said = page_of(made(tmp_path / "run", experiment.summary())).said("findings")
    assert "▼ better Under cpu_load, latency p50 fell to 0.5" in said
    assert said.index("▲ worse") < said.index("▼ better")


def test_too_few_trials_are_said_with_what_would_be_enough(tmp_path: Path) -> None:
    said = page_of(made(tmp_path / "run", loaded(2.0, blocks=2))).said("findings")
    assert "too few trials Under 4 × 80 % CPU load: too few trials; seen were latency p50 (" in said
    assert re.search(r"n = 2 and 4; about \d+ more trials of each would probably decide them", said)
    assert "worse" not in said


def test_one_trial_has_nothing_to_compare_and_says_what_to_run(tmp_path: Path) -> None:
    summary = {"schema": 1, "run": "run", "valid": True, "results": [result([trial(1)])]}
    experiment = {"written": {"workload": ["my robot.yaml"]}}
    said = page_of(write_run(tmp_path / "run", {**summary, "findings": None}, experiment=experiment)).said("findings")
    assert "One trial: there is nothing to compare" in said
    assert "perflab run 'my robot.yaml' --trials 10 --condition cpu_load:load=80" in said


def test_variants_are_compared_as_what_they_are_not_as_what_they_became(tmp_path: Path) -> None:
    experiment = Made(variants={"cyclonedds": Effect(), "fastdds": Effect(latency=3)})
    said = page_of(made(tmp_path / "run", experiment.summary())).said("findings")
    assert re.search(r"fastdds against cyclonedds: latency p99 is (2\.9|3\.0)\d× \[", said)


def test_failed_trials_have_their_share_with_an_interval_and_a_reason(tmp_path: Path) -> None:
    trials = [trial(n, n) for n in range(1, 6)]
    for one in trials[:4]:
        one |= {"outcome": "failed", "reason": "latency p99 <= 200 µs: not met with 840 µs"}
    summary = {"schema": 1, "run": "run", "valid": False, "results": [result(trials)]}
    said = page_of(made(tmp_path / "run", summary)).said("findings")
    assert "✖ failed At the baseline: 1 of 5 trials succeeded, 20 % [4 %, 62 %]." in said
    assert "n = 5; for example latency p99 <= 200 µs: not met with 840 µs" in said


def test_invalid_trials_are_said_before_all_else_with_their_numbers_and_reason(tmp_path: Path) -> None:
    summary = loaded(1.0, blocks=4)
    disturbed = summary["results"][1]
    for one in disturbed["trials_detail"][:2]:
        one |= {"outcome": "invalid", "reason": "cpu_load: a worker ended", "measured": False}
    disturbed["outcomes"] |= {"success": 2, "invalid": 2}
    page = page_of(made(tmp_path / "run", summary))
    first = page.said("overview")
    numbers = [one["trial"] for one in disturbed["trials_detail"][:2]]
    assert "! 2 of 12 trials were invalid: a condition was not in effect" in first
    assert f"Trials {numbers[0]} and {numbers[1]} (cpu_load): cpu_load: a worker ended." in first
    assert page.order[:2] == ["overview", "findings"]
    assert "12 trials: 10 successful, 2 invalid" in first and "Read these results with care" in first


def test_many_reasons_are_said_by_kind_with_an_example_and_the_rest_is_folded(tmp_path: Path) -> None:
    results = []
    for level in range(5):
        trials = [trial(3 * level + i, outcome="invalid") for i in range(1, 4)]
        for one in trials:
            one |= {"reason": f"f: {one['trial']}.5 of 900 messages were sent", "measured": False}
        results.append(result(trials, treatment=f"f rate={level}", conditions=["f"]))
    results[4]["trials_detail"][2]["reason"] = "f: a process ended"
    page = page_of(made(tmp_path / "run", {"schema": 1, "run": "run", "valid": False, "results": results}))
    first = page.said("overview")
    assert "15 of 15 trials were invalid" in first
    assert "14 trials, such as trial 1 (f rate=0): f: 1.5 of 900 messages were sent." in first
    assert "1 trial, trial 15 (f rate=4): f: a process ended." in first
    assert first.index("a process ended") < first.index("Every one of these trials") < first.index("Trials 4, 5 and 6")


def test_levels_of_many_treatments_stand_once_beside_what_they_have_in_common(tmp_path: Path) -> None:
    treatments = {f"cpu_load load={n}": Effect(latency=1.0) for n in range(10, 90, 10)}
    summary = Made(treatments=treatments, blocks=2).summary()
    for one in summary["results"]:
        if one["conditions"]:
            level = int(one["treatment"].rpartition("=")[2])
            one["condition_parameters"] = {"cpu_load": {**LOAD, "load": level}}
    said = page_of(without_findings(tmp_path / "run", summary)).said("setup")
    assert "cpu_load, 8 treatments" in said
    assert "load 10; 20; 30; 40; 50; 60; 70; 80" in said and said.count("matrixprod") == 1


def test_an_interrupted_run_says_so_first_and_how_to_go_on(tmp_path: Path) -> None:
    trials = [
        trial(1),
        trial(2, outcome="harness_error", reason="interrupted by SIGINT", interrupted=True, measured=False),
    ]
    summary = {"schema": 1, "run": "run", "valid": False, "results": [result(trials)]}
    page = page_of(made(tmp_path / "run", summary, trials=[{}, {}, {}, {}]))
    first = page.said("overview")
    assert "This run was ended before it was complete during trial 2: 1 of 4 planned trials are here" in first
    assert "perflab run --resume run" in first
    assert "stopped by a perflab error" not in first
    assert "1 successful, 1 interrupted" in first


def test_a_run_that_goes_on_says_so(tmp_path: Path) -> None:
    started = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    controller = {"pid": os.getpid(), "start_ticks": started, "boot_id": Host().boot_id()}
    streams = [Stream("a", "t", "b", 10, 100, arrivals([50] * 100))]
    path = make_run(tmp_path / "run", {"p": ["a", "b"]}, [MadeTrial(streams)], with_summary=False)
    manifest = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps({**manifest, "controller": controller, "trials": [{}, {}, {}]}))
    assert "This run is still in progress: 1 of 3 planned trials are here." in page_of(path).said("overview")


def test_a_search_that_was_interrupted_goes_on_by_its_own_verb(tmp_path: Path) -> None:
    trials = [
        trial(1),
        trial(2, outcome="harness_error", reason="interrupted by SIGINT", interrupted=True, measured=False),
    ]
    summary = {"schema": 1, "run": "run", "valid": False, "results": [result(trials)]}
    page = page_of(made(tmp_path / "run", summary, command_line=["perflab", "breaking-point", "x"], trials=[]))
    assert "during trial 2: 1 trial is here. perflab breaking-point --resume" in page.said("overview")


def test_a_whole_run_has_no_box(tmp_path: Path) -> None:
    page = page_of(made(tmp_path / "run", loaded()))
    assert "read this first" not in page.said("overview")


def test_sections_come_in_the_order_in_which_a_reader_wants_them(tmp_path: Path) -> None:
    runs = make_run(
        tmp_path / "run", {"p": ["a", "b"]}, [MadeTrial([Stream("a", "t", "b", 10, 100, arrivals([50] * 100))])]
    )
    page = page_of(runs)
    assert page.order == ["overview", "findings", "tables", "pictures", "setup", "quality", "repeat"]
    first, *links = [link for link in page.loads if link.startswith("#")][: len(page.order)]
    assert first == "#findings" and links == [f"#{name}" for name in page.order[1:]]
    assert {"#picture-latency_percentiles", "#tables"} <= set(page.loads)


def test_evidence_is_promised_beside_achieved_over_all_trials(tmp_path: Path) -> None:
    summary = loaded(1.0, blocks=3)
    for n, one in enumerate(summary["results"][1]["trials_detail"]):
        one["evidence"] = {
            "cpu_load": {
                "promised": {"demand_cpus": 3.2, "workers": 4},
                "achieved": {"cpus_wanted": 3.0 + n, "cpus_used": 1.5, "workers_alive": 4},
                "in_effect": n != 2,
                "reason": None if n != 2 else "worker 3 of 4 slept",
                "note": None,
            }
        }
    page = page_of(made(tmp_path / "run", summary))
    last = summary["results"][1]["trials_detail"][2]["trial"]
    said = page.said("conditions")
    assert "4 × 80 % CPU load" in said and "✖ in effect in 2 of 3 trials" in said
    assert f"trial {last}: worker 3 of 4 slept" in said
    assert ["CPUs wanted", "3.2", "4", "3 to 5"] in page.rows


def test_tables_have_every_trial_with_what_it_says(tmp_path: Path) -> None:
    page = page_of(made(tmp_path / "run", loaded(1.0, blocks=3)))
    head = next(row for row in page.rows if row[:3] == ["trial", "order", "block"])
    assert [*head] == [
        "trial", "order", "block", "result", "after", "outcome", "latency p50", "latency p99", "latency max",
        "received", "lost", "late", "CPU",
    ]  # fmt: skip
    rows = [row for row in page.rows if len(row) == len(head) and "✔ success" in row]
    assert [row[0] for row in rows] == [str(n) for n in range(1, 10)]


def test_cells_sort_by_their_values_and_not_by_their_text(tmp_path: Path) -> None:
    text = report(open_all([str(made(tmp_path / "run", loaded()))])).page
    cells = re.findall(r'data-by="([^"]*)">(?:<b[^>]*>[^<]*</b>\u00a0)?([\d.]+\u00a0(?:µs|ms))<', text)
    assert len(cells) > 40
    for by, shown in cells:
        value, unit = shown.split("\u00a0")
        assert float(by) == pytest.approx(float(value) * {"µs": 1e3, "ms": 1e6}[unit], rel=6e-3)


def test_a_long_table_is_folded_and_has_a_filter(tmp_path: Path) -> None:
    text = report(open_all([str(without_findings(tmp_path / "run", loaded(blocks=20)))])).page
    assert 'aria-label="Filter Trials"' in text and "Show all 60 rows" in text
    short = report(open_all([str(without_findings(tmp_path / "short", loaded(blocks=3)))])).page
    assert 'class="filter"' not in short and "Show all 9 rows" not in short


def test_several_runs_stand_side_by_side_and_are_compared(tmp_path: Path) -> None:
    first = made(tmp_path / "before", Made(seed=1).summary())
    second = made(tmp_path / "after", Made(seed=2, variants={"cyclonedds": Effect(latency=2)}).summary())
    page = page_of(first, second, title="Before and after")
    said = page.said("findings")
    assert re.search(r"after against before .*worse latency p99 is (1\.9|2\.0)\d× \[", said)
    assert "The runs were not interleaved" in said
    assert "Before and after" in page.said("") and "before, after" in page.said("")
    head = next(row for row in page.rows if row[0] == "trial")
    assert head[1] == "run"


def test_a_run_named_twice_is_refused(tmp_path: Path) -> None:
    path = without_findings(tmp_path / "run", loaded())
    with pytest.raises(BadInput, match="run is named twice"):
        open_all([str(path), f"{tmp_path}/./run"])


def test_whatever_is_called_what_stays_text_and_nothing_is_loaded(tmp_path: Path) -> None:
    streams = [Stream("a", EVIL, "b", 10, 100, arrivals([50] * 100))]
    path = make_run(tmp_path / "<b>run", {"p": ["a", "b"]}, [MadeTrial(streams)], workload=EVIL)
    manifest = json.loads((path / "manifest.json").read_text())
    manifest |= {"command_line": ["perflab", "run", EVIL], "environment": {"LD_PRELOAD": EVIL}}
    manifest["experiment"] = {"written": {"workload": EVIL}, "sources": [{"path": EVIL, "sha256": EVIL, "text": EVIL}]}
    manifest["preflight"] = [{"name": EVIL, "status": "warn", "value": EVIL, "advice": EVIL}]
    (path / "manifest.json").write_text(json.dumps(manifest))
    text = report(open_all([str(path)]), title=EVIL).page
    page = Page(text)
    assert page.tags.count("script") == 5 and "img" not in page.tags
    assert page.handlers == []
    assert all(link.startswith("#") for link in page.loads)
    assert text.count("default-src 'none'") == 1
    for section in ("tables", "repeat", "setup"):
        assert "<img src=x onerror=alert(2)>" in page.said(section)


def test_no_address_of_the_network_is_in_what_the_report_adds(tmp_path: Path) -> None:
    for name in ("base.html", "macros.html", "report.html", "sections.html", "report.css", "report.js"):
        assert "http:" not in pages.asset(name) and "https:" not in pages.asset(name)
    assert "@import" not in pages.asset("report.css") and "url(" not in pages.asset("report.css")


def test_it_can_be_repeated_from_the_page(tmp_path: Path) -> None:
    source = "workload: sierra_nevada\ntrials: 5  # blocks\n"
    manifest = {
        "command_line": ["/usr/bin/perflab", "run", "my experiment.yaml", "--trials", "7"],
        "run_id": "abcdef",
        "experiment": {
            "written": {"workload": ["sierra_nevada"], "trials": 7},
            "sources": [{"path": "/home/me/my experiment.yaml", "sha256": "0123", "text": source}],
        },
        "inventory": {
            "environment": {"CYCLONEDDS_URI": "file:///x.xml"},
            "software": {"perflab": {"version": "0.1.0", "git": {"revision": "cafe", "modified": True}}},
        },
        "middlewares": [{"name": "cyclonedds", "version": "0.10.2", "options": {}}],
    }
    page = page_of(made(tmp_path / "run", loaded(), **manifest))
    text = page.text["repeat"]
    assert "perflab run 'my experiment.yaml' --trials 7" in text
    assert source in text and "trials: 7" in text
    for word in ("cafe, with changes", "abcdef", "CYCLONEDDS_URI", "file:///x.xml", "cyclonedds 0.10.2", "0123"):
        assert word in page.said("repeat")


def test_noise_of_the_machine_is_shown_with_what_helps(tmp_path: Path) -> None:
    checks = [
        {"name": "load", "status": "warn", "value": "1.5 on 2 CPUs", "advice": "end it"},
        {"name": "turbo", "status": "ok", "value": "off", "advice": None},
    ]
    page = page_of(made(tmp_path / "run", loaded(), preflight=checks))
    assert ["load", "1.5 on 2 CPUs", "noisy", "end it"] in page.rows
    assert "1 other check of the machine found nothing." in page.said("setup")


def test_the_machine_is_told_without_opening_the_whole_inventory(tmp_path: Path) -> None:
    cgroup = {"cpus": "unlimited", "cpuset": "0-1", "memory_bytes": "unlimited"}
    inventory = {
        "cpu_model": "Test CPU",
        "machine": "x86_64",
        "cpus_online": "0-3",
        "cpus_allowed": 2,
        "cgroup": cgroup,
    }
    page = page_of(made(tmp_path / "run", loaded(), inventory=inventory))
    told, whole, _ = page.said("setup").partition("The whole inventory")
    assert whole
    for words in ("Test CPU", "x86_64", "2 of them usable", "unlimited, on 0-1"):
        assert words in told


def test_curves_and_breaking_points_have_words_and_tables(tmp_path: Path) -> None:
    latency = CurveMetric(
        unit="ns", points=(Median(value=1e5, low=9e4, high=1.1e5, n=5), None), confidence=0.95,
        knee=Knee(400, 300, 500, 0.95), knee_reason=None, saturation=None, saturation_reason="it never levels off",
        words=("latency p99 rises from 400 /s on",), course="higher",
    )  # fmt: skip
    levels = tuple(
        CurveLevel(
            level=level, treatment="x", n=5, successes=4, judged=5, success_low=0.38, success_high=0.96, invalid=1,
            harness_errors=0,
        )
        for level in (100, 1000)
    )  # fmt: skip
    curve = Curve(
        variant="cyclonedds", factor="message_flood.rate", others={}, scale="linear", levels=levels,
        metrics={"latency.p99": latency},
    )  # fmt: skip
    search = BreakingPoint(
        variant="cyclonedds", treatment="message_flood", factor="message_flood.rate", others={}, criterion="lost == 0",
        share=0.5, low=100, high=3000, scale="log", integer=False, falls=False, state="found", value=740.0,
        interval=Bounds(700.0, 790.0, 0.95), precision=0.1, max_trials=60, stopped="narrow enough", trials=24,
        left_out=LeftOutTrials(2, 0), levels=(LevelTried(740, 3, 6, 0.19, 0.81, 0),), course=(), fit=None,
        monotone_p=None, words=("breaks at 740 /s [700, 790]",),
    )  # fmt: skip
    summary = replace(with_findings(loaded()), curves=(curve,), breaking_points=(search,))
    page = page_of(write_run(tmp_path / "run", summary))
    said = page.said("findings")
    assert "Over message_flood.rate worse: latency p99. breaks at 740 /s [700, 790]. Of" in page.said("overview")
    assert "Over message_flood.rate, 8 of 10 trials succeeded. 4/5 at 100 msg/s, 4/5 at 1000 msg/s" in said
    assert "▲ worse Over message_flood.rate, latency p99 rises from 400 /s on." in said
    assert "breaking point Over message_flood.rate in msg/s, lost == 0: breaks at 740 /s [700, 790]." in said
    assert "searched message_flood.rate from 100 to 3000: where “lost == 0” is met in 50 % of trials" in page.said(
        "setup"
    )
    assert said.index("breaks at") < said.index("Every level compared with the baseline") < said.index("worse Under")
    assert ["latency p99", "400 [300, 500]", "–it never levels off"] in page.rows
    assert any(row[0] == "100 msg/s" and "100 µs[90.0 µs, 110 µs]" in row for row in page.rows)
    assert ["740 msg/s", "3/6", "50 % [19, 81]"] in page.rows
    assert "740 [700, 790] at 95 %" in page.said("breaking") and "24; left out: 2 invalid" in page.said("breaking")


def test_why_messages_were_late_is_told_with_its_causes(tmp_path: Path) -> None:
    share = {
        "messages": 10, "messages_percent": 100.0, "total_ns": 22_000_000, "total_percent": 92.0, "having": 10,
        "each_p50_ns": 2_200_000, "each_max_ns": 4_000_000, "stages": "sender",
    }  # fmt: skip
    why = {
        "sentence": "Of 10 late messages 10 waited for CPU 1 behind stress-ng", "limit": "1.00 ms", "messages": 1054,
        "late": 10, "total_ns": 24_000_000,
        "causes": [{"cause": "cpu", **share}], "totals": [{"what": "CPU 1: stress-ng", **share}],
    }  # fmt: skip
    summary = {"schema": 1, "run": "run", "valid": True, "results": [result([trial(1, why=why)])]}
    page = page_of(write_run(tmp_path / "run", {**summary, "findings": None}))
    assert "Of 10 late messages 10 waited for CPU 1 behind stress-ng." in page.said("traced")
    assert ["CPU of others", "10", "100 %", "22.0 ms", "92 %", "10", "2.20 ms", "4.00 ms"] in page.rows
    assert any(row[0] == "CPU 1: stress-ng" for row in page.rows)


def test_named_paths_and_their_objectives_are_shown_with_what_turns_the_verdict(tmp_path: Path) -> None:
    def traced(number: int, a: float, b: float) -> Json:
        scores = (("a", a), ("b", b))
        return trial(number, paths=[{"name": n, "weight": 1.0, "deadline_ns": 10**6, "scores": {"misses": s}}
                                    for n, s in scores])  # fmt: skip

    load = {"conditions": ["cpu_load"], "treatment": "cpu_load", "condition_parameters": {"cpu_load": {"load": 80}}}
    made = read_results([result([traced(1, 0.2, 0.3)]), result([traced(2, 0.4, 0.15)], **load)])
    results = [models.as_json(one) for one in with_objectives(made)]
    summary = {"schema": 1, "run": "run", "valid": True, "results": results}
    page = page_of(write_run(tmp_path / "run", {**summary, "findings": None}))
    (row,) = [row for row in page.rows if "share of misses" in row and "0.50 to 2.00" in row]
    assert row[-1] == "worse; better with a -50 %, a left out, b +50 %"
    assert "Weights: a 1, b 1." in page.said("objectives")


def test_what_is_damaged_is_said_and_the_rest_is_shown(tmp_path: Path) -> None:
    """What is a record is looked at when the run is read; what is not is left to those who show it."""
    why = {"sentence": "", "limit": "1.00 ms", "messages": 1, "late": 1, "total_ns": 1, "causes": [{"cause": "cpu"}]}
    trials = [trial(1, why=why, evidence={"cpu_load": {"promised": 80}})]
    summary = {"schema": 1, "run": "run", "valid": True, "results": [result(trials)]}
    whole = report(open_all([str(without_findings(tmp_path / "run", summary, inventory={"cpus": 7}))]))
    page = Page(whole.page)
    assert whole.notes == (
        "the evidence of conditions: damaged data: AttributeError: 'int' object has no attribute 'items'",
        "what was run: damaged data: TypeError: object of type 'int' has no len()",
        "the traced trials: damaged data: KeyError: 'messages'",
    )
    assert "not everything could be shown" in page.said("overview")
    assert "One trial: there is nothing to compare" in page.said("findings")


def test_a_run_without_a_trial_says_so(tmp_path: Path) -> None:
    summary = {"schema": 1, "run": "run", "valid": False, "results": [], "findings": None}
    page = page_of(write_run(tmp_path / "run", summary, trials=[{}, {}]))
    assert "0 of 2 planned trials are here" in page.said("overview") and "No trial was recorded." in page.said(
        "overview"
    )


@pytest.mark.parametrize("name", ["csv", "legacy", "two"])
def test_a_run_of_irobot_benchmark_has_a_report_of_what_it_holds(name: str) -> None:
    folder = Path(__file__).resolve().parent.parent / "data" / "irobot" / name
    whole = report(open_all([str(folder)]))
    page = Page(whole.page)
    assert whole.notes == ()
    assert "there is nothing to compare within it" in page.said("findings")
    assert "This is not a run of perflab" in page.said("repeat")
    assert any(row[0] == "publisher → subscription" for row in page.rows)


def test_no_text_names_a_folder_of_the_machine(tmp_path: Path) -> None:
    """Of a trial whose disk was full, and of an observer that lacks rights."""
    run = tmp_path / "some folder" / "run"
    reason = "process 'p' cannot write its records: /home/me/runs/run/trials/0002_x/p.jsonl: No space left on device"
    trials = [trial(1), trial(2, outcome="harness_error", reason=reason, measured=False)]
    grant = "`sudo setcap cap_perfmon,cap_bpf+ep /opt/me/lib/perflab/perflab-monitor` grants it"
    missing = {"observer": "tracing", "reason": f"tracing: the scheduler's events: {grant}", "rest": None}
    summary = {"schema": 1, "run": "run", "valid": False, "results": [result(trials)]}
    made(run, summary, trials=[{}, {}])
    manifest = json.loads((run / "manifest.json").read_text())
    (run / "manifest.json").write_text(json.dumps({**manifest, "not_recorded": [missing]}))
    runs = open_all([str(run)])
    for text in (report(runs).page, markdown(runs)):
        assert "/home/me/" not in text and "/opt/me/" not in text
        assert "trials/0002_x/p.jsonl: No space left on device" in text
        assert str(tmp_path) not in text
    assert "cap_bpf+ep perflab-monitor" in report(runs).page
