"""Pictures of sweeps and of searches for a breaking point: known places of marks, and what is said beside them."""

from __future__ import annotations

import base64
import json
import math
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from made_run import MadeTrial, Stream, arrivals, make_run
from made_sweep import LEVELS, curve_document, made_breaking_point, made_curve, search_document
from support import as_they_are
from test_plot import HOSTILE, Page, rows, signal, svg_text

from perflab.cli import main
from perflab.models import as_json, read
from perflab.report import draw, draw_html, pictures
from perflab.report.figures import Figure, Series
from perflab.report.levels import (
    APART,
    MIN_TRIALS,
    breaking_points,
    curves,
    level_text,
    levels_axis,
    value_at,
)
from perflab.report.palette import DARK, LIGHT
from perflab.results.curve import BreakingPoint, Curve
from perflab.runs.rundata import open_run
from tests.marks import long_but

DEFAULT = made_curve()


def named(figures: list[Figure], name: str) -> Figure:
    (found,) = [figure for figure in figures if figure.name == name]
    return found


def only(figure: Figure, **members: Any) -> Series:
    (found,) = [s for s in figure.series if all(getattr(s, name) == value for name, value in members.items())]
    return found


# -- curves ------------------------------------------------------------------------------------------------------------


def test_each_metric_has_a_picture_and_success_has_one() -> None:
    assert [figure.name for figure in curves([("", made_curve())])] == [
        "curve_message_flood_rate_latency_p50",
        "curve_message_flood_rate_latency_p99",
        "curve_message_flood_rate_lost_share",
        "curve_message_flood_rate_success",
    ]


@pytest.mark.parametrize(("theme", "background"), [("auto", LIGHT.background), ("dark", DARK.background)])
def test_still_pictures_are_whole_and_small(theme: draw_html.Choice, background: str) -> None:
    figures = curves([("", made_curve())])
    made = draw_html.parts(figures, theme, still=True)
    assert list(made.sections) == [figure.name for figure in figures]
    assert made.library == "" and made.data == ""
    for figure in figures:
        (coded,) = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', made.sections[figure.name])
        svg = base64.b64decode(coded)
        assert ElementTree.fromstring(svg).tag.endswith("svg")
        assert background.encode() in svg
        assert figure.y.title.encode() in svg, "text stays text"
        assert len(svg) <= len(draw.draw(figure, "svg", "dark" if theme == "dark" else "light"))


def test_a_curve_stands_at_its_levels_with_its_intervals() -> None:
    figure = named(curves([("", made_curve())]), "curve_message_flood_rate_latency_p99")
    line, marks = only(figure, shape="line"), only(figure, shape="whiskers", across=False)
    assert list(line.x) == list(LEVELS)
    expected = [80 * math.exp(max(0, level - 1500) / 500) for level in LEVELS]
    assert line.y == pytest.approx(expected)
    assert (marks.x, marks.y) == (line.x, line.y)
    assert marks.low == pytest.approx([0.8 * v for v in expected])
    assert marks.high == pytest.approx([1.3 * v for v in expected])
    assert figure.y.title == "latency p99 (µs)"
    assert figure.y.scale == "log"
    assert figure.y.low < 64
    assert figure.y.high > 1.3 * expected[-1]


def test_knee_and_saturation_are_marks_of_their_own_on_the_curve_with_their_intervals_and_in_words() -> None:
    figures = curves([("", made_curve())])
    knee = only(named(figures, "curve_message_flood_rate_latency_p99"), sign="ring")
    assert (knee.x, knee.y, knee.low, knee.high, knee.across) == ((1500,), (80,), (1300,), (1800,), True)
    figure = named(figures, "curve_message_flood_rate_latency_p99")
    assert "From 1500 on p99 rises faster." in figure.notes
    assert [label.text for label in figure.labels] == ["knee 1\u2009500"]
    assert "knee, with its interval" in [key.label for key in figure.keys]
    saturation = only(named(figures, "curve_message_flood_rate_lost_share"), sign="box")
    assert (saturation.x, saturation.low, saturation.high) == ((2000,), (1800,), (2300,))


