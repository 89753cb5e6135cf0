"""The design of an experiment: its treatments, and the order of their trials.

A treatment is one combination of variant, conditions, levels of factors and observers. Every block holds each treatment
once, in an order drawn from the seed, and a baseline of the same variant follows each disturbed trial: so drifts of the
machine affect all treatments alike, lasting effects of a disturbance become visible, and comparing baselines with each
other shows the noise (Montgomery, Design and Analysis of Experiments, chapter 4, on randomised complete blocks).
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Protocol, TypeVar

from pydantic import BaseModel, ValidationError, create_model

from perflab import models, qos, registry
from perflab.condition import Condition, extended
from perflab.condition.kinds import REGISTRY as CONDITIONS
from perflab.design import scheduling
from perflab.design.document import BadEntry, Document, Scalar
from perflab.design.factors import (
    FORMER_TIMER_SPEED,
    GRAPH_LEVELS,
    KEYED,
    OF_ALL,
    PHASE,
    QOS_LEVELS,
    SERIALIZATION,
    THREADS,
    TIMER_SPEED,
    WORKLOAD,
    GraphLevels,
    is_keyed,
)
from perflab.design.levels import quantity, with_unit
from perflab.design.variant import Variant
from perflab.errors import BadInput, instead
from perflab.host import Host
from perflab.middleware import REGISTRY as MIDDLEWARES
from perflab.mitigation import Mitigation, before_it, names_of
from perflab.mitigation.kinds import PARTS
from perflab.mitigation.kinds import REGISTRY as MITIGATIONS
from perflab.observer import Observer
from perflab.observer.kinds import REGISTRY as OBSERVERS
from perflab.registry import Kind
from perflab.results.files import DesignedTreatment, DesignedTrial, NotRecorded
from perflab.statistics.summary import TrialData
from perflab.workload import PERIODIC, Graph, Pins, Workload
from perflab.workload.command import ARGUMENT, ENVIRONMENT, CommandParameters
from perflab.workload.generated import GeneratedParameters

_L = TypeVar("_L")

BASELINE = "baseline"
REQUIRED = "required"  # key of an entry of `conditions` or `mitigations`, beside its name
MEASURED, CONTROL, EXTRA = "measured", "control", "extra"

# The observer that measures the messages of a command. It records no scheduler events unless asked: they cost more.
TRACING = "tracing"
TRACING_OF_COMMANDS = {"scheduler": "none", "trials": "all"}


@dataclass(frozen=True, eq=False)
class Treatment:
    """One combination. `graph` has the levels of the workload's factors, but not what the conditions add; `variant` is
    as requested. `conditions` are those that its baseline lacks, mitigations last."""

    label: str
    variant: Variant
    graph: Graph
    conditions: tuple[Condition, ...] = ()
    observers: tuple[Observer, ...] = ()
    factors: Mapping[str, Scalar] = field(default_factory=dict)
    purpose: str = MEASURED
    required: bool = True  # else it is skipped if this machine cannot run it
    pins: Pins = field(default_factory=Pins)  # the workload's demands on its trials, at these levels

    @property
    def with_conditions(self) -> Graph:
        """The graph with the conditions' additions."""
        return extended(self.graph, self.conditions)

    @property
    def disturbed(self) -> bool:
        """Whether it has a condition that is not a mitigation."""
        return any(not condition.mitigates for condition in self.conditions)

    @property
    def in_trial(self) -> Variant:
        """The variant as tuned by its mitigations. Raises BadInput, Unavailable."""
        middlewares = self.variant.middlewares
        for condition in self.conditions:
            if isinstance(condition, Mitigation):
                middlewares = condition.tuned(middlewares)
        same = middlewares == self.variant.middlewares
        return self.variant if same else replace(self.variant, middlewares=middlewares)

    def check(self, host: Host, runtime: str) -> None:
        """Checks that its conditions can run here. Raises Unavailable, BadInput."""
        for condition in self.conditions:
            graph = before_it(self.graph, self.conditions, condition) if condition.mitigates else self.graph
            condition.check(host, graph, runtime)
        _ = self.in_trial

    @property
    def key(self) -> tuple[object, ...]:
        """Trials with equal keys belong together."""
        observed = tuple(o.name for o in self.observers)
        return (*self.place, self.label, tuple(sorted(self.factors.items())), observed, self.purpose)

    @property
    def place(self) -> tuple[object, ...]:
        """What a treatment shares with its baseline: everything but the conditions and their levels."""
        return self.variant.key, tuple(sorted((k, v) for k, v in self.factors.items() if not _is_of_conditions(k)))

    @property
    def title(self) -> str:
        """The label plus the levels that it does not name: "baseline rate=5" for a workload or a middleware factor."""
        levels = (
            f"{path.rpartition('.')[2]}={_text(v)}" for path, v in self.factors.items() if not _is_of_conditions(path)
        )
        return " ".join((self.label, *levels))

    @property
    def words(self) -> str:
        """For messages to people: "cyclonedds, events, cpu_load"."""
        named = self.conditions or self.title != self.label
        return f"{self.variant.words}, {self.title}" if named else self.variant.words

    def document(self) -> dict[str, Any]:
        """The keys by which results are grouped, as in trial.json."""
        return {
            "treatment": self.label,
            "conditions": [c.name for c in self.conditions],
            "mitigations": names_of(self.conditions),
            "condition_parameters": {c.label: c.parameters for c in self.conditions},
            "factors": dict(self.factors),
            "observers": [o.name for o in self.observers],
            "purpose": self.purpose,
        }


