"""`perflab check`: a run against a performance target, or against an earlier run as a regression gate."""

from __future__ import annotations

import inspect
import itertools
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perflab import output
from perflab.cli import options
from perflab.cli.options import AsJson, MeasuredRun, complete_run, with_options
from perflab.errors import BadInput, PerflabError, damage_of
from perflab.output import Styled, write_json
from perflab.quantity import PLAIN
from perflab.results.trial import Result, added

if TYPE_CHECKING:
    from perflab.columns import Table
    from perflab.formats.irobot.target import Target
    from perflab.report.junit import Suite
    from perflab.results.run import RunData, TrialTables

Json = dict[str, Any]

MET = "met"
MISSED = "missed"
NOT_MEASURED = "not measured"

_WORDS = {
    "cpu_perc": ("CPU", "% of all CPUs"),
    "rss_KB": ("RSS, peak", "KB"),
    "mean_us": ("latency, mean", "µs"),
    "late_msgs": ("late", "messages"),
    "late_perc": ("late", "% of received"),
    "too_late_msgs": ("too late", "messages"),
    "too_late_perc": ("too late", "% of received"),
    "lost_msgs": ("lost", "messages"),
    "lost_perc": ("lost", "% of sent"),
}


def complete_target(incomplete: str) -> list[str]:
    from perflab import catalog

    return [entry.name for entry in catalog.targets() if entry.name.startswith(incomplete)]


def _parameters() -> list[inspect.Parameter]:
    return options.of_statistics("With --baseline")


@with_options(_parameters)
def check(
    context: typer.Context,
    run: MeasuredRun,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|NAME",
            help="A target of irobot_benchmark, or a name of the catalog (`perflab list targets`).",
            autocompletion=complete_target,
            show_default=False,
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="RUN",
            help="An earlier run that this one must not be worse than.",
            autocompletion=complete_run,
            show_default=False,
        ),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="What the trials cannot decide fails too.", rich_help_panel="With --baseline"),
    ] = False,
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the verdicts as JUnit XML too.", show_default=False)
    ] = None,
    as_json: AsJson = False,
    **values: Any,
) -> int:
    """Check a run against a target, an earlier run, or both.

    With a target no figure may be above its bound; one that was not measured is a miss. With a baseline a figure fails
    that is shown to be worse by more than the margin. Exit code 1 where anything fails.
    """
    from perflab.cli import gate
    from perflab.cli.compare import Rules
    from perflab.runs.rundata import open_run

    if target is None and baseline is None:
        raise BadInput("there is nothing to check against; give --target FILE, --baseline RUN, or both")
    of_baseline = options.typed(context) & {"margin", "metric", "alpha", "strict"}
    if baseline is None and of_baseline:
        given = min(of_baseline)
        raise BadInput(f"--{given} says how to compare with an earlier run; give --baseline RUN, or leave it out")
    wanted = None if target is None else open_target(target)
    data = open_run(run, with_tables=wanted is not None)
    earlier = None if baseline is None else open_run(baseline, with_tables=False)
    runs = [data] if earlier is None else [data, earlier]
    with damage_of(*(opened.path for opened in runs)):
        rules = Rules.of(options.statistics(values), runs)
    with damage_of(data.path):
        checked = _check(data, wanted)
        reports = [] if as_json or wanted is None else [_report(checked)]
    gated = None
    if earlier is not None:
        with damage_of(data.path, earlier.path):
            gated = gate.check(data, earlier, rules, strict=strict)
            reports += [] if as_json else [gate.report(gated)]
        checked["baseline"] = gated
    if junit is not None:
        from perflab.report import junit as xml

        suites = [
            *([_suite(checked)] if wanted is not None else []),
            *([gate.suite(gated)] if gated is not None else []),
        ]
        xml.write(junit, f"perflab check {data.name}", suites)
    if as_json:
        write_json(checked)
    for number, report in enumerate(reports):
        sys.stdout.write("\n" if number else "")
        output.write_captured(report)
    failures = [*_missed(checked), *([] if gated is None else gate.failures(gated))]
    if failures:
        raise PerflabError("; ".join(failures))
    return 0


def _missed(checked: Json) -> list[str]:
    figures = [figure for result in checked["results"] for figure in result["figures"]]
    bad = [figure for figure in figures if figure["verdict"] != MET]
    if not bad:
        return []
    names = list(dict.fromkeys(f"{figure['key']} {figure['verdict']}" for figure in bad))
    return [f"{len(bad)} of {len(figures)} targets not met: {', '.join(names)}"]