def test_a_flat_curve_has_no_such_mark_and_says_why() -> None:
    figure = named(curves([("", made_curve(knee=None))]), "curve_message_flood_rate_latency_p99")
    assert not [s for s in figure.series if s.sign in ("ring", "box")]
    assert "No knee: the curve is straight." in figure.notes


def test_variants_lie_over_each_other_a_little_aside_and_are_named() -> None:
    figures = curves([("", made_curve()), ("", made_curve("fastdds", None))])
    figure = named(figures, "curve_message_flood_rate_latency_p99")
    assert figure.groups == ((0, "cyclonedds"), (1, "fastdds"))
    first, second = (only(figure, shape="line", group=group) for group in (0, 1))
    for a, b in zip(first.x, second.x, strict=True):
        assert a is not None
        assert b is not None
        assert b - a == pytest.approx(APART * (figure.x.high - figure.x.low))
    assert any(note.startswith("fastdds: No knee") for note in figure.notes)
    assert "Marks side by side were measured at the same level." in figure.notes


def test_runs_and_other_factors_are_in_the_names() -> None:
    found = [("monday", made_curve(others={"message_flood.publishers": 2})), ("tuesday", made_curve())]
    figure = named(curves(found), "curve_message_flood_rate_success")
    assert figure.groups == ((0, "monday, cyclonedds, message_flood.publishers=2"), (1, "tuesday, cyclonedds"))


def test_the_success_rate_has_wilsons_intervals_on_an_axis_of_shares() -> None:
    figure = named(curves([("", made_curve())]), "curve_message_flood_rate_success")
    marks = only(figure, shape="whiskers")
    assert list(marks.y) == [100, 100, 100, 100, 60, 60, 60]
    assert marks.low[-1] == pytest.approx(23.07)
    assert marks.high[-1] == pytest.approx(88.24)
    assert (figure.y.low, figure.y.high) == (-3, 103)
    assert [text for _, text in figure.y.ticks] == ["0", "20", "40", "60", "80", "100"]


def test_what_was_invalid_is_said_and_what_is_not_known_breaks_the_line() -> None:
    document = curve_document()
    document["metrics"]["latency.p99"]["points"][2] = None
    curve = read(Curve, document)
    figure = named(curves([("", curve)]), "curve_message_flood_rate_latency_p99")
    values = only(figure, shape="line").y
    assert values[2] is None
    assert len(only(figure, shape="whiskers", across=False).x) == len(LEVELS) - 1
    assert "1 trial was invalid: left out." in figure.notes


def test_a_metric_without_any_value_has_no_picture() -> None:
    document = curve_document()
    document["metrics"]["latency.p99"]["points"] = [None] * len(LEVELS)
    curve = read(Curve, document)
    assert "curve_message_flood_rate_latency_p99" not in [figure.name for figure in curves([("", curve)])]


def test_on_a_logarithmic_axis_a_factor_that_is_off_stands_apart() -> None:
    levels = levels_axis("rate", "log", [0, 100, 1000, 3000])
    assert levels.axis.low < levels.at(0) < 100 / 1.4
    assert (levels.at(100), levels.at(3000)) == (100, 3000)
    assert levels.axis.ticks[0] == (levels.at(0), "0")
    curve = made_curve(scale="log")
    line = only(named(curves([("", curve)]), "curve_message_flood_rate_latency_p99"), shape="line")
    assert line.y[1] is None, "no line between off and on"


def test_between_levels_a_curve_is_read_as_it_is_drawn() -> None:
    own = DEFAULT.metrics["latency.p99"]
    at_1750 = value_at(DEFAULT, own, 1750, logarithmic=True)
    assert at_1750 == pytest.approx(80_000 * math.exp(0.5))
    assert value_at(DEFAULT, own, 1250, logarithmic=False) == pytest.approx(80_000)
    assert value_at(DEFAULT, own, 5000, logarithmic=True) is None


@pytest.mark.parametrize(("level", "text"), [(1500, "1\u2009500"), (0.25, "0.25"), (1234.56, "1\u2009235"), (0, "0")])
def test_levels_are_written_without_needless_digits(level: float, text: str) -> None:
    assert level_text(level) == text


# -- breaking points ---------------------------------------------------------------------------------------------------