@dataclass(frozen=True)
class _Sort:
    """Conditions or mitigations: their names in the document, on the command line and in messages, and their kinds."""

    key: str
    option: str
    what: str
    kinds: Mapping[str, Kind[Condition]]


_CONDITIONS = _Sort("conditions", "--condition", "condition", CONDITIONS)
_MITIGATIONS = _Sort("mitigations", "--mitigation", "mitigation", MITIGATIONS)
SORTS = (_CONDITIONS, _MITIGATIONS)


@dataclass(frozen=True)
class _Entry:
    """One entry of `conditions` or `mitigations`: its label, and the conditions that it names with their parameters."""

    sort: _Sort
    label: str | None
    conditions: list[tuple[str, dict[str, Any]]]
    required: bool = True

    @property
    def written(self) -> dict[str, Any]:
        """The parameters of all its conditions, as the user wrote them."""
        return {f"{name}.{key}": value for name, parameters in self.conditions for key, value in parameters.items()}


@dataclass(frozen=True)
class Planned:
    """One trial of the plan. `order` and `block` count from 1; `after` is the disturbance just before it, if any."""

    order: int
    block: int
    treatment: Treatment
    after: str | None = None


def adds_nodes(document: Document) -> bool:
    """Whether a condition adds nodes to the workload, which need a middleware."""
    named = {name for entry in _entries(document, _CONDITIONS) for name, _ in entry.conditions}
    models = [CONDITIONS[name].model for name in named if name in CONDITIONS]
    return any(issubclass(model, Condition) and model.extend is not Condition.extend for model in models)


def timer_speed(factors: Mapping[str, Any]) -> float:
    """How many times as often as in the workload's graph timers fired in a trial with these levels."""
    former = factors.get(f"{WORKLOAD}.{FORMER_TIMER_SPEED}", 1)
    return float(factors.get(f"{WORKLOAD}.{TIMER_SPEED}", former))


def _as_asked(variant: Variant, _: Mapping[str, Scalar]) -> Variant:
    return variant


