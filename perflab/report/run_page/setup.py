"""What was run and on which machine, and everything needed to repeat it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from perflab.columns import Cell, Column, Table
from perflab.host import OK, WARN, Check
from perflab.quantity import BYTES
from perflab.report import inventory
from perflab.report.run_page.blocks import Block, Facts, Fold, Group, Heading, Items, Known, Sheet, Source, Text, each
from perflab.report.run_page.effects import in_words, plain, seconds
from perflab.report.run_page.tables import rows_of
from perflab.report.runs import ReportRun
from perflab.report.tables import machine, threads
from perflab.results.curve import BreakingPoint
from perflab.results.files import Manifest, UsedExperiment, UsedWorkload
from perflab.results.source import Source as Read
from perflab.statistics.selection import variant_words
from perflab.units import format_duration, plural

Json = Mapping[str, Any]

MOST_BLOCKS = 6  # number of treatments; with more, their levels are listed together
# The properties of a machine that readers of a run look for, by inventory label.
OF_MACHINE = (
    "CPU", "architecture", "CPUs", "memory", "distribution", "kernel", "preemption", "hypervisor", "container",
    "clock source", "frequency governor", "turbo", "SMT", "CPUs of the cgroup", "memory of the cgroup", "libc",
)  # fmt: skip
# The properties in which the machines of several runs may differ.
OF_HOST = ("hostname", "kernel", "distribution", "cpu_model", "cpus_online", "cpus_allowed", "memory_kb")


def _at(document: object, *path: str) -> Json:
    """A nested member; empty if it is missing, or not an object."""
    for name in path:
        document = document.get(name) if isinstance(document, Mapping) else None
    return document if isinstance(document, Mapping) else {}


# ---- what was run


def section(runs: Sequence[ReportRun]) -> Iterator[Block]:
    for run, heading in each(runs):
        yield from heading
        yield Known(_what(run))
        if treatments := list(_treatments(run)):
            yield Group("treatments", [Heading("Conditions"), *treatments])
        if (scheduled := threads.of_results(rows_of([run]))).rows:
            yield Fold(threads.TITLE, [Sheet(scheduled)])
        yield Heading("Machine", 4 if heading else 3)
        yield from _machine(run)
        if (did := machine.of_results(rows_of([run]))).rows:
            yield Fold(machine.TITLE, [Sheet(did)])
    if differences := [line for run in runs[1:] for line in _differences(runs[0], run)]:
        yield Heading("Differences between the runs")
        yield Items(differences)


def when(run: ReportRun) -> str | None:
    """ "21 November 2026, 15:46 UTC"."""
    text = run.manifest.created_utc
    if text is None:
        return None
    try:
        return f"{datetime.fromisoformat(text).astimezone(UTC):%-d %B %Y, %H:%M} UTC"
    except ValueError:
        return text


def _what(run: ReportRun) -> Facts:
    manifest, results = run.manifest, run.results
    settings, workload, document = manifest.settings, manifest.workload, manifest.experiment.document
    lengths = sorted({r.duration_s for r in results if r.duration_s})
    left = manifest.unavailable_levels
    known = " to ".join(map(format_duration, dict.fromkeys((lengths[0], lengths[-1])))) if lengths else ""
    measured, warmup = seconds(settings.duration_ns) or known, settings.warmup_ns
    names = dict.fromkeys(r.workload for r in results)
    after = f", after {seconds(warmup)} of warm-up" if warmup else ""
    return [
        ("run", run.name),
        ("began", when(run)),
        ("workload", f"{', '.join(names)}{size_of(workload)}" if names else workload.name),
        ("variants", "; ".join(dict.fromkeys(variant_words(r) for r in results))),
        ("middlewares", versions_of(manifest)),
        ("measured time", f"{measured} per trial{after}" if measured else None),
        ("trials", _trials(run, document)),
        ("searched", "; ".join(map(_searched, run.summary.breaking_points))),
        ("order", _order(document) if document else None),
        ("seed", settings.seed),
        ("factors", "; ".join(f"{path}: {plain(levels)}" for path, levels in _at(document, "factors").items())),
        ("observers", "; ".join(dict.fromkeys(o for r in results for o in r.observers))),
        ("success means", ", ".join(map(plain, document.get("success") or ()))),
        ("cool-down", _cool_down(settings.quiet_limit_ns)),
        ("statistics", _statistics(run)),
        ("treatments left out", "; ".join(f"{u.treatment}: {u.reason}" for u in manifest.left_out)),
        ("levels left out", "; ".join(f"{u.factor} = {plain(u.level)}: {u.reason}" for u in left)),
    ]


def size_of(workload: UsedWorkload) -> str:
    """ " (1 process, 10 nodes, 17 edges)"; empty if unknown."""
    processes = workload.graph.get("processes")
    if not isinstance(processes, list):
        return ""
    nodes = sum(len(p.get("nodes") or ()) for p in processes)
    edges, services = len(workload.edges), len(workload.services)
    parts = [plural(len(processes), "process", "processes")]  # the others of a command are not known beforehand
    parts += [plural(n, what) for n, what in ((nodes, "node"), (edges, "edge"), (services, "service")) if n]
    return f" ({', '.join(parts)})"


def versions_of(manifest: Manifest) -> str:
    """ "cyclonedds 0.10.2; fastdds 2.9.1", with their options."""
    found = []
    for middleware in manifest.middlewares:
        options = f" ({plain(middleware.options)})" if middleware.options else ""
        found.append(f"{middleware.name} {middleware.version or ''}".strip() + options)
    return "; ".join(dict.fromkeys(found))


def _trials(run: ReportRun, document: Json) -> str | None:
    if run.planned is None:  # a foreign run, or a search
        return str(run.ended) if run.ended else None
    blocks = max((t.block or 0 for t in run.manifest.trials), default=0) or document.get("trials")
    of = f" of {run.planned} planned" if run.ended != run.planned else ""
    return f"{run.ended}{of}" + (f", in {plural(blocks, 'block')}" if isinstance(blocks, int) else "")


def _searched(search: BreakingPoint) -> str:
    """ "the message_flood.rate from 100 to 4000 at which `lost == 0` is met in 50 % of trials; at most 40 trials"."""
    between = f"{search.factor} from {plain(search.low)} to {plain(search.high)}"
    share = f"is met in {100 * search.share:.3g} % of trials"
    most = f"; at most {search.max_trials} trials" if search.max_trials else ""
    variant = f" ({search.variant})" if search.variant else ""
    return f"{between}: where “{search.criterion}” {share}{most}{variant}"


def _order(document: Json) -> str:
    if document.get("breaking_point"):
        return "in the order of the search: each trial at the most informative level"
    words = (
        "in random order within each block"
        if document.get("order") == "randomised"
        else "in written order, in each block"
    )
    again = document.get("baseline_again") and document.get("conditions")
    return words + ("; a baseline after each disturbance" if again else "")


def _cool_down(limit_ns: float | None) -> str | None:
    if limit_ns is None:
        return None
    return (
        f"waits at most {seconds(limit_ns)} for a quiet machine"
        if limit_ns
        else "off: trials began without waiting for a quiet machine"
    )


def _statistics(run: ReportRun) -> str | None:
    found = run.summary.findings
    if found is None:
        return None
    family = found.family_size
    of_all = f" for {plural(family, 'comparison')} together" if family > 1 else ""
    none = f"; a difference below {100 * found.margin:.3g} % counts as none" if family else ""
    return f"one value per trial; α = {found.alpha:g}{of_all}{none}"


def _treatments(run: ReportRun) -> Iterator[Fold]:
    """Each with all parameters of its conditions; if many differ only in levels, common parameters are listed once."""
    disturbed = [r for r in run.results if r.is_disturbed]
    given = {result.label: result.condition_parameters for result in reversed(disturbed)}
    words = in_words(disturbed)
    alike: dict[tuple[str, ...], list[str]] = {}
    for name in words:
        alike.setdefault(tuple(given[name]), []).append(name)
    for labels, names in alike.items():
        if len(names) > MOST_BLOCKS:
            title = f"{' and '.join(labels)}, {len(names)} treatments"
            yield _treatment(title, labels, [given[name] for name in names])
            continue
        for name in names:
            title = name if words[name] == name else f"{name}: {words[name]}"
            yield _treatment(title, labels, [given[name]])


def _treatment(title: str, labels: Sequence[str], given: Sequence[Json]) -> Fold:
    """For one treatment, or several with the same conditions: a parameter that differs has all its levels."""
    blocks: list[Block] = []
    for label in labels:
        parameters = [_at(of, label) for of in given]
        keys = dict.fromkeys(key for one in parameters for key in one)
        levels = [(key, "; ".join(dict.fromkeys(plain(one.get(key)) for one in parameters))) for key in keys]
        blocks += [Heading(label, 4), Known(levels)]
    return Fold(title, blocks)


# ---- the machine


def _machine(run: ReportRun) -> Iterator[Block]:
    manifest = run.manifest
    host = {**manifest.host, **manifest.inventory}
    if not any(host.values()):
        yield Text("The run does not record its machine.", "faint")
        return
    known = {row.label: row.value for row in inventory.rows(host)}
    whole = [row for row in inventory.rows(manifest.inventory) if row.value]
    checks = manifest.preflight
    warned = [check for check in checks if check.status != OK]
    fine = len(checks) - len(warned)
    checked = f"{plural(fine, 'other check')} of the machine found nothing." if warned and fine else ""
    if checks and not warned:
        checked = f"All {fine} checks of the machine found nothing that disturbs measurements."
    blocks: list[Block] = [
        Known([(label, known[label]) for label in OF_MACHINE]),
        Fold("The whole inventory", [Sheet(Table("inventory", "Inventory", _INVENTORY, whole))]),
        Sheet(Table("noise", "Possible disturbances of measurements on this machine", _NOISE, warned)),
        Text(checked, "faint"),
    ]
    if run.results and run.data.is_virtual:
        yield Text("The virtual middleware simulates time: neither the machine nor its noise affects these figures.")
        yield Fold("The machine, for reference", blocks)
    else:
        yield from blocks


_INVENTORY: list[Column[inventory.Row]] = [
    Column("property", "property", lambda row: row.label),
    Column("value", "value", lambda row: row.value),
    Column("of", "of", lambda row: row.section),
]
_NOISE: list[Column[Check]] = [
    Column("name", "what", lambda check: check.name),
    Column("value", "value", lambda check: check.value),
    Column("state", "state", lambda check: Cell(_state(check), _state(check), "warn")),
    Column("advice", "what helps", lambda check: check.advice),
]


def _state(check: Check) -> str:
    return {WARN: "noisy"}.get(check.status, check.status)


def _differences(first: ReportRun, run: ReportRun) -> list[str]:
    """The differences of a later run's machine and middlewares from those of the first."""
    hosts = [of.manifest.host for of in (first, run)]
    pairs = [(key, *(host.get(key) for host in hosts)) for key in OF_HOST]
    pairs.append(("middlewares", versions_of(first.manifest), versions_of(run.manifest)))
    return [f"{key}: {plain(a)} in {first.name}, {plain(b)} in {run.name}" for key, a, b in pairs if a != b and a and b]


