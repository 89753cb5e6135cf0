"""Named paths: the file that says which ways through a system matter, and what they are like in a trace.

    paths:
      - name: control
        nodes: [/sensor, /control, /actuator]   # in order, others may lie between; or topics: [...]
        deadline: 10ms
        weight: 2

Names are exact, or patterns (`*`, `?`, `[...]`). A file is checked as far as it goes without a trace; everything that
is wrong is one line with the place in the file. In a trace a path is one route through the graph. Where its names fit
several, it is refused rather than guessed; where they fit none, it is not measured, which makes every total that it
belongs to unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal

import polars as pl
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema

from perflab.errors import BadInput, instead, one_line
from perflab.formats import yaml_file
from perflab.formats.yaml_file import Location, YamlFile
from perflab.parameters import DurationNs
from perflab.results.objective import PathResult
from perflab.statistics import objectives
from perflab.statistics.histogram import Histogram
from perflab.statistics.objectives import MEASURES, total
from perflab.trace import names
from perflab.trace.flow import INFERRED, NOT_JUDGED, Flow, Followed, Route
from perflab.trace.quantiles import describe
from perflab.validation import plain_schema, what_is_wrong

MAX_PATHS = 1000
MAX_ROUTES = 20
MAX_SEARCH = 200_000  # steps of a search
STATISTICS = ("min", "p50", "p90", "p99", "p99_9", "max", "mean")
_STOPPED = ("not_published", "not_used")
_OF_ROUTES = frozenset({"nodes", "topics", "since", "until", "may_stop"})  # keys of a path with a way
TIMES = "times"  # link of what is no path of the trace: times that the processes of a run measured


# Files ----------------------------------------------------------------------------------------------------------------


def _names(value: Any) -> Any:
    """One name or a list of them."""
    return [value] if isinstance(value, str) else value


Name = Annotated[str, Field(min_length=1)]
Names = Annotated[
    list[Name],
    BeforeValidator(_names),
    Field(min_length=1),
    WithJsonSchema({"type": ["string", "array"], "items": {"type": "string", "minLength": 1}, "minItems": 1}),
]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class NamedPath(_Part):
    """A way through the system. It has nodes, topics or both; or times in place of a way."""

    name: Name = Field(description="what it is called; no other path of the file is called so")
    nodes: Names | None = Field(None, description="nodes in order, with their namespaces; others may lie between")
    topics: Names | None = Field(
        None,
        description="topics in order: from the callback that publishes the first to the one that takes the last; "
        "beside nodes: the only topics that messages go over",
    )
    times: Name | None = Field(
        None, description="times that the processes of a run measure, by their name: control_execution, planning_times"
    )
    threads: Names | None = Field(
        None,
        description="threads of programs that begin the way, as PROCESS.THREAD in order: for the mitigation "
        "chain_priorities, which finds the executors of nodes by itself",
    )
    deadline: DurationNs | None = Field(None, gt=0, description="longest latency that is no miss, e.g. 10ms")
    weight: float | None = Field(
        None, gt=0, allow_inf_nan=False, description="in the objective; needs a deadline; default 1 with one"
    )
    since: Literal["start", "due"] = Field(
        "start", description="latency begins with the start of the first callback, or when its timer was due"
    )
    until: Literal["start", "end"] = Field("end", description="and ends with the start or the end of the last callback")
    may_stop: bool = Field(False, description="a callback on the way may choose not to publish; that is no miss then")


class PathsFile(_Part):
    """The paths of a system that matter."""

    paths: Annotated[list[NamedPath], Field(min_length=1, max_length=MAX_PATHS, description="one entry per path")]


@dataclass(frozen=True)
class Wanted:
    """A path of a file, and its place in the list there."""

    path: NamedPath
    file: YamlFile
    place: int

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def names(self) -> list[str]:
        """Its nodes, else its topics, in order."""
        return self.path.nodes or self.path.topics or []

    @property
    def weight(self) -> float | None:
        """None of a path without a deadline, which is in no objective."""
        return None if self.path.deadline is None else 1.0 if self.path.weight is None else self.path.weight

    def where(self, *location: str | int) -> str:
        """ "paths.yaml:12"."""
        return self.file.where("paths", self.place, *location)


def find(word: str | Path, option: str = "--paths") -> tuple[Wanted, ...]:
    """The paths in a file, or those of this name in the catalog. Raises BadInput, which names `option`."""
    from perflab import catalog

    known = {entry.name: entry.path for entry in catalog.paths()}
    path = Path(word)
    if path.name == str(word) and not path.suffix and not path.exists():
        if str(word) not in known:
            raise BadInput(f"{option} {str(word)!r} is neither a file nor one of the catalog: {', '.join(known)}")
        path = known[str(word)]
    return read(path, option)


def read(path: Path, option: str = "--paths") -> tuple[Wanted, ...]:
    """The paths of a file. Raises BadInput."""
    file = yaml_file.read(path, "a paths file", option)
    if file.document is None:
        raise BadInput(f"{path} is empty")
    if not isinstance(file.document, dict):
        raise BadInput(f"{path}: a paths file is a mapping with the key paths")
    try:
        validated = PathsFile.model_validate(file.document)
    except ValidationError as error:
        raise _complaint(file, error) from error
    wanted = tuple(Wanted(path, file, place) for place, path in enumerate(validated.paths))
    _check(wanted)
    return wanted


def json_schema() -> dict[str, Any]:
    """docs/schema/paths.schema.json: what may be written, for editors and other programs."""
    schema = PathsFile.model_json_schema()
    schema |= {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Paths through a system"}
    schema["description"] = "docs/formats.md explains it. Durations are seconds, or text with a unit (500us, 10ms)."
    plain_schema(schema)
    return schema


def _check(wanted: tuple[Wanted, ...]) -> None:
    """What pydantic does not see: names that are there twice, keys that need each other."""
    seen: dict[str, Wanted] = {}
    for path in wanted:
        if (first := seen.setdefault(path.name, path)) is not path:
            where = first.where("name").rpartition(":")[2]
            raise BadInput(f"{path.where('name')}: there is a path {path.name!r} already, on line {where}")
        if not path.names and path.path.times is None:
            raise BadInput(f"{path.where()}: path {path.name!r} needs nodes, topics or times")
        if path.path.times is not None and (strange := _OF_ROUTES.intersection(path.path.model_fields_set)):
            key = min(strange)
            raise BadInput(
                f"{path.where(key)}: path {path.name!r} has times, which {key} says nothing of; leave one out"
            )
        if path.path.nodes is not None and len(path.path.nodes) < 2:
            raise BadInput(f"{path.where('nodes')}: a path of nodes has a first and a last one")
        if path.path.weight is not None and path.path.deadline is None:
            raise BadInput(f"{path.where('weight')}: a weight needs a deadline, which makes paths comparable")


def _complaint(file: YamlFile, error: ValidationError) -> BadInput:
    errors = error.errors()
    # A key that is misspelled is also one that is missing.
    first = next((e for e in errors if e["type"] == "extra_forbidden"), errors[0])
    location: Location = tuple(p for p in first["loc"] if isinstance(p, int) or not p.startswith("function-"))
    where, key = file.where(*location), str(location[-1]) if location else ""
    if first["type"] == "extra_forbidden":
        known = (PathsFile if len(location) == 1 else NamedPath).model_fields
        return BadInput(f"{where}: no key {key!r}; {instead(key, known)}")
    if first["type"] == "missing":
        return BadInput(f"{where}: {key} is missing")
    given = first["input"]
    if first["type"] == "greater_than":
        return BadInput(f"{where}: {key} {given} must be more than 0")
    if first["type"] in ("model_type", "dict_type"):
        return BadInput(
            f"{where}: a path is a mapping with name, nodes, topics or times, deadline and weight, not {given!r}"
        )
    if (said := what_is_wrong(first)) is not None:
        return BadInput(f"{where}: {key}: {said}")
    message = one_line(str(first["msg"]).removeprefix("Value error, "))
    return BadInput(f"{where}: {key}: {message[:1].lower()}{message[1:]}")


# Routes ---------------------------------------------------------------------------------------------------------------


def unknown_name(what: str, name: str, known: Sequence[str]) -> str:
    none = "no message of it goes from a publisher to a subscription"
    return names.unknown(what, name, known, "on the ways of messages in the trace", none)


def name_error(path: Wanted, flow: Flow) -> tuple[str, str] | None:
    """Where the file has a name that is not in the trace, and what is wrong with it."""
    for key, asked, known in (("nodes", path.path.nodes, flow.nodes), ("topics", path.path.topics, flow.topics)):
        for place, name in enumerate(asked or ()):
            if not any(fnmatchcase(each, name) for each in known):
                return path.where(key, place), unknown_name(key[:-1], name, known)
    return None


def the_route(path: Wanted, flow: Flow) -> Route | None:
    """The route that the names of a path fit: along messages that arrived, else also along edges where none did, else
    with the fewest inferred links; None where there is none. Raises BadInput where there are several.
    """
    edges = list(flow.edge.values())
    known = [e for e in edges if e["link"] != INFERRED]
    tiers = ([e for e in known if e["delivered"]], known, [e for e in edges if e["delivered"]])
    found = next(filter(None, (list(_search(path, tier, flow)) for tier in tiers)), [])
    inferred = [sum(edge["link"] == INFERRED for edge in route.rows) for route in found]
    routes = [route for route, n in zip(found, inferred, strict=True) if n == min(inferred)]
    if len(routes) > 1:
        shown = "; ".join(route.name for route in sorted(routes, key=lambda r: (len(r.edges), r.edges))[:3])
        many = f"{len(routes)}" if len(routes) <= MAX_ROUTES else f"more than {MAX_ROUTES}"
        more = "; …" if len(routes) > 3 else ""
        raise BadInput(
            f"{path.where()}: path {path.name!r} fits {many} ways through the graph ({shown}{more}); name what lies"
            " between, or the topics beside the nodes"
        )
    return routes[0] if routes else None


def _search(path: Wanted, edges: Sequence[dict[str, Any]], flow: Flow) -> Iterator[Route]:
    by_nodes, patterns = path.path.nodes is not None, path.names
    only = path.path.topics if by_nodes else None
    out: dict[int, list[dict[str, Any]]] = {}
    for edge in edges:
        if only is None or any(fnmatchcase(edge["topic"], topic) for topic in only):
            out.setdefault(edge["from_vertex"], []).append(edge)

    def fits(name: str | None, place: int) -> bool:
        return name is not None and fnmatchcase(name, patterns[place])

    steps = n = 0
    for first in sorted(out):
        if by_nodes and not fits(flow.vertex[first]["node"], 0):
            continue
        # vertex, edges so far, vertices so far, how many names were met
        stack: list[tuple[int, tuple[int, ...], frozenset[int], int]] = [
            (first, (), frozenset((first,)), int(by_nodes))
        ]
        while stack:
            vertex, so_far, seen, met = stack.pop()
            for edge in out.get(vertex, ()):
                steps += 1
                if steps > MAX_SEARCH:
                    raise BadInput(
                        f"{path.where()}: path {path.name!r} fits too many ways through the graph; name more of what"
                        " lies between"
                    )
                target = edge["to_vertex"]
                name = flow.vertex[target]["node"] if by_nodes else edge["topic"]
                is_next = fits(name, met)
                # The tightest fit: what was just met does not come again before the next.
                if not is_next and (met == 0 or fits(name, met - 1)):
                    continue
                if target in seen and met + is_next < len(patterns):
                    continue
                longer = (*so_far, edge["edge"])
                if met + is_next == len(patterns):
                    yield Route(flow, longer, None, target in seen)
                    n += 1
                    if n > MAX_ROUTES:
                        return
                else:
                    stack.append((target, longer, seen | {target}, met + is_next))


# Figures --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measured:
    """A named path in one trace, or times in place of one. `reason` says why it was not measured; then it has no
    figures."""

    wanted: Wanted
    reason: str | None = None
    followed: Followed | None = None
    figures: Mapping[str, Any] = field(default_factory=dict)  # columns of perflab.trace.paths.NAMED, and latency_n

    @property
    def row(self) -> dict[str, Any]:
        """Of perflab.trace.paths.NAMED."""
        path, followed = self.wanted.path, self.followed
        route = {} if followed is None else {"route": followed.route.name, "link": followed.route.link}
        if path.times is not None and self.reason is None:
            route = {"route": f"times {path.times}", "link": TIMES}
        told = {"name": self.wanted.name, "weight": self.wanted.weight, "since": path.since, "until": path.until}
        figures = {name: value for name, value in self.figures.items() if name != "latency_n"}
        set_out = self.figures.get("judged") if followed is None else followed.set_out
        return {**told, "deadline_ns": path.deadline, **route, "set_out": set_out, "reason": self.reason, **figures}

    @property
    def result(self) -> PathResult:
        """As the results of a trial have it."""
        row, path = self.row, self.wanted.path
        known = [f.name for f in fields(PathResult) if f.name not in ("times", "scores")]
        figures: dict[str, Any] = {name: row.get(name) for name in known}
        if path.times is None:
            return PathResult(**figures, scores=objectives.scores(self.figures))
        # Its times are not in the trace.
        return PathResult(name=self.wanted.name, deadline_ns=path.deadline, weight=self.wanted.weight, times=path.times)

    def score(self, measure: str) -> float | None:
        """By a measure of MEASURES; dimensionless, smaller is better."""
        return objectives.scores(self.figures)[measure]


def measure(wanted: Wanted, followed: Followed) -> Measured:
    """Latencies and misses of a path that was followed."""
    complete, deadline = followed.complete, wanted.path.deadline
    known = complete.filter(~pl.col("left_out"))
    begin = "due_ns" if wanted.path.since == "due" else "start_ns"
    end = "ended_ns" if wanted.path.until == "end" else "started_ns"
    latency = known.select(latency=pl.col(end) - pl.col(begin)).drop_nulls()
    stopped = followed.ended_by(*_STOPPED)
    lost = followed.set_out - complete.height - stopped - followed.ended_by(*NOT_JUDGED)
    never = lost + (0 if wanted.path.may_stop else stopped)
    reason = None
    if not followed.set_out:
        reason = "no message set out on it"
    elif latency.is_empty():
        if complete.height and known[begin].null_count() == known.height and begin == "due_ns":
            reason = "the trace does not say when its timer was due"
        elif complete.height and known.height and end == "ended_ns":
            reason = "the end of its last callback was never seen"
        elif not never:
            reason = "no instance of it came to its end, and none is known to have failed"
    if reason is not None:
        return Measured(wanted, reason, followed)
    judged = latency.height + never
    figures = describe(latency, [], {"latency": pl.col("latency")}, statistics=STATISTICS).row(0, named=True)
    figures |= {
        "judged": judged, "never_arrived": never, "stopped": stopped,
        "not_judged": followed.set_out - latency.height - lost - stopped,
    }  # fmt: skip
    if deadline is not None:
        late = latency.filter(pl.col("latency") > deadline).height
        figures |= objectives.misses(late, never, judged) | objectives.of_deadline(figures, deadline)
    return Measured(wanted, None, followed, figures)


def measure_times(wanted: Wanted, times: Mapping[str, Histogram] | None) -> Measured:
    """Of times in place of a path: what the processes of a trial measured by that name. None: of no trial."""
    name = str(wanted.path.times)
    if times is None:
        return Measured(wanted, "the processes of a run measure its times, and this trace is of no trial of one")
    figures = objectives.of_times(times[name], wanted.path.deadline) if name in times else {}
    return Measured(wanted, None if figures else objectives.no_times(name, times), None, figures)


# Objectives -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Objective:
    """The paths with a deadline by one measure: their scores and weights, the total, and why there is none."""

    paths: tuple[Measured, ...]
    scores: list[float | None]
    weights: list[float]
    total: float | None
    reason: str | None

    @classmethod
    def of(cls, measure: str, measured: Sequence[Measured]) -> Objective:
        paths = tuple(path for path in measured if path.wanted.weight is not None)
        scores, weights = [path.score(measure) for path in paths], [path.wanted.weight or 0.0 for path in paths]
        reason = None if paths else "no path has a deadline"
        unknown = next((path for path, score in zip(paths, scores, strict=True) if score is None), None)
        if unknown is not None and unknown.reason is not None:
            reason = f"{unknown.wanted.name} was not measured: {unknown.reason}"
        elif unknown is not None:
            n = unknown.figures["latency_n"]
            needs = f"{measure} needs {MEASURES[measure][1]} that arrived"
            reason = f"{unknown.wanted.name}: {needs}, and there {'is' if n == 1 else 'are'} {n}"
        return cls(paths, scores, weights, total(scores, weights), reason)
