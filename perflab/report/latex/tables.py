"""The tables of a run for papers: results, comparisons, curves, breaking points, conditions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from perflab.report.evidence import Quantity, by_quantity, of_trials
from perflab.report.latex.table import Names, Table, Texts, Value, Values, own_decimals
from perflab.report.latex.text import escape, listed, number
from perflab.statistics.metrics import COUNT, DEFAULT, KILOBYTES, NS, PERCENT, Metric, find, named
from perflab.statistics.pairs import CONDITION, FACTOR, OBSERVER, VARIANT, Result, places_of
from perflab.statistics.proportion import wilson
from perflab.statistics.selection import BASELINE, CONTROL, purpose_of, sample_of
from perflab.statistics.words import p_in_words
from perflab.units import format_confidence

Json = dict[str, Any]

_TIMES = (("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9))
_VERDICTS = {
    "higher": "higher",
    "lower": "lower",
    "equivalent": "no difference",
    "below_noise_floor": "within noise",
    "not_shown": "not shown",
    "too_few_trials": "too few trials",
}
_STATES = {
    "found": "found",
    "not_reached": "not reached",
    "below_low": "below the range",
    "not_monotone": "not monotone",
    "unsettled": "unsettled",
    "not_producible": "not producible",
}


def unit_of(metric: Metric, values: Sequence[float | None]) -> tuple[float, str]:
    """By what to divide the values of a metric so that they can be read, and the name of that unit."""
    if metric.unit != NS:
        return {KILOBYTES: (1024.0, "MiB"), PERCENT: (1.0, "%")}.get(metric.unit, (1.0, ""))
    sizes = sorted(abs(v) for v in values if v)
    if not sizes:
        return 1.0, "ns"
    usual, largest = sizes[len(sizes) // 2], sizes[-1]
    fitting = [(per, name) for name, per in _TIMES if usual >= per or largest >= 1e5 * per]
    return fitting[-1] if fitting else (1.0, "ns")


# -- results ---------------------------------------------------------------------------------------------------------


def results(summary: Json) -> Table | None:
    """Treatments and metrics: medians over trials with their intervals, and how many trials succeeded."""
    places = places_of(summary["results"])
    rows = [(place, r) for place in places for r in place.results if r.result.get("trials")]
    if not rows:
        return None
    metrics = [m for m in metrics_of(summary) if any(median_of(r, m) is not None for _, r in rows)]
    groups = []
    for i, (place, _) in enumerate(rows):
        if i == 0 or rows[i - 1][0] is not place:
            groups.append((i, place.words))
    names = [_name(r) for _, r in rows]
    if len(groups) == len(rows) > 1:  # one treatment everywhere, such as the baselines at levels of a factor
        names = [
            place.words if name == BASELINE else f"{place.words}: {name}"
            for (place, _), name in zip(rows, names, strict=True)
        ]
        groups = []
    level = confidence_of(summary)
    columns: list[Names | Texts | Values] = [
        Names("treatment", names),
        Texts("trials", [str(len(r.trials)) for _, r in rows], right=True),
        Texts("success", [_success(r, level) for _, r in rows], unit=f"{format_confidence(level)} interval"),
        *(_metric_column(m, [median_of(r, m) for _, r in rows]) for m in metrics),
    ]
    left_out = [_left_out(r) for _, r in rows]
    if any(left_out):
        columns.insert(3, Texts("left out", [escape(words) or "--" for words in left_out]))
    medians = [median_of(r, m) for _, r in rows for m in metrics]
    with_interval = any(median is not None and median["low"] is not None for median in medians)
    between = (
        f" with {format_confidence(level)} intervals in brackets"
        if with_interval
        else "; there are too few trials for intervals of them"
    )
    caption = (
        f"{_workloads(rows)}: median over trials{between}. Success: trials that met all criteria of those that "
        "count, with Wilson's interval."
    )
    return Table("results", escape(caption), columns, tuple(groups) if len(places) > 1 else ())


def metrics_of(summary: Json) -> list[Metric]:
    """Those that the run compared; of one without findings those that are compared as a rule."""
    names = (summary.get("findings") or {}).get("metrics") or DEFAULT
    return [named(name) for name in names if find(name) is not None]


def confidence_of(summary: Json) -> float:
    return 1 - float((summary.get("findings") or {}).get("alpha") or 0.05)


def median_of(result: Result, metric: Metric) -> Json | None:
    """The median over trials; of a summary that has none the median without an interval."""
    stored = (result.result.get("intervals") or {}).get(metric.name)
    if stored is not None and stored["value"] is not None:
        return dict(stored)
    values = sorted(sample_of(result.trials, metric, "").values)
    if not values:
        return None
    middle = (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2
    return {"value": middle, "low": None, "high": None, "n": len(values)}


def _metric_column(metric: Metric, found: Sequence[Json | None]) -> Values:
    per, unit = unit_of(metric, [None if f is None else f["value"] for f in found])
    exact = metric.unit == COUNT
    return Values(metric.words, unit, [Value(None) if f is None else _value(f, per, exact=exact) for f in found])


def _value(found: Mapping[str, Any], per: float, *, exact: bool = False, signed: bool = False) -> Value:
    low, high = found.get("low"), found.get("high")
    if low is None or high is None:
        return Value(found["value"] / per, exact=exact, signed=signed)
    return Value(found["value"] / per, low / per, high / per, exact=exact, signed=signed)


def _name(result: Result) -> str:
    return f"{result.treatment}, no observers" if purpose_of(result.result) == CONTROL else result.treatment


def _success(result: Result, level: float) -> str:
    outcomes = result.result["outcomes"]
    n = outcomes["success"] + outcomes["failed"]
    return share(outcomes["success"], n, wilson(outcomes["success"], n, level))


def share(successes: int, n: int, interval: tuple[float, float] | None) -> str:
    r""" "9/9 [70, 100]\,\%" """
    if interval is None:
        return f"{successes}/{n}"
    low, high = (number(100 * x, 0) for x in interval)
    return rf"{successes}/{n} [{low}, {high}]\,\%"


def _left_out(result: Result) -> str:
    outcomes = result.result["outcomes"]
    kinds = ((outcomes["invalid"], "invalid"), (outcomes["harness_error"], "harness error"))
    return ", ".join(f"{count} {what}" for count, what in kinds if count)


def _workloads(rows: Sequence[tuple[Any, Result]]) -> str:
    return listed(list(dict.fromkeys(str(r.result["workload"]) for _, r in rows)))


# -- comparisons -----------------------------------------------------------------------------------------------------

_TITLES = {
    CONDITION: "against the baseline",
    OBSERVER: "what observing costs",
    VARIANT: "baselines of variants",
    FACTOR: "baselines at levels of a factor",
}


def comparisons(summary: Json) -> Table | None:
    """Every comparison: how large the difference is, and what may be said of it."""
    findings = summary.get("findings") or {}
    found = [c for c in findings.get("comparisons") or () if find(c["metric"]) is not None]
    if not found:
        return None
    found.sort(key=lambda c: (list(_TITLES).index(c["kind"]) if c["kind"] in _TITLES else 9, c["variant"] or ""))
    groups: list[tuple[int, str]] = []
    for i, c in enumerate(found):
        name = ": ".join(filter(None, (c["variant"], _TITLES.get(c["kind"], c["kind"]))))
        if not groups or groups[-1][1] != name:
            groups.append((i, name))
    claims = ("higher", "lower")
    caption = (
        f"Differences, one value per trial: of times and resources a factor, of counts and shares a difference, "
        f"each with the {format_confidence(confidence_of(summary))} interval of this comparison by itself. p is "
        "adjusted by Holm over "
        f"{findings['family_size']} comparisons; no difference: none larger than {100 * findings['margin']:.3g} % is "
        "shown."
    )
    return Table(
        "comparisons",
        escape(caption),
        [
            Names("compared", [_compared(c) for c in found], once=frozenset(row for row, _ in groups)),
            Names("metric", [_in_unit(c) for c in found]),
            Values("effect", "", [_effect(c) for c in found]),
            Texts("p", [_p(c["p_adjusted"]) for c in found], right=True),
            Texts("n", [rf"{c['baseline']['n']}, {c['treatment']['n']}" for c in found], right=True),
            Texts(
                "verdict",
                [
                    rf"\textbf{{{words}}}" if c["verdict"] in claims else words
                    for c in found
                    for words in [escape(_VERDICTS.get(c["verdict"], c["verdict"]))]
                ],
            ),
        ],
        tuple(groups),
    )


def _compared(c: Json) -> str:
    if c["kind"] in (CONDITION, OBSERVER):
        return str(c["treatment"]["name"])
    return f"{c['treatment']['name']} against {c['baseline']['name']}"


def _effect_unit(c: Json) -> tuple[float, str]:
    return unit_of(named(c["metric"]), [c["estimate"]["value"]])


def _in_unit(c: Json) -> str:
    metric = named(c["metric"])
    if c["scale"] == "ratio":
        return f"{metric.words} (×)"
    unit = _effect_unit(c)[1]
    return f"{metric.words} (difference{f', {unit}' if unit else ''})"


def _effect(c: Json) -> Value:
    value, interval = c["estimate"]["value"], c["estimate"]["interval"] or {}
    if value is None:
        return Value(None)
    found = {"value": value, "low": interval.get("low"), "high": interval.get("high")}
    if c["scale"] == "ratio":
        return replace(_value(found, 1.0), factor=True)
    return _value(found, _effect_unit(c)[0], exact=named(c["metric"]).unit == COUNT, signed=True)


def _p(p: float | None) -> str:
    if p is None:
        return "--"
    sign, _, value = p_in_words(p).removeprefix("p ").partition(" ")
    return f"{escape('<') if sign == '<' else ''}{value}"


# -- curves and breaking points --------------------------------------------------------------------------------------


def curves(summary: Json) -> list[Table]:
    """One table of levels for each curve."""
    found = [c for c in summary.get("curves") or () if c["levels"]]
    return [_curve(c, n if len(found) > 1 else None, summary) for n, c in enumerate(found, start=1)]


def _curve(curve: Json, number_: int | None, summary: Json) -> Table:
    levels = curve["levels"]
    columns: list[Names | Texts | Values] = [
        Values(curve["factor"], "", [Value(float(lv["level"]), exact=True) for lv in levels]),
        Texts("trials", [str(lv["n"]) for lv in levels], right=True),
        Texts("success", [_level_success(lv) for lv in levels]),
    ]
    confidences = [m["confidence"] for m in curve["metrics"].values() if m.get("confidence")]
    for name, of in curve["metrics"].items():
        if find(name) is not None and any(p is not None for p in of["points"]):
            columns.append(_metric_column(named(name), of["points"]))
    level = format_confidence(*(confidences or [confidence_of(summary)]))
    of_success = format_confidence(curve.get("success_confidence") or confidence_of(summary))
    left_out = [
        ", ".join(
            f"{lv[key]} {words}"
            for key, words in (("invalid", "invalid"), ("harness_errors", "harness error"))
            if lv.get(key)
        )
        for lv in levels
    ]
    if any(left_out):
        columns.insert(3, Texts("left out", [escape(words) or "--" for words in left_out]))
    notes = [escape(s) for of in curve["metrics"].values() for s in of.get("words") or ()]
    caption = (
        f"{curve['factor']} ({place_of(curve)}): median over trials with {level} intervals at each level, "
        f"and trials that succeeded with Wilson's {of_success} interval."
    )
    name = "curve" if number_ is None else f"curve_{number_}"
    return Table(name, escape(caption), columns, notes=tuple(notes))


def _level_success(lv: Json) -> str:
    low, high = lv.get("success_low"), lv.get("success_high")
    return share(lv["successes"], lv["judged"], None if low is None or high is None else (low, high))


def place_of(curve: Json) -> str:
    """Variant and the levels of the other factors."""
    others = [f"{path}={level}" for path, level in (curve.get("others") or {}).items()]
    return ", ".join([str(curve["variant"]), *others])


def breaking_points(summary: Json) -> Table | None:
    """Every search, what it found, and from how many trials."""
    found = summary.get("breaking_points") or []
    if not found:
        return None
    levels = sorted({p["interval"]["level"] for p in found if p["interval"]})
    words = f", with its {listed([format_confidence(lv) for lv in levels])} interval" if levels else ""
    caption = (
        "Breaking points: the level of the factor at which the share of trials that meet the criterion falls to the "
        f"one given{words}. Only valid trials count."
    )
    return Table(
        "breaking_points",
        escape(caption),
        [
            Names("search", [f"{place_of(p)}, {p['factor']}" for p in found]),
            Texts("range", [f"{_plain(p['low'])} to {_plain(p['high'])}" for p in found]),
            Names("criterion", [p["criterion"] for p in found]),
            Texts("share", [rf"{number(100 * p['share'], 0)}\,\%" for p in found], right=True),
            Values("breaking point", "", [_point(p) for p in found]),
            Texts("state", [escape(_STATES.get(p["state"], p["state"])) for p in found]),
            Texts("trials", [str(p["trials"]) for p in found], right=True),
        ],
        notes=tuple(escape(s) for p in found for s in p.get("words") or ()),
    )


def _point(p: Json) -> Value:
    if p["value"] is None:
        return Value(None)
    interval = p["interval"] or {}
    return Value(p["value"], interval.get("low"), interval.get("high"), exact=bool(p["integer"]))


def _plain(value: float) -> str:
    return number(value, own_decimals(value))


# -- conditions ------------------------------------------------------------------------------------------------------


def conditions(summary: Json) -> Table | None:
    """What each condition promised and achieved, over the trials of each treatment."""
    rows: list[tuple[str, str, list[Quantity], int, int]] = []
    groups: list[tuple[int, str]] = []
    for place in places_of(summary["results"]):
        for result in place.results:
            begin = len(rows)
            for label, evidence in of_trials(result.result["trials_detail"]).items():
                held = sum(e.get("in_effect") is True for e in evidence)
                for (words, unit), found in by_quantity(label, evidence).items() or [(("", ""), [])]:
                    rows.append((label, f"{words} ({unit})" if unit else words, found, held, len(evidence)))
            if len(rows) > begin:
                groups.append((begin, f"{place.words}: {result.treatment}"))
    if not rows:
        return None
    caption = (
        "Conditions: what was promised, and what the kernel or the receivers saw: median over trials, and in "
        "brackets the smallest and largest of them."
    )
    return Table(
        "conditions",
        escape(caption),
        [
            Names("condition", [row[0] for row in rows], once=frozenset(row for row, _ in groups)),
            Names("quantity", [row[1] for row in rows]),
            Values("promised", "", [_over(row[2], lambda q: q.promised, alone=True) for row in rows]),
            Values("achieved", "", [_over(row[2], lambda q: q.achieved) for row in rows]),
            Texts("in effect", [f"{row[3]}/{row[4]}" for row in rows], right=True),
        ],
        tuple(groups),
    )


def _over(found: Sequence[Quantity], side: Callable[[Quantity], float | None], *, alone: bool = False) -> Value:
    values = sorted(v for q in found if (v := side(q)) is not None)
    if not values:
        return Value(None)
    middle = (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2
    whole = all(v == round(v, 2) for v in values)
    if alone or values[0] == values[-1]:
        return Value(middle, exact=whole)
    return Value(middle, values[0], values[-1], exact=all(v == int(v) for v in values))