def _suite(checked: Json) -> Suite:
    """The verdicts on a target for JUnit."""
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
        raise BadInput(f"{data.path} holds no trial that recorded anything")
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
    """Raises BadInput where a result is of another workload, none of whose processes is the one that is bounded."""
    for result in results:
        names = {*result.workload.split("+"), *(p.process for p in result.resources.processes)}
        if target.topology is not None and target.topology not in names:
            raise BadInput(
                f"--target {target.path} is for {target.topology}, and {data.name} measured {result.workload}: "
                f"their figures are not comparable; check a run of {target.topology}"
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
    # What is not compared but belongs to it.
    beside: dict[str, Json] = {
        "cpu_perc": {"cpu_percent_of_one_cpu": added(p.cpu_percent_mean for p in chosen)},
        "rss_KB": {"rss_kb_mean": mean, "rss_kb_last": last},
    }
    figures = []
    for key, bound in target.bounds.items():
        value, (name, unit) = measured[key], _WORDS[key]
        verdict = NOT_MEASURED if value is None else MET if value <= bound else MISSED
        figures.append(
            {"key": key, "name": name, "unit": unit, "target": bound, "measured": value, "verdict": verdict}
            | {"beside": beside.get(key, {})}
        )
    return {"processes": names, "figures": figures, "met": all(f["verdict"] == MET for f in figures)}


def _trials_of(data: RunData, result: Result) -> list[TrialTables]:
    """The tables of the trials that a result merges."""
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
            notes.append(f"the target is for {stem}, the run is of {', '.join(sorted(workloads))}")
    if target.platform:
        machine = _machine(data)
        if target.platform.lower() not in machine.lower():
            notes.append(f"the target is for {target.platform}; this was measured on {machine}")
    if (note := beside_irobot(result.phase for result in results)) is not None:
        notes.append(note)
    if (differing := _differing(data, target, results)) is not None:
        notes.append(differing)
    for label, result in zip(labels(results), results, strict=True):
        if (failed := no_success(result)) is not None:
            notes.append(f"{label}: {failed}" if len(results) > 1 else failed)
    incomplete = [r for r in results if not r.coverage.complete]
    if incomplete:
        notes.append("not every process wrote its last record: what was lost at the end is not known")
    return notes


def _machine(data: RunData) -> str:
    from perflab.statistics.target import machine_cpus

    host = data.manifest.host
    words = [str(host[key]) for key in ("hardware_model", "cpu_model", "machine") if host.get(key)]
    cpus = machine_cpus(data.manifest.host)
    if cpus is not None:
        words.append(f"{cpus} CPUs" if cpus > 1 else "1 CPU")
    return ", ".join(words) or "a machine that is not recorded"


_THRESHOLDS = (
    ("--late-percentage", "late_percent", 1.0),
    ("--late-absolute", "late_ns", 1e3),
    ("--too-late-percentage", "too_late_percent", 1.0),
    ("--too-late-absolute", "too_late_ns", 1e3),
)


def _differing(data: RunData, target: Target, results: Sequence[Result]) -> str | None:
    """Which options that decide the verdict the run was not made with."""
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


def _report(checked: Json) -> Styled:
    from rich.text import Text

    from perflab.report.table import print_rows

    out = output.console()
    with output.captured(out) as report:
        for note in checked["notes"]:
            out.print(Text(f"Note: {note}", "yellow"))
        for result in checked["results"]:
            if checked["notes"] or len(checked["results"]) > 1:
                out.print()
            of = f" (resources of {', '.join(result['processes'])})" if result["processes"] else ""
            out.print(Text(f"{result['workload']}, {result['label']}{of}", "bold"))
            out.print()
            print_rows(out, _table(result["figures"]))
    return report[0]


def _table(figures: Sequence[Json]) -> Table[Json]:
    """The figures of a target, and whether each was met."""
    from perflab.columns import Cell, Column, Table, Tone

    tones: dict[str, Tone] = {MET: "good", MISSED: "bad", NOT_MEASURED: "warn"}
    return Table(
        "target",
        "Figures",
        [
            Column("figure", "figure", lambda f: f["name"], rank=0),
            Column("unit", "unit", lambda f: Cell(f["unit"], f["unit"]), rank=2),
            Column("target", "target", lambda f: Cell(_number(f["target"]), f["target"]), PLAIN, rank=1),
            Column("measured", "measured", lambda f: Cell(_number(f["measured"]), f["measured"]), PLAIN, rank=1),
            Column("verdict", "verdict", lambda f: Cell(f["verdict"], tone=tones[f["verdict"]]), rank=1),
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
