"""What an experiment shows: for each variant a table of its treatments, then the sentences that matter most."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from perflab.output import plain_console
from perflab.report.table import print_declared
from perflab.report.tables.results import Beside, Between, between, of_place
from perflab.results.comparison import BETTER, CONDITION, FACTOR, VARIANT, WORSE, Finding, Findings, Remark
from perflab.results.outcome import HARNESS_ERROR, INVALID
from perflab.results.summary import Summary
from perflab.statistics.metrics import Metric, named
from perflab.statistics.pairs import Entering, Place, places_of
from perflab.units import format_confidence

Json = dict[str, Any]

MAX_SENTENCES = 8
LEAST_CLAIMS = 5  # of these there is room for at least so many differences; the rest is what limits them
LINE_WIDTH = 100

_REMARK_STYLES = {
    **dict.fromkeys(("one_trial", HARNESS_ERROR, INVALID, "ended_early", "unused"), "yellow"),
    **dict.fromkeys(("carry_over", "same_seed", "missing"), "yellow"),
    **dict.fromkeys(("worse", "success"), "red"),
    "better": "green",
}


def print_findings(out: Console, summary: Summary, *, tables: bool = True) -> None:
    """The findings of a summary; nothing where it has none (docs/findings.md says how to read it).

    Without `tables` the sentences alone: where the levels of a sweep have tables of their own.
    """
    findings = summary.findings
    if not findings:
        return
    metrics = [named(name) for name in findings.metrics]
    if findings.comparisons and tables:
        places = places_of(summary.results)
        for place in places:
            _print_place(out, place, findings, metrics)
        _print_between(out, findings, metrics)
        out.print(Text(_legend(findings), "dim"))
        out.print()
    for style, words in sentences(findings.remarks):
        out.print(Text(f"- {words.removesuffix('.')}", style))
    if findings.remarks:
        out.print()


def lines(summary: Summary, width: int = LINE_WIDTH) -> list[str]:
    """The same as lines of plain text."""
    target = io.StringIO()
    print_findings(plain_console(target, width), summary)
    return [line.rstrip() for line in target.getvalue().rstrip().splitlines()]


def sentences(remarks: Sequence[Remark], most: int = MAX_SENTENCES) -> list[tuple[str, str]]:
    """The most important ones with their styles, in order; what is left out is said."""
    claims = [r for r in remarks if r.kind in (WORSE, BETTER)]
    others = [r for r in remarks if r.kind not in (WORSE, BETTER)]
    shown_claims = claims[: max(LEAST_CLAIMS, most - len(others))]
    shown_others = others[: most - len(shown_claims)]
    chosen = [r for r in remarks if any(r is s for s in (*shown_claims, *shown_others))]
    found = [(_REMARK_STYLES.get(r.kind, ""), r.words) for r in chosen]
    more = [
        f"{count} more {what}{'' if count == 1 else 's'}"
        for count, what in (
            (len(claims) - len(shown_claims), "difference"),
            (len(others) - len(shown_others), "remark"),
        )
        if count
    ]
    return [*found, ("dim", f"… and {' and '.join(more)}; `--json` has all of them")] if more else found


def _print_place(out: Console, place: Place, findings: Findings, metrics: Sequence[Metric]) -> None:
    rows = [r for r in place.results if r.result.trials]
    if len(rows) < 2:
        return
    against = [c for c in findings.comparisons if c.kind == CONDITION and c.variant == place.words]

    def beside(result: Entering) -> Beside:
        mine = against if result in place.disturbed else []
        compared = {c.metric: c for c in mine if c.treatment.name == result.treatment}
        return Beside(result.result, _name(result), compared)

    print_declared(out, of_place(place.words, [*map(beside, rows)], metrics))


def _print_between(out: Console, findings: Findings, metrics: Sequence[Metric]) -> None:
    """Variants and levels of factors, at their baselines."""
    found = [c for c in findings.comparisons if c.kind in (VARIANT, FACTOR)]
    if not found:
        return
    rows: dict[str, dict[str, Finding]] = {}
    for c in found:
        name = f"{c.treatment.name} against {c.baseline.name}"
        rows.setdefault(f"{c.variant}: {name}" if c.variant else name, {})[c.metric] = c
    besides = [Between(name, mine) for name, mine in rows.items()]
    print_declared(out, between("baselines against each other", besides, metrics))


def _legend(findings: Findings) -> str:
    level, margin = format_confidence(1 - findings.alpha), 100 * findings.margin
    return (
        f"Against the baseline, one value per trial; [{level} interval of each by itself]; "
        f"* differs (Holm over {findings.family_size}), = by no more than {margin:.3g} %"
    )


def _name(result: Entering) -> str:
    return f"{result.treatment}, no observers" if result.result.is_control else result.treatment
