"""The level that is printed beside an interval is the one that the interval was computed with."""

from __future__ import annotations

import ast
import io
import re
from dataclasses import replace

import numpy as np
import pytest
from made_experiment import read_results, result, trial
from made_levels import LOAD, loads
from made_sweep import curve_document, made_breaking_point, made_curve
from rich.console import Console
from support import SOURCE

from perflab.models import as_json, read
from perflab.report import answers, levels
from perflab.report.figures import Figure
from perflab.report.latex.table import Table
from perflab.report.latex.tables import of_curves
from perflab.report.levels import curves as pictures
from perflab.results.curve import Curve
from perflab.results.summary import Summary
from perflab.statistics import curves, estimate, findings
from perflab.statistics.breaking_point import Aim, Search, Space
from perflab.statistics.difference import shift
from perflab.statistics.metrics import METRICS
from perflab.statistics.proportion import wilson
from perflab.statistics.sample import Block, Design
from perflab.units import format_confidence


def whisker(figure: Figure) -> str:
    (words,) = [key.label for key in figure.keys if key.sign == "whisker" and "Wilson" in key.label]
    return words


def success_of(curve: Curve) -> Figure:
    return next(figure for figure in pictures([("", curve)]) if figure.name.endswith("success"))


def test_no_module_writes_a_level_of_its_own() -> None:
    """A level comes from what was computed, or from the constant it was given; the help makes its text of that."""
    level = re.compile(r"\b9[059] ?%")
    written = []
    for path in sorted((SOURCE / "perflab").rglob("*.py")):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        described = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}  # docstrings give examples
        texts = [node for node in nodes if isinstance(node, ast.Constant) and id(node) not in described]
        written += [(path.name, t.value) for t in texts if isinstance(t.value, str) and level.search(t.value)]
    assert not written


@pytest.mark.parametrize(
    ("levels", "words"),
    [((0.95,), "95 %"), ((1 - 0.001,), "99.9 %"), ((0.9999,), "99.99 %"), ((0.95, 0.9, 0.95), "90 % or 95 %")],
)
def test_a_level_is_not_rounded_to_certainty(levels: tuple[float, ...], words: str) -> None:
    assert format_confidence(*levels) == words


def test_too_few_trials_are_too_few_for_the_level_that_was_asked_for() -> None:
    _, reason = estimate.order_statistics(np.arange(8.0), 0.5, 0.999)
    assert reason == "8 values are too few for an interval of 99.9 %: it needs 11"
    of = Design((Block(np.arange(4.0), np.arange(4.0)),), blocked=False)
    assert str(shift(of, 0.999).reason).endswith("are too few for an interval of 99.9 %")


def test_a_remark_on_successes_has_the_interval_of_alpha() -> None:
    trials = [trial(n, n) for n in range(1, 10)] + [trial(10, 10, outcome="failed", reason="late")]
    for alpha, level in ((0.05, "95 %"), (0.2, "80 %")):
        found = as_json(findings.find(read_results([result(trials)]), alpha=alpha, metrics=(METRICS["latency.p99"],)))
        (said,) = [r["words"] for r in found["remarks"] if r["kind"] == "success"]
        low, high = wilson(9, 10, 1 - alpha) or (0.0, 0.0)
        assert f"9 of 10 trials succeeded ({level} interval {100 * low:.0f}–{100 * high:.0f} %)" in said


def test_curves_say_the_level_of_their_shares_and_pictures_and_tables_repeat_it() -> None:
    (curve,) = curves.of(read_results(loads(n=6)), {LOAD: []}, alpha=0.2)
    assert curve.success_confidence == pytest.approx(0.8)
    assert whisker(success_of(curve)) == "80 % interval (Wilson)"
    assert made_curve().success_confidence is None  # of an older run, which does not say it
    assert whisker(success_of(made_curve())) == "interval (Wilson)"
    made = curve_document(success_confidence=0.8)
    made["metrics"]["latency.p50"]["confidence"] = 0.9
    (table,) = of_curves(Summary(run="r", valid=True, results=(), curves=(read(Curve, made),)))
    assert isinstance(table, Table)
    assert "90 % or 95 % intervals at each level" in table.caption.replace(r"\,\%", " %")
    assert "Wilson's 80 % interval" in table.caption.replace(r"\,\%", " %")


def test_a_search_says_its_confidence_and_pictures_repeat_it() -> None:
    search = Search(Space(0.0, 10.0), Aim(0.9, confidence=0.8), seed=1)
    assert search.result().confidence == 0.8
    for entry, words in (
        (made_breaking_point(confidence=0.8), "its 80 % interval (Wilson)"),
        (made_breaking_point(), "its interval (Wilson)"),
    ):
        (figure, *_) = levels.breaking_points([("", entry)])  # the shares come first
        assert whisker(figure) == words


def test_a_share_without_an_interval_gets_none_made_up() -> None:
    entry = made_breaking_point(confidence=0.8)
    entry = replace(entry, levels=tuple(replace(level, low=None, high=None) for level in entry.levels))
    out = io.StringIO()
    answers.print_breaking_points(
        Console(file=out, width=120), Summary(run="r", valid=True, results=(), breaking_points=(entry,))
    )
    shares = [line for line in out.getvalue().splitlines() if re.search(r"\d/\d+ .*%", line)]
    assert shares
    assert not any("[" in line for line in shares)
