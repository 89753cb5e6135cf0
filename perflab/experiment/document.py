"""Experiment files: what a run shall do, as YAML or as options of the command line, checked in one place.

The options of `perflab run` have the same names and meanings as the keys of a file and replace them one by one. What
both together say is one mapping, which the manifest keeps, so that a run can be resumed and repeated.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

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

from perflab.errors import BadInput
from perflab.experiment import levels
from perflab.formats import yaml_file
from perflab.formats.yaml_file import Location
from perflab.parameters import DURATION, DurationNs, Percent, Switch
from perflab.registry import what_is_wrong
from perflab.workload import Source, generated
from perflab.workload.command import CommandParameters
from perflab.workload.generated import GeneratedParameters

MAX_TRIALS = 10_000
MAX_SEED = 2**63 - 1

Scalar = bool | int | float | str


def _listed(value: Any) -> Any:
    """One word, "a,b" or a list of words; YAML's on and off are words here."""
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
    """Of a range that is searched: a number, or text with a unit."""
    if not isinstance(value, int | float | str):
        raise ValueError(f"{value!r} is neither a number nor one with a unit, like 20ms")
    levels.quantity(value)
    return levels.scalar(value.strip()) if isinstance(value, str) else value


End = Annotated[int | float | str, BeforeValidator(_end), WithJsonSchema({"type": ["number", "string"]})]
_LEVELS_SCHEMA = {"type": ["string", "array"], "items": {"type": ["boolean", "number", "string"]}}
Levels = Annotated[list[Scalar], BeforeValidator(levels.listed), WithJsonSchema(_LEVELS_SCHEMA)]

# Names and files of graphs, a mapping that describes a command, or a generated graph with its parameters. The tags are
# in the places of pydantic's complaints.
_OF_GRAPH, _OF_COMMAND, _OF_GENERATED = "workload-graph", "workload-command", "workload-generated"


def _workload_tag(value: Any) -> str:
    if isinstance(value, GeneratedParameters) or generated.named(value) is not None:
        return _OF_GENERATED
    return _OF_COMMAND if isinstance(value, Mapping | CommandParameters) else _OF_GRAPH


_GENERATED_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        name: {"anyOf": [{**kind.model.model_json_schema(), "description": kind.summary}, {"type": "null"}]}
        for name, kind in generated.REGISTRY.items()
    },
    "minProperties": 1,
    "maxProperties": 1,
    "additionalProperties": False,
}
GeneratedWorkload = Annotated[GeneratedParameters, BeforeValidator(generated.parse), WithJsonSchema(_GENERATED_SCHEMA)]
Workload = Annotated[
    Annotated[Words, Tag(_OF_GRAPH)]
    | Annotated[CommandParameters, Tag(_OF_COMMAND)]
    | Annotated[GeneratedWorkload, Tag(_OF_GENERATED)],
    Discriminator(_workload_tag),
]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Thresholds(_Part):
    """irobot_benchmark's: late is over the smaller of a share of the period and an absolute time."""

    late_percentage: Percent = Field(20.0, ge=0, le=1e12, description="of the period, in percent")
    late_absolute: DurationNs = Field(5_000_000, description="e.g. 5ms")
    too_late_percentage: Percent = Field(100.0, ge=0, le=1e12, description="of the period, in percent")
    too_late_absolute: DurationNs = Field(50_000_000, description="e.g. 50ms")


class CoolDown(_Part):
    """Before each trial perflab waits until the machine is quiet, instead of sleeping for a fixed time."""

    limit: DurationNs = Field(10_000_000_000, description="longest wait; 0 does not wait")
    threshold: Percent | None = Field(
        None, gt=0, le=100, description="busy share of all CPUs that counts as quiet; default by what was found first"
    )


class Statistics(_Part):
    """How results are compared."""

    alpha: float = Field(0.05, gt=0, lt=0.5, description="rate of false claims over all comparisons together")
    margin: Percent = Field(5.0, gt=0, le=100, description="a difference below this is called none, in percent")
    metrics: Words = Field([], description="what is compared, e.g. latency.p99; default a few that matter")


