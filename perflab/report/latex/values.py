r"""Numbers by name: `\perflab{cpu_load/latency.p99}` in a paper stays correct when the run is repeated.

A name is treatment/metric, after the variant if there are several variants. Names with /low, /high, /interval and /n
have the details; effect, p and verdict are those of the comparison with the baseline.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from perflab.columns import Cell
from perflab.quantity import NUMBER, Quantity
from perflab.report.inventory import inventory_of, rows
from perflab.report.latex.table import values_of
from perflab.report.latex.text import escape
from perflab.report.tables.curves import point
from perflab.report.tables.results import confidence_of, effect, median_of, metrics_of, success
from perflab.results.comparison import CONDITION, Finding
from perflab.results.curve import BreakingPoint, Curve
from perflab.results.files import Manifest
from perflab.results.summary import Summary
from perflab.statistics.metrics import Metric, find
from perflab.statistics.pairs import Entering, places_of
from perflab.statistics.verdicts import p_in_words

Json = Mapping[str, Any]

COMMANDS = r"""% \perflab{NAME} prints a number of the list below, and complains about a name that is not in it.
\providecommand{\perflab}[1]{%
  \ifcsname perflab@\detokenize{#1}\endcsname
    \csname perflab@\detokenize{#1}\endcsname
  \else
    \GenericWarning{}{perflab: no value named \detokenize{#1}}\textbf{??}%
  \fi}
\providecommand{\perflabvalue}[2]{%
  \expandafter\def\csname perflab@\detokenize{#1}\endcsname{#2}}
"""
# A name with only these letters means the same in every LaTeX.
_UNSAFE = re.compile(r"[^A-Za-z0-9_.,=+:/@-]+")


def values(summary: Summary, manifest: Manifest, prefix: str = "") -> str:
    r"""One \perflabvalue for each number of a run."""
    seen: set[str] = set()
    lines = []
    for name, text in _all(summary, manifest):
        key = _UNSAFE.sub("-", f"{prefix}{name}").strip("-")
        if key in seen:
            continue
        seen.add(key)
        lines.append(f"\\perflabvalue{{{key}}}{{{text}}}\n")
    return "".join(lines)


def _all(summary: Summary, manifest: Manifest) -> Iterator[tuple[str, str]]:
    places = places_of(summary.results)
    level = confidence_of(summary)
    for place in places:
        before = f"{place.words}/".replace(", ", ",") if len(places) > 1 else ""
        for result in place.results:
            if result.result.trials:
                yield from _of_result(f"{before}{result.treatment}", result, metrics_of(summary), level)
    for c in () if summary.findings is None else summary.findings.comparisons:
        if c.kind == CONDITION and find(c.metric) is not None:
            before = f"{c.variant}/".replace(", ", ",") if len(places) > 1 else ""
            yield from _of_comparison(f"{before}{c.treatment.name}/{c.metric}", c)
    for curve in summary.curves:
        yield from _of_curve(curve)
    for found in summary.breaking_points:
        yield from _of_point(found)
    yield "run", escape(summary.run)
    if (inventory := inventory_of(manifest)) is not None:
        for row in rows(inventory):
            if row.value is not None:
                yield f"machine/{row.label.replace(' ', '-')}", escape(row.value)


def _of_result(name: str, result: Entering, metrics: list[Metric], level: float) -> Iterator[tuple[str, str]]:
    yield f"{name}/trials", str(len(result.trials))
    yield f"{name}/success", escape(success(result, level).text)
    for metric in metrics:
        if (found := median_of(result, metric)) is not None:
            cell = Cell("", found.value, low=found.low, high=found.high)
            yield from _of_cell(f"{name}/{metric.name}", cell, metric.quantity, ends=True)
            yield f"{name}/{metric.name}/n", str(found.n)


def _of_cell(name: str, cell: Cell, quantity: Quantity, *, ends: bool = False) -> Iterator[tuple[str, str]]:
    """The number in a suitable unit, with its interval; `ends` are added with the number's decimals, for printing
    beside it."""
    (value,), unit = values_of([cell], cell.quantity or quantity)
    of_unit = {"": "", "%": r"\,\%", "×": escape("×")}.get(unit, f"~{escape(unit)}")
    text, interval = value.texts()
    if value.value is None:
        return
    yield name, f"{text}{of_unit}"
    if value.low is not None and value.high is not None:
        yield f"{name}/interval", f"{interval}{of_unit if ends else ''}"
        if ends:
            yield f"{name}/low", f"{value.of(value.low)}{of_unit}"
            yield f"{name}/high", f"{value.of(value.high)}{of_unit}"


def _of_comparison(name: str, c: Finding) -> Iterator[tuple[str, str]]:
    yield from _of_cell(f"{name}/effect", effect(c), NUMBER)
    if c.p_adjusted is not None:
        yield f"{name}/p", escape(p_in_words(c.p_adjusted))
    yield f"{name}/verdict", escape(c.verdict.replace("_", " "))


def _of_curve(curve: Curve) -> Iterator[tuple[str, str]]:
    name = f"{curve.place}/{curve.factor}".replace(", ", ",")
    for metric, of in curve.metrics.items():
        for what, found in (("knee", of.knee), ("saturation", of.saturation)):
            if found is not None:
                cell = Cell("", found.level, low=found.low, high=found.high)
                yield from _of_cell(f"{name}/{metric}/{what}", cell, NUMBER)


def _of_point(found: BreakingPoint) -> Iterator[tuple[str, str]]:
    name = f"{found.place}/{found.factor}/{found.criterion}".replace(", ", ",").replace(" ", "")
    for sign, words in (("<=", "at-most"), (">=", "at-least"), ("==", "is"), ("<", "below"), (">", "above")):
        name = name.replace(sign, f"-{words}-")
    yield from _of_cell(f"{name}/breaking-point", point(found), NUMBER)
    yield f"{name}/breaking-point/state", escape(found.state.replace("_", " "))
    yield f"{name}/breaking-point/trials", str(found.trials)
