"""`perflab check`: compares a run with a performance target, or with an earlier run as a regression gate."""

from __future__ import annotations

import inspect
import itertools
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perflab import models, output
from perflab.cli import options
from perflab.cli.options import AsJson, MeasuredRun, TargetName, complete_run, with_options
from perflab.errors import BadInput, PerflabError, damage_of
from perflab.output import write_json
from perflab.quantity import PLAIN
from perflab.results.trial import Result, added

if TYPE_CHECKING:
    from rich.console import Console

    from perflab.cli.compare import Rules
    from perflab.columns import Table, Tone
    from perflab.formats.irobot.target import Target
    from perflab.report.junit import Suite
    from perflab.results.run import RunData, TrialTables
    from perflab.statistics.runs import GateCheck
    from perflab.statistics.selection import Match

Json = dict[str, Any]

MET = "met"
MISSED = "missed"
NOT_MEASURED = "not measured"
_TONES: dict[str, Tone] = {
    **{MET: "good", MISSED: "bad", NOT_MEASURED: "warn"},
    **{"passed": "good", "failed": "bad", "undecided": "warn"},
}


def _parameters() -> list[inspect.Parameter]:
    return options.of_statistics("With --baseline")


@with_options(_parameters)
def check(
    context: typer.Context,
    run: MeasuredRun,
    target: TargetName = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="RUN",
            help="An earlier run; this run must not be worse.",
            autocompletion=complete_run,
            show_default=False,
        ),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Fail also for undecided figures.", rich_help_panel="With --baseline"),
    ] = False,
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the verdicts as JUnit XML.", show_default=False)
    ] = None,
    as_json: AsJson = False,
    **values: Any,
) -> int:
    """Check a run against a target, an earlier run, or both.

    With a target, every figure must be at or below its bound; a figure that was not measured is a miss. With a
    baseline, a figure fails if it is shown to be worse by more than the margin. Exit code 1 if anything fails.
    """
    from perflab.cli.compare import Rules
    from perflab.runs.rundata import open_run

    if target is None and baseline is None:
        raise BadInput("nothing to check against; give --target FILE, --baseline RUN, or both")
    of_baseline = options.typed(context) & {"margin", "metric", "alpha", "strict"}
    if baseline is None and of_baseline:
        given = min(of_baseline)
        raise BadInput(f"--{given} applies to a comparison with an earlier run; add --baseline RUN, or leave it out")
    wanted = None if target is None else open_target(target)
    data = open_run(run, with_tables=wanted is not None)
    earlier = None if baseline is None else open_run(baseline, with_tables=False)
    runs = [data] if earlier is None else [data, earlier]
    with damage_of(*(opened.path for opened in runs)):
        rules = Rules.of(options.statistics(values), runs)
    out = output.console()
    with output.captured(out) as report:
        with damage_of(data.path):
            checked = _check(data, wanted)
            suites, failures = [], []
            if wanted is not None:
                _print(out, checked)
                suites, failures = [_suite(checked)], _missed(checked)
        if earlier is not None:
            with damage_of(data.path, earlier.path):
                gated = checked["baseline"] = _gate(data, earlier, rules, strict=strict)
                if wanted is not None:
                    out.print()
                _print_gate(out, gated)
                suites.append(_suite_of_gate(gated))
                failures += _failures(gated)
    if junit is not None:
        from perflab.report import junit as xml

        xml.write(junit, f"perflab check {data.name}", suites)
    if as_json:
        write_json(checked)
    else:
        output.write_captured(report[0])
    if failures:
        raise PerflabError("; ".join(failures))
    return 0


# -- against a target --------------------------------------------------------------------------------------------------


def _missed(checked: Json) -> list[str]:
    figures = [figure for result in checked["results"] for figure in result["figures"]]
    bad = [figure for figure in figures if figure["verdict"] != MET]
    if not bad:
        return []
    names = list(dict.fromkeys(f"{figure['key']} {figure['verdict']}" for figure in bad))
    return [f"{len(bad)} of {len(figures)} targets not met: {', '.join(names)}"]


def _suite(checked: Json) -> Suite:
    """The verdicts for a target, as JUnit XML."""
    from perflab.report.junit import Case, Suite

    cases = []
    for result in checked["results"]:
        for figure in result["figures"]:
            words = f"{_number(figure['measured'])} {figure['unit']}, target {_number(figure['target'])}"
            failure = None if figure["verdict"] == MET else f"{figure['name']} {figure['verdict']}: {words}"
            group = f"{result['workload']}, {result['label']}"
            cases.append(Case(f"{figure['name']} [{figure['unit']}]", group, failure, output=words))
    properties = {"run": checked["run"], "target": checked["target"]["path"]}
    return Suite(f"target {Path(checked['target']['path']).name}", cases, properties)