def test_a_breaking_point_stands_at_the_wanted_share_with_its_interval() -> None:
    share, course = breaking_points([("", made_breaking_point())])
    point = only(share, sign="ring")
    assert (point.x, point.y, point.low, point.high) == ((1480,), (90,), (1410,), (1540,))
    assert [(r.label, r.value) for r in share.references] == [("90 % wanted", 90)]
    assert [label.text for label in share.labels] == ["1\u2009480"]
    fit, band = only(share, shape="line"), only(share, shape="band")
    assert len(fit.x) == len(band.low) == 61
    assert all(low <= v <= high for low, v, high in zip(band.low, fit.y, band.high, strict=True))  # type: ignore[operator]
    assert "Breaks at 1480." in share.notes
    assert "Left out: 1 trial (1 invalid); they count neither way." in share.notes
    assert course.name == "breaking_point_message_flood_rate_course"


def test_levels_have_their_shares_larger_marks_for_more_trials_and_intervals_where_there_are_enough() -> None:
    document = search_document()
    document["levels"][0] |= {"met": 1, "n": 1}
    entry = read(BreakingPoint, document)
    share, _ = breaking_points([("", entry)])
    bare, measured = only(share, shape="points"), only(share, shape="whiskers", across=False)
    assert (bare.x, bare.y) == ((800,), (100,))
    assert list(measured.x) == [1300, 1350, 1400, 1450, 1500, 1550, 1600, 1700, 2200]
    by_level = dict(zip(measured.x, measured.sizes, strict=True))
    assert by_level[1500] > by_level[1300] > bare.sizes[0]
    first = entry.levels[1]
    assert measured.low[0] == pytest.approx(100 * (first.low or 0))
    assert f"Levels with fewer than {MIN_TRIALS} trials are drawn without an interval." in share.notes


def test_the_course_tells_apart_what_met_it_what_did_not_and_what_says_nothing() -> None:
    entry = made_breaking_point()
    _, course = breaking_points([("", entry)])
    for met, sign in ((True, "full"), (False, "hollow"), (None, "cross")):
        steps = [step for step in entry.course if step.met is met]
        marks = only(course, sign=sign)
        assert marks.x == tuple(step.order for step in steps)
        assert marks.y == tuple(step.level for step in steps)
    band = only(course, shape="band")
    assert (band.low, band.high) == ((1410, 1410), (1540, 1540))
    assert course.notes == ("Precise enough.",)


@pytest.mark.parametrize("state", ["not_reached", "not_monotone", "unsettled"])
def test_where_nothing_was_found_there_is_no_mark_and_the_words_say_so(state: str) -> None:
    entry = made_breaking_point(value=None, state=state, words=[f"This is {state}"])
    share, course = breaking_points([("", entry)])
    assert not [s for figure in (share, course) for s in figure.series if s.sign == "ring" or s.shape == "band"]
    assert f"This is {state}." in share.notes
    assert len(only(share, shape="whiskers").x) > 5


def test_searches_of_one_criterion_share_a_picture_and_have_a_course_each() -> None:
    found = [("", made_breaking_point()), ("", made_breaking_point("fastdds", 2100))]
    figures = breaking_points(found)
    assert [f.name.removeprefix("breaking_point_message_flood_rate") for f in figures] == ["", "_course_1", "_course_2"]
    assert figures[0].groups == ((0, "cyclonedds"), (1, "fastdds"))
    assert figures[2].title.endswith(": fastdds")
    assert figures[2].groups == ((1, "fastdds"),), "the colour that it has beside the other"
    other = breaking_points([*found, ("", made_breaking_point(criterion="latency.p99 <= 5ms", share=0.5))])
    assert len({figure.name for figure in other}) == len(other) == 5


# -- drawn -------------------------------------------------------------------------------------------------------------


def made() -> list[Figure]:
    figures = curves([("", made_curve()), ("", made_curve("fastdds", None))])
    return [*figures, *breaking_points([("", made_breaking_point()), ("", made_breaking_point("fastdds", 2100))])]


