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
from perflab.report.latex.table import Value
from perflab.report.latex.tables import breaking_points, confidence_of, median_of, metrics_of, place_of, share, unit_of
from perflab.report.latex.text import escape
from perflab.statistics.metrics import COUNT, Metric, find, named
from perflab.statistics.pairs import CONDITION, Result, places_of
from perflab.statistics.proportion import wilson
from perflab.statistics.words import p_in_words

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


def values(summary: Json, manifest: Json, prefix: str = "") -> str:
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


def _all(summary: Json, manifest: Json) -> Iterator[tuple[str, str]]:
    places = places_of(summary["results"])
    level = confidence_of(dict(summary))
    for place in places:
        before = f"{place.words}/".replace(", ", ",") if len(places) > 1 else ""
        for result in place.results:
            if result.result.get("trials"):
                yield from _of_result(f"{before}{result.treatment}", result, metrics_of(dict(summary)), level)
    for c in (summary.get("findings") or {}).get("comparisons") or ():
        if c["kind"] == CONDITION and find(c["metric"]) is not None:
            before = f"{c['variant']}/".replace(", ", ",") if len(places) > 1 else ""
            yield from _of_comparison(f"{before}{c['treatment']['name']}/{c['metric']}", c)
    for curve in summary.get("curves") or ():
        yield from _of_curve(curve)
    if breaking_points(dict(summary)) is not None:
        for point in summary["breaking_points"]:
            yield from _of_point(point)
    yield "run", escape(summary["run"])
    if (inventory := inventory_of(manifest)) is not None:
        for row in rows(inventory):
            if row.value is not None:
                yield f"machine/{row.label.replace(' ', '-')}", escape(row.value)


def _of_result(name: str, result: Result, metrics: list[Metric], level: float) -> Iterator[tuple[str, str]]:
    outcomes = result.result["outcomes"]
    judged = outcomes["success"] + outcomes["failed"]
    yield f"{name}/trials", str(len(result.trials))
    yield f"{name}/success", share(outcomes["success"], judged, wilson(outcomes["success"], judged, level))
    for metric in metrics:
        if (found := median_of(result, metric)) is not None:
            yield from _of_interval(f"{name}/{metric.name}", metric, found)


def _of_interval(name: str, metric: Metric, found: Json) -> Iterator[tuple[str, str]]:
    per, unit = unit_of(metric, [found["value"]])
    low, high = found.get("low"), found.get("high")
    value = Value(
        found["value"] / per,
        None if low is None else low / per,
        None if high is None else high / per,
        exact=metric.unit == COUNT,
    )
    text, interval = value.texts()
    of_unit = f"~{escape(unit)}" if unit and unit != "%" else r"\,\%" if unit else ""
    yield name, f"{text}{of_unit}"
    if interval:
        yield f"{name}/interval", f"{interval}{of_unit}"
        for side in ("low", "high"):
            # With the decimals of the value, so that they can stand beside it.
            yield f"{name}/{side}", f"{value.of(found[side] / per)}{of_unit}"
    if found.get("n") is not None:
        yield f"{name}/n", str(found["n"])


def _of_comparison(name: str, c: Json) -> Iterator[tuple[str, str]]:
    metric = named(c["metric"])
    value, interval = c["estimate"]["value"], c["estimate"]["interval"] or {}
    if value is not None:
        is_ratio = c["scale"] == "ratio"
        per, unit = (1.0, "") if is_ratio else unit_of(metric, [value])
        low, high = interval.get("low"), interval.get("high")
        shown = Value(
            value / per,
            None if low is None else low / per,
            None if high is None else high / per,
            signed=not is_ratio,
            factor=is_ratio,
            exact=not is_ratio and metric.unit == COUNT,
        )
        text, between = shown.texts()
        of_unit = r"\ensuremath{\times}" if is_ratio else f"~{escape(unit)}" if unit and unit != "%" else ""
        of_unit = r"\,\%" if unit == "%" else of_unit
        yield f"{name}/effect", f"{text}{of_unit}"
        if between:
            yield f"{name}/effect/interval", between
    if c["p_adjusted"] is not None:
        yield f"{name}/p", escape(p_in_words(c["p_adjusted"]))
    yield f"{name}/verdict", escape(c["verdict"].replace("_", " "))


def _of_curve(curve: Json) -> Iterator[tuple[str, str]]:
    name = f"{place_of(dict(curve))}/{curve['factor']}".replace(", ", ",")
    for metric, of in curve["metrics"].items():
        for what in ("knee", "saturation"):
            if (found := of.get(what)) is not None:
                text, interval = Value(found["level"], found.get("low"), found.get("high")).texts()
                yield f"{name}/{metric}/{what}", text
                if interval:
                    yield f"{name}/{metric}/{what}/interval", interval


def _of_point(point: Json) -> Iterator[tuple[str, str]]:
    name = f"{place_of(dict(point))}/{point['factor']}/{point['criterion']}".replace(", ", ",").replace(" ", "")
    name = name.replace("<=", "-at-most-").replace(">=", "-at-least-").replace("==", "-is-").replace("<", "-below-")
    name = f"{name.replace('>', '-above-')}/breaking-point"
    interval = point["interval"] or {}
    if point["value"] is not None:
        text, between = Value(
            point["value"], interval.get("low"), interval.get("high"), exact=bool(point["integer"])
        ).texts()
        yield name, text
        if between:
            yield f"{name}/interval", between
    yield f"{name}/state", escape(point["state"].replace("_", " "))
    yield f"{name}/trials", str(point["trials"])
