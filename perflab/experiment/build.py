"""From the user's input to a runnable experiment: finds everything named, and checks everything together."""

from __future__ import annotations

import functools
import os
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import cycle, product, zip_longest
from pathlib import Path
from typing import Any

from perflab import catalog
from perflab.design import claims, factors, scheduling
from perflab.design import treatments as design
from perflab.design.document import FIGURES, BreakingPoint, Document, Scalar, Written, is_experiment, read, validate
from perflab.design.family import planned_pairs
from perflab.design.quick import as_quick
from perflab.design.settings import MIN_SAMPLING_NS, Experiment, Limits, SearchPlan, Settings
from perflab.design.sweep import possible
from perflab.design.treatments import Treatment, planned_trials
from perflab.design.variant import (
    OF_ROS,
    OWN,
    WITH_PERIOD,
    WITHIN,
    Executor,
    Variant,
    parse_executors,
    parse_framing,
    parse_ipc,
    parse_pass_by,
    product_of,
)
from perflab.errors import DAMAGE, BadInput, Unavailable
from perflab.experiment import clean
from perflab.experiment.run import Earlier, finished_trials, take_over
from perflab.host import Host
from perflab.middleware import REGISTRY as MIDDLEWARES
from perflab.middleware import Middleware, cyclonedds, disturbance, select
from perflab.middleware.rclcpp import RUNTIME as ROS
from perflab.native import Native
from perflab.results.files import Manifest, StoppingRule, UsedMiddleware
from perflab.runs import controller
from perflab.runs.rundir import RunDirectory
from perflab.statistics import key_figures
from perflab.statistics.metrics import chosen, parse_criterion
from perflab.statistics.target import machine_cpus
from perflab.units import NS_PER_S, format_duration, format_time
from perflab.workload import Graph, Made, Workload, generated
from perflab.workload.command import ENVIRONMENT, Command, CommandParameters
from perflab.workload.command import load as load_command
from perflab.workload.generated import GeneratedParameters
from perflab.workload.outside import DOMAIN
from perflab.workload.topology import find, load

RMW = "RMW_IMPLEMENTATION"


def named(words: Sequence[str]) -> Written:
    """The experiment that a word names, a file or a catalog name; or a workload. Raises BadInput."""
    experiments = {entry.name: entry.path for entry in catalog.experiments()}
    topologies = {entry.name for entry in catalog.topologies()}
    for word in words:
        if generated.named(word) is not None:
            continue
        in_catalog = word in experiments and word not in topologies
        path = experiments[word] if in_catalog else find(word)
        if in_catalog or is_experiment(path):
            if len(words) > 1:
                raise BadInput(f"{word!r} is an experiment; it cannot be combined")
            return read(path)
    return Written({"workload": list(words)}, given=frozenset({"workload"}))


def asked(written: Written, native: Native, *, output: Path | None, command_line: Sequence[str]) -> Experiment:
    """The experiment that a user asks for: `build`, of what --quick makes of it. Raises BadInput, Unavailable."""

    def built(what: Written) -> Experiment:
        return build(what, native, output=output, command_line=command_line)

    return built(as_quick(written, built))


