"""Experiment files: what a run shall do, as YAML or as options of the command line, checked in one place.

The options of `perflab run` have the same names and meanings as the keys of a file and replace them one by one. The
options and the file merge into one mapping, which the manifest keeps, so that a run can be resumed and repeated.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    WithJsonSchema,
)

from perflab.design import choices, levels
from perflab.errors import BadInput, instead
from perflab.middleware.installation import MARK
from perflab.option import Declared, Form, Group, Option, declared, form_of, kind_of, models_in, one_of, some_of
from perflab.parameters import IN_PERCENT, DurationNs, Percent, Switch
from perflab.validation import plain, plain_schema, what_is_wrong
from perflab.workload import Source, generated
from perflab.workload.command import CommandParameters
from perflab.workload.generated import GeneratedParameters

FIGURES = ("dispatch", "work", "loops")  # measured on request; the others always are
if TYPE_CHECKING:
    from perflab.formats.yaml_file import Location, YamlFile

MAX_TRIALS = 10_000
MAX_SEED = 2**63 - 1

Scalar = bool | int | float | str


def _listed(value: Any) -> Any:
    """One word, "a,b" or a list of words; YAML's on and off are read as words here."""
    if isinstance(value, str):
        return [word.strip() for word in value.split(",")]
    return [_word(entry) for entry in value] if isinstance(value, list | tuple) else [_word(value)]


def _word(value: Any) -> Any:
    return {True: "on", False: "off"}.get(value, value) if isinstance(value, bool) else value


def _many(value: Any) -> Any:
    return [value] if isinstance(value, str | Mapping) else value


_WORDS_SCHEMA = {"type": ["string", "boolean", "array"], "items": {"type": ["string", "boolean"]}}


def _limit(value: Any) -> Any:
    """A bare duration is the limit."""
    return {"limit": value} if isinstance(value, str | int | float) and not isinstance(value, bool) else value


Words = Annotated[list[str], BeforeValidator(_listed), WithJsonSchema(_WORDS_SCHEMA)]


def _end(value: Any) -> Any:
    """End of a searched range: a number, or text with a unit."""
    if not isinstance(value, int | float | str):
        raise ValueError(f"{value!r} is neither a number nor a number with a unit, like 20ms")
    levels.quantity(value)
    return levels.scalar(value.strip()) if isinstance(value, str) else value


End = Annotated[int | float | str, BeforeValidator(_end), WithJsonSchema({"type": ["number", "string"]})]
_LEVELS_SCHEMA = {"type": ["string", "array"], "items": {"type": ["boolean", "number", "string"]}}
Levels = Annotated[list[Scalar], BeforeValidator(levels.listed), WithJsonSchema(_LEVELS_SCHEMA)]

# Names and files of graphs, a mapping that describes a command, or a generated graph with its parameters. The tags
# appear in the locations of pydantic's errors.
_OF_GRAPH, _OF_COMMAND, _OF_GENERATED = "workload-graph", "workload-command", "workload-generated"


def _workload_tag(value: Any) -> str:
    if isinstance(value, GeneratedParameters) or generated.named(value) is not None:
        return _OF_GENERATED
    return _OF_COMMAND if isinstance(value, Mapping | CommandParameters) else _OF_GRAPH


GeneratedWorkload = Annotated[GeneratedParameters, BeforeValidator(generated.parse)]
Workload = Annotated[
    Annotated[Words, Tag(_OF_GRAPH)]
    | Annotated[CommandParameters, Tag(_OF_COMMAND)]
    | Annotated[GeneratedWorkload, Tag(_OF_GENERATED)],
    Discriminator(_workload_tag),
]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", defer_build=True)


class Thresholds(_Part):
    """irobot_benchmark's rule: late means above the smaller of a share of the period and an absolute time."""

    # The names are those of a node's configuration (docs/formats.md, section 2), the aliases those of an experiment.
    model_config = ConfigDict(serialize_by_alias=True, frozen=True)

    late_percent: Annotated[Percent, Option(Group.MEASURED)] = Field(
        default=20.0,
        alias="late_percentage",
        ge=0,
        le=1e12,
        description="A message is late above this share of its period or above the absolute limit.",
    )
    late_ns: Annotated[DurationNs, Option(Group.MEASURED, unit="us"), Form("MICROSECONDS")] = Field(
        default=5_000_000, alias="late_absolute", description="A message is late above this latency."
    )
    too_late_percent: Annotated[Percent, Option(Group.MEASURED)] = Field(
        default=100.0,
        alias="too_late_percentage",
        ge=0,
        le=1e12,
        description="A message is too late above this share of its period or above the limit.",
    )
    too_late_ns: Annotated[DurationNs, Option(Group.MEASURED, unit="us"), Form("MICROSECONDS")] = Field(
        default=50_000_000, alias="too_late_absolute", description="A message is too late above this latency."
    )


