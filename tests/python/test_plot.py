"""`perflab plot` as a user meets it: files that hold the measured lines, one line for bad input, a page that draws."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import struct
import subprocess
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser
from importlib import resources
from pathlib import Path
from typing import Any

import live_browser
import pytest
from conftest import Perflab
from made_run import MadeTrial, Stream, arrivals, make_run
from made_sweep import made_breaking_point, made_curve
from made_watched import watched
from support import as_they_are, run_here, two_processes, unpacked
from test_cli import one_line
from test_figures import one_result, sample, thousand, trial, values_edge

from perflab.cli import main
from perflab.report import cpus, draw, draw_html, pictures
from perflab.report.figures import Figure
from perflab.report.levels import breaking_points, curves
from perflab.report.palette import DARK, LIGHT
from perflab.report.per_trial import per_trial
from perflab.report.results import FIGURES, Trials

DRAWN = ["latency_percentiles", "latency_edges", "latency_time", "cpu", "rss"]  # of a single trial

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
BROWSER_TIMEOUT_S = 120


@pytest.fixture(scope="module")
def finished_run(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 1 s on the native doubles, whose latency is 100 µs throughout."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "small.json").write_text(json.dumps(two_processes()))
    done = run_here(["run", "small.json", "-t", "1", "-s", "0.1", "-o", "run", "-q"], folder, environment)
    assert (done.returncode, done.stderr) == (0, "")
    return folder / "run"


@pytest.fixture
def run(finished_run: Path, tmp_path: Path) -> Path:
    """A copy of the run, to be changed at will."""
    return Path(shutil.copytree(finished_run, tmp_path / "run"))


def figures(name: str = "m") -> tuple[Figure, ...]:
    edges = [values_edge(thousand()), values_edge(thousand(2), subscription=f"/{name}")]
    found = one_result(trial(*edges, samples=[sample(1, 10), sample(2, 20)], middleware=name))
    return pictures.build(found, ("percentiles", "edges", "cpu", "rss"), ("latency",)).figures


def svg_text(svg: bytes) -> list[str]:
    root = ET.fromstring(svg)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    return ["".join(t.itertext()) for t in root.iter("{http://www.w3.org/2000/svg}text")]


class Page(HTMLParser):
    """What a page holds, and what it would load from elsewhere."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.plots: list[str] = []
        self.loads: list[str] = []
        self.scripts: list[str] = []
        self.tags: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append(tag)
        if given.get("class") == "plot":
            self.plots.append(given["id"] or "")
        self.loads += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "data")]
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] == "script":
            self.scripts[-1] += data

    @property
    def figures(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(unpacked(self.scripts[0]))["figures"]
        return found


def rows(spec: dict[str, Any], table: str) -> list[dict[str, Any]]:
    """A table that an embedded specification draws."""
    (columns,) = [data["columns"] for data in spec["data"] if data["name"] == table]
    return draw.rows(columns)


def signal(spec: dict[str, Any], name: str) -> Any:
    (value,) = [signal["value"] for signal in spec["signals"] if signal["name"] == name]
    return value


# -- the command -----------------------------------------------------------------------------------------------------


def test_a_run_is_drawn_as_a_page_and_as_pictures_beside_it(perflab: Perflab, run: Path) -> None:
    done = perflab("plot", run)
    assert (done.returncode, done.stderr) == (0, "")
    expected = [run / "plots" / name for name in ["plots.html", *(f"{name}.svg" for name in DRAWN)]]
    assert done.stdout.split() == [str(path) for path in expected]
    assert sorted(p.name for p in (run / "plots").iterdir()) == sorted(p.name for p in expected)
    page = Page((run / "plots/plots.html").read_text())
    assert page.plots == DRAWN
    texts = svg_text((run / "plots/latency_edges.svg").read_bytes())
    assert "ping → listener · ping" in texts
    assert "latency (µs)" in texts


def test_the_page_holds_what_was_measured(perflab: Perflab, run: Path) -> None:
    assert perflab("plot", run, "--format", "html").returncode == 0
    plots = {f["id"]: f["spec"] for f in Page((run / "plots/plots.html").read_text()).figures}
    names = [style["name"] for style in signal(plots["latency_percentiles"], "style")]
    curve = [p for p in rows(plots["latency_percentiles"], "points") if names[p["s"]] == "cyclonedds"]
    assert curve[-1]["y"] == pytest.approx(100, rel=1e-3)
    times = {style["name"] for style in signal(plots["latency_time"], "style")}
    assert {"cyclonedds, p50", "cyclonedds, p99", "cyclonedds, maximum"} <= times


def test_every_format_kind_and_place(perflab: Perflab, run: Path, tmp_path: Path) -> None:
    one = tmp_path / "deep/one.png"
    done = perflab("plot", run, "--kind", "cpu", "-o", one, "--dpi", "100", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"files": [str(one)], "missing": [], "notes": []}
    head = one.read_bytes()[:24]
    assert head.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">I", head[16:20])[0] == 900
    folder = tmp_path / "folder"
    assert (
        perflab("plot", run, run, "--format", "svg,png", "--figure", "latency,response", "-o", folder).returncode == 0
    )
    made = {p.name for p in folder.iterdir()}
    assert {"latency_response_percentiles.svg", "response_time.png", "cpu.png"} <= made
    assert not any(name.endswith(".html") for name in made)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["RUN", "--kind", "pie"], "--kind 'pie' is not a picture; choose from course, outcomes, loops, histograms, "),
        (["RUN", "--kind", ""], "--kind '' is not a picture"),
        (["RUN", "--format", "gif"], "--format 'gif' is not a format; choose from html, svg, png, pdf"),
        (["RUN", "--figure", "lateness"], "--figure 'lateness' is not a figure; choose from latency, response"),
        (["RUN", "--figure", ",".join(FIGURES)], "names 9 figures; at most 6"),
        (
            ["RUN", "--kind", "time", "--figure", "dispatch"],
            "--figure dispatch was not measured in run; measure it with",
        ),
        (["RUN", "--only", "nobody"], "--only 'nobody' matches no result; there are "),
        (["RUN", "--theme", "pink"], "--theme 'pink' is not one of auto, light, dark"),
        (["RUN", "--dpi", "7"], "--dpi 7 is not within 50..600"),
        (["RUN", "--target", "nothing"], "--target 'nothing' is neither a file nor"),
        (["RUN", "-o", "all.svg"], "--output all.svg is one file, but there are 5 pictures"),
        (["RUN", "-o", "all.svg", "--format", "png"], "--format png excludes --output all.svg"),
        (["nothing"], "no run 'nothing'"),
        ([], "RUN"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(
    perflab: Perflab, run: Path, graph_file: Path, arguments: list[str], expected: str
) -> None:
    words = [word.replace("RUN", str(run)).replace("GRAPH", str(graph_file)) for word in arguments]
    done = perflab("plot", *words)
    assert done.returncode == 2, done
    assert re.search(expected, one_line(done.stderr)), done.stderr
    assert done.stdout == ""
    assert not (run / "plots").exists()


def test_a_place_that_cannot_be_written_is_a_failure_and_no_bad_input(
    perflab: Perflab, run: Path, graph_file: Path
) -> None:
    done = perflab("plot", run, "-o", graph_file / "below")
    assert done.returncode == 1, done
    assert re.search("cannot write .*below.*: Not a directory; choose another place", one_line(done.stderr))


def test_a_named_figure_that_was_not_measured_is_said_where_other_pictures_are_drawn(
    perflab: Perflab, run: Path
) -> None:
    done = perflab("plot", run, "--figure", "latency,dispatch", "--format", "html")
    assert done.returncode == 0, done.stderr
    assert "Not drawn: --figure dispatch was not measured in run; measure it with" in done.stdout
    assert Page((run / "plots/plots.html").read_text()).plots == [
        "latency_percentiles", "latency_edges", "latency_time", "cpu", "rss",
    ]  # fmt: skip
    only = perflab("plot", run, "--figure", "dispatch", "--format", "html")
    assert only.returncode == 0, only.stderr
    assert Page((run / "plots/plots.html").read_text()).plots == ["cpu", "rss"]


def asking(topic: bool) -> MadeTrial:
    asks = Stream("talker", "add", "listener", 10, 32, arrivals([300] * 29 + [900]), service=True)
    return MadeTrial([asks, Stream("talker", "chat", "listener", 10, 30, arrivals([100] * 30))] if topic else [asks])


@pytest.mark.parametrize("topic", [False, True])
def test_round_trips_are_drawn_beside_the_others(topic: bool, tmp_path: Path, capsys: Any) -> None:
    made = make_run(tmp_path / "asking", {"mouth": ["talker"], "ear": ["listener"]}, [asking(topic)])
    assert main(["plot", str(made), "--kind", "percentiles,edges", "--format", "svg"]) == 0
    names = {path.stem for path in (made / "plots").iterdir()}
    latency = {"latency_percentiles", "latency_edges"} if topic else set()
    assert names == {"round_trip_percentiles", "round_trip_edges"} | latency
    texts = svg_text((made / "plots/round_trip_edges.svg").read_bytes())
    assert any("talker → listener · add" in text for text in texts)
    assert any("30 replies" in text for text in texts)
    capsys.readouterr()
    assert main(["plot", str(made), "--kind", "time", "--figure", "round_trip"]) == 2
    assert "round trips have no picture over time" in capsys.readouterr().err


def test_a_run_of_services_alone_is_drawn_without_any_option(tmp_path: Path, capsys: Any) -> None:
    made = make_run(tmp_path / "asking", {"mouth": ["talker"], "ear": ["listener"]}, [asking(False)])
    assert main(["plot", str(made), "--format", "html"]) == 0
    assert Page((made / "plots/plots.html").read_text()).plots == [
        "round_trip_percentiles", "round_trip_edges", "cpu", "rss",
    ]  # fmt: skip
    assert "Not drawn: time: " in capsys.readouterr().out


def test_of_many_results_the_slowest_is_drawn_and_those_that_are_named(tmp_path: Path, capsys: Any) -> None:
    def one(i: int) -> MadeTrial:
        latencies = [1000 - 10 * i] * 30  # the later ones are faster
        return MadeTrial(
            [Stream("talker", "chat", "listener", 10, 30, arrivals(latencies))], conditions=[f"load{i:02d}"]
        )

    made = make_run(tmp_path / "many", {"mouth": ["talker"], "ear": ["listener"]}, [one(i) for i in range(14)])
    assert main(["plot", str(made), "--format", "html"]) == 0
    out = capsys.readouterr().out
    assert "12 of 14 results are drawn, evenly over their p99 of latency, including the slowest; choose others" in out
    text = (made / "plots/plots.html").read_text()
    drawn = [f"load{i:02d}" for i in range(14) if f"load{i:02d}" in text]
    assert len(drawn) == 12
    assert (drawn[0], drawn[-1]) == ("load00", "load13")
    assert main(["plot", str(made), "--format", "html", "--only", "load00,load13"]) == 0
    assert "results are drawn" not in capsys.readouterr().out
    text = (made / "plots/plots.html").read_text()
    assert "load00" in text
    assert "load02" not in text


def many(count: int) -> list[Trials]:
    """Results of 1, 2, ... us."""
    return [one_result(trial(values_edge([1000 * (i + 1)] * 200), middleware=f"m{i}"))[0] for i in range(count)]


def test_levels_that_lie_evenly_have_the_slowest_among_them() -> None:
    found = many(30)
    found[7], found[29] = found[29], found[7]  # the slowest level is none of those that are chosen
    chosen = [found[i] for i in (0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 28, 29)]
    made = pictures.build(found, ("percentiles",), ("latency",), chosen=chosen)
    names = {name for figure in made.figures for _, name in figure.groups}
    assert len(names) == 12
    assert "m29" in names
    assert "evenly over their levels, including the slowest" in made.notes[0]


def test_extra_trials_are_drawn_only_where_there_are_no_others() -> None:
    (plain,) = many(1)
    traced = replace(plain, label="traced", trials=tuple(replace(t, purpose="extra") for t in plain.trials))
    made = pictures.build([plain, traced], ("percentiles", "edges"), ("latency",))
    assert {name for figure in made.figures for _, name in figure.groups} == {plain.label}
    assert made.notes == ("1 result of extra trials not drawn: an observer (tracing, a profiler) disturbed them.",)
    assert all(made.notes[0] in figure.notes for figure in made.figures)
    alone = pictures.build([traced], ("percentiles",), ("latency",))
    assert {name for figure in alone.figures for _, name in figure.groups} == {"traced"}


def test_a_run_without_any_data_is_bad_input(perflab: Perflab, run: Path) -> None:
    shutil.rmtree(run / "trials")
    (run / "trials").mkdir()
    done = perflab("plot", run)
    assert done.returncode == 2
    assert "no trial of run has records" in one_line(done.stderr)


def test_without_records_the_picture_over_time_is_missing_and_the_rest_is_drawn(perflab: Perflab, run: Path) -> None:
    for path in run.glob("trials/*/processes/*.jsonl"):
        path.unlink()
    done = perflab("plot", run, "--format", "html")
    assert done.returncode == 0, done.stderr
    assert "Not drawn: time: " in done.stdout
    text = (run / "plots/plots.html").read_text()
    assert Page(text).plots == ["latency_percentiles", "latency_edges", "cpu", "rss"]
    assert "Not drawn: time: " in text
    only = perflab("plot", run, "--kind", "time")
    assert only.returncode == 2
    assert "nothing to draw: time: " in one_line(only.stderr)


def test_a_run_that_was_killed_is_drawn_up_to_its_last_checkpoint(
    perflab: Perflab, graph_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "killed"
    failed = perflab("run", graph_file, "-t", "1", "-s", "0.1", "-o", out, "--middleware-option", "fake=die:ping", "-q")
    assert failed.returncode == 1
    done = perflab("plot", out, "--format", "svg", "--kind", "percentiles")
    assert done.returncode == 0, done.stderr
    texts = svg_text((out / "plots/latency_percentiles.svg").read_bytes())
    assert any("no trial succeeded" in text for text in texts)


def test_a_target_is_drawn_as_a_line(perflab: Perflab, run: Path, tmp_path: Path) -> None:
    target = tmp_path / "limits.json"
    target.write_text(json.dumps({"resources": {"cpu[%]": 15, "rss[KB]": 10240}}))
    done = perflab("plot", run, "--kind", "cpu,rss", "--target", target, "--format", "svg")
    assert done.returncode == 0, done.stderr
    assert "limits: 10 MiB" in svg_text((run / "plots/rss.svg").read_bytes())
    assert any(re.fullmatch(r"limits: 15 % of all \d+ CPUs", t) for t in svg_text((run / "plots/cpu.svg").read_bytes()))


def test_every_figure_that_a_target_bounds_is_drawn_against_its_bound(
    perflab: Perflab, run: Path, tmp_path: Path
) -> None:
    target = tmp_path / "limits.json"
    bounds = {"resources": {"rss[KB]": 1}, "latency_total": {"late[%]": 100, "mean[us]": 1e9, "lost[#]": 1}}
    target.write_text(json.dumps(bounds))
    done = perflab("plot", run, "--kind", "target", "--target", target, "--format", "svg")
    assert done.returncode == 0, done.stderr
    texts = svg_text((run / "plots/target.svg").read_bytes())
    assert "Measured against limits" in texts
    checked = json.loads(perflab("check", run, "--target", target, "--json").stdout)["results"]
    for figure in (figure for result in checked for figure in result["figures"]):
        words = f"{figure['name']}: {figure['measured']:.4g} {figure['unit']}, bound {figure['target']:g}"
        assert any(text.endswith(words) for text in texts), words
    without = perflab("plot", run, "--kind", "target", "--format", "svg")
    assert without.returncode == 2
    assert "target: no target was named; use --target" in one_line(without.stderr)


# -- drawing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("background", ["light", "dark"])
def test_pictures_are_well_formed_and_hold_their_series(background: Any) -> None:
    theme = {"light": LIGHT, "dark": DARK}[background]
    for figure in figures():
        svg = draw.draw(figure, "svg", background)
        texts = svg_text(svg)
        assert figure.title in texts
        assert figure.subtitle in texts
        (title, *_) = ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}title")
        assert title.text == f"{figure.title} ({figure.subtitle})"
        written = [text for axis in (figure.x, figure.y) if axis.scale != "rows" for _, text in axis.ticks]
        assert set(written) <= set(texts), "no tick is left out, for there is room"
        assert {label for _, label in figure.groups} <= set(texts)
        assert {key.label for key in figure.keys} <= set(texts)
        drawn = svg.decode().lower()
        assert theme.background in drawn
        assert theme.groups[0] in drawn


def test_the_same_figure_gives_the_same_file() -> None:
    one, same, other = figures()[0], figures()[0], figures()[1]
    assert one is not same
    for kind in draw.FORMATS:
        drawn = draw.draw(one, kind)
        assert drawn == draw.draw(same, kind)
        assert drawn != draw.draw(other, kind)


def test_a_page_loads_nothing_and_says_so_to_the_browser() -> None:
    page = Page(draw_html.page(as_they_are(figures()), "title"))
    assert [address for address in page.loads if not address.startswith("#picture-")] == []
    assert "default-src 'none'" in draw_html.page(as_they_are(figures()), "title")
    assert len(page.scripts) == 5
    assert "vegaEmbed" in unpacked(page.scripts[1])
    assert draw_html.NOTICE in draw_html.page(as_they_are(figures()), "title")


HOSTILE = "</script><img src=x onerror=alert(1)>{{scripts}}$x^2_&amp;"


def test_names_cannot_become_markup() -> None:
    made = figures(HOSTILE)
    text = draw_html.page(as_they_are(made), HOSTILE, [HOSTILE])
    page = Page(text)
    assert "img" not in page.tags
    assert len(page.scripts) == 5
    assert any(HOSTILE in style["name"] for style in signal(page.figures[0]["spec"], "style"))
    assert HOSTILE in svg_text(draw.draw(made[0], "svg"))


def test_colours_of_the_page_follow_the_theme() -> None:
    page = Page(draw_html.page(as_they_are(figures()), "t"))
    themes = json.loads(unpacked(page.scripts[0]))["themes"]
    assert {style["tone"] for style in signal(page.figures[0]["spec"], "style")} == {"group0"}
    for name, theme in (("light", LIGHT), ("dark", DARK)):
        assert themes[name]["group0"] == theme.groups[0]
        assert themes[name]["ink"] == theme.ink
    assert '<html lang="en" data-theme="dark">' in draw_html.page(as_they_are(figures()), "t", theme="dark")


# -- in a browser ----------------------------------------------------------------------------------------------------


def browse(page: Path, folder: Path) -> tuple[str, str]:
    """The page as a browser made it, and what it complained about. Skips where there is no browser."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip(f"no browser to load the page with: none of {', '.join(BROWSERS)}")
    done = subprocess.run(
        [
            browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--enable-logging=stderr", "--virtual-time-budget=20000", f"--user-data-dir={folder / 'browser'}",
            "--dump-dom", page.as_uri(),
        ],
        capture_output=True, text=True, timeout=BROWSER_TIMEOUT_S, check=False, stdin=subprocess.DEVNULL,
        env={**os.environ, "HOME": str(folder)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    complaints = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return done.stdout, "\n".join(complaints)


def changed(page: Path, script: str) -> Path:
    """A copy of the page that does something more at its end."""
    copy = page.with_name(f"changed_{page.name}")
    text, _, end = page.read_text().rpartition("</body>")
    copy.write_text(f"{text}<script>{script}</script></body>{end}")
    return copy


def test_every_plot_of_a_page_draws_in_a_browser(perflab: Perflab, run: Path, tmp_path: Path) -> None:
    assert perflab("plot", run, "--format", "html", "--theme", "dark").returncode == 0
    dom, complaints = browse(changed(run / "plots/plots.html", "perflabDrawAll()"), tmp_path)
    assert complaints == ""
    assert f'data-drawn="{len(DRAWN)}"' in dom
    sections = dom.split("<section")[1:]
    assert len(sections) == len(DRAWN)
    for section in sections:
        plot = section.partition('<div class="legend')[0]
        assert re.search(r'mark-line.*?<path [^>]*d="M', plot), section[:300]
        assert re.search(r'mark-symbol.*?<path [^>]*d="M', plot), section[:300]
        assert DARK.groups[0] in plot
        assert "role-axis-label" in plot


@pytest.fixture(scope="module")
def page_of_all(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with every shape that a figure can have, far longer than a screen."""
    folder = tmp_path_factory.mktemp("all")
    results = watched(folder / "run", {"": [100, 120], "load": [200, 220]})
    seen = [per_trial(results, "latency.p99"), cpus.cores(cpus.watch(results)), cpus.affinity(cpus.watch(results))]
    swept = curves([("", made_curve()), ("", made_curve("fastdds", None))])
    searched = breaking_points([("", made_breaking_point()), ("", made_breaking_point("fastdds", 2100))])
    made = [figure for figure in seen if figure is not None] + swept + searched
    assert len(made) == 10
    page = folder / "all.html"
    page.write_text(draw_html.page(as_they_are(made), "all"))
    return page


def test_what_is_far_below_is_drawn_when_it_comes_near(page_of_all: Path, tmp_path: Path) -> None:
    if live_browser.executable() is None:
        pytest.skip(f"no browser to load the page with: none of {', '.join(BROWSERS)}")
    drawn = "[...document.querySelectorAll('section')].map((section) => section.querySelector('svg.marks') !== null)"
    with live_browser.browser(tmp_path / "browser") as page:
        page.open(page_of_all.as_uri(), 1280, 900)
        page.wait_for(f"{drawn}[0]")
        assert not page.ask(drawn)[-1]
        page.ask("document.querySelector('section:last-of-type').scrollIntoView()")
        page.wait_for(f"{drawn}.at(-1)")
        assert not all(page.ask(drawn)), "what was never near is not drawn"
        assert page.complaints == []


def test_every_shape_draws_and_follows_the_theme(page_of_all: Path, tmp_path: Path) -> None:
    script = "perflabDrawAll(); setTimeout(() => { document.documentElement.dataset.theme = 'dark'; })"
    dom, complaints = browse(changed(page_of_all, script), tmp_path)
    assert complaints == ""
    assert 'data-drawn="10"' in dom
    for section in dom.split("<section")[1:]:
        plot = section.partition('<div class="legend')[0]
        assert LIGHT.ink not in plot
        assert DARK.ink in plot
        assert not any(tone in plot for tone in LIGHT.groups)
    assert len(re.findall(r"<line ", dom)) > 60, "whiskers with their caps"
    assert dom.count('"area mark container"') > 2, "bands"
    assert dom.count('fill="rgb(') > 8, "cells"


def test_before_printing_all_is_drawn_light_and_as_wide_as_paper(page_of_all: Path, tmp_path: Path) -> None:
    text = page_of_all.read_text().replace('data-theme="auto"', 'data-theme="dark"')
    dark = page_of_all.with_name("dark.html")
    dark.write_text(text)
    dom, complaints = browse(changed(dark, "dispatchEvent(new Event('beforeprint'))"), tmp_path)
    assert complaints == ""
    assert 'data-drawn="10"' in dom
    for section in dom.split("<section")[1:]:
        assert re.search(r'<svg [^>]*class="marks" width="680"', section), section[:300]
        assert f'fill="{LIGHT.ink}"' in section
    dom, _ = browse(
        changed(dark, "dispatchEvent(new Event('beforeprint')); dispatchEvent(new Event('afterprint'))"), tmp_path
    )
    assert all(f'fill="{DARK.ink}"' in section for section in dom.split("<section")[1:])


def test_a_result_that_is_hidden_before_its_plot_is_drawn_stays_hidden(page_of_all: Path, tmp_path: Path) -> None:
    script = "document.querySelector('[data-plot$=success][data-group=\"0\"]').click(); perflabDrawAll()"
    dom, complaints = browse(changed(page_of_all, script), tmp_path)
    assert complaints == ""
    (plot,) = [s for s in dom.split("<section")[1:] if 'id="curve_message_flood_rate_success"' in s]
    drawn = plot.partition('<div class="legend')[0]
    assert LIGHT.groups[0] not in drawn
    assert LIGHT.groups[1] in drawn


def test_a_reader_points_at_values_zooms_and_goes_back(page_of_all: Path, tmp_path: Path) -> None:
    if live_browser.executable() is None:
        pytest.skip(f"no browser to load the page with: none of {', '.join(BROWSERS)}")
    plot = "document.getElementById('breaking_point_message_flood_rate')"
    labels = f"[...{plot}.querySelectorAll('.role-axis-label text')].map((text) => text.textContent).sort().join(' ')"
    said = f"{plot}.querySelector('.said:not([hidden])')?.textContent"
    with live_browser.browser(tmp_path / "browser") as page:
        page.open(page_of_all.as_uri())
        page.wait_for("typeof perflabDrawAll === 'function'")
        page.ask("perflabDrawAll()")
        page.ask(f"{plot}.scrollIntoView()")
        rings = f"{plot}.querySelectorAll('.mark-symbol path[fill=transparent]')"
        middle = "((at) => [at.left + at.width / 2, at.top + at.height / 2])"
        ring = page.ask(f"{middle}({rings}[0].getBoundingClientRect())")

        def mouse(kind: str, right: float, down: float, **more: Any) -> None:
            page._call("Input.dispatchMouseEvent", type=kind, x=ring[0] + right, y=ring[1] + down, **more)

        mouse("mouseMoved", 1, 1)
        assert page.wait_for(said) == "cyclonedds\nbreaking point 1\u2009480 [1\u2009410, 1\u2009540]"
        whole = page.ask(labels)
        mouse("mousePressed", -50, 5, button="left", clickCount=1)
        mouse("mouseMoved", 250, 180, button="left", buttons=1)
        mouse("mouseReleased", 250, 180, button="left", clickCount=1)
        zoomed = page.wait_for(f"(({labels}) !== {json.dumps(whole)}) && ({labels})")
        assert "3\u2009000" in whole
        assert "3\u2009000" not in zoomed
        for kind in ("mousePressed", "mouseReleased"):
            mouse(kind, 100, 100, button="left", clickCount=2)
        page.wait_for(f"({labels}) === {json.dumps(whole)}")
        assert page.complaints == []
        assert page.requests == [page_of_all.as_uri()]


def test_a_reader_moves_what_is_seen_within_the_whole_on_every_scale(tmp_path: Path) -> None:
    if live_browser.executable() is None:
        pytest.skip(f"no browser to load the page with: none of {', '.join(BROWSERS)}")
    file = tmp_path / "page.html"
    file.write_text(draw_html.page(as_they_are(figures()), "t"))
    scales = {f.name: (f.x.scale, f.y.scale) for f in figures()}
    with live_browser.browser(tmp_path / "browser") as page:
        page.open(file.as_uri())
        page.wait_for("typeof perflabDrawAll === 'function'")
        page.ask("perflabDrawAll()")
        for name, expected in {
            "latency_percentiles": ("nines", "log"), "latency_edges": ("log", "rows"), "cpu": ("linear", "linear"),
        }.items():  # fmt: skip
            assert scales[name] == expected
            _check_that_it_moves(page, f"document.getElementById('{name}')", is_rows=expected[1] == "rows")
        assert page.complaints == []
        assert page.requests == [file.as_uri()]


def _check_that_it_moves(page: live_browser.Page, plot: str, *, is_rows: bool) -> None:
    """Places are shares of the plot's width and height, from its upper left corner."""
    page.ask(f"{plot}.scrollIntoView({{ block: 'center' }})")
    box = "((of) => { const at = of.getBoundingClientRect(); return [at.left, at.top, at.width, at.height]; })"

    def sides(*of: str) -> Any:
        return page.ask(f"{json.dumps(of)}.map((name) => {box}({plot}.querySelector(name)))")

    def mouse(kind: str, place: tuple[float, float], **more: Any) -> None:
        ((left, top, width, height),) = sides(".background")
        x, y = left + place[0] * width, top + place[1] * height
        page._call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def drag(begin: tuple[float, float], end: tuple[float, float]) -> None:
        held = {"button": "left", "modifiers": 8, "clickCount": 1}  # 8 is Shift
        mouse("mousePressed", begin, **held)
        mouse("mouseMoved", end, buttons=1, **held)
        mouse("mouseReleased", end, **held)

    def mark() -> tuple[float, float]:
        """The middle of a mark."""
        (left, top, width, height), (x, y, wide, high) = sides(".background", ".mark-symbol path")
        return (x + wide / 2 - left) / width, (y + high / 2 - top) / height

    def is_at(x: float, y: float) -> bool:
        return mark() == pytest.approx((x, first[1] if is_rows else y), abs=0.01)

    first = mark()
    drag((0.3, 0.3), (0.4, 0.5))
    assert mark() == first, "the whole stays where it is"
    page.ask(f"{plot}.querySelector('.tools button').click()")
    x, y = (2 * share - 0.5 for share in first)
    assert is_at(x, y), "zoomed around the middle"
    page.ask("getSelection().collapse(document.querySelector('h1'), 0)")
    drag((0.3, 0.3), (0.4, 0.5))
    assert is_at(x + 0.1, y + 0.2)
    assert page.ask("getSelection().isCollapsed"), "no text is selected by the way"
    drag((0.1, 0.1), (0.9, 0.9))
    assert is_at(2 * first[0], 2 * first[1]), "moved to the upper left corner of the whole"
    drag((0.9, 0.9), (0.1, 0.1))
    assert is_at(2 * first[0] - 0.8, 2 * first[1] - 0.8)
    drag((0.9, 0.9), (0.1, 0.1))
    assert is_at(2 * first[0] - 1, 2 * first[1] - 1), "moved to the lower right corner"
    (last, *_), (*_, width, _) = sides(".mark-symbol path", ".background")
    mouse("mouseWheel", (0.5, 0.5), deltaX=-0.1 * width, deltaY=0)
    page.wait_for(f"{box}({plot}.querySelector('.mark-symbol path'))[0] > {last + 0.09 * width}")
    seen, scrolled = mark(), page.ask("scrollY")
    mouse("mouseWheel", (0.5, 0.5), deltaX=0, deltaY=50 if scrolled == 0 else -50)
    page.wait_for(f"scrollY !== {scrolled}")
    assert mark() == pytest.approx(seen), "the wheel scrolls the page"


def test_the_browser_test_sees_what_a_page_does_wrong(tmp_path: Path) -> None:
    page = tmp_path / "bad.html"
    text, _, end = draw_html.page(as_they_are(figures()), "t").rpartition("</body>")
    page.write_text(f'{text}<img src="http://127.0.0.1:9/x.png"></body>{end}')
    _, complaints = browse(page, tmp_path)
    assert "Content Security Policy" in complaints


def test_a_browser_unpacks_what_was_packed(tmp_path: Path) -> None:
    """Blocks of every kind: as they are, with fixed codes, with codes of their own."""
    if live_browser.executable() is None:
        pytest.skip("no Chromium; install chromium")
    random = os.urandom(70_000).hex()
    texts = ["", "a", "aaaaaaaaaa" * 50_000, random, "µ→ " * 1000 + random[:999], json.dumps(list(range(40_000)))]
    with live_browser.browser(tmp_path / "browser") as page:
        page.ask(f"{resources.files('perflab').joinpath('pages', 'unpack.js').read_text()}; 0")
        for text in texts:
            assert unpacked(draw_html.packed(text)) == text
            assert page.ask(f"perflabUnpack({json.dumps(draw_html.packed(text))})") == text
        stored = base64.b64encode((3).to_bytes(4, "little") + b"\x01\x03\x00\xfc\xffabc").decode()
        assert page.ask(f"perflabUnpack('{stored}')") == unpacked(stored) == "abc"
