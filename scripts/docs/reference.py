"""The pages of the reference, made of the models: commands, parameters, metrics, schemas, exit codes, the catalog.

Nothing is listed here. What a page says is what the program says of itself, and a new kind, option or metric is there
because it is declared.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perflab import errors
from perflab.option import form_of
from perflab.report.tables.plain import markdown_rows

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from perflab.registry import Kind

Json = Mapping[str, Any]

SCHEMAS = Path(__file__).resolve().parents[2] / "docs" / "schema"
BYTES_OF_DEFAULT = 60  # a longer default is not readable in a table


@dataclass(frozen=True)
class Page:
    """A page of the site: where, what the navigation calls it, and its Markdown."""

    path: str
    title: str
    text: str


def pages() -> Iterator[Page]:
    """All pages of the reference, in the order of the navigation."""
    listed = _listed()
    made = [
        *_commands(),
        *_kinds(listed),
        _catalog(listed),
        _messages(listed),
        _metrics(),
        _exit_codes(),
        *_schemas(),
    ]
    yield _index(made)
    yield from made


# -- Markdown --------------------------------------------------------------------------------------------------------


def cell(text: object) -> str:
    """Text in a cell of a table: what Markdown or HTML would take for its own stands for itself outside of `code`."""
    parts = re.split(r"(`[^`]*`)", " ".join(str(text).split()).replace("|", "\\|"))
    return "".join(part if part.startswith("`") else _escaped(part) for part in parts)


def prose(text: str) -> str:
    """Text of a help between paragraphs, where | stands for itself."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else _escaped(part) for part in parts)


def _escaped(text: str) -> str:
    return re.sub(r"([*_<>\[\]])", r"\\\1", text)


