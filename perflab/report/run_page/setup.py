"""What was run and on what, whether the conditions held, and everything that is needed to repeat it."""

from __future__ import annotations

import json
import shlex
import statistics
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from perflab.report.evidence import by_quantity
from perflab.report.run_page import findings
from perflab.report.run_page.effects import condition_in_words, in_words, plain, seconds
from perflab.report.run_page.evidence import observed
from perflab.report.run_page.html import (
    Column,
    Table,
    details,
    escape,
    facts,
    heading,
    items,
    number,
    paragraph,
    paragraphs,
    text_block,
    unbroken,
    word,
)
from perflab.report.run_page.runs import ReportRun, of_all
from perflab.report.tables.model import Cell, Tone
from perflab.results.curve import BreakingPoint
from perflab.results.trial import Circumstances
from perflab.statistics.remarks import VIRTUAL
from perflab.units import format_bytes, format_duration

Json = dict[str, Any]

MOST_BLOCKS = 6  # of conditions, and of treatments; of more there is an overview
MOST_NOTES = 2
SIGN_OF_HELD: dict[bool, tuple[str, Tone]] = {True: ("✔", "good"), False: ("✖", "bad")}


# ---- what was run


def section(runs: Sequence[ReportRun]) -> str:
    made = []
    for run in runs:
        inner = facts(_what(run)) + _conditions(run) + heading(4 if len(runs) > 1 else 3, "Machine") + _machine(run)
        made.append(f"<h3>{escape(run.name)}</h3>{inner}" if len(runs) > 1 else inner)
    return "".join(made) + _differences(runs)


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
    variants = dict.fromkeys(_variant(r) for r in run.results)
    return [
        ("run", run.name),
        ("began", when(run)),
        ("workload", f"{', '.join(names)}{_size(workload)}" if names else workload.get("name")),
        ("variants", "; ".join(v for v in variants if v)),
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
    parts = [_many(len(processes), "process", "processes")]  # a command has no others that are known beforehand
    parts += [_many(n, what) for n, what in ((nodes, "node"), (edges, "edge"), (services, "service")) if n]
    return f" ({', '.join(parts)})"


def _many(n: int, one: str, more: str = "") -> str:
    return f"{n} {one if n == 1 else more or f'{one}s'}"


def _variant(result: Circumstances) -> str:
    """Nothing of a middleware that was not recorded."""
    parts = (
        result.middleware,
        result.executor,
        "ipc on" if result.ipc == "on" else None,
        f"by {result.pass_by}" if result.pass_by else None,
    )
    return ", ".join(part for part in parts if part)


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
    return f"{ran}{of}" + (f", in {_many(blocks, 'block')}" if isinstance(blocks, int) else "")


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
    holm = f", Holm over {_many(family, 'comparison')}" if family > 1 else ""
    none = f"; a difference below {100 * found.margin:.3g} % is called none" if family else ""
    return f"one value per trial; α = {found.alpha:g}{holm}{none}"


def _unavailable(manifest: Json) -> str | None:
    left = manifest.get("unavailable_levels") or ()
    return "; ".join(f"{u['factor']} = {plain(u['level'])}: {u['reason']}" for u in left) or None


def _conditions(run: ReportRun) -> str:
    """Each treatment with all parameters of its conditions; of many that differ in levels alone what is common once."""
    treatments: dict[str, Mapping[str, Any]] = {}
    disturbed = [r for r in run.results if r.is_disturbed]
    for result in disturbed:
        treatments.setdefault(result.label, result.condition_parameters)
    words = in_words(disturbed)
    alike: dict[tuple[str, ...], list[str]] = {}
    for name, given in treatments.items():
        alike.setdefault(tuple(given), []).append(name)
    shown = []
    for labels, names in alike.items():
        if len(names) > MOST_BLOCKS:
            shown.append(_levels(labels, {name: treatments[name] for name in names}))
            continue
        for name in names:
            title = name if words.get(name, name) == name else f"{name}: {words[name]}"
            blocks = "".join(_block(label, _mapping(given)) for label, given in treatments[name].items())
            shown.append(details(title, blocks) or paragraph(name))
    return f'<div class="treatments">{heading(3, "Conditions")}{"".join(shown)}</div>' if shown else ""


def _block(label: str, parameters: Mapping[str, Any]) -> str:
    return f"<h4>{escape(label)}</h4>{facts([(key, plain(value)) for key, value in parameters.items()])}"


def _levels(labels: Sequence[str], treatments: Mapping[str, Mapping[str, Any]]) -> str:
    """Treatments with the same conditions: a parameter that differs has all its levels."""
    blocks = []
    for label in labels:
        given = [_mapping(parameters[label]) for parameters in treatments.values()]
        keys = dict.fromkeys(key for one in given for key in one)
        levels = {key: "; ".join(dict.fromkeys(plain(one.get(key)) for one in given)) for key in keys}
        blocks.append(_block(label, levels))
    return details(f"{' and '.join(labels)}, {len(treatments)} treatments", "".join(blocks))


def _machine(run: ReportRun) -> str:
    host = {**_mapping(run.manifest.get("host")), **_mapping(run.manifest.get("inventory"))}
    if not any(host.values()):
        return paragraph("The run does not say what it was made on.", "faint")
    software = _mapping(host.get("software"))
    shown = facts(
        [
            ("processor", _processor(host)),
            ("memory", format_bytes(host["memory_kb"] * 1024) if host.get("memory_kb") else None),
            ("system", ", ".join(str(host[k]) for k in ("distribution", "machine") if host.get(k))),
            ("kernel", ", ".join(str(w) for w in (host.get("kernel"), _preemption(host)) if w)),
            ("runs in", _virtual(host)),
            ("clock source", host.get("clock_source")),
            ("governors", _governors(host)),
            ("turbo", plain(host["turbo"]) if host.get("turbo") is not None else None),
            ("SMT", {"notsupported": "not supported"}.get(str(host.get("smt")), host.get("smt"))),
            ("limits of the cgroup", _cgroup(host)),
            ("C library", software.get("libc")),
            ("host", host.get("hostname")),
        ]
    )
    checks = [c for c in run.manifest.get("preflight") or () if isinstance(c, Mapping)]
    warned = [c for c in checks if c.get("status") != "ok"]
    rows = [
        [
            word(c.get("name")),
            word(c.get("value")),
            word({"warn": "noisy"}.get(str(c["status"]), str(c["status"])), "warn"),
            word(c.get("advice")),
        ]
        for c in warned
    ]
    columns = [Column("what", False), Column("value", False), Column("state", False), Column("what helps", False)]
    noise = Table("What can disturb measurements on this machine", columns, rows).html()
    fine = len(checks) - len(warned)
    said = f"{_many(fine, 'other check')} of the machine found nothing." if warned and fine else ""
    if checks and not warned:
        said = f"All {len(checks)} checks of the machine found nothing that disturbs measurements."
    shown += details("The whole inventory", _inventory(run.manifest))
    virtual = bool(run.results) and all(r.middleware == VIRTUAL for r in run.results)
    if virtual:
        note = "The virtual middleware simulates time: neither the machine nor its noise is in these figures."
        return paragraph(note) + details("The machine all the same", shown + noise + paragraph(said, "faint"))
    return shown + noise + paragraph(said, "faint")


def _inventory(manifest: Json) -> str:
    from perflab.report.inventory import rows

    known = [[word(row.label), word(row.value), word(row.section)] for row in rows(_mapping(manifest.get("inventory")))]
    shown = [row for row in known if row[1].text != "–"]
    return Table("Inventory", [Column("property", False), Column("value", False), Column("of", False)], shown).html()


def _processor(host: Mapping[str, Any]) -> str | None:
    if not host.get("cpu_model"):
        return None
    allowed, online = host.get("cpus_allowed"), host.get("cpus_online")
    return f"{host['cpu_model']}; CPUs {online} online{f', {allowed} may be used' if allowed is not None else ''}"


def _preemption(host: Mapping[str, Any]) -> str | None:
    return f"preemption {host['preemption']}" if host.get("preemption") else None


def _virtual(host: Mapping[str, Any]) -> str | None:
    machine = {"yes": "a virtual machine"}.get(str(host.get("hypervisor")), host.get("hypervisor"))
    parts = [str(machine)] if machine and str(machine) != "no" else []
    parts += [f"a container ({host['container']})"] if host.get("container") and host["container"] != "no" else []
    return ", ".join(parts) or None


def _governors(host: Mapping[str, Any]) -> str | None:
    cpus = host.get("cpus")
    known = {c.get("governor") for c in cpus if isinstance(c, Mapping)} if isinstance(cpus, list) else set()
    return ", ".join(sorted(str(g) for g in known if g)) or None


def _cgroup(host: Mapping[str, Any]) -> str | None:
    group = _mapping(host.get("cgroup"))
    memory = group.get("memory_bytes")
    parts = [
        f"{plain(group['cpus'])} CPUs" if group.get("cpus") else None,
        f"on {group['cpuset']}" if group.get("cpuset") else None,
        f"{format_bytes(memory) if isinstance(memory, int) else memory} memory" if memory else None,
    ]
    return ", ".join(part for part in parts if part) or None


def _differences(runs: Sequence[ReportRun]) -> str:
    """What the machines and settings of several runs differ in."""
    if len(runs) < 2:
        return ""
    keys = ("hostname", "kernel", "distribution", "cpu_model", "cpus_online", "cpus_allowed", "memory_kb")
    first, lines = runs[0], []
    for run in runs[1:]:
        pairs = [
            (k, _mapping(first.manifest.get("host")).get(k), _mapping(run.manifest.get("host")).get(k)) for k in keys
        ]
        pairs += [("middlewares", _versions(first.manifest), _versions(run.manifest))]
        lines += [
            f"{key}: {plain(a)} in {first.name}, {plain(b)} in {run.name}" for key, a, b in pairs if a != b and a and b
        ]
    return heading(3, "What the runs differ in") + items(lines) if lines else ""


# ---- whether the conditions held


def evidence(runs: Sequence[ReportRun]) -> str:
    """A table per condition: what was promised, what was achieved over the trials, in how many it was in effect."""
    made = []
    for run in runs:
        inner = _evidence_of(run)
        if inner:
            made.append(f"<h3>{escape(run.name)}</h3>{inner}" if len(runs) > 1 else inner)
    return "".join(made)


def _evidence_of(run: ReportRun) -> str:
    found: dict[tuple[str, str], list[Json]] = {}
    for label, _, trial in run.trials:
        if findings.is_interrupted(run, trial):
            continue
        for condition, given in trial.evidence.items():
            found.setdefault((condition, label), []).append({**given, "trial": trial.trial})
    parameters = {(c, label): p for _, label, r in of_all([run]) for c, p in r.condition_parameters.items()}
    blocks = {key: _condition(*key, entries, parameters.get(key)) for key, entries in found.items()}
    if len(blocks) <= MOST_BLOCKS:
        return "".join(blocks.values())
    failed = "".join(text for key, text in blocks.items() if not all(e.get("in_effect") for e in found[key]))
    each = details("Each of them", "".join(blocks.values()), on_paper=False)
    return failed + _held(found) + _overview(found, parameters, run.labels).html() + each


def _held(found: Mapping[tuple[str, str], Sequence[Json]]) -> str:
    """The answer above a table with many rows, where all of them are alike."""
    entries = [entry for of_one in found.values() for entry in of_one]
    if not all(entry.get("in_effect") for entry in entries):
        return ""
    sign, _ = SIGN_OF_HELD[True]
    return paragraph(f"{sign} Yes, in all {len(entries)} trials with a condition.")


def _overview(
    found: Mapping[tuple[str, str], Sequence[Json]],
    parameters: Mapping[tuple[str, str], object],
    order: Sequence[str],
) -> Table:
    """A row for each condition of each result, with the first of what counts of its evidence."""
    columns = [
        Column("result", False),
        Column("condition", False),
        Column("in effect"),
        Column("figure", False),
        Column("promised"),
        Column("achieved, median"),
        Column("range over trials", False),
    ]
    rows = []
    for (condition, label), entries in sorted(found.items(), key=lambda item: order.index(item[0][1])):
        held = sum(bool(e.get("in_effect")) for e in entries)
        sign, tone = SIGN_OF_HELD[held == len(entries)]
        effect = Cell(f"{held} of {len(entries)}", held / len(entries), tone, sign=sign)
        figures = next(iter(_quantities(condition, entries)), [word(None)] * 4)
        rows.append(
            [word(label), word(condition_in_words(condition, parameters.get((condition, label)))), effect, *figures]
        )
    return Table("Promised and achieved", columns, rows)


def _condition(condition: str, label: str, entries: Sequence[Json], parameters: object) -> str:
    held = [e for e in entries if e.get("in_effect")]
    sign, tone = SIGN_OF_HELD[len(held) == len(entries)]
    words = condition_in_words(condition, parameters)
    title = words if label in (condition, words) else f"{words}, in {label}"
    title = title if title.startswith(condition) else title[:1].upper() + title[1:]
    all_ = "in its trial" if len(entries) == 1 else f"in all {len(entries)} trials"
    judged = f"in effect {all_}" if tone == "good" else f"in effect in {len(held)} of {len(entries)} trials"
    reasons: dict[str, list[int]] = {}
    for entry in entries:
        if not entry.get("in_effect"):
            reasons.setdefault(str(entry.get("reason") or "no reason was recorded"), []).append(entry["trial"])
    told = [f"{findings.numbered(trials)}: {reason}" for reason, trials in reasons.items()]
    notes: dict[str, int] = {}
    for entry in entries:
        for note in [*(entry.get("notes") or ()), *([entry["note"]] if entry.get("note") else [])]:
            notes[str(note)] = notes.get(str(note), 0) + 1
    rows = observed([e.get("promised") or {} for e in entries], [e.get("achieved") or {} for e in entries])
    columns = [
        Column("figure", False),
        Column("promised", False),
        Column("achieved, median", False),
        Column("range over trials", False),
    ]
    main = Table(
        "Promised and achieved", columns, _quantities(condition, entries), name=f"{title}: promised and achieved"
    ).html()
    whole = Table(
        "All of the evidence",
        columns,
        [[word(cell) for cell in row] for row in rows],
        name=f"{title}: all of the evidence",
    ).html()
    said = [
        f"{note}{f' ({count} of {len(entries)} trials)' if len(entries) > 1 else ''}" for note, count in notes.items()
    ]
    # What each trial says in other words is for who looks closer.
    shown, folded = (said, []) if len(said) <= MOST_NOTES else ([], said)
    return (
        f'<div class="condition"><h4>{escape(title)} <span class="verdict {tone}"><b class="sign" aria-hidden="true">'
        f"{sign}</b> {unbroken(judged)}</span></h4>{items(told)}{paragraphs(shown, 'faint')}"
        f"{main}{details('All of the evidence', whole + items(folded))}</div>"
    )


def _quantities(condition: str, entries: Sequence[Json]) -> list[list[Cell]]:
    """What counts of the evidence; the rest is folded."""
    rows = []
    for (words, unit), found in by_quantity(condition, entries).items():
        promised = next((q.promised for q in found if q.promised is not None), None)
        achieved = [q.achieved for q in found if q.achieved is not None]
        ends = {_amount(end, unit): end for end in (min(achieved), max(achieved))} if achieved else {}
        middle = statistics.median(achieved) if achieved else None
        rows.append(
            [
                word(words),
                number(_amount(promised, unit), promised),
                number(_amount(middle, unit), middle),
                word(" to ".join(ends)),
            ]
        )
    return rows


def _amount(value: float | None, unit: str) -> str:
    unit = {"1/s": "/s"}.get(unit, unit)
    return (
        "–" if value is None else f"{plain(int(value) if value == int(value) else value)}{f' {unit}' if unit else ''}"
    )


# ---- how to repeat it


def repeat(runs: Sequence[ReportRun]) -> str:
    made = []
    for run in runs:
        inner = _repeat(run)
        made.append(f"<h3>{escape(run.name)}</h3>{inner}" if len(runs) > 1 else inner)
    return "".join(made)


def _repeat(run: ReportRun) -> str:
    manifest = run.manifest
    if not run.own:
        return paragraph("This run is not one of perflab's; it does not say how it was started.") + facts(
            [(key, plain(value)) for key, value in manifest.items() if isinstance(value, str | int | float)]
        )
    parts = []
    if command := _command(manifest):
        parts += [heading(4, "Command line"), text_block(command, "the command line")]
    parts += [_experiment(manifest, run.verb)]
    software = _mapping(_mapping(manifest.get("inventory")).get("software"))
    own = _mapping(software.get("perflab"))
    git = _mapping(own.get("git"))
    revision = f"{git['revision']}{', with changes' if git.get('modified') else ''}" if git.get("revision") else None
    versions = _mapping(manifest.get("versions"))
    known = facts(
        [
            ("perflab", own.get("version") or versions.get("perflab")),
            ("git revision", revision),
            ("middlewares", _versions(manifest)),
            ("python", software.get("python") or versions.get("python")),
            ("packages", plain(software.get("packages") or versions.get("packages")) if software or versions else None),
            ("stress-ng", software.get("stress_ng")),
            ("C library", software.get("libc")),
            ("first seed", _mapping(manifest.get("settings")).get("seed")),
            ("identity of the run", manifest.get("run_id")),
        ]
    )
    parts += [heading(4, "Versions and seeds"), known]
    parts.append(details("Environment variables", _environment(manifest)))
    parts.append(details("Checksums of sources and programs", _checksums(manifest, software)))
    parts.append(details("Sources of the workload", _sources(_mapping(manifest.get("workload")).get("sources"))))
    return "".join(parts)


def _command(manifest: Json) -> str | None:
    words = manifest.get("command_line")
    if not isinstance(words, list) or not words:
        return None
    return shlex.join(
        [Path(str(words[0])).name if str(words[0]).endswith("perflab") else str(words[0]), *map(str, words[1:])]
    )


def _experiment(manifest: Json, verb: str) -> str:
    """The experiment as a file that can be run again: as it was written, or what the options amount to."""
    experiment = _mapping(manifest.get("experiment"))
    files = [s for s in experiment.get("sources") or () if isinstance(s, Mapping) and s.get("text")]
    written = _mapping(experiment.get("written"))
    parts = []
    if files:
        parts.append(heading(4, "Experiment file"))
        parts += [
            paragraph(source.get("path"), "faint") + text_block(str(source["text"]), "the experiment file")
            for source in files
        ]
        parts.append(paragraph("Options of the command line replace what the file says. The two together are:"))
    elif written:
        parts.append(heading(4, "As an experiment file"))
    if written:
        import yaml

        text = yaml.safe_dump(json.loads(json.dumps(written)), sort_keys=False, allow_unicode=True, width=100)
        parts.append(text_block(text, "the experiment as a file"))
        parts.append(paragraph(f"Save it as experiment.yaml; `perflab {verb} experiment.yaml` repeats the run."))
    return "".join(parts)


def _environment(manifest: Json) -> str:
    inventory = _mapping(manifest.get("inventory"))
    known = {**_mapping(manifest.get("environment")), **_mapping(inventory.get("environment"))}
    if not known:
        return paragraph("None of those that reach into middlewares, allocator or dynamic linker was set.", "faint")
    return facts([(name, plain(value)) for name, value in sorted(known.items())])


def _checksums(manifest: Json, software: Mapping[str, Any]) -> str:
    rows: list[list[Cell]] = []
    for kind, sources in (
        ("workload", _mapping(manifest.get("workload")).get("sources")),
        ("experiment", _mapping(manifest.get("experiment")).get("sources")),
    ):
        rows += [
            [word(s.get("path")), word(kind), number("–", None), word(s.get("sha256"))]
            for s in sources or ()
            if isinstance(s, Mapping)
        ]
    for name, entry in _mapping(software.get("programs")).items():
        if isinstance(entry, Mapping):
            size = entry.get("size_bytes")
            rows.append([word(name), word("program"), number(format_bytes(size), size), word(entry.get("sha256"))])
    for name, entry in _mapping(software.get("middlewares")).items():
        for library in _libraries(entry):
            size = library.get("size_bytes")
            package = " ".join(str(library[k]) for k in ("package", "version") if isinstance(library.get(k), str))
            what = f"library of {name}{f', {package}' if package else ''}"
            rows.append(
                [word(library.get("path")), word(what), number(format_bytes(size), size), word(library.get("sha256"))]
            )
    columns = [
        Column("file", False),
        Column("what", False),
        Column("size"),
        Column("SHA-256 (or its beginning)", False),
    ]
    return Table("Checksums", columns, rows).html()


def _libraries(entry: object) -> list[Mapping[str, Any]]:
    """Whatever in the inventory of a middleware has a path and a checksum."""
    if isinstance(entry, Mapping):
        if entry.get("sha256"):
            return [entry]
        return [found for value in entry.values() for found in _libraries(value)]
    return [found for value in entry for found in _libraries(value)] if isinstance(entry, list) else []


def _sources(sources: object) -> str:
    if not isinstance(sources, list):
        return ""
    return "".join(
        paragraph(s.get("path"), "faint") + text_block(str(s["text"]), "this file")
        for s in sources
        if isinstance(s, Mapping) and s.get("text")
    )