class BreakingPoint(_Part):
    """The search for the level of a factor at which trials no longer meet a criterion (docs/breaking_point.md)."""

    factor: str = Field(description="CONDITION.PARAMETER, workload.KEY or MIDDLEWARE.OPTION, a number")
    low: End = Field(description="where the search begins: levels from here, e.g. 100 or 1ms ...")
    high: End = Field(description="... up to here, in the same unit")
    scale: Literal["auto", "linear", "log"] = Field(
        "auto", description="auto: log where high is at least ten times low, else linear"
    )
    breaks: Literal["above", "below"] = Field("above", description="below: small levels break, as of CPUs")
    criterion: str = Field(
        "success", description="what a trial must meet: success, a bound like 'latency.p99 <= 5ms', or target:FILE|NAME"
    )
    share: float | None = Field(
        None, ge=0.05, le=0.99, description="of the trials that must meet it; default 0.9 of success, else 0.5"
    )
    precision: Percent = Field(
        10.0,
        ge=1,
        le=50,
        description="width of the interval that is good enough, in percent of the range from low to high",
    )
    max_trials: int = Field(60, ge=8, le=MAX_TRIALS, description="after so many trials the search ends")
    confidence: Percent = Field(95.0, ge=50, le=99.9, description="of the interval, in percent")


class Document(_Part):
    """An experiment."""

    name: str | None = Field(None, description="of the run; default that of the workload")
    workload: Workload = Field(
        description="a name of the catalog, graph files that form one graph, a generated graph as NAME:key=value,... "
        "or {NAME: {key: value}}, or a mapping with the key command"
    )
    middlewares: Words = Field(["cyclonedds"], description="what carries the messages; a+b gives each process its own")
    middleware_options: dict[str, Scalar] = Field({}, description="[NAME.]KEY: VALUE")
    executors: Words = Field([], description="what runs the callbacks; default as the graph says")
    ipc: Words = Field(["off"], description="off, on: within a process hand messages over without the middleware")
    pass_by: Words = Field([], description="shared, unique, loaned; default as the graph says")
    service_framing: str | None = Field(None, description="rmw_fastrtps, rmw_cyclonedds")
    time: DurationNs = Field(10_000_000_000, gt=0, description="measured time of a trial: 10, 2.5, 500ms, 2min")
    warmup: DurationNs = Field(0, description="time before it that is not counted")
    trials: int = Field(1, ge=1, le=MAX_TRIALS, description="repetitions of everything (blocks)")
    seed: int = Field(1, ge=0, le=MAX_SEED, description="of everything random, the order of trials included")
    order: Literal["randomised", "as_written"] = Field("randomised", description="of the trials within a block")
    baseline: Switch = Field(True, description="a treatment without conditions")
    baseline_again: Switch = Field(True, description="another baseline after every trial with conditions")
    conditions: Annotated[list[Scalar | dict[str, Any]], BeforeValidator(_many)] = Field(
        [], description="each entry is one treatment: a condition, or several combined"
    )
    factors: dict[str, Levels] = Field(
        {}, description="levels of CONDITION.PARAMETER, workload.KEY or middleware.OPTION; or a range, 0..90:15"
    )
    sweep: Switch = Field(
        False, description="levels that this machine cannot do are left out and told; trials that fail are results"
    )
    breaking_point: BreakingPoint | None = Field(None, description="a search instead of a plan of trials")
    observers: Annotated[list[str | dict[str, Any]], BeforeValidator(_many)] = Field([], description="what records")
    observer_control: Switch = Field(True, description="baselines without the observers show what these cost")
    success: Annotated[list[str], BeforeValidator(_many)] = Field(
        [], description="criteria that a trial must meet, e.g. lost == 0, latency.p99 <= 5ms"
    )
    threads: Annotated[list[str], BeforeValidator(_many)] = Field(
        [], description="[PROCESS.]ROLE=POLICY[:PRIORITY][@CPUS]"
    )
    lock_memory: Switch | None = Field(None, description="keep all pages in memory; default as the graph says")
    name_threads: Switch = Field(True, description="call the threads of an executor after its nodes")
    network: str = Field("lo", description="network interface")
    sampling: DurationNs = Field(500_000_000, description="interval of resource samples")
    measure: Words = Field([], description="figures beside the usual ones: dispatch, work")
    thresholds: Thresholds = Field(default_factory=lambda: Thresholds.model_validate({}))
    discovery_timeout: DurationNs = Field(30_000_000_000, description="until all endpoints match; 0 does not wait")
    drain_quiet: DurationNs = Field(
        1_000_000_000, gt=0, description="silence after which what is missing at the end is lost"
    )
    drain_limit: DurationNs = Field(10_000_000_000, gt=0, description="bound of the wait for the last messages")
    cool_down: Annotated[CoolDown, BeforeValidator(_limit)] = Field(default_factory=lambda: CoolDown.model_validate({}))
    statistics: Statistics = Field(default_factory=lambda: Statistics.model_validate({}))


# How the command line calls a key, where not --KEY with its last s taken off.
_OPTIONS = {
    "middlewares": "--middleware",
    "executors": "--executor",
    "middleware_options": "--middleware-option",
    "threads": "--thread",
    "conditions": "--condition",
    "factors": "--factor",
    "observers": "--observer",
    "metrics": "--metric",
}
_NESTED = ("thresholds", "statistics", "workload", "breaking_point")  # keys whose members are options of their own
_MEMBERS = {"command": "the command after --"}