def treatments(
    document: Document,
    variants: Sequence[tuple[Variant, Mapping[str, Scalar]]],
    workload: Workload,
    variant_of: Callable[[Variant, Mapping[str, Scalar]], Variant] = _as_asked,
) -> list[Treatment]:
    """Every treatment of a block, the baseline of each variant first, after this module's checks.

    Raises BadInput. The observer that measures the messages of a command also runs in its controls.

    `variants` come with the levels of the middleware factors that they were made from. `variant_of` adapts a variant to
    levels of the workload's factors; treatments that become equal are kept once.
    """
    settings, helping = (_settings(document, sort) for sort in SORTS)
    undisturbed = {path: level for _, conditions, own, _ in settings if not conditions for path, level in own.items()}
    settings = [s for s in settings if s[1]]
    if document.baseline:
        settings.insert(0, (BASELINE, (), undisturbed, True))
    elif undisturbed:
        named = ", ".join(f"{path}={_text(level)}" for path, level in undisturbed.items())
        raise BadInput(f"{named} is the baseline, which is off; leave out that level, or turn baseline on")
    # Every setting with and without each mitigation, to show its benefit and its cost alone.
    settings = [each for setting in settings for each in (setting, *(_helped(setting, h) for h in helping))]
    _check_labels(settings)
    observed = observers(document)
    always = tuple(o for o in observed if not o.extra)
    measuring = tuple(o for o in always if o.name == TRACING) if workload.command is not None else ()
    found: list[Treatment] = []
    for (asked, chosen), (levels, changed, pins) in product(variants, _graphs(document, workload)):
        variant = variant_of(asked, levels)
        # Middleware options that the workload replaces do not distinguish treatments.
        shared = {**levels, **(chosen if variant.middlewares == asked.middlewares else {})}
        for label, conditions, own, required in settings:
            levels_of = {**shared, **own}
            found.append(Treatment(label, variant, changed, conditions, always, levels_of, MEASURED, required, pins))
        if always != measuring and document.observer_control and document.trials > 1:
            found.append(Treatment(BASELINE, variant, changed, (), measuring, shared, CONTROL, pins=pins))
    once: dict[tuple[object, ...], Treatment] = {}
    for treatment in found:
        once.setdefault(treatment.key, treatment)
    return list(once.values())


_Setting = tuple[str, tuple[Condition, ...], dict[str, Scalar], bool]  # label, conditions, levels, required


def _settings(document: Document, sort: _Sort) -> list[_Setting]:
    """Each entry at every combination of the levels that affect it. Raises BadInput."""
    factors = {k: v for k, v in document.factors.items() if k.partition(".")[0] in sort.kinds}
    found = [(*s, entry.required) for entry in _named(_entries(document, sort)) for s in _levels(entry, factors)]
    # A mitigation at a level that disables it does not count.
    return found if sort is _CONDITIONS else [setting for setting in found if setting[1]]


def _helped(setting: _Setting, by: _Setting) -> _Setting:
    """A setting with a mitigation: "flood + throttle"."""
    label, conditions, levels, required = setting
    name = by[0] if not conditions else f"{label} + {by[0]}"
    return name, (*conditions, *by[1]), {**levels, **by[2]}, required and by[3]


def _check_labels(settings: Sequence[_Setting]) -> None:
    """A mitigation alone keeps its own name, so a condition must not have the same name. Raises BadInput."""
    known: dict[str, list[str]] = {}
    for label, conditions, _, _ in settings:
        names = [condition.name for condition in conditions]
        if known.setdefault(label, names) != names:
            both = f"{' + '.join(known[label])} and {' + '.join(names)}"
            raise BadInput(f"mitigations: {label!r} would be the name of two treatments, {both}; change a `name`")


def extras(document: Document, measured: Iterable[Treatment]) -> list[Treatment]:
    """One treatment for each measured setting, and for each observer that disturbs too much to run always."""
    found: list[Treatment] = []
    kept = [t for t in measured if t.purpose == MEASURED]
    for observer in (o for o in observers(document) if o.extra):
        found += [replace(t, observers=(*t.observers, observer), purpose=EXTRA) for t in kept]
    return found


def plan(document: Document, found: Sequence[Treatment], extra: Sequence[Treatment] = ()) -> list[Planned]:
    """The trials in their order, which depends only on the document."""
    generator = random.Random(document.seed)
    planned: list[Planned] = []
    for block in range(1, document.trials + 1):
        planned += _behind(planned, block, _in_block(document, found, generator))
    return planned + _behind(planned, 1, extra)


def further_block(
    document: Document, found: Sequence[Treatment], before: Sequence[Planned], only: Sequence[Treatment] | None = None
) -> list[Planned]:
    """One more block after the existing ones, of all treatments or some, which depends only on the document."""
    block = max(planned.block for planned in before) + 1
    whole = _in_block(document, found, random.Random(f"{document.seed}, block {block}"))
    return _behind(before, block, [t for t in whole if only is None or any(t is one for one in only)])