def open_target(word: str) -> Target:
    from perflab.formats.irobot import target

    return target.find(word, "--target")


def _check(data: RunData, target: Target | None) -> Json:
    from perflab.report.label import labels

    results = data.summary.results
    if not results:
        raise BadInput(f"{data.path} has no trial with records")
    if target is None:
        return {"run": data.name, "target": None, "results": [], "notes": list(data.notes)}
    _check_workload(data, target, results)
    return {
        "run": data.name,
        "target": {
            "path": str(target.path),
            "topology_file": target.topology_file,
            "platform": target.platform,
            "additional_options": target.additional_options,
            "comments": target.comments,
        },
        "results": [
            {"label": label, "workload": result.workload, **_result(data, target, result)}
            for label, result in zip(labels(results), results, strict=True)
        ],
        "notes": [*data.notes, *_notes(data, target, results)],
    }


def _check_workload(data: RunData, target: Target, results: Sequence[Result]) -> None:
    """Raises BadInput if a result's workload has no process that the target bounds."""
    for result in results:
        names = {*result.workload.split("+"), *(p.process for p in result.resources.processes)}
        if target.topology is not None and target.topology not in names:
            raise BadInput(
                f"--target {target.path} is for {target.topology}, but {data.name} measured {result.workload}; "
                f"check a run of {target.topology}"
            )


def _result(data: RunData, target: Target, result: Result) -> Json:
    from perflab.results.run import PERFLAB
    from perflab.statistics import target as targets
    from perflab.statistics.target import machine_cpus

    chosen = targets.processes_of(result, target.topology)
    names = [p.process for p in chosen]
    foreign = data.origin != PERFLAB
    measured = targets.measured(result, chosen, machine_cpus(data.manifest.host), one_class_of_loss=foreign)
    mean, last = _current_rss(_trials_of(data, result), names)
    # Shown beside the compared figures.
    beside: dict[str, Json] = {
        "cpu_perc": {"cpu_percent_of_one_cpu": added(p.cpu_percent_mean for p in chosen)},
        "rss_KB": {"rss_kb_mean": mean, "rss_kb_last": last},
    }
    figures = []
    for key, bound in target.bounds.items():
        value, (name, unit) = measured[key], targets.WORDS[key]
        verdict = NOT_MEASURED if value is None else MET if value <= bound else MISSED
        figures.append(
            {"key": key, "name": name, "unit": unit, "target": bound, "measured": value, "verdict": verdict}
            | {"beside": beside.get(key, {})}
        )
    return {"processes": names, "figures": figures, "met": all(f["verdict"] == MET for f in figures)}


def _trials_of(data: RunData, result: Result) -> list[TrialTables]:
    """The tables of the trials merged in a result."""
    numbers = {trial.trial for trial in result.merged}
    return [trial for trial in data.trials if trial.number in numbers]


def _current_rss(trials: Sequence[TrialTables], processes: Sequence[str]) -> tuple[float | None, float | None]:
    """Mean over the samples, and last sample, of the process with the largest mean; averaged over trials."""
    import polars as pl

    used = [
        trial.resources.filter(pl.col("process").is_in(processes))
        .drop_nulls("rss_kb")
        .group_by("process", maintain_order=True)
        .agg(pl.mean("rss_kb").alias("mean"), pl.last("rss_kb").alias("last"))
        for trial in trials
    ]
    merged = pl.concat(used).group_by("process", maintain_order=True).mean() if used else None
    if merged is None or not merged.height:
        return None, None
    _, mean, last = max(merged.iter_rows(), key=lambda row: row[1])
    return mean, last


def _notes(data: RunData, target: Target, results: Sequence[Result]) -> list[str]:
    from perflab.report.label import labels
    from perflab.statistics.selection import beside_irobot
    from perflab.statistics.verdicts import no_success

    notes = []
    workloads = {result.workload for result in results}
    if target.topology_file:
        stem = Path(target.topology_file).stem
        if not all(stem in workload.split("+") for workload in workloads):
            notes.append(f"the target is for {stem}, but the run measured {', '.join(sorted(workloads))}")
    if target.platform:
        machine = _machine(data)
        if target.platform.lower() not in machine.lower():
            notes.append(f"the target is for {target.platform}, but this was measured on {machine}")
    if (note := beside_irobot(result.phase for result in results)) is not None:
        notes.append(note)
    if (differing := _differing(data, target, results)) is not None:
        notes.append(differing)
    for label, result in zip(labels(results), results, strict=True):
        if (failed := no_success(result)) is not None:
            notes.append(f"{label}: {failed}" if len(results) > 1 else failed)
    incomplete = [r for r in results if not r.coverage.complete]
    if incomplete:
        notes.append("not every process wrote its last record, so losses at the end are unknown")
    return notes