@pytest.mark.parametrize("background", long_but(["light"], ["light", "dark"]))
def test_they_are_drawn_with_their_words(background: Any) -> None:
    for figure in made():
        texts = svg_text(draw.draw(figure, "svg", background))
        assert figure.title in texts
        assert {key.label for key in figure.keys} <= set(texts)
        assert {label.text for label in figure.labels} <= set(texts)
        assert draw.draw(figure, "png", background).startswith(b"\x89PNG")


def test_a_page_has_their_intervals_and_areas() -> None:
    found = {f["id"]: f["spec"] for f in Page(draw_html.page(as_they_are(made()), "t")).figures}
    across = [
        r for r in rows(found["curve_message_flood_rate_latency_p99"], "rules") if r["y"] == r["y2"] and not r["dx"]
    ]
    assert [(r["x"], r["x2"]) for r in across if r["x"] != r["x2"]] == [(1300, 1800)]
    searched = found["breaking_point_message_flood_rate"]
    points = rows(searched, "points")
    bands = [s for s, style in enumerate(signal(searched, "style")) if style["band"]]
    assert len(bands) == 2
    assert sum(p["s"] == bands[0] and p["low"] is not None for p in points) == 61
    assert len({p["size"] for p in points if p["size"]}) > 1


def test_names_of_variants_cannot_become_markup() -> None:
    figures = [*curves([("", made_curve(HOSTILE))]), *breaking_points([("", made_breaking_point(HOSTILE))])]
    assert "img" not in Page(draw_html.page(as_they_are(figures), "t")).tags


# -- the command -------------------------------------------------------------------------------------------------------


@pytest.fixture
def swept(tmp_path: Path) -> Path:
    """A run whose summary has a curve and a breaking point."""
    trial = MadeTrial([Stream("talker", "chat", "listener", 10, 30, arrivals([100] * 30))])
    path = make_run(tmp_path / "swept", {"mouth": ["talker"], "ear": ["listener"]}, [trial])
    summary = json.loads((path / "summary.json").read_text())
    summary |= {"curves": [made_curve()], "breaking_points": [made_breaking_point()]}
    (path / "summary.json").write_text(json.dumps(as_json(summary)))
    return path


def test_curves_and_breaking_points_can_be_drawn_for_papers(swept: Path, capsys: Any) -> None:
    assert main(["plot", str(swept), "--kind", "curves,breaking_points", "--format", "pdf"]) == 0
    files = sorted(path.name for path in (swept / "plots").iterdir())
    assert files == [
        "breaking_point_message_flood_rate.pdf",
        "breaking_point_message_flood_rate_course.pdf",
        "curve_message_flood_rate_latency_p50.pdf",
        "curve_message_flood_rate_latency_p99.pdf",
        "curve_message_flood_rate_lost_share.pdf",
        "curve_message_flood_rate_success.pdf",
    ]
    for name in files:
        content = (swept / "plots" / name).read_bytes()
        assert content.startswith(b"%PDF-")
        assert b"CreationDate" not in content
        assert b"/FontFile2" in content, "letters are in the file, as TrueType (Type 42)"
    assert "Not drawn" not in capsys.readouterr().out


def test_a_run_without_a_sweep_says_so_where_curves_are_named_alone(tmp_path: Path, capsys: Any) -> None:
    trial = MadeTrial([Stream("talker", "chat", "listener", 10, 30, arrivals([100] * 30))])
    path = make_run(tmp_path / "plain", {"mouth": ["talker"], "ear": ["listener"]}, [trial])
    assert main(["plot", str(path), "--kind", "curves"]) == 2
    assert "curves: no factor was swept in these runs" in capsys.readouterr().err
    assert main(["plot", str(path), "--format", "html"]) == 0
    assert "Not drawn" not in capsys.readouterr().out


def test_a_report_has_them_in_its_order_and_under_names_that_differ(swept: Path) -> None:
    found = pictures.of_report([open_run(swept)]).drawn
    keys = list(dict.fromkeys(key for key, _ in found))
    assert keys == [key for key in pictures.BY_NAME if key in keys]
    assert {"percentiles", "time", "curves", "breaking_points", "cpu", "rss"} <= set(keys)
    names = [figure.name for _, figure in found]
    assert len(set(names)) == len(names)
    draw_html.parts([figure for _, figure in found])