def _in_block(document: Document, found: Sequence[Treatment], generator: random.Random) -> list[Treatment]:
    baselines = {t.place: t for t in found if not t.conditions and t.purpose == MEASURED}
    again = document.baseline_again and document.baseline
    order = list(found)
    if document.order == "randomised":
        generator.shuffle(order)
    followed = ([t, baselines[t.place]] if t.disturbed and again else [t] for t in order)
    return [treatment for each in followed for treatment in each]


def _behind(planned: Sequence[Planned], block: int, treatments: Sequence[Treatment]) -> list[Planned]:
    """Appends these trials to the existing ones."""
    before = [planned[-1].treatment] if planned else []
    disturbed = [t.label if t.disturbed else None for t in (*before, *treatments)]
    after = disturbed if before else [None, *disturbed]
    return [
        Planned(len(planned) + number, block, treatment, left)
        for number, (treatment, left) in enumerate(zip(treatments, after, strict=False), 1)
    ]


def designed(treatment: Treatment) -> DesignedTreatment:
    """As stored in the manifest."""
    asked = {**treatment.variant.document(), **treatment.document()}
    return models.read(DesignedTreatment, {"middleware": treatment.variant.middleware_name, **asked})


def planned_trials(order: Iterable[Planned], seed: int) -> tuple[DesignedTrial, ...]:
    """A plan in the manifest; `seed` is that of the first block."""
    return tuple(
        DesignedTrial(
            **models.shared(DesignedTreatment, designed(planned.treatment)),
            order=planned.order,
            block=planned.block,
            after=planned.after,
            seed=seed + planned.block - 1,
        )
        for planned in order
    )


class Course(Protocol):
    """Chooses the next trial of a run: as planned, or by a search that learns from the trials so far.

    `next` returns a trial, `tell` reports its end, and so on. It depends only on the reported trials and on seeds, so
    that replaying the trials of an interrupted run continues where that run stopped.
    """

    @property
    def most(self) -> int:
        """The number of trials, or an upper bound."""
        ...

    def next(self) -> Planned | None:
        """The trial to run now; None if there are no more. Repeated calls return the same trial."""
        ...

    def ended(self, planned: Planned, data: TrialData) -> None:
        """Reports the end of the trial returned by `next`."""
        ...


class AsPlanned:
    """Every trial of a plan, in its order."""

    def __init__(self, order: Sequence[Planned]) -> None:
        self._order = order
        self._over = 0

    @property
    def most(self) -> int:
        return len(self._order)

    def next(self) -> Planned | None:
        return self._order[self._over] if self._over < len(self._order) else None

    def ended(self, planned: Planned, data: TrialData) -> None:
        self._over += 1


def option_levels(chosen: Mapping[str, _L], known: Iterable[str]) -> dict[str, _L]:
    """Factors chosen by path; options of middlewares: "middleware.OPTION", "NAME.OPTION", "disturb.OPTION"."""
    names = {*OF_ALL, *known}
    return {k: v for k, v in chosen.items() if k.partition(".")[0] in names}


def _is_of_conditions(path: str) -> bool:
    return path.partition(".")[0] in PARTS


def _entries(document: Document, sort: _Sort) -> list[_Entry]:
    """The entries of `conditions` or `mitigations`. Raises BadInput."""
    return [_parse_entry(entry, number, sort) for number, entry in enumerate(getattr(document, sort.key))]


def _parse_entry(entry: Any, number: int, sort: _Sort) -> _Entry:
    """One entry of `conditions` or `mitigations`."""
    where = f"{sort.key}, entry {number + 1}"
    if isinstance(entry, str):
        return _Entry(sort, None, [registry.split(word.strip(), sort.option) for word in entry.split("+")])
    if not isinstance(entry, Mapping):
        raise BadInput(f"{where}: {entry!r} is neither a {sort.what} nor a mapping of {sort.key}")
    members = dict(entry)
    label = members.pop("name", None)
    if label is not None and (not isinstance(label, str) or not label.strip() or label.strip() == BASELINE):
        raise BadInput(f"{where}: {label!r} is not a valid name for a treatment")
    required = members.pop(REQUIRED, True)
    if required not in (True, False, "on", "off"):
        raise BadInput(f"{where}: {REQUIRED}: {required!r} is not on or off")
    listed = _members(members, where)
    if not listed:
        raise BadInput(f"{where} names no {sort.what}")
    return _Entry(sort, None if label is None else label.strip(), listed, required in (True, "on"))