def _machine(data: RunData) -> str:
    from perflab.statistics.target import machine_cpus

    host = data.manifest.host
    words = [str(host[key]) for key in ("hardware_model", "cpu_model", "machine") if host.get(key)]
    cpus = machine_cpus(data.manifest.host)
    if cpus is not None:
        words.append(f"{cpus} CPUs" if cpus > 1 else "1 CPU")
    return ", ".join(words) or "an unrecorded machine"


_THRESHOLDS = (
    ("--late-percentage", "late_percent", 1.0),
    ("--late-absolute", "late_ns", 1e3),
    ("--too-late-percentage", "too_late_percent", 1.0),
    ("--too-late-absolute", "too_late_ns", 1e3),
)


def _differing(data: RunData, target: Target, results: Sequence[Result]) -> str | None:
    """The options that affect the verdict and that differ from the run's."""
    try:
        words = shlex.split((target.additional_options or "").replace("=", " "))
    except ValueError:
        return None
    said = dict(itertools.pairwise(words))
    thresholds = data.manifest.settings.thresholds
    differing = []
    for option, key, scale in _THRESHOLDS:
        used = getattr(thresholds, key)
        wanted = said.get(option, "")
        if used is not None and wanted.isdigit() and used / scale != float(wanted):
            differing.append(f"{option} {wanted} (was {used / scale:g})")
    ipc = said.get("--ipc")
    others = [r.ipc for r in results if ipc in ("on", "off") and r.ipc is not None and r.ipc != ipc]
    if others:
        differing.append(f"--ipc {ipc} (was {others[0]})")
    duration = said.get("-t", said.get("--time", ""))
    lengths = {r.duration_s for r in results if r.duration_s is not None}
    if duration.isdigit() and (short := sorted(lengths - {float(duration)})):
        differing.append(f"-t {duration} (was {', '.join(f'{s:g}' for s in short)})")
    return f"the target asks for {', '.join(differing)}" if differing else None


def _print(out: Console, checked: Json) -> None:
    from rich.text import Text

    from perflab.report.table import print_rows

    for note in checked["notes"]:
        out.print(Text(f"Note: {note}", "yellow"))
    for result in checked["results"]:
        if checked["notes"] or len(checked["results"]) > 1:
            out.print()
        of = f" (resources of {', '.join(result['processes'])})" if result["processes"] else ""
        out.print(Text(f"{result['workload']}, {result['label']}{of}", "bold"))
        out.print()
        print_rows(out, _table(result["figures"]))


def _table(figures: Sequence[Json]) -> Table[Json]:
    """The figures of a target, and whether the run met each."""
    from perflab.columns import Cell, Column, Table

    return Table(
        "target",
        "Figures",
        [
            Column("figure", "figure", lambda f: f["name"], rank=0),
            Column("unit", "unit", lambda f: Cell(f["unit"], f["unit"]), rank=2),
            Column("target", "target", lambda f: Cell(_number(f["target"]), f["target"]), PLAIN, rank=1),
            Column("measured", "measured", lambda f: Cell(_number(f["measured"]), f["measured"]), PLAIN, rank=1),
            Column("verdict", "verdict", lambda f: Cell(f["verdict"], tone=_TONES[f["verdict"]]), rank=1),
            Column("beside", "", lambda f: Cell(_beside_text(f["beside"])), rank=3, called="beside"),
        ],
        figures,
    )


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def _beside_text(beside: Json) -> str:
    words = {
        "cpu_percent_of_one_cpu": ("{} % of one CPU", "{:.3g}"),
        "rss_kb_mean": ("{} KB on average", "{:.0f}"),
        "rss_kb_last": ("{} KB at the end", "{:.0f}"),
    }
    parts = [words[key][0].format(words[key][1].format(v)) for key, v in beside.items() if v is not None]
    return ", ".join(parts)


# -- against an earlier run --------------------------------------------------------------------------------------------

_HOST = ("hardware_model", "cpu_model", "cpus_online", "machine")
_SETTINGS = ("thresholds", "warmup_ns", "network", "sampling_ns")


def _gate(run: RunData, baseline: RunData, rules: Rules, *, strict: bool) -> Json:
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
        paired=baseline.is_paired(run),
    )
    warnings = _other_circumstances(run, baseline, found.pairs)
    warnings += [f"{name} is only in {baseline.name}" for name in _names(found.only_first, baseline)]
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
        "notes": [f"{name} is only in {run.name}" for name in _names(found.only_second, run)],
    }


