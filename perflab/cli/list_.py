"""`perflab list`: lists everything that can be chosen."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perflab import waiting
from perflab.errors import BadInput, Unavailable
from perflab.option import one_of
from perflab.output import write_json

if TYPE_CHECKING:
    from perflab.catalog import Entry
    from perflab.middleware.kind import Availability, MiddlewareKind
    from perflab.registry import Kind
    from perflab.workload import WorkloadKind

Row = dict[str, Any]
Rows = Callable[[], list[Row]]  # other programs answer meanwhile

WHAT = (
    "workloads", "topologies", "middlewares", "disturbances", "executors", "messages", "conditions", "mitigations",
    "observers", "experiments", "targets", "tasks", "paths", "planners", "exporters",
)  # fmt: skip


def list_(
    what: Annotated[
        str | None,
        typer.Argument(metavar="WHAT", help=f"{', '.join(WHAT)}; default all.", autocompletion=one_of(WHAT)),
    ] = None,
    message_path: Annotated[
        list[str] | None,
        typer.Option(metavar="DIR", help="With messages: also the types of interface files below this folder."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print only JSON.")] = False,
) -> int:
    """List everything that can be chosen."""
    if what is not None and what not in WHAT:
        raise BadInput(f"{what!r} is not a list; choose from {', '.join(WHAT)}")
    if message_path and what != "messages":
        raise BadInput("--message-path is for `perflab list messages`")
    wrong: list[str] = []
    asked = partial(_messages, message_path, wrong) if message_path else _LISTS.get(what or "")
    lists = _all() if what is None or asked is None else {what: _finished(asked())}
    if as_json:
        document: Any = lists if what is None else lists[what]
        write_json(document)
        return _complain(wrong)
    for number, (name, rows) in enumerate(lists.items()):
        if what is None:
            sys.stdout.write(("\n" if number else "") + f"{name}:\n")
        if not rows:
            sys.stdout.write("  none\n" if what is None else "")
        _print(rows if what is not None else _brief(name, rows), "  " if what is None else "")
    return _complain(wrong)


def _complain(wrong: Sequence[str]) -> int:
    """Adds what else could have been listed to a complaint about a wrong name."""
    sys.stdout.flush()
    for line in wrong:
        sys.stderr.write(f"{line}\n")
    return BadInput.exit_code if wrong else 0


def _brief(name: str, rows: list[Row]) -> list[Row]:
    """As they appear in the combined list: without options, and only the message types that are made for
    measurements."""
    brief = [{**row, "options": ()} for row in rows]
    if name != "messages":
        return brief
    others = [row for row in rows if not row["stamp"]]
    packages = len({row["ros_type"].partition("/")[0] for row in others})
    more = f"{len(others)} more types in {packages} packages: `perflab list messages`"
    return [*(row for row in brief if row["stamp"]), {"name": "...", "summary": more}]


def _all() -> dict[str, list[Row]]:
    """All lists. A list that this machine cannot produce must not hide the others."""
    asked = {name: _LISTS[name]() for name in _ASKED}
    found = {}
    for name in (*(name for name in WHAT if name not in asked), *asked):
        try:
            found[name] = _finished(asked[name] if name in asked else _LISTS[name]())
        except Unavailable:
            found[name] = []
    return {name: found[name] for name in WHAT}


def _finished(rows: list[Row] | Rows) -> list[Row]:
    return rows() if callable(rows) else rows


def _print(rows: list[Row], indent: str) -> None:
    width = max((len(row["name"]) for row in rows), default=0)
    for row in rows:
        sys.stdout.write(f"{indent}{row['name']:<{width}}  {row['summary']}".rstrip() + "\n")
        if row.get("options") != () and (policies := row.get("policies")):
            sys.stdout.write(f"{indent}{'':<{width}}    QoS: {_policies(policies)}\n")
        for option in row.get("options", ()):
            sys.stdout.write(f"{indent}{'':<{width}}    {option['key']}: {option['help']}\n")


def _policies(policies: Mapping[str, Mapping[str, str | None]]) -> str:
    """The usable ones, in one line."""
    words = {"supported": "{}", "hint": "{} (hint)"}
    return ", ".join(words[of["support"] or ""].format(name) for name, of in policies.items() if of["support"] in words)


def _workloads() -> list[Row]:
    from perflab.workload import PLAIN_KINDS
    from perflab.workload.generated import REGISTRY

    plain = [{"name": name, "summary": summary} for name, summary in PLAIN_KINDS.items()]
    return [*plain, *(_workload(kind) for kind in REGISTRY.values())]


def _workload(kind: WorkloadKind) -> Row:
    row = _kind(kind)
    missing = [need.name for need in kind.needs() if not need.available]
    if missing:
        lacking = f"{', '.join(missing)} unavailable; `perflab doctor` says what to install"
        row["summary"] = f"{row['summary']} ({lacking})"
    return row


def _topologies() -> Rows:
    from perflab import catalog
    from perflab import native as native_programs
    from perflab.errors import PerflabError
    from perflab.workload import topology

    native, entries = native_programs.find(), catalog.topologies()

    def rows() -> list[Row]:
        abouts: Sequence[Row | None]
        try:
            abouts = topology.describe([entry.path for entry in entries], native)
        except PerflabError:
            abouts = [None] * len(entries)  # names can be listed without the native programs, but their content cannot
        return [
            {"name": entry.name, "summary": _describe(about), "path": str(entry.path), "graph": about}
            for entry, about in zip(entries, abouts, strict=True)
        ]

    return waiting.begin(rows)


def _describe(about: Row | None) -> str:
    if about is None:
        return ""
    from perflab.units import plural

    processes = f"{about['processes']} processes, " if about["processes"] > 1 else ""
    nodes = plural(about["nodes"], "node")
    clients = about.get("clients", 0)
    actions = about.get("actions", ())
    if about["publishers"] == 0 and not clients and not actions:
        return (
            f"{processes}{nodes}, {about['subscriptions']} subscriptions; listens to another topology run at "
            "the same time"
        )
    parts = [f"{processes}{nodes}"]
    if about["publishers"]:
        parts.append(f"{about['publishers']} publishers, {about['subscriptions']} subscriptions")
        parts.append(f"{about['delivered_per_s']:.5g} messages/s received")
    if clients:
        parts.append(f"{clients} clients of {len(about['services'])} services")
        parts.append(f"{about['requests_per_s']:.5g} requests/s")
    if actions:
        parts.append(f"{about['action_clients']} clients of {plural(len(actions), 'action')}")
        parts.append(f"{sum(action['goals_per_s'] for action in actions):.5g} goals/s")
    return ", ".join(parts)


def _middlewares() -> Rows:
    from perflab import native as native_programs
    from perflab.middleware import REGISTRY, all_available

    native = native_programs.find()

    def row(kind: MiddlewareKind, found: Availability) -> Row:
        return {
            "name": kind.name,
            "summary": kind.summary if found.usable else f"{kind.summary} (not available: {found.text})",
            "available": found.usable,
            "version": found.version,
            "wire": kind.wire,
            "service_framings": list(kind.service_framings),
            "options": [{"key": o.key, "help": o.help} for o in kind.options],
            "policies": {name: {"support": of.support, "note": of.note} for name, of in found.policies.items()},
        }

    kinds = list(REGISTRY.values())
    return waiting.begin(lambda: [row(*of) for of in zip(kinds, all_available(kinds, native), strict=True)])


def _disturbances() -> list[Row]:
    from perflab.middleware.disturbance import OPTIONS

    return [{"name": option.key, "summary": option.help} for option in OPTIONS]


def _executors() -> list[Row]:
    from perflab.design.variant import EXECUTORS

    return [{"name": name, "summary": summary} for name, summary in EXECUTORS.items()]


def _messages(message_path: Sequence[str] = (), wrong: list[str] | None = None) -> Rows:
    from perflab import native as native_programs
    from perflab.workload import topology

    native = native_programs.find()

    def rows() -> list[Row]:
        types = topology.message_types(native, message_path, wrong)
        return [{"name": t["name"], "summary": _describe_type(t), **t} for t in types]

    return waiting.begin(rows)


def _describe_type(about: Row) -> str:
    from perflab.units import format_bytes

    size = "size chosen by the publisher" if about["variable"] else format_bytes(about["payload_bytes"])
    plain = ", plain" if about["plain"] else ""
    keys = f", keyed by {', '.join(about['keys'])}" if about["keys"] else ""
    alone = "" if about["stamp"] else "; identified by its source time stamp"
    return f"{about['family']}, {size}{plain}{keys}{alone}"


def _kinds(module: str) -> list[Row]:
    registry: Mapping[str, Kind[Any]] = importlib.import_module(module).REGISTRY
    return [_kind(kind) for kind in registry.values()]


def _kind(kind: Kind[Any]) -> Row:
    """A condition, an observer, a generated workload or an exporter with its parameters."""
    options = [
        {"key": key, "help": f"{field.description}{_default(field.default)}"}
        for key, field in kind.model.model_fields.items()
    ]
    return {"name": kind.name, "summary": kind.summary, "options": options}


def _default(value: Any) -> str:
    """The text shown for a parameter's default, if that is one plain value."""
    if isinstance(value, bool):
        return f" ({'on' if value else 'off'})"
    return f" ({value})" if isinstance(value, str | int | float) else ""