def _members(members: Mapping[Any, Any], where: str) -> list[tuple[str, dict[str, Any]]]:
    """The kinds of a mapping with their parameters; a list names kinds without parameters. Raises BadInput."""
    listed: list[tuple[str, dict[str, Any]]] = []
    for name, parameters in members.items():
        for one in parameters if isinstance(parameters, list) else [parameters]:
            if one is not None and not isinstance(one, Mapping):
                raise BadInput(f"{where}: {name}: {one!r} is not a mapping of parameters")
            listed.append((str(name), dict(one or {})))
    return listed


def check_baseline(document: Document) -> None:
    """Checks that there is a treatment. Raises BadInput."""
    if not document.baseline and not document.conditions:
        raise BadInput("baseline is off and there is no condition: nothing to run")


def check_entry(document: Document, key: str, number: int) -> None:
    """One entry of `conditions` or `mitigations` alone, so that an error is reported at its place. Raises BadInput."""
    sort = next(sort for sort in SORTS if sort.key == key)
    entry = _parse_entry(getattr(document, key)[number], number, sort)
    of_entry = {k: v for k, v in document.factors.items() if _is_of_conditions(k) and _is_parameter(k)}
    _levels(entry, of_entry)


def check_factors(document: Document) -> None:
    """Checks that each factor refers to something that exists, and has levels. Raises BadInput."""
    used = {name for sort in SORTS for entry in _entries(document, sort) for name, _ in entry.conditions}
    for path, levels in document.factors.items():
        name, _, key = path.partition(".")
        if name == WORKLOAD:
            _check_of_workload(path, levels, document)
        elif name in PARTS:
            if name not in used:
                sort = next(sort for sort in SORTS if name in sort.kinds)
                raise BadInput(f"factor {path}: no treatment has the {sort.what} {name}; name it in `{sort.key}`")
            if not _is_parameter(path):
                hint = instead(key, PARTS[name].fields, most=2)
                raise BadInput(f"factor {path}: {name} has no parameter {key!r}; {hint}")
        elif name not in (*OF_ALL, *MIDDLEWARES) or not key:
            kinds = (WORKLOAD, *OF_ALL, *PARTS, *MIDDLEWARES)
            example = f"e.g. {WORKLOAD}.depth, cpu_load.load"
            hint = example if name in kinds else instead(name, kinds, example)
            raise BadInput(f"factor {path} is not CONDITION.PARAMETER, {WORKLOAD}.KEY or MIDDLEWARE.OPTION; {hint}")
        if not levels:
            raise BadInput(f"factor {path}: there must be at least one level")
        meanings = [_meaning(path, level, document.workload) for level in levels]
        for number, level in enumerate(levels):
            if (first := meanings.index(meanings[number])) < number:
                same = "" if _text(levels[first]) == _text(level) else f", once as {levels[first]!r}"
                raise BadEntry(("factors", path, number), f"factor {path}: level {level!r} is given twice{same}")


def is_whole(path: str, low: Scalar, high: Scalar, workload: object = None) -> bool:
    """Whether a factor takes only whole numbers between these two levels. Raises BadInput for an unknown factor.

    `workload` is the document's; a generated one has parameters.

    For a middleware option or a word of a command the type is unknown: whole numbers are assumed if both ends are
    written as such and there is one between them.
    """
    if path == f"{WORKLOAD}.{FORMER_TIMER_SPEED}":
        return False
    (first, unit), (last, _) = quantity(low), quantity(high)
    if _model_of(path, workload) is not None:
        try:
            _meaning(path, with_unit(first + 0.553 * (last - first), unit), workload)
        except BadInput:
            return True
        return False
    return isinstance(low, int) and isinstance(high, int) and high - low > 1


def _model_of(path: str, workload: object) -> type[BaseModel] | None:
    """The model that has the factor as a parameter; None for other factors, such as middleware options."""
    name, _, key = path.partition(".")
    if name in PARTS:
        return PARTS[name].model
    models = (workload.model, GraphLevels) if isinstance(workload, GeneratedParameters) else (GraphLevels,)
    return next((model for model in models if name == WORKLOAD and key in model.model_fields), None)