class CoolDown(_Part):
    """Before each trial, perflab waits until the machine is quiet, instead of sleeping for a fixed time."""

    limit: Annotated[DurationNs, Option(Group.AROUND, "--cool-down", envvar="PERFLAB_COOL_DOWN")] = Field(
        10_000_000_000, description="Longest wait for a quiet machine before a trial; 0 disables the wait."
    )
    threshold: Percent | None = Field(
        None,
        gt=0,
        le=100,
        description="Busy share of all CPUs below which the machine counts as quiet. Default: measured before the "
        "first trial.",
    )


class Statistics(_Part):
    """How to compare results."""

    margin: Annotated[Percent, Option(Group.VERDICTS)] = Field(
        5.0, gt=0, le=100, description="Smallest difference that matters."
    )
    alpha: Annotated[float, Option(Group.VERDICTS)] = Field(
        0.05, gt=0, lt=0.5, description="Probability of any false claim, over all comparisons together."
    )
    metrics: Annotated[
        Words, Option(Group.VERDICTS, "--metric", many=True), Form("METRIC", complete=one_of(choices.metrics))
    ] = Field([], description="A metric to compare, e.g. latency.p99. Default: the few that matter most.")


class Claim(_Part):
    """A claim that the experiment tests (docs/findings.md)."""

    says: str = Field(min_length=1, description="The claim, as a sentence.")
    source: str | None = Field(None, min_length=1, description="Source of the claim: author and place.")
    expects: str = Field(
        description="Expectation that confirms the claim: 'planning > baseline', 'execution >= 1.5x baseline', "
        "'total == baseline within 5 %', 'spread of execution < baseline', 'success < 50 %', "
        "'received_per_s == 1000 within 1 %'."
    )
    treatment: str | None = Field(
        None,
        description="Name of the treatment that the claim is about, or `baseline`. Default: the only treatment of the "
        "experiment; the baseline if it has no conditions.",
    )
    at: dict[str, Scalar] = Field(
        {},
        description="Levels at which to judge the claim: of factors that the baseline has too, of `middleware` and of "
        "`executor`. Default: everywhere.",
    )
    against: dict[str, Scalar] = Field(
        {},
        max_length=1,
        description="For a claim about the baseline: the level to compare it with, which `baseline` in `expects` then "
        "means. For a factor its first level, for middlewares and executors one that the experiment lists earlier.",
    )


class BreakingPoint(_Part):
    """The search for the level of a factor at which trials no longer meet a criterion (docs/breaking_point.md)."""

    factor: Annotated[str, Option(Group.SEARCH), Form("PATH", complete=choices.path)] = Field(
        description="The parameter to vary: CONDITION.PARAMETER, workload.KEY or MIDDLEWARE.OPTION, e.g. "
        "message_flood.rate, workload.timer_speed, disturb.delay."
    )
    low: Annotated[End, Option(Group.SEARCH), Form("LEVEL")] = Field(
        description="Lowest level of the search, e.g. 100 or 1ms."
    )
    high: Annotated[End, Option(Group.SEARCH), Form("LEVEL")] = Field(
        description="Highest level of the search, in the same unit."
    )
    scale: Annotated[Literal["auto", "linear", "log"], Option(Group.SEARCH)] = Field(
        "auto", description="auto: log if high is at least ten times low, else linear."
    )
    breaks: Annotated[Literal["above", "below"], Option(Group.SEARCH)] = Field(
        "above",
        description="Which levels break the system; use below when low values cause failure, e.g. CPU count.",
    )
    criterion: Annotated[str, Option(Group.SEARCH), Form("CRITERION")] = Field(
        "success",
        description="What a trial must meet: success (as defined by `success`), a bound like 'latency.p99 <= "
        "5ms', 'late_share <= 1 %' or 'lost == 0', or target:FILE|NAME.",
    )
    share: Annotated[float | None, Option(Group.SEARCH)] = Field(
        None,
        ge=0.05,
        le=0.99,
        description="Share of trials that must meet the criterion. Default: 0.9 for success, else 0.5.",
    )
    precision: Annotated[Percent, Option(Group.SEARCH)] = Field(
        10.0,
        ge=1,
        le=50,
        description="The search ends when the interval is this narrow, as a share of the range from low to high "
        "(on a logarithmic scale, of its logarithm).",
    )
    max_trials: Annotated[int, Option(Group.SEARCH)] = Field(
        60, ge=8, le=MAX_TRIALS, description="The search ends after this many trials."
    )
    confidence: Annotated[Percent, Option(Group.SEARCH)] = Field(
        95.0, ge=50, le=99.9, description="Confidence level of the interval."
    )