def code(text: str) -> str:
    """`text`, also in a table; nothing for nothing."""
    return f"`{text}`".replace("|", "\\|") if text else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; columns in which nothing stands are left out."""
    body = [list(row) for row in rows]
    kept = [i for i in range(len(head)) if i == 0 or any(row[i] for row in body)]
    return markdown_rows([head[i] for i in kept], ([row[i] for i in kept] for row in body)) + "\n"


def _page(path: str, title: str, *parts: str) -> Page:
    text = "\n\n".join([f"# {title}", *(part.strip() for part in parts)]) + "\n"
    return Page(f"reference/{path}.md", title, _with_links(text, "../" * (1 + path.count("/"))))


def _with_links(text: str, up: str) -> str:
    """Pages of docs/ that a help or a schema names, as links."""

    def link(found: re.Match[str]) -> str:
        name = found[1].replace("\\", "")
        return f"[{name}]({up}{name})"

    return re.sub(r"(?<!\]\()(?<![\w/`])docs/([\w\\-]+\.md)(?!`)", link, text)


def _index(made: Sequence[Page]) -> Page:
    """What there is, but for the pages that other overviews have."""
    own = [page for page in made if page.path.count("/") == 1 or page.path.endswith("/index.md")]
    listed = [f"* [{page.title}]({page.path.removeprefix('reference/')})" for page in own]
    return _page(
        "index",
        "Reference",
        "To look up a command, a parameter, a metric, a file. "
        "These pages are made from perflab itself when the site is built.",
        "\n".join(listed),
    )


# -- commands --------------------------------------------------------------------------------------------------------


def _commands() -> Iterator[Page]:
    from typer._click.core import Context
    from typer.main import get_command

    from perflab.cli.app import app

    top = get_command(app)
    found = list(_verbs(top, Context(top, info_name="perflab")))
    rows = [[f"[`{context.command_path}`]({_file(context)}.md)", cell(_summary(command))] for command, context in found]
    yield _page("commands/index", "Commands", "What each does, with all its options.", table(["command", "does"], rows))
    for command, context in found:
        yield _command(command, context)


def _verbs(group: Any, context: Any) -> Iterator[tuple[Any, Any]]:
    for name, command in group.commands.items():
        inner = type(context)(command, info_name=name, parent=context)
        if hasattr(command, "commands"):
            yield from _verbs(command, inner)
        else:
            command.get_params(inner)  # a verb is imported when it is asked for its parameters
            yield command, inner


def _file(context: Any) -> str:
    return "-".join(context.command_path.split()[1:])


def _summary(command: Any) -> str:
    return inspect.cleandoc(command.help or "").split("\n\n")[0]


def _command(command: Any, context: Any) -> Page:
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    groups: dict[str, list[list[str]]] = {"Arguments": []}
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and parameter.name != "help":
            other = "Arguments" if parameter.param_type_name == "argument" else "Options"
            name = getattr(parameter, "rich_help_panel", None) or other
            words = re.sub(r" <[\w\[\]]+>$", "", record[0])  # the type of an argument in Python
            option, _, value = words.rpartition(" ") if parameter.param_type_name == "option" else ("", "", words)
            names = f"{code(option)} {code(value)}" if option and not value.startswith("-") else code(words)
            groups.setdefault(name, []).append([names, cell(record[1])])
    parts = [
        part
        for name, rows in groups.items()
        if rows
        for part in (f"## {name}", table(["argument" if name == "Arguments" else "option", "meaning"], rows))
    ]
    shown = f"```\n{usage}\n```"
    return _page(f"commands/{_file(context)}", context.command_path, shown, _help(command.help or ""), *parts)


def _help(text: str) -> str:
    """The help of a command, with its examples as what to copy."""
    paragraphs = []
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        words = " ".join(paragraph.split())
        if (example := re.match(r"Example: (perflab .*)", words)) is not None:
            paragraphs.append(f"```sh\n{example[1]}\n```")
        elif paragraph.startswith("\b"):  # click's mark of lines that stay as they are
            paragraphs.append(f"```sh\n{inspect.cleandoc(paragraph.removeprefix(chr(8)))}\n```")
        else:
            paragraphs.append(prose(words))
    return "\n\n".join(paragraphs)


# -- kinds with parameters -------------------------------------------------------------------------------------------

# Registry of each kind, where its page is, and the page that explains it.
_OF_KINDS = (
    ("perflab.condition.kinds", "conditions", "Parameters of conditions", "--condition", "conditions.md"),
    ("perflab.mitigation.kinds", "mitigations", "Parameters of mitigations", "--mitigation", "mitigations.md"),
    ("perflab.observer.kinds", "observers", "Parameters of observers", "--observer", "observers.md"),
    ("perflab.export", "exporters", "Formats of exports", "", "runs.md"),
)


def _kinds(listed: Json) -> Iterator[Page]:
    from importlib import import_module

    yield _workloads(listed)
    for module, path, title, option, about in _OF_KINDS:
        registry: Mapping[str, Kind[Any]] = import_module(module).REGISTRY
        how = (
            f"`{option} NAME:KEY=VALUE,...`, or a mapping in an [experiment file](../experiments.md). "
            if option
            else ""
        )
        parts = [f"{how}[What they do, and what proves it](../{about})."]
        for kind in registry.values():
            parts += _kind(kind)
        yield _page(path, title, *parts)
    yield _middlewares()


def _workloads(listed: Json) -> Page:
    from perflab.workload import PLAIN_KINDS
    from perflab.workload.generated import REGISTRY

    plain = [[code(name), cell(summary)] for name, summary in PLAIN_KINDS.items()]
    parts = [
        "`perflab run NAME`, or `perflab run NAME:KEY=VALUE,...` of those that have parameters. "
        "[Graphs](../graphs.md) are files; the [catalog](catalog.md) has some.",
        table(["workload", "is"], plain),
    ]
    for kind in REGISTRY.values():
        parts += _kind(kind)
    executors = [[code(row["name"]), cell(row["summary"])] for row in listed["executors"]]
    parts += ["## Executors", "What runs the callbacks of a graph: `--executor`.", table(["executor", "is"], executors)]
    return _page("workloads", "Parameters of workloads", *parts)


def _kind(kind: Kind[Any]) -> list[str]:
    rows = [
        [code(key), _value_of(field), _default_of(field), cell(field.description or "")]
        for key, field in kind.model.model_fields.items()
    ]
    parts = [f"## {kind.name}", cell(_sentence(kind.summary))]
    return [*parts, table(["parameter", "value", "default", "meaning"], rows)] if rows else [*parts, "No parameters."]


def _sentence(text: str) -> str:
    first = text.split(maxsplit=1)[0]
    return f"{text[:1].upper() if first.isalpha() and first.islower() else text[:1]}{text[1:]}."


def _value_of(field: FieldInfo) -> str:
    return code(form_of(field).metavar)


def _default_of(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    default = field.default  # one that is made of other parameters the description tells
    if not isinstance(default, str | int | float) or default == "":
        return ""
    if isinstance(default, bool):
        return code("on" if default else "off")
    text = default if isinstance(default, str) else form_of(field).text(default)
    return code(text) if len(text) <= BYTES_OF_DEFAULT else ""


def _middlewares() -> Page:
    from perflab.middleware import REGISTRY
    from perflab.middleware.disturbance import OPTIONS

    parts = [
        "`--middleware NAME`, and `--middleware-option NAME.KEY=VALUE`. [What each is and refuses](../middlewares.md).",
    ]
    for kind in REGISTRY.values():
        parts += [f"## {kind.name}", cell(_sentence(kind.summary)), f"To have it: {cell(kind.install)}"]
        if kind.options:
            parts.append(_options(kind.options))
    parts += ["## Disturbance over any of them", "[What each does](../disturbance.md).", _options(OPTIONS)]
    return _page("middlewares", "Options of middlewares", *parts)


def _options(options: Iterable[Any]) -> str:
    return table(
        ["option", "value", "meaning"], [[code(o.key), code("|".join(o.values)), cell(o.help)] for o in options]
    )


# -- what `perflab list` lists ---------------------------------------------------------------------------------------


def _listed() -> Json:
    from perflab.cli import main

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        status = main(["list", "--json", "--progress", "off"])
    if status != 0:
        raise errors.NotAsExpected(f"`perflab list --json` ended with {status}")
    found: Json = json.loads(printed.getvalue())
    return found


_CATALOG = {
    "topologies": "Graphs: `perflab run NAME`.",
    "experiments": "Experiments: `perflab run NAME`, `perflab sweep NAME`, `perflab breaking-point NAME`.",
    "targets": "Bounds: `perflab check RUN --target NAME`.",
    "tasks": "What the arm does: `perflab run manipulation:task=NAME`.",
    "planners": "Planners of the arm: `perflab run manipulation:planner=NAME`.",
    "paths": "Paths from sensors to actuators: `perflab trace paths --paths NAME`.",
}


def _catalog(listed: Json) -> Page:
    parts = ["What is there to begin with, by name."]
    for name, about in _CATALOG.items():
        rows = [[code(row["name"]), cell(row["summary"])] for row in listed[name]]
        parts += [f"## {name.capitalize()}", about, table(["name", "is"], rows)]
    return _page("catalog", "The catalog", *parts)


def _messages(listed: Json) -> Page:
    rows = [[code(row["name"]), code(row.get("ros_type", "")), cell(row["summary"])] for row in listed["messages"]]
    return _page(
        "messages",
        "Message types",
        "What a publisher of a [graph](../graphs.md#message-types) may send; `--message-path` adds your own.",
        table(["name", "type of ROS 2", "is"], rows) if rows else "None: perflab's programs are not built here.",
    )


# -- results ---------------------------------------------------------------------------------------------------------


def _metrics() -> Page:
    from perflab.statistics.metrics import METRICS, STATISTICS

    rows: dict[str, list[str]] = {}
    for metric in METRICS.values():
        name = re.sub(r"\..*", ".S", metric.name)
        observers = ", ".join(f"[`{o}`](observers.md#{o})" for o in sorted(metric.observers))
        rows[name] = [
            code(name), cell(metric.help), cell(metric.unit), metric.better, cell(metric.compared), observers,
        ]  # fmt: skip
    statistics = ", ".join(code(s) for s in STATISTICS)
    return _page(
        "metrics",
        "Metrics",
        f"One number of a trial each, for `--success`, `--metric` and every table. S is one of {statistics}. "
        "[How they are compared](../findings.md).",
        table(["metric", "meaning", "unit", "better", "compared as", "needs the observer"], rows.values()),
    )


def _exit_codes() -> Page:
    from perflab.cli import INTERRUPTED

    kinds = [
        kind for _, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, errors.PerflabError) and "exit_code" in vars(kind) and kind is not errors.PerflabError
    ]  # fmt: skip
    rows = [["`0`", "Done."], ["`1`", cell(inspect.getdoc(errors.TrialFailed))]]
    rows += [[code(str(kind.exit_code)), cell(inspect.getdoc(kind))] for kind in sorted(kinds, key=_exit_code)]
    rows += [[code(str(INTERRUPTED)), "Interrupted by Ctrl-C; 128 + n by signal n."]]
    return _page(
        "exit-codes",
        "Exit codes",
        "What a command ends with, beside one line on stderr of what, where, and what would be right.",
        table(["code", "means"], rows),
    )


def _exit_code(kind: type[errors.PerflabError]) -> int:
    return kind.exit_code


# -- schemas ---------------------------------------------------------------------------------------------------------


def _schemas() -> Iterator[Page]:
    documents = {path.name.partition(".")[0]: json.loads(path.read_text("utf-8")) for path in SCHEMAS.glob("*.json")}
    about = {name: document.get("description") or document["title"] for name, document in documents.items()}
    rows = [
        [f"[`{name}`]({name}.md)", cell(about[name]), f"[JSON](../../schema/{name}.schema.json)"]
        for name in sorted(documents)
    ]
    yield _page(
        "schemas/index", "Schemas", "Of the files that perflab reads and writes, as JSON Schema.",
        table(["schema", "of", "file"], rows),
    )  # fmt: skip
    for name in sorted(documents):
        yield _schema(name, documents[name])


def _schema(name: str, document: Json) -> Page:
    parts = [cell(document.get("description", document["title"]))]
    parts += _members(document)
    for definition, of in document.get("$defs", {}).items():
        parts += [f"## {definition}", *_members(of)]
        if "description" in of:
            parts.insert(len(parts) - len(_members(of)), cell(of["description"]))
    parts.append(f"The whole schema: [{name}.schema.json](../../schema/{name}.schema.json).")
    return _page(f"schemas/{name}", name, *parts)


def _members(of: Json) -> list[str]:
    members = {**of.get("properties", {}), **{f"/{key}/": v for key, v in of.get("patternProperties", {}).items()}}
    if not members:
        return [_type(of)] if _type(of) else []
    required = of.get("required", ())
    rows = [
        [code(key), _type(member), "yes" if key in required else "", cell(member.get("description", ""))]
        for key, member in members.items()
    ]
    return [table(["key", "value", "required", "meaning"], rows)]


def _type(of: Any) -> str:
    """What a value is, in a few words; definitions are links."""
    if not isinstance(of, dict):
        return ""
    if (target := of.get("$ref")) is not None:
        name = str(target).rpartition("/")[2]
        return f"[{cell(name)}](#{name.lower()})"
    if "const" in of:
        return code(json.dumps(of["const"]))
    if "enum" in of:
        return ", ".join(code(json.dumps(value)) for value in of["enum"])
    for key in ("anyOf", "oneOf"):
        if key in of:
            return " or ".join(dict.fromkeys(filter(None, map(_type, of[key]))))
    kinds = of.get("type", ())
    kinds = [kinds] if isinstance(kinds, str) else list(kinds)
    words = []
    for kind in kinds:
        inner = _type(of.get("items")) if kind == "array" else ""
        if kind == "object" and isinstance(of.get("additionalProperties"), dict):
            inner = _type(of["additionalProperties"])
        words.append(f"{kind} of {inner}" if inner else kind)
    return " or ".join(words)