def _meaning(path: str, level: Scalar, workload: object = None) -> object:
    """A common value for levels that mean the same: 20, 20.0 and "20", or "10ms" and 0.01 for a duration."""
    name, _, key = path.partition(".")
    if name in PARTS and PARTS[name].is_off({key: level}):
        return BASELINE
    if (of := _model_of(path, workload)) is not None:
        field = of.model_fields.get(key)
        fields: dict[str, Any] = {} if field is None else {key: (field.annotation, field)}
        # A parameter that is not a field can only be judged by the whole model.
        model = create_model("Level", __config__=of.model_config, **fields) if fields else of
        try:
            made = model.model_validate({key: level})
            return getattr(made, key) if fields else (made.model_extra or {})[key]
        except ValidationError as error:
            said = registry.in_words(error, model)
            text = said.removeprefix(f"{key}: ") if of is GraphLevels else said
            raise BadInput(f"factor {path}: {text}") from error
    try:
        return float(level) if not isinstance(level, bool) else _text(level)
    except ValueError:
        return level


def _is_parameter(path: str) -> bool:
    """Checks that the factor's condition has this parameter."""
    name, _, key = path.partition(".")
    return bool(key) and PARTS[name].takes(key)


def _check_of_workload(path: str, levels: Sequence[Scalar], document: Document) -> None:
    """Checks that a factor is a parameter of the workload's kind, or can be set in its graph or command. Raises
    BadInput."""
    key, workload, command = path.partition(".")[2], document.workload, document.command
    own = workload.model.model_fields if isinstance(workload, GeneratedParameters) else {}
    if command is not None and key not in own and (not own or path.startswith((ENVIRONMENT, ARGUMENT))):
        _check_of_command(path, levels, command)
    elif key not in (known := dict.fromkeys((*own, *(GRAPH_LEVELS if command is None else ())))):
        if key == FORMER_TIMER_SPEED:
            raise BadInput(f"factor {path} is now called {WORKLOAD}.{TIMER_SPEED}: how many times as often timers fire")
        if isinstance(workload, GeneratedParameters):
            hint = instead(key, known, most=2)
            raise BadInput(f"factor {path}: workload {workload.name} has no parameter {key!r}; {hint}")
        known_paths = ", ".join(f"{WORKLOAD}.{k}" for k in GRAPH_LEVELS if k not in QOS_LEVELS)
        raise BadInput(f"factor {path}: factors of a workload are {WORKLOAD}.depth and all other QoS, {known_paths}")


def _check_of_command(path: str, levels: Sequence[Scalar], command: CommandParameters) -> None:
    name = path.removeprefix(ARGUMENT).removeprefix(ENVIRONMENT)
    if not path.startswith((ENVIRONMENT, ARGUMENT)) or not name:
        raise BadInput(
            f"factor {path}: factors of a command are {ENVIRONMENT}NAME, an environment variable, and "
            f"{ARGUMENT}NAME, which replaces {{NAME}} in its words"
        )
    if path.startswith(ARGUMENT) and not any(f"{{{name}}}" in word for word in command.words):
        raise BadInput(f"factor {path}: no word of the command contains {{{name}}}; write it where the level belongs")
    if "=" in name or "\0" in name:
        raise BadInput(f"factor {path}: {name!r} is not a valid variable name")
    for level in levels:
        if isinstance(level, bool) or "\0" in str(level):
            raise BadInput(f"factor {path}: {level!r} is not text; put it in quotes")