def option_of(key: str) -> str:
    return _OPTIONS.get(key, f"--{key.replace('_', '-')}")


@dataclass(frozen=True)
class Written:
    """What the user wrote: the mapping, where each part of it stands, and the file it came from, if any."""

    mapping: dict[str, Any]
    lines: Mapping[Location, int] = field(default_factory=dict)
    source: Source | None = None
    given: frozenset[str] = frozenset()  # keys that the command line gave

    @property
    def source_name(self) -> str:
        """Of the file, without folder and suffix."""
        return Path(self.source.path).stem if self.source is not None else ""

    def where(self, location: Location) -> str:
        """ "file.yaml:12" or "--option"; of a key that neither gave, the key."""
        key = str(location[0]) if location else ""
        if key in self.given or self.source is None:
            if key in _NESTED and len(location) > 1 and isinstance(member := location[1], str):
                return _MEMBERS.get(member, option_of(member))
            return option_of(key) if key else "the command line"
        for length in range(len(location), 0, -1):
            if location[:length] in self.lines:
                return f"{self.source.path}:{self.lines[location[:length]]}"
        return self.source.path

    def complain(self, location: Location, error: BadInput) -> BadInput:
        """The same complaint, with the place in the file where it came from one, and keys instead of options."""
        key = str(location[0])
        if key in self.given or self.source is None:
            return error
        text = re.sub(rf"^{option_of(key)}:? ", f"{key}: ", str(error))
        for other in sorted(Document.model_fields, key=len, reverse=True):
            text = re.sub(rf"(?<!\S){option_of(other)}(?![\w-])", other, text)
        for member in BreakingPoint.model_fields if key == "breaking_point" else ():
            text = re.sub(rf"(?<!\S){option_of(member)}(?![\w-])", member, text)
        return BadInput(f"{self.where(location)}: {text}")


def with_options(written: Written | None, options: Mapping[str, Any]) -> Written:
    """What a file says, with what the command line says instead."""
    base = written or Written({})
    mapping = dict(base.mapping)
    for key, value in options.items():
        nested = isinstance(value, Mapping) and isinstance(mapping.get(key), Mapping)
        mapping[key] = {**mapping[key], **value} if nested else value
    return Written(mapping, base.lines, base.source, frozenset(options))


def validate(written: Written) -> Document:
    """The document of what was written. Raises BadInput that names the place."""
    try:
        return Document.model_validate(written.mapping)
    except ValidationError as error:
        raise _complaint(written, error) from error


def read(path: Path) -> Written:
    """An experiment file. Raises BadInput."""
    file = yaml_file.read(path, "an experiment")
    if file.document is None:
        raise BadInput(f"{path} is empty")
    if not isinstance(file.document, dict):
        raise BadInput(f"{path}: an experiment is a mapping with at least the key workload")
    source = Source(str(path), file.sha256, file.text)
    return Written(_beside(file.document, path.parent), file.lines, source)


# A graph file has one of these at its top, and beside it keys that an experiment has as well.
_STRUCTURE = {"nodes", "processes"}
_SHARED = {"name", "executors", "threads", "lock_memory"}


def is_experiment(path: Path) -> bool:
    """Whether a file is an experiment rather than a graph: only the former has the key workload.

    Where that is missing, so is a file with other keys of an experiment and none of a graph. Raises BadInput for a
    file with nothing in it, which is neither.
    """
    if path.suffix not in (".yaml", ".yml"):
        return False
    try:
        document = yaml_file.read(path, "an experiment").document
    except BadInput:
        return False  # whoever reads it as a graph says what is wrong with it
    if document is None:
        raise BadInput(f"{path} is empty")
    if not isinstance(document, dict):
        return False
    keys = {str(key) for key in document}
    return "workload" in keys or bool(keys & (Document.model_fields.keys() - _SHARED) and not keys & _STRUCTURE)


