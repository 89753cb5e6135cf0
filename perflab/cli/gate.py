"""The regression gate of `perflab check --baseline`: which runs can be compared, and what is said of the verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from perflab import output
from perflab.cli.compare import Rules, is_paired
from perflab.errors import BadInput
from perflab.models import as_json
from perflab.output import Styled
from perflab.quantity import PLAIN
from perflab.results.trial import Result

if TYPE_CHECKING:
    from perflab.columns import Table
    from perflab.report.junit import Suite
    from perflab.results.run import RunData
    from perflab.statistics.runs import GateCheck
    from perflab.statistics.selection import Match

Json = dict[str, Any]

_HOST = ("hardware_model", "cpu_model", "cpus_online", "machine")
_SETTINGS = ("thresholds", "warmup_ns", "network", "sampling_ns")


def check(run: RunData, baseline: RunData, rules: Rules, *, strict: bool) -> Json:
    """Every verdict on a run, as JSON. Raises BadInput where the runs cannot be compared."""
    from perflab.statistics.runs import UNDECIDED, gate
    from perflab.statistics.selection import match, names_of

    if run.path.resolve() == baseline.path.resolve():
        raise BadInput(f"--baseline {baseline.name} is the run itself; name an earlier one")
    found = match(baseline.summary.results, run.summary.results)
    if not found.pairs:
        raise BadInput(f"{run.name} and {baseline.name} have no result in common: nothing to check")
    _check_comparable(found.pairs, run, baseline)
    names = dict(zip(map(id, found.pairs), names_of([m.second for m in found.pairs]), strict=True))
    checks = gate(
        found.pairs,
        rules.metrics,
        (baseline.name, run.name),
        alpha=rules.alpha,
        margin=rules.margin,
        paired=is_paired(baseline, run),
    )
    warnings = _differences(run, baseline, found.pairs)
    warnings += [f"{name} is in {baseline.name} alone" for name in _names(found.only_first, baseline)]
    undecided = sum(c.verdict == UNDECIDED for c in checks)
    return {
        "baseline": baseline.name,
        "run": run.name,
        "margin": rules.margin,
        "alpha": rules.alpha,
        "strict": strict,
        "checks": [_document(c, names[id(c.match)]) for c in checks],
        "undecided": undecided,
        "warnings": warnings,
        "notes": [f"{name} is in {run.name} alone" for name in _names(found.only_second, run)],
    }


def failures(gated: Json) -> list[str]:
    """What the command ends with, one line for each kind; nothing where the run passes."""
    checks, lines = gated["checks"], []
    failed = [c for c in checks if c["verdict"] == "failed"]
    if failed:
        named = ", ".join(f"{c['result']} {c['metric']}" for c in failed)
        lines.append(f"{len(failed)} of {len(checks)} figures are worse than in {gated['baseline']}: {named}")
    if gated["strict"]:
        undecided = [f"{c['result']} {c['metric']}" for c in checks if c["verdict"] == "undecided"]
        if undecided:
            lines.append(f"{len(undecided)} of {len(checks)} figures are undecided (--strict): {', '.join(undecided)}")
        if gated["warnings"]:
            lines.append(f"the runs differ (--strict): {'; '.join(gated['warnings'])}")
    return lines


def report(gated: Json) -> Styled:
    """For a terminal."""
    from rich.text import Text

    from perflab.report.table import print_rows

    out = output.console()
    with output.captured(out) as captured:
        for warning in gated["warnings"]:
            out.print(Text(f"Warning: {warning}", "yellow"))
        for note in gated["notes"]:
            out.print(Text(f"Note: {note}"))
        for name in dict.fromkeys(c["result"] for c in gated["checks"]):
            checks = [c for c in gated["checks"] if c["result"] == name]
            out.print(Text(f"{name}, against {gated['baseline']}", "bold"))
            out.print()
            print_rows(out, _table(checks))
            for c in checks:  # a narrow terminal leaves out the column that says why
                if c["verdict"] == "failed":
                    out.print(Text(f"{c['words']}: {c['reason']}", "red"))
            out.print()
        if gated["undecided"]:
            what = f"{gated['undecided']} of {len(gated['checks'])} figures are undecided"
            passes = "and fail (--strict)" if gated["strict"] else "and pass; with --strict they fail"
            out.print(Text(f"Warning: {what}: the trials are too few or scatter too much, {passes}.", "yellow"))
    return captured[0]


def _table(checks: Sequence[Json]) -> Table[Json]:
    """The figures of one result, and whether each is worse."""
    from perflab.columns import Cell, Column, Table, Tone

    tones: dict[str, Tone] = {"passed": "good", "failed": "bad", "undecided": "warn"}
    return Table(
        "baseline",
        "Figures",
        [
            Column("figure", "figure", lambda c: c["words"], rank=0),
            Column("baseline", "baseline", lambda c: c["baseline"], PLAIN, rank=2),
            Column("measured", "measured", lambda c: c["measured"], PLAIN, rank=2),
            Column("verdict", "verdict", lambda c: Cell(c["verdict"], tone=tones[c["verdict"]]), rank=1),
            Column("reason", "", lambda c: c["reason"], rank=3, called="reason"),
        ],
        checks,
    )


def suite(gated: Json) -> Suite:
    """For JUnit. What is undecided is skipped, or a failure if strict."""
    from perflab.report.junit import Case, Suite

    cases = []
    for c in gated["checks"]:
        words = f"{c['words']}: {c['measured']}, in {gated['baseline']} {c['baseline']}; {c['reason']}"
        fails = c["verdict"] == "failed" or (gated["strict"] and c["verdict"] == "undecided")
        skipped = words if c["verdict"] == "undecided" and not fails else None
        cases.append(Case(c["metric"], c["result"], words if fails else None, skipped, output=words))
    if gated["strict"]:
        cases += [Case(f"comparable: {w}", "runs", f"the runs differ: {w}") for w in gated["warnings"]]
    properties = {"run": gated["run"], "baseline": gated["baseline"], "margin": f"{100 * gated['margin']:g} %"}
    properties |= {f"warning {n}": warning for n, warning in enumerate(gated["warnings"], start=1)}
    return Suite(f"baseline {gated['baseline']}", cases, properties)


def _check_comparable(pairs: Sequence[Match], run: RunData, baseline: RunData) -> None:
    """Figures of other workloads or of longer trials are other figures: maxima and counts grow with the length."""
    for pair in pairs:
        for old, new, what in (
            (pair.first.workload, pair.second.workload, "workload"),
            (pair.first.duration_s, pair.second.duration_s, "duration of a trial"),
        ):
            if old != new:
                differ = f"the {what} is {_value(new)}, there {_value(old)}"
                raise BadInput(f"{run.name} cannot be checked against {baseline.name}: {differ}")


def _value(value: Any) -> str:
    return f"{value:g} s" if isinstance(value, int | float) else str(value)


def _differences(run: RunData, baseline: RunData, pairs: Sequence[Match]) -> list[str]:
    """What may be why the figures differ, other than what is being checked."""
    warnings = []
    old_host, new_host = baseline.manifest.host, run.manifest.host
    for key in _HOST:
        old, new = old_host.get(key), new_host.get(key)
        if old is not None and new is not None and old != new:
            warnings.append(f"another machine: {key} is {new}, in {baseline.name} {old}")
    old_settings, new_settings = as_json(baseline.manifest.settings), as_json(run.manifest.settings)
    warnings += [
        f"other settings: {key} is {new_settings[key]}, in {baseline.name} {old_settings[key]}"
        for key in _SETTINGS
        if None not in (old_settings[key], new_settings[key]) and old_settings[key] != new_settings[key]
    ]
    graphs = [r.manifest.workload.graph for r in (baseline, run)]
    if all(graphs) and graphs[0] != graphs[1]:
        warnings.append(f"the graph of the workload is not that of {baseline.name}")
    for pair in pairs:
        warnings += [f"not the same was asked for: {words}" for words in pair.differing]
    return list(dict.fromkeys(warnings))


def _names(results: Sequence[Result], run: RunData) -> list[str]:
    from perflab.statistics.selection import place_words

    return [f"{place_words(r)}, {r.label}" for r in results]


def _document(check: GateCheck, name: str) -> Json:
    comparison = None
    if check.comparison is not None:
        comparison = as_json(check.comparison.alone())
    return {
        "result": name,
        "metric": check.metric,
        "words": check.words,
        "verdict": check.verdict,
        "reason": check.reason,
        "baseline": check.baseline,
        "measured": check.measured,
        "p_adjusted": check.p,
        "comparison": comparison,
    }