# ---- how to repeat it


def repeat(runs: Sequence[ReportRun]) -> Iterator[Block]:
    for run, heading in each(runs):
        yield from heading
        if run.own:
            yield from _again(run)
        else:
            yield Text("This is not a run of perflab; it does not record its command line.")
            yield Known([("run", run.manifest.run)])


def _again(run: ReportRun) -> Iterator[Block]:
    manifest = run.manifest
    experiment, workload, software = manifest.experiment, manifest.workload, _at(manifest.inventory, "software")
    if command := _command(run):
        yield Heading("Command line", 4)
        yield Source(command, "the command line")
    written = _yaml(experiment.written or {})
    if files := _texts(experiment.sources, "the experiment file"):
        yield Heading("Experiment file", 4)
        yield from files
        yield Text("Options on the command line replace those in the file. The result is:")
    elif written:
        yield Heading("As an experiment file", 4)
    if written:
        yield Source(written, "the experiment as a file")
        yield Text(f"Save it as experiment.yaml; `perflab {run.verb} experiment.yaml` repeats the run.")
    yield Heading("Versions and seeds", 4)
    yield Known(_versions_and_seeds(manifest, software))
    environment = {**manifest.environment, **_at(manifest.inventory, "environment")}
    none = Text("None of those that affect middlewares, allocator or dynamic linker was set.", "faint")
    known = Known([(key, plain(value)) for key, value in sorted(environment.items())])
    yield Fold("Environment variables", [known if environment else none])
    checksums = list(_checksums(workload, experiment, software))
    yield Fold("Checksums of sources and programs", [Sheet(Table("checksums", "Checksums", _CHECKSUMS, checksums))])
    yield Fold("Sources of the workload", _texts(workload.sources, "this file"))