def json_schema() -> dict[str, Any]:
    """docs/schema/experiment.schema.json: what may be written, for editors and other programs."""
    from perflab.condition.kinds import REGISTRY as CONDITIONS
    from perflab.observer.kinds import REGISTRY as OBSERVERS

    schema = Document.model_json_schema()
    schema |= {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "An experiment of perflab"}
    schema["description"] = "docs/experiments.md explains it. Durations are seconds, or text with a unit (500ms, 2min)."
    for key, registry in (("conditions", CONDITIONS), ("observers", OBSERVERS)):
        kinds: dict[str, Any] = {"name": {"type": "string"}} if key == "conditions" else {}
        for name, kind in registry.items():
            model = kind.model.model_json_schema()
            schema["$defs"] |= model.pop("$defs", {})
            schema["$defs"][name] = {**model, "description": kind.summary}
            of_kind = {"anyOf": [{"$ref": f"#/$defs/{name}"}, {"type": "null"}]}
            several = {"type": "array", "items": of_kind}
            kinds[name] = {"anyOf": [*of_kind["anyOf"], several]} if key == "conditions" else of_kind
        entry = {"type": ["string", "object"], "properties": kinds, "additionalProperties": False}
        schema["properties"][key] |= {"type": ["string", "object", "array"], "items": entry}
    schema["properties"]["success"] |= {"type": ["string", "array"], "items": {"type": "string"}}
    schema["properties"]["threads"] |= {"type": ["string", "array"], "items": {"type": "string"}}
    _plain(schema)
    return schema


def _plain(schema: Any) -> None:
    """Defaults as people write them, and no titles that only repeat the keys."""
    if isinstance(schema, list):
        for part in schema:
            _plain(part)
    if not isinstance(schema, dict):
        return
    if schema.pop("format", None) == DURATION and isinstance(schema.get("default"), int):
        schema["default"] /= 1e9
    if isinstance(schema.get("title"), str) and "properties" not in schema:
        del schema["title"]
    for key, part in schema.items():
        if key != "default":
            _plain(part)


def _beside(mapping: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Graph files, and the folder of a command, are named relative to the file that names them."""
    words = mapping.get("workload")
    if generated.named(words) is not None:
        return mapping
    if isinstance(words, dict) and isinstance(words.get("directory"), str):
        return {**mapping, "workload": {**words, "directory": str((folder / words["directory"]).absolute())}}
    if not isinstance(words, str | list):
        return mapping

    def found(word: Any) -> Any:
        is_path = isinstance(word, str) and ("/" in word or word.endswith((".yaml", ".yml", ".json")))
        return str(folder / word) if is_path and not Path(word).is_absolute() else word

    listed = _listed(words)
    return {**mapping, "workload": [found(word) for word in listed]}


def _complaint(written: Written, error: ValidationError) -> BadInput:
    first = error.errors()[0]
    # Beside keys and indices there are names of what pydantic tried.
    tried = ("function-", "dict[", "list[", "str", "bool", _OF_GRAPH, _OF_COMMAND, _OF_GENERATED)
    location: Location = tuple(
        p for n, p in enumerate(first["loc"]) if not n or isinstance(p, int) or not p.startswith(tried)
    )
    where, key = written.where(location), ".".join(str(part) for part in location)
    named = not where.startswith("--")
    if first["type"] == "extra_forbidden":
        known = list(_model_at(location[:-1]).model_fields)
        close = difflib.get_close_matches(str(location[-1]), known, n=1, cutoff=0.5)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"
        return BadInput(f"{where}: no key {key!r}; {hint}")
    if first["type"] == "missing":
        if location == ("workload",):
            return BadInput(f"{where}: an experiment needs the key workload")
        return BadInput(f"{where}: {key} is missing")
    return BadInput(f"{where}{f': {key}' if named else ''}{_in_words(first)}")


def _model_at(location: Location) -> type[BaseModel]:
    """The model whose keys stand at a place."""
    part: type[BaseModel] = Document
    for key in location:
        annotation = part.model_fields[str(key)].annotation
        part = next(a for a in _models_in(annotation))
    return part


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models in a union, or the one that it is."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)


# How pydantic calls what is wrong with a number, as words behind the number.
_BOUNDS = {
    "greater_than_equal": ("must be at least", "ge"),
    "greater_than": ("must be more than", "gt"),
    "less_than_equal": ("must be at most", "le"),
    "less_than": ("must be less than", "lt"),
}


def _in_words(error: Any) -> str:
    """ " 0 must be at least 1", ": input should be 'a' or 'b', not 3"."""
    given = error["input"]
    if error["type"] == "bool_type":  # the first of what a scalar may be
        return f" {given!r} is neither a number nor text"
    if (said := what_is_wrong(error)) is not None:
        return f" {said}"
    if error["type"] in _BOUNDS:
        words, bound = _BOUNDS[error["type"]]
        return f" {given} {words} {error['ctx'][bound]:g}"
    message = str(error["msg"]).removeprefix("Value error, ")
    if message.startswith(repr(given)):
        return f" {message}"
    if message.startswith("the value "):  # of a duration
        return f" {message.removeprefix('the value ')}"
    return f": {message[:1].lower()}{message[1:]}" + ("" if error["type"] == "value_error" else f", not {given!r}")