def build(
    written: Written,
    native: Native,
    *,
    output: Path | None,
    command_line: Sequence[str],
    workload: Workload | None = None,
) -> Experiment:
    """The experiment from a file and options. `workload` is given if a run is resumed.

    Raises BadInput, Unavailable.
    """
    document = validate(written)
    settings = _settings(written, document)
    with written.at("workload"):
        loaded = workload or _load(written, document, native)
    if loaded.command is not None:
        _check_of_command(written, document, loaded.command.parameters)
    with written.at("threads"):
        threads = _threads(document, loaded)
    with written.at("baseline"):
        design.check_baseline(document)
    asked = document.breaking_point
    with written.at("breaking_point"):
        at_end = document if asked is None else _at_high(document, asked)
    for key in ("conditions", "mitigations"):
        for number in range(len(getattr(document, key))):
            with written.at(key, number):
                design.check_entry(at_end, key, number)
    with written.at("factors"):
        design.check_factors(document)
    with written.at("observers"):
        observing = frozenset(observer.name for observer in design.observers(document) if not observer.extra)
    with written.at("workload"):
        figures = key_figures.kinds(key_figures.declared(loaded.graph.document))
    _check_judged_by(written, document, figures, observing)
    variants = _variants(written, document, native, loaded)
    _check_variants(written, document, loaded, variants)
    runtimes = dict.fromkeys("command" if loaded.command is not None else v.runtime for v, _ in variants)
    document, not_recorded = design.recordable(document, Host(), runtimes)
    variant_of = _variant_of(loaded, native)
    search = None
    if asked is None:
        with written.at("conditions"):
            found = design.treatments(document, variants, loaded, variant_of)
        extra = design.extras(document, found)
    else:
        with written.at("breaking_point"):
            search = _search(document, asked, native, loaded)
        # Only baselines are planned beforehand; the ends of the range are judged before the start.
        alone = document.model_copy(update={"conditions": [], "mitigations": [], "observer_control": False})
        found = design.treatments(alone, variants, loaded, variant_of) if document.baseline else []
        goal = search.goal
        ends = [search.at_level(goal.level(level)) for level in (goal.space.low, goal.space.high)]
        found += [t for end in ends for t in end]
        extra = []
    with written.at("claims"):
        claims.check(document, found, figures)
    _check_policies(found)
    _check_filters(found)
    experiment = Experiment(
        name=document.name or (Path(written.file.path).stem if written.file else loaded.name),
        workload=loaded,
        document=document,
        written=written.mapping,
        settings=_common(settings, [*found, *extra]).with_threads(threads),
        treatments=(*found, *extra),
        order=() if search is not None else tuple(design.plan(document, found, extra)),
        output=output,
        command_line=tuple(command_line),
        sources=written.sources,
        search=search,
        not_recorded=not_recorded,
        rule=_rule(written, document),
    )
    _check_together(experiment, written)
    return experiment


def _check_judged_by(
    written: Written, document: Document, figures: Mapping[str, str], observing: frozenset[str]
) -> None:
    """Criteria of success, and the compared metrics. Raises BadInput."""
    for number, text in enumerate(document.success):
        with written.at("success", number):
            parse_criterion(text, figures=figures, observers=observing)
    metrics = "--metric" if written.file is None or "statistics" in written.given else "metrics"
    with written.at("statistics"):
        chosen(document.statistics.metrics, metrics, figures)


def _threads(document: Document, loaded: Workload) -> tuple[scheduling.ThreadRequest, ...]:
    """The scheduling of the threads of all trials. Raises BadInput."""
    if document.threads and (factor := f"{factors.WORKLOAD}.{factors.THREADS}") in document.factors:
        raise BadInput(f"--thread {document.threads[0]!r} conflicts with the factor {factor}; leave one of them out")
    return scheduling.parse(document.threads, loaded.graph.processes, scheduling.names_in(loaded.graph))


def _common(settings: Settings, treatments: Sequence[Treatment]) -> Settings:
    """Sets the duration of all trials if the workload demands the same of each; the demands of single trials are pinned
    there."""
    durations = {settings.pinned(t.pins).duration_ns for t in treatments}
    return replace(settings, duration_ns=durations.pop()) if len(durations) == 1 else settings


def _rule(written: Written, document: Document) -> StoppingRule | None:
    """The rule by which blocks are added, if requested. Raises BadInput."""
    if document.until_decided:
        return StoppingRule(from_start=True, at_most_s=document.at_most / NS_PER_S)
    if "at_most" in written.mapping:
        raise written.refuse("at_most", " limits how long until_decided adds repetitions; it needs until_decided")
    return None


def _rule_of(
    manifest: Manifest, experiment: Experiment, until_decided: bool, at_most_s: float | None
) -> StoppingRule | None:
    """The rule of a resumed run, with the present request. Raises BadInput."""
    rule = manifest.rule
    if rule is None and until_decided:
        rule = StoppingRule(from_start=False, at_most_s=experiment.document.at_most / NS_PER_S)
    if rule is None:
        if at_most_s is not None:
            raise BadInput("--at-most limits how long --until-decided adds repetitions; it needs --until-decided")
        return None
    _check_comparable(replace(experiment, rule=rule))
    return replace(rule, ended=None, at_most_s=rule.at_most_s if at_most_s is None else at_most_s)


def _check_comparable(experiment: Experiment) -> None:
    """Checks that a rule, if there is one, has something to decide. Raises BadInput."""
    if experiment.rule is not None and experiment.search is not None:
        raise BadInput("--until-decided: a search decides itself how many trials it needs")
    if experiment.rule is not None and not planned_pairs(experiment.order, experiment.workload.name):
        raise BadInput("--until-decided: nothing is compared here; name a condition, several variants or levels")


