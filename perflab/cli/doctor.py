"""`perflab doctor`: what this machine can do, and what makes its measurements noisy. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perflab import output
from perflab.output import write_json
from perflab.phases import phase

if TYPE_CHECKING:
    from rich.console import Console

    from perflab.columns import Tone


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print only JSON.")] = False,
    packages: Annotated[
        bool, typer.Option("--packages", help="Print only the missing packages of the distribution.")
    ] = False,
) -> int:
    """Report what this machine can do, and what makes its measurements noisy."""
    from perflab.host import Host

    if packages:
        return _print_packages(as_json)
    with phase("checking what this machine can do"):
        document = {
            "host": Host().facts(),
            "programs": _programs(),
            "packages": _packages(),
            "middlewares": _middlewares(),
            "tracing": _tracing(),
            "workloads": _workloads(),
            "preflight": [check.document() for check in Host().preflight()],
        }
    if as_json:
        write_json(document)
        return 0
    _print(output.console(), document)
    return 0


def _programs() -> list[dict[str, Any]]:
    from perflab import native as native_programs
    from perflab.errors import Unavailable

    native = native_programs.find()
    programs = []
    for name in ("perflab-node", "perflab-graph"):
        try:
            programs.append({"name": name, "available": True, "text": str(native.program(name))})
        except Unavailable as error:
            programs.append({"name": name, "available": False, "text": str(error)})
    return programs


def _packages() -> list[dict[str, Any]]:
    from dataclasses import asdict

    from perflab import native as native_programs

    return [asdict(package) for package in native_programs.find().needs.packages()]


def _middlewares() -> list[dict[str, Any]]:
    from perflab import native as native_programs
    from perflab.middleware import REGISTRY, all_available

    native = native_programs.find()
    found = zip(REGISTRY, all_available(REGISTRY.values(), native), strict=True)
    return [{"name": name, "available": a.usable, "version": a.version, "text": a.text} for name, a in found]


def _tracing() -> list[dict[str, Any]]:
    from dataclasses import asdict

    from perflab import native as native_programs
    from perflab.tracer import abilities

    return [asdict(ability) for ability in abilities(native_programs.find())]


def _workloads() -> list[dict[str, Any]]:
    from dataclasses import asdict

    from perflab.workload.generated import REGISTRY

    needs = [(kind, need) for kind in REGISTRY.values() for need in kind.needs()]
    return [
        {**asdict(need), "name": f"{kind.name}:{need.name}", "text": None if need.available else need.install}
        for kind, need in needs
    ]


def _print(out: Console, document: dict[str, Any]) -> None:
    from rich.text import Text

    host = document["host"]
    out.print(
        Text.assemble(
            (host["hostname"] or "this machine", "bold"),
            f": {host['distribution'] or 'unknown distribution'}, ",
            f"Linux {host['kernel'] or 'unknown'}, {host['cpu_model'] or 'unknown CPU'}",
        )
    )
    out.print()

    def able(entries: Iterable[Mapping[str, Any]], shown: str) -> list[_Row]:
        """What is available, with its `shown` value, or why it is missing."""
        return [
            (e["name"], "ok", e.get(shown) or "", None) if e["available"] else (e["name"], "missing", "", e["text"])
            for e in entries
        ]

    _print_part(out, "program or middleware", able((*document["programs"], *document["middlewares"]), "version"))
    packages = document["packages"]
    _print_part(out, "package", [(p["name"], "ok" if p["available"] else "missing", p["text"], None) for p in packages])
    _print_missing(out, [p["name"] for p in packages if not p["available"]])
    _print_part(out, "tracing and profiling", able(document["tracing"], "text"))
    _print_part(out, "workloads that need more than perflab", able(document["workloads"], "summary"))
    disturbing = [(c["name"], c["status"], c["value"] or "", c["advice"]) for c in document["preflight"]]
    _print_part(out, "possible disturbances", disturbing)


def _print_packages(as_json: bool) -> int:
    from perflab import native as native_programs
    from perflab.errors import BadInput, Unavailable

    if as_json:
        raise BadInput("--packages prints names and does not go with --json, which has them too")
    needs = native_programs.find().needs
    missing = [package.name for package in needs.packages() if not package.available]
    if missing and (elsewhere := needs.elsewhere()) is not None:
        raise Unavailable(elsewhere)
    out = output.console()
    for name in missing:
        out.print(name, markup=False, highlight=False)
    return 0


def _print_missing(out: Console, packages: list[str]) -> None:
    """The command that installs what is missing, on a line of its own: to copy."""
    from perflab import native as native_programs
    from perflab.needs import install

    if packages:
        out.print(native_programs.find().needs.elsewhere() or install(packages), soft_wrap=True, markup=False)
        out.print()


_TONES: dict[str, Tone] = {"ok": "good", "warn": "warn", "unknown": "faint", "missing": "bad"}
_Row = tuple[str, str, str, str | None]  # name, state, details, remedy


def _print_part(out: Console, title: str, rows: list[_Row]) -> None:
    """A table, then one paragraph for each remedy; commands stay on one line as far as the width allows."""
    from rich.padding import Padding
    from rich.text import Text

    from perflab.columns import Cell, Column, Table
    from perflab.report.table import print_rows

    columns: list[Column[_Row]] = [
        Column("name", title, lambda row: row[0], rank=0),
        Column("status", "", lambda row: Cell(row[1], row[1], _TONES[row[1]]), rank=0),
        Column("found", "found", lambda row: Cell(row[2], row[2]), rank=0),
    ]
    print_rows(out, Table("found", title, columns, rows))
    out.print()
    advice = [(name, text) for name, _, _, text in rows if text]
    for name, text in advice:
        out.print(Padding(Text.assemble((name, "bold"), ": ", text, overflow="fold"), (0, 0, 0, 2)))
    if advice:
        out.print()