class Document(_Part):
    """An experiment."""

    name: Annotated[str | None, Option(Group.OUTPUT), Form("NAME")] = Field(
        None, description="Name of the run. Default: the workload's name."
    )
    workload: Annotated[Workload, Option(Group.COMMAND, "WORKLOAD")] = Field(
        description="A catalog name, graph files that form one graph, a generated graph as NAME:key=value,... or "
        "{NAME: {key: value}}, or a mapping with the key command."
    )
    message_path: Annotated[list[str], BeforeValidator(_many), Option(Group.GRAPH, many=True), Form("DIR")] = Field(
        [],
        description="A folder with your own interface files, .../package/msg/Name.msg, whose types the graph uses.",
    )
    serialization: Annotated[Literal["once", "every"] | None, Option(Group.GRAPH)] = Field(
        None,
        description="every: encode each message from a struct and decode it into one, as an application does; "
        "once: send the same bytes again and again, to measure only the middleware. Default: as in the graph, "
        "else once; on "
        "rclcpp every.",
    )
    middlewares: Annotated[
        Words,
        Option(Group.VARIANTS, "--middleware"),
        Form("M[,M+M]", ",".join, some_of(choices.middlewares, ",+")),
    ] = Field(
        ["cyclonedds"],
        description="The middleware that carries the messages. M+M gives each process of the graph its own; "
        "M@PREFIX is the "
        "build in an installation folder.",
    )
    executors: Annotated[
        Words, Option(Group.VARIANTS, "--executor"), Form("E[,E]", complete=some_of(choices.executors))
    ] = Field(
        [],
        description="The executor that runs the callbacks: inline, single_threaded, events, polling, "
        "multi_threaded[:N], priority, let[:PERIOD], and on rclcpp static_single_threaded. Default: as in the "
        "graph.",
    )
    ipc: Annotated[Words, Option(Group.VARIANTS), Form("off|on|off,on", ",".join, some_of(("off", "on")))] = Field(
        ["off"],
        description="Deliver messages within a process without the middleware; rejected if no process has both "
        "ends of a topic.",
    )
    pass_by: Annotated[Words, Option(Group.VARIANTS), Form("P[,P]", complete=some_of(choices.ways_to_pass))] = Field(
        [],
        description="How publishers pass messages: shared, unique, loaned; rejected if it makes no difference. "
        "Default: as in the graph.",
    )
    middleware_options: Annotated[
        dict[str, Scalar],
        Option(Group.VARIANTS, "--middleware-option", many=True),
        Form("[NAME.]KEY=VALUE", complete=choices.middleware_option),
    ] = Field({}, description="Option of a middleware (`perflab list middlewares`).")
    service_framing: Annotated[str | None, Option(Group.VARIANTS), Form("F", complete=one_of(choices.framings))] = (
        Field(
            None,
            description="How replies are matched to requests: rmw_fastrtps, rmw_cyclonedds. Default: the "
            "middleware's own.",
        )
    )
    time: Annotated[DurationNs, Option(Group.LENGTH, short="-t")] = Field(
        10_000_000_000, description="Measured time of a trial: 10, 2.5, 500ms, 2min; 0: until it is stopped (Ctrl-C)."
    )
    warmup: Annotated[DurationNs, Option(Group.LENGTH)] = Field(
        0, description="Time before the measurement, which is not counted."
    )
    trials: Annotated[int, Option(Group.LENGTH)] = Field(
        1, ge=1, le=MAX_TRIALS, description="Repetitions of every treatment, interleaved in blocks."
    )
    until_decided: Annotated[bool, Option(Group.LENGTH)] = Field(
        False,
        description="Add repetitions until every comparison is decided: either a difference is shown, or that "
        "none exceeds the margin. Also with --resume.",
    )
    at_most: Annotated[DurationNs, Option(Group.LENGTH)] = Field(
        3_600_000_000_000, gt=0, description="Longest time for adding repetitions with until_decided, e.g. 30min."
    )
    until_clear: Annotated[int | None, Option(Group.LENGTH)] = Field(
        None,
        ge=1,
        le=MAX_TRIALS,
        description="Add repetitions of treatments with an unclear outcome, up to N each, until successes or "
        "failures lead by three trials.",
    )
    quick: Annotated[bool, Option(Group.LENGTH)] = Field(
        False,
        description="A first look in about a minute: chooses the time and number of trials, unless the command "
        "line does, and labels every result as rough.",
    )
    seed: Annotated[int, Option(Group.LENGTH)] = Field(
        1, ge=0, le=MAX_SEED, description="Seed for all randomness; repetition k uses N + k - 1."
    )
    order: Annotated[Literal["randomised", "as_written"], Option(Group.LENGTH)] = Field(
        "randomised", description="Trial order within a repetition."
    )
    threads: Annotated[
        list[str],
        BeforeValidator(_many),
        Option(Group.THREADS, "--thread", many=True),
        Form("[PROCESS.]ROLE=SCHEDULING", complete=choices.thread),
    ] = Field(
        [],
        description="Scheduling of the threads of a ROLE, executors or middleware: POLICY[:PRIORITY][@CPUS], e.g. "
        "executors=RR:98@1, ping.middleware=OTHER@0-1, executors=DEADLINE:2ms/10ms/10ms.",
    )
    assignments: dict[str, Annotated[list[str], BeforeValidator(_many)]] = Field(
        {},
        description="Named assignments of threads, each one or several words as in `threads`; their names are "
        "levels of the factor workload.threads.",
    )
    lock_memory: Annotated[Switch | None, Option(Group.THREADS)] = Field(
        None, description="Keep all pages of the processes in memory. Default: as in the graph."
    )
    name_threads: Annotated[Switch, Option(Group.THREADS)] = Field(
        True, description="Name an executor's threads after its nodes."
    )
    sampling: Annotated[DurationNs, Option(Group.MEASURED, short="-s")] = Field(
        500_000_000, description="Interval between resource samples."
    )
    measure: Annotated[Words, Option(Group.MEASURED), Form("F[,F]", complete=some_of(FIGURES))] = Field(
        [], description=f"Figures to measure in addition to the usual ones: {', '.join(FIGURES)}."
    )
    thresholds: Thresholds = Field(default_factory=lambda: Thresholds.model_validate({}))
    network: Annotated[str, Option(Group.TRIAL), Form("IFACE", complete=one_of(choices.interfaces))] = Field(
        "lo", description="Network interface that the middleware uses."
    )
    domain: Annotated[int | None, Option(Group.TRIAL)] = Field(
        None,
        ge=0,
        le=232,
        description="DDS domain for all trials, which no other run may hold. Default: each trial gets a free one.",
    )
    discovery_timeout: Annotated[DurationNs, Option(Group.TRIAL)] = Field(
        30_000_000_000, description="Longest wait until all endpoints are matched; 0 starts without waiting."
    )
    drain_quiet: Annotated[DurationNs, Option(Group.TRIAL)] = Field(
        1_000_000_000, gt=0, description="Messages still missing after this much silence at the end count as lost."
    )
    drain_limit: Annotated[DurationNs, Option(Group.TRIAL)] = Field(
        10_000_000_000, gt=0, description="Longest wait for the last messages."
    )
    conditions: Annotated[
        list[Scalar | dict[str, Any]],
        BeforeValidator(_many),
        Option(Group.AROUND, "--condition", many=True),
        Form("NAME[:KEY=VALUE,...]", complete=kind_of(choices.conditions, "+")),
    ] = Field(
        [],
        description="A treatment: a condition, or several combined with + (A:k=v+B). Baselines without it run in "
        "between.",
    )
    mitigations: Annotated[
        list[Scalar | dict[str, Any]],
        BeforeValidator(_many),
        Option(Group.AROUND, "--mitigation", many=True),
        Form("NAME[:KEY=VALUE,...]", complete=kind_of(choices.mitigations, "+")),
    ] = Field(
        [],
        description="A mitigation, or several combined with +: every treatment, including the baseline, runs with "
        "it and without it.",
    )
    factors: Annotated[
        dict[str, Levels],
        Option(Group.AROUND, "--factor", many=True),
        Form("PATH=LEVEL,LEVEL...", complete=choices.factor),
    ] = Field(
        {},
        description="Levels of a parameter: cpu_load.load=20,80, or a range, 0..90:15 (step) or 100..3000/6log "
        "(number). PATH is CONDITION.PARAMETER, MITIGATION.PARAMETER, workload.KEY (workload.depth, "
        "workload.timer_speed) or MIDDLEWARE.OPTION (fastdds.transport).",
    )
    baseline: Annotated[Switch, Option(Group.AROUND)] = Field(
        True, description="Run the workload without conditions as well."
    )
    baseline_again: Annotated[Switch, Option(Group.AROUND)] = Field(
        True, description="Run another baseline after every trial with conditions."
    )
    sweep: Switch = Field(
        False,
        description="Levels are skipped if this machine cannot produce them, and reported; trials that fail are "
        "results.",
    )
    breaking_point: BreakingPoint | None = Field(None, description="A search instead of a plan of trials.")
    cool_down: Annotated[CoolDown, BeforeValidator(_limit)] = Field(default_factory=lambda: CoolDown.model_validate({}))
    observers: Annotated[
        list[str | dict[str, Any]],
        BeforeValidator(_many),
        Option(Group.AROUND, "--observer", many=True),
        Form("NAME[:KEY=VALUE,...]", complete=kind_of(choices.observers)),
    ] = Field([], description="An observer, which records more than the built-in latency and resources.")
    observer_control: Annotated[Switch, Option(Group.AROUND)] = Field(
        True, description="With several trials, also run baselines without observers, to show what the observers cost."
    )
    success: Annotated[list[str], BeforeValidator(_many), Option(Group.VERDICTS, many=True), Form("CRITERION")] = Field(
        [], description="What a trial must meet: 'lost == 0', 'latency.p99 <= 5ms'."
    )
    statistics: Statistics = Field(default_factory=lambda: Statistics.model_validate({}))
    claims: list[Claim] = Field([], description="Claims that the experiment tests; the report gives a verdict on each.")

    @property
    def command(self) -> CommandParameters | None:
        """A command that runs instead of perflab's own nodes. Raises BadInput if that is not possible."""
        if isinstance(self.workload, GeneratedParameters):
            made = generated.load(self.workload, self.message_path).command
            return None if made is None else made.parameters
        return self.workload if isinstance(self.workload, CommandParameters) else None