def _at_high(document: Document, asked: BreakingPoint) -> Document:
    """The document with the searched factor at the end of its range, as one of its factors. Raises BadInput."""
    path = asked.factor
    if path in document.factors:
        raise BadInput(f"--factor {path} is searched; leave its levels out of `factors`")
    for end in (asked.low, asked.high):
        design.check_factors(document.model_copy(update={"factors": {path: [end]}}))
    return document.model_copy(update={"factors": {**document.factors, path: [asked.high]}})


def resumed(
    word: str,
    directory: RunDirectory,
    native: Native,
    host: Host,
    command_line: Sequence[str],
    until_decided: bool = False,
    at_most_s: float | None = None,
) -> tuple[Experiment, Earlier]:
    """The experiment of an incomplete run, and its existing trials. Raises BadInput if it cannot be resumed.

    `until_decided` adds that rule if the run has none; `at_most_s` is how long this session may take.
    """
    manifest = directory.read_manifest()
    if manifest.experiment.written is None or manifest.run_id is None:
        raise BadInput(f"{directory.manifest} is from a version whose runs cannot be resumed; run it again")
    written = Written(dict(manifest.experiment.written))
    workload = workload_of(word, manifest, written, native)
    match controller.controller_state(manifest, host):
        case controller.RUNNING:
            raise BadInput(f"run {word!r} is still running (pid {manifest.controller and manifest.controller.pid})")
        case controller.ELSEWHERE:
            raise BadInput(f"run {word!r} is from another machine; its trials would not be comparable with new ones")
    experiment = build(written, native, output=None, command_line=command_line, workload=workload)
    experiment = possible(experiment.named(manifest.name), host)
    if planned_trials(experiment.order, experiment.settings.seed) != manifest.trials[: len(experiment.order)]:
        raise BadInput(f"run {word!r} was planned by another version of perflab, or with other rights; run it again")
    for now in (m.used for variant in experiment.variants for m in variant.middlewares):
        known = [m for m in manifest.middlewares if (m.name, m.options) == (now.name, now.options)]
        before = known[0] if known else UsedMiddleware(name=now.name)
        if before.version != now.version:
            raise BadInput(
                f"run {word!r} used {now.name} {before.version}, but this machine has {now.version}: its trials "
                "would not be comparable"
            )
        if (before.prefix, before.sha256) != (now.prefix, now.sha256):
            raise BadInput(
                f"run {word!r} used another build of {now.name} than the present "
                f"{now.library or 'that of the machine'}: its trials would not be comparable"
            )
    rule = _rule_of(manifest, experiment, until_decided, at_most_s)
    experiment = replace(experiment, rule=rule)
    # What the killed run left would disturb this one.
    for left in clean.remove(clean.find([directory.path], host), host):
        if left.problem is not None:
            raise BadInput(f"run {word!r} left something behind that cannot be removed: {left.problem}")
    run_id, manifest = manifest.run_id, replace(manifest, rule=rule)
    take_over(manifest, directory, host)
    directory.summary.unlink(missing_ok=True)  # it would not hold for what is added
    try:
        finished = finished_trials(directory, manifest)
    except DAMAGE as error:
        raise BadInput(f"{directory.path} is damaged: {type(error).__name__}: {error}") from error
    return experiment, Earlier(directory, manifest, run_id, finished)


def workload_of(word: str, manifest: Manifest, written: Written, native: Native) -> Workload:
    """The workload of a run with the name `word`. Raises BadInput if its kind now makes a different one."""
    kept = manifest.workload
    workload: Workload = Made(Graph(dict(kept.graph)), called=kept.name, sources=kept.sources)
    if kept.kind != workload.kind:
        workload = _same(word, kept.kind, validate(written), native, workload)
    return workload