def _versions_and_seeds(manifest: Manifest, software: Json) -> Facts:
    own, git, versions = _at(software, "perflab"), _at(software, "perflab", "git"), manifest.versions
    revision = f"{git['revision']}{', with changes' if git.get('modified') else ''}" if git.get("revision") else None
    packages = software.get("packages") or versions.packages
    return [
        ("perflab", own.get("version") or versions.perflab),
        ("git revision", revision),
        ("middlewares", versions_of(manifest)),
        ("python", software.get("python") or versions.python),
        ("packages", plain(packages) if packages else None),
        ("stress-ng", software.get("stress_ng")),
        ("C library", software.get("libc")),
        ("first seed", manifest.settings.seed),
        ("identity of the run", manifest.run_id),
    ]


def _command(run: ReportRun) -> str:
    """The command line as typed. Files whose text is on this page, and the run itself, are named without their folders:
    a report is passed on."""
    manifest = run.manifest
    if not manifest.command_line:
        return ""
    program, *others = manifest.command_line
    here = {source.path for source in (*manifest.workload.sources, *manifest.experiment.sources)}

    def short(word: str) -> str:
        option, equals, path = word.partition("=") if word.startswith("-") else ("", "", word)
        own = path in here or Path(path).name in (run.name, run.data.path.name)
        return f"{option}{equals}{Path(path).name}" if own and path.startswith("/") else word

    return shlex.join([Path(program).name if program.endswith("perflab") else program, *map(short, others)])