@functools.cache
def options() -> tuple[Declared, ...]:
    """Every option that sets a key of an experiment."""
    return tuple(declared(Document))


def option_at(location: Location) -> str:
    """How the command line names a place in the document: the option for it or for its parent; else the key."""
    for length in range(len(location), 0, -1):
        if (found := next((o for o in options() if o.path == location[:length]), None)) is not None:
            return found.name
    return f"--{str(location[0]).replace('_', '-')}" if location else "the command line"


class BadEntry(BadInput):
    """One invalid entry of a document whose other entries are valid; `location` is its place."""

    def __init__(self, location: Location, text: str) -> None:
        super().__init__(text)
        self.location = location


@dataclass(frozen=True)
class Written:
    """The user's input: the mapping, and the file it came from, if any."""

    mapping: dict[str, Any]
    file: YamlFile | None = None
    given: frozenset[str] = frozenset()  # keys that the command line gave

    @property
    def sources(self) -> tuple[Source, ...]:
        """The file's text when it was read."""
        return () if self.file is None else (Source(self.file.path, self.file.sha256, self.file.text),)

    def where(self, location: Location) -> str:
        """ "file.yaml:12" or "--option"; the key itself if it came from neither."""
        if self.file is None or (location and str(location[0]) in self.given):
            return option_at(location)
        return self.file.where(*location)

    @contextlib.contextmanager
    def at(self, *location: str | int) -> Iterator[None]:
        """Within this context, errors name the place that they refer to."""
        try:
            yield
        except BadEntry as error:
            raise self.complain(error.location, error) from error
        except BadInput as error:
            raise self.complain(location, error) from error

    def refuse(self, key: str, text: str) -> BadInput:
        """Reports an invalid value at its place; `text` continues after the key's name."""
        where = self.where((key,))
        return BadInput(f"{where}{text}" if where.startswith("--") else f"{where}: {key}{text}")

    def complain(self, location: Location, error: BadInput) -> BadInput:
        """The same error, with the place in the file if it came from one, and keys instead of options."""
        key = str(location[0])
        if key in self.given or self.file is None:
            return error
        text = re.sub(rf"^{option_at((key,))}:? ", f"{key}: ", str(error))
        for option in sorted(options(), key=lambda option: option.path[0] != key):
            if option.is_option and option.path[0] in (key, option.path[-1]):
                text = re.sub(rf"(?<!\S){option.name}(?![\w-])", option.path[-1], text)
        return BadInput(f"{self.where(location)}: {text}")