def _levels(
    entry: _Entry, factors: Mapping[str, Sequence[Scalar]]
) -> list[tuple[str, tuple[Condition, ...], dict[str, Scalar]]]:
    """One entry at every combination of the levels that affect it."""
    names = {name for name, _ in entry.conditions}
    mine = {path: levels for path, levels in factors.items() if path.partition(".")[0] in names}
    found = []
    for levels in product(*mine.values()):
        chosen = dict(zip(mine, levels, strict=True))
        made: list[Condition] = []
        for name, parameters in entry.conditions:
            of_this = {p.partition(".")[2]: v for p, v in chosen.items() if p.partition(".")[0] == name}
            # A level of zero effect removes the condition; without any condition left, the treatment is the baseline.
            kinds, what = entry.sort.kinds, entry.sort.what
            if any(kinds[name].is_off({**parameters, key: level}) for key, level in of_this.items()):
                continue
            made.append(registry.make(name, {**parameters, **of_this}, what, kinds, f"{what} {name}"))
        made = [c.numbered(1 + sum(b.name == c.name for b in made[:number])) for number, c in enumerate(made)]
        words = " ".join(f"{path.partition('.')[2]}={_text(level)}" for path, level in chosen.items())
        base = str(entry.label)
        found.append((f"{base} {words}" if words else base, tuple(made), chosen))
    return found


def _named(entries: Sequence[_Entry]) -> list[_Entry]:
    """Gives each entry a label; entries that would have equal labels get the parameters in which they differ."""
    names = [entry.label or "+".join(name for name, _ in entry.conditions) for entry in entries]
    labels = []
    for entry, name in zip(entries, names, strict=True):
        alike = [e for e, other in zip(entries, names, strict=True) if other == name]
        labels.append(f"{name} {_difference(entry, alike)}".rstrip() if len(alike) > 1 else name)
    for number, (label, entry) in enumerate(zip(labels, entries, strict=True)):
        if label in labels[:number]:
            raise BadEntry(
                (entry.sort.key, number),
                f"{entry.sort.key}: {label} is there twice; use `trials` to repeat it, or give it another `name`",
            )
    return [replace(entry, label=label) for label, entry in zip(labels, entries, strict=True)]


def _difference(entry: _Entry, alike: Sequence[_Entry]) -> str:
    """The fewest parameters, in written order, that distinguish the entry from the others."""
    own = entry.written
    others = [e.written for e in alike if e is not entry]
    keys = list(dict.fromkeys(key for e in alike for key in e.written))
    differing = [key for key in keys if any(other.get(key) != own.get(key) for other in others)]
    chosen: list[str] = []
    for key in differing:
        chosen.append(key)
        if all(any(other.get(k) != own.get(k) for k in chosen) for other in others):
            break
    return " ".join(f"{key.partition('.')[2]}={_text(own[key]) if key in own else 'default'}" for key in chosen)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def observers(document: Document) -> list[Observer]:
    """One of each observer that the document names. Raises BadInput."""
    made: list[Observer] = []
    for number, entry in enumerate(document.observers):
        where = f"observers, entry {number + 1}"
        asked = [registry.split(entry, "--observer")] if isinstance(entry, str) else _members(entry, where)
        for name, given in asked:
            observer = registry.make(name, given, "observer", OBSERVERS, f"observer {name}")
            if any(o.name == observer.name for o in made):
                raise BadEntry(("observers", number), f"observers: {observer.name} is there twice")
            made.append(observer)
    return _measuring(document, made)


def recordable(document: Document, host: Host, runtimes: Iterable[str]) -> tuple[Document, tuple[NotRecorded, ...]]:
    """The document with what this machine can record for its optional observers, and a list of what it cannot.

    Raises BadInput.
    """
    made: list[Observer] = []
    missing: list[NotRecorded] = []
    for asked in observers(document):
        rest: Observer | None = asked
        for runtime in runtimes if not asked.required else ():
            if rest is None:
                break
            rest, reason = rest.possible(host, runtime)
            if reason is not None:
                changed = {} if rest is None else {k: v for k, v in rest.written.items() if v != asked.written[k]}
                words = ",".join(f"{key}={value}" for key, value in changed.items())
                missing.append(NotRecorded(asked.name, reason, f"{asked.name}:{words}" if rest is not None else None))
        if rest is not None:
            made.append(rest)
    if not missing:
        return document, ()
    return document.model_copy(update={"observers": [{o.name: o.written} for o in made]}), tuple(missing)