def _search(document: Document, asked: BreakingPoint, native: Native, workload: Workload) -> SearchPlan:
    """The search that a document asks for. Raises BadInput."""
    from perflab.design import breaking_point  # scipy takes a second to import, and other experiments do not need it

    path = asked.factor
    observers = design.observers(document)
    if apart := [o.name for o in observers if o.extra]:
        raise BadInput(f"--observer {apart[0]} gets its own trials, but a search has none; use {apart[0]}:trials=all")
    figures = key_figures.kinds(key_figures.declared(workload.graph.document))
    goal = breaking_point.goal_of_document(
        document, asked, machine_cpus(Host().facts()), figures, {o.name for o in observers}
    )

    def at_level(level: Scalar) -> list[Treatment]:
        # A level of the workload itself makes baselines, unless the search has conditions.
        changes = {"factors": {**document.factors, path: [level]}, "observer_control": False}
        of_level = document.model_copy(update={**changes, "baseline": not document.conditions})
        variants = _variants(Written({}), of_level, native, workload)
        return design.treatments(of_level, variants, workload, _variant_of(workload, native))

    for option, level in (("--low", goal.space.low), ("--high", goal.space.high)):
        try:
            made = at_level(goal.level(level))
        except BadInput as error:
            raise BadInput(f"{option} {goal.level(level)}: {error}") from error
        if other := next((t.variant.words for t in made if path not in t.factors), None):
            raise BadInput(f"--factor {path} does not affect {other}; search only on what it affects")
    return SearchPlan(goal, functools.cache(at_level), len(made))


def _same(word: str, kind: str, document: Document, native: Native, before: Workload) -> Workload:
    """The workload of a resumed run, made again from its parameters. Raises BadInput if it has changed."""
    if isinstance(document.workload, list):
        raise BadInput(f"run {word!r} is damaged: its workload is of kind {kind!r}, but its experiment names a graph")
    now = _load(Written({}), document, native)
    for source, again in zip_longest(before.sources, now.sources):
        if source != again:
            changed = (source or again).path
            raise BadInput(f"run {word!r} cannot be resumed: {changed} has changed; run it again")
    if now.graph != before.graph:
        raise BadInput(f"run {word!r} cannot be resumed: this version of perflab generates another graph; run it again")
    return now


def _load(written: Written, document: Document, native: Native) -> Workload:
    words = document.workload
    if isinstance(words, CommandParameters):
        return load_command(words)
    if isinstance(words, GeneratedParameters):
        _check_alone(written.mapping.get("workload"), words.name)
        return generated.load(words, document.message_path)
    return load(words, native, document.message_path)


def _check_alone(asked: Any, name: str) -> None:
    """Whether the name of a generated workload is also that of a graph. Raises BadInput."""
    if asked not in (name, [name]):
        return
    there = next((entry.path for entry in catalog.topologies() if entry.name == name), Path(name))
    if there.is_file():
        path = there if there.is_absolute() else f"./{there}"
        raise BadInput(
            f"workload {name!r} is both a generated one and the file {path}; write {path} for the file, "
            f"{name}:key=value for the other"
        )


def _variant_of(workload: Workload, native: Native) -> Callable[[Variant, Mapping[str, Scalar]], Variant]:
    """A variant at levels of the workload's factors: some workloads leave no choice."""
    middleware = functools.cache(lambda name: select(name, (), native)[0])

    def pinned(variant: Variant, levels: Mapping[str, Scalar]) -> Variant:
        pins = workload.at(levels).pins
        if pins.executor is not None and variant.executor is not None:  # None: as in the graph, which is the same
            variant = replace(variant, executor=Executor(pins.executor))
        if pins.middleware is not None and variant.middleware_name != pins.middleware:
            variant = replace(variant, middlewares=middleware(pins.middleware), service_framing=None)
        return variant

    return pinned


def _check_pins(written: Written, document: Document, workload: Workload) -> None:
    """Checks that each named variant would run at some level. Raises BadInput."""
    factors = document.factors
    if document.breaking_point is not None:
        factors = {**factors, document.breaking_point.factor: [document.breaking_point.low]}
    levels = design.workload_levels(document.model_copy(update={"factors": factors}))
    with written.at("factors"):
        pins = [workload.at(chosen).pins for chosen in levels]
    for key, named in (("executor", document.executors), ("middleware", document.middlewares)):
        demanded = [getattr(p, key) for p in pins]
        for word in named if f"{key}s" in written.mapping else ():
            with written.at(f"{key}s"):
                if None not in demanded and word not in demanded:
                    raise BadInput(f"--{key} {word}: {pins[0].why}; leave it out")
    if "time" in written.mapping and (fixed := next((p for p in pins if p.duration_ns is not None), None)) is not None:
        with written.at("time"):
            raise BadInput(f"--time {format_duration(document.time / NS_PER_S)}: {fixed.why}; leave it out")


