r"""Numbers by name: `\perflab{cpu_load/latency.p99}` in a paper stays true when the run is repeated.

A name is treatment/metric, after the variant where there are several of them. Names with /low, /high, /interval and /n
say more of it; effect, p and verdict are those of the comparison with the baseline.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from perflab.report.inventory import rows
from perflab.report.latex.machine import inventory_of
from perflab.report.latex.table import Value, unit_of, value_of
from perflab.report.latex.tables import confidence_of, effect, median_of, metrics_of, point, success
from perflab.report.latex.text import escape
from perflab.results.comparison import CONDITION, Finding
from perflab.results.curve import BreakingPoint, Curve
from perflab.results.summary import Summary
from perflab.results.trial import Median
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
# A name of these letters alone is read alike by every LaTeX.
_UNSAFE = re.compile(r"[^A-Za-z0-9_.,=+:/@-]+")


def values(summary: Summary, manifest: Json, prefix: str = "") -> str:
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


def _all(summary: Summary, manifest: Json) -> Iterator[tuple[str, str]]:
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
    yield f"{name}/success", success(result, level)
    for metric in metrics:
        if (found := median_of(result, metric)) is not None:
            yield from _of_interval(f"{name}/{metric.name}", metric, found)


def _of_interval(name: str, metric: Metric, found: Median) -> Iterator[tuple[str, str]]:
    per, unit = unit_of(metric.quantity, [found.value])
    value, of_unit = value_of(metric.quantity, found, per), _of_unit(unit)
    text, interval = value.texts()
    yield name, f"{text}{of_unit}"
    if value.low is not None and value.high is not None:
        yield f"{name}/interval", f"{interval}{of_unit}"
        # With the decimals of the value, so that they can stand beside it.
        yield f"{name}/low", f"{value.of(value.low)}{of_unit}"
        yield f"{name}/high", f"{value.of(value.high)}{of_unit}"
    yield f"{name}/n", str(found.n)


def _of_unit(unit: str) -> str:
    return r"\,\%" if unit == "%" else f"~{escape(unit)}" if unit else ""


def _of_comparison(name: str, c: Finding) -> Iterator[tuple[str, str]]:
    value, unit = effect(c)
    if value.value is not None:
        text, between = value.texts()
        of_unit = r"\ensuremath{\times}" if c.scale == "ratio" else _of_unit(unit)
        yield f"{name}/effect", f"{text}{of_unit}"
        if between:
            yield f"{name}/effect/interval", between
    if c.p_adjusted is not None:
        yield f"{name}/p", escape(p_in_words(c.p_adjusted))
    yield f"{name}/verdict", escape(c.verdict.replace("_", " "))


def _of_curve(curve: Curve) -> Iterator[tuple[str, str]]:
    name = f"{curve.place}/{curve.factor}".replace(", ", ",")
    for metric, of in curve.metrics.items():
        for what, found in (("knee", of.knee), ("saturation", of.saturation)):
            if found is not None:
                text, interval = Value(found.level, found.low, found.high).texts()
                yield f"{name}/{metric}/{what}", text
                if interval:
                    yield f"{name}/{metric}/{what}/interval", interval


def _of_point(found: BreakingPoint) -> Iterator[tuple[str, str]]:
    name = f"{found.place}/{found.factor}/{found.criterion}".replace(", ", ",").replace(" ", "")
    name = name.replace("<=", "-at-most-").replace(">=", "-at-least-").replace("==", "-is-").replace("<", "-below-")
    name = f"{name.replace('>', '-above-')}/breaking-point"
    if found.value is not None:
        text, between = point(found).texts()
        yield name, text
        if between:
            yield f"{name}/interval", between
    yield f"{name}/state", escape(found.state.replace("_", " "))
    yield f"{name}/trials", str(found.trials)
