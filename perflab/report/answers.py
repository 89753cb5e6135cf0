"""Results of an experiment, in a terminal: why messages were late; for each variant a table of its treatments, then the
most important sentences; for a sweep a table with the levels as rows; for a search the trials at each level.

docs/findings.md and docs/sweeps.md explain how to read them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from perflab.columns import Column, Table
from perflab.quantity import COUNT, PERCENT
from perflab.report.label import labels
from perflab.report.table import STYLES, print_declared, print_rows
from perflab.report.tables import claims
from perflab.report.tables import curves as tables
from perflab.report.tables.mitigations import mitigations
from perflab.report.tables.results import Beside, Between, between, of_place
from perflab.results.claim import VERDICT_WORDS
from perflab.results.comparison import BETTER, CONDITION, FACTOR, VARIANT, WORSE, Finding, Findings, Remark
from perflab.results.curve import BreakingPoint, Curve, CurveMetric
from perflab.results.outcome import HARNESS_ERROR, INVALID
from perflab.results.summary import Summary
from perflab.results.trial import Result, Why
from perflab.statistics.metrics import Metric, named
from perflab.statistics.pairs import Entering, Place, places_of
from perflab.statistics.selection import level_number, level_words
from perflab.statistics.verdicts import confidence_words
from perflab.trace.causes import CAUSES
from perflab.units import format_confidence

MAX_SENTENCES = 8
LEAST_CLAIMS = 5  # number of these for which there is always room; the rest limits differences
LEAST_SHARE = 0.5  # percent of all lateness; a cause that is below this everywhere has no column
MOST_CAUSES = 7  # causes that have a column

_REMARK_STYLES = {
    **dict.fromkeys(("one_trial", HARNESS_ERROR, INVALID, "ended_early", "unused"), "yellow"),
    **dict.fromkeys(("carry_over", "same_seed", "missing"), "yellow"),
    **dict.fromkeys(("worse", "success"), "red"),
    "better": "green",
}


def print_sentences(out: Console, styled: Iterable[tuple[str, str]]) -> None:
    """Each on its own line, with its style."""
    for style, words in styled:
        out.print(Text(f"- {words.removesuffix('.')}", style))


# -- treatments --------------------------------------------------------------------------------------------------------


def print_findings(out: Console, summary: Summary, *, with_tables: bool = True) -> None:
    """The findings of a summary; empty if it has none.

    Without tables, only the sentences: used if the levels of a sweep have their own tables.
    """
    findings = summary.findings
    if not findings:
        return
    metrics = [named(name) for name in findings.metrics]
    if findings.comparisons and with_tables:
        for place in places_of(summary.results):
            _print_place(out, place, findings, metrics)
        if (bought := mitigations(summary)).rows:
            print_declared(out, bought)
        _print_between(out, findings, metrics)
        level, margin = confidence_words(findings.alpha, findings.family_size), 100 * findings.margin
        legend = (
            f"Compared with the baseline, one value per trial; [intervals: {level}]; * differs, = by no more than "
            f"{margin:.3g} %"
        )
        out.print(Text(legend, "dim"))
        out.print()
    if findings.remarks:
        print_sentences(out, sentences(findings.remarks))
        out.print()


def sentences(remarks: Sequence[Remark], most: int = MAX_SENTENCES) -> list[tuple[str, str]]:
    """The most important ones with their styles, in order; says how many are left out."""
    claims = [r for r in remarks if r.kind in (WORSE, BETTER)]
    others = [r for r in remarks if r.kind not in (WORSE, BETTER)]
    shown_claims = claims[: max(LEAST_CLAIMS, most - len(others))]
    shown_others = others[: most - len(shown_claims)]
    chosen = {id(r) for r in (*shown_claims, *shown_others)}
    found = [(_REMARK_STYLES.get(r.kind, ""), r.words) for r in remarks if id(r) in chosen]
    left = ((len(claims) - len(shown_claims), "difference"), (len(others) - len(shown_others), "remark"))
    more = [f"{count} more {what}{'' if count == 1 else 's'}" for count, what in left if count]
    return [*found, ("dim", f"… and {' and '.join(more)}; `--json` has all of them")] if more else found


def _print_place(out: Console, place: Place, findings: Findings, metrics: Sequence[Metric]) -> None:
    rows = [r for r in place.results if r.result.trials]
    if len(rows) < 2:
        return
    against = [c for c in findings.comparisons if c.kind == CONDITION and c.variant == place.words]

    def beside(result: Entering) -> Beside:
        mine = against if result in place.disturbed else []
        compared = {c.metric: c for c in mine if c.treatment.name == result.treatment}
        name = f"{result.treatment}, no observers" if result.result.is_control else result.treatment
        return Beside(result.result, name, compared)

    print_declared(out, of_place(place.words, [*map(beside, rows)], metrics))


def _print_between(out: Console, findings: Findings, metrics: Sequence[Metric]) -> None:
    """Variants and levels of factors, at their baselines."""
    rows: dict[str, dict[str, Finding]] = {}
    for c in findings.comparisons:
        if c.kind in (VARIANT, FACTOR):
            name = f"{c.treatment.name} against {c.baseline.name}"
            rows.setdefault(f"{c.variant}: {name}" if c.variant else name, {})[c.metric] = c
    if rows:
        besides = [Between(name, mine) for name, mine in rows.items()]
        print_declared(out, between("comparisons among baselines", besides, metrics))


# -- claims ------------------------------------------------------------------------------------------------------------


def print_claims(out: Console, summary: Summary, machine: str) -> None:
    """Each claim with its verdict and the evidence; empty if the experiment tests none."""
    if not summary.claims:
        return
    out.print(Text(f"Claims{f', on {machine}' if machine else ''}", "bold"))
    for claim in summary.claims:
        sign, tone = claims.SIGNS[claim.verdict]
        out.print(Text(f"{sign} {VERDICT_WORDS[claim.verdict]}: {claim.says.removesuffix('.')}", STYLES[tone]))
        for words, style in ((claim.words, ""), (claims.basis(claim), "dim")):
            out.print(Padding(Text(words, style), (0, 0, 0, 2)))
    out.print()


# -- levels ------------------------------------------------------------------------------------------------------------


def print_curves(out: Console, summary: Summary) -> None:
    """Each curve as a table and sentences; empty if the summary has none."""
    for curve in summary.curves:
        out.print(Text(_place(curve), "bold"))
        print_rows(out, tables.curve(curve, ""))
        print_sentences(out, (("", words) for words in _of_curve(curve)))
        out.print()
    for factor in dict.fromkeys(curve.factor for curve in summary.curves):
        of_factor = [curve for curve in summary.curves if curve.factor == factor]
        if (above := tables.above_floors(of_factor, f"above the floor, over {factor}")) is not None:
            print_declared(out, above)
            out.print()
    of_metrics = [m for c in summary.curves for m in c.metrics.values()]
    if of_metrics:
        levels = {m.confidence for m in of_metrics if any(p and p.low is not None for p in m.points)}
        shown = f"[{format_confidence(*levels)} interval]" if levels else "(an interval needs 5 trials)"
        out.print(Text(f"Medians over trials {shown}; shares with Wilson's interval", "dim"))
        out.print()


def print_breaking_points(out: Console, summary: Summary) -> None:
    """Each breaking point with the levels that were tried, then the conclusion."""
    for found in summary.breaking_points:
        out.print(Text.assemble((_place(found), "bold"), f", {found.criterion}"))
        if found.levels:
            print_rows(out, tables.tried(found, ""))
        print_sentences(out, (("" if found.state == "found" else "yellow", words) for words in found.words))
        out.print()


def _place(entry: Curve | BreakingPoint) -> str:
    """ "cyclonedds: message_flood.rate, at message_flood.publishers=2"."""
    others = ", ".join(f"{path}={level}" for path, level in entry.others.items())
    return f"{entry.variant}: {entry.factor}{f', at {others}' if others else ''}"


def _of_curve(curve: Curve) -> list[str]:
    """All remarks on the leading metric; for each other metric one line with its claims; one line for those that never
    vary."""
    metrics = tables.metrics_of(curve)
    leading = tables.leading_of(curve, metrics)
    same = [m for m in metrics if m is not leading and curve.metrics[m.name].course == "same"]
    found: list[str] = []
    for metric in sorted(metrics, key=lambda m: m is not leading):
        said = curve.metrics[metric.name].words
        if metric is leading:
            found += said
        elif metric not in same and said:
            found.append(f"{said[0].removesuffix('.')}{_claims(curve.factor, curve.metrics[metric.name])}")
    if same:
        points = {m: next((p.value for p in curve.metrics[m.name].points if p is not None), None) for m in same}
        values = ", ".join(f"{m.words} {m.format(value)}" for m, value in points.items())
        found.append(f"the same in every trial: {values}")
    return found


def _claims(path: str, document: CurveMetric) -> str:
    """ "; knee at 60 % [45, 75]; within the margin of the last level from 2 on"."""
    text = ""
    if (knee := document.knee) is not None:
        between = f"{level_number(knee.low)}, {level_number(knee.high)}"
        text += f"; knee at {level_words(path, knee.level)} [{between}]"
    if (saturation := document.saturation) is not None:
        text += f"; within the margin of the last level from {level_words(path, saturation.level)} on"
    return text


# -- why messages were late --------------------------------------------------------------------------------------------


def print_why(out: Console, results: Sequence[Result]) -> None:
    """For every traced trial a sentence, and where the time went; empty if none was traced."""
    traced = [result for result in results if any(trial.why for trial in result.trials_detail)]
    # The labels show differences within the section; its title already says that they were traced.
    names = (
        labels([replace(result, purpose=None) for result in traced]) if len(traced) > 1 else [r.label for r in traced]
    )
    found: list[tuple[str, Why]] = []
    for label, result in zip(names, traced, strict=True):
        told = [(trial.trial, trial.why) for trial in result.trials_detail if trial.why]
        found += [(f"{label}, trial {number}" if len(told) > 1 else label, why) for number, why in told]
    if not found:
        return
    out.print("Why messages were late", style="bold")
    for label, why in found:
        words = f"{why.sentence[:1].lower()}{why.sentence[1:]}"
        out.print(Padding(Text.assemble((label, "bold"), ": ", words), (0, 0, 0, 2)))
    out.print()
    if late := [(label, why) for label, why in found if why.late]:
        print_rows(out, _causes(late))
        out.print("shares of the late messages' time; `perflab trace why` has the details", style="dim")
        out.print()


def _causes(found: Sequence[tuple[str, Why]]) -> Table[tuple[str, Why]]:
    """The most important causes, in the order in which all are listed."""
    largest = {cause: max(_share(why, cause) or 0.0 for _, why in found) for cause in CAUSES}
    most = sorted(largest, key=lambda cause: -largest[cause])[:MOST_CAUSES]
    shown = [cause for cause in CAUSES if cause in most and largest[cause] >= LEAST_SHARE]
    return Table(
        "why",
        "Why messages were late",
        [
            Column("trial", "traced trial", lambda row: row[0], rank=0),
            Column("late", "late", lambda row: row[1].late, COUNT, rank=0),
            Column("messages", "of", lambda row: row[1].messages, COUNT, rank=1),
            *(_of_cause(cause, rank) for rank, cause in enumerate(shown, start=2)),
        ],
        found,
    )


def _of_cause(cause: str, rank: int) -> Column[tuple[str, Why]]:
    return Column(cause, CAUSES[cause].short, lambda row: _share(row[1], cause), PERCENT, rank=rank)


def _share(why: Why, cause: str) -> float | None:
    return next((row["total_percent"] for row in why.causes if row["cause"] == cause), None)
