"""What was run and on what, and everything that is needed to repeat it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from perflab.columns import AnyTable, Cell, Column, Table
from perflab.quantity import BYTES
from perflab.report import inventory
from perflab.report.run_page import findings
from perflab.report.run_page.effects import in_words, plain, seconds
from perflab.report.run_page.runs import ReportRun
from perflab.results.curve import BreakingPoint
from perflab.statistics.remarks import VIRTUAL
from perflab.statistics.selection import variant_words
from perflab.units import format_duration, plural

Json = dict[str, Any]
Facts = Sequence[tuple[str, object]]  # names with values; those without a value are left out

MOST_BLOCKS = 6  # of treatments; of more their levels stand together
# What a reader of a run looks for on its machine, by the labels of the inventory.
OF_MACHINE = (
    "CPU", "architecture", "CPUs", "memory", "distribution", "kernel", "preemption", "hypervisor", "container",
    "clock source", "frequency governor", "turbo", "SMT", "CPUs of the cgroup", "memory of the cgroup", "libc",
)  # fmt: skip


@dataclass(frozen=True)
class Treatment:
    """Its conditions, each with its parameters."""

    title: str
    conditions: Sequence[tuple[str, Facts]]


@dataclass(frozen=True)
class Machine:
    facts: Facts
    inventory: AnyTable
    noise: AnyTable
    checked: str  # what the other checks found
    virtual: bool


@dataclass(frozen=True)
class Setup:
    run: str  # empty where there is but one
    facts: Facts
    treatments: Sequence[Treatment]
    machine: Machine


@dataclass(frozen=True)
class Setups:
    runs: Sequence[Setup]
    differences: Sequence[str]


# ---- what was run


def section(runs: Sequence[ReportRun]) -> Setups:
    made = [Setup(run.name if len(runs) > 1 else "", _what(run), _treatments(run), _machine(run)) for run in runs]
    return Setups(made, _differences(runs))


def when(run: ReportRun) -> str | None:
    """ "21 November 2026, 15:46 UTC"."""
    text = run.manifest.get("created_utc")
    if not isinstance(text, str):
        return None
    try:
        return f"{datetime.fromisoformat(text).astimezone(UTC):%-d %B %Y, %H:%M} UTC"
    except ValueError:
        return text


def _what(run: ReportRun) -> list[tuple[str, object]]:
    manifest = run.manifest
    settings, workload = _mapping(manifest.get("settings")), _mapping(manifest.get("workload"))
    document = _mapping(_mapping(manifest.get("experiment")).get("document"))
    measured = seconds(settings.get("duration_ns")) or _durations(run)
    warmup = settings.get("warmup_ns")
    names = dict.fromkeys(r.workload for r in run.results)
    variants = dict.fromkeys(variant_words(r) for r in run.results)
    return [
        ("run", run.name),
        ("began", when(run)),
        ("workload", f"{', '.join(names)}{_size(workload)}" if names else workload.get("name")),
        ("variants", "; ".join(variants)),
        ("middlewares", _versions(manifest)),
        (
            "measured time",
            f"{measured} per trial{f', after {seconds(warmup)} of warm-up' if warmup else ''}" if measured else None,
        ),
        ("trials", _trials(run, document)),
        ("searched", "; ".join(map(_searched, run.summary.breaking_points))),
        ("order", _order(document) if document else None),
        ("seed", settings.get("seed")),
        ("factors", _factors(document)),
        ("observers", "; ".join(dict.fromkeys(o for r in run.results for o in r.observers))),
        ("success means", ", ".join(map(plain, document.get("success") or ())) or None),
        ("cool-down", _cool_down(settings)),
        ("statistics", _statistics(run)),
        ("levels left out", _unavailable(manifest)),
    ]


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _durations(run: ReportRun) -> str:
    known = sorted({r.duration_s for r in run.results if r.duration_s})
    return " to ".join(format_duration(s) for s in dict.fromkeys((known[0], known[-1]))) if known else ""


def _size(workload: Mapping[str, Any]) -> str:
    processes = _mapping(workload.get("graph")).get("processes")
    if not isinstance(processes, list):
        return ""
    nodes = sum(len(p.get("nodes") or ()) for p in processes)
    edges, services = len(workload.get("edges") or ()), len(workload.get("services") or ())
    parts = [plural(len(processes), "process", "processes")]  # a command has no others that are known beforehand
    parts += [plural(n, what) for n, what in ((nodes, "node"), (edges, "edge"), (services, "service")) if n]
    return f" ({', '.join(parts)})"


def _versions(manifest: Json) -> str | None:
    found = []
    for middleware in manifest.get("middlewares") or ():
        options = f" ({plain(middleware['options'])})" if middleware.get("options") else ""
        found.append(f"{middleware['name']} {middleware.get('version') or ''}".strip() + options)
    return "; ".join(dict.fromkeys(found)) or None


def _trials(run: ReportRun, document: Mapping[str, Any]) -> str | None:
    ran = findings.count_trials(run)
    if run.planned is None:  # a foreign run, or a search
        return str(ran) if ran else None
    blocks = document.get("trials")
    of = f" of {run.planned} planned" if ran != run.planned else ""
    return f"{ran}{of}" + (f", in {plural(blocks, 'block')}" if isinstance(blocks, int) else "")


def _searched(search: BreakingPoint) -> str:
    """ "the message_flood.rate from 100 to 4000 at which `lost == 0` is met in 50 % of trials; at most 40 trials"."""
    between = f"{search.factor} from {plain(search.low)} to {plain(search.high)}"
    share = f"is met in {100 * search.share:.3g} % of trials"
    most = f"; at most {search.max_trials} trials" if search.max_trials else ""
    variant = f" ({search.variant})" if search.variant else ""
    return f"{between}: where “{search.criterion}” {share}{most}{variant}"


def _order(document: Mapping[str, Any]) -> str:
    if document.get("breaking_point"):
        return "as the search went: each level where a trial told most"
    words = (
        "in random order within each block" if document.get("order") == "randomised" else "as written, in each block"
    )
    again = document.get("baseline_again") and document.get("conditions")
    return words + ("; a baseline after each disturbance" if again else "")


def _factors(document: Mapping[str, Any]) -> str | None:
    factors = _mapping(document.get("factors"))
    return "; ".join(f"{path}: {plain(levels)}" for path, levels in factors.items()) or None


def _cool_down(settings: Mapping[str, Any]) -> str | None:
    limit = settings.get("quiet_limit_ns")
    if limit is None:
        return None
    return (
        f"waits at most {seconds(limit)} for a quiet machine"
        if limit
        else "off: trials began without waiting for a quiet machine"
    )


def _statistics(run: ReportRun) -> str | None:
    found = run.summary.findings
    if found is None:
        return None
    family = found.family_size
    holm = f", Holm over {plural(family, 'comparison')}" if family > 1 else ""
    none = f"; a difference below {100 * found.margin:.3g} % is called none" if family else ""
    return f"one value per trial; α = {found.alpha:g}{holm}{none}"


def _unavailable(manifest: Json) -> str | None:
    left = manifest.get("unavailable_levels") or ()
    return "; ".join(f"{u['factor']} = {plain(u['level'])}: {u['reason']}" for u in left) or None


def _treatments(run: ReportRun) -> list[Treatment]:
    """Each with all parameters of its conditions; of many that differ in levels alone what is common once."""
    disturbed = [r for r in run.results if r.is_disturbed]
    given = {result.label: result.condition_parameters for result in reversed(disturbed)}
    words = in_words(disturbed)
    alike: dict[tuple[str, ...], list[str]] = {}
    for name in words:
        alike.setdefault(tuple(given[name]), []).append(name)
    found = []
    for labels, names in alike.items():
        if len(names) > MOST_BLOCKS:
            title = f"{' and '.join(labels)}, {len(names)} treatments"
            found.append(_treatment(title, labels, [given[name] for name in names]))
            continue
        for name in names:
            title = name if words[name] == name else f"{name}: {words[name]}"
            found.append(_treatment(title, labels, [given[name]]))
    return found


def _treatment(title: str, labels: Sequence[str], given: Sequence[Mapping[str, Any]]) -> Treatment:
    """Of one, or of several with the same conditions: a parameter that differs has all its levels."""
    blocks = []
    for label in labels:
        parameters = [_mapping(of[label]) for of in given]
        keys = dict.fromkeys(key for one in parameters for key in one)
        levels = [(key, "; ".join(dict.fromkeys(plain(one.get(key)) for one in parameters))) for key in keys]
        blocks.append((label, levels))
    return Treatment(title, blocks)


def _machine(run: ReportRun) -> Machine:
    manifest = run.manifest
    host = {**_mapping(manifest.get("host")), **_mapping(manifest.get("inventory"))}
    known = {row.label: row.value for row in inventory.rows(host)}
    facts = [(label, known[label]) for label in OF_MACHINE] + [("host", host.get("hostname"))]
    checks = [c for c in manifest.get("preflight") or () if isinstance(c, Mapping)]
    warned = [c for c in checks if c.get("status") != "ok"]
    fine = len(checks) - len(warned)
    checked = f"{plural(fine, 'other check')} of the machine found nothing." if warned and fine else ""
    if checks and not warned:
        checked = f"All {fine} checks of the machine found nothing that disturbs measurements."
    whole = [row for row in inventory.rows(_mapping(manifest.get("inventory"))) if row.value]
    return Machine(
        facts if any(host.values()) else (),
        Table("inventory", "Inventory", _INVENTORY, whole),
        Table("noise", "What can disturb measurements on this machine", _NOISE, warned),
        checked,
        virtual=bool(run.results) and all(r.middleware == VIRTUAL for r in run.results),
    )


_INVENTORY: list[Column[inventory.Row]] = [
    Column("property", "property", lambda row: row.label),
    Column("value", "value", lambda row: row.value),
    Column("of", "of", lambda row: row.section),
]
_NOISE: list[Column[Mapping[str, Any]]] = [
    Column("name", "what", lambda check: check.get("name")),
    Column("value", "value", lambda check: check.get("value")),
    Column("state", "state", lambda check: Cell(_state(check), _state(check), "warn")),
    Column("advice", "what helps", lambda check: check.get("advice")),
]


def _state(check: Mapping[str, Any]) -> str:
    return {"warn": "noisy"}.get(str(check["status"]), str(check["status"]))


def _differences(runs: Sequence[ReportRun]) -> list[str]:
    """What the machines and middlewares of later runs differ in from those of the first."""
    keys = ("hostname", "kernel", "distribution", "cpu_model", "cpus_online", "cpus_allowed", "memory_kb")
    first, *others = runs
    lines = []
    for run in others:
        hosts = [_mapping(of.manifest.get("host")) for of in (first, run)]
        pairs = [(key, *(host.get(key) for host in hosts)) for key in keys]
        pairs.append(("middlewares", _versions(first.manifest), _versions(run.manifest)))
        lines += [
            f"{key}: {plain(a)} in {first.name}, {plain(b)} in {run.name}" for key, a, b in pairs if a != b and a and b
        ]
    return lines


# ---- how to repeat it


@dataclass(frozen=True)
class Source:
    """A text, and the file that it is of."""

    path: str
    text: str


@dataclass(frozen=True)
class Repeat:
    """How to run it again; of a foreign run only `facts`."""

    run: str  # empty where there is but one
    own: bool
    facts: Facts
    verb: str = ""
    command: str = ""
    files: Sequence[Source] = ()  # of the experiment, as they were written
    written: str = ""  # the experiment as one file
    environment: Facts = ()
    checksums: AnyTable | None = None
    sources: Sequence[Source] = ()  # of the workload


def repeat(runs: Sequence[ReportRun]) -> list[Repeat]:
    return [_repeat(run, run.name if len(runs) > 1 else "") for run in runs]


def _repeat(run: ReportRun, name: str) -> Repeat:
    manifest = run.manifest
    if not run.own:
        known = [(key, plain(value)) for key, value in manifest.items() if isinstance(value, str | int | float)]
        return Repeat(name, False, known)
    experiment, workload = _mapping(manifest.get("experiment")), _mapping(manifest.get("workload"))
    software = _mapping(_mapping(manifest.get("inventory")).get("software"))
    own = _mapping(software.get("perflab"))
    git = _mapping(own.get("git"))
    revision = f"{git['revision']}{', with changes' if git.get('modified') else ''}" if git.get("revision") else None
    versions = _mapping(manifest.get("versions"))
    packages = software.get("packages") or versions.get("packages")
    facts = [
        ("perflab", own.get("version") or versions.get("perflab")),
        ("git revision", revision),
        ("middlewares", _versions(manifest)),
        ("python", software.get("python") or versions.get("python")),
        ("packages", plain(packages) if packages else None),
        ("stress-ng", software.get("stress_ng")),
        ("C library", software.get("libc")),
        ("first seed", _mapping(manifest.get("settings")).get("seed")),
        ("identity of the run", manifest.get("run_id")),
    ]
    environment = {
        **_mapping(manifest.get("environment")),
        **_mapping(_mapping(manifest.get("inventory")).get("environment")),
    }
    return Repeat(
        name,
        True,
        facts,
        run.verb,
        _command(manifest),
        _texts(experiment.get("sources")),
        _yaml(experiment.get("written")),
        [(key, plain(value)) for key, value in sorted(environment.items())],
        Table("checksums", "Checksums", _CHECKSUMS, _checksums(workload, experiment, software)),
        _texts(workload.get("sources")),
    )


def _command(manifest: Json) -> str:
    words = manifest.get("command_line")
    if not isinstance(words, list) or not words:
        return ""
    program, *others = map(str, words)
    return shlex.join([Path(program).name if program.endswith("perflab") else program, *others])


def _texts(sources: object) -> list[Source]:
    known = sources if isinstance(sources, list) else []
    return [Source(str(s.get("path") or ""), str(s["text"])) for s in known if isinstance(s, Mapping) and s.get("text")]


def _yaml(written: object) -> str:
    if not isinstance(written, Mapping) or not written:
        return ""
    import yaml

    return yaml.safe_dump(json.loads(json.dumps(written)), sort_keys=False, allow_unicode=True, width=100)


_CHECKSUMS: list[Column[Mapping[str, Any]]] = [
    Column("path", "file"),
    Column("what", "what"),
    Column("size_bytes", "size", lambda file: file.get("size_bytes"), BYTES),
    Column("sha256", "SHA-256 (or its beginning)", lambda file: file.get("sha256")),
]


def _checksums(*holders: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Of sources, programs and libraries, each a row of _CHECKSUMS."""
    workload, experiment, software = holders
    found: list[Mapping[str, Any]] = [
        {**source, "what": what}
        for what, of in (("workload", workload), ("experiment", experiment))
        for source in of.get("sources") or ()
        if isinstance(source, Mapping)
    ]
    programs = _mapping(software.get("programs"))
    found += [{**entry, "path": name, "what": "program"} for name, entry in programs.items() if _mapping(entry)]
    for name, entry in _mapping(software.get("middlewares")).items():
        for library in _libraries(entry):
            package = " ".join(str(library[k]) for k in ("package", "version") if isinstance(library.get(k), str))
            found.append({**library, "what": f"library of {name}{f', {package}' if package else ''}"})
    return found


def _libraries(entry: object) -> list[Mapping[str, Any]]:
    """Whatever in the inventory of a middleware has a path and a checksum."""
    if isinstance(entry, Mapping):
        if entry.get("sha256"):
            return [entry]
        return [found for value in entry.values() for found in _libraries(value)]
    return [found for value in entry for found in _libraries(value)] if isinstance(entry, list) else []