def _check_variants(
    written: Written, document: Document, loaded: Workload, variants: Sequence[tuple[Variant, Mapping[str, Scalar]]]
) -> None:
    """Checks that the workload can run in all of these ways. Raises BadInput."""
    _check_pins(written, document, loaded)
    with written.at("executors"):
        _check_executors(variants)
    with written.at("serialization"):
        _check_messages(document, loaded.graph, variants)
    _check_keys(document, loaded.graph, variants)


def _check_executors(variants: Sequence[tuple[Variant, Mapping[str, Scalar]]]) -> None:
    """Checks that each middleware has each executor: every combination of them runs. Raises BadInput."""
    for variant, _ in variants:
        executor = variant.executor
        lacking = next((m.name for m in variant.middlewares if m.runtime != ROS), None)
        if executor is not None and executor.kind in OF_ROS and lacking is not None:
            others = {v.middleware_name for v, _ in variants if all(m.runtime == ROS for m in v.middlewares)}
            apart = f"with --middleware {','.join(sorted(others)) or 'rclcpp'} alone"
            raise BadInput(
                f"--executor {executor.name} is rclcpp's, and every executor runs on every listed middleware: "
                f"{lacking} has no such executor; leave it out here, and run it {apart}; perflab compare shows both"
            )


def _check_messages(document: Document, graph: Graph, variants: Sequence[tuple[Variant, Mapping[str, Scalar]]]) -> None:
    """Checks that each runtime can send the graph's messages in the requested way. Raises BadInput."""
    factor = f"{factors.WORKLOAD}.{factors.SERIALIZATION}"
    asked = {document.serialization, graph.document.get(factors.SERIALIZATION), *document.factors.get(factor, ())}
    for variant, _ in variants:
        runtimes = {m.runtime for m in variant.middlewares}
        if "virtual" in runtimes and "every" in asked:
            raise BadInput("serialization every: virtual time does not pass while a message is encoded; use once")
        if ROS in runtimes and "once" in asked and variant.intra_process:
            raise BadInput(
                "serialization once: rclcpp delivers no encoded message within a process; use every, or --ipc off"
            )


def _check_keys(document: Document, graph: Graph, variants: Sequence[tuple[Variant, Mapping[str, Scalar]]]) -> None:
    """Checks that each middleware supports keyed topics, if they are requested. Raises BadInput."""
    levels = document.factors.get(f"{factors.WORKLOAD}.{factors.KEYED}", [graph.document.get(factors.KEYED, False)])
    if not any(map(factors.is_keyed, levels)):
        return
    for variant, _ in variants:
        lacking = next((m.name for m in variant.middlewares if not m.instances), None)
        if lacking is not None:
            raise BadInput(f"{factors.KEYED}: {lacking} has no instances, so it cannot use keys; leave either out")


def _check_policies(treatments: Iterable[Treatment]) -> None:
    """Checks that each middleware supports the QoS of the graph, according to its declaration. Raises Unavailable."""
    for treatment in treatments:
        middlewares = treatment.variant.middlewares  # one for all processes, or one for each
        for process, middleware in zip(treatment.graph.document["processes"], cycle(middlewares)):
            for end in (e for node in process["nodes"] for e in (*node["publishers"], *node["subscriptions"])):
                if (why := middleware.refusal(end["qos"])) is not None:
                    raise Unavailable(f"topic {end['topic']}: {why}")


def _check_filters(treatments: Iterable[Treatment]) -> None:
    """Checks that each middleware supports content filters, if subscriptions of the graph have one. Raises
    Unavailable."""
    for treatment in treatments:
        middlewares = treatment.variant.middlewares
        for process, middleware in zip(treatment.graph.document["processes"], cycle(middlewares)):
            filtered = [s for node in process["nodes"] for s in node["subscriptions"] if "filter" in s]
            if filtered and not middleware.filters:
                raise Unavailable(
                    f"topic {filtered[0]['topic']}: {middleware.name} has no content filters; leave the filter "
                    "out, or use a middleware with filters, like cyclonedds or fastdds"
                )
            if filtered and treatment.variant.intra_process:
                raise Unavailable(
                    f"topic {filtered[0]['topic']}: delivery within the process has no content filters; use --ipc off, "
                    "or leave the filter out"
                )


