"""Tables of curves and breaking points on a terminal, wide and narrow."""

from __future__ import annotations

import io
from typing import Any

import pytest
from made_experiment import Effect, read_results
from made_levels import KNEE_AT_60, LOAD, loads, sweep
from made_sweep import curve_document, made_breaking_point, made_curve
from rich.console import Console

from perflab.models import as_json
from perflab.report.answers import print_breaking_points, print_curves
from perflab.results.summary import read
from perflab.statistics import curves

Json = dict[str, Any]


def printed(summary: Json, width: int = 80) -> list[str]:
    target = io.StringIO()
    out = Console(file=target, width=width, no_color=True, force_terminal=False, highlight=False)
    whole = read({"run": "made", "valid": True, "results": [], **as_json(summary)})
    print_curves(out, whole)
    print_breaking_points(out, whole)
    return [line.rstrip() for line in target.getvalue().rstrip().splitlines()]


@pytest.fixture(scope="module")
def degrading() -> Json:
    effects = {level: Effect(latency=factor, lost=20 * (level == 90)) for level, factor in KNEE_AT_60.items()}
    results = sweep(LOAD, effects, n=6)
    spoilt = results[-1]["trials_detail"]
    spoilt[0] |= {"outcome": "failed"}
    spoilt[1] |= {"outcome": "invalid", "measured": False}
    results[-1]["outcomes"] = {"success": 4, "failed": 1, "invalid": 1, "harness_error": 0}
    return {"curves": as_json(curves.of(read_results(results), {LOAD: list(KNEE_AT_60)}))}


GOLDEN_80 = """\
cyclonedds: cpu_load.load
load          success   left out           latency p99              lost
────────────────────────────────────────────────────────────────────────
 0 %  6/6 [61, 100 %]                509 [503, 522] µs  █▏             0
15 %  6/6 [61, 100 %]                507 [468, 520] µs  █▏             0
30 %  6/6 [61, 100 %]                513 [506, 521] µs  █▏             0
45 %  6/6 [61, 100 %]                528 [503, 546] µs  █▏             0
60 %  6/6 [61, 100 %]                537 [499, 550] µs  █▎             0
75 %  6/6 [61, 100 %]             1.49 [1.43, 1.59] ms  ███▍           0
90 %   4/5 [38, 96 %]  1 invalid               4.46 ms  ██████████    20
Left out at 80 columns: n, latency p50, response p99, CPU
- latency p99 rises from 509 µs at 0 % to 4.46 ms at 90 %: 8.72x [8.67, 8.92; 90
%], n = 5 to 6 a level, p = 0.0004 of a trend
- latency p99: knee at 61 % [45, 75], n = 5 to 6 a level
- latency p99: no saturation: it still changes from 75 % to 90 % (2.98x [2.80,
3.18; 90 %], n = 5 and 5)
- latency p50 rises from 98.7 µs at 0 % to 898 µs at 90 %: 9.01x [8.46, 9.41; 90
%], n = 5 to 6 a level, p = 0.0004 of a trend; knee at 61 % [60, 75]
- response p99 rises from 896 µs at 0 % to 8.47 ms at 90 %: 9.21x [8.78, 9.72;
90 %], n = 5 to 6 a level, p = 0.0004 of a trend; knee at 61 % [60, 75]
- lost rises from 0 at 0 % to 20 at 90 %: +20.75 [20, 22; 90 %], n = 5 to 6 a
level, p = 0.0004 of a trend; knee at 75 % [75, 90]
- CPU: no change is shown (20 % at 0 % to 20.1 % at 90 %, 0.986x [0.932, 1.04;
90 %], n = 5 to 6 a level, p = 0.92 of a trend)

Medians over trials [95 % interval]; shares with Wilson's interval
"""


def test_a_terminal_of_80_columns(degrading: Json) -> None:
    assert "\n".join(printed(degrading)) + "\n" == GOLDEN_80


def test_a_wide_terminal_has_every_metric(degrading: Json) -> None:
    header = printed(degrading, 160)[1]
    assert header.split() == [
        "load", "n", "success", "left", "out", "latency", "p50", "latency", "p99", "response", "p99", "lost", "CPU",
    ]  # fmt: skip