def with_options(written: Written | None, options: Mapping[str, Any]) -> Written:
    """A file's mapping, with the command line's values replacing the file's."""
    base = written or Written({})
    mapping = dict(base.mapping)
    for key, value in _with_prefixes(options, Path.cwd()).items():
        nested = isinstance(value, Mapping) and isinstance(mapping.get(key), Mapping)
        mapping[key] = {**mapping[key], **value} if nested else value
    return Written(mapping, base.file, frozenset(options))


def validate(written: Written) -> Document:
    """The document for the user's input. Raises BadInput that names the place."""
    try:
        return Document.model_validate(written.mapping)
    except ValidationError as error:
        raise _complaint(written, error) from error


def read(path: Path) -> Written:
    """An experiment file. Raises BadInput."""
    from perflab.formats import yaml_file

    file = yaml_file.read(path, "an experiment")
    if file.document is None:
        raise BadInput(f"{path} is empty")
    if not isinstance(file.document, dict):
        raise BadInput(f"{path}: an experiment is a mapping with at least the key workload")
    return Written(_beside(file.document, path.parent), file)


# A graph file has one of these at the top level, beside keys that an experiment has as well.
_STRUCTURE = {"nodes", "processes"}
_SHARED = {"name", "executors", "threads", "lock_memory"}