def _texts(sources: Sequence[Read], what: str) -> list[Block]:
    """Files as they were written, each below its name."""
    return [block for s in sources if s.text for block in (Text(Path(s.path).name, "faint"), Source(s.text, what))]


def _yaml(written: Json) -> str:
    if not written:
        return ""
    import yaml

    return yaml.safe_dump(json.loads(json.dumps(written)), sort_keys=False, allow_unicode=True, width=100)


_CHECKSUMS: list[Column[Json]] = [
    Column("path", "file", lambda file: Path(file["path"]).name),
    Column("what", "what"),
    Column("size_bytes", "size", lambda file: file.get("size_bytes"), BYTES),
    Column("sha256", "SHA-256 (or its beginning)", lambda file: file.get("sha256")),
]


def _checksums(workload: UsedWorkload, experiment: UsedExperiment, software: Json) -> Iterator[Json]:
    """For sources, programs and libraries, each a row of _CHECKSUMS."""
    for what, sources in (("workload", workload.sources), ("experiment", experiment.sources)):
        yield from ({"path": source.path, "sha256": source.sha256, "what": what} for source in sources)
    for name, entry in _at(software, "programs").items():
        if _at(entry):
            yield {**entry, "path": name, "what": "program"}
    for name, entry in _at(software, "middlewares").items():
        for library in _libraries(entry):
            package = " ".join(str(library[k]) for k in ("package", "version") if isinstance(library.get(k), str))
            yield {**library, "what": f"library of {name}{f', {package}' if package else ''}"}


def _libraries(entry: object) -> Iterator[Json]:
    """Every entry with a path and a checksum in the inventory of a middleware."""
    if isinstance(entry, Mapping) and entry.get("sha256"):
        yield entry
        return
    members = entry.values() if isinstance(entry, Mapping) else entry if isinstance(entry, list) else ()
    for member in members:
        yield from _libraries(member)