@pytest.mark.parametrize("width", [30, 40, 60, 80, 100, 140, 200])
def test_nothing_is_wider_than_the_terminal(degrading: Json, width: int) -> None:
    lines = printed({**degrading, "breaking_points": [made_breaking_point()]}, width)
    assert max(map(len, lines)) <= width
    assert sum(line.lstrip().startswith(tuple(f"{n} %" for n in KNEE_AT_60)) for line in lines) >= 7


def eighths(row: str) -> int:
    return sum(8 if ch == "█" else " ▏▎▍▌▋▊▉".index(ch) for ch in row if ch in "▏▎▍▌▋▊▉█")


def test_a_bar_starts_at_0_so_that_twice_as_long_is_twice_as_large() -> None:
    curve = curve_document()
    values = (0.0, 1.0, 2000.0, 2500.0, 5000.0, 10_000.0, 20_000.0)
    for point, value in zip(curve["metrics"]["latency.p99"]["points"], values, strict=True):
        point |= {"value": value, "low": None, "high": None}
    bars = [eighths(line) for line in printed({"curves": [curve]}) if " %]" in line]
    assert bars == [0, 1, 8, 10, 20, 40, 80]  # the least that is above 0 is seen


def test_bars_of_values_that_are_alike_are_alike() -> None:
    bars = [eighths(line) for line in printed({"curves": [made_curve(knee=None)]}) if " %]" in line]
    assert bars == [80] * 7


def test_a_level_without_a_value_has_a_dash_and_no_bar() -> None:
    results = loads()
    for t in results[6]["trials_detail"]:
        t |= {"outcome": "failed", "measured": False}
    results[6]["outcomes"] = {"success": 0, "failed": 5, "invalid": 0, "harness_error": 0}
    lines = printed({"curves": as_json(curves.of(read_results(results), {LOAD: []}))}, 200)
    row = next(line for line in lines if line.startswith("90 %"))
    assert row.split() == ["90", "%", "0", "0/5", "[0,", "43", "%]", "–", "–", "–", "–", "–"]
    assert "- latency p99: no value at 90" in lines


def test_several_curves_say_where_they_are() -> None:
    lines = printed({"curves": [made_curve(), made_curve("fastdds", None, others={"message_flood.publishers": 2})]})
    assert "cyclonedds: message_flood.rate" in lines
    assert "fastdds: message_flood.rate, at message_flood.publishers=2" in lines


def test_a_summary_without_sweeps_prints_nothing() -> None:
    assert printed({"results": []}) == []
    assert printed({"curves": [], "breaking_points": []}) == []


GOLDEN_BREAKING_POINT = """\
cyclonedds: message_flood.rate, latency.p99 <= 5ms
      rate  met                        share  invalid
─────────────────────────────────────────────────────
 548 msg/s  2/2  ██████████  100 % [34, 100]
1240 msg/s  4/8  █████         50 % [22, 78]
1500 msg/s  1/6  █▋             17 % [3, 56]        2
3000 msg/s  0/0                            –        1
- It breaks at 1 240 msg/s
"""


def test_a_breaking_point() -> None:
    entry = made_breaking_point(
        levels=[
            {"level": 1500, "met": 1, "n": 6, "low": 0.03, "high": 0.564, "invalid": 2},
            {"level": 548, "met": 2, "n": 2, "low": 0.342, "high": 1.0, "invalid": 0},
            {"level": 1240, "met": 4, "n": 8, "low": 0.215, "high": 0.785, "invalid": 0},
            {"level": 3000, "met": 0, "n": 0, "low": None, "high": None, "invalid": 1},
        ],
        criterion="latency.p99 <= 5ms",
        words=["It breaks at 1 240 msg/s."],
    )
    assert "\n".join(printed({"breaking_points": [entry]})) + "\n" == GOLDEN_BREAKING_POINT


@pytest.mark.parametrize("state", ["not_reached", "below_low", "not_monotone", "unsettled", "not_producible"])
def test_every_state_prints_its_words(state: str) -> None:
    lines = printed({"breaking_points": [made_breaking_point(value=None, state=state, levels=[], words=["So it is."])]})
    assert "- So it is" in lines