def _experiments() -> list[Row]:
    from perflab import catalog

    return _commented(catalog.experiments())


def _paths() -> list[Row]:
    from perflab import catalog

    return _commented(catalog.paths())


def _commented(entries: Sequence[Entry]) -> list[Row]:
    return [{"name": e.name, "summary": _first_comment(e.path), "path": str(e.path)} for e in entries]


def _first_comment(path: Path) -> str:
    """The first comment line of a catalog file."""
    with path.open(encoding="utf-8") as file:
        return next((line.lstrip("# ").strip() for line in file if line.startswith("#")), "")


def _tasks() -> list[Row]:
    """The lists of the workload `manipulation`."""
    from perflab.workload import manipulation

    return [{"name": name, "summary": task["description"]} for name, task in manipulation.tasks().items()]


def _planners() -> list[Row]:
    """Likewise."""
    from perflab.workload.manipulation import PLANNERS

    return [{"name": name, "summary": ""} for name in PLANNERS]


def _targets() -> list[Row]:
    from perflab import catalog
    from perflab.formats.irobot import target as targets

    rows = []
    for entry in catalog.targets():
        target = targets.read(entry.path)
        bounds = ", ".join(f"{name} {bound:g}" for name, bound in target.bounds.items())
        where = f" on {target.platform}" if target.platform else ""
        rows.append({"name": entry.name, "summary": f"at most {bounds}{where}", "path": str(entry.path)})
    return rows


# These lists come from other programs, which run while the other lists are made; the list that imports least is first.
_ASKED = ("topologies", "messages", "middlewares")
_LISTS: dict[str, Callable[[], list[Row] | Rows]] = {
    "workloads": _workloads,
    "topologies": _topologies,
    "middlewares": _middlewares,
    "disturbances": _disturbances,
    "executors": _executors,
    "messages": _messages,
    "conditions": partial(_kinds, "perflab.condition.kinds"),
    "mitigations": partial(_kinds, "perflab.mitigation.kinds"),
    "observers": partial(_kinds, "perflab.observer.kinds"),
    "experiments": _experiments,
    "targets": _targets,
    "tasks": _tasks,
    "paths": _paths,
    "planners": _planners,
    "exporters": partial(_kinds, "perflab.export"),
}