def is_experiment(path: Path) -> bool:
    """Whether a file is an experiment rather than a graph: only experiments have the key workload.

    Without that key, a file with other experiment keys and no graph keys also counts as an experiment. Raises BadInput
    for an empty file, which is neither.
    """
    if path.suffix not in (".yaml", ".yml"):
        return False
    from perflab.formats import yaml_file

    try:
        document = yaml_file.read(path, "an experiment").document
    except BadInput:
        return False  # the code that reads it as a graph reports the error
    if document is None:
        raise BadInput(f"{path} is empty")
    if not isinstance(document, dict):
        return False
    keys = {str(key) for key in document}
    return "workload" in keys or bool(keys & (Document.model_fields.keys() - _SHARED) and not keys & _STRUCTURE)


def json_schema() -> dict[str, Any]:
    """docs/schema/experiment.schema.json: the permitted keys and values, for editors and other programs."""
    from perflab.condition.kinds import REGISTRY as CONDITIONS
    from perflab.mitigation.kinds import REGISTRY as MITIGATIONS
    from perflab.observer.kinds import REGISTRY as OBSERVERS

    schema = Document.model_json_schema()
    schema |= {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "A perflab experiment"}
    schema["description"] = "docs/experiments.md explains it. Durations are seconds, or text with a unit (500ms, 2min)."
    for key, registry in (("conditions", CONDITIONS), ("mitigations", MITIGATIONS), ("observers", OBSERVERS)):
        switch = {"enum": ["on", "off", True, False]}
        in_treatments = key != "observers"
        kinds: dict[str, Any] = {"name": {"type": "string"}, "required": switch} if in_treatments else {}
        for name, kind in registry.items():
            model = kind.model.model_json_schema()
            schema["$defs"] |= model.pop("$defs", {})
            schema["$defs"][name] = {**model, "description": kind.summary}
            of_kind = {"anyOf": [{"$ref": f"#/$defs/{name}"}, {"type": "null"}]}
            several = {"type": "array", "items": of_kind}
            kinds[name] = {"anyOf": [*of_kind["anyOf"], several]} if in_treatments else of_kind
        entry = {"type": ["string", "object"], "properties": kinds, "additionalProperties": False}
        schema["properties"][key] |= {"type": ["string", "object", "array"], "items": entry}
    schema["properties"]["success"] |= {"type": ["string", "array"], "items": {"type": "string"}}
    schema["properties"]["threads"] |= {"type": ["string", "array"], "items": {"type": "string"}}
    plain_schema(schema)
    return schema