def _failures(gated: Json) -> list[str]:
    """The last lines of output, one for each kind of failure; empty if the run passes."""
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


def _print_gate(out: Console, gated: Json) -> None:
    from rich.text import Text

    from perflab.report.table import print_rows

    for warning in gated["warnings"]:
        out.print(Text(f"Warning: {warning}", "yellow"))
    for note in gated["notes"]:
        out.print(Text(f"Note: {note}"))
    for name in dict.fromkeys(c["result"] for c in gated["checks"]):
        checks = [c for c in gated["checks"] if c["result"] == name]
        out.print(Text(f"{name}, against {gated['baseline']}", "bold"))
        out.print()
        print_rows(out, _table_of_gate(checks))
        for c in checks:  # a narrow terminal omits the column with the reason
            if c["verdict"] == "failed":
                out.print(Text(f"{c['words']}: {c['reason']}", "red"))
        out.print()
    if gated["undecided"]:
        what = f"{gated['undecided']} of {len(gated['checks'])} figures are undecided"
        passes = "and fail (--strict)" if gated["strict"] else "and pass; with --strict they fail"
        out.print(Text(f"Warning: {what}: too few trials or too much scatter, {passes}.", "yellow"))


def _table_of_gate(checks: Sequence[Json]) -> Table[Json]:
    """The figures of one result, and whether each is worse."""
    from perflab.columns import Cell, Column, Table

    return Table(
        "baseline",
        "Figures",
        [
            Column("figure", "figure", lambda c: c["words"], rank=0),
            Column("baseline", "baseline", lambda c: c["baseline"], PLAIN, rank=2),
            Column("measured", "measured", lambda c: c["measured"], PLAIN, rank=2),
            Column("verdict", "verdict", lambda c: Cell(c["verdict"], tone=_TONES[c["verdict"]]), rank=1),
            Column("reason", "", lambda c: c["reason"], rank=3, called="reason"),
        ],
        checks,
    )


def _suite_of_gate(gated: Json) -> Suite:
    """For JUnit. An undecided figure is skipped, or fails if strict."""
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
    """Figures of other workloads or of longer trials are not comparable: maxima and counts grow with the trial's
    length."""
    for pair in pairs:
        for old, new, what in (
            (pair.first.workload, pair.second.workload, "workload"),
            (pair.first.duration_s, pair.second.duration_s, "duration of a trial"),
        ):
            if old != new:
                differ = f"the {what} is {_value(new)}, in the baseline {_value(old)}"
                raise BadInput(f"{run.name} cannot be checked against {baseline.name}: {differ}")


def _value(value: Any) -> str:
    return f"{value:g} s" if isinstance(value, int | float) else str(value)


def _other_circumstances(run: RunData, baseline: RunData, pairs: Sequence[Match]) -> list[str]:
    """Differences between the runs, other than the one under test, that may explain a difference in figures."""
    warnings = []
    old_host, new_host = baseline.manifest.host, run.manifest.host
    for key in _HOST:
        old, new = old_host.get(key), new_host.get(key)
        if old is not None and new is not None and old != new:
            warnings.append(f"another machine: {key} is {new}, in {baseline.name} {old}")
    old_settings, new_settings = (_settings(one) for one in (baseline, run))
    warnings += [
        f"other settings: {key} is {new_settings[key]}, in {baseline.name} {old_settings[key]}"
        for key in _SETTINGS
        if None not in (old_settings[key], new_settings[key]) and old_settings[key] != new_settings[key]
    ]
    graphs = [r.manifest.workload.graph for r in (baseline, run)]
    if all(graphs) and graphs[0] != graphs[1]:
        warnings.append(f"the workload's graph differs from that of {baseline.name}")
    for pair in pairs:
        warnings += [f"the options differ: {words}" for words in pair.differing]
    return list(dict.fromkeys(warnings))


def _settings(run: RunData) -> Json:
    """Values recorded by a run; None if its files have neither the whole nor any part."""
    known = models.as_json(run.manifest.settings)
    parts = {key: value.values() for key, value in known.items() if isinstance(value, dict)}
    return {key: None if all(v is None for v in parts.get(key, (value,))) else value for key, value in known.items()}


def _names(results: Sequence[Result], run: RunData) -> list[str]:
    from perflab.statistics.selection import place_words

    return [f"{place_words(r)}, {r.label}" for r in results]


def _document(check: GateCheck, name: str) -> Json:
    return {
        "result": name,
        "metric": check.metric,
        "words": check.words,
        "verdict": check.verdict,
        "reason": check.reason,
        "baseline": check.baseline,
        "measured": check.measured,
        "p_adjusted": check.p,
        "comparison": None if check.comparison is None else models.as_json(check.comparison.alone()),
    }