# Options that apply only to a graph or its processes.
_OF_GRAPHS = (
    "executors", "ipc", "pass_by", "service_framing", "threads", "assignments", "lock_memory", "name_threads",
    "measure", "thresholds", "message_path", "serialization",
)  # fmt: skip


def _check_of_command(written: Written, document: Document, command: CommandParameters) -> None:
    """Rejects options that do not apply to a command. Raises BadInput."""
    for key in _OF_GRAPHS:
        if key in written.mapping:
            raise written.refuse(
                key, ": applies to graphs, whose nodes perflab runs itself; this workload is a command"
            )
    variables = [command.environment, *(one.environment for one in command.commands.values())]
    if any(DOMAIN in own for own in variables) or f"{ENVIRONMENT}{DOMAIN}" in document.factors:
        where = written.where(("workload", "environment"))
        raise BadInput(f"{where}: perflab sets {DOMAIN}: each trial has its own domain")
    if "middlewares" in written.mapping and not design.adds_nodes(document):
        raise written.refuse(
            "middlewares", ": a command brings its own middleware, and no condition here adds nodes that need one"
        )
    if len(document.middlewares) > 1 or "+" in document.middlewares[0]:
        raise written.refuse(
            "middlewares", ": a command brings its own middleware; name one for the nodes that conditions add"
        )


def _own_middleware(command: Command) -> str:
    return command.parameters.environment.get(RMW) or os.environ.get(RMW) or OWN


def _settings(written: Written, document: Document) -> Settings:
    sampling_ns = document.sampling
    if "sampling" not in written.mapping:
        sampling_ns = max(MIN_SAMPLING_NS, min(sampling_ns, document.time or sampling_ns))
    elif sampling_ns > document.time > 0:
        longer = f" {format_time(sampling_ns)} is longer than the measured {format_time(document.time)}"
        raise written.refuse("sampling", longer)
    elif sampling_ns < MIN_SAMPLING_NS:
        raise written.refuse(
            "sampling", f" {format_time(sampling_ns)} is shorter than the 10 ms that sampling may take"
        )
    for name in document.measure:
        if name not in FIGURES:
            raise written.refuse("measure", f" {name!r} is not a figure; choose from {', '.join(FIGURES)}")
    known = [name for _, name in socket.if_nameindex()]
    if document.network not in known:
        error = BadInput(f"no network interface {document.network!r}; choose from {', '.join(known)}")
        raise written.complain(("network",), error)
    return Settings(
        duration_ns=document.time,
        warmup_ns=document.warmup,
        sampling_ns=sampling_ns,
        discovery_timeout_ns=document.discovery_timeout,
        measure=tuple(dict.fromkeys(document.measure)),
        lock_memory=document.lock_memory,
        name_threads=document.name_threads,
        network=document.network,
        seed=document.seed,
        thresholds=document.thresholds,
        limits=Limits(drain_quiet_ns=document.drain_quiet, drain_limit_ns=document.drain_limit),
        quiet_limit_ns=document.cool_down.limit,
        quiet_threshold=document.cool_down.threshold,
    )


def _variants(
    written: Written,
    document: Document,
    native: Native,
    workload: Workload,
) -> list[tuple[Variant, Mapping[str, Scalar]]]:
    """All combinations of the named variants and the levels of middleware options, with these levels."""
    with written.at("executors"):
        executors = parse_executors(",".join(document.executors) or None)
    with written.at("ipc"):
        ipc = parse_ipc(",".join(document.ipc))
    with written.at("pass_by"):
        pass_by = parse_pass_by(",".join(document.pass_by) or None)
    with written.at("service_framing"):
        framing = parse_framing(document.service_framing)
    # The middleware of a command; it needs none of perflab's unless a condition adds nodes.
    own = None if workload.command is None else _own_middleware(workload.command)
    levels = design.option_levels(document.factors, MIDDLEWARES)
    names = ",".join(document.middlewares)
    found: dict[tuple[object, ...], tuple[Variant, Mapping[str, Scalar]]] = {}
    for combination in product(*levels.values()):
        chosen = dict(zip(levels, combination, strict=True))
        options = {**document.middleware_options, **{_option(k): v for k, v in chosen.items()}}
        listed = [f"{key}={_text(value)}" for key, value in options.items()]
        middlewares: list[tuple[Middleware, ...]] = [(Middleware(OWN, "dds", None, None),)]
        if own is None or design.adds_nodes(document):
            with written.at("middlewares"):
                middlewares = select(names, listed, native)
        for made in product_of(middlewares, executors, ipc, pass_by, framing, workload.graph.serving):
            variant = replace(made, own_middleware=own)
            mine = design.option_levels(chosen, (m.kind for m in variant.middlewares))
            found.setdefault(variant.key, (variant, mine))
    return list(found.values())