def _with_prefixes(mapping: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Makes the prefixes of builds (NAME@PREFIX) absolute, so that they mean the same from everywhere."""

    def absolute(named: Any) -> Any:
        if isinstance(named, list):
            return [absolute(word) for word in named]
        if not isinstance(named, str):
            return named
        return re.sub(
            rf"{MARK}([^,+]+)", lambda m: f"{MARK}{(folder / Path(m[1].strip()).expanduser()).absolute()}", named
        )

    key = "middlewares"
    return {**mapping, key: absolute(mapping[key])} if key in mapping else dict(mapping)


def _in_folder(command: Any, folder: Path) -> Any:
    """A command with an absolute directory."""
    if not isinstance(command, dict) or not isinstance(command.get("directory"), str):
        return command
    return {**command, "directory": str((folder / command["directory"]).absolute())}


def _beside(mapping: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Graph files, middleware builds and a command's folder are relative to the file that names them."""
    mapping = _with_prefixes(mapping, folder)
    words = mapping.get("workload")
    if generated.named(words) is not None:
        return mapping
    if isinstance(words, dict):
        command = _in_folder(words, folder)
        if isinstance(commands := words.get("commands"), dict):
            command = {**command, "commands": {name: _in_folder(one, folder) for name, one in commands.items()}}
        return {**mapping, "workload": command}
    if not isinstance(words, str | list):
        return mapping

    def found(word: Any) -> Any:
        is_path = isinstance(word, str) and ("/" in word or word.endswith((".yaml", ".yml", ".json")))
        return str(folder / word) if is_path and not Path(word).is_absolute() else word

    listed = _listed(words)
    return {**mapping, "workload": [found(word) for word in listed]}


def _complaint(written: Written, error: ValidationError) -> BadInput:
    first = error.errors()[0]
    # Locations contain keys, indices, and the names of the alternatives that pydantic tried.
    tried = ("function-", "dict[", "list[", "str", "bool", _OF_GRAPH, _OF_COMMAND, _OF_GENERATED)
    location: Location = tuple(
        p for n, p in enumerate(first["loc"]) if not n or isinstance(p, int) or not p.startswith(tried)
    )
    where, key = written.where(location), ".".join(str(part) for part in location)
    named = not where.startswith("--")
    if first["type"] == "extra_forbidden":
        known = [field.alias or name for name, field in _model_at(location[:-1]).model_fields.items()]
        return BadInput(f"{where}: no key {key!r}; {instead(str(location[-1]), known)}")
    if first["type"] == "missing":
        if location == ("workload",):
            return BadInput(f"{where}: an experiment needs the key workload")
        return BadInput(f"{where}: {key} is missing")
    forms = (form_of(option.field) for option in declared(Document) if option.path == location)
    text = IN_PERCENT.text if next(forms, None) is IN_PERCENT else plain
    return BadInput(f"{where}{f': {key}' if named else ''}{_in_words(first, text)}")


def _model_at(location: Location) -> type[BaseModel]:
    """The model whose keys are allowed at a place."""
    part: type[BaseModel] = Document
    is_name = False  # refers to an entry of a mapping
    for key in location:
        if not is_name and isinstance(key, str):
            annotation = part.model_fields[key].annotation
            part, is_name = next(_models_within(annotation)), get_origin(annotation) is dict
        else:
            is_name = False
    return part


def _models_within(annotation: Any) -> Iterator[type[BaseModel]]:
    """Includes keys within lists and mappings."""
    yield from models_in(annotation)
    if get_origin(annotation) in (list, dict):
        yield from (model for part in get_args(annotation) for model in _models_within(part))


def _in_words(error: Any, text: Callable[[Any], str]) -> str:
    """ " 0 must be at least 1", ": text for people, not 3"."""
    given = error["input"]
    if error["type"] == "bool_type":  # the first alternative for a scalar
        return f" {given!r} is neither a number nor text"
    if (said := what_is_wrong(error, text)) is not None:
        return f" {said}"
    message = str(error["msg"]).removeprefix("Value error, ")
    if message.startswith(repr(given)):
        return f" {message}"
    if message.startswith("the value "):  # of a duration
        return f" {message.removeprefix('the value ')}"
    return f": {message[:1].lower()}{message[1:]}" + ("" if error["type"] == "value_error" else f", not {given!r}")