def _measuring(document: Document, made: list[Observer]) -> list[Observer]:
    """Adds the observer that measures the messages of a command to every trial."""
    command = document.command
    named = next((o for o in made if o.name == TRACING), None)
    if command is None or (named is None and not command.tracing):
        return made
    if named is None:
        tracing = registry.make(TRACING, TRACING_OF_COMMANDS, "observer", OBSERVERS, f"observer {TRACING}")
        return [tracing, *made]
    always = named.model_copy(update={"trials": "all"}) if command.tracing else named
    return [always if o is named else o for o in made]


def workload_levels(document: Document) -> list[dict[str, Scalar]]:
    """Every combination of the levels of the workload's factors."""
    mine = {k: v for k, v in document.factors.items() if k.partition(".")[0] == WORKLOAD}
    return [dict(zip(mine, combination, strict=True)) for combination in product(*mine.values())]


def _graphs(document: Document, workload: Workload) -> list[tuple[dict[str, Scalar], Graph, Pins]]:
    """The graph at every combination of the levels of the workload's factors, with its demands at each."""
    found = []
    for chosen in workload_levels(document):
        keys = {k.partition(".")[2]: v for k, v in chosen.items()}
        levels = {k: v for k, v in keys.items() if k in GRAPH_LEVELS and k not in workload.own_factors}
        if document.serialization is not None:
            levels = {SERIALIZATION: document.serialization, **levels}
        made = workload.at(chosen)
        graph = with_levels(made.graph, levels)
        if THREADS in levels:
            graph = scheduling.assigned(graph, _assignment(document, str(levels[THREADS])))
        found.append((chosen, graph, made.pins))
    return found


def _assignment(document: Document, level: str) -> Sequence[str]:
    """The words of the assignment with this name, or the words themselves. Raises BadInput."""
    if level in document.assignments or "=" in level:
        return document.assignments.get(level) or level.split()
    known = f"there are {', '.join(document.assignments)}" if document.assignments else "there is none"
    raise BadInput(
        f"factor {WORKLOAD}.{THREADS}: no assignment is named {level!r}; {known}. Declare it in "
        "`assignments` of an experiment, or write its words, e.g. 'executors=RR:98@1 middleware=OTHER@1'"
    )


def with_levels(graph: Graph, levels: Mapping[str, Scalar]) -> Graph:
    """The graph with these levels of GRAPH_LEVELS: QoS policies on every publisher and subscription, where a depth
    implies keep_last; the phase of all timers and cyclic reactions; their speed; how often a message is encoded; and
    whether topics have keys. Raises BadInput if no timer is affected.
    """
    policies = {key: level for key, level in levels.items() if key in QOS_LEVELS}
    times, phase = float(levels.get(TIMER_SPEED, 1)), levels.get(PHASE)

    def shorter(period_ns: float) -> int:
        return max(1, round(period_ns / times))

    of_graph: dict[str, Any] = {key: levels[key] for key in (SERIALIZATION,) if key in levels}
    of_graph |= {KEYED: is_keyed(levels[KEYED])} if KEYED in levels else {}
    if not policies and times == 1 and phase is None and not of_graph:
        return graph
    document = copy.deepcopy(graph.document) | of_graph
    timed = periodic = False
    for node in (node for process in document["processes"] for node in process["nodes"]):
        for ends in (qos.PUBLISHERS, qos.SUBSCRIPTIONS) if policies else ():
            for endpoint in node[ends]:
                qos.with_levels(endpoint["qos"], policies, ends)
        for entry in (e for e in (*node["timers"], *node["reactions"]) if e["period_ns"]):
            entry["period_ns"] = shorter(entry["period_ns"])
            timed = True
            if entry.get("arrivals", PERIODIC) == PERIODIC:
                entry.update({} if phase is None else {"phase": phase})
                periodic = True
        for sender in (*node["publishers"], *node.get("clients", ()), *(node.get("action_clients") or ())):
            if sender.get("frequency_hz") and times != 1:  # which is rounded to the timer's whole nanoseconds
                sender["frequency_hz"] = 1e9 / shorter(1e9 / sender["frequency_hz"])
    if times != 1 and not timed:
        raise BadInput(f"factor {WORKLOAD}.{TIMER_SPEED}: {graph.name} has no timer with a period")
    if phase is not None and not periodic:
        raise BadInput(f"factor {WORKLOAD}.{PHASE}: {graph.name} has no periodic timer")
    return Graph(document)