def _option(path: str) -> str:
    return path.removeprefix(f"{factors.MIDDLEWARE}.")


def _text(value: Scalar) -> str:
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)


def _check_clear(experiment: Experiment, written: Written) -> None:
    """Checks that an outcome can become clear, if that is requested."""
    document = experiment.document
    if document.until_clear is None:
        return
    if experiment.search is not None or experiment.rule is not None:
        other = "a search" if experiment.search is not None else "until_decided"
        raise written.refuse("until_clear", f": {other} decides itself how many trials there are")
    if document.until_clear < document.trials:
        raise written.refuse(
            "until_clear", f" is an upper limit, but there are {document.trials} trials of each anyway"
        )


def _check_programs(experiment: Experiment) -> None:
    """A program has its own threads, and needs real time."""
    for process, program in experiment.workload.graph.programs.items():
        for variant in experiment.variants:
            for middleware in variant.middlewares:
                if variant.runtime != "virtual" and middleware.across_processes:
                    continue
                why = "has no real time" if variant.runtime == "virtual" else "calls within the publishing thread"
                raise BadInput(
                    f"--middleware {middleware.name} {why}, but {process} of {experiment.workload.name} is a "
                    f"program, {program}; use another middleware"
                )


def _check_outside(experiment: Experiment) -> None:
    """Processes that are not perflab's use DDS, as ROS 2 does; those that already run use a known domain."""
    for treatment in experiment.treatments:
        there = [name for name in treatment.graph.outside if name not in treatment.graph.started_outside]
        if there and experiment.document.domain is None:
            raise BadInput(
                f"{there[0]} of {experiment.workload.name} already runs, but each trial would have its own "
                "domain; name its domain with --domain"
            )
        for middleware in treatment.variant.middlewares:
            if treatment.graph.outside and middleware.wire != cyclonedds.KIND.wire:
                raise BadInput(
                    f"--middleware {middleware.name} cannot communicate with "
                    f"{next(iter(treatment.graph.outside))} of {experiment.workload.name}, which is not "
                    "perflab's; use cyclonedds, fastdds or rclcpp"
                )


def _check_effect(experiment: Experiment, written: Written) -> None:
    """Checks that delivery within a process, and ways to pass messages there, have an effect in at least one trial.
    Beside loans, any other way serves for comparison: copies."""
    name, treatments = experiment.workload.name, experiment.treatments
    local = [t for t in treatments if t.with_conditions.within_a_process]
    delivering = [t for t in local if t.variant.intra_process]
    if not delivering and any(t.variant.intra_process for t in treatments):
        with written.at("ipc"):
            raise BadInput(
                f"--ipc on has no effect: no topic, service or action of {name} has both ends in one process; "
                "leave it out"
            )
    loans = any(t.variant.pass_by not in (None, *WITHIN) for t in treatments)
    for passing in () if loans else WITHIN:
        asked = [t for t in treatments if t.variant.pass_by == passing]
        effective = [t for t in asked if t in delivering or any(m.runtime == ROS for m in t.variant.middlewares)]
        if asked and not effective:
            right = "leave it out, or add --ipc on" if any(t in local for t in asked) else "leave it out"
            with written.at("pass_by"):
                raise BadInput(
                    f"--pass-by {passing} has no effect: no message of {name} is delivered within a process; {right}"
                )


def _check_endless(experiment: Experiment, written: Written) -> None:
    """Without a duration, a person stops one trial at a time of their choice."""
    if all(experiment.settings.pinned(t.pins).duration_ns for t in experiment.treatments):
        return
    if any(v.runtime == "virtual" for v in experiment.variants):
        raise written.refuse("time", " 0 runs until it is stopped, but virtual time does not wait for anybody")
    for condition in (c for t in experiment.treatments for c in t.conditions if c.changes_peers):
        raise written.refuse("time", f" 0 has no end, but {condition.label} comes at a share of the measured part")
    one = "runs one trial until it is stopped"
    if experiment.search is not None:
        raise written.refuse("time", f" 0 {one}; a search needs many equal trials")
    adding = (
        "until_decided" if experiment.rule is not None else "until_clear" if experiment.document.until_clear else ""
    )
    if (count := len(experiment.order)) > 1 or adding:
        more = f"this experiment has {count}" if count > 1 else f"{adding} adds more"
        raise written.refuse("time", f" 0 {one}, but {more}; use a duration, or one variant and one trial")


def _check_together(experiment: Experiment, written: Written) -> None:
    """Rejects combinations without a meaning."""
    _check_comparable(experiment)
    _check_clear(experiment, written)
    _check_endless(experiment, written)
    if experiment.document.domain is not None and all(v.runtime == "virtual" for v in experiment.variants):
        raise written.refuse("domain", ": virtual time has no DDS domains")
    graph, name = experiment.workload.graph, experiment.workload.name
    topics = {topic for treatment in experiment.treatments for topic in treatment.with_conditions.topics()}
    for middleware in {m.name: m for variant in experiment.variants for m in variant.middlewares}.values():
        disturbance.check_topic(middleware.options, topics)
    if experiment.workload.command is not None:
        _check_command_together(experiment)
        return
    if not graph.edges() and not graph.services() and experiment.workload.origin is None:
        raise BadInput(
            f"workload {name!r} has no topic with a publisher and a subscription, and no service with a client; "
            "name further files that complete it, e.g. `perflab run sierra_nevada debug_sierra_nevada_reliable`"
        )
    # Not for the treatments' graphs: slower timers are intended there.
    periods = [experiment.workload.at(t.factors).graph.shortest_period_ns for t in experiment.treatments]
    shortest_ns = max((p for p in periods if p is not None), default=None)
    if shortest_ns is None and not graph.programs:
        raise BadInput(f"workload {name!r} has no timer: nothing would ever be sent")
    durations_ns = [experiment.settings.pinned(t.pins).duration_ns for t in experiment.treatments]
    if shortest_ns is not None and shortest_ns > min(durations_ns) > 0:
        raise BadInput(
            f"{written.where(('time',))} is shorter than the shortest period of {name!r}, "
            f"{format_duration(shortest_ns / 1e9)}: nothing would be sent"
        )
    _check_activations(experiment, written)
    _check_programs(experiment)
    _check_outside(experiment)
    _check_effect(experiment, written)
    processes = len(graph.processes)
    for variant in experiment.variants:
        count = len(variant.middlewares)
        if count not in (1, processes):
            has = "1 process" if processes == 1 else f"{processes} processes"
            raise BadInput(
                f"--middleware {variant.middleware_name} names {count} of them, but {name!r} has {has}; name one "
                "for each, or one for all"
            )
        first = variant.middlewares[0]
        if processes > 1 and not first.across_processes:
            raise BadInput(f"middleware {first.name} does not connect processes, but {name!r} has {processes} of them")
        if (
            variant.intra_process
            and first.runtime != "virtual"
            and any(disturbance.is_asked_for(m.options) for m in variant.middlewares)
        ):
            raise BadInput(
                f"{disturbance.NAME}.* of middleware {first.name} with --ipc on: messages within a process would "
                "not be disturbed; use --ipc off"
            )
        if first.runtime == "virtual" and (experiment.settings.threads or experiment.settings.lock_memory):
            raise Unavailable("--thread and --lock-memory: the virtual middleware has no threads and no memory to lock")


def _check_activations(experiment: Experiment, written: Written) -> None:
    """An executor that is active less than once in the measured part would handle nothing in it."""
    for treatment in experiment.treatments:
        measured_ns = experiment.settings.pinned(treatment.pins).duration_ns
        replaced = treatment.variant.executor
        every_ns = [replaced.period_ns] if replaced is not None else treatment.with_conditions.activations_ns
        if 0 < measured_ns < (longest := max(filter(None, every_ns), default=0)):
            raise BadInput(
                f"executor {WITH_PERIOD} with a period of {format_duration(longest / NS_PER_S)} is never active "
                f"in the measured part; {written.where(('time',))} must be longer, or the period shorter"
            )


def _check_command_together(experiment: Experiment) -> None:
    if any(v.runtime == "virtual" for v in experiment.variants):
        raise BadInput(
            "--middleware virtual: a command runs on this machine, and so do the nodes that conditions add to it"
        )
